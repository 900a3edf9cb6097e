use crate::sgip::SpOptions;
use crate::sp::SpAccountOptions;
use bytes::Bytes;
use configuration::{HostPort, KeyFormat, Keys, Section, Shape, Word};
use journal::LeaderLease;
use model::{ErrorClass, PeerId};
use ports::link::ClientTls;
use ports::{
    ConnectionLimits, IpNetwork, PasswordHashKey, ServerTlsFiles, SourceKeys, SourceRules, TlvKeys, TlvRules,
    default_burst,
};
use smpp::BindMode;
use smpp::message_id::MessageIdForm;
use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// A password. It is not shown in debug output.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Secret(pub Bytes);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(hidden)")
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

/// Options that all links share.
#[derive(Clone, Debug)]
pub struct LinksOptions {
    /// Our SMPP system_id, at most 15 octets.
    pub system_id: Bytes,
    /// Maximum time that output waits for a peer that does not read; after that, the link is closed.
    pub write_timeout: Duration,
    /// Octets of unwritten output from which the link reads nothing more from the peer. At four times this number, the
    /// link is closed.
    pub output_limit: usize,
    /// Maximum time that a closing link waits for commands that are on their way to it.
    pub close_timeout: Duration,
    /// Maximum number of concurrent password verifications. Each uses a thread, and some megabytes for some
    /// milliseconds.
    pub verifications: usize,
    /// Lease under which links may write messages.
    pub lease: Arc<LeaderLease>,
}

impl Default for LinksOptions {
    fn default() -> Self {
        Self {
            system_id: Bytes::from_static(b"SWITCHYARD"),
            write_timeout: Duration::from_secs(15),
            output_limit: 1 << 20,
            close_timeout: Duration::from_secs(5),
            verifications: 1,
            lease: Arc::default(),
        }
    }
}

/// Options of an SMPP listener.
#[derive(Clone, Debug, PartialEq, Keys)]
pub struct ListenerOptions {
    /// The listener's name.
    #[key(example = "smpp")]
    pub name: String,
    /// The address and port to listen on.
    #[key(example = "127.0.0.1:2775")]
    pub listen: SocketAddr,
    /// Maximum number of connections.
    #[key(range = 1..=1_000_000, default = 1000)]
    pub connections: usize,
    /// Maximum number of connections per IP address.
    #[key(range = 1..=1_000_000, default = 100)]
    pub connections_per_address: usize,
    /// Maximum number of unbound connections; a new one replaces the oldest.
    #[key(range = 1..=1_000_000, at_most = connections, default_as = "a quarter of `connections`",
        default_with = ConnectionLimits::default_unidentified(connections))]
    pub unbound_connections: usize,
    /// Maximum time until a connection must be bound, including the TLS handshake.
    #[key(default = "10s", default_as = "10s, with the other protocols 30s")]
    pub bind_timeout: Duration,
    /// Idle time after which a session is unbound (SMPP only).
    #[key(default = "300s")]
    pub inactivity: Duration,
    /// Idle time after which an enquire_link is sent (SMPP only).
    #[key(default = "30s")]
    pub enquire_interval: Duration,
    /// Maximum time for the enquire_link_resp (SMPP only).
    #[key(default = "10s")]
    pub enquire_timeout: Duration,
    /// Maximum time for the rest of a PDU after its first octets (SMPP only).
    #[key(default = "30s")]
    pub partial_timeout: Duration,
    /// Maximum time for an ESME's response to a deliver_sm (SMPP only).
    #[key(default = "30s")]
    pub response_timeout: Duration,
    /// TLS (not with SGIP).
    pub tls: Option<ServerTlsFiles>,
}

impl ListenerOptions {
    /// Options with the default values. Port 0 means any free port.
    #[must_use]
    pub fn new(name: &str, listen: SocketAddr) -> Self {
        Self { name: name.to_owned(), listen, ..Self::defaults() }
    }
}

const BIND_MODES: &[(&str, BindMode, &str)] = &[
    ("transceiver", BindMode::Transceiver, "Submits and receives."),
    ("transmitter", BindMode::Transmitter, "Submits only."),
    ("receiver", BindMode::Receiver, "Receives only."),
];

