//! Running a program and measuring what it used.

use crate::memory::Holder;
use std::ffi::OsString;
use std::io::{self, BufWriter, Write};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

/// What a program used.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Usage {
    /// Processor seconds of all its threads, in the kernel too.
    pub(crate) cpu: f64,
    /// Seconds from start to end.
    pub(crate) wall: f64,
    /// The most memory it had at a time, in MiB.
    pub(crate) peak: f64,
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ended {
    pub(crate) usage: Usage,
    /// Its exit status; `None` if a signal ended it.
    pub(crate) status: Option<i32>,
}

/// A program with its arguments.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) path: OsString,
    pub(crate) arguments: Vec<OsString>,
}

/// Runs that take fewer seconds are repeated more often: what disturbs them is larger than what
/// is measured.
const SHORT: f64 = 0.5;
/// How much more often.
const MORE: u32 = 5;

/// Seconds for which a program runs again and again in one turn.
const TURN: f64 = 3.0;

/// How many runs a figure is the least of, in words.
pub(crate) fn counted(runs: u32) -> String {
    format!("{runs} runs, and of {} where one takes less than {SHORT} s", runs * MORE)
}

impl Program {
    pub(crate) fn new<A: Into<OsString>>(
        path: impl Into<OsString>,
        arguments: impl IntoIterator<Item = A>,
    ) -> Program {
        let arguments = arguments.into_iter().map(Into::into).collect();
        Program { path: path.into(), arguments }
    }

    /// The least of each figure over `runs` that succeed, since noise only adds.
    pub(crate) fn best_of(&self, runs: u32) -> Result<Usage, String> {
        let ended = self.best_ending_in(0, runs)?;
        self.succeeded(ended)
    }

    /// The same of runs that end in `status`. One that does not is not repeated.
    pub(crate) fn best_ending_in(&self, status: i32, runs: u32) -> Result<Ended, String> {
        let first = self.end()?;
        let runs = if first.usage.wall < SHORT { runs * MORE } else { runs };
        let mut best = first;
        for _ in 1..runs {
            if best.status != Some(status) {
                break;
            }
            let Ended { usage, status } = self.end()?;
            best = Ended {
                usage: Usage {
                    cpu: best.usage.cpu.min(usage.cpu),
                    wall: best.usage.wall.min(usage.wall),
                    peak: best.usage.peak.min(usage.peak),
                },
                status,
            };
        }
        Ok(best)
    }

    /// Runs it once, and it has to succeed.
    pub(crate) fn run(&self) -> Result<Usage, String> {
        let ended = self.end()?;
        self.succeeded(ended)
    }

    fn succeeded(&self, ended: Ended) -> Result<Usage, String> {
        if ended.status == Some(0) {
            return Ok(ended.usage);
        }
        let shown: Vec<_> = self.arguments.iter().map(|word| word.display().to_string()).collect();
        let (path, shown) = (self.path.display(), shown.join(" "));
        let found = ended.status.map_or("a signal".into(), |status| format!("status {status}"));
        Err(format!("expected success of `{path} {shown}`, found {found}"))
    }

