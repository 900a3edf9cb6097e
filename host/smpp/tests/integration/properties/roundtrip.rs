//! Every PDU survives encoding and decoding.

use crate::properties::generate::{Flavour, request, response};
use bytes::BytesMut;
use proptest::prelude::*;
use smpp::{CommandStatus, PduFrame, decode_request, decode_response, encode_request, encode_response};

proptest! {
    #[test]
    fn requests(request in request(Flavour::Anything), sequence in any::<u32>()) {
        prop_assert_eq!(request.fits(), Ok(()));
        let mut out = BytesMut::new();
        encode_request(&mut out, sequence, &request);
        let PduFrame::Complete(header, body) = PduFrame::cut(&mut out, 66_000) else { panic!("no whole PDU") };
        prop_assert!(out.is_empty());
        prop_assert_eq!(header.sequence, sequence);
        prop_assert_eq!(header.status, CommandStatus::ROK);
        prop_assert_eq!(header.command, request.command());
        prop_assert_eq!(decode_request(header.command, body), Ok(request));
    }

    #[test]
    fn responses((command, status, response) in response(Flavour::Anything), sequence in any::<u32>()) {
        let mut out = BytesMut::new();
        encode_response(&mut out, command, status, sequence, &response);
        let PduFrame::Complete(header, body) = PduFrame::cut(&mut out, 66_000) else { panic!("no whole PDU") };
        prop_assert!(out.is_empty());
        prop_assert_eq!((header.command, header.status, header.sequence), (command, status, sequence));
        prop_assert_eq!(decode_response(command, body), response);
    }

    #[test]
    fn a_body_that_is_cut_short_is_an_error_or_a_shorter_body(
        request in request(Flavour::Anything),
        keep in any::<prop::sample::Index>(),
    ) {
        let mut out = BytesMut::new();
        encode_request(&mut out, 1, &request);
        let body = out.split_off(16).freeze();
        let short = body.slice(..keep.index(body.len() + 1));
        if let Ok(decoded) = decode_request(request.command(), short.clone()) {
            let mut again = BytesMut::new();
            encode_request(&mut again, 1, &decoded);
            prop_assert!(again.len() - 16 <= short.len());
        }
    }
}
