//! The attention rules: a pure function from facts to findings.

use super::{AttentionLimits, PendingConfiguration};
use api::{
    ArchivePumpView, AttentionSeverity, AttentionSubject, AttentionSubjectKind, AttentionView, BlockCause,
    ClusterView, CoreNetworkView, DrainStateView, EventSinkView, HookStateView, LinkRole, LinkView, NotReady,
    PluginCountsView, PumpState, QuarantinedView, QueueView, Readiness, StatusView,
};
use std::collections::BTreeMap;
use std::time::Duration;

/// The input of the rules: the state of the appliance at one moment.
#[derive(Debug)]
pub(super) struct Facts {
    /// Time of the state, in milliseconds since the epoch.
    pub(super) now: u64,
    pub(super) limits: AttentionLimits,
    pub(super) readiness: Readiness,
    /// `None` while the core does not answer.
    pub(super) status: Option<StatusView>,
    /// `None` while the core does not answer.
    pub(super) drain: Option<DrainStateView>,
    pub(super) queues: Vec<QueueView>,
    pub(super) oldest_quarantined: Option<QuarantinedView>,
    pub(super) links: Vec<LinkView>,
    pub(super) networks: Vec<CoreNetworkView>,
    /// `None` without a cluster.
    pub(super) cluster: Option<ClusterView>,
    pub(super) hooks: Vec<HookStateView>,
    /// `None` if there is no archive.
    pub(super) archive: Option<ArchivePumpView>,
    pub(super) event_sinks: Vec<EventSinkView>,
    pub(super) configuration: PendingConfiguration,
}

/// The findings: errors first, then in the order in which an admin should handle them.
pub(super) fn findings(facts: &Facts) -> Vec<AttentionView> {
    let mut found = Vec::new();
    appliance(facts, &mut found);
    if let Some(view) = &facts.cluster {
        cluster(view, &mut found);
    }
    configuration(&facts.configuration, &mut found);
    links(&facts.links, &mut found);
    networks(&facts.networks, &mut found);
    queues(facts, &mut found);
    found.extend(facts.oldest_quarantined.as_ref().and_then(|oldest| quarantine(oldest, facts)));
    hooks(facts, &mut found);
    if let Some(pump) = &facts.archive {
        archive(pump, facts.limits.archive_backlog, &mut found);
    }
    facts.event_sinks.iter().for_each(|sink| event_sink(sink, &mut found));
    found.sort_by_key(|finding| finding.severity);
    found
}

fn finding(
    severity: AttentionSeverity,
    code: &str,
    (kind, name): (AttentionSubjectKind, Option<&str>),
    text: String,
    remedy: impl Into<String>,
) -> AttentionView {
    let subject = AttentionSubject { kind, name: name.map(str::to_owned) };
    let remedy = Some(remedy.into()).filter(|remedy| !remedy.is_empty());
    AttentionView { severity, code: code.to_owned(), subject, since: None, text, remedy }
}

