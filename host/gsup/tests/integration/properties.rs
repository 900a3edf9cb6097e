//! Property tests.

use bytes::{Bytes, BytesMut};
use gsup::ccm::{Ccm, Identity};
use gsup::client::{ClientTimeouts, GsupClient};
use gsup::ctrl::{self, LookupDetail, Msisdn};
use gsup::ipa::{self, IpaFrame};
use gsup::proxy::{self, Proxy};
use gsup::{GsupImsi, GsupMessage, IsdnNumber, MessageType, RpAddress, RpCause, Tag};
use proptest::collection::vec;
use proptest::prelude::*;

fn imsi() -> impl Strategy<Value = GsupImsi> {
    "[0-9]{6,15}".prop_map(|digits| digits.parse().unwrap())
}

fn number() -> impl Strategy<Value = IsdnNumber> {
    (0x80_u8.., "[0-9*#abc]{0,20}").prop_map(|(ton_npi, digits)| IsdnNumber { ton_npi, digits })
}

fn address() -> impl Strategy<Value = RpAddress> {
    prop_oneof![
        imsi().prop_map(RpAddress::Imsi),
        number().prop_map(RpAddress::Msisdn),
        number().prop_map(RpAddress::ServiceCentre),
        Just(RpAddress::Absent),
    ]
}

fn message() -> impl Strategy<Value = GsupMessage> {
    let kind = prop_oneof![any::<u8>(), 0x24_u8..0x2f, prop::sample::select(vec![0x04, 0x06, 0x10, 0x1c])];
    let elements = vec((any::<u8>(), vec(any::<u8>(), 0..200)), 0..8);
    (kind, imsi(), elements).prop_map(|(kind, imsi, elements)| {
        let message = GsupMessage::new(MessageType(kind), imsi);
        elements.iter().fold(message, |message, (tag, value)| message.with(Tag(*tag), value).unwrap())
    })
}

fn ccm_frame() -> impl Strategy<Value = Ccm> {
    let identity = vec(any::<u8>(), 0..6)
        .prop_map(|wanted| Ccm::IdResponse(Identity::new("MSC-1", "test").unwrap().response(&wanted)));
    prop_oneof![
        Just(Ccm::Ping),
        Just(Ccm::Pong),
        Just(Ccm::IdAck),
        vec(any::<u8>(), 0..6).prop_map(Ccm::IdGet),
        identity
    ]
}

/// A stream as a correct peer writes it.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        3 => message().prop_map(|message| {
            let mut octets = BytesMut::new();
            message.put(&mut octets);
            octets.to_vec()
        }),
        1 => ccm_frame().prop_map(|ccm_frame| {
            let mut octets = BytesMut::new();
            ccm_frame.put(&mut octets);
            octets.to_vec()
        }),
        // Without CCM: an identity without a unit id would be changed.
        1 => (0_u8..0xfe, vec(any::<u8>(), 1..300)).prop_map(|(stream, payload)| {
            let mut octets = BytesMut::new();
            IpaFrame::Other { stream, payload: payload.into() }.put(&mut octets);
            octets.to_vec()
        }),
    ];
    vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

/// Splits a stream into pieces of these lengths, repeated.
fn split<'a>(octets: &'a [u8], lengths: &[usize]) -> Vec<&'a [u8]> {
    let mut pieces = Vec::new();
    let (mut rest, mut lengths) = (octets, lengths.iter().cycle());
    while !rest.is_empty() {
        let length = lengths.next().copied().unwrap_or(usize::MAX).clamp(1, rest.len());
        let (piece, after) = rest.split_at(length);
        pieces.push(piece);
        rest = after;
    }
    pieces
}

/// The output of a proxy for these inputs from both sides.
fn through(msc: &[&[u8]], hlr: &[&[u8]]) -> (Vec<u8>, Vec<u8>, Vec<proxy::Event>) {
    let mut proxy = Proxy::new(None);
    let (mut from_msc, mut from_hlr) = (BytesMut::new(), BytesMut::new());
    let (mut to_msc, mut to_hlr, mut events) = (Vec::new(), Vec::new(), Vec::new());
    for piece in hlr {
        from_hlr.extend_from_slice(piece);
        proxy.from_hlr(&mut from_hlr);
        to_msc.extend(std::iter::from_fn(|| proxy.to_msc()).flatten());
    }
    for piece in msc {
        from_msc.extend_from_slice(piece);
        proxy.from_msc(&mut from_msc);
        to_hlr.extend(std::iter::from_fn(|| proxy.to_hlr()).flatten());
        to_msc.extend(std::iter::from_fn(|| proxy.to_msc()).flatten());
    }
    events.extend(std::iter::from_fn(|| proxy.poll_event()));
    (to_msc, to_hlr, events)
}

