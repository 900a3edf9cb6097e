//! `switchyard config`: the configuration of a running appliance.

use crate::output::{Failure, Output, Streams};
use crate::pages::{List, pages};
use crate::table::{list, moment, table, word};
use crate::way::{Way, exits};
use clap::{Args, Subcommand};
use client::{Appliance, ClientError, segment};
use configuration::{Lines, from_toml};
use serde_json::{Value, json};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const AFTER: &str = concat!(
    exits!(),
    "
Examples:
  switchyard config export switchyard.toml                     # secrets are written as \"(unchanged)\"
  switchyard config validate switchyard.toml
  switchyard config apply switchyard.toml --why \"more links\" --confirm-within 10m
  switchyard config confirm                                    # or it reverts by itself
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
    way: Way,
}

#[derive(Debug, Args)]
struct How {
    /// Why, for the history.
    #[arg(long, default_value = "")]
    why: String,
    /// It reverts by itself unless it is confirmed within this time: 30s, 10m, 1h.
    #[arg(long)]
    confirm_within: Option<String>,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Show what is in force: version, by whom, why, and what waits.
    Show,
    /// Write what is in force as a TOML file; "(unchanged)" stands for secrets, and is taken as such when it comes back.
    Export {
        /// The file; otherwise standard output.
        file: Option<PathBuf>,
    },
    /// Put a TOML file in force: all of it or, if anything in it is wrong, nothing.
    Apply {
        /// The file.
        file: PathBuf,
        #[command(flatten)]
        how: How,
        /// Only if this version is still in force; otherwise whatever is.
        #[arg(long)]
        version: Option<u64>,
    },
    /// Tell what is wrong with a TOML file, and what would change; nothing is changed.
    Validate {
        /// The file.
        file: PathBuf,
    },
    /// Tell what is different between two versions.
    Diff {
        /// The one; otherwise the version before the one in force.
        from: Option<u64>,
        /// The other; otherwise the version in force.
        to: Option<u64>,
    },
    /// List the versions, newest first.
    Versions {
        /// How many at most.
        #[arg(long, default_value_t = 100)]
        limit: usize,
    },
    /// Put an earlier version in force again, as a new one.
    Rollback {
        /// Its number.
        to: u64,
        #[command(flatten)]
        how: How,
    },
    /// Say that the version which waits for it is to stay.
    Confirm {
        /// Its number; otherwise the one that waits.
        version: Option<u64>,
    },
    /// Take the version back at once that waits to be confirmed.
    Revert,
}

impl ConfigCommand {
    pub(crate) fn run(self, streams: Streams) -> ExitCode {
        let Self { task, way } = self;
        way.ask(streams, |appliance, output| task.run(appliance, output))
    }
}

impl Task {
    fn run(self, appliance: &Appliance, output: &Output) -> Result<(), Failure> {
        match self {
            Self::Show => show(output, &current(appliance)?),
            Self::Export { file } => export(appliance, output, file.as_deref()),
            Self::Apply { file, how, version } => apply(appliance, output, &file, &how, version),
            Self::Validate { file } => validate(appliance, output, &file),
            Self::Diff { from, to } => diff(appliance, output, from, to),
            Self::Versions { limit } => versions(appliance, output, limit),
            Self::Rollback { to, how } => {
                let tag = tag(current(appliance)?["version"].as_u64());
                let mut body = json!({ "to": to, "why": how.why });
                if let Some(within) = how.confirm_within {
                    body["confirm-within"] = within.into();
                }
                let headers = [("content-type", "application/json"), ("if-match", tag.as_str())];
                let body = body.to_string();
                applied(
                    output,
                    &appliance.send("POST", "/v1/configuration/rollback", &headers, body.as_bytes())?,
                )
            }
            Self::Confirm { version } => {
                let version = match version {
                    Some(version) => version.into(),
                    None => current(appliance)?["pending"]["version"].take(),
                };
                if version.is_null() {
                    return Err(Failure::Refused("no version waits to be confirmed".to_owned()));
                }
                appliance.post("/v1/configuration/confirm", &json!({ "version": version }))?;
                Ok(())
            }
            Self::Revert => applied(output, &appliance.post("/v1/configuration/revert", &json!({}))?),
        }
    }
}