    /// Runs it once and writes to its standard input meanwhile. It has to read all of that.
    pub(crate) fn fed(
        &self,
        feed: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<Ended, String> {
        let failed = |error: io::Error| format!("{}: {error}", self.path.display());
        let start = Instant::now();
        let mut child = self.start(Stdio::piped()).map_err(failed)?;
        let mut pipe = BufWriter::with_capacity(1 << 16, child.stdin.take().expect("it is piped"));
        let fed = feed(&mut pipe).and_then(|()| pipe.flush());
        drop(pipe);
        let ended = used(child.id(), start).map_err(failed)?;
        fed.map_err(failed)?;
        Ok(ended)
    }

    /// Instructions of one run, of all threads together.
    pub(crate) fn instructions(&self) -> Result<f64, String> {
        let failed = |error: io::Error| format!("valgrind: {error}");
        let counting = ["--tool=callgrind", "--callgrind-out-file=/dev/null"];
        let mut command = Command::new("valgrind");
        command.args(counting).arg(&self.path).args(&self.arguments);
        let output = command.stdout(Stdio::null()).output().map_err(failed)?;
        collected(&String::from_utf8_lossy(&output.stderr))
            .ok_or_else(|| "valgrind: expected a line `Collected : COUNT`".to_owned())
    }

    /// The same as [`Program::end`], with memory ready.
    fn end_beside(&self, holder: io::Result<Holder>) -> Result<Ended, String> {
        let failed = |error: io::Error| format!("{}: {error}", self.path.display());
        let mut holder = holder.map_err(failed)?;
        let start = Instant::now();
        let child = self.start(Stdio::null()).map_err(failed)?;
        holder.watch(child.id()).map_err(failed)?;
        used(child.id(), start).map_err(failed)
    }

    /// Runs it once. Its output is dropped; its errors are the user's to see.
    fn end(&self) -> Result<Ended, String> {
        let failed = |error: io::Error| format!("{}: {error}", self.path.display());
        let start = Instant::now();
        let child = self.start(Stdio::null()).map_err(failed)?;
        used(child.id(), start).map_err(failed)
    }

    fn start(&self, input: Stdio) -> io::Result<Child> {
        let mut command = Command::new(&self.path);
        command.args(&self.arguments).stdin(input).stdout(Stdio::null()).spawn()
    }
}

/// Programs in turns, and what each used in every turn: what slows the machine down for a while
/// slows down all that run in the same turn, which are compared. A short one runs several times in
/// a turn and uses the mean of that, since what disturbs for a moment is larger than what it takes.
/// Each run finds as much memory ready as it needs, which its first run tells. A program that does
/// not succeed is not repeated.
pub(crate) fn in_turns(programs: &[Program], turns: u32) -> Result<Vec<Vec<Ended>>, String> {
    let first: Result<Vec<Ended>, String> = programs.iter().map(Program::end).collect();
    let first = first?;
    let longest = first.iter().map(|ended| ended.usage.wall).fold(0.0, f64::max).min(TURN);
    let mut all = vec![Vec::new(); programs.len()];
    for _ in 0..turns {
        for ((program, first), turns) in programs.iter().zip(&first).zip(&mut all) {
            if first.status != Some(0) {
                *turns = vec![*first];
                continue;
            }
            let mut runs = Vec::new();
            while runs.is_empty() || longest > sum(&runs, |usage| usage.wall) {
                runs.push(program.end_beside(Holder::of(first.usage.peak))?);
            }
            turns.push(mean(&runs));
        }
    }
    Ok(all)
}

fn sum(runs: &[Ended], figure: impl Fn(&Usage) -> f64) -> f64 {
    runs.iter().map(|run| figure(&run.usage)).sum()
}

/// The mean of each figure, and how one ended that did not succeed, if any.
fn mean(runs: &[Ended]) -> Ended {
    let count = sum(runs, |_| 1.0);
    let mean = |figure: fn(&Usage) -> f64| sum(runs, figure) / count;
    let usage = Usage {
        cpu: mean(|usage| usage.cpu),
        wall: mean(|usage| usage.wall),
        peak: mean(|usage| usage.peak),
    };
    let status = runs.iter().map(|run| run.status).find(|&status| status != Some(0));
    Ended { usage, status: status.unwrap_or(Some(0)) }
}

/// The middle one of figures, of which there are some.
pub(crate) fn median(figures: impl IntoIterator<Item = f64>) -> f64 {
    let mut figures: Vec<f64> = figures.into_iter().collect();
    figures.sort_by(f64::total_cmp);
    let half = figures.len() / 2;
    if figures.len() % 2 == 1 {
        figures[half]
    } else {
        f64::midpoint(figures[half - 1], figures[half])
    }
}

/// The count in what callgrind says at its end: `==12== Collected : 345`.
fn collected(said: &str) -> Option<f64> {
    let count = said.lines().find_map(|line| line.split_once("Collected : "))?.1;
    count.trim().parse().ok()
}

/// Waits for a child that was started then.
fn used(child: u32, start: Instant) -> io::Result<Ended> {
    let (status, resources) = wait(child)?;
    let wall = start.elapsed().as_secs_f64();
    let status = libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status));
    let seconds = |time: libc::timeval| {
        #[expect(clippy::cast_precision_loss, reason = "a run takes less than 2^52 s")]
        let seconds = time.tv_sec as f64;
        #[expect(clippy::cast_precision_loss, reason = "less than a million")]
        let micros = time.tv_usec as f64;
        seconds + micros / 1e6
    };
    #[expect(clippy::cast_precision_loss, reason = "less than 2^52 KiB")]
    let peak = resources.ru_maxrss as f64 / 1024.0;
    let cpu = seconds(resources.ru_utime) + seconds(resources.ru_stime);
    Ok(Ended { usage: Usage { cpu, wall, peak }, status })
}

