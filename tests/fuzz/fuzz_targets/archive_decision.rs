//! Any octets as the value of the archive's column `decision`, as a replay reads it: damaged, or a message; and a message
//! written as such a value is read as the same. Whatever the store can hold of a message that has ended goes through both
//! columns, `decision` and `trace`.
//!
//! The first octet says which: a decision, or a record of the store's table `finished`.
#![no_main]

// The room's files as they are, without the data bases that the whole room brings.
#[path = "../../../host/archive/src/archived.rs"]
#[allow(dead_code)]
mod archived;
#[path = "../../../host/archive/src/decision.rs"]
#[allow(dead_code)]
mod decision;
#[path = "../../../host/archive/src/storable.rs"]
#[allow(dead_code)]
mod storable;
#[path = "../../../host/archive/src/trace.rs"]
mod trace;

use archived::{ArchivedMessage, ArchivedVerdict, PriceState};
use bytes::Bytes;
use decision::Decoder;
use libfuzzer_sys::fuzz_target;
use model::{
    Charge, DecidedBy, Final, FinalState, Kind, Leg, Message, MessageId, PeerId, PeerMessageId, Priority,
    Quote, ReceiptState, ReceiptText, Routed, Step, StepKind, Text, Timestamp, Verdict,
};
use std::sync::Arc;

/// As the room's; see `host/archive/src/source.rs`.
pub trait Parties: Send + Sync {
    /// The name of a peer or account.
    fn name(&self, id: PeerId) -> Arc<str>;
}

/// Names by number.
struct Named(Vec<Arc<str>>);

impl Parties for Named {
    fn name(&self, id: PeerId) -> Arc<str> {
        self.0.get(id.0 as usize).cloned().unwrap_or_else(|| format!("peer {}", id.0).into())
    }
}

impl Named {
    fn number(&mut self, name: &Arc<str>) -> PeerId {
        self.0.push(name.clone());
        PeerId(self.0.len() as u32 - 1)
    }
}

const ID: MessageId = MessageId(7);

fuzz_target!(|input: &[u8]| {
    let Some((&which, octets)) = input.split_first() else { return };
    match which % 2 {
        0 => as_read(&Bytes::copy_from_slice(octets)),
        _ => as_kept(octets),
    }
});

fn as_read(octets: &Bytes) {
    let mut decoder = Decoder::new();
    let mut read = match decoder.message(ID, octets) {
        Ok(read) => read,
        Err(damage) => return assert!(!damage.is_empty()),
    };
    assert_eq!(decoder.message(ID, octets).as_ref(), Ok(&read), "names that are known already");
    // Lengths and priorities that no message has, which a damaged value may.
    if read.length > 1 << 16 {
        return;
    }
    read.priority = Priority::new(read.priority).level();
    let Some((message, ended, named)) = written(&mut read) else { return };
    let value = Bytes::from(decision::encode(&message, &ended, &named));
    assert_eq!(Decoder::new().message(ID, &value), Ok(read));
}

