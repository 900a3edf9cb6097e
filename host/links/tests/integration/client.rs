//! Links to SMSCs, which we dial.

use crate::support::{self, PEER, RawPeer, bound_peer, fixture, hello, is_nack, message};
use bytes::Bytes;
use engine::{EngineAnswer, EngineCommand, Event};
use links::BindMode::{Receiver, Transmitter};
use links::{LinkPhase, LinkRole, LongText, MessageIdForm};
use model::{Address, DlrState, ErrorClass, MessageId, Outcome, PeerMessageId, Refusal, RejectReason};
use smpp::{
    AlertNotification, CommandId, CommandStatus, DataSm, QuerySmResp, Request, Response, Sm, Tlvs, tag,
};
use std::sync::Arc;
use std::time::Duration;

fn id(text: &str) -> PeerMessageId {
    PeerMessageId::new(text.as_bytes())
}

async fn taken(raw: &mut RawPeer, text: &'static str) {
    let (header, _) = raw.sm().await;
    raw.respond(header, CommandStatus::ROK, &Response::id(text)).await;
}

#[tokio::test]
async fn check_100_a_submit_and_its_three_answers() {
    let (fixture, _smsc, mut raw, link) = bound_peer(|_| {}).await;
    fixture.send(link, message(1, b"Hello"));
    let (header, sm) = raw.sm().await;
    assert_eq!(header.command, CommandId::SUBMIT_SM);
    assert_eq!((sm.short_message.as_ref(), sm.registered_delivery), (&b"Hello"[..], 1));
    raw.respond(header, CommandStatus::ROK, &Response::id("0000012345")).await;
    assert_eq!(fixture.outcome().await, (MessageId(1), Outcome::Accepted { ids: vec![id("0000012345")] }));
    for (number, status, class) in [
        (2, CommandStatus::RTHROTTLED, ErrorClass::Throttled),
        (3, CommandStatus::RSUBMITFAIL, ErrorClass::Permanent),
        (4, CommandStatus::RMSGQFUL, ErrorClass::QueueFull),
        (5, CommandStatus(0xABCD), ErrorClass::Permanent),
    ] {
        fixture.send(link, message(number, b"Hello"));
        let (header, _) = raw.sm().await;
        raw.respond(header, status, &Response::Empty).await;
        let refused = Outcome::Refused { class, code: status.0, taken: Vec::new() };
        assert_eq!(fixture.outcome().await, (MessageId(number), refused));
    }
    let state = fixture.state(|state| state.link == Some(link)).await;
    assert_eq!((state.role, state.phase, state.peer), (LinkRole::Client, LinkPhase::Bound, PEER));
    assert_eq!((state.outbound.requests["submit_sm"], state.inbound.answers), (5, 5));
    assert!(state.round_trip.is_some() && state.inbound.errors[&0xABCD] == 1);
}

#[tokio::test]
async fn check_101_102_odd_ids() {
    let (fixture, _smsc, mut raw, link) = bound_peer(|_| {}).await;
    fixture.send(link, message(1, b"x"));
    let (header, _) = raw.sm().await;
    let head = [&[0, 0, 0, 16, 0x80, 0, 0, 4, 0, 0, 0, 0][..], &header.sequence.to_be_bytes()].concat();
    raw.write(&head).await;
    assert_eq!(fixture.outcome().await.1, Outcome::Accepted { ids: vec![id("")] });
    let long: &'static str = "a b-cdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWX\u{e9}";
    fixture.send(link, message(2, b"x"));
    taken(&mut raw, long).await;
    assert_eq!(fixture.outcome().await.1, Outcome::Accepted { ids: vec![id(long)] });
}

