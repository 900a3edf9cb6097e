//! DLRs that are pushed to a URL of the submission, in the form of another product's API.
//!
//! A front end gives each message a template of the request (`dlr-push` in `wit/front-end.wit`). It is stored with the message,
//! comes back with each of its DLRs, and is rendered when the DLR is pushed.

use crate::dlr_urls::{self, AllowedUrl};
use bytes::Bytes;
use hooks::{FrontEndDlrPush, FrontEndDlrSignature};
use model::{DlrContent, DlrState, Message, MessageKind, Timestamp};
use ports::text;
use reqwest::Url;
use std::borrow::Cow;
use time::OffsetDateTime;

/// The tag of a template among the protocol fields of a message.
///
/// On disk: the JSON of [`FrontEndDlrPush`], with its keys in kebab-case.
const TAG: u16 = 0x1530;

/// Maximum length of a URL, a body, a word and an acknowledgement, in octets.
const MAX_URL: usize = 2_000;
const MAX_BODY: usize = 4_000;
const MAX_WORD: usize = 100;

/// The target of a DLR.
#[derive(Debug)]
pub(crate) enum DlrTarget {
    /// To the account's own URL.
    Account,
    /// No target: the submission wants no DLR of this state.
    NoTarget,
    /// To a URL of the submission.
    Url(Box<DlrCall>),
}

/// A request that reports a DLR.
#[derive(Debug)]
pub(crate) struct DlrCall {
    pub(crate) url: Url,
    pub(crate) allowed: AllowedUrl,
    /// A form, which is sent by POST; `None`: GET.
    pub(crate) body: Option<String>,
    /// The body of a response that acknowledges the DLR; `None`: any body.
    pub(crate) acknowledgement: Option<String>,
    pub(crate) signature: Option<FrontEndDlrSignature>,
}

/// Checks the template of a submission, and appends it to the fields of the message. `patterns`: the URLs that the account may
/// name.
///
/// # Errors
/// The mistake, without the URL.
pub(crate) fn store(push: &FrontEndDlrPush, patterns: &[String], fields: &mut Vec<u8>) -> Result<(), String> {
    if push.url.len() > MAX_URL || push.body.as_ref().is_some_and(|body| body.len() > MAX_BODY) {
        return Err(format!("has more than {MAX_URL} octets of URL or {MAX_BODY} of body"));
    }
    let mut words = push.words.values().chain(&push.acknowledgement);
    if words.any(|word| word.len() > MAX_WORD) {
        return Err(format!("has a word or an acknowledgement of more than {MAX_WORD} octets"));
    }
    let sample = |name: &str| NAMES.contains(&name).then(|| "0".into());
    let url = render(&push.url, sample)?;
    push.body.as_ref().map_or(Ok(String::new()), |body| render(body, sample))?;
    let url = Url::parse(&url).map_err(|_| "is not a URL".to_owned())?;
    if dlr_urls::allowed(patterns, &url).is_none() {
        return Err("is not a URL that this account may name".to_owned());
    }
    let stored = serde_json::to_vec(push).map_err(|error| error.to_string())?;
    model::put_tlv(fields, TAG, &stored);
    Ok(())
}

/// The template that is stored with a message.
fn stored(fields: &Bytes) -> Option<FrontEndDlrPush> {
    let (_, value) = model::tlvs(fields).find(|(tag, _)| *tag == TAG)?;
    serde_json::from_slice(value).ok()
}

/// The target of an account's item. `patterns`: the URLs that the account may name now.
pub(crate) fn target(message: &Message, patterns: &[String]) -> DlrTarget {
    let MessageKind::Dlr(dlr) = &message.kind else { return DlrTarget::Account };
    let Some(push) = stored(&message.protocol_fields) else { return DlrTarget::Account };
    let Some(word) = push.words.get(state_name(dlr.state)) else { return DlrTarget::NoTarget };
    let value = |name: &str| value(name, message, dlr, word);
    let call = || {
        let url = Url::parse(&render(&push.url, value).ok()?).ok()?;
        let allowed = dlr_urls::allowed(patterns, &url)?;
        let body = push.body.as_ref().map(|body| render(body, value).ok());
        let body = if let Some(body) = body { Some(body?) } else { None };
        Some(DlrCall {
            url,
            allowed,
            body,
            acknowledgement: push.acknowledgement.clone(),
            signature: push.signature,
        })
    };
    // The configuration may have changed since the submission.
    call().map_or(DlrTarget::Account, |call| DlrTarget::Url(Box::new(call)))
}

/// The names of states, as in the contract. A message is never reported as scheduled or skipped.
fn state_name(state: DlrState) -> &'static str {
    match state {
        DlrState::Scheduled | DlrState::Enroute => "enroute",
        DlrState::Delivered => "delivered",
        DlrState::Expired => "expired",
        DlrState::Deleted => "deleted",
        DlrState::Undeliverable => "undeliverable",
        DlrState::Accepted => "accepted",
        DlrState::Unknown | DlrState::Skipped => "unknown",
        DlrState::Rejected => "rejected",
    }
}

