//! From messages to what handsets are given.

use crate::options::GsmOptions;
use bytes::Bytes;
use model::{Address, Kind, Message, ReceiptState, ReceiptText, Text, Timestamp};
use tpdu::smpp::{Carried, Optional, to_air_with};
use tpdu::{Deliver, Language, Parameters, Reference, Status, StatusReport, TimeStamp};

/// Under this tag a message from a handset keeps its TP-MR and the address as the handset wrote it, for the status report.
const SUBMITTED: u16 = 0x15F0;

pub(crate) fn stamp(at: Timestamp, zone: i8) -> Result<TimeStamp, tpdu::Error> {
    TimeStamp::at(at.0, zone)
}

/// The TPDUs of a message, one a part; the last one says whether another message waits. All else is a function of what is on
/// disk: by originator and service centre time a handset can tell a repetition that settles a doubt.
pub(crate) fn parts(
    message: &Message,
    leg: u8,
    more: bool,
    options: &GsmOptions,
) -> Result<Vec<Bytes>, tpdu::Error> {
    if let Kind::Receipt(receipt) = &message.kind {
        return Ok(vec![status_report(message, receipt, options)?.encode()?.into()]);
    }
    let (source, _) = message.addresses_on(leg);
    let shown = options.plan.as_ref().map(|plan| plan.display(source));
    let originator = address(shown.as_ref().unwrap_or(source))?;
    let text = &message.text;
    let reference = Reference::Short(u8::try_from(message.id.0 & 0xFF).unwrap_or(0));
    let optional = Optional::read(&message.tlvs);
    let to_air = |data_coding, udhi| to_air_with(data_coding, udhi, &text.octets, reference, &optional);
    let air = match to_air(text.data_coding, text.udhi) {
        // Many ESMEs mean Latin-1 by "the default": nothing else has octets over 127.
        Err(tpdu::Error::NotASeptet { .. }) if text.data_coding == 0 && !text.udhi => to_air(3, false)?,
        air => air?,
    };
    let national = || {
        let written = in_national_tables(text, &options.languages)?;
        to_air_with(written.data_coding, written.udhi, &written.octets, reference, &optional).ok()
    };
    let air = national().filter(|shorter| shorter.parts.len() < air.parts.len()).unwrap_or(air);
    let last = air.parts.len();
    let deliver = |(index, user_data)| {
        let deliver = Deliver {
            more_messages: index + 1 < last || more,
            loop_prevention: false,
            status_report_indication: false,
            reply_path: message.esm_class & 0x80 != 0,
            originator: originator.clone(),
            protocol_id: message.protocol_id,
            data_coding: air.data_coding,
            service_centre_time: stamp(message.accepted_at, options.zone)?,
            user_data,
        };
        Ok(deliver.encode()?.into())
    };
    air.parts.iter().cloned().enumerate().map(deliver).collect()
}

/// A UCS-2 text in the alphabet that takes the fewest segments, out of the default one and the tables of the languages that the
/// network's handsets support. `None` where there is no choice: no languages, another coding, or octets that are no UTF-16.
fn in_national_tables(text: &Text, languages: &[Language]) -> Option<Carried> {
    if languages.is_empty() || text.data_coding != 8 || text.udhi || !text.octets.len().is_multiple_of(2) {
        return None;
    }
    let units = text.octets.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]]));
    let readable: String = char::decode_utf16(units).collect::<Result<_, _>>().ok()?;
    let written = tpdu::text::encode(&readable, languages);
    (written.data_coding != text.data_coding).then_some(written)
}

/// An address as the air has it. What has no type and begins with a plus sign is international.
fn address(address: &Address) -> Result<tpdu::Address, tpdu::Error> {
    let ton = if address.ton == 0 && address.value.first() == Some(&b'+') { 1 } else { address.ton };
    tpdu::Address::from_smpp(ton, address.npi, &address.value)
}

