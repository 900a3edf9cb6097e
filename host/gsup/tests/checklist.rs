//! What the three ends of connections do, one thing at a time, without a network.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that fails is to stop here")]

use bytes::{Bytes, BytesMut};
use gsup::ccm::{self, Ccm, IdResponse, Identity};
use gsup::client::{self, Client, Loss, Patience, SendError};
use gsup::ctrl::{self, Answer, Ask, Msisdn};
use gsup::ipa::{self, Frame, FrameError};
use gsup::proxy::{self, Proxy};
use gsup::{AlertReason, CnDomain, DecodeError, Imsi, Message, MessageType, Name, Number, RpCause, Tag};

fn imsi(last: u8) -> Imsi {
    format!("00101000000000{last}").parse().unwrap()
}

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

fn message(kind: MessageType) -> Message {
    Message::new(kind, imsi(1))
}

fn frame(message: &Message) -> BytesMut {
    let mut octets = BytesMut::new();
    message.put(&mut octets);
    octets
}

fn ccm(word: &Ccm) -> BytesMut {
    let mut octets = BytesMut::new();
    word.put(&mut octets);
    octets
}

fn mt(last: u8) -> Message {
    let centre = Number::international("19990014444");
    Message::mt_forward(imsi(last), &centre, b"tpdu", false, None).unwrap()
}

fn frames(mut octets: BytesMut) -> Vec<Frame> {
    let frames = std::iter::from_fn(|| Frame::take(&mut octets, ipa::MOST).unwrap()).collect();
    assert!(octets.is_empty(), "a piece of a frame was written");
    frames
}

// A client of an HLR.

fn client() -> Client {
    Client::new(0, Identity::new("SMSC-1", "switchyard").unwrap(), Patience::default())
}

fn ready() -> Client {
    let mut client = client();
    client.receive(1_000, &ccm(&Ccm::IdGet(vec![8, 0])));
    assert_eq!(client.poll_event(), Some(client::Event::Ready));
    client.output().clear();
    client
}

#[test]
fn a_client_waits_to_be_asked_who_it_is() {
    let mut client = client();
    assert!(client.output().is_empty() && !client.is_ready());
    assert_eq!(client.send(&mt(1)), Err(SendError::NotReady));
    client.receive(0, &ccm(&Ccm::IdGet(vec![8, 0])));
    assert!(client.is_ready());
    assert_eq!(client.poll_event(), Some(client::Event::Ready));
    let answer = frames(client.output().split());
    let [Frame::Ccm(identity), Frame::Ccm(ack)] = &answer[..] else { panic!("{answer:?}") };
    let Ccm::IdResponse(identity) = Ccm::decode(identity) else { panic!() };
    assert_eq!(identity.serial(), Some("SMSC-1"));
    assert_eq!(Ccm::decode(ack), Ccm::IdAck);
    // Asked again it answers again, and is not ready twice.
    client.receive(0, &ccm(&Ccm::IdGet(vec![8, 0])));
    assert_eq!(client.poll_event(), None);
    assert_eq!(frames(client.output().split()), answer);
}

#[test]
fn a_client_that_nobody_asks_gives_up() {
    let mut client = client();
    assert_eq!(client.next_tick(), Some(10_000));
    client.tick(9_999);
    assert_eq!(client.poll_event(), None);
    client.tick(10_000);
    assert_eq!(client.poll_event(), Some(client::Event::Lost(Loss::NoGreeting)));
    assert_eq!(client.next_tick(), None);
}

#[test]
fn a_client_asks_whether_the_hlr_is_there_and_answers_the_same() {
    let mut client = ready();
    client.receive(1_000, &ccm(&Ccm::Ping));
    assert_eq!(client.output().split(), ccm(&Ccm::Pong));
    assert_eq!(client.next_tick(), Some(21_000));
    client.tick(20_999);
    assert!(client.output().is_empty());
    client.tick(21_000);
    assert_eq!(client.output().split(), ccm(&Ccm::Ping));
    client.receive(21_001, &ccm(&Ccm::Pong));
    assert_eq!(client.next_tick(), Some(41_000));
    client.tick(41_000);
    client.tick(61_000);
    assert_eq!(frames(client.output().split()).len(), 2);
    client.tick(81_000);
    assert_eq!(client.poll_event(), None, "60 seconds of silence are not over");
    client.tick(81_001);
    assert_eq!(client.poll_event(), Some(client::Event::Lost(Loss::Silence)));
    assert_eq!(client.send(&mt(1)), Err(SendError::NotReady));
}

