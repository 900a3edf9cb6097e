//! Compares expected and actual answers of cases.

use crate::WorkbenchError;
use crate::case_details::CaseChanges;
use crate::cases::{Case, ExpectedAnswer};
use crate::local_host::LocalHost;
use crate::plugin_host::{
    CaseAdvice, CaseAnswer, CaseMessage, CaseQuestion, CaseResolution, CaseSender, PluginHost,
};
use serde::Serialize;
use std::fmt::Write as _;
use std::path::Path;

/// Runs all cases on a component. Returns a summary for people; an error if some cases failed.
pub(crate) fn run_cases(component: &Path, cases: &[Case]) -> Result<String, WorkbenchError> {
    let host = LocalHost::read(component)?;
    let (text, failed) = check_cases(&host, cases);
    if failed == 0 { Ok(text) } else { Err(WorkbenchError::CasesFailed { text, failed, cases: cases.len() }) }
}

fn check_cases(host: &dyn PluginHost, cases: &[Case]) -> (String, usize) {
    let mut text = String::new();
    let mut failed = 0;
    for case in cases {
        let got = match host.ask(&case.setup, &case.questions) {
            Ok(answer) if is_expected(case, &answer) => {
                let _ = writeln!(text, "ok    {}", case.name);
                continue;
            }
            Ok(answer) => describe_answer(&answer) + &fault_details(&answer),
            Err(why) => format!("no answer: {why}"),
        };
        failed += 1;
        let question = case.questions.last().map(describe_question).unwrap_or_default();
        let _ = writeln!(
            text,
            "FAIL  {}\n      asked     {question}\n      expected  {}\n      got       {got}",
            case.name,
            describe_expected(case)
        );
    }
    if failed == 0 {
        let _ = writeln!(text, "{} cases, all right", cases.len());
    }
    (text, failed)
}

/// The stack of a fault: the lines after its first line.
fn fault_details(answer: &CaseAnswer) -> String {
    let CaseAnswer::Fault(text) = answer else { return String::new() };
    text.lines().skip(1).map(|line| format!("\n                {}", line.trim_start())).collect()
}

fn is_expected(case: &Case, answer: &CaseAnswer) -> bool {
    let note_is = |note: &Option<String>| case.note.is_none() || case.note == *note;
    match (&case.expected, answer) {
        (ExpectedAnswer::Configured, CaseAnswer::Configured)
        | (ExpectedAnswer::Settled, CaseAnswer::Settled) => true,
        (ExpectedAnswer::Refused(fragment), CaseAnswer::Refused(text))
        | (ExpectedAnswer::Unsettled(fragment), CaseAnswer::Unsettled(text))
        | (ExpectedAnswer::Fault(fragment), CaseAnswer::Fault(text)) => text.contains(fragment),
        (ExpectedAnswer::Verdict(expected), CaseAnswer::Verdict { verdict, sender, changes, note }) => {
            expected == verdict && case.sender == *sender && case.changes == *changes && note_is(note)
        }
        (ExpectedAnswer::Screened(expected), CaseAnswer::Screened { verdict, text, changes, note }) => {
            expected == verdict && case.text == *text && case.changes == *changes && note_is(note)
        }
        (ExpectedAnswer::LookedUp(expected), CaseAnswer::LookedUp { answer, note }) => {
            expected == answer && note_is(note)
        }
        (ExpectedAnswer::Resolved(expected), CaseAnswer::Resolved { answer, note }) => {
            expected == answer && note_is(note)
        }
        (ExpectedAnswer::Next(expected), CaseAnswer::Next { step, advice, note }) => {
            expected == step && case.advice == advice.unwrap_or_default() && note_is(note)
        }
        (ExpectedAnswer::Receipt(expected), CaseAnswer::Receipt { step, wait, note }) => {
            expected == step && case.wait == *wait && note_is(note)
        }
        (ExpectedAnswer::Read(expected), CaseAnswer::Read(reading)) => expected == reading,
        (ExpectedAnswer::Replied(expected), CaseAnswer::Replied(response)) => expected == response,
        (ExpectedAnswer::Price(expected), CaseAnswer::Price { price, note }) => {
            expected == price && note_is(note)
        }
        (ExpectedAnswer::Submitted(expected), CaseAnswer::Submitted { outcome, note }) => {
            expected == outcome && note_is(note)
        }
        (ExpectedAnswer::Called(expected), CaseAnswer::Called { called, note }) => {
            expected == called && note_is(note)
        }
        _ => false,
    }
}

