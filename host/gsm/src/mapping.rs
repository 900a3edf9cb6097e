//! Conversion from messages to TPDUs for handsets.

use crate::options::GsmOptions;
use bytes::Bytes;
use model::{Address, DlrContent, DlrState, Message, MessageKind, Text, Timestamp};
use tpdu::smpp::{OptionalParameters, SmppText, to_air_with};
use tpdu::{ConcatReference, Deliver, Language, Parameters, StatusReport, TimeStamp, TpStatus};

/// Private TLV tag: TP-MR and TP-DA of an MO as the handset sent them, kept for the status report.
const SUBMISSION_TAG: u16 = 0x15F0;

pub(crate) fn timestamp(at: Timestamp, zone: i8) -> Result<TimeStamp, tpdu::Error> {
    TimeStamp::at(at.0, zone)
}

/// Encodes a message as one TPDU per segment; `more` sets more-messages on the last one. The result depends on stored
/// data only: a handset can recognise a repetition by originator and service centre time.
pub(crate) fn segments(
    message: &Message,
    leg: u8,
    more: bool,
    options: &GsmOptions,
) -> Result<Vec<Bytes>, tpdu::Error> {
    if let MessageKind::Dlr(dlr) = &message.kind {
        return Ok(vec![status_report(message, dlr, options)?.encode()?.into()]);
    }
    let (source, _) = message.addresses_on(leg);
    let shown = options.plan.as_ref().map(|plan| plan.display(source));
    let originator = address(shown.as_ref().unwrap_or(source))?;
    let text = &message.text;
    let (id, accepted_at) = message.first_acceptance();
    let reference = ConcatReference::Short(u8::try_from(id.0 & 0xFF).unwrap_or(0));
    let optional = OptionalParameters::read(&message.tlvs);
    let to_air = |data_coding, udhi| to_air_with(data_coding, udhi, &text.octets, reference, &optional);
    let air = match to_air(text.data_coding, text.udhi) {
        // Many ESMEs use 0 for Latin-1. Only then octets over 127 occur.
        Err(tpdu::Error::NotASeptet { .. }) if text.data_coding == 0 && !text.udhi => to_air(3, false)?,
        air => air?,
    };
    let national = || {
        let written = in_national_tables(text, &options.languages)?;
        to_air_with(written.data_coding, written.udhi, &written.octets, reference, &optional).ok()
    };
    let air = national().filter(|shorter| shorter.segments.len() < air.segments.len()).unwrap_or(air);
    let last = air.segments.len();
    let deliver = |(index, user_data)| {
        let deliver = Deliver {
            more_messages: index + 1 < last || more,
            loop_prevention: false,
            status_report_indication: false,
            reply_path: message.esm_class & 0x80 != 0,
            originator: originator.clone(),
            protocol_id: message.protocol_id,
            data_coding: air.data_coding,
            service_centre_time: timestamp(accepted_at, options.zone)?,
            user_data,
        };
        Ok(deliver.encode()?.into())
    };
    air.segments.iter().cloned().enumerate().map(deliver).collect()
}

/// Encodes a UCS-2 text in the alphabet with the fewest segments: the default alphabet or a table of `languages`.
/// `None` if there are no languages, for other codings, and for invalid UTF-16.
fn in_national_tables(text: &Text, languages: &[Language]) -> Option<SmppText> {
    if languages.is_empty() || text.data_coding != 8 || text.udhi || !text.octets.len().is_multiple_of(2) {
        return None;
    }
    let units = text.octets.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]]));
    let readable: String = char::decode_utf16(units).collect::<Result<_, _>>().ok()?;
    let written = tpdu::text::encode(&readable, languages);
    (written.data_coding != text.data_coding).then_some(written)
}

/// Converts an address to a TP address. An address with unknown type and a leading plus sign is international.
fn address(address: &Address) -> Result<tpdu::TpAddress, tpdu::Error> {
    let ton = if address.ton == 0 && address.value.first() == Some(&b'+') { 1 } else { address.ton };
    tpdu::TpAddress::from_smpp(ton, address.npi, &address.value)
}

/// Encodes the TLV that keeps TP-MR and TP-DA for the status report.
pub(crate) fn submission_tlv(reference: u8, destination: &tpdu::TpAddress) -> Bytes {
    let address = destination.encode().unwrap_or_default();
    let mut tlv = Vec::with_capacity(5 + address.len());
    model::put_tlv(&mut tlv, SUBMISSION_TAG, &[&[reference], &address[..]].concat());
    tlv.into()
}

