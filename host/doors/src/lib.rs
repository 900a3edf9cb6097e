//! What every door of the house needs, whatever protocol it speaks: the way into the core ([`Core`]), the way back
//! ([`Hub`], or [`Desk`] for those that only ask), what wakes those who watch number pools ([`PoolFeed`]), the question where a message goes ([`Routing`]), the way from a text to its
//! octets ([`text`]), and the rules that all of them hold to: refused submissions ([`Refusals`]), passwords ([`Verifier`], [`LoginLimiter`]), connections ([`Acceptor`]), addresses ([`Network`],
//! [`SourceRules`]), rates ([`Bucket`]).
//!
//! A door is anything through which messages come and go: an SMPP or SGIP link, a business system's HTTP call, a push to
//! its URL. Doors know nothing of queues and nothing of each other.
#![forbid(unsafe_code)]

mod acceptor;
mod address_group;
mod certificates;
mod descriptors;
mod desk;
mod http;
mod hub;
mod login_limiter;
mod password;
mod pool_feed;
mod ports;
mod rate;
mod refusals;
mod rules;
mod server_certificate;
pub mod text;
mod unread;

pub use acceptor::{Acceptor, ConnectionCounts, ConnectionLimits, Full, Place, Places};
pub use address_group::AddressGroup;
pub use certificates::{ServerTls, TlsFileError, authorities, certificates, private_key, provider};
pub use descriptors::{descriptor_share, raise_descriptor_limit};
pub use desk::{Desk, NoAnswer};
pub use http::{Callers, HttpLimits, HttpListener};
pub use hub::{Deliveries, Delivery, Hub, take_leave};
pub use login_limiter::{Entrance, LoginLimiter, LoginLimits, TooManyWrong};
pub use password::{PasswordError, Verifier, check_password_hash, hash_password};
pub use pool_feed::{PoolFeed, PoolNews};
pub use ports::{Core, Routing};
pub use rate::{AccountRate, AccountRates, Bucket};
pub use refusals::{KEPT_REFUSALS, Protocol, Refusals, Refused};
pub use rules::{Network, ParseNetworkError, SourceRules, matches};
pub use server_certificate::{Certificate, TlsError, own_certificate};
pub use unread::Unread;
