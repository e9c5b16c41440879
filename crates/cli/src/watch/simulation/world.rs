//! One world: what is in it, what happens, and what must hold of it afterwards.

use super::super::admission::Origin;
use super::super::connection::{Call, Reception};
use super::super::hub::Hub;
use super::super::monitor::{Clock, Monitor, Setting};
use super::super::now;
use super::super::output::Output;
use super::super::profile;
use super::super::save_file::SaveFile;
use super::super::status::Status;
use super::super::stream::{End, Stream};
use super::super::window::Known;
use super::application::{Application, Stage, events_in};
use super::chance::Chance;
use super::database::{Bug, Database};
use super::machine::{DiskPlan, Line, ListenerEnd, SimulatedDisk};
use crate::exit;
use isolde::online::{Content, Options, PipelineOptions, Reads, Time, Verifier};
use isolde_history::trace::Decoder;
use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How a world ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    Satisfied,
    Violated,
    Unknown,
    /// The watch was killed.
    Crashed,
}

/// What goes wrong: one step in so many, or never.
#[derive(Clone, Copy, Debug, Default)]
struct Troubles {
    cuts: Option<usize>,
    kills: Option<usize>,
    refusals: Option<usize>,
    jumps: Option<usize>,
    strangers: Option<usize>,
    /// The step at which the watch is asked to end, or is killed.
    ends_at: Option<usize>,
    crashes_at: Option<usize>,
}

const STEPS: usize = 500;
/// Whatever goes on after that goes on for ever.
const STEPS_MAX: usize = 20_000;
const SLACK: Time = 100_000_000;
const STALL_AFTER: Time = 10_000_000_000;
/// The first time of all.
const START: Time = 1_000_000_000;

/// See the file's first line.
pub(super) struct World {
    chance: Chance,
    time: Time,
    bug: Option<Bug>,
    troubles: Troubles,
    database: Database,
    applications: Vec<Application>,
    disk: SimulatedDisk,
    plan: DiskPlan,
    watch: Watch,
    reception: Reception,
    calls: Vec<Call>,
    /// Connections that were not accepted yet, and whether they would be made again.
    waiting: Vec<(Line, bool)>,
    /// Whether old connections are hardly read while there are new ones.
    starves: bool,
    /// Whether something went wrong that no sender could mend.
    is_harmed: bool,
}

/// What looks at events.
struct Watch {
    hub: Arc<Hub>,
    status: Arc<Mutex<Status>>,
    monitor: Monitor,
}

impl Watch {
    fn new() -> Watch {
        let (hub, status) = (Arc::new(Hub::new(None)), Arc::<Mutex<Status>>::default());
        let profile = profile::named("snapshot-isolation").expect("a level").profile;
        let unwritten = Some(Content::ABSENT);
        let verifier = Verifier::new(profile, Options { unwritten, ..Options::default() });
        let options = PipelineOptions { stall_after: STALL_AFTER, ..PipelineOptions::default() };
        let setting = Arc::new(Setting {
            hub: Arc::clone(&hub),
            status: Arc::clone(&status),
            output: Arc::new(Output::silent()),
            folder: "nowhere".into(),
            told_max: 3,
            deviations: Vec::new(),
            stop_when_violated: None,
        });
        let reads = Reads::FirstRequest;
        let known = Known { reads, unwritten, is_unique: false, drift: 0 };
        let clock = Clock::Elsewhere { slack: SLACK };
        let monitor = Monitor::new(setting, clock, verifier, options, known, None);
        Watch { hub, status, monitor }
    }

    fn status(&self) -> Status {
        self.status.lock().expect("one thread").clone()
    }

    /// What is found with all of a file at hand.
    fn of(file: &[u8]) -> Result<Status, String> {
        let mut watch = Watch::new();
        let mut stream = Stream::new(&watch.hub, None, None);
        let mut decoder = Decoder::new();
        decoder.take(file, &mut stream)?;
        stream.end(if decoder.is_inside() { End::Broken } else { End::Whole });
        stream.publish().expect("nothing is saved");
        watch.monitor.step(true);
        Ok(watch.status())
    }
}

impl World {
    pub(super) fn new(mut chance: Chance) -> World {
        let fork = |chance: &mut Chance| Chance::new(chance.bits());
        let bug = match chance.below(6) {
            0 => Some(Bug::Stale),
            1 => Some(Bug::LostUpdate),
            _ => None,
        };
        let mut often = |one_in: usize, steps: usize| {
            chance.one_in(one_in).then(|| 1 + steps / 2 + chance.below(steps))
        };
        let troubles = Troubles {
            cuts: often(2, 100),
            kills: often(4, 300),
            refusals: often(5, 4),
            jumps: often(6, 100),
            strangers: often(4, 100),
            ends_at: often(4, STEPS),
            crashes_at: often(8, STEPS),
        };
        let plan = DiskPlan {
            fails_at: often(8, 40),
            capacity: often(8, 12_000),
            is_short: chance.one_in(3),
            cannot_cut: chance.one_in(3),
        };
        let disk = SimulatedDisk::new(plan, fork(&mut chance));
        let saved = SaveFile::on(Box::new(disk.clone()), Path::new("saved.jsonl"));
        let watch = Watch::new();
        let applications = (0..=chance.below(3))
            .map(|number| Application::new(number, fork(&mut chance)))
            .collect();
        let saved = saved.ok().map(Arc::new);
        World {
            time: START,
            bug,
            troubles,
            database: Database::new(bug),
            applications,
            plan,
            reception: Reception::new(&watch.hub, None, saved),
            watch,
            disk,
            calls: Vec::new(),
            waiting: Vec::new(),
            starves: chance.one_in(4),
            is_harmed: false,
            chance,
        }
    }

