//! Encrypted contents of messages.

use crate::{Cursor, RecordError, put_long};
use bytes::Bytes;
use model::{Message, MessageId, SealedContent, Timestamp};
use std::fmt::Debug;
use std::sync::Arc;

/// A part of a message that is encrypted separately. Its octet is authenticated by the encryption, so that one part cannot
/// be substituted for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum ContentPart {
    /// Text, submitted text and host calls, in the record of a message.
    Record = 1,
    /// A call of a plugin, recorded for replays.
    RecordedCall = 2,
    /// The column `body` of the archive.
    ArchivedText = 3,
    /// The column `decision` of the archive.
    ArchivedDecision = 4,
    /// The text as submitted, in the column `trace` of the archive.
    ArchivedSubmittedText = 5,
}

/// The author of the erasure of a content whose key is missing.
pub const KEY_DESTROYED: &str = "destruction of its key";

/// A content cannot be encrypted, because its key cannot be made durable. In this case the content must not be written.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub struct CipherError(pub Arc<str>);

/// Encrypts contents. Each key serves one account for a period.
///
/// The same octets of the same part of the same message give the same encrypted octets.
pub trait ContentCipher: Debug + Send + Sync {
    /// Whether the content of a message must be encrypted.
    fn encrypts(&self, message: &Message) -> bool;

    /// Encrypts a part of a message; `None` if it need not be encrypted. The key is durable on return.
    ///
    /// # Errors
    /// There is no key, and none can be made durable.
    fn seal(
        &self,
        message: &Message,
        part: ContentPart,
        plain: &[u8],
    ) -> Result<Option<SealedContent>, CipherError>;

    /// As [`seal`](Self::seal), of a message of the account with this name.
    ///
    /// # Errors
    /// As [`seal`](Self::seal).
    fn seal_for_account(
        &self,
        account: &str,
        message: (MessageId, Timestamp),
        part: ContentPart,
        plain: &[u8],
    ) -> Result<Option<SealedContent>, CipherError>;

    /// Decrypts a part of a message; `None` if its key was destroyed, or the octets are not authentic.
    fn open(&self, id: MessageId, part: ContentPart, sealed: &SealedContent) -> Option<Vec<u8>>;

    /// The time at which a key was destroyed, if it is known.
    fn destroyed_at(&self, key: u64) -> Option<Timestamp>;
}

const SUBMITTED_TEXT: u8 = 1;
const HOST_CALLS: u8 = 2;
const SCREEN_HOST_CALLS: u8 = 4;
const LOOKUP_HOST_CALLS: u8 = 8;

/// The content of a message, before its encryption: 1 flags (bit 0 submitted text, 1 host calls, 2 host calls of the
/// screens, 3 of the lookup), then 4 length and octets for each flag; the text: the rest. `None` if the message has no
/// content.
pub(crate) fn plain_content(message: &Message) -> Option<Vec<u8>> {
    let routed = &message.routed;
    let screening = routed.screening.as_deref();
    let parts = [
        screening.and_then(|screening| Some(&*screening.submitted_text.as_ref()?.octets)),
        routed.host_calls.as_deref(),
        screening.and_then(|screening| screening.host_calls.as_deref()),
        routed.lookup.as_deref().and_then(|lookup| lookup.host_calls.as_deref()),
    ];
    let text = &message.text.octets;
    if text.is_empty() && parts.iter().all(Option::is_none) {
        return None;
    }
    let length: usize = parts.iter().flatten().map(|part| part.len() + 4).sum();
    let mut out = Vec::with_capacity(1 + length + text.len());
    let flags = [SUBMITTED_TEXT, HOST_CALLS, SCREEN_HOST_CALLS, LOOKUP_HOST_CALLS];
    out.push(flags.iter().zip(parts).filter(|(_, part)| part.is_some()).map(|(flag, _)| flag).sum());
    for part in parts.into_iter().flatten() {
        put_long(&mut out, part);
    }
    out.extend_from_slice(text);
    Some(out)
}

/// Gives a message its decrypted content.
pub(crate) fn restore_content(message: &mut Message, plain: &[u8]) -> Result<(), RecordError> {
    let mut cursor = Cursor::new(plain);
    let flags = cursor.u8()?;
    let mut part = |flag| if flags & flag == 0 { Ok(None) } else { cursor.long().map(Some) };
    let (submitted, host_calls) = (part(SUBMITTED_TEXT)?, part(HOST_CALLS)?);
    let (of_screens, of_lookup) = (part(SCREEN_HOST_CALLS)?, part(LOOKUP_HOST_CALLS)?);
    let routed = &mut message.routed;
    routed.host_calls = host_calls.map(Into::into);
    if let Some(screening) = &mut routed.screening {
        screening.host_calls = of_screens.map(Into::into);
        if let (Some(text), Some(submitted)) = (&mut screening.submitted_text, submitted) {
            text.octets = Bytes::copy_from_slice(submitted);
        }
    }
    if let Some(calls) = of_lookup
        && let Some(lookup) = &mut routed.lookup
    {
        Arc::make_mut(lookup).host_calls = Some(calls.into());
    }
    message.text.octets = Bytes::copy_from_slice(plain.get(cursor.at()..).unwrap_or_default());
    Ok(())
}
