//! D. The submit side: what a server reads, what a client makes of answers.

use crate::harness::{Bench, hello, options, pdu, raw, submit};
use crate::vectors::*;
use bytes::Bytes;
use model::{Address, Timestamp};
use smpp::concat::{self, ESM_UDHI};
use smpp::{
    BindMode, CommandId, Destination, Event, Options, Request, RequestError, Response, Sm, Status, Tlvs, tag,
    text, time,
};
use std::time::Duration;

fn server() -> Bench {
    Bench::bound_server(BindMode::Transceiver, options())
}

fn client() -> Bench {
    Bench::bound_client(BindMode::Transceiver, options())
}

/// What a server makes of a submit_sm.
fn submitted(octets: &[u8]) -> Sm {
    let mut bench = server();
    bench.take(octets);
    let sm = bench.the_sm();
    bench.is_in_step();
    sm
}

/// What a server answers by itself, header only, and without losing its step.
fn refused(octets: &[u8]) -> Status {
    let mut bench = server();
    bench.take(octets);
    let written = bench.written();
    assert_eq!((written.len(), written[0].raw.len()), (1, 16));
    assert_eq!(written[0].sequence.to_be_bytes(), octets[12..16]);
    assert_eq!(bench.only_notes().len(), 1);
    bench.is_in_step();
    written[0].status
}

/// Sends submits with these tokens: their sequence numbers.
fn send(bench: &mut Bench, tokens: std::ops::RangeInclusive<u64>) -> Vec<u32> {
    tokens
        .map(|token| bench.session.request(bench.now, token, &Request::SubmitSm(hello())).unwrap())
        .collect()
}

/// Token, status, id and lateness of all answers that came in.
fn answers(bench: &mut Bench) -> Vec<(u64, Status, Vec<u8>, bool)> {
    bench
        .events()
        .into_iter()
        .filter_map(|event| match event {
            Event::Answer { token, status, response, late } => {
                Some((token, status, response.message_id().to_vec(), late))
            }
            Event::Noted(_) => None,
            other => panic!("not an answer: {other:?}"),
        })
        .collect()
}

#[test]
fn check_060_a_submit_is_told_and_answered_with_its_id() {
    let mut bench = server();
    bench.take(&hex(V04));
    assert_eq!(bench.the_sm(), hello());
    assert!(bench.written().is_empty(), "no answer before the owner says so");
    let response = Response::id(Bytes::from_static(b"0000012345"));
    bench.session.respond(CommandId::SUBMIT_SM, 2, Status::ROK, &response);
    assert_eq!(bench.written()[0].raw, hex(V05));
}

#[test]
fn check_061_submit_on_a_receiver() {
    let mut bench = Bench::bound_server(BindMode::Receiver, options());
    bench.take(&hex(V04));
    assert_eq!(bench.heads(), [(CommandId::SUBMIT_SM.response(), Status::RINVBNDSTS, 2)]);
    assert_eq!(bench.only_notes().len(), 1);
    bench.is_in_step();
}

#[test]
fn check_062_064_empty_addresses_are_the_owners_to_judge() {
    let sm = Sm { source: Address::default(), destination: Address::default(), ..hello() };
    assert_eq!(submitted(&pdu(1, &Request::SubmitSm(sm.clone()))), sm);
}

#[test]
fn check_063_a_source_of_21_digits() {
    assert_eq!(refused(&hex(V22)), Status::RINVSRCADR);
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
    assert_eq!(refused(&raw(4, 0, 3, &octets[16..])), Status::RINVMSGLEN);
}

#[test]
fn check_067_an_empty_text() {
    let sm = Sm { short_message: Bytes::new(), ..hello() };
    assert!(submitted(&pdu(1, &Request::SubmitSm(sm))).text().is_empty());
}

