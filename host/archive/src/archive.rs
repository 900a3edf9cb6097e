use crate::backend::{self, Backend};
use crate::error::Fault;
use crate::export::{Export, Format};
use crate::history::{self, Cursor, Filter, Page, Wanted};
use crate::retention::{self, Trimmed};
use crate::statistics::{self, Period, Statistics};
use crate::{ArchiveError, Pump, Record, ReplayRange, ReplaySource, Source};
use model::{MessageId, Timestamp};
use std::sync::Arc;
use std::time::Duration;

/// How the archive works. The defaults are good.
#[derive(Debug, Clone)]
pub struct Options {
    /// Messages of one transaction, at most; at least 1.
    pub batch: usize,
    /// How long the pump waits for company before it archives fewer messages than a batch holds. It is what a message
    /// is late in the table when there is little traffic, and what little traffic costs the data base.
    pub linger: Duration,
    /// The share of its time that the pump keeps the data base busy while it catches up with a backlog that shrinks
    /// anyway, above 0 and at most 1; the rest belongs to traffic. With a backlog that grows it does not rest.
    pub share: f64,
    /// Messages accepted longer ago than this are deleted; `None` keeps them all.
    pub keep: Option<Duration>,
    /// A row that the data base refuses by itself is tried again so often.
    pub refused_again: Duration,
    /// The longest pause between attempts to reach a data base that is down; pauses double up to it.
    pub longest_pause: Duration,
    /// How long a statement may take before the connection is given up.
    pub patience: Duration,
    /// Connections for readers, at most.
    pub readers: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            batch: 2000,
            linger: Duration::from_millis(200),
            share: 0.5,
            keep: None,
            refused_again: Duration::from_secs(3600),
            longest_pause: Duration::from_secs(30),
            patience: Duration::from_secs(120),
            readers: 4,
        }
    }
}

/// Finished messages in a data base.
///
/// Cheap to clone. All questions are answered on the runtime of whoever asks first (a tokio runtime with I/O and time),
/// on connections of their own; nothing connects before it is needed.
#[derive(Clone)]
pub struct Archive {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) options: Arc<Options>,
    url: Arc<str>,
}

impl std::fmt::Debug for Archive {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Archive").field("url", &self.url).field("options", &self.options).finish()
    }
}

impl Archive {
    /// The archive at `url`: `sqlite:PATH`, `mysql://…`, `mariadb://…` or `postgres://…`. Does not connect: the data base
    /// may well be down now.
    ///
    /// # Errors
    /// When the URL cannot be understood.
    pub fn open(url: &str, options: Options) -> Result<Self, ArchiveError> {
        let backend = backend::open(url, &options)?;
        Ok(Self { backend, options: Arc::new(options), url: backend::without_password(url).into() })
    }

    /// The URL, without its password.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// A pump from `source` into this archive; see [`Pump::start`].
    #[must_use]
    pub fn pump(&self, source: Arc<dyn Source>) -> Pump {
        Pump::new(self.clone(), source)
    }

    /// Brings the tables up to date now, instead of at the first use.
    ///
    /// # Errors
    /// When the data base is down, or has tables of a newer daemon.
    pub async fn prepare(&self) -> Result<(), ArchiveError> {
        self.within(self.backend.connect()).await?.close().await;
        Ok(())
    }

    /// Messages that match, newest first, at most `limit` (1 to 1000) of them, from where the page before ended.
    ///
    /// Paging is stable: messages that are archived meanwhile never make one appear twice or be left out.
    ///
    /// # Errors
    /// When the data base does not answer.
    pub async fn page(
        &self,
        filter: &Filter,
        after: Option<Cursor>,
        limit: usize,
        wanted: Wanted,
    ) -> Result<Page, ArchiveError> {
        self.page_within(filter, after, limit, wanted, history::ENOUGH).await
    }

    /// As [`page`](Self::page), for somebody who waits: a search by something that has no index ends after about this long
    /// with what it has found, and says where to go on.
    ///
    /// # Errors
    /// When the data base does not answer.
    pub async fn page_within(
        &self,
        filter: &Filter,
        after: Option<Cursor>,
        limit: usize,
        wanted: Wanted,
        patience: Duration,
    ) -> Result<Page, ArchiveError> {
        self.within(history::page(&*self.backend, filter, after, limit, wanted, patience)).await
    }

    /// One message with everything that is known of it.
    ///
    /// # Errors
    /// When the data base does not answer.
    pub async fn get(&self, id: MessageId) -> Result<Option<Record>, ArchiveError> {
        self.within(history::get(&*self.backend, id)).await
    }

    /// Everything that matches, newest first, in chunks of a file.
    #[must_use]
    pub fn export(&self, filter: Filter, format: Format, wanted: Wanted) -> Export {
        Export::new(self.clone(), filter, format, wanted)
    }

    /// Messages of a range of time by growing id, in batches, for replays. It has a connection of its own: readers do not
    /// wait for it. Connects at the first batch, on the runtime that it is asked on.
    #[must_use]
    pub fn replay_source(&self, range: ReplayRange) -> ReplaySource {
        ReplaySource::new(self.clone(), range)
    }

    /// Counts by hour or day, account and peer.
    ///
    /// # Errors
    /// When the data base does not answer.
    pub async fn statistics(&self, period: &Period) -> Result<Vec<Statistics>, ArchiveError> {
        self.within(statistics::query(&*self.backend, period)).await
    }

    /// Deletes messages accepted before `before`, in small steps with pauses; the pump goes on beside it. The pump calls
    /// it by itself where [`Options::keep`] is set.
    ///
    /// # Errors
    /// When the data base does not answer; what was deleted until then is deleted.
    pub async fn trim(&self, before: Timestamp) -> Result<Trimmed, ArchiveError> {
        let mut session = self.within(self.backend.connect()).await?;
        let trimmed = retention::trim(&mut *session, self.backend.dialect(), before).await;
        session.close().await;
        trimmed.map_err(Fault::into_error)
    }

    /// The end of the newest hour before this time of which the archive has messages.
    pub(crate) async fn newest_hour_before(&self, at: Timestamp) -> Result<Option<Timestamp>, ArchiveError> {
        let mut session = self.within(self.backend.connect()).await?;
        let newest = retention::newest_hour_before(&mut *session, self.backend.dialect(), at).await;
        session.close().await;
        newest.map_err(Fault::into_error)
    }

    pub(crate) async fn within<T>(
        &self,
        work: impl Future<Output = Result<T, Fault>>,
    ) -> Result<T, ArchiveError> {
        match tokio::time::timeout(self.options.patience, work).await {
            Ok(result) => result.map_err(Fault::into_error),
            Err(_) => Err(ArchiveError::Timeout(self.options.patience.as_secs())),
        }
    }
}
