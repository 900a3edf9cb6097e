//! Messages whose content is unreadable after a restart, since its key is missing.

use crate::scenarios::fixture::{EngineFixture, FIRST, message};
use bytes::Bytes;
use engine::{CONTENT_LOST_ERROR, Event, Settings};
use model::{FinalState, Leg, Message, Outcome, PeerMessageId, SealedContent, StepKind};
use std::sync::Arc;

/// The message as a store without the key reads it.
fn without_content(message: &Message) -> Message {
    let mut locked = message.clone();
    locked.clear_content();
    locked.sealed = Some(Box::new(SealedContent { key: 7, octets: Bytes::from_static(b"?") }));
    locked
}

fn lose_contents(fixture: &mut EngineFixture) {
    for message in fixture.messages.values_mut() {
        *message = Arc::new(without_content(message));
    }
}

#[test]
fn a_waiting_message_without_its_content_fails_and_is_never_sent() {
    let mut fixture = EngineFixture::new(Settings::default());
    let ids = ["8613", "8614"].map(|number| fixture.submit(message(number, vec![Leg::to(FIRST)])).unwrap());
    lose_contents(&mut fixture);
    fixture.crash();
    fixture.link_up(FIRST, 10);
    assert!(fixture.sent.is_empty() && fixture.messages.is_empty());
    for id in ids {
        let ended = &fixture.finished[&id];
        assert_eq!((ended.state, ended.error), (FinalState::Failed, CONTENT_LOST_ERROR));
        assert!(ended.steps.iter().any(|step| matches!(step.kind, StepKind::ContentErased { .. })));
    }
}

#[test]
fn a_message_that_may_have_been_delivered_is_not_failed_before_that_is_known() {
    // A message that waits for a DLR.
    let mut fixture = EngineFixture::with_dlrs(Settings::default(), true);
    let mut sent = message("8613", vec![Leg::to(FIRST)]);
    sent.dlr_request = model::DlrRequest::FINAL;
    let awaiting = fixture.submit(sent).unwrap();
    fixture.link_up(FIRST, 10);
    fixture.answer(awaiting, Outcome::Accepted { ids: vec![PeerMessageId::new(b"n1")] });
    assert!(fixture.messages.contains_key(&awaiting) && !fixture.finished.contains_key(&awaiting));
    lose_contents(&mut fixture);
    fixture.crash();
    assert!(fixture.messages.contains_key(&awaiting), "it waits for its DLR");

    // An uncertain message, which its peer's policy would send again: without content, that is impossible.
    let mut fixture = EngineFixture::new(Settings::default());
    let uncertain = fixture.submit(message("8613", vec![Leg::to(FIRST)])).unwrap();
    fixture.link_up(FIRST, 10);
    assert_eq!(fixture.on_links(), [uncertain]);
    lose_contents(&mut fixture);
    fixture.crash();
    fixture.run([Event::SettleUncertain { id: uncertain, again: true, reply: super::fixture::REPLY }]);
    fixture.link_up(FIRST, 10);
    fixture.pass(std::time::Duration::from_secs(60));
    assert!(fixture.sent.is_empty());
    assert_eq!(fixture.finished[&uncertain].error, CONTENT_LOST_ERROR);
}
