//! Arbitrary octets as the CSV of a table; the first one selects the kind. It is refused with a line number, or the table equals the
//! CSV, now and after its file is read again.
#![no_main]

use capabilities::{Error, Table, TableKind, TableStore, TableStoreOptions};
use libfuzzer_sys::fuzz_target;
use std::collections::BTreeMap;
use tempfile::TempDir;

const OPTIONS: TableStoreOptions = TableStoreOptions { rows: 100, octets: 4096 };

thread_local! {
    static FOLDER: TempDir = tempfile::tempdir().expect("no folder");
}

fuzz_target!(|input: &[u8]| {
    let Some((&kind, csv)) = input.split_first() else { return };
    let kind = if kind % 2 == 0 { TableKind::Exact } else { TableKind::Prefix };
    FOLDER.with(|folder| {
        let table_store = TableStore::open(folder.path(), OPTIONS).expect("what we wrote is not read");
        assert!(table_store.damaged().is_empty(), "{:?}", table_store.damaged());
        let before = table_store.get("fuzz").map(|table| table.info().rows);
        match table_store.put("fuzz", kind, csv) {
            Ok(info) => {
                assert_eq!(info.kind, kind);
                let table = table_store.get("fuzz").expect("taken, and not there");
                check(&table, csv);
                let again = TableStore::open(folder.path(), OPTIONS).expect("what we wrote is not read");
                assert!(again.damaged().is_empty(), "{:?}", again.damaged());
                check(&again.get("fuzz").expect("kept, and not there"), csv);
            }
            Err(error) => {
                assert!(!error.to_string().is_empty());
                let lines = csv.iter().filter(|octet| **octet == b'\n').count() as u64 + 1;
                match error {
                    Error::Line { line, .. } => {
                        assert!((1..=lines).contains(&line), "line {line} of {lines}")
                    }
                    Error::TooLarge { line, .. } => {
                        assert!((1..=lines).contains(&line), "line {line} of {lines}");
                    }
                    other => panic!("{other}"),
                }
                assert_eq!(
                    table_store.get("fuzz").map(|table| table.info().rows),
                    before,
                    "it is not as it was"
                );
            }
        }
        let files = std::fs::read_dir(folder.path()).expect("no folder").count();
        assert!(files <= 1, "{files} files");
    });
});

/// Compares the table with a plain map of the rows.
fn check(table: &Table, csv: &[u8]) {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(csv);
    let mut rows = BTreeMap::new();
    for (number, row) in reader.records().enumerate() {
        let row = row.expect("a row that was taken");
        if number > 0 || row != ["key", "value"][..] {
            rows.insert(row[0].to_owned(), row[1].to_owned());
        }
    }
    assert_eq!(table.info().rows, rows.len() as u64);
    for (key, value) in &rows {
        assert_eq!(table.get(key), Some(value.as_str()), "{key:?}");
        for number in [key.clone(), format!("{key}7"), format!("+{key}x")] {
            let digits = number.strip_prefix('+').unwrap_or(&number);
            let digits = digits.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
            let best = rows.iter().filter(|(key, _)| digits.starts_with(key.as_str()));
            let best =
                best.max_by_key(|(key, _)| key.len()).map(|(key, value)| (key.len() as u32, value.as_str()));
            let best = best.filter(|_| table.kind() == TableKind::Prefix);
            assert_eq!(table.longest(&number), best, "{number:?}");
        }
    }
}
