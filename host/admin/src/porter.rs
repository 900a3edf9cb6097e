//! Who comes in: by the house's token, by one that was made, by a session.

use crate::guard::Refusals;
use crate::problem::{Kind, Problem, Reason};
use crate::token::Token;
use access::{Access, Caller, Opened, Right, Who};
use axum::http::{HeaderMap, header};
use doors::{Entrance, LoginLimiter, PasswordError, Verifier};
use model::{Moment, Now, Timestamp};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::Semaphore;

/// The cookie of a session.
pub(crate) const COOKIE: &str = "switchyard-session";
/// What requests of a session that change something show beside the cookie.
pub(crate) const CSRF: &str = "switchyard-csrf";
/// What requests of a session show that nobody has asked for just now: a page that keeps itself up to date. They do not keep the
/// session alive.
pub(crate) const WATCHING: &str = "switchyard-watching";
/// Passwords that are looked at, or hashed, at a time: each takes 19 MiB and some tens of milliseconds of a processor.
const AT_ONCE: usize = 2;
/// Characters of the shortest password that may be set.
const SHORTEST: usize = 10;
/// Octets of the longest password that is looked at.
const LONGEST: usize = 256;

/// Stands at the door: knows who may come in, and as what.
pub struct Porter {
    access: Arc<Access>,
    token: Token,
    verifier: Verifier,
    limiter: Arc<LoginLimiter>,
    refusals: Refusals,
    hashing: Arc<Semaphore>,
    /// The hash of a password that nobody has: who names a user that is not there waits as long as for one that is.
    nobody: String,
    secure: AtomicBool,
    started: Instant,
}

/// How somebody has come in.
#[derive(Debug, Clone)]
pub(crate) struct Presented {
    pub(crate) who: Who,
    pub(crate) caller: Caller,
    /// The word of the session and its CSRF word, if it is one.
    pub(crate) session: Option<(String, String)>,
    /// When the session or the token ends.
    pub(crate) until: Option<Timestamp>,
}

/// Why somebody does not come in.
#[derive(Debug)]
pub(crate) enum Turned {
    /// He has shown nothing, or nothing that is known.
    Away,
    /// His session is good, but his request may come from another site's page.
    Doubtful(Box<Caller>),
}

/// A cookie of this name.
fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
}

impl Porter {
    /// A porter who knows these users, and the token of the house.
    ///
    /// # Errors
    /// When the system has no randomness to give.
    pub fn new(
        access: Arc<Access>,
        token: Token,
        limiter: Arc<LoginLimiter>,
    ) -> Result<Arc<Self>, PasswordError> {
        let mut octets = [0; 32];
        getrandom::fill(&mut octets).map_err(PasswordError::Random)?;
        Ok(Arc::new(Self {
            access,
            token,
            verifier: Verifier::new(AT_ONCE).map_err(PasswordError::Random)?,
            limiter,
            refusals: Refusals::default(),
            hashing: Arc::new(Semaphore::new(AT_ONCE)),
            nobody: doors::hash_password(&octets)?,
            secure: AtomicBool::new(false),
            started: Instant::now(),
        }))
    }

    /// From now on cookies are for TLS only.
    pub fn insist_on_tls(&self) {
        self.secure.store(true, Relaxed);
    }

    pub(crate) fn access(&self) -> &Arc<Access> {
        &self.access
    }

    /// Refused requests of this minute.
    pub(crate) fn refusals(&self) -> &Refusals {
        &self.refusals
    }

    pub(crate) fn now(&self) -> Now {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Now { wall: Timestamp(millis(wall)), mono: Moment(millis(self.started.elapsed())) }
    }

    /// Who makes a request. `changes`: it is one that changes something, so a session must show that the request is its own.
    pub(crate) fn recognise(&self, headers: &HeaderMap, changes: bool) -> Result<Presented, Turned> {
        let now = self.now();
        if let Some(value) = headers.get(header::AUTHORIZATION) {
            let word = value.to_str().ok().and_then(|value| value.strip_prefix("Bearer "));
            return word.and_then(|word| self.bearer(word.trim(), now)).ok_or(Turned::Away);
        }
        let word = cookie(headers, COOKIE).ok_or(Turned::Away)?;
        let session = if headers.contains_key(WATCHING) {
            self.access.watched_session(word, now)
        } else {
            self.access.session(word, now)
        };
        let session = session.ok_or(Turned::Away)?;
        let shown = headers.get(CSRF).and_then(|value| value.to_str().ok());
        if changes && !shown.is_some_and(|shown| session.is_meant(shown)) {
            return Err(Turned::Doubtful(Box::new(session.caller)));
        }
        Ok(in_session(word, session))
    }

    /// Whether a request's head shows who makes it.
    #[must_use]
    pub fn knows(&self, headers: &HeaderMap) -> bool {
        self.recognise(headers, false).is_ok()
    }

