//! Which format a source was meant to be that is recognised as none.
//!
//! Formats are recognised narrowly, by a first line or record that is right. Where that
//! is the one that is wrong, how it begins still tells whose reader can say what is.

use super::{Sample, client_logs, json_stream};

/// Beginnings without white space, the narrow before the wide.
const BEGINNINGS: [(&[u8], &str); 21] = [
    (b"{:", "jepsen-edn"),
    (b"[{:", "jepsen-edn"),
    (b"({:", "jepsen-edn"),
    (b"#jepsen", "jepsen-edn"),
    (b"[#jepsen", "jepsen-edn"),
    (b"(#jepsen", "jepsen-edn"),
    (b"{\"params\":", "dbcop-json"),
    (b"{\"data\":", "dbcop-json"),
    (b"[[", "dbcop-json"),
    (b"{\"value\":", "viper-json"),
    (b"{\"preBeginTS\":", "viper-json"),
    (b"[{\"tid\":", "timekiller"),
    (b"[{\"sid\":", "timekiller"),
    (b"[{\"", "jepsen-json"),
    (b"{\"", "jepsen-json"),
    (b"r(", "plume"),
    (b"w(", "plume"),
    (b"WRITEKEY[", "isopredict"),
    (b"READKEY[", "isopredict"),
    (b"INSERT[", "isopredict"),
    (b"CONTAINS[", "isopredict"),
];

/// The name of the format, if the source begins like one.
pub(super) fn likeliest(sample: &Sample<'_>) -> Option<&'static str> {
    if sample.names.is_some() {
        return likeliest_logs(sample);
    }
    let first = sample.first_line().unwrap_or_default();
    if first.starts_with("r ") || first.starts_with("w ") {
        return Some("awdit");
    }
    if first.starts_with('[') && (first.contains(":=") || first.contains("==")) {
        return Some("dbcop-hist");
    }
    if is_bincode(sample.head) {
        return Some("dbcop-bincode");
    }
    let head = json_stream::squeezed(sample.head, sample.head.len());
    let has = |name: &[u8]| memchr::memmem::find(&head, name).is_some();
    if head.starts_with(b"[{\"") && (has(b"\"ops\":[") || has(b"\"sts\":")) {
        return Some("timekiller");
    }
    let mut rows = BEGINNINGS.iter();
    rows.find(|(beginning, _)| head.starts_with(beginning)).map(|&(_, name)| name)
}

/// Of a directory: by the first log, else by what the logs are called.
fn likeliest_logs(sample: &Sample<'_>) -> Option<&'static str> {
    let called = |letter| client_logs::are_called(&Sample { head: &[], ..*sample }, letter);
    match sample.head.trim_ascii_start() {
        [b'{', b'"', ..] => Some("viper-json"),
        [b'{', b':', ..] => Some("viper-edn"),
        [b'S', ..] => Some("cobra"),
        [b'T', ..] => Some("vbox"),
        _ if called('T') => Some("cobra"),
        _ if called('J') => Some("viper-json"),
        _ => None,
    }
}

/// Whether the header's five numbers are followed by a text, of which not all may be there.
fn is_bincode(head: &[u8]) -> bool {
    const NUMBERS_BYTES: usize = 40;
    const TEXT_BYTES_MAX: u64 = 1 << 10;
    let Some((length, text)) =
        head.get(NUMBERS_BYTES..).and_then(|rest| rest.split_first_chunk::<8>())
    else {
        return false;
    };
    let length = u64::from_le_bytes(*length);
    let text = &text[..text.len().min(length.min(TEXT_BYTES_MAX) as usize)];
    length < TEXT_BYTES_MAX
        && head[..NUMBERS_BYTES].contains(&0)
        && !text.is_empty()
        && text.iter().all(|byte| !byte.is_ascii_control())
}
