//! Writes a case in the format that `cases.rs` reads.

use crate::case_check::{expected_answer, quote, to_toml};
use crate::case_details::CaseChanges;
use crate::case_peer::CaseSubmission;
use crate::cases::Case;
use crate::plugin_host::{
    CaseAddress, CaseAdvice, CaseAttempt, CaseErrorClass, CaseFirstLeg, CaseMessage, CaseQuestion,
    CaseSettlement, CaseSetup, CaseText, HttpExchange, HttpFailure,
};
use capabilities::TableKind;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use toml::{Table, Value};

/// The case as a `[[case]]` of a file whose `[given]` is `common`. Numbers above the largest integer of TOML, 2^63 - 1, are
/// written as that.
pub(crate) fn write(case: &Case, common: &CaseSetup) -> String {
    let mut text = format!("[[case]]\nname = {}\n", quote(&case.name));
    let mut line = |key: &str, value: &str| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{key} = {value}");
    };
    let configures = matches!(case.questions.last(), Some(CaseQuestion::Configure));
    let given = setup(&case.setup, common, configures);
    if !given.is_empty() {
        line("given", &Value::Table(given).to_string());
    }
    if let Some((last, earlier)) = case.questions.split_last() {
        if !earlier.is_empty() {
            let earlier: Vec<String> = earlier.iter().filter_map(earlier_question).collect();
            line("earlier", &format!("[\n    {},\n]", earlier.join(",\n    ")));
        }
        let (key, value) = question(last, &case.setup.policy);
        line(key, &value.to_string());
    }
    line("expect", &expected_answer(&case.expected));
    if let Some(sender) = &case.sender {
        line("sender", &to_toml(sender));
    }
    if let Some(text) = &case.text {
        line("text", &quote(text));
    }
    if case.changes != CaseChanges::default() {
        line("changes", &to_toml(&case.changes));
    }
    if let Some(note) = &case.note {
        line("note", &quote(note));
    }
    if let Some(wait) = case.wait {
        line("wait-ms", &wait.to_string());
    }
    if case.advice != CaseAdvice::default() {
        line("advice", &to_toml(&case.advice));
    }
    text
}

/// A question in `earlier`; `None` for `configure`, which every question implies.
fn earlier_question(asked: &CaseQuestion) -> Option<String> {
    if matches!(asked, CaseQuestion::Configure) {
        return None;
    }
    let (key, value) = question(asked, "");
    Some(format!("{{ {key} = {value} }}"))
}

fn question(question: &CaseQuestion, policy: &str) -> (&'static str, Value) {
    match question {
        CaseQuestion::Configure => ("configure", policy.into()),
        CaseQuestion::Screen(asked) => ("screen", message(asked).into()),
        CaseQuestion::Route(asked) => ("route", message(asked).into()),
        CaseQuestion::LookUp(number) => ("look-up", address(number)),
        CaseQuestion::Resolve(number) => ("resolve", number.as_str().into()),
        CaseQuestion::Next(asked, failed) => {
            ("next", table([("message", message(asked).into()), ("attempt", attempt(failed).into())]).into())
        }
        CaseQuestion::Receipt(asked, submission, event) => {
            let value = |entry: Result<Value, toml::ser::Error>| entry.unwrap_or_else(|_| "".into());
            let entries = [
                ("message", message(asked).into()),
                ("submission", value(Value::try_from(submission))),
                ("event", value(Value::try_from(event))),
            ];
            ("receipt", table(entries).into())
        }
        CaseQuestion::Price(asked, leg) => {
            let mut value = table([("message", message(asked).into())]);
            if let Some(CaseFirstLeg { peer, cost }) = leg {
                let leg = table([("peer", peer.as_str().into()), ("cost", i64::from(*cost).into())]);
                value.insert("leg".to_owned(), leg.into());
            }
            ("price", value.into())
        }
        CaseQuestion::Submit(CaseSubmission { message: asked, peer, number, wants_receipts }) => {
            let entries = [
                ("message", message(asked).into()),
                ("peer", peer.as_str().into()),
                ("number", i64::from(*number).into()),
                ("wants-receipts", (*wants_receipts).into()),
            ];
            ("submit", table(entries).into())
        }
        CaseQuestion::Callback(callback) => {
            ("callback", Value::try_from(callback).unwrap_or_else(|_| Value::Table(Table::new())))
        }
        CaseQuestion::Read(request) => ("read", Value::try_from(request).unwrap_or("".into())),
        CaseQuestion::Reply(reply) => ("reply", Value::try_from(reply).unwrap_or("".into())),
        CaseQuestion::Settle(settlements) => {
            ("settle", Value::Array(settlements.iter().map(|one| settlement(one).into()).collect()))
        }
    }
}

