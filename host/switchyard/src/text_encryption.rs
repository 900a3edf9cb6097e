//! The keys that encrypt texts: opened at the start, prepared ahead, and destroyed when the texts are to be forgotten.

use crate::config::Config;
use anyhow::{Result, bail};
use model::Timestamp;
use parking_lot::Mutex;
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::Store;
use text_keys::{RootKey, TextKeys};

/// The file of keys in the data directory. It is in no backup.
pub(crate) const KEY_FILE: &str = "text.keys";

/// The time after which keys are looked at again that were in use; it doubles up to [`MAX_DELAY`].
const FIRST_DELAY: Duration = Duration::from_secs(2);
const MAX_DELAY: Duration = Duration::from_secs(600);

/// The path of the file of keys.
pub(crate) fn key_file(data: &Path) -> PathBuf {
    data.join(KEY_FILE)
}

/// Opens the keys of texts; `None` if texts are not encrypted.
pub(crate) fn open_keys(config: &Config) -> Result<Option<Arc<TextKeys>>> {
    let path = key_file(&config.appliance.data);
    match &config.privacy.root_key_file {
        Some(root) => {
            let keys = TextKeys::open(&path, RootKey::read(root)?, config.privacy.key_period)?;
            Ok(Some(Arc::new(keys)))
        }
        None if path.metadata().is_ok_and(|found| found.len() > 0) => bail!(
            "{} has keys of texts, and root-key-file of [privacy] is not set: set it, also if no more texts are to be encrypted; to \
             give up all texts that these keys protect, move the file away",
            path.display()
        ),
        None => Ok(None),
    }
}

/// Refuses to start without the keys of waiting messages, if the whole file is missing: all of them would fail.
pub(crate) fn check_keys(store: &Store, keys: Option<&TextKeys>, data: &Path) -> Result<()> {
    let path = key_file(data);
    if keys.is_some_and(|keys| !keys.was_empty()) || path.exists() || store.content_keys_in_use()?.is_empty()
    {
        return Ok(());
    }
    bail!(
        "waiting messages have encrypted texts, and {path} with their keys is missing: copy it there, and set root-key-file of \
         [privacy]; to give up these texts, create an empty file: touch {path}",
        path = path.display()
    )
}

/// How long the texts of accounts are kept, by name, and those of all others; `None`: for ever.
fn text_lifetimes(config: &Config) -> (HashMap<String, Duration>, Option<Duration>) {
    let of_messages = match config.archive.url {
        Some(_) => config.archive.options.keep,
        None => Some(config.engine.finished_retention),
    };
    (config.text_retention().into_iter().collect(), of_messages)
}

/// Prepares keys, and destroys them.
pub(crate) struct TextKeyRetention {
    keys: Arc<TextKeys>,
    store: Arc<Store>,
    /// How long texts are kept.
    lifetimes: Mutex<(HashMap<String, Duration>, Option<Duration>)>,
    search: Mutex<KeySearch>,
}

/// When keys in use are looked for again.
struct KeySearch {
    /// Expired keys that were in use.
    in_use: BTreeSet<u64>,
    at: Instant,
    delay: Duration,
}

impl TextKeyRetention {
    /// Sets the accounts of this configuration.
    pub(crate) fn new(keys: Arc<TextKeys>, store: Arc<Store>, config: &Config) -> Self {
        let search = KeySearch { in_use: BTreeSet::new(), at: Instant::now(), delay: FIRST_DELAY };
        let retention = Self { keys, store, lifetimes: Mutex::default(), search: Mutex::new(search) };
        retention.configure(config);
        retention
    }

    /// Takes over which accounts encrypt their texts, and how long these are kept.
    pub(crate) fn configure(&self, config: &Config) {
        let default = config.privacy.encrypt_texts;
        let accounts = config.accounts.iter().map(|account| {
            let encrypts = account.encrypt_texts.unwrap_or(default);
            (account.links.peer, account.links.name.as_str().into(), encrypts)
        });
        self.keys.set_accounts(accounts, default);
        *self.lifetimes.lock() = text_lifetimes(config);
    }

    /// Whether the file of keys cannot be written.
    pub(crate) fn is_failing(&self) -> bool {
        self.keys.failure().is_some()
    }

    /// Creates keys that are needed soon, and destroys those whose texts are to be forgotten at `now`.
    pub(crate) fn run(&self, now: Timestamp) {
        if let Err(error) = self.keys.prepare_next(Timestamp::now()) {
            tracing::error!(%error, "creating a key of texts failed, it is tried again");
        }
        if let Err(error) = self.destroy_expired(now) {
            tracing::error!(
                error = format!("{error:#}"),
                "destroying keys of texts failed, it is tried again"
            );
        }
    }

    fn destroy_expired(&self, now: Timestamp) -> Result<()> {
        let expired = {
            let lifetimes = self.lifetimes.lock();
            self.keys.expired(now, |account| lifetimes.0.get(account).copied().or(lifetimes.1))
        };
        let mut numbers: BTreeSet<u64> = expired.iter().map(|key| key.number).collect();
        let mut search = self.search.lock();
        if numbers.is_empty() || (numbers == search.in_use && Instant::now() < search.at) {
            return Ok(());
        }
        // A message that waits longer keeps its key: it is to be delivered.
        let in_use = self.store.content_keys_in_use()?;
        let kept: BTreeSet<u64> = numbers.intersection(&in_use).copied().collect();
        search.delay = if kept == search.in_use { (search.delay * 2).min(MAX_DELAY) } else { FIRST_DELAY };
        search.at = Instant::now() + search.delay;
        numbers.retain(|number| !kept.contains(number));
        search.in_use = kept;
        let destroyed = self.keys.destroy(&numbers, now)?;
        if destroyed > 0 {
            tracing::info!(keys = destroyed, "keys of texts destroyed after their retention");
        }
        Ok(())
    }
}
