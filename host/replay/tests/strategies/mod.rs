//! Messages, and what a candidate says of them: few peers and addresses, so that much is the same and much is nearly so.

use archive::{ArchivedLeg, ArchivedMessage, ArchivedVerdict, Lacking, Price, PriceState};
use model::{Address, DecidedBy, MessageId, NoSender, ReceiptRequest, RejectReason, SenderWish, Timestamp};
use proptest::prelude::*;
use proptest::{collection::vec, option, sample::select};
use replay::{Judged, JudgedLeg, Judgement, PriceVerdict};
use smallvec::SmallVec;
use std::borrow::Cow;
use std::sync::Arc;

fn name() -> impl Strategy<Value = Arc<str>> {
    select(vec!["north", "south", "reserve", "home"]).prop_map(Arc::from)
}

fn rewritten() -> impl Strategy<Value = Option<Address>> {
    let address = (0..2u8, 1..3u8, select(vec!["70001", "4930123456"]));
    prop_oneof![
        4 => Just(None),
        1 => address.prop_map(|(ton, npi, value)| Some(Address::new(ton, npi, value.as_bytes()))),
    ]
}

/// A leg as both sides know it.
fn leg() -> impl Strategy<Value = JudgedLeg> {
    (name(), select(vec![0u8, 1, 1, 7]), select(vec![0u16, 1, 2, 4, 65_535]), rewritten(), rewritten())
        .prop_map(|(peer, rank, weight, source, destination)| JudgedLeg {
            peer,
            rank,
            weight,
            source,
            destination,
        })
}

fn archived(leg: &JudgedLeg, resolve: bool) -> ArchivedLeg {
    ArchivedLeg {
        peer: leg.peer.clone(),
        rank: leg.rank,
        weight: leg.weight,
        cost: 7,
        longest_wait: None,
        source: leg.source.clone(),
        destination: leg.destination.clone(),
        resolve,
    }
}

fn reason() -> impl Strategy<Value = RejectReason> {
    (1..=9u8).prop_map(|octet| RejectReason::from_octet(octet).unwrap())
}

fn verdict() -> impl Strategy<Value = ArchivedVerdict> {
    prop_oneof![
        6 => vec(leg(), 1..4).prop_map(|legs| {
            ArchivedVerdict::Forward(legs.iter().map(|leg| archived(leg, false)).collect())
        }),
        1 => vec(leg(), 1..3).prop_map(|legs| {
            ArchivedVerdict::Forward(legs.iter().map(|leg| archived(leg, true)).collect())
        }),
        1 => (0..3u64).prop_map(|until| ArchivedVerdict::Hold(Timestamp(until))),
        1 => reason().prop_map(ArchivedVerdict::Reject),
    ]
}

fn judgement() -> impl Strategy<Value = Judgement> {
    prop_oneof![
        6 => vec(leg(), 1..4).prop_map(|legs| Judgement::Forward(legs.into_iter().collect())),
        1 => Just(Judgement::Home),
        1 => (0..3u64).prop_map(|until| Judgement::Hold(Timestamp(until))),
        1 => reason().prop_map(Judgement::Reject),
        1 => Just(Judgement::Pass),
        1 => select(vec!["trap", "deadline"]).prop_map(|kind| Judgement::Fault(Cow::Borrowed(kind))),
    ]
}

/// What a candidate says that decides as was decided, in other words: legs in another order, other ranks and multiples of
/// the weights.
fn faithful(verdict: &ArchivedVerdict, turn: usize) -> Judgement {
    match verdict {
        ArchivedVerdict::Forward(legs) if legs.iter().all(|leg| leg.resolve) => Judgement::Home,
        ArchivedVerdict::Forward(legs) => {
            let mut legs: SmallVec<[JudgedLeg; 1]> = legs
                .iter()
                .map(|leg| JudgedLeg {
                    peer: leg.peer.clone(),
                    rank: leg.rank.saturating_add(3),
                    weight: leg.weight.max(1).checked_mul(3).unwrap_or(leg.weight),
                    source: leg.source.clone(),
                    destination: leg.destination.clone(),
                })
                .collect();
            let turn = turn % legs.len();
            legs.rotate_left(turn);
            Judgement::Forward(legs)
        }
        ArchivedVerdict::Hold(until) => Judgement::Hold(*until),
        ArchivedVerdict::Reject(reason) => Judgement::Reject(*reason),
    }
}

fn price() -> impl Strategy<Value = Option<Box<Price>>> {
    let by = Arc::new(DecidedBy { plugin: "prepaid".into(), version: "1".into() });
    option::of((option::of(name()), 0..5u64)).prop_map(move |priced| {
        priced.map(|(account, amount)| {
            let (amount, state) = match account {
                Some(_) => (amount, PriceState::Captured),
                None => (0, PriceState::Free),
            };
            Box::new(Price { account, amount, keep_on_failure: false, state, by: by.clone() })
        })
    })
}

fn price_verdict() -> impl Strategy<Value = Option<PriceVerdict>> {
    option::of(prop_oneof![
        1 => Just(PriceVerdict::Free),
        4 => (name(), 0..5u64).prop_map(|(account, amount)| PriceVerdict::Charge { account, amount }),
        1 => Just(PriceVerdict::Refuse),
    ])
}

/// Senders differ in their pool, in what is shown of them, and in what is not.
fn sender() -> impl Strategy<Value = Option<Box<SenderWish>>> {
    let otherwise = select(vec![NoSender::Reject, NoSender::KeepSender, NoSender::Hold]);
    let wish = (select(vec!["texts", "calls"]), otherwise, select(vec!["", "ann"]));
    let wish = wish.prop_map(|(pool, otherwise, user)| SenderWish {
        pool: pool.parse().unwrap(),
        holder: "acme".into(),
        user: user.into(),
        reason: "".into(),
        lease: None,
        otherwise,
        given: None,
    });
    option::weighted(0.2, wish.prop_map(Box::new))
}

prop_compose! {
    /// A message, and what is said of it. Its id is 0.
    pub(crate) fn pair()(
        origin in name(),
        verdict in verdict(),
        price in price(),
        senders in (sender(), sender()),
        routed in prop::bool::weighted(0.95),
        older in prop::bool::weighted(0.1),
        judgement in judgement(),
        faithfully in option::weighted(0.4, any::<usize>()),
        because in option::weighted(0.3, select(vec!["peers were not recorded", "the clock was not recorded"])),
        new_price in price_verdict(),
        note in option::of(select(vec!["cheaper", "prefix 49"])),
    ) -> (ArchivedMessage, Judged) {
        let (wanted, wants) = senders;
        let judged = Judged {
            sender: if faithfully.is_some_and(|turn| turn % 3 > 0) { wanted.clone() } else { wants },
            verdict: faithfully.map_or(judgement, |turn| faithful(&verdict, turn)),
            note: note.map(Box::from),
            inexact_because: because.map(Cow::Borrowed),
            price: new_price,
        };
        let message = ArchivedMessage {
            id: MessageId(0),
            accepted_at: Timestamp(1_700_000_000_000),
            decided_at: Timestamp(1_700_000_000_000),
            origin,
            source: Address::new(0, 1, b"106900001234"),
            destination: Address::international("4917012345678"),
            service_type: SmallVec::new(),
            data_coding: 0,
            priority: 0,
            length: 12,
            udhi: false,
            receipts: ReceiptRequest::NONE,
            body: None,
            verdict,
            price,
            seen: None,
            routed,
            sender: wanted,
            lacking: older.then_some(Lacking::Older),
        };
        (message, judged)
    }
}
