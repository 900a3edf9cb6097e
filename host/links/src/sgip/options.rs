use crate::Secret;
use bytes::Bytes;
use doors::Network;
use model::{ErrorClass, PeerId};
use sgip::{Dialect, Fields};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

/// How a far end writes and reads what the specification leaves open, or what it has its own mind about.
#[derive(Clone, Debug, PartialEq)]
pub struct Habits {
    /// Which list of codes it follows. 1.3 forbids groups and "feedback" messages.
    pub dialect: Dialect,
    /// What it wants to see in TP_udhi where there is a header: 1, or 0x40 as in SMPP.
    pub udhi: u8,
    /// Whether user numbers are sent with 86 in front.
    pub add_86: bool,
    /// Whether 86 is taken off user numbers that come.
    pub strip_86: bool,
    /// Whether the LinkID goes into, and comes out of, the Reserve octets.
    pub link_id: bool,
    /// Whether texts beyond ASCII are sent as GBK where GBK can say them, instead of as UCS2.
    pub gbk: bool,
    /// Match its answers by node and counter alone where the time in them differs.
    pub loose_match: bool,
    /// The longest PDU that is taken from it.
    pub limit: u32,
}

impl Default for Habits {
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

/// An operator's gateway, to which we are an SP.
#[derive(Clone, Debug, PartialEq)]
pub struct GatewayOptions {
    /// Its name in the configuration.
    pub name: String,
    /// Its number.
    pub peer: PeerId,
    /// Host and port where it takes Submits.
    pub address: String,
    /// Our node number, 3AAAAQQQQQ.
    pub node: u32,
    /// Our login there.
    pub login_name: Bytes,
    /// See `login_name`.
    pub login_password: Secret,
    /// Its login at our listener; login type 2. Empty: it may not log in, and then brings neither replies nor reports.
    pub its_name: Bytes,
    /// See `its_name`.
    pub its_password: Secret,
    /// Where it may log in from; empty: from anywhere.
    pub networks: Vec<Network>,
    /// Connections that we keep to it.
    pub connections: usize,
    /// Connections that it may have to us.
    pub connections_in: usize,
    /// Submits on one connection that may be unanswered.
    pub window: usize,
    /// How long an answer may take before a Submit is sent again.
    pub response_timeout: Duration,
    /// How often a Submit is sent in all on one connection.
    pub tries: u32,
    /// How long a connection and a login may take.
    pub bind_timeout: Duration,
    /// What a Submit says where its message says nothing.
    pub fields: Fields,
    /// Result codes to which it gives a meaning of its own.
    pub error_classes: HashMap<u8, ErrorClass>,
    /// The validity of replies.
    pub mo_validity: Duration,
    /// Its habits.
    pub habits: Habits,
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
            its_name: Bytes::new(),
            its_password: Secret::default(),
            networks: Vec::new(),
            connections: 1,
            connections_in: 10,
            window: 32,
            response_timeout: Duration::from_secs(30),
            tries: 3,
            bind_timeout: Duration::from_secs(10),
            fields: Fields {
                // The SP pays, nothing is charged, and no reply caused the message.
                charge_number: Some(Bytes::from_static(b"000000000000000000000")),
                fee_type: Some(1),
                fee_value: Some(Bytes::from_static(b"0")),
                given_value: Some(Bytes::from_static(b"0")),
                agent_flag: Some(0),
                mo_related: Some(2),
                ..Fields::default()
            },
            error_classes: HashMap::new(),
            mo_validity: Duration::from_secs(3 * 86_400),
            habits: Habits::default(),
        }
    }
}

/// The SGIP side of an account: an SP, to which we are the gateway.
#[derive(Clone, Debug, PartialEq)]
pub struct SpOptions {
    /// Its login at our listener; login type 1, with the account's password.
    pub its_name: Bytes,
    /// Host and port where it takes Deliver and Report; empty: it has no listener, and gets neither.
    pub address: String,
    /// Our node number as a gateway, 1AAAAX.
    pub node: u32,
    /// Our login there; login type 2.
    pub login_name: Bytes,
    /// See `login_name`.
    pub login_password: Secret,
    /// Connections that it may have to us.
    pub connections_in: usize,
    /// Connections that we keep to it.
    pub connections: usize,
    /// Submits of one connection that may be unanswered; more wait.
    pub window_in: usize,
    /// Deliveries on one connection that may be unanswered.
    pub window: usize,
    /// How long an answer may take before a delivery is sent again.
    pub response_timeout: Duration,
    /// How often a delivery is sent in all on one connection.
    pub tries: u32,
    /// Its habits.
    pub habits: Habits,
}

impl SpOptions {
    /// An SP with the defaults of the specification.
    #[must_use]
    pub fn new(its_name: &str, node: u32) -> Self {
        Self {
            its_name: Bytes::copy_from_slice(its_name.as_bytes()),
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
            habits: Habits::default(),
        }
    }
}

/// Where SPs submit and gateways deliver.
#[derive(Clone, Debug, PartialEq)]
pub struct SgipListenerOptions {
    /// Its name in the configuration.
    pub name: String,
    /// Address and port; 8801 by the specification. Port 0 takes any that is free.
    pub listen: SocketAddr,
    /// Connections in all.
    pub connections: usize,
    /// Connections from one address.
    pub connections_per_address: usize,
    /// Connections that are not logged in yet, a share of all: one more displaces the oldest of them.
    pub unbound_connections: usize,
    /// How long a connection may take to log in.
    pub bind_timeout: Duration,
    /// Silence after which a connection is closed (SGIP 1.2 §3.1: 60 s); zero: never.
    pub idle: Duration,
    /// Take any login type from those whose name is right: for far ends that always say the same.
    pub any_login_type: bool,
}

impl SgipListenerOptions {
    /// The defaults of the specification.
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
