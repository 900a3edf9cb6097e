//! The ways in which one asks, and what the answers mean.

use super::{Event, Wish};
use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use xtask::load::pools::{Answer, request};

/// The sum of the older system's script, as the tests know it.
pub const SCRIPT: &str = "6f05c87dd30ac0882ecd4a2516eb8cbc575be07d";

/// How it is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// `EVALSHA <sum> 1 {pool} call`; other things are said plainly.
    Script,
    /// `POOL.CALL pool`.
    Plain,
    /// JSON.
    Http,
}

impl Language {
    /// Whose doing it is, in the history.
    pub fn by(self) -> &'static str {
        if self == Self::Http { "admin" } else { "redis" }
    }
}

/// What was said, as far as the language says it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Told {
    /// Whether it is done.
    pub done: bool,
    /// The number that a call got.
    pub number: Option<String>,
    /// The ticket with it.
    pub ticket: Option<u64>,
    /// The state after it.
    pub state: Option<String>,
    /// Why it is not done.
    pub reason: Option<String>,
}

/// The request by the Redis protocol, and whether it is the script's.
pub(super) fn spoken(pool: &str, wish: &Wish, language: Language) -> (Vec<u8>, bool) {
    let key = format!("{{{pool}}}");
    let script = |words: &[&str]| (request(&[&["EVALSHA", SCRIPT, "1", &key], words].concat()), true);
    let plain = |command: &str, words: &[&str]| {
        (request(&[&[format!("POOL.{command}").as_str(), pool], words].concat()), false)
    };
    match wish {
        Wish::Event(event, number) if language == Language::Script => script(&[event.name(), number]),
        Wish::Event(event, number) => plain(&event.name().to_uppercase(), &[number]),
        Wish::Call { number, holder, callee, lease } => {
            let simple = holder.is_empty() && callee.is_empty() && lease.is_none();
            let number: Vec<&str> = number.as_deref().into_iter().collect();
            if language == Language::Script && simple {
                return script(&[&["call"], number.as_slice()].concat());
            }
            let lease = lease.map(|lease| lease.to_string());
            let mut words = number;
            if let Some(lease) = &lease {
                words.extend(["LEASE", lease]);
            }
            if !holder.is_empty() {
                words.extend(["HOLDER", holder]);
            }
            if !callee.is_empty() {
                words.extend(["CALLEE", callee]);
            }
            words.push("TICKET");
            plain("CALL", &words)
        }
        Wish::HangupOf(number, ticket) => plain("HANGUP", &[number, "TICKET", &ticket.to_string()]),
        Wish::Renew(number, ticket, lease) => {
            let lease = lease.map_or_else(|| "PERSIST".to_owned(), |lease| lease.to_string());
            plain("RENEW", &[number, &lease, "TICKET", &ticket.to_string()])
        }
    }
}

/// A state as the older system's hash has it.
pub fn older_state(state: &str) -> String {
    let (busy, up) = (state.starts_with("busy"), state.ends_with("+up"));
    format!(r#"{{"callstate":{},"regstate":{}}}"#, u8::from(busy), u8::from(up))
}

/// What an answer by the Redis protocol means.
pub(super) fn heard(wish: &Wish, script: bool, answer: &Answer) -> Result<Told> {
    let call = matches!(wish, Wish::Call { .. });
    let done = Told { done: true, ..Told::default() };
    Ok(match (answer, script, call) {
        (Answer::Integer(1), false, false) => done,
        (Answer::Text(one), true, false) if one == "1" => done,
        (Answer::Text(zero), true, false) if zero == "0" => Told::default(),
        (Answer::Nil, true, true) => Told::default(),
        (Answer::Text(number), true, true) => Told { number: Some(number.clone()), ..done },
        (Answer::Array(both), false, true) => match both.as_slice() {
            [Answer::Text(number), Answer::Integer(ticket)] => {
                let ticket = u64::try_from(*ticket).ok();
                Told { number: Some(number.clone()), ticket, ..done }
            }
            _ => bail!("{wish:?}: {answer:?}"),
        },
        (Answer::Error(text), false, _) => {
            let none = matches!(wish, Wish::Call { number: None, .. });
            let word = if none { "NONUMBER " } else { "FAIL " };
            ensure!(text.starts_with(word), "{wish:?}: {answer:?}");
            Told::default()
        }
        _ => bail!("{wish:?}: {answer:?}"),
    })
}

/// The request as JSON.
pub(super) fn written(wish: &Wish) -> Value {
    match wish {
        Wish::Event(event, number) => json!({ "event": event.name(), "number": number }),
        Wish::Call { number, holder, callee, lease } => {
            let mut event = json!({ "event": "call", "holder": holder, "callee": callee });
            if let Some(number) = number {
                event["number"] = json!(number);
            }
            if let Some(lease) = lease {
                event["lease-ms"] = json!(lease);
            }
            event
        }
        Wish::HangupOf(number, ticket) => {
            json!({ "event": Event::Hangup.name(), "number": number, "ticket": ticket })
        }
        Wish::Renew(number, ticket, lease) => {
            json!({ "event": "renew", "number": number, "ticket": ticket, "lease-ms": lease })
        }
    }
}

/// What an answer in JSON means.
pub(super) fn read(wish: &Wish, answer: &Value) -> Result<Told> {
    let text = |name: &str| answer[name].as_str().map(str::to_owned);
    if answer["result"] == "done" {
        let call = matches!(wish, Wish::Call { .. });
        return Ok(Told {
            done: true,
            number: text("number").filter(|_| call),
            ticket: answer["ticket"].as_u64().filter(|_| call),
            state: text("state"),
            reason: None,
        });
    }
    let reason = text("reason").with_context(|| format!("{wish:?}: {answer}"))?;
    Ok(Told { reason: Some(reason), ..Told::default() })
}
