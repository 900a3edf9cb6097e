use crate::{AddressGroup, Bucket};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::net::IpAddr;
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// A way in that checks passwords. Each has accounts of its own, so the same name at two of them is two accounts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Entrance {
    /// SMPP binds.
    Smpp,
    /// SGIP binds.
    Sgip,
    /// Calls of business systems: HTTP and XML-RPC.
    Business,
    /// Redis `AUTH`.
    Redis,
    /// Log-ins of admins.
    Admin,
}

impl Entrance {
    /// Wrong passwords of an account count together for so long, and shut it for as long. People choose weaker passwords
    /// than programs have, and need fewer tries.
    fn period(self) -> Duration {
        match self {
            Self::Admin => Duration::from_secs(300),
            Self::Smpp | Self::Sgip | Self::Business | Self::Redis => Duration::from_secs(60),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Smpp => "smpp",
            Self::Sgip => "sgip",
            Self::Business => "business",
            Self::Redis => "redis",
            Self::Admin => "admin",
        }
    }
}

/// How many wrong passwords shut whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoginLimits {
    /// Of one account from one address group, within a minute (five for admins); at least 1.
    pub account: u32,
    /// From one address group, whatever the accounts, within a minute; at least 1. Many customers may share an address, so
    /// this is much higher.
    pub address_group: u32,
}

impl Default for LoginLimits {
    fn default() -> Self {
        Self { account: 10, address_group: 100 }
    }
}

/// Too many wrong passwords: this one was not checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too many wrong passwords; try again in {} seconds", .wait.as_secs() + 1)]
pub struct TooManyWrong {
    /// Until the next password is checked.
    pub wait: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Key {
    /// A keyed hash of entrance and account, since names of strangers are as long as they like.
    Account(u64, AddressGroup),
    Group(AddressGroup),
}

#[derive(Debug)]
struct Count {
    wrong: u32,
    /// Passwords that are being checked.
    checking: u32,
    /// When the count of wrong ones begins anew.
    until: Instant,
    /// A password was right; until then the limit of the address group does not apply to this account.
    trusted: Option<Instant>,
}

impl Count {
    fn is_used(&self, now: Instant) -> bool {
        self.checking > 0 || self.until > now || self.is_trusted(now)
    }

    fn is_trusted(&self, now: Instant) -> bool {
        self.trusted.is_some_and(|until| until > now)
    }
}

enum Begun {
    Checking,
    /// As many checks are under way as may turn out wrong: one of them must end first.
    Full,
    Shut(TooManyWrong),
}

/// Limits wrong passwords, for all listeners together: first by account and address group, and at a much higher count by
/// address group alone.
///
/// A try is counted before its password is checked, so many at once are no way round the limit; those that might exceed it
/// wait for the others. An account whose password was right from an address group lately is not shut out from there
/// by the wrong passwords of others.
#[derive(Debug)]
pub struct LoginLimiter {
    limits: LoginLimits,
    counts: Mutex<FxHashMap<Key, Count>>,
    ended: Notify,
    hasher: RandomState,
    log: Mutex<Bucket>,
    /// Before a client that was refused unchecked is told: guessers mostly wait for the answer before the next try.
    delay: Duration,
}

/// A password that is being checked; wrong unless it is said to be right.
struct Checking<'a> {
    limiter: &'a LoginLimiter,
    keys: [Key; 2],
    period: Duration,
    entrance: Entrance,
    is_right: bool,
}

impl Drop for Checking<'_> {
    fn drop(&mut self) {
        self.limiter.end(self, Instant::now());
        self.limiter.ended.notify_waiters();
    }
}

impl Default for LoginLimiter {
    fn default() -> Self {
        Self::new(LoginLimits::default())
    }
}

impl LoginLimiter {
    const GROUP_PERIOD: Duration = Duration::from_secs(60);
    const TRUSTED: Duration = Duration::from_secs(24 * 3600);
    /// Counts that are kept; beyond it, those of strangers are forgotten first.
    const MOST: usize = 20_000;
    const DELAY: Duration = Duration::from_secs(1);

    /// A limiter with nothing counted.
    #[must_use]
    pub fn new(limits: LoginLimits) -> Self {
        let limits =
            LoginLimits { account: limits.account.max(1), address_group: limits.address_group.max(1) };
        Self {
            limits,
            counts: Mutex::default(),
            ended: Notify::new(),
            hasher: RandomState::new(),
            log: Mutex::new(Bucket::new(1.0, 20, Instant::now())),
            delay: Self::DELAY,
        }
    }

