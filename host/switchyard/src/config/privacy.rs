//! `[privacy]`.

use configuration::{Keys, Section};
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
    #[key(default = false, live = "applies to texts that are written from then on")]
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

impl PrivacyKeys {
    /// Checks what the encryption of texts needs. `accounts`: what each account says of it, with its section; `is_node`: there is
    /// a `[cluster]`.
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
