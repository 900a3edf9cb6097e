//! The accounts of all protocols: one rate, one number of sessions and one limit of wrong passwords for each.

use crate::link::{LinkControl, LinkRecord};
use crate::{
    IpNetwork, LoginBlocked, LoginInterface, LoginLimiter, PasswordVerifier, Protocol, RateLimiter, clock,
};
use model::PeerId;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio::sync::mpsc::UnboundedSender;

/// A login to check.
#[derive(Clone, Copy, Debug)]
pub struct LoginAttempt<'a> {
    /// The interface.
    pub interface: LoginInterface,
    /// The name that the client sent.
    pub name: &'a [u8],
    /// The password that it sent.
    pub password: &'a [u8],
    /// Its address.
    pub remote: IpAddr,
}

/// The secret of an account.
#[derive(Clone, Copy, Debug)]
pub enum LoginSecret<'a> {
    /// The argon2 hash of its password, in PHC form.
    Hash(&'a str),
    /// The front end has compared the secret itself, for instance a digest of it: whether it is right.
    Compared(bool),
}

/// The account that a login names.
#[derive(Clone, Copy, Debug)]
pub struct LoginAccount<'a> {
    /// The account, if it is known to other protocols too: its wrong passwords count together.
    pub account: Option<PeerId>,
    /// The networks that it may log in from; empty: any.
    pub networks: &'a [IpNetwork],
    /// Its secret.
    pub secret: LoginSecret<'a>,
}

/// A refused login. Clients get one answer for all reasons, after the same time; the reason is for the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoginRefused {
    /// The name is unknown, or the password is wrong.
    WrongPassword,
    /// The account may not log in from this address.
    WrongNetwork,
    /// There were too many wrong passwords.
    Blocked(LoginBlocked),
}

impl LoginRefused {
    /// The reason as text, for the log.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::WrongPassword => "unknown name or wrong password",
            Self::WrongNetwork => "the account may not log in from this address",
            Self::Blocked(_) => "too many wrong passwords for this account from its address",
        }
    }
}

/// A request for one of the sessions of an account.
#[derive(Clone, Copy, Debug)]
pub struct SessionRequest<'a> {
    /// The account.
    pub limits: &'a Arc<AccountLimits>,
    /// The account's name.
    pub name: &'a str,
    /// The protocol.
    pub protocol: Protocol,
    /// Sessions of the account over this protocol.
    pub limit: usize,
    /// Whether the session can be asked for a sign of life; see [`LinkControl::ProveAlive`].
    pub can_prove_alive: bool,
    /// The time for the decision.
    pub timeout: Duration,
}

#[derive(Debug)]
struct SessionEntry {
    protocol: Protocol,
    record: Arc<LinkRecord>,
    control: UnboundedSender<LinkControl>,
    can_prove_alive: bool,
}

/// The rates that a submission of an account passes.
#[derive(Debug, Default)]
struct AccountRates {
    /// The account's own.
    own: Option<ConfiguredRate>,
    /// The limits of its tenant and of the tenants above it, from the account up.
    tenants: Vec<Arc<Mutex<ConfiguredRate>>>,
}

/// A rate and burst as configured, and the bucket.
#[derive(Debug)]
struct ConfiguredRate {
    rate: f64,
    burst: u32,
    limiter: RateLimiter,
}

impl ConfiguredRate {
    fn new(rate: f64, burst: u32, now: Instant) -> Self {
        Self { rate, burst, limiter: RateLimiter::new(rate, burst, now) }
    }

    /// Equal settings leave the bucket's state as it is.
    fn set(&mut self, rate: f64, burst: u32, now: Instant) {
        if (self.rate, self.burst) != (rate, burst) {
            *self = Self::new(rate, burst, now);
        }
    }
}

/// The rate of a tenant, which the sum of its branch keeps to.
#[derive(Debug, Clone, PartialEq)]
pub struct TenantRate {
    /// The tenant.
    pub tenant: Arc<str>,
    /// Messages (or segments) a second.
    pub rate: f64,
    /// The maximum burst.
    pub burst: u32,
}

/// The limits of one account, shared by all protocols that it uses.
#[derive(Debug)]
pub struct AccountLimits {
    peer: PeerId,
    rates: Mutex<AccountRates>,
    sessions: Mutex<(usize, Vec<SessionEntry>)>,
    /// A session has ended, or has shown a sign of life.
    sessions_changed: Notify,
}

/// A permit for one session of an account, released when it is dropped.
#[derive(Debug)]
pub struct SessionPermit {
    limits: Arc<AccountLimits>,
    record: Arc<LinkRecord>,
}

