//! E. The deliver side.

use crate::checklist::harness::{SessionHarness, hello, options, pdu, raw};
use crate::checklist::vectors::*;
use bytes::Bytes;
use model::{DlrContent, DlrState, PeerMessageId, Timestamp};
use smpp::delivery_receipt::{self, is_receipt};
use smpp::message_id::MessageIdForm;
use smpp::{
    BindMode, CommandId, CommandStatus, DataSm, Event, Request, RequestError, Response, Sm, Tlvs,
    segmentation, tag, time,
};

fn client() -> SessionHarness {
    SessionHarness::bound_client(BindMode::Transceiver, options())
}

fn delivered(octets: &[u8]) -> Sm {
    let mut harness = client();
    harness.take(octets);
    let sm = harness.the_sm();
    harness.is_in_step();
    sm
}

fn read(sm: &Sm) -> (model::Dlr, bool) {
    let (from, to) = (&sm.source.value, &sm.destination.value);
    delivery_receipt::read(sm.esm_class, sm.data_coding, from, to, &sm.text(), &sm.tlvs, MessageIdForm::AsIs)
}

fn with_text(text: &str) -> Sm {
    Sm {
        short_message: Bytes::copy_from_slice(text.as_bytes()),
        tlvs: Tlvs::default(),
        ..delivered(&hex(V07))
    }
}

#[test]
fn check_115_a_receipt_is_reported_and_answered_by_the_owner() {
    let mut harness = client();
    harness.take(&hex(V07));
    let sm = harness.the_sm();
    assert!(harness.written().is_empty());
    assert!(is_receipt(sm.esm_class));
    let (receipt, differs) = read(&sm);
    assert_eq!((receipt.id, receipt.state), (PeerMessageId::new(b"0000012345"), DlrState::Delivered));
    assert!(!differs && !receipt.intermediate);
    assert_eq!(receipt.network_error, Some([3, 0, 0]));
    harness.session.respond(CommandId::DELIVER_SM, 7, CommandStatus::ROK, &Response::Empty);
    assert_eq!(harness.written()[0].raw, hex(V08));
}

#[test]
fn check_116_receipts_in_all_variants() {
    let whole = "id:0000012345 sub:001 dlvrd:001 submit date:2611200930 done date:2611200931 stat:DELIVRD err:000 text:Hello";
    let date = |digits: &[u8]| time::parse_receipt(digits);
    let id = Some(&b"0000012345"[..]);
    let delivered_state = Some(DlrState::Delivered);
    let (done, with_seconds) = (date(b"2611200931"), date(b"261120093107"));
    assert!(done.is_some() && with_seconds.is_some());
    for (shape, id, state, error, done_at) in [
        (whole.to_owned(), id, delivered_state, Some(0), done),
        (whole.to_uppercase(), id, delivered_state, Some(0), done),
        (whole.replace("err:000", "err:0000"), id, delivered_state, Some(0), done),
        (whole.replace("err:000", "err: 0"), id, delivered_state, Some(0), done),
        (whole.replace("err:000", "err:null"), id, delivered_state, None, done),
        (whole.replace("2611200931", "261120093107"), id, delivered_state, Some(0), with_seconds),
        (
            whole.replace("2611200931", "180711070003912+"),
            id,
            delivered_state,
            Some(0),
            date(b"180711070003912+"),
        ),
        (whole.replace("sub:001 dlvrd:001 ", ""), id, delivered_state, Some(0), done),
        (whole.replace("id:0000012345 ", ""), None, delivered_state, Some(0), done),
        (whole.replace("stat:", ""), id, delivered_state, Some(0), done),
        (whole.replace("DELIVRD", "FAILED"), id, Some(DlrState::Undeliverable), Some(0), done),
        (whole.replace("DELIVRD", "SCHEDULED"), id, Some(DlrState::Scheduled), Some(0), done),
        (whole.replace("text:Hello", ""), id, delivered_state, Some(0), done),
        (whole.replace("text:Hello", "Text:stat:EXPIRED id:9"), id, delivered_state, Some(0), done),
        ("nothing of the kind".to_owned(), None, None, None, None),
        (String::new(), None, None, None, None),
    ] {
        let found = delivery_receipt::parse_text(shape.as_bytes());
        assert_eq!(
            (found.id.as_deref(), found.state, found.error, found.done_at),
            (id, state, error, done_at),
            "{shape}"
        );
        // Parsing never fails.
        let (receipt, _) = read(&with_text(&shape));
        assert_eq!(receipt.state, state.unwrap_or(DlrState::Unknown));
    }
    let only_text = Sm { tlvs: Tlvs::default(), ..delivered(&hex(V07)) };
    assert_eq!(read(&only_text).0.id, PeerMessageId::new(b"0000012345"));
    let only_tlvs = Sm { short_message: Bytes::new(), ..delivered(&hex(V07)) };
    assert_eq!(read(&only_tlvs).0.state, DlrState::Delivered);
    let mut no_nul = with_text("");
    no_nul.tlvs = Tlvs::default().with(tag::RECEIPTED_MESSAGE_ID, b"0000012345");
    assert_eq!(read(&no_nul).0.id, PeerMessageId::new(b"0000012345"));
}

