//! Recent observations of peers: counts and times to DLRs over sliding windows.
//!
//! There are windows for the whole peer and, if bindings grant them, for leading digits of the destination and for
//! attributes of the message. Bindings with the same window and dimension share them.

mod quality_grant;
mod window;

pub use quality_grant::check_quality_grant;
pub use window::PeerFigures;

use api::QualityGrant;
use hashbrown::HashMap;
use model::{ObservationKind, Timestamp};
use parking_lot::{Mutex, RwLock};
use smallvec::SmallVec;
use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Weak};
use std::time::Duration;
use window::Window;

/// The window without a grant.
pub const DEFAULT_QUALITY_WINDOW: Duration = Duration::from_secs(300);
/// Maximum number of keys of one dimension. A key takes up to 12 KB if something is observed in each step.
const MAX_KEYS: usize = 10_000;
/// Number of observations after which readers get a turn.
const LOCKED_OBSERVATIONS: usize = 64;

/// The dimension of figures.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum QualityDimension {
    /// The whole peer.
    Peer,
    /// This number of leading digits of the destination.
    Digits(u8),
    /// The value of this attribute.
    Attribute(Box<str>),
}

/// An observation, with the data of its message that the dimensions need.
pub struct Observed<'a> {
    /// The name of the peer.
    pub peer: &'a str,
    /// The leading digits of the destination, without a plus sign; empty if the message is not known.
    pub digits: &'a [u8],
    /// The value of an attribute of the message.
    pub attribute: &'a dyn Fn(&str) -> Option<String>,
    /// The time.
    pub at: Timestamp,
    /// The kind of observation.
    pub kind: ObservationKind,
}

/// The figures of all peers.
#[derive(Debug)]
pub struct PeerQuality {
    /// The windows of whole peers that need no grant.
    peers: Arc<QualityWindows>,
    /// The windows that bindings use; each set is dropped with its last binding.
    granted: Mutex<Vec<Weak<QualityWindows>>>,
    refused_keys: Arc<AtomicU64>,
}

impl Default for PeerQuality {
    fn default() -> Self {
        let refused_keys = Arc::<AtomicU64>::default();
        let peers = QualityWindows::new(QualityDimension::Peer, DEFAULT_QUALITY_WINDOW, refused_keys.clone());
        Self { peers: Arc::new(peers), granted: Mutex::default(), refused_keys }
    }
}

impl PeerQuality {
    /// The windows of a binding with this grant.
    #[must_use]
    pub fn access(&self, grant: Option<&QualityGrant>) -> QualityAccess {
        let Some(grant) = grant else { return QualityAccess(vec![self.peers.clone()]) };
        let window = Duration::from_millis(grant.window_ms);
        let digits = grant.digits.iter().map(|digits| QualityDimension::Digits(*digits));
        let attributes =
            grant.attributes.iter().map(|name| QualityDimension::Attribute(name.as_str().into()));
        let dimensions = std::iter::once(QualityDimension::Peer).chain(digits).chain(attributes);
        QualityAccess(dimensions.map(|dimension| self.windows(dimension, window)).collect())
    }

    fn windows(&self, dimension: QualityDimension, window: Duration) -> Arc<QualityWindows> {
        if dimension == QualityDimension::Peer && window == DEFAULT_QUALITY_WINDOW {
            return self.peers.clone();
        }
        let mut granted = self.granted.lock();
        granted.retain(|windows| windows.strong_count() > 0);
        let same = |windows: &Arc<QualityWindows>| windows.dimension == dimension && windows.window == window;
        if let Some(known) = granted.iter().filter_map(Weak::upgrade).find(same) {
            return known;
        }
        let new = Arc::new(QualityWindows::new(dimension, window, self.refused_keys.clone()));
        granted.push(Arc::downgrade(&new));
        new
    }

    /// Adds observations to all windows.
    pub fn observe(&self, observations: &[Observed<'_>]) {
        let granted: Vec<Arc<QualityWindows>> =
            self.granted.lock().iter().filter_map(Weak::upgrade).collect();
        for windows in std::iter::once(&self.peers).chain(&granted) {
            for some in observations.chunks(LOCKED_OBSERVATIONS) {
                windows.observe(some);
            }
        }
    }

    /// The figures of a whole peer over [`DEFAULT_QUALITY_WINDOW`].
    #[must_use]
    pub fn of_peer(&self, peer: &str, now: Timestamp) -> PeerFigures {
        self.peers.figures(peer, &[], now)
    }

    /// Number of observations that were left out because their dimension was full, since the start.
    #[must_use]
    pub fn refused_keys(&self) -> u64 {
        self.refused_keys.load(Relaxed)
    }
}

/// The windows that a binding may read.
#[derive(Debug, Clone)]
pub struct QualityAccess(Vec<Arc<QualityWindows>>);

impl QualityAccess {
    /// The windows of a dimension; `None` if it is not granted.
    #[must_use]
    pub fn windows(&self, dimension: &QualityDimension) -> Option<&QualityWindows> {
        self.0.iter().find(|windows| windows.dimension == *dimension).map(|windows| &**windows)
    }
}

/// The windows of one dimension, by peer and value.
#[derive(Debug)]
pub struct QualityWindows {
    dimension: QualityDimension,
    window: Duration,
    keys: RwLock<Keys>,
    refused_keys: Arc<AtomicU64>,
}

#[derive(Debug, Default)]
struct Keys {
    windows: HashMap<Box<[u8]>, Window>,
    /// The step in which expired windows were last removed.
    swept: u64,
}

/// The peer's name, NUL, the value.
fn key(peer: &str, value: &[u8]) -> SmallVec<[u8; 64]> {
    let mut key = SmallVec::from_slice(peer.as_bytes());
    key.push(0);
    key.extend_from_slice(value);
    key
}

impl QualityWindows {
    fn new(dimension: QualityDimension, window: Duration, refused_keys: Arc<AtomicU64>) -> Self {
        Self { dimension, window, keys: RwLock::default(), refused_keys }
    }

