//! The pipeline: order, watermarks, back-pressure, and clients that misbehave.

use crate::notation::{lines, parse, show};
use isolde_checker::online::{
    ALWAYS, Batch, ClientId, Disorder, Interval, NEVER, Pipeline, PipelineOptions, Room,
};

const A: ClientId = ClientId(0);
const B: ClientId = ClientId(1);

/// What leaves, without its times being told again.
fn drain(pipeline: &mut Pipeline) -> (String, i64) {
    let mut batch = Batch::default();
    let watermark = pipeline.drain(&mut batch);
    (show(&batch), watermark)
}

fn open() -> Pipeline {
    let options = PipelineOptions { buffered_max: 3, stall_after: 100 };
    let mut pipeline = Pipeline::new(options);
    pipeline.open(A, 0);
    pipeline.open(B, 0);
    pipeline
}

#[test]
fn events_leave_in_the_order_in_which_they_were_sent() {
    let mut pipeline = open();
    let _ = pipeline.push(A, &parse("A1 b 1-2\nA1 w 5-6 u=1\nA1 c 9-10"));
    assert_eq!(drain(&mut pipeline), (String::new(), 0));
    let _ = pipeline.push(B, &parse("B1 b 3-4\nB1 r 7-8 u=1"));
    assert_eq!(drain(&mut pipeline), (lines("A1 b 1-2\nB1 b 3-4\nA1 w 5-6 u=1"), 7));
    pipeline.advance(B, 20);
    assert_eq!(drain(&mut pipeline), (lines("B1 r 7-8 u=1"), 9));
    pipeline.advance(A, 20);
    assert_eq!(drain(&mut pipeline), (lines("A1 c 9-10"), 20));
    assert_eq!(pipeline.buffered(), 0);
}

#[test]
fn a_client_that_is_too_far_ahead_has_to_wait() {
    let mut pipeline = open();
    assert_eq!(pipeline.push(A, &parse("A1 b 1-2\nA1 w 5-6 u=1")), Room::Enough);
    assert_eq!(pipeline.push(A, &parse("A1 c 9-10")), Room::Full);
    pipeline.advance(B, 20);
    drain(&mut pipeline);
    assert_eq!(pipeline.room(A), Room::Enough);
}

#[test]
fn a_stalled_client_is_reported_once_and_not_waited_for() {
    let mut pipeline = open();
    let _ = pipeline.push(B, &parse("B1 b 3-4"));
    let _ = pipeline.push(A, &parse("A1 b 5-6\nA1 c 200-201"));
    assert_eq!(drain(&mut pipeline).1, 200);
    assert_eq!((pipeline.take_stalled(), pipeline.take_stalled()), (vec![B], vec![]));
    let _ = pipeline.push(B, &parse("B1 w 7-8 u=1"));
    assert_eq!(drain(&mut pipeline), (lines("B1 w 7-8 u=1"), 200));
    assert_eq!(pipeline.take_returned(), []);
    let _ = pipeline.push(B, &parse("B1 c 300-301"));
    pipeline.advance(A, 310);
    drain(&mut pipeline);
    assert_eq!(pipeline.take_returned(), [B]);
}

#[test]
fn a_client_that_is_left_behind_is_not_waited_for_until_it_is_back() {
    let mut pipeline = open();
    let _ = pipeline.push(A, &parse("A1 b 5-6\nA1 c 50-51"));
    assert_eq!(drain(&mut pipeline), (String::new(), 0));
    assert!(pipeline.leave_behind(B));
    assert!(!pipeline.leave_behind(B));
    assert_eq!(drain(&mut pipeline), (lines("A1 b 5-6"), 50));
    let _ = pipeline.push(A, &parse("A2 b 60-61\nA2 c 70-71"));
    assert_eq!(drain(&mut pipeline), (lines("A1 c 50-51\nA2 b 60-61"), 70));
    assert_eq!(pipeline.take_returned(), []);
    let _ = pipeline.push(B, &parse("B1 b 90-91"));
    pipeline.advance(A, 95);
    drain(&mut pipeline);
    assert_eq!(pipeline.take_returned(), [B]);
}

