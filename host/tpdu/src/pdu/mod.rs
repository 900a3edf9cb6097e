//! The six types of TPDU (3GPP TS 23.040 §9.2.2).

mod command;
mod deliver;
mod deliver_report;
mod parameters;
mod status_report;
mod submit;
mod submit_report;

pub use command::{Command, CommandType};
pub use deliver::Deliver;
pub use deliver_report::DeliverReport;
pub use parameters::Parameters;
pub use status_report::StatusReport;
pub use submit::Submit;
pub use submit_report::SubmitReport;

use crate::{Error, Result};

/// Maximum length of a TPDU in octets.
pub const MAX_TPDU: usize = 164;

/// TP-UDHI, in the first octet of all types.
const UDHI: u8 = 0x40;
/// TP-MMS in TPDUs to the handset: set if *no* other message waits.
const NO_MORE: u8 = 0x04;
/// TP-LP in TPDUs to the handset.
const LOOP_PREVENTION: u8 = 0x08;
/// TP-SRI, TP-SRR and TP-SRQ.
const STATUS: u8 = 0x20;
/// TP-RP.
const REPLY_PATH: u8 = 0x80;

const fn bit(set: bool, bit: u8) -> u8 {
    if set { bit } else { 0 }
}

fn within(out: Vec<u8>) -> Result<Vec<u8>> {
    if out.len() > MAX_TPDU { Err(Error::LongTpdu(out.len())) } else { Ok(out) }
}

/// A TPDU from a handset.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FromMs {
    /// SMS-SUBMIT.
    Submit(Submit),
    /// SMS-DELIVER-REPORT.
    DeliverReport(DeliverReport),
    /// SMS-COMMAND.
    Command(Command),
}

impl FromMs {
    /// Decodes a TPDU. Set `failed` if it was received in an RP-ERROR or a GSUP error; only there a report has a
    /// failure cause. Octets after the last field are ignored.
    ///
    /// # Errors
    /// If the TPDU is invalid. [`Error::failure_cause`] gives the cause for the service centre's answer.
    pub fn decode(octets: &[u8], failed: bool) -> Result<Self> {
        match octets.first().ok_or(Error::Short("first octet"))? & 3 {
            0 => DeliverReport::decode(octets, failed).map(Self::DeliverReport),
            1 => Submit::decode(octets).map(Self::Submit),
            2 => Command::decode(octets).map(Self::Command),
            other => Err(Error::MessageType(other)),
        }
    }

    /// Encodes the TPDU.
    ///
    /// # Errors
    /// If a field does not fit.
    pub fn encode(&self) -> Result<Vec<u8>> {
        match self {
            Self::Submit(submit) => submit.encode(),
            Self::DeliverReport(report) => report.encode(),
            Self::Command(command) => command.encode(),
        }
    }
}

/// A TPDU from a service centre.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ToMs {
    /// SMS-DELIVER.
    Deliver(Deliver),
    /// SMS-SUBMIT-REPORT.
    SubmitReport(SubmitReport),
    /// SMS-STATUS-REPORT.
    StatusReport(StatusReport),
}

impl ToMs {
    /// Decodes a TPDU as a handset does; `failed` as in [`FromMs::decode`]. The reserved message type is read as
    /// SMS-DELIVER.
    ///
    /// # Errors
    /// If the TPDU is invalid.
    pub fn decode(octets: &[u8], failed: bool) -> Result<Self> {
        match octets.first().ok_or(Error::Short("first octet"))? & 3 {
            1 => SubmitReport::decode(octets, failed).map(Self::SubmitReport),
            2 => StatusReport::decode(octets).map(Self::StatusReport),
            _ => Deliver::decode(octets).map(Self::Deliver),
        }
    }

