//! Records of every shape, for all tests of the store.
#![allow(dead_code, reason = "every test takes the part it needs")]

mod money;
pub(crate) mod reference;

use bytes::Bytes;
use engine::{Handed, Part, Progress, Waiting};
use model::{
    Address, AddressBytes, Charge, DecidedBy, Deed, Final, FinalState, Hook, Imsi, Kind, Leg, Message,
    MessageId, NoSender, OrderId, PeerId, PeerMessageId, PoolName, PoolNumber, Priority, Quote,
    ReceiptRequest, ReceiptState, ReceiptText, RejectReason, Routed, SenderWish, Step, StepKind, Text,
    Timestamp, Verdict,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use std::sync::Arc;
use std::time::Duration;

const RECEIPT_STATES: [ReceiptState; 10] = [
    ReceiptState::Scheduled,
    ReceiptState::Enroute,
    ReceiptState::Delivered,
    ReceiptState::Expired,
    ReceiptState::Deleted,
    ReceiptState::Undeliverable,
    ReceiptState::Accepted,
    ReceiptState::Unknown,
    ReceiptState::Rejected,
    ReceiptState::Skipped,
];

fn octets(most: usize) -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..=most)
}

fn time() -> impl Strategy<Value = Timestamp> {
    any::<u64>().prop_map(Timestamp)
}

fn peer() -> impl Strategy<Value = PeerId> {
    // The greatest number means "none" in a final record; it is never given out.
    (0..u32::MAX).prop_map(PeerId)
}

pub(crate) fn peer_id() -> impl Strategy<Value = PeerMessageId> {
    octets(70).prop_map(|raw| PeerMessageId::new(&raw))
}

fn address() -> impl Strategy<Value = Address> {
    (any::<u8>(), any::<u8>(), octets(64)).prop_map(|(ton, npi, value)| Address::new(ton, npi, &value))
}

pub(crate) fn receipt_state() -> impl Strategy<Value = ReceiptState> {
    select(&RECEIPT_STATES[..])
}

fn leg() -> impl Strategy<Value = Leg> {
    let wait = option::of(any::<u64>().prop_map(Duration::from_millis));
    let numbers = (peer(), any::<u8>(), any::<u16>(), any::<u32>());
    let home = (any::<bool>(), option::of(octets(15).prop_map(|raw| Imsi(AddressBytes::from_slice(&raw)))));
    (numbers, wait, option::of(address()), option::of(address()), home).prop_map(
        |((peer, rank, weight, cost), longest_wait, source, destination, (resolve, imsi))| Leg {
            peer,
            rank,
            weight,
            cost,
            longest_wait,
            source,
            destination,
            resolve,
            imsi,
        },
    )
}

fn verdict() -> impl Strategy<Value = Verdict> {
    prop_oneof![
        3 => vec(leg(), 0..5).prop_map(Verdict::Forward),
        1 => vec(leg(), 255).prop_map(Verdict::Forward),
        1 => time().prop_map(Verdict::Hold),
        1 => (1_u8..=9).prop_filter_map("a reason", RejectReason::from_octet).prop_map(Verdict::Reject),
    ]
}

fn routed() -> impl Strategy<Value = Routed> {
    let word = "\\PC{0,64}";
    let seen = option::of(octets(90).prop_map(Vec::into_boxed_slice));
    let note = option::of("\\PC{0,200}");
    (verdict(), word, "[0-9a-f]{12}", note, option::of(sender()), option::of(quote()), seen).prop_map(
        |(verdict, plugin, version, note, sender, quote, seen)| Routed {
            verdict,
            by: Arc::new(DecidedBy { plugin, version }),
            note: note.map(String::into_boxed_str),
            sender: sender.map(Box::new),
            quote: quote.map(Box::new),
            seen,
            faulted: None,
        },
    )
}

fn pool() -> impl Strategy<Value = PoolName> {
    "[a-z:]{1,100}".prop_map(|name| name.parse().expect("a name of a pool"))
}

