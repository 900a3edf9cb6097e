//! Makes a case of a message that a screen or a router has decided, so that the author can repeat it.

use crate::case_conversion::{CaseConversion, screened};
use crate::case_receipt::{CaseReceiptStep, step_and_wait};
use crate::case_writer;
use crate::cases::{Case, ExpectedAnswer};
use crate::fault_case::asked_case;
use crate::plugin_host::{CaseAnswer, CaseGrants, CasePeerState, CaseSetup, CaseTable, CaseVerdict};
use capabilities::TableKind;
use hooks::{Binding, DryRunOutcome, FailedQuestion, Fault, HostAnswer, RepeatedReceiptCall, ScreenOutcome};
use model::{AcceptedSubmission, Directory, Message, ReceiptEvent, Timestamp};

/// A question about a message, with the binding of the plugin that answered it and the host's answers.
#[derive(Debug, Clone, Copy)]
pub struct DecidedMessage<'a> {
    /// The name of the case.
    pub name: &'a str,
    /// The binding of the plugin.
    pub binding: &'a Binding,
    /// The time of the question.
    pub at: Timestamp,
    /// The message.
    pub message: &'a Message,
    /// The host's answers.
    pub host_answers: &'a [HostAnswer],
    /// The names of accounts and peers.
    pub directory: &'a Directory,
}

impl DecidedMessage<'_> {
    /// The case of a router's decision, in the format of `cases.toml`. It expects this decision.
    #[must_use]
    pub fn routing_case(&self, outcome: DryRunOutcome) -> String {
        let conversion = CaseConversion { directory: self.directory, now: self.at, debug_info: None };
        let origin = self.directory.name(self.message.origin);
        let is_home = matches!(&outcome.verdict, Ok(Some(model::Verdict::Forward(legs))) if legs.iter().any(|leg| leg.resolve));
        let mut answer = conversion.routed(outcome, &origin);
        if is_home && let Ok(CaseAnswer::Verdict { verdict, .. }) = &mut answer {
            *verdict = CaseVerdict::Home;
        }
        self.write(&FailedQuestion::Route(Box::new(self.message.clone())), answer)
    }

    /// The case of a screen's decision, as [`Self::routing_case`].
    #[must_use]
    pub fn screening_case(&self, outcome: ScreenOutcome) -> String {
        let answer = outcome.decision.map(|decision| decision.map_or(CaseAnswer::Configured, screened));
        self.write(&FailedQuestion::Screen(Box::new(self.message.clone())), answer)
    }

    /// The case of the decision of receipt policies on an event, as [`Self::routing_case`].
    #[must_use]
    pub fn receipt_case(
        &self,
        submission: AcceptedSubmission,
        event: ReceiptEvent,
        outcome: RepeatedReceiptCall,
    ) -> String {
        let answer = outcome.decision.map(|decision| match decision {
            Some(decision) => {
                let (step, wait) = step_and_wait(&decision);
                CaseAnswer::Receipt { step, wait, note: decision.note.map(String::from) }
            }
            None => CaseAnswer::Receipt { step: CaseReceiptStep::Accept, wait: None, note: None },
        });
        self.write(&FailedQuestion::Receipt(Box::new((self.message.clone(), submission, event))), answer)
    }

    fn write(&self, question: &FailedQuestion, answer: Result<CaseAnswer, Fault>) -> String {
        // Filled below.
        let expected = ExpectedAnswer::Configured;
        let asked = (self.binding, self.at, question);
        let mut case = asked_case(asked, self.host_answers, self.directory, self.name.to_owned(), expected);
        self.complete_setup(&mut case.setup);
        expect(&mut case, answer);
        format!("\n{}", case_writer::write(&case, &CaseSetup::default()))
    }

    /// Adds the grants of the binding, and the objects that they need.
    fn complete_setup(&self, setup: &mut CaseSetup) {
        let hooks::Grants { http, kv, tables, hlr, dns, random, counters, quality, .. } =
            self.binding.grants.clone();
        for table in &tables {
            let empty = || CaseTable { kind: TableKind::Prefix, rows: Default::default() };
            setup.tables.entry(table.clone()).or_insert_with(empty);
        }
        setup.grants = CaseGrants { http, kv, tables, hlr, dns, random, counters, quality };
    }
}

