//! Arbitrary octets as the archive column `decision`, as a replay reads it: damaged, or a message; and a message
//! written to the column is read back unchanged. Every finished message that the store can hold is written to both
//! columns, `decision` and `trace`.
//!
//! The first octet selects: a decision, or a record of the store's table `finished`.
#![no_main]

// The archive's source files without the crate, which would add the database drivers.
#[path = "../../../host/archive/src"]
#[allow(dead_code, unused_imports)]
mod archive {
    pub mod archived_message;
    pub mod decision;
    pub mod trace;
}

use archive::{archived_message, decision, trace};
use archived_message::ArchivedMessage;
use bytes::Bytes;
use decision::DecisionDecoder;
use libfuzzer_sys::fuzz_target;
use model::{
    Charge, DlrContent, DlrState, FinalRecord, FinalState, Message, MessageId, MessageKind, PeerId,
    PeerMessageId, PluginVersion, PriceState, Priority, Quote, RoutingDecision, Step, StepKind, Text,
    Timestamp, Verdict,
};
use std::sync::Arc;

/// Like the trait in `host/archive/src/finished_source.rs`.
pub trait PeerDirectory: Send + Sync {
    /// The name of a peer or account.
    fn name(&self, id: PeerId) -> Arc<str>;
}

/// Names by peer id.
struct NamedPeers(Vec<Arc<str>>);

impl PeerDirectory for NamedPeers {
    fn name(&self, id: PeerId) -> Arc<str> {
        self.0.get(id.0 as usize).cloned().unwrap_or_else(|| format!("peer {}", id.0).into())
    }
}

impl NamedPeers {
    fn number(&mut self, name: &Arc<str>) -> PeerId {
        self.0.push(name.clone());
        PeerId(self.0.len() as u32 - 1)
    }
}

const ID: MessageId = MessageId(7);

fuzz_target!(|input: &[u8]| {
    let Some((&which, octets)) = input.split_first() else { return };
    match which % 2 {
        0 => check_decode(&Bytes::copy_from_slice(octets)),
        _ => check_archive(octets),
    }
});

fn check_decode(octets: &Bytes) {
    let mut decoder = DecisionDecoder::new();
    let mut read = match decoder.message(ID, octets) {
        Ok(read) => read,
        Err(damage) => return assert!(!damage.what.is_empty()),
    };
    assert_eq!(decoder.message(ID, octets).as_ref(), Ok(&read), "names that are known already");
    // Lengths and priorities that no message has, but a damaged value may.
    if read.length > 1 << 16 {
        return;
    }
    read.priority = Priority::new(read.priority).level();
    let Some((message, ended, named)) = written(&mut read) else { return };
    let value = Bytes::from(decision::encode(&message, &ended, &named));
    assert_eq!(DecisionDecoder::new().message(ID, &value), Ok(read));
}

/// A message for which the archive would write this value; impossible values are corrected.
fn written(read: &mut ArchivedMessage) -> Option<(Message, FinalRecord, NamedPeers)> {
    let mut named = NamedPeers(Vec::new());
    let mut steps = Vec::new();
    let verdict = read.verdict.map_peers(|peer| named.number(peer));
    if read.decided_at != read.accepted_at {
        steps.push(Step { at: read.decided_at, kind: StepKind::Held { until: read.decided_at } });
    }
    let quote = read.price.as_mut().map(|price| {
        let charge = price.account.as_ref().map(|account| Charge {
            account: account.clone(),
            amount: price.amount,
            keep_on_failure: price.keep_on_failure,
            settle: false,
            tenants: Vec::new(),
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
    let by = Arc::new(PluginVersion { plugin: "fuzz".into(), version: "1".into() });
    let kind = if read.routed { MessageKind::Text } else { MessageKind::Dlr(Box::new(receipt())) };
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
        dlr_request: read.dlr_request,
        replace_if_present: false,
        submission: None,
        text: Text {
            octets: vec![b'x'; read.length as usize].into(),
            data_coding: read.data_coding,
            udhi: read.udhi,
            payload: false,
        },
        tlvs: Bytes::new(),
        protocol_fields: Bytes::new(),
        sealed: None,
        accepted_at: read.accepted_at,
        scheduled: None,
        expires_at: read.accepted_at,
        routed: RoutingDecision {
            sender: read.sender.clone(),
            changes: read.changes.clone(),
            quote,
            host_calls: read.host_calls.as_deref().map(Into::into),
            ..RoutingDecision::new(verdict, by)
        },
    };
    let ended = FinalRecord {
        state: FinalState::Delivered,
        at: read.decided_at,
        error: 0,
        peer: None,
        peer_id: PeerMessageId::new(b""),
        steps,
    };
    Some((message, ended, named))
}

fn receipt() -> DlrContent {
    DlrContent {
        of: ID,
        state: DlrState::Delivered,
        intermediate: false,
        error: 0,
        network_error: None,
        submitted_at: Timestamp(0),
        done_at: Timestamp(0),
        segments: (1, 1),
        segment: 0,
        peer_id: PeerMessageId::new(b""),
    }
}

fn check_archive(octets: &[u8]) {
    let Ok((message, end)) = codec::RecordDecoder::new().message(ID, octets) else { return };
    let Ok(ended) = codec::decode_final(&octets[end..]) else { return };
    let named = NamedPeers(Vec::new());
    let value = Bytes::from(decision::encode(&message, &ended, &named));
    let read = DecisionDecoder::new().message(ID, &value).expect("a decision of ours that is damaged");
    assert_eq!((read.accepted_at, read.source, read.destination), {
        (message.accepted_at, message.source.clone(), message.destination.clone())
    });
    assert_eq!(read.length as usize, message.text.octets.len());
    assert_eq!(read.host_calls.as_deref(), message.routed.host_calls.as_deref());
    assert_eq!(read.price.is_some(), message.routed.quote.is_some());
    match (&read.verdict, &message.routed.verdict) {
        (Verdict::Forward(read), Verdict::Forward(legs)) => assert_eq!(read.len(), legs.len()),
        (Verdict::Hold(read), Verdict::Hold(until)) => assert_eq!(read, until),
        (Verdict::Reject(read), Verdict::Reject(reason)) => assert_eq!(read, reason),
        (read, stored) => panic!("{read:?} of {stored:?}"),
    }
    let trace = trace::encode(&message, &ended, &named);
    let trace: serde_json::Value = serde_json::from_str(&trace).expect("a trace that is no JSON");
    assert_eq!(trace["steps"].as_array().map(Vec::len), Some(ended.steps.len()));
    let service = trace["submission"]["service_type"].as_str().unwrap_or_default();
    assert_eq!(model::unescape(service).as_deref(), Some(&message.service_type[..]));
}
