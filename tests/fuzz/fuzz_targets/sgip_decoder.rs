//! Arbitrary octets through every SGIP decoder: no panic, and decoded values survive an encoding round trip.
#![no_main]

use bytes::{Bytes, BytesMut};
use libfuzzer_sys::fuzz_target;
use sgip::text::{self, Coding, MAX_OCTETS, SegmentReference};
use sgip::{HEADER_LENGTH, Header, Pdu, Sequence, SgipCommand, SgipFields};

const SEQUENCE: Sequence = Sequence { node: 3_010_012_345, time: 1_120_203_225, counter: 7 };

fn check_round_trip(id: u32, body: &[u8]) {
    let Ok(pdu) = Pdu::decode(id, body) else { return };
    assert_eq!(pdu.id(), id, "an id became another's");
    let octets = pdu.to_bytes(SEQUENCE);
    let header = Header::peek(&octets).expect("we wrote no header");
    assert_eq!((header.length as usize, header.command, header.sequence), (octets.len(), id, SEQUENCE));
    assert_eq!(octets.len(), pdu.length());
    assert_eq!(Pdu::decode(id, &octets[HEADER_LENGTH..]).as_ref(), Ok(&pdu));
    // The body that some servers add to an Unbind answer is dropped, and an empty one at the end of a table is
    // written; all others have a fixed length.
    let has_two_forms =
        pdu == Pdu::UnbindAnswer || matches!(&pdu, Pdu::RouteAnswer { rows, .. } if rows.is_empty());
    assert!(has_two_forms || octets.len() == HEADER_LENGTH + body.len());
    let _ = pdu.validation_error();
    if let Pdu::Submit(submit) = &pdu {
        let fields = SgipFields::of(submit, SEQUENCE);
        let mut tlvs = BytesMut::new();
        fields.append_to(&mut tlvs);
        assert_eq!(SgipFields::read(&tlvs.freeze()), fields);
    }
}

fn stream(mut octets: &[u8]) {
    while let Some(header) = Header::peek(octets) {
        let length = header.length as usize;
        if length < HEADER_LENGTH || length > octets.len() {
            break;
        }
        check_round_trip(header.command, &octets[HEADER_LENGTH..length]);
        assert_eq!(header.sequence.to_string().parse(), Ok(header.sequence));
        octets = &octets[length..];
    }
}

/// Splitting loses nothing, cuts no UTF-16 pair, and every segment fits and has its position.
fn split(coding: Coding, content: &Bytes) {
    for reference in [SegmentReference::Short(7), SegmentReference::Long(300)] {
        let Some(parts) = text::split(coding, content, reference) else {
            assert!(content.len() > 255 * 100, "refused too early");
            continue;
        };
        if let [only] = parts.as_slice() {
            assert_eq!(only, content);
            continue;
        }
        let mut whole = Vec::new();
        for (index, part) in parts.iter().enumerate() {
            assert!(part.len() <= MAX_OCTETS);
            let (head, body) = text::header(part).expect("a part without a header");
            let place = head.split_last_chunk::<2>().expect("a header without a place").1;
            assert_eq!(place.map(usize::from), [parts.len(), index + 1]);
            assert!(!body.is_empty());
            whole.extend_from_slice(body);
        }
        assert_eq!(whole, content[..]);
    }
}

/// Readable text stays the same when it is read segment by segment.
fn check_character_boundaries(octets: &[u8]) {
    let words = String::from_utf8_lossy(octets).replace('\u{FEFF}', "");
    for coding in [Coding::ASCII, Coding::UCS2, Coding::GBK] {
        let Some(content) = text::encode_as(&words, coding) else { continue };
        let shown = text::decode(coding.0, &content);
        let Some(parts) = text::split(coding, &content, SegmentReference::Long(1)) else { continue };
        if parts.len() > 1 {
            let bodies = parts.iter().filter_map(|part| text::header(part));
            let again: String = bodies.map(|(_, body)| text::decode(coding.0, body)).collect();
            assert_eq!(again, shown, "{coding:?}: a character was cut");
        }
        if coding == Coding::UCS2 {
            assert_eq!(shown, words);
        }
    }
    let (coding, content) = text::encode(&words);
    assert_eq!(text::decode(coding.0, &content), words);
}

fuzz_target!(|octets: &[u8]| {
    for command in SgipCommand::ALL {
        check_round_trip(command.id(), octets);
        check_round_trip(command.answer_id(), octets);
    }
    stream(octets);

    let tlvs = Bytes::copy_from_slice(octets);
    let fields = SgipFields::read(&tlvs);
    let mut written = BytesMut::new();
    fields.append_to(&mut written);
    let written = written.freeze();
    let again = SgipFields::read(&written);
    let mut rewritten = BytesMut::new();
    again.append_to(&mut rewritten);
    assert_eq!(rewritten, written);

    let _ = sgip::peer_message_id(SEQUENCE, octets);
    let home = sgip::home_number(octets);
    assert!(octets.ends_with(home));
    let _ = text::gbk_to_utf16(octets);
    let Some((&coding, content)) = octets.split_first() else { return };
    let _ = text::decode(coding, content);
    let _ = text::header(content);
    let content = Bytes::copy_from_slice(content);
    for coding in [Coding::ASCII, Coding::BINARY, Coding::UCS2, Coding::GBK, Coding(coding)] {
        split(coding, &content);
    }
    check_character_boundaries(&content);
});