/// Sets the expected answer of the case. The peers of the answer must exist.
fn expect(case: &mut Case, answer: Result<CaseAnswer, Fault>) {
    match answer {
        Ok(CaseAnswer::Verdict { verdict, sender, changes, note }) => {
            if let CaseVerdict::Forward(legs) = &verdict {
                for leg in legs {
                    let there = CasePeerState { links: 1, queued: 0 };
                    case.setup.peers.entry(leg.peer.clone()).or_insert(there);
                }
            }
            // A router that passes has no note.
            case.note = note.filter(|_| verdict != CaseVerdict::Pass);
            (case.expected, case.sender, case.changes) = (ExpectedAnswer::Verdict(verdict), sender, changes);
        }
        Ok(CaseAnswer::Screened { verdict, text, changes, note }) => {
            (case.expected, case.text, case.changes, case.note) =
                (ExpectedAnswer::Screened(verdict), text, changes, note);
        }
        Ok(CaseAnswer::Receipt { step, wait, note }) => {
            (case.expected, case.wait, case.note) = (ExpectedAnswer::Receipt(step), wait, note);
        }
        Ok(_) => {}
        Err(fault) => case.expected = ExpectedAnswer::Fault(fault.kind.name().to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases;
    use bytes::Bytes;
    use model::{Address, Leg, MessageId, PeerId, PluginVersion};
    use model::{
        ReceiptDecision, ReceiptVerdict, RejectReason, RoutingDecision, ScreenVerdict, Text, Verdict,
    };
    use std::sync::Arc;
    use std::time::Duration;

    fn message(origin: PeerId) -> Message {
        let by = Arc::new(PluginVersion { plugin: String::new(), version: String::new() });
        Message {
            id: MessageId(7),
            accepted_at: Timestamp(5),
            ..Message::new(
                origin,
                Address::new(5, 0, b"ACME"),
                Address::international("8613"),
                Text { octets: Bytes::from_static(b"hello"), ..Text::default() },
                Timestamp(9),
                RoutingDecision::new(Verdict::Forward(Vec::new()), by),
            )
        }
    }

    /// Makes a case, and reads it back.
    fn made(make: impl FnOnce(&DecidedMessage<'_>) -> String) -> Case {
        let mut directory = Directory::new();
        let (origin, _) = directory.intern("shop").unwrap();
        directory.intern("north").unwrap();
        let mut binding = Binding::new("router", "0123456789ab", "route 86 north");
        binding.grants.tables = vec!["networks".to_owned()];
        let host_answers =
            [HostAnswer::Table("networks".to_owned(), "86".to_owned(), Some("460".to_owned()))];
        let message = message(origin);
        let decided = DecidedMessage {
            name: "message 7",
            binding: &binding,
            at: Timestamp(5),
            message: &message,
            host_answers: &host_answers,
            directory: &directory,
        };
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), make(&decided)).unwrap();
        cases::read(file.path()).unwrap().remove(0)
    }

    fn routed(verdict: Result<Option<Verdict>, Fault>) -> DryRunOutcome {
        DryRunOutcome {
            verdict,
            sender: None,
            changes: None,
            note: Some("why".into()),
            missing: None,
            call_log: None,
        }
    }

    #[test]
    fn a_case_of_a_message_expects_its_decision_with_the_answers_of_the_host() {
        let north = Leg::to(PeerId(1));
        let case = made(|decided| decided.routing_case(routed(Ok(Some(Verdict::Forward(vec![north]))))));
        assert_eq!((&*case.name, &*case.setup.policy, case.setup.now), ("message 7", "route 86 north", 5));
        assert!(
            matches!(&case.expected, ExpectedAnswer::Verdict(CaseVerdict::Forward(legs)) if legs[0].peer == "north")
        );
        assert_eq!(case.note.as_deref(), Some("why"));
        assert!(case.setup.peers.contains_key("north"), "{case:?}");
        assert_eq!(case.setup.tables["networks"].rows["86"], "460");
        assert_eq!(case.setup.grants.tables, ["networks"]);

        let home = Leg { resolve: true, ..Leg::to(PeerId(1)) };
        let case = made(|decided| decided.routing_case(routed(Ok(Some(Verdict::Forward(vec![home]))))));
        assert_eq!(case.expected, ExpectedAnswer::Verdict(CaseVerdict::Home));
        let case = made(|decided| decided.routing_case(routed(Ok(None))));
        assert_eq!((case.expected, case.note), (ExpectedAnswer::Verdict(CaseVerdict::Pass), None));
    }

    #[test]
    fn a_case_of_a_dlr_expects_the_step_and_the_wait() {
        let submission = AcceptedSubmission {
            attempts: 1,
            leg: (0, 2),
            peer: PeerId(1),
            age: Duration::from_secs(3),
            left: Duration::from_secs(60),
        };
        let decision = ReceiptDecision {
            verdict: ReceiptVerdict::NextLeg,
            wait: Some(Duration::from_secs(9)),
            by: Arc::new(PluginVersion { plugin: "second-chance".into(), version: "1".into() }),
            note: Some("too late".into()),
        };
        let outcome = RepeatedReceiptCall { decision: Ok(Some(decision)), missing: None };
        let case = made(|decided| decided.receipt_case(submission, ReceiptEvent::Timeout, outcome));
        assert_eq!(case.expected, ExpectedAnswer::Receipt(CaseReceiptStep::NextLeg));
        assert_eq!((case.wait, case.note.as_deref()), (Some(9_000), Some("too late")));
        let none = RepeatedReceiptCall { decision: Ok(None), missing: None };
        let case = made(|decided| decided.receipt_case(submission, ReceiptEvent::Accepted, none));
        assert_eq!(case.expected, ExpectedAnswer::Receipt(CaseReceiptStep::Accept));
    }

    #[test]
    fn a_case_of_a_screened_message_has_its_new_text() {
        let decision = hooks::ScreenDecision {
            verdict: ScreenVerdict::Reject(RejectReason::Prohibited),
            changes: None,
            text: Some(Text { octets: Bytes::from_static(b"bye"), ..Text::default() }),
            note: Some("a word".into()),
        };
        let outcome = ScreenOutcome { decision: Ok(Some(decision)), missing: None, call_log: None };
        let case = made(|decided| decided.screening_case(outcome));
        let rejected = crate::plugin_host::CaseScreenVerdict::Reject("prohibited".to_owned());
        assert_eq!(case.expected, ExpectedAnswer::Screened(rejected));
        assert_eq!((case.text.as_deref(), case.note.as_deref()), (Some("bye"), Some("a word")));
    }
}
