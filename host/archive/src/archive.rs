use crate::backend::{self, Backend};
use crate::error::Fault;
use crate::export::{ExportFormat, HistoryExport};
use crate::history::{self, ArchiveCursor, ArchiveFilter, ArchivePage, RecordFields};
use crate::retention::{self, TrimReport};
use crate::statistics::{self, Period, Statistics};
use crate::{ArchiveError, FinishedSource, Pump, Record, ReplayRange, ReplaySource};
use configuration::Keys;
use model::{MessageId, Timestamp};
use std::sync::{Arc, Mutex, PoisonError};
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
    /// The share of time that the pump keeps the database busy while it works off a shrinking backlog, above 0 and at
    /// most 1. The pump does not rest while the backlog grows.
    #[key(skip = 0.5)]
    pub share: f64,
    /// Messages accepted longer ago than this are deleted.
    #[key(name = "retention", default_as = "never", live = "applies within ten minutes", was = "keep")]
    pub keep: Option<Duration>,
    /// Delay before a row that the database refused is tried again.
    #[key(skip = Duration::from_secs(3600))]
    pub refused_retry_interval: Duration,
    /// Maximum delay between attempts to reach the database; delays double up to it.
    #[key(skip = Duration::from_secs(30))]
    pub max_retry_delay: Duration,
    /// Maximum duration of a statement, after which the connection is given up.
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

/// The archive: finished messages in an SQL database.
///
/// Cheap to clone. Queries use their own connections, on the tokio runtime of the first caller (with I/O and time
/// enabled). Nothing connects before it is needed.
#[derive(Clone)]
pub struct Archive {
    pub(crate) backend: Arc<dyn Backend>,
    options: Arc<Mutex<ArchiveOptions>>,
    url: Arc<str>,
}

impl std::fmt::Debug for Archive {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Archive").field("url", &self.url).field("options", &self.options()).finish()
    }
}

impl Archive {
    /// Opens the archive at `url`: `sqlite:PATH`, `mysql://…`, `mariadb://…` or `postgres://…`. Does not connect: the
    /// database may be down.
    ///
    /// # Errors
    /// Fails if the URL is invalid.
    pub fn open(url: &str, options: ArchiveOptions) -> Result<Self, ArchiveError> {
        let backend = backend::open(url, &options)?;
        Ok(Self {
            backend,
            options: Arc::new(Mutex::new(options)),
            url: backend::without_password(url).into(),
        })
    }

    pub(crate) fn options(&self) -> ArchiveOptions {
        *self.options.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the options of the pump, also while it runs: batch, linger and retention. Others stay as they were.
    pub fn set_options(&self, options: ArchiveOptions) {
        self.options.lock().unwrap_or_else(PoisonError::into_inner).take_live(&options, false);
    }

    /// The URL without its password.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// A pump from `source` into this archive; see [`Pump::start`].
    #[must_use]
    pub fn pump(&self, source: Arc<dyn FinishedSource>) -> Pump {
        Pump::new(self.clone(), source)
    }

    /// Migrates the tables now instead of at the first use.
    ///
    /// # Errors
    /// Fails if the database is down or its tables were created by a newer daemon.
    pub async fn prepare(&self) -> Result<(), ArchiveError> {
        self.with_timeout(self.backend.connect()).await?.close().await;
        Ok(())
    }

    /// Matching messages, newest first, at most `limit` (1 to 1000), after the previous page's cursor.
    ///
    /// Paging is stable: messages archived meanwhile cause neither repetitions nor gaps.
    ///
    /// # Errors
    /// Fails if the database does not answer.
    pub async fn page(
        &self,
        filter: &ArchiveFilter,
        after: Option<ArchiveCursor>,
        limit: usize,
        fields: RecordFields,
    ) -> Result<ArchivePage, ArchiveError> {
        self.page_within(filter, after, limit, fields, history::DEFAULT_SEARCH_TIMEOUT).await
    }

    /// Like [`page`](Self::page), for interactive callers: a search without an index ends after about `timeout` with
    /// the messages found so far and a cursor to continue from.
    ///
    /// # Errors
    /// Fails if the database does not answer.
    pub async fn page_within(
        &self,
        filter: &ArchiveFilter,
        after: Option<ArchiveCursor>,
        limit: usize,
        fields: RecordFields,
        timeout: Duration,
    ) -> Result<ArchivePage, ArchiveError> {
        self.with_timeout(history::page(&*self.backend, filter, after, limit, fields, timeout)).await
    }

    /// One message with all its columns.
    ///
    /// # Errors
    /// Fails if the database does not answer.
    pub async fn get(&self, id: MessageId) -> Result<Option<Record>, ArchiveError> {
        self.with_timeout(history::get(&*self.backend, id)).await
    }

    /// All matching messages, newest first, as chunks of a file.
    #[must_use]
    pub fn export(&self, filter: ArchiveFilter, format: ExportFormat, fields: RecordFields) -> HistoryExport {
        HistoryExport::new(self.clone(), filter, format, fields)
    }

    /// Messages of a time range in batches, by ascending id, for replays. It has its own connection, so readers do not
    /// wait for it; it connects at the first batch, on the caller's runtime.
    #[must_use]
    pub fn replay_source(&self, range: ReplayRange) -> ReplaySource {
        ReplaySource::new(self.clone(), range)
    }

    /// Statistics by hour or day, account and peer.
    ///
    /// # Errors
    /// Fails if the database does not answer.
    pub async fn statistics(&self, period: &Period) -> Result<Vec<Statistics>, ArchiveError> {
        self.with_timeout(statistics::query(&*self.backend, period)).await
    }

    /// Deletes messages accepted before `before`, in small steps with pauses, while the pump continues. The pump calls
    /// this if `ArchiveOptions::retention` is set.
    ///
    /// # Errors
    /// Fails if the database does not answer; earlier steps remain.
    pub async fn trim(&self, before: Timestamp) -> Result<TrimReport, ArchiveError> {
        let mut session = self.with_timeout(self.backend.connect()).await?;
        let trimmed = retention::trim(&mut *session, self.backend.dialect(), before).await;
        session.close().await;
        trimmed.map_err(Fault::into_error)
    }

    /// The end of the newest hour before `at` for which the archive has messages.
    pub(crate) async fn newest_hour_before(&self, at: Timestamp) -> Result<Option<Timestamp>, ArchiveError> {
        let mut session = self.with_timeout(self.backend.connect()).await?;
        let newest = retention::newest_hour_before(&mut *session, self.backend.dialect(), at).await;
        session.close().await;
        newest.map_err(Fault::into_error)
    }

    pub(crate) async fn with_timeout<T>(
        &self,
        work: impl Future<Output = Result<T, Fault>>,
    ) -> Result<T, ArchiveError> {
        let timeout = self.options().timeout;
        match tokio::time::timeout(timeout, work).await {
            Ok(result) => result.map_err(Fault::into_error),
            Err(_) => Err(ArchiveError::Timeout(timeout.as_secs())),
        }
    }
}
