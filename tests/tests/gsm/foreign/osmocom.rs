//! The appliance as the SMSC of a network of real programs: between Debian's osmo-msc 1.9.0 and osmo-hlr 1.5.0, which
//! cannot route short messages. Only the radio side is simulated; every test name says so.

use anyhow::{Context, Result};
use behaviour_tests::load::gsm::{
    HlrOptions, MscOptions, MtBehaviour, SimulatedHlr, SimulatedMsc, Subscribers,
};
use behaviour_tests::osmocom::{
    Handset, HandsetAnswer, Hlr, Msc, Paging, Radio, RpAnswer, Submit, decode_report, decode_text,
};
use behaviour_tests::test_daemon::{PASSWORD, TestDaemon, TestDaemonConfig, free_port};
use behaviour_tests::{Capture, CaptureProtocol, Fixture, Peer, TIMEOUT, bind, steps, until};
use model::hex;
use serde_json::{Value, json};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

const CENTRE: &str = "19990014444";
const SHOP: &str = "491711234567";

/// Subscribers: IMSI and MSISDN.
const ANNA: (&str, &str) = ("001010000000001", "16195550101");
const BERT: (&str, &str) = ("001010000000002", "16195550102");

/// Our numbers are home numbers, premium numbers are refused, everything else goes to the account `shop`.
const ROUTES: &str = "[[route]]\nprefix = \"1619555\"\nhome = true\n\n\
                      [[route]]\nprefix = \"1900\"\nreject = \"prohibited\"\n\n\
                      [default]\nlegs = [{ peer = \"shop\" }]\n";

/// No attempt is retried for hours unless an event triggers it.
const HOURS: &str = "[temporary]\nwaits = [\"6h\"]\n[permanent]\nthen = \"fail\"\n\
                     [absent]\nwaits = [\"6h\"]\nawait-alert = true\nthen = \"fail\"\n\
                     [memory-full]\nwaits = [\"6h\"]\nawait-alert = true\nthen = \"fail\"\n\
                     [throttled]\nwaits = [\"0s\"]\n";

/// The appliance between an HLR and an MSC.
struct OsmocomFixture {
    // In drop order.
    radio: Radio,
    msc: Msc,
    appliance: Option<TestDaemon>,
    towards_us: Capture,
    towards_hlr: Capture,
    hlr: Hlr,
    fixture: Fixture,
}

impl OsmocomFixture {
    /// `keys` are further keys of `[[gsm]]`.
    fn start(keys: &str) -> Result<Self> {
        let fixture = Fixture::new()?;
        let hlr = Hlr::start(fixture.folder())?;
        for (imsi, msisdn) in [ANNA, BERT] {
            hlr.subscriber(imsi, msisdn)?;
        }
        let towards_hlr = Capture::start_for(CaptureProtocol::Gsup, hlr.gsup())?;
        let gsup = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()?));
        let mut config = fixture.config()?;
        config.router(&fixture.guest("prefix_router"), ROUTES)?.account("shop", "").tables(&format!(
            "[[gsm]]\nname = \"home\"\nlisten = \"{gsup}\"\nhlr = \"{}\"\nctrl = \"{}\"\nservice-centre = \"{CENTRE}\"\n{keys}\n\
             [home]\npeer = \"home\"\n",
            towards_hlr.address(),
            hlr.ctrl()
        ));
        let appliance = config.start()?;
        let component = fixture.component("hlr_resolver")?;
        let grants = json!({ "grants": { "hlr": true } });
        let document = "valid = \"1h\"\nunknown-valid = \"1h\"\ntry-again = \"1s\"\n";
        bind(&appliance, "resolver", "hlr-resolver", &component, document, &grants)?;
        let component = fixture.component("retry_ladder")?;
        bind(&appliance, "delivery-policy", "retry-ladder", &component, HOURS, &json!({}))?;
        let towards_us = Capture::start_for(CaptureProtocol::Gsup, gsup)?;
        let msc = Msc::start(fixture.folder(), "MSC-1", towards_us.address())?;
        hlr.wait_until_connected("MSC-1")?;
        let radio = Radio::connect(msc.sgs())?;
        Ok(Self { radio, msc, appliance: Some(appliance), towards_us, towards_hlr, hlr, fixture })
    }

    fn appliance(&self) -> Result<&TestDaemon> {
        self.appliance.as_ref().context("the appliance does not run")
    }

    /// A phone that is on.
    fn handset(&self, subscriber: (&str, &str)) -> Result<Handset> {
        let handset = self.radio.handset(subscriber.0);
        handset.attach().with_context(|| format!("{}\n{}", self.msc.log(), self.hlr.log()))?;
        Ok(handset)
    }

    /// The account `shop`, bound.
    fn shop(&self) -> Result<Peer> {
        let port = self.appliance()?.smpp().port();
        let options = json!({ "port": port, "system_id": "shop", "password": PASSWORD });
        let mut shop = Peer::python("esme.py", &options)?;
        assert_eq!(shop.expect("bound")?["status"], 0);
        Ok(shop)
    }

    /// Waits until a message is in this state; returns its trace.
    fn wait_for_state(&self, id: &str, state: &str) -> Result<Value> {
        self.appliance()?.wait_until(TIMEOUT, &format!("/v1/messages/{id}"), |trace| trace["state"] == state)
    }

    /// Sends SIGKILL, restarts, and waits until the MSC has reconnected.
    fn kill_appliance(&mut self) -> Result<()> {
        let config: TestDaemonConfig = self.appliance.take().context("the appliance does not run")?.kill()?;
        self.appliance = Some(config.start()?);
        self.wait_until_connected()
    }

    /// tshark finds no error in the traffic on either side.
    fn check_captures(&self) -> Result<()> {
        for capture in [&self.towards_us, &self.towards_hlr] {
            capture.decode(self.fixture.folder(), "gsup", &["gsup.msg_type"])?;
        }
        Ok(())
    }

    fn wait_until_connected(&self) -> Result<()> {
        self.appliance()?.wait_until(TIMEOUT, "/v1/gsm", |networks| {
            let connections = networks[0]["connections"].as_array();
            connections
                .is_some_and(|all| all.iter().any(|one| one["name"] == "MSC-1" && one["ready"] == true))
        })?;
        self.hlr.wait_until_connected("MSC-1")
    }
}

