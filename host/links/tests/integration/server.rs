//! ESMEs that bind to us.

use crate::support::{
    self, ACCOUNT, RawPeer, account, bind, fixture, hello, listener, message, open_fixture,
};
use bytes::Bytes;
use engine::{EngineAnswer, Event, QueriedState};
use links::BindMode::{Receiver, Transceiver, Transmitter};
use model::{Address, DlrContent, DlrState, Message, MessageId, MessageKind, Outcome, Refusal, Timestamp};
use smpp::{
    CancelSm, CommandId, CommandStatus, DataSm, Destination, QuerySm, ReplaceSm, Request, Response, Sm,
    SubmitMulti, Tlvs, tag,
};
use std::time::Duration;

#[tokio::test]
async fn check_021_024_binds_are_answered_by_their_own_kind_and_name_us() {
    let (fixture, address) = open_fixture().await;
    for mode in [Transceiver, Transmitter, Receiver] {
        let mut raw = RawPeer::connect(address).await;
        let (header, response) = raw.bind(bind(mode)).await;
        assert_eq!((header.status, header.command), (CommandStatus::ROK, mode.command().response()));
        let Response::Bind { system_id, tlvs } = response else { panic!("{response:?}") };
        assert_eq!(system_id.as_ref(), b"SWITCHYARD");
        assert_eq!(tlvs.u8(tag::SC_INTERFACE_VERSION), Some(0x34));
        if mode != Transmitter {
            let (_, peer, window) = fixture.link_up().await;
            assert_eq!((peer, window), (ACCOUNT, 100));
        }
        raw.request(&Request::Unbind).await;
        assert_eq!(raw.answer().await.0.status, CommandStatus::ROK);
        raw.closed().await;
        if mode != Transmitter {
            assert!(matches!(fixture.event().await, Event::LinkPaused { .. }));
            assert!(matches!(fixture.event().await, Event::LinkDown { .. }));
        }
    }
    assert_eq!(fixture.links.listener_counts().binds, 3);
}

#[tokio::test]
async fn check_022_023_wrong_credentials_get_one_answer_header_only_and_a_close() {
    let (fixture, address) = open_fixture().await;
    let wrong_password = smpp::Bind { password: Bytes::from_static(b"wrong"), ..bind(Transceiver) };
    let unknown = smpp::Bind { system_id: Bytes::from_static(b"nobody"), ..bind(Transceiver) };
    for bind in [wrong_password, unknown] {
        let mut raw = RawPeer::connect(address).await;
        let (header, _) = raw.bind(bind).await;
        assert_eq!((header.status, header.length), (CommandStatus::RINVPASWD, 16));
        raw.closed().await;
    }
    assert_eq!(fixture.links.listener_counts().binds_refused, 2);
    assert!(fixture.quiet().await);
}

#[tokio::test]
async fn check_034_modes_networks_and_the_session_limit() {
    let fixture = fixture().await;
    let mut options = account();
    options.sessions = 1;
    options.bind = vec![Transmitter, Transceiver];
    fixture.links.set_account(options.clone()).unwrap();
    let address = fixture.links.listen(listener()).await.unwrap();
    let mut raw = RawPeer::connect(address).await;
    assert_eq!(raw.bind(bind(Receiver)).await.0.status, CommandStatus::RBINDFAIL);
    let mut first = RawPeer::bound(address, Transmitter).await;
    let mut second = RawPeer::connect(address).await;
    second.request(&Request::Bind(bind(Transmitter))).await;
    // The first session gets an enquire_link, and answers it.
    let (header, request) = first.next_request().await;
    assert_eq!(request, Request::EnquireLink);
    first.respond(header, CommandStatus::ROK, &Response::Empty).await;
    assert_eq!(second.answer().await.0.status, CommandStatus::RBINDFAIL);
    // The account changes during its session.
    options.networks = vec!["192.0.2.0/24".parse().unwrap()];
    options.sessions = 9;
    fixture.links.set_account(options).unwrap();
    let mut third = RawPeer::connect(address).await;
    assert_eq!(third.bind(bind(Transmitter)).await.0.status, CommandStatus::RINVPASWD, "as a wrong password");
    assert_eq!(first.ask(&support::enquire()).await.0.status, CommandStatus::ROK);
}

