//! An independent codec as an oracle: it decodes our PDUs, and encodes them to the same octets.

use crate::properties::generate::{Flavour, request, response};
use bytes::BytesMut;
use proptest::prelude::*;
use rusmpp_core::command::owned::Command;
use rusmpp_core::decode::owned::DecodeWithLength;
use rusmpp_core::encode::{Encode, Length};
use smpp::{PduFrame, Request, decode_request, decode_response, encode_request, encode_response};

/// The PDU as the other codec encodes it after decoding ours.
fn through_the_other(ours: &[u8]) -> Result<Vec<u8>, String> {
    let mut body = BytesMut::from(&ours[4..]);
    let length = body.len();
    let (command, read) = Command::decode(&mut body, length).map_err(|error| format!("{error:?}"))?;
    if read != length || !body.is_empty() {
        return Err(format!("it read {read} of {length} octets"));
    }
    let mut theirs = vec![0; 4 + command.length()];
    let total = u32::try_from(theirs.len()).map_err(|error| error.to_string())?;
    theirs[..4].copy_from_slice(&total.to_be_bytes());
    command.encode(&mut theirs[4..]);
    Ok(theirs)
}

proptest! {
    #[test]
    fn requests(request in request(Flavour::Pure), sequence in 1..0x7FFF_FFFF_u32) {
        let mut ours = BytesMut::new();
        encode_request(&mut ours, sequence, &request);
        let theirs = through_the_other(&ours);
        prop_assert_eq!(theirs.as_deref(), Ok(&ours[..]));
        let PduFrame::Complete(header, body) = PduFrame::cut(&mut BytesMut::from(&theirs.unwrap()[..]), 66_000) else {
            panic!("no whole PDU")
        };
        prop_assert_eq!(decode_request(header.command, body), Ok(request));
    }

    #[test]
    fn responses((command, status, response) in response(Flavour::Pure), sequence in 1..0x7FFF_FFFF_u32) {
        let mut ours = BytesMut::new();
        encode_response(&mut ours, command, status, sequence, &response);
        let theirs = through_the_other(&ours);
        prop_assert_eq!(theirs.as_deref(), Ok(&ours[..]));
        let PduFrame::Complete(header, body) = PduFrame::cut(&mut BytesMut::from(&theirs.unwrap()[..]), 66_000) else {
            panic!("no whole PDU")
        };
        prop_assert_eq!(decode_response(header.command, body), response);
    }
}

#[test]
fn the_oracle_rejects_invalid_pdus() {
    // An oracle that decodes everything would prove nothing.
    let mut sm = smpp::Sm::default();
    sm.source.value = model::AddressBytes::from_slice(b"1234");
    let mut ours = BytesMut::new();
    encode_request(&mut ours, 1, &Request::SubmitSm(sm));
    assert!(through_the_other(&ours).is_ok());
    let last = ours.len() - 1;
    ours[last] = 9;
    assert!(through_the_other(&ours).is_err());
}
