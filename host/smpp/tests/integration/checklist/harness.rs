//! A session with a clock controlled by the test, and its output in readable form.

use bytes::{Bytes, BytesMut};
use smpp::{
    Bind, BindMode, CommandId, CommandStatus, Event, Header, InterfaceVersion, PduFrame, ProtocolAnomaly,
    Request, Response, Session, SessionState, Sm, SmppClientOptions, SmppOptions, encode_request,
    encode_response,
};
use std::time::{Duration, Instant};

/// A session under test.
pub(crate) struct SessionHarness {
    pub(crate) session: Session,
    pub(crate) now: Instant,
}

/// A PDU that the session wrote.
#[derive(Debug, PartialEq)]
pub(crate) struct Written {
    pub(crate) command: CommandId,
    pub(crate) status: CommandStatus,
    pub(crate) sequence: u32,
    pub(crate) body: Bytes,
    pub(crate) raw: Vec<u8>,
}

pub(crate) fn a_bind(mode: BindMode) -> Bind {
    Bind {
        mode,
        system_id: Bytes::from_static(b"esme1"),
        password: Bytes::from_static(b"secret"),
        system_type: Bytes::new(),
        interface_version: 0x34,
        addr_ton: 0,
        addr_npi: 0,
        address_range: Bytes::new(),
    }
}

pub(crate) fn options() -> SmppOptions {
    SmppOptions { system_id: Bytes::from_static(b"SMSC"), ..SmppOptions::default() }
}

pub(crate) fn client_options(mode: BindMode) -> SmppClientOptions {
    SmppClientOptions { options: options(), bind: a_bind(mode), await_outbind: None }
}

pub(crate) fn pdu(sequence: u32, request: &Request) -> Vec<u8> {
    let mut out = BytesMut::new();
    encode_request(&mut out, sequence, request);
    out.to_vec()
}

/// A response as a peer sends it.
pub(crate) fn answer(
    command: CommandId,
    status: CommandStatus,
    sequence: u32,
    response: &Response,
) -> Vec<u8> {
    let mut out = BytesMut::new();
    encode_response(&mut out, command, status, sequence, response);
    out.to_vec()
}

/// A PDU of any header and body.
pub(crate) fn raw(command: u32, status: u32, sequence: u32, body: &[u8]) -> Vec<u8> {
    let mut octets = Vec::new();
    for word in [16 + body.len() as u32, command, status, sequence] {
        octets.extend(word.to_be_bytes());
    }
    octets.extend(body);
    octets
}

pub(crate) fn hello() -> Sm {
    Sm {
        source: model::Address::new(0, 0, b"10655912345"),
        destination: model::Address::international("8613012345678"),
        registered_delivery: 1,
        short_message: Bytes::from_static(b"Hello"),
        ..Sm::default()
    }
}

pub(crate) fn submit(sequence: u32) -> Vec<u8> {
    pdu(sequence, &Request::SubmitSm(hello()))
}

impl SessionHarness {
    pub(crate) fn server(options: SmppOptions) -> Self {
        let now = Instant::now();
        Self { session: Session::server(now, options), now }
    }

    pub(crate) fn client(options: SmppClientOptions) -> Self {
        let now = Instant::now();
        Self { session: Session::client(now, options), now }
    }

    /// A bound server session with no input or output left.
    pub(crate) fn bound_server(mode: BindMode, options: SmppOptions) -> Self {
        Self::bound_server_to(mode, options, InterfaceVersion::V34)
    }

    pub(crate) fn bound_server_to(mode: BindMode, options: SmppOptions, version: InterfaceVersion) -> Self {
        let mut harness = Self::server(options);
        harness.take(&pdu(1, &Request::Bind(a_bind(mode))));
        assert!(matches!(harness.events().as_slice(), [Event::Bind(_)]));
        harness.session.accept_bind(harness.now, version);
        assert_eq!(harness.written().len(), 1);
        harness
    }

    /// A bound client session with no input or output left.
    pub(crate) fn bound_client(mode: BindMode, options: SmppOptions) -> Self {
        let mut harness = Self::client(SmppClientOptions { options, ..client_options(mode) });
        let bind = harness.written().remove(0);
        let body = Response::Bind { system_id: Bytes::from_static(b"SMSC"), tlvs: smpp::Tlvs::default() };
        harness.take(&answer(bind.command.response(), CommandStatus::ROK, bind.sequence, &body));
        assert!(matches!(harness.events().as_slice(), [Event::Bound { .. }]));
        harness
    }

