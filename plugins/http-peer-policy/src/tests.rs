use super::*;
use crate::document::Document;
use proptest::prelude::*;
use switchyard_sdk::peer::{
    Attempt, Called, Header, Incoming, Outcome, Receipt, ReceiptState, Refusal, RefusalClass, Request,
    Submitted,
};
use switchyard_sdk::{Address, Message};

const DOCUMENT: &str = r#"
[request]
url = "https://api.example/v2/{secret:account}/send?ref={key}"
headers = { x-peer = "{peer}" }
basic = { user = "shop", secret = "password" }
[request.json]
to = ["+{destination}"]
from = "{source}"
content = { text = "{text}", flash = false }
[accepted]
where = { "/status" = ["queued", 0] }
id = "/ids/0"
[[refused]]
where = { "/status" = "blocked" }
class = "permanent"
code = "/code"
[[refused]]
status = [429]
class = "queue-full"
retry-after = "2s"
[receipts]
check = { secret = "callback", header = "x-token" }
list = "/results"
id = "/id"
state = "/state"
states = { DELIVRD = "delivered", FAILED = "undeliverable" }
error = "/err"
subscriber = "/to"
sender = "/from"
response = { status = 202, body = "OK" }
[messages]
path = "/incoming"
form = "form"
check = { secret = "callback", hmac-sha256 = "x-signature" }
source = "/From"
destination = "/To"
text = "/Body"
"#;

fn policy() -> Policy {
    Policy::parse(DOCUMENT).unwrap()
}

fn secrets(name: &str) -> Option<String> {
    Some(match name {
        "account" => "a/b".to_owned(),
        "password" => "p:w".to_owned(),
        "callback" => "s3cret".to_owned(),
        _ => return None,
    })
}

fn message(source: &str) -> Message {
    let address = |ton, value: &str| Address { ton, npi: 1, value: value.to_owned() };
    Message {
        origin: "shop".to_owned(),
        source: address(5, source),
        destination: address(1, "+491701"),
        service_type: None,
        data_coding: 0,
        priority: 0,
        length: 5,
        parts: 1,
        udhi: false,
        wants_receipt: true,
    }
}

fn attempt() -> Attempt {
    Attempt { peer: "north".into(), id: "12".into(), key: "12-1".into(), number: 1, wants_receipts: true }
}

fn prepare(policy: &Policy, source: &str, text: Option<&str>) -> Result<PreparedRequest, Submitted> {
    let (message, attempt) = (message(source), attempt());
    let text = text.map(str::to_owned);
    let submission = Submission { message: &message, attempt: &attempt, text, octets: vec![0xc3, 0x01] };
    policy.request(&submission, &secrets)
}

#[test]
fn the_schema_is_up_to_date() {
    policy_values::schema::assert_up_to_date::<Document>("http-peer");
}

#[test]
fn the_shipped_document_is_valid() {
    Policy::parse(include_str!("../../../policies/http-peer.toml")).unwrap();
}

#[test]
fn a_message_becomes_a_request_whose_values_are_escaped() {
    let request = prepare(&policy(), "A\"C ME", Some("50% \"off\"\n{x}")).unwrap();
    assert_eq!(request.method, "POST");
    assert_eq!(request.url, "https://api.example/v2/a%2Fb/send?ref=12-1");
    let header = |name: &str| request.headers.iter().find(|(known, _)| known == name).unwrap().1.as_str();
    assert_eq!((header("x-peer"), header("content-type")), ("north", "application/json"));
    // printf 'shop:p:w' | base64
    assert_eq!(header("authorization"), "Basic c2hvcDpwOnc=");
    let body: serde_json::Value = serde_json::from_slice(&request.body).unwrap();
    let expected = serde_json::json!({ "to": ["+491701"], "from": "A\"C ME",
        "content": { "text": "50% \"off\"\n{x}", "flash": false } });
    assert_eq!(body, expected);
}

#[test]
fn forms_urls_and_headers_have_their_own_escapes() {
    let document = "[request]\nurl = \"http://h/{destination}\"\nform = { t = \"{text}\", d = \"{hex}\" }\n\
                    headers = { x = \"{text}\" }\nbearer = \"callback\"\n";
    let request = prepare(&Policy::parse(document).unwrap(), "A", Some("a&b=c\r\nEvil: 1")).unwrap();
    assert_eq!(request.url, "http://h/491701");
    assert_eq!(request.body, b"d=c301&t=a%26b%3Dc%0D%0AEvil%3A%201");
    assert!(request.headers.contains(&("x".to_owned(), "a&b=c  Evil: 1".to_owned())));
    assert!(request.headers.contains(&("authorization".to_owned(), "Bearer s3cret".to_owned())));
}

