//! From a request to messages, with everything that is wrong found at once.

use crate::options::AccountOptions;
use crate::problem::{Kind, Problem, Wrong};
use crate::request::{Item, SgipItem};
use bytes::{Bytes, BytesMut};
use doors::text::{self, Coding};
use model::{
    Address, DecidedBy, Kind as MessageKind, Message, MessageId, Priority, ReceiptRequest, RejectReason,
    Routed, Text, Timestamp, Verdict,
};
use sgip::Fields;
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// What stands in a message until it has been routed.
static UNROUTED: LazyLock<Arc<DecidedBy>> =
    LazyLock::new(|| Arc::new(DecidedBy { plugin: String::new(), version: String::new() }));

/// Reads the messages of a call. Each is a JSON value of its own, so that what is wrong with one does not hide the next.
pub(crate) fn messages(
    items: Vec<serde_json::Value>,
    account: &AccountOptions,
    wall: Timestamp,
) -> Result<Vec<Message>, Problem> {
    let alone = items.len() == 1;
    let mut wrong = Wrongs { list: Vec::new(), untold: 0, at: String::new() };
    let mut messages = Vec::new();
    if items.is_empty() {
        return Err(Problem::new(Kind::Invalid, "no message at all"));
    }
    if items.len() > account.batch {
        let detail = format!("{} messages in one call; at most {} are taken", items.len(), account.batch);
        return Err(Problem::new(Kind::Invalid, detail));
    }
    for (index, item) in items.into_iter().enumerate() {
        wrong.at = if alone { String::new() } else { format!("messages[{index}].") };
        match serde_json::from_value::<Item>(item) {
            Ok(item) => messages.extend(one(&item, account, wall, &mut wrong)),
            Err(error) => {
                wrong.at.clear();
                wrong.add(format!("messages[{index}]"), error.to_string());
            }
        }
        if messages.len() > account.batch {
            let detail = format!("more than {} messages in one call, one a number", account.batch);
            return Err(Problem::new(Kind::Invalid, detail));
        }
    }
    if wrong.list.is_empty() { Ok(messages) } else { Err(Problem::invalid(wrong.all())) }
}

/// How many wrong things are told of; a request may hold a million, each of two octets.
const TOLD: usize = 200;

struct Wrongs {
    list: Vec<Wrong>,
    /// Those beyond [`TOLD`].
    untold: usize,
    /// What stands before the name of a field.
    at: String,
}

impl Wrongs {
    fn add(&mut self, field: impl AsRef<str>, reason: impl Into<String>) {
        if self.list.len() >= TOLD {
            self.untold += 1;
            return;
        }
        let field = format!("{}{}", self.at, field.as_ref());
        self.list.push(Wrong { field, reason: reason.into() });
    }

    fn found(&self) -> usize {
        self.list.len() + self.untold
    }

    fn all(mut self) -> Vec<Wrong> {
        if self.untold > 0 {
            let reason = format!("{} more things are wrong", self.untold);
            self.list.push(Wrong { field: "messages".to_owned(), reason });
        }
        self.list
    }
}

