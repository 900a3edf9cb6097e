use super::{CommandId, Header, QuerySmResp, SubmitMultiResp};
use crate::wire::{Reader, put_c_string};
use crate::{CommandStatus, Tlvs};
use bytes::{BufMut, Bytes, BytesMut};

/// The body of a response.
#[derive(Clone, PartialEq, Debug)]
pub enum Response {
    /// No body: enquire_link_resp, unbind_resp, cancel_sm_resp, replace_sm_resp, generic_nack, and any refusal.
    Empty,
    /// bind_*_resp.
    Bind {
        /// The system_id of the sender.
        system_id: Bytes,
        /// TLVs, mostly sc_interface_version.
        tlvs: Tlvs,
    },
    /// submit_sm_resp, deliver_sm_resp, data_sm_resp, broadcast_sm_resp: the message id and TLVs.
    MessageId {
        /// The message id; empty in deliver_sm_resp.
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
        /// The message id.
        id: Bytes,
        /// message_state, area identifiers and successes, broadcast_end_time.
        tlvs: Tlvs,
    },
}

impl Response {
    /// Makes a response with a message id and no TLVs.
    #[must_use]
    pub fn id(id: impl Into<Bytes>) -> Self {
        Self::MessageId { id: id.into(), tlvs: Tlvs::default() }
    }

    /// The message id; empty if the response has none.
    #[must_use]
    pub fn message_id(&self) -> &[u8] {
        match self {
            Self::MessageId { id, .. } | Self::QueryBroadcast { id, .. } => id,
            Self::SubmitMulti(multi) => &multi.message_id,
            Self::Query(query) => &query.message_id,
            Self::Empty | Self::Bind { .. } => &[],
        }
    }

    /// The TLVs, if this kind of response has any.
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

/// Decodes the body of a response. Refusals come with and without a body, and bodies may be short: missing fields are
/// empty, and decoding never fails.
#[must_use]
pub fn decode_response(command: CommandId, body: Bytes) -> Response {
    if body.is_empty() {
        return Response::Empty;
    }
    let mut reader = Reader::new(body);
    match command.request() {
        CommandId::BIND_RECEIVER | CommandId::BIND_TRANSMITTER | CommandId::BIND_TRANSCEIVER => {
            let system_id = reader.lenient_c_string();
            Response::Bind { system_id, tlvs: Tlvs::from_raw(reader.rest()) }
        }
        CommandId::SUBMIT_SM | CommandId::DELIVER_SM | CommandId::DATA_SM | CommandId::BROADCAST_SM => {
            let id = reader.lenient_c_string();
            Response::MessageId { id, tlvs: Tlvs::from_raw(reader.rest()) }
        }
        CommandId::QUERY_BROADCAST_SM => {
            let id = reader.lenient_c_string();
            Response::QueryBroadcast { id, tlvs: Tlvs::from_raw(reader.rest()) }
        }
        CommandId::SUBMIT_MULTI => Response::SubmitMulti(SubmitMultiResp::decode(reader)),
        CommandId::QUERY_SM => QuerySmResp::decode(reader).map_or(Response::Empty, Response::Query),
        _ => Response::Empty,
    }
}

/// Encodes a response. A refusal is only a header. A body of another command is left out, so an enquire_link_resp
/// always has 16 octets.
pub fn encode_response(
    out: &mut BytesMut,
    command: CommandId,
    status: CommandStatus,
    sequence: u32,
    response: &Response,
) {
    let start = Header::put(out, command, status, sequence);
    if status.is_ok() {
        put_body(out, command.request(), response);
    }
    Header::close(out, start);
}

fn put_body(out: &mut BytesMut, request: CommandId, response: &Response) {
    use CommandId as C;
    match (request, response) {
        (
            C::BIND_RECEIVER | C::BIND_TRANSMITTER | C::BIND_TRANSCEIVER,
            Response::Bind { system_id, tlvs },
        ) => {
            put_c_string(out, system_id, 16);
            out.put_slice(tlvs.raw());
        }
        // The message_id of deliver_sm_resp exists but is unused (34 §4.6.2).
        (C::DELIVER_SM, Response::MessageId { tlvs, .. }) => {
            out.put_u8(0);
            out.put_slice(tlvs.raw());
        }
        (C::SUBMIT_SM | C::DATA_SM | C::BROADCAST_SM, Response::MessageId { id, tlvs })
        | (C::QUERY_BROADCAST_SM, Response::QueryBroadcast { id, tlvs }) => {
            put_c_string(out, id, 65);
            out.put_slice(tlvs.raw());
        }
        (C::SUBMIT_MULTI, Response::SubmitMulti(multi)) => multi.encode(out),
        // If nothing failed, the id alone answers a submit_multi.
        (C::SUBMIT_MULTI, Response::MessageId { id, tlvs }) => {
            put_c_string(out, id, 65);
            out.put_u8(0);
            out.put_slice(tlvs.raw());
        }
        (C::QUERY_SM, Response::Query(query)) => query.encode(out),
        // A positive response always has its mandatory fields, even if they are empty.
        (C::SUBMIT_SM | C::DELIVER_SM | C::DATA_SM | C::BROADCAST_SM | C::QUERY_BROADCAST_SM, _)
        | (C::BIND_RECEIVER | C::BIND_TRANSMITTER | C::BIND_TRANSCEIVER, _) => out.put_u8(0),
        (C::SUBMIT_MULTI, _) => out.put_slice(&[0; 2]),
        (C::QUERY_SM, _) => out.put_slice(&[0, 0, 7, 0]),
        _ => {}
    }
}
