//! Limits the connections of one listener. At a limit, the oldest unidentified connection is displaced.

use crate::AddressGroup;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tokio::sync::Notify;

/// The limits of one listener, in connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// All connections together; at least 1.
    pub connections: usize,
    /// Connections from one address group; at least 1.
    pub per_address: usize,
    /// Unidentified connections, a share of all. One more displaces the oldest of them.
    pub unidentified: usize,
    /// Permits beyond `connections`, for connections that would otherwise be refused. One more displaces the oldest
    /// of them.
    pub reserve: usize,
}

impl ConnectionLimits {
    /// Creates limits without a reserve. A quarter of all connections, but at least 16, may be unidentified.
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

/// Counters of one listener, or of several together.
#[derive(Debug, Default)]
pub struct ConnectionCounts {
    /// Connections accepted by the socket.
    pub accepted: AtomicU64,
    /// Connections refused at a limit.
    pub refused: AtomicU64,
    /// Unidentified connections closed because a newer one needed the permit.
    pub displaced: AtomicU64,
}

impl ConnectionCounts {
    /// Connections closed because of a limit: refused and displaced.
    #[must_use]
    pub fn turned_away(&self) -> u64 {
        self.refused.load(Relaxed) + self.displaced.load(Relaxed)
    }
}

/// The limiter of one listener. It survives a change of its limits.
#[derive(Debug)]
pub struct ConnectionLimiter {
    state: Mutex<LimiterState>,
    counts: Arc<ConnectionCounts>,
}

#[derive(Debug)]
struct LimiterState {
    limits: ConnectionLimits,
    /// Connections that hold a permit, without those in the reserve.
    open: usize,
    groups: FxHashMap<AddressGroup, usize>,
    /// By age.
    unidentified: BTreeMap<u64, (AddressGroup, Arc<Notify>)>,
    reserve: BTreeMap<u64, Arc<Notify>>,
    next: u64,
}

/// The reason why a permit was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionLimitReached {
    /// Identified connections hold all permits.
    Listener,
    /// Identified connections of the address group hold all its permits.
    Address,
}

impl ConnectionLimitReached {
    /// The reason as text, for the log.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::Listener => "connection limit of the listener reached",
            Self::Address => "connection limit of the address reached",
        }
    }
}

/// The permit of one connection, released when it is dropped.
#[derive(Debug)]
pub struct ConnectionPermit {
    limiter: Arc<ConnectionLimiter>,
    id: u64,
    group: AddressGroup,
    kind: Mutex<PermitKind>,
    displaced: Arc<Notify>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PermitKind {
    Unidentified,
    Identified,
    Reserve,
}

impl LimiterState {
    fn release(&mut self, group: AddressGroup) {
        self.open = self.open.saturating_sub(1);
        if let Some(count) = self.groups.get_mut(&group) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.groups.remove(&group);
            }
        }
    }

    /// Displaces the oldest unidentified connection, of `group` if one is given. Returns whether there was one.
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

    /// Makes room for one more connection of a group. Returns whether a connection was displaced for it.
    fn make_room(&mut self, group: AddressGroup) -> Result<bool, ConnectionLimitReached> {
        let limits = self.limits;
        if self.groups.get(&group).is_some_and(|count| *count >= limits.per_address) {
            return if self.displace(Some(group)) { Ok(true) } else { Err(ConnectionLimitReached::Address) };
        }
        if self.open >= limits.connections || self.unidentified.len() >= limits.unidentified {
            return if self.displace(None) { Ok(true) } else { Err(ConnectionLimitReached::Listener) };
        }
        Ok(false)
    }
}

impl ConnectionLimiter {
    /// Creates a limiter without connections. Several listeners may share `counts`.
    #[must_use]
    pub fn new(limits: ConnectionLimits, counts: Arc<ConnectionCounts>) -> Arc<Self> {
        let state = LimiterState {
            limits,
            open: 0,
            groups: FxHashMap::default(),
            unidentified: BTreeMap::new(),
            reserve: BTreeMap::new(),
            next: 0,
        };
        Arc::new(Self { state: Mutex::new(state), counts })
    }

    /// Changes the limits for connections that come from now on.
    pub fn set_limits(&self, limits: ConnectionLimits) {
        self.state.lock().limits = limits;
    }

    /// The number of connections that hold a permit.
    #[must_use]
    pub fn open(&self) -> usize {
        let state = self.state.lock();
        state.open + state.reserve.len()
    }

    /// The counters.
    #[must_use]
    pub fn counts(&self) -> &Arc<ConnectionCounts> {
        &self.counts
    }

    /// Acquires a permit for a connection from this address.
    ///
    /// # Errors
    /// If no permit is free and no unidentified connection can be displaced.
    pub fn admit(self: &Arc<Self>, address: IpAddr) -> Result<ConnectionPermit, ConnectionLimitReached> {
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
                PermitKind::Unidentified
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
                PermitKind::Reserve
            }
        };
        Ok(ConnectionPermit { limiter: self.clone(), id, group, kind: Mutex::new(kind), displaced })
    }
}

