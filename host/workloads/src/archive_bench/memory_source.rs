//! Finished messages in memory, as on a typical busy day: texts of a hundred octets, one submission, one DLR.

use archive::{FinishedSource, PeerDirectory, SourceError};
use bytes::Bytes;
use model::{
    Address, DlrRequest, FinalRecord, FinalState, Leg, Message, MessageId, PeerId, PeerMessageId,
    PluginVersion, Priority, RoutingDecision, Step, StepKind, Text, Timestamp, Verdict,
};
use parking_lot::{Condvar, Mutex};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// 2026-03-01 00:00 UTC.
const START: u64 = 1_772_323_200_000;

/// Number of subscribers.
pub(crate) const SUBSCRIBERS: u64 = 200_000;

const NAMES: [&str; 6] = ["acme", "bank", "clinic", "daily", "north", "south"];

/// The number of a subscriber. Consecutive messages are not adjacent in the index.
pub(crate) fn number(n: u64) -> String {
    format!("4917{:08}", n.wrapping_mul(48_271) % SUBSCRIBERS)
}

#[derive(Default)]
pub(crate) struct MemorySource {
    messages: Mutex<BTreeMap<u64, (Message, FinalRecord)>>,
    empty: Condvar,
}

impl MemorySource {
    pub(crate) fn put(&self, first: u64, count: u64) {
        let made: Vec<_> = (first..first + count).map(finished).collect();
        self.messages.lock().extend(made.into_iter().map(|message| (message.0.id.0, message)));
    }

    pub(crate) fn wait_until_empty(&self, longest: Duration) -> bool {
        let mut messages = self.messages.lock();
        while !messages.is_empty() {
            if self.empty.wait_for(&mut messages, longest).timed_out() {
                return false;
            }
        }
        true
    }
}

impl PeerDirectory for MemorySource {
    fn name(&self, id: PeerId) -> Arc<str> {
        NAMES.get(id.0 as usize).copied().unwrap_or("?").into()
    }

    fn is_account(&self, id: PeerId) -> bool {
        id.0 < 4
    }
}

impl FinishedSource for MemorySource {
    fn read(&self, after: MessageId, most: usize) -> Result<Vec<(Message, FinalRecord)>, SourceError> {
        Ok(self.messages.lock().range(after.0 + 1..).take(most).map(|(_, message)| message.clone()).collect())
    }

    fn remove(&self, ids: Vec<MessageId>) -> Result<(), SourceError> {
        let mut messages = self.messages.lock();
        for id in ids {
            messages.remove(&id.0);
        }
        self.empty.notify_all();
        Ok(())
    }

    fn backlog(&self) -> u64 {
        self.messages.lock().len() as u64
    }
}

fn finished(n: u64) -> (Message, FinalRecord) {
    let accepted_at = Timestamp(START + n * 2);
    let at = |ms: u64| Timestamp(accepted_at.0 + ms);
    let peer = PeerId(4 + u32::from(n.is_multiple_of(3)));
    let peer_id = PeerMessageId::new(format!("{:016x}", n.wrapping_mul(0x9e37_79b9_7f4a_7c15)).as_bytes());
    let step = |ms, kind| Step { at: at(ms), kind };
    let message = Message {
        id: MessageId(MessageId::FIRST.0 + n),
        kind: model::MessageKind::Text,
        origin: PeerId(u32::try_from(n % 4).unwrap_or(0)),
        source: Address::new(0, 1, format!("1069{:04}", n % 20).as_bytes()),
        destination: Address::international(&number(n)),
        service_type: Bytes::new(),
        protocol_id: 0,
        esm_class: 0,
        priority: Priority::default(),
        dlr_request: DlrRequest::FINAL,
        replace_if_present: false,
        submission: None,
        text: Text { octets: format!("{n:0100}").into(), data_coding: 0, udhi: false, payload: false },
        tlvs: Bytes::new(),
        protocol_fields: Bytes::new(),
        sealed: None,
        accepted_at,
        scheduled: None,
        expires_at: at(172_800_000),
        routed: RoutingDecision::new(
            Verdict::Forward(vec![Leg::to(peer)]),
            Arc::new(PluginVersion { plugin: "prefix-router".into(), version: "0123456789ab".into() }),
        )
        .with_note("prefix 49"),
    };
    let reported = 1500 + n * 7919 % 9000;
    let ended = FinalRecord {
        state: FinalState::Delivered,
        at: at(reported),
        error: 0,
        peer: Some(peer),
        peer_id: peer_id.clone(),
        steps: vec![
            step(0, StepKind::Accepted),
            step(3, StepKind::Submitted { peer, attempt: 1 }),
            step(3 + n * 31 % 60, StepKind::Responded { id: peer_id }),
            step(reported, StepKind::DlrReceived { state: 2, error: 0 }),
        ],
    };
    (message, ended)
}
