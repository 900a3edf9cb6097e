//! An SMPP session with an arbitrary peer, owner and clock: it never panics, never loses synchronisation and respects its limits.
#![no_main]

use arbitrary::Arbitrary;
use bytes::{Bytes, BytesMut};
use libfuzzer_sys::fuzz_target;
use smpp::{
    Bind, BindMode, CommandId, CommandStatus, Event, InterfaceVersion, PduFrame, Request, Response, Session,
    SessionState, Sm, SmppClientOptions, SmppOptions, Tlvs, WindowFullPolicy, encode_request, tag,
};
use std::time::{Duration, Instant};

const WINDOW: usize = 4;
const BACKLOG: usize = 500;
const LIMIT: u32 = 2_000;

/// The next step.
#[derive(Arbitrary, Debug)]
enum Step<'a> {
    /// Octets from the peer.
    Octets(&'a [u8]),
    /// A whole PDU from the peer, of any kind.
    Pdu {
        command: u8,
        status: u8,
        sequence: u8,
        body: &'a [u8],
    },
    /// A valid submit_sm or deliver_sm.
    Sm {
        deliver: bool,
        sequence: u8,
    },
    /// The owner answers one of its open requests.
    Answer {
        which: u8,
        status: u8,
    },
    /// The owner sends a request.
    Ask {
        deliver: bool,
        long: bool,
    },
    Accept {
        version: u8,
    },
    Refuse,
    Unbind,
    Wait {
        seconds: u16,
    },
    /// The peer reads our output.
    Read,
}

#[derive(Arbitrary, Debug)]
struct SessionScript<'a> {
    server: bool,
    mode: u8,
    throttle: bool,
    outbind: bool,
    steps: Vec<Step<'a>>,
}

const COMMANDS: [u32; 24] = [
    1,
    2,
    3,
    4,
    5,
    6,
    7,
    8,
    9,
    0x0B,
    0x15,
    0x21,
    0x99,
    0x102,
    0x103,
    0x111,
    0x8000_0000,
    0x8000_0001,
    0x8000_0004,
    0x8000_0005,
    0x8000_0006,
    0x8000_0009,
    0x8000_0015,
    0x8000_0103,
];

fn mode(octet: u8) -> BindMode {
    match octet % 3 {
        0 => BindMode::Receiver,
        1 => BindMode::Transmitter,
        _ => BindMode::Transceiver,
    }
}

fn sm() -> Sm {
    Sm {
        destination: model::Address::international("8613012345678"),
        short_message: Bytes::from_static(b"Hello"),
        tlvs: Tlvs::default().with(tag::USER_MESSAGE_REFERENCE, &[0, 1]),
        ..Sm::default()
    }
}

struct Harness {
    session: Session,
    now: Instant,
    /// Requests that the owner has not answered.
    unanswered: Vec<(u32, CommandId)>,
    /// Our unanswered tokens.
    open: Vec<u64>,
    given_up: Vec<u64>,
    next_token: u64,
    closed: bool,
}

impl Harness {
    fn new(script: &SessionScript<'_>) -> Self {
        let now = Instant::now();
        let options = SmppOptions {
            window_in: WINDOW,
            window_out: WINDOW,
            backlog: BACKLOG,
            limit_after_bind: LIMIT,
            window_full_policy: if script.throttle {
                WindowFullPolicy::Throttle
            } else {
                WindowFullPolicy::Wait
            },
            ..SmppOptions::default()
        };
        let bind = Bind {
            mode: mode(script.mode),
            system_id: Bytes::from_static(b"esme"),
            password: Bytes::from_static(b"secret"),
            system_type: Bytes::new(),
            interface_version: 0x34,
            addr_ton: 0,
            addr_npi: 0,
            address_range: Bytes::new(),
        };
        let await_outbind = script.outbind.then(|| Bytes::from_static(b"pw"));
        let session = if script.server {
            Session::server(now, options)
        } else {
            Session::client(now, SmppClientOptions { options, bind, await_outbind })
        };
        Self {
            session,
            now,
            unanswered: Vec::new(),
            open: Vec::new(),
            given_up: Vec::new(),
            next_token: 0,
            closed: false,
        }
    }

