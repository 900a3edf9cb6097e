//! Streams split anywhere, with garbage inside the PDUs: the session keeps parsing them.

use crate::properties::generate::{Flavour, request};
use bytes::{Bytes, BytesMut};
use proptest::collection::vec;
use proptest::prelude::*;
use smpp::{
    Bind, BindMode, CommandId, CommandStatus, Event, InterfaceVersion, PduFrame, Request, Response, Session,
    SmppClientOptions, SmppOptions, encode_request,
};
use std::time::Instant;

fn bind() -> Bind {
    Bind {
        mode: BindMode::Transceiver,
        system_id: Bytes::from_static(b"esme"),
        password: Bytes::new(),
        system_type: Bytes::new(),
        interface_version: 0x34,
        addr_ton: 0,
        addr_npi: 0,
        address_range: Bytes::new(),
    }
}

fn encoded(sequence: u32, request: &Request) -> BytesMut {
    let mut out = BytesMut::new();
    encode_request(&mut out, sequence, request);
    out
}

fn bound(server: bool, now: Instant) -> Session {
    let options = SmppOptions { window_in: 1_000_000, backlog: usize::MAX, ..SmppOptions::default() };
    let mut session = if server {
        let mut session = Session::server(now, options);
        session.receive(now, &encoded(1, &Request::Bind(bind())));
        session.accept_bind(now, InterfaceVersion::V34);
        session
    } else {
        let mut session =
            Session::client(now, SmppClientOptions { options, bind: bind(), await_outbind: None });
        session.receive(now, b"\0\0\0\x10\x80\0\0\x09\0\0\0\0\0\0\0\x01");
        session
    };
    assert!(session.bound_as().is_some());
    while session.poll_event().is_some() {}
    session.output().clear();
    session
}

/// A PDU of any command but those that end the session, with any body.
fn rubbish() -> impl Strategy<Value = Vec<u8>> {
    let command = prop_oneof![
        (1..=0x22_u32).prop_filter("unbind ends it", |command| *command != 6),
        0x100..0x120_u32,
        any::<u32>().prop_filter("no unbind", |command| command & 0x7FFF_FFFF != 6),
    ];
    (command, any::<u32>(), any::<u32>(), vec(any::<u8>(), 0..200)).prop_map(
        |(command, status, sequence, body)| {
            let mut pdu = Vec::new();
            for word in [16 + body.len() as u32, command, status, sequence] {
                pdu.extend(word.to_be_bytes());
            }
            pdu.extend(body);
            pdu
        },
    )
}

fn good() -> impl Strategy<Value = Vec<u8>> {
    (
        request(Flavour::Anything).prop_filter("it goes on", |request| *request != Request::Unbind),
        any::<u32>(),
    )
        .prop_map(|(request, sequence)| encoded(sequence, &request).to_vec())
}

proptest! {
    #[test]
    fn a_session_matches_every_response_to_its_request(
        server in any::<bool>(),
        pdus in vec(prop_oneof![rubbish(), good()], 1..12),
        cuts in vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let now = Instant::now();
        let mut session = bound(server, now);
        let mut stream = pdus.concat();
        stream.extend(encoded(0xE0E0, &Request::EnquireLink));
        let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len())).collect();
        at.extend([0, stream.len()]);
        at.sort_unstable();
        let mut answered = 0;
        let mut asked = 0;
        for pair in at.windows(2) {
            session.receive(now, &stream[pair[0]..pair[1]]);
            while let Some(event) = session.poll_event() {
                prop_assert!(!matches!(event, Event::Closing(_)));
                if let Event::Request { sequence, request } = event {
                    asked += 1;
                    session.respond(request.command(), sequence, CommandStatus::ROK, &Response::Empty);
                }
            }
        }
        // All output is complete PDUs, and the enquire_link at the end of the stream is answered in sixteen octets.
        let mut output = std::mem::take(session.output());
        let mut in_step = false;
        while let PduFrame::Complete(header, body) = PduFrame::cut(&mut output, u32::MAX) {
            prop_assert!(header.command.is_response());
            answered += usize::from(header.command != CommandId::GENERIC_NACK);
            let enquiry = header.command == CommandId::ENQUIRE_LINK.response() && header.sequence == 0xE0E0;
            in_step |= enquiry && body.is_empty();
        }
        prop_assert!(output.is_empty());
        prop_assert!(answered > asked);
        prop_assert!(in_step);
        prop_assert_eq!(session.unanswered_in(), 0);
        prop_assert!(session.input().is_empty());
    }

    /// Check 19 with few inputs: garbage from the first octet on. The fuzz targets try many more.
    #[test]
    fn check_019_any_octets_in_any_split(
        server in any::<bool>(),
        pieces in vec(vec(any::<u8>(), 0..64), 0..20),
    ) {
        let now = Instant::now();
        let mut session = bound(server, now);
        for piece in pieces {
            if session.wants_input() {
                session.receive(now, &piece);
            }
            while session.poll_event().is_some() {}
            prop_assert!(session.input().len() <= 66_000);
        }
    }
}
