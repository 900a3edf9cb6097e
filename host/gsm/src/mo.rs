//! Short messages from handsets: from SMS-SUBMIT to a submission, and from the engine's word to the handset's answer.

mod book;

pub(crate) use book::{Asked, MoBook};

use crate::mapping;
use crate::options::GsmOptions;
use crate::subscribers::Subscribers;
use bytes::Bytes;
use gsup::{Name, RpAddress, RpCause};
use model::{
    Address, AddressBytes, DecidedBy, Kind, Message, MessageId, Priority, ReceiptRequest, Refusal,
    RejectReason, Routed, Text, Timestamp, Verdict,
};
use numbering::Called;
use std::sync::{Arc, LazyLock};
use tpdu::{Command, FailureCause, FromMs, Parameters, Submit, SubmitReport};

/// What stands in a message until it has been routed.
static UNROUTED: LazyLock<Arc<DecidedBy>> =
    LazyLock::new(|| Arc::new(DecidedBy { plugin: String::new(), version: String::new() }));

/// A no to a handset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct No {
    /// For the relay layer; all that a handset behind OsmoMSC gets to see.
    pub(crate) cause: RpCause,
    /// For the report in it.
    pub(crate) failure: FailureCause,
    /// For the log.
    pub(crate) why: &'static str,
}

const fn no(cause: RpCause, failure: FailureCause, why: &'static str) -> No {
    No { cause, failure, why }
}

/// A submission, still to be routed.
#[derive(Debug)]
pub(crate) struct Submission {
    pub(crate) message: Message,
    reject_duplicates: bool,
    /// TP-MR and TP-DA.
    named: (u8, AddressBytes),
    /// Of the TPDU.
    digest: u64,
}

/// What is no submission.
#[derive(Debug)]
pub(crate) enum Unread {
    Refused(No),
    Command(Command),
}

/// The refusal of a submission in the handset's terms (3GPP TS 24.011 §8.2.5.4, 23.040 §9.2.3.22).
fn of_refusal(refusal: Refusal) -> No {
    match refusal {
        Refusal::QueueFull => no(RpCause::CONGESTION, FailureCause::SC_BUSY, "queue full"),
        Refusal::Throttled | Refusal::KeysFull { .. } => {
            no(RpCause::CONGESTION, FailureCause::SC_BUSY, "throttled")
        }
        Refusal::ShuttingDown => no(RpCause::TEMPORARY_FAILURE, FailureCause::SC_FAILURE, "shutting down"),
        Refusal::Rejected(RejectReason::TryLater) => {
            no(RpCause::TEMPORARY_FAILURE, FailureCause::SC_BUSY, "routing says later")
        }
        Refusal::Rejected(RejectReason::NoRoute | RejectReason::InvalidDestination) => {
            no(RpCause::UNASSIGNED_NUMBER, FailureCause::INVALID_SME_ADDRESS, "no route")
        }
        Refusal::Rejected(RejectReason::Prohibited | RejectReason::OptedOut) => {
            no(RpCause::CALL_BARRED, FailureCause::DESTINATION_BARRED, "prohibited")
        }
        Refusal::Rejected(
            RejectReason::NotAuthorised | RejectReason::InvalidSource | RejectReason::NoCredit,
        ) => no(RpCause::NOT_SUBSCRIBED, FailureCause::NO_SC_SUBSCRIPTION, "not allowed"),
        Refusal::Expired | Refusal::BadSchedule => {
            no(RpCause::REJECTED, FailureCause::VALIDITY_PERIOD_NOT_SUPPORTED, "already expired")
        }
        Refusal::UnknownMessage | Refusal::WrongState => {
            no(RpCause::REJECTED, FailureCause::COMMAND_NOT_ACTIONED, "no such message waits")
        }
        Refusal::KeyReused => no(RpCause::REJECTED, FailureCause::DUPLICATE_REJECTED, "reference used again"),
        Refusal::Internal | Refusal::Rejected(RejectReason::Fault) => {
            no(RpCause::TEMPORARY_FAILURE, FailureCause::SC_FAILURE, "a fault of ours")
        }
    }
}

