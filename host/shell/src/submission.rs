//! Conversion from a submission to a message.

use crate::options::ShellOptions;
use crate::wire::{ShellFault, ShellFaultKind, ShellSubmission};
use crate::{NumberParser, SubscriberNumber};
use model::{
    DlrRequest, IdempotencyKey, Message, PluginVersion, Refusal, RejectReason, RoutingDecision, Text,
    Timestamp, Verdict,
};
use ports::text::{self, TextCoding};
use sha2::{Digest, Sha256};
use std::sync::{Arc, LazyLock};

/// Placeholder until a message is routed.
static UNROUTED: LazyLock<Arc<PluginVersion>> =
    LazyLock::new(|| Arc::new(PluginVersion { plugin: String::new(), version: String::new() }));

fn invalid(detail: impl Into<String>) -> ShellFault {
    ShellFault::new(ShellFaultKind::Invalid, detail)
}

/// Creates the message for a submission.
pub(crate) fn message(
    submission: &ShellSubmission,
    caller: &SubscriberNumber,
    number_parser: &dyn NumberParser,
    options: &ShellOptions,
    now: Timestamp,
) -> Result<Message, ShellFault> {
    // The only place where a dialled number becomes an address.
    let destination = number_parser.parse(&submission.to, caller).map_err(invalid)?;
    let (octets, data_coding) = text::encode(&submission.text, TextCoding::Auto)
        .map_err(|reason| invalid(format!("the text {reason}")))?;
    let segments = text::segment_count(&octets, data_coding, false);
    if segments > options.max_segments {
        let most = options.max_segments;
        return Err(invalid(format!("the text needs {segments} segments; the limit is {most}")));
    }
    Ok(Message {
        // The log needs the final state. The shell receives its DLRs itself.
        dlr_request: DlrRequest::FINAL,
        ..Message::new(
            options.peer,
            caller.address(),
            destination,
            Text { payload: octets.len() > 140, octets, data_coding, udhi: false },
            now + options.validity,
            RoutingDecision::new(Verdict::Reject(RejectReason::NoRoute), UNROUTED.clone()),
        )
    })
}

/// The idempotency key of a submission: the caller's number and key, so that callers do not collide, and a digest of
/// the content that is stable across restarts.
pub(crate) fn idempotency_key(
    submission: &ShellSubmission,
    caller: &SubscriberNumber,
) -> Result<Option<IdempotencyKey>, ShellFault> {
    let Some(word) = &submission.key else { return Ok(None) };
    if word.is_empty() || word.len() > 200 || !word.bytes().all(|c| c.is_ascii_graphic() || c == b' ') {
        return Err(invalid("the key must be 1 to 200 printable ASCII characters"));
    }
    let mut digest = Sha256::new();
    digest.update((submission.to.len() as u64).to_be_bytes());
    digest.update(&submission.to);
    digest.update(&submission.text);
    let digest = digest.finalize();
    let first = digest.first_chunk().copied().unwrap_or_default();
    let octets = format!("{caller} {word}").into_bytes();
    Ok(Some(IdempotencyKey {
        octets: octets.as_slice().into(),
        digest: u64::from_be_bytes(first),
        required: true,
        lifetime: None,
    }))
}

/// Maps a refusal of the engine to a fault.
pub(crate) fn fault_for(refusal: Refusal) -> ShellFault {
    let kind = match refusal {
        Refusal::QueueFull | Refusal::ShuttingDown => ShellFaultKind::Unavailable,
        Refusal::Throttled
        | Refusal::QuotaExceeded
        | Refusal::KeysFull { .. }
        | Refusal::Rejected(RejectReason::TryLater) => ShellFaultKind::Throttled,
        Refusal::Rejected(RejectReason::Fault) | Refusal::Internal => ShellFaultKind::Internal,
        Refusal::Rejected(_) => ShellFaultKind::Rejected,
        Refusal::BadSchedule | Refusal::Expired => ShellFaultKind::Invalid,
        Refusal::KeyReused => ShellFaultKind::KeyReused,
        // Refusals of operations that the shell does not use.
        Refusal::UnknownMessage | Refusal::WrongState => ShellFaultKind::Internal,
    };
    ShellFault::new(kind, refusal.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LiteralNumbers;
    use model::{Address, PeerId};
    use std::time::Duration;

    const WALL: Timestamp = Timestamp(1_795_000_000_000);

    fn read(to: &str, text: &str) -> Result<Message, String> {
        let options = ShellOptions { max_segments: 2, ..ShellOptions::new("/nowhere".into(), PeerId(7)) };
        let submission = ShellSubmission { to: to.to_owned(), text: text.to_owned(), key: None };
        let caller = "+16195550123".parse().unwrap();
        message(&submission, &caller, &LiteralNumbers, &options, WALL).map_err(|fault| fault.detail)
    }

    #[test]
    fn text_becomes_a_message_from_the_caller() {
        let message = read("+1 619 555 0199", "grüße").unwrap();
        assert_eq!(message.source, Address::international("16195550123"));
        assert_eq!(message.destination, Address::international("16195550199"));
        // The GSM default alphabet has both characters, so the limit is 160 characters and not 70.
        assert_eq!((message.origin, message.text.data_coding), (PeerId(7), 0));
        assert_eq!(message.expires_at, WALL + Duration::from_secs(2 * 86_400));
        assert!(message.dlr_request.on_success && message.dlr_request.on_failure);
    }

    #[test]
    fn empty_text_is_accepted() {
        let message = read("+1619", "").unwrap();
        assert_eq!((message.text.octets.len(), message.text.payload), (0, false));
    }

    #[test]
    fn invalid_submissions_are_refused_with_a_reason() {
        assert_eq!(read("+1619", &"x".repeat(400)).unwrap_err(), "the text needs 3 segments; the limit is 2");
        assert!(read("mother", "x").unwrap_err().contains("is not a number"));
    }

    #[test]
    fn idempotency_keys_are_separate_per_caller() {
        let key_for = |caller: &str, text: &str, word: &str| {
            let submission =
                ShellSubmission { to: "+1619".to_owned(), text: text.to_owned(), key: Some(word.to_owned()) };
            idempotency_key(&submission, &caller.parse().unwrap())
        };
        let key_of_one = key_for("+4912345", "x", "1").unwrap().unwrap();
        assert_eq!(key_for("+4912345", "x", "1").unwrap().unwrap(), key_of_one);
        assert_ne!(key_for("+4912346", "x", "1").unwrap().unwrap().octets, key_of_one.octets);
        assert_ne!(key_for("+4912345", "y", "1").unwrap().unwrap().digest, key_of_one.digest);
        assert!(key_for("+4912345", "x", "").is_err() && key_for("+4912345", "x", "ü").is_err());
    }
}
