//! What the figures were measured on.

use std::fs::read_to_string;
use std::path::Path;
use std::process::Command;

/// One line: processor, cores, memory, kernel, compiler.
pub(crate) fn describe() -> String {
    let processor = field("/proc/cpuinfo", "model name").unwrap_or("unknown processor".into());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let memory = field("/proc/meminfo", "MemTotal")
        .and_then(|text| text.split(' ').next()?.parse::<u64>().ok())
        .map_or("unknown memory".into(), |kibibytes| format!("{} GiB", kibibytes >> 20));
    let system = read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let compiler = Command::new("rustc").arg("--version").output();
    let compiler = compiler.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    format!(
        "{processor}, {cores} cores, {memory}, Linux {}, {}",
        system.trim(),
        compiler.unwrap_or_default().trim()
    )
}

/// How many programs wanted a processor during the last minute. Figures of a busy
/// machine are worse than they should be, and the reader has to know.
pub(crate) fn load() -> String {
    let text = read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or_default().to_owned()
}

/// Lines of a page that say on what was measured: with the program of this tree, or with one
/// that was given by its path, and what is said of it.
pub(crate) fn heading(load: &str, isolde: Option<&Path>, note: Option<&str>) -> String {
    let program = match (isolde, note) {
        (None, _) => "the release build of this tree",
        (Some(_), Some(note)) => note,
        (Some(_), None) => "one given by its path, of unknown build",
    };
    let machine = describe();
    format!("Machine: {machine}; load before the first run: {load}.\n\nProgram: {program}.\n")
}

fn field(file: &str, name: &str) -> Option<String> {
    let text = read_to_string(file).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}