#[tokio::test]
async fn check_103_106_answers_in_reverse_order_and_a_nack() {
    let (fixture, _smsc, mut raw, link) = bound_peer(|_| {}).await;
    for number in 1..=10 {
        fixture.send(link, message(number, b"x"));
    }
    let mut headers = Vec::new();
    for _ in 0..10 {
        headers.push(raw.sm().await.0);
    }
    let first = headers.remove(0);
    for number in (2..=10_u64).rev() {
        let header = headers.pop().unwrap();
        raw.respond(header, CommandStatus::ROK, &Response::id(number.to_string())).await;
        let expected = Outcome::Accepted { ids: vec![id(&number.to_string())] };
        assert_eq!(fixture.outcome().await, (MessageId(number), expected));
    }
    let nack = smpp::Header { command: CommandId::GENERIC_NACK, ..first };
    raw.respond(nack, CommandStatus::RINVCMDID, &Response::Empty).await;
    let (number, outcome) = fixture.outcome().await;
    assert_eq!(number, MessageId(1));
    assert!(matches!(outcome, Outcome::Refused { code: 3, .. }));
}

#[tokio::test]
async fn check_104_105_unanswered_and_then_answered_after_all() {
    let (fixture, _smsc, mut raw, link) =
        bound_peer(|options| options.response_timeout = Duration::from_millis(50)).await;
    fixture.send(link, message(1, b"x"));
    let (header, _) = raw.sm().await;
    assert_eq!(
        fixture.outcome().await,
        (MessageId(1), Outcome::Unanswered { taken: Vec::new(), known: Vec::new() })
    );
    for _ in 0..2 {
        raw.respond(header, CommandStatus::ROK, &Response::id("late")).await;
    }
    assert_eq!(fixture.outcome().await, (MessageId(1), Outcome::Accepted { ids: vec![id("late")] }));
    fixture.send(link, message(2, b"x"));
    taken(&mut raw, "next").await;
    assert_eq!(fixture.outcome().await.0, MessageId(2), "the second of the late answers was ignored");
}

#[tokio::test]
async fn check_107_ten_on_the_wire_and_the_eleventh_waits() {
    let (fixture, _smsc, mut raw, link) = bound_peer(|options| options.window = 10).await;
    for number in 1..=11 {
        fixture.send(link, message(number, b"x"));
    }
    let mut headers = Vec::new();
    for _ in 0..10 {
        headers.push(raw.sm().await.0);
    }
    let enquiry = raw.request(&support::enquire()).await;
    assert_eq!(raw.answer().await.0.sequence, enquiry, "and no eleventh submit before it");
    raw.respond(headers[0], CommandStatus::ROK, &Response::id("1")).await;
    assert_eq!(raw.sm().await.1.short_message.as_ref(), b"x");
    fixture.state(|state| state.in_flight == 10 && state.blocked_by == links::LinkBlocker::PeerWindow).await;
}

#[tokio::test]
async fn check_110_a_peers_own_meaning_of_a_status() {
    let (fixture, _smsc, mut raw, link) = bound_peer(|options| {
        options.error_classes.insert(0x45, ErrorClass::Temporary);
        options.error_classes.insert(0x401, ErrorClass::Throttled);
    })
    .await;
    for (number, status, class) in [
        (1, 0x45, ErrorClass::Temporary),
        (2, 0x401, ErrorClass::Throttled),
        (3, 0x402, ErrorClass::Permanent),
    ] {
        fixture.send(link, message(number, b"x"));
        let (header, _) = raw.sm().await;
        raw.respond(header, CommandStatus(status), &Response::Empty).await;
        let refused = Outcome::Refused { class, code: status, taken: Vec::new() };
        assert_eq!(fixture.outcome().await, (MessageId(number), refused));
    }
}

#[tokio::test]
async fn check_111_a_lost_link_leaves_written_messages_in_doubt_and_returns_the_others() {
    let (fixture, smsc, mut raw, link) = bound_peer(|options| options.window = 7).await;
    for number in 1..=9 {
        fixture.send(link, message(number, b"x"));
    }
    for _ in 0..7 {
        raw.sm().await;
    }
    drop(raw);
    let mut outcomes = Vec::new();
    for _ in 0..9 {
        outcomes.push(fixture.outcome().await);
    }
    let unanswered = Outcome::Unanswered { taken: Vec::new(), known: Vec::new() };
    for (at, (number, outcome)) in outcomes.into_iter().enumerate() {
        assert_eq!(number, MessageId(at as u64 + 1));
        assert_eq!(outcome, if at < 7 { unanswered.clone() } else { Outcome::NotSent });
    }
    assert!(matches!(fixture.event().await, Event::LinkPaused { .. }));
    assert!(matches!(fixture.event().await, Event::LinkDown { link: down } if down == link));
    let state = fixture.state(|state| state.phase == LinkPhase::BackingOff).await;
    assert!(state.back_off_until.is_some() && state.last_error.is_some());
    // The peer is dialled again; the new link has another id.
    let mut raw = smsc.accept().await;
    raw.take_bind().await;
    assert_ne!(fixture.link_up().await.0, link);
}

