//! `switchyard token`: words by which programs come in.

use crate::leave::Leave;
use crate::output::{Failure, Output, Streams};
use crate::table::{moment, table, word};
use crate::user::flag;
use crate::way::{Way, exits};
use clap::{Args, Subcommand};
use client::{Appliance, segment};
use serde_json::Value;
use std::process::ExitCode;

const AFTER: &str = concat!(
    exits!(),
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
    way: Way,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// List all tokens that were made.
    List,
    /// Make a token; prints it, this once.
    Make {
        /// Its name.
        name: String,
        #[command(flatten)]
        leave: Leave,
        /// After how many days it ends by itself: 1 to 3650; never otherwise.
        #[arg(long)]
        days: Option<u64>,
    },
    /// End a token.
    Revoke {
        /// Its name.
        name: String,
    },
}

impl TokenCommand {
    pub(crate) fn run(self, streams: Streams) -> ExitCode {
        let Self { task, way } = self;
        way.ask(streams, |appliance, output| task.run(appliance, output))
    }
}

impl Task {
    fn run(self, appliance: &Appliance, output: &Output) -> Result<(), Failure> {
        match self {
            Self::List => all(output, &appliance.get("/v1/tokens")?),
            Self::Make { name, leave, days } => {
                let mut wish = leave.wish(&name);
                if let Some(days) = days {
                    wish["days"] = days.into();
                }
                let made = appliance.post("/v1/tokens", &wish)?;
                if output.json { output.document(&made) } else { output.line(&word(&made["token"])) }
            }
            Self::Revoke { name } => {
                appliance.delete(&format!("/v1/tokens/{}", segment(&name)))?;
                Ok(())
            }
        }
    }
}

fn all(output: &Output, tokens: &Value) -> Result<(), Failure> {
    if output.json {
        return output.document(tokens);
    }
    let now = output.now();
    let rows = tokens.as_array().into_iter().flatten().map(|token| {
        let ended = token["until"].as_u64().is_some_and(|until| until <= now);
        vec![
            word(&token["name"]),
            word(&token["role"]),
            word(&token["account"]),
            flag(&token["bodies"]),
            moment(&token["made"]),
            word(&token["by"]),
            if ended { format!("{} (ended)", moment(&token["until"])) } else { moment(&token["until"]) },
        ]
    });
    let rows: Vec<_> = rows.collect();
    if rows.is_empty() {
        return output.line("no tokens but the appliance's own");
    }
    output.write(&table(&["TOKEN", "ROLE", "ACCOUNT", "TEXTS", "MADE", "BY", "UNTIL"], &rows))
}

#[cfg(test)]
mod tests {
    use crate::stub::{NOW, Stub, run};
    use serde_json::{Value, json};

    #[test]
    fn tokens_are_made_listed_and_revoked() {
        let made = json!({
            "token": "swyd_1", "name": "ci", "role": "viewer", "account": null, "bodies": false, "made": NOW,
            "by": "ann", "until": NOW - 1,
        });
        let stub = Stub::default()
            .with("POST /v1/tokens", 201, &made)
            .with("GET /v1/tokens", 200, &json!([made]))
            .with("DELETE /v1/tokens/ci", 204, &Value::Null);
        let url = stub.start();
        let done = run(&url, &["token", "make", "ci", "--role", "viewer", "--days", "1"]);
        assert_eq!((done.code, done.out.as_str()), (0, "swyd_1\n"), "{}", done.error);
        let done = run(&url, &["token", "list"]);
        let shown = "TOKEN  ROLE    ACCOUNT  TEXTS  MADE                  BY   UNTIL\n\
                     ci     viewer  -        no     2026-11-21 16:03:02Z  ann  2026-11-21 16:03:01Z (ended)\n";
        assert_eq!(done.out, shown);
        assert_eq!(run(&url, &["token", "revoke", "ci"]).code, 0);
        let body: Value = serde_json::from_str(&stub.asked()[0].body).unwrap();
        assert_eq!(body, json!({ "name": "ci", "role": "viewer", "bodies": false, "days": 1 }));
    }
}
