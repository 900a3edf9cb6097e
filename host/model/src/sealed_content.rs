use bytes::Bytes;

/// The content of a message, or a part of it, encrypted with the key of an account and a period.
///
/// The content is what [`crate::ContentErasure`] erases: the text, the text as submitted if a screen replaced it, and the
/// recorded host calls of plugins with their results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedContent {
    /// The number of the key.
    pub key: u64,
    /// Nonce, encrypted octets and tag.
    pub octets: Bytes,
}
