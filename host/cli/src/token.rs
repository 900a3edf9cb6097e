//! `switchyard token`: manages API tokens.

use crate::format::{timestamp, value_text};
use crate::global_args::{GlobalArgs, exit_help};
use crate::output::{Failure, Output, Streams};
use crate::role_args::RoleArgs;
use crate::user::flag;
use api::{CreatedTokenView, TokenInfo, TokenRequest};
use clap::{Args, Subcommand};
use client::{ApiClient, encode_segment};
use std::process::ExitCode;

const AFTER_HELP: &str = concat!(
    exit_help!(),
    "
Examples:
  switchyard token make grafana --role viewer --days 365 > grafana.token
  switchyard token list
  switchyard token revoke grafana"
);

/// Arguments of `token`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct TokenCommand {
    #[command(subcommand)]
    task: Task,
    #[command(flatten)]
    global: GlobalArgs,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// List all API tokens.
    List,
    /// Create a token, and print it; it is shown only once.
    Make {
        /// Its name.
        name: String,
        #[command(flatten)]
        role: RoleArgs,
        /// Days until it expires: 1 to 3650; without it, the token never expires.
        #[arg(long)]
        days: Option<u64>,
    },
    /// Revoke a token.
    Revoke {
        /// Its name.
        name: String,
    },
}

impl TokenCommand {
    pub(crate) fn run(self, streams: Streams) -> ExitCode {
        let Self { task, global } = self;
        global.run(streams, |api, output| task.run(api, output))
    }
}

impl Task {
    fn run(self, api: &ApiClient, output: &Output) -> Result<(), Failure> {
        match self {
            Self::List => print_tokens(output, &api.read::<Vec<TokenInfo>>("/v1/tokens")?),
            Self::Make { name, role: RoleArgs { role, account, tenant, bodies }, days } => {
                let request = TokenRequest { name, role: role.into(), account, tenant, bodies, days };
                let made: CreatedTokenView = api.call("POST", "/v1/tokens", &request)?;
                if output.json { output.document(&made) } else { output.line(&value_text(&made.token)) }
            }
            Self::Revoke { name } => {
                api.delete(&format!("/v1/tokens/{}", encode_segment(&name)))?;
                Ok(())
            }
        }
    }
}

fn print_tokens(output: &Output, tokens: &[TokenInfo]) -> Result<(), Failure> {
    if output.json {
        return output.document(&tokens);
    }
    let now = output.now();
    let rows = tokens.iter().map(|token| {
        let ended = if token.until.is_some_and(|until| until.0 <= now) { " (expired)" } else { "" };
        vec![
            value_text(&token.name),
            value_text(&token.role),
            value_text(&token.account),
            flag(token.bodies),
            timestamp(&token.made),
            value_text(&token.by),
            timestamp(&token.until) + ended,
        ]
    });
    let rows: Vec<_> = rows.collect();
    if rows.is_empty() {
        return output.line("no API tokens");
    }
    output.table(&["TOKEN", "ROLE", "ACCOUNT", "TEXTS", "CREATED", "BY", "UNTIL"], &rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_api::{FakeApi, NOW, run};
    use api::Role;
    use model::Timestamp;
    use serde_json::{Value, json};

    #[test]
    fn tokens_are_created_listed_and_revoked() {
        let info = TokenInfo {
            name: "ci".to_owned(),
            role: Role::Viewer,
            account: None,
            tenant: None,
            bodies: false,
            made: Timestamp(NOW),
            by: "ann".to_owned(),
            until: Some(Timestamp(NOW - 1)),
        };
        let made = CreatedTokenView { token: "swyd_1".to_owned(), info: info.clone() };
        let api = FakeApi::default()
            .with("POST /v1/tokens", 201, &made)
            .with("GET /v1/tokens", 200, &[info])
            .with("DELETE /v1/tokens/ci", 204, &Value::Null);
        let url = api.start();
        let done = run(&url, &["token", "make", "ci", "--role", "viewer", "--days", "1"]);
        assert_eq!((done.code, done.out.as_str()), (0, "swyd_1\n"), "{}", done.error);
        let done = run(&url, &["token", "list"]);
        let shown = "TOKEN  ROLE    ACCOUNT  TEXTS  CREATED               BY   UNTIL\n\
                     ci     viewer  -        no     2026-11-21 16:03:02Z  ann  2026-11-21 16:03:01Z (expired)\n";
        assert_eq!(done.out, shown);
        assert_eq!(run(&url, &["token", "revoke", "ci"]).code, 0);
        let body: Value = serde_json::from_str(&api.requests()[0].body).unwrap();
        assert_eq!(body, json!({ "name": "ci", "role": "viewer", "bodies": false, "days": 1 }));
    }
}
