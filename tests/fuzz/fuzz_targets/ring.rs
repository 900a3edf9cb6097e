//! Arbitrary octets as values that a node reads from etcd. The first octet selects: a slot of the ring under any keys,
//! a record in its slot, a value of the shared state, the head of the log. They are refused or decoded; a decoded value
//! survives an encoding round trip.
#![no_main]

// The cluster's source files without the crate, which would add a client of etcd.
#[path = "../../../host/cluster/src"]
#[allow(dead_code)]
mod cluster {
    pub mod ring;
    pub mod shared_content;
}

/// Like the message in `host/cluster/src/proto.rs`.
mod proto {
    pub(crate) struct KeyValue {
        pub(crate) key: Vec<u8>,
        pub(crate) value: Vec<u8>,
    }
}

use cluster::ring::{ClusterKeys, DecodedSlot, decode_head, decode_slot, encode_head, encode_slot};
use cluster::shared_content::{decode, encode};
use journal::record::{MAX_PAYLOAD, RECORD_HEADER, decode_record};
use libfuzzer_sys::fuzz_target;
use proto::KeyValue;

const SLOT: u64 = 7;

/// The keys and values of a record.
fn stored(keys: &ClusterKeys, record: &[u8], compress: bool) -> Vec<KeyValue> {
    let encoded = encode_slot(keys, SLOT, record, compress);
    let all = std::iter::once(encoded.slot).chain(encoded.pieces);
    all.map(|(key, value)| KeyValue { key: key.into_bytes(), value }).collect()
}

/// Octets as keys and values: each value is preceded by an octet that selects its key, and an octet with its length.
fn composed(mut octets: &[u8]) -> Vec<KeyValue> {
    let mut found = Vec::new();
    while let [key, length, rest @ ..] = octets {
        let key = match key % 8 {
            0..4 => format!("/s/ring/{SLOT:04}"),
            4 => format!("/s/ring/{:04}", SLOT + 1),
            number => format!("/s/ring/{SLOT:04}/{:02}", number - 4),
        };
        let (value, behind) = rest.split_at(rest.len().min(usize::from(*length)));
        found.push(KeyValue { key: key.into_bytes(), value: value.to_vec() });
        octets = behind;
    }
    found
}

fuzz_target!(|input: &[u8]| {
    let Some((&mode, octets)) = input.split_first() else { return };
    let keys = ClusterKeys::new("/s");
    match mode % 5 {
        mode @ (0 | 1) => {
            let found = match mode {
                0 => composed(octets),
                _ => vec![KeyValue { key: keys.slot(SLOT).into_bytes(), value: octets.to_vec() }],
            };
            let DecodedSlot::Record(record, used) = decode_slot(&keys, SLOT, &found) else { return };
            assert!((1..=found.len()).contains(&used));
            assert!(record.len() <= RECORD_HEADER + MAX_PAYLOAD);
            let _ = decode_record(&record);
            let again = stored(&keys, &record, mode == 0);
            assert_eq!(decode_slot(&keys, SLOT, &again), DecodedSlot::Record(record, again.len()));
        }
        2 => {
            let Some((&how, record)) = octets.split_first() else { return };
            let mut found = stored(&keys, record, how & 1 == 1);
            assert_eq!(decode_slot(&keys, SLOT, &found), DecodedSlot::Record(record.to_vec(), found.len()));
            // A truncated value is not a slot.
            if let Some(last) = found.last_mut() {
                last.value.truncate(last.value.len().saturating_sub(1 + usize::from(how >> 1)));
            }
            assert!(!matches!(decode_slot(&keys, SLOT, &found), DecodedSlot::Record(..)));
        }
        3 => {
            let Some(content) = decode(octets) else { return };
            let written = encode(&content).expect("as long as it was read");
            assert_eq!(decode(&written), Some(content));
        }
        _ => {
            let Some(head) = decode_head(octets) else { return };
            assert_eq!(encode_head(&head), octets);
        }
    }
});
