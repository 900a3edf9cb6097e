//! Authentication of API requests: by the root token, a named token or a session.

use crate::problem::{Problem, ProblemKind};
use crate::request_audit::RefusalLimiter;
use crate::root_token::RootToken;
use access::{Access, Caller, NewSession, Principal};
use api::{Permission, ProblemReason};
use axum::http::{HeaderMap, header};
use model::{Moment, Now, Timestamp};
use ports::{LoginInterface, LoginLimiter, PasswordError, PasswordVerifier};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// Name of the session cookie.
pub(crate) const SESSION_COOKIE: &str = "switchyard-session";
/// Header with the CSRF token; required for requests of a session that change something.
pub(crate) const CSRF_HEADER: &str = "switchyard-csrf";
/// Header of requests that a page sends to refresh itself. Such a request does not keep the session alive.
pub(crate) const WATCHING_HEADER: &str = "switchyard-watching";
/// Maximum concurrent password hashes: each takes 19 MiB and some tens of milliseconds of CPU.
const MAX_CONCURRENT_HASHES: usize = 2;
/// Minimum characters of a new password.
const MIN_PASSWORD_CHARS: usize = 10;
/// Maximum octets of a password.
const MAX_PASSWORD_OCTETS: usize = 256;

/// Authenticates API requests and logins.
pub struct Authenticator {
    access: Arc<Access>,
    token: RootToken,
    verifier: PasswordVerifier,
    limiter: Arc<LoginLimiter>,
    refusal_limiter: RefusalLimiter,
    hashing: Arc<Semaphore>,
    /// Hash of a random password, verified for unknown users, so that response times do not reveal which users exist.
    dummy_hash: String,
    secure: AtomicBool,
    started: Instant,
}

/// The identity of an authenticated request.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    pub(crate) principal: Principal,
    pub(crate) caller: Caller,
    /// The session's secret and CSRF token, if the request has a session.
    pub(crate) session: Option<(String, String)>,
    /// Time of expiry of the session or token.
    pub(crate) until: Option<Timestamp>,
}

/// Why authentication failed.
#[derive(Debug)]
pub(crate) enum AuthError {
    /// No credentials, or unknown ones.
    Unauthenticated,
    /// The session is valid, but the CSRF token is missing or wrong: the request may come from another site.
    CsrfMismatch(Box<Caller>),
}

/// The value of a cookie.
fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
}

impl Authenticator {
    /// Creates an authenticator for these users and this root token.
    ///
    /// # Errors
    /// The system provides no random numbers.
    pub fn new(
        access: Arc<Access>,
        token: RootToken,
        limiter: Arc<LoginLimiter>,
    ) -> Result<Arc<Self>, PasswordError> {
        let mut octets = [0; 32];
        getrandom::fill(&mut octets).map_err(PasswordError::Random)?;
        Ok(Arc::new(Self {
            access,
            token,
            verifier: PasswordVerifier::new(MAX_CONCURRENT_HASHES).map_err(PasswordError::Random)?,
            limiter,
            refusal_limiter: RefusalLimiter::default(),
            hashing: Arc::new(Semaphore::new(MAX_CONCURRENT_HASHES)),
            dummy_hash: ports::hash_password(&octets)?,
            secure: AtomicBool::new(false),
            started: Instant::now(),
        }))
    }

    /// Marks session cookies as `Secure` from now on.
    pub fn require_secure_cookies(&self) {
        self.secure.store(true, Relaxed);
    }

    pub(crate) fn access(&self) -> &Arc<Access> {
        &self.access
    }

    /// Limits the audit records of refused requests.
    pub(crate) fn refusal_limiter(&self) -> &RefusalLimiter {
        &self.refusal_limiter
    }

    pub(crate) fn now(&self) -> Now {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        Now { wall: Timestamp::now(), mono: Moment(millis(self.started.elapsed())) }
    }