/// The names in templates.
const NAMES: [&str; 17] = [
    "id",
    "id-hex",
    "peer-id",
    "status",
    "state",
    "error",
    "from",
    "to",
    "segments",
    "segments-delivered",
    "submit-date",
    "done-date",
    "done-time",
    "done-seconds",
    "text",
    "receipt",
    "reference",
];

/// The value of a name, encoded for a URL or a form.
fn value(name: &str, message: &Message, dlr: &DlrContent, word: &str) -> Option<String> {
    let id = message.submission_id();
    let value: Cow<'_, str> = match name {
        // The word of a state belongs to the template, so it is encoded already.
        "status" => return Some(word.to_owned()),
        "id" => id.to_string().into(),
        "id-hex" => format!("{:032x}", id.0).into(),
        "peer-id" => String::from_utf8_lossy(&dlr.peer_id.0),
        "state" => smpp::delivery_receipt::state_word(dlr.state).into(),
        "error" => dlr.error.to_string().into(),
        // Addresses of a DLR are swapped: its source is the destination of the message.
        "from" => message.destination.text(),
        "to" => message.source.text(),
        "segments" => format!("{:03}", dlr.segments.0).into(),
        "segments-delivered" => format!("{:03}", dlr.segments.1).into(),
        "submit-date" => smpp::time::format_receipt(dlr.submitted_at).into(),
        "done-date" => smpp::time::format_receipt(dlr.done_at).into(),
        "done-time" => date_and_time(dlr.done_at).into(),
        "done-seconds" => (dlr.done_at.0 / 1_000).to_string().into(),
        "text" => text::display(&message.text).0.chars().take(20).collect::<String>().into(),
        "receipt" => receipt(message, dlr).into(),
        "reference" => {
            let reference = sgip::SgipFields::read(&message.protocol_fields).reference.unwrap_or_default();
            String::from_utf8_lossy(&reference).into_owned().into()
        }
        _ => return None,
    };
    Some(percent_encode(&value))
}

/// YYYY-MM-DD hh:mm:ss, in UTC.
fn date_and_time(at: Timestamp) -> String {
    let Ok(at) = OffsetDateTime::from_unix_timestamp(i64::try_from(at.0 / 1_000).unwrap_or(0)) else {
        return String::new();
    };
    let (year, month, day) = at.to_calendar_date();
    let (hour, minute, second) = at.to_hms();
    format!("{year:04}-{:02}-{day:02} {hour:02}:{minute:02}:{second:02}", u8::from(month))
}

/// The DLR in SMPP's text form (SMPP 3.4, appendix B).
fn receipt(message: &Message, dlr: &DlrContent) -> String {
    let mut sm = smpp::Sm::default();
    let text = text::display(&message.text).0;
    smpp::delivery_receipt::write(&mut sm, dlr, &message.submission_id().to_string(), &text, false);
    String::from_utf8_lossy(&sm.short_message).into_owned()
}

/// Replaces each `{NAME}` by its value; `{{` and `}}` are braces.
fn render(template: &str, value: impl Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut rendered = String::with_capacity(template.len() * 2);
    let mut rest = template;
    while let Some(at) = rest.find(['{', '}']) {
        let (before, brace) = rest.split_at(at);
        rendered.push_str(before);
        if let Some(after) = brace.strip_prefix("{{") {
            rendered.push('{');
            rest = after;
        } else if let Some(after) = brace.strip_prefix("}}") {
            rendered.push('}');
            rest = after;
        } else {
            let name = brace.strip_prefix('{').and_then(|name| name.split_once('}'));
            let (name, after) = name.ok_or("has a brace without its counterpart; write {{ or }}")?;
            let value = value(name).ok_or_else(|| "has an unknown name in braces".to_owned())?;
            rendered.push_str(&value);
            rest = after;
        }
    }
    rendered.push_str(rest);
    Ok(rendered)
}

