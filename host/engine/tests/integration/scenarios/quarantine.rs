//! Messages that a screen stops: quarantine, release, purge, and messages dropped with a DLR.

use crate::scenarios::fixture::{ACCOUNT, EngineFixture, FIRST, REPLY, VALIDITY, by, message};
use bytes::Bytes;
use engine::{AdminAction, EngineAnswer, Event, MessageState, Settings};
use model::{
    Address, AdminActionKind, DlrRequest, DlrState, DroppedAs, FinalState, Hook, Leg, Message, MessageId,
    MessageKind, Refusal, RoutingDecision, ScreenVerdict, Screening, StepKind, Text, Verdict,
};
use std::time::Duration;

fn screened(verdict: ScreenVerdict) -> Message {
    let mut message = message("8613", vec![Leg::to(FIRST)]);
    message.dlr_request = DlrRequest::FINAL;
    let screening = Some(Box::new(Screening {
        verdict,
        by: by(),
        note: Some("a listed word".into()),
        changes: None,
        submitted_text: None,
        host_calls: None,
    }));
    let routed = verdict.verdict_without_routing().unwrap_or_else(|| message.routed.verdict.clone());
    message.routed = RoutingDecision { screening, ..RoutingDecision::new(routed, by()) };
    message
}

/// With all content cached, and with none.
fn fixtures() -> [EngineFixture; 2] {
    [64 << 20, 0].map(|body_cache| {
        let mut fixture = EngineFixture::new(Settings { body_cache, ..Settings::default() });
        fixture.link_up(FIRST, 10);
        fixture
    })
}

fn decide(fixture: &mut EngineFixture, id: MessageId, action: AdminAction) -> EngineAnswer {
    fixture.run([Event::AdminAction { id, action, by: "ada".into(), reply: REPLY }]);
    fixture.answers.pop().unwrap()
}

/// Answers the request to route a message, as a router that forwards it.
fn route(fixture: &mut EngineFixture) -> Message {
    let asked = fixture.routes.pop().unwrap();
    let mut routed = asked.routed.clone();
    routed.verdict = Verdict::Forward(vec![Leg::to(FIRST)]);
    fixture.run([Event::Rerouted { id: asked.id, routed, text: None }]);
    Message::clone(&asked)
}

fn dlr_states(fixture: &mut EngineFixture) -> Vec<DlrState> {
    fixture.link_up(ACCOUNT, 10);
    let states = fixture.sent.iter().filter_map(|(_, message, _)| match &message.kind {
        MessageKind::Dlr(dlr) => Some(dlr.state),
        MessageKind::Text => None,
    });
    states.collect()
}

fn quarantined(fixture: &EngineFixture) -> Vec<MessageId> {
    fixture.engine.quarantined(None, MessageId(0), 10)
}

#[test]
fn a_released_message_is_routed_and_not_screened_again() {
    for mut fixture in fixtures() {
        let id = fixture.submit(screened(ScreenVerdict::Quarantine)).unwrap();
        assert_eq!(quarantined(&fixture), [id]);
        assert_eq!(fixture.engine.quarantined(Some(FIRST), MessageId(0), 10), []);
        assert_eq!(fixture.engine.message(id).unwrap().state, MessageState::Quarantined);
        fixture.pass(Duration::from_secs(3_600));
        assert!(fixture.sent.is_empty() && fixture.routes.is_empty());
        fixture.crash();
        fixture.link_up(FIRST, 10);
        assert_eq!(quarantined(&fixture), [id]);
        assert_eq!(decide(&mut fixture, id, AdminAction::Release), EngineAnswer::Done);
        assert_eq!(quarantined(&fixture), []);
        let refused = EngineAnswer::Refused(Refusal::WrongState);
        assert_eq!(decide(&mut fixture, id, AdminAction::Purge), refused);
        let asked = route(&mut fixture);
        assert_eq!(asked.routed.screening.unwrap().verdict, ScreenVerdict::Quarantine);
        fixture.link_up(ACCOUNT, 10);
        assert_eq!(fixture.deliver_all()[0], id);
        let steps = fixture.steps(id);
        assert!(
            matches!(&steps[0], StepKind::Decided { hook: Hook::Screen, note: Some(_), .. }),
            "{steps:?}"
        );
        assert_eq!(steps[1], StepKind::Quarantined);
        let released =
            |step: &StepKind| matches!(step, StepKind::AdminAction { action: AdminActionKind::Released, .. });
        assert!(released(&steps[2]), "{steps:?}");
        assert!(matches!(steps[3], StepKind::Rerouted { .. }), "{steps:?}");
    }
}

