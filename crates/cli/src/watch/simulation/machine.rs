//! What the system gives a listener, as unreliable as a seed wants it: connections and a disk.

use super::super::save_file::Disk;
use super::chance::Chance;
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::sync::{Arc, Mutex, MutexGuard};

/// The disk of a simulation, which others look at while it is written.
#[derive(Clone)]
pub(super) struct SimulatedDisk(Arc<Mutex<DiskState>>);

pub(super) struct DiskState {
    pub(super) content: Vec<u8>,
    place: usize,
    writes: usize,
    plan: DiskPlan,
    chance: Chance,
}

/// How a disk fails.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DiskPlan {
    /// The write of this number fails, counted from 1 at the first after the head.
    pub(super) fails_at: Option<usize>,
    /// So many bytes have room.
    pub(super) capacity: Option<usize>,
    /// Writes may take less than they are given.
    pub(super) is_short: bool,
    /// What was written half cannot be taken back.
    pub(super) cannot_cut: bool,
}

impl SimulatedDisk {
    pub(super) fn new(plan: DiskPlan, chance: Chance) -> SimulatedDisk {
        let (content, place, writes) = Default::default();
        SimulatedDisk(Arc::new(Mutex::new(DiskState { content, place, writes, plan, chance })))
    }

    pub(super) fn state(&self) -> MutexGuard<'_, DiskState> {
        self.0.lock().expect("one thread")
    }

    pub(super) fn length(&self) -> usize {
        self.state().content.len()
    }
}

impl Write for SimulatedDisk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut disk = self.state();
        disk.writes += 1;
        // The head is written before anybody listens.
        if disk.plan.fails_at.is_some_and(|at| disk.writes == at + 1) {
            return Err(ErrorKind::Other.into());
        }
        let mut count = bytes.len();
        if disk.plan.is_short && disk.writes > 1 {
            count = 1 + disk.chance.below(count);
        }
        if let Some(capacity) = disk.plan.capacity {
            count = count.min(capacity.saturating_sub(disk.place));
            if count == 0 {
                return Err(ErrorKind::StorageFull.into());
            }
        }
        let place = disk.place;
        disk.content.truncate(place);
        disk.content.extend_from_slice(&bytes[..count]);
        disk.place += count;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for SimulatedDisk {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let SeekFrom::Start(place) = to else { return Err(ErrorKind::Unsupported.into()) };
        self.state().place = place as usize;
        Ok(place)
    }
}

impl Disk for SimulatedDisk {
    fn cut(&mut self, length: u64) -> io::Result<()> {
        let mut disk = self.state();
        if disk.plan.cannot_cut {
            return Err(ErrorKind::Other.into());
        }
        disk.content.truncate(length as usize);
        Ok(())
    }
}

/// The two ends of a connection.
#[derive(Clone)]
pub(super) struct Line(Arc<Mutex<LineState>>);

pub(super) struct LineState {
    there: VecDeque<u8>,
    /// Answers, each with how long the file was when it was given.
    back: VecDeque<(Vec<u8>, usize)>,
    /// Nothing more comes from the sender.
    is_ended: bool,
    /// Nothing more comes from anybody.
    is_cut: bool,
    is_left: bool,
    disk: SimulatedDisk,
    chance: Chance,
}

/// The listener's end.
pub(super) struct ListenerEnd(pub(super) Line);

impl Line {
    pub(super) fn new(disk: &SimulatedDisk, chance: Chance) -> Line {
        let (there, back) = Default::default();
        let disk = disk.clone();
        let (is_ended, is_cut, is_left) = (false, false, false);
        let line = LineState { there, back, is_ended, is_cut, is_left, disk, chance };
        Line(Arc::new(Mutex::new(line)))
    }

    fn state(&self) -> MutexGuard<'_, LineState> {
        self.0.lock().expect("one thread")
    }

    /// The sender sends some of these bytes: how many, or nothing if nobody is there.
    pub(super) fn send(&self, bytes: &[u8]) -> Option<usize> {
        let mut line = self.state();
        if line.is_cut || line.is_left {
            return None;
        }
        let is_half = line.chance.one_in(4);
        let count = if is_half { line.chance.below(bytes.len()) } else { bytes.len() };
        line.there.extend(&bytes[..count]);
        Some(count)
    }

    /// What the listener has answered, or `None` if no more comes.
    pub(super) fn answers(&self) -> Option<(Vec<u8>, usize)> {
        let mut line = self.state();
        match line.back.pop_front() {
            Some(answer) => Some(answer),
            None if line.is_cut || line.is_left => None,
            None => Some(Default::default()),
        }
    }

    /// Whether the listener has done with it.
    pub(super) fn is_left(&self) -> bool {
        self.state().is_left
    }

    /// The sender has nothing more to send.
    pub(super) fn end(&self) {
        self.state().is_ended = true;
    }

    /// What is on its way is lost, or some of it.
    pub(super) fn cut(&self) {
        let mut line = self.state();
        let (there, back) = (line.there.len() + 1, line.back.len() + 1);
        let (there, back) = (line.chance.below(there), line.chance.below(back));
        line.there.truncate(there);
        line.back.truncate(back);
        line.is_cut = true;
    }
}

impl Read for ListenerEnd {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut line = self.0.state();
        let most = line.there.len().min(buffer.len());
        if most == 0 {
            return match (line.is_cut, line.is_ended) {
                (true, _) => Err(ErrorKind::ConnectionReset.into()),
                (false, true) => Ok(0),
                (false, false) => Err(ErrorKind::WouldBlock.into()),
            };
        }
        let count = if line.chance.one_in(2) { most } else { 1 + line.chance.below(most) };
        for (place, byte) in buffer.iter_mut().zip(line.there.drain(..count)) {
            *place = byte;
        }
        Ok(count)
    }
}

impl Write for ListenerEnd {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut line = self.0.state();
        if line.is_cut {
            return Err(ErrorKind::BrokenPipe.into());
        }
        let length = line.disk.length();
        line.back.push_back((bytes.to_vec(), length));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for ListenerEnd {
    fn drop(&mut self) {
        let mut line = self.0.state();
        line.is_left = true;
        // As systems do it: what nobody has read resets the connection, and answers with it.
        if !line.there.is_empty() {
            let kept = line.back.len() + 1;
            let kept = line.chance.below(kept);
            line.back.truncate(kept);
        }
    }
}
