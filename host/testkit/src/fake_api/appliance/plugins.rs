//! Plugins, hooks, replays and lookup tables.

use super::{now, problem};
use admin::ProblemKind;
use api::{
    AnswerDifference, Binding, BindingChange, BindingRecord, CallSumView, CandidateRecordView,
    CandidateStateView, Comparison, DifferenceExample, DifferenceGroup, FaultCase, FaultExample,
    FaultyVersion, HookCallsIntervalView, HookCallsView, HookEvent, HookStateView, LongestKeyView,
    MessageCase, OnFault, OutdatedPluginView, PluginCountsView, PluginFaultCounts, PluginOrigin,
    PluginPullRequest, PluginSourceView, PluginTagsView, PluginVersionName, PluginVersionView,
    PolicyTryRequest, PolicyTryView, RemainingGroups, ReplayOutcome, ReplayPhase, ReplayProgress,
    ReplayReport, ReplayRequest, ReplayStart, ReplayStateView, StackFrame, TableKind, TableLookUpView,
    TableView, Throughput, TrialModeView, TriedDecisionView, TriedHostCallView, TriedLegView,
    TriedMessageView,
};
use axum::Json;
use axum::body::Bytes;
use axum::extract::Path;
use axum::response::{IntoResponse, Response};
use model::{Hook, MessageId, Timestamp};

const POLICY: &str = "# Where messages go.\ndefault = \"north\"\n\n[[route]]\nprefix = \"+49\"\nto = [\"north\", \"harbour\"]\n\n[[route]]\nprefix = \"+44\"\nto = [\"meridian\"]\n";

const LIVE: &str = "4f0c2d91aa17";
const FORMER: &str = "11d0e2aa9c41";
const CANDIDATE: &str = "9be10cc2d877";

fn binding(version: &str) -> Binding {
    Binding { on_fault: OnFault::Reject, table_rows: 1_000, ..Binding::new("router", version, POLICY) }
}

/// A change of the router's chain.
pub(super) fn record(serial: u64, chain: &[&str], change: BindingChange) -> BindingRecord {
    BindingRecord {
        serial,
        since: Timestamp(now() - 86_400_000),
        chain: chain.iter().map(|version| binding(version)).collect(),
        change,
        rollback_reason: None,
    }
}

fn candidate() -> CandidateRecordView {
    CandidateRecordView {
        since: now() - 300_000,
        mode: TrialModeView::Shadow,
        share: None,
        chain: vec![binding(CANDIDATE)],
    }
}

/// The answer to an action on a hook.
pub(super) fn changed_hook(action: &str) -> Response {
    match action {
        "candidate" => Json(candidate()).into_response(),
        "promote" => Json(record(8, &[CANDIDATE], BindingChange::Promoted)).into_response(),
        "rollback" => Json(record(8, &[FORMER], BindingChange::RolledBack)).into_response(),
        _ => Json(record(8, &[LIVE], BindingChange::Activated)).into_response(),
    }
}

fn counts(version: &str, live: bool, calls: u64, trap: u64) -> Vec<PluginCountsView> {
    vec![PluginCountsView {
        plugin: "router".to_owned(),
        version: version.to_owned(),
        tenant: None,
        live,
        calls,
        faults: PluginFaultCounts { trap, verdict: 1, ..PluginFaultCounts::default() },
        nanoseconds: calls * 6_200,
        memory: 1_376_256,
        host_calls: [("tables".to_owned(), 1_200)].into(),
        log_lines_left_out: 0,
    }]
}

fn event(age: u64, kind: &str, what: &str) -> HookEvent {
    HookEvent { at: Timestamp(now() - age), kind: kind.to_owned(), what: what.to_owned() }
}

fn fault(age: u64, kind: &str, what: &str, question: &str, message: Option<&str>) -> FaultExample {
    let traps = kind == "trap";
    let frame = |function: &str, source: Option<&str>| StackFrame {
        function: function.to_owned(),
        source: source.map(str::to_owned),
    };
    FaultExample {
        id: age,
        at: Timestamp(now() - age),
        kind: kind.to_owned(),
        what: what.to_owned(),
        report: traps.then(|| "panicked at src/lib.rs:42:18:\nno <route> for this prefix".to_owned()),
        stack: if traps {
            vec![frame("router::choose", Some("src/lib.rs:42")), frame("<Router as Guest>::route", None)]
        } else {
            Vec::new()
        },
        question: question.to_owned(),
        message: message.map(str::to_owned),
    }
}

