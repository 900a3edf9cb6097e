//! An SGIP session with an arbitrary peer, owner and clock: it never panics, answers every command at most once, writes
//! only whole PDUs, and respects its limits.
#![no_main]

use arbitrary::Arbitrary;
use bytes::BytesMut;
use libfuzzer_sys::fuzz_target;
use sgip::{
    Bind, Deliver, Event, HEADER_LENGTH, Header, LoginType, Pdu, Report, ResultCode, Sequence, Session,
    SgipCommand, SgipOptions, SgipRequestError, SgipRole, Submit,
};
use std::collections::HashMap;
use std::time::{Duration, Instant};

const WINDOW: usize = 4;
const LIMIT: u32 = 2_000;
/// Chunk size of the owner's reads.
const PIECE: usize = 97;

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
    /// A valid command.
    Good {
        kind: u8,
        sequence: u8,
    },
    /// A valid answer.
    Answered {
        command: u8,
        sequence: u8,
        result: u8,
    },
    /// The owner answers one of its open commands.
    Answer {
        which: u8,
        result: u8,
    },
    /// The owner answers a command that is not open (any more).
    AnswerAgain {
        number: u8,
    },
    /// The owner sends a command.
    Send {
        sequence: u8,
    },
    Accept,
    Refuse {
        code: u8,
    },
    Unbind {
        sequence: u8,
    },
    Window {
        size: u8,
    },
    Wait {
        seconds: u16,
    },
    /// The peer reads our output.
    Read,
}

#[derive(Arbitrary, Debug)]
struct SessionScript<'a> {
    acceptor: bool,
    loose: bool,
    idle: bool,
    tries: u8,
    steps: Vec<Step<'a>>,
}

fn sequence(counter: u8) -> Sequence {
    // Few values, so that they collide; some differ only in the time.
    Sequence { node: 1, time: u32::from(counter & 1), counter: u32::from(counter >> 1 & 7) }
}

fn good(kind: u8) -> Pdu {
    match kind % 5 {
        0 => Pdu::Bind(Bind { login_type: LoginType::SP, name: "name".into(), ..Bind::default() }),
        1 => Pdu::Unbind,
        2 => Pdu::Submit(Submit { users: vec!["8613012345678".into()], ..Submit::default() }),
        3 => Pdu::Deliver(Deliver {
            user: "8613012345678".into(),
            content: "Hello".into(),
            ..Deliver::default()
        }),
        _ => Pdu::Report(Report { user: "8613012345678".into(), ..Report::default() }),
    }
}

struct Harness {
    session: Session,
    role: SgipRole,
    now: Instant,
    window_in: usize,
    /// Commands that the owner has not answered.
    unanswered: Vec<u64>,
    /// Number of commands passed to the owner.
    given: u64,
    /// Our unanswered tokens, in the order in which they were sent.
    open: Vec<u64>,
    given_up: Vec<u64>,
    next_token: u64,
    /// Commands other than logins that the peer may have completed, by sequence: an upper bound for the answers.
    heard: HashMap<(u32, Sequence), usize>,
    /// Received octets that do not form a complete PDU yet, for counting.
    stream: BytesMut,
    answered: HashMap<(u32, Sequence), usize>,
    closed: bool,
}

impl Harness {
    fn new(script: &SessionScript<'_>) -> Self {
        let now = Instant::now();
        let options = SgipOptions {
            window_out: WINDOW,
            window_in: WINDOW,
            tries: u32::from(script.tries % 4),
            idle: if script.idle { Duration::from_secs(60) } else { Duration::ZERO },
            limit: LIMIT,
            loose_match: script.loose,
            accepts: vec![
                SgipCommand::Submit,
                SgipCommand::Deliver,
                SgipCommand::Report,
                SgipCommand::UserReport,
                SgipCommand::Trace,
            ],
            ..SgipOptions::default()
        };
        let session = if script.acceptor {
            Session::acceptor(now, options)
        } else {
            let Pdu::Bind(bind) = good(0) else { unreachable!("the first is a login") };
            Session::connector(now, options, &bind, sequence(0))
        };
        Self {
            role: session.role(),
            session,
            now,
            window_in: WINDOW,
            unanswered: Vec::new(),
            given: 0,
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
            Step::Pdu { command, answer, sequence: counter, body } => {
                let command = SgipCommand::ALL[usize::from(*command) % SgipCommand::ALL.len()];
                let id = if *answer { command.answer_id() } else { command.id() };
                let length = u32::try_from(HEADER_LENGTH + body.len()).unwrap_or(u32::MAX);
                let sequence = sequence(*counter).octets();
                let pdu = [&length.to_be_bytes()[..], &id.to_be_bytes(), &sequence, body].concat();
                self.receive(&pdu);
            }
            Step::Good { kind, sequence: counter } => self.receive(&good(*kind).to_bytes(sequence(*counter))),
            Step::Answered { command, sequence: counter, result } => {
                let pdu = match good(*command) {
                    Pdu::Bind(_) => Pdu::answer(SgipCommand::Bind, ResultCode(*result)),
                    Pdu::Unbind => Pdu::UnbindAnswer,
                    _ => Pdu::answer(SgipCommand::Submit, ResultCode(*result)),
                };
                self.receive(&pdu.to_bytes(sequence(*counter)));
            }
            Step::Answer { which, result } => {
                if !self.unanswered.is_empty() {
                    let number = self.unanswered.remove(usize::from(*which) % self.unanswered.len());
                    self.session.respond(number, ResultCode(*result));
                    self.session.process(self.now);
                }
            }
            Step::AnswerAgain { number } => {
                let number = u64::from(*number);
                if !self.unanswered.contains(&number) {
                    let before = self.session.output().len();
                    self.session.respond(number, ResultCode::OK);
                    assert_eq!(self.session.output().len(), before, "answered twice");
                }
            }
            Step::Send { sequence: counter } => self.send(*counter),
            Step::Accept => {
                self.session.accept_bind(self.now);
                self.session.process(self.now);
            }
            Step::Refuse { code } => self.session.refuse_bind(ResultCode((*code).max(1))),
            Step::Unbind { sequence: counter } => self.session.unbind(self.now, sequence(*counter)),
            Step::Window { size } => {
                self.window_in = usize::from(*size % 8).max(1);
                self.session.set_window_in(usize::from(*size % 8));
                self.session.process(self.now);
            }
            Step::Wait { seconds } => self.wait(*seconds),
            Step::Read => self.read(),
        }
        self.handle_events();
        self.check();
    }

