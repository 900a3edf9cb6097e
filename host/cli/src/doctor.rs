//! `switchyard doctor`: checks the machine, the configuration and the appliance, and prints remedies.

mod api_checks;
mod host_checks;

use crate::attention::{Finding, Level};
use crate::context::{CliContext, ConfigFacts};
use crate::format::padded;
use crate::output::{Failure, Output, Streams};
use clap::Args;
use client::ConnectionArgs;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const AFTER_HELP: &str = "\
Exit status:
  0  no errors; there may be warnings
  2  the command line is wrong
  3  at least one finding is an `error`

Examples:
  switchyard doctor --config /etc/switchyard/switchyard.toml
  switchyard doctor --config switchyard.toml --offline      # before the first start
  switchyard doctor --json | jq '.findings[] | select(.level != \"ok\")'";

/// The default path of the configuration file.
const CONFIGURATION: &str = "/etc/switchyard/switchyard.toml";

/// Arguments of `doctor`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct DoctorCommand {
    /// The configuration file; by default SWITCHYARD_CONFIG, or /etc/switchyard/switchyard.toml if it exists. Without a
    /// file, only the running appliance is checked.
    #[arg(long)]
    config: Option<PathBuf>,
    /// Check only the machine and the configuration, and do not connect to the appliance.
    #[arg(long)]
    offline: bool,
    #[command(flatten)]
    connection: ConnectionArgs,
    /// Print JSON, for programs.
    #[arg(long, global = true)]
    json: bool,
}

impl DoctorCommand {
    pub(crate) fn run(self, streams: Streams, context: &CliContext) -> ExitCode {
        let output = Output::without_tables(streams, self.json);
        let found = self.findings(&output, context);
        let done = found.and_then(|found| print_findings(&output, &found));
        output.finish(done)
    }

    fn findings(self, output: &Output, context: &CliContext) -> Result<Vec<Finding>, Failure> {
        let set = std::env::var_os("SWITCHYARD_CONFIG").filter(|path| !path.is_empty()).map(PathBuf::from);
        let usual = Some(PathBuf::from(CONFIGURATION)).filter(|path| path.exists());
        let path = self.config.or(set).or(usual);
        if path.is_none() && self.offline {
            let what = "there is no configuration to check: use --config FILE, or omit --offline";
            return Err(Failure::Usage(what.to_owned()));
        }
        let mut found = Vec::new();
        let facts = path.and_then(|path| configuration(&path, context, &mut found));
        let connection = match &facts {
            Some(facts) => self.connection.with_defaults(&facts.url, &facts.token_file),
            None => self.connection,
        };
        let is_running =
            !self.offline && api_checks::check(connection, context.version, output.now(), &mut found);
        if let Some(facts) = &facts {
            host_checks::check(facts, is_running, output.now(), &mut found);
            if self.offline {
                host_checks::archive(facts, &mut found);
            }
        }
        Ok(found)
    }
}

/// Reads the configuration, as `switchyard check` does.
fn configuration(path: &Path, context: &CliContext, found: &mut Vec<Finding>) -> Option<ConfigFacts> {
    let name = path.display();
    match (context.read)(path) {
        Ok(facts) => {
            let what = format!("{name}: valid: {}", facts.summary);
            found.push(Finding::new(Level::Ok, "configuration", what, ""));
            Some(facts)
        }
        Err(invalid) => {
            for line in invalid.lines().filter(|line| !line.trim().is_empty()) {
                let remedy = format!("correct {name}, then run: switchyard check --config {name}");
                found.push(Finding::new(Level::Error, "configuration", line.trim(), remedy));
            }
            None
        }
    }
}

fn print_findings(output: &Output, found: &[Finding]) -> Result<(), Failure> {
    let count = |level: Level| found.iter().filter(|finding| finding.level == level).count();
    let (errors, warnings) = (count(Level::Error), count(Level::Warning));
    if output.json {
        let findings: Vec<_> = found.iter().map(Finding::json).collect();
        output.document(&json!({
            "ok": errors == 0, "errors": errors, "warnings": warnings, "findings": findings,
        }))?;
    } else {
        for finding in found {
            let level = output.paint(finding.level.tone(), &padded(finding.level.name(), 7));
            let what = client::terminal::visible(&finding.text);
            output.line(&format!("{level}  {}  {what}", padded(finding.about, 13)))?;
            if !finding.remedy.is_empty() {
                let remedy = client::terminal::visible(&finding.remedy);
                output.line(&format!("{}  -> {remedy}", padded("", 22)))?;
            }
        }
    }
    match errors {
        0 => Ok(()),
        errors => Err(Failure::ProblemsFound(format!("errors: {errors}, warnings: {warnings}"))),
    }
}

