//! Expected against got.

use crate::WorkbenchError;
use crate::bench::{Advice, Answer, Bench, Question, Resolution, Sender};
use crate::cases::{Case, Expected};
use crate::harness::Harness;
use serde::Serialize;
use std::fmt::Write as _;
use std::path::Path;

/// Asks a component every case. What came of it, for a person, is the result; or the error, when some failed.
pub(crate) fn all(component: &Path, cases: &[Case]) -> Result<String, WorkbenchError> {
    let octets = std::fs::read(component).map_err(WorkbenchError::file(component))?;
    let bench =
        Harness::new(&octets).map_err(|why| WorkbenchError::NotTaken { path: component.to_owned(), why })?;
    let (text, failed) = ask(&bench, cases);
    if failed == 0 { Ok(text) } else { Err(WorkbenchError::CasesFailed { text, failed, cases: cases.len() }) }
}

fn ask(bench: &dyn Bench, cases: &[Case]) -> (String, usize) {
    let mut text = String::new();
    let mut failed = 0;
    for case in cases {
        let said = match bench.ask(&case.given, &case.questions) {
            Ok(answer) if right(case, &answer) => {
                let _ = writeln!(text, "ok    {}", case.name);
                continue;
            }
            Ok(answer) => got(&answer),
            Err(why) => format!("no answer: {why}"),
        };
        failed += 1;
        let asked = case.questions.last().map(asked).unwrap_or_default();
        let _ = writeln!(
            text,
            "FAIL  {}\n      asked     {asked}\n      expected  {}\n      got       {said}",
            case.name,
            expected(case)
        );
    }
    if failed == 0 {
        let _ = writeln!(text, "{} cases, all right", cases.len());
    }
    (text, failed)
}

fn right(case: &Case, answer: &Answer) -> bool {
    let note_is = |note: &Option<String>| case.note.is_none() || case.note == *note;
    match (&case.expected, answer) {
        (Expected::Configured, Answer::Configured) | (Expected::Settled, Answer::Settled) => true,
        (Expected::Refused(part), Answer::Refused(words))
        | (Expected::Unsettled(part), Answer::Unsettled(words))
        | (Expected::Fault(part), Answer::Fault(words)) => words.contains(part),
        (Expected::Verdict(wanted), Answer::Verdict { verdict, sender, note }) => {
            wanted == verdict && case.sender == *sender && note_is(note)
        }
        (Expected::Resolved(wanted), Answer::Resolved { answer, note }) => wanted == answer && note_is(note),
        (Expected::Next(wanted), Answer::Next { step, advice, note }) => {
            wanted == step && case.advice == advice.unwrap_or_default() && note_is(note)
        }
        (Expected::Price(wanted), Answer::Price { price, note }) => wanted == price && note_is(note),
        _ => false,
    }
}

fn expected(case: &Case) -> String {
    let containing = |key: &str, part: &str| format!("{{ {key} = {} }}", quoted(part));
    let answer = match &case.expected {
        Expected::Configured => quoted("configured"),
        Expected::Settled => quoted("settled"),
        Expected::Refused(part) => containing("refused", part),
        Expected::Unsettled(part) => containing("again", part),
        Expected::Fault(part) => containing("fault", part),
        Expected::Verdict(verdict) => words(verdict),
        Expected::Resolved(resolution) => resolved(resolution),
        Expected::Next(step) => words(step),
        Expected::Price(price) => words(price),
    };
    with(with_sender(answer, case.sender.as_ref()), case.note.as_deref(), case.advice)
}

fn got(answer: &Answer) -> String {
    let (answer, note, advice) = match answer {
        Answer::Configured => (quoted("configured"), None, None),
        Answer::Settled => (quoted("settled"), None, None),
        Answer::Refused(words) => (format!("{{ refused = {} }}", quoted(words)), None, None),
        Answer::Unsettled(words) => (format!("{{ again = {} }}", quoted(words)), None, None),
        Answer::Fault(words) => (format!("{{ fault = {} }}", quoted(words)), None, None),
        Answer::Verdict { verdict, sender, note } => {
            (with_sender(words(verdict), sender.as_ref()), note.as_deref(), None)
        }
        Answer::Resolved { answer, note } => (resolved(answer), note.as_deref(), None),
        Answer::Next { step, advice, note } => (words(step), note.as_deref(), *advice),
        Answer::Price { price, note } => (words(price), note.as_deref(), None),
    };
    with(answer, note, advice.unwrap_or_default())
}

fn with_sender(mut answer: String, sender: Option<&Sender>) -> String {
    if let Some(sender) = sender {
        let _ = write!(answer, ", sender = {}", words(sender));
    }
    answer
}

fn with(mut answer: String, note: Option<&str>, advice: Advice) -> String {
    if advice != Advice::default() {
        let _ = write!(answer, ", advice = {}", words(&advice));
    }
    if let Some(note) = note {
        let _ = write!(answer, ", note = {}", quoted(note));
    }
    answer
}