#[test]
fn check_068_text_and_payload_both() {
    assert_eq!(refused(&hex(V19)), Status::RINVMSGLEN);
    // An empty payload beside a text contradicts nothing.
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
    assert_eq!(refused(&hex(V20)), Status::RINVTLVSTREAM);
    for stray in [&[0xFF][..], &[0, 0], &[1, 2, 3]] {
        let body = [&hex(V21)[16..], stray].concat();
        assert_eq!(refused(&raw(4, 0, 3, &body)), Status::RINVTLVSTREAM);
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
    assert_eq!(sm.tlvs.check_lengths().unwrap_err().status, Status::RINVPARLEN);
    assert_eq!(submitted(&hex(V24)).tlvs.check_lengths(), Ok(()));
    assert_eq!(Tlvs::default().with(0x1400, b"").with(0x3FFF, &[0; 999]).check_lengths(), Ok(()));
    for length in [1, 4] {
        assert_eq!(Tlvs::default().with(tag::MS_VALIDITY, &vec![0; length]).check_lengths(), Ok(()));
    }
}

#[test]
fn check_073_two_of_three_sar_tlvs_say_nothing() {
    let all = submitted(&hex(V24)).tlvs;
    for missing in [tag::SAR_MSG_REF_NUM, tag::SAR_TOTAL_SEGMENTS, tag::SAR_SEGMENT_SEQNUM] {
        let tlvs = all.without(|tag| tag == missing);
        let sm = submitted(&pdu(1, &Request::SubmitSm(Sm { tlvs, ..hello() })));
        assert_eq!(concat::part_of(false, &sm.short_message, &sm.tlvs), None);
    }
}

#[test]
fn check_074_three_ways_to_be_part_one_of_two() {
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
        let part = concat::part_of(udhi, &sm.text(), &sm.tlvs).unwrap();
        assert_eq!((part.reference, part.total, part.number), (0x2D, 2, 1));
        let skip = if udhi { concat::header_length(&sm.text()).unwrap() } else { 0 };
        texts.push(text::decode(sm.data_coding, &sm.text()[skip..]));
    }
    assert_eq!(texts, ["你好", "你好", "你好"]);
}

#[test]
fn check_075_a_header_wins_over_sar() {
    let tlvs = submitted(&hex(V24)).tlvs;
    let part = concat::part_of(true, b"\x05\x00\x03\x09\x03\x02x", &tlvs).unwrap();
    assert_eq!((part.reference, part.total, part.number), (9, 3, 2));
}

#[test]
fn check_076_a_header_longer_than_the_text() {
    for text in [&[0xFF][..], &[0xFF, 0, 3, 1, 2, 1], &[5], &[5, 0, 9, 1, 2, 1], &[3, 0, 3, 1], &[]] {
        let sm = Sm { esm_class: ESM_UDHI, short_message: Bytes::copy_from_slice(text), ..hello() };
        let sm = submitted(&pdu(1, &Request::SubmitSm(sm)));
        assert_eq!(sm.short_message, text);
        assert_eq!(concat::part_of(true, &sm.short_message, &sm.tlvs), None);
    }
}

