//! D. The submit side: how a server decodes requests, and how a client handles responses.

use crate::checklist::harness::{SessionHarness, hello, options, pdu, raw, submit};
use crate::checklist::vectors::*;
use bytes::Bytes;
use model::{Address, Timestamp};
use smpp::segmentation::{self, ESM_UDHI};
use smpp::{
    BindMode, CommandId, CommandStatus, Destination, Event, Request, RequestError, Response, Sm, SmppOptions,
    Tlvs, tag, text, time,
};
use std::time::Duration;

fn server() -> SessionHarness {
    SessionHarness::bound_server(BindMode::Transceiver, options())
}

fn client() -> SessionHarness {
    SessionHarness::bound_client(BindMode::Transceiver, options())
}

/// The server's event for a submit_sm.
fn submitted(octets: &[u8]) -> Sm {
    let mut harness = server();
    harness.take(octets);
    let sm = harness.the_sm();
    harness.is_in_step();
    sm
}

/// The server's own answer, header only. The next PDU must still be parsed.
fn refused(octets: &[u8]) -> CommandStatus {
    let mut harness = server();
    harness.take(octets);
    let written = harness.written();
    assert_eq!((written.len(), written[0].raw.len()), (1, 16));
    assert_eq!(written[0].sequence.to_be_bytes(), octets[12..16]);
    assert_eq!(harness.only_anomalies().len(), 1);
    harness.is_in_step();
    written[0].status
}

/// Sends submits with these tokens and returns their sequence numbers.
fn send(harness: &mut SessionHarness, tokens: std::ops::RangeInclusive<u64>) -> Vec<u32> {
    tokens
        .map(|token| harness.session.request(harness.now, token, &Request::SubmitSm(hello())).unwrap())
        .collect()
}

/// Token, status, id and lateness of all responses received.
fn answers(harness: &mut SessionHarness) -> Vec<(u64, CommandStatus, Vec<u8>, bool)> {
    harness
        .events()
        .into_iter()
        .filter_map(|event| match event {
            Event::Answer { token, status, response, late } => {
                Some((token, status, response.message_id().to_vec(), late))
            }
            Event::Anomaly(_) => None,
            other => panic!("not an answer: {other:?}"),
        })
        .collect()
}

#[test]
fn check_060_a_submit_is_reported_and_answered_with_its_id() {
    let mut harness = server();
    harness.take(&hex(V04));
    assert_eq!(harness.the_sm(), hello());
    assert!(harness.written().is_empty(), "no answer before the owner says so");
    let response = Response::id(Bytes::from_static(b"0000012345"));
    harness.session.respond(CommandId::SUBMIT_SM, 2, CommandStatus::ROK, &response);
    assert_eq!(harness.written()[0].raw, hex(V05));
}

#[test]
fn check_061_submit_on_a_receiver() {
    let mut harness = SessionHarness::bound_server(BindMode::Receiver, options());
    harness.take(&hex(V04));
    assert_eq!(harness.heads(), [(CommandId::SUBMIT_SM.response(), CommandStatus::RINVBNDSTS, 2)]);
    assert_eq!(harness.only_anomalies().len(), 1);
    harness.is_in_step();
}

#[test]
fn check_062_064_empty_addresses_are_passed_to_the_owner() {
    let sm = Sm { source: Address::default(), destination: Address::default(), ..hello() };
    assert_eq!(submitted(&pdu(1, &Request::SubmitSm(sm.clone()))), sm);
}

#[test]
fn check_063_a_source_of_21_digits() {
    assert_eq!(refused(&hex(V22)), CommandStatus::RINVSRCADR);
}

#[test]
fn check_065_octets_outside_ascii_are_kept() {
    let sm = Sm { source: Address::new(5, 0, &[0xE9, b'A', 0xFF]), ..hello() };
    assert_eq!(submitted(&pdu(1, &Request::SubmitSm(sm.clone()))).source, sm.source);
}

