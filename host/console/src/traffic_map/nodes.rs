//! The nodes of the traffic map: accounts, peers and hooks.

use super::{MAX_NODES, MapInput, Trouble};
use crate::api_caller::encode_segment;
use crate::format::{count, figure, plural, with_readable_times};
use api::{AttentionSeverity, AttentionSubjectKind, AttentionView, QueueView};
use model::{Direction, Hook};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

/// A node.
#[derive(Debug, Default)]
pub(super) struct Node {
    /// The name of the account, peer or hook; `None` for the node of the others.
    pub(super) name: Option<String>,
    pub(super) label: String,
    pub(super) path: String,
    /// Messages a second: accepted from an account, submitted to a peer; calls of a hook.
    pub(super) rate: Option<f64>,
    /// Messages that wait here.
    pub(super) waiting: u64,
    pub(super) trouble: Trouble,
    /// The state, in a few words.
    pub(super) note: String,
}

/// The nodes of one side, those with trouble first.
#[derive(Debug, Default)]
pub(super) struct Nodes {
    shown: Vec<Node>,
    places: HashMap<String, usize>,
}

impl Nodes {
    fn new(shown: Vec<Node>) -> Self {
        let names = shown.iter().enumerate().filter_map(|(place, node)| Some((node.name.clone()?, place)));
        Self { places: names.collect(), shown }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Node> {
        self.shown.iter()
    }

    pub(super) fn len(&self) -> usize {
        self.shown.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.shown.is_empty()
    }

    /// The place of a name: of its own node, or of the node of the others.
    pub(super) fn place(&self, name: &str) -> Option<usize> {
        let others = self.shown.last().filter(|node| node.name.is_none()).map(|_| self.shown.len() - 1);
        self.places.get(name).copied().or(others)
    }
}

fn severity(finding: Option<&AttentionView>) -> Trouble {
    match finding.map(|finding| finding.severity) {
        Some(AttentionSeverity::Error) => Trouble::Error,
        Some(AttentionSeverity::Warning) => Trouble::Warning,
        None => Trouble::None,
    }
}

/// The accounts or the peers.
pub(super) fn side(input: &MapInput<'_>, accounts: bool) -> Nodes {
    let mut nodes: BTreeMap<&str, Node> = BTreeMap::new();
    for queue in input.queues.iter().filter(|queue| queue.is_account == accounts) {
        nodes.insert(&queue.peer, queue_node(input, queue));
    }
    // Accounts that were removed from the configuration may still have traffic.
    let blank = || Node { rate: Some(0.0), note: "not configured".to_owned(), ..Node::default() };
    for flow in &input.traffic.flows {
        let mt = flow.direction == Direction::Mt;
        let name = if accounts == mt { &flow.from } else { &flow.to };
        let node = nodes.entry(name).or_insert_with(blank);
        if !accounts {
            node.trouble = node.trouble.max(Trouble::of_flow(flow));
            if mt {
                node.rate = Some(node.rate.unwrap_or_default() + input.rate(flow.counts.attempts()));
            }
        }
    }
    if accounts {
        for submitter in &input.traffic.submitters {
            if let Some(node) = nodes.get_mut(&*submitter.name) {
                node.rate = Some(input.rate(submitter.accepted));
            }
        }
    }
    let path = if accounts { "/accounts" } else { "/peers" };
    let mut nodes: Vec<Node> = nodes
        .into_iter()
        .map(|(name, node)| Node {
            name: Some(name.to_owned()),
            label: name.to_owned(),
            path: format!("{path}/{}", encode_segment(name)),
            ..node
        })
        .collect();
    nodes.sort_by(|a, b| {
        let rate = |node: &Node| node.rate.unwrap_or_default();
        (Reverse(a.trouble), Reverse(a.waiting > 0 || rate(a) > 0.0))
            .cmp(&(Reverse(b.trouble), Reverse(b.waiting > 0 || rate(b) > 0.0)))
            .then_with(|| rate(b).total_cmp(&rate(a)))
            .then_with(|| b.waiting.cmp(&a.waiting))
            .then_with(|| a.label.cmp(&b.label))
    });
    if nodes.len() > MAX_NODES + 1 {
        let others = fold(&nodes.split_off(MAX_NODES), path);
        nodes.push(others);
    }
    Nodes::new(nodes)
}

fn queue_node(input: &MapInput<'_>, queue: &QueueView) -> Node {
    let kinds: &[AttentionSubjectKind] = if queue.is_account {
        &[AttentionSubjectKind::Account, AttentionSubjectKind::Queue]
    } else {
        &[AttentionSubjectKind::Peer, AttentionSubjectKind::Queue]
    };
    let finding = input.finding(kinds, &queue.peer);
    let waiting = queue.waiting() - queue.in_flight - queue.awaiting_dlr;
    let note = if !queue.configured {
        "not configured".to_owned()
    } else if waiting > 0 && queue.blocked_by != "idle" {
        with_readable_times(&queue.blocked_by)
    } else if queue.links == 0 {
        if queue.is_account { String::new() } else { "no link is up".to_owned() }
    } else {
        plural(queue.links as u64, "link", "links")
    };
    Node { waiting, trouble: severity(finding), note, rate: Some(0.0), ..Node::default() }
}

/// The node of those that are not shown by name.
fn fold(others: &[Node], path: &str) -> Node {
    let is_quiet = |node: &&Node| node.rate == Some(0.0) && node.waiting == 0;
    let quiet = others.iter().filter(is_quiet).count() as u64;
    let troubled = others.iter().filter(|node| node.trouble != Trouble::None).count() as u64;
    let mut note = format!("{} quiet", count(quiet));
    if troubled > 0 {
        note = format!("{} with trouble, {note}", count(troubled));
    }
    Node {
        label: format!("{} others", count(others.len() as u64)),
        path: path.to_owned(),
        rate: Some(others.iter().filter_map(|node| node.rate).sum()),
        waiting: others.iter().map(|node| node.waiting).sum(),
        trouble: others.iter().map(|node| node.trouble).max().unwrap_or_default(),
        note,
        ..Node::default()
    }
}

/// The hooks that have plugins, in the order in which a message passes them.
pub(super) fn hook_nodes(input: &MapInput<'_>) -> Nodes {
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
        let finding = input.finding(&[AttentionSubjectKind::Hook], hook.name());
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
            name: Some(hook.name().to_owned()),
            label: hook.name().to_owned(),
            path: format!("/plugins/{}", hook.name()),
            rate: traffic.filter(|_| window > 0.0).map(|traffic| traffic.calls as f64 / window),
            waiting: traffic.map_or(0, |traffic| traffic.waiting),
            trouble: severity(finding).max(if faulty { Trouble::Warning } else { Trouble::None }),
            note: notes.join(", "),
        })
    });
    Nodes::new(nodes.collect())
}

/// The mean duration of a call.
fn duration(nanoseconds: f64) -> String {
    if nanoseconds < 1e6 {
        format!("{} µs", figure(nanoseconds / 1e3))
    } else {
        format!("{} ms", figure(nanoseconds / 1e6))
    }
}
