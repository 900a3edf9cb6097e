//! Scenarios for every database. Each gets the URL of an empty database.

#![allow(
    dead_code,
    unreachable_pub,
    clippy::missing_panics_doc,
    missing_docs,
    clippy::unwrap_used,
    clippy::panic,
    reason = "shared by several test programs"
)]

mod audit_logs;
mod decisions;
pub mod erasures;
pub mod messages;
pub mod sealed_rows;

pub use audit_logs::audit_logs_of_nodes_are_kept_apart;
pub use decisions::{
    damaged_decisions_are_reported, decisions_survive_a_round_trip, history_shows_prices,
    long_texts_survive_a_round_trip, rows_of_older_versions_stay_readable,
};

pub use erasures::{a_content_erased_on_its_way_is_not_archived, erased_contents_are_gone};
pub use sealed_rows::encrypted_contents_are_read_with_their_key;

use api::{PumpState, StatisticsView};
use archive::{
    Archive, ArchiveError, ArchiveFilter, ArchiveOptions, ExportFormat, PeerDirectory, Period, Record,
    RecordFields, RunningPump, Side, Span,
};
use messages::{Finished, START, TestSource, direction, finished};
use model::{Address, FinalState, MessageId, NumberDisplay, StepKind, Timestamp};
use sqlx::{AssertSqlSafe, Connection};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

pub fn options() -> ArchiveOptions {
    ArchiveOptions {
        linger: Duration::from_millis(5),
        max_retry_delay: Duration::from_secs(1),
        ..ArchiveOptions::default()
    }
}

/// A shared runtime, because readers' connections live on the runtime that created them.
fn runtime() -> &'static tokio::runtime::Runtime {
    static RUNTIME: LazyLock<tokio::runtime::Runtime> = LazyLock::new(|| {
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
    });
    &RUNTIME
}

pub fn open(url: &str) -> Archive {
    Archive::open(url, options()).unwrap()
}

fn start(archive: &Archive, source: &Arc<TestSource>) -> RunningPump {
    archive.pump(source.clone()).start().unwrap()
}

/// Waits until the condition holds.
pub fn until(what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(120);
    while !holds() {
        assert!(Instant::now() < deadline, "timed out waiting until {what}");
        std::thread::park_timeout(Duration::from_millis(2));
    }
}

/// Archives all messages of a source.
fn fill(archive: &Archive, source: &Arc<TestSource>) {
    let pump = start(archive, source);
    source.wait_for(0);
    pump.stop();
}

/// Executes a statement without the archive.
pub fn sql(url: &str, statement: &str) -> Result<(), sqlx::Error> {
    let text = AssertSqlSafe(statement.to_owned());
    runtime().block_on(async {
        if url.starts_with("sqlite") {
            let mut connection = sqlx::SqliteConnection::connect(url).await?;
            sqlx::raw_sql(text).execute(&mut connection).await?;
            connection.close().await
        } else if url.starts_with("postgres") {
            let mut connection = sqlx::PgConnection::connect(url).await?;
            sqlx::raw_sql(text).execute(&mut connection).await?;
            connection.close().await
        } else {
            let mut connection =
                sqlx::MySqlConnection::connect(&url.replacen("mariadb:", "mysql:", 1)).await?;
            sqlx::raw_sql(text).execute(&mut connection).await?;
            connection.close().await
        }
    })
}

/// All matching records, page by page.
fn all(archive: &Archive, filter: &ArchiveFilter, limit: usize) -> Vec<Record> {
    runtime().block_on(async {
        let (mut records, mut after) = (Vec::new(), None);
        loop {
            let page = archive.page(filter, after, limit, RecordFields::default()).await.unwrap();
            assert!(page.records.len() <= limit);
            records.extend(page.records);
            after = page.next;
            if after.is_none() {
                return records;
            }
        }
    })
}

fn ids(records: &[Record]) -> Vec<u64> {
    records.iter().map(|record| record.id.0).collect()
}

/// Ids of the messages with these numbers, newest first.
fn newest_first(numbers: impl IntoIterator<Item = u64>) -> Vec<u64> {
    let mut ids: Vec<_> = numbers.into_iter().map(|n| MessageId::FIRST.0 + n).collect();
    ids.sort_unstable();
    ids.reverse();
    ids
}

