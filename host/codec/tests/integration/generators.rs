//! Random records, for the tests of the codec and of the store.

use bytes::Bytes;
use model::{
    Address, AddressBytes, AdminActionKind, Charge, DefinedPeriod, DlrContent, DlrRequest, DlrState,
    DroppedAs, EarlierLeg, FinalRecord, FinalState, Hook, Imsi, Leg, Lookup, LookupResult, Message,
    MessageChanges, MessageId, MessageKind, MessageProgress, PaceBucketDefinition, PaceBucketUse, PaceUnit,
    PeerId, PeerMessageId, PluginVersion, PoolName, PoolNumber, Priority, QueueActionId, Quote, RejectReason,
    RoutingDecision, ScreenVerdict, Screening, SendHours, SendWindowDefinition, SendWindowUse,
    SenderFallback, SenderRequest, Step, StepKind, SubmitAttempt, SubmittedSegment, Text, Timestamp, Verdict,
    WaitState,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use std::sync::Arc;
use std::time::Duration;

const RECEIPT_STATES: [DlrState; 10] = [
    DlrState::Scheduled,
    DlrState::Enroute,
    DlrState::Delivered,
    DlrState::Expired,
    DlrState::Deleted,
    DlrState::Undeliverable,
    DlrState::Accepted,
    DlrState::Unknown,
    DlrState::Rejected,
    DlrState::Skipped,
];

fn octets(most: usize) -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..=most)
}

fn time() -> impl Strategy<Value = Timestamp> {
    any::<u64>().prop_map(Timestamp)
}

fn peer() -> impl Strategy<Value = PeerId> {
    // The greatest id means "none" in a final record; it is never assigned.
    (0..u32::MAX).prop_map(PeerId)
}

pub(crate) fn peer_id() -> impl Strategy<Value = PeerMessageId> {
    octets(70).prop_map(|raw| PeerMessageId::new(&raw))
}

fn address() -> impl Strategy<Value = Address> {
    (any::<u8>(), any::<u8>(), octets(64)).prop_map(|(ton, npi, value)| Address::new(ton, npi, &value))
}

pub(crate) fn dlr_state() -> impl Strategy<Value = DlrState> {
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
        1 => reason().prop_map(Verdict::Reject),
        1 => Just(Verdict::Quarantine),
        1 => Just(Verdict::AwaitLookup),
        1 => dropped_as().prop_map(Verdict::Drop),
    ]
}

fn reason() -> impl Strategy<Value = RejectReason> {
    (1_u8..=9).prop_filter_map("a reason", RejectReason::from_octet)
}

fn dropped_as() -> impl Strategy<Value = DroppedAs> {
    (1_u8..=3).prop_filter_map("a state", DroppedAs::from_octet)
}

fn screening() -> impl Strategy<Value = Screening> {
    let verdict = prop_oneof![
        Just(ScreenVerdict::Pass),
        reason().prop_map(ScreenVerdict::Reject),
        Just(ScreenVerdict::Quarantine),
        dropped_as().prop_map(ScreenVerdict::Drop),
    ];
    let text = (octets(90), any::<u8>(), any::<bool>(), any::<bool>()).prop_map(
        |(octets, data_coding, udhi, payload)| Text { octets: octets.into(), data_coding, udhi, payload },
    );
    let host_calls = option::of(octets(90).prop_map(Vec::into_boxed_slice));
    (
        verdict,
        "\\PC{0,64}",
        option::of("\\PC{0,200}"),
        option::of(message_changes()),
        option::of(text),
        host_calls,
    )
        .prop_map(|(verdict, plugin, note, changes, submitted_text, host_calls)| Screening {
            verdict,
            by: Arc::new(PluginVersion { plugin, version: "0123456789ab".to_owned() }),
            note: note.map(String::into_boxed_str),
            changes: changes.map(Box::new),
            submitted_text,
            host_calls,
        })
}

