//! Answers of other systems, as the host call log records them.
//!
//! An answer is JSON. A request is named by a digest, because its URL and its headers may have secrets.

use crate::bindings::host::switchyard::hooks::{dns, http};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use capabilities::{DnsAnswer, DnsRecord, NaptrRecord};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The name of a request: the SHA-256 of its method, URL, headers and body.
pub(super) fn request_key(request: &http::Request) -> [u8; 32] {
    let mut digest = Sha256::new();
    let mut add = |part: &[u8]| {
        digest.update((part.len() as u64).to_le_bytes());
        digest.update(part);
    };
    add(request.method.as_bytes());
    add(request.url.as_bytes());
    for (name, value) in &request.headers {
        add(name.as_bytes());
        add(value.as_bytes());
    }
    add(&request.body);
    digest.finalize().into()
}

#[derive(Debug, Serialize, Deserialize)]
enum RecordedResponse {
    Response(u16, Vec<(String, String)>, String),
    NotAllowed(String),
    TimedOut,
    TooLarge,
    Unreachable(String),
}

/// A response or a failure; empty if it is not recorded.
pub(super) fn write_response(result: &Result<http::Response, http::Failure>) -> Vec<u8> {
    let recorded = match result {
        Ok(response) => RecordedResponse::Response(
            response.status,
            response.headers.clone(),
            STANDARD.encode(&response.body),
        ),
        Err(http::Failure::NotAllowed(why)) => RecordedResponse::NotAllowed(why.clone()),
        Err(http::Failure::TimedOut) => RecordedResponse::TimedOut,
        Err(http::Failure::TooLarge) => RecordedResponse::TooLarge,
        Err(http::Failure::Unreachable(why)) => RecordedResponse::Unreachable(why.clone()),
        Err(http::Failure::NotNow) => return Vec::new(),
    };
    serde_json::to_vec(&recorded).unwrap_or_default()
}

/// The recorded response or failure; `NotNow` if it is damaged.
pub(super) fn read_response(recorded: &[u8]) -> Result<http::Response, http::Failure> {
    match serde_json::from_slice(recorded).map_err(|_| http::Failure::NotNow)? {
        RecordedResponse::Response(status, headers, body) => {
            let body = STANDARD.decode(body).map_err(|_| http::Failure::NotNow)?;
            Ok(http::Response { status, headers, body })
        }
        RecordedResponse::NotAllowed(why) => Err(http::Failure::NotAllowed(why)),
        RecordedResponse::TimedOut => Err(http::Failure::TimedOut),
        RecordedResponse::TooLarge => Err(http::Failure::TooLarge),
        RecordedResponse::Unreachable(why) => Err(http::Failure::Unreachable(why)),
    }
}

#[derive(Debug, Serialize, Deserialize)]
enum RecordedDns {
    Answer(u32, Vec<RecordedRecord>),
    NotAllowed(String),
    None(u32),
    TimedOut,
    Failed(String),
}

#[derive(Debug, Serialize, Deserialize)]
enum RecordedRecord {
    Naptr(u16, u16, String, String, String, String),
    Text(String),
}

/// An answer or a failure; empty if it is not recorded.
pub(super) fn write_dns(result: &Result<DnsAnswer, dns::Failure>) -> Vec<u8> {
    let record = |record: &DnsRecord| match record {
        DnsRecord::Naptr(found) => RecordedRecord::Naptr(
            found.order,
            found.preference,
            found.flags.clone(),
            found.services.clone(),
            found.regexp.clone(),
            found.replacement.clone(),
        ),
        DnsRecord::Text(text) => RecordedRecord::Text(text.clone()),
    };
    let recorded = match result {
        Ok(answer) => RecordedDns::Answer(answer.ttl, answer.records.iter().map(record).collect()),
        Err(dns::Failure::NotAllowed(why)) => RecordedDns::NotAllowed(why.clone()),
        Err(dns::Failure::None(ttl)) => RecordedDns::None(*ttl),
        Err(dns::Failure::TimedOut) => RecordedDns::TimedOut,
        Err(dns::Failure::Failed(why)) => RecordedDns::Failed(why.clone()),
        Err(dns::Failure::NotNow) => return Vec::new(),
    };
    serde_json::to_vec(&recorded).unwrap_or_default()
}

/// The recorded answer or failure; `NotNow` if it is damaged.
pub(super) fn read_dns(recorded: &[u8]) -> Result<DnsAnswer, dns::Failure> {
    let record = |record| match record {
        RecordedRecord::Naptr(order, preference, flags, services, regexp, replacement) => {
            DnsRecord::Naptr(NaptrRecord { order, preference, flags, services, regexp, replacement })
        }
        RecordedRecord::Text(text) => DnsRecord::Text(text),
    };
    match serde_json::from_slice(recorded).map_err(|_| dns::Failure::NotNow)? {
        RecordedDns::Answer(ttl, records) => {
            Ok(DnsAnswer { records: records.into_iter().map(record).collect(), ttl })
        }
        RecordedDns::NotAllowed(why) => Err(dns::Failure::NotAllowed(why)),
        RecordedDns::None(ttl) => Err(dns::Failure::None(ttl)),
        RecordedDns::TimedOut => Err(dns::Failure::TimedOut),
        RecordedDns::Failed(why) => Err(dns::Failure::Failed(why)),
    }
}
