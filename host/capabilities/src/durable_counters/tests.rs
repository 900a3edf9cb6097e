use super::*;
use crate::CounterWindow;

/// 2026-11-24, 12:00 UTC.
const NOON: Timestamp = Timestamp(1_795_521_600_000);
const HOUR: u64 = 3_600_000;

fn later(hours: u64) -> Timestamp {
    Timestamp(NOON.0 + hours * HOUR)
}

fn earlier(hours: u64) -> Timestamp {
    Timestamp(NOON.0 - hours * HOUR)
}

fn grant(name: &str, window: CounterWindow, zone: &str) -> CounterGrant {
    CounterGrant { name: name.to_owned(), window, zone: zone.to_owned() }
}

fn daily() -> CounterGrant {
    grant("daily", CounterWindow::Day, "UTC")
}

/// A store file in a temporary folder.
struct TestDisk(tempfile::TempDir);

impl TestDisk {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn open(&self) -> Arc<RedbKvStore> {
        Arc::new(RedbKvStore::open(&self.0.path().join("kv.redb")).unwrap())
    }
}

fn rows(values: &RedbKvStore) -> Vec<(String, u64, u64)> {
    let mut rows = Vec::new();
    let text = |key: &[u8]| String::from_utf8_lossy(key).into_owned();
    values.read_counts(|row| rows.push((text(row.key), row.start, row.count))).unwrap();
    rows
}

fn recovered(values: &RedbKvStore, now: Timestamp) -> Arc<DurableCounters> {
    Arc::new(DurableCounters::recover(DurableCounterOptions::default(), values, now).unwrap())
}

#[test]
fn a_count_is_that_of_the_current_period() {
    let counters = DurableCounters::default();
    let berlin = counters.counter("quota", &grant("daily", CounterWindow::Day, "Europe/Berlin")).unwrap();
    assert_eq!(berlin.add("shop", 2, NOON), Some(2));
    assert_eq!(berlin.add("shop", 3, later(10)), Some(5));
    assert_eq!((berlin.sum("shop", later(10)), berlin.sum("other", NOON)), (5, 0));
    // 23:00 UTC is midnight in Berlin.
    assert_eq!(berlin.sum("shop", later(11)), 0);
    assert_eq!(berlin.add("shop", 1, later(11)), Some(1));
    assert_eq!(berlin.add("shop", 0, later(11)), Some(1));
    assert_eq!(berlin.add("new", 0, later(11)), Some(0));
    assert_eq!(counters.metrics(), [("quota".to_owned(), DurableCounterMetrics { keys: 1, refused: 0 })]);
}

#[test]
fn reading_at_another_time_does_not_roll_over() {
    let counters = DurableCounters::default();
    let counter = counters.counter("quota", &daily()).unwrap();
    counter.add("shop", 7, NOON);
    for now in [Timestamp(0), earlier(1_000), later(1_000)] {
        assert_eq!((counter.sum("shop", now), counter.preview_add("shop", 1, now)), (0, Some(1)));
    }
    assert_eq!((counter.sum("shop", NOON), counter.preview_add("shop", 1, NOON)), (7, Some(8)));
}

#[test]
fn a_clock_set_back_over_midnight_does_not_renew_a_quota() {
    let counters = DurableCounters::default();
    let counter = counters.counter("quota", &daily()).unwrap();
    assert_eq!(counter.add("shop", 1, later(12)), Some(1));
    assert_eq!(counter.add("shop", 1, NOON), Some(2), "the day that has begun goes on");
    assert_eq!(counter.add("shop", 1, later(13)), Some(3));
    assert_eq!(counter.add("shop", 1, earlier(24)), Some(1), "a clock that was wrong by more than a day");
}