#[test]
fn a_client_sends_and_receives_messages() {
    let mut client = ready();
    client.send(&mt(1)).unwrap();
    assert_eq!(client.output().split(), frame(&mt(1)));
    let answer = message(MessageType::MT_FORWARD_SM_RESULT).with_reference(0);
    client.receive(1_000, &frame(&answer));
    assert_eq!(client.poll_event(), Some(client::Event::Message(answer)));
    // A message that makes no sense costs nothing but itself.
    client.receive(1_000, b"\x00\x02\xee\x05\x2a\x00\x01\xee\x06");
    assert_eq!(client.poll_event(), Some(client::Event::Broken(DecodeError::NoImsi(0x2a))));
    assert!(client.is_ready());
}

#[test]
fn a_client_on_a_wrong_port_says_so() {
    let mut client = client();
    client.receive(0, b"HTTP/1.1 400 Bad Request\r\n");
    let lost = FrameError::Long { stream: b'T', octets: 0x4854, limit: ipa::LIMIT };
    assert_eq!(client.poll_event(), Some(client::Event::Lost(Loss::Frame(lost))));
    client.receive(0, &ccm(&Ccm::IdGet(vec![8, 0])));
    assert_eq!(client.poll_event(), None, "nothing comes after the end");
}

// The place between an MSC and its HLR.

struct Between(Proxy);

impl Between {
    fn new() -> Self {
        Self(Proxy::new(Some(name("SMSC-1"))))
    }

    /// What the HLR gets when the MSC writes this.
    fn msc(&mut self, octets: impl AsRef<[u8]>) -> BytesMut {
        let mut input = BytesMut::from(octets.as_ref());
        self.0.from_msc(&mut input);
        assert!(input.is_empty());
        self.hlr_gets()
    }

    fn hlr(&mut self, octets: impl AsRef<[u8]>) -> BytesMut {
        let mut input = BytesMut::from(octets.as_ref());
        self.0.from_hlr(&mut input);
        assert!(input.is_empty());
        self.msc_gets()
    }

    fn hlr_gets(&mut self) -> BytesMut {
        let octets = std::iter::from_fn(|| self.0.to_hlr()).collect::<Vec<Bytes>>().concat();
        assert_eq!(self.0.waiting_for_hlr(), 0);
        BytesMut::from(&octets[..])
    }

    fn msc_gets(&mut self) -> BytesMut {
        let octets = std::iter::from_fn(|| self.0.to_msc()).collect::<Vec<Bytes>>().concat();
        assert_eq!(self.0.waiting_for_msc(), 0);
        BytesMut::from(&octets[..])
    }

    fn events(&mut self) -> Vec<proxy::Event> {
        std::iter::from_fn(|| self.0.poll_event()).collect()
    }
}

