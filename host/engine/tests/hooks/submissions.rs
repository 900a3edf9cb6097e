//! Submissions to several destinations: one id stands for all of them in queries, cancellations and receipts.

use crate::house::{ACCOUNT, FIRST, House, REPLY, message};
use engine::{Answer, Command, Event, QueriedState, Settings};
use model::{
    Address, FinalState, Kind, Leg, Message, MessageId, Outcome, PeerId, ReceiptRequest, ReceiptState,
    Refusal, RejectReason, SUBMISSION_IDS, Text, Verdict,
};
use std::time::Duration;

const SOURCE: &[u8] = b"10655";

fn to(number: &str) -> Message {
    Message { receipts: ReceiptRequest::FINAL, ..message(number, vec![Leg::to(FIRST)]) }
}

/// With all content in memory, and with none.
fn houses() -> [House; 2] {
    [64 << 20, 0].map(|body_cache| House::new(Settings { body_cache, ..Settings::default() }))
}

/// Submits to several destinations under one id.
fn submit_results(house: &mut House, messages: Vec<Message>) -> Vec<Result<MessageId, Refusal>> {
    house.run([Event::AcceptMany { messages, shared_id: true, key: None, reply: REPLY }]);
    match house.answers.pop() {
        Some(Answer::AcceptedMany(results)) => results,
        other => panic!("{other:?}"),
    }
}

fn submit(house: &mut House, numbers: &[&str]) -> Vec<MessageId> {
    let messages = numbers.iter().map(|number| to(number)).collect();
    submit_results(house, messages).into_iter().map(Result::unwrap).collect()
}

fn asked(house: &mut House, event: Event) -> Answer {
    house.run([event]);
    house.answers.pop().unwrap()
}

fn query(house: &mut House, id: MessageId) -> Answer {
    let source = Some(Address::new(0, 1, SOURCE));
    asked(house, Event::Query { origin: ACCOUNT, id, source, reply: REPLY })
}

fn cancel(house: &mut House, id: MessageId, destination: Option<&str>) -> Answer {
    let source = Some(Address::new(0, 1, SOURCE));
    let destination = destination.map(Address::international);
    asked(house, Event::Cancel { origin: ACCOUNT, id, source, destination, reply: REPLY })
}

fn enroute(id: MessageId) -> Answer {
    Answer::State(QueriedState { id, state: ReceiptState::Enroute, final_at: None, error: 0 })
}

fn delivered() -> Outcome {
    Outcome::Accepted { ids: Vec::new() }
}

/// Receipts of ours that have left: the message that each speaks of, and the id that its submitter sees.
fn receipts(house: &mut House) -> Vec<(MessageId, MessageId)> {
    house.link_up(ACCOUNT, 10);
    let mut told = Vec::new();
    for (_, message, _) in &house.sent {
        if let Kind::Receipt(receipt) = &message.kind {
            told.push((receipt.of, message.submitters_id()));
        }
    }
    told.sort_unstable();
    told
}

#[test]
fn the_first_accepted_message_gives_the_submission_its_id() {
    let mut house = House::new(Settings::default());
    let refused = Message {
        routed: model::Routed::new(Verdict::Reject(RejectReason::NoRoute), crate::house::by()),
        ..to("1")
    };
    let results = submit_results(&mut house, vec![refused.clone(), to("2"), refused, to("3")]);
    let ids: Vec<MessageId> = results.iter().filter_map(|result| result.ok()).collect();
    assert_eq!(ids, [MessageId::FIRST, MessageId(MessageId::FIRST.0 + 1)]);
    for id in ids {
        assert_eq!(house.message_on_disk(id).submission, Some(MessageId::FIRST));
    }
    let alone = house.submit(to("4")).unwrap();
    assert_eq!(house.message_on_disk(alone).submission, None);
    let only = submit(&mut house, &["5"])[0];
    assert_eq!(house.message_on_disk(only).submission, None);
}

#[test]
fn without_a_shared_id_each_message_is_alone() {
    let mut house = House::new(Settings::default());
    let messages = vec![to("1"), to("2")];
    house.run([Event::AcceptMany { messages, shared_id: false, key: None, reply: REPLY }]);
    assert_eq!(house.message_on_disk(MessageId::FIRST).submission, None);
    let many = (0..=SUBMISSION_IDS).map(|number| to(&number.to_string())).collect();
    let results = submit_results(&mut house, many);
    assert_eq!(house.message_on_disk(results[1].unwrap()).submission, None, "too many for one id");
}

