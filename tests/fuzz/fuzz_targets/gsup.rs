//! GSUP: frames, messages, a client of an HLR, the proxy between MSC and HLR, queries to a control interface. The first
//! octet selects the target.
#![no_main]

use arbitrary::{Arbitrary, Unstructured};
use bytes::{Bytes, BytesMut};
use gsup::ccm::{Ccm, Identity};
use gsup::client::{self, ClientTimeouts, GsupClient};
use gsup::ctrl::{self, LookupDetail, Msisdn};
use gsup::ipa::{self, IpaFrame};
use gsup::proxy::{Event, Proxy};
use gsup::{Failure, GsupImsi, GsupMessage, MessageType, Reporter, RpAddress, Tag};
use libfuzzer_sys::fuzz_target;
use std::collections::VecDeque;

/// A message: encoding restores the decoded octets.
fn message(octets: &[u8]) {
    let octets = Bytes::copy_from_slice(octets);
    let peeked = gsup::peek(&octets);
    let Ok(message) = GsupMessage::decode(&octets) else { return };
    assert_eq!(message.encode(), octets);
    assert_eq!(peeked, Ok((message.kind, message.imsi)));
    for tag in [Tag::SM_RP_DA, Tag::SM_RP_OA] {
        let Some(Ok(address)) = message.get(tag).map(|value| RpAddress::decode(tag, value)) else { continue };
        let again =
            GsupMessage::new(message.kind, message.imsi).with_destination(&address).expect("it was read");
        assert_eq!(again.destination(), Ok(Some(address)));
    }
    if let Some(msisdn) = message.msisdn() {
        let again = GsupMessage::new(message.kind, message.imsi).with_msisdn(&msisdn).expect("it was read");
        assert_eq!(again.msisdn(), Some(msisdn));
    }
    let reporter = if message.more_messages() { Reporter::Msc } else { Reporter::Hlr };
    let failure =
        Failure::of(&message, reporter, message.user_information().and_then(|ui| ui.first().copied()));
    assert_eq!(failure.is_some(), [0x29, 0x4e].contains(&message.kind.0));
    for answer in [message.accepted(None), message.refused(gsup::RpCause::CONGESTION, None)] {
        assert_eq!(GsupMessage::decode(&answer.encode()), Ok(answer));
    }
    let _ =
        (format!("{message:?}"), message.source_name(), message.destination_name(), message.alert_reason());
}

/// A connection management message: a decoded message survives an encoding round trip.
fn ccm_frame(octets: &[u8]) {
    let ccm_frame = Ccm::decode(&Bytes::copy_from_slice(octets));
    let mut output = BytesMut::new();
    ccm_frame.put(&mut output);
    if !octets.is_empty() {
        let Ok(Some(IpaFrame::Ccm(payload))) = IpaFrame::take(&mut output, ipa::MAX_PAYLOAD) else {
            panic!("no frame")
        };
        assert_eq!(Ccm::decode(&payload), ccm_frame);
    }
}

/// A client with an arbitrary HLR: it writes only whole frames, and does nothing after its end.
fn client(octets: &[u8]) {
    let mut client =
        GsupClient::new(0, Identity::new("SMSC-1", "fuzz").expect("a name"), ClientTimeouts::default());
    let mut lost = false;
    for (now, piece) in (0..).step_by(7_000).zip(octets.chunks(23)) {
        client.receive(now, piece);
        client.tick(now + 6_000);
        if let Some(due) = client.next_tick() {
            assert!(due > now + 6_000, "what is due was not done");
        }
        while let Some(event) = client.poll_event() {
            assert!(!lost, "{event:?} after the end");
            lost = matches!(event, client::Event::Lost(_));
        }
        assert!(!lost || client.next_tick().is_none());
    }
    let mut output = client.output().split();
    while IpaFrame::take(&mut output, ipa::MAX_PAYLOAD).expect("frames").is_some() {}
    assert!(output.is_empty(), "a piece of a frame was written");
}