/// An expected answer in the format of a case.
pub(crate) fn expected_answer(answer: &ExpectedAnswer) -> String {
    let containing = |key: &str, fragment: &str| format!("{{ {key} = {} }}", quote(fragment));
    match answer {
        ExpectedAnswer::Configured => quote("configured"),
        ExpectedAnswer::Settled => quote("settled"),
        ExpectedAnswer::Refused(fragment) => containing("refused", fragment),
        ExpectedAnswer::Unsettled(fragment) => containing("again", fragment),
        ExpectedAnswer::Fault(fragment) => containing("fault", fragment),
        ExpectedAnswer::Screened(verdict) => to_toml(verdict),
        ExpectedAnswer::Verdict(verdict) => to_toml(verdict),
        ExpectedAnswer::LookedUp(answer) => to_toml(answer),
        ExpectedAnswer::Resolved(resolution) => describe_resolution(resolution),
        ExpectedAnswer::Next(step) => to_toml(step),
        ExpectedAnswer::Receipt(step) => to_toml(step),
        ExpectedAnswer::Price(price) => to_toml(price),
        ExpectedAnswer::Submitted(outcome) => to_toml(outcome),
        ExpectedAnswer::Called(called) => to_toml(called),
        ExpectedAnswer::Read(reading) => to_toml(reading),
        ExpectedAnswer::Replied(response) => to_toml(response),
    }
}

fn describe_expected(case: &Case) -> String {
    let answer = with_text(expected_answer(&case.expected), case.text.as_deref());
    let answer = with_wait(with_sender(answer, case.sender.as_ref()), case.wait);
    append_note_and_advice(with_changes(answer, &case.changes), case.note.as_deref(), case.advice)
}

pub(crate) fn describe_answer(answer: &CaseAnswer) -> String {
    let (answer, note, advice) = match answer {
        CaseAnswer::Configured => (quote("configured"), None, None),
        CaseAnswer::Settled => (quote("settled"), None, None),
        CaseAnswer::Refused(text) => (format!("{{ refused = {} }}", quote(text)), None, None),
        CaseAnswer::Unsettled(text) => (format!("{{ again = {} }}", quote(text)), None, None),
        CaseAnswer::Fault(text) => {
            let what = text.lines().next().unwrap_or_default();
            (format!("{{ fault = {} }}", quote(what)), None, None)
        }
        CaseAnswer::Screened { verdict, text, changes, note } => {
            (with_changes(with_text(to_toml(verdict), text.as_deref()), changes), note.as_deref(), None)
        }
        CaseAnswer::Verdict { verdict, sender, changes, note } => {
            (with_changes(with_sender(to_toml(verdict), sender.as_ref()), changes), note.as_deref(), None)
        }
        CaseAnswer::LookedUp { answer, note } => (to_toml(answer), note.as_deref(), None),
        CaseAnswer::Resolved { answer, note } => (describe_resolution(answer), note.as_deref(), None),
        CaseAnswer::Next { step, advice, note } => (to_toml(step), note.as_deref(), *advice),
        CaseAnswer::Receipt { step, wait, note } => (with_wait(to_toml(step), *wait), note.as_deref(), None),
        CaseAnswer::Price { price, note } => (to_toml(price), note.as_deref(), None),
        CaseAnswer::Submitted { outcome, note } => (to_toml(outcome), note.as_deref(), None),
        CaseAnswer::Called { called, note } => (to_toml(called), note.as_deref(), None),
        CaseAnswer::Read(reading) => (to_toml(reading), None, None),
        CaseAnswer::Replied(response) => (to_toml(response), None, None),
    };
    append_note_and_advice(answer, note, advice.unwrap_or_default())
}

fn with_sender(mut answer: String, sender: Option<&CaseSender>) -> String {
    if let Some(sender) = sender {
        let _ = write!(answer, ", sender = {}", to_toml(sender));
    }
    answer
}

fn with_wait(mut answer: String, wait: Option<u64>) -> String {
    if let Some(wait) = wait {
        let _ = write!(answer, ", wait-ms = {wait}");
    }
    answer
}

fn with_text(mut answer: String, text: Option<&str>) -> String {
    if let Some(text) = text {
        let _ = write!(answer, ", text = {}", quote(text));
    }
    answer
}

