//! State and operation: overview, queues, links, core networks, archive.

use super::{account_name, now, peer_name, problem};
use crate::fake_api::fixtures;
use admin::ProblemKind;
use api::{
    ArchivePumpView, AttentionSeverity, AttentionSubject, AttentionSubjectKind, AttentionView, BindMode,
    ClusterNodeView, ClusterRole, ClusterView, CoreConnectionView, CoreNetworkFaultKind,
    CoreNetworkFaultView, CoreNetworkMo, CoreNetworkMt, CoreNetworkRole, CoreNetworkView, DrainStateView,
    EtcdMemberView, EventSinkView, HistoryEventKind, HistoryEventView, HistoryRange, HistorySampleView,
    HlrQuestions, HookTrafficView, LatencyView, LinkBlocker, LinkPhase, LinkRole, LinkView,
    MetricsHistoryView, MetricsSampleView, PartitionView, PeerCallbacksView, PeerFiguresView, PeerTestView,
    PluginPeerView, PumpState, QueueView, RecentMetricsView, RecordFormats, RefusalCountView, RefusalsView,
    RefusedAttempts, RefusedSubmissionView, RemainingMessagesView, SpanView, StatisticsCountsView,
    StatisticsView, StatusTotals, StatusView, SubmitterTrafficView, TestStepKind, TestStepView,
    TrafficCounts, TrafficFlowView, TrafficMapView, TrafficView,
};
use axum::Json;
use axum::extract::{Path, Query};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use model::{Direction, Hook};

pub(super) fn recent_metrics() -> RecentMetricsView {
    let every = 2_000;
    let end = now() / every * every;
    let wave = |at: u64, slow: f64, high: f64| (1.0 + (at as f64 / slow / 1_000.0).sin()) * high;
    let (mut accepted, mut delivered, mut failed, mut refused, mut commits, mut commit_us) =
        (10_000.0, 9_000.0, 12.0, 3.0, 0_u64, 0_u64);
    let sample = |index: u64| {
        let at = end - (299 - index) * every;
        let rate = 180.0 + wave(at, 41.0, 90.0) + wave(at, 7.0, 25.0);
        accepted += rate * 2.0;
        delivered += (rate - wave(at, 23.0, 18.0)) * 2.0;
        failed += wave(at, 31.0, 0.6);
        refused += wave(at, 57.0, 0.2);
        commits += 60;
        commit_us += 60 * (700 + wave(at, 13.0, 300.0) as u64);
        MetricsSampleView {
            at,
            accepted: accepted as u64,
            delivered: delivered as u64,
            failed: failed as u64,
            refused: refused as u64,
            submitted: delivered as u64,
            waiting: 800 + wave(at, 37.0, 900.0) as u64,
            commits,
            commit_us,
            round_trip_us: Some(18_000 + wave(at, 19.0, 6_000.0) as u64),
        }
    };
    RecentMetricsView { interval_ms: every, capacity: 300, samples: (0..300).map(sample).collect() }
}

/// The `range` of a request.
#[derive(serde::Deserialize)]
pub(super) struct HistoryQuery {
    #[serde(default)]
    range: HistoryRange,
}

pub(super) async fn metrics_history(Query(query): Query<HistoryQuery>) -> Json<MetricsHistoryView> {
    let (interval_ms, length) = (query.range.interval_ms(), query.range.length_ms());
    let until = now() / interval_ms * interval_ms + interval_ms;
    let from = until - length;
    let slots = length / interval_ms;
    let sample = |slot: u64| {
        let seconds = interval_ms / 1_000;
        let wave = (1.0 + (slot as f64 / 23.0).sin()) * (1.0 + (slot as f64 / 5.0).cos() / 4.0);
        HistorySampleView {
            at: from + slot * interval_ms,
            observed_ms: u32::try_from(interval_ms).unwrap_or(u32::MAX),
            accepted: (180.0 * wave) as u64 * seconds,
            refused: slot % 3,
            delivered: (170.0 * wave) as u64 * seconds,
            failed: slot % 7 * seconds / 10,
            waiting: (900.0 * wave) as u64,
            commit_us: Some(900),
            round_trip_us: Some(18_000 + (6_000.0 * wave) as u32),
        }
    };
    let event = |part: u64, kind, subject: &str, text: &str| HistoryEventView {
        at: from + length / 100 * part,
        kind,
        subject: subject.to_owned(),
        text: text.to_owned(),
    };
    let mut samples: Vec<HistorySampleView> = (0..slots).map(sample).collect();
    // The daemon was stopped.
    samples.drain((slots / 3) as usize..(slots / 3 + slots / 40) as usize);
    Json(MetricsHistoryView {
        from,
        until,
        interval_ms,
        samples,
        events: vec![
            event(36, HistoryEventKind::Start, "", ""),
            event(55, HistoryEventKind::Configuration, "7", "ada: more links <for> north"),
            event(70, HistoryEventKind::Exchange, "router", "prefix-router 4f0c2d91aa17"),
            event(82, HistoryEventKind::Fault, "biller", "trap"),
        ],
    })
}

