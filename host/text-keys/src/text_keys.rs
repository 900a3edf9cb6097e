//! The keys in memory, and the selection of the key for a message.

use crate::cipher::{MessagePart, TextKey};
use crate::key_file::{Contents, DestroyedKey, KeyFile, StoredKey};
use crate::root_key::random;
use crate::{RootKey, TextKeyError};
use bytes::Bytes;
use codec::{CipherError, ContentCipher, ContentPart};
use model::{Message, MessageId, PeerId, SealedContent, Timestamp, Verdict};
use parking_lot::{Mutex, RwLock};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// The text keys: the content cipher of the daemon.
pub struct TextKeys {
    /// The length of a period, in milliseconds; at least 1.
    period: u64,
    /// Whether the file was missing or empty when it was opened.
    was_empty: bool,
    pub(crate) keys: RwLock<Keys>,
    /// Locked before `keys` where both are changed.
    pub(crate) stored: Mutex<Stored>,
}

impl std::fmt::Debug for TextKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TextKeys").field("keys", &self.keys.read().by_number.len()).finish_non_exhaustive()
    }
}

/// The file and its contents.
pub(crate) struct Stored {
    pub(crate) file: KeyFile,
    pub(crate) contents: Contents,
    /// Error of the last write, if it failed.
    failure: Option<String>,
}

/// Account name for the keys of messages that belong to no account.
pub const NO_ACCOUNT: &str = "";

/// The keys of an account by the start of their periods, with the ends.
type Periods = BTreeMap<u64, (u64, Arc<TextKey>)>;

/// The keys, indexed for lookups.
#[derive(Default)]
pub(crate) struct Keys {
    by_number: FxHashMap<u64, Arc<TextKey>>,
    destroyed: FxHashMap<u64, u64>,
    /// By account.
    by_account: FxHashMap<Arc<str>, Periods>,
    /// All accounts, with the name if their messages are encrypted.
    accounts: FxHashMap<PeerId, Option<Arc<str>>>,
    /// The names of all accounts, and whether their messages are encrypted.
    account_names: FxHashMap<Arc<str>, bool>,
    /// Name for encrypting messages of no account; `None` if they are not encrypted.
    others: Option<Arc<str>>,
}

/// A key, without its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyDescription {
    /// Number of the key, by which records refer to it.
    pub number: u64,
    /// The account.
    pub account: Box<str>,
    /// Start of the key's period: the first acceptance time of its messages.
    pub from: Timestamp,
    /// End of the key's period, exclusive.
    pub until: Timestamp,
}

impl Keys {
    fn insert(&mut self, stored: &StoredKey) {
        let Some(key) = TextKey::new(stored.number, &stored.secret).map(Arc::new) else { return };
        self.by_number.insert(stored.number, key.clone());
        let periods = self.by_account.entry(stored.account.as_ref().into()).or_default();
        periods.insert(stored.period.start, (stored.period.end, key));
    }

    /// The key for messages that an account accepted at a time.
    fn find(&self, account: &str, at: u64) -> Option<&Arc<TextKey>> {
        let (_, (end, key)) = self.by_account.get(account)?.range(..=at).next_back()?;
        (at < *end).then_some(key)
    }

    fn of_contents(&mut self, contents: &Contents) {
        self.by_number.clear();
        self.by_account.clear();
        contents.keys.iter().for_each(|key| self.insert(key));
        self.destroyed = contents.destroyed.iter().map(|key| (key.number, key.at)).collect();
    }
}

impl TextKeys {
    /// Opens the key file. If it does not exist, it is created with the first key. The period of new keys is `period`.
    ///
    /// # Errors
    /// It was written with another root key, is damaged, or cannot be read.
    pub fn open(path: &Path, root: RootKey, period: Duration) -> Result<Self, TextKeyError> {
        let (file, contents) = KeyFile::open(path, root)?;
        let mut keys = Keys::default();
        keys.of_contents(&contents);
        Ok(Self {
            period: u64::try_from(period.as_millis()).unwrap_or(u64::MAX).max(1),
            was_empty: contents.keys.is_empty() && contents.destroyed.is_empty(),
            keys: RwLock::new(keys),
            stored: Mutex::new(Stored { file, contents, failure: None }),
        })
    }

    /// Lists the keys of a file without changing it, also while a daemon uses it.
    ///
    /// # Errors
    /// As [`TextKeys::open`].
    pub fn read(path: &Path, root: RootKey) -> Result<Vec<KeyDescription>, TextKeyError> {
        let (_, contents, _) = KeyFile::read(path, root)?;
        Ok(sorted(&contents))
    }

