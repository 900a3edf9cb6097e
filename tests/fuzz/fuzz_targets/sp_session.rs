//! A CMPP or SMGP session with an arbitrary peer, owner and clock: it never panics, answers no request more often than
//! it arrived, writes only whole PDUs, and respects its windows.
#![no_main]

use arbitrary::Arbitrary;
use bytes::{Bytes, BytesMut};
use cmpp::Cmpp;
use libfuzzer_sys::fuzz_target;
use smgp::Smgp;
use sp_session::{
    Content, Event, HEADER_LENGTH, Header, Meaning, OwnLogin, PduRole, Session, SessionOptions, SpProtocol,
    SpRequestError, Submission,
};
use std::collections::HashMap;
use std::time::{Duration, Instant};

const WINDOW: usize = 4;
const VERSION: u8 = 0x30;

/// The next step.
#[derive(Arbitrary, Debug)]
enum Step<'a> {
    /// Octets from the peer.
    Octets(&'a [u8]),
    /// A whole PDU from the peer, of any kind.
    Pdu {
        command: u8,
        answer: bool,
        sequence: u8,
        body: &'a [u8],
    },
    /// A valid request or answer.
    Good {
        kind: u8,
        sequence: u8,
    },
    /// The owner answers one of its open requests.
    Answer {
        which: u8,
        status: u8,
        remember: bool,
    },
    /// The owner sends a request.
    Send,
    Accept,
    Refuse {
        status: u8,
    },
    Logout,
    Test,
    Wait {
        seconds: u16,
    },
}

#[derive(Arbitrary, Debug)]
struct SessionScript<'a> {
    smgp: bool,
    gateway: bool,
    tries: u8,
    steps: Vec<Step<'a>>,
}

fn submit<P: SpProtocol>() -> P::Pdu {
    P::submit(&Submission {
        destinations: vec![Bytes::from_static(b"13800138000")],
        content: Content { octets: Bytes::from_static(b"hello"), ..Content::default() },
        ..Submission::default()
    })
}

fn login<P: SpProtocol>() -> P::Pdu {
    let request =
        OwnLogin { name: b"901234", secret: b"1234", timestamp: 1, version: VERSION, unpadded: false };
    P::login(&request)
}

fn login_answer<P: SpProtocol>(status: u32) -> P::Pdu {
    let Meaning::Login(login) = P::meaning(&login::<P>()) else { unreachable!("a login") };
    P::login_answer(status, &login, VERSION, b"1234")
}

struct Harness<P: SpProtocol> {
    session: Session<P>,
    now: Instant,
    unanswered: Vec<u32>,
    open: Vec<u64>,
    given_up: Vec<u64>,
    next_token: u64,
    /// Requests that the peer has completed, by answer and sequence id: an upper bound for the answers.
    heard: HashMap<(u32, u32), usize>,
    stream: BytesMut,
    answered: HashMap<(u32, u32), usize>,
    closed: bool,
}

impl<P: SpProtocol> Harness<P> {
    fn new(script: &SessionScript<'_>) -> Self {
        let now = Instant::now();
        let options = SessionOptions {
            window_out: WINDOW,
            window_in: WINDOW,
            tries: u32::from(script.tries % 4),
            limit: 2_000,
            ..SessionOptions::default()
        };
        let session = if script.gateway {
            Session::gateway(now, options)
        } else {
            Session::sp(now, options, VERSION, &login::<P>())
        };
        Self {
            session,
            now,
            unanswered: Vec::new(),
            open: Vec::new(),
            given_up: Vec::new(),
            next_token: 0,
            heard: HashMap::new(),
            stream: BytesMut::new(),
            answered: HashMap::new(),
            closed: false,
        }
    }

    fn step(&mut self, step: &Step<'_>) {
        match step {
            Step::Octets(octets) => self.receive(octets),
            Step::Pdu { command, answer, sequence, body } => {
                let command = u32::from(command % 12) | if *answer { 1 << 31 } else { 0 };
                let length = u32::try_from(HEADER_LENGTH + body.len()).unwrap_or(u32::MAX);
                let head = [length, command, u32::from(sequence % 8)].map(u32::to_be_bytes).concat();
                self.receive(&[&head[..], body].concat());
            }
            Step::Good { kind, sequence } => {
                let pdu = match kind % 8 {
                    0 => login::<P>(),
                    1 => login_answer::<P>(0),
                    2 => login_answer::<P>(3),
                    3 => submit::<P>(),
                    4 => P::submit_answer(&[1; 10][..P::ID_LENGTH], 0),
                    5 => P::link_test(sequence & 1 == 1),
                    _ => P::logout(sequence & 1 == 1),
                };
                let mut octets = BytesMut::new();
                let version = self.session.version();
                if P::encode(&pdu, version, u32::from(sequence % 8), &mut octets).is_ok() {
                    self.receive(&octets);
                }
            }
            Step::Answer { which, status, remember } => {
                if !self.unanswered.is_empty() {
                    let sequence = self.unanswered.remove(usize::from(*which) % self.unanswered.len());
                    self.session.refuse(sequence, u32::from(*status), *remember);
                    self.session.process(self.now);
                }
            }
            Step::Send => self.send(),
            Step::Accept => {
                self.session.accept_login(self.now, &login_answer::<P>(0), VERSION);
            }
            Step::Refuse { status } => {
                let status = u32::from(*status).max(1);
                self.session.refuse_login(&login_answer::<P>(status), VERSION, status);
            }
            Step::Logout => self.session.logout(self.now),
            Step::Test => self.session.test_link(self.now),
            Step::Wait { seconds } => {
                self.now += Duration::from_secs(u64::from(*seconds % 400));
                if self.session.deadline().is_some_and(|at| at <= self.now) {
                    self.session.on_timeout(self.now);
                }
            }
        }
        self.handle_events();
        self.read();
        self.check();
    }

