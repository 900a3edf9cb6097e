//! From messages to what handsets are given.

use crate::options::GsmOptions;
use bytes::Bytes;
use model::{Address, Kind, Message, ReceiptState, ReceiptText, Timestamp, Verdict};
use tpdu::{Deliver, Parameters, Reference, Status, StatusReport, TimeStamp};

/// Under this tag a message from a handset keeps its TP-MR and the address as the handset wrote it, for the status report.
const SUBMITTED: u16 = 0x15F0;

/// The addresses that a message shows on a leg: source, destination.
pub(crate) fn addresses(message: &Message, leg: u8) -> (&Address, &Address) {
    let rewritten = match &message.routed.verdict {
        Verdict::Forward(legs) => legs.get(usize::from(leg)),
        Verdict::Hold(_) | Verdict::Reject(_) => None,
    };
    (
        rewritten.and_then(|leg| leg.source.as_ref()).unwrap_or(&message.source),
        rewritten.and_then(|leg| leg.destination.as_ref()).unwrap_or(&message.destination),
    )
}

pub(crate) fn stamp(at: Timestamp, zone: i8) -> Result<TimeStamp, tpdu::Error> {
    TimeStamp::at(at.0, zone)
}

/// The TPDUs of a message, one a part; the last one says whether another message waits. All else is a function of what is on
/// disk: by originator and service centre time a handset can tell a repetition that settles a doubt.
pub(crate) fn parts(
    message: &Message,
    leg: u8,
    more: bool,
    options: &GsmOptions,
) -> Result<Vec<Bytes>, tpdu::Error> {
    if let Kind::Receipt(receipt) = &message.kind {
        return Ok(vec![status_report(message, receipt, options)?.encode()?.into()]);
    }
    let (source, _) = addresses(message, leg);
    let shown = options.plan.as_ref().map(|plan| plan.display(source));
    let originator = address(shown.as_ref().unwrap_or(source))?;
    let text = &message.text;
    let reference = Reference::Short(u8::try_from(message.id.0 & 0xFF).unwrap_or(0));
    let air = match tpdu::smpp::to_air(text.data_coding, text.udhi, &text.octets, reference) {
        // Many ESMEs mean Latin-1 by "the default": nothing else has octets over 127.
        Err(tpdu::Error::NotASeptet { .. }) if text.data_coding == 0 && !text.udhi => {
            tpdu::smpp::to_air(3, false, &text.octets, reference)?
        }
        air => air?,
    };
    let last = air.parts.len();
    let deliver = |(index, user_data)| {
        let deliver = Deliver {
            more_messages: index + 1 < last || more,
            loop_prevention: false,
            status_report_indication: false,
            reply_path: message.esm_class & 0x80 != 0,
            originator: originator.clone(),
            protocol_id: message.protocol_id,
            data_coding: air.data_coding,
            service_centre_time: stamp(message.accepted_at, options.zone)?,
            user_data,
        };
        Ok(deliver.encode()?.into())
    };
    air.parts.iter().cloned().enumerate().map(deliver).collect()
}

/// An address as the air has it. What has no type and begins with a plus sign is international.
fn address(address: &Address) -> Result<tpdu::Address, tpdu::Error> {
    let ton = if address.ton == 0 && address.value.first() == Some(&b'+') { 1 } else { address.ton };
    tpdu::Address::from_smpp(ton, address.npi, &address.value)
}

/// What is kept of a submission for its status report.
pub(crate) fn keep(reference: u8, destination: &tpdu::Address) -> Bytes {
    let address = destination.encode().unwrap_or_default();
    let length = u16::try_from(1 + address.len()).unwrap_or(u16::MAX);
    let mut tlv = Vec::with_capacity(5 + address.len());
    tlv.extend(SUBMITTED.to_be_bytes());
    tlv.extend(length.to_be_bytes());
    tlv.push(reference);
    tlv.extend(address);
    tlv.into()
}

/// Reads what [`keep`] wrote.
pub(crate) fn kept(tlvs: &[u8]) -> Option<(u8, tpdu::Address)> {
    let mut rest = tlvs;
    while let [tag_high, tag_low, high, low, after @ ..] = rest {
        let (value, after) = after.split_at_checked(usize::from(u16::from_be_bytes([*high, *low])))?;
        if u16::from_be_bytes([*tag_high, *tag_low]) == SUBMITTED {
            let (reference, address) = value.split_first()?;
            return Some((*reference, tpdu::Address::decode(address).ok()?));
        }
        rest = after;
    }
    None
}

fn status_report(
    message: &Message,
    receipt: &ReceiptText,
    options: &GsmOptions,
) -> Result<StatusReport, tpdu::Error> {
    let (message_reference, recipient) = match kept(&message.tlvs) {
        Some(kept) => kept,
        None => (0, address(&message.source)?),
    };
    Ok(StatusReport {
        more_messages: false,
        loop_prevention: false,
        about_command: false,
        message_reference,
        recipient,
        service_centre_time: stamp(receipt.submitted_at, options.zone)?,
        discharge_time: stamp(receipt.done_at, options.zone)?,
        status: status(receipt.state),
        parameters: Parameters::default(),
    })
}

pub(crate) fn status(state: ReceiptState) -> Status {
    match state {
        ReceiptState::Delivered => Status::DELIVERED,
        ReceiptState::Accepted => Status::FORWARDED,
        ReceiptState::Expired => Status::EXPIRED,
        ReceiptState::Deleted => Status::DELETED_BY_ADMIN,
        ReceiptState::Rejected => Status::REFUSED,
        ReceiptState::Scheduled | ReceiptState::Enroute => Status::TRYING_NO_RESPONSE,
        ReceiptState::Undeliverable | ReceiptState::Skipped => Status::NOT_OBTAINABLE,
        // Handed over, and never learnt what became of it.
        ReceiptState::Unknown => Status::FORWARDED,
    }
}
