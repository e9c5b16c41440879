//! Where along the versions of a key an operation by condition finds something.

use isolde_history::Share;

/// Versions side by side that add the same to what an operation finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// The place of the first; 0 is the initial version.
    pub(super) start: u32,
    /// The place after the last.
    pub(super) end: u32,
    /// What each adds; never nothing.
    pub(super) share: Share,
}

/// All runs of a key in their order. What lies between them adds nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Runs {
    runs: Vec<Run>,
}

impl Runs {
    /// The next version in order that adds something.
    pub(super) fn push(&mut self, place: u32, share: Share) {
        match self.runs.last_mut() {
            Some(last) if last.end == place && last.share == share => last.end += 1,
            _ => self.runs.push(Run { start: place, end: place + 1, share }),
        }
    }

    pub(super) fn all(&self) -> &[Run] {
        &self.runs
    }

    /// The number of runs that start at or before a place.
    fn up_to(&self, place: u32) -> usize {
        self.runs.partition_point(|run| run.start <= place)
    }

    pub(super) fn share(&self, place: u32) -> Share {
        match self.up_to(place).checked_sub(1).map(|last| self.runs[last]) {
            Some(run) if place < run.end => run.share,
            _ => Share::Nothing,
        }
    }

    /// The last version at or before a place that changes what is found.
    pub(super) fn last_change(&self, place: u32) -> Option<u32> {
        let run = self.runs[self.up_to(place).checked_sub(1)?];
        let change = if place < run.end { run.start } else { run.end };
        (change > 0).then_some(change)
    }

    /// The first version after a place that changes what is found; there are `length`.
    pub(super) fn next_change(&self, place: u32, length: u32) -> Option<u32> {
        let after = self.up_to(place);
        if let Some(run) = after.checked_sub(1).map(|last| self.runs[last])
            && place < run.end
        {
            return (run.end < length).then_some(run.end);
        }
        self.runs.get(after).map(|run| run.start)
    }

    /// The first place of each gap: versions side by side that add nothing.
    pub(super) fn gaps(&self, length: u32) -> Vec<u32> {
        let mut gaps = Vec::new();
        let mut at = 0;
        for run in &self.runs {
            if at < run.start {
                gaps.push(at);
            }
            at = run.end;
        }
        if at < length {
            gaps.push(at);
        }
        gaps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One letter a version, `.` for nothing: the changes around each place.
    fn check(versions: &str, expected: &str) {
        let mut runs = Runs::default();
        let length = versions.len() as u32;
        for (place, letter) in (0..).zip(versions.bytes()) {
            if letter != b'.' {
                let value = isolde_history::Value::small(u64::from(letter)).expect("small");
                runs.push(place, Share::Value(value));
            }
        }
        let place = |place: Option<u32>| place.map_or("-".to_owned(), |place| place.to_string());
        let around = (0..length).map(|at| {
            let (last, next) = (runs.last_change(at), runs.next_change(at, length));
            format!("{}{}", place(last), place(next))
        });
        let around: Vec<String> = around.collect();
        assert_eq!(format!("{} gaps {:?}", around.join(" "), runs.gaps(length)), expected);
    }

    #[test]
    fn changes_are_found_around_every_version() {
        check(".aa.a", "-1 13 13 34 4- gaps [0, 3]");
        check("ab..", "-1 12 2- 2- gaps [2]");
        check("...", "-- -- -- gaps [0]");
        check("aa", "-- -- gaps []");
    }
}
