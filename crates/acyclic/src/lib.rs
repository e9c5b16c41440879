//! Choices between sets of edges that must leave a graph without cycles.
//!
//! A *choice* has two sides, each a list of edges. Exactly one side is taken, and
//! its edges hold beside the known ones. The question is whether sides can be taken so that
//! there is no cycle, and clauses of the caller are true.
//!
//! ```
//! use acyclic::{Answer, Edge, KnownEdges, Limits, NothingHidden, Phase, Solver};
//!
//! let known = KnownEdges::from_edges(3, &[Edge::new(0, 1)]);
//! let mut solver = Solver::new(&[0, 1, 2], known)?;
//! solver.choice(&[Edge::new(1, 2)], &[Edge::new(2, 0)], Phase::Yes);
//! solver.choice(&[Edge::new(2, 1)], &[Edge::new(1, 0)], Phase::Yes);
//! assert!(matches!(solver.solve(&mut NothingHidden, &Limits::NONE), Answer::Satisfied));
//! let positions = solver.positions();
//! assert!(positions[2] < positions[0] && positions[0] < positions[1]);
//! # Ok::<(), acyclic::OrderError>(())
//! ```
//!
//! **Method.** Conflict-driven search over the choices, with the graph as a theory: a
//! cycle is a clause that says not all its sides are taken. What is special is
//! that *the order is the model*. An order of all nodes is kept that agrees with every
//! edge that holds. A choice needs no decision as long as one of its sides agrees with
//! the order, and when every choice has such a side the order is the answer. Most
//! choices of a real history are never decided.
//!
//! Choices need not all be known at the start: [`Refine`] is asked about every order
//! that violates nothing, and adds what the order shows to be missing.
//!
//! **Files.** `graph` holds edges, `search` and `order` keep the order, `trail` the
//! sides taken, `clauses` and `solver/propagate` draw conclusions, `solver/conflict` learns,
//! `queue` says what to decide next, `proof` explains a refusal. `cadical`, behind the feature of
//! that name, asks another solver instead.

#[cfg(feature = "cadical")]
mod cadical;
mod choice;
mod clauses;
mod graph;
mod limits;
mod order;
mod pace;
mod proof;
mod queue;
mod search;
mod solver;
mod trail;

#[cfg(feature = "cadical")]
pub use cadical::Unproven;
pub use choice::{Choice, Edge, Literal, Node, Phase};
pub use graph::{KnownEdges, OrderError};
pub use limits::{Limits, Statistics, Stop};
pub use proof::{PathEdge, Refutation, Step};
pub use solver::{Answer, NothingHidden, Refine, Refined, Solver};
