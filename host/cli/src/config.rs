//! `switchyard config`: the configuration of a running appliance.

use crate::format::{list, table, timestamp, value_text};
use crate::global_args::{GlobalArgs, exit_help};
use crate::output::{Failure, Output, Streams};
use crate::paged_list::fetch_pages;
use api::{
    ConfigChangeView, ConfigConfirmRequest, ConfigDifferenceView, ConfigRollbackRequest,
    ConfigVersionPageView, ConfigVersionSummaryView, ConfigurationChangeResult, ConfigurationCheck,
    ConfigurationDiff, CurrentConfiguration, FieldProblem, ManagedBy, Problem,
};
use clap::{Args, Subcommand};
use client::terminal::visible;
use client::{ApiClient, ClientError, encode_segment};
use configuration::{SourceLines, from_toml};
use serde::Serialize;
use serde_json::{Value, json};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const AFTER_HELP: &str = concat!(
    exit_help!(),
    "
Examples:
  switchyard config export switchyard.toml                     # secrets are written as \"(unchanged)\"
  switchyard config validate switchyard.toml
  switchyard config apply switchyard.toml --why \"more links\" --confirm-within 10m
  switchyard config confirm                                    # or it reverts automatically
  switchyard config versions
  switchyard config diff 6 7
  switchyard config rollback 6 --why \"upstream refuses the links\""
);

/// Arguments of `config`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct ConfigCommand {
    #[command(subcommand)]
    task: Task,
    #[command(flatten)]
    global: GlobalArgs,
}

#[derive(Debug, Args)]
struct ApplyArgs {
    /// The reason, for the history.
    #[arg(long, default_value = "")]
    why: String,
    /// Revert automatically unless the change is confirmed within this time: 30s, 10m, 1h.
    #[arg(long)]
    confirm_within: Option<String>,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Show the active version: its author and reason, and a pending confirmation.
    Show,
    /// Write the active version as a TOML file; secrets are written as "(unchanged)", which keeps them when you apply the
    /// file.
    Export {
        /// The file; standard output by default.
        file: Option<PathBuf>,
    },
    /// Apply a TOML file: as a whole or, if there is an error, not at all.
    Apply {
        /// The file.
        file: PathBuf,
        #[command(flatten)]
        apply_args: ApplyArgs,
        /// Apply only if this version is active; by default, any version.
        #[arg(long)]
        version: Option<u64>,
    },
    /// Validate a TOML file, and show what would change; nothing is changed.
    Validate {
        /// The file.
        file: PathBuf,
    },
    /// Show the differences between two versions.
    Diff {
        /// The old version; the version before the active one by default.
        from: Option<u64>,
        /// The new version; the active one by default.
        to: Option<u64>,
    },
    /// List the versions, newest first.
    Versions {
        /// Maximum number of entries.
        #[arg(long, default_value_t = 100)]
        limit: usize,
    },
    /// Apply an earlier version again, as a new version.
    Rollback {
        /// Its number.
        to: u64,
        #[command(flatten)]
        apply_args: ApplyArgs,
    },
    /// Confirm the version that waits for confirmation.
    Confirm {
        /// Its number; the version that waits by default.
        version: Option<u64>,
    },
    /// Revert the version that waits for confirmation now.
    Revert,
}

impl ConfigCommand {
    pub(crate) fn run(self, streams: Streams) -> ExitCode {
        let Self { task, global } = self;
        global.run(streams, |api, output| task.run(api, output))
    }
}

