//! Conversion of a message to the PDUs for one link.

use crate::LongText;
use bytes::{BufMut, Bytes, BytesMut};
use model::{Message, MessageKind, Timestamp};
use ports::TlvRules;
use smpp::segmentation::{self, ESM_UDHI};
use smpp::{CommandStatus, Sm, Tlvs, delivery_receipt, tag};

/// Options of the conversion for a link.
#[derive(Clone, Debug)]
pub(crate) struct PduStyle {
    /// Whether messages are submitted (to an SMSC) or delivered (to an ESME).
    pub(crate) submits: bool,
    /// Whether the peer supports TLVs, and message ids of more than 8 characters.
    pub(crate) tlvs: bool,
    /// Form of long texts. A peer without TLVs always gets segments with a UDH.
    pub(crate) long: LongText,
    /// Whether validity_period is passed on.
    pub(crate) validity: bool,
    /// TLVs that messages must have, and default TLVs, if the peer supports TLVs.
    pub(crate) tlv_rules: TlvRules,
}

/// The PDUs of one message.
#[derive(Debug, PartialEq)]
pub(crate) enum MessagePdus {
    /// A single PDU.
    Single(Sm),
    /// Segments, to be sent in this order.
    Segments(Vec<Sm>),
}

/// Converts a GBK message, which SMPP cannot carry, to UCS2. A UDH is unchanged.
fn gbk_to_ucs2(message: &Message) -> Option<Message> {
    if message.text.data_coding != sgip::text::Coding::GBK.0 {
        return None;
    }
    let octets = &message.text.octets;
    let (head, words) =
        sgip::text::header(octets).filter(|_| message.text.udhi).unwrap_or((&[], octets.as_ref()));
    let mut converted = message.clone();
    converted.text.octets = [head, &sgip::text::gbk_to_utf16(words)].concat().into();
    converted.text.data_coding = sgip::text::Coding::UCS2.0;
    Some(converted)
}

/// Maximum length of an address in submit_sm and deliver_sm, in octets (34 §5.2.8).
const MAX_ADDRESS_OCTETS: usize = 20;

/// Formats relative validity periods. Caches the last one: consecutive messages mostly have the same.
#[derive(Debug, Default)]
pub(crate) struct ValidityFormatter {
    seconds: u64,
    text: Bytes,
}

impl ValidityFormatter {
    /// Formats the time until `expires_at` as a relative time, rounded up; at most 99 days.
    fn format(&mut self, expires_at: Timestamp, wall: Timestamp) -> Bytes {
        let seconds = expires_at.0.saturating_sub(wall.0).div_ceil(1000).clamp(1, 99 * 86_400);
        if seconds != self.seconds {
            let (days, rest) = (seconds / 86_400, seconds % 86_400);
            let (months, days) = (days / 30, days % 30);
            self.text = Bytes::from(format!(
                "00{months:02}{days:02}{:02}{:02}{:02}000R",
                rest / 3600,
                rest / 60 % 60,
                rest % 60
            ));
            self.seconds = seconds;
        }
        self.text.clone()
    }
}

impl PduStyle {
    /// Composes the PDUs of a message for one leg.
    ///
    /// # Errors
    /// The status that tells why this link cannot carry the message.
    pub(crate) fn compose(
        &self,
        message: &Message,
        leg: u8,
        want_dlr: bool,
        wall: Timestamp,
        validity_formatter: &mut ValidityFormatter,
    ) -> Result<MessagePdus, CommandStatus> {
        let (source, destination) = message.addresses_on(leg);
        if source.value.len() > MAX_ADDRESS_OCTETS {
            return Err(CommandStatus::RINVSRCADR);
        }
        if destination.value.len() > MAX_ADDRESS_OCTETS {
            return Err(CommandStatus::RINVDSTADR);
        }
        let mut sm = Sm {
            service_type: message.service_type.clone(),
            source: source.clone(),
            destination: destination.clone(),
            esm_class: message.esm_class,
            protocol_id: message.protocol_id,
            priority_flag: message.priority.level(),
            data_coding: message.text.data_coding,
            ..Sm::default()
        };
        if let MessageKind::Dlr(dlr) = &message.kind {
            let id = message.submission_id();
            let id = if self.tlvs { id.to_string() } else { id.short() };
            delivery_receipt::write(&mut sm, dlr, &id, &ports::text::display(&message.text).0, self.tlvs);
            return Ok(MessagePdus::Single(sm));
        }
        if self.submits {
            if want_dlr {
                // Both success and failure are requested. When the DLR arrives, the engine decides whether the
                // submitter gets it.
                sm.registered_delivery = if message.dlr_request.intermediate { 0x11 } else { 0x01 };
            }
            if self.validity {
                sm.validity_period = validity_formatter.format(message.expires_at, wall);
            }
        }
        let tlvs = self.tlv_rules.apply(message.outgoing_tlvs());
        sm.tlvs = Tlvs::from_raw(tlvs.map_err(|_| CommandStatus::RMISSINGTLV)?);
        if let Some(message) = gbk_to_ucs2(message) {
            sm.data_coding = message.text.data_coding;
            return self.put_text(&message, sm);
        }
        self.put_text(message, sm)
    }

