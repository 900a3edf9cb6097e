//! Tests of the three connection types.

use bytes::{Bytes, BytesMut};
use gsup::ccm::{self, Ccm, IdResponse, Identity};
use gsup::client::{self, ClientTimeouts, ConnectionLoss, GsupClient, SendError};
use gsup::ctrl::{self, LookupAnswer, LookupDetail, Msisdn};
use gsup::ipa::{self, FrameError, IpaFrame};
use gsup::proxy::{self, Proxy};
use gsup::{
    AlertReason, CnDomain, DecodeError, GsupImsi, GsupMessage, IpaName, IsdnNumber, MessageType, RpCause, Tag,
};

fn imsi(last: u8) -> GsupImsi {
    format!("00101000000000{last}").parse().unwrap()
}

fn name(text: &str) -> IpaName {
    text.parse().unwrap()
}

fn message(kind: MessageType) -> GsupMessage {
    GsupMessage::new(kind, imsi(1))
}

fn frame(message: &GsupMessage) -> BytesMut {
    let mut octets = BytesMut::new();
    message.put(&mut octets);
    octets
}

fn ccm(ccm_frame: &Ccm) -> BytesMut {
    let mut octets = BytesMut::new();
    ccm_frame.put(&mut octets);
    octets
}

fn mt(last: u8) -> GsupMessage {
    let centre = IsdnNumber::international("19990014444");
    GsupMessage::mt_forward(imsi(last), &centre, b"tpdu", false, None).unwrap()
}

fn frames(mut octets: BytesMut) -> Vec<IpaFrame> {
    let frames = std::iter::from_fn(|| IpaFrame::take(&mut octets, ipa::MAX_PAYLOAD).unwrap()).collect();
    assert!(octets.is_empty(), "a piece of a frame was written");
    frames
}

// HLR client.

fn client() -> GsupClient {
    GsupClient::new(0, Identity::new("SMSC-1", "switchyard").unwrap(), ClientTimeouts::default())
}

fn ready() -> GsupClient {
    let mut client = client();
    client.receive(1_000, &ccm(&Ccm::IdGet(vec![8, 0])));
    assert_eq!(client.poll_event(), Some(client::Event::Ready));
    client.output().clear();
    client
}

#[test]
fn client_is_ready_after_the_identity_request() {
    let mut client = client();
    assert!(client.output().is_empty() && !client.is_ready());
    assert_eq!(client.send(&mt(1)), Err(SendError::NotReady));
    client.receive(0, &ccm(&Ccm::IdGet(vec![8, 0])));
    assert!(client.is_ready());
    assert_eq!(client.poll_event(), Some(client::Event::Ready));
    let answer = frames(client.output().split());
    let [IpaFrame::Ccm(identity), IpaFrame::Ccm(ack)] = &answer[..] else { panic!("{answer:?}") };
    let Ccm::IdResponse(identity) = Ccm::decode(identity) else { panic!() };
    assert_eq!(identity.serial(), Some("SMSC-1"));
    assert_eq!(Ccm::decode(ack), Ccm::IdAck);
    // A repeated identity request is answered, without another ready event.
    client.receive(0, &ccm(&Ccm::IdGet(vec![8, 0])));
    assert_eq!(client.poll_event(), None);
    assert_eq!(frames(client.output().split()), answer);
}

#[test]
fn client_times_out_without_an_identity_request() {
    let mut client = client();
    assert_eq!(client.next_tick(), Some(10_000));
    client.tick(9_999);
    assert_eq!(client.poll_event(), None);
    client.tick(10_000);
    assert_eq!(client.poll_event(), Some(client::Event::Lost(ConnectionLoss::NoGreeting)));
    assert_eq!(client.next_tick(), None);
}

#[test]
fn client_sends_and_answers_pings() {
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
    assert_eq!(client.poll_event(), Some(client::Event::Lost(ConnectionLoss::Silence)));
    assert_eq!(client.send(&mt(1)), Err(SendError::NotReady));
}