fn accepted(archive: &Archive) -> u64 {
    let statistics = runtime().block_on(archive.statistics(&Period::default())).unwrap();
    statistics.iter().map(|one| one.mt.accepted + one.mo.accepted).sum()
}

/// Each message is archived once, unchanged, and leaves the source.
pub fn all_messages_are_archived_once(url: &str) {
    let (archive, source) = (open(url), TestSource::with(0..5000));
    let pump = start(&archive, &source);
    source.wait_for(0);
    let status = pump.status();
    pump.stop();
    assert_eq!((status.archived, status.refused, status.backlog), (5000, 0, 0));
    assert_eq!(status.state, PumpState::Up);
    assert_eq!(ids(&all(&archive, &ArchiveFilter::default(), 1000)), newest_first(0..5000));
    assert_eq!(accepted(&archive), 5000);
    let runtime = runtime();
    for n in [0, 9, 14, 20, 4999] {
        let (message, ended) = finished(n);
        let record = runtime.block_on(archive.get(message.id)).unwrap().unwrap();
        assert_eq!(record.id, message.id);
        assert_eq!((record.accepted_at, record.ended_at), (message.accepted_at, ended.at));
        assert_eq!(record.direction, direction(&message));
        assert_eq!(record.source, message.source.text());
        assert_eq!((record.source_ton, record.source_npi), (message.source.ton, message.source.npi));
        assert_eq!(record.destination, message.destination.text());
        assert_eq!(record.state, ended.state);
        assert_eq!(record.error, ended.error);
        assert_eq!(record.body.as_deref(), Some(&message.text.octets[..]));
        assert_eq!(record.priority, message.priority.level());
        assert_eq!(record.attempts, 1);
        assert_eq!(record.submission(), message.submission);
        assert_eq!(record.router, "prefix-router");
        let (account, peer) = (n as usize % 2, 2 + (n as usize / 2 % 2));
        assert_eq!(
            (record.account.as_str(), record.peer.as_str()),
            (messages::PEER_NAMES[account], messages::PEER_NAMES[peer])
        );
        let trace: serde_json::Value = serde_json::from_str(record.trace.unwrap().get()).unwrap();
        assert_eq!(trace["steps"].as_array().unwrap().len(), ended.steps.len());
        assert_eq!(trace["steps"][1]["step"], "submitted");
    }
    assert!(runtime.block_on(archive.get(MessageId(1))).unwrap().is_none());
    assert!(runtime.block_on(archive.get(MessageId(u64::MAX))).unwrap().is_none());
}

/// The daemon dies after the database has committed and before the messages left the source.
pub fn a_crash_before_removal_archives_once(url: &str) {
    let (archive, source) = (open(url), TestSource::with(0..3000));
    source.fail_removals.store(true, Relaxed);
    let pump = start(&archive, &source);
    until("all messages are committed", || pump.status().archived == 3000);
    pump.stop();
    assert_eq!(source.removed.load(Relaxed), 0);
    source.fail_removals.store(false, Relaxed);
    // Some messages are new, between and after existing ones.
    source.put((3000..3500).map(finished));
    let (archive, before) = (open(url), accepted(&archive));
    let pump = start(&archive, &source);
    source.wait_for(0);
    let status = pump.status();
    pump.stop();
    assert_eq!(before, 3000);
    assert_eq!(status.archived, 500);
    assert_eq!(ids(&all(&archive, &ArchiveFilter::default(), 1000)), newest_first(0..3500));
    assert_eq!(accepted(&archive), 3500);
}

/// Two daemons archive the same messages at the same time.
pub fn two_pumps_archive_once(url: &str) {
    let (one, other) = (open(url), open(url));
    let made = runtime().block_on(async { tokio::join!(one.prepare(), other.prepare()) });
    made.0.unwrap();
    made.1.unwrap();
    let shelves = [TestSource::with(0..2500), TestSource::with(0..2500)];
    let pumps = [start(&one, &shelves[0]), start(&other, &shelves[1])];
    for source in &shelves {
        source.wait_for(0);
    }
    for pump in pumps {
        pump.stop();
    }
    assert_eq!(ids(&all(&one, &ArchiveFilter::default(), 1000)), newest_first(0..2500));
    assert_eq!(accepted(&one), 2500);
}

