use doors::ConnectionLimits;
use model::{Address, PeerId};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tpdu::Language;

/// A GSM core network: one HLR and the MSCs behind it.
#[derive(Debug, Clone)]
pub struct GsmOptions {
    /// Its name in the configuration.
    pub name: String,
    /// Its number.
    pub peer: PeerId,
    /// Our place in the network.
    pub role: Role,
    /// The HLR's CTRL interface, host and port; without it only what passes by is known of subscribers.
    pub ctrl: Option<String>,
    /// How long an answer on the CTRL interface may take.
    pub ctrl_timeout: Duration,
    /// Our name as a GSUP peer, 1 to 31 octets of ASCII; also the beginning of the source name of what we send.
    pub ipa_name: String,
    /// The number of our service centre, shown to MSCs and handsets: E.164 digits.
    pub service_centre: Address,
    /// Whether an MO that its handset addressed to another service centre is refused. Guests' SIMs name their home's.
    pub only_our_service_centre: bool,
    /// Whether the sender of an MO must be located at the MSC that brings it, and has the number that the HLR tells (proxy with
    /// `ctrl`).
    pub check_sender: bool,
    /// How many subscribers may be on their way to a handset at a time.
    pub window: u32,
    /// How long an MSC may take to say what became of an MT: paging and two timers of the radio side are in it.
    pub guard: Duration,
    /// How long an MO is valid whose handset does not say.
    pub mo_validity: Duration,
    /// How long the repetition of an MO is known as one.
    pub repetition: Duration,
    /// The zone of times shown to handsets, in quarters of an hour east of Greenwich.
    pub zone: i8,
    /// Languages whose national tables (3GPP TS 23.038 annex A) the handsets of this network support. A UCS-2 text is sent with them
    /// where it takes fewer segments so.
    pub languages: Vec<Language>,
    /// The number plan by which subscribers dial; without one, numbers are taken as they are.
    pub plan: Option<Arc<numbering::Plan>>,
    /// MSCs' connections (role of a proxy): far more than there are MSCs.
    pub limits: ConnectionLimits,
    /// How long to wait for a connection or for its identity.
    pub connect_timeout: Duration,
    /// How long MSCs stay connected while the HLR cannot be reached (role of a proxy): so long, messages between subscribers that
    /// are known go on.
    pub hlr_outage: Duration,
    /// How often a silent HLR is pinged (role of a client), and how long it may be silent.
    pub keep_alive: Duration,
}

/// Our place in the network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Role {
    /// A GSUP client of an HLR that routes short messages by name (OsmoHLR 1.8.0 and later).
    Client {
        /// The HLR, host and port.
        hlr: String,
    },
    /// Between MSCs and their HLR: takes out short messages and passes on everything else.
    Proxy {
        /// Where MSCs connect to.
        listen: SocketAddr,
        /// The HLR, host and port.
        hlr: String,
    },
}

impl GsmOptions {
    /// The defaults: an HLR on this machine, and a proxy before it.
    #[must_use]
    pub fn new(name: &str, peer: PeerId) -> Self {
        Self {
            name: name.to_owned(),
            peer,
            role: Role::Client { hlr: "127.0.0.1:4222".to_owned() },
            ctrl: None,
            ctrl_timeout: Duration::from_secs(3),
            ipa_name: "SMSC-1".to_owned(),
            service_centre: Address::international("0"),
            only_our_service_centre: false,
            check_sender: false,
            window: 1000,
            guard: Duration::from_secs(90),
            mo_validity: Duration::from_secs(3 * 86_400),
            repetition: Duration::from_secs(600),
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
