//! A router for those who share few numbers: messages are sent from a number of a pool, which each message has for itself
//! from its acceptance to its end. `policies/shared-sender.toml` shows what it reads.

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

/// Messages that are sent from the numbers of one pool.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Share {
    pool: String,
    /// Senders, as they are submitted; empty: any.
    #[serde(default)]
    from: Vec<String>,
    /// Where the messages come from; empty: from anywhere.
    #[serde(default)]
    accounts: Vec<String>,
    /// Where they go, the first one first.
    peers: Vec<String>,
    #[serde(default)]
    without_number: Otherwise,
    /// Seconds.
    lease: Option<u64>,
    reason: Option<String>,
}

#[derive(Deserialize, Clone, Copy, Default)]
#[serde(rename_all = "kebab-case")]
enum Otherwise {
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
            // A pool that is sticky gives each sender's addressees the same number again.
            user: Some(message.source.value.clone()),
            holder: None,
            reason: self.reason.clone(),
            lease: self.lease.map(|seconds| seconds.saturating_mul(1_000)),
            otherwise: match self.without_number {
                Otherwise::Hold => WithoutNumber::Hold,
                Otherwise::Reject => WithoutNumber::Reject,
                Otherwise::KeepSender => WithoutNumber::KeepSender,
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
