use crate::ReplayError;
use archive::{Archive, ArchivedMessage, RawBatch, ReplayRange, ReplaySource};
use tokio::runtime::Runtime;

/// Whatever a source may report.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Where the messages come from.
pub trait Source: Send + 'static {
    /// The next messages; `None` when there are no more. Ids grow, within a batch and from one to the next. Called on a
    /// thread of its own; may block. A batch should have some thousand messages: threads share the work by batches.
    ///
    /// # Errors
    /// When they cannot be read; the replay ends with what it has.
    fn next(&mut self) -> Result<Option<Batch>, BoxError>;

    /// How many there may be yet, at most; `None` where that is not known.
    fn expected(&self) -> Option<u64> {
        None
    }
}

/// Some messages.
#[derive(Debug)]
pub enum Batch {
    /// As they are in the archive; decoded by the thread that judges them.
    Raw(RawBatch),
    /// Ready to be judged.
    Ready(Vec<ArchivedMessage>),
}

impl Batch {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Raw(batch) => batch.len(),
            Self::Ready(messages) => messages.len(),
        }
    }
}

/// Messages of the archive.
#[derive(Debug)]
pub struct FromArchive {
    source: ReplaySource,
    /// Of its own: connections live on the runtime on which they were made.
    runtime: Runtime,
}

impl FromArchive {
    /// Messages of a range; connects when the replay begins.
    ///
    /// # Errors
    /// When the system gives no runtime.
    pub fn new(archive: &Archive, range: ReplayRange) -> Result<Self, ReplayError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(ReplayError::Runtime)?;
        Ok(Self { source: archive.replay_source(range), runtime })
    }
}

impl Source for FromArchive {
    fn next(&mut self) -> Result<Option<Batch>, BoxError> {
        Ok(self.runtime.block_on(self.source.next())?.map(Batch::Raw))
    }

    fn expected(&self) -> Option<u64> {
        self.source.expected()
    }
}
