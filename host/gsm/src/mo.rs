//! Mobile-originated messages: from SMS-SUBMIT to a submission, and from the engine's answer to the handset's answer.

mod transactions;

pub(crate) use transactions::{MoAdmission, MoTransactions};

use crate::mapping;
use crate::options::GsmOptions;
use crate::subscribers::Subscribers;
use bytes::Bytes;
use gsup::{IpaName, RpAddress, RpCause};
use model::{
    Address, AddressBytes, DlrRequest, Message, MessageId, MessageKind, PluginVersion, Priority, Refusal,
    RejectReason, RoutingDecision, Text, Timestamp, Verdict,
};
use numbering::DialledNumber;
use std::sync::{Arc, LazyLock};
use tpdu::{Command, FailureCause, FromMs, Parameters, Submit, SubmitReport};

/// Placeholder until a message is routed.
static UNROUTED: LazyLock<Arc<PluginVersion>> =
    LazyLock::new(|| Arc::new(PluginVersion { plugin: String::new(), version: String::new() }));

/// The refusal of an MO.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MoRefusal {
    /// RP cause; the only part that OsmoMSC passes to the handset.
    pub(crate) cause: RpCause,
    /// TP failure cause in the SMS-SUBMIT-REPORT.
    pub(crate) failure: FailureCause,
    /// Reason for the log.
    pub(crate) reason: &'static str,
}

const fn mo_refusal(cause: RpCause, failure: FailureCause, reason: &'static str) -> MoRefusal {
    MoRefusal { cause, failure, reason }
}

/// An MO that is not routed yet.
#[derive(Debug)]
pub(crate) struct MoSubmission {
    pub(crate) message: Message,
    reject_duplicates: bool,
    /// TP-MR and TP-DA.
    handset_key: (u8, AddressBytes),
    /// Digest of the TPDU.
    digest: u64,
}

/// An MO that is not a submission.
#[derive(Debug)]
pub(crate) enum MoReadError {
    Refused(MoRefusal),
    Command(Command),
}

/// Maps a refusal of the engine to causes (3GPP TS 24.011 §8.2.5.4, 23.040 §9.2.3.22).
fn refusal_for(refusal: Refusal) -> MoRefusal {
    match refusal {
        Refusal::QueueFull => mo_refusal(RpCause::CONGESTION, FailureCause::SC_BUSY, "queue full"),
        Refusal::Throttled | Refusal::QuotaExceeded | Refusal::KeysFull { .. } => {
            mo_refusal(RpCause::CONGESTION, FailureCause::SC_BUSY, "throttled")
        }
        Refusal::ShuttingDown => {
            mo_refusal(RpCause::TEMPORARY_FAILURE, FailureCause::SC_FAILURE, "shutting down")
        }
        Refusal::Rejected(RejectReason::TryLater) => {
            mo_refusal(RpCause::TEMPORARY_FAILURE, FailureCause::SC_BUSY, "routing requests a retry")
        }
        Refusal::Rejected(RejectReason::NoRoute | RejectReason::InvalidDestination) => {
            mo_refusal(RpCause::UNASSIGNED_NUMBER, FailureCause::INVALID_SME_ADDRESS, "no route")
        }
        Refusal::Rejected(RejectReason::Prohibited | RejectReason::OptedOut) => {
            mo_refusal(RpCause::CALL_BARRED, FailureCause::DESTINATION_BARRED, "prohibited")
        }
        Refusal::Rejected(
            RejectReason::NotAuthorised
            | RejectReason::InvalidSource
            | RejectReason::NoCredit
            | RejectReason::PriceTooHigh,
        ) => mo_refusal(RpCause::NOT_SUBSCRIBED, FailureCause::NO_SC_SUBSCRIPTION, "not allowed"),
        Refusal::Expired | Refusal::BadSchedule => {
            mo_refusal(RpCause::REJECTED, FailureCause::VALIDITY_PERIOD_NOT_SUPPORTED, "already expired")
        }
        Refusal::UnknownMessage | Refusal::WrongState => {
            mo_refusal(RpCause::REJECTED, FailureCause::COMMAND_NOT_ACTIONED, "no such pending message")
        }
        Refusal::KeyReused => {
            mo_refusal(RpCause::REJECTED, FailureCause::DUPLICATE_REJECTED, "reference reused")
        }
        Refusal::Internal | Refusal::Rejected(RejectReason::Fault) => {
            mo_refusal(RpCause::TEMPORARY_FAILURE, FailureCause::SC_FAILURE, "internal error")
        }
    }
}

