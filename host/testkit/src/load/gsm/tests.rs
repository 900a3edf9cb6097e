//! The simulated nodes against each other, with an SMSC that only reads and writes frames.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed step fails the test")]

use super::wire;
use super::*;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(20);

/// An SMSC, or any other connection to an HLR.
struct TestSmsc {
    socket: TcpStream,
    input: Vec<u8>,
}

impl TestSmsc {
    fn connect(hlr: SocketAddr, name: &str) -> Self {
        let socket = TcpStream::connect(hlr).unwrap();
        socket.set_read_timeout(Some(TIMEOUT)).unwrap();
        socket.set_nodelay(true).unwrap();
        let mut centre = Self { socket, input: Vec::new() };
        assert_eq!(centre.frame()[..4], [0, 0x11, wire::CCM, wire::ID_GET]);
        let mut output = Vec::new();
        wire::id_response(&mut output, name);
        wire::word(&mut output, wire::PING);
        centre.socket.write_all(&output).unwrap();
        assert_eq!(centre.frame(), [0, 1, wire::CCM, wire::PONG]);
        centre
    }

    /// The next complete frame.
    fn frame(&mut self) -> Vec<u8> {
        loop {
            let mut rest = &self.input[..];
            if wire::next(&mut rest).is_some() {
                let rest = rest.to_vec();
                let length = self.input.len() - rest.len();
                let mut frame = std::mem::replace(&mut self.input, rest);
                frame.truncate(length);
                return frame;
            }
            let mut some = [0; 4096];
            let count = self.socket.read(&mut some).unwrap();
            assert!(count > 0, "the connection was closed");
            self.input.extend_from_slice(&some[..count]);
        }
    }

    /// Type and causes of the next message.
    fn outcome(&mut self) -> (u8, Option<u8>, Option<u8>) {
        let frame = self.frame();
        let message = wire::Message::read(&frame[3..]).unwrap();
        (message.kind, message.octet(wire::RP_CAUSE), message.octet(wire::CAUSE))
    }

    fn send(&mut self, subscriber: u64, number: u64) {
        let text = format!("n={number:010} c=000 ");
        let head = [4, 11, 0x91, 0x51, 0x55, 0x21, 0x43, 0x65, 0xf7, 0, 4, 0, 0, 0, 0, 0, 0, 0];
        let tpdu = [&head[..], &[text.len() as u8], text.as_bytes()].concat();
        let name = wire::name("SMSC-1");
        let elements: [(u8, &[u8]); 5] = [
            (wire::RP_MR, &[0xff]),
            (wire::RP_OA, &[3, 0x91, 0x21, 0x43]),
            (wire::RP_UI, &tpdu),
            (wire::CLASS, &[2]),
            (wire::SOURCE, &name),
        ];
        let mut frame = Vec::new();
        wire::message(&mut frame, wire::MT_FORWARD, Subscribers::imsi(subscriber), &elements);
        self.socket.write_all(&frame).unwrap();
    }
}

const TAKEN: (u8, Option<u8>, Option<u8>) = (wire::MT_FORWARD + wire::RESULT, None, None);
const FULL: (u8, Option<u8>, Option<u8>) = (wire::MT_FORWARD + wire::ERROR, Some(22), None);

fn network(answers: MtBehaviour) -> (SimulatedHlr, SimulatedMsc, TestSmsc) {
    let options =
        HlrOptions { centre: Some("SMSC-1".to_owned()), ..HlrOptions::new(Subscribers::new(10, "1")) };
    let hlr = SimulatedHlr::start(options).unwrap();
    let mut options = MscOptions::new(hlr.gsup(), "MSC-1");
    (options.names, options.range, options.answers, options.keep) = (true, 0..10, answers, true);
    let msc = SimulatedMsc::start(options).unwrap();
    let centre = TestSmsc::connect(hlr.gsup(), "SMSC-1");
    msc.wait_for_located(10, TIMEOUT).unwrap();
    (hlr, msc, centre)
}