#[tokio::test]
async fn check_020_034_a_broken_session_releases_its_permit() {
    let fixture = fixture().await;
    fixture.links.set_account(links::LinkAccountOptions { sessions: 1, ..account() }).unwrap();
    let address = fixture.links.listen(listener()).await.unwrap();
    let mut raw = RawPeer::bound(address, Transceiver).await;
    fixture.link_up().await;
    raw.write(&[0, 0, 0, 62, 0, 0]).await;
    raw.stream.set_zero_linger().unwrap();
    drop(raw);
    assert!(matches!(fixture.event().await, Event::LinkPaused { .. }));
    assert!(matches!(fixture.event().await, Event::LinkDown { .. }));
    RawPeer::bound(address, Transceiver).await;
}

#[tokio::test]
async fn check_035_a_session_without_enquire_link_response_releases_its_permit() {
    let fixture = fixture().await;
    fixture.links.set_account(links::LinkAccountOptions { sessions: 2, ..account() }).unwrap();
    let mut options = listener();
    options.enquire_timeout = Duration::from_millis(100);
    let address = fixture.links.listen(options).await.unwrap();
    let mut dead = RawPeer::bound(address, Transmitter).await;
    let mut lives = RawPeer::bound(address, Transmitter).await;
    let mut new = RawPeer::connect(address).await;
    new.request(&Request::Bind(bind(Transmitter))).await;
    for raw in [&mut dead, &mut lives] {
        assert_eq!(raw.next_request().await.1, Request::EnquireLink);
    }
    let enquiry = smpp::Header {
        length: 16,
        command: CommandId::ENQUIRE_LINK,
        status: CommandStatus::ROK,
        sequence: 0x7FFF_FFFF,
    };
    lives.respond(enquiry, CommandStatus::ROK, &Response::Empty).await;
    dead.closed().await;
    assert_eq!(new.answer().await.0.status, CommandStatus::ROK);
    assert_eq!(lives.ask(&support::enquire()).await.0.status, CommandStatus::ROK);
}

#[tokio::test]
async fn check_053_054_an_unbind_waits_for_our_answers_and_loses_no_message() {
    let (fixture, address) = open_fixture().await;
    let mut raw = RawPeer::bound(address, Transceiver).await;
    let (link, ..) = fixture.link_up().await;
    let mut replies = Vec::new();
    for _ in 0..5 {
        raw.request(&Request::SubmitSm(hello())).await;
        replies.push(fixture.accept().await.1);
    }
    let unbind = raw.request(&Request::Unbind).await;
    assert!(matches!(fixture.event().await, Event::LinkPaused { link: paused } if paused == link));
    // The engine sent this before it received the pause.
    fixture.send(link, message(1, b"late"));
    assert_eq!(fixture.outcome().await, (MessageId(1), Outcome::NotSent));
    for (number, reply) in (1..).zip(replies) {
        fixture.answer(reply, EngineAnswer::Accepted(MessageId(number)));
        assert_eq!(raw.answer().await.0.command, CommandId::SUBMIT_SM.response());
    }
    let (header, _) = raw.answer().await;
    assert_eq!((header.sequence, header.command), (unbind, CommandId::UNBIND.response()));
    raw.closed().await;
    assert!(matches!(fixture.event().await, Event::LinkDown { .. }));
}

#[tokio::test]
async fn check_060_the_response_follows_the_engines_answer() {
    let (fixture, address) = open_fixture().await;
    let mut raw = RawPeer::bound(address, Transmitter).await;
    let submitted = raw.request(&Request::SubmitSm(hello())).await;
    let (message, reply) = fixture.accept().await;
    assert_eq!(message.origin, ACCOUNT);
    assert_eq!((message.text.octets.as_ref(), message.dlr_request.on_success), (&b"Hello"[..], true));
    // No outcome arrived before: the first answer belongs to a later request.
    let enquiry = raw.request(&support::enquire()).await;
    assert_eq!(raw.answer().await.0.sequence, enquiry);
    fixture.answer(reply, EngineAnswer::Accepted(MessageId::FIRST));
    let (header, response) = raw.answer().await;
    assert_eq!((header.sequence, header.status), (submitted, CommandStatus::ROK));
    assert_eq!(response.message_id(), b"1000000000");
}