#[tokio::test]
async fn check_114_segments_go_one_after_the_other_and_all_must_be_answered() {
    let (fixture, _smsc, mut raw, link) = bound_peer(|options| options.long_text = LongText::Udh).await;
    fixture.send(link, message(1, &[b'a'; 400]));
    for number in 1..=3 {
        let (header, sm) = raw.sm().await;
        assert_eq!(sm.short_message[..6], [5, 0, 3, 1, 3, number]);
        assert_eq!(sm.esm_class, 0x40);
        raw.respond(header, CommandStatus::ROK, &Response::id(format!("p{number}"))).await;
    }
    let all = Outcome::Accepted { ids: vec![id("p1"), id("p2"), id("p3")] };
    assert_eq!(fixture.outcome().await, (MessageId(1), all));
    // A refusal of a later segment reports the accepted ones, and the next attempt continues after them.
    fixture.send(link, message(2, &[b'a'; 400]));
    taken(&mut raw, "q1").await;
    let (header, _) = raw.sm().await;
    raw.respond(header, CommandStatus::RTHROTTLED, &Response::Empty).await;
    let refused = Outcome::Refused { class: ErrorClass::Throttled, code: 0x58, taken: vec![id("q1")] };
    assert_eq!(fixture.outcome().await, (MessageId(2), refused));
    fixture.send_leg(link, message(2, &[b'a'; 400]), 1);
    for number in 2..=3 {
        let (header, sm) = raw.sm().await;
        assert_eq!(sm.short_message[..6], [5, 0, 3, 2, 3, number]);
        raw.respond(header, CommandStatus::ROK, &Response::id(format!("q{number}"))).await;
    }
    let rest = Outcome::Accepted { ids: vec![id("q2"), id("q3")] };
    assert_eq!(fixture.outcome().await, (MessageId(2), rest));
    // The connection breaks between segments: the accepted ones are known, and the rest is uncertain.
    fixture.send(link, message(3, &[b'a'; 400]));
    taken(&mut raw, "r1").await;
    raw.sm().await;
    drop(raw);
    assert_eq!(
        fixture.outcome().await,
        (MessageId(3), Outcome::Unanswered { taken: vec![id("r1")], known: Vec::new() })
    );
}

#[tokio::test]
async fn check_113_040_congestion_state_and_a_missing_interface_version_are_harmless() {
    let (fixture, _smsc, mut raw, link) = bound_peer(|_| {}).await;
    let mut long = message(1, b"");
    long.text.octets = Bytes::from(vec![b'a'; 300]);
    long.text.payload = true;
    fixture.send(link, long);
    let (header, sm) = raw.sm().await;
    assert_eq!(sm.tlvs.get(tag::MESSAGE_PAYLOAD).unwrap().len(), 300);
    let tlvs = Tlvs::default().with(tag::CONGESTION_STATE, &[85]);
    raw.respond(header, CommandStatus::ROK, &Response::MessageId { id: Bytes::from_static(b"7"), tlvs })
        .await;
    assert_eq!(fixture.outcome().await.1, Outcome::Accepted { ids: vec![id("7")] });
}

