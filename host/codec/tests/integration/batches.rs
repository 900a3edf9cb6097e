//! Whole batches round-trip, have the same octets on every machine, and no octets make the decoder panic.

use crate::generators::{definition, dlr_state, ended, message, peer_id, progress, submit_attempt};
use codec::{
    BatchFormat, MessageRecordKind, decode_batch, encode_batch, encode_final, encode_message,
    encode_progress, message_records,
};
use model::{
    Balance, Batch, ContentErasure, Dlr, IdempotencyKey, IdempotencyKeyRecord, JournalEntry, JournalPart,
    LedgerChange, LedgerOperation, MessageId, Notice, NoticeKind, NumberRow, NumberState, OperationRecord,
    OptOut, OrphanDlrRecord, PaceDay, PeerId, PoolBatch, PoolChange, PoolId, PoolPurge, PoolRecord,
    PoolSettings, QueueAction, QueueActionId, QueueActionKind, QueueActionScope, QueueActionState, Refusal,
    RejectReason, Settlement, Strategy as PoolStrategy, Timestamp,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

fn octets() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..12)
}

fn key() -> impl Strategy<Value = IdempotencyKeyRecord> {
    let result = prop_oneof![
        any::<u64>().prop_map(|id| Ok(MessageId(id))),
        select(vec![
            Refusal::QueueFull,
            Refusal::Throttled,
            Refusal::QuotaExceeded,
            Refusal::Rejected(RejectReason::NoCredit),
            Refusal::BadSchedule,
            Refusal::Expired,
            Refusal::UnknownMessage,
            Refusal::WrongState,
            Refusal::Internal,
            Refusal::ShuttingDown,
            Refusal::KeyReused,
        ])
        .prop_map(Err),
    ];
    (any::<(u64, u32, u64, u64)>(), octets(), vec(result, 0..4)).prop_map(
        |((serial, origin, digest, at), octets, results)| IdempotencyKeyRecord {
            serial,
            origin: PeerId(origin),
            key: IdempotencyKey { octets: octets.into(), digest, required: true, lifetime: None },
            at: Timestamp(at),
            results,
        },
    )
}

fn orphan_dlr() -> impl Strategy<Value = OrphanDlrRecord> {
    let dlr =
        (peer_id(), dlr_state(), any::<(bool, u16, Option<[u8; 3]>, Option<u64>)>(), octets(), octets());
    (any::<(u64, u32, u64)>(), dlr).prop_map(
        |((number, peer, at), (id, state, (intermediate, error, network_error, done), from, to))| {
            let (from, to) = (from.into(), to.into());
            let done_at = done.map(Timestamp);
            let dlr = Dlr { id, state, intermediate, error, network_error, done_at, from, to };
            OrphanDlrRecord { number, peer: PeerId(peer), at: Timestamp(at), dlr }
        },
    )
}

fn opt_out() -> impl Strategy<Value = (OptOut, bool)> {
    (octets(), octets(), any::<bool>()).prop_map(|(sender, subscriber, stop)| {
        (OptOut { sender: sender.into(), subscriber: subscriber.into() }, stop)
    })
}

fn balance() -> impl Strategy<Value = Balance> {
    any::<(i64, u64, u64, i64, u64)>().prop_map(|(balance, reserved, captured, funded, credit)| Balance {
        balance,
        reserved,
        captured,
        funded,
        credit,
    })
}

fn account() -> impl Strategy<Value = Arc<str>> {
    "\\PC{1,16}".prop_map(Arc::from)
}

fn operation() -> impl Strategy<Value = OperationRecord> {
    let change = prop_oneof![
        any::<u64>().prop_map(|credit| LedgerChange::Limit { credit }),
        any::<i64>().prop_map(|amount| LedgerChange::Fund { amount }),
    ];
    (any::<(u64, u64)>(), "\\PC{1,16}", account(), change, "\\PC{0,40}", "\\PC{0,40}", balance()).prop_map(
        |((serial, at), key, account, change, actor, reason, balance)| {
            let (key, actor, reason) = (key.into(), actor.into(), reason.into());
            let operation = LedgerOperation { key, account, change, actor, reason };
            OperationRecord { serial, operation, at: Timestamp(at), balance }
        },
    )
}

fn settlement() -> impl Strategy<Value = Settlement> {
    (any::<(u64, u64, u64, bool, u64)>(), account()).prop_map(
        |((serial, message, amount, captured, at), account)| Settlement {
            serial,
            message: MessageId(message),
            account,
            amount,
            captured,
            at: Timestamp(at),
        },
    )
}

