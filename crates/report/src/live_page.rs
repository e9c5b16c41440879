//! The files of the live page, which `isolde watch --http` serves.

/// The page.
pub const PAGE: &str = include_str!("../web/watch.html");
/// Its script.
pub const SCRIPT: &str = include_str!("../web/watch.js");
/// Its style.
pub const STYLE: &str = concat!(include_str!("../web/runs.css"), include_str!("../web/watch.css"));
