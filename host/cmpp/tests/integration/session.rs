//! Conformance checks of the session, by number, on a virtual clock.

use crate::vectors::{decode, named};
use bytes::{Bytes, BytesMut};
use cmpp::{Cmpp, CmppMsgId, CmppPdu, Session, Submit};
use sp_session::{
    Event, Header, Meaning, OwnLogin, SessionOptions, SpCloseReason, SpProtocol as _, SpRequestError,
};
use std::time::{Duration, Instant};

const T: Duration = Duration::from_secs(60);
const C: Duration = Duration::from_secs(180);

fn login(version: u8) -> CmppPdu {
    Cmpp::login(&OwnLogin {
        name: b"901234",
        secret: b"1234",
        timestamp: 708_090_713,
        version,
        unpadded: false,
    })
}

fn submit(text: &str) -> CmppPdu {
    CmppPdu::Submit(Box::new(Submit {
        part: (1, 1),
        destinations: vec![Bytes::from_static(b"13800138000")],
        content: Bytes::copy_from_slice(text.as_bytes()),
        ..Submit::default()
    }))
}

fn encoded(pdu: &CmppPdu, sequence: u32, version: u8) -> Vec<u8> {
    let mut out = BytesMut::new();
    pdu.encode(version, sequence, &mut out).unwrap();
    out.to_vec()
}

/// The PDUs in the output, with their sequence ids.
fn written(session: &mut Session, version: u8) -> Vec<(u32, CmppPdu)> {
    let mut out = session.output().split();
    let mut pdus = Vec::new();
    while let Some(header) = Header::peek(&out) {
        let pdu = out.split_to(header.length as usize);
        pdus.push((header.sequence, decode(version, &pdu)));
    }
    assert!(out.is_empty());
    pdus
}

/// A gateway's end, after the login.
pub(crate) fn logged_in_gateway(now: Instant, options: SessionOptions, version: u8) -> Session {
    let mut session = Session::gateway(now, options);
    session.receive(now, &encoded(&login(version), 1, version));
    let Some(Event::Login(pdu)) = session.poll_event() else { panic!("no login") };
    let Meaning::Login(login) = Cmpp::meaning(&pdu) else { panic!("no login") };
    session.accept_login(now, &Cmpp::login_answer(0, &login, version, b"1234"), version);
    session.output().clear();
    session
}

/// An SP's end, after the login.
fn logged_in_sp(now: Instant, options: SessionOptions) -> Session {
    let mut session = Session::sp(now, options, 0x30, &login(0x30));
    session.output().clear();
    session.receive(now, &named(0x30, "3.0 CONNECT_RESP, Status 0"));
    assert!(matches!(session.poll_event(), Some(Event::LoggedIn(_))));
    session
}

fn events(session: &mut Session) -> Vec<Event<Cmpp>> {
    std::iter::from_fn(|| session.poll_event()).collect()
}

#[test]
fn check_21_the_login_of_the_vectors_is_written_and_answered() {
    let now = Instant::now();
    for (version, connect, answer) in [
        (0x20, "2.0 CONNECT (39)", "2.0 CONNECT_RESP, Status 0"),
        (0x30, "3.0 CONNECT (39)", "3.0 CONNECT_RESP, Status 0"),
    ] {
        let connect = named(version, connect.trim_end_matches(" (39)"));
        let mut sp = Session::sp(now, SessionOptions::default(), version, &login(version));
        assert_eq!(sp.output().to_vec(), connect);
        let mut gateway = Session::gateway(now, SessionOptions::default());
        gateway.receive(now, &connect);
        let Some(Event::Login(pdu)) = gateway.poll_event() else { panic!("no login") };
        let Meaning::Login(login) = Cmpp::meaning(&pdu) else { panic!("no login") };
        assert!(Cmpp::AUTHENTICATOR.verify(login.authenticator, &login.name, b"1234", login.timestamp));
        gateway.accept_login(now, &Cmpp::login_answer(0, &login, version, b"1234"), version);
        assert_eq!(gateway.output().to_vec(), named(version, answer));
        sp.receive(now, &named(version, answer));
        let Some(Event::LoggedIn(answer)) = sp.poll_event() else { panic!("not logged in") };
        assert!(Cmpp::proves_secret(&answer, &pdu, b"1234") && !Cmpp::proves_secret(&answer, &pdu, b"123"));
        assert_eq!((sp.version(), gateway.version()), (version, version));
    }
}

