//! `switchyard message`: finding messages, and what became of one.

mod shown;

use crate::output::{Failure, Output, Streams};
use crate::pages::{List, all_pages};
use crate::way::{Way, exits};
use clap::{Args, Subcommand};
use client::{Appliance, ClientError, segment};
use model::parse_duration;
use serde_json::{Value, json};
use std::io::Read;
use std::process::ExitCode;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

const AFTER: &str = concat!(
    exits!(),
    "
Examples:
  switchyard message find --number 8613012345678
  switchyard message find --imsi 001010000000001
  switchyard message find --peer upstream --state failed --from 2h
  switchyard message trace 1000000042
  switchyard message send --account demo --from 10655 --to 8613012345678 'a test'
  switchyard message find --state queued --json | jq -r '.messages[].id'"
);

/// Arguments of `message`.
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub struct MessageCommand {
    #[command(subcommand)]
    task: Task,
    #[command(flatten)]
    way: Way,
}

/// Which messages.
#[derive(Debug, Args)]
struct Find {
    /// Only to or from this number.
    #[arg(long)]
    number: Option<String>,
    /// Only those of this submission to several destinations (SMPP submit_multi).
    #[arg(long, value_name = "ID")]
    submission: Option<String>,
    /// Only to or from the subscriber with this IMSI.
    #[arg(long, conflicts_with = "number")]
    imsi: Option<String>,
    /// Only those of this account.
    #[arg(long)]
    account: Option<String>,
    /// Only those that go, or went, by this peer.
    #[arg(long)]
    peer: Option<String>,
    /// Only in this state: queued, submitted, deferred, uncertain, delivered, failed …
    #[arg(long)]
    state: Option<String>,
    /// Accepted at this time or later: 2026-11-21T16:00:00Z, or 2h for two hours ago.
    #[arg(long, value_name = "TIME")]
    from: Option<String>,
    /// Accepted before this time.
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// How many at most, newest first.
    #[arg(long, default_value_t = 50)]
    limit: usize,
    /// Go on where an earlier list ended.
    #[arg(long)]
    cursor: Option<String>,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// List messages, those that wait and those that have ended, newest first.
    #[command(
        after_help = "Example, what failed at a peer in the last hour:\n  switchyard message find --peer upstream \
                            --state failed --from 1h"
    )]
    Find(Find),
    /// Show one message: where it is, why there, why not further.
    Show {
        /// Its id.
        id: String,
        /// With its text; that is written into the audit log.
        #[arg(long)]
        body: bool,
    },
    /// Show everything that happened to one message, with its times.
    Trace {
        /// Its id.
        id: String,
        /// With its text; that is written into the audit log.
        #[arg(long)]
        body: bool,
    },
    /// Stop messages that have not ended; their submitters are told.
    Cancel {
        /// Their ids.
        #[arg(required = true)]
        ids: Vec<String>,
    },
    /// Have messages tried now that wait for their next attempt.
    Retry {
        /// Their ids.
        #[arg(required = true)]
        ids: Vec<String>,
    },
    /// Send a test message as if an account had submitted it; prints its id.
    #[command(
        after_help = "Example:\n  switchyard message send --account demo --from 10655 --to 8613012345678 'a test'"
    )]
    Send {
        /// The account: it pays, and replies and reports go to it.
        #[arg(long)]
        account: String,
        /// The sender.
        #[arg(long, default_value = "")]
        from: String,
        /// The addressee.
        #[arg(long)]
        to: String,
        /// The text; - is standard input.
        text: String,
    },
}

impl MessageCommand {
    pub(crate) fn run(self, streams: Streams) -> ExitCode {
        let Self { task, way } = self;
        way.ask(streams, |appliance, output| task.run(appliance, output))
    }
}

