//! The archived decisions and prices of a message, and their replay.

use super::messages::{START, TestSource, archived, decided, finished};
use super::{all, fill, ids, newest_first, open, runtime, sql};
use archive::{
    Archive, ArchiveError, ArchiveFilter, ArchivedMessage, DecisionDecoder, MissingData, RecordFields,
    ReplayRange,
};
use model::{MessageId, Timestamp};
use std::sync::Arc;

/// All batches of a range, decoded.
fn replayed(archive: &Archive, range: &ReplayRange) -> Vec<ArchivedMessage> {
    let mut source = archive.replay_source(range.clone());
    let (mut messages, mut decoder) = (Vec::new(), DecisionDecoder::new());
    assert_eq!(source.expected(), None);
    runtime().block_on(async {
        while let Some(batch) = source.next().await.unwrap() {
            assert!(!batch.is_empty());
            messages.extend(batch.decode(&mut decoder).map(Result::unwrap));
        }
        // Further calls return nothing.
        assert!(source.next().await.unwrap().is_none());
    });
    messages
}

/// A replay reads inputs and decisions by ascending id, over all batches.
pub fn decisions_survive_a_round_trip(url: &str) {
    let numbers = || (0..5000).chain(9000..9100);
    let (archive, source) = (open(url), Arc::new(TestSource::default()));
    assert!(replayed(&archive, &ReplayRange::default()).is_empty());
    source.put(numbers().map(decided));
    fill(&archive, &source);
    for body in [false, true] {
        let all = replayed(&archive, &ReplayRange { body, ..ReplayRange::default() });
        let expected: Vec<_> = numbers().map(|n| archived(&decided(n), body)).collect();
        assert_eq!(all.len(), expected.len());
        for (one, other) in all.iter().zip(&expected) {
            assert_eq!(one, other);
        }
    }
    let ids = |range: ReplayRange| -> Vec<u64> {
        replayed(&archive, &range).iter().map(|message| message.id.0 - MessageId::FIRST.0).collect()
    };
    let at = |n: u64| Some(Timestamp(START + n * 1000));
    let range = ReplayRange { from: at(70), until: at(4200), ..ReplayRange::default() };
    assert_eq!(ids(range.clone()), (70..4200).collect::<Vec<_>>());
    assert_eq!(ids(ReplayRange { limit: Some(2500), ..range.clone() }), (70..2570).collect::<Vec<_>>());
    assert_eq!(ids(ReplayRange { limit: Some(0), ..range.clone() }), [0u64; 0]);
    let last = |last| ReplayRange { last: Some(last), ..ReplayRange::default() };
    assert_eq!(ids(last(150)), (4950..5000).chain(9000..9100).collect::<Vec<_>>());
    assert_eq!(ids(last(2500)), (2600..5000).chain(9000..9100).collect::<Vec<_>>());
    assert_eq!(ids(last(1)), [9099]);
    assert_eq!(ids(last(0)), [0u64; 0]);
    assert_eq!(ids(last(1_000_000)).len(), 5100);
    assert_eq!(ids(ReplayRange { last: Some(30), ..range.clone() }), (4170..4200).collect::<Vec<_>>());
    // A DLR created by the appliance is not replayed through a router.
    let dlr = |n| {
        let (mut message, ended) = decided(n);
        message.routed.by =
            Arc::new(model::PluginVersion { plugin: "receipt".into(), version: String::new() });
        (message, ended)
    };
    source.put((9100..9150).map(dlr));
    source.put((9150..9160).map(decided));
    fill(&archive, &source);
    assert_eq!(ids(last(12)), (9098..9160).collect::<Vec<_>>());
    assert_eq!(
        ids(ReplayRange { last: Some(30), limit: Some(2), ..range }),
        [4170, 4171],
        "of the newest, the oldest"
    );
    assert_eq!(
        ids(ReplayRange { from: at(4990), ..ReplayRange::default() }),
        (4990..5000).chain(9000..9160).collect::<Vec<_>>()
    );
}

/// Long texts shorten batches, and no message is omitted.
pub fn long_texts_survive_a_round_trip(url: &str) {
    let (archive, source) = (open(url), Arc::new(TestSource::default()));
    let long = |n: u64| {
        let (mut message, ended) = decided(n);
        message.text.octets = vec![n as u8; 65_000].into();
        (message, ended)
    };
    source.put((0..200).map(long));
    fill(&archive, &source);
    let messages = replayed(&archive, &ReplayRange { body: true, ..ReplayRange::default() });
    assert_eq!(messages, (0..200).map(|n| archived(&long(n), true)).collect::<Vec<_>>());
}

