//! The acceptor of every listener: it takes connections, keeps to the limits, and lets the oldest connection give way that
//! has not said who it is.

use crate::{AddressGroup, Bucket};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// The limits of one listener, in connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// All together; at least 1.
    pub connections: usize,
    /// From one address group; at least 1.
    pub per_address: usize,
    /// Connections that have not identified themselves: a share of all. One more displaces the oldest of them.
    pub unidentified: usize,
    /// Places beyond `connections`, for connections that would be refused otherwise. Among them, too, the oldest gives way.
    pub reserve: usize,
}

impl ConnectionLimits {
    /// Limits without a reserve, where a quarter of all connections may be unidentified, but never fewer than 16 of them.
    #[must_use]
    pub fn new(connections: usize, per_address: usize) -> Self {
        let connections = connections.max(1);
        Self { connections, per_address, unidentified: Self::default_unidentified(connections), reserve: 0 }
    }

    /// The default for [`Self::unidentified`].
    #[must_use]
    pub fn default_unidentified(connections: usize) -> usize {
        (connections / 4).max(16).min(connections.max(1))
    }
}

/// Counts of one listener, or of several together.
#[derive(Debug, Default)]
pub struct ConnectionCounts {
    /// Connections that came in.
    pub accepted: AtomicU64,
    /// Connections that were closed at once, because there were too many.
    pub refused: AtomicU64,
    /// Connections that were closed unidentified, because a newer one needed the place.
    pub displaced: AtomicU64,
}

impl ConnectionCounts {
    /// Connections that were closed because there were too many: those refused and those displaced.
    #[must_use]
    pub fn turned_away(&self) -> u64 {
        self.refused.load(Relaxed) + self.displaced.load(Relaxed)
    }
}

/// The places of one listener. They outlive a change of its limits.
#[derive(Debug)]
pub struct Places {
    state: Mutex<State>,
    counts: Arc<ConnectionCounts>,
}

#[derive(Debug)]
struct State {
    limits: ConnectionLimits,
    /// Connections that hold a place, without those in the reserve.
    open: usize,
    groups: FxHashMap<AddressGroup, usize>,
    /// By age.
    unidentified: BTreeMap<u64, (AddressGroup, Arc<Notify>)>,
    reserve: BTreeMap<u64, Arc<Notify>>,
    next: u64,
}

/// Why a place was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// All places are taken by connections that have identified themselves.
    Listener,
    /// All places of the address group are.
    Address,
}

impl Full {
    /// In words, for a log line.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::Listener => "the listener has as many connections as it may",
            Self::Address => "the address has as many connections as it may",
        }
    }
}

/// The place of one connection, given back when dropped.
#[derive(Debug)]
pub struct Place {
    places: Arc<Places>,
    id: u64,
    group: AddressGroup,
    kind: Mutex<Kind>,
    displaced: Arc<Notify>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Unidentified,
    Identified,
    Reserve,
}

impl State {
    fn release(&mut self, group: AddressGroup) {
        self.open = self.open.saturating_sub(1);
        if let Some(count) = self.groups.get_mut(&group) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.groups.remove(&group);
            }
        }
    }

    /// Takes its place from the oldest unidentified connection, of this group if one is named; says whether there was one.
    fn displace(&mut self, group: Option<AddressGroup>) -> bool {
        let mut candidates = self.unidentified.iter();
        let Some(id) =
            candidates.find(|(_, (of, _))| group.is_none_or(|group| group == *of)).map(|(id, _)| *id)
        else {
            return false;
        };
        if let Some((group, notify)) = self.unidentified.remove(&id) {
            self.release(group);
            notify.notify_one();
        }
        true
    }

    /// Makes room for one more connection of a group; says whether a connection was displaced for it.
    fn make_room(&mut self, group: AddressGroup) -> Result<bool, Full> {
        let limits = self.limits;
        if self.groups.get(&group).is_some_and(|count| *count >= limits.per_address) {
            return if self.displace(Some(group)) { Ok(true) } else { Err(Full::Address) };
        }
        if self.open >= limits.connections || self.unidentified.len() >= limits.unidentified {
            return if self.displace(None) { Ok(true) } else { Err(Full::Listener) };
        }
        Ok(false)
    }
}

impl Places {
    /// No connection yet. Several listeners may share `counts`.
    #[must_use]
    pub fn new(limits: ConnectionLimits, counts: Arc<ConnectionCounts>) -> Arc<Self> {
        let state = State {
            limits,
            open: 0,
            groups: FxHashMap::default(),
            unidentified: BTreeMap::new(),
            reserve: BTreeMap::new(),
            next: 0,
        };
        Arc::new(Self { state: Mutex::new(state), counts })
    }

