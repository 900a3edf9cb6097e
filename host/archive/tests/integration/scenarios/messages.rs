//! Test messages and an in-memory source.

use archive::{ArchivedMessage, ArchivedPrice, FinishedSource, PeerDirectory, SourceError};
use bytes::Bytes;
use model::{
    Address, Charge, Direction, DlrRequest, FinalRecord, FinalState, Leg, Message, MessageId, PeerId,
    PeerMessageId, PluginVersion, PriceState, Priority, Quote, RejectReason, RoutingDecision, Step, StepKind,
    Text, Timestamp, Verdict,
};
use parking_lot::{Condvar, Mutex};
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// 2026-03-01 00:00 UTC, in milliseconds.
pub const START: u64 = 1_772_323_200_000;

/// Peers 0 and 1 are accounts, 2 and 3 gateways.
pub const PEER_NAMES: [&str; 4] = ["acme", "bank", "north", "south"];

pub type Finished = (Message, FinalRecord);

/// The `n`th message: from one of two accounts to one of two gateways, or back; with every final state; one per second.
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
            steps.push(step(900 + n % 3000, StepKind::DlrReceived { state: 2, error: 0 }));
            (FinalState::Delivered, 0)
        }
        4 => {
            steps.push(step(25, StepKind::Responded { id: peer_id.clone() }));
            steps.push(step(5000, StepKind::DlrReceived { state: 5, error: 27 }));
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
        kind: model::MessageKind::Text,
        origin,
        source,
        destination,
        service_type: Bytes::new(),
        protocol_id: 0,
        esm_class: 0,
        priority: Priority::new((n % 4) as u8),
        dlr_request: DlrRequest::FINAL,
        replace_if_present: false,
        submission: (n % 10 < 3).then(|| MessageId(id.0 - n % 10)),
        text: Text {
            octets: Bytes::from(format!("Message number {n}, with a text as long as texts are.")),
            data_coding: 0,
            udhi: false,
            payload: false,
        },
        tlvs: Bytes::new(),
        protocol_fields: Bytes::new(),
        sealed: None,
        accepted_at,
        scheduled: None,
        expires_at: at(172_800_000),
        routed: RoutingDecision::new(
            Verdict::Forward(vec![Leg::to(to)]),
            Arc::new(PluginVersion { plugin: "prefix-router".into(), version: "0123456789ab".into() }),
        ),
    };
    let ended = FinalRecord {
        state,
        at: at(6000),
        error,
        peer: (n % 7 < 5).then_some(to),
        peer_id: if n % 7 < 5 { peer_id } else { PeerMessageId::default() },
        steps,
    };
    (message, ended)
}

/// The `n`th message, with every kind of routing and pricing.
pub fn decided(n: u64) -> Finished {
    let (mut message, mut ended) = finished(n);
    let at = |ms: u64| Timestamp(message.accepted_at.0 + ms);
    let leg = |peer: u32, rank| Leg { rank, weight: 1 + (n % 5) as u16, ..Leg::to(PeerId(peer)) };
    let routed = &mut message.routed;
    routed.verdict = match n % 6 {
        0 => Verdict::Forward(vec![leg(2, 0)]),
        1 => Verdict::Forward(vec![leg(3, 0), leg(2, 0), leg(3, 200)]),
        2 => Verdict::Forward(vec![Leg {
            cost: 35_000,
            longest_wait: Some(Duration::from_secs(90)),
            source: Some(Address::new(5, 0, b"Caf\xe9")),
            destination: Some(Address::international("4930123456")),
            ..leg(2, 1)
        }]),
        3 => Verdict::Forward(vec![Leg {
            resolve: true,
            imsi: Some(model::Imsi(model::AddressBytes::from_slice(b"262011234567890"))),
            ..leg(3, 0)
        }]),
        4 => Verdict::Hold(at(3_600_000)),
        _ => Verdict::Reject(RejectReason::Prohibited),
    };
    routed.host_calls = n.is_multiple_of(4).then(|| vec![n as u8; (n % 300) as usize].into());
    let charge = (!n.is_multiple_of(5)).then(|| Charge {
        account: PEER_NAMES[(n % 2) as usize].into(),
        amount: 1_000 * n,
        keep_on_failure: n.is_multiple_of(2),
        settle: false,
        tenants: Vec::new(),
    });
    let paid = !n.is_multiple_of(3);
    if let Some(charge) = &charge {
        let amount = charge.amount;
        let kind = if paid { StepKind::Charged { amount } } else { StepKind::Refunded { amount } };
        ended.steps.push(Step { at: ended.at, kind });
    }
    let by = Arc::new(PluginVersion { plugin: "prepaid".into(), version: "ba9876543210".into() });
    routed.quote =
        (!n.is_multiple_of(7)).then(|| Box::new(Quote { charge, by, note: Some("a tariff".into()) }));
    message.service_type = if n.is_multiple_of(9) { Bytes::from_static(b"CMT") } else { Bytes::new() };
    message.text.udhi = n.is_multiple_of(8);
    (message, ended)
}