    /// Lives until its watch has ended.
    pub(super) fn run(&mut self) -> Ending {
        let mut step = 0;
        while step < STEPS || self.applications.iter().any(Application::is_alive) {
            step += 1;
            if self.troubles.crashes_at == Some(step) {
                return Ending::Crashed;
            }
            if self.troubles.ends_at == Some(step) || self.reception.failure().is_some() {
                self.is_harmed = true;
                break;
            }
            if step == STEPS {
                self.applications.iter_mut().for_each(Application::finish);
            }
            assert!(step < STEPS_MAX, "{:?} go on for ever", self.applications);
            self.step();
        }
        // What was sent and can be read is read, unless the watch is asked to end.
        while !self.is_harmed && !self.calls.is_empty() {
            step += 1;
            assert!(step < STEPS_MAX, "a connection goes on for ever");
            self.pass_time();
            self.read();
        }
        for mut call in std::mem::take(&mut self.calls) {
            let read = call.read_out();
            call.end(read, true);
        }
        self.reception.close();
        self.watch.monitor.step(true);
        match self.watch.status().outcome(self.reception.failure().is_some()) {
            exit::Status::Violated => Ending::Violated,
            exit::Status::Satisfied => Ending::Satisfied,
            exit::Status::Unknown | exit::Status::BadInput => Ending::Unknown,
        }
    }

    fn happens(&mut self, one_in: Option<usize>) -> bool {
        one_in.is_some_and(|count| self.chance.one_in(count))
    }

    fn step(&mut self) {
        self.pass_time();
        match self.chance.below(12) {
            0..6 => {
                let place = self.chance.below(self.applications.len());
                let application = &mut self.applications[place];
                if application.is_alone() {
                    let line = Line::new(&self.disk, Chance::new(self.chance.bits()));
                    application.connect(line.clone());
                    self.waiting.push((line, application.is_resumable()));
                }
                application.step(&mut self.database, self.time);
            }
            6 => self.accept(),
            7..10 => self.read(),
            10 => self.watch.monitor.step(false),
            _ => self.reception.give_up_expired(),
        }
        self.trouble();
    }

    fn pass_time(&mut self) {
        let most = if self.chance.one_in(30) { 50_000_000 } else { 300_000 };
        let nanoseconds = 1 + Time::try_from(self.chance.below(most)).expect("a short time");
        self.pass(nanoseconds);
    }

    fn pass(&mut self, nanoseconds: Time) {
        self.time += nanoseconds;
        now::advance(Duration::from_nanos(nanoseconds.unsigned_abs()));
    }

    fn accept(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        let (line, is_resumable) = self.waiting.remove(0);
        let mut reached = Box::new(ListenerEnd(line.clone()));
        if self.happens(self.troubles.refusals) {
            self.is_harmed |= !is_resumable;
            let message = "the system refuses another thread";
            return self.reception.turn_away(&mut *reached, message);
        }
        let place = self.reception.knock(Origin::Local, Box::new(move || line.cut()));
        self.calls.push(self.reception.call(reached, place));
    }

    /// One of the connections is read once.
    fn read(&mut self) {
        if self.calls.is_empty() || self.watch.hub.is_full() {
            return;
        }
        let last = self.calls.len() - 1;
        let is_fair = !self.starves || self.chance.one_in(10);
        let place = if is_fair { self.chance.below(last + 1) } else { last };
        if let Some(read) = self.calls[place].turn(false).transpose() {
            self.calls.remove(place).end(read, false);
        }
    }

    fn trouble(&mut self) {
        let place = self.chance.below(self.applications.len());
        let Troubles { cuts, kills, jumps, strangers, .. } = self.troubles;
        if self.happens(cuts)
            && let Some(line) = &self.applications[place].line
        {
            line.cut();
            self.is_harmed |= !self.applications[place].is_resumable();
        }
        if self.happens(kills) && self.applications[place].is_alive() {
            self.applications[place].kill(&mut self.database);
            self.is_harmed = true;
        }
        if self.happens(jumps) {
            let jump = [1, 4, 11, 70][self.chance.below(4)];
            self.pass(jump * 1_000_000_000);
            self.is_harmed = true;
        }
        if self.happens(strangers) {
            self.stranger();
        }
    }

