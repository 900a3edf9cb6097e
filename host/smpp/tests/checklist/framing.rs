//! A. Framing.

use crate::harness::{Bench, options, pdu, raw, submit};
use crate::vectors::*;
use smpp::{BindMode, CloseReason, CommandId, Event, Options, Request, Status, Tlvs, tag};
use std::time::Duration;

fn bound() -> Bench {
    Bench::bound_server(BindMode::Transceiver, options())
}

#[test]
fn check_001_one_octet_at_a_time() {
    let mut bench = bound();
    for octet in hex(V04) {
        bench.take(&[octet]);
        bench.now += Duration::from_millis(10);
    }
    assert_eq!(bench.answer_all(), 1);
    assert_eq!(bench.heads(), [(CommandId::SUBMIT_SM.response(), Status::ROK, 2)]);
}

#[test]
fn check_002_a_hundred_in_one_write() {
    let mut bench = bound();
    let octets: Vec<u8> = (1..=100).flat_map(submit).collect();
    bench.take(&octets);
    assert_eq!(bench.answer_all(), 100);
    let sequences: Vec<u32> = bench.heads().into_iter().map(|(_, _, sequence)| sequence).collect();
    assert_eq!(sequences, (1..=100).collect::<Vec<u32>>());
}

#[test]
fn check_003_cut_at_every_offset() {
    let octets = hex(V04);
    for at in 1..octets.len() {
        let mut bench = bound();
        bench.take(&octets[..at]);
        assert!(bench.events().is_empty());
        bench.take(&octets[at..]);
        assert_eq!(bench.the_sm(), crate::harness::hello(), "cut at {at}");
    }
}

#[test]
fn check_004_three_octets_and_silence() {
    let mut bench = Bench::server(options());
    bench.take(&[0, 0, 0]);
    bench.wait(options().init_timeout);
    assert!(matches!(bench.events().as_slice(), [Event::Closing(CloseReason::NoBind)]));
    assert_eq!(bench.session.input().capacity(), 0);
}

#[test]
fn check_005_a_header_and_silence() {
    let mut bench = bound();
    bench.take(&hex(V04)[..16]);
    assert!(options().partial_timeout <= options().inactivity);
    bench.wait(options().partial_timeout);
    let events = bench.events();
    assert!(matches!(events.as_slice(), [Event::Closing(CloseReason::Partial)]), "{events:?}");
}

#[test]
fn check_005_slow_octets_do_not_prolong_a_pdu_and_whole_ones_end_the_wait() {
    let mut bench = bound();
    let octets = hex(V04);
    bench.take(&octets[..16]);
    bench.wait(options().partial_timeout / 2);
    bench.take(&octets[16..]);
    bench.wait(options().partial_timeout);
    assert!(!bench.is_closed());
    assert_eq!(bench.requests().len(), 1);
    bench.take(&pdu(9, &Request::EnquireLink));
    for octet in &octets[..40] {
        bench.take(&[*octet]);
        bench.wait(Duration::from_secs(1));
    }
    let events = bench.events();
    assert!(matches!(events.as_slice(), [Event::Closing(CloseReason::Partial)]), "{events:?}");
}

fn ends_by_its_length(octets: &[u8], nack: Option<u32>) {
    for mut bench in [Bench::server(options()), bound()] {
        bench.take(octets);
        let expected: Vec<_> = nack
            .map(|sequence| (CommandId::GENERIC_NACK, Status::RINVCMDLEN, sequence))
            .into_iter()
            .collect();
        assert_eq!(bench.heads(), expected);
        let events = bench.events();
        assert!(
            matches!(events.as_slice(), [Event::Noted(_), Event::Closing(CloseReason::BadLength)]),
            "{events:?}"
        );
        // No endless loop, and nothing more is taken.
        bench.take(&hex(V09));
        assert!(bench.heads().is_empty() && bench.events().is_empty());
        assert_eq!(bench.session.deadline(), None);
    }
}

#[test]
fn check_006_length_15() {
    ends_by_its_length(&hex(V15), Some(6));
}

#[test]
fn check_007_length_0() {
    let mut octets = hex(V09);
    octets[..4].fill(0);
    ends_by_its_length(&octets, Some(3));
}

#[test]
fn check_008_length_ffffffff_allocates_nothing() {
    let mut octets = hex(V09);
    octets[..4].fill(0xFF);
    ends_by_its_length(&octets, Some(3));
    let mut bench = bound();
    bench.take(&octets);
    assert_eq!(bench.session.input().capacity(), 0);
}

#[test]
fn check_006_a_response_of_impossible_length_is_not_nacked() {
    let mut octets = hex(V10);
    octets[3] = 3;
    ends_by_its_length(&octets, None);
}

#[test]
fn check_009_a_browser_on_the_port() {
    let mut bench = Bench::server(options());
    bench.take(&hex(V16));
    assert!(bench.is_closed());
}

#[test]
fn check_010_length_600_before_the_bind() {
    let mut bench = Bench::server(options());
    bench.take(&600_u32.to_be_bytes());
    bench.take(&hex(V04)[4..16]);
    assert_eq!(bench.heads(), [(CommandId::GENERIC_NACK, Status::RINVCMDLEN, 2)]);
    assert!(bench.is_closed());
}