#[test]
fn handsets_accept_messages() {
    let (hlr, msc, mut centre) = network(MtBehaviour::Accept);
    for number in 0..100 {
        centre.send(number % 10, number);
        assert_eq!(centre.outcome(), TAKEN);
    }
    let report = msc.report();
    assert_eq!(
        (report.accepted_count(), report.overlaps, report.more_count(), report.broken),
        (100, 0, 0, 0)
    );
    assert_eq!((report.out_of_order(), report.duplicate_count()), (0, 0));
    assert!(report.per_subscriber().values().all(|count| *count == 10));
    assert_eq!(report.arrivals[42].number, Some((42, 0)));
    assert_eq!(report.arrivals[42].text().as_deref(), Some("n=0000000042 c=000 "));
    centre.send(1, 5);
    assert_eq!(centre.outcome(), TAKEN);
    assert_eq!(
        (msc.report().out_of_order(), msc.report().duplicate_count()),
        (1, 1),
        "5 is late, and went to another before"
    );
    centre.send(10, 0);
    assert_eq!(
        centre.outcome(),
        (wire::MT_FORWARD + wire::ERROR, None, Some(2)),
        "there is no such subscriber"
    );
    drop(msc);
    while hlr.is_connected("MSC-1") {
        std::thread::yield_now();
    }
    centre.send(1, 0);
    assert_eq!((centre.outcome(), hlr.unrouted()), ((wire::ROUTING_ERROR, None, None), 1));
}

#[test]
fn two_messages_at_a_time_are_detected() {
    let (_hlr, msc, mut centre) = network(MtBehaviour::Accept);
    msc.behave(MtBehaviour::Accept, Duration::from_millis(300));
    centre.send(1, 1);
    centre.send(2, 2);
    centre.send(1, 3);
    assert_eq!([centre.outcome(), centre.outcome(), centre.outcome()], [TAKEN; 3]);
    assert_eq!(msc.report().overlaps, 1);
}

#[test]
fn full_handsets_report_available_memory() {
    let (_hlr, msc, mut centre) = network(MtBehaviour::Full(Duration::from_millis(50)));
    centre.send(1, 1);
    assert_eq!(centre.outcome(), FULL);
    assert_eq!(centre.outcome(), (wire::READY, None, None));
    centre.send(1, 1);
    assert_eq!(centre.outcome(), TAKEN);
    assert_eq!(msc.report().arrivals.len(), 2);
    centre.send(2, 2);
    assert_eq!(centre.outcome(), FULL, "each for itself");
}

#[test]
fn handsets_refuse_and_then_accept() {
    let (_hlr, msc, mut centre) =
        network(MtBehaviour::Refuse(vec![RefusalCause::Handset(111), RefusalCause::Network(17)]));
    for outcome in [
        (wire::MT_FORWARD + wire::ERROR, Some(111), None),
        (wire::MT_FORWARD + wire::ERROR, None, Some(17)),
        TAKEN,
    ] {
        centre.send(3, 3);
        assert_eq!(centre.outcome(), outcome);
    }
    msc.behave(MtBehaviour::Twice, Duration::ZERO);
    centre.send(3, 4);
    assert_eq!([centre.outcome(), centre.outcome()], [TAKEN; 2]);
    msc.behave(MtBehaviour::Never, Duration::ZERO);
    centre.send(3, 5);
    msc.wait_for_arrivals(5, TIMEOUT).unwrap();
    assert_eq!(msc.report().accepted_count(), 2);
}

#[test]
fn handsets_send_messages() {
    let (_hlr, msc, mut centre) = network(MtBehaviour::Accept);
    let phone =
        MoSender { subscriber: 4, number: "10000000004", centre: "19990014444", reference: 9, report: true };
    let answer = std::thread::scope(|scope| {
        let answer = scope.spawn(|| msc.submit(&phone, "15551234567", "hello", TIMEOUT));
        let frame = centre.frame();
        let message = wire::Message::read(&frame[3..]).unwrap();
        assert_eq!((message.kind, message.imsi), (wire::MO_FORWARD, Subscribers::imsi(4)));
        assert_eq!(message.get(wire::RP_UI).unwrap()[..4], [0x21, 9, 11, 0x91]);
        let name = wire::name("SMSC-1");
        let elements: [(u8, &[u8]); 4] = [
            (wire::RP_MR, &[9]),
            (wire::RP_CAUSE, &[42]),
            (wire::SOURCE, &name),
            (wire::DESTINATION, message.get(wire::SOURCE).unwrap()),
        ];
        let mut refusal = Vec::new();
        wire::message(&mut refusal, wire::MO_FORWARD + wire::ERROR, message.imsi, &elements);
        centre.socket.write_all(&refusal).unwrap();
        answer.join().unwrap()
    });
    assert_eq!(answer, MoAnswer::Refused(Some(42)));
    drop(centre);
    let mut answer = MoAnswer::NoAnswer;
    while answer != MoAnswer::NoRoute {
        answer = msc.submit(&phone, "15551234567", "hello", Duration::from_millis(100));
    }
}