/// Submits a text of one segment; returns its id.
fn submit(shop: &mut Peer, to: (&str, &str), text: &str) -> Result<String> {
    shop.send_action(&json!({ "text": text, "from": SHOP, "to": to.1, "receipt": true, "tag": text }))?;
    let answer = shop.expect_matching("answer", |answer| answer["tag"] == text)?;
    assert_eq!(answer["status"], 0, "{answer}");
    Ok(answer["id"].as_str().context("no id")?.to_owned())
}

/// Waits for a message's DLR.
fn delivered(shop: &mut Peer, id: &str) -> Result<()> {
    let receipt = shop.expect_matching("deliver", |deliver| deliver["receipted_message_id"] == id)?;
    assert_eq!(receipt["message_state"], 2, "{receipt}");
    Ok(())
}

fn texts(handset: &Handset, count: usize) -> Result<Vec<String>> {
    (0..count).map(|_| decode_text(&handset.next_mt()?.tpdu)).collect()
}

#[test]
fn a_text_goes_to_a_phone_and_one_comes_back_with_a_simulated_radio_side() -> Result<()> {
    let network = OsmocomFixture::start("")?;
    let (anna, mut shop) = (network.handset(ANNA)?, network.shop()?);
    let id = submit(&mut shop, ANNA, "good morning")?;
    let came = anna.next_mt()?;
    assert_eq!((decode_text(&came.tpdu)?.as_str(), came.centre.as_str()), ("good morning", CENTRE));
    delivered(&mut shop, &id)?;
    let answer = anna.submit(CENTRE, &Submit::new(1, SHOP, "and to you").octets())?;
    assert_eq!(answer, RpAnswer::Ok);
    let came = shop.expect_matching("deliver", |deliver| deliver["text"] == "and to you")?;
    assert_eq!((&came["source"], &came["destination"]), (&json!(ANNA.1), &json!(SHOP)));

    // 10: call barred
    let answer = anna.submit(CENTRE, &Submit::new(2, "19005551234", "win").octets())?;
    assert_eq!(answer, RpAnswer::Refused(10));

    // tshark finds no error on either side, and decodes the expected values.
    let fields = ["gsup.msg_type", "gsm_sms.tp-mti", "gsm_sms.sms_text"];
    let seen = network.towards_us.decode(network.fixture.folder(), "gsup.msg_type >= 36", &fields)?;
    let short_messages: Vec<_> = seen.iter().map(|row| row[0].concat()).collect();
    // MT and its result; MO and its result; MO and its error
    assert_eq!(short_messages, ["40", "42", "36", "38", "36", "37"]);
    let texts = [(0, ["0", "good morning"]), (2, ["1", "and to you"]), (4, ["1", "win"])];
    for (row, wanted) in texts {
        assert_eq!(seen[row][1..], wanted.map(|field| vec![field.to_owned()]));
    }
    let seen = network.towards_hlr.decode(network.fixture.folder(), "gsup", &fields)?;
    let passed: Vec<_> = seen.iter().map(|row| row[0].concat()).collect();
    assert_eq!(passed, ["4", "16", "18", "6"], "a location update, and nothing else");
    Ok(())
}