impl Task {
    fn run(self, api: &ApiClient, output: &Output) -> Result<(), Failure> {
        match self {
            Self::Show => show(output, &current(api)?),
            Self::Export { file } => export(api, output, file.as_deref()),
            Self::Apply { file, apply_args, version } => apply(api, output, &file, &apply_args, version),
            Self::Validate { file } => validate(api, output, &file),
            Self::Diff { from, to } => diff(api, output, from, to),
            Self::Versions { limit } => versions(api, output, limit),
            Self::Rollback { to, apply_args } => {
                let ApplyArgs { why, confirm_within } = apply_args;
                let request = ConfigRollbackRequest { to, why: Some(why), confirm_within };
                let change = ConfigRequest {
                    method: "POST",
                    path: "/v1/configuration/rollback",
                    media_type: "application/json",
                    version: current(api)?.version,
                };
                print_applied(output, &change.send(api, &request)?)
            }
            Self::Confirm { version } => {
                let version = match version {
                    Some(version) => Some(version),
                    None => current(api)?.pending.map(|pending| pending.version),
                };
                let Some(version) = version else {
                    return Err(Failure::Refused("no version waits for confirmation".to_owned()));
                };
                Ok(api.call("POST", "/v1/configuration/confirm", &ConfigConfirmRequest { version })?)
            }
            Self::Revert => print_applied(output, &api.call("POST", "/v1/configuration/revert", &json!({}))?),
        }
    }
}

/// The active configuration.
pub(crate) fn current(api: &ApiClient) -> Result<CurrentConfiguration, ClientError> {
    api.read("/v1/configuration")
}

/// A request that changes the configuration, provided that `version` is active.
pub(crate) struct ConfigRequest<'a> {
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    pub(crate) media_type: &'a str,
    pub(crate) version: u64,
}

impl ConfigRequest<'_> {
    pub(crate) fn send(
        self,
        api: &ApiClient,
        body: &impl Serialize,
    ) -> Result<ConfigurationChangeResult, ClientError> {
        let etag = format!("\"{}\"", self.version);
        let headers = [("content-type", self.media_type), ("if-match", etag.as_str())];
        api.call_with(self.method, self.path, &headers, body)
    }
}

/// The path of a change, with its reason and its confirmation time.
pub(crate) fn change_path(why: &str, confirm_within: Option<&str>) -> String {
    let within = confirm_within.map(|within| format!("&confirm-within={}", encode_segment(within)));
    format!("/v1/configuration?why={}{}", encode_segment(why), within.unwrap_or_default())
}

fn show(output: &Output, current: &CurrentConfiguration) -> Result<(), Failure> {
    if output.json {
        return output.document(current);
    }
    let managed = match current.mode {
        ManagedBy::File => "by file: edit it, and send SIGHUP",
        ManagedBy::Api => "over the API",
    };
    let mut rows = vec![
        ("version", current.version.to_string()),
        ("active since", timestamp(&current.at)),
        ("by", value_text(&current.by)),
        ("why", value_text(&current.why)),
        ("managed", managed.to_owned()),
    ];
    if let Some(pending) = &current.pending {
        rows.push(("reverts", format!("{}, unless it is confirmed", timestamp(&pending.reverts_at))));
    }
    if !current.restart.is_empty() {
        rows.push(("needs a restart", visible(&current.restart.join(", "))));
    }
    for (name, of) in
        [("accounts", "account"), ("peers", "peer"), ("gateways", "gateway"), ("listeners", "listener")]
    {
        let count = current.document[of].as_array().map_or(0, Vec::len);
        rows.push((name, count.to_string()));
    }
    output.write(&list(&rows))
}

fn export(api: &ApiClient, output: &Output, file: Option<&Path>) -> Result<(), Failure> {
    let mut text = String::new();
    let broken = |error: std::io::Error| Failure::Interrupted(error.to_string());
    api.open("/v1/configuration/file", &[])?.read_to_string(&mut text).map_err(broken)?;
    match file {
        Some(path) => std::fs::write(path, text).map_err(Failure::file(path)),
        None => output.write(&text),
    }
}

