//! The mapping between messages and SGIP commands.

use super::options::{GatewayOptions, SgipQuirks};
use crate::content_coding::{Segments, address, beijing_time, segments, text_of, user_number};
use crate::pdu_to_message::unrouted;
use bytes::{BufMut, Bytes, BytesMut};
use model::{
    Address, DlrRequest, Message, MessageId, MessageKind, PeerId, Priority, SubmitTicket, Timestamp,
};
use sgip::text::{self, AsciiLimits};
use sgip::{Deliver, Dialect, MAX_PDU, Pdu, ResultCode, Sequence, SgipFields, Submit};
use sp_session::SpFields;
use std::time::Duration;

/// The sequence of a segment of a submit attempt. It depends only on data that is on disk before the attempt. So the
/// repetition of an uncertain attempt has the same twelve octets, and the peer can recognize it (SGIP 1.2 §3.4).
///
/// The time is that of the ticket. The counter has twenty bits of the message id, eight of the segment and four of
/// the attempt, in this order: it grows with the ids, and no two commands of one second have the same counter.
pub(super) fn sequence(node: u32, id: MessageId, ticket: SubmitTicket, part: usize) -> Sequence {
    let id = u32::try_from(id.0 & 0xF_FFFF).unwrap_or(0);
    let part = u32::try_from(part & 0xFF).unwrap_or(0);
    let counter = id << 12 | part << 4 | u32::from(ticket.attempt & 0xF);
    Sequence::new(node, ticket.at, counter)
}

/// The reason why SGIP cannot express a message.
pub(super) type MappingError = ResultCode;

/// The LinkID of a message that came by CMPP or SMGP, if it fits SGIP's field.
fn reserve_of(link_id: &[u8]) -> Option<[u8; 8]> {
    let mut reserve = [0; 8];
    reserve.get_mut(..link_id.len())?.copy_from_slice(link_id);
    (!link_id.is_empty()).then_some(reserve)
}

/// Makes the Submits of a message for one of its legs.
pub(super) fn submits(
    message: &Message,
    leg: u8,
    want_dlr: bool,
    gateway: &GatewayOptions,
) -> Result<Vec<Submit>, MappingError> {
    let (source, destination) = message.addresses_on(leg);
    let user = user_number(&destination.value, gateway.node.quirks.add_86);
    if user.is_empty() || user.len() > 21 || !user.iter().all(u8::is_ascii_digit) {
        return Err(ResultCode::NUMBER);
    }
    if source.value.len() > 21 {
        return Err(ResultCode::PARAMETER);
    }
    let Segments { coding, contents, header } =
        segments(&message.text, gateway.node.quirks.gbk, message.id, AsciiLimits::default())
            .ok_or(ResultCode::LENGTH)?;
    let mut template = Submit {
        sp_number: Bytes::copy_from_slice(&source.value),
        users: vec![user],
        priority: [0, 3, 6, 9].get(usize::from(message.priority.level())).copied().unwrap_or(0),
        expire_time: beijing_time(message.expires_at),
        schedule_time: Bytes::new(),
        tp_pid: message.protocol_id,
        tp_udhi: if header { gateway.node.quirks.udhi } else { 0 },
        coding: coding.0,
        ..Submit::default()
    };
    gateway.fields.put_into(&mut template);
    let fields = SgipFields::read(&message.protocol_fields);
    let sp = SpFields::read(&message.protocol_fields);
    let service = if sp.service.is_empty() { &message.service_type } else { &sp.service };
    let service = SgipFields {
        service_type: (!service.is_empty()).then(|| service.clone()),
        reserve: reserve_of(&sp.link_id),
        ..SgipFields::default()
    };
    service.put_into(&mut template);
    fields.put_into(&mut template);
    template.report_flag = match (fields.report_flag, want_dlr) {
        (Some(3), _) => 3,
        (_, true) => 1,
        (_, false) => 2,
    };
    if !gateway.node.quirks.link_id {
        template.reserve = [0; 8];
    }
    if gateway.node.quirks.dialect == Dialect::V13 && template.mo_related == 3 {
        return Err(ResultCode(40));
    }
    let submits: Vec<Submit> =
        contents.into_iter().map(|content| Submit { content, ..template.clone() }).collect();
    let fits = submits.iter().all(|submit| 143 + 21 + submit.content.len() <= MAX_PDU);
    if fits { Ok(submits) } else { Err(ResultCode::LENGTH) }
}

/// Makes the Delivers of a message for an SP.
pub(super) fn delivers(message: &Message, quirks: &SgipQuirks) -> Result<Vec<Deliver>, MappingError> {
    let (source, destination) = message.addresses_on(0);
    if source.value.len() > 19 || destination.value.len() > 21 {
        return Err(ResultCode::NUMBER);
    }
    let Segments { coding, contents, header } =
        segments(&message.text, quirks.gbk, message.id, AsciiLimits::default()).ok_or(ResultCode::LENGTH)?;
    let fields = SgipFields::read(&message.protocol_fields);
    let template = Deliver {
        user: user_number(&source.value, quirks.add_86),
        sp_number: Bytes::copy_from_slice(&destination.value),
        tp_pid: message.protocol_id,
        tp_udhi: if header { quirks.udhi } else { 0 },
        coding: coding.0,
        content: Bytes::new(),
        reserve: fields
            .reserve
            .or_else(|| reserve_of(&SpFields::read(&message.protocol_fields).link_id))
            .filter(|_| quirks.link_id)
            .unwrap_or_default(),
    };
    Ok(contents.into_iter().map(|content| Deliver { content, ..template.clone() }).collect())
}