/// A message of which the archive would say this; what it would say otherwise is mended.
fn written(read: &mut ArchivedMessage) -> Option<(Message, Final, Named)> {
    let mut named = Named(Vec::new());
    let mut steps = Vec::new();
    let verdict = match &read.verdict {
        ArchivedVerdict::Forward(legs) => Verdict::Forward(
            legs.iter()
                .map(|leg| Leg {
                    rank: leg.rank,
                    weight: leg.weight,
                    cost: leg.cost,
                    longest_wait: leg.longest_wait,
                    source: leg.source.clone(),
                    destination: leg.destination.clone(),
                    resolve: leg.resolve,
                    ..Leg::to(named.number(&leg.peer))
                })
                .collect(),
        ),
        ArchivedVerdict::Hold(until) => Verdict::Hold(*until),
        ArchivedVerdict::Reject(reason) => Verdict::Reject(*reason),
    };
    if read.decided_at != read.accepted_at {
        steps.push(Step { at: read.decided_at, kind: StepKind::Held { until: read.decided_at } });
    }
    let quote = read.price.as_mut().map(|price| {
        let charge = price.account.as_ref().map(|account| Charge {
            account: account.clone(),
            amount: price.amount,
            keep_on_failure: price.keep_on_failure,
            settle: false,
        });
        match (&charge, price.state) {
            (None, _) => (price.state, price.keep_on_failure) = (PriceState::Free, false),
            (Some(_), PriceState::Free) => price.state = PriceState::Open,
            _ => {}
        }
        let kind = match price.state {
            PriceState::Captured => Some(StepKind::Charged { amount: price.amount }),
            PriceState::Refunded => Some(StepKind::Refunded { amount: price.amount }),
            PriceState::Free | PriceState::Open => None,
        };
        steps.extend(kind.map(|kind| Step { at: Timestamp(9), kind }));
        Box::new(Quote { charge, by: price.by.clone(), note: None })
    });
    let by = Arc::new(DecidedBy { plugin: "fuzz".into(), version: "1".into() });
    let kind = if read.routed { Kind::Text } else { Kind::Receipt(Box::new(receipt())) };
    let message = Message {
        id: ID,
        kind,
        origin: named.number(&read.origin),
        source: read.source.clone(),
        destination: read.destination.clone(),
        service_type: Bytes::copy_from_slice(&read.service_type),
        protocol_id: 0,
        esm_class: 0,
        priority: Priority::new(read.priority),
        receipts: read.receipts,
        replace_if_present: false,
        submission: None,
        text: Text {
            octets: vec![b'x'; read.length as usize].into(),
            data_coding: read.data_coding,
            udhi: read.udhi,
            payload: false,
        },
        tlvs: Bytes::new(),
        accepted_at: read.accepted_at,
        scheduled: None,
        expires_at: read.accepted_at,
        routed: Routed { verdict, by, note: None, quote, seen: read.seen.as_deref().map(Into::into), faulted: None },
    };
    let ended = Final {
        state: FinalState::Delivered,
        at: read.decided_at,
        error: 0,
        peer: None,
        peer_id: PeerMessageId::new(b""),
        steps,
    };
    Some((message, ended, named))
}

fn receipt() -> ReceiptText {
    ReceiptText {
        of: ID,
        state: ReceiptState::Delivered,
        intermediate: false,
        error: 0,
        network_error: None,
        submitted_at: Timestamp(0),
        done_at: Timestamp(0),
        parts: (1, 1),
        part: 0,
        peer_id: PeerMessageId::new(b""),
    }
}

fn as_kept(octets: &[u8]) {
    let Ok((message, end)) = store::record::Decoder::new().message(ID, octets) else { return };
    let Ok(ended) = store::record::decode_final(&octets[end..]) else { return };
    let named = Named(Vec::new());
    let value = Bytes::from(decision::encode(&message, &ended, &named));
    let read = Decoder::new().message(ID, &value).expect("a decision of ours that is damaged");
    assert_eq!((read.accepted_at, read.source, read.destination), {
        (message.accepted_at, message.source.clone(), message.destination.clone())
    });
    assert_eq!(read.length as usize, message.text.octets.len());
    assert_eq!(read.seen.as_deref(), message.routed.seen.as_deref());
    assert_eq!(read.price.is_some(), message.routed.quote.is_some());
    match (&read.verdict, &message.routed.verdict) {
        (ArchivedVerdict::Forward(read), Verdict::Forward(legs)) => assert_eq!(read.len(), legs.len()),
        (ArchivedVerdict::Hold(read), Verdict::Hold(until)) => assert_eq!(read, until),
        (ArchivedVerdict::Reject(read), Verdict::Reject(reason)) => assert_eq!(read, reason),
        (read, kept) => panic!("{read:?} of {kept:?}"),
    }
    let trace = trace::encode(&message, &ended, &named);
    let trace: serde_json::Value = serde_json::from_str(&trace).expect("a trace that is no JSON");
    assert_eq!(trace["steps"].as_array().map(Vec::len), Some(ended.steps.len()));
    let service = trace["submission"]["service_type"].as_str().unwrap_or_default();
    assert_eq!(storable::stored(service).as_deref(), Some(&message.service_type[..]));
}
