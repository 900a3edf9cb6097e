//! The formats: round trips, and encodings that must not change.

use journal::record::{
    DecodeError, EntryRef, MAX_PAYLOAD, PayloadTooLong, RECORD_HEADER, decode_record, encode_record,
};
use journal::segment::{HeaderError, JournalIdentity, SegmentHeader, parse_segment_name, segment_name};
use journal::{Entry, Head, NodeId, Seq, Term};
use proptest::prelude::*;

fn head() -> impl Strategy<Value = Head> {
    (any::<u64>(), 0..u64::MAX, any::<u32>()).prop_map(|(term, seq, crc)| Head {
        term: Term(term),
        seq: Seq(seq),
        crc,
    })
}

proptest! {
    #[test]
    fn a_payload_survives_a_round_trip(
        head in head(), term: u64, at: u64, payload: Vec<u8>, behind: Vec<u8>, before: Vec<u8>,
    ) {
        let mut octets = before.clone();
        let crc = encode_record(&mut octets, &head, Term(term), at, EntryRef::Payload(&payload)).unwrap();
        octets.extend_from_slice(&behind);
        let record = decode_record(&octets[before.len()..]).unwrap();
        prop_assert_eq!(record.seq, head.seq.next());
        prop_assert_eq!(record.predecessor, head.crc);
        prop_assert_eq!((record.term, record.at, record.crc), (Term(term), at, crc));
        prop_assert_eq!(record.encoded_length(), octets.len() - before.len() - behind.len());
        prop_assert_eq!(record.continues(&head), Term(term) >= head.term);
        prop_assert_eq!(record.entry, Entry::Payload(payload));
    }

    #[test]
    fn a_claim_survives_a_round_trip(head in head(), term: u64, at: u64, node: u64) {
        let mut octets = Vec::new();
        encode_record(&mut octets, &head, Term(term), at, EntryRef::Claim(NodeId(node))).unwrap();
        let record = decode_record(&octets).unwrap();
        prop_assert_eq!(record.entry, Entry::Claim { node: NodeId(node) });
    }

    #[test]
    fn any_changed_octet_and_any_cut_is_found(head in head(), payload: Vec<u8>, bits in 1..=u8::MAX) {
        let mut octets = Vec::new();
        encode_record(&mut octets, &head, head.term, 7, EntryRef::Payload(&payload)).unwrap();
        for at in 0..octets.len() {
            let mut changed = octets.clone();
            changed[at] ^= bits;
            prop_assert_eq!(decode_record(&changed), Err(DecodeError::Invalid));
            prop_assert_eq!(decode_record(&octets[..at]), Err(DecodeError::Invalid));
        }
    }

    #[test]
    fn any_octets_are_refused_or_read(octets: Vec<u8>) {
        let _ = decode_record(&octets);
        let _ = JournalIdentity::decode(&octets);
        let _ = SegmentHeader::decode(&octets);
    }

    #[test]
    fn headers_survive_a_round_trip(
        generation: u64, mark: u64, before in head(), begun: u64, key: u64, segment_octets in 121u64.., after: u64,
        at in 0usize..64, bits in 1..=u8::MAX,
    ) {
        let header = SegmentHeader { generation, mark, before, begun };
        let mut octets = header.encode();
        prop_assert_eq!(SegmentHeader::decode(&octets), Ok(header));
        octets[at] ^= bits;
        prop_assert_eq!(SegmentHeader::decode(&octets), Err(HeaderError::Invalid));
        let identity = JournalIdentity { key, segment_octets, after: Seq(after), created: begun };
        let mut octets = identity.encode();
        prop_assert_eq!(JournalIdentity::decode(&octets), Ok(identity));
        octets[at] ^= bits;
        prop_assert_eq!(JournalIdentity::decode(&octets), Err(HeaderError::Invalid));
    }
}

