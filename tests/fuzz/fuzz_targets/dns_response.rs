//! Arbitrary octets as the response to a DNS query: recognised as foreign, or parsed without a panic.
#![no_main]

use capabilities::{DnsQuestion, DnsRecord, DnsRecordType, DnsResponse, parse_dns_response};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|octets: &[u8]| {
    // The id of the input, so that the rest is read.
    let id = octets.first_chunk().map_or(0, |id| u16::from_be_bytes(*id));
    for record_type in [DnsRecordType::Naptr, DnsRecordType::Txt] {
        let question = DnsQuestion { id, name: "4.3.2.1.e164.arpa".to_owned(), record_type };
        if let DnsResponse::Answer(Ok(answer)) = parse_dns_response(&question, octets) {
            assert!((1..=32).contains(&answer.records.len()));
            let fits = |record: &DnsRecord| {
                matches!(record, DnsRecord::Naptr(_)) == (record_type == DnsRecordType::Naptr)
            };
            assert!(answer.records.iter().all(fits));
        }
    }
});
