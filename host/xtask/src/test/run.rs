//! Runs test executables and reads their results.

use super::FOREIGN;
use super::executable::{Executable, TestKind};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::collections::{BTreeSet, VecDeque};
use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Behaviour tests that run at the same time: most of their time they wait for timers, processes and the disk.
const BEHAVIOUR_THREADS: usize = 4;

/// Maximum time without the begin or end of a test; then the executable is stopped.
const MAX_SILENCE: Duration = Duration::from_secs(900);

/// A test is printed on its own if it took longer.
const SLOW: f64 = 10.0;

/// Number of tests in the table of slow ones.
const SLOW_TESTS_SHOWN: usize = 10;

static PASSED: Mutex<Vec<(&str, OsString)>> = Mutex::new(Vec::new());

/// Passes this environment variable to all tests.
pub(super) fn pass(variable: &'static str, value: impl Into<OsString>) {
    PASSED.lock().unwrap_or_else(PoisonError::into_inner).push((variable, value.into()));
}

/// Which tests to run.
#[derive(Debug, Clone)]
pub(super) struct Selection {
    /// Also tests that need foreign programs.
    pub(super) foreign: bool,
    /// Also tests that are marked as ignored: they take minutes.
    pub(super) ignored: bool,
    /// Only tests whose path contains this.
    pub(super) filter: Option<String>,
}

/// A test that has ended.
#[derive(Debug, Clone)]
struct EndedTest {
    /// With the name of its executable.
    name: String,
    seconds: f64,
}

/// Results of all executables.
#[derive(Debug, Default)]
pub(super) struct Results {
    passed: Vec<EndedTest>,
    ignored: Vec<String>,
    /// Failed tests, and executables that broke off.
    failed: Vec<String>,
    /// Number of tests that were left out.
    filtered_out: u64,
}

impl Results {
    /// Number of tests that passed.
    pub(super) fn passed(&self) -> usize {
        self.passed.len()
    }

    /// Number of tests that were not selected.
    pub(super) fn filtered_out(&self) -> u64 {
        self.filtered_out
    }

    /// Prints the slowest tests, ignored ones, and failures.
    pub(super) fn print(&self) {
        let mut slowest = self.passed.clone();
        slowest.sort_by(|one, other| other.seconds.total_cmp(&one.seconds));
        println!("\nthe slowest tests, in seconds:");
        for test in slowest.iter().take(SLOW_TESTS_SHOWN) {
            println!("{:>8.1}  {}", test.seconds, test.name);
        }
        for name in &self.ignored {
            println!("ignored: {name}");
        }
        for name in &self.failed {
            println!("FAILED: {name}");
        }
    }

    /// An error if a test failed.
    pub(super) fn require_success(&self) -> Result<()> {
        ensure!(
            self.failed.is_empty(),
            "{} of the tests failed: {}",
            self.failed.len(),
            self.failed.join("; ")
        );
        Ok(())
    }

    fn add(&mut self, other: Self) {
        self.passed.extend(other.passed);
        self.ignored.extend(other.ignored);
        self.failed.extend(other.failed);
        self.filtered_out += other.filtered_out;
    }
}

/// Runs executables, two at a time: behaviour tests wait while the crates' tests compute.
pub(super) fn all(executables: Vec<Executable>, selection: &Selection) -> Result<Results> {
    let logs = workspace::target().join("test-logs");
    std::fs::create_dir_all(&logs).with_context(|| format!("creating {}", logs.display()))?;
    let (behaviour, others): (Vec<_>, Vec<_>) =
        executables.into_iter().partition(|one| one.kind == TestKind::Behaviour);
    let waiting = Mutex::new((VecDeque::from(behaviour), VecDeque::from(others)));
    let results = Mutex::new(Results::default());
    let next = |behaviour_first: bool| {
        let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let (behaviour, others) = &mut *waiting;
        let (first, second) = if behaviour_first { (behaviour, others) } else { (others, behaviour) };
        first.pop_front().or_else(|| second.pop_front())
    };
    std::thread::scope(|scope| {
        for behaviour_first in [true, false] {
            let (next, results, logs) = (&next, &results, &logs);
            scope.spawn(move || {
                while let Some(executable) = next(behaviour_first) {
                    let name = executable.name();
                    let ended =
                        run(&executable, selection, &logs.join(format!("{}.log", name.replace(' ', "-"))));
                    let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
                    match ended {
                        Ok(ended) => results.add(ended),
                        Err(error) => {
                            println!("FAILED {name}: {error:#}");
                            results.failed.push(name);
                        }
                    }
                }
            });
        }
    });
    Ok(results.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// Runs an executable; the output of its child processes goes to `log`.
fn run(executable: &Executable, selection: &Selection, log: &Path) -> Result<Results> {
    let begun = Instant::now();
    let mut command = command(executable, selection, log)?;
    let mut child = command.spawn().with_context(|| format!("starting {}", executable.path.display()))?;
    let output = child.stdout.take().context("no standard output")?;
    let (sender, lines) = mpsc::channel();
    let reader = std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            // After a timeout, the receiver is dropped.
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    let mut reading = Reading { name: executable.name(), ..Reading::default() };
    loop {
        match lines.recv_timeout(MAX_SILENCE) {
            Ok(line) => reading.line(&line),
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
            Err(mpsc::RecvTimeoutError::Timeout) => {
                reading.broken = Some(format!("nothing happened for {} s", MAX_SILENCE.as_secs()));
                // It may have exited already.
                let _ = child.kill();
                break;
            }
        }
    }
    let status = child.wait()?;
    drop(lines);
    if reading.broken.is_none() {
        // The reader ends with the output.
        let _ = reader.join();
        if !reading.has_ended {
            reading.broken = Some(format!("ended with {status} before its tests"));
        }
    }
    Ok(reading.results(begun.elapsed(), log))
}

fn command(executable: &Executable, selection: &Selection, log: &Path) -> Result<Command> {
    let log_file = File::create(log).with_context(|| format!("creating {}", log.display()))?;
    // A daemon compiles an uploaded plugin at the lowest priority. Next to tests at a higher priority, it would get no
    // processor for minutes.
    let mut command = Command::new("nice");
    command.args(["-n", "19"]).arg(&executable.path);
    command.current_dir(&executable.folder).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log_file);
    command.env("CARGO_MANIFEST_DIR", &executable.folder).env("INSTA_WORKSPACE_ROOT", workspace::root());
    for (variable, value) in PASSED.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        command.env(variable, value);
    }
    // Results as JSON and with times require a nightly compiler; this variable makes the test harness of a stable one
    // accept the options. It has no other effect, since the executable is already compiled.
    command.env("RUSTC_BOOTSTRAP", "1").args(["-Zunstable-options", "--format=json", "--report-time"]);
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = if executable.kind == TestKind::Behaviour { BEHAVIOUR_THREADS } else { processors };
    command.arg(format!("--test-threads={threads}"));
    if !selection.foreign {
        command.args(["--skip", FOREIGN]);
    }
    if selection.ignored {
        command.arg("--include-ignored");
    }
    command.args(&selection.filter);
    Ok(command)
}

