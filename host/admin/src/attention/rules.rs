//! The rules: a pure function from facts to findings.

use super::{AttentionLimits, ConfigurationWaits};
use crate::operation::DrainState;
use crate::ready::{NotReady, Readiness};
use crate::view::{
    Attention, BlockedBy, CoreNetwork, HookState, Link, PluginCounts, Pump, Queue, Severity, Status, Subject,
    SubjectKind,
};
use std::collections::BTreeMap;
use std::time::Duration;

/// Everything that the rules look at, at one moment.
#[derive(Debug)]
pub(super) struct Facts {
    /// Milliseconds since the epoch.
    pub(super) now: u64,
    pub(super) limits: AttentionLimits,
    pub(super) readiness: Readiness,
    /// None while the core does not answer.
    pub(super) status: Option<Status>,
    /// None while the core does not answer.
    pub(super) drain: Option<DrainState>,
    pub(super) queues: Vec<Queue>,
    pub(super) links: Vec<Link>,
    pub(super) networks: Vec<CoreNetwork>,
    pub(super) hooks: Vec<HookState>,
    /// None where there is no archive.
    pub(super) archive: Option<Pump>,
    pub(super) configuration: ConfigurationWaits,
}

/// What needs attention, errors first; within a severity in the order in which an admin should look at them.
pub(super) fn findings(facts: &Facts) -> Vec<Attention> {
    let mut found = Vec::new();
    appliance(facts, &mut found);
    configuration(&facts.configuration, &mut found);
    links(&facts.links, &mut found);
    networks(&facts.networks, &mut found);
    queues(facts, &mut found);
    hooks(facts, &mut found);
    if let Some(pump) = &facts.archive {
        archive(pump, facts.limits.archive_backlog, &mut found);
    }
    found.sort_by_key(|finding| finding.severity);
    found
}

fn finding(
    severity: Severity,
    code: &str,
    (kind, name): (SubjectKind, Option<&str>),
    text: String,
    remedy: impl Into<String>,
) -> Attention {
    let subject = Subject { kind, name: name.map(str::to_owned) };
    let remedy = Some(remedy.into()).filter(|remedy| !remedy.is_empty());
    Attention { severity, code: code.to_owned(), subject, since: None, text, remedy }
}