fn notice() -> impl Strategy<Value = Notice> {
    let notice = (select(&NoticeKind::ALL[..]), account(), any::<u64>(), account());
    notice.prop_map(|(kind, id, at, data)| Notice { kind, id, at: Timestamp(at), data })
}

fn pace_day() -> impl Strategy<Value = PaceDay> {
    let day = (account(), any::<(u64, u64, u64)>(), option::of(definition()));
    day.prop_map(|(bucket, (start, end, used), defined)| PaceDay {
        bucket,
        start: Timestamp(start),
        end: Timestamp(end),
        used,
        defined,
    })
}

fn queue_action() -> impl Strategy<Value = QueueAction> {
    let scope = (any::<(Option<u32>, Option<u32>, Option<u64>)>(), option::of(octets())).prop_map(
        |((peer, account, age), prefix)| QueueActionScope {
            peer: peer.map(PeerId),
            account: account.map(PeerId),
            prefix: prefix.map(Into::into),
            older_than: age.map(Duration::from_secs),
        },
    );
    let kinds = (select(&QueueActionKind::ALL[..]), select(&QueueActionState::ALL[..]));
    let numbers = any::<(u32, Option<u32>, u64, u64, Option<u64>, u64)>();
    (numbers, kinds, scope, "\\PC{0,9}", "\\PC{0,30}").prop_map(
        |((id, to, at, before_id, undo_until, affected), (kind, state), scope, by, reason)| QueueAction {
            id: QueueActionId(id),
            kind,
            scope,
            to: to.map(PeerId),
            by: by.into(),
            reason: reason.into(),
            at: Timestamp(at),
            before_id: MessageId(before_id),
            undo_until: undo_until.map(Timestamp),
            state,
            affected,
        },
    )
}

fn number_row() -> impl Strategy<Value = NumberRow> {
    let state =
        select(vec![NumberState::IdleUp, NumberState::IdleDown, NumberState::BusyUp, NumberState::BusyDown]);
    let numbers = any::<(u64, u8, u32, u32, u32, u64, Option<u64>, Option<u64>)>();
    (state, numbers, "\\PC{0,20}", "\\PC{0,20}").prop_map(
        |(state, (stamp, weight, calls, held, lapsed, since, ends, message), holder, reason)| NumberRow {
            state,
            stamp,
            since: Timestamp(since),
            ends: ends.map(Timestamp),
            weight,
            calls,
            held,
            lapsed,
            holder: holder.into(),
            reason: reason.into(),
            message: message.map(MessageId),
        },
    )
}

fn pools() -> impl Strategy<Value = PoolBatch> {
    let number = || "[0-9+*#]{1,16}".prop_map(|text| text.parse().unwrap());
    let strategy = select(vec![PoolStrategy::LongestIdle, PoolStrategy::Random, PoolStrategy::Nearest]);
    let record = (any::<(u32, u64, u64, u64, u64, bool)>(), strategy).prop_map(
        |((id, quarantine, serial, entries, folded, removed), strategy)| PoolRecord {
            id: PoolId(id),
            name: "support-line".parse().unwrap(),
            settings: PoolSettings { strategy, quarantine: Duration::from_millis(quarantine) },
            serial,
            entries,
            folded,
            removed,
        },
    );
    let change = (0..10_u8).prop_map(|octet| PoolChange::from_octet(octet).unwrap());
    let entry = (any::<u64>(), number(), change, option::of(number_row()), option::of("[a-c]{0,3}"))
        .prop_map(|(at, number, change, row, by)| JournalEntry {
            at: Timestamp(at),
            number,
            change,
            row,
            by: by.map(Into::into),
        });
    let part = (any::<(u32, u64, u64)>(), vec(entry, 0..4)).prop_map(|((pool, first, serial), entries)| {
        JournalPart { pool: PoolId(pool), first, serial, entries }
    });
    let purge =
        prop_oneof![any::<u32>().prop_map(|most| PoolPurge::Some(most as usize)), Just(PoolPurge::Rest)];
    (
        vec(record, 0..3),
        vec(part, 0..3),
        vec((any::<u32>().prop_map(PoolId), number(), option::of(number_row())), 0..3),
        vec(any::<(u32, u64)>().prop_map(|(pool, before)| (PoolId(pool), before)), 0..3),
        option::of((any::<u32>().prop_map(PoolId), purge)),
    )
        .prop_map(|(records, journal, numbers, trimmed, purged)| PoolBatch {
            records,
            journal,
            numbers,
            trimmed,
            purged,
        })
}

