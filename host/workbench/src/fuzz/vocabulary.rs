//! The vocabulary of generated questions: words of the setup and of the policy document, so that questions meet the
//! document's conditions.

use crate::plugin_host::CaseSetup;
use std::collections::BTreeSet;

/// Maximum number of words of a kind. Of a longer document, evenly spaced ones are used.
const MAX_WORDS: usize = 64;
/// Maximum length of a name, in octets.
const MAX_NAME: usize = 64;
/// Maximum number of digits of an address.
const MAX_DIGITS: usize = 20;

/// Names and numbers for questions.
#[derive(Debug)]
pub(super) struct Vocabulary {
    /// Accounts, peers and alphanumeric addresses; never empty.
    pub(super) names: Vec<String>,
    /// The peers of the setup, or all names if it has none.
    pub(super) peers: Vec<String>,
    /// Numbers and prefixes.
    pub(super) numbers: Vec<String>,
}

impl Vocabulary {
    pub(super) fn of(setup: &CaseSetup) -> Self {
        let (own, mut numbers) = words(&setup.policy);
        let peers: Vec<String> = setup.peers.keys().cloned().collect();
        // The origin of a message in a case.
        let mut names = vec!["shop".to_owned()];
        for name in peers.iter().cloned().chain(evenly_spaced(own)) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let keys = setup.tables.values().flat_map(|table| table.rows.keys()).chain(setup.hlr.keys());
        numbers.extend(keys.filter(|key| is_number(key)).cloned());
        numbers.extend(setup.http.iter().flat_map(|exchange| words(&exchange.url).1));
        let peers = if peers.is_empty() { names.clone() } else { peers };
        Self { names, peers, numbers: evenly_spaced(numbers) }
    }
}

/// The names and the numbers in a document, without lines that are comments.
pub(super) fn words(document: &str) -> (BTreeSet<String>, BTreeSet<String>) {
    let in_force = document.lines().filter(|line| !line.trim_start().starts_with('#'));
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    let all = in_force.flat_map(|line| line.split(|c: char| !is_word(c)));
    let (mut names, mut numbers) = (BTreeSet::new(), BTreeSet::new());
    for word in all {
        if is_number(word) {
            numbers.insert(word.to_owned());
        } else if word.contains(char::is_alphabetic) && word.len() <= MAX_NAME {
            names.insert(word.to_owned());
        }
    }
    (names, numbers)
}

fn is_number(word: &str) -> bool {
    (1..=MAX_DIGITS).contains(&word.len()) && word.bytes().all(|octet| octet.is_ascii_digit())
}

fn evenly_spaced(words: BTreeSet<String>) -> Vec<String> {
    let step = words.len().div_ceil(MAX_WORDS).max(1);
    words.into_iter().step_by(step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_a_document_are_names_and_numbers() {
        let policy = "# comment 1\n[[route]]\nprefix = [\"8613\", \"49\"]\nlegs = [{ peer = \"north-1\" }]\n";
        let (names, numbers) = words(policy);
        assert_eq!(names.into_iter().collect::<Vec<_>>(), ["legs", "north-1", "peer", "prefix", "route"]);
        assert_eq!(numbers.into_iter().collect::<Vec<_>>(), ["49", "8613"]);
    }

    #[test]
    fn a_long_document_gives_a_limited_number_of_words() {
        let policy: String = (0..10_000).map(|number| format!("route {number:05} peer-{number}\n")).collect();
        let vocabulary = Vocabulary::of(&CaseSetup { policy, ..CaseSetup::default() });
        assert!((MAX_WORDS / 2..=MAX_WORDS).contains(&vocabulary.numbers.len()), "{vocabulary:?}");
        assert!(vocabulary.numbers.last() > Some(&"09000".to_owned()), "{vocabulary:?}");
        assert_eq!(vocabulary.peers, vocabulary.names);
    }
}
