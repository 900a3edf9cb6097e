//! Test vectors from Osmocom programs.

use bytes::{Bytes, BytesMut};
use gsup::ccm::{self, Ccm, Identity};
use gsup::ctrl::{CtrlReply, CtrlSubscriber};
use gsup::ipa::{self, IpaFrame};
use gsup::{
    AlertReason, DecodeError, GmmCause, GsupImsi, GsupMessage, IsdnNumber, MessageClass, MessageType,
    RpAddress, RpCause, Tag, peek,
};

fn hex(text: &str) -> Bytes {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let octet = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(octet).collect()
}

fn read(text: &str) -> GsupMessage {
    let octets = hex(text);
    let message = GsupMessage::decode(&octets).unwrap();
    assert_eq!(message.encode(), octets, "read and written again");
    assert_eq!(peek(&octets), Ok((message.kind, message.imsi)));
    message
}

fn imsi() -> GsupImsi {
    "001010000000001".parse().unwrap()
}

/// A request of OsmoMSC 1.9.0 with an SMS-SUBMIT "Hi" to 43211234.
const MO: &str = "24 0108 00010100000000f1 40012a 4108 03 91 9199004144f4 4208 02 91 5155214365f7 \
                  430d 0105 0791341254f3 00 00 02 c834 0a0102";

#[test]
fn mo_forward_sm_request() {
    let message = read(MO);
    assert_eq!(message.kind, MessageType::MO_FORWARD_SM_REQUEST);
    assert_eq!(message.imsi, imsi());
    assert_eq!(message.reference(), Some(0x2a));
    let centre = IsdnNumber { ton_npi: 0x91, digits: "19990014444".into() };
    assert_eq!(message.destination(), Ok(Some(RpAddress::ServiceCentre(centre))));
    let origin = message.origin().unwrap().unwrap();
    assert_eq!(origin, RpAddress::Msisdn(IsdnNumber::international("+15551234567")));
    assert_eq!(origin.number().map(|number| (number.ton(), number.npi())), Some((1, 1)));
    assert_eq!(message.user_information().unwrap(), hex("0105 0791341254f3 00 00 02 c834"));
    assert_eq!(message.class(), Some(MessageClass::SMS));
    assert_eq!((message.source_name(), message.destination_name()), (None, None));
}

#[test]
fn mo_forward_sm_answers() {
    let request = read(MO);
    assert_eq!(request.accepted(None).encode(), hex("26 0108 00010100000000f1 40012a 0a0102"));
    assert_eq!(
        request.refused(RpCause::UNASSIGNED_NUMBER, None).encode(),
        hex("25 0108 00010100000000f1 40012a 440101 0a0102")
    );
    // Behind an HLR that routes by name, from an MSC of version 1.12 or later.
    let request = request.with_source_name(&"MSC-1".parse().unwrap());
    let own = "SMSC-1".parse().unwrap();
    assert_eq!(
        request.accepted(Some(&own)).encode(),
        hex("26 0108 00010100000000f1 40012a 0a0102 6007 534d53432d3100 6106 4d53432d3100")
    );
}

#[test]
fn mt_forward_sm_request() {
    let tpdu = hex("04 0b 91 5155214365f7 00 00 62112111838000 02 c834");
    let centre = IsdnNumber::international("19990014444");
    let own = "SMSC-1".parse().unwrap();
    let message = GsupMessage::mt_forward(imsi(), &centre, &tpdu, true, Some(&own)).unwrap();
    assert_eq!(
        message.encode(),
        hex("28 0108 00010100000000f1 4001ff 4109 01 00010100000000f1 4208 03 91 9199004144f4 \
             4315 040b915155214365f7000062112111838000 02c834 450101 0a0102 6007 534d53432d3100")
    );
    assert!(message.more_messages());
    let alone = GsupMessage::mt_forward(imsi(), &centre, &tpdu, false, None).unwrap();
    assert!(!alone.more_messages() && alone.get(Tag::SM_RP_MMS).is_none());
    assert_eq!(alone.source_name(), None);
}

#[test]
fn mt_forward_sm_answers() {
    let taken = read("2a 0108 00010100000000f1 400100 0a0102");
    assert!(taken.kind.is_result() && taken.reference() == Some(0));
    let full = read("29 0108 00010100000000f1 400100 440116 0a0102");
    assert_eq!(full.rp_cause(), Some(RpCause::MEMORY_CAPACITY_EXCEEDED));
    assert_eq!(full.rp_cause().unwrap().to_string(), "memory capacity exceeded (22)");
    let gone = read("29 0108 00010100000000f1 02010a");
    assert_eq!(gone.cause(), Some(GmmCause::IMPLICITLY_DETACHED));
    assert!(gone.kind.is_error());
    let nowhere = read("4e 0108 00010100000000f1");
    assert_eq!(nowhere.kind, MessageType::ROUTING_ERROR);
    assert!(!nowhere.kind.is_result() && !nowhere.kind.is_error());
}

