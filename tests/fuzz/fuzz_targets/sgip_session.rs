//! An SGIP session whose peer, owner and clock do anything: it never panics, answers every command at most once, writes
//! whole PDUs only, and keeps its limits.
#![no_main]

use arbitrary::Arbitrary;
use bytes::BytesMut;
use libfuzzer_sys::fuzz_target;
use sgip::{
    Bind, Command, Deliver, Event, HEADER_LENGTH, Header, LoginType, Options, Pdu, Report, RequestError,
    ResultCode, Role, Sequence, Session, Submit,
};
use std::collections::HashMap;
use std::time::{Duration, Instant};

const WINDOW: usize = 4;
const LIMIT: u32 = 2_000;
/// The piece in which an owner reads.
const PIECE: usize = 97;

/// What happens next.
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
    /// A command that is in order.
    Good {
        kind: u8,
        sequence: u8,
    },
    /// An answer that is in order.
    Answered {
        command: u8,
        sequence: u8,
        result: u8,
    },
    /// The owner answers one of the commands that it has.
    Answer {
        which: u8,
        result: u8,
    },
    /// The owner answers a command that it does not have, or no longer.
    AnswerAgain {
        number: u8,
    },
    /// The owner sends.
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
    /// The peer reads what we wrote.
    Read,
}

#[derive(Arbitrary, Debug)]
struct Life<'a> {
    acceptor: bool,
    loose: bool,
    idle: bool,
    tries: u8,
    steps: Vec<Step<'a>>,
}

