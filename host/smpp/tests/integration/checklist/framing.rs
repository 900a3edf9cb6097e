//! A. Framing.

use crate::checklist::harness::{SessionHarness, options, pdu, raw, submit};
use crate::checklist::vectors::*;
use smpp::{BindMode, CloseReason, CommandId, CommandStatus, Event, Request, SmppOptions, Tlvs, tag};
use std::time::Duration;

fn bound() -> SessionHarness {
    SessionHarness::bound_server(BindMode::Transceiver, options())
}

#[test]
fn check_001_one_octet_at_a_time() {
    let mut harness = bound();
    for octet in hex(V04) {
        harness.take(&[octet]);
        harness.now += Duration::from_millis(10);
    }
    assert_eq!(harness.answer_all(), 1);
    assert_eq!(harness.heads(), [(CommandId::SUBMIT_SM.response(), CommandStatus::ROK, 2)]);
}

#[test]
fn check_002_a_hundred_in_one_write() {
    let mut harness = bound();
    let octets: Vec<u8> = (1..=100).flat_map(submit).collect();
    harness.take(&octets);
    assert_eq!(harness.answer_all(), 100);
    let sequences: Vec<u32> = harness.heads().into_iter().map(|(_, _, sequence)| sequence).collect();
    assert_eq!(sequences, (1..=100).collect::<Vec<u32>>());
}

#[test]
fn check_003_cut_at_every_offset() {
    let octets = hex(V04);
    for at in 1..octets.len() {
        let mut harness = bound();
        harness.take(&octets[..at]);
        assert!(harness.events().is_empty());
        harness.take(&octets[at..]);
        assert_eq!(harness.the_sm(), crate::checklist::harness::hello(), "cut at {at}");
    }
}

#[test]
fn check_004_three_octets_and_silence() {
    let mut harness = SessionHarness::server(options());
    harness.take(&[0, 0, 0]);
    harness.wait(options().init_timeout);
    assert!(matches!(harness.events().as_slice(), [Event::Closing(CloseReason::NoBind)]));
    assert_eq!(harness.session.input().capacity(), 0);
}

#[test]
fn check_005_a_header_and_silence() {
    let mut harness = bound();
    harness.take(&hex(V04)[..16]);
    assert!(options().partial_timeout <= options().inactivity);
    harness.wait(options().partial_timeout);
    let events = harness.events();
    assert!(matches!(events.as_slice(), [Event::Closing(CloseReason::Partial)]), "{events:?}");
}

#[test]
fn check_005_slow_octets_do_not_prolong_a_pdu_and_whole_ones_end_the_wait() {
    let mut harness = bound();
    let octets = hex(V04);
    harness.take(&octets[..16]);
    harness.wait(options().partial_timeout / 2);
    harness.take(&octets[16..]);
    harness.wait(options().partial_timeout);
    assert!(!harness.is_closed());
    assert_eq!(harness.requests().len(), 1);
    harness.take(&pdu(9, &Request::EnquireLink));
    for octet in &octets[..40] {
        harness.take(&[*octet]);
        harness.wait(Duration::from_secs(1));
    }
    let events = harness.events();
    assert!(matches!(events.as_slice(), [Event::Closing(CloseReason::Partial)]), "{events:?}");
}

