//! The conformance checks of a connection, by number, without a network.

use sgip::{
    Bind, Deliver, Event, LoginType, Pdu, Report, ResultCode, Sequence, Session, SgipCloseReason,
    SgipCommand, SgipOptions, SgipRequestError, Submit,
};
use std::time::{Duration, Instant};

struct Pair {
    now: Instant,
    sp: Session,
    gateway: Session,
}

fn sequence(counter: u32) -> Sequence {
    Sequence { node: 3_010_012_345, time: 1_120_203_225, counter }
}

fn submit(text: &'static str) -> Pdu {
    Pdu::Submit(Submit {
        sp_number: "10655".into(),
        users: vec!["8613012345678".into()],
        content: text.into(),
        ..Submit::default()
    })
}

fn login() -> Bind {
    Bind { login_type: LoginType::SP, name: "fakename".into(), password: "1234".into(), reserve: [0; 8] }
}

fn serving() -> SgipOptions {
    SgipOptions {
        accepts: vec![SgipCommand::Submit],
        idle: Duration::from_secs(60),
        ..SgipOptions::default()
    }
}

fn acceptor() -> (Instant, Session) {
    let now = Instant::now();
    (now, Session::acceptor(now, serving()))
}

impl Pair {
    fn new(options: SgipOptions) -> Self {
        let now = Instant::now();
        let mut pair = Self {
            now,
            sp: Session::connector(now, options, &login(), sequence(1)),
            gateway: Session::acceptor(now, serving()),
        };
        pair.carry();
        let Some(Event::Bind(bind)) = pair.gateway.poll_event() else { panic!() };
        assert_eq!(bind, login());
        pair.gateway.accept_bind(now);
        pair.carry();
        assert_eq!(pair.sp.poll_event(), Some(Event::Bound));
        pair
    }

    fn carry(&mut self) {
        let out = self.sp.output().split();
        self.gateway.receive(self.now, &out);
        let out = self.gateway.output().split();
        self.sp.receive(self.now, &out);
    }

    fn wait(&mut self, seconds: u64) {
        self.now += Duration::from_secs(seconds);
        self.sp.on_timeout(self.now);
        self.gateway.on_timeout(self.now);
    }

    /// The number of the next command that the gateway received.
    fn command(&mut self) -> (u64, Sequence) {
        match self.gateway.poll_event() {
            Some(Event::Command { number, sequence, .. }) => (number, sequence),
            other => panic!("{other:?}"),
        }
    }
}

fn closing(session: &mut Session) -> SgipCloseReason {
    loop {
        match session.poll_event() {
            Some(Event::Closing(reason)) => return reason,
            Some(_) => {}
            None => panic!("the session goes on"),
        }
    }
}

#[test]
fn check_01_octet_by_octet_and_two_in_one() {
    let mut octets = Pdu::Bind(login()).to_bytes(sequence(1)).to_vec();
    octets.extend_from_slice(&submit("one").to_bytes(sequence(2)));
    octets.extend_from_slice(&submit("two").to_bytes(sequence(3)));
    for size in [1, 7, octets.len()] {
        let (now, mut session) = acceptor();
        let mut seen = Vec::new();
        for chunk in octets.chunks(size) {
            session.receive(now, chunk);
            while let Some(event) = session.poll_event() {
                match event {
                    Event::Bind(_) => session.accept_bind(now),
                    Event::Command { sequence, .. } => seen.push(sequence),
                    other => panic!("{other:?}"),
                }
            }
        }
        assert_eq!(seen, [sequence(2), sequence(3)]);
    }
}

#[test]
fn check_02_impossible_lengths_close_without_an_answer() {
    for length in [0_u32, 19, 4097, u32::MAX] {
        let (now, mut session) = acceptor();
        let mut octets = length.to_be_bytes().to_vec();
        octets.extend_from_slice(&[0; 16]);
        session.receive(now, &octets);
        assert!(matches!(closing(&mut session), SgipCloseReason::Malformed(_)), "{length}");
        assert!(session.output().is_empty());
    }
}

#[test]
fn check_03_a_body_that_is_not_as_long_as_it_says_closes_and_no_users_are_an_error() {
    let whole = submit("text").to_bytes(sequence(2));
    for change in [-1_i64, 1] {
        let mut pair = Pair::new(SgipOptions::default());
        let mut octets = whole.to_vec();
        let length = u32::try_from(octets.len() as i64 + change).unwrap();
        octets.resize(length as usize, 0);
        octets[..4].copy_from_slice(&length.to_be_bytes());
        pair.gateway.receive(pair.now, &octets);
        assert!(matches!(closing(&mut pair.gateway), SgipCloseReason::Malformed(_)), "{change}");
    }
    let mut pair = Pair::new(SgipOptions::default());
    let nobody = Pdu::Submit(Submit { content: "text".into(), ..Submit::default() });
    pair.sp.send(pair.now, 7, sequence(2), &nobody).unwrap();
    pair.carry();
    assert_eq!(pair.sp.poll_event(), Some(Event::Answer { token: 7, result: ResultCode(5), late: false }));
    assert!(pair.gateway.is_bound());
}

