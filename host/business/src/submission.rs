//! Converts a request into messages and collects all errors.

use crate::dlr_push;
use crate::options::BusinessAccountOptions;
use crate::problem::{FieldError, Problem, ProblemKind};
use crate::request::{SgipFieldsInput, SubmitItem};
use bytes::{Bytes, BytesMut};
use model::{
    Address, DlrRequest, Message, MessageChanges, MessageId, MessageKind, PluginVersion, Priority,
    RejectReason, RoutingDecision, Text, Timestamp, Verdict,
};
use ports::text::{self, TextCoding};
use sgip::SgipFields;
use sp_session::SpFields;
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// The placeholder of a verdict before routing.
static UNROUTED: LazyLock<Arc<PluginVersion>> =
    LazyLock::new(|| Arc::new(PluginVersion { plugin: String::new(), version: String::new() }));

/// Reads the messages of a call. Each is a separate JSON value, so that an error in one does not hide errors in the next.
pub(crate) fn messages(
    items: Vec<serde_json::Value>,
    account: &BusinessAccountOptions,
    wall_clock: Timestamp,
) -> Result<Vec<Message>, Problem> {
    let read = |item| serde_json::from_value::<SubmitItem>(item).map_err(|error| error.to_string());
    read_messages(items, read, account, wall_clock)
}

/// Like [`messages`], for items that `read` parses.
pub(crate) fn read_messages<I>(
    items: Vec<I>,
    read: impl Fn(I) -> Result<SubmitItem, String>,
    account: &BusinessAccountOptions,
    wall_clock: Timestamp,
) -> Result<Vec<Message>, Problem> {
    let alone = items.len() == 1;
    let mut errors = FieldErrors { list: Vec::new(), omitted: 0, at: String::new() };
    let mut messages = Vec::new();
    if items.is_empty() {
        return Err(Problem::new(ProblemKind::Invalid, "no message"));
    }
    if items.len() > account.batch {
        let detail = format!("{} messages in one call; at most {} are allowed", items.len(), account.batch);
        return Err(Problem::new(ProblemKind::Invalid, detail));
    }
    for (index, item) in items.into_iter().enumerate() {
        errors.at = if alone { String::new() } else { format!("messages[{index}].") };
        match read(item) {
            Ok(item) => messages.extend(one(&item, account, wall_clock, &mut errors)),
            Err(error) => {
                errors.at.clear();
                errors.add(format!("messages[{index}]"), error);
            }
        }
        if messages.len() > account.batch {
            let detail =
                format!("more than {} messages in one call; each number counts as a message", account.batch);
            return Err(Problem::new(ProblemKind::Invalid, detail));
        }
    }
    if errors.list.is_empty() { Ok(messages) } else { Err(Problem::invalid(errors.all())) }
}

/// Maximum number of errors reported; a request could contain a million, two octets each.
const MAX_FIELD_ERRORS: usize = 200;

struct FieldErrors {
    list: Vec<FieldError>,
    /// Errors beyond [`MAX_FIELD_ERRORS`].
    omitted: usize,
    /// The prefix of field names.
    at: String,
}

impl FieldErrors {
    fn add(&mut self, field: impl AsRef<str>, reason: impl Into<String>) {
        if self.list.len() >= MAX_FIELD_ERRORS {
            self.omitted += 1;
            return;
        }
        let field = format!("{}{}", self.at, field.as_ref());
        self.list.push(FieldError { field, reason: reason.into() });
    }

    fn found(&self) -> usize {
        self.list.len() + self.omitted
    }

    fn all(mut self) -> Vec<FieldError> {
        if self.omitted > 0 {
            let reason = format!("{} more errors", self.omitted);
            self.list.push(FieldError { field: "messages".to_owned(), reason });
        }
        self.list
    }
}

