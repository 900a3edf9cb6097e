use crate::ListenerOptions;
use crate::sgip::SgipListenerOptions;
use crate::sp::SpListenerOptions;
use configuration::{Key, KeyValue as _, Keys, Natural, Section, Word};
use ports::link::ListenerSettings;
use ports::{ConnectionLimits, Protocol, ServerTlsFiles};
use std::net::SocketAddr;

/// The options of a listener, by protocol.
#[derive(Clone, Debug, PartialEq)]
pub enum ListenerKind {
    /// For ESMEs.
    Smpp(ListenerOptions),
    /// For SPs and gateways.
    Sgip(SgipListenerOptions),
    /// For SPs.
    Cmpp(SpListenerOptions),
    /// For SPs.
    Smgp(SpListenerOptions),
}

/// The protocol of a listener.
#[derive(Debug, Clone, Copy, Word)]
enum ListenerProtocol {
    /// SMPP 3.3, 3.4 and 5.0.
    Smpp,
    /// SGIP 1.2.
    Sgip,
    /// CMPP 2.0 and 3.0.
    Cmpp,
    /// SMGP 3.0 and 3.1.
    Smgp,
}

impl Keys for ListenerKind {
    fn read_keys(section: &Section<'_>) -> Self {
        match section.key_or(&Natural, "protocol", "\"smpp\"") {
            ListenerProtocol::Smpp => Self::Smpp(ListenerOptions::read_keys(section)),
            ListenerProtocol::Sgip => Self::Sgip(SgipListenerOptions::read_keys(section)),
            ListenerProtocol::Cmpp => Self::Cmpp(SpListenerOptions::read_keys(section)),
            ListenerProtocol::Smgp => Self::Smgp(SpListenerOptions::read_keys(section)),
        }
    }

    fn keys() -> Vec<Key> {
        let mut keys = ListenerOptions::keys();
        let protocol = Key::new("protocol", "The protocol.", ListenerProtocol::shape());
        keys.push(Key { default: Some("\"smpp\""), ..protocol });
        let is_new = |key: &Key| !keys.iter().any(|known| known.name == key.name);
        let more: Vec<Key> = SgipListenerOptions::keys().into_iter().filter(is_new).collect();
        keys.extend(more);
        keys
    }

    fn take_live(&mut self, new: &Self, live: bool) {
        if live {
            self.clone_from(new);
        }
    }
}

impl From<ListenerOptions> for ListenerKind {
    fn from(options: ListenerOptions) -> Self {
        Self::Smpp(options)
    }
}

impl From<SgipListenerOptions> for ListenerKind {
    fn from(options: SgipListenerOptions) -> Self {
        Self::Sgip(options)
    }
}

impl ListenerKind {
    /// Name in the configuration.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Smpp(options) => &options.name,
            Self::Sgip(options) => &options.name,
            Self::Cmpp(options) | Self::Smgp(options) => &options.name,
        }
    }

    /// The protocol.
    pub(crate) const fn protocol(&self) -> Protocol {
        match self {
            Self::Smpp(_) => Protocol::Smpp,
            Self::Sgip(_) => Protocol::Sgip,
            Self::Cmpp(_) => Protocol::Cmpp,
            Self::Smgp(_) => Protocol::Smgp,
        }
    }

    /// Address to listen on.
    #[must_use]
    pub fn listen(&self) -> SocketAddr {
        match self {
            Self::Smpp(options) => options.listen,
            Self::Sgip(options) => options.listen,
            Self::Cmpp(options) | Self::Smgp(options) => options.listen,
        }
    }

    /// Limits of connections: total, per address, and unbound.
    pub fn limits_mut(&mut self) -> [&mut usize; 3] {
        match self {
            Self::Smpp(ListenerOptions {
                connections, connections_per_address, unbound_connections, ..
            })
            | Self::Sgip(SgipListenerOptions {
                connections,
                connections_per_address,
                unbound_connections,
                ..
            })
            | Self::Cmpp(SpListenerOptions {
                connections,
                connections_per_address,
                unbound_connections,
                ..
            })
            | Self::Smgp(SpListenerOptions {
                connections,
                connections_per_address,
                unbound_connections,
                ..
            }) => [connections, connections_per_address, unbound_connections],
        }
    }

    /// The limits of connections.
    #[must_use]
    pub fn limits(&self) -> ConnectionLimits {
        let [connections, per_address, unidentified] = self.clone().limits_mut().map(|limit| *limit);
        ConnectionLimits { connections, per_address, unidentified, reserve: 0 }
    }

    /// TLS files; `None` without TLS.
    #[must_use]
    pub fn tls(&self) -> Option<&ServerTlsFiles> {
        match self {
            Self::Smpp(options) => options.tls.as_ref(),
            Self::Sgip(_) => None,
            Self::Cmpp(options) | Self::Smgp(options) => options.tls.as_ref(),
        }
    }

    pub(crate) fn settings(&self) -> ListenerSettings {
        let handshake_timeout = match self {
            Self::Smpp(options) => options.bind_timeout,
            Self::Sgip(options) => options.bind_timeout,
            Self::Cmpp(options) | Self::Smgp(options) => options.bind_timeout,
        };
        ListenerSettings {
            name: self.name().to_owned(),
            listen: self.listen(),
            limits: self.limits(),
            handshake_timeout,
            tls: self.tls().cloned(),
        }
    }
}
