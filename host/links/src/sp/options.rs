use crate::Secret;
use crate::options::ErrorClasses;
use bytes::Bytes;
use configuration::{HostPort, KeyFormat, KeyValue as _, Keys, Section, Shape, Word};
use model::{ErrorClass, PeerId};
use ports::link::ClientTls;
use ports::{ConnectionLimits, ServerTlsFiles};
use sgip::text::AsciiLimits;
use sp_session::{SessionOptions, SpFields, SpProtocol};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

const VERSIONS: &[(&str, u8, &str)] = &[
    ("3.0", 0x30, "CMPP 3.0 or SMGP 3.0."),
    ("3.1", 0x31, "SMGP 3.1."),
    ("2.1", 0x21, "CMPP 2.1."),
    ("2.0", 0x20, "CMPP 2.0."),
    ("1.3", 0x13, "SMGP 1.3."),
];

const ASCII: &[(&str, AsciiLimits, &str)] = &[
    ("159", AsciiLimits { single: 159, segment: 159 }, "159 characters, parts of 153."),
    ("160", AsciiLimits { single: 160, segment: 159 }, "160 characters, parts of 153."),
    ("140", AsciiLimits { single: 159, segment: 140 }, "159 characters, parts of 134."),
];

/// Position of a text's signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Word)]
pub enum SignaturePosition {
    /// At the beginning.
    Front,
    /// At the end.
    End,
}

/// Whether a text fits the longest login field (of SMGP).
fn fits_login(octets: &Bytes) -> Result<(), String> {
    if octets.len() <= 8 {
        Ok(())
    } else {
        Err("is longer than the field: CMPP has 6 octets, SMGP 8".to_owned())
    }
}

fn fits_secret(secret: &Secret) -> Result<(), String> {
    if secret.0.len() <= 15 { Ok(()) } else { Err("has more than 15 octets".to_owned()) }
}

/// Options that gateways and SPs share: connections, texts and numbers.
#[derive(Clone, Debug, PartialEq, Keys)]
pub struct SpNodeOptions {
    /// Maximum number of unanswered requests to the node per connection.
    #[key(range = 1..=10_000, default = 16, label = "Window")]
    pub window: usize,
    /// Maximum time for a response, after which the request is sent again.
    #[key(default = "60s")]
    pub response_timeout: Duration,
    /// Maximum number of times that a request is sent on one connection.
    #[key(range = 1..=100, default = 3)]
    pub tries: u32,
    /// Idle time after which a link test is sent.
    #[key(default = "180s")]
    pub link_test_interval: Duration,
    /// Maximum length of a received PDU, in octets. The default is 4096 for CMPP and 8192 for SMGP.
    #[key(range = 200..=100_000, default_as = "4096 with CMPP, 8192 with SMGP")]
    pub max_pdu_length: Option<u32>,
    /// Adds the prefix 86 to subscribers' numbers that are sent.
    #[key(name = "add-86", default = false)]
    pub add_86: bool,
    /// Removes the prefix 86 from subscribers' numbers that are received.
    #[key(name = "strip-86", default = false)]
    pub strip_86: bool,
    /// Sends texts beyond ASCII in GBK instead of UCS2, where possible.
    #[key(default = false)]
    pub gbk: bool,
    /// Maximum length of ASCII texts that the node accepts.
    #[key(words = ASCII, default = "159")]
    pub ascii_length: AsciiLimits,
    /// The name in the signature 【name】 that texts must have. It is added to texts without a signature, before they are
    /// split: to texts for a gateway when they are sent, to texts of an SP when they are accepted.
    pub signature: String,
    /// The position of the signature.
    #[key(default = "front")]
    pub signature_place: SignaturePosition,
}

/// Session options for a node.
pub(super) fn session_options<P: SpProtocol>(node: &SpNodeOptions) -> SessionOptions {
    SessionOptions {
        window_out: node.window.max(1),
        response_timeout: node.response_timeout,
        tries: node.tries.max(1),
        idle: node.link_test_interval,
        limit: node.max_pdu_length.unwrap_or(P::MAX_LENGTH),
        ..SessionOptions::default()
    }
}

/// `[[gateway]]` with CMPP or SMGP: a gateway to which the appliance is an SP.
#[derive(Clone, Debug, PartialEq, Keys)]
#[keys(live = "its links reconnect one after the other")]
pub struct SpGatewayOptions {
    /// The gateway's name.
    #[key(example = "mobile")]
    pub name: String,
    /// The peer id.
    #[key(skip = PeerId(u32::MAX))]
    pub peer: PeerId,
    /// The address of the gateway.
    #[key(format = HostPort, example = "ismg.example.net:7890", label = "Address")]
    pub address: String,
    /// The login name that the appliance uses: the SP's code, at most 6 characters for CMPP and 8 for SMGP.
    #[key(check = fits_login, label = "Login name")]
    pub login_name: Bytes,
    /// The password of the appliance's login. It is not sent, only proved.
    #[key(secret, or_file, check = fits_secret, label = "Password")]
    pub login_password: Secret,
    /// The protocol version that is offered. The gateway may answer with a lower one.
    #[key(words = VERSIONS, default = "3.0")]
    pub version: u8,
    /// Computes the password proof with an unpadded login name (CMPP and SMGP only).
    #[key(default = false)]
    pub unpadded_login_name: bool,
    /// Refuses a gateway that does not prove the password (CMPP and SMGP only). Several gateways compute the proof
    /// wrongly, so by default a wrong proof is only logged.
    #[key(default = false)]
    pub gateway_proof: bool,
    /// Number of connections to the gateway.
    #[key(range = 1..=60, default = 1, label = "Connections")]
    pub connections: usize,
    /// Options that gateways and SPs share.
    #[key(flatten)]
    pub node: SpNodeOptions,
    /// Maximum time for a connection and for the response to a login.
    #[key(default = "10s")]
    pub bind_timeout: Duration,
    /// Values of Submit fields that the message does not set.
    #[key(format = SpFieldKeys)]
    pub submit_fields: SpFields,
    /// Classes of the gateway's own result codes.
    #[key(format = ErrorClasses(|code| code.parse().ok(), "result codes such as \"8\""))]
    pub error_classes: HashMap<u32, ErrorClass>,
    /// The validity of MO messages.
    #[key(default = "3d")]
    pub mo_validity: Duration,
    /// TLS (CMPP and SMGP only).
    pub tls: Option<ClientTls>,
}