    /// Checks a password, unless there were too many wrong ones: whether it is right, as `check` says. A check that is
    /// dropped half-way counts as wrong. `account` is as the client names it, whether it exists or not.
    ///
    /// # Errors
    /// It was not checked; this takes a second to say.
    pub async fn check(
        &self,
        entrance: Entrance,
        account: &[u8],
        from: IpAddr,
        check: impl Future<Output = bool>,
    ) -> Result<bool, TooManyWrong> {
        let group = AddressGroup::of(from);
        let keys = [Key::Account(self.hasher.hash_one((entrance, account)), group), Key::Group(group)];
        let mut checking = loop {
            let ended = self.ended.notified();
            let mut ended = std::pin::pin!(ended);
            ended.as_mut().enable();
            match self.begin(keys, Instant::now()) {
                Begun::Checking => {
                    break Checking {
                        limiter: self,
                        keys,
                        period: entrance.period(),
                        entrance,
                        is_right: false,
                    };
                }
                Begun::Full => ended.await,
                Begun::Shut(shut) => {
                    tokio::time::sleep(self.delay).await;
                    return Err(shut);
                }
            }
        };
        checking.is_right = check.await;
        Ok(checking.is_right)
    }

    fn limit(&self, key: Key) -> u32 {
        match key {
            Key::Account(..) => self.limits.account,
            Key::Group(_) => self.limits.address_group,
        }
    }

    fn begin(&self, keys: [Key; 2], now: Instant) -> Begun {
        let mut counts = self.counts.lock();
        if counts.len() >= Self::MOST {
            counts.retain(|_, count| count.is_used(now));
            if counts.len() >= Self::MOST {
                counts.retain(|_, count| count.checking > 0 || count.is_trusted(now));
            }
            if counts.len() >= Self::MOST {
                counts.retain(|_, count| count.checking > 0);
            }
        }
        let is_trusted = counts.get(&keys[0]).is_some_and(|count| count.is_trusted(now));
        let mut is_full = false;
        for key in keys {
            let Some(count) = counts.get(&key) else { continue };
            if is_trusted && matches!(key, Key::Group(_)) {
                continue;
            }
            let wrong = if count.until > now { count.wrong } else { 0 };
            if wrong >= self.limit(key) {
                return Begun::Shut(TooManyWrong { wait: count.until.saturating_duration_since(now) });
            }
            is_full |= wrong + count.checking >= self.limit(key);
        }
        if is_full {
            return Begun::Full;
        }
        for key in keys {
            let new = Count { wrong: 0, checking: 0, until: now, trusted: None };
            counts.entry(key).or_insert(new).checking += 1;
        }
        Begun::Checking
    }

