//! A test guest: a router that makes the calls for number pools in its document, one per line, and notes the results.
//!
//! | line | action |
//! |---|---|
//! | `state POOL` | the host's state of a pool |
//! | `take POOL OTHERWISE KEY=VALUE...` | requests a number; keys are `user`, `holder`, `reason` and `lease` |
//! | `early POOL` | the same in `configure`; refuses the document if that succeeds |
//! | `to PEER`, `home`, `hold`, `reject`, `trap` | the final decision; default: pass |

use switchyard_sdk::numbers::{SenderRequest, WithoutNumber};
use switchyard_sdk::{
    Decision, Message, RejectReason, Router, forward, hold, home, leg, numbers, pass, reject, take_sender,
};

struct Guest {
    lines: Vec<Vec<String>>,
}

fn otherwise(word: &str) -> WithoutNumber {
    match word {
        "hold" => WithoutNumber::Hold,
        "keep-sender" => WithoutNumber::KeepSender,
        _ => WithoutNumber::Reject,
    }
}

fn take(pool: &str, without: &str, more: &[&str]) -> String {
    let value = |key: &str| {
        let found = more.iter().find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
        found.map(str::to_owned)
    };
    let request = SenderRequest {
        pool: pool.to_owned(),
        user: value("user"),
        holder: value("holder"),
        reason: value("reason"),
        lease: value("lease").and_then(|lease| lease.parse().ok()),
        otherwise: otherwise(without),
    };
    match numbers::take_sender(&request) {
        Ok(()) => "asked".to_owned(),
        Err(why) => why,
    }
}

fn state(pool: &str) -> String {
    match numbers::state(pool) {
        Some(state) => {
            format!("{} ready, {} busy, {} down of {}", state.ready, state.busy, state.down, state.total)
        }
        None => "no pool".to_owned(),
    }
}

impl Router for Guest {
    fn configure(document: &str) -> Result<Self, String> {
        let mut lines = Vec::new();
        for line in document.lines() {
            let words: Vec<String> = line.split_ascii_whitespace().map(str::to_owned).collect();
            match &words[..] {
                [early, pool] if early == "early" => match take_sender(pool, WithoutNumber::Reject) {
                    Ok(()) => return Err("asked for a number while configured".to_owned()),
                    Err(_) => lines.push(words),
                },
                _ => lines.push(words),
            }
        }
        Ok(Self { lines })
    }

    fn route(&self, message: &Message) -> Decision {
        let mut notes = Vec::new();
        let mut decision = pass();
        for line in &self.lines {
            let words: Vec<&str> = line.iter().map(String::as_str).collect();
            match &words[..] {
                ["state", pool] => notes.push(state(pool)),
                ["take", pool, without, more @ ..] => notes.push(take(pool, without, more)),
                ["to", peer] => decision = forward(vec![leg(peer)]),
                ["home"] => decision = home(),
                ["hold"] => decision = hold(u64::MAX),
                ["reject"] => decision = reject(RejectReason::Prohibited),
                ["trap"] if message.origin != "self-check" => std::process::abort(),
                _ => {}
            }
        }
        if notes.is_empty() { decision } else { decision.because(notes.join("; ")) }
    }
}

switchyard_sdk::export_router!(Guest);
