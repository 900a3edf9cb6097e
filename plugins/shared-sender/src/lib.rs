//! A router for sharing a few sender numbers: each message gets a number of a pool as its sender, exclusively, from its
//! acceptance to its end. `policies/shared-sender.toml` is an example.

use serde::Deserialize;
use switchyard_sdk::numbers::{SenderRequest, WithoutNumber};
use switchyard_sdk::{
    Decision, Leg, Message, RejectReason, Router, forward, leg, names_peers, names_pools, numbers, pass,
    reject,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Policy {
    #[serde(default)]
    share: Vec<Share>,
}

/// The messages that share the numbers of one pool.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Share {
    pool: String,
    /// Submitted senders; empty: any.
    #[serde(default)]
    from: Vec<String>,
    /// Origins of the messages; empty: any.
    #[serde(default)]
    accounts: Vec<String>,
    /// The peers for the messages, in order of preference.
    peers: Vec<String>,
    #[serde(default)]
    without_number: FallbackKeyword,
    /// In seconds.
    lease: Option<u64>,
    reason: Option<String>,
}

#[derive(Deserialize, Clone, Copy, Default)]
#[serde(rename_all = "kebab-case")]
enum FallbackKeyword {
    Hold,
    #[default]
    Reject,
    KeepSender,
}

fn is_among(text: &str, all: &[String]) -> bool {
    all.is_empty() || all.iter().any(|one| one == text)
}

impl Share {
    fn is_for(&self, message: &Message) -> bool {
        is_among(&message.source.value, &self.from) && is_among(&message.origin, &self.accounts)
    }

    fn legs(&self) -> Vec<Leg> {
        (0..=u8::MAX).zip(&self.peers).map(|(rank, peer)| leg(peer).rank(rank)).collect()
    }

    fn request(&self, message: &Message) -> SenderRequest {
        SenderRequest {
            pool: self.pool.clone(),
            // A sticky pool gives each sender's recipients the same number again.
            user: Some(message.source.value.clone()),
            holder: None,
            reason: self.reason.clone(),
            lease: self.lease.map(|seconds| seconds.saturating_mul(1_000)),
            otherwise: match self.without_number {
                FallbackKeyword::Hold => WithoutNumber::Hold,
                FallbackKeyword::Reject => WithoutNumber::Reject,
                FallbackKeyword::KeepSender => WithoutNumber::KeepSender,
            },
        }
    }
}

impl Router for Policy {
    fn configure(document: &str) -> Result<Self, String> {
        let policy: Self = toml::from_str(document).map_err(|error| error.to_string())?;
        match policy.share.iter().find(|share| share.peers.is_empty() || share.peers.len() > 255) {
            Some(share) => Err(format!("share of pool {:?}: peers: name 1 to 255 of them", share.pool)),
            None => {
                names_peers(policy.share.iter().flat_map(|share| share.peers.iter().map(String::as_str)));
                names_pools(policy.share.iter().map(|share| share.pool.as_str()));
                Ok(policy)
            }
        }
    }

    fn route(&self, message: &Message) -> Decision {
        let Some(share) = self.share.iter().find(|share| share.is_for(message)) else { return pass() };
        match numbers::take_sender(&share.request(message)) {
            Ok(()) => forward(share.legs()).because(format!("sent from pool {}", share.pool)),
            Err(why) => reject(RejectReason::InvalidSource).because(why),
        }
    }
}

switchyard_sdk::export_router!(Policy);