#[cfg(test)]
mod tests {
    use crate::fake_api::{FakeApi, NOW, VERSION, run};
    use crate::fixtures::{archive, finding, link, queue, status};
    use admin::{Problem, ProblemKind};
    use api::{
        ArchivePumpView, AttentionSeverity, AttentionSubjectKind, AttentionView, Health, LinkPhase, LinkRole,
        PumpState, Readiness, StatusTotals, StatusView,
    };
    use serde_json::{Value, json};
    use std::net::TcpListener;
    use std::os::unix::fs::PermissionsExt;
    use std::path::{Path, PathBuf};

    /// Writes a configuration file for the tests' `CliContext`.
    fn configuration(folder: &Path, more: &Value) -> PathBuf {
        let mut facts = json!({
            "data": folder.join("data"), "watermark": 1, "listens": { "smpp": "127.0.0.1:0" }, "connections": 10,
            "url": "http://127.0.0.1:1",
        });
        facts.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let path = folder.join("switchyard.json");
        std::fs::write(&path, facts.to_string()).unwrap();
        path
    }

    /// Sets the modification time of a file.
    fn written(file: &Path, at: u64) {
        let file = std::fs::File::options().write(true).open(file).unwrap();
        file.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_millis(at)).unwrap();
    }

    fn data(folder: &Path) -> PathBuf {
        let data = folder.join("data");
        std::fs::create_dir(&data).unwrap();
        std::fs::set_permissions(&data, std::fs::Permissions::from_mode(0o700)).unwrap();
        std::fs::write(data.join("token"), "t".repeat(64)).unwrap();
        std::fs::set_permissions(data.join("token"), std::fs::Permissions::from_mode(0o600)).unwrap();
        written(&data.join("token"), NOW - 1_000);
        data
    }

    fn findings(arguments: &[&str], url: &str) -> (u8, Vec<(String, String, String)>) {
        let done = run(url, &[arguments, &["--json"]].concat());
        let document: Value = serde_json::from_str(&done.out).unwrap_or_else(|_| panic!("{done:?}"));
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let findings = document["findings"].as_array().unwrap().iter();
        let findings = findings
            .map(|found| (word(&found["level"]), word(&found["about"]), word(&found["what"])))
            .collect();
        (done.code, findings)
    }

    fn level<'a>(found: &'a [(String, String, String)], about: &str) -> Vec<&'a str> {
        found.iter().filter(|finding| finding.1 == about).map(|finding| finding.0.as_str()).collect()
    }

    #[test]
    fn a_healthy_machine_has_only_ok_findings() {
        let folder = tempfile::tempdir().unwrap();
        data(folder.path());
        let path = configuration(
            folder.path(),
            &json!({
                "journal": "the journal has the records 1 to 7", "tables": "whole", "text_keys": "2 keys of texts",
            }),
        );
        let (code, found) = findings(&["doctor", "--offline", "--config", path.to_str().unwrap()], "");
        assert_eq!(code, 0, "{found:?}");
        for about in
            ["configuration", "data", "journal", "tables", "text keys", "disk", "token", "clock", "ports"]
        {
            assert_eq!(level(&found, about), ["ok"], "{about}: {found:?}");
        }
        let done = run("", &["doctor", "--offline", "--config", path.to_str().unwrap()]);
        assert!(done.out.starts_with("ok       configuration  "), "{done:?}");
    }

    #[test]
    fn problems_of_the_machine_are_reported() {
        let folder = tempfile::tempdir().unwrap();
        let data = data(folder.path());
        std::fs::set_permissions(&data, std::fs::Permissions::from_mode(0o755)).unwrap();
        std::fs::write(data.join("token"), "short").unwrap();
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        // A database address without a server: the port was free a moment ago.
        let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let path = configuration(
            folder.path(),
            &json!({
                "watermark": u64::MAX, "listens": { "smpp": taken.local_addr().unwrap() }, "connections": 1_u64 << 40,
                "archive": closed.to_string(), "journal": "damaged: record 5", "tables": "damaged: a page",
                "text_keys": "damaged: another root key",
            }),
        );
        let (code, found) = findings(&["doctor", "--offline", "--config", path.to_str().unwrap()], "");
        assert_eq!(code, 3, "{found:?}");
        assert_eq!(level(&found, "data"), ["warning"]);
        for about in ["journal", "tables", "text keys", "disk", "token", "ports", "archive"] {
            assert_eq!(level(&found, about), ["error"], "{about}: {found:?}");
        }
        assert_eq!(level(&found, "open files"), ["warning"]);
        let port = taken.local_addr().unwrap().port().to_string();
        assert!(found.iter().any(|finding| finding.1 == "ports" && finding.2.contains(&port)));
    }

    #[test]
    fn a_machine_before_the_first_start_is_ok() {
        let folder = tempfile::tempdir().unwrap();
        let path = configuration(folder.path(), &json!({}));
        let (code, found) = findings(&["doctor", "--offline", "--config", path.to_str().unwrap()], "");
        assert_eq!(code, 0, "{found:?}");
        assert_eq!((level(&found, "data"), level(&found, "token")), (vec!["ok"], vec!["ok"]), "{found:?}");
        let path = configuration(folder.path(), &json!({ "data": path.join("data") }));
        let (code, found) = findings(&["doctor", "--offline", "--config", path.to_str().unwrap()], "");
        assert_eq!((code, level(&found, "data")), (3, vec!["error"]), "{found:?}");
    }

    #[test]
    fn a_clock_that_went_back_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let data = data(folder.path());
        written(&data.join("token"), NOW + 3_600_000);
        let path = configuration(folder.path(), &json!({}));
        let (code, found) = findings(&["doctor", "--offline", "--config", path.to_str().unwrap()], "");
        assert_eq!((code, level(&found, "clock")), (3, vec!["error"]), "{found:?}");
    }

    #[test]
    fn a_wrong_configuration_is_reported_line_by_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("wrong.json");
        std::fs::write(&path, "no\u{1b}").unwrap();
        let done = run("", &["doctor", "--offline", "--config", path.to_str().unwrap()]);
        assert_eq!((done.code, done.error.as_str()), (3, "switchyard: errors: 1, warnings: 0\n"));
        assert!(done.out.starts_with("error    configuration  ") && !done.out.contains('\u{1b}'), "{done:?}");
    }

    fn health() -> Health {
        Health { status: "ok".to_owned() }
    }

    fn api(
        version: &str,
        phase: LinkPhase,
        archive: &ArchivePumpView,
        attention: &[AttentionView],
    ) -> FakeApi {
        let status =
            StatusView { version: version.to_owned(), disk_free: 1, ..status(StatusTotals::default()) };
        FakeApi::default()
            .with("GET /v1/health", 200, &health())
            .with("GET /v1/status", 200, &status)
            .with("GET /v1/ready", 200, &Readiness::of(Vec::new()))
            .with("GET /v1/queues", 200, &[queue("upstream")])
            .with("GET /v1/links", 200, &[link("upstream", LinkRole::Client, phase)])
            .with("GET /v1/archive", 200, archive)
            .with("GET /v1/attention", 200, &attention)
    }

    #[test]
    fn a_running_appliance_is_checked() {
        let api = api(VERSION, LinkPhase::Bound, &archive(PumpState::Up, 0), &[]);
        let url = api.start();
        let (code, found) = findings(&["doctor"], &url);
        assert_eq!(code, 0, "{found:?}");
        for about in ["appliance", "token", "version", "links", "uncertain", "archive"] {
            assert_eq!(level(&found, about), ["ok"], "{about}: {found:?}");
        }
        // The running appliance itself uses these ports.
        let folder = tempfile::tempdir().unwrap();
        data(folder.path());
        let port = url.strip_prefix("http://").unwrap();
        let path = configuration(folder.path(), &json!({ "listens": { "http": port }, "url": url }));
        let (code, found) = findings(&["doctor", "--config", path.to_str().unwrap()], &url);
        assert_eq!((code, level(&found, "ports")), (0, vec!["ok"]), "{found:?}");
    }

    #[test]
    fn problems_of_a_running_appliance_are_reported() {
        let down = ArchivePumpView { error: Some("gone".to_owned()), ..archive(PumpState::Down, 7) };
        let error = |code: &str, kind| AttentionView {
            remedy: Some("mend it".to_owned()),
            ..finding(AttentionSeverity::Error, code, kind, "it is down")
        };
        let attention = vec![
            error("peer-down", AttentionSubjectKind::Peer),
            error("archive-down", AttentionSubjectKind::Archive),
        ];
        let url = api("0.0.1", LinkPhase::BackingOff, &down, &attention).start();
        let (code, found) = findings(&["doctor"], &url);
        assert_eq!(code, 3);
        assert_eq!(level(&found, "version"), ["warning"]);
        assert_eq!(
            (level(&found, "links"), level(&found, "archive")),
            (vec!["error"], vec!["error"]),
            "{found:?}"
        );
        let (code, found) = findings(&["doctor"], "http://127.0.0.1:1");
        assert_eq!((code, level(&found, "appliance")), (3, vec!["error"]), "{found:?}");
        let url = FakeApi::default()
            .with("GET /v1/health", 200, &health())
            .refusing("GET /v1/status", &Problem::new(ProblemKind::Unauthorised, "no"))
            .start();
        let (code, found) = findings(&["doctor"], &url);
        assert_eq!((code, level(&found, "token")), (3, vec!["error"]), "{found:?}");
    }
}