/// What is kept of a submission for its status report.
pub(crate) fn keep(reference: u8, destination: &tpdu::Address) -> Bytes {
    let address = destination.encode().unwrap_or_default();
    let length = u16::try_from(1 + address.len()).unwrap_or(u16::MAX);
    let mut tlv = Vec::with_capacity(5 + address.len());
    tlv.extend(SUBMITTED.to_be_bytes());
    tlv.extend(length.to_be_bytes());
    tlv.push(reference);
    tlv.extend(address);
    tlv.into()
}

/// Reads what [`keep`] wrote.
pub(crate) fn kept(tlvs: &[u8]) -> Option<(u8, tpdu::Address)> {
    let mut rest = tlvs;
    while let [tag_high, tag_low, high, low, after @ ..] = rest {
        let (value, after) = after.split_at_checked(usize::from(u16::from_be_bytes([*high, *low])))?;
        if u16::from_be_bytes([*tag_high, *tag_low]) == SUBMITTED {
            let (reference, address) = value.split_first()?;
            return Some((*reference, tpdu::Address::decode(address).ok()?));
        }
        rest = after;
    }
    None
}

fn status_report(
    message: &Message,
    receipt: &ReceiptText,
    options: &GsmOptions,
) -> Result<StatusReport, tpdu::Error> {
    let (message_reference, recipient) = match kept(&message.tlvs) {
        Some(kept) => kept,
        None => (0, address(&message.source)?),
    };
    Ok(StatusReport {
        more_messages: false,
        loop_prevention: false,
        about_command: false,
        message_reference,
        recipient,
        service_centre_time: stamp(receipt.submitted_at, options.zone)?,
        discharge_time: stamp(receipt.done_at, options.zone)?,
        status: status(receipt.state),
        parameters: Parameters::default(),
    })
}