#[test]
fn ready_for_sm_request() {
    let ready = read("2c 0108 00010100000000f1 400107 460102 0a0102");
    assert_eq!(ready.alert_reason(), Some(AlertReason::MEMORY_AVAILABLE));
    assert_eq!(ready.accepted(None).encode(), hex("2e 0108 00010100000000f1 400107 0a0102"));
}

#[test]
fn msisdn_element_has_an_inner_length_and_no_type() {
    let inserted = read("10 0108 00010100000000f1 0807 06 5155214365f7 280102");
    assert_eq!(inserted.msisdn().as_deref(), Some("15551234567"));
    let built =
        GsupMessage::new(MessageType::INSERT_DATA_REQUEST, imsi()).with_msisdn("15551234567").unwrap();
    assert_eq!(built.encode(), hex("10 0108 00010100000000f1 0807 06 5155214365f7"));
    for broken in ["0807 07 5155214365f7", "0801 00", "0800", "0803 02 f151"] {
        assert_eq!(read(&format!("10 0108 00010100000000f1 {broken}")).msisdn(), None, "{broken}");
    }
}

#[test]
fn unknown_elements_are_preserved() {
    let message = read("24 0108 00010100000000f1 ee03010203 40012a 7f00 40012b 0a0102");
    assert_eq!(message.reference(), Some(0x2b), "of two the last counts");
    assert_eq!(message.get(Tag(0xee)), Some(&[1, 2, 3][..]));
    let changed = message.with_reference(9).encode();
    assert_eq!(changed, hex("24 0108 00010100000000f1 400109 ee03010203 7f00 0a0102"));
}

#[test]
fn invalid_messages_are_rejected() {
    let error = |text: &str| GsupMessage::decode(&hex(text)).unwrap_err();
    assert_eq!(error(""), DecodeError::Empty);
    assert_eq!(error("24"), DecodeError::NoImsi(0x24));
    assert_eq!(error("24 40012a 0108 00010100000000f1"), DecodeError::NoImsi(0x24), "it must be first");
    assert_eq!(error("24 0108 000101000000"), DecodeError::NoImsi(0x24));
    for broken in
        ["0100", "0102 0001", "0108 0001010000000011", "0108 000101000000000a", "0109 000101000000000000"]
    {
        assert_eq!(error(&format!("24 {broken}")), DecodeError::BadImsi(0x24), "{broken}");
    }
    assert_eq!(error("24 0108 00010100000000f1 4002 2a"), DecodeError::Short { kind: 0x24, tag: 0x40 });
    assert_eq!(error("24 0108 00010100000000f1 40"), DecodeError::Short { kind: 0x24, tag: 0x40 });
}

#[test]
fn invalid_addresses_are_rejected() {
    for broken in ["", "00 91", "04 91 21", "01", "03", "03 11 21", "03 91 f121", "ff 00"] {
        let value = hex(broken);
        assert_eq!(RpAddress::decode(Tag::SM_RP_DA, &value), Err(DecodeError::Address(0x41)), "{broken}");
    }
    assert_eq!(RpAddress::decode(Tag::SM_RP_DA, &hex("ff")), Ok(RpAddress::Absent));
    let empty_number = IsdnNumber { ton_npi: 0x91, digits: String::new() };
    let address = RpAddress::decode(Tag::SM_RP_OA, &hex("02 91"));
    assert_eq!(address, Ok(RpAddress::Msisdn(empty_number)), "a subscriber without a number");
}

#[test]
fn identity_exchange() {
    let mut input = BytesMut::from(&hex("0011 fe 04 0108 0107 0102 0103 0104 0105 0101 0100 0001 fe 00")[..]);
    let Some(IpaFrame::Ccm(question)) = IpaFrame::take(&mut input, ipa::DEFAULT_MAX_PAYLOAD).unwrap() else {
        panic!()
    };
    let Ccm::IdGet(wanted) = Ccm::decode(&question) else { panic!() };
    assert_eq!(wanted, [8, 7, 2, 3, 4, 5, 1, 0]);
    let identity = Identity::new("SMSC-1", "switchyard").unwrap();
    let mut output = BytesMut::new();
    Ccm::IdResponse(identity.response(&wanted)).put(&mut output);
    assert_eq!(
        output,
        hex(
            "0057 fe 05 0007 08 302f302f3000 0013 07 30303a30303a30303a30303a30303a303000 0002 02 00 0002 03 00 \
             000c 04 73776974636879617264 00 000c 05 73776974636879617264 00 0008 01 534d53432d3100 0008 00 534d53432d3100"
        )
    );
    let Some(IpaFrame::Ccm(answer)) = IpaFrame::take(&mut output, ipa::DEFAULT_MAX_PAYLOAD).unwrap() else {
        panic!()
    };
    let Ccm::IdResponse(read) = Ccm::decode(&answer) else { panic!() };
    assert_eq!(read.serial(), Some("SMSC-1"));
    assert_eq!(read.get(ccm::tag::UNIT_ID), Some(&b"0/0/0"[..]));
    let Some(IpaFrame::Ccm(ping)) = IpaFrame::take(&mut input, ipa::DEFAULT_MAX_PAYLOAD).unwrap() else {
        panic!()
    };
    assert_eq!(Ccm::decode(&ping), Ccm::Ping);
    // Name and unit id are always included.
    let response = identity.response(&[1]);
    assert_eq!((response.serial(), response.get(ccm::tag::UNIT_ID)), (Some("SMSC-1"), Some(&b"0/0/0"[..])));
}