    /// Authenticates a request. `changes`: the request changes something, so a session must send its CSRF token.
    pub(crate) fn authenticate(&self, headers: &HeaderMap, changes: bool) -> Result<Identity, AuthError> {
        let now = self.now();
        if let Some(value) = headers.get(header::AUTHORIZATION) {
            let secret = value.to_str().ok().and_then(|value| value.strip_prefix("Bearer "));
            return secret
                .and_then(|secret| self.bearer(secret.trim(), now))
                .ok_or(AuthError::Unauthenticated);
        }
        let secret = cookie(headers, SESSION_COOKIE).ok_or(AuthError::Unauthenticated)?;
        let session = if headers.contains_key(WATCHING_HEADER) {
            self.access.peek_session(secret, now)
        } else {
            self.access.use_session(secret, now)
        };
        let session = session.ok_or(AuthError::Unauthenticated)?;
        let csrf = headers.get(CSRF_HEADER).and_then(|value| value.to_str().ok());
        if changes && !csrf.is_some_and(|csrf| session.csrf_matches(csrf)) {
            return Err(AuthError::CsrfMismatch(Box::new(session.caller)));
        }
        Ok(session_identity(secret, session))
    }

    /// Whether a request with these headers is authenticated.
    #[must_use]
    pub fn is_authenticated(&self, headers: &HeaderMap) -> bool {
        self.authenticate(headers, false).is_ok()
    }

    /// A bearer secret may also be a session's secret: a CLI login has no cookies, and no other site can make it send
    /// requests.
    fn bearer(&self, secret: &str, now: Now) -> Option<Identity> {
        if self.token.matches(secret) {
            return Some(Identity {
                principal: Principal::RootToken,
                caller: Caller::root(),
                session: None,
                until: None,
            });
        }
        if let Some((principal, caller)) = self.access.bearer(secret, now) {
            let until = self.access.token_end(&principal);
            return Some(Identity { principal, caller, session: None, until });
        }
        self.access.use_session(secret, now).map(|session| session_identity(secret, session))
    }

    /// Whether this identity is still valid and its caller still has the permission.
    pub(crate) fn is_still_authorized(&self, identity: &Identity, needed: Permission) -> bool {
        let now = self.now();
        let caller = match &identity.session {
            Some((secret, _)) => self.access.peek_session(secret, now).map(|session| session.caller),
            None => self.access.current_caller(&identity.principal, now),
        };
        caller.is_some_and(|caller| caller.has(needed) && caller.tenant == identity.caller.tenant)
    }

    /// Opens a session with a user's name and password.
    pub(crate) async fn log_in(
        &self,
        name: &str,
        password: &str,
        from: Option<IpAddr>,
    ) -> Result<(Caller, NewSession), Problem> {
        let known = self.access.password_hash(name);
        let hash = known.as_ref().map_or(self.dummy_hash.as_str(), |(hash, _)| hash.as_str());
        let is_short = password.len() <= MAX_PASSWORD_OCTETS;
        let check = async {
            is_short
                && self.verifier.verify(hash, password.as_bytes(), Instant::now()).await
                && known.is_some()
        };
        let is_right = self.rate_limited(name, from, check).await?;
        if let (true, Some((_, version))) = (is_right, known) {
            let new_session =
                self.access.open_session(&Principal::User(name.into()), Some(version), self.now())?;
            if let Some(new_session) = new_session {
                return Ok(new_session);
            }
        }
        Err(Problem::new(ProblemKind::Unauthorised, "wrong user or password"))
    }

    /// Opens a session with a token.
    pub(crate) async fn log_in_by_token(
        &self,
        secret: &str,
        from: Option<IpAddr>,
    ) -> Result<(Caller, NewSession), Problem> {
        let now = self.now();
        let principal = if self.token.matches(secret) {
            Some(Principal::RootToken)
        } else {
            self.access.bearer(secret, now).map(|(principal, _)| principal)
        };
        // All token logins share one limit: no user has an empty name.
        let is_right = self.rate_limited("", from, async { principal.is_some() }).await?;
        if let (true, Some(principal)) = (is_right, principal)
            && let Some(new_session) = self.access.open_session(&principal, None, now)?
        {
            return Ok(new_session);
        }
        Err(Problem::new(
            ProblemKind::Unauthorised,
            "unknown token; the root token is in the file `token` of the data directory",
        ))
    }

