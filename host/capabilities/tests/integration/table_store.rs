//! The appliance's tables: good and bad uploads, and restarts.

use capabilities::{Error, TableKind, TableStore, TableStoreOptions};
use proptest::prelude::*;
use std::io::{self, Read};
use std::path::Path;

fn table_store(folder: &Path) -> TableStore {
    TableStore::open(folder, TableStoreOptions::default()).unwrap()
}

fn files(folder: &Path) -> Vec<String> {
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    files.sort();
    files
}

#[test]
fn a_table_survives_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let first = table_store(folder.path());
    let csv = "\u{feff}key,value\r\n49151,d1\r\n\r\n49152,\"d2, the second\"\r\n49151,d3";
    let info = first.put("ported", TableKind::Prefix, csv.as_bytes()).unwrap();
    assert_eq!((info.kind, info.rows), (TableKind::Prefix, 2));
    first.put("names", TableKind::Exact, "Zürich,ü\n,empty\n".as_bytes()).unwrap();
    for table_store in [first, table_store(folder.path())] {
        assert!(table_store.damaged().is_empty());
        let names: Vec<_> = table_store.list().into_iter().map(|(name, info)| (name, info.rows)).collect();
        assert_eq!(names, [("names".to_owned(), 2), ("ported".to_owned(), 2)]);
        let ported = table_store.get("ported").unwrap();
        assert_eq!(ported.longest("+4915123456"), Some((5, "d3")), "the last row with a key counts");
        assert_eq!(ported.get("49152"), Some("d2, the second"));
        let names = table_store.get("names").unwrap();
        assert_eq!((names.get("Zürich"), names.get("")), (Some("ü"), Some("empty")));
        assert_eq!(names.longest("1"), None);
    }
    assert_eq!(files(folder.path()), ["names.table", "ported.table"]);
}

#[test]
fn a_bad_upload_names_its_line_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let options = TableStoreOptions { rows: 4, octets: 200 };
    let table_store = TableStore::open(folder.path(), options).unwrap();
    table_store.put("t", TableKind::Prefix, "1,old\n".as_bytes()).unwrap();
    let long = format!("1,{}", "x".repeat(257));
    let cases: [(&[u8], &str); 11] = [
        (b"1,a\n2\n", "line 2: 1 fields, instead of a key and a value; quote a value that has a comma"),
        (
            b"1,a\n2,b\n3,c,d\n",
            "line 3: 3 fields, instead of a key and a value; quote a value that has a comma",
        ),
        (b"1,a\r\n2,b\r\n\r\n+2,b\r\n", "line 4: key \"+2\" is not at most 30 decimal digits"),
        (b"\n\n1,a\n\n\n+2,b", "line 6: key \"+2\" is not at most 30 decimal digits"),
        (b"1,a\n\n+2,b\n", "line 3: key \"+2\" is not at most 30 decimal digits"),
        (b"1,a\n2,\xff\n", "line 2: the value is not UTF-8"),
        (b"\xff,a\n", "line 1: the key is not UTF-8"),
        (b"1,\"a\nb\"\nx,y\n", "line 3: key \"x\" is not at most 30 decimal digits"),
        (long.as_bytes(), "line 1: the table exceeds the limit of 200 octets"),
        (b"1,a\n1,b\n1,c\n1,d\n1,e\n", "line 5: the table exceeds the limit of 4 rows"),
        (b"key,value\nkey,value\n", "line 2: key \"key\" is not at most 30 decimal digits"),
    ];
    for (csv, message) in cases {
        let refused = table_store.put("t", TableKind::Prefix, csv).unwrap_err();
        assert_eq!(refused.to_string(), message);
        assert_eq!(table_store.get("t").unwrap().get("1"), Some("old"));
    }
    let refused = table_store.put("t", TableKind::Prefix, FailingReader(b"1,a\n2,b\n")).unwrap_err();
    assert!(matches!(refused, Error::Upload { line: 3, .. }), "{refused}");
    assert_eq!(TableStore::open(folder.path(), options).unwrap().get("t").unwrap().get("1"), Some("old"));
    assert_eq!(files(folder.path()), ["t.table"], "nothing is left of the others");
}

/// A reader that gives its octets and then fails.
struct FailingReader(&'static [u8]);

impl Read for FailingReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.read(buffer)? {
            0 => Err(io::ErrorKind::ConnectionReset.into()),
            octets => Ok(octets),
        }
    }
}

#[test]
fn invalid_table_names_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let table_store = table_store(folder.path());
    for name in ["", "../t", "a/b", "A", ".t", "ü", &"a".repeat(65)] {
        let refused = table_store.put(name, TableKind::Exact, "1,a".as_bytes()).unwrap_err();
        assert!(matches!(refused, Error::TableName(_)), "{name}");
    }
    assert!(files(folder.path()).is_empty());
}

