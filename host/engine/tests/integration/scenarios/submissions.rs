//! Submissions to several destinations: one id refers to all of them in queries, cancellations and DLRs.

use crate::scenarios::fixture::{ACCOUNT, EngineFixture, FIRST, REPLY, message};
use engine::{EngineAnswer, EngineCommand, Event, QueriedState, Settings};
use model::{
    Address, DlrRequest, DlrState, FinalState, Leg, Message, MessageId, MessageKind, Outcome, PeerId,
    Refusal, RejectReason, SUBMISSION_IDS, Text, Verdict,
};
use std::time::Duration;

const SOURCE: &[u8] = b"10655";

fn to(number: &str) -> Message {
    Message { dlr_request: DlrRequest::FINAL, ..message(number, vec![Leg::to(FIRST)]) }
}

/// With all content cached, and with none.
fn fixtures() -> [EngineFixture; 2] {
    [64 << 20, 0].map(|body_cache| EngineFixture::new(Settings { body_cache, ..Settings::default() }))
}

/// Submits to several destinations under one id.
fn submit_results(fixture: &mut EngineFixture, messages: Vec<Message>) -> Vec<Result<MessageId, Refusal>> {
    fixture.run([Event::AcceptMany { messages, shared_id: true, key: None, reply: REPLY }]);
    match fixture.answers.pop() {
        Some(EngineAnswer::AcceptedMany(results)) => results,
        other => panic!("{other:?}"),
    }
}

fn submit(fixture: &mut EngineFixture, numbers: &[&str]) -> Vec<MessageId> {
    let messages = numbers.iter().map(|number| to(number)).collect();
    submit_results(fixture, messages).into_iter().map(Result::unwrap).collect()
}

fn answer_to(fixture: &mut EngineFixture, event: Event) -> EngineAnswer {
    fixture.run([event]);
    fixture.answers.pop().unwrap()
}

fn query(fixture: &mut EngineFixture, id: MessageId) -> EngineAnswer {
    let source = Some(Address::new(0, 1, SOURCE));
    answer_to(fixture, Event::Query { origin: ACCOUNT, id, source, reply: REPLY })
}

fn cancel(fixture: &mut EngineFixture, id: MessageId, destination: Option<&str>) -> EngineAnswer {
    let source = Some(Address::new(0, 1, SOURCE));
    let destination = destination.map(Address::international);
    answer_to(fixture, Event::Cancel { origin: ACCOUNT, id, source, destination, reply: REPLY })
}

fn enroute(id: MessageId) -> EngineAnswer {
    EngineAnswer::State(QueriedState { id, state: DlrState::Enroute, final_at: None, error: 0 })
}

fn delivered() -> Outcome {
    Outcome::Accepted { ids: Vec::new() }
}

/// The DLRs sent: the id of the message of each, and the id that its submitter sees.
fn dlrs(fixture: &mut EngineFixture) -> Vec<(MessageId, MessageId)> {
    fixture.link_up(ACCOUNT, 10);
    let mut dlrs = Vec::new();
    for (_, message, _) in &fixture.sent {
        if let MessageKind::Dlr(dlr) = &message.kind {
            dlrs.push((dlr.of, message.submission_id()));
        }
    }
    dlrs.sort_unstable();
    dlrs
}

#[test]
fn the_first_accepted_message_gives_the_submission_its_id() {
    let mut fixture = EngineFixture::new(Settings::default());
    let refused = Message {
        routed: model::RoutingDecision::new(
            Verdict::Reject(RejectReason::NoRoute),
            crate::scenarios::fixture::by(),
        ),
        ..to("1")
    };
    let results = submit_results(&mut fixture, vec![refused.clone(), to("2"), refused, to("3")]);
    let ids: Vec<MessageId> = results.iter().filter_map(|result| result.ok()).collect();
    assert_eq!(ids, [MessageId::FIRST, MessageId(MessageId::FIRST.0 + 1)]);
    for id in ids {
        assert_eq!(fixture.message_on_disk(id).submission, Some(MessageId::FIRST));
    }
    let alone = fixture.submit(to("4")).unwrap();
    assert_eq!(fixture.message_on_disk(alone).submission, None);
    let only = submit(&mut fixture, &["5"])[0];
    assert_eq!(fixture.message_on_disk(only).submission, None);
}

#[test]
fn without_a_shared_id_each_message_is_alone() {
    let mut fixture = EngineFixture::new(Settings::default());
    let messages = vec![to("1"), to("2")];
    fixture.run([Event::AcceptMany { messages, shared_id: false, key: None, reply: REPLY }]);
    assert_eq!(fixture.message_on_disk(MessageId::FIRST).submission, None);
    let many = (0..=SUBMISSION_IDS).map(|number| to(&number.to_string())).collect();
    let results = submit_results(&mut fixture, many);
    assert_eq!(fixture.message_on_disk(results[1].unwrap()).submission, None, "too many for one id");
}

