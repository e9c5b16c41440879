//! Columns in their frames: name, width, storage, length, checksum, entries.

use super::{MAGIC, SCHEMA, VERSION, Width};
use crate::error::{Place, ReadError, memory_size};
use rayon::prelude::*;
use std::io::{self, Read, Write};
use xxhash_rust::xxh64::xxh64;

/// How entries are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Storage {
    /// As they are.
    Raw = 0,
    /// As one zstd frame, where that is smaller.
    Compressed = 1,
}

const FILE_HEADER_BYTES: usize = 16;
const NAME_BYTES: usize = 24;
/// The part of a frame's header that its checksum covers.
const COVERED_BYTES: usize = 48;
const HEADER_BYTES: usize = 56;
/// Entries start at multiples of this, so that a map of the file can be used as
/// arrays.
const ALIGNMENT: usize = 8;
const COMPRESSION_LEVEL: i32 = 3;
/// Room made beforehand for each compressed byte.
const LIKELY_RATIO: u64 = 16;
/// Bytes that are decompressed at a time: a whole number of entries.
const PIECE_BYTES: usize = 1 << 17;

/// What a column holds.
pub(super) trait Entry: Copy + Send {
    const WIDTH: Width;
    fn append_to(self, bytes: &mut Vec<u8>);
    /// Adds the entries of bytes, as far as they are whole.
    fn decode(bytes: &[u8], entries: &mut Vec<Self>);
}

impl Entry for u8 {
    const WIDTH: Width = Width::Byte;
    fn append_to(self, bytes: &mut Vec<u8>) {
        bytes.push(self);
    }
    fn decode(bytes: &[u8], entries: &mut Vec<Self>) {
        entries.extend_from_slice(bytes);
    }
}

impl Entry for u32 {
    const WIDTH: Width = Width::Word;
    fn append_to(self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.to_le_bytes());
    }
    fn decode(bytes: &[u8], entries: &mut Vec<Self>) {
        let (words, _) = bytes.as_chunks();
        entries.extend(words.iter().map(|&word| u32::from_le_bytes(word)));
    }
}

impl Entry for u64 {
    const WIDTH: Width = Width::Long;
    fn append_to(self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.to_le_bytes());
    }
    fn decode(bytes: &[u8], entries: &mut Vec<Self>) {
        let (longs, _) = bytes.as_chunks();
        entries.extend(longs.iter().map(|&long| u64::from_le_bytes(long)));
    }
}

/// Writes columns in the order of the schema.
pub(super) struct FrameWriter<'a> {
    out: &'a mut dyn Write,
    storage: Storage,
    written: usize,
}

impl<'a> FrameWriter<'a> {
    pub(super) fn new(out: &'a mut dyn Write, storage: Storage) -> io::Result<Self> {
        out.write_all(&MAGIC)?;
        out.write_all(&VERSION.to_le_bytes())?;
        out.write_all(&(SCHEMA.len() as u32).to_le_bytes())?;
        Ok(FrameWriter { out, storage, written: 0 })
    }

    /// Writes the next column, which must be the one of this name.
    pub(super) fn column<T: Entry>(
        &mut self,
        name: &str,
        entries: impl IntoIterator<Item = T>,
    ) -> io::Result<()> {
        assert_eq!(
            SCHEMA.get(self.written),
            Some(&(name, T::WIDTH)),
            "columns are written in the order of the schema"
        );
        self.written += 1;
        let entries = entries.into_iter();
        let mut bytes = Vec::with_capacity(entries.size_hint().0 * T::WIDTH as usize);
        entries.for_each(|entry| entry.append_to(&mut bytes));
        let count = bytes.len() / T::WIDTH as usize;

        let mut storage = Storage::Raw;
        if self.storage == Storage::Compressed {
            let compressed = zstd::bulk::compress(&bytes, COMPRESSION_LEVEL)?;
            if compressed.len() < bytes.len() {
                (bytes, storage) = (compressed, Storage::Compressed);
            }
        }
        let mut header = [0; HEADER_BYTES];
        header[..name.len()].copy_from_slice(name.as_bytes());
        header[24] = T::WIDTH as u8;
        header[25] = storage as u8;
        header[32..40].copy_from_slice(&(count as u64).to_le_bytes());
        header[40..48].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
        let sum = checksum(&header, &bytes);
        header[COVERED_BYTES..].copy_from_slice(&sum.to_le_bytes());
        self.out.write_all(&header)?;
        self.out.write_all(&bytes)?;
        self.out.write_all(&[0; ALIGNMENT][..padding(bytes.len())])
    }

