//! Encrypted contents round-trip, and a record with encrypted content never contains the text.

use crate::generators;
use bytes::Bytes;
use codec::{
    CipherError, ContentCipher, ContentPart, RecordDecoder, content_key, decode_batch, decode_batch_with,
    decode_final, decode_parties, encode_batch, encode_batch_with, encode_final, encode_message,
    encode_message_with, open_recorded_calls, read_summary, seal_recorded_call,
};
use model::{
    Batch, CallRecord, ContentErasure, FinalRecord, Hook, Message, MessageId, SealedContent, Step, StepKind,
    Timestamp,
};
use proptest::collection::vec;
use proptest::prelude::*;
use std::sync::Arc;

/// Inverts octets behind the message and the part, which it compares. A test of codecs needs no secrecy.
#[derive(Debug)]
struct InvertingCipher {
    has_keys: bool,
}

const KEY: u64 = 77;

fn header(id: MessageId, part: ContentPart) -> Vec<u8> {
    [&id.0.to_le_bytes()[..], &[part as u8]].concat()
}

impl ContentCipher for InvertingCipher {
    fn encrypts(&self, message: &Message) -> bool {
        message.origin.0.is_multiple_of(2)
    }

    fn seal(
        &self,
        message: &Message,
        part: ContentPart,
        plain: &[u8],
    ) -> Result<Option<SealedContent>, CipherError> {
        if !self.has_keys {
            return Err(CipherError("no key".into()));
        }
        let inverted = plain.iter().map(|octet| !octet);
        let octets: Vec<u8> = header(message.id, part).into_iter().chain(inverted).collect();
        Ok(self.encrypts(message).then(|| SealedContent { key: KEY, octets: Bytes::from(octets) }))
    }

    fn seal_for_account(
        &self,
        _: &str,
        _: (MessageId, Timestamp),
        _: ContentPart,
        _: &[u8],
    ) -> Result<Option<SealedContent>, CipherError> {
        Ok(None)
    }

    fn open(&self, id: MessageId, part: ContentPart, sealed: &SealedContent) -> Option<Vec<u8>> {
        let inverted = sealed.octets.strip_prefix(&*header(id, part))?;
        self.has_keys.then(|| inverted.iter().map(|octet| !octet).collect())
    }

    fn destroyed_at(&self, _: u64) -> Option<Timestamp> {
        None
    }
}

fn cipher() -> Arc<dyn ContentCipher> {
    Arc::new(InvertingCipher { has_keys: true })
}

/// Whether the octets have a text that is long enough to be there by no accident.
fn has(octets: &[u8], text: &[u8]) -> bool {
    text.len() >= 6 && octets.windows(text.len()).any(|part| part == text)
}

