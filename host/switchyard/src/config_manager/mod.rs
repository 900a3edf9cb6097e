//! Manages the active configuration and applies changes to the running daemon.
//!
//! A change is validated, new names get peer ids, and new addresses are bound. Then the differences are applied, and
//! the version is stored. When a version is reported to the caller, it is active and durable. If a step fails, nothing
//! changes.

mod api;
mod runtime;
mod startup;

pub(crate) use runtime::{RuntimeComponents, TunableSettings};
pub(crate) use startup::{StartupConfig, describe_next_start, load_configuration};

use crate::config::{Config, ConfigFile, ManagementMode, keys};
use ::api::{
    ConfigChangeKindView, ConfigChangeView, ConfigurationChangeResult, FieldProblem, UnconfirmedVersionView,
};
use admin::{Problem, ProblemKind};
use configuration::{
    ChangeKind, ConfigChange, ConfigVersionSummary, VersionDraft, VersionStore, VersionStoreError,
};
use engine::Event;
use model::Timestamp;
use parking_lot::Mutex;
use ports::EventSink as _;
use serde_json::Value;
use snapshot::{Snapshot, SnapshotError};
use startup::{BY_DAEMON, BY_FILE, FileVersion, keep_file_only_keys};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// A version that is reverted unless it is confirmed.
struct UnconfirmedVersion {
    version: u64,
    back_to: u64,
    /// The deadline, by the monotonic clock.
    until: Instant,
    reverts_at: u64,
}

struct State {
    summary: ConfigVersionSummary,
    document: Value,
    /// The active configuration. It differs from the document in changes that need a restart.
    running: Config,
    unconfirmed: Option<UnconfirmedVersion>,
}

/// Author and reason of a change.
struct ChangeOrigin {
    by: String,
    why: String,
    confirm_within: Option<Duration>,
}

/// Manages the active configuration and its versions.
pub(crate) struct ConfigManager {
    file: PathBuf,
    base: PathBuf,
    mode: ManagementMode,
    versions: Arc<VersionStore>,
    /// The document at startup.
    startup_document: Value,
    state: Mutex<State>,
    live: OnceLock<RuntimeComponents>,
    /// The version taken from the file at startup, until it is active.
    from_file: Mutex<Option<FileVersion>>,
}

/// Delay before a failed revert is retried.
const REVERT_RETRY_INTERVAL: Duration = Duration::from_secs(30);

/// Converts problems of a document into field errors of the API.
fn field_errors(problems: Vec<configuration::ConfigProblem>) -> Vec<FieldProblem> {
    let errors = problems.into_iter().map(|problem| FieldProblem {
        pointer: problem.pointer,
        what: problem.message,
        allowed: problem.allowed,
    });
    errors.collect()
}

fn invalid_document(problems: Vec<configuration::ConfigProblem>) -> Problem {
    let detail = match &problems[..] {
        [one] => one.to_string(),
        [first, rest @ ..] => format!("{first}; and {} more, all listed in `problems`", rest.len()),
        [] => "the document is invalid".to_owned(),
    };
    Problem::new(ProblemKind::Unprocessable, detail).with_problems(field_errors(problems))
}

fn version_store_problem(error: &VersionStoreError) -> Problem {
    tracing::error!(%error, "configuration version store failed");
    Problem::new(ProblemKind::Internal, "the configuration versions cannot be read or written; see the log")
}

/// Converts differences into API views: secrets hidden, effects added. Also returns the pointers that need a restart.
fn change_views(mut changes: Vec<ConfigChange>) -> (Vec<ConfigChangeView>, Vec<String>) {
    configuration::hide_changes(keys(), &mut changes);
    let mut restart = Vec::new();
    let mut views = Vec::new();
    for change in changes {
        let effect = configuration::effect_of(keys(), &change);
        if effect.needs_restart() {
            restart.push(change.pointer());
        }
        let what = match change.kind() {
            ChangeKind::Added => ConfigChangeKindView::Added,
            ChangeKind::Changed => ConfigChangeKindView::Changed,
            ChangeKind::Removed => ConfigChangeKindView::Removed,
        };
        let (pointer, effect) = (change.pointer(), effect.description().to_owned());
        views.push(ConfigChangeView { pointer, what, effect, before: change.before, after: change.after });
    }
    (views, restart)
}

/// Notifies the event sinks of the version in force.
fn notify_sinks(live: &RuntimeComponents, summary: &ConfigVersionSummary) {
    if let Some(notice) = live.wanted_notices.configuration(summary) {
        live.core.push(vec![Event::Notice(notice)]);
    }
}

impl ConfigManager {
    fn new(startup: StartupConfig, config: Config) -> Self {
        let StartupConfig { file, base, mode, versions, summary, document, warnings, from_file } = startup;
        for warning in warnings {
            tracing::warn!(file = %file.display(), version = summary.version, "{warning}");
        }
        let state = State { summary, document: document.clone(), running: config, unconfirmed: None };
        Self {
            file,
            base,
            mode,
            versions,
            startup_document: document,
            state: Mutex::new(state),
            live: OnceLock::new(),
            from_file: Mutex::new(from_file),
        }
    }

