//! PDUs: typed requests and responses, and their way from and to the wire (34 §4; 5.0 for the broadcast family).

mod body;
mod sm;

pub use body::{
    AlertNotification, Bind, BindMode, BroadcastSm, CancelBroadcastSm, CancelSm, DataSm, Destination,
    Outbind, QueryBroadcastSm, QuerySm, QuerySmResp, ReplaceSm, SubmitMulti, SubmitMultiResp, Unsuccess,
};
pub use sm::{MAX_SHORT_MESSAGE, Sm};

use crate::wire::{BodyError, HEADER_LENGTH, Reader, put_c_string};
use crate::{Status, Tlvs};
use bytes::{BufMut, Bytes, BytesMut};

/// An SMPP command_id (34 §5.1.2.1); unknown values are kept as they are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CommandId(pub u32);

impl CommandId {
    /// generic_nack.
    pub const GENERIC_NACK: Self = Self(0x8000_0000);
    /// bind_receiver.
    pub const BIND_RECEIVER: Self = Self(0x01);
    /// bind_transmitter.
    pub const BIND_TRANSMITTER: Self = Self(0x02);
    /// query_sm.
    pub const QUERY_SM: Self = Self(0x03);
    /// submit_sm.
    pub const SUBMIT_SM: Self = Self(0x04);
    /// deliver_sm.
    pub const DELIVER_SM: Self = Self(0x05);
    /// unbind.
    pub const UNBIND: Self = Self(0x06);
    /// replace_sm.
    pub const REPLACE_SM: Self = Self(0x07);
    /// cancel_sm.
    pub const CANCEL_SM: Self = Self(0x08);
    /// bind_transceiver.
    pub const BIND_TRANSCEIVER: Self = Self(0x09);
    /// outbind.
    pub const OUTBIND: Self = Self(0x0B);
    /// enquire_link.
    pub const ENQUIRE_LINK: Self = Self(0x15);
    /// submit_multi.
    pub const SUBMIT_MULTI: Self = Self(0x21);
    /// alert_notification.
    pub const ALERT_NOTIFICATION: Self = Self(0x102);
    /// data_sm.
    pub const DATA_SM: Self = Self(0x103);
    /// broadcast_sm.
    pub const BROADCAST_SM: Self = Self(0x111);
    /// query_broadcast_sm.
    pub const QUERY_BROADCAST_SM: Self = Self(0x112);
    /// cancel_broadcast_sm.
    pub const CANCEL_BROADCAST_SM: Self = Self(0x113);

    /// Whether bit 31 says response.
    #[must_use]
    pub fn is_response(self) -> bool {
        self.0 & 0x8000_0000 != 0
    }

    /// The response that answers it.
    #[must_use]
    pub fn response(self) -> Self {
        Self(self.0 | 0x8000_0000)
    }

    /// The request that it answers.
    #[must_use]
    pub fn request(self) -> Self {
        Self(self.0 & 0x7FFF_FFFF)
    }

    /// Whether it is a request that the specification knows.
    #[must_use]
    pub fn is_known_request(self) -> bool {
        matches!(self.0, 0x01..=0x09 | 0x0B | 0x15 | 0x21 | 0x102 | 0x103 | 0x111..=0x113)
    }
}

/// A PDU header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// Octets in the whole PDU.
    pub length: u32,
    /// What it is.
    pub command: CommandId,
    /// The status; only responses have one.
    pub status: Status,
    /// The number that a response echoes.
    pub sequence: u32,
}

impl Header {
    /// Reads a header, if all of it is there.
    #[must_use]
    pub fn decode(octets: &[u8]) -> Option<Self> {
        let octets: &[u8; HEADER_LENGTH] = octets.get(..HEADER_LENGTH)?.try_into().ok()?;
        let word =
            |at: usize| u32::from_be_bytes([octets[at], octets[at + 1], octets[at + 2], octets[at + 3]]);
        Some(Self {
            length: word(0),
            command: CommandId(word(4)),
            status: Status(word(8)),
            sequence: word(12),
        })
    }

    pub(crate) fn put(out: &mut BytesMut, command: CommandId, status: Status, sequence: u32) -> usize {
        let start = out.len();
        out.put_u32(0);
        out.put_u32(command.0);
        out.put_u32(status.0);
        out.put_u32(sequence);
        start
    }

    pub(crate) fn close(out: &mut BytesMut, start: usize) {
        let length = u32::try_from(out.len() - start).unwrap_or(u32::MAX);
        if let Some(field) = out.get_mut(start..start + 4) {
            field.copy_from_slice(&length.to_be_bytes());
        }
    }
}