    async fn rate_limited(
        &self,
        name: &str,
        from: Option<IpAddr>,
        check: impl Future<Output = bool>,
    ) -> Result<bool, Problem> {
        let from = from.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        self.limiter.check(LoginInterface::Admin, None, name.as_bytes(), from, check).await.map_err(|shut| {
            let seconds = shut.wait.as_secs() + 1;
            let detail = format!("too many login attempts; try again in {seconds} seconds");
            let wait = u64::try_from(shut.wait.as_millis()).unwrap_or(u64::MAX);
            let reason =
                ProblemReason { retry_after_ms: Some(wait), ..ProblemReason::of("too-many-attempts") };
            Problem::new(ProblemKind::TooManyRequests, detail).with_reason(reason)
        })
    }

    /// Verifies a user's password; counts as a login attempt.
    pub(crate) async fn verify_password(
        &self,
        name: &str,
        password: &str,
        from: Option<IpAddr>,
    ) -> Result<bool, Problem> {
        let Some((hash, _)) = self.access.password_hash(name) else { return Ok(false) };
        let check = async {
            password.len() <= MAX_PASSWORD_OCTETS
                && self.verifier.verify(&hash, password.as_bytes(), Instant::now()).await
        };
        self.rate_limited(name, from, check).await
    }

    /// Hashes a new password if it meets the rules. `field` is the name of the request's field, for errors.
    pub(crate) async fn hash_password(
        &self,
        field: &'static str,
        name: &str,
        password: &str,
    ) -> Result<String, Problem> {
        let wrong = |what: String| Problem::from(access::AccessError::Invalid { field, what });
        if password.chars().count() < MIN_PASSWORD_CHARS {
            return Err(wrong(format!(
                "must have at least {MIN_PASSWORD_CHARS} characters; several words are easy to remember"
            )));
        }
        if password.len() > MAX_PASSWORD_OCTETS {
            return Err(wrong(format!("must have at most {MAX_PASSWORD_OCTETS} octets")));
        }
        if password.to_lowercase().contains(&name.to_lowercase()) {
            return Err(wrong("must not contain the user's name".to_owned()));
        }
        let failed = || Problem::new(ProblemKind::Internal, "the password could not be hashed; see the log");
        let permit = self.hashing.clone().acquire_owned().await.map_err(|_| failed())?;
        let password = password.to_owned();
        let hashed = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            ports::hash_password(password.as_bytes())
        });
        match hashed.await {
            Ok(Ok(hash)) => Ok(hash),
            Ok(Err(error)) => {
                tracing::error!(%error, "cannot hash the password");
                Err(failed())
            }
            Err(_) => Err(failed()),
        }
    }

    /// The `Set-Cookie` value of a session; without a session, the value that deletes the cookie.
    pub(crate) fn cookie(&self, new_session: Option<&NewSession>) -> String {
        let secure = if self.secure.load(Relaxed) { "; Secure" } else { "" };
        let (secret, seconds) = match new_session {
            Some(new_session) => (
                new_session.secret.as_str(),
                new_session.until.0.saturating_sub(self.now().wall.0).div_ceil(1000),
            ),
            None => ("", 0),
        };
        format!("{SESSION_COOKIE}={secret}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}{secure}")
    }
}

