//! The forms that `--format` and `--report` ask for, and where they go.

use crate::exit::Failure;
use crate::{out, output, suggestion, terminal};
use isolde_history::{History, Index};
use isolde_report::{
    OUTPUTS, Output, Page, Report, Unreadable, to_elle_directory, to_step_summary,
};
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Where a workflow of GitHub's shows Markdown.
const STEP_SUMMARY: &str = "GITHUB_STEP_SUMMARY";

/// How a report is written.
#[derive(Clone, Copy)]
pub(crate) enum Form {
    /// One text.
    Text(&'static Output),
    /// The page, which has the history in it.
    Page,
    /// Several files in a directory.
    Elle,
}

/// A form and its file.
#[derive(Clone)]
pub(crate) struct Wanted {
    pub(crate) form: Form,
    pub(crate) path: PathBuf,
}

/// A report in one form.
pub(crate) enum Rendered {
    Text(String),
    Files(Vec<(String, String)>),
}

impl Rendered {
    /// All texts as one.
    pub(crate) fn together(all: Vec<Rendered>) -> Rendered {
        let texts = all.into_iter().filter_map(|it| match it {
            Rendered::Text(text) => Some(text),
            Rendered::Files(_) => None,
        });
        Rendered::Text(texts.collect())
    }
}

/// What `check --help` says about forms.
pub(crate) fn help() -> String {
    let mut text = String::from("Forms of --format and --report:\n");
    for output in OUTPUTS {
        text.push_str(&format_row(output.name, output.about));
    }
    text.push_str(&format_row("html", "a page that needs nothing else; see `isolde report`"));
    text.push_str(&format_row("elle", "a directory as Elle leaves it; --report alone"));
    text
}

fn format_row(name: &str, about: &str) -> String {
    format!("  {name:10} {about}\n")
}

/// What `--format` takes.
pub(crate) fn parse_form(name: &str) -> Result<Form, String> {
    match (Output::by_name(name), name) {
        (Some(output), _) => Ok(Form::Text(output)),
        (None, "html") => Ok(Form::Page),
        (None, "elle") => Err("several files: ask for them with --report elle=DIR".to_owned()),
        (None, _) => {
            let names: Vec<&str> = OUTPUTS.iter().map(|output| output.name).collect();
            Err(suggestion::expected("a form", name, &[&names[..], &["html", "elle"]].concat()))
        }
    }
}

/// What `--report` takes.
pub(crate) fn parse_wanted(text: &str) -> Result<Wanted, String> {
    let expected = || format!("expected FORM=FILE, such as junit=report.xml, found `{text}`");
    let (name, path) = text.split_once('=').ok_or_else(expected)?;
    if path.is_empty() {
        return Err(expected());
    }
    let form = if name == "elle" { Form::Elle } else { parse_form(name)? };
    Ok(Wanted { form, path: PathBuf::from(path) })
}

impl Form {
    /// Whether this is the form of that name.
    pub(crate) fn is(self, name: &str) -> bool {
        matches!(self, Form::Text(output) if output.name == name)
    }

    /// Whether it can be about several histories.
    pub(crate) fn takes_several(self) -> bool {
        matches!(self, Form::Text(output) if output.name != "svg")
    }

    pub(crate) fn render(
        self,
        report: &Report,
        history: Option<(&History, &Index)>,
    ) -> Result<Rendered, Failure> {
        Ok(match self {
            Form::Text(output) => Rendered::Text(output.render(report)),
            Form::Page => {
                let report = serde_json::to_value(report).expect("a report is plain data");
                let page = Page { report: &report, history, run: None };
                Rendered::Text(page.to_html().map_err(Failure::Usage)?)
            }
            Form::Elle => Rendered::Files(to_elle_directory(report)),
        })
    }

    /// What stands for a history that could not be read, if anything does.
    pub(crate) fn unreadable(self, it: &Unreadable) -> Option<Rendered> {
        match self {
            Form::Text(output) => output.unreadable(it).map(Rendered::Text),
            Form::Page | Form::Elle => None,
        }
    }

    fn joined(self, texts: &[String], several: bool) -> String {
        match self {
            Form::Text(output) => output.join(texts, several),
            Form::Page | Form::Elle => texts.concat(),
        }
    }

    /// Writes what was rendered of all histories to standard output or a file.
    pub(crate) fn write(
        self,
        rendered: &[Rendered],
        several: bool,
        path: Option<&Path>,
    ) -> Result<(), Failure> {
        let mut texts = Vec::new();
        for it in rendered {
            match it {
                Rendered::Text(text) => texts.push(text.clone()),
                Rendered::Files(files) => write_files(files, path)?,
            }
        }
        if matches!(self, Form::Elle) || (texts.is_empty() && !several) {
            return Ok(());
        }
        let text = self.joined(&texts, several);
        match path {
            None if self.is("text") => out(&terminal::dressed(&text)),
            None => out(&text),
            Some(path) => output::write_whole(path, |file| file.write_all(text.as_bytes())),
        }
    }
}

impl Wanted {
    pub(crate) fn write(&self, rendered: &[Rendered], several: bool) -> Result<(), Failure> {
        self.form.write(rendered, several, Some(&self.path))
    }
}

fn write_files(files: &[(String, String)], directory: Option<&Path>) -> Result<(), Failure> {
    let directory = directory.unwrap_or(Path::new("."));
    std::fs::create_dir_all(directory)
        .map_err(|error| Failure::Write(directory.display().to_string(), error.into()))?;
    for (name, content) in files {
        output::write_whole(&directory.join(name), |out| out.write_all(content.as_bytes()))?;
    }
    Ok(())
}

/// Adds a report to the summary of the workflow's step, if there is one.
pub(crate) fn summarize(report: &Report) -> Result<(), Failure> {
    let Some(path) = std::env::var_os(STEP_SUMMARY).filter(|path| !path.is_empty()) else {
        return Ok(());
    };
    let path = PathBuf::from(path);
    let opened = OpenOptions::new().append(true).create(true).open(&path);
    let written = opened.and_then(|mut file| file.write_all(to_step_summary(report).as_bytes()));
    written.map_err(|error| Failure::Write(path.display().to_string(), error.into()))
}
