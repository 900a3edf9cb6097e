//! The column `trace`, read back in the model's words.

use super::{Leg as WrittenLeg, Route, Sender, Trace, What};
use crate::storable::stored;
use model::{
    Address, AddressBytes, DecidedBy, Deed, Imsi, Leg, OrderId, PeerId, PeerMessageId, SenderWish, Step,
    StepKind, Timestamp, Verdict,
};
use std::sync::Arc;
use std::time::Duration;

/// What the trace of an archived message says.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DecodedTrace {
    /// The end of its validity.
    pub expires_at: Timestamp,
    /// How it was routed; `None` where the trace cannot be read.
    pub verdict: Option<Verdict>,
    /// The number of a pool that it was to have for its sender.
    pub sender: Option<SenderWish>,
    /// What it was to cost, where a biller was asked.
    pub price: Option<TracedPrice>,
    /// Its steps. One of a kind that this version does not know is left out.
    pub steps: Vec<Step>,
}

/// What a message was to cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracedPrice {
    /// The biller.
    pub plugin: String,
    /// Its version.
    pub version: String,
    /// Its note.
    pub note: Option<String>,
    /// The ledger account; `None` where it was free.
    pub account: Option<String>,
    /// Millionths of the house's currency.
    pub amount: u64,
}

/// Reads a trace. `number` gives numbers to names of peers; nothing comes of a text that is no trace.
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
        price: trace.price.map(|price| TracedPrice {
            plugin: price.plugin,
            version: price.version,
            note: price.note.map(Into::into),
            account: price.account.map(|account| account.to_string()),
            amount: price.amount,
        }),
        steps: steps.filter_map(|one| Some(Step { at: one.at, kind: kind(one.what, number)? })).collect(),
    })
}

