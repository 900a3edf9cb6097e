//! Between messages and SGIP's commands.

use super::options::{GatewayOptions, Habits};
use crate::submission::unrouted;
use bytes::{BufMut, Bytes, BytesMut};
use model::{
    Address, Kind, Message, MessageId, PeerId, Priority, ReceiptRequest, ReceiptState, ReceiptText, Text,
    Ticket, Timestamp,
};
use sgip::text::{self, Coding, Reference};
use sgip::{Deliver, Dialect, Fields, MAX_PDU, Pdu, Report, ResultCode, Sequence, Submit};
use smpp::text::Alphabet;
use std::time::Duration;

/// The sequence of a part of a hand-over: a function of what is on disk before it leaves, so that a repetition that
/// settles a doubt carries the same twelve octets and the far end can tell that it has it already (SGIP 1.2 §3.4).
///
/// The time is that of the ticket. The counter has twenty bits of the message's id, eight of the part and four of the
/// attempt, in this order: it grows with the ids, and no two commands of a second have the same.
pub(super) fn sequence(node: u32, id: MessageId, ticket: Ticket, part: usize) -> Sequence {
    let id = u32::try_from(id.0 & 0xF_FFFF).unwrap_or(0);
    let part = u32::try_from(part & 0xFF).unwrap_or(0);
    let counter = id << 12 | part << 4 | u32::from(ticket.attempt & 0xF);
    Sequence::new(node, ticket.at, counter)
}

/// A message that cannot be said in SGIP, with the code that says why.
pub(super) type Refused = ResultCode;

/// Content as SGIP has it: coding, octets, and whether they begin with a header.
struct Content {
    coding: Coding,
    octets: Bytes,
    header: bool,
}

fn content(body: &Text, gbk: bool) -> Content {
    let as_is = |coding| Content { coding, octets: body.octets.clone(), header: body.udhi };
    let (head, words) = match text::header(&body.octets).filter(|_| body.udhi) {
        Some((head, words)) => (head, words),
        None => (&[][..], &body.octets[..]),
    };
    match body.data_coding {
        8 if gbk && !body.udhi => {
            let words = text::decode(8, words);
            // What is damaged stays as it is: nobody knows what it was to say.
            let same = text::utf16(&words) == body.octets;
            match text::encode_as(&words, Coding::GBK).filter(|_| same) {
                Some(octets) => Content { coding: Coding::GBK, octets, header: false },
                None => as_is(Coding::UCS2),
            }
        }
        8 => as_is(Coding::UCS2),
        15 => as_is(Coding::GBK),
        2 | 4 => as_is(Coding::BINARY),
        0xF6 => as_is(Coding::CARD),
        // ASCII, and the default alphabet where it says the same in the same octets.
        0 | 1
            if words.iter().all(|octet| is_common(*octet) || (body.data_coding == 1 && octet.is_ascii())) =>
        {
            as_is(Coding::ASCII)
        }
        other => match smpp::text::alphabet(other) {
            // Latin-1 is no coding of SGIP's.
            Alphabet::Octets if other != 3 => as_is(Coding(other)),
            _ => {
                let words = smpp::text::decode(other, words);
                let encoded = text::encode_as(&words, Coding::ASCII).map(|octets| (Coding::ASCII, octets));
                let encoded = encoded.or_else(|| {
                    text::encode_as(&words, Coding::GBK).filter(|_| gbk).map(|octets| (Coding::GBK, octets))
                });
                let (coding, octets) = encoded.unwrap_or_else(|| (Coding::UCS2, text::utf16(&words)));
                let octets = [head, &octets].concat().into();
                Content { coding, octets, header: body.udhi }
            }
        },
    }
}

/// Characters that ASCII and the GSM default alphabet have at the same place.
fn is_common(octet: u8) -> bool {
    matches!(octet, b'\n' | b'\r' | b' '..=b'#' | b'%'..=b'?' | b'A'..=b'Z' | b'a'..=b'z')
}

/// The contents of the parts. A text that has a header already is one part as it is.
fn parts(body: &Text, gbk: bool, id: MessageId) -> Result<(Coding, Vec<Bytes>, bool), Refused> {
    let content = content(body, gbk);
    if content.header {
        return Ok((content.coding, vec![content.octets], true));
    }
    let reference = Reference::Short(u8::try_from(id.0 & 0xFF).unwrap_or(0));
    let parts = text::split(content.coding, &content.octets, reference).ok_or(ResultCode::LENGTH)?;
    let split = parts.len() > 1;
    Ok((content.coding, parts, split))
}

fn user_number(number: &[u8], habits: &Habits) -> Bytes {
    let home = sgip::home_number(number);
    let is_mobile = home.len() == 11 && home.first() == Some(&b'1') && home.iter().all(u8::is_ascii_digit);
    if habits.add_86 && is_mobile { [b"86", home].concat().into() } else { Bytes::copy_from_slice(home) }
}

