//! Batches of archived messages for replays: octets from the database, decoded on another thread.

use crate::archived_message::{ArchivedMessage, MissingData};
use crate::{ArchiveError, DecisionDecoder, Record};
use bytes::{Bytes, BytesMut};
use model::{Address, Direction, MessageId, Verdict, unescape};
use smallvec::SmallVec;

/// Messages per batch: enough for a low cost per message, few enough for the processor's cache.
pub(crate) const BATCH_ROWS: u64 = 2048;

/// Maximum size of a batch in octets; it ends early beyond that.
const BATCH_OCTETS: usize = 4 << 20;

/// The columns of a row in addition to id and decision.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct RowParts {
    pub(crate) body: bool,
    pub(crate) trace: bool,
}

impl RowParts {
    /// The columns of a query, in their order.
    pub(crate) fn columns(self) -> &'static str {
        match (self.body, self.trace) {
            (false, false) => "id, decision, text_key",
            (true, false) => "id, decision, text_key, body",
            (false, true) => "id, decision, text_key, trace",
            (true, true) => "id, decision, text_key, body, trace",
        }
    }

    pub(crate) fn body_column(self) -> Option<usize> {
        self.body.then_some(3)
    }

    pub(crate) fn trace_column(self) -> Option<usize> {
        self.trace.then_some(3 + usize::from(self.body))
    }
}

/// Messages as read from the database, to be decoded on another thread.
#[derive(Debug, Default)]
pub struct RawBatch {
    pub(crate) rows: Vec<RawRow>,
    octets: Bytes,
    pub(crate) parts: RowParts,
    /// Rows that an older version wrote.
    pub(crate) undecided_rows: Vec<Record>,
}

/// Collects a batch.
pub(crate) struct RawBatchBuilder {
    rows: Vec<RawRow>,
    octets: BytesMut,
    parts: RowParts,
}

impl RawBatchBuilder {
    pub(crate) fn new(parts: RowParts) -> Self {
        let most = usize::try_from(BATCH_ROWS).unwrap_or(0);
        let (body, trace) = (if parts.body { 160 } else { 0 }, if parts.trace { 512 } else { 0 });
        let octets = BytesMut::with_capacity(most * (96 + body + trace));
        Self { rows: Vec::with_capacity(most), octets, parts }
    }

    /// Adds a row, its decision with the number of the key that encrypts the content; a missing decision, text or trace is empty.
    /// Returns whether there is room for more.
    pub(crate) fn push(
        &mut self,
        id: i64,
        (decision, key): (&[u8], Option<i64>),
        body: &[u8],
        trace: &[u8],
    ) -> bool {
        let mut put = |octets: &[u8]| {
            let begin = self.octets.len();
            self.octets.extend_from_slice(octets);
            (begin, self.octets.len())
        };
        let (decision, body, trace) = (put(decision), put(body), put(trace));
        self.rows.push(RawRow { id, key, decision, body, trace });
        self.octets.len() < BATCH_OCTETS
    }

    pub(crate) fn finish(self) -> RawBatch {
        RawBatch {
            rows: self.rows,
            octets: self.octets.freeze(),
            parts: self.parts,
            undecided_rows: Vec::new(),
        }
    }
}

/// A message's values, as ranges of the batch's octets.
#[derive(Debug)]
pub(crate) struct RawRow {
    pub(crate) id: i64,
    /// The number of the key that encrypts the content.
    pub(crate) key: Option<i64>,
    decision: (usize, usize),
    body: (usize, usize),
    trace: (usize, usize),
}

impl RawRow {
    pub(crate) fn lacks_decision(&self) -> bool {
        self.decision.0 == self.decision.1
    }
}

impl RawBatch {
    /// The number of messages.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Decision, text and trace of a row.
    pub(crate) fn values(&self, row: &RawRow) -> [Bytes; 3] {
        [row.decision, row.body, row.trace].map(|(begin, end)| self.octets.slice(begin..end))
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
                return from_record(record, self.parts.body, decoder).ok_or_else(|| damaged("trace"));
            }
            let decision = self.octets.slice(row.decision.0..row.decision.1);
            let mut message = decoder.message(id, &decision).map_err(|error| damaged(error.what))?;
            if self.parts.body {
                message.body = Some(self.octets.slice(row.body.0..row.body.1));
            }
            if self.parts.trace {
                message.trace = Some(self.octets.slice(row.trace.0..row.trace.1));
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
        changes: None,
        screening: None,
        lookup: None,
        price: None,
        calls: Vec::new(),
        trace: None,
        host_calls: None,
        routed: true,
        missing: Some(match record.content_erased_at {
            Some(_) => MissingData::ContentErased,
            None => MissingData::Older,
        }),
    })
}
