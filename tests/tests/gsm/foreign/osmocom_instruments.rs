//! osmo-hlr, osmo-msc and the simulated radio side with a plain relay: verifies the test instruments. It pins down how osmo-msc 1.9.0
//! and osmo-hlr 1.5.0 behave where the protocol leaves it open, because the
//! appliance's tests depend on it.

use anyhow::{Context, Result, ensure};
use behaviour_tests::osmocom::{
    GsupRelay, Handset, HandsetAnswer, Hlr, Message, Msc, Paging, Radio, RpAnswer, Submit, decode_text,
};
use behaviour_tests::{Capture, CaptureProtocol};
use std::io::{Read, Write};
use std::net::TcpStream;

const IMSI: &str = "001010000000001";
const MSISDN: &str = "15551234567";
const CENTRE: &str = "19990014444";

const UPDATE_LOCATION: u8 = 0x04;
const MO: u8 = 0x24;
const MO_RESULT: u8 = 0x26;
const MO_ERROR: u8 = 0x25;
const MT: u8 = 0x28;
const MT_ERROR: u8 = 0x29;
const MT_RESULT: u8 = 0x2a;
const READY: u8 = 0x2c;
const READY_RESULT: u8 = 0x2e;

const CAUSE: u8 = 0x02;
const REFERENCE: u8 = 0x40;
const TPDU: u8 = 0x43;
const RP_CAUSE: u8 = 0x44;
const MORE: u8 = 0x45;
const ALERT_REASON: u8 = 0x46;

struct Network {
    hlr: Hlr,
    /// Capture between MSC and relay.
    capture: Capture,
    relay: GsupRelay,
    msc: Msc,
    handset: Handset,
    /// Ends with it.
    _radio: Radio,
    folder: tempfile::TempDir,
}

impl Network {
    /// One subscriber whose phone is on.
    fn start() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let hlr = Hlr::start(folder.path())?;
        hlr.subscriber(IMSI, MSISDN)?;
        let relay = GsupRelay::start(hlr.gsup())?;
        let capture = Capture::start_for(CaptureProtocol::Gsup, relay.address())?;
        let msc = Msc::start(folder.path(), "MSC-1", capture.address())?;
        hlr.wait_until_connected("MSC-1")?;
        let radio = Radio::connect(msc.sgs())?;
        let handset = radio.handset(IMSI);
        handset.attach().with_context(|| msc.log())?;
        Ok(Self { hlr, capture, relay, msc, handset, _radio: radio, folder })
    }

    /// Sends a message to the phone; returns the MSC's answer.
    fn deliver(&self, reference: u8) -> Result<Message> {
        self.relay.inject(&mt(reference))?;
        self.handset.next_mt()?;
        self.relay.next(MT_RESULT)
    }

    /// Waits until the link was established this many times, as seen from both ends.
    fn linked(&self, times: usize) -> Result<()> {
        self.relay.connections(times)?;
        self.msc.wait_until_linked(times)
    }

    /// Location updates that reached the HLR.
    fn updates(&self) -> usize {
        self.relay.forwarded().iter().filter(|message| message.kind == UPDATE_LOCATION).count()
    }
}

/// MT-forwardSM of an SMS-DELIVER "hello".
fn mt(reference: u8) -> Message {
    let tpdu = [
        0x04, 0x04, 0x91, 0x21, 0x43, 0, 0, 0x62, 0x11, 0x12, 0x11, 0x14, 0, 0, 5, 0xe8, 0x32, 0x9b, 0xfd,
        0x06,
    ];
    Message::about(MT, IMSI)
        .with(REFERENCE, &[reference])
        .with(0x41, &[0xff])
        .with(0x42, &[0x03, 0x91, 0x91, 0x99, 0x00, 0x41, 0x44, 0xf4])
        .with(TPDU, &tpdu)
        .with(0x0a, &[2])
}

/// An answer to a message from the phone.
fn answer(kind: u8, reference: u8) -> Message {
    Message::about(kind, IMSI).with(REFERENCE, &[reference]).with(0x0a, &[2])
}

