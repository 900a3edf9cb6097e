//! Properties of the codec and of the session.

use crate::vectors::VECTORS;
use bytes::{Bytes, BytesMut};
use cmpp::{CmppPdu, Session, Submit};
use proptest::prelude::*;
use sp_session::{Event, Header, SessionOptions};
use std::time::Instant;

fn text(width: usize) -> impl Strategy<Value = Bytes> {
    prop::collection::vec(0x21_u8..0x7F, 0..=width).prop_map(Bytes::from)
}

fn submit() -> impl Strategy<Value = Submit> {
    let texts = (text(10), text(21), text(6), text(2), text(6), text(17), text(21), text(8));
    let numbers = prop::collection::vec(text(21), 1..=100);
    let content = prop::collection::vec(any::<u8>(), 0..=255).prop_map(Bytes::from);
    (texts, numbers, content, any::<[u8; 8]>()).prop_map(|(texts, destinations, content, octets)| Submit {
        part: (octets[0], octets[1]),
        registered_delivery: octets[2],
        level: octets[3],
        service: texts.0,
        payer_type: octets[4],
        payer: texts.1,
        tp_pid: octets[5],
        tp_udhi: octets[6],
        format: octets[7],
        sp: texts.2,
        fee_type: texts.3,
        fee_code: texts.4,
        valid_until: texts.5.clone(),
        deliver_at: texts.5,
        source: texts.6,
        destinations,
        content,
        link_id: texts.7,
        ..Submit::default()
    })
}

proptest! {
    #[test]
    fn every_submit_survives(submit in submit(), wide in any::<bool>(), sequence in any::<u32>()) {
        let version = if wide { 0x30 } else { 0x20 };
        let pdu = CmppPdu::Submit(Box::new(submit));
        let mut out = BytesMut::new();
        pdu.encode(version, sequence, &mut out).unwrap();
        let header = Header::peek(&out).unwrap();
        prop_assert_eq!((header.length as usize, header.sequence), (out.len(), sequence));
        prop_assert_eq!(CmppPdu::decode(version, header, &out[12..]), Ok(pdu));
    }

    #[test]
    fn check_20_no_octets_panic(
        command in prop_oneof![0_u32..20, (0_u32..20).prop_map(|command| command | 1 << 31), any::<u32>()],
        body in prop::collection::vec(any::<u8>(), 0..600),
        version in prop_oneof![Just(0x20_u8), Just(0x30)],
    ) {
        let header = Header { length: 12 + u32::try_from(body.len()).unwrap(), command, sequence: 1 };
        if let Ok(pdu) = CmppPdu::decode(version, header, &body) {
            let mut out = BytesMut::new();
            let _ = pdu.encode(version, 1, &mut out);
            let _ = <cmpp::Cmpp as sp_session::SpProtocol>::meaning(&pdu);
        }
    }

    /// The stream may be cut anywhere: the events are the same.
    #[test]
    fn check_02_cuts_of_the_stream_change_nothing(cuts in prop::collection::vec(1_usize..90, 1..60)) {
        let now = Instant::now();
        let stream: Vec<u8> = VECTORS
            .iter()
            .filter(|(version, name, _)| *version == 0x20 && !name.contains("CONNECT") && !name.contains("TERMINATE"))
            .flat_map(|(.., hex)| crate::vectors::octets(hex))
            .collect();
        let events = |chunks: &mut dyn Iterator<Item = Vec<u8>>| {
            let mut session = crate::session::logged_in_gateway(now, SessionOptions::default(), 0x20);
            for chunk in chunks {
                session.receive(now, &chunk);
            }
            drain(&mut session)
        };
        let whole = events(&mut std::iter::once(stream.clone()));
        prop_assert!(whole.len() > 10);
        let mut rest = &stream[..];
        let mut cuts = cuts.iter().cycle();
        let mut pieces = std::iter::from_fn(|| {
            let (piece, after) = rest.split_at((*cuts.next()?).min(rest.len()));
            rest = after;
            (!piece.is_empty()).then(|| piece.to_vec())
        });
        prop_assert_eq!(events(&mut pieces), whole);
    }
}

fn drain(session: &mut Session) -> Vec<String> {
    std::iter::from_fn(|| session.poll_event()).map(|event: Event<cmpp::Cmpp>| format!("{event:?}")).collect()
}