/// A point in time as people write it, as the API takes it: milliseconds since the epoch.
pub(crate) fn moment(text: &str, now: u64) -> Result<u64, Failure> {
    if let Some(ago) = parse_duration(text) {
        return Ok(now.saturating_sub(u64::try_from(ago.as_millis()).unwrap_or(u64::MAX)));
    }
    let at = OffsetDateTime::parse(text, &Rfc3339).ok();
    let at = at.and_then(|at| u64::try_from(at.unix_timestamp_nanos() / 1_000_000).ok());
    at.ok_or_else(|| {
        let what = format!(
            "{text:?} is no time: expected one such as 2026-11-21T16:00:00Z, or 2h for two hours ago"
        );
        Failure::Usage(what)
    })
}

/// The path of a message, and of what belongs to it.
fn path(id: &str, rest: &str) -> String {
    format!("/v1/messages/{}{rest}", segment(id))
}

impl Find {
    fn query(self, now: u64) -> Result<Vec<(&'static str, String)>, Failure> {
        let at = |text: Option<String>| -> Result<Option<String>, Failure> {
            text.map(|text| Ok(moment(&text, now)?.to_string())).transpose()
        };
        let asked = [
            ("number", self.number),
            ("submission", self.submission),
            ("imsi", self.imsi),
            ("account", self.account),
            ("peer", self.peer),
            ("state", self.state),
            ("from", at(self.from)?),
            ("until", at(self.until)?),
            ("cursor", self.cursor),
        ];
        Ok(asked.into_iter().filter_map(|(name, value)| Some((name, value?))).collect())
    }
}

impl Task {
    fn run(self, appliance: &Appliance, output: &Output) -> Result<(), Failure> {
        let trace = |id: &str, body: bool| {
            appliance.get(&path(id, if body { "?body=1" } else { "" })).map_err(Failure::from)
        };
        match self {
            Self::Find(find) => {
                let limit = find.limit;
                let list = List { path: "/v1/messages", items: "messages", next: "cursor" };
                let found = all_pages(appliance, list, &find.query(output.now())?, limit)?;
                shown::messages(output, &found.items, &found.next)?;
                if !found.incomplete.is_null() {
                    output.remark(&crate::table::word(&found.incomplete));
                }
                Ok(())
            }
            Self::Show { id, body } => shown::message(output, &trace(&id, body)?),
            Self::Trace { id, body } => shown::trace(output, &trace(&id, body)?),
            Self::Cancel { ids } => each(appliance, output, &ids, "/cancel", "cancelled"),
            Self::Retry { ids } => each(appliance, output, &ids, "/retry", "to be tried now"),
            Self::Send { account, from, to, text } => {
                let text = if text == "-" { input()? } else { text };
                let message = json!({ "account": account, "from": from, "to": to, "text": text });
                let answer = appliance.post("/v1/messages", &message)?;
                if output.json {
                    return output.document(&answer);
                }
                output.line(&crate::table::word(&answer["id"]))
            }
        }
    }
}

fn input() -> Result<String, Failure> {
    let mut text = String::new();
    let read = std::io::stdin().lock().read_to_string(&mut text);
    read.map_err(Failure::file(std::path::Path::new("standard input")))?;
    Ok(text.strip_suffix('\n').map(str::to_owned).unwrap_or(text))
}

/// The same for each message. What is refused is told, and does not hold up the others.
fn each(
    appliance: &Appliance,
    output: &Output,
    ids: &[String],
    what: &str,
    done: &str,
) -> Result<(), Failure> {
    let mut refused = 0;
    for id in ids {
        match appliance.post(&path(id, what), &Value::Null) {
            Ok(_) if output.json => output.document(&json!({ "id": id, "result": "done" }))?,
            Ok(_) => output.line(&format!("{} {done}", client::terminal::visible(id)))?,
            Err(ClientError::Refused { status: 404 | 409 | 422, detail, .. }) => {
                refused += 1;
                if output.json {
                    output.document(&json!({ "id": id, "result": "refused", "detail": detail }))?;
                } else {
                    output.remark(&format!("{id}: {detail}"));
                }
            }
            Err(error) => return Err(error.into()),
        }
    }
    match refused {
        0 => Ok(()),
        refused => Err(Failure::InPart(format!("refused: {refused} of {}", ids.len()))),
    }
}
