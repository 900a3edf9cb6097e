//! `switchyard subscriber`: shows a GSM subscriber, and retries its messages.

use crate::format::{duration_text, list, number, plural, timestamp, value_text};
use crate::global_args::{GlobalArgs, exit_help};
use crate::output::{Failure, Output, Streams};
use api::{AcceptedMessage, PresenceSign, SubscriberView, SubscriberWakeResult};
use clap::{Args, Subcommand};
use client::{ApiClient, encode_segment};
use serde_json::Value;
use std::process::ExitCode;

const AFTER_HELP: &str = concat!(
    exit_help!(),
    "
Examples:
  switchyard subscriber show --number +16195550123
  switchyard subscriber wake --imsi 001010000000001
  switchyard message trace $(switchyard subscriber ping --number +16195550123)"
);

/// Arguments of `subscriber`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct SubscriberCommand {
    #[command(subcommand)]
    task: Task,
    #[command(flatten)]
    global: GlobalArgs,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct SubscriberArgs {
    /// The subscriber with this IMSI.
    #[arg(long)]
    imsi: Option<String>,
    /// The subscriber with this international number; the plus is optional.
    #[arg(long)]
    number: Option<String>,
}

impl SubscriberArgs {
    fn path(&self, rest: &str) -> String {
        let name = match (&self.imsi, &self.number) {
            (Some(imsi), _) => format!("imsi-{imsi}"),
            (None, number) => {
                let number = number.as_deref().unwrap_or_default();
                format!("msisdn-{}", number.strip_prefix('+').unwrap_or(number))
            }
        };
        format!("/v1/subscribers/{}{rest}", encode_segment(&name))
    }
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Show a subscriber's MSC, presence, reachability and waiting messages.
    Show(SubscriberArgs),
    /// Retry all deferred messages to a subscriber now.
    Wake(SubscriberArgs),
    /// Send a subscriber a silent short message, which the handset acknowledges and does not show; prints the message's id.
    Ping(SubscriberArgs),
}

impl SubscriberCommand {
    pub(crate) fn run(self, streams: Streams) -> ExitCode {
        let Self { task, global } = self;
        global.run(streams, |api, output| task.run(api, output))
    }
}

impl Task {
    fn run(self, api: &ApiClient, output: &Output) -> Result<(), Failure> {
        match self {
            Self::Show(subscriber_args) => {
                let subscriber: SubscriberView = api.read(&subscriber_args.path(""))?;
                if output.json {
                    return output.document(&subscriber);
                }
                output.write(&list(&rows(&subscriber, output.now())))
            }
            Self::Wake(subscriber_args) => {
                let woken: SubscriberWakeResult =
                    api.call("POST", &subscriber_args.path("/wake"), &Value::Null)?;
                if output.json {
                    return output.document(&woken);
                }
                output.line(&format!("{} retried", plural(woken.messages, "message", "messages")))
            }
            Self::Ping(subscriber_args) => {
                let sent: AcceptedMessage =
                    api.call("POST", &subscriber_args.path("/silent-sms"), &Value::Null)?;
                if output.json {
                    return output.document(&sent);
                }
                output.line(&value_text(&sent.id))
            }
        }
    }
}

fn rows(subscriber: &SubscriberView, now: u64) -> Vec<(&'static str, String)> {
    let SubscriberView { waiting, msisdn, .. } = subscriber;
    let msc = match &subscriber.msc {
        None => "not known".to_owned(),
        Some(msc) if subscriber.connected => value_text(msc),
        Some(msc) => format!("{}, not connected", value_text(msc)),
    };
    let present = match subscriber.present_at {
        Some(at) => {
            let ago = duration_text(&now.saturating_sub(at));
            format!("{} ({}, {ago} ago)", timestamp(&at), presence_text(subscriber))
        }
        None => "not since the daemon's start".to_owned(),
    };
    let mut rows = vec![
        ("imsi", value_text(&subscriber.imsi)),
        ("number", msisdn.as_ref().map_or("not known".to_owned(), value_text)),
        ("core network", value_text(&subscriber.network)),
        ("msc", msc),
        ("last present", present),
        ("state", value_text(&subscriber.state)),
    ];
    if let Some(reason) = &subscriber.reason {
        rows.push(("reason", value_text(reason)));
    }
    if let Some(at) = &subscriber.next_try {
        rows.push(("next try", timestamp(at)));
    }
    if let Some(id) = &subscriber.message {
        rows.push(("message", value_text(id)));
    }
    let oldest = waiting.oldest_at.map_or(String::new(), |at| {
        format!(", the oldest {} of {}", value_text(&waiting.oldest), timestamp(&at))
    });
    rows.push(("waiting", format!("{}{oldest}", number(waiting.count))));
    rows
}