fn with_changes(mut answer: String, changes: &CaseChanges) -> String {
    if *changes != CaseChanges::default() {
        let _ = write!(answer, ", changes = {}", to_toml(changes));
    }
    answer
}

fn append_note_and_advice(mut answer: String, note: Option<&str>, advice: CaseAdvice) -> String {
    if advice != CaseAdvice::default() {
        let _ = write!(answer, ", advice = {}", to_toml(&advice));
    }
    if let Some(note) = note {
        let _ = write!(answer, ", note = {}", quote(note));
    }
    answer
}

fn describe_question(question: &CaseQuestion) -> String {
    match question {
        CaseQuestion::Configure => "configure".to_owned(),
        CaseQuestion::Screen(message) => format!("screen {}", describe_message(message)),
        CaseQuestion::Route(message) => format!("route {}", describe_message(message)),
        CaseQuestion::LookUp(number) => format!("look-up {}", quote(&number.value)),
        CaseQuestion::Resolve(number) => format!("resolve {}", quote(number)),
        CaseQuestion::Next(message, attempt) => format!(
            "next {}: attempt {} at {}, {:?}",
            quote(&message.destination.value),
            attempt.number,
            attempt.peer,
            attempt.class
        ),
        CaseQuestion::Receipt(message, submission, event) => format!(
            "receipt {}: leg {} at {}, {}",
            quote(&message.destination.value),
            submission.leg,
            submission.peer,
            to_toml(event)
        ),
        CaseQuestion::Price(message, leg) => format!(
            "price {}{}",
            describe_message(message),
            leg.as_ref().map(|leg| format!(" by {}", leg.peer)).unwrap_or_default()
        ),
        CaseQuestion::Read(request) => format!("read {} {}", request.method, request.path),
        CaseQuestion::Reply(reply) => format!("reply to {} {}", reply.request.method, reply.request.path),
        CaseQuestion::Settle(settlements) => format!("settle {} charges", settlements.len()),
        CaseQuestion::Submit(submission) => {
            format!("submit {} to {}", describe_message(&submission.message), submission.peer)
        }
        CaseQuestion::Callback(callback) => {
            format!("callback {} of {}", callback.method, callback.peer)
        }
    }
}

fn describe_message(message: &CaseMessage) -> String {
    let CaseMessage { source, destination, origin, .. } = message;
    format!("{} -> {} from {origin}", quote(&source.value), quote(&destination.value))
}

/// The form in a file of cases.
pub(crate) fn to_toml<T: Serialize>(value: &T) -> String {
    toml::Value::try_from(value).map_or_else(|error| error.to_string(), |value| value.to_string())
}

pub(crate) fn describe_resolution(resolution: &CaseResolution) -> String {
    match resolution {
        CaseResolution::Unknown(None) => quote("unknown"),
        CaseResolution::TryLater(None) => quote("try-later"),
        other => to_toml(other),
    }
}

