//! E. The deliver side.

use crate::harness::{Bench, hello, options, pdu, raw};
use crate::vectors::*;
use bytes::Bytes;
use model::{PeerMessageId, ReceiptState, ReceiptText, Timestamp};
use smpp::message_id::MessageIdForm;
use smpp::receipt::{self, is_receipt};
use smpp::{
    BindMode, CommandId, DataSm, Event, Request, RequestError, Response, Sm, Status, Tlvs, concat, tag, time,
};

fn client() -> Bench {
    Bench::bound_client(BindMode::Transceiver, options())
}

fn delivered(octets: &[u8]) -> Sm {
    let mut bench = client();
    bench.take(octets);
    let sm = bench.the_sm();
    bench.is_in_step();
    sm
}

fn read(sm: &Sm) -> (model::Receipt, bool) {
    let (from, to) = (&sm.source.value, &sm.destination.value);
    receipt::read(sm.esm_class, sm.data_coding, from, to, &sm.text(), &sm.tlvs, MessageIdForm::AsIs)
}

fn with_text(text: &str) -> Sm {
    Sm {
        short_message: Bytes::copy_from_slice(text.as_bytes()),
        tlvs: Tlvs::default(),
        ..delivered(&hex(V07))
    }
}

#[test]
fn check_115_a_receipt_is_told_and_answered_when_the_owner_says_so() {
    let mut bench = client();
    bench.take(&hex(V07));
    let sm = bench.the_sm();
    assert!(bench.written().is_empty());
    assert!(is_receipt(sm.esm_class));
    let (receipt, differs) = read(&sm);
    assert_eq!((receipt.id, receipt.state), (PeerMessageId::new(b"0000012345"), ReceiptState::Delivered));
    assert!(!differs && !receipt.intermediate);
    assert_eq!(receipt.network_error, Some([3, 0, 0]));
    bench.session.respond(CommandId::DELIVER_SM, 7, Status::ROK, &Response::Empty);
    assert_eq!(bench.written()[0].raw, hex(V08));
}

#[test]
fn check_116_receipts_in_all_the_shapes_of_the_field() {
    let whole = "id:0000012345 sub:001 dlvrd:001 submit date:2611200930 done date:2611200931 stat:DELIVRD err:000 text:Hello";
    let date = |digits: &[u8]| time::parse_receipt(digits);
    let id = Some(&b"0000012345"[..]);
    let delivered_state = Some(ReceiptState::Delivered);
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
        (whole.replace("DELIVRD", "FAILED"), id, Some(ReceiptState::Undeliverable), Some(0), done),
        (whole.replace("DELIVRD", "SCHEDULED"), id, Some(ReceiptState::Scheduled), Some(0), done),
        (whole.replace("text:Hello", ""), id, delivered_state, Some(0), done),
        (whole.replace("text:Hello", "Text:stat:EXPIRED id:9"), id, delivered_state, Some(0), done),
        ("nothing of the kind".to_owned(), None, None, None, None),
        (String::new(), None, None, None, None),
    ] {
        let found = receipt::parse_text(shape.as_bytes());
        assert_eq!(
            (found.id.as_deref(), found.state, found.error, found.done_at),
            (id, state, error, done_at),
            "{shape}"
        );
        // And as a whole it never fails.
        let (receipt, _) = read(&with_text(&shape));
        assert_eq!(receipt.state, state.unwrap_or(ReceiptState::Unknown));
    }
    let only_text = Sm { tlvs: Tlvs::default(), ..delivered(&hex(V07)) };
    assert_eq!(read(&only_text).0.id, PeerMessageId::new(b"0000012345"));
    let only_tlvs = Sm { short_message: Bytes::new(), ..delivered(&hex(V07)) };
    assert_eq!(read(&only_tlvs).0.state, ReceiptState::Delivered);
    let mut no_nul = with_text("");
    no_nul.tlvs = Tlvs::default().with(tag::RECEIPTED_MESSAGE_ID, b"0000012345");
    assert_eq!(read(&no_nul).0.id, PeerMessageId::new(b"0000012345"));
}