#[test]
fn check_04_06_impossible_lengths_and_unknown_commands_close() {
    let now = Instant::now();
    for (length, command) in [(0_u32, 4_u32), (11, 4), (8193, 4), (u32::MAX, 4), (12, 3), (12, 0x1234_5678)] {
        let mut session = logged_in_gateway(now, SessionOptions::default(), 0x20);
        session.receive(now, &[length.to_be_bytes(), command.to_be_bytes(), [0, 0, 0, 1]].concat());
        let events = events(&mut session);
        assert!(matches!(events[..], [Event::Closing(SpCloseReason::Malformed(_))]), "{length} {events:?}");
        assert!(session.output().is_empty());
    }
}

#[test]
fn check_05_a_command_without_its_body_closes() {
    let now = Instant::now();
    for command in [4_u32, 6, 7, 9, 1 << 31 | 5] {
        let mut session = logged_in_gateway(now, SessionOptions::default(), 0x20);
        session.receive(now, &[12_u32.to_be_bytes(), command.to_be_bytes(), [0, 0, 0, 1]].concat());
        assert!(
            matches!(events(&mut session)[..], [Event::Closing(SpCloseReason::Malformed(_))]),
            "{command}"
        );
    }
}

#[test]
fn check_29_30_a_request_before_the_login_closes_and_a_second_login_does_not() {
    let now = Instant::now();
    let mut session = Session::gateway(now, SessionOptions::default());
    session.receive(now, &named(0x20, "2.0 SUBMIT s1"));
    assert_eq!(events(&mut session), [Event::Closing(SpCloseReason::RequestBeforeLogin)]);
    let mut session = logged_in_gateway(now, SessionOptions::default(), 0x30);
    session.receive(now, &encoded(&login(0x30), 7, 0x30));
    let answers = written(&mut session, 0x30);
    let [(7, CmppPdu::ConnectAnswer(answer))] = &answers[..] else { panic!("{answers:?}") };
    assert_eq!((answer.status, session.is_logged_in()), (5, true));
    assert!(events(&mut session).is_empty());
}

#[test]
fn check_33_only_status_0_is_a_login() {
    let now = Instant::now();
    for status in [1_u32, 6, 200, 0x0100_0000] {
        let mut session = Session::sp(now, SessionOptions::default(), 0x30, &login(0x30));
        let answer = cmpp::ConnectAnswer { status, authenticator: [0; 16], version: 0x30 };
        session.receive(now, &encoded(&CmppPdu::ConnectAnswer(answer), 1, 0x30));
        let events = events(&mut session);
        let [Event::LoginRefused(_), Event::Closing(SpCloseReason::Refused(said))] = events[..] else {
            panic!("{events:?}")
        };
        assert_eq!(said, status);
    }
}

#[test]
fn check_36_the_window_is_never_exceeded() {
    let now = Instant::now();
    for window in [1, 16, 100] {
        let mut session =
            logged_in_sp(now, SessionOptions { window_out: window, ..SessionOptions::default() });
        for token in 0..window as u64 {
            session.send(now, token, &submit("x")).unwrap();
        }
        assert_eq!(session.send(now, 1000, &submit("x")), Err(SpRequestError::WindowFull));
        assert_eq!((session.in_flight(), session.window_free()), (window, 0));
        // Link tests are answered all the same.
        session.output().clear();
        session.receive(now, &encoded(&CmppPdu::ActiveTest, 77, 0x30));
        assert_eq!(written(&mut session, 0x30), [(77, CmppPdu::ActiveTestAnswer)], "check 44");
    }
}

#[test]
fn check_37_a_peer_with_a_larger_window_is_answered() {
    let now = Instant::now();
    let options = SessionOptions { window_in: 4, ..SessionOptions::default() };
    let mut session = logged_in_gateway(now, options, 0x20);
    let stream: Vec<u8> = (1..=9).flat_map(|sequence| encoded(&submit("x"), sequence, 0x20)).collect();
    session.receive(now, &stream);
    let mut answered = 0;
    while let Some(event) = session.poll_event() {
        let Event::Request { sequence, .. } = event else { panic!("{event:?}") };
        assert!(session.unanswered_in() <= 4);
        session.respond(sequence, &Cmpp::submit_answer(&[0; 8], 0), true);
        session.process(now);
        answered += 1;
    }
    assert_eq!((answered, written(&mut session, 0x20).len()), (9, 9));
}