/// An arbitrary control interface: every query is answered or fails exactly once.
fn control(octets: &[u8]) {
    let mut client = ctrl::CtrlClient::new(LookupDetail::Imsi, 10);
    let mut open = Vec::new();
    for (at, piece) in octets.chunks(61).enumerate() {
        let now = at as u64;
        client.look_up(now, now, Msisdn::new("15551234567").expect("digits"));
        open.push(now);
        client.receive(piece);
        client.tick(now);
        assert!(client.next_tick().is_none_or(|due| due > now));
        while let Some(event) = client.poll_event() {
            if let ctrl::Event::Answer { token, .. } = event {
                let place = open.iter().position(|other| *other == token).expect("answered twice");
                open.remove(place);
            }
        }
        assert_eq!(client.open(), open.len());
    }
    let mut left = client.close();
    left.sort_unstable();
    assert_eq!(left, open);
    let _ = ctrl::CtrlSubscriber::parse(&String::from_utf8_lossy(octets));
}

/// The next step of a proxy.
#[derive(Arbitrary, Debug)]
enum Step<'a> {
    /// Arbitrary octets from the MSC.
    Msc(&'a [u8]),
    /// Arbitrary octets from the HLR.
    Hlr(&'a [u8]),
    /// A message from either side, of any type and with any elements.
    Message { hlr: bool, kind: u8, who: u8, elements: &'a [u8] },
    /// A frame from either side.
    Frame { hlr: bool, stream: u8, payload: &'a [u8] },
    /// A message to a phone.
    Send { who: u8 },
    /// Pending output is written.
    Write,
}

/// The frames of one side as the other side must receive them, parsed independently.
#[derive(Default)]
struct Side {
    input: BytesMut,
    /// Octets passed to the proxy that do not form a complete frame yet.
    stream: Vec<u8>,
    expected: VecDeque<u8>,
}

impl Side {
    /// Complete frames received.
    fn frames(&mut self) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        while let [high, low, _, ..] = self.stream[..] {
            let octets = 3 + usize::from(u16::from_be_bytes([high, low]));
            if self.stream.len() < octets {
                break;
            }
            let rest = self.stream.split_off(octets);
            frames.push(std::mem::replace(&mut self.stream, rest));
        }
        frames
    }
}

fn imsi(who: u8) -> GsupImsi {
    format!("00101000000000{}", who % 4).parse().expect("digits")
}

/// The proxy: everything is forwarded in order, except for the MSC's short messages; our own frames are inserted between frames.
struct Harness {
    proxy: Proxy,
    msc: Side,
    hlr: Side,
    sms: usize,
}

impl Harness {
    fn new() -> Self {
        let proxy = Proxy::new(Some("SMSC-1".parse().expect("a name")));
        Self { proxy, msc: Side::default(), hlr: Side::default(), sms: 0 }
    }

    fn step(&mut self, step: &Step<'_>) {
        match step {
            Step::Msc(octets) => self.receive(false, octets),
            Step::Hlr(octets) => self.receive(true, octets),
            Step::Message { hlr, kind, who, elements } => {
                let mut octets = GsupMessage::new(MessageType(*kind), imsi(*who)).encode().to_vec();
                octets.extend_from_slice(elements);
                let mut frame = BytesMut::new();
                IpaFrame::Gsup(octets.into()).put(&mut frame);
                self.receive(*hlr, &frame);
            }
            Step::Frame { hlr, stream, payload } => {
                let mut frame = BytesMut::new();
                IpaFrame::Other { stream: *stream, payload: Bytes::copy_from_slice(payload) }.put(&mut frame);
                self.receive(*hlr, &frame);
            }
            Step::Send { who } => {
                let message =
                    GsupMessage::new(MessageType::MT_FORWARD_SM_REQUEST, imsi(*who)).with_reference(255);
                let mut frame = BytesMut::new();
                message.put(&mut frame);
                self.proxy.inject_to_msc(&message);
                self.msc.expected.extend(frame);
            }
            Step::Write => self.write(),
        }
    }

    fn receive(&mut self, hlr: bool, octets: &[u8]) {
        if hlr {
            self.hlr.input.extend_from_slice(octets);
            self.hlr.stream.extend_from_slice(octets);
            self.proxy.from_hlr(&mut self.hlr.input);
            let frames = self.hlr.frames();
            self.msc.expected.extend(frames.into_iter().flatten());
            self.handle_events();
            return;
        }
        // One frame at a time, so that its effect is visible.
        self.msc.stream.extend_from_slice(octets);
        for frame in self.msc.frames() {
            self.msc.input.extend_from_slice(&frame);
            let before = self.proxy.waiting_for_hlr();
            self.proxy.from_msc(&mut self.msc.input);
            assert!(self.msc.input.is_empty(), "a whole frame was left");
            let passed = self.proxy.waiting_for_hlr() - before;
            let gsup = frame.get(2..4) == Some(&[0xee, 5]);
            let message = GsupMessage::decode(&Bytes::copy_from_slice(frame.get(4..).unwrap_or_default()));
            match message {
                Ok(message) if gsup && [0x24, 0x29, 0x2a, 0x2c].contains(&message.kind.0) => {
                    let is_answer = message.kind != MessageType::MO_FORWARD_SM_REQUEST
                        && message.kind != MessageType::READY_FOR_SM_REQUEST;
                    assert!(
                        passed == 0 || (is_answer && passed == frame.len()),
                        "a piece of a short message passed"
                    );
                    self.sms += usize::from(passed == 0);
                    if message.kind == MessageType::READY_FOR_SM_REQUEST {
                        let mut answer = BytesMut::new();
                        message.accepted(Some(&"SMSC-1".parse().expect("a name"))).put(&mut answer);
                        self.msc.expected.extend(answer);
                    }
                    if passed > 0 {
                        self.hlr.expected.extend(frame);
                    }
                }
                _ if passed == frame.len() => self.hlr.expected.extend(frame),
                _ => {
                    // An identity response was completed.
                    assert_eq!(frame.get(2..4), Some(&[0xfe, 5][..]), "a frame was lost");
                    self.write();
                }
            }
        }
        self.handle_events();
    }

    fn handle_events(&mut self) {
        while let Some(event) = self.proxy.poll_event() {
            if let Event::ShortMessage(message) = event {
                assert!([0x24, 0x29, 0x2a, 0x2c].contains(&message.kind.0));
                self.sms -= 1;
            }
        }
        assert_eq!(self.sms, 0, "a short message vanished");
    }

    fn write(&mut self) {
        while let Some(octets) = self.proxy.to_msc() {
            let expected: Vec<u8> = self.msc.expected.drain(..octets.len()).collect();
            assert_eq!(octets, expected);
        }
        assert!(self.msc.expected.is_empty() && self.proxy.waiting_for_msc() == 0);
        while let Some(octets) = self.proxy.to_hlr() {
            if self.hlr.expected.len() >= octets.len() {
                let expected: Vec<u8> = self.hlr.expected.drain(..octets.len()).collect();
                assert_eq!(octets, expected);
            } else {
                // The completed identity response differs: it has a unit id now.
                let mut input = BytesMut::from(&octets[..]);
                let Ok(Some(IpaFrame::Ccm(payload))) = IpaFrame::take(&mut input, ipa::MAX_PAYLOAD) else {
                    panic!("{octets:?}")
                };
                let Ccm::IdResponse(response) = Ccm::decode(&payload) else { panic!("{payload:?}") };
                assert!(response.get(gsup::ccm::tag::UNIT_ID).is_some_and(|id| !id.is_empty()));
                assert!(input.is_empty() && self.hlr.expected.is_empty());
            }
        }
        assert!(self.hlr.expected.is_empty() && self.proxy.waiting_for_hlr() == 0);
    }
}

fuzz_target!(|octets: &[u8]| {
    let Some((mode, rest)) = octets.split_first() else { return };
    match mode % 6 {
        0 => message(rest),
        1 => ccm_frame(rest),
        2 => client(rest),
        3 => control(rest),
        _ => {
            let mut harness = Harness::new();
            let Ok(steps) = Vec::<Step<'_>>::arbitrary(&mut Unstructured::new(rest)) else { return };
            for step in &steps {
                harness.step(step);
            }
            harness.write();
        }
    }
});