    /// Other limits, for connections that come from now on.
    pub fn set_limits(&self, limits: ConnectionLimits) {
        self.state.lock().limits = limits;
    }

    /// Connections that hold a place.
    #[must_use]
    pub fn open(&self) -> usize {
        let state = self.state.lock();
        state.open + state.reserve.len()
    }

    /// What has happened here.
    #[must_use]
    pub fn counts(&self) -> &Arc<ConnectionCounts> {
        &self.counts
    }

    /// A place for a connection from this address.
    ///
    /// # Errors
    /// When there is none, and none of an unidentified connection to take.
    pub fn admit(self: &Arc<Self>, address: IpAddr) -> Result<Place, Full> {
        self.counts.accepted.fetch_add(1, Relaxed);
        let group = AddressGroup::of(address);
        let displaced = Arc::new(Notify::new());
        let mut state = self.state.lock();
        let id = state.next;
        state.next += 1;
        let kind = match state.make_room(group) {
            Ok(was_displaced) => {
                self.counts.displaced.fetch_add(u64::from(was_displaced), Relaxed);
                state.open += 1;
                *state.groups.entry(group).or_default() += 1;
                state.unidentified.insert(id, (group, displaced.clone()));
                Kind::Unidentified
            }
            Err(full) if state.limits.reserve == 0 => {
                self.counts.refused.fetch_add(1, Relaxed);
                return Err(full);
            }
            Err(_) => {
                if state.reserve.len() >= state.limits.reserve
                    && let Some((_, oldest)) = state.reserve.pop_first()
                {
                    self.counts.displaced.fetch_add(1, Relaxed);
                    oldest.notify_one();
                }
                state.reserve.insert(id, displaced.clone());
                Kind::Reserve
            }
        };
        Ok(Place { places: self.clone(), id, group, kind: Mutex::new(kind), displaced })
    }
}

impl Place {
    /// The connection has said who it is, and proved it: from now on it is not displaced. Says whether it still has its place.
    pub fn identify(&self) -> bool {
        let mut kind = self.kind.lock();
        match *kind {
            Kind::Identified => true,
            Kind::Reserve => self.places.state.lock().reserve.contains_key(&self.id),
            Kind::Unidentified => {
                let has_place = self.places.state.lock().unidentified.remove(&self.id).is_some();
                if has_place {
                    *kind = Kind::Identified;
                }
                has_place
            }
        }
    }

    /// Whether the place is one of the reserve.
    #[must_use]
    pub fn is_in_reserve(&self) -> bool {
        *self.kind.lock() == Kind::Reserve
    }

    /// Ends when a newer connection has taken the place: this one is to be closed at once. One task may wait for it.
    pub async fn displaced(&self) {
        self.displaced.notified().await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = self.places.state.lock();
        let has_place = match *self.kind.lock() {
            Kind::Identified => true,
            Kind::Unidentified => state.unidentified.remove(&self.id).is_some(),
            Kind::Reserve => {
                state.reserve.remove(&self.id);
                false
            }
        };
        if has_place {
            state.release(self.group);
        }
    }
}

/// Accepts the connections of one socket.
#[derive(Debug)]
pub struct Acceptor {
    name: String,
    socket: Arc<TcpListener>,
    places: Arc<Places>,
    refusal: &'static [u8],
    log: LogBudget,
}

impl Acceptor {
    /// An acceptor; `name` is for the log.
    #[must_use]
    pub fn new(name: &str, socket: Arc<TcpListener>, places: Arc<Places>) -> Self {
        Self { name: name.to_owned(), socket, places, refusal: b"", log: LogBudget::new() }
    }

    /// What a client is told that is refused, in the words of its protocol.
    #[must_use]
    pub fn refuse_with(mut self, refusal: &'static [u8]) -> Self {
        self.refusal = refusal;
        self
    }

    /// The next connection that has a place. Cancel safe.
    pub async fn accept(&self) -> (TcpStream, SocketAddr, Place) {
        loop {
            let (stream, remote) = match self.socket.accept().await {
                Ok(accepted) => accepted,
                Err(error) => {
                    // Out of file descriptors, mostly: it passes, and until then a busy loop would not help.
                    if let Some(unlogged) = self.log.take() {
                        tracing::error!(listener = %self.name, %error, unlogged, "cannot accept connections");
                    }
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            };
            match self.places.admit(remote.ip()) {
                Ok(place) => {
                    // All protocols write whole messages at once.
                    let _ = stream.set_nodelay(true);
                    return (stream, remote, place);
                }
                Err(full) => {
                    // A client that does not take it at once goes without.
                    let _ = stream.try_write(self.refusal);
                    if let Some(unlogged) = self.log.take() {
                        let reason = full.reason();
                        tracing::warn!(listener = %self.name, %remote, reason, unlogged, "connection refused");
                    }
                }
            }
        }
    }
}

/// Bounds the log lines that strangers can cause: 20 at once and 2 a second.
#[derive(Debug)]
struct LogBudget(Mutex<(Bucket, u64)>);

impl LogBudget {
    fn new() -> Self {
        Self(Mutex::new((Bucket::new(2.0, 20, Instant::now()), 0)))
    }