    pub(crate) fn take(&mut self, octets: &[u8]) {
        self.session.receive(self.now, octets);
    }

    pub(crate) fn events(&mut self) -> Vec<Event> {
        std::iter::from_fn(|| self.session.poll_event()).collect()
    }

    /// The anomalies among the events; any other event fails the test.
    pub(crate) fn only_anomalies(&mut self) -> Vec<ProtocolAnomaly> {
        self.events()
            .into_iter()
            .map(|event| match event {
                Event::Anomaly(note) => note,
                other => panic!("not a note: {other:?}"),
            })
            .collect()
    }

    /// The requests among the events, by sequence number; anomalies and the end are skipped.
    pub(crate) fn requests(&mut self) -> Vec<(u32, Request)> {
        self.events()
            .into_iter()
            .filter_map(|event| match event {
                Event::Request { sequence, request } => Some((sequence, request)),
                Event::Anomaly(_) | Event::Closing(_) => None,
                other => panic!("not a request: {other:?}"),
            })
            .collect()
    }

    /// The one submit_sm or deliver_sm received.
    pub(crate) fn the_sm(&mut self) -> Sm {
        let mut requests = self.requests();
        assert_eq!(requests.len(), 1);
        match requests.remove(0).1 {
            Request::SubmitSm(sm) | Request::DeliverSm(sm) => sm,
            other => panic!("neither submit_sm nor deliver_sm: {other:?}"),
        }
    }

    /// Answers every request received with ROK and an id made of its number.
    pub(crate) fn answer_all(&mut self) -> usize {
        let requests = self.requests();
        for (sequence, request) in &requests {
            self.ok(*sequence, request.command());
        }
        self.session.process(self.now);
        requests.len()
    }

    pub(crate) fn ok(&mut self, sequence: u32, command: CommandId) {
        let response = Response::id(Bytes::from(format!("{sequence:010}")));
        self.session.respond(command, sequence, CommandStatus::ROK, &response);
    }

    /// The PDUs written since the last call.
    pub(crate) fn written(&mut self) -> Vec<Written> {
        let mut output = std::mem::take(self.session.output());
        let mut pdus = Vec::new();
        loop {
            let raw = output.to_vec();
            match PduFrame::cut(&mut output, u32::MAX) {
                PduFrame::Complete(Header { command, status, sequence, .. }, body) => {
                    let raw = raw[..16 + body.len()].to_vec();
                    pdus.push(Written { command, status, sequence, body, raw });
                }
                PduFrame::Incomplete => {
                    assert!(output.is_empty(), "half a PDU was written");
                    return pdus;
                }
                PduFrame::InvalidLength(header) => panic!("an impossible PDU was written: {header:?}"),
            }
        }
    }

    /// Command, status and number of the PDUs written.
    pub(crate) fn heads(&mut self) -> Vec<(CommandId, CommandStatus, u32)> {
        self.written().into_iter().map(|pdu| (pdu.command, pdu.status, pdu.sequence)).collect()
    }

    /// Advances the clock to the next deadline.
    pub(crate) fn next_deadline(&mut self) {
        self.now = self.session.deadline().expect("something is waited for");
        self.session.on_timeout(self.now);
    }

    pub(crate) fn wait(&mut self, time: Duration) {
        let until = self.now + time;
        while self.session.deadline().is_some_and(|deadline| deadline <= until) {
            self.next_deadline();
        }
        self.now = until;
    }

    pub(crate) fn is_closed(&self) -> bool {
        matches!(self.session.state(), SessionState::Closed(_))
    }

    /// Asserts that the session still parses the stream: it answers an enquire_link, and writes nothing else.
    pub(crate) fn is_in_step(&mut self) {
        assert_eq!(self.written(), [], "left over");
        self.take(&pdu(0x0E0E, &Request::EnquireLink));
        let written = self.written();
        assert_eq!(written.len(), 1);
        assert_eq!(written[0].raw, raw(0x8000_0015, 0, 0x0E0E, &[]));
    }
}
