//! `switchyard appliance`: the machine below the daemon, where that is the appliance image.
//!
//! What there is to do is the image's to know (`appliance-image/image`), so this only says it on. On the machine itself to a program of
//! the image, which root may run, and which needs no daemon; from elsewhere to the API.

use crate::backup::Unfinished;
use crate::output::{Failure, Output, Streams};
use crate::table::{list, octets, word};
use crate::way::{Way, exits};
use clap::{Args, Subcommand};
use client::Appliance;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// What the image does it by.
const OPERATE: &str = "/usr/lib/switchyard/appliance/operate";

const AFTER: &str = concat!(
    exits!(),
    "
On the machine itself, as root, no token and no daemon is needed; with --url or --json the API is asked there as well.

Examples:
  switchyard appliance status
  switchyard appliance update switchyard.raucb --url https://192.0.2.17:8443 --ca certificate.pem
  switchyard appliance factory-reset --keep-state"
);

/// Arguments of `appliance`.
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub struct ApplianceCommand {
    #[command(subcommand)]
    task: Task,
    #[command(flatten)]
    way: Way,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Show which system runs from which slot, and how the machine is.
    Status,
    /// Write a signed update into the other slot, and start it; one that does not come up is left again by itself.
    Update {
        /// The update (.raucb).
        file: PathBuf,
        #[command(flatten)]
        when: When,
    },
    /// Go back to the system in the other slot.
    Rollback {
        #[command(flatten)]
        when: When,
    },
    /// Write into one file what somebody needs who is to help: the journal, slots, network; no configuration and no messages.
    SupportBundle {
        /// The file (.tar.gz).
        file: PathBuf,
    },
    /// Forget what the machine was told, at its next start.
    FactoryReset {
        #[command(flatten)]
        what: What,
        #[command(flatten)]
        when: When,
    },
}

