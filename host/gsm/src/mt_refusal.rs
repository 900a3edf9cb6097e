//! Maps MT answers of the network to the engine's error classes and codes.

use gsup::{Failure, GmmCause, GsupMessage, Reporter, RpCause, classify};
use model::ErrorClass;

// Refusal codes: the lowest octet is the handset's RP cause, the next one the network's cause, the third the TP failure
// cause (3GPP TS 24.011 §8.2.5.4, 24.008 §10.5.5.14, 23.040 §9.2.3.22); each is 0 if absent. The constants are codes for
// failures that have no such cause.
/// No subscriber is known for the number.
pub(crate) const UNKNOWN_NUMBER: u32 = 0x0100_0001;
/// The MSC of the subscriber is not connected or not known.
pub(crate) const NO_MSC: u32 = 0x0100_0002;
/// The message cannot be encoded as a short message.
pub(crate) const NOT_ENCODABLE: u32 = 0x0100_0003;
/// The number has been reassigned to another subscriber.
pub(crate) const NUMBER_MOVED: u32 = 0x0100_0005;
/// The HLR has no connection to the MSC.
const NO_ROUTE: u32 = 0x0100_0004;

/// The TP failure cause from a report in an RP-ERROR (23.040 §9.2.2.1a).
fn failure_cause(message: &GsupMessage) -> Option<u8> {
    let report = message.user_information()?;
    match tpdu::FromMs::decode(&report, true) {
        Ok(tpdu::FromMs::DeliverReport(report)) => report.cause.map(|cause| cause.0),
        _ => None,
    }
}

/// Error class and code of a negative answer; `None` for a positive one.
pub(crate) fn refusal(message: &GsupMessage, reporter: Reporter) -> Option<(ErrorClass, u32)> {
    let tp_failure = failure_cause(message);
    let failure = Failure::of(message, reporter, tp_failure)?;
    let class = match failure {
        Failure::Temporary | Failure::Configuration | Failure::Link => ErrorClass::Temporary,
        Failure::ThisMessage => ErrorClass::ThisMessage,
        Failure::Absent => ErrorClass::Absent,
        Failure::MemoryFull => ErrorClass::MemoryFull,
        Failure::PermanentMessage | Failure::LocalError => ErrorClass::Permanent,
        Failure::UnknownSubscriber => ErrorClass::UnknownSubscriber,
    };
    if failure == Failure::Link {
        return Some((class, NO_ROUTE));
    }
    let rp = message.rp_cause().map_or(0, |cause| u32::from(cause.0));
    let network = message.cause().map_or(0, |cause| u32::from(cause.0));
    Some((class, rp | network << 8 | u32::from(tp_failure.unwrap_or(0)) << 16))
}

/// Whether an MSC reports that it does not support short messages over GSUP.
pub(crate) fn is_without_sms(message: &GsupMessage, reporter: Reporter) -> bool {
    Failure::of(message, reporter, None) == Some(Failure::Configuration)
}

/// The warning for a refusal that is caused by a configuration error or by an error of the appliance.
pub(crate) fn warning(message: &GsupMessage, reporter: Reporter) -> Option<&'static str> {
    match Failure::of(message, reporter, None)? {
        Failure::Configuration => Some(
            "an MSC does not accept short messages over GSUP; write `sms-over-gsup` below `msc` in its configuration",
        ),
        Failure::LocalError => {
            Some("an MSC could not decode a request: please report this with a GSUP capture")
        }
        _ => None,
    }
}

/// Describes a refusal code with all its causes.
#[must_use]
pub fn describe_refusal(code: u32) -> String {
    if code >= UNKNOWN_NUMBER {
        return describe(code).to_owned();
    }
    let [_, fcs, network, rp] = code.to_be_bytes();
    let causes = [
        (network != 0).then(|| format!("network: {}", GmmCause(network))),
        (rp != 0).then(|| format!("handset: {}", RpCause(rp))),
        (fcs != 0).then(|| format!("TP failure cause 0x{fcs:02X}: {}", tpdu::FailureCause(fcs))),
    ];
    let causes: Vec<String> = causes.into_iter().flatten().collect();
    if causes.is_empty() { describe(code).to_owned() } else { causes.join("; ") }
}

/// Whether the code means that the handset's memory is full.
#[must_use]
pub fn is_memory_full(code: u32) -> bool {
    let [own, fcs, _, rp] = code.to_be_bytes();
    let tp_failure = Some(RpCause(rp)).filter(|cause| cause.0 != 0);
    // Causes from HLR and MSC are excluded here, so the reporter does not matter.
    own == 0 && classify(Reporter::Msc, tp_failure, None, Some(fcs)) == Failure::MemoryFull
}

/// Whether the code means that the subscriber is absent.
#[must_use]
pub fn is_absent(code: u32) -> bool {
    let [own, _, network, rp] = code.to_be_bytes();
    let by_network = rp == 0
        && network != 0
        && classify(Reporter::Msc, None, Some(GmmCause(network)), None) == Failure::Absent;
    matches!(code, UNKNOWN_NUMBER | NO_MSC | NO_ROUTE) || own == 0 && by_network
}

/// A short description of a code, from a bounded set.
pub(crate) fn describe(code: u32) -> &'static str {
    match code {
        UNKNOWN_NUMBER => return "no subscriber known for the number",
        NO_MSC => return "no MSC known for the subscriber",
        NOT_ENCODABLE => return "not encodable as a short message",
        NUMBER_MOVED => return "number reassigned to another subscriber",
        NO_ROUTE => return "the HLR has no connection to the MSC",
        _ => {}
    }
    let [_, fcs, network, rp] = code.to_be_bytes();
    match (rp, network, fcs) {
        (0, 0, _) => "refused without a cause",
        (0, network, _) => GmmCause(network).description().unwrap_or("other network cause"),
        (rp, ..) => RpCause(rp).description().unwrap_or("other handset cause"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusal_codes_are_classified_as_full_or_absent() {
        for (code, full, away) in [
            (22, true, false),
            (0x00D3_006F, true, false),
            (95, false, false),
            (0x1100, false, true),
            (0x0A00, false, true),
            (NO_MSC, false, true),
            (NOT_ENCODABLE, false, false),
            (0, false, false),
        ] {
            assert_eq!((is_memory_full(code), is_absent(code)), (full, away), "{code:#x}");
        }
    }

    #[test]
    fn every_cause_in_a_refusal_code_is_described() {
        for (code, describe) in [
            (0, "refused without a cause"),
            (0x200, "network: IMSI unknown (2)"),
            (95, "handset: semantically incorrect message (95)"),
            (0x00D0_006F, "handset: protocol error (111); TP failure cause 0xD0: "),
            (16_777_219, "not encodable as a short message"),
            (NUMBER_MOVED, "number reassigned to another subscriber"),
            (0x3000, "network: cause 48"),
        ] {
            assert!(describe_refusal(code).starts_with(describe), "{code:#x}: {}", describe_refusal(code));
        }
    }
}
