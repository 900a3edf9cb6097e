//! Tests of invalid documents.

use super::{DOCUMENT, GERMANY};
use crate::NumberPlans;
use proptest::prelude::*;

const HEAD: &str = "[plan.a]\ncountry-code = \"1\"\nnational-numbers = [\"NXXNXXXXXX\"]\n";

/// The error text for the sample document with one change.
fn changed(from: &str, to: &str) -> String {
    assert!(DOCUMENT.contains(from), "{from:?} is not in the sample");
    NumberPlans::parse(&DOCUMENT.replacen(from, to, 1)).unwrap_err().to_string()
}

#[test]
fn every_error_has_a_message() {
    for (from, to, expected) in [
        ("default = \"nanp\"", "default = \"france\"", "there is no [plan.france]"),
        ("default = \"nanp\"", "default = 1", "`default` must be the name of a plan"),
        ("default = \"nanp\"", "defualt = \"nanp\"", "\"defualt\" is unknown; known here: default, plan"),
        ("country-code = \"1\"", "", "country-code"),
        ("country-code = \"1\"", "country-code = \"+1\"", "without a plus sign"),
        ("country-code = \"1\"", "country-code = \"01\"", "must not begin with a zero"),
        ("country-code = \"1\"", "country-code = 1", "expected"),
        ("[\"011\"]", "[\"*011\"]", "`international-prefix` has \"*011\""),
        ("trunk-prefix = [\"1\"]", "trunk-prefix = [\"\"]", "`trunk-prefix` has \"\""),
        ("trunk-prefix = [\"1\"]\ntrunk-needed = false", "trunk-needed = true", "requires a `trunk-prefix`"),
        ("[\"NXXNXXXXXX\"]", "[]", "`national-numbers` is empty"),
        ("[\"NXXNXXXXXX\"]", "[\"nxx\"]", "\"nxx\" is not a pattern"),
        ("local-numbers = [\"NXXXXXX\"]", "", "`local-numbers` requires"),
        ("area-code-of-caller = 3", "", "`local-numbers` requires"),
        ("area-code-of-caller = 3", "area-code-of-caller = 0", "1 to 8"),
        ("show = \"international\"", "show = \"fancy\"", "fancy"),
        ("national = \"route\"", "national = \"home\"", "allowed for ranges only"),
        ("national = \"route\"", "national = \"peer:\"", "is not a target"),
        ("numbers = [\"6195550XXX\"]", "numbers = [\"619-555-0XXX\"]", "is not a pattern"),
        ("numbers = [\"6195550XXX\"]", "numbers = [\"6195551XXX-6195552XXX\"]", "is not a pattern"),
        ("numbers = [\"6195550XXX\"]", "numbers = [\"555\"]", "is not an international number"),
        ("numbers = [\"6195550XXX\"]", "numbers = [\"+06195550\"]", "is not an international number"),
        ("numbers = [\"6195550XXX\"]", "numbers = [\"619555.\"]", "an abbreviation would not name one"),
        ("numbers = [\"6195550XXX\"]", "numbers = [\"61955[56]0XXX\"]", "an abbreviation would not name one"),
        (
            "numbers = [\"6195550XXX\"]",
            "numbers = [\"6195550XXX\", \"6195560123\"]",
            "an abbreviation must be unambiguous",
        ),
        ("numbers = [\"6195550XXX\"]", "numbers = [\"6195557XXX\"]", "an abbreviation must be unambiguous"),
        ("abbreviation = 4", "abbreviation = 1", "2 to 8"),
        ("to = \"home\"", "to = \"peer:club\"", "leads to \"home\""),
        ("to = \"refuse\"", "to = \"nowhere\"", "\"nowhere\" is not a target"),
        ("name = \"our numbers\"\n", "", "name"),
        ("name = \"our numbers\"", "name = \"\"", "appears in message traces"),
        ("[\"900XXXXXXX\"]", "[\"6195550XXX\"]", "another meaning at line 43"),
        ("[\"NXXXX\", \"NXXXXX\"]", "[]", "`numbers` is empty"),
        ("numbers = [\"7XXX\"]", "numbers = [\"0XXX\"]", "another meaning at line"),
        ("[[plan.nanp.internal]]", "[plan.nanp.internal]", "must be written as [[plan.nanp.internal]]"),
        ("[[plan.nanp.internal]]", "[[plan.nanp.internals]]", "internals"),
    ] {
        let report = changed(from, to);
        assert!(report.contains(expected), "{to:?}: {report}");
        assert!(report.lines().all(|line| line.starts_with("line ")), "{report}");
    }
}

#[test]
fn all_errors_are_reported_together() {
    let text = "default = \"b\"\n[plan.a]\ncountry-code = \"1\"\nnational-numbers = [\"nxx\"]\n\
                [[plan.a.range]]\nname = \"r\"\nnumbers = [\n  \"6195550100\",\n  \"x\",\n]\nto = \"hoem\"\n\
                [[plan.a.range]]\nnumbers = []\n[[plan.a.short-code]]\nname = \"s\"\nnumbers = [\"[\"]\nto = \"home\"\n";
    let problems = NumberPlans::parse(text).unwrap_err().0;
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
fn document_has_a_default_plan() {
    for (text, expected) in [
        ("", "the document has no plan"),
        ("plan = 1", "plans are tables"),
        ("[plan]\na = 1", "\"a\" is not a plan"),
        ("[[", "line 1"),
    ] {
        let report = NumberPlans::parse(text).unwrap_err().to_string();
        assert!(report.contains(expected), "{text:?}: {report}");
    }
    assert_eq!(NumberPlans::parse(HEAD).unwrap().default_name(), "a", "the only one");
    let two = format!("{HEAD}{}", HEAD.replace("[plan.a]", "[plan.b]"));
    assert!(NumberPlans::parse(&two).unwrap_err().to_string().contains("`default` is missing"));
}

#[test]
fn ranges_are_limited_and_single_numbers_are_not() {
    let more = |count: u32, ending: &str, more: &str| {
        let numbers: Vec<String> = (0..count).map(|n| format!("\"619{:06}{ending}\"", 500_000 + n)).collect();
        let numbers = numbers.join(",");
        NumberPlans::parse(&format!(
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
    fn any_document_parses_or_fails(at in 0_usize..3_000, with in "[\\[\\]\"=.#a-zX0-9\n -]{0,12}", german: bool) {
        let mut text = if german { GERMANY } else { DOCUMENT }.to_owned();
        let at = (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.insert_str(at, &with);
        if let Err(refused) = NumberPlans::parse(&text) {
            prop_assert!(!refused.0.is_empty());
        }
    }
}