fn table<const N: usize>(entries: [(&str, Value); N]) -> Table {
    entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

fn integer(number: u64) -> Value {
    Value::Integer(i64::try_from(number).unwrap_or(i64::MAX))
}

fn message(message: &CaseMessage) -> Table {
    let CaseMessage {
        origin,
        source,
        destination,
        service_type,
        data_coding,
        priority,
        text,
        wants_receipt,
        esm_class,
        protocol_id,
        tlvs,
        attributes,
    } = message;
    let mut value = table([("origin", origin.as_str().into()), ("destination", address(destination))]);
    let mut put = |is_set: bool, key: &str, entry: Value| {
        if is_set {
            value.insert(key.to_owned(), entry);
        }
    };
    put(*source != CaseAddress::default(), "source", address(source));
    if let Some(service_type) = service_type {
        put(true, "service-type", service_type.as_str().into());
    }
    put(*data_coding != 0, "data-coding", i64::from(*data_coding).into());
    put(*priority != 0, "priority", i64::from(*priority).into());
    put(*text != CaseText::default(), "text", octets(text));
    put(*wants_receipt, "wants-receipt", true.into());
    put(*esm_class != 0, "esm-class", i64::from(*esm_class).into());
    put(*protocol_id != 0, "protocol-id", i64::from(*protocol_id).into());
    if let Ok(tlvs) = Value::try_from(tlvs)
        && tlvs.as_table().is_some_and(|tlvs| !tlvs.is_empty())
    {
        put(true, "tlvs", tlvs);
    }
    put(!attributes.is_empty(), "attributes", texts(attributes).into());
    value
}

fn address(address: &CaseAddress) -> Value {
    if *address == CaseAddress::from(address.value.clone()) {
        return address.value.as_str().into();
    }
    table([
        ("ton", i64::from(address.ton).into()),
        ("npi", i64::from(address.npi).into()),
        ("value", address.value.as_str().into()),
    ])
    .into()
}

fn octets(text: &CaseText) -> Value {
    match std::str::from_utf8(&text.octets) {
        Ok(utf8) if !text.udhi => utf8.into(),
        _ => {
            let mut value = table([("hex", model::hex(&text.octets).into())]);
            if text.udhi {
                value.insert("udhi".to_owned(), true.into());
            }
            value.into()
        }
    }
}

fn attempt(attempt: &CaseAttempt) -> Table {
    let class = match attempt.class {
        CaseErrorClass::Temporary => "temporary",
        CaseErrorClass::Permanent => "permanent",
        CaseErrorClass::Absent => "absent",
        CaseErrorClass::MemoryFull => "memory-full",
        CaseErrorClass::Throttled => "throttled",
    };
    table([
        ("number", i64::from(attempt.number).into()),
        ("leg", i64::from(attempt.leg).into()),
        ("legs", i64::from(attempt.legs).into()),
        ("peer", attempt.peer.as_str().into()),
        ("class", class.into()),
        ("code", i64::from(attempt.code).into()),
        ("age-ms", integer(attempt.age_ms)),
        ("left-ms", integer(attempt.left_ms)),
    ])
}

fn settlement(settlement: &CaseSettlement) -> Table {
    table([
        ("serial", integer(settlement.serial)),
        ("message", integer(settlement.message)),
        ("account", settlement.account.as_str().into()),
        ("amount", integer(settlement.amount)),
        ("captured", settlement.captured.into()),
        ("at", integer(settlement.at)),
    ])
}

/// The part of a setup that the common one lacks. A file cannot remove entries of its `[given]`.
fn setup(own: &CaseSetup, common: &CaseSetup, configures: bool) -> Table {
    let CaseSetup {
        policy,
        now,
        grants,
        memory,
        deadline_ms,
        tables,
        peers,
        pools,
        quality,
        counters,
        kv,
        http,
        dns,
        hlr,
        secrets,
    } = own;
    let mut given = Table::new();
    let mut put = |is_set: bool, key: &str, value: Value| {
        if is_set {
            given.insert(key.to_owned(), value);
        }
    };
    // The question `configure` has the document.
    put(*policy != common.policy && !configures, "policy-text", policy.as_str().into());
    put(*now != common.now, "now", integer(*now));
    if grants != &common.grants
        && let Ok(grants) = Value::try_from(grants)
    {
        put(true, "grants", grants);
    }
    let size = |size: &Option<usize>| size.and_then(|size| u64::try_from(size).ok()).map(integer);
    put(*memory != common.memory, "memory", size(memory).unwrap_or(Value::Integer(0)));
    put(*deadline_ms != common.deadline_ms, "deadline-ms", integer(deadline_ms.unwrap_or(0)));
    let mut put_map = |key: &str, value: Table| put(!value.is_empty(), key, value.into());
    put_map(
        "tables",
        added(tables, &common.tables, |one| {
            let kind = match one.kind {
                TableKind::Exact => "exact",
                TableKind::Prefix => "prefix",
            };
            let rows = texts(&one.rows);
            Some(table([("kind", kind.into()), ("rows", rows.into())]).into())
        }),
    );
    put_map(
        "peers",
        added(peers, &common.peers, |one| {
            let links = i64::from(one.links).into();
            Some(table([("links", links), ("queued", integer(one.queued))]).into())
        }),
    );
    put_map(
        "pools",
        added(pools, &common.pools, |one| {
            Some(
                table([
                    ("ready", integer(one.ready)),
                    ("busy", integer(one.busy)),
                    ("down", integer(one.down)),
                    ("total", integer(one.total)),
                ])
                .into(),
            )
        }),
    );
    put_map("kv", added(kv, &common.kv, |text| Some(text.as_str().into())));
    put_map("secrets", added(secrets, &common.secrets, |text| Some(text.as_str().into())));
    put_map("hlr", added(hlr, &common.hlr, |subscriber| Value::try_from(subscriber).ok()));
    // A case's counters follow the common ones, its exchanges precede them.
    let own_counters = counters.strip_prefix(common.counters.as_slice()).unwrap_or(counters);
    let own_counters: Vec<Value> = own_counters
        .iter()
        .map(|preset| {
            let entry = table([
                ("name", preset.name.as_str().into()),
                ("key", preset.key.as_str().into()),
                ("amount", i64::from(preset.amount).into()),
                ("window-ms", integer(preset.window_ms)),
            ]);
            entry.into()
        })
        .collect();
    put(!own_counters.is_empty(), "counters", own_counters.into());
    let own_figures = quality.strip_prefix(common.quality.as_slice()).unwrap_or(quality);
    let own_figures: Vec<Value> =
        own_figures.iter().filter_map(|figures| Value::try_from(figures).ok()).collect();
    put(!own_figures.is_empty(), "quality", own_figures.into());
    let own_http = http.strip_suffix(common.http.as_slice()).unwrap_or(http);
    let own_http: Vec<Value> = own_http.iter().map(|one| exchange(one).into()).collect();
    put(!own_http.is_empty(), "http", own_http.into());
    let own_dns = dns.strip_suffix(common.dns.as_slice()).unwrap_or(dns);
    let own_dns: Vec<Value> = own_dns.iter().filter_map(|name| Value::try_from(name).ok()).collect();
    put(!own_dns.is_empty(), "dns", own_dns.into());
    given
}

/// The entries that `common` lacks or has with another value.
fn added<T: PartialEq>(
    own: &BTreeMap<String, T>,
    common: &BTreeMap<String, T>,
    value: impl Fn(&T) -> Option<Value>,
) -> Table {
    own.iter()
        .filter(|(name, one)| common.get(*name) != Some(one))
        .filter_map(|(name, one)| Some((name.clone(), value(one)?)))
        .collect()
}

fn texts(entries: &BTreeMap<String, String>) -> Table {
    entries.iter().map(|(key, text)| (key.clone(), text.as_str().into())).collect()
}

fn exchange(exchange: &HttpExchange) -> Table {
    let mut value = table([
        ("method", exchange.method.as_str().into()),
        ("url", exchange.url.as_str().into()),
        ("status", i64::from(exchange.status).into()),
        ("headers", texts(&exchange.headers).into()),
        ("body", exchange.body.as_str().into()),
    ]);
    if !exchange.request_headers.is_empty() {
        value.insert("request-headers".to_owned(), texts(&exchange.request_headers).into());
    }
    if let Some(body) = &exchange.request_body {
        value.insert("request-body".to_owned(), body.as_str().into());
    }
    if let Some(failure) = exchange.failure {
        let failure = match failure {
            HttpFailure::TimedOut => "timed-out",
            HttpFailure::TooLarge => "too-large",
            HttpFailure::Unreachable => "unreachable",
            HttpFailure::NotConnected => "not-connected",
        };
        value.insert("failure".to_owned(), failure.into());
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case_details::CaseTlvs;
    use crate::case_receipt::{
        CaseAcceptedSubmission, CaseDlr, CaseDlrState, CaseEvent, CaseReceiptStep, CaseRemap,
    };
    use crate::cases;
    use crate::cases::ExpectedAnswer;
    use crate::plugin_host::{
        CaseCharge, CaseGrants, CaseLeg, CasePeerState, CasePoolState, CasePrice, CaseResolution, CaseSender,
        CaseStep, CaseSubscriber, CaseTable, CaseVerdict, CounterPreset,
    };
    use crate::plugin_host::{CaseFigures, CaseRefusals};
    use capabilities::QualityGrant;

    const COMMON: &str = "[given]\npolicy-text = 'a'\nnow = 5\n[given.peers]\nnorth = {}\n[given.hlr]\n1 = { imsi = '001011' }\n";

    /// Reads a file with this `[given]`, and this case.
    fn read_back(common: &str, written: &str) -> Case {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cases.toml");
        std::fs::write(&path, format!("{common}{written}")).unwrap();
        cases::read(&path).unwrap_or_else(|error| panic!("{error}: {written}")).remove(0)
    }

    fn given(common: &str) -> CaseSetup {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cases.toml");
        std::fs::write(&path, common).unwrap();
        cases::read_given(&path).unwrap()
    }

    fn case(question: CaseQuestion, expected: ExpectedAnswer) -> Case {
        Case {
            name: "a \"case\"\nof two lines".to_owned(),
            setup: given(COMMON),
            questions: vec![question],
            expected,
            sender: None,
            text: None,
            changes: CaseChanges::default(),
            note: None,
            advice: CaseAdvice::default(),
            wait: None,
        }
    }

    fn message() -> CaseMessage {
        CaseMessage {
            origin: "shop".to_owned(),
            source: CaseAddress::default(),
            destination: CaseAddress::from("8613".to_owned()),
            service_type: None,
            data_coding: 0,
            priority: 0,
            text: CaseText::default(),
            wants_receipt: false,
            esm_class: 0,
            protocol_id: 0,
            tlvs: CaseTlvs::default(),
            attributes: BTreeMap::new(),
        }
    }

    #[test]
    fn a_case_has_only_what_differs_from_the_defaults() {
        let case = case(CaseQuestion::Route(message()), ExpectedAnswer::Fault("trap".to_owned()));
        let written = write(&Case { name: "short".to_owned(), ..case }, &given(COMMON));
        assert_eq!(
            written,
            "[[case]]\nname = \"short\"\nroute = { destination = \"8613\", origin = \"shop\" }\nexpect = { fault = \"trap\" \
             }\n"
        );
    }

    #[test]
    fn every_part_of_a_setup_is_read_back() {
        let mut case = case(CaseQuestion::Resolve("1".to_owned()), ExpectedAnswer::Settled);
        case.expected = ExpectedAnswer::Resolved(CaseResolution::Unknown(None));
        let setup = &mut case.setup;
        setup.policy = "two\nlines \"\"\" and \u{1}".to_owned();
        setup.now = 1_795_276_982_001;
        setup.grants = CaseGrants { kv: 7, hlr: true, tables: vec!["t".to_owned()], ..CaseGrants::default() };
        (setup.memory, setup.deadline_ms) = (Some(1 << 20), Some(7));
        let rows = [("1".to_owned(), "a \"b\"".to_owned())].into();
        setup.tables.insert("t".to_owned(), CaseTable { kind: TableKind::Prefix, rows });
        setup.peers.insert("south east".to_owned(), CasePeerState { links: 0, queued: 9 });
        setup.pools.insert("p".to_owned(), CasePoolState { ready: 1, busy: 2, down: 3, total: 4 });
        let preset = CounterPreset { name: "n".into(), key: "k".into(), amount: 3, window_ms: 4 };
        setup.counters.push(preset);
        let attribute = Some(("campaign".to_owned(), "otp".to_owned()));
        let refused = CaseRefusals { memory_full: 3, ..CaseRefusals::default() };
        setup.grants.quality = Some(QualityGrant {
            window_ms: 60_000,
            digits: vec![4],
            attributes: vec!["campaign".to_owned()],
        });
        setup.quality.push(CaseFigures {
            peer: "north".to_owned(),
            attribute,
            refused,
            delivered: 7,
            dlr_ms: 900,
            ..CaseFigures::default()
        });
        setup.quality.push(CaseFigures { digits: Some("4915".to_owned()), ..CaseFigures::default() });
        setup.kv.insert("k".to_owned(), "v".to_owned());
        setup.http.push(HttpExchange {
            method: "POST".to_owned(),
            url: "https://a.example/".to_owned(),
            request_headers: [("h".to_owned(), "v".to_owned())].into(),
            request_body: Some("a=b".to_owned()),
            status: 404,
            headers: [("x".to_owned(), "y".to_owned())].into(),
            body: "{}".to_owned(),
            failure: Some(HttpFailure::TooLarge),
        });
        let subscriber =
            CaseSubscriber { imsi: "001012".into(), serving: Some("north".into()), valid_ms: None };
        setup.hlr.insert("2".to_owned(), subscriber);
        for common in ["", COMMON] {
            let mut expected = case.clone();
            if common.is_empty() {
                // The entries of COMMON are written too.
                assert!(write(&case, &given(common)).contains("north"));
            }
            expected.setup = case.setup.clone();
            assert_eq!(read_back(common, &write(&case, &given(common))), expected);
        }
    }

    #[test]
    fn every_question_and_answer_is_read_back() {
        let text = CaseText { octets: vec![5, 0, 3, 1, 2, 0xff], udhi: true };
        let asked = CaseMessage {
            source: CaseAddress { ton: 5, npi: 9, value: "A\u{fffd}\n\0".to_owned() },
            service_type: Some("CMT".to_owned()),
            data_coding: 8,
            priority: 3,
            text,
            wants_receipt: true,
            esm_class: 0x80,
            protocol_id: 0x40,
            tlvs: CaseTlvs([(0x1401, b"brand".to_vec()), (0x0204, vec![0, 9])].into()),
            attributes: [("mcc".to_owned(), "262".to_owned())].into(),
            ..message()
        };
        let attempt = CaseAttempt {
            number: 7,
            leg: 1,
            legs: 2,
            peer: "north".to_owned(),
            class: CaseErrorClass::MemoryFull,
            code: u32::MAX,
            age_ms: 1,
            left_ms: i64::MAX as u64,
        };
        let leg = CaseLeg {
            peer: "north".to_owned(),
            rank: 1,
            weight: 2,
            cost: 3,
            longest_wait_ms: Some(4),
            source: Some(CaseAddress { ton: 0, npi: 1, value: "1".to_owned() }),
            destination: None,
        };
        let route = || CaseQuestion::Route(asked.clone());
        let resolve = || CaseQuestion::Resolve("49".to_owned());
        let next = || CaseQuestion::Next(asked.clone(), attempt.clone());
        let submission = CaseAcceptedSubmission {
            attempts: 2,
            leg: 1,
            legs: 2,
            peer: "north".to_owned(),
            age_ms: 5,
            left_ms: i64::MAX as u64,
        };
        let receipt = |event| CaseQuestion::Receipt(asked.clone(), submission.clone(), event);
        let dlr = CaseDlr {
            state: CaseDlrState(model::DlrState::Rejected),
            is_final: Some(false),
            error: 7,
            network_error: Some(0x0003_0001),
            latency_ms: 9,
        };
        let remap = CaseRemap { state: CaseDlrState(model::DlrState::Undeliverable), error: 8 };
        let price = |leg| CaseQuestion::Price(asked.clone(), leg);
        let settlement = CaseSettlement {
            serial: 1,
            message: 2,
            account: "shop".to_owned(),
            amount: 3,
            captured: true,
            at: 4,
        };
        let subscriber = CaseSubscriber { imsi: "001011".to_owned(), serving: None, valid_ms: Some(5) };
        let charge =
            CaseCharge { account: "shop".to_owned(), amount: 5, keep_on_failure: true, settle: true };
        let first_leg = CaseFirstLeg { peer: "north".to_owned(), cost: 7 };
        for (question, expected) in [
            (route(), ExpectedAnswer::Verdict(CaseVerdict::Forward(vec![leg]))),
            (route(), ExpectedAnswer::Verdict(CaseVerdict::Pass)),
            (route(), ExpectedAnswer::Verdict(CaseVerdict::Hold(9))),
            (route(), ExpectedAnswer::Verdict(CaseVerdict::Reject("no-route".to_owned()))),
            (resolve(), ExpectedAnswer::Resolved(CaseResolution::Found(subscriber))),
            (resolve(), ExpectedAnswer::Resolved(CaseResolution::Unknown(None))),
            (resolve(), ExpectedAnswer::Resolved(CaseResolution::TryLater(Some(3)))),
            (next(), ExpectedAnswer::Next(CaseStep::AwaitAlert(4))),
            (receipt(CaseEvent::Accepted), ExpectedAnswer::Receipt(CaseReceiptStep::Accept)),
            (receipt(CaseEvent::Timeout), ExpectedAnswer::Receipt(CaseReceiptStep::NextLeg)),
            (receipt(CaseEvent::Dlr(dlr)), ExpectedAnswer::Receipt(CaseReceiptStep::Remap(remap))),
            (price(None), ExpectedAnswer::Price(CasePrice::Free)),
            (price(Some(first_leg)), ExpectedAnswer::Price(CasePrice::Charge(charge))),
            (CaseQuestion::Settle(vec![settlement]), ExpectedAnswer::Settled),
            (CaseQuestion::Settle(Vec::new()), ExpectedAnswer::Unsettled("down".to_owned())),
            (CaseQuestion::Configure, ExpectedAnswer::Refused("line 1".to_owned())),
        ] {
            let mut case = case(question, expected);
            case.note = Some("why".to_owned());
            if matches!(case.expected, ExpectedAnswer::Verdict(_)) {
                case.sender = Some(CaseSender { lease_ms: Some(5), ..CaseSender::from("texts".to_owned()) });
                case.questions.insert(0, route());
            }
            if matches!(case.expected, ExpectedAnswer::Next(_)) {
                case.advice = CaseAdvice { pause_ms: Some(1), rate: Some(2.5), window: None };
                case.questions.insert(0, next());
            }
            if matches!(case.expected, ExpectedAnswer::Receipt(_)) {
                case.wait = Some(60_000);
            }
            assert_eq!(read_back(COMMON, &write(&case, &given(COMMON))), case);
        }
    }
}