fn one(
    item: &SubmitItem,
    account: &BusinessAccountOptions,
    wall_clock: Timestamp,
    errors: &mut FieldErrors,
) -> Vec<Message> {
    let before = errors.found();
    let source = source(item.from.as_deref(), account, errors);
    let text = body(item, account, errors);
    let dlr_request = match item.dlr.as_deref() {
        None | Some("final") => DlrRequest::FINAL,
        Some("none") => DlrRequest::NONE,
        Some("failure") => DlrRequest { on_failure: true, ..DlrRequest::NONE },
        Some("all") => DlrRequest { intermediate: true, ..DlrRequest::FINAL },
        Some(other) => {
            errors.add("dlr", format!("is {other:?}, and must be none, final, failure or all"));
            DlrRequest::NONE
        }
    };
    let priority = item.priority.unwrap_or(0);
    if priority > 3 {
        errors.add("priority", "must be 0 to 3");
    }
    let validity = match item.validity {
        Some(0) => {
            errors.add("validity", "must be at least one second");
            account.validity
        }
        Some(seconds) => Duration::from_secs(seconds),
        None => account.validity,
    };
    let scheduled = item.schedule.as_deref().and_then(|text| match OffsetDateTime::parse(text, &Rfc3339) {
        Ok(at) => Some(Timestamp(u64::try_from(at.unix_timestamp_nanos() / 1_000_000).unwrap_or(0))),
        Err(_) => {
            errors.add(
                "schedule",
                format!("is {text:?}, and must be a time such as 2026-11-20T20:32:25+08:00"),
            );
            None
        }
    });
    let service_type = item.service_type.clone().unwrap_or_default();
    if service_type.len() > 5 || !service_type.is_ascii() {
        errors.add("service_type", "must be at most five ASCII characters");
    }
    let tlvs = tlvs(item, account, errors);
    let protocol_fields = fields(item, account, errors);
    let numbers = item.to.clone().into_vec();
    if numbers.is_empty() {
        errors.add("to", "must have at least one number");
    }
    // This check precedes the creation of a message for each number.
    if numbers.len() > account.batch {
        errors.add("to", format!("names {} numbers; at most {} are allowed", numbers.len(), account.batch));
        return Vec::new();
    }
    let many = numbers.len() > 1;
    let mut destinations = Vec::new();
    for (index, number) in numbers.iter().enumerate() {
        match destination(number) {
            Ok(address) => destinations.push(address),
            Err(reason) => errors.add(if many { format!("to[{index}]") } else { "to".to_owned() }, reason),
        }
    }
    if errors.found() > before {
        return Vec::new();
    }
    let start = scheduled.map_or(wall_clock, |at| at.max(wall_clock));
    let message = Message {
        id: MessageId::default(),
        kind: MessageKind::Text,
        origin: account.peer,
        source,
        destination: Address::default(),
        service_type: service_type.into(),
        protocol_id: 0,
        esm_class: 0,
        priority: Priority::new(priority),
        dlr_request,
        replace_if_present: false,
        submission: None,
        text,
        tlvs,
        protocol_fields,
        sealed: None,
        accepted_at: Timestamp::default(),
        scheduled,
        expires_at: start + validity,
        routed: RoutingDecision::new(Verdict::Reject(RejectReason::NoRoute), UNROUTED.clone()),
    };
    destinations.into_iter().map(|destination| Message { destination, ..message.clone() }).collect()
}

/// Maximum number of TLVs of a message, and of octets of their values together.
const MAX_TLVS: usize = 32;
const MAX_TLV_OCTETS: usize = 4_096;

fn tlvs(item: &SubmitItem, account: &BusinessAccountOptions, errors: &mut FieldErrors) -> Bytes {
    let mut octets = Vec::new();
    if item.tlvs.len() > MAX_TLVS {
        errors.add("tlvs", format!("has {} TLVs; at most {MAX_TLVS} are allowed", item.tlvs.len()));
        return Bytes::new();
    }
    for (tag, value) in &item.tlvs {
        match (model::parse_tlv_tag(tag), model::from_hex(value)) {
            (Some(tag), _) if MessageChanges::FIXED_TAGS.contains(&tag) => {
                errors.add("tlvs", format!("has the tag {tag:04x}, whose value the appliance makes itself"));
            }
            (Some(tag), Some(value)) => model::put_tlv(&mut octets, tag, &value),
            (None, _) => {
                errors.add("tlvs", format!("has the tag {tag:?}, and must have four hexadecimal digits"));
            }
            (_, None) => errors.add("tlvs", format!("{tag}: must be pairs of hexadecimal digits")),
        }
    }
    if octets.len() > MAX_TLV_OCTETS {
        errors.add("tlvs", format!("has more than {MAX_TLV_OCTETS} octets"));
    }
    account.tlv_rules.apply(octets.into()).unwrap_or_else(|tag| {
        errors.add("tlvs", format!("lacks the tag {tag:04x}, which the account requires"));
        Bytes::new()
    })
}

