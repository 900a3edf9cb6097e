use crate::{AddressGroup, Protocol, RateLimiter};
use model::PeerId;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::net::IpAddr;
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// An interface that checks passwords.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LoginInterface {
    /// SMPP binds.
    Smpp,
    /// SGIP binds.
    Sgip,
    /// CMPP logins.
    Cmpp,
    /// SMGP logins.
    Smgp,
    /// Calls of business systems: HTTP and XML-RPC.
    Business,
    /// Redis `AUTH`.
    Redis,
    /// Logins of admins.
    Admin,
}

impl LoginInterface {
    /// The period in which wrong passwords of an account count together, and for which the account is then blocked.
    /// People choose weaker passwords than programs, and need fewer attempts.
    fn period(self) -> Duration {
        match self {
            Self::Admin => Duration::from_secs(300),
            Self::Smpp | Self::Sgip | Self::Cmpp | Self::Smgp | Self::Business | Self::Redis => {
                Duration::from_secs(60)
            }
        }
    }

    /// The interface's name in logs, and between nodes.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Smpp => "smpp",
            Self::Sgip => "sgip",
            Self::Cmpp => "cmpp",
            Self::Smgp => "smgp",
            Self::Business => "business",
            Self::Redis => "redis",
            Self::Admin => "admin",
        }
    }

    /// The protocol of its links; `None` if it has no links.
    #[must_use]
    pub fn link_protocol(self) -> Option<Protocol> {
        match self {
            Self::Smpp => Some(Protocol::Smpp),
            Self::Sgip => Some(Protocol::Sgip),
            Self::Cmpp => Some(Protocol::Cmpp),
            Self::Smgp => Some(Protocol::Smgp),
            Self::Business | Self::Redis | Self::Admin => None,
        }
    }
}

/// The limits of wrong passwords.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoginLimits {
    /// Wrong passwords of one account from one address group, within a minute (five minutes for admins); at least 1.
    pub account: u32,
    /// Wrong passwords of all accounts from one address group, within a minute; at least 1. Many customers may share
    /// an address, so this is much higher.
    pub address_group: u32,
}

impl Default for LoginLimits {
    fn default() -> Self {
        Self { account: 10, address_group: 100 }
    }
}

/// Too many wrong passwords: this password was not checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too many wrong passwords; try again in {} seconds", .wait.as_secs() + 1)]
pub struct LoginBlocked {
    /// The time until the next password is checked.
    pub wait: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Key {
    /// A keyed hash of the account, or of interface and name: a client may send names of any length.
    Account(u64, AddressGroup),
    Group(AddressGroup),
}

#[derive(Debug)]
struct Count {
    wrong: u32,
    /// Password checks in progress.
    checking: u32,
    /// The end of the counting period.
    until: Instant,
    /// A password was right. Until then the limit of the address group does not apply to this account.
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

enum Admission {
    Admitted,
    /// As many checks run as may still fail. One of them must end first.
    AtLimit,
    Blocked(LoginBlocked),
}

/// Limits wrong passwords over all listeners: by account and address group, and, with a much higher limit, by address
/// group alone.
///
/// An attempt is counted before its password is checked, so parallel attempts do not get around the limit; those that
/// might exceed it wait for the others. An account that has recently logged in from an address group is not blocked
/// there by wrong passwords of other accounts.
#[derive(Debug)]
pub struct LoginLimiter {
    limits: LoginLimits,
    counts: Mutex<FxHashMap<Key, Count>>,
    done_notify: Notify,
    hasher: RandomState,
    log: Mutex<RateLimiter>,
    /// The delay before a client learns that it is blocked. Most guessers wait for the answer before the next
    /// attempt.
    delay: Duration,
}

/// A password check in progress. It counts as wrong unless it is marked as right.
struct PendingCheck<'a> {
    limiter: &'a LoginLimiter,
    keys: [Key; 2],
    period: Duration,
    interface: LoginInterface,
    is_right: bool,
}

impl Drop for PendingCheck<'_> {
    fn drop(&mut self) {
        self.limiter.end(self, Instant::now());
        self.limiter.done_notify.notify_waiters();
    }
}

impl Default for LoginLimiter {
    fn default() -> Self {
        Self::new(LoginLimits::default())
    }
}

impl LoginLimiter {
    const GROUP_PERIOD: Duration = Duration::from_secs(60);
    const TRUST_PERIOD: Duration = Duration::from_secs(24 * 3600);
    /// The largest number of counters. Beyond it, counters of unknown clients are dropped first.
    const MAX_COUNTS: usize = 20_000;
    const REFUSAL_DELAY: Duration = Duration::from_secs(1);