#[test]
fn readers_keep_their_table_and_handles_see_the_new_one() {
    let folder = tempfile::tempdir().unwrap();
    let table_store = table_store(folder.path());
    assert!(table_store.handle("t").is_none());
    table_store.put("t", TableKind::Exact, "1,old".as_bytes()).unwrap();
    let (handle, old) = (table_store.handle("t").unwrap(), table_store.get("t").unwrap());
    table_store.put("t", TableKind::Prefix, "1,new".as_bytes()).unwrap();
    assert_eq!(old.get("1"), Some("old"));
    assert_eq!(
        handle.read(|table| table.longest("12").map(|(_, value)| value.to_owned())),
        Some(Some("new".into()))
    );
    assert!(table_store.remove("t").unwrap());
    assert!(!table_store.remove("t").unwrap());
    assert!(handle.table().is_none() && table_store.handle("t").is_none() && table_store.list().is_empty());
    assert!(files(folder.path()).is_empty());
    table_store.put("t", TableKind::Exact, "1,again".as_bytes()).unwrap();
    assert_eq!(handle.table().unwrap().get("1"), Some("again"), "the handle stays valid");
}

#[test]
fn readers_never_see_a_partial_replacement() {
    let folder = tempfile::tempdir().unwrap();
    let table_store = table_store(folder.path());
    let csv = |value: u32| (0..500).map(|key| format!("{key},{value}\n")).collect::<String>();
    table_store.put("t", TableKind::Exact, csv(0).as_bytes()).unwrap();
    let handle = table_store.handle("t").unwrap();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for value in 1..20 {
                table_store.put("t", TableKind::Exact, csv(value).as_bytes()).unwrap();
            }
        });
        while !writer.is_finished() {
            let table = handle.table().unwrap();
            let value = table.get("0").unwrap();
            assert!((0..500).all(|key| table.get(&key.to_string()) == Some(value)));
        }
    });
    assert_eq!(handle.table().unwrap().get("0"), Some("19"));
}

#[test]
fn a_damaged_file_affects_its_own_table_only() {
    let folder = tempfile::tempdir().unwrap();
    let first = table_store(folder.path());
    for name in ["cut", "empty", "good", "other"] {
        first.put(name, TableKind::Exact, "1,a\n2,b\n".as_bytes()).unwrap();
    }
    let path = |name: &str| folder.path().join(format!("{name}.table"));
    let whole = std::fs::read(path("cut")).unwrap();
    std::fs::write(path("cut"), &whole[..whole.len() - 4]).unwrap();
    std::fs::write(path("empty"), "").unwrap();
    std::fs::write(path("other"), "1,a\n").unwrap();
    std::fs::write(folder.path().join(".incoming-x"), "half of").unwrap();
    let second = table_store(folder.path());
    let damaged: Vec<_> = second.damaged().iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(damaged, ["cut", "empty", "other"]);
    let (_, error) = &second.damaged()[0];
    assert!(error.to_string().contains("it has 1 rows instead of 2"), "{error}");
    assert_eq!(second.get("good").unwrap().get("2"), Some("b"));
    assert!(!folder.path().join(".incoming-x").exists());
    second.put("cut", TableKind::Exact, "1,new".as_bytes()).unwrap();
    assert_eq!(table_store(folder.path()).get("cut").unwrap().get("1"), Some("new"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn no_upload_panics_and_accepted_tables_reload(
        csv in proptest::collection::vec(
            prop_oneof![
                Just(b"\n".to_vec()), Just(b",".to_vec()), Just(b"\"".to_vec()), Just(b"\r".to_vec()),
                Just(b"12".to_vec()), proptest::collection::vec(any::<u8>(), 0..4),
            ],
            0..40,
        ),
        prefix in any::<bool>(),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let kind = if prefix { TableKind::Prefix } else { TableKind::Exact };
        if let Ok(info) = table_store(folder.path()).put("t", kind, csv.concat().as_slice()) {
            let again = table_store(folder.path());
            prop_assert!(again.damaged().is_empty(), "{:?}", again.damaged());
            prop_assert_eq!(again.list()[0].1.rows, info.rows);
        } else {
            prop_assert!(files(folder.path()).is_empty());
        }
    }
}

#[test]
fn files_of_another_process_are_taken_over() {
    let folder = tempfile::tempdir().unwrap();
    let (writer, reader) = (table_store(folder.path()), table_store(folder.path()));
    writer.put("t", TableKind::Exact, "1,old".as_bytes()).unwrap();
    assert!(reader.get("t").is_none());
    reader.refresh().unwrap();
    let handle = reader.handle("t").unwrap();
    writer.put("t", TableKind::Exact, "1,newer".as_bytes()).unwrap();
    std::fs::write(folder.path().join("damaged.table"), "no table").unwrap();
    reader.refresh().unwrap();
    assert_eq!(handle.table().unwrap().get("1"), Some("newer"));
    assert!(reader.get("damaged").is_none());
    writer.remove("t").unwrap();
    reader.refresh().unwrap();
    assert!(handle.table().is_none() && reader.get("t").is_none());
}