fn sequence(counter: u8) -> Sequence {
    // A few, so that they meet; some differ in the time alone.
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

struct World {
    session: Session,
    role: Role,
    now: Instant,
    window_in: usize,
    /// Commands that the owner has not answered.
    asked: Vec<u64>,
    /// How many the owner was given.
    given: u64,
    /// Tokens of ours that have no answer yet, in the order in which they were sent.
    open: Vec<u64>,
    given_up: Vec<u64>,
    next_token: u64,
    /// Commands other than logins that the peer may have completed, by sequence: at most as many answers may go out.
    heard: HashMap<(u32, Sequence), usize>,
    /// What the peer sent and has not been seen as a PDU yet, for counting.
    stream: BytesMut,
    answered: HashMap<(u32, Sequence), usize>,
    closed: bool,
}

impl World {
    fn new(life: &Life<'_>) -> Self {
        let now = Instant::now();
        let options = Options {
            window_out: WINDOW,
            window_in: WINDOW,
            tries: u32::from(life.tries % 4),
            idle: if life.idle { Duration::from_secs(60) } else { Duration::ZERO },
            limit: LIMIT,
            loose_match: life.loose,
            accepts: vec![
                Command::Submit,
                Command::Deliver,
                Command::Report,
                Command::UserReport,
                Command::Trace,
            ],
            ..Options::default()
        };
        let session = if life.acceptor {
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
            asked: Vec::new(),
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
            Step::Octets(octets) => self.hear(octets),
            Step::Pdu { command, answer, sequence: counter, body } => {
                let command = Command::ALL[usize::from(*command) % Command::ALL.len()];
                let id = if *answer { command.answer_id() } else { command.id() };
                let length = u32::try_from(HEADER_LENGTH + body.len()).unwrap_or(u32::MAX);
                let sequence = sequence(*counter).octets();
                let pdu = [&length.to_be_bytes()[..], &id.to_be_bytes(), &sequence, body].concat();
                self.hear(&pdu);
            }
            Step::Good { kind, sequence: counter } => self.hear(&good(*kind).to_bytes(sequence(*counter))),
            Step::Answered { command, sequence: counter, result } => {
                let pdu = match good(*command) {
                    Pdu::Bind(_) => Pdu::answer(Command::Bind, ResultCode(*result)),
                    Pdu::Unbind => Pdu::UnbindAnswer,
                    _ => Pdu::answer(Command::Submit, ResultCode(*result)),
                };
                self.hear(&pdu.to_bytes(sequence(*counter)));
            }
            Step::Answer { which, result } => {
                if !self.asked.is_empty() {
                    let number = self.asked.remove(usize::from(*which) % self.asked.len());
                    self.session.respond(number, ResultCode(*result));
                    self.session.process(self.now);
                }
            }
            Step::AnswerAgain { number } => {
                let number = u64::from(*number);
                if !self.asked.contains(&number) {
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
        self.listen();
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
            Err(RequestError::NotBound) => assert!(!self.session.is_bound()),
            Err(RequestError::WindowFull) => assert_eq!((free, self.open.len()), (0, WINDOW)),
            Err(RequestError::SequenceInUse) => assert!(!self.open.is_empty()),
        }
    }

    fn wait(&mut self, seconds: u16) {
        self.now += Duration::from_secs(seconds.into());
        // Giving up the last command may make idleness due; nothing goes on for longer than that.
        for _ in 0..2 {
            self.session.on_timeout(self.now);
        }
        if let Some(deadline) = self.session.deadline() {
            assert!(deadline > self.now, "what is due was not done");
        }
    }

    /// Gives the session what the peer sent, if it wants it, as an owner does.
    fn hear(&mut self, octets: &[u8]) {
        for piece in octets.chunks(PIECE) {
            if self.session.wants_input() {
                self.count(piece);
                self.session.receive(self.now, piece);
                self.listen();
            }
        }
    }

    /// Counts the commands in what the peer sent, by a reading of our own.
    fn count(&mut self, piece: &[u8]) {
        self.stream.extend_from_slice(piece);
        while let Some(header) = Header::peek(&self.stream) {
            let length = header.length as usize;
            if length < HEADER_LENGTH || self.stream.len() < length {
                break;
            }
            let _ = self.stream.split_to(length);
            if let Some((command, false)) = Command::of(header.command) {
                *self.heard.entry((command.answer_id(), header.sequence)).or_default() += 1;
            }
        }
    }

    fn listen(&mut self) {
        while let Some(event) = self.session.poll_event() {
            assert!(!self.closed, "an event after the end: {event:?}");
            match event {
                Event::Command { number, pdu, .. } => {
                    assert_eq!(number, self.given, "numbers are given one after the other");
                    assert_eq!(pdu.fault(), None, "a faulty command reached the owner");
                    self.given += 1;
                    self.asked.push(number);
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
                    self.asked.clear();
                }
                Event::Bind(_) => assert_eq!(self.role, Role::Acceptor),
                Event::Bound | Event::BindRefused(_) => assert_eq!(self.role, Role::Connector),
                Event::Unasked(_) => {}
            }
        }
    }

    fn check(&mut self) {
        assert_eq!(self.session.in_flight(), self.open.len());
        assert!(self.open.len() <= WINDOW);
        assert_eq!(self.session.owed(), self.asked.len());
        assert!(self.asked.len() <= self.window_in.max(8), "more commands than the window holds");
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

    /// Everything that was written is whole PDUs, and no command has more than one answer.
    fn read(&mut self) {
        let mut output = std::mem::take(self.session.output());
        while let Some(header) = Header::peek(&output) {
            let length = header.length as usize;
            assert!(length >= HEADER_LENGTH && length <= output.len(), "we wrote {header:?}");
            let pdu = output.split_to(length);
            let read = Pdu::decode(header.command, &pdu[HEADER_LENGTH..]);
            assert!(read.is_ok(), "we wrote {read:?}");
            let (_, is_answer) = Command::of(header.command).expect("we wrote an unknown command");
            if is_answer {
                let key = (header.command, header.sequence);
                let answers = self.answered.entry(key).or_default();
                *answers += 1;
                let asked = self.heard.get(&key).copied().unwrap_or(0);
                assert!(*answers <= asked, "{answers} answers to {asked} commands {key:?}");
            }
        }
        assert!(output.is_empty(), "a piece of a PDU was written");
    }
}

fuzz_target!(|life: Life<'_>| {
    let mut world = World::new(&life);
    world.listen();
    for step in &life.steps {
        world.step(step);
    }
    world.read();
    assert_eq!(world.session.close(), world.open, "what was not answered, in the order in which it was sent");
});
