//! `[privacy]`: encryption of texts.

use configuration::{Keys, Section};
use std::path::PathBuf;
use std::time::Duration;

/// `[privacy]`: encryption of texts.
#[derive(Debug, Clone, Keys)]
#[keys(restart = "the keys are opened at the start")]
pub(crate) struct PrivacyKeys {
    /// The file of the root key: 32 random octets, readable only by the daemon's user, created by `switchyard privacy
    /// new-root-key FILE`. The root key protects the keys that encrypt texts, in `text.keys` of the data directory.
    /// Without it, texts are not encrypted.
    #[key(default_as = "none")]
    pub(crate) root_key_file: Option<PathBuf>,
    /// Whether texts are encrypted: the default for accounts that do not set it, and the setting for messages of no
    /// account.
    #[key(default = false, live = "applies to texts that are written from then on")]
    pub(crate) encrypt_texts: bool,
    /// The period of time for which messages of an account share a key, at most one day. A key is destroyed as a whole,
    /// so a text is kept up to this time longer than `text-retention`. Each key is one entry in `text.keys`.
    #[key(default = "1d", check = check_period)]
    pub(crate) key_period: Duration,
}

fn check_period(period: &Duration) -> Result<(), String> {
    if (Duration::from_secs(1)..=Duration::from_secs(86_400)).contains(period) {
        return Ok(());
    }
    Err("must be between 1s and 1d".to_owned())
}

impl PrivacyKeys {
    /// Checks the requirements of the encryption of texts. `accounts`: the setting and the section of each account.
    /// `is_node`: whether there is a `[cluster]`.
    pub(super) fn check_encryption<'a, 's: 'a>(
        &self,
        section: &Section<'_>,
        accounts: impl Iterator<Item = (Option<bool>, &'a Section<'s>)>,
        is_node: bool,
    ) {
        if self.root_key_file.is_none() {
            for (encrypts, account) in accounts {
                if encrypts == Some(true) {
                    account.error("encrypt-texts", NEEDS_ROOT_KEY);
                }
            }
            if self.encrypt_texts {
                section.error("encrypt-texts", NEEDS_ROOT_KEY);
            }
        } else if is_node {
            let what = "does not go with [cluster]: the nodes of a cluster do not share keys of texts. Remove it, or run one machine";
            section.error("root-key-file", what);
        }
    }
}

const NEEDS_ROOT_KEY: &str =
    "needs root-key-file of [privacy]: make one with `switchyard privacy new-root-key FILE`";
