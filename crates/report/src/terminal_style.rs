//! Text as a terminal shows it best: lines wrapped at words, and colour on what matters.
//!
//! The text means the same without either. What a line is follows from its form, which is
//! that of [`to_text`](crate::to_text) and [`to_explanations`](crate::to_explanations).

use std::fmt::Write;

/// What a terminal can do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TerminalStyle {
    /// Columns; lines are as long as they are if this is not known.
    pub width: Option<usize>,
    /// Whether to use colour.
    pub colour: bool,
}

/// Narrower terminals get lines of this length.
const WIDTH_MIN: usize = 40;
/// Lines that are there to be copied.
const COPIED: [&str; 4] = ["gate: ", "why: ", "again: ", "history: "];

const BOLD: &str = "1";
const DIM: &str = "2";
const RED: &str = "31";
const GREEN: &str = "32";
const YELLOW: &str = "33";

impl TerminalStyle {
    /// The text for this terminal.
    pub fn apply(self, text: &str) -> String {
        let mut out = String::with_capacity(text.len() + text.len() / 8);
        for line in text.split_inclusive('\n') {
            let ends = line.ends_with('\n');
            let line = line.trim_end_matches('\n');
            for (place, part) in self.wrapped(line).into_iter().enumerate() {
                if place > 0 {
                    out.push('\n');
                }
                if self.colour && place == 0 {
                    colour(&mut out, &part);
                } else {
                    out.push_str(&part);
                }
            }
            if ends {
                out.push('\n');
            }
        }
        out
    }

    /// The line in parts that fit; those after the first are indented a little more.
    fn wrapped(self, line: &str) -> Vec<String> {
        let width = self.width.map_or(usize::MAX, |width| width.max(WIDTH_MIN));
        let is_kept = COPIED.iter().any(|start| line.starts_with(start)) || line.contains('\t');
        if is_kept || line.chars().count() <= width {
            return vec![line.to_owned()];
        }
        let indent = line.len() - line.trim_start().len();
        let hanging = " ".repeat((indent + 2 + numbering(line.trim_start())).min(width / 2));
        let mut parts = vec![line[..indent].to_owned()];
        for word in line[indent..].split(' ') {
            let part = parts.last_mut().expect("one part at least");
            let is_empty = part.trim().is_empty();
            if !is_empty && part.chars().count() + 1 + word.chars().count() > width {
                parts.push(format!("{hanging}{word}"));
            } else {
                if !is_empty {
                    part.push(' ');
                }
                part.push_str(word);
            }
        }
        parts
    }
}

/// How long the number of a numbered line is, beyond two characters.
fn numbering(line: &str) -> usize {
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    if digits > 0 && line[digits..].starts_with(". ") { digits } else { 0 }
}

fn painted(out: &mut String, colour: &str, text: &str) {
    let _ = write!(out, "\x1b[{colour}m{text}\x1b[0m");
}

fn colour(out: &mut String, line: &str) {
    for (start, paint) in [("holds:", GREEN), ("broken:", RED), ("note:", YELLOW)] {
        if let Some(rest) = line.strip_prefix(start) {
            painted(out, &format!("{BOLD};{paint}"), start);
            out.push_str(rest);
            return;
        }
    }
    if let Some(start) = COPIED.iter().find(|start| line.starts_with(**start)) {
        painted(out, DIM, start);
        out.push_str(&line[start.len()..]);
    } else if let Some((level, verdict, rest)) = verdict(line) {
        let paint = [("satisfied", GREEN), ("violated", RED), ("unknown", YELLOW)];
        let paint = paint.iter().find(|it| it.0 == verdict).map_or(BOLD, |it| it.1);
        out.push_str(level);
        painted(out, paint, verdict);
        if !rest.is_empty() {
            painted(out, DIM, rest);
        }
    } else if line.starts_with("not ") && line.contains(':') {
        let end = line.find(':').expect("just seen") + 1;
        painted(out, &format!("{BOLD};{RED}"), &line[..end]);
        out.push_str(&line[end..]);
    } else if line.starts_with("  ") && !line.starts_with("   ") && line.ends_with(':') {
        painted(out, BOLD, line);
    } else if let Some(place) = place(line) {
        out.push_str(&line[..place]);
        painted(out, DIM, &line[place..]);
    } else {
        out.push_str(line);
    }
}