/// A count with its noun.
fn plural(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

fn messages_waiting(count: u64) -> String {
    plural(count, "message waits", "messages wait")
}

/// A size in the largest unit of which it is at least 1.
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

/// Findings about a cluster that has lost redundancy.
fn cluster(cluster: &ClusterView, found: &mut Vec<AttentionView>) {
    let about = (AttentionSubjectKind::Cluster, None);
    let dead: Vec<&str> =
        cluster.nodes.iter().filter(|node| !node.alive).map(|node| node.name.as_str()).collect();
    let others = cluster.nodes.iter().filter(|node| node.alive && node.name != cluster.node).count();
    if others == 0 {
        let text = if dead.is_empty() {
            "no other node has joined the cluster: if this machine fails, no other takes over".to_owned()
        } else {
            format!(
                "no other node is alive ({}): if this machine fails, no other takes over",
                dead.join(", ")
            )
        };
        let remedy = "start the other node";
        found.push(finding(AttentionSeverity::Error, "cluster-alone", about, text, remedy));
    } else if !dead.is_empty() {
        let text = format!("nodes of the cluster are not alive: {}", dead.join(", "));
        let remedy = "start them, or remove those that will not return: `switchyard cluster remove`";
        found.push(finding(AttentionSeverity::Warning, "cluster-node-down", about, text, remedy));
    }
    let unled = cluster.partitions.iter().filter(|partition| partition.leader.is_none());
    let unled: Vec<String> = unled.map(|partition| partition.partition.to_string()).collect();
    if !unled.is_empty() {
        let text = format!(
            "partitions of the cluster have no leader, their accounts cannot connect: {}",
            unled.join(", ")
        );
        let remedy = "start a process of the partition";
        found.push(finding(AttentionSeverity::Error, "partition-without-leader", about, text, remedy));
    }
    if cluster.degraded {
        let text = "older records of the cluster are on this disk only".to_owned();
        let remedy = "start another node";
        found.push(finding(AttentionSeverity::Error, "cluster-degraded", about, text, remedy));
    }
    for node in cluster.nodes.iter().filter(|node| node.alive && node.name != cluster.node) {
        if let Some(lacks) = &node.lacks {
            let text = format!("node {} cannot take over: it lacks {lacks}", node.name);
            let remedy = "if this persists, see the log of that node";
            found.push(finding(AttentionSeverity::Warning, "cluster-node-incomplete", about, text, remedy));
        }
    }
    for member in &cluster.etcd {
        if let Some(problem) = &member.problem {
            let text = format!("etcd at {}: {problem}", member.endpoint);
            let remedy = "read the log of that member; with one more member down, nothing is accepted";
            found.push(finding(AttentionSeverity::Error, "etcd-member", about, text, remedy));
        } else if member.octets >= ETCD_FULL {
            let text = format!("the file of etcd at {} has {}", member.endpoint, size(member.octets));
            let remedy =
                "see its --quota-backend-bytes (2 GiB by default), and defragment it: etcdctl defrag";
            found.push(finding(AttentionSeverity::Warning, "etcd-size", about, text, remedy));
        }
    }
}

/// Three quarters of etcd's default quota. The ring needs a tenth of it.
const ETCD_FULL: u64 = 1536 << 20;

fn appliance(facts: &Facts, found: &mut Vec<AttentionView>) {
    let about = (AttentionSubjectKind::Appliance, None);
    // Drain mode and a full disk have findings of their own.
    let reasons = facts.readiness.reasons.iter().filter_map(|reason| match reason {
        NotReady::Starting => Some("it is starting"),
        NotReady::Following => Some("another node of the cluster leads"),
        NotReady::Stopping => Some("it is shutting down"),
        NotReady::NoMajority => Some("the majority of etcd does not answer"),
        NotReady::StoreStalled => Some("the disk has not finished a commit for seconds"),
        NotReady::CoreStalled => Some("the core has not answered for seconds"),
        NotReady::Draining | NotReady::DiskLow => None,
    });
    let reasons: Vec<&str> = reasons.collect();
    if !reasons.is_empty() {
        let text = format!("the appliance takes no traffic: {}", reasons.join("; "));
        let remedy = "read the log; a start with millions of messages may take a minute";
        found.push(finding(AttentionSeverity::Error, "not-ready", about, text, remedy));
    }
    if facts.readiness.reasons.contains(&NotReady::DiskLow) {
        let free = facts.status.as_ref().map(|status| format!(", {} are free", size(status.disk_free)));
        let text = format!(
            "the disk is nearly full{}: submissions are refused, delivery continues",
            free.unwrap_or_default()
        );
        let remedy = "make room on the disk of the data directory; a restart is not necessary";
        found.push(finding(AttentionSeverity::Error, "disk-low", about, text, remedy));
    }
    if facts.status.as_ref().is_some_and(|status| status.text_keys_failing) {
        let text = "the file with the keys of encrypted texts cannot be written: the daemon stops when the next key is needed";
        let remedy =
            "read the log; make room on the disk of the data directory, and check the owner of text.keys";
        found.push(finding(AttentionSeverity::Error, "text-keys", about, text.to_owned(), remedy));
    }
    if facts.readiness.reasons.contains(&NotReady::Draining) {
        let by = facts.drain.as_ref().and_then(|drain| drain.by.as_deref());
        let by = by.map(|by| format!(", started by {by}")).unwrap_or_default();
        let text = format!("the appliance is in drain mode{by}: submissions are refused, delivery continues");
        let remedy = "to accept traffic again: switchyard drain stop";
        let since = facts.drain.as_ref().and_then(|drain| drain.since);
        let drains = finding(AttentionSeverity::Warning, "draining", about, text, remedy);
        found.push(AttentionView { since, ..drains });
    }
}

fn configuration(waits: &PendingConfiguration, found: &mut Vec<AttentionView>) {
    let about = (AttentionSubjectKind::Configuration, None);
    if let Some((version, at, reverts_at)) = waits.unconfirmed {
        let text =
            format!("version {version} of the configuration reverts at {reverts_at} unless it is confirmed");
        let remedy = "to keep it: switchyard config confirm";
        let pending = finding(AttentionSeverity::Warning, "configuration-unconfirmed", about, text, remedy);
        found.push(AttentionView { since: Some(at), ..pending });
    }
    if waits.restart > 0 {
        let settings = plural(waits.restart as u64, "setting is", "settings are");
        let text = format!("{settings} used only after a restart of the appliance");
        found.push(finding(
            AttentionSeverity::Warning,
            "configuration-restart",
            about,
            text,
            "restart the appliance",
        ));
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

fn links(links: &[LinkView], found: &mut Vec<AttentionView>) {
    let mut peers: BTreeMap<&str, Dialled<'_>> = BTreeMap::new();
    for link in links.iter().filter(|link| link.role == LinkRole::Client) {
        let peer = peers.entry(&link.peer).or_default();
        peer.all += 1;
        if !link.is_up() {
            peer.down += 1;
            peer.error = link.last_error.as_deref().or(peer.error);
            peer.down_since = peer.down_since.max(link.down_since);
        }
    }
    for (name, peer) in peers.into_iter().filter(|(_, peer)| peer.down > 0) {
        let about = (AttentionSubjectKind::Peer, Some(name));
        let why = peer.error.unwrap_or("it is being dialled");
        let remedy = format!("switchyard peer test {name}");
        let down = if peer.down == peer.all {
            // The peer has been down since its last link went down.
            let text = format!("no link to {name} is up: {why}");
            finding(AttentionSeverity::Error, "peer-down", about, text, remedy)
        } else {
            let are = if peer.down == 1 { "is" } else { "are" };
            let text = format!("{} of {} links to {name} {are} down: {why}", peer.down, peer.all);
            finding(AttentionSeverity::Warning, "links-down", about, text, remedy)
        };
        found.push(AttentionView { since: peer.down_since, ..down });
    }
}

fn networks(networks: &[CoreNetworkView], found: &mut Vec<AttentionView>) {
    for network in networks {
        for fault in &network.faults {
            let (code, text) = (
                format!("gsm-{}", fault.kind.name()),
                format!("core network {}: {}", network.name, fault.what),
            );
            let about = (AttentionSubjectKind::CoreNetwork, Some(network.name.as_str()));
            found.push(finding(fault.level, &code, about, text, fault.remedy.as_str()));
        }
    }
}

fn queues(facts: &Facts, found: &mut Vec<AttentionView>) {
    for queue in &facts.queues {
        let name = queue.peer.as_str();
        if queue.uncertain > 0 {
            let text = format!(
                "{} submitted to {name} and never answered",
                plural(queue.uncertain, "message was", "messages were")
            );
            let remedy = format!("switchyard queue uncertain --peer {name}, then switchyard queue settle");
            let about = (AttentionSubjectKind::Queue, Some(name));
            found.push(finding(AttentionSeverity::Warning, "messages-uncertain", about, text, remedy));
        }
        if let Some(blocked) = queue_blocked(queue, facts) {
            found.push(AttentionView { since: queue.oldest, ..blocked });
        }
    }
}

/// The finding of a queue whose messages wait, if it needs attention: only the most specific reason.
fn queue_blocked(queue: &QueueView, facts: &Facts) -> Option<AttentionView> {
    let name = queue.peer.as_str();
    let about = (AttentionSubjectKind::Queue, Some(name));
    let waiting = queue.queued + queue.deferred + queue.suspended;
    let age = queue.oldest.map_or(0, |oldest| facts.now.saturating_sub(oldest));
    if !queue.configured {
        let unconfigured = waiting + queue.in_flight + queue.resolving + queue.uncertain + queue.awaiting_dlr;
        let text =
            format!("{} for {name}, which is not in the configuration", messages_waiting(unconfigured));
        let remedy = format!(
            "add it to the configuration again, or move its messages: switchyard queue reroute --peer {name}"
        );
        let stray = finding(AttentionSeverity::Warning, "queue-not-configured", about, text, remedy);
        return (unconfigured > 0).then_some(stray);
    }
    match queue.block_cause {
        BlockCause::QueueAction if waiting > 0 => {
            let text = format!("{} for {name}: {}", messages_waiting(waiting), queue.blocked_by);
            Some(finding(
                AttentionSeverity::Warning,
                "queue-suspended",
                about,
                text,
                "switchyard queue actions",
            ))
        }
        BlockCause::Throttle => {
            let rate = queue.learnt_rate;
            let rate =
                rate.map(|rate| format!(" and allows {rate:.1} messages a second")).unwrap_or_default();
            let text = format!("{name} throttles{rate}: {} for it", messages_waiting(waiting));
            let remedy = "agree on a rate with the peer, and set it as `rate` of the peer";
            Some(finding(AttentionSeverity::Warning, "peer-throttles", about, text, remedy))
        }
        _ if queue.is_account && queue.links == 0 => {
            let text = format!("{} for account {name}, which has no link", messages_waiting(waiting));
            let about = (AttentionSubjectKind::Account, Some(name));
            let remedy = format!("ask {name} whether its system is up; switchyard account show {name}");
            let unbound = finding(AttentionSeverity::Warning, "account-unbound", about, text, remedy);
            (waiting > 0 && age >= millis(facts.limits.unbound_account)).then_some(unbound)
        }
        _ => {
            let text = format!("{} for {name}: {}", messages_waiting(queue.queued), queue.blocked_by);
            let old = finding(AttentionSeverity::Warning, "queue-old", about, text, "switchyard queue list");
            (queue.queued > 0 && age >= millis(facts.limits.queue_age)).then_some(old)
        }
    }
}

/// The finding of messages that stay in quarantine too long: they may expire there.
fn quarantine(oldest: &QuarantinedView, facts: &Facts) -> Option<AttentionView> {
    let is_old = facts.now.saturating_sub(oldest.at) >= millis(facts.limits.quarantine_age);
    let text = format!("a message from {} is in quarantine and expires at {}", oldest.origin, oldest.until);
    let remedy = "switchyard quarantine list, then switchyard quarantine release or purge";
    let about = (AttentionSubjectKind::Appliance, None);
    let old = finding(AttentionSeverity::Warning, "quarantine-old", about, text, remedy);
    is_old.then_some(AttentionView { since: Some(oldest.at), ..old })
}

fn hooks(facts: &Facts, found: &mut Vec<AttentionView>) {
    for hook in &facts.hooks {
        let name = hook.hook.name();
        let about = (AttentionSubjectKind::Hook, Some(name));
        // Only the newest event: a plugin that keeps failing would fill the list.
        let trouble = hook.events.iter().take(3).find_map(|event| {
            let (code, what) = match event.kind.as_str() {
                "faulty" => ("plugin-faulty", "has faults and nothing to roll back to"),
                "rolled-back-by-itself" => ("plugin-rolled-back", "was rolled back automatically"),
                "candidate-faulty" => {
                    ("candidate-removed", "had a candidate that was removed for its faults")
                }
                _ => return None,
            };
            let is_recent = facts.now.saturating_sub(event.at.0) < millis(facts.limits.plugin_event);
            is_recent.then_some((event, code, what))
        });
        if let Some((event, code, what)) = trouble {
            let text = format!("the {name} {what}: {}", event.what);
            let remedy = format!("switchyard plugin status shows the faults of the {name}");
            let failed = finding(AttentionSeverity::Error, code, about, text, remedy);
            found.push(AttentionView { since: Some(event.at.0), ..failed });
        }
        for unknown in &hook.unknown {
            let (plugin, kind, what) = (&unknown.plugin, unknown.kind.name(), &unknown.name);
            let text = format!("the policy of the {name} {plugin} names {kind} {what}, which does not exist");
            let remedy = format!("add the {kind}, or correct the policy");
            found.push(finding(AttentionSeverity::Warning, "unknown-reference", about, text, remedy));
        }
        let tried = hook.candidate.iter().flat_map(|candidate| &candidate.counts);
        for counts in hook.counts.iter().chain(tried) {
            found.extend(plugin_faults(name, counts));
        }
    }
}

/// The finding of a plugin version with faults since its activation.
fn plugin_faults(hook: &str, counts: &PluginCountsView) -> Option<AttentionView> {
    let faults = counts.faults.total();
    let trial = if counts.live { "" } else { ", a candidate," };
    let text = format!(
        "the {hook} {} {}{trial} failed in {faults} of {}",
        counts.plugin,
        counts.version,
        plural(counts.calls, "call", "calls"),
    );
    let remedy = "switchyard plugin status shows the faults; switchyard plugin rollback activates the previous version";
    let about = (AttentionSubjectKind::Hook, Some(hook));
    (faults > 0).then(|| finding(AttentionSeverity::Warning, "plugin-faults", about, text, remedy))
}

fn archive(pump: &ArchivePumpView, most: u64, found: &mut Vec<AttentionView>) {
    let about = (AttentionSubjectKind::Archive, None);
    if pump.state == PumpState::Down {
        let why = pump.error.as_deref().unwrap_or("see the log");
        let text = format!("the archive accepts nothing: {why}; {} for it", messages_waiting(pump.backlog));
        let remedy = "check the database; the messages are safe on the disk and are archived when it answers";
        found.push(finding(AttentionSeverity::Error, "archive-down", about, text, remedy));
    } else if pump.backlog > most {
        let text = format!("{} to be archived", messages_waiting(pump.backlog));
        let remedy = "if this number grows, the database is too slow for the traffic";
        found.push(finding(AttentionSeverity::Warning, "archive-backlog", about, text, remedy));
    }
    if pump.refused > 0 {
        let text = format!("the database refuses {}", plural(pump.refused, "message", "messages"));
        let remedy = "read the log of the database; the messages stay on the disk and are tried again";
        found.push(finding(AttentionSeverity::Warning, "archive-refused", about, text, remedy));
    }
}

fn event_sink(sink: &EventSinkView, found: &mut Vec<AttentionView>) {
    let about = (AttentionSubjectKind::EventSink, Some(sink.name.as_str()));
    let (what, loses) = match sink.kind.as_str() {
        "cdr-file" => (format!("the CDR files {} are not written", sink.name), "the CDRs"),
        _ => (format!("event sink {} accepts nothing", sink.name), "the events"),
    };
    if sink.state == PumpState::Down {
        let why = sink.error.as_deref().unwrap_or("see the log");
        let behind = plural(sink.lag_records, "record", "records");
        let text = format!("{what}: {why}; it is {behind} behind");
        let remedy = "check it; the journal keeps its records up to `journal-hold` of [engine]";
        found.push(finding(AttentionSeverity::Warning, "event-sink-down", about, text, remedy));
    }
    if sink.lost_records > 0 {
        let records = plural(sink.lost_records, "record", "records");
        let text = format!("{} has lost {loses} of {records} of the journal", sink.name);
        let remedy =
            "the messages are in the archive; raise `journal-hold` of [engine]. A restart ends this notice";
        found.push(finding(AttentionSeverity::Error, "events-lost", about, text, remedy));
    }
}

#[cfg(test)]
mod tests;
