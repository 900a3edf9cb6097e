//! The nodes of the traffic map: accounts, peers and hooks.

use super::MapInput;
use crate::api_caller::encode_segment;
use crate::format::{count, figure, plural, with_readable_times};
use api::{AttentionSeverity, TrafficNodeView};
use model::Hook;

/// A node.
#[derive(Debug, Default)]
pub(super) struct Node {
    pub(super) label: String,
    pub(super) path: String,
    /// Messages a second: accepted from an account, submitted to a peer; calls of a hook.
    pub(super) rate: Option<f64>,
    /// Messages that wait here.
    pub(super) waiting: u64,
    pub(super) severity: Option<AttentionSeverity>,
    /// The state, in a few words.
    pub(super) note: String,
}

/// The accounts or the peers.
pub(super) fn side(input: &MapInput<'_>, accounts: bool) -> Vec<Node> {
    let (nodes, path) = match accounts {
        true => (&input.traffic.accounts, "/accounts"),
        false => (&input.traffic.peers, "/peers"),
    };
    let node = |view: &TrafficNodeView| {
        let (label, path, note) = match &view.name {
            Some(name) => {
                (name.clone(), format!("{path}/{}", encode_segment(name)), state_of(view, accounts))
            }
            None => (format!("{} others", count(view.members)), path.to_owned(), state_of_others(view)),
        };
        Node {
            label,
            path,
            rate: Some(input.rate(view.messages)),
            waiting: view.waiting,
            severity: view.severity,
            note,
        }
    };
    nodes.iter().map(node).collect()
}

fn state_of(view: &TrafficNodeView, accounts: bool) -> String {
    match &view.blocked_by {
        _ if !view.configured => "not configured".to_owned(),
        Some(blocked_by) => with_readable_times(blocked_by),
        None if view.links > 0 => plural(view.links, "link", "links"),
        None if accounts => String::new(),
        None => "no link is up".to_owned(),
    }
}

fn state_of_others(view: &TrafficNodeView) -> String {
    let quiet = format!("{} quiet", count(view.quiet));
    match view.troubled {
        0 => quiet,
        troubled => format!("{} with trouble, {quiet}", count(troubled)),
    }
}

/// The hooks that have plugins, in the order in which a message passes them.
pub(super) fn hook_nodes(input: &MapInput<'_>) -> Vec<Node> {
    const ORDER: [Hook; 8] = [
        Hook::FrontEnd,
        Hook::Screen,
        Hook::Lookup,
        Hook::Router,
        Hook::Resolver,
        Hook::Biller,
        Hook::DeliveryPolicy,
        Hook::Receipt,
    ];
    let bound =
        |hook: &Hook| input.hooks.iter().find(|state| state.hook == *hook && !state.live.chain.is_empty());
    let nodes = ORDER.iter().filter_map(|hook| {
        let state = bound(hook)?;
        let traffic = input.traffic.hooks.iter().find(|traffic| traffic.hook == *hook);
        let window = input.traffic.hooks_window_ms as f64 / 1_000.0;
        let mut notes = Vec::new();
        if let Some(traffic) = traffic {
            if traffic.faults > 0 {
                notes.push(plural(traffic.faults, "fault", "faults"));
            }
            if traffic.calls > 0 {
                notes.push(duration(traffic.nanoseconds as f64 / traffic.calls as f64));
            }
        }
        if let Some(candidate) = &state.candidate {
            notes.push(candidate.record.mode.name().to_owned());
        }
        let faulty = traffic.is_some_and(|traffic| traffic.faults > 0);
        Some(Node {
            label: hook.name().to_owned(),
            path: format!("/plugins/{}", hook.name()),
            rate: traffic.filter(|_| window > 0.0).map(|traffic| traffic.calls as f64 / window),
            waiting: traffic.map_or(0, |traffic| traffic.waiting),
            severity: input.hook_severity(hook.name()).or(faulty.then_some(AttentionSeverity::Warning)),
            note: notes.join(", "),
        })
    });
    nodes.collect()
}

/// The mean duration of a call.
fn duration(nanoseconds: f64) -> String {
    if nanoseconds < 1e6 {
        format!("{} µs", figure(nanoseconds / 1e3))
    } else {
        format!("{} ms", figure(nanoseconds / 1e6))
    }
}