fn source(from: Option<&str>, account: &BusinessAccountOptions, errors: &mut FieldErrors) -> Address {
    let source = match (from, &account.source.default) {
        (Some(from), _) if !from.is_empty() => {
            let digits = from.strip_prefix('+').unwrap_or(from);
            if !digits.is_empty() && digits.len() <= 20 && digits.bytes().all(|c| c.is_ascii_digit()) {
                Address::new(u8::from(from.starts_with('+')), 1, digits.as_bytes())
            } else if from.len() <= 11 && from.bytes().all(|c| c.is_ascii_graphic() || c == b' ') {
                Address::new(5, 0, from.as_bytes())
            } else {
                errors.add("from", "must have at most 20 digits, or at most 11 ASCII characters");
                return Address::default();
            }
        }
        (_, Some(default)) => default.clone(),
        (_, None) => {
            errors.add("from", "is missing, and the account has no default source");
            return Address::default();
        }
    };
    if !account.source.allows(&source.value) {
        errors.add("from", "is not a source that this account may use");
    }
    source
}

fn destination(number: &str) -> Result<Address, String> {
    let digits = number.strip_prefix('+').unwrap_or(number);
    if !(3..=20).contains(&digits.len()) || !digits.bytes().all(|c| c.is_ascii_digit()) {
        return Err(format!(
            "{number:?} is not a phone number: expected 3 to 20 digits, optionally with a leading +"
        ));
    }
    Ok(Address::new(u8::from(number.starts_with('+')), 1, digits.as_bytes()))
}

fn body(item: &SubmitItem, account: &BusinessAccountOptions, errors: &mut FieldErrors) -> Text {
    let coding = match item.coding.as_deref().map(|name| (name, TextCoding::of(name))) {
        None => TextCoding::Auto,
        Some((_, Some(coding))) => coding,
        Some((name, None)) => {
            errors.add("coding", format!("is {name:?}, and must be {}", TextCoding::NAMES));
            return Text::default();
        }
    };
    let (body, data_coding) = match (&item.text, &item.octets) {
        (Some(body), None) => match encode(body, coding, item.message_class) {
            Ok(encoded) => encoded,
            Err(reason) => {
                errors.add("text", reason);
                return Text::default();
            }
        },
        (None, Some(octets)) => {
            let Some(octets) = model::from_hex(octets) else {
                errors.add("octets", "must be pairs of hexadecimal digits");
                return Text::default();
            };
            let data_coding = match coding {
                TextCoding::Auto | TextCoding::Binary => 4,
                TextCoding::Gsm => 0,
                TextCoding::Ascii => 1,
                TextCoding::Ucs2 => 8,
                TextCoding::Gbk => 15,
            };
            (Bytes::from(octets), data_coding)
        }
        _ => {
            errors.add("text", "exactly one of text and octets must be set");
            return Text::default();
        }
    };
    let udh = match item.udh.as_deref().map(model::from_hex) {
        None => Vec::new(),
        Some(Some(udh)) if udh.first().is_some_and(|length| usize::from(*length) + 1 == udh.len()) => udh,
        Some(_) => {
            errors.add("udh", "must be hexadecimal; the first octet is the number of octets that follow");
            Vec::new()
        }
    };
    let udhi = !udh.is_empty();
    let octets: Bytes = if udhi { [&udh[..], &body].concat().into() } else { body };
    if udhi && octets.len() > 140 {
        errors.add("text", "does not fit into one message: header and text have at most 140 octets");
    }
    let data_coding = match item.message_class {
        None => data_coding,
        Some(class) => with_message_class(data_coding, class).unwrap_or_else(|| {
            errors.add("message_class", "must be 0 to 3, with the GSM alphabet, UCS-2 or octets");
            data_coding
        }),
    };
    let segments = text::segment_count(&octets, data_coding, udhi);
    if segments > account.max_segments {
        errors.add(
            "text",
            format!("would need {segments} segments; at most {} are allowed", account.max_segments),
        );
    }
    Text { payload: octets.len() > 140, octets, data_coding, udhi }
}

/// Encodes a text. With a message class, data coding 1 (ASCII) cannot be used.
fn encode(body: &str, coding: TextCoding, message_class: Option<u8>) -> Result<(Bytes, u8), String> {
    match (coding, message_class) {
        (TextCoding::Auto, Some(_)) => {
            text::encode(body, TextCoding::Gsm).or_else(|_| text::encode(body, TextCoding::Ucs2))
        }
        _ => text::encode(body, coding),
    }
}

/// The data coding with a message class (3GPP TS 23.038 §4); `None` if there is none.
fn with_message_class(data_coding: u8, class: u8) -> Option<u8> {
    (class < 4 && matches!(data_coding, 0 | 4 | 8)).then_some(0x10 | data_coding | class)
}

