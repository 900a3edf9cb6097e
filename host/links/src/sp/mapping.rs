//! The mapping between messages and the requests of CMPP and SMGP.

use super::options::{SpGatewayOptions, SpNodeOptions};
use super::part_references::PartReferences;
use super::signature;
use crate::content_coding::{Segments, address, beijing_time, segments, text_of, user_number};
use crate::pdu_to_message::unrouted;
use bytes::{BufMut as _, Bytes, BytesMut};
use model::{
    Address, AddressBytes, Dlr, DlrContent, DlrRequest, DlrState, Message, MessageId, MessageKind, PeerId,
    PeerMessageId, Priority, Timestamp,
};
use sgip::SgipFields;
use smpp::segmentation::segment_info;
use smpp::{Tlvs, tag};
use sp_session::{
    Content, Delivery, SegmentNumber, SpFields, SpProtocol, SpStatusReport, Statuses, Submission, is_final,
    state_of, wall_clock, word_of,
};
use std::time::{Duration, Instant};

/// Maximum octets of content per request; texts in ASCII may be longer.
const MAX_OCTETS: usize = 140;
/// Maximum octets of accepted content in ASCII.
const MAX_ASCII: usize = 160;

/// The contents of a message's requests. A text that is already a segment stays one; SAR TLVs of SMPP become a UDH.
/// With `signed`, the text gets the node's signature.
fn contents(
    message: &Message,
    node: &SpNodeOptions,
    signed: bool,
    status: &Statuses,
) -> Result<Vec<Content>, u32> {
    let mut text = message.text.clone();
    let tlvs = Tlvs::from_raw(message.outgoing_tlvs());
    let info = segment_info(text.udhi, &text.octets, &tlvs);
    if let (false, Some(info)) = (text.udhi, info) {
        let [_, reference] = info.reference.to_be_bytes();
        text.octets = [&[5, 0, 3, reference, info.total, info.number], &text.octets[..]].concat().into();
        text.udhi = true;
    }
    if let Some(signed) = signed.then(|| signature::signed(&text, info.is_some(), node)).flatten() {
        text = signed;
    }
    let Segments { coding, contents, header } =
        segments(&text, node.gbk, message.id, node.ascii_length).ok_or(status.length)?;
    let total = u8::try_from(contents.len()).map_err(|_| status.length)?;
    let longest = if coding.0 == 0 { MAX_ASCII } else { MAX_OCTETS };
    let content = |(octets, number): (Bytes, u8)| {
        let part = match info {
            Some(info) => Some(SegmentNumber { total: info.total, number: info.number }),
            None => (total > 1).then_some(SegmentNumber { total, number }),
        };
        if octets.len() > longest {
            return Err(status.length);
        }
        Ok(Content { format: coding.0, octets, udhi: header, part })
    };
    contents.into_iter().zip(1..=u8::MAX).map(content).collect()
}

/// The SP fields of a message, which may also have arrived over SGIP or from a business system.
fn fields_of(message: &Message) -> SpFields {
    let sgip = SgipFields::read(&message.protocol_fields);
    let link_id = sgip.reserve.unwrap_or_default();
    let end = link_id.iter().position(|octet| *octet == 0).unwrap_or(link_id.len());
    let others = SpFields {
        service: sgip.service_type.unwrap_or_else(|| message.service_type.clone()),
        link_id: Bytes::copy_from_slice(&link_id[..end]),
        ..SpFields::default()
    };
    SpFields::read(&message.protocol_fields).or(&others)
}

/// Makes the Submits of a message for one of its legs.
pub(super) fn submissions(
    message: &Message,
    leg: u8,
    want_dlr: bool,
    gateway: &SpGatewayOptions,
    status: &Statuses,
) -> Result<Vec<Submission>, u32> {
    let (source, destination) = message.addresses_on(leg);
    let user = user_number(&destination.value, gateway.node.add_86);
    if user.is_empty() || user.len() > 21 || !user.iter().all(u8::is_ascii_digit) {
        return Err(status.destination);
    }
    if source.value.len() > 21 {
        return Err(status.source);
    }
    let mut fields = fields_of(message).or(&gateway.submit_fields);
    if fields.sp_code.is_empty() {
        fields.sp_code = gateway.login_name.clone();
    }
    let one = |content: Content| Submission {
        source: Bytes::copy_from_slice(&source.value),
        destinations: vec![user.clone()],
        content,
        wants_report: Some(want_dlr),
        priority: message.priority.level(),
        protocol_id: message.protocol_id,
        valid_until: beijing_time(message.expires_at),
        deliver_at: Bytes::new(),
        fields: fields.clone(),
    };
    Ok(contents(message, &gateway.node, true, status)?.into_iter().map(one).collect())
}

