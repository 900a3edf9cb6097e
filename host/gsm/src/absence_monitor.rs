//! Monitors absent subscribers. A client of an HLR sees no location updates, so it queries the HLR for their location,
//! with growing pauses.
//!
//! The HLR reports the last MSC of a subscriber, and keeps it when the subscriber detaches. Therefore only the first
//! location update and a change of the MSC are detected. A return to the same MSC shows only in a message or an alert
//! from the handset.

use crate::hlr_lookup::{HlrLookup, HlrLookupResult};
use crate::link_input::{LinkInput, LinkInputs};
use crate::mt::ConnId;
use capabilities::HlrFailure;
use gsup::GsupImsi;
use gsup::ctrl::LookupSubject;
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::WeakUnboundedSender;

/// The first and the longest pause between queries; each pause is twice as long as the previous one.
const FIRST_PAUSE: Duration = Duration::from_secs(2);
const MAX_PAUSE: Duration = Duration::from_secs(120);

/// How long a subscriber is monitored; equals the default validity of MOs.
const WATCH_LIFETIME: Duration = Duration::from_secs(3 * 86_400);

/// Maximum number of monitored subscribers, and of queries per second. For other subscribers only the retry schedule
/// applies.
const MAX_WATCHED: usize = 10_000;
const MAX_QUERIES_PER_SECOND: usize = 100;

/// The connection id of inputs from the link itself.
const NO_CONNECTION: ConnId = ConnId::MAX;

/// The monitored subscribers.
pub(crate) struct AbsenceMonitor {
    hlr_lookup: Arc<HlrLookup>,
    link: WeakUnboundedSender<LinkInputs>,
    watched: FxHashMap<GsupImsi, Watch>,
    due: BTreeSet<(Instant, GsupImsi)>,
}

struct Watch {
    /// The MSC reported by the HLR; the outer `None` before the first answer.
    msc: Option<Option<String>>,
    since: Instant,
    pause: Duration,
    /// Time of the next query; `None` while one is pending.
    due: Option<Instant>,
}

impl AbsenceMonitor {
    pub(crate) fn new(hlr_lookup: Arc<HlrLookup>, link: WeakUnboundedSender<LinkInputs>) -> Self {
        Self { hlr_lookup, link, watched: FxHashMap::default(), due: BTreeSet::new() }
    }

    /// Starts to monitor a subscriber after a failed delivery. `detached`: the HLR has just reported that no MSC serves
    /// it.
    pub(crate) fn watch(&mut self, now: Instant, imsi: GsupImsi, detached: bool) {
        if let Some(watch) = self.watched.get_mut(&imsi) {
            if detached {
                watch.msc = Some(None);
            }
            return;
        }
        if self.watched.len() < MAX_WATCHED {
            let due = now + FIRST_PAUSE;
            let watch =
                Watch { msc: detached.then_some(None), since: now, pause: FIRST_PAUSE, due: Some(due) };
            self.watched.insert(imsi, watch);
            self.due.insert((due, imsi));
        }
    }

    /// Stops monitoring a subscriber that was seen.
    pub(crate) fn remove(&mut self, imsi: &GsupImsi) {
        if let Some(due) = self.watched.remove(imsi).and_then(|watch| watch.due) {
            self.due.remove(&(due, *imsi));
        }
    }

    /// Sends the due queries; [`LinkInput::AbsentLookedUp`] follows for each. Call it about once per second.
    pub(crate) fn query_due(&mut self, now: Instant) {
        for _ in 0..MAX_QUERIES_PER_SECOND {
            let Some((_, imsi)) = self.due.first().copied().filter(|(due, _)| *due <= now) else { return };
            self.due.pop_first();
            let Some(watch) = self.watched.get_mut(&imsi) else { continue };
            watch.due = None;
            if now.duration_since(watch.since) > WATCH_LIFETIME {
                self.watched.remove(&imsi);
                continue;
            }
            let Some(answer) = self.hlr_lookup.query(LookupSubject::Imsi(imsi)) else {
                self.schedule_next(now, imsi);
                continue;
            };
            let link = self.link.clone();
            tokio::spawn(async move {
                let answer = answer.await.unwrap_or(Err(HlrFailure::Unreachable));
                if let Some(link) = link.upgrade() {
                    let _ = link.send((NO_CONNECTION, vec![LinkInput::AbsentLookedUp(imsi, answer)]));
                }
            });
        }
    }

