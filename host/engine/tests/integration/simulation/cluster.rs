//! Two nodes over one log: a leader, and a follower that applies its records and takes over.
//!
//! The world has one engine at a time: the leader's. A leader that only pauses keeps its engine and its batch, and resumes
//! later with stale knowledge: its appends must be fenced.

use crate::simulation::Random;
use crate::simulation::disk::Disk;
use ::journal::simulation::{ReplicatedJournal, ReplicatedLog, RequestFault};
use ::journal::{Entry, Journal as _, JournalError, NodeId, Seq, Writer};
use engine::{Engine, Output};
use model::Batch;
use std::sync::Arc;
use std::time::Duration;

/// Places of the ring: few, so that a follower falls behind it.
const RING: usize = 12;
const NODES: [NodeId; 2] = [NodeId(1), NodeId(2)];

/// A node that follows: its own tables, and the last record in them.
#[derive(Default)]
struct Follower {
    disk: Disk,
    applied: Seq,
}

/// A paused leader, which does not know that the other node has taken over.
struct StaleLeader {
    journal: ReplicatedJournal,
    writer: Writer,
    engine: Engine,
    out: Output,
}

/// The leader's place in the log, and the other node.
pub(crate) struct Cluster {
    log: Arc<ReplicatedLog>,
    journal: ReplicatedJournal,
    writer: Writer,
    follower: Follower,
    stale: Vec<StaleLeader>,
    seed: u64,
}

impl Cluster {
    pub(crate) fn new(seed: u64) -> Self {
        let log = ReplicatedLog::new(RING);
        let mut journal = log.journal(NODES[0]);
        let writer = journal.claim(NODES[0]).unwrap();
        Self { log, journal, writer, follower: Follower::default(), stale: Vec::new(), seed }
    }

    fn other(&self) -> NodeId {
        if self.journal.node() == NODES[0] { NODES[1] } else { NODES[0] }
    }

    /// Chooses the faults of the next append: lost requests, lost answers, and a claim of the other node between them.
    pub(crate) fn plan_faults(&self, random: &mut Random) {
        let faults: Vec<RequestFault> = (0..random.below(6))
            .map(|_| if random.chance(50) { RequestFault::RequestLost } else { RequestFault::AnswerLost })
            .collect();
        self.log.plan(self.journal.node(), faults);
        if random.chance(30) {
            self.log.plan_claim(random.below(4), self.other());
        }
    }

    /// From now on nothing fails.
    pub(crate) fn recover(&self) {
        self.log.recover();
    }

    /// Appends a batch of the leader. Returns the batch as a reader of the log gets it.
    ///
    /// # Errors
    /// The leader is fenced, or it is unknown whether the batch is in the log.
    pub(crate) fn append(&mut self, batch: &Batch) -> Result<Batch, JournalError> {
        let mut octets = Vec::new();
        codec::encode_batch(&mut octets, batch);
        self.journal.append(&mut self.writer, &octets)?;
        Ok(codec::decode_batch(&octets).unwrap())
    }

    /// The follower applies up to `most` records. If the ring no longer has its next record, it copies the leader's tables.
    pub(crate) fn follow(&mut self, most: usize, leader: &Disk) {
        let node = self.other();
        if self.follower.catch_up(&mut self.log.journal(node), most).is_err() {
            self.follower.disk = leader.clone();
            self.follower.applied = self.writer.last();
        }
    }

    /// The leader's process ends or pauses, and a node takes over: the other one, or the same one after a restart. `disk`
    /// holds the leader's tables, and afterwards the tables of the new leader. `paused` is the paused leader.
    pub(crate) fn take_over(
        &mut self,
        disk: &mut Disk,
        random: &mut Random,
        paused: Option<(Engine, Output)>,
    ) {
        self.log.recover();
        let leader_at = self.writer.last();
        let must_change = paused.is_some();
        let mut follower = std::mem::take(&mut self.follower);
        let mut next = self.log.journal(self.other());
        // A follower whose next record left the ring cannot continue while the leader's tables are out of reach.
        let can_follow = follower.catch_up(&mut next, usize::MAX).is_ok();
        if can_follow && (must_change || random.chance(70)) {
            let writer = next.claim(next.node()).unwrap();
            follower.catch_up(&mut next, usize::MAX).unwrap();
            assert_eq!(follower.applied, writer.last(), "SEED={}", self.seed);
            let old_writer = std::mem::replace(&mut self.writer, writer);
            let old_journal = std::mem::replace(&mut self.journal, next);
            if let Some((engine, out)) = paused {
                self.stale.push(StaleLeader { journal: old_journal, writer: old_writer, engine, out });
            }
            // The old leader's tables are an earlier state of the new leader's tables.
            let old = std::mem::replace(disk, std::mem::take(&mut follower.disk));
            self.follower = Follower { disk: old, applied: leader_at };
        } else {
            // The same node again, after a restart.
            let mut own = Follower { disk: std::mem::take(disk), applied: leader_at };
            self.writer = self.journal.claim(self.journal.node()).unwrap();
            own.catch_up(&mut self.journal, usize::MAX).unwrap();
            *disk = own.disk;
            self.follower = follower;
        }
        let behind = self.other();
        let _ = self.follower.catch_up(&mut self.log.journal(behind), usize::MAX);
        if self.follower.applied == self.writer.last() {
            assert!(self.follower.disk == *disk, "SEED={}: the two nodes have other tables", self.seed);
        }
    }

    /// A paused leader resumes: no part of its batch may get into the log.
    pub(crate) fn wake_stale(&mut self, random: &mut Random) {
        if self.stale.is_empty() {
            return;
        }
        let mut leader = self.stale.swap_remove(random.below(self.stale.len()));
        leader.engine.seal(&mut leader.out);
        let mut octets = Vec::new();
        codec::encode_batch(&mut octets, &leader.out.batch);
        match leader.journal.append(&mut leader.writer, &octets) {
            Err(JournalError::Fenced { by }) => assert!(by > leader.writer.term(), "SEED={}", self.seed),
            // No request has reached the log; its process ends.
            Err(JournalError::Unknown) => {}
            other => panic!("SEED={}: a stale leader appended: {other:?}", self.seed),
        }
    }

    /// At the end the follower has the leader's tables.
    pub(crate) fn check_end(&mut self, leader: &Disk) {
        self.follow(usize::MAX, leader);
        assert_eq!(self.follower.applied, self.writer.last(), "SEED={}", self.seed);
        assert!(self.follower.disk == *leader, "SEED={}: the two nodes have other tables", self.seed);
    }
}

impl Follower {
    /// Applies at most `most` records.
    ///
    /// # Errors
    /// The ring no longer has the next record.
    fn catch_up(&mut self, journal: &mut ReplicatedJournal, most: usize) -> Result<(), JournalError> {
        for record in journal.read(self.applied.next(), usize::MAX, Duration::ZERO)?.into_iter().take(most) {
            if let Entry::Payload(payload) = &record.entry {
                self.disk.commit(codec::decode_batch(payload).unwrap());
            }
            self.applied = record.seq;
        }
        Ok(())
    }
}