/// Decodes the TLV of [`submission_tlv`].
pub(crate) fn read_submission_tlv(tlvs: &[u8]) -> Option<(u8, tpdu::TpAddress)> {
    let (_, value) = model::tlvs(tlvs).find(|(tag, _)| *tag == SUBMISSION_TAG)?;
    let (reference, address) = value.split_first()?;
    Some((*reference, tpdu::TpAddress::decode(address).ok()?))
}

fn status_report(
    message: &Message,
    dlr: &DlrContent,
    options: &GsmOptions,
) -> Result<StatusReport, tpdu::Error> {
    let (message_reference, recipient) = match read_submission_tlv(&message.protocol_fields) {
        Some(read_submission_tlv) => read_submission_tlv,
        None => (0, address(&message.source)?),
    };
    Ok(StatusReport {
        more_messages: false,
        loop_prevention: false,
        about_command: false,
        message_reference,
        recipient,
        service_centre_time: timestamp(dlr.submitted_at, options.zone)?,
        discharge_time: timestamp(dlr.done_at, options.zone)?,
        status: dlr_status(dlr.state),
        parameters: Parameters::default(),
    })
}

pub(crate) fn dlr_status(state: DlrState) -> TpStatus {
    match state {
        DlrState::Delivered => TpStatus::DELIVERED,
        DlrState::Accepted => TpStatus::FORWARDED,
        DlrState::Expired => TpStatus::EXPIRED,
        DlrState::Deleted => TpStatus::DELETED_BY_ADMIN,
        DlrState::Rejected => TpStatus::REFUSED,
        DlrState::Scheduled | DlrState::Enroute => TpStatus::TRYING_NO_RESPONSE,
        DlrState::Undeliverable | DlrState::Skipped => TpStatus::NOT_OBTAINABLE,
        // Submitted with unknown result.
        DlrState::Unknown => TpStatus::FORWARDED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{
        DlrRequest, MessageId, PeerId, PluginVersion, Priority, RejectReason, RemoteAttempt, RoutingDecision,
        Verdict,
    };
    use std::sync::Arc;
    use tpdu::ToMs;

    fn message(data_coding: u8, octets: &[u8]) -> Message {
        let by = Arc::new(PluginVersion { plugin: String::new(), version: String::new() });
        Message {
            id: MessageId(1_000_000_007),
            kind: MessageKind::Text,
            origin: PeerId(1),
            source: Address::new(5, 0, b"ACME"),
            destination: Address::international("15551234567"),
            service_type: Bytes::new(),
            protocol_id: 0,
            esm_class: 0,
            priority: Priority::default(),
            dlr_request: DlrRequest::NONE,
            replace_if_present: false,
            submission: None,
            text: Text { octets: Bytes::copy_from_slice(octets), data_coding, udhi: false, payload: false },
            tlvs: Bytes::new(),
            protocol_fields: Bytes::new(),
            sealed: None,
            accepted_at: Timestamp(1_703_367_462_000),
            scheduled: None,
            expires_at: Timestamp(1_803_367_462_000),
            routed: RoutingDecision::new(Verdict::Reject(RejectReason::NoRoute), by),
        }
    }

    fn decoded_delivers(message: &Message, more: bool) -> Vec<Deliver> {
        let options = GsmOptions { zone: -32, ..GsmOptions::new("home", PeerId(2)) };
        let read = |part: &Bytes| match ToMs::decode(part, false) {
            Ok(ToMs::Deliver(deliver)) => deliver,
            other => panic!("{other:?}"),
        };
        segments(message, 0, more, &options).unwrap().iter().map(read).collect()
    }

    #[test]
    fn deliver_has_the_acceptance_time_in_the_network_zone() {
        let delivers = decoded_delivers(&message(0, b"hello"), false);
        assert_eq!(delivers.len(), 1);
        assert_eq!(delivers[0].originator.text(), "ACME");
        assert_eq!(
            (delivers[0].service_centre_time.hour, delivers[0].service_centre_time.quarters),
            (13, -32)
        );
        assert!(!delivers[0].more_messages && decoded_delivers(&message(0, b"hello"), true)[0].more_messages);
    }

    #[test]
    fn all_segments_but_the_last_set_more_messages() {
        let delivers = decoded_delivers(&message(0, &[b'x'; 400]), false);
        assert_eq!(delivers.iter().map(|part| part.more_messages).collect::<Vec<_>>(), [true, true, false]);
        assert!(delivers.iter().all(|part| part.user_data.udhi));
        // The same message always has the same segments.
        assert_eq!(delivers, decoded_delivers(&message(0, &[b'x'; 400]), false));
    }

    #[test]
    fn all_attempts_of_another_partition_have_the_same_segments() {
        let attempt = |id: u64, attempt: u16| {
            let mut fields = Vec::new();
            let first = message(0, &[b'x'; 400]);
            let accepted_at = first.accepted_at;
            RemoteAttempt { id: first.id, attempt, taken: 0, accepted_at }.append_to(&mut fields);
            let (id, accepted_at) = (MessageId(id), Timestamp(accepted_at.0 + 60_000 * u64::from(attempt)));
            decoded_delivers(&Message { id, accepted_at, protocol_fields: fields.into(), ..first }, false)
        };
        let alone = message(0, &[b'x'; 400]);
        for (id, number) in [(70_369_744_177_664, 1), (70_369_744_177_665, 2)] {
            assert_eq!(attempt(id, number), decoded_delivers(&alone, false));
        }
        let other = Message { id: MessageId(alone.id.0 + 1), ..alone.clone() };
        assert_ne!(decoded_delivers(&alone, false), decoded_delivers(&other, false));
    }

    #[test]
    fn latin_1_declared_as_default_alphabet_is_converted() {
        let delivers = decoded_delivers(&message(0, b"caf\xE9"), false);
        assert_eq!(delivers[0].data_coding, 0);
        assert_eq!(delivers[0].user_data.unpack(tpdu::Alphabet::Gsm7), b"caf\x05");
    }

    #[test]
    fn national_tables_are_used_if_configured_and_shorter() {
        let utf16 = |text: &str| text.encode_utf16().flat_map(u16::to_be_bytes).collect::<Vec<u8>>();
        let turkish = GsmOptions { languages: vec![Language::Turkish], ..GsmOptions::new("home", PeerId(2)) };
        let sent = |octets: &[u8], options: &GsmOptions| -> Vec<Deliver> {
            let read = |part: &Bytes| match ToMs::decode(part, false) {
                Ok(ToMs::Deliver(deliver)) => deliver,
                other => panic!("{other:?}"),
            };
            segments(&message(8, octets), 0, false, options).unwrap().iter().map(read).collect()
        };
        let text = "Işıklar sönmüş. ".repeat(8);
        let plain = sent(&utf16(&text), &GsmOptions::new("home", PeerId(2)));
        assert_eq!((plain.len(), plain[0].data_coding), (2, 8), "only where the network allows it");
        let national = sent(&utf16(&text), &turkish);
        assert_eq!((national.len(), national[0].data_coding), (1, 0));
        assert_eq!(tpdu::text::decode(0, &national[0].user_data), text);
        // No segment is saved, and every handset supports UCS-2.
        assert_eq!(sent(&utf16("Işık"), &turkish)[0].data_coding, 8);
        // Other scripts, unpaired surrogates and an odd number of octets are not converted.
        assert_eq!(sent(&utf16(&"测".repeat(80)), &turkish)[0].data_coding, 8);
        let half = [&[0xD8, 0x3D][..], &utf16(&text)].concat();
        assert_eq!(sent(&half, &turkish)[0].data_coding, 8);
    }

    #[test]
    fn segments_ports_and_subunit_of_smpp_reach_the_handset() {
        let sar = b"\x02\x0C\0\x02\0\x07\x02\x0E\0\x01\x02\x02\x0F\0\x01\x02";
        let tlvs = [&sar[..], b"\x02\x0B\0\x02\x0B\x84\0\x05\0\x01\x01"].concat();
        let delivers = decoded_delivers(&Message { tlvs: tlvs.into(), ..message(0, b"second half") }, false);
        assert_eq!((delivers.len(), delivers[0].data_coding), (1, 0x10));
        let header = delivers[0].user_data.header(tpdu::Alphabet::Gsm7).unwrap();
        let part = header.concatenation().unwrap();
        assert_eq!((part.reference, part.total, part.number), (7, 2, 2));
        assert_eq!(header.ports(), Some((2948, 0)));
    }

    #[test]
    fn submission_tlv_round_trips() {
        let number = tpdu::TpAddress::from_smpp(0, 1, b"5551234").unwrap();
        let other = [&[0x15, 0x01, 0, 1, 9][..], &submission_tlv(42, &number)[..]].concat();
        assert_eq!(read_submission_tlv(&other), Some((42, number)));
        for length in 0..other.len() {
            assert_eq!(read_submission_tlv(&other[..length]), None, "{length}");
        }
    }
}