/// The map of [`traffic`].
pub(super) fn traffic_map(peers: usize, accounts: usize) -> TrafficMapView {
    admin::traffic_map(&traffic(peers, accounts), &queues(peers, accounts), &attention(), 9, 40)
}

/// Account 0 sends to all peers, each other account to two; a tenth of the peers is busy. Peer 1 is down.
pub(super) fn traffic(peers: usize, accounts: usize) -> TrafficView {
    let flow = |from: String, to: usize, direction, rate: u64| {
        let counts = TrafficCounts {
            accepted: rate * 60,
            refused: if to == 2 { rate * 4 } else { 0 },
            throttled: u64::from(to == 3) * 7,
            delivered: rate * 55,
            failed: rate,
            ..TrafficCounts::default()
        };
        TrafficFlowView { from, to: peer_name(to), direction, counts }
    };
    let rate = |to: usize| if to == 1 { 0 } else { 240 / (to as u64 * to as u64 + 1) };
    let first = (0..peers).map(|to| flow(account_name(0), to, Direction::Mt, rate(to)));
    let others = (1..accounts).flat_map(|from| {
        [from % peers.max(1), (from * 7 + 3) % peers.max(1)]
            .map(|to| flow(account_name(from), to, Direction::Mt, rate(to).min(90) / (from as u64)))
    });
    let mut flows: Vec<TrafficFlowView> =
        first.chain(others).filter(|flow| flow.counts.attempts() > 0).collect();
    if peers > 0 && accounts > 0 {
        let reply = TrafficCounts { accepted: 180, ..TrafficCounts::default() };
        flows.push(TrafficFlowView {
            from: peer_name(0),
            to: account_name(0),
            direction: Direction::Mo,
            counts: reply,
        });
    }
    flows.sort_by_key(|flow| std::cmp::Reverse(flow.counts.attempts()));
    let accepted = |name: &String| {
        let own = flows.iter().filter(|flow| flow.from == *name);
        own.map(|flow| flow.counts.accepted).sum::<u64>()
    };
    let submitters = (0..accounts).map(account_name).chain((0..peers).take(1).map(peer_name));
    let mut submitters: Vec<SubmitterTrafficView> =
        submitters.map(|name| SubmitterTrafficView { accepted: accepted(&name) + 60, name }).collect();
    submitters.sort_by_key(|submitter| std::cmp::Reverse(submitter.accepted));
    let calls = |hook, calls: u64, micros: u64, faults| HookTrafficView {
        hook,
        calls,
        faults,
        nanoseconds: calls * micros * 1_000,
        waiting: if hook == Hook::Screen { 2 } else { 0 },
    };
    TrafficView {
        window_ms: 60_000,
        submitters,
        flows,
        flows_left_out: 0,
        hooks_window_ms: 60_000,
        hooks: vec![
            calls(Hook::Screen, 22_140, 31, 0),
            calls(Hook::Router, 22_140, 18, 0),
            calls(Hook::Biller, 22_140, 9, 3),
        ],
    }
}

pub(super) fn status() -> StatusView {
    StatusView {
        uptime_seconds: 362_415,
        waiting: 2_381,
        finished_kept: 91_220,
        disk_free: 48_318_382_080,
        recovered: 1_904,
        recovery_ms: 212,
        ..fixtures::status(StatusTotals {
            accepted: 18_204_771,
            refused: 311,
            submitted: 18_202_100,
            throttled: 21,
            uncertain: 3,
            sent_again: 1,
            dlrs_matched: 18_128_343,
            dlrs_unmatched: 12,
            dlrs_made: 18_120_000,
            dlrs_delivered: 18_119_002,
            commits: 9_104_002,
            commit_us: 7_283_201_600,
            commit_rows: 91_021_004,
            delivered: 18_100_230,
            relayed: 71_002,
            failed: 28_113,
            expired: 901,
            cancelled: 9,
            rejected: 14,
            unknown: 2,
        })
    }
}