#[test]
fn check_117_ids_in_other_forms_meet() {
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
        let answered = form.of_answer(answer.as_bytes());
        let text = format!("id:{receipt} stat:DELIVRD");
        let (told, _) = receipt::read(4, 0, b"", b"", text.as_bytes(), &Tlvs::default(), form);
        assert_eq!(answered, told.id, "{form:?} {answer} {receipt}");
    }
}

#[test]
fn check_121_the_same_receipt_twice_has_two_answers() {
    let mut bench = client();
    bench.take(&[hex(V07), hex(V07)].concat());
    assert_eq!(bench.answer_all(), 2);
    assert_eq!(bench.heads(), [(CommandId::DELIVER_SM.response(), Status::ROK, 7); 2]);
}

#[test]
fn check_122_intermediate_is_not_final() {
    let tlvs = Tlvs::default().with(tag::MESSAGE_STATE, &[1]).with(tag::RECEIPTED_MESSAGE_ID, b"1\0");
    let sm = Sm { esm_class: 0x20, tlvs, ..with_text("") };
    let (receipt, _) = read(&sm);
    assert!(is_receipt(sm.esm_class) && receipt.intermediate);
    assert_eq!(receipt.state, ReceiptState::Enroute);
}

#[test]
fn check_123_the_tlv_wins_and_the_difference_is_told() {
    let sm = Sm { tlvs: delivered(&hex(V07)).tlvs, ..with_text("id:0000012345 stat:UNDELIV err:001") };
    let (receipt, differs) = read(&sm);
    assert_eq!((receipt.state, differs), (ReceiptState::Delivered, true));
}

#[test]
fn check_124_a_network_error_code_of_four_octets_is_passed_over() {
    for (octets, expected) in [(&[3, 0, 12][..], Some([3, 0, 12])), (&[3, 0, 0, 12], None), (&[], None)] {
        let tlvs = Tlvs::default().with(tag::NETWORK_ERROR_CODE, octets);
        let (receipt, _) = read(&Sm { tlvs, ..with_text("id:1 stat:UNDELIV err:012") });
        assert_eq!((receipt.network_error, receipt.error), (expected, 12));
    }
}

#[test]
fn check_125_text_that_looks_like_a_receipt_is_none() {
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
    let part = concat::part_of(true, &mo.text(), &mo.tlvs).unwrap();
    assert_eq!((part.total, part.number), (3, 2));
}

#[test]
fn check_128_129_refusals_of_deliveries() {
    let mut bench = client();
    for status in [Status::RX_T_APPN, Status::RX_P_APPN, Status::RX_R_APPN] {
        bench.take(&hex(V07));
        bench.the_sm();
        bench.session.respond(CommandId::DELIVER_SM, 7, status, &Response::Empty);
        assert_eq!(bench.written()[0].raw, raw(0x8000_0005, status.0, 7, &[]));
    }
}

#[test]
fn check_130_a_receipt_as_data_sm() {
    let tlvs = Tlvs::default().with(tag::MESSAGE_PAYLOAD, b"id:1 stat:DELIVRD");
    let data = DataSm { esm_class: 4, tlvs, ..DataSm::default() };
    let mut bench = client();
    bench.take(&pdu(3, &Request::DataSm(data)));
    let requests = bench.requests();
    let Request::DataSm(data) = &requests[0].1 else { panic!("{requests:?}") };
    assert!(is_receipt(data.esm_class));
    assert_eq!(receipt::parse_text(&data.text().unwrap()).state, Some(ReceiptState::Delivered));
    bench.session.respond(CommandId::DATA_SM, 3, Status::ROK, &Response::Empty);
    assert_eq!(bench.heads(), [(CommandId::DATA_SM.response(), Status::ROK, 3)]);
}

