//! Absent subscribers whose return nobody tells: a client of an HLR sees no location updates, so it asks the HLR where they
//! are, each time after a longer pause.
//!
//! The HLR tells at which MSC a subscriber was last, and keeps that when the subscriber goes. So what shows is the first
//! location update of all, and one at another MSC; for a return to the same MSC there is no sign but a message or an alert of
//! the handset's own.

use crate::desk::{Input, Inputs};
use crate::mt::ConnId;
use crate::register::{Located, Register};
use capabilities::HlrFailure;
use gsup::Imsi;
use gsup::ctrl::Subject;
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::WeakUnboundedSender;

/// The pause before the first question, and the longest: each is twice as long as the one before.
const FIRST: Duration = Duration::from_secs(2);
const LONGEST: Duration = Duration::from_secs(120);

/// How long a subscriber is asked about: as long as messages from handsets are valid by default.
const GIVE_UP: Duration = Duration::from_secs(3 * 86_400);

/// How many subscribers are asked about, and how many of them in one second. Messages for the others are tried by the retry
/// schedule alone.
const LIMIT: usize = 10_000;
const A_SECOND: usize = 100;

/// The inputs of the desk itself have this connection, which is none.
const DESK: ConnId = ConnId::MAX;

/// The subscribers that are asked about.
pub(crate) struct Absent {
    register: Arc<Register>,
    desk: WeakUnboundedSender<Inputs>,
    watched: FxHashMap<Imsi, Watch>,
    due: BTreeSet<(Instant, Imsi)>,
}

struct Watch {
    /// The MSC that the HLR names; the outer `None` until it has been asked.
    at: Option<Option<String>>,
    since: Instant,
    pause: Duration,
    /// When the next question is due; `None` while one is open.
    due: Option<Instant>,
}

impl Absent {
    pub(crate) fn new(register: Arc<Register>, desk: WeakUnboundedSender<Inputs>) -> Self {
        Self { register, desk, watched: FxHashMap::default(), due: BTreeSet::new() }
    }

    /// A message could not be given to this subscriber. `nowhere`: the HLR has just said that no MSC serves it.
    pub(crate) fn watch(&mut self, now: Instant, imsi: Imsi, nowhere: bool) {
        if let Some(watch) = self.watched.get_mut(&imsi) {
            if nowhere {
                watch.at = Some(None);
            }
            return;
        }
        if self.watched.len() < LIMIT {
            let due = now + FIRST;
            let watch = Watch { at: nowhere.then_some(None), since: now, pause: FIRST, due: Some(due) };
            self.watched.insert(imsi, watch);
            self.due.insert((due, imsi));
        }
    }

    /// The subscriber has been heard of.
    pub(crate) fn forget(&mut self, imsi: &Imsi) {
        if let Some(due) = self.watched.remove(imsi).and_then(|watch| watch.due) {
            self.due.remove(&(due, *imsi));
        }
    }

    /// Asks what is due; [`Input::Located`] follows for each. To be called about every second.
    pub(crate) fn ask(&mut self, now: Instant) {
        for _ in 0..A_SECOND {
            let Some((_, imsi)) = self.due.first().copied().filter(|(due, _)| *due <= now) else { return };
            self.due.pop_first();
            let Some(watch) = self.watched.get_mut(&imsi) else { continue };
            watch.due = None;
            if now.duration_since(watch.since) > GIVE_UP {
                self.watched.remove(&imsi);
                continue;
            }
            let Some(answer) = self.register.ask(Subject::Imsi(imsi)) else {
                self.again(now, imsi);
                continue;
            };
            let desk = self.desk.clone();
            tokio::spawn(async move {
                let answer = answer.await.unwrap_or(Err(HlrFailure::Unreachable));
                if let Some(desk) = desk.upgrade() {
                    let _ = desk.send((DESK, vec![Input::Located(imsi, answer)]));
                }
            });
        }
    }

