//! `isolde report`: a run, a history, a report or a bundle as one HTML file.

use crate::exit::{Failure, Status};
use crate::interruption::Interruption;
use crate::job::Job;
use crate::subject::{Opening, Subject};
use crate::{input, limits, out, output, say, status_line};
use isolde_history::{Index, ReadError};
use isolde_report::Page;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Options of `isolde report`.
#[derive(clap::Args, Clone)]
pub(crate) struct Arguments {
    /// The folder of a run, a history, a report in JSON, or a bundle
    file: PathBuf,
    /// The page to write; `-` is standard output [default: report.html in the folder of a run,
    /// else beside FILE with .html behind its name]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    input: input::Arguments,
    #[command(flatten)]
    limits: limits::Arguments,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Status, Failure> {
    arguments.limits.resources.apply()?;
    output::refuse_input(arguments.output.as_deref(), &arguments.file)?;
    let interruption = Interruption::of("report")?;
    let clock = arguments.limits.clock(Some(limits::USUAL_TIME)).interrupted_by(&interruption);
    let job = Arc::new(Job::new(clock, &arguments.limits.resources, true));
    let (options, name) = (arguments.clone(), input::name(&arguments.file));
    let made = job.within(move |job| {
        let opening = Opening { input: &options.input, job };
        let subject = opening.open(&options.file)?;
        status_line::tell("drawing the page".to_owned());
        to_page(&subject, &input::name(&options.file))
    });
    let page = match made {
        Ok(page) => page?,
        Err(reached) => {
            let Some(subject) = Subject::partial_result(&job.partial_result, &name, reached) else {
                return limits::end(reached, &arguments.file, &arguments.limits.resources);
            };
            let message = reached;
            say(&format!("isolde: {name}: {message}: the page has what was known by then"));
            to_page(&subject, &name)?
        }
    };
    let path = match &arguments.output {
        Some(path) => path.clone(),
        None => beside(&arguments.file)?,
    };
    if path == Path::new("-") {
        out(&page)?;
    } else {
        output::write_whole(&path, |file| file.write_all(page.as_bytes()))?;
        say(&format!("isolde: wrote {}", path.display()));
    }
    Ok(Status::Satisfied)
}

/// The page of something that was opened.
pub(crate) fn to_page(subject: &Subject, name: &str) -> Result<String, Failure> {
    let index = subject.history.as_ref().map(Index::new);
    let history = subject.history.as_ref().zip(index.as_ref());
    let page = Page { report: &subject.report, history, run: subject.run.as_ref() };
    Ok(page.to_html().map_err(|message| ReadError::new(name, message))?)
}

/// Where the page goes if the user does not say.
fn beside(file: &Path) -> Result<PathBuf, Failure> {
    if file == Path::new("-") {
        return Err(Failure::Usage("report: name the page of standard input with --output".into()));
    }
    if file.is_dir() {
        return Ok(file.join("report.html"));
    }
    let mut name = file.as_os_str().to_owned();
    name.push(".html");
    Ok(PathBuf::from(name))
}