#[test]
fn the_record_is_as_documented() {
    let head = Head { term: Term(3), seq: Seq(0x0102), crc: 0xaabb_ccdd };
    let mut octets = Vec::new();
    let crc = encode_record(&mut octets, &head, Term(4), 0x0a0b, EntryRef::Payload(b"text")).unwrap();
    let mut expected = b"SWL1".to_vec();
    expected.extend_from_slice(&crc.to_le_bytes());
    expected.extend_from_slice(&[4, 0, 0, 0]);
    expected.extend_from_slice(&[0xdd, 0xcc, 0xbb, 0xaa]);
    expected.extend_from_slice(&[4, 0, 0, 0, 0, 0, 0, 0]);
    expected.extend_from_slice(&[3, 1, 0, 0, 0, 0, 0, 0]);
    expected.extend_from_slice(&[0x0b, 0x0a, 0, 0, 0, 0, 0, 0]);
    expected.extend_from_slice(&[2, 0, 0, 0, 0, 0, 0, 0]);
    expected.extend_from_slice(b"text");
    assert_eq!(octets, expected);
    assert_eq!(octets.len(), RECORD_HEADER + 4);
    assert_eq!(crc, crc32c_by_definition(&octets[8..]));
    // Check value of CRC32C (RFC 3720, B.4, tests the same polynomial).
    assert_eq!(crc32c_by_definition(b"123456789"), 0xe306_9283);
}

#[test]
fn a_newer_format_is_recognised() {
    let head = Head::default();
    let encode = |change: fn(&mut [u8])| {
        let mut octets = Vec::new();
        encode_record(&mut octets, &head, Term(1), 0, EntryRef::Claim(NodeId(0))).unwrap();
        change(&mut octets);
        let crc = crc32c_by_definition(&octets[8..]);
        octets[4..8].copy_from_slice(&crc.to_le_bytes());
        decode_record(&octets)
    };
    assert!(encode(|_| {}).is_ok());
    assert_eq!(encode(|octets| octets[40] = 3), Err(DecodeError::UnknownKind(3)));
    assert_eq!(encode(|octets| octets[47] = 1), Err(DecodeError::UnknownSection));
    let identity = JournalIdentity { key: 1, segment_octets: 1000, after: Seq(0), created: 0 };
    let newer = |at: usize| {
        let mut octets = identity.encode();
        octets[at] = 2;
        let crc = crc32c_by_definition(&octets[..60]);
        octets[60..].copy_from_slice(&crc.to_le_bytes());
        JournalIdentity::decode(&octets)
    };
    assert_eq!(newer(8), Err(HeaderError::UnknownFormat(2)));
    assert_eq!(newer(12), Err(HeaderError::UnknownSection));
    assert_eq!(newer(59), Err(HeaderError::UnknownSection));
    assert_eq!(JournalIdentity::decode(&[0; 64]), Err(HeaderError::Blank));
}

#[test]
fn a_payload_has_a_maximum() {
    let mut octets = Vec::new();
    let payload = vec![1; MAX_PAYLOAD + 1];
    let encode = |octets: &mut Vec<u8>, length| {
        encode_record(octets, &Head::default(), Term(1), 0, EntryRef::Payload(&payload[..length]))
    };
    assert_eq!(encode(&mut octets, MAX_PAYLOAD + 1), Err(PayloadTooLong(MAX_PAYLOAD + 1)));
    assert_eq!(octets, []);
    encode(&mut octets, MAX_PAYLOAD).unwrap();
    assert_eq!(decode_record(&octets).unwrap().encoded_length(), octets.len());
    // A record with more octets is refused by its length, regardless of its checksum.
    octets.push(1);
    octets[8..12].copy_from_slice(&u32::try_from(MAX_PAYLOAD + 1).unwrap().to_le_bytes());
    let crc = crc32c::crc32c(&octets[8..]);
    octets[4..8].copy_from_slice(&crc.to_le_bytes());
    assert_eq!(decode_record(&octets), Err(DecodeError::Invalid));
}

#[test]
fn names_of_segments() {
    assert_eq!(segment_name(17), "00000000000000000017.segment");
    assert_eq!(parse_segment_name(&segment_name(u64::MAX)), Some(u64::MAX));
    for other in
        ["17.segment", "00000000000000000000.segment", "0000000000000000001x.segment", "journal.id", ""]
    {
        assert_eq!(parse_segment_name(other), None, "{other}");
    }
}

/// CRC32C bit by bit, as the polynomial 0x1edc6f41 defines it.
pub(crate) fn crc32c_by_definition(octets: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for octet in octets {
        crc ^= u32::from(*octet);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0x82f6_3b78 } else { crc >> 1 };
        }
    }
    !crc
}
