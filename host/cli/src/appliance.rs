//! `switchyard appliance`: manages the machine, if it runs the appliance image.
//!
//! The image implements the actions (`appliance-image/image`). On the machine itself, the command runs a program of the image, which
//! requires root and needs no daemon; elsewhere it uses the API.

use crate::backup::PartialFile;
use crate::format::{list, octets, value_text};
use crate::global_args::{GlobalArgs, exit_help};
use crate::output::{Failure, Output, Streams};
use api::{FactoryResetRequest, ImageStatusView, OperateResult, StateRetention};
use clap::{Args, Subcommand};
use client::{ApiClient, Progress};
use serde_json::json;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// The image's program for these actions.
const OPERATE_PROGRAM: &str = "/usr/lib/switchyard/appliance/operate";

const AFTER_HELP: &str = concat!(
    exit_help!(),
    "
On the machine itself, root needs no token and no running daemon; with --url or --json the command uses the API there as well.

Examples:
  switchyard appliance status
  switchyard appliance update switchyard.raucb --url https://192.0.2.17:8443 --ca certificate.pem
  switchyard appliance factory-reset --keep-state"
);

/// Arguments of `appliance`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct ApplianceCommand {
    #[command(subcommand)]
    task: Task,
    #[command(flatten)]
    global: GlobalArgs,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Show the running system, its slot and the state of the machine.
    Status,
    /// Write a signed update into the other slot, and restart from it; an update that does not start is rolled back automatically.
    Update {
        /// The update (.raucb).
        file: PathBuf,
        #[command(flatten)]
        reboot_args: RebootArgs,
    },
    /// Roll back to the system in the other slot.
    Rollback {
        #[command(flatten)]
        reboot_args: RebootArgs,
    },
    /// Write a file for support: the journal, slots and network; no configuration and no messages.
    SupportBundle {
        /// The file (.tar.gz).
        file: PathBuf,
    },
    /// Reset the machine at its next start.
    FactoryReset {
        #[command(flatten)]
        what: ResetArgs,
        #[command(flatten)]
        reboot_args: RebootArgs,
    },
}

#[derive(Debug, Args)]
struct RebootArgs {
    /// Do not restart now; the change takes effect at the next start.
    #[arg(long)]
    no_reboot: bool,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct ResetArgs {
    /// Keep messages, balances, number pools and the archive; delete configuration, users, tokens and keys.
    #[arg(long)]
    keep_state: bool,
    /// Delete everything.
    #[arg(long)]
    drop_state: bool,
}

impl Task {
    /// The arguments for the image's program.
    fn arguments(self) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = Vec::new();
        let later = |reboot_args: RebootArgs| reboot_args.no_reboot.then(|| OsString::from("--no-reboot"));
        let end = match self {
            Self::Status => {
                arguments.push("status".into());
                None
            }
            Self::Update { file, reboot_args } => {
                arguments.extend(["update".into(), file.into()]);
                later(reboot_args)
            }
            Self::Rollback { reboot_args } => {
                arguments.push("rollback".into());
                later(reboot_args)
            }
            Self::SupportBundle { file } => {
                arguments.extend(["support-bundle".into(), file.into()]);
                None
            }
            Self::FactoryReset { what, reboot_args } => {
                let what = if what.drop_state { "--drop-state" } else { "--keep-state" };
                arguments.extend(["factory-reset".into(), what.into()]);
                later(reboot_args)
            }
        };
        arguments.extend(end);
        arguments
    }
}

impl ApplianceCommand {
    pub(crate) fn run(self, streams: Streams) -> ExitCode {
        let Self { task, global } = self;
        let program = Path::new(OPERATE_PROGRAM);
        if program.exists() && global.has_defaults() {
            let output = Output::without_tables(streams, false);
            let done = operate(program, task);
            return output.finish(done);
        }
        global.run(streams, |api, output| call_api(api, output, task))
    }
}

/// Runs the image's program on the machine itself.
fn operate(program: &Path, task: Task) -> Result<(), Failure> {
    // The program prints its own messages.
    let status = Command::new(program).args(task.arguments()).status().map_err(Failure::file(program))?;
    if status.success() { Ok(()) } else { Err(Failure::Refused("not done".to_owned())) }
}

/// Uses the API.
fn call_api(api: &ApiClient, output: &Output, task: Task) -> Result<(), Failure> {
    let path = |what: &str, reboot_args: &RebootArgs| {
        let restart = if reboot_args.no_reboot { "?restart=false" } else { "" };
        format!("/v1/appliance/{what}{restart}")
    };
    let done: OperateResult = match task {
        Task::Status => return print_status(output, &api.read("/v1/appliance")?),
        Task::SupportBundle { file } => return fetch_support_bundle(api, output, &file),
        Task::Update { file, reboot_args } => {
            let image = std::fs::File::open(&file).map_err(Failure::file(&file))?;
            let length = image.metadata().map_err(Failure::file(&file))?.len();
            // A caller without permission, or another machine, is refused before the upload starts.
            api.get("/v1/appliance")?;
            let kind = [("content-type", "application/octet-stream")];
            let path = path("update", &reboot_args);
            let progress = Progress::for_octets(output.shows_progress(), "uploaded", Some(length));
            api.typed(&path, api.send_all("POST", &path, &kind, &mut progress.reader(image))?)?
        }
        Task::Rollback { reboot_args } => api.call("POST", &path("rollback", &reboot_args), &())?,
        Task::FactoryReset { what, reboot_args } => {
            let state = if what.drop_state { StateRetention::Drop } else { StateRetention::Keep };
            api.call("POST", &path("factory-reset", &reboot_args), &FactoryResetRequest { state })?
        }
    };
    if output.json {
        return output.document(&done);
    }
    output.line(&done.message)?;
    if done.restarts { output.line("the machine restarts now") } else { Ok(()) }
}

