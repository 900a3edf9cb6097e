//! Conformance checks of the codec, by number.

use crate::vectors::{decode, named};
use bytes::{Bytes, BytesMut};
use cmpp::{Cmpp, CmppMsgId, CmppPdu, ConnectAnswer, Deliver, ReportContent, Submit};
use sp_session::{DecodeError, FieldError, Header, Meaning, SpProtocol as _, is_final, state_of};

fn encoded(pdu: &CmppPdu, version: u8) -> BytesMut {
    let mut out = BytesMut::new();
    pdu.encode(version, 9, &mut out).unwrap();
    out
}

fn submit(version: u8) -> Submit {
    match decode(version, &named(version, if version == 0x20 { "2.0 SUBMIT s1" } else { "3.0 SUBMIT s1" })) {
        CmppPdu::Submit(submit) => *submit,
        other => panic!("{other:?}"),
    }
}

fn body_error(version: u8, octets: &[u8]) -> DecodeError {
    CmppPdu::decode(version, Header::peek(octets).unwrap(), &octets[12..]).unwrap_err()
}

#[test]
fn the_fields_of_the_vectors_are_at_their_places() {
    for version in [0x20, 0x30] {
        let submit = submit(version);
        assert_eq!((&submit.service[..], &submit.sp[..]), (&b"TEST"[..], &b"901234"[..]));
        assert_eq!(
            (submit.payer_type, &submit.fee_type[..], &submit.fee_code[..]),
            (2, &b"01"[..], &b"000000"[..])
        );
        assert_eq!(submit.source, "106590123400");
        assert_eq!(submit.destinations, [Bytes::from_static(b"13800138000")]);
        assert_eq!((submit.format, &submit.content[..]), (8, &[0x4F, 0x60, 0x59, 0x7D][..]));
        assert_eq!((submit.registered_delivery, submit.part), (1, (1, 1)));
    }
    let report = named(0x30, "3.0 DELIVER, report for s1");
    let Meaning::Report(report) = Cmpp::meaning(&decode(0x30, &report)) else { panic!("no report") };
    assert_eq!((&report.submission[..], &report.word[..]), (&b"742473c18a890011"[..], &b"DELIVRD"[..]));
    assert_eq!((&report.submitted[..], &report.done[..]), (&b"2607080907"[..], &b"2607080908"[..]));
    assert_eq!((&report.subscriber[..], &report.source[..]), (&b"13800138000"[..], &b"106590123400"[..]));
}

#[test]
fn check_08_a_number_of_22_digits_is_not_cut() {
    let mut submit = submit(0x20);
    submit.destinations = vec![Bytes::from_static(b"1234567890123456789012")];
    let mut out = BytesMut::new();
    let error = FieldError::TooLong { field: "Dest_terminal_Id", octets: 22, width: 21 };
    assert_eq!(CmppPdu::Submit(Box::new(submit)).encode(0x20, 1, &mut out), Err(error));
    assert!(out.is_empty());
}

#[test]
fn check_09_the_count_of_users() {
    for version in [0x20, 0x30] {
        for count in [1_usize, 99, 100] {
            let mut submit = submit(version);
            submit.destinations = vec![Bytes::from_static(b"13800138000"); count];
            let octets = encoded(&CmppPdu::Submit(Box::new(submit.clone())), version);
            let fixed = if version == 0x20 { 138 + 21 * count } else { 163 + 32 * count };
            assert_eq!(octets.len(), fixed + 4);
            assert_eq!(decode(version, &octets), CmppPdu::Submit(Box::new(submit)));
        }
        let count_at = if version == 0x20 { 128 } else { 140 };
        for count in [0, 2, 101, 255] {
            let mut octets = encoded(&CmppPdu::Submit(Box::new(submit(version))), version);
            octets[count_at] = count;
            assert_eq!(body_error(version, &octets), DecodeError::Invalid(1), "{count}");
        }
    }
}

#[test]
fn check_10_the_length_of_the_content() {
    for length in [0_usize, 140, 141, 159, 160, 161, 255] {
        let mut submit = submit(0x20);
        submit.content = vec![b'a'; length].into();
        let octets = encoded(&CmppPdu::Submit(Box::new(submit.clone())), 0x20);
        assert_eq!(decode(0x20, &octets), CmppPdu::Submit(Box::new(submit)));
    }
    let mut octets = encoded(&CmppPdu::Submit(Box::new(submit(0x20))), 0x20);
    octets[150] = 200;
    assert_eq!(body_error(0x20, &octets), DecodeError::Invalid(1));
}

