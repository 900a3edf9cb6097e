use bytes::Bytes;
use model::{ErrorClass, PeerId};
use ports::link::ClientTls;
use ports::{IpNetwork, ServerTlsFiles, SourceRules};
use smpp::BindMode;
use smpp::message_id::MessageIdForm;
use std::collections::HashMap;
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

/// A password. It is not shown in debug output.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Secret(pub Bytes);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(hidden)")
    }
}

/// Options that all links share.
#[derive(Clone, Debug, PartialEq)]
pub struct LinksOptions {
    /// Our SMPP system_id, at most 15 octets.
    pub system_id: Bytes,
    /// How long output may wait for a peer that does not read; after that the link is closed.
    pub write_timeout: Duration,
    /// Octets that may wait to be written to one peer before nothing more is read from it; at four times this the
    /// link is closed.
    pub output_limit: usize,
    /// How long a closing link waits for commands that are still on their way to it.
    pub close_timeout: Duration,
    /// Concurrent password verifications; each uses a thread, and some megabytes for some milliseconds.
    pub verifications: usize,
}

impl Default for LinksOptions {
    fn default() -> Self {
        Self {
            system_id: Bytes::from_static(b"SWITCHYARD"),
            write_timeout: Duration::from_secs(15),
            output_limit: 1 << 20,
            close_timeout: Duration::from_secs(5),
            verifications: 1,
        }
    }
}

/// Options of an SMPP listener.
#[derive(Clone, Debug, PartialEq)]
pub struct ListenerOptions {
    /// The name in the configuration.
    pub name: String,
    /// Address and port; port 0 takes any free port.
    pub listen: SocketAddr,
    /// All connections together.
    pub connections: usize,
    /// Connections from one address.
    pub connections_per_address: usize,
    /// Connections that are not bound yet, a share of all: one more displaces the oldest of them.
    pub unbound_connections: usize,
    /// The time for the TLS handshake and the bind.
    pub bind_timeout: Duration,
    /// The silence after which a bound connection is unbound and closed.
    pub inactivity: Duration,
    /// The silence after which an enquire_link is sent.
    pub enquire_interval: Duration,
    /// The time for its answer.
    pub enquire_timeout: Duration,
    /// The time for the rest of a PDU after its first octet.
    pub partial_timeout: Duration,
    /// The time that an ESME has to answer a deliver_sm.
    pub response_timeout: Duration,
    /// The TLS files, if the listener uses TLS.
    pub tls: Option<ServerTlsFiles>,
}

impl ListenerOptions {
    /// Options with the defaults of the fact sheet.
    #[must_use]
    pub fn new(name: &str, listen: SocketAddr) -> Self {
        Self {
            name: name.to_owned(),
            listen,
            connections: 1000,
            connections_per_address: 100,
            unbound_connections: 250,
            bind_timeout: Duration::from_secs(10),
            inactivity: Duration::from_secs(300),
            enquire_interval: Duration::from_secs(30),
            enquire_timeout: Duration::from_secs(10),
            partial_timeout: Duration::from_secs(30),
            response_timeout: Duration::from_secs(30),
            tls: None,
        }
    }
}

/// The bind modes that an account may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BindModes {
    /// bind_transmitter.
    pub transmitter: bool,
    /// bind_receiver.
    pub receiver: bool,
    /// bind_transceiver.
    pub transceiver: bool,
}

impl BindModes {
    /// All three.
    pub const ALL: Self = Self { transmitter: true, receiver: true, transceiver: true };

    pub(crate) fn allow(self, mode: BindMode) -> bool {
        match mode {
            BindMode::Transmitter => self.transmitter,
            BindMode::Receiver => self.receiver,
            BindMode::Transceiver => self.transceiver,
        }
    }
}

/// An account, whose ESMEs bind to us.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkAccountOptions {
    /// The name in the configuration.
    pub name: String,
    /// The peer id.
    pub peer: PeerId,
    /// The system_id of its binds.
    pub system_id: Bytes,
    /// The argon2 hash of its password, in PHC form.
    pub password_hash: String,
    /// The allowed bind modes.
    pub bind: BindModes,
    /// The networks that it may bind from; empty: any.
    pub networks: Vec<IpNetwork>,
    /// Segments a second that it may submit, over all sessions; `None`: no limit.
    pub rate: Option<f64>,
    /// The burst; at least a tenth of a second's rate.
    pub burst: u32,
    /// Submissions of one session that may be unanswered; more wait.
    pub window: usize,
    /// Deliveries to one session that may be unanswered.
    pub deliver_window: usize,
    /// Concurrent sessions, over all protocols.
    pub sessions: usize,
    /// The source addresses that it may use.
    pub source: SourceRules,
    /// The validity of submissions without one.
    pub validity: Duration,
    /// Its SGIP side, if it has one.
    pub sgip: Option<crate::SpOptions>,
}

