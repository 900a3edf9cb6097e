//! A changed octet in the file of the tables is detected, or has no effect.

use crate::support::options;
use crate::support::reference::{Reference, draft};
use model::{Batch, Random};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use std::fs::File;
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::Command;
use store::Store;

/// Number of octets that are changed, one at a time.
const CHANGES: usize = 600;

/// Result of reading a changed file.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    /// The contents are unchanged.
    Same,
    /// The file does not open, or a row is refused.
    Refused,
    /// Other contents were read.
    Differs(String),
}

fn read(path: &Path, reference: &Reference) -> Outcome {
    // redb panics on some damaged pages; the daemon ends then.
    let outcome = catch_unwind(AssertUnwindSafe(|| match Store::open(path, options()) {
        Ok(store) => reference.compare(&store).err(),
        Err(error) => Some(error.to_string()),
    }));
    match outcome {
        Ok(None) => Outcome::Same,
        Ok(Some(text)) if is_of_the_store(&text) => Outcome::Refused,
        Ok(Some(text)) => Outcome::Differs(text),
        Err(_) => Outcome::Refused,
    }
}

/// Whether a text is an error of the store, and not a difference from the reference.
fn is_of_the_store(text: &str) -> bool {
    ["table ", "the store failed", "/"].iter().any(|begin| text.starts_with(begin))
        || text.contains("the journal")
}

/// Whether a difference says that no row of a list or map was found.
fn found_nothing(difference: &str) -> bool {
    ["found [], ", "found {}, "].iter().any(|nothing| difference.contains(nothing))
}

/// The batches of the test, and what they leave.
fn fill(mut commit: impl FnMut(Batch)) -> Reference {
    let mut reference = Reference::default();
    let mut runner = TestRunner::deterministic();
    for _ in 0..60 {
        let batch = reference.batch(draft().new_tree(&mut runner).unwrap().current());
        reference.apply(&batch);
        commit(batch);
    }
    reference
}

/// The octets to change, and the bits to change in them.
fn changes(intact: &[u8]) -> Vec<(usize, u8)> {
    let mut random = Random::new(20);
    let mut any = || (random.between(0, intact.len() as u64 - 1) as usize, 1 << random.between(0, 7));
    let mut zeros = 0;
    // Most octets of a small file are zeros in pages that no table uses.
    let matters = |(at, _): &(usize, u8)| {
        zeros += u32::from(intact[*at] == 0);
        intact[*at] != 0 || zeros % 10 == 0
    };
    (0..CHANGES).map(|_| any()).filter(matters).collect()
}

/// Makes the changes from number `first` on, one at a time, and appends the outcome of each to a file. redb can panic while
/// it handles a panic, which ends the process.
fn make_changes(path: &Path, first: usize) {
    let intact = std::fs::read(path.with_extension(INTACT)).unwrap();
    let mut outcomes = File::options().append(true).create(true).open(path.with_extension(OUTCOMES)).unwrap();
    let reference = fill(drop);
    std::panic::set_hook(Box::new(|_| {}));
    for (at, bit) in changes(&intact).into_iter().skip(first) {
        let mut changed = intact.clone();
        changed[at] ^= bit;
        std::fs::write(path, &changed).unwrap();
        let is_verified = catch_unwind(|| store::verify(path).is_ok()).unwrap_or(false);
        let is_kept = std::fs::read(path).unwrap() == changed;
        let outcome = match read(path, &reference) {
            _ if !is_kept => format!("{WRONG}octet {at}: verify has changed the file"),
            Outcome::Same => SAME.to_owned(),
            Outcome::Refused => REFUSED.to_owned(),
            // A damaged key of an inner page hides one row or all rows from a search. Only the verification of all pages
            // finds it.
            Outcome::Differs(text) if (text.ends_with("None") || found_nothing(&text)) && !is_verified => {
                HIDDEN.to_owned()
            }
            Outcome::Differs(text) => format!("{WRONG}octet {at}, verified {is_verified}: {text:?}"),
        };
        writeln!(outcomes, "{outcome}").unwrap();
    }
    writeln!(outcomes, "{END}").unwrap();
}

const SAME: &str = "the same";
const REFUSED: &str = "refused";
const HIDDEN: &str = "hidden";
const WRONG: &str = "wrong: ";
const END: &str = "end";

/// Extension of the copy of the file without changes.
const INTACT: &str = "intact";
/// Extension of the file with the outcomes.
const OUTCOMES: &str = "outcomes";

/// Environment variables of the process that makes the changes: the file, and the number of the first change.
const CHANGED: &str = "STORE_TEST_CHANGED";
const FIRST: &str = "STORE_TEST_FIRST";

#[test]
fn no_changed_octet_is_served_as_data() {
    if let (Ok(path), Ok(first)) = (std::env::var(CHANGED), std::env::var(FIRST)) {
        return make_changes(Path::new(&path), first.parse().unwrap());
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("switchyard.redb");
    let store = Store::open(&path, options()).unwrap();
    let names: Vec<String> = (0..20).map(|number| format!("peer-{number}")).collect();
    store.directory(&names).unwrap();
    let reference = fill(|batch| {
        store.commit(batch).unwrap();
    });
    store.close().unwrap();
    drop(store);
    store::verify(&path).unwrap();
    std::fs::copy(&path, path.with_extension(INTACT)).unwrap();
    assert_eq!(read(&path, &reference), Outcome::Same);

    let mut outcomes: Vec<String> = Vec::new();
    loop {
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "damage::no_changed_octet_is_served_as_data"])
            .env(CHANGED, &path)
            .env(FIRST, outcomes.len().to_string())
            .output()
            .unwrap();
        let found = path.with_extension(OUTCOMES);
        outcomes.extend(std::fs::read_to_string(&found).unwrap().lines().map(str::to_owned));
        std::fs::remove_file(&found).unwrap();
        match outcomes.pop_if(|outcome| outcome == END) {
            Some(_) => break,
            // Like the daemon, the process ended while it handled the next change.
            None => outcomes.push(REFUSED.to_owned()),
        }
        assert!(outcomes.len() <= CHANGES, "the process that makes the changes does not come to its end");
    }
    let count = |wanted| outcomes.iter().filter(|outcome| *outcome == wanted).count();
    let (same, refused, hidden) = (count(SAME), count(REFUSED), count(HIDDEN));
    println!(
        "{same} octets meant nothing, {refused} were refused, {hidden} were refused by the check of all pages only"
    );
    let wrong: Vec<_> = outcomes.iter().filter(|outcome| outcome.starts_with(WRONG)).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(refused > CHANGES / 4, "only {refused} changes reached the tables");
    // A process that always ends early would refuse everything.
    assert!(same > 0 && hidden + same < outcomes.len(), "{outcomes:#?}");
}