/// `[[account]]`: the links of an account, whose ESMEs bind to the appliance.
#[derive(Clone, Debug, PartialEq, Keys)]
#[keys(live = "applies from its next bind on", check = Self::check)]
pub struct LinkAccountOptions {
    /// The account's name.
    #[key(example = "acme")]
    pub name: String,
    /// The peer id.
    #[key(skip = PeerId(u32::MAX))]
    pub peer: PeerId,
    /// The system_id of its binds.
    #[key(length = ..=15, default_with = Bytes::from(name.clone()), default_as = "`name`", label = "System id")]
    pub system_id: Bytes,
    /// The hash of the password.
    #[key(format = PasswordHashKey, secret, example = "$argon2id$...", hint = "created with: switchyard hash-password",
        label = "Password")]
    pub password_hash: String,
    /// Allowed bind modes.
    #[key(words = BIND_MODES, default = ["transceiver", "transmitter", "receiver"], default_as = "all",
        label = "Permitted binds")]
    pub bind: Vec<BindMode>,
    /// Networks from which the account may connect.
    #[key(default_as = "any", label = "Source networks")]
    pub networks: Vec<IpNetwork>,
    /// Maximum number of submissions per second, over all sessions.
    #[key(default_as = "no limit", live = "applies from its next message on", label = "Rate")]
    pub rate: Option<f64>,
    /// Maximum number of submissions in a burst.
    #[key(range = 1..=10_000_000, default_as = "a tenth of `rate`", default_with = default_burst(rate),
        live = "applies from its next message on")]
    pub burst: u32,
    /// Maximum number of unanswered submissions per session; further ones wait.
    #[key(range = 1..=100_000, default = 100, label = "Window")]
    pub window: usize,
    /// Maximum number of unanswered deliveries per session.
    #[key(range = 1..=100_000, default = 100)]
    pub deliver_window: usize,
    /// Maximum number of sessions, over all protocols.
    #[key(range = 1..=100_000, default = 10, label = "Sessions")]
    pub sessions: usize,
    /// The source addresses that the account may use.
    #[key(format = SourceKeys, live = "applies from its next message on")]
    pub source: SourceRules,
    /// TLVs that the account's messages must have, and TLVs that are added if they are missing. They also apply to its
    /// business interface.
    #[key(format = TlvKeys, default_as = "none", live = "applies from its next message on")]
    pub tlv_rules: TlvRules,
    /// Validity of messages that do not specify one.
    #[key(default = "2d", live = "applies from its next message on", label = "Validity")]
    pub validity: Duration,
    /// The SGIP settings of an account that is an SP.
    #[key(live = "its SGIP links reconnect")]
    pub sgip: Option<SpOptions>,
    /// The CMPP settings of an account that is an SP.
    #[key(live = "applies from its next login on")]
    pub cmpp: Option<SpAccountOptions>,
    /// The SMGP settings of an account that is an SP.
    #[key(live = "applies from its next login on")]
    pub smgp: Option<SpAccountOptions>,
}

impl LinkAccountOptions {
    /// An account with the defaults: any bind mode, any network, no rate limit, a window of 100, ten sessions.
    #[must_use]
    pub fn new(name: &str, peer: PeerId, password_hash: &str) -> Self {
        Self {
            name: name.to_owned(),
            peer,
            system_id: Bytes::copy_from_slice(name.as_bytes()),
            password_hash: password_hash.to_owned(),
            ..Self::defaults()
        }
    }

    fn check(&mut self, section: &Section<'_>) {
        if !section.has("system-id") && (self.name.len() > 15 || !self.name.is_ascii()) {
            section.error("name", "must be at most 15 ASCII characters, or needs a system-id");
        }
        if let Some(sp) = &mut self.sgip {
            sp.complete(&self.name, &section.section("sgip"));
        }
        let sides = [self.sgip.is_some(), self.cmpp.is_some(), self.smgp.is_some()];
        if sides.into_iter().filter(|side| *side).count() > 1 {
            let what = "has several of sgip, cmpp and smgp: a report must come back by the protocol of its message, so \
                        each protocol needs an account of its own";
            section.error("name", what);
        }
        for (sp, width, key) in [(&mut self.cmpp, 6, "cmpp"), (&mut self.smgp, 8, "smgp")] {
            if let Some(sp) = sp {
                sp.complete(&self.name, width, &section.section(key));
            }
        }
    }
}

/// The form of texts that are too long for one short message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Word)]
pub enum LongText {
    /// In one PDU, with message_payload.
    #[default]
    Payload,
    /// In segments with a user data header.
    Udh,
    /// In segments with SAR TLVs.
    Sar,
}

const MESSAGE_ID_FORMS: &[(&str, MessageIdForm, &str)] = &[
    ("as-is", MessageIdForm::AsIs, "Unchanged."),
    ("hex-to-decimal", MessageIdForm::HexToDecimal, "Responses use hexadecimal, DLRs decimal."),
    ("decimal-to-hex", MessageIdForm::DecimalToHex, "Responses use decimal, DLRs hexadecimal."),
    ("strip-zeros", MessageIdForm::StripZeros, "Leading zeros are ignored."),
    ("fold-case", MessageIdForm::FoldCase, "Case is ignored."),
];

const VERSIONS: &[(&str, u8, &str)] =
    &[("3.3", 0x33, "SMPP 3.3."), ("3.4", 0x34, "SMPP 3.4."), ("5.0", 0x50, "SMPP 5.0.")];

