//! The configuration while the appliance runs: what is in force, and how another comes into force.
//!
//! A change is made in this order: everything that can be wrong is found out, names are numbered, addresses are bound; then
//! what is different is changed, and the version is written. Whoever is told of a version finds it in force and on disk. What
//! fails on the way leaves everything as it was.

mod api;
mod boot;
mod effects;
mod live;

pub(crate) use boot::{Booted, boot, what_counts};
pub(crate) use live::{Live, Tuning};

use crate::config::{Config, Mode, Source};
use crate::core_loop::wall;
use admin::{Applied, ChangedHow, Changing, Kind, Misplaced, Problem, Unconfirmed};
use boot::{FILE, FromFile, HOUSE, keep_own};
use configuration::{Change, Draft, Summary, Versions, VersionsError, What};
use parking_lot::Mutex;
use serde_json::Value;
use snapshot::{Snapshot, SnapshotError};
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// A version that reverts at some time.
struct Waiting {
    version: u64,
    back_to: u64,
    /// By the clock that nobody sets.
    until: Instant,
    reverts_at: u64,
}

struct State {
    summary: Summary,
    document: Value,
    /// What is at work: the document's, but for what waits for a restart.
    running: Config,
    waiting: Option<Waiting>,
}

/// Where a change comes from.
struct Origin {
    by: String,
    why: String,
    confirm_within: Option<Duration>,
}

/// See the module.
pub(crate) struct Configuring {
    file: PathBuf,
    base: PathBuf,
    mode: Mode,
    versions: Versions,
    /// The document of the start.
    started_with: Value,
    state: Mutex<State>,
    live: OnceLock<Live>,
    /// What the start took from the file, until it is in force.
    from_file: Mutex<Option<FromFile>>,
}

/// After a revert that failed, how long until it is tried again.
const AGAIN: Duration = Duration::from_secs(30);

/// What is wrong with a document, as the API tells it.
fn misplaced(problems: Vec<configuration::Problem>) -> Vec<Misplaced> {
    let told = problems.into_iter().map(|problem| Misplaced {
        pointer: problem.pointer,
        what: problem.what,
        allowed: problem.allowed,
    });
    told.collect()
}

fn refused(problems: Vec<configuration::Problem>) -> Problem {
    let detail = match &problems[..] {
        [one] => one.to_string(),
        [first, rest @ ..] => format!("{first}; and {} more, all of them in `problems`", rest.len()),
        [] => "the document is wrong".to_owned(),
    };
    let mut problem = Problem::new(Kind::Refused, detail);
    problem.problems = misplaced(problems);
    problem
}

fn unreadable(error: &VersionsError) -> Problem {
    tracing::error!(%error, "the versions of the configuration");
    Problem::new(
        Kind::Internal,
        "the versions of the configuration cannot be read or written; the log says more",
    )
}

/// Changes as they are shown: without secrets, and with what they mean.
fn shown(mut changes: Vec<Change>) -> (Vec<Changing>, Vec<String>) {
    configuration::hide_changes(&mut changes);
    let mut restart = Vec::new();
    let mut told = Vec::new();
    for change in changes {
        let effect = effects::of(&change);
        if effect.restart {
            restart.push(change.pointer());
        }
        let what = match change.what() {
            What::Added => ChangedHow::Added,
            What::Changed => ChangedHow::Changed,
            What::Removed => ChangedHow::Removed,
        };
        let (pointer, effect) = (change.pointer(), effect.words.to_owned());
        told.push(Changing { pointer, what, effect, before: change.before, after: change.after });
    }
    (told, restart)
}

impl Configuring {
    fn new(booted: Booted, config: Config) -> Self {
        let Booted { file, base, mode, versions, summary, document, remarks, from_file } = booted;
        for remark in remarks {
            tracing::warn!(file = %file.display(), version = summary.version, "{remark}");
        }
        let state = State { summary, document: document.clone(), running: config, waiting: None };
        Self {
            file,
            base,
            mode,
            versions,
            started_with: document,
            state: Mutex::new(state),
            live: OnceLock::new(),
            from_file: Mutex::new(from_file),
        }
    }

