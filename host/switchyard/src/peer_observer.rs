//! Collects the core's observations of peers into the figures for plugins and admins, on a thread of its own.
//!
//! The commit thread passes on the observations of a batch when the batch is durable. It never waits: if this thread
//! falls behind, observations are lost and counted.

use crate::traffic_flows::{AcceptedCounts, TrafficFlows};
use arc_swap::ArcSwap;
use capabilities::{Observed, PeerQuality};
use crossbeam_channel::{Receiver, Sender, bounded};
use hooks::AccountAttributes;
use model::{Directory, PeerObservation, Timestamp};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Maximum number of queued batches.
const MAX_BATCHES: usize = 1_024;
/// Maximum number of queued observations. Each may keep the content of its message in memory.
const MAX_WAITING: u64 = 50_000;
/// Maximum number of leading digits of a destination; grants cannot name more.
const MAX_DIGITS: usize = 8;

/// Observations of peers and counts of submitters, from one batch.
type ObservedBatch = (AcceptedCounts, Vec<PeerObservation>);

/// Takes observations from the commit thread.
#[derive(Clone)]
pub(crate) struct PeerObserver {
    queue: Sender<ObservedBatch>,
    recorder: Arc<Recorder>,
    waiting: Arc<AtomicU64>,
    lost: Arc<AtomicU64>,
}

impl PeerObserver {
    /// Starts the thread, which ends with the last clone of this.
    pub(crate) fn start(
        quality: Arc<PeerQuality>,
        traffic: Arc<TrafficFlows>,
        directory: Arc<ArcSwap<Directory>>,
        attributes: Arc<AccountAttributes>,
    ) -> std::io::Result<Self> {
        let (queue, receiver) = bounded(MAX_BATCHES);
        let recorder = Arc::new(Recorder { quality, traffic, directory, attributes });
        let waiting = Arc::<AtomicU64>::default();
        let (observed, taken) = (recorder.clone(), waiting.clone());
        std::thread::Builder::new()
            .name("peer-quality".to_owned())
            .spawn(move || observed.run(&receiver, &taken))?;
        Ok(Self { queue, recorder, waiting, lost: Arc::default() })
    }

    /// Queues the observations and the counts of accepted messages of a batch. They are lost if the queue is full.
    pub(crate) fn observe(&self, accepted: AcceptedCounts, observations: Vec<PeerObservation>) {
        let count = observations.len() as u64;
        if count == 0 && accepted.is_empty() {
            return;
        }
        let waiting = self.waiting.fetch_add(count, Relaxed);
        if waiting + count > MAX_WAITING || self.queue.try_send((accepted, observations)).is_err() {
            self.waiting.fetch_sub(count, Relaxed);
            self.lost.fetch_add(count, Relaxed);
        }
    }

    /// Records observations on the calling thread.
    pub(crate) fn record(&self, observations: &[PeerObservation]) {
        self.recorder.record(observations);
    }

    /// Number of lost observations since the start.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Relaxed)
    }
}

struct Recorder {
    quality: Arc<PeerQuality>,
    traffic: Arc<TrafficFlows>,
    directory: Arc<ArcSwap<Directory>>,
    attributes: Arc<AccountAttributes>,
}

impl Recorder {
    fn run(&self, queue: &Receiver<ObservedBatch>, waiting: &AtomicU64) {
        for (accepted, observations) in queue {
            self.traffic.add(Timestamp::now(), &accepted, &observations);
            self.record(&observations);
            waiting.fetch_sub(observations.len() as u64, Relaxed);
        }
    }

    fn record(&self, observations: &[PeerObservation]) {
        let directory = self.directory.load();
        let names: Vec<Arc<str>> = observations.iter().map(|one| directory.name(one.peer)).collect();
        let attributes: Vec<_> = observations.iter().map(|one| self.attribute_reader(one)).collect();
        let observed: Vec<Observed<'_>> = observations
            .iter()
            .zip(&names)
            .zip(&attributes)
            .map(|((one, name), attribute)| Observed {
                peer: name,
                digits: digits(one),
                attribute,
                at: one.at,
                kind: one.kind,
            })
            .collect();
        self.quality.observe(&observed);
    }