const VERDICTS: [&str; 3] = ["satisfied", "violated", "unknown"];

/// `  LEVEL  VERDICT  (reason)` or `LEVEL: VERDICT`, cut before and after the verdict.
fn verdict(line: &str) -> Option<(&str, &str, &str)> {
    if let Some((name, verdict)) = line.split_once(": ")
        && VERDICTS.contains(&verdict)
    {
        return Some((&line[..name.len() + 2], verdict, ""));
    }
    let name = line.strip_prefix("  ").filter(|rest| !rest.starts_with(' '))?;
    let length = name.find(' ')?;
    let gap = name[length..].len() - name[length..].trim_start().len();
    let start = 2 + length + gap;
    let rest = &line[start..];
    let end = rest.find(' ').unwrap_or(rest.len());
    let is_verdict = VERDICTS.contains(&&rest[..end]);
    (gap >= 2 && is_verdict).then(|| (&line[..start], &rest[..end], &rest[end..]))
}

/// Where the place in a file at the end of a line starts.
fn place(line: &str) -> Option<usize> {
    let start = line.rfind(" (").filter(|_| line.ends_with(')'))?;
    let inside = &line[start + 2..line.len() - 1];
    let (_, numbers) = inside.rsplit_once(':')?;
    let is_number = |it: &str| !it.is_empty() && it.bytes().all(|byte| byte.is_ascii_digit());
    numbers.split(", ").all(is_number).then_some(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
h.txt: 2 transactions (2 committed) in 2 sessions

  serializable        violated  (repeatable-read is violated)
  snapshot-isolation  satisfied

not repeatable-read: write skew (G2-item)
  Why that cannot be:
    1. A comes before B: A read x = 0, which B replaced with x = 1 (h.txt:24, 25). [rw on x]
    A read x = 0, which B replaced (h.txt:24, 25)

holds: snapshot-isolation
gate: isolde check corpus/anomalies/write-skew.txt --level session-snapshot-isolation
";

    #[test]
    fn text_stays_as_it_is_where_nothing_is_known_of_the_terminal() {
        assert_eq!(TerminalStyle::default().apply(TEXT), TEXT);
    }

    #[test]
    fn long_lines_are_wrapped_at_words_but_commands_are_not() {
        let wrapped = TerminalStyle { width: Some(50), colour: false }.apply(TEXT);
        assert!(wrapped.contains(
            "\n    1. A comes before B: A read x = 0, which B\n       \
             replaced with x = 1 (h.txt:24, 25). [rw on\n       x]\n"
        ));
        assert!(wrapped.ends_with(
            "gate: isolde check corpus/anomalies/write-skew.txt --level session-snapshot-isolation\n"
        ));
        let long = |line: &&str| line.chars().count() > 50 && !line.starts_with("gate: ");
        assert_eq!(wrapped.lines().find(long), None);
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(words(&wrapped), words(TEXT));
    }

    #[test]
    fn a_word_wider_than_the_terminal_stays_whole() {
        let word = "x".repeat(90);
        let text = format!("a {word} b\n");
        let wrapped = TerminalStyle { width: Some(20), colour: false }.apply(&text);
        assert_eq!(wrapped, format!("a\n  {word}\n  b\n"));
    }

    #[test]
    fn colour_adds_nothing_but_colour() {
        let coloured = TerminalStyle { width: None, colour: true }.apply(TEXT);
        assert!(coloured.contains("  serializable        \x1b[31mviolated\x1b[0m\x1b[2m  (repeat"));
        assert!(coloured.contains("  snapshot-isolation  \x1b[32msatisfied\x1b[0m\n"));
        assert!(
            coloured.contains("\n\x1b[1;31mnot repeatable-read:\x1b[0m write skew (G2-item)\n")
        );
        assert!(coloured.contains("\n\x1b[1m  Why that cannot be:\x1b[0m\n"));
        assert!(coloured.contains("which B replaced\x1b[2m (h.txt:24, 25)\x1b[0m\n"));
        let mut plain = String::new();
        let mut parts = coloured.split('\x1b');
        plain.push_str(parts.next().expect("one part at least"));
        for part in parts {
            plain.push_str(part.split_once('m').expect("the end of a colour").1);
        }
        assert_eq!(plain, TEXT);
    }
}
