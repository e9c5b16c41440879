//! `isolde convert`: a history in another format.

use crate::exit::{Failure, Status};
use crate::{input, limits, say};
use isolde_history::format::{Folder, WriteError, Writer};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Options of `isolde convert`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The history; `-` is standard input
    file: PathBuf,
    /// The format to write; see `isolde formats`
    #[arg(long, value_name = "FORMAT")]
    to: String,
    /// Where to write: a file, or a directory for formats that are one [default: standard output]
    #[arg(long, short, value_name = "PATH")]
    output: Option<PathBuf>,
    #[command(flatten)]
    input: input::Arguments,
    #[command(flatten)]
    resources: limits::Resources,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Status, Failure> {
    arguments.resources.apply_threads();
    let to = input::by_name(&arguments.to)?;
    let Some(writer) = to.write else {
        return Err(Failure::Usage(format!("the format {} is read but not written", to.name)));
    };
    let memory_max = arguments.resources.memory_max();
    let (history, _) = input::read(&arguments.file, &arguments.input, memory_max)?;
    let name = arguments
        .output
        .as_ref()
        .map_or("standard output".into(), |path| path.display().to_string());
    let failed = |error: WriteError| Failure::Write(name.clone(), error);
    let lost = match (writer, &arguments.output) {
        (Writer::File(write), None) => {
            let mut stdout = BufWriter::new(io::stdout().lock());
            let lost = write(&history, &mut stdout).map_err(failed)?;
            stdout.flush()?;
            lost
        }
        (Writer::File(write), Some(path)) => {
            write_file(path, |file| write(&history, file)).map_err(failed)?
        }
        (Writer::Directory(_), None) => {
            let message = format!("the format {} is a directory: name it with --output", to.name);
            return Err(Failure::Usage(message));
        }
        (Writer::Directory(write), Some(path)) => {
            std::fs::create_dir_all(path).map_err(|error| failed(error.into()))?;
            write(&history, &mut OnDisk(path)).map_err(failed)?
        }
    };
    for sentence in lost {
        say(&format!("isolde: {}: lost: {sentence}", to.name));
    }
    Ok(Status::Satisfied)
}

/// Writes beside the target and moves it there when complete, so that a failure
/// leaves what was there before.
fn write_file(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> Result<Vec<String>, WriteError>,
) -> Result<Vec<String>, WriteError> {
    let mut partial = path.as_os_str().to_owned();
    partial.push(".partial");
    let partial = PathBuf::from(partial);
    let mut file = BufWriter::new(File::create(&partial)?);
    let result = write(&mut file).and_then(|lost| {
        file.flush()?;
        Ok(lost)
    });
    drop(file);
    match result {
        Ok(lost) => {
            std::fs::rename(&partial, path)?;
            Ok(lost)
        }
        Err(error) => {
            let _ = std::fs::remove_file(&partial);
            Err(error)
        }
    }
}

struct OnDisk<'a>(&'a Path);

impl Folder for OnDisk<'_> {
    fn create(&mut self, name: &str) -> io::Result<Box<dyn Write + '_>> {
        Ok(Box::new(BufWriter::new(File::create(self.0.join(name))?)))
    }
}
