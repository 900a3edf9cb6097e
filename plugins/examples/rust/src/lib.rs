//! Routes by the longest prefix of the destination. `policy.txt` is an example of its policy document.

wit_bindgen::generate!({ path: "wit", world: "router" });

use exports::switchyard::hooks::routing::{Decision, Guest, Leg, RejectReason, Verdict};
use std::cell::RefCell;
use switchyard::hooks::fault;
use switchyard::hooks::tables::{self, Row};
use switchyard::hooks::types::Message;

/// A rule for the messages of one prefix.
struct Rule {
    prefix: String,
    /// The peer; `None`: refuse.
    peer: Option<String>,
}

struct Policy {
    rules: Vec<Rule>,
    /// A sender, and the peer for its messages.
    sender: Option<(String, String)>,
    /// The host's table of prefixes; a value is an index into `rules`.
    table: u32,
}

// The host never calls one instance from two threads at once.
thread_local! {
    static POLICY: RefCell<Option<Policy>> = const { RefCell::new(None) };
}

struct Plugin;

impl Guest for Plugin {
    fn configure(document: String) -> Result<(), String> {
        // The host shows the message of a panic with the fault.
        std::panic::set_hook(Box::new(|panic| fault::report(&panic.to_string())));
        let policy = read(&document)?;
        POLICY.set(Some(policy));
        Ok(())
    }

    fn route(message: Message) -> Decision {
        POLICY.with_borrow(|policy| policy.as_ref().map_or_else(pass, |policy| decide(policy, &message)))
    }
}

export!(Plugin);

fn read(document: &str) -> Result<Policy, String> {
    let mut rules = Vec::new();
    let mut sender = None;
    for (number, line) in (1..).zip(document.lines()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [] => {}
            [first, ..] if first.starts_with('#') => {}
            ["route", prefix, peer] => {
                rules.push(Rule { prefix: prefix.to_owned(), peer: Some(peer.to_owned()) });
            }
            ["reject", prefix] => rules.push(Rule { prefix: prefix.to_owned(), peer: None }),
            ["sender", name, peer] if sender.is_none() => sender = Some((name.to_owned(), peer.to_owned())),
            _ => {
                return Err(format!(
                    "line {number}: expected 'route PREFIX PEER', 'reject PREFIX' or, once, 'sender NAME PEER'"
                ));
            }
        }
    }
    let rows: Vec<Row> =
        (0..).zip(&rules).map(|(value, rule)| Row { key: rule.prefix.clone(), value }).collect();
    let table = tables::define_prefixes("prefixes", &rows)?;
    Ok(Policy { rules, sender, table })
}

fn decide(policy: &Policy, message: &Message) -> Decision {
    let found = tables::match_destination(policy.table, u32::MAX);
    let rule = found.and_then(|found| policy.rules.get(found.value as usize));
    if let Some(Rule { prefix, peer: None }) = rule {
        return Decision {
            verdict: Verdict::Reject(RejectReason::Prohibited),
            note: Some(format!("prefix {prefix} is refused")),
            changes: Vec::new(),
        };
    }
    if let Some((name, peer)) = &policy.sender
        && *name == message.source.value
    {
        return forward(peer, format!("sender {name}"));
    }
    match rule {
        Some(Rule { prefix, peer: Some(peer) }) => forward(peer, format!("prefix {prefix}")),
        _ => pass(),
    }
}

fn forward(peer: &str, note: String) -> Decision {
    let leg = Leg {
        peer: peer.to_owned(),
        rank: 0,
        weight: 1,
        cost: 0,
        longest_wait: None,
        source: None,
        destination: None,
    };
    Decision { verdict: Verdict::Forward(vec![leg]), note: Some(note), changes: Vec::new() }
}

fn pass() -> Decision {
    Decision { verdict: Verdict::Pass, note: None, changes: Vec::new() }
}
