use configuration::Keys;
use std::time::Duration;

/// Options of the archive. The defaults suit most installations.
#[derive(Debug, Clone, Copy, PartialEq, Keys)]
pub struct ArchiveOptions {
    /// Maximum number of messages per transaction.
    #[key(range = 1..=100_000, default = 2000, live = "applies from the next batch on")]
    pub batch: usize,
    /// Maximum time that a batch waits for more messages. With little traffic, this is the delay of a message and the
    /// minimum interval between transactions.
    #[key(default = "200ms", live = "applies from the next batch on")]
    pub linger: Duration,
    /// The share of time that the pump keeps the database busy while a backlog shrinks, above 0 and at most 1. The pump does
    /// not pause while the backlog grows.
    #[key(skip = 0.5)]
    pub share: f64,
    /// The retention: messages accepted longer ago than this are deleted.
    #[key(name = "retention", default_as = "never", live = "applies within ten minutes", was = "keep")]
    pub keep: Option<Duration>,
    /// Delay before a row that the database refused is retried.
    #[key(skip = Duration::from_secs(3600))]
    pub refused_retry_interval: Duration,
    /// Maximum delay between attempts to reach the database; delays double up to it.
    #[key(skip = Duration::from_secs(30))]
    pub max_retry_delay: Duration,
    /// Maximum duration of a statement; then the connection is closed.
    #[key(skip = Duration::from_secs(120))]
    pub timeout: Duration,
    /// Maximum number of connections for readers.
    #[key(skip = 4)]
    pub readers: u32,
}

impl Default for ArchiveOptions {
    fn default() -> Self {
        Self::defaults()
    }
}