    /// The configuration of the start is in force: it is kept, and from here on changes can be made.
    pub(crate) fn open(&self, live: Live) -> Result<(), VersionsError> {
        if let Some(from_file) = self.from_file.lock().take() {
            from_file.record(&self.versions)?;
        }
        let _ = self.live.set(live);
        Ok(())
    }

    /// The versions as they stand now, for a backup.
    pub(crate) fn snapshot(&self) -> Result<Snapshot, SnapshotError> {
        self.versions.snapshot()
    }

    /// How long a shutdown waits for answers.
    pub(crate) fn drain(&self) -> Duration {
        self.state.lock().running.drain
    }

    /// A document that somebody has sent, with its secrets and what is the file's own to say.
    fn complete(&self, state: &State, document: &mut Value) -> Vec<configuration::Problem> {
        let mut problems = configuration::restore(document, &state.document);
        let own = [("/appliance/data", "appliance.data"), ("/configuration", "configuration")];
        for (pointer, key) in own {
            let (given, known) = (document.pointer(pointer), state.document.pointer(pointer));
            if let Some(given) = given
                && Some(given) != known
            {
                let what =
                    format!("is the file's own: it is changed in {}, before a start", self.file.display());
                let (key, pointer) = (key.to_owned(), pointer.to_owned());
                problems.push(configuration::Problem { line: None, key, pointer, what, allowed: None });
            }
        }
        if problems.is_empty() {
            keep_own(document, &state.document);
        }
        problems
    }

    /// Reads a document, and finds everything that would make trouble.
    fn read(&self, state: &State, document: &Value) -> Result<Config, Vec<configuration::Problem>> {
        let mut config = Config::of(document, None, &self.base)?;
        config.fit_descriptors(doors::raise_descriptor_limit());
        let problems = live::check(document, &state.running, &config);
        if problems.is_empty() { Ok(config) } else { Err(problems) }
    }

    /// Puts a document in force. `state` is that of the appliance, and stays as it is when this fails.
    fn put_in_force(
        &self,
        state: &mut State,
        document: Value,
        mut config: Config,
        origin: Origin,
    ) -> Result<Applied, Problem> {
        let Some(live) = self.live.get() else {
            return Err(Problem::new(Kind::Unavailable, "the appliance is still starting; try again"));
        };
        let changes = configuration::diff(&state.document, &document);
        let internal = |error: &dyn std::fmt::Display| {
            Problem::new(Kind::Internal, format!("the change was taken back: {error}"))
        };
        live.number(&mut config).map_err(|error| internal(&error))?;
        let target = live::effective(&state.running, &config);
        let ready = live.ready(&target).map_err(|error| refused(vec![live::not_ready(&document, &error)]))?;
        live.go(&state.running, &target, ready).map_err(|error| internal(&error))?;
        if changes.is_empty() {
            state.running = target;
            let version = state.summary.version;
            return Ok(Applied { version, changes: Vec::new(), restart: Vec::new(), reverts_at: None });
        }
        let at = wall().0;
        let within = origin.confirm_within;
        let reverts_at =
            within.map(|within| at.saturating_add(u64::try_from(within.as_millis()).unwrap_or(u64::MAX)));
        let draft = Draft {
            at,
            by: origin.by,
            why: origin.why,
            document: document.clone(),
            confirm_until: reverts_at,
        };
        let summary = match self.versions.append(&draft) {
            Ok(summary) => summary,
            Err(error) => {
                let problem = unreadable(&error);
                // Nobody was told, and a restart would not know of it.
                let back = live.ready(&state.running).map_err(|error| internal(&error))?;
                live.go(&target, &state.running, back).map_err(|error| internal(&error))?;
                return Err(problem);
            }
        };
        let version = summary.version;
        state.waiting = within.zip(reverts_at).map(|(within, reverts_at)| Waiting {
            version,
            back_to: state.summary.version,
            until: Instant::now() + within,
            reverts_at,
        });
        let (changes, restart) = shown(changes);
        tracing::info!(
            version,
            by = summary.by,
            why = summary.why,
            changes = changes.len(),
            restart = restart.len(),
            reverts_at,
            "configuration changed"
        );
        (state.summary, state.document, state.running) = (summary, document, target);
        Ok(Applied { version, changes, restart, reverts_at })
    }

