//! SGIP over real sockets: both roles of the appliance, each against a peer with a session of its own.

use crate::support::{self, ACCOUNT, LinksFixture, PASSWORD, PEER, account, fixture, within};
use engine::{EngineAnswer, EngineCommand, Event};
use links::{GatewayOptions, Secret, SgipListenerOptions, SpOptions};
use model::{
    DlrContent, DlrState, ErrorClass, FinalState, LinkId, Message, MessageId, MessageKind, Outcome,
    PeerMessageId, Refusal, SubmitTicket, Text, Timestamp,
};
use sgip::{
    Bind, Deliver, HEADER_LENGTH, Header, LoginType, Pdu, Report, ResultCode, Sequence, SgipCommand,
    SgipFields, Submit, peer_message_id,
};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const USER: &str = "8613012345678";

/// A peer that sends exactly what a test wants.
struct FakeNode(TcpStream);

impl FakeNode {
    async fn connect(address: SocketAddr, login_type: LoginType, name: &str, password: &str) -> Self {
        let mut node = Self(within(TcpStream::connect(address)).await.unwrap());
        let bind = Bind {
            login_type,
            name: name.to_owned().into(),
            password: password.to_owned().into(),
            reserve: [0; 8],
        };
        node.send(seq(1), &Pdu::Bind(bind)).await;
        node
    }

    /// Accepts a connection and its login.
    async fn accept(listener: &TcpListener, login_type: LoginType) -> Self {
        let (stream, _) = within(listener.accept()).await.unwrap();
        let mut node = Self(stream);
        let (sequence, pdu) = node.receive().await.unwrap();
        let Pdu::Bind(bind) = pdu else { panic!("{pdu:?}") };
        assert_eq!(
            (bind.login_type, &bind.name[..], &bind.password[..]),
            (login_type, &b"us"[..], &b"pw"[..])
        );
        node.send(sequence, &Pdu::answer(SgipCommand::Bind, ResultCode::OK)).await;
        node
    }

    async fn send(&mut self, sequence: Sequence, pdu: &Pdu) {
        self.0.write_all(&pdu.to_bytes(sequence)).await.unwrap();
    }

    /// The next PDU; `None` once the connection is closed.
    async fn receive(&mut self) -> Option<(Sequence, Pdu)> {
        let mut head = [0; HEADER_LENGTH];
        within(self.0.read_exact(&mut head)).await.ok()?;
        let header = Header::peek(&head).unwrap();
        let mut body = vec![0; header.length as usize - HEADER_LENGTH];
        within(self.0.read_exact(&mut body)).await.ok()?;
        Some((header.sequence, Pdu::decode(header.command, &body).unwrap()))
    }

    async fn answer(&mut self) -> (Sequence, u8) {
        match self.receive().await {
            Some((sequence, Pdu::Answer { result, .. })) => (sequence, result.0),
            other => panic!("{other:?}"),
        }
    }

    async fn submit(&mut self) -> (Sequence, Submit) {
        match self.receive().await {
            Some((sequence, Pdu::Submit(submit))) => (sequence, submit),
            other => panic!("{other:?}"),
        }
    }
}

fn seq(counter: u32) -> Sequence {
    Sequence { node: 3_010_012_345, time: 1_120_203_225, counter }
}

fn gateway(address: SocketAddr) -> GatewayOptions {
    let mut options = GatewayOptions::new("unicom", PEER, &address.to_string(), 3_010_012_345);
    options.node.login_name = "us".into();
    options.node.login_password = Secret("pw".into());
    options.inbound_login_name = "smg".into();
    options.inbound_login_password = Secret("its".into());
    options.fields.corp_id = Some("12345".into());
    options
}

fn message(id: u64, octets: &[u8], data_coding: u8) -> Message {
    let mut message = support::message(id, octets);
    message.destination = model::Address::new(1, 1, USER.as_bytes());
    message.text = Text { octets: octets.to_vec().into(), data_coding, udhi: false, payload: false };
    message
}