#[tokio::test]
async fn check_115_118_123_128_dlrs_are_answered_when_they_are_durable() {
    let (fixture, _smsc, mut raw, link) =
        bound_peer(|options| options.message_id = MessageIdForm::HexToDecimal).await;
    fixture.send(link, message(1, b"x"));
    taken(&mut raw, "39f99dd5").await;
    assert_eq!(fixture.outcome().await.1, Outcome::Accepted { ids: vec![id("972660181")] });
    let receipt = Sm {
        source: Address::international("8613012345678"),
        destination: Address::new(0, 0, b"10655"),
        esm_class: 4,
        short_message: Bytes::from_static(
            b"id:972660181 sub:001 dlvrd:001 submit date:2612090930 done date:2612090931 stat:UNDELIV err:012",
        ),
        tlvs: Tlvs::default().with(tag::MESSAGE_STATE, &[2]),
        ..Sm::default()
    };
    let sequence = raw.request(&Request::DeliverSm(receipt.clone())).await;
    let Event::Dlr { peer, dlr, reply } = fixture.event().await else { panic!() };
    assert_eq!((peer, dlr.state, dlr.error), (PEER, DlrState::Delivered, 12));
    assert_eq!(dlr.id, id("972660181"));
    assert_eq!((dlr.from.as_slice(), dlr.to.as_slice()), (&b"8613012345678"[..], &b"10655"[..]));
    let enquiry = raw.request(&support::enquire()).await;
    assert_eq!(raw.answer().await.0.sequence, enquiry, "nothing is said before the engine has it");
    fixture.answer(reply, EngineAnswer::DlrRecorded);
    let (header, _) = raw.answer().await;
    assert_eq!((header.sequence, header.status, header.length), (sequence, CommandStatus::ROK, 17));
    raw.request(&Request::DeliverSm(receipt)).await;
    let Event::Dlr { reply, .. } = fixture.event().await else { panic!() };
    fixture.answer(reply, EngineAnswer::Refused(Refusal::Internal));
    assert_eq!(raw.answer().await.0.status, CommandStatus::RX_T_APPN);
}

#[tokio::test]
async fn check_125_127_129_mos_are_routed_accepted_and_answered() {
    let (fixture, _smsc, mut raw, _) = bound_peer(|_| {}).await;
    let looks_like_one = Sm { short_message: Bytes::from_static(b"id:1 stat:DELIVRD"), ..hello() };
    let payload = Sm {
        short_message: Bytes::new(),
        esm_class: 0x40,
        tlvs: Tlvs::default().with(tag::MESSAGE_PAYLOAD, b"\x05\x00\x03\x01\x02\x01text"),
        ..hello()
    };
    for (sm, answer, status) in [
        (looks_like_one.clone(), EngineAnswer::Accepted(MessageId(9)), CommandStatus::ROK),
        (payload, EngineAnswer::Refused(Refusal::Rejected(RejectReason::NoRoute)), CommandStatus::RX_P_APPN),
        (
            hello(),
            EngineAnswer::Refused(Refusal::Rejected(RejectReason::Prohibited)),
            CommandStatus::RX_R_APPN,
        ),
        (hello(), EngineAnswer::Refused(Refusal::QueueFull), CommandStatus::RX_T_APPN),
    ] {
        raw.request(&Request::DeliverSm(sm.clone())).await;
        let (message, reply) = fixture.accept().await;
        assert_eq!((message.origin, &message.text.octets), (PEER, &sm.text()));
        assert_eq!(message.text.udhi, sm.esm_class & 0x40 != 0);
        assert!(!message.dlr_request.any());
        fixture.answer(reply, answer);
        let (header, _) = raw.answer().await;
        assert_eq!((header.command, header.status), (CommandId::DELIVER_SM.response(), status));
    }
}

#[tokio::test]
async fn check_130_131_data_sm_and_alerts() {
    let (fixture, _smsc, mut raw, _) = bound_peer(|_| {}).await;
    let alert = AlertNotification {
        source: Address::international("861301"),
        esme: Address::new(0, 0, b"10655"),
        tlvs: Tlvs::default(),
    };
    raw.request(&Request::AlertNotification(alert)).await;
    let Event::Alert { msisdn } = fixture.event().await else { panic!() };
    assert_eq!(&msisdn[..], b"861301");
    let tlvs = Tlvs::default().with(tag::RECEIPTED_MESSAGE_ID, b"77\0").with(tag::MESSAGE_STATE, &[5]);
    raw.request(&Request::DataSm(DataSm { esm_class: 4, tlvs, ..DataSm::default() })).await;
    let Event::Dlr { dlr, reply, .. } = fixture.event().await else { panic!() };
    assert_eq!((dlr.id, dlr.state), (id("77"), DlrState::Undeliverable));
    fixture.answer(reply, EngineAnswer::DlrRecorded);
    let (header, _) = raw.answer().await;
    assert_eq!((header.command, header.status), (CommandId::DATA_SM.response(), CommandStatus::ROK));
}

