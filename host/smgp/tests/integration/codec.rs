//! Conformance checks of the codec and of the login, by number.

use crate::vectors::{decode, named};
use bytes::{Bytes, BytesMut};
use smgp::{Session, Smgp, SmgpMsgId, SmgpPdu, Submit, tag};
use sp_session::{DecodeError, Event, Header, Meaning, OwnLogin, SessionOptions, SpProtocol as _};
use std::time::Instant;

fn encoded(pdu: &SmgpPdu, version: u8) -> BytesMut {
    let mut out = BytesMut::new();
    pdu.encode(version, 9, &mut out).unwrap();
    out
}

fn submit(version: u8, name: &str) -> Submit {
    match decode(version, &named(version, name)) {
        SmgpPdu::Submit(submit) => *submit,
        other => panic!("{other:?}"),
    }
}

fn body_error(version: u8, octets: &[u8]) -> DecodeError {
    SmgpPdu::decode(version, Header::peek(octets).unwrap(), &octets[12..]).unwrap_err()
}

#[test]
fn the_fields_of_the_vectors_are_at_their_places() {
    let one = submit(0x30, "SMGP Submit a");
    assert_eq!((&one.source[..], &one.destinations[0][..]), (&b"10659012"[..], &b"13300133000"[..]));
    assert_eq!((one.format, &one.content[..]), (15, &[0xB2, 0xE2, 0xCA, 0xD4][..]));
    // "Free" is 00 in SMGP and 01 in CMPP.
    let Meaning::Submit(submission) = Smgp::meaning(&SmgpPdu::Submit(Box::new(one))) else {
        panic!("no Submit")
    };
    assert_eq!((&submission.fields.fee_type[..], submission.wants_report), (&b"01"[..], Some(true)));
    let long = submit(0x30, "SMGP Submit b");
    assert_eq!((long.destinations.len(), long.tlvs.octet(tag::TP_UDHI)), (2, Some(1)));
    assert_eq!(
        (&long.tlvs.text(tag::LINK_ID)[..], &long.tlvs.text(tag::MSG_SRC)[..]),
        (&b"LINK0001"[..], &b"12100001"[..])
    );
    let Meaning::Submit(submission) = Smgp::meaning(&SmgpPdu::Submit(Box::new(long))) else {
        panic!("no Submit")
    };
    let part = submission.content.part.unwrap();
    assert_eq!((part.total, part.number, submission.content.udhi), (2, 1, true));
    assert_eq!(submission.fields.product, "112000000000000004079");
    let report = decode(0x30, &named(0x30, "SMGP Deliver, report"));
    let Meaning::Report(report) = Smgp::meaning(&report) else { panic!("no report") };
    assert_eq!((&report.submission[..], &report.word[..]), (&b"01006107080907000017"[..], &b"DELIVRD"[..]));
    assert_eq!((&report.subscriber[..], &report.source[..]), (&b"13300133000"[..], &b"10659012"[..]));
}

#[test]
fn check_19_version_1_3_has_no_fixed_fee() {
    let octets = named(0x13, "SMGP 1.3 Submit a");
    assert_eq!(octets.len() + 6, named(0x30, "SMGP Submit a").len());
    assert_eq!(submit(0x13, "SMGP 1.3 Submit a").source, "10659012");
}

#[test]
fn check_09_16_counts_and_optional_fields() {
    let one = submit(0x30, "SMGP Submit a");
    for count in [1_usize, 99, 100] {
        let submit = Submit { destinations: vec![Bytes::from_static(b"133"); count], ..one.clone() };
        let octets = encoded(&SmgpPdu::Submit(Box::new(submit.clone())), 0x30);
        assert_eq!(octets.len(), 126 + 21 * count + 4);
        assert_eq!(decode(0x30, &octets), SmgpPdu::Submit(Box::new(submit)));
    }
    for count in [0, 3, 101] {
        let mut octets = encoded(&SmgpPdu::Submit(Box::new(one.clone())), 0x30);
        octets[116] = count;
        assert_eq!(body_error(0x30, &octets), DecodeError::Invalid(10));
    }
    let past = [&encoded(&SmgpPdu::Submit(Box::new(one)), 0x30)[..], &[0, 3, 0, 9, 1]].concat();
    assert_eq!(body_error(0x30, &past), DecodeError::Invalid(10));
}

#[test]
fn check_18_an_id_that_is_no_bcd_is_kept() {
    let answer = SmgpPdu::SubmitAnswer { id: SmgpMsgId([0xAB; 10]), status: 0 };
    assert_eq!(decode(0x30, &encoded(&answer, 0x30)), answer);
    let Meaning::SubmitAnswer { id, .. } = Smgp::meaning(&answer) else { panic!("no answer") };
    assert_eq!(id.unwrap(), "abababababababababab");
}

#[test]
fn check_21_the_login_of_the_vectors_is_written_and_answered() {
    let now = Instant::now();
    let request = OwnLogin {
        name: b"12345678",
        secret: b"1234",
        timestamp: 708_090_713,
        version: 0x30,
        unpadded: false,
    };
    let (connect, answer) = (named(0x30, "SMGP 3.0 Login"), named(0x30, "SMGP Login_Resp, Status 0"));
    let login = Smgp::login(&request);
    let mut sp = Session::sp(now, SessionOptions::default(), 0x30, &login);
    assert_eq!(sp.output().to_vec(), connect);
    let mut gateway = Session::gateway(now, SessionOptions::default());
    gateway.receive(now, &connect);
    let Some(Event::Login(pdu)) = gateway.poll_event() else { panic!("no login") };
    let Meaning::Login(login) = Smgp::meaning(&pdu) else { panic!("no login") };
    assert!(login.submits && login.receives);
    gateway.accept_login(now, &Smgp::login_answer(0, &login, 0x30, b"1234"), 0x30);
    assert_eq!(gateway.output().to_vec(), answer);
    sp.receive(now, &answer);
    let Some(Event::LoggedIn(answer)) = sp.poll_event() else { panic!("not logged in") };
    assert!(Smgp::proves_secret(&answer, &pdu, b"1234"));
    for version in [0x13, 0x20, 0x30, 0x31] {
        assert_eq!(Smgp::version_status(version), 0);
    }
    assert_eq!((Smgp::version_status(0x40), Smgp::version_status(0x7F)), (22, 22));
}