    /// Texts as the next two columns: their lengths, and all of them joined.
    pub(super) fn texts<'t>(
        &mut self,
        lengths: &str,
        text: &str,
        texts: impl Iterator<Item = &'t str> + Clone,
    ) -> io::Result<()> {
        self.column(lengths, texts.clone().map(|text| text.len() as u64))?;
        self.column(text, texts.flat_map(str::bytes))
    }

    pub(super) fn finish(self) -> io::Result<()> {
        assert_eq!(self.written, SCHEMA.len(), "all columns are written");
        self.out.flush()
    }
}

fn checksum(header: &[u8], stored: &[u8]) -> u64 {
    xxh64(stored, xxh64(&header[..COVERED_BYTES], 0))
}

fn padding(length: usize) -> usize {
    length.next_multiple_of(ALIGNMENT) - length
}

/// A column that has been read, with its place for messages.
pub(super) struct Column<T> {
    pub(super) name: &'static str,
    pub(super) entries: Vec<T>,
    /// Where its entries start in the file.
    at: u64,
    storage: Storage,
}

impl<T: Entry> Column<T> {
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The error that the entry at `index` is not as expected.
    pub(super) fn wrong(&self, file: &str, index: usize, message: &str) -> ReadError {
        let offset = match self.storage {
            Storage::Raw => (index * T::WIDTH as usize) as u64,
            Storage::Compressed => 0,
        };
        ReadError::new(file, format!("column {}: {message}", self.name))
            .at(Place::Byte(self.at + offset))
    }
}

enum Data {
    Bytes(Vec<u8>),
    Words(Vec<u32>),
    Longs(Vec<u64>),
}

/// The columns of a file, taken out by their names.
pub(super) struct Columns {
    columns: Vec<(u64, Storage, Data)>,
}

impl Columns {
    /// Reads the frames of all columns.
    pub(super) fn read(
        file: &str,
        bytes: &[u8],
        memory_max: Option<usize>,
    ) -> Result<Columns, ReadError> {
        let frames = frames(file, bytes)?;
        let needed = frames.iter().map(Frame::bytes_needed);
        let needed = needed.fold(0u64, u64::saturating_add);
        if let Some(memory_max) = memory_max
            && needed > memory_max as u64
        {
            return Err(too_large(file, memory_max));
        }
        let columns: Vec<Result<_, ReadError>> =
            frames.into_par_iter().map(|frame| frame.decode(file)).collect();
        // The first error of the file, whichever was found first.
        let columns = columns.into_iter().collect::<Result<_, _>>()?;
        Ok(Columns { columns })
    }

    fn take(&mut self, wanted: &str) -> (&'static str, u64, Storage, Data) {
        let index = SCHEMA.iter().position(|&(name, _)| name == wanted);
        let index = index.expect("a name of the schema");
        let (at, storage, data) = &mut self.columns[index];
        let data = std::mem::replace(data, Data::Bytes(Vec::new()));
        (SCHEMA[index].0, *at, *storage, data)
    }

    pub(super) fn bytes(&mut self, name: &str) -> Column<u8> {
        let (name, at, storage, data) = self.take(name);
        let Data::Bytes(entries) = data else { unreachable!("{name} has the width of the schema") };
        Column { name, entries, at, storage }
    }