/// What cannot be read.
fn of_error(error: &tpdu::Error) -> No {
    let cause = match error {
        tpdu::Error::MessageType(_) => RpCause::NOT_IMPLEMENTED,
        _ => RpCause::INVALID_MANDATORY,
    };
    no(cause, error.failure_cause(), "not readable")
}

/// Reads what a handset sends.
pub(crate) fn read(
    request: &gsup::Message,
    options: &GsmOptions,
    known: &Subscribers,
    wall: u64,
) -> Result<Submission, Unread> {
    let unreadable = |why| Unread::Refused(no(RpCause::INVALID_MANDATORY, FailureCause::UNSPECIFIED, why));
    if options.only_our_service_centre {
        let called = request.destination().ok().flatten();
        let digits = called.as_ref().and_then(RpAddress::number).map(|number| number.digits.as_bytes());
        if digits != Some(&options.service_centre.value[..]) {
            let why = "another service centre's";
            return Err(Unread::Refused(no(
                RpCause::UNASSIGNED_NUMBER,
                FailureCause::NO_SC_SUBSCRIPTION,
                why,
            )));
        }
    }
    let tpdu = request.user_information().ok_or_else(|| unreadable("without a TPDU"))?;
    let submit = match FromMs::decode(&tpdu, false).map_err(|error| Unread::Refused(of_error(&error)))? {
        FromMs::Submit(submit) => submit,
        FromMs::Command(command) => return Err(Unread::Command(command)),
        FromMs::DeliverReport(_) => return Err(unreadable("a report to nothing")),
    };
    let source = sender(request, options, known).ok_or(Unread::Refused(no(
        RpCause::UNIDENTIFIED_SUBSCRIBER,
        FailureCause::NO_SC_SUBSCRIPTION,
        "a subscriber without a number",
    )))?;
    message(&submit, source, options, wall, digest_of(&tpdu)).map_err(Unread::Refused)
}

/// The sender's number: as its MSC says, or as it was learnt. Where senders are checked, the MSC's word does not count.
fn sender(request: &gsup::Message, options: &GsmOptions, known: &Subscribers) -> Option<AddressBytes> {
    if options.check_sender {
        return known.msisdn_of(&request.imsi);
    }
    let said = request.origin().ok().flatten();
    let digits = said.as_ref().and_then(RpAddress::number).map(|number| number.digits.as_bytes());
    match digits.filter(|digits| !digits.is_empty()) {
        Some(digits) => {
            let msisdn = AddressBytes::from_slice(digits);
            known.numbered(&request.imsi, &msisdn);
            Some(msisdn)
        }
        None => known.msisdn_of(&request.imsi),
    }
}

fn message(
    submit: &Submit,
    source: AddressBytes,
    options: &GsmOptions,
    wall: u64,
    digest: u64,
) -> Result<Submission, No> {
    let (ton, npi, value) = submit.destination.to_smpp();
    let dialled = Address::new(ton, npi, &value);
    let bad_number =
        no(RpCause::UNASSIGNED_NUMBER, FailureCause::INVALID_SME_ADDRESS, "no number of the plan's");
    let destination = match &options.plan {
        None if dialled.is_empty() => return Err(bad_number),
        None => dialled.clone(),
        Some(plan) => {
            let caller = std::str::from_utf8(&source).ok();
            let called = Called::of(&dialled).ok_or(bad_number)?;
            match plan.normalise(&called, caller) {
                Ok(number) => number.address(),
                Err(numbering::Refused::Invalid(_)) => return Err(bad_number),
                Err(numbering::Refused::NotAllowed(_)) => {
                    return Err(no(
                        RpCause::CALL_BARRED,
                        FailureCause::DESTINATION_BARRED,
                        "not allowed by the plan",
                    ));
                }
            }
        }
    };
    let ends = submit.validity.ends(wall);
    if ends.is_some_and(|ends| ends <= wall) {
        return Err(of_refusal(Refusal::Expired));
    }
    let default = Timestamp(wall) + options.mo_validity;
    let text = tpdu::smpp::from_air(submit.data_coding, &submit.user_data);
    let reported = submit.status_report_request;
    let message = Message {
        id: MessageId::default(),
        kind: Kind::Text,
        origin: options.peer,
        source: Address { ton: 1, npi: 1, value: source },
        destination,
        service_type: Bytes::new(),
        protocol_id: submit.protocol_id,
        esm_class: if submit.reply_path { 0x80 } else { 0 },
        priority: Priority::default(),
        receipts: if reported { ReceiptRequest::FINAL } else { ReceiptRequest::NONE },
        replace_if_present: false,
        submission: None,
        text: Text { octets: text.octets, data_coding: text.data_coding, udhi: text.udhi, payload: false },
        tlvs: if reported {
            mapping::keep(submit.message_reference, &submit.destination)
        } else {
            Bytes::new()
        },
        accepted_at: Timestamp::default(),
        scheduled: None,
        expires_at: ends.map_or(default, Timestamp),
        routed: Routed::new(Verdict::Reject(RejectReason::NoRoute), UNROUTED.clone()),
    };
    Ok(Submission {
        message,
        reject_duplicates: submit.reject_duplicates,
        named: (submit.message_reference, AddressBytes::from_slice(&value)),
        digest,
    })
}