#[tokio::test]
async fn check_061_062_064_089_090_refusals() {
    let fixture = fixture().await;
    let mut options = account();
    options.source.allow = vec!["1065*".into()];
    options.rate = Some(0.001);
    options.burst = 2;
    fixture.links.set_account(options).unwrap();
    let address = fixture.links.listen(listener()).await.unwrap();
    let mut receiver = RawPeer::bound(address, Receiver).await;
    fixture.link_up().await;
    assert_eq!(receiver.ask(&Request::SubmitSm(hello())).await.0.status, CommandStatus::RINVBNDSTS);
    let mut raw = RawPeer::bound(address, Transmitter).await;
    let nowhere = Sm { destination: Address::default(), ..hello() };
    assert_eq!(raw.ask(&Request::SubmitSm(nowhere)).await.0.status, CommandStatus::RINVDSTADR);
    let other = Sm { source: Address::new(5, 0, b"BANK"), ..hello() };
    assert_eq!(raw.ask(&Request::SubmitSm(other)).await.0.status, CommandStatus::RINVSRCADR);
    for (refusal, status) in [
        (Refusal::QueueFull, CommandStatus::RMSGQFUL),
        (Refusal::Rejected(model::RejectReason::NoRoute), CommandStatus::RINVDSTADR),
    ] {
        raw.request(&Request::SubmitSm(hello())).await;
        let (_, reply) = fixture.accept().await;
        fixture.answer(reply, EngineAnswer::Refused(refusal));
        assert_eq!(raw.answer().await.0.status, status);
    }
    let (header, _) = raw.ask(&Request::SubmitSm(hello())).await;
    assert_eq!((header.status, header.length), (CommandStatus::RTHROTTLED, 16));
    assert!(fixture.quiet().await);
    let state = fixture.state(|state| state.bind == Some(Transmitter)).await;
    assert_eq!(state.inbound.requests["submit_sm"], 5);
    assert_eq!(state.outbound.errors[&0x58], 1);
}

#[tokio::test]
async fn check_029_3_3_gets_short_ids_and_no_tlvs() {
    let (fixture, address) = open_fixture().await;
    let mut raw = RawPeer::connect(address).await;
    let (_, response) = raw.bind(smpp::Bind { interface_version: 0x33, ..bind(Transceiver) }).await;
    assert!(response.tlvs().is_some_and(Tlvs::is_empty));
    let (link, ..) = fixture.link_up().await;
    raw.request(&Request::SubmitSm(hello())).await;
    let (_, reply) = fixture.accept().await;
    fixture.answer(reply, EngineAnswer::Accepted(MessageId::FIRST));
    let (_, response) = raw.answer().await;
    assert_eq!(response.message_id(), MessageId::FIRST.short().as_bytes());
    assert!(response.message_id().len() <= 8);
    let short = Bytes::from(MessageId::FIRST.short());
    raw.request(&Request::QuerySm(QuerySm { message_id: short, source: hello().source })).await;
    let Event::Query { id, .. } = fixture.event().await else { panic!() };
    assert_eq!(id, MessageId::FIRST);
    let mut with_tlvs = message(5, b"x");
    with_tlvs.tlvs = Tlvs::default().with(0x1401, b"v").raw().clone();
    fixture.send(link, with_tlvs);
    assert!(raw.sm().await.1.tlvs.is_empty());
}