/// Waits until a message waits for hours, so that no timer of ours can trigger the next attempt.
fn wait_for_long_deferral(network: &OsmocomFixture, id: &str) -> Result<()> {
    let trace = network.wait_for_state(id, "deferred")?;
    let why = trace["waiting_for"].as_str().context("no reason")?;
    let numbers = why.split(|letter: char| !letter.is_ascii_digit());
    let due = numbers.filter_map(|digits| digits.parse::<u64>().ok()).max().context("no time")?;
    let accepted = trace["accepted_at"].as_u64().context("no time of acceptance")?;
    assert!(due > accepted + 5 * 3_600_000, "{trace:#}");
    network.check_captures()
}

#[test]
fn a_full_phone_gets_its_message_when_memory_is_available_with_a_simulated_radio_side() -> Result<()> {
    let network = OsmocomFixture::start("")?;
    let (anna, mut shop) = (network.handset(ANNA)?, network.shop()?);
    anna.set_answer(HandsetAnswer::Refused(22));
    let id = submit(&mut shop, ANNA, "first")?;
    let refused = anna.next_mt()?;
    wait_for_long_deferral(&network, &id)?;
    // The subscriber's other messages use no attempts.
    let others = ["second", "third"].map(|text| submit(&mut shop, ANNA, text));
    anna.set_answer(HandsetAnswer::Accepted);
    assert_eq!(anna.memory_available()?, RpAnswer::Ok);
    let again = anna.next_mt()?;
    // Except for the first octet, which indicates that more messages wait (TP-MMS).
    assert_eq!(again.tpdu[1..], refused.tpdu[1..], "the same, service centre time included");
    delivered(&mut shop, &id)?;
    assert_eq!(texts(&anna, 2)?, ["second", "third"]);
    for id in others {
        delivered(&mut shop, &id?)?;
    }
    let trace = network.appliance()?.get(&format!("/v1/messages/{id}"))?;
    let steps = steps(&trace);
    let waited = steps.iter().position(|step| step.starts_with("waiting for an alert for the subscriber"));
    assert_eq!(steps.get(waited.context("it did not wait")? + 1), Some(&"submitted to home, attempt 2"));
    network.check_captures()
}

#[test]
fn a_phone_gets_its_messages_when_it_is_switched_on_with_a_simulated_radio_side() -> Result<()> {
    let network = OsmocomFixture::start("")?;
    let mut shop = network.shop()?;
    // Bert's phone was never on: no MSC knows him. Anna's was.
    let anna = network.handset(ANNA)?;
    anna.detach()?;
    let mut ids = Vec::new();
    for (subscriber, text) in [(ANNA, "to anna"), (BERT, "to bert")] {
        let id = submit(&mut shop, subscriber, text)?;
        wait_for_long_deferral(&network, &id)?;
        ids.push(id);
    }
    for (subscriber, text) in [(BERT, "to bert"), (ANNA, "to anna")] {
        assert_eq!(texts(&network.handset(subscriber)?, 1)?, [text]);
    }
    for id in &ids {
        delivered(&mut shop, id)?;
    }
    network.check_captures()
}

/// osmo-msc 1.9.0 does not answer when paging fails: `response-timeout` ends the attempt.
#[test]
fn after_failed_paging_the_next_location_update_triggers_a_retry_with_a_simulated_radio_side() -> Result<()> {
    let network = OsmocomFixture::start("response-timeout = \"12s\"")?;
    let (anna, mut shop) = (network.handset(ANNA)?, network.shop()?);
    anna.set_paging(Paging::OutOfCoverage);
    let id = submit(&mut shop, ANNA, "are you there?")?;
    anna.next_paging()?;
    wait_for_long_deferral(&network, &id)?;
    assert_eq!(anna.waiting(), 0);
    anna.set_paging(Paging::Answered);
    anna.attach()?;
    assert_eq!(texts(&anna, 1)?, ["are you there?"]);
    delivered(&mut shop, &id)?;
    assert_eq!(network.appliance()?.get("/v1/gsm")?[0]["mt"]["unanswered"], 1);
    network.check_captures()
}