fn lookup() -> impl Strategy<Value = Lookup> {
    let attribute = ("[a-z.-]{1,64}", "\\PC{0,60}").prop_map(|(name, value)| (name.into(), value.into()));
    let result = select(&LookupResult::ALL[..]);
    let host_calls = option::of(octets(90).prop_map(Vec::into_boxed_slice));
    let note = option::of("\\PC{0,200}");
    (result, vec(attribute, 0..4), "\\PC{0,64}", note, any::<bool>(), host_calls).prop_map(
        |(result, attributes, plugin, note, cached, host_calls)| Lookup {
            result,
            attributes,
            by: Arc::new(PluginVersion { plugin, version: "0123456789ab".to_owned() }),
            note: note.map(String::into_boxed_str),
            cached,
            host_calls,
        },
    )
}

fn routed() -> impl Strategy<Value = RoutingDecision> {
    let word = "\\PC{0,64}";
    let host_calls = option::of(octets(90).prop_map(Vec::into_boxed_slice));
    let note = option::of("\\PC{0,200}");
    let changes = (option::of(message_changes()), option::of(screening()), option::of(lookup()));
    (verdict(), word, "[0-9a-f]{12}", note, option::of(sender()), changes, option::of(quote()), host_calls)
        .prop_map(
            |(verdict, plugin, version, note, sender, (changes, screening, lookup), quote, host_calls)| {
                RoutingDecision {
                    verdict,
                    by: Arc::new(PluginVersion { plugin, version }),
                    note: note.map(String::into_boxed_str),
                    sender: sender.map(Box::new),
                    changes: changes.map(Box::new),
                    screening: screening.map(Box::new),
                    lookup: lookup.map(Arc::new),
                    quote: quote.map(Box::new),
                    host_calls,
                    fault_message_id: None,
                }
            },
        )
}

pub(crate) fn definition() -> impl Strategy<Value = PaceBucketDefinition> {
    let per = prop_oneof![
        any::<u64>().prop_map(|ms| DefinedPeriod::Time(Duration::from_millis(ms))),
        "[A-Z][a-z]{2,9}/[A-Z][a-z]{2,9}".prop_map(|zone| DefinedPeriod::Day(zone.into())),
    ];
    let counts = select(vec![PaceUnit::Messages, PaceUnit::Segments]);
    (any::<u64>(), per, counts).prop_map(|(amount, per, counts)| PaceBucketDefinition { amount, per, counts })
}

fn pace_bucket() -> impl Strategy<Value = PaceBucketUse> {
    ("[a-z.-]{1,64}", option::of(definition()))
        .prop_map(|(name, defined)| PaceBucketUse { name: name.into(), defined })
}

fn send_window() -> impl Strategy<Value = SendWindowUse> {
    let hours = (any::<[bool; 7]>(), 0_u16..1440, 0_u16..=1440).prop_map(|(days, opens, closes)| SendHours {
        days,
        opens,
        closes,
    });
    let defined = ("[A-Z]{3}", vec(hours, 1..4))
        .prop_map(|(zone, hours)| SendWindowDefinition { zone: zone.into(), hours });
    ("[a-z.-]{1,64}", option::of(defined))
        .prop_map(|(name, defined)| SendWindowUse { name: name.into(), defined })
}

fn message_changes() -> impl Strategy<Value = MessageChanges> {
    let tlv = (any::<u16>(), option::of(octets(40).prop_map(Vec::into_boxed_slice)));
    let attribute = ("[a-z.-]{1,64}", "\\PC{0,60}").prop_map(|(name, value)| (name.into(), value.into()));
    let pace = (vec(pace_bucket(), 0..3), vec(send_window(), 0..3));
    (vec(tlv, 0..4), vec(attribute, 0..4), pace).prop_map(
        |(tlvs, attributes, (pace_buckets, send_windows))| MessageChanges {
            tlvs,
            attributes,
            pace_buckets,
            send_windows,
        },
    )
}

fn pool() -> impl Strategy<Value = PoolName> {
    "[a-z:]{1,100}".prop_map(|name| name.parse().expect("a name of a pool"))
}

fn pool_number() -> impl Strategy<Value = PoolNumber> {
    "[0-9+*#]{1,16}".prop_map(|text| text.parse().expect("a number of a pool"))
}

