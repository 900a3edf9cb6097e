//! `switchyard message`: finds, shows, traces, cancels, retries and sends messages.

mod render;

use crate::format::{timestamp, value_text};
use crate::global_args::{GlobalArgs, exit_help};
use crate::output::{Failure, Output, Streams};
use crate::paged_list::{fetch_pages, remark_missing};
use api::{
    AcceptedMessage, ContentErasureView, ConversionsRequest, ConversionsResult, MessagePageView, Problem,
    TestMessageRequest, TraceView,
};
use clap::{Args, Subcommand};
use client::{ApiClient, ClientError, encode_segment};
use model::parse_duration;
use serde_json::{Value, json};
use std::io::Read;
use std::process::ExitCode;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

const AFTER_HELP: &str = concat!(
    exit_help!(),
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
#[command(after_help = AFTER_HELP)]
pub struct MessageCommand {
    #[command(subcommand)]
    task: Task,
    #[command(flatten)]
    global: GlobalArgs,
}

/// The filters of a search for messages.
#[derive(Debug, Args)]
struct FindArgs {
    /// Only messages to or from this number.
    #[arg(long)]
    number: Option<String>,
    /// Only messages of this submission to several destinations (SMPP submit_multi).
    #[arg(long, value_name = "ID")]
    submission: Option<String>,
    /// Only messages to or from the subscriber with this IMSI.
    #[arg(long, conflicts_with = "number")]
    imsi: Option<String>,
    /// Only messages of this account.
    #[arg(long)]
    account: Option<String>,
    /// Only messages that are routed to this peer.
    #[arg(long)]
    peer: Option<String>,
    /// Only messages in this state: queued, submitted, deferred, uncertain, delivered, failed …
    #[arg(long)]
    state: Option<String>,
    /// Accepted at this time or later: 2026-11-21T16:00:00Z, or 2h for two hours ago.
    #[arg(long, value_name = "TIME")]
    from: Option<String>,
    /// Accepted before this time.
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Maximum number of messages, newest first.
    #[arg(long, default_value_t = 50)]
    limit: usize,
    /// Continue after an earlier list, with the cursor that it printed.
    #[arg(long)]
    cursor: Option<String>,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// List messages, waiting and finished, newest first.
    #[command(
        after_help = "Example, messages that failed at a peer in the last hour:\n  switchyard message find --peer upstream \
                            --state failed --from 1h"
    )]
    Find(FindArgs),
    /// Show one message: its state, its routing, and the reason why it waits.
    Show {
        /// Its id.
        id: String,
        /// Include its text; this is recorded in the audit log.
        #[arg(long)]
        body: bool,
    },
    /// Show one message with all its steps and their times.
    Trace {
        /// Its id.
        id: String,
        /// Include its text; this is recorded in the audit log.
        #[arg(long)]
        body: bool,
    },
    /// Cancel messages that are not finished; their submitters receive a DLR.
    Cancel {
        /// Their ids.
        #[arg(required = true)]
        ids: Vec<String>,
    },
    /// Erase the contents of finished messages, such as their texts; the messages stay. This cannot be undone.
    #[command(after_help = "Example:\n  switchyard message erase 1000000042")]
    Erase {
        /// Their ids.
        #[arg(required = true)]
        ids: Vec<String>,
    },
    /// Retry deferred messages now.
    Retry {
        /// Their ids.
        #[arg(required = true)]
        ids: Vec<String>,
    },
    /// Report that messages led to a conversion, such as a one-time password that was used; exits with 1 if one is unknown.
    #[command(after_help = "Example:\n  switchyard message report-conversion 1000000042 1000000043")]
    ReportConversion {
        /// Their ids.
        #[arg(required = true)]
        ids: Vec<String>,
    },
    /// Send a test message as if an account had submitted it; prints its id.
    #[command(
        after_help = "Example:\n  switchyard message send --account demo --from 10655 --to 8613012345678 'a test'"
    )]
    Send {
        /// The account: it is charged, and receives replies and DLRs.
        #[arg(long)]
        account: String,
        /// The sender.
        #[arg(long, default_value = "")]
        from: String,
        /// The recipient.
        #[arg(long)]
        to: String,
        /// The text; - is standard input.
        text: String,
    },
}

impl MessageCommand {
    pub(crate) fn run(self, streams: Streams) -> ExitCode {
        let Self { task, global } = self;
        global.run(streams, |api, output| task.run(api, output))
    }
}

/// Parses a time, or a duration before `now`; the result is in milliseconds since the epoch.
pub(crate) fn parse_time(text: &str, now: u64) -> Result<u64, Failure> {
    if let Some(ago) = parse_duration(text) {
        return Ok(now.saturating_sub(u64::try_from(ago.as_millis()).unwrap_or(u64::MAX)));
    }
    let at = OffsetDateTime::parse(text, &Rfc3339).ok();
    let at = at.and_then(|at| u64::try_from(at.unix_timestamp_nanos() / 1_000_000).ok());
    at.ok_or_else(|| {
        let what = format!(
            "{text:?} is not a time: expected one such as 2026-11-21T16:00:00Z, or 2h for two hours ago"
        );
        Failure::Usage(what)
    })
}