#[test]
fn without_text_or_secret_there_is_no_request() {
    let refusal = |submitted: Submitted| match submitted.outcome {
        Outcome::Refused(refusal) => refusal.class,
        other => panic!("{other:?}"),
    };
    assert_eq!(refusal(prepare(&policy(), "A", None).unwrap_err()), RefusalClass::Permanent);
    let document = "[request]\nurl = \"http://h/{destination}\"\nbearer = \"other\"\n";
    let missing = prepare(&Policy::parse(document).unwrap(), "A", None).unwrap_err();
    assert!(missing.note.as_ref().unwrap().contains("\"other\""), "{missing:?}");
    assert_eq!(refusal(missing), RefusalClass::Temporary);
}

fn answer(status: u16, retry_after: Option<&str>, body: &str) -> Outcome {
    let headers: Vec<_> =
        retry_after.map(|value| ("retry-after".to_owned(), value.to_owned())).into_iter().collect();
    policy().answer(status, &headers, body.as_bytes()).outcome
}

#[test]
fn answers_are_outcomes() {
    let refused = |class, code, retry_after| Outcome::Refused(Refusal { class, code, retry_after });
    use RefusalClass::{Permanent, QueueFull, Temporary, Throttled};
    assert_eq!(
        answer(201, None, r#"{"status":"queued","ids":["a-1"]}"#),
        Outcome::Accepted(Some("a-1".into()))
    );
    assert_eq!(answer(200, None, r#"{"status":0,"ids":[77]}"#), Outcome::Accepted(Some("77".into())));
    assert_eq!(answer(200, None, r#"{"status":"queued"}"#), Outcome::Accepted(None));
    assert_eq!(answer(200, None, r#"{"status":"blocked","code":30007}"#), refused(Permanent, 30007, None));
    assert_eq!(answer(429, None, ""), refused(QueueFull, 429, Some(2000)));
    assert_eq!(answer(429, Some("7"), ""), refused(QueueFull, 429, Some(7000)));
    assert_eq!(answer(503, Some("Wed, 21 Oct 2026 07:28:00 GMT"), ""), refused(Throttled, 503, None));
    assert_eq!(answer(503, Some("99999999"), ""), refused(Throttled, 503, Some(3_600_000)));
    assert_eq!(answer(401, None, "no"), refused(Permanent, 401, None));
    assert_eq!(answer(302, None, ""), refused(Temporary, 302, None));
    // The peer may have the message.
    for (status, body) in [(500, ""), (504, "<html>"), (200, "{}"), (200, "accepted?"), (204, "")] {
        assert_eq!(answer(status, None, body), Outcome::Unsure, "{status} {body}");
    }
    let document = "[request]\nurl = \"http://h/{destination}\"\n[accepted]\nid-pattern = 'ID: (\\S+)'\n";
    let plain = Policy::parse(document).unwrap();
    assert_eq!(plain.answer(200, &[], b"OK\nID: x9 more").outcome, Outcome::Accepted(Some("x9".into())));
}

fn request(path: &str, headers: &[(&str, &str)], body: &str) -> Request {
    let header =
        |(name, value): &(&str, &str)| Header { name: (*name).to_owned(), value: (*value).to_owned() };
    Request {
        method: "POST".to_owned(),
        path: format!("/v1/peers/north/callback{path}"),
        query: String::new(),
        headers: headers.iter().map(header).collect(),
        body: body.as_bytes().to_vec(),
    }
}

fn call(path: &str, headers: &[(&str, &str)], body: &str) -> Called {
    policy().callback("north", &request(path, headers, body), &secrets)
}

#[test]
fn a_callback_has_receipts() {
    let token = [("X-Token", "s3cret")];
    let body = r#"{"results":[{"id":"a","state":"DELIVRD","to":"+491701","from":"ACME"},
        {"id":7,"state":"FAILED","err":"34"},{"id":"b","state":"SENT"}]}"#;
    let called = call("", &token, body);
    let receipt = |id: &str, state, error| Receipt {
        id: id.to_owned(),
        subscriber: (id == "a").then(|| "+491701".to_owned()),
        sender: (id == "a").then(|| "ACME".to_owned()),
        state,
        error,
        at: None,
    };
    assert_eq!(
        called.receipts,
        [receipt("a", ReceiptState::Delivered, 0), receipt("7", ReceiptState::Undeliverable, 34)]
    );
    assert_eq!((called.response.status, &called.response.body[..]), (202, &b"OK"[..]));
    assert!(called.note.unwrap().contains("\"SENT\""));
    for (headers, body, status) in [
        (&token[..], "{}", 400),
        (&token, "no JSON", 400),
        (&token, r#"{"results":[{"state":"DELIVRD"}]}"#, 400),
        (&[("x-token", "s3cre")], body, 403),
        (&[], body, 403),
    ] {
        let called = call("", headers, body);
        assert_eq!((called.response.status, called.receipts.len()), (status, 0), "{body}");
    }
    assert_eq!(call("/other", &token, body).response.status, 404);
}

#[test]
fn a_signed_form_is_a_message() {
    let body = "From=%2B491701&To=10655&Body=ja+%26+nein";
    // printf %s BODY | openssl dgst -sha256 -hmac s3cret
    let hex = "62f2d90407b1dabf5dfff3804d186051ea41cd84d2bc3cf3a6e91732b8cc6b35";
    let called = call("/incoming", &[("x-signature", &format!("sha256={hex}"))], body);
    let [source, destination, text] = ["+491701", "10655", "ja & nein"].map(str::to_owned);
    assert_eq!(called.messages, [Incoming { source, destination, text }]);
    assert_eq!(
        call("/incoming", &[("x-signature", "YvLZBAex2r9d//OATRhgUepBzYTSvDzzpukXMrjMazU=")], body)
            .messages
            .len(),
        1
    );
    for wrong in ["", "sha256=00", &hex.replace('a', "b")] {
        let called = call("/incoming", &[("x-signature", wrong)], body);
        assert_eq!((called.response.status, called.messages.len()), (403, 0), "{wrong}");
    }
}

#[test]
fn mistakes_in_documents_are_named() {
    let whole = "[request]\nurl = \"https://h/{destination}\"\n";
    let receipts = "[receipts]\nid = \"/id\"\nstate = \"/s\"\nstates = {}\n";
    for (document, words) in [
        ("".to_owned(), "request"),
        ("[request]\nurl = \"https://h/\"\n".to_owned(), "{destination}"),
        ("[request]\nurl = \"{destination}\"\n".to_owned(), "https://"),
        ("[request]\nurl = \"https://h{destination}/\"\n".to_owned(), "host without placeholders"),
        ("[request]\nurl = \"ftp://h/{destination}\"\n".to_owned(), "https://"),
        ("[request]\nurl = \"https://h/{to}\"\n".to_owned(), "{to} is not a placeholder"),
        (format!("{whole}form = {{}}\njson = {{}}\n"), "one body"),
        (format!("{whole}method = \"GET\"\nform = {{}}\n"), "POST or PUT"),
        (format!("{whole}headers = {{ \"a b\" = \"\" }}\n"), "not a header name"),
        (format!("{whole}[accepted]\nid = \"ids.0\"\n"), "JSON Pointer"),
        (format!("{whole}[accepted]\nid-pattern = \"id\"\n"), "one group"),
        (format!("{whole}[accepted]\nstatus = [20]\n"), "200 to 599"),
        (format!("{whole}[[refused]]\nclass = \"permanent\"\n"), "every answer"),
        (
            format!("{whole}[[refused]]\nstatus = [400]\nclass = \"permanent\"\nretry-after = \"1s\"\n"),
            "retry-after",
        ),
        (format!("{whole}[[refused]]\nstatus = [400]\nclass = \"no\"\n"), "unknown variant"),
        (format!("{whole}{receipts}"), "check"),
        (
            format!("{whole}{receipts}check = {{ secret = \"a\" }}\n"),
            "one of `header`, `query` and `hmac-sha256`",
        ),
        (format!("{whole}{receipts}check = {{ secret = \"a\", query = \"k\" }}\npath = \"x\"\n"), "slash"),
    ] {
        let why = Policy::parse(&document).unwrap_err();
        assert!(why.contains(words), "{document}\n{why}");
    }
}

proptest! {
    #[test]
    fn any_answer_has_an_outcome(status in 0_u16.., body in ".{0,80}", header in ".{0,12}") {
        let _ = policy().answer(status, &[("retry-after".to_owned(), header)], body.as_bytes());
    }

    #[test]
    fn any_callback_is_read(body in proptest::collection::vec(any::<u8>(), 0..80), path in "(/incoming)?", query in ".{0,20}") {
        let mut request = request(&path, &[("x-token", "s3cret"), ("x-signature", "AAAA")], "");
        (request.body, request.query) = (body, query);
        let called = policy().callback("north", &request, &secrets);
        prop_assert!((200..600).contains(&called.response.status));
    }
}