/// The number of a user, as a message has it.
fn address(number: &[u8], habits: &Habits) -> Address {
    let kept = if habits.strip_86 { sgip::home_number(number) } else { number };
    let ton = u8::from(kept.len() > 11 && kept.starts_with(b"86"));
    Address::new(ton, 1, kept)
}

/// `yymmddhhmmss032+`, in Beijing.
fn time(at: Timestamp) -> Bytes {
    let mut zoned = smpp::time::format(Timestamp(at.0 + 8 * 3_600_000)).into_bytes();
    zoned.truncate(12);
    zoned.extend_from_slice(b"032+");
    zoned.into()
}

/// The Submits of a message on one of its legs.
pub(super) fn submits(
    message: &Message,
    leg: u8,
    want_receipt: bool,
    gateway: &GatewayOptions,
) -> Result<Vec<Submit>, Refused> {
    let (source, destination) = message.addresses_on(leg);
    let user = user_number(&destination.value, &gateway.habits);
    if user.is_empty() || user.len() > 21 || !user.iter().all(u8::is_ascii_digit) {
        return Err(ResultCode::NUMBER);
    }
    if source.value.len() > 21 {
        return Err(ResultCode::PARAMETER);
    }
    let (coding, parts, header) = parts(&message.text, gateway.habits.gbk, message.id)?;
    let mut template = Submit {
        sp_number: Bytes::copy_from_slice(&source.value),
        users: vec![user],
        priority: [0, 3, 6, 9].get(usize::from(message.priority.level())).copied().unwrap_or(0),
        expire_time: time(message.expires_at),
        schedule_time: Bytes::new(),
        tp_pid: message.protocol_id,
        tp_udhi: if header { gateway.habits.udhi } else { 0 },
        coding: coding.0,
        ..Submit::default()
    };
    gateway.fields.put_into(&mut template);
    let said = Fields::read(&message.tlvs);
    let service = Fields {
        service_type: (!message.service_type.is_empty()).then(|| message.service_type.clone()),
        ..Fields::default()
    };
    service.put_into(&mut template);
    said.put_into(&mut template);
    template.report_flag = match (said.report_flag, want_receipt) {
        (Some(3), _) => 3,
        (_, true) => 1,
        (_, false) => 2,
    };
    if !gateway.habits.link_id {
        template.reserve = [0; 8];
    }
    if gateway.habits.dialect == Dialect::V13 && template.mo_related == 3 {
        return Err(ResultCode(40));
    }
    let submits: Vec<Submit> =
        parts.into_iter().map(|content| Submit { content, ..template.clone() }).collect();
    let fits = submits.iter().all(|submit| 143 + 21 + submit.content.len() <= MAX_PDU);
    if fits { Ok(submits) } else { Err(ResultCode::LENGTH) }
}

/// The Delivers of a message for an SP.
pub(super) fn delivers(message: &Message, habits: &Habits) -> Result<Vec<Deliver>, Refused> {
    let (source, destination) = message.addresses_on(0);
    if source.value.len() > 19 || destination.value.len() > 21 {
        return Err(ResultCode::NUMBER);
    }
    let (coding, parts, header) = parts(&message.text, habits.gbk, message.id)?;
    let said = Fields::read(&message.tlvs);
    let template = Deliver {
        user: user_number(&source.value, habits),
        sp_number: Bytes::copy_from_slice(&destination.value),
        tp_pid: message.protocol_id,
        tp_udhi: if header { habits.udhi } else { 0 },
        coding: coding.0,
        content: Bytes::new(),
        reserve: said.reserve.filter(|_| habits.link_id).unwrap_or_default(),
    };
    Ok(parts.into_iter().map(|content| Deliver { content, ..template.clone() }).collect())
}

/// The Report of a receipt of ours for an SP; `None` where the message did not come as a Submit.
pub(super) fn report(message: &Message, receipt: &ReceiptText, habits: &Habits) -> Option<Report> {
    let submit = Fields::read(&message.tlvs).sequence?;
    let state = match receipt.state {
        ReceiptState::Delivered | ReceiptState::Accepted => 0,
        ReceiptState::Scheduled | ReceiptState::Enroute => 1,
        _ => 2,
    };
    let told = u8::try_from(receipt.error).ok().filter(|error| *error != 0);
    let error = match (state, receipt.state) {
        (0 | 1, _) => 0,
        (_, ReceiptState::Expired) => told.unwrap_or(25),
        (_, ReceiptState::Rejected) => told.unwrap_or(30),
        (_, ReceiptState::Undeliverable) => told.unwrap_or(28),
        _ => told.unwrap_or(32),
    };
    // The users of the SP's Submit, as it wrote them.
    let user = user_number(&message.source.value, habits);
    Some(Report { submit, report_type: 0, user, state, error, reserve: [0; 8] })
}