fn ends_by_its_length(octets: &[u8], nack: Option<u32>) {
    for mut harness in [SessionHarness::server(options()), bound()] {
        harness.take(octets);
        let expected: Vec<_> = nack
            .map(|sequence| (CommandId::GENERIC_NACK, CommandStatus::RINVCMDLEN, sequence))
            .into_iter()
            .collect();
        assert_eq!(harness.heads(), expected);
        let events = harness.events();
        assert!(
            matches!(events.as_slice(), [Event::Anomaly(_), Event::Closing(CloseReason::BadLength)]),
            "{events:?}"
        );
        // No endless loop, and no more input is processed.
        harness.take(&hex(V09));
        assert!(harness.heads().is_empty() && harness.events().is_empty());
        assert_eq!(harness.session.deadline(), None);
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
    let mut harness = bound();
    harness.take(&octets);
    assert_eq!(harness.session.input().capacity(), 0);
}

#[test]
fn check_006_a_response_of_impossible_length_is_not_nacked() {
    let mut octets = hex(V10);
    octets[3] = 3;
    ends_by_its_length(&octets, None);
}

#[test]
fn check_009_a_browser_on_the_port() {
    let mut harness = SessionHarness::server(options());
    harness.take(&hex(V16));
    assert!(harness.is_closed());
}

#[test]
fn check_010_length_600_before_the_bind() {
    let mut harness = SessionHarness::server(options());
    harness.take(&600_u32.to_be_bytes());
    harness.take(&hex(V04)[4..16]);
    assert_eq!(harness.heads(), [(CommandId::GENERIC_NACK, CommandStatus::RINVCMDLEN, 2)]);
    assert!(harness.is_closed());
}

#[test]
fn check_011_the_longest_payload() {
    let mut sm = crate::checklist::harness::hello();
    sm.short_message = bytes::Bytes::new();
    sm.tlvs = Tlvs::default().with(tag::MESSAGE_PAYLOAD, &vec![b'x'; 65_535]);
    let client = SessionHarness::bound_client(BindMode::Transceiver, options());
    for (mut harness, request) in [(bound(), Request::SubmitSm(sm.clone())), (client, Request::DeliverSm(sm))]
    {
        for piece in pdu(5, &request).chunks(1460) {
            harness.take(piece);
        }
        assert_eq!(harness.the_sm().text().len(), 65_535);
        harness.is_in_step();
    }
}

#[test]
fn check_012_an_unknown_command_is_skipped_whole() {
    let mut harness = bound();
    harness.take(&[hex(V13), hex(V09)].concat());
    let written = harness.written();
    assert_eq!(written[0].raw, hex(V14));
    assert_eq!(written[1].raw, hex(V10));
    assert_eq!(harness.only_anomalies().len(), 1);
}

#[test]
fn check_013_an_unknown_response_is_ignored() {
    let mut harness = bound();
    harness.take(&raw(0x8000_00AA, 0, 5, b"abc"));
    assert_eq!(harness.only_anomalies().len(), 1);
    harness.is_in_step();
}

#[test]
fn check_014_a_status_in_a_request_means_nothing() {
    let mut harness = bound();
    let mut octets = hex(V04);
    octets[11] = 0x58;
    harness.take(&octets);
    assert_eq!(harness.answer_all(), 1);
}

#[test]
fn check_015_odd_sequence_numbers_are_echoed() {
    let mut harness = bound();
    for sequence in [0, 0xFFFF_FFFF] {
        harness.take(&submit(sequence));
        assert_eq!(harness.answer_all(), 1);
        assert_eq!(harness.heads(), [(CommandId::SUBMIT_SM.response(), CommandStatus::ROK, sequence)]);
    }
}

#[test]
fn check_016_trailing_octets() {
    let mut harness = bound();
    harness.take(&[hex(V18), hex(V25)].concat());
    assert_eq!(harness.the_sm().short_message.as_ref(), b"Hello");
    let written = harness.written();
    assert_eq!(written.len(), 1);
    assert_eq!(written[0].raw, raw(0x8000_0015, 0, 0x10, &[]));
    harness.is_in_step();
}

#[test]
fn check_017_text_shorter_than_sm_length() {
    let mut harness = bound();
    harness.take(&hex(V17));
    assert_eq!(harness.heads(), [(CommandId::SUBMIT_SM.response(), CommandStatus::RINVMSGLEN, 8)]);
    assert_eq!(harness.only_anomalies().len(), 1);
    harness.is_in_step();
}

#[test]
fn check_018_a_string_without_end_does_not_reach_the_next_pdu() {
    let mut harness = bound();
    for digits in [3, 300] {
        let mut body = vec![0, 1, 1];
        body.extend(vec![b'1'; digits]);
        harness.take(&[raw(4, 0, 77, &body), hex(V09)].concat());
        let heads = harness.heads();
        assert_eq!(heads.len(), 2);
        assert_eq!((heads[0].0, heads[0].2), (CommandId::SUBMIT_SM.response(), 77));
        let expected = if digits == 3 { CommandStatus::RINVCMDLEN } else { CommandStatus::RINVSRCADR };
        assert_eq!(heads[0].1, expected);
        assert_eq!(heads[1].0, CommandId::ENQUIRE_LINK.response());
    }
    harness.is_in_step();
}

#[test]
fn check_020_close_returns_the_unanswered_requests() {
    let mut harness = SessionHarness::bound_client(BindMode::Transceiver, options());
    for token in [30, 10, 20] {
        harness
            .session
            .request(harness.now, token, &Request::SubmitSm(crate::checklist::harness::hello()))
            .unwrap();
    }
    harness.take(&hex(V04)[..30]);
    assert_eq!(harness.session.close(), [30, 10, 20]);
    assert_eq!((harness.session.in_flight(), harness.session.deadline()), (0, None));
}

#[test]
fn silence_of_a_peer_that_we_do_not_read_does_not_count() {
    let whole_interval = options().enquire_interval;
    for enquire_interval in [whole_interval, Duration::ZERO] {
        let options = SmppOptions { window_in: 1, backlog: 100, enquire_interval, ..options() };
        let mut harness = SessionHarness::bound_server(BindMode::Transceiver, options.clone());
        harness.take(&[submit(1), submit(2), submit(3), submit(4)[..20].to_vec()].concat());
        assert!(!harness.session.wants_input());
        harness.wait(options.inactivity * 3);
        assert!(!harness.is_closed(), "the silence was ours");
        assert!(harness.heads().is_empty());
        let mut taken = 0;
        while harness.answer_all() > 0 {
            taken += 1;
        }
        assert_eq!(taken, 3);
        assert!(harness.session.wants_input());
        harness.take(&submit(4)[20..]);
        assert_eq!(harness.answer_all(), 1);
    }
}

#[test]
fn a_new_request_does_not_overtake_waiting_ones() {
    let mut harness =
        SessionHarness::bound_server(BindMode::Transceiver, SmppOptions { window_in: 1, ..options() });
    harness.take(&[submit(1), submit(2)].concat());
    harness.requests();
    harness.ok(1, CommandId::SUBMIT_SM);
    // The window has a free slot, and number 2 waits for it: number 3 comes after that.
    harness.take(&submit(3));
    let sequences: Vec<u32> = harness.requests().into_iter().map(|(sequence, _)| sequence).collect();
    assert_eq!(sequences, [2]);
    harness.ok(2, CommandId::SUBMIT_SM);
    harness.session.process(harness.now);
    assert_eq!(harness.requests()[0].0, 3);
}