#[test]
fn names_over_31_octets_are_rejected() {
    assert!(Identity::new(&"x".repeat(31), "").is_ok());
    let error = Identity::new(&"x".repeat(32), "").unwrap_err();
    assert!(
        error.to_string().starts_with("a name on GSUP has at most 31 octets, this one has 32"),
        "{error}"
    );
    assert!(Identity::new("", "").is_err() && Identity::new("SMSC 1", "").is_err());
}

#[test]
fn frames() {
    let error = |text: &str| IpaFrame::take(&mut BytesMut::from(&hex(text)[..]), 16).unwrap_err().to_string();
    assert!(error("0000 fe").starts_with("an IPA frame of length 0 on stream 0xfe"));
    assert!(error("0011 ee").starts_with("an IPA frame of 17 octets on stream 0xee, the limit is 16"));
    for (text, frame) in [
        ("0001 fe 00", IpaFrame::Ccm(hex("00"))),
        ("0002 ee 05 04", IpaFrame::Gsup(hex("04"))),
        ("0002 ee 00 47", IpaFrame::Ctrl(hex("47"))),
        ("0001 ee 06", IpaFrame::Other { stream: 0xee, payload: hex("06") }),
        ("0001 05 01", IpaFrame::Other { stream: 5, payload: hex("01") }),
    ] {
        let octets = hex(text);
        let mut input = BytesMut::from(&octets[..]);
        assert_eq!(IpaFrame::take(&mut input, 16), Ok(Some(frame.clone())), "{text}");
        assert!(input.is_empty());
        let mut output = BytesMut::new();
        frame.put(&mut output);
        assert_eq!(output, octets);
        for cut in 0..octets.len() {
            let mut input = BytesMut::from(&octets[..cut]);
            assert_eq!(IpaFrame::take(&mut input, 16), Ok(None), "{text}, {cut} octets of it");
            assert_eq!(input.len(), cut);
        }
    }
}

#[test]
fn ctrl_lines_are_parsed() {
    let found = CtrlReply::parse(b"GET_REPLY 7 subscriber.by-msisdn-15551234567.imsi 001010000000001");
    let variable = "subscriber.by-msisdn-15551234567.imsi";
    assert_eq!(found, Some(CtrlReply::Value { id: 7, variable, value: "001010000000001" }));
    let unknown = CtrlReply::parse(b"ERROR 8 No such subscriber.");
    assert_eq!(unknown, Some(CtrlReply::Error { id: Some(8), text: "No such subscriber." }));
    let broken = CtrlReply::parse(b"ERROR err Command parser error.");
    assert_eq!(broken, Some(CtrlReply::Error { id: None, text: "Command parser error." }));
    assert_eq!(CtrlReply::parse(b"TRAP 0 a b c"), Some(CtrlReply::Trap { variable: "a", value: "b c" }));
    assert_eq!(CtrlReply::parse(b"GET 7 x"), None);
    assert_eq!(CtrlReply::parse(b"GET_REPLY x y z"), None);
}

#[test]
fn subscriber_info_is_parsed() {
    let info = "\nid\t1\nimsi\t001010000000001\nmsisdn\t15551234567\nnam_cs\ttrue\nvlr_number\tMSC-1\nms_purged_cs\tfalse";
    let subscriber = CtrlSubscriber::parse(info).unwrap();
    assert_eq!(subscriber.imsi, imsi());
    assert_eq!(subscriber.msisdn.as_deref(), Some("15551234567"));
    assert_eq!(subscriber.vlr_number.as_deref(), Some("MSC-1"));
    let never_seen = CtrlSubscriber::parse("id\t1\nimsi\t001010000000001").unwrap();
    assert_eq!((never_seen.msisdn, never_seen.vlr_number), (None, None));
    assert_eq!(CtrlSubscriber::parse("id\t1"), None);
}
