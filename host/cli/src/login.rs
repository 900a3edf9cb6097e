//! `switchyard login`, `logout`, `whoami`.

use crate::format::{list, timestamp, value_text};
use crate::global_args::{GlobalArgs, exit_help};
use crate::output::{Failure, Output, Streams};
use crate::password;
use clap::Args;
use client::ConnectionArgs;
use serde_json::{Value, json};
use std::process::ExitCode;

const LOGIN: &str = concat!(
    exit_help!(),
    "
Examples:
  switchyard login ann                                   # prompts for the password; later commands run as ann
  switchyard login --token-file /var/lib/switchyard/token   # the first time
  echo \"$PASSWORD\" | switchyard login ann --url https://switch.example.net:8080
  switchyard logout"
);

const PLAIN: &str = concat!(
    exit_help!(),
    "
Examples:
  switchyard whoami
  switchyard logout"
);

/// Arguments of `login`.
#[derive(Debug, Args)]
#[command(after_help = LOGIN)]
pub struct LoginCommand {
    /// The user; the password is prompted for, or read from standard input. Without a user, log in with the token.
    user: Option<String>,
    #[command(flatten)]
    connection: ConnectionArgs,
    /// Print JSON, for programs.
    #[arg(long, global = true)]
    json: bool,
}

/// Arguments of `logout`.
#[derive(Debug, Args)]
#[command(after_help = PLAIN)]
pub struct LogoutCommand {
    #[command(flatten)]
    connection: ConnectionArgs,
    /// Print JSON, for programs.
    #[arg(long, global = true)]
    json: bool,
}

/// Arguments of `whoami`.
#[derive(Debug, Args)]
#[command(after_help = PLAIN)]
pub struct WhoamiCommand {
    #[command(flatten)]
    global: GlobalArgs,
}

impl LoginCommand {
    pub(crate) fn run(self, streams: Streams) -> ExitCode {
        let Self { user, connection, json } = self;
        let output = Output::new(streams, json);
        let done = log_in(user, connection, &output);
        output.finish(done)
    }
}

fn log_in(user: Option<String>, connection: ConnectionArgs, output: &Output) -> Result<(), Failure> {
    let principal = match user {
        Some(user) => {
            let password = password::read_password(&format!("Password of {user}: "))?;
            connection.log_in(&json!({ "user": user, "password": password }))?
        }
        None => {
            let token = connection.token()?;
            connection.log_in(&json!({ "token": token }))?
        }
    };
    show(output, &principal)
}

impl LogoutCommand {
    pub(crate) fn run(self, streams: Streams) -> ExitCode {
        let output = Output::new(streams, self.json);
        let done = match self.connection.log_out() {
            Ok(true) => Ok(()),
            Ok(false) => Err(Failure::Refused("there is no saved login for this appliance".to_owned())),
            Err(error) => Err(error.into()),
        };
        output.finish(done)
    }
}

impl WhoamiCommand {
    pub(crate) fn run(self, streams: Streams) -> ExitCode {
        self.global.run(streams, |api, output| show(output, &api.get("/v1/whoami")?))
    }
}

fn show(output: &Output, principal: &Value) -> Result<(), Failure> {
    if output.json {
        let mut shown = principal.clone();
        if let Some(shown) = shown.as_object_mut() {
            // The CSRF token is a secret of the session.
            shown.remove("csrf");
        }
        return output.document(&shown);
    }
    let permissions: Vec<String> =
        principal["permissions"].as_array().into_iter().flatten().map(value_text).collect();
    output.write(&list(&[
        ("user", value_text(&principal["user"])),
        ("role", value_text(&principal["role"])),
        ("account", value_text(&principal["account"])),
        ("permissions", permissions.join(", ")),
        ("until", timestamp(&principal["until"])),
    ]))
}
