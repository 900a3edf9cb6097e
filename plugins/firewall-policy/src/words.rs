//! The words of all rules, found in one pass over a text.

use crate::fold::fold;
use aho_corasick::automaton::{Automaton, OverlappingState};
use aho_corasick::dfa::DFA;
use aho_corasick::nfa::contiguous::NFA;
use aho_corasick::{Anchored, BuildError, Input, StartKind};

/// Maximum number of words in a document, so that they fit into the memory of an instance.
const MAX_WORDS: usize = 20_000;

/// The words of a document. A text is searched for all of them at once.
#[derive(Debug, Default)]
pub(crate) struct WordSearch {
    words: Vec<String>,
    owners: Vec<WordOwner>,
    automaton: Option<WordAutomaton>,
}

/// If the words have more octets than this together, the automaton with less memory is used.
const MAX_FAST_OCTETS: usize = 8_192;

/// The words as an automaton.
#[derive(Debug)]
enum WordAutomaton {
    /// One step for an octet, and up to some hundred octets of memory for an octet of the words.
    Fast(DFA),
    /// Several steps for an octet, in little memory.
    Small(NFA),
}

impl WordAutomaton {
    fn of(words: &[String]) -> Result<Self, BuildError> {
        if words.iter().map(String::len).sum::<usize>() > MAX_FAST_OCTETS {
            return NFA::builder().prefilter(false).build(words).map(Self::Small);
        }
        DFA::builder().start_kind(StartKind::Unanchored).prefilter(false).build(words).map(Self::Fast)
    }

    /// The patterns in a text with the places where they start and end, in the order of their ends.
    fn each(&self, text: &str, found: impl FnMut(usize, usize, usize)) {
        match self {
            Self::Fast(automaton) => each_match(automaton, text, found),
            Self::Small(automaton) => each_match(automaton, text, found),
        }
    }
}

fn each_match(automaton: &impl Automaton, text: &str, mut found: impl FnMut(usize, usize, usize)) {
    let input = Input::new(text).anchored(Anchored::No);
    let mut state = OverlappingState::start();
    // The only error is an unsupported kind of search; both automata support this one.
    while automaton.try_find_overlapping(&input, &mut state).is_ok()
        && let Some(one) = state.get_match()
    {
        found(one.pattern().as_usize(), one.start(), one.end());
    }
}

#[derive(Debug, Clone, Copy)]
struct WordOwner {
    rule: usize,
    /// The word matches only between characters that are no letters or digits.
    whole: bool,
}

/// A word of a rule in a folded text, from `start` to `end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WordMatch {
    pub(crate) rule: usize,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl WordSearch {
    /// Adds a word or phrase of a rule.
    ///
    /// # Errors
    /// The correction.
    pub(crate) fn add(&mut self, rule: usize, word: &str, whole: bool) -> Result<(), String> {
        let folded = fold(word);
        let folded = folded.trim();
        if folded.is_empty() {
            return Err(format!("the word {word:?} has no visible character; write a word or a phrase"));
        }
        if self.words.len() == MAX_WORDS {
            return Err(format!(
                "the document has more than {MAX_WORDS} words; put them into a table (`word-table`)"
            ));
        }
        self.words.push(folded.to_owned());
        self.owners.push(WordOwner { rule, whole });
        Ok(())
    }

    /// Compiles the words.
    ///
    /// # Errors
    /// There are too many words.
    pub(crate) fn compile(&mut self) -> Result<(), String> {
        if self.words.is_empty() {
            return Ok(());
        }
        let automaton = WordAutomaton::of(&self.words);
        self.automaton = Some(automaton.map_err(|error| format!("the words of the document: {error}"))?);
        self.words = Vec::new();
        Ok(())
    }

    /// All words in a folded text, in the order of their ends.
    pub(crate) fn find(&self, folded: &str) -> Vec<WordMatch> {
        let Some(automaton) = &self.automaton else { return Vec::new() };
        let mut matches = Vec::new();
        automaton.each(folded, |pattern, start, end| {
            if let Some(owner) = self.owners.get(pattern)
                && (!owner.whole || is_whole_word(folded, start, end))
            {
                matches.push(WordMatch { rule: owner.rule, start, end });
            }
        });
        matches
    }
}

fn is_whole_word(text: &str, start: usize, end: usize) -> bool {
    let before = text.get(..start).and_then(|before| before.chars().next_back());
    let after = text.get(end..).and_then(|after| after.chars().next());
    let is_inside = |neighbour: Option<char>| neighbour.is_some_and(char::is_alphanumeric);
    !is_inside(before) && !is_inside(after)
}

/// The different words of a folded text, at most `most` of them.
pub(crate) fn words_of(folded: &str, most: usize) -> Vec<&str> {
    let mut words: Vec<&str> = Vec::new();
    for word in folded.split(|c: char| !c.is_alphanumeric()) {
        if !word.is_empty() && !words.contains(&word) {
            words.push(word);
            if words.len() == most {
                break;
            }
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_automatons_find_the_same() {
        let words = ["he", "she", "hers", "free money", "money"].map(str::to_owned);
        let found = |automaton: &WordAutomaton| {
            let mut found = Vec::new();
            automaton.each("ushers get free money", |pattern, start, end| found.push((pattern, start, end)));
            found
        };
        let fast = WordAutomaton::of(&words).unwrap();
        assert!(matches!(fast, WordAutomaton::Fast(_)));
        let many: Vec<String> = (0..2_000).map(|n| format!("word {n}")).collect();
        let small = WordAutomaton::of(&[&words[..], &many[..]].concat()).unwrap();
        assert!(matches!(small, WordAutomaton::Small(_)));
        assert_eq!(found(&fast), found(&small));
        assert_eq!(found(&fast), [(1, 1, 4), (0, 2, 4), (2, 2, 6), (3, 11, 21), (4, 16, 21)]);
    }

    #[test]
    fn words_and_parts_are_found() {
        let mut search = WordSearch::default();
        search.add(0, "Win", true).unwrap();
        search.add(1, "free  money", true).unwrap();
        search.add(2, "LOAN", false).unwrap();
        search.add(3, "中奖", false).unwrap();
        search.compile().unwrap();
        let rules =
            |text: &str| -> Vec<usize> { search.find(&fold(text)).iter().map(|found| found.rule).collect() };
        assert_eq!(rules("You WIN!"), [0]);
        assert_eq!(rules("winter, twin, win7"), [0; 0]);
        assert_eq!(rules("free\nmoney"), [1]);
        assert_eq!(rules("carefree money"), [0; 0]);
        assert_eq!(rules("Microloans"), [2]);
        assert_eq!(rules("恭喜中奖了"), [3]);
        assert_eq!(rules("win-win"), [0, 0]);
    }

    #[test]
    fn a_word_has_characters() {
        let mut search = WordSearch::default();
        for word in ["", " ", "\u{200b}"] {
            assert!(search.add(0, word, true).unwrap_err().contains("no visible character"), "{word:?}");
        }
        search.compile().unwrap();
        assert!(search.find("any text").is_empty());
    }

    #[test]
    fn different_words_are_listed_once() {
        assert_eq!(words_of("a b, a-c d", 3), ["a", "b", "c"]);
        assert!(words_of("...", 3).is_empty());
    }
}