/// A database of a newer daemon is not touched.
pub fn newer_schemas_are_rejected(url: &str) {
    let archive = open(url);
    runtime().block_on(archive.prepare()).unwrap();
    let blob = if url.starts_with("postgres") { "'\\x00'" } else { "x'00'" };
    sql(
        url,
        &format!(
            "INSERT INTO schema_versions (version, description, success, checksum, execution_time) VALUES (4711, 'from a newer daemon', true, {blob}, 1)"
        ),
    )
    .unwrap();
    let error = runtime().block_on(archive.prepare()).unwrap_err();
    assert!(matches!(error, ArchiveError::NewerSchema { found: 4711, known: 5 }), "{error}");
    let text = error.to_string();
    assert!(text.contains("4711") && text.contains("up to 5"), "{text}");
    let source = TestSource::with(0..10);
    let pump = start(&archive, &source);
    until("the pump has tried to write", || pump.status().state != PumpState::Starting);
    let status = pump.status();
    pump.stop();
    assert_eq!(status.state, PumpState::Down);
    assert!(status.error.is_some_and(|why| why.contains("4711")));
    assert_eq!(source.ids().len(), 10);
}

/// A row that the database rejects stays in the source, and the others are archived.
pub fn a_rejected_row_does_not_block_others(url: &str) {
    let archive = open(url);
    runtime().block_on(archive.prepare()).unwrap();
    // 491700000013 is the destination of numbers 13, 513, 1013 …
    let statement = if url.starts_with("sqlite") {
        "CREATE TRIGGER reject_thirteen BEFORE INSERT ON messages WHEN NEW.destination = '491700000013' BEGIN SELECT RAISE(ABORT, 'not thirteen'); END"
    } else {
        "ALTER TABLE messages ADD CONSTRAINT reject_thirteen CHECK (destination <> '491700000013')"
    };
    sql(url, statement).unwrap();
    let source = TestSource::with(0..3000);
    let pump = start(&archive, &source);
    source.wait_for(6);
    // Meanwhile, other messages are archived.
    source.put((3000..3010).map(finished));
    pump.wake();
    source.wait_for(6);
    until("all six are refused", || pump.status().refused == 6);
    let status = pump.status();
    pump.stop();
    assert_eq!((status.archived, status.refused, status.backlog), (3004, 6, 6));
    let bad = [13, 513, 1013, 1513, 2013, 2513];
    assert_eq!(source.ids(), bad.map(|n| MessageId::FIRST.0 + n));
    assert_eq!(accepted(&archive), 3004);
    // Without the constraint they are archived too.
    let statement = if url.starts_with("sqlite") {
        "DROP TRIGGER reject_thirteen"
    } else {
        "ALTER TABLE messages DROP CONSTRAINT reject_thirteen"
    };
    sql(url, statement).unwrap();
    fill(&archive, &source);
    assert_eq!(ids(&all(&archive, &ArchiveFilter::default(), 1000)), newest_first(0..3010));
    assert_eq!(accepted(&archive), 3010);
}

/// More rejected rows than a batch holds, older than all others.
pub fn many_rejected_rows_do_not_block(url: &str) {
    let archive = Archive::open(url, ArchiveOptions { batch: 4, ..options() }).unwrap();
    runtime().block_on(archive.prepare()).unwrap();
    let statement = if url.starts_with("sqlite") {
        "CREATE TRIGGER reject_thirteen BEFORE INSERT ON messages WHEN NEW.destination = '491700000013' BEGIN SELECT RAISE(ABORT, 'not thirteen'); END"
    } else {
        "ALTER TABLE messages ADD CONSTRAINT reject_thirteen CHECK (destination <> '491700000013')"
    };
    sql(url, statement).unwrap();
    let bad: Vec<_> = (0..9).map(|n| n * 500 + 13).collect();
    let source = TestSource::with(bad.iter().copied().chain(5000..5010));
    let pump = start(&archive, &source);
    source.wait_for(9);
    source.put((6000..6003).map(finished));
    pump.wake();
    source.wait_for(9);
    until("all nine are refused", || pump.status().refused == 9);
    pump.stop();
    assert_eq!(
        ids(&all(&archive, &ArchiveFilter::default(), 1000)),
        newest_first((5000..5010).chain(6000..6003))
    );
    assert_eq!(source.ids().len(), 9);
}