fn ids() -> impl Strategy<Value = Vec<MessageId>> {
    vec(any::<u64>().prop_map(MessageId), 0..3)
}

/// Batches with everything that the engine may put into one.
fn batch() -> impl Strategy<Value = Batch> {
    let id = || any::<u64>().prop_map(MessageId);
    let messages = || vec(message().prop_map(Arc::new), 0..3);
    let states = (
        messages(),
        messages(),
        vec((id(), progress()), 0..3),
        vec((id(), ended()), 0..3),
        ids(),
        ids(),
        (vec(submit_attempt(), 0..4), any::<u64>(), vec(any::<u64>(), 0..3)),
    );
    let ledger = (
        vec((account(), balance()), 0..3),
        vec(operation(), 0..3),
        vec(settlement(), 0..3),
        any::<Option<u64>>(),
    );
    let others = (
        (
            vec((any::<u32>().prop_map(PeerId), account()), 0..3),
            vec((account(), any::<u32>()), 0..3),
            vec((any::<u32>().prop_map(PeerId), option::of(1..u32::MAX)), 0..3),
        ),
        (vec(key(), 0..3), any::<Option<u64>>()),
        (vec(orphan_dlr(), 0..3), vec(any::<u64>(), 0..3)),
        vec(opt_out(), 0..3),
        (
            vec(queue_action(), 0..3),
            vec(any::<u32>().prop_map(QueueActionId), 0..3),
            vec(pace_day(), 0..3),
            vec(notice(), 0..3),
            vec(erasure(), 0..3),
        ),
        pools(),
        id(),
    );
    (states, ledger, others).prop_map(
        |(
            (accepted, replaced, progress, finished, dropped, archived, attempts),
            (balances, operations, settlements, settled),
            (names, keys, orphan_dlrs, opt_outs, queue_actions, pools, next_id),
        )| Batch {
            names: names.0,
            group_names: names.1,
            groups: names.2,
            accepted,
            replaced,
            submit_attempts: attempts.0,
            submit_row: attempts.1,
            submit_rows_done: attempts.2,
            progress,
            finished,
            dropped,
            idempotency_keys: keys.0,
            idempotency_keys_done: keys.1,
            orphan_dlrs: orphan_dlrs.0,
            orphan_dlrs_done: orphan_dlrs.1,
            opt_outs,
            balances,
            operations,
            settlements,
            settled,
            pace_days: queue_actions.2,
            notices: queue_actions.3,
            queue_actions: queue_actions.0,
            queue_actions_done: queue_actions.1,
            erased: queue_actions.4,
            archived,
            pools,
            next_id,
        },
    )
}

fn erasure() -> impl Strategy<Value = ContentErasure> {
    (any::<u64>(), any::<u64>(), "\\PC{0,9}").prop_map(|(id, at, by)| ContentErasure {
        id: MessageId(id),
        at: Timestamp(at),
        by: by.into(),
    })
}

fn encode(batch: &Batch) -> Vec<u8> {
    let mut octets = Vec::new();
    encode_batch(&mut octets, batch);
    octets
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn batches_round_trip(batch in batch(), cut in any::<Index>()) {
        let octets = encode(&batch);
        let read = decode_batch(&octets);
        prop_assert_eq!(read.as_ref(), Ok(&batch));
        prop_assert_eq!(encode(&batch), octets.clone());
        // A batch may end only after a whole section.
        if let Ok(part) = decode_batch(&octets[..cut.index(octets.len())]) {
            prop_assert!(octets.starts_with(&encode(&part)));
        }
    }

    #[test]
    fn the_records_of_messages_are_found_without_decoding(batch in batch()) {
        let octets = encode(&batch);
        let mut wanted = Vec::new();
        let mut want = |kind, id, encode: &dyn Fn(&mut Vec<u8>)| {
            let mut record = Vec::new();
            encode(&mut record);
            wanted.push((kind, id, record));
        };
        for message in &batch.accepted {
            want(MessageRecordKind::Accepted, message.id, &|out| encode_message(out, message));
        }
        for message in &batch.replaced {
            want(MessageRecordKind::Replaced, message.id, &|out| encode_message(out, message));
        }
        for (id, progress) in &batch.progress {
            want(MessageRecordKind::Progress, *id, &|out| encode_progress(out, progress));
        }
        for (id, ended) in &batch.finished {
            want(MessageRecordKind::Finished, *id, &|out| encode_final(out, ended));
        }
        let found = message_records(&octets).unwrap();
        let found: Vec<_> =
            found.into_iter().map(|found| (found.kind, found.id, octets[found.octets].to_vec())).collect();
        prop_assert_eq!(found, wanted);
    }

    #[test]
    fn damaged_batches_are_refused_or_read(batch in batch(), changes in vec(any::<(Index, u8)>(), 1..4)) {
        let mut octets = encode(&batch);
        for (at, value) in changes {
            let at = at.index(octets.len());
            octets[at] = value;
        }
        match message_records(&octets) {
            Ok(found) => prop_assert!(found.iter().all(|found| found.octets.end <= octets.len())),
            Err(error) => prop_assert!(error.offset <= octets.len(), "{} of {}", error, octets.len()),
        }
        match decode_batch(&octets) {
            Ok(read) => prop_assert_eq!(decode_batch(&encode(&read)), Ok(read)),
            Err(error) => prop_assert!(error.offset <= octets.len(), "{} of {}", error, octets.len()),
        }
    }

    #[test]
    fn arbitrary_octets_never_panic(octets: Vec<u8>) {
        let _ = decode_batch(&octets);
        let _ = message_records(&octets);
    }
}

