//! Bindings: which plugin version serves a hook, with which policy, limits and grants.

use crate::HookError;
use api::{Binding, Grants};
use model::{Hook, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The capabilities that a component imports without any grant.
pub(crate) fn missing_grants(grants: &Grants, imports: &[String]) -> Vec<&'static str> {
    let granted = [
        ("http", !grants.http.is_empty()),
        ("kv", grants.kv > 0),
        ("hlr", grants.hlr),
        ("dns", grants.dns.is_some()),
    ];
    let imported = |interface: &str| {
        imports.iter().any(|name| {
            name.strip_prefix("switchyard:hooks/").and_then(|rest| rest.split('@').next()) == Some(interface)
        })
    };
    granted.into_iter().filter(|(name, granted)| !granted && imported(name)).map(|(name, _)| name).collect()
}

/// Checks the peers that the bindings of a chain serve: in the hook `peer`, each binding has some, and no peer has two bindings.
pub(crate) fn check_peers(hook: Hook, bindings: &[Binding]) -> Result<(), HookError> {
    let mut known = BTreeSet::new();
    for binding in bindings {
        if hook != Hook::Peer && !binding.peers.is_empty() {
            return Err(HookError::ServesNoPeers(hook.name()));
        }
        if hook == Hook::Peer && binding.peers.is_empty() {
            return Err(HookError::WithoutPeers(binding.plugin.clone()));
        }
        if let Some(twice) = binding.peers.iter().find(|peer| !known.insert(peer.as_str())) {
            return Err(HookError::PeerTwice(twice.clone()));
        }
    }
    Ok(())
}

/// The mode of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "mode")]
pub enum TrialMode {
    /// The candidate is asked too; its answers are compared but not used.
    Shadow,
    /// The candidate decides a share of the traffic.
    Canary {
        /// Share of all destinations in hundredths of a percent, chosen by a stable hash: 1 to 10,000.
        share: u16,
    },
}

/// A candidate chain on trial beside the live one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct CandidateRecord {
    /// Start time.
    pub since: Timestamp,
    /// The mode of the trial.
    #[serde(flatten)]
    pub mode: TrialMode,
    /// The candidate chain.
    pub chain: Vec<Binding>,
}

impl From<CandidateRecord> for api::CandidateRecordView {
    fn from(CandidateRecord { since, mode, chain }: CandidateRecord) -> Self {
        let (mode, share) = match mode {
            TrialMode::Shadow => (api::TrialModeView::Shadow, None),
            TrialMode::Canary { share } => (api::TrialModeView::Canary, Some(share)),
        };
        Self { since: since.0, mode, share, chain }
    }
}