/// Invalid text, and the longest values.
pub fn arbitrary_octets_survive(url: &str) {
    let archive = open(url);
    let source = Arc::new(TestSource::default());
    let addresses: [&[u8]; 6] =
        [b"a\0b", b"\xff\xfe\xfd", b"", &[0x80; 64], b"back\\slash", "Č\u{1f4a9}".as_bytes()];
    let message = |n: usize| {
        let (mut message, mut ended) = finished(n as u64);
        message.source = Address::new(255, 255, addresses[n]);
        message.text.octets = vec![n as u8; 65_535].into();
        message.tlvs = vec![0xff; 4000].into();
        message.routed.note = Some("a note with \0 and 'quotes' and \u{1f4a9}".into());
        ended.peer_id = model::PeerMessageId::new(addresses[n]);
        ended.error = u32::MAX;
        ended.at = Timestamp(u64::MAX);
        (message, ended)
    };
    source.put((0..addresses.len()).map(message));
    let pump = start(&archive, &source);
    source.wait_for(0);
    assert_eq!(pump.status().refused, 0);
    pump.stop();
    for (n, address) in addresses.into_iter().enumerate() {
        let (sent, _) = message(n);
        let record = runtime().block_on(archive.get(sent.id)).unwrap().unwrap();
        assert_eq!(Record::octets(&record.source).as_deref(), Some(address));
        assert_eq!((record.source_ton, record.source_npi, record.error), (255, 255, u32::MAX));
        assert_eq!(record.body.as_deref(), Some(&sent.text.octets[..]));
        assert_eq!(Record::octets(&record.peer_message_id.unwrap_or_default()).as_deref(), Some(address));
        assert!(record.trace.unwrap().get().contains(&"ff".repeat(4000)));
        let name = String::from_utf8_lossy(address);
        if !address.is_empty() && !name.contains('\u{fffd}') {
            let filter = ArchiveFilter { number: Some(name.into_owned()), ..ArchiveFilter::default() };
            assert_eq!(ids(&all(&archive, &filter, 10)), [sent.id.0]);
        }
    }
}

/// Filters find the expected messages with any page size.
pub fn filters_match_the_reference(url: &str) {
    // A gap in the ids that a search must cross.
    let numbers = || (0..1000).chain(900_000..901_000);
    let (archive, source) = (open(url), TestSource::with(numbers()));
    fill(&archive, &source);
    let matches = |filter: &ArchiveFilter, (message, ended): &Finished| {
        let (message_source, destination) = (message.source.text(), message.destination.text());
        let (account, peer) = match direction(message) {
            model::Direction::Mt => {
                (message.origin, 2 + ((message.id.0 - MessageId::FIRST.0) / 2 % 2) as u32)
            }
            model::Direction::Mo => (model::PeerId((message.id.0 % 2) as u32), message.origin.0),
        };
        let (account, peer) = (source.name(account), source.name(model::PeerId(peer)));
        filter.number.as_ref().is_none_or(|number| {
            let bare = number.trim_start_matches('+');
            bare == destination || filter.side == Side::Either && bare == message_source
        }) && filter.account.as_ref().is_none_or(|name| **name == *account)
            && filter.peer.as_ref().is_none_or(|name| **name == *peer)
            && filter.state.is_none_or(|state| state == ended.state)
            && filter.direction.is_none_or(|way| way == direction(message))
            && filter.from.is_none_or(|from| message.accepted_at >= from)
            && filter.until.is_none_or(|until| message.accepted_at < until)
            && filter.first.is_none_or(|first| message.id >= first)
    };
    let asked = [None, Some("491700000013"), Some("+491700000009"), Some("70001"), Some("1"), Some("%")];
    let times = [
        (None, None),
        (Some(100), Some(900)),
        (Some(900_500), None),
        (None, Some(1)),
        (Some(990_000), None),
        (Some(70), Some(60)),
    ];
    let mut found = 0;
    for number in asked {
        for (from, until) in times {
            for (who, limit) in [(0, 1000), (1, 7), (2, 50), (3, 50), (4, 13)] {
                let time = |seconds: u64| Timestamp(START + seconds * 1000);
                let filter = ArchiveFilter {
                    number: number.map(str::to_owned),
                    side: if who == 2 { Side::Destination } else { Side::Either },
                    account: (who == 1 || who == 4).then(|| "acme".to_owned()),
                    within: None,
                    peer: (who == 2 || who == 4).then(|| "south".to_owned()),
                    state: (who == 3).then_some(FinalState::Delivered),
                    direction: (who == 4).then_some(model::Direction::Mo),
                    from: from.map(time),
                    until: until.map(time),
                    first: (who == 2).then_some(MessageId(MessageId::FIRST.0 + 500)),
                };
                let expected: Vec<_> = numbers()
                    .rev()
                    .map(finished)
                    .filter(|one| matches(&filter, one))
                    .map(|one| one.0.id.0)
                    .collect();
                found += expected.len();
                assert_eq!(ids(&all(&archive, &filter, limit)), expected, "{filter:?} by {limit}");
            }
        }
    }
    assert!(found > 1000, "the filters match records");
}

