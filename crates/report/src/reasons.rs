//! Reasons that several levels share: said once, and referred to.

use crate::{LevelReport, Report};

/// Shorter reasons are said again: a reference would not be easier to read.
const SHORT_MAX: usize = 60;

/// The long reasons of a report that more than one level has, from strong levels to weak ones.
pub(crate) struct SharedReasons<'a>(Vec<&'a str>);

impl<'a> SharedReasons<'a> {
    pub(crate) fn of(report: &'a Report) -> SharedReasons<'a> {
        let reason = |level: &'a LevelReport| level.reason.as_deref();
        let reasons = || report.levels.iter().rev().filter_map(reason);
        let mut shared: Vec<&str> = Vec::new();
        for it in reasons().filter(|it| it.chars().count() > SHORT_MAX) {
            if !shared.contains(&it) && reasons().filter(|&other| other == it).count() > 1 {
                shared.push(it);
            }
        }
        SharedReasons(shared)
    }

    /// What to say at a level: the reason, or which one below it is.
    pub(crate) fn told(&self, reason: &'a str) -> String {
        match self.0.iter().position(|&it| it == reason) {
            Some(place) => format!("see [{}]", place + 1),
            None => reason.to_owned(),
        }
    }

    /// The reasons, each with what levels call it.
    pub(crate) fn all(&self) -> impl Iterator<Item = String> {
        self.0.iter().enumerate().map(|(place, it)| format!("[{}] {it}", place + 1))
    }
}
