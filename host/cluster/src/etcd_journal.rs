use crate::client::{ANSWER_TIMEOUT, TXN, is_refusal, reason};
use crate::cluster::{Cluster, LeaderRecord};
use crate::log_copy::LogCopy;
use crate::proto::{
    COMPARE_CREATE, COMPARE_VALUE, Compare, KeyValue, PutRequest, RangeRequest, TxnRequest, TxnResponse,
    compare, response_op,
};
use crate::ring::{DecodedSlot, decode_head, decode_slot, encode_head, encode_slot};
use journal::clock::{Clock as _, SystemClock};
use journal::record::{DecodeError, EntryRef, MAX_PAYLOAD, PayloadTooLong, decode_record, encode_record};
use journal::{
    BootTime, Head, Journal, JournalError, JournalReader, JournalRecord, LeaderLease, NodeId, Seq, Term,
    Writer,
};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use tonic::Status;

/// Maximum time for which an append with an unknown outcome is repeated. etcd elects a leader in one to two seconds.
const RESOLUTION: Duration = Duration::from_secs(10);
/// Delay before a repetition.
const RETRY_DELAY: Duration = Duration::from_millis(50);
/// Interval at which a reader checks for new records.
const POLL: Duration = Duration::from_millis(20);
/// Number of keys per read. A record with more keys is read again, alone.
const KEYS_PER_READ: i64 = 32;
/// Number of keys of a record with the longest payload.
const MAX_KEYS_PER_RECORD: i64 = 64;

/// The log of a cluster, in etcd.
///
/// Its methods wait for etcd: they must not be called on a thread of the runtime.
#[derive(Debug)]
pub struct EtcdJournal {
    cluster: Arc<Cluster>,
    /// A new log begins after this record.
    start: Seq,
    /// The last record that was read.
    previous: Option<Head>,
    /// The term of the log when it was last followed. A later claim by another node must not be fenced by a claim that was
    /// decided before it. `None` before the log was followed.
    seen_term: Option<Term>,
    /// Copy of the records on the disk of this node, for readers of the journal; `None` without readers.
    copy: Option<LogCopy>,
    /// Reused for each record.
    buffer: Vec<u8>,
}

/// Result of reading the log from a record on.
#[derive(Debug, Default)]
pub struct FollowedTail {
    /// The end of the log; `None` if it is empty.
    pub head: Option<Head>,
    /// The latest claim.
    pub leader: Option<LeaderRecord>,
    /// The next records.
    pub records: Vec<JournalRecord>,
}

impl EtcdJournal {
    pub(crate) const fn new(cluster: Arc<Cluster>, start: Seq) -> Self {
        Self { cluster, start, previous: None, seen_term: None, copy: None, buffer: Vec::new() }
    }

    /// From now on, all records that are read or appended are also written to this copy. The next record that is read
    /// must directly follow the copy's last one, or be an earlier one.
    pub fn set_copy(&mut self, copy: Option<LogCopy>) {
        self.copy = copy;
    }

    /// The last record of the copy; `None` without one.
    #[must_use]
    pub fn copied(&self) -> Option<Seq> {
        self.copy.as_ref().map(LogCopy::last)
    }

    /// Reads the state of a majority of etcd: the end of the log and the records from `from` on, until their payloads
    /// have `octets` octets together.
    ///
    /// # Errors
    /// [`JournalError::Behind`], [`JournalError::Damaged`]; [`JournalError::UnknownContent`] if a newer version wrote the next record;
    /// [`JournalError::Unavailable`] if etcd has not answered.
    pub fn follow(&mut self, from: Seq, octets: usize) -> Result<FollowedTail, JournalError> {
        let cluster = self.cluster.clone();
        let mut tail = FollowedTail::default();
        let mut from = from;
        loop {
            let read = cluster.runtime.block_on(self.read_part(from, KEYS_PER_READ));
            let mut part = match read {
                Ok(part) => part,
                Err(_) if !tail.records.is_empty() => return Ok(tail),
                Err(error) => return Err(error),
            };
            (tail.head, tail.leader) = (part.head, part.leader);
            self.seen_term = Some(part.head.map_or(Term::default(), |head| head.term));
            let Some(last) = part.records.last() else { return Ok(tail) };
            self.previous = Some(last.head());
            from = last.seq.next();
            if let Some(copy) = &mut self.copy {
                part.records.iter().try_for_each(|record| copy.push(record.clone()))?;
            }
            tail.records.append(&mut part.records);
            let length: usize = tail.records.iter().map(JournalRecord::encoded_length).sum();
            if length >= octets || tail.head.is_some_and(|head| head.seq < from) {
                return Ok(tail);
            }
        }
    }