pub(super) fn attention() -> Vec<AttentionView> {
    let finding = |severity, code, kind, name: Option<&str>, text: &str| AttentionView {
        subject: AttentionSubject { kind, name: name.map(str::to_owned) },
        ..fixtures::finding(severity, code, kind, text)
    };
    let reverts =
        format!("version 7 of the configuration reverts at {} unless it is confirmed", now() + 500_000);
    vec![
        AttentionView {
            since: Some(now() - 1_000 * 60 * 47),
            ..finding(
                AttentionSeverity::Error,
                "peer-down",
                AttentionSubjectKind::Peer,
                Some("harbour"),
                &format!("no link to harbour is up: {REFUSED}"),
            )
        },
        AttentionView {
            since: Some(now() - 100_000),
            ..finding(
                AttentionSeverity::Warning,
                "configuration-unconfirmed",
                AttentionSubjectKind::Configuration,
                None,
                &reverts,
            )
        },
        finding(
            AttentionSeverity::Warning,
            "gsm-double-name",
            AttentionSubjectKind::CoreNetwork,
            Some("home"),
            "core network home: 2 MSCs are connected under the name MSC-1 <a>",
        ),
        finding(
            AttentionSeverity::Warning,
            "messages-uncertain",
            AttentionSubjectKind::Queue,
            Some("meridian"),
            "3 messages were submitted to meridian and never answered",
        ),
    ]
}

/// The error of the peer that is down.
const REFUSED: &str = "connection refused (192.0.2.1:2775): is the SMSC up, and does it let us in?";

pub(super) fn queues(peers: usize, accounts: usize) -> Vec<QueueView> {
    let row = |name: String, index: usize, is_account: bool| {
        let place = index as u64;
        let queued = if index.is_multiple_of(3) { place * 7 % 400 } else { 0 };
        QueueView {
            queued,
            subscriber_locked: queued / 7,
            suspended: u64::from(index == 1) * 4,
            paced: u64::from(index == 2) * 6,
            deferred: place % 5,
            in_flight: place % 9,
            uncertain: u64::from(index == 2) * 3,
            awaiting_dlr: place * 3 % 50,
            oldest: (queued > 0).then(|| now() - 1_000 * 60 * (place + 4)),
            links: usize::from(index != 1) * 2,
            blocked_by: match (index, queued) {
                (1, _) => "no link is up".to_owned(),
                (_, 0) => "idle".to_owned(),
                _ => format!("rate limit, until {}", now() + 800),
            },
            is_account,
            ..fixtures::queue(&name)
        }
    };
    let peers = (0..peers).map(|index| row(peer_name(index), index, false));
    peers.chain((0..accounts).map(|index| row(account_name(index), index + 2, true))).collect()
}

pub(super) fn links(peers: usize, accounts: usize) -> Vec<LinkView> {
    let row = |name: String, role: LinkRole, index: usize| {
        let down = index == 1 && role == LinkRole::Client;
        let place = index as u64;
        let phase = if down { LinkPhase::BackingOff } else { LinkPhase::Bound };
        LinkView {
            id: (!down).then_some(place),
            remote: Some(format!("192.0.2.{}:2775", index % 250)),
            bind: (!down).then_some(BindMode::Transceiver),
            tls: index.is_multiple_of(2),
            window: 500,
            in_flight: (index % 40) as u32,
            round_trip_us: (!down).then_some(12_000 + place * 130 % 9_000),
            blocked_by: if down { LinkBlocker::NotBound } else { LinkBlocker::None },
            since: now() - 1_000 * 60 * 47,
            down_since: down.then(|| now() - 1_000 * 60 * 47),
            last_error: down.then(|| REFUSED.to_owned()),
            back_off_until: down.then(|| now() + 12_000),
            ..fixtures::link(&name, role, phase)
        }
    };
    let peers = (0..peers).flat_map(|index| {
        [row(peer_name(index), LinkRole::Client, index), row(peer_name(index), LinkRole::Client, index)]
    });
    let accounts = (0..accounts).step_by(2);
    peers.chain(accounts.map(|index| row(account_name(index), LinkRole::Server, index))).collect()
}

pub(super) fn drain(draining: bool) -> DrainStateView {
    DrainStateView {
        draining,
        refuse_binds: false,
        since: draining.then(now),
        by: draining.then(|| "ada".to_owned()),
        remaining: RemainingMessagesView { waiting: 2_381, in_flight: 14 },
    }
}

