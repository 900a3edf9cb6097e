//! Measures lookups in a large table: in the table itself, by `number-portability`, and from the cache.

use crate::bench_fixture::BenchFixture;
use crate::cached_lookups::CachedLookups;
use crate::calls::{one, timed};
use crate::{Outcome, Plugin};
use capabilities::{TableStore, TableStoreOptions};
use model::Hook;
use serde::{Deserialize, Serialize};
use std::hint::black_box;
use std::path::PathBuf;
use std::time::Instant;

/// Lookups of these numbers in a table of a folder, in alternating rounds.
#[derive(Deserialize)]
pub(crate) struct Task {
    rounds: usize,
    /// A folder with tables, in the layout of an appliance.
    tables: PathBuf,
    /// The name of the table, and its numbers.
    table: String,
    numbers: Vec<String>,
    /// The lookup that reads the table.
    plugin: Plugin,
}

/// Processor time for one number in each round, in nanoseconds.
#[derive(Serialize)]
pub(crate) struct Measured {
    /// The time to read the table from its file, in seconds.
    load: f64,
    table: Vec<f64>,
    plugin: Vec<f64>,
    cached: Vec<f64>,
}

pub(crate) fn measure(folder: &std::path::Path, task: Task) -> Outcome<Measured> {
    let Task { rounds, tables, table, numbers, plugin } = task;
    let begun = Instant::now();
    let store = TableStore::open(&tables, TableStoreOptions::default())?;
    let load = begun.elapsed().as_secs_f64();
    let handle = store.handle(&table).ok_or("there is no such table")?;
    drop(store);
    let mut fixture = BenchFixture::open_with_tables(folder, &tables)?;
    fixture.numbers = numbers;
    let cache = CachedLookups::fill_numbers(&fixture.numbers);
    let mut binding = fixture.upload_once(&plugin)?;
    binding.grants.tables.push(table);
    let mut measured = Measured { load, table: Vec::new(), plugin: Vec::new(), cached: Vec::new() };
    let (mut n, count, mut found) = (0, fixture.numbers.len(), 0_u64);
    for _ in 0..rounds {
        measured.table.push(timed(|| {
            n += 1;
            let number = black_box(&fixture.numbers[n % count]);
            found += u64::from(handle.read(|table| table.get(number).is_some()) == Some(true));
        }));
        measured.plugin.push(one(&fixture, Hook::Lookup, &binding, 1)?);
        measured.cached.push(timed(|| {
            n += 1;
            black_box(cache.get_number(black_box(&fixture.numbers[n % count])));
        }));
    }
    if found == 0 {
        return Err("the table has none of the numbers".into());
    }
    Ok(measured)
}