/// The API path of a message, or of a resource below it.
fn path(id: &str, rest: &str) -> String {
    format!("/v1/messages/{}{rest}", encode_segment(id))
}

impl FindArgs {
    fn query(self, now: u64) -> Result<Vec<(&'static str, String)>, Failure> {
        let at = |text: Option<String>| -> Result<Option<String>, Failure> {
            text.map(|text| Ok(parse_time(&text, now)?.to_string())).transpose()
        };
        let parameters = [
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
        Ok(parameters.into_iter().filter_map(|(name, value)| Some((name, value?))).collect())
    }
}

impl Task {
    fn run(self, api: &ApiClient, output: &Output) -> Result<(), Failure> {
        let trace = |id: &str, body: bool| {
            api.read::<TraceView>(&path(id, if body { "?body=1" } else { "" })).map_err(Failure::from)
        };
        match self {
            Self::Find(find) => {
                let limit = find.limit;
                let query = find.query(output.now())?;
                let mut found: MessagePageView = fetch_pages(api, "/v1/messages", &query, limit)?;
                let incomplete = found.incomplete.take();
                render::messages(output, &found)?;
                remark_missing(output, &found.missing);
                if let Some(incomplete) = incomplete {
                    output.remark(&incomplete);
                }
                Ok(())
            }
            Self::Show { id, body } => render::message(output, &trace(&id, body)?),
            Self::Trace { id, body } => render::trace(output, &trace(&id, body)?),
            Self::Cancel { ids } => post_each(api, output, &ids, "/cancel", "cancelled"),
            Self::Erase { ids } => erase_each(api, output, &ids),
            Self::Retry { ids } => post_each(api, output, &ids, "/retry", "retried"),
            Self::ReportConversion { ids } => report_conversions(api, output, &ids),
            Self::Send { account, from, to, text } => {
                let text = if text == "-" { read_stdin()? } else { text };
                let message = TestMessageRequest { account, from: Some(from), to, text };
                let accepted: AcceptedMessage = api.call("POST", "/v1/messages", &message)?;
                if output.json {
                    return output.document(&accepted);
                }
                output.line(&value_text(&accepted.id))
            }
        }
    }
}

fn erase_each(api: &ApiClient, output: &Output, ids: &[String]) -> Result<(), Failure> {
    for id in ids {
        let path = path(id, "/content");
        let erased: ContentErasureView = api.typed(&path, api.delete(&path)?)?;
        if output.json {
            output.document(&erased)?;
        } else {
            let at = timestamp(&erased.content_erased_at);
            output.line(&format!("{}: content erased at {at}", value_text(&erased.id)))?;
        }
    }
    Ok(())
}

/// Maximum number of messages in one request.
const CONVERSIONS_PER_REQUEST: usize = 1_000;

fn report_conversions(api: &ApiClient, output: &Output, ids: &[String]) -> Result<(), Failure> {
    let count = ids.len();
    let mut result = ConversionsResult::default();
    for messages in ids.chunks(CONVERSIONS_PER_REQUEST) {
        let request = ConversionsRequest { messages: messages.to_vec() };
        let part: ConversionsResult = api.call("POST", "/v1/conversions", &request)?;
        result.recorded += part.recorded;
        result.repeated += part.repeated;
        result.unknown.extend(part.unknown);
    }
    if output.json {
        output.document(&result)?;
    } else {
        output.line(&format!("recorded {}, reported before {}", result.recorded, result.repeated))?;
        for id in &result.unknown {
            let id = client::terminal::visible(id);
            output.remark(&format!("{id}: there is no such message, or no peer has accepted it"));
        }
    }
    match result.unknown.len() {
        0 => Ok(()),
        unknown => Err(Failure::PartlyRefused(format!("unknown: {unknown} of {count}"))),
    }
}

fn read_stdin() -> Result<String, Failure> {
    let mut text = String::new();
    let read = std::io::stdin().lock().read_to_string(&mut text);
    read.map_err(Failure::file(std::path::Path::new("standard input")))?;
    Ok(text.strip_suffix('\n').map(str::to_owned).unwrap_or(text))
}

/// Sends the same request for each message. If one is refused, the others are still sent.
fn post_each(
    api: &ApiClient,
    output: &Output,
    ids: &[String],
    what: &str,
    done: &str,
) -> Result<(), Failure> {
    let mut refused = 0;
    for id in ids {
        match api.post(&path(id, what), &Value::Null) {
            Ok(_) if output.json => output.document(&json!({ "id": id, "result": "done" }))?,
            Ok(_) => output.line(&format!("{} {done}", client::terminal::visible(id)))?,
            Err(ClientError::Refused(Problem { status: 404 | 409 | 422, detail, .. })) => {
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
        refused => Err(Failure::PartlyRefused(format!("refused: {refused} of {}", ids.len()))),
    }
}
