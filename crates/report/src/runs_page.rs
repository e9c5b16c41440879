//! The list of finished runs as HTML, for `isolde serve`.

use crate::escape::xml;
use crate::page::digest;
use std::fmt::Write;

const STYLE: &str = include_str!("../web/runs.css");

/// One run in the list.
pub struct RunRow {
    /// The name of its folder.
    pub name: String,
    /// Where its page is.
    pub link: String,
    /// The database, with its version and isolation setting.
    pub database: String,
    /// What was run: workload, sessions, seed.
    pub workload: String,
    /// `satisfied`, `violated`, `unknown`, or why it cannot be told.
    pub verdict: String,
    /// Levels and what became of them.
    pub detail: String,
    /// Transactions.
    pub size: String,
    /// When it ended, for people.
    pub when: String,
}

/// The list.
pub fn runs_to_html(folder: &str, rows: &[RunRow]) -> String {
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
         style-src '{style}'; base-uri 'none'; form-action 'none'\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <title>Runs in {folder} · Isolde</title><style>{STYLE}</style></head><body>\n\
         <header><b>≠ Isolde</b> <span>runs in <code>{folder}</code></span></header><main>\n",
        style = digest::source(STYLE),
        folder = xml(folder)
    );
    if rows.is_empty() {
        out.push_str(
            "<p>There are no finished runs here. <code>isolde run --output DIR</code> makes \
             one.</p>\n",
        );
    } else {
        out.push_str(
            "<table><thead><tr><th>run</th><th>verdict</th><th>database</th><th>workload</th>\
             <th>transactions</th><th>ended</th></tr></thead><tbody>\n",
        );
    }
    for row in rows {
        let (class, mark) = match row.verdict.as_str() {
            "satisfied" => ("satisfied", "✓"),
            "violated" => ("violated", "✗"),
            _ => ("unknown", "?"),
        };
        writeln!(
            out,
            "<tr><td data-of=\"run\"><a href=\"{}\">{}</a></td>\
             <td data-of=\"verdict\" class=\"{class}\"><b>{mark} {}</b><br><small>{}</small></td>\
             <td data-of=\"database\">{}</td><td data-of=\"workload\">{}</td>\
             <td data-of=\"transactions\">{}</td><td data-of=\"ended\">{}</td></tr>",
            xml(&row.link),
            xml(&row.name),
            xml(&row.verdict),
            xml(&row.detail),
            xml(&row.database),
            xml(&row.workload),
            xml(&row.size),
            xml(&row.when)
        )
        .expect("a string grows");
    }
    if !rows.is_empty() {
        out.push_str("</tbody></table>\n");
    }
    out.push_str("</main></body></html>\n");
    out
}
