//! Measures the time of codec and session for one message.
//!
//! `cargo run --release -p smpp --example speed` prints nanoseconds per operation, the best of seven rounds.
#![allow(clippy::print_stdout, reason = "printing is what it is for")]

use bytes::{Bytes, BytesMut};
use smpp::{
    BindMode, CommandId, CommandStatus, Event, HEADER_LENGTH, Header, InterfaceVersion, Request, Response,
    Session, Sm, SmppOptions, Tlvs, decode_request, encode_request, encode_response, tag,
};
use std::hint::black_box;
use std::time::Instant;

const ROUNDS: u32 = 200_000;

fn best(what: &str, mut turn: impl FnMut()) {
    let mut best = f64::MAX;
    for _ in 0..7 {
        let start = Instant::now();
        for _ in 0..ROUNDS {
            turn();
        }
        best = best.min(start.elapsed().as_secs_f64() * 1e9 / f64::from(ROUNDS));
    }
    println!("{what:<58} {best:8.1} ns");
}

fn message(tlvs: Tlvs) -> Request {
    Request::SubmitSm(Sm {
        source: model::Address::new(5, 0, b"SWITCHYARD"),
        destination: model::Address::international("8613012345678"),
        registered_delivery: 1,
        short_message: Bytes::from(vec![b'x'; 120]),
        tlvs,
        ..Sm::default()
    })
}

fn encoded(request: &Request) -> Bytes {
    let mut out = BytesMut::new();
    encode_request(&mut out, 7, request);
    out.freeze()
}

fn main() {
    let tlvs = Tlvs::default()
        .with(tag::USER_MESSAGE_REFERENCE, &[0, 7])
        .with(tag::SOURCE_PORT, &[1, 2])
        .with(0x1401, b"vendor");
    for (name, request) in [("no TLVs", message(Tlvs::default())), ("3 TLVs", message(tlvs))] {
        let pdu = encoded(&request);
        let mut input = BytesMut::new();
        best(&format!("cut out and decode submit_sm of {} octets, {name}", pdu.len()), || {
            if input.is_empty() {
                input = BytesMut::with_capacity(65_536);
                while input.len() + pdu.len() < 65_536 {
                    input.extend_from_slice(&pdu);
                }
            }
            let mut frame = input.split_to(pdu.len()).freeze();
            let header = Header::decode(&frame).unwrap_or_else(|| unreachable!());
            let body = frame.split_off(HEADER_LENGTH);
            let _ = black_box(decode_request(header.command, body));
        });
        let mut out = BytesMut::with_capacity(65_536);
        best(&format!("encode the same, {name}"), || {
            if out.len() > 60_000 {
                out.clear();
            }
            encode_request(&mut out, 7, black_box(&request));
        });
    }
    let response = Response::id(Bytes::from_static(b"1000000042"));
    let mut out = BytesMut::with_capacity(65_536);
    best("encode submit_sm_resp", || {
        if out.len() > 60_000 {
            out.clear();
        }
        encode_response(
            &mut out,
            CommandId::SUBMIT_SM.response(),
            CommandStatus::ROK,
            7,
            black_box(&response),
        );
    });

    let now = Instant::now();
    let mut server = bound_server(now);
    let pdu = encoded(&message(Tlvs::default()));
    let segment: Vec<u8> = pdu.repeat(32);
    best("server session, 32 submit_sm in a segment, answered", || {
        server.receive(now, &segment);
        while let Some(event) = server.poll_event() {
            if let Event::Request { sequence, request } = event {
                server.respond(request.command(), sequence, CommandStatus::ROK, &response);
            }
        }
        server.output().clear();
    });
    println!("(the last line is for 32 messages)");
}

fn bound_server(now: Instant) -> Session {
    let mut server = Session::server(now, SmppOptions::default());
    let bind = smpp::Bind {
        mode: BindMode::Transceiver,
        system_id: Bytes::from_static(b"esme1"),
        password: Bytes::from_static(b"secret"),
        system_type: Bytes::new(),
        interface_version: 0x34,
        addr_ton: 0,
        addr_npi: 0,
        address_range: Bytes::new(),
    };
    server.receive(now, &encoded(&Request::Bind(bind)));
    while server.poll_event().is_some() {}
    server.accept_bind(now, InterfaceVersion::V34);
    server.output().clear();
    server
}