fn pool_number() -> impl Strategy<Value = PoolNumber> {
    "[0-9+*#]{1,16}".prop_map(|text| text.parse().expect("a number of a pool"))
}

fn sender() -> impl Strategy<Value = SenderWish> {
    let words = ("\\PC{0,80}", "\\PC{0,80}", "\\PC{0,80}");
    let otherwise = select(vec![NoSender::Reject, NoSender::KeepSender, NoSender::Hold]);
    let lease = option::of(any::<u64>().prop_map(Duration::from_millis));
    (pool(), words, lease, otherwise, option::of(address())).prop_map(
        |(pool, (holder, user, reason), lease, otherwise, given)| SenderWish {
            pool,
            holder: holder.into(),
            user: user.into(),
            reason: reason.into(),
            lease,
            otherwise,
            given,
        },
    )
}

fn quote() -> impl Strategy<Value = Quote> {
    let charge = ("[a-z]{1,64}", any::<u64>(), any::<bool>(), any::<bool>()).prop_map(
        |(account, amount, keep_on_failure, settle)| Charge {
            account: account.into(),
            amount,
            keep_on_failure,
            settle,
        },
    );
    (option::of(charge), "\\PC{0,64}", "[0-9a-f]{12}", option::of("\\PC{0,200}")).prop_map(
        |(charge, plugin, version, note)| Quote {
            charge,
            by: Arc::new(DecidedBy { plugin, version }),
            note: note.map(String::into_boxed_str),
        },
    )
}

fn receipt() -> impl Strategy<Value = ReceiptText> {
    let numbers = (any::<u64>(), receipt_state(), any::<bool>(), any::<u16>(), option::of(any::<[u8; 3]>()));
    (numbers, time(), time(), any::<(u16, u16, u16)>(), peer_id()).prop_map(
        |(
            (of, state, intermediate, error, network_error),
            submitted_at,
            done_at,
            (all, good, part),
            peer_id,
        )| {
            ReceiptText {
                of: MessageId(of),
                state,
                intermediate,
                error,
                network_error,
                submitted_at,
                done_at,
                parts: (all, good),
                part,
                peer_id,
            }
        },
    )
}