#[test]
fn check_38_40_answers_match_in_any_order_and_once() {
    let now = Instant::now();
    let mut session = logged_in_sp(now, SessionOptions::default());
    for token in 0..3 {
        session.send(now, token, &submit("x")).unwrap();
    }
    let sequences: Vec<u32> = written(&mut session, 0x30).into_iter().map(|(sequence, _)| sequence).collect();
    for sequence in sequences.iter().rev() {
        session.receive(now, &encoded(&Cmpp::submit_answer(&[1; 8], 0), *sequence, 0x30));
    }
    let tokens: Vec<u64> = events(&mut session)
        .iter()
        .map(|event| match event {
            Event::Answer { token, late: false, .. } => *token,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(tokens, [2, 1, 0]);
    session.receive(now, &encoded(&Cmpp::submit_answer(&[1; 8], 0), sequences[0], 0x30));
    assert_eq!(events(&mut session), [Event::UnexpectedAnswer { sequence: sequences[0] }]);
}

#[test]
fn check_39_an_unanswered_request_is_sent_three_times_and_given_up() {
    let start = Instant::now();
    let mut session =
        logged_in_sp(start, SessionOptions { idle: Duration::ZERO, ..SessionOptions::default() });
    session.send(start, 5, &submit("x")).unwrap();
    let first = session.output().split().to_vec();
    for round in 1..3 {
        assert_eq!(session.deadline(), Some(start + T * round));
        session.on_timeout(start + T * round);
        assert_eq!(session.output().split().to_vec(), first, "the same octets");
        assert!(events(&mut session).is_empty());
    }
    session.on_timeout(start + T * 3);
    assert_eq!(events(&mut session), [Event::Unanswered { token: 5 }]);
    assert!(session.output().is_empty() && session.deadline().is_none());
    // A late answer is reported as late.
    let sequence = Header::peek(&first).unwrap().sequence;
    session.receive(start + T * 4, &encoded(&Cmpp::submit_answer(&[1; 8], 0), sequence, 0x30));
    assert!(matches!(events(&mut session)[..], [Event::Answer { token: 5, late: true, .. }]));
}

#[test]
fn check_41_a_repeated_request_gets_the_same_answer_and_is_handled_once() {
    let now = Instant::now();
    let mut session = logged_in_gateway(now, SessionOptions::default(), 0x20);
    let request = encoded(&submit("once"), 42, 0x20);
    // Twice before the answer, once after it.
    session.receive(now, &[&request[..], &request].concat());
    assert_eq!(events(&mut session).len(), 1);
    let answer = Cmpp::submit_answer(&CmppMsgId(7).octets(), 0);
    session.respond(42, &answer, true);
    session.receive(now, &request);
    assert!(events(&mut session).is_empty());
    let is = (42, CmppPdu::SubmitAnswer { id: CmppMsgId(7), result: 0 });
    assert_eq!(written(&mut session, 0x20), [is.clone(), is.clone(), is]);
    // Another body with the same sequence id.
    session.receive(now, &encoded(&submit("another"), 42, 0x20));
    assert_eq!(written(&mut session, 0x20), [(42, CmppPdu::SubmitAnswer { id: CmppMsgId(0), result: 3 })]);
    // A temporary refusal is not remembered.
    session.receive(now, &encoded(&submit("later"), 43, 0x20));
    assert_eq!(events(&mut session).len(), 1);
    session.respond(43, &Cmpp::submit_answer(&[], 8), false);
    session.receive(now, &encoded(&submit("later"), 43, 0x20));
    assert_eq!(events(&mut session).len(), 1, "a new request");
}

#[test]
fn check_42_after_a_cut_all_unanswered_requests_are_reported() {
    let now = Instant::now();
    let mut session = logged_in_sp(now, SessionOptions::default());
    for token in 0..16 {
        session.send(now, token, &submit("x")).unwrap();
    }
    assert_eq!(session.close(), (0..16).collect::<Vec<u64>>());
}

#[test]
fn check_43_a_silent_peer_is_cut_after_three_link_tests() {
    let start = Instant::now();
    let mut session = logged_in_sp(start, SessionOptions::default());
    assert_eq!(session.deadline(), Some(start + C));
    for round in 0..3 {
        session.on_timeout(start + C + T * round);
        assert!(matches!(written(&mut session, 0x30)[..], [(_, CmppPdu::ActiveTest)]), "{round}");
        assert!(events(&mut session).is_empty());
    }
    session.on_timeout(start + C + T * 3);
    assert_eq!(events(&mut session), [Event::Closing(SpCloseReason::Dead)]);
    // Any PDU is a sign of life.
    let mut session = logged_in_sp(start, SessionOptions::default());
    session.on_timeout(start + C);
    session.output().clear();
    session.receive(start + C + T, &encoded(&CmppPdu::ActiveTest, 9, 0x30));
    assert_eq!(session.deadline(), Some(start + C + T + C));
}

#[test]
fn check_45_the_peers_sequence_ids_may_start_again_at_0() {
    let now = Instant::now();
    let mut session = logged_in_gateway(now, SessionOptions::default(), 0x20);
    for sequence in [0xFFFF_FFFF, 0] {
        session.receive(now, &encoded(&submit("x"), sequence, 0x20));
        session.respond(sequence, &Cmpp::submit_answer(&[1; 8], 0), true);
    }
    assert_eq!(events(&mut session).len(), 2);
    assert_eq!(written(&mut session, 0x20).len(), 2);
}

#[test]
fn check_49_a_logout_waits_for_what_is_open_on_both_sides() {
    let now = Instant::now();
    let mut session = logged_in_gateway(now, SessionOptions::default(), 0x20);
    session.receive(now, &encoded(&submit("x"), 1, 0x20));
    session.send(now, 9, &decode(0x20, &named(0x20, "2.0 DELIVER, MO"))).unwrap();
    session.receive(now, &encoded(&CmppPdu::Terminate, 2, 0x20));
    assert_eq!(session.window_free(), 0, "nothing more is sent");
    assert_eq!(events(&mut session).len(), 1);
    session.respond(1, &Cmpp::submit_answer(&[1; 8], 0), true);
    assert!(!session.is_closed(), "our Deliver is unanswered");
    let sequence = written(&mut session, 0x20)[0].0;
    session.receive(now, &encoded(&Cmpp::deliver_answer(&[1; 8], 0), sequence, 0x20));
    assert_eq!(written(&mut session, 0x20), [(2, CmppPdu::TerminateAnswer)]);
    let ended = events(&mut session);
    assert!(
        matches!(ended[..], [Event::Answer { .. }, Event::Closing(SpCloseReason::PeerLoggedOut)]),
        "{ended:?}"
    );
    // Both ends at once.
    let mut session = logged_in_sp(now, SessionOptions::default());
    session.logout(now);
    session.receive(now, &encoded(&CmppPdu::Terminate, 5, 0x30));
    let answers = written(&mut session, 0x30);
    assert_eq!(answers[1], (5, CmppPdu::TerminateAnswer));
    session.receive(now, &encoded(&CmppPdu::TerminateAnswer, answers[0].0, 0x30));
    assert_eq!(events(&mut session), [Event::Closing(SpCloseReason::LoggedOut)]);
}

#[test]
fn h4_a_gateway_that_answers_a_lower_version_decides() {
    let now = Instant::now();
    let mut session = Session::sp(now, SessionOptions::default(), 0x30, &login(0x30));
    session.output().clear();
    session.receive(now, &named(0x20, "2.0 CONNECT_RESP, Status 0"));
    assert_eq!(session.version(), 0x20);
    events(&mut session);
    session.send(now, 1, &submit("x")).unwrap();
    assert_eq!(session.output().len(), 138 + 21 + 1);
    // A version higher than offered is the gateway's own highest version.
    let mut session = Session::sp(now, SessionOptions::default(), 0x20, &login(0x20));
    session.receive(now, &named(0x30, "3.0 CONNECT_RESP, Status 0"));
    assert_eq!(session.version(), 0x20);
}

#[test]
fn a_request_with_wrong_counts_is_answered_and_the_connection_stays() {
    let now = Instant::now();
    let mut session = logged_in_gateway(now, SessionOptions::default(), 0x20);
    let mut request = named(0x20, "2.0 SUBMIT s1");
    request[128] = 0;
    session.receive(now, &request);
    let sequence = Header::peek(&request).unwrap().sequence;
    assert_eq!(
        written(&mut session, 0x20),
        [(sequence, CmppPdu::SubmitAnswer { id: CmppMsgId(0), result: 1 })]
    );
    assert!(session.is_logged_in() && events(&mut session).is_empty());
}
