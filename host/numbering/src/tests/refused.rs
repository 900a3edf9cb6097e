//! Documents that are wrong, and what is said of them.

use super::{DOCUMENT, GERMANY};
use crate::Plans;
use proptest::prelude::*;

const HEAD: &str = "[plan.a]\ncountry-code = \"1\"\nnational-numbers = [\"NXXNXXXXXX\"]\n";

/// What is said of the sample with one thing changed.
fn changed(from: &str, to: &str) -> String {
    assert!(DOCUMENT.contains(from), "{from:?} is not in the sample");
    Plans::parse(&DOCUMENT.replacen(from, to, 1)).unwrap_err().to_string()
}

#[test]
fn every_fault_has_its_words() {
    for (from, to, expected) in [
        ("default = \"nanp\"", "default = \"france\"", "there is no [plan.france]"),
        ("default = \"nanp\"", "default = 1", "`default` is the name of a plan"),
        ("default = \"nanp\"", "defualt = \"nanp\"", "\"defualt\" is unknown; known here: default, plan"),
        ("country-code = \"1\"", "", "country-code"),
        ("country-code = \"1\"", "country-code = \"+1\"", "without a plus sign"),
        ("country-code = \"1\"", "country-code = \"01\"", "begins with a zero"),
        ("country-code = \"1\"", "country-code = 1", "expected"),
        ("[\"011\"]", "[\"*011\"]", "`international-prefix` has \"*011\""),
        ("trunk-prefix = [\"1\"]", "trunk-prefix = [\"\"]", "`trunk-prefix` has \"\""),
        ("trunk-prefix = [\"1\"]\ntrunk-needed = false", "trunk-needed = true", "goes with a `trunk-prefix`"),
        ("[\"NXXNXXXXXX\"]", "[]", "`national-numbers` is empty"),
        ("[\"NXXNXXXXXX\"]", "[\"nxx\"]", "\"nxx\" is no pattern"),
        ("local-numbers = [\"NXXXXXX\"]", "", "`local-numbers` goes with"),
        ("area-code-of-caller = 3", "", "`local-numbers` goes with"),
        ("area-code-of-caller = 3", "area-code-of-caller = 0", "1 to 8"),
        ("show = \"international\"", "show = \"fancy\"", "fancy"),
        ("national = \"route\"", "national = \"home\"", "only numbers in a range"),
        ("national = \"route\"", "national = \"peer:\"", "no target"),
        ("numbers = [\"6195550XXX\"]", "numbers = [\"619-555-0XXX\"]", "is no pattern"),
        ("numbers = [\"6195550XXX\"]", "numbers = [\"6195551XXX-6195552XXX\"]", "is no pattern"),
        ("numbers = [\"6195550XXX\"]", "numbers = [\"555\"]", "no international number"),
        ("numbers = [\"6195550XXX\"]", "numbers = [\"+06195550\"]", "no international number"),
        ("numbers = [\"6195550XXX\"]", "numbers = [\"619555.\"]", "an abbreviation would not name one"),
        ("numbers = [\"6195550XXX\"]", "numbers = [\"61955[56]0XXX\"]", "an abbreviation would not name one"),
        (
            "numbers = [\"6195550XXX\"]",
            "numbers = [\"6195550XXX\", \"6195560123\"]",
            "an abbreviation may mean nothing else",
        ),
        ("numbers = [\"6195550XXX\"]", "numbers = [\"6195557XXX\"]", "an abbreviation may mean nothing else"),
        ("abbreviation = 4", "abbreviation = 1", "2 to 8"),
        ("to = \"home\"", "to = \"peer:club\"", "leads to \"home\""),
        ("to = \"refuse\"", "to = \"nowhere\"", "\"nowhere\" is no target"),
        ("name = \"our numbers\"\n", "", "name"),
        ("name = \"our numbers\"", "name = \"\"", "goes into the traces"),
        ("[\"900XXXXXXX\"]", "[\"6195550XXX\"]", "something else at line 42"),
        ("[\"NXXXX\", \"NXXXXX\"]", "[]", "`numbers` is empty"),
        ("numbers = [\"7XXX\"]", "numbers = [\"0XXX\"]", "something else at line"),
        ("[[plan.nanp.internal]]", "[plan.nanp.internal]", "is written as [[plan.nanp.internal]]"),
        ("[[plan.nanp.internal]]", "[[plan.nanp.internals]]", "internals"),
    ] {
        let said = changed(from, to);
        assert!(said.contains(expected), "{to:?}: {said}");
        assert!(said.lines().all(|line| line.starts_with("line ")), "{said}");
    }
}

#[test]
fn all_faults_are_said_at_once() {
    let text = "default = \"b\"\n[plan.a]\ncountry-code = \"1\"\nnational-numbers = [\"nxx\"]\n\
                [[plan.a.range]]\nname = \"r\"\nnumbers = [\n  \"6195550100\",\n  \"x\",\n]\nto = \"hoem\"\n\
                [[plan.a.range]]\nnumbers = []\n[[plan.a.short-code]]\nname = \"s\"\nnumbers = [\"[\"]\nto = \"home\"\n";
    let problems = Plans::parse(text).unwrap_err().0;
    let at: Vec<(usize, &str)> =
        problems.iter().map(|problem| (problem.line, problem.table.as_str())).collect();
    let expected = [
        (1, ""),
        (4, "plan.a"),
        (9, "plan.a.range"),
        (11, "plan.a.range"),
        (12, "plan.a.range"),
        (16, "plan.a.short-code"),
    ];
    assert_eq!(at, expected, "{problems:#?}");
}

#[test]
fn a_document_has_a_plan_that_counts() {
    for (text, expected) in [
        ("", "there is no plan"),
        ("plan = 1", "plans are tables"),
        ("[plan]\na = 1", "\"a\" is no plan"),
        ("[[", "line 1"),
    ] {
        let said = Plans::parse(text).unwrap_err().to_string();
        assert!(said.contains(expected), "{text:?}: {said}");
    }
    assert_eq!(Plans::parse(HEAD).unwrap().default_name(), "a", "the only one");
    let two = format!("{HEAD}{}", HEAD.replace("[plan.a]", "[plan.b]"));
    assert!(Plans::parse(&two).unwrap_err().to_string().contains("`default` is missing"));
}

#[test]
fn ranges_have_a_limit_and_single_numbers_have_none() {
    let more = |count: u32, ending: &str, more: &str| {
        let numbers: Vec<String> = (0..count).map(|n| format!("\"619{:06}{ending}\"", 500_000 + n)).collect();
        let numbers = numbers.join(",");
        Plans::parse(&format!(
            "{HEAD}[[plan.a.range]]\nname = \"r\"\nto = \"home\"\n{more}numbers = [{numbers}]\n"
        ))
    };
    let numbers = |count, ending| more(count, ending, "");
    numbers(20_000, "1").unwrap();
    more(20_000, "1", "abbreviation = 7\n").unwrap();
    assert!(numbers(2_001, "X").unwrap_err().to_string().contains("at most 2000"));
}

proptest! {
    #[test]
    fn any_document_is_a_plan_or_refused(at in 0_usize..3_000, with in "[\\[\\]\"=.#a-zX0-9\n -]{0,12}", german: bool) {
        let mut text = if german { GERMANY } else { DOCUMENT }.to_owned();
        let at = (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.insert_str(at, &with);
        if let Err(refused) = Plans::parse(&text) {
            prop_assert!(!refused.0.is_empty());
        }
    }
}
