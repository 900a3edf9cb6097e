//! What a change of the document means for the traffic, and what waits for the next start.

use configuration::{Change, What};

/// What a change means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Effect {
    pub(super) words: &'static str,
    /// It is used at the next start only.
    pub(super) restart: bool,
}

const fn live(words: &'static str) -> Effect {
    Effect { words, restart: false }
}

const RESTART: Effect = Effect { words: "is used at the next start", restart: true };
const SEED: Effect = live("none: it is for a first start; what is bound is changed at /v1/hooks");

/// Keys of a peer or a gateway that are its queue's, and leave its connections alone.
const QUEUE: [&str; 12] = [
    "burst",
    "default-account",
    "group",
    "max-attempts",
    "queue-limit",
    "rate",
    "receipt-limit",
    "receipts",
    "retry",
    "serial",
    "uncertain",
    "uncertain-limit",
];

/// What a change means.
pub(super) fn of(change: &Change) -> Effect {
    let path: Vec<&str> = change.path.iter().map(String::as_str).collect();
    match path[..] {
        ["appliance", "free-space-watermark" | "drain"] => live("counts at once"),
        ["appliance", ..] => RESTART,
        ["engine", "finished-retention"] => live("counts at once"),
        ["attention", ..] => live("is used at once"),
        ["router", "hold" | "native"] => RESTART,
        ["router" | "resolver" | "delivery-policy" | "biller", ..] => SEED,
        ["opt-out", ..] => live("counts from the next message on"),
        ["pool", _, ..] if change.what() == What::Removed && path.len() == 2 => {
            live("the pool stays, with its numbers; DELETE /v1/pools/NAME takes it away")
        }
        ["pool", ..] => live("the pool is set up at once"),
        ["listener", ref rest @ ..] => listener(change.what(), rest),
        ["account", ref rest @ ..] => account(change.what(), rest),
        ["peer" | "gateway", ref rest @ ..] => peer(change.what(), rest),
        _ => RESTART,
    }
}

fn listener(what: What, rest: &[&str]) -> Effect {
    match (what, rest) {
        (What::Added, [_]) => live("is opened"),
        (What::Removed, [_]) => live("is closed, and its connections are unbound"),
        _ => live("counts for new connections; those that are there stay as they are"),
    }
}

fn account(what: What, rest: &[&str]) -> Effect {
    match (what, rest) {
        (What::Added, [_]) => live("may connect"),
        (What::Removed, [_]) => live("its connections are unbound; what waits for it stays"),
        (_, [_, "sgip", ..]) => live("its SGIP connections are made anew"),
        (_, [_, "business", ..]) => live("counts for its next calls and pushes"),
        (_, [_, "rate" | "burst" | "source" | "validity", ..]) => live("counts from its next message on"),
        (_, [_, "idempotency-memory" | "queue-limit" | "reports" | "opt-out"]) => live("counts at once"),
        _ => live("counts for its next bind"),
    }
}

fn peer(what: What, rest: &[&str]) -> Effect {
    match (what, rest) {
        (What::Added, [_]) => live("is connected to"),
        (What::Removed, [_]) => {
            live("its connections are taken down; what waits for it stays, and is sent if it is back")
        }
        (_, [_, key, ..]) if QUEUE.contains(key) => live("counts at once; its connections stay"),
        _ => live("its connections are made anew, one after the other taking leave"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn effect(pointer: &str, what: What) -> Effect {
        let value = |there| Some(json!(1)).filter(|_| there);
        let path = pointer.split('/').skip(1).map(str::to_owned).collect();
        let change = Change { path, before: value(what != What::Added), after: value(what != What::Removed) };
        of(&change)
    }

    #[test]
    fn what_needs_a_restart_says_so() {
        for pointer in [
            "/appliance/name",
            "/http/listen",
            "/archive/url",
            "/gsm/home",
            "/shell/socket",
            "/redis/account/x",
            "/engine/body-cache",
            "/router/native",
            "/anything/new",
        ] {
            assert!(effect(pointer, What::Changed).restart, "{pointer}");
        }
        for pointer in [
            "/appliance/drain",
            "/attention/queue-age",
            "/peer/a/rate",
            "/account/b",
            "/listener/c",
            "/pool/d",
            "/opt-out",
            "/router/policy",
        ] {
            assert!(!effect(pointer, What::Changed).restart, "{pointer}");
        }
    }

    #[test]
    fn connections_that_are_made_anew_are_told_from_those_that_stay() {
        assert!(effect("/peer/a/rate", What::Changed).words.contains("stay"));
        assert!(effect("/peer/a/password", What::Changed).words.contains("anew"));
        assert!(effect("/peer/a", What::Added).words.contains("connected to"));
        assert!(effect("/account/a", What::Removed).words.contains("unbound"));
        assert!(effect("/pool/a", What::Removed).words.contains("stays"));
    }
}
