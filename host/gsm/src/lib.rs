//! The GSM core network as one peer: an SMSC's place beside an OsmoHLR and the MSCs behind it, over GSUP.
//!
//! * **One link for the engine**, whatever the number of MSCs: it is up while any of them can be reached. What the engine
//!   hands over stands in the second queue ([`mt`]) until its MSC has said what became of it; when the MSC or the link goes,
//!   it goes back to the first, in order, and what was written is in doubt.
//! * **A handset gets its yes when its message is on disk**, and not before ([`mo`]). A repetition is known as one, also
//!   after a crash.
//! * **What is not ours passes through** ([`proxy`]): octet for octet, in order, and without waiting for anything of ours.
//! * Who is where is learnt from what passes by, or the HLR is asked ([`whereabouts`]); who stands behind a number, the HLR is
//!   asked ([`register`]).
#![forbid(unsafe_code)]

mod absent;
mod client;
mod desk;
mod fault;
mod identity;
mod lookup;
mod mapping;
mod mo;
mod mt;
mod network;
mod options;
mod outcome;
mod proxy;
mod register;
mod state;
mod subscribers;
mod whereabouts;

pub use fault::{GsmFault, GsmFaultKind};
pub use gsup::Imsi;
pub use lookup::{HlrSilent, Presence, SubscriberInfo, SubscriberKey};
pub use network::{GsmError, Network};
pub use options::{GsmOptions, Role};
pub use outcome::{is_absence, is_memory_full, refusal_words};
pub use state::{ConnectionState, GsmState};
pub use tpdu::Language;
