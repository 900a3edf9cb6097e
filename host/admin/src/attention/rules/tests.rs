use super::*;
use api::{CoreNetworkFaultKind, CoreNetworkFaultView, LinkPhase, RemainingMessagesView};
use serde_json::{Value, json};

/// The time of all tests, in milliseconds since the epoch.
const NOW: u64 = 1_795_276_982_000;
const MINUTE: u64 = 60_000;

fn quiet() -> Facts {
    Facts {
        now: NOW,
        limits: AttentionLimits::default(),
        readiness: Readiness::of(Vec::new()),
        status: Some(StatusView { disk_free: 3 << 30, ..StatusView::default() }),
        drain: None,
        queues: vec![queue("upstream")],
        oldest_quarantined: None,
        links: vec![link("upstream", LinkPhase::Bound, None)],
        networks: Vec::new(),
        cluster: None,
        hooks: Vec::new(),
        archive: Some(pump(PumpState::Up, 3)),
        event_sinks: vec![sink(PumpState::Up)],
        configuration: PendingConfiguration::default(),
    }
}

fn queue(peer: &str) -> QueueView {
    QueueView {
        peer: peer.to_owned(),
        configured: true,
        blocked_by: "idle".to_owned(),
        ..QueueView::default()
    }
}

fn link(peer: &str, phase: LinkPhase, error: Option<&str>) -> LinkView {
    let down_since = (phase != LinkPhase::Bound).then_some(NOW - MINUTE);
    let last_error = error.map(str::to_owned);
    let role = LinkRole::Client;
    LinkView { peer: peer.to_owned(), role, phase, last_error, down_since, ..LinkView::default() }
}

fn pump(state: PumpState, backlog: u64) -> ArchivePumpView {
    ArchivePumpView {
        state,
        error: None,
        archived: 0,
        batches: 0,
        failures: 0,
        refused: 0,
        trimmed: 0,
        contents_erased: 0,
        overwriting: false,
        backlog,
        since_success: None,
        last_batch: Duration::ZERO.into(),
    }
}

fn sink(state: PumpState) -> EventSinkView {
    EventSinkView {
        name: "crm".to_owned(),
        kind: "http".to_owned(),
        state,
        error: (state == PumpState::Down).then(|| "HTTP status 503".to_owned()),
        sent: 5,
        failed: 0,
        lag_records: 2,
        lag: Duration::ZERO.into(),
        gaps: 0,
        lost_records: 0,
        position: 9,
        since_success: None,
    }
}

#[test]
fn a_sink_that_accepts_nothing_or_has_lost_events_is_a_finding() {
    let mut facts = quiet();
    facts.event_sinks = vec![EventSinkView { lost_records: 1, ..sink(PumpState::Down) }];
    let found = finding_texts(&facts);
    assert_eq!(
        found,
        [
            "Error events-lost crm: crm has lost the events of 1 record of the journal",
            "Warning event-sink-down crm: event sink crm accepts nothing: HTTP status 503; it is 2 records behind",
        ]
    );
}

fn hook(more: &Value) -> HookStateView {
    let mut hook = json!({
        "hook": "router", "live": { "serial": 1, "since": 1, "chain": [], "how": "activated" }, "counts": [],
        "events": [], "faults": [],
    });
    hook.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    serde_json::from_value(hook).unwrap()
}

fn counts(live: bool, faults: u64) -> Value {
    json!({
        "plugin": "prefix-router", "version": "58cd", "live": live, "calls": 100, "nanoseconds": 1,
        "faults": api::PluginFaultCounts { trap: faults, verdict: faults, ..Default::default() }, "log-lines-left-out": 0, "memory": 0, "host-calls": {},
    })
}

/// Severity, code, subject name and text of each finding.
fn finding_texts(facts: &Facts) -> Vec<String> {
    let line = |one: &AttentionView| {
        let name = one.subject.name.as_deref().unwrap_or("-");
        format!("{:?} {} {name}: {}", one.severity, one.code, one.text)
    };
    findings(facts).iter().map(line).collect()
}

fn codes(facts: &Facts) -> Vec<String> {
    findings(facts).into_iter().map(|one| one.code).collect()
}

#[test]
fn quiet_appliance_has_no_findings() {
    assert_eq!(finding_texts(&quiet()), [""; 0]);
}

