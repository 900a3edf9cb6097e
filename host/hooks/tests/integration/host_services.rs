//! Host services as plugins see them: counters, values, tables, requests, the HLR and the log, with grants and limits.

use crate::support::{
    FORCED, HooksFixture, NOW, directory, guest, message, options, services, wait_until, with_long_deadline,
};
use capabilities::{
    CounterGrant, CounterWindow, CounterWriter, DurableCounterOptions, DurableCounters, Fetcher,
    FetcherOptions, KvStore, MemoryKvStore, RedbKvStore, TableKind,
};
use hooks::{Binding, Grants, HookError, Hooks, HostServices, InstanceUse, TrialMode};
use model::{Hook, Leg, MessageId, RoutingDecision, Settlement, Timestamp, Verdict};
use std::fmt::{Debug, Write as _};
use std::io::{Read, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

const NUMBER: &str = "8613012345678";

/// A prober with these commands and grants.
fn prober(fixture: &HooksFixture, lines: &str, grants: Grants) -> Binding {
    Binding { grants, ..with_long_deadline(fixture.binding("test_prober", lines)) }
}

fn activate(fixture: &HooksFixture, binding: &Binding) {
    fixture.hooks.activate(Hook::Resolver, NOW, vec![binding.clone()], FORCED).unwrap();
}

/// The note of the prober's next answer.
fn last_note(fixture: &HooksFixture) -> String {
    fixture.hooks.resolve(NUMBER, NOW).note.expect("its note").into()
}

/// Activates a prober and returns its note.
fn note_with(fixture: &HooksFixture, lines: &str, grants: Grants) -> String {
    activate(fixture, &prober(fixture, lines, grants));
    last_note(fixture)
}

fn kv(quota: u64) -> Grants {
    Grants { kv: quota, ..Grants::default() }
}

#[test]
fn counters_belong_to_the_plugin_and_survive_version_changes() {
    let fixture = HooksFixture::new();
    let none = Grants::default;
    assert_eq!(note_with(&fixture, "count calls\ncount calls\nsum calls\nsum others", none()), "1; 2; 2; 0");
    // Another document, another use of instances, another candidate: they all share the counts.
    assert_eq!(note_with(&fixture, "count calls", none()), "3");
    let fresh = Binding { instance: InstanceUse::PerCall, ..prober(&fixture, "count calls", none()) };
    activate(&fixture, &fresh);
    assert_eq!((last_note(&fixture), last_note(&fixture)), ("4".to_owned(), "5".to_owned()));
    fixture
        .hooks
        .start_trial(Hook::Resolver, NOW, TrialMode::Canary { share: 10_000 }, vec![fresh], FORCED)
        .unwrap();
    assert_eq!(last_note(&fixture), "6");
    fixture.hooks.rollback(Hook::Resolver, NOW).unwrap();
    fixture.hooks.end_trial(Hook::Resolver, NOW).unwrap();
    assert_eq!(last_note(&fixture), "7");
    // The same component under another name is another plugin.
    let version = prober(&fixture, "", none()).version;
    fixture.hooks.upload("stranger", &guest("test_prober"), None).unwrap();
    activate(&fixture, &with_long_deadline(Binding::new("stranger", &version, "sum calls\ncount calls")));
    assert_eq!(last_note(&fixture), "0; 1");
}

/// Counters of a day and an hour in UTC.
fn counters_grant(names: [&str; 2]) -> Grants {
    let windows = [CounterWindow::Day, CounterWindow::Hour];
    let grant = |(name, window): (&str, _)| CounterGrant { name: name.into(), window, zone: "UTC".into() };
    Grants { counters: names.into_iter().zip(windows).map(grant).collect(), ..Grants::default() }
}

#[test]
fn a_granted_counter_is_durable_and_shared() {
    let disk = tempfile::tempdir().unwrap();
    let values = Arc::new(RedbKvStore::open(&disk.path().join("kv.redb")).unwrap());
    let recover =
        |now| Arc::new(DurableCounters::recover(DurableCounterOptions::default(), &values, now).unwrap());
    let durable = recover(NOW);
    let fixture = HooksFixture::with_durable_counters(durable.clone());
    let lines = "count daily\ncount calls\nsum daily";
    let binding = prober(&fixture, lines, counters_grant(["daily", "hourly"]));
    activate(&fixture, &binding);
    assert_eq!((last_note(&fixture).as_str(), last_note(&fixture).as_str()), ("1; 1; 1", "2; 2; 2"));
    // A canary with another document, and a rollback.
    let canary = Binding { policy: "count daily".into(), instance: InstanceUse::PerCall, ..binding.clone() };
    fixture
        .hooks
        .start_trial(Hook::Resolver, NOW, TrialMode::Canary { share: 10_000 }, vec![canary], FORCED)
        .unwrap();
    assert_eq!(last_note(&fixture), "3");
    fixture.hooks.end_trial(Hook::Resolver, NOW).unwrap();
    assert_eq!(last_note(&fixture), "4; 3; 4");
    CounterWriter::new(durable, values.clone()).flush().unwrap();

    let fixture = fixture.restart_with_counters(options(), recover(NOW));
    assert_eq!(last_note(&fixture), "5; 1; 5", "the other counter is in memory");
    let tomorrow = Timestamp(NOW.0 + 86_400_000);
    assert_eq!(fixture.hooks.resolve(NUMBER, tomorrow).note.as_deref(), Some("1; 1; 1"));
    // A binding without the grant uses another counter.
    assert_eq!(note_with(&fixture, "count daily", Grants::default()), "1");
}

#[test]
fn previews_see_durable_counts_and_change_none() {
    let fixture = HooksFixture::with_durable_counters(Arc::default());
    let peeper = Binding {
        grants: counters_grant(["seen", "other"]),
        ..with_long_deadline(fixture.binding("test_peeper", "north"))
    };
    fixture.hooks.activate(Hook::Router, NOW, vec![peeper.clone()], None).unwrap();
    let message = message("good", NUMBER);
    let route = || fixture.hooks.route(&message, NOW);
    let noted = |note: Option<&str>, seen: &str| {
        let note = note.expect("the peeper's note").to_owned();
        assert!(note.contains(seen), "{note}, and not {seen}");
    };
    let recorded = route();
    noted(recorded.note.as_deref(), "seen 0 then 1,");
    noted(route().note.as_deref(), "seen 1 then 2,");
    for _ in 0..2 {
        let (considered, _) = fixture.hooks.explain(&message, NOW);
        let decision = considered[0].outcome.as_ref().unwrap();
        noted(decision.note.as_deref(), "seen 2 then 3,");
    }
    let week_ago = Timestamp(NOW.0 - 7 * 86_400_000);
    let trial = fixture.hooks.dry_run(Hook::Router, std::slice::from_ref(&peeper)).unwrap();
    noted(trial.route(&message, NOW, None).note.as_deref(), "seen 2 then 3,");
    noted(trial.route(&message, week_ago, None).note.as_deref(), "seen 0 then 1,");
    // Recorded answers come from the record.
    noted(trial.route(&message, week_ago, recorded.host_calls.as_deref()).note.as_deref(), "seen 0 then 1,");
    let shadow = Binding { policy: "south".to_owned(), ..peeper };
    fixture.hooks.start_trial(Hook::Router, NOW, TrialMode::Shadow, vec![shadow], None).unwrap();
    noted(route().note.as_deref(), "seen 2 then 3,");
    noted(route().note.as_deref(), "seen 3 then 4,");
    let compared = || fixture.hooks.status(Hook::Router).candidate.unwrap().comparison.unwrap().compared;
    wait_until("both are compared", || compared() == 2);
    noted(route().note.as_deref(), "seen 4 then 5,");
}

#[test]
fn a_quota_is_exhausted_at_the_key_limit() {
    let fixture =
        HooksFixture::with_durable_counters(Arc::new(DurableCounters::new(DurableCounterOptions {
            keys: 1,
        })));
    let lines = "count daily\ncount hourly\nsum hourly\ncount daily";
    let full = u64::MAX;
    assert_eq!(note_with(&fixture, lines, counters_grant(["daily", "hourly"])), format!("1; {full}; 0; 2"));
    assert_eq!(fixture.durable.metrics()[0].1.refused, 1);
}

#[test]
fn an_invalid_durable_counter_is_refused() {
    let fixture = HooksFixture::new();
    let refusal = |grants: Grants| {
        let binding = prober(&fixture, "count daily", grants);
        fixture.hooks.activate(Hook::Resolver, NOW, vec![binding], FORCED).unwrap_err().to_string()
    };
    let mut nowhere = counters_grant(["daily", "hourly"]);
    nowhere.counters[1].zone = "Mars/Olympus".to_owned();
    let refused = refusal(nowhere);
    assert!(
        refused.starts_with("grants.counters: counter \"hourly\": the time zone \"Mars/Olympus\" is unknown"),
        "{refused}"
    );
    let refused = refusal(counters_grant(["daily", "daily"]));
    assert_eq!(
        refused,
        "grants.counters: counter \"daily\": the name occurs twice; give each counter its own"
    );
    assert!(!fixture.hooks.is_bound(Hook::Resolver));
}

#[test]
fn values_survive_version_changes_within_the_quota() {
    let fixture = HooksFixture::new();
    assert_eq!(note_with(&fixture, "set a 10\nread a\nread b", kv(100)), "set; 10; nothing");
    assert_eq!(
        note_with(&fixture, "read a\nset b 20\ndelete b\ndelete b\nread b", kv(100)),
        "10; set; true; false; nothing"
    );
    let full = note_with(&fixture, "set b 95\nread b\nset a 90\nread a", kv(100));
    assert_eq!(
        full,
        "keys and values would take 107 octets, but the binding's quota is 100; nothing; set; 90"
    );
    let large = note_with(&fixture, "set a 65537\nread a", kv(1 << 20));
    assert!(large.starts_with("a value of 65537 octets exceeds") && large.ends_with("; 90"), "{large}");
    let fixture = fixture.restart();
    assert_eq!(last_note(&fixture).rsplit_once("; ").unwrap().1, "90", "also after a restart");
    // Without a grant the values are inaccessible.
    let without = note_with(&fixture, "read a\ndelete a\nset a 1", Grants::default());
    assert_eq!(without, "nothing; false; the binding grants no kv: give it a quota in grants.kv");
    assert_eq!(note_with(&fixture, "read a", kv(1)), "90");
    let version = prober(&fixture, "", kv(1)).version;
    fixture.hooks.upload("stranger", &guest("test_prober"), None).unwrap();
    let stranger =
        Binding { grants: kv(100), ..with_long_deadline(Binding::new("stranger", &version, "read a")) };
    activate(&fixture, &stranger);
    assert_eq!(last_note(&fixture), "nothing");
}

#[test]
fn a_shadow_candidate_writes_to_its_own_kv_overlay() {
    let fixture = HooksFixture::new();
    activate(&fixture, &prober(&fixture, "set a 10\nread b", kv(100)));
    let candidate = prober(&fixture, "set a 20\nset b 30\ndelete a", kv(100));
    fixture.hooks.start_trial(Hook::Resolver, NOW, TrialMode::Shadow, vec![candidate], FORCED).unwrap();
    for _ in 0..3 {
        assert_eq!(last_note(&fixture), "set; nothing");
    }
    let compared = || fixture.hooks.status(Hook::Resolver).candidate.unwrap().comparison.unwrap().compared;
    wait_until("all are compared", || compared() == 3);
    assert_eq!(note_with(&fixture, "read a\nread b", kv(100)), "10; nothing");
}

#[test]
fn a_granted_table_opens_and_its_handle_stays_valid() {
    let fixture = HooksFixture::new();
    let put = |kind, csv: &str| fixture.tables.put("ported", kind, csv.as_bytes()).unwrap();
    let granted = || Grants { tables: vec!["ported".to_owned(), "gone".to_owned()], ..Grants::default() };
    let refusal = |lines: &str, grants| {
        let binding = prober(&fixture, lines, grants);
        match fixture.hooks.activate(Hook::Resolver, NOW, vec![binding], None) {
            Err(HookError::Refused { why, .. }) => why,
            other => panic!("{other:?}"),
        }
    };
    put(TableKind::Prefix, "86130,north\n86,south\n");
    let why = refusal("open ported", Grants::default());
    assert!(why.contains("does not grant table \"ported\""), "{why}");
    let why = refusal("open gone", granted());
    assert!(why.contains("there is no table \"gone\""), "{why}");

    let lookup = "open ported\nprefix 0 @\nget 0 86\nget 0 1\nget 7 86";
    let binding = Binding { instance: InstanceUse::PerCall, ..prober(&fixture, lookup, granted()) };
    for binding in [prober(&fixture, lookup, granted()), binding] {
        put(TableKind::Prefix, "86130,north\n86,south\n");
        activate(&fixture, &binding);
        assert_eq!(last_note(&fixture), "north of 5; south; nothing; nothing");
        put(TableKind::Prefix, "8613012,reserve\n");
        assert_eq!(
            last_note(&fixture),
            "reserve of 7; nothing; nothing; nothing",
            "replaced while it is in use"
        );
        fixture.tables.remove("ported").unwrap();
        // Look-ups find nothing, even in an instance that is created now.
        assert_eq!(last_note(&fixture), "nothing; nothing; nothing; nothing");
        put(TableKind::Exact, "86,back\n");
        assert_eq!(last_note(&fixture), "nothing; back; nothing; nothing");
    }
    assert_eq!(fixture.hooks.counts(Hook::Resolver)[0].counts.faults, [0; 5]);
}

#[test]
fn a_removed_table_is_empty_for_its_plugin_even_after_a_restart() {
    let fixture = HooksFixture::new();
    let csv = "86,south\n";
    let put =
        |fixture: &HooksFixture| fixture.tables.put("ported", TableKind::Prefix, csv.as_bytes()).unwrap();
    put(&fixture);
    let grants = Grants { tables: vec!["ported".to_owned()], ..Grants::default() };
    let binding = prober(&fixture, "open ported\nprefix 0 @", grants);
    activate(&fixture, &binding);
    fixture.tables.remove("ported").unwrap();
    assert_eq!(last_note(&fixture), "nothing");
    let fixture = fixture.restart();
    assert_eq!(last_note(&fixture), "nothing", "it keeps serving");
    let again = fixture.hooks.activate(Hook::Resolver, NOW, vec![binding.clone()], None);
    assert!(
        matches!(again, Err(HookError::Refused { .. })),
        "a new plugin gets the error that there is no such table"
    );
    assert!(fixture.tables.list().is_empty());
    // With `force` it gets an empty table, and the missing table is reported.
    activate(&fixture, &binding);
    assert_eq!(last_note(&fixture), "nothing");
    let unknown = |fixture: &HooksFixture| fixture.hooks.status(Hook::Resolver).unknown;
    assert_eq!(unknown(&fixture)[0].name, "ported");
    put(&fixture);
    assert!(unknown(&fixture).is_empty());
    assert_eq!(last_note(&fixture), "south of 2");

    // An existing but unreadable table is not treated as empty: no plugin routes by a partial table.
    let tables = std::fs::read_dir(fixture.folder.path().join("tables")).unwrap();
    for table in tables.map(|entry| entry.unwrap().path()).filter(|path| path.is_file()) {
        std::fs::write(table, b"rubbish").unwrap();
    }
    let HooksFixture { hooks, folder, .. } = fixture;
    drop(hooks);
    let opened = Hooks::open(folder.path(), options(), directory(), services(folder.path()));
    assert!(matches!(opened.err(), Some(HookError::Refused { .. })));
}

#[test]
fn the_hlr_requires_a_grant() {
    let fixture = HooksFixture::new();
    let granted = || Grants { hlr: true, ..Grants::default() };
    let csv = format!("{NUMBER},\"460001234567890, north\"\n1,460001234567891\n");
    assert_eq!(note_with(&fixture, "hlr @", granted()), "unreachable", "there is no table yet");
    fixture.tables.put("hlr", TableKind::Exact, csv.as_bytes()).unwrap();
    let found = "460001234567890 at north; 460001234567891 at nothing; unknown";
    assert_eq!(note_with(&fixture, "hlr @\nhlr 1\nhlr 2", granted()), found);
    assert_eq!(note_with(&fixture, "hlr @", Grants::default()), "unreachable");
}

/// A server; `serve` handles a connection after the head of a request.
fn server(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serve = Arc::new(serve);
    std::thread::spawn(move || {
        for connection in listener.incoming().map_while(Result::ok) {
            let serve = serve.clone();
            std::thread::spawn(move || {
                let (mut connection, mut head) = (connection, Vec::new());
                let mut octet = [0];
                while !head.ends_with(b"\r\n\r\n") && connection.read(&mut octet).is_ok_and(|read| read > 0) {
                    head.push(octet[0]);
                }
                serve(connection);
            });
        }
    });
    address
}

fn http(place: SocketAddr, change: impl FnOnce(Grants) -> Grants) -> Grants {
    change(Grants { http: vec![format!("http://{place}/ask")], ..Grants::default() })
}

#[test]
fn requests_reach_granted_urls_and_slow_backends_time_out() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let fetcher = Fetcher::new(runtime.handle().clone(), &FetcherOptions::default()).unwrap();
    let fixture = HooksFixture::with_fetch(Arc::new(fetcher));
    let request_count = Arc::new(AtomicU64::new(0));
    let counted = request_count.clone();
    let fine = server(move |mut connection| {
        counted.fetch_add(1, Ordering::Relaxed);
        let _ =
            connection.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close\r\n\r\nhello");
    });
    let hangs = server(|mut connection| {
        let _ = connection.read(&mut [0]);
    });
    let endless = server(|mut connection| {
        let _ = connection.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1073741824\r\n\r\n");
        let piece = vec![0; 1 << 16];
        while connection.write_all(&piece).is_ok() {}
    });
    let unknown_length = server(|mut connection| {
        let _ = connection.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
        let piece = vec![0; 1 << 16];
        while connection.write_all(&piece).is_ok() {}
    });
    let own = |grants| grants;
    let ask = |place: SocketAddr| format!("fetch GET http://{place}/ask/@");

    assert_eq!(note_with(&fixture, &ask(fine), http(fine, own)), "200 5");
    let elsewhere = format!("fetch GET http://{fine}/other\nfetch GET file:///etc/passwd\n{}", ask(hangs));
    let refusal_note = note_with(&fixture, &elsewhere, http(fine, own));
    assert_eq!(refusal_note.matches("NotAllowed").count(), 3, "{refusal_note}");
    assert!(note_with(&fixture, &ask(fine), Grants::default()).contains("NotAllowed"), "nothing is granted");
    assert_eq!(request_count.load(Ordering::Relaxed), 1, "requests without a grant are not sent");

    // The default deadline: waiting for other systems is not running time.
    let low_tolerance = |place, http_timeout_ms| {
        let grants = http(place, |grants| Grants { http_timeout_ms, ..grants });
        Binding { deadline: Binding::new("", "", "").deadline, ..prober(&fixture, &ask(place), grants) }
    };
    activate(&fixture, &low_tolerance(hangs, 300));
    assert_eq!(last_note(&fixture), "Failure::TimedOut");
    for gigabyte in [endless, unknown_length] {
        activate(&fixture, &low_tolerance(gigabyte, 60_000));
        assert_eq!(last_note(&fixture), "Failure::TooLarge");
    }
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    assert!(note_with(&fixture, &ask(closed), http(closed, own)).contains("Unreachable"));

    let before = request_count.load(Ordering::Relaxed);
    let twenty = vec![ask(fine); 20].join("\n");
    let limit_note = note_with(&fixture, &twenty, http(fine, own));
    assert!(limit_note.starts_with("200 5; 200 5"), "{limit_note}");
    assert_eq!(
        request_count.load(Ordering::Relaxed) - before,
        16,
        "the maximum number of requests in one call"
    );
    assert_eq!(fixture.hooks.counts(Hook::Resolver)[0].counts.faults, [0; 5]);

    // A price is computed while the submitter waits; a settlement is not.
    let url = format!("http://{fine}/ask");
    let biller =
        Binding { grants: http(fine, own), ..with_long_deadline(fixture.binding("test_price_prober", &url)) };
    fixture.hooks.activate(Hook::Biller, NOW, vec![biller], FORCED).unwrap();
    let before = request_count.load(Ordering::Relaxed);
    let asking = message("good", NUMBER);
    let forward = Verdict::Forward(vec![Leg::to(fixture.peer("north"))]);
    let mut routed = RoutingDecision { verdict: forward, ..asking.routed.clone() };
    fixture.hooks.price(&asking, &mut routed, NOW);
    assert_eq!(routed.quote.unwrap().note.as_deref(), Some("Err(\"Failure::NotNow\")"));
    assert_eq!(request_count.load(Ordering::Relaxed), before);
    let settlement = Settlement {
        serial: 1,
        message: MessageId(1),
        account: "a".into(),
        amount: 1,
        captured: true,
        at: NOW,
    };
    assert_eq!(fixture.hooks.settle(&[settlement], NOW), Ok(()));
    assert_eq!(request_count.load(Ordering::Relaxed), before + 1);
}