fn asked(question: &Question) -> String {
    match question {
        Question::Configure => "configure".to_owned(),
        Question::Route(message) => format!(
            "route {} -> {} from {}",
            quoted(&message.source.value),
            quoted(&message.destination.value),
            message.origin
        ),
        Question::Resolve(number) => format!("resolve {}", quoted(number)),
        Question::Next(message, attempt) => format!(
            "next {}: attempt {} at {}, {:?}",
            quoted(&message.destination.value),
            attempt.number,
            attempt.peer,
            attempt.class
        ),
        Question::Price(message, leg) => format!(
            "price {} -> {} from {}{}",
            quoted(&message.source.value),
            quoted(&message.destination.value),
            message.origin,
            leg.as_ref().map(|leg| format!(" by {}", leg.peer)).unwrap_or_default()
        ),
        Question::Settle(settlements) => format!("settle {} charges", settlements.len()),
    }
}

/// As it would stand in a file of cases.
fn words<T: Serialize>(value: &T) -> String {
    toml::Value::try_from(value).map_or_else(|error| error.to_string(), |value| value.to_string())
}

fn resolved(resolution: &Resolution) -> String {
    match resolution {
        Resolution::Unknown(None) => quoted("unknown"),
        Resolution::TryLater(None) => quoted("try-later"),
        other => words(other),
    }
}

fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::{Charge, Given, Leg, Price, Step, Subscriber, Verdict};

    /// Answers with what it was made with.
    struct Parrot(Answer);

    impl Bench for Parrot {
        fn ask(&self, _: &Given, _: &[Question]) -> Result<Answer, String> {
            Ok(self.0.clone())
        }
    }

    fn case(expected: Expected, note: Option<&str>, advice: Advice) -> Case {
        Case {
            name: "a case".to_owned(),
            given: Given::default(),
            questions: vec![Question::Resolve("49".to_owned())],
            expected,
            sender: None,
            note: note.map(str::to_owned),
            advice,
        }
    }

    fn leg(peer: &str, rank: u8) -> Leg {
        Leg {
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
    fn a_failing_case_says_what_was_expected_and_what_came() {
        let forward = |rank| Verdict::Forward(vec![leg("north", rank)]);
        let note = Some("prefix 8613".to_owned());
        let bench = Parrot(Answer::Verdict { verdict: forward(1), sender: None, note });
        let cases = [
            case(Expected::Verdict(forward(0)), Some("why"), Advice::default()),
            case(Expected::Verdict(forward(1)), None, Advice::default()),
        ];
        let (text, failed) = ask(&bench, &cases);
        assert_eq!(
            text,
            "FAIL  a case\n      asked     resolve \"49\"\n      expected  { forward = [{ peer = \"north\" }] }, note = \
             \"why\"\n      got       { forward = [{ peer = \"north\", rank = 1 }] }, note = \"prefix 8613\"\nok    a \
             case\n"
        );
        assert_eq!(failed, 1);
    }

    #[test]
    fn a_sender_that_is_wanted_must_be_expected_and_the_other_way_round() {
        let sender = |pool: &str| Sender::from(pool.to_owned());
        let wanting = |sender| Answer::Verdict { verdict: Verdict::Home, sender, note: None };
        let expecting =
            |sender| Case { sender, ..case(Expected::Verdict(Verdict::Home), None, Advice::default()) };
        for (expected, wanted, fine) in [
            (None, None, true),
            (Some("texts"), Some("texts"), true),
            (Some("texts"), Some("calls"), false),
            (Some("texts"), None, false),
            (None, Some("texts"), false),
        ] {
            let case = expecting(expected.map(sender));
            assert_eq!(right(&case, &wanting(wanted.map(sender))), fine, "{expected:?}, {wanted:?}");
        }
        assert_eq!(got(&wanting(Some(sender("texts")))), "\"home\", sender = { pool = \"texts\" }");
    }

    #[test]
    fn everything_that_is_not_equal_fails() {
        let advice = Advice { pause_ms: Some(5), ..Advice::default() };
        let next = |advice| Answer::Next { step: Step::Fail, advice, note: None };
        let fine = |expected, told: Advice, answer: &Answer| right(&case(expected, None, told), answer);
        assert!(fine(Expected::Next(Step::Fail), Advice::default(), &next(None)));
        assert!(fine(Expected::Next(Step::Fail), Advice::default(), &next(Some(Advice::default()))));
        assert!(!fine(Expected::Next(Step::Fail), Advice::default(), &next(Some(advice))));
        assert!(!fine(Expected::Next(Step::Fail), advice, &next(None)));
        assert!(fine(Expected::Next(Step::Fail), advice, &next(Some(advice))));
        let charge = |amount| {
            Price::Charge(Charge { account: "shop".into(), amount, keep_on_failure: false, settle: false })
        };
        let price = Answer::Price { price: charge(5), note: None };
        assert!(fine(Expected::Price(charge(5)), Advice::default(), &price));
        assert!(!fine(Expected::Price(charge(6)), Advice::default(), &price));
        assert!(!right(&case(Expected::Price(charge(5)), Some("why"), Advice::default()), &price));
        let found = Resolution::Found(Subscriber { imsi: "1".into(), serving: None, valid_ms: Some(1) });
        let answer = Answer::Resolved { answer: found.clone(), note: None };
        assert!(fine(Expected::Resolved(found), Advice::default(), &answer));
        assert!(!fine(Expected::Resolved(Resolution::Unknown(None)), Advice::default(), &answer));
        assert!(!fine(Expected::Fault(String::new()), Advice::default(), &answer));
        let refused = Answer::Refused("line 3: no".to_owned());
        assert!(fine(Expected::Refused("line 3".into()), Advice::default(), &refused));
        assert!(!fine(Expected::Refused("line 4".into()), Advice::default(), &refused));
    }
}