#[test]
fn not_ready_reasons_are_findings() {
    let mut facts = quiet();
    facts.readiness = Readiness::of(vec![NotReady::Draining, NotReady::DiskLow, NotReady::StoreStalled]);
    let remaining = RemainingMessagesView { waiting: 1, in_flight: 0 };
    let drain = DrainStateView {
        draining: true,
        refuse_binds: false,
        since: Some(7),
        by: Some("ada".to_owned()),
        remaining,
    };
    facts.drain = Some(drain);
    let all = [
        "Error not-ready -: the appliance takes no traffic: the disk has not finished a commit for seconds",
        "Error disk-low -: the disk is nearly full, 3.0 GiB are free: submissions are refused, delivery continues",
        "Warning draining -: the appliance is in drain mode, started by ada: submissions are refused, delivery continues",
    ];
    assert_eq!(finding_texts(&facts), all);
    assert_eq!(findings(&facts)[2].since, Some(7));
}

#[test]
fn a_file_of_text_keys_that_cannot_be_written_is_an_error() {
    let mut facts = quiet();
    facts.status = facts.status.map(|status| StatusView { text_keys_failing: true, ..status });
    let wanted = "Error text-keys -: the file with the keys of encrypted texts cannot be written: the daemon stops when the next key is needed";
    assert_eq!(finding_texts(&facts), [wanted]);
}

#[test]
fn attention_without_the_core_lists_known_findings() {
    let mut facts = quiet();
    facts.readiness = Readiness::of(vec![NotReady::CoreStalled, NotReady::Draining, NotReady::DiskLow]);
    (facts.status, facts.drain, facts.queues) = (None, None, Vec::new());
    assert_eq!(codes(&facts), ["not-ready", "disk-low", "draining"]);
}

#[test]
fn peer_down_is_one_finding_since_the_last_link() {
    let mut facts = quiet();
    facts.links = vec![
        link("a", LinkPhase::BackingOff, Some("connection refused")),
        LinkView { down_since: Some(NOW - 5), ..link("a", LinkPhase::Connecting, None) },
        link("b", LinkPhase::Bound, None),
        link("b", LinkPhase::BackingOff, Some("bind refused")),
        LinkView { role: LinkRole::Server, ..link("esme", LinkPhase::Unbinding, None) },
    ];
    let all = [
        "Error peer-down a: no link to a is up: connection refused",
        "Warning links-down b: 1 of 2 links to b is down: bind refused",
    ];
    assert_eq!(finding_texts(&facts), all);
    let found = findings(&facts);
    assert_eq!((found[0].since, found[1].since), (Some(NOW - 5), Some(NOW - MINUTE)));
    assert_eq!(found[0].remedy.as_deref(), Some("switchyard peer test a"));
    assert_eq!(
        found[0].subject,
        AttentionSubject { kind: AttentionSubjectKind::Peer, name: Some("a".to_owned()) }
    );
}

#[test]
fn queue_age_limits_of_peers_and_unbound_accounts() {
    let mut facts = quiet();
    let waiting = |peer: &str, minutes: u64| QueueView {
        queued: 2,
        oldest: Some(NOW - minutes * MINUTE),
        blocked_by: "no link is up".to_owned(),
        ..queue(peer)
    };
    let account = |minutes| QueueView { is_account: true, ..waiting("acme", minutes) };
    facts.queues = vec![waiting("upstream", 9), account(59)];
    assert_eq!(codes(&facts), [""; 0]);
    facts.queues = vec![waiting("upstream", 10), account(60)];
    let all = [
        "Warning queue-old upstream: 2 messages wait for upstream: no link is up",
        "Warning account-unbound acme: 2 messages wait for account acme, which has no link",
    ];
    assert_eq!(finding_texts(&facts), all);
    assert_eq!(findings(&facts)[0].since, Some(NOW - 10 * MINUTE));
    // A bound account that accepts nothing is treated like any other queue.
    facts.queues = vec![QueueView { links: 1, ..account(10) }];
    assert_eq!(codes(&facts), ["queue-old"]);
    facts.limits = AttentionLimits {
        queue_age: Duration::from_secs(3_600),
        unbound_account: Duration::from_secs(60),
        ..AttentionLimits::default()
    };
    facts.queues = vec![waiting("upstream", 10), account(1)];
    assert_eq!(codes(&facts), ["account-unbound"]);
}

