//! Shrinks a violation: fewer questions, simpler questions, fewer peers in the setup.

use super::property::Violation;
use crate::WorkbenchError;
use crate::case_peer::CaseSubmission;
use crate::plugin_host::{CaseAddress, CaseAttempt, CaseMessage, CaseQuestion, CaseSetup, CaseText};
use proptest::strategy::ValueTree;
use std::time::{Duration, Instant};

/// A generated question that can be simplified.
pub(super) type QuestionTree = Box<dyn ValueTree<Value = CaseQuestion>>;

/// Maximum number of repetitions while a violation is shrunk.
const MAX_REPETITIONS: u32 = 1_500;
/// Maximum time of shrinking. A repetition with a plugin in an interpreted language takes long.
const MAX_TIME: Duration = Duration::from_secs(60);

/// Repeats violations.
pub(super) trait Repeat {
    /// Asks the questions in fresh sessions until one violates a property in the same way as `like`. Returns the number of
    /// questions until then.
    fn repeat(
        &self,
        setup: &CaseSetup,
        questions: &[CaseQuestion],
        like: &Violation,
    ) -> Result<Option<(usize, Violation)>, WorkbenchError>;
}

/// The smallest questions that are known to violate a property.
pub(super) struct Counterexample {
    pub(super) setup: CaseSetup,
    /// The last question violates the property; the same instance has answered the others before.
    pub(super) questions: Vec<CaseQuestion>,
    pub(super) violation: Violation,
}

struct Shrinker<'a> {
    target: &'a dyn Repeat,
    best: Counterexample,
    repetitions: u32,
    started: Instant,
}

/// Shrinks the questions of `trees`, of which the last violated a property. `None` if the violation does not repeat.
pub(super) fn shrink(
    target: &dyn Repeat,
    setup: &CaseSetup,
    mut trees: Vec<QuestionTree>,
    violation: Violation,
) -> Result<Option<Counterexample>, WorkbenchError> {
    let questions = current(&trees);
    let best = Counterexample { setup: setup.clone(), questions, violation };
    let mut shrinker = Shrinker { target, best, repetitions: 0, started: Instant::now() };
    // Most plugins keep no state, so that the earlier questions do not matter.
    let last = trees.len().saturating_sub(1);
    if shrinker.repeats(setup, trees.get(last..).map(current).unwrap_or_default())? {
        trees.drain(..last);
    } else if shrinker.repeats(setup, current(&trees))? {
        trees.truncate(shrinker.best.questions.len());
        shrinker.remove_earlier(&mut trees)?;
    } else {
        return Ok(None);
    }
    for (index, tree) in trees.iter_mut().enumerate().rev() {
        shrinker.simplify(tree, index)?;
    }
    Ok(Some(shrinker.best))
}

/// Removes the peers that a violation does not need from its setup.
pub(super) fn shrink_peers(
    target: &dyn Repeat,
    counterexample: Counterexample,
) -> Result<Counterexample, WorkbenchError> {
    let names: Vec<String> = counterexample.setup.peers.keys().cloned().collect();
    let mut shrinker = Shrinker { target, best: counterexample, repetitions: 0, started: Instant::now() };
    for name in names {
        let mut setup = shrinker.best.setup.clone();
        setup.peers.remove(&name);
        let questions = shrinker.best.questions.clone();
        shrinker.repeats(&setup, questions)?;
    }
    Ok(shrinker.best)
}

/// Removes the generated figures of peers that a violation does not need; the first `own` figures are from the file of
/// cases.
pub(super) fn shrink_figures(
    target: &dyn Repeat,
    counterexample: Counterexample,
    own: usize,
) -> Result<Counterexample, WorkbenchError> {
    let count = counterexample.setup.quality.len();
    let mut shrinker = Shrinker { target, best: counterexample, repetitions: 0, started: Instant::now() };
    for index in (own..count).rev() {
        let mut setup = shrinker.best.setup.clone();
        if index < setup.quality.len() {
            setup.quality.remove(index);
        }
        let questions = shrinker.best.questions.clone();
        shrinker.repeats(&setup, questions)?;
    }
    Ok(shrinker.best)
}

fn current(trees: impl AsRef<[QuestionTree]>) -> Vec<CaseQuestion> {
    trees.as_ref().iter().map(ValueTree::current).collect()
}