    fn put_text(&self, message: &Message, mut sm: Sm) -> Result<MessagePdus, CommandStatus> {
        let text = &message.text;
        let mut octets = text.octets.clone();
        let mut udhi = text.udhi;
        if !self.tlvs && !sm.tlvs.is_empty() {
            // On a link without TLVs, the SAR information is moved into a UDH, so that it is not lost.
            if let Some(part) = segmentation::segment_info(udhi, &octets, &sm.tlvs).filter(|_| !udhi) {
                let [_, low] = part.reference.to_be_bytes();
                let mut whole = BytesMut::with_capacity(6 + octets.len());
                whole.put_slice(&[5, 0, 3, low, part.total, part.number]);
                whole.put_slice(&octets);
                octets = whole.freeze();
                udhi = true;
            }
            sm.tlvs = Tlvs::default();
        }
        if udhi {
            sm.esm_class |= ESM_UDHI;
        }
        let long = if self.tlvs { self.long } else { LongText::Udh };
        if long != LongText::Payload
            && !udhi
            && octets.len() > segmentation::octets_in_single(text.data_coding)
        {
            return Self::split(message, &sm, long);
        }
        if octets.len() > smpp::MAX_SHORT_MESSAGE || (text.payload && long == LongText::Payload) {
            if !self.tlvs {
                return Err(CommandStatus::RINVMSGLEN);
            }
            sm.tlvs = sm.tlvs.with(tag::MESSAGE_PAYLOAD, &octets);
        } else {
            sm.short_message = octets;
        }
        Ok(MessagePdus::Single(sm))
    }