#[test]
fn segments_of_a_long_text_arrive_in_order_with_a_simulated_radio_side() -> Result<()> {
    let network = OsmocomFixture::start("")?;
    let anna = network.handset(ANNA)?;
    let port = network.appliance()?.smpp().port();
    let mut shop =
        Peer::node("esme.js", &json!({ "port": port, "system_id": "shop", "password": PASSWORD }))?;
    assert_eq!(shop.expect("bound")?["status"], 0);
    let text: String = (0..100).map(|number| format!("word{number} ")).collect();
    // Submitted as one message: the appliance splits it.
    shop.send_action(&json!({ "submit": {
        "source_addr": SHOP, "source_addr_ton": 1, "source_addr_npi": 1, "destination_addr": ANNA.1,
        "dest_addr_ton": 1, "dest_addr_npi": 1, "registered_delivery": 1,
        "message_payload": { "hex": hex(text.as_bytes()) } } }))?;
    let answer = shop.expect("answer")?;
    assert_eq!(answer["status"], 0, "{answer}");
    let parts: Vec<_> = (0..5).map(|_| anna.next_mt()).collect::<Result<_>>()?;
    let joined: Result<String> = parts.iter().map(|part| decode_text(&part.tpdu)).collect();
    assert_eq!(joined?, text);
    delivered(&mut shop, answer["id"].as_str().context("no id")?)?;
    // "More messages to send" on all but the last, which the TPDU encodes as zero.
    let fields = ["gsm_sms.udh.mm.msg_parts", "gsm_sms.udh.mm.msg_part", "gsm_sms.tp-mms", "gsup.sm_rp.mms"];
    let seen = network.towards_us.decode(network.fixture.folder(), "gsup.msg_type == 40", &fields)?;
    let seen: Vec<_> =
        seen.iter().map(|row| row.iter().map(|field| field.concat()).collect::<Vec<_>>()).collect();
    let wanted = ["1", "2", "3", "4", "5"].map(|part| {
        let more = if part == "5" { ["1", ""] } else { ["0", "1"] };
        ["5", part, more[0], more[1]]
    });
    assert_eq!(seen, wanted);

    // An ESME that splits the text itself, with optional parameters; and an application message for the display.
    let mut send = |text: &str, fields: &[(&str, u32)]| -> Result<Vec<u8>> {
        let mut submit = json!({
            "source_addr": SHOP, "source_addr_ton": 1, "source_addr_npi": 1, "destination_addr": ANNA.1,
            "dest_addr_ton": 1, "dest_addr_npi": 1, "short_message": { "hex": hex(text.as_bytes()) } });
        for (name, value) in fields {
            submit[*name] = json!(value);
        }
        shop.send_action(&json!({ "submit": submit }))?;
        let answer = shop.expect("answer")?;
        assert_eq!(answer["status"], 0, "{answer}");
        Ok(anna.next_mt()?.tpdu)
    };
    for (part, text) in [(1, "first half, "), (2, "second half")] {
        let sar = [("sar_msg_ref_num", 0x109), ("sar_total_segments", 2), ("sar_segment_seqnum", part)];
        let tpdu = send(text, &sar)?;
        assert_eq!((decode_text(&tpdu)?.as_str(), header_of(&tpdu)), (text, vec![0, 3, 9, 2, part as u8]));
    }
    let ports = [("source_port", 9200), ("dest_port", 2948), ("dest_addr_subunit", 1)];
    let tpdu = send("to an application", &ports)?;
    assert_eq!(header_of(&tpdu), [5, 4, 0x0b, 0x84, 0x23, 0xf0]);
    assert_eq!(tpdu[4 + usize::from(tpdu[1]).div_ceil(2)], 0x10, "message class 0");
    network.check_captures()
}

/// The user data header of an SMS-DELIVER, without its length.
fn header_of(tpdu: &[u8]) -> Vec<u8> {
    // First octet, length and type of the originator and its digits, TP-PID, TP-DCS, 7 octets of TP-SCTS, TP-UDL.
    let data = &tpdu[3 + usize::from(tpdu[1]).div_ceil(2) + 10..];
    data[1..1 + usize::from(data[0])].to_vec()
}

#[test]
fn messages_of_one_sender_keep_their_order_with_a_simulated_radio_side() -> Result<()> {
    let network = OsmocomFixture::start("")?;
    let (anna, mut shop) = (network.handset(ANNA)?, network.shop()?);
    let wanted: Vec<_> = (0..20).map(|number| format!("message {number}")).collect();
    for text in &wanted {
        shop.send_action(&json!({ "text": text, "from": SHOP, "to": ANNA.1, "tag": text }))?;
    }
    assert_eq!(texts(&anna, 20)?, wanted);
    network.check_captures()
}

#[test]
fn a_phone_gets_a_status_report_with_a_simulated_radio_side() -> Result<()> {
    let network = OsmocomFixture::start("")?;
    let (anna, bert) = (network.handset(ANNA)?, network.handset(BERT)?);
    let submit = Submit { report: true, ..Submit::new(77, BERT.1, "are you awake?") };
    assert_eq!(anna.submit(CENTRE, &submit.octets())?, RpAnswer::Ok);
    assert_eq!(texts(&bert, 1)?, ["are you awake?"]);
    assert_eq!(decode_report(&anna.next_mt()?.tpdu)?, (77, 0));
    network.check_captures()
}

