//! Login sessions, in memory only: a restart ends all sessions.

use crate::secret::{self, SecretHash};
use crate::{AccessError, Caller};
use model::{Moment, Now, Timestamp};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use std::time::Duration;

/// Maximum lifetime of a session.
const MAX_LIFETIME: Duration = Duration::from_secs(12 * 3600);
/// Idle timeout of a session.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30 * 60);
/// Maximum sessions of one principal. A further session replaces the least recently used one.
const MAX_PER_PRINCIPAL: usize = 32;
/// Maximum sessions in all.
const MAX_SESSIONS: usize = 10_000;

/// The authenticated identity of a session or a token.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Principal {
    /// The root token of the data directory.
    RootToken,
    /// A user, by name.
    User(Arc<str>),
    /// A named token.
    Token(Arc<str>),
}

/// A session that has just been opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSession {
    /// The session's secret: the value of the cookie.
    pub secret: String,
    /// The CSRF token that requests with side effects must send in the header `Switchyard-CSRF`.
    pub csrf: String,
    /// The latest time of expiry.
    pub until: Timestamp,
}

/// A session, as found by its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// The owner.
    pub principal: Principal,
    /// The current caller of the owner.
    pub caller: Caller,
    /// The latest time of expiry.
    pub until: Timestamp,
    csrf: Arc<str>,
}

impl Session {
    pub(crate) fn new(principal: Principal, caller: Caller, until: Timestamp, csrf: Arc<str>) -> Self {
        Self { principal, caller, until, csrf }
    }

    /// Compares a CSRF token with the session's token, in constant time.
    #[must_use]
    pub fn csrf_matches(&self, csrf: &str) -> bool {
        secret::constant_time_eq(&self.csrf, csrf)
    }

    /// The CSRF token, for pages that send requests with side effects.
    #[must_use]
    pub fn csrf(&self) -> &str {
        &self.csrf
    }
}

#[derive(Debug)]
struct SessionRecord {
    principal: Principal,
    csrf: Arc<str>,
    end: Moment,
    until: Timestamp,
    used: Moment,
}

impl SessionRecord {
    fn is_expired(&self, now: Moment) -> bool {
        now >= self.end || now.0.saturating_sub(self.used.0) >= millis(IDLE_TIMEOUT)
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[derive(Debug, Default)]
pub(crate) struct Sessions {
    open: Mutex<FxHashMap<SecretHash, SessionRecord>>,
}

impl Sessions {
    /// Opens a session. Calls `is_current` with the sessions locked, and opens none if it returns false: the user has changed
    /// since the password was verified.
    pub(crate) fn open(
        &self,
        principal: Principal,
        now: Now,
        is_current: impl FnOnce() -> bool,
    ) -> Result<Option<NewSession>, AccessError> {
        let (secret, csrf) = (secret::generate()?, secret::generate()?);
        let until = Timestamp(now.wall.0.saturating_add(millis(MAX_LIFETIME)));
        let record = SessionRecord {
            principal,
            csrf: csrf.as_str().into(),
            end: Moment(now.mono.0.saturating_add(millis(MAX_LIFETIME))),
            until,
            used: now.mono,
        };
        let mut open = self.open.lock();
        if !is_current() {
            return Ok(None);
        }
        open.retain(|_, record| !record.is_expired(now.mono));
        let own_sessions = open.values().filter(|other| other.principal == record.principal).count();
        if own_sessions >= MAX_PER_PRINCIPAL {
            evict_oldest(&mut open, |other| other.principal == record.principal);
        } else if open.len() >= MAX_SESSIONS {
            evict_oldest(&mut open, |_| true);
        }
        open.insert(secret::hash(&secret), record);
        Ok(Some(NewSession { secret, csrf, until }))
    }

    /// The session of a secret. `uses`: whether this counts as a use.
    pub(crate) fn find(
        &self,
        secret: &str,
        now: Now,
        uses: bool,
    ) -> Option<(Principal, Timestamp, Arc<str>)> {
        let hash = secret::hash(secret);
        let mut open = self.open.lock();
        let record = open.get_mut(&hash)?;
        if record.is_expired(now.mono) {
            open.remove(&hash);
            return None;
        }
        if uses {
            record.used = now.mono;
        }
        Some((record.principal.clone(), record.until, record.csrf.clone()))
    }

    pub(crate) fn close(&self, secret: &str) -> bool {
        self.open.lock().remove(&secret::hash(secret)).is_some()
    }

    /// Ends all sessions of a principal except the session with this secret.
    pub(crate) fn close_all(&self, principal: &Principal, except: Option<&str>) {
        let except = except.map(secret::hash);
        self.open.lock().retain(|hash, record| record.principal != *principal || Some(*hash) == except);
    }
}

fn evict_oldest(open: &mut FxHashMap<SecretHash, SessionRecord>, of: impl Fn(&SessionRecord) -> bool) {
    let oldest = open.iter().filter(|(_, record)| of(record)).min_by_key(|(_, record)| record.used);
    if let Some(hash) = oldest.map(|(hash, _)| *hash) {
        open.remove(&hash);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(minutes: u64) -> Now {
        let ms = minutes * 60_000;
        Now { wall: Timestamp(1_000_000 + ms), mono: Moment(5 + ms) }
    }

    #[test]
    fn session_expires_when_idle_and_after_twelve_hours() {
        let sessions = Sessions::default();
        let open = |now| sessions.open(Principal::RootToken, now, || true).unwrap().unwrap();
        let idle = open(at(0));
        assert!(sessions.find(&idle.secret, at(29), true).is_some());
        assert!(sessions.find(&idle.secret, at(58), true).is_some());
        assert!(sessions.find(&idle.secret, at(88), true).is_none());
        assert!(sessions.find(&idle.secret, at(88), true).is_none(), "an expired session stays expired");
        let watched = open(at(0));
        assert!(sessions.find(&watched.secret, at(29), false).is_some());
        assert!(sessions.find(&watched.secret, at(31), false).is_none(), "peeking is no use of the session");
        let busy = open(at(0));
        for minute in (0..720).step_by(20) {
            assert!(sessions.find(&busy.secret, at(minute), true).is_some(), "{minute}");
        }
        assert!(sessions.find(&busy.secret, at(720), true).is_none());
    }

    #[test]
    fn session_limit_is_per_user() {
        let sessions = Sessions::default();
        let other = sessions.open(Principal::User("bob".into()), at(0), || true).unwrap().unwrap();
        let ann: Vec<_> = (0..40)
            .map(|minute| {
                sessions.open(Principal::User("ann".into()), at(minute / 10), || true).unwrap().unwrap()
            })
            .collect();
        assert!(sessions.find(&other.secret, at(5), true).is_some());
        let alive = ann.iter().filter(|opened| sessions.find(&opened.secret, at(5), true).is_some()).count();
        assert_eq!(alive, MAX_PER_PRINCIPAL);
        sessions.close_all(&Principal::User("ann".into()), Some(&ann[39].secret));
        let alive: Vec<_> =
            ann.iter().filter(|opened| sessions.find(&opened.secret, at(5), true).is_some()).collect();
        assert_eq!(alive, [&ann[39]]);
        assert!(sessions.close(&other.secret) && !sessions.close(&other.secret));
    }

    #[test]
    fn changed_user_gets_no_session() {
        let sessions = Sessions::default();
        assert_eq!(sessions.open(Principal::User("ann".into()), at(0), || false).unwrap(), None);
    }
}