    /// Returns a function that reads attributes as plugins see them: from the router or screen, else from the number's
    /// lookup, else from the account's configuration.
    fn attribute_reader(&self, observation: &PeerObservation) -> impl Fn(&str) -> Option<String> {
        move |name| {
            let message = observation.message.as_deref()?;
            let set = message.routed.changes.as_deref().and_then(|changes| changes.attribute(name));
            let known = message.routed.lookup.as_deref().and_then(|lookup| lookup.attribute(name));
            set.or(known).map(str::to_owned).or_else(|| self.attributes.of(message.origin, name))
        }
    }
}

/// The leading digits of the destination, without a plus sign.
fn digits(observation: &PeerObservation) -> &[u8] {
    let Some(message) = &observation.message else { return &[] };
    let value: &[u8] = &message.destination.value;
    let value = value.strip_prefix(b"+").unwrap_or(value);
    let length = value.iter().take(MAX_DIGITS).take_while(|octet| octet.is_ascii_digit()).count();
    value.get(..length).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use capabilities::{QualityDimension, QualityGrant};
    use model::{
        Address, MessageChanges, MessageId, ObservationKind, PeerId, PluginVersion, RoutingDecision,
        Timestamp, Verdict,
    };
    use std::collections::{BTreeMap, HashMap};

    const AT: Timestamp = Timestamp(1_800_000_000_000);

    fn message(destination: &str, campaign: Option<&str>) -> model::Message {
        let by = Arc::new(PluginVersion { plugin: "test".to_owned(), version: "1".to_owned() });
        let changes = campaign.map(|campaign| {
            let mut changes = MessageChanges::default();
            changes.set_attribute("campaign".into(), campaign.into());
            Box::new(changes)
        });
        model::Message {
            id: MessageId(1),
            accepted_at: AT,
            ..model::Message::new(
                PeerId(0),
                Address::new(0, 1, b"10655"),
                Address::new(1, 1, destination.as_bytes()),
                model::Text::default(),
                AT,
                RoutingDecision { changes, ..RoutingDecision::new(Verdict::Forward(Vec::new()), by) },
            )
        }
    }

    fn observation(message: Option<model::Message>) -> PeerObservation {
        let kind = ObservationKind::Accepted;
        PeerObservation { peer: PeerId(1), origin: PeerId(0), at: AT, message: message.map(Arc::new), kind }
    }

    fn recorder() -> Recorder {
        let mut directory = Directory::new();
        for name in ["acme", "north"] {
            directory.intern(name).unwrap();
        }
        let attributes = Arc::<AccountAttributes>::default();
        let of_account = BTreeMap::from([("campaign".to_owned(), "of the account".to_owned())]);
        attributes.publish(HashMap::from([(PeerId(0), of_account)]));
        let directory = Arc::new(ArcSwap::from_pointee(directory));
        let traffic = Arc::new(TrafficFlows::new(AT));
        Recorder { quality: Arc::default(), traffic, directory, attributes }
    }

    #[test]
    fn observations_are_counted_by_name_digits_and_attribute() {
        let recorder = recorder();
        let access = recorder.quality.access(Some(&QualityGrant {
            window_ms: 60_000,
            digits: vec![4],
            attributes: vec!["campaign".to_owned()],
        }));
        recorder.record(&[
            observation(Some(message("+4915112345678", None))),
            observation(Some(message("4915112345678", Some("otp")))),
            observation(Some(message("491", None))),
            observation(None),
        ]);
        let accepted = |dimension: QualityDimension, value: &str| {
            access.windows(&dimension).unwrap().figures("north", value.as_bytes(), AT).accepted
        };
        assert_eq!(accepted(QualityDimension::Peer, ""), 4);
        assert_eq!(accepted(QualityDimension::Digits(4), "4915"), 2);
        let campaign = QualityDimension::Attribute("campaign".into());
        assert_eq!(accepted(campaign.clone(), "otp"), 1);
        assert_eq!(accepted(campaign, "of the account"), 2);
    }

    #[test]
    fn observations_beyond_the_limit_are_lost_and_counted() {
        // Nobody reads the queue.
        let (queue, _receiver) = bounded(MAX_BATCHES);
        let recorder = Arc::new(recorder());
        let observer = PeerObserver { queue, recorder, waiting: Arc::default(), lost: Arc::default() };
        let many = |count: u64| (0..count).map(|_| observation(None)).collect::<Vec<_>>();
        observer.observe(Vec::new(), many(MAX_WAITING - 1));
        observer.observe(Vec::new(), many(2));
        assert_eq!(observer.lost(), 2);
        observer.observe(Vec::new(), many(1));
        observer.observe(Vec::new(), many(1));
        assert_eq!(observer.lost(), 3);
    }
}
