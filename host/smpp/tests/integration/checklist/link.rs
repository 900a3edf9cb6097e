//! C. enquire_link, timers, unbind.

use crate::checklist::harness::{SessionHarness, hello, options, pdu, raw, submit};
use crate::checklist::vectors::*;
use smpp::{
    BindMode, CloseReason, CommandId, CommandStatus, Event, Request, RequestError, Response, SessionState,
    SmppOptions, WindowFullPolicy,
};
use std::time::Duration;

fn both() -> [SessionHarness; 2] {
    [
        SessionHarness::bound_server(BindMode::Transceiver, options()),
        SessionHarness::bound_client(BindMode::Transceiver, options()),
    ]
}

/// The sequence number of the enquire_link that was written; nothing else was written.
fn enquiry(harness: &mut SessionHarness) -> u32 {
    let heads = harness.heads();
    let [(CommandId::ENQUIRE_LINK, CommandStatus::ROK, sequence)] = heads.as_slice() else {
        panic!("{heads:?}")
    };
    *sequence
}

#[test]
fn check_046_enquire_link_does_not_wait_behind_submits() {
    let mut harness =
        SessionHarness::bound_server(BindMode::Transceiver, SmppOptions { window_in: 5, ..options() });
    let octets: Vec<u8> = (1..=50).flat_map(submit).collect();
    harness.take(&octets);
    // The submits stay unanswered: 5 are with the owner, 45 wait.
    assert_eq!(harness.requests().len(), 5);
    harness.is_in_step();
}

#[test]
fn check_047_one_enquire_link_when_silent_and_none_while_there_is_traffic() {
    for mut harness in both() {
        let interval = options().enquire_interval;
        for _ in 0..5 {
            harness.wait(interval - Duration::from_secs(1));
            harness.take(&pdu(1, &Request::EnquireLink));
            assert_eq!(harness.heads().len(), 1, "the answer, and no enquiry");
        }
        harness.wait(interval - Duration::from_secs(1));
        assert!(harness.heads().is_empty());
        harness.wait(Duration::from_secs(1));
        let sequence = enquiry(&mut harness);
        harness.take(&raw(0x8000_0015, 0, sequence, &[]));
        harness.wait(interval - Duration::from_secs(1));
        assert!(harness.heads().is_empty() && harness.events().is_empty());
    }
}

#[test]
fn check_048_other_pdus_are_signs_of_life_too() {
    for mut harness in both() {
        for _ in 0..20 {
            harness.wait(options().enquire_interval);
            enquiry(&mut harness);
            harness.wait(Duration::from_secs(5));
            harness.take(&raw(0x99, 0, 1, &[]));
            harness.events();
            assert_eq!(harness.heads().len(), 1, "the nack");
        }
        assert!(!harness.is_closed());
    }
}

#[test]
fn check_048_an_old_unanswered_enquiry_is_not_counted_after_other_traffic() {
    let options = SmppOptions { enquire_misses: 1, ..options() };
    let mut harness = SessionHarness::bound_server(BindMode::Transceiver, options.clone());
    harness.wait(options.enquire_interval);
    enquiry(&mut harness);
    harness.take(&raw(0x8000_00AA, 0, 1, &[]));
    harness.events();
    harness.wait(options.enquire_interval);
    enquiry(&mut harness);
    harness.wait(options.enquire_timeout);
    assert!(harness.is_closed());
}

#[test]
fn check_048_misses_count_in_a_row_only() {
    let mut harness = SessionHarness::bound_server(BindMode::Transceiver, options());
    for _ in 0..4 {
        harness.wait(options().enquire_interval);
        enquiry(&mut harness);
        harness.wait(options().enquire_timeout);
        let second = enquiry(&mut harness);
        harness.take(&raw(0x8000_0015, 0, second, &[]));
    }
    assert!(!harness.is_closed());
}

#[test]
fn check_049_silence_ends_the_session_and_returns_the_unanswered_requests() {
    let options = SmppOptions { response_timeout: Duration::from_secs(3600), ..options() };
    let mut harness = SessionHarness::bound_client(BindMode::Transceiver, options.clone());
    for token in 1..=3 {
        harness.session.request(harness.now, token, &Request::SubmitSm(hello())).unwrap();
    }
    harness.written();
    harness.wait(options.enquire_interval);
    enquiry(&mut harness);
    harness.wait(options.enquire_timeout);
    enquiry(&mut harness);
    harness.wait(options.enquire_timeout);
    assert!(matches!(harness.events().as_slice(), [Event::Closing(CloseReason::Dead)]));
    assert_eq!(harness.session.close(), [1, 2, 3]);
}

