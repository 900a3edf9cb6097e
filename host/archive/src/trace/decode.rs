//! Decodes the column `trace` into the model's types.

use super::{Leg as WrittenLeg, Route, Sender, Trace, TraceStep};
use crate::text_escape::unescape;
use model::{
    Address, AddressBytes, AdminActionKind, Imsi, Leg, PeerId, PeerMessageId, PluginVersion, QueueActionId,
    SenderRequest, Step, StepKind, Timestamp, Verdict,
};
use std::sync::Arc;
use std::time::Duration;

/// The decoded trace of an archived message.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DecodedTrace {
    /// The end of its validity.
    pub expires_at: Timestamp,
    /// The verdict; `None` if it cannot be decoded.
    pub verdict: Option<Verdict>,
    /// The pool sender that was requested.
    pub sender: Option<SenderRequest>,
    /// The price, if a biller was called.
    pub price: Option<TracePrice>,
    /// The steps. Unknown kinds are omitted.
    pub steps: Vec<Step>,
}

/// The price of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracePrice {
    /// The biller.
    pub plugin: String,
    /// The biller's version.
    pub version: String,
    /// The biller's note.
    pub note: Option<String>,
    /// The ledger account; `None` if free.
    pub account: Option<String>,
    /// Millionths of the operator's currency.
    pub amount: u64,
}

/// Decodes a trace. `number` maps peer names to ids. Returns `None` for text that is not a trace.
pub fn decode_trace(text: &str, number: &mut dyn FnMut(&str) -> PeerId) -> Option<DecodedTrace> {
    let trace: Trace = serde_json::from_str(text).ok()?;
    let steps = trace.steps.into_iter();
    Some(DecodedTrace {
        expires_at: trace.submission.expires_at,
        verdict: Some(match trace.route {
            Route::Legs(legs) => Verdict::Forward(legs.into_iter().map(|one| leg(one, number)).collect()),
            Route::Held(until) => Verdict::Hold(until),
            Route::Rejected(reason) => Verdict::Reject(reason),
        }),
        sender: trace.sender.and_then(sender),
        price: trace.price.map(|price| TracePrice {
            plugin: price.plugin,
            version: price.version,
            note: price.note.map(Into::into),
            account: price.account.map(|account| account.to_string()),
            amount: price.amount,
        }),
        steps: steps
            .filter_map(|one| Some(Step { at: one.at, kind: step_kind(one.kind, number)? }))
            .collect(),
    })
}

fn octets(text: &str) -> Vec<u8> {
    unescape(text).unwrap_or_else(|| text.as_bytes().to_vec())
}

fn address(value: Option<&str>, kind: Option<(u8, u8)>) -> Option<Address> {
    let (ton, npi) = kind.unwrap_or_default();
    value.map(|text| Address::new(ton, npi, &octets(text)))
}

fn leg(written: WrittenLeg, number: &mut dyn FnMut(&str) -> PeerId) -> Leg {
    Leg {
        rank: written.rank,
        weight: written.weight,
        cost: written.cost,
        longest_wait: written.longest_wait_ms.map(Duration::from_millis),
        source: address(written.source.as_deref(), written.source_type),
        destination: address(written.destination.as_deref(), written.destination_type),
        resolve: written.resolve,
        imsi: written.imsi.map(|imsi| Imsi(AddressBytes::from_slice(&octets(&imsi)))),
        ..Leg::to(number(&written.peer))
    }
}

fn sender(written: Sender) -> Option<SenderRequest> {
    Some(SenderRequest {
        pool: written.pool.parse().ok()?,
        holder: written.holder,
        user: written.user,
        reason: written.reason,
        lease: written.lease_ms.map(Duration::from_millis),
        otherwise: written.otherwise,
        leased: address(written.given.as_deref(), None),
    })
}

