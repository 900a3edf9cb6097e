//! JSON views of MO messages and DLRs, for pushes and fetches.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use model::{DlrContent, DlrState, Message, MessageKind, Timestamp};
use ports::text;
use serde_json::{Map, Value, json};
use sgip::SgipFields;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// RFC 3339, UTC, with milliseconds.
pub(crate) fn stamp(at: Timestamp) -> String {
    let nanos = i128::from(at.0) * 1_000_000;
    OffsetDateTime::from_unix_timestamp_nanos(nanos)
        .ok()
        .and_then(|at| at.format(&Rfc3339).ok())
        .unwrap_or_default()
}

/// The name of a DLR state.
pub(crate) fn state_name(state: DlrState) -> &'static str {
    match state {
        DlrState::Scheduled => "scheduled",
        DlrState::Enroute => "enroute",
        DlrState::Delivered => "delivered",
        DlrState::Expired => "expired",
        DlrState::Deleted => "cancelled",
        DlrState::Undeliverable => "failed",
        DlrState::Accepted => "relayed",
        DlrState::Unknown => "unknown",
        DlrState::Rejected => "rejected",
        DlrState::Skipped => "skipped",
    }
}

/// The type of an item, which is also the last part of its method name.
pub(crate) fn kind(message: &Message) -> &'static str {
    match message.kind {
        MessageKind::Text => "reply",
        MessageKind::Dlr(_) => "dlr",
    }
}

/// The key within which items keep their order: DLRs of the same message.
pub(crate) fn order_key(message: &Message) -> Option<u64> {
    match &message.kind {
        MessageKind::Text => None,
        MessageKind::Dlr(text) => Some(text.of.0),
    }
}

/// The view of an item.
pub(crate) fn to_item(message: &Message) -> Value {
    let mut shown = match &message.kind {
        MessageKind::Text => reply(message),
        MessageKind::Dlr(text) => dlr(message, text),
    };
    shown.insert("type".to_owned(), kind(message).into());
    shown.insert("id".to_owned(), message.id.to_string().into());
    Value::Object(shown)
}

fn reply(message: &Message) -> Map<String, Value> {
    let (words, coding) = text::display(&message.text);
    let mut shown = Map::new();
    let header = sgip::text::header(&message.text.octets).filter(|_| message.text.udhi);
    shown.insert("from".to_owned(), message.source.text().into());
    shown.insert("to".to_owned(), message.destination.text().into());
    shown.insert("text".to_owned(), words.into());
    shown.insert("coding".to_owned(), coding.into());
    shown.insert("octets".to_owned(), STANDARD.encode(&message.text.octets).into());
    shown.insert("received_at".to_owned(), stamp(message.accepted_at).into());
    if let Some((udh, _)) = header {
        let digits = model::hex(udh);
        shown.insert("udh".to_owned(), digits.into());
    }
    if let Some(reserve) = SgipFields::read(&message.tlvs).reserve {
        let link_id = String::from_utf8_lossy(&reserve).trim_end_matches('\0').to_owned();
        shown.insert("link_id".to_owned(), link_id.into());
    }
    shown
}

fn dlr(message: &Message, text: &DlrContent) -> Map<String, Value> {
    let mut shown = Map::new();
    shown.insert("message_id".to_owned(), message.submission_id().to_string().into());
    shown.insert("state".to_owned(), state_name(text.state).into());
    shown.insert("final".to_owned(), (!text.intermediate).into());
    shown.insert("error".to_owned(), text.error.into());
    shown.insert("segments".to_owned(), text.segments.0.into());
    shown.insert("segments_delivered".to_owned(), text.segments.1.into());
    if text.segment != 0 {
        shown.insert("segment".to_owned(), text.segment.into());
    }
    // A DLR goes the other way: its source is the destination of the message.
    shown.insert("from".to_owned(), message.destination.text().into());
    shown.insert("to".to_owned(), message.source.text().into());
    shown.insert("submitted_at".to_owned(), stamp(text.submitted_at).into());
    shown.insert("done_at".to_owned(), stamp(text.done_at).into());
    if let Some(reference) = SgipFields::read(&message.tlvs).reference {
        shown.insert("reference".to_owned(), json!(String::from_utf8_lossy(&reference)));
    }
    shown
}