#[tokio::test]
async fn check_088_091_a_window_of_five_and_twelve_submits_of_one_sequence() {
    let fixture = fixture().await;
    fixture.links.set_account(links::LinkAccountOptions { window: 5, ..account() }).unwrap();
    let address = fixture.links.listen(listener()).await.unwrap();
    let mut raw = RawPeer::bound(address, Transmitter).await;
    for _ in 0..12 {
        raw.next = 7;
        raw.request(&Request::SubmitSm(hello())).await;
    }
    let enquiry = raw.request(&support::enquire()).await;
    assert_eq!(raw.answer().await.0.sequence, enquiry, "enquire_link does not wait behind the window");
    let mut waiting = Vec::new();
    for _ in 0..5 {
        waiting.push(fixture.accept().await.1);
    }
    assert!(fixture.quiet().await, "no more than the window");
    for number in 0..12 {
        let reply = waiting.remove(0);
        fixture.answer(reply, EngineAnswer::Accepted(MessageId(1_000_000_000 + number)));
        let (header, response) = raw.answer().await;
        assert_eq!(header.sequence, 7);
        assert_eq!(response.message_id(), (1_000_000_000 + number).to_string().as_bytes());
        if number < 7 {
            waiting.push(fixture.accept().await.1);
        }
    }
}

#[tokio::test]
async fn check_093_submit_multi() {
    let (fixture, address) = open_fixture().await;
    let mut raw = RawPeer::bound(address, Transmitter).await;
    let number = |digits| Destination::Address(Address::international(digits));
    let multi = |destinations| {
        let sm = Sm { destination: Address::default(), ..hello() };
        Request::SubmitMulti(SubmitMulti { destinations, sm })
    };
    let vip = Destination::List(Bytes::from_static(b"vip"));
    raw.request(&multi(vec![number("861301"), vip.clone(), number("861302")])).await;
    let Event::AcceptMany { messages, shared_id: true, reply, .. } = fixture.event().await else { panic!() };
    let destinations: Vec<_> = messages.iter().map(|message| message.destination.text()).collect();
    assert_eq!(destinations, ["861301", "861302"]);
    let results = vec![Ok(MessageId::FIRST), Err(Refusal::QueueFull)];
    fixture.answer(reply, EngineAnswer::AcceptedMany(results));
    let (header, response) = raw.answer().await;
    let Response::SubmitMulti(multi_response) = response else { panic!("{response:?}") };
    assert_eq!((header.status, multi_response.message_id.as_ref()), (CommandStatus::ROK, &b"1000000000"[..]));
    let failed: Vec<_> = multi_response
        .unsuccess
        .iter()
        .map(|entry| (entry.address.text().into_owned(), entry.status))
        .collect();
    assert_eq!(
        failed,
        [("vip".into(), CommandStatus::RINVDLNAME), ("861302".into(), CommandStatus::RMSGQFUL)]
    );
    assert_eq!(raw.ask(&multi(vec![vip])).await.0.status, CommandStatus::RINVDLNAME);
    assert_eq!(raw.ask(&multi(Vec::new())).await.0.status, CommandStatus::RINVNUMDESTS);
}

#[tokio::test]
async fn check_094_data_sm() {
    let (fixture, address) = open_fixture().await;
    let mut raw = RawPeer::bound(address, Transmitter).await;
    let data = DataSm { destination: Address::international("861301"), ..DataSm::default() };
    assert_eq!(raw.ask(&Request::DataSm(data.clone())).await.0.status, CommandStatus::RMISSINGTLV);
    let tlvs = Tlvs::default().with(tag::MESSAGE_PAYLOAD, b"Hi");
    raw.request(&Request::DataSm(DataSm { tlvs, ..data })).await;
    let (message, reply) = fixture.accept().await;
    assert_eq!(message.text.octets.as_ref(), b"Hi");
    fixture.answer(reply, EngineAnswer::Accepted(MessageId::FIRST));
    let (header, response) = raw.answer().await;
    assert_eq!(header.command, CommandId::DATA_SM.response());
    assert_eq!(response.message_id(), b"1000000000");
}

#[tokio::test]
async fn check_095_broadcast_is_refused_by_its_own_answer() {
    let (_fixture, address) = open_fixture().await;
    let mut raw = RawPeer::bound(address, Transmitter).await;
    let v37 = "0000004000000111000000000000001900000031000000000000000006060006005a6f6e65310601000300003306040002000106050003090005042400024869";
    raw.write(&model::from_hex(v37).unwrap()).await;
    let (header, _) = raw.answer().await;
    assert_eq!((header.command, header.status), (CommandId(0x8000_0111), CommandStatus::RINVCMDID));
}