/// Fields of a Submit. By default the SP pays and nothing is charged.
#[derive(Clone, Keys)]
struct SubmitFields {
    /// The business code: `Service_Id` of CMPP, `ServiceID` of SMGP.
    #[key(length = ..=10)]
    service: Bytes,
    /// The payer: 0 the destination, 1 the source, 2 the SP, 3 the number in `payer`.
    #[key(range = 0..=3, default = 2)]
    payer_type: u8,
    /// The number that pays.
    #[key(length = ..=21)]
    payer: Bytes,
    /// The kind of charge: 01 free, 02 per message, 03 monthly, 04 capped. SMGP gateways get 00 to 03.
    #[key(length = ..=2, default = "01")]
    fee_type: Bytes,
    /// The price per message, in fen.
    #[key(length = ..=6, default = "000000")]
    fee_code: Bytes,
    /// The price per month, in fen (SMGP only).
    #[key(length = ..=6, default = "000000")]
    fixed_fee: Bytes,
    /// The SP's enterprise code: `Msg_src` of CMPP, `MsgSrc` of SMGP.
    #[key(length = ..=8, default_as = "the login name")]
    sp_code: Bytes,
    /// The product id of China Telecom's mobile network: `MServiceID` (SMGP only).
    #[key(length = ..=21)]
    product: Bytes,
}

/// The format of [`SubmitFields`].
struct SpFieldKeys;

impl KeyFormat<SpFields> for SpFieldKeys {
    fn read(&self, section: &Section<'_>, key: &'static str) -> Option<SpFields> {
        let fields = SubmitFields::read_or_empty(section, key);
        Some(SpFields {
            service: fields.service,
            payer_type: Bytes::copy_from_slice(&[fields.payer_type]),
            payer: fields.payer,
            fee_type: fields.fee_type,
            fee_code: fields.fee_code,
            fixed_fee: fields.fixed_fee,
            sp_code: fields.sp_code,
            product: fields.product,
            ..SpFields::default()
        })
    }

    fn shape(&self) -> Shape {
        Shape::Table(SubmitFields::keys())
    }
}

/// The CMPP or SMGP options of an account: an SP, to which the appliance is the gateway.
#[derive(Clone, Debug, PartialEq, Keys)]
pub struct SpAccountOptions {
    /// The login name of the SP: at most 6 characters for CMPP and 8 for SMGP.
    #[key(check = fits_login, default_as = "the account's name")]
    pub inbound_login_name: Bytes,
    /// The password of the SP's login. The check of the proof needs the password itself, so a hash is not sufficient.
    #[key(secret, or_file, check = fits_secret)]
    pub inbound_password: Secret,
    /// The highest protocol version that the SP may use.
    #[key(words = VERSIONS, default = "3.0")]
    pub version: u8,
    /// The gateway code of the appliance in message ids: six digits.
    #[key(range = 0..=999_999, default = 101_001)]
    pub gateway_code: u32,
    /// Maximum deviation of the SP's clock; `0s` accepts any time. Each login is accepted only once.
    #[key(default = "10m")]
    pub clock_tolerance: Duration,
    /// Maximum number of connections of the SP.
    #[key(name = "inbound-connections", range = 1..=10_000, default = 10)]
    pub connections_in: usize,
    /// Maximum number of unanswered submissions per connection; further ones wait.
    #[key(name = "inbound-window", range = 1..=100_000, default = 100)]
    pub window_in: usize,
    /// Options that gateways and SPs share.
    #[key(flatten)]
    pub node: SpNodeOptions,
}

impl SpAccountOptions {
    /// Sets the login name to that of the account if it is missing, and checks its length.
    pub(crate) fn complete(&mut self, account: &str, width: usize, section: &Section<'_>) {
        if !section.has("inbound-login-name") {
            self.inbound_login_name = Bytes::copy_from_slice(account.as_bytes());
        }
        if self.inbound_login_name.len() > width {
            section.error("inbound-login-name", format!("is longer than the field of {width} octets"));
        }
        if self.inbound_password.0.is_empty() {
            section.error("inbound-password", "is missing: the SP proves it at its login");
        }
    }
}

/// Options of a listener for SPs.
#[derive(Clone, Debug, PartialEq, Keys)]
pub struct SpListenerOptions {
    /// The listener's name.
    #[key(example = "cmpp")]
    pub name: String,
    /// The address and port to listen on.
    #[key(example = "127.0.0.1:7890")]
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
    /// TLS.
    pub tls: Option<ServerTlsFiles>,
}