    /// Reads the head and some slots, with one request.
    async fn read_part(&self, from: Seq, limit: i64) -> Result<FollowedTail, JournalError> {
        let cluster = &self.cluster;
        let slots = cluster.slots();
        let first = from.0 % slots;
        let range = |key: String, end: String, limit| RangeRequest {
            key: key.into_bytes(),
            range_end: end.into_bytes(),
            limit,
            ..RangeRequest::default()
        };
        let keys = &cluster.keys;
        let request = TxnRequest {
            compare: Vec::new(),
            success: vec![
                range(keys.head(), String::new(), 1).into(),
                range(keys.leader(), String::new(), 1).into(),
                range(keys.slot(first), keys.after_slot(slots - 1), limit).into(),
            ],
            failure: Vec::new(),
        };
        let answer: TxnResponse = match cluster.client.call(TXN, &request).await {
            Ok(answer) => answer,
            Err(status) => {
                let error = unavailable(cluster, &status);
                if !is_refusal(&status) {
                    cluster.client.find_member().await;
                }
                return Err(error);
            }
        };
        let mut ranges = ranges(answer);
        let (slots_found, leader, head) = (ranges.pop(), ranges.pop(), ranges.pop());
        let head = self.head_of(head.unwrap_or_default())?;
        let leader = leader.unwrap_or_default();
        let leader: Option<LeaderRecord> =
            leader.first().and_then(|found| serde_json::from_slice(&found.value).ok());
        cluster.head.store(head.map_or(0, |head| head.seq.0), Relaxed);
        cluster.set_leader(leader.clone());
        let mut part = FollowedTail { head, leader, records: Vec::new() };
        let Some(head) = head.filter(|head| head.seq >= from) else { return Ok(part) };
        // The oldest slot may already contain pieces of the next record.
        if head.seq.0 - from.0 >= slots - 1 {
            return Err(JournalError::Behind { oldest: Seq(head.seq.0 - (slots - 2)) });
        }
        let found = slots_found.unwrap_or_default();
        // Keys of slots are never removed. If a key is missing, it was never written: the log of this cluster began
        // later, with an appliance that had worked alone before.
        let oldest = found.first().map(|found| keys.slot_of(&found.key));
        if oldest != Some(Some(first)) {
            let oldest = oldest.flatten().map_or(head.seq, |oldest| Seq(from.0 + (oldest - first)));
            return Err(JournalError::Behind { oldest });
        }
        let mut rest = found.as_slice();
        let mut previous = self.previous.filter(|previous| previous.seq.next() == from);
        let mut seq = from;
        // When the ring wraps around, it is read to its end, and then from its beginning.
        while seq <= head.seq && seq.0 - from.0 < slots - first {
            let slot = seq.0 % slots;
            let (octets, used) = match decode_slot(keys, slot, rest) {
                DecodedSlot::Record(octets, used) => (octets, used),
                // The records before it are returned first.
                DecodedSlot::UnknownEncoding(_) if !part.records.is_empty() => break,
                DecodedSlot::UnknownEncoding(encoding) => {
                    return Err(self.unknown(seq, &format!("the unknown encoding {encoding}")));
                }
                DecodedSlot::Incomplete if !part.records.is_empty() => break,
                DecodedSlot::Incomplete if limit < MAX_KEYS_PER_RECORD => {
                    return Box::pin(self.read_part(from, MAX_KEYS_PER_RECORD)).await;
                }
                DecodedSlot::Incomplete | DecodedSlot::Invalid => return Err(self.damaged(seq, "no record")),
            };
            rest = rest.get(used..).unwrap_or_default();
            let record = match decode_record(&octets) {
                Ok(record) => record,
                Err(DecodeError::Invalid) => return Err(self.damaged(seq, "its checksum is wrong")),
                Err(_) if !part.records.is_empty() => break,
                Err(unknown) => return Err(self.unknown(seq, &unknown.to_string())),
            };
            if record.seq != seq || previous.is_some_and(|previous| !record.continues(&previous)) {
                return Err(self.damaged(seq, "it does not continue the record before"));
            }
            if seq == head.seq && record.head() != head {
                return Err(self.damaged(seq, "it is not the one that the head names"));
            }
            previous = Some(record.head());
            part.records.push(record);
            seq = seq.next();
        }
        Ok(part)
    }

    fn head_of(&self, found: Vec<KeyValue>) -> Result<Option<Head>, JournalError> {
        let Some(found) = found.into_iter().next() else { return Ok(None) };
        let head = decode_head(&found.value).ok_or_else(|| JournalError::Damaged {
            path: PathBuf::from(self.cluster.keys.head()),
            offset: 0,
            seq: Seq(0),
            what: "it is no head of a log",
        })?;
        Ok(Some(head))
    }