fn identity(items: &[(u8, &'static [u8])]) -> BytesMut {
    let items = items.iter().map(|(tag, value)| (*tag, Bytes::from_static(value))).collect();
    ccm(&Ccm::IdResponse(IdResponse { items }))
}

#[test]
fn a_proxy_passes_the_greeting_and_learns_the_name() {
    let mut between = Between::new();
    let question = ccm(&Ccm::IdGet(vec![8, 0]));
    assert_eq!(between.hlr(&question), question);
    let answer = identity(&[(8, b"0/0/0\0"), (1, b"MSC-00\0"), (0, b"MSC-1\0")]);
    assert_eq!(between.msc(&answer), answer);
    assert_eq!(between.events(), [proxy::Event::Named("MSC-1".into())]);
    for word in [Ccm::IdAck, Ccm::Ping, Ccm::Pong] {
        assert_eq!(between.msc(ccm(&word)), ccm(&word));
        assert_eq!(between.hlr(ccm(&word)), ccm(&word));
    }
    assert_eq!(between.events(), []);
}

#[test]
fn a_proxy_adds_the_unit_id_without_which_an_hlr_closes() {
    for answer in [identity(&[(0, b"MSC-1\0")]), identity(&[(8, b""), (0, b"MSC-1\0")])] {
        let mut between = Between::new();
        let answer = [&answer[..], &ccm(&Ccm::IdAck)].concat();
        let passed = between.msc(answer);
        let complete =
            [identity(&[(0, b"MSC-1\0"), (ccm::tag::UNIT_ID, b"0/0/0\0")]), ccm(&Ccm::IdAck)].concat();
        assert_eq!(passed, complete);
        assert_eq!(between.events(), [proxy::Event::Named("MSC-1".into())]);
    }
}

#[test]
fn a_proxy_without_an_hlr_answers_keep_alive_and_greets_the_hlr_first_when_it_is_back() {
    let mut between = Between::new();
    between.0.hlr_is_gone();
    let greeting = identity(&[(8, b"0/0/0\0"), (0, b"MSC-1\0")]);
    between.0.from_msc(&mut BytesMut::from(&greeting[..]));
    between.0.from_msc(&mut ccm(&Ccm::Ping));
    assert_eq!(between.msc_gets(), ccm(&Ccm::Pong));
    assert_eq!(between.events(), [proxy::Event::Named("MSC-1".into())]);
    assert_eq!(between.0.waiting_for_hlr(), 0, "the HLR is greeted when it is there");
    // Signalling waits, but not for ever, and not without end.
    let word = ccm(&Ccm::Other(Bytes::from_static(&[0x77, 1])));
    between.0.from_msc(&mut BytesMut::from(&word[..]));
    between.0.expire();
    between.0.from_msc(&mut BytesMut::from(&word[..]));
    between.0.expire();
    between.0.hlr_is_back();
    assert_eq!(between.hlr_gets(), [&greeting[..], &word[..]].concat());
    // Its question has been answered; the next one is for the MSC.
    let question = ccm(&Ccm::IdGet(vec![8, 0]));
    assert_eq!(between.hlr(&question), BytesMut::new());
    assert_eq!(between.hlr(&question), question);
    between.0.hlr_is_gone();
    for _ in 0..100_000 {
        between.0.from_msc(&mut BytesMut::from(&word[..]));
    }
    assert!(between.0.waiting_for_hlr() <= 256 << 10);
}

#[test]
fn a_proxy_takes_the_msc_s_short_messages_and_nothing_else() {
    let mut between = Between::new();
    let before = frame(&message(MessageType::SEND_AUTH_INFO_REQUEST));
    let mo = message(MessageType::MO_FORWARD_SM_REQUEST).with_reference(42);
    let after = frame(&message(MessageType(0x20)));
    let input = [&before[..], &frame(&mo), &after, &ccm(&Ccm::Ping)].concat();
    assert_eq!(between.msc(input), [&before[..], &after, &ccm(&Ccm::Ping)].concat());
    assert_eq!(between.events(), [proxy::Event::Sms(mo.clone())]);
    assert!(between.msc_gets().is_empty(), "it is the owner's to answer");
    between.0.inject_to_msc(&mo.refused(RpCause::CONGESTION, None));
    assert_eq!(between.msc_gets(), frame(&mo.refused(RpCause::CONGESTION, None)));
}

#[test]
fn a_proxy_answers_a_phone_that_has_room() {
    let mut between = Between::new();
    let ready = message(MessageType::READY_FOR_SM_REQUEST)
        .with_reference(3)
        .with_alert_reason(AlertReason::MEMORY_AVAILABLE)
        .with_source_name(&name("MSC-1"));
    assert!(between.msc(frame(&ready)).is_empty());
    let answer = message(MessageType::READY_FOR_SM_RESULT)
        .with_reference(3)
        .with_class(gsup::MessageClass::SMS)
        .with_source_name(&name("SMSC-1"))
        .with_destination_name(&name("MSC-1"));
    assert_eq!(between.msc_gets(), frame(&answer));
    assert_eq!(between.events(), [proxy::Event::Sms(ready)]);
}

#[test]
fn a_proxy_puts_messages_for_phones_between_whole_frames() {
    let mut between = Between::new();
    let theirs = frame(&message(MessageType::INSERT_DATA_REQUEST));
    let mut input = theirs.clone();
    input.extend_from_slice(&theirs[..5]);
    between.0.from_hlr(&mut input);
    assert_eq!(input, theirs[..5], "an incomplete frame waits");
    between.0.inject_to_msc(&mt(1));
    between.0.inject_to_msc(&mt(2));
    input.extend_from_slice(&theirs[5..]);
    between.0.from_hlr(&mut input);
    assert_eq!(between.msc_gets(), [theirs.clone(), frame(&mt(1)), frame(&mt(2)), theirs].concat());
    let answers = [
        message(MessageType::MT_FORWARD_SM_RESULT).with_reference(0),
        message(MessageType::MT_FORWARD_SM_ERROR).with_rp_cause(RpCause::MEMORY_CAPACITY_EXCEEDED),
    ];
    for answer in answers {
        assert!(between.msc(frame(&answer)).is_empty());
        assert_eq!(between.events(), [proxy::Event::Sms(answer)]);
    }
}

#[test]
fn a_proxy_leaves_another_service_centre_its_answers() {
    let mut between = Between::new();
    let answer = message(MessageType::MT_FORWARD_SM_RESULT).with_reference(0);
    // By name, from an MSC that writes names.
    let named = answer.clone().with_source_name(&name("MSC-1")).with_destination_name(&name("SMSC-2"));
    assert_eq!(between.msc(frame(&named)), frame(&named));
    let ours = answer.clone().with_destination_name(&name("SMSC-1"));
    assert!(between.msc(frame(&ours)).is_empty());
    assert_eq!(between.events(), [proxy::Event::Sms(ours)]);
    // By subscriber, from one that does not.
    assert_eq!(between.hlr(frame(&mt(1))), frame(&mt(1)));
    assert_eq!(between.msc(frame(&answer)), frame(&answer));
    between.hlr(frame(&mt(1)));
    between.0.inject_to_msc(&mt(1));
    assert!(between.msc(frame(&answer)).is_empty(), "ours is answered first");
    assert_eq!(between.msc(frame(&answer)), frame(&answer));
    // Nobody has asked, so far as we know: it may be the answer to what we asked on an earlier connection.
    assert!(between.msc(frame(&answer)).is_empty());
}

#[test]
fn a_proxy_knows_its_owner_s_marks() {
    let mut between = Between::new();
    let answer = |name: &'static str| {
        message(MessageType::MT_FORWARD_SM_RESULT).with_reference(0).with_destination_name(&self::name(name))
    };
    for ours in ["SMSC-1", "SMSC-1#", "SMSC-1#0000002a"] {
        assert!(between.msc(frame(&answer(ours))).is_empty(), "{ours}");
        assert_eq!(between.events(), [proxy::Event::Sms(answer(ours))]);
    }
    for theirs in ["SMSC-10", "SMSC", "SMSC-2#1"] {
        assert_eq!(between.msc(frame(&answer(theirs))), frame(&answer(theirs)));
    }
    assert_eq!(between.events(), []);
}

#[test]
fn a_proxy_counts_what_it_passes_on() {
    let mut between = Between::new();
    let passes = [frame(&message(MessageType::SEND_AUTH_INFO_REQUEST)), ccm(&Ccm::Ping)].concat();
    between.msc([&passes[..], &frame(&message(MessageType::MO_FORWARD_SM_REQUEST))].concat());
    between.hlr(&passes);
    assert_eq!(between.0.passed(), 4);
    // What is ours is not passed on, unless it turns out to be somebody else's.
    between.0.inject_to_msc(&mt(1));
    assert_eq!(between.0.passed(), 4);
    between.msc(frame(&message(MessageType::MT_FORWARD_SM_RESULT).with_destination_name(&name("SMSC-2"))));
    assert_eq!(between.0.passed(), 5);
}

#[test]
fn a_proxy_learns_who_is_here() {
    let mut between = Between::new();
    let request =
        message(MessageType::UPDATE_LOCATION_REQUEST).with(Tag::CN_DOMAIN, &[CnDomain::CS.0]).unwrap();
    assert_eq!(between.msc(frame(&request)), frame(&request));
    assert_eq!(between.events(), [], "the HLR has not said yes yet");
    let insert = message(MessageType::INSERT_DATA_REQUEST).with_msisdn("15551234567").unwrap();
    let result = message(MessageType::UPDATE_LOCATION_RESULT);
    let input = [frame(&insert), frame(&result)].concat();
    assert_eq!(between.hlr(&input), input);
    let number = proxy::Event::Number { imsi: imsi(1), msisdn: "15551234567".into() };
    assert_eq!(between.events(), [number, proxy::Event::Attached(imsi(1))]);
    let purge = frame(&message(MessageType::PURGE_MS_REQUEST));
    assert_eq!(between.msc(&purge), purge);
    assert_eq!(between.events(), [proxy::Event::Detached(imsi(1))]);
    let cancel = frame(&message(MessageType::LOCATION_CANCEL_REQUEST));
    assert_eq!(between.hlr(&cancel), cancel);
    assert_eq!(between.events(), [proxy::Event::Detached(imsi(1))]);
}

#[test]
fn a_proxy_does_not_take_a_packet_switched_node_for_an_msc() {
    let mut between = Between::new();
    let packet = |kind| message(kind).with(Tag::CN_DOMAIN, &[CnDomain::PS.0]).unwrap();
    between.msc(frame(&packet(MessageType::UPDATE_LOCATION_REQUEST)));
    between.hlr(frame(&message(MessageType::UPDATE_LOCATION_RESULT)));
    between.msc(frame(&packet(MessageType::PURGE_MS_REQUEST)));
    between.msc(frame(&packet(MessageType::UPDATE_LOCATION_REQUEST)));
    between.hlr(frame(&message(MessageType::UPDATE_LOCATION_ERROR)));
    assert_eq!(between.events(), []);
    between.hlr(frame(&message(MessageType::UPDATE_LOCATION_RESULT)));
    assert_eq!(between.events(), [proxy::Event::Attached(imsi(1))]);
}

#[test]
fn a_proxy_passes_on_what_it_does_not_understand() {
    let mut between = Between::new();
    for broken in [
        &b"\x00\x00\xfe"[..],
        b"\x00\x00\xee",
        b"\x00\x01\xee\x05",
        b"\x00\x02\xee\x05\x24",
        b"\x00\x04\xee\x05\x2a\x40\x00",
        b"\x00\x0d\xee\x05\x29\x01\x08\x00\x01\x01\x00\x00\x00\x00\xf1\x40",
        b"\x00\x03\xfe\x05\x00\x09",
        b"\x00\x02\xee\x07\x24",
        b"\x00\x01\x55\x24",
    ] {
        assert_eq!(between.msc(broken), broken);
        assert_eq!(between.hlr(broken), broken);
    }
    let longest = [&[0xff, 0xff, 0xee, 5, 0x24][..], &[7; 65_533]].concat();
    assert_eq!(between.msc(&longest), longest[..]);
    assert_eq!(between.events(), []);
}

#[test]
fn what_passes_is_not_copied() {
    let mut proxy = Proxy::new(None);
    let one = frame(&message(MessageType::SEND_AUTH_INFO_REQUEST));
    let mut input = BytesMut::from(&one.repeat(40)[..]);
    let place = input.as_ptr();
    proxy.from_msc(&mut input);
    let passed = proxy.to_hlr().unwrap();
    assert_eq!((passed.as_ptr(), passed.len()), (place, one.len() * 40), "one piece, where it was read");
    assert_eq!(proxy.to_hlr(), None);
}

// Questions to an HLR's control interface.

fn ask(client: &mut ctrl::Client, token: u64, number: &str) -> String {
    client.look_up(0, token, Msisdn::new(number).unwrap());
    question(client)
}

fn question(client: &mut ctrl::Client) -> String {
    let frames = frames(client.output().split());
    let [Frame::Ctrl(line)] = &frames[..] else { panic!("{frames:?}") };
    String::from_utf8(line.to_vec()).unwrap()
}

fn reply(client: &mut ctrl::Client, line: &str) -> Option<ctrl::Event> {
    let mut octets = BytesMut::new();
    Frame::Ctrl(Bytes::copy_from_slice(line.as_bytes())).put(&mut octets);
    client.receive(&octets);
    client.poll_event()
}

fn answer(token: u64, answer: Answer) -> Option<ctrl::Event> {
    Some(ctrl::Event::Answer { token, answer })
}

#[test]
fn a_number_s_subscriber_is_found() {
    let mut client = ctrl::Client::new(Ask::Imsi, 5_000);
    assert_eq!(ask(&mut client, 70, "+15551234567"), "GET 1 subscriber.by-msisdn-15551234567.imsi");
    assert_eq!(ask(&mut client, 80, "15551234568"), "GET 2 subscriber.by-msisdn-15551234568.imsi");
    assert_eq!(ask(&mut client, 90, "15551234569"), "GET 3 subscriber.by-msisdn-15551234569.imsi");
    assert_eq!(client.open(), 3);
    assert_eq!(reply(&mut client, "ERROR 2 No such subscriber."), answer(80, Answer::Unknown));
    let line = "GET_REPLY 1 subscriber.by-msisdn-15551234567.imsi 001010000000001";
    let subscriber = ctrl::Subscriber { imsi: imsi(1), msisdn: Some("15551234567".into()), vlr_number: None };
    assert_eq!(reply(&mut client, line), answer(70, Answer::Found(subscriber)));
    assert_eq!(reply(&mut client, line), None, "answered once");
    assert_eq!(reply(&mut client, "TRAP 0 something else"), None);
    let failed = Answer::Failed("Database is away".into());
    assert_eq!(reply(&mut client, "ERROR 3 Database is away"), answer(90, failed));
    assert_eq!((client.open(), client.next_tick()), (0, None));
}

#[test]
fn an_old_hlr_is_asked_for_everything() {
    let mut client = ctrl::Client::new(Ask::Imsi, 5_000);
    ask(&mut client, 7, "15551234567");
    assert_eq!(reply(&mut client, "ERROR 1 Command not found"), None);
    assert_eq!(question(&mut client), "GET 2 subscriber.by-msisdn-15551234567.info");
    let line = "GET_REPLY 2 subscriber.by-msisdn-15551234567.info \nid\t1\nimsi\t001010000000001\nvlr_number\tMSC-1\n";
    let subscriber = ctrl::Subscriber { imsi: imsi(1), msisdn: None, vlr_number: Some("MSC-1".into()) };
    assert_eq!(reply(&mut client, line), answer(7, Answer::Found(subscriber)));
    // It remembers.
    assert_eq!(ask(&mut client, 8, "15551234567"), "GET 3 subscriber.by-msisdn-15551234567.info");
    let failed = Answer::Failed("Command not found".into());
    assert_eq!(reply(&mut client, "ERROR 3 Command not found"), answer(8, failed), "no HLR at all");
    let mut client = ctrl::Client::new(Ask::Everything, 5_000);
    assert_eq!(ask(&mut client, 1, "15551234567"), "GET 1 subscriber.by-msisdn-15551234567.info");
}

#[test]
fn nothing_but_digits_gets_into_a_question() {
    for number in ["", "+", "1 2", "12\n", "123.imsi", "1234567890123456", "١٢٣", "0x12", "12*", "++12"] {
        assert!(Msisdn::new(number).is_err(), "{number:?}");
    }
    assert_eq!(Msisdn::new("+491").unwrap().as_str(), "491");
}

#[test]
fn a_question_is_given_up() {
    let mut client = ctrl::Client::new(Ask::Imsi, 5_000);
    client.look_up(100, 1, Msisdn::new("1").unwrap());
    client.look_up(200, 2, Msisdn::new("2").unwrap());
    client.look_up(300, 3, Msisdn::new("3").unwrap());
    client.output().clear();
    assert_eq!(client.next_tick(), Some(5_100));
    assert_eq!(reply(&mut client, "ERROR 1 No such subscriber."), answer(1, Answer::Unknown));
    assert_eq!(client.next_tick(), Some(5_200));
    client.tick(5_199);
    assert_eq!(client.poll_event(), None);
    client.tick(5_200);
    assert_eq!(client.poll_event(), answer(2, Answer::Late));
    assert_eq!(reply(&mut client, "ERROR 2 No such subscriber."), None, "too late");
    client.look_up(5_200, 4, Msisdn::new("4").unwrap());
    assert_eq!(client.close(), [3, 4]);
    assert_eq!((client.open(), client.next_tick()), (0, None));
}

#[test]
fn an_answer_that_is_no_imsi_is_none() {
    let mut client = ctrl::Client::new(Ask::Imsi, 5_000);
    ask(&mut client, 1, "1");
    let failed = Answer::Failed("the answer has no IMSI of 6 to 15 digits".into());
    assert_eq!(reply(&mut client, "GET_REPLY 1 subscriber.by-msisdn-1.imsi none"), answer(1, failed));
    client.receive(b"\0\0\xee");
    assert_eq!(client.poll_event(), Some(ctrl::Event::Lost(FrameError::Empty { stream: 0xee })));
}
