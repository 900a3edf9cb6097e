//! `switchyard token`: manages API tokens.

use crate::format::{table, timestamp, value_text};
use crate::global_args::{GlobalArgs, exit_help};
use crate::output::{Failure, Output, Streams};
use crate::role_args::RoleArgs;
use crate::user::flag;
use clap::{Args, Subcommand};
use client::{ApiClient, encode_segment};
use serde_json::Value;
use std::process::ExitCode;

const AFTER: &str = concat!(
    exit_help!(),
    "
Examples:
  switchyard token make grafana --role viewer --days 365 > grafana.token
  switchyard token list
  switchyard token revoke grafana"
);

/// Arguments of `token`.
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
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
            Self::List => print_tokens(output, &api.get("/v1/tokens")?),
            Self::Make { name, role, days } => {
                let mut request = role.request(&name);
                if let Some(days) = days {
                    request["days"] = days.into();
                }
                let made = api.post("/v1/tokens", &request)?;
                if output.json { output.document(&made) } else { output.line(&value_text(&made["token"])) }
            }
            Self::Revoke { name } => {
                api.delete(&format!("/v1/tokens/{}", encode_segment(&name)))?;
                Ok(())
            }
        }
    }
}

fn print_tokens(output: &Output, tokens: &Value) -> Result<(), Failure> {
    if output.json {
        return output.document(tokens);
    }
    let now = output.now();
    let rows = tokens.as_array().into_iter().flatten().map(|token| {
        let ended = token["until"].as_u64().is_some_and(|until| until <= now);
        vec![
            value_text(&token["name"]),
            value_text(&token["role"]),
            value_text(&token["account"]),
            flag(&token["bodies"]),
            timestamp(&token["made"]),
            value_text(&token["by"]),
            if ended {
                format!("{} (expired)", timestamp(&token["until"]))
            } else {
                timestamp(&token["until"])
            },
        ]
    });
    let rows: Vec<_> = rows.collect();
    if rows.is_empty() {
        return output.line("no API tokens");
    }
    output.write(&table(&["TOKEN", "ROLE", "ACCOUNT", "TEXTS", "CREATED", "BY", "UNTIL"], &rows))
}

#[cfg(test)]
mod tests {
    use crate::fake_api::{FakeApi, NOW, run};
    use serde_json::{Value, json};

    #[test]
    fn tokens_are_created_listed_and_revoked() {
        let listed = json!({
            "name": "ci", "role": "viewer", "account": null, "bodies": false, "made": NOW, "by": "ann", "until": NOW - 1,
        });
        let mut made = listed.clone();
        made["token"] = json!("swyd_1");
        let api = FakeApi::default()
            .with("POST /v1/tokens", 201, &made)
            .with("GET /v1/tokens", 200, &json!([listed]))
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
