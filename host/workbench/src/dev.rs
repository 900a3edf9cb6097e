//! `switchyard plugin dev`: builds and tests a plugin's folder after each change, and tries it in shadow.

use crate::component::Component;
use crate::hooks_api::{BindingArgs, HooksApi};
use crate::manifest::Manifest;
use crate::{WorkbenchError, build, case_check, cases, print_result};
use clap::Args;
use cli::format::timestamp;
use client::ConnectionArgs;
use model::Timestamp;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Interval between two scans of the folder.
const POLL: Duration = Duration::from_millis(300);

/// The folder, and the appliance for trials.
#[derive(Debug, Args)]
pub struct DevArgs {
    /// The plugin's folder.
    #[arg(default_value = ".")]
    folder: PathBuf,
    /// The policy document of the trial; default: the document of [given] in cases.toml, or policy.txt in the folder, or the
    /// live document.
    #[arg(long)]
    policy: Option<PathBuf>,
    /// Other settings of the trial's binding, as KEY=VALUE: deadline-ms=50, grants.kv=4096 …
    #[arg(long = "set", value_name = "KEY=VALUE")]
    settings: Vec<String>,
    /// Accept a policy that names unknown peers or pools, and a component whose imports are not all granted.
    #[arg(long)]
    force: bool,
    /// Number of rounds; default: until Ctrl-C.
    #[arg(long)]
    rounds: Option<u64>,
    /// The appliance. Without --url or SWITCHYARD_URL there are no trials.
    #[command(flatten)]
    connection: ConnectionArgs,
}

impl DevArgs {
    /// Runs a round at once, and another one after each change of a file.
    pub(crate) fn run(&self) -> Result<String, WorkbenchError> {
        // A wrong folder cannot be corrected by an edit in it.
        Manifest::read(&self.folder)?;
        let watched = WatchedFiles { folder: &self.folder, policy: self.policy.as_deref() };
        let mut rounds = Rounds { args: self, tried: None };
        let mut number = 0;
        let mut seen = watched.state();
        loop {
            number += 1;
            print_result(&rounds.run(number));
            if self.rounds.is_some_and(|most| number >= most) {
                return Ok(String::new());
            }
            seen = watched.changed(&seen);
        }
    }

    fn tries(&self) -> bool {
        let is_set = std::env::var_os("SWITCHYARD_URL").is_some_and(|url| !url.is_empty());
        self.connection.has_url() || is_set
    }

    /// The policy document of the folder.
    fn policy(&self) -> Result<Option<String>, WorkbenchError> {
        let read = |path: &Path| std::fs::read_to_string(path).map_err(WorkbenchError::file(path)).map(Some);
        if let Some(path) = &self.policy {
            return read(path);
        }
        let (cases, policy) = (self.folder.join("cases.toml"), self.folder.join("policy.txt"));
        if cases.exists() {
            let given = cases::read_given(&cases)?.policy;
            if !given.is_empty() {
                return Ok(Some(given));
            }
        }
        if policy.exists() { read(&policy) } else { Ok(None) }
    }
}

/// The files whose changes start a round.
struct WatchedFiles<'a> {
    folder: &'a Path,
    policy: Option<&'a Path>,
}

/// Time of the last change and size of each file.
type FileStates = BTreeMap<PathBuf, (Option<SystemTime>, u64)>;

impl WatchedFiles<'_> {
    fn state(&self) -> FileStates {
        let mut files = Vec::new();
        // Unreadable files fail in the build, with a message.
        let _ = build::collect_files(self.folder, &mut files);
        // Cargo writes it during the first build.
        files.retain(|file| file.file_name().is_some_and(|name| name != "Cargo.lock"));
        files.extend(self.policy.map(Path::to_owned));
        let state = |file: PathBuf| {
            let found = std::fs::metadata(&file).ok()?;
            Some((file, (found.modified().ok(), found.len())))
        };
        files.into_iter().filter_map(state).collect()
    }

    /// Waits for a change, and then until an interval passes without one: an editor may write several files.
    fn changed(&self, seen: &FileStates) -> FileStates {
        let mut last = seen.clone();
        loop {
            std::thread::park_timeout(POLL);
            let now = self.state();
            if now == last && now != *seen {
                return now;
            }
            last = now;
        }
    }
}

