use crate::sgip::GatewayOptions;
use crate::sp::SpGatewayOptions;
use bytes::Bytes;
use configuration::{Key, KeyValue as _, Keys, Natural, Section, Shape, Word};
use model::PeerId;
use ports::Protocol;
use std::sync::Arc;

/// The options of a gateway of an operator, by protocol.
#[derive(Clone, Debug, PartialEq)]
pub enum GatewayKind {
    /// China Unicom's protocol.
    Sgip(Arc<GatewayOptions>),
    /// China Mobile's protocol.
    Cmpp(Arc<SpGatewayOptions>),
    /// China Telecom's protocol.
    Smgp(Arc<SpGatewayOptions>),
}

/// The protocol of a gateway.
#[derive(Debug, Clone, Copy, Word)]
enum GatewayProtocol {
    /// SGIP 1.2 and 1.3, of China Unicom.
    Sgip,
    /// CMPP 2.0 and 3.0, of China Mobile.
    Cmpp,
    /// SMGP 3.0 and 3.1, of China Telecom.
    Smgp,
}

impl Keys for GatewayKind {
    fn read_keys(section: &Section<'_>) -> Self {
        match section.key_or(&Natural, "protocol", "\"sgip\"") {
            GatewayProtocol::Sgip => Self::Sgip(Arc::new(GatewayOptions::read_keys(section))),
            GatewayProtocol::Cmpp => Self::Cmpp(Self::read_sp(section, 6, |version| version & 0xF0 != 0x10)),
            GatewayProtocol::Smgp => Self::Smgp(Self::read_sp(section, 8, |version| version & 0xF0 != 0x20)),
        }
    }

    fn keys() -> Vec<Key> {
        let protocol = Key::new("protocol", "The protocol.", GatewayProtocol::shape());
        let mut keys = vec![Key { default: Some("\"sgip\""), label: Some("Protocol"), ..protocol }];
        let mut sp = SpGatewayOptions::keys();
        for mut key in GatewayOptions::keys() {
            match sp.iter().position(|other| other.name == key.name) {
                Some(at) => merge(&mut key, sp.remove(at)),
                None => key.required = false,
            }
            keys.push(key);
        }
        keys.extend(sp.into_iter().map(|key| Key { required: false, ..key }));
        keys
    }

    fn take_live(&mut self, new: &Self, live: bool) {
        if live {
            self.clone_from(new);
        }
    }
}

/// The defaults of keys that differ between the protocols.
const DEFAULTS: [(&str, &str); 4] = [
    ("version", "1.2 with SGIP, 3.0 with CMPP and SMGP"),
    ("window", "32 with SGIP, 16 with CMPP and SMGP"),
    ("response-timeout", "30s with SGIP, 60s with CMPP and SMGP"),
    ("add-86", "true with SGIP, false with CMPP and SMGP"),
];

/// Merges the declaration of a key with another protocol's declaration of it.
fn merge(key: &mut Key, other: Key) {
    key.required &= other.required;
    if key.default != other.default {
        key.default = None;
        key.default_as = DEFAULTS.iter().find(|(name, _)| *name == key.name).map(|(_, default)| *default);
    }
    if let (Shape::Words(words), Shape::Words(more)) = (&mut key.shape, other.shape) {
        for word in more {
            if !words.iter().any(|(known, _)| *known == word.0) {
                words.push(word);
            }
        }
    }
}

impl GatewayKind {
    fn read_sp(section: &Section<'_>, width: usize, is_version: fn(u8) -> bool) -> Arc<SpGatewayOptions> {
        let options = SpGatewayOptions::read_keys(section);
        if options.login_name.len() > width {
            section.error("login-name", format!("is longer than the field of {width} octets"));
        }
        for (key, value) in
            [("login-name", &options.login_name), ("login-password", &options.login_password.0)]
        {
            if value.is_empty() {
                section.error(key, "is missing: the appliance logs in with it".to_owned());
            }
        }
        if !is_version(options.version) {
            section.error("version", "is not a version of this protocol".to_owned());
        }
        Arc::new(options)
    }

    /// Name in the configuration.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Sgip(options) => &options.name,
            Self::Cmpp(options) | Self::Smgp(options) => &options.name,
        }
    }

    /// The peer id.
    #[must_use]
    pub fn peer(&self) -> PeerId {
        match self {
            Self::Sgip(options) => options.peer,
            Self::Cmpp(options) | Self::Smgp(options) => options.peer,
        }
    }

    /// Sets the peer id, which the configuration does not contain.
    pub fn set_peer(&mut self, peer: PeerId) {
        match self {
            Self::Sgip(options) => Arc::make_mut(options).peer = peer,
            Self::Cmpp(options) | Self::Smgp(options) => Arc::make_mut(options).peer = peer,
        }
    }

    /// Number of connections to the gateway.
    #[must_use]
    pub fn connections(&self) -> usize {
        match self {
            Self::Sgip(options) => options.node.connections,
            Self::Cmpp(options) | Self::Smgp(options) => options.connections,
        }
    }

    /// Greatest number of Submits on a connection without a response.
    #[must_use]
    pub fn window(&self) -> usize {
        match self {
            Self::Sgip(options) => options.node.window,
            Self::Cmpp(options) | Self::Smgp(options) => options.node.window,
        }
    }

    /// The protocol.
    #[must_use]
    pub fn protocol(&self) -> Protocol {
        match self {
            Self::Sgip(_) => Protocol::Sgip,
            Self::Cmpp(_) => Protocol::Cmpp,
            Self::Smgp(_) => Protocol::Smgp,
        }
    }

    /// The login name with which the gateway logs in at our listener, if it does so.
    #[must_use]
    pub fn inbound_login_name(&self) -> Option<&Bytes> {
        match self {
            Self::Sgip(options) => Some(&options.inbound_login_name).filter(|name| !name.is_empty()),
            Self::Cmpp(_) | Self::Smgp(_) => None,
        }
    }

    /// Whether the gateway recognises a repeated Submit on another connection, too: only SGIP's sequence numbers permit
    /// that.
    #[must_use]
    pub fn recognizes_repetitions(&self) -> bool {
        matches!(self, Self::Sgip(_))
    }
}

impl From<GatewayOptions> for GatewayKind {
    fn from(options: GatewayOptions) -> Self {
        Self::Sgip(Arc::new(options))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_that_differs_is_explained() {
        let (sgip, sp) = (GatewayOptions::keys(), SpGatewayOptions::keys());
        let differing = sgip
            .iter()
            .filter(|key| sp.iter().any(|other| other.name == key.name && other.default != key.default));
        for key in differing {
            assert!(DEFAULTS.iter().any(|(name, _)| *name == key.name), "{}", key.name);
        }
        let keys = GatewayKind::keys();
        let key = |name: &str| keys.iter().find(|key| key.name == name).unwrap();
        assert!(key("name").required && !key("node").required && key("window").default.is_none());
        assert!(matches!(&key("version").shape, Shape::Words(words) if words.len() == 6));
    }
}
