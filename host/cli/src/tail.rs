//! `switchyard tail`: prints messages when they are accepted and when their states change, and findings when they appear and
//! disappear.

use crate::format::{timestamp, value_text, with_readable_times};
use crate::global_args::{GlobalArgs, exit_help, refresh_interval};
use crate::output::{Failure, Output, Streams, Tone};
use api::{AttentionSeverity, AttentionView, MessagePageView, MessageRowView};
use clap::Args;
use client::{ApiClient, encode_segment};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;
use std::sync::mpsc;
use std::time::Duration;

const AFTER_HELP: &str = concat!(
    exit_help!(),
    "
A message is followed until it is finished, or until 10,000 newer ones are followed. At most 1,000 messages are read at a time: at
a higher rate, some are left out, and the output says so.

Examples:
  switchyard tail
  switchyard tail --account acme --state failed
  switchyard tail --no-messages
  switchyard tail --json | jq 'select(.kind == \"message\") | .message.id'"
);

/// Maximum number of messages that are read at a time.
const MAX_READ: usize = 1_000;
/// Maximum number of messages whose states are followed.
const MAX_FOLLOWED: usize = 10_000;

/// Arguments of `tail`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct TailCommand {
    /// Only messages to or from this number.
    #[arg(long)]
    number: Option<String>,
    /// Only messages of this account.
    #[arg(long)]
    account: Option<String>,
    /// Only messages for this peer.
    #[arg(long)]
    peer: Option<String>,
    /// Only messages in this state.
    #[arg(long)]
    state: Option<String>,
    /// Leave out findings.
    #[arg(long, conflicts_with = "no_messages")]
    no_events: bool,
    /// Leave out messages.
    #[arg(long)]
    no_messages: bool,
    /// Begin with this many messages that were accepted before.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u16).range(0..=1_000))]
    lines: u16,
    /// The interval of the requests.
    #[arg(long, value_parser = refresh_interval, default_value = "1s")]
    interval: Duration,
    /// Stop after this many requests.
    #[arg(long, hide = true)]
    turns: Option<u64>,
    #[command(flatten)]
    global: GlobalArgs,
}

impl TailCommand {
    pub(crate) fn run(self, streams: Streams) -> ExitCode {
        let Self { number, account, peer, state, no_events, no_messages, lines, interval, turns, global } =
            self;
        let filter = [("number", number), ("account", account), ("peer", peer), ("state", state)];
        let filter: String = filter
            .iter()
            .filter_map(|(name, value)| Some(format!("&{name}={}", encode_segment(value.as_deref()?))))
            .collect();
        global.run(streams, |api, output| {
            let mut followed = FollowedMessages::default();
            let mut known = BTreeSet::new();
            // Nothing is ever sent on this channel.
            let (_sender, never) = mpsc::channel::<()>();
            for turn in 0.. {
                if !no_messages {
                    follow_messages(
                        api,
                        output,
                        &filter,
                        &mut followed,
                        (turn == 0).then_some(lines.into()),
                    )?;
                }
                if !no_events {
                    follow_findings(api, output, &mut known)?;
                }
                if turns.is_some_and(|turns| turn + 1 >= turns) {
                    break;
                }
                let _ = never.recv_timeout(interval);
            }
            Ok(())
        })
    }
}

/// The messages that were read, with their last state.
#[derive(Debug, Default)]
struct FollowedMessages {
    states: BTreeMap<u64, (String, bool)>,
    /// Messages up to this id are not followed.
    floor: u64,
}

impl FollowedMessages {
    /// Whether a message is new, or its state has changed. With a filter by state, a message is new when it enters that state.
    fn is_new_or_changed(&mut self, message: &MessageRowView) -> bool {
        let Ok(id) = message.id.parse::<u64>() else { return false };
        let state = (message.state.name().to_owned(), message.finished);
        let news = self.states.get(&id).map_or(id > self.floor, |known| *known != state);
        if news {
            self.states.insert(id, state);
            if self.states.len() > MAX_FOLLOWED
                && let Some((oldest, _)) = self.states.pop_first()
            {
                self.floor = self.floor.max(oldest);
            }
        }
        news
    }
}

/// Prints new messages and changed ones; the first time, only the newest `first`.
fn follow_messages(
    api: &ApiClient,
    output: &Output,
    filter: &str,
    followed: &mut FollowedMessages,
    first: Option<usize>,
) -> Result<(), Failure> {
    // Newest first.
    let page: MessagePageView = api.read(&format!("/v1/messages?limit={MAX_READ}{filter}"))?;
    let is_full = page.messages.len() == MAX_READ;
    let oldest = page.messages.last().and_then(|message| message.id.parse::<u64>().ok()).unwrap_or(0);
    if first.is_none() && is_full && filter.is_empty() {
        let newest = followed.states.last_key_value().map_or(0, |(id, _)| *id);
        if oldest > newest.saturating_add(1) {
            output.remark("some messages are left out: there were more than 1,000 since the last request");
        }
    }
    let news: Vec<&MessageRowView> =
        page.messages.iter().rev().filter(|message| followed.is_new_or_changed(message)).collect();
    if first.is_some() && is_full {
        // Older ones may enter the list when newer ones leave it.
        followed.floor = oldest;
    }
    let skipped = first.map_or(0, |first| news.len().saturating_sub(first));
    news.iter().skip(skipped).try_for_each(|message| print_message(output, message))
}