fn has_content(message: &Message) -> bool {
    let routed = &message.routed;
    let screening = routed.screening.as_deref();
    !message.text.octets.is_empty()
        || routed.host_calls.is_some()
        || screening.is_some_and(|found| found.host_calls.is_some() || found.submitted_text.is_some())
        || routed.lookup.as_deref().is_some_and(|lookup| lookup.host_calls.is_some())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn an_encrypted_message_is_read_with_its_key_and_kept_without(
        message in generators::message(), rest in vec(any::<u8>(), 0..20)
    ) {
        let cipher = cipher();
        let (mut octets, mut clear) = (Vec::new(), Vec::new());
        encode_message_with(&mut octets, &message, Some(&*cipher)).unwrap();
        encode_message(&mut clear, &message);
        let is_sealed = cipher.encrypts(&message) && has_content(&message);
        prop_assert_eq!(content_key(&octets), is_sealed.then_some(KEY));
        prop_assert_eq!(read_summary(&octets), read_summary(&clear));
        prop_assert_eq!(decode_parties(&octets), decode_parties(&clear));
        if !is_sealed {
            prop_assert_eq!(octets, clear);
            return Ok(());
        }
        let mut record = octets.clone();
        record.extend_from_slice(&rest);
        let (read, length) = RecordDecoder::with_cipher(Some(cipher)).message(message.id, &record).unwrap();
        prop_assert_eq!(&read, &message);
        prop_assert_eq!(length, octets.len());
        for cut in [0, 1, 9, octets.len() / 2, octets.len() - 1] {
            prop_assert!(RecordDecoder::new().message(message.id, &octets[..cut]).is_err(), "cut at {}", cut);
        }

        // Without the key, only the encrypted form of the content is left, and is written again unchanged.
        let (mut locked, _) = RecordDecoder::new().message(message.id, &octets).unwrap();
        prop_assert!(locked.text.octets.is_empty() && locked.routed.host_calls.is_none());
        prop_assert_eq!(&locked.destination, &message.destination);
        let mut again = Vec::new();
        encode_message(&mut again, &locked);
        prop_assert_eq!(&again, &octets);
        // The content cannot be decrypted as the content of another message.
        let other = RecordDecoder::with_cipher(Some(self::cipher())).message(MessageId(message.id.0 ^ 1), &octets);
        prop_assert!(other.unwrap().0.sealed.is_some());

        let erasure = ContentErasure { id: message.id, at: Timestamp(7), by: "test".into() };
        let (mut erased, mut ended) = (message, generators::ended_now());
        erasure.apply(&mut erased, &mut ended);
        erasure.apply(&mut locked, &mut generators::ended_now());
        prop_assert_eq!(locked, erased);
    }

    #[test]
    fn an_encrypted_batch_has_no_text(accepted in vec(generators::message(), 1..5), replaced in generators::message()) {
        let batch = Batch {
            accepted: accepted.into_iter().map(Arc::new).collect(),
            replaced: vec![Arc::new(replaced)],
            ..Batch::default()
        };
        let cipher = cipher();
        let (mut octets, mut clear) = (Vec::new(), Vec::new());
        encode_batch_with(&mut octets, &batch, Some(&*cipher)).unwrap();
        encode_batch(&mut clear, &batch);
        let mut all = batch.accepted.iter().chain(&batch.replaced);
        if all.clone().all(|message| cipher.encrypts(message)) {
            prop_assert!(all.all(|message| !has(&octets, &message.text.octets)));
        }
        prop_assert_eq!(&decode_batch_with(&octets, Some(cipher.clone())).unwrap(), &batch);
        let locked = decode_batch(&octets).unwrap();
        let mut again = Vec::new();
        encode_batch_with(&mut again, &locked, Some(&*cipher)).unwrap();
        prop_assert_eq!(again, octets);
        prop_assert_eq!(decode_batch(&clear).unwrap(), batch);
    }

    #[test]
    fn a_recorded_call_is_read_with_its_key_only(message in generators::message(), record in vec(any::<u8>(), 0..60)) {
        let cipher = cipher();
        let record: Box<[u8]> = record.into();
        let plain = CallRecord::Plain(record.clone()).into_step(Hook::Peer);
        let kept = seal_recorded_call(Some(&*cipher), &message, record).unwrap();
        let is_sealed = matches!(kept, CallRecord::Sealed(_));
        prop_assert_eq!(is_sealed, cipher.encrypts(&message));
        let others = [StepKind::Accepted, StepKind::Replaced];
        let steps = |record: Option<StepKind>| -> Vec<Step> {
            let all = others[..1].iter().cloned().chain(record).chain(others[1..].iter().cloned());
            all.map(|kind| Step { at: Timestamp(5), kind }).collect()
        };
        // The steps as a record has them, with any octets.
        let ended = FinalRecord { steps: steps(Some(kept.into_step(Hook::Peer))), ..generators::ended_now() };
        let mut octets = Vec::new();
        encode_final(&mut octets, &ended);
        let read = decode_final(&octets).unwrap();
        prop_assert_eq!(&read, &ended);
        let opened = |cipher| {
            let mut steps = read.steps.clone();
            open_recorded_calls(cipher, message.id, &mut steps);
            steps
        };
        prop_assert_eq!(opened(Some(&*cipher)), steps(Some(plain.clone())));
        prop_assert_eq!(opened(None), steps((!is_sealed).then_some(plain)));
    }
}

#[test]
fn without_a_key_a_text_is_not_written() {
    let cipher = InvertingCipher { has_keys: false };
    let mut message = generators::any_message();
    (message.origin, message.text.octets) = (model::PeerId(2), Bytes::from_static(b"hello"));
    let mut octets = Vec::new();
    assert!(encode_message_with(&mut octets, &message, Some(&cipher)).is_err());
    assert!(octets.is_empty());
    let batch = Batch { accepted: vec![Arc::new(message.clone())], ..Batch::default() };
    assert!(encode_batch_with(&mut octets, &batch, Some(&cipher)).is_err());
    assert_eq!(seal_recorded_call(Some(&cipher), &message, Box::new([1])), None);
}