    /// Encodes the TPDU.
    ///
    /// # Errors
    /// If a field does not fit.
    pub fn encode(&self) -> Result<Vec<u8>> {
        match self {
            Self::Deliver(deliver) => deliver.encode(),
            Self::SubmitReport(report) => report.encode(),
            Self::StatusReport(report) => report.encode(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{TimeStamp, TpAddress, Validity};

    fn unhex(text: &str) -> Vec<u8> {
        let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
        digits
            .chunks(2)
            .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
            .collect()
    }

    #[test]
    fn submit_fields() {
        let octets = unhex("31 2A 0B 91 5155214365F7 00 00 A7 0A E8329BFD4697D9EC37");
        let FromMs::Submit(submit) = FromMs::decode(&octets, false).unwrap() else { panic!() };
        assert!(submit.status_report_request && !submit.reject_duplicates && !submit.reply_path);
        assert_eq!((submit.message_reference, submit.destination.text()), (0x2A, "15551234567".to_owned()));
        assert_eq!(submit.validity, Validity::Relative(0xA7));
        assert_eq!(submit.user_data.unpack(crate::Alphabet::Gsm7), b"hellohello");
        assert_eq!(submit.encode().unwrap(), octets);
    }

    #[test]
    fn deliver_clears_the_bit_for_more_messages() {
        let octets = unhex("04 0B 91 9199004144F4 00 08 32213231732 42B 04 4F60597D");
        let ToMs::Deliver(mut deliver) = ToMs::decode(&octets, false).unwrap() else { panic!() };
        assert!(!deliver.more_messages && !deliver.user_data.udhi);
        assert_eq!(deliver.originator, TpAddress::international("19990014444"));
        assert_eq!(deliver.service_centre_time, TimeStamp::at(1_703_367_462_000, -32).unwrap());
        assert_eq!(deliver.encode().unwrap(), octets);
        deliver.more_messages = true;
        assert_eq!(deliver.encode().unwrap()[0], 0);
        let reserved = [&[7][..], &octets[1..]].concat();
        assert!(matches!(ToMs::decode(&reserved, false), Ok(ToMs::Deliver(_))));
    }

    #[test]
    fn status_report_with_and_without_parameters() {
        let octets = unhex("06 2A 0B 91 5155214365F7 3221323173242B 3221323173342B 00");
        let ToMs::StatusReport(mut report) = ToMs::decode(&octets, false).unwrap() else { panic!() };
        assert_eq!((report.message_reference, report.status), (0x2A, crate::TpStatus::DELIVERED));
        assert_eq!(
            report.discharge_time.unix_ms().unwrap() - report.service_centre_time.unix_ms().unwrap(),
            1000
        );
        assert_eq!(report.parameters, Parameters::default());
        assert_eq!(report.encode().unwrap(), octets);
        let user_data = crate::UserData::pack(crate::Alphabet::Octets, false, b"\x01\x02").unwrap();
        report.parameters =
            Parameters { protocol_id: Some(0), data_coding: Some(4), user_data: Some(user_data) };
        assert_eq!(report.encode().unwrap(), [&octets[..], &[7, 0, 4, 2, 1, 2]].concat());
        assert_eq!(StatusReport::decode(&report.encode().unwrap()), Ok(report));
    }

    #[test]
    fn failure_cause_is_read_in_rp_error_only() {
        let full =
            DeliverReport { cause: Some(crate::FailureCause::MEMORY_EXCEEDED), ..DeliverReport::default() };
        assert_eq!(full.encode().unwrap(), [0x00, 0xD3, 0x00]);
        assert_eq!(FromMs::decode(&[0x00, 0xD3, 0x00], true), Ok(FromMs::DeliverReport(full)));
        assert_eq!(DeliverReport::decode(&[0x00], false), Ok(DeliverReport::default()));
        assert_eq!(DeliverReport::decode(&[0x00, 0x00], false), Ok(DeliverReport::default()));
        assert_eq!(DeliverReport::decode(&[0x00, 0xD3], true).unwrap().cause.unwrap().0, 0xD3);
        let octets = unhex("01 C5 00 3221323173242B");
        let ToMs::SubmitReport(report) = ToMs::decode(&octets, true).unwrap() else { panic!() };
        assert_eq!(report.cause, Some(crate::FailureCause::DUPLICATE_REJECTED));
        assert_eq!(report.encode().unwrap(), octets);
        let good = SubmitReport { cause: None, ..report };
        assert_eq!(SubmitReport::decode(&good.encode().unwrap(), false), Ok(good));
    }

    #[test]
    fn parameter_indicator_extensions_and_reserved_bits_are_ignored() {
        let report = DeliverReport::decode(&[0x00, 0xFA, 0x80, 0x00, 0x04], false).unwrap();
        assert_eq!(report.parameters, Parameters { data_coding: Some(4), ..Parameters::default() });
        assert_eq!(DeliverReport::decode(&[0x00, 0x80], false), Err(Error::Short("parameter indicator")));
        assert_eq!(DeliverReport::decode(&[0x00, 0x02], false), Err(Error::Short("data coding")));
    }

    #[test]
    fn delete_command() {
        let octets = unhex("22 2B 00 02 2A 0B 91 5155214365F7 00");
        let FromMs::Command(command) = FromMs::decode(&octets, false).unwrap() else { panic!() };
        assert_eq!((command.kind, command.message_number), (CommandType::DELETE, 0x2A));
        assert!(command.status_report_request && command.data.is_empty());
        assert_eq!(command.encode().unwrap(), octets);
    }

    #[test]
    fn truncated_tpdus_name_the_missing_field() {
        let whole = unhex("59 2A 0B 91 5155214365F7 00 00 3221323173242B 08 050003010201 FF FE");
        let long = FromMs::decode(&[&whole[..], &[1, 2, 3]].concat(), false);
        assert_eq!(long, FromMs::decode(&whole, false));
        // The user data is 8 septets, 7 octets.
        for length in 0..whole.len() - 1 {
            let error = FromMs::decode(&whole[..length], false).unwrap_err();
            assert!(matches!(error, Error::Short(_)), "{length}: {error}");
        }
        assert_eq!(FromMs::decode(&[3, 0, 0], false), Err(Error::MessageType(3)));
    }

    #[test]
    fn oversized_lengths_are_rejected() {
        let claim = |length: u8, coding: u8| {
            let mut octets = unhex("01 2A 0B 91 5155214365F7 00");
            octets.extend([coding, length]);
            octets.extend([0; 255]);
            Submit::decode(&octets)
        };
        assert!(claim(160, 0).is_ok() && claim(140, 8).is_ok());
        assert_eq!(claim(161, 0), Err(Error::LongUserData { length: 141, limit: 140, unit: "octets" }));
        assert_eq!(claim(255, 8), Err(Error::LongUserData { length: 255, limit: 140, unit: "octets" }));
    }
}
