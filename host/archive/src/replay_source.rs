//! Archived messages by growing id, for replays: one thread reads octets, others make messages of them.

use crate::archived::{ArchivedLeg, ArchivedMessage, ArchivedVerdict, Lacking};
use crate::backend::Session;
use crate::error::Fault;
use crate::history::{Asked, conditions, range};
use crate::record::{columns, record};
use crate::sql::{Kind, Statement};
use crate::storable::stored;
use crate::{Archive, ArchiveError, Decoder, Direction, Filter, Record};
use bytes::{Bytes, BytesMut};
use model::{Address, MessageId, ReceiptRequest, RejectReason, Timestamp};
use serde::Deserialize;
use smallvec::SmallVec;
use std::time::Duration;

/// Which messages are to be replayed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReplayRange {
    /// Accepted at this time or later.
    pub from: Option<Timestamp>,
    /// Accepted before this time.
    pub until: Option<Timestamp>,
    /// At most so many, the oldest.
    pub limit: Option<u64>,
    /// Only the newest so many; receipts of the house's own, which no router is asked about, are not counted.
    pub last: Option<u64>,
    /// With their texts: for routers that look into them.
    pub body: bool,
}

/// Messages of a batch: enough to make the cost of a query small, few enough to stay in a processor's cache.
const BATCH: u64 = 2048;

/// Octets of a batch: with this many, it ends before it is full.
const OCTETS: usize = 4 << 20;

/// Archived messages by growing id; made by [`Archive::replay_source`].
pub struct ReplaySource {
    archive: Archive,
    range: ReplayRange,
    session: Option<Box<dyn Session>>,
    /// Ids that are still to be read, both included; `None` before the first batch.
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

    /// How many messages may come yet, at most; `None` before the first batch. Ids have gaps where messages are kept no
    /// longer or have not ended, so there may be fewer.
    #[must_use]
    pub fn expected(&self) -> Option<u64> {
        let (first, last) = self.ids?;
        Some(u64::try_from(last.saturating_sub(first).saturating_add(1)).unwrap_or(0).min(self.left))
    }

    /// The next messages; `None` when there are no more.
    ///
    /// # Errors
    /// When the data base does not answer. Asked again, it goes on where it was, on a new connection.
    pub async fn next(&mut self) -> Result<Option<RawBatch>, ArchiveError> {
        let archive = self.archive.clone();
        let batch = archive.within(self.read()).await;
        match (&batch, self.session.take()) {
            (Ok(Some(_)), session) => self.session = session,
            (Ok(None), Some(session)) => session.close().await,
            // Of a connection with a question under way, nothing good can be expected.
            (Ok(None), None) | (Err(_), _) => {}
        }
        batch
    }