/// The expected replay of the archive.
pub fn archived((message, ended): &Finished, body: bool) -> ArchivedMessage {
    let name = |id: PeerId| Arc::from(PEER_NAMES[id.0 as usize]);
    let routed = &message.routed;
    ArchivedMessage {
        id: message.id,
        accepted_at: message.accepted_at,
        decided_at: if matches!(routed.verdict, Verdict::Reject(_)) { ended.at } else { message.accepted_at },
        origin: name(message.origin),
        source: message.source.clone(),
        destination: message.destination.clone(),
        service_type: SmallVec::from_slice(&message.service_type),
        data_coding: message.text.data_coding,
        priority: message.priority.level(),
        length: message.text.octets.len() as u32,
        udhi: message.text.udhi,
        dlr_request: message.dlr_request,
        body: body.then(|| message.text.octets.clone()),
        verdict: {
            let mut verdict = routed.verdict.map_peers(|peer| name(*peer));
            if let Verdict::Forward(legs) = &mut verdict {
                // The subscriber is in the trace only.
                legs.iter_mut().for_each(|leg| leg.imsi = None);
            }
            verdict
        },
        price: routed.quote.as_ref().map(|quote| {
            let paid = ended.steps.iter().any(|step| matches!(step.kind, StepKind::Charged { .. }));
            Box::new(ArchivedPrice {
                account: quote.charge.as_ref().map(|charge| charge.account.clone()),
                amount: quote.charge.as_ref().map_or(0, |charge| charge.amount),
                keep_on_failure: quote.charge.as_ref().is_some_and(|charge| charge.keep_on_failure),
                state: match quote.charge {
                    None => PriceState::Free,
                    Some(_) if paid => PriceState::Captured,
                    Some(_) => PriceState::Refunded,
                },
                by: quote.by.clone(),
            })
        }),
        host_calls: routed.host_calls.as_ref().map(|host_calls| Bytes::copy_from_slice(host_calls)),
        routed: true,
        sender: None,
        changes: None,
        screening: None,
        lookup: None,
        calls: Vec::new(),
        trace: None,
        missing: None,
    }
}

/// The expected direction.
pub fn direction(message: &Message) -> Direction {
    if message.origin.0 < 2 { Direction::Mt } else { Direction::Mo }
}

/// An in-memory source.
#[derive(Default)]
pub struct TestSource {
    messages: Mutex<BTreeMap<u64, Finished>>,
    changed: Condvar,
    /// Removals fail, as when the daemon dies before them.
    pub fail_removals: AtomicBool,
    pub removed: AtomicU64,
}

impl TestSource {
    pub fn with(numbers: impl IntoIterator<Item = u64>) -> Arc<Self> {
        let source = Arc::new(Self::default());
        source.put(numbers.into_iter().map(finished));
        source
    }

    pub fn put(&self, messages: impl IntoIterator<Item = Finished>) {
        self.messages.lock().extend(messages.into_iter().map(|message| (message.0.id.0, message)));
    }

    pub fn ids(&self) -> Vec<u64> {
        self.messages.lock().keys().copied().collect()
    }

    /// Waits until at most `left` messages remain, for as long as their number falls.
    pub fn wait_for(&self, left: usize) {
        let mut messages = self.messages.lock();
        while messages.len() > left {
            assert!(
                !self.changed.wait_for(&mut messages, Duration::from_secs(300)).timed_out(),
                "{} messages remain and none is archived",
                messages.len()
            );
        }
    }
}

impl PeerDirectory for TestSource {
    fn name(&self, id: PeerId) -> Arc<str> {
        PEER_NAMES.get(id.0 as usize).copied().unwrap_or("?").into()
    }

    fn is_account(&self, id: PeerId) -> bool {
        id.0 < 2
    }
}

impl FinishedSource for TestSource {
    fn read(&self, after: MessageId, most: usize) -> Result<Vec<Finished>, SourceError> {
        Ok(self.messages.lock().range(after.0 + 1..).take(most).map(|(_, message)| message.clone()).collect())
    }

    fn remove(&self, ids: Vec<MessageId>) -> Result<(), SourceError> {
        if self.fail_removals.load(Relaxed) {
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