fn faults() -> Vec<FaultyVersion> {
    let trapped = "trapped: wasm `unreachable` instruction executed";
    let unknown_peer = "leg to peer \"<meridian>\", which is not in the configuration";
    let late = "did not return within its deadline";
    vec![
        FaultyVersion {
            plugin: "router".to_owned(),
            version: LIVE.to_owned(),
            faults: 3,
            examples: vec![
                fault(61_000, "trap", trapped, "acme: AC** to +4915****678", Some("1")),
                fault(3_900_000, "verdict", unknown_peer, "demo: 106** to +4477****123", None),
            ],
        },
        FaultyVersion {
            plugin: "router".to_owned(),
            version: FORMER.to_owned(),
            faults: 1,
            examples: vec![fault(172_000_000, "deadline", late, "acme: AC** to +4915****001", Some("3"))],
        },
    ]
}

fn comparison() -> Comparison {
    let difference =
        |from: &str, to: &str, count, samples: &[&str], messages: &[Option<&str>]| AnswerDifference {
            from: from.to_owned(),
            to: to.to_owned(),
            count,
            samples: samples.iter().map(|sample| (*sample).to_owned()).collect(),
            messages: messages.iter().map(|message| message.map(str::to_owned)).collect(),
        };
    let samples = ["acme: AC** to +4915****678", "acme: AC** to +4915****031"];
    Comparison {
        compared: 51_220,
        same: 50_901,
        different: 319,
        skipped: 12,
        differences: vec![
            difference("forward north", "forward harbour", 300, &samples, &[Some("1"), None]),
            difference(
                "reject no-route",
                "forward <meridian>",
                19,
                &["demo: 106** to +4477****123"],
                &[Some("4")],
            ),
        ],
    }
}

/// A hook, with its history if `whole`.
pub(super) fn hook(hook: Hook, whole: bool) -> HookStateView {
    if hook != Hook::Router {
        return HookStateView {
            hook,
            live: record(0, &[], BindingChange::Unbound),
            counts: Vec::new(),
            candidate: None,
            events: Vec::new(),
            faults: Vec::new(),
            unknown: Vec::new(),
            history: whole.then(Vec::new),
        };
    }
    let live = record(7, &[LIVE], BindingChange::Activated);
    let former = BindingRecord {
        rollback_reason: Some("12 faults of 400 calls".to_owned()),
        ..record(6, &[FORMER], BindingChange::Activated)
    };
    HookStateView {
        hook,
        live: live.clone(),
        counts: counts(LIVE, true, 8_120_331, 2),
        candidate: Some(CandidateStateView {
            record: candidate(),
            counts: counts(CANDIDATE, false, 51_220, 0),
            asked: 0,
            failed: 0,
            bypassed: 0,
            comparison: Some(comparison()),
        }),
        events: vec![
            event(300_000, "candidate", "router 9be1 in the shadow"),
            event(86_400_000, "activated", "router 4f0c2d91aa17"),
        ],
        faults: faults(),
        unknown: Vec::new(),
        history: whole.then(|| vec![live, former]),
    }
}

/// Calls of the last hour: the candidate has run for five minutes.
pub(super) fn hook_calls(hook: Hook) -> HookCallsView {
    let interval = |age: u64| {
        let calls = 1_800 + 600 * ((age * 7) % 11) / 10;
        let sum = |calls: u64, each: u64| CallSumView { calls, faults: 0, nanoseconds: calls * each };
        let candidate = if age <= 10 { sum(calls, 9_100 + age * 40) } else { CallSumView::default() };
        let live = CallSumView { faults: u64::from(age == 2), ..sum(calls, 6_000 + (age * 37) % 400) };
        HookCallsIntervalView { at: now() - age * 30_000, live, candidate }
    };
    let intervals = if hook == Hook::Router { (0..118).rev().map(interval).collect() } else { Vec::new() };
    HookCallsView { hook, interval_ms: 30_000, capacity: 120, intervals }
}

