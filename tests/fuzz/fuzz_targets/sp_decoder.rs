//! Arbitrary octets through the decoders of CMPP and SMGP: no panic, decoded PDUs survive an encoding round trip, and
//! the messages in them can be encoded again.
#![no_main]

use bytes::{Bytes, BytesMut};
use cmpp::Cmpp;
use libfuzzer_sys::fuzz_target;
use smgp::{ReportText, Smgp};
use sp_session::{HEADER_LENGTH, Header, Meaning, PduRole, SpFields, SpProtocol};

fn check_round_trip<P: SpProtocol>(version: u8, command: u32, body: &[u8]) {
    let length = u32::try_from(HEADER_LENGTH + body.len()).unwrap_or(u32::MAX);
    let Ok(pdu) = P::decode(version, Header { length, command, sequence: 7 }, body) else { return };
    let mut out = BytesMut::new();
    // A count of one octet may be more than we write, and the answer to a login may have another version's layout.
    let has_layout = !matches!(P::role(&pdu), PduRole::LoginAnswer(_));
    if has_layout && P::encode(&pdu, version, 7, &mut out).is_ok() {
        let header = Header::peek(&out).expect("we wrote no header");
        assert_eq!((header.length as usize, header.command, header.sequence), (out.len(), command, 7));
        let again = P::decode(version, header, &out[HEADER_LENGTH..]);
        assert_eq!(again.as_ref(), Ok(&pdu), "a PDU became another");
    }
    let written = match P::meaning(&pdu) {
        Meaning::Submit(submission) => Some(P::submit(&submission)),
        Meaning::Deliver(delivery) => Some(P::deliver(&delivery)),
        Meaning::Report(report) => Some(P::report(&report, version)),
        Meaning::Login(login) => Some(P::login_answer(0, &login, version, b"secret")),
        _ => None,
    };
    if let Some(written) = written {
        let mut out = BytesMut::new();
        let _ = P::encode(&written, version, 1, &mut out);
    }
}

fn stream<P: SpProtocol>(version: u8, mut octets: &[u8]) {
    while let Some(header) = Header::peek(octets) {
        let length = header.length as usize;
        if length < HEADER_LENGTH || length > octets.len() {
            break;
        }
        check_round_trip::<P>(version, header.command, &octets[HEADER_LENGTH..length]);
        octets = &octets[length..];
    }
}

fuzz_target!(|octets: &[u8]| {
    for command in (1..=9).flat_map(|command| [command, command | 1 << 31]) {
        for version in [0x20, 0x30] {
            check_round_trip::<Cmpp>(version, command, octets);
        }
        for version in [0x13, 0x30] {
            check_round_trip::<Smgp>(version, command, octets);
        }
    }
    stream::<Cmpp>(0x20, octets);
    stream::<Cmpp>(0x30, octets);
    stream::<Smgp>(0x30, octets);
    if let Some(report) = ReportText::read(octets) {
        let again = ReportText::read(&report.write()).expect("we wrote no report");
        assert_eq!(again.id, report.id);
    }
    let fields = SpFields::read(&Bytes::copy_from_slice(octets));
    let mut tlvs = BytesMut::new();
    fields.append_to(&mut tlvs);
    assert_eq!(SpFields::read(&tlvs.freeze()), fields);
    let _ = sp_session::state_of(octets);
});