fn current(appliance: &Appliance) -> Result<Value, ClientError> {
    appliance.get("/v1/configuration")
}

/// A version as `If-Match` has it.
fn tag(version: Option<u64>) -> String {
    format!("\"{}\"", version.unwrap_or_default())
}

fn show(output: &Output, current: &Value) -> Result<(), Failure> {
    if output.json {
        return output.document(current);
    }
    let managed = match current["mode"].as_str() {
        Some("file") => "by its file: change that, and send SIGHUP",
        _ => "over the API",
    };
    let mut rows = vec![
        ("version", word(&current["version"])),
        ("in force since", moment(&current["at"])),
        ("by", word(&current["by"])),
        ("why", word(&current["why"])),
        ("managed", managed.to_owned()),
    ];
    if let Some(at) = current["pending"].get("reverts-at") {
        rows.push(("reverts", format!("{}, unless it is confirmed", moment(at))));
    }
    let waits: Vec<String> = current["restart"].as_array().into_iter().flatten().map(word).collect();
    if !waits.is_empty() {
        rows.push(("waits for a restart", waits.join(", ")));
    }
    for (name, of) in
        [("accounts", "account"), ("peers", "peer"), ("gateways", "gateway"), ("listeners", "listener")]
    {
        let count = current["document"][of].as_array().map_or(0, Vec::len);
        rows.push((name, count.to_string()));
    }
    output.write(&list(&rows))
}

fn export(appliance: &Appliance, output: &Output, file: Option<&Path>) -> Result<(), Failure> {
    let mut text = String::new();
    let broken = |error: std::io::Error| Failure::Broken(error.to_string());
    appliance.open("/v1/configuration/file", &[])?.read_to_string(&mut text).map_err(broken)?;
    match file {
        Some(path) => std::fs::write(path, text).map_err(Failure::file(path)),
        None => output.write(&text),
    }
}

/// A TOML file as a document, and where its lines are.
fn read(path: &Path) -> Result<(Value, Lines), Failure> {
    let text = std::fs::read_to_string(path).map_err(Failure::file(path))?;
    from_toml(&text).map_err(|problems| {
        let lines: Vec<String> =
            problems.iter().map(|problem| format!("{}: {problem}", path.display())).collect();
        Failure::Refused(lines.join("\n"))
    })
}

/// What the appliance finds wrong with a file, each with its line.
fn located(path: &Path, lines: &Lines, problems: &Value) -> String {
    let told = problems.as_array().into_iter().flatten().map(|problem| {
        let pointer = problem["pointer"].as_str().unwrap_or_default();
        // What is missing has no line of its own: the table's that it is missing in has to do.
        let places = std::iter::successors(Some(pointer), |at| at.rsplit_once('/').map(|(above, _)| above));
        let line = places.into_iter().find_map(|at| lines.key(at));
        let line = line.map(|line| format!("line {line}: ")).unwrap_or_default();
        let allowed = problem["allowed"].as_str();
        let allowed = allowed.map(|allowed| format!(", and must be {allowed}")).unwrap_or_default();
        format!("{}: {line}{pointer}: {}{allowed}", path.display(), word(&problem["what"]))
    });
    told.collect::<Vec<_>>().join("\n")
}

fn apply(
    appliance: &Appliance,
    output: &Output,
    path: &Path,
    how: &How,
    version: Option<u64>,
) -> Result<(), Failure> {
    let (document, lines) = read(path)?;
    let version = match version {
        Some(version) => Some(version),
        None => current(appliance)?["version"].as_u64(),
    };
    let mut place = format!("/v1/configuration?why={}", segment(&how.why));
    if let Some(within) = &how.confirm_within {
        place.push_str(&format!("&confirm-within={}", segment(within)));
    }
    let tag = tag(version);
    let headers = [("content-type", "application/json"), ("if-match", tag.as_str())];
    match appliance.send("PUT", &place, &headers, document.to_string().as_bytes()) {
        Ok(answer) => applied(output, &answer),
        Err(ClientError::Refused { status: 422, problem, .. })
            if problem["problems"].is_array() && !output.json =>
        {
            Err(Failure::Refused(located(path, &lines, &problem["problems"])))
        }
        Err(error) => Err(error.into()),
    }
}