#[test]
fn check_04_a_hundred_users_are_taken() {
    let mut pair = Pair::new(SgipOptions::default());
    let users = (0..100).map(|n| format!("86130123456{n:02}").into()).collect();
    let many = Pdu::Submit(Submit { users, content: "text".into(), ..Submit::default() });
    assert!(many.length() > 2243);
    pair.sp.send(pair.now, 1, sequence(2), &many).unwrap();
    pair.carry();
    pair.command();
}

#[test]
fn check_06_unknown_commands_close_and_known_ones_of_the_other_role_are_refused() {
    let mut pair = Pair::new(SgipOptions::default());
    for pdu in
        [Pdu::Deliver(Deliver { user: "86130".into(), ..Deliver::default() }), Pdu::Report(Report::default())]
    {
        pair.sp.send(pair.now, 1, sequence(2), &pdu).unwrap();
        pair.carry();
        let answer = pair.sp.poll_event();
        assert_eq!(answer, Some(Event::Answer { token: 1, result: ResultCode::MESSAGE_ID, late: false }));
    }
    assert!(pair.gateway.is_bound());
    let mut unknown = submit("text").to_bytes(sequence(3)).to_vec();
    unknown[7] = 0x77;
    pair.gateway.receive(pair.now, &unknown);
    assert!(matches!(closing(&mut pair.gateway), SgipCloseReason::Malformed(_)));
}

#[test]
fn check_07_an_unexpected_answer_is_ignored() {
    let mut pair = Pair::new(SgipOptions::default());
    let answer = Pdu::answer(SgipCommand::Submit, ResultCode::OK).to_bytes(sequence(99));
    pair.sp.receive(pair.now, &answer);
    assert_eq!(pair.sp.poll_event(), Some(Event::UnexpectedAnswer(sequence(99))));
    assert!(pair.sp.is_bound());
}

#[test]
fn check_08_logins() {
    let mut pair = Pair::new(SgipOptions::default());
    // A second login on one connection.
    pair.gateway.receive(pair.now, &Pdu::Bind(login()).to_bytes(sequence(9)));
    let answer = pair.gateway.output().split();
    assert_eq!(
        answer[..],
        Pdu::answer(SgipCommand::Bind, ResultCode::REPEATED_LOGIN).to_bytes(sequence(9))[..]
    );
    assert!(pair.gateway.is_bound());
    // Refused, with the owner's code.
    for code in [ResultCode::LOGIN, ResultCode::LOGIN_TYPE, ResultCode::CONNECTIONS] {
        let now = Instant::now();
        let mut sp = Session::connector(now, SgipOptions::default(), &login(), sequence(1));
        let mut gateway = Session::acceptor(now, serving());
        gateway.receive(now, &sp.output().split());
        assert!(matches!(gateway.poll_event(), Some(Event::Bind(_))));
        gateway.refuse_bind(code);
        assert_eq!(closing(&mut gateway), SgipCloseReason::BindRefused(code));
        sp.receive(now, &gateway.output().split());
        assert_eq!(sp.poll_event(), Some(Event::BindRefused(code)));
        assert_eq!(closing(&mut sp), SgipCloseReason::Refused(code));
    }
    // A command before the login, and no login at all.
    let (now, mut session) = acceptor();
    session.receive(now, &submit("early").to_bytes(sequence(1)));
    assert_eq!(closing(&mut session), SgipCloseReason::CommandBeforeBind);
    let (now, mut session) = acceptor();
    session.on_timeout(now + Duration::from_secs(29));
    assert_eq!(session.poll_event(), None);
    session.on_timeout(now + Duration::from_secs(30));
    assert_eq!(closing(&mut session), SgipCloseReason::NoBind);
}

#[test]
fn check_09_the_same_octets_twice_are_two_commands_with_an_answer_each() {
    let mut pair = Pair::new(SgipOptions::default());
    let octets = submit("same").to_bytes(sequence(2));
    pair.gateway.receive(pair.now, &octets);
    pair.gateway.receive(pair.now, &octets);
    let ((first, _), (second, _)) = (pair.command(), pair.command());
    pair.gateway.respond(second, ResultCode::OK);
    pair.gateway.respond(first, ResultCode::OK);
    pair.gateway.respond(first, ResultCode::OK);
    let answer = Pdu::answer(SgipCommand::Submit, ResultCode::OK).to_bytes(sequence(2));
    assert_eq!(pair.gateway.output().split()[..], [&answer[..], &answer[..]].concat());
}