proptest! {
    #[test]
    fn message_round_trips(message in message()) {
        let octets = message.encode();
        let read = GsupMessage::decode(&octets).unwrap();
        prop_assert_eq!(&read, &message);
        prop_assert_eq!(read.encode(), octets);
    }

    #[test]
    fn decoded_message_encodes_to_the_same_octets(octets in vec(any::<u8>(), 0..300)) {
        let octets = Bytes::from([&b"\x24\x01\x08\x00\x01\x01\x00\x00\x00\x00\xf1"[..], &octets].concat());
        if let Ok(message) = GsupMessage::decode(&octets) {
            prop_assert_eq!(message.encode(), octets);
        }
    }

    #[test]
    fn any_octets_decode_or_fail(octets in vec(any::<u8>(), 0..300)) {
        let octets = Bytes::from(octets);
        if let Ok(message) = GsupMessage::decode(&octets) {
            let _ = (message.destination(), message.origin(), message.msisdn(), format!("{message:?}"));
        }
        let mut output = BytesMut::new();
        Ccm::decode(&octets).put(&mut output);
        let _ = RpAddress::decode(Tag::SM_RP_DA, &octets);
        let _ = ctrl::CtrlReply::parse(&octets);
        let _ = ctrl::CtrlSubscriber::parse(&String::from_utf8_lossy(&octets));
    }

    #[test]
    fn address_round_trips(imsi in imsi(), address in address()) {
        let message = GsupMessage::new(MessageType::MT_FORWARD_SM_REQUEST, imsi);
        let message = message.with_destination(&address).unwrap().with_origin(&address).unwrap();
        let read = GsupMessage::decode(&message.encode()).unwrap();
        prop_assert_eq!(read.destination(), Ok(Some(address.clone())));
        prop_assert_eq!(read.origin(), Ok(Some(address)));
    }

    #[test]
    fn elements_are_written_in_a_fixed_order(imsi in imsi(), mut parts in Just((0..7).collect::<Vec<u8>>()).prop_shuffle()) {
        let built = |parts: &[u8]| {
            parts.iter().fold(GsupMessage::new(MessageType::MT_FORWARD_SM_REQUEST, imsi), |message, part| match part {
                0 => message.with_reference(1),
                1 => message.with_rp_cause(RpCause::CONGESTION),
                2 => message.with_class(gsup::MessageClass::SMS),
                3 => message.with_source_name(&"A".parse().unwrap()),
                4 => message.with_destination_name(&"B".parse().unwrap()),
                5 => message.with_user_information(b"tpdu").unwrap(),
                _ => message.with_more_messages(),
            })
        };
        let shuffled = built(&parts);
        parts.sort_unstable();
        prop_assert_eq!(shuffled, built(&parts));
    }

    #[test]
    fn input_can_be_split_anywhere(octets in stream(), lengths in vec(1_usize..40, 1..20)) {
        let decode_pieces = |pieces: &[&[u8]]| {
            let mut client = GsupClient::new(0, Identity::new("A", "test").unwrap(), ClientTimeouts::default());
            pieces.iter().for_each(|piece| client.receive(0, piece));
            let events: Vec<_> = std::iter::from_fn(|| client.poll_event()).collect();
            (events, client.output().split())
        };
        prop_assert_eq!(decode_pieces(&split(&octets, &lengths)), decode_pieces(&[&octets]));
        let pieces = split(&octets, &lengths);
        prop_assert_eq!(through(&pieces, &[]), through(&[&octets], &[]));
        prop_assert_eq!(through(&[], &pieces), through(&[], &[&octets]));
    }

    #[test]
    fn all_hlr_frames_reach_the_msc(octets in stream()) {
        let (to_msc, to_hlr, _) = through(&[], &[&octets]);
        prop_assert_eq!(to_msc, octets);
        prop_assert_eq!(to_hlr, Vec::<u8>::new());
    }

    #[test]
    fn other_frames_reach_the_hlr(octets in stream()) {
        let (to_msc, to_hlr, events) = through(&[&octets], &[]);
        let mut expected = BytesMut::new();
        let mut taken = 0;
        let mut input = BytesMut::from(&octets[..]);
        while let Some(frame) = IpaFrame::take(&mut input, ipa::MAX_PAYLOAD).unwrap() {
            let is_sms = matches!(&frame, IpaFrame::Gsup(payload) if [0x24, 0x29, 0x2a, 0x2c].contains(&payload[0]));
            if is_sms { taken += 1 } else { frame.put(&mut expected) }
        }
        let sms = events.iter().filter(|event| matches!(event, proxy::Event::ShortMessage(_)));
        let alerts = sms.clone().filter(|event| {
            matches!(event, proxy::Event::ShortMessage(message) if message.kind == MessageType::READY_FOR_SM_REQUEST)
        });
        prop_assert_eq!(sms.clone().count(), taken);
        prop_assert_eq!(to_msc.is_empty(), alerts.count() == 0);
        prop_assert_eq!(to_hlr, expected);
    }

    #[test]
    fn the_proxy_relays_any_octets(octets in vec(any::<u8>(), 0..600), lengths in vec(1_usize..40, 1..20)) {
        let (to_msc, _, _) = through(&[], &split(&octets, &lengths));
        prop_assert!(octets.starts_with(&to_msc), "nothing is added, and nothing is missing in between");
        through(&split(&octets, &lengths), &[]);
    }

    #[test]
    fn any_octets_are_handled_by_the_ctrl_client(octets in vec(any::<u8>(), 0..300)) {
        let mut client = ctrl::CtrlClient::new(LookupDetail::Imsi, 1);
        client.look_up(0, 1, Msisdn::new("1").unwrap());
        client.receive(&octets);
        client.tick(10);
        prop_assert_eq!(client.open(), 0);
    }
}
