//! What the target of requests does with its bytes: take them for a request of HTTP.
//!
//! They are one or not, and one has one host. A name is the same after it was part of a path.

use crate::http;

/// Takes bytes for a request, and for a name.
pub fn requested(bytes: &[u8]) {
    if let Some(request) = http::request(bytes) {
        let text = String::from_utf8_lossy(bytes);
        let head = text.split('\n').skip(1).take_while(|line| !line.trim_end().is_empty());
        let hosts = head.filter(|line| line.to_ascii_lowercase().starts_with("host:"));
        assert!(hosts.count() <= 1, "{request:?}");
    }
    if let Ok(name) = std::str::from_utf8(bytes) {
        let path = http::encoded(name);
        assert!(path.is_ascii() && !path.contains(['/', ' ', '?']), "{path}");
        assert_eq!(http::decoded(&path).as_deref(), Some(name));
    }
}