fn changes(answer: &Value) -> String {
    let rows: Vec<Vec<String>> = answer["changes"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|change| vec![word(&change["what"]), word(&change["pointer"]), word(&change["effect"])])
        .collect();
    table(&["WHAT", "WHERE", "EFFECT"], &rows)
}

fn has_changes(answer: &Value) -> bool {
    answer["changes"].as_array().is_some_and(|changes| !changes.is_empty())
}

/// What a change has done.
pub(crate) fn applied(output: &Output, answer: &Value) -> Result<(), Failure> {
    if output.json {
        return output.document(answer);
    }
    let version = word(&answer["version"]);
    if !has_changes(answer) {
        return output.line(&format!("nothing is different from version {version}, which is in force"));
    }
    output.write(&changes(answer))?;
    output.line(&format!("version {version} is in force"))?;
    if let Some(at) = answer.get("reverts-at").filter(|at| !at.is_null()) {
        output.line(&format!(
            "it reverts at {} unless you confirm it: switchyard config confirm {version}",
            moment(at)
        ))?;
    }
    let waits: Vec<String> = answer["restart"].as_array().into_iter().flatten().map(word).collect();
    if !waits.is_empty() {
        output.remark(&format!("a restart is needed for {}", waits.join(", ")));
    }
    Ok(())
}

fn validate(appliance: &Appliance, output: &Output, path: &Path) -> Result<(), Failure> {
    let (document, lines) = read(path)?;
    let checked = appliance.post("/v1/configuration/validate", &document)?;
    if output.json {
        output.document(&checked)?;
    }
    if checked["valid"] != true {
        return Err(Failure::Refused(located(path, &lines, &checked["problems"])));
    }
    if output.json {
        return Ok(());
    }
    if !has_changes(&checked) {
        return output.line("right, and nothing is different from what is in force");
    }
    output.write(&changes(&checked))?;
    output.line("right; nothing was changed")
}

fn diff(appliance: &Appliance, output: &Output, from: Option<u64>, to: Option<u64>) -> Result<(), Failure> {
    let to = match to {
        Some(to) => to,
        None => current(appliance)?["version"].as_u64().unwrap_or_default(),
    };
    let from = from.unwrap_or_else(|| to.saturating_sub(1));
    let answer = appliance.get(&format!("/v1/configuration/diff?from={from}&to={to}"))?;
    if output.json {
        return output.document(&answer);
    }
    let rows: Vec<Vec<String>> = answer["changes"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|change| vec![word(&change["pointer"]), word(&change["before"]), word(&change["after"])])
        .collect();
    if rows.is_empty() {
        return output.line(&format!("nothing is different between versions {from} and {to}"));
    }
    output.write(&table(&["WHERE", &format!("VERSION {from}"), &format!("VERSION {to}")], &rows))
}

fn versions(appliance: &Appliance, output: &Output, limit: usize) -> Result<(), Failure> {
    let list = List { path: "/v1/configuration/versions", items: "versions", next: "before" };
    let (versions, next) = pages(appliance, list, &[], limit)?;
    if output.json {
        return output.document(&json!({ "versions": versions, "next": next }));
    }
    let rows: Vec<Vec<String>> = versions
        .iter()
        .map(|one| {
            let words = [&one["by"], &one["changes"], &one["why"]].map(word);
            [vec![word(&one["version"]), moment(&one["at"])], words.to_vec()].concat()
        })
        .collect();
    output.write(&table(&["VERSION", "SINCE", "BY", "CHANGES", "WHY"], &rows))
}

#[cfg(test)]
mod tests {
    use crate::stub::{NOW, Stub, run};
    use serde_json::{Value, json};

    fn in_force() -> Value {
        json!({
            "version": 7, "at": NOW, "by": "ada", "why": "more links", "mode": "api",
            "pending": { "version": 7, "reverts-at": NOW + 600_000 },
            "restart": ["/http/listen"],
            "document": { "peer": [{ "name": "up" }] },
        })
    }

    #[test]
    fn what_is_in_force_is_shown() {
        let stub = Stub::default().with("GET /v1/configuration", 200, &in_force());
        let done = run(&stub.start(), &["config", "show"]);
        assert_eq!((done.code, done.error.as_str()), (0, ""));
        for line in [
            "version              7",
            "by                   ada",
            "reverts              2026-11-21 16:13:02Z, unless it is confirmed",
            "waits for a restart  /http/listen",
            "peers                1",
        ] {
            assert!(done.out.contains(line), "{line}:\n{}", done.out);
        }
    }