struct Rounds<'a> {
    args: &'a DevArgs,
    /// Version and policy document of the last trial.
    tried: Option<(String, Option<String>)>,
}

impl Rounds<'_> {
    /// Builds, tests and tries the plugin. Returns a block of lines; an error is one of them.
    fn run(&mut self, number: u64) -> String {
        let mut block = format!("{}, round {number}\n", timestamp(&Timestamp::now()));
        let mut line = |title: &str, result: Result<String, WorkbenchError>| {
            let is_good = result.is_ok();
            let text = result.unwrap_or_else(|error| failure(&error));
            block.push_str(&format!("{title:<8}{}\n", text.trim_end().replace('\n', "\n        ")));
            is_good
        };
        let built = build(&self.args.folder, None);
        let component = built.as_ref().ok().map(|output| output.path.clone());
        line(
            "build",
            built.map(|output| {
                let did = if output.up_to_date { "up to date" } else { "built" };
                format!("{}: {did}, version {}", output.path.display(), output.version)
            }),
        );
        let Some(component) = component else { return block };
        let passed = line("cases", self.test(&component));
        if !self.args.tries() {
            return block;
        }
        if passed {
            line("shadow", self.trial(&component));
        } else {
            line("shadow", Ok("not started, because of the cases".to_owned()));
        }
        block
    }

    fn test(&self, component: &Path) -> Result<String, WorkbenchError> {
        let path = self.args.folder.join("cases.toml");
        if !path.exists() {
            return Ok(format!("none; {} does not exist", path.display()));
        }
        let summary = case_check::run_cases(component, &cases::read(&path)?)?;
        Ok(summary.lines().last().unwrap_or_default().to_owned())
    }

    /// Uploads the component and starts a trial in shadow, unless it runs already.
    fn trial(&mut self, component: &Path) -> Result<String, WorkbenchError> {
        let name = Manifest::read(&self.args.folder)?.name;
        let found = Component::read(component)?;
        let (hook, _) = found.hook()?;
        let title = format!("{}: {name} {}", hook.name(), found.version);
        let policy = self.args.policy()?;
        let trial = Some((found.version.clone(), policy.clone()));
        if self.tried == trial {
            return Ok(format!("{title}, unchanged"));
        }
        let reference = format!("{name}@{}", found.version);
        let request = BindingArgs::of(reference, &self.args.settings, self.args.force).request()?;
        let request = api::ActivationRequest { policy: request.policy.clone().or(policy), ..request };
        let hooks = HooksApi::connect(self.args.connection.clone())?;
        hooks.push(component, &name, None)?;
        hooks.start_trial(hook, request, None)?;
        self.tried = trial;
        Ok(title)
    }
}

/// An error as a block of lines; of cases, only the failed ones.
fn failure(error: &WorkbenchError) -> String {
    match error {
        WorkbenchError::CasesFailed { text, failed, cases } => {
            let lines = text.lines().filter(|line| !line.starts_with("ok "));
            let lines: String = lines.map(|line| format!("\n{line}")).collect();
            format!("{failed} of {cases} failed{lines}")
        }
        error => format!("failed: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_a_source_is_seen_and_one_of_a_result_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::create_dir(path("src")).unwrap();
        std::fs::write(path("src/lib.rs"), "one").unwrap();
        let policy = tempfile::NamedTempFile::new().unwrap();
        let watched = WatchedFiles { folder: folder.path(), policy: Some(policy.path()) };
        let mut before = watched.state();
        std::fs::create_dir(path("build")).unwrap();
        for result in ["first.wasm", "build/stamp", "Cargo.lock"] {
            std::fs::write(path(result), "result").unwrap();
            assert_eq!(watched.state(), before, "{result}");
        }
        for source in ["src/lib.rs", "cases.toml", "src/new.rs"] {
            std::fs::write(path(source), "another text").unwrap();
            assert_eq!(watched.changed(&before), watched.state(), "{source}");
            before = watched.state();
        }
        std::fs::write(policy.path(), "route 86 north").unwrap();
        assert_ne!(watched.state(), before);
    }

    #[test]
    fn only_failed_cases_are_shown() {
        let text = "ok    one\nFAIL  two\n      asked     x\n".to_owned();
        let shown = failure(&WorkbenchError::CasesFailed { text, failed: 1, cases: 2 });
        assert_eq!(shown, "1 of 2 failed\nFAIL  two\n      asked     x");
    }
}
