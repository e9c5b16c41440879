//! Telling all workers what each of them has.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;
use timely::ExchangeData;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::Input;
use timely::dataflow::operators::generic::Operator;
use timely::dataflow::operators::vec::Broadcast;
use timely::worker::Worker;

/// Tells all workers what each of them has, in no order.
pub(crate) fn share<T: ExchangeData + Clone>(worker: &mut Worker, own: Vec<T>) -> Vec<T> {
    let all = Rc::new(RefCell::new(Vec::new()));
    let heard = Rc::clone(&all);
    let mut input = worker.dataflow::<u64, _, _>(|scope| {
        let (input, stream) = scope.new_input::<Vec<T>>();
        stream.broadcast().sink(Pipeline, "hear", move |(input, _)| {
            input.for_each(|_, data| heard.borrow_mut().append(data));
        });
        input
    });
    for it in own {
        input.send(it);
    }
    drop(input);
    while worker.has_dataflows() {
        worker.step_or_park(Some(Duration::from_millis(100)));
    }
    std::mem::take(&mut *all.borrow_mut())
}