    /// Whether one more line may be written; if so, how many were not since the last.
    fn take(&self) -> Option<u64> {
        let (bucket, unlogged) = &mut *self.0.lock();
        if bucket.take(1, Instant::now()) {
            return Some(std::mem::take(unlogged));
        }
        *unlogged += 1;
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn places(connections: usize, per_address: usize, unidentified: usize, reserve: usize) -> Arc<Places> {
        let limits = ConnectionLimits { connections, per_address, unidentified, reserve };
        Places::new(limits, Arc::default())
    }

    fn address(last: u8) -> IpAddr {
        Ipv4Addr::new(192, 0, 2, last).into()
    }

    async fn is_displaced(place: &Place) -> bool {
        tokio::select! {
            biased;
            () = place.displaced() => true,
            () = std::future::ready(()) => false,
        }
    }

    #[tokio::test]
    async fn the_oldest_unidentified_gives_way_and_an_identified_one_never() {
        let places = places(4, 4, 2, 0);
        let identified = places.admit(address(1)).unwrap();
        assert!(identified.identify() && identified.identify());
        let oldest = places.admit(address(2)).unwrap();
        let newer = places.admit(address(3)).unwrap();
        let newest = places.admit(address(4)).unwrap();
        assert!(is_displaced(&oldest).await && !oldest.identify());
        assert!(!is_displaced(&identified).await && !is_displaced(&newer).await);
        assert_eq!(places.open(), 3);
        drop(oldest);
        assert_eq!(places.open(), 3, "a displaced connection gives its place back once");
        assert!(newer.identify() && newest.identify());
        let last = places.admit(address(5)).unwrap();
        assert!(last.identify());
        assert_eq!(places.admit(address(6)).unwrap_err(), Full::Listener);
        assert_eq!(places.counts().turned_away(), 2);
        drop((identified, newer, newest, last));
        assert_eq!(places.open(), 0);
        assert!(places.state.lock().groups.is_empty());
    }

    #[tokio::test]
    async fn an_address_that_is_full_displaces_only_its_own() {
        let places = places(10, 2, 10, 0);
        let other = places.admit(address(1)).unwrap();
        let first = places.admit(address(2)).unwrap();
        let second = places.admit(address(2)).unwrap();
        assert!(second.identify());
        let third = places.admit(address(2)).unwrap();
        assert!(is_displaced(&first).await && !is_displaced(&other).await);
        assert!(third.identify());
        assert_eq!(places.admit(address(2)).unwrap_err(), Full::Address);
    }

    #[test]
    fn ipv6_counts_by_its_network_of_64_bits() {
        let places = places(10, 1, 10, 0);
        let first = places.admit("2001:db8::1".parse().unwrap()).unwrap();
        assert!(first.identify());
        assert!(places.admit("2001:db8::ffff:1".parse().unwrap()).is_err());
        assert!(places.admit("2001:db8:0:1::1".parse().unwrap()).is_ok());
    }

    #[tokio::test]
    async fn who_would_be_refused_gets_a_place_of_the_reserve() {
        let places = places(1, 1, 1, 1);
        let identified = places.admit(address(1)).unwrap();
        assert!(identified.identify() && !identified.is_in_reserve());
        let first = places.admit(address(2)).unwrap();
        assert!(first.is_in_reserve() && first.identify());
        let second = places.admit(address(1)).unwrap();
        assert!(second.is_in_reserve() && is_displaced(&first).await && !first.identify());
        assert_eq!(places.open(), 2);
        drop((first, second, identified));
        assert_eq!(places.open(), 0);
    }

    #[test]
    fn check_143_other_limits_count_from_the_next_connection_on() {
        let places = places(1, 1, 1, 0);
        let first = places.admit(address(1)).unwrap();
        assert!(first.identify() && places.admit(address(2)).is_err());
        places.set_limits(ConnectionLimits::new(2, 1));
        assert!(places.admit(address(2)).is_ok());
    }
}
