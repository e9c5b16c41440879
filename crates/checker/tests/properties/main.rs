//! Properties of the engines, on every small history and on random larger ones.

mod cases;
mod certificates;
mod conditions;
mod derivations;
mod engine;
mod explanations;
mod implications;
mod linearizable;
mod metamorphic;
mod operational;
mod orders;
mod relations;
mod rounds;
mod searches;
mod sources;
mod strategies;
mod support;
mod witnesses;
