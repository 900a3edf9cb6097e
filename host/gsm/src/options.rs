use model::{Address, PeerId};
use ports::ConnectionLimits;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tpdu::Language;

/// A GSM core network: one HLR and the MSCs behind it.
#[derive(Debug, Clone)]
pub struct GsmOptions {
    /// Its name in the configuration.
    pub name: String,
    /// Its peer id.
    pub peer: PeerId,
    /// Role of the appliance in the network.
    pub role: GsmRole,
    /// Host and port of the HLR's CTRL interface. Without it, only subscribers learnt from signalling are known.
    pub ctrl: Option<String>,
    /// Timeout for answers on the CTRL interface.
    pub ctrl_timeout: Duration,
    /// IPA name of the SMSC, 1 to 31 ASCII octets; also the prefix of the source names of its requests.
    pub ipa_name: String,
    /// Number of the service centre as shown to MSCs and handsets: E.164 digits.
    pub service_centre: Address,
    /// Whether MOs addressed to other service centres are refused. SIMs of roaming subscribers name their home
    /// network's.
    pub only_our_service_centre: bool,
    /// Whether the sender of an MO must be located at the forwarding MSC; the sender's number is then taken from the
    /// HLR (proxy with `ctrl`).
    pub check_sender: bool,
    /// Maximum number of subscribers with a message in flight.
    pub window: u32,
    /// Timeout for an MSC's answer to an MT; it covers paging and two radio timers.
    pub response_timeout: Duration,
    /// Validity of MOs without a validity period.
    pub mo_validity: Duration,
    /// How long a repetition of an MO is recognised.
    pub repetition_window: Duration,
    /// Time zone of times shown to handsets, in quarters of an hour east of Greenwich.
    pub zone: i8,
    /// Languages whose national tables (3GPP TS 23.038 annex A) the handsets support. A UCS-2 text is encoded with them
    /// if this takes fewer segments.
    pub languages: Vec<Language>,
    /// The number plan for dialled numbers; without one, numbers are not changed.
    pub plan: Option<Arc<numbering::NumberPlan>>,
    /// Limits for connections from MSCs (proxy).
    pub limits: ConnectionLimits,
    /// Timeout for connecting, and for the identity of an MSC.
    pub connect_timeout: Duration,
    /// How long MSCs stay connected while the HLR is unreachable (proxy). Meanwhile messages between known subscribers
    /// are delivered.
    pub hlr_outage: Duration,
    /// Interval of pings to a silent HLR (client); after three intervals without any message the connection is closed.
    pub keep_alive: Duration,
}

/// Role of the appliance in the network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GsmRole {
    /// GSUP client of an HLR that routes short messages by name (OsmoHLR 1.8.0 and later).
    Client {
        /// Host and port of the HLR.
        hlr: String,
    },
    /// Proxy between MSCs and their HLR: intercepts short messages and relays all other signalling.
    Proxy {
        /// Listen address for MSCs.
        listen: SocketAddr,
        /// Host and port of the HLR.
        hlr: String,
    },
}

impl GsmOptions {
    /// Default options: a client of an HLR on this host.
    #[must_use]
    pub fn new(name: &str, peer: PeerId) -> Self {
        Self {
            name: name.to_owned(),
            peer,
            role: GsmRole::Client { hlr: "127.0.0.1:4222".to_owned() },
            ctrl: None,
            ctrl_timeout: Duration::from_secs(3),
            ipa_name: "SMSC-1".to_owned(),
            service_centre: Address::international("0"),
            only_our_service_centre: false,
            check_sender: false,
            window: 1000,
            response_timeout: Duration::from_secs(90),
            mo_validity: Duration::from_secs(3 * 86_400),
            repetition_window: Duration::from_secs(600),
            zone: 0,
            languages: Vec::new(),
            plan: None,
            limits: ConnectionLimits::new(256, 64),
            connect_timeout: Duration::from_secs(5),
            hlr_outage: Duration::from_secs(3600),
            keep_alive: Duration::from_secs(20),
        }
    }
}