#[tokio::test]
async fn check_096_097_098_099_query_cancel_replace() {
    let (fixture, address) = open_fixture().await;
    let mut raw = RawPeer::bound(address, Transmitter).await;
    let id = Bytes::from_static(b"1000000000");
    let source = hello().source;
    let query = Request::QuerySm(QuerySm { message_id: id.clone(), source: source.clone() });
    for (final_at, date) in [(None, &b""[..]), (Some(Timestamp(1_795_000_000_000)), b"261118110640000+")] {
        raw.request(&query).await;
        let Event::Query { origin, id, source: Some(next_request), reply } = fixture.event().await else {
            panic!()
        };
        assert_eq!((origin, id, &next_request), (ACCOUNT, MessageId::FIRST, &source));
        let state = QueriedState { id, state: DlrState::Enroute, final_at, error: 3 };
        fixture.answer(reply, EngineAnswer::State(state));
        let Response::Query(response) = raw.answer().await.1 else { panic!() };
        assert_eq!((response.final_date.as_ref(), response.message_state, response.error_code), (date, 1, 3));
    }
    let cancel = CancelSm { message_id: id.clone(), source: source.clone(), ..CancelSm::default() };
    raw.request(&Request::CancelSm(cancel.clone())).await;
    let Event::Cancel { destination: None, reply, .. } = fixture.event().await else { panic!() };
    fixture.answer(reply, EngineAnswer::Refused(Refusal::WrongState));
    assert_eq!(raw.answer().await.0.status, CommandStatus::RCANCELFAIL);
    let one = CancelSm { destination: Address::international("861301"), ..cancel.clone() };
    raw.request(&Request::CancelSm(one)).await;
    let Event::Cancel { destination, reply, .. } = fixture.event().await else { panic!() };
    assert_eq!(destination, Some(Address::international("861301")));
    fixture.answer(reply, EngineAnswer::Done);
    assert_eq!(raw.answer().await.0.status, CommandStatus::ROK);
    let all = CancelSm { message_id: Bytes::new(), destination: Address::international("86"), ..cancel };
    raw.request(&Request::CancelSm(all)).await;
    let Event::CancelMatching { origin, reply, .. } = fixture.event().await else { panic!() };
    assert_eq!(origin, ACCOUNT);
    fixture.answer(reply, EngineAnswer::Done);
    let (header, _) = raw.answer().await;
    assert_eq!((header.status, header.length), (CommandStatus::ROK, 16));
    let replace = ReplaceSm {
        message_id: id,
        source,
        short_message: Bytes::from_static(b"New"),
        ..ReplaceSm::default()
    };
    for (answer, status) in [
        (EngineAnswer::Done, CommandStatus::ROK),
        (EngineAnswer::Refused(Refusal::WrongState), CommandStatus::RREPLACEFAIL),
        (EngineAnswer::Refused(Refusal::UnknownMessage), CommandStatus::RINVMSGID),
    ] {
        raw.request(&Request::ReplaceSm(replace.clone())).await;
        let Event::Replace { text, reply, .. } = fixture.event().await else { panic!() };
        assert_eq!(text.octets.as_ref(), b"New");
        fixture.answer(reply, answer);
        assert_eq!(raw.answer().await.0.status, status);
    }
    let odd = Request::QuerySm(QuerySm { message_id: Bytes::from_static(b"x-1"), ..QuerySm::default() });
    assert_eq!(raw.ask(&odd).await.0.status, CommandStatus::RINVMSGID);
}

