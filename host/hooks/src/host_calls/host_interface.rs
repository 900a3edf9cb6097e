use super::InstanceState;

/// An interface of the host that plugins call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostInterface {
    /// Lines for the log.
    Log,
    /// The time of the call.
    Clock,
    /// Tables of the plugin and of the appliance.
    Tables,
    /// Counters.
    Counters,
    /// The states of peers.
    Peers,
    /// Number pools.
    Numbers,
    /// The text of the message.
    Body,
    /// Further fields of the message.
    Details,
    /// Reports of faults.
    Fault,
    /// Key-values.
    Kv,
    /// HTTP requests.
    Http,
    /// Home location registers.
    Hlr,
    /// Secrets of the current peer.
    Secrets,
    /// The domain name system.
    Dns,
}

impl HostInterface {
    /// All interfaces.
    pub const ALL: [Self; 14] = [
        Self::Log,
        Self::Clock,
        Self::Tables,
        Self::Counters,
        Self::Peers,
        Self::Numbers,
        Self::Body,
        Self::Details,
        Self::Fault,
        Self::Kv,
        Self::Http,
        Self::Hlr,
        Self::Secrets,
        Self::Dns,
    ];

    /// Its name in the contract.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Log => "log",
            Self::Clock => "clock",
            Self::Tables => "tables",
            Self::Counters => "counters",
            Self::Peers => "peers",
            Self::Numbers => "numbers",
            Self::Body => "body",
            Self::Details => "details",
            Self::Fault => "fault",
            Self::Kv => "kv",
            Self::Http => "http",
            Self::Hlr => "hlr",
            Self::Secrets => "secrets",
            Self::Dns => "dns",
        }
    }
}

/// Host calls of one call of a plugin, in the order of [`HostInterface::ALL`]. An instance counts for itself, without
/// atomics; its generation adds them up after each call.
pub(crate) type HostCallCounts = [u32; HostInterface::ALL.len()];

impl InstanceState {
    /// Counts a host call.
    pub(super) fn count_call(&mut self, interface: HostInterface) {
        let count = &mut self.host_calls[interface as usize];
        *count = count.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::HostInterface;

    #[test]
    fn each_interface_is_at_its_place() {
        for (place, interface) in HostInterface::ALL.into_iter().enumerate() {
            assert_eq!(interface as usize, place, "{}", interface.name());
        }
    }
}