impl LinkAccountOptions {
    /// An account with the defaults: any bind from any network, no rate, a window of 100, ten sessions.
    #[must_use]
    pub fn new(name: &str, peer: PeerId, password_hash: &str) -> Self {
        Self {
            name: name.to_owned(),
            peer,
            system_id: Bytes::copy_from_slice(name.as_bytes()),
            password_hash: password_hash.to_owned(),
            bind: BindModes::ALL,
            networks: Vec::new(),
            rate: None,
            burst: 1,
            window: 100,
            deliver_window: 100,
            sessions: 10,
            source: SourceRules::default(),
            validity: Duration::from_secs(2 * 86_400),
            sgip: None,
        }
    }
}

/// The form of texts that are too long for one short message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum LongText {
    /// In one PDU, in message_payload.
    #[default]
    Payload,
    /// In segments with a UDH.
    Udh,
    /// In segments with the SAR TLVs.
    Sar,
}

/// A peer: an SMSC that we dial.
#[derive(Clone, Debug, PartialEq)]
pub struct PeerOptions {
    /// The name in the configuration.
    pub name: String,
    /// The peer id.
    pub peer: PeerId,
    /// Host and port.
    pub address: String,
    /// Our system_id at the peer.
    pub system_id: Bytes,
    /// Our password at the peer.
    pub password: Secret,
    /// The system_type that the peer expects.
    pub system_type: Bytes,
    /// The bind mode.
    pub bind: BindMode,
    /// The number of links to keep up.
    pub links: usize,
    /// Messages on one link that may be unanswered.
    pub window: usize,
    /// Requests of the peer on one link that may be unanswered; more wait.
    pub window_in: usize,
    /// The interface_version that we send; mostly 0x34.
    pub interface_version: u8,
    /// Whether the peer takes TLVs. `None`: decided by the version that it sends; a peer that sends none takes them.
    pub tlvs: Option<bool>,
    /// Whether validity_period is passed on.
    pub pass_validity: bool,
    /// The silence after which an enquire_link is sent.
    pub enquire_interval: Duration,
    /// The time for its answer.
    pub enquire_timeout: Duration,
    /// The time for the answer to a message.
    pub response_timeout: Duration,
    /// The time for the connection and for the answer to the bind.
    pub bind_timeout: Duration,
    /// The longest wait before the peer is dialed again; the first is one second, and each is twice the one before.
    pub redial_interval: Duration,
    /// The forms of the peer's message ids.
    pub message_id: MessageIdForm,
    /// The form of long texts.
    pub long_text: LongText,
    /// Error classes of statuses that differ from the standard ones.
    pub error_classes: HashMap<u32, ErrorClass>,
    /// The validity of messages from the peer.
    pub mo_validity: Duration,
    /// TLS options, if the peer uses TLS.
    pub tls: Option<ClientTls>,
}

impl PeerOptions {
    /// A peer with the defaults of the fact sheet: one transceiver link, a window of 10.
    #[must_use]
    pub fn new(name: &str, peer: PeerId, address: &str) -> Self {
        Self {
            name: name.to_owned(),
            peer,
            address: address.to_owned(),
            system_id: Bytes::new(),
            password: Secret::default(),
            system_type: Bytes::new(),
            bind: BindMode::Transceiver,
            links: 1,
            window: 10,
            window_in: 100,
            interface_version: 0x34,
            tlvs: None,
            pass_validity: true,
            enquire_interval: Duration::from_secs(30),
            enquire_timeout: Duration::from_secs(10),
            response_timeout: Duration::from_secs(30),
            bind_timeout: Duration::from_secs(10),
            redial_interval: Duration::from_secs(30),
            message_id: MessageIdForm::AsIs,
            long_text: LongText::Payload,
            error_classes: HashMap::new(),
            mo_validity: Duration::from_secs(3 * 86_400),
            tls: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_149_passwords_are_not_shown() {
        let mut peer = PeerOptions::new("up", PeerId(1), "127.0.0.1:1");
        peer.password = Secret(Bytes::from_static(b"tops3cret"));
        assert!(!format!("{peer:?}").contains("tops3cret"));
    }
}