#[test]
fn client_sends_and_receives_messages() {
    let mut client = ready();
    client.send(&mt(1)).unwrap();
    assert_eq!(client.output().split(), frame(&mt(1)));
    let answer = message(MessageType::MT_FORWARD_SM_RESULT).with_reference(0);
    client.receive(1_000, &frame(&answer));
    assert_eq!(client.poll_event(), Some(client::Event::Message(answer)));
    // An undecodable message does not affect others.
    client.receive(1_000, b"\x00\x02\xee\x05\x2a\x00\x01\xee\x06");
    assert_eq!(client.poll_event(), Some(client::Event::Undecodable(DecodeError::NoImsi(0x2a))));
    assert!(client.is_ready());
}

#[test]
fn client_reports_a_wrong_port() {
    let mut client = client();
    client.receive(0, b"HTTP/1.1 400 Bad Request\r\n");
    let lost = FrameError::Long { stream: b'T', octets: 0x4854, limit: ipa::DEFAULT_MAX_PAYLOAD };
    assert_eq!(client.poll_event(), Some(client::Event::Lost(ConnectionLoss::Frame(lost))));
    client.receive(0, &ccm(&Ccm::IdGet(vec![8, 0])));
    assert_eq!(client.poll_event(), None, "nothing comes after the end");
}

// Proxy.

struct ProxyFixture(Proxy);

impl ProxyFixture {
    fn new() -> Self {
        Self(Proxy::new(Some(name("SMSC-1"))))
    }

