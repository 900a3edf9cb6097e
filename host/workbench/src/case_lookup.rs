//! Lookups in cases: the answer about a number, and the answers of the domain name system.

use api::DnsGrant;
use capabilities::{Dns, DnsAnswer, DnsFailure, DnsRecord, DnsRecordType, NaptrRecord, check_dns_grant};
use hooks::NumberAnswer;
use model::LookupResult;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// A lookup's answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CaseLookup {
    /// The number is known.
    Found(CaseKnownNumber),
    /// The number is not known; valid for this number of milliseconds.
    Unknown(u64),
    /// Ask again soon.
    TryLater,
}

/// The facts about a number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CaseKnownNumber {
    /// The attributes.
    pub attributes: BTreeMap<String, String>,
    /// How long the answer is valid, in milliseconds.
    pub lifetime_ms: u64,
}

impl From<&NumberAnswer> for CaseLookup {
    fn from(answer: &NumberAnswer) -> Self {
        let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        match answer.result {
            LookupResult::Failed => Self::TryLater,
            LookupResult::Unknown => Self::Unknown(milliseconds(answer.lifetime)),
            LookupResult::Found => {
                let attribute = |(name, value): &(Box<str>, Box<str>)| (name.to_string(), value.to_string());
                Self::Found(CaseKnownNumber {
                    attributes: answer.attributes.iter().map(attribute).collect(),
                    lifetime_ms: milliseconds(answer.lifetime),
                })
            }
        }
    }
}

/// The records of a name, or the reason why there are none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CaseDnsName {
    /// The name.
    pub name: String,
    /// Its naming authority pointers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub naptr: Vec<CaseNaptr>,
    /// Its texts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub txt: Vec<String>,
    /// Seconds for which the records, or their absence, are valid.
    #[serde(default = "ttl")]
    pub ttl: u32,
    /// The reason for a missing answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<CaseDnsFailure>,
}

fn ttl() -> u32 {
    300
}

/// A naming authority pointer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CaseNaptr {
    /// Its order.
    #[serde(default)]
    pub order: u16,
    /// Its preference.
    #[serde(default)]
    pub preference: u16,
    /// Its flags.
    #[serde(default)]
    pub flags: String,
    /// Its services.
    #[serde(default)]
    pub services: String,
    /// Its substitution expression.
    #[serde(default)]
    pub regexp: String,
    /// The next name.
    #[serde(default)]
    pub replacement: String,
}

/// The reason for a missing answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CaseDnsFailure {
    /// The server did not answer in time.
    TimedOut,
    /// The server failed.
    Failed,
}

/// The domain name system of a case. Names that it does not have do not exist.
pub(crate) struct FixedDns(pub(crate) Vec<CaseDnsName>);

impl Dns for FixedDns {
    fn query(
        &self,
        grant: &DnsGrant,
        name: &str,
        record_type: DnsRecordType,
    ) -> Result<DnsAnswer, DnsFailure> {
        let plain = name.trim_end_matches('.').to_ascii_lowercase();
        let in_zone = |zone: &String| {
            let zone = zone.trim_end_matches('.').to_ascii_lowercase();
            plain == zone || plain.ends_with(&format!(".{zone}"))
        };
        if check_dns_grant(grant).is_err() || !grant.zones.iter().any(in_zone) {
            return Err(DnsFailure::NotAllowed(format!("{name:?} is in no granted zone (grants.dns)")));
        }
        let Some(found) = self.0.iter().find(|one| one.name.eq_ignore_ascii_case(&plain)) else {
            return Err(DnsFailure::None { ttl: ttl() });
        };
        match found.failure {
            Some(CaseDnsFailure::TimedOut) => return Err(DnsFailure::TimedOut),
            Some(CaseDnsFailure::Failed) => return Err(DnsFailure::Failed("ServerFailure".to_owned())),
            None => {}
        }
        let mut records: Vec<DnsRecord> = match record_type {
            DnsRecordType::Txt => found.txt.iter().cloned().map(DnsRecord::Text).collect(),
            DnsRecordType::Naptr => found.naptr.iter().map(naptr).collect(),
        };
        records.sort_by_key(|record| match record {
            DnsRecord::Naptr(record) => (record.order, record.preference),
            DnsRecord::Text(_) => (0, 0),
        });
        if records.is_empty() {
            return Err(DnsFailure::None { ttl: found.ttl });
        }
        Ok(DnsAnswer { records, ttl: found.ttl })
    }
}

fn naptr(record: &CaseNaptr) -> DnsRecord {
    DnsRecord::Naptr(NaptrRecord {
        order: record.order,
        preference: record.preference,
        flags: record.flags.clone(),
        services: record.services.clone(),
        regexp: record.regexp.clone(),
        replacement: record.replacement.clone(),
    })
}