#[tokio::test]
async fn check_133_134_what_esmes_answer_to_deliveries() {
    let (fixture, address) = open_fixture().await;
    let mut raw = RawPeer::bound(address, Receiver).await;
    let (link, ..) = fixture.link_up().await;
    for (number, status, class) in [
        (1, CommandStatus::RX_T_APPN, model::ErrorClass::Temporary),
        (2, CommandStatus::RX_P_APPN, model::ErrorClass::Permanent),
        (3, CommandStatus::RX_R_APPN, model::ErrorClass::Permanent),
        (4, CommandStatus::RTHROTTLED, model::ErrorClass::Throttled),
    ] {
        fixture.send(link, message(number, b"MO"));
        let (header, sm) = raw.sm().await;
        assert_eq!((header.command, sm.short_message.as_ref()), (CommandId::DELIVER_SM, &b"MO"[..]));
        assert_eq!((sm.registered_delivery, sm.validity_period.len()), (0, 0));
        raw.respond(header, status, &Response::Empty).await;
        let refused = Outcome::Refused { class, code: status.0, taken: Vec::new() };
        assert_eq!(fixture.outcome().await, (MessageId(number), refused));
    }
    fixture.send(link, message(5, b"MO"));
    let (header, _) = raw.sm().await;
    // A response header without a body, as many ESMEs send it.
    raw.write(&[&[0, 0, 0, 16, 0x80, 0, 0, 5, 0, 0, 0, 0][..], &header.sequence.to_be_bytes()].concat())
        .await;
    assert!(matches!(fixture.outcome().await, (MessageId(5), Outcome::Accepted { .. })));
}

#[tokio::test]
async fn check_137_139_receipts_go_to_receivers_only() {
    let (fixture, address) = open_fixture().await;
    let _transmitter = RawPeer::bound(address, Transmitter).await;
    let mut raw = RawPeer::bound(address, Receiver).await;
    let (link, ..) = fixture.link_up().await;
    let mut dlr = message(9, b"Hello");
    dlr.kind = MessageKind::Dlr(Box::new(DlrContent {
        of: MessageId::FIRST,
        state: DlrState::Delivered,
        intermediate: false,
        error: 0,
        network_error: Some([3, 0, 0]),
        submitted_at: Timestamp(1_795_000_000_000),
        done_at: Timestamp(1_795_000_060_000),
        segments: (1, 1),
        segment: 0,
        peer_id: model::PeerMessageId::default(),
    }));
    fixture.send(link, dlr.clone());
    let (_, sm) = raw.sm().await;
    assert_eq!(sm.esm_class, 4);
    assert_eq!(
        String::from_utf8_lossy(&sm.short_message),
        "id:1000000000 sub:001 dlvrd:001 submit date:2611181106 done date:2611181107 stat:DELIVRD err:000 text:Hello"
    );
    assert_eq!(sm.tlvs.get(tag::RECEIPTED_MESSAGE_ID).unwrap().as_ref(), b"1000000000\0");
    assert_eq!(sm.tlvs.get(tag::NETWORK_ERROR_CODE).unwrap().len(), 3);
    // A submission to several destinations has one id, which applies to all its messages.
    fixture.send(link, Message { submission: Some(MessageId(1_000_000_007)), ..dlr });
    let (_, sm) = raw.sm().await;
    assert!(sm.short_message.starts_with(b"id:1000000007 "));
    assert_eq!(sm.tlvs.get(tag::RECEIPTED_MESSAGE_ID).unwrap().as_ref(), b"1000000007\0");
    assert!(fixture.quiet().await, "the transmitter was never announced");
}

#[tokio::test]
async fn a_removed_account_is_unbound_and_others_are_not() {
    let (fixture, address) = open_fixture().await;
    let mut other = account();
    other.name = "other".into();
    other.peer = model::PeerId(3);
    other.system_id = Bytes::from_static(b"other");
    fixture.links.set_account(other).unwrap();
    let mut stays = RawPeer::connect(address).await;
    let as_other = smpp::Bind { system_id: Bytes::from_static(b"other"), ..bind(Transmitter) };
    assert_eq!(stays.bind(as_other).await.0.status, CommandStatus::ROK);
    let mut goes = RawPeer::bound(address, Transmitter).await;
    assert!(fixture.links.remove_account("acme") && !fixture.links.remove_account("acme"));
    let (header, request) = goes.next_request().await;
    assert_eq!(request, Request::Unbind);
    goes.respond(header, CommandStatus::ROK, &Response::Empty).await;
    goes.closed().await;
    assert_eq!(stays.ask(&support::enquire()).await.0.status, CommandStatus::ROK);
    let mut again = RawPeer::connect(address).await;
    assert_eq!(again.bind(bind(Transmitter)).await.0.status, CommandStatus::RINVPASWD);
}