    /// Stores the startup configuration, which is active now, and allows changes from here on.
    pub(crate) fn open(&self, live: RuntimeComponents) -> Result<(), VersionStoreError> {
        if let Some(from_file) = self.from_file.lock().take() {
            from_file.record(&self.versions)?;
        }
        // After a crash, the notice of this version may be missing.
        notify_sinks(&live, &self.state.lock().summary);
        let _ = self.live.set(live);
        Ok(())
    }

    /// Takes a snapshot of the version store for a backup.
    pub(crate) fn snapshot(&self) -> Result<Snapshot, SnapshotError> {
        self.versions.snapshot()
    }

    /// Maximum time that a shutdown waits for outstanding responses.
    pub(crate) fn shutdown_timeout(&self) -> Duration {
        self.state.lock().running.appliance.shutdown_timeout
    }

    /// Restores secrets and file-only keys in a document that was sent to the API. Returns the problems found.
    fn restore_secrets(&self, state: &State, document: &mut Value) -> Vec<configuration::ConfigProblem> {
        let mut problems = configuration::restore(keys(), document, &state.document);
        let own = [("/appliance/data", "appliance.data"), ("/configuration", "configuration")];
        for (pointer, key) in own {
            let (given, known) = (document.pointer(pointer), state.document.pointer(pointer));
            if let Some(given) = given
                && Some(given) != known
            {
                let message =
                    format!("can only be changed in the file {}, before a start", self.file.display());
                let (key, pointer) = (key.to_owned(), pointer.to_owned());
                problems.push(configuration::ConfigProblem {
                    line: None,
                    key,
                    pointer,
                    message,
                    allowed: None,
                });
            }
        }
        if problems.is_empty() {
            keep_file_only_keys(document, &state.document);
        }
        problems
    }

    /// Validates a document, including checks against the running configuration.
    fn read(&self, state: &State, document: &Value) -> Result<Config, Vec<configuration::ConfigProblem>> {
        let mut config = Config::from_document(document, None, &self.base)?;
        config.fit_descriptors(ports::raise_descriptor_limit());
        let problems = runtime::check(document, &state.running, &config);
        if problems.is_empty() { Ok(config) } else { Err(problems) }
    }

    /// Applies a configuration to the running daemon. On failure, the daemon is unchanged. Returns the configuration
    /// that is then running.
    fn bring_into_force(
        &self,
        state: &State,
        document: &Value,
        config: &mut Config,
    ) -> Result<(&RuntimeComponents, Config), Problem> {
        let Some(live) = self.live.get() else {
            return Err(Problem::new(ProblemKind::Unavailable, "the appliance is still starting; try again"));
        };
        let internal = |error: &dyn std::fmt::Display| {
            Problem::new(ProblemKind::Internal, format!("the change was undone: {error}"))
        };
        live.assign_peer_ids(config).map_err(|error| internal(&error))?;
        let target = runtime::effective(&state.running, config);
        let listeners = live
            .bind_listeners(&target)
            .map_err(|error| invalid_document(vec![runtime::listener_problem(document, &error)]))?;
        live.apply(&state.running, &target, listeners).map_err(|error| internal(&error))?;
        Ok((live, target))
    }

    /// Applies the newest version that the leader of partition 0 has written.
    pub(crate) fn take_over(&self) -> Result<(), String> {
        let mut state = self.state.lock();
        let newest = self.versions.newest().map_err(|error| error.to_string())?;
        let Some(mut newest) = newest.filter(|newest| newest.summary != state.summary) else { return Ok(()) };
        keep_file_only_keys(&mut newest.document, &state.document);
        let mut config = self.read(&state, &newest.document).map_err(|problems| {
            let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
            lines.join("; ")
        })?;
        let (live, target) = self
            .bring_into_force(&state, &newest.document, &mut config)
            .map_err(|problem| problem.0.detail)?;
        tracing::info!(version = newest.summary.version, "configuration of the cluster applied");
        notify_sinks(live, &newest.summary);
        (state.summary, state.document, state.running) = (newest.summary, newest.document, target);
        Ok(())
    }

