//! Files of cases: questions with expected answers. `docs/plugin-author/cases.md` describes the format.

use crate::WorkbenchError;
use crate::case_details::CaseChanges;
use crate::case_front_end::{CaseReading, CaseReply, CaseRequest, CaseResponse};
use crate::case_peer::{CaseCallback, CaseCalled, CaseOutcome, CaseSubmission};
use crate::case_receipt::{CaseAcceptedSubmission, CaseEvent, CaseReceiptStep};
use crate::plugin_host::{
    CaseAddress, CaseAdvice, CaseAttempt, CaseDnsName, CaseFigures, CaseFirstLeg, CaseGrants, CaseLookup,
    CaseMessage, CasePeerState, CasePoolState, CasePrice, CaseQuestion, CaseResolution, CaseScreenVerdict,
    CaseSender, CaseSettlement, CaseSetup, CaseStep, CaseSubscriber, CaseTable, CaseVerdict, CounterPreset,
    HttpExchange,
};
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::path::Path;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// A case.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) setup: CaseSetup,
    /// Asked in order; the last answer is checked.
    pub(crate) questions: Vec<CaseQuestion>,
    pub(crate) expected: ExpectedAnswer,
    /// The expected sender request of a router; `None`: no request.
    pub(crate) sender: Option<CaseSender>,
    /// The text with which a screen replaces the text of the message; `None`: it does not replace it.
    pub(crate) text: Option<String>,
    /// The expected changes of a screen or router; default: none.
    pub(crate) changes: CaseChanges,
    /// The expected note; `None`: any note or none.
    pub(crate) note: Option<String>,
    /// The expected advice of a delivery policy; the default is none.
    pub(crate) advice: CaseAdvice,
    /// The expected wait of a receipt policy, in milliseconds; `None`: no wait.
    pub(crate) wait: Option<u64>,
}