#[test]
fn an_invalid_http_grant_is_refused() {
    let fixture = HooksFixture::new();
    for place in ["example.org", "ftp://example.org/", "http://user@example.org/", ""] {
        let grants = Grants { http: vec![place.to_owned()], ..Grants::default() };
        let binding = prober(&fixture, "", grants);
        let refused = fixture.hooks.activate(Hook::Resolver, NOW, vec![binding], FORCED).unwrap_err();
        assert!(matches!(&refused, HookError::BadGrant(_)), "{place}: {refused}");
    }
    assert!(!fixture.hooks.is_bound(Hook::Resolver));
}

/// Captures the log lines of plugins.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "text" {
            write!(self.0, "{value:?}").unwrap();
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "text" {
            self.0.push_str(value);
        }
    }
}

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("hooks")
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut text = Text(String::new());
        event.record(&mut text);
        if !text.0.is_empty() {
            self.0.lock().unwrap().push(text.0);
        }
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[test]
fn log_lines_over_the_budget_are_dropped_and_counted() {
    let fixture = HooksFixture::new();
    let lines = Lines::default();
    let written = lines.0.clone();
    let begun = Instant::now();
    tracing::subscriber::with_default(lines, || {
        activate(&fixture, &prober(&fixture, "log 100", Grants::default()));
        assert_eq!(last_note(&fixture), "logged");
        assert_eq!(written.lock().unwrap().len(), 16, "in one call");
        for _ in 0..49 {
            assert_eq!(last_note(&fixture), "logged");
        }
    });
    let seconds = begun.elapsed().as_secs() + 2;
    let written = written.lock().unwrap();
    assert!(written.len() as u64 <= 100 * seconds, "{} lines in {seconds} s", written.len());
    assert!(written.iter().all(|line| line.len() <= 1_024), "longer than a line may be");
    let left_out = fixture.hooks.counts(Hook::Resolver)[0].counts.lines_left_out;
    assert_eq!(left_out + written.len() as u64, 5_000, "each is written or counted");
}

