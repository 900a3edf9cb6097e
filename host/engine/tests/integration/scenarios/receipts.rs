//! The receipt policy: questions, waits, further legs, late DLRs, and DLRs that are changed or disbelieved.

use crate::scenarios::fixture::{ACCOUNT, EngineFixture, FIRST, REPLY, SECOND, by, message};
use engine::{EngineAnswer, Event, MessageState, Settings};
use model::{
    AddressBytes, CallRecord, Dlr, DlrRequest, DlrState, FinalRecord, FinalState, Hook, Leg, MessageId,
    MessageKind, Outcome, PeerId, PeerMessageId, ReceiptDecision, ReceiptEvent, ReceiptVerdict,
    SealedContent,
    StepKind::{
        self, AwaitingDlr, Decided, DlrOverdue, DlrReceived, DlrRemapped, DlrSuspected, LateDlrReceived,
    },
};
use std::time::Duration;

const NUMBER: &str = "4917100001";
const WAIT: Duration = Duration::from_secs(30);

fn fixture() -> EngineFixture {
    let mut fixture = EngineFixture::with_dlrs(Settings { receipt: true, ..Settings::default() }, true);
    link_up(&mut fixture);
    fixture
}

fn link_up(fixture: &mut EngineFixture) {
    for peer in [FIRST, SECOND, ACCOUNT] {
        fixture.link_up(peer, 10);
    }
}

fn decision(verdict: ReceiptVerdict, wait: Option<Duration>) -> ReceiptDecision {
    ReceiptDecision { verdict, wait, by: by(), note: None }
}

/// Answers all questions.
fn decide(fixture: &mut EngineFixture, decision: Option<&ReceiptDecision>) -> Vec<ReceiptEvent> {
    let asked = std::mem::take(&mut fixture.receipts);
    let events = asked.iter().map(|(_, _, _, event)| *event).collect();
    fixture.run(asked.into_iter().map(|(id, question, _, _)| Event::ReceiptDecided {
        id,
        question,
        decision: decision.cloned(),
    }));
    events
}

fn submit(fixture: &mut EngineFixture) -> MessageId {
    let mut message = message(NUMBER, vec![Leg::to(FIRST), Leg::to(SECOND)]);
    message.dlr_request = DlrRequest { on_success: true, on_failure: true, intermediate: false };
    fixture.submit(message).unwrap()
}

/// The peer accepts the message under this id.
fn accept(fixture: &mut EngineFixture, id: MessageId, peer_id: &str) {
    fixture.answer(id, Outcome::Accepted { ids: vec![PeerMessageId::new(peer_id.as_bytes())] });
}

fn dlr(fixture: &mut EngineFixture, peer: PeerId, peer_id: &str, state: DlrState) {
    let dlr = Dlr {
        id: PeerMessageId::new(peer_id.as_bytes()),
        state,
        intermediate: false,
        error: 5,
        network_error: None,
        done_at: None,
        from: AddressBytes::from_slice(NUMBER.as_bytes()),
        to: AddressBytes::from_slice(b"10655"),
    };
    fixture.run([Event::Dlr { peer, dlr, reply: REPLY }]);
}

/// The DLRs on the account's link, which takes them.
fn dlrs(fixture: &mut EngineFixture) -> Vec<(DlrState, u16)> {
    let mut found = Vec::new();
    while let Some((_, message, _)) = fixture.sent.iter().find(|(peer, ..)| *peer == ACCOUNT).cloned() {
        let MessageKind::Dlr(content) = &message.kind else { panic!("{message:?}") };
        found.push((content.state, content.error));
        fixture.answer(message.id, Outcome::Accepted { ids: Vec::new() });
    }
    found
}

/// A message that the first peer has accepted, and for whose DLR it waits.
fn waiting(fixture: &mut EngineFixture) -> MessageId {
    let id = submit(fixture);
    accept(fixture, id, "n1");
    assert_eq!(
        decide(fixture, Some(&decision(ReceiptVerdict::Accept, Some(WAIT)))),
        [ReceiptEvent::Accepted]
    );
    id
}