const TICKET: SubmitTicket = SubmitTicket { at: Timestamp(1_795_177_945_000), attempt: 1 };

fn send(fixture: &LinksFixture, link: LinkId, message: Message, taken: u16, ticket: SubmitTicket) {
    let message = Arc::new(message);
    let (leg, want_dlr, more) = (0, true, false);
    fixture.registry.dispatch(vec![EngineCommand::Send {
        link,
        message,
        leg,
        taken,
        want_dlr,
        more,
        ticket,
    }]);
}

async fn listening(fixture: &LinksFixture) -> SocketAddr {
    let options = SgipListenerOptions::new("sgip", "127.0.0.1:0".parse().unwrap());
    fixture.links.listen(options).await.unwrap()
}

/// An SP-side fixture; its gateway is a listener of the test.
async fn sp_fixture() -> (LinksFixture, TcpListener) {
    let fixture = fixture().await;
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    fixture.links.set_gateway(gateway(socket.local_addr().unwrap())).unwrap();
    (fixture, socket)
}

#[tokio::test]
async fn a_submit_has_all_its_fields_and_its_answer_is_the_outcome() {
    let (fixture, socket) = sp_fixture().await;
    let mut node = FakeNode::accept(&socket, LoginType::SP).await;
    let (link, peer, window) = fixture.link_up().await;
    assert_eq!((peer, window), (PEER, 32));
    send(&fixture, link, message(7, b"hello", 0), 0, TICKET);
    let (sequence, submit) = node.submit().await;
    assert_eq!(sequence, Sequence { node: 3_010_012_345, time: 1_120_203_225, counter: 7 << 12 | 1 });
    assert_eq!(
        (&submit.users[0][..], &submit.content[..], submit.coding),
        (USER.as_bytes(), &b"hello"[..], 0)
    );
    assert_eq!((submit.report_flag, &submit.corp_id[..], submit.charge_number.len()), (1, &b"12345"[..], 21));
    assert!(submit.expire_time.len() == 16 && submit.expire_time.ends_with(b"032+"));
    node.send(sequence, &Pdu::answer(SgipCommand::Submit, ResultCode::OK)).await;
    let id = peer_message_id(sequence, USER.as_bytes());
    assert_eq!(fixture.outcome().await, (MessageId(7), Outcome::Accepted { ids: vec![id] }));

    send(&fixture, link, message(8, b"too fast", 0), 0, TICKET);
    let (sequence, _) = node.submit().await;
    node.send(sequence, &Pdu::answer(SgipCommand::Submit, ResultCode::FLOW)).await;
    let refused = Outcome::Refused { class: ErrorClass::Throttled, code: 88, taken: Vec::new() };
    assert_eq!(fixture.outcome().await, (MessageId(8), refused));
}

#[tokio::test]
async fn a_long_text_goes_in_segments_with_a_sequence_each() {
    let (fixture, socket) = sp_fixture().await;
    let mut node = FakeNode::accept(&socket, LoginType::SP).await;
    let (link, ..) = fixture.link_up().await;
    let text = sgip::text::utf16(&"你好".repeat(40));
    send(&fixture, link, message(9, &text, 8), 0, TICKET);
    let mut ids = Vec::new();
    let mut whole = Vec::new();
    for number in 1..=2 {
        let (sequence, submit) = node.submit().await;
        assert_eq!((submit.tp_udhi, submit.coding), (1, 8));
        let (head, words) = sgip::text::header(&submit.content).unwrap();
        assert_eq!(head, [5, 0, 3, 9, 2, number]);
        whole.extend_from_slice(words);
        ids.push(peer_message_id(sequence, USER.as_bytes()));
        node.send(sequence, &Pdu::answer(SgipCommand::Submit, ResultCode::OK)).await;
    }
    assert_eq!(whole, text);
    assert_ne!(ids[0], ids[1]);
    assert_eq!(fixture.outcome().await, (MessageId(9), Outcome::Accepted { ids }));
}

