//! Text of others inside our notations: nothing that a key or value contains is ever markup.

use std::fmt::Write;

/// For XML, SVG and HTML, in text and in attributes with double quotes.
pub(crate) fn xml(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\t' | '\n' => out.push(character),
            other => push_visible(&mut out, other),
        }
    }
    out
}

/// A string of DOT, with its quotes. Backslashes are doubled, so that none of DOT's escapes
/// (`\N`, `\l`) means anything.
pub(crate) fn dot(text: &str) -> String {
    let mut out = String::from("\"");
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            other if is_visible(other) => out.push(other),
            // A backslash, not the beginning of an escape.
            other => out.push_str(&code(other).replace('\\', "\\\\")),
        }
    }
    out.push('"');
    out
}

/// A string of EDN, with its quotes.
pub(crate) fn edn(text: &str) -> String {
    let mut out = String::from("\"");
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            other if is_visible(other) => out.push(other),
            // All that is not visible has four digits at most.
            other => write!(out, "\\u{:04x}", other as u32).expect("a string grows"),
        }
    }
    out.push('"');
    out
}

/// Inline text of Markdown: everything that could begin a markup is escaped.
pub(crate) fn markdown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\\' | '`' | '*' | '_' | '[' | ']' | '#' | '|' | '~' | '$' | '!' | '@' => {
                out.push('\\');
                out.push(character);
            }
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '\n' => out.push(' '),
            other => push_visible(&mut out, other),
        }
    }
    out
}

/// Lines that become one block of code in Markdown, whatever they contain.
pub(crate) fn markdown_code(language: &str, text: &str) -> String {
    let longest = text.split(|character| character != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}{language}\n{}\n{fence}\n", visible(text.trim_end()))
}

/// JSON inside a `<script>` of HTML: no `<` can end it, and the two line ends that older
/// engines do not take inside strings are escaped.
pub(crate) fn json_in_html(json: &str) -> String {
    json.replace('<', "\\u003c").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029")
}

/// Text with control characters in sight, but for ends of lines and tabs.
pub fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' | '\t' => out.push(character),
            other => push_visible(&mut out, other),
        }
    }
    out
}

/// Control characters, and those that turn the direction of text, would be commands to who
/// shows them.
fn push_visible(out: &mut String, character: char) {
    if is_visible(character) {
        out.push(character);
    } else {
        out.push_str(&code(character));
    }
}

fn is_visible(character: char) -> bool {
    let turns = matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    !(character.is_control() || turns || matches!(character, '\u{fffe}' | '\u{ffff}'))
}

fn code(character: char) -> String {
    format!("\\u{{{:x}}}", character as u32)
}

/// A text of at most so many characters, the rest cut.
pub(crate) fn cut(text: &str, characters_max: usize) -> String {
    match text.char_indices().nth(characters_max) {
        Some(_) => {
            let kept: String = text.chars().take(characters_max.saturating_sub(1)).collect();
            format!("{kept}…")
        }
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_becomes_text() {
        let hostile = "</script><b a=\"1\" c='2'>&\u{1b}[31m\u{202e}";
        assert_eq!(
            xml(hostile),
            "&lt;/script&gt;&lt;b a=&quot;1&quot; c=&#39;2&#39;&gt;&amp;\\u{1b}[31m\\u{202e}"
        );
        assert_eq!(dot("a\"b\\N\n"), "\"a\\\"b\\\\N\\n\"");
        assert_eq!(dot("\u{fffe}"), "\"\\\\u{fffe}\"");
        assert_eq!(edn("a\"b\\\t\u{7}\u{fffe}"), "\"a\\\"b\\\\\\t\\u0007\\ufffe\"");
        assert_eq!(markdown("*x* <img> `@you`\n# y"), "\\*x\\* &lt;img&gt; \\`\\@you\\` \\# y");
        assert_eq!(json_in_html("\"</script>\u{2028}\""), "\"\\u003c/script>\\u2028\"");
    }

    #[test]
    fn no_content_ends_a_block_of_code() {
        assert_eq!(markdown_code("", "a\n````\nb"), "`````\na\n````\nb\n`````\n");
        assert_eq!(markdown_code("sql", "a"), "```sql\na\n```\n");
    }

    #[test]
    fn texts_are_cut_between_characters() {
        assert_eq!(cut("äöü", 3), "äöü");
        assert_eq!(cut("äöüß", 3), "äö…");
    }
}
