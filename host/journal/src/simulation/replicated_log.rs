//! A log that several nodes share, for simulations of a cluster.
//!
//! It simulates the state of a majority of machines: one sequence of records, of which a ring keeps the last ones. Each
//! append compares the head, so replication and fencing are one step. A request or its answer may be lost; then
//! [`ReplicatedJournal`] repeats the same octets, and never others.

use crate::record::{EntryRef, JournalRecord, decode_record, encode_record};
use crate::{Head, Journal, JournalError, LeaderLease, NodeId, Seq, Term, Writer};
use parking_lot::Mutex;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// Fault of a node's next request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestFault {
    /// The request is lost.
    RequestLost,
    /// The request takes effect, and its answer is lost.
    AnswerLost,
}

/// Number of tries after which a node gives up.
const MAX_TRIES: usize = 4;

struct State {
    head: Head,
    /// The last records, in ascending order.
    ring: VecDeque<JournalRecord>,
    capacity: usize,
    /// The planned faults of each node's next requests.
    faults: BTreeMap<NodeId, VecDeque<RequestFault>>,
    /// A planned claim: the number of requests before it, and the claiming node.
    rival: Option<(usize, NodeId)>,
}

/// A log that several nodes share.
pub struct ReplicatedLog {
    state: Mutex<State>,
}

impl ReplicatedLog {
    /// An empty log whose ring holds `capacity` records.
    #[must_use]
    pub fn new(capacity: usize) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(State {
                head: Head::default(),
                ring: VecDeque::new(),
                capacity: capacity.max(1),
                faults: BTreeMap::new(),
                rival: None,
            }),
        })
    }

    /// The end of the log.
    pub fn head(&self) -> Head {
        self.state.lock().head
    }

    /// Plans faults for the next requests of a node.
    pub fn plan(&self, node: NodeId, faults: impl IntoIterator<Item = RequestFault>) {
        self.state.lock().faults.insert(node, faults.into_iter().collect());
    }

    /// Plans a claim by another node after `requests` more requests.
    pub fn plan_claim(&self, requests: usize, rival: NodeId) {
        self.state.lock().rival = Some((requests, rival));
    }

    /// Cancels all planned faults.
    pub fn recover(&self) {
        let mut state = self.state.lock();
        state.faults.clear();
        state.rival = None;
    }

    /// The journal as seen by a node.
    #[must_use]
    pub fn journal(self: &Arc<Self>, node: NodeId) -> ReplicatedJournal {
        ReplicatedJournal { log: self.clone(), node }
    }
}

impl State {
    /// Appends a record, if the log still ends at `expected`.
    fn put(&mut self, expected: Head, record: JournalRecord) -> bool {
        if self.head != expected {
            return false;
        }
        self.head = record.head();
        self.ring.push_back(record);
        while self.ring.len() > self.capacity {
            self.ring.pop_front();
        }
        true
    }

    fn claim(&mut self, node: NodeId) -> Result<Head, JournalError> {
        let head = self.head;
        let record = encoded(&head, head.term.next(), EntryRef::Claim(node))?;
        self.put(head, record);
        Ok(self.head)
    }
}

/// The record after `head`, encoded and decoded.
fn encoded(head: &Head, term: Term, entry: EntryRef<'_>) -> Result<JournalRecord, JournalError> {
    let mut octets = Vec::new();
    let too_large = |_| JournalError::TooLarge { octets: entry.length(), limit: crate::record::MAX_PAYLOAD };
    encode_record(&mut octets, head, term, 0, entry).map_err(too_large)?;
    decode_record(&octets).map_err(|_| JournalError::Unknown)
}

/// A node's access to the log.
pub struct ReplicatedJournal {
    log: Arc<ReplicatedLog>,
    node: NodeId,
}

impl ReplicatedJournal {
    /// The node.
    #[must_use]
    pub const fn node(&self) -> NodeId {
        self.node
    }

    /// Repeats the request to append `record` after `expected`, until its outcome is known.
    fn put(&self, expected: Head, record: &JournalRecord) -> Result<(), JournalError> {
        for _ in 0..MAX_TRIES {
            let mut state = self.log.state.lock();
            match state.rival {
                Some((0, rival)) => {
                    state.rival = None;
                    state.claim(rival)?;
                }
                Some((requests, rival)) => state.rival = Some((requests - 1, rival)),
                None => {}
            }
            let fault = state.faults.get_mut(&self.node).and_then(VecDeque::pop_front);
            if fault == Some(RequestFault::RequestLost) {
                continue;
            }
            let is_put = state.put(expected, record.clone());
            if fault == Some(RequestFault::AnswerLost) {
                continue;
            }
            // The answer to an earlier try was lost: the log ends with this record, or another record follows it.
            if is_put || state.head == record.head() || state.ring.contains(record) {
                return if state.head.term > record.term {
                    Err(JournalError::Fenced { by: state.head.term })
                } else {
                    Ok(())
                };
            }
            return Err(JournalError::Fenced { by: state.head.term });
        }
        Err(JournalError::Unknown)
    }
}

