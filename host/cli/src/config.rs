//! `switchyard config`: the configuration of a running appliance.

use crate::format::{list, table, timestamp, value_text};
use crate::global_args::{GlobalArgs, exit_help};
use crate::output::{Failure, Output, Streams};
use crate::paged_list::{PagedList, fetch_items};
use clap::{Args, Subcommand};
use client::{ApiClient, ClientError, encode_segment};
use configuration::{SourceLines, from_toml};
use serde_json::{Value, json};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const AFTER: &str = concat!(
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
#[command(after_help = AFTER)]
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
    /// Show the active version: who applied it, why, and what is pending.
    Show,
    /// Write the active version as a TOML file; "(unchanged)" stands for secrets, and keeps them when you apply the file.
    Export {
        /// The file; standard output by default.
        file: Option<PathBuf>,
    },
    /// Apply a TOML file: all of it or, if anything in it is wrong, nothing.
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
                let etag = etag(current(api)?["version"].as_u64());
                let mut body = json!({ "to": to, "why": apply_args.why });
                if let Some(within) = apply_args.confirm_within {
                    body["confirm-within"] = within.into();
                }
                let headers = [("content-type", "application/json"), ("if-match", etag.as_str())];
                let body = body.to_string();
                print_applied(
                    output,
                    &api.send("POST", "/v1/configuration/rollback", &headers, body.as_bytes())?,
                )
            }
            Self::Confirm { version } => {
                let version = match version {
                    Some(version) => version.into(),
                    None => current(api)?["pending"]["version"].take(),
                };
                if version.is_null() {
                    return Err(Failure::Refused("no version waits for confirmation".to_owned()));
                }
                api.post("/v1/configuration/confirm", &json!({ "version": version }))?;
                Ok(())
            }
            Self::Revert => print_applied(output, &api.post("/v1/configuration/revert", &json!({}))?),
        }
    }
}

fn current(api: &ApiClient) -> Result<Value, ClientError> {
    api.get("/v1/configuration")
}

/// A version as an entity tag for `If-Match`.
fn etag(version: Option<u64>) -> String {
    format!("\"{}\"", version.unwrap_or_default())
}