#[test]
fn a_phone_enquires_and_deletes_its_message_with_a_simulated_radio_side() -> Result<()> {
    let network = OsmocomFixture::start("")?;
    let anna = network.handset(ANNA)?;
    assert_eq!(anna.submit(CENTRE, &Submit::new(40, BERT.1, "taken back").octets())?, RpAnswer::Ok);
    // A message in flight cannot be cancelled.
    network.appliance()?.wait_until(TIMEOUT, "/v1/queues", |queues| {
        queues.as_array().is_some_and(|all| all.iter().any(|queue| queue["deferred"] == 1))
    })?;
    assert_eq!(anna.submit(CENTRE, &command(41, 0, 40, BERT.1))?, RpAnswer::Ok);
    // Still trying: no response from the recipient.
    assert_eq!(decode_report(&anna.next_mt()?.tpdu)?, (41, 0x22));
    assert_eq!(anna.submit(CENTRE, &command(42, 2, 40, BERT.1))?, RpAnswer::Ok);
    assert_eq!(anna.submit(CENTRE, &command(43, 2, 99, BERT.1))?, RpAnswer::Refused(21), "no such name");
    assert_eq!(anna.submit(CENTRE, &Submit::new(44, BERT.1, "left alone").octets())?, RpAnswer::Ok);
    assert_eq!(texts(&network.handset(BERT)?, 1)?, ["left alone"]);
    network.check_captures()
}

/// An SMS-COMMAND (3GPP TS 23.040 §9.2.2.4) about the message with this reference: 0 is an enquiry, 2 deletes it.
fn command(reference: u8, kind: u8, about: u8, to: &str) -> Vec<u8> {
    let submit = Submit::new(about, to, "").octets();
    // Its address, which an SMS-SUBMIT has after two octets and before three.
    let address = &submit[2..submit.len() - 3];
    [&[0x02, reference, 0, kind, about], address, &[0]].concat()
}

/// Like phones whose answer was lost: the same message again.
#[test]
fn a_phones_repetition_is_sent_once_with_a_simulated_radio_side() -> Result<()> {
    let network = OsmocomFixture::start("")?;
    let (anna, mut shop) = (network.handset(ANNA)?, network.shop()?);
    let once = Submit::new(5, SHOP, "once").octets();
    for _ in 0..2 {
        assert_eq!(anna.submit(CENTRE, &once)?, RpAnswer::Ok);
    }
    assert_eq!(anna.submit(CENTRE, &Submit::new(6, SHOP, "after it").octets())?, RpAnswer::Ok);
    assert_eq!(shop.expect("deliver")?["text"], "once");
    assert_eq!(shop.expect("deliver")?["text"], "after it");
    assert_eq!(network.appliance()?.get("/v1/gsm")?[0]["mo"]["repeated"], 1);
    network.check_captures()
}

#[test]
fn messages_waiting_for_phones_survive_a_kill_with_a_simulated_radio_side() -> Result<()> {
    let mut network = OsmocomFixture::start("")?;
    let (anna, mut shop) = (network.handset(ANNA)?, network.shop()?);
    // One message is at the phone, unanswered; three wait for it; one waits for a phone that is off.
    anna.set_answer(HandsetAnswer::Nothing);
    let first = submit(&mut shop, ANNA, "first")?;
    let before = anna.next_mt()?;
    let mut ids = vec![first];
    for text in ["second", "third", "fourth"] {
        ids.push(submit(&mut shop, ANNA, text)?);
    }
    let to_bert = submit(&mut shop, BERT, "to bert")?;
    wait_for_long_deferral(&network, &to_bert)?;
    ids.push(to_bert);
    anna.set_answer(HandsetAnswer::Accepted);
    network.kill_appliance()?;
    let mut shop = network.shop()?;
    let again = anna.next_mt()?;
    assert_eq!(
        again.tpdu[1..],
        before.tpdu[1..],
        "an uncertain message is repeated unchanged, service centre time included"
    );
    assert_eq!(texts(&anna, 3)?, ["second", "third", "fourth"]);
    let bert = network.handset(BERT)?;
    assert_eq!(texts(&bert, 1)?, ["to bert"]);
    for id in &ids {
        delivered(&mut shop, id)?;
    }
    assert_eq!((anna.waiting(), bert.waiting()), (0, 0));
    network.check_captures()
}

#[test]
fn the_hlr_restarts_with_a_simulated_radio_side() -> Result<()> {
    let mut network = OsmocomFixture::start("")?;
    let (anna, mut shop) = (network.handset(ANNA)?, network.shop()?);
    network.hlr.kill()?;
    let to_anna = submit(&mut shop, ANNA, "to anna")?;
    let to_bert = submit(&mut shop, BERT, "to bert")?;
    network.wait_for_state(&to_bert, "resolving")?;
    network.hlr.start_again()?;
    network.wait_until_connected()?;
    assert_eq!(texts(&anna, 1)?, ["to anna"]);
    delivered(&mut shop, &to_anna)?;
    assert_eq!(texts(&network.handset(BERT)?, 1)?, ["to bert"]);
    delivered(&mut shop, &to_bert)?;
    network.check_captures()
}

