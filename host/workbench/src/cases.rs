//! A file of cases: questions, and the answers that are right. `plugins/README.md` describes the format.

use crate::WorkbenchError;
use crate::bench::{
    Advice, Attempt, Counted, Exchange, FirstLeg, Given, Grants, Message, PeerState, PoolState, Price,
    Question, Resolution, Sender, Settlement, Step, Subscriber, Table, Verdict,
};
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::path::Path;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// A case, ready to be asked.
#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) given: Given,
    /// Asked in order; the last one's answer counts.
    pub(crate) questions: Vec<Question>,
    pub(crate) expected: Expected,
    /// The number that a router wants for the message's sender; none must be wanted where nothing stands here.
    pub(crate) sender: Option<Sender>,
    /// Nothing: any note, or none, is right.
    pub(crate) note: Option<String>,
    /// What a delivery policy advises; nothing must be advised where nothing stands here.
    pub(crate) advice: Advice,
}

/// The answer that is right.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Expected {
    Configured,
    /// The policy document is refused, with words that contain these.
    Refused(String),
    Verdict(Verdict),
    Resolved(Resolution),
    Next(Step),
    Price(Price),
    Settled,
    /// Told again, with words that contain these.
    Unsettled(String),
    /// It fails, for a reason whose words contain these.
    Fault(String),
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct File {
    #[serde(default)]
    given: WrittenGiven,
    #[serde(default)]
    case: Vec<WrittenCase>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
struct WrittenGiven {
    /// A file, relative to the file of cases.
    policy: Option<String>,
    policy_text: Option<String>,
    #[serde(deserialize_with = "some_moment")]
    now: Option<u64>,
    grants: Option<Grants>,
    memory: Option<usize>,
    deadline_ms: Option<u64>,
    tables: BTreeMap<String, Table>,
    peers: BTreeMap<String, PeerState>,
    pools: BTreeMap<String, PoolState>,
    counters: Vec<Counted>,
    kv: BTreeMap<String, String>,
    http: Vec<Exchange>,
    hlr: BTreeMap<String, Subscriber>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct WrittenCase {
    name: String,
    #[serde(default)]
    given: WrittenGiven,
    #[serde(default)]
    earlier: Vec<WrittenQuestion>,
    configure: Option<String>,
    route: Option<Message>,
    resolve: Option<String>,
    next: Option<WrittenNext>,
    price: Option<WrittenPrice>,
    settle: Option<Vec<Settlement>>,
    expect: toml::Value,
    sender: Option<Sender>,
    note: Option<String>,
    #[serde(default)]
    advice: Advice,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum WrittenQuestion {
    Route(Message),
    Resolve(String),
    Next(WrittenNext),
    Price(WrittenPrice),
    Settle(Vec<Settlement>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenNext {
    message: Message,
    attempt: Attempt,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenPrice {
    message: Message,
    leg: Option<FirstLeg>,
}

impl From<WrittenQuestion> for Question {
    fn from(written: WrittenQuestion) -> Self {
        match written {
            WrittenQuestion::Route(message) => Self::Route(message),
            WrittenQuestion::Resolve(number) => Self::Resolve(number),
            WrittenQuestion::Next(next) => Self::Next(next.message, next.attempt),
            WrittenQuestion::Price(price) => Self::Price(price.message, price.leg),
            WrittenQuestion::Settle(settlements) => Self::Settle(settlements),
        }
    }
}

/// Reads a file of cases.
pub(crate) fn read(path: &Path) -> Result<Vec<Case>, WorkbenchError> {
    let text = std::fs::read_to_string(path).map_err(WorkbenchError::file(path))?;
    let wrong = |why: String| WorkbenchError::Unreadable { path: path.to_owned(), why };
    let file: File = toml::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    if file.case.is_empty() {
        return Err(wrong("there is no [[case]] in it".to_owned()));
    }
    let folder = path.parent().unwrap_or(Path::new("."));
    let common = give(folder, Given::default(), file.given)?;
    let mut cases = Vec::new();
    for written in file.case {
        let name = written.name.clone();
        let case = case(folder, common.clone(), written).map_err(|error| match error {
            Wrong::Words(why) => wrong(format!("case {name:?}: {why}")),
            Wrong::File(error) => error,
        })?;
        cases.push(case);
    }
    Ok(cases)
}

enum Wrong {
    Words(String),
    File(WorkbenchError),
}

impl From<WorkbenchError> for Wrong {
    fn from(error: WorkbenchError) -> Self {
        Self::File(error)
    }
}

/// What is given to all cases, and beside it what is given to one.
fn give(folder: &Path, mut given: Given, written: WrittenGiven) -> Result<Given, WorkbenchError> {
    if let Some(policy) = written.policy {
        let path = folder.join(policy);
        given.policy = std::fs::read_to_string(&path).map_err(WorkbenchError::file(&path))?;
    }
    if let Some(text) = written.policy_text {
        given.policy = text;
    }
    given.now = written.now.unwrap_or(given.now);
    given.grants = written.grants.unwrap_or(given.grants);
    given.memory = written.memory.or(given.memory);
    given.deadline_ms = written.deadline_ms.or(given.deadline_ms);
    given.tables.extend(written.tables);
    given.peers.extend(written.peers);
    given.pools.extend(written.pools);
    given.counters.extend(written.counters);
    given.kv.extend(written.kv);
    // What a case says is looked at first.
    given.http.splice(..0, written.http);
    given.hlr.extend(written.hlr);
    Ok(given)
}

fn case(folder: &Path, common: Given, written: WrittenCase) -> Result<Case, Wrong> {
    let mut given = give(folder, common, written.given)?;
    let mut asked: Vec<Question> = Vec::new();
    if let Some(document) = written.configure {
        given.policy = document;
        asked.push(Question::Configure);
    }
    asked.extend(written.route.map(Question::Route));
    asked.extend(written.resolve.map(Question::Resolve));
    asked.extend(written.next.map(|next| Question::Next(next.message, next.attempt)));
    asked.extend(written.price.map(|price| Question::Price(price.message, price.leg)));
    asked.extend(written.settle.map(Question::Settle));
    let [question] = &asked[..] else {
        return Err(Wrong::Words(
            "ask exactly one of configure, route, resolve, next, price and settle".to_owned(),
        ));
    };
    let expected =
        expected(question, written.expect).map_err(|why| Wrong::Words(format!("expect: {why}")))?;
    let mut questions: Vec<Question> = written.earlier.into_iter().map(Question::from).collect();
    questions.append(&mut asked);
    let WrittenCase { name, sender, note, advice, .. } = written;
    Ok(Case { name, given, questions, expected, sender, note, advice })
}

fn expected(question: &Question, written: toml::Value) -> Result<Expected, String> {
    if let toml::Value::Table(table) = &written
        && table.len() == 1
        && let Some((key, toml::Value::String(words))) = table.iter().next()
    {
        match (&**key, question) {
            ("fault", _) => return Ok(Expected::Fault(words.clone())),
            ("refused", _) => return Ok(Expected::Refused(words.clone())),
            ("again", Question::Settle(_)) => return Ok(Expected::Unsettled(words.clone())),
            _ => {}
        }
    }
    let word = written.as_str();
    let is = |wanted: &str| word == Some(wanted);
    let read = |error: toml::de::Error| error.message().to_owned();
    match question {
        Question::Configure if is("configured") => Ok(Expected::Configured),
        Question::Configure => Err("write \"configured\" or { refused = \"WORDS\" }".to_owned()),
        Question::Settle(_) if is("settled") => Ok(Expected::Settled),
        Question::Settle(_) => Err("write \"settled\" or { again = \"WORDS\" }".to_owned()),
        Question::Resolve(_) if is("unknown") => Ok(Expected::Resolved(Resolution::Unknown(None))),
        Question::Resolve(_) if is("try-later") => Ok(Expected::Resolved(Resolution::TryLater(None))),
        Question::Resolve(_) => written.try_into().map(Expected::Resolved).map_err(read),
        Question::Route(_) => written.try_into().map(Expected::Verdict).map_err(read),
        Question::Next(..) => written.try_into().map(Expected::Next).map_err(read),
        Question::Price(..) => written.try_into().map(Expected::Price).map_err(read),
    }
}

/// A time: RFC 3339 text, or milliseconds since the Unix epoch.
pub(crate) fn moment<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "expected a moment: milliseconds, or a text")]
    enum Written {
        Milliseconds(u64),
        Text(String),
    }
    let bad = |what: &str| serde::de::Error::custom(format!("{what:?} is no time like 2026-11-21T08:00:00Z"));
    match Written::deserialize(from)? {
        Written::Milliseconds(milliseconds) => Ok(milliseconds),
        Written::Text(text) => {
            let time = OffsetDateTime::parse(&text, &Rfc3339).map_err(|_| bad(&text))?;
            u64::try_from(time.unix_timestamp_nanos() / 1_000_000).map_err(|_| bad(&text))
        }
    }
}

fn some_moment<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    moment(from).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Vec<Case>, WorkbenchError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cases.toml");
        std::fs::write(&path, text).unwrap();
        std::fs::write(folder.path().join("policy.txt"), "from a file").unwrap();
        read(&path)
    }

    #[test]
    fn a_case_is_given_what_all_are_given_and_what_it_says() {
        let cases = of(r#"
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
            "#)
        .unwrap();
        let [one, two] = &cases[..] else { panic!("{cases:?}") };
        assert_eq!((&*one.given.policy, one.given.now, one.given.peers.len()), ("here", 1500, 2));
        assert_eq!(one.given.peers["south"], PeerState { links: 2, queued: 7 });
        let [_, Question::Route(message)] = &one.questions[..] else { panic!("{one:?}") };
        assert_eq!((message.source.ton, message.destination.ton, message.destination.npi), (5, 1, 1));
        let Expected::Verdict(Verdict::Forward(legs)) = &one.expected else { panic!("{one:?}") };
        assert_eq!((&*legs[0].peer, legs[0].weight), ("north", 1));
        assert_eq!((&*legs[1].peer, legs[1].rank, legs[1].weight, legs[1].cost), ("south", 1, 1, 5));
        let sender = one.sender.as_ref().unwrap();
        assert_eq!((&*sender.pool, sender.lease_ms, sender.user.as_ref()), ("texts", Some(5), None));
        assert_eq!(two.sender, None);
        assert_eq!((&*two.given.policy, two.given.peers.len()), ("from a file", 1));
        assert_eq!(two.expected, Expected::Resolved(Resolution::Unknown(None)));
    }

    #[test]
    fn every_answer_can_be_written() {
        let message = r#"{ destination = "1" }"#;
        for (question, expect, expected) in [
            (format!("route = {message}"), r#""home""#, Expected::Verdict(Verdict::Home)),
            (format!("route = {message}"), "{ hold = 5 }", Expected::Verdict(Verdict::Hold(5))),
            (
                format!("route = {message}"),
                r#"{ hold = "1970-01-01T00:00:01Z" }"#,
                Expected::Verdict(Verdict::Hold(1000)),
            ),
            (format!("route = {message}"), r#"{ fault = "deadline" }"#, Expected::Fault("deadline".into())),
            (
                "resolve = '1'".to_owned(),
                "{ try-later = 9 }",
                Expected::Resolved(Resolution::TryLater(Some(9))),
            ),
            (
                format!("next = {{ message = {message}, attempt = {{ peer = 'a', class = 'absent' }} }}"),
                "{ await-alert = 60000 }",
                Expected::Next(Step::AwaitAlert(60000)),
            ),
            (
                format!("price = {{ message = {message} }}"),
                "{ charge = { account = 'shop', amount = 7 } }",
                Expected::Price(Price::Charge(crate::bench::Charge {
                    account: "shop".into(),
                    amount: 7,
                    keep_on_failure: false,
                    settle: false,
                })),
            ),
            ("settle = []".to_owned(), r#"{ again = "down" }"#, Expected::Unsettled("down".into())),
            ("configure = 'x'".to_owned(), r#"{ refused = "line 1" }"#, Expected::Refused("line 1".into())),
        ] {
            let cases = of(&format!("[[case]]\nname = 'a'\n{question}\nexpect = {expect}")).unwrap();
            assert_eq!(cases[0].expected, expected, "{expect}");
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let told = |text: &str| of(text).unwrap_err().to_string();
        assert!(told("").contains("no [[case]]"));
        assert!(told("[[case]]\nname = 'two'\nexpect = 'pass'").contains("\"two\": ask exactly one of"));
        let odd = told("[[case]]\nname = 'odd'\nroute = { destination = '1' }\nexpect = 'sideways'");
        assert!(odd.contains("\"odd\": expect: ") && odd.contains("sideways"), "{odd}");
        let typo = told("[[case]]\nname = 'odd'\nroute = { destnation = '1' }\nexpect = 'pass'");
        assert!(typo.contains("destnation") && typo.contains("line 3"), "{typo}");
        assert!(told("[given]\nnow = 'today'").contains("no time like"));
    }
}
