//! C. enquire_link, timers, unbind.

use crate::harness::{Bench, hello, options, pdu, raw, submit};
use crate::vectors::*;
use smpp::{
    BindMode, CloseReason, CommandId, Event, Options, Request, RequestError, Response, SessionState, Status,
    WhenFull,
};
use std::time::Duration;

fn both() -> [Bench; 2] {
    [
        Bench::bound_server(BindMode::Transceiver, options()),
        Bench::bound_client(BindMode::Transceiver, options()),
    ]
}

/// The sequence number of the enquire_link that was written, and of nothing else.
fn enquiry(bench: &mut Bench) -> u32 {
    let heads = bench.heads();
    let [(CommandId::ENQUIRE_LINK, Status::ROK, sequence)] = heads.as_slice() else { panic!("{heads:?}") };
    *sequence
}

#[test]
fn check_046_enquire_link_does_not_wait_behind_submits() {
    let mut bench = Bench::bound_server(BindMode::Transceiver, Options { window_in: 5, ..options() });
    let octets: Vec<u8> = (1..=50).flat_map(submit).collect();
    bench.take(&octets);
    // Nobody answers the submits: 5 are with the owner, 45 wait.
    assert_eq!(bench.requests().len(), 5);
    bench.is_in_step();
}

#[test]
fn check_047_one_enquire_link_when_silent_and_none_while_there_is_traffic() {
    for mut bench in both() {
        let interval = options().enquire_interval;
        for _ in 0..5 {
            bench.wait(interval - Duration::from_secs(1));
            bench.take(&pdu(1, &Request::EnquireLink));
            assert_eq!(bench.heads().len(), 1, "the answer, and no enquiry");
        }
        bench.wait(interval - Duration::from_secs(1));
        assert!(bench.heads().is_empty());
        bench.wait(Duration::from_secs(1));
        let sequence = enquiry(&mut bench);
        bench.take(&raw(0x8000_0015, 0, sequence, &[]));
        bench.wait(interval - Duration::from_secs(1));
        assert!(bench.heads().is_empty() && bench.events().is_empty());
    }
}

#[test]
fn check_048_other_pdus_are_signs_of_life_too() {
    for mut bench in both() {
        for _ in 0..20 {
            bench.wait(options().enquire_interval);
            enquiry(&mut bench);
            bench.wait(Duration::from_secs(5));
            bench.take(&raw(0x99, 0, 1, &[]));
            bench.events();
            assert_eq!(bench.heads().len(), 1, "the nack");
        }
        assert!(!bench.is_closed());
    }
}

#[test]
fn check_048_an_old_unanswered_enquiry_is_not_counted_after_other_traffic() {
    let options = Options { enquire_misses: 1, ..options() };
    let mut bench = Bench::bound_server(BindMode::Transceiver, options.clone());
    bench.wait(options.enquire_interval);
    enquiry(&mut bench);
    bench.take(&raw(0x8000_00AA, 0, 1, &[]));
    bench.events();
    bench.wait(options.enquire_interval);
    enquiry(&mut bench);
    bench.wait(options.enquire_timeout);
    assert!(bench.is_closed());
}

#[test]
fn check_048_misses_count_in_a_row_only() {
    let mut bench = Bench::bound_server(BindMode::Transceiver, options());
    for _ in 0..4 {
        bench.wait(options().enquire_interval);
        enquiry(&mut bench);
        bench.wait(options().enquire_timeout);
        let second = enquiry(&mut bench);
        bench.take(&raw(0x8000_0015, 0, second, &[]));
    }
    assert!(!bench.is_closed());
}

#[test]
fn check_049_silence_ends_it_and_gives_back_what_was_under_way() {
    let options = Options { response_timeout: Duration::from_secs(3600), ..options() };
    let mut bench = Bench::bound_client(BindMode::Transceiver, options.clone());
    for token in 1..=3 {
        bench.session.request(bench.now, token, &Request::SubmitSm(hello())).unwrap();
    }
    bench.written();
    bench.wait(options.enquire_interval);
    enquiry(&mut bench);
    bench.wait(options.enquire_timeout);
    enquiry(&mut bench);
    bench.wait(options.enquire_timeout);
    assert!(matches!(bench.events().as_slice(), [Event::Closing(CloseReason::Dead)]));
    assert_eq!(bench.session.close(), [1, 2, 3]);
}

