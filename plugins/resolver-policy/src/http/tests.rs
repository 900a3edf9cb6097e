use super::*;
use crate::{Answer, is_imsi};
use proptest::prelude::*;

const DOCUMENT: &str = r#"
url = "https://hlr.example/v1/{msisdn}?form=short"
headers = { accept = "application/json" }
unknown-status = [404, 410]
valid = "1h"
unknown-valid = "5m"
try-again = "30s"
[answer]
imsi = "subscriber.imsi"
serving = "subscriber.node"
valid-seconds = "ttl"
[numbers]
strip = ["00"]
"#;

fn policy() -> Policy {
    Policy::parse(DOCUMENT).unwrap()
}

fn reply(status: u16, body: &str) -> Answer {
    policy().reply(status, body.as_bytes()).answer
}

#[test]
fn the_schema_is_up_to_date() {
    policy_values::schema::assert_up_to_date::<Document>("http-resolver");
}

#[test]
fn the_shipped_document_is_valid() {
    Policy::parse(include_str!("../../../../policies/lookup.toml")).unwrap();
}

#[test]
fn the_number_is_inserted_at_its_placeholder() {
    let request = policy().request("+49151").unwrap();
    assert_eq!((request.method, request.url.as_str()), ("GET", "https://hlr.example/v1/49151?form=short"));
    assert_eq!(request.headers, [("accept".to_owned(), "application/json".to_owned())]);
    assert_eq!(policy().request("49151/../admin"), None);
    let post = "url = \"http://hlr/\"\nmethod = \"POST\"\nbody = '{\"number\":\"{msisdn}\"}'";
    let request = Policy::parse(post).unwrap().request("49151").unwrap();
    assert_eq!((request.method, request.body.as_str()), ("POST", "{\"number\":\"49151\"}"));
}

#[test]
fn replies_are_converted_to_answers() {
    let found = |serving: Option<&str>, seconds| Answer::Found {
        imsi: "262011234567890".to_owned(),
        serving: serving.map(str::to_owned),
        valid: Some(Duration::from_secs(seconds)),
    };
    let whole = r#"{"subscriber":{"imsi":"262011234567890","node":"north"},"ttl":60}"#;
    assert_eq!(reply(200, whole), found(Some("north"), 60));
    assert_eq!(
        reply(203, r#"{"subscriber":{"imsi":262011234567890,"node":null},"ttl":"7"}"#),
        found(None, 7)
    );
    assert_eq!(reply(200, r#"{"subscriber":{"imsi":"262011234567890"},"ttl":-1}"#), found(None, 3600));
    assert_eq!(
        reply(200, r#"{"subscriber":{"imsi":"262011234567890"},"ttl":99999999999999}"#),
        found(None, 31 * 86_400)
    );
    let (unknown, try_later) =
        (Answer::Unknown(Some(Duration::from_secs(300))), Answer::TryLater(Some(Duration::from_secs(30))));
    assert_eq!(reply(404, whole), unknown);
    assert_eq!(reply(410, ""), unknown);
    for status in [100, 301, 400, 401, 429, 500, 503, 999] {
        assert_eq!(reply(status, whole), try_later, "{status}");
    }
    for body in ["", "{", "[]", "null", "\"x\"", "{\"subscriber\":7}", r#"{"subscriber":{"imsi":"x"}}"#] {
        assert_eq!(reply(200, body), try_later, "{body:?}");
    }
    // A recursive parser without a limit would overflow its stack.
    assert_eq!(reply(200, &"[".repeat(1_000_000)), try_later);
}

#[test]
fn errors_name_the_mistake() {
    for (document, expected) in [
        ("", "missing field `url`"),
        ("url = \"hlr/{msisdn}\"", "line 1: `url` is"),
        ("\nurl = \"ftp://hlr/{msisdn}\"", "line 2: `url` is"),
        ("url = \"https:///{msisdn}\"", "write a whole address"),
        ("url = \"https://h/{msisdn} x\"", "without blanks"),
        ("url = \"https://{msisdn}.example/\"", "in its host"),
        ("url = \"https://h/\"", "neither `url` nor `body` has {msisdn}"),
        ("url = \"https://h/{msisdn}\"\nbody = \"x\"", "line 2: a `body` goes with"),
        ("url = \"https://h/{msisdn}\"\nmethod = \"PUT\"", "unknown variant `PUT`"),
        ("url = \"https://h/{msisdn}\"\nunknown-status = [44]", "has 44"),
        ("url = \"https://h/{msisdn}\"\nheaders = { \"a b\" = \"c\" }", "which is not a header name"),
        ("url = \"https://h/{msisdn}\"\nheaders = { a = \"c\\r\\nd: e\" }", "control characters"),
        ("url = \"https://h/{msisdn}\"\n[answer]\nimsi = \"a..b\"", "a field that is empty"),
        ("url = \"https://h/{msisdn}\"\n[answer]\nttl = \"a\"", "unknown field `ttl`"),
    ] {
        let error = Policy::parse(document).unwrap_err();
        assert!(error.contains(expected), "{document:?}: {error}");
    }
}

proptest! {
    #[test]
    fn any_reply_gives_a_digit_imsi(status: u16, body in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Answer::Found { imsi, .. } = policy().reply(status, &body).answer {
            prop_assert!(is_imsi(&imsi));
        }
    }

    /// A number cannot insert anything but digits into the URL.
    #[test]
    fn no_number_changes_the_host_or_path(msisdn in "[+0-9a-z/?#@:%.]{0,24}") {
        if let Some(request) = policy().request(&msisdn) {
            let number = request.url.strip_prefix("https://hlr.example/v1/").unwrap().strip_suffix("?form=short").unwrap();
            prop_assert!(number.bytes().all(|octet| octet.is_ascii_digit()));
        }
    }

    #[test]
    fn any_text_is_a_policy_or_refused(
        text in "([\\[\\]{}=\",. \n#a-z0-9]|url|https://|\\{msisdn\\}|answer|headers|method){0,40}",
    ) {
        if let Err(refusal) = Policy::parse(&text) {
            prop_assert!(!refusal.is_empty());
        }
    }
}
