//! Windows of time against whole histories, by brute force: `docs/windows.md` as a test.
//!
//! `ISOLDE_RANDOM_HISTORIES=100000 cargo test --release -p isolde-cluster --test windows` tries
//! more of them.

#![expect(clippy::print_stdout, reason = "figures for people")]

use isolde_cluster::{Dependency, Event, Kind, SPANS_APART, SPANS_WHOLE, Windows, shortest};
use isolde_history::Time;

/// A small history: its events, and what a level demands.
struct Case {
    events: Vec<Event>,
    dependencies: Vec<Dependency>,
}

/// splitmix64.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut it = self.0;
        it = (it ^ (it >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        it = (it ^ (it >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (it ^ (it >> 31)) % limit
    }

    fn span(&mut self, end: u64, longest: u64) -> (Time, Time) {
        let invoked = self.below(end).cast_signed();
        (invoked, invoked + self.below(longest + 1).cast_signed())
    }
}

impl Case {
    /// Transactions of one event each.
    fn whole(random: &mut Random) -> Case {
        let longest = 1 + random.below(4);
        let txns = 3 + random.below(5);
        let events: Vec<Event> = (0..txns)
            .map(|txn| {
                let (invoked, completed) = random.span(4 * longest, longest);
                Event { txn, kind: Kind::Whole, invoked, completed }
            })
            .collect();
        Case::with_edges(random, events, |_, _| true)
    }

    /// Transactions whose begins and commits have times of their own.
    fn apart(random: &mut Random) -> Case {
        let longest = 1 + random.below(4);
        let mut events = Vec::new();
        for txn in 0..3 + random.below(4) {
            let (invoked, completed) = random.span(4 * longest, longest);
            let later = invoked + random.below(longest + 1).cast_signed();
            let ends = (later + random.below(longest + 1).cast_signed()).max(completed);
            let begin = Event { txn, kind: Kind::Begin, invoked, completed };
            let commit = Event { kind: Kind::Commit, invoked: later, completed: ends, ..begin };
            events.extend([begin, commit]);
        }
        let mut case = Case::with_edges(random, events, |from, to| from != to);
        let own = case.events.chunks(2).map(|it| Dependency { from: it[0], to: it[1] });
        case.dependencies.extend(own);
        case
    }

    fn with_edges(
        random: &mut Random,
        events: Vec<Event>,
        is_meant: fn(Kind, Kind) -> bool,
    ) -> Case {
        let mut dependencies = Vec::new();
        for _ in 0..2 + random.below(2 * events.len() as u64) {
            let mut one = || events[random.below(events.len() as u64) as usize];
            let edge = Dependency { from: one(), to: one() };
            let is_other = edge.from.txn != edge.to.txn;
            if is_other && is_meant(edge.from.kind, edge.to.kind) && !edge.is_backward() {
                dependencies.push(edge);
            }
        }
        Case { events, dependencies }
    }

    /// The length of the longest event.
    fn longest(&self) -> u64 {
        let lengths = self.events.iter().map(|it| (it.completed - it.invoked).cast_unsigned());
        lengths.max().unwrap_or(0)
    }

    /// Whether the events between two times have a cycle: by all pairs and reachability.
    fn has_cycle(&self, low: Time, high: Time) -> bool {
        let is_inside = |it: &&Event| low <= it.invoked && it.completed <= high;
        let inside: Vec<&Event> = self.events.iter().filter(is_inside).collect();
        let mut reaches: Vec<Vec<bool>> = inside
            .iter()
            .map(|from| inside.iter().map(|to| self.leads(from, to)).collect())
            .collect();
        for middle in 0..inside.len() {
            for from in 0..inside.len() {
                if reaches[from][middle] {
                    let beyond = reaches[middle].clone();
                    for (to, reached) in beyond.into_iter().enumerate() {
                        reaches[from][to] |= reached;
                    }
                }
            }
        }
        (0..inside.len()).any(|it| reaches[it][it])
    }

    fn leads(&self, from: &Event, to: &Event) -> bool {
        from.precedes(to) || self.dependencies.contains(&Dependency { from: *from, to: *to })
    }

    /// Whether windows in which each span of this length lies find a cycle, the first of which
    /// begins so long before everything.
    fn is_found(&self, overlap: u64, before: Time) -> bool {
        let origin = self.events.iter().map(|it| it.invoked).min().unwrap_or(0) - before;
        let end = self.events.iter().map(|it| it.completed).max().unwrap_or(0);
        let windows = Windows::new(origin, overlap, 0);
        let of = |low, high, window| windows.containing(low, high).contains(&window);
        (0..=*windows.containing(end, end).end()).any(|window| {
            let is_event = |it: &&Event| of(it.invoked, it.completed, window);
            let is_edge = |it: &&Dependency| {
                let (low, high) =
                    (it.from.invoked.min(it.to.invoked), it.from.completed.max(it.to.completed));
                of(low, high, window)
            };
            let events: Vec<Event> = self.events.iter().filter(is_event).copied().collect();
            let edges: Vec<Dependency> =
                self.dependencies.iter().filter(is_edge).copied().collect();
            shortest(&events, &edges).is_some()
        })
    }

    /// The shortest span of time that a cycle fits in.
    fn least_span(&self) -> Option<u64> {
        let starts = self.events.iter().map(|it| it.invoked);
        let pairs = starts.flat_map(|low| self.events.iter().map(move |it| (low, it.completed)));
        let cyclic = pairs.filter(|&(low, high)| low <= high && self.has_cycle(low, high));
        cyclic.map(|(low, high)| (high - low).cast_unsigned()).min()
    }
}

fn as_float(number: u64) -> f64 {
    f64::from(u32::try_from(number).unwrap())
}

/// How many cases to try.
fn cases() -> u64 {
    std::env::var("ISOLDE_RANDOM_HISTORIES").map_or(4_000, |it| it.parse().unwrap())
}

/// Holds windows against whole histories; the widest least span, in longest events.
fn compare(make: fn(&mut Random) -> Case, spans: u32) -> f64 {
    let (mut cyclic, mut widest) = (0, 0.0f64);
    for seed in 0..cases() {
        let case = make(&mut Random(seed));
        let expected = case.has_cycle(Time::MIN, Time::MAX);
        let longest = case.longest();
        let before = (seed % 7).cast_signed();
        assert_eq!(case.is_found(u64::from(spans) * longest, before), expected, "seed {seed}");
        if let Some(span) = case.least_span() {
            cyclic += 1;
            widest = widest.max(as_float(span) / as_float(longest.max(1)));
        }
    }
    assert!(cyclic > cases() / 20, "only {cyclic} histories have a cycle");
    widest
}

#[test]
fn windows_find_a_cycle_of_whole_transactions_if_there_is_one() {
    let widest = compare(Case::whole, SPANS_WHOLE);
    println!("the widest least cycle spans {widest} of the longest event");
    assert!(widest <= f64::from(SPANS_WHOLE));
}

#[test]
fn windows_find_a_cycle_of_begins_and_commits_if_there_is_one() {
    let widest = compare(Case::apart, SPANS_APART);
    println!("the widest least cycle spans {widest} of the longest event");
    assert!(widest <= f64::from(SPANS_APART));
}

/// Three events, each as long as the longest, that touch: the first precedes the last in real
/// time, which precedes the middle one by a dependency, as that does the first.
fn touching([first, middle, last]: [Kind; 3]) -> Case {
    let event = |txn: u64, kind| {
        let invoked = txn.cast_signed();
        Event { txn, kind, invoked, completed: invoked + 1 }
    };
    let events = vec![event(0, first), event(1, middle), event(2, last)];
    let dependencies = vec![
        Dependency { from: events[2], to: events[1] },
        Dependency { from: events[1], to: events[0] },
    ];
    assert!(dependencies.iter().all(|it| !it.is_backward()));
    Case { events, dependencies }
}

#[test]
fn windows_one_step_too_short_miss_the_cycle_of_three_touching_events() {
    for kinds in [[Kind::Whole; 3], [Kind::Commit, Kind::Begin, Kind::Commit]] {
        let case = touching(kinds);
        assert!(case.has_cycle(Time::MIN, Time::MAX));
        assert_eq!((case.longest(), case.least_span()), (1, Some(3)));
        assert!((0..9).all(|before| case.is_found(3, before)));
        assert!(!case.is_found(2, 1));
    }
}

#[test]
fn fewer_than_three_transactions_need_no_windows() {
    // Two overlap, or their dependency against real time is seen from them alone.
    let case = touching([Kind::Whole; 3]);
    for left_out in 0..3 {
        let is_kept = |it: &&Event| it.txn != left_out;
        let is_edge_kept = |it: &&Dependency| is_kept(&&it.from) && is_kept(&&it.to);
        let events = case.events.iter().filter(is_kept).copied().collect();
        let dependencies = case.dependencies.iter().filter(is_edge_kept).copied().collect();
        assert!(!Case { events, dependencies }.has_cycle(Time::MIN, Time::MAX));
    }
}