#[test]
fn check_066_sm_length_255() {
    let mut octets = submit(3);
    octets.truncate(octets.len() - 6);
    octets.push(255);
    octets.extend([b'x'; 255]);
    assert_eq!(refused(&raw(4, 0, 3, &octets[16..])), CommandStatus::RINVMSGLEN);
}

#[test]
fn check_067_an_empty_text() {
    let sm = Sm { short_message: Bytes::new(), ..hello() };
    assert!(submitted(&pdu(1, &Request::SubmitSm(sm))).text().is_empty());
}

#[test]
fn check_068_text_and_payload_both() {
    assert_eq!(refused(&hex(V19)), CommandStatus::RINVMSGLEN);
    // An empty payload does not conflict with a text.
    let sm = Sm { tlvs: Tlvs::default().with(tag::MESSAGE_PAYLOAD, b""), ..hello() };
    assert_eq!(submitted(&pdu(1, &Request::SubmitSm(sm))).text().as_ref(), b"Hello");
}

#[test]
fn check_069_a_payload_of_300_octets() {
    let sm = submitted(&v27());
    assert_eq!((sm.short_message.len(), sm.text()), (0, Bytes::from(vec![b'A'; 300])));
}

#[test]
fn check_070_octets_behind_the_tlvs() {
    assert_eq!(refused(&hex(V20)), CommandStatus::RINVTLVSTREAM);
    for stray in [&[0xFF][..], &[0, 0], &[1, 2, 3]] {
        let body = [&hex(V21)[16..], stray].concat();
        assert_eq!(refused(&raw(4, 0, 3, &body)), CommandStatus::RINVTLVSTREAM);
    }
}

#[test]
fn check_071_unknown_tlvs_are_kept() {
    let sm = submitted(&hex(V21));
    assert_eq!(sm.tlvs.value(0x1401), Some(&[0xDE, 0xAD][..]));
    assert_eq!(sm.tlvs.u16(tag::USER_MESSAGE_REFERENCE), Some(42));
    assert_eq!(sm.tlvs.raw()[..], hex(V21)[hex(V21).len() - 12..]);
}

#[test]
fn check_072_a_known_tlv_of_impossible_length() {
    let tlvs = Tlvs::default().with(tag::SAR_TOTAL_SEGMENTS, &[0, 2]);
    let sm = submitted(&pdu(1, &Request::SubmitSm(Sm { tlvs, ..hello() })));
    assert_eq!(sm.tlvs.check_lengths().unwrap_err().status, CommandStatus::RINVPARLEN);
    assert_eq!(submitted(&hex(V24)).tlvs.check_lengths(), Ok(()));
    assert_eq!(Tlvs::default().with(0x1400, b"").with(0x3FFF, &[0; 999]).check_lengths(), Ok(()));
    for length in [1, 4] {
        assert_eq!(Tlvs::default().with(tag::MS_VALIDITY, &vec![0; length]).check_lengths(), Ok(()));
    }
}

#[test]
fn check_073_an_incomplete_set_of_sar_tlvs_is_ignored() {
    let all = submitted(&hex(V24)).tlvs;
    for missing in [tag::SAR_MSG_REF_NUM, tag::SAR_TOTAL_SEGMENTS, tag::SAR_SEGMENT_SEQNUM] {
        let tlvs = all.without(|tag| tag == missing);
        let sm = submitted(&pdu(1, &Request::SubmitSm(Sm { tlvs, ..hello() })));
        assert_eq!(segmentation::segment_info(false, &sm.short_message, &sm.tlvs), None);
    }
}