#[test]
fn queue_finding_has_the_most_specific_reason() {
    let mut facts = quiet();
    let old = Some(NOW - 60 * MINUTE);
    let base = |peer: &str| QueueView { queued: 1, oldest: old, ..queue(peer) };
    facts.queues = vec![
        QueueView { configured: false, deferred: 3, uncertain: 2, ..base("gone") },
        QueueView {
            block_cause: BlockCause::QueueAction,
            blocked_by: "suspended by ada: x".to_owned(),
            ..base("held")
        },
        QueueView { block_cause: BlockCause::Throttle, learnt_rate: Some(9.63), ..base("slow") },
        // A queue action without messages and an unconfigured name without messages are no findings.
        QueueView { block_cause: BlockCause::QueueAction, queued: 0, ..base("calm") },
        QueueView { configured: false, queued: 0, ..base("forgotten") },
    ];
    let all = [
        "Warning messages-uncertain gone: 2 messages were submitted to gone and never answered",
        "Warning queue-not-configured gone: 6 messages wait for gone, which is not in the configuration",
        "Warning queue-suspended held: 1 message waits for held: suspended by ada: x",
        "Warning peer-throttles slow: slow throttles and allows 9.6 messages a second: 1 message waits for it",
    ];
    assert_eq!(finding_texts(&facts), all);
}

#[test]
fn an_unattended_quarantine_is_a_finding() {
    let quarantined = |minutes: u64| QuarantinedView {
        id: "4".to_owned(),
        origin: "acme".to_owned(),
        source: "ACME".to_owned(),
        destination: "+49151****034".to_owned(),
        at: NOW - minutes * MINUTE,
        until: NOW + MINUTE,
        by: "firewall 1".to_owned(),
        note: None,
        length: 10,
    };
    let mut facts = quiet();
    facts.oldest_quarantined = Some(quarantined(239));
    assert_eq!(codes(&facts), [""; 0]);
    facts.oldest_quarantined = Some(quarantined(240));
    let expected = format!(
        "Warning quarantine-old -: a message from acme is in quarantine and expires at {}",
        NOW + MINUTE
    );
    assert_eq!(finding_texts(&facts), [expected]);
    assert_eq!(findings(&facts)[0].since, Some(NOW - 240 * MINUTE));
}

#[test]
fn core_network_faults_keep_their_severity() {
    let mut facts = quiet();
    let fault = |level, kind| CoreNetworkFaultView {
        kind,
        level,
        what: "it is wrong".to_owned(),
        remedy: "mend it".to_owned(),
    };
    let faults = vec![
        fault(AttentionSeverity::Warning, CoreNetworkFaultKind::DuplicateName),
        fault(AttentionSeverity::Error, CoreNetworkFaultKind::NoMsc),
    ];
    facts.networks = vec![CoreNetworkView { name: "home".to_owned(), faults, ..CoreNetworkView::default() }];
    let all = [
        "Error gsm-no-msc home: core network home: it is wrong",
        "Warning gsm-double-name home: core network home: it is wrong",
    ];
    assert_eq!(finding_texts(&facts), all);
    assert_eq!(findings(&facts)[0].remedy.as_deref(), Some("mend it"));
}

#[test]
fn plugin_faults_rollbacks_and_unknown_names_are_findings() {
    let mut facts = quiet();
    let event = |kind: &str, age: u64| json!({ "at": NOW - age, "kind": kind, "what": "2 traps" });
    facts.hooks = vec![hook(&json!({
        "counts": [counts(true, 0)],
        "candidate": {
            "since": 1, "mode": "shadow", "chain": [], "asked": 0, "failed": 0, "bypassed": 0, "counts": [counts(false, 1)],
        },
        "events": [event("activated", 1), event("rolled-back-by-itself", 59 * MINUTE)],
        "unknown": [{ "plugin": "prefix-router", "kind": "peer", "name": "nort" }],
    }))];
    let all = [
        "Error plugin-rolled-back router: the router was rolled back automatically: 2 traps",
        "Warning unknown-reference router: the policy of the router prefix-router names peer nort, which does not exist",
        "Warning plugin-faults router: the router prefix-router 58cd, a candidate, failed in 2 of 100 calls",
    ];
    assert_eq!(finding_texts(&facts), all);
    let old = hook(&json!({ "events": [event("rolled-back-by-itself", 60 * MINUTE)] }));
    let several = hook(&json!({ "events": [event("faulty", 1), event("candidate-faulty", 2)] }));
    facts.hooks = vec![old, several];
    assert_eq!(codes(&facts), ["plugin-faulty"]);
}