fn show(output: &Output, current: &Value) -> Result<(), Failure> {
    if output.json {
        return output.document(current);
    }
    let managed = match current["mode"].as_str() {
        Some("file") => "by file: edit it, and send SIGHUP",
        _ => "over the API",
    };
    let mut rows = vec![
        ("version", value_text(&current["version"])),
        ("active since", timestamp(&current["at"])),
        ("by", value_text(&current["by"])),
        ("why", value_text(&current["why"])),
        ("managed", managed.to_owned()),
    ];
    if let Some(at) = current["pending"].get("reverts-at") {
        rows.push(("reverts", format!("{}, unless it is confirmed", timestamp(at))));
    }
    let waits: Vec<String> = current["restart"].as_array().into_iter().flatten().map(value_text).collect();
    if !waits.is_empty() {
        rows.push(("needs a restart", waits.join(", ")));
    }
    for (name, of) in
        [("accounts", "account"), ("peers", "peer"), ("gateways", "gateway"), ("listeners", "listener")]
    {
        let count = current["document"][of].as_array().map_or(0, Vec::len);
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
fn problems_with_lines(path: &Path, lines: &SourceLines, problems: &Value) -> String {
    let problem_texts = problems.as_array().into_iter().flatten().map(|problem| {
        let pointer = problem["pointer"].as_str().unwrap_or_default();
        // A missing key has no line; the line of its table is used.
        let pointers = std::iter::successors(Some(pointer), |at| at.rsplit_once('/').map(|(above, _)| above));
        let line = pointers.into_iter().find_map(|at| lines.key(at));
        let line = line.map(|line| format!("line {line}: ")).unwrap_or_default();
        let allowed = problem["allowed"].as_str();
        let allowed = allowed.map(|allowed| format!(", and must be {allowed}")).unwrap_or_default();
        format!("{}: {line}{pointer}: {}{allowed}", path.display(), value_text(&problem["what"]))
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
        Some(version) => Some(version),
        None => current(api)?["version"].as_u64(),
    };
    let mut url_path = format!("/v1/configuration?why={}", encode_segment(&apply_args.why));
    if let Some(within) = &apply_args.confirm_within {
        url_path.push_str(&format!("&confirm-within={}", encode_segment(within)));
    }
    let etag = etag(version);
    let headers = [("content-type", "application/json"), ("if-match", etag.as_str())];
    match api.send("PUT", &url_path, &headers, document.to_string().as_bytes()) {
        Ok(answer) => print_applied(output, &answer),
        Err(ClientError::Refused { status: 422, problem, .. })
            if problem["problems"].is_array() && !output.json =>
        {
            Err(Failure::Refused(problems_with_lines(path, &lines, &problem["problems"])))
        }
        Err(error) => Err(error.into()),
    }
}

fn changes(answer: &Value) -> String {
    let rows: Vec<Vec<String>> = answer["changes"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|change| {
            vec![value_text(&change["what"]), value_text(&change["pointer"]), value_text(&change["effect"])]
        })
        .collect();
    table(&["WHAT", "WHERE", "EFFECT"], &rows)
}

fn has_changes(answer: &Value) -> bool {
    answer["changes"].as_array().is_some_and(|changes| !changes.is_empty())
}

/// Prints the result of a change.
pub(crate) fn print_applied(output: &Output, answer: &Value) -> Result<(), Failure> {
    if output.json {
        return output.document(answer);
    }
    let version = value_text(&answer["version"]);
    if !has_changes(answer) {
        return output.line(&format!("no differences from version {version}, which is active"));
    }
    output.write(&changes(answer))?;
    output.line(&format!("version {version} is active"))?;
    if let Some(at) = answer.get("reverts-at").filter(|at| !at.is_null()) {
        output.line(&format!(
            "it reverts at {} unless you confirm it: switchyard config confirm {version}",
            timestamp(at)
        ))?;
    }
    let waits: Vec<String> = answer["restart"].as_array().into_iter().flatten().map(value_text).collect();
    if !waits.is_empty() {
        output.remark(&format!("a restart is needed for {}", waits.join(", ")));
    }
    Ok(())
}

fn validate(api: &ApiClient, output: &Output, path: &Path) -> Result<(), Failure> {
    let (document, lines) = read(path)?;
    let validation = api.post("/v1/configuration/validate", &document)?;
    if output.json {
        output.document(&validation)?;
    }
    if validation["valid"] != true {
        return Err(Failure::Refused(problems_with_lines(path, &lines, &validation["problems"])));
    }
    if output.json {
        return Ok(());
    }
    if !has_changes(&validation) {
        return output.line("valid; no differences from the active version");
    }
    output.write(&changes(&validation))?;
    output.line("valid; nothing was changed")
}

fn diff(api: &ApiClient, output: &Output, from: Option<u64>, to: Option<u64>) -> Result<(), Failure> {
    let to = match to {
        Some(to) => to,
        None => current(api)?["version"].as_u64().unwrap_or_default(),
    };
    let from = from.unwrap_or_else(|| to.saturating_sub(1));
    let answer = api.get(&format!("/v1/configuration/diff?from={from}&to={to}"))?;
    if output.json {
        return output.document(&answer);
    }
    let rows: Vec<Vec<String>> = answer["changes"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|change| {
            vec![value_text(&change["pointer"]), value_text(&change["before"]), value_text(&change["after"])]
        })
        .collect();
    if rows.is_empty() {
        return output.line(&format!("no differences between versions {from} and {to}"));
    }
    output.write(&table(&["WHERE", &format!("VERSION {from}"), &format!("VERSION {to}")], &rows))
}

fn versions(api: &ApiClient, output: &Output, limit: usize) -> Result<(), Failure> {
    let list = PagedList { path: "/v1/configuration/versions", items: "versions", next: "before" };
    let (versions, next) = fetch_items(api, list, &[], limit)?;
    if output.json {
        return output.document(&json!({ "versions": versions, "next": next }));
    }
    let rows: Vec<Vec<String>> = versions
        .iter()
        .map(|one| {
            let words = [&one["by"], &one["changes"], &one["why"]].map(value_text);
            [vec![value_text(&one["version"]), timestamp(&one["at"])], words.to_vec()].concat()
        })
        .collect();
    output.write(&table(&["VERSION", "SINCE", "BY", "CHANGES", "WHY"], &rows))
}

#[cfg(test)]
mod tests {
    use crate::fake_api::{FakeApi, NOW, run};
    use crate::fixtures::configuration;
    use admin::{FieldProblem, Problem, ProblemKind, UnconfirmedVersionView};
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
        let answer = json!({
            "version": 8,
            "changes": [{ "pointer": "/peer/up", "what": "removed", "effect": "its connections are unbound; its queue stays" }],
            "restart": [], "reverts-at": NOW,
        });
        let api = FakeApi::default().with("GET /v1/configuration", 200, &in_force()).with(
            "PUT /v1/configuration?why=tidy%20up&confirm-within=10m",
            200,
            &answer,
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
        let versions = json!({
            "versions": [{ "version": 7, "at": NOW, "by": "ada", "why": "", "changes": 2 }], "next": null,
        });
        let diff = json!({
            "from": 6, "to": 7, "changes": [{ "pointer": "/peer/up/rate", "before": null, "after": 50 }],
        });
        let api = FakeApi::default()
            .with("GET /v1/configuration/versions?limit=100", 200, &versions)
            .with("GET /v1/configuration", 200, &in_force())
            .with("GET /v1/configuration/diff?from=6&to=7", 200, &diff);
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