/// History shows price, settlement and biller.
pub fn history_shows_prices(url: &str) {
    let (archive, source) = (open(url), Arc::new(TestSource::default()));
    source.put((0..300).map(decided));
    fill(&archive, &source);
    let fields = RecordFields { body: false, trace: true };
    let page = runtime().block_on(archive.page(&ArchiveFilter::default(), None, 1000, fields)).unwrap();
    assert_eq!(page.records.len(), 300);
    for record in page.records {
        let finished = decided(record.id.0 - MessageId::FIRST.0);
        let expected = archived(&finished, false).price;
        let price = record.price.as_ref().map(|price| (price.amount, price.account.as_deref(), price.state));
        let expected_price =
            expected.as_ref().map(|price| (price.amount, price.account.as_deref(), price.state));
        assert_eq!(price, expected_price);
        let trace: serde_json::Value = serde_json::from_str(record.trace.unwrap().get()).unwrap();
        if let Some(price) = expected {
            assert_eq!(trace["price"]["amount"], price.amount);
            assert_eq!(trace["price"]["state"], price.state.name());
            assert_eq!(trace["price"]["plugin"], "prepaid");
            assert_eq!(trace["price"]["note"], "a tariff");
        } else {
            assert_eq!(trace["price"], serde_json::Value::Null);
        }
        let leg = &trace["route"]["legs"][0];
        match record.id.0 % 6 {
            n if n == (MessageId::FIRST.0 + 2) % 6 => {
                assert_eq!(leg["source_type"], serde_json::json!([5, 0]));
                assert_eq!(leg["destination_type"], serde_json::json!([1, 1]));
            }
            n if n == (MessageId::FIRST.0 + 3) % 6 => {
                assert_eq!(leg["resolve"], true);
                assert_eq!(leg["imsi"], "262011234567890");
            }
            _ => assert!(leg.get("resolve").is_none()),
        }
    }
}

/// Tables of the version before prices and decisions are migrated; their rows stay readable and are marked as
/// incomplete for replays.
pub fn rows_of_older_versions_stay_readable(url: &str) {
    let (archive, source) = (open(url), TestSource::with(0..3000));
    fill(&archive, &source);
    for column in ["price", "price_account", "price_state", "decision"] {
        sql(url, &format!("ALTER TABLE messages DROP COLUMN {column}")).unwrap();
    }
    sql(url, "DELETE FROM schema_versions WHERE version = 2").unwrap();
    // Today's daemon; old and new messages are interleaved.
    let archive = open(url);
    source.put((3000..3500).map(decided));
    fill(&archive, &source);
    sql(url, &format!("UPDATE messages SET decision = NULL WHERE id >= {}", MessageId::FIRST.0 + 3480))
        .unwrap();
    assert_eq!(ids(&all(&archive, &ArchiveFilter::default(), 1000)), newest_first(0..3500));
    let undecided_rows = runtime().block_on(archive.get(MessageId::FIRST)).unwrap().unwrap();
    assert_eq!(undecided_rows.price, None);
    for body in [false, true] {
        let messages = replayed(&archive, &ReplayRange { body, ..ReplayRange::default() });
        assert_eq!(messages.len(), 3500);
        for (n, message) in messages.iter().enumerate() {
            let n = n as u64;
            let mut expected =
                if n < 3000 { archived(&finished(n), body) } else { archived(&decided(n), body) };
            if !(3000..3480).contains(&n) {
                (expected.price, expected.host_calls) = (None, None);
                expected.decided_at = expected.accepted_at;
                expected.missing = Some(MissingData::Older);
                if let model::Verdict::Forward(legs) = &mut expected.verdict {
                    for leg in legs {
                        leg.resolve = false;
                        for address in [&mut leg.source, &mut leg.destination].into_iter().flatten() {
                            (address.ton, address.npi) = (0, 0);
                        }
                    }
                }
            }
            assert_eq!(*message, expected);
        }
    }
}

/// A damaged decision is reported with its id, and the others are decoded.
pub fn damaged_decisions_are_reported(url: &str) {
    let (archive, source) = (open(url), TestSource::with(0..100));
    fill(&archive, &source);
    let blob = if url.starts_with("postgres") { "'\\x4711'" } else { "x'4711'" };
    let bad = MessageId::FIRST.0 + 42;
    sql(url, &format!("UPDATE messages SET decision = {blob} WHERE id = {bad}")).unwrap();
    let mut source = archive.replay_source(ReplayRange::default());
    let batch = runtime().block_on(source.next()).unwrap().unwrap();
    let decoded: Vec<_> = batch.decode(&mut DecisionDecoder::new()).collect();
    assert_eq!((batch.len(), decoded.len()), (100, 100));
    let wrong: Vec<_> = decoded.iter().filter_map(|one| one.as_ref().err()).collect();
    assert!(matches!(wrong[..], [ArchiveError::Damaged { id, .. }] if id.unsigned_abs() == bad), "{wrong:?}");
}
