//! From a text to a message.

use crate::options::ShellOptions;
use crate::wire::{Fault, Kind, Submission};
use crate::{Number, Numbering};
use doors::text::{self, Coding};
use model::{
    DecidedBy, Kind as MessageKind, Message, MessageId, Priority, ReceiptRequest, Refusal, RejectReason,
    Routed, SubmissionKey, Text, Timestamp, Verdict,
};
use sha2::{Digest, Sha256};
use std::sync::{Arc, LazyLock};

/// What stands in a message until it has been routed.
static UNROUTED: LazyLock<Arc<DecidedBy>> =
    LazyLock::new(|| Arc::new(DecidedBy { plugin: String::new(), version: String::new() }));

fn invalid(detail: impl Into<String>) -> Fault {
    Fault::new(Kind::Invalid, detail)
}

/// The message that a submission makes.
pub(crate) fn message(
    submission: &Submission,
    caller: &Number,
    numbering: &dyn Numbering,
    options: &ShellOptions,
    wall: Timestamp,
) -> Result<Message, Fault> {
    // The one place where a number as a person typed it becomes an address.
    let destination = numbering.read(&submission.to, caller).map_err(invalid)?;
    let (octets, data_coding) = text::encode(&submission.text, Coding::Auto)
        .map_err(|reason| invalid(format!("the text {reason}")))?;
    let parts = text::parts(&octets, data_coding, false);
    if parts > options.parts {
        let most = options.parts;
        return Err(invalid(format!("the text would need {parts} messages; at most {most} are taken")));
    }
    Ok(Message {
        id: MessageId::default(),
        kind: MessageKind::Text,
        origin: options.peer,
        source: caller.address(),
        destination,
        service_type: bytes::Bytes::new(),
        protocol_id: 0,
        esm_class: 0,
        priority: Priority::default(),
        // So that the log can say what became of it. The door takes its receipts itself.
        receipts: ReceiptRequest::FINAL,
        replace_if_present: false,
        submission: None,
        text: Text { payload: octets.len() > 140, octets, data_coding, udhi: false },
        tlvs: bytes::Bytes::new(),
        accepted_at: Timestamp::default(),
        scheduled: None,
        expires_at: wall + options.validity,
        routed: Routed::new(Verdict::Reject(RejectReason::NoRoute), UNROUTED.clone()),
    })
}

/// The key of a submission: the caller's number and its word, so that nobody meets another's; and a digest of what is asked
/// for, which must be the same after a restart.
pub(crate) fn key(submission: &Submission, caller: &Number) -> Result<Option<SubmissionKey>, Fault> {
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
    Ok(Some(SubmissionKey {
        octets: octets.as_slice().into(),
        digest: u64::from_be_bytes(first),
        required: true,
        lifetime: None,
    }))
}

/// A refusal of the engine's.
pub(crate) fn refused(refusal: Refusal) -> Fault {
    let kind = match refusal {
        Refusal::QueueFull | Refusal::ShuttingDown => Kind::Unavailable,
        Refusal::Throttled | Refusal::KeysFull { .. } | Refusal::Rejected(RejectReason::TryLater) => {
            Kind::Throttled
        }
        Refusal::Rejected(RejectReason::Fault) | Refusal::Internal => Kind::Internal,
        Refusal::Rejected(_) => Kind::Rejected,
        Refusal::BadSchedule | Refusal::Expired => Kind::Invalid,
        Refusal::KeyReused => Kind::KeyReused,
        // Of questions that are not asked here.
        Refusal::UnknownMessage | Refusal::WrongState => Kind::Internal,
    };
    Fault::new(kind, refusal.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AsTyped;
    use model::{Address, PeerId};
    use std::time::Duration;

    const WALL: Timestamp = Timestamp(1_795_000_000_000);

    fn read(to: &str, text: &str) -> Result<Message, String> {
        let options = ShellOptions { parts: 2, ..ShellOptions::new("/nowhere".into(), PeerId(7)) };
        let submission = Submission { to: to.to_owned(), text: text.to_owned(), key: None };
        let caller = "+16195550123".parse().unwrap();
        message(&submission, &caller, &AsTyped, &options, WALL).map_err(|fault| fault.detail)
    }

    #[test]
    fn a_text_becomes_a_message_of_the_caller_s() {
        let message = read("+1 619 555 0199", "grüße").unwrap();
        assert_eq!(message.source, Address::international("16195550123"));
        assert_eq!(message.destination, Address::international("16195550199"));
        // The GSM default alphabet has both, so the text is of 160 characters and not of 70.
        assert_eq!((message.origin, message.text.data_coding), (PeerId(7), 0));
        assert_eq!(message.expires_at, WALL + Duration::from_secs(2 * 86_400));
        assert!(message.receipts.on_success && message.receipts.on_failure);
    }

    #[test]
    fn an_empty_text_is_a_message() {
        let message = read("+1619", "").unwrap();
        assert_eq!((message.text.octets.len(), message.text.payload), (0, false));
    }

    #[test]
    fn what_cannot_be_sent_is_told_why() {
        assert_eq!(
            read("+1619", &"x".repeat(400)).unwrap_err(),
            "the text would need 3 messages; at most 2 are taken"
        );
        assert!(read("mother", "x").unwrap_err().contains("is no number"));
    }

    #[test]
    fn keys_of_two_callers_do_not_meet() {
        let of = |caller: &str, text: &str, word: &str| {
            let submission =
                Submission { to: "+1619".to_owned(), text: text.to_owned(), key: Some(word.to_owned()) };
            key(&submission, &caller.parse().unwrap())
        };
        let one = of("+4912345", "x", "1").unwrap().unwrap();
        assert_eq!(of("+4912345", "x", "1").unwrap().unwrap(), one);
        assert_ne!(of("+4912346", "x", "1").unwrap().unwrap().octets, one.octets);
        assert_ne!(of("+4912345", "y", "1").unwrap().unwrap().digest, one.digest);
        assert!(of("+4912345", "x", "").is_err() && of("+4912345", "x", "ü").is_err());
    }
}
