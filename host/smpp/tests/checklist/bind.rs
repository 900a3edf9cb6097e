//! B. Bind.

use crate::harness::{Bench, a_bind, answer, client_options, options, pdu, raw, submit};
use crate::vectors::*;
use bytes::Bytes;
use smpp::{
    BindMode, ClientOptions, CloseReason, CommandId, Event, Outbind, Request, RequestError, Response,
    SessionState, Status, Tlvs, Version, tag,
};

const MODES: [BindMode; 3] = [BindMode::Receiver, BindMode::Transmitter, BindMode::Transceiver];

#[test]
fn check_021_a_good_bind() {
    let mut bench = Bench::server(options());
    bench.take(&hex(V01));
    let events = bench.events();
    let [Event::Bind(bind)] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!((bind.system_id.as_ref(), bind.password.as_ref()), (&b"esme1"[..], &b"secret"[..]));
    bench.session.accept_bind(bench.now, Version(bind.interface_version));
    assert_eq!(bench.written()[0].raw, hex(V02));
    assert_eq!(
        bench.session.state(),
        SessionState::Bound { mode: BindMode::Transceiver, version: Version::V34 }
    );
}

#[test]
fn check_022_023_034_a_refused_bind_is_a_header_and_the_end() {
    for status in [Status::RINVPASWD, Status::RINVSYSID, Status::RBINDFAIL, Status::RALYBND] {
        let mut bench = Bench::server(options());
        bench.take(&hex(V01));
        bench.events();
        bench.session.refuse_bind(status);
        assert_eq!(bench.written()[0].raw, raw(0x8000_0009, status.0, 1, &[]));
        assert!(matches!(bench.events().as_slice(), [Event::Closing(CloseReason::Refused)]));
    }
}

#[test]
fn check_024_the_answer_has_the_id_of_the_request() {
    for mode in MODES {
        let mut bench = Bench::server(options());
        bench.take(&pdu(9, &Request::Bind(a_bind(mode))));
        bench.events();
        bench.session.accept_bind(bench.now, Version::V34);
        assert_eq!(bench.heads(), [(mode.command().response(), Status::ROK, 9)]);
        assert_eq!(bench.session.bound_as(), Some(mode));
    }
}

#[test]
fn check_025_a_second_bind_changes_nothing() {
    let mut bench = Bench::bound_server(BindMode::Receiver, options());
    bench.take(&hex(V01));
    assert_eq!(bench.heads(), [(CommandId::BIND_TRANSCEIVER.response(), Status::RALYBND, 1)]);
    assert_eq!(bench.session.bound_as(), Some(BindMode::Receiver));
    bench.is_in_step();
}

#[test]
fn check_026_submit_before_the_bind() {
    let mut bench = Bench::server(options());
    bench.take(&hex(V04));
    assert_eq!(bench.written()[0].raw, raw(0x8000_0004, 4, 2, &[]));
    assert!(!bench.is_closed());
    bench.take(&hex(V01));
    assert!(bench.events().iter().any(|event| matches!(event, Event::Bind(_))));
}

#[test]
fn check_027_enquire_link_before_the_bind() {
    Bench::server(options()).is_in_step();
    let mut bench = Bench::client(client_options(BindMode::Transceiver));
    bench.written();
    bench.is_in_step();
}

#[test]
fn check_028_no_bind() {
    let mut bench = Bench::server(options());
    bench.wait(options().init_timeout);
    assert!(matches!(bench.events().as_slice(), [Event::Closing(CloseReason::NoBind)]));
    // Other traffic is no bind.
    let mut bench = Bench::server(options());
    bench.wait(options().init_timeout / 2);
    bench.is_in_step();
    bench.wait(options().init_timeout / 2);
    assert!(bench.is_closed());
}