    fn send(&mut self) {
        let (free, token) = (self.session.window_free(), self.next_token);
        match self.session.send(self.now, token, &submit::<P>()) {
            Ok(()) => {
                assert!(free > 0, "sent over a full window");
                self.open.push(token);
                self.next_token += 1;
            }
            Err(SpRequestError::NotLoggedIn | SpRequestError::WindowFull) => assert_eq!(free, 0),
            Err(SpRequestError::Unencodable(error)) => panic!("{error}"),
        }
    }

    fn receive(&mut self, octets: &[u8]) {
        for piece in octets.chunks(97) {
            if self.session.wants_input() {
                self.count(piece);
                self.session.receive(self.now, piece);
                self.handle_events();
            }
        }
    }

    /// Counts the requests in the peer's octets, with an independent parser.
    fn count(&mut self, piece: &[u8]) {
        self.stream.extend_from_slice(piece);
        while let Some(header) = Header::peek(&self.stream) {
            let length = header.length as usize;
            if length < HEADER_LENGTH || self.stream.len() < length {
                break;
            }
            let _ = self.stream.split_to(length);
            if header.command & 1 << 31 == 0 {
                *self.heard.entry((header.command | 1 << 31, header.sequence)).or_default() += 1;
            }
        }
    }

    fn handle_events(&mut self) {
        while let Some(event) = self.session.poll_event() {
            assert!(!self.closed, "an event after the end: {event:?}");
            match event {
                Event::Request { sequence, pdu } => {
                    assert_eq!(P::role(&pdu), PduRole::Request);
                    assert!(!self.unanswered.contains(&sequence), "one sequence id, two requests");
                    self.unanswered.push(sequence);
                }
                Event::Answer { token, late, .. } => {
                    let list = if late { &mut self.given_up } else { &mut self.open };
                    let at = list.iter().position(|open| *open == token).expect("an answer too many");
                    list.remove(at);
                }
                Event::Unanswered { token } => {
                    let at = self.open.iter().position(|open| *open == token).expect("given up twice");
                    self.open.remove(at);
                    self.given_up.push(token);
                }
                Event::Closing(_) => {
                    self.closed = true;
                    self.unanswered.clear();
                }
                Event::Login(_)
                | Event::LoggedIn(_)
                | Event::LoginRefused(_)
                | Event::UnexpectedAnswer { .. } => {}
            }
        }
    }

    /// Whole PDUs only, and no more answers than requests.
    fn read(&mut self) {
        let mut out = self.session.output().split();
        while let Some(header) = Header::peek(&out) {
            let pdu = out.split_to(header.length as usize);
            assert!(pdu.len() >= HEADER_LENGTH);
            if header.command & 1 << 31 != 0 {
                let key = (header.command, header.sequence);
                let count = self.answered.entry(key).or_default();
                *count += 1;
                assert!(*count <= self.heard.get(&key).copied().unwrap_or(0), "answered too often");
            }
        }
        assert!(out.is_empty(), "a part of a PDU was written");
    }

    fn check(&self) {
        assert_eq!(
            self.session.in_flight(),
            if self.closed { self.session.in_flight() } else { self.open.len() }
        );
        assert!(self.session.in_flight() <= WINDOW);
        if !self.closed {
            assert_eq!(self.session.unanswered_in(), self.unanswered.len());
        }
        assert!(self.unanswered.len() <= WINDOW);
        assert_eq!(self.session.is_closed(), self.closed, "closed without an event");
    }
}

fn run<P: SpProtocol>(script: &SessionScript<'_>) {
    let mut harness = Harness::<P>::new(script);
    harness.read();
    for step in &script.steps {
        harness.step(step);
    }
    let mut pending = harness.session.close();
    pending.sort_unstable();
    harness.open.sort_unstable();
    assert_eq!(pending, harness.open);
}

fuzz_target!(|script: SessionScript<'_>| {
    if script.smgp {
        run::<Smgp>(&script);
    } else {
        run::<Cmpp>(&script);
    }
});
