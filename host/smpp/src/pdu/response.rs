use super::{CommandId, Header, QuerySmResp, SubmitMultiResp};
use crate::wire::{Reader, put_c_string};
use crate::{Status, Tlvs};
use bytes::{BufMut, Bytes, BytesMut};

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

/// Decodes the body of a response. Refusals come with and without a body, and bodies come short: whatever is not there
/// is empty, and nothing here fails.
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

/// Writes a response. Refusals are a header and nothing more; a body that is not the command's own is left out, so that
/// an enquire_link_resp has its 16 octets whatever is given.
pub fn encode_response(
    out: &mut BytesMut,
    command: CommandId,
    status: Status,
    sequence: u32,
    response: &Response,
) {
    let start = Header::put(out, command, status, sequence);
    if status.is_ok() {
        put_body(out, command.request(), response);
    }
    Header::close(out, start);
}

fn put_body(out: &mut BytesMut, asked: CommandId, response: &Response) {
    use CommandId as C;
    match (asked, response) {
        (
            C::BIND_RECEIVER | C::BIND_TRANSMITTER | C::BIND_TRANSCEIVER,
            Response::Bind { system_id, tlvs },
        ) => {
            put_c_string(out, system_id, 16);
            out.put_slice(tlvs.raw());
        }
        // deliver_sm_resp has the field, and it is unused (34 §4.6.2).
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
        // submit_multi is answered by its id alone where nothing failed.
        (C::SUBMIT_MULTI, Response::MessageId { id, tlvs }) => {
            put_c_string(out, id, 65);
            out.put_u8(0);
            out.put_slice(tlvs.raw());
        }
        (C::QUERY_SM, Response::Query(query)) => query.encode(out),
        // A positive answer has its mandatory fields, also where its giver had nothing to say in them.
        (C::SUBMIT_SM | C::DELIVER_SM | C::DATA_SM | C::BROADCAST_SM | C::QUERY_BROADCAST_SM, _)
        | (C::BIND_RECEIVER | C::BIND_TRANSMITTER | C::BIND_TRANSCEIVER, _) => out.put_u8(0),
        (C::SUBMIT_MULTI, _) => out.put_slice(&[0; 2]),
        (C::QUERY_SM, _) => out.put_slice(&[0, 0, 7, 0]),
        _ => {}
    }
}