    /// Somebody connects who means it no good, or nothing.
    fn stranger(&mut self) {
        let line = Line::new(&self.disk, Chance::new(self.chance.bits()));
        let said = [
            &b""[..],
            b"garbage\n",
            b"{\"isolde\":\"trace 1\",\"client\":\"stranger\"}\ngarbage\n",
            b"{\"isolde\":\"trace 1\",\"client\":\"stranger\",\"resume\":\"stranger\"}\n{\"read\":",
        ];
        let said = said[self.chance.below(said.len())];
        while line.send(said).is_some_and(|count| count < said.len()) {}
        if self.chance.one_in(2) {
            line.end();
        }
        self.is_harmed = true;
        self.waiting.push((line, false));
    }
}

impl World {
    /// How many events were acknowledged.
    pub(super) fn acknowledged(&self) -> u64 {
        self.applications.iter().map(|application| application.taken.len() as u64).sum()
    }

    /// Whether something came again after a cut.
    pub(super) fn sent_again(&self) -> bool {
        self.watch.hub.sent_again.load(Ordering::Relaxed) > 0
    }

    pub(super) fn file(&self) -> Vec<u8> {
        self.disk.state().content.clone()
    }

    /// What does not hold of this world.
    pub(super) fn complaint(&self, ending: Ending) -> Option<String> {
        let file = self.file();
        let checks = [
            self.missing(&file),
            self.false_alarm(&file, ending),
            self.lost_alarm(&file, ending),
            self.unreasonable(&file, ending),
        ];
        let complaint = checks.into_iter().flatten().next()?;
        let (troubles, plan, bug) = (self.troubles, self.plan, self.bug);
        let status = self.watch.status();
        let stories: Vec<String> = status
            .stories
            .iter()
            .map(|told| format!("{} {:#?}", told.summary, told.reasons))
            .collect();
        let status = format!("{}{}", status.to_summary(), stories.join("\n"));
        let (applications, file) = (&self.applications, String::from_utf8_lossy(&file));
        Some(format!(
            "{complaint}\n{ending:?} {bug:?} {troubles:?} {plan:?} {applications:?}\n{status}\n{file}"
        ))
    }

    /// An event that was acknowledged before it was in the file, or is in it no more.
    fn missing(&self, file: &[u8]) -> Option<String> {
        let mut saved = HashMap::new();
        for (event, end) in events_in(file) {
            saved.entry(event).or_insert(end);
        }
        let taken = self.applications.iter().flat_map(|application| &application.taken);
        let is_missing =
            |(event, length): &&(_, usize)| saved.get(event).is_none_or(|end| end > length);
        taken
            .filter(is_missing)
            .map(|(event, _)| format!("acknowledged and not saved: {event:?}"))
            .next()
    }

    fn false_alarm(&self, file: &[u8], ending: Ending) -> Option<String> {
        if self.bug.is_some() {
            return None;
        }
        let status = self.watch.status();
        if ending == Ending::Violated || status.counters.contradictions > 0 {
            return Some(format!("a false alarm: {:?}", status.violations));
        }
        // What a crash has cut off is not read.
        let end = file.iter().rposition(|byte| *byte == b'\n').map_or(0, |place| place + 1);
        match Watch::of(&file[..end]) {
            Ok(status) if status.violation_count() == 0 => None,
            Ok(status) => Some(format!("a false alarm of the file: {:?}", status.violations)),
            Err(error) => Some(format!("the file cannot be read: {error}")),
        }
    }

    /// With status 0, what was acknowledged was verified.
    fn lost_alarm(&self, file: &[u8], ending: Ending) -> Option<String> {
        if ending != Ending::Satisfied {
            return None;
        }
        let (found, whole) = (self.watch.status(), Watch::of(file).ok()?);
        if whole.violation_count() > 0 {
            return Some(format!("a lost alarm: {:?}", whole.violations));
        }
        let verified = |status: &Status| {
            let counters = status.counters;
            (counters.cells_read, counters.cells_written, counters.committed, counters.operations)
        };
        let (found, whole) = (verified(&found), verified(&whole));
        (found != whole).then(|| format!("status 0, with {found:?} of {whole:?} verified"))
    }

    /// Where all that went wrong could be mended, all was verified.
    fn unreasonable(&self, file: &[u8], ending: Ending) -> Option<String> {
        // A new client told of what was longer ago than `--slack` allows.
        let is_late = self.watch.status().counters.disorder.late > 0;
        let is_harmed = self.is_harmed || is_late || self.reception.failure().is_some();
        if is_harmed || ending == Ending::Crashed {
            return None;
        }
        if let Some(application) = self.applications.iter().find(|it| it.stage != Stage::Done) {
            return Some(format!("an application ended as {:?}", application.stage));
        }
        let events: BTreeSet<_> = events_in(file).into_iter().map(|(event, _)| event).collect();
        let told: BTreeSet<_> = self
            .applications
            .iter()
            .flat_map(|it| it.taken.iter().map(|(event, _)| event.clone()))
            .collect();
        if events != told {
            return Some("the file has other events than were acknowledged".to_owned());
        }
        let whole = Watch::of(file).ok()?;
        let expected = match whole.violation_count() {
            _ if whole.is_empty() => Ending::Unknown,
            0 => Ending::Satisfied,
            _ => Ending::Violated,
        };
        (ending != expected).then(|| format!("expected {expected:?} of {:?}", whole.violations))
    }
}
