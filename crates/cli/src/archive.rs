//! Archives that `tar` opens: a list of named files, compressed.
//!
//! Only plain files with plain names are written, and only in memory are they read: nothing in an
//! archive ever becomes a file, so no name in it can point anywhere.

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use std::io::{self, Read, Write};

const BLOCK: usize = 512;
const NAME_MAX: usize = 100;
/// Where `ustar` stands in a header.
const MAGIC_AT: usize = 257;
const SUM_AT: std::ops::Range<usize> = 148..156;
const SIZE_AT: std::ops::Range<usize> = 124..136;
const TYPE_AT: usize = 156;

/// One file of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) content: Vec<u8>,
}

/// Why an archive cannot be read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Damage {
    /// It ends too early, or its compression does not add up.
    CutOff,
    /// Something in it is not as an archive of ours has it.
    Foreign(&'static str),
    /// It holds more than may be read.
    TooLarge,
}

/// Writes an archive. The same entries give the same bytes: there are no times in it.
pub(crate) fn write(entries: &[Entry], out: &mut dyn Write) -> io::Result<()> {
    let mut out = GzEncoder::new(out, Compression::default());
    for entry in entries {
        out.write_all(&header(entry))?;
        out.write_all(&entry.content)?;
        let rest = entry.content.len() % BLOCK;
        if rest > 0 {
            out.write_all(&vec![0; BLOCK - rest])?;
        }
    }
    out.write_all(&[0; 2 * BLOCK])?;
    out.finish()?;
    Ok(())
}

fn header(entry: &Entry) -> [u8; BLOCK] {
    assert!(entry.name.len() < NAME_MAX, "names of entries are ours and short");
    let mut block = [0; BLOCK];
    block[..entry.name.len()].copy_from_slice(entry.name.as_bytes());
    let mut put =
        |at: usize, text: &str| block[at..at + text.len()].copy_from_slice(text.as_bytes());
    put(100, "0000644");
    put(108, "0000000");
    put(116, "0000000");
    put(SIZE_AT.start, &format!("{:011o}", entry.content.len()));
    put(136, "00000000000");
    put(SUM_AT.start, "        ");
    put(TYPE_AT, "0");
    put(MAGIC_AT, "ustar");
    put(263, "00");
    let sum: u32 = block.iter().map(|&byte| u32::from(byte)).sum();
    block[SUM_AT.start..SUM_AT.start + 7].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    block
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
    let is_header = |block: &[u8]| block.get(MAGIC_AT..MAGIC_AT + 5) == Some(b"ustar");
    if is_header(bytes) {
        return Start::Uncompressed(name_of(bytes));
    }
    let mut block = Vec::new();
    // What is cut off has a beginning all the same.
    let end = GzDecoder::new(bytes).take(BLOCK as u64).read_to_end(&mut block);
    match end {
        _ if is_header(&block) => Start::Archive(name_of(&block)),
        Err(_) if bytes.starts_with(&[0x1f, 0x8b]) => Start::CutOff(block),
        _ => Start::Other,
    }
}

/// Reads all files of an archive, of at most so many bytes together.
pub(crate) fn read(archive: impl Read, bytes_max: usize) -> Result<Vec<Entry>, Damage> {
    let mut input = GzDecoder::new(archive);
    let mut entries = Vec::new();
    let mut left = bytes_max;
    loop {
        let mut block = [0; BLOCK];
        input.read_exact(&mut block).map_err(|_| Damage::CutOff)?;
        if block.iter().all(|&byte| byte == 0) {
            // The second empty block, then the check sum of the compression.
            io::copy(&mut input.take(BLOCK as u64 * 64), &mut io::sink())
                .map_err(|_| Damage::CutOff)?;
            return Ok(entries);
        }
        let size = size_of_entry(&block)?;
        if size > left {
            return Err(Damage::TooLarge);
        }
        left -= size;
        // Bounded by what is there, not by what the header says.
        let mut content = Vec::new();
        let padded = size.div_ceil(BLOCK) * BLOCK;
        (&mut input).take(padded as u64).read_to_end(&mut content).map_err(|_| Damage::CutOff)?;
        if content.len() != padded {
            return Err(Damage::CutOff);
        }
        content.truncate(size);
        entries.push(Entry { name: name_of(&block), content });
    }
}

fn name_of(block: &[u8]) -> String {
    let name = &block[..NAME_MAX];
    let end = name.iter().position(|&byte| byte == 0).unwrap_or(NAME_MAX);
    String::from_utf8_lossy(&name[..end]).into_owned()
}

fn size_of_entry(block: &[u8; BLOCK]) -> Result<usize, Damage> {
    if &block[MAGIC_AT..MAGIC_AT + 5] != b"ustar" {
        return Err(Damage::Foreign("it is no archive of plain files"));
    }
    if !matches!(block[TYPE_AT], b'0' | 0) {
        return Err(Damage::Foreign("it has more than plain files"));
    }
    let number = |field: &[u8]| {
        let text = std::str::from_utf8(field).ok()?;
        usize::from_str_radix(text.trim_matches(['\0', ' ']), 8).ok()
    };
    let sum: usize = (block.iter().enumerate())
        .map(|(place, &byte)| usize::from(if SUM_AT.contains(&place) { b' ' } else { byte }))
        .sum();
    if number(&block[SUM_AT]) != Some(sum) {
        return Err(Damage::Foreign("a header of it is damaged"));
    }
    number(&block[SIZE_AT]).ok_or(Damage::Foreign("a header of it is damaged"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, content: &[u8]) -> Entry {
        Entry { name: name.into(), content: content.into() }
    }

    fn written(entries: &[Entry]) -> Vec<u8> {
        let mut bytes = Vec::new();
        write(entries, &mut bytes).expect("memory");
        bytes
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
            assert_eq!(read(&bytes[..end], 10_000), Err(Damage::CutOff), "{end}");
            let start = start(&bytes[..end]);
            let is_known = matches!(start, Start::Archive(_) | Start::CutOff(_));
            assert!(is_known || end < 2, "{end}: {start:?}");
        }
    }

    #[test]
    fn what_is_no_plain_file_is_refused() {
        let mut out = GzEncoder::new(Vec::new(), Compression::default());
        let mut block = header(&entry("link", b""));
        block[TYPE_AT] = b'2';
        out.write_all(&block).expect("memory");
        let bytes = out.finish().expect("memory");
        assert_eq!(read(&*bytes, 10), Err(Damage::Foreign("it has more than plain files")));
        assert_eq!(start(b"A: w(x,1)"), Start::Other);
        assert_eq!(start(&header(&entry("a", b""))), Start::Uncompressed("a".into()));
    }

    #[test]
    fn damaged_headers_are_noticed() {
        let mut out = GzEncoder::new(Vec::new(), Compression::default());
        let mut block = header(&entry("a", b""));
        block[0] = b'b';
        out.write_all(&block).expect("memory");
        let bytes = out.finish().expect("memory");
        assert_eq!(read(&*bytes, 10), Err(Damage::Foreign("a header of it is damaged")));
    }
}