    /// A session's word may come as a bearer's as well: a command line that has logged in has no cookies, and no other site
    /// makes it send anything.
    fn bearer(&self, word: &str, now: Now) -> Option<Presented> {
        if self.token.is(word) {
            return Some(Presented { who: Who::House, caller: Caller::house(), session: None, until: None });
        }
        if let Some((who, caller)) = self.access.bearer(word, now) {
            let until = self.access.token_end(&who);
            return Some(Presented { who, caller, session: None, until });
        }
        self.access.session(word, now).map(|session| in_session(word, session))
    }

    /// Whether who has come in like this would come in now, and may still do what he came for.
    pub(crate) fn still_lets_in(&self, presented: &Presented, needed: Right) -> bool {
        let now = self.now();
        let caller = match &presented.session {
            Some((word, _)) => self.access.watched_session(word, now).map(|session| session.caller),
            None => self.access.standing(&presented.who, now),
        };
        caller.is_some_and(|caller| caller.may(needed))
    }

    /// Opens a session by name and password.
    pub(crate) async fn log_in(
        &self,
        name: &str,
        password: &str,
        from: Option<IpAddr>,
    ) -> Result<(Caller, Opened), Problem> {
        let known = self.access.password_hash(name);
        let hash = known.as_ref().map_or(self.nobody.as_str(), |(hash, _)| hash.as_str());
        let is_short = password.len() <= LONGEST;
        let check = async {
            is_short
                && self.verifier.verify(hash, password.as_bytes(), Instant::now()).await
                && known.is_some()
        };
        let right = self.limited(name, from, check).await?;
        if let (true, Some((_, version))) = (right, known) {
            let opened = self.access.open_session(&Who::User(name.into()), Some(version), self.now())?;
            if let Some(opened) = opened {
                return Ok(opened);
            }
        }
        Err(Problem::new(Kind::Unauthorised, "user and password do not go together"))
    }

    /// Opens a session by a token.
    pub(crate) async fn log_in_by_token(
        &self,
        word: &str,
        from: Option<IpAddr>,
    ) -> Result<(Caller, Opened), Problem> {
        let now = self.now();
        let who = if self.token.is(word) {
            Some(Who::House)
        } else {
            self.access.bearer(word, now).map(|(who, _)| who)
        };
        // Tokens count together, whatever they are: no user has an empty name.
        let right = self.limited("", from, async { who.is_some() }).await?;
        if let (true, Some(who)) = (right, who)
            && let Some(opened) = self.access.open_session(&who, None, now)?
        {
            return Ok(opened);
        }
        Err(Problem::new(
            Kind::Unauthorised,
            "this is no token; the one of the first start is in the file `token` of the data directory",
        ))
    }

    async fn limited(
        &self,
        name: &str,
        from: Option<IpAddr>,
        check: impl Future<Output = bool>,
    ) -> Result<bool, Problem> {
        let from = from.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        self.limiter.check(Entrance::Admin, name.as_bytes(), from, check).await.map_err(|shut| {
            let seconds = shut.wait.as_secs() + 1;
            let detail = format!("too many attempts to log in; try again in {seconds} seconds");
            let wait = u64::try_from(shut.wait.as_millis()).unwrap_or(u64::MAX);
            let reason = Reason { retry_after_ms: Some(wait), ..Reason::of("too-many-attempts") };
            Problem::new(Kind::TooOften, detail).because(reason)
        })
    }

    /// Whether this is the user's password; counted as an attempt to log in.
    pub(crate) async fn is_password(
        &self,
        name: &str,
        password: &str,
        from: Option<IpAddr>,
    ) -> Result<bool, Problem> {
        let Some((hash, _)) = self.access.password_hash(name) else { return Ok(false) };
        let check = async {
            password.len() <= LONGEST
                && self.verifier.verify(&hash, password.as_bytes(), Instant::now()).await
        };
        self.limited(name, from, check).await
    }

