//! Archived messages by ascending id, for replays: one thread reads octets, others decode them.

use crate::archived_message::{ArchivedMessage, MissingData};
use crate::backend::Session;
use crate::error::Fault;
use crate::history::{ReadConnection, conditions, range};
use crate::record::{columns, record};
use crate::sql::{ColumnType, Statement};
use crate::{Archive, ArchiveError, ArchiveFilter, DecisionDecoder, Direction, Record};
use bytes::{Bytes, BytesMut};
use model::{Address, MessageId, Timestamp, Verdict, unescape};
use smallvec::SmallVec;

/// The messages to replay.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReplayRange {
    /// Accepted at this time or later.
    pub from: Option<Timestamp>,
    /// Accepted before this time.
    pub until: Option<Timestamp>,
    /// Maximum number of messages, oldest first.
    pub limit: Option<u64>,
    /// Only the newest messages, up to this number; DLRs created by the appliance are not counted, because no router is
    /// called for them.
    pub last: Option<u64>,
    /// Whether to read texts, for routers that use them.
    pub body: bool,
}

/// Messages per batch: enough to make a query cheap, few enough for the processor's cache.
const BATCH_ROWS: u64 = 2048;

/// Maximum size of a batch in octets; it ends early beyond that.
const BATCH_OCTETS: usize = 4 << 20;

/// Archived messages by ascending id; created by [`Archive::replay_source`].
pub struct ReplaySource {
    archive: Archive,
    range: ReplayRange,
    session: Option<Box<dyn Session>>,
    /// The remaining range of ids, inclusive; `None` before the first batch.
    ids: Option<(i64, i64)>,
    left: u64,
}

impl std::fmt::Debug for ReplaySource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReplaySource").field("range", &self.range).field("ids", &self.ids).finish()
    }
}

impl ReplaySource {
    pub(crate) fn new(archive: Archive, range: ReplayRange) -> Self {
        let left = range.limit.unwrap_or(u64::MAX).min(if range.last == Some(0) { 0 } else { u64::MAX });
        Self { archive, range, session: None, ids: None, left }
    }

    /// Maximum number of remaining messages; `None` before the first batch. Ids have gaps (unfinished or deleted
    /// messages), so there may be fewer.
    #[must_use]
    pub fn expected(&self) -> Option<u64> {
        let (first, last) = self.ids?;
        Some(u64::try_from(last.saturating_sub(first).saturating_add(1)).unwrap_or(0).min(self.left))
    }

    /// The next batch; `None` at the end.
    ///
    /// # Errors
    /// Fails if the database does not answer. The next call continues on a new connection.
    pub async fn next(&mut self) -> Result<Option<RawBatch>, ArchiveError> {
        let archive = self.archive.clone();
        let batch = archive.with_timeout(self.read()).await;
        match (&batch, self.session.take()) {
            (Ok(Some(_)), session) => self.session = session,
            (Ok(None), Some(session)) => session.close().await,
            // A connection with a query under way cannot be used any more.
            (Ok(None), None) | (Err(_), _) => {}
        }
        batch
    }