/// Reads a TOML file as a document, with the lines of its keys.
fn read(path: &Path) -> Result<(Value, SourceLines), Failure> {
    let text = std::fs::read_to_string(path).map_err(Failure::file(path))?;
    from_toml(&text).map_err(|problems| {
        let lines: Vec<String> =
            problems.iter().map(|problem| format!("{}: {problem}", path.display())).collect();
        Failure::Refused(lines.join("\n"))
    })
}

/// The problems that the API reports, each with its line in the file.
fn problems_with_lines(path: &Path, lines: &SourceLines, problems: &[FieldProblem]) -> String {
    let problem_texts = problems.iter().map(|FieldProblem { pointer, what, allowed }| {
        // A missing key has no line; the line of its table is used.
        let pointers =
            std::iter::successors(Some(pointer.as_str()), |at| at.rsplit_once('/').map(|(above, _)| above));
        let line = pointers.into_iter().find_map(|at| lines.key(at));
        let line = line.map(|line| format!("line {line}: ")).unwrap_or_default();
        let allowed = allowed.as_ref().map(|allowed| format!(", and must be {allowed}")).unwrap_or_default();
        format!("{}: {line}{pointer}: {what}{allowed}", path.display())
    });
    problem_texts.collect::<Vec<_>>().join("\n")
}

fn apply(
    api: &ApiClient,
    output: &Output,
    path: &Path,
    apply_args: &ApplyArgs,
    version: Option<u64>,
) -> Result<(), Failure> {
    let (document, lines) = read(path)?;
    let version = match version {
        Some(version) => version,
        None => current(api)?.version,
    };
    let url_path = change_path(&apply_args.why, apply_args.confirm_within.as_deref());
    let change = ConfigRequest { method: "PUT", path: &url_path, media_type: "application/json", version };
    match change.send(api, &document) {
        Ok(result) => print_applied(output, &result),
        Err(ClientError::Refused(Problem { status: 422, problems, .. }))
            if !problems.is_empty() && !output.json =>
        {
            Err(Failure::Refused(problems_with_lines(path, &lines, &problems)))
        }
        Err(error) => Err(error.into()),
    }
}

fn change_table(changes: &[ConfigChangeView]) -> String {
    let row = |change: &ConfigChangeView| {
        vec![value_text(&change.what), value_text(&change.pointer), value_text(&change.effect)]
    };
    table(&["WHAT", "WHERE", "EFFECT"], &changes.iter().map(row).collect::<Vec<_>>())
}

/// Prints the result of a change.
pub(crate) fn print_applied(output: &Output, result: &ConfigurationChangeResult) -> Result<(), Failure> {
    if output.json {
        return output.document(result);
    }
    let ConfigurationChangeResult { version, changes, restart, reverts_at } = result;
    if changes.is_empty() {
        return output.line(&format!("no differences from version {version}, which is active"));
    }
    output.write(&change_table(changes))?;
    output.line(&format!("version {version} is active"))?;
    if let Some(at) = reverts_at {
        output.line(&format!(
            "it reverts at {} unless you confirm it: switchyard config confirm {version}",
            timestamp(at)
        ))?;
    }
    if !restart.is_empty() {
        output.remark(&format!("a restart is needed for {}", restart.join(", ")));
    }
    Ok(())
}

fn validate(api: &ApiClient, output: &Output, path: &Path) -> Result<(), Failure> {
    let (document, lines) = read(path)?;
    let validation: ConfigurationCheck = api.call("POST", "/v1/configuration/validate", &document)?;
    if output.json {
        output.document(&validation)?;
    }
    if !validation.valid {
        return Err(Failure::Refused(problems_with_lines(path, &lines, &validation.problems)));
    }
    if output.json {
        return Ok(());
    }
    if validation.changes.is_empty() {
        return output.line("valid; no differences from the active version");
    }
    output.write(&change_table(&validation.changes))?;
    output.line("valid; nothing was changed")
}

