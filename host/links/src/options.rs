use bytes::Bytes;
use doors::{Network, ServerTls, SourceRules};
use model::{ErrorClass, PeerId};
use smpp::BindMode;
use smpp::message_id::MessageIdForm;
use std::collections::HashMap;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// A password: shown nowhere.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Secret(pub Bytes);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(hidden)")
    }
}

/// What all links share.
#[derive(Clone, Debug, PartialEq)]
pub struct LinksOptions {
    /// Our SMPP system_id, at most 15 octets.
    pub system_id: Bytes,
    /// How long what is to be written may wait for a peer that does not read; then its link is dropped.
    pub write_timeout: Duration,
    /// Octets that may wait to be written to one peer before nothing more is read from it; at four times this its link
    /// is dropped.
    pub output_limit: usize,
    /// How long a link that has closed waits for commands that are still on their way to it.
    pub leave_timeout: Duration,
    /// Password verifications that may run at a time; each takes a thread and some megabytes for some milliseconds.
    pub verifications: usize,
}

impl Default for LinksOptions {
    fn default() -> Self {
        Self {
            system_id: Bytes::from_static(b"SWITCHYARD"),
            write_timeout: Duration::from_secs(15),
            output_limit: 1 << 20,
            leave_timeout: Duration::from_secs(5),
            verifications: 1,
        }
    }
}

/// Where ESMEs connect to us.
#[derive(Clone, Debug, PartialEq)]
pub struct ListenerOptions {
    /// Its name in the configuration.
    pub name: String,
    /// Address and port; port 0 takes any that is free.
    pub listen: SocketAddr,
    /// Connections in all.
    pub connections: usize,
    /// Connections from one address.
    pub connections_per_address: usize,
    /// Connections that are not bound yet, a share of all: one more displaces the oldest of them.
    pub unbound_connections: usize,
    /// How long a connection may take to bind, its TLS handshake included.
    pub bind_timeout: Duration,
    /// Silence after which a bound connection is unbound and closed.
    pub inactivity: Duration,
    /// Silence after which an enquire_link is sent.
    pub enquire_interval: Duration,
    /// How long its answer may take.
    pub enquire_timeout: Duration,
    /// How long the rest of a PDU may take once its first octet has come.
    pub partial_timeout: Duration,
    /// How long an ESME may take to answer a deliver_sm.
    pub response_timeout: Duration,
    /// TLS, where the listener speaks it.
    pub tls: Option<ServerTls>,
}

impl ListenerOptions {
    /// The defaults of the fact sheet for a listener.
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

/// How a peer is spoken to over TLS.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ClientTls {
    /// Authorities that may have signed the peer's certificate, PEM; the system's bundle where it is not given.
    pub ca: Option<PathBuf>,
    /// The name that the certificate must carry; the host of the peer's address where it is not given.
    pub server_name: Option<String>,
    /// Our own certificate chain and key, PEM, where the peer wants one.
    pub certificate: Option<(PathBuf, PathBuf)>,
}

/// Which binds an account may make.
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

/// One whose ESMEs bind to us.
#[derive(Clone, Debug, PartialEq)]
pub struct AccountOptions {
    /// Its name in the configuration.
    pub name: String,
    /// Its number.
    pub peer: PeerId,
    /// The system_id of its binds.
    pub system_id: Bytes,
    /// The argon2 hash of its password, in PHC form.
    pub password_hash: String,
    /// What it may bind as.
    pub bind: BindModes,
    /// Where it may bind from; empty: from anywhere.
    pub networks: Vec<Network>,
    /// Parts a second that it may submit, over all its sessions; `None`: no limit.
    pub rate: Option<f64>,
    /// How many may come at once; never less than a tenth of a second brings.
    pub burst: u32,
    /// Submissions of one session that may be unanswered; more wait.
    pub window: usize,
    /// Deliveries to one session that may be unanswered.
    pub deliver_window: usize,
    /// Sessions at a time.
    pub sessions: usize,
    /// Source addresses.
    pub source: SourceRules,
    /// The validity of submissions that carry none.
    pub validity: Duration,
    /// Its SGIP side, where it has one.
    pub sgip: Option<crate::SpOptions>,
}

impl AccountOptions {
    /// An account with the defaults: any bind from anywhere, no rate, a window of 100, ten sessions.
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

/// How texts that are too long for one short message go to a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum LongText {
    /// Whole, in message_payload.
    #[default]
    Payload,
    /// In parts with a user data header.
    Udh,
    /// In parts with the SAR TLVs.
    Sar,
}

/// An SMSC that we dial.
#[derive(Clone, Debug, PartialEq)]
pub struct PeerOptions {
    /// Its name in the configuration.
    pub name: String,
    /// Its number.
    pub peer: PeerId,
    /// Host and port.
    pub address: String,
    /// Our system_id there.
    pub system_id: Bytes,
    /// Our password there.
    pub password: Secret,
    /// The system_type that it wants to see.
    pub system_type: Bytes,
    /// What to bind as.
    pub bind: BindMode,
    /// How many links to keep.
    pub links: usize,
    /// Messages on one link that may be unanswered.
    pub window: usize,
    /// Requests of the peer's on one link that may be unanswered by us; more wait.
    pub window_in: usize,
    /// The interface_version to show; 0x34 mostly.
    pub interface_version: u8,
    /// Whether it takes TLVs; `None` goes by the version that it shows, and takes none shown for yes.
    pub tlvs: Option<bool>,
    /// Whether validity_period is passed on.
    pub pass_validity: bool,
    /// Silence after which an enquire_link is sent.
    pub enquire_interval: Duration,
    /// How long its answer may take.
    pub enquire_timeout: Duration,
    /// How long it may take to answer a message.
    pub response_timeout: Duration,
    /// How long it may take to answer a connection and a bind.
    pub bind_timeout: Duration,
    /// The longest wait before it is dialled again; the first is a second, and each is twice the one before.
    pub redial_interval: Duration,
    /// The forms of its message ids.
    pub message_id: MessageIdForm,
    /// How long texts go to it.
    pub long_text: LongText,
    /// Statuses to which it gives a meaning of its own.
    pub error_classes: HashMap<u32, ErrorClass>,
    /// The validity of messages that come from it.
    pub mo_validity: Duration,
    /// TLS, where it wants it.
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
