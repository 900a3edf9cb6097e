//! Who has logged in. In memory: a restart ends all sessions.

use crate::secret::{self, Mark};
use crate::{AccessError, Caller};
use model::{Moment, Now, Timestamp};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use std::time::Duration;

/// How long a session may last, used or not.
const LONGEST: Duration = Duration::from_secs(12 * 3600);
/// How long it lasts unused.
const IDLE: Duration = Duration::from_secs(30 * 60);
/// Sessions of one user; the one that was used least lately goes when there are more.
const MOST_OF_ONE: usize = 32;
/// Sessions of all.
const MOST: usize = 10_000;

/// Whom a session belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Who {
    /// Whoever has the token of the data directory.
    House,
    /// A user, by name.
    User(Arc<str>),
    /// Whoever has a token of this name.
    Token(Arc<str>),
}

/// A session that was just opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opened {
    /// The word that the session is known by: what the cookie holds.
    pub secret: String,
    /// What requests that change something must show beside it.
    pub csrf: String,
    /// When it ends at the latest.
    pub until: Timestamp,
}

/// A session that somebody has shown the word of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// Whose it is.
    pub who: Who,
    /// Who he is, as of now.
    pub caller: Caller,
    /// When it ends at the latest.
    pub until: Timestamp,
    csrf: Arc<str>,
}

impl Session {
    pub(crate) fn new(who: Who, caller: Caller, until: Timestamp, csrf: Arc<str>) -> Self {
        Self { who, caller, until, csrf }
    }

    /// Whether this is what a request that changes something must show. Takes the same time wherever it differs.
    #[must_use]
    pub fn is_meant(&self, csrf: &str) -> bool {
        secret::same(&self.csrf, csrf)
    }

    /// What requests that change something must show, for a page that is to send one.
    #[must_use]
    pub fn csrf(&self) -> &str {
        &self.csrf
    }
}

#[derive(Debug)]
struct Record {
    who: Who,
    csrf: Arc<str>,
    end: Moment,
    until: Timestamp,
    used: Moment,
}

impl Record {
    fn is_over(&self, now: Moment) -> bool {
        now >= self.end || now.0.saturating_sub(self.used.0) >= millis(IDLE)
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[derive(Debug, Default)]
pub(crate) struct Sessions {
    open: Mutex<FxHashMap<Mark, Record>>,
}

impl Sessions {
    /// Opens one, unless `still` says, with the sessions locked, that he is not any more who he was when his password was
    /// looked at.
    pub(crate) fn open(
        &self,
        who: Who,
        now: Now,
        still: impl FnOnce() -> bool,
    ) -> Result<Option<Opened>, AccessError> {
        let (word, csrf) = (secret::make()?, secret::make()?);
        let until = Timestamp(now.wall.0.saturating_add(millis(LONGEST)));
        let record = Record {
            who,
            csrf: csrf.as_str().into(),
            end: Moment(now.mono.0.saturating_add(millis(LONGEST))),
            until,
            used: now.mono,
        };
        let mut open = self.open.lock();
        if !still() {
            return Ok(None);
        }
        open.retain(|_, record| !record.is_over(now.mono));
        let of_his = open.values().filter(|other| other.who == record.who).count();
        if of_his >= MOST_OF_ONE {
            forget_oldest(&mut open, |other| other.who == record.who);
        } else if open.len() >= MOST {
            forget_oldest(&mut open, |_| true);
        }
        open.insert(secret::mark(&word), record);
        Ok(Some(Opened { secret: word, csrf, until }))
    }

    /// The session of a word; `uses` says whether this counts as a use of it.
    pub(crate) fn find(&self, word: &str, now: Now, uses: bool) -> Option<(Who, Timestamp, Arc<str>)> {
        let mark = secret::mark(word);
        let mut open = self.open.lock();
        let record = open.get_mut(&mark)?;
        if record.is_over(now.mono) {
            open.remove(&mark);
            return None;
        }
        if uses {
            record.used = now.mono;
        }
        Some((record.who.clone(), record.until, record.csrf.clone()))
    }

    pub(crate) fn close(&self, word: &str) -> bool {
        self.open.lock().remove(&secret::mark(word)).is_some()
    }

    /// Ends all sessions of his but this one.
    pub(crate) fn close_all_of(&self, who: &Who, but: Option<&str>) {
        let but = but.map(secret::mark);
        self.open.lock().retain(|mark, record| record.who != *who || Some(*mark) == but);
    }
}

fn forget_oldest(open: &mut FxHashMap<Mark, Record>, of: impl Fn(&Record) -> bool) {
    let oldest = open.iter().filter(|(_, record)| of(record)).min_by_key(|(_, record)| record.used);
    if let Some(mark) = oldest.map(|(mark, _)| *mark) {
        open.remove(&mark);
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
    fn a_session_ends_when_it_is_not_used_and_after_twelve_hours_anyway() {
        let sessions = Sessions::default();
        let open = |now| sessions.open(Who::House, now, || true).unwrap().unwrap();
        let idle = open(at(0));
        assert!(sessions.find(&idle.secret, at(29), true).is_some());
        assert!(sessions.find(&idle.secret, at(58), true).is_some());
        assert!(sessions.find(&idle.secret, at(88), true).is_none());
        assert!(sessions.find(&idle.secret, at(88), true).is_none(), "what is over does not come back");
        let watched = open(at(0));
        assert!(sessions.find(&watched.secret, at(29), false).is_some());
        assert!(sessions.find(&watched.secret, at(31), false).is_none(), "who only watches does not use it");
        let busy = open(at(0));
        for minute in (0..720).step_by(20) {
            assert!(sessions.find(&busy.secret, at(minute), true).is_some(), "{minute}");
        }
        assert!(sessions.find(&busy.secret, at(720), true).is_none());
    }

    #[test]
    fn one_user_cannot_crowd_out_the_others() {
        let sessions = Sessions::default();
        let other = sessions.open(Who::User("bob".into()), at(0), || true).unwrap().unwrap();
        let ann: Vec<_> = (0..40)
            .map(|minute| sessions.open(Who::User("ann".into()), at(minute / 10), || true).unwrap().unwrap())
            .collect();
        assert!(sessions.find(&other.secret, at(5), true).is_some());
        let alive = ann.iter().filter(|opened| sessions.find(&opened.secret, at(5), true).is_some()).count();
        assert_eq!(alive, MOST_OF_ONE);
        sessions.close_all_of(&Who::User("ann".into()), Some(&ann[39].secret));
        let alive: Vec<_> =
            ann.iter().filter(|opened| sessions.find(&opened.secret, at(5), true).is_some()).collect();
        assert_eq!(alive, [&ann[39]]);
        assert!(sessions.close(&other.secret) && !sessions.close(&other.secret));
    }

    #[test]
    fn who_has_changed_meanwhile_gets_no_session() {
        let sessions = Sessions::default();
        assert_eq!(sessions.open(Who::User("ann".into()), at(0), || false).unwrap(), None);
    }
}