#[test]
fn check_029_no_tlvs_for_3_3() {
    let mut bench = Bench::bound_server_to(BindMode::Transceiver, options(), Version(0x33));
    let mut sm = crate::harness::hello();
    sm.tlvs = Tlvs::default().with(tag::MESSAGE_STATE, &[2]);
    bench.session.request(bench.now, 1, &Request::DeliverSm(sm.clone())).unwrap();
    sm.tlvs = Tlvs::default();
    assert_eq!(bench.written()[0].raw, pdu(1, &Request::DeliverSm(sm.clone())));

    bench.take(&submit(7));
    bench.events();
    let tlvs = Tlvs::default().with(tag::CONGESTION_STATE, &[5]);
    let response = Response::MessageId { id: Bytes::from_static(b"1"), tlvs };
    bench.session.respond(CommandId::SUBMIT_SM, 7, Status::ROK, &response);
    assert_eq!(bench.written()[0].body.as_ref(), b"1\0");

    // A payload that a short_message can hold goes there; another is not sent at all.
    sm.short_message = Bytes::new();
    sm.tlvs = Tlvs::default().with(tag::MESSAGE_PAYLOAD, b"Hello");
    bench.session.request(bench.now, 2, &Request::DeliverSm(sm.clone())).unwrap();
    assert_eq!(bench.written()[0].raw, pdu(2, &Request::DeliverSm(crate::harness::hello())));
    sm.tlvs = Tlvs::default().with(tag::MESSAGE_PAYLOAD, &[b'x'; 255]);
    bench.session.request(bench.now, 3, &Request::DeliverSm(sm)).unwrap();
    assert!(bench.written().is_empty());
    let events = bench.events();
    assert!(
        matches!(events.as_slice(), [Event::Answer { token: 3, status: Status::RINVMSGLEN, .. }]),
        "{events:?}"
    );
    assert_eq!(
        bench.session.request(bench.now, 4, &Request::DataSm(smpp::DataSm::default())),
        Err(RequestError::WrongState)
    );
}

#[test]
fn check_029_the_bind_answer_shows_no_tlv_to_3_3() {
    let mut bench = Bench::server(options());
    bench.take(&pdu(1, &Request::Bind(smpp::Bind { interface_version: 0x33, ..a_bind(BindMode::Receiver) })));
    bench.events();
    bench.session.accept_bind(bench.now, Version(0x33));
    assert_eq!(bench.written()[0].body.as_ref(), b"SMSC\0");
    // The version outlives the bound state.
    bench.take(&hex(V11));
    assert_eq!(bench.session.version(), Version::V34, "after the end nothing is known");
}

#[test]
fn check_030_unknown_versions_count_as_3_4() {
    for version in [0x00, 0x50, 0xFF] {
        assert!(Version(version).takes_tlvs());
        let mut bench = Bench::server(options());
        let bind = smpp::Bind { interface_version: version, ..a_bind(BindMode::Transceiver) };
        bench.take(&pdu(1, &Request::Bind(bind)));
        bench.events();
        bench.session.accept_bind(bench.now, Version(version));
        assert_eq!(bench.written()[0].body.as_ref(), b"SMSC\0\x02\x10\x00\x01\x34");
    }
    assert!(!Version(0x33).takes_tlvs());
}

#[test]
fn check_031_broken_binds_are_refused() {
    let whole = &hex(V01)[16..];
    let long_id = [&b"12345678901234567\0secret\0\0\x34\0\0\0"[..]].concat();
    let long_password = [b"e\0".to_vec(), vec![b'p'; 70], b"\0\0\x34\0\0\0".to_vec()].concat();
    let long_type = [b"e\0p\0".to_vec(), vec![b't'; 20], b"\0\x34\0\0\0".to_vec()].concat();
    let long_range = [b"e\0p\0\0\x34\0\0".to_vec(), vec![b'9'; 50], b"\0".to_vec()].concat();
    let huge = vec![b'x'; 400];
    let mut bodies: Vec<Vec<u8>> = (0..whole.len()).map(|end| whole[..end].to_vec()).collect();
    bodies.extend([long_id, long_password, long_type, long_range, huge]);
    for body in bodies {
        let mut bench = Bench::server(options());
        bench.take(&raw(9, 0, 1, &body));
        let written = bench.written();
        assert_eq!((written.len(), written[0].command), (1, CommandId::BIND_TRANSCEIVER.response()));
        assert!(
            matches!(
                written[0].status,
                Status::RINVCMDLEN
                    | Status::RINVSYSID
                    | Status::RINVPASWD
                    | Status::RINVSYSTYP
                    | Status::RBINDFAIL
            ),
            "{:?}",
            written[0].status
        );
        assert!(written[0].body.is_empty() && bench.is_closed());
    }
}