#[test]
fn a_client_that_dies_in_a_transaction_has_never_committed() {
    let mut pipeline = open();
    pipeline.close(B);
    let _ = pipeline.push(A, &parse("A1 b 1-2\nA1 w 5-6 u=1"));
    pipeline.close(A);
    assert_eq!(drain(&mut pipeline), (lines("A1 b 1-2\nA1 w 5-6 u=1\nA1 a 6-"), 7));
}

#[test]
fn a_client_that_comes_when_all_others_have_gone_is_waited_for() {
    let mut pipeline = open();
    let _ = pipeline.push(A, &parse("A1 b 1-2\nA1 c 5-6"));
    pipeline.close(A);
    pipeline.close(B);
    assert_eq!(drain(&mut pipeline).1, 6);
    let _ = pipeline.push(B, &parse("B1 b 9-10\nB1 c 12-13"));
    assert_eq!(drain(&mut pipeline), (lines("B1 b 9-10"), 12));
}

#[test]
fn repeated_and_inverted_events_are_counted() {
    let mut pipeline = open();
    pipeline.close(B);
    let _ = pipeline.push(A, &parse("A1 b 4-5\nA1 w 5-6 u=1\nA1 w 5-6 u=1\nA1 c 12-11"));
    pipeline.close(A);
    let (text, _) = drain(&mut pipeline);
    assert_eq!(text, lines("A1 b 4-5\nA1 w 5-6 u=1\nA1 c 12-12"));
    let expected = Disorder { duplicates: 1, inverted: 1, ..Disorder::default() };
    assert_eq!(pipeline.disorder(), expected);
}

#[test]
fn with_a_coarse_clock_different_events_of_one_tick_are_all_kept() {
    let mut pipeline = open();
    pipeline.close(B);
    let text = "A1 b 1-1\nA1 w 2-2 u=1\nA1 w 2-2 v=1\nA1 r 2-2 u=1\nA1 r 2-2 v=1\nA1 c 2-2";
    let _ = pipeline.push(A, &parse(text));
    pipeline.close(A);
    assert_eq!(drain(&mut pipeline).0, lines(text));
    assert_eq!(pipeline.disorder().total(), 0);
}

/// Events without a time are those that claim to come before what came before them, those that
/// were not handed out yet and claim to come later, and no others.
#[test]
fn a_clock_that_was_set_back_places_nothing_until_it_has_passed_itself() {
    let mut pipeline = open();
    pipeline.advance(B, 16);
    let _ = pipeline.push(A, &parse("A1 b 1-2\nA1 c 10-12\nA2 b 14-15\nA2 c 18-20"));
    assert_eq!(drain(&mut pipeline).0, lines("A1 b 1-2\nA1 c 10-12\nA2 b 14-15"));
    let _ = pipeline.push(A, &parse("A3 b 13-14\nA3 c 17-18\nA4 b 21-22\nA4 c 23-"));
    pipeline.close(A);
    pipeline.close(B);
    let mut batch = Batch::default();
    pipeline.drain(&mut batch);
    let times: Vec<_> = batch.events.iter().map(|event| event.interval).collect();
    let at = |invoked, completed| Interval { invoked, completed };
    let unknown = Interval::UNKNOWN;
    // The clock had shown 20: it may be behind by 7 from now on.
    assert_eq!(times, [unknown, unknown, unknown, at(21, 22 + 7), at(23, NEVER)]);
    let expected = Disorder { backwards: 1, unplaced: 3, ..Disorder::default() };
    assert_eq!(pipeline.disorder(), expected);
}

/// A client that is announced and has said nothing is waited for, from then on, like any other.
#[test]
fn an_announced_client_is_not_stalled_at_once() {
    let mut pipeline =
        Pipeline::new(PipelineOptions { stall_after: 100, ..PipelineOptions::default() });
    let mut merged = Batch::default();
    pipeline.open(ClientId(0), 1_000_000);
    pipeline.open(ClientId(1), ALWAYS);
    assert_eq!((pipeline.drain(&mut merged), pipeline.take_stalled()), (ALWAYS, vec![]));
    pipeline.advance(ClientId(0), 1_000_100);
    assert_eq!((pipeline.drain(&mut merged), pipeline.take_stalled()), (ALWAYS, vec![]));
    pipeline.advance(ClientId(0), 1_000_101);
    let stalled = vec![ClientId(1)];
    assert_eq!((pipeline.drain(&mut merged), pipeline.take_stalled()), (1_000_101, stalled));
}