#[test]
fn counters_are_shared_by_instances_only() {
    let counters = DurableCounters::default();
    let counter = |plugin: &str, grant: &CounterGrant| counters.counter(plugin, grant).unwrap();
    counter("quota", &daily()).add("shop", 1, NOON);
    assert_eq!(counter("quota", &daily()).add("shop", 1, NOON), Some(2));
    for other in [
        counter("other", &daily()),
        counter("quota", &grant("other", CounterWindow::Day, "UTC")),
        counter("quota", &grant("daily", CounterWindow::Hour, "UTC")),
        counter("quota", &grant("daily", CounterWindow::Day, "Asia/Shanghai")),
    ] {
        assert_eq!(other.sum("shop", NOON), 0);
    }
    let same_zone = grant("daily", CounterWindow::Day, "utc");
    assert_eq!(counter("quota", &same_zone).sum("shop", NOON), 2);
    let nowhere = counters.counter("quota", &grant("daily", CounterWindow::Day, "Nowhere")).unwrap_err();
    assert!(nowhere.to_string().contains("Nowhere"), "{nowhere}");
}

#[test]
fn long_keys_are_distinct() {
    let counters = DurableCounters::default();
    let counter = counters.counter("quota", &daily()).unwrap();
    let long = "x".repeat(100_000);
    assert_eq!((counter.add(&long, 1, NOON), counter.add(&long, 1, NOON)), (Some(1), Some(2)));
    assert_eq!(counter.sum(&long[1..], NOON), 0);
}

#[test]
fn new_keys_over_the_limit_are_refused_without_losing_counts() {
    let counters = DurableCounters::new(DurableCounterOptions { keys: 10 });
    let counter = counters.counter("quota", &daily()).unwrap();
    let hourly = counters.counter("quota", &grant("hourly", CounterWindow::Hour, "UTC")).unwrap();
    for key in 0..5 {
        counter.add(&key.to_string(), 1, NOON);
        hourly.add(&key.to_string(), 1, NOON);
    }
    assert_eq!((counter.add("one more", 1, NOON), hourly.add("one more", 1, NOON)), (None, None));
    assert_eq!(counter.preview_add("one more", 1, NOON), None);
    assert_eq!((counter.add("one more", 0, NOON), counter.sum("one more", NOON)), (Some(0), 0));
    assert_eq!(counter.add("4", 1, NOON), Some(2), "a key that is there");
    assert_eq!(counters.metrics(), [("quota".to_owned(), DurableCounterMetrics { keys: 10, refused: 2 })]);
    let other = counters.counter("other", &daily()).unwrap();
    assert_eq!(other.add("one more", 1, NOON), Some(1), "another plugin");
    // An hour later the expired keys of the past hour make room, although they are not accessed.
    assert_eq!(counter.add("one more", 1, later(1)), Some(1));
    assert_eq!(counter.sum("0", later(1)), 1);
    assert_eq!(counters.metrics().iter().find(|(name, _)| name == "quota").unwrap().1.keys, 6);
}

#[test]
fn counts_survive_a_restart() {
    let disk = TestDisk::new();
    let values = disk.open();
    let counters = recovered(&values, NOON);
    let counter = counters.counter("quota", &daily()).unwrap();
    for key in 0..10_000 {
        counter.add(&key.to_string(), 3, NOON);
    }
    let long = "x".repeat(1_000);
    counter.add(&long, 8, NOON);
    let writer = CounterWriter::new(counters, values);
    writer.flush().unwrap();
    counter.add("7", 1, NOON);
    // Unwritten counts are lost in a crash.
    drop((counter, writer));
    let values = disk.open();
    let counters = recovered(&values, later(1));
    let counter = counters.counter("quota", &daily()).unwrap();
    assert_eq!(counter.add("7", 1, later(1)), Some(4));
    assert_eq!((counter.sum("9999", later(1)), counter.sum(&long, later(1))), (3, 8));
    assert_eq!(counters.metrics()[0].1.keys, 10_001);
}

#[test]
fn an_orderly_stop_writes_all_counts() {
    let disk = TestDisk::new();
    let values = disk.open();
    let counters = recovered(&values, NOON);
    let writer = Arc::new(CounterWriter::new(counters.clone(), values.clone()));
    let counter = counters.counter("quota", &daily()).unwrap();
    let (running, running_writer) = (writer.clone(), writer.clone());
    let thread = std::thread::spawn(move || running_writer.run());
    for n in 0..1_000_u32 {
        counter.add(&(n % 10).to_string(), 1, NOON);
    }
    running.end();
    thread.join().unwrap();
    let rows = rows(&values);
    assert_eq!(rows.len(), 10);
    assert!(rows.iter().all(|(_, _, count)| *count == 100), "{rows:?}");
}