#[test]
fn a_phone_attaches_receives_and_sends() -> Result<()> {
    let network = Network::start()?;
    assert!(network.hlr.show(IMSI)?.contains("VLR number: MSC-1"));
    assert!(network.hlr.connections()?.contains("'MSC-1'"));
    network.relay.inject(&mt(0xff))?;
    let came = network.handset.next_mt()?;
    assert_eq!((came.centre.as_str(), decode_text(&came.tpdu)?.as_str()), (CENTRE, "hello"));
    network.relay.next(MT_RESULT)?;
    let submit = Submit::new(7, "4915112345678", "from the phone").octets();
    let reference = network.handset.send(CENTRE, &submit)?;
    let request = network.relay.next(MO)?;
    assert_eq!((request.get(REFERENCE), request.get(TPDU)), (Some(&[reference][..]), Some(&*submit)));
    network.relay.inject(&answer(MO_RESULT, reference))?;
    assert_eq!(network.handset.answer(reference)?, RpAnswer::Ok);
    for cause in [1, 21, 27, 38, 41, 42, 50, 69, 95] {
        let reference = network.handset.send(CENTRE, &submit)?;
        network.relay.next(MO)?;
        network.relay.inject(&answer(MO_ERROR, reference).with(RP_CAUSE, &[cause]))?;
        assert_eq!(network.handset.answer(reference)?, RpAnswer::Refused(cause));
    }
    let fields = ["gsup.msg_type", "gsm_sms.tp-mti", "gsm_sms.sms_text"];
    let seen = network.capture.decode(network.folder.path(), "gsm_sms", &fields)?;
    let words = |words: [&str; 3]| words.map(|word| vec![word.to_owned()]).to_vec();
    assert_eq!(seen[0], words(["40", "0", "hello"]));
    assert_eq!(seen[1..], vec![words(["36", "1", "from the phone"]); 10]);
    Ok(())
}

#[test]
fn a_full_phone_reports_available_memory() -> Result<()> {
    let network = Network::start()?;
    network.handset.set_answer(HandsetAnswer::Refused(22));
    network.relay.inject(&mt(0x10))?;
    let error = network.relay.next(MT_ERROR)?;
    assert_eq!((error.get(RP_CAUSE), error.get(CAUSE)), (Some(&[22][..]), None));
    let reference = network.handset.request_memory_available()?;
    let ready = network.relay.next(READY)?;
    assert_eq!((ready.get(REFERENCE), ready.get(ALERT_REASON)), (Some(&[reference][..]), Some(&[2][..])));
    network.relay.inject(&answer(READY_RESULT, reference))?;
    assert_eq!(network.handset.answer(reference)?, RpAnswer::Ok);
    Ok(())
}

/// The MSC uses the lowest free reference, so almost always 0: an answer can only be matched by its subscriber.
#[test]
fn references_of_answers_are_ambiguous() -> Result<()> {
    let network = Network::start()?;
    for reference in [0x10, 0x11] {
        assert_eq!(network.deliver(reference)?.get(REFERENCE), Some(&[0][..]), "a channel each");
        network.handset.next_release()?;
    }
    network.relay.inject(&mt(0x12).with(MORE, &[1]))?;
    network.handset.next_mt()?;
    assert_eq!(network.relay.next(MT_RESULT)?.get(REFERENCE), Some(&[0][..]), "more is announced");
    let paged = network.handset.paged();
    assert_eq!(network.deliver(0x13)?.get(REFERENCE), Some(&[0][..]), "on the channel that was kept");
    assert_eq!(network.handset.paged(), paged, "nobody is paged for it");
    Ok(())
}

/// Two messages at a time, which the protocol does not forbid: the MSC accepts both.
#[test]
fn a_second_message_is_accepted_while_the_first_is_unanswered() -> Result<()> {
    let network = Network::start()?;
    network.handset.set_answer(HandsetAnswer::Nothing);
    network.relay.inject(&mt(0x10))?;
    assert_eq!(network.handset.next_mt()?.reference, 0);
    network.handset.set_answer(HandsetAnswer::Accepted);
    network.relay.inject(&mt(0x11))?;
    assert_eq!(network.handset.next_mt()?.reference, 1);
    assert_eq!(network.relay.next(MT_RESULT)?.get(REFERENCE), Some(&[1][..]));
    Ok(())
}