impl Shrinker<'_> {
    /// Whether the violation occurs with these questions. If so, they become the best ones so far.
    fn repeats(
        &mut self,
        setup: &CaseSetup,
        mut questions: Vec<CaseQuestion>,
    ) -> Result<bool, WorkbenchError> {
        self.repetitions += 1;
        let Some((count, violation)) = self.target.repeat(setup, &questions, &self.best.violation)? else {
            return Ok(false);
        };
        questions.truncate(count);
        self.best = Counterexample { setup: setup.clone(), questions, violation };
        Ok(true)
    }

    fn may_go_on(&self) -> bool {
        self.repetitions < MAX_REPETITIONS && self.started.elapsed() < MAX_TIME
    }

    /// Removes earlier questions, first many at a time, then one by one.
    fn remove_earlier(&mut self, trees: &mut Vec<QuestionTree>) -> Result<(), WorkbenchError> {
        let setup = self.best.setup.clone();
        let mut size = trees.len() / 2;
        while size > 0 {
            let mut start = 0;
            // The last question stays.
            while start + size < trees.len() && self.may_go_on() {
                let kept = trees.iter().enumerate().filter(|(at, _)| !(start..start + size).contains(at));
                let questions: Vec<_> = kept.map(|(_, tree)| tree.current()).collect();
                if self.repeats(&setup, questions)? {
                    trees.drain(start..start + size);
                    trees.truncate(self.best.questions.len());
                } else {
                    start += size;
                }
            }
            size /= 2;
        }
        Ok(())
    }

    /// Simplifies one question as far as the violation still occurs: first whole fields, then their contents.
    fn simplify(&mut self, tree: &mut QuestionTree, index: usize) -> Result<(), WorkbenchError> {
        let mut kept: Vec<Reset> = Vec::new();
        for reset in RESETS {
            let Some(mut question) = self.best.questions.get(index).cloned() else { return Ok(()) };
            reset(&mut question);
            if self.may_go_on() && self.repeats_with(index, question)? {
                kept.push(reset);
            }
        }
        let mut moved = tree.simplify();
        while moved && self.may_go_on() {
            let mut question = tree.current();
            kept.iter().for_each(|reset| reset(&mut question));
            moved = if self.repeats_with(index, question)? { tree.simplify() } else { tree.complicate() };
        }
        Ok(())
    }

    /// Whether the violation occurs with this question at this position.
    fn repeats_with(&mut self, index: usize, question: CaseQuestion) -> Result<bool, WorkbenchError> {
        let mut questions = self.best.questions.clone();
        match questions.get_mut(index) {
            // A change of a field that was reset.
            Some(best) if *best == question => return Ok(true),
            Some(best) => *best = question,
            // An earlier question violates the property now.
            None => return Ok(false),
        }
        self.repeats(&self.best.setup.clone(), questions)
    }
}

/// Sets a field of a question to its simplest value.
type Reset = fn(&mut CaseQuestion);

const RESETS: [Reset; 14] = [
    |question| on_message(question, |message| message.text = CaseText::default()),
    |question| on_message(question, |message| message.source = CaseAddress::default()),
    |question| on_message(question, |message| message.service_type = None),
    |question| on_message(question, |message| message.data_coding = 0),
    |question| on_message(question, |message| message.priority = 0),
    |question| on_message(question, |message| message.wants_receipt = false),
    |question| on_message(question, |message| message.destination = CaseAddress::default()),
    |question| {
        on_message(question, |message| message.destination = message.destination.value.clone().into());
    },
    |question| on_message(question, |message| message.source = message.source.value.clone().into()),
    |question| {
        if let CaseQuestion::Price(_, leg) = question {
            *leg = None;
        }
    },
    |question| {
        if let CaseQuestion::Receipt(_, submission, _) = question {
            (submission.attempts, submission.leg, submission.legs) = (1, 0, 1);
            (submission.age_ms, submission.left_ms) = (0, 86_400_000);
        }
    },
    |question| on_attempt(question, |attempt| (attempt.leg, attempt.legs) = (0, 1)),
    |question| on_attempt(question, |attempt| (attempt.number, attempt.code) = (1, 0)),
    |question| on_attempt(question, |attempt| (attempt.age_ms, attempt.left_ms) = (0, 86_400_000)),
];

fn on_message(question: &mut CaseQuestion, change: fn(&mut CaseMessage)) {
    match question {
        CaseQuestion::Screen(message)
        | CaseQuestion::Route(message)
        | CaseQuestion::Next(message, _)
        | CaseQuestion::Submit(CaseSubmission { message, .. })
        | CaseQuestion::Receipt(message, ..)
        | CaseQuestion::Price(message, _) => {
            change(message);
        }
        CaseQuestion::Configure
        | CaseQuestion::LookUp(_)
        | CaseQuestion::Resolve(_)
        | CaseQuestion::Settle(_)
        | CaseQuestion::Callback(_)
        | CaseQuestion::Read(_)
        | CaseQuestion::Reply(_) => {}
    }
}