    /// The HLR's answer; whether the subscriber has come to an MSC since it was found absent.
    pub(crate) fn located(&mut self, now: Instant, imsi: Imsi, answer: Located) -> bool {
        let Some(watch) = self.watched.get_mut(&imsi) else { return false };
        match answer {
            Ok(found) => {
                let moved = watch.at.as_ref().is_some_and(|before| *before != found.vlr_number);
                if moved && found.vlr_number.is_some() {
                    self.watched.remove(&imsi);
                    return true;
                }
                watch.at = Some(found.vlr_number);
                self.again(now, imsi);
            }
            Err(HlrFailure::Unknown) => {
                self.watched.remove(&imsi);
            }
            Err(HlrFailure::Unreachable) => self.again(now, imsi),
        }
        false
    }

    fn again(&mut self, now: Instant, imsi: Imsi) {
        let Some(watch) = self.watched.get_mut(&imsi) else { return };
        watch.pause = (watch.pause * 2).min(LONGEST);
        let due = now + watch.pause;
        watch.due = Some(due);
        self.due.insert((due, imsi));
    }

    /// How many subscribers are asked about.
    pub(crate) fn len(&self) -> usize {
        self.watched.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::GsmOptions;
    use gsup::ctrl::Subscriber;
    use model::PeerId;

    fn imsi(n: usize) -> Imsi {
        format!("00101{n:010}").parse().unwrap()
    }

    fn at(msc: Option<&str>) -> Located {
        Ok(Subscriber { imsi: imsi(1), msisdn: None, vlr_number: msc.map(str::to_owned) })
    }

    fn absent() -> Absent {
        let options = Arc::new(GsmOptions::new("home", PeerId(3)));
        let register = Arc::new(Register::new(&options, &Arc::default()));
        let (desk, _) = tokio::sync::mpsc::unbounded_channel();
        Absent::new(register, desk.downgrade())
    }

    #[test]
    fn a_subscriber_without_an_msc_has_come_when_it_has_one() {
        let (now, mut absent) = (Instant::now(), absent());
        absent.watch(now, imsi(1), true);
        assert!(!absent.located(now, imsi(1), at(None)));
        assert!(!absent.located(now, imsi(1), Err(HlrFailure::Unreachable)));
        assert!(absent.located(now, imsi(1), at(Some("MSC-1"))));
        assert_eq!(absent.len(), 0);
        assert!(!absent.located(now, imsi(1), at(Some("MSC-2"))), "nobody waits any more");
    }

    #[test]
    fn a_subscriber_that_was_at_an_msc_has_come_when_it_is_at_another() {
        let (now, mut absent) = (Instant::now(), absent());
        absent.watch(now, imsi(1), false);
        assert!(!absent.located(now, imsi(1), at(Some("MSC-1"))), "that is where it was");
        assert!(!absent.located(now, imsi(1), at(Some("MSC-1"))));
        assert!(absent.located(now, imsi(1), at(Some("MSC-2"))));
        absent.watch(now, imsi(1), false);
        assert!(!absent.located(now, imsi(1), Err(HlrFailure::Unknown)));
        assert_eq!(absent.len(), 0);
    }

    #[test]
    fn pauses_grow_and_nobody_is_asked_about_for_ever() {
        let (begun, mut absent) = (Instant::now(), absent());
        absent.watch(begun, imsi(1), true);
        let (mut now, mut pauses) = (begun, Vec::new());
        // There is nobody to ask: it is as if the HLR had not answered.
        while let Some((due, _)) = absent.due.first().copied() {
            pauses.push(due - now);
            now = due;
            absent.ask(now);
        }
        assert_eq!(pauses[..7], [2, 4, 8, 16, 32, 64, 120].map(Duration::from_secs));
        assert!(now - begun > GIVE_UP && absent.len() == 0);
        for n in 0..LIMIT + 10 {
            absent.watch(now, imsi(n), true);
        }
        assert_eq!(absent.len(), LIMIT);
        absent.forget(&imsi(7));
        assert_eq!((absent.len(), absent.due.len()), (LIMIT - 1, LIMIT - 1));
    }
}