impl Drop for SessionPermit {
    fn drop(&mut self) {
        self.limits.sessions.lock().1.retain(|entry| !Arc::ptr_eq(&entry.record, &self.record));
        self.limits.sessions_changed.notify_waiters();
    }
}

impl SessionPermit {
    /// Reports that the session has shown the sign of life that was requested.
    pub(crate) fn report_alive(&self) {
        self.limits.sessions_changed.notify_waiters();
    }
}

impl AccountLimits {
    /// The account.
    #[must_use]
    pub fn peer(&self) -> PeerId {
        self.peer
    }

    /// Takes `count` messages (or segments) from the account's rate and from those of its tenants; from all, or from none.
    pub fn take(&self, count: u32, now: Instant) -> bool {
        let rates = &mut *self.rates.lock();
        let own = rates.own.as_mut().map(|own| &mut own.limiter);
        if rates.tenants.is_empty() {
            return own.is_none_or(|own| own.take(count, now));
        }
        // Always from the account up, so that two accounts cannot wait for each other.
        let mut tenants: Vec<_> = rates.tenants.iter().map(|tenant| tenant.lock()).collect();
        let tenants = tenants.iter_mut().map(|tenant| &mut tenant.limiter);
        let mut limiters: Vec<&mut RateLimiter> = own.into_iter().chain(tenants).collect();
        limiters.iter_mut().all(|limiter| limiter.has(count, now))
            && limiters.iter_mut().all(|limiter| limiter.take(count, now))
    }

    /// Every protocol passes the settings; equal settings leave the bucket's state as it is.
    fn set_rate(&self, settings: Option<(f64, u32)>, now: Instant) {
        let own = &mut self.rates.lock().own;
        match (own.as_mut(), settings) {
            (Some(own), Some((rate, burst))) => own.set(rate, burst, now),
            (_, settings) => *own = settings.map(|(rate, burst)| ConfiguredRate::new(rate, burst, now)),
        }
    }

    /// Sets the limit of sessions over all protocols. Existing sessions stay.
    pub fn set_sessions(&self, sessions: usize) {
        self.sessions.lock().0 = sessions;
    }

    /// Closes the sessions of the account over a protocol, or over all; they have until `until`.
    pub fn close_sessions(&self, protocol: Option<Protocol>, until: Instant) {
        for entry in &self.sessions.lock().1 {
            if protocol.is_none_or(|protocol| protocol == entry.protocol) {
                let _ = entry.control.send(LinkControl::Close(until));
            }
        }
    }

    fn try_acquire_session(
        self: &Arc<Self>,
        request: &SessionRequest<'_>,
        record: &Arc<LinkRecord>,
        control: &UnboundedSender<LinkControl>,
    ) -> Option<SessionPermit> {
        let (limit, sessions) = &mut *self.sessions.lock();
        let same = sessions.iter().filter(|entry| entry.protocol == request.protocol).count();
        if sessions.len() >= *limit || same >= request.limit {
            return None;
        }
        sessions.push(SessionEntry {
            protocol: request.protocol,
            record: record.clone(),
            control: control.clone(),
            can_prove_alive: request.can_prove_alive,
        });
        Some(SessionPermit { limits: self.clone(), record: record.clone() })
    }

    /// Acquires a session permit. If all are taken, every session must show a sign of life within the timeout. A
    /// session that does not is closed, and its permit is free: it is the half-open remainder of a client that
    /// reconnects.
    pub(crate) async fn acquire_session(
        self: &Arc<Self>,
        request: &SessionRequest<'_>,
        record: &Arc<LinkRecord>,
        control: &UnboundedSender<LinkControl>,
    ) -> Option<SessionPermit> {
        if let Some(permit) = self.try_acquire_session(request, record, control) {
            return Some(permit);
        }
        let started = clock::now();
        for entry in self.sessions.lock().1.iter().filter(|entry| entry.can_prove_alive) {
            let _ = entry.control.send(LinkControl::ProveAlive(started + request.timeout));
        }
        let wait = async {
            loop {
                let mut sessions_changed = pin!(self.sessions_changed.notified());
                sessions_changed.as_mut().enable();
                let permit = self.try_acquire_session(request, record, control);
                if permit.is_some() || self.all_active_since(started) {
                    return permit;
                }
                sessions_changed.await;
            }
        };
        // A session without a sign of life closes when its time is up, which takes a moment too.
        tokio::time::timeout(request.timeout + Duration::from_secs(1), wait).await.ok().flatten()
    }

    fn all_active_since(&self, moment: Instant) -> bool {
        let now = clock::now();
        let since = now.saturating_duration_since(moment);
        let sessions = self.sessions.lock();
        let mut asked = sessions.1.iter().filter(|entry| entry.can_prove_alive);
        asked.all(|entry| entry.record.silent_for(now) <= since)
    }
}