pub(super) fn cluster() -> ClusterView {
    let node = |name: &str, role, alive, durable| ClusterNodeView {
        name: name.to_owned(),
        role,
        alive,
        address: format!("https://{name}.example:8443"),
        version: "0.2.0".to_owned(),
        formats: RecordFormats { oldest: 1, newest: 1 },
        durable,
        lacks: None,
    };
    let partition = |partition, leader: Option<&str>| PartitionView {
        partition,
        leader: leader.map(str::to_owned),
        address: leader.map(|name| format!("https://{name}.example:8443")),
        alive: 2,
        nodes: 2,
    };
    let member = |endpoint: &str, leader, problem: Option<&str>| EtcdMemberView {
        endpoint: endpoint.to_owned(),
        version: "3.4.23".to_owned(),
        leader,
        octets: 81 << 20,
        problem: problem.map(str::to_owned),
    };
    ClusterView {
        node: "a".to_owned(),
        role: ClusterRole::Leader,
        partition: 0,
        partitions: vec![partition(0, Some("a")), partition(1, None)],
        leader: Some("a".to_owned()),
        term: 7,
        head: 2_000_381,
        slots: 4096,
        format: 1,
        degraded: false,
        nodes: vec![
            node("a", ClusterRole::Leader, true, 2_000_200),
            node("b", ClusterRole::Follower, true, 2_000_190),
        ],
        etcd: vec![
            member("https://192.0.2.1:2379", true, None),
            member("https://192.0.2.2:2379", false, None),
            member("https://192.0.2.3:2379", false, Some("connection <refused>")),
        ],
        etcd_error: None,
    }
}

pub(super) fn core_networks() -> Vec<CoreNetworkView> {
    let connection = |name: Option<&str>, remote: &str, ready| CoreConnectionView {
        name: name.map(str::to_owned),
        remote: remote.to_owned(),
        ready,
    };
    let refused = [("absent-subscriber", 210), ("memory-capacity-exceeded", 3), ("unknown", 0)];
    vec![CoreNetworkView {
        name: "home".to_owned(),
        role: CoreNetworkRole::Proxy,
        connections: vec![
            connection(Some("MSC-1 <a>"), "192.0.2.20:41822", true),
            connection(None, "192.0.2.21:40022", false),
        ],
        hlr_answers: None,
        subscribers_known: 1_204,
        in_flight: 7,
        mt: CoreNetworkMt {
            sent: 9_120,
            delivered: 8_802,
            refused: refused.map(|(reason, count)| (reason.to_owned(), count)).into(),
            unanswered: 12,
            answered_late: 1,
            answered_twice: 0,
            status_reports: 4,
        },
        mo: CoreNetworkMo { received: 811, repeated: 2, refused: [(38, 1)].into() },
        ready_for_sm: 81,
        attached: 44,
        relayed_frames: 120_112,
        hlr_questions: HlrQuestions { asked: 9_002, unanswered: 1 },
        last_error: None,
        faults: vec![CoreNetworkFaultView {
            kind: CoreNetworkFaultKind::DuplicateName,
            level: AttentionSeverity::Warning,
            what: "2 MSCs are connected under the name MSC-1 <a>".to_owned(),
            remedy: "give each MSC an `ipa-name` of its own".to_owned(),
        }],
    }]
}

pub(super) fn plugin_peers() -> Vec<PluginPeerView> {
    vec![PluginPeerView {
        peer: "aggregator".to_owned(),
        plugin: Some("http-peer".to_owned()),
        version: Some("0a1b2c3d4e5f".to_owned()),
        window: 8,
        in_flight: 3,
        accepted: 4_012,
        refused: 12,
        uncertain: 1,
        busy_ms: 861_000,
        callbacks: PeerCallbacksView {
            accepted: 3_998,
            refused: 2,
            receipts: 4_001,
            ..PeerCallbacksView::default()
        },
        last_failure: Some("refused with code 402: no credit <b>".to_owned()),
        last_failure_at: Some(1_764_000_000_000),
        ..PluginPeerView::default()
    }]
}

pub(super) fn peer_figures() -> PeerFiguresView {
    PeerFiguresView {
        window_ms: 300_000,
        accepted: 4_012,
        refused: RefusedAttempts { temporary: 3, throttled: 9, ..RefusedAttempts::default() },
        unanswered: 1,
        delivered: 3_790,
        failed: 199,
        conversions: 0,
        median_ms: Some(2_800),
        percentile95_ms: Some(16_000),
    }
}

pub(super) fn archive() -> ArchivePumpView {
    ArchivePumpView {
        archived: 91_220,
        batches: 812,
        last_batch: SpanView { secs: 0, nanos: 41_000_000 },
        ..fixtures::archive(PumpState::Up, 14)
    }
}

