//! B. Bind.

use crate::checklist::harness::{SessionHarness, a_bind, answer, client_options, options, pdu, raw, submit};
use crate::checklist::vectors::*;
use bytes::Bytes;
use smpp::{
    BindMode, CloseReason, CommandId, CommandStatus, Event, InterfaceVersion, Outbind, Request, RequestError,
    Response, SessionState, SmppClientOptions, Tlvs, tag,
};

const MODES: [BindMode; 3] = [BindMode::Receiver, BindMode::Transmitter, BindMode::Transceiver];

#[test]
fn check_021_a_good_bind() {
    let mut harness = SessionHarness::server(options());
    harness.take(&hex(V01));
    let events = harness.events();
    let [Event::Bind(bind)] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!((bind.system_id.as_ref(), bind.password.as_ref()), (&b"esme1"[..], &b"secret"[..]));
    harness.session.accept_bind(harness.now, InterfaceVersion(bind.interface_version));
    assert_eq!(harness.written()[0].raw, hex(V02));
    assert_eq!(
        harness.session.state(),
        SessionState::Bound { mode: BindMode::Transceiver, version: InterfaceVersion::V34 }
    );
}

#[test]
fn check_022_023_034_a_refused_bind_is_a_header_and_the_end() {
    for status in
        [CommandStatus::RINVPASWD, CommandStatus::RINVSYSID, CommandStatus::RBINDFAIL, CommandStatus::RALYBND]
    {
        let mut harness = SessionHarness::server(options());
        harness.take(&hex(V01));
        harness.events();
        harness.session.refuse_bind(status);
        assert_eq!(harness.written()[0].raw, raw(0x8000_0009, status.0, 1, &[]));
        assert!(matches!(harness.events().as_slice(), [Event::Closing(CloseReason::Refused)]));
    }
}

#[test]
fn check_024_the_answer_has_the_id_of_the_request() {
    for mode in MODES {
        let mut harness = SessionHarness::server(options());
        harness.take(&pdu(9, &Request::Bind(a_bind(mode))));
        harness.events();
        harness.session.accept_bind(harness.now, InterfaceVersion::V34);
        assert_eq!(harness.heads(), [(mode.command().response(), CommandStatus::ROK, 9)]);
        assert_eq!(harness.session.bound_as(), Some(mode));
    }
}

#[test]
fn check_025_a_second_bind_changes_nothing() {
    let mut harness = SessionHarness::bound_server(BindMode::Receiver, options());
    harness.take(&hex(V01));
    assert_eq!(harness.heads(), [(CommandId::BIND_TRANSCEIVER.response(), CommandStatus::RALYBND, 1)]);
    assert_eq!(harness.session.bound_as(), Some(BindMode::Receiver));
    harness.is_in_step();
}

#[test]
fn check_026_submit_before_the_bind() {
    let mut harness = SessionHarness::server(options());
    harness.take(&hex(V04));
    assert_eq!(harness.written()[0].raw, raw(0x8000_0004, 4, 2, &[]));
    assert!(!harness.is_closed());
    harness.take(&hex(V01));
    assert!(harness.events().iter().any(|event| matches!(event, Event::Bind(_))));
}

#[test]
fn check_027_enquire_link_before_the_bind() {
    SessionHarness::server(options()).is_in_step();
    let mut harness = SessionHarness::client(client_options(BindMode::Transceiver));
    harness.written();
    harness.is_in_step();
}

#[test]
fn check_028_no_bind() {
    let mut harness = SessionHarness::server(options());
    harness.wait(options().init_timeout);
    assert!(matches!(harness.events().as_slice(), [Event::Closing(CloseReason::NoBind)]));
    // Other commands do not count as a bind.
    let mut harness = SessionHarness::server(options());
    harness.wait(options().init_timeout / 2);
    harness.is_in_step();
    harness.wait(options().init_timeout / 2);
    assert!(harness.is_closed());
}

