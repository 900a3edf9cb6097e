//! The case of a violation, for the author's file of cases.

use super::property::Violation;
use super::shrink::Counterexample;
use crate::case_check::describe_answer;
use crate::case_writer;
use crate::cases::{Case, ExpectedAnswer};
use crate::plugin_host::{CaseAdvice, CaseAnswer, CaseSender, CaseSetup};
use std::fmt::Write as _;
use std::path::PathBuf;

/// The case, below comments that tell the author what to decide. `given` is the file of cases that the setup is from.
pub(super) fn case(found: &Counterexample, seed: u64, given: Option<&(PathBuf, CaseSetup)>) -> String {
    let mut text = String::new();
    let mut comment = |line: &str| {
        // A comment of TOML ends with the line, and has no control characters.
        for line in line.lines() {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "# {}", client::terminal::visible(line));
        }
    };
    match given {
        Some((path, _)) => comment(&format!("For {}.", path.display())),
        None => comment("For a file of cases."),
    }
    match &found.violation {
        Violation::Fault { what, .. } => {
            comment(&format!("The plugin fails: {what}"));
            comment(
                "This case passes as long as the plugin fails. Replace `expect` by the answer that you want.",
            );
        }
        Violation::Differs { warm, fresh } => {
            comment(&format!("After other questions, the plugin answers {}.", describe_answer(warm)));
            comment(&format!("A fresh instance answers {}.", describe_answer(fresh)));
            comment("This case expects the answer of a fresh instance, and fails as long as they differ.");
        }
    }
    let (expected, sender, note, advice) = match &found.violation {
        Violation::Fault { .. } => {
            (ExpectedAnswer::Fault(found.violation.kind().to_owned()), None, None, CaseAdvice::default())
        }
        Violation::Differs { fresh, .. } => expect(fresh),
    };
    let case = Case {
        name: format!("fuzz: {}, seed {seed}", found.violation.kind()),
        setup: found.setup.clone(),
        questions: found.questions.clone(),
        expected,
        sender,
        note,
        advice,
    };
    let common = given.map(|(_, setup)| setup.clone()).unwrap_or_default();
    text + &case_writer::write(&case, &common)
}

/// What a case expects if this is the right answer.
fn expect(answer: &CaseAnswer) -> (ExpectedAnswer, Option<CaseSender>, Option<String>, CaseAdvice) {
    let none = CaseAdvice::default();
    match answer.clone() {
        CaseAnswer::Configured => (ExpectedAnswer::Configured, None, None, none),
        CaseAnswer::Refused(why) => (ExpectedAnswer::Refused(why), None, None, none),
        CaseAnswer::Verdict { verdict, sender, note } => {
            (ExpectedAnswer::Verdict(verdict), sender, note, none)
        }
        CaseAnswer::Resolved { answer, note } => (ExpectedAnswer::Resolved(answer), None, note, none),
        CaseAnswer::Next { step, advice, note } => {
            (ExpectedAnswer::Next(step), None, note, advice.unwrap_or_default())
        }
        CaseAnswer::Price { price, note } => (ExpectedAnswer::Price(price), None, note, none),
        CaseAnswer::Settled => (ExpectedAnswer::Settled, None, None, none),
        CaseAnswer::Unsettled(why) => (ExpectedAnswer::Unsettled(why), None, None, none),
        CaseAnswer::Fault(what) => (ExpectedAnswer::Fault(what), None, None, none),
    }
}