pub(super) fn versions() -> [PluginVersionView; 3] {
    let imports = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let version = |version: &str, size, names: &[&str], signed_by: Option<&str>| PluginVersionView {
        plugin: "router".to_owned(),
        version: version.to_owned(),
        sha256: version.repeat(5) + "0000",
        size,
        hook: Hook::Router,
        wit: "0.3".to_owned(),
        imports: imports(names),
        signed_by: signed_by.map(str::to_owned),
        policy_schema: true,
        debug_info: signed_by.is_some(),
        sbom: signed_by.is_some(),
        origin: signed_by.map(|_| PluginOrigin {
            source: "carrier".to_owned(),
            plugin: "router".to_owned(),
            tag: Some("1.4".to_owned()),
            location: "oci://registry.example/plugins/router".to_owned(),
            digest: format!("sha256:{}", "0d".repeat(32)),
        }),
    };
    [
        version(FORMER, 211_802, &["counters"], None),
        version(LIVE, 214_552, &["counters", "tables"], Some("acme")),
        version(CANDIDATE, 219_001, &["counters", "tables"], Some("acme")),
    ]
}

pub(super) fn policy_schema() -> serde_json::Value {
    serde_json::json!({ "type": "object", "properties": { "default": { "type": "string", "x-switchyard": "peer" } } })
}

fn tried_decision(peer: &str, cost: u32) -> TriedDecisionView {
    TriedDecisionView {
        by: Some(format!("router {LIVE}")),
        decision: format!("forward: {peer} (rank 0, weight 1)"),
        note: Some("<cheapest>".to_owned()),
        legs: vec![TriedLegView { peer: peer.to_owned(), rank: 0, weight: 1, cost }],
        price: None,
        fault: None,
        host_calls: vec![TriedHostCallView {
            call: "peer".to_owned(),
            name: peer.to_owned(),
            key: None,
            answer: "1 link, 7 queued".to_owned(),
        }],
        cpu_ns: 12_400,
    }
}

pub(super) async fn try_policy(Json(request): Json<PolicyTryRequest>) -> Response {
    if request.activation.policy.is_some_and(|policy| policy.contains("wrong")) {
        let refused = "router refuses its policy: line 5: `prefix` must be digits with a plus in front";
        return problem(ProblemKind::Unprocessable, refused);
    }
    let name = PluginVersionName { plugin: "router".to_owned(), version: LIVE.to_owned() };
    let typed = request.messages.unwrap_or_default().pop();
    let message = TriedMessageView {
        id: typed.is_none().then(|| "1".to_owned()),
        origin: typed.as_ref().map_or_else(|| "acme".to_owned(), |typed| typed.origin.clone()),
        source: "ACME".to_owned(),
        destination: typed.map_or_else(|| "+4915****678".to_owned(), |typed| typed.destination),
        tried: tried_decision("harbour", 12_000),
        live: tried_decision("north", 20_000),
        different: true,
        inexact: None,
    };
    let view = PolicyTryView {
        hook: Hook::Router,
        plugins: vec![name.clone()],
        live: vec![name],
        unknown: Vec::new(),
        messages: vec![message],
        different: 1,
        complete: true,
    };
    Json(view).into_response()
}

pub(super) async fn message_cases(Json(request): Json<PolicyTryRequest>) -> Response {
    let typed = request.messages.unwrap_or_default().pop();
    let case = MessageCase {
        id: typed.is_none().then(|| "1".to_owned()),
        plugin: "router".to_owned(),
        version: LIVE.to_owned(),
        case: "\n[[case]]\nname = \"acme to <491>\"\nexpect = \"pass\"\n".to_owned(),
        inexact: None,
    };
    Json([case]).into_response()
}

pub(super) async fn start_replay(Json(request): Json<ReplayRequest>) -> Response {
    if request.activation.policy.is_some_and(|policy| policy.contains("wrong")) {
        let refused = "router refuses its policy: line 5: `prefix` must be digits with a plus in front";
        return problem(ProblemKind::Unprocessable, refused);
    }
    Json(ReplayStart { id: "1".to_owned() }).into_response()
}