#[test]
fn a_submission_is_enroute_until_its_last_message_has_ended() {
    for mut fixture in fixtures() {
        let ids = submit(&mut fixture, &["1", "2", "3"]);
        assert_eq!(query(&mut fixture, ids[0]), enroute(ids[0]));
        fixture.link_up(FIRST, 10);
        fixture.answer(ids[0], delivered());
        fixture.answer(ids[2], delivered());
        assert_eq!(query(&mut fixture, ids[0]), enroute(ids[0]));
        fixture.crash();
        assert_eq!(
            query(&mut fixture, ids[0]),
            enroute(ids[0]),
            "its first message has ended, its second not"
        );
        // The query fails for another account, and with another source.
        let source = Some(Address::new(0, 1, b"1"));
        let other = Event::Query { origin: ACCOUNT, id: ids[0], source, reply: REPLY };
        assert_eq!(answer_to(&mut fixture, other), EngineAnswer::Refused(Refusal::UnknownMessage));
        let other = Event::Query { origin: PeerId(7), id: ids[0], source: None, reply: REPLY };
        assert_eq!(answer_to(&mut fixture, other), EngineAnswer::Refused(Refusal::UnknownMessage));
        fixture.link_up(FIRST, 10);
        fixture.pass(Duration::from_secs(60));
        fixture.answer(ids[1], delivered());
        fixture.look_ups.clear();
        let source = Some(Address::new(0, 1, SOURCE));
        fixture.run([Event::Query { origin: ACCOUNT, id: ids[0], source, reply: REPLY }]);
        assert!(
            matches!(fixture.look_ups.as_slice(), [EngineCommand::LookUp { id, too_late: None, .. }] if *id == ids[0])
        );
    }
}

#[test]
fn every_dlr_carries_the_submissions_id() {
    for mut fixture in fixtures() {
        let ids = submit(&mut fixture, &["1", "2", "3"]);
        let alone = fixture.submit(to("4")).unwrap();
        fixture.link_up(FIRST, 10);
        fixture.answer(ids[0], delivered());
        fixture.crash();
        fixture.link_up(FIRST, 10);
        fixture.pass(Duration::from_secs(60));
        for id in [ids[1], ids[2], alone] {
            fixture.answer(id, delivered());
        }
        let shown = [(ids[0], ids[0]), (ids[1], ids[0]), (ids[2], ids[0]), (alone, alone)];
        assert_eq!(dlrs(&mut fixture), shown);
    }
}

#[test]
fn cancelling_a_submission_ends_all_of_it_that_waits() {
    for mut fixture in fixtures() {
        let ids = submit(&mut fixture, &["1", "2", "3"]);
        fixture.link_up(FIRST, 1);
        assert_eq!(fixture.on_links(), [ids[0]]);
        assert_eq!(cancel(&mut fixture, ids[0], None), EngineAnswer::Done);
        let ended: Vec<_> = fixture.finished.iter().map(|(id, ended)| (*id, ended.state)).collect();
        assert_eq!(ended, [(ids[1], FinalState::Cancelled), (ids[2], FinalState::Cancelled)]);
        assert_eq!(cancel(&mut fixture, ids[0], None), EngineAnswer::Refused(Refusal::WrongState));
        fixture.answer(ids[0], delivered());
        let shown = [(ids[0], ids[0]), (ids[1], ids[0]), (ids[2], ids[0])];
        assert_eq!(dlrs(&mut fixture), shown);
    }
}

#[test]
fn cancelling_a_submission_to_one_destination_leaves_the_others() {
    for mut fixture in fixtures() {
        let ids = submit(&mut fixture, &["1", "2", "3", "2"]);
        fixture.crash();
        let other = Event::Cancel {
            origin: ACCOUNT,
            id: ids[0],
            source: Some(Address::new(0, 1, b"1")),
            destination: Some(Address::international("2")),
            reply: REPLY,
        };
        assert_eq!(answer_to(&mut fixture, other), EngineAnswer::Refused(Refusal::UnknownMessage));
        assert_eq!(cancel(&mut fixture, ids[0], Some("2")), EngineAnswer::Done);
        assert_eq!(fixture.finished.keys().copied().collect::<Vec<_>>(), [ids[1], ids[3]]);
        let answer = cancel(&mut fixture, ids[0], Some("2"));
        assert_eq!(answer, EngineAnswer::Refused(Refusal::WrongState));
        assert_eq!(cancel(&mut fixture, ids[0], Some("9")), EngineAnswer::Refused(Refusal::WrongState));
        // A message that was submitted alone has its own id.
        let alone = fixture.submit(to("4")).unwrap();
        assert_eq!(cancel(&mut fixture, alone, Some("9")), EngineAnswer::Done);
    }
}

#[test]
fn a_submission_to_several_destinations_is_not_replaced() {
    for mut fixture in fixtures() {
        let ids = submit(&mut fixture, &["1", "2"]);
        let replace = |id| Event::Replace {
            origin: ACCOUNT,
            id,
            source: Address::new(0, 1, SOURCE),
            text: Text::default(),
            scheduled: None,
            expires_at: None,
            dlr_request: DlrRequest::NONE,
            reply: REPLY,
        };
        assert_eq!(answer_to(&mut fixture, replace(ids[0])), EngineAnswer::Refused(Refusal::WrongState));
        let alone = fixture.submit(to("4")).unwrap();
        assert_eq!(answer_to(&mut fixture, replace(alone)), EngineAnswer::Done);
    }
}