/// The expected answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ExpectedAnswer {
    Configured,
    /// The policy document is refused, with a reason that contains this text.
    Refused(String),
    Screened(CaseScreenVerdict),
    Verdict(CaseVerdict),
    LookedUp(CaseLookup),
    Resolved(CaseResolution),
    Next(CaseStep),
    Receipt(CaseReceiptStep),
    Price(CasePrice),
    Settled,
    /// The biller reports an error that contains this text.
    Unsettled(String),
    Submitted(CaseOutcome),
    Called(CaseCalled),
    Read(CaseReading),
    Replied(CaseResponse),
    /// The call fails with a fault that contains this text.
    Fault(String),
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct CaseFile {
    #[serde(default)]
    given: SetupEntry,
    #[serde(default)]
    case: Vec<CaseEntry>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
struct SetupEntry {
    /// A file path, relative to the file of cases.
    policy: Option<String>,
    policy_text: Option<String>,
    #[serde(deserialize_with = "parse_optional_timestamp")]
    now: Option<u64>,
    grants: Option<CaseGrants>,
    memory: Option<usize>,
    deadline_ms: Option<u64>,
    tables: BTreeMap<String, CaseTable>,
    peers: BTreeMap<String, CasePeerState>,
    pools: BTreeMap<String, CasePoolState>,
    quality: Vec<CaseFigures>,
    counters: Vec<CounterPreset>,
    kv: BTreeMap<String, String>,
    http: Vec<HttpExchange>,
    dns: Vec<CaseDnsName>,
    hlr: BTreeMap<String, CaseSubscriber>,
    secrets: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct CaseEntry {
    name: String,
    #[serde(default)]
    given: SetupEntry,
    #[serde(default)]
    earlier: Vec<QuestionEntry>,
    configure: Option<String>,
    screen: Option<CaseMessage>,
    route: Option<CaseMessage>,
    look_up: Option<CaseAddress>,
    resolve: Option<String>,
    next: Option<NextEntry>,
    receipt: Option<ReceiptEntry>,
    price: Option<PriceEntry>,
    settle: Option<Vec<CaseSettlement>>,
    submit: Option<CaseSubmission>,
    callback: Option<CaseCallback>,
    read: Option<CaseRequest>,
    reply: Option<CaseReply>,
    expect: toml::Value,
    sender: Option<CaseSender>,
    text: Option<String>,
    #[serde(default)]
    changes: CaseChanges,
    note: Option<String>,
    #[serde(default)]
    advice: CaseAdvice,
    wait_ms: Option<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum QuestionEntry {
    Screen(CaseMessage),
    Route(CaseMessage),
    LookUp(CaseAddress),
    Resolve(String),
    Next(NextEntry),
    Receipt(ReceiptEntry),
    Price(PriceEntry),
    Settle(Vec<CaseSettlement>),
    Submit(CaseSubmission),
    Callback(CaseCallback),
    Read(CaseRequest),
    Reply(CaseReply),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NextEntry {
    message: CaseMessage,
    attempt: CaseAttempt,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReceiptEntry {
    message: CaseMessage,
    submission: CaseAcceptedSubmission,
    event: CaseEvent,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PriceEntry {
    message: CaseMessage,
    leg: Option<CaseFirstLeg>,
}

impl From<QuestionEntry> for CaseQuestion {
    fn from(entry: QuestionEntry) -> Self {
        match entry {
            QuestionEntry::Screen(message) => Self::Screen(message),
            QuestionEntry::Route(message) => Self::Route(message),
            QuestionEntry::LookUp(number) => Self::LookUp(number),
            QuestionEntry::Resolve(number) => Self::Resolve(number),
            QuestionEntry::Next(next) => Self::Next(next.message, next.attempt),
            QuestionEntry::Receipt(asked) => Self::Receipt(asked.message, asked.submission, asked.event),
            QuestionEntry::Price(price) => Self::Price(price.message, price.leg),
            QuestionEntry::Settle(settlements) => Self::Settle(settlements),
            QuestionEntry::Submit(submission) => Self::Submit(submission),
            QuestionEntry::Callback(callback) => Self::Callback(callback),
            QuestionEntry::Read(request) => Self::Read(request),
            QuestionEntry::Reply(reply) => Self::Reply(reply),
        }
    }
}

fn read_file(path: &Path) -> Result<(CaseFile, CaseSetup), WorkbenchError> {
    let text = std::fs::read_to_string(path).map_err(WorkbenchError::file(path))?;
    let mut file: CaseFile = toml::from_str(&text)
        .map_err(|error| WorkbenchError::Unreadable { path: path.to_owned(), why: error.to_string() })?;
    let given = std::mem::take(&mut file.given);
    let folder = path.parent().unwrap_or(Path::new("."));
    let common = apply_setup(folder, CaseSetup::default(), given)?;
    Ok((file, common))
}

/// Reads the setup of all cases from a file of cases: its `[given]`.
pub(crate) fn read_given(path: &Path) -> Result<CaseSetup, WorkbenchError> {
    Ok(read_file(path)?.1)
}

/// Reads a file of cases.
pub(crate) fn read(path: &Path) -> Result<Vec<Case>, WorkbenchError> {
    let (file, common) = read_file(path)?;
    let wrong = |why: String| WorkbenchError::Unreadable { path: path.to_owned(), why };
    if file.case.is_empty() {
        return Err(wrong("there is no [[case]] in it".to_owned()));
    }
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut cases = Vec::new();
    for entry in file.case {
        let name = entry.name.clone();
        let case = parse_case(folder, common.clone(), entry).map_err(|error| match error {
            CaseError::Invalid(why) => wrong(format!("case {name:?}: {why}")),
            CaseError::File(error) => error,
        })?;
        cases.push(case);
    }
    Ok(cases)
}

enum CaseError {
    Invalid(String),
    File(WorkbenchError),
}

impl From<WorkbenchError> for CaseError {
    fn from(error: WorkbenchError) -> Self {
        Self::File(error)
    }
}

/// Merges the setup for all cases with that of one case.
fn apply_setup(folder: &Path, mut setup: CaseSetup, entry: SetupEntry) -> Result<CaseSetup, WorkbenchError> {
    if let Some(policy) = entry.policy {
        let path = folder.join(policy);
        setup.policy = std::fs::read_to_string(&path).map_err(WorkbenchError::file(&path))?;
    }
    if let Some(text) = entry.policy_text {
        setup.policy = text;
    }
    setup.now = entry.now.unwrap_or(setup.now);
    setup.grants = entry.grants.unwrap_or(setup.grants);
    setup.memory = entry.memory.or(setup.memory);
    setup.deadline_ms = entry.deadline_ms.or(setup.deadline_ms);
    setup.tables.extend(entry.tables);
    setup.peers.extend(entry.peers);
    setup.pools.extend(entry.pools);
    setup.quality.extend(entry.quality);
    setup.counters.extend(entry.counters);
    setup.kv.extend(entry.kv);
    // The case's own exchanges take precedence.
    setup.http.splice(..0, entry.http);
    setup.dns.splice(..0, entry.dns);
    setup.hlr.extend(entry.hlr);
    setup.secrets.extend(entry.secrets);
    Ok(setup)
}

fn parse_case(folder: &Path, common: CaseSetup, entry: CaseEntry) -> Result<Case, CaseError> {
    let mut setup = apply_setup(folder, common, entry.given)?;
    let mut own_questions: Vec<CaseQuestion> = Vec::new();
    if let Some(document) = entry.configure {
        setup.policy = document;
        own_questions.push(CaseQuestion::Configure);
    }
    own_questions.extend(entry.screen.map(CaseQuestion::Screen));
    own_questions.extend(entry.route.map(CaseQuestion::Route));
    own_questions.extend(entry.look_up.map(CaseQuestion::LookUp));
    own_questions.extend(entry.resolve.map(CaseQuestion::Resolve));
    own_questions.extend(entry.next.map(|next| CaseQuestion::Next(next.message, next.attempt)));
    own_questions.extend(
        entry.receipt.map(|asked| CaseQuestion::Receipt(asked.message, asked.submission, asked.event)),
    );
    own_questions.extend(entry.price.map(|price| CaseQuestion::Price(price.message, price.leg)));
    own_questions.extend(entry.settle.map(CaseQuestion::Settle));
    own_questions.extend(entry.submit.map(CaseQuestion::Submit));
    own_questions.extend(entry.callback.map(CaseQuestion::Callback));
    own_questions.extend(entry.read.map(CaseQuestion::Read));
    own_questions.extend(entry.reply.map(CaseQuestion::Reply));
    let [question] = &own_questions[..] else {
        return Err(CaseError::Invalid(
 "ask exactly one of configure, screen, look-up, route, resolve, next, receipt, price, settle, submit, callback, read and reply" .to_owned(), 
        ));
    };
    let expected =
        parse_expected(question, entry.expect).map_err(|why| CaseError::Invalid(format!("expect: {why}")))?;
    let mut questions: Vec<CaseQuestion> = entry.earlier.into_iter().map(CaseQuestion::from).collect();
    questions.append(&mut own_questions);
    let CaseEntry { name, sender, text, changes, note, advice, wait_ms: wait, .. } = entry;
    Ok(Case { name, setup, questions, expected, sender, text, changes, note, advice, wait })
}

fn parse_expected(question: &CaseQuestion, entry: toml::Value) -> Result<ExpectedAnswer, String> {
    if let toml::Value::Table(table) = &entry
        && table.len() == 1
        && let Some((key, toml::Value::String(text))) = table.iter().next()
    {
        match (&**key, question) {
            ("fault", _) => return Ok(ExpectedAnswer::Fault(text.clone())),
            ("refused", question) if !matches!(question, CaseQuestion::Submit(_)) => {
                return Ok(ExpectedAnswer::Refused(text.clone()));
            }
            ("again", CaseQuestion::Settle(_)) => return Ok(ExpectedAnswer::Unsettled(text.clone())),
            _ => {}
        }
    }
    let word = entry.as_str();
    let is = |expected: &str| word == Some(expected);
    let read = |error: toml::de::Error| error.message().to_owned();
    match question {
        CaseQuestion::Configure if is("configured") => Ok(ExpectedAnswer::Configured),
        CaseQuestion::Configure => Err("write \"configured\" or { refused = \"WORDS\" }".to_owned()),
        CaseQuestion::Settle(_) if is("settled") => Ok(ExpectedAnswer::Settled),
        CaseQuestion::Settle(_) => Err("write \"settled\" or { again = \"WORDS\" }".to_owned()),
        CaseQuestion::LookUp(_) => entry.try_into().map(ExpectedAnswer::LookedUp).map_err(read),
        CaseQuestion::Resolve(_) if is("unknown") => {
            Ok(ExpectedAnswer::Resolved(CaseResolution::Unknown(None)))
        }
        CaseQuestion::Resolve(_) if is("try-later") => {
            Ok(ExpectedAnswer::Resolved(CaseResolution::TryLater(None)))
        }
        CaseQuestion::Resolve(_) => entry.try_into().map(ExpectedAnswer::Resolved).map_err(read),
        CaseQuestion::Screen(_) => entry.try_into().map(ExpectedAnswer::Screened).map_err(read),
        CaseQuestion::Route(_) => entry.try_into().map(ExpectedAnswer::Verdict).map_err(read),
        CaseQuestion::Next(..) => entry.try_into().map(ExpectedAnswer::Next).map_err(read),
        CaseQuestion::Receipt(..) => entry.try_into().map(ExpectedAnswer::Receipt).map_err(read),
        CaseQuestion::Price(..) => entry.try_into().map(ExpectedAnswer::Price).map_err(read),
        CaseQuestion::Submit(_) => entry.try_into().map(ExpectedAnswer::Submitted).map_err(read),
        CaseQuestion::Callback(_) => entry.try_into().map(ExpectedAnswer::Called).map_err(read),
        CaseQuestion::Read(_) => entry.try_into().map(ExpectedAnswer::Read).map_err(read),
        CaseQuestion::Reply(_) => entry.try_into().map(ExpectedAnswer::Replied).map_err(read),
    }
}

/// A time: RFC 3339 text, or milliseconds since the Unix epoch.
pub(crate) fn parse_timestamp<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "expected a time: milliseconds, or a text")]
    enum TimestampEntry {
        Milliseconds(u64),
        Text(String),
    }
    let bad =
        |what: &str| serde::de::Error::custom(format!("{what:?} is not a time like 2026-11-21T08:00:00Z"));
    match TimestampEntry::deserialize(from)? {
        TimestampEntry::Milliseconds(milliseconds) => Ok(milliseconds),
        TimestampEntry::Text(text) => {
            let time = OffsetDateTime::parse(&text, &Rfc3339).map_err(|_| bad(&text))?;
            u64::try_from(time.unix_timestamp_nanos() / 1_000_000).map_err(|_| bad(&text))
        }
    }
}

fn parse_optional_timestamp<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    parse_timestamp(from).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Vec<Case>, WorkbenchError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cases.toml");
        std::fs::write(&path, text).unwrap();
        std::fs::write(folder.path().join("policy.txt"), "from a file").unwrap();
        read(&path)
    }

    #[test]
    fn a_case_extends_the_common_setup() {
        let cases = parse(
            r#"
            [given]
            policy = "policy.txt"
            now = "1970-01-01T00:00:01.5Z"
            [given.peers]
            north = {}
            [[case]]
            name = "one"
            given = { policy-text = "here", peers = { south = { links = 2, queued = 7 } } }
            earlier = [{ route = { destination = "1" } }]
            route = { source = "ACME", destination = "8613" }
            expect = { forward = ["north", { peer = "south", rank = 1, cost = 5 }] }
            note = "why"
            sender = { pool = "texts", otherwise = "hold", lease-ms = 5 }
            [[case]]
            name = "two"
            resolve = "49170"
            expect = "unknown"
            "#,
        )
        .unwrap();
        let [one, two] = &cases[..] else { panic!("{cases:?}") };
        assert_eq!((&*one.setup.policy, one.setup.now, one.setup.peers.len()), ("here", 1500, 2));
        assert_eq!(one.setup.peers["south"], CasePeerState { links: 2, queued: 7 });
        let [_, CaseQuestion::Route(message)] = &one.questions[..] else { panic!("{one:?}") };
        assert_eq!((message.source.ton, message.destination.ton, message.destination.npi), (5, 1, 1));
        let ExpectedAnswer::Verdict(CaseVerdict::Forward(legs)) = &one.expected else { panic!("{one:?}") };
        assert_eq!((&*legs[0].peer, legs[0].weight), ("north", 1));
        assert_eq!((&*legs[1].peer, legs[1].rank, legs[1].weight, legs[1].cost), ("south", 1, 1, 5));
        let sender = one.sender.as_ref().unwrap();
        assert_eq!((&*sender.pool, sender.lease_ms, sender.user.as_ref()), ("texts", Some(5), None));
        assert_eq!(two.sender, None);
        assert_eq!((&*two.setup.policy, two.setup.peers.len()), ("from a file", 1));
        assert_eq!(two.expected, ExpectedAnswer::Resolved(CaseResolution::Unknown(None)));
    }

    #[test]
    fn every_answer_kind_can_be_expressed() {
        let message = r#"{ destination = "1" }"#;
        for (question, expect, expected) in [
            (format!("route = {message}"), r#""home""#, ExpectedAnswer::Verdict(CaseVerdict::Home)),
            (format!("route = {message}"), "{ hold = 5 }", ExpectedAnswer::Verdict(CaseVerdict::Hold(5))),
            (
                format!("route = {message}"),
                r#"{ hold = "1970-01-01T00:00:01Z" }"#,
                ExpectedAnswer::Verdict(CaseVerdict::Hold(1000)),
            ),
            (
                format!("route = {message}"),
                r#"{ fault = "deadline" }"#,
                ExpectedAnswer::Fault("deadline".into()),
            ),
            (
                "resolve = '1'".to_owned(),
                "{ try-later = 9 }",
                ExpectedAnswer::Resolved(CaseResolution::TryLater(Some(9))),
            ),
            (
                format!("next = {{ message = {message}, attempt = {{ peer = 'a', class = 'absent' }} }}"),
                "{ await-alert = 60000 }",
                ExpectedAnswer::Next(CaseStep::AwaitAlert(60000)),
            ),
            (
                format!("price = {{ message = {message} }}"),
                "{ charge = { account = 'shop', amount = 7 } }",
                ExpectedAnswer::Price(CasePrice::Charge(crate::plugin_host::CaseCharge {
                    account: "shop".into(),
                    amount: 7,
                    keep_on_failure: false,
                    settle: false,
                })),
            ),
            ("settle = []".to_owned(), r#"{ again = "down" }"#, ExpectedAnswer::Unsettled("down".into())),
            (
                "configure = 'x'".to_owned(),
                r#"{ refused = "line 1" }"#,
                ExpectedAnswer::Refused("line 1".into()),
            ),
        ] {
            let cases = parse(&format!("[[case]]\nname = 'a'\n{question}\nexpect = {expect}")).unwrap();
            assert_eq!(cases[0].expected, expected, "{expect}");
        }
    }

    #[test]
    fn errors_name_the_case_and_the_mistake() {
        let error = |text: &str| parse(text).unwrap_err().to_string();
        assert!(error("").contains("no [[case]]"));
        assert!(error("[[case]]\nname = 'two'\nexpect = 'pass'").contains("\"two\": ask exactly one of"));
        let odd = error("[[case]]\nname = 'odd'\nroute = { destination = '1' }\nexpect = 'sideways'");
        assert!(odd.contains("\"odd\": expect: ") && odd.contains("sideways"), "{odd}");
        let typo = error("[[case]]\nname = 'odd'\nroute = { destnation = '1' }\nexpect = 'pass'");
        assert!(typo.contains("destnation") && typo.contains("line 3"), "{typo}");
        assert!(error("[given]\nnow = 'today'").contains("not a time like"));
    }
}