#[test]
fn check_050_enquire_link_resp_of_any_kind_is_a_sign_of_life() {
    for mut harness in both() {
        for (status, of_another) in [(0, 0), (4, 0), (0, 500)] {
            harness.wait(options().enquire_interval);
            let sequence = enquiry(&mut harness);
            harness.take(&raw(0x8000_0015, status, sequence + of_another, &[]));
            assert!(harness.events().is_empty() && harness.heads().is_empty());
            harness.wait(options().enquire_interval - Duration::from_secs(1));
            assert!(harness.heads().is_empty());
            harness.take(&raw(0x8000_0015, 0, 9999, &[]));
        }
    }
}

#[test]
fn check_051_a_nack_is_a_sign_of_life() {
    for mut harness in both() {
        harness.wait(options().enquire_interval);
        let sequence = enquiry(&mut harness);
        harness.take(&raw(0x8000_0000, 3, sequence, &[]));
        assert!(harness.events().is_empty());
        harness.wait(options().enquire_interval - Duration::from_secs(1));
        assert!(!harness.is_closed() && harness.heads().is_empty());
    }
}

#[test]
fn check_052_inactivity() {
    let options = SmppOptions { enquire_interval: Duration::ZERO, ..options() };
    let mut harness = SessionHarness::bound_server(BindMode::Transceiver, options.clone());
    harness.wait(options.inactivity - Duration::from_secs(1));
    assert!(harness.heads().is_empty());
    harness.wait(Duration::from_secs(1));
    assert_eq!(harness.heads().iter().map(|head| head.0).collect::<Vec<_>>(), [CommandId::UNBIND]);
    assert!(matches!(harness.events().as_slice(), [Event::Closing(CloseReason::Inactive)]));
}

#[test]
fn check_053_unbind_waits_for_our_answers() {
    for window_in in [100, 2] {
        let mut harness =
            SessionHarness::bound_server(BindMode::Transceiver, SmppOptions { window_in, ..options() });
        let octets: Vec<u8> = (10..15).flat_map(submit).chain(hex(V11)).collect();
        harness.take(&octets);
        assert!(harness.heads().is_empty());
        while harness.answer_all() > 0 {}
        let heads = harness.heads();
        assert_eq!(heads.len(), 6, "with a window of {window_in}");
        for (head, sequence) in heads.iter().zip(10..15) {
            assert_eq!(*head, (CommandId::SUBMIT_SM.response(), CommandStatus::ROK, sequence));
        }
        assert_eq!(heads[5], (CommandId::UNBIND.response(), CommandStatus::ROK, 4));
        assert_eq!(harness.session.state(), SessionState::Closed(CloseReason::PeerUnbound));
    }
}

#[test]
fn check_053_the_unbind_times_out_if_the_owner_never_answers() {
    let mut harness = SessionHarness::bound_server(BindMode::Transceiver, options());
    harness.take(&[submit(1), hex(V11)].concat());
    assert_eq!(harness.requests().len(), 1);
    harness.wait(options().unbind_timeout);
    assert!(matches!(harness.events().as_slice(), [Event::Closing(CloseReason::PeerUnbound)]));
}

#[test]
fn check_054_after_our_unbind_the_peer_is_still_answered() {
    let mut harness = SessionHarness::bound_client(BindMode::Transceiver, options());
    harness.session.unbind(harness.now);
    let unbind = harness.heads()[0];
    assert_eq!(unbind.0, CommandId::UNBIND);
    assert_eq!(
        harness.session.request(harness.now, 1, &Request::SubmitSm(hello())),
        Err(RequestError::WrongState)
    );
    harness.take(&hex(V07));
    let requests = harness.requests();
    harness.session.respond(requests[0].1.command(), requests[0].0, CommandStatus::ROK, &Response::Empty);
    assert_eq!(harness.written()[0].raw, hex(V08));
    harness.take(&raw(0x8000_0006, 0, unbind.2, &[]));
    assert!(matches!(harness.events().as_slice(), [Event::Closing(CloseReason::Unbound)]));
}

#[test]
fn check_055_the_peer_closes_instead_of_answering_our_unbind() {
    let mut harness = SessionHarness::bound_client(BindMode::Transceiver, options());
    harness.session.unbind(harness.now);
    assert!(harness.session.close().is_empty());
    assert_eq!(harness.session.deadline(), None);
}

