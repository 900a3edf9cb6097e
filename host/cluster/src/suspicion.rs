use journal::Head;
use std::time::{Duration, Instant};

/// A follower's failure detector for the leader.
///
/// A leader is suspected when both are true: the head of the log has not moved, although a leader moves it at least
/// every [`HEARTBEAT`](crate::HEARTBEAT); and a majority of etcd has answered this node during the whole time. While
/// etcd elects a leader of its own, no node can append, so that is no sign. A wrong suspicion is safe: the node that
/// claims wins, and the other one is fenced.
#[derive(Debug, Default)]
pub struct Suspicion {
    head: Option<Head>,
    /// Time since which the head has not moved, while etcd answered without a gap.
    unchanged_since: Option<Instant>,
}

impl Suspicion {
    /// Minimum time without a move of the head.
    pub const TIME: Duration = Duration::from_secs(1);

    /// A majority of etcd answers that this is the head.
    pub fn observe(&mut self, now: Instant, head: Option<Head>) {
        if self.unchanged_since.is_none() || self.head != head {
            self.unchanged_since = Some(now);
            self.head = head;
        }
    }

    /// etcd has not answered in time, so the head may have moved unseen.
    pub const fn forget(&mut self) {
        self.unchanged_since = None;
    }

    /// Whether the leader is suspected to be dead.
    #[must_use]
    pub fn is_dead(&self, now: Instant) -> bool {
        self.unchanged_since.is_some_and(|since| now.duration_since(since) >= Self::TIME)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use journal::{Seq, Term};

    fn head(seq: u64) -> Option<Head> {
        Some(Head { term: Term(1), seq: Seq(seq), crc: 7 })
    }

    #[test]
    fn an_unchanged_head_is_suspicious_only_while_etcd_answers() {
        let begun = Instant::now();
        let at = |millis| begun + Duration::from_millis(millis);
        let mut suspicion = Suspicion::default();
        assert!(!suspicion.is_dead(at(5000)), "nothing is known");
        suspicion.observe(at(0), head(1));
        suspicion.observe(at(900), head(2));
        assert!(!suspicion.is_dead(at(1800)), "the head has moved");
        suspicion.observe(at(1800), head(2));
        suspicion.forget();
        suspicion.observe(at(3800), head(2));
        assert!(!suspicion.is_dead(at(4700)), "etcd was silent in between");
        suspicion.observe(at(4800), head(2));
        assert!(suspicion.is_dead(at(4800)));
    }
}
