//! What the network says of an MT, in the words of the engine.

use gsup::{Failure, GmmCause, Message, Reporter, RpCause, classify};
use model::ErrorClass;

/// The codes of refusals: the handset's RP cause in the lowest octet, above it the network's cause, above that the handset's
/// TP failure cause (3GPP TS 24.011 §8.2.5.4, 24.008 §10.5.5.14, 23.040 §9.2.3.22); each 0 where it was not given. Where the
/// fault was found before anything was sent, one of these.
pub(crate) const NOBODY_KNOWN: u32 = 0x0100_0001;
/// See [`NOBODY_KNOWN`].
pub(crate) const NO_MSC: u32 = 0x0100_0002;
/// See [`NOBODY_KNOWN`].
pub(crate) const NOT_SAYABLE: u32 = 0x0100_0003;
/// See [`NOBODY_KNOWN`].
pub(crate) const NUMBER_MOVED: u32 = 0x0100_0005;
/// The HLR has no connection to the MSC.
const NO_ROUTE: u32 = 0x0100_0004;

/// The failure cause of a report that came in an RP-ERROR (23.040 §9.2.2.1a).
fn failure_cause(message: &Message) -> Option<u8> {
    let report = message.user_information()?;
    match tpdu::FromMs::decode(&report, true) {
        Ok(tpdu::FromMs::DeliverReport(report)) => report.cause.map(|cause| cause.0),
        _ => None,
    }
}

/// What kind of no, and its code; `None` for a yes.
pub(crate) fn refusal(message: &Message, reporter: Reporter) -> Option<(ErrorClass, u32)> {
    let said = failure_cause(message);
    let failure = Failure::of(message, reporter, said)?;
    let class = match failure {
        Failure::Temporary | Failure::Configuration | Failure::Link => ErrorClass::Temporary,
        Failure::ThisMessage => ErrorClass::ThisMessage,
        Failure::Absent => ErrorClass::Absent,
        Failure::MemoryFull => ErrorClass::MemoryFull,
        Failure::PermanentMessage | Failure::OurFault => ErrorClass::Permanent,
        Failure::UnknownSubscriber => ErrorClass::UnknownSubscriber,
    };
    if failure == Failure::Link {
        return Some((class, NO_ROUTE));
    }
    let rp = message.rp_cause().map_or(0, |cause| u32::from(cause.0));
    let network = message.cause().map_or(0, |cause| u32::from(cause.0));
    Some((class, rp | network << 8 | u32::from(said.unwrap_or(0)) << 16))
}

/// Whether an MSC says that it takes no short messages over GSUP.
pub(crate) fn is_without_sms(message: &Message, reporter: Reporter) -> bool {
    Failure::of(message, reporter, None) == Some(Failure::Configuration)
}

/// What an admin has to know of a refusal that is nobody's fault but a configuration's, or ours.
pub(crate) fn warning(message: &Message, reporter: Reporter) -> Option<&'static str> {
    match Failure::of(message, reporter, None)? {
        Failure::Configuration => Some(
            "an MSC does not take short messages over GSUP; write `sms-over-gsup` below `msc` in its configuration",
        ),
        Failure::OurFault => {
            Some("an MSC could not read what we wrote: please report it with a capture of GSUP")
        }
        _ => None,
    }
}

/// The code of a refusal by a core network, in words, with every cause that is in it.
#[must_use]
pub fn refusal_words(code: u32) -> String {
    if code >= NOBODY_KNOWN {
        return words(code).to_owned();
    }
    let [_, fcs, network, rp] = code.to_be_bytes();
    let causes = [
        (network != 0).then(|| format!("network: {}", GmmCause(network))),
        (rp != 0).then(|| format!("handset: {}", RpCause(rp))),
        (fcs != 0).then(|| format!("TP failure cause 0x{fcs:02X}: {}", tpdu::FailureCause(fcs))),
    ];
    let causes: Vec<String> = causes.into_iter().flatten().collect();
    if causes.is_empty() { words(code).to_owned() } else { causes.join("; ") }
}

/// Whether a refusal with this code says that the handset's memory is full.
#[must_use]
pub fn is_memory_full(code: u32) -> bool {
    let [own, fcs, _, rp] = code.to_be_bytes();
    let said = Some(RpCause(rp)).filter(|cause| cause.0 != 0);
    // The HLR's and the MSC's words about the subscriber do not count here, so it is the same who reports.
    own == 0 && classify(Reporter::Msc, said, None, Some(fcs)) == Failure::MemoryFull
}

/// Whether a refusal with this code says that the subscriber cannot be reached.
#[must_use]
pub fn is_absence(code: u32) -> bool {
    let [own, _, network, rp] = code.to_be_bytes();
    let by_network = rp == 0
        && network != 0
        && classify(Reporter::Msc, None, Some(GmmCause(network)), None) == Failure::Absent;
    matches!(code, NOBODY_KNOWN | NO_MSC | NO_ROUTE) || own == 0 && by_network
}

/// A code in words, one of a bounded number.
pub(crate) fn words(code: u32) -> &'static str {
    match code {
        NOBODY_KNOWN => return "no subscriber known for the number",
        NO_MSC => return "no MSC known for the subscriber",
        NOT_SAYABLE => return "not possible as a short message",
        NUMBER_MOVED => return "the number is another subscriber's now",
        NO_ROUTE => return "the HLR has no connection to the MSC",
        _ => {}
    }
    let [_, fcs, network, rp] = code.to_be_bytes();
    match (rp, network, fcs) {
        (0, 0, _) => "refused without a cause",
        (0, network, _) => GmmCause(network).words().unwrap_or("another cause of the network's"),
        (rp, ..) => RpCause(rp).words().unwrap_or("another cause of the handset's"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_tells_whether_the_handset_is_full_or_away() {
        for (code, full, away) in [
            (22, true, false),
            (0x00D3_006F, true, false),
            (95, false, false),
            (0x1100, false, true),
            (0x0A00, false, true),
            (NO_MSC, false, true),
            (NOT_SAYABLE, false, false),
            (0, false, false),
        ] {
            assert_eq!((is_memory_full(code), is_absence(code)), (full, away), "{code:#x}");
        }
    }

    #[test]
    fn every_cause_of_a_code_has_its_words() {
        for (code, words) in [
            (0, "refused without a cause"),
            (0x200, "network: IMSI unknown (2)"),
            (95, "handset: semantically incorrect message (95)"),
            (0x00D0_006F, "handset: protocol error (111); TP failure cause 0xD0: "),
            (16_777_219, "not possible as a short message"),
            (NUMBER_MOVED, "the number is another subscriber's now"),
            (0x3000, "network: cause 48"),
        ] {
            assert!(refusal_words(code).starts_with(words), "{code:#x}: {}", refusal_words(code));
        }
    }
}
