//! Destruction of keys.

use crate::text_keys::{TextKeys, describe, without};
use crate::{KeyDescription, TextKeyError};
use model::Timestamp;
use std::collections::BTreeSet;
use std::time::Duration;

/// Time after the end of a period within which its messages may still be committed.
const GRACE: Duration = Duration::from_secs(10);

/// Time for which the file records the destruction of a key.
const KEPT_AFTER_DESTRUCTION: Duration = Duration::from_secs(400 * 86_400);

fn millis(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}

impl TextKeys {
    /// Keys whose messages are all older than the text retention of their account. `retention` returns it by the name
    /// of the account; `None`: for ever.
    pub fn expired(
        &self,
        now: Timestamp,
        retention: impl Fn(&str) -> Option<Duration>,
    ) -> Vec<KeyDescription> {
        let stored = self.stored.lock();
        let is_expired = |key: &KeyDescription| {
            let kept = retention(&key.account).map(|kept| millis(kept).saturating_add(millis(GRACE)));
            kept.is_some_and(|kept| key.until.0.saturating_add(kept) <= now.0)
        };
        stored.contents.keys.iter().map(describe).filter(is_expired).collect()
    }

    /// Destroys keys by number: all texts that they encrypted, and all copies of them, are unreadable from now on. The
    /// file is rewritten, and the old one is overwritten. Unknown numbers are ignored. Returns the number of destroyed
    /// keys.
    ///
    /// # Errors
    /// The file cannot be written. The keys may or may not be destroyed.
    pub fn destroy(&self, numbers: &BTreeSet<u64>, now: Timestamp) -> Result<usize, TextKeyError> {
        let mut stored = self.stored.lock();
        let known = stored.contents.keys.iter().map(|key| key.number);
        let destroyed: Vec<u64> = known.filter(|number| numbers.contains(number)).collect();
        if destroyed.is_empty() {
            return Ok(0);
        }
        let keep_since = now.0.saturating_sub(millis(KEPT_AFTER_DESTRUCTION));
        let contents = without(&stored.contents, &destroyed, now.0, keep_since);
        self.replace(&mut stored, contents)?;
        Ok(destroyed.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RootKey;
    use codec::{ContentCipher as _, ContentPart};
    use model::{MessageId, PeerId, SealedContent};
    use std::path::Path;

    const DAY: u64 = 86_400_000;
    const ACCOUNTS: [(PeerId, &str, bool); 3] =
        [(PeerId(1), "acme", true), (PeerId(2), "other", true), (PeerId(3), "third", false)];

    fn open(path: &Path) -> TextKeys {
        let keys = TextKeys::open(path, RootKey::new(&[9; 32]), Duration::from_secs(86_400)).unwrap();
        keys.set_accounts(ACCOUNTS.map(|(peer, name, encrypts)| (peer, name.into(), encrypts)), false);
        keys
    }

    fn seal(keys: &TextKeys, account: &str, at: u64) -> SealedContent {
        let message = (MessageId(1), Timestamp(at));
        let sealed = keys.seal_for_account(account, message, ContentPart::ArchivedText, b"hello");
        sealed.unwrap().unwrap()
    }

    fn is_readable(keys: &TextKeys, sealed: &SealedContent) -> bool {
        let plain = keys.open(MessageId(1), ContentPart::ArchivedText, sealed);
        assert!(plain.as_deref().is_none_or(|plain| plain == b"hello"));
        plain.is_some()
    }

    #[test]
    fn a_key_serves_an_account_for_a_day_and_survives_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("text.keys");
        let keys = open(&path);
        assert!(keys.was_empty());
        let (first, same, next) =
            (seal(&keys, "acme", 5), seal(&keys, "acme", DAY - 1), seal(&keys, "acme", DAY));
        let other = seal(&keys, "other", 5);
        assert_eq!(first, same, "the same octets");
        assert!(first.key != next.key && first.key != other.key);
        let clear =
            keys.seal_for_account("third", (MessageId(1), Timestamp(5)), ContentPart::ArchivedText, b"");
        assert_eq!(clear.unwrap(), None);
        keys.set_accounts([(PeerId(3), "third".into(), false)], true);
        let sealed = |account| {
            let message = (MessageId(1), Timestamp(5));
            keys.seal_for_account(account, message, ContentPart::ArchivedText, b"hello").unwrap()
        };
        assert!(sealed("third").is_none() && sealed("network").is_some(), "also those of no account");
        drop(keys);
        let keys = open(&path);
        assert!(!keys.was_empty());
        assert!([&first, &next, &other].into_iter().all(|sealed| is_readable(&keys, sealed)));
        assert_eq!(seal(&keys, "acme", 6), first, "also after a restart");
        assert_eq!(keys.list().len(), 4);
    }

    #[test]
    fn expired_keys_are_destroyed_and_what_they_encrypted_is_unreadable() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("text.keys");
        let keys = open(&path);
        let (old, new, other) = (seal(&keys, "acme", 5), seal(&keys, "acme", DAY), seal(&keys, "other", 5));
        let retention = |account: &str| (account == "acme").then_some(Duration::from_secs(3600));
        let end = DAY + 3_600_000 + 10_000;
        assert_eq!(keys.expired(Timestamp(end - 1), retention), []);
        let expired = keys.expired(Timestamp(end), retention);
        assert_eq!(expired.iter().map(|key| key.number).collect::<Vec<_>>(), [old.key]);
        let numbers = BTreeSet::from([old.key, 12345]);
        assert_eq!(keys.destroy(&numbers, Timestamp(end)).unwrap(), 1);
        assert_eq!(keys.destroy(&numbers, Timestamp(end)).unwrap(), 0);
        for keys in [keys, open(&path)] {
            assert!(!is_readable(&keys, &old) && is_readable(&keys, &new) && is_readable(&keys, &other));
            assert_eq!(keys.destroyed_at(old.key), Some(Timestamp(end)));
            assert_eq!(keys.destroyed_at(new.key), None);
        }
        let keys = open(&path);
        assert_ne!(seal(&keys, "acme", 5).key, old.key, "a late message gets another key");
    }