    fn end(&self, checking: &Checking<'_>, now: Instant) {
        let mut counts = self.counts.lock();
        for key in checking.keys {
            let Some(count) = counts.get_mut(&key) else { continue };
            count.checking = count.checking.saturating_sub(1);
            if checking.is_right {
                // Earlier wrong ones count on: else who calls all the time would make guesses of a neighbour free.
                if matches!(key, Key::Account(..)) {
                    count.trusted = Some(now + Self::TRUSTED);
                } else if !count.is_used(now) {
                    counts.remove(&key);
                }
                continue;
            }
            let (period, who) = match key {
                Key::Account(..) => (checking.period, "this account"),
                Key::Group(_) => (Self::GROUP_PERIOD, "all accounts that are not known from there"),
            };
            if count.until <= now {
                (count.wrong, count.until) = (0, now + period);
            }
            count.wrong += 1;
            if count.wrong == self.limit(key) {
                count.until = now + period;
                if self.log.lock().take(1, now) {
                    let (Key::Account(_, group) | Key::Group(group)) = key;
                    tracing::warn!(
                        listener = checking.entrance.name(),
                        from = %group,
                        wrong = count.wrong,
                        seconds = period.as_secs(),
                        "too many wrong passwords: {who} is refused unseen from this address"
                    );
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::{pending, ready};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

    const FEW: LoginLimits = LoginLimits { account: 3, address_group: 6 };

    fn limiter() -> LoginLimiter {
        LoginLimiter { delay: Duration::ZERO, ..LoginLimiter::new(FEW) }
    }

    /// A check of a password during which other tasks have their turn.
    async fn slow_check(is_right: bool) -> bool {
        for _ in 0..5 {
            tokio::task::yield_now().await;
        }
        is_right
    }

    async fn says(limiter: &LoginLimiter, account: &str, from: &str, is_right: bool) -> Result<bool, ()> {
        let from = from.parse().unwrap();
        limiter.check(Entrance::Smpp, account.as_bytes(), from, ready(is_right)).await.map_err(|_| ())
    }

    #[tokio::test]
    async fn wrong_passwords_of_one_account_shut_out_no_other_behind_the_same_address() {
        let limiter = limiter();
        for _ in 0..3 {
            assert_eq!(says(&limiter, "bad", "192.0.2.1", false).await, Ok(false));
        }
        assert_eq!(says(&limiter, "bad", "192.0.2.1", true).await, Err(()));
        assert_eq!(says(&limiter, "good", "192.0.2.1", true).await, Ok(true));
        // Nor the account from elsewhere.
        assert_eq!(says(&limiter, "bad", "192.0.2.2", true).await, Ok(true));
        let from = "192.0.2.1".parse().unwrap();
        assert_eq!(limiter.check(Entrance::Admin, b"bad", from, ready(true)).await, Ok(true));
    }

    #[tokio::test]
    async fn wrong_passwords_of_many_accounts_shut_an_address_group_but_for_those_known_there() {
        let limiter = limiter();
        assert_eq!(says(&limiter, "known", "2001:db8::1", true).await, Ok(true));
        for turn in 0..6 {
            let from = format!("2001:db8::{turn:x}");
            assert_eq!(says(&limiter, &format!("user-{turn}"), &from, false).await, Ok(false));
        }
        assert_eq!(says(&limiter, "another", "2001:db8::99", true).await, Err(()));
        assert_eq!(says(&limiter, "known", "2001:db8::77", true).await, Ok(true));
        assert_eq!(says(&limiter, "another", "2001:db8:0:1::1", true).await, Ok(true));
        for _ in 0..3 {
            assert_eq!(says(&limiter, "known", "2001:db8::1", false).await, Ok(false));
        }
        assert_eq!(says(&limiter, "known", "2001:db8::1", true).await, Err(()));
    }

    #[tokio::test]
    async fn parallel_tries_are_not_free() {
        let limiter = Arc::new(limiter());
        let checked = Arc::new(AtomicU32::new(0));
        let tries: Vec<_> = (0..50)
            .map(|_| {
                let (limiter, checked) = (limiter.clone(), checked.clone());
                tokio::spawn(async move {
                    let check = async {
                        checked.fetch_add(1, Relaxed);
                        slow_check(false).await
                    };
                    limiter.check(Entrance::Redis, b"a", "192.0.2.1".parse().unwrap(), check).await
                })
            })
            .collect();
        for attempt in tries {
            assert_ne!(attempt.await.unwrap(), Ok(true));
        }
        assert_eq!(checked.load(Relaxed), 3);
    }

    #[tokio::test]
    async fn many_right_passwords_at_once_wait_for_each_other_and_pass() {
        let limiter = Arc::new(limiter());
        let logins: Vec<_> = (0..50)
            .map(|_| {
                let limiter = limiter.clone();
                tokio::spawn(async move {
                    limiter.check(Entrance::Smpp, b"a", "192.0.2.1".parse().unwrap(), slow_check(true)).await
                })
            })
            .collect();
        for login in logins {
            assert_eq!(login.await.unwrap(), Ok(true));
        }
    }

    #[tokio::test]
    async fn a_check_that_is_left_half_way_counts() {
        let limiter = limiter();
        for _ in 0..3 {
            let check = limiter.check(Entrance::Smpp, b"a", "192.0.2.1".parse().unwrap(), pending());
            assert!(tokio::time::timeout(Duration::ZERO, check).await.is_err());
        }
        assert_eq!(says(&limiter, "a", "192.0.2.1", true).await, Err(()));
    }

    fn wrong(limiter: &LoginLimiter, account: u64, now: Instant) -> bool {
        let group = AddressGroup::of("192.0.2.1".parse().unwrap());
        let keys = [Key::Account(account, group), Key::Group(group)];
        if !matches!(limiter.begin(keys, now), Begun::Checking) {
            return false;
        }
        let (entrance, period) = (Entrance::Smpp, Entrance::Smpp.period());
        let checking = Checking { limiter, keys, period, entrance, is_right: false };
        limiter.end(&checking, now);
        std::mem::forget(checking);
        true
    }

    #[test]
    fn check_144_a_minute_of_silence_after_too_many_wrong_binds() {
        let limiter = limiter();
        let now = Instant::now();
        assert!((0..3).all(|_| wrong(&limiter, 1, now)));
        assert!(!wrong(&limiter, 1, now + Duration::from_secs(59)));
        assert!((0..3).all(|_| wrong(&limiter, 1, now + Duration::from_secs(60))));
    }

    #[test]
    fn what_is_remembered_of_strangers_is_bounded() {
        let limiter = LoginLimiter::new(LoginLimits { account: 1, address_group: u32::MAX });
        let now = Instant::now();
        for account in 0..3 * LoginLimiter::MOST as u64 {
            assert!(wrong(&limiter, account, now));
            assert!(limiter.counts.lock().len() <= LoginLimiter::MOST + 1);
        }
    }
}