#[test]
fn check_074_three_forms_of_segment_information() {
    let header = submitted(&hex(V23));
    let tlvs = submitted(&hex(V24));
    let wide = Sm {
        esm_class: ESM_UDHI,
        short_message: Bytes::from_static(b"\x06\x08\x04\x00\x2D\x02\x01\x4F\x60\x59\x7D"),
        data_coding: 8,
        ..hello()
    };
    let wide = submitted(&pdu(1, &Request::SubmitSm(wide)));
    let mut texts = Vec::new();
    for sm in [header, tlvs, wide] {
        let udhi = sm.esm_class & ESM_UDHI != 0;
        let part = segmentation::segment_info(udhi, &sm.text(), &sm.tlvs).unwrap();
        assert_eq!((part.reference, part.total, part.number), (0x2D, 2, 1));
        let skip = if udhi { segmentation::header_length(&sm.text()).unwrap() } else { 0 };
        texts.push(text::decode(sm.data_coding, &sm.text()[skip..]));
    }
    assert_eq!(texts, ["你好", "你好", "你好"]);
}

#[test]
fn check_075_a_header_wins_over_sar() {
    let tlvs = submitted(&hex(V24)).tlvs;
    let part = segmentation::segment_info(true, b"\x05\x00\x03\x09\x03\x02x", &tlvs).unwrap();
    assert_eq!((part.reference, part.total, part.number), (9, 3, 2));
}

#[test]
fn check_076_a_header_longer_than_the_text() {
    for text in [&[0xFF][..], &[0xFF, 0, 3, 1, 2, 1], &[5], &[5, 0, 9, 1, 2, 1], &[3, 0, 3, 1], &[]] {
        let sm = Sm { esm_class: ESM_UDHI, short_message: Bytes::copy_from_slice(text), ..hello() };
        let sm = submitted(&pdu(1, &Request::SubmitSm(sm)));
        assert_eq!(sm.short_message, text);
        assert_eq!(segmentation::segment_info(true, &sm.short_message, &sm.tlvs), None);
    }
}

#[test]
fn check_077_invalid_segment_numbers_are_ignored() {
    for (total, number) in [(2, 3), (0, 0), (0, 1), (2, 0), (1, 1)] {
        assert_eq!(segmentation::segment_info(true, &[5, 0, 3, 1, total, number], &Tlvs::default()), None);
    }
}

#[test]
fn check_078_every_data_coding_passes_unchanged() {
    let octets = Bytes::from_static(b"\x00A\x1B\x65\xE9\xFF");
    for data_coding in [0, 1, 2, 3, 4, 8, 0x10, 0xF0, 0xF5, 0x0B] {
        let sm = Sm { data_coding, short_message: octets.clone(), ..hello() };
        let bytes = pdu(1, &Request::SubmitSm(sm));
        let taken = submitted(&bytes);
        assert_eq!((taken.data_coding, taken.short_message.clone()), (data_coding, octets.clone()));
        assert_eq!(pdu(1, &Request::SubmitSm(taken)), bytes);
    }
    assert_eq!(text::decode(0, b"\x00A\x1B\x65"), "@A€");
    assert_eq!(text::decode(0x10, b"\x00A\x1B\x65"), "@A€");
    assert_eq!(text::decode(0xF0, b"\x11"), "_");
    assert_eq!(text::decode(1, b"A@\xE9"), "A@\u{FFFD}");
    assert_eq!(text::decode(3, b"\xE9"), "é");
    assert_eq!(text::decode(8, b"\x4F\x60"), "你");
    assert_eq!(text::decode(4, b"\x01\xFF"), "01ff");
}

#[test]
fn check_079_ucs2_of_odd_length() {
    let sm = Sm { data_coding: 8, short_message: Bytes::from_static(b"\x4F\x60\x59"), ..hello() };
    let sm = submitted(&pdu(1, &Request::SubmitSm(sm)));
    assert_eq!(text::decode(8, &sm.short_message), "你\u{FFFD}");
}

#[test]
fn check_080_five_characters() {
    assert_eq!(text::decode(0, b"\x00\x01\x02\x1B\x65\x1B\x3C"), "@£$€[");
}

const NOW: Timestamp = Timestamp(1_795_000_000_000);