#[test]
fn check_029_no_tlvs_for_3_3() {
    let mut harness =
        SessionHarness::bound_server_to(BindMode::Transceiver, options(), InterfaceVersion(0x33));
    let mut sm = crate::checklist::harness::hello();
    sm.tlvs = Tlvs::default().with(tag::MESSAGE_STATE, &[2]);
    harness.session.request(harness.now, 1, &Request::DeliverSm(sm.clone())).unwrap();
    sm.tlvs = Tlvs::default();
    assert_eq!(harness.written()[0].raw, pdu(1, &Request::DeliverSm(sm.clone())));

    harness.take(&submit(7));
    harness.events();
    let tlvs = Tlvs::default().with(tag::CONGESTION_STATE, &[5]);
    let response = Response::MessageId { id: Bytes::from_static(b"1"), tlvs };
    harness.session.respond(CommandId::SUBMIT_SM, 7, CommandStatus::ROK, &response);
    assert_eq!(harness.written()[0].body.as_ref(), b"1\0");

    // A payload that fits short_message goes there; a longer one is not sent.
    sm.short_message = Bytes::new();
    sm.tlvs = Tlvs::default().with(tag::MESSAGE_PAYLOAD, b"Hello");
    harness.session.request(harness.now, 2, &Request::DeliverSm(sm.clone())).unwrap();
    assert_eq!(harness.written()[0].raw, pdu(2, &Request::DeliverSm(crate::checklist::harness::hello())));
    sm.tlvs = Tlvs::default().with(tag::MESSAGE_PAYLOAD, &[b'x'; 255]);
    harness.session.request(harness.now, 3, &Request::DeliverSm(sm)).unwrap();
    assert!(harness.written().is_empty());
    let events = harness.events();
    assert!(
        matches!(events.as_slice(), [Event::Answer { token: 3, status: CommandStatus::RINVMSGLEN, .. }]),
        "{events:?}"
    );
    assert_eq!(
        harness.session.request(harness.now, 4, &Request::DataSm(smpp::DataSm::default())),
        Err(RequestError::WrongState)
    );
}

#[test]
fn check_029_the_bind_answer_shows_no_tlv_to_3_3() {
    let mut harness = SessionHarness::server(options());
    harness
        .take(&pdu(1, &Request::Bind(smpp::Bind { interface_version: 0x33, ..a_bind(BindMode::Receiver) })));
    harness.events();
    harness.session.accept_bind(harness.now, InterfaceVersion(0x33));
    assert_eq!(harness.written()[0].body.as_ref(), b"SMSC\0");
    // The version outlives the bound state.
    harness.take(&hex(V11));
    assert_eq!(harness.session.version(), InterfaceVersion::V34, "after the end nothing is known");
}

#[test]
fn check_030_unknown_versions_count_as_3_4() {
    for version in [0x00, 0x50, 0xFF] {
        assert!(InterfaceVersion(version).takes_tlvs());
        let mut harness = SessionHarness::server(options());
        let bind = smpp::Bind { interface_version: version, ..a_bind(BindMode::Transceiver) };
        harness.take(&pdu(1, &Request::Bind(bind)));
        harness.events();
        harness.session.accept_bind(harness.now, InterfaceVersion(version));
        assert_eq!(harness.written()[0].body.as_ref(), b"SMSC\0\x02\x10\x00\x01\x34");
    }
    assert!(!InterfaceVersion(0x33).takes_tlvs());
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
        let mut harness = SessionHarness::server(options());
        harness.take(&raw(9, 0, 1, &body));
        let written = harness.written();
        assert_eq!((written.len(), written[0].command), (1, CommandId::BIND_TRANSCEIVER.response()));
        assert!(
            matches!(
                written[0].status,
                CommandStatus::RINVCMDLEN
                    | CommandStatus::RINVSYSID
                    | CommandStatus::RINVPASWD
                    | CommandStatus::RINVSYSTYP
                    | CommandStatus::RBINDFAIL
            ),
            "{:?}",
            written[0].status
        );
        assert!(written[0].body.is_empty() && harness.is_closed());
    }
}

#[test]
fn check_032_a_long_password_is_read() {
    let mut harness = SessionHarness::server(options());
    let password = Bytes::from_static(b"123456789012");
    let bind = smpp::Bind { password: password.clone(), ..a_bind(BindMode::Transceiver) };
    harness.take(&pdu(1, &Request::Bind(bind)));
    let events = harness.events();
    let [Event::Bind(bind)] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!(bind.password, password);
}