    /// The octets for the HLR after this input from the MSC.
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
fn proxy_relays_the_identity_and_learns_the_name() {
    let mut proxy = ProxyFixture::new();
    let question = ccm(&Ccm::IdGet(vec![8, 0]));
    assert_eq!(proxy.hlr(&question), question);
    let answer = identity(&[(8, b"0/0/0\0"), (1, b"MSC-00\0"), (0, b"MSC-1\0")]);
    assert_eq!(proxy.msc(&answer), answer);
    assert_eq!(proxy.events(), [proxy::Event::MscName("MSC-1".into())]);
    for ccm_frame in [Ccm::IdAck, Ccm::Ping, Ccm::Pong] {
        assert_eq!(proxy.msc(ccm(&ccm_frame)), ccm(&ccm_frame));
        assert_eq!(proxy.hlr(ccm(&ccm_frame)), ccm(&ccm_frame));
    }
    assert_eq!(proxy.events(), []);
}

#[test]
fn proxy_adds_a_missing_unit_id() {
    for answer in [identity(&[(0, b"MSC-1\0")]), identity(&[(8, b""), (0, b"MSC-1\0")])] {
        let mut proxy = ProxyFixture::new();
        let answer = [&answer[..], &ccm(&Ccm::IdAck)].concat();
        let passed = proxy.msc(answer);
        let complete =
            [identity(&[(0, b"MSC-1\0"), (ccm::tag::UNIT_ID, b"0/0/0\0")]), ccm(&Ccm::IdAck)].concat();
        assert_eq!(passed, complete);
        assert_eq!(proxy.events(), [proxy::Event::MscName("MSC-1".into())]);
    }
}

#[test]
fn proxy_without_hlr_answers_pings_and_sends_the_identity_on_reconnect() {
    let mut proxy = ProxyFixture::new();
    proxy.0.hlr_disconnected();
    let greeting = identity(&[(8, b"0/0/0\0"), (0, b"MSC-1\0")]);
    proxy.0.from_msc(&mut BytesMut::from(&greeting[..]));
    proxy.0.from_msc(&mut ccm(&Ccm::Ping));
    assert_eq!(proxy.msc_gets(), ccm(&Ccm::Pong));
    assert_eq!(proxy.events(), [proxy::Event::MscName("MSC-1".into())]);
    assert_eq!(proxy.0.waiting_for_hlr(), 0, "the HLR is greeted when it is there");
    // Queued signalling expires and is bounded.
    let ccm_frame = ccm(&Ccm::Other(Bytes::from_static(&[0x77, 1])));
    proxy.0.from_msc(&mut BytesMut::from(&ccm_frame[..]));
    proxy.0.expire();
    proxy.0.from_msc(&mut BytesMut::from(&ccm_frame[..]));
    proxy.0.expire();
    proxy.0.hlr_connected();
    assert_eq!(proxy.hlr_gets(), [&greeting[..], &ccm_frame[..]].concat());
    // The first identity request was answered by the proxy; the next one is relayed.
    let question = ccm(&Ccm::IdGet(vec![8, 0]));
    assert_eq!(proxy.hlr(&question), BytesMut::new());
    assert_eq!(proxy.hlr(&question), question);
    proxy.0.hlr_disconnected();
    for _ in 0..100_000 {
        proxy.0.from_msc(&mut BytesMut::from(&ccm_frame[..]));
    }
    assert!(proxy.0.waiting_for_hlr() <= 256 << 10);
}

#[test]
fn proxy_intercepts_only_short_messages() {
    let mut proxy = ProxyFixture::new();
    let before = frame(&message(MessageType::SEND_AUTH_INFO_REQUEST));
    let mo = message(MessageType::MO_FORWARD_SM_REQUEST).with_reference(42);
    let after = frame(&message(MessageType(0x20)));
    let input = [&before[..], &frame(&mo), &after, &ccm(&Ccm::Ping)].concat();
    assert_eq!(proxy.msc(input), [&before[..], &after, &ccm(&Ccm::Ping)].concat());
    assert_eq!(proxy.events(), [proxy::Event::ShortMessage(mo.clone())]);
    assert!(proxy.msc_gets().is_empty(), "it is the owner's to answer");
    proxy.0.inject_to_msc(&mo.refused(RpCause::CONGESTION, None));
    assert_eq!(proxy.msc_gets(), frame(&mo.refused(RpCause::CONGESTION, None)));
}

#[test]
fn proxy_answers_ready_for_sm() {
    let mut proxy = ProxyFixture::new();
    let ready = message(MessageType::READY_FOR_SM_REQUEST)
        .with_reference(3)
        .with_alert_reason(AlertReason::MEMORY_AVAILABLE)
        .with_source_name(&name("MSC-1"));
    assert!(proxy.msc(frame(&ready)).is_empty());
    let answer = message(MessageType::READY_FOR_SM_RESULT)
        .with_reference(3)
        .with_class(gsup::MessageClass::SMS)
        .with_source_name(&name("SMSC-1"))
        .with_destination_name(&name("MSC-1"));
    assert_eq!(proxy.msc_gets(), frame(&answer));
    assert_eq!(proxy.events(), [proxy::Event::ShortMessage(ready)]);
}

#[test]
fn proxy_injects_mts_between_frames() {
    let mut proxy = ProxyFixture::new();
    let theirs = frame(&message(MessageType::INSERT_DATA_REQUEST));
    let mut input = theirs.clone();
    input.extend_from_slice(&theirs[..5]);
    proxy.0.from_hlr(&mut input);
    assert_eq!(input, theirs[..5], "an incomplete frame waits");
    proxy.0.inject_to_msc(&mt(1));
    proxy.0.inject_to_msc(&mt(2));
    input.extend_from_slice(&theirs[5..]);
    proxy.0.from_hlr(&mut input);
    assert_eq!(proxy.msc_gets(), [theirs.clone(), frame(&mt(1)), frame(&mt(2)), theirs].concat());
    let answers = [
        message(MessageType::MT_FORWARD_SM_RESULT).with_reference(0),
        message(MessageType::MT_FORWARD_SM_ERROR).with_rp_cause(RpCause::MEMORY_CAPACITY_EXCEEDED),
    ];
    for answer in answers {
        assert!(proxy.msc(frame(&answer)).is_empty());
        assert_eq!(proxy.events(), [proxy::Event::ShortMessage(answer)]);
    }
}

#[test]
fn proxy_relays_answers_for_another_service_centre() {
    let mut proxy = ProxyFixture::new();
    let answer = message(MessageType::MT_FORWARD_SM_RESULT).with_reference(0);
    // By name, from an MSC that writes names.
    let named = answer.clone().with_source_name(&name("MSC-1")).with_destination_name(&name("SMSC-2"));
    assert_eq!(proxy.msc(frame(&named)), frame(&named));
    let ours = answer.clone().with_destination_name(&name("SMSC-1"));
    assert!(proxy.msc(frame(&ours)).is_empty());
    assert_eq!(proxy.events(), [proxy::Event::ShortMessage(ours)]);
    // By subscriber, from an MSC that does not.
    assert_eq!(proxy.hlr(frame(&mt(1))), frame(&mt(1)));
    assert_eq!(proxy.msc(frame(&answer)), frame(&answer));
    proxy.hlr(frame(&mt(1)));
    proxy.0.inject_to_msc(&mt(1));
    assert!(proxy.msc(frame(&answer)).is_empty(), "ours is answered first");
    assert_eq!(proxy.msc(frame(&answer)), frame(&answer));
    // Without a known request, it may answer one from an earlier connection.
    assert!(proxy.msc(frame(&answer)).is_empty());
}

#[test]
fn proxy_recognises_tagged_names() {
    let mut proxy = ProxyFixture::new();
    let answer = |name: &'static str| {
        message(MessageType::MT_FORWARD_SM_RESULT).with_reference(0).with_destination_name(&self::name(name))
    };
    for ours in ["SMSC-1", "SMSC-1#", "SMSC-1#0000002a"] {
        assert!(proxy.msc(frame(&answer(ours))).is_empty(), "{ours}");
        assert_eq!(proxy.events(), [proxy::Event::ShortMessage(answer(ours))]);
    }
    for theirs in ["SMSC-10", "SMSC", "SMSC-2#1"] {
        assert_eq!(proxy.msc(frame(&answer(theirs))), frame(&answer(theirs)));
    }
    assert_eq!(proxy.events(), []);
}

