//! Rows with encrypted contents.
//!
//! The columns `body` and `decision`, and the text as submitted in `trace`, are encrypted separately, with the key whose
//! number is in the column `text_key`. Host calls and recorded calls are in `decision`.

use crate::ArchiveError;
use crate::erased_trace::trace_without_content;
use crate::raw_batch::{RawBatch, RawBatchBuilder};
use crate::row::Row;
use bytes::Bytes;
use codec::{CipherError, ContentCipher, ContentPart, KEY_DESTROYED};
use model::{MessageId, SealedContent, Timestamp, from_hex, hex};
use serde_json::{Value, json};

/// The text as submitted, in a trace.
const SUBMITTED_TEXT: &str = "/screening/submitted/octets";

impl Row {
    /// Encrypts the content, if the contents of its account are encrypted.
    ///
    /// # Errors
    /// There is no key. In this case the row must not be written.
    pub(crate) fn seal(&mut self, cipher: &dyn ContentCipher) -> Result<(), CipherError> {
        if self.content_erased_at.is_some() {
            return Ok(());
        }
        let message = (self.id(), Timestamp(u64::try_from(self.accepted_at).unwrap_or(0)));
        let account = self.account.clone();
        let mut key = None;
        let mut seal = |part, plain: &[u8]| {
            let sealed = cipher.seal_for_account(&account, message, part, plain)?;
            key = sealed.as_ref().map(|sealed| sealed.key);
            Ok(sealed.map(|sealed| sealed.octets))
        };
        if !self.body.is_empty()
            && let Some(sealed) = seal(ContentPart::ArchivedText, &self.body)?
        {
            self.body = sealed;
        }
        if !self.decision.is_empty()
            && let Some(sealed) = seal(ContentPart::ArchivedDecision, &self.decision)?
        {
            self.decision = sealed.into();
        }
        if self.trace.contains("\"submitted\"")
            && let Some(trace) = with_submitted_text(&self.trace, |plain| {
                seal(ContentPart::ArchivedSubmittedText, plain).map(|sealed| sealed.map(Into::into))
            })?
        {
            self.trace = trace;
        }
        // SQL has no unsigned numbers: the column has the same bits as a signed number.
        self.text_key = key.map(u64::cast_signed);
        Ok(())
    }
}

/// A trace with another text as submitted; `None` if it has none, or `change` does not change it.
fn with_submitted_text<E>(
    trace: &str,
    change: impl FnOnce(&[u8]) -> Result<Option<Vec<u8>>, E>,
) -> Result<Option<String>, E> {
    let Ok(mut trace) = serde_json::from_str::<Value>(trace) else { return Ok(None) };
    let Some(octets) = trace.pointer_mut(SUBMITTED_TEXT) else { return Ok(None) };
    let Some(before) = octets.as_str().and_then(from_hex) else { return Ok(None) };
    let Some(after) = change(&before)? else { return Ok(None) };
    *octets = json!(hex(&after));
    Ok(serde_json::to_string(&trace).ok())
}

/// The content of a row before its decryption.
pub(crate) struct SealedRow {
    pub(crate) id: MessageId,
    pub(crate) key: u64,
    pub(crate) body: Option<Vec<u8>>,
    pub(crate) trace: Option<String>,
}

/// The key is missing: the content is erased.
pub(crate) struct MissingKey {
    /// The time at which it was destroyed, if it is known.
    pub(crate) destroyed_at: Option<Timestamp>,
}

impl SealedRow {
    /// Decrypts text and trace.
    pub(crate) fn open(&mut self, cipher: Option<&dyn ContentCipher>) -> Result<(), MissingKey> {
        let destroyed_at = cipher.and_then(|cipher| cipher.destroyed_at(self.key));
        let missing = || MissingKey { destroyed_at };
        let open = |part, octets: Vec<u8>| {
            let sealed = SealedContent { key: self.key, octets: octets.into() };
            cipher.and_then(|cipher| cipher.open(self.id, part, &sealed)).ok_or_else(missing)
        };
        if let Some(body) = &mut self.body
            && !body.is_empty()
        {
            *body = open(ContentPart::ArchivedText, std::mem::take(body))?;
        }
        if let Some(trace) = &mut self.trace
            && trace.contains("\"submitted\"")
            && let Some(opened) = with_submitted_text(trace, |sealed| {
                open(ContentPart::ArchivedSubmittedText, sealed.to_vec()).map(Some)
            })?
        {
            *trace = opened;
        }
        if self.body.is_none() && cipher.is_none_or(|cipher| cipher.destroyed_at(self.key).is_some()) {
            return Err(missing());
        }
        Ok(())
    }

    /// Removes the text as submitted from the trace, and adds a step for the erasure.
    pub(crate) fn erase(&mut self, at: Timestamp) {
        self.body = self.body.is_some().then(Vec::new);
        self.trace = self.trace.take().map(|trace| {
            trace_without_content(&trace, at, &KEY_DESTROYED.into()).unwrap_or_else(|| "{}".to_owned())
        });
    }
}

impl RawBatch {
    /// Decrypts the contents of its rows. A row whose key is missing is left without its decision.
    pub(crate) fn opened(self, cipher: Option<&dyn ContentCipher>) -> Result<Self, ArchiveError> {
        if self.rows.iter().all(|row| row.key.is_none()) {
            return Ok(self);
        }
        let mut opened = RawBatchBuilder::new(self.parts);
        for row in &self.rows {
            let [decision, body, trace] = self.values(row);
            let Some(key) = row.key else {
                opened.push(row.id, (&decision, None), &body, &trace);
                continue;
            };
            let key = key.cast_unsigned();
            let damaged = |what: &str| ArchiveError::Damaged { id: row.id, what: what.to_owned() };
            let id = MessageId(u64::try_from(row.id).map_err(|_| damaged("a negative id"))?);
            let trace = std::str::from_utf8(&trace).map_err(|_| damaged("trace"))?.to_owned();
            let mut content = SealedRow { id, key, body: Some(body.to_vec()), trace: Some(trace) };
            let sealed = SealedContent { key, octets: decision.clone() };
            let decision: Option<Bytes> = match (decision.is_empty(), content.open(cipher)) {
                // The decision was erased, or an older version wrote the row without one.
                (true, _) | (_, Err(_)) => None,
                (false, Ok(())) => cipher
                    .and_then(|cipher| cipher.open(id, ContentPart::ArchivedDecision, &sealed))
                    .map(Into::into),
            };
            let (body, trace) = (content.body.unwrap_or_default(), content.trace.unwrap_or_default());
            match decision {
                Some(decision) => opened.push(row.id, (&decision, None), &body, trace.as_bytes()),
                None => opened.push(row.id, (&[], None), &[], &[]),
            };
        }
        Ok(opened.finish())
    }
}