#[test]
fn check_050_enquire_link_resp_of_any_kind_is_a_sign_of_life() {
    for mut bench in both() {
        for (status, of_another) in [(0, 0), (4, 0), (0, 500)] {
            bench.wait(options().enquire_interval);
            let sequence = enquiry(&mut bench);
            bench.take(&raw(0x8000_0015, status, sequence + of_another, &[]));
            assert!(bench.events().is_empty() && bench.heads().is_empty());
            bench.wait(options().enquire_interval - Duration::from_secs(1));
            assert!(bench.heads().is_empty());
            bench.take(&raw(0x8000_0015, 0, 9999, &[]));
        }
    }
}

#[test]
fn check_051_a_nack_is_a_sign_of_life() {
    for mut bench in both() {
        bench.wait(options().enquire_interval);
        let sequence = enquiry(&mut bench);
        bench.take(&raw(0x8000_0000, 3, sequence, &[]));
        assert!(bench.events().is_empty());
        bench.wait(options().enquire_interval - Duration::from_secs(1));
        assert!(!bench.is_closed() && bench.heads().is_empty());
    }
}

#[test]
fn check_052_inactivity() {
    let options = Options { enquire_interval: Duration::ZERO, ..options() };
    let mut bench = Bench::bound_server(BindMode::Transceiver, options.clone());
    bench.wait(options.inactivity - Duration::from_secs(1));
    assert!(bench.heads().is_empty());
    bench.wait(Duration::from_secs(1));
    assert_eq!(bench.heads().iter().map(|head| head.0).collect::<Vec<_>>(), [CommandId::UNBIND]);
    assert!(matches!(bench.events().as_slice(), [Event::Closing(CloseReason::Inactive)]));
}

#[test]
fn check_053_unbind_waits_for_our_answers() {
    for window_in in [100, 2] {
        let mut bench = Bench::bound_server(BindMode::Transceiver, Options { window_in, ..options() });
        let octets: Vec<u8> = (10..15).flat_map(submit).chain(hex(V11)).collect();
        bench.take(&octets);
        assert!(bench.heads().is_empty());
        while bench.answer_all() > 0 {}
        let heads = bench.heads();
        assert_eq!(heads.len(), 6, "with a window of {window_in}");
        for (head, sequence) in heads.iter().zip(10..15) {
            assert_eq!(*head, (CommandId::SUBMIT_SM.response(), Status::ROK, sequence));
        }
        assert_eq!(heads[5], (CommandId::UNBIND.response(), Status::ROK, 4));
        assert_eq!(bench.session.state(), SessionState::Closed(CloseReason::PeerUnbound));
    }
}

#[test]
fn check_053_an_owner_that_never_answers_does_not_hold_the_unbind_for_ever() {
    let mut bench = Bench::bound_server(BindMode::Transceiver, options());
    bench.take(&[submit(1), hex(V11)].concat());
    assert_eq!(bench.requests().len(), 1);
    bench.wait(options().unbind_timeout);
    assert!(matches!(bench.events().as_slice(), [Event::Closing(CloseReason::PeerUnbound)]));
}

#[test]
fn check_054_after_our_unbind_the_peer_is_still_answered() {
    let mut bench = Bench::bound_client(BindMode::Transceiver, options());
    bench.session.unbind(bench.now);
    let unbind = bench.heads()[0];
    assert_eq!(unbind.0, CommandId::UNBIND);
    assert_eq!(
        bench.session.request(bench.now, 1, &Request::SubmitSm(hello())),
        Err(RequestError::WrongState)
    );
    bench.take(&hex(V07));
    let requests = bench.requests();
    bench.session.respond(requests[0].1.command(), requests[0].0, Status::ROK, &Response::Empty);
    assert_eq!(bench.written()[0].raw, hex(V08));
    bench.take(&raw(0x8000_0006, 0, unbind.2, &[]));
    assert!(matches!(bench.events().as_slice(), [Event::Closing(CloseReason::Unbound)]));
}

#[test]
fn check_055_the_peer_closes_instead_of_answering_our_unbind() {
    let mut bench = Bench::bound_client(BindMode::Transceiver, options());
    bench.session.unbind(bench.now);
    assert!(bench.session.close().is_empty());
    assert_eq!(bench.session.deadline(), None);
}