#[tokio::test]
async fn check_11_a_lost_link_leaves_a_doubt_and_the_repetition_has_the_old_sequence() {
    let (fixture, socket) = sp_fixture().await;
    let mut node = FakeNode::accept(&socket, LoginType::SP).await;
    let (link, ..) = fixture.link_up().await;
    send(&fixture, link, message(7, b"hello", 0), 0, TICKET);
    let (first, _) = node.submit().await;
    drop(node);
    let known = vec![peer_message_id(first, USER.as_bytes())];
    let mut outcome = None;
    loop {
        match fixture.event().await {
            Event::Outcome { id, outcome: result, .. } => outcome = Some((id, result)),
            Event::LinkDown { .. } => break,
            Event::LinkPaused { .. } => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(outcome, Some((MessageId(7), Outcome::Unanswered { taken: Vec::new(), known })));
    // The connection is dialed again by itself; the engine sends the message again under the same ticket.
    let mut node = FakeNode::accept(&socket, LoginType::SP).await;
    let (link, ..) = fixture.link_up().await;
    send(&fixture, link, message(7, b"hello", 0), 0, TICKET);
    assert_eq!(node.submit().await.0, first);
    // Another attempt, after a refusal, is a different command.
    send(&fixture, link, message(7, b"hello", 0), 0, SubmitTicket { attempt: 2, ..TICKET });
    assert_ne!(node.submit().await.0, first);
}

#[tokio::test]
async fn mos_and_reports_come_over_the_gateways_own_connection() {
    let (fixture, _socket) = sp_fixture().await;
    let address = listening(&fixture).await;
    let mut node = FakeNode::connect(address, LoginType::GATEWAY, "smg", "its").await;
    assert_eq!(node.answer().await, (seq(1), 0));
    let deliver = Deliver {
        user: USER.into(),
        sp_number: "10655".into(),
        coding: 15,
        content: vec![0xb2, 0xe2].into(),
        reserve: *b"LINK-ID1",
        ..Deliver::default()
    };
    node.send(seq(2), &Pdu::Deliver(deliver.clone())).await;
    let Event::AcceptMany { messages, shared_id: false, key, reply } = fixture.event().await else {
        panic!()
    };
    let key = key.unwrap();
    assert_eq!(&key.octets[..], seq(2).octets());
    let message = &messages[0];
    assert_eq!((message.origin, message.source.text(), message.text.data_coding), (PEER, USER.into(), 15));
    assert_eq!(SgipFields::read(&message.protocol_fields).reserve, Some(*b"LINK-ID1"));
    // The same octets have the same key and digest; different content has a different digest.
    node.send(seq(2), &Pdu::Deliver(deliver.clone())).await;
    let Event::AcceptMany { key: again, reply: second, .. } = fixture.event().await else { panic!() };
    assert_eq!(again, Some(key.clone()));
    node.send(seq(2), &Pdu::Deliver(Deliver { content: "other".into(), ..deliver })).await;
    let Event::AcceptMany { key: other, reply: third, .. } = fixture.event().await else { panic!() };
    assert_ne!(other.unwrap().digest, key.digest);
    fixture.answer(third, EngineAnswer::Refused(Refusal::KeyReused));
    assert_eq!(node.answer().await, (seq(2), 9));
    for reply in [reply, second] {
        fixture.answer(reply, EngineAnswer::AcceptedMany(vec![Ok(MessageId(1))]));
        assert_eq!(node.answer().await, (seq(2), 0));
    }
    // A Report is answered only once it is durable.
    let report = Report { submit: seq(77), user: USER.into(), state: 2, error: 29, ..Report::default() };
    node.send(seq(3), &Pdu::Report(report)).await;
    let Event::Dlr { peer, dlr, reply } = fixture.event().await else { panic!() };
    assert_eq!((peer, dlr.state, dlr.error), (PEER, DlrState::Undeliverable, 29));
    assert_eq!(dlr.id, peer_message_id(seq(77), b"13012345678"));
    fixture.answer(reply, EngineAnswer::DlrRecorded);
    assert_eq!(node.answer().await, (seq(3), 0));
    // A command of the other role.
    node.send(seq(4), &Pdu::Submit(Submit::default())).await;
    assert_eq!(node.answer().await, (seq(4), ResultCode::MESSAGE_ID.0));
}

/// A gateway-side fixture with an SP account; the SP is a listener of the test.
async fn gateway_fixture() -> (LinksFixture, SocketAddr, TcpListener) {
    let fixture = fixture().await;
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut sp = SpOptions::new("sp", 101_001);
    sp.address = socket.local_addr().unwrap().to_string();
    sp.node.login_name = "us".into();
    sp.node.login_password = Secret("pw".into());
    sp.node.connections_in = 1;
    let mut options = account();
    options.sgip = Some(sp);
    fixture.links.set_account(options).unwrap();
    let address = listening(&fixture).await;
    (fixture, address, socket)
}

fn password() -> &'static str {
    std::str::from_utf8(PASSWORD).unwrap()
}

fn submit(users: &[&'static str]) -> Submit {
    Submit {
        sp_number: "10655".into(),
        users: users.iter().map(|user| (*user).into()).collect(),
        report_flag: 1,
        content: "text".into(),
        ..Submit::default()
    }
}

#[tokio::test]
async fn check_08_logins_are_refused_in_the_protocols_terms() {
    let (fixture, address, _socket) = gateway_fixture().await;
    for (login_type, name, word, code) in [
        (LoginType::SP, "sp", "wrong", 1),
        (LoginType::SP, "nobody", password(), 1),
        (LoginType::GATEWAY, "sp", password(), 4),
        (LoginType::GATEWAY, "sp", "wrong", 1),
        (LoginType::SP, "smg", "wrong", 1),
        (LoginType::FORWARD, "sp", password(), 4),
    ] {
        let mut node = FakeNode::connect(address, login_type, name, word).await;
        assert_eq!(node.answer().await.1, code, "{login_type:?} {name}");
        assert!(node.receive().await.is_none(), "the connection stays open");
    }
    let mut first = FakeNode::connect(address, LoginType::SP, "sp", password()).await;
    assert_eq!(first.answer().await.1, 0);
    let mut second = FakeNode::connect(address, LoginType::SP, "sp", password()).await;
    assert_eq!(second.answer().await.1, 3);
    drop(fixture);
}

#[tokio::test]
async fn a_submit_is_one_message_per_user_and_refused_users_get_a_report() {
    let (fixture, address, _socket) = gateway_fixture().await;
    let mut node = FakeNode::connect(address, LoginType::SP, "sp", password()).await;
    assert_eq!(node.answer().await.1, 0);
    node.send(seq(5), &Pdu::Submit(submit(&[USER, "8613112345678"]))).await;
    let Event::AcceptMany { messages, shared_id: false, key, reply } = fixture.event().await else {
        panic!()
    };
    assert_eq!((messages.len(), &key.unwrap().octets[..]), (2, &seq(5).octets()[..]));
    assert!(messages.iter().all(|message| message.origin == ACCOUNT && message.dlr_request.on_success));
    let results = vec![Ok(MessageId(1)), Err(Refusal::QueueFull)];
    fixture.answer(reply, EngineAnswer::AcceptedMany(results));
    // The Report of the refused message is durable before the Submit is answered.
    let Event::ResendDlr { message, ended, reply } = fixture.event().await else { panic!() };
    assert_eq!((ended.state, ended.error), (FinalState::Rejected, 11));
    assert_eq!(message.destination.text(), "8613112345678");
    fixture.answer(reply, EngineAnswer::Done);
    assert_eq!(node.answer().await, (seq(5), 0));
    // All messages are refused: the answer has the reason.
    node.send(seq(6), &Pdu::Submit(submit(&[USER]))).await;
    let Event::AcceptMany { reply, .. } = fixture.event().await else { panic!() };
    fixture.answer(reply, EngineAnswer::AcceptedMany(vec![Err(Refusal::QueueFull)]));
    assert_eq!(node.answer().await, (seq(6), 11));
    // A malformed Submit never reaches the engine.
    node.send(seq(7), &Pdu::Submit(submit(&["nobody"]))).await;
    assert_eq!(node.answer().await, (seq(7), 6));
    node.send(seq(8), &Pdu::Submit(submit(&[]))).await;
    assert_eq!(node.answer().await, (seq(8), 5));
}

#[tokio::test]
async fn reports_and_mos_go_to_the_sps_listener() {
    let (fixture, _address, socket) = gateway_fixture().await;
    let mut node = FakeNode::accept(&socket, LoginType::GATEWAY).await;
    let (link, peer, _) = fixture.link_up().await;
    assert_eq!(peer, ACCOUNT);
    let mut dlr = message(20, b"", 0);
    dlr.source = model::Address::new(1, 1, USER.as_bytes());
    dlr.kind = MessageKind::Dlr(Box::new(DlrContent {
        of: MessageId(5),
        state: DlrState::Undeliverable,
        intermediate: false,
        error: 29,
        network_error: None,
        submitted_at: Timestamp(0),
        done_at: Timestamp(0),
        segments: (1, 0),
        segment: 0,
        peer_id: PeerMessageId::default(),
    }));
    let mut tlvs = bytes::BytesMut::new();
    SgipFields::of(&submit(&[USER]), seq(5)).append_to(&mut tlvs);
    dlr.protocol_fields = tlvs.freeze();
    send(&fixture, link, dlr, 0, TICKET);
    let Some((sequence, Pdu::Report(report))) = node.receive().await else { panic!() };
    assert_eq!(
        (report.submit, &report.user[..], report.state, report.error),
        (seq(5), USER.as_bytes(), 2, 29)
    );
    assert_eq!(sequence.node, 101_001);
    node.send(sequence, &Pdu::answer(SgipCommand::Report, ResultCode::OK)).await;
    assert!(matches!(fixture.outcome().await, (MessageId(20), Outcome::Accepted { .. })));

    let mut reply = message(21, b"yes", 1);
    reply.source = model::Address::new(1, 1, USER.as_bytes());
    reply.destination = model::Address::new(0, 1, b"10655");
    send(&fixture, link, reply, 0, TICKET);
    let Some((sequence, Pdu::Deliver(deliver))) = node.receive().await else { panic!() };
    assert_eq!(
        (&deliver.sp_number[..], &deliver.content[..], deliver.coding),
        (&b"10655"[..], &b"yes"[..], 0)
    );
    // The SP refuses the message for now, and we keep it.
    node.send(sequence, &Pdu::answer(SgipCommand::Deliver, ResultCode(5))).await;
    let refused = Outcome::Refused { class: ErrorClass::Temporary, code: 5, taken: Vec::new() };
    assert_eq!(fixture.outcome().await, (MessageId(21), refused));
}

#[tokio::test]
async fn check_13_a_gateway_that_closes_idle_connections_is_dialed_again() {
    let (fixture, socket) = sp_fixture().await;
    let node = FakeNode::accept(&socket, LoginType::SP).await;
    fixture.link_up().await;
    drop(node);
    let _far = FakeNode::accept(&socket, LoginType::SP).await;
    loop {
        if let Event::LinkUp { .. } = fixture.event().await {
            break;
        }
    }
    fixture.links.shutdown(std::time::Duration::from_secs(1)).await;
}

#[tokio::test]
async fn a_broken_command_closes_its_connection_and_no_other() {
    let (fixture, address, _socket) = gateway_fixture().await;
    let mut broken = TcpStream::connect(address).await.unwrap();
    broken.write_all(&[0xFF; 40]).await.unwrap();
    let mut rest = Vec::new();
    within(broken.read_to_end(&mut rest)).await.unwrap();
    assert!(rest.is_empty());
    let mut node = FakeNode::connect(address, LoginType::SP, "sp", password()).await;
    assert_eq!(node.answer().await.1, 0);
    drop(fixture);
}