/// Makes the message of a gateway's Deliver, an MO.
pub(super) fn mo_from_deliver(deliver: &Deliver, gateway: &GatewayOptions, wall: Timestamp) -> Message {
    let mut fields = BytesMut::new();
    if gateway.node.quirks.link_id && deliver.reserve != [0; 8] {
        SgipFields { reserve: Some(deliver.reserve), ..SgipFields::default() }.append_to(&mut fields);
    }
    Message {
        id: MessageId::default(),
        kind: MessageKind::Text,
        origin: gateway.peer,
        source: address(&deliver.user, gateway.node.quirks.strip_86),
        destination: Address::new(0, 1, &deliver.sp_number),
        service_type: Bytes::new(),
        protocol_id: deliver.tp_pid,
        esm_class: 0,
        priority: Priority::default(),
        dlr_request: DlrRequest::NONE,
        replace_if_present: false,
        submission: None,
        text: text_of(deliver.coding, text::has_header(deliver.tp_udhi), &deliver.content),
        tlvs: Bytes::new(),
        protocol_fields: fields.freeze(),
        sealed: None,
        accepted_at: Timestamp::default(),
        scheduled: None,
        expires_at: wall + gateway.mo_validity,
        routed: unrouted(),
    }
}

/// The rules that an SP's Submit must meet.
pub(super) struct SubmitContext<'a> {
    pub(super) origin: PeerId,
    pub(super) validity: Duration,
    pub(super) quirks: &'a SgipQuirks,
    pub(super) wall: Timestamp,
}

impl SubmitContext<'_> {
    /// Makes one message for each user. `source` is the access number, as allowed by the account's rules.
    pub(super) fn messages(
        &self,
        submit: &Submit,
        sequence: Sequence,
        source: &Address,
    ) -> Result<Vec<Message>, MappingError> {
        let forbidden = self.quirks.dialect == Dialect::V13;
        if forbidden && submit.users.len() != 1 {
            return Err(ResultCode(19));
        }
        if forbidden && submit.mo_related == 3 {
            return Err(ResultCode(40));
        }
        // A fee record that is not for the handset. The appliance cannot bill it.
        if submit.report_flag == 3 {
            return Err(ResultCode::NOT_OFFERED);
        }
        let when = |field: &[u8]| smpp::time::parse(field, self.wall).map_err(|_| ResultCode::PARAMETER);
        let (scheduled, expires) = (when(&submit.schedule_time)?, when(&submit.expire_time)?);
        let mut fields = BytesMut::new();
        SgipFields::of(submit, sequence).append_to(&mut fields);
        let fields = fields.freeze();
        let dlr_request = match submit.report_flag {
            0 => DlrRequest { on_failure: true, ..DlrRequest::NONE },
            1 => DlrRequest::FINAL,
            _ => DlrRequest::NONE,
        };
        let one = |user: &Bytes| {
            if user.is_empty()
                || !user.iter().enumerate().all(|(at, c)| c.is_ascii_digit() || (at == 0 && *c == b'+'))
            {
                return Err(ResultCode::NUMBER);
            }
            Ok(Message {
                id: MessageId::default(),
                kind: MessageKind::Text,
                origin: self.origin,
                source: source.clone(),
                destination: address(user, self.quirks.strip_86),
                service_type: Bytes::new(),
                protocol_id: submit.tp_pid,
                esm_class: 0,
                priority: Priority::new(submit.priority.div_ceil(3)),
                dlr_request,
                replace_if_present: false,
                submission: None,
                text: text_of(submit.coding, text::has_header(submit.tp_udhi), &submit.content),
                tlvs: Bytes::new(),
                protocol_fields: fields.clone(),
                sealed: None,
                accepted_at: Timestamp::default(),
                scheduled,
                expires_at: expires.unwrap_or(self.wall + self.validity),
                routed: unrouted(),
            })
        };
        submit.users.iter().map(one).collect()
    }
}

/// A digest of a command without its sequence. It distinguishes a repetition from another command with the same
/// sequence.
pub(super) fn digest(pdu: &Pdu) -> u64 {
    let mut octets = BytesMut::new();
    pdu.encode(Sequence::default(), &mut octets);
    octets.put_u8(0);
    // FNV-1a. The digest must not change with a restart, and a collision can only harm its own sender.
    octets
        .iter()
        .fold(0xCBF2_9CE4_8422_2325, |hash, octet| (hash ^ u64::from(*octet)).wrapping_mul(0x0100_0000_01B3))
}