#[test]
fn check_011_the_longest_payload() {
    let mut sm = crate::harness::hello();
    sm.short_message = bytes::Bytes::new();
    sm.tlvs = Tlvs::default().with(tag::MESSAGE_PAYLOAD, &vec![b'x'; 65_535]);
    let client = Bench::bound_client(BindMode::Transceiver, options());
    for (mut bench, request) in [(bound(), Request::SubmitSm(sm.clone())), (client, Request::DeliverSm(sm))] {
        for piece in pdu(5, &request).chunks(1460) {
            bench.take(piece);
        }
        assert_eq!(bench.the_sm().text().len(), 65_535);
        bench.is_in_step();
    }
}

#[test]
fn check_012_an_unknown_command_is_skipped_whole() {
    let mut bench = bound();
    bench.take(&[hex(V13), hex(V09)].concat());
    let written = bench.written();
    assert_eq!(written[0].raw, hex(V14));
    assert_eq!(written[1].raw, hex(V10));
    assert_eq!(bench.only_notes().len(), 1);
}

#[test]
fn check_013_an_unknown_response_is_ignored() {
    let mut bench = bound();
    bench.take(&raw(0x8000_00AA, 0, 5, b"abc"));
    assert_eq!(bench.only_notes().len(), 1);
    bench.is_in_step();
}

#[test]
fn check_014_a_status_in_a_request_means_nothing() {
    let mut bench = bound();
    let mut octets = hex(V04);
    octets[11] = 0x58;
    bench.take(&octets);
    assert_eq!(bench.answer_all(), 1);
}

#[test]
fn check_015_odd_sequence_numbers_are_echoed() {
    let mut bench = bound();
    for sequence in [0, 0xFFFF_FFFF] {
        bench.take(&submit(sequence));
        assert_eq!(bench.answer_all(), 1);
        assert_eq!(bench.heads(), [(CommandId::SUBMIT_SM.response(), Status::ROK, sequence)]);
    }
}

#[test]
fn check_016_trailing_octets() {
    let mut bench = bound();
    bench.take(&[hex(V18), hex(V25)].concat());
    assert_eq!(bench.the_sm().short_message.as_ref(), b"Hello");
    let written = bench.written();
    assert_eq!(written.len(), 1);
    assert_eq!(written[0].raw, raw(0x8000_0015, 0, 0x10, &[]));
    bench.is_in_step();
}

#[test]
fn check_017_text_shorter_than_sm_length() {
    let mut bench = bound();
    bench.take(&hex(V17));
    assert_eq!(bench.heads(), [(CommandId::SUBMIT_SM.response(), Status::RINVMSGLEN, 8)]);
    assert_eq!(bench.only_notes().len(), 1);
    bench.is_in_step();
}

#[test]
fn check_018_a_string_without_end_does_not_reach_the_next_pdu() {
    let mut bench = bound();
    for digits in [3, 300] {
        let mut body = vec![0, 1, 1];
        body.extend(vec![b'1'; digits]);
        bench.take(&[raw(4, 0, 77, &body), hex(V09)].concat());
        let heads = bench.heads();
        assert_eq!(heads.len(), 2);
        assert_eq!((heads[0].0, heads[0].2), (CommandId::SUBMIT_SM.response(), 77));
        let expected = if digits == 3 { Status::RINVCMDLEN } else { Status::RINVSRCADR };
        assert_eq!(heads[0].1, expected);
        assert_eq!(heads[1].0, CommandId::ENQUIRE_LINK.response());
    }
    bench.is_in_step();
}

#[test]
fn check_020_the_end_of_a_connection_gives_back_what_was_under_way() {
    let mut bench = Bench::bound_client(BindMode::Transceiver, options());
    for token in [30, 10, 20] {
        bench.session.request(bench.now, token, &Request::SubmitSm(crate::harness::hello())).unwrap();
    }
    bench.take(&hex(V04)[..30]);
    assert_eq!(bench.session.close(), [30, 10, 20]);
    assert_eq!((bench.session.in_flight(), bench.session.deadline()), (0, None));
}

#[test]
fn silence_is_not_held_against_a_peer_that_we_do_not_read() {
    let whole_interval = options().enquire_interval;
    for enquire_interval in [whole_interval, Duration::ZERO] {
        let options = Options { window_in: 1, backlog: 100, enquire_interval, ..options() };
        let mut bench = Bench::bound_server(BindMode::Transceiver, options.clone());
        bench.take(&[submit(1), submit(2), submit(3), submit(4)[..20].to_vec()].concat());
        assert!(!bench.session.wants_input());
        bench.wait(options.inactivity * 3);
        assert!(!bench.is_closed(), "the silence was ours");
        assert!(bench.heads().is_empty());
        let mut taken = 0;
        while bench.answer_all() > 0 {
            taken += 1;
        }
        assert_eq!(taken, 3);
        assert!(bench.session.wants_input());
        bench.take(&submit(4)[20..]);
        assert_eq!(bench.answer_all(), 1);
    }
}

#[test]
fn a_new_request_does_not_overtake_those_that_wait() {
    let mut bench = Bench::bound_server(BindMode::Transceiver, Options { window_in: 1, ..options() });
    bench.take(&[submit(1), submit(2)].concat());
    bench.requests();
    bench.ok(1, CommandId::SUBMIT_SM);
    // The window has room again, and number 2 waits for it: number 3 comes after that.
    bench.take(&submit(3));
    let sequences: Vec<u32> = bench.requests().into_iter().map(|(sequence, _)| sequence).collect();
    assert_eq!(sequences, [2]);
    bench.ok(2, CommandId::SUBMIT_SM);
    bench.session.process(bench.now);
    assert_eq!(bench.requests()[0].0, 3);
}