pub(crate) fn status(state: ReceiptState) -> Status {
    match state {
        ReceiptState::Delivered => Status::DELIVERED,
        ReceiptState::Accepted => Status::FORWARDED,
        ReceiptState::Expired => Status::EXPIRED,
        ReceiptState::Deleted => Status::DELETED_BY_ADMIN,
        ReceiptState::Rejected => Status::REFUSED,
        ReceiptState::Scheduled | ReceiptState::Enroute => Status::TRYING_NO_RESPONSE,
        ReceiptState::Undeliverable | ReceiptState::Skipped => Status::NOT_OBTAINABLE,
        // Handed over, and never learnt what became of it.
        ReceiptState::Unknown => Status::FORWARDED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{DecidedBy, MessageId, PeerId, Priority, ReceiptRequest, RejectReason, Routed, Verdict};
    use std::sync::Arc;
    use tpdu::ToMs;

    fn message(data_coding: u8, octets: &[u8]) -> Message {
        let by = Arc::new(DecidedBy { plugin: String::new(), version: String::new() });
        Message {
            id: MessageId(1_000_000_007),
            kind: Kind::Text,
            origin: PeerId(1),
            source: Address::new(5, 0, b"ACME"),
            destination: Address::international("15551234567"),
            service_type: Bytes::new(),
            protocol_id: 0,
            esm_class: 0,
            priority: Priority::default(),
            receipts: ReceiptRequest::NONE,
            replace_if_present: false,
            submission: None,
            text: Text { octets: Bytes::copy_from_slice(octets), data_coding, udhi: false, payload: false },
            tlvs: Bytes::new(),
            accepted_at: Timestamp(1_703_367_462_000),
            scheduled: None,
            expires_at: Timestamp(1_803_367_462_000),
            routed: Routed::new(Verdict::Reject(RejectReason::NoRoute), by),
        }
    }

    fn delivers(message: &Message, more: bool) -> Vec<Deliver> {
        let options = GsmOptions { zone: -32, ..GsmOptions::new("home", PeerId(2)) };
        let read = |part: &Bytes| match ToMs::decode(part, false) {
            Ok(ToMs::Deliver(deliver)) => deliver,
            other => panic!("{other:?}"),
        };
        parts(message, 0, more, &options).unwrap().iter().map(read).collect()
    }

    #[test]
    fn a_deliver_has_the_time_of_acceptance_in_the_networks_zone() {
        let made = delivers(&message(0, b"hello"), false);
        assert_eq!(made.len(), 1);
        assert_eq!(made[0].originator.text(), "ACME");
        assert_eq!((made[0].service_centre_time.hour, made[0].service_centre_time.quarters), (13, -32));
        assert!(!made[0].more_messages && delivers(&message(0, b"hello"), true)[0].more_messages);
    }

    #[test]
    fn all_parts_but_the_last_say_that_more_wait() {
        let made = delivers(&message(0, &[b'x'; 400]), false);
        assert_eq!(made.iter().map(|part| part.more_messages).collect::<Vec<_>>(), [true, true, false]);
        assert!(made.iter().all(|part| part.user_data.udhi));
        // The same message is the same parts, whenever it is sent.
        assert_eq!(made, delivers(&message(0, &[b'x'; 400]), false));
    }

    #[test]
    fn latin_1_that_calls_itself_the_default_is_taken_for_what_it_is() {
        let made = delivers(&message(0, b"caf\xE9"), false);
        assert_eq!(made[0].data_coding, 0);
        assert_eq!(made[0].user_data.unpack(tpdu::Alphabet::Gsm7), b"caf\x05");
    }

    #[test]
    fn national_tables_are_used_where_they_are_allowed_and_save_segments() {
        let utf16 = |text: &str| text.encode_utf16().flat_map(u16::to_be_bytes).collect::<Vec<u8>>();
        let turkish = GsmOptions { languages: vec![Language::Turkish], ..GsmOptions::new("home", PeerId(2)) };
        let sent = |octets: &[u8], options: &GsmOptions| -> Vec<Deliver> {
            let read = |part: &Bytes| match ToMs::decode(part, false) {
                Ok(ToMs::Deliver(deliver)) => deliver,
                other => panic!("{other:?}"),
            };
            parts(&message(8, octets), 0, false, options).unwrap().iter().map(read).collect()
        };
        let text = "Işıklar sönmüş. ".repeat(8);
        let plain = sent(&utf16(&text), &GsmOptions::new("home", PeerId(2)));
        assert_eq!((plain.len(), plain[0].data_coding), (2, 8), "only where the network allows it");
        let national = sent(&utf16(&text), &turkish);
        assert_eq!((national.len(), national[0].data_coding), (1, 0));
        assert_eq!(tpdu::text::decode(0, &national[0].user_data), text);
        // Nothing is saved: every handset reads UCS-2.
        assert_eq!(sent(&utf16("Işık"), &turkish)[0].data_coding, 8);
        // Another script, half a surrogate pair and an odd octet stay as they are.
        assert_eq!(sent(&utf16(&"测".repeat(80)), &turkish)[0].data_coding, 8);
        let half = [&[0xD8, 0x3D][..], &utf16(&text)].concat();
        assert_eq!(sent(&half, &turkish)[0].data_coding, 8);
    }

    #[test]
    fn segments_ports_and_subunit_of_smpp_reach_the_handset() {
        let sar = b"\x02\x0C\0\x02\0\x07\x02\x0E\0\x01\x02\x02\x0F\0\x01\x02";
        let tlvs = [&sar[..], b"\x02\x0B\0\x02\x0B\x84\0\x05\0\x01\x01"].concat();
        let made = delivers(&Message { tlvs: tlvs.into(), ..message(0, b"second half") }, false);
        assert_eq!((made.len(), made[0].data_coding), (1, 0x10));
        let header = made[0].user_data.header(tpdu::Alphabet::Gsm7).unwrap();
        let part = header.part_of().unwrap();
        assert_eq!((part.reference, part.total, part.number), (7, 2, 2));
        assert_eq!(header.ports(), Some((2948, 0)));
    }

    #[test]
    fn what_is_kept_of_a_submission_is_found_again() {
        let number = tpdu::Address::from_smpp(0, 1, b"5551234").unwrap();
        let other = [&[0x15, 0x01, 0, 1, 9][..], &keep(42, &number)[..]].concat();
        assert_eq!(kept(&other), Some((42, number)));
        for length in 0..other.len() {
            assert_eq!(kept(&other[..length]), None, "{length}");
        }
    }
}