fn fields(item: &SubmitItem, account: &BusinessAccountOptions, errors: &mut FieldErrors) -> Bytes {
    let mut input = item.sgip.clone().unwrap_or_default();
    let mut short = |name: &str, value: Option<String>, most: usize| {
        let value = value?;
        if value.len() > most || !value.is_ascii() {
            errors.add(name, format!("must be at most {most} ASCII characters"));
        }
        Some(Bytes::from(value.into_bytes()))
    };
    let mut fields = SgipFields {
        charge_number: short("sgip.charge_number", input.charge_number.take(), 21),
        corp_id: short("sgip.corp_id", input.corp_id.take(), 5),
        service_type: short("sgip.service_type", input.service_type.take(), 10),
        fee_value: short("sgip.fee_value", input.fee_value.take(), 6),
        given_value: short("sgip.given_value", input.given_value.take(), 6),
        reference: short("reference", item.reference.clone(), 100),
        ..SgipFields::default()
    };
    let link_id = short("sgip.link_id", input.link_id.take(), 20).unwrap_or_default();
    let mut reserve = [0; 8];
    if let Some(start) = reserve.get_mut(..link_id.len())
        && !link_id.is_empty()
    {
        start.copy_from_slice(&link_id);
        fields.reserve = Some(reserve);
    }
    let SgipFieldsInput { fee_type, agent_flag, mo_related, priority, report_flag, .. } = input;
    let limits = [
        ("sgip.fee_type", fee_type, 4),
        ("sgip.agent_flag", agent_flag, 1),
        ("sgip.mo_related", mo_related, 3),
        ("sgip.priority", priority, 9),
        ("sgip.report_flag", report_flag, 3),
    ];
    for (name, value, most) in limits {
        if value.is_some_and(|value| value > most) {
            errors.add(name, format!("must be 0 to {most}"));
        }
    }
    (fields.fee_type, fields.agent_flag, fields.mo_related) = (fee_type, agent_flag, mo_related);
    (fields.priority, fields.report_flag) = (priority, report_flag);
    let mut protocol_fields = BytesMut::new();
    fields.append_to(&mut protocol_fields);
    if fields.reserve.is_none() {
        SpFields { link_id, ..SpFields::default() }.append_to(&mut protocol_fields);
    }
    let mut protocol_fields = protocol_fields.to_vec();
    let patterns = account.push.as_ref().map_or(&[][..], |push| &push.dlr_urls);
    if let Some(push) = &item.dlr_push
        && !patterns.is_empty()
        && let Err(why) = dlr_push::store(push, patterns, &mut protocol_fields)
    {
        errors.add("dlr_push", why);
    }
    protocol_fields.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::PeerId;
    use serde_json::{Value, json};

    const WALL: Timestamp = Timestamp(1_795_000_000_000);

    fn account() -> BusinessAccountOptions {
        let mut account = BusinessAccountOptions::new("shop", PeerId(7), "");
        account.source.default = Some(Address::new(0, 1, b"10655"));
        account.max_segments = 2;
        account.batch = 3;
        account
    }

    fn read(items: &[Value]) -> Result<Vec<Message>, Vec<String>> {
        messages(items.to_vec(), &account(), WALL).map_err(|problem| match problem.errors.as_slice() {
            [] => vec![problem.detail],
            errors => errors.iter().map(|errors| format!("{}: {}", errors.field, errors.reason)).collect(),
        })
    }

    #[test]
    fn each_destination_gets_its_own_message() {
        let item = json!({ "to": ["8613012345678", "+4915112345678"], "text": "你好", "reference": "order 7",
            "dlr": "failure", "validity": 60, "sgip": { "fee_type": 2, "link_id": "LINK" } });
        let read = read(&[item]).unwrap();
        assert_eq!(read.len(), 2);
        let message = &read[1];
        assert_eq!((message.source.text(), message.destination.ton), ("10655".into(), 1));
        assert_eq!((message.text.data_coding, message.text.octets.len()), (8, 4));
        assert_eq!((message.dlr_request.on_success, message.dlr_request.on_failure), (false, true));
        assert_eq!(message.expires_at, WALL + Duration::from_secs(60));
        let fields = SgipFields::read(&message.protocol_fields);
        assert_eq!((fields.fee_type, fields.reserve), (Some(2), Some(*b"LINK\0\0\0\0")));
        assert_eq!(fields.reference.as_deref(), Some(&b"order 7"[..]));
    }

    #[test]
    fn tlvs_go_with_the_message_unless_the_appliance_makes_them() {
        let with = |tlvs: Value| read(&[json!({ "to": "123456", "text": "x", "tlvs": tlvs })]);
        let message = &with(json!({ "1401": "6272616e64", "1501": "" })).unwrap()[0];
        let found: Vec<_> = model::tlvs(&message.tlvs).collect();
        assert_eq!(found, [(0x1401, &b"brand"[..]), (0x1501, b"")]);
        let mut account = account();
        account.tlv_rules.required = vec![0x1400];
        let lacking = messages(vec![json!({ "to": "123456", "text": "x" })], &account, WALL).unwrap_err();
        assert!(lacking.errors[0].reason.contains("lacks the tag 1400"), "{:?}", lacking.errors);
        for (tlvs, expected) in [
            (json!({ "0424": "00" }), "makes itself"),
            (json!({ "14": "00" }), "four hexadecimal digits"),
            (json!({ "1401": "0" }), "pairs of hexadecimal digits"),
            (json!({ "1401": "00".repeat(5_000) }), "more than 4096 octets"),
        ] {
            let errors = with(tlvs).unwrap_err().join(" ");
            assert!(errors.contains(expected), "{errors}");
        }
    }

    #[test]
    fn an_empty_text_is_a_message() {
        for item in [json!({ "to": "123456", "text": "" }), json!({ "to": "123456", "octets": "" })] {
            let read = read(&[item]).unwrap();
            assert_eq!((read.len(), read[0].text.octets.len()), (1, 0));
        }
    }

    #[test]
    fn the_number_of_field_errors_is_bounded() {
        let account = BusinessAccountOptions { batch: 1000, ..account() };
        let item = json!({ "to": vec![""; 1000], "text": "x" });
        let problem = messages(vec![item; 3], &account, WALL).unwrap_err();
        assert_eq!(problem.errors.len(), MAX_FIELD_ERRORS + 1);
        assert_eq!(problem.errors.last().map(|errors| errors.reason.as_str()), Some("2800 more errors"));
    }

    #[test]
    fn all_errors_are_reported_at_once() {
        let bad = json!({ "from": "a name that is too long", "to": ["8613012345678", "nobody"], "text": "x",
            "coding": "utf-7", "priority": 9, "schedule": "tomorrow", "dlr": "maybe" });
        let errors = read(&[bad, json!({ "to": "123", "text": "y".repeat(400) }), json!({ "text": "z" })]);
        assert_eq!(
            errors.unwrap_err(),
            [
                "messages[0].from: must have at most 20 digits, or at most 11 ASCII characters",
                "messages[0].coding: is \"utf-7\", and must be auto, ascii, gsm, ucs2, gbk or binary",
                "messages[0].dlr: is \"maybe\", and must be none, final, failure or all",
                "messages[0].priority: must be 0 to 3",
                "messages[0].schedule: is \"tomorrow\", and must be a time such as 2026-11-20T20:32:25+08:00",
                "messages[0].to[1]: \"nobody\" is not a phone number: expected 3 to 20 digits, optionally with a leading +",
                "messages[1].text: would need 3 segments; at most 2 are allowed",
                "messages[2]: missing field `to`",
            ]
        );
        assert_eq!(read(&[]).unwrap_err(), ["no message"]);
        assert_eq!(read(&vec![json!({}); 4]).unwrap_err(), ["4 messages in one call; at most 3 are allowed"]);
        let four = read(&[json!({ "to": ["123", "124", "125", "126"], "text": "x" })]).unwrap_err();
        assert_eq!(four, ["to: names 4 numbers; at most 3 are allowed"]);
        let unknown = read(&[json!({ "to": "123", "text": "x", "txet": 1 })]).unwrap_err();
        assert!(unknown[0].contains("unknown field `txet`"), "{unknown:?}");
        let both = read(&[json!({ "to": "123", "text": "x", "octets": "00" })]).unwrap_err();
        assert_eq!(both, ["text: exactly one of text and octets must be set"]);
    }

    #[test]
    fn octets_and_headers() {
        let item = json!({ "to": "123", "octets": "c4e3", "coding": "gbk", "udh": "0500032d0201" });
        let messages = read(&[item]).unwrap();
        assert!(messages[0].text.udhi && messages[0].text.data_coding == 15);
        assert_eq!(&messages[0].text.octets[..], [5, 0, 3, 0x2d, 2, 1, 0xc4, 0xe3]);
        for wrong in ["c4e", "+4"] {
            assert!(read(&[json!({ "to": "123", "octets": wrong })]).is_err());
        }
        assert!(read(&[json!({ "to": "123", "text": "x", "udh": "0600" })]).is_err());
    }
}
