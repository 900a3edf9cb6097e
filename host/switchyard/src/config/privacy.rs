//! `[privacy]`.

use super::Config;
use configuration::{Keys, Section};
use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

/// `[privacy]`.
#[derive(Debug, Clone, Keys)]
#[keys(restart = "the keys are opened at the start")]
pub(crate) struct PrivacyKeys {
    /// The file of the root key, 32 random octets that only the daemon's user can read; `switchyard privacy new-root-key FILE`
    /// makes it. It protects the keys that encrypt texts, in `text.keys` of the data directory. Without it, texts are not
    /// encrypted.
    #[key(default_as = "none")]
    pub(crate) root_key_file: Option<PathBuf>,
    /// Whether the texts of accounts are encrypted that do not say so themselves, and those of messages of no account.
    #[key(default = false, live = "applies to messages that are accepted from then on")]
    pub(crate) encrypt_texts: bool,
    /// How much time of an account's messages shares a key, at most a day. A key is destroyed as a whole, so that a text is kept
    /// for up to this time longer than `text-retention`. Each key is an entry in `text.keys`.
    #[key(default = "1d", check = check_period)]
    pub(crate) key_period: Duration,
}

fn check_period(period: &Duration) -> Result<(), String> {
    if (Duration::from_secs(1)..=Duration::from_secs(86_400)).contains(period) {
        return Ok(());
    }
    Err("must be between 1s and 1d".to_owned())
}

impl Config {
    /// How long the texts of accounts are kept, by name, and those of all others; `None`: for ever.
    pub(crate) fn text_lifetimes(&self) -> (HashMap<String, Duration>, Option<Duration>) {
        let of_messages = match self.archive.url {
            Some(_) => self.archive.options.keep,
            None => Some(self.engine.finished_retention),
        };
        (self.text_retention().into_iter().collect(), of_messages)
    }

    /// Checks what the encryption of texts needs.
    pub(super) fn check_encryption(&self, root: &Section<'_>) {
        let section = root.section("privacy");
        if self.privacy.root_key_file.is_none() {
            let accounts = root.sections("account");
            for (account, section) in self.accounts.iter().zip(accounts) {
                if account.encrypt_texts == Some(true) {
                    section.error("encrypt-texts", NEEDS_ROOT_KEY);
                }
            }
            if self.privacy.encrypt_texts {
                section.error("encrypt-texts", NEEDS_ROOT_KEY);
            }
        } else if self.cluster.is_some() {
            let what = "does not go with [cluster]: the nodes of a cluster do not share keys of texts. Remove it, or run one machine";
            section.error("root-key-file", what);
        }
    }
}

const NEEDS_ROOT_KEY: &str =
    "needs root-key-file of [privacy]: make one with `switchyard privacy new-root-key FILE`";
