//! `switchyard subscriber`: shows a GSM subscriber, and retries its messages.

use crate::format::{duration_text, list, number, plural, timestamp, value_text};
use crate::global_args::{GlobalArgs, exit_help};
use crate::output::{Failure, Output, Streams};
use clap::{Args, Subcommand};
use client::{ApiClient, encode_segment};
use serde_json::Value;
use std::process::ExitCode;

const AFTER: &str = concat!(
    exit_help!(),
    "
Examples:
  switchyard subscriber show --number +16195550123
  switchyard subscriber wake --imsi 001010000000001
  switchyard message trace $(switchyard subscriber ping --number +16195550123)"
);

/// Arguments of `subscriber`.
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
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
        let (answer, line) = match self {
            Self::Show(subscriber_args) => {
                let answer = api.get(&subscriber_args.path(""))?;
                return if output.json {
                    output.document(&answer)
                } else {
                    output.write(&list(&rows(&answer, output.now())))
                };
            }
            Self::Wake(subscriber_args) => {
                let answer = api.post(&subscriber_args.path("/wake"), &Value::Null)?;
                let count = answer["messages"].as_u64().unwrap_or(0);
                (answer, format!("{} retried", plural(count, "message", "messages")))
            }
            Self::Ping(subscriber_args) => {
                let answer = api.post(&subscriber_args.path("/silent-sms"), &Value::Null)?;
                let id = value_text(&answer["id"]);
                (answer, id)
            }
        };
        if output.json { output.document(&answer) } else { output.line(&line) }
    }
}

fn rows(answer: &Value, now: u64) -> Vec<(&'static str, String)> {
    let waiting = &answer["waiting"];
    let msc = match (answer["msc"].as_str(), answer["connected"].as_bool()) {
        (None, _) => "not known".to_owned(),
        (Some(_), Some(true)) => value_text(&answer["msc"]),
        (Some(_), _) => format!("{}, not connected", value_text(&answer["msc"])),
    };
    let present = match answer["present_at"].as_u64() {
        Some(at) => format!(
            "{} ({})",
            timestamp(&answer["present_at"]),
            presence_text(answer, now.saturating_sub(at))
        ),
        None => "not since the daemon's start".to_owned(),
    };
    let mut rows = vec![
        ("imsi", value_text(&answer["imsi"])),
        (
            "number",
            answer["msisdn"].as_str().map_or("not known".to_owned(), |_| value_text(&answer["msisdn"])),
        ),
        ("core network", value_text(&answer["network"])),
        ("msc", msc),
        ("last present", present),
        ("state", value_text(&answer["state"])),
    ];
    if !answer["reason"].is_null() {
        rows.push(("reason", value_text(&answer["reason"])));
    }
    if !answer["next_try"].is_null() {
        rows.push(("next try", timestamp(&answer["next_try"])));
    }
    if !answer["message"].is_null() {
        rows.push(("message", value_text(&answer["message"])));
    }
    let count = waiting["count"].as_u64().unwrap_or(0);
    let oldest = match waiting["oldest_at"].as_u64() {
        Some(_) => {
            format!(", the oldest {} of {}", value_text(&waiting["oldest"]), timestamp(&waiting["oldest_at"]))
        }
        None => String::new(),
    };
    rows.push(("waiting", format!("{}{oldest}", number(count))));
    rows
}

/// The event that showed the handset's presence, and its age.
fn presence_text(answer: &Value, ago: u64) -> String {
    let how = match answer["present_by"].as_str() {
        Some("location-update") => "location update".to_owned(),
        Some("message") => "sent a message".to_owned(),
        Some("ready-for-sm") => "ready for short messages".to_owned(),
        Some("delivery") => "accepted a message".to_owned(),
        _ => value_text(&answer["present_by"]),
    };
    format!("{how}, {} ago", duration_text(&Value::from(ago)))
}

#[cfg(test)]
mod tests {
    use crate::fake_api::{FakeApi, NOW, run};
    use serde_json::{Value, json};

    fn subscriber() -> Value {
        json!({
            "imsi": "0010*********01", "msisdn": "1619*****23", "network": "phones", "msc": "MSC-1",
            "connected": true, "present_at": NOW - 65_000, "present_by": "location-update", "state": "absent",
            "reason": "network: network failure (17)", "next_try": NOW + 60_000, "message": "1000000001",
            "waiting": {
                "count": 3, "oldest_at": NOW - 60_000, "oldest": "1000000001",
                "states": { "deferred": 1, "queued": 2 },
            },
        })
    }

    #[test]
    fn a_subscriber_is_shown() {
        let idle = json!({
            "imsi": "001010000000001", "msisdn": null, "network": "phones", "msc": null, "connected": false,
            "present_at": null, "present_by": null, "state": "idle", "reason": null, "next_try": null,
            "message": null, "waiting": { "count": 0, "oldest_at": null, "oldest": null, "states": {} },
        });
        let url = FakeApi::default()
            .with("GET /v1/subscribers/msisdn-16195550123", 200, &subscriber())
            .with("GET /v1/subscribers/imsi-001010000000001", 200, &idle)
            .start();
        let shown = run(&url, &["subscriber", "show", "--number", "+16195550123"]);
        assert_eq!((shown.code, shown.error.as_str()), (0, ""));
        let other = run(&url, &["subscriber", "show", "--imsi", "001010000000001"]);
        insta::assert_snapshot!("subscriber_show", format!("{}\n{}", shown.out, other.out));
        let json = run(&url, &["subscriber", "show", "--number", "16195550123", "--json"]);
        assert_eq!(serde_json::from_str::<Value>(&json.out).unwrap(), subscriber());
    }

    #[test]
    fn a_subscriber_is_retried_and_pinged() {
        let api = FakeApi::default()
            .with("POST /v1/subscribers/imsi-001010000000001/wake", 200, &json!({ "messages": 1 }))
            .with("POST /v1/subscribers/msisdn-1619/silent-sms", 201, &json!({ "id": "1000000007" }));
        let url = api.start();
        let woken = run(&url, &["subscriber", "wake", "--imsi", "001010000000001"]);
        assert_eq!((woken.code, woken.out.as_str()), (0, "1 message retried\n"));
        let pinged = run(&url, &["subscriber", "ping", "--number", "+1619"]);
        assert_eq!((pinged.code, pinged.out.as_str()), (0, "1000000007\n"));
        assert_eq!(run(&url, &["subscriber", "ping"]).code, 2);
    }
}