/// A message on its second leg, because no DLR of the first came.
fn message_on_second_leg(fixture: &mut EngineFixture) -> MessageId {
    let id = waiting(fixture);
    fixture.pass(WAIT);
    let asked = decide(fixture, Some(&decision(ReceiptVerdict::NextLeg, None)));
    assert_eq!(asked, [ReceiptEvent::Timeout]);
    assert_eq!(fixture.sent.last().map(|(peer, sent, leg)| (*peer, sent.id, *leg)), Some((SECOND, id, 1)));
    id
}

#[test]
fn nothing_is_asked_without_a_policy() {
    let mut fixture = EngineFixture::with_dlrs(Settings::default(), true);
    link_up(&mut fixture);
    let id = submit(&mut fixture);
    accept(&mut fixture, id, "n1");
    dlr(&mut fixture, FIRST, "n1", DlrState::Delivered);
    assert!(fixture.receipts.is_empty());
    assert_eq!(
        (fixture.finished[&id].state, dlrs(&mut fixture)),
        (FinalState::Delivered, vec![(DlrState::Delivered, 5)])
    );
}

#[test]
fn a_policy_that_accepts_changes_nothing_and_writes_nothing() {
    let mut fixture = fixture();
    let id = submit(&mut fixture);
    accept(&mut fixture, id, "n1");
    let before = fixture.progress_on_disk(id).cloned();
    decide(&mut fixture, Some(&decision(ReceiptVerdict::Accept, None)));
    assert_eq!(fixture.progress_on_disk(id).cloned(), before);
    fixture.answers.clear();
    dlr(&mut fixture, FIRST, "n1", DlrState::Undeliverable);
    assert!(fixture.answers.is_empty(), "the peer is answered after the decision");
    let (_, _, submission, event) = fixture.receipts[0];
    assert_eq!((submission.peer, submission.leg, submission.attempts), (FIRST, (0, 2), 1));
    let ReceiptEvent::Dlr(facts) = event else { panic!("{event:?}") };
    assert_eq!((facts.is_final, facts.state, facts.error), (true, DlrState::Undeliverable, 5));
    decide(&mut fixture, None);
    assert!(matches!(fixture.answers[..], [EngineAnswer::DlrRecorded]));
    assert_eq!(fixture.finished[&id].state, FinalState::Failed);
    assert_eq!(dlrs(&mut fixture), [(DlrState::Undeliverable, 5)]);
}

#[test]
fn the_next_leg_follows_a_timeout_and_a_late_delivery_wins() {
    for late_first in [true, false] {
        let mut fixture = fixture();
        let id = message_on_second_leg(&mut fixture);
        // While the message is on the link, the late DLR waits for the outcome.
        dlr(&mut fixture, FIRST, "n1", DlrState::Undeliverable);
        if late_first {
            dlr(&mut fixture, FIRST, "n1", DlrState::Delivered);
            assert!(fixture.finished.is_empty());
        }
        accept(&mut fixture, id, "s1");
        decide(&mut fixture, Some(&decision(ReceiptVerdict::Accept, None)));
        let steps =
            |fixture: &EngineFixture| fixture.finished.get(&id).map(|ended| (ended.state, ended.peer));
        assert_eq!(steps(&fixture), None, "a state that is final is not replaced by a later one");
        dlr(&mut fixture, SECOND, "s1", DlrState::Delivered);
        decide(&mut fixture, Some(&decision(ReceiptVerdict::Accept, None)));
        assert_eq!(steps(&fixture), Some((FinalState::Delivered, Some(SECOND))));
        assert_eq!(dlrs(&mut fixture), [(DlrState::Delivered, 5)]);
        let late = LateDlrReceived { peer: FIRST, state: DlrState::Undeliverable as u8, error: 5 };
        let kinds: Vec<StepKind> = fixture.steps(id);
        assert!(kinds.contains(&late) && kinds.contains(&DlrOverdue), "{kinds:#?}");
        assert!(kinds.contains(&Decided { hook: Hook::Receipt, by: by(), note: None }), "{kinds:#?}");
    }
}