/// The accounts of all protocols.
#[derive(Debug, Default)]
pub struct AccountRegistry {
    limiter: Arc<LoginLimiter>,
    accounts: Mutex<HashMap<PeerId, Arc<AccountLimits>>>,
    tenants: Mutex<HashMap<Arc<str>, Arc<Mutex<ConfiguredRate>>>>,
}

impl AccountRegistry {
    /// Creates a registry without accounts, with the limiter of wrong passwords of all interfaces.
    #[must_use]
    pub fn new(limiter: Arc<LoginLimiter>) -> Self {
        Self { limiter, ..Self::default() }
    }

    /// Sets the rate of an account and returns its limits: messages a second (`None`: no limit), and the burst. The
    /// number of its sessions is not limited until [`AccountLimits::set_sessions`].
    pub fn set(&self, account: PeerId, rate: Option<f64>, burst: u32, now: Instant) -> Arc<AccountLimits> {
        let limits = self.limits_of(account);
        limits.set_rate(rate.map(|rate| (rate, burst)), now);
        limits
    }

    fn limits_of(&self, account: PeerId) -> Arc<AccountLimits> {
        let new = || AccountLimits {
            peer: account,
            rates: Mutex::default(),
            sessions: Mutex::new((usize::MAX, Vec::new())),
            sessions_changed: Notify::new(),
        };
        self.accounts.lock().entry(account).or_insert_with(|| Arc::new(new())).clone()
    }

    /// Sets the rates of tenants. `accounts`: all accounts that belong to a tenant, each with its tenant and the tenants above
    /// it, from itself up. Other accounts pass no rate of a tenant.
    pub fn set_tenants(
        &self,
        rates: &[TenantRate],
        accounts: impl IntoIterator<Item = (PeerId, Vec<Arc<str>>)>,
        now: Instant,
    ) {
        let mut tenants = self.tenants.lock();
        tenants.retain(|name, _| rates.iter().any(|rate| rate.tenant == *name));
        for TenantRate { tenant, rate, burst } in rates {
            let new = || Arc::new(Mutex::new(ConfiguredRate::new(*rate, *burst, now)));
            tenants.entry(tenant.clone()).or_insert_with(new).lock().set(*rate, *burst, now);
        }
        let lines: HashMap<PeerId, Vec<_>> = accounts
            .into_iter()
            .map(|(account, line)| {
                (account, line.iter().filter_map(|name| tenants.get(name).cloned()).collect())
            })
            .collect();
        for account in lines.keys() {
            self.limits_of(*account);
        }
        for (account, limits) in &*self.accounts.lock() {
            limits.rates.lock().tenants = lines.get(account).cloned().unwrap_or_default();
        }
    }

