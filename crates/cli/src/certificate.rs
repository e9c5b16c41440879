//! A certificate that one thread writes while another may give up waiting: whether there is one.
//!
//! Only one of the two can have its way: what is being written is waited for, and what was given
//! up is not written any more.

use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

/// A file is written within so long, or something is wrong with where it goes.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Open,
    Begun,
    Written,
    GivenUp,
}

/// See the module's documentation.
#[derive(Default)]
pub(crate) struct Slot {
    state: Mutex<State>,
    changed: Condvar,
}

impl Slot {
    /// Writes, unless that was given up.
    pub(crate) fn write<E>(&self, write: impl FnOnce() -> Result<(), E>) -> Result<(), E> {
        if !self.begin() {
            return Ok(());
        }
        let written = write();
        *self.state() = if written.is_ok() { State::Written } else { State::GivenUp };
        self.changed.notify_all();
        written
    }

    /// Gives up; whether nothing was written.
    pub(crate) fn give_up(&self) -> bool {
        let is_begun = |state: &mut State| *state == State::Begun;
        let waited = self.changed.wait_timeout_while(self.state(), PATIENCE, is_begun);
        let (mut state, _) = waited.expect("nobody panics while holding it");
        let is_written = *state == State::Written;
        if !is_written {
            *state = State::GivenUp;
        }
        !is_written
    }

    fn begin(&self) -> bool {
        let mut state = self.state();
        let is_open = *state == State::Open;
        if is_open {
            *state = State::Begun;
        }
        is_open
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nobody panics while holding it")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(slot: &Slot) -> bool {
        let mut is_written = false;
        let result: Result<(), ()> = slot.write(|| {
            is_written = true;
            Ok(())
        });
        assert_eq!(result, Ok(()));
        is_written
    }

    /// "no certificate was written" stood beside a certificate.
    #[test]
    fn what_was_written_is_not_given_up_and_what_was_given_up_is_not_written() {
        let slot = Slot::default();
        assert!(written(&slot));
        assert!(!slot.give_up());
        let slot = Slot::default();
        assert!(slot.give_up());
        assert!(!written(&slot));
    }

    #[test]
    fn what_is_being_written_is_waited_for() {
        let slot = Slot::default();
        let given_up = std::thread::scope(|scope| {
            let mut waiting = None;
            let written: Result<(), ()> = slot.write(|| {
                waiting = Some(scope.spawn(|| slot.give_up()));
                std::thread::sleep(Duration::from_millis(50));
                Ok(())
            });
            assert_eq!(written, Ok(()));
            waiting.expect("it was begun").join()
        });
        assert!(!given_up.expect("it ends"));
    }
}