fn step_kind(kind: TraceStep, number: &mut dyn FnMut(&str) -> PeerId) -> Option<StepKind> {
    Some(match kind {
        TraceStep::Accepted => StepKind::Accepted,
        TraceStep::Submitted { peer, attempt } => StepKind::Submitted { peer: number(&peer), attempt },
        TraceStep::Responded { id } => StepKind::Responded { id: PeerMessageId::new(&octets(&id)) },
        TraceStep::Refused { code } => StepKind::Refused { code },
        TraceStep::NotSent => StepKind::NotSent,
        TraceStep::Unanswered => StepKind::Unanswered,
        TraceStep::Deferred { until } => StepKind::Deferred { until },
        TraceStep::NextLeg { peer } => StepKind::NextLeg { peer: number(&peer) },
        TraceStep::SentAgain => StepKind::SentAgain,
        TraceStep::Asked => StepKind::StatusQueried,
        TraceStep::Reported { state, error } => StepKind::DlrReceived { state, error },
        TraceStep::Replaced => StepKind::Replaced,
        TraceStep::Held { until } => StepKind::Held { until },
        TraceStep::Rerouted { peer } => StepKind::Rerouted { peer: number(&peer) },
        TraceStep::Recovered => StepKind::Recovered,
        TraceStep::Decided { hook, plugin, version, note } => {
            StepKind::Decided { hook, by: Arc::new(PluginVersion { plugin, version }), note }
        }
        TraceStep::Resolving => StepKind::Resolving,
        TraceStep::Resolved { peer, cached } => StepKind::Resolved { peer: number(&peer), cached },
        TraceStep::UnknownSubscriber { cached } => StepKind::UnknownSubscriber { cached },
        TraceStep::AskedAnew { imsi } => {
            StepKind::SubscriberRequeried { imsi: Imsi(AddressBytes::from_slice(&octets(&imsi))) }
        }
        TraceStep::OthersFirst { until } => StepKind::MovedBehindOthers { until },
        TraceStep::AwaitingAlert { until } => StepKind::AwaitingAlert { until },
        TraceStep::SenderTaken { pool, number } => {
            StepKind::SenderLeased { pool: pool.parse().ok()?, number: number.parse().ok()? }
        }
        TraceStep::NoSender { pool } => StepKind::SenderUnavailable { pool: pool.parse().ok()? },
        TraceStep::Charged { amount } => StepKind::Charged { amount },
        TraceStep::Refunded { amount } => StepKind::Refunded { amount },
        TraceStep::ByHand { deed, by, order, peer } => StepKind::AdminAction {
            action: AdminActionKind::ALL.into_iter().find(|known| known.name() == deed)?,
            by,
            queue_action: order.map(QueueActionId),
            peer: peer.map(|peer| number(&peer)),
        },
        TraceStep::Unknown => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::{TimedStep, timed_step};
    use super::*;
    use model::Hook;

    #[test]
    fn steps_survive_a_round_trip() {
        let (peer, until) = (PeerId(7), Timestamp(9));
        let by = Arc::new(PluginVersion { plugin: "p".to_owned(), version: "v".to_owned() });
        let kinds = [
            StepKind::Accepted,
            StepKind::Submitted { peer, attempt: 2 },
            StepKind::Responded { id: PeerMessageId::new(b"4f\\\xff") },
            StepKind::Refused { code: 88 },
            StepKind::NotSent,
            StepKind::Unanswered,
            StepKind::Deferred { until },
            StepKind::NextLeg { peer },
            StepKind::SentAgain,
            StepKind::StatusQueried,
            StepKind::DlrReceived { state: 2, error: 3 },
            StepKind::Replaced,
            StepKind::Held { until },
            StepKind::Rerouted { peer },
            StepKind::Recovered,
            StepKind::Decided { hook: Hook::DeliveryPolicy, by, note: Some("n".into()) },
            StepKind::Resolving,
            StepKind::Resolved { peer, cached: true },
            StepKind::UnknownSubscriber { cached: false },
            StepKind::SubscriberRequeried { imsi: Imsi(AddressBytes::from_slice(b"26201")) },
            StepKind::MovedBehindOthers { until },
            StepKind::AwaitingAlert { until },
            StepKind::SenderLeased { pool: "pool".parse().unwrap(), number: "4930".parse().unwrap() },
            StepKind::SenderUnavailable { pool: "pool".parse().unwrap() },
            StepKind::Charged { amount: 5 },
            StepKind::Refunded { amount: 6 },
            StepKind::AdminAction {
                action: AdminActionKind::Rerouted,
                by: "ada".into(),
                queue_action: Some(QueueActionId(3)),
                peer: Some(peer),
            },
            StepKind::AdminAction {
                action: AdminActionKind::Retried,
                by: "ada".into(),
                queue_action: None,
                peer: None,
            },
        ];
        for fields in kinds {
            let step = Step { at: Timestamp(1), kind: fields.clone() };
            let text = serde_json::to_string(&timed_step(&step, &|_| "upstream".into())).unwrap();
            let read: TimedStep =
                serde_json::from_str(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
            let mut number = |name: &str| {
                assert_eq!(name, "upstream");
                peer
            };
            assert_eq!(step_kind(read.kind, &mut number), Some(fields), "{text}");
        }
    }

    #[test]
    fn traces_of_other_versions_are_read_partially() {
        let text = r#"{"submission":{"expires_at":17},"route":{"legs":[{"peer":"a"},{"peer":"b","rank":1,"weight":5}]},
            "steps":[{"at":1,"step":"submitted","peer":"b","attempt":1},{"at":2,"step":"beamed_up","by":"x"}]}"#;
        let mut names = Vec::new();
        let mut number = |name: &str| {
            names.push(name.to_owned());
            PeerId(names.len() as u32)
        };
        let decoded = decode_trace(text, &mut number).unwrap();
        assert_eq!((decoded.expires_at, decoded.steps.len()), (Timestamp(17), 1));
        let Some(Verdict::Forward(legs)) = decoded.verdict else { panic!("no legs") };
        assert_eq!((legs[0].weight, legs[1].rank, legs[1].weight), (1, 1, 5));
        assert_eq!(names, ["a", "b", "b"]);
        assert_eq!(decode_trace("{}", &mut |_| PeerId(0)), None);
        assert_eq!(decode_trace("no JSON", &mut |_| PeerId(0)), None);
    }
}