/// A number and its noun.
fn plural(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

fn waits(count: u64) -> String {
    plural(count, "message waits", "messages wait")
}

/// Octets in the largest unit in which they are at least 1.
fn size(octets: u64) -> String {
    let units = ["octets", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let (mut size, mut unit) = (octets as f64, 0);
    while size >= 1024.0 && unit + 1 < units.len() {
        (size, unit) = (size / 1024.0, unit + 1);
    }
    if unit == 0 { format!("{octets} octets") } else { format!("{size:.1} {}", units[unit]) }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn appliance(facts: &Facts, found: &mut Vec<Attention>) {
    let about = (SubjectKind::Appliance, None);
    // Drain and a full disk have findings of their own.
    let words = facts.readiness.reasons.iter().filter_map(|reason| match reason {
        NotReady::Starting => Some("it is starting"),
        NotReady::Stopping => Some("it is shutting down"),
        NotReady::StoreStalled => Some("the disk has not finished a commit for seconds"),
        NotReady::CoreStalled => Some("the core has not answered for seconds"),
        NotReady::Draining | NotReady::DiskLow => None,
    });
    let words: Vec<&str> = words.collect();
    if !words.is_empty() {
        let text = format!("the appliance takes no traffic: {}", words.join("; "));
        let remedy = "read the log; a start with millions of messages may take a minute";
        found.push(finding(Severity::Error, "not-ready", about, text, remedy));
    }
    if facts.readiness.reasons.contains(&NotReady::DiskLow) {
        let free = facts.status.as_ref().map(|status| format!(", {} are free", size(status.disk_free)));
        let text = format!(
            "the disk is nearly full{}: submissions are refused, delivery continues",
            free.unwrap_or_default()
        );
        let remedy = "make room on the disk of the data directory; a restart is not necessary";
        found.push(finding(Severity::Error, "disk-low", about, text, remedy));
    }
    if facts.readiness.reasons.contains(&NotReady::Draining) {
        let by = facts.drain.as_ref().and_then(|drain| drain.by.as_deref());
        let by = by.map(|by| format!(", started by {by}")).unwrap_or_default();
        let text = format!("the appliance drains{by}: submissions are refused, delivery continues");
        let remedy = "to take traffic again: switchyard drain stop";
        let since = facts.drain.as_ref().and_then(|drain| drain.since);
        let drains = finding(Severity::Warning, "draining", about, text, remedy);
        found.push(Attention { since, ..drains });
    }
}

fn configuration(waits: &ConfigurationWaits, found: &mut Vec<Attention>) {
    let about = (SubjectKind::Configuration, None);
    if let Some((version, at, reverts_at)) = waits.unconfirmed {
        let text =
            format!("version {version} of the configuration reverts at {reverts_at} unless it is confirmed");
        let remedy = "to keep it: switchyard config confirm";
        let pending = finding(Severity::Warning, "configuration-unconfirmed", about, text, remedy);
        found.push(Attention { since: Some(at), ..pending });
    }
    if waits.restart > 0 {
        let settings = plural(waits.restart as u64, "setting is", "settings are");
        let text = format!("{settings} used only after a restart of the appliance");
        found.push(finding(Severity::Warning, "configuration-restart", about, text, "restart the appliance"));
    }
}

/// The links to one peer.
#[derive(Default)]
struct Dialled<'a> {
    all: u64,
    down: u64,
    down_since: Option<u64>,
    error: Option<&'a str>,
}

fn links(links: &[Link], found: &mut Vec<Attention>) {
    let mut peers: BTreeMap<&str, Dialled<'_>> = BTreeMap::new();
    for link in links.iter().filter(|link| link.role == "client") {
        let peer = peers.entry(&link.peer).or_default();
        peer.all += 1;
        if link.phase != "bound" {
            peer.down += 1;
            peer.error = link.last_error.as_deref().or(peer.error);
            peer.down_since = peer.down_since.max(link.down_since);
        }
    }
    for (name, peer) in peers.into_iter().filter(|(_, peer)| peer.down > 0) {
        let about = (SubjectKind::Peer, Some(name));
        let why = peer.error.unwrap_or("it is being dialled");
        let remedy = format!("switchyard peer test {name}");
        let down = if peer.down == peer.all {
            // It is without any since the last of its links went down.
            let text = format!("no link to {name} is up: {why}");
            finding(Severity::Error, "peer-down", about, text, remedy)
        } else {
            let are = if peer.down == 1 { "is" } else { "are" };
            let text = format!("{} of {} links to {name} {are} down: {why}", peer.down, peer.all);
            finding(Severity::Warning, "links-down", about, text, remedy)
        };
        found.push(Attention { since: peer.down_since, ..down });
    }
}

fn networks(networks: &[CoreNetwork], found: &mut Vec<Attention>) {
    for network in networks {
        for fault in &network.faults {
            let severity = if fault.level == "error" { Severity::Error } else { Severity::Warning };
            let (code, text) =
                (format!("gsm-{}", fault.kind), format!("core network {}: {}", network.name, fault.what));
            let about = (SubjectKind::CoreNetwork, Some(network.name.as_str()));
            found.push(finding(severity, &code, about, text, fault.remedy.as_str()));
        }
    }
}

fn queues(facts: &Facts, found: &mut Vec<Attention>) {
    for queue in &facts.queues {
        let name = queue.peer.as_str();
        if queue.uncertain > 0 {
            let text = format!(
                "{} submitted to {name} and never answered",
                plural(queue.uncertain, "message was", "messages were")
            );
            let remedy = format!("switchyard queue uncertain --peer {name}, then switchyard queue settle");
            let about = (SubjectKind::Queue, Some(name));
            found.push(finding(Severity::Warning, "messages-uncertain", about, text, remedy));
        }
        if let Some(blocked) = queue_blocked(queue, facts) {
            found.push(Attention { since: queue.oldest, ..blocked });
        }
    }
}

/// Why the messages of a queue wait, if that needs attention. The most specific reason is told, and only this one.
fn queue_blocked(queue: &Queue, facts: &Facts) -> Option<Attention> {
    let name = queue.peer.as_str();
    let about = (SubjectKind::Queue, Some(name));
    let waiting = queue.queued + queue.deferred + queue.suspended;
    let age = queue.oldest.map_or(0, |oldest| facts.now.saturating_sub(oldest));
    if !queue.configured {
        let unconfigured =
            waiting + queue.in_flight + queue.resolving + queue.uncertain + queue.awaiting_receipt;
        let text = format!("{} for {name}, which is not in the configuration", waits(unconfigured));
        let remedy = format!(
            "add it to the configuration again, or move its messages: switchyard queue rebind --peer {name}"
        );
        let stray = finding(Severity::Warning, "queue-not-configured", about, text, remedy);
        return (unconfigured > 0).then_some(stray);
    }
    match queue.blocked {
        BlockedBy::Order if waiting > 0 => {
            let text = format!("{} for {name}: {}", waits(waiting), queue.brake);
            Some(finding(Severity::Warning, "queue-suspended", about, text, "switchyard queue orders"))
        }
        BlockedBy::Throttle => {
            let rate = queue.learnt_rate;
            let rate =
                rate.map(|rate| format!(" and allows {rate:.1} messages a second")).unwrap_or_default();
            let text = format!("{name} answers \"too fast\"{rate}: {} for it", waits(waiting));
            let remedy = "agree on a rate with the peer, and set it as `rate` of the peer";
            Some(finding(Severity::Warning, "peer-throttles", about, text, remedy))
        }
        _ if queue.is_account && queue.links == 0 => {
            let text = format!("{} for account {name}, which has no link", waits(waiting));
            let about = (SubjectKind::Account, Some(name));
            let remedy = format!("ask {name} whether its system is up; switchyard account show {name}");
            let unbound = finding(Severity::Warning, "account-unbound", about, text, remedy);
            (waiting > 0 && age >= millis(facts.limits.unbound_account)).then_some(unbound)
        }
        _ => {
            let text = format!("{} for {name}: {}", waits(queue.queued), queue.brake);
            let old = finding(Severity::Warning, "queue-old", about, text, "switchyard queue list");
            (queue.queued > 0 && age >= millis(facts.limits.queue_age)).then_some(old)
        }
    }
}

fn hooks(facts: &Facts, found: &mut Vec<Attention>) {
    for hook in &facts.hooks {
        let name = hook.hook.as_str();
        let about = (SubjectKind::Hook, Some(name));
        // The newest only: one that keeps failing would fill the list.
        let trouble = hook.events.iter().take(3).find_map(|event| {
            let (code, what) = match event.kind.as_str() {
                "faulty" => ("plugin-faulty", "has faults and nothing to roll back to"),
                "rolled-back-by-itself" => ("plugin-rolled-back", "was rolled back automatically"),
                "candidate-faulty" => {
                    ("candidate-removed", "had a candidate that was removed for its faults")
                }
                _ => return None,
            };
            let is_recent = facts.now.saturating_sub(event.at) < millis(facts.limits.plugin_event);
            is_recent.then_some((event, code, what))
        });
        if let Some((event, code, what)) = trouble {
            let text = format!("the {name} {what}: {}", event.what);
            let remedy = format!("switchyard plugin status shows the faults of the {name}");
            let failed = finding(Severity::Error, code, about, text, remedy);
            found.push(Attention { since: Some(event.at), ..failed });
        }
        for unknown in &hook.unknown {
            let (plugin, kind, what) = (&unknown.plugin, &unknown.kind, &unknown.name);
            let text = format!("the policy of the {name} {plugin} names {kind} {what}, which does not exist");
            let remedy = format!("add the {kind}, or correct the policy");
            found.push(finding(Severity::Warning, "unknown-reference", about, text, remedy));
        }
        let tried = hook.candidate.iter().flat_map(|candidate| &candidate.counts);
        for counts in hook.counts.iter().chain(tried) {
            found.extend(plugin_faults(name, counts));
        }
    }
}

/// Faults of a plugin version since it is at work.
fn plugin_faults(hook: &str, counts: &PluginCounts) -> Option<Attention> {
    let faults: u64 = counts.faults.values().sum();
    let trial = if counts.live { "" } else { ", a candidate," };
    let text = format!(
        "the {hook} {} {}{trial} failed in {faults} of {}",
        counts.plugin,
        counts.version,
        plural(counts.calls, "call", "calls"),
    );
    let remedy =
        "switchyard plugin status shows the faults; switchyard plugin rollback activates the version before";
    let about = (SubjectKind::Hook, Some(hook));
    (faults > 0).then(|| finding(Severity::Warning, "plugin-faults", about, text, remedy))
}

fn archive(pump: &Pump, most: u64, found: &mut Vec<Attention>) {
    let about = (SubjectKind::Archive, None);
    if pump.state == "down" {
        let why = pump.error.as_deref().unwrap_or("the log says why");
        let text = format!("the archive takes nothing: {why}; {} for it", waits(pump.backlog));
        let remedy = "check the database; the messages are safe on the disk and are archived when it answers";
        found.push(finding(Severity::Error, "archive-down", about, text, remedy));
    } else if pump.backlog > most {
        let text = format!("{} to be archived", waits(pump.backlog));
        let remedy = "if this number grows, the database is too slow for the traffic";
        found.push(finding(Severity::Warning, "archive-backlog", about, text, remedy));
    }
    if pump.refused > 0 {
        let text = format!("the database refuses {}", plural(pump.refused, "message", "messages"));
        let remedy = "read the log of the database; the messages stay on the disk and are tried again";
        found.push(finding(Severity::Warning, "archive-refused", about, text, remedy));
    }
}

#[cfg(test)]
mod tests;