#[derive(Debug, Args)]
struct When {
    /// Do not start anew now; it counts from the next start.
    #[arg(long)]
    no_reboot: bool,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct What {
    /// Messages, balances, number pools and the archive stay; configuration, users, tokens and keys go.
    #[arg(long)]
    keep_state: bool,
    /// Nothing stays.
    #[arg(long)]
    drop_state: bool,
}

impl Task {
    /// The same for the image's program.
    fn words(self) -> Vec<OsString> {
        let mut words: Vec<OsString> = Vec::new();
        let later = |when: When| when.no_reboot.then(|| OsString::from("--no-reboot"));
        let end = match self {
            Self::Status => {
                words.push("status".into());
                None
            }
            Self::Update { file, when } => {
                words.extend(["update".into(), file.into()]);
                later(when)
            }
            Self::Rollback { when } => {
                words.push("rollback".into());
                later(when)
            }
            Self::SupportBundle { file } => {
                words.extend(["support-bundle".into(), file.into()]);
                None
            }
            Self::FactoryReset { what, when } => {
                let what = if what.drop_state { "--drop-state" } else { "--keep-state" };
                words.extend(["factory-reset".into(), what.into()]);
                later(when)
            }
        };
        words.extend(end);
        words
    }
}

impl ApplianceCommand {
    pub(crate) fn run(self, streams: Streams) -> ExitCode {
        let Self { task, way } = self;
        let program = Path::new(OPERATE);
        if program.exists() && way.is_plain() {
            let output = Output::new(streams, false);
            let done = operate(program, task);
            return output.end(done);
        }
        way.ask(streams, |appliance, output| ask(appliance, output, task))
    }
}

/// On the machine.
fn operate(program: &Path, task: Task) -> Result<(), Failure> {
    // It speaks for itself.
    let status = Command::new(program).args(task.words()).status().map_err(Failure::file(program))?;
    if status.success() { Ok(()) } else { Err(Failure::Refused("not done".to_owned())) }
}

/// From elsewhere.
fn ask(appliance: &Appliance, output: &Output, task: Task) -> Result<(), Failure> {
    let path = |what: &str, when: &When| {
        let restart = if when.no_reboot { "?restart=false" } else { "" };
        format!("/v1/appliance/{what}{restart}")
    };
    let done = match task {
        Task::Status => return show(output, &appliance.get("/v1/appliance")?),
        Task::SupportBundle { file } => return fetch(appliance, output, &file),
        Task::Update { file, when } => {
            let mut octets = std::fs::File::open(&file).map_err(Failure::file(&file))?;
            // Who may not, or asks another machine, hears it before so many octets are on their way.
            appliance.get("/v1/appliance")?;
            let kind = [("content-type", "application/octet-stream")];
            appliance.post_all(&path("update", &when), &kind, &mut octets)?
        }
        Task::Rollback { when } => appliance.post(&path("rollback", &when), &Value::Null)?,
        Task::FactoryReset { what, when } => {
            let state = if what.drop_state { "drop" } else { "keep" };
            appliance.post(&path("factory-reset", &when), &json!({ "state": state }))?
        }
    };
    if output.json {
        return output.document(&done);
    }
    output.line(done["said"].as_str().unwrap_or_default())?;
    if done["restarts"] == true { output.line("it starts anew now") } else { Ok(()) }
}

fn show(output: &Output, machine: &Value) -> Result<(), Failure> {
    if output.json {
        return output.document(machine);
    }
    let healthy = |index: usize| {
        let healthy = &machine["slots"][index]["healthy"];
        if healthy.is_null() { "never".to_owned() } else { word(healthy) }
    };
    let yes = |value: &Value| if *value == true { "yes" } else { "no" }.to_owned();
    let size = |name: &str| octets(machine[name].as_u64().unwrap_or_default());
    output.write(&list(&[
        ("version", word(&machine["version"])),
        ("slot", word(&machine["slot"])),
        ("next", word(&machine["next"])),
        ("healthy-a", healthy(0)),
        ("healthy-b", healthy(1)),
        ("on trial", yes(&machine["on-trial"])),
        ("up for", format!("{} s", machine["up-seconds"])),
        ("clock synchronised", yes(&machine["clock-synchronised"])),
        ("data", format!("{} of {}", size("data-used"), size("data-size"))),
    ]))
}

fn fetch(appliance: &Appliance, output: &Output, file: &Path) -> Result<(), Failure> {
    let mut unfinished = Unfinished::beside(file)?;
    let mut answer = appliance.open("/v1/appliance/support-bundle", &[("accept", "application/gzip")])?;
    let broken = |error| Failure::Broken(format!("the file ended too early: {error}"));
    let written = std::io::copy(&mut answer, unfinished.file()).map_err(broken)?;
    unfinished.finish(file)?;
    if output.json {
        return output.document(&json!({ "file": file.display().to_string(), "octets": written }));
    }
    output.line(&format!("{}: {}", file.display(), octets(written)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stub::{Stub, run};
    use serde_json::json;

    #[test]
    fn what_is_asked_for_is_said_on() {
        let words = |task: Task| task.words().join(" ".as_ref()).into_string().unwrap();
        let when = |no_reboot| When { no_reboot };
        assert_eq!(words(Task::Status), "status");
        assert_eq!(
            words(Task::Update { file: "a b.raucb".into(), when: when(true) }),
            "update a b.raucb --no-reboot"
        );
        assert_eq!(words(Task::Rollback { when: when(false) }), "rollback");
        let what = |keep_state| What { keep_state, drop_state: !keep_state };
        assert_eq!(
            words(Task::FactoryReset { what: what(true), when: when(false) }),
            "factory-reset --keep-state"
        );
        assert_eq!(
            words(Task::FactoryReset { what: what(false), when: when(true) }),
            "factory-reset --drop-state --no-reboot"
        );
    }

    fn stub() -> Stub {
        let machine = json!({ "version": "1.0", "slot": "A", "next": "B", "on-trial": false, "up-seconds": 61,
            "slots": [{ "name": "A", "healthy": "1.0" }, { "name": "B", "healthy": null }],
            "clock-synchronised": true, "data-used": 1_000_000, "data-size": 4_000_000_000_u64 });
        let done = json!({ "said": "slot B runs from the next start on", "restarts": true });
        let other = json!({ "title": "not found", "status": 404, "detail": "this machine is not the appliance image" });
        Stub::default()
            .with("GET /v1/appliance", 200, &machine)
            .with(
                "POST /v1/appliance/update?restart=false",
                200,
                &json!({ "said": "written", "restarts": false }),
            )
            .with("POST /v1/appliance/factory-reset", 200, &done)
            .with("POST /v1/appliance/rollback", 404, &other)
            .with_octets("GET /v1/appliance/support-bundle", 200, vec![0x1f, 0x8b], None)
    }

    #[test]
    fn from_elsewhere_the_api_is_asked() {
        let stub = stub();
        let url = stub.start();
        let done = run(&url, &["appliance", "status"]);
        assert!(done.out.contains("healthy-b") && done.out.contains("never"), "{}", done.out);
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name).display().to_string();
        std::fs::write(file("update.raucb"), "octets").unwrap();
        let done = run(&url, &["appliance", "update", &file("update.raucb"), "--no-reboot"]);
        assert_eq!((done.code, done.out.as_str()), (0, "written\n"), "{}", done.error);
        assert_eq!(stub.asked().last().unwrap().body, "octets");
        let done = run(&url, &["appliance", "factory-reset", "--drop-state"]);
        assert!(done.out.contains("starts anew"), "{}", done.out);
        let done = run(&url, &["appliance", "support-bundle", &file("support.tar.gz")]);
        assert_eq!(done.code, 0, "{}", done.error);
        assert_eq!(std::fs::read(file("support.tar.gz")).unwrap(), [0x1f, 0x8b]);
    }

    #[test]
    fn another_machine_is_told_so() {
        let done = run(&stub().start(), &["appliance", "rollback"]);
        assert_eq!(done.code, 1);
        assert!(done.error.contains("not the appliance image"), "{}", done.error);
    }

    #[test]
    fn a_reset_says_what_stays() {
        let done = run("http://127.0.0.1:1", &["appliance", "factory-reset"]);
        assert_eq!(done.code, 2);
        assert!(done.error.contains("--keep-state"), "{}", done.error);
    }
}
