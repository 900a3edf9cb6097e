use crate::Secret;
use bytes::Bytes;
use model::{ErrorClass, PeerId};
use ports::IpNetwork;
use sgip::{Dialect, SgipFields};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

/// Deviations and choices of a peer where the specification is open or not followed.
#[derive(Clone, Debug, PartialEq)]
pub struct SgipQuirks {
    /// The list of result codes that it follows. 1.3 forbids groups and "feedback" messages.
    pub dialect: Dialect,
    /// The value of TP_udhi with a UDH: 1, or 0x40 as in SMPP.
    pub udhi: u8,
    /// Whether user numbers are sent with the prefix 86.
    pub add_86: bool,
    /// Whether the prefix 86 of received user numbers is removed.
    pub strip_86: bool,
    /// Whether the LinkID is carried in the Reserve octets.
    pub link_id: bool,
    /// Whether texts beyond ASCII are sent as GBK where possible, instead of UCS2.
    pub gbk: bool,
    /// Whether answers match by node and counter alone if their time differs.
    pub loose_match: bool,
    /// The longest PDU accepted from it.
    pub limit: u32,
}

impl Default for SgipQuirks {
    fn default() -> Self {
        Self {
            dialect: Dialect::V12,
            udhi: 1,
            add_86: true,
            strip_86: false,
            link_id: true,
            gbk: false,
            loose_match: false,
            limit: 4096,
        }
    }
}

/// A gateway of an operator, to which we are an SP.
#[derive(Clone, Debug, PartialEq)]
pub struct GatewayOptions {
    /// The name in the configuration.
    pub name: String,
    /// The peer id.
    pub peer: PeerId,
    /// Host and port where it takes Submits.
    pub address: String,
    /// Our node number, 3AAAAQQQQQ.
    pub node: u32,
    /// Our login name at the gateway.
    pub login_name: Bytes,
    /// Our password at the gateway.
    pub login_password: Secret,
    /// The gateway's login name at our listener, with login type 2. Empty: it may not log in, and then sends neither
    /// MOs nor Reports.
    pub inbound_login_name: Bytes,
    /// The gateway's password at our listener.
    pub inbound_login_password: Secret,
    /// The networks that it may log in from; empty: any.
    pub networks: Vec<IpNetwork>,
    /// Connections that we keep to it.
    pub connections: usize,
    /// Connections that it may have to us.
    pub connections_in: usize,
    /// Submits on one connection that may be unanswered.
    pub window: usize,
    /// The time for an answer, before a Submit is repeated.
    pub response_timeout: Duration,
    /// How often a Submit is sent in all on one connection.
    pub tries: u32,
    /// The time for a connection and a login.
    pub bind_timeout: Duration,
    /// Field values of a Submit where the message has none.
    pub fields: SgipFields,
    /// Error classes of result codes that differ from the standard ones.
    pub error_classes: HashMap<u8, ErrorClass>,
    /// The validity of MOs.
    pub mo_validity: Duration,
    /// Its deviations from the specification.
    pub quirks: SgipQuirks,
}

impl GatewayOptions {
    /// A gateway with the defaults of the specification: one connection, a window of 32, answers within 30 s, three
    /// tries.
    #[must_use]
    pub fn new(name: &str, peer: PeerId, address: &str, node: u32) -> Self {
        Self {
            name: name.to_owned(),
            peer,
            address: address.to_owned(),
            node,
            login_name: Bytes::new(),
            login_password: Secret::default(),
            inbound_login_name: Bytes::new(),
            inbound_login_password: Secret::default(),
            networks: Vec::new(),
            connections: 1,
            connections_in: 10,
            window: 32,
            response_timeout: Duration::from_secs(30),
            tries: 3,
            bind_timeout: Duration::from_secs(10),
            fields: SgipFields {
                // The SP pays, nothing is charged, and the message is no reply to an MO.
                charge_number: Some(Bytes::from_static(b"000000000000000000000")),
                fee_type: Some(1),
                fee_value: Some(Bytes::from_static(b"0")),
                given_value: Some(Bytes::from_static(b"0")),
                agent_flag: Some(0),
                mo_related: Some(2),
                ..SgipFields::default()
            },
            error_classes: HashMap::new(),
            mo_validity: Duration::from_secs(3 * 86_400),
            quirks: SgipQuirks::default(),
        }
    }
}

/// The SGIP side of an account: an SP, to which we are the gateway.
#[derive(Clone, Debug, PartialEq)]
pub struct SpOptions {
    /// The SP's login name at our listener, with login type 1 and the account's password.
    pub inbound_login_name: Bytes,
    /// Host and port where it takes Deliver and Report; empty: it has no listener, and gets neither.
    pub address: String,
    /// Our node number as a gateway, 1AAAAX.
    pub node: u32,
    /// Our login name at the SP, with login type 2.
    pub login_name: Bytes,
    /// Our password at the SP.
    pub login_password: Secret,
    /// Connections that it may have to us.
    pub connections_in: usize,
    /// Connections that we keep to it.
    pub connections: usize,
    /// Submits of one connection that may be unanswered; more wait.
    pub window_in: usize,
    /// Deliveries on one connection that may be unanswered.
    pub window: usize,
    /// The time for an answer, before a delivery is repeated.
    pub response_timeout: Duration,
    /// How often a delivery is sent in all on one connection.
    pub tries: u32,
    /// Its deviations from the specification.
    pub quirks: SgipQuirks,
}

impl SpOptions {
    /// An SP with the defaults of the specification.
    #[must_use]
    pub fn new(inbound_login_name: &str, node: u32) -> Self {
        Self {
            inbound_login_name: Bytes::copy_from_slice(inbound_login_name.as_bytes()),
            address: String::new(),
            node,
            login_name: Bytes::new(),
            login_password: Secret::default(),
            connections_in: 10,
            connections: 1,
            window_in: 100,
            window: 32,
            response_timeout: Duration::from_secs(30),
            tries: 3,
            quirks: SgipQuirks::default(),
        }
    }
}

/// Options of an SGIP listener, for SPs and gateways.
#[derive(Clone, Debug, PartialEq)]
pub struct SgipListenerOptions {
    /// The name in the configuration.
    pub name: String,
    /// Address and port; 8801 by the specification. Port 0 takes any free port.
    pub listen: SocketAddr,
    /// All connections together.
    pub connections: usize,
    /// Connections from one address.
    pub connections_per_address: usize,
    /// Connections that are not logged in yet, a share of all: one more displaces the oldest of them.
    pub unbound_connections: usize,
    /// The time for the login.
    pub bind_timeout: Duration,
    /// The silence after which a connection is closed (SGIP 1.2 §3.1: 60 s); zero: never.
    pub idle: Duration,
    /// Whether any login type is accepted from a known login name: some peers always send the same type.
    pub any_login_type: bool,
}

impl SgipListenerOptions {
    /// Options with the defaults of the specification.
    #[must_use]
    pub fn new(name: &str, listen: SocketAddr) -> Self {
        Self {
            name: name.to_owned(),
            listen,
            connections: 1000,
            connections_per_address: 100,
            unbound_connections: 250,
            bind_timeout: Duration::from_secs(30),
            idle: Duration::from_secs(60),
            any_login_type: false,
        }
    }
}
