//! The appliance's tables: what an upload does, what a bad one leaves alone, and what is there after a restart.
#![allow(clippy::unwrap_used, reason = "a test that fails is to stop here")]

use capabilities::{Error, Shelf, ShelfOptions, TableKind};
use proptest::prelude::*;
use std::io::{self, Read};
use std::path::Path;

fn shelf(folder: &Path) -> Shelf {
    Shelf::open(folder, ShelfOptions::default()).unwrap()
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
fn a_table_is_there_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let first = shelf(folder.path());
    let csv = "\u{feff}key,value\r\n49151,d1\r\n\r\n49152,\"d2, the second\"\r\n49151,d3";
    let info = first.put("ported", TableKind::Prefix, csv.as_bytes()).unwrap();
    assert_eq!((info.kind, info.rows), (TableKind::Prefix, 2));
    first.put("names", TableKind::Exact, "Zürich,ü\n,empty\n".as_bytes()).unwrap();
    for shelf in [first, shelf(folder.path())] {
        assert!(shelf.damaged().is_empty());
        let names: Vec<_> = shelf.list().into_iter().map(|(name, info)| (name, info.rows)).collect();
        assert_eq!(names, [("names".to_owned(), 2), ("ported".to_owned(), 2)]);
        let ported = shelf.get("ported").unwrap();
        assert_eq!(ported.longest("+4915123456"), Some((5, "d3")), "the last row with a key counts");
        assert_eq!(ported.get("49152"), Some("d2, the second"));
        let names = shelf.get("names").unwrap();
        assert_eq!((names.get("Zürich"), names.get("")), (Some("ü"), Some("empty")));
        assert_eq!(names.longest("1"), None);
    }
    assert_eq!(files(folder.path()), ["names.table", "ported.table"]);
}

#[test]
fn a_bad_upload_names_its_line_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let options = ShelfOptions { rows: 4, octets: 200 };
    let shelf = Shelf::open(folder.path(), options).unwrap();
    shelf.put("t", TableKind::Prefix, "1,old\n".as_bytes()).unwrap();
    let long = format!("1,{}", "x".repeat(257));
    let cases: [(&[u8], &str); 11] = [
        (b"1,a\n2\n", "line 2: 1 fields, not a key and a value; a value that has a comma stands in quotes"),
        (
            b"1,a\n2,b\n3,c,d\n",
            "line 3: 3 fields, not a key and a value; a value that has a comma stands in quotes",
        ),
        (b"1,a\r\n2,b\r\n\r\n+2,b\r\n", "line 4: key \"+2\" is not at most 30 decimal digits"),
        (b"\n\n1,a\n\n\n+2,b", "line 6: key \"+2\" is not at most 30 decimal digits"),
        (b"1,a\n\n+2,b\n", "line 3: key \"+2\" is not at most 30 decimal digits"),
        (b"1,a\n2,\xff\n", "line 2: the value is not UTF-8"),
        (b"\xff,a\n", "line 1: the key is not UTF-8"),
        (b"1,\"a\nb\"\nx,y\n", "line 3: key \"x\" is not at most 30 decimal digits"),
        (long.as_bytes(), "line 1: the table has more than the 200 octets that are allowed"),
        (b"1,a\n1,b\n1,c\n1,d\n1,e\n", "line 5: the table has more than the 4 rows that are allowed"),
        (b"key,value\nkey,value\n", "line 2: key \"key\" is not at most 30 decimal digits"),
    ];
    for (csv, message) in cases {
        let refused = shelf.put("t", TableKind::Prefix, csv).unwrap_err();
        assert_eq!(refused.to_string(), message);
        assert_eq!(shelf.get("t").unwrap().get("1"), Some("old"));
    }
    let refused = shelf.put("t", TableKind::Prefix, Broken(b"1,a\n2,b\n")).unwrap_err();
    assert!(matches!(refused, Error::Upload { line: 3, .. }), "{refused}");
    assert_eq!(Shelf::open(folder.path(), options).unwrap().get("t").unwrap().get("1"), Some("old"));
    assert_eq!(files(folder.path()), ["t.table"], "nothing is left of the others");
}

/// Gives its octets, and then breaks.
struct Broken(&'static [u8]);

impl Read for Broken {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.read(buffer)? {
            0 => Err(io::ErrorKind::ConnectionReset.into()),
            octets => Ok(octets),
        }
    }
}

