//! State that all links of one protocol share.

use super::message_ids::MessageIds;
use super::options::SpAccountOptions;
use super::part_references::PartReferences;
use crate::accounts::Account;
use bytes::Bytes;
use model::{PeerId, Timestamp};
use parking_lot::{Mutex, RwLock};
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// State that all links of one protocol share.
#[derive(Debug)]
pub(crate) struct SpState {
    /// SPs by login name.
    sps: RwLock<HashMap<Bytes, SpLogin>>,
    /// Recently accepted logins, to detect replays: the time in milliseconds since 1970, and the address of the first
    /// use.
    accepted: Mutex<HashMap<[u8; 16], (u64, IpAddr)>>,
    pub(super) references: PartReferences,
    pub(super) ids: MessageIds,
}

/// An SP with an account.
#[derive(Clone, Debug)]
pub(crate) struct SpLogin {
    pub(super) account: Arc<Account>,
    pub(super) options: Arc<SpAccountOptions>,
}

/// Maximum time between concurrent connections with the same login, in milliseconds.
const SAME_LOGIN_MS: u64 = 2000;

/// Time for which an accepted login is remembered.
const REPLAY_MEMORY: Duration = Duration::from_secs(24 * 3600);

impl SpState {
    pub(crate) fn new() -> Self {
        Self {
            sps: RwLock::default(),
            accepted: Mutex::default(),
            references: PartReferences::default(),
            ids: MessageIds::new(Timestamp::now()),
        }
    }

    /// Adds an SP, or changes its options; `None` removes it.
    pub(crate) fn set(&self, account: &Arc<Account>, options: Option<&SpAccountOptions>) {
        let peer = account.options().peer;
        let mut sps = self.sps.write();
        sps.retain(|_, other| other.account.options().peer != peer);
        if let Some(options) = options {
            let login = SpLogin { account: account.clone(), options: Arc::new(options.clone()) };
            sps.insert(options.inbound_login_name.clone(), login);
        }
    }

    pub(super) fn find(&self, login_name: &[u8]) -> Option<SpLogin> {
        self.sps.read().get(login_name).cloned()
    }

    pub(crate) fn remove(&self, peer: PeerId) {
        self.sps.write().retain(|_, other| other.account.options().peer != peer);
    }

    /// Whether a login is not a replay. An SP that opens several connections at the same time uses one proof for all of
    /// them, because the proof contains the second. So the same proof is accepted from the same address within two
    /// seconds.
    pub(super) fn is_fresh(&self, authenticator: [u8; 16], address: IpAddr, wall: Timestamp) -> bool {
        let mut accepted = self.accepted.lock();
        let since = wall.0.saturating_sub(u64::try_from(REPLAY_MEMORY.as_millis()).unwrap_or(u64::MAX));
        accepted.retain(|_, (at, _)| *at > since);
        let (at, from) = *accepted.entry(authenticator).or_insert((wall.0, address));
        from == address && wall.0.saturating_sub(at) <= SAME_LOGIN_MS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_28_a_proof_is_no_replay_within_two_seconds_from_one_address() {
        let (state, here, there) =
            (SpState::new(), IpAddr::from([127, 0, 0, 1]), IpAddr::from([127, 0, 0, 2]));
        assert!(state.is_fresh([1; 16], here, Timestamp(1000)));
        assert!(state.is_fresh([1; 16], here, Timestamp(3000)));
        assert!(!state.is_fresh([1; 16], here, Timestamp(3001)));
        assert!(!state.is_fresh([1; 16], there, Timestamp(1000)));
        assert!(state.is_fresh([2; 16], there, Timestamp(2000)));
        assert!(state.is_fresh([1; 16], there, Timestamp(1000 + 86_400_000)));
    }
}