    /// The length of the window.
    #[must_use]
    pub fn window(&self) -> Duration {
        self.window
    }

    /// The figures of a peer for a value of the dimension; all 0 if nothing was observed.
    #[must_use]
    pub fn figures(&self, peer: &str, value: &[u8], now: Timestamp) -> PeerFigures {
        let keys = self.keys.read();
        let step = window::step(now, self.window);
        keys.windows.get(&*key(peer, value)).map(|window| window.figures(step)).unwrap_or_default()
    }

    /// Adds observations to these windows only.
    pub fn observe(&self, observations: &[Observed<'_>]) {
        let mut keys = self.keys.write();
        for one in observations {
            let value = match &self.dimension {
                QualityDimension::Peer => Some(Cow::Borrowed(&b""[..])),
                QualityDimension::Digits(digits) => one.digits.get(..usize::from(*digits)).map(Cow::Borrowed),
                QualityDimension::Attribute(name) => {
                    (one.attribute)(name).map(|value| Cow::Owned(value.into_bytes()))
                }
            };
            let Some(value) = value else { continue };
            let step = window::step(one.at, self.window);
            if !keys.add(&key(one.peer, &value), step, one.kind) {
                self.refused_keys.fetch_add(1, Relaxed);
            }
        }
    }
}

impl Keys {
    /// Whether there is room for the key.
    fn add(&mut self, key: &[u8], step: u64, kind: ObservationKind) -> bool {
        if let Some(window) = self.windows.get_mut(key) {
            window.add(step, kind);
            return true;
        }
        if self.windows.len() >= MAX_KEYS && self.swept < step {
            self.swept = step;
            self.windows.retain(|_, window| !window.is_over(step));
        }
        if self.windows.len() >= MAX_KEYS {
            return false;
        }
        self.windows.entry(key.into()).or_default().add(step, kind);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observe(quality: &PeerQuality, peer: &str, digits: &str, at: u64, kind: ObservationKind) {
        quality.observe(&[Observed {
            peer,
            digits: digits.as_bytes(),
            attribute: &|name| (name == "campaign").then(|| "otp".to_owned()),
            at: Timestamp(at),
            kind,
        }]);
    }

    fn grant(digits: &[u8]) -> QualityGrant {
        QualityGrant { window_ms: 60_000, digits: digits.to_vec(), attributes: vec!["campaign".to_owned()] }
    }

    #[test]
    fn each_dimension_counts_its_own_values() {
        let quality = PeerQuality::default();
        let access = quality.access(Some(&grant(&[2, 4])));
        observe(&quality, "north", "4915", 1_000, ObservationKind::Accepted);
        observe(&quality, "north", "49", 1_000, ObservationKind::Accepted);
        observe(&quality, "south", "4915", 1_000, ObservationKind::Accepted);
        let accepted = |dimension: QualityDimension, value: &str| {
            let windows = access.windows(&dimension).unwrap();
            windows.figures("north", value.as_bytes(), Timestamp(2_000)).accepted
        };
        assert_eq!(accepted(QualityDimension::Peer, ""), 2);
        assert_eq!(accepted(QualityDimension::Digits(2), "49"), 2);
        assert_eq!(accepted(QualityDimension::Digits(4), "4915"), 1);
        assert_eq!(accepted(QualityDimension::Digits(4), "4916"), 0);
        assert_eq!(accepted(QualityDimension::Attribute("campaign".into()), "otp"), 2);
        assert!(access.windows(&QualityDimension::Digits(3)).is_none());
        assert!(access.windows(&QualityDimension::Attribute("brand".into())).is_none());
        assert_eq!(quality.of_peer("south", Timestamp(2_000)).accepted, 1);
    }

    #[test]
    fn bindings_with_the_same_grant_share_windows_until_the_last_ends() {
        let quality = PeerQuality::default();
        let before = quality.access(Some(&grant(&[2])));
        observe(&quality, "north", "49", 1_000, ObservationKind::Accepted);
        let figures = |access: &QualityAccess| {
            let windows = access.windows(&QualityDimension::Digits(2)).unwrap();
            windows.figures("north", b"49", Timestamp(1_000)).accepted
        };
        let after = quality.access(Some(&grant(&[2])));
        drop(before);
        assert_eq!(figures(&after), 1);
        drop(after);
        assert_eq!(figures(&quality.access(Some(&grant(&[2])))), 0, "nobody used it in between");
    }

    #[test]
    fn a_full_dimension_keeps_its_keys_until_they_expire() {
        let quality = PeerQuality::default();
        let access = quality.access(Some(&grant(&[5])));
        for number in 10_000..10_000 + MAX_KEYS {
            observe(&quality, "north", &number.to_string(), 1_000, ObservationKind::Accepted);
        }
        assert_eq!(quality.refused_keys(), 0);
        let accepted = |value: &str, at| {
            let windows = access.windows(&QualityDimension::Digits(5)).unwrap();
            windows.figures("north", value.as_bytes(), Timestamp(at)).accepted
        };
        observe(&quality, "north", "99999", 2_000, ObservationKind::Accepted);
        observe(&quality, "north", "10000", 2_000, ObservationKind::Accepted);
        assert_eq!((accepted("99999", 2_000), accepted("10000", 2_000)), (0, 2));
        assert_eq!(quality.refused_keys(), 1);
        observe(&quality, "north", "99999", 61_000, ObservationKind::Accepted);
        assert_eq!((accepted("99999", 61_000), accepted("10000", 61_000)), (1, 1));
    }
}
