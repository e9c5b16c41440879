//! Archives that `tar` opens: a list of named files, compressed.
//!
//! Only plain files with plain names are written, and only in memory are they read: nothing in an
//! archive ever becomes a file, so no name in it can point anywhere.

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use std::io::{self, Read, Write};
use tar::{Archive, Builder, Header};

const BLOCK: u64 = 512;
/// What is behind the last file: empty blocks, as many as other programs like to write.
const END: u64 = 64 * BLOCK;
/// Archives of ours have seven files. Millions of empty ones would take memory that no header
/// tells of.
const FILES_MAX: usize = 100;

/// One file of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) content: Vec<u8>,
}

/// Why an archive cannot be read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Damage {
    /// It ends too early, or its compression or a header does not add up.
    Broken,
    /// It has something else than plain files.
    NotPlain,
    /// It has more files than any of ours.
    TooMany,
    /// It holds more than may be read.
    TooLarge,
}

impl From<io::Error> for Damage {
    fn from(_: io::Error) -> Damage {
        Damage::Broken
    }
}

/// A file to be packed, which need not fit in memory.
pub(crate) struct Member<'a> {
    pub(crate) name: &'a str,
    pub(crate) length: u64,
    pub(crate) content: Box<dyn Read + 'a>,
}

impl<'a> From<&'a Entry> for Member<'a> {
    fn from(entry: &'a Entry) -> Member<'a> {
        let Entry { name, content } = entry;
        Member { name, length: content.len() as u64, content: Box::new(content.as_slice()) }
    }
}

/// Writes an archive. The same files give the same bytes: there are no times in it.
pub(crate) fn write<'a>(
    files: impl IntoIterator<Item = Member<'a>>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut archive = Builder::new(GzEncoder::new(out, Compression::default()));
    for Member { name, length, content } in files {
        let mut header = Header::new_ustar();
        header.set_size(length);
        header.set_mode(0o644);
        // A file that grows meanwhile is packed as far as the header says.
        let mut rest = content.take(length);
        archive.append_data(&mut header, name, &mut rest)?;
        if rest.limit() > 0 {
            return Err(io::Error::other(format!("{name} became shorter while it was packed")));
        }
    }
    archive.into_inner()?.finish()?;
    Ok(())
}

/// What a file may be, by its first bytes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// An archive whose first file has this name.
    Archive(String),
    /// An archive that is not compressed, whose first file has this name.
    Uncompressed(String),
    /// Compressed, and cut off before the name of a first file can be told; these bytes of it
    /// can.
    CutOff(Vec<u8>),
    /// Something else.
    Other,
}

/// What a file that begins with these bytes may be.
pub(crate) fn start(bytes: &[u8]) -> Start {
    if let Some(name) = name_of_first(bytes) {
        return Start::Uncompressed(name);
    }
    let mut block = Vec::new();
    // What is cut off has a beginning all the same.
    let end = GzDecoder::new(bytes).take(BLOCK).read_to_end(&mut block);
    match (name_of_first(&block), end) {
        (Some(name), _) => Start::Archive(name),
        (None, Err(_)) if bytes.starts_with(&[0x1f, 0x8b]) => Start::CutOff(block),
        _ => Start::Other,
    }
}

/// The name in the header that stands here, if one does.
fn name_of_first(bytes: &[u8]) -> Option<String> {
    let header = Header::from_byte_slice(bytes.get(..BLOCK as usize)?);
    let is_header = header.as_ustar().is_some() || header.as_gnu().is_some();
    is_header.then(|| String::from_utf8_lossy(&header.path_bytes()).into_owned())
}