fn sender() -> impl Strategy<Value = SenderRequest> {
    let words = ("\\PC{0,80}", "\\PC{0,80}", "\\PC{0,80}");
    let otherwise = select(vec![SenderFallback::Reject, SenderFallback::KeepSender, SenderFallback::Hold]);
    let lease = option::of(any::<u64>().prop_map(Duration::from_millis));
    (pool(), words, lease, otherwise, option::of(address())).prop_map(
        |(pool, (holder, user, reason), lease, otherwise, leased)| SenderRequest {
            pool,
            holder: holder.into(),
            user: user.into(),
            reason: reason.into(),
            lease,
            otherwise,
            leased,
        },
    )
}

fn quote() -> impl Strategy<Value = Quote> {
    let tenants = vec("[a-z]{1,64}", 0..3);
    let charge = ("[a-z]{1,64}", any::<u64>(), any::<bool>(), any::<bool>(), tenants).prop_map(
        |(account, amount, keep_on_failure, settle, tenants)| Charge {
            account: account.into(),
            amount,
            keep_on_failure,
            settle,
            tenants: tenants.into_iter().map(Into::into).collect(),
        },
    );
    (option::of(charge), "\\PC{0,64}", "[0-9a-f]{12}", option::of("\\PC{0,200}")).prop_map(
        |(charge, plugin, version, note)| Quote {
            charge,
            by: Arc::new(PluginVersion { plugin, version }),
            note: note.map(String::into_boxed_str),
        },
    )
}

fn dlr() -> impl Strategy<Value = DlrContent> {
    let numbers = (any::<u64>(), dlr_state(), any::<bool>(), any::<u16>(), option::of(any::<[u8; 3]>()));
    (numbers, time(), time(), any::<(u16, u16, u16)>(), peer_id()).prop_map(
        |(
            (of, state, intermediate, error, network_error),
            submitted_at,
            done_at,
            (all, good, segment),
            peer_id,
        )| {
            DlrContent {
                of: MessageId(of),
                state,
                intermediate,
                error,
                network_error,
                submitted_at,
                done_at,
                segments: (all, good),
                segment,
                peer_id,
            }
        },
    )
}