#[test]
fn an_empty_batch_has_a_head() {
    let octets = encode(&Batch::default());
    assert_eq!(octets, [&[1, 16, 0, 0, 0][..], &[0; 16]].concat());
    assert_eq!(decode_batch(&octets), Ok(Batch::default()));
    assert!(decode_batch(&[]).is_err());
}

#[test]
fn sections_that_are_unknown_or_out_of_order_are_refused() {
    let mut octets = encode(&Batch { settled: Some(7), ..Batch::default() });
    let refusal = |octets: &[u8]| decode_batch(octets).unwrap_err().what;
    assert_eq!(refusal(&octets[21..]), "unknown batch format");
    assert_eq!(refusal(&[&octets[..21], &octets[..21]].concat()), "a section in the wrong place");
    assert_eq!(refusal(&[&octets[..], &octets[21..]].concat()), "a section in the wrong place");
    octets[21] = 32;
    assert_eq!(refusal(&octets), "unknown section");
}

#[test]
fn the_first_octet_is_the_format_and_a_newer_one_is_refused() {
    let mut octets = encode(&Batch::default());
    assert_eq!(octets[0], BatchFormat::NEWEST.number());
    octets[0] = BatchFormat::NEWEST.number() + 1;
    let refused = decode_batch(&octets).unwrap_err();
    assert_eq!((refused.what, refused.offset), ("unknown batch format", 0));
}

/// The octets of a batch never change: journals and other machines have them. `batches.hex` has batches as they are
/// written, `batches.txt` their content. After a deliberate change, `UPDATE=1` writes both again.
#[test]
fn the_octets_of_a_batch_are_fixed() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/integration");
    let (hex, text) = (folder.join("batches.hex"), folder.join("batches.txt"));
    if std::env::var_os("UPDATE").is_some() {
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
        let mut runner = TestRunner::new_with_rng(Config::default(), rng);
        let whole = |batch: &Batch| {
            let pools = &batch.pools;
            // An address is shown as it is, which may be over several lines.
            let is_line = !format!("{batch:?}").contains(['\n', '\r']);
            is_line && encode(batch).len() < 20_000 && !batch.accepted.is_empty() && pools.purged.is_some()
        };
        let batches = std::iter::repeat_with(|| batch().new_tree(&mut runner).unwrap().current());
        let batches: Vec<_> = batches.filter(whole).take(8).collect();
        let lines =
            |line: fn(&Batch) -> String| batches.iter().map(|batch| line(batch) + "\n").collect::<String>();
        std::fs::write(&hex, lines(|batch| model::hex(&encode(batch)))).unwrap();
        std::fs::write(&text, lines(|batch| format!("{batch:?}"))).unwrap();
    }
    let (hex, text) = (std::fs::read_to_string(hex).unwrap(), std::fs::read_to_string(text).unwrap());
    let mut sections = BTreeSet::new();
    for (hex, text) in hex.lines().zip(text.lines()) {
        let octets = model::from_hex(hex).unwrap();
        let batch = decode_batch(&octets).unwrap();
        assert_eq!(format!("{batch:?}"), text);
        assert_eq!(model::hex(&encode(&batch)), hex);
        let mut rest = &octets[..];
        while let [section, a, b, c, d, content @ ..] = rest {
            sections.insert(*section);
            rest = &content[u32::from_le_bytes([*a, *b, *c, *d]) as usize..];
        }
    }
    assert!(sections.into_iter().eq(1..=31), "every section");
}
