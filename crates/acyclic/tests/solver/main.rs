//! The solver against brute force, and its proofs against a checker of their own.

mod checker;
mod facts;
mod instance;
mod limits;
mod polygraphs;
mod small;
