//! The case of a violation, for the author's file of cases.

use super::property::Violation;
use super::shrink::Counterexample;
use crate::case_check::describe_answer;
use crate::case_details::CaseChanges;
use crate::case_writer;
use crate::cases::{Case, ExpectedAnswer};
use crate::plugin_host::{CaseAdvice, CaseAnswer, CaseSetup};
use std::fmt::Write as _;
use std::path::PathBuf;

/// The case, after comments that tell the author what to decide. `given` is the file of cases with the setup.
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
    let mut case = Case {
        name: format!("fuzz: {}, seed {seed}", found.violation.kind()),
        setup: found.setup.clone(),
        questions: found.questions.clone(),
        expected: ExpectedAnswer::Fault(found.violation.kind().to_owned()),
        sender: None,
        text: None,
        changes: CaseChanges::default(),
        note: None,
        advice: CaseAdvice::default(),
        wait: None,
    };
    if let Violation::Differs { fresh, .. } = &found.violation {
        expect(&mut case, fresh);
    }
    let common = given.map(|(_, setup)| setup.clone()).unwrap_or_default();
    text + &case_writer::write(&case, &common)
}

/// Sets the expected answer of a case.
fn expect(case: &mut Case, answer: &CaseAnswer) {
    case.expected = match answer.clone() {
        CaseAnswer::Configured => ExpectedAnswer::Configured,
        CaseAnswer::Refused(why) => ExpectedAnswer::Refused(why),
        CaseAnswer::Screened { verdict, text, changes, note } => {
            (case.text, case.changes, case.note) = (text, changes, note);
            ExpectedAnswer::Screened(verdict)
        }
        CaseAnswer::Verdict { verdict, sender, changes, note } => {
            (case.sender, case.changes, case.note) = (sender, changes, note);
            ExpectedAnswer::Verdict(verdict)
        }
        CaseAnswer::LookedUp { answer, note } => {
            case.note = note;
            ExpectedAnswer::LookedUp(answer)
        }
        CaseAnswer::Resolved { answer, note } => {
            case.note = note;
            ExpectedAnswer::Resolved(answer)
        }
        CaseAnswer::Next { step, advice, note } => {
            (case.note, case.advice) = (note, advice.unwrap_or_default());
            ExpectedAnswer::Next(step)
        }
        CaseAnswer::Receipt { step, wait, note } => {
            (case.note, case.wait) = (note, wait);
            ExpectedAnswer::Receipt(step)
        }
        CaseAnswer::Price { price, note } => {
            case.note = note;
            ExpectedAnswer::Price(price)
        }
        CaseAnswer::Submitted { outcome, note } => {
            case.note = note;
            ExpectedAnswer::Submitted(outcome)
        }
        CaseAnswer::Called { called, note } => {
            case.note = note;
            ExpectedAnswer::Called(called)
        }
        CaseAnswer::Read(reading) => ExpectedAnswer::Read(reading),
        CaseAnswer::Replied(response) => ExpectedAnswer::Replied(response),
        CaseAnswer::Settled => ExpectedAnswer::Settled,
        CaseAnswer::Unsettled(why) => ExpectedAnswer::Unsettled(why),
        CaseAnswer::Fault(what) => ExpectedAnswer::Fault(what),
    };
}
