//! What a check can do without: sources of order, and strategies.

use clap::ValueEnum;
use clap::builder::PossibleValue;
use isolde::{Sources, Strategies, StrategyName};
use std::sync::LazyLock;

/// What `--without` takes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Without {
    Source(Source),
    Strategy(StrategyName),
}

impl ValueEnum for Without {
    fn value_variants<'a>() -> &'a [Self] {
        static ALL: LazyLock<Vec<Without>> = LazyLock::new(|| {
            let strategies = StrategyName::ALL.iter().map(|row| Without::Strategy(row.0));
            let sources = Source::value_variants().iter().map(|&source| Without::Source(source));
            sources.chain(strategies).collect()
        });
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        match self {
            Without::Source(source) => source.to_possible_value(),
            Without::Strategy(name) => Some(PossibleValue::new(name.name()).help(name.about())),
        }
    }
}

/// The sources of order among these.
pub(crate) fn sources_of(without: &[Without]) -> Vec<Source> {
    let source = |it: &Without| match it {
        Without::Source(source) => Some(*source),
        Without::Strategy(_) => None,
    };
    without.iter().filter_map(source).collect()
}

/// The strategies among these.
pub(crate) fn strategies_of(without: &[Without]) -> Strategies {
    let strategies = without.iter().filter_map(|it| match it {
        Without::Strategy(name) => Some(*name),
        Without::Source(_) => None,
    });
    strategies.fold(Strategies::NONE, Strategies::and)
}

/// A source of order.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Source {
    ReadModifyWrite,
    Lists,
    Given,
    Session,
    RealTime,
}

/// All sources of order but these.
pub(crate) fn sources(without: &[Source]) -> Sources {
    let uses = |source| !without.contains(&source);
    Sources {
        read_modify_write: uses(Source::ReadModifyWrite),
        lists: uses(Source::Lists),
        database_order: uses(Source::Given),
        session: uses(Source::Session),
        real_time: uses(Source::RealTime),
    }
}