/// The output of an executable so far.
#[derive(Debug, Default)]
struct Reading {
    name: String,
    running: BTreeSet<String>,
    results: Results,
    has_ended: bool,
    broken: Option<String>,
}

impl Reading {
    /// Takes one line: an event of the test harness; other lines are output of tests' child processes.
    fn line(&mut self, line: &str) {
        let Ok(event) = serde_json::from_str::<Value>(line) else { return };
        let (kind, what) = (event["type"].as_str(), event["event"].as_str());
        let test = event["name"].as_str().unwrap_or_default();
        let name = format!("{} {test}", self.name);
        let seconds = event["exec_time"].as_f64().unwrap_or(0.0);
        match (kind, what) {
            (Some("test"), Some("started")) => {
                self.running.insert(test.to_owned());
            }
            (Some("test"), Some("ok")) => {
                self.running.remove(test);
                if seconds > SLOW {
                    println!("ok {name} ({seconds:.0} s)");
                }
                self.results.passed.push(EndedTest { name, seconds });
            }
            (Some("test"), Some("ignored")) => self.results.ignored.push(name),
            (Some("test"), Some("failed")) => {
                self.running.remove(test);
                println!("FAILED {name} ({seconds:.0} s)");
                for text in [&event["stdout"], &event["message"]].into_iter().filter_map(Value::as_str) {
                    println!("{}", text.trim_end());
                }
                self.results.failed.push(name);
            }
            (Some("suite"), Some("ok" | "failed")) => {
                self.has_ended = true;
                self.results.filtered_out = event["filtered_out"].as_u64().unwrap_or(0);
            }
            _ => {}
        }
    }

    fn results(mut self, time: Duration, log: &Path) -> Results {
        if let Some(reason) = &self.broken {
            let running: Vec<_> = self.running.iter().map(String::as_str).collect();
            println!("FAILED {}: {reason}; running were: {}", self.name, running.join(", "));
            self.results.failed.push(format!("{} ({reason})", self.name));
        }
        let (passed, failed) = (self.results.passed.len(), self.results.failed.len());
        if passed + failed > 0 {
            println!("{}: {passed} passed, {failed} failed ({:.1} s)", self.name, time.as_secs_f64());
        }
        if failed > 0 {
            println!("{}: output of its child processes: {}", self.name, log.display());
        }
        self.results
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(lines: &[&str]) -> Reading {
        let mut reading = Reading { name: "gsm".to_owned(), ..Reading::default() };
        for line in lines {
            reading.line(line);
        }
        reading
    }

    #[test]
    fn results_are_read_from_events() {
        let reading = reading(&[
            r#"{ "type": "suite", "event": "started", "test_count": 3 }"#,
            r#"{ "type": "test", "event": "started", "name": "a::b" }"#,
            r#"{ "type": "test", "name": "a::b", "event": "ok", "exec_time": 0.5 }"#,
            "something that a child process printed",
            r#"{ "type": "test", "name": "c", "event": "failed", "exec_time": 0.1, "stdout": "why" }"#,
            r#"{ "type": "test", "name": "d", "event": "ignored" }"#,
            r#"{ "type": "suite", "event": "failed", "passed": 1, "failed": 1, "ignored": 1, "filtered_out": 7 }"#,
        ]);
        assert!(reading.has_ended && reading.running.is_empty());
        let results = reading.results(Duration::from_secs(1), Path::new("log"));
        assert_eq!((results.passed(), results.filtered_out()), (1, 7));
        assert_eq!(
            (results.failed.as_slice(), results.ignored.as_slice()),
            (&["gsm c".to_owned()][..], &["gsm d".to_owned()][..])
        );
        assert!(results.require_success().is_err());
    }

    #[test]
    fn an_executable_that_breaks_off_has_failed() {
        let mut reading = reading(&[r#"{ "type": "test", "event": "started", "name": "a" }"#]);
        assert!(!reading.has_ended);
        reading.broken = Some("killed".to_owned());
        assert!(reading.results(Duration::ZERO, Path::new("log")).require_success().is_err());
    }
}
