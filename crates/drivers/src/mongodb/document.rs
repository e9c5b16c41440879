//! `MongoDB`'s documents: what the driver looks up in replies, and how deep they may be.

use bson::{Bson, Document, RawBsonRef, RawDocument};
use std::io;

/// Documents in documents, at most.
const DEPTH_MAX: u32 = 32;

/// The document that these bytes are.
pub(super) fn read(bytes: &[u8]) -> io::Result<Document> {
    let document = RawDocument::from_bytes(bytes).map_err(invalid)?;
    // The library goes as deep as documents do, and stacks do not.
    let mut open: Vec<(u32, RawBsonRef<'_>)> = vec![(DEPTH_MAX, RawBsonRef::Document(document))];
    while let Some((depth, value)) = open.pop() {
        if depth == 0 {
            return Err(invalid("documents in documents"));
        }
        let inner =
            |value: RawBsonRef<'_>| matches!(value, RawBsonRef::Document(_) | RawBsonRef::Array(_));
        match value {
            RawBsonRef::Document(document) => {
                for field in document {
                    let (_, value) = field.map_err(invalid)?;
                    open.extend(inner(value).then_some((depth - 1, value)));
                }
            }
            RawBsonRef::Array(array) => {
                for value in array {
                    let value = value.map_err(invalid)?;
                    open.extend(inner(value).then_some((depth - 1, value)));
                }
            }
            _ => {}
        }
    }
    Document::try_from(document).map_err(invalid)
}

fn invalid(found: impl std::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("expected a document, found {found}"))
}

/// A key or value of a request, all of which are below 2^63.
pub(super) fn stored(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The number that a value is, of whichever type.
pub(super) fn as_number(value: &Bson) -> Option<i64> {
    match *value {
        Bson::Int32(number) => Some(number.into()),
        Bson::Int64(number) => Some(number),
        // Statuses and counts are small, so nothing is lost.
        Bson::Double(number) if number.abs() < 1e15 => Some(number as i64),
        _ => None,
    }
}

/// The number in a field.
pub(super) fn number(document: &Document, name: &str) -> Option<i64> {
    document.get(name).and_then(as_number)
}

/// The elements of an array; none if there is no such array.
pub(super) fn array<'a>(document: &'a Document, name: &str) -> &'a [Bson] {
    document.get_array(name).map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::doc;

    #[test]
    fn damage_is_an_error() {
        let whole = doc! { "text": "é", "inner": { "array": [-7, true] }, "long": i64::MAX };
        let bytes = whole.to_vec().expect("a document");
        assert_eq!(read(&bytes).expect("a document"), whole);
        for length in 0..bytes.len() {
            assert!(read(&bytes[..length]).is_err(), "{length}");
        }
        assert!(read(b"\x0e\0\0\0\x02a\0\xff\xff\xff\x7fx\0\0").is_err());
        let deep = (0..100).fold(doc! {}, |inner, _| doc! { "a": inner });
        assert!(read(&deep.to_vec().expect("a document")).is_err());
    }
}
