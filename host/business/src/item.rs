//! MO messages and DLRs, in the form of pushes and fetches.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use model::{DlrContent, DlrState, Message, MessageKind, Timestamp, hex, tlvs};
use ports::text;
use serde::Serialize;
use sgip::SgipFields;
use sp_session::SpFields;
use std::collections::BTreeMap;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use utoipa::ToSchema;

/// RFC 3339, UTC, with milliseconds.
pub(crate) fn stamp(at: Timestamp) -> String {
    let nanos = i128::from(at.0) * 1_000_000;
    OffsetDateTime::from_unix_timestamp_nanos(nanos)
        .ok()
        .and_then(|at| at.format(&Rfc3339).ok())
        .unwrap_or_default()
}

/// The state of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum StateName {
    /// Waits for its schedule.
    Scheduled,
    /// On its way.
    Enroute,
    /// Delivered.
    Delivered,
    /// Its validity period has ended.
    Expired,
    /// Cancelled.
    Cancelled,
    /// Not deliverable.
    Failed,
    /// Accepted by the network, without a DLR.
    Relayed,
    /// Its fate is unknown.
    Unknown,
    /// Rejected.
    Rejected,
    /// Skipped by the network.
    Skipped,
}

impl From<DlrState> for StateName {
    fn from(state: DlrState) -> Self {
        match state {
            DlrState::Scheduled => Self::Scheduled,
            DlrState::Enroute => Self::Enroute,
            DlrState::Delivered => Self::Delivered,
            DlrState::Expired => Self::Expired,
            DlrState::Deleted => Self::Cancelled,
            DlrState::Undeliverable => Self::Failed,
            DlrState::Accepted => Self::Relayed,
            DlrState::Unknown => Self::Unknown,
            DlrState::Rejected => Self::Rejected,
            DlrState::Skipped => Self::Skipped,
        }
    }
}

/// The key within which items keep their order: DLRs of the same message.
pub(crate) fn order_key(message: &Message) -> Option<u64> {
    match &message.kind {
        MessageKind::Text => None,
        MessageKind::Dlr(text) => Some(text.of.0),
    }
}

/// An item of the inbox, and the body of a push.
#[derive(Debug, Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub(crate) enum InboxItem {
    /// A message from a subscriber.
    Reply(Reply),
    /// A DLR.
    Dlr(Dlr),
}

/// A message from a subscriber.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Reply {
    /// The id of the item.
    id: String,
    /// The subscriber's number.
    from: String,
    /// The number to which it was sent.
    to: String,
    /// The text; empty for binary messages.
    text: String,
    /// The coding of the octets: `ascii`, `gsm`, `ucs2`, `gbk` or `binary`.
    coding: &'static str,
    /// The octets of the body, with the user data header if there is one, in base64.
    octets: String,
    /// Time of acceptance (RFC 3339).
    received_at: String,
    /// The user data header in hexadecimal, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    udh: Option<String>,
    /// Its SMPP TLVs, if it has any: by tag in four hexadecimal digits, values in hexadecimal.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = HashMap<String, String>)]
    tlvs: BTreeMap<String, String>,
    /// The LinkID of SGIP, CMPP or SMGP, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    link_id: Option<String>,
}

/// A DLR.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Dlr {
    /// The id of the item.
    id: String,
    /// The id of the submitted message.
    message_id: String,
    /// The state of the message.
    #[schema(inline)]
    state: StateName,
    /// Whether the state is final.
    #[serde(rename = "final")]
    is_final: bool,
    /// The network's error code; 0 if there is none.
    error: u16,
    /// Number of segments.
    segments: u16,
    /// Number of delivered segments.
    segments_delivered: u16,
    /// The segment that the DLR is about, from 1; omitted for the whole message.
    #[serde(skip_serializing_if = "Option::is_none")]
    segment: Option<u16>,
    /// Source of the submitted message.
    from: String,
    /// Destination of the submitted message.
    to: String,
    /// Time of the submission (RFC 3339).
    submitted_at: String,
    /// Time of the state (RFC 3339).
    done_at: String,
    /// The reference of the submission, if it had one.
    #[serde(skip_serializing_if = "Option::is_none")]
    reference: Option<String>,
}

impl InboxItem {
    /// The item for a message to a business system.
    pub(crate) fn of(message: &Message) -> Self {
        match &message.kind {
            MessageKind::Text => Self::Reply(Reply::of(message)),
            MessageKind::Dlr(text) => Self::Dlr(Dlr::of(message, text)),
        }
    }

    /// The type, which is also the last part of the method name of a push.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Reply(_) => "reply",
            Self::Dlr(_) => "dlr",
        }
    }
}

impl Reply {
    fn of(message: &Message) -> Self {
        let (text, coding) = text::display(&message.text);
        let header = sgip::text::header(&message.text.octets).filter(|_| message.text.udhi);
        let reserve =
            SgipFields::read(&message.protocol_fields).reserve.map(|octets| Bytes::copy_from_slice(&octets));
        let link_id = reserve
            .or_else(|| Some(SpFields::read(&message.protocol_fields).link_id).filter(|id| !id.is_empty()));
        Self {
            id: message.id.to_string(),
            from: message.source.text().into_owned(),
            to: message.destination.text().into_owned(),
            text,
            coding,
            octets: STANDARD.encode(&message.text.octets),
            received_at: stamp(message.accepted_at),
            udh: header.map(|(udh, _)| hex(udh)),
            tlvs: tlvs(&message.outgoing_tlvs())
                .map(|(tag, value)| (format!("{tag:04x}"), hex(value)))
                .collect(),
            link_id: link_id.map(|octets| String::from_utf8_lossy(&octets).trim_end_matches('\0').to_owned()),
        }
    }
}

impl Dlr {
    fn of(message: &Message, dlr: &DlrContent) -> Self {
        let reference = SgipFields::read(&message.protocol_fields).reference;
        Self {
            id: message.id.to_string(),
            message_id: message.submission_id().to_string(),
            state: dlr.state.into(),
            is_final: !dlr.intermediate,
            error: dlr.error,
            segments: dlr.segments.0,
            segments_delivered: dlr.segments.1,
            segment: Some(dlr.segment).filter(|segment| *segment != 0),
            // Addresses of a DLR are swapped: its source is the destination of the message.
            from: message.destination.text().into_owned(),
            to: message.source.text().into_owned(),
            submitted_at: stamp(dlr.submitted_at),
            done_at: stamp(dlr.done_at),
            reference: reference.map(|octets| String::from_utf8_lossy(&octets).into_owned()),
        }
    }
}
