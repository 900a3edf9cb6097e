//! The states in status reports (`Stat`), and the delivery states that they mean.
//!
//! Both protocols use SMPP's seven words. Gateways add words of their own: two letters and a colon (first the network
//! element that answers, then its reason), then a code of four characters (CMPP 3.0 §8.4.5, table of `Stat`). An
//! unknown word means that the message was not delivered.

use model::DlrState;

/// The words that SMPP also has.
const WORDS: [(&[u8], DlrState); 7] = [
    (b"DELIVRD", DlrState::Delivered),
    (b"EXPIRED", DlrState::Expired),
    (b"DELETED", DlrState::Deleted),
    (b"UNDELIV", DlrState::Undeliverable),
    (b"ACCEPTD", DlrState::Accepted),
    (b"UNKNOWN", DlrState::Unknown),
    (b"REJECTD", DlrState::Rejected),
];

/// Prefixes of gateways' own words: two letters and a colon.
const PREFIXES: [(&[u8], DlrState); 21] = [
    // No report arrived, or the message centre reports one of SMPP's states.
    (b"MI:", DlrState::Expired),
    (b"MC:", DlrState::Expired),
    (b"IC:", DlrState::Expired),
    (b"MJ:", DlrState::Deleted),
    (b"MK:", DlrState::Undeliverable),
    (b"ML:", DlrState::Accepted),
    (b"MM:", DlrState::Unknown),
    (b"MN:", DlrState::Rejected),
    // An element before the message centre refuses it.
    (b"CB:", DlrState::Rejected),
    (b"DB:", DlrState::Rejected),
    (b"MB:", DlrState::Rejected),
    (b"IB:", DlrState::Rejected),
    (b"SB:", DlrState::Rejected),
    // An element does not answer.
    (b"CA:", DlrState::Undeliverable),
    (b"DA:", DlrState::Undeliverable),
    (b"MA:", DlrState::Undeliverable),
    (b"IA:", DlrState::Undeliverable),
    (b"SA:", DlrState::Undeliverable),
    (b"CC:", DlrState::Expired),
    (b"DC:", DlrState::Expired),
    (b"SC:", DlrState::Expired),
];

/// The delivery state of a report's word.
#[must_use]
pub fn state_of(word: &[u8]) -> DlrState {
    let known = WORDS.iter().find(|(known, _)| known.eq_ignore_ascii_case(word));
    let prefixed = || PREFIXES.iter().find(|(prefix, _)| word.starts_with(prefix));
    known.or_else(prefixed).map_or(DlrState::Undeliverable, |(_, state)| *state)
}

/// Whether no further report follows a report with this state. "Accepted" is not final: another report follows it.
#[must_use]
pub fn is_final(state: DlrState) -> bool {
    state.is_final() && state != DlrState::Accepted
}

/// The word for a delivery state in a report.
#[must_use]
pub fn word_of(state: DlrState) -> &'static [u8] {
    match state {
        DlrState::Delivered => b"DELIVRD",
        DlrState::Expired => b"EXPIRED",
        DlrState::Deleted | DlrState::Skipped => b"DELETED",
        DlrState::Undeliverable => b"UNDELIV",
        DlrState::Accepted | DlrState::Enroute | DlrState::Scheduled => b"ACCEPTD",
        DlrState::Unknown => b"UNKNOWN",
        DlrState::Rejected => b"REJECTD",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_60_every_word_has_its_state_and_back() {
        for (word, state) in WORDS {
            assert_eq!(state_of(word), state);
            assert_eq!(word_of(state), word);
        }
        for (word, state) in [
            (&b"MI:0024"[..], DlrState::Expired),
            (b"MK:0001", DlrState::Undeliverable),
            (b"ML:0000", DlrState::Accepted),
            (b"MN:0011", DlrState::Rejected),
            (b"MA:0054", DlrState::Undeliverable),
            (b"CB:0010", DlrState::Rejected),
            (b"IC:0151", DlrState::Expired),
        ] {
            assert_eq!(state_of(word), state);
        }
        assert!(!is_final(DlrState::Accepted) && !is_final(DlrState::Enroute) && is_final(DlrState::Unknown));
    }

    #[test]
    fn check_61_any_other_word_means_not_delivered() {
        for word in ["HD:0001", "CJ:0007", "NOSEND", "HIGRISK", "1", "", "00138"] {
            assert_eq!(state_of(word.as_bytes()), DlrState::Undeliverable);
        }
    }
}