/// Reads all files of an archive, of at most so many bytes together.
pub(crate) fn read(archive: impl Read, bytes_max: usize) -> Result<Vec<Entry>, Damage> {
    let mut archive = Archive::new(GzDecoder::new(archive));
    let mut entries: Vec<Entry> = Vec::new();
    let mut left = bytes_max as u64;
    // Raw: names that are files of their own, and tables of such, are no plain files.
    for entry in archive.entries()?.raw(true) {
        let mut entry = entry?;
        if !entry.header().entry_type().is_file() {
            return Err(Damage::NotPlain);
        }
        if entries.len() == FILES_MAX {
            return Err(Damage::TooMany);
        }
        left = left.checked_sub(entry.size()).ok_or(Damage::TooLarge)?;
        // Bounded by what is there, not by what the header says.
        let mut content = Vec::new();
        entry.read_to_end(&mut content)?;
        if content.len() as u64 != entry.size() {
            return Err(Damage::Broken);
        }
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        entries.push(Entry { name, content });
    }
    // The check sum of the compression is behind the empty blocks.
    io::copy(&mut archive.into_inner().take(END), &mut io::sink())?;
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, content: &[u8]) -> Entry {
        Entry { name: name.into(), content: content.into() }
    }

    fn written(entries: &[Entry]) -> Vec<u8> {
        let mut bytes = Vec::new();
        write(entries.iter().map(Member::from), &mut bytes).expect("memory");
        bytes
    }

    #[test]
    fn a_file_that_changes_while_it_is_packed_is_whole_or_an_error() {
        let packed = |length| {
            let content = Box::new(&b"hello"[..]);
            let mut bytes = Vec::new();
            write([Member { name: "a", length, content }], &mut bytes).map(|()| bytes)
        };
        let grown = packed(2).expect("memory");
        assert_eq!(read(&*grown, 10), Ok(vec![entry("a", b"he")]));
        assert!(packed(6).is_err());
    }

    #[test]
    fn entries_come_back_as_they_were() {
        let entries = [entry("a", b""), entry("b.txt", b"hello"), entry("c", &[7; 1024])];
        let bytes = written(&entries);
        assert_eq!(read(&*bytes, 10_000), Ok(entries.to_vec()));
        assert_eq!(start(&bytes), Start::Archive("a".into()));
        assert_eq!(read(&*bytes, 1000), Err(Damage::TooLarge));
    }

    #[test]
    fn an_archive_cut_anywhere_says_so() {
        let bytes = written(&[entry("a", b"hello"), entry("b", &[1; 700])]);
        for end in 0..bytes.len() {
            assert_eq!(read(&bytes[..end], 10_000), Err(Damage::Broken), "{end}");
            let start = start(&bytes[..end]);
            let is_known = matches!(start, Start::Archive(_) | Start::CutOff(_));
            assert!(is_known || end < 2, "{end}: {start:?}");
        }
    }

    /// An archive of this one header, with a check sum made before or after it was changed.
    fn with_header(is_sum_right: bool, change: impl FnOnce(&mut Header)) -> (Vec<u8>, Header) {
        let mut header = Header::new_ustar();
        header.set_path("a").expect("a short name");
        header.set_size(0);
        header.set_cksum();
        change(&mut header);
        if is_sum_right {
            header.set_cksum();
        }
        let mut out = GzEncoder::new(Vec::new(), Compression::default());
        out.write_all(header.as_bytes()).expect("memory");
        (out.finish().expect("memory"), header)
    }

    #[test]
    fn what_is_no_plain_file_is_refused() {
        for kind in [b'2', b'L', b'x', b'g', b'S'] {
            let (bytes, _) = with_header(true, |it| it.set_entry_type(tar::EntryType::new(kind)));
            assert_eq!(read(&*bytes, 10), Err(Damage::NotPlain), "{}", char::from(kind));
        }
        let (_, header) = with_header(true, |_| {});
        assert_eq!(start(b"A: w(x,1)"), Start::Other);
        assert_eq!(start(header.as_bytes()), Start::Uncompressed("a".into()));
    }

    #[test]
    fn damaged_headers_are_noticed() {
        let (bytes, _) = with_header(false, |header| header.as_mut_bytes()[0] = b'b');
        assert_eq!(read(&*bytes, 10), Err(Damage::Broken));
    }

    /// 11 MB of them took 860 MB of an allowed 300.
    #[test]
    fn empty_files_are_counted_too() {
        let many = |count| written(&vec![entry("a", b""); count]);
        assert_eq!(read(&*many(FILES_MAX), 0).map(|entries| entries.len()), Ok(FILES_MAX));
        assert_eq!(read(&*many(FILES_MAX + 1), 0), Err(Damage::TooMany));
    }
}