/// The id of a Deliver. It is derived from the message, so a repetition has the same id, by which the SP recognises it.
pub(super) fn deliver_id<P: SpProtocol>(message: &Message, part: u32, gateway: u32) -> Bytes {
    // The ids of segments are far apart, so that they differ from those of the next messages.
    let counter = u32::try_from(message.id.0 & 0xFFFF).unwrap_or(0).wrapping_add(part.wrapping_mul(40_503));
    P::message_id(message.accepted_at.0 / 1000, counter & 0xFFFF, gateway)
}

/// Makes the Delivers of a message for an SP.
pub(super) fn deliveries<P: SpProtocol>(
    message: &Message,
    node: &SpNodeOptions,
    gateway: u32,
) -> Result<Vec<Delivery>, u32> {
    let status = &P::STATUS;
    let (source, destination) = message.addresses_on(0);
    if source.value.len() > 19 || destination.value.len() > 21 {
        return Err(status.destination);
    }
    let fields = fields_of(message);
    let one = |(content, part): (Content, u32)| Delivery {
        id: deliver_id::<P>(message, part, gateway),
        source: user_number(&source.value, node.add_86),
        destination: Bytes::copy_from_slice(&destination.value),
        content,
        protocol_id: message.protocol_id,
        fields: fields.clone(),
        received: format!("20{}", wall_clock(message.accepted_at)).into(),
    };
    Ok(contents(message, node, false, status)?.into_iter().zip(0..).map(one).collect())
}

/// Makes the status report of a DLR for an SP; `None` if the message was not submitted over the SP's protocol, since it
/// then has no id that a report could refer to.
pub(super) fn report_from_dlr<P: SpProtocol>(
    message: &Message,
    dlr: &DlrContent,
    node: &SpNodeOptions,
    gateway: u32,
) -> Option<SpStatusReport> {
    let fields = SpFields::read(&message.protocol_fields);
    if fields.submission.len() != P::ID_LENGTH {
        return None;
    }
    let minute = |at: Timestamp| wall_clock(at).get(..10).unwrap_or_default().to_owned().into();
    Some(SpStatusReport {
        id: deliver_id::<P>(message, 0, gateway),
        submission: fields.submission,
        // In the form that the SP used in its Submit, as far as the options determine it.
        subscriber: user_number(&message.source.value, node.add_86),
        source: Bytes::copy_from_slice(&message.destination.value),
        service: fields.service,
        word: Bytes::from_static(word_of(dlr.state)),
        error: network_code(dlr),
        submitted: minute(dlr.submitted_at),
        done: minute(dlr.done_at),
    })
}

/// The three-digit code of a report: the network's code, or the code for the state (SMGP 3.0.3 §6.2.63).
fn network_code(dlr: &DlrContent) -> u16 {
    if dlr.error != 0 {
        return dlr.error;
    }
    match dlr.state {
        DlrState::Delivered | DlrState::Accepted | DlrState::Enroute | DlrState::Scheduled => 0,
        DlrState::Expired => 1,
        DlrState::Unknown => 999,
        DlrState::Deleted | DlrState::Undeliverable | DlrState::Rejected | DlrState::Skipped => 6,
    }
}

/// Reads the DLR of a gateway's status report.
pub(super) fn dlr_from_report(report: &SpStatusReport) -> Dlr {
    let state = state_of(&report.word);
    // A gateway's own state ends with a code, for example MK:0001.
    let digits = report.word.rsplit(|octet| *octet == b':').next().unwrap_or_default();
    let word_code = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok());
    Dlr {
        id: PeerMessageId::new(&report.submission),
        state,
        intermediate: !is_final(state),
        error: if report.error == 0 { word_code.unwrap_or(0) } else { report.error },
        network_error: None,
        done_at: done_at(&report.done),
        from: AddressBytes::from_slice(&report.subscriber),
        to: AddressBytes::from_slice(&report.source),
    }
}

/// Parses `YYMMDDhhmm` in China's time zone.
fn done_at(text: &[u8]) -> Option<Timestamp> {
    let at = smpp::time::parse_receipt(text.get(..10)?)?;
    Some(Timestamp(at.0.saturating_sub(8 * 3_600_000)))
}