    /// Checks a login. The attempt counts before its password is checked. An unknown name, a wrong password and a
    /// wrong network take the same time; `any_hash` is verified where there is no account.
    ///
    /// # Errors
    /// If the login is refused.
    pub async fn authenticate(
        &self,
        verifier: &PasswordVerifier,
        attempt: &LoginAttempt<'_>,
        account: Option<LoginAccount<'_>>,
        any_hash: Option<&str>,
    ) -> Result<(), LoginRefused> {
        let is_allowed_network = account.is_none_or(|account| {
            let networks = account.networks;
            networks.is_empty() || networks.iter().any(|network| network.contains(attempt.remote))
        });
        let secret = account.map(|account| account.secret);
        let check = async {
            let hash = match secret {
                Some(LoginSecret::Compared(true)) if is_allowed_network => return true,
                Some(LoginSecret::Hash(hash)) if is_allowed_network => {
                    return verifier.verify(hash, attempt.password, clock::now()).await;
                }
                Some(LoginSecret::Hash(hash)) => Some(hash),
                Some(LoginSecret::Compared(_)) | None => any_hash,
            };
            verifier.refuse(hash, attempt.password).await
        };
        let subject = account.and_then(|account| account.account);
        match self.limiter.check(attempt.interface, subject, attempt.name, attempt.remote, check).await {
            Ok(true) => Ok(()),
            Ok(false) if !is_allowed_network => Err(LoginRefused::WrongNetwork),
            Ok(false) => Err(LoginRefused::WrongPassword),
            Err(blocked) => Err(LoginRefused::Blocked(blocked)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::LinkRole;
    use tokio::sync::mpsc::unbounded_channel;

    #[test]
    fn the_protocols_of_an_account_share_its_rate() {
        let (registry, start) = (AccountRegistry::default(), Instant::now());
        let smpp = registry.set(PeerId(1), Some(1.0), 2, start);
        assert!(smpp.take(1, start));
        let http = registry.set(PeerId(1), Some(1.0), 2, start);
        assert!(http.take(1, start));
        assert!(!smpp.take(1, start) && !http.take(1, start), "two in all");
        assert!(registry.set(PeerId(2), Some(1.0), 2, start).take(1, start), "another account's");
        // A change applies to both protocols.
        registry.set(PeerId(1), Some(1.0), 5, start);
        assert!(http.take(4, start) && smpp.take(1, start) && !http.take(1, start));
        registry.set(PeerId(1), None, 1, start);
        assert!(smpp.take(1000, start) && http.take(1000, start));
    }

    #[test]
    fn the_branch_of_a_tenant_shares_its_rate_all_or_nothing() {
        let (registry, start) = (AccountRegistry::default(), Instant::now());
        let rate = |tenant: &str, burst| TenantRate { tenant: tenant.into(), rate: 1.0, burst };
        let line = |names: &[&str]| names.iter().map(|name| Arc::from(*name)).collect::<Vec<_>>();
        let accounts = || {
            [
                (PeerId(1), line(&["shop", "north"])),
                (PeerId(2), line(&["north"])),
                (PeerId(3), line(&["south"])),
            ]
        };
        registry.set_tenants(&[rate("north", 5), rate("shop", 2)], accounts(), start);
        let [shop, direct, bank] = [1, 2, 3].map(|peer| registry.set(PeerId(peer), None, 1, start));
        assert!(shop.take(2, start) && !shop.take(1, start), "the tenant's own rate");
        assert!(!direct.take(4, start), "two of five are gone");
        assert!(direct.take(3, start), "a refusal takes nothing");
        assert!(!direct.take(1, start) && bank.take(1_000, start));
        // What was taken stays taken over a change of other settings, and a removed rate limits nobody.
        registry.set_tenants(&[rate("north", 5)], accounts(), start);
        assert!(!shop.take(1, start) && !direct.take(1, start));
        registry.set_tenants(&[], accounts(), start);
        assert!(shop.take(1_000, start) && direct.take(1_000, start));
        // A refusal by a tenant takes nothing from the account's own rate.
        registry.set_tenants(&[rate("north", 1)], accounts(), start);
        let own = registry.set(PeerId(1), Some(1.0), 2, start);
        assert!(direct.take(1, start) && !own.take(1, start));
        registry.set_tenants(&[], accounts(), start);
        assert!(own.take(2, start) && !own.take(1, start));
    }

    #[tokio::test]
    async fn the_protocols_of_an_account_share_its_sessions() {
        let limits = AccountRegistry::default().set(PeerId(1), None, 1, Instant::now());
        limits.set_sessions(2);
        let acquire = async |protocol, limit| {
            let record = LinkRecord::new(LinkRole::Server, PeerId(1), "acme", 0, false);
            let (control, _receiver) = unbounded_channel();
            let request = SessionRequest {
                limits: &limits,
                name: "acme",
                protocol,
                limit,
                can_prove_alive: false,
                timeout: Duration::ZERO,
            };
            limits.acquire_session(&request, &record, &control).await
        };
        let first = acquire(Protocol::Sgip, 1).await.unwrap();
        assert!(acquire(Protocol::Sgip, 1).await.is_none(), "the limit of the protocol");
        let _second = acquire(Protocol::Smpp, 10).await.unwrap();
        assert!(acquire(Protocol::Smpp, 10).await.is_none(), "the limit of the account");
        drop(first);
        assert!(acquire(Protocol::Smpp, 10).await.is_some());
    }

    #[tokio::test]
    async fn the_protocols_of_an_account_share_its_wrong_passwords() {
        let limiter = Arc::new(LoginLimiter::new(crate::LoginLimits { account: 2, address_group: 100 }));
        let registry = AccountRegistry::new(limiter);
        let verifier = PasswordVerifier::new(1).unwrap();
        let try_login = async |interface, name: &'static str, is_right| {
            let remote = "2001:db8::1".parse().unwrap();
            let attempt = LoginAttempt { interface, name: name.as_bytes(), password: b"x", remote };
            let secret = LoginSecret::Compared(is_right);
            let account = LoginAccount { account: Some(PeerId(1)), networks: &[], secret };
            registry.authenticate(&verifier, &attempt, Some(account), None).await
        };
        assert_eq!(try_login(LoginInterface::Smpp, "acme", false).await, Err(LoginRefused::WrongPassword));
        assert_eq!(try_login(LoginInterface::Sgip, "901234", false).await, Err(LoginRefused::WrongPassword));
        let blocked = try_login(LoginInterface::Business, "shop", true).await;
        assert!(matches!(blocked, Err(LoginRefused::Blocked(_))), "{blocked:?}");
    }
}
