//! Plans depend on their seed alone, and values are unique.

use super::*;
use crate::preset::PRESETS;
use std::collections::HashSet;

fn plans(workload: &Workload, client: u32, access: Access) -> Vec<Vec<Request>> {
    let mut client = workload.client(client, access);
    let mut requests = Vec::new();
    (0..300)
        .map(|_| {
            client.plan(&mut requests);
            for request in &requests {
                if let Request::Read { .. } = request {
                    client.saw(request, &Answer::Value(Some(1)));
                }
            }
            requests.clone()
        })
        .collect()
}

fn workload(parameters: Parameters) -> Workload {
    Workload::new(parameters, None).expect("a workload")
}

#[test]
fn the_same_seed_gives_the_same_plans_and_another_one_others() {
    for preset in PRESETS {
        let same = workload(preset.parameters);
        let one = plans(&same, 0, Access::ReadWrite);
        assert_eq!(one, plans(&same, 0, Access::ReadWrite), "{}", preset.name);
        assert_ne!(one, plans(&same, 1, Access::ReadWrite), "{}", preset.name);
        let other = workload(Parameters { seed: 2, ..preset.parameters });
        assert_ne!(one, plans(&other, 0, Access::ReadWrite), "{}", preset.name);
    }
}

#[test]
fn requests_are_those_announced_and_values_unique() {
    for preset in PRESETS {
        let workload = workload(preset.parameters);
        let announced: HashSet<RequestKind> = workload.requests().into_iter().collect();
        let (mut found, mut values) = (HashSet::new(), HashSet::new());
        for client in 0..preset.parameters.sessions.min(5) {
            for request in plans(&workload, client, Access::ReadWrite).iter().flatten() {
                found.insert(request.kind());
                let written = match *request {
                    Request::Write { value, .. }
                    | Request::Append { value, .. }
                    | Request::Insert { value, .. }
                    | Request::CompareAndSet { value, .. } => value..value + 1,
                    Request::UpdateRange { low, high, first } => first..first + (high - low) + 1,
                    Request::UpdateWhere { first, .. } => {
                        assert_eq!(first % BLOCK, 0);
                        first..first + 1
                    }
                    _ => 0..0,
                };
                for value in written {
                    let is_new = values.insert(value);
                    let may_repeat = preset.parameters.kind.has_repeated_values();
                    assert!(is_new || may_repeat, "{}: {value}", preset.name);
                }
            }
        }
        let unused: Vec<_> = announced.symmetric_difference(&found).collect();
        // Some workloads never read, whatever their kind of transaction would.
        let is_write_only = preset.parameters.read_share == 0.0;
        assert!(unused.is_empty() || is_write_only, "{}: {unused:?}", preset.name);
    }
}

#[test]
fn a_client_that_may_only_read_asks_for_what_it_would_have_written() {
    for preset in PRESETS {
        let workload = workload(preset.parameters);
        let requests = plans(&workload, 0, Access::ReadOnly);
        assert!(requests.iter().flatten().all(|request| request.kind().is_read()));
        let writing = plans(&workload, 0, Access::ReadWrite);
        assert_eq!(requests[0].len(), writing[0].len(), "{}", preset.name);
    }
}

#[test]
fn every_write_of_a_mini_transaction_comes_after_a_read_of_its_key() {
    let preset = crate::preset("MTC").expect("a preset");
    for plan in plans(&workload(preset.parameters), 0, Access::ReadWrite) {
        for (place, request) in plan.iter().enumerate() {
            if let Request::Write { key, .. } = request {
                assert!(plan[..place].contains(&Request::Read { key: *key }), "{plan:?}");
            }
        }
    }
}

#[test]
fn few_values_are_written_to_keys_that_are_used_once() {
    let preset = crate::preset::preset("few-values").expect("a preset");
    for requests in plans(&workload(preset.parameters), 0, Access::ReadWrite) {
        let key = |request: &Request| match *request {
            Request::Read { key } => key,
            Request::Write { key, value } => {
                assert!((1..=3).contains(&value), "{value}");
                key
            }
            ref other => panic!("{other:?}"),
        };
        let keys: HashSet<u64> = requests.iter().map(key).collect();
        assert_eq!((keys.len(), requests.len()), (8, 8), "{requests:?}");
    }
}

#[test]
fn keys_rotate() {
    let parameters = Parameters { keys: 10, ..PRESETS[0].parameters };
    let workload = Workload::new(parameters, Some(3)).expect("a workload");
    for (place, plan) in (0u64..).zip(plans(&workload, 0, Access::ReadWrite)) {
        let keys = 10 * (place / 3)..10 * (place / 3 + 1);
        for request in plan {
            let (Request::Read { key } | Request::Write { key, .. }) = request else {
                panic!("{request:?}")
            };
            assert!(keys.contains(&key), "{place}: {key}");
        }
    }
    assert!(Workload::new(parameters, Some(0)).is_err());
}

#[test]
fn with_tombstones_every_delete_marks_its_row_with_a_value_of_its_own() {
    let preset = crate::preset("Range-IDH").expect("a preset");
    let removing = workload(preset.parameters);
    let marking = removing.clone().with_tombstones().expect("a workload that deletes");
    let kinds = [RequestKind::Read, RequestKind::Write, RequestKind::Range];
    assert_eq!(marking.requests(), kinds);
    let mut marks = HashSet::new();
    let (removing, marking) =
        (plans(&removing, 0, Access::ReadWrite), plans(&marking, 0, Access::ReadWrite));
    for (plain, marked) in removing.iter().flatten().zip(marking.iter().flatten()) {
        match (plain, marked) {
            (Request::Delete { key }, Request::Write { key: same, value }) => {
                assert_eq!(key, same);
                assert!(*value >= TOMBSTONES && marks.insert(*value), "{value}");
            }
            (Request::Insert { key, .. } | Request::Write { key, .. }, it) => {
                let Request::Write { key: same, value } = it else { panic!("{it:?}") };
                assert!(key == same && *value < TOMBSTONES, "{it:?}");
            }
            (plain, marked) => assert_eq!(plain, marked),
        }
    }
    assert!(!marks.is_empty());
    let refused = workload(PRESETS[0].parameters).with_tombstones();
    assert_eq!(
        refused.expect_err("nothing is deleted").to_string(),
        "expected a workload that deletes rows by key for tombstones: Range-B, Range-RQH or \
         Range-IDH"
    );
}