#[test]
fn check_131_alert_notification_has_no_answer() {
    let mut bench = client();
    bench.take(&hex(V36));
    let events = bench.events();
    assert!(
        matches!(events.as_slice(), [Event::Alert(alert)] if alert.source.value.as_slice() == b"8613012345678"),
        "{events:?}"
    );
    assert!(bench.written().is_empty());
    // Not even when it is broken, or comes where it must not.
    bench.take(&raw(0x102, 0, 1, b"\x01"));
    let mut server = Bench::bound_server(BindMode::Transceiver, options());
    server.take(&hex(V36));
    for bench in [&mut bench, &mut server] {
        assert_eq!(bench.only_notes().len(), 1);
        bench.is_in_step();
    }
}

#[test]
fn check_132_deliver_sm_on_a_transmitter() {
    let mut bench = Bench::bound_client(BindMode::Transmitter, options());
    bench.take(&hex(V07));
    assert_eq!(bench.heads(), [(CommandId::DELIVER_SM.response(), Status::RINVBNDSTS, 7)]);
    assert_eq!(bench.only_notes().len(), 1);
}

fn server(mode: BindMode) -> Bench {
    Bench::bound_server(mode, options())
}

#[test]
fn check_133_134_answers_to_our_deliveries() {
    let mut bench = server(BindMode::Receiver);
    for (status, body) in
        [(0x64, &b""[..]), (0x65, b"\0"), (0x66, b""), (0x58, b""), (0, b""), (0, b"\0"), (0, b"an id\0")]
    {
        let sequence = bench.session.request(bench.now, 9, &Request::DeliverSm(hello())).unwrap();
        bench.take(&raw(0x8000_0005, status, sequence, body));
        let events = bench.events();
        assert!(
            matches!(events.as_slice(), [Event::Answer { token: 9, status: told, late: false, .. }] if told.0 == status),
            "{events:?}"
        );
    }
}

#[test]
fn check_135_a_delivery_that_is_not_answered() {
    let mut bench = server(BindMode::Receiver);
    bench.session.request(bench.now, 9, &Request::DeliverSm(hello())).unwrap();
    bench.wait(options().response_timeout);
    let events = bench.events();
    assert!(matches!(events.as_slice(), [Event::Unanswered { token: 9 }]), "{events:?}");
}

#[test]
fn check_137_nothing_is_delivered_to_a_transmitter() {
    let mut bench = server(BindMode::Transmitter);
    assert_eq!(
        bench.session.request(bench.now, 1, &Request::DeliverSm(hello())),
        Err(RequestError::WrongState)
    );
    assert!(bench.session.alert(smpp::AlertNotification::default()).is_err());
    let mut bench = server(BindMode::Receiver);
    assert!(bench.session.request(bench.now, 1, &Request::DeliverSm(hello())).is_ok());
    assert!(bench.session.alert(smpp::AlertNotification::default()).is_ok());
    // And a server submits nothing.
    assert!(bench.session.request(bench.now, 1, &Request::SubmitSm(hello())).is_err());
    assert_eq!(bench.heads().len(), 2);
}

#[test]
fn check_139_our_receipt_on_the_wire() {
    let told = ReceiptText {
        of: model::MessageId(1_000_000_042),
        state: ReceiptState::Delivered,
        intermediate: false,
        error: 0,
        network_error: Some([3, 0, 0]),
        submitted_at: Timestamp(1_795_000_000_000),
        done_at: Timestamp(1_795_000_060_000),
        parts: (1, 1),
        part: 0,
        peer_id: PeerMessageId::default(),
    };
    let mut sm = Sm { source: hello().destination, destination: hello().source, ..Sm::default() };
    receipt::write(&mut sm, &told, "1000000042", "Hello", true);
    let mut bench = server(BindMode::Transceiver);
    bench.session.request(bench.now, 1, &Request::DeliverSm(sm)).unwrap();
    let sm = delivered(&bench.written()[0].raw);
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
    assert_eq!((receipt.state, differs), (ReceiptState::Delivered, false));
}