    async fn read(&mut self) -> Result<Option<RawBatch>, Fault> {
        let backend = self.archive.backend.clone();
        let filter = Filter { from: self.range.from, until: self.range.until, ..Filter::default() };
        let session = match &mut self.session {
            Some(session) => session,
            none => none.insert(backend.connect().await?),
        };
        let ids = match self.ids {
            Some(ids) => ids,
            None => {
                let asked = Asked::Own(&mut **session, backend.dialect());
                let whole = range(asked, &filter, None).await?.unwrap_or((1, 0));
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
        let most = BATCH.min(self.left);
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
        if batch.rows.iter().any(RawRow::is_old) {
            batch.old = old(&mut **session, &backend, &filter, (first, reached)).await?;
        }
        self.left -= (batch.rows.len() as u64).min(self.left);
        self.ids = Some((reached.saturating_add(1), last));
        Ok(Some(batch))
    }
}

/// The part of a range of ids in which the newest `last` messages are, receipts of our own not counted: all of it where there
/// are not so many.
async fn newest(
    session: &mut dyn Session,
    backend: &std::sync::Arc<dyn crate::backend::Backend>,
    filter: &Filter,
    whole: (i64, i64),
    last: u64,
) -> Result<(i64, i64), Fault> {
    // Nothing is left to be read then.
    let Some(before) = last.checked_sub(1) else { return Ok(whole) };
    let mut statement = Statement::new(backend.dialect(), "SELECT id FROM messages");
    conditions(&mut statement, filter, whole);
    statement
        .push(" AND NOT (router = 'receipt' AND router_version = '') ORDER BY id DESC LIMIT 1 OFFSET ")
        .push(&before.min(i64::MAX as u64).to_string());
    let table = session.select(&statement, &[Kind::Big]).await?;
    let oldest = table.first().and_then(|row| row.first()?.number());
    Ok((oldest.unwrap_or(whole.0), whole.1))
}

/// Rows of an older version, whole, by growing id.
async fn old(
    session: &mut dyn Session,
    backend: &std::sync::Arc<dyn crate::backend::Backend>,
    filter: &Filter,
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

/// Messages as they came from the data base, to be decoded by whoever has the time.
#[derive(Debug, Default)]
pub struct RawBatch {
    rows: Vec<RawRow>,
    octets: Bytes,
    with_body: bool,
    /// Those among them that an older version wrote.
    old: Vec<Record>,
}

/// A batch that is being read.
pub(crate) struct Collected {
    rows: Vec<RawRow>,
    octets: BytesMut,
    with_body: bool,
}

impl Collected {
    pub(crate) fn new(with_body: bool) -> Self {
        let most = usize::try_from(BATCH).unwrap_or(0);
        let octets = BytesMut::with_capacity(most * if with_body { 256 } else { 96 });
        Self { rows: Vec::with_capacity(most), octets, with_body }
    }

    /// Takes in a row; no decision, or no text, is no octets. Says whether there is room for more.
    pub(crate) fn push(&mut self, id: i64, decision: &[u8], body: &[u8]) -> bool {
        let mut put = |octets: &[u8]| {
            let begin = self.octets.len();
            self.octets.extend_from_slice(octets);
            (begin, self.octets.len())
        };
        let (decision, body) = (put(decision), put(body));
        self.rows.push(RawRow { id, decision, body });
        self.octets.len() < OCTETS
    }

    pub(crate) fn finish(self) -> RawBatch {
        RawBatch { rows: self.rows, octets: self.octets.freeze(), with_body: self.with_body, old: Vec::new() }
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
    fn is_old(&self) -> bool {
        self.decision.0 == self.decision.1
    }
}

impl RawBatch {
    /// How many messages it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Its messages, by growing id. A row that is not as we write it is an error of its own, and the next one follows.
    pub fn decode<'a>(
        &'a self,
        decoder: &'a mut Decoder,
    ) -> impl Iterator<Item = Result<ArchivedMessage, ArchiveError>> + 'a {
        let mut old = self.old.iter().peekable();
        self.rows.iter().map(move |row| {
            let damaged = |what: &str| ArchiveError::Damaged { id: row.id, what: what.to_owned() };
            let id = MessageId(u64::try_from(row.id).map_err(|_| damaged("a negative id"))?);
            if row.is_old() {
                while old.next_if(|record| record.id < id).is_some() {}
                let record = old
                    .next_if(|record| record.id == id)
                    .ok_or_else(|| damaged("it was changed meanwhile"))?;
                return from_record(record, self.with_body, decoder).ok_or_else(|| damaged("trace"));
            }
            let decision = self.octets.slice(row.decision.0..row.decision.1);
            let mut message = decoder.message(id, &decision).map_err(damaged)?;
            if self.with_body {
                message.body = Some(self.octets.slice(row.body.0..row.body.1));
            }
            Ok(message)
        })
    }
}

/// What a trace says of submission and route.
#[derive(Deserialize)]
struct Trace {
    submission: Submission,
    route: Route,
}

#[derive(Deserialize)]
struct Submission {
    #[serde(default)]
    service_type: String,
    #[serde(default)]
    receipts: u8,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Route {
    Legs(Vec<Leg>),
    Held(Timestamp),
    Rejected(RejectReason),
}

#[derive(Deserialize)]
struct Leg {
    peer: String,
    #[serde(default)]
    rank: u8,
    #[serde(default = "one")]
    weight: u16,
    #[serde(default)]
    cost: u32,
    longest_wait_ms: Option<u64>,
    source: Option<String>,
    destination: Option<String>,
}

fn one() -> u16 {
    1
}

/// A message that an older version archived, as far as its columns and its trace tell.
fn from_record(record: &Record, with_body: bool, decoder: &mut Decoder) -> Option<ArchivedMessage> {
    let trace: Trace = serde_json::from_str(record.trace.as_ref()?.get()).ok()?;
    let address = |ton, npi, text: &str| Some(Address::new(ton, npi, &stored(text)?));
    // Type and plan of rewritten addresses were not kept.
    let rewritten = |text: Option<&String>| match text {
        Some(text) => address(0, 0, text).map(Some),
        None => Some(None),
    };
    let verdict = match trace.route {
        Route::Legs(legs) => {
            let legs: Option<SmallVec<_>> = legs
                .iter()
                .map(|leg| {
                    Some(ArchivedLeg {
                        peer: decoder.name(&leg.peer),
                        rank: leg.rank,
                        weight: leg.weight,
                        cost: leg.cost,
                        longest_wait: leg.longest_wait_ms.map(Duration::from_millis),
                        source: rewritten(leg.source.as_ref())?,
                        destination: rewritten(leg.destination.as_ref())?,
                        resolve: false,
                    })
                })
                .collect();
            ArchivedVerdict::Forward(legs?)
        }
        Route::Held(until) => ArchivedVerdict::Hold(until),
        Route::Rejected(reason) => ArchivedVerdict::Reject(reason),
    };
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
        service_type: SmallVec::from_vec(stored(&trace.submission.service_type)?),
        data_coding: record.data_coding,
        priority: record.priority,
        length: u32::try_from(body.len()).unwrap_or(u32::MAX),
        udhi: record.udhi,
        receipts: ReceiptRequest::from_bits(trace.submission.receipts),
        body: with_body.then(|| Bytes::copy_from_slice(body)),
        verdict,
        sender: None,
        price: None,
        seen: None,
        routed: true,
        lacking: Some(Lacking::Older),
    })
}