    #[test]
    fn a_file_is_put_in_force_against_the_version_that_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("switchyard.toml");
        std::fs::write(&path, "[appliance]\ndata = \"x\"\n").unwrap();
        let answer = json!({
            "version": 8,
            "changes": [{ "pointer": "/peer/up", "what": "removed", "effect": "its connections are taken down" }],
            "restart": [], "reverts-at": NOW,
        });
        let stub = Stub::default().with("GET /v1/configuration", 200, &in_force()).with(
            "PUT /v1/configuration?why=tidy%20up&confirm-within=10m",
            200,
            &answer,
        );
        let url = stub.start();
        let path = path.to_str().unwrap();
        let done = run(&url, &["config", "apply", path, "--why", "tidy up", "--confirm-within", "10m"]);
        assert_eq!((done.code, done.error.as_str()), (0, ""));
        assert_eq!(
            done.out,
            "WHAT     WHERE     EFFECT\nremoved  /peer/up  its connections are taken down\nversion 8 is in force\n\
             it reverts at 2026-11-21 16:03:02Z unless you confirm it: switchyard config confirm 8\n"
        );
        let put = stub.asked().pop().unwrap();
        assert!(put.headers.contains(&("if-match".to_owned(), "\"7\"".to_owned())), "{:?}", put.headers);
        assert_eq!(
            serde_json::from_str::<Value>(&put.body).unwrap(),
            json!({ "appliance": { "data": "x" } })
        );
    }

    #[test]
    fn what_is_wrong_is_told_with_the_lines_of_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("switchyard.toml");
        std::fs::write(&path, "[appliance]\ndata = \"x\"\n[[peer]]\nname = \"up\"\nlinks = 0\n").unwrap();
        let problem = json!({
            "title": "refused", "status": 422, "detail": "wrong",
            "problems": [
                { "pointer": "/peer/0/address", "what": "is missing" },
                { "pointer": "/peer/0/links", "what": "is 0", "allowed": "1 to 256" },
            ],
        });
        let stub = Stub::default().with("GET /v1/configuration", 200, &in_force()).with(
            "PUT /v1/configuration?why=",
            422,
            &problem,
        );
        let name = path.to_str().unwrap();
        let done = run(&stub.start(), &["config", "apply", name]);
        assert_eq!(done.code, 1);
        let expected = format!(
            "switchyard: {name}: line 3: /peer/0/address: is missing\n\
             switchyard: {name}: line 5: /peer/0/links: is 0, and must be 1 to 256\n"
        );
        assert_eq!(done.error, expected);
        // What is no TOML is not even sent.
        std::fs::write(&path, "= 1\n").unwrap();
        let stub = Stub::default();
        let done = run(&stub.start(), &["config", "apply", name]);
        assert_eq!((done.code, stub.asked().len()), (1, 0));
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
        let stub = Stub::default()
            .with("GET /v1/configuration/versions?limit=100", 200, &versions)
            .with("GET /v1/configuration", 200, &in_force())
            .with("GET /v1/configuration/diff?from=6&to=7", 200, &diff);
        let url = stub.start();
        let done = run(&url, &["config", "versions"]);
        assert_eq!(
            done.out,
            "VERSION  SINCE                 BY   CHANGES  WHY\n7        2026-11-21 16:03:02Z  ada  2        -\n"
        );
        let done = run(&url, &["config", "diff"]);
        assert_eq!(done.out, "WHERE          VERSION 6  VERSION 7\n/peer/up/rate  -          50\n");
    }

    #[test]
    fn the_version_that_waits_is_confirmed() {
        let stub = Stub::default().with("GET /v1/configuration", 200, &in_force()).with(
            "POST /v1/configuration/confirm",
            204,
            &Value::Null,
        );
        let done = run(&stub.start(), &["config", "confirm"]);
        assert_eq!((done.code, done.error.as_str()), (0, ""));
        assert_eq!(stub.asked().pop().unwrap().body, "{\"version\":7}");
    }
}
