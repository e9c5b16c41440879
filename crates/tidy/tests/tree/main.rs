//! The rules of the tree that can be tested.
//!
//! Each file is one kind of rule. A rule collects everything that breaks it and
//! compares the whole list with nothing, so that one run shows all there is to
//! mend. Exceptions are constants beside their rule, each with its reason.

mod code;
mod documentation;
mod files;
mod manifests;
mod modules;
mod privacy;
