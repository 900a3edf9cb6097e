//! A router for sharing a few sender numbers: each message gets a number of a pool as its sender, exclusively, from its
//! acceptance to its end. `policies/shared-sender.toml` is an example.

use serde::Deserialize;
use switchyard_sdk::numbers::{SenderRequest, WithoutNumber};
use switchyard_sdk::{
    Decision, Leg, Message, RejectReason, Router, forward, leg, names_peers, names_pools, numbers, pass,
    reject,
};

#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct Policy {
    /// The messages that share the numbers of one pool. The first matching entry applies.
    #[serde(default)]
    share: Vec<Share>,
}

/// The messages that share the numbers of one pool.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Share {
    /// The pool.
    #[cfg_attr(test, schemars(extend("x-switchyard" = "pool")))]
    pool: String,
    /// Source addresses as submitted. Default: any.
    #[serde(default)]
    from: Vec<String>,
    /// Accounts or peers that submitted the message. Default: any.
    #[serde(default)]
    #[cfg_attr(test, schemars(extend("x-switchyard" = "account")))]
    accounts: Vec<String>,
    /// The peers for the messages, in order of preference.
    #[cfg_attr(test, schemars(length(min = 1, max = 255), extend("x-switchyard" = "peer")))]
    peers: Vec<String>,
    /// The treatment of a message if no number is available. Default: reject.
    #[serde(default)]
    without_number: FallbackKeyword,
    /// Seconds after which the lease expires even if the message has not ended. Default: never.
    lease: Option<u64>,
    /// The reason, shown with the lease in the pool.
    reason: Option<String>,
}

#[derive(Deserialize, Clone, Copy, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
enum FallbackKeyword {
    /// Hold the message until a number is available.
    Hold,
    /// Refuse the message.
    #[default]
    Reject,
    /// Send the message with its own sender.
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
            // In a sticky pool, a sender and a recipient get the same number again.
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

#[cfg(test)]
mod tests {
    #[test]
    fn the_schema_is_up_to_date() {
        policy_values::schema::assert_up_to_date::<super::Policy>("shared-sender");
    }
}