    /// Splits the text into segments. The reference is derived from the message id, so an attempt that begins at a
    /// later segment uses the same reference as the previous attempt.
    fn split(message: &Message, sm: &Sm, long: LongText) -> Result<MessagePdus, CommandStatus> {
        let text = &message.text;
        let [.., high, low] = message.id.0.to_be_bytes();
        if long == LongText::Udh {
            let pieces = segmentation::split_udh(text.data_coding, &text.octets, low)
                .ok_or(CommandStatus::RINVMSGLEN)?;
            let esm_class = sm.esm_class | ESM_UDHI;
            return Ok(MessagePdus::Segments(
                pieces
                    .into_iter()
                    .map(|piece| Sm { esm_class, short_message: piece, ..sm.clone() })
                    .collect(),
            ));
        }
        let pieces = segmentation::split_text(
            text.data_coding,
            &text.octets,
            segmentation::octets_per_segment(text.data_coding),
        );
        let total = u8::try_from(pieces.len()).map_err(|_| CommandStatus::RINVMSGLEN)?;
        Ok(MessagePdus::Segments(
            pieces
                .into_iter()
                .zip(1_u8..)
                .map(|(piece, number)| Sm {
                    short_message: piece,
                    tlvs: sm
                        .tlvs
                        .with(tag::SAR_MSG_REF_NUM, &[high, low])
                        .with(tag::SAR_TOTAL_SEGMENTS, &[total])
                        .with(tag::SAR_SEGMENT_SEQNUM, &[number]),
                    ..sm.clone()
                })
                .collect(),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pdu_to_message;
    use model::{Address, DlrContent, DlrState, Leg, MessageId, PeerId, Verdict};

    const WALL: Timestamp = Timestamp(1_795_000_000_000);

    fn message(text: &[u8]) -> Message {
        let sm = Sm {
            source: Address::new(0, 0, b"10655"),
            destination: Address::international("8613012345678"),
            short_message: Bytes::copy_from_slice(text),
            ..Sm::default()
        };
        let mut message =
            pdu_to_message::mo_from_deliver_sm(sm, PeerId(1), Timestamp(WALL.0 + 90_500)).unwrap();
        message.id = MessageId(0x0102);
        message
    }

    fn style(long: LongText, tlvs: bool) -> PduStyle {
        PduStyle { submits: true, tlvs, long, validity: true, tlv_rules: TlvRules::default() }
    }

    fn compose(style: &PduStyle, message: &Message) -> Result<MessagePdus, CommandStatus> {
        style.compose(message, 0, true, WALL, &mut ValidityFormatter::default())
    }

    #[test]
    fn a_submit_has_the_addresses_of_the_leg_the_dlr_request_and_the_remaining_validity() {
        let mut message = message(b"Hello");
        let leg = Leg { destination: Some(Address::international("491701")), ..Leg::to(PeerId(2)) };
        message.routed.verdict = Verdict::Forward(vec![leg]);
        let MessagePdus::Single(sm) = compose(&style(LongText::Payload, true), &message).unwrap() else {
            panic!()
        };
        assert_eq!(sm.destination, Address::international("491701"));
        assert_eq!(sm.source.value.as_slice(), b"10655");
        assert_eq!((sm.registered_delivery, sm.validity_period.as_ref()), (1, &b"000000000131000R"[..]));
        assert_eq!(sm.short_message.as_ref(), b"Hello");
    }

    #[test]
    fn check_114_long_texts_three_ways() {
        let long = message(&[b'a'; 254]);
        let MessagePdus::Single(sm) = compose(&style(LongText::Payload, true), &long).unwrap() else {
            panic!()
        };
        assert_eq!(sm.short_message.len(), 254);
        let mut longer = message(b"");
        longer.text.octets = Bytes::from(vec![b'a'; 300]);
        let MessagePdus::Single(sm) = compose(&style(LongText::Payload, true), &longer).unwrap() else {
            panic!()
        };
        assert_eq!((sm.short_message.len(), sm.tlvs.get(tag::MESSAGE_PAYLOAD).unwrap().len()), (0, 300));
        for style in [style(LongText::Udh, true), style(LongText::Payload, false)] {
            let MessagePdus::Segments(segments) = compose(&style, &longer).unwrap() else { panic!() };
            assert_eq!(segments.len(), 2);
            assert_eq!(segments[0].short_message[..6], [5, 0, 3, 2, 2, 1]);
            assert!(segments.iter().all(|part| part.esm_class & ESM_UDHI != 0 && part.tlvs.is_empty()));
        }
        let MessagePdus::Segments(segments) = compose(&style(LongText::Sar, true), &longer).unwrap() else {
            panic!()
        };
        let found = segmentation::segment_info(false, &segments[1].short_message, &segments[1].tlvs).unwrap();
        assert_eq!((found.reference, found.total, found.number), (0x0102, 2, 2));
    }

    #[test]
    fn sar_tlvs_become_a_udh_for_a_peer_without_tlvs() {
        let mut part = message(b"two");
        part.tlvs = Tlvs::default()
            .with(tag::SAR_MSG_REF_NUM, &[1, 9])
            .with(tag::SAR_TOTAL_SEGMENTS, &[2])
            .with(tag::SAR_SEGMENT_SEQNUM, &[2])
            .raw()
            .clone();
        let MessagePdus::Single(sm) = compose(&style(LongText::Payload, false), &part).unwrap() else {
            panic!()
        };
        assert_eq!(sm.short_message.as_ref(), b"\x05\x00\x03\x09\x02\x02two");
        assert!(sm.tlvs.is_empty() && sm.esm_class & ESM_UDHI != 0);
    }

    #[test]
    fn check_029_139_dlrs_have_short_ids_and_no_tlvs_for_3_3() {
        let mut message = message(b"Hello");
        message.kind = MessageKind::Dlr(Box::new(DlrContent {
            of: MessageId::FIRST,
            state: DlrState::Delivered,
            intermediate: false,
            error: 0,
            network_error: None,
            submitted_at: WALL,
            done_at: WALL,
            segments: (1, 1),
            segment: 0,
            peer_id: model::PeerMessageId::default(),
        }));
        let deliver = |tlvs| PduStyle {
            submits: false,
            tlvs,
            long: LongText::Payload,
            validity: false,
            tlv_rules: TlvRules::default(),
        };
        let MessagePdus::Single(sm) = compose(&deliver(true), &message).unwrap() else { panic!() };
        assert!(sm.short_message.starts_with(b"id:1000000000 sub:001 dlvrd:001"));
        assert_eq!((sm.esm_class, sm.tlvs.u8(tag::MESSAGE_STATE)), (4, Some(2)));
        assert!(sm.validity_period.is_empty());
        let MessagePdus::Single(sm) = compose(&deliver(false), &message).unwrap() else { panic!() };
        let shown = format!("id:{} sub", MessageId::FIRST.short());
        assert!(sm.short_message.starts_with(shown.as_bytes()) && sm.tlvs.is_empty());
    }

    #[test]
    fn sgip_codings_and_fields_do_not_reach_an_smpp_peer() {
        let mut message = message(&[0xc4, 0xe3, 0xba, 0xc3]);
        message.text.data_coding = 15;
        message.tlvs = Bytes::from_static(&[0x02, 0x04, 0, 2, 0, 9, 0x15, 0x01, 0, 1, b'x']);
        let mut fields = BytesMut::new();
        sgip::SgipFields { fee_type: Some(2), ..sgip::SgipFields::default() }.append_to(&mut fields);
        message.protocol_fields = fields.freeze();
        let MessagePdus::Single(sm) = compose(&style(LongText::Payload, true), &message).unwrap() else {
            panic!()
        };
        assert_eq!((sm.data_coding, &sm.short_message[..]), (8, &[0x4f, 0x60, 0x59, 0x7d][..]));
        assert_eq!(sm.tlvs.raw()[..], message.tlvs[..], "a customer's own TLVs pass");
    }

    #[test]
    fn a_peer_requires_tlvs_and_gets_defaults() {
        let mut style = style(LongText::Payload, true);
        style.tlv_rules =
            TlvRules { defaults: vec![(0x1401, Bytes::from_static(b"brand"))], required: vec![0x1400] };
        let mut message = message(b"x");
        assert_eq!(compose(&style, &message), Err(CommandStatus::RMISSINGTLV));
        message.tlvs = Bytes::from_static(b"\x14\x00\0\x01e");
        let MessagePdus::Single(sm) = compose(&style, &message).unwrap() else { panic!() };
        assert_eq!(sm.tlvs.raw()[..], *b"\x14\x00\0\x01e\x14\x01\0\x05brand");
    }

    #[test]
    fn the_changes_of_the_router_are_on_the_wire() {
        let mut message = message(b"x");
        message.tlvs = Bytes::from_static(&[0x02, 0x04, 0, 2, 0, 9, 0x14, 0x01, 0, 1, b'x']);
        let mut changes = model::MessageChanges::default();
        changes.change_tlv(0x1401, Some(b"brand"[..].into()));
        changes.change_tlv(0x0204, None);
        message.routed.changes = Some(Box::new(changes));
        let MessagePdus::Single(sm) = compose(&style(LongText::Payload, true), &message).unwrap() else {
            panic!()
        };
        assert_eq!(sm.tlvs.raw()[..], *b"\x14\x01\0\x05brand");
    }

    #[test]
    fn addresses_that_do_not_fit_are_refused_not_cut() {
        let mut message = message(b"x");
        message.destination = Address::international("123456789012345678901");
        assert_eq!(compose(&style(LongText::Payload, true), &message), Err(CommandStatus::RINVDSTADR));
    }
}