    async fn read(&mut self) -> Result<Option<RawBatch>, Fault> {
        let backend = self.archive.backend.clone();
        let filter =
            ArchiveFilter { from: self.range.from, until: self.range.until, ..ArchiveFilter::default() };
        let session = match &mut self.session {
            Some(session) => session,
            none => none.insert(backend.connect().await?),
        };
        let ids = match self.ids {
            Some(ids) => ids,
            None => {
                let connection = ReadConnection::Own(&mut **session, backend.dialect());
                let whole = range(connection, &filter, None).await?.unwrap_or((1, 0));
                match self.range.last {
                    Some(last) => newest(&mut **session, &backend, &filter, whole, last).await?,
                    None => whole,
                }
            }
        };
        self.ids = Some(ids);
        let (first, last) = ids;
        if first > last || self.left == 0 {
            return Ok(None);
        }
        let most = BATCH_ROWS.min(self.left);
        let body = self.range.body;
        let what = if body { "SELECT id, decision, body" } else { "SELECT id, decision" };
        let mut statement = Statement::new(backend.dialect(), what);
        statement.push(" FROM messages");
        conditions(&mut statement, &filter, (first, last));
        statement.push(" ORDER BY id LIMIT ").push(&most.to_string());
        let mut batch = session.scan(&statement, body).await?;
        let Some(reached) = batch.rows.last().map(|row| row.id) else {
            self.ids = Some((1, 0));
            return Ok(None);
        };
        if batch.rows.iter().any(RawRow::lacks_decision) {
            batch.undecided_rows =
                undecided_rows(&mut **session, &backend, &filter, (first, reached)).await?;
        }
        self.left -= (batch.rows.len() as u64).min(self.left);
        self.ids = Some((reached.saturating_add(1), last));
        Ok(Some(batch))
    }
}

/// The part of a range of ids that contains the newest `last` messages, without DLRs created by the appliance; the
/// whole range if there are fewer.
async fn newest(
    session: &mut dyn Session,
    backend: &std::sync::Arc<dyn crate::backend::Backend>,
    filter: &ArchiveFilter,
    whole: (i64, i64),
    last: u64,
) -> Result<(i64, i64), Fault> {
    // `last` is 0: nothing will be read.
    let Some(before) = last.checked_sub(1) else { return Ok(whole) };
    let mut statement = Statement::new(backend.dialect(), "SELECT id FROM messages");
    conditions(&mut statement, filter, whole);
    statement
        .push(" AND NOT (router = 'receipt' AND router_version = '') ORDER BY id DESC LIMIT 1 OFFSET ")
        .push(&before.min(i64::MAX as u64).to_string());
    let table = session.select(&statement, &[ColumnType::Big]).await?;
    let oldest = table.first().and_then(|row| row.first()?.number());
    Ok((oldest.unwrap_or(whole.0), whole.1))
}

/// All columns of rows that an older version wrote, by ascending id.
async fn undecided_rows(
    session: &mut dyn Session,
    backend: &std::sync::Arc<dyn crate::backend::Backend>,
    filter: &ArchiveFilter,
    ids: (i64, i64),
) -> Result<Vec<Record>, Fault> {
    let columns = columns(true, true);
    let names: Vec<_> = columns.iter().map(|(name, _)| *name).collect();
    let mut statement =
        Statement::new(backend.dialect(), &format!("SELECT {} FROM messages", names.join(", ")));
    conditions(&mut statement, filter, ids);
    statement.push(" AND decision IS NULL ORDER BY id");
    let kinds: Vec<_> = columns.iter().map(|(_, kind)| *kind).collect();
    let table = session.select(&statement, &kinds).await?;
    let damaged = |(id, what)| Fault::Down(ArchiveError::Damaged { id, what });
    table.into_iter().map(|cells| record(&columns, cells).map_err(damaged)).collect()
}

/// Messages as read from the database, to be decoded on another thread.
#[derive(Debug, Default)]
pub struct RawBatch {
    rows: Vec<RawRow>,
    octets: Bytes,
    with_body: bool,
    /// Rows that an older version wrote.
    undecided_rows: Vec<Record>,
}

/// Collects a batch.
pub(crate) struct RawBatchBuilder {
    rows: Vec<RawRow>,
    octets: BytesMut,
    with_body: bool,
}

impl RawBatchBuilder {
    pub(crate) fn new(with_body: bool) -> Self {
        let most = usize::try_from(BATCH_ROWS).unwrap_or(0);
        let octets = BytesMut::with_capacity(most * if with_body { 256 } else { 96 });
        Self { rows: Vec::with_capacity(most), octets, with_body }
    }