#[test]
fn check_081_validity() {
    assert_eq!(time::parse(b"000000010000000R", NOW), Ok(Some(NOW + Duration::from_secs(3600))));
    assert!(time::parse(b"261231235959032+", NOW).is_ok_and(|at| at.is_some_and(|at| at > NOW)));
    assert!(time::parse(b"abc", NOW).is_err());
    assert!(time::parse(b"200101000000000+", NOW).is_ok_and(|at| at.is_some_and(|at| at < NOW)));
    let sm = Sm { short_message: Bytes::new(), ..hello() };
    let whole = pdu(1, &Request::SubmitSm(sm));
    // The NUL of validity_period is 6 octets before the end: 5 flags and sm_length follow it.
    let at = whole.len() - 6;
    let body = [&whole[16..at], &[b'1'; 20], &whole[at..]].concat();
    assert_eq!(refused(&raw(4, 0, 1, &body)), CommandStatus::RINVEXPIRY);
}

#[test]
fn check_082_schedule() {
    let in_two_hours = time::parse(b"000000020000000R", NOW).unwrap().unwrap();
    assert_eq!(in_two_hours, NOW + Duration::from_secs(7200));
    let in_ten_years = time::parse(b"361120000000000+", NOW).unwrap().unwrap();
    assert!(in_ten_years > NOW + Duration::from_secs(9 * 365 * 86_400));
    assert!(time::parse(b"990000000000000R", NOW).is_ok());
    for bad in
        [&b"2611"[..], b"261320000000000+", b"261120250000000+", b"261120000000099+", b"2611200000000 0+"]
    {
        assert!(time::parse(bad, NOW).is_err());
    }
    for length in 12..=16 {
        assert!(time::parse(&b"261120102030000+"[..length], NOW).is_ok(), "{length} octets");
    }
    let whole = pdu(1, &Request::SubmitSm(Sm { short_message: Bytes::new(), ..hello() }));
    let at = whole.len() - 7;
    let body = [&whole[16..at], &[b'1'; 20], &whole[at..]].concat();
    assert_eq!(refused(&raw(4, 0, 1, &body)), CommandStatus::RINVSCHED);
}

#[test]
fn check_084_086_unusual_flags_are_preserved() {
    let sm = Sm { priority_flag: 200, sm_default_msg_id: 7, replace_if_present: 9, ..hello() };
    assert_eq!(submitted(&pdu(1, &Request::SubmitSm(sm.clone()))), sm);
}

#[test]
fn check_087_service_types() {
    let sm = Sm { service_type: Bytes::from_static(b"ABCDE"), ..hello() };
    assert_eq!(submitted(&pdu(1, &Request::SubmitSm(sm.clone()))), sm);
    let body = [b"ABCDEF", &submit(1)[16..]].concat();
    assert_eq!(refused(&raw(4, 0, 1, &body)), CommandStatus::RINVSERTYP);
}

#[test]
fn check_088_two_hundred_submits_with_a_window_of_fifty() {
    let options = SmppOptions { window_in: 50, backlog: 4_000, ..options() };
    let mut harness = SessionHarness::bound_server(BindMode::Transceiver, options);
    let octets: Vec<u8> = (1..=200).flat_map(submit).collect();
    let mut from = 0;
    let mut answered = Vec::new();
    while answered.len() < 200 {
        // The owner reads only while the session wants input.
        while harness.session.wants_input() && from < octets.len() {
            let end = octets.len().min(from + 500);
            harness.take(&octets[from..end]);
            from = end;
        }
        assert!(harness.session.unanswered_in() <= 50);
        assert!(harness.session.input().len() <= 500, "what waits is bounded");
        let requests = harness.requests();
        assert!(requests.len() <= 50 && !requests.is_empty());
        for (sequence, request) in requests {
            harness.ok(sequence, request.command());
        }
        harness.session.process(harness.now);
        answered.extend(harness.heads());
    }
    let expected: Vec<_> =
        (1..=200).map(|sequence| (CommandId::SUBMIT_SM.response(), CommandStatus::ROK, sequence)).collect();
    assert_eq!(answered, expected);
    harness.is_in_step();
}