#[test]
fn check_11_one_octet_tells_the_type_of_all_numbers() {
    let mut submit = submit(0x30);
    submit.destinations = vec![Bytes::from_static(b"1"), Bytes::from_static(b"2")];
    submit.destination_type = 7;
    let octets = encoded(&CmppPdu::Submit(Box::new(submit.clone())), 0x30);
    assert_eq!(octets[141 + 64], 7);
    assert_eq!(decode(0x30, &octets), CmppPdu::Submit(Box::new(submit)));
}

#[test]
fn check_12_the_length_of_a_report_tells_its_layout() {
    let report = ReportContent {
        id: CmppMsgId(0x7424_73C1_8A89_0011),
        word: "DELIVRD".into(),
        submitted: "2607080907".into(),
        done: "2607080908".into(),
        destination: "13800138000".into(),
        sequence: 99,
    };
    for (wide, length) in [(false, 60), (true, 71)] {
        let content = report.write(wide);
        assert_eq!(content.len(), length);
        assert_eq!(ReportContent::read(&content).as_ref(), Some(&report));
        // Both lengths occur in both versions.
        for version in [0x20, 0x30] {
            let deliver = Deliver { registered_delivery: 1, content: content.clone(), ..Deliver::default() };
            let octets = encoded(&CmppPdu::Deliver(deliver.clone()), version);
            assert_eq!(decode(version, &octets), CmppPdu::Deliver(deliver));
        }
    }
    let content = report.write(true);
    for length in [59, 35] {
        let short = ReportContent::read(&content[..length]).unwrap();
        assert_eq!(
            (short.id, &short.word[..], &short.destination[..]),
            (report.id, &b"DELIVRD"[..], &b""[..])
        );
    }
    let deliver = Deliver { registered_delivery: 1, content: content.slice(..34), ..Deliver::default() };
    assert_eq!(body_error(0x30, &encoded(&CmppPdu::Deliver(deliver), 0x30)), DecodeError::Invalid(1));
    assert!(!is_final(state_of(b"ACCEPTD")));
}

#[test]
fn check_15_an_answer_to_a_link_test_may_lack_its_octet() {
    for octets in [&named(0x20, "CMPP ACTIVE_TEST_RESP")[..], &[0, 0, 0, 12, 0x80, 0, 0, 8, 0, 0, 0, 6]] {
        assert_eq!(decode(0x20, octets), CmppPdu::ActiveTestAnswer);
    }
}

#[test]
fn check_24_the_length_of_the_answer_to_a_login_tells_its_layout() {
    for (name, version) in [("2.0 CONNECT_RESP, Status 3", 0x20), ("3.0 CONNECT_RESP, Status 3", 0x30)] {
        let octets = named(version, name);
        let answer = ConnectAnswer { status: 3, authenticator: [0; 16], version };
        for asked in [0x20, 0x30] {
            assert_eq!(decode(asked, &octets), CmppPdu::ConnectAnswer(answer));
        }
    }
}

#[test]
fn the_end_of_a_message_may_be_missing_or_longer() {
    let whole = encoded(&CmppPdu::Submit(Box::new(submit(0x30))), 0x30);
    assert_eq!(decode(0x30, &whole[..whole.len() - 20]), CmppPdu::Submit(Box::new(submit(0x30))));
    let longer = [&whole[..], &[7; 64]].concat();
    assert_eq!(decode(0x30, &longer), CmppPdu::Submit(Box::new(submit(0x30))));
    let too_long = [&whole[..], &[7; 65]].concat();
    assert_eq!(body_error(0x30, &too_long), DecodeError::Invalid(4));
}

#[test]
fn check_27_the_versions_that_are_served() {
    for version in [0x20, 0x21, 0x2F, 0x30, 0x31] {
        assert_eq!(Cmpp::version_status(version), 0, "{version:#x}");
    }
    for version in [0x40, 0x7F, 0xFF] {
        assert_eq!(Cmpp::version_status(version), 4, "{version:#x}: too high");
    }
    for version in [0x00, 0x01, 0x10, 0x12] {
        assert_eq!(Cmpp::version_status(version), 5, "{version:#x}");
    }
}