#[tokio::test]
async fn check_132_deliver_sm_on_a_transmitter() {
    let (_fixture, _smsc, mut raw, _) = bound_peer(|options| options.bind = Transmitter).await;
    assert_eq!(raw.ask(&Request::DeliverSm(hello())).await.0.status, CommandStatus::RINVBNDSTS);
}

#[tokio::test]
async fn a_receiver_link_is_never_offered_messages() {
    let fixture = fixture().await;
    let smsc = support::Smsc::open().await;
    fixture.links.set_peer(links::PeerOptions { bind: Receiver, ..smsc.options() }).unwrap();
    let mut raw = smsc.accept().await;
    assert_eq!(raw.take_bind().await.mode, Receiver);
    raw.request(&Request::DeliverSm(hello())).await;
    let (_, reply) = fixture.accept().await;
    fixture.answer(reply, EngineAnswer::Accepted(MessageId(1)));
    assert_eq!(raw.answer().await.0.status, CommandStatus::ROK);
}

#[tokio::test]
async fn uncertain_messages_are_queried_and_only_unknown_message_counts_as_such() {
    let (fixture, _smsc, mut raw, link) = bound_peer(|_| {}).await;
    let ask = |number| {
        fixture.registry.dispatch(vec![EngineCommand::QueryPeer {
            link,
            id: MessageId(number),
            peer_id: id("abc"),
            message: Arc::new(message(number, b"x")),
            leg: 0,
        }]);
    };
    let answers = [
        (CommandStatus::ROK, Response::Query(QuerySmResp { message_state: 2, ..QuerySmResp::default() })),
        (CommandStatus::RQUERYFAIL, Response::Empty),
        (CommandStatus::RINVMSGID, Response::Empty),
    ];
    for (number, (status, response)) in (1..).zip(answers) {
        ask(number);
        let (header, Request::QuerySm(query)) = raw.next_request().await else { panic!() };
        assert_eq!((query.message_id.as_ref(), query.source.value.as_slice()), (&b"abc"[..], &b"10655"[..]));
        raw.respond(header, status, &response).await;
    }
    let Event::QueryResult { id: MessageId(1), dlr: Some(dlr) } = fixture.event().await else { panic!() };
    assert_eq!(dlr.state, DlrState::Delivered);
    // The refused query of message 2 gave no result.
    assert!(matches!(fixture.event().await, Event::QueryResult { id: MessageId(3), dlr: None }));
}

#[tokio::test]
async fn check_037_038_042_refused_binds_back_off() {
    for (answer, least) in [
        (CommandStatus::RINVPASWD, Duration::from_secs(60)),
        (CommandStatus::RALYBND, Duration::from_secs(30)),
        (CommandStatus::RBINDFAIL, Duration::from_millis(800)),
    ] {
        let fixture = fixture().await;
        let smsc = support::Smsc::open().await;
        fixture.links.set_peer(smsc.options()).unwrap();
        let mut raw = smsc.accept().await;
        let (header, request) = raw.next_request().await;
        let Request::Bind(bind) = request else { panic!() };
        assert_eq!((bind.system_id.as_ref(), bind.interface_version), (&b"esme1"[..], 0x34));
        raw.respond(header, answer, &Response::Empty).await;
        let state = fixture
            .state(|state| state.phase == LinkPhase::BackingOff && state.back_off_until.is_some())
            .await;
        let wait = state.back_off_until.unwrap() - state.since;
        assert!(wait + Duration::from_millis(50) >= least, "{answer}: {wait:?}");
        assert!(state.last_error.unwrap().contains("bind refused"));
    }
}