fn diff(api: &ApiClient, output: &Output, from: Option<u64>, to: Option<u64>) -> Result<(), Failure> {
    let to = match to {
        Some(to) => to,
        None => current(api)?.version,
    };
    let from = from.unwrap_or_else(|| to.saturating_sub(1));
    let diff: ConfigurationDiff = api.read(&format!("/v1/configuration/diff?from={from}&to={to}"))?;
    if output.json {
        return output.document(&diff);
    }
    let row = |change: &ConfigDifferenceView| {
        vec![value_text(&change.pointer), value_text(&change.before), value_text(&change.after)]
    };
    let rows: Vec<Vec<String>> = diff.changes.iter().map(row).collect();
    if rows.is_empty() {
        return output.line(&format!("no differences between versions {from} and {to}"));
    }
    output.table(&["WHERE", &format!("VERSION {from}"), &format!("VERSION {to}")], &rows)
}

fn versions(api: &ApiClient, output: &Output, limit: usize) -> Result<(), Failure> {
    let page: ConfigVersionPageView = fetch_pages(api, "/v1/configuration/versions", &[], limit)?;
    if output.json {
        return output.document(&page);
    }
    let row = |one: &ConfigVersionSummaryView| {
        let (version, changes) = (one.version.to_string(), one.changes.to_string());
        vec![version, timestamp(&one.at), value_text(&one.by), changes, value_text(&one.why)]
    };
    let rows: Vec<Vec<String>> = page.versions.iter().map(row).collect();
    output.table(&["VERSION", "SINCE", "BY", "CHANGES", "WHY"], &rows)
}

#[cfg(test)]
mod tests {
    use crate::fake_api::{FakeApi, NOW, run};
    use crate::fixtures::configuration;
    use admin::{Problem, ProblemKind};
    use api::{
        ConfigChangeKindView, ConfigChangeView, ConfigDifferenceView, ConfigVersionPageView,
        ConfigVersionSummaryView, ConfigurationChangeResult, ConfigurationDiff, FieldProblem,
        UnconfirmedVersionView,
    };
    use serde_json::{Value, json};

    fn in_force() -> Value {
        let mut current = configuration(json!({ "peer": [{ "name": "up" }] }));
        current.pending = Some(UnconfirmedVersionView { version: 7, reverts_at: NOW + 600_000 });
        current.restart = vec!["/http/listen".to_owned()];
        json!(current)
    }

    #[test]
    fn the_active_version_is_shown() {
        let api = FakeApi::default().with("GET /v1/configuration", 200, &in_force());
        let done = run(&api.start(), &["config", "show"]);
        assert_eq!((done.code, done.error.as_str()), (0, ""));
        for line in [
            "version          7",
            "by               ada",
            "reverts          2026-11-21 16:13:02Z, unless it is confirmed",
            "needs a restart  /http/listen",
            "peers            1",
        ] {
            assert!(done.out.contains(line), "{line}:\n{}", done.out);
        }
    }