#[test]
fn check_033_tlvs_behind_a_bind_are_ignored() {
    let mut harness = SessionHarness::server(options());
    let body = [&hex(V01)[16..], &[0x14, 0x01, 0, 2, 1, 2], &[0xFF]].concat();
    harness.take(&raw(9, 0, 1, &body));
    assert!(matches!(harness.events().as_slice(), [Event::Bind(_)]));
}

#[test]
fn check_036_the_address_range_is_read_and_nothing_more() {
    let mut harness = SessionHarness::server(options());
    let address_range = Bytes::from_static(b"(((((a*)*)*)*)*)*$");
    let bind = smpp::Bind { address_range: address_range.clone(), ..a_bind(BindMode::Receiver) };
    harness.take(&pdu(1, &Request::Bind(bind)));
    let events = harness.events();
    assert!(matches!(events.as_slice(), [Event::Bind(bind)] if bind.address_range == address_range));
}

#[test]
fn input_after_a_pending_bind_waits() {
    let mut harness = SessionHarness::server(options());
    harness.take(&[hex(V01), hex(V04)].concat());
    assert!(matches!(harness.events().as_slice(), [Event::Bind(_)]));
    assert!(!harness.session.wants_input() && harness.written().is_empty());
    harness.session.accept_bind(harness.now, InterfaceVersion::V34);
    harness.session.process(harness.now);
    assert_eq!(harness.the_sm(), crate::checklist::harness::hello());
}

fn binding() -> SessionHarness {
    let mut harness = SessionHarness::client(client_options(BindMode::Transceiver));
    assert_eq!(harness.written()[0].raw, hex(V01));
    harness
}

fn is_refused(harness: &mut SessionHarness, expected: CommandStatus) {
    let events = harness.events();
    assert!(
        matches!(
            events.as_slice(),
            [Event::BindRefused(status), Event::Closing(CloseReason::Refused)] if *status == expected
        ),
        "{events:?}"
    );
    assert!(harness.written().is_empty());
}

#[test]
fn check_037_038_a_refused_bind_is_reported_with_its_status() {
    for status in [CommandStatus::RINVPASWD, CommandStatus::RALYBND, CommandStatus(0xABCD)] {
        let mut harness = binding();
        harness.take(&raw(0x8000_0009, status.0, 1, &[]));
        is_refused(&mut harness, status);
        // With a body, as some peers send it.
        let mut harness = binding();
        harness.take(&raw(0x8000_0009, status.0, 1, b"SMSC\0"));
        is_refused(&mut harness, status);
    }
}

#[test]
fn a_response_to_another_bind_command_is_ignored() {
    for command in [0x8000_0001, 0x8000_0002] {
        let mut harness = binding();
        harness.take(&raw(command, 0, 1, b"SMSC\0"));
        assert_eq!(harness.session.bound_as(), None, "{command:#x}");
        harness.take(&raw(0x8000_0009, 0, 1, b"SMSC\0"));
        assert_eq!(harness.session.bound_as(), Some(BindMode::Transceiver));
    }
}

#[test]
fn check_039_040_a_bind_response_without_body_is_accepted() {
    for body in
        [&b""[..], b"SMSC\0", b"SMSC", b"a name of more than fifteen octets\0", b"SMSC\0\x02\x10\0\x09"]
    {
        let mut harness = binding();
        harness.take(&raw(0x8000_0009, 0, 1, body));
        let events = harness.events();
        assert!(matches!(events.as_slice(), [Event::Bound { version: None, .. }]), "{events:?}");
        assert_eq!(harness.session.bound_as(), Some(BindMode::Transceiver));
        assert_eq!(harness.session.version(), InterfaceVersion::V34);
    }
    let mut harness = binding();
    harness.take(&hex(V02));
    let events = harness.events();
    assert!(
        matches!(events.as_slice(), [Event::Bound { version: Some(InterfaceVersion(0x34)), .. }]),
        "{events:?}"
    );
}

