//! Message ids of Reports, and the normalization of user numbers.

use crate::Sequence;
use model::PeerMessageId;

/// A number without its prefix: `+`, `00`, and the country code 86 of a mobile number.
///
/// Peers write one number with and without the prefix, even the same peer in a Submit and its Report.
#[must_use]
pub fn home_number(number: &[u8]) -> &[u8] {
    let rest = number.strip_prefix(b"+").or_else(|| number.strip_prefix(b"00")).unwrap_or(number);
    match rest.strip_prefix(b"86") {
        // Mobile numbers have eleven digits and begin with 1; a short number that begins with 86 keeps it.
        Some(home) if home.len() == 11 && home.first() == Some(&b'1') => home,
        _ => rest,
    }
}

/// The message id for the Reports of a gateway: the sequence of the Submit and the user, since one Submit may have
/// many users (SGIP 1.2 §4.2.3.5).
///
/// The form is the thirty digits of the sequence, a colon, and the number without its prefix, so that people can find
/// it in an operator's logs.
#[must_use]
pub fn peer_message_id(submit: Sequence, user: &[u8]) -> PeerMessageId {
    let mut id = PeerMessageId::default();
    id.0.extend_from_slice(submit.to_string().as_bytes());
    id.0.push(b':');
    id.0.extend_from_slice(home_number(user));
    id
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_a_user_number_has_one_id() {
        let sequence = Sequence { node: 3_010_012_345, time: 1_120_203_226, counter: 2 };
        let id = peer_message_id(sequence, b"8613012345678");
        assert_eq!(id.0.as_slice(), b"301001234511202032260000000002:13012345678");
        for same in [&b"13012345678"[..], b"+8613012345678", b"008613012345678"] {
            assert_eq!(peer_message_id(sequence, same), id);
        }
        assert_ne!(peer_message_id(sequence, b"13012345679"), id);
        assert_ne!(peer_message_id(Sequence { counter: 3, ..sequence }, b"13012345678"), id);
        assert_ne!(peer_message_id(sequence, b"1301234567"), peer_message_id(sequence, b"13012345670"));
        assert_eq!(home_number(b"861065"), b"861065");
    }
}
