//! What plugins are given, as they see it: counters, values, tables, requests, the HLR and the log, with what their bindings
//! grant and within its limits.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed step is a failed test")]

mod support;

use capabilities::{
    CounterGrant, CounterWindow, CounterWriter, DurableCounters, DurableOptions, Fetcher, FetcherOptions,
    KeyValues, MemoryValues, TableKind, Values,
};
use hooks::{Binding, Grants, HookError, Hooks, InstanceUse, Powers, Trying};
use model::{Hook, Leg, MessageId, Routed, Settlement, Timestamp, Verdict};
use std::fmt::{Debug, Write as _};
use std::io::{Read, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;
use support::{FORCED, House, NOW, directory, message, options, patient, powers, until};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

const NUMBER: &str = "8613012345678";

/// A prober that does this, with these grants.
fn prober(house: &House, lines: &str, grants: Grants) -> Binding {
    Binding { grants, ..patient(house.binding("test_prober", lines)) }
}

fn activate(house: &House, binding: &Binding) {
    house.hooks.activate(Hook::Resolver, NOW, vec![binding.clone()], FORCED).unwrap();
}

/// What the prober told of itself.
fn told(house: &House) -> String {
    house.hooks.resolve(NUMBER, NOW).note.expect("its note").into()
}

/// What one does that is bound in the place of what is.
fn does(house: &House, lines: &str, grants: Grants) -> String {
    activate(house, &prober(house, lines, grants));
    told(house)
}

fn kv(quota: u64) -> Grants {
    Grants { kv: quota, ..Grants::default() }
}

#[test]
fn counters_outlive_versions_and_are_each_plugins_own() {
    let house = House::new();
    let none = Grants::default;
    assert_eq!(does(&house, "count calls\ncount calls\nsum calls\nsum others", none()), "1; 2; 2; 0");
    // Another document, another way of using instances, another candidate: they all count on.
    assert_eq!(does(&house, "count calls", none()), "3");
    let fresh = Binding { instance: InstanceUse::PerCall, ..prober(&house, "count calls", none()) };
    activate(&house, &fresh);
    assert_eq!((told(&house), told(&house)), ("4".to_owned(), "5".to_owned()));
    house.hooks.try_out(Hook::Resolver, NOW, Trying::Canary { share: 10_000 }, vec![fresh], FORCED).unwrap();
    assert_eq!(told(&house), "6");
    house.hooks.rollback(Hook::Resolver, NOW).unwrap();
    house.hooks.dismiss(Hook::Resolver, NOW).unwrap();
    assert_eq!(told(&house), "7");
    // The same component by another name is another plugin.
    let version = prober(&house, "", none()).version;
    house.hooks.upload("stranger", &support::guest("test_prober"), None).unwrap();
    activate(&house, &patient(Binding::new("stranger", &version, "sum calls\ncount calls")));
    assert_eq!(told(&house), "0; 1");
}

/// Counters of a day and an hour in UTC.
fn counting(names: [&str; 2]) -> Grants {
    let windows = [CounterWindow::Day, CounterWindow::Hour];
    let grant = |(name, window): (&str, _)| CounterGrant { name: name.into(), window, zone: "UTC".into() };
    Grants { counters: names.into_iter().zip(windows).map(grant).collect(), ..Grants::default() }
}

#[test]
fn a_counter_that_the_binding_names_is_durable_and_shared_as_any_other() {
    let disk = tempfile::tempdir().unwrap();
    let values = Arc::new(KeyValues::open(&disk.path().join("kv.redb")).unwrap());
    let recover = |now| Arc::new(DurableCounters::recover(DurableOptions::default(), &values, now).unwrap());
    let durable = recover(NOW);
    let house = House::counting(durable.clone());
    let lines = "count daily\ncount calls\nsum daily";
    let binding = prober(&house, lines, counting(["daily", "hourly"]));
    activate(&house, &binding);
    assert_eq!((told(&house).as_str(), told(&house).as_str()), ("1; 1; 1", "2; 2; 2"));
    // A canary of another document, and the way back.
    let canary = Binding { policy: "count daily".into(), instance: InstanceUse::PerCall, ..binding.clone() };
    house.hooks.try_out(Hook::Resolver, NOW, Trying::Canary { share: 10_000 }, vec![canary], FORCED).unwrap();
    assert_eq!(told(&house), "3");
    house.hooks.dismiss(Hook::Resolver, NOW).unwrap();
    assert_eq!(told(&house), "4; 3; 4");
    CounterWriter::new(durable, values.clone()).flush().unwrap();

    let house = house.restart_counting(options(), recover(NOW));
    assert_eq!(told(&house), "5; 1; 5", "the other counter is in memory");
    let tomorrow = Timestamp(NOW.0 + 86_400_000);
    assert_eq!(house.hooks.resolve(NUMBER, tomorrow).note.as_deref(), Some("1; 1; 1"));
    // A binding that does not name it has another one.
    assert_eq!(does(&house, "count daily", Grants::default()), "1");
}

#[test]
fn who_does_not_count_sees_durable_counts_and_changes_none() {
    let house = House::counting(Arc::default());
    let peeper =
        Binding { grants: counting(["seen", "other"]), ..patient(house.binding("test_peeper", "north")) };
    house.hooks.activate(Hook::Router, NOW, vec![peeper.clone()], None).unwrap();
    let message = message("good", NUMBER);
    let route = || house.hooks.route(&message, NOW);
    let noted = |note: Option<&str>, seen: &str| {
        let note = note.expect("the peeper's note").to_owned();
        assert!(note.contains(seen), "{note}, and not {seen}");
    };
    let recorded = route();
    noted(recorded.note.as_deref(), "seen 0 then 1,");
    noted(route().note.as_deref(), "seen 1 then 2,");
    for _ in 0..2 {
        let (considered, _) = house.hooks.explain(&message, NOW);
        let decision = considered[0].outcome.as_ref().unwrap();
        noted(decision.note.as_deref(), "seen 2 then 3,");
    }
    let week_ago = Timestamp(NOW.0 - 7 * 86_400_000);
    let trial = house.hooks.trial(Hook::Router, std::slice::from_ref(&peeper)).unwrap();
    noted(trial.route(&message, NOW, None).note.as_deref(), "seen 2 then 3,");
    noted(trial.route(&message, week_ago, None).note.as_deref(), "seen 0 then 1,");
    // What is on record comes from there.
    noted(trial.route(&message, week_ago, recorded.seen.as_deref()).note.as_deref(), "seen 0 then 1,");
    let shadow = Binding { policy: "south".to_owned(), ..peeper };
    house.hooks.try_out(Hook::Router, NOW, Trying::Shadow, vec![shadow], None).unwrap();
    noted(route().note.as_deref(), "seen 2 then 3,");
    noted(route().note.as_deref(), "seen 3 then 4,");
    let compared = || house.hooks.state(Hook::Router).candidate.unwrap().comparison.unwrap().compared;
    until("both are compared", || compared() == 2);
    noted(route().note.as_deref(), "seen 4 then 5,");
}

#[test]
fn at_the_limit_of_keys_a_quota_is_full() {
    let house = House::counting(Arc::new(DurableCounters::new(DurableOptions { keys: 1 })));
    let lines = "count daily\ncount hourly\nsum hourly\ncount daily";
    let full = u64::MAX;
    assert_eq!(does(&house, lines, counting(["daily", "hourly"])), format!("1; {full}; 0; 2"));
    assert_eq!(house.durable.metrics()[0].1.refused, 1);
}

#[test]
fn a_durable_counter_that_makes_no_sense_is_refused() {
    let house = House::new();
    let refusal = |grants: Grants| {
        let binding = prober(&house, "count daily", grants);
        house.hooks.activate(Hook::Resolver, NOW, vec![binding], FORCED).unwrap_err().to_string()
    };
    let mut nowhere = counting(["daily", "hourly"]);
    nowhere.counters[1].zone = "Mars/Olympus".to_owned();
    let refused = refusal(nowhere);
    assert!(
        refused.starts_with("grants.counters: counter \"hourly\": the time zone \"Mars/Olympus\" is unknown"),
        "{refused}"
    );
    let refused = refusal(counting(["daily", "daily"]));
    assert_eq!(
        refused,
        "grants.counters: counter \"daily\": the name is there twice; give each counter its own"
    );
    assert!(!house.hooks.is_bound(Hook::Resolver));
}

#[test]
fn values_outlive_versions_and_stay_within_the_quota() {
    let house = House::new();
    assert_eq!(does(&house, "set a 10\nread a\nread b", kv(100)), "set; 10; nothing");
    assert_eq!(
        does(&house, "read a\nset b 20\ndelete b\ndelete b\nread b", kv(100)),
        "10; set; true; false; nothing"
    );
    let full = does(&house, "set b 95\nread b\nset a 90\nread a", kv(100));
    assert_eq!(
        full,
        "keys and values would make 107 octets, and the binding's quota is 100; nothing; set; 90"
    );
    let large = does(&house, "set a 65537\nread a", kv(1 << 20));
    assert!(large.starts_with("a value of 65537 octets is larger") && large.ends_with("; 90"), "{large}");
    let house = house.restart();
    assert_eq!(told(&house).rsplit_once("; ").unwrap().1, "90", "also after a restart");
    // What is not granted is not there.
    let without = does(&house, "read a\ndelete a\nset a 1", Grants::default());
    assert_eq!(without, "nothing; false; the binding grants no kv: give it a quota in grants.kv");
    assert_eq!(does(&house, "read a", kv(1)), "90");
    let version = prober(&house, "", kv(1)).version;
    house.hooks.upload("stranger", &support::guest("test_prober"), None).unwrap();
    let stranger = Binding { grants: kv(100), ..patient(Binding::new("stranger", &version, "read a")) };
    activate(&house, &stranger);
    assert_eq!(told(&house), "nothing");
}

#[test]
fn a_candidate_in_shadow_keeps_for_itself_what_it_sets() {
    let house = House::new();
    activate(&house, &prober(&house, "set a 10\nread b", kv(100)));
    let candidate = prober(&house, "set a 20\nset b 30\ndelete a", kv(100));
    house.hooks.try_out(Hook::Resolver, NOW, Trying::Shadow, vec![candidate], FORCED).unwrap();
    for _ in 0..3 {
        assert_eq!(told(&house), "set; nothing");
    }
    let compared = || house.hooks.state(Hook::Resolver).candidate.unwrap().comparison.unwrap().compared;
    until("all are compared", || compared() == 3);
    assert_eq!(does(&house, "read a\nread b", kv(100)), "10; nothing");
}

#[test]
fn a_table_is_opened_where_it_is_granted_and_there_and_its_handle_stays_good() {
    let house = House::new();
    let put = |kind, csv: &str| house.shelf.put("ported", kind, csv.as_bytes()).unwrap();
    let granted = || Grants { tables: vec!["ported".to_owned(), "gone".to_owned()], ..Grants::default() };
    let refusal = |lines: &str, grants| {
        let binding = prober(&house, lines, grants);
        match house.hooks.activate(Hook::Resolver, NOW, vec![binding], None) {
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
    let binding = Binding { instance: InstanceUse::PerCall, ..prober(&house, lookup, granted()) };
    for binding in [prober(&house, lookup, granted()), binding] {
        put(TableKind::Prefix, "86130,north\n86,south\n");
        activate(&house, &binding);
        assert_eq!(told(&house), "north of 5; south; nothing; nothing");
        put(TableKind::Prefix, "8613012,reserve\n");
        assert_eq!(told(&house), "reserve of 7; nothing; nothing; nothing", "replaced while it is in use");
        house.shelf.remove("ported").unwrap();
        // Nothing is found, also by an instance that is made only now.
        assert_eq!(told(&house), "nothing; nothing; nothing; nothing");
        put(TableKind::Exact, "86,back\n");
        assert_eq!(told(&house), "nothing; back; nothing; nothing");
    }
    assert_eq!(house.hooks.counts(Hook::Resolver)[0].counts.faults, [0; 5]);
}

#[test]
fn a_table_that_is_gone_is_empty_for_who_had_it_also_after_a_restart() {
    let house = House::new();
    let csv = "86,south\n";
    let put = |house: &House| house.shelf.put("ported", TableKind::Prefix, csv.as_bytes()).unwrap();
    put(&house);
    let grants = Grants { tables: vec!["ported".to_owned()], ..Grants::default() };
    let binding = prober(&house, "open ported\nprefix 0 @", grants);
    activate(&house, &binding);
    house.shelf.remove("ported").unwrap();
    assert_eq!(told(&house), "nothing");
    let house = house.restart();
    assert_eq!(told(&house), "nothing", "it serves on");
    let again = house.hooks.activate(Hook::Resolver, NOW, vec![binding.clone()], None);
    assert!(
        matches!(again, Err(HookError::Refused { .. })),
        "who is new is told that there is no such table"
    );
    assert!(house.shelf.list().is_empty());
    // Who forces it has an empty one, and is told what is missing.
    activate(&house, &binding);
    assert_eq!(told(&house), "nothing");
    let unknown = |house: &House| house.hooks.state(Hook::Resolver).unknown;
    assert_eq!(unknown(&house)[0].reference.name, "ported");
    put(&house);
    assert!(unknown(&house).is_empty());
    assert_eq!(told(&house), "south of 2");

    // One that is there and cannot be read is no empty one: nobody routes by half a table.
    let tables = std::fs::read_dir(house.folder.path().join("tables")).unwrap();
    for table in tables.map(|entry| entry.unwrap().path()).filter(|path| path.is_file()) {
        std::fs::write(table, b"rubbish").unwrap();
    }
    let House { hooks, folder, .. } = house;
    drop(hooks);
    let opened = Hooks::open(folder.path(), options(), directory(), powers(folder.path()));
    assert!(matches!(opened.err(), Some(HookError::Refused { .. })));
}

#[test]
fn the_hlr_answers_those_who_are_granted_it() {
    let house = House::new();
    let granted = || Grants { hlr: true, ..Grants::default() };
    let csv = format!("{NUMBER},\"460001234567890, north\"\n1,460001234567891\n");
    assert_eq!(does(&house, "hlr @", granted()), "unreachable", "there is no table yet");
    house.shelf.put("hlr", TableKind::Exact, csv.as_bytes()).unwrap();
    let found = "460001234567890 at north; 460001234567891 at nothing; unknown";
    assert_eq!(does(&house, "hlr @\nhlr 1\nhlr 2", granted()), found);
    assert_eq!(does(&house, "hlr @", Grants::default()), "unreachable");
}

/// A server; what it does with a connection after the head of a request says `serve`.
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
fn requests_go_where_it_is_granted_and_no_backend_stops_a_plugin() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let fetcher = Fetcher::new(runtime.handle().clone(), &FetcherOptions::default()).unwrap();
    let house = House::online(Arc::new(fetcher));
    let asked = Arc::new(AtomicU64::new(0));
    let counted = asked.clone();
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

    assert_eq!(does(&house, &ask(fine), http(fine, own)), "200 5");
    let elsewhere = format!("fetch GET http://{fine}/other\nfetch GET file:///etc/passwd\n{}", ask(hangs));
    let told_no = does(&house, &elsewhere, http(fine, own));
    assert_eq!(told_no.matches("NotAllowed").count(), 3, "{told_no}");
    assert!(does(&house, &ask(fine), Grants::default()).contains("NotAllowed"), "nothing is granted");
    assert_eq!(asked.load(Ordering::Relaxed), 1, "what is not granted is not asked");

    // The default deadline: to wait for others is no running.
    let impatient = |place, http_timeout_ms| {
        let grants = http(place, |grants| Grants { http_timeout_ms, ..grants });
        Binding { deadline: Binding::new("", "", "").deadline, ..prober(&house, &ask(place), grants) }
    };
    activate(&house, &impatient(hangs, 300));
    assert_eq!(told(&house), "Failure::TimedOut");
    for gigabyte in [endless, unknown_length] {
        activate(&house, &impatient(gigabyte, 60_000));
        assert_eq!(told(&house), "Failure::TooLarge");
    }
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    assert!(does(&house, &ask(closed), http(closed, own)).contains("Unreachable"));

    let before = asked.load(Ordering::Relaxed);
    let twenty = vec![ask(fine); 20].join("\n");
    let told_enough = does(&house, &twenty, http(fine, own));
    assert!(told_enough.starts_with("200 5; 200 5"), "{told_enough}");
    assert_eq!(asked.load(Ordering::Relaxed) - before, 16, "so many in one call");
    assert_eq!(house.hooks.counts(Hook::Resolver)[0].counts.faults, [0; 5]);

    // A price is made while a submitter waits; a settlement is not.
    let url = format!("http://{fine}/ask");
    let biller = Binding { grants: http(fine, own), ..patient(house.binding("test_price_prober", &url)) };
    house.hooks.activate(Hook::Biller, NOW, vec![biller], FORCED).unwrap();
    let before = asked.load(Ordering::Relaxed);
    let asking = message("good", NUMBER);
    let forward = Verdict::Forward(vec![Leg::to(house.peer("north"))]);
    let mut routed = Routed { verdict: forward, ..asking.routed.clone() };
    house.hooks.price(&asking, &mut routed, NOW);
    assert_eq!(routed.quote.unwrap().note.as_deref(), Some("Err(\"Failure::NotNow\")"));
    assert_eq!(asked.load(Ordering::Relaxed), before);
    let settlement = Settlement {
        serial: 1,
        message: MessageId(1),
        account: "a".into(),
        amount: 1,
        captured: true,
        at: NOW,
    };
    assert_eq!(house.hooks.settle(&[settlement], NOW), Ok(()));
    assert_eq!(asked.load(Ordering::Relaxed), before + 1);
}

#[test]
fn a_grant_that_names_no_place_is_refused() {
    let house = House::new();
    for place in ["example.org", "ftp://example.org/", "http://user@example.org/", ""] {
        let grants = Grants { http: vec![place.to_owned()], ..Grants::default() };
        let binding = prober(&house, "", grants);
        let refused = house.hooks.activate(Hook::Resolver, NOW, vec![binding], FORCED).unwrap_err();
        assert!(matches!(&refused, HookError::BadGrant(_)), "{place}: {refused}");
    }
    assert!(!house.hooks.is_bound(Hook::Resolver));
}

/// Keeps the lines that plugins write.
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
fn a_flood_of_lines_stays_a_trickle_and_what_is_left_out_is_counted() {
    let house = House::new();
    let lines = Lines::default();
    let written = lines.0.clone();
    let begun = Instant::now();
    tracing::subscriber::with_default(lines, || {
        activate(&house, &prober(&house, "log 100", Grants::default()));
        assert_eq!(told(&house), "logged");
        assert_eq!(written.lock().unwrap().len(), 16, "in one call");
        for _ in 0..49 {
            assert_eq!(told(&house), "logged");
        }
    });
    let seconds = begun.elapsed().as_secs() + 2;
    let written = written.lock().unwrap();
    assert!(written.len() as u64 <= 100 * seconds, "{} lines in {seconds} s", written.len());
    assert!(written.iter().all(|line| line.len() <= 1_024), "longer than a line may be");
    let left_out = house.hooks.counts(Hook::Resolver)[0].counts.lines_left_out;
    assert_eq!(left_out + written.len() as u64, 5_000, "each is written or counted");
}

/// Values on a disk that takes its time.
#[derive(Default)]
struct SlowDisk(MemoryValues);

impl Values for SlowDisk {
    fn get(&self, plugin: &str, key: &str) -> Result<Option<Vec<u8>>, capabilities::Error> {
        self.0.get(plugin, key)
    }

    #[expect(clippy::disallowed_methods, reason = "this is the time that the disk takes")]
    fn set(&self, plugin: &str, key: &str, value: &[u8], quota: u64) -> Result<(), capabilities::Error> {
        std::thread::sleep(std::time::Duration::from_millis(130));
        self.0.set(plugin, key, value, quota)
    }

    fn delete(&self, plugin: &str, key: &str) -> Result<bool, capabilities::Error> {
        self.0.delete(plugin, key)
    }

    fn usage(&self, plugin: &str) -> Result<capabilities::Usage, capabilities::Error> {
        self.0.usage(plugin)
    }
}

#[test]
fn a_call_waits_for_the_disk_only_so_long() {
    let folder = tempfile::tempdir().unwrap();
    let own = Powers { values: Arc::new(SlowDisk::default()), ..powers(folder.path()) };
    let hooks = Hooks::open(folder.path(), options(), directory(), own).unwrap();
    let version = hooks.upload("test_prober", &support::guest("test_prober"), None).unwrap().version;
    let lines = "set a 1\nset b 1\nset c 1\nset d 1\nread a\nread d";
    let binding = Binding { grants: kv(100), ..patient(Binding::new("test_prober", &version, lines)) };
    hooks.activate(Hook::Resolver, NOW, vec![binding], FORCED).unwrap();
    for _ in 0..2 {
        let told = hooks.resolve(NUMBER, NOW).note.expect("its note");
        assert!(told.starts_with("set; set; this call has waited for the disk"), "{told}");
        assert!(told.ends_with("; 1; nothing"), "{told}");
    }
}
