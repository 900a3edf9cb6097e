//! `switchyard login`, `logout`, `whoami`.

use crate::format::{list, timestamp, value_text};
use crate::global_args::{GlobalArgs, exit_help};
use crate::output::{Failure, Output, Streams};
use crate::password;
use api::{LoginRequest, WhoamiView};
use clap::Args;
use client::ConnectionArgs;
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
        let output = Output::without_tables(streams, json);
        let done = log_in(user, connection, &output);
        output.finish(done)
    }
}

fn log_in(user: Option<String>, connection: ConnectionArgs, output: &Output) -> Result<(), Failure> {
    let login = match user {
        Some(user) => {
            let password = password::read_password(&format!("Password of {user}: "))?;
            LoginRequest::with_password(user, password)
        }
        None => LoginRequest::with_token(connection.token()?),
    };
    show(output, connection.log_in(&login)?)
}

impl LogoutCommand {
    pub(crate) fn run(self, streams: Streams) -> ExitCode {
        let output = Output::without_tables(streams, self.json);
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
        self.global.run(streams, |api, output| show(output, api.read("/v1/whoami")?))
    }
}

fn show(output: &Output, principal: WhoamiView) -> Result<(), Failure> {
    // The CSRF token is a secret of the session.
    let principal = WhoamiView { csrf: None, ..principal };
    if output.json {
        return output.document(&principal);
    }
    let permissions: Vec<String> = principal.permissions.iter().map(ToString::to_string).collect();
    output.write(&list(&[
        ("user", value_text(&principal.user)),
        ("role", value_text(&principal.role)),
        ("account", value_text(&principal.account)),
        ("permissions", permissions.join(", ")),
        ("until", timestamp(&principal.until)),
    ]))
}