#[test]
fn check_089_090_refusals_are_headers() {
    let mut harness = server();
    for (sequence, status) in
        [(1, CommandStatus::RTHROTTLED), (2, CommandStatus::RMSGQFUL), (3, CommandStatus::ROK)]
    {
        harness.take(&submit(sequence));
        harness.events();
        harness.session.respond(
            CommandId::SUBMIT_SM,
            sequence,
            status,
            &Response::id(Bytes::from_static(b"7")),
        );
    }
    let lengths: Vec<usize> = harness.written().iter().map(|pdu| pdu.raw.len()).collect();
    assert_eq!(lengths, [16, 16, 18]);
}

#[test]
fn check_091_a_repeated_sequence_number_is_two_submits() {
    let mut harness = server();
    harness.take(&[submit(5), submit(5)].concat());
    assert_eq!(harness.answer_all(), 2);
    assert_eq!(harness.heads(), [(CommandId::SUBMIT_SM.response(), CommandStatus::ROK, 5); 2]);
}

#[test]
fn check_093_submit_multi() {
    let mut harness = server();
    harness.take(&hex(V33));
    let requests = harness.requests();
    let Request::SubmitMulti(multi) = &requests[0].1 else { panic!("{requests:?}") };
    assert!(matches!(multi.destinations[2], Destination::List(_)));
    let mut none = hex(V33)[16..].to_vec();
    none[5] = 0;
    assert_eq!(refused(&raw(0x21, 0, 1, &none)), CommandStatus::RINVNUMDESTS);
    none[5] = 255;
    assert_eq!(refused(&raw(0x21, 0, 1, &none)), CommandStatus::RINVNUMDESTS);
    let mut flag = hex(V33)[16..].to_vec();
    flag[6] = 3;
    assert_eq!(refused(&raw(0x21, 0, 1, &flag)), CommandStatus::RINVDESTFLAG);
    // The PDU announces more destinations than it has.
    let mut many = hex(V33)[16..].to_vec();
    many[5] = 254;
    assert_ne!(refused(&raw(0x21, 0, 1, &many)), CommandStatus::ROK);
}

#[test]
fn check_094_data_sm() {
    let mut harness = server();
    harness.take(&hex(V35));
    let requests = harness.requests();
    let Request::DataSm(data) = &requests[0].1 else { panic!("{requests:?}") };
    assert_eq!(data.text().unwrap().as_ref(), b"Hi");
    harness.ok(requests[0].0, CommandId::DATA_SM);
    let written = harness.written();
    assert_eq!(
        (written[0].command, written[0].body.as_ref()),
        (CommandId(0x8000_0103), &b"0000000023\0"[..])
    );
    // Without a payload: the owner refuses it with 0xC3.
    harness.take(&raw(0x103, 0, 9, &hex(V35)[16..hex(V35).len() - 6]));
    let requests = harness.requests();
    assert!(matches!(&requests[0].1, Request::DataSm(data) if data.text().is_none()));
}

#[test]
fn check_095_broadcast_repetitions_of_one_and_two_octets() {
    for (octets, expected) in [(&[2][..], 2), (&[0, 2], 2), (&[1, 0], 256)] {
        let mut harness = server();
        harness.take(&hex(V37));
        let Request::BroadcastSm(mut broadcast) = harness.requests().remove(0).1 else { panic!() };
        assert_eq!(broadcast.repetitions(), Some(1));
        let kept = broadcast.tlvs.without(|tag| tag == tag::BROADCAST_REP_NUM);
        broadcast.tlvs = kept.with(tag::BROADCAST_REP_NUM, octets);
        assert_eq!(broadcast.tlvs.check_lengths(), Ok(()));
        harness.take(&pdu(3, &Request::BroadcastSm(broadcast)));
        let Request::BroadcastSm(broadcast) = harness.requests().remove(0).1 else { panic!() };
        assert_eq!(broadcast.repetitions(), Some(expected));
        // Broadcast is not offered: the answer is its own response, not a nack.
        harness.session.respond(CommandId::BROADCAST_SM, 3, CommandStatus::RPROHIBITED, &Response::Empty);
        assert_eq!(harness.heads(), [(CommandId::BROADCAST_SM.response(), CommandStatus::RPROHIBITED, 3)]);
    }
}