fn on_attempt(question: &mut CaseQuestion, change: fn(&mut CaseAttempt)) {
    if let CaseQuestion::Next(_, attempt) = question {
        change(attempt);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzz::questions::questions;
    use crate::fuzz::runner;
    use crate::fuzz::vocabulary::Vocabulary;
    use crate::plugin_host::{CaseFigures, CasePeerState};
    use api::InstanceUse;
    use model::Hook;
    use proptest::strategy::Strategy as _;

    /// A plugin without an implementation: violates a property if this holds for the questions.
    struct Fake(fn(&CaseSetup, &[CaseQuestion]) -> bool);

    impl Repeat for Fake {
        fn repeat(
            &self,
            setup: &CaseSetup,
            questions: &[CaseQuestion],
            _: &Violation,
        ) -> Result<Option<(usize, Violation)>, WorkbenchError> {
            let count = (1..=questions.len()).find(|count| (self.0)(setup, &questions[..*count]));
            Ok(count.map(|count| (count, trap())))
        }
    }

    fn trap() -> Violation {
        Violation::Fault { instance: InstanceUse::Warm, what: "trap: unreachable".to_owned() }
    }

    fn destination(question: &CaseQuestion) -> &str {
        match question {
            CaseQuestion::Route(message) => &message.destination.value,
            _ => "",
        }
    }

    /// Asks questions until one violates, and shrinks them.
    fn find(fake: &Fake, setup: &CaseSetup) -> Counterexample {
        let strategy = questions(Hook::Router, &Vocabulary::of(setup));
        let mut runner = runner(1);
        let mut trees = Vec::new();
        loop {
            trees.push(strategy.new_tree(&mut runner).unwrap());
            assert!(trees.len() < 20_000, "no violation");
            if (fake.0)(setup, &current(&trees)) {
                return shrink(fake, setup, trees, trap()).unwrap().unwrap();
            }
        }
    }

    #[test]
    fn a_question_is_shrunk_to_what_the_violation_needs() {
        let fake = Fake(|_, asked| asked.last().is_some_and(|last| destination(last).starts_with("66")));
        let found = find(&fake, &CaseSetup::default());
        let [CaseQuestion::Route(message)] = &found.questions[..] else { panic!("{:?}", found.questions) };
        assert_eq!((&*message.destination.value, &*message.source.value), ("66", ""), "{message:?}");
        assert_eq!((&message.text, message.priority, message.data_coding), (&CaseText::default(), 0, 0));
        assert_eq!((&message.service_type, message.wants_receipt), (&None, false));
    }

    #[test]
    fn earlier_questions_stay_only_if_the_violation_needs_them() {
        // After a number that begins with 7, one that begins with 8.
        let fake = Fake(|_, asked| {
            let begins = |digit: char| asked.iter().any(|one| destination(one).starts_with(digit));
            asked.last().is_some_and(|last| destination(last).starts_with('8')) && begins('7')
        });
        let found = find(&fake, &CaseSetup::default());
        let destinations: Vec<&str> = found.questions.iter().map(destination).collect();
        assert_eq!(destinations, ["7", "8"]);
    }

    #[test]
    fn peers_stay_only_if_the_violation_needs_them() {
        let peers =
            ["east", "north", "west"].map(|name| (name.to_owned(), CasePeerState { links: 1, queued: 0 }));
        let setup = CaseSetup { peers: peers.into(), ..CaseSetup::default() };
        let fake = Fake(|setup, _| setup.peers.contains_key("north"));
        let found = shrink_peers(&fake, find(&fake, &setup)).unwrap();
        assert_eq!(found.setup.peers.into_keys().collect::<Vec<_>>(), ["north"]);
    }

    #[test]
    fn generated_figures_stay_only_if_the_violation_needs_them() {
        let figures = |peer: &str| CaseFigures { peer: peer.to_owned(), ..CaseFigures::default() };
        let quality = ["own", "east", "north", "west"].map(figures).to_vec();
        let setup = CaseSetup { quality, ..CaseSetup::default() };
        let fake = Fake(|setup, _| setup.quality.iter().any(|figures| figures.peer == "north"));
        let found = shrink_figures(&fake, find(&fake, &setup), 1).unwrap();
        let peers: Vec<&str> = found.setup.quality.iter().map(|figures| figures.peer.as_str()).collect();
        assert_eq!(peers, ["own", "north"]);
    }

    #[test]
    fn a_violation_that_does_not_repeat_is_not_shrunk() {
        let strategy = questions(Hook::Router, &Vocabulary::of(&CaseSetup::default()));
        let trees = vec![strategy.new_tree(&mut runner(1)).unwrap()];
        assert!(shrink(&Fake(|_, _| false), &CaseSetup::default(), trees, trap()).unwrap().is_none());
    }
}
