//! Measures the cost of a table of ten million rows, and of a counter: `cargo run --release -p capabilities --example
//! table_cost`.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a failed step ends the measurement")]

use capabilities::{CounterOptions, Counters, TableKind, TableStore, TableStoreOptions};
use model::Timestamp;
use std::io::{Cursor, Read};
use std::time::{Duration, Instant};

const ROWS: u64 = 10_000_000;

/// Generates CSV while it is read: ten-digit keys in scattered order.
struct Rows<F> {
    value: F,
    next: u64,
    piece: Cursor<Vec<u8>>,
}

impl<F: Fn(u64) -> String> Read for Rows<F> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.piece.position() as usize == self.piece.get_ref().len() && self.next < ROWS {
            let end = (self.next + 10_000).min(ROWS);
            let rows: String =
                (self.next..end).map(|n| format!("{},{}\n", key(n), (self.value)(n))).collect();
            self.piece = Cursor::new(rows.into_bytes());
            self.next = end;
        }
        self.piece.read(buffer)
    }
}

/// A permutation of the ten-digit numbers: 7,368,787 and their count have no common factor.
fn key(n: u64) -> String {
    (1_000_000_000 + n * 7_368_787 % 9_000_000_000).to_string()
}

fn memory() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() * 1024.0
}

fn nanoseconds(count: u64, mut work: impl FnMut(u64)) -> f64 {
    let begin = Instant::now();
    (0..count).for_each(&mut work);
    begin.elapsed().as_nanos() as f64 / count as f64
}

fn table(what: &str, kind: TableKind, value: impl Fn(u64) -> String) {
    let folder = tempfile::tempdir().unwrap();
    let before = memory();
    let table_store = TableStore::open(folder.path(), TableStoreOptions::default()).unwrap();
    let begin = Instant::now();
    let csv = Rows { value, next: 0, piece: Cursor::default() };
    let info = table_store.put("t", kind, csv).unwrap();
    let put = begin.elapsed();
    let own = info.octets as f64 / info.rows as f64;
    let resident = (memory() - before) / info.rows as f64;
    drop(table_store);
    let begin = Instant::now();
    let table_store = TableStore::open(folder.path(), TableStoreOptions::default()).unwrap();
    let load = begin.elapsed();
    let handle = table_store.handle("t").unwrap();
    let keys: Vec<String> = (0..ROWS).step_by(10).map(key).collect();
    let look_up = nanoseconds(keys.len() as u64, |n| {
        let key = &keys[(n * 7_919 % keys.len() as u64) as usize];
        let found = match kind {
            TableKind::Exact => handle.read(|table| table.get(key).is_some()),
            TableKind::Prefix => handle.read(|table| table.longest(key).is_some()),
        };
        assert_eq!(found, Some(true));
    });
    println!(
        "{what}: {} rows, {own:.1} octets a row ({resident:.1} resident after the upload), upload {:.1} s, load {:.1} s, \
         look-up {look_up:.0} ns",
        info.rows,
        put.as_secs_f64(),
        load.as_secs_f64()
    );
}

fn counters() {
    const WINDOW: Duration = Duration::from_secs(3600);
    let counters = Counters::default();
    let now = |n: u64| Timestamp(1_700_000_000_000 + n / 100);
    let keys: Vec<String> = (0..1_000_000).map(key).collect();
    let space = counters.space("guard");
    let one = nanoseconds(5_000_000, |n| {
        counters.add("guard", "source", &keys[(n & 1023) as usize], 1, WINDOW, now(n));
    });
    let kept = nanoseconds(5_000_000, |n| {
        space.add("source", &keys[(n & 1023) as usize], 1, WINDOW, now(n));
    });
    let before = memory();
    let new = nanoseconds(1_000_000, |n| {
        space.add("source", &keys[n as usize], 1, WINDOW, now(n));
    });
    let each = (memory() - before) / 1_000_000.0;
    let cold = nanoseconds(5_000_000, |n| {
        space.add("source", &keys[(n * 7_919 % 1_000_000) as usize], 1, WINDOW, now(n));
    });
    println!(
        "counters: warm {one:.0} ns by name, {kept:.0} ns with the space kept; new {new:.0} ns and {each:.0} octets; any of a \
         million {cold:.0} ns"
    );
    let small = Counters::new(CounterOptions { entries: 100_000 }).space("small");
    let full = nanoseconds(1_000_000, |n| {
        small.add("source", &keys[n as usize], 1, WINDOW, now(n));
    });
    println!("counters: new with none to spare {full:.0} ns; {:?}", small.metrics());
}

fn main() {
    counters();
    table("few values, prefix", TableKind::Prefix, |n| format!("operator-{}", n % 50));
    table("few values, exact", TableKind::Exact, |n| format!("operator-{}", n % 50));
    table("an IMSI each", TableKind::Exact, |n| format!("2620{n:011}"));
}