fn one(item: &Item, account: &AccountOptions, wall: Timestamp, wrong: &mut Wrongs) -> Vec<Message> {
    let before = wrong.found();
    let source = source(item.from.as_deref(), account, wrong);
    let text = body(item, account, wrong);
    let receipts = match item.report.as_deref() {
        None | Some("final") => ReceiptRequest::FINAL,
        Some("none") => ReceiptRequest::NONE,
        Some("failure") => ReceiptRequest { on_failure: true, ..ReceiptRequest::NONE },
        Some("all") => ReceiptRequest { intermediate: true, ..ReceiptRequest::FINAL },
        Some(other) => {
            wrong.add("report", format!("is {other:?}, and must be none, final, failure or all"));
            ReceiptRequest::NONE
        }
    };
    let priority = item.priority.unwrap_or(0);
    if priority > 3 {
        wrong.add("priority", "must be 0 to 3");
    }
    let validity = match item.validity {
        Some(0) => {
            wrong.add("validity", "must be at least one second");
            account.validity
        }
        Some(seconds) => Duration::from_secs(seconds),
        None => account.validity,
    };
    let scheduled = item.schedule.as_deref().and_then(|text| match OffsetDateTime::parse(text, &Rfc3339) {
        Ok(at) => Some(Timestamp(u64::try_from(at.unix_timestamp_nanos() / 1_000_000).unwrap_or(0))),
        Err(_) => {
            wrong.add(
                "schedule",
                format!("is {text:?}, and must be a time such as 2026-11-20T20:32:25+08:00"),
            );
            None
        }
    });
    let service_type = item.service_type.clone().unwrap_or_default();
    if service_type.len() > 5 || !service_type.is_ascii() {
        wrong.add("service_type", "must be at most five ASCII characters");
    }
    let tlvs = fields(item, wrong);
    let numbers = item.to.clone().into_vec();
    if numbers.is_empty() {
        wrong.add("to", "names nobody");
    }
    // Before there is a message for each.
    if numbers.len() > account.batch {
        wrong.add("to", format!("names {} numbers; at most {} are taken", numbers.len(), account.batch));
        return Vec::new();
    }
    let many = numbers.len() > 1;
    let mut destinations = Vec::new();
    for (index, number) in numbers.iter().enumerate() {
        match destination(number) {
            Ok(address) => destinations.push(address),
            Err(reason) => wrong.add(if many { format!("to[{index}]") } else { "to".to_owned() }, reason),
        }
    }
    if wrong.found() > before {
        return Vec::new();
    }
    let start = scheduled.map_or(wall, |at| at.max(wall));
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
        receipts,
        replace_if_present: false,
        submission: None,
        text,
        tlvs,
        accepted_at: Timestamp::default(),
        scheduled,
        expires_at: start + validity,
        routed: Routed::new(Verdict::Reject(RejectReason::NoRoute), UNROUTED.clone()),
    };
    destinations.into_iter().map(|destination| Message { destination, ..message.clone() }).collect()
}

fn source(from: Option<&str>, account: &AccountOptions, wrong: &mut Wrongs) -> Address {
    let source = match (from, &account.source.default) {
        (Some(from), _) if !from.is_empty() => {
            let digits = from.strip_prefix('+').unwrap_or(from);
            if !digits.is_empty() && digits.len() <= 20 && digits.bytes().all(|c| c.is_ascii_digit()) {
                Address::new(u8::from(from.starts_with('+')), 1, digits.as_bytes())
            } else if from.len() <= 11 && from.bytes().all(|c| c.is_ascii_graphic() || c == b' ') {
                Address::new(5, 0, from.as_bytes())
            } else {
                wrong.add("from", "must be at most 20 digits, or at most 11 ASCII characters");
                return Address::default();
            }
        }
        (_, Some(default)) => default.clone(),
        (_, None) => {
            wrong.add("from", "is missing, and the account has no default");
            return Address::default();
        }
    };
    if !account.source.allows(&source.value) {
        wrong.add("from", "is not a sender that this account may use");
    }
    source
}

fn destination(number: &str) -> Result<Address, String> {
    let digits = number.strip_prefix('+').unwrap_or(number);
    if !(3..=20).contains(&digits.len()) || !digits.bytes().all(|c| c.is_ascii_digit()) {
        return Err(format!("{number:?} is no number: 3 to 20 digits, with or without + in front"));
    }
    Ok(Address::new(u8::from(number.starts_with('+')), 1, digits.as_bytes()))
}

fn hex(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) || !text.is_ascii() {
        return None;
    }
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(text.get(at..at + 2)?, 16).ok()).collect()
}

