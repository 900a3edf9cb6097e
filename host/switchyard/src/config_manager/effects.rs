//! The effect of a configuration change on traffic, and whether it needs a restart.

use configuration::{ChangeKind, ConfigChange};

/// The effect of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ChangeEffect {
    pub(super) description: &'static str,
    /// Whether the change takes effect at the next start only.
    pub(super) restart: bool,
}

const fn live(description: &'static str) -> ChangeEffect {
    ChangeEffect { description, restart: false }
}

const RESTART: ChangeEffect = ChangeEffect { description: "takes effect at the next start", restart: true };
const FIRST_BINDING: ChangeEffect =
    live("none: it applies to the first start only; change bindings at /v1/hooks");

/// Queue keys of a peer or gateway: changing them does not affect connections.
const QUEUE_KEYS: [&str; 12] = [
    "burst",
    "default-account",
    "group",
    "max-attempts",
    "queue-limit",
    "rate",
    "dlr-timeout",
    "dlrs",
    "retry",
    "serial",
    "uncertain",
    "uncertain-timeout",
];

/// The effect of a change.
pub(super) fn effect_of(change: &ConfigChange) -> ChangeEffect {
    let path: Vec<&str> = change.path.iter().map(String::as_str).collect();
    match path[..] {
        ["appliance", "free-space-watermark" | "shutdown-timeout"] => live("takes effect at once"),
        ["appliance", ..] => RESTART,
        ["engine", "finished-retention"] => live("takes effect at once"),
        ["attention", ..] => live("takes effect at once"),
        ["router", "hold" | "static-peer"] => RESTART,
        ["router" | "resolver" | "delivery-policy" | "biller", ..] => FIRST_BINDING,
        ["opt-out", ..] => live("applies from the next message on"),
        ["pool", _, ..] if change.kind() == ChangeKind::Removed && path.len() == 2 => {
            live("the pool and its numbers stay; DELETE /v1/pools/NAME removes it")
        }
        ["pool", ..] => live("the pool is configured at once"),
        ["listener", ref rest @ ..] => listener(change.kind(), rest),
        ["account", ref rest @ ..] => account(change.kind(), rest),
        ["peer" | "gateway", ref rest @ ..] => peer(change.kind(), rest),
        _ => RESTART,
    }
}

fn listener(kind: ChangeKind, rest: &[&str]) -> ChangeEffect {
    match (kind, rest) {
        (ChangeKind::Added, [_]) => live("is opened"),
        (ChangeKind::Removed, [_]) => live("is closed, and its connections are unbound"),
        _ => live("applies to new connections; existing ones stay unchanged"),
    }
}

fn account(kind: ChangeKind, rest: &[&str]) -> ChangeEffect {
    match (kind, rest) {
        (ChangeKind::Added, [_]) => live("may connect"),
        (ChangeKind::Removed, [_]) => live("its connections are unbound; its queue stays"),
        (_, [_, "sgip", ..]) => live("its SGIP links reconnect"),
        (_, [_, "business", ..]) => live("applies to its next calls and pushes"),
        (_, [_, "rate" | "burst" | "source" | "validity", ..]) => live("applies from its next message on"),
        (_, [_, "idempotency-memory" | "queue-limit" | "dlrs" | "opt-out"]) => live("takes effect at once"),
        _ => live("applies from its next bind on"),
    }
}

fn peer(kind: ChangeKind, rest: &[&str]) -> ChangeEffect {
    match (kind, rest) {
        (ChangeKind::Added, [_]) => live("is connected to"),
        (ChangeKind::Removed, [_]) => {
            live("its links are closed; its queue stays, and is sent if the peer is configured again")
        }
        (_, [_, key, ..]) if QUEUE_KEYS.contains(key) => live("takes effect at once; its links stay up"),
        _ => live("its links reconnect one after the other"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn effect(pointer: &str, kind: ChangeKind) -> ChangeEffect {
        let value = |there| Some(json!(1)).filter(|_| there);
        let path = pointer.split('/').skip(1).map(str::to_owned).collect();
        let change = ConfigChange {
            path,
            before: value(kind != ChangeKind::Added),
            after: value(kind != ChangeKind::Removed),
        };
        effect_of(&change)
    }

    #[test]
    fn some_changes_need_a_restart() {
        for pointer in [
            "/appliance/name",
            "/http/listen",
            "/archive/url",
            "/gsm/home",
            "/shell/socket",
            "/redis/account/x",
            "/engine/body-cache",
            "/router/static-peer",
            "/anything/new",
        ] {
            assert!(effect(pointer, ChangeKind::Changed).restart, "{pointer}");
        }
        for pointer in [
            "/appliance/shutdown-timeout",
            "/attention/queue-age",
            "/peer/a/rate",
            "/account/b",
            "/listener/c",
            "/pool/d",
            "/opt-out",
            "/router/policy",
        ] {
            assert!(!effect(pointer, ChangeKind::Changed).restart, "{pointer}");
        }
    }

    #[test]
    fn effects_distinguish_reconnects_from_live_changes() {
        assert!(effect("/peer/a/rate", ChangeKind::Changed).description.contains("stay"));
        assert!(effect("/peer/a/password", ChangeKind::Changed).description.contains("reconnect"));
        assert!(effect("/peer/a", ChangeKind::Added).description.contains("connected to"));
        assert!(effect("/account/a", ChangeKind::Removed).description.contains("unbound"));
        assert!(effect("/pool/a", ChangeKind::Removed).description.contains("stay"));
    }
}