/// Makes the MO message of a gateway's Deliver.
pub(super) fn mo_from_delivery(delivery: &Delivery, gateway: &SpGatewayOptions, wall: Timestamp) -> Message {
    let mut fields = BytesMut::new();
    delivery.fields.append_to(&mut fields);
    Message {
        id: MessageId::default(),
        kind: MessageKind::Text,
        origin: gateway.peer,
        source: address(&delivery.source, gateway.node.strip_86),
        destination: Address::new(0, 1, &delivery.destination),
        service_type: Bytes::new(),
        protocol_id: delivery.protocol_id,
        esm_class: 0,
        priority: Priority::default(),
        dlr_request: DlrRequest::NONE,
        replace_if_present: false,
        submission: None,
        text: text_of(coding(delivery.content.format), delivery.content.udhi, &delivery.content.octets),
        tlvs: Bytes::new(),
        protocol_fields: fields.freeze(),
        sealed: None,
        accepted_at: Timestamp::default(),
        scheduled: None,
        expires_at: wall + gateway.mo_validity,
        routed: unrouted(),
    }
}

/// The coding as in SGIP and SMPP. Some peers add SMPP's message class (16).
fn coding(format: u8) -> u8 {
    match format {
        0x10 => 0,
        0x18 | 9 => 8,
        246 => 3,
        other => other,
    }
}

/// The rules that an SP's Submit must meet.
pub(super) struct SubmitRules<'a> {
    pub(super) origin: PeerId,
    pub(super) validity: Duration,
    pub(super) node: &'a SpNodeOptions,
    pub(super) status: &'a Statuses,
    pub(super) references: &'a PartReferences,
    pub(super) wall: Timestamp,
    pub(super) now: Instant,
}

impl SubmitRules<'_> {
    /// Makes one message per subscriber, with ids from `first_id` on. `source` is the source number, as permitted by
    /// the account's rules.
    pub(super) fn messages<P: SpProtocol>(
        &self,
        submission: &Submission,
        source: &Address,
        first_id: &[u8],
    ) -> Result<Vec<Message>, u32> {
        // A billing record that no handset gets: the appliance cannot bill it.
        let wants_report = submission.wants_report.ok_or(self.status.other)?;
        let content = &submission.content;
        let longest = if content.format == 0 { MAX_ASCII } else { MAX_OCTETS };
        if content.octets.len() > longest {
            return Err(self.status.length);
        }
        let (scheduled, expires) = (self.time(&submission.deliver_at)?, self.time(&submission.valid_until)?);
        let text = text_of(coding(content.format), content.udhi, &content.octets);
        let text = signature::signed(&text, content.part.is_some(), self.node).unwrap_or(text);
        let sar = content.part.filter(|_| !text.udhi).map(|part| {
            let users: Vec<&[u8]> = submission.destinations.iter().map(|user| &user[..]).collect();
            let reference = self.references.of(self.origin, &source.value, &users, part, self.now);
            sar_tlvs(reference, part)
        });
        let one = |(user, index): (&Bytes, u32)| {
            let digits = user.strip_prefix(b"+").unwrap_or(user);
            if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
                return Err(self.status.destination);
            }
            let mut fields = BytesMut::new();
            let id = P::following_id(first_id, index);
            SpFields { submission: id, ..submission.fields.clone() }.append_to(&mut fields);
            Ok(Message {
                id: MessageId::default(),
                kind: MessageKind::Text,
                origin: self.origin,
                source: source.clone(),
                destination: address(user, self.node.strip_86),
                service_type: Bytes::new(),
                protocol_id: submission.protocol_id,
                esm_class: 0,
                priority: Priority::new(submission.priority),
                dlr_request: if wants_report { DlrRequest::FINAL } else { DlrRequest::NONE },
                replace_if_present: false,
                submission: None,
                text: text.clone(),
                tlvs: sar.as_deref().map(Bytes::copy_from_slice).unwrap_or_default(),
                protocol_fields: fields.freeze(),
                sealed: None,
                accepted_at: Timestamp::default(),
                scheduled,
                expires_at: expires.unwrap_or(self.wall + self.validity),
                routed: unrouted(),
            })
        };
        submission.destinations.iter().zip(0..).map(one).collect()
    }

    /// Parses a time in SMPP's form. Without a time zone, it is in China's.
    fn time(&self, field: &[u8]) -> Result<Option<Timestamp>, u32> {
        let zoned = [field, b"032+"].concat();
        let field = if field.len() == 12 { &zoned } else { field };
        smpp::time::parse(field, self.wall).map_err(|_| self.status.time)
    }
}

/// The segment information as SAR TLVs of SMPP, which the mappings of all protocols understand.
fn sar_tlvs(reference: u16, part: SegmentNumber) -> Bytes {
    let mut tlvs = BytesMut::new();
    tlvs.put_u16(tag::SAR_MSG_REF_NUM);
    tlvs.put_u16(2);
    tlvs.put_u16(reference);
    for (tag, value) in [(tag::SAR_TOTAL_SEGMENTS, part.total), (tag::SAR_SEGMENT_SEQNUM, part.number)] {
        tlvs.put_u16(tag);
        tlvs.put_u16(1);
        tlvs.put_u8(value);
    }
    tlvs.freeze()
}