    fn step(&mut self, step: &Step<'_>) {
        match step {
            Step::Octets(octets) => self.receive(octets),
            Step::Pdu { command, status, sequence, body } => {
                let command = COMMANDS[usize::from(*command) % COMMANDS.len()];
                let mut pdu = Vec::new();
                for word in [16 + body.len() as u32, command, (*status).into(), (*sequence).into()] {
                    pdu.extend(word.to_be_bytes());
                }
                pdu.extend(*body);
                self.receive(&pdu);
            }
            Step::Sm { deliver, sequence } => {
                let request = if *deliver { Request::DeliverSm(sm()) } else { Request::SubmitSm(sm()) };
                let mut pdu = BytesMut::new();
                encode_request(&mut pdu, (*sequence).into(), &request);
                self.receive(&pdu);
            }
            Step::Answer { which, status } => {
                if !self.unanswered.is_empty() {
                    let (sequence, command) =
                        self.unanswered.remove(usize::from(*which) % self.unanswered.len());
                    let response = Response::id(Bytes::from_static(b"1000000042"));
                    self.session.respond(command, sequence, CommandStatus((*status).into()), &response);
                    self.session.process(self.now);
                }
            }
            Step::Ask { deliver, long } => {
                let mut sm = sm();
                if *long {
                    sm.short_message = Bytes::from_static(&[b'x'; 300]);
                }
                let request = if *deliver { Request::DeliverSm(sm) } else { Request::SubmitSm(sm) };
                let token = self.next_token;
                if self.session.request(self.now, token, &request).is_ok() {
                    self.next_token += 1;
                    self.open.push(token);
                }
            }
            Step::Accept { version } => {
                self.session.accept_bind(self.now, InterfaceVersion(*version));
                self.session.process(self.now);
            }
            Step::Refuse => self.session.refuse_bind(CommandStatus::RINVPASWD),
            Step::Unbind => self.session.unbind(self.now),
            Step::Wait { seconds } => {
                self.now += Duration::from_secs((*seconds).into());
                self.session.on_timeout(self.now);
                if let Some(deadline) = self.session.deadline() {
                    assert!(deadline > self.now, "what is due was not done");
                }
            }
            Step::Read => self.read(),
        }
        self.handle_events();
        self.check();
    }

    /// Passes the peer's octets to the session if it wants them, like an owner.
    fn receive(&mut self, octets: &[u8]) {
        for piece in octets.chunks(97) {
            if self.session.wants_input() {
                self.session.receive(self.now, piece);
                self.handle_events();
            }
        }
    }

    fn handle_events(&mut self) {
        while let Some(event) = self.session.poll_event() {
            assert!(!self.closed, "an event after the end: {event:?}");
            match event {
                Event::Request { sequence, request } => self.unanswered.push((sequence, request.command())),
                Event::Answer { token, late, .. } => {
                    let list = if late { &mut self.given_up } else { &mut self.open };
                    let at = list.iter().position(|open| *open == token).expect("an answer too many");
                    list.swap_remove(at);
                }
                Event::Unanswered { token } => {
                    let at = self.open.iter().position(|open| *open == token).expect("given up twice");
                    self.open.swap_remove(at);
                    self.given_up.push(token);
                }
                Event::Closing(_) => self.closed = true,
                _ => {}
            }
        }
    }

    fn check(&mut self) {
        assert_eq!(self.session.in_flight(), self.open.len());
        assert!(self.session.in_flight() <= WINDOW);
        assert!(self.unanswered.len() <= WINDOW, "more requests than the window holds");
        assert_eq!(self.session.unanswered_in(), self.unanswered.len());
        assert_eq!(matches!(self.session.state(), SessionState::Closed(_)), self.closed);
        assert!(self.session.input().len() <= LIMIT as usize, "the input grows");
        if self.closed {
            assert!(self.session.input().is_empty() && self.session.deadline().is_none());
        }
    }

    /// Everything written is whole PDUs.
    fn read(&mut self) {
        let mut output = std::mem::take(self.session.output());
        loop {
            match PduFrame::cut(&mut output, 1 << 20) {
                PduFrame::Complete(header, body) => {
                    assert!(header.status.is_ok() || body.is_empty(), "a refusal with a body");
                    if header.command == CommandId::ENQUIRE_LINK.response() {
                        assert!(body.is_empty());
                    }
                }
                PduFrame::Incomplete => break,
                PduFrame::InvalidLength(header) => panic!("we wrote {header:?}"),
            }
        }
        assert!(output.is_empty());
    }
}

fuzz_target!(|script: SessionScript<'_>| {
    let mut harness = Harness::new(&script);
    harness.handle_events();
    for step in &script.steps {
        harness.step(step);
    }
    harness.read();
    let mut left = harness.session.close();
    left.sort_unstable();
    harness.open.sort_unstable();
    assert_eq!(left, harness.open);
});