    /// Adds a row; a missing decision or text is empty. Returns whether there is room for more.
    pub(crate) fn push(&mut self, id: i64, decision: &[u8], body: &[u8]) -> bool {
        let mut put = |octets: &[u8]| {
            let begin = self.octets.len();
            self.octets.extend_from_slice(octets);
            (begin, self.octets.len())
        };
        let (decision, body) = (put(decision), put(body));
        self.rows.push(RawRow { id, decision, body });
        self.octets.len() < BATCH_OCTETS
    }

    pub(crate) fn finish(self) -> RawBatch {
        RawBatch {
            rows: self.rows,
            octets: self.octets.freeze(),
            with_body: self.with_body,
            undecided_rows: Vec::new(),
        }
    }
}

/// A message's values, as ranges of the batch's octets.
#[derive(Debug)]
struct RawRow {
    id: i64,
    decision: (usize, usize),
    body: (usize, usize),
}

impl RawRow {
    fn lacks_decision(&self) -> bool {
        self.decision.0 == self.decision.1
    }
}

impl RawBatch {
    /// The number of messages.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether the batch is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Decodes the messages, by ascending id. A damaged row yields an error, and decoding continues.
    pub fn decode<'a>(
        &'a self,
        decoder: &'a mut DecisionDecoder,
    ) -> impl Iterator<Item = Result<ArchivedMessage, ArchiveError>> + 'a {
        let mut undecided_rows = self.undecided_rows.iter().peekable();
        self.rows.iter().map(move |row| {
            let damaged = |what: &str| ArchiveError::Damaged { id: row.id, what: what.to_owned() };
            let id = MessageId(u64::try_from(row.id).map_err(|_| damaged("a negative id"))?);
            if row.lacks_decision() {
                while undecided_rows.next_if(|record| record.id < id).is_some() {}
                let record = undecided_rows
                    .next_if(|record| record.id == id)
                    .ok_or_else(|| damaged("it was changed concurrently"))?;
                return from_record(record, self.with_body, decoder).ok_or_else(|| damaged("trace"));
            }
            let decision = self.octets.slice(row.decision.0..row.decision.1);
            let mut message = decoder.message(id, &decision).map_err(|error| damaged(error.what))?;
            if self.with_body {
                message.body = Some(self.octets.slice(row.body.0..row.body.1));
            }
            Ok(message)
        })
    }
}

/// Builds a message of an older version from its columns and its trace.
fn from_record(record: &Record, with_body: bool, decoder: &mut DecisionDecoder) -> Option<ArchivedMessage> {
    let trace = record.decoded_trace()?;
    let address = |ton, npi, text: &str| Some(Address::new(ton, npi, &unescape(text)?));
    let mut verdict = trace.verdict?.map_peers(|peer| decoder.name(peer));
    if let Verdict::Forward(legs) = &mut verdict {
        for leg in legs {
            // Older versions stored neither the type and plan of rewritten addresses nor how a leg was resolved.
            (leg.resolve, leg.imsi) = (false, None);
            for address in [&mut leg.source, &mut leg.destination].into_iter().flatten() {
                (address.ton, address.npi) = (0, 0);
            }
        }
    }
    let body = record.body.as_deref().unwrap_or_default();
    let origin = match record.direction {
        Direction::Mt => &record.account,
        Direction::Mo => &record.peer,
    };
    Some(ArchivedMessage {
        id: record.id,
        accepted_at: record.accepted_at,
        decided_at: record.accepted_at,
        origin: decoder.name(origin),
        source: address(record.source_ton, record.source_npi, &record.source)?,
        destination: address(record.destination_ton, record.destination_npi, &record.destination)?,
        service_type: SmallVec::from_vec(trace.service_type),
        data_coding: record.data_coding,
        priority: record.priority,
        length: u32::try_from(body.len()).unwrap_or(u32::MAX),
        udhi: record.udhi,
        dlr_request: trace.dlr_request,
        body: with_body.then(|| Bytes::copy_from_slice(body)),
        verdict,
        sender: None,
        price: None,
        host_calls: None,
        routed: true,
        missing: Some(MissingData::Older),
    })
}
