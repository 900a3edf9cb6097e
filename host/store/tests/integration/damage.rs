//! A changed octet in the file of the tables is detected, or has no effect.

use crate::support::options;
use crate::support::reference::{Reference, draft};
use model::Random;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
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

#[test]
fn no_changed_octet_is_served_as_data() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("switchyard.redb");
    let mut reference = Reference::default();
    {
        let store = Store::open(&path, options()).unwrap();
        let names: Vec<String> = (0..20).map(|number| format!("peer-{number}")).collect();
        store.directory(&names).unwrap();
        let mut runner = TestRunner::deterministic();
        for _ in 0..60 {
            let batch = reference.batch(draft().new_tree(&mut runner).unwrap().current());
            store.commit(batch.clone()).unwrap();
            reference.apply(&batch);
        }
        store.close().unwrap();
    }
    store::verify(&path).unwrap();
    let intact = std::fs::read(&path).unwrap();
    assert_eq!(read(&path, &reference), Outcome::Same);

    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let mut random = Random::new(20);
    let (mut same, mut refused, mut hidden) = (0, 0, 0);
    let mut wrong = Vec::new();
    for _ in 0..CHANGES {
        let at = random.between(0, intact.len() as u64 - 1) as usize;
        // Most octets of a small file are zeros in pages that no table uses.
        if intact[at] == 0 && random.between(0, 9) != 0 {
            continue;
        }
        let mut changed = intact.clone();
        changed[at] ^= 1 << random.between(0, 7);
        std::fs::write(&path, &changed).unwrap();
        let is_verified = catch_unwind(|| store::verify(&path).is_ok()).unwrap_or(false);
        if std::fs::read(&path).unwrap() != changed {
            wrong.push(format!("octet {at}: verify has changed the file"));
        }
        match read(&path, &reference) {
            Outcome::Same => same += 1,
            Outcome::Refused => refused += 1,
            // A damaged key of an inner page hides one row or all rows from a search. Only the verification of all pages
            // finds it.
            Outcome::Differs(text) if (text.ends_with("None") || found_nothing(&text)) && !is_verified => {
                hidden += 1;
            }
            Outcome::Differs(text) => wrong.push(format!("octet {at}, verified {is_verified}: {text}")),
        }
    }
    std::panic::set_hook(hook);
    println!(
        "{same} octets meant nothing, {refused} were refused, {hidden} were refused by the check of all pages only"
    );
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(refused > CHANGES / 4, "only {refused} changes reached the tables");
}