#[test]
fn check_117_ids_in_different_forms_match() {
    for (form, answer, receipt) in [
        (MessageIdForm::HexToDecimal, "39f99dd5", "972660181"),
        (MessageIdForm::HexToDecimal, "0039F99DD5", "0972660181"),
        (MessageIdForm::DecimalToHex, "972660181", "39F99DD5"),
        (MessageIdForm::HexToDecimal, "ffffffffff", "1099511627775"),
        (MessageIdForm::StripZeros, "0000012345", "12345"),
        (MessageIdForm::StripZeros, "12345", "0000012345"),
        (MessageIdForm::FoldCase, "3f2504e0-4f89", "3F2504E0-4F89"),
        (MessageIdForm::AsIs, "0000012345", "0000012345"),
    ] {
        let answered = form.from_response(answer.as_bytes());
        let text = format!("id:{receipt} stat:DELIVRD");
        let (dlr, _) = delivery_receipt::read(4, 0, b"", b"", text.as_bytes(), &Tlvs::default(), form);
        assert_eq!(answered, dlr.id, "{form:?} {answer} {receipt}");
    }
}

#[test]
fn check_121_the_same_receipt_twice_has_two_answers() {
    let mut harness = client();
    harness.take(&[hex(V07), hex(V07)].concat());
    assert_eq!(harness.answer_all(), 2);
    assert_eq!(harness.heads(), [(CommandId::DELIVER_SM.response(), CommandStatus::ROK, 7); 2]);
}

#[test]
fn check_122_intermediate_is_not_final() {
    let tlvs = Tlvs::default().with(tag::MESSAGE_STATE, &[1]).with(tag::RECEIPTED_MESSAGE_ID, b"1\0");
    let sm = Sm { esm_class: 0x20, tlvs, ..with_text("") };
    let (receipt, _) = read(&sm);
    assert!(is_receipt(sm.esm_class) && receipt.intermediate);
    assert_eq!(receipt.state, DlrState::Enroute);
}

#[test]
fn check_123_the_tlv_takes_precedence_and_the_difference_is_reported() {
    let sm = Sm { tlvs: delivered(&hex(V07)).tlvs, ..with_text("id:0000012345 stat:UNDELIV err:001") };
    let (receipt, differs) = read(&sm);
    assert_eq!((receipt.state, differs), (DlrState::Delivered, true));
}

#[test]
fn check_124_a_network_error_code_of_four_octets_is_ignored() {
    for (octets, expected) in [(&[3, 0, 12][..], Some([3, 0, 12])), (&[3, 0, 0, 12], None), (&[], None)] {
        let tlvs = Tlvs::default().with(tag::NETWORK_ERROR_CODE, octets);
        let (receipt, _) = read(&Sm { tlvs, ..with_text("id:1 stat:UNDELIV err:012") });
        assert_eq!((receipt.network_error, receipt.error), (expected, 12));
    }
}