#[test]
fn proxy_counts_relayed_frames() {
    let mut proxy = ProxyFixture::new();
    let passes = [frame(&message(MessageType::SEND_AUTH_INFO_REQUEST)), ccm(&Ccm::Ping)].concat();
    proxy.msc([&passes[..], &frame(&message(MessageType::MO_FORWARD_SM_REQUEST))].concat());
    proxy.hlr(&passes);
    assert_eq!(proxy.0.relayed_frames(), 4);
    // An intercepted message is not counted unless it is relayed.
    proxy.0.inject_to_msc(&mt(1));
    assert_eq!(proxy.0.relayed_frames(), 4);
    proxy.msc(frame(&message(MessageType::MT_FORWARD_SM_RESULT).with_destination_name(&name("SMSC-2"))));
    assert_eq!(proxy.0.relayed_frames(), 5);
}

#[test]
fn proxy_learns_subscriber_locations() {
    let mut proxy = ProxyFixture::new();
    let request =
        message(MessageType::UPDATE_LOCATION_REQUEST).with(Tag::CN_DOMAIN, &[CnDomain::CS.0]).unwrap();
    assert_eq!(proxy.msc(frame(&request)), frame(&request));
    assert_eq!(proxy.events(), [], "no answer from the HLR");
    let insert = message(MessageType::INSERT_DATA_REQUEST).with_msisdn("15551234567").unwrap();
    let result = message(MessageType::UPDATE_LOCATION_RESULT);
    let input = [frame(&insert), frame(&result)].concat();
    assert_eq!(proxy.hlr(&input), input);
    let number = proxy::Event::Number { imsi: imsi(1), msisdn: "15551234567".into() };
    assert_eq!(proxy.events(), [number, proxy::Event::LocationUpdated(imsi(1))]);
    let purge = frame(&message(MessageType::PURGE_MS_REQUEST));
    assert_eq!(proxy.msc(&purge), purge);
    assert_eq!(proxy.events(), [proxy::Event::Detached(imsi(1))]);
    let cancel = frame(&message(MessageType::LOCATION_CANCEL_REQUEST));
    assert_eq!(proxy.hlr(&cancel), cancel);
    assert_eq!(proxy.events(), [proxy::Event::Detached(imsi(1))]);
}