/// Maps a decoding error to causes.
fn refusal_for_error(error: &tpdu::Error) -> MoRefusal {
    let cause = match error {
        tpdu::Error::MessageType(_) => RpCause::NOT_IMPLEMENTED,
        _ => RpCause::INVALID_MANDATORY,
    };
    mo_refusal(cause, error.failure_cause(), "undecodable TPDU")
}

/// Reads an MO request.
pub(crate) fn read_mo(
    request: &gsup::GsupMessage,
    options: &GsmOptions,
    subscribers: &Subscribers,
    unix_millis: u64,
) -> Result<MoSubmission, MoReadError> {
    let unreadable = |reason| {
        MoReadError::Refused(mo_refusal(RpCause::INVALID_MANDATORY, FailureCause::UNSPECIFIED, reason))
    };
    if options.only_our_service_centre {
        let called = request.destination().ok().flatten();
        let digits = called.as_ref().and_then(RpAddress::number).map(|number| number.digits.as_bytes());
        if digits != Some(&options.service_centre.value[..]) {
            let reason = "addressed to another service centre";
            return Err(MoReadError::Refused(mo_refusal(
                RpCause::UNASSIGNED_NUMBER,
                FailureCause::NO_SC_SUBSCRIPTION,
                reason,
            )));
        }
    }
    let tpdu = request.user_information().ok_or_else(|| unreadable("no TPDU"))?;
    let submit = match FromMs::decode(&tpdu, false)
        .map_err(|error| MoReadError::Refused(refusal_for_error(&error)))?
    {
        FromMs::Submit(submit) => submit,
        FromMs::Command(command) => return Err(MoReadError::Command(command)),
        FromMs::DeliverReport(_) => return Err(unreadable("unexpected report")),
    };
    let source = sender(request, options, subscribers).ok_or(MoReadError::Refused(mo_refusal(
        RpCause::UNIDENTIFIED_SUBSCRIBER,
        FailureCause::NO_SC_SUBSCRIPTION,
        "subscriber without a number",
    )))?;
    message(&submit, source, options, unix_millis, digest_of(&tpdu)).map_err(MoReadError::Refused)
}

/// The sender's number: from the MSC, or as learnt. If `check_sender` is set, the number from the MSC is ignored.
fn sender(
    request: &gsup::GsupMessage,
    options: &GsmOptions,
    subscribers: &Subscribers,
) -> Option<AddressBytes> {
    if options.check_sender {
        return subscribers.msisdn_of(&request.imsi);
    }
    let origin = request.origin().ok().flatten();
    let digits = origin.as_ref().and_then(RpAddress::number).map(|number| number.digits.as_bytes());
    match digits.filter(|digits| !digits.is_empty()) {
        Some(digits) => {
            let msisdn = AddressBytes::from_slice(digits);
            subscribers.set_msisdn(&request.imsi, &msisdn);
            Some(msisdn)
        }
        None => subscribers.msisdn_of(&request.imsi),
    }
}

fn message(
    submit: &Submit,
    source: AddressBytes,
    options: &GsmOptions,
    unix_millis: u64,
    digest: u64,
) -> Result<MoSubmission, MoRefusal> {
    let (ton, npi, value) = submit.destination.to_smpp();
    let dialled = Address::new(ton, npi, &value);
    let bad_number =
        mo_refusal(RpCause::UNASSIGNED_NUMBER, FailureCause::INVALID_SME_ADDRESS, "not a number of the plan");
    let destination = match &options.plan {
        None if dialled.is_empty() => return Err(bad_number),
        None => dialled.clone(),
        Some(plan) => {
            let caller = std::str::from_utf8(&source).ok();
            let called = DialledNumber::of(&dialled).ok_or(bad_number)?;
            match plan.normalise(&called, caller) {
                Ok(number) => number.address(),
                Err(numbering::NumberRefusal::Invalid(_)) => return Err(bad_number),
                Err(numbering::NumberRefusal::NotAllowed(_)) => {
                    return Err(mo_refusal(
                        RpCause::CALL_BARRED,
                        FailureCause::DESTINATION_BARRED,
                        "refused by the number plan",
                    ));
                }
            }
        }
    };
    let expires_at = submit.validity.expires_at(unix_millis);
    if expires_at.is_some_and(|expires_at| expires_at <= unix_millis) {
        return Err(refusal_for(Refusal::Expired));
    }
    let default = Timestamp(unix_millis) + options.mo_validity;
    let text = tpdu::smpp::from_air(submit.data_coding, &submit.user_data);
    let reported = submit.status_report_request;
    let message = Message {
        id: MessageId::default(),
        kind: MessageKind::Text,
        origin: options.peer,
        source: Address { ton: 1, npi: 1, value: source },
        destination,
        service_type: Bytes::new(),
        protocol_id: submit.protocol_id,
        esm_class: if submit.reply_path { 0x80 } else { 0 },
        priority: Priority::default(),
        dlr_request: if reported { DlrRequest::FINAL } else { DlrRequest::NONE },
        replace_if_present: false,
        submission: None,
        text: Text { octets: text.octets, data_coding: text.data_coding, udhi: text.udhi, payload: false },
        tlvs: Bytes::new(),
        protocol_fields: if reported {
            mapping::submission_tlv(submit.message_reference, &submit.destination)
        } else {
            Bytes::new()
        },
        sealed: None,
        accepted_at: Timestamp::default(),
        scheduled: None,
        expires_at: expires_at.map_or(default, Timestamp),
        routed: RoutingDecision::new(Verdict::Reject(RejectReason::NoRoute), UNROUTED.clone()),
    };
    Ok(MoSubmission {
        message,
        reject_duplicates: submit.reject_duplicates,
        handset_key: (submit.message_reference, AddressBytes::from_slice(&value)),
        digest,
    })
}