impl ConnectionPermit {
    /// Marks the connection as identified: its client has authenticated itself, and it is not displaced any more.
    /// Returns whether it still has its permit.
    pub fn identify(&self) -> bool {
        let mut kind = self.kind.lock();
        match *kind {
            PermitKind::Identified => true,
            PermitKind::Reserve => self.limiter.state.lock().reserve.contains_key(&self.id),
            PermitKind::Unidentified => {
                let holds_permit = self.limiter.state.lock().unidentified.remove(&self.id).is_some();
                if holds_permit {
                    *kind = PermitKind::Identified;
                }
                holds_permit
            }
        }
    }

    /// Whether the permit is one of the reserve.
    #[must_use]
    pub fn is_in_reserve(&self) -> bool {
        *self.kind.lock() == PermitKind::Reserve
    }

    /// Completes when a newer connection has displaced this one, which must be closed at once. One task may wait for
    /// it.
    pub async fn displaced(&self) {
        self.displaced.notified().await;
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let mut state = self.limiter.state.lock();
        let holds_permit = match *self.kind.lock() {
            PermitKind::Identified => true,
            PermitKind::Unidentified => state.unidentified.remove(&self.id).is_some(),
            PermitKind::Reserve => {
                state.reserve.remove(&self.id);
                false
            }
        };
        if holds_permit {
            state.release(self.group);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn limiter(
        connections: usize,
        per_address: usize,
        unidentified: usize,
        reserve: usize,
    ) -> Arc<ConnectionLimiter> {
        let limits = ConnectionLimits { connections, per_address, unidentified, reserve };
        ConnectionLimiter::new(limits, Arc::default())
    }

    fn address(last: u8) -> IpAddr {
        Ipv4Addr::new(192, 0, 2, last).into()
    }

    async fn is_displaced(permit: &ConnectionPermit) -> bool {
        tokio::select! {
            biased;
            () = permit.displaced() => true,
            () = std::future::ready(()) => false,
        }
    }

    #[tokio::test]
    async fn the_oldest_unidentified_connection_is_displaced_and_identified_ones_are_not() {
        let limiter = limiter(4, 4, 2, 0);
        let identified = limiter.admit(address(1)).unwrap();
        assert!(identified.identify() && identified.identify());
        let oldest = limiter.admit(address(2)).unwrap();
        let newer = limiter.admit(address(3)).unwrap();
        let newest = limiter.admit(address(4)).unwrap();
        assert!(is_displaced(&oldest).await && !oldest.identify());
        assert!(!is_displaced(&identified).await && !is_displaced(&newer).await);
        assert_eq!(limiter.open(), 3);
        drop(oldest);
        assert_eq!(limiter.open(), 3, "a displaced connection gives its permit back once");
        assert!(newer.identify() && newest.identify());
        let last = limiter.admit(address(5)).unwrap();
        assert!(last.identify());
        assert_eq!(limiter.admit(address(6)).unwrap_err(), ConnectionLimitReached::Listener);
        assert_eq!(limiter.counts().turned_away(), 2);
        drop((identified, newer, newest, last));
        assert_eq!(limiter.open(), 0);
        assert!(limiter.state.lock().groups.is_empty());
    }

    #[tokio::test]
    async fn an_address_at_its_limit_displaces_only_its_own_connections() {
        let limiter = limiter(10, 2, 10, 0);
        let other = limiter.admit(address(1)).unwrap();
        let first = limiter.admit(address(2)).unwrap();
        let second = limiter.admit(address(2)).unwrap();
        assert!(second.identify());
        let third = limiter.admit(address(2)).unwrap();
        assert!(is_displaced(&first).await && !is_displaced(&other).await);
        assert!(third.identify());
        assert_eq!(limiter.admit(address(2)).unwrap_err(), ConnectionLimitReached::Address);
    }

    #[test]
    fn ipv6_counts_by_its_network_of_64_bits() {
        let limiter = limiter(10, 1, 10, 0);
        let first = limiter.admit("2001:db8::1".parse().unwrap()).unwrap();
        assert!(first.identify());
        assert!(limiter.admit("2001:db8::ffff:1".parse().unwrap()).is_err());
        assert!(limiter.admit("2001:db8:0:1::1".parse().unwrap()).is_ok());
    }

    #[tokio::test]
    async fn a_connection_over_the_limit_gets_a_reserve_permit() {
        let limiter = limiter(1, 1, 1, 1);
        let identified = limiter.admit(address(1)).unwrap();
        assert!(identified.identify() && !identified.is_in_reserve());
        let first = limiter.admit(address(2)).unwrap();
        assert!(first.is_in_reserve() && first.identify());
        let second = limiter.admit(address(1)).unwrap();
        assert!(second.is_in_reserve() && is_displaced(&first).await && !first.identify());
        assert_eq!(limiter.open(), 2);
        drop((first, second, identified));
        assert_eq!(limiter.open(), 0);
    }

    #[test]
    fn check_143_changed_limits_apply_to_new_connections() {
        let limiter = limiter(1, 1, 1, 0);
        let first = limiter.admit(address(1)).unwrap();
        assert!(first.identify() && limiter.admit(address(2)).is_err());
        limiter.set_limits(ConnectionLimits::new(2, 1));
        assert!(limiter.admit(address(2)).is_ok());
    }
}