/// Waits for a child and takes its resources with it, which the standard library
/// does not tell. Until it is waited for, its number is nobody else's.
fn wait(child: u32) -> io::Result<(i32, libc::rusage)> {
    let number = libc::pid_t::try_from(child).map_err(io::Error::other)?;
    let mut status = 0;
    // SAFETY: all zeros is a valid `rusage`, which is numbers alone.
    let mut resources: libc::rusage = unsafe { std::mem::zeroed() };
    loop {
        // SAFETY: both pointers are to live local variables of the right types.
        let waited = unsafe { libc::wait4(number, &raw mut status, 0, &raw mut resources) };
        if waited == number {
            return Ok((status, resources));
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_works_uses_processor_time_and_memory() {
        let loops = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done";
        let usage = Program::new("sh", ["-c", loops]).run().expect("a shell");
        assert!(usage.cpu > 0.0 && usage.wall > 0.0 && usage.peak > 0.1, "{usage:?}");
    }

    #[test]
    fn instructions_are_what_callgrind_collected() {
        let said = "==7== Events    : Ir\n==7== Collected : 1234567\n==7==\n";
        assert_eq!(collected(said), Some(1_234_567.0));
        assert_eq!(collected("==7== Command: isolde\n"), None);
    }

    #[test]
    fn a_program_that_fails_is_not_measured() {
        let error = Program::new("sh", ["-c", "exit 3"]).run().expect_err("it failed");
        assert_eq!(error, "expected success of `sh -c exit 3`, found status 3");
    }

    #[test]
    fn the_middle_one_is_between_two_if_there_is_none() {
        let shown = |figures: &[f64]| median(figures.iter().copied()).to_string();
        assert_eq!([shown(&[3.0, 1.0, 2.0]), shown(&[4.0, 1.0, 2.0, 3.0])], ["2", "2.5"]);
    }

    #[test]
    fn short_runs_of_a_turn_are_one_figure_and_a_failure_shows() {
        let run = |cpu, status| Ended { usage: Usage { cpu, wall: cpu, peak: 8.0 }, status };
        let usage = Usage { cpu: 2.0, wall: 2.0, peak: 8.0 };
        let turn = mean(&[run(1.0, Some(0)), run(3.0, Some(0))]);
        assert_eq!(turn, Ended { usage, status: Some(0) });
        assert_eq!(mean(&[run(1.0, Some(0)), run(3.0, None)]).status, None);
    }

    #[test]
    fn a_program_may_be_meant_to_fail() {
        let failing = Program::new("sh", ["-c", "exit 1"]);
        assert_eq!(failing.best_ending_in(1, 2).expect("a shell").status, Some(1));
        let killed = Program::new("sh", ["-c", "kill -9 $$"]);
        assert_eq!(killed.best_ending_in(0, 2).expect("a shell").status, None);
    }
}
