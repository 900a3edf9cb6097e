//! The fields of CDR files: of messages, and of the first and last line of a file.

use super::state::FileTotals;
use crate::cloud_event::rfc3339;
use crate::message_facts::{MessageDirectory, MessageFacts, attempts};
use model::{FinalRecord, MessageId, NumberDisplay, PriceState};
use redaction::NumberRedaction;
use std::borrow::Cow;

/// The fields of the first line.
pub(crate) const HEADER_FIELDS: &[&str] = &["name", "appliance", "file", "opened_at"];

/// The fields of a record.
pub(crate) const RECORD_FIELDS: &[&str] = &[
    "message",
    "submission",
    "direction",
    "account",
    "peer",
    "source",
    "destination",
    "accepted_at",
    "ended_at",
    "state",
    "error",
    "peer_message_id",
    "attempts",
    "segments",
    "data_coding",
    "priority",
    "price",
    "price_account",
    "price_state",
    "captured",
    "refunded",
];

/// The fields of the last line.
pub(crate) const TRAILER_FIELDS: &[&str] = &[
    "name",
    "file",
    "records",
    "segments",
    "captured",
    "refunded",
    "lost_records",
    "opened_at",
    "closed_at",
];

/// The value of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FieldValue {
    Text(Cow<'static, str>),
    Number(u64),
}

impl FieldValue {
    pub(crate) fn text(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) => Cow::Borrowed(text),
            Self::Number(number) => Cow::Owned(number.to_string()),
        }
    }
}

/// The fields of one line, in order. A field that does not apply is an empty text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fields(pub(crate) Vec<(&'static str, FieldValue)>);

impl Fields {
    pub(crate) fn get(&self, name: &str) -> Option<&FieldValue> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }
}

fn owned(text: impl Into<String>) -> FieldValue {
    FieldValue::Text(Cow::Owned(text.into()))
}

/// The record of a message, with the amounts that it adds to the totals of its file.
#[derive(Debug)]
pub(crate) struct CdrRecord {
    pub(crate) fields: Fields,
    pub(crate) segments: u64,
    pub(crate) captured: u64,
    pub(crate) refunded: u64,
}

impl CdrRecord {
    /// The record of a message that has ended. If no table has the facts of the message any more, the record has the
    /// fields of the final record only.
    pub(crate) fn new(
        (id, facts): (MessageId, Option<&MessageFacts>),
        ended: &FinalRecord,
        directory: &dyn MessageDirectory,
        (numbers, redact): (NumberDisplay, &NumberRedaction),
    ) -> Self {
        let none = || FieldValue::Text(Cow::Borrowed(""));
        let number = |number: Option<u64>| number.map_or_else(none, FieldValue::Number);
        let name = |peer: Option<model::PeerId>| peer.map_or_else(none, |peer| owned(&*directory.name(peer)));
        let (direction, account, peer) = match facts {
            Some(facts) => {
                let (direction, account) = facts.account(directory, Some(ended));
                // For an MO message, the other party is the account, and the peer is its origin.
                let is_mt = directory.is_account(facts.origin);
                let peer = if is_mt { facts.other_party(ended) } else { Some(facts.origin) };
                (FieldValue::Text(Cow::Borrowed(direction.name())), owned(&*account), name(peer))
            }
            None => (none(), none(), name(ended.peer)),
        };
        let price = facts.and_then(|facts| facts.price(ended));
        let (amount, payer, price_state) = match &price {
            Some((amount, payer, state)) => (Some(*amount), payer.clone(), Some(*state)),
            None => (None, None, None),
        };
        let settled = |state| if price_state == Some(state) { amount.unwrap_or(0) } else { 0 };
        let (captured, refunded) = (settled(PriceState::Captured), settled(PriceState::Refunded));
        let segments = facts.map_or(0, |facts| u64::from(facts.segments));
        let peer_id = &ended.peer_id.0;
        let fields = vec![
            ("message", owned(id.to_string())),
            (
                "submission",
                facts.and_then(|facts| facts.submission).map_or_else(none, |id| owned(id.to_string())),
            ),
            ("direction", direction),
            ("account", account),
            ("peer", peer),
            ("source", facts.map_or_else(none, |facts| owned(redact.source(&facts.source, numbers)))),
            (
                "destination",
                facts.map_or_else(none, |facts| owned(redact.destination(&facts.destination, numbers))),
            ),
            ("accepted_at", facts.map_or_else(none, |facts| owned(rfc3339(facts.accepted_at)))),
            ("ended_at", owned(rfc3339(ended.at))),
            ("state", FieldValue::Text(Cow::Borrowed(ended.state.name()))),
            ("error", FieldValue::Number(u64::from(ended.error))),
            ("peer_message_id", owned(model::escape(peer_id))),
            ("attempts", FieldValue::Number(u64::from(attempts(ended)))),
            ("segments", FieldValue::Number(segments)),
            ("data_coding", number(facts.map(|facts| u64::from(facts.data_coding)))),
            ("priority", number(facts.map(|facts| u64::from(facts.priority)))),
            ("price", number(amount)),
            ("price_account", payer.map_or_else(none, |payer| owned(&*payer))),
            (
                "price_state",
                price_state.map_or_else(none, |state| FieldValue::Text(Cow::Borrowed(state.name()))),
            ),
            ("captured", FieldValue::Number(captured)),
            ("refunded", FieldValue::Number(refunded)),
        ];
        Self { fields: Fields(fields), segments, captured, refunded }
    }
}

/// The fields of the first line of a file.
pub(crate) fn header(name: &str, appliance: &str, file: u64, totals: &FileTotals) -> Fields {
    Fields(vec![
        ("name", owned(name)),
        ("appliance", owned(appliance)),
        ("file", FieldValue::Number(file)),
        ("opened_at", owned(rfc3339(totals.opened_at))),
    ])
}

/// The fields of the last line of a file.
pub(crate) fn trailer(name: &str, file: u64, totals: &FileTotals, closed_at: model::Timestamp) -> Fields {
    Fields(vec![
        ("name", owned(name)),
        ("file", FieldValue::Number(file)),
        ("records", FieldValue::Number(totals.records)),
        ("segments", FieldValue::Number(totals.segments)),
        ("captured", FieldValue::Number(totals.captured)),
        ("refunded", FieldValue::Number(totals.refunded)),
        ("lost_records", FieldValue::Number(totals.lost_records)),
        ("opened_at", owned(rfc3339(totals.opened_at))),
        ("closed_at", owned(rfc3339(closed_at))),
    ])
}