    /// Applies and stores a document. On failure, `state` and the running daemon are unchanged.
    fn apply_document(
        &self,
        state: &mut State,
        document: Value,
        mut config: Config,
        origin: ChangeOrigin,
    ) -> Result<ConfigurationChangeResult, Problem> {
        let changes = configuration::diff(keys(), &state.document, &document);
        let internal = |error: &dyn std::fmt::Display| {
            Problem::new(ProblemKind::Internal, format!("the change was undone: {error}"))
        };
        let (live, target) = self.bring_into_force(state, &document, &mut config)?;
        if changes.is_empty() {
            state.running = target;
            let version = state.summary.version;
            return Ok(ConfigurationChangeResult {
                version,
                changes: Vec::new(),
                restart: Vec::new(),
                reverts_at: None,
            });
        }
        let at = Timestamp::now().0;
        let within = origin.confirm_within;
        let reverts_at =
            within.map(|within| at.saturating_add(u64::try_from(within.as_millis()).unwrap_or(u64::MAX)));
        let draft = VersionDraft {
            at,
            by: origin.by,
            why: origin.why,
            document: document.clone(),
            confirm_until: reverts_at,
        };
        let summary = match self.versions.append(&draft) {
            Ok(summary) => summary,
            Err(error) => {
                let problem = version_store_problem(&error);
                // The version was not reported to the caller, and would be unknown after a restart.
                let listeners = live.bind_listeners(&state.running).map_err(|error| internal(&error))?;
                live.apply(&target, &state.running, listeners).map_err(|error| internal(&error))?;
                return Err(problem);
            }
        };
        let version = summary.version;
        state.unconfirmed = within.zip(reverts_at).map(|(within, reverts_at)| UnconfirmedVersion {
            version,
            back_to: state.summary.version,
            until: Instant::now() + within,
            reverts_at,
        });
        let (changes, restart) = change_views(changes);
        tracing::info!(
            version,
            by = summary.by,
            why = summary.why,
            changes = changes.len(),
            restart = restart.len(),
            reverts_at,
            "configuration changed"
        );
        notify_sinks(live, &summary);
        (state.summary, state.document, state.running) = (summary, document, target);
        Ok(ConfigurationChangeResult { version, changes, restart, reverts_at })
    }

    /// Reverts to the version before the unconfirmed one.
    fn revert(&self, state: &mut State, by: &str, why: String) -> Result<ConfigurationChangeResult, Problem> {
        let Some(unconfirmed) = &state.unconfirmed else {
            return Err(Problem::new(ProblemKind::Conflict, "no version waits to be confirmed"));
        };
        let before = self.versions.get(unconfirmed.back_to).map_err(|error| version_store_problem(&error))?;
        let Some(before) = before else {
            let what = format!("version {} was deleted", unconfirmed.back_to);
            return Err(Problem::new(ProblemKind::NotFound, what));
        };
        let config = self.read(state, &before.document).map_err(invalid_document)?;
        let origin = ChangeOrigin { by: by.to_owned(), why, confirm_within: None };
        self.apply_document(state, before.document, config, origin)
    }

    /// Reverts an unconfirmed version whose deadline has passed. Called every second.
    pub(crate) fn tick(&self) {
        let mut state = self.state.lock();
        let Some(unconfirmed) =
            state.unconfirmed.as_ref().filter(|unconfirmed| unconfirmed.until <= Instant::now())
        else {
            return;
        };
        let version = unconfirmed.version;
        tracing::warn!(version, "configuration not confirmed in time, reverting it");
        let why = format!("version {version} was not confirmed in time");
        if let Err(problem) = self.revert(&mut state, BY_DAEMON, why) {
            tracing::error!(version, problem = problem.detail, "configuration revert failed, retrying");
            if let Some(unconfirmed) = &mut state.unconfirmed {
                unconfirmed.until = Instant::now() + REVERT_RETRY_INTERVAL;
            }
        }
    }

    /// Handles SIGHUP: reads the file again if the file manages the configuration.
    pub(crate) fn reload(&self) {
        if self.mode == ManagementMode::Api {
            tracing::warn!(
                "SIGHUP ignored: the configuration is managed over the API; to apply a file, run `switchyard config apply FILE`"
            );
            return;
        }
        match self.read_file() {
            Ok(version) => {
                tracing::info!(version, file = %self.file.display(), "configuration file reloaded");
            }
            Err(words) => {
                for line in words.lines() {
                    tracing::error!("configuration file invalid: {line}");
                }
                tracing::error!("configuration file not reloaded, nothing has changed");
            }
        }
    }

    fn read_file(&self) -> Result<u64, String> {
        let file = self.file.display();
        let ConfigFile { mut document, lines, base } =
            ConfigFile::load(&self.file).map_err(|error| error.to_string())?;
        let listed = |problems: Vec<configuration::ConfigProblem>| {
            let lines: Vec<String> = problems.iter().map(|problem| format!("{file}: {problem}")).collect();
            lines.join("\n")
        };
        Config::from_document(&document, Some(lines), &base).map_err(listed)?;
        let mut state = self.state.lock();
        for pointer in ["/appliance/data", "/configuration", "/cluster"] {
            if document.pointer(pointer) != state.document.pointer(pointer) {
                tracing::warn!(pointer, "key changed in the file, takes effect at the next start");
            }
        }
        keep_file_only_keys(&mut document, &state.document);
        let config = self.read(&state, &document).map_err(listed)?;
        let why = format!("SIGHUP: read from {file}");
        let origin = ChangeOrigin { by: BY_FILE.to_owned(), why, confirm_within: None };
        let applied =
            self.apply_document(&mut state, document, config, origin).map_err(|problem| problem.0.detail)?;
        Ok(applied.version)
    }
}

impl UnconfirmedVersion {
    fn view(&self) -> UnconfirmedVersionView {
        UnconfirmedVersionView { version: self.version, reverts_at: self.reverts_at }
    }
}
