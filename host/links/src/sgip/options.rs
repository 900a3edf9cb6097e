use crate::Secret;
use crate::options::ErrorClasses;
use bytes::Bytes;
use configuration::{HostPort, KeyFormat, KeyValue, Keys, Section, Shape};
use model::{ErrorClass, PeerId};
use ports::{ConnectionLimits, IpNetwork};
use sgip::{Dialect, SgipFields};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

const DIALECTS: &[(&str, Dialect, &str)] =
    &[("1.2", Dialect::V12, "SGIP 1.2."), ("1.3", Dialect::V13, "SGIP 1.3.")];
const UDHI: &[(&str, u8, &str)] = &[("1", 1, "The value 1."), ("0x40", 0x40, "The value 0x40.")];

/// Deviations and choices of a peer where the specification is open or not followed.
#[derive(Clone, Debug, PartialEq, Keys)]
pub struct SgipQuirks {
    /// The protocol version: the list of result codes. 1.3 forbids groups and "feedback" messages.
    #[key(name = "version", words = DIALECTS, default = "1.2")]
    pub dialect: Dialect,
    /// The value of TP_udhi for texts with a user data header; 0x40 as in SMPP.
    #[key(words = UDHI, default = "1")]
    pub udhi: u8,
    /// Adds the prefix 86 to user numbers that are sent.
    #[key(name = "add-86", default = true)]
    pub add_86: bool,
    /// Removes the prefix 86 from user numbers that are received.
    #[key(name = "strip-86", default = false)]
    pub strip_86: bool,
    /// Carries the LinkID in the Reserve field.
    #[key(default = true)]
    pub link_id: bool,
    /// Sends texts beyond ASCII as GBK instead of UCS2, where possible.
    #[key(default = false)]
    pub gbk: bool,
    /// Matches responses by node and counter only, ignoring the time.
    #[key(default = false)]
    pub loose_match: bool,
    /// Maximum length of a received command, in octets.
    #[key(name = "max-command-length", range = 2048..=1_000_000, default = 4096, was = "longest-command")]
    pub limit: u32,
}

impl Default for SgipQuirks {
    fn default() -> Self {
        Self::defaults()
    }
}

/// Whether a text fits a login field.
fn fits_login(octets: &Bytes) -> Result<(), String> {
    if octets.len() <= 16 { Ok(()) } else { Err("is longer than SGIP's field of 16 octets".to_owned()) }
}

fn secret_fits_login(secret: &Secret) -> Result<(), String> {
    fits_login(&secret.0)
}

/// Options that gateways and SPs have in common: our side of the connections.
#[derive(Clone, Debug, PartialEq, Keys)]
pub struct SgipNodeOptions {
    /// The node number of the appliance: 3AAAAQQQQQ as an SP, assigned by the operator; 1AAAAX as a gateway.
    #[key(example = 3010012345, hint = "as a gateway for example 101001", label = "Node number")]
    pub node: u32,
    /// The login name that the appliance uses.
    #[key(check = fits_login, label = "Login name")]
    pub login_name: Bytes,
    /// The password that the appliance uses.
    #[key(secret, or_file, check = secret_fits_login, label = "Password")]
    pub login_password: Secret,
    /// Maximum number of connections from the node.
    #[key(name = "inbound-connections", range = 1..=10_000, default = 10, was = "connections-in")]
    pub connections_in: usize,
    /// Number of connections to the node.
    #[key(range = 1..=60, default = 1, label = "Connections")]
    pub connections: usize,
    /// Maximum number of unanswered commands to the node per connection.
    #[key(range = 1..=100_000, default = 32, label = "Window")]
    pub window: usize,
    /// Maximum time for a response, after which the command is sent again.
    #[key(default = "30s")]
    pub response_timeout: Duration,
    /// Maximum number of times that a command is sent on one connection.
    #[key(range = 1..=100, default = 3)]
    pub tries: u32,
    /// Its deviations from the specification.
    #[key(flatten)]
    pub quirks: SgipQuirks,
}

/// A gateway of an operator, to which we are an SP.
#[derive(Clone, Debug, PartialEq, Keys)]
#[keys(live = "its links reconnect one after the other")]
pub struct GatewayOptions {
    /// The gateway's name.
    #[key(example = "unicom")]
    pub name: String,
    /// The peer id.
    #[key(skip = PeerId(u32::MAX))]
    pub peer: PeerId,
    /// The gateway's address, to which Submits are sent.
    #[key(format = HostPort, example = "smg.example.net:8801", label = "Address")]
    pub address: String,
    /// The options that SPs have, too.
    #[key(flatten)]
    pub node: SgipNodeOptions,
    /// The login name that the gateway uses at the appliance's listener. Without it, it can send neither MO messages
    /// nor Reports.
    #[key(check = fits_login, label = "Inbound login name", was = "its-name")]
    pub inbound_login_name: Bytes,
    /// The password that the gateway uses at the appliance's listener.
    #[key(secret, or_file, check = secret_fits_login, label = "Inbound password", was = "its-password")]
    pub inbound_login_password: Secret,
    /// Networks that the gateway may connect from.
    #[key(default_as = "any", label = "Source networks")]
    pub networks: Vec<IpNetwork>,
    /// Maximum time for a connection and for the response to a Bind.
    #[key(default = "10s")]
    pub bind_timeout: Duration,
    /// Values of Submit fields that the message does not set.
    #[key(format = SubmitFieldKeys)]
    pub fields: SgipFields,
    /// Classes of the gateway's own result codes.
    #[key(format = ErrorClasses(|code| code.parse().ok(), "result codes such as \"8\""))]
    pub error_classes: HashMap<u8, ErrorClass>,
    /// The validity of MO messages.
    #[key(default = "3d")]
    pub mo_validity: Duration,
}

