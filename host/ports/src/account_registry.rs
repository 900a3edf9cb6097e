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

/// The limits of one account, shared by all protocols that it uses.
#[derive(Debug)]
pub struct AccountLimits {
    peer: PeerId,
    /// The rate and burst as configured, and the bucket.
    rate: Mutex<Option<(f64, u32, RateLimiter)>>,
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

    /// Takes `count` messages (or segments) from the account's rate, or none.
    pub fn take(&self, count: u32, now: Instant) -> bool {
        self.rate.lock().as_mut().is_none_or(|(_, _, limiter)| limiter.take(count, now))
    }

    /// Every protocol passes the settings; equal settings leave the bucket's state as it is.
    fn set_rate(&self, settings: Option<(f64, u32)>, now: Instant) {
        let mut state = self.rate.lock();
        let known = state.as_ref().map(|(rate, burst, _)| (*rate, *burst));
        if known != settings {
            *state = settings.map(|(rate, burst)| (rate, burst, RateLimiter::new(rate, burst, now)));
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
    /// reconnects (sheet §2.3).
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
                if permit.is_some() || self.all_heard_since(started) {
                    return permit;
                }
                sessions_changed.await;
            }
        };
        // A session without a sign of life closes when its time is up, which takes a moment too.
        tokio::time::timeout(request.timeout + Duration::from_secs(1), wait).await.ok().flatten()
    }

    fn all_heard_since(&self, moment: Instant) -> bool {
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
}

impl AccountRegistry {
    /// Creates a registry without accounts, with the limiter of wrong passwords of all interfaces.
    #[must_use]
    pub fn new(limiter: Arc<LoginLimiter>) -> Self {
        Self { limiter, accounts: Mutex::default() }
    }

    /// Sets the rate of an account and returns its limits: messages a second (`None`: no limit), and the burst. The
    /// number of its sessions is not limited until [`AccountLimits::set_sessions`].
    pub fn set(&self, account: PeerId, rate: Option<f64>, burst: u32, now: Instant) -> Arc<AccountLimits> {
        let new = || AccountLimits {
            peer: account,
            rate: Mutex::new(None),
            sessions: Mutex::new((usize::MAX, Vec::new())),
            sessions_changed: Notify::new(),
        };
        let limits = self.accounts.lock().entry(account).or_insert_with(|| Arc::new(new())).clone();
        limits.set_rate(rate.map(|rate| (rate, burst)), now);
        limits
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