    /// Goes back to the version before the one that waits to be confirmed.
    fn revert(&self, state: &mut State, by: &str, why: String) -> Result<Applied, Problem> {
        let Some(waiting) = &state.waiting else {
            return Err(Problem::new(Kind::Conflict, "no version waits to be confirmed"));
        };
        let before = self.versions.get(waiting.back_to).map_err(|error| unreadable(&error))?;
        let Some(before) = before else {
            let what = format!("version {} is gone", waiting.back_to);
            return Err(Problem::new(Kind::NotFound, what));
        };
        let config = self.read(state, &before.document).map_err(refused)?;
        let origin = Origin { by: by.to_owned(), why, confirm_within: None };
        self.put_in_force(state, before.document, config, origin)
    }

    /// Called every second: a version that nobody has confirmed in time goes.
    pub(crate) fn tick(&self) {
        let mut state = self.state.lock();
        let Some(waiting) = state.waiting.as_ref().filter(|waiting| waiting.until <= Instant::now()) else {
            return;
        };
        let version = waiting.version;
        tracing::warn!(version, "configuration not confirmed in time; it is reverted");
        let why = format!("version {version} was not confirmed in time");
        if let Err(problem) = self.revert(&mut state, HOUSE, why) {
            tracing::error!(
                version,
                problem = problem.detail,
                "configuration not reverted; it is tried again"
            );
            if let Some(waiting) = &mut state.waiting {
                waiting.until = Instant::now() + AGAIN;
            }
        }
    }

    /// SIGHUP: in the mode of a file, it is read again.
    pub(crate) fn reload(&self) {
        if self.mode == Mode::Api {
            tracing::warn!(
                "SIGHUP: the configuration is managed over the API; `switchyard config apply FILE` takes a file"
            );
            return;
        }
        match self.read_file() {
            Ok(version) => {
                tracing::info!(version, file = %self.file.display(), "SIGHUP: the file is in force");
            }
            Err(words) => {
                for line in words.lines() {
                    tracing::error!("SIGHUP: {line}");
                }
                tracing::error!("SIGHUP: nothing was changed");
            }
        }
    }

    fn read_file(&self) -> Result<u64, String> {
        let file = self.file.display();
        let Source { mut document, lines, base } =
            Source::load(&self.file).map_err(|error| error.to_string())?;
        let listed = |problems: Vec<configuration::Problem>| {
            let lines: Vec<String> = problems.iter().map(|problem| format!("{file}: {problem}")).collect();
            lines.join("\n")
        };
        Config::of(&document, Some(lines), &base).map_err(listed)?;
        let mut state = self.state.lock();
        for pointer in ["/appliance/data", "/configuration"] {
            if document.pointer(pointer) != state.document.pointer(pointer) {
                tracing::warn!(pointer, "changed in the file: it counts at the next start");
            }
        }
        keep_own(&mut document, &state.document);
        let config = self.read(&state, &document).map_err(listed)?;
        let why = format!("SIGHUP: read from {file}");
        let origin = Origin { by: FILE.to_owned(), why, confirm_within: None };
        let applied =
            self.put_in_force(&mut state, document, config, origin).map_err(|problem| problem.detail)?;
        Ok(applied.version)
    }
}

impl Waiting {
    fn shown(&self) -> Unconfirmed {
        Unconfirmed { version: self.version, reverts_at: self.reverts_at }
    }
}
