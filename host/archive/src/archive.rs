use crate::audit;
use crate::backend::{self, Backend};
use crate::content_erasure::{Overwriting, PumpErasures};
use crate::error::Fault;
use crate::history::{self, ArchiveFilter, ArchivePage, RecordFields};
use crate::retention::{self, TrimReport};
use crate::statistics::{self, Period};
use crate::text_retention::TextRetention;
use crate::{ArchiveError, ArchiveOptions, ArchiveRedaction, AuditLog, Record};
use api::{AuditEntry, StatisticsView};
use codec::ContentCipher;
use configuration::Keys;
use model::{MessageId, Timestamp};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The archive: finished messages in an SQL database.
///
/// Cheap to clone. Queries use their own connections, on the tokio runtime of the first caller (with I/O and time
/// enabled). Connections are opened on first use.
#[derive(Clone)]
pub struct Archive {
    pub(crate) backend: Arc<dyn Backend>,
    options: Arc<Mutex<ArchiveOptions>>,
    url: Arc<str>,
    pub(crate) pump_erasures: PumpErasures,
    pub(crate) overwriting: Overwriting,
    pub(crate) text_retention: TextRetention,
    pub(crate) redaction: Arc<ArchiveRedaction>,
    pub(crate) cipher: Option<Arc<dyn ContentCipher>>,
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
            pump_erasures: PumpErasures::default(),
            overwriting: Overwriting::default(),
            text_retention: TextRetention::default(),
            redaction: Arc::default(),
            cipher: None,
        })
    }

    /// An archive whose pump applies these rules to the rows that it writes.
    #[must_use]
    pub fn with_redaction(self, redaction: ArchiveRedaction) -> Self {
        Self { redaction: Arc::new(redaction), ..self }
    }

    /// An archive that encrypts the contents of rows when it writes them, and decrypts them when it reads rows.
    #[must_use]
    pub fn with_cipher(self, cipher: Option<Arc<dyn ContentCipher>>) -> Self {
        Self { cipher, ..self }
    }

    pub(crate) fn options(&self) -> ArchiveOptions {
        *self.options.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the options of the pump, also while it runs: batch, linger and retention. Other options stay unchanged.
    pub fn set_options(&self, options: ArchiveOptions) {
        self.options.lock().unwrap_or_else(PoisonError::into_inner).take_live(&options, false);
    }

    /// The URL without its password.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Migrates the tables now instead of at the first use.
    ///
    /// # Errors
    /// Fails if the database is down or its tables were created by a newer daemon.
    pub async fn prepare(&self) -> Result<(), ArchiveError> {
        self.with_timeout(self.backend.connect()).await?.close().await;
        Ok(())
    }

    /// Matching messages, newest first, at most `limit` (1 to 1000), older than `after`: the
    /// previous page's [`next`](ArchivePage::next).
    ///
    /// Paging is stable: messages archived meanwhile cause neither repetitions nor gaps.
    ///
    /// # Errors
    /// Fails if the database does not answer.
    pub async fn page(
        &self,
        filter: &ArchiveFilter,
        after: Option<MessageId>,
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
        after: Option<MessageId>,
        limit: usize,
        fields: RecordFields,
        timeout: Duration,
    ) -> Result<ArchivePage, ArchiveError> {
        self.with_timeout(history::page(
            (&*self.backend, &self.redaction, self.cipher.as_deref()),
            filter,
            after,
            limit,
            fields,
            timeout,
        ))
        .await
    }

    /// One message with all its columns.
    ///
    /// # Errors
    /// Fails if the database does not answer.
    pub async fn get(&self, id: MessageId) -> Result<Option<Record>, ArchiveError> {
        self.with_timeout(history::get(&*self.backend, self.cipher.as_deref(), id)).await
    }

    /// Statistics by hour or day, account and peer.
    ///
    /// # Errors
    /// Fails if the database does not answer.
    pub async fn statistics(&self, period: &Period) -> Result<Vec<StatisticsView>, ArchiveError> {
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

    /// The serial of the newest record of an audit log.
    ///
    /// # Errors
    /// Fails if the database does not answer.
    pub async fn newest_audit_record(&self, log: &AuditLog) -> Result<Option<u64>, ArchiveError> {
        let mut session = self.with_timeout(self.backend.connect()).await?;
        let newest = audit::newest(&mut *session, self.backend.dialect(), log).await;
        session.close().await;
        newest.map_err(Fault::into_error)
    }

    /// Adds records of an audit log, at most 100 at a time, in one transaction.
    ///
    /// # Errors
    /// Fails if the database does not answer, or already contains one of the records.
    pub async fn add_audit_records(
        &self,
        log: &AuditLog,
        entries: &[AuditEntry],
    ) -> Result<(), ArchiveError> {
        let mut session = self.with_timeout(self.backend.connect()).await?;
        let added = audit::insert(&mut *session, self.backend.dialect(), log, entries).await;
        session.close().await;
        added.map_err(Fault::into_error)
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