impl GatewayOptions {
    /// A gateway with the defaults of the specification: one connection, a window of 32, answers within 30 s, three
    /// tries.
    #[must_use]
    pub fn new(name: &str, peer: PeerId, address: &str, node: u32) -> Self {
        let node = SgipNodeOptions { node, ..SgipNodeOptions::defaults() };
        Self { name: name.to_owned(), peer, address: address.to_owned(), node, ..Self::defaults() }
    }
}

/// Fields of a Submit. By default the SP pays, nothing is charged, and the message is not a reply to an MO.
#[derive(Clone, Keys)]
struct SubmitFields {
    /// ChargeNumber.
    #[key(length = ..=21, default = "000000000000000000000")]
    charge_number: Bytes,
    /// CorpId.
    #[key(length = ..=5)]
    corp_id: Option<Bytes>,
    /// ServiceType.
    #[key(length = ..=10)]
    service_type: Option<Bytes>,
    /// FeeType.
    #[key(range = 0..=4, default = 1)]
    fee_type: u8,
    /// FeeValue.
    #[key(length = ..=6, default = "0")]
    fee_value: Bytes,
    /// GivenValue.
    #[key(length = ..=6, default = "0")]
    given_value: Bytes,
    /// AgentFlag.
    #[key(range = 0..=1, default = 0)]
    agent_flag: u8,
    /// MorelatetoMTFlag.
    #[key(range = 0..=3, default = 2)]
    mo_related: u8,
}

/// The format of [`SubmitFields`].
struct SubmitFieldKeys;

impl KeyFormat<SgipFields> for SubmitFieldKeys {
    fn read(&self, section: &Section<'_>, key: &'static str) -> Option<SgipFields> {
        let fields = SubmitFields::read_or_empty(section, key);
        Some(SgipFields {
            charge_number: Some(fields.charge_number),
            corp_id: fields.corp_id,
            service_type: fields.service_type,
            fee_type: Some(fields.fee_type),
            fee_value: Some(fields.fee_value),
            given_value: Some(fields.given_value),
            agent_flag: Some(fields.agent_flag),
            mo_related: Some(fields.mo_related),
            ..SgipFields::default()
        })
    }

    fn shape(&self) -> Shape {
        Shape::Table(SubmitFields::keys())
    }
}

/// The SGIP side of an account: an SP, to which we are the gateway.
#[derive(Clone, Debug, PartialEq, Keys)]
pub struct SpOptions {
    /// The login name of the SP, used with the account's password.
    #[key(check = fits_login, default_as = "the account's name", was = "its-name")]
    pub inbound_login_name: Bytes,
    /// The address to which Deliver and Report are sent; without it, the SP gets neither.
    #[key(format = HostPort)]
    pub address: String,
    /// The options that gateways have, too.
    #[key(flatten)]
    pub node: SgipNodeOptions,
    /// Maximum number of unanswered submissions per connection; more wait.
    #[key(name = "inbound-window", range = 1..=100_000, default = 100, was = "window-in")]
    pub window_in: usize,
}

impl SpOptions {
    /// An SP with the defaults of the specification.
    #[must_use]
    pub fn new(inbound_login_name: &str, node: u32) -> Self {
        Self {
            inbound_login_name: Bytes::copy_from_slice(inbound_login_name.as_bytes()),
            node: SgipNodeOptions { node, ..SgipNodeOptions::defaults() },
            ..Self::defaults()
        }
    }

    /// Sets the login name to that of the account, unless it has one.
    pub(crate) fn complete(&mut self, account: &str, section: &Section<'_>) {
        if !section.has("inbound-login-name") {
            self.inbound_login_name = Bytes::copy_from_slice(account.as_bytes());
            if let Err(problem) = fits_login(&self.inbound_login_name) {
                section.error("inbound-login-name", problem);
            }
        }
    }
}

/// Options of an SGIP listener, for SPs and gateways.
#[derive(Clone, Debug, PartialEq, Keys)]
pub struct SgipListenerOptions {
    /// The listener's name.
    #[key(example = "sgip")]
    pub name: String,
    /// The listening address.
    #[key(example = "127.0.0.1:8801")]
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
    /// Maximum time until a connection must be bound.
    #[key(default = "30s")]
    pub bind_timeout: Duration,
    /// Idle time after which a connection is closed (SGIP 1.2 §3.1); `0s` for never (SGIP only).
    #[key(default = "60s")]
    pub idle: Duration,
    /// Ignores login types: some peers always send the same (SGIP only).
    #[key(default = false)]
    pub any_login_type: bool,
}

impl SgipListenerOptions {
    /// Options with the defaults of the specification. Port 0 takes any free port.
    #[must_use]
    pub fn new(name: &str, listen: SocketAddr) -> Self {
        Self { name: name.to_owned(), listen, ..Self::defaults() }
    }
}