    #[test]
    fn the_next_key_is_prepared_for_accounts_that_send() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("text.keys");
        let keys = open(&path);
        keys.prepare_next(Timestamp(5)).unwrap();
        assert_eq!(keys.list(), []);
        seal(&keys, "acme", 5);
        keys.prepare_next(Timestamp(5)).unwrap();
        keys.prepare_next(Timestamp(5)).unwrap();
        let from: Vec<u64> = keys.list().iter().map(|key| key.from.0).collect();
        assert_eq!(from, [0, DAY]);
        // A shorter period begins at the end of the last key's period.
        let keys = TextKeys::open(&path, RootKey::new(&[9; 32]), Duration::from_secs(7)).unwrap();
        keys.set_accounts([(PeerId(1), "acme".into(), true)], false);
        seal(&keys, "acme", 2 * DAY + 1);
        let last = keys.list().pop().unwrap();
        assert!(last.from.0 >= 2 * DAY && last.until.0 <= 2 * DAY + 7000, "{last:?}");
    }

    #[test]
    fn a_file_that_cannot_be_written_gives_an_error_and_no_text() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("missing").join("text.keys");
        let keys = open(&path);
        let message = (MessageId(1), Timestamp(5));
        let sealed = keys.seal_for_account("acme", message, ContentPart::ArchivedText, b"hello");
        assert!(sealed.unwrap_err().to_string().contains("cannot be written"));
        assert!(keys.failure().unwrap().contains("text.keys"));
        std::fs::create_dir(folder.path().join("missing")).unwrap();
        seal(&keys, "acme", 5);
        assert_eq!(keys.failure(), None);
    }
}