/// A key-value store on a slow disk.
#[derive(Default)]
struct SlowDisk(MemoryKvStore);

impl KvStore for SlowDisk {
    fn get(&self, plugin: &str, key: &str) -> Result<Option<Vec<u8>>, capabilities::Error> {
        self.0.get(plugin, key)
    }

    #[expect(clippy::disallowed_methods, reason = "simulates the time that the disk takes")]
    fn set(&self, plugin: &str, key: &str, value: &[u8], quota: u64) -> Result<(), capabilities::Error> {
        std::thread::sleep(std::time::Duration::from_millis(130));
        self.0.set(plugin, key, value, quota)
    }

    fn delete(&self, plugin: &str, key: &str) -> Result<bool, capabilities::Error> {
        self.0.delete(plugin, key)
    }

    fn usage(&self, plugin: &str) -> Result<capabilities::KvUsage, capabilities::Error> {
        self.0.usage(plugin)
    }
}

#[test]
fn a_call_waits_for_the_disk_up_to_a_limit() {
    let folder = tempfile::tempdir().unwrap();
    let own = HostServices { kv_store: Arc::new(SlowDisk::default()), ..services(folder.path()) };
    let hooks = Hooks::open(folder.path(), options(), directory(), own).unwrap();
    let version = hooks.upload("test_prober", &guest("test_prober"), None).unwrap().version;
    let lines = "set a 1\nset b 1\nset c 1\nset d 1\nread a\nread d";
    let binding =
        Binding { grants: kv(100), ..with_long_deadline(Binding::new("test_prober", &version, lines)) };
    hooks.activate(Hook::Resolver, NOW, vec![binding], FORCED).unwrap();
    for _ in 0..2 {
        let note = hooks.resolve(NUMBER, NOW).note.expect("its note");
        assert!(note.starts_with("set; set; this call has waited"), "{note}");
        assert!(note.ends_with("; 1; nothing"), "{note}");
    }
}