#[test]
fn one_final_dlr_whichever_leg_delivers() {
    for crash in [false, true] {
        let mut fixture = fixture();
        let id = message_on_second_leg(&mut fixture);
        accept(&mut fixture, id, "s1");
        if crash {
            fixture.crash();
            link_up(&mut fixture);
        }
        decide(&mut fixture, Some(&decision(ReceiptVerdict::Accept, None)));
        dlr(&mut fixture, FIRST, "n1", DlrState::Delivered);
        let ended = &fixture.finished[&id];
        assert_eq!((ended.state, ended.peer, ended.error), (FinalState::Delivered, Some(FIRST), 5));
        assert_eq!(ended.peer_id, PeerMessageId::new(b"n1"));
        dlr(&mut fixture, SECOND, "s1", DlrState::Undeliverable);
        fixture.pass(Duration::from_secs(7_200));
        assert!(fixture.receipts.is_empty());
        assert_eq!(dlrs(&mut fixture), [(DlrState::Delivered, 5)], "crash: {crash}");
        assert_eq!(fixture.engine.totals().late_dlrs, 1);
        assert_eq!(fixture.engine.live(), 0);
    }
}

#[test]
fn a_wait_survives_a_crash_and_does_not_begin_anew() {
    let mut fixture = fixture();
    let id = waiting(&mut fixture);
    fixture.pass(WAIT / 2);
    fixture.crash();
    link_up(&mut fixture);
    assert!(fixture.receipts.is_empty(), "the wait is recorded");
    fixture.pass(WAIT / 2 - Duration::from_secs(1));
    assert!(fixture.receipts.is_empty());
    fixture.pass(Duration::from_secs(1));
    // A crash between the question and its answer: it is asked again.
    fixture.crash();
    link_up(&mut fixture);
    let asked = decide(&mut fixture, Some(&decision(ReceiptVerdict::Accept, None)));
    assert_eq!(asked, [ReceiptEvent::Timeout]);
    fixture.crash();
    assert!(fixture.receipts.is_empty(), "it was asked");
    assert_eq!(fixture.engine.message(id).unwrap().state, MessageState::AwaitingDlr);
}

#[test]
fn a_crash_before_the_first_answer_asks_again() {
    let mut fixture = fixture();
    let id = submit(&mut fixture);
    accept(&mut fixture, id, "n1");
    fixture.crash();
    link_up(&mut fixture);
    let asked = decide(&mut fixture, Some(&decision(ReceiptVerdict::Accept, Some(WAIT))));
    assert_eq!(asked, [ReceiptEvent::Accepted]);
    fixture.pass(WAIT);
    assert_eq!(fixture.receipts.len(), 1);
}

#[test]
fn a_dlr_is_changed_or_not_believed() {
    let mut fixture = fixture();
    let id = waiting(&mut fixture);
    dlr(&mut fixture, FIRST, "n1", DlrState::Delivered);
    // Another DLR comes while the policy is asked.
    dlr(&mut fixture, FIRST, "n1", DlrState::Expired);
    decide(&mut fixture, Some(&decision(ReceiptVerdict::Suspect, None)));
    let suspected = fixture.engine.counts().find(|(peer, ..)| *peer == FIRST).unwrap().1.suspected;
    assert_eq!((suspected, dlrs(&mut fixture)), (1, vec![]));
    let remap = ReceiptVerdict::Remap { state: DlrState::Undeliverable, error: 12 };
    decide(&mut fixture, Some(&decision(remap, None)));
    assert_eq!(dlrs(&mut fixture), [(DlrState::Undeliverable, 12)]);
    let ended = &fixture.finished[&id];
    assert_eq!((ended.state, ended.error), (FinalState::Failed, 12));
    let kinds = fixture.steps(id);
    let decided = || Decided { hook: Hook::Receipt, by: by(), note: None };
    let expected = [
        DlrReceived { state: 2, error: 5 },
        decided(),
        DlrSuspected,
        DlrReceived { state: 3, error: 5 },
        decided(),
        DlrRemapped { state: 5, error: 12 },
    ];
    assert_eq!(kinds[kinds.len() - 6..], expected, "{kinds:#?}");
    assert!(matches!(kinds[kinds.len() - 7], AwaitingDlr { .. }), "{kinds:#?}");
}

