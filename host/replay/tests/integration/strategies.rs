//! Random messages and candidate decisions, with few peers and addresses, so that many are equal or nearly equal.

use archive::{ArchivedMessage, ArchivedPrice, MissingData};
use model::{
    Address, DlrRequest, Leg, MessageChanges, MessageId, PaceBucketUse, PluginVersion, PriceState,
    RejectReason, SenderFallback, SenderRequest, Timestamp, Verdict,
};
use proptest::prelude::*;
use proptest::{collection::vec, option, sample::select};
use replay::{CandidateDecision, CandidatePrice, CandidateVerdict};
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

fn leg(resolve: bool) -> impl Strategy<Value = Leg<Arc<str>>> {
    (name(), select(vec![0u8, 1, 1, 7]), select(vec![0u16, 1, 2, 4, 65_535]), rewritten(), rewritten())
        .prop_map(move |(peer, rank, weight, source, destination)| Leg {
            rank,
            weight,
            cost: 7,
            source,
            destination,
            resolve,
            ..Leg::to(peer)
        })
}

fn reason() -> impl Strategy<Value = RejectReason> {
    (1..=9u8).prop_map(|octet| RejectReason::from_octet(octet).unwrap())
}

fn verdict() -> impl Strategy<Value = Verdict<Arc<str>>> {
    prop_oneof![
        6 => vec(leg(false), 1..4).prop_map(Verdict::Forward),
        1 => vec(leg(true), 1..3).prop_map(Verdict::Forward),
        1 => (0..3u64).prop_map(|until| Verdict::Hold(Timestamp(until))),
        1 => reason().prop_map(Verdict::Reject),
    ]
}

fn candidate_verdict() -> impl Strategy<Value = CandidateVerdict> {
    prop_oneof![
        9 => verdict().prop_map(CandidateVerdict::Decided),
        1 => Just(CandidateVerdict::Pass),
        1 => select(vec!["trap", "deadline"]).prop_map(|kind| CandidateVerdict::Fault(Cow::Borrowed(kind))),
    ]
}

/// An equivalent candidate verdict in another form: legs in another order, other ranks and multiples of the weights.
fn faithful(verdict: &Verdict<Arc<str>>, turn: usize) -> CandidateVerdict {
    let mut verdict = verdict.clone();
    match &mut verdict {
        // The resolver's target is not compared.
        home if home.is_home() => {
            *home = Verdict::Forward(vec![Leg { resolve: true, ..Leg::to("home".into()) }]);
        }
        Verdict::Forward(legs) => {
            for leg in &mut *legs {
                (leg.rank, leg.cost) = (leg.rank.saturating_add(3), 0);
                leg.weight = leg.weight.max(1).checked_mul(3).unwrap_or(leg.weight);
            }
            let turn = turn % legs.len();
            legs.rotate_left(turn);
        }
        Verdict::Hold(_)
        | Verdict::Reject(_)
        | Verdict::Quarantine
        | Verdict::AwaitLookup
        | Verdict::Drop(_) => {}
    }
    CandidateVerdict::Decided(verdict)
}

fn price() -> impl Strategy<Value = Option<Box<ArchivedPrice>>> {
    let by = Arc::new(PluginVersion { plugin: "prepaid".into(), version: "1".into() });
    option::of((option::of(name()), 0..5u64)).prop_map(move |priced| {
        priced.map(|(account, amount)| {
            let (amount, state) = match account {
                Some(_) => (amount, PriceState::Captured),
                None => (0, PriceState::Free),
            };
            Box::new(ArchivedPrice { account, amount, keep_on_failure: false, state, by: by.clone() })
        })
    })
}

fn price_verdict() -> impl Strategy<Value = Option<CandidatePrice>> {
    option::of(prop_oneof![
        1 => Just(CandidatePrice::Free),
        4 => (name(), 0..5u64).prop_map(|(account, amount)| CandidatePrice::Charge { account, amount }),
        1 => Just(CandidatePrice::Refuse),
    ])
}

/// Sender requests that differ in their pool, in details that are shown, and in details that are not.
fn sender() -> impl Strategy<Value = Option<Box<SenderRequest>>> {
    let otherwise = select(vec![SenderFallback::Reject, SenderFallback::KeepSender, SenderFallback::Hold]);
    let request = (select(vec!["texts", "calls"]), otherwise, select(vec!["", "ann"]));
    let request = request.prop_map(|(pool, otherwise, user)| SenderRequest {
        pool: pool.parse().unwrap(),
        holder: "acme".into(),
        user: user.into(),
        reason: "".into(),
        lease: None,
        otherwise,
        leased: None,
    });
    option::weighted(0.2, request.prop_map(Box::new))
}

/// Changes that differ in shown parts, and in values, which are not shown.
fn changes() -> impl Strategy<Value = Option<Box<MessageChanges>>> {
    let bucket = |name: &str| PaceBucketUse { name: name.into(), defined: None };
    let changes = (any::<bool>(), select(vec!["one", "two"]), select(vec!["c1", "c2"])).prop_map(
        move |(removes, brand, campaign)| MessageChanges {
            tlvs: vec![(0x1401, (!removes).then(|| b"x"[..].into()))],
            attributes: vec![("brand".into(), brand.into())],
            pace_buckets: vec![bucket(campaign)],
            ..MessageChanges::default()
        },
    );
    option::weighted(0.15, changes.prop_map(Box::new))
}

prop_compose! {
    /// A message and a decision. Its id is 0.
    pub(crate) fn pair()(
        origin in name(),
        verdict in verdict(),
        price in price(),
        senders in (sender(), sender()),
        both_changes in (changes(), changes()),
        routed in prop::bool::weighted(0.95),
        older in prop::bool::weighted(0.1),
        candidate_verdict in candidate_verdict(),
        faithfully in option::weighted(0.4, any::<usize>()),
        inexact_reason in option::weighted(0.3, select(vec!["peers were not recorded", "the clock was not recorded"])),
        new_price in price_verdict(),
        note in option::of(select(vec!["cheaper", "prefix 49"])),
    ) -> (ArchivedMessage, CandidateDecision) {
        let (wanted, wants) = senders;
        let (archived_changes, new_changes) = both_changes;
        let decision = CandidateDecision {
            sender: if faithfully.is_some_and(|turn| turn % 3 > 0) { wanted.clone() } else { wants },
            changes: if faithfully.is_some_and(|turn| turn % 5 > 0) {
                archived_changes.clone()
            } else {
                new_changes
            },
            verdict: faithfully.map_or(candidate_verdict, |turn| faithful(&verdict, turn)),
            note: note.map(Box::from),
            inexact_because: inexact_reason.map(Cow::Borrowed),
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
            dlr_request: DlrRequest::NONE,
            body: None,
            verdict,
            price,
            host_calls: None,
            routed,
            sender: wanted,
            changes: archived_changes,
            screening: None,
            lookup: None,
            calls: Vec::new(),
        trace: None,
            missing: older.then_some(MissingData::Older),
        };
        (message, decision)
    }
}