#[test]
fn the_writer_writes_without_a_flush() {
    let disk = TestDisk::new();
    let values = disk.open();
    let counters = recovered(&values, NOON);
    let writer = Arc::new(CounterWriter::new(counters.clone(), values.clone()));
    let counter = counters.counter("quota", &daily()).unwrap();
    let running = writer.clone();
    let thread = std::thread::spawn(move || running.run());
    for expected in 1..=3 {
        counter.add("shop", 1, NOON);
        let begun = std::time::Instant::now();
        while rows(&values).first().is_none_or(|(_, _, count)| *count != expected) {
            assert!(begun.elapsed() < std::time::Duration::from_secs(60), "not written in a minute");
            std::thread::yield_now();
        }
    }
    writer.end();
    thread.join().unwrap();
}

#[test]
fn rows_of_past_periods_are_deleted() {
    let disk = TestDisk::new();
    let values = disk.open();
    let counters = recovered(&values, NOON);
    let counter = counters.counter("quota", &daily()).unwrap();
    let monthly = counters.counter("quota", &grant("monthly", CounterWindow::Month, "UTC")).unwrap();
    let writer = CounterWriter::new(counters, values.clone());
    for key in 0..25_000 {
        counter.add(&key.to_string(), 1, NOON);
    }
    monthly.add("shop", 1, NOON);
    writer.flush().unwrap();
    assert_eq!(rows(&values).len(), 25_001);
    counter.add("shop", 1, later(12));
    writer.flush().unwrap();
    let midnight = later(12).0;
    let left: Vec<_> = rows(&values).into_iter().filter(|(_, start, _)| *start == midnight).collect();
    assert_eq!(left, [("shop".to_owned(), midnight, 1)]);
    assert_eq!(rows(&values).len(), 2, "and the count of the month");
    // While the appliance was off.
    drop((counter, monthly, writer));
    let counters = recovered(&values, later(36));
    assert_eq!(counters.counter("quota", &daily()).unwrap().sum("shop", later(36)), 0);
    CounterWriter::new(counters.clone(), values.clone()).flush().unwrap();
    assert_eq!(rows(&values).len(), 1);
    let monthly = counters.counter("quota", &grant("monthly", CounterWindow::Month, "UTC")).unwrap();
    assert_eq!(monthly.add("shop", 1, later(36)), Some(2));
}

#[test]
fn a_clock_set_back_while_stopped_does_not_renew_a_quota() {
    let disk = TestDisk::new();
    let values = disk.open();
    let counters = recovered(&values, later(12));
    counters.counter("quota", &daily()).unwrap().add("shop", 5, later(12));
    CounterWriter::new(counters, values.clone()).flush().unwrap();
    let counters = recovered(&values, NOON);
    assert_eq!(counters.counter("quota", &daily()).unwrap().add("shop", 1, NOON), Some(6));
    // More than a day: counts of a distant date are useless.
    let counters = recovered(&values, earlier(30));
    assert_eq!(counters.counter("quota", &daily()).unwrap().add("shop", 1, earlier(30)), Some(1));
    CounterWriter::new(counters, values.clone()).flush().unwrap();
    let day = later(12).0 - 48 * HOUR;
    assert_eq!(rows(&values), [("shop".to_owned(), day, 1)]);
}

#[test]
fn an_overlay_starts_from_the_live_counts_and_changes_none() {
    let counters = DurableCounters::default();
    let live = counters.counter("quota", &daily()).unwrap();
    live.add("shop", 5, NOON);
    let overlay = live.overlay();
    assert_eq!((overlay.sum("shop", NOON), overlay.add("shop", 0, NOON)), (5, Some(5)));
    assert_eq!((overlay.add("shop", 1, NOON), overlay.add("shop", 1, NOON)), (Some(6), Some(7)));
    assert_eq!(overlay.add("other", 1, NOON), Some(1));
    assert_eq!((live.sum("shop", NOON), live.sum("other", NOON)), (5, 0));
    assert_eq!(overlay.add("shop", 1, later(24)), Some(1));
    assert_eq!(counters.metrics()[0].1.keys, 1);
}

