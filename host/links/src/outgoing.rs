//! From a message to the PDUs that carry it over one link.

use crate::LongText;
use bytes::{BufMut, Bytes, BytesMut};
use model::{Kind, Message, Timestamp};
use smpp::concat::{self, ESM_UDHI};
use smpp::{Sm, Status, Tlvs, receipt, tag};

/// How a link wants its messages.
#[derive(Clone, Debug)]
pub(crate) struct Style {
    /// Whether we submit (to an SMSC) or deliver (to an ESME).
    pub(crate) submits: bool,
    /// Whether the other end takes TLVs, and ids of more than 8 characters.
    pub(crate) tlvs: bool,
    /// Long texts. An end that takes no TLVs gets parts with a header whatever this says.
    pub(crate) long: LongText,
    /// Whether the end of validity is passed on.
    pub(crate) validity: bool,
}

/// The PDUs of one message.
#[derive(Debug, PartialEq)]
pub(crate) enum Composed {
    /// One is enough.
    One(Sm),
    /// Several, to be sent in this order.
    Parts(Vec<Sm>),
}

/// A message in GBK, which SMPP does not know, in UCS2; its header is left alone.
fn in_ucs2(message: &Message) -> Option<Message> {
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

/// Octets in an address of submit_sm and deliver_sm (34 §5.2.8).
const LONGEST_ADDRESS: usize = 20;

/// Writes relative validity periods, and remembers the last one: most messages of a run have the same.
#[derive(Debug, Default)]
pub(crate) struct Validities {
    seconds: u64,
    text: Bytes,
}

impl Validities {
    /// What is left until `expires_at` as a relative time, rounded up; at most 99 days.
    fn until(&mut self, expires_at: Timestamp, wall: Timestamp) -> Bytes {
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

impl Style {
    /// The PDUs of a message on a leg.
    ///
    /// # Errors
    /// The status that says why it cannot go over this link at all.
    pub(crate) fn compose(
        &self,
        message: &Message,
        leg: u8,
        want_receipt: bool,
        wall: Timestamp,
        validities: &mut Validities,
    ) -> Result<Composed, Status> {
        let (source, destination) = message.addresses_on(leg);
        if source.value.len() > LONGEST_ADDRESS {
            return Err(Status::RINVSRCADR);
        }
        if destination.value.len() > LONGEST_ADDRESS {
            return Err(Status::RINVDSTADR);
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
        if let Kind::Receipt(told) = &message.kind {
            let id = message.submitters_id();
            let id = if self.tlvs { id.to_string() } else { id.short() };
            receipt::write(&mut sm, told, &id, &doors::text::show(&message.text).0, self.tlvs);
            return Ok(Composed::One(sm));
        }
        if self.submits {
            if want_receipt {
                // Success or failure in any case: what the submitter is told of them is decided when they are known.
                sm.registered_delivery = if message.receipts.intermediate { 0x11 } else { 0x01 };
            }
            if self.validity {
                sm.validity_period = validities.until(message.expires_at, wall);
            }
        }
        if !message.tlvs.is_empty() {
            sm.tlvs = Tlvs::from_raw(sgip::without_private(&message.tlvs));
        }
        if let Some(message) = in_ucs2(message) {
            sm.data_coding = message.text.data_coding;
            return self.put_text(&message, sm);
        }
        self.put_text(message, sm)
    }

    fn put_text(&self, message: &Message, mut sm: Sm) -> Result<Composed, Status> {
        let text = &message.text;
        let mut octets = text.octets.clone();
        let mut udhi = text.udhi;
        if !self.tlvs && !sm.tlvs.is_empty() {
            // What SAR TLVs say must not be lost on a link without TLVs: it is said by a header there.
            if let Some(part) = concat::part_of(udhi, &octets, &sm.tlvs).filter(|_| !udhi) {
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
        if long != LongText::Payload && !udhi && octets.len() > concat::room_in_single(text.data_coding) {
            return Self::split(message, &sm, long);
        }
        if octets.len() > smpp::MAX_SHORT_MESSAGE || (text.payload && long == LongText::Payload) {
            if !self.tlvs {
                return Err(Status::RINVMSGLEN);
            }
            sm.tlvs = sm.tlvs.with(tag::MESSAGE_PAYLOAD, &octets);
        } else {
            sm.short_message = octets;
        }
        Ok(Composed::One(sm))
    }

    /// Parts in order. The reference is taken from the message's id, so that an attempt that begins in the middle
    /// goes on with the reference of the one before it.
    fn split(message: &Message, sm: &Sm, long: LongText) -> Result<Composed, Status> {
        let text = &message.text;
        let [.., high, low] = message.id.0.to_be_bytes();
        if long == LongText::Udh {
            let pieces = concat::split_udh(text.data_coding, &text.octets, low).ok_or(Status::RINVMSGLEN)?;
            let esm_class = sm.esm_class | ESM_UDHI;
            return Ok(Composed::Parts(
                pieces
                    .into_iter()
                    .map(|piece| Sm { esm_class, short_message: piece, ..sm.clone() })
                    .collect(),
            ));
        }
        let pieces = concat::cut(text.data_coding, &text.octets, concat::room_in_part(text.data_coding));
        let total = u8::try_from(pieces.len()).map_err(|_| Status::RINVMSGLEN)?;
        Ok(Composed::Parts(
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
    use crate::submission;
    use model::{Address, Leg, MessageId, PeerId, ReceiptState, ReceiptText, Verdict};

    const WALL: Timestamp = Timestamp(1_795_000_000_000);

    fn message(text: &[u8]) -> Message {
        let sm = Sm {
            source: Address::new(0, 0, b"10655"),
            destination: Address::international("8613012345678"),
            short_message: Bytes::copy_from_slice(text),
            ..Sm::default()
        };
        let mut message = submission::delivered(sm, PeerId(1), Timestamp(WALL.0 + 90_500)).unwrap();
        message.id = MessageId(0x0102);
        message
    }

    fn style(long: LongText, tlvs: bool) -> Style {
        Style { submits: true, tlvs, long, validity: true }
    }

    fn compose(style: &Style, message: &Message) -> Result<Composed, Status> {
        style.compose(message, 0, true, WALL, &mut Validities::default())
    }

    #[test]
    fn a_submit_carries_the_legs_addresses_the_receipt_wish_and_what_is_left_of_the_validity() {
        let mut message = message(b"Hello");
        let leg = Leg { destination: Some(Address::international("491701")), ..Leg::to(PeerId(2)) };
        message.routed.verdict = Verdict::Forward(vec![leg]);
        let Composed::One(sm) = compose(&style(LongText::Payload, true), &message).unwrap() else { panic!() };
        assert_eq!(sm.destination, Address::international("491701"));
        assert_eq!(sm.source.value.as_slice(), b"10655");
        assert_eq!((sm.registered_delivery, sm.validity_period.as_ref()), (1, &b"000000000131000R"[..]));
        assert_eq!(sm.short_message.as_ref(), b"Hello");
    }

    #[test]
    fn check_114_long_texts_three_ways() {
        let long = message(&[b'a'; 254]);
        let Composed::One(sm) = compose(&style(LongText::Payload, true), &long).unwrap() else { panic!() };
        assert_eq!(sm.short_message.len(), 254);
        let mut longer = message(b"");
        longer.text.octets = Bytes::from(vec![b'a'; 300]);
        let Composed::One(sm) = compose(&style(LongText::Payload, true), &longer).unwrap() else { panic!() };
        assert_eq!((sm.short_message.len(), sm.tlvs.get(tag::MESSAGE_PAYLOAD).unwrap().len()), (0, 300));
        for style in [style(LongText::Udh, true), style(LongText::Payload, false)] {
            let Composed::Parts(parts) = compose(&style, &longer).unwrap() else { panic!() };
            assert_eq!(parts.len(), 2);
            assert_eq!(parts[0].short_message[..6], [5, 0, 3, 2, 2, 1]);
            assert!(parts.iter().all(|part| part.esm_class & ESM_UDHI != 0 && part.tlvs.is_empty()));
        }
        let Composed::Parts(parts) = compose(&style(LongText::Sar, true), &longer).unwrap() else { panic!() };
        let found = concat::part_of(false, &parts[1].short_message, &parts[1].tlvs).unwrap();
        assert_eq!((found.reference, found.total, found.number), (0x0102, 2, 2));
    }

    #[test]
    fn sar_becomes_a_header_where_no_tlvs_are_taken() {
        let mut part = message(b"two");
        part.tlvs = Tlvs::default()
            .with(tag::SAR_MSG_REF_NUM, &[1, 9])
            .with(tag::SAR_TOTAL_SEGMENTS, &[2])
            .with(tag::SAR_SEGMENT_SEQNUM, &[2])
            .raw()
            .clone();
        let Composed::One(sm) = compose(&style(LongText::Payload, false), &part).unwrap() else { panic!() };
        assert_eq!(sm.short_message.as_ref(), b"\x05\x00\x03\x09\x02\x02two");
        assert!(sm.tlvs.is_empty() && sm.esm_class & ESM_UDHI != 0);
    }

    #[test]
    fn check_029_139_receipts_have_short_ids_and_no_tlvs_for_3_3() {
        let mut message = message(b"Hello");
        message.kind = Kind::Receipt(Box::new(ReceiptText {
            of: MessageId::FIRST,
            state: ReceiptState::Delivered,
            intermediate: false,
            error: 0,
            network_error: None,
            submitted_at: WALL,
            done_at: WALL,
            parts: (1, 1),
            part: 0,
            peer_id: model::PeerMessageId::default(),
        }));
        let deliver = |tlvs| Style { submits: false, tlvs, long: LongText::Payload, validity: false };
        let Composed::One(sm) = compose(&deliver(true), &message).unwrap() else { panic!() };
        assert!(sm.short_message.starts_with(b"id:1000000000 sub:001 dlvrd:001"));
        assert_eq!((sm.esm_class, sm.tlvs.u8(tag::MESSAGE_STATE)), (4, Some(2)));
        assert!(sm.validity_period.is_empty());
        let Composed::One(sm) = compose(&deliver(false), &message).unwrap() else { panic!() };
        let shown = format!("id:{} sub", MessageId::FIRST.short());
        assert!(sm.short_message.starts_with(shown.as_bytes()) && sm.tlvs.is_empty());
    }

    #[test]
    fn what_only_sgip_knows_does_not_reach_an_smpp_peer() {
        let mut message = message(&[0xc4, 0xe3, 0xba, 0xc3]);
        message.text.data_coding = 15;
        let mut tlvs = BytesMut::from(&[0x02, 0x04, 0, 2, 0, 9][..]);
        sgip::Fields { fee_type: Some(2), ..sgip::Fields::default() }.append_to(&mut tlvs);
        message.tlvs = tlvs.freeze();
        let Composed::One(sm) = compose(&style(LongText::Payload, true), &message).unwrap() else { panic!() };
        assert_eq!((sm.data_coding, &sm.short_message[..]), (8, &[0x4f, 0x60, 0x59, 0x7d][..]));
        assert_eq!(sm.tlvs.raw()[..], [0x02, 0x04, 0, 2, 0, 9]);
    }

    #[test]
    fn addresses_that_do_not_fit_are_refused_and_not_cut() {
        let mut message = message(b"x");
        message.destination = Address::international("123456789012345678901");
        assert_eq!(compose(&style(LongText::Payload, true), &message), Err(Status::RINVDSTADR));
    }
}