#[test]
fn a_subscriber_moves_between_mscs_with_a_simulated_radio_side() -> Result<()> {
    let mut network = OsmocomFixture::start("")?;
    let (anna, mut shop) = (network.handset(ANNA)?, network.shop()?);
    submit(&mut shop, ANNA, "here")?;
    assert_eq!(texts(&anna, 1)?, ["here"]);
    let other = Msc::start(network.fixture.folder(), "MSC-2", network.towards_us.address())?;
    network.hlr.wait_until_connected("MSC-2")?;
    let there = Radio::connect(other.sgs())?;
    let moved = there.handset(ANNA.0);
    moved.attach()?;
    submit(&mut shop, ANNA, "there")?;
    assert_eq!(texts(&moved, 1)?, ["there"]);
    // After a kill the appliance does not know her location until she sends something.
    moved.set_answer(HandsetAnswer::Refused(22));
    let later = submit(&mut shop, ANNA, "later")?;
    moved.next_mt()?;
    wait_for_long_deferral(&network, &later)?;
    network.kill_appliance()?;
    network.hlr.wait_until_connected("MSC-2")?;
    moved.set_answer(HandsetAnswer::Accepted);
    assert_eq!(moved.memory_available()?, RpAnswer::Ok);
    assert_eq!(texts(&moved, 1)?, ["later"]);
    assert_eq!(anna.waiting(), 0);
    network.check_captures()
}

/// At another MSC, which the HLR knows.
#[test]
fn after_a_kill_a_subscriber_is_found_at_the_right_msc_with_a_simulated_radio_side() -> Result<()> {
    let mut network = OsmocomFixture::start("")?;
    let other = Msc::start(network.fixture.folder(), "MSC-2", network.towards_us.address())?;
    network.hlr.wait_until_connected("MSC-2")?;
    let there = Radio::connect(other.sgs())?;
    let anna = there.handset(ANNA.0);
    anna.attach()?;
    network.kill_appliance()?;
    network.hlr.wait_until_connected("MSC-2")?;
    let mut shop = network.shop()?;
    let id = submit(&mut shop, ANNA, "still there?")?;
    assert_eq!(texts(&anna, 1)?, ["still there?"]);
    delivered(&mut shop, &id)?;
    // The appliance has not seen her there: the HLR's data pass by with her IMSI.
    network.kill_appliance()?;
    network.hlr.wait_until_connected("MSC-2")?;
    let mut shop = network.shop()?;
    assert_eq!(anna.submit(CENTRE, &Submit::new(1, SHOP, "still here").octets())?, RpAnswer::Ok);
    assert_eq!(shop.expect_matching("deliver", |deliver| deliver["text"] == "still here")?["source"], ANNA.1);
    network.check_captures()
}

/// As MSCs reconnect one after the other, the messages to their phones continue.
#[test]
fn after_a_kill_each_msc_gets_its_messages_with_a_simulated_radio_side() -> Result<()> {
    let mut network = OsmocomFixture::start("")?;
    let other = Msc::start(network.fixture.folder(), "MSC-2", network.towards_us.address())?;
    network.hlr.wait_until_connected("MSC-2")?;
    let there = Radio::connect(other.sgs())?;
    let (anna, bert) = (there.handset(ANNA.0), there.handset(BERT.0));
    let mut shop = network.shop()?;
    for phone in [&anna, &bert] {
        phone.attach()?;
    }
    anna.set_answer(HandsetAnswer::Nothing);
    let first = submit(&mut shop, ANNA, "first")?;
    anna.next_mt()?;
    let second = submit(&mut shop, ANNA, "second")?;
    anna.set_answer(HandsetAnswer::Accepted);
    // Only the first MSC is connected when the appliance is back.
    other.pause()?;
    network.kill_appliance()?;
    let mut shop = network.shop()?;
    let third = submit(&mut shop, BERT, "third")?;
    for id in [&first, &third] {
        wait_for_long_deferral(&network, id)?;
    }
    assert_eq!(anna.waiting() + bert.waiting(), 0);
    other.resume()?;
    assert_eq!(texts(&anna, 2)?, ["first", "second"]);
    assert_eq!(texts(&bert, 1)?, ["third"]);
    for id in [&first, &second, &third] {
        delivered(&mut shop, id)?;
    }
    network.check_captures()
}

