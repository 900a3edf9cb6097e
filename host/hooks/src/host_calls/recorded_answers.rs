//! The form in which the host call log records answers of other systems.
//!
//! An answer is JSON. A digest identifies a request, because its URL and its headers may contain secrets.

use crate::bindings::host::switchyard::hooks::dns;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use capabilities::{DnsAnswer, DnsRecord, FetchFailure, FetchRequest, FetchResponse, NaptrRecord};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The key of a request: the SHA-256 of its method, URL, headers and body.
pub(super) fn request_key(request: &FetchRequest) -> [u8; 32] {
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
    NotConnected(String),
}

/// A response or a failure.
pub(super) fn write_response(result: &Result<FetchResponse, FetchFailure>) -> Vec<u8> {
    let recorded = match result {
        Ok(response) => RecordedResponse::Response(
            response.status,
            response.headers.clone(),
            STANDARD.encode(&response.body),
        ),
        Err(FetchFailure::NotAllowed(why)) => RecordedResponse::NotAllowed(why.clone()),
        Err(FetchFailure::TimedOut) => RecordedResponse::TimedOut,
        Err(FetchFailure::TooLarge) => RecordedResponse::TooLarge,
        Err(FetchFailure::Unreachable(why)) => RecordedResponse::Unreachable(why.clone()),
        Err(FetchFailure::NotConnected(why)) => RecordedResponse::NotConnected(why.clone()),
    };
    serde_json::to_vec(&recorded).unwrap_or_default()
}

/// The answer of a peer for the record: without cookies, and without the reason of a failure, which may quote the URL.
pub(super) fn without_private_parts(
    result: &Result<FetchResponse, FetchFailure>,
) -> Result<FetchResponse, FetchFailure> {
    let why = "as recorded".to_owned();
    match result {
        Ok(response) => {
            let mut response = response.clone();
            response.headers.retain(|(name, _)| !name.eq_ignore_ascii_case("set-cookie"));
            Ok(response)
        }
        Err(FetchFailure::NotAllowed(_)) => Err(FetchFailure::NotAllowed(why)),
        Err(FetchFailure::Unreachable(_)) => Err(FetchFailure::Unreachable(why)),
        Err(FetchFailure::NotConnected(_)) => Err(FetchFailure::NotConnected(why)),
        Err(failure @ (FetchFailure::TimedOut | FetchFailure::TooLarge)) => Err(failure.clone()),
    }
}

/// The recorded response or failure; `None` if it is damaged.
pub(super) fn read_response(recorded: &[u8]) -> Option<Result<FetchResponse, FetchFailure>> {
    Some(match serde_json::from_slice(recorded).ok()? {
        RecordedResponse::Response(status, headers, body) => {
            Ok(FetchResponse { status, headers, body: STANDARD.decode(body).ok()? })
        }
        RecordedResponse::NotAllowed(why) => Err(FetchFailure::NotAllowed(why)),
        RecordedResponse::TimedOut => Err(FetchFailure::TimedOut),
        RecordedResponse::TooLarge => Err(FetchFailure::TooLarge),
        RecordedResponse::Unreachable(why) => Err(FetchFailure::Unreachable(why)),
        RecordedResponse::NotConnected(why) => Err(FetchFailure::NotConnected(why)),
    })
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
