//! Encodings of requests and replies.

use super::{PoolEvent, PoolRequest};
use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use testkit::load::pools::{RedisReply, encode_request};

/// The sum of the older system's script, as the tests know it.
pub const SCRIPT: &str = "6f05c87dd30ac0882ecd4a2516eb8cbc575be07d";

/// How a request is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PoolProtocol {
    /// `EVALSHA <sum> 1 {pool} call`; `POOL.` commands for requests that the script does not know.
    Script,
    /// `POOL.CALL pool`.
    Plain,
    /// JSON over HTTP.
    Http,
}

impl PoolProtocol {
    /// The author in the history.
    pub fn by(self) -> &'static str {
        if self == Self::Http { "admin" } else { "redis" }
    }
}

/// A reply, as far as the protocol transmits it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PoolReply {
    /// Whether the request succeeded.
    pub done: bool,
    /// The number that a call got.
    pub number: Option<String>,
    /// Its ticket.
    pub ticket: Option<u64>,
    /// The resulting state.
    pub state: Option<String>,
    /// The reason of a refusal.
    pub reason: Option<String>,
}

/// Encodes a request for the Redis protocol; also returns whether it is in the script's form.
pub(super) fn encode_redis(pool: &str, request: &PoolRequest, protocol: PoolProtocol) -> (Vec<u8>, bool) {
    let key = format!("{{{pool}}}");
    let script = |words: &[&str]| (encode_request(&[&["EVALSHA", SCRIPT, "1", &key], words].concat()), true);
    let plain = |command: &str, words: &[&str]| {
        (encode_request(&[&[format!("POOL.{command}").as_str(), pool], words].concat()), false)
    };
    match request {
        PoolRequest::Event(event, number) if protocol == PoolProtocol::Script => {
            script(&[event.name(), number])
        }
        PoolRequest::Event(event, number) => plain(&event.name().to_uppercase(), &[number]),
        PoolRequest::Call { number, holder, callee, lease } => {
            let simple = holder.is_empty() && callee.is_empty() && lease.is_none();
            let number: Vec<&str> = number.as_deref().into_iter().collect();
            if protocol == PoolProtocol::Script && simple {
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
        PoolRequest::HangupOf(number, ticket) => plain("HANGUP", &[number, "TICKET", &ticket.to_string()]),
        PoolRequest::Renew(number, ticket, lease) => {
            let lease = lease.map_or_else(|| "PERSIST".to_owned(), |lease| lease.to_string());
            plain("RENEW", &[number, &lease, "TICKET", &ticket.to_string()])
        }
    }
}

/// A state as the older system's hash has it.
pub fn legacy_state(state: &str) -> String {
    let (busy, up) = (state.starts_with("busy"), state.ends_with("+up"));
    format!(r#"{{"callstate":{},"regstate":{}}}"#, u8::from(busy), u8::from(up))
}

/// Decodes a reply of the Redis protocol.
pub(super) fn decode_redis(request: &PoolRequest, script: bool, answer: &RedisReply) -> Result<PoolReply> {
    let call = matches!(request, PoolRequest::Call { .. });
    let done = PoolReply { done: true, ..PoolReply::default() };
    Ok(match (answer, script, call) {
        (RedisReply::Integer(1), false, false) => done,
        (RedisReply::Text(one), true, false) if one == "1" => done,
        (RedisReply::Text(zero), true, false) if zero == "0" => PoolReply::default(),
        (RedisReply::Nil, true, true) => PoolReply::default(),
        (RedisReply::Text(number), true, true) => PoolReply { number: Some(number.clone()), ..done },
        (RedisReply::Array(both), false, true) => match both.as_slice() {
            [RedisReply::Text(number), RedisReply::Integer(ticket)] => {
                let ticket = u64::try_from(*ticket).ok();
                PoolReply { number: Some(number.clone()), ticket, ..done }
            }
            _ => bail!("{request:?}: {answer:?}"),
        },
        (RedisReply::Error(text), false, _) => {
            let none = matches!(request, PoolRequest::Call { number: None, .. });
            let word = if none { "NONUMBER " } else { "FAIL " };
            ensure!(text.starts_with(word), "{request:?}: {answer:?}");
            PoolReply::default()
        }
        _ => bail!("{request:?}: {answer:?}"),
    })
}

/// Encodes a request as JSON.
pub(super) fn encode_json(request: &PoolRequest) -> Value {
    match request {
        PoolRequest::Event(event, number) => json!({ "event": event.name(), "number": number }),
        PoolRequest::Call { number, holder, callee, lease } => {
            let mut event = json!({ "event": "call", "holder": holder, "callee": callee });
            if let Some(number) = number {
                event["number"] = json!(number);
            }
            if let Some(lease) = lease {
                event["lease-ms"] = json!(lease);
            }
            event
        }
        PoolRequest::HangupOf(number, ticket) => {
            json!({ "event": PoolEvent::Hangup.name(), "number": number, "ticket": ticket })
        }
        PoolRequest::Renew(number, ticket, lease) => {
            json!({ "event": "renew", "number": number, "ticket": ticket, "lease-ms": lease })
        }
    }
}

/// Decodes a JSON reply.
pub(super) fn decode_json(request: &PoolRequest, answer: &Value) -> Result<PoolReply> {
    let text = |name: &str| answer[name].as_str().map(str::to_owned);
    if answer["result"] == "done" {
        let call = matches!(request, PoolRequest::Call { .. });
        return Ok(PoolReply {
            done: true,
            number: text("number").filter(|_| call),
            ticket: answer["ticket"].as_u64().filter(|_| call),
            state: text("state"),
            reason: None,
        });
    }
    let reason = text("reason").with_context(|| format!("{request:?}: {answer}"))?;
    Ok(PoolReply { reason: Some(reason), ..PoolReply::default() })
}
