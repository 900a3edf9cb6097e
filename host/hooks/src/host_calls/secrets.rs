use super::{HostInterface, InstanceState};
use crate::bindings::host::switchyard::hooks::secrets::Host;
use arc_swap::ArcSwap;
use std::collections::{BTreeMap, HashMap};
use std::fmt;

/// The secrets of peers in the configuration, by peer and name. The daemon publishes them with each configuration.
#[derive(Default)]
pub struct PeerSecrets(ArcSwap<HashMap<String, BTreeMap<String, String>>>);

impl fmt::Debug for PeerSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PeerSecrets").finish_non_exhaustive()
    }
}

impl PeerSecrets {
    /// Replaces all secrets.
    pub fn publish(&self, secrets: HashMap<String, BTreeMap<String, String>>) {
        self.0.store(secrets.into());
    }

    fn get(&self, peer: &str, name: &str) -> Option<String> {
        self.0.load().get(peer)?.get(name).cloned()
    }

    /// Whether a secret of the peer occurs in these octets.
    pub(super) fn occur_in(&self, peer: &str, octets: &[u8]) -> bool {
        let all = self.0.load();
        let mut secrets = all.get(peer).into_iter().flat_map(BTreeMap::values).map(String::as_bytes);
        secrets.any(|secret| !secret.is_empty() && octets.windows(secret.len()).any(|part| part == secret))
    }
}

/// In a replay, a secret's value is its name, because the requests are compared and shown.
impl Host for InstanceState {
    fn get(&mut self, name: String) -> Option<String> {
        self.count_call(HostInterface::Secrets);
        let peer = self.peer.as_deref()?;
        let secret = self.services.peer_secrets.get(peer, &name)?;
        Some(if self.call_log.is_replay() { format!("secret-{name}") } else { secret })
    }
}
