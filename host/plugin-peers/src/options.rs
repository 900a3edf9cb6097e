use configuration::{Keys, Section};
use model::{MessageId, PeerId};
use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::time::Duration;

/// A peer whose protocol a plugin implements.
#[derive(Clone, Debug, PartialEq, Keys)]
#[keys(live = "its link is opened again", check = Self::check)]
pub struct PluginPeerOptions {
    /// The peer's name. A binding of the hook `peer` serves it.
    #[key(example = "http-upstream")]
    pub name: String,
    /// The peer id.
    #[key(skip = PeerId(u32::MAX))]
    pub peer: PeerId,
    /// Maximum number of messages that the plugin submits at a time, each on its own thread.
    #[key(range = 1..=256, default = 8, label = "Window")]
    pub window: usize,
    /// Whether the peer may call `/v1/peers/NAME/callback` of the listener `[peer-callbacks]`. The plugin authenticates the
    /// caller.
    #[key(default = false)]
    pub callbacks: bool,
    /// Maximum number of callbacks per second; more are answered with status 429.
    #[key(range = 1..=100_000, default = 200)]
    pub callback_rate: u32,
    /// The percentage of messages whose submission is recorded for replays: the peer's response, never the request or a
    /// secret. Nothing is recorded without an archive.
    #[key(range = 0..=100, default = 1, label = "Recorded share (%)")]
    pub recorded_percent: u32,
    /// The validity of messages from the peer.
    #[key(default = "3d")]
    pub mo_validity: Duration,
    /// Secrets that the plugin may read, so that its policy document need not contain them.
    #[key(name = "secret", named)]
    pub secrets: Vec<PeerSecret>,
}

/// A secret of a peer.
#[derive(Clone, PartialEq, Keys)]
#[keys(live = "applies to the next calls")]
pub struct PeerSecret {
    /// The name that the plugin uses for it.
    #[key(example = "token")]
    pub name: String,
    /// The secret; either this or `value-file` is mandatory.
    #[key(secret, or_file)]
    pub value: String,
}

impl fmt::Debug for PeerSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PeerSecret").field("name", &self.name).finish_non_exhaustive()
    }
}

impl PluginPeerOptions {
    /// A peer with default settings.
    #[must_use]
    pub fn new(name: &str, peer: PeerId) -> Self {
        Self { name: name.to_owned(), peer, ..Self::defaults() }
    }

    /// Whether the submission of a message is recorded. Ids are scattered, so that every run of messages has the same share.
    pub(crate) fn is_sample(&self, id: MessageId) -> bool {
        // Fibonacci hashing: the high bits of the product are uniform for consecutive numbers.
        let bucket = ((id.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) * 100) >> 32;
        bucket < u64::from(self.recorded_percent)
    }

    fn check(&mut self, section: &Section<'_>) {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if !self.name.chars().all(is_plain) {
            section.error(
                "name",
                "may have letters, digits, '-', '_' and '.' only: it is part of the callback's path",
            );
        }
        let mut known = HashSet::new();
        for (part, secret) in section.sections("secret").iter().zip(&self.secrets) {
            if secret.value.is_empty() {
                part.error("value", "is missing; write the secret, or name a file in value-file");
            }
            if !known.insert(secret.name.as_str()) {
                part.error(
                    "name",
                    format!("{:?} is also the name of another secret of the peer", secret.name),
                );
            }
        }
    }

    /// The secrets by name.
    #[must_use]
    pub fn secrets_by_name(&self) -> BTreeMap<String, String> {
        self.secrets.iter().map(|secret| (secret.name.clone(), secret.value.clone())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_have_the_configured_share() {
        for percent in [0, 1, 50, 100] {
            let options =
                PluginPeerOptions { recorded_percent: percent, ..PluginPeerOptions::new("p", PeerId(1)) };
            let samples = (1..=10_000).filter(|id| options.is_sample(MessageId(*id))).count();
            assert!(samples.abs_diff(percent as usize * 100) <= 10, "{samples} of 10000 at {percent} %");
        }
    }
}