#[test]
fn check_096_097_query() {
    let mut harness = server();
    harness.take(&hex(V29));
    let requests = harness.requests();
    let Request::QuerySm(query) = &requests[0].1 else { panic!("{requests:?}") };
    assert_eq!(
        (query.message_id.as_ref(), query.source.value.as_slice()),
        (&b"0000012345"[..], &b"10655912345"[..])
    );
    let answer = smpp::QuerySmResp {
        message_id: query.message_id.clone(),
        final_date: Bytes::new(),
        message_state: 1,
        error_code: 0,
    };
    harness.session.respond(CommandId::QUERY_SM, requests[0].0, CommandStatus::ROK, &Response::Query(answer));
    assert_eq!(harness.written()[0].body.as_ref(), b"0000012345\0\0\x01\0");
}

#[test]
fn check_098_cancel() {
    let mut harness = server();
    harness.take(&hex(V31));
    let requests = harness.requests();
    let Request::CancelSm(cancel) = &requests[0].1 else { panic!("{requests:?}") };
    assert_eq!(cancel.message_id.as_ref(), b"0000012345");
    harness.session.respond(CommandId::CANCEL_SM, requests[0].0, CommandStatus::ROK, &Response::Empty);
    assert_eq!(harness.written()[0].raw.len(), 16);
}

#[test]
fn check_099_replace() {
    let mut harness = server();
    harness.take(&hex(V32));
    let requests = harness.requests();
    assert!(
        matches!(&requests[0].1, Request::ReplaceSm(replace) if replace.short_message.as_ref() == b"New")
    );
    let mut long = hex(V32)[16..hex(V32).len() - 4].to_vec();
    long.push(255);
    long.extend([b'x'; 255]);
    assert_eq!(refused(&raw(7, 0, 1, &long)), CommandStatus::RINVMSGLEN);
}

#[test]
fn check_100_101_answers_find_their_requests() {
    let mut harness = client();
    let sequences = send(&mut harness, 1..=4);
    let [first, second, third, fourth] = sequences[..] else { panic!() };
    harness.take(&raw(0x8000_0004, 0, first, b"0000012345\0"));
    harness.take(&raw(0x8000_0004, 0x58, second, &[]));
    harness.take(&raw(0x8000_0004, 0x45, third, &[0]));
    harness.take(&raw(0x8000_0004, 0, fourth, &[]));
    assert_eq!(
        answers(&mut harness),
        [
            (1, CommandStatus::ROK, b"0000012345".to_vec(), false),
            (2, CommandStatus::RTHROTTLED, Vec::new(), false),
            (3, CommandStatus::RSUBMITFAIL, Vec::new(), false),
            (4, CommandStatus::ROK, Vec::new(), false),
        ]
    );
    assert_eq!(harness.session.in_flight(), 0);
}

#[test]
fn check_102_ids_of_all_shapes_are_kept_raw() {
    let mut harness = client();
    let shapes = [
        vec![b'f'; 64],
        b"an id with blanks".to_vec(),
        "ключ-€".as_bytes().to_vec(),
        vec![b'9'; 200],
        b"3F2504E0-4F89-11D3-9A0C-0305E82C3301".to_vec(),
    ];
    for id in shapes {
        let sequence = send(&mut harness, 1..=1)[0];
        harness.take(&raw(0x8000_0004, 0, sequence, &[&id[..], &[0]].concat()));
        assert_eq!(answers(&mut harness), [(1, CommandStatus::ROK, id.clone(), false)]);
        // And without its NUL.
        let sequence = send(&mut harness, 2..=2)[0];
        harness.take(&raw(0x8000_0004, 0, sequence, &id));
        assert_eq!(answers(&mut harness), [(2, CommandStatus::ROK, id, false)]);
    }
}