#[test]
fn a_failing_disk_blocks_no_caller_and_loses_no_count() {
    let counters = Arc::new(DurableCounters::default());
    let counter = counters.counter("quota", &daily()).unwrap();
    counter.add("shop", 1, NOON);
    let mut changed = Vec::new();
    counter.drain_changed(10, &mut changed);
    counter.add("shop", 1, NOON);
    for one in changed.drain(..) {
        one.counter.mark_dirty(one.key, one.period);
    }
    counter.drain_changed(10, &mut changed);
    assert_eq!(changed.iter().map(|one| one.count).collect::<Vec<_>>(), [2], "once, with the newest count");
    // A failed count is not carried over to another period.
    counter.add("shop", 1, later(24));
    counter.drain_changed(10, &mut Vec::new());
    for one in changed.drain(..) {
        one.counter.mark_dirty(one.key, one.period);
    }
    counter.drain_changed(10, &mut changed);
    assert!(changed.is_empty());
}

#[test]
fn rows_of_a_newer_release_are_refused() {
    let disk = TestDisk::new();
    let path = disk.0.path().join("kv.redb");
    {
        type Rows = redb::TableDefinition<
            'static,
            (&'static str, &'static str, &'static str, u64, &'static [u8]),
            &'static [u8],
        >;
        let database = redb::Database::create(&path).unwrap();
        let transaction = database.begin_write().unwrap();
        let rows: Rows = redb::TableDefinition::new("counters");
        transaction
            .open_table(rows)
            .unwrap()
            .insert(("quota", "daily", "day UTC", 0, &b"shop"[..]), &[2, 0, 0][..])
            .unwrap();
        transaction.commit().unwrap();
    }
    let refused = DurableCounters::recover(DurableCounterOptions::default(), &disk.open(), NOON).unwrap_err();
    assert!(refused.to_string().contains("format 2, but this release reads format 1"), "{refused}");
}

#[test]
fn counts_of_an_unknown_zone_are_deleted() {
    let disk = TestDisk::new();
    let values = disk.open();
    let row = |calendar| CounterRow {
        plugin: "quota",
        name: "daily",
        calendar,
        start: NOON.0,
        end: later(24).0,
        key: b"shop",
        count: 1,
    };
    values.write_counts([row("day Mars/Olympus"), row("day UTC")].into_iter()).unwrap();
    recovered(&values, NOON);
    assert_eq!(rows(&values).len(), 1);
}

#[test]
fn counts_are_backed_up_and_deleted_with_the_plugin() {
    let disk = TestDisk::new();
    let values = disk.open();
    let counters = recovered(&values, NOON);
    for plugin in ["a", "a-b"] {
        counters.counter(plugin, &daily()).unwrap().add("shop", 1, NOON);
    }
    CounterWriter::new(counters, values.clone()).flush().unwrap();
    let copy = disk.0.path().join("copy.redb");
    values.snapshot().unwrap().copy_to(&copy).unwrap();
    assert_eq!(rows(&RedbKvStore::open(&copy).unwrap()).len(), 2);
    values.clear("a").unwrap();
    let counters = recovered(&values, NOON);
    let names: Vec<_> = counters.metrics().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["a-b"]);
}

#[test]
fn threads_lose_no_count() {
    let disk = TestDisk::new();
    let values = disk.open();
    let counters = recovered(&values, NOON);
    let counter = counters.counter("quota", &daily()).unwrap();
    let writer = Arc::new(CounterWriter::new(counters, values.clone()));
    let running = writer.clone();
    let thread = std::thread::spawn(move || running.run());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                (0..20_000_u32).for_each(|n| assert!(counter.add(&(n % 500).to_string(), 1, NOON).is_some()));
            });
        }
    });
    writer.end();
    thread.join().unwrap();
    assert!((0..500).all(|n| counter.sum(&n.to_string(), NOON) == 160));
    assert_eq!(rows(&values).iter().map(|(_, _, count)| count).sum::<u64>(), 80_000);
}
