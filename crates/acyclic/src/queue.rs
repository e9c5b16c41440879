//! Choices that may have to be decided, those in recent conflicts first.

use crate::graph::NONE;

/// Activities above this are scaled down, all of them.
const ACTIVITY_MAX: f64 = 1e100;
/// What an older conflict counts, compared with the one after it.
const DECAY: f64 = 0.95;

/// A binary heap of choices by activity, then by age.
pub(crate) struct Queue {
    heap: Vec<u32>,
    /// Where a choice stands in the heap.
    places: Vec<u32>,
    activities: Vec<f64>,
    step: f64,
}

impl Queue {
    pub(crate) fn new() -> Queue {
        Queue { heap: Vec::new(), places: Vec::new(), activities: Vec::new(), step: 1.0 }
    }

    pub(crate) fn grow(&mut self) {
        self.places.push(NONE);
        self.activities.push(0.0);
    }

    pub(crate) fn insert(&mut self, choice: usize) {
        if self.places[choice] == NONE {
            self.places[choice] = self.heap.len() as u32;
            self.heap.push(choice as u32);
            self.rise(self.heap.len() - 1);
        }
    }

    pub(crate) fn pop(&mut self) -> Option<usize> {
        let top = *self.heap.first()?;
        let last = self.heap.pop().expect("there is a first");
        self.places[top as usize] = NONE;
        if last != top {
            self.heap[0] = last;
            self.places[last as usize] = 0;
            self.sink(0);
        }
        Some(top as usize)
    }

    pub(crate) fn bump(&mut self, choice: usize) {
        self.activities[choice] += self.step;
        if self.activities[choice] > ACTIVITY_MAX {
            for activity in &mut self.activities {
                *activity /= ACTIVITY_MAX;
            }
            self.step /= ACTIVITY_MAX;
        }
        if self.places[choice] != NONE {
            self.rise(self.places[choice] as usize);
        }
    }

    pub(crate) fn decay(&mut self) {
        self.step /= DECAY;
    }

    fn precedes(&self, one: u32, other: u32) -> bool {
        let (mine, theirs) = (self.activities[one as usize], self.activities[other as usize]);
        mine > theirs || (mine >= theirs && one < other)
    }

    fn rise(&mut self, mut place: usize) {
        let choice = self.heap[place];
        while place > 0 {
            let parent = (place - 1) / 2;
            if !self.precedes(choice, self.heap[parent]) {
                break;
            }
            self.put(self.heap[parent], place);
            place = parent;
        }
        self.put(choice, place);
    }

    fn sink(&mut self, mut place: usize) {
        let choice = self.heap[place];
        loop {
            let mut child = 2 * place + 1;
            if child >= self.heap.len() {
                break;
            }
            if child + 1 < self.heap.len() && self.precedes(self.heap[child + 1], self.heap[child])
            {
                child += 1;
            }
            if !self.precedes(self.heap[child], choice) {
                break;
            }
            self.put(self.heap[child], place);
            place = child;
        }
        self.put(choice, place);
    }

    fn put(&mut self, choice: u32, place: usize) {
        self.heap[place] = choice;
        self.places[choice as usize] = place as u32;
    }

    pub(crate) fn bytes(&self) -> usize {
        4 * (self.heap.capacity() + self.places.capacity()) + 8 * self.activities.capacity()
    }
}