/// Encodes all but unreserved characters (RFC 3986 §2.3).
fn percent_encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for octet in text.bytes() {
        if octet.is_ascii_alphanumeric() || b"-._~".contains(&octet) {
            encoded.push(char::from(octet));
        } else {
            encoded.push('%');
            encoded.push_str(&model::hex(&[octet]).to_ascii_uppercase());
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::BusinessAccountOptions;
    use crate::request::SubmitItem;
    use crate::submission::read_messages;
    use model::{MessageId, PeerId, PeerMessageId};
    use serde_json::json;

    const PATTERNS: [&str; 1] = ["https://shop.example/*"];

    fn push(url: &str, body: Option<&str>) -> FrontEndDlrPush {
        let words = [("delivered", "1"), ("undeliverable", "2&code=30008")];
        FrontEndDlrPush {
            url: url.to_owned(),
            body: body.map(str::to_owned),
            words: words.map(|(state, word)| (state.to_owned(), word.to_owned())).into(),
            acknowledgement: None,
            signature: None,
        }
    }

    fn patterns(patterns: &[&str]) -> Vec<String> {
        patterns.iter().map(|&pattern| pattern.to_owned()).collect()
    }

    /// A DLR of a message that was submitted with this template.
    fn dlr(push: &FrontEndDlrPush, state: DlrState) -> Message {
        let mut account = BusinessAccountOptions::new("shop", PeerId(7), "");
        account.source.default = Some(model::Address::new(0, 1, b"10655"));
        let item = json!({ "to": "+8613012345678", "text": "Hello 世界", "reference": "a&b" });
        let item: SubmitItem = serde_json::from_value(item).unwrap();
        let mut message =
            read_messages(vec![item], Ok, &account, Timestamp(1_795_000_000_000)).unwrap().remove(0);
        let mut fields = message.protocol_fields.to_vec();
        store(push, &patterns(&PATTERNS), &mut fields).unwrap();
        message.protocol_fields = fields.into();
        std::mem::swap(&mut message.source, &mut message.destination);
        message.kind = MessageKind::Dlr(Box::new(DlrContent {
            of: MessageId(42),
            state,
            intermediate: false,
            error: 7,
            network_error: None,
            submitted_at: Timestamp(1_795_000_000_000),
            done_at: Timestamp(1_795_000_061_000),
            segments: (2, 1),
            segment: 0,
            peer_id: PeerMessageId::new(b"p/9"),
        }));
        message
    }

    fn call(push: &FrontEndDlrPush, state: DlrState) -> DlrCall {
        match target(&dlr(push, state), &patterns(&PATTERNS)) {
            DlrTarget::Url(call) => *call,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn values_are_put_into_url_and_body() {
        let url = "https://shop.example/dlr?s={status}&id={id}&sid=SM{id-hex}&f={from}&t={to}&{{x}}";
        let body = "e={error}&st={state}&p={peer-id}&n={segments}/{segments-delivered}&at={done-seconds}\
                    &on={done-time}&sub={submit-date}&done={done-date}&ref={reference}&text={text}";
        let made = call(&push(url, Some(body)), DlrState::Undeliverable);
        assert_eq!(
            made.url.as_str(),
            "https://shop.example/dlr?s=2&code=30008&id=0000000042&sid=SM0000000000000000000000000000002a\
             &f=10655&t=8613012345678&{x}"
        );
        assert_eq!(
            made.body.as_deref(),
            Some(
                "e=7&st=UNDELIV&p=p%2F9&n=002/001&at=1795000061&on=2026-11-18%2011%3A07%3A41&sub=2611181106\
                 &done=2611181107&ref=a%26b&text=Hello%20%E4%B8%96%E7%95%8C"
            )
        );
        let receipt = call(&push("https://shop.example/?{receipt}", None), DlrState::Delivered);
        let query = receipt.url.query().unwrap();
        assert!(
            query.starts_with("id%3A0000000042%20sub%3A002%20dlvrd%3A001%20submit%20date%3A2611181106"),
            "{query}"
        );
        assert!(query.contains("stat%3ADELIVRD%20err%3A007%20text%3AHello"), "{query}");
    }

    #[test]
    fn a_template_without_a_signature_is_read_as_it_was_stored_before() {
        let stored = r#"{"url":"https://shop.example/","words":{}}"#;
        let read: FrontEndDlrPush = serde_json::from_str(stored).unwrap();
        assert_eq!(read.signature, None);
        let signed = FrontEndDlrPush {
            signature: Some(FrontEndDlrSignature::Twilio),
            ..push("https://shop.example/", None)
        };
        assert!(call(&signed, DlrState::Delivered).signature.is_some());
    }

    #[test]
    fn a_state_without_a_word_is_not_pushed() {
        let push = push("https://shop.example/", None);
        assert!(matches!(target(&dlr(&push, DlrState::Expired), &patterns(&PATTERNS)), DlrTarget::NoTarget));
    }

    #[test]
    fn a_url_that_is_no_longer_allowed_gives_way_to_that_of_the_account() {
        let push = push("https://shop.example/", None);
        let dlr = dlr(&push, DlrState::Delivered);
        assert!(matches!(target(&dlr, &patterns(&["https://other.example/*"])), DlrTarget::Account));
        assert!(matches!(target(&dlr, &[]), DlrTarget::Account));
        let plain = Message { protocol_fields: Bytes::new(), ..dlr };
        assert!(matches!(target(&plain, &patterns(&PATTERNS)), DlrTarget::Account));
    }

    #[test]
    fn mistakes_are_named_without_the_url() {
        let long = format!("https://shop.example/{}", "x".repeat(MAX_URL));
        for (url, why) in [
            ("https://evil.example/token", "may name"),
            ("https://shop.example@evil.example/token", "may name"),
            ("https://{from}.shop.example/token", "may name"),
            ("token", "not a URL"),
            ("https://shop.example/{token}", "unknown name"),
            ("https://shop.example/token{", "counterpart"),
            ("https://shop.example/token}", "counterpart"),
            (&long, "2000 octets"),
        ] {
            let error = store(&push(url, None), &patterns(&PATTERNS), &mut Vec::new()).unwrap_err();
            assert!(error.contains(why) && !error.contains("token"), "{url}: {error}");
        }
        let fields = &mut Vec::new();
        assert!(store(&push("https://shop.example/", Some("{x}")), &patterns(&PATTERNS), fields).is_err());
        assert!(fields.is_empty());
    }
}