    /// Whether the file had no keys, and none that were destroyed, when it was opened.
    #[must_use]
    pub fn was_empty(&self) -> bool {
        self.was_empty
    }

    /// Sets the accounts, and whether their messages are encrypted from now on; `others`: whether messages of no
    /// account are.
    pub fn set_accounts(&self, accounts: impl IntoIterator<Item = (PeerId, Arc<str>, bool)>, others: bool) {
        let mut keys = self.keys.write();
        let Keys { accounts: by_id, account_names: by_name, .. } = &mut *keys;
        by_id.clear();
        by_name.clear();
        for (peer, name, encrypts) in accounts {
            by_id.insert(peer, encrypts.then(|| name.clone()));
            by_name.insert(name, encrypts);
        }
        keys.others = others.then(|| NO_ACCOUNT.into());
    }

    /// All keys, by account and period.
    #[must_use]
    pub fn list(&self) -> Vec<KeyDescription> {
        sorted(&self.stored.lock().contents)
    }

    /// Error of the last attempt to write the file; `None` if it succeeded.
    #[must_use]
    pub fn failure(&self) -> Option<String> {
        self.stored.lock().failure.clone()
    }

    /// Creates the keys of the next period for accounts that use their current ones. So commits need not wait for the
    /// file, and a failing disk is noticed in time.
    ///
    /// # Errors
    /// The file cannot be written. [`failure`](Self::failure) returns the error until an attempt succeeds.
    pub fn prepare_next(&self, now: Timestamp) -> Result<(), TextKeyError> {
        let next: Vec<(Arc<str>, u64)> = {
            let keys = self.keys.read();
            let encrypting =
                keys.account_names.iter().filter(|(_, encrypts)| **encrypts).map(|(name, _)| name);
            let wanted = encrypting.chain(&keys.others).filter_map(|account| {
                let (end, key) = keys.by_account.get(account)?.range(..=now.0).next_back()?.1;
                let is_wanted = now.0 < *end && key.used.load(Relaxed) && keys.find(account, *end).is_none();
                is_wanted.then(|| (account.clone(), *end))
            });
            wanted.collect()
        };
        next.iter().try_for_each(|(account, at)| self.create(account, *at).map(drop))
    }

    /// The key of an account for a time; it is created if it does not exist.
    fn create(&self, account: &str, at: u64) -> Result<Arc<TextKey>, TextKeyError> {
        let mut stored = self.stored.lock();
        if let Some(key) = self.keys.read().find(account, at) {
            return Ok(key.clone());
        }
        let created = self.append(&mut stored, account, at);
        stored.failure = created.as_ref().err().map(ToString::to_string);
        created
    }

    fn append(&self, stored: &mut Stored, account: &str, at: u64) -> Result<Arc<TextKey>, TextKeyError> {
        let number = u64::from_le_bytes(random()?);
        let begin = at - at % self.period;
        let mut period = begin..begin.saturating_add(self.period);
        // Keys that were made with another length of the period stay in use.
        if let Some(periods) = self.keys.read().by_account.get(account) {
            if let Some((_, (end, _))) = periods.range(..=at).next_back() {
                period.start = period.start.max(*end);
            }
            if let Some((next, _)) = periods.range(at..).next() {
                period.end = period.end.min(*next);
            }
        }
        let key = StoredKey { number, account: account.into(), period, secret: random()? };
        stored.file.append(std::slice::from_ref(&key))?;
        let mut keys = self.keys.write();
        keys.insert(&key);
        let new = keys.by_number.get(&number).cloned();
        stored.contents.keys.push(key);
        new.ok_or_else(|| TextKeyError::UnknownKey { path: stored.file.path().to_owned(), number })
    }

    fn seal_with(
        &self,
        account: &str,
        at: Timestamp,
        id: MessageId,
        (part, plain): (ContentPart, &[u8]),
    ) -> Result<SealedContent, CipherError> {
        let known = self.keys.read().find(account, at.0).cloned();
        self.seal_with_key(known, account, at, id, (part, plain))
    }

