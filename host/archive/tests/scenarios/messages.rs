//! Messages to be archived, and a source that holds them.

use archive::{BoxError, Direction, Parties, Source};
use bytes::Bytes;
use model::{
    Address, DecidedBy, Final, FinalState, Leg, Message, MessageId, PeerId, PeerMessageId, Priority,
    ReceiptRequest, Routed, Step, StepKind, Text, Timestamp, Verdict,
};
use parking_lot::{Condvar, Mutex};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// 2026-03-01 00:00 UTC, in milliseconds.
pub const START: u64 = 1_772_323_200_000;

/// Peers 0 and 1 are accounts, 2 and 3 gateways.
pub const NAMES: [&str; 4] = ["acme", "bank", "north", "south"];

pub type Finished = (Message, Final);

/// The `n`th message: of one of two accounts to one of two gateways, or back; every way to end; one a second.
pub fn finished(n: u64) -> Finished {
    let id = MessageId(MessageId::FIRST.0 + n);
    let mo = n % 10 == 9;
    let (account, gateway) = (PeerId((n % 2) as u32), PeerId(2 + (n / 2 % 2) as u32));
    let (origin, to) = if mo { (gateway, account) } else { (account, gateway) };
    let accepted_at = Timestamp(START + n * 1000);
    let subscriber = Address::international(&format!("49170{:07}", n % 500));
    let service = Address::new(0, 1, format!("{}", 70000 + n % 3).as_bytes());
    let (source, destination) = if mo { (subscriber, service) } else { (service, subscriber) };
    let at = |ms: u64| Timestamp(accepted_at.0 + ms);
    let step = |ms, kind| Step { at: at(ms), kind };
    let mut steps = vec![step(0, StepKind::Accepted), step(2, StepKind::Submitted { peer: to, attempt: 1 })];
    let peer_id = PeerMessageId::new(format!("{n:x}").as_bytes());
    let (state, error) = match n % 7 {
        0..=3 => {
            steps.push(step(20 + n % 50, StepKind::Responded { id: peer_id.clone() }));
            steps.push(step(900 + n % 3000, StepKind::Reported { state: 2, error: 0 }));
            (FinalState::Delivered, 0)
        }
        4 => {
            steps.push(step(25, StepKind::Responded { id: peer_id.clone() }));
            steps.push(step(5000, StepKind::Reported { state: 5, error: 27 }));
            (FinalState::Failed, 27)
        }
        5 => {
            steps.push(step(30, StepKind::Refused { code: 0x0b }));
            (FinalState::Rejected, 0x0b)
        }
        _ => {
            steps.push(step(40, StepKind::Unanswered));
            (FinalState::Unknown, 0)
        }
    };
    let message = Message {
        id,
        kind: model::Kind::Text,
        origin,
        source,
        destination,
        service_type: Bytes::new(),
        protocol_id: 0,
        esm_class: 0,
        priority: Priority::new((n % 4) as u8),
        receipts: ReceiptRequest::FINAL,
        replace_if_present: false,
        text: Text {
            octets: Bytes::from(format!("Message number {n}, with a text as long as texts are.")),
            data_coding: 0,
            udhi: false,
            payload: false,
        },
        tlvs: Bytes::new(),
        accepted_at,
        scheduled: None,
        expires_at: at(172_800_000),
        routed: Routed {
            verdict: Verdict::Forward(vec![Leg::to(to)]),
            by: Arc::new(DecidedBy { plugin: "prefix-router".into(), version: "0123456789ab".into() }),
            note: None,
            quote: None,
            seen: None,
        },
    };
    let ended = Final {
        state,
        at: at(6000),
        error,
        peer: (n % 7 < 5).then_some(to),
        peer_id: if n % 7 < 5 { peer_id } else { PeerMessageId::default() },
        steps,
    };
    (message, ended)
}

/// What the archive should say of its direction.
pub fn direction(message: &Message) -> Direction {
    if message.origin.0 < 2 { Direction::Mt } else { Direction::Mo }
}

/// A source in memory.
#[derive(Default)]
pub struct Shelf {
    messages: Mutex<BTreeMap<u64, Finished>>,
    changed: Condvar,
    /// Removals fail, as they do when the daemon dies before them.
    pub dying: AtomicBool,
    pub removed: AtomicU64,
}

impl Shelf {
    pub fn with(numbers: impl IntoIterator<Item = u64>) -> Arc<Self> {
        let shelf = Arc::new(Self::default());
        shelf.put(numbers.into_iter().map(finished));
        shelf
    }

    pub fn put(&self, messages: impl IntoIterator<Item = Finished>) {
        self.messages.lock().extend(messages.into_iter().map(|message| (message.0.id.0, message)));
    }

    pub fn ids(&self) -> Vec<u64> {
        self.messages.lock().keys().copied().collect()
    }

    /// Waits until no more than so many are left.
    pub fn wait_for(&self, left: usize) {
        let deadline = Instant::now() + Duration::from_secs(300);
        let mut messages = self.messages.lock();
        while messages.len() > left {
            assert!(
                !self.changed.wait_until(&mut messages, deadline).timed_out(),
                "{} messages are still on the shelf",
                messages.len()
            );
        }
    }
}

impl Parties for Shelf {
    fn name(&self, id: PeerId) -> Arc<str> {
        NAMES.get(id.0 as usize).copied().unwrap_or("?").into()
    }

    fn is_account(&self, id: PeerId) -> bool {
        id.0 < 2
    }
}

impl Source for Shelf {
    fn read(&self, after: MessageId, most: usize) -> Result<Vec<Finished>, BoxError> {
        Ok(self.messages.lock().range(after.0 + 1..).take(most).map(|(_, message)| message.clone()).collect())
    }

    fn removed(&self, ids: Vec<MessageId>) -> Result<(), BoxError> {
        if self.dying.load(Relaxed) {
            return Err("the daemon was killed".into());
        }
        let mut messages = self.messages.lock();
        for id in ids {
            if messages.remove(&id.0).is_some() {
                self.removed.fetch_add(1, Relaxed);
            }
        }
        self.changed.notify_all();
        Ok(())
    }

    fn backlog(&self) -> u64 {
        self.messages.lock().len() as u64
    }
}