pub(super) fn event_sink() -> EventSinkView {
    EventSinkView {
        name: "crm".to_owned(),
        kind: "http".to_owned(),
        state: PumpState::Up,
        error: None,
        sent: 401_220,
        failed: 3,
        lag_records: 1,
        lag: SpanView { secs: 0, nanos: 120_000_000 },
        gaps: 0,
        lost_records: 0,
        position: 88_201,
        since_success: Some(SpanView { secs: 0, nanos: 200_000_000 }),
    }
}

/// The counts of a day.
pub(super) fn statistics() -> Vec<StatisticsView> {
    let latency = || LatencyView { count: 810_190, p50: 14.4, p95: 41.0, p99: 97.5 };
    let counts = |accepted: u64, responded: u64, delivered: u64| StatisticsCountsView {
        accepted,
        responded,
        refused: [(88, (accepted - responded) / 3 * 2), (11, (accepted - responded) / 3)].into(),
        delivered,
        undelivered: [(5, responded - delivered)].into(),
        ended: [("delivered".to_owned(), delivered)].into(),
        response: latency(),
        dlr: LatencyView { p50: 2_800.0, p95: 16_000.0, ..latency() },
    };
    let day = 86_400_000;
    let row = |index: u64| StatisticsView {
        start: (now() / day - index / 2) * day,
        account: account_name((index % 2) as usize),
        peer: "north".to_owned(),
        mt: counts(810_212 - index * 9_001, 800_190 - index * 9_001, 781_774 - index * 9_001),
        mo: StatisticsCountsView { accepted: 1_204, ..StatisticsCountsView::default() },
    };
    (0..16).map(row).collect()
}

pub(super) fn refusals() -> RefusalsView {
    let (account, protocol, code) = ("acme".to_owned(), "smpp".to_owned(), "no-credit".to_owned());
    RefusalsView {
        counts: vec![RefusalCountView {
            account: account.clone(),
            protocol: protocol.clone(),
            code: code.clone(),
            count: 1_204,
        }],
        refusals: vec![RefusedSubmissionView {
            at: now() - 5_000,
            account,
            protocol,
            source: "<b>ACME".to_owned(),
            destination: "+49151****678".to_owned(),
            code,
            reason: "rejected: no credit".to_owned(),
        }],
    }
}

pub(super) fn peer_test() -> PeerTestView {
    let step = |what, ok, ms, detail: &str| TestStepView { what, ok, ms, detail: Some(detail.to_owned()) };
    let no_answer = "no answer within 2 s: a firewall between here and there?";
    PeerTestView {
        ok: false,
        steps: vec![
            step(TestStepKind::Resolve, true, 3, "192.0.2.4:2775"),
            step(TestStepKind::Connect, false, 2_004, no_answer),
        ],
    }
}

pub(super) async fn dial(Path(name): Path<String>) -> Response {
    if name == "unicom" {
        let refused = "\"unicom\" is not a peer or gateway that the appliance connects to";
        return problem(ProblemKind::NotFound, refused);
    }
    StatusCode::NO_CONTENT.into_response()
}

/// Two pace buckets: an exhausted one of the configuration, and one of a plugin.
pub(super) fn pace_buckets() -> Vec<api::PaceBucketView> {
    let now = now();
    let bucket = |name: &str, tokens| api::PaceBucketView {
        name: name.to_owned(),
        by_plugin: tokens > 0,
        amount: 2_000,
        counts: "messages".to_owned(),
        tokens,
        day_ends: Some(now + 3_600_000),
        waiting: u64::from(tokens == 0) * 120,
        next_token: (tokens == 0).then_some(now + 3_600_000),
    };
    vec![bucket("brand-b1", 0), bucket("campaign-c1", 1_200)]
}

pub(super) fn tenants() -> Vec<api::TenantView> {
    let tenant = |name: &str, parent: Option<&str>| api::TenantView {
        name: name.to_owned(),
        parent: parent.map(str::to_owned),
        rate: parent.is_none().then_some(100.0),
        max_price: parent.is_none().then_some(50_000),
        charged: parent.is_none(),
        messages_per_day: parent.is_none().then_some(api::DayQuotaView {
            limit: 20_000,
            accepted: 19_998,
            day_ends: 1_795_046_400_000,
        }),
        accounts: vec!["acme".to_owned()],
        plugins: None,
    };
    vec![tenant("northern", None), tenant("northern-shop", Some("northern"))]
}

pub(super) fn accounts() -> Vec<api::AccountInfo> {
    let account = |name: &str, tenant: Option<&str>| api::AccountInfo {
        name: name.to_owned(),
        tenant: tenant.map(str::to_owned),
        messages_per_day: None,
    };
    vec![account("acme", Some("northern-shop")), account("demo", None)]
}
