use super::{
    AlertNotification, Bind, BindMode, BroadcastSm, CancelBroadcastSm, CancelSm, CommandId, DataSm, Header,
    Outbind, QueryBroadcastSm, QuerySm, ReplaceSm, Sm, SubmitMulti,
};
use crate::wire::BodyError;
use crate::{CommandStatus, Tlvs};
use bytes::{Bytes, BytesMut};

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
    /// The command id.
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

    /// Checks that every field fits its place on the wire. [`encode_request`] never writes a broken PDU, but it cuts
    /// a field that is too long, and a number that was cut is another number.
    ///
    /// # Errors
    /// The first field that does not fit, with the status that a peer would answer.
    pub fn fits(&self) -> Result<(), BodyError> {
        match self {
            Self::SubmitSm(sm) | Self::DeliverSm(sm) => sm.fits(),
            Self::Unbind | Self::EnquireLink => Ok(()),
            Self::Bind(body) => body.fits(),
            Self::Outbind(body) => body.fits(),
            Self::DataSm(body) => body.fits(),
            Self::SubmitMulti(body) => body.fits(),
            Self::QuerySm(body) => body.fits(),
            Self::CancelSm(body) => body.fits(),
            Self::ReplaceSm(body) => body.fits(),
            Self::AlertNotification(body) => body.fits(),
            Self::BroadcastSm(body) => body.fits(),
            Self::QueryBroadcastSm(body) => body.fits(),
            Self::CancelBroadcastSm(body) => body.fits(),
        }
    }

    /// The TLVs, if this kind of request has any.
    #[must_use]
    pub fn tlvs(&self) -> Option<&Tlvs> {
        match self {
            Self::SubmitSm(sm) | Self::DeliverSm(sm) => Some(&sm.tlvs),
            Self::DataSm(body) => Some(&body.tlvs),
            Self::SubmitMulti(body) => Some(&body.sm.tlvs),
            Self::ReplaceSm(body) => Some(&body.tlvs),
            Self::AlertNotification(body) => Some(&body.tlvs),
            Self::BroadcastSm(body) => Some(&body.tlvs),
            Self::QueryBroadcastSm(body) => Some(&body.tlvs),
            Self::CancelBroadcastSm(body) => Some(&body.tlvs),
            Self::Bind(_)
            | Self::Outbind(_)
            | Self::Unbind
            | Self::EnquireLink
            | Self::QuerySm(_)
            | Self::CancelSm(_) => None,
        }
    }
}

/// Decodes the body of a request.
///
/// # Errors
/// The status for the response, and the error; `RINVCMDID` if the command is not a known request.
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
        _ => return Err(BodyError::new(CommandStatus::RINVCMDID, "unknown command")),
    })
}

/// Encodes a request. A field that is too long is cut, see [`Request::fits`].
pub fn encode_request(out: &mut BytesMut, sequence: u32, request: &Request) {
    let start = Header::put(out, request.command(), CommandStatus::ROK, sequence);
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