#[test]
fn without_another_leg_the_dlr_counts() {
    let mut fixture = fixture();
    let id = message_on_second_leg(&mut fixture);
    accept(&mut fixture, id, "s1");
    decide(&mut fixture, Some(&decision(ReceiptVerdict::Accept, None)));
    dlr(&mut fixture, SECOND, "s1", DlrState::Rejected);
    decide(&mut fixture, Some(&decision(ReceiptVerdict::NextLeg, None)));
    assert_eq!(dlrs(&mut fixture), [(DlrState::Rejected, 5)]);
    assert_eq!(fixture.finished[&id].state, FinalState::Rejected);
}

#[test]
fn unbinding_the_policy_lets_everything_count_as_it_is() {
    let mut fixture = fixture();
    let unbound =
        || Event::HooksChanged { resolver: false, delivery_policy: false, receipt: false, biller: false };
    let asked = waiting(&mut fixture);
    dlr(&mut fixture, FIRST, "n1", DlrState::Delivered);
    let waits = submit(&mut fixture);
    accept(&mut fixture, waits, "n2");
    decide(&mut fixture, Some(&decision(ReceiptVerdict::Accept, Some(WAIT))));
    // The first message's DLR was accepted by that, too.
    assert_eq!(fixture.finished[&asked].state, FinalState::Delivered);
    dlr(&mut fixture, FIRST, "n2", DlrState::Enroute);
    assert_eq!(fixture.engine.pending_receipts(), 1);
    fixture.run([unbound()]);
    assert_eq!(fixture.engine.pending_receipts(), 0);
    fixture.receipts.clear();
    fixture.pass(WAIT * 2);
    assert!(fixture.receipts.is_empty() && !fixture.finished.contains_key(&waits));
    dlr(&mut fixture, FIRST, "n2", DlrState::Delivered);
    assert_eq!(fixture.finished[&waits].state, FinalState::Delivered);
}

#[test]
fn records_of_calls_are_kept_with_their_message_up_to_a_limit() {
    let mut fixture = fixture();
    let id = submit(&mut fixture);
    let record =
        |hook, octets: &[u8]| Event::CallRecorded { id, hook, record: CallRecord::Plain(octets.into()) };
    // The record of a submission comes before its outcome, and does not replace the step of the attempt.
    fixture.run([record(Hook::Peer, b"sent")]);
    accept(&mut fixture, id, "n1");
    // Records of receipt policies come before their decisions.
    fixture.run([record(Hook::Receipt, b"asked"), record(Hook::Receipt, &[0; 9_000])]);
    decide(&mut fixture, None);
    let sealed = SealedContent { key: 7, octets: bytes::Bytes::from_static(b"secret") };
    fixture.run([Event::CallRecorded { id, hook: Hook::Receipt, record: CallRecord::Sealed(sealed) }]);
    fixture.run((0..20).map(|_| record(Hook::Receipt, b"more")));
    dlr(&mut fixture, FIRST, "n1", DlrState::Delivered);
    decide(&mut fixture, None);
    let kinds = fixture.steps(id);
    let sent = StepKind::CallRecorded { hook: Hook::Peer, record: b"sent".as_slice().into() };
    let asked = StepKind::CallRecorded { hook: Hook::Receipt, record: b"asked".as_slice().into() };
    assert!(matches!(kinds[0], StepKind::Submitted { peer: FIRST, attempt: 1 }), "{kinds:?}");
    assert_eq!(kinds[1], sent);
    assert!(matches!(kinds[2], StepKind::Responded { .. }), "{kinds:?}");
    assert_eq!(kinds[3], asked);
    let sealed =
        StepKind::SealedCallRecorded { hook: Hook::Receipt, key: 7, record: b"secret".as_slice().into() };
    assert_eq!(kinds[4], sealed);
    assert_eq!(kinds.iter().filter(|kind| kind.is_record()).count(), FinalRecord::MAX_RECORDED_CALLS);
    assert!(matches!(kinds.last(), Some(DlrReceived { .. })), "{kinds:?}");
    // The message is gone.
    fixture.run([record(Hook::Receipt, b"late"), record(Hook::Peer, b"late")]);
}