    fn seal_with_key(
        &self,
        known: Option<Arc<TextKey>>,
        account: &str,
        at: Timestamp,
        id: MessageId,
        (part, plain): (ContentPart, &[u8]),
    ) -> Result<SealedContent, CipherError> {
        let failed = |error: &dyn std::fmt::Display| CipherError(error.to_string().into());
        let key = match known {
            Some(key) => key,
            None => self.create(account, at.0).map_err(|error| failed(&error))?,
        };
        let message_part = MessagePart { message: id.0, part: part as u8 };
        let octets =
            key.seal(message_part, plain).ok_or_else(|| failed(&"a text is too long to be encrypted"))?;
        key.used.store(true, Relaxed);
        Ok(SealedContent { key: key.number, octets: Bytes::from(octets) })
    }

    /// Rewrites the file with these contents, and uses them.
    pub(crate) fn replace(&self, stored: &mut Stored, contents: Contents) -> Result<(), TextKeyError> {
        let written = stored.file.rewrite(&contents);
        stored.failure = written.as_ref().err().map(ToString::to_string);
        written?;
        self.keys.write().of_contents(&contents);
        stored.contents = contents;
        Ok(())
    }
}

/// Keys by account and period.
fn sorted(contents: &Contents) -> Vec<KeyDescription> {
    let mut found: Vec<_> = contents.keys.iter().map(describe).collect();
    found.sort_by(|a, b| (&a.account, a.from).cmp(&(&b.account, b.from)));
    found
}

pub(crate) fn describe(key: &StoredKey) -> KeyDescription {
    KeyDescription {
        number: key.number,
        account: key.account.clone(),
        from: Timestamp(key.period.start),
        until: Timestamp(key.period.end),
    }
}

/// The contents of the file after some keys were destroyed at `now`.
pub(crate) fn without(contents: &Contents, destroyed: &[u64], now: u64, keep_since: u64) -> Contents {
    let kept = contents.destroyed.iter().copied().filter(|key| key.at >= keep_since);
    Contents {
        keys: contents.keys.iter().filter(|key| !destroyed.contains(&key.number)).cloned().collect(),
        destroyed: kept
            .chain(destroyed.iter().map(|number| DestroyedKey { number: *number, at: now }))
            .collect(),
    }
}

impl Keys {
    /// The account whose key encrypts a message: its submitter, or for an MO message the first account that it is for.
    fn account_of(&self, message: &Message) -> Option<&Arc<str>> {
        let legs = match &message.routed.verdict {
            Verdict::Forward(legs) => &legs[..],
            Verdict::Hold(_)
            | Verdict::Reject(_)
            | Verdict::Quarantine
            | Verdict::AwaitLookup
            | Verdict::Drop(_) => &[],
        };
        let submitter = self.accounts.get(&message.origin);
        match submitter.or_else(|| legs.iter().find_map(|leg| self.accounts.get(&leg.peer))) {
            Some(account) => account.as_ref(),
            None => self.others.as_ref(),
        }
    }

    /// The name under which messages of an account are encrypted, if they are.
    fn encrypting_name(&self, account: &str) -> Option<Arc<str>> {
        match self.account_names.get_key_value(account) {
            Some((name, encrypts)) => encrypts.then(|| name.clone()),
            None => self.others.clone(),
        }
    }
}

impl ContentCipher for TextKeys {
    fn encrypts(&self, message: &Message) -> bool {
        self.keys.read().account_of(message).is_some()
    }

    fn seal(
        &self,
        message: &Message,
        part: ContentPart,
        plain: &[u8],
    ) -> Result<Option<SealedContent>, CipherError> {
        let (account, known) = {
            let keys = self.keys.read();
            let Some(account) = keys.account_of(message) else { return Ok(None) };
            (account.clone(), keys.find(account, message.accepted_at.0).cloned())
        };
        self.seal_with_key(known, &account, message.accepted_at, message.id, (part, plain)).map(Some)
    }

    fn seal_for_account(
        &self,
        account: &str,
        (id, accepted_at): (MessageId, Timestamp),
        part: ContentPart,
        plain: &[u8],
    ) -> Result<Option<SealedContent>, CipherError> {
        let name = self.keys.read().encrypting_name(account);
        let Some(name) = name else { return Ok(None) };
        self.seal_with(&name, accepted_at, id, (part, plain)).map(Some)
    }

    fn open(&self, id: MessageId, part: ContentPart, sealed: &SealedContent) -> Option<Vec<u8>> {
        let key = self.keys.read().by_number.get(&sealed.key).cloned()?;
        key.open(MessagePart { message: id.0, part: part as u8 }, &sealed.octets)
    }

    fn destroyed_at(&self, key: u64) -> Option<Timestamp> {
        self.keys.read().destroyed.get(&key).copied().map(Timestamp)
    }
}
