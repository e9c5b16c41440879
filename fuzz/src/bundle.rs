//! What the target of bundles does with its bytes: open them as an archive, and change one.
//!
//! What was written is read as it was. Of anything else, the files are plain, few, and no larger
//! together than allowed.

use crate::archive::{self, Entry, Member};
use crate::structured::Choices;

const BYTES_MAX: usize = 1 << 16;

/// Takes bytes for an archive, and for changes of one.
pub fn opened(bytes: &[u8]) {
    read(bytes);
    let mut choices = Choices(bytes);
    let entries: Vec<Entry> = (0..choices.below(5))
        .map(|number| Entry {
            name: format!("file-{number}"),
            content: vec![choices.below(256) as u8; choices.below(256) * 7],
        })
        .collect();
    let mut written = Vec::new();
    archive::write(entries.iter().map(Member::from), &mut written).expect("memory");
    assert_eq!(archive::read(&written[..], BYTES_MAX), Ok(entries));
    while choices.are_left() && !written.is_empty() {
        let place = (choices.below(256) * 256 + choices.below(256)) % written.len();
        match choices.below(3) {
            0 => written[place] ^= 1 << choices.below(8),
            1 => drop(written.drain(place..(place + choices.below(40)).min(written.len()))),
            _ => written.truncate(place.max(1)),
        }
        read(&written);
    }
}

fn read(bytes: &[u8]) {
    archive::start(bytes);
    if let Ok(entries) = archive::read(bytes, BYTES_MAX) {
        let taken: usize = entries.iter().map(|entry| entry.content.len()).sum();
        assert!(taken <= BYTES_MAX && entries.len() <= 100, "{taken} in {}", entries.len());
    }
}
