//! The forms a report comes in: a table of what `--format` and `--report` take.
//!
//! A new form is a file with one function from a [`Report`] to text, and a row here.

use crate::{Detail, Report, Unreadable};
use crate::{dot, github, junit, markdown, replay, svg, to_json, to_text};

/// How one report is written, and how those of several histories become one text.
pub struct Output {
    /// The name on the command line.
    pub name: &'static str,
    /// What it is for, one line, no full stop.
    pub about: &'static str,
    render: fn(&Report) -> String,
    unreadable: Option<fn(&Unreadable) -> String>,
    join: fn(&[String], bool) -> String,
}

/// All forms that are one text. The page and Elle's directory are made apart, since one needs
/// the history and the other several files.
pub static OUTPUTS: &[Output] = &[
    Output {
        name: "text",
        about: "for people, in a terminal",
        render: |report| to_text(report, Detail::Full, None),
        unreadable: None,
        join: |texts, _| texts.join("\n"),
    },
    Output {
        name: "json",
        about: "for programs; docs/schema/report.schema.json describes it",
        render: to_json,
        unreadable: Some(to_json),
        join: |texts, several| match (several, texts) {
            (false, [only]) => format!("{only}\n"),
            (false, _) => String::new(),
            (true, all) => format!("[{}]\n", all.join(",\n")),
        },
    },
    Output {
        name: "junit",
        about: "JUnit XML: a test case for each level",
        render: junit::to_suite,
        unreadable: Some(junit::unreadable),
        join: |suites, _| format!("{}{}{}", junit::HEAD, suites.concat(), junit::TAIL),
    },
    Output {
        name: "github",
        about: "annotations for GitHub's workflows, and Markdown in the step summary",
        render: github::to_annotations,
        unreadable: Some(github::unreadable),
        join: |texts, _| texts.concat(),
    },
    Output {
        name: "markdown",
        about: "for a bug report",
        render: markdown::to_markdown,
        unreadable: Some(markdown::unreadable),
        join: |texts, _| texts.join("\n"),
    },
    Output {
        name: "dot",
        about: "counterexamples as graphs for Graphviz",
        render: |report| dot::to_dot(&report.counterexamples()),
        unreadable: None,
        join: |texts, _| texts.concat(),
    },
    Output {
        name: "svg",
        about: "counterexamples as a picture",
        render: |report| svg::to_svg(&report.counterexamples()),
        unreadable: None,
        join: |texts, _| texts.concat(),
    },
    Output {
        name: "replay",
        about: "counterexamples as SQL to type into a terminal for each session",
        render: |report| replay::to_replay(&report.counterexamples()),
        unreadable: None,
        join: |texts, _| texts.join("\n"),
    },
];

impl Output {
    /// The form of this name.
    pub fn by_name(name: &str) -> Option<&'static Output> {
        OUTPUTS.iter().find(|output| output.name == name)
    }

    /// A report in this form.
    pub fn render(&self, report: &Report) -> String {
        (self.render)(report)
    }

    /// What stands for a history that could not be read, if anything does.
    pub fn unreadable(&self, it: &Unreadable) -> Option<String> {
        self.unreadable.map(|render| render(it))
    }

    /// The texts of all histories as one; `several` says whether several were asked for, however
    /// many could be read.
    pub fn join(&self, texts: &[String], several: bool) -> String {
        (self.join)(texts, several)
    }
}

/// The report as the step summary of a workflow shows it.
pub fn to_step_summary(report: &Report) -> String {
    markdown::to_markdown(report)
}

#[cfg(test)]
mod tests {
    use super::*;
    use isolde::{Check, Level, Limits};
    use isolde_history::Index;
    use isolde_history::format::parse_text;

    #[test]
    fn what_people_read_calls_a_violation_by_one_name() {
        let history = parse_text("A: r(x,nil) w(x,1)\nB: r(x,nil) w(x,2)").expect("a history");
        let index = Index::new(&history);
        let mut check = Check::new(&history, &index, &Limits::NONE);
        let level = Level::CursorStability;
        let decided = [(level, check.decide(level), 0.0)];
        let report = crate::explained((&history, &index), ("x.txt", "text"), &decided, &[]);
        for form in ["text", "github", "markdown", "dot", "svg", "replay"] {
            let told = Output::by_name(form).expect("a form").render(&report);
            let told = told
                .replace("&apos;", "'")
                .replace("&#39;", "'")
                .replace('\\', "")
                .replace("%2C", ",");
            assert!(told.contains("lost update (Adya's G-cursor, Elle's lost-update)"), "{told}");
            assert!(!told.contains("lost-update (P4)"), "{told}");
        }
    }
}