/// A request, from either side.
#[derive(Clone, PartialEq, Debug)]
pub enum Request {
    /// bind_receiver, bind_transmitter or bind_transceiver.
    Bind(Bind),
    /// outbind; has no response.
    Outbind(Outbind),
    /// unbind.
    Unbind,
    /// enquire_link.
    EnquireLink,
    /// submit_sm.
    SubmitSm(Sm),
    /// deliver_sm.
    DeliverSm(Sm),
    /// data_sm.
    DataSm(DataSm),
    /// submit_multi.
    SubmitMulti(SubmitMulti),
    /// query_sm.
    QuerySm(QuerySm),
    /// cancel_sm.
    CancelSm(CancelSm),
    /// replace_sm.
    ReplaceSm(ReplaceSm),
    /// alert_notification; has no response.
    AlertNotification(AlertNotification),
    /// broadcast_sm.
    BroadcastSm(BroadcastSm),
    /// query_broadcast_sm.
    QueryBroadcastSm(QueryBroadcastSm),
    /// cancel_broadcast_sm.
    CancelBroadcastSm(CancelBroadcastSm),
}

impl Request {
    /// Its command id.
    #[must_use]
    pub fn command(&self) -> CommandId {
        match self {
            Self::Bind(bind) => bind.mode.command(),
            Self::Outbind(_) => CommandId::OUTBIND,
            Self::Unbind => CommandId::UNBIND,
            Self::EnquireLink => CommandId::ENQUIRE_LINK,
            Self::SubmitSm(_) => CommandId::SUBMIT_SM,
            Self::DeliverSm(_) => CommandId::DELIVER_SM,
            Self::DataSm(_) => CommandId::DATA_SM,
            Self::SubmitMulti(_) => CommandId::SUBMIT_MULTI,
            Self::QuerySm(_) => CommandId::QUERY_SM,
            Self::CancelSm(_) => CommandId::CANCEL_SM,
            Self::ReplaceSm(_) => CommandId::REPLACE_SM,
            Self::AlertNotification(_) => CommandId::ALERT_NOTIFICATION,
            Self::BroadcastSm(_) => CommandId::BROADCAST_SM,
            Self::QueryBroadcastSm(_) => CommandId::QUERY_BROADCAST_SM,
            Self::CancelBroadcastSm(_) => CommandId::CANCEL_BROADCAST_SM,
        }
    }
}

/// The body of a response.
#[derive(Clone, PartialEq, Debug)]
pub enum Response {
    /// No body: enquire_link_resp, unbind_resp, cancel_sm_resp, replace_sm_resp, generic_nack, and any refusal.
    Empty,
    /// bind_*_resp.
    Bind {
        /// Who answers.
        system_id: Bytes,
        /// sc_interface_version, mostly.
        tlvs: Tlvs,
    },
    /// submit_sm_resp, deliver_sm_resp, data_sm_resp, broadcast_sm_resp: the message id and TLVs.
    MessageId {
        /// The id; empty in deliver_sm_resp.
        id: Bytes,
        /// congestion_state, delivery_failure_reason …
        tlvs: Tlvs,
    },
    /// submit_multi_resp.
    SubmitMulti(SubmitMultiResp),
    /// query_sm_resp.
    Query(QuerySmResp),
    /// query_broadcast_sm_resp.
    QueryBroadcast {
        /// The id.
        id: Bytes,
        /// message_state, area identifiers and successes, broadcast_end_time.
        tlvs: Tlvs,
    },
}

impl Response {
    /// A response with a message id and no TLVs.
    #[must_use]
    pub fn id(id: impl Into<Bytes>) -> Self {
        Self::MessageId { id: id.into(), tlvs: Tlvs::default() }
    }

    /// The message id that it carries; empty where it carries none.
    #[must_use]
    pub fn message_id(&self) -> &[u8] {
        match self {
            Self::MessageId { id, .. } | Self::QueryBroadcast { id, .. } => id,
            Self::SubmitMulti(multi) => &multi.message_id,
            Self::Query(query) => &query.message_id,
            Self::Empty | Self::Bind { .. } => &[],
        }
    }

    /// Its TLVs, where its kind has any.
    #[must_use]
    pub fn tlvs(&self) -> Option<&Tlvs> {
        match self {
            Self::Bind { tlvs, .. } | Self::MessageId { tlvs, .. } | Self::QueryBroadcast { tlvs, .. } => {
                Some(tlvs)
            }
            Self::SubmitMulti(multi) => Some(&multi.tlvs),
            Self::Empty | Self::Query(_) => None,
        }
    }
}