fn print_status(output: &Output, machine: &ImageStatusView) -> Result<(), Failure> {
    if output.json {
        return output.document(machine);
    }
    let healthy = |name: &str| {
        let slot = machine.slots.iter().find(|slot| slot.name == name);
        slot.and_then(|slot| slot.healthy.as_ref()).map_or_else(|| "never".to_owned(), value_text)
    };
    let yes = |value: bool| if value { "yes" } else { "no" }.to_owned();
    output.write(&list(&[
        ("version", value_text(&machine.version)),
        ("slot", value_text(&machine.slot)),
        ("next", value_text(&machine.next)),
        ("healthy-a", healthy("A")),
        ("healthy-b", healthy("B")),
        ("on trial", yes(machine.on_trial)),
        ("up for", format!("{} s", machine.up_seconds)),
        ("clock synchronised", yes(machine.clock_synchronised)),
        ("data", format!("{} of {}", octets(machine.data_used), octets(machine.data_size))),
    ]))
}

fn fetch_support_bundle(api: &ApiClient, output: &Output, file: &Path) -> Result<(), Failure> {
    let mut partial_file = PartialFile::create_next_to(file)?;
    let answer = api.open("/v1/appliance/support-bundle", &[("accept", "application/gzip")])?;
    let progress = Progress::for_octets(output.shows_progress(), "written", None);
    let broken = |error| Failure::Interrupted(format!("the file ended too early: {error}"));
    let written = std::io::copy(&mut progress.reader(answer), partial_file.file()).map_err(broken)?;
    drop(progress);
    partial_file.finish(file)?;
    if output.json {
        return output.document(&json!({ "file": file.display().to_string(), "octets": written }));
    }
    output.line(&format!("{}: {}", file.display(), octets(written)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_api::{FakeApi, run};
    use admin::{Problem, ProblemKind};
    use api::SystemSlotView;

    #[test]
    fn tasks_become_arguments_of_the_image_program() {
        let arguments = |task: Task| task.arguments().join(" ".as_ref()).into_string().unwrap();
        let reboot_args = |no_reboot| RebootArgs { no_reboot };
        assert_eq!(arguments(Task::Status), "status");
        assert_eq!(
            arguments(Task::Update { file: "a b.raucb".into(), reboot_args: reboot_args(true) }),
            "update a b.raucb --no-reboot"
        );
        assert_eq!(arguments(Task::Rollback { reboot_args: reboot_args(false) }), "rollback");
        let what = |keep_state| ResetArgs { keep_state, drop_state: !keep_state };
        assert_eq!(
            arguments(Task::FactoryReset { what: what(true), reboot_args: reboot_args(false) }),
            "factory-reset --keep-state"
        );
        assert_eq!(
            arguments(Task::FactoryReset { what: what(false), reboot_args: reboot_args(true) }),
            "factory-reset --drop-state --no-reboot"
        );
    }

    fn api() -> FakeApi {
        let slot = |name: &str, healthy: Option<&str>| SystemSlotView {
            name: name.to_owned(),
            healthy: healthy.map(str::to_owned),
        };
        let machine = ImageStatusView {
            version: "1.0".to_owned(),
            slot: "A".to_owned(),
            next: "B".to_owned(),
            slots: vec![slot("A", Some("1.0")), slot("B", None)],
            on_trial: false,
            up_seconds: 61,
            clock_synchronised: true,
            data_used: 1_000_000,
            data_size: 4_000_000_000,
        };
        let done = |message: &str, restarts| OperateResult { message: message.to_owned(), restarts };
        let other = Problem::new(ProblemKind::NotFound, "this machine is not the appliance image");
        FakeApi::default()
            .with("GET /v1/appliance", 200, &machine)
            .with("POST /v1/appliance/update?restart=false", 200, &done("written", false))
            .with("POST /v1/appliance/factory-reset", 200, &done("slot B runs from the next start on", true))
            .refusing("POST /v1/appliance/rollback", &other)
            .with_file("GET /v1/appliance/support-bundle", vec![0x1f, 0x8b], None)
    }

    #[test]
    fn other_machines_use_the_api() {
        let api = api();
        let url = api.start();
        let done = run(&url, &["appliance", "status"]);
        assert!(done.out.contains("healthy-b") && done.out.contains("never"), "{}", done.out);
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name).display().to_string();
        std::fs::write(file("update.raucb"), "octets").unwrap();
        let done = run(&url, &["appliance", "update", &file("update.raucb"), "--no-reboot"]);
        assert_eq!((done.code, done.out.as_str()), (0, "written\n"), "{}", done.error);
        assert_eq!(api.requests().last().unwrap().body, "octets");
        let done = run(&url, &["appliance", "factory-reset", "--drop-state"]);
        assert!(done.out.contains("restarts now"), "{}", done.out);
        let done = run(&url, &["appliance", "support-bundle", &file("support.tar.gz")]);
        assert_eq!(done.code, 0, "{}", done.error);
        assert_eq!(std::fs::read(file("support.tar.gz")).unwrap(), [0x1f, 0x8b]);
    }

    #[test]
    fn a_machine_without_the_image_is_refused() {
        let done = run(&api().start(), &["appliance", "rollback"]);
        assert_eq!(done.code, 1);
        assert!(done.error.contains("not the appliance image"), "{}", done.error);
    }

    #[test]
    fn a_reset_needs_keep_or_drop_state() {
        let done = run("http://127.0.0.1:1", &["appliance", "factory-reset"]);
        assert_eq!(done.code, 2);
        assert!(done.error.contains("--keep-state"), "{}", done.error);
    }
}