fn session_identity(secret: &str, session: access::Session) -> Identity {
    let csrf = session.csrf().to_owned();
    Identity {
        principal: session.principal,
        caller: session.caller,
        session: Some((secret.to_owned(), csrf)),
        until: Some(session.until),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    #[test]
    fn cookie_is_found_by_its_full_name() {
        let mut headers = HeaderMap::new();
        headers.append(header::COOKIE, HeaderValue::from_static("a=b; xswitchyard-session=1"));
        assert_eq!(cookie(&headers, SESSION_COOKIE), None);
        headers.append(header::COOKIE, HeaderValue::from_static("c=d;switchyard-session=2 ; e"));
        assert_eq!(cookie(&headers, SESSION_COOKIE), Some("2"));
    }

    fn authenticator() -> (tempfile::TempDir, Arc<Authenticator>, String) {
        let folder = tempfile::tempdir().unwrap();
        let token = RootToken::load_or_create(&folder.path().join("token")).unwrap();
        let secret = std::fs::read_to_string(folder.path().join("token")).unwrap().trim().to_owned();
        let access = Arc::new(Access::open(&folder.path().join("access.redb")).unwrap());
        let authenticator = Authenticator::new(access, token, Arc::default()).unwrap();
        (folder, authenticator, secret)
    }

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    #[tokio::test]
    async fn session_reads_with_cookie_and_writes_with_csrf() {
        let (_folder, authenticator, secret) = authenticator();
        let (caller, new_session) = authenticator.log_in_by_token(&secret, None).await.unwrap();
        assert_eq!(caller, Caller::root());
        let cookie = format!("switchyard-session={}", new_session.secret);
        let plain = headers(&[("cookie", &cookie)]);
        assert!(authenticator.authenticate(&plain, false).is_ok());
        assert!(matches!(authenticator.authenticate(&plain, true), Err(AuthError::CsrfMismatch(_))));
        let wrong = headers(&[("cookie", &cookie), (CSRF_HEADER, &new_session.secret)]);
        assert!(matches!(authenticator.authenticate(&wrong, true), Err(AuthError::CsrfMismatch(_))));
        let with_csrf = headers(&[("cookie", &cookie), (CSRF_HEADER, &new_session.csrf)]);
        assert!(authenticator.authenticate(&with_csrf, true).is_ok());
        let bearer = headers(&[("authorization", &format!("Bearer {}", new_session.secret))]);
        assert!(authenticator.authenticate(&bearer, true).is_ok());
        // A valid cookie does not repair a wrong bearer token.
        let both = headers(&[("cookie", &cookie), ("authorization", "Bearer nothing")]);
        assert!(matches!(authenticator.authenticate(&both, false), Err(AuthError::Unauthenticated)));
        authenticator.access().close_session(&new_session.secret);
        assert!(matches!(authenticator.authenticate(&plain, false), Err(AuthError::Unauthenticated)));
    }

    #[tokio::test]
    async fn passwords_have_length_limits_and_ten_attempts() {
        let (_folder, authenticator, _) = authenticator();
        for bad in ["", "short", "Annabel-ann", &"x".repeat(257)] {
            assert_eq!(
                authenticator.hash_password("password", "ann", bad).await.unwrap_err().status,
                422,
                "{bad}"
            );
        }
        let password_hash =
            Some(authenticator.hash_password("password", "ann", "correct horse").await.unwrap());
        let role = api::Role::Viewer;
        let new = access::NewUser {
            name: "ann".to_owned(),
            role,
            account: None,
            tenant: None,
            bodies: false,
            password_hash,
        };
        authenticator.access().add_user(new, "token", authenticator.now()).unwrap();
        assert!(authenticator.log_in("ann", "correct horse", None).await.is_ok());
        for turn in 0..10 {
            let status = authenticator.log_in("ann", "wrong horse", None).await.unwrap_err().status;
            assert_eq!(status, 401, "{turn}");
            let status = authenticator.log_in("nobody", "wrong horse", None).await.unwrap_err().status;
            assert_eq!(status, 401, "{turn}");
        }
        let refused = authenticator.log_in("ann", "correct horse", None).await.unwrap_err();
        assert_eq!(
            (refused.status, refused.reason.as_ref().unwrap().reason.as_ref()),
            (429, "too-many-attempts")
        );
    }
}