/// Messages of both kinds, with and without every optional field.
pub(crate) fn message() -> impl Strategy<Value = Message> {
    let kind = prop_oneof![Just(MessageKind::Text), dlr().prop_map(|text| MessageKind::Dlr(Box::new(text)))];
    let ends = (any::<u64>(), kind, peer(), address(), address());
    let replaced_or_shared = (any::<bool>(), option::of(any::<u64>()));
    let octet_fields = (
        octets(5),
        any::<u8>(),
        any::<u8>(),
        0_u8..4,
        any::<[bool; 3]>(),
        replaced_or_shared,
        (octets(80), octets(40)),
    );
    let text = (octets(300), any::<u8>(), any::<bool>(), any::<bool>());
    (ends, octet_fields, text, (time(), option::of(time()), time()), routed()).prop_map(
        |(
            (id, kind, origin, source, destination),
            (
                service_type,
                protocol_id,
                esm_class,
                priority,
                wanted,
                (replace_if_present, submission),
                (tlvs, fields),
            ),
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
            dlr_request: DlrRequest { on_success: wanted[0], on_failure: wanted[1], intermediate: wanted[2] },
            replace_if_present,
            submission: submission.map(MessageId),
            text: Text { octets: Bytes::from(octets), data_coding, udhi, payload },
            tlvs: Bytes::from(tlvs),
            protocol_fields: Bytes::from(fields),
            sealed: None,
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
        Just(StepKind::StatusQueried),
        any::<(u8, u16)>().prop_map(|(state, error)| StepKind::DlrReceived { state, error }),
        time().prop_map(|until| StepKind::AwaitingDlr { until }),
        Just(StepKind::DlrOverdue),
        Just(StepKind::DlrSuspected),
        any::<(u8, u16)>().prop_map(|(state, error)| StepKind::DlrRemapped { state, error }),
        (peer(), any::<u8>(), any::<u16>()).prop_map(|(peer, state, error)| StepKind::LateDlrReceived {
            peer,
            state,
            error
        }),
        Just(StepKind::Replaced),
        time().prop_map(|until| StepKind::Held { until }),
        peer().prop_map(|peer| StepKind::Rerouted { peer }),
        Just(StepKind::Recovered),
        (select(&Hook::ALL[..]), "\\PC{0,9}", "[0-9a-f]{12}", option::of("\\PC{0,30}")).prop_map(
            |(hook, plugin, version, note)| StepKind::Decided {
                hook,
                by: Arc::new(PluginVersion { plugin, version }),
                note: note.map(String::into_boxed_str),
            }
        ),
        (select(&[Hook::Receipt, Hook::Peer][..]), octets(300))
            .prop_map(|(hook, record)| StepKind::CallRecorded { hook, record: record.into() }),
        Just(StepKind::Resolving),
        (peer(), any::<bool>()).prop_map(|(peer, cached)| StepKind::Resolved { peer, cached }),
        any::<bool>().prop_map(|cached| StepKind::UnknownSubscriber { cached }),
        time().prop_map(|until| StepKind::AwaitingAlert { until }),
        time().prop_map(|until| StepKind::MovedBehindOthers { until }),
        octets(15)
            .prop_map(|raw| StepKind::SubscriberRequeried { imsi: Imsi(AddressBytes::from_slice(&raw)) }),
        (pool(), pool_number()).prop_map(|(pool, number)| StepKind::SenderLeased { pool, number }),
        pool().prop_map(|pool| StepKind::SenderUnavailable { pool }),
        any::<u64>().prop_map(|amount| StepKind::Charged { amount }),
        any::<u64>().prop_map(|amount| StepKind::Refunded { amount }),
        "\\PC{0,9}".prop_map(|by| StepKind::ContentErased { by: by.into() }),
        (select(&AdminActionKind::ALL[..]), "\\PC{0,9}", option::of(1_u32..), option::of(peer())).prop_map(
            |(action, by, queue_action, peer)| StepKind::AdminAction {
                action,
                by: by.into(),
                queue_action: queue_action.map(QueueActionId),
                peer
            }
        ),
    ];
    (time(), kind).prop_map(|(at, kind)| Step { at, kind })
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    vec(step(), 0..=FinalRecord::MAX_STEPS)
}

/// Progress in every wait state.
pub(crate) fn progress() -> impl Strategy<Value = MessageProgress> {
    let waiting = prop_oneof![
        Just(WaitState::Queued),
        time().prop_map(|until| WaitState::Deferred { until }),
        time().prop_map(|until| WaitState::Held { until }),
        time().prop_map(|since| WaitState::Uncertain { since }),
        (peer(), time()).prop_map(|(peer, since)| WaitState::Dlr { peer, since }),
    ];
    let segment =
        || (peer_id(), option::of(dlr_state())).prop_map(|(id, state)| SubmittedSegment { id, state });
    let earlier = (peer(), vec(segment(), 0..3)).prop_map(|(peer, segments)| EarlierLeg { peer, segments });
    (waiting, any::<u16>(), any::<u8>(), vec(segment(), 0..6), vec(earlier, 0..3), steps()).prop_map(
        |(waiting, attempts, leg, segments, earlier, steps)| MessageProgress {
            waiting,
            attempts,
            leg,
            segments,
            earlier,
            steps,
        },
    )
}

/// Every final state.
pub(crate) fn ended() -> impl Strategy<Value = FinalRecord> {
    (select(&FinalState::ALL[..]), time(), any::<u32>(), option::of(peer()), peer_id(), steps()).prop_map(
        |(state, at, error, peer, peer_id, steps)| FinalRecord { state, at, error, peer, peer_id, steps },
    )
}

/// A submit attempt.
pub(crate) fn submit_attempt() -> impl Strategy<Value = SubmitAttempt> {
    (any::<u64>(), any::<u16>(), any::<u8>(), time()).prop_map(|(id, attempt, leg, at)| SubmitAttempt {
        id: MessageId(id),
        attempt,
        leg,
        at,
    })
}

/// The end of a message that has no steps.
pub(crate) fn ended_now() -> FinalRecord {
    FinalRecord {
        state: FinalState::Delivered,
        at: Timestamp(7),
        error: 0,
        peer: None,
        peer_id: PeerMessageId::default(),
        steps: Vec::new(),
    }
}

/// A message, the same each time.
pub(crate) fn any_message() -> Message {
    use proptest::strategy::ValueTree as _;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    message().new_tree(&mut runner).unwrap().current()
}