/// TP-RD in the first octet of an SMS-SUBMIT (3GPP TS 23.040 §9.2.3.25).
const REJECT_DUPLICATES: u8 = 0x04;

/// The digest of an SMS-SUBMIT by which a repetition is known. TP-RD is left out: handsets set it in a repetition whose
/// first transmission did not have it.
fn digest_of(tpdu: &[u8]) -> u64 {
    match tpdu.split_first() {
        Some((first, rest)) => {
            digest(std::iter::once(first & !REJECT_DUPLICATES).chain(rest.iter().copied()))
        }
        None => digest(std::iter::empty()),
    }
}

/// FNV-1a: it must be the same after a restart, and a colliding message could only harm its own sender.
fn digest(octets: impl Iterator<Item = u8>) -> u64 {
    octets.fold(0xCBF2_9CE4_8422_2325, |hash, octet| (hash ^ u64::from(octet)).wrapping_mul(0x0100_0000_01B3))
}

/// The no to a handset, with a report that says more than the relay layer's cause. (A yes needs none: it could only tell the
/// time.)
pub(crate) fn refused(request: &gsup::Message, no: No, name: &Name, wall: u64, zone: i8) -> gsup::Message {
    let answer = request.refused(no.cause, Some(name));
    let report = mapping::stamp(Timestamp(wall), zone).and_then(|service_centre_time| {
        let parameters = Parameters::default();
        SubmitReport { cause: Some(no.failure), service_centre_time, parameters }.encode()
    });
    match report {
        // It has some ten octets; an answer without it is a good one too.
        Ok(report) => answer.clone().with_user_information(&report).unwrap_or(answer),
        Err(_) => answer,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use gsup::{Imsi, MessageType, Number};
    use model::PeerId;
    use tpdu::{ToMs, UserData, Validity};

    pub(crate) const WALL: u64 = 1_703_367_462_000;

    pub(crate) fn imsi() -> Imsi {
        "001010000000001".parse().unwrap()
    }

    pub(crate) fn submit() -> Submit {
        Submit {
            message_reference: 42,
            destination: tpdu::Address::international("4915112345"),
            user_data: UserData::pack(tpdu::Alphabet::Gsm7, false, b"hello").unwrap(),
            ..Submit::default()
        }
    }

    pub(crate) fn request(tpdu: &[u8]) -> gsup::Message {
        gsup::Message::new(MessageType::MO_FORWARD_SM_REQUEST, imsi())
            .with_reference(7)
            .with_destination(&RpAddress::ServiceCentre(Number::international("19990014444")))
            .and_then(|message| message.with_origin(&RpAddress::Msisdn(Number::international("15551234567"))))
            .and_then(|message| message.with_user_information(tpdu))
            .unwrap()
    }

    fn options() -> GsmOptions {
        GsmOptions::new("home", PeerId(3))
    }

    pub(crate) fn taken(submit: &Submit) -> Submission {
        let request = request(&submit.encode().unwrap());
        read(&request, &options(), &Subscribers::default(), WALL).unwrap()
    }

    fn no_of(request: &gsup::Message, options: &GsmOptions) -> No {
        match read(request, options, &Subscribers::default(), WALL) {
            Err(Unread::Refused(no)) => no,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_submit_becomes_a_message_of_the_network() {
        let message = taken(&Submit { status_report_request: true, ..submit() }).message;
        assert_eq!((message.origin, message.receipts), (PeerId(3), ReceiptRequest::FINAL));
        assert_eq!(message.source, Address::international("15551234567"));
        assert_eq!(message.destination, Address::international("4915112345"));
        assert_eq!(&message.text.octets[..], b"hello");
        assert_eq!(mapping::kept(&message.tlvs).unwrap().0, 42);
        assert_eq!(message.expires_at, Timestamp(WALL) + options().mo_validity);
        let hour = taken(&Submit { validity: Validity::Relative(11), ..submit() }).message;
        assert_eq!(hour.expires_at, Timestamp(WALL + 3_600_000));
    }

    #[test]
    fn what_cannot_be_taken_is_refused_with_a_cause() {
        let refused = |tpdu: &[u8]| no_of(&request(tpdu), &options());
        assert_eq!(refused(&[]).cause, RpCause::INVALID_MANDATORY);
        assert_eq!(refused(&[3, 0, 0]).cause, RpCause::NOT_IMPLEMENTED);
        let over = Validity::Absolute(tpdu::TimeStamp::at(WALL - 1000, 0).unwrap());
        let late = refused(&Submit { validity: over, ..submit() }.encode().unwrap());
        assert_eq!(late.failure, FailureCause::VALIDITY_PERIOD_NOT_SUPPORTED);
        let nobody = refused(&Submit { destination: tpdu::Address::default(), ..submit() }.encode().unwrap());
        assert_eq!(nobody.cause, RpCause::UNASSIGNED_NUMBER);
        let strict = GsmOptions { only_our_service_centre: true, ..options() };
        let other = no_of(&request(&submit().encode().unwrap()), &strict);
        assert_eq!(other.cause, RpCause::UNASSIGNED_NUMBER);
    }

    #[test]
    fn a_sender_that_the_msc_does_not_name_is_who_was_learnt() {
        let bare = gsup::Message::new(MessageType::MO_FORWARD_SM_REQUEST, imsi());
        let bare = bare.with_user_information(&submit().encode().unwrap()).unwrap();
        assert_eq!(no_of(&bare, &options()).cause, RpCause::UNIDENTIFIED_SUBSCRIBER);
        let known = Subscribers::default();
        known.numbered(&imsi(), &AddressBytes::from_slice(b"15550000001"));
        let submission = read(&bare, &options(), &known, WALL).unwrap();
        assert_eq!(submission.message.source, Address::international("15550000001"));
    }

    #[test]
    fn where_senders_are_checked_their_number_is_the_hlrs() {
        let strict = GsmOptions { check_sender: true, ..options() };
        let request = request(&submit().encode().unwrap());
        assert_eq!(no_of(&request, &strict).cause, RpCause::UNIDENTIFIED_SUBSCRIBER);
        let known = Subscribers::default();
        known.numbered(&imsi(), &AddressBytes::from_slice(b"15550000001"));
        let submission = read(&request, &strict, &known, WALL).unwrap();
        assert_eq!(submission.message.source, Address::international("15550000001"));
        assert_eq!(known.imsi_of(b"15551234567"), None);
    }

    #[test]
    fn every_refusal_has_a_cause_and_a_report() {
        let name = "SMSC-1".parse().unwrap();
        let request = request(&submit().encode().unwrap());
        for refusal in [Refusal::QueueFull, Refusal::Rejected(RejectReason::NoCredit), Refusal::KeyReused] {
            let no = of_refusal(refusal);
            let answer = refused(&request, no, &name, WALL, 0);
            assert_eq!((answer.kind, answer.reference()), (MessageType::MO_FORWARD_SM_ERROR, Some(7)));
            assert_eq!(answer.rp_cause(), Some(no.cause));
            let report = ToMs::decode(&answer.user_information().unwrap(), true).unwrap();
            assert!(matches!(report, ToMs::SubmitReport(report) if report.cause == Some(no.failure)));
        }
    }
}