    /// Handles the HLR's answer. Returns whether the subscriber has registered at an MSC since it was found absent.
    pub(crate) fn handle_location(&mut self, now: Instant, imsi: GsupImsi, answer: HlrLookupResult) -> bool {
        let Some(watch) = self.watched.get_mut(&imsi) else { return false };
        match answer {
            Ok(found) => {
                let moved = watch.msc.as_ref().is_some_and(|before| *before != found.vlr_number);
                if moved && found.vlr_number.is_some() {
                    self.watched.remove(&imsi);
                    return true;
                }
                watch.msc = Some(found.vlr_number);
                self.schedule_next(now, imsi);
            }
            Err(HlrFailure::Unknown) => {
                self.watched.remove(&imsi);
            }
            Err(HlrFailure::Unreachable) => self.schedule_next(now, imsi),
        }
        false
    }

    fn schedule_next(&mut self, now: Instant, imsi: GsupImsi) {
        let Some(watch) = self.watched.get_mut(&imsi) else { return };
        watch.pause = (watch.pause * 2).min(MAX_PAUSE);
        let due = now + watch.pause;
        watch.due = Some(due);
        self.due.insert((due, imsi));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::GsmOptions;
    use gsup::ctrl::CtrlSubscriber;
    use model::PeerId;

    fn imsi(n: usize) -> GsupImsi {
        format!("00101{n:010}").parse().unwrap()
    }

    fn located_at(msc: Option<&str>) -> HlrLookupResult {
        Ok(CtrlSubscriber { imsi: imsi(1), msisdn: None, vlr_number: msc.map(str::to_owned) })
    }

    fn monitor() -> AbsenceMonitor {
        let options = Arc::new(GsmOptions::new("home", PeerId(3)));
        let hlr_lookup = Arc::new(HlrLookup::new(&options, &Arc::default()));
        let (link, _) = tokio::sync::mpsc::unbounded_channel();
        AbsenceMonitor::new(hlr_lookup, link.downgrade())
    }

    #[test]
    fn detached_subscriber_returns_when_the_hlr_names_an_msc() {
        let (now, mut monitor) = (Instant::now(), monitor());
        monitor.watch(now, imsi(1), true);
        assert!(!monitor.handle_location(now, imsi(1), located_at(None)));
        assert!(!monitor.handle_location(now, imsi(1), Err(HlrFailure::Unreachable)));
        assert!(monitor.handle_location(now, imsi(1), located_at(Some("MSC-1"))));
        assert_eq!(monitor.watched.len(), 0);
        assert!(!monitor.handle_location(now, imsi(1), located_at(Some("MSC-2"))), "no message waits");
    }

    #[test]
    fn attached_subscriber_returns_when_the_hlr_names_another_msc() {
        let (now, mut monitor) = (Instant::now(), monitor());
        monitor.watch(now, imsi(1), false);
        assert!(!monitor.handle_location(now, imsi(1), located_at(Some("MSC-1"))), "that is where it was");
        assert!(!monitor.handle_location(now, imsi(1), located_at(Some("MSC-1"))));
        assert!(monitor.handle_location(now, imsi(1), located_at(Some("MSC-2"))));
        monitor.watch(now, imsi(1), false);
        assert!(!monitor.handle_location(now, imsi(1), Err(HlrFailure::Unknown)));
        assert_eq!(monitor.watched.len(), 0);
    }

    #[test]
    fn query_pauses_grow_and_monitoring_ends() {
        let (begun, mut monitor) = (Instant::now(), monitor());
        monitor.watch(begun, imsi(1), true);
        let (mut now, mut pauses) = (begun, Vec::new());
        // There is no CTRL interface, so every query counts as unanswered.
        while let Some((due, _)) = monitor.due.first().copied() {
            pauses.push(due - now);
            now = due;
            monitor.query_due(now);
        }
        assert_eq!(pauses[..7], [2, 4, 8, 16, 32, 64, 120].map(Duration::from_secs));
        assert!(now - begun > WATCH_LIFETIME && monitor.watched.is_empty());
        for n in 0..MAX_WATCHED + 10 {
            monitor.watch(now, imsi(n), true);
        }
        assert_eq!(monitor.watched.len(), MAX_WATCHED);
        monitor.remove(&imsi(7));
        assert_eq!((monitor.watched.len(), monitor.due.len()), (MAX_WATCHED - 1, MAX_WATCHED - 1));
    }
}