#[test]
fn a_release_survives_a_crash_before_the_message_is_routed() {
    for mut fixture in fixtures() {
        let id = fixture.submit(screened(ScreenVerdict::Quarantine)).unwrap();
        decide(&mut fixture, id, AdminAction::Release);
        fixture.crash();
        fixture.link_up(FIRST, 10);
        assert_eq!(quarantined(&fixture), []);
        fixture.pass(Duration::from_secs(1));
        route(&mut fixture);
        fixture.link_up(ACCOUNT, 10);
        assert_eq!(fixture.deliver_all()[0], id);
    }
}

#[test]
fn a_purged_or_expired_message_tells_its_submitter() {
    for mut fixture in fixtures() {
        let purged = fixture.submit(screened(ScreenVerdict::Quarantine)).unwrap();
        let expired = fixture.submit(screened(ScreenVerdict::Quarantine)).unwrap();
        assert_eq!(decide(&mut fixture, purged, AdminAction::Purge), EngineAnswer::Done);
        assert_eq!(fixture.finished[&purged].state, FinalState::Rejected);
        fixture.pass(VALIDITY + Duration::from_secs(120));
        assert_eq!(fixture.finished[&expired].state, FinalState::Expired);
        assert_eq!(dlr_states(&mut fixture), [DlrState::Rejected, DlrState::Expired]);
        assert_eq!(fixture.engine.quarantine_length(), 0);
    }
}

#[test]
fn a_dropped_message_ends_at_once_and_is_reported_as_the_screen_says() {
    for (shown, state) in [
        (DroppedAs::Delivered, DlrState::Delivered),
        (DroppedAs::Undeliverable, DlrState::Undeliverable),
        (DroppedAs::Rejected, DlrState::Rejected),
    ] {
        for mut fixture in fixtures() {
            let id = fixture.submit(screened(ScreenVerdict::Drop(shown))).unwrap();
            assert_eq!(fixture.finished[&id].state, FinalState::Rejected);
            assert_eq!(fixture.engine.totals().dropped_by_screens, 1);
            assert_eq!(dlr_states(&mut fixture), [state]);
            assert!(fixture.sent.iter().all(|(peer, _, _)| *peer == ACCOUNT));
        }
    }
}

fn replacement(id: MessageId) -> Event {
    Event::Replace {
        origin: ACCOUNT,
        id,
        source: Address::new(0, 1, b"10655"),
        text: Text { octets: Bytes::from_static(b"another text"), ..Text::default() },
        scheduled: None,
        expires_at: None,
        dlr_request: DlrRequest::FINAL,
        reply: REPLY,
    }
}

#[test]
fn a_replaced_text_is_screened_again() {
    let mut fixture = EngineFixture::new(Settings::default());
    let id = fixture.submit(screened(ScreenVerdict::Pass)).unwrap();
    fixture.run([replacement(id)]);
    assert_eq!(fixture.answers.pop(), Some(EngineAnswer::Done));
    // It waited for a link. Now it waits for the screens, also after a crash.
    fixture.crash();
    fixture.pass(Duration::from_secs(1));
    fixture.link_up(FIRST, 10);
    assert!(fixture.sent.is_empty());
    let asked = fixture.routes.pop().unwrap();
    assert_eq!((&asked.text.octets[..], &asked.routed.screening), (&b"another text"[..], &None));
    let stopped = screened(ScreenVerdict::Quarantine).routed;
    let text = Some(Text { octets: Bytes::from_static(b"a third text"), ..Text::default() });
    fixture.run([Event::Rerouted { id, routed: stopped, text }]);
    assert_eq!(quarantined(&fixture), [id]);
    assert_eq!(&fixture.message_on_disk(id).text.octets[..], b"a third text");
    // A text replaced in quarantine is not screened: an admin decides on it.
    fixture.run([replacement(id)]);
    assert_eq!((quarantined(&fixture), fixture.routes.len()), (vec![id], 0));
}

#[test]
fn without_a_screen_a_replaced_text_stays_in_its_queue() {
    let mut fixture = EngineFixture::new(Settings::default());
    let id = fixture.submit(message("8613", vec![Leg::to(FIRST)])).unwrap();
    fixture.run([replacement(id)]);
    assert!(fixture.routes.is_empty());
    fixture.link_up(FIRST, 10);
    assert_eq!(fixture.on_links(), [id]);
}