    /// Creates a limiter without counters.
    #[must_use]
    pub fn new(limits: LoginLimits) -> Self {
        let limits =
            LoginLimits { account: limits.account.max(1), address_group: limits.address_group.max(1) };
        Self {
            limits,
            counts: Mutex::default(),
            done_notify: Notify::new(),
            hasher: RandomState::new(),
            log: Mutex::new(RateLimiter::new(1.0, 20, Instant::now())),
            delay: Self::REFUSAL_DELAY,
        }
    }

    /// Runs `check`, which returns whether the password is right, unless there were too many wrong passwords. A check
    /// that is dropped before its end counts as wrong. `account` is the account if several interfaces know it. Otherwise
    /// `name` counts, the name that the client sent, whether or not such an account exists; one name at two interfaces
    /// is two accounts.
    ///
    /// # Errors
    /// If the account is blocked. The error is returned after one second.
    pub async fn check(
        &self,
        interface: LoginInterface,
        account: Option<PeerId>,
        name: &[u8],
        from: IpAddr,
        check: impl Future<Output = bool>,
    ) -> Result<bool, LoginBlocked> {
        let group = AddressGroup::of(from);
        let account = match account {
            Some(account) => self.hasher.hash_one(account),
            None => self.hasher.hash_one((interface, name)),
        };
        let keys = [Key::Account(account, group), Key::Group(group)];
        let mut checking = loop {
            let done_notify = self.done_notify.notified();
            let mut done_notify = std::pin::pin!(done_notify);
            done_notify.as_mut().enable();
            match self.begin(keys, Instant::now()) {
                Admission::Admitted => {
                    break PendingCheck {
                        limiter: self,
                        keys,
                        period: interface.period(),
                        interface,
                        is_right: false,
                    };
                }
                Admission::AtLimit => done_notify.await,
                Admission::Blocked(shut) => {
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

    fn begin(&self, keys: [Key; 2], now: Instant) -> Admission {
        let mut counts = self.counts.lock();
        if counts.len() >= Self::MAX_COUNTS {
            counts.retain(|_, count| count.is_used(now));
            if counts.len() >= Self::MAX_COUNTS {
                counts.retain(|_, count| count.checking > 0 || count.is_trusted(now));
            }
            if counts.len() >= Self::MAX_COUNTS {
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
                return Admission::Blocked(LoginBlocked { wait: count.until.saturating_duration_since(now) });
            }
            is_full |= wrong + count.checking >= self.limit(key);
        }
        if is_full {
            return Admission::AtLimit;
        }
        for key in keys {
            let new = Count { wrong: 0, checking: 0, until: now, trusted: None };
            counts.entry(key).or_insert(new).checking += 1;
        }
        Admission::Admitted
    }

    fn end(&self, checking: &PendingCheck<'_>, now: Instant) {
        let mut counts = self.counts.lock();
        for key in checking.keys {
            let Some(count) = counts.get_mut(&key) else { continue };
            count.checking = count.checking.saturating_sub(1);
            if checking.is_right {
                // Earlier wrong passwords still count: otherwise an account that logs in often would allow its
                // neighbours unlimited guesses.
                if matches!(key, Key::Account(..)) {
                    count.trusted = Some(now + Self::TRUST_PERIOD);
                } else if !count.is_used(now) {
                    counts.remove(&key);
                }
                continue;
            }
            let (period, scope) = match key {
                Key::Account(..) => (checking.period, "account"),
                Key::Group(_) => (Self::GROUP_PERIOD, "address"),
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
                        interface = checking.interface.name(),
                        scope,
                        from = %group,
                        wrong = count.wrong,
                        seconds = period.as_secs(),
                        "login blocked: too many wrong passwords"
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

    /// A password check during which other tasks run.
    async fn slow_check(is_right: bool) -> bool {
        for _ in 0..5 {
            tokio::task::yield_now().await;
        }
        is_right
    }

    async fn try_login(
        limiter: &LoginLimiter,
        account: &str,
        from: &str,
        is_right: bool,
    ) -> Result<bool, ()> {
        let from = from.parse().unwrap();
        limiter
            .check(LoginInterface::Smpp, None, account.as_bytes(), from, ready(is_right))
            .await
            .map_err(|_| ())
    }

    #[tokio::test]
    async fn wrong_passwords_of_one_account_block_no_other_account_at_the_address() {
        let limiter = limiter();
        for _ in 0..3 {
            assert_eq!(try_login(&limiter, "bad", "192.0.2.1", false).await, Ok(false));
        }
        assert_eq!(try_login(&limiter, "bad", "192.0.2.1", true).await, Err(()));
        assert_eq!(try_login(&limiter, "good", "192.0.2.1", true).await, Ok(true));
        // The account is not blocked elsewhere either.
        assert_eq!(try_login(&limiter, "bad", "192.0.2.2", true).await, Ok(true));
        let from = "192.0.2.1".parse().unwrap();
        assert_eq!(limiter.check(LoginInterface::Admin, None, b"bad", from, ready(true)).await, Ok(true));
    }

    #[tokio::test]
    async fn wrong_passwords_of_many_accounts_block_the_address_group_except_trusted_accounts() {
        let limiter = limiter();
        assert_eq!(try_login(&limiter, "known", "2001:db8::1", true).await, Ok(true));
        for turn in 0..6 {
            let from = format!("2001:db8::{turn:x}");
            assert_eq!(try_login(&limiter, &format!("user-{turn}"), &from, false).await, Ok(false));
        }
        assert_eq!(try_login(&limiter, "another", "2001:db8::99", true).await, Err(()));
        assert_eq!(try_login(&limiter, "known", "2001:db8::77", true).await, Ok(true));
        assert_eq!(try_login(&limiter, "another", "2001:db8:0:1::1", true).await, Ok(true));
        for _ in 0..3 {
            assert_eq!(try_login(&limiter, "known", "2001:db8::1", false).await, Ok(false));
        }
        assert_eq!(try_login(&limiter, "known", "2001:db8::1", true).await, Err(()));
    }

    #[tokio::test]
    async fn parallel_attempts_are_counted() {
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
                    limiter
                        .check(LoginInterface::Redis, None, b"a", "192.0.2.1".parse().unwrap(), check)
                        .await
                })
            })
            .collect();
        for attempt in tries {
            assert_ne!(attempt.await.unwrap(), Ok(true));
        }
        assert_eq!(checked.load(Relaxed), 3);
    }

    #[tokio::test]
    async fn parallel_right_passwords_all_pass() {
        let limiter = Arc::new(limiter());
        let logins: Vec<_> = (0..50)
            .map(|_| {
                let limiter = limiter.clone();
                tokio::spawn(async move {
                    limiter
                        .check(
                            LoginInterface::Smpp,
                            None,
                            b"a",
                            "192.0.2.1".parse().unwrap(),
                            slow_check(true),
                        )
                        .await
                })
            })
            .collect();
        for login in logins {
            assert_eq!(login.await.unwrap(), Ok(true));
        }
    }

    #[tokio::test]
    async fn a_cancelled_check_counts_as_wrong() {
        let limiter = limiter();
        for _ in 0..3 {
            let check =
                limiter.check(LoginInterface::Smpp, None, b"a", "192.0.2.1".parse().unwrap(), pending());
            assert!(tokio::time::timeout(Duration::ZERO, check).await.is_err());
        }
        assert_eq!(try_login(&limiter, "a", "192.0.2.1", true).await, Err(()));
    }

    fn try_wrong_password(limiter: &LoginLimiter, account: u64, now: Instant) -> bool {
        let group = AddressGroup::of("192.0.2.1".parse().unwrap());
        let keys = [Key::Account(account, group), Key::Group(group)];
        if !matches!(limiter.begin(keys, now), Admission::Admitted) {
            return false;
        }
        let (interface, period) = (LoginInterface::Smpp, LoginInterface::Smpp.period());
        let checking = PendingCheck { limiter, keys, period, interface, is_right: false };
        limiter.end(&checking, now);
        std::mem::forget(checking);
        true
    }

    #[test]
    fn check_144_an_account_is_blocked_for_a_minute() {
        let limiter = limiter();
        let now = Instant::now();
        assert!((0..3).all(|_| try_wrong_password(&limiter, 1, now)));
        assert!(!try_wrong_password(&limiter, 1, now + Duration::from_secs(59)));
        assert!((0..3).all(|_| try_wrong_password(&limiter, 1, now + Duration::from_secs(60))));
    }

    #[test]
    fn the_number_of_counters_is_bounded() {
        let limiter = LoginLimiter::new(LoginLimits { account: 1, address_group: u32::MAX });
        let now = Instant::now();
        for account in 0..3 * LoginLimiter::MAX_COUNTS as u64 {
            assert!(try_wrong_password(&limiter, account, now));
            assert!(limiter.counts.lock().len() <= LoginLimiter::MAX_COUNTS + 1);
        }
    }
}