#[test]
fn proxy_ignores_packet_switched_locations() {
    let mut proxy = ProxyFixture::new();
    let packet = |kind| message(kind).with(Tag::CN_DOMAIN, &[CnDomain::PS.0]).unwrap();
    proxy.msc(frame(&packet(MessageType::UPDATE_LOCATION_REQUEST)));
    proxy.hlr(frame(&message(MessageType::UPDATE_LOCATION_RESULT)));
    proxy.msc(frame(&packet(MessageType::PURGE_MS_REQUEST)));
    proxy.msc(frame(&packet(MessageType::UPDATE_LOCATION_REQUEST)));
    proxy.hlr(frame(&message(MessageType::UPDATE_LOCATION_ERROR)));
    assert_eq!(proxy.events(), []);
    proxy.hlr(frame(&message(MessageType::UPDATE_LOCATION_RESULT)));
    assert_eq!(proxy.events(), [proxy::Event::LocationUpdated(imsi(1))]);
}

#[test]
fn proxy_relays_unknown_frames() {
    let mut proxy = ProxyFixture::new();
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
        assert_eq!(proxy.msc(broken), broken);
        assert_eq!(proxy.hlr(broken), broken);
    }
    let longest = [&[0xff, 0xff, 0xee, 5, 0x24][..], &[7; 65_533]].concat();
    assert_eq!(proxy.msc(&longest), longest[..]);
    assert_eq!(proxy.events(), []);
}

#[test]
fn relayed_frames_are_not_copied() {
    let mut proxy = Proxy::new(None);
    let one = frame(&message(MessageType::SEND_AUTH_INFO_REQUEST));
    let mut input = BytesMut::from(&one.repeat(40)[..]);
    let place = input.as_ptr();
    proxy.from_msc(&mut input);
    let passed = proxy.to_hlr().unwrap();
    assert_eq!((passed.as_ptr(), passed.len()), (place, one.len() * 40), "one piece, where it was read");
    assert_eq!(proxy.to_hlr(), None);
}

// CTRL client.

fn ask(client: &mut ctrl::CtrlClient, token: u64, number: &str) -> String {
    client.look_up(0, token, Msisdn::new(number).unwrap());
    question(client)
}

fn question(client: &mut ctrl::CtrlClient) -> String {
    let frames = frames(client.output().split());
    let [IpaFrame::Ctrl(line)] = &frames[..] else { panic!("{frames:?}") };
    String::from_utf8(line.to_vec()).unwrap()
}

fn reply(client: &mut ctrl::CtrlClient, line: &str) -> Option<ctrl::Event> {
    let mut octets = BytesMut::new();
    IpaFrame::Ctrl(Bytes::copy_from_slice(line.as_bytes())).put(&mut octets);
    client.receive(&octets);
    client.poll_event()
}

fn answer(token: u64, answer: LookupAnswer) -> Option<ctrl::Event> {
    Some(ctrl::Event::Answer { token, answer })
}

#[test]
fn subscriber_is_found_by_number() {
    let mut client = ctrl::CtrlClient::new(LookupDetail::Imsi, 5_000);
    assert_eq!(ask(&mut client, 70, "+15551234567"), "GET 1 subscriber.by-msisdn-15551234567.imsi");
    assert_eq!(ask(&mut client, 80, "15551234568"), "GET 2 subscriber.by-msisdn-15551234568.imsi");
    assert_eq!(ask(&mut client, 90, "15551234569"), "GET 3 subscriber.by-msisdn-15551234569.imsi");
    assert_eq!(client.open(), 3);
    assert_eq!(reply(&mut client, "ERROR 2 No such subscriber."), answer(80, LookupAnswer::Unknown));
    let line = "GET_REPLY 1 subscriber.by-msisdn-15551234567.imsi 001010000000001";
    let subscriber =
        ctrl::CtrlSubscriber { imsi: imsi(1), msisdn: Some("15551234567".into()), vlr_number: None };
    assert_eq!(reply(&mut client, line), answer(70, LookupAnswer::Found(subscriber)));
    assert_eq!(reply(&mut client, line), None, "answered once");
    assert_eq!(reply(&mut client, "TRAP 0 something else"), None);
    let failed = LookupAnswer::Failed("Database is away".into());
    assert_eq!(reply(&mut client, "ERROR 3 Database is away"), answer(90, failed));
    assert_eq!((client.open(), client.next_tick()), (0, None));
}