/// `[[peer]]`: the links to a peer, an SMSC that the appliance dials.
#[derive(Clone, Debug, PartialEq, Keys)]
#[keys(live = "its links reconnect one after the other")]
pub struct PeerOptions {
    /// The peer's name.
    #[key(example = "upstream")]
    pub name: String,
    /// The peer id.
    #[key(skip = PeerId(u32::MAX))]
    pub peer: PeerId,
    /// The peer's host and port.
    #[key(format = HostPort, example = "smsc.example.net:2775", label = "Address")]
    pub address: String,
    /// The system_id that the appliance binds with.
    #[key(length = ..=15, label = "System id")]
    pub system_id: Bytes,
    /// The password that the appliance binds with.
    #[key(secret, or_file, label = "Password")]
    pub password: Secret,
    /// The system_type that the appliance binds with.
    pub system_type: Bytes,
    /// The bind mode.
    #[key(words = BIND_MODES, default = "transceiver", label = "Bind as")]
    pub bind: BindMode,
    /// The number of links.
    #[key(range = 1..=256, default = 1, label = "Links")]
    pub links: usize,
    /// Maximum number of unanswered messages per link.
    #[key(range = 1..=100_000, default = 10, label = "Window")]
    pub window: usize,
    /// Maximum number of unanswered requests of the peer per link; further ones wait.
    #[key(skip = 100)]
    pub window_in: usize,
    /// The interface_version that the appliance binds with.
    #[key(words = VERSIONS, default = "3.4")]
    pub interface_version: u8,
    /// Whether the peer accepts TLVs.
    #[key(default_as = "by its version")]
    pub tlvs: Option<bool>,
    /// TLVs that messages to the peer must have, and TLVs that are added if they are missing.
    #[key(format = TlvKeys, default_as = "none")]
    pub tlv_rules: TlvRules,
    /// Whether validity_period is passed on.
    #[key(default = true)]
    pub pass_validity: bool,
    /// Idle time after which an enquire_link is sent.
    #[key(default = "30s")]
    pub enquire_interval: Duration,
    /// Maximum time for the enquire_link_resp.
    #[key(default = "10s")]
    pub enquire_timeout: Duration,
    /// Maximum time for the response to a message.
    #[key(default = "30s")]
    pub response_timeout: Duration,
    /// Maximum time for a connection and for the bind's response.
    #[key(default = "10s")]
    pub bind_timeout: Duration,
    /// Maximum back-off between connection attempts. The first back-off is one second; each is twice the previous one.
    #[key(default = "30s")]
    pub redial_interval: Duration,
    /// The difference between the message ids in DLRs and in submit_sm_resp.
    #[key(words = MESSAGE_ID_FORMS, default = "as-is")]
    pub message_id: MessageIdForm,
    /// The form of long texts.
    #[key(default = "payload")]
    pub long_text: LongText,
    /// Error classes of the peer's own error codes, for example `"0x45" = "temporary"`.
    #[key(format = ErrorClasses(command_status, "command_status values such as \"0x45\""))]
    pub error_classes: HashMap<u32, ErrorClass>,
    /// The validity of MO messages.
    #[key(default = "3d")]
    pub mo_validity: Duration,
    /// TLS.
    pub tls: Option<ClientTls>,
}

impl PeerOptions {
    /// A peer with the default values: one transceiver link, a window of 10.
    #[must_use]
    pub fn new(name: &str, peer: PeerId, address: &str) -> Self {
        Self { name: name.to_owned(), peer, address: address.to_owned(), ..Self::defaults() }
    }
}

fn command_status(text: &str) -> Option<u32> {
    text.strip_prefix("0x").map_or_else(|| text.parse().ok(), |hex| u32::from_str_radix(hex, 16).ok())
}

const ERROR_CLASSES: &[(&str, ErrorClass, &str)] = &[
    ("temporary", ErrorClass::Temporary, "A later attempt may succeed."),
    ("permanent", ErrorClass::Permanent, "No attempt can succeed."),
    ("throttled", ErrorClass::Throttled, "The peer throttles."),
    ("queue-full", ErrorClass::QueueFull, "The peer's queue is full."),
    ("absent", ErrorClass::Absent, "The subscriber cannot be reached."),
    ("memory-full", ErrorClass::MemoryFull, "The subscriber's memory is full."),
];

/// Format of the keys `error-classes`: the parser of a code, and a description of codes.
pub(crate) struct ErrorClasses<K>(pub(crate) fn(&str) -> Option<K>, pub(crate) &'static str);

impl<K: Eq + Hash> KeyFormat<HashMap<K, ErrorClass>> for ErrorClasses<K> {
    fn read(&self, section: &Section<'_>, key: &'static str) -> Option<HashMap<K, ErrorClass>> {
        let mut classes = HashMap::new();
        for (code, word) in section.section(key).pairs() {
            let class = ERROR_CLASSES.iter().find(|(known, ..)| *known == word);
            match (self.0(code), class) {
                (Some(code), Some((_, class, _))) => drop(classes.insert(code, *class)),
                _ => {
                    let words = "temporary, permanent, throttled, queue-full, absent or memory-full";
                    section.error(key, format!("maps {} to {words}", self.1));
                }
            }
        }
        Some(classes)
    }

    fn shape(&self) -> Shape {
        let words = ERROR_CLASSES.iter().map(|(word, _, doc)| (*word, *doc)).collect();
        Shape::Map(Box::new(Shape::Words(words)))
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