    fn send(&mut self, counter: u8) {
        let (free, token) = (self.session.window_free(), self.next_token);
        match self.session.send(self.now, token, sequence(counter), &good(2)) {
            Ok(()) => {
                assert!(free > 0);
                self.next_token += 1;
                self.open.push(token);
            }
            Err(SgipRequestError::NotBound) => assert!(!self.session.is_bound()),
            Err(SgipRequestError::WindowFull) => assert_eq!((free, self.open.len()), (0, WINDOW)),
            Err(SgipRequestError::SequenceInUse) => assert!(!self.open.is_empty()),
        }
    }

    fn wait(&mut self, seconds: u16) {
        self.now += Duration::from_secs(seconds.into());
        // Giving up the last command may make the idle timer due; all other timers are due later.
        for _ in 0..2 {
            self.session.on_timeout(self.now);
        }
        if let Some(deadline) = self.session.deadline() {
            assert!(deadline > self.now, "what is due was not done");
        }
    }

    /// Passes the peer's octets to the session if it wants them, like an owner.
    fn receive(&mut self, octets: &[u8]) {
        for piece in octets.chunks(PIECE) {
            if self.session.wants_input() {
                self.count(piece);
                self.session.receive(self.now, piece);
                self.handle_events();
            }
        }
    }

    /// Counts the commands in the peer's octets, with an independent parser.
    fn count(&mut self, piece: &[u8]) {
        self.stream.extend_from_slice(piece);
        while let Some(header) = Header::peek(&self.stream) {
            let length = header.length as usize;
            if length < HEADER_LENGTH || self.stream.len() < length {
                break;
            }
            let _ = self.stream.split_to(length);
            if let Some((command, false)) = SgipCommand::of(header.command) {
                *self.heard.entry((command.answer_id(), header.sequence)).or_default() += 1;
            }
        }
    }

    fn handle_events(&mut self) {
        while let Some(event) = self.session.poll_event() {
            assert!(!self.closed, "an event after the end: {event:?}");
            match event {
                Event::Command { number, pdu, .. } => {
                    assert_eq!(number, self.given, "numbers are given one after the other");
                    assert_eq!(pdu.validation_error(), None, "a faulty command reached the owner");
                    self.given += 1;
                    self.unanswered.push(number);
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
                Event::Bind(_) => assert_eq!(self.role, SgipRole::Acceptor),
                Event::Bound | Event::BindRefused(_) => assert_eq!(self.role, SgipRole::Connector),
                Event::UnexpectedAnswer(_) => {}
            }
        }
    }

    fn check(&mut self) {
        assert_eq!(self.session.in_flight(), self.open.len());
        assert!(self.open.len() <= WINDOW);
        assert_eq!(self.session.unanswered_in(), self.unanswered.len());
        assert!(self.unanswered.len() <= self.window_in.max(8), "more commands than the window holds");
        assert_eq!(
            self.session.is_closed(),
            self.closed,
            "closed, and nobody was told, or the other way round"
        );
        if self.closed {
            assert!(self.session.deadline().is_none() && !self.session.wants_input());
            assert_eq!(self.session.window_free(), 0);
        }
    }

    /// Everything written is whole PDUs, and no command has more than one answer.
    fn read(&mut self) {
        let mut output = std::mem::take(self.session.output());
        while let Some(header) = Header::peek(&output) {
            let length = header.length as usize;
            assert!(length >= HEADER_LENGTH && length <= output.len(), "we wrote {header:?}");
            let pdu = output.split_to(length);
            let read = Pdu::decode(header.command, &pdu[HEADER_LENGTH..]);
            assert!(read.is_ok(), "we wrote {read:?}");
            let (_, is_answer) = SgipCommand::of(header.command).expect("we wrote an unknown command");
            if is_answer {
                let key = (header.command, header.sequence);
                let answers = self.answered.entry(key).or_default();
                *answers += 1;
                let received = self.heard.get(&key).copied().unwrap_or(0);
                assert!(*answers <= received, "{answers} answers to {received} commands {key:?}");
            }
        }
        assert!(output.is_empty(), "a piece of a PDU was written");
    }
}

fuzz_target!(|script: SessionScript<'_>| {
    let mut harness = Harness::new(&script);
    harness.handle_events();
    for step in &script.steps {
        harness.step(step);
    }
    harness.read();
    assert_eq!(
        harness.session.close(),
        harness.open,
        "what was not answered, in the order in which it was sent"
    );
});