#[test]
fn check_103_answers_in_reverse_order() {
    let mut harness = client();
    let sequences = send(&mut harness, 1..=10);
    for sequence in sequences.iter().rev() {
        harness.take(&raw(0x8000_0004, 0, *sequence, b"x\0"));
    }
    let tokens: Vec<u64> = answers(&mut harness).into_iter().map(|answer| answer.0).collect();
    assert_eq!(tokens, (1..=10).rev().collect::<Vec<u64>>());
}

#[test]
fn check_104_an_answer_after_the_timer() {
    let mut harness = client();
    let sequence = send(&mut harness, 7..=7)[0];
    harness.wait(options().response_timeout);
    harness.written();
    assert!(matches!(harness.events().as_slice(), [Event::Unanswered { token: 7 }]));
    assert_eq!(harness.session.in_flight(), 0, "its place is free");
    harness.take(&raw(0x8000_0005, 0, sequence, b"\0"));
    assert_eq!(harness.only_anomalies().len(), 1, "not its answer");
    harness.take(&raw(0x8000_0004, 0, sequence, b"0000012345\0"));
    assert_eq!(answers(&mut harness), [(7, CommandStatus::ROK, b"0000012345".to_vec(), true)]);
    harness.take(&raw(0x8000_0004, 0, sequence, b"0000012345\0"));
    assert_eq!(harness.only_anomalies().len(), 1);
}

#[test]
fn check_104_each_request_has_its_own_time() {
    let mut harness = client();
    for token in 1..=3 {
        send(&mut harness, token..=token);
        harness.wait(Duration::from_secs(10));
        harness.take(&pdu(1, &Request::EnquireLink));
    }
    let mut given_up = Vec::new();
    for _ in 0..3 {
        given_up.extend(harness.events().into_iter().map(|event| match event {
            Event::Unanswered { token } => token,
            other => panic!("{other:?}"),
        }));
        harness.wait(Duration::from_secs(10));
        harness.take(&pdu(1, &Request::EnquireLink));
    }
    assert_eq!(given_up, [1, 2, 3]);
}

#[test]
fn check_105_responses_without_request_are_ignored() {
    let mut harness = client();
    let sequence = send(&mut harness, 1..=1)[0];
    harness.take(&raw(0x8000_0004, 0, 4711, b"1\0"));
    assert!(answers(&mut harness).is_empty());
    harness.take(&raw(0x8000_0004, 0, sequence, b"1\0"));
    harness.take(&raw(0x8000_0004, 0, sequence, b"1\0"));
    assert_eq!(answers(&mut harness).len(), 1);
    // A response to another command is ignored: the submit still waits.
    let sequence = send(&mut harness, 2..=2)[0];
    for command in [0x8000_0015, 0x8000_0006, 0x8000_0103] {
        harness.take(&raw(command, 0, sequence, &[]));
    }
    assert!(answers(&mut harness).is_empty());
    assert_eq!(harness.session.in_flight(), 1);
}

#[test]
fn check_106_a_nack_is_an_answer() {
    let mut harness = client();
    let sequence = send(&mut harness, 9..=9)[0];
    harness.take(&raw(0x8000_0000, 3, 0, &[]));
    assert_eq!(harness.only_anomalies().len(), 1);
    harness.take(&raw(0x8000_0000, 3, sequence, &[]));
    assert_eq!(answers(&mut harness), [(9, CommandStatus::RINVCMDID, Vec::new(), false)]);
    let sequence = send(&mut harness, 10..=10)[0];
    harness.take(&raw(0x8000_0000, 0, sequence, &[]));
    assert_eq!(answers(&mut harness), [(10, CommandStatus::RSYSERR, Vec::new(), false)], "never a yes");
    assert!(harness.written().iter().all(|pdu| !pdu.command.is_response()), "no answer to a nack");
}