    /// The hash of a new password, if it is good enough. `field`: where it stands in the request.
    pub(crate) async fn hash(
        &self,
        field: &'static str,
        name: &str,
        password: &str,
    ) -> Result<String, Problem> {
        let wrong = |what: String| Problem::from(access::AccessError::Invalid { field, what });
        if password.chars().count() < SHORTEST {
            return Err(wrong(format!(
                "must have {SHORTEST} characters at least; several words are easy to keep"
            )));
        }
        if password.len() > LONGEST {
            return Err(wrong(format!("must have {LONGEST} octets at most")));
        }
        if password.to_lowercase().contains(&name.to_lowercase()) {
            return Err(wrong("must not contain the user's name".to_owned()));
        }
        let failed = || Problem::new(Kind::Internal, "the password could not be hashed; the log says more");
        let permit = self.hashing.clone().acquire_owned().await.map_err(|_| failed())?;
        let password = password.to_owned();
        let hashed = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            doors::hash_password(password.as_bytes())
        });
        match hashed.await {
            Ok(Ok(hash)) => Ok(hash),
            Ok(Err(error)) => {
                tracing::error!(%error, "password not hashed");
                Err(failed())
            }
            Err(_) => Err(failed()),
        }
    }

    /// The cookie of a session; without one, what takes it away.
    pub(crate) fn cookie(&self, opened: Option<&Opened>) -> String {
        let secure = if self.secure.load(Relaxed) { "; Secure" } else { "" };
        let (word, seconds) = match opened {
            Some(opened) => {
                (opened.secret.as_str(), opened.until.0.saturating_sub(self.now().wall.0).div_ceil(1000))
            }
            None => ("", 0),
        };
        format!("{COOKIE}={word}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}{secure}")
    }
}

fn in_session(word: &str, session: access::Session) -> Presented {
    let csrf = session.csrf().to_owned();
    Presented {
        who: session.who,
        caller: session.caller,
        session: Some((word.to_owned(), csrf)),
        until: Some(session.until),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    #[test]
    fn a_cookie_is_found_by_its_whole_name() {
        let mut headers = HeaderMap::new();
        headers.append(header::COOKIE, HeaderValue::from_static("a=b; xswitchyard-session=1"));
        assert_eq!(cookie(&headers, COOKIE), None);
        headers.append(header::COOKIE, HeaderValue::from_static("c=d;switchyard-session=2 ; e"));
        assert_eq!(cookie(&headers, COOKIE), Some("2"));
    }

    fn porter() -> (tempfile::TempDir, Arc<Porter>, String) {
        let folder = tempfile::tempdir().unwrap();
        let token = Token::load_or_make(&folder.path().join("token")).unwrap();
        let word = std::fs::read_to_string(folder.path().join("token")).unwrap().trim().to_owned();
        let access = Arc::new(Access::open(&folder.path().join("access.redb")).unwrap());
        let porter = Porter::new(access, token, Arc::default()).unwrap();
        (folder, porter, word)
    }

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    #[tokio::test]
    async fn a_session_reads_with_its_cookie_and_changes_with_its_csrf_word() {
        let (_folder, porter, word) = porter();
        let (caller, opened) = porter.log_in_by_token(&word, None).await.unwrap();
        assert_eq!(caller, Caller::house());
        let cookie = format!("switchyard-session={}", opened.secret);
        let plain = headers(&[("cookie", &cookie)]);
        assert!(porter.recognise(&plain, false).is_ok());
        assert!(matches!(porter.recognise(&plain, true), Err(Turned::Doubtful(_))));
        let wrong = headers(&[("cookie", &cookie), (CSRF, &opened.secret)]);
        assert!(matches!(porter.recognise(&wrong, true), Err(Turned::Doubtful(_))));
        let right = headers(&[("cookie", &cookie), (CSRF, &opened.csrf)]);
        assert!(porter.recognise(&right, true).is_ok());
        let bearer = headers(&[("authorization", &format!("Bearer {}", opened.secret))]);
        assert!(porter.recognise(&bearer, true).is_ok());
        // A bad word is not made good by a cookie beside it.
        let both = headers(&[("cookie", &cookie), ("authorization", "Bearer nothing")]);
        assert!(matches!(porter.recognise(&both, false), Err(Turned::Away)));
        porter.access().close_session(&opened.secret);
        assert!(matches!(porter.recognise(&plain, false), Err(Turned::Away)));
    }

    #[tokio::test]
    async fn passwords_are_of_some_length_and_tried_ten_times() {
        let (_folder, porter, _) = porter();
        for bad in ["", "short", "Annabel-ann", &"x".repeat(257)] {
            assert_eq!(porter.hash("password", "ann", bad).await.unwrap_err().status, 422, "{bad}");
        }
        let password_hash = Some(porter.hash("password", "ann", "correct horse").await.unwrap());
        let role = access::Role::Viewer;
        let new =
            access::NewUser { name: "ann".to_owned(), role, account: None, bodies: false, password_hash };
        porter.access().add_user(new, "token", porter.now()).unwrap();
        assert!(porter.log_in("ann", "correct horse", None).await.is_ok());
        for turn in 0..10 {
            let status = porter.log_in("ann", "wrong horse", None).await.unwrap_err().status;
            assert_eq!(status, 401, "{turn}");
            let status = porter.log_in("nobody", "wrong horse", None).await.unwrap_err().status;
            assert_eq!(status, 401, "{turn}");
        }
        let refused = porter.log_in("ann", "correct horse", None).await.unwrap_err();
        assert_eq!((refused.status, refused.reason.unwrap().reason), (429, "too-many-attempts"));
    }
}