    pub(super) fn words(&mut self, name: &str) -> Column<u32> {
        let (name, at, storage, data) = self.take(name);
        let Data::Words(entries) = data else { unreachable!("{name} has the width of the schema") };
        Column { name, entries, at, storage }
    }

    pub(super) fn longs(&mut self, name: &str) -> Column<u64> {
        let (name, at, storage, data) = self.take(name);
        let Data::Longs(entries) = data else { unreachable!("{name} has the width of the schema") };
        Column { name, entries, at, storage }
    }
}

pub(super) fn too_large(file: &str, memory_max: usize) -> ReadError {
    let size = memory_size(memory_max);
    let message = format!("expected a history that fits in {size}, found a larger one");
    ReadError::new(file, message).hint("give more with --memory, or check a part of the history")
}

/// A column as it lies in the file.
struct Frame<'a> {
    name: &'static str,
    width: Width,
    storage: Storage,
    /// How many entries it claims to have.
    count: u64,
    header: &'a [u8],
    stored: &'a [u8],
    /// Where the header starts in the file.
    at: usize,
}

fn frames<'a>(file: &str, bytes: &'a [u8]) -> Result<Vec<Frame<'a>>, ReadError> {
    let place = |at: usize| Place::Byte(at as u64);
    let Some(header) = bytes.get(..FILE_HEADER_BYTES) else {
        return Err(cut(file, "the header of the file", bytes.len()));
    };
    if header[..8] != MAGIC {
        let error = ReadError::expected(file, place(0), "a file in the binary format", header);
        return Err(error);
    }
    let version = word(&header[8..12]);
    if version != VERSION {
        let message = format!("expected version {VERSION} of the binary format, found {version}");
        let hint = if version > VERSION {
            "a newer isolde wrote it"
        } else {
            "an older isolde wrote it: let that one convert it to text, or record it again"
        };
        return Err(ReadError::new(file, message).at(place(8)).hint(hint));
    }
    let count = word(&header[12..16]);
    if count as usize != SCHEMA.len() {
        let message = format!("expected {} columns, found {count}", SCHEMA.len());
        return Err(ReadError::new(file, message).at(place(12)));
    }
    let mut at = FILE_HEADER_BYTES;
    let mut frames = Vec::with_capacity(SCHEMA.len());
    for &(name, width) in SCHEMA {
        let frame = Frame::parse(file, bytes, at, name, width)?;
        at += HEADER_BYTES + frame.stored.len();
        let zeros = padding(frame.stored.len());
        let Some(end) = bytes.get(at..at + zeros) else {
            return Err(cut(file, &format!("the end of column {name}"), bytes.len()));
        };
        if end.iter().any(|&byte| byte != 0) {
            let message = format!("expected zeros after column {name}, found other bytes");
            return Err(ReadError::new(file, message).at(place(at)));
        }
        at += zeros;
        frames.push(frame);
    }
    if at < bytes.len() {
        let message = "expected the end of the file after the last column, found more";
        return Err(ReadError::new(file, message).at(place(at)));
    }
    Ok(frames)
}

fn cut(file: &str, expected: &str, length: usize) -> ReadError {
    let message = format!("expected {expected}, found the end of the file");
    ReadError::new(file, message).at(Place::Byte(length as u64)).hint("the file may have been cut")
}

