//! DLRs, uncertain messages and orphan DLRs when a peer's group changes while messages wait.

use crate::scenarios::fixture::{EngineFixture, FIRST, REPLY, SECOND, message};
use engine::{EngineAnswer, Event, PeerSettings, Settings, UncertainPolicy};
use model::{
    AddressBytes, Dlr, DlrRequest, DlrState, FinalState, Leg, LinkId, MessageId, Outcome, PeerId,
    PeerMessageId,
};

fn fixture() -> EngineFixture {
    EngineFixture::new(Settings::default())
}

fn settings(peer: PeerId, group: u32) -> Event {
    let mut settings = PeerSettings::new(peer);
    settings.group = group;
    settings.uncertainty = UncertainPolicy::AwaitDlr;
    Event::Peer(settings)
}

fn delivered(id: &[u8]) -> Dlr {
    Dlr {
        id: PeerMessageId::new(id),
        state: DlrState::Delivered,
        intermediate: false,
        error: 0,
        network_error: None,
        done_at: None,
        from: AddressBytes::from_slice(b"491700000001"),
        to: AddressBytes::from_slice(b"10655"),
    }
}

/// A message on the first peer's link.
fn sent(fixture: &mut EngineFixture) -> MessageId {
    let mut message = message("491700000001", vec![Leg::to(FIRST)]);
    message.dlr_request = DlrRequest::FINAL;
    fixture.link_up(FIRST, 10);
    fixture.submit(message).unwrap()
}

fn receipt_on(fixture: &mut EngineFixture, peer: PeerId, id: &[u8]) {
    fixture.run([Event::Dlr { peer, dlr: delivered(id), reply: REPLY }]);
    assert!(matches!(fixture.answers.pop(), Some(EngineAnswer::DlrRecorded)));
}

fn is_delivered(fixture: &EngineFixture, id: MessageId) -> bool {
    fixture.finished.get(&id).is_some_and(|ended| ended.state == FinalState::Delivered)
}

#[test]
fn a_dlr_finds_its_message_after_the_group_has_another_number() {
    let mut fixture = fixture();
    fixture.run([settings(FIRST, 7), settings(SECOND, 7)]);
    let id = sent(&mut fixture);
    fixture.answer(id, Outcome::Accepted { ids: vec![PeerMessageId::new(b"4711")] });
    fixture.run([settings(FIRST, 8), settings(SECOND, 8)]);
    receipt_on(&mut fixture, SECOND, b"4711");
    assert!(is_delivered(&fixture, id), "{:?}", fixture.finished.get(&id));
}

#[test]
fn an_uncertain_message_is_found_by_its_addresses_after_the_group_changed() {
    let mut fixture = fixture();
    fixture.run([settings(FIRST, 7), settings(SECOND, 9)]);
    let id = sent(&mut fixture);
    fixture.run([Event::LinkDown { link: LinkId(FIRST.0.into()) }]);
    assert_eq!(fixture.status(FIRST).uncertain, 1);
    fixture.run([settings(FIRST, 9)]);
    receipt_on(&mut fixture, SECOND, b"unknown to us");
    assert!(is_delivered(&fixture, id), "{:?}", fixture.finished.get(&id));
}

#[test]
fn an_orphan_dlr_matches_after_its_peer_joins_the_group() {
    let mut fixture = fixture();
    fixture.run([settings(FIRST, 7), settings(SECOND, 9)]);
    let id = sent(&mut fixture);
    fixture.answer(id, Outcome::Accepted { ids: vec![PeerMessageId::new(b"4711")] });
    receipt_on(&mut fixture, SECOND, b"4711");
    assert!(!is_delivered(&fixture, id), "it came on a bind of another group");
    fixture.run([settings(SECOND, 7)]);
    assert!(is_delivered(&fixture, id), "{:?}", fixture.finished.get(&id));
}