/// The event that showed the handset's presence.
fn presence_text(subscriber: &SubscriberView) -> &'static str {
    match subscriber.present_by {
        Some(PresenceSign::LocationUpdate) => "location update",
        Some(PresenceSign::Message) => "sent a message",
        Some(PresenceSign::ReadyForSm) => "ready for short messages",
        Some(PresenceSign::Delivery) => "accepted a message",
        None => "-",
    }
}

#[cfg(test)]
mod tests {
    use crate::fake_api::{FakeApi, NOW, run};
    use api::{
        AcceptedMessage, PresenceSign, SubscriberQueueView, SubscriberStateView, SubscriberView,
        SubscriberWakeResult,
    };
    use serde_json::{Value, json};
    use std::collections::BTreeMap;

    fn idle() -> SubscriberView {
        SubscriberView {
            imsi: "001010000000001".to_owned(),
            msisdn: None,
            network: "phones".to_owned(),
            msc: None,
            connected: false,
            present_at: None,
            present_by: None,
            state: SubscriberStateView::Idle,
            reason: None,
            next_try: None,
            message: None,
            waiting: SubscriberQueueView::default(),
        }
    }

    fn absent() -> SubscriberView {
        SubscriberView {
            imsi: "0010*********01".to_owned(),
            msisdn: Some("1619*****23".to_owned()),
            msc: Some("MSC-1".to_owned()),
            connected: true,
            present_at: Some(NOW - 65_000),
            present_by: Some(PresenceSign::LocationUpdate),
            state: SubscriberStateView::Absent,
            reason: Some("network: network failure (17)".to_owned()),
            next_try: Some(NOW + 60_000),
            message: Some("1000000001".to_owned()),
            waiting: SubscriberQueueView {
                count: 3,
                oldest_at: Some(NOW - 60_000),
                oldest: Some("1000000001".to_owned()),
                states: BTreeMap::from([("deferred".to_owned(), 1), ("queued".to_owned(), 2)]),
            },
            ..idle()
        }
    }

    #[test]
    fn a_subscriber_is_shown() {
        let url = FakeApi::default()
            .with("GET /v1/subscribers/msisdn-16195550123", 200, &absent())
            .with("GET /v1/subscribers/imsi-001010000000001", 200, &idle())
            .start();
        let shown = run(&url, &["subscriber", "show", "--number", "+16195550123"]);
        assert_eq!((shown.code, shown.error.as_str()), (0, ""));
        let other = run(&url, &["subscriber", "show", "--imsi", "001010000000001"]);
        insta::assert_snapshot!("subscriber_show", format!("{}\n{}", shown.out, other.out));
        let json = run(&url, &["subscriber", "show", "--number", "16195550123", "--json"]);
        assert_eq!(serde_json::from_str::<Value>(&json.out).unwrap(), json!(absent()));
    }

    #[test]
    fn a_subscriber_is_retried_and_pinged() {
        let api = FakeApi::default()
            .with(
                "POST /v1/subscribers/imsi-001010000000001/wake",
                200,
                &SubscriberWakeResult { messages: 1 },
            )
            .with(
                "POST /v1/subscribers/msisdn-1619/silent-sms",
                201,
                &AcceptedMessage { id: "1000000007".to_owned() },
            );
        let url = api.start();
        let woken = run(&url, &["subscriber", "wake", "--imsi", "001010000000001"]);
        assert_eq!((woken.code, woken.out.as_str()), (0, "1 message retried\n"));
        let pinged = run(&url, &["subscriber", "ping", "--number", "+1619"]);
        assert_eq!((pinged.code, pinged.out.as_str()), (0, "1000000007\n"));
        assert_eq!(run(&url, &["subscriber", "ping"]).code, 2);
    }
}