fn body(item: &Item, account: &AccountOptions, wrong: &mut Wrongs) -> Text {
    let coding = match item.coding.as_deref().map(|name| (name, Coding::of(name))) {
        None => Coding::Auto,
        Some((_, Some(coding))) => coding,
        Some((name, None)) => {
            wrong.add("coding", format!("is {name:?}, and must be {}", Coding::NAMES));
            return Text::default();
        }
    };
    let (words, data_coding) = match (&item.text, &item.octets) {
        (Some(words), None) => match text::encode(words, coding) {
            Ok(encoded) => encoded,
            Err(reason) => {
                wrong.add("text", reason);
                return Text::default();
            }
        },
        (None, Some(octets)) => {
            let Some(octets) = hex(octets) else {
                wrong.add("octets", "must be pairs of hexadecimal digits");
                return Text::default();
            };
            let data_coding = match coding {
                Coding::Auto | Coding::Binary => 4,
                Coding::Gsm => 0,
                Coding::Ascii => 1,
                Coding::Ucs2 => 8,
                Coding::Gbk => 15,
            };
            (Bytes::from(octets), data_coding)
        }
        _ => {
            wrong.add("text", "or octets must be given, and not both");
            return Text::default();
        }
    };
    let udh = match item.udh.as_deref().map(hex) {
        None => Vec::new(),
        Some(Some(udh)) if udh.first().is_some_and(|length| usize::from(*length) + 1 == udh.len()) => udh,
        Some(_) => {
            wrong.add("udh", "must be hexadecimal, and its first octet the number of those that follow");
            Vec::new()
        }
    };
    let udhi = !udh.is_empty();
    let octets: Bytes = if udhi { [&udh[..], &words].concat().into() } else { words };
    if udhi && octets.len() > 140 {
        wrong.add("text", "does not fit into one message beside the header: 140 octets with it");
    }
    let parts = text::parts(&octets, data_coding, udhi);
    if parts > account.parts {
        wrong.add("text", format!("would need {parts} parts; at most {} are taken", account.parts));
    }
    Text { payload: octets.len() > 140, octets, data_coding, udhi }
}

