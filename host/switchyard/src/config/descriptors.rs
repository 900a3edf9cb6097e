//! Distributes the process's file descriptors over the listeners.

use super::{Config, RedisListener};
use gsm::GsmOptions;
use ports::descriptor_share;

/// Descriptors reserved for everything except listener and peer connections: files, the archive, pushes, the local
/// socket.
const OWN_DESCRIPTORS: u64 = 512;

impl Config {
    /// Maximum number of connections of all listeners and to all peers. Each needs a descriptor; an MSC needs a second
    /// one to the HLR.
    pub(crate) fn connections(&self) -> u64 {
        self.accepted_connections() + self.dialled_connections()
    }

    fn accepted_connections(&self) -> u64 {
        let links = self.listeners.iter().map(|listener| listener.limits().connections);
        let business = self.business.iter().map(|listener| listener.connections);
        let redis = self.redis.iter().map(|listener| listener.options.connections);
        let gsm = self.networks.iter().map(|network| 2 * network.links.connections);
        let sum: usize = links.chain(business).chain(redis).chain(gsm).chain([self.http.connections]).sum();
        (sum + self.http.limits().connections.reserve) as u64
    }

    fn dialled_connections(&self) -> u64 {
        let peers = self.peers.iter().map(|peer| peer.links.links);
        let gateways = self.gateways.iter().map(|gateway| gateway.links.connections());
        peers.chain(gateways).sum::<usize>() as u64
    }

    /// Scales the limits of all listeners, in proportion, to a limit of descriptors, so that a flooded listener cannot
    /// starve the others. Returns whether a limit was reduced.
    pub(crate) fn fit_descriptors(&mut self, limit: Option<u64>) -> bool {
        let Some(limit) = limit else { return false };
        let needed = self.accepted_connections();
        let available = limit.saturating_sub(OWN_DESCRIPTORS + self.dialled_connections());
        if needed <= available {
            return false;
        }
        let fit = |most: &mut usize, per_address: &mut usize, unidentified: &mut usize| {
            *most = descriptor_share(*most, needed, available);
            *per_address = (*per_address).min(*most);
            *unidentified = descriptor_share(*unidentified, needed, available);
        };
        for listener in &mut self.listeners {
            let [most, per_address, unbound] = listener.limits_mut();
            fit(most, per_address, unbound);
        }
        if let Some(listener) = &mut self.business {
            let (most, per_address) = (&mut listener.connections, &mut listener.connections_per_address);
            fit(most, per_address, &mut listener.unauthenticated_connections);
        }
        if let Some(RedisListener { options, .. }) = &mut self.redis {
            let (most, per_address) = (&mut options.connections, &mut options.connections_per_address);
            fit(most, per_address, &mut options.unauthenticated_connections);
        }
        for GsmOptions { connections, connections_per_address, unidentified_connections, .. } in
            self.networks.iter_mut().map(|network| &mut network.links)
        {
            fit(connections, connections_per_address, unidentified_connections);
        }
        let http = &mut self.http;
        fit(&mut http.connections, &mut http.connections_per_address, &mut http.unauthenticated_connections);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn listeners_share_the_descriptor_limit() {
        let text = "[appliance]\ndata = \"/tmp\"\n[business]\nlisten = \"127.0.0.1:0\"\n\
                    [[listener]]\nname = \"a\"\nlisten = \"127.0.0.1:0\"\nconnections = 1000000\n";
        let config = || Config::parse(text, Path::new("/nowhere")).unwrap();
        let mut fitted = config();
        assert!(fitted.fit_descriptors(Some(4_096)));
        assert!(fitted.connections() <= 4_096 - OWN_DESCRIPTORS + 16, "{}", fitted.connections());
        let listener = fitted.listeners[0].limits();
        assert!(listener.connections > 3_000 && listener.unidentified < listener.connections);
        assert!(fitted.http.connections >= 1);
        let mut untouched = config();
        assert!(!untouched.fit_descriptors(None) && !untouched.fit_descriptors(Some(2_000_000)));
        assert_eq!(untouched.connections(), config().connections());
    }
}
