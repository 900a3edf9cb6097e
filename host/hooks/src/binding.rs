//! Checks of bindings: plugin versions that serve a hook, each with a policy, limits and grants.

use crate::HookError;
use crate::worlds::World;
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

/// Checks the tenants and peers of a chain: only routers serve tenants. In the hook `peer`, each binding has peers, and no
/// peer has two bindings. A router of a tenant has the peers to which it may forward.
pub(crate) fn check_tenants_and_peers<W: World>(bindings: &[Binding]) -> Result<(), HookError> {
    let mut known = BTreeSet::new();
    for binding in bindings {
        if binding.tenant.is_some() {
            if !W::HAS_TENANTS {
                return Err(HookError::ServesNoTenants(W::HOOK.name()));
            }
            continue;
        }
        if W::HOOK != Hook::Peer && !binding.peers.is_empty() {
            return Err(HookError::ServesNoPeers(W::HOOK.name()));
        }
        if W::HOOK == Hook::Peer && binding.peers.is_empty() {
            return Err(HookError::WithoutPeers(binding.plugin.clone()));
        }
        if let Some(twice) = binding.peers.iter().find(|peer| !known.insert(peer.as_str())) {
            return Err(HookError::DuplicatePeer(twice.clone()));
        }
    }
    Ok(())
}

/// The mode of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "mode")]
pub enum TrialMode {
    /// The candidate is called too; its answers are compared but not used.
    Shadow,
    /// The candidate decides a share of the traffic.
    Canary {
        /// Share of all destinations in hundredths of a percent, chosen by a stable hash: 1 to 10,000.
        share: u16,
    },
}

/// A candidate chain on trial in addition to the live chain.
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