#[test]
fn a_name_is_registered_once() {
    let (hlr, _msc, _centre) = network(MtBehaviour::Accept);
    let second = TestSmsc::connect(hlr.gsup(), "SMSC-1");
    assert_eq!(hlr.refused(), 1, "it is connected, and gets nothing");
    drop(second);
}

/// Sends a question to the control interface and returns the answer.
fn ask(socket: &mut TcpStream, line: &str) -> Option<String> {
    let mut frame = Vec::new();
    wire::frame(&mut frame, wire::OSMOCOM, |out| {
        out.push(wire::CTRL);
        out.extend_from_slice(line.as_bytes());
    });
    socket.write_all(&frame).ok()?;
    let mut head = [0; 4];
    socket.read_exact(&mut head).ok()?;
    let mut text = vec![0; usize::from(u16::from_be_bytes([head[0], head[1]])) - 1];
    socket.read_exact(&mut text).ok()?;
    String::from_utf8(text).ok()
}

#[test]
fn an_hlr_answers_questions_and_counts_them() {
    let mut old = SimulatedHlr::start(HlrOptions::new(Subscribers::new(10, "1"))).unwrap();
    let mut socket = TcpStream::connect(old.ctrl()).unwrap();
    let answer = ask(&mut socket, "GET 1 subscriber.by-msisdn-10000000007.imsi").unwrap();
    assert_eq!(answer, "ERROR 1 Command not found");
    let info = ask(&mut socket, "GET 2 subscriber.by-msisdn-10000000007.info").unwrap();
    assert!(
        info.starts_with(
            "GET_REPLY 2 subscriber.by-msisdn-10000000007.info \nid\t8\nimsi\t001010000000007\n"
        )
    );
    assert!(!info.contains("vlr_number"), "it was nowhere yet");
    assert_eq!(ask(&mut socket, "GET 3 subscriber.by-msisdn-1.info").unwrap(), "ERROR 3 No such subscriber.");
    old.stop();
    assert_eq!(ask(&mut socket, "GET 4 subscriber.by-msisdn-10000000007.info"), None);
    assert!(TcpStream::connect(old.ctrl()).is_err());
    old.restart().unwrap();
    let mut socket = TcpStream::connect(old.ctrl()).unwrap();
    assert!(ask(&mut socket, "GET 5 subscriber.by-msisdn-10000000007.info").is_some());
    let report = old.control_report();
    assert_eq!((report.questions, report.per_number["10000000007"]), (3, 2));
    assert_eq!((report.most_at_a_time, report.connections), (1, 2));

    let new = HlrOptions { centre: Some("SMSC-1".to_owned()), ..HlrOptions::new(Subscribers::new(10, "1")) };
    let new = SimulatedHlr::start(new).unwrap();
    let mut socket = TcpStream::connect(new.ctrl()).unwrap();
    let answer = ask(&mut socket, "GET 1 subscriber.by-msisdn-10000000007.imsi").unwrap();
    assert_eq!(answer, "GET_REPLY 1 subscriber.by-msisdn-10000000007.imsi 001010000000007");
}

#[test]
fn question_latency_is_measured() {
    let hlr = SimulatedHlr::start(HlrOptions::new(Subscribers::new(10, "1"))).unwrap();
    let mut msc = PlainMsc::connect(hlr.gsup(), "MSC-1").unwrap();
    let mut times = crate::load::Histogram::default();
    msc.ask(1, 100, &mut times).unwrap();
    msc.submit_all(1, 1_000, 64).unwrap();
    assert_eq!((times.count(), hlr.messages()), (100, 1_100));
}