#[test]
fn check_107_the_window_holds() {
    let mut harness = client();
    send(&mut harness, 1..=10);
    assert_eq!(
        harness.session.request(harness.now, 11, &Request::SubmitSm(hello())),
        Err(RequestError::WindowFull)
    );
    assert_eq!((harness.session.in_flight(), harness.session.window_free()), (10, 0));
    assert_eq!(harness.written().len(), 10);
    harness.wait(options().enquire_interval);
    assert!(harness.heads().iter().any(|head| head.0 == CommandId::ENQUIRE_LINK));
}

#[test]
fn check_110_unknown_statuses_are_preserved_and_count_as_errors() {
    let mut harness = client();
    for status in [0xABCD, 0x0401, 0x45, 0xFFFF_FFFF] {
        let sequence = send(&mut harness, 1..=1)[0];
        harness.take(&raw(0x8000_0004, status, sequence, &[]));
        let answers = answers(&mut harness);
        assert_eq!(answers[0].1, CommandStatus(status));
        assert!(!answers[0].1.is_ok());
        assert_eq!(answers[0].1.class(), model::ErrorClass::Permanent);
    }
}

#[test]
fn check_111_the_link_drops_with_seven_unanswered() {
    let mut harness = client();
    let sequences = send(&mut harness, 1..=9);
    harness.take(&raw(0x8000_0004, 0, sequences[3], b"a\0"));
    harness.take(&raw(0x8000_0004, 0, sequences[0], b"b\0"));
    assert_eq!(harness.session.close(), [2, 3, 5, 6, 7, 8, 9]);
}

#[test]
fn check_113_congestion_state() {
    let mut harness = client();
    let sequence = send(&mut harness, 1..=1)[0];
    assert_eq!(harness.session.congestion(), None);
    let body = [b"0000012345\0".as_slice(), &[0x04, 0x28, 0, 1, 85]].concat();
    harness.take(&raw(0x8000_0004, 0, sequence, &body));
    assert_eq!(answers(&mut harness), [(1, CommandStatus::ROK, b"0000012345".to_vec(), false)]);
    assert_eq!(harness.session.congestion(), Some(85));
}

#[test]
fn check_114_a_long_text_by_header_by_sar_and_by_payload() {
    let text = Bytes::from(vec![b'a'; 300]);
    let parts = segmentation::split_udh(0, &text, 7).unwrap();
    assert_eq!(parts.iter().map(Bytes::len).collect::<Vec<_>>(), [159, 153]);
    let parts = segmentation::split_sar(0, &text, 7).unwrap();
    assert_eq!(parts.iter().map(|(part, _)| part.len()).collect::<Vec<_>>(), [153, 147]);
    let mut harness = client();
    let whole = Sm {
        short_message: Bytes::new(),
        tlvs: Tlvs::default().with(tag::MESSAGE_PAYLOAD, &text),
        ..hello()
    };
    harness.session.request(harness.now, 1, &Request::SubmitSm(whole.clone())).unwrap();
    assert_eq!(harness.written()[0].raw, pdu(2, &Request::SubmitSm(whole)));
}

#[test]
fn a_field_that_does_not_fit_is_refused_not_cut() {
    let mut harness = client();
    let sm = Sm { destination: Address::international(&"4".repeat(21)), ..hello() };
    harness.session.request(harness.now, 5, &Request::SubmitSm(sm)).unwrap();
    assert_eq!(answers(&mut harness), [(5, CommandStatus::RINVDSTADR, Vec::new(), false)]);
    assert!(harness.written().is_empty());
    assert_eq!(harness.session.in_flight(), 0);
}

#[test]
fn one_unanswered_request_does_not_keep_later_entries() {
    let mut harness = client();
    send(&mut harness, 0..=0);
    for _ in 0..10_000 {
        let sequence = send(&mut harness, 1..=1)[0];
        harness.take(&raw(0x8000_0004, 0, sequence, b"x\0"));
        harness.events();
        harness.session.output().clear();
    }
    assert_eq!(harness.session.in_flight(), 1);
    let shown = format!("{:?}", harness.session);
    assert!(shown.len() < 20_000, "the session has grown: {} characters", shown.len());
}
