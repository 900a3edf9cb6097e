//! DLRs, doubts and parked DLRs when the group of a peer changes while messages wait.

use crate::house::{FIRST, House, REPLY, SECOND, message};
use engine::{Answer, Event, PeerSettings, Settings, Uncertainty};
use model::{
    AddressBytes, FinalState, Leg, LinkId, MessageId, Outcome, PeerId, PeerMessageId, Receipt,
    ReceiptRequest, ReceiptState,
};

fn house() -> House {
    House::new(Settings::default())
}

fn settings(peer: PeerId, group: u32) -> Event {
    let mut settings = PeerSettings::new(peer);
    settings.group = group;
    settings.uncertainty = Uncertainty::AwaitReceipt;
    Event::Peer(settings)
}

fn delivered(id: &[u8]) -> Receipt {
    Receipt {
        id: PeerMessageId::new(id),
        state: ReceiptState::Delivered,
        intermediate: false,
        error: 0,
        network_error: None,
        done_at: None,
        from: AddressBytes::from_slice(b"491700000001"),
        to: AddressBytes::from_slice(b"10655"),
    }
}

/// A message that the first peer has, on its link.
fn sent(house: &mut House) -> MessageId {
    let mut message = message("491700000001", vec![Leg::to(FIRST)]);
    message.receipts = ReceiptRequest::FINAL;
    house.link_up(FIRST, 10);
    house.submit(message).unwrap()
}

fn receipt_on(house: &mut House, peer: PeerId, id: &[u8]) {
    house.run([Event::Receipt { peer, receipt: delivered(id), reply: REPLY }]);
    assert!(matches!(house.answers.pop(), Some(Answer::ReceiptTaken)));
}

fn is_delivered(house: &House, id: MessageId) -> bool {
    house.finished.get(&id).is_some_and(|ended| ended.state == FinalState::Delivered)
}

#[test]
fn a_dlr_finds_its_message_after_the_group_has_another_number() {
    let mut house = house();
    house.run([settings(FIRST, 7), settings(SECOND, 7)]);
    let id = sent(&mut house);
    house.answer(id, Outcome::Accepted { ids: vec![PeerMessageId::new(b"4711")] });
    house.run([settings(FIRST, 8), settings(SECOND, 8)]);
    receipt_on(&mut house, SECOND, b"4711");
    assert!(is_delivered(&house, id), "{:?}", house.finished.get(&id));
}

#[test]
fn an_uncertain_message_is_found_by_its_addresses_after_the_group_changed() {
    let mut house = house();
    house.run([settings(FIRST, 7), settings(SECOND, 9)]);
    let id = sent(&mut house);
    house.run([Event::LinkDown { link: LinkId(FIRST.0.into()) }]);
    assert_eq!(house.status(FIRST).uncertain, 1);
    house.run([settings(FIRST, 9)]);
    receipt_on(&mut house, SECOND, b"unknown to us");
    assert!(is_delivered(&house, id), "{:?}", house.finished.get(&id));
}

#[test]
fn a_parked_dlr_meets_its_message_when_their_peers_come_into_one_group() {
    let mut house = house();
    house.run([settings(FIRST, 7), settings(SECOND, 9)]);
    let id = sent(&mut house);
    house.answer(id, Outcome::Accepted { ids: vec![PeerMessageId::new(b"4711")] });
    receipt_on(&mut house, SECOND, b"4711");
    assert!(!is_delivered(&house, id), "it came on a bind of another group");
    house.run([settings(SECOND, 7)]);
    assert!(is_delivered(&house, id), "{:?}", house.finished.get(&id));
}