pub(crate) fn quote(text: &str) -> String {
    toml::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plugin_host::{
        CaseCharge, CaseLeg, CasePrice, CaseSetup, CaseStep, CaseSubscriber, CaseVerdict,
    };

    /// A plugin host with a fixed answer.
    struct FixedHost(CaseAnswer);

    impl PluginHost for FixedHost {
        fn ask(&self, _: &CaseSetup, _: &[CaseQuestion]) -> Result<CaseAnswer, String> {
            Ok(self.0.clone())
        }
    }

    fn case(expected: ExpectedAnswer, note: Option<&str>, advice: CaseAdvice) -> Case {
        Case {
            name: "a case".to_owned(),
            setup: CaseSetup::default(),
            questions: vec![CaseQuestion::Resolve("49".to_owned())],
            expected,
            sender: None,
            text: None,
            changes: CaseChanges::default(),
            note: note.map(str::to_owned),
            advice,
            wait: None,
        }
    }

    fn leg(peer: &str, rank: u8) -> CaseLeg {
        CaseLeg {
            peer: peer.to_owned(),
            rank,
            weight: 1,
            cost: 0,
            longest_wait_ms: None,
            source: None,
            destination: None,
        }
    }

    #[test]
    fn a_failing_case_shows_expected_and_actual() {
        let forward = |rank| CaseVerdict::Forward(vec![leg("north", rank)]);
        let note = Some("prefix 8613".to_owned());
        let host = FixedHost(CaseAnswer::Verdict {
            verdict: forward(1),
            sender: None,
            changes: CaseChanges::default(),
            note,
        });
        let cases = [
            case(ExpectedAnswer::Verdict(forward(0)), Some("why"), CaseAdvice::default()),
            case(ExpectedAnswer::Verdict(forward(1)), None, CaseAdvice::default()),
        ];
        let (text, failed) = check_cases(&host, &cases);
        assert_eq!(
            text,
            "FAIL  a case\n      asked     resolve \"49\"\n      expected  { forward = [{ peer = \"north\" }] }, note = \
             \"why\"\n      got       { forward = [{ peer = \"north\", rank = 1 }] }, note = \"prefix 8613\"\nok    a \
             case\n"
        );
        assert_eq!(failed, 1);
    }

    #[test]
    fn senders_must_match_exactly() {
        let sender = |pool: &str| CaseSender::from(pool.to_owned());
        let answer_with = |sender| CaseAnswer::Verdict {
            verdict: CaseVerdict::Home,
            sender,
            changes: CaseChanges::default(),
            note: None,
        };
        let case_expecting = |sender| Case {
            sender,
            ..case(ExpectedAnswer::Verdict(CaseVerdict::Home), None, CaseAdvice::default())
        };
        for (expected, actual, fine) in [
            (None, None, true),
            (Some("texts"), Some("texts"), true),
            (Some("texts"), Some("calls"), false),
            (Some("texts"), None, false),
            (None, Some("texts"), false),
        ] {
            let case = case_expecting(expected.map(sender));
            assert_eq!(
                is_expected(&case, &answer_with(actual.map(sender))),
                fine,
                "{expected:?}, {actual:?}"
            );
        }
        assert_eq!(
            describe_answer(&answer_with(Some(sender("texts")))),
            "\"home\", sender = { pool = \"texts\" }"
        );
    }

    #[test]
    fn any_difference_fails() {
        let advice = CaseAdvice { pause_ms: Some(5), ..CaseAdvice::default() };
        let next = |advice| CaseAnswer::Next { step: CaseStep::Fail, advice, note: None };
        let fine = |expected, advice: CaseAdvice, answer: &CaseAnswer| {
            is_expected(&case(expected, None, advice), answer)
        };
        assert!(fine(ExpectedAnswer::Next(CaseStep::Fail), CaseAdvice::default(), &next(None)));
        assert!(fine(
            ExpectedAnswer::Next(CaseStep::Fail),
            CaseAdvice::default(),
            &next(Some(CaseAdvice::default()))
        ));
        assert!(!fine(ExpectedAnswer::Next(CaseStep::Fail), CaseAdvice::default(), &next(Some(advice))));
        assert!(!fine(ExpectedAnswer::Next(CaseStep::Fail), advice, &next(None)));
        assert!(fine(ExpectedAnswer::Next(CaseStep::Fail), advice, &next(Some(advice))));
        let charge = |amount| {
            CasePrice::Charge(CaseCharge {
                account: "shop".into(),
                amount,
                keep_on_failure: false,
                settle: false,
            })
        };
        let price = CaseAnswer::Price { price: charge(5), note: None };
        assert!(fine(ExpectedAnswer::Price(charge(5)), CaseAdvice::default(), &price));
        assert!(!fine(ExpectedAnswer::Price(charge(6)), CaseAdvice::default(), &price));
        assert!(!is_expected(
            &case(ExpectedAnswer::Price(charge(5)), Some("why"), CaseAdvice::default()),
            &price
        ));
        let found =
            CaseResolution::Found(CaseSubscriber { imsi: "1".into(), serving: None, valid_ms: Some(1) });
        let answer = CaseAnswer::Resolved { answer: found.clone(), note: None };
        assert!(fine(ExpectedAnswer::Resolved(found), CaseAdvice::default(), &answer));
        assert!(!fine(
            ExpectedAnswer::Resolved(CaseResolution::Unknown(None)),
            CaseAdvice::default(),
            &answer
        ));
        assert!(!fine(ExpectedAnswer::Fault(String::new()), CaseAdvice::default(), &answer));
        let refused = CaseAnswer::Refused("line 3: no".to_owned());
        assert!(fine(ExpectedAnswer::Refused("line 3".into()), CaseAdvice::default(), &refused));
        assert!(!fine(ExpectedAnswer::Refused("line 4".into()), CaseAdvice::default(), &refused));
    }
}