#[test]
fn check_032_a_long_password_is_read() {
    let mut bench = Bench::server(options());
    let password = Bytes::from_static(b"123456789012");
    let bind = smpp::Bind { password: password.clone(), ..a_bind(BindMode::Transceiver) };
    bench.take(&pdu(1, &Request::Bind(bind)));
    let events = bench.events();
    let [Event::Bind(bind)] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!(bind.password, password);
}

#[test]
fn check_033_tlvs_behind_a_bind_are_ignored() {
    let mut bench = Bench::server(options());
    let body = [&hex(V01)[16..], &[0x14, 0x01, 0, 2, 1, 2], &[0xFF]].concat();
    bench.take(&raw(9, 0, 1, &body));
    assert!(matches!(bench.events().as_slice(), [Event::Bind(_)]));
}

#[test]
fn check_036_the_address_range_is_read_and_nothing_more() {
    let mut bench = Bench::server(options());
    let address_range = Bytes::from_static(b"(((((a*)*)*)*)*)*$");
    let bind = smpp::Bind { address_range: address_range.clone(), ..a_bind(BindMode::Receiver) };
    bench.take(&pdu(1, &Request::Bind(bind)));
    let events = bench.events();
    assert!(matches!(events.as_slice(), [Event::Bind(bind)] if bind.address_range == address_range));
}

#[test]
fn while_a_bind_is_judged_what_comes_after_it_waits() {
    let mut bench = Bench::server(options());
    bench.take(&[hex(V01), hex(V04)].concat());
    assert!(matches!(bench.events().as_slice(), [Event::Bind(_)]));
    assert!(!bench.session.wants_input() && bench.written().is_empty());
    bench.session.accept_bind(bench.now, Version::V34);
    bench.session.process(bench.now);
    assert_eq!(bench.the_sm(), crate::harness::hello());
}

fn binding() -> Bench {
    let mut bench = Bench::client(client_options(BindMode::Transceiver));
    assert_eq!(bench.written()[0].raw, hex(V01));
    bench
}

fn is_refused(bench: &mut Bench, expected: Status) {
    let events = bench.events();
    assert!(
        matches!(
            events.as_slice(),
            [Event::BindRefused(status), Event::Closing(CloseReason::Refused)] if *status == expected
        ),
        "{events:?}"
    );
    assert!(bench.written().is_empty());
}

#[test]
fn check_037_038_a_refusal_is_told_with_its_status() {
    for status in [Status::RINVPASWD, Status::RALYBND, Status(0xABCD)] {
        let mut bench = binding();
        bench.take(&raw(0x8000_0009, status.0, 1, &[]));
        is_refused(&mut bench, status);
        // With a body, as some send it.
        let mut bench = binding();
        bench.take(&raw(0x8000_0009, status.0, 1, b"SMSC\0"));
        is_refused(&mut bench, status);
    }
}

#[test]
fn an_answer_to_another_kind_of_bind_is_none_to_ours() {
    for command in [0x8000_0001, 0x8000_0002] {
        let mut bench = binding();
        bench.take(&raw(command, 0, 1, b"SMSC\0"));
        assert_eq!(bench.session.bound_as(), None, "{command:#x}");
        bench.take(&raw(0x8000_0009, 0, 1, b"SMSC\0"));
        assert_eq!(bench.session.bound_as(), Some(BindMode::Transceiver));
    }
}

#[test]
fn check_039_040_a_bare_yes_is_a_yes() {
    for body in
        [&b""[..], b"SMSC\0", b"SMSC", b"a name of more than fifteen octets\0", b"SMSC\0\x02\x10\0\x09"]
    {
        let mut bench = binding();
        bench.take(&raw(0x8000_0009, 0, 1, body));
        let events = bench.events();
        assert!(matches!(events.as_slice(), [Event::Bound { version: None, .. }]), "{events:?}");
        assert_eq!(bench.session.bound_as(), Some(BindMode::Transceiver));
        assert_eq!(bench.session.version(), Version::V34);
    }
    let mut bench = binding();
    bench.take(&hex(V02));
    let events = bench.events();
    assert!(matches!(events.as_slice(), [Event::Bound { version: Some(Version(0x34)), .. }]), "{events:?}");
}

