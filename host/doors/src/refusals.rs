//! Refused submissions: counts since the start, and the last refusals of each account. They are in memory only.

use model::{Address, PeerId, Refusal, Timestamp};
use parking_lot::Mutex;
use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};

/// Refusals that are kept of one account; an older one goes when another comes.
pub const KEPT_REFUSALS: usize = 50;

/// The protocol of a submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Protocol {
    /// SMPP.
    Smpp,
    /// SGIP.
    Sgip,
    /// HTTP of business systems: JSON or XML-RPC.
    Http,
    /// GSUP, from a core network.
    Gsup,
    /// The command line of subscribers.
    Shell,
    /// The appliance itself: test messages of admins.
    #[default]
    Internal,
}

impl Protocol {
    /// Its name in the API and in metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Smpp => "smpp",
            Self::Sgip => "sgip",
            Self::Http => "http",
            Self::Gsup => "gsup",
            Self::Shell => "shell",
            Self::Internal => "internal",
        }
    }
}

/// One refused submission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// When it was refused.
    pub at: Timestamp,
    /// How it came.
    pub protocol: Protocol,
    /// The sender; empty where the submission has none, or was refused before it was read.
    pub source: Address,
    /// The addressee, of several the first; empty as `source`.
    pub destination: Address,
    /// Why, as a stable word for programs.
    pub code: &'static str,
    /// Why, for people.
    pub reason: Cow<'static, str>,
}

impl Refused {
    /// A submission that the engine, or a rule that all protocols share, has refused.
    #[must_use]
    pub fn by_rule(
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
struct OfAccount {
    counts: BTreeMap<(Protocol, &'static str), u64>,
    /// The newest last.
    last: VecDeque<Refused>,
}

/// Counts of refused submissions and the last of them, by account. A message from a peer or a core network counts under the
/// name of that peer. Memory is bounded: [`KEPT_REFUSALS`] records for each account of the configuration.
#[derive(Debug, Default)]
pub struct Refusals {
    accounts: Mutex<BTreeMap<PeerId, OfAccount>>,
}

impl Refusals {
    /// Counts `messages` refused messages of one submission, and keeps one record of them.
    pub fn record(&self, account: PeerId, refused: Refused, messages: u64) {
        let mut accounts = self.accounts.lock();
        let known = accounts.entry(account).or_default();
        *known.counts.entry((refused.protocol, refused.code)).or_default() += messages;
        if known.last.len() >= KEPT_REFUSALS {
            known.last.pop_front();
        }
        known.last.push_back(refused);
    }

    /// Refused messages since the start, by account, protocol and code.
    #[must_use]
    pub fn counts(&self) -> Vec<(PeerId, Protocol, &'static str, u64)> {
        let accounts = self.accounts.lock();
        let of_account = |(id, known): (&PeerId, &OfAccount)| {
            let id = *id;
            let counts = known.counts.iter();
            counts.map(move |((protocol, code), count)| (id, *protocol, *code, *count)).collect::<Vec<_>>()
        };
        accounts.iter().flat_map(of_account).collect()
    }

    /// The records of one account, or of all, newest first.
    #[must_use]
    pub fn last(&self, account: Option<PeerId>) -> Vec<(PeerId, Refused)> {
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

    fn refused(at: u64, refusal: Refusal) -> Refused {
        let addresses = (Address::new(5, 0, b"ACME"), Address::international("8613800000000"));
        Refused::by_rule(Timestamp(at), Protocol::Smpp, addresses, refusal)
    }

    #[test]
    fn refusals_are_counted_and_the_last_are_kept_for_each_account() {
        let refusals = Refusals::default();
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
        assert_eq!(all.len(), KEPT_REFUSALS + 1);
        assert_eq!((all[0].1.at, all[KEPT_REFUSALS].0), (Timestamp(999), PeerId(2)));
        let of_two = refusals.last(Some(PeerId(2)));
        assert_eq!((of_two.len(), of_two[0].1.reason.as_ref()), (1, "rejected: no credit"));
        assert!(refusals.last(Some(PeerId(3))).is_empty());
    }
}