#[test]
fn check_125_text_that_looks_like_a_receipt_is_a_message() {
    let sm = Sm { esm_class: 0, ..delivered(&hex(V07)) };
    let sm = delivered(&pdu(9, &Request::DeliverSm(sm)));
    assert!(!is_receipt(sm.esm_class));
    for (esm_class, expected) in
        [(0x04, true), (0x20, true), (0x44, true), (0x40, false), (0x08, false), (0x03, false)]
    {
        assert_eq!(is_receipt(esm_class), expected, "{esm_class:#x}");
    }
}

#[test]
fn check_126_127_parts_and_payloads_of_mos() {
    let payload = b"\x05\x00\x03\x07\x03\x02text".as_slice();
    let mo = Sm {
        esm_class: 0x40,
        short_message: Bytes::new(),
        tlvs: Tlvs::default().with(tag::MESSAGE_PAYLOAD, payload),
        ..hello()
    };
    let mo = delivered(&pdu(1, &Request::DeliverSm(mo)));
    assert_eq!(mo.text(), payload);
    let part = segmentation::segment_info(true, &mo.text(), &mo.tlvs).unwrap();
    assert_eq!((part.total, part.number), (3, 2));
}

#[test]
fn check_128_129_refusals_of_deliveries() {
    let mut harness = client();
    for status in [CommandStatus::RX_T_APPN, CommandStatus::RX_P_APPN, CommandStatus::RX_R_APPN] {
        harness.take(&hex(V07));
        harness.the_sm();
        harness.session.respond(CommandId::DELIVER_SM, 7, status, &Response::Empty);
        assert_eq!(harness.written()[0].raw, raw(0x8000_0005, status.0, 7, &[]));
    }
}

#[test]
fn check_130_a_receipt_as_data_sm() {
    let tlvs = Tlvs::default().with(tag::MESSAGE_PAYLOAD, b"id:1 stat:DELIVRD");
    let data = DataSm { esm_class: 4, tlvs, ..DataSm::default() };
    let mut harness = client();
    harness.take(&pdu(3, &Request::DataSm(data)));
    let requests = harness.requests();
    let Request::DataSm(data) = &requests[0].1 else { panic!("{requests:?}") };
    assert!(is_receipt(data.esm_class));
    assert_eq!(delivery_receipt::parse_text(&data.text().unwrap()).state, Some(DlrState::Delivered));
    harness.session.respond(CommandId::DATA_SM, 3, CommandStatus::ROK, &Response::Empty);
    assert_eq!(harness.heads(), [(CommandId::DATA_SM.response(), CommandStatus::ROK, 3)]);
}

#[test]
fn check_131_alert_notification_has_no_answer() {
    let mut harness = client();
    harness.take(&hex(V36));
    let events = harness.events();
    assert!(
        matches!(events.as_slice(), [Event::Alert(alert)] if alert.source.value.as_slice() == b"8613012345678"),
        "{events:?}"
    );
    assert!(harness.written().is_empty());
    // Not even if it is malformed, or not allowed in the state.
    harness.take(&raw(0x102, 0, 1, b"\x01"));
    let mut server = SessionHarness::bound_server(BindMode::Transceiver, options());
    server.take(&hex(V36));
    for harness in [&mut harness, &mut server] {
        assert_eq!(harness.only_anomalies().len(), 1);
        harness.is_in_step();
    }
}

#[test]
fn check_132_deliver_sm_on_a_transmitter() {
    let mut harness = SessionHarness::bound_client(BindMode::Transmitter, options());
    harness.take(&hex(V07));
    assert_eq!(harness.heads(), [(CommandId::DELIVER_SM.response(), CommandStatus::RINVBNDSTS, 7)]);
    assert_eq!(harness.only_anomalies().len(), 1);
}