/// After 10 seconds of paging over SGs (Ts5) it gives up, and never answers.
#[test]
fn failed_paging_is_not_reported() -> Result<()> {
    let network = Network::start()?;
    network.handset.set_paging(Paging::OutOfCoverage);
    network.relay.inject(&mt(0x10))?;
    network.msc.wait_for_paging_failures(1)?;
    network.handset.set_paging(Paging::Answered);
    network.deliver(0x11)?;
    assert_eq!((network.handset.waiting(), network.relay.intercepted()), (0, Vec::new()));
    Ok(())
}

/// A switched-off phone is unknown to the MSC, whose error equals the HLR's error for an unknown subscriber.
/// The HLR is not informed: for the HLR the phone is still at this MSC.
#[test]
fn a_switched_off_phone_looks_like_an_unknown_subscriber() -> Result<()> {
    let network = Network::start()?;
    network.handset.detach()?;
    network.relay.inject(&mt(0x10))?;
    let error = network.relay.next(MT_ERROR)?;
    assert_eq!((error.get(CAUSE), error.get(RP_CAUSE)), (Some(&[2][..]), None));
    assert_eq!(error.get(REFERENCE), Some(&[0x10][..]), "here the reference is ours");
    assert!(network.hlr.show(IMSI)?.contains("VLR number: MSC-1"));
    assert_eq!(network.updates(), 1);
    Ok(())
}

/// The MSC reconnects after a second without re-attaching phones; messages that phones send before that are lost.
#[test]
fn only_messages_during_a_lost_link_are_lost() -> Result<()> {
    let network = Network::start()?;
    network.handset.set_answer(HandsetAnswer::Nothing);
    network.relay.inject(&mt(0x10))?;
    network.handset.next_mt()?;
    network.relay.cut()?;
    network.linked(2)?;
    network.handset.finish(HandsetAnswer::Accepted)?;
    network
        .relay
        .next(MT_RESULT)
        .context("it arrived before the link was lost, and was answered afterwards")?;

    network.relay.inject(&mt(0x11))?;
    network.handset.next_mt()?;
    network.relay.cut()?;
    network.handset.finish(HandsetAnswer::Accepted)?;
    network.linked(3)?;
    network.handset.set_answer(HandsetAnswer::Accepted);
    network.deliver(0x12)?;
    assert_eq!(network.relay.intercepted(), [], "the answer to the second message");
    assert_eq!(network.updates(), 1);
    Ok(())
}

/// osmo-hlr 1.5.0: `.info` begins with an empty line and has no `.imsi`.
#[test]
fn the_hlr_finds_subscribers_by_number_over_ctrl() -> Result<()> {
    let network = Network::start()?;
    let mut ctrl = TcpStream::connect(network.hlr.ctrl())?;
    let mut ask = |command: &str| -> Result<String> {
        let length = u16::try_from(command.len() + 1)?.to_be_bytes();
        ctrl.write_all(&[&length[..], &[0xee, 0], command.as_bytes()].concat())?;
        let mut head = [0; 4];
        ctrl.read_exact(&mut head)?;
        ensure!(head[2..] == [0xee, 0], "not CTRL: {head:02x?}");
        let mut answer = vec![0; usize::from(u16::from_be_bytes([head[0], head[1]])) - 1];
        ctrl.read_exact(&mut answer)?;
        Ok(String::from_utf8(answer)?)
    };
    assert_eq!(
        ask("GET 1 subscriber.by-msisdn-15551234567.info")?,
        "GET_REPLY 1 subscriber.by-msisdn-15551234567.info \nid\t1\nimsi\t001010000000001\nmsisdn\t15551234567\n\
         nam_cs\t1\nnam_ps\t1\nvlr_number\tMSC-1\nms_purged_cs\t0\nms_purged_ps\t0\nperiodic_lu_timer\t0\n\
         periodic_rau_tau_timer\t0\nlmsi\t00000000"
    );
    assert_eq!(ask("GET 2 subscriber.by-msisdn-15551234567.imsi")?, "ERROR 2 Command not found");
    assert_eq!(ask("GET 3 subscriber.by-msisdn-19999999999.info")?, "ERROR 3 No such subscriber.");
    Ok(())
}