impl<'a> Frame<'a> {
    fn parse(
        file: &str,
        bytes: &'a [u8],
        at: usize,
        name: &'static str,
        width: Width,
    ) -> Result<Frame<'a>, ReadError> {
        let wrong = |offset: usize, message: &str| {
            let place = Place::Byte((at + offset) as u64);
            Err(ReadError::new(file, format!("column {name}: {message}")).at(place))
        };
        let Some(header) = bytes.get(at..at + HEADER_BYTES) else {
            return Err(cut(file, &format!("column {name}"), bytes.len()));
        };
        let mut padded = [0; NAME_BYTES];
        padded[..name.len()].copy_from_slice(name.as_bytes());
        if header[..NAME_BYTES] != padded {
            return wrong(0, "expected its name, found another one");
        }
        if header[24] != width as u8 {
            let message =
                format!("expected entries of {} bytes, found {}", width as u8, header[24]);
            return wrong(24, &message);
        }
        let storage = match header[25] {
            0 => Storage::Raw,
            1 => Storage::Compressed,
            other => return wrong(25, &format!("expected storage 0 or 1, found {other}")),
        };
        let (count, length) = (long(&header[32..40]), long(&header[40..48]));
        let rest = &bytes[at + HEADER_BYTES..];
        let Some(stored) = usize::try_from(length).ok().and_then(|end| rest.get(..end)) else {
            let expected = format!("{length} bytes of column {name}");
            return Err(cut(file, &expected, bytes.len()));
        };
        let frame = Frame { name, width, storage, count, header, stored, at };
        if storage == Storage::Raw && frame.bytes_needed() != length {
            return wrong(32, &format!("expected {count} entries, found {length} bytes"));
        }
        Ok(frame)
    }

    /// Memory for the entries it claims to have.
    fn bytes_needed(&self) -> u64 {
        self.count.saturating_mul(self.width as u64)
    }

    fn decode(&self, file: &str) -> Result<(u64, Storage, Data), ReadError> {
        let wrong = |message: &str| {
            ReadError::new(file, format!("column {}: {message}", self.name))
                .at(Place::Byte(self.at as u64))
        };
        if checksum(self.header, self.stored) != long(&self.header[COVERED_BYTES..]) {
            let error = wrong("expected another checksum than that of its bytes");
            return Err(error.hint("the file is damaged"));
        }
        let data = match self.width {
            Width::Byte => self.entries().map(Data::Bytes),
            Width::Word => self.entries().map(Data::Words),
            Width::Long => self.entries().map(Data::Longs),
        };
        let data = data.map_err(|message| wrong(&message))?;
        Ok(((self.at + HEADER_BYTES) as u64, self.storage, data))
    }

    fn entries<T: Entry>(&self) -> Result<Vec<T>, String> {
        if self.storage == Storage::Compressed {
            return self.expand();
        }
        let mut entries = Vec::with_capacity(self.stored.len() / T::WIDTH as usize);
        T::decode(self.stored, &mut entries);
        Ok(entries)
    }

    /// The entries, decompressed piece by piece: all bytes at once would be as much memory
    /// again. What is allocated grows with what is found, not with what the header promises.
    fn expand<T: Entry>(&self) -> Result<Vec<T>, String> {
        let wanted = self.bytes_needed();
        let fail = |error: io::Error| format!("cannot be decompressed: {error}");
        let decoder = zstd::stream::read::Decoder::with_buffer(self.stored).map_err(fail)?;
        let likely = wanted.min(self.stored.len() as u64 * LIKELY_RATIO);
        let mut entries = Vec::with_capacity(likely as usize / T::WIDTH as usize);
        let mut rest = decoder.take(wanted.saturating_add(1));
        let mut piece = Vec::with_capacity(PIECE_BYTES);
        let mut found = 0;
        loop {
            piece.clear();
            rest.by_ref().take(PIECE_BYTES as u64).read_to_end(&mut piece).map_err(fail)?;
            if piece.is_empty() {
                break;
            }
            found += piece.len() as u64;
            T::decode(&piece, &mut entries);
        }
        if found == wanted {
            return Ok(entries);
        }
        Err(format!(
            "expected {wanted} bytes when decompressed, found {}",
            if found < wanted { "fewer" } else { "more" }
        ))
    }
}

fn word(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(bytes.try_into().expect("four bytes"))
}

fn long(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().expect("eight bytes"))
}
