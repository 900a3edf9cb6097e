//! DNS queries of plugins.

mod client;
mod dns_grant;
mod packet;

pub use client::DnsClient;
pub use dns_grant::check_dns_grant;
pub use packet::{DnsQuestion, DnsResponse, parse_dns_response};

use api::DnsGrant;

/// A DNS resolver for plugins.
pub trait Dns: Send + Sync {
    /// Queries the servers of a grant, one after the other, and waits for the first usable answer.
    ///
    /// # Errors
    /// The grant does not allow the name, there are no such records, or no server has an answer.
    fn query(
        &self,
        grant: &DnsGrant,
        name: &str,
        record_type: DnsRecordType,
    ) -> Result<DnsAnswer, DnsFailure>;
}

/// The types of records that plugins may query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DnsRecordType {
    /// Naming authority pointers (RFC 3403).
    Naptr,
    /// Texts.
    Txt,
}

/// A naming authority pointer (RFC 3403 §4.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NaptrRecord {
    /// The order in which records are processed.
    pub order: u16,
    /// The preference among records of the same order.
    pub preference: u16,
    /// Flags that say how the result is used.
    pub flags: String,
    /// The services.
    pub services: String,
    /// The substitution expression.
    pub regexp: String,
    /// The next name, without a trailing dot; empty: none.
    pub replacement: String,
}

/// A record of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DnsRecord {
    /// A naming authority pointer.
    Naptr(NaptrRecord),
    /// The strings of a text record, joined.
    Text(String),
}

/// The records of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DnsAnswer {
    /// The records; naming authority pointers by order and preference.
    pub records: Vec<DnsRecord>,
    /// Seconds for which all records are valid.
    pub ttl: u32,
}

/// The reason why a query has no records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DnsFailure {
    /// The grant does not allow the name, or it is not a valid name.
    NotAllowed(String),
    /// The name does not exist, or has no such records.
    None {
        /// Seconds for which this is valid (RFC 2308).
        ttl: u32,
    },
    /// No server answered in time.
    TimedOut,
    /// No server could be reached, or the responses are errors or invalid.
    Failed(String),
}