#[test]
fn check_056_an_unanswered_unbind_times_out() {
    let mut harness = SessionHarness::bound_client(BindMode::Transceiver, options());
    harness.session.unbind(harness.now);
    harness.wait(options().unbind_timeout);
    assert!(matches!(harness.events().as_slice(), [Event::Closing(CloseReason::Unbound)]));
}

#[test]
fn check_056_only_an_answer_to_the_unbind_ends_it() {
    let mut harness = SessionHarness::bound_client(BindMode::Transceiver, options());
    harness.session.unbind(harness.now);
    let (_, _, sequence) = harness.heads()[0];
    harness.take(&raw(0x8000_0004, 0, sequence, b"1\0"));
    assert_eq!(harness.only_anomalies().len(), 1);
    harness.take(&raw(0x8000_0000, 3, sequence, &[]));
    assert!(matches!(harness.events().as_slice(), [Event::Closing(CloseReason::Unbound)]));
}

#[test]
fn check_057_unbind_before_the_bind() {
    let mut harness = SessionHarness::server(options());
    harness.take(&hex(V11));
    assert_eq!(harness.heads(), [(CommandId::UNBIND.response(), CommandStatus::RINVBNDSTS, 4)]);
    assert!(harness.is_closed());
}

#[test]
fn check_058_input_after_unbind_resp_is_ignored() {
    let mut harness = SessionHarness::bound_server(BindMode::Transceiver, options());
    harness.take(&[hex(V11), hex(V04)].concat());
    harness.take(&hex(V04));
    assert_eq!(harness.heads(), [(CommandId::UNBIND.response(), CommandStatus::ROK, 4)]);
    assert!(matches!(harness.events().as_slice(), [Event::Closing(CloseReason::PeerUnbound)]));
}

#[test]
fn check_058_a_request_behind_an_unbind_is_ignored() {
    let mut harness = SessionHarness::bound_server(BindMode::Transceiver, options());
    harness.take(&[submit(1), hex(V11), submit(2)].concat());
    assert_eq!(harness.requests().len(), 1);
    harness.ok(1, CommandId::SUBMIT_SM);
    assert_eq!(harness.heads().len(), 2);
}

#[test]
fn both_unbind_at_once() {
    let mut harness = SessionHarness::bound_server(BindMode::Transceiver, options());
    harness.session.unbind(harness.now);
    harness.written();
    harness.take(&hex(V11));
    assert_eq!(harness.heads(), [(CommandId::UNBIND.response(), CommandStatus::ROK, 4)]);
    assert!(harness.is_closed());
}

#[test]
fn the_longest_timeouts_do_not_overflow_the_clock() {
    let long = Duration::MAX;
    let options = SmppOptions {
        enquire_interval: long,
        enquire_timeout: long,
        response_timeout: long,
        init_timeout: long,
        inactivity: long,
        partial_timeout: long,
        unbind_timeout: long,
        ..options()
    };
    let mut harness = SessionHarness::bound_client(BindMode::Transceiver, options);
    harness.session.request(harness.now, 1, &Request::SubmitSm(hello())).unwrap();
    harness.take(&[0]);
    harness.session.on_timeout(harness.now + Duration::from_secs(86_400));
    harness.session.unbind(harness.now);
    assert!(!harness.is_closed());
}

#[test]
fn timeouts_of_zero_expire_without_a_loop() {
    let none = Duration::ZERO;
    let options = SmppOptions {
        enquire_timeout: none,
        response_timeout: none,
        init_timeout: none,
        partial_timeout: none,
        unbind_timeout: none,
        ..options()
    };
    let mut harness = SessionHarness::bound_client(BindMode::Transceiver, options);
    harness.session.request(harness.now, 1, &Request::SubmitSm(hello())).unwrap();
    harness.wait(Duration::from_secs(600));
    assert!(harness.is_closed());
}

#[test]
fn over_the_window_a_throttling_session_answers_and_goes_on_reading() {
    let options = SmppOptions { window_in: 3, window_full_policy: WindowFullPolicy::Throttle, ..options() };
    let mut harness = SessionHarness::bound_server(BindMode::Transceiver, options);
    let octets: Vec<u8> = (1..=10).flat_map(submit).collect();
    harness.take(&octets);
    assert!(harness.session.wants_input());
    let heads = harness.heads();
    assert_eq!(heads.len(), 7);
    assert!(heads.iter().all(|head| head.1 == CommandStatus::RTHROTTLED));
    assert_eq!(harness.answer_all(), 3);
}