fn server(mode: BindMode) -> SessionHarness {
    SessionHarness::bound_server(mode, options())
}

#[test]
fn check_133_134_answers_to_our_deliveries() {
    let mut harness = server(BindMode::Receiver);
    for (status, body) in
        [(0x64, &b""[..]), (0x65, b"\0"), (0x66, b""), (0x58, b""), (0, b""), (0, b"\0"), (0, b"an id\0")]
    {
        let sequence = harness.session.request(harness.now, 9, &Request::DeliverSm(hello())).unwrap();
        harness.take(&raw(0x8000_0005, status, sequence, body));
        let events = harness.events();
        assert!(
            matches!(events.as_slice(), [Event::Answer { token: 9, status: answered, late: false, .. }] if answered.0 == status),
            "{events:?}"
        );
    }
}

#[test]
fn check_135_an_unanswered_delivery_is_reported() {
    let mut harness = server(BindMode::Receiver);
    harness.session.request(harness.now, 9, &Request::DeliverSm(hello())).unwrap();
    harness.wait(options().response_timeout);
    let events = harness.events();
    assert!(matches!(events.as_slice(), [Event::Unanswered { token: 9 }]), "{events:?}");
}

#[test]
fn check_137_nothing_is_delivered_to_a_transmitter() {
    let mut harness = server(BindMode::Transmitter);
    assert_eq!(
        harness.session.request(harness.now, 1, &Request::DeliverSm(hello())),
        Err(RequestError::WrongState)
    );
    assert!(harness.session.alert(smpp::AlertNotification::default()).is_err());
    let mut harness = server(BindMode::Receiver);
    assert!(harness.session.request(harness.now, 1, &Request::DeliverSm(hello())).is_ok());
    assert!(harness.session.alert(smpp::AlertNotification::default()).is_ok());
    // A server never submits.
    assert!(harness.session.request(harness.now, 1, &Request::SubmitSm(hello())).is_err());
    assert_eq!(harness.heads().len(), 2);
}

#[test]
fn check_139_our_receipt_on_the_wire() {
    let dlr = DlrContent {
        of: model::MessageId(1_000_000_042),
        state: DlrState::Delivered,
        intermediate: false,
        error: 0,
        network_error: Some([3, 0, 0]),
        submitted_at: Timestamp(1_795_000_000_000),
        done_at: Timestamp(1_795_000_060_000),
        segments: (1, 1),
        segment: 0,
        peer_id: PeerMessageId::default(),
    };
    let mut sm = Sm { source: hello().destination, destination: hello().source, ..Sm::default() };
    delivery_receipt::write(&mut sm, &dlr, "1000000042", "Hello", true);
    let mut harness = server(BindMode::Transceiver);
    harness.session.request(harness.now, 1, &Request::DeliverSm(sm)).unwrap();
    let sm = delivered(&harness.written()[0].raw);
    assert_eq!((sm.esm_class, sm.source.value.as_slice()), (4, &b"8613012345678"[..]));
    let text = String::from_utf8(sm.short_message.to_vec()).unwrap();
    let words: Vec<&str> = text.split(' ').collect();
    assert_eq!(words[0..3], ["id:1000000042", "sub:001", "dlvrd:001"]);
    let date = |word: &str| word.strip_prefix("date:").is_some_and(|digits| digits.len() == 10);
    assert!(date(words[4]) && date(words[6]), "{text}");
    assert_eq!(words[7..], ["stat:DELIVRD", "err:000", "text:Hello"]);
    assert_eq!(sm.tlvs.value(tag::RECEIPTED_MESSAGE_ID), Some(&b"1000000042\0"[..]));
    assert_eq!(sm.tlvs.u8(tag::MESSAGE_STATE), Some(2));
    assert_eq!(sm.tlvs.value(tag::NETWORK_ERROR_CODE), Some(&[3, 0, 0][..]));
    let (receipt, differs) = read(&sm);
    assert_eq!((receipt.state, differs), (DlrState::Delivered, false));
}
