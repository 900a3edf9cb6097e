//! Lifecycle of the keys that encrypt texts: opened at the start, created in advance, destroyed after the retention of
//! their texts.

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

/// Name of the key file in the data directory. Backups do not contain it.
pub(crate) const KEY_FILE: &str = "text.keys";

/// Delay before expired keys that were in use are checked again; it doubles up to [`MAX_DELAY`].
const FIRST_DELAY: Duration = Duration::from_secs(2);
const MAX_DELAY: Duration = Duration::from_secs(600);

/// Path of the key file.
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
            "{} has keys of texts, and root-key-file of [privacy] is not set: set it, even if texts are no longer encrypted; to \
             give up all texts that these keys protect, move the file away",
            path.display()
        ),
        None => Ok(None),
    }
}

/// Refuses to start if the key file is missing and waiting messages need keys: all these messages would fail.
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

/// Retention of texts by account name, and of all other texts; `None`: for ever.
fn text_lifetimes(config: &Config) -> (HashMap<String, Duration>, Option<Duration>) {
    let of_messages = match config.archive.url {
        Some(_) => config.archive.options.keep,
        None => Some(config.engine.finished_retention),
    };
    (config.text_retention().into_iter().collect(), of_messages)
}

/// Creates and destroys keys.
pub(crate) struct TextKeyRetention {
    keys: Arc<TextKeys>,
    store: Arc<Store>,
    /// Retention of texts by account name, and of all other texts; `None`: for ever.
    lifetimes: Mutex<(HashMap<String, Duration>, Option<Duration>)>,
    search: Mutex<KeySearch>,
}

/// Time of the next check of expired keys in use.
struct KeySearch {
    /// Expired keys that were in use at the last check.
    in_use: BTreeSet<u64>,
    at: Instant,
    delay: Duration,
}

impl TextKeyRetention {
    /// Uses the retention times of this configuration.
    pub(crate) fn new(keys: Arc<TextKeys>, store: Arc<Store>, config: &Config) -> Self {
        let search = KeySearch { in_use: BTreeSet::new(), at: Instant::now(), delay: FIRST_DELAY };
        let retention = Self { keys, store, lifetimes: Mutex::default(), search: Mutex::new(search) };
        retention.configure(config);
        retention
    }

    /// Applies which accounts encrypt their texts, and the retention of those.
    pub(crate) fn configure(&self, config: &Config) {
        let default = config.privacy.encrypt_texts;
        let accounts = config.accounts.iter().map(|account| {
            let encrypts = account.encrypt_texts.unwrap_or(default);
            (account.links.peer, account.links.name.as_str().into(), encrypts)
        });
        self.keys.set_accounts(accounts, default);
        *self.lifetimes.lock() = text_lifetimes(config);
    }

    /// Whether writing the key file fails.
    pub(crate) fn is_failing(&self) -> bool {
        self.keys.failure().is_some()
    }

    /// Creates keys that are needed soon, and destroys those whose texts expire by `now`.
    pub(crate) fn run(&self, now: Timestamp) {
        if let Err(error) = self.keys.prepare_next(Timestamp::now()) {
            tracing::error!(%error, "creating a key of texts failed, trying again");
        }
        if let Err(error) = self.destroy_expired(now) {
            tracing::error!(error = format!("{error:#}"), "destroying keys of texts failed, trying again");
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
        // A message that still waits keeps its key, since it must be delivered.
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