/// Pages neither repeat nor omit messages that existed when paging began.
pub fn paging_is_stable(url: &str) {
    let (archive, source) = (open(url), TestSource::with((0..600).filter(|n| n % 3 != 0).map(|n| n + 1000)));
    fill(&archive, &source);
    let (runtime, mut seen, mut after) = (runtime(), Vec::new(), None);
    for round in 0.. {
        let page = runtime
            .block_on(archive.page(&ArchiveFilter::default(), after, 17, RecordFields::default()))
            .unwrap();
        seen.extend(ids(&page.records));
        after = page.next;
        if after.is_none() {
            break;
        }
        // Messages finish out of order: some are older than the cursor, some newer than all.
        source.put([finished(1000 + round * 3), finished(1599 - round * 3 / 2 * 3), finished(5000 + round)]);
        fill(&archive, &source);
    }
    assert!(seen.is_sorted_by(|one, next| one > next), "newest first, without duplicates");
    let first: Vec<_> = newest_first((0..600).filter(|n| n % 3 != 0).map(|n| n + 1000));
    let kept: Vec<_> = seen.into_iter().filter(|id| first.contains(id)).collect();
    assert_eq!(kept, first);
}

/// Old messages are deleted, new ones stay, and the pump continues meanwhile.
pub fn retention_deletes_old_messages(url: &str) {
    let (archive, source) = (open(url), TestSource::with(0..10_000));
    fill(&archive, &source);
    // 10,000 messages are 2 h 46 min. At half past one, hour 0 is over and hour 1 is not.
    let pump = start(&archive, &source);
    let trimmed = std::thread::scope(|scope| {
        let trimming = scope.spawn(|| {
            runtime().block_on(archive.trim(Timestamp(START + 2 * 3_600_000 + 1_800_000))).unwrap()
        });
        let mut next = 10_000;
        while !trimming.is_finished() {
            source.put((next..next + 10).map(finished));
            next += 10;
            pump.wake();
            source.wait_for(0);
        }
        source.put([finished(20_000)]);
        pump.wake();
        source.wait_for(0);
        trimming.join().unwrap()
    });
    pump.stop();
    assert_eq!(trimmed.messages, 7200);
    let left = ids(&all(&archive, &ArchiveFilter::default(), 1000));
    assert_eq!(left.last(), Some(&(MessageId::FIRST.0 + 7200)));
    assert_eq!(left.first(), Some(&(MessageId::FIRST.0 + 20_000)));
    assert!(left.len() > 2800);
    // The second run has nothing to do. A message that finishes after its hour was trimmed is deleted by the next run.
    let runtime = runtime();
    let before = Timestamp(START + 2 * 3_600_000);
    assert_eq!(runtime.block_on(archive.trim(before)).unwrap().messages, 0);
    source.put([finished(5)]);
    fill(&archive, &source);
    assert_eq!(runtime.block_on(archive.trim(before)).unwrap().messages, 1);
}

/// With a retention, the pump deletes old messages automatically.
pub fn old_messages_are_deleted_automatically(url: &str) {
    let source = Arc::new(TestSource::default());
    // Accepted in 1970, long before the time of this machine's clock.
    source.put((0..1500).map(|n| {
        let (mut message, ended) = finished(n);
        message.accepted_at = Timestamp(n * 1000);
        (message, ended)
    }));
    // A clock is trusted if it is close to the newest message of an earlier hour.
    let (mut recent, ended) = finished(1500);
    recent.accepted_at = Timestamp(Timestamp::now().0 - 2 * 3_600_000);
    source.put([(recent, ended)]);
    fill(&open(url), &source);
    let keep = Some(Duration::from_secs(86_400));
    let archive = Archive::open(url, ArchiveOptions { keep, ..options() }).unwrap();
    let pump = start(&archive, &source);
    until("all are deleted", || pump.status().trimmed == 1500);
    pump.stop();
    assert_eq!(ids(&all(&archive, &ArchiveFilter::default(), 1000)), [MessageId::FIRST.0 + 1500]);
    // Statistics remain.
    assert_eq!(accepted(&archive), 1501);
}