#[test]
fn a_client_that_binds_as_3_3_sends_no_tlvs() {
    let mut options = client_options(BindMode::Transceiver);
    options.bind.interface_version = 0x33;
    let mut harness = SessionHarness::client(options);
    harness.written();
    harness.take(&hex(V02));
    assert_eq!(harness.session.version(), InterfaceVersion(0x33));
}

#[test]
fn check_041_a_bind_that_is_not_answered() {
    let mut harness = binding();
    harness.wait(options().init_timeout);
    assert!(matches!(harness.events().as_slice(), [Event::Closing(CloseReason::NoBind)]));
}

#[test]
fn check_042_a_nack_for_the_bind() {
    for sequence in [0, 1] {
        let mut harness = binding();
        harness.take(&raw(0x8000_0000, 4, sequence, &[]));
        is_refused(&mut harness, CommandStatus::RINVBNDSTS);
    }
    let mut harness = binding();
    harness.take(&raw(0x8000_0000, 0, 1, &[]));
    is_refused(&mut harness, CommandStatus::RBINDFAIL);
    // A nack without a request, and responses to other commands, are ignored.
    let mut harness = binding();
    harness.take(&[raw(0x8000_0000, 4, 77, &[]), raw(0x8000_0004, 0, 1, b"7\0")].concat());
    assert_eq!(harness.only_anomalies().len(), 2);
    assert!(matches!(harness.session.state(), SessionState::Binding { .. }));
}

fn waiting_for_outbind() -> SessionHarness {
    let password = Some(Bytes::from_static(b"pw"));
    let mut harness = SessionHarness::client(SmppClientOptions {
        await_outbind: password,
        ..client_options(BindMode::Receiver)
    });
    assert!(harness.written().is_empty());
    harness
}

#[test]
fn check_043_outbind() {
    let mut harness = waiting_for_outbind();
    harness.take(&hex(V28));
    assert!(matches!(harness.events().as_slice(), [Event::Outbind(_)]));
    assert_eq!(harness.written()[0].raw, pdu(1, &Request::Bind(a_bind(BindMode::Receiver))));
    harness.take(&answer(CommandId::BIND_RECEIVER.response(), CommandStatus::ROK, 1, &Response::Empty));
    assert_eq!(harness.session.bound_as(), Some(BindMode::Receiver));
    // And the other side of the outbind.
    let mut smsc = SessionHarness::server(options());
    let outbind = Outbind { system_id: Bytes::from_static(b"SMSC"), password: Bytes::from_static(b"pw") };
    smsc.session.outbind(outbind.clone()).unwrap();
    assert_eq!(smsc.written()[0].raw[16..], hex(V28)[16..]);
    let mut bound = SessionHarness::bound_server(BindMode::Receiver, options());
    assert_eq!(bound.session.outbind(outbind), Err(RequestError::WrongState));
}

#[test]
fn check_044_unexpected_outbinds_are_ignored() {
    let mut harness = waiting_for_outbind();
    harness.take(&raw(0x0B, 0, 1, b"SMSC\0wrong\0"));
    assert!(harness.written().is_empty() && harness.is_closed());
    for mut harness in [
        binding(),
        SessionHarness::server(options()),
        SessionHarness::bound_server(BindMode::Receiver, options()),
    ] {
        harness.take(&hex(V28));
        assert_eq!(harness.only_anomalies().len(), 1);
        harness.is_in_step();
    }
}

#[test]
fn check_045_a_deliver_sm_right_behind_the_bind_answer() {
    let mut harness = binding();
    harness.take(&[hex(V02), hex(V07)].concat());
    let events = harness.events();
    assert!(
        matches!(
            events.as_slice(),
            [Event::Bound { .. }, Event::Request { sequence: 7, request: Request::DeliverSm(_) }]
        ),
        "{events:?}"
    );
}

#[test]
fn a_client_refuses_a_bind_of_its_peer() {
    let mut harness = SessionHarness::bound_client(BindMode::Transceiver, options());
    harness.take(&hex(V01));
    assert_eq!(harness.heads(), [(CommandId::BIND_TRANSCEIVER.response(), CommandStatus::RINVBNDSTS, 1)]);
    harness.is_in_step();
}
