//! Properties of the codec.

use bytes::{Bytes, BytesMut};
use proptest::prelude::*;
use smgp::{ReportText, Smgp, SmgpPdu, SmgpTlvs, Submit};
use sp_session::{Header, SpProtocol as _};

fn text(width: usize) -> impl Strategy<Value = Bytes> {
    prop::collection::vec(0x21_u8..0x7F, 0..=width).prop_map(Bytes::from)
}

fn tlvs() -> impl Strategy<Value = SmgpTlvs> {
    let value = prop::collection::vec(any::<u8>(), 0..40).prop_map(Bytes::from);
    prop::collection::vec((any::<u16>(), value), 0..8).prop_map(SmgpTlvs)
}

fn submit() -> impl Strategy<Value = Submit> {
    let texts = (text(10), text(2), text(6), text(17), text(21), text(21));
    let numbers = prop::collection::vec(text(21), 1..=100);
    let content = prop::collection::vec(any::<u8>(), 0..=255).prop_map(Bytes::from);
    (texts, numbers, content, tlvs(), any::<[u8; 4]>()).prop_map(
        |(texts, destinations, content, tlvs, octets)| Submit {
            kind: octets[0],
            need_report: octets[1],
            priority: octets[2],
            service: texts.0,
            fee_type: texts.1,
            fee_code: texts.2,
            format: octets[3],
            valid_until: texts.3.clone(),
            deliver_at: texts.3,
            source: texts.4,
            payer: texts.5,
            destinations,
            content,
            tlvs,
            ..Submit::default()
        },
    )
}

proptest! {
    #[test]
    fn every_submit_survives(submit in submit(), sequence in any::<u32>()) {
        for version in [0x13, 0x30] {
            let pdu = SmgpPdu::Submit(Box::new(submit.clone()));
            let mut out = BytesMut::new();
            pdu.encode(version, sequence, &mut out).unwrap();
            let header = Header::peek(&out).unwrap();
            prop_assert_eq!((header.length as usize, header.sequence), (out.len(), sequence));
            prop_assert_eq!(SmgpPdu::decode(version, header, &out[12..]), Ok(pdu));
        }
    }

    #[test]
    fn check_20_no_octets_panic(
        command in prop_oneof![0_u32..20, (0_u32..20).prop_map(|command| command | 1 << 31), any::<u32>()],
        body in prop::collection::vec(any::<u8>(), 0..600),
        version in prop_oneof![Just(0x13_u8), Just(0x30)],
    ) {
        let header = Header { length: 12 + u32::try_from(body.len()).unwrap(), command, sequence: 1 };
        if let Ok(pdu) = SmgpPdu::decode(version, header, &body) {
            let mut out = BytesMut::new();
            let _ = pdu.encode(version, 1, &mut out);
            let _ = Smgp::meaning(&pdu);
        }
    }

    #[test]
    fn no_text_of_a_report_panics(start in "(id|ID|iD):", rest in prop::collection::vec(any::<u8>(), 0..200)) {
        let octets = [start.as_bytes(), &rest].concat();
        let _ = ReportText::read(&octets);
        let labels = [&octets[..], b" stat:DELIVRD err:0"].concat();
        let _ = ReportText::read(&labels);
    }
}