#[test]
fn names_that_are_no_file_names_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let shelf = shelf(folder.path());
    for name in ["", "../t", "a/b", "A", ".t", "ü", &"a".repeat(65)] {
        let refused = shelf.put(name, TableKind::Exact, "1,a".as_bytes()).unwrap_err();
        assert!(matches!(refused, Error::TableName(_)), "{name}");
    }
    assert!(files(folder.path()).is_empty());
}

#[test]
fn readers_keep_what_they_have_and_their_place_shows_what_is_new() {
    let folder = tempfile::tempdir().unwrap();
    let shelf = shelf(folder.path());
    assert!(shelf.place("t").is_none());
    shelf.put("t", TableKind::Exact, "1,old".as_bytes()).unwrap();
    let (place, old) = (shelf.place("t").unwrap(), shelf.get("t").unwrap());
    shelf.put("t", TableKind::Prefix, "1,new".as_bytes()).unwrap();
    assert_eq!(old.get("1"), Some("old"));
    assert_eq!(
        place.read(|table| table.longest("12").map(|(_, value)| value.to_owned())),
        Some(Some("new".into()))
    );
    assert!(shelf.remove("t").unwrap());
    assert!(!shelf.remove("t").unwrap());
    assert!(place.table().is_none() && shelf.place("t").is_none() && shelf.list().is_empty());
    assert!(files(folder.path()).is_empty());
    shelf.put("t", TableKind::Exact, "1,again".as_bytes()).unwrap();
    assert_eq!(place.table().unwrap().get("1"), Some("again"), "the place stays");
}

#[test]
fn readers_never_see_half_of_an_exchange() {
    let folder = tempfile::tempdir().unwrap();
    let shelf = shelf(folder.path());
    let csv = |value: u32| (0..500).map(|key| format!("{key},{value}\n")).collect::<String>();
    shelf.put("t", TableKind::Exact, csv(0).as_bytes()).unwrap();
    let place = shelf.place("t").unwrap();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for value in 1..20 {
                shelf.put("t", TableKind::Exact, csv(value).as_bytes()).unwrap();
            }
        });
        while !writer.is_finished() {
            let table = place.table().unwrap();
            let value = table.get("0").unwrap();
            assert!((0..500).all(|key| table.get(&key.to_string()) == Some(value)));
        }
    });
    assert_eq!(place.table().unwrap().get("0"), Some("19"));
}

#[test]
fn a_damaged_file_costs_its_own_table_only() {
    let folder = tempfile::tempdir().unwrap();
    let first = shelf(folder.path());
    for name in ["cut", "empty", "good", "other"] {
        first.put(name, TableKind::Exact, "1,a\n2,b\n".as_bytes()).unwrap();
    }
    let path = |name: &str| folder.path().join(format!("{name}.table"));
    let whole = std::fs::read(path("cut")).unwrap();
    std::fs::write(path("cut"), &whole[..whole.len() - 4]).unwrap();
    std::fs::write(path("empty"), "").unwrap();
    std::fs::write(path("other"), "1,a\n").unwrap();
    std::fs::write(folder.path().join(".incoming-x"), "half of").unwrap();
    let second = shelf(folder.path());
    let damaged: Vec<_> = second.damaged().iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(damaged, ["cut", "empty", "other"]);
    let (_, error) = &second.damaged()[0];
    assert!(error.to_string().contains("it has 1 rows, and 2 were written"), "{error}");
    assert_eq!(second.get("good").unwrap().get("2"), Some("b"));
    assert!(!folder.path().join(".incoming-x").exists());
    second.put("cut", TableKind::Exact, "1,new".as_bytes()).unwrap();
    assert_eq!(shelf(folder.path()).get("cut").unwrap().get("1"), Some("new"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn no_upload_panics_and_what_is_taken_is_read_again(
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
        if let Ok(info) = shelf(folder.path()).put("t", kind, csv.concat().as_slice()) {
            let again = shelf(folder.path());
            prop_assert!(again.damaged().is_empty(), "{:?}", again.damaged());
            prop_assert_eq!(again.list()[0].1.rows, info.rows);
        } else {
            prop_assert!(files(folder.path()).is_empty());
        }
    }
}