/// Messages of both kinds, with everything that is optional there or not.
pub(crate) fn message() -> impl Strategy<Value = Message> {
    let kind = prop_oneof![Just(Kind::Text), receipt().prop_map(|text| Kind::Receipt(Box::new(text)))];
    let ends = (any::<u64>(), kind, peer(), address(), address());
    let replaced_or_shared = (any::<bool>(), option::of(any::<u64>()));
    let octet_fields =
        (octets(5), any::<u8>(), any::<u8>(), 0_u8..4, any::<[bool; 3]>(), replaced_or_shared, octets(80));
    let text = (octets(300), any::<u8>(), any::<bool>(), any::<bool>());
    (ends, octet_fields, text, (time(), option::of(time()), time()), routed()).prop_map(
        |(
            (id, kind, origin, source, destination),
            (service_type, protocol_id, esm_class, priority, wanted, (replace_if_present, submission), tlvs),
            (octets, data_coding, udhi, payload),
            (accepted_at, scheduled, expires_at),
            routed,
        )| Message {
            id: MessageId(id),
            kind,
            origin,
            source,
            destination,
            service_type: Bytes::from(service_type),
            protocol_id,
            esm_class,
            priority: Priority::new(priority),
            receipts: ReceiptRequest {
                on_success: wanted[0],
                on_failure: wanted[1],
                intermediate: wanted[2],
            },
            replace_if_present,
            submission: submission.map(MessageId),
            text: Text { octets: Bytes::from(octets), data_coding, udhi, payload },
            tlvs: Bytes::from(tlvs),
            accepted_at,
            scheduled,
            expires_at,
            routed,
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    let kind = prop_oneof![
        Just(StepKind::Accepted),
        (peer(), any::<u16>()).prop_map(|(peer, attempt)| StepKind::Submitted { peer, attempt }),
        peer_id().prop_map(|id| StepKind::Responded { id }),
        any::<u32>().prop_map(|code| StepKind::Refused { code }),
        Just(StepKind::NotSent),
        Just(StepKind::Unanswered),
        time().prop_map(|until| StepKind::Deferred { until }),
        peer().prop_map(|peer| StepKind::NextLeg { peer }),
        Just(StepKind::SentAgain),
        Just(StepKind::Asked),
        any::<(u8, u16)>().prop_map(|(state, error)| StepKind::Reported { state, error }),
        Just(StepKind::Replaced),
        time().prop_map(|until| StepKind::Held { until }),
        peer().prop_map(|peer| StepKind::Rerouted { peer }),
        Just(StepKind::Recovered),
        (select(&Hook::ALL[..]), "\\PC{0,9}", "[0-9a-f]{12}", option::of("\\PC{0,30}")).prop_map(
            |(hook, plugin, version, note)| StepKind::Decided {
                hook,
                by: Arc::new(DecidedBy { plugin, version }),
                note: note.map(String::into_boxed_str),
            }
        ),
        Just(StepKind::Resolving),
        (peer(), any::<bool>()).prop_map(|(peer, cached)| StepKind::Resolved { peer, cached }),
        any::<bool>().prop_map(|cached| StepKind::UnknownSubscriber { cached }),
        time().prop_map(|until| StepKind::AwaitingAlert { until }),
        time().prop_map(|until| StepKind::OthersFirst { until }),
        octets(15).prop_map(|raw| StepKind::AskedAnew { imsi: Imsi(AddressBytes::from_slice(&raw)) }),
        (pool(), pool_number()).prop_map(|(pool, number)| StepKind::SenderTaken { pool, number }),
        pool().prop_map(|pool| StepKind::NoSender { pool }),
        any::<u64>().prop_map(|amount| StepKind::Charged { amount }),
        any::<u64>().prop_map(|amount| StepKind::Refunded { amount }),
        (select(&Deed::ALL[..]), "\\PC{0,9}", option::of(1_u32..), option::of(peer())).prop_map(
            |(deed, by, order, peer)| StepKind::ByHand {
                deed,
                by: by.into(),
                order: order.map(OrderId),
                peer
            }
        ),
    ];
    (time(), kind).prop_map(|(at, kind)| Step { at, kind })
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    vec(step(), 0..=Final::MAX_STEPS)
}

/// Progress in every waiting state.
pub(crate) fn progress() -> impl Strategy<Value = Progress> {
    let waiting = prop_oneof![
        Just(Waiting::Queued),
        time().prop_map(|until| Waiting::Deferred { until }),
        time().prop_map(|until| Waiting::Held { until }),
        time().prop_map(|since| Waiting::Uncertain { since }),
        (peer(), time()).prop_map(|(peer, since)| Waiting::Receipt { peer, since }),
    ];
    let part = (peer_id(), option::of(receipt_state())).prop_map(|(id, state)| Part { id, state });
    (waiting, any::<u16>(), any::<u8>(), vec(part, 0..6), steps())
        .prop_map(|(waiting, attempts, leg, parts, steps)| Progress { waiting, attempts, leg, parts, steps })
}

/// Every way to end.
pub(crate) fn ended() -> impl Strategy<Value = Final> {
    (select(&FinalState::ALL[..]), time(), any::<u32>(), option::of(peer()), peer_id(), steps())
        .prop_map(|(state, at, error, peer, peer_id, steps)| Final { state, at, error, peer, peer_id, steps })
}

/// One hand-over.
pub(crate) fn handed() -> impl Strategy<Value = Handed> {
    (any::<u64>(), any::<u16>(), any::<u8>(), time()).prop_map(|(id, attempt, leg, at)| Handed {
        id: MessageId(id),
        attempt,
        leg,
        at,
    })
}