pub(super) fn replay() -> ReplayStateView {
    let example = |id: u64| DifferenceExample {
        id: MessageId(id),
        accepted_at: Timestamp(now() - 42_000),
        origin: "acme".to_owned(),
        source: "ACME".to_owned(),
        destination: "+4915****678".to_owned(),
        note: None,
        exact: true,
        request: Vec::new(),
    };
    let report = ReplayReport {
        ended: ReplayOutcome::Complete,
        messages: 1_000,
        exact: 1_000,
        inexact: Vec::new(),
        same: 981,
        different: 19,
        new_rejects: 0,
        new_faults: 0,
        unrouted: 0,
        damaged: 0,
        groups: vec![DifferenceGroup {
            from: "forward north".to_owned(),
            to: "forward harbour".to_owned(),
            count: 19,
            exact: 19,
            examples: vec![example(4), example(9)],
        }],
        other: RemainingGroups::default(),
        price: None,
        pace: Throughput {
            threads: 2,
            seconds: 0.5,
            messages_per_second: 2_000.0,
            reading_seconds: 0.1,
            decoding_seconds: 0.1,
            loaded_per_second_per_core: 5_000.0,
            comparing_seconds: 0.2,
            compared_per_second_per_core: 5_000.0,
        },
    };
    ReplayStateView {
        id: "1".to_owned(),
        state: ReplayPhase::Done,
        hook: Hook::Router,
        plugins: vec![PluginVersionName { plugin: "router".to_owned(), version: LIVE.to_owned() }],
        from: None,
        until: None,
        limit: None,
        last: Some(1_000),
        started: now() - 900,
        progress: ReplayProgress {
            read: 1_000,
            compared: 1_000,
            different: 19,
            expected: Some(1_000),
            ended: true,
        },
        report: Some(Some(report)),
    }
}

pub(super) fn tables() -> [TableView; 2] {
    let table = |name: &str, kind, rows, octets| TableView { name: name.to_owned(), kind, rows, octets };
    [
        table("ported", TableKind::Exact, 1_204_711, 41_802_112),
        table("<b>tariffs", TableKind::Prefix, 812, 40_112),
    ]
}

pub(super) fn look_up() -> TableLookUpView {
    TableLookUpView { exact: None, longest: Some(LongestKeyView { length: 3, value: "<north>".to_owned() }) }
}

pub(super) fn fault_case(id: u64) -> Response {
    if id != 61_000 {
        return problem(ProblemKind::NotFound, "the fault is not kept any more");
    }
    let case = "\n# A case.\n[[case]]\nname = \"<fault>\"\n".to_owned();
    Json(FaultCase { plugin: "router".to_owned(), version: LIVE.to_owned(), case }).into_response()
}

pub(super) async fn upload(body: Bytes) -> Response {
    let [.., uploaded] = versions();
    if body.starts_with(b"\0asm") {
        Json(uploaded).into_response()
    } else {
        problem(ProblemKind::Unprocessable, "this is no component")
    }
}

pub(super) async fn add_sbom(body: Bytes) -> Response {
    let [.., stored] = versions();
    if body.starts_with(b"{") {
        Json(stored).into_response()
    } else {
        problem(ProblemKind::Unprocessable, "this is no bill of materials")
    }
}

pub(super) fn sources() -> [PluginSourceView; 2] {
    let source = |name: &str, url: &str| PluginSourceView { name: name.to_owned(), url: url.to_owned() };
    [source("carrier", "oci://registry.example/plugins"), source("stick", "oci-layout:/media/stick")]
}

pub(super) async fn tags(Path((_, plugin)): Path<(String, String)>) -> Response {
    if plugin == "router" {
        let tags = ["1.4", "1.5"].map(str::to_owned).into();
        Json(PluginTagsView { tags, complete: true }).into_response()
    } else {
        problem(
            ProblemKind::Unprocessable,
            "oci://registry.example/plugins/<other>: the registry requires credentials",
        )
    }
}

pub(super) fn outdated() -> [OutdatedPluginView; 1] {
    [OutdatedPluginView {
        source: "carrier".to_owned(),
        plugin: "router".to_owned(),
        tag: "1.4".to_owned(),
        stored: vec![format!("router@{LIVE}")],
        digest: Some(format!("sha256:{}", "1e".repeat(32))),
        problem: None,
    }]
}

pub(super) async fn pull(Json(request): Json<PluginPullRequest>) -> Response {
    let [.., pulled] = versions();
    if request.tag.as_deref() == Some("1.4") {
        Json(pulled).into_response()
    } else {
        problem(ProblemKind::Unprocessable, "oci://registry.example/plugins/router: <blob> is damaged")
    }
}
