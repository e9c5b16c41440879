//! What is written, byte by byte.

use super::*;
use std::io::Write;

/// Where a trace goes that is looked at afterwards.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("nobody panics").extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The kinds of the frames in it, without heartbeats, which come when they come.
fn kinds(bytes: &[u8]) -> Vec<u8> {
    let mut rest = bytes.strip_prefix(frame::HEAD).expect("a head");
    let mut kinds = Vec::new();
    while let Some((length, after)) = rest.split_first_chunk() {
        let (payload, after) = after.split_at(u32::from_le_bytes(*length) as usize);
        kinds.push(payload[0]);
        rest = after;
    }
    kinds.retain(|&kind| kind != frame::HEARTBEAT);
    kinds
}

#[test]
fn everything_is_handed_over_before_the_commit() -> io::Result<()> {
    let kept = Kept::default();
    let trace = Trace::write_to(kept.clone())?;
    let mut session = trace.session("one")?;
    session.begun(session.start())?;
    session.wrote(session.start(), &[Row::new("t", 1).is(2), Row::new("t", 2).is_absent()])?;
    session.before_commit()?;
    let before = kinds(&kept.0.lock().expect("nobody panics"));
    assert_eq!(before, [0, 11, 2, 1, 3, 6]);
    session.committed(session.start())?;
    drop(session);
    trace.finish()?;
    assert_eq!(kinds(&kept.0.lock().expect("nobody panics")), [0, 11, 2, 1, 3, 6, 7, 11]);
    Ok(())
}

#[test]
fn an_idle_session_is_said_to_be_at_the_present() -> io::Result<()> {
    let kept = Kept::default();
    let trace = Trace::write_to(kept.clone())?;
    let session = trace.session("one")?;
    let before = trace.shared.clock.now();
    trace.shared.beat()?;
    let bytes = kept.0.lock().expect("nobody panics").clone();
    let last = bytes.last_chunk().expect("a heartbeat ends with its time");
    assert!(i64::from_le_bytes(*last) >= before);
    drop(session);
    Ok(())
}