/// A restarted MSC knows no phone until the phone registers again.
#[test]
fn an_msc_restarts_with_a_simulated_radio_side() -> Result<()> {
    let mut network = OsmocomFixture::start("")?;
    let (anna, mut shop) = (network.handset(ANNA)?, network.shop()?);
    anna.set_answer(HandsetAnswer::Nothing);
    let mut ids = vec![submit(&mut shop, ANNA, "first")?];
    let before = anna.next_mt()?;
    ids.push(submit(&mut shop, ANNA, "second")?);
    network.msc.kill()?;
    network
        .appliance()?
        .wait_until(TIMEOUT, "/v1/gsm", |networks| networks[0]["connections"] == json!([]))?;
    ids.push(submit(&mut shop, ANNA, "third")?);
    network.msc.start_again()?;
    network.wait_until_connected()?;
    network.radio = Radio::connect(network.msc.sgs())?;
    let anna = network.handset(ANNA)?;
    let again = anna.next_mt()?;
    assert_eq!(again.tpdu[1..], before.tpdu[1..], "an uncertain message is repeated unchanged");
    assert_eq!(texts(&anna, 2)?, ["second", "third"]);
    for id in &ids {
        delivered(&mut shop, id)?;
    }
    network.check_captures()
}

/// The configuration line that is easily forgotten.
#[test]
fn an_msc_without_sms_over_gsup_is_reported_with_a_simulated_radio_side() -> Result<()> {
    let network = OsmocomFixture::start("")?;
    let other =
        Msc::start_with(network.fixture.folder(), "MSC-2", network.towards_us.address(), "no sms-over-gsup")?;
    network.hlr.wait_until_connected("MSC-2")?;
    let there = Radio::connect(other.sgs())?;
    let (anna, mut shop) = (there.handset(ANNA.0), network.shop()?);
    anna.attach()?;
    let id = submit(&mut shop, ANNA, "good morning")?;
    wait_for_long_deferral(&network, &id)?;
    let state = network.appliance()?.get("/v1/gsm")?[0].clone();
    assert!(state["last_error"].to_string().contains("write `sms-over-gsup` below `msc`"), "{state:#}");
    network.check_captures()
}

#[test]
fn unknown_numbers_fail_and_reassigned_numbers_do_not_with_a_simulated_radio_side() -> Result<()> {
    let network = OsmocomFixture::start("")?;
    let mut shop = network.shop()?;
    let nobody = submit(&mut shop, ("", "16195550199"), "hello?")?;
    let receipt =
        shop.expect_matching("deliver", |deliver| deliver["receipted_message_id"] == nobody.as_str())?;
    assert_eq!(receipt["message_state"], 5, "{receipt}");
    let anna = network.handset(ANNA)?;
    submit(&mut shop, ANNA, "the old one")?;
    assert_eq!(texts(&anna, 1)?, ["the old one"]);
    // A new SIM with the same number, while our cached answer is still valid.
    let new = ("001010000000003", ANNA.1);
    anna.detach()?;
    network.hlr.remove(ANNA.0)?;
    network.hlr.subscriber(new.0, new.1)?;
    let phone = network.handset(new)?;
    submit(&mut shop, ANNA, "the new one")?;
    assert_eq!(texts(&phone, 1)?, ["the new one"]);
    // And another one, while messages wait for the full phone of the old one.
    phone.set_answer(HandsetAnswer::Refused(22));
    let first = submit(&mut shop, ANNA, "first")?;
    phone.next_mt()?;
    wait_for_long_deferral(&network, &first)?;
    let ids = [first, submit(&mut shop, ANNA, "second")?];
    network.hlr.remove(new.0)?;
    let newer = ("001010000000004", ANNA.1);
    network.hlr.subscriber(newer.0, newer.1)?;
    let phone = network.handset(newer)?;
    assert_eq!(texts(&phone, 2)?, ["first", "second"]);
    for id in &ids {
        delivered(&mut shop, id)?;
    }
    // A subscriber whose number was unknown: the subscriber data pass by, and the first message arrives. (Bert's data show that
    // the appliance has seen them.)
    let clara = ("001010000000005", "16195550199");
    network.hlr.subscriber(clara.0, clara.1)?;
    let (clara_phone, bert) = (network.handset(clara)?, network.handset(BERT)?);
    assert_eq!(bert.submit(CENTRE, &Submit::new(1, SHOP, "hello").octets())?, RpAnswer::Ok);
    submit(&mut shop, clara, "welcome")?;
    assert_eq!(texts(&clara_phone, 1)?, ["welcome"]);
    network.check_captures()
}