fn octets(text: &str) -> Vec<u8> {
    stored(text).unwrap_or_else(|| text.as_bytes().to_vec())
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

fn sender(written: Sender) -> Option<SenderWish> {
    Some(SenderWish {
        pool: written.pool.parse().ok()?,
        holder: written.holder,
        user: written.user,
        reason: written.reason,
        lease: written.lease_ms.map(Duration::from_millis),
        otherwise: written.otherwise,
        given: address(written.given.as_deref(), None),
    })
}

fn kind(what: What, number: &mut dyn FnMut(&str) -> PeerId) -> Option<StepKind> {
    Some(match what {
        What::Accepted => StepKind::Accepted,
        What::Submitted { peer, attempt } => StepKind::Submitted { peer: number(&peer), attempt },
        What::Responded { id } => StepKind::Responded { id: PeerMessageId::new(&octets(&id)) },
        What::Refused { code } => StepKind::Refused { code },
        What::NotSent => StepKind::NotSent,
        What::Unanswered => StepKind::Unanswered,
        What::Deferred { until } => StepKind::Deferred { until },
        What::NextLeg { peer } => StepKind::NextLeg { peer: number(&peer) },
        What::SentAgain => StepKind::SentAgain,
        What::Asked => StepKind::Asked,
        What::Reported { state, error } => StepKind::Reported { state, error },
        What::Replaced => StepKind::Replaced,
        What::Held { until } => StepKind::Held { until },
        What::Rerouted { peer } => StepKind::Rerouted { peer: number(&peer) },
        What::Recovered => StepKind::Recovered,
        What::Decided { hook, plugin, version, note } => {
            StepKind::Decided { hook, by: Arc::new(DecidedBy { plugin, version }), note }
        }
        What::Resolving => StepKind::Resolving,
        What::Resolved { peer, cached } => StepKind::Resolved { peer: number(&peer), cached },
        What::UnknownSubscriber { cached } => StepKind::UnknownSubscriber { cached },
        What::AskedAnew { imsi } => {
            StepKind::AskedAnew { imsi: Imsi(AddressBytes::from_slice(&octets(&imsi))) }
        }
        What::OthersFirst { until } => StepKind::OthersFirst { until },
        What::AwaitingAlert { until } => StepKind::AwaitingAlert { until },
        What::SenderTaken { pool, number } => {
            StepKind::SenderTaken { pool: pool.parse().ok()?, number: number.parse().ok()? }
        }
        What::NoSender { pool } => StepKind::NoSender { pool: pool.parse().ok()? },
        What::Charged { amount } => StepKind::Charged { amount },
        What::Refunded { amount } => StepKind::Refunded { amount },
        What::ByHand { deed, by, order, peer } => StepKind::ByHand {
            deed: Deed::ALL.into_iter().find(|known| known.name() == deed)?,
            by,
            order: order.map(OrderId),
            peer: peer.map(|peer| number(&peer)),
        },
        What::Unknown => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Stamped, stamped};
    use super::*;
    use model::Hook;

    #[test]
    fn every_step_is_read_as_it_was_written() {
        let (peer, until) = (PeerId(7), Timestamp(9));
        let by = Arc::new(DecidedBy { plugin: "p".to_owned(), version: "v".to_owned() });
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
            StepKind::Asked,
            StepKind::Reported { state: 2, error: 3 },
            StepKind::Replaced,
            StepKind::Held { until },
            StepKind::Rerouted { peer },
            StepKind::Recovered,
            StepKind::Decided { hook: Hook::DeliveryPolicy, by, note: Some("n".into()) },
            StepKind::Resolving,
            StepKind::Resolved { peer, cached: true },
            StepKind::UnknownSubscriber { cached: false },
            StepKind::AskedAnew { imsi: Imsi(AddressBytes::from_slice(b"26201")) },
            StepKind::OthersFirst { until },
            StepKind::AwaitingAlert { until },
            StepKind::SenderTaken { pool: "pool".parse().unwrap(), number: "4930".parse().unwrap() },
            StepKind::NoSender { pool: "pool".parse().unwrap() },
            StepKind::Charged { amount: 5 },
            StepKind::Refunded { amount: 6 },
            StepKind::ByHand {
                deed: Deed::Rebound,
                by: "ada".into(),
                order: Some(OrderId(3)),
                peer: Some(peer),
            },
            StepKind::ByHand { deed: Deed::Retried, by: "ada".into(), order: None, peer: None },
        ];
        for wanted in kinds {
            let step = Step { at: Timestamp(1), kind: wanted.clone() };
            let text = serde_json::to_string(&stamped(&step, &|_| "upstream".into())).unwrap();
            let read: Stamped = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
            let mut number = |name: &str| {
                assert_eq!(name, "upstream");
                peer
            };
            assert_eq!(kind(read.what, &mut number), Some(wanted), "{text}");
        }
    }

    #[test]
    fn traces_of_other_versions_are_read_as_far_as_they_are_understood() {
        let text = r#"{"submission":{"expires_at":17},"route":{"legs":[{"peer":"a"},{"peer":"b","rank":1,"weight":5}]},
            "steps":[{"at":1,"step":"submitted","peer":"b","attempt":1},{"at":2,"step":"beamed_up","by":"x"}]}"#;
        let mut names = Vec::new();
        let mut number = |name: &str| {
            names.push(name.to_owned());
            PeerId(names.len() as u32)
        };
        let told = decode_trace(text, &mut number).unwrap();
        assert_eq!((told.expires_at, told.steps.len()), (Timestamp(17), 1));
        let Some(Verdict::Forward(legs)) = told.verdict else { panic!("no legs") };
        assert_eq!((legs[0].weight, legs[1].rank, legs[1].weight), (1, 1, 5));
        assert_eq!(names, ["a", "b", "b"]);
        assert_eq!(decode_trace("{}", &mut |_| PeerId(0)), None);
        assert_eq!(decode_trace("no JSON", &mut |_| PeerId(0)), None);
    }
}