/// TP-RD in the first octet of an SMS-SUBMIT (3GPP TS 23.040 §9.2.3.25).
const REJECT_DUPLICATES: u8 = 0x04;

/// The digest of an SMS-SUBMIT, used to recognise repetitions. TP-RD is masked, since handsets set it only in a
/// repetition.
fn digest_of(tpdu: &[u8]) -> u64 {
    match tpdu.split_first() {
        Some((first, rest)) => {
            digest(std::iter::once(first & !REJECT_DUPLICATES).chain(rest.iter().copied()))
        }
        None => digest(std::iter::empty()),
    }
}

/// FNV-1a: stable across restarts. A collision affects only the sender's own messages.
fn digest(octets: impl Iterator<Item = u8>) -> u64 {
    octets.fold(0xCBF2_9CE4_8422_2325, |hash, octet| (hash ^ u64::from(octet)).wrapping_mul(0x0100_0000_01B3))
}

/// The negative answer to an MO, with an SMS-SUBMIT-REPORT that carries the TP failure cause. A positive answer has no
/// report, since it would only carry the time.
pub(crate) fn refusal_message(
    request: &gsup::GsupMessage,
    mo_refusal: MoRefusal,
    name: &IpaName,
    unix_millis: u64,
    zone: i8,
) -> gsup::GsupMessage {
    let answer = request.refused(mo_refusal.cause, Some(name));
    let report = mapping::timestamp(Timestamp(unix_millis), zone).and_then(|service_centre_time| {
        let parameters = Parameters::default();
        SubmitReport { cause: Some(mo_refusal.failure), service_centre_time, parameters }.encode()
    });
    match report {
        // The report has some ten octets; an answer without it is valid, too.
        Ok(report) => answer.clone().with_user_information(&report).unwrap_or(answer),
        Err(_) => answer,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use gsup::{GsupImsi, IsdnNumber, MessageType};
    use model::PeerId;
    use tpdu::{ToMs, UserData, Validity};

    pub(crate) const WALL: u64 = 1_703_367_462_000;

    pub(crate) fn imsi() -> GsupImsi {
        "001010000000001".parse().unwrap()
    }

    pub(crate) fn submit() -> Submit {
        Submit {
            message_reference: 42,
            destination: tpdu::TpAddress::international("4915112345"),
            user_data: UserData::pack(tpdu::Alphabet::Gsm7, false, b"hello").unwrap(),
            ..Submit::default()
        }
    }

    pub(crate) fn request(tpdu: &[u8]) -> gsup::GsupMessage {
        gsup::GsupMessage::new(MessageType::MO_FORWARD_SM_REQUEST, imsi())
            .with_reference(7)
            .with_destination(&RpAddress::ServiceCentre(IsdnNumber::international("19990014444")))
            .and_then(|message| {
                message.with_origin(&RpAddress::Msisdn(IsdnNumber::international("15551234567")))
            })
            .and_then(|message| message.with_user_information(tpdu))
            .unwrap()
    }

    fn options() -> GsmOptions {
        GsmOptions::new("home", PeerId(3))
    }

    pub(crate) fn accepted_submission(submit: &Submit) -> MoSubmission {
        let request = request(&submit.encode().unwrap());
        read_mo(&request, &options(), &Subscribers::default(), WALL).unwrap()
    }

    fn refusal_of(request: &gsup::GsupMessage, options: &GsmOptions) -> MoRefusal {
        match read_mo(request, options, &Subscribers::default(), WALL) {
            Err(MoReadError::Refused(mo_refusal)) => mo_refusal,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn submit_becomes_a_message_of_the_network() {
        let message = accepted_submission(&Submit { status_report_request: true, ..submit() }).message;
        assert_eq!((message.origin, message.dlr_request), (PeerId(3), DlrRequest::FINAL));
        assert_eq!(message.source, Address::international("15551234567"));
        assert_eq!(message.destination, Address::international("4915112345"));
        assert_eq!(&message.text.octets[..], b"hello");
        assert_eq!(mapping::read_submission_tlv(&message.protocol_fields).unwrap().0, 42);
        assert_eq!(message.expires_at, Timestamp(WALL) + options().mo_validity);
        let hour = accepted_submission(&Submit { validity: Validity::Relative(11), ..submit() }).message;
        assert_eq!(hour.expires_at, Timestamp(WALL + 3_600_000));
    }

    #[test]
    fn invalid_submits_are_refused_with_a_cause() {
        let refused = |tpdu: &[u8]| refusal_of(&request(tpdu), &options());
        assert_eq!(refused(&[]).cause, RpCause::INVALID_MANDATORY);
        assert_eq!(refused(&[3, 0, 0]).cause, RpCause::NOT_IMPLEMENTED);
        let over = Validity::Absolute(tpdu::TimeStamp::at(WALL - 1000, 0).unwrap());
        let late = refused(&Submit { validity: over, ..submit() }.encode().unwrap());
        assert_eq!(late.failure, FailureCause::VALIDITY_PERIOD_NOT_SUPPORTED);
        let no_number =
            refused(&Submit { destination: tpdu::TpAddress::default(), ..submit() }.encode().unwrap());
        assert_eq!(no_number.cause, RpCause::UNASSIGNED_NUMBER);
        let strict = GsmOptions { only_our_service_centre: true, ..options() };
        let other = refusal_of(&request(&submit().encode().unwrap()), &strict);
        assert_eq!(other.cause, RpCause::UNASSIGNED_NUMBER);
    }

    #[test]
    fn missing_sender_is_taken_from_known_subscribers() {
        let bare = gsup::GsupMessage::new(MessageType::MO_FORWARD_SM_REQUEST, imsi());
        let bare = bare.with_user_information(&submit().encode().unwrap()).unwrap();
        assert_eq!(refusal_of(&bare, &options()).cause, RpCause::UNIDENTIFIED_SUBSCRIBER);
        let subscribers = Subscribers::default();
        subscribers.set_msisdn(&imsi(), &AddressBytes::from_slice(b"15550000001"));
        let submission = read_mo(&bare, &options(), &subscribers, WALL).unwrap();
        assert_eq!(submission.message.source, Address::international("15550000001"));
    }

    #[test]
    fn check_sender_uses_the_hlr_number() {
        let strict = GsmOptions { check_sender: true, ..options() };
        let request = request(&submit().encode().unwrap());
        assert_eq!(refusal_of(&request, &strict).cause, RpCause::UNIDENTIFIED_SUBSCRIBER);
        let subscribers = Subscribers::default();
        subscribers.set_msisdn(&imsi(), &AddressBytes::from_slice(b"15550000001"));
        let submission = read_mo(&request, &strict, &subscribers, WALL).unwrap();
        assert_eq!(submission.message.source, Address::international("15550000001"));
        assert_eq!(subscribers.imsi_of(b"15551234567"), None);
    }

    #[test]
    fn every_refusal_has_a_cause_and_a_submit_report() {
        let name = "SMSC-1".parse().unwrap();
        let request = request(&submit().encode().unwrap());
        for refusal in [Refusal::QueueFull, Refusal::Rejected(RejectReason::NoCredit), Refusal::KeyReused] {
            let mo_refusal = refusal_for(refusal);
            let answer = refusal_message(&request, mo_refusal, &name, WALL, 0);
            assert_eq!((answer.kind, answer.reference()), (MessageType::MO_FORWARD_SM_ERROR, Some(7)));
            assert_eq!(answer.rp_cause(), Some(mo_refusal.cause));
            let report = ToMs::decode(&answer.user_information().unwrap(), true).unwrap();
            assert!(matches!(report, ToMs::SubmitReport(report) if report.cause == Some(mo_refusal.failure)));
        }
    }
}