/// osmo-hlr 1.5.0 cannot route short messages, so version 1.8 or later is simulated; osmo-msc 1.9.0 does not return the
/// names by which such an HLR routes to us, so the MSC is simulated too for messages to phones.
#[test]
fn as_a_client_of_a_routing_hlr_with_a_stand_in_hlr_1_8_and_a_simulated_radio_side() -> Result<()> {
    let fixture = Fixture::new()?;
    let subscribers = Subscribers::new(10, "1619");
    let centre = Some("SMSC-1".to_owned());
    let hlr = SimulatedHlr::start(HlrOptions { centre, ..HlrOptions::new(subscribers.clone()) })?;
    let towards_hlr = Capture::start_for(CaptureProtocol::Gsup, hlr.gsup())?;
    let mut config = fixture.config()?;
    let routes = "[[route]]\nprefix = \"1619\"\nhome = true\n\n[default]\nlegs = [{ peer = \"shop\" }]\n";
    config.router(&fixture.guest("prefix_router"), routes)?.account("shop", "").tables(&format!(
        "[[gsm]]\nname = \"home\"\nrole = \"client\"\nhlr = \"{}\"\nctrl = \"{}\"\nipa-name = \"SMSC-1\"\n\
         service-centre = \"{CENTRE}\"\n[home]\npeer = \"home\"\n",
        towards_hlr.address(),
        hlr.ctrl()
    ));
    let appliance = config.start()?;
    let component = fixture.component("hlr_resolver")?;
    bind(&appliance, "resolver", "hlr-resolver", &component, "", &json!({ "grants": { "hlr": true } }))?;
    let component = fixture.component("retry_ladder")?;
    bind(&appliance, "delivery-policy", "retry-ladder", &component, HOURS, &json!({}))?;
    until("our connection to the HLR", || Ok(hlr.is_connected("SMSC-1")))?;
    let options = json!({ "port": appliance.smpp().port(), "system_id": "shop", "password": PASSWORD });
    let mut shop = Peer::python("esme.py", &options)?;
    assert_eq!(shop.expect("bound")?["status"], 0);

    // From a phone, through the real osmo-msc.
    let msc = Msc::start(fixture.folder(), "MSC-1", hlr.gsup())?;
    until("the MSC's connection", || Ok(hlr.is_connected("MSC-1")))?;
    let radio = Radio::connect(msc.sgs())?;
    let anna = radio.handset(&Subscribers::imsi_digits(1));
    anna.attach()?;
    assert_eq!(anna.submit(CENTRE, &Submit::new(1, SHOP, "hello").octets())?, RpAnswer::Ok);
    assert_eq!(shop.expect("deliver")?["text"], "hello");

    // To phones, through the simulated one.
    let options = MscOptions { names: true, range: 2..4, keep: true, ..MscOptions::new(hlr.gsup(), "MSC-2") };
    let msc = SimulatedMsc::start(options)?;
    msc.wait_for_located(2, TIMEOUT)?;
    let bert = subscribers.msisdn(2);
    let id = submit(&mut shop, ("", &bert), "good morning")?;
    delivered(&mut shop, &id)?;
    msc.behave(MtBehaviour::Full(Duration::from_millis(500)), Duration::ZERO);
    let id = submit(&mut shop, ("", &bert), "when there is room")?;
    delivered(&mut shop, &id)?;
    let texts: Vec<_> =
        msc.report().arrivals.iter().map(|arrival| (arrival.text(), arrival.accepted)).collect();
    let wanted = [("good morning", true), ("when there is room", false), ("when there is room", true)];
    assert_eq!(texts, wanted.map(|(text, accepted)| (Some(text.to_owned()), accepted)));
    towards_hlr.decode(fixture.folder(), "gsm_sms", &["gsup.msg_type"])?;
    Ok(())
}

/// The shipped number plan: dialled numbers are normalised.
#[test]
fn dialled_numbers_are_normalised_with_a_simulated_radio_side() -> Result<()> {
    let plans = workspace::root().join("policies/numbering.toml");
    let network =
        OsmocomFixture::start(&format!("number-plan = \"nanp\"\n[numbering]\ndocument = {plans:?}"))?;
    let (anna, bert) = (network.handset(ANNA)?, network.handset(BERT)?);
    // 0x81: type unknown, 0xa1: national, 0x91: international
    let dialled = [
        (0x91, BERT.1),
        (0x81, BERT.1),
        (0xa1, "6195550102"),
        (0x81, "6195550102"),
        (0x81, "5550102"),
        (0x81, "0102"),
    ];
    for (reference, (kind, digits)) in (10..).zip(dialled) {
        let submit = Submit { to: (kind, digits.to_owned()), ..Submit::new(reference, "", digits) };
        assert_eq!(anna.submit(CENTRE, &submit.octets())?, RpAnswer::Ok, "{digits}");
        assert_eq!(texts(&bert, 1)?, [digits]);
    }
    let submit = Submit { to: (0x81, "123456".to_owned()), ..Submit::new(30, "", "no number") };
    assert_eq!(anna.submit(CENTRE, &submit.octets())?, RpAnswer::Refused(1));
    network.check_captures()
}