#[test]
fn a_submission_is_on_its_way_until_its_last_message_has_ended() {
    for mut house in houses() {
        let ids = submit(&mut house, &["1", "2", "3"]);
        assert_eq!(query(&mut house, ids[0]), enroute(ids[0]));
        house.link_up(FIRST, 10);
        house.answer(ids[0], delivered());
        house.answer(ids[2], delivered());
        assert_eq!(query(&mut house, ids[0]), enroute(ids[0]));
        house.crash();
        assert_eq!(query(&mut house, ids[0]), enroute(ids[0]), "its first message has ended, its second not");
        // Nobody else's, and not under another source.
        let source = Some(Address::new(0, 1, b"1"));
        let other = Event::Query { origin: ACCOUNT, id: ids[0], source, reply: REPLY };
        assert_eq!(asked(&mut house, other), Answer::Refused(Refusal::UnknownMessage));
        let other = Event::Query { origin: PeerId(7), id: ids[0], source: None, reply: REPLY };
        assert_eq!(asked(&mut house, other), Answer::Refused(Refusal::UnknownMessage));
        house.link_up(FIRST, 10);
        house.pass(Duration::from_secs(60));
        house.answer(ids[1], delivered());
        house.look_ups.clear();
        let source = Some(Address::new(0, 1, SOURCE));
        house.run([Event::Query { origin: ACCOUNT, id: ids[0], source, reply: REPLY }]);
        assert!(
            matches!(house.look_ups.as_slice(), [Command::LookUp { id, too_late: None, .. }] if *id == ids[0])
        );
    }
}

#[test]
fn every_receipt_carries_the_submissions_id() {
    for mut house in houses() {
        let ids = submit(&mut house, &["1", "2", "3"]);
        let alone = house.submit(to("4")).unwrap();
        house.link_up(FIRST, 10);
        house.answer(ids[0], delivered());
        house.crash();
        house.link_up(FIRST, 10);
        house.pass(Duration::from_secs(60));
        for id in [ids[1], ids[2], alone] {
            house.answer(id, delivered());
        }
        let shown = [(ids[0], ids[0]), (ids[1], ids[0]), (ids[2], ids[0]), (alone, alone)];
        assert_eq!(receipts(&mut house), shown);
    }
}

#[test]
fn cancelling_a_submission_ends_all_of_it_that_waits() {
    for mut house in houses() {
        let ids = submit(&mut house, &["1", "2", "3"]);
        house.link_up(FIRST, 1);
        assert_eq!(house.on_links(), [ids[0]]);
        assert_eq!(cancel(&mut house, ids[0], None), Answer::Done);
        let ended: Vec<_> = house.finished.iter().map(|(id, ended)| (*id, ended.state)).collect();
        assert_eq!(ended, [(ids[1], FinalState::Cancelled), (ids[2], FinalState::Cancelled)]);
        assert_eq!(cancel(&mut house, ids[0], None), Answer::Refused(Refusal::WrongState));
        house.answer(ids[0], delivered());
        let shown = [(ids[0], ids[0]), (ids[1], ids[0]), (ids[2], ids[0])];
        assert_eq!(receipts(&mut house), shown);
    }
}

#[test]
fn cancelling_a_submission_to_one_destination_leaves_the_others() {
    for mut house in houses() {
        let ids = submit(&mut house, &["1", "2", "3", "2"]);
        house.crash();
        let other = Event::Cancel {
            origin: ACCOUNT,
            id: ids[0],
            source: Some(Address::new(0, 1, b"1")),
            destination: Some(Address::international("2")),
            reply: REPLY,
        };
        assert_eq!(asked(&mut house, other), Answer::Refused(Refusal::UnknownMessage));
        assert_eq!(cancel(&mut house, ids[0], Some("2")), Answer::Done);
        assert_eq!(house.finished.keys().copied().collect::<Vec<_>>(), [ids[1], ids[3]]);
        let answer = cancel(&mut house, ids[0], Some("2"));
        assert_eq!(answer, Answer::Refused(Refusal::WrongState));
        assert_eq!(cancel(&mut house, ids[0], Some("9")), Answer::Refused(Refusal::WrongState));
        // A message that was submitted alone is named by its id.
        let alone = house.submit(to("4")).unwrap();
        assert_eq!(cancel(&mut house, alone, Some("9")), Answer::Done);
    }
}

#[test]
fn a_submission_to_several_destinations_is_not_replaced() {
    for mut house in houses() {
        let ids = submit(&mut house, &["1", "2"]);
        let replace = |id| Event::Replace {
            origin: ACCOUNT,
            id,
            source: Address::new(0, 1, SOURCE),
            text: Text::default(),
            scheduled: None,
            expires_at: None,
            receipts: ReceiptRequest::NONE,
            reply: REPLY,
        };
        assert_eq!(asked(&mut house, replace(ids[0])), Answer::Refused(Refusal::WrongState));
        let alone = house.submit(to("4")).unwrap();
        assert_eq!(asked(&mut house, replace(alone)), Answer::Done);
    }
}
