//! The listeners' shares of the file descriptors that the process may have.

use super::Config;
use doors::{ConnectionLimits, descriptor_share};

/// Descriptors for everything that is no connection of a listener or to a peer: files, the archive, pushes, the shell.
const OWN: u64 = 512;

impl Config {
    /// Connections that all listeners may have, and those to peers: each takes a descriptor, and an MSC's a second to the HLR.
    pub(crate) fn connections(&self) -> u64 {
        self.accepted_connections() + self.dialled_connections()
    }

    fn accepted_connections(&self) -> u64 {
        let smpp = self.listeners.iter().map(|listener| listener.connections);
        let sgip = self.sgip_listeners.iter().map(|listener| listener.connections);
        let business = self.business.iter().map(|door| door.limits.connections.connections);
        let redis = self.redis.iter().map(|door| door.options.connections);
        let gsm = self.networks.iter().map(|network| 2 * network.links.limits.connections);
        let http = self.http_limits.connections;
        let sum: usize = smpp.chain(sgip).chain(business).chain(redis).chain(gsm).sum();
        (sum + http.connections + http.reserve) as u64
    }

    fn dialled_connections(&self) -> u64 {
        let peers = self.peers.iter().map(|peer| peer.links.links);
        let gateways = self.gateways.iter().map(|gateway| gateway.links.connections);
        peers.chain(gateways).sum::<usize>() as u64
    }

    /// Keeps all listeners together within a limit of descriptors, each by the share that it wants: one that is flooded leaves
    /// the others theirs. Says whether that made any of them smaller.
    pub(crate) fn fit_descriptors(&mut self, limit: Option<u64>) -> bool {
        let Some(limit) = limit else { return false };
        let wanted = self.accepted_connections();
        let available = limit.saturating_sub(OWN + self.dialled_connections());
        if wanted <= available {
            return false;
        }
        let fit = |most: &mut usize, per_address: &mut usize, unidentified: &mut usize| {
            *most = descriptor_share(*most, wanted, available);
            *per_address = (*per_address).min(*most);
            *unidentified = descriptor_share(*unidentified, wanted, available);
        };
        let fit_limits = |limits: &mut ConnectionLimits| {
            fit(&mut limits.connections, &mut limits.per_address, &mut limits.unidentified);
        };
        for smpp in &mut self.listeners {
            fit(&mut smpp.connections, &mut smpp.connections_per_address, &mut smpp.unbound_connections);
        }
        for sgip in &mut self.sgip_listeners {
            fit(&mut sgip.connections, &mut sgip.connections_per_address, &mut sgip.unbound_connections);
        }
        if let Some(door) = &mut self.business {
            fit_limits(&mut door.limits.connections);
        }
        if let Some(door) = &mut self.redis {
            let options = &mut door.options;
            fit(
                &mut options.connections,
                &mut options.connections_per_address,
                &mut options.unauthenticated_connections,
            );
        }
        for network in &mut self.networks {
            fit_limits(&mut network.links.limits);
        }
        fit_limits(&mut self.http_limits.connections);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn listeners_together_keep_to_the_limit_of_descriptors() {
        let text = "[appliance]\ndata = \"/tmp\"\n[business]\nlisten = \"127.0.0.1:0\"\n\
                    [[listener]]\nname = \"a\"\nlisten = \"127.0.0.1:0\"\nconnections = 1000000\n";
        let config = || Config::parse(text, Path::new("/nowhere")).unwrap();
        let mut fitted = config();
        assert!(fitted.fit_descriptors(Some(4_096)));
        assert!(fitted.connections() <= 4_096 - OWN + 16, "{}", fitted.connections());
        let listener = &fitted.listeners[0];
        assert!(listener.connections > 3_000 && listener.unbound_connections < listener.connections);
        assert!(fitted.http_limits.connections.connections >= 1);
        let mut untouched = config();
        assert!(!untouched.fit_descriptors(None) && !untouched.fit_descriptors(Some(2_000_000)));
        assert_eq!(untouched.connections(), config().connections());
    }
}