    fn unknown(&self, seq: Seq, what: &str) -> JournalError {
        let path = PathBuf::from(self.cluster.keys.slot(seq.0 % self.cluster.slots()));
        JournalError::UnknownContent { path, offset: 0, what: what.to_owned() }
    }

    fn damaged(&self, seq: Seq, what: &'static str) -> JournalError {
        let path = PathBuf::from(self.cluster.keys.slot(seq.0 % self.cluster.slots()));
        JournalError::Damaged { path, offset: 0, seq, what }
    }

    /// Writes the record in `buffer` after `before`.
    async fn write(
        &self,
        before: Option<Head>,
        next: Head,
        leader: Option<&LeaderRecord>,
    ) -> Result<(), JournalError> {
        let cluster = &self.cluster;
        cluster.make_room(next.seq).await;
        let slot = next.seq.0 % cluster.slots();
        let encoded = encode_slot(&cluster.keys, slot, &self.buffer, cluster.options.compress);
        let begun = Instant::now();
        let put = |(key, value): (String, Vec<u8>)| PutRequest { key: key.into_bytes(), value };
        for piece in encoded.pieces {
            // The pieces need the same condition: a node that has lost the log must not overwrite pieces of another node's
            // record.
            let request = self.conditional(before, vec![put(piece).into()]);
            self.resolve(&request, begun, before, None, next.term).await?;
        }
        let mut puts = vec![put((cluster.keys.head(), encode_head(&next))).into(), put(encoded.slot).into()];
        if let Some(leader) = leader {
            let value = serde_json::to_vec(leader).unwrap_or_default();
            puts.push(put((cluster.keys.leader(), value)).into());
        }
        let request = self.conditional(before, puts);
        self.resolve(&request, begun, before, Some(next), next.term).await?;
        cluster.head.store(next.seq.0, Relaxed);
        Ok(())
    }

    /// A transaction with the condition that the head is still `before`. If it is not, the transaction returns the head.
    fn conditional(&self, before: Option<Head>, puts: Vec<crate::proto::RequestOp>) -> TxnRequest {
        let key = self.cluster.keys.head().into_bytes();
        let (target, condition) = match before {
            Some(head) => (COMPARE_VALUE, compare::TargetUnion::Value(encode_head(&head))),
            None => (COMPARE_CREATE, compare::TargetUnion::CreateRevision(0)),
        };
        let read = RangeRequest::of(self.cluster.keys.head());
        TxnRequest {
            compare: vec![Compare { result: 0, target, key, target_union: Some(condition) }],
            success: puts,
            failure: vec![read.into()],
        }
    }

    /// Repeats a transaction until its outcome is known. `after` is the head that the transaction writes.
    async fn resolve(
        &self,
        request: &TxnRequest,
        begun: Instant,
        before: Option<Head>,
        after: Option<Head>,
        term: Term,
    ) -> Result<(), JournalError> {
        let cluster = &self.cluster;
        let mut is_doubtful = false;
        loop {
            let sent = BootTime::now();
            let status = match cluster.client.call::<_, TxnResponse>(TXN, request).await {
                Ok(answer) => {
                    if let Some(header) = &answer.header {
                        cluster.revision.fetch_max(header.revision, Relaxed);
                    }
                    if !answer.succeeded {
                        let found = self.head_of(ranges(answer).pop().unwrap_or_default())?;
                        // An earlier request with the same octets has succeeded.
                        if found.is_none() || found != after {
                            return Err(fenced(before, found, term));
                        }
                    }
                    if after.is_some() {
                        cluster.lease.extend(sent);
                    }
                    return Ok(());
                }
                Err(status) => status,
            };
            if is_refusal(&status) && !is_doubtful {
                let endpoint = cluster.client.endpoint();
                return Err(JournalError::Refused { reason: format!("{endpoint}: {}", reason(&status)) });
            }
            if !is_doubtful {
                let endpoint = cluster.client.endpoint();
                tracing::warn!(
                    endpoint,
                    reason = reason(&status),
                    "append to etcd not answered, repeating it"
                );
            }
            is_doubtful = true;
            if begun.elapsed() >= RESOLUTION {
                return Err(JournalError::Unknown);
            }
            cluster.client.find_member().await;
            tokio::time::sleep(RETRY_DELAY).await;
        }
    }

    fn encode(&mut self, before: &Head, term: Term, entry: EntryRef<'_>) -> Result<Head, JournalError> {
        self.buffer.clear();
        let too_long = |PayloadTooLong(octets)| JournalError::TooLarge { octets, limit: MAX_PAYLOAD };
        let at = SystemClock.wall_millis();
        let crc = encode_record(&mut self.buffer, before, term, at, entry).map_err(too_long)?;
        Ok(Head { term, seq: before.seq.next(), crc })
    }
}