/// What a Report of a gateway's says.
pub(super) fn receipt(report: &Report) -> model::Receipt {
    let (state, intermediate) = match (report.state, report.error) {
        (0, _) => (ReceiptState::Delivered, false),
        (1, _) => (ReceiptState::Enroute, true),
        (_, 61 | 62) => (ReceiptState::Expired, false),
        (_, 30) => (ReceiptState::Rejected, false),
        _ => (ReceiptState::Undeliverable, false),
    };
    model::Receipt {
        id: sgip::peer_message_id(report.submit, &report.user),
        state,
        intermediate,
        error: u16::from(report.error),
        network_error: None,
        done_at: None,
        from: model::AddressBytes::from_slice(&report.user),
        to: model::AddressBytes::new(),
    }
}

fn body(coding: u8, tp_udhi: u8, content: &Bytes) -> Text {
    Text {
        octets: content.clone(),
        data_coding: match coding {
            // ASCII (34 §5.2.19).
            0 => 1,
            // For the card: SIM-specific, class 2 (GSM 03.38).
            3 => 0xF6,
            other => other,
        },
        udhi: text::has_header(tp_udhi) && text::header(content).is_some(),
        payload: false,
    }
}

/// A reply that a gateway brings.
pub(super) fn reply(deliver: &Deliver, gateway: &GatewayOptions, wall: Timestamp) -> Message {
    let mut tlvs = BytesMut::new();
    if gateway.habits.link_id && deliver.reserve != [0; 8] {
        Fields { reserve: Some(deliver.reserve), ..Fields::default() }.append_to(&mut tlvs);
    }
    Message {
        id: MessageId::default(),
        kind: Kind::Text,
        origin: gateway.peer,
        source: address(&deliver.user, &gateway.habits),
        destination: Address::new(0, 1, &deliver.sp_number),
        service_type: Bytes::new(),
        protocol_id: deliver.tp_pid,
        esm_class: 0,
        priority: Priority::default(),
        receipts: ReceiptRequest::NONE,
        replace_if_present: false,
        submission: None,
        text: body(deliver.coding, deliver.tp_udhi, &deliver.content),
        tlvs: tlvs.freeze(),
        accepted_at: Timestamp::default(),
        scheduled: None,
        expires_at: wall + gateway.mo_validity,
        routed: unrouted(),
    }
}

/// What an SP's Submit is judged by.
pub(super) struct FromSp<'a> {
    pub(super) origin: PeerId,
    pub(super) validity: Duration,
    pub(super) habits: &'a Habits,
    pub(super) wall: Timestamp,
}

impl FromSp<'_> {
    /// One message a user. `source` is the access number as the account's rules have it.
    pub(super) fn messages(
        &self,
        submit: &Submit,
        sequence: Sequence,
        source: &Address,
    ) -> Result<Vec<Message>, Refused> {
        let forbidden = self.habits.dialect == Dialect::V13;
        if forbidden && submit.users.len() != 1 {
            return Err(ResultCode(19));
        }
        if forbidden && submit.mo_related == 3 {
            return Err(ResultCode(40));
        }
        // A fee record that is not for the handset: there is nothing here that could bill it.
        if submit.report_flag == 3 {
            return Err(ResultCode::NOT_OFFERED);
        }
        let when = |field: &[u8]| smpp::time::parse(field, self.wall).map_err(|_| ResultCode::PARAMETER);
        let (scheduled, expires) = (when(&submit.schedule_time)?, when(&submit.expire_time)?);
        let mut tlvs = BytesMut::new();
        Fields::of(submit, sequence).append_to(&mut tlvs);
        let tlvs = tlvs.freeze();
        let receipts = match submit.report_flag {
            0 => ReceiptRequest { on_failure: true, ..ReceiptRequest::NONE },
            1 => ReceiptRequest::FINAL,
            _ => ReceiptRequest::NONE,
        };
        let one = |user: &Bytes| {
            if user.is_empty()
                || !user.iter().enumerate().all(|(at, c)| c.is_ascii_digit() || (at == 0 && *c == b'+'))
            {
                return Err(ResultCode::NUMBER);
            }
            Ok(Message {
                id: MessageId::default(),
                kind: Kind::Text,
                origin: self.origin,
                source: source.clone(),
                destination: address(user, self.habits),
                service_type: Bytes::new(),
                protocol_id: submit.tp_pid,
                esm_class: 0,
                priority: Priority::new(submit.priority.div_ceil(3)),
                receipts,
                replace_if_present: false,
                submission: None,
                text: body(submit.coding, submit.tp_udhi, &submit.content),
                tlvs: tlvs.clone(),
                accepted_at: Timestamp::default(),
                scheduled,
                expires_at: expires.unwrap_or(self.wall + self.validity),
                routed: unrouted(),
            })
        };
        submit.users.iter().map(one).collect()
    }
}

/// The octets of a command without its sequence: what tells a repetition from another command under the same number.
pub(super) fn digest(pdu: &Pdu) -> u64 {
    let mut octets = BytesMut::new();
    pdu.encode(Sequence::default(), &mut octets);
    octets.put_u8(0);
    // FNV-1a: it must be the same after a restart, and a colliding command could only harm its own sender.
    octets
        .iter()
        .fold(0xCBF2_9CE4_8422_2325, |hash, octet| (hash ^ u64::from(*octet)).wrapping_mul(0x0100_0000_01B3))
}
