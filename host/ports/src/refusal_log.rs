//! Refused submissions: counters since the start, and the last refusals of each account. They are kept in memory
//! only.

use crate::Protocol;
use model::{Address, PeerId, Refusal, Timestamp};
use parking_lot::Mutex;
use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};

/// The number of refusals kept for one account; a new one replaces the oldest.
pub const MAX_REFUSALS_PER_ACCOUNT: usize = 50;

/// One refused submission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusalRecord {
    /// The time of the refusal.
    pub at: Timestamp,
    /// The protocol of the submission.
    pub protocol: Protocol,
    /// The sender; empty if the submission has none, or was refused before it was read.
    pub source: Address,
    /// The destination, the first of several; empty as `source`.
    pub destination: Address,
    /// The reason, as a stable code for programs.
    pub code: &'static str,
    /// The reason, for people.
    pub reason: Cow<'static, str>,
}

impl RefusalRecord {
    /// Creates the record of a submission that the engine, or a rule that all protocols share, has refused.
    #[must_use]
    pub fn new(
        at: Timestamp,
        protocol: Protocol,
        (source, destination): (Address, Address),
        refusal: Refusal,
    ) -> Self {
        let (code, reason) = (refusal.name(), refusal.to_string().into());
        Self { at, protocol, source, destination, code, reason }
    }
}

#[derive(Debug, Default)]
struct AccountRefusals {
    counts: BTreeMap<(Protocol, &'static str), u64>,
    /// The newest last.
    last: VecDeque<RefusalRecord>,
}

/// Counters of refused submissions, and the last refusals, by account. Messages from a peer or a core network count
/// under the name of that peer. Memory is bounded: [`MAX_REFUSALS_PER_ACCOUNT`] records for each account of the
/// configuration.
#[derive(Debug, Default)]
pub struct RefusalLog {
    accounts: Mutex<BTreeMap<PeerId, AccountRefusals>>,
}

impl RefusalLog {
    /// Counts `messages` refused messages of one submission, and keeps one record of them.
    pub fn record(&self, account: PeerId, refused: RefusalRecord, messages: u64) {
        let mut accounts = self.accounts.lock();
        let known = accounts.entry(account).or_default();
        *known.counts.entry((refused.protocol, refused.code)).or_default() += messages;
        if known.last.len() >= MAX_REFUSALS_PER_ACCOUNT {
            known.last.pop_front();
        }
        known.last.push_back(refused);
    }

    /// Refused messages since the start, by account, protocol and code.
    #[must_use]
    pub fn counts(&self) -> Vec<(PeerId, Protocol, &'static str, u64)> {
        let accounts = self.accounts.lock();
        let of_account = |(id, known): (&PeerId, &AccountRefusals)| {
            let id = *id;
            let counts = known.counts.iter();
            counts.map(move |((protocol, code), count)| (id, *protocol, *code, *count)).collect::<Vec<_>>()
        };
        accounts.iter().flat_map(of_account).collect()
    }

    /// The records of one account, or of all accounts, newest first.
    #[must_use]
    pub fn last(&self, account: Option<PeerId>) -> Vec<(PeerId, RefusalRecord)> {
        let accounts = self.accounts.lock();
        let wanted = accounts.iter().filter(|(id, _)| account.is_none_or(|account| account == **id));
        let mut all: Vec<_> = wanted
            .flat_map(|(id, known)| known.last.iter().rev().map(move |refused| (*id, refused.clone())))
            .collect();
        all.sort_by_key(|(_, refused)| std::cmp::Reverse(refused.at));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::RejectReason;

    fn refused(at: u64, refusal: Refusal) -> RefusalRecord {
        let addresses = (Address::new(5, 0, b"ACME"), Address::international("8613800000000"));
        RefusalRecord::new(Timestamp(at), Protocol::Smpp, addresses, refusal)
    }

    #[test]
    fn refusals_are_counted_and_the_last_are_kept_per_account() {
        let refusals = RefusalLog::default();
        for at in 0..1_000 {
            refusals.record(PeerId(1), refused(at, Refusal::Throttled), 1);
        }
        let no_credit = Refusal::Rejected(RejectReason::NoCredit);
        refusals.record(PeerId(2), refused(500, no_credit), 3);
        let counts = refusals.counts();
        let wanted =
            [(PeerId(1), Protocol::Smpp, "throttled", 1_000), (PeerId(2), Protocol::Smpp, "no-credit", 3)];
        assert_eq!(counts, wanted);
        let all = refusals.last(None);
        assert_eq!(all.len(), MAX_REFUSALS_PER_ACCOUNT + 1);
        assert_eq!((all[0].1.at, all[MAX_REFUSALS_PER_ACCOUNT].0), (Timestamp(999), PeerId(2)));
        let of_two = refusals.last(Some(PeerId(2)));
        assert_eq!((of_two.len(), of_two[0].1.reason.as_ref()), (1, "rejected: no credit"));
        assert!(refusals.last(Some(PeerId(3))).is_empty());
    }
}
