//! A GSM core network as one peer of the engine: an SMSC connected to an OsmoHLR and its MSCs over GSUP.
//!
//! * **One link per core network**, independent of the number of MSCs. The link is up while any MSC can be reached.
//!   Submitted messages stay in a second queue (`mt`) until the MSC has answered. If the MSC or the link fails,
//!   unsent messages return to the engine's queue in order, and sent ones become uncertain.
//! * **An MO is acknowledged only after it is on disk** (`mo`). Repetitions are recognised, even after a crash.
//! * **All other signalling is relayed** (`proxy`) octet for octet, in order, and without waiting for the engine.
//! * Subscriber locations are learnt from relayed signalling or from the HLR (`location_lookups`); MSISDNs are
//!   resolved by the HLR (`hlr_lookup`).
#![forbid(unsafe_code)]

mod absence_monitor;
mod core_network_link;
mod fault;
mod gsm_network;
mod hlr_connection;
mod hlr_lookup;
mod link_input;
mod location_lookups;
mod mapping;
mod mo;
mod msc_identity;
mod mt;
mod mt_refusal;
mod options;
mod proxy;
mod state;
mod subscriber_info;
mod subscribers;

pub use gsm_network::{GsmError, GsmNetwork};
pub use gsup::GsupImsi;
pub use mt_refusal::{describe_refusal, is_absent, is_memory_full};
pub use options::{GsmOptions, GsmRole};
pub use subscriber_info::{HlrUnreachable, Presence, SubscriberInfo, SubscriberKey};
pub use tpdu::Language;
