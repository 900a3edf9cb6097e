//! Every record round-trips, and no octets make a decoder panic.

use crate::generators;
use bytes::Bytes;
use codec::{
    RecordDecoder, decode_final, decode_progress, decode_submit_attempts, encode_final, encode_message,
    encode_progress, encode_submit_attempts,
};
use model::Message;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

/// Damages a record: truncates it and changes some octets.
fn damage(mut octets: Vec<u8>, cut: Index, changes: &[(Index, u8)]) -> Vec<u8> {
    octets.truncate(cut.index(octets.len() + 1));
    for (at, value) in changes {
        if !octets.is_empty() {
            let at = at.index(octets.len());
            octets[at] = *value;
        }
    }
    octets
}

fn decode_all(octets: &[u8]) {
    // The results do not matter: each is a record, or an error with an offset within the octets.
    let places = [
        RecordDecoder::new().message(model::MessageId(1), octets).err(),
        decode_progress(octets).err(),
        decode_final(octets).err(),
        decode_submit_attempts(octets).err(),
    ];
    for error in places.into_iter().flatten() {
        assert!(error.offset <= octets.len(), "{error} of {}", octets.len());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn messages_round_trip(messages in vec(generators::message(), 1..4), rest in vec(any::<u8>(), 0..20)) {
        // One decoder for all of them: its state must not leak from one record into another.
        let mut decoder = RecordDecoder::new();
        for message in &messages {
            let mut octets = Vec::new();
            encode_message(&mut octets, message);
            let length = octets.len();
            octets.extend_from_slice(&rest);
            let (read, taken) = decoder.message(message.id, &octets).unwrap();
            prop_assert_eq!(&read, message);
            prop_assert_eq!(taken, length);
            for cut in [0, 1, length / 2, length - 1] {
                prop_assert!(decoder.message(message.id, &octets[..cut]).is_err(), "cut at {}", cut);
            }
        }
    }

    #[test]
    fn progress_round_trips(progress in generators::progress()) {
        let mut octets = Vec::new();
        encode_progress(&mut octets, &progress);
        prop_assert_eq!(&decode_progress(&octets).unwrap(), &progress);
        octets.pop();
        prop_assert!(decode_progress(&octets).is_err());
    }

    #[test]
    fn final_records_round_trip(ended in generators::ended()) {
        let mut octets = Vec::new();
        encode_final(&mut octets, &ended);
        prop_assert_eq!(&decode_final(&octets).unwrap(), &ended);
        octets.pop();
        prop_assert!(decode_final(&octets).is_err());
    }

    #[test]
    fn submit_attempts_round_trip(submit_attempts in vec(generators::submit_attempt(), 0..40)) {
        let mut octets = Vec::new();
        encode_submit_attempts(&mut octets, &submit_attempts);
        prop_assert_eq!(&decode_submit_attempts(&octets).unwrap(), &submit_attempts);
        octets.push(0);
        prop_assert!(decode_submit_attempts(&octets).is_err());
    }

    #[test]
    fn damaged_records_are_refused_or_read(
        message in generators::message(),
        progress in generators::progress(),
        ended in generators::ended(),
        submit_attempts in vec(generators::submit_attempt(), 0..5),
        cut in any::<Index>(),
        changes in vec(any::<(Index, u8)>(), 0..4),
    ) {
        let mut records = [Vec::new(), Vec::new(), Vec::new(), Vec::new()];
        encode_message(&mut records[0], &message);
        encode_progress(&mut records[1], &progress);
        encode_final(&mut records[2], &ended);
        encode_submit_attempts(&mut records[3], &submit_attempts);
        for record in records {
            decode_all(&damage(record, cut, &changes));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn arbitrary_octets_never_panic(mut octets in vec(any::<u8>(), 0..400), known in any::<bool>()) {
        if known && let Some(format) = octets.first_mut() {
            *format = codec::FORMAT;
        }
        decode_all(&octets);
    }
}

#[test]
fn a_record_of_another_format_is_refused() {
    let octets = [codec::FORMAT + 2; 200];
    let refusals = [
        RecordDecoder::new().message(model::MessageId(1), &octets).unwrap_err(),
        decode_progress(&octets).unwrap_err(),
        decode_final(&octets).unwrap_err(),
        decode_submit_attempts(&octets).unwrap_err(),
    ];
    for refusal in refusals {
        assert_eq!(refusal.to_string(), "unknown record format at octet 0");
    }
}

/// Until format 7 the fields of SGIP, CMPP, SMGP and GSM were among the TLVs, with tags that no customer's TLV could have.
#[test]
fn records_before_format_8_have_the_protocol_fields_among_the_tlvs() {
    let mut runner = TestRunner::deterministic();
    let mut message = generators::message().new_tree(&mut runner).unwrap().current();
    (message.routed.changes, message.routed.screening) = (None, None);
    message.routed.lookup = None;
    message.protocol_fields = Bytes::new();
    let (mut tlvs, mut fields) = (Vec::new(), Vec::new());
    model::put_tlv(&mut tlvs, 0x0204, &[0, 9]);
    model::put_tlv(&mut fields, 0x1501, b"13900000000");
    model::put_tlv(&mut fields, 0x15F0, b"7");
    message.tlvs = [&tlvs[..], &fields].concat().into();
    let mut octets = Vec::new();
    encode_message(&mut octets, &message);
    // Without the fields of format 8 the rest is the same.
    octets[0] = 7;
    let (read, length) = RecordDecoder::new().message(message.id, &octets).unwrap();
    assert_eq!(length, octets.len());
    let expected = Message { tlvs: tlvs.into(), protocol_fields: fields.into(), ..message };
    assert_eq!(read, expected);
}
