//! Arbitrary octets through every decoder: no panic, and decoded values survive an encoding round trip.
#![no_main]

use bytes::{Bytes, BytesMut};
use libfuzzer_sys::fuzz_target;
use smpp::{
    CommandId, CommandStatus, PduFrame, Tlvs, decode_request, decode_response, delivery_receipt,
    encode_request, encode_response, message_id::MessageIdForm, segmentation, text, time,
};

const COMMANDS: [u32; 17] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 0x0B, 0x15, 0x21, 0x102, 0x103, 0x111, 0x112, 0x113];

fn body_of(pdu: &mut BytesMut) -> Bytes {
    match PduFrame::cut(pdu, u32::MAX) {
        PduFrame::Complete(_, body) if pdu.is_empty() => body,
        other => panic!("we wrote no whole PDU: {other:?}"),
    }
}

fn as_request(command: CommandId, body: &Bytes) {
    let Ok(request) = decode_request(command, body.clone()) else { return };
    // A time of 12 to 15 characters is read, but not written; all other values fit.
    if request.fits().is_err() {
        return;
    }
    let mut out = BytesMut::new();
    encode_request(&mut out, 7, &request);
    let again = decode_request(command, body_of(&mut out));
    assert_eq!(again.as_ref(), Ok(&request), "{command:?}");
}

fn as_response(command: CommandId, body: &Bytes) {
    let response = decode_response(command.response(), body.clone());
    let mut out = BytesMut::new();
    encode_response(&mut out, command.response(), CommandStatus::ROK, 7, &response);
    let once = decode_response(command.response(), body_of(&mut out));
    // Ids are read at any length and written with at most 64 octets, so only the second round trip must be exact.
    let mut out = BytesMut::new();
    encode_response(&mut out, command.response(), CommandStatus::ROK, 7, &once);
    assert_eq!(decode_response(command.response(), body_of(&mut out)), once, "{command:?}");
}

fuzz_target!(|octets: &[u8]| {
    let body = Bytes::copy_from_slice(octets);
    for command in COMMANDS.map(CommandId) {
        as_request(command, &body);
        as_response(command, &body);
    }

    let mut stream = BytesMut::from(octets);
    while let PduFrame::Complete(header, body) = PduFrame::cut(&mut stream, 66_000) {
        let _ = decode_request(header.command, body.clone());
        let _ = decode_response(header.command, body);
    }

    let tlvs = Tlvs::from_raw(body.clone());
    let _ = tlvs.check_lengths();
    assert_eq!(tlvs.without(|_| false), tlvs);
    assert!(tlvs.without(|_| true).is_empty());

    let Some((&coding, rest)) = octets.split_first() else { return };
    let _ = text::decode(coding, rest);
    let _ = time::parse(rest, model_now());
    let _ = time::parse_receipt(rest);
    let _ = segmentation::segment_info(true, rest, &tlvs);
    let _ = segmentation::segment_info(false, rest, &tlvs);
    let whole = Bytes::copy_from_slice(rest);
    for room in [1, 133, 134, 153] {
        assert_eq!(segmentation::split_text(coding, &whole, room).concat(), rest);
    }
    for form in [MessageIdForm::AsIs, MessageIdForm::HexToDecimal, MessageIdForm::DecimalToHex] {
        let _ = delivery_receipt::read(coding, coding, rest, rest, rest, &tlvs, form);
    }
});

fn model_now() -> model::Timestamp {
    model::Timestamp(1_795_000_000_000)
}