#[test]
fn check_077_part_numbers_without_sense() {
    for (total, number) in [(2, 3), (0, 0), (0, 1), (2, 0), (1, 1)] {
        assert_eq!(concat::part_of(true, &[5, 0, 3, 1, total, number], &Tlvs::default()), None);
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
    // The NUL of validity_period stands 6 octets before the end: 5 flags and sm_length follow it.
    let at = whole.len() - 6;
    let body = [&whole[16..at], &[b'1'; 20], &whole[at..]].concat();
    assert_eq!(refused(&raw(4, 0, 1, &body)), Status::RINVEXPIRY);
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
    assert_eq!(refused(&raw(4, 0, 1, &body)), Status::RINVSCHED);
}

#[test]
fn check_084_086_odd_flags_come_through() {
    let sm = Sm { priority_flag: 200, sm_default_msg_id: 7, replace_if_present: 9, ..hello() };
    assert_eq!(submitted(&pdu(1, &Request::SubmitSm(sm.clone()))), sm);
}

#[test]
fn check_087_service_types() {
    let sm = Sm { service_type: Bytes::from_static(b"ABCDE"), ..hello() };
    assert_eq!(submitted(&pdu(1, &Request::SubmitSm(sm.clone()))), sm);
    let body = [b"ABCDEF", &submit(1)[16..]].concat();
    assert_eq!(refused(&raw(4, 0, 1, &body)), Status::RINVSERTYP);
}

#[test]
fn check_088_two_hundred_submits_with_a_window_of_fifty() {
    let options = Options { window_in: 50, backlog: 4_000, ..options() };
    let mut bench = Bench::bound_server(BindMode::Transceiver, options);
    let octets: Vec<u8> = (1..=200).flat_map(submit).collect();
    let mut from = 0;
    let mut answered = Vec::new();
    while answered.len() < 200 {
        // The owner reads only while the session wants it to.
        while bench.session.wants_input() && from < octets.len() {
            let end = octets.len().min(from + 500);
            bench.take(&octets[from..end]);
            from = end;
        }
        assert!(bench.session.unanswered_in() <= 50);
        assert!(bench.session.input().len() <= 500, "what waits is bounded");
        let requests = bench.requests();
        assert!(requests.len() <= 50 && !requests.is_empty());
        for (sequence, request) in requests {
            bench.ok(sequence, request.command());
        }
        bench.session.process(bench.now);
        answered.extend(bench.heads());
    }
    let expected: Vec<_> =
        (1..=200).map(|sequence| (CommandId::SUBMIT_SM.response(), Status::ROK, sequence)).collect();
    assert_eq!(answered, expected);
    bench.is_in_step();
}

#[test]
fn check_089_090_refusals_are_headers() {
    let mut bench = server();
    for (sequence, status) in [(1, Status::RTHROTTLED), (2, Status::RMSGQFUL), (3, Status::ROK)] {
        bench.take(&submit(sequence));
        bench.events();
        bench.session.respond(
            CommandId::SUBMIT_SM,
            sequence,
            status,
            &Response::id(Bytes::from_static(b"7")),
        );
    }
    let lengths: Vec<usize> = bench.written().iter().map(|pdu| pdu.raw.len()).collect();
    assert_eq!(lengths, [16, 16, 18]);
}

#[test]
fn check_091_one_number_twice_is_two_submits() {
    let mut bench = server();
    bench.take(&[submit(5), submit(5)].concat());
    assert_eq!(bench.answer_all(), 2);
    assert_eq!(bench.heads(), [(CommandId::SUBMIT_SM.response(), Status::ROK, 5); 2]);
}

#[test]
fn check_093_submit_multi() {
    let mut bench = server();
    bench.take(&hex(V33));
    let requests = bench.requests();
    let Request::SubmitMulti(multi) = &requests[0].1 else { panic!("{requests:?}") };
    assert!(matches!(multi.destinations[2], Destination::List(_)));
    let mut none = hex(V33)[16..].to_vec();
    none[5] = 0;
    assert_eq!(refused(&raw(0x21, 0, 1, &none)), Status::RINVNUMDESTS);
    none[5] = 255;
    assert_eq!(refused(&raw(0x21, 0, 1, &none)), Status::RINVNUMDESTS);
    let mut flag = hex(V33)[16..].to_vec();
    flag[6] = 3;
    assert_eq!(refused(&raw(0x21, 0, 1, &flag)), Status::RINVDESTFLAG);
    // More destinations promised than there are.
    let mut many = hex(V33)[16..].to_vec();
    many[5] = 254;
    assert_ne!(refused(&raw(0x21, 0, 1, &many)), Status::ROK);
}

#[test]
fn check_094_data_sm() {
    let mut bench = server();
    bench.take(&hex(V35));
    let requests = bench.requests();
    let Request::DataSm(data) = &requests[0].1 else { panic!("{requests:?}") };
    assert_eq!(data.text().unwrap().as_ref(), b"Hi");
    bench.ok(requests[0].0, CommandId::DATA_SM);
    let written = bench.written();
    assert_eq!(
        (written[0].command, written[0].body.as_ref()),
        (CommandId(0x8000_0103), &b"0000000023\0"[..])
    );
    // Without a payload: for the owner to refuse with 0xC3.
    bench.take(&raw(0x103, 0, 9, &hex(V35)[16..hex(V35).len() - 6]));
    let requests = bench.requests();
    assert!(matches!(&requests[0].1, Request::DataSm(data) if data.text().is_none()));
}

#[test]
fn check_095_broadcast_repetitions_of_one_and_two_octets() {
    for (octets, expected) in [(&[2][..], 2), (&[0, 2], 2), (&[1, 0], 256)] {
        let mut bench = server();
        bench.take(&hex(V37));
        let Request::BroadcastSm(mut broadcast) = bench.requests().remove(0).1 else { panic!() };
        assert_eq!(broadcast.repetitions(), Some(1));
        let kept = broadcast.tlvs.without(|tag| tag == tag::BROADCAST_REP_NUM);
        broadcast.tlvs = kept.with(tag::BROADCAST_REP_NUM, octets);
        assert_eq!(broadcast.tlvs.check_lengths(), Ok(()));
        bench.take(&pdu(3, &Request::BroadcastSm(broadcast)));
        let Request::BroadcastSm(broadcast) = bench.requests().remove(0).1 else { panic!() };
        assert_eq!(broadcast.repetitions(), Some(expected));
        // Not offered: its own answer says so, and no nack.
        bench.session.respond(CommandId::BROADCAST_SM, 3, Status::RPROHIBITED, &Response::Empty);
        assert_eq!(bench.heads(), [(CommandId::BROADCAST_SM.response(), Status::RPROHIBITED, 3)]);
    }
}

#[test]
fn check_096_097_query() {
    let mut bench = server();
    bench.take(&hex(V29));
    let requests = bench.requests();
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
    bench.session.respond(CommandId::QUERY_SM, requests[0].0, Status::ROK, &Response::Query(answer));
    assert_eq!(bench.written()[0].body.as_ref(), b"0000012345\0\0\x01\0");
}

#[test]
fn check_098_cancel() {
    let mut bench = server();
    bench.take(&hex(V31));
    let requests = bench.requests();
    let Request::CancelSm(cancel) = &requests[0].1 else { panic!("{requests:?}") };
    assert_eq!(cancel.message_id.as_ref(), b"0000012345");
    bench.session.respond(CommandId::CANCEL_SM, requests[0].0, Status::ROK, &Response::Empty);
    assert_eq!(bench.written()[0].raw.len(), 16);
}

#[test]
fn check_099_replace() {
    let mut bench = server();
    bench.take(&hex(V32));
    let requests = bench.requests();
    assert!(
        matches!(&requests[0].1, Request::ReplaceSm(replace) if replace.short_message.as_ref() == b"New")
    );
    let mut long = hex(V32)[16..hex(V32).len() - 4].to_vec();
    long.push(255);
    long.extend([b'x'; 255]);
    assert_eq!(refused(&raw(7, 0, 1, &long)), Status::RINVMSGLEN);
}

#[test]
fn check_100_101_answers_find_their_requests() {
    let mut bench = client();
    let sequences = send(&mut bench, 1..=4);
    let [first, second, third, fourth] = sequences[..] else { panic!() };
    bench.take(&raw(0x8000_0004, 0, first, b"0000012345\0"));
    bench.take(&raw(0x8000_0004, 0x58, second, &[]));
    bench.take(&raw(0x8000_0004, 0x45, third, &[0]));
    bench.take(&raw(0x8000_0004, 0, fourth, &[]));
    assert_eq!(
        answers(&mut bench),
        [
            (1, Status::ROK, b"0000012345".to_vec(), false),
            (2, Status::RTHROTTLED, Vec::new(), false),
            (3, Status::RSUBMITFAIL, Vec::new(), false),
            (4, Status::ROK, Vec::new(), false),
        ]
    );
    assert_eq!(bench.session.in_flight(), 0);
}

#[test]
fn check_102_ids_of_all_shapes_are_kept_raw() {
    let mut bench = client();
    let shapes = [
        vec![b'f'; 64],
        b"an id with blanks".to_vec(),
        "ключ-€".as_bytes().to_vec(),
        vec![b'9'; 200],
        b"3F2504E0-4F89-11D3-9A0C-0305E82C3301".to_vec(),
    ];
    for id in shapes {
        let sequence = send(&mut bench, 1..=1)[0];
        bench.take(&raw(0x8000_0004, 0, sequence, &[&id[..], &[0]].concat()));
        assert_eq!(answers(&mut bench), [(1, Status::ROK, id.clone(), false)]);
        // And without its NUL.
        let sequence = send(&mut bench, 2..=2)[0];
        bench.take(&raw(0x8000_0004, 0, sequence, &id));
        assert_eq!(answers(&mut bench), [(2, Status::ROK, id, false)]);
    }
}

#[test]
fn check_103_answers_in_reverse_order() {
    let mut bench = client();
    let sequences = send(&mut bench, 1..=10);
    for sequence in sequences.iter().rev() {
        bench.take(&raw(0x8000_0004, 0, *sequence, b"x\0"));
    }
    let tokens: Vec<u64> = answers(&mut bench).into_iter().map(|answer| answer.0).collect();
    assert_eq!(tokens, (1..=10).rev().collect::<Vec<u64>>());
}

#[test]
fn check_104_an_answer_after_the_timer() {
    let mut bench = client();
    let sequence = send(&mut bench, 7..=7)[0];
    bench.wait(options().response_timeout);
    bench.written();
    assert!(matches!(bench.events().as_slice(), [Event::Unanswered { token: 7 }]));
    assert_eq!(bench.session.in_flight(), 0, "its place is free");
    bench.take(&raw(0x8000_0005, 0, sequence, b"\0"));
    assert_eq!(bench.only_notes().len(), 1, "not its answer");
    bench.take(&raw(0x8000_0004, 0, sequence, b"0000012345\0"));
    assert_eq!(answers(&mut bench), [(7, Status::ROK, b"0000012345".to_vec(), true)]);
    bench.take(&raw(0x8000_0004, 0, sequence, b"0000012345\0"));
    assert_eq!(bench.only_notes().len(), 1);
}

#[test]
fn check_104_each_request_has_its_own_time() {
    let mut bench = client();
    for token in 1..=3 {
        send(&mut bench, token..=token);
        bench.wait(Duration::from_secs(10));
        bench.take(&pdu(1, &Request::EnquireLink));
    }
    let mut given_up = Vec::new();
    for _ in 0..3 {
        given_up.extend(bench.events().into_iter().map(|event| match event {
            Event::Unanswered { token } => token,
            other => panic!("{other:?}"),
        }));
        bench.wait(Duration::from_secs(10));
        bench.take(&pdu(1, &Request::EnquireLink));
    }
    assert_eq!(given_up, [1, 2, 3]);
}

#[test]
fn check_105_answers_to_nothing() {
    let mut bench = client();
    let sequence = send(&mut bench, 1..=1)[0];
    bench.take(&raw(0x8000_0004, 0, 4711, b"1\0"));
    assert!(answers(&mut bench).is_empty());
    bench.take(&raw(0x8000_0004, 0, sequence, b"1\0"));
    bench.take(&raw(0x8000_0004, 0, sequence, b"1\0"));
    assert_eq!(answers(&mut bench).len(), 1);
    // An answer of another kind is none: the submit still waits.
    let sequence = send(&mut bench, 2..=2)[0];
    for command in [0x8000_0015, 0x8000_0006, 0x8000_0103] {
        bench.take(&raw(command, 0, sequence, &[]));
    }
    assert!(answers(&mut bench).is_empty());
    assert_eq!(bench.session.in_flight(), 1);
}

#[test]
fn check_106_a_nack_is_an_answer() {
    let mut bench = client();
    let sequence = send(&mut bench, 9..=9)[0];
    bench.take(&raw(0x8000_0000, 3, 0, &[]));
    assert_eq!(bench.only_notes().len(), 1);
    bench.take(&raw(0x8000_0000, 3, sequence, &[]));
    assert_eq!(answers(&mut bench), [(9, Status::RINVCMDID, Vec::new(), false)]);
    let sequence = send(&mut bench, 10..=10)[0];
    bench.take(&raw(0x8000_0000, 0, sequence, &[]));
    assert_eq!(answers(&mut bench), [(10, Status::RSYSERR, Vec::new(), false)], "never a yes");
    assert!(bench.written().iter().all(|pdu| !pdu.command.is_response()), "no answer to a nack");
}

#[test]
fn check_107_the_window_holds() {
    let mut bench = client();
    send(&mut bench, 1..=10);
    assert_eq!(
        bench.session.request(bench.now, 11, &Request::SubmitSm(hello())),
        Err(RequestError::WindowFull)
    );
    assert_eq!((bench.session.in_flight(), bench.session.window_free()), (10, 0));
    assert_eq!(bench.written().len(), 10);
    bench.wait(options().enquire_interval);
    assert!(bench.heads().iter().any(|head| head.0 == CommandId::ENQUIRE_LINK));
}

#[test]
fn check_110_unknown_statuses_are_kept_and_are_no_yes() {
    let mut bench = client();
    for status in [0xABCD, 0x0401, 0x45, 0xFFFF_FFFF] {
        let sequence = send(&mut bench, 1..=1)[0];
        bench.take(&raw(0x8000_0004, status, sequence, &[]));
        let answers = answers(&mut bench);
        assert_eq!(answers[0].1, Status(status));
        assert!(!answers[0].1.is_ok());
        assert_eq!(answers[0].1.class(), model::ErrorClass::Permanent);
    }
}

#[test]
fn check_111_the_link_drops_with_seven_unanswered() {
    let mut bench = client();
    let sequences = send(&mut bench, 1..=9);
    bench.take(&raw(0x8000_0004, 0, sequences[3], b"a\0"));
    bench.take(&raw(0x8000_0004, 0, sequences[0], b"b\0"));
    assert_eq!(bench.session.close(), [2, 3, 5, 6, 7, 8, 9]);
}

#[test]
fn check_113_congestion_state() {
    let mut bench = client();
    let sequence = send(&mut bench, 1..=1)[0];
    assert_eq!(bench.session.congestion(), None);
    let body = [b"0000012345\0".as_slice(), &[0x04, 0x28, 0, 1, 85]].concat();
    bench.take(&raw(0x8000_0004, 0, sequence, &body));
    assert_eq!(answers(&mut bench), [(1, Status::ROK, b"0000012345".to_vec(), false)]);
    assert_eq!(bench.session.congestion(), Some(85));
}

#[test]
fn check_114_a_long_text_by_header_by_sar_and_by_payload() {
    let text = Bytes::from(vec![b'a'; 300]);
    let parts = concat::split_udh(0, &text, 7).unwrap();
    assert_eq!(parts.iter().map(Bytes::len).collect::<Vec<_>>(), [159, 153]);
    let parts = concat::split_sar(0, &text, 7).unwrap();
    assert_eq!(parts.iter().map(|(part, _)| part.len()).collect::<Vec<_>>(), [153, 147]);
    let mut bench = client();
    let whole = Sm {
        short_message: Bytes::new(),
        tlvs: Tlvs::default().with(tag::MESSAGE_PAYLOAD, &text),
        ..hello()
    };
    bench.session.request(bench.now, 1, &Request::SubmitSm(whole.clone())).unwrap();
    assert_eq!(bench.written()[0].raw, pdu(2, &Request::SubmitSm(whole)));
}

#[test]
fn a_field_without_room_is_refused_and_not_cut() {
    let mut bench = client();
    let sm = Sm { destination: Address::international(&"4".repeat(21)), ..hello() };
    bench.session.request(bench.now, 5, &Request::SubmitSm(sm)).unwrap();
    assert_eq!(answers(&mut bench), [(5, Status::RINVDSTADR, Vec::new(), false)]);
    assert!(bench.written().is_empty());
    assert_eq!(bench.session.in_flight(), 0);
}

#[test]
fn one_unanswered_request_does_not_keep_the_places_of_those_after_it() {
    let mut bench = client();
    send(&mut bench, 0..=0);
    for _ in 0..10_000 {
        let sequence = send(&mut bench, 1..=1)[0];
        bench.take(&raw(0x8000_0004, 0, sequence, b"x\0"));
        bench.events();
        bench.session.output().clear();
    }
    assert_eq!(bench.session.in_flight(), 1);
    let shown = format!("{:?}", bench.session);
    assert!(shown.len() < 20_000, "the session has grown: {} characters", shown.len());
}
