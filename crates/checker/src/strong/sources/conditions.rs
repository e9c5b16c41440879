//! Reads by condition: after who changed what they found, before who changed it later.

use crate::strong::conditions::Change;
use crate::strong::graph::{Edges, Why};
use crate::strong::model::{Model, Node};
use crate::strong::versions::Versions;

/// The edges that reads by condition mean.
pub(in crate::strong) struct ByCondition<'a> {
    pub(in crate::strong) model: &'static Model,
    pub(in crate::strong) versions: &'a Versions<'a>,
}

impl Edges for ByCondition<'_> {
    fn each(&self, emit: &mut impl FnMut(Node, Node, Why)) {
        for (place, edge) in (0..).zip(&self.versions.conditions.edges) {
            let (begin, commit) = (self.model.begin(edge.reader), self.model.commit(edge.writer));
            match edge.kind {
                Change::Saw => emit(commit, begin, Why::Condition(place)),
                Change::Missed => emit(begin, commit, Why::Condition(place)),
            }
        }
    }
}