/// CSV and JSON Lines contain what pages show.
pub fn exports_match_the_records(url: &str) {
    let (archive, source) = (open(url), TestSource::with(0..2500));
    let (mut odd, ended) = finished(2500);
    odd.source = Address::new(5, 0, b"a,\"b\"\r\nc;=1+1");
    source.put([(odd, ended)]);
    fill(&archive, &source);
    let filter = ArchiveFilter { account: Some("acme".into()), ..ArchiveFilter::default() };
    let records = all(&archive, &filter, 1000);
    let fields = RecordFields { body: true, trace: true };
    let (mut csv, mut lines) = (Vec::new(), Vec::new());
    runtime().block_on(async {
        archive
            .export(filter.clone(), ExportFormat::Csv, fields)
            .with_numbers(NumberDisplay::Whole)
            .write_to(&mut csv)
            .await
            .unwrap();
        archive
            .export(filter.clone(), ExportFormat::JsonLines, fields)
            .with_numbers(NumberDisplay::Whole)
            .write_to(&mut lines)
            .await
            .unwrap();
    });
    let mut reader = csv::Reader::from_reader(&csv[..]);
    let names = reader.headers().unwrap().clone();
    let column = |name: &str| names.iter().position(|other| other == name).unwrap();
    let rows: Vec<_> = reader.records().map(Result::unwrap).collect();
    let lines: Vec<serde_json::Value> = lines
        .split(|c| *c == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect();
    assert_eq!((rows.len(), lines.len()), (records.len(), records.len()));
    assert!(records.len() > 1000, "more than one page");
    for ((row, line), record) in rows.iter().zip(&lines).zip(&records) {
        for name in ["id", "source", "destination", "state", "accepted_at", "body"] {
            assert_eq!(line[name].as_str(), row.get(column(name)), "{name}");
        }
        assert_eq!(line["id"], record.id.to_string());
        assert_eq!(line["source"], record.source);
        assert_eq!(line["error"].to_string(), row[column("error")]);
        let trace: serde_json::Value = serde_json::from_str(&row[column("trace")]).unwrap();
        assert_eq!(line["trace"], trace);
        assert_eq!(trace["steps"][0]["step"], "accepted");
    }
    let first = &lines[0];
    assert_eq!(first["source"], "a,\"b\"\\x0d\\x0ac;=1+1");
    assert_eq!(first["accepted_at"], "2026-03-01T00:41:40Z");
    let (nothing, empty) = (
        ArchiveFilter { account: Some("nobody".into()), ..ArchiveFilter::default() },
        RecordFields::default(),
    );
    let mut csv = Vec::new();
    runtime().block_on(archive.export(nothing, ExportFormat::Csv, empty).write_to(&mut csv)).unwrap();
    assert_eq!(csv.split(|c| *c == b'\n').count(), 2, "only names");
}

/// Statistics reflect the events of all messages.
pub fn statistics_count_once(url: &str) {
    let (archive, source) = (open(url), TestSource::with(0..9000));
    fill(&archive, &source);
    let runtime = runtime();
    let hours = runtime.block_on(archive.statistics(&Period::default())).unwrap();
    let mut expected: BTreeMap<(u64, String, String, bool), [u64; 5]> = BTreeMap::new();
    for n in 0..9000 {
        let (message, ended) = finished(n);
        let hour = message.accepted_at.0 / 3_600_000 * 3_600_000;
        let names = messages::PEER_NAMES.map(str::to_owned);
        let [account, peer] = [names[n as usize % 2].clone(), names[2 + n as usize / 2 % 2].clone()];
        let counts = expected.entry((hour, account, peer, n % 10 == 9)).or_default();
        counts[0] += 1;
        let has =
            |test: &dyn Fn(&StepKind) -> bool| u64::from(ended.steps.iter().any(|step| test(&step.kind)));
        counts[1] += has(&|kind| matches!(kind, StepKind::Responded { .. }));
        counts[2] += has(&|kind| matches!(kind, StepKind::Refused { code: 0x0b }));
        counts[3] += has(&|kind| matches!(kind, StepKind::DlrReceived { state: 2, .. }));
        counts[4] += has(&|kind| matches!(kind, StepKind::DlrReceived { state: 5, error: 27 }));
    }
    let mut counted = BTreeMap::new();
    for one in &hours {
        for (mo, counts) in [(false, &one.mt), (true, &one.mo)] {
            let code = |codes: &BTreeMap<u32, u64>, code: u32| {
                assert!(codes.keys().all(|key| *key == code));
                codes.get(&code).copied().unwrap_or(0)
            };
            if counts.accepted > 0 {
                counted.insert(
                    (one.start, one.account.clone(), one.peer.clone(), mo),
                    [
                        counts.accepted,
                        counts.responded,
                        code(&counts.refused, 0x0b),
                        counts.delivered,
                        code(&counts.undelivered, 27),
                    ],
                );
                assert_eq!(counts.ended.values().sum::<u64>(), counts.accepted);
                assert_eq!(counts.response.count, counts.responded);
                assert!((19.0..80.0).contains(&counts.response.p50), "{:?}", counts.response);
                assert!((800.0..6000.0).contains(&counts.dlr.p99), "{:?}", counts.dlr);
                assert!(counts.dlr.p50 <= counts.dlr.p95 && counts.dlr.p95 <= counts.dlr.p99);
            }
        }
    }
    assert_eq!(counted, expected);
    // 9,000 seconds from midnight UTC: one day there, two days ten hours to the west.
    let day = |east| {
        let period = Period { span: Span::Day { east }, account: Some("acme".into()), ..Period::default() };
        runtime.block_on(archive.statistics(&period)).unwrap()
    };
    let starts = |days: &[StatisticsView]| {
        let mut starts: Vec<_> = days.iter().map(|one| one.start).collect();
        starts.dedup();
        starts
    };
    assert_eq!(starts(&day(0)), [START]);
    assert_eq!(starts(&day(-1)), [START - 23 * 3_600_000, START + 3_600_000]);
    assert_eq!(starts(&day(8)), [START - 8 * 3_600_000]);
    let of_acme: u64 = expected.iter().filter(|(key, _)| key.1 == "acme").map(|(_, counts)| counts[0]).sum();
    for east in [0, -1, 8] {
        assert_eq!(day(east).iter().map(|one| one.mt.accepted + one.mo.accepted).sum::<u64>(), of_acme);
    }
    let second = Period {
        from: Some(Timestamp(START + 3_600_000)),
        until: Some(Timestamp(START + 7_200_000)),
        ..Period::default()
    };
    let second = runtime.block_on(archive.statistics(&second)).unwrap();
    assert_eq!(second.iter().map(|one| one.mt.accepted + one.mo.accepted).sum::<u64>(), 3600);
}

/// Defines all scenarios as tests; `$fixture` creates something with a `url()` of an empty database that lives as long
/// as it.
#[macro_export]
macro_rules! every_scenario {
    ($fixture:expr) => {
        $crate::every_scenario!($fixture; all_messages_are_archived_once, a_crash_before_removal_archives_once, two_pumps_archive_once, newer_schemas_are_rejected,
            a_rejected_row_does_not_block_others, many_rejected_rows_do_not_block, arbitrary_octets_survive,
            filters_match_the_reference, paging_is_stable, retention_deletes_old_messages, old_messages_are_deleted_automatically, exports_match_the_records,
            statistics_count_once, decisions_survive_a_round_trip, history_shows_prices, rows_of_older_versions_stay_readable,
            damaged_decisions_are_reported, long_texts_survive_a_round_trip, audit_logs_of_nodes_are_kept_apart,
            encrypted_contents_are_read_with_their_key, erased_contents_are_gone, a_content_erased_on_its_way_is_not_archived);
    };
    ($fixture:expr; $($name:ident),*) => {
        $(#[test]
        fn $name() {
            let fixture = $fixture(stringify!($name));
            scenarios::$name(&fixture.url());
        })*
    };
}