fn fields(item: &Item, wrong: &mut Wrongs) -> Bytes {
    let mut given = item.sgip.clone().unwrap_or_default();
    let mut short = |name: &str, value: Option<String>, most: usize| {
        let value = value?;
        if value.len() > most || !value.is_ascii() {
            wrong.add(name, format!("must be at most {most} ASCII characters"));
        }
        Some(Bytes::from(value.into_bytes()))
    };
    let mut fields = Fields {
        charge_number: short("sgip.charge_number", given.charge_number.take(), 21),
        corp_id: short("sgip.corp_id", given.corp_id.take(), 5),
        service_type: short("sgip.service_type", given.service_type.take(), 10),
        fee_value: short("sgip.fee_value", given.fee_value.take(), 6),
        given_value: short("sgip.given_value", given.given_value.take(), 6),
        reference: short("reference", item.reference.clone(), 100),
        ..Fields::default()
    };
    let link_id = short("sgip.link_id", given.link_id.take(), 8);
    fields.reserve = link_id.map(|link_id| {
        let mut reserve = [0; 8];
        for (octet, from) in reserve.iter_mut().zip(link_id.iter()) {
            *octet = *from;
        }
        reserve
    });
    let SgipItem { fee_type, agent_flag, mo_related, priority, report_flag, .. } = given;
    let limits = [
        ("sgip.fee_type", fee_type, 4),
        ("sgip.agent_flag", agent_flag, 1),
        ("sgip.mo_related", mo_related, 3),
        ("sgip.priority", priority, 9),
        ("sgip.report_flag", report_flag, 3),
    ];
    for (name, value, most) in limits {
        if value.is_some_and(|value| value > most) {
            wrong.add(name, format!("must be 0 to {most}"));
        }
    }
    (fields.fee_type, fields.agent_flag, fields.mo_related) = (fee_type, agent_flag, mo_related);
    (fields.priority, fields.report_flag) = (priority, report_flag);
    let mut tlvs = BytesMut::new();
    fields.append_to(&mut tlvs);
    tlvs.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::PeerId;
    use serde_json::{Value, json};

    const WALL: Timestamp = Timestamp(1_795_000_000_000);

    fn account() -> AccountOptions {
        let mut account = AccountOptions::new("shop", PeerId(7), "");
        account.source.default = Some(Address::new(0, 1, b"10655"));
        account.parts = 2;
        account.batch = 3;
        account
    }

    fn read(items: &[Value]) -> Result<Vec<Message>, Vec<String>> {
        messages(items.to_vec(), &account(), WALL).map_err(|problem| match problem.errors.as_slice() {
            [] => vec![problem.detail],
            errors => errors.iter().map(|wrong| format!("{}: {}", wrong.field, wrong.reason)).collect(),
        })
    }

    #[test]
    fn a_text_for_several_is_a_message_each() {
        let item = json!({ "to": ["8613012345678", "+4915112345678"], "text": "你好", "reference": "order 7",
            "report": "failure", "validity": 60, "sgip": { "fee_type": 2, "link_id": "LINK" } });
        let read = read(&[item]).unwrap();
        assert_eq!(read.len(), 2);
        let message = &read[1];
        assert_eq!((message.source.text(), message.destination.ton), ("10655".into(), 1));
        assert_eq!((message.text.data_coding, message.text.octets.len()), (8, 4));
        assert_eq!((message.receipts.on_success, message.receipts.on_failure), (false, true));
        assert_eq!(message.expires_at, WALL + Duration::from_secs(60));
        let fields = Fields::read(&message.tlvs);
        assert_eq!((fields.fee_type, fields.reserve), (Some(2), Some(*b"LINK\0\0\0\0")));
        assert_eq!(fields.reference.as_deref(), Some(&b"order 7"[..]));
    }

    #[test]
    fn an_empty_text_is_a_message() {
        for item in [json!({ "to": "123456", "text": "" }), json!({ "to": "123456", "octets": "" })] {
            let read = read(&[item]).unwrap();
            assert_eq!((read.len(), read[0].text.octets.len()), (1, 0));
        }
    }

    #[test]
    fn of_very_much_that_is_wrong_some_is_told() {
        let account = AccountOptions { batch: 1000, ..account() };
        let item = json!({ "to": vec![""; 1000], "text": "x" });
        let problem = messages(vec![item; 3], &account, WALL).unwrap_err();
        assert_eq!(problem.errors.len(), TOLD + 1);
        assert_eq!(
            problem.errors.last().map(|wrong| wrong.reason.as_str()),
            Some("2800 more things are wrong")
        );
    }

    #[test]
    fn everything_wrong_is_told_at_once() {
        let bad = json!({ "from": "a name that is too long", "to": ["8613012345678", "nobody"], "text": "x",
            "coding": "utf-7", "priority": 9, "schedule": "tomorrow", "report": "maybe" });
        let told = read(&[bad, json!({ "to": "123", "text": "y".repeat(400) }), json!({ "text": "z" })]);
        assert_eq!(
            told.unwrap_err(),
            [
                "messages[0].from: must be at most 20 digits, or at most 11 ASCII characters",
                "messages[0].coding: is \"utf-7\", and must be auto, ascii, gsm, ucs2, gbk or binary",
                "messages[0].report: is \"maybe\", and must be none, final, failure or all",
                "messages[0].priority: must be 0 to 3",
                "messages[0].schedule: is \"tomorrow\", and must be a time such as 2026-11-20T20:32:25+08:00",
                "messages[0].to[1]: \"nobody\" is no number: 3 to 20 digits, with or without + in front",
                "messages[1].text: would need 3 parts; at most 2 are taken",
                "messages[2]: missing field `to`",
            ]
        );
        assert_eq!(read(&[]).unwrap_err(), ["no message at all"]);
        assert_eq!(read(&vec![json!({}); 4]).unwrap_err(), ["4 messages in one call; at most 3 are taken"]);
        let four = read(&[json!({ "to": ["123", "124", "125", "126"], "text": "x" })]).unwrap_err();
        assert_eq!(four, ["to: names 4 numbers; at most 3 are taken"]);
        let unknown = read(&[json!({ "to": "123", "text": "x", "txet": 1 })]).unwrap_err();
        assert!(unknown[0].contains("unknown field `txet`"), "{unknown:?}");
        let both = read(&[json!({ "to": "123", "text": "x", "octets": "00" })]).unwrap_err();
        assert_eq!(both, ["text: or octets must be given, and not both"]);
    }

    #[test]
    fn octets_and_headers() {
        let item = json!({ "to": "123", "octets": "c4e3", "coding": "gbk", "udh": "0500032d0201" });
        let read_ = read(&[item]).unwrap();
        assert!(read_[0].text.udhi && read_[0].text.data_coding == 15);
        assert_eq!(&read_[0].text.octets[..], [5, 0, 3, 0x2d, 2, 1, 0xc4, 0xe3]);
        assert!(read(&[json!({ "to": "123", "octets": "c4e" })]).is_err());
        assert!(read(&[json!({ "to": "123", "text": "x", "udh": "0600" })]).is_err());
    }
}
