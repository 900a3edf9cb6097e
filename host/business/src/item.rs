//! Replies and reports as business systems see them, whether they are pushed or fetched.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use doors::text;
use model::{Kind, Message, ReceiptState, ReceiptText, Timestamp};
use serde_json::{Map, Value, json};
use sgip::Fields;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// RFC 3339, UTC, in milliseconds.
pub(crate) fn stamp(at: Timestamp) -> String {
    let nanos = i128::from(at.0) * 1_000_000;
    OffsetDateTime::from_unix_timestamp_nanos(nanos)
        .ok()
        .and_then(|at| at.format(&Rfc3339).ok())
        .unwrap_or_default()
}

/// The word for a receipt's state.
pub(crate) fn state_name(state: ReceiptState) -> &'static str {
    match state {
        ReceiptState::Scheduled => "scheduled",
        ReceiptState::Enroute => "enroute",
        ReceiptState::Delivered => "delivered",
        ReceiptState::Expired => "expired",
        ReceiptState::Deleted => "cancelled",
        ReceiptState::Undeliverable => "failed",
        ReceiptState::Accepted => "relayed",
        ReceiptState::Unknown => "unknown",
        ReceiptState::Rejected => "rejected",
        ReceiptState::Skipped => "skipped",
    }
}

/// The kind of an item: the last part of its method's name.
pub(crate) fn kind(message: &Message) -> &'static str {
    match message.kind {
        Kind::Text => "reply",
        Kind::Receipt(_) => "report",
    }
}

/// Items that must keep their order among each other: reports of one message.
pub(crate) fn chain(message: &Message) -> Option<u64> {
    match &message.kind {
        Kind::Text => None,
        Kind::Receipt(text) => Some(text.of.0),
    }
}

/// One item.
pub(crate) fn show(message: &Message) -> Value {
    let mut shown = match &message.kind {
        Kind::Text => reply(message),
        Kind::Receipt(text) => report(message, text),
    };
    shown.insert("type".to_owned(), kind(message).into());
    shown.insert("id".to_owned(), message.id.to_string().into());
    Value::Object(shown)
}

fn reply(message: &Message) -> Map<String, Value> {
    let (words, coding) = text::show(&message.text);
    let mut shown = Map::new();
    let header = sgip::text::header(&message.text.octets).filter(|_| message.text.udhi);
    shown.insert("from".to_owned(), message.source.text().into());
    shown.insert("to".to_owned(), message.destination.text().into());
    shown.insert("text".to_owned(), words.into());
    shown.insert("coding".to_owned(), coding.into());
    shown.insert("octets".to_owned(), STANDARD.encode(&message.text.octets).into());
    shown.insert("received_at".to_owned(), stamp(message.accepted_at).into());
    if let Some((udh, _)) = header {
        let digits: String = udh.iter().map(|octet| format!("{octet:02x}")).collect();
        shown.insert("udh".to_owned(), digits.into());
    }
    if let Some(reserve) = Fields::read(&message.tlvs).reserve {
        let link_id = String::from_utf8_lossy(&reserve).trim_end_matches('\0').to_owned();
        shown.insert("link_id".to_owned(), link_id.into());
    }
    shown
}

fn report(message: &Message, text: &ReceiptText) -> Map<String, Value> {
    let mut shown = Map::new();
    shown.insert("message_id".to_owned(), message.submitters_id().to_string().into());
    shown.insert("state".to_owned(), state_name(text.state).into());
    shown.insert("final".to_owned(), (!text.intermediate).into());
    shown.insert("error".to_owned(), text.error.into());
    shown.insert("parts".to_owned(), text.parts.0.into());
    shown.insert("parts_delivered".to_owned(), text.parts.1.into());
    if text.part != 0 {
        shown.insert("part".to_owned(), text.part.into());
    }
    // A receipt goes the other way: its source is whom the message was for.
    shown.insert("from".to_owned(), message.destination.text().into());
    shown.insert("to".to_owned(), message.source.text().into());
    shown.insert("submitted_at".to_owned(), stamp(text.submitted_at).into());
    shown.insert("done_at".to_owned(), stamp(text.done_at).into());
    if let Some(reference) = Fields::read(&message.tlvs).reference {
        shown.insert("reference".to_owned(), json!(String::from_utf8_lossy(&reference)));
    }
    shown
}
