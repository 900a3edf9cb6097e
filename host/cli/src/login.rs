//! `switchyard login`, `logout`, `whoami`.

use crate::output::{Failure, Output, Streams};
use crate::secret;
use crate::table::{list, moment, word};
use crate::way::{Way, exits};
use clap::Args;
use client::At;
use serde_json::{Value, json};
use std::process::ExitCode;

const LOGIN: &str = concat!(
    exits!(),
    "
Examples:
  switchyard login ann                                   # asks for the password; other commands go on as ann
  switchyard login --token-file /var/lib/switchyard/token   # the first time
  echo \"$PASSWORD\" | switchyard login ann --url https://switch.example.net:8080
  switchyard logout"
);

const PLAIN: &str = concat!(
    exits!(),
    "
Examples:
  switchyard whoami
  switchyard logout"
);

/// Arguments of `login`.
#[derive(Debug, Args)]
#[command(after_help = LOGIN)]
pub struct LoginCommand {
    /// The user; the password is asked for, or read from standard input. Without one: whoever has the token.
    user: Option<String>,
    #[command(flatten)]
    at: At,
    /// Print JSON, for programs.
    #[arg(long, global = true)]
    json: bool,
}

/// Arguments of `logout`.
#[derive(Debug, Args)]
#[command(after_help = PLAIN)]
pub struct LogoutCommand {
    #[command(flatten)]
    at: At,
    /// Print JSON, for programs.
    #[arg(long, global = true)]
    json: bool,
}

/// Arguments of `whoami`.
#[derive(Debug, Args)]
#[command(after_help = PLAIN)]
pub struct WhoamiCommand {
    #[command(flatten)]
    way: Way,
}

impl LoginCommand {
    pub(crate) fn run(self, streams: Streams) -> ExitCode {
        let Self { user, at, json } = self;
        let output = Output::new(streams, json);
        let done = log_in(user, at, &output);
        output.end(done)
    }
}

fn log_in(user: Option<String>, at: At, output: &Output) -> Result<(), Failure> {
    let standing = match user {
        Some(user) => {
            let password = secret::ask(&format!("Password of {user}: "))?;
            at.log_in(&json!({ "user": user, "password": password }))?
        }
        None => {
            let token = at.token()?;
            at.log_in(&json!({ "token": token }))?
        }
    };
    show(output, &standing)
}

impl LogoutCommand {
    pub(crate) fn run(self, streams: Streams) -> ExitCode {
        let output = Output::new(streams, self.json);
        let done = match self.at.log_out() {
            Ok(true) => Ok(()),
            Ok(false) => Err(Failure::Refused("nobody is logged in there".to_owned())),
            Err(error) => Err(error.into()),
        };
        output.end(done)
    }
}

impl WhoamiCommand {
    pub(crate) fn run(self, streams: Streams) -> ExitCode {
        self.way.ask(streams, |appliance, output| show(output, &appliance.get("/v1/whoami")?))
    }
}

fn show(output: &Output, standing: &Value) -> Result<(), Failure> {
    if output.json {
        let mut shown = standing.clone();
        if let Some(shown) = shown.as_object_mut() {
            // A secret of the session, which is nobody's business on a screen.
            shown.remove("csrf");
        }
        return output.document(&shown);
    }
    let rights: Vec<String> = standing["rights"].as_array().into_iter().flatten().map(word).collect();
    output.write(&list(&[
        ("user", word(&standing["user"])),
        ("role", word(&standing["role"])),
        ("account", word(&standing["account"])),
        ("rights", rights.join(", ")),
        ("until", moment(&standing["until"])),
    ]))
}