impl Journal for ReplicatedJournal {
    fn claim(&mut self, node: NodeId) -> Result<Writer, JournalError> {
        loop {
            let head = self.log.head();
            let record = encoded(&head, head.term.next(), EntryRef::Claim(node))?;
            match self.put(head, &record) {
                Ok(()) => return Ok(Writer::new(record.head())),
                // Another claim was first; this one follows it.
                Err(JournalError::Fenced { .. }) => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn append(&mut self, writer: &mut Writer, payload: &[u8]) -> Result<Seq, JournalError> {
        let record = encoded(&writer.head(), writer.term(), EntryRef::Payload(payload))?;
        self.put(writer.head(), &record)?;
        writer.advance(record.seq, record.crc);
        Ok(record.seq)
    }

    fn read(
        &mut self,
        from: Seq,
        octets: usize,
        _timeout: Duration,
    ) -> Result<Vec<JournalRecord>, JournalError> {
        let state = self.log.state.lock();
        let oldest = state.ring.front().map_or(state.head.seq.next(), |record| record.seq);
        if from < oldest {
            return Err(JournalError::Behind { oldest });
        }
        let mut found: Vec<JournalRecord> = Vec::new();
        let mut length = 0;
        for record in state.ring.iter().filter(|record| record.seq >= from) {
            if !found.is_empty() && length >= octets {
                break;
            }
            length += record.payload().map_or(0, <[u8]>::len);
            found.push(record.clone());
        }
        Ok(found)
    }

    fn applied(&mut self, _seq: Seq) -> Result<(), JournalError> {
        // The ring drops records regardless, so that nodes can fall behind.
        Ok(())
    }

    fn capacity(&self) -> Option<u64> {
        u64::try_from(self.log.state.lock().capacity).ok()
    }

    fn lease(&self) -> Arc<LeaderLease> {
        // Simulations have their own clocks.
        Arc::new(LeaderLease::unlimited())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: NodeId = NodeId(1);
    const SECOND: NodeId = NodeId(2);

    fn payloads(journal: &mut ReplicatedJournal) -> Vec<Vec<u8>> {
        let records = journal.read(Seq(1), usize::MAX, Duration::ZERO).unwrap();
        records.iter().filter_map(JournalRecord::payload).map(<[u8]>::to_vec).collect()
    }

    #[test]
    fn a_lost_answer_is_resolved_with_the_same_octets() {
        let log = ReplicatedLog::new(100);
        let mut journal = log.journal(FIRST);
        let mut writer = journal.claim(FIRST).unwrap();
        log.plan(FIRST, [RequestFault::AnswerLost, RequestFault::RequestLost]);
        assert_eq!(journal.append(&mut writer, b"one").unwrap(), Seq(2));
        assert_eq!(journal.append(&mut writer, b"two").unwrap(), Seq(3));
        assert_eq!(payloads(&mut journal), [b"one", b"two"]);
    }

    #[test]
    fn the_next_append_after_another_claim_is_fenced() {
        let log = ReplicatedLog::new(100);
        let (mut one, mut other) = (log.journal(FIRST), log.journal(SECOND));
        let mut stale = one.claim(FIRST).unwrap();
        one.append(&mut stale, b"one").unwrap();
        let mut writer = other.claim(SECOND).unwrap();
        let fenced = one.append(&mut stale, b"lost").unwrap_err();
        assert!(matches!(fenced, JournalError::Fenced { by } if by == writer.term()), "{fenced}");
        other.append(&mut writer, b"two").unwrap();
        assert_eq!(payloads(&mut other), [b"one", b"two"]);
    }

    #[test]
    fn a_record_that_is_in_the_log_before_a_claim_counts_for_the_new_writer_only() {
        let log = ReplicatedLog::new(100);
        let mut journal = log.journal(FIRST);
        let mut writer = journal.claim(FIRST).unwrap();
        // The record is appended, its answer is lost, and another node claims before the repetition.
        log.plan(FIRST, [RequestFault::AnswerLost]);
        log.plan_claim(1, SECOND);
        let fenced = journal.append(&mut writer, b"one").unwrap_err();
        assert!(matches!(fenced, JournalError::Fenced { by: Term(2) }), "{fenced}");
        assert_eq!(payloads(&mut journal), [b"one"]);
    }

    #[test]
    fn a_reader_behind_the_ring_gets_an_error() {
        let log = ReplicatedLog::new(2);
        let mut journal = log.journal(FIRST);
        let mut writer = journal.claim(FIRST).unwrap();
        for payload in [b"one", b"two"] {
            journal.append(&mut writer, payload).unwrap();
        }
        let behind = journal.read(Seq(1), usize::MAX, Duration::ZERO).unwrap_err();
        assert!(matches!(behind, JournalError::Behind { oldest: Seq(2) }), "{behind}");
    }
}
