use crate::ReplayError;
use archive::{Archive, ArchivedMessage, RawBatch, ReplayRange, ReplaySource};
use tokio::runtime::Runtime;

/// Any error of a source.
pub type MessageSourceError = Box<dyn std::error::Error + Send + Sync>;

/// A source of messages.
pub trait MessageSource: Send + 'static {
    /// The next messages; `None` at the end. Ids increase within a batch and from batch to batch. Called on a dedicated
    /// thread; may block. A batch should have some thousand messages, because a thread processes a batch at a time.
    ///
    /// # Errors
    /// The messages cannot be read; the replay ends with the previous batches.
    fn next(&mut self) -> Result<Option<MessageBatch>, MessageSourceError>;

    /// Upper bound on the number of remaining messages; `None` if unknown.
    fn expected(&self) -> Option<u64> {
        None
    }
}

/// A batch of messages.
#[derive(Debug)]
pub enum MessageBatch {
    /// Rows as in the archive, decoded by the thread that compares them.
    Raw(RawBatch),
    /// Decoded messages.
    Ready(Vec<ArchivedMessage>),
}

impl MessageBatch {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Raw(batch) => batch.len(),
            Self::Ready(messages) => messages.len(),
        }
    }
}

/// Reads messages from the archive.
#[derive(Debug)]
pub struct ArchiveSource {
    source: ReplaySource,
    /// A separate runtime: connections belong to the runtime that created them.
    runtime: Runtime,
}

impl ArchiveSource {
    /// A source for the messages of a range. It connects when the replay starts.
    ///
    /// # Errors
    /// The runtime could not be started.
    pub fn new(archive: &Archive, range: ReplayRange) -> Result<Self, ReplayError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(ReplayError::Runtime)?;
        Ok(Self { source: archive.replay_source(range), runtime })
    }
}

impl MessageSource for ArchiveSource {
    fn next(&mut self) -> Result<Option<MessageBatch>, MessageSourceError> {
        Ok(self.runtime.block_on(self.source.next())?.map(MessageBatch::Raw))
    }

    fn expected(&self) -> Option<u64> {
        self.source.expected()
    }
}