fn print_message(output: &Output, message: &MessageRowView) -> Result<(), Failure> {
    if output.json {
        return output.document(&json!({ "kind": "message", "message": message }));
    }
    let state = message.state.name();
    let tone = match state {
        "delivered" | "relayed" => Some(Tone::Ok),
        "failed" | "rejected" => Some(Tone::Error),
        "expired" | "unknown" | "uncertain" | "quarantined" => Some(Tone::Warning),
        _ => None,
    };
    let padded = format!("{state:<13}");
    let state = tone.map_or_else(|| padded.clone(), |tone| output.paint(tone, &padded));
    output.line(&format!(
        "{}  {}  {state}  {} > {}  {} > {}",
        timestamp(&message.at),
        value_text(&message.id),
        value_text(&message.account),
        value_text(&message.peer),
        value_text(&message.source),
        value_text(&message.destination),
    ))
}

/// Prints new findings, and findings that have disappeared.
fn follow_findings(
    api: &ApiClient,
    output: &Output,
    known: &mut BTreeSet<(String, String)>,
) -> Result<(), Failure> {
    let found: Vec<AttentionView> = api.read("/v1/attention")?;
    let key =
        |finding: &AttentionView| (finding.code.clone(), finding.subject.name.clone().unwrap_or_default());
    let now = timestamp(&output.now());
    for finding in found.iter().filter(|finding| !known.contains(&key(finding))) {
        if output.json {
            output.document(&json!({ "kind": "finding", "finding": finding }))?;
            continue;
        }
        let tone = match finding.severity {
            AttentionSeverity::Error => Tone::Error,
            AttentionSeverity::Warning => Tone::Warning,
        };
        let text = with_readable_times(&finding.text);
        output.line(&format!("{now}  {}  {text}", output.paint(tone, &value_text(&finding.severity))))?;
    }
    let still: BTreeSet<(String, String)> = found.iter().map(key).collect();
    for (code, name) in known.difference(&still) {
        if output.json {
            output.document(&json!({ "kind": "resolved", "code": code, "subject": name }))?;
        } else {
            let subject = if name.is_empty() { String::new() } else { format!(" {}", value_text(name)) };
            output.line(&format!("{now}  {}  {code}{subject}", output.paint(Tone::Ok, "resolved")))?;
        }
    }
    *known = still;
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::fake_api::{FakeApi, NOW, run};
    use crate::fixtures;
    use api::{
        AttentionSeverity, AttentionSubjectKind, AttentionView, MessagePageView, MessageRowView,
        MessageStateView,
    };

    fn message(id: u64, state: MessageStateView) -> MessageRowView {
        MessageRowView {
            id: id.to_string(),
            at: NOW,
            state,
            finished: state == MessageStateView::Delivered,
            account: "acme".to_owned(),
            peer: "north".to_owned(),
            source: "10655".to_owned(),
            destination: "+49151****678".to_owned(),
            length: 11,
            partition: None,
        }
    }

    fn page(messages: Vec<MessageRowView>) -> MessagePageView {
        MessagePageView { messages, ..MessagePageView::default() }
    }

    #[test]
    fn messages_are_printed_once_for_each_state_and_findings_until_they_are_resolved() {
        let path = "GET /v1/messages?limit=1000&account=acme";
        let (queued, delivered) = (MessageStateView::Queued, MessageStateView::Delivered);
        let down = fixtures::finding(
            AttentionSeverity::Error,
            "peer-down",
            AttentionSubjectKind::Peer,
            "no link to north is up",
        );
        let api = FakeApi::default()
            .with(path, 200, &page(vec![message(3, queued), message(2, queued), message(1, delivered)]))
            .with(path, 200, &page(vec![message(4, queued), message(3, delivered), message(2, queued)]))
            .with("GET /v1/attention", 200, &[down])
            .with("GET /v1/attention", 200, &Vec::<AttentionView>::new());
        let outcome = run(
            &api.start(),
            &["tail", "--account", "acme", "--lines", "2", "--interval", "100ms", "--turns", "2"],
        );
        assert_eq!(outcome.code, 0, "{outcome:?}");
        let lines: Vec<&str> = outcome
            .out
            .lines()
            .map(|line| line.split("  acme").next().unwrap_or_default().trim_end())
            .collect();
        let at = "2026-11-21 16:03:02Z";
        let expected = [
            format!("{at}  2  queued"),
            format!("{at}  3  queued"),
            format!("{at}  error  no link to north is up"),
            format!("{at}  3  delivered"),
            format!("{at}  4  queued"),
            format!("{at}  resolved  peer-down"),
        ];
        assert_eq!(lines, expected);
    }
}