/// The error for an unexpected head: another node has claimed the log, its leader is alive, or its keys were removed.
fn fenced(before: Option<Head>, found: Option<Head>, term: Term) -> JournalError {
    let is_claim = before.is_none_or(|before| term > before.term);
    match found {
        Some(found) if is_claim || before.is_some_and(|before| found.term > before.term) => {
            JournalError::Fenced { by: found.term }
        }
        _ => JournalError::Refused {
            reason: format!(
                "the head of the log has changed in term {term}: something else writes or removes the keys"
            ),
        },
    }
}

fn unavailable(cluster: &Cluster, status: &Status) -> JournalError {
    JournalError::Unavailable { reason: format!("{}: {}", cluster.client.endpoint(), reason(status)) }
}

fn ranges(answer: TxnResponse) -> Vec<Vec<KeyValue>> {
    let ranges = answer.responses.into_iter().map(|one| match one.response {
        Some(response_op::Response::Range(range)) => range.kvs,
        _ => Vec::new(),
    });
    ranges.collect()
}

impl Journal for EtcdJournal {
    fn claim(&mut self, node: NodeId) -> Result<Writer, JournalError> {
        let cluster = self.cluster.clone();
        let found = cluster.runtime.block_on(cluster.read_head());
        let before = found.map_err(|error| JournalError::Unavailable { reason: error.to_string() })?;
        let last = before.unwrap_or(Head { seq: self.start, ..Head::default() });
        if self.seen_term.is_some_and(|seen| last.term > seen) {
            return Err(JournalError::Fenced { by: last.term });
        }
        let next = self.encode(&last, last.term.next(), EntryRef::Claim(node))?;
        let leader = LeaderRecord {
            node: cluster.node().to_owned(),
            address: cluster.address(),
            term: next.term.0,
            resigned: false,
        };
        cluster.runtime.block_on(self.write(before, next, Some(&leader)))?;
        *cluster.claimed.lock() = Some(serde_json::to_vec(&leader).unwrap_or_default());
        cluster.set_leader(Some(leader));
        Ok(Writer::new(next))
    }

    fn append(&mut self, writer: &mut Writer, payload: &[u8]) -> Result<Seq, JournalError> {
        let before = writer.head();
        let next = self.encode(&before, before.term, EntryRef::Payload(payload))?;
        let cluster = self.cluster.clone();
        cluster.runtime.block_on(self.write(Some(before), next, None))?;
        writer.advance(next.seq, next.crc);
        if let Some(copy) = &mut self.copy {
            let record = decode_record(&self.buffer).map_err(|_| JournalError::Unknown)?;
            copy.push(record)?;
        }
        Ok(next.seq)
    }

    fn read(
        &mut self,
        from: Seq,
        octets: usize,
        timeout: Duration,
    ) -> Result<Vec<JournalRecord>, JournalError> {
        let cluster = self.cluster.clone();
        let begun = Instant::now();
        // One member may be dead; the call needs time to ask the others.
        let longest = timeout.max(ANSWER_TIMEOUT * 10);
        loop {
            match self.follow(from, octets) {
                Ok(tail) if !tail.records.is_empty() || begun.elapsed() >= timeout => return Ok(tail.records),
                Err(error @ JournalError::Unavailable { .. }) if begun.elapsed() >= longest => {
                    return Err(error);
                }
                Ok(_) | Err(JournalError::Unavailable { .. }) => {
                    cluster.runtime.block_on(async { tokio::time::sleep(POLL).await });
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn applied(&mut self, seq: Seq) -> Result<(), JournalError> {
        self.cluster.set_applied(seq);
        Ok(())
    }

    fn capacity(&self) -> Option<u64> {
        Some(self.cluster.slots())
    }

    fn payload_format(&self) -> Option<u8> {
        Some(self.cluster.payload_format())
    }

    fn resign(&mut self, writer: &Writer) -> Result<(), JournalError> {
        let cluster = self.cluster.clone();
        let leader = LeaderRecord {
            node: cluster.node().to_owned(),
            address: cluster.address(),
            term: writer.term().0,
            resigned: true,
        };
        let value = serde_json::to_vec(&leader).unwrap_or_default();
        let put = PutRequest { key: cluster.keys.leader().into_bytes(), value };
        let head = writer.head();
        let request = self.conditional(Some(head), vec![put.into()]);
        cluster.runtime.block_on(self.resolve(&request, Instant::now(), Some(head), Some(head), head.term))
    }

    fn lease(&self) -> Arc<LeaderLease> {
        self.cluster.lease.clone()
    }

    fn reader(&self) -> Option<JournalReader> {
        self.copy.as_ref().map(LogCopy::reader)
    }
}