/// Decodes the body of a request.
///
/// # Errors
/// The status to answer with, and what is wrong. `RINVCMDID` for commands that are no known request.
pub fn decode_request(command: CommandId, body: Bytes) -> Result<Request, BodyError> {
    Ok(match command {
        CommandId::SUBMIT_SM => Request::SubmitSm(Sm::decode(body)?),
        CommandId::DELIVER_SM => Request::DeliverSm(Sm::decode(body)?),
        CommandId::ENQUIRE_LINK => Request::EnquireLink,
        CommandId::UNBIND => Request::Unbind,
        CommandId::BIND_RECEIVER => Request::Bind(Bind::decode(BindMode::Receiver, body)?),
        CommandId::BIND_TRANSMITTER => Request::Bind(Bind::decode(BindMode::Transmitter, body)?),
        CommandId::BIND_TRANSCEIVER => Request::Bind(Bind::decode(BindMode::Transceiver, body)?),
        CommandId::OUTBIND => Request::Outbind(Outbind::decode(body)?),
        CommandId::DATA_SM => Request::DataSm(DataSm::decode(body)?),
        CommandId::SUBMIT_MULTI => Request::SubmitMulti(SubmitMulti::decode(body)?),
        CommandId::QUERY_SM => Request::QuerySm(QuerySm::decode(body)?),
        CommandId::CANCEL_SM => Request::CancelSm(CancelSm::decode(body)?),
        CommandId::REPLACE_SM => Request::ReplaceSm(ReplaceSm::decode(body)?),
        CommandId::ALERT_NOTIFICATION => Request::AlertNotification(AlertNotification::decode(body)?),
        CommandId::BROADCAST_SM => Request::BroadcastSm(BroadcastSm::decode(body)?),
        CommandId::QUERY_BROADCAST_SM => Request::QueryBroadcastSm(QueryBroadcastSm::decode(body)?),
        CommandId::CANCEL_BROADCAST_SM => Request::CancelBroadcastSm(CancelBroadcastSm::decode(body)?),
        _ => return Err(BodyError::new(Status::RINVCMDID, "unknown command")),
    })
}

/// Decodes the body of a response. Refusals come with and without a body, and bodies come short: whatever is not there
/// is empty, and nothing here fails.
#[must_use]
pub fn decode_response(command: CommandId, status: Status, body: Bytes) -> Response {
    if body.is_empty() {
        return Response::Empty;
    }
    let whole = body.clone();
    let mut reader = Reader::new(body);
    let lenient_id = |reader: &mut Reader, limit: usize| {
        reader.c_string(limit, Status::RINVMSGID, "id").unwrap_or_else(|_| {
            // An id without its NUL, or one longer than the specification allows: all that is there.
            let end = whole.iter().position(|octet| *octet == 0).unwrap_or(whole.len());
            whole.slice(..end)
        })
    };
    match command.request() {
        CommandId::BIND_RECEIVER | CommandId::BIND_TRANSMITTER | CommandId::BIND_TRANSCEIVER => {
            let system_id = lenient_id(&mut reader, 16);
            Response::Bind { system_id, tlvs: Tlvs::from_raw(reader.rest()) }
        }
        CommandId::SUBMIT_SM | CommandId::DELIVER_SM | CommandId::DATA_SM | CommandId::BROADCAST_SM => {
            let id = lenient_id(&mut reader, 65);
            Response::MessageId { id, tlvs: Tlvs::from_raw(reader.rest()) }
        }
        CommandId::SUBMIT_MULTI => {
            SubmitMultiResp::decode(reader).map_or(Response::Empty, Response::SubmitMulti)
        }
        CommandId::QUERY_SM => QuerySmResp::decode(reader).map_or(Response::Empty, Response::Query),
        CommandId::QUERY_BROADCAST_SM => {
            let id = lenient_id(&mut reader, 65);
            Response::QueryBroadcast { id, tlvs: Tlvs::from_raw(reader.rest()) }
        }
        _ => {
            let _ = status;
            Response::Empty
        }
    }
}

/// Writes a request.
pub fn encode_request(out: &mut BytesMut, sequence: u32, request: &Request) {
    let start = Header::put(out, request.command(), Status::ROK, sequence);
    match request {
        Request::SubmitSm(sm) | Request::DeliverSm(sm) => sm.encode(out),
        Request::Unbind | Request::EnquireLink => {}
        Request::Bind(body) => body.encode(out),
        Request::Outbind(body) => body.encode(out),
        Request::DataSm(body) => body.encode(out),
        Request::SubmitMulti(body) => body.encode(out),
        Request::QuerySm(body) => body.encode(out),
        Request::CancelSm(body) => body.encode(out),
        Request::ReplaceSm(body) => body.encode(out),
        Request::AlertNotification(body) => body.encode(out),
        Request::BroadcastSm(body) => body.encode(out),
        Request::QueryBroadcastSm(body) => body.encode(out),
        Request::CancelBroadcastSm(body) => body.encode(out),
    }
    Header::close(out, start);
}

/// Writes a response. Refusals are a header and nothing more; a body that does not belong to the command is left out.
pub fn encode_response(
    out: &mut BytesMut,
    command: CommandId,
    status: Status,
    sequence: u32,
    response: &Response,
) {
    let start = Header::put(out, command, status, sequence);
    if status.is_ok() {
        match (command.request(), response) {
            (_, Response::Bind { system_id, tlvs }) => {
                put_c_string(out, system_id, 16);
                out.put_slice(tlvs.raw());
            }
            (_, Response::MessageId { id, tlvs } | Response::QueryBroadcast { id, tlvs }) => {
                put_c_string(out, id, 65);
                out.put_slice(tlvs.raw());
            }
            (_, Response::SubmitMulti(multi)) => multi.encode(out),
            (_, Response::Query(query)) => query.encode(out),
            (
                CommandId::SUBMIT_SM | CommandId::DELIVER_SM | CommandId::DATA_SM | CommandId::BROADCAST_SM,
                Response::Empty,
            ) => out.put_u8(0),
            (_, Response::Empty) => {}
        }
    }
    Header::close(out, start);
}
