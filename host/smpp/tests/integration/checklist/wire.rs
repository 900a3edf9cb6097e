//! The vectors through the codec: decoded, checked, and encoded again.

use crate::checklist::vectors::*;
use bytes::BytesMut;
use smpp::{
    BodyError, CommandId, CommandStatus, Destination, Header, PduFrame, Request, Response, decode_request,
    decode_response, encode_request, encode_response, tag,
};

fn cut(octets: &[u8]) -> (Header, bytes::Bytes) {
    let mut input = BytesMut::from(octets);
    match PduFrame::cut(&mut input, 66_000) {
        PduFrame::Complete(header, body) => {
            assert!(input.is_empty());
            (header, body)
        }
        other => panic!("{other:?}"),
    }
}

fn request(octets: &[u8]) -> Result<Request, BodyError> {
    let (header, body) = cut(octets);
    decode_request(header.command, body)
}

#[test]
fn request_vectors_round_trip() {
    let vectors = [V01, V04, V07, V09, V11, V21, V23, V24, V28, V29, V31, V32, V33, V35, V36, V37];
    for octets in vectors.map(hex).into_iter().chain([v27()]) {
        let (header, _) = cut(&octets);
        let request = request(&octets).unwrap_or_else(|error| panic!("{error} in {octets:02x?}"));
        assert_eq!(request.command(), header.command);
        assert_eq!(request.fits(), Ok(()));
        let mut out = BytesMut::new();
        encode_request(&mut out, header.sequence, &request);
        assert_eq!(out, octets);
    }
}

#[test]
fn response_vectors_round_trip() {
    for octets in [V02, V03, V05, V06, V08, V10, V12, V14, V30, V34, V38].map(hex) {
        let (header, body) = cut(&octets);
        let response = decode_response(header.command, body);
        let mut out = BytesMut::new();
        encode_response(&mut out, header.command, header.status, header.sequence, &response);
        assert_eq!(out, octets);
    }
}

#[test]
fn faulty_vectors_get_the_right_status() {
    let status = |octets: &str| request(&hex(octets)).map_err(|error| error.status);
    assert_eq!(status(V13), Err(CommandStatus::RINVCMDID));
    assert_eq!(status(V17), Err(CommandStatus::RINVMSGLEN));
    assert!(status(V18).is_ok());
    assert_eq!(status(V19), Err(CommandStatus::RINVMSGLEN));
    assert_eq!(status(V20), Err(CommandStatus::RINVTLVSTREAM));
    assert_eq!(status(V22), Err(CommandStatus::RINVSRCADR));
    assert_eq!(status(V25), Ok(Request::EnquireLink));
    for octets in [V15, V16] {
        assert!(matches!(
            PduFrame::cut(&mut BytesMut::from(&hex(octets)[..]), 66_000),
            PduFrame::InvalidLength(_)
        ));
    }
    let (header, body) = cut(&hex(V26));
    assert_eq!(header.status, CommandStatus::RSUBMITFAIL);
    assert_eq!(decode_response(header.command, body).message_id(), b"");
}

#[test]
fn the_vectors_decode_to_the_expected_values() {
    let Ok(Request::SubmitMulti(multi)) = request(&hex(V33)) else { panic!() };
    assert_eq!(multi.destinations.len(), 3);
    assert_eq!(multi.destinations[2], Destination::List(bytes::Bytes::from_static(b"vip")));
    assert_eq!(multi.sm.short_message.as_ref(), b"Hi");
    let (header, body) = cut(&hex(V34));
    let Response::SubmitMulti(multi) = decode_response(header.command, body) else { panic!() };
    assert_eq!((multi.message_id.as_ref(), multi.unsuccess.len()), (&b"0000012346"[..], 1));
    assert_eq!(multi.unsuccess[0].status, CommandStatus::RINVDSTADR);
    let (header, body) = cut(&hex(V30));
    let Response::Query(query) = decode_response(header.command, body) else { panic!() };
    assert_eq!((query.final_date.as_ref(), query.message_state), (&b"261120093100000+"[..], 2));
    let Ok(Request::AlertNotification(alert)) = request(&hex(V36)) else { panic!() };
    assert_eq!(alert.tlvs.u8(tag::MS_AVAILABILITY_STATUS), Some(0));
    let Ok(Request::ReplaceSm(replace)) = request(&hex(V32)) else { panic!() };
    assert_eq!(
        (replace.message_id.as_ref(), replace.short_message.as_ref()),
        (&b"0000012345"[..], &b"New"[..])
    );
    let Ok(Request::CancelSm(cancel)) = request(&hex(V31)) else { panic!() };
    assert_eq!((cancel.message_id.as_ref(), cancel.destination.is_empty()), (&b"0000012345"[..], true));
    let Ok(Request::Outbind(outbind)) = request(&hex(V28)) else { panic!() };
    assert_eq!((outbind.system_id.as_ref(), outbind.password.as_ref()), (&b"SMSC"[..], &b"pw"[..]));
}

#[test]
fn passwords_are_not_shown() {
    for octets in [V01, V28] {
        let shown = format!("{:?}", request(&hex(octets)).unwrap());
        assert!(!shown.contains("secret") && !shown.contains("pw\""), "{shown}");
    }
}

#[test]
fn refusals_are_a_header_and_an_enquire_link_resp_has_sixteen_octets() {
    let body = Response::id(bytes::Bytes::from_static(b"0000012345"));
    for command in [0x8000_0004, 0x8000_0005, 0x8000_0009, 0x8000_0021, 0x8000_0003, 0x8000_0103] {
        let mut out = BytesMut::new();
        encode_response(&mut out, CommandId(command), CommandStatus::RTHROTTLED, 9, &body);
        assert_eq!(out.len(), 16);
    }
    for command in [0x8000_0015, 0x8000_0006, 0x8000_0007, 0x8000_0008, 0x8000_0000] {
        let mut out = BytesMut::new();
        encode_response(&mut out, CommandId(command), CommandStatus::ROK, 9, &body);
        assert_eq!(out.len(), 16);
    }
}

#[test]
fn a_field_that_does_not_fit_is_named_and_never_breaks_the_pdu() {
    let long = bytes::Bytes::from(vec![b'1'; 300]);
    let mut sm = crate::checklist::harness::hello();
    sm.destination = model::Address::international(&"1".repeat(21));
    assert_eq!(Request::SubmitSm(sm.clone()).fits().unwrap_err().status, CommandStatus::RINVDSTADR);
    sm = crate::checklist::harness::hello();
    sm.short_message = long.clone();
    assert_eq!(Request::SubmitSm(sm.clone()).fits().unwrap_err().status, CommandStatus::RINVMSGLEN);
    sm = crate::checklist::harness::hello();
    sm.validity_period = bytes::Bytes::from_static(b"261231235959");
    assert_eq!(Request::SubmitSm(sm.clone()).fits().unwrap_err().status, CommandStatus::RINVEXPIRY);
    sm.service_type = long.clone();
    sm.source.value = model::AddressBytes::from_slice(&long);
    sm.short_message = long;
    let mut out = BytesMut::new();
    encode_request(&mut out, 1, &Request::SubmitSm(sm));
    let Ok(Request::SubmitSm(cut)) = request(&out) else { panic!("a broken PDU was written") };
    assert_eq!((cut.service_type.len(), cut.source.value.len(), cut.short_message.len()), (5, 20, 254));
}