#[test]
fn check_056_nobody_answers_our_unbind() {
    let mut bench = Bench::bound_client(BindMode::Transceiver, options());
    bench.session.unbind(bench.now);
    bench.wait(options().unbind_timeout);
    assert!(matches!(bench.events().as_slice(), [Event::Closing(CloseReason::Unbound)]));
}

#[test]
fn check_056_only_an_answer_to_the_unbind_ends_it() {
    let mut bench = Bench::bound_client(BindMode::Transceiver, options());
    bench.session.unbind(bench.now);
    let (_, _, sequence) = bench.heads()[0];
    bench.take(&raw(0x8000_0004, 0, sequence, b"1\0"));
    assert_eq!(bench.only_notes().len(), 1);
    bench.take(&raw(0x8000_0000, 3, sequence, &[]));
    assert!(matches!(bench.events().as_slice(), [Event::Closing(CloseReason::Unbound)]));
}

#[test]
fn check_057_unbind_before_the_bind() {
    let mut bench = Bench::server(options());
    bench.take(&hex(V11));
    assert_eq!(bench.heads(), [(CommandId::UNBIND.response(), Status::RINVBNDSTS, 4)]);
    assert!(bench.is_closed());
}

#[test]
fn check_058_after_unbind_resp_nothing_is_heard() {
    let mut bench = Bench::bound_server(BindMode::Transceiver, options());
    bench.take(&[hex(V11), hex(V04)].concat());
    bench.take(&hex(V04));
    assert_eq!(bench.heads(), [(CommandId::UNBIND.response(), Status::ROK, 4)]);
    assert!(matches!(bench.events().as_slice(), [Event::Closing(CloseReason::PeerUnbound)]));
}

#[test]
fn check_058_a_request_behind_an_unbind_is_ignored() {
    let mut bench = Bench::bound_server(BindMode::Transceiver, options());
    bench.take(&[submit(1), hex(V11), submit(2)].concat());
    assert_eq!(bench.requests().len(), 1);
    bench.ok(1, CommandId::SUBMIT_SM);
    assert_eq!(bench.heads().len(), 2);
}

#[test]
fn both_unbind_at_once() {
    let mut bench = Bench::bound_server(BindMode::Transceiver, options());
    bench.session.unbind(bench.now);
    bench.written();
    bench.take(&hex(V11));
    assert_eq!(bench.heads(), [(CommandId::UNBIND.response(), Status::ROK, 4)]);
    assert!(bench.is_closed());
}

#[test]
fn the_longest_waits_do_not_overflow_the_clock() {
    let long = Duration::MAX;
    let options = Options {
        enquire_interval: long,
        enquire_timeout: long,
        response_timeout: long,
        init_timeout: long,
        inactivity: long,
        partial_timeout: long,
        unbind_timeout: long,
        ..options()
    };
    let mut bench = Bench::bound_client(BindMode::Transceiver, options);
    bench.session.request(bench.now, 1, &Request::SubmitSm(hello())).unwrap();
    bench.take(&[0]);
    bench.session.on_timeout(bench.now + Duration::from_secs(86_400));
    bench.session.unbind(bench.now);
    assert!(!bench.is_closed());
}

#[test]
fn no_waits_at_all_end_and_do_not_loop() {
    let none = Duration::ZERO;
    let options = Options {
        enquire_timeout: none,
        response_timeout: none,
        init_timeout: none,
        partial_timeout: none,
        unbind_timeout: none,
        ..options()
    };
    let mut bench = Bench::bound_client(BindMode::Transceiver, options);
    bench.session.request(bench.now, 1, &Request::SubmitSm(hello())).unwrap();
    bench.wait(Duration::from_secs(600));
    assert!(bench.is_closed());
}

#[test]
fn over_the_window_a_throttling_session_answers_and_goes_on_reading() {
    let options = Options { window_in: 3, when_full: WhenFull::Throttle, ..options() };
    let mut bench = Bench::bound_server(BindMode::Transceiver, options);
    let octets: Vec<u8> = (1..=10).flat_map(submit).collect();
    bench.take(&octets);
    assert!(bench.session.wants_input());
    let heads = bench.heads();
    assert_eq!(heads.len(), 7);
    assert!(heads.iter().all(|head| head.1 == Status::RTHROTTLED));
    assert_eq!(bench.answer_all(), 3);
}