#[test]
fn archive_down_backlog_and_refusals_are_findings() {
    let mut facts = quiet();
    let error = Some("no route to host".to_owned());
    facts.archive = Some(ArchivePumpView { error, refused: 1, ..pump(PumpState::Down, 200_000) });
    let all = [
        "Error archive-down -: the archive accepts nothing: no route to host; 200000 messages wait for it",
        "Warning archive-refused -: the database refuses 1 message",
    ];
    assert_eq!(finding_texts(&facts), all);
    facts.archive = Some(pump(PumpState::Up, 100_001));
    assert_eq!(codes(&facts), ["archive-backlog"]);
    facts.archive = None;
    assert_eq!(codes(&facts), [""; 0]);
}

#[test]
fn pending_configuration_is_a_finding() {
    let mut facts = quiet();
    facts.configuration = PendingConfiguration { unconfirmed: Some((9, 5, NOW + 1)), restart: 2 };
    let all = [
        format!(
            "Warning configuration-unconfirmed -: version 9 of the configuration reverts at {} unless it is confirmed",
            NOW + 1
        ),
        "Warning configuration-restart -: 2 settings are used only after a restart of the appliance"
            .to_owned(),
    ];
    assert_eq!(finding_texts(&facts), all);
    assert_eq!(findings(&facts)[0].since, Some(5));
}

#[test]
fn a_cluster_that_one_failure_would_stop_needs_attention() {
    let node = |name: &str, alive| api::ClusterNodeView {
        name: name.to_owned(),
        role: api::ClusterRole::Follower,
        alive,
        address: String::new(),
        version: String::new(),
        formats: api::RecordFormats { oldest: 1, newest: 1 },
        durable: 1,
        lacks: None,
    };
    let member = |octets, problem: Option<&str>| api::EtcdMemberView {
        endpoint: "http://192.0.2.1:2379".to_owned(),
        version: String::new(),
        leader: false,
        octets,
        problem: problem.map(str::to_owned),
    };
    let partition = |partition, leader: Option<&str>| api::PartitionView {
        partition,
        leader: leader.map(str::to_owned),
        address: None,
        alive: 2,
        nodes: 2,
    };
    let codes_with = |other_leader, nodes, etcd, degraded| -> Vec<String> {
        let cluster = ClusterView {
            node: "a".to_owned(),
            role: api::ClusterRole::Leader,
            partition: 0,
            partitions: vec![partition(0, Some("a")), partition(1, other_leader)],
            leader: Some("a".to_owned()),
            term: 1,
            head: 1,
            slots: 4096,
            format: 1,
            degraded,
            nodes,
            etcd,
            etcd_error: None,
        };
        let facts = Facts { cluster: Some(cluster), ..quiet() };
        findings(&facts).into_iter().map(|finding| finding.code).collect()
    };
    let codes = |nodes, etcd, degraded| codes_with(Some("b"), nodes, etcd, degraded);
    let well = || vec![member(100 << 20, None)];
    assert_eq!(
        codes_with(None, vec![node("a", true), node("b", true)], well(), false),
        ["partition-without-leader"]
    );
    assert_eq!(codes(vec![node("a", true), node("b", true)], well(), false), Vec::<String>::new());
    assert_eq!(codes(vec![node("a", true)], well(), false), ["cluster-alone"]);
    assert_eq!(
        codes(vec![node("a", true), node("b", false)], well(), true),
        ["cluster-alone", "cluster-degraded"]
    );
    assert_eq!(
        codes(vec![node("a", true), node("b", true), node("c", false)], well(), false),
        ["cluster-node-down"]
    );
    let lacking = api::ClusterNodeView { lacks: Some("a table".to_owned()), ..node("b", true) };
    assert_eq!(codes(vec![node("a", true), lacking], well(), false), ["cluster-node-incomplete"]);
    let sick = vec![member(1700 << 20, None), member(0, Some("no answer"))];
    assert_eq!(codes(vec![node("a", true), node("b", true)], sick, false), ["etcd-member", "etcd-size"]);
}