#[test]
fn old_hlr_is_queried_for_info() {
    let mut client = ctrl::CtrlClient::new(LookupDetail::Imsi, 5_000);
    ask(&mut client, 7, "15551234567");
    assert_eq!(reply(&mut client, "ERROR 1 Command not found"), None);
    assert_eq!(question(&mut client), "GET 2 subscriber.by-msisdn-15551234567.info");
    let line = "GET_REPLY 2 subscriber.by-msisdn-15551234567.info \nid\t1\nimsi\t001010000000001\nvlr_number\tMSC-1\n";
    let subscriber = ctrl::CtrlSubscriber { imsi: imsi(1), msisdn: None, vlr_number: Some("MSC-1".into()) };
    assert_eq!(reply(&mut client, line), answer(7, LookupAnswer::Found(subscriber)));
    // The client remembers the missing support.
    assert_eq!(ask(&mut client, 8, "15551234567"), "GET 3 subscriber.by-msisdn-15551234567.info");
    let failed = LookupAnswer::Failed("Command not found".into());
    assert_eq!(reply(&mut client, "ERROR 3 Command not found"), answer(8, failed), "no HLR at all");
    let mut client = ctrl::CtrlClient::new(LookupDetail::Full, 5_000);
    assert_eq!(ask(&mut client, 1, "15551234567"), "GET 1 subscriber.by-msisdn-15551234567.info");
}

#[test]
fn query_takes_digits_only() {
    for number in ["", "+", "1 2", "12\n", "123.imsi", "1234567890123456", "١٢٣", "0x12", "12*", "++12"] {
        assert!(Msisdn::new(number).is_err(), "{number:?}");
    }
    assert_eq!(Msisdn::new("+491").unwrap().as_str(), "491");
}

#[test]
fn query_times_out() {
    let mut client = ctrl::CtrlClient::new(LookupDetail::Imsi, 5_000);
    client.look_up(100, 1, Msisdn::new("1").unwrap());
    client.look_up(200, 2, Msisdn::new("2").unwrap());
    client.look_up(300, 3, Msisdn::new("3").unwrap());
    client.output().clear();
    assert_eq!(client.next_tick(), Some(5_100));
    assert_eq!(reply(&mut client, "ERROR 1 No such subscriber."), answer(1, LookupAnswer::Unknown));
    assert_eq!(client.next_tick(), Some(5_200));
    client.tick(5_199);
    assert_eq!(client.poll_event(), None);
    client.tick(5_200);
    assert_eq!(client.poll_event(), answer(2, LookupAnswer::TimedOut));
    assert_eq!(reply(&mut client, "ERROR 2 No such subscriber."), None, "too late");
    client.look_up(5_200, 4, Msisdn::new("4").unwrap());
    assert_eq!(client.close(), [3, 4]);
    assert_eq!((client.open(), client.next_tick()), (0, None));
}

#[test]
fn answer_without_a_valid_imsi_fails() {
    let mut client = ctrl::CtrlClient::new(LookupDetail::Imsi, 5_000);
    ask(&mut client, 1, "1");
    let failed = LookupAnswer::Failed("the answer contains no valid IMSI".into());
    assert_eq!(reply(&mut client, "GET_REPLY 1 subscriber.by-msisdn-1.imsi none"), answer(1, failed));
    client.receive(b"\0\0\xee");
    assert_eq!(client.poll_event(), Some(ctrl::Event::Lost(FrameError::Empty { stream: 0xee })));
}