/// An admin has repaired the peer and need not wait for the minute.
#[tokio::test]
async fn a_waiting_peer_is_dialed_at_once_on_request() {
    let fixture = fixture().await;
    let smsc = support::Smsc::open().await;
    let options = smsc.options();
    let name = options.name.clone();
    fixture.links.set_peer(options).unwrap();
    let mut raw = smsc.accept().await;
    let (header, _) = raw.next_request().await;
    raw.respond(header, CommandStatus::RINVPASWD, &Response::Empty).await;
    fixture.state(|state| state.phase == LinkPhase::BackingOff && state.back_off_until.is_some()).await;
    assert!(!fixture.links.dial_now("nobody"));
    assert!(fixture.links.dial_now(&name));
    // Long before the minute that normally follows a wrong password.
    let mut raw = smsc.accept().await;
    let (_, request) = raw.next_request().await;
    assert!(matches!(request, Request::Bind(_)));
}

#[tokio::test]
async fn check_041_no_answer_to_the_bind() {
    let fixture = fixture().await;
    let smsc = support::Smsc::open().await;
    let options = links::PeerOptions { bind_timeout: Duration::from_millis(50), ..smsc.options() };
    fixture.links.set_peer(options).unwrap();
    let mut raw = smsc.accept().await;
    raw.next_request().await;
    raw.closed().await;
    // And again, after its back-off.
    smsc.accept().await;
}

#[tokio::test]
async fn check_042_a_nack_for_the_bind() {
    let fixture = fixture().await;
    let smsc = support::Smsc::open().await;
    fixture.links.set_peer(smsc.options()).unwrap();
    let mut raw = smsc.accept().await;
    let (header, _) = raw.next_request().await;
    let nack = smpp::Header { command: CommandId::GENERIC_NACK, sequence: 0, ..header };
    assert!(is_nack(nack));
    raw.respond(nack, CommandStatus::RINVBNDSTS, &Response::Empty).await;
    let state = fixture.state(|state| state.phase == LinkPhase::BackingOff).await;
    assert!(state.last_error.is_some());
}

#[tokio::test]
async fn check_045_a_delivery_right_behind_the_bind_answer() {
    let fixture = fixture().await;
    let smsc = support::Smsc::open().await;
    fixture.links.set_peer(smsc.options()).unwrap();
    let mut raw = smsc.accept().await;
    let (header, _) = raw.next_request().await;
    let mut both = bytes::BytesMut::new();
    smpp::encode_response(
        &mut both,
        header.command.response(),
        CommandStatus::ROK,
        header.sequence,
        &Response::Bind { system_id: Bytes::new(), tlvs: Tlvs::default() },
    );
    smpp::encode_request(&mut both, 1, &Request::DeliverSm(hello()));
    raw.write(&both).await;
    fixture.link_up().await;
    assert_eq!(fixture.accept().await.0.text.octets.as_ref(), b"Hello");
}

#[tokio::test]
async fn peers_are_added_changed_and_removed_while_others_stay() {
    let (fixture, smsc, mut stays, _) = bound_peer(|_| {}).await;
    let other = support::Smsc::open().await;
    let mut options =
        links::PeerOptions { name: "other".into(), peer: model::PeerId(3), links: 2, ..other.options() };
    fixture.links.set_peer(options.clone()).unwrap();
    fixture.links.set_peer(options.clone()).unwrap();
    let mut raws = Vec::new();
    for _ in 0..2 {
        let mut raw = other.accept().await;
        raw.take_bind().await;
        fixture.link_up().await;
        raws.push(raw);
    }
    options.window = 20;
    options.links = 1;
    fixture.links.set_peer(options).unwrap();
    for mut raw in raws {
        let (header, request) = raw.next_request().await;
        assert_eq!(request, Request::Unbind);
        raw.respond(header, CommandStatus::ROK, &Response::Empty).await;
        raw.closed().await;
    }
    let mut changed = other.accept().await;
    changed.take_bind().await;
    let window = loop {
        if let Event::LinkUp { window, .. } = fixture.event().await {
            break window;
        }
    };
    assert_eq!(window, 20);
    assert!(fixture.links.remove_peer("other") && !fixture.links.remove_peer("other"));
    assert_eq!(changed.next_request().await.1, Request::Unbind);
    assert_eq!(stays.ask(&support::enquire()).await.0.status, CommandStatus::ROK);
    let wrong = links::PeerOptions { address: "nowhere".into(), ..smsc.options() };
    assert!(fixture.links.set_peer(wrong).is_err());
    assert_eq!(stays.ask(&support::enquire()).await.0.status, CommandStatus::ROK);
}