    #[test]
    fn a_file_is_applied_with_the_active_version_as_if_match() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("switchyard.toml");
        std::fs::write(&path, "[appliance]\ndata = \"x\"\n").unwrap();
        let removal = ConfigChangeView {
            pointer: "/peer/up".to_owned(),
            what: ConfigChangeKindView::Removed,
            effect: "its connections are unbound; its queue stays".to_owned(),
            before: None,
            after: None,
        };
        let answer = ConfigurationChangeResult {
            version: 8,
            changes: vec![removal],
            restart: Vec::new(),
            reverts_at: Some(NOW),
        };
        let api = FakeApi::default().with("GET /v1/configuration", 200, &in_force()).with(
            "PUT /v1/configuration?why=tidy%20up&confirm-within=10m",
            200,
            &json!(answer),
        );
        let url = api.start();
        let path = path.to_str().unwrap();
        let done = run(&url, &["config", "apply", path, "--why", "tidy up", "--confirm-within", "10m"]);
        assert_eq!((done.code, done.error.as_str()), (0, ""));
        assert_eq!(
            done.out,
            "WHAT     WHERE     EFFECT\nremoved  /peer/up  its connections are unbound; its queue stays\nversion 8 is active\n\
             it reverts at 2026-11-21 16:03:02Z unless you confirm it: switchyard config confirm 8\n"
        );
        let put = api.requests().pop().unwrap();
        assert!(put.headers.contains(&("if-match".to_owned(), "\"7\"".to_owned())), "{:?}", put.headers);
        assert_eq!(
            serde_json::from_str::<Value>(&put.body).unwrap(),
            json!({ "appliance": { "data": "x" } })
        );
    }

    #[test]
    fn problems_are_reported_with_line_numbers() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("switchyard.toml");
        std::fs::write(&path, "[appliance]\ndata = \"x\"\n[[peer]]\nname = \"up\"\nlinks = 0\n").unwrap();
        let field = |pointer: &str, what: &str, allowed: Option<&str>| FieldProblem {
            pointer: pointer.to_owned(),
            what: what.to_owned(),
            allowed: allowed.map(str::to_owned),
        };
        let problems = vec![
            field("/peer/0/address", "is missing", None),
            field("/peer/0/links", "is 0", Some("1 to 256")),
        ];
        let problem = Problem::new(ProblemKind::Unprocessable, "wrong").with_problems(problems);
        let api = FakeApi::default()
            .with("GET /v1/configuration", 200, &in_force())
            .refusing("PUT /v1/configuration?why=", &problem);
        let name = path.to_str().unwrap();
        let done = run(&api.start(), &["config", "apply", name]);
        assert_eq!(done.code, 1);
        let expected = format!(
            "switchyard: {name}: line 3: /peer/0/address: is missing\n\
             switchyard: {name}: line 5: /peer/0/links: is 0, and must be 1 to 256\n"
        );
        assert_eq!(done.error, expected);
        // A file that is not TOML is not sent.
        std::fs::write(&path, "= 1\n").unwrap();
        let api = FakeApi::default();
        let done = run(&api.start(), &["config", "apply", name]);
        assert_eq!((done.code, api.requests().len()), (1, 0));
        assert!(done.error.contains("line 1: TOML"), "{}", done.error);
    }

    #[test]
    fn versions_and_differences_are_tables() {
        let version = ConfigVersionSummaryView {
            version: 7,
            at: NOW,
            by: "ada".to_owned(),
            why: String::new(),
            changes: 2,
        };
        let versions = ConfigVersionPageView { versions: vec![version], next: None };
        let rate = ConfigDifferenceView {
            pointer: "/peer/up/rate".to_owned(),
            before: None,
            after: Some(json!(50)),
        };
        let diff = ConfigurationDiff { from: 6, to: 7, changes: vec![rate] };
        let api = FakeApi::default()
            .with("GET /v1/configuration/versions?limit=100", 200, &json!(versions))
            .with("GET /v1/configuration", 200, &in_force())
            .with("GET /v1/configuration/diff?from=6&to=7", 200, &json!(diff));
        let url = api.start();
        let done = run(&url, &["config", "versions"]);
        assert_eq!(
            done.out,
            "VERSION  SINCE                 BY   CHANGES  WHY\n7        2026-11-21 16:03:02Z  ada  2        -\n"
        );
        let done = run(&url, &["config", "diff"]);
        assert_eq!(done.out, "WHERE          VERSION 6  VERSION 7\n/peer/up/rate  -          50\n");
    }

    #[test]
    fn the_pending_version_is_confirmed() {
        let api = FakeApi::default().with("GET /v1/configuration", 200, &in_force()).with(
            "POST /v1/configuration/confirm",
            204,
            &Value::Null,
        );
        let done = run(&api.start(), &["config", "confirm"]);
        assert_eq!((done.code, done.error.as_str()), (0, ""));
        assert_eq!(api.requests().pop().unwrap().body, "{\"version\":7}");
    }
}