#[test]
fn a_client_that_binds_as_3_3_sends_no_tlvs() {
    let mut options = client_options(BindMode::Transceiver);
    options.bind.interface_version = 0x33;
    let mut bench = Bench::client(options);
    bench.written();
    bench.take(&hex(V02));
    assert_eq!(bench.session.version(), Version(0x33));
}

#[test]
fn check_041_a_bind_that_is_not_answered() {
    let mut bench = binding();
    bench.wait(options().init_timeout);
    assert!(matches!(bench.events().as_slice(), [Event::Closing(CloseReason::NoBind)]));
}

#[test]
fn check_042_a_nack_for_the_bind() {
    for sequence in [0, 1] {
        let mut bench = binding();
        bench.take(&raw(0x8000_0000, 4, sequence, &[]));
        is_refused(&mut bench, Status::RINVBNDSTS);
    }
    let mut bench = binding();
    bench.take(&raw(0x8000_0000, 0, 1, &[]));
    is_refused(&mut bench, Status::RBINDFAIL);
    // Nobody's nack, and answers of another kind, are no answer.
    let mut bench = binding();
    bench.take(&[raw(0x8000_0000, 4, 77, &[]), raw(0x8000_0004, 0, 1, b"7\0")].concat());
    assert_eq!(bench.only_notes().len(), 2);
    assert!(matches!(bench.session.state(), SessionState::Binding { .. }));
}

fn waiting_for_outbind() -> Bench {
    let password = Some(Bytes::from_static(b"pw"));
    let mut bench =
        Bench::client(ClientOptions { await_outbind: password, ..client_options(BindMode::Receiver) });
    assert!(bench.written().is_empty());
    bench
}

#[test]
fn check_043_outbind() {
    let mut bench = waiting_for_outbind();
    bench.take(&hex(V28));
    assert!(matches!(bench.events().as_slice(), [Event::Outbind(_)]));
    assert_eq!(bench.written()[0].raw, pdu(1, &Request::Bind(a_bind(BindMode::Receiver))));
    bench.take(&answer(CommandId::BIND_RECEIVER.response(), Status::ROK, 1, &Response::Empty));
    assert_eq!(bench.session.bound_as(), Some(BindMode::Receiver));
    // And the other side of it.
    let mut smsc = Bench::server(options());
    let outbind = Outbind { system_id: Bytes::from_static(b"SMSC"), password: Bytes::from_static(b"pw") };
    smsc.session.outbind(outbind.clone()).unwrap();
    assert_eq!(smsc.written()[0].raw[16..], hex(V28)[16..]);
    let mut bound = Bench::bound_server(BindMode::Receiver, options());
    assert_eq!(bound.session.outbind(outbind), Err(RequestError::WrongState));
}

#[test]
fn check_044_outbinds_that_nobody_asked_for() {
    let mut bench = waiting_for_outbind();
    bench.take(&raw(0x0B, 0, 1, b"SMSC\0wrong\0"));
    assert!(bench.written().is_empty() && bench.is_closed());
    for mut bench in [binding(), Bench::server(options()), Bench::bound_server(BindMode::Receiver, options())]
    {
        bench.take(&hex(V28));
        assert_eq!(bench.only_notes().len(), 1);
        bench.is_in_step();
    }
}

#[test]
fn check_045_a_deliver_sm_right_behind_the_bind_answer() {
    let mut bench = binding();
    bench.take(&[hex(V02), hex(V07)].concat());
    let events = bench.events();
    assert!(
        matches!(
            events.as_slice(),
            [Event::Bound { .. }, Event::Request { sequence: 7, request: Request::DeliverSm(_) }]
        ),
        "{events:?}"
    );
}

#[test]
fn a_bind_that_comes_to_a_client_is_refused() {
    let mut bench = Bench::bound_client(BindMode::Transceiver, options());
    bench.take(&hex(V01));
    assert_eq!(bench.heads(), [(CommandId::BIND_TRANSCEIVER.response(), Status::RINVBNDSTS, 1)]);
    bench.is_in_step();
}