#[test]
fn check_10_the_thirty_third_waits_and_answers_match_in_any_order() {
    let mut pair = Pair::new(SgipOptions::default());
    for n in 0..32 {
        pair.sp.send(pair.now, u64::from(n), sequence(100 + n), &submit("x")).unwrap();
    }
    assert_eq!(pair.sp.window_free(), 0);
    assert_eq!(pair.sp.send(pair.now, 32, sequence(132), &submit("x")), Err(SgipRequestError::WindowFull));
    pair.carry();
    let numbers: Vec<u64> = (0..32).map(|_| pair.command().0).collect();
    for number in numbers.iter().rev() {
        pair.gateway.respond(*number, ResultCode::OK);
    }
    pair.carry();
    for token in (0..32).rev() {
        let expected = Event::Answer { token, result: ResultCode::OK, late: false };
        assert_eq!(pair.sp.poll_event(), Some(expected));
    }
    assert_eq!(pair.sp.window_free(), 32);
}

#[test]
fn check_11_no_answer_sends_the_same_octets_again() {
    let mut pair = Pair::new(SgipOptions::default());
    pair.sp.send(pair.now, 5, sequence(2), &submit("again")).unwrap();
    let first = pair.sp.output().split();
    for _ in 0..2 {
        pair.wait(29);
        assert!(pair.sp.output().is_empty());
        pair.wait(1);
        assert_eq!(pair.sp.output().split(), first);
    }
    pair.wait(30);
    assert!(pair.sp.output().is_empty());
    assert_eq!(pair.sp.poll_event(), Some(Event::Unanswered { token: 5 }));
    // The late answer comes.
    pair.sp.receive(pair.now, &Pdu::answer(SgipCommand::Submit, ResultCode::OK).to_bytes(sequence(2)));
    assert_eq!(pair.sp.poll_event(), Some(Event::Answer { token: 5, result: ResultCode::OK, late: true }));
    // Closing returns the unanswered commands, in order.
    for n in 0..3 {
        pair.sp.send(pair.now, 10 + u64::from(n), sequence(50 - n), &submit("x")).unwrap();
    }
    assert_eq!(pair.sp.close(), [10, 11, 12]);
}

#[test]
fn check_13_sixty_seconds_of_silence_end_an_idle_connection() {
    let mut pair = Pair::new(SgipOptions::default());
    pair.sp.send(pair.now, 1, sequence(2), &submit("x")).unwrap();
    pair.carry();
    let (number, _) = pair.command();
    pair.wait(61);
    assert_eq!(pair.gateway.poll_event(), None, "it owes an answer");
    pair.gateway.respond(number, ResultCode::OK);
    pair.wait(1);
    assert_eq!(closing(&mut pair.gateway), SgipCloseReason::Idle);
}

#[test]
fn an_unbind_is_answered_after_all_commands() {
    let mut pair = Pair::new(SgipOptions::default());
    pair.sp.send(pair.now, 1, sequence(2), &submit("x")).unwrap();
    pair.sp.unbind(pair.now, sequence(3));
    assert_eq!(pair.sp.send(pair.now, 2, sequence(4), &submit("x")), Err(SgipRequestError::NotBound));
    pair.carry();
    let (number, _) = pair.command();
    assert!(pair.gateway.output().is_empty());
    pair.gateway.respond(number, ResultCode::OK);
    assert_eq!(closing(&mut pair.gateway), SgipCloseReason::PeerUnbound);
    pair.carry();
    assert!(matches!(pair.sp.poll_event(), Some(Event::Answer { token: 1, .. })));
    assert_eq!(closing(&mut pair.sp), SgipCloseReason::Unbound);
}

#[test]
fn a_peer_that_rebuilds_the_time_is_matched_with_loose_match() {
    for loose_match in [false, true] {
        let mut pair = Pair::new(SgipOptions { loose_match, ..SgipOptions::default() });
        pair.sp.send(pair.now, 1, sequence(2), &submit("x")).unwrap();
        let changed = Sequence { time: 1, ..sequence(2) };
        pair.sp.receive(pair.now, &Pdu::answer(SgipCommand::Submit, ResultCode::OK).to_bytes(changed));
        assert_eq!(matches!(pair.sp.poll_event(), Some(Event::Answer { .. })), loose_match);
    }
}

#[test]
fn more_than_the_window_is_not_read_until_it_is_answered() {
    let now = Instant::now();
    let mut session = Session::acceptor(now, SgipOptions { window_in: 2, ..serving() });
    session.receive(now, &Pdu::Bind(login()).to_bytes(sequence(1)));
    session.poll_event();
    session.accept_bind(now);
    for n in 0..3 {
        session.receive(now, &submit("x").to_bytes(sequence(10 + n)));
    }
    assert_eq!(session.unanswered_in(), 2);
    assert!(!session.wants_input());
    let Some(Event::Command { number, .. }) = session.poll_event() else { panic!() };
    session.respond(number, ResultCode::OK);
    session.process(now);
    assert_eq!(session.unanswered_in(), 2);
    // A PDU must be complete in time, but not while we do not read.
    session.on_timeout(now + Duration::from_secs(59));
    assert!(session.is_bound());
}
