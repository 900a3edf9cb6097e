//! The appliance as the SMSC of a network of real programs: between Debian's osmo-msc 1.9.0 and osmo-hlr 1.5.0, which
//! cannot route short messages. Only the radio side is simulated, since there is no radio; every test says so.

use anyhow::{Context, Result};
use behaviour_tests::appliance::{Appliance, Blueprint, PASSWORD, free_port};
use behaviour_tests::load::gsm::{Answers, HlrOptions, MscOptions, StandInHlr, StandInMsc, Subscribers};
use behaviour_tests::osmocom::{
    Answer, Hlr, Msc, Paging, Phone, Radio, RpAnswer, Submit, report_of, text_of,
};
use behaviour_tests::{Capture, PATIENCE, Peer, Spoken, Stage, bind, steps, until};
use serde_json::{Value, json};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

const CENTRE: &str = "19990014444";
const SHOP: &str = "491711234567";

/// Subscribers: IMSI and MSISDN.
const ANNA: (&str, &str) = ("001010000000001", "16195550101");
const BERT: (&str, &str) = ("001010000000002", "16195550102");

/// Our numbers are at home, paid ones prohibited, and everything else is the shop's.
const ROUTES: &str = "[[route]]\nprefix = \"1619555\"\nhome = true\n\n\
                      [[route]]\nprefix = \"1900\"\nreject = \"prohibited\"\n\n\
                      [default]\nlegs = [{ peer = \"shop\" }]\n";

/// No attempt is repeated before hours have passed, unless something happens.
const HOURS: &str = "[temporary]\nwaits = [\"6h\"]\n[permanent]\nthen = \"fail\"\n\
                     [absent]\nwaits = [\"6h\"]\nawait-alert = true\nthen = \"fail\"\n\
                     [memory-full]\nwaits = [\"6h\"]\nawait-alert = true\nthen = \"fail\"\n\
                     [throttled]\nwaits = [\"0s\"]\n";

/// The appliance, between a register and an exchange.
struct Scene {
    // In the order in which they end.
    radio: Radio,
    msc: Msc,
    appliance: Option<Appliance>,
    towards_us: Capture,
    towards_hlr: Capture,
    hlr: Hlr,
    stage: Stage,
}

impl Scene {
    /// `keys` are further ones of `[[gsm]]`.
    fn set(keys: &str) -> Result<Self> {
        let stage = Stage::new()?;
        let hlr = Hlr::start(stage.folder())?;
        for (imsi, msisdn) in [ANNA, BERT] {
            hlr.subscriber(imsi, msisdn)?;
        }
        let towards_hlr = Capture::of(Spoken::Gsup, hlr.gsup())?;
        let gsup = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()?));
        let mut blueprint = stage.blueprint()?;
        blueprint.router(&stage.guest("prefix_router"), ROUTES)?.account("shop", "").tables(&format!(
            "[[gsm]]\nname = \"home\"\nlisten = \"{gsup}\"\nhlr = \"{}\"\nctrl = \"{}\"\nservice-centre = \"{CENTRE}\"\n{keys}\n\
             [home]\npeer = \"home\"\n",
            towards_hlr.address(),
            hlr.ctrl()
        ));
        let appliance = blueprint.start()?;
        let component = stage.component("hlr_resolver")?;
        let grants = json!({ "grants": { "hlr": true } });
        let document = "valid = \"1h\"\nunknown-valid = \"1h\"\ntry-again = \"1s\"\n";
        bind(&appliance, "resolver", "hlr-resolver", &component, document, &grants)?;
        let component = stage.component("retry_ladder")?;
        bind(&appliance, "delivery-policy", "retry-ladder", &component, HOURS, &json!({}))?;
        let towards_us = Capture::of(Spoken::Gsup, gsup)?;
        let msc = Msc::start(stage.folder(), "MSC-1", towards_us.address())?;
        hlr.wait_until_connected("MSC-1")?;
        let radio = Radio::connect(msc.sgs())?;
        Ok(Self { radio, msc, appliance: Some(appliance), towards_us, towards_hlr, hlr, stage })
    }

    fn appliance(&self) -> Result<&Appliance> {
        self.appliance.as_ref().context("the appliance does not run")
    }

    /// A phone that is on.
    fn phone(&self, subscriber: (&str, &str)) -> Result<Phone> {
        let phone = self.radio.phone(subscriber.0);
        phone.attach().with_context(|| format!("{}\n{}", self.msc.log(), self.hlr.log()))?;
        Ok(phone)
    }

    /// The shop, bound.
    fn shop(&self) -> Result<Peer> {
        let port = self.appliance()?.smpp().port();
        let options = json!({ "port": port, "system_id": "shop", "password": PASSWORD });
        let mut shop = Peer::python("esme.py", &options)?;
        assert_eq!(shop.expect("bound")?["status"], 0);
        Ok(shop)
    }

    /// Waits until a message is in this state; gives its trace.
    fn in_state(&self, id: &str, state: &str) -> Result<Value> {
        self.appliance()?.wait_until(PATIENCE, &format!("/v1/messages/{id}"), |trace| trace["state"] == state)
    }

    /// SIGKILL, and the same again. Waits until the exchange has found back.
    fn kill_the_appliance(&mut self) -> Result<()> {
        let blueprint: Blueprint = self.appliance.take().context("the appliance does not run")?.kill()?;
        self.appliance = Some(blueprint.start()?);
        self.wait_until_connected()
    }

    /// tshark has no complaint about anything that passed on either side.
    fn judge(&self) -> Result<()> {
        for capture in [&self.towards_us, &self.towards_hlr] {
            capture.decode(self.stage.folder(), "gsup", &["gsup.msg_type"])?;
        }
        Ok(())
    }

    fn wait_until_connected(&self) -> Result<()> {
        self.appliance()?.wait_until(PATIENCE, "/v1/gsm", |networks| {
            let connections = networks[0]["connections"].as_array();
            connections
                .is_some_and(|all| all.iter().any(|one| one["name"] == "MSC-1" && one["ready"] == true))
        })?;
        self.hlr.wait_until_connected("MSC-1")
    }
}

/// Submits a text that is one message; gives its id.
fn submit(shop: &mut Peer, to: (&str, &str), text: &str) -> Result<String> {
    shop.tell(&json!({ "text": text, "from": SHOP, "to": to.1, "receipt": true, "tag": text }))?;
    let answer = shop.expect_such("answer", |answer| answer["tag"] == text)?;
    assert_eq!(answer["status"], 0, "{answer}");
    Ok(answer["id"].as_str().context("no id")?.to_owned())
}

/// Waits for a message's receipt.
fn delivered(shop: &mut Peer, id: &str) -> Result<()> {
    let receipt = shop.expect_such("deliver", |deliver| deliver["receipted_message_id"] == id)?;
    assert_eq!(receipt["message_state"], 2, "{receipt}");
    Ok(())
}

fn texts(phone: &Phone, count: usize) -> Result<Vec<String>> {
    (0..count).map(|_| text_of(&phone.next_mt()?.tpdu)).collect()
}

#[test]
fn a_text_goes_to_a_phone_and_one_comes_back_with_a_simulated_radio_side() -> Result<()> {
    let scene = Scene::set("")?;
    let (anna, mut shop) = (scene.phone(ANNA)?, scene.shop()?);
    let id = submit(&mut shop, ANNA, "good morning")?;
    let came = anna.next_mt()?;
    assert_eq!((text_of(&came.tpdu)?.as_str(), came.centre.as_str()), ("good morning", CENTRE));
    delivered(&mut shop, &id)?;
    let answer = anna.submit(CENTRE, &Submit::new(1, SHOP, "and to you").octets())?;
    assert_eq!(answer, RpAnswer::Ok);
    let came = shop.expect_such("deliver", |deliver| deliver["text"] == "and to you")?;
    assert_eq!((&came["source"], &came["destination"]), (&json!(ANNA.1), &json!(SHOP)));

    // 10: call barred
    let answer = anna.submit(CENTRE, &Submit::new(2, "19005551234", "win").octets())?;
    assert_eq!(answer, RpAnswer::Refused(10));

    // tshark has no complaint about anything that passed, here or there, and reads what was meant.
    let fields = ["gsup.msg_type", "gsm_sms.tp-mti", "gsm_sms.sms_text"];
    let seen = scene.towards_us.decode(scene.stage.folder(), "gsup.msg_type >= 36", &fields)?;
    let short_messages: Vec<_> = seen.iter().map(|row| row[0].concat()).collect();
    // MT, its result; MO, its result; MO, its error
    assert_eq!(short_messages, ["40", "42", "36", "38", "36", "37"]);
    let texts = [(0, ["0", "good morning"]), (2, ["1", "and to you"]), (4, ["1", "win"])];
    for (row, wanted) in texts {
        assert_eq!(seen[row][1..], wanted.map(|field| vec![field.to_owned()]));
    }
    let seen = scene.towards_hlr.decode(scene.stage.folder(), "gsup", &fields)?;
    let passed: Vec<_> = seen.iter().map(|row| row[0].concat()).collect();
    assert_eq!(passed, ["4", "16", "18", "6"], "a location update, and nothing else");
    Ok(())
}

/// Waits until a message waits for hours; so what brings it sooner is no timer of ours.
fn waits_for_hours(scene: &Scene, id: &str) -> Result<()> {
    let trace = scene.in_state(id, "deferred")?;
    let why = trace["why_late"].as_str().context("no reason")?;
    let numbers = why.split(|letter: char| !letter.is_ascii_digit());
    let due = numbers.filter_map(|digits| digits.parse::<u64>().ok()).max().context("no time")?;
    let accepted = trace["accepted_at"].as_u64().context("no time of acceptance")?;
    assert!(due > accepted + 5 * 3_600_000, "{trace:#}");
    scene.judge()
}

#[test]
fn a_phone_that_was_full_gets_its_message_when_it_has_room_with_a_simulated_radio_side() -> Result<()> {
    let scene = Scene::set("")?;
    let (anna, mut shop) = (scene.phone(ANNA)?, scene.shop()?);
    anna.when_it_rings(Answer::Refused(22));
    let id = submit(&mut shop, ANNA, "first")?;
    let refused = anna.next_mt()?;
    waits_for_hours(&scene, &id)?;
    // The others of this subscriber burn no attempts.
    let others = ["second", "third"].map(|text| submit(&mut shop, ANNA, text));
    anna.when_it_rings(Answer::Taken);
    assert_eq!(anna.memory_available()?, RpAnswer::Ok);
    let again = anna.next_mt()?;
    // But for the first octet, in which the others behind it show (TP-MMS).
    assert_eq!(again.tpdu[1..], refused.tpdu[1..], "the same, service centre time included");
    delivered(&mut shop, &id)?;
    assert_eq!(texts(&anna, 2)?, ["second", "third"]);
    for id in others {
        delivered(&mut shop, &id?)?;
    }
    let trace = scene.appliance()?.get(&format!("/v1/messages/{id}"))?;
    let steps = steps(&trace);
    let waited = steps.iter().position(|step| step.starts_with("waiting for the subscriber to be heard of"));
    assert_eq!(steps.get(waited.context("it did not wait")? + 1), Some(&"submitted to home, attempt 2"));
    scene.judge()
}

#[test]
fn a_phone_that_was_off_gets_its_messages_when_it_is_on_with_a_simulated_radio_side() -> Result<()> {
    let scene = Scene::set("")?;
    let mut shop = scene.shop()?;
    // Bert's was never on: no exchange knows him. Anna's was.
    let anna = scene.phone(ANNA)?;
    anna.detach()?;
    let mut ids = Vec::new();
    for (subscriber, text) in [(ANNA, "to anna"), (BERT, "to bert")] {
        let id = submit(&mut shop, subscriber, text)?;
        waits_for_hours(&scene, &id)?;
        ids.push(id);
    }
    for (subscriber, text) in [(BERT, "to bert"), (ANNA, "to anna")] {
        assert_eq!(texts(&scene.phone(subscriber)?, 1)?, [text]);
    }
    for id in &ids {
        delivered(&mut shop, id)?;
    }
    scene.judge()
}

/// osmo-msc 1.9.0 says nothing when nobody answers its paging: the guard ends the attempt.
#[test]
fn what_paging_did_not_find_comes_with_the_next_location_update_with_a_simulated_radio_side() -> Result<()> {
    let scene = Scene::set("guard = \"12s\"")?;
    let (anna, mut shop) = (scene.phone(ANNA)?, scene.shop()?);
    anna.when_paged(Paging::NotHeard);
    let id = submit(&mut shop, ANNA, "are you there?")?;
    anna.next_paging()?;
    waits_for_hours(&scene, &id)?;
    assert_eq!(anna.waiting(), 0);
    anna.when_paged(Paging::Heard);
    anna.attach()?;
    assert_eq!(texts(&anna, 1)?, ["are you there?"]);
    delivered(&mut shop, &id)?;
    assert_eq!(scene.appliance()?.get("/v1/gsm")?[0]["mt"]["unanswered"], 1);
    scene.judge()
}

#[test]
fn a_long_text_comes_in_its_parts_in_order_with_a_simulated_radio_side() -> Result<()> {
    let scene = Scene::set("")?;
    let anna = scene.phone(ANNA)?;
    let port = scene.appliance()?.smpp().port();
    let mut shop =
        Peer::node("esme.js", &json!({ "port": port, "system_id": "shop", "password": PASSWORD }))?;
    assert_eq!(shop.expect("bound")?["status"], 0);
    let text: String = (0..100).map(|number| format!("word{number} ")).collect();
    // All of it in one message: it is we who make parts of it.
    shop.tell(&json!({ "submit": {
        "source_addr": SHOP, "source_addr_ton": 1, "source_addr_npi": 1, "destination_addr": ANNA.1,
        "dest_addr_ton": 1, "dest_addr_npi": 1, "registered_delivery": 1,
        "message_payload": { "hex": hex(text.as_bytes()) } } }))?;
    let answer = shop.expect("answer")?;
    assert_eq!(answer["status"], 0, "{answer}");
    let parts: Vec<_> = (0..5).map(|_| anna.next_mt()).collect::<Result<_>>()?;
    let joined: Result<String> = parts.iter().map(|part| text_of(&part.tpdu)).collect();
    assert_eq!(joined?, text);
    delivered(&mut shop, answer["id"].as_str().context("no id")?)?;
    // More to come on all but the last, which in the TPDU is told by a zero.
    let fields = ["gsm_sms.udh.mm.msg_parts", "gsm_sms.udh.mm.msg_part", "gsm_sms.tp-mms", "gsup.sm_rp.mms"];
    let seen = scene.towards_us.decode(scene.stage.folder(), "gsup.msg_type == 40", &fields)?;
    let seen: Vec<_> =
        seen.iter().map(|row| row.iter().map(|field| field.concat()).collect::<Vec<_>>()).collect();
    let wanted = ["1", "2", "3", "4", "5"].map(|part| {
        let more = if part == "5" { ["1", ""] } else { ["0", "1"] };
        ["5", part, more[0], more[1]]
    });
    assert_eq!(seen, wanted);

    // An ESME that makes the parts itself, by optional parameters; and one message for an application, on the display.
    let mut send = |text: &str, fields: &[(&str, u32)]| -> Result<Vec<u8>> {
        let mut submit = json!({
            "source_addr": SHOP, "source_addr_ton": 1, "source_addr_npi": 1, "destination_addr": ANNA.1,
            "dest_addr_ton": 1, "dest_addr_npi": 1, "short_message": { "hex": hex(text.as_bytes()) } });
        for (name, value) in fields {
            submit[*name] = json!(value);
        }
        shop.tell(&json!({ "submit": submit }))?;
        let answer = shop.expect("answer")?;
        assert_eq!(answer["status"], 0, "{answer}");
        Ok(anna.next_mt()?.tpdu)
    };
    for (part, text) in [(1, "first half, "), (2, "second half")] {
        let sar = [("sar_msg_ref_num", 0x109), ("sar_total_segments", 2), ("sar_segment_seqnum", part)];
        let tpdu = send(text, &sar)?;
        assert_eq!((text_of(&tpdu)?.as_str(), header_of(&tpdu)), (text, vec![0, 3, 9, 2, part as u8]));
    }
    let ports = [("source_port", 9200), ("dest_port", 2948), ("dest_addr_subunit", 1)];
    let tpdu = send("to an application", &ports)?;
    assert_eq!(header_of(&tpdu), [5, 4, 0x0b, 0x84, 0x23, 0xf0]);
    assert_eq!(tpdu[4 + usize::from(tpdu[1]).div_ceil(2)], 0x10, "message class 0");
    scene.judge()
}

/// The user data header of an SMS-DELIVER, without its length.
fn header_of(tpdu: &[u8]) -> Vec<u8> {
    // First octet, count and type of the originator and its digits, TP-PID, TP-DCS, 7 octets of TP-SCTS, TP-UDL.
    let data = &tpdu[3 + usize::from(tpdu[1]).div_ceil(2) + 10..];
    data[1..1 + usize::from(data[0])].to_vec()
}

fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

#[test]
fn messages_of_one_sender_keep_their_order_with_a_simulated_radio_side() -> Result<()> {
    let scene = Scene::set("")?;
    let (anna, mut shop) = (scene.phone(ANNA)?, scene.shop()?);
    let wanted: Vec<_> = (0..20).map(|number| format!("message {number}")).collect();
    for text in &wanted {
        shop.tell(&json!({ "text": text, "from": SHOP, "to": ANNA.1, "tag": text }))?;
    }
    assert_eq!(texts(&anna, 20)?, wanted);
    scene.judge()
}

#[test]
fn a_phone_is_told_what_became_of_its_message_with_a_simulated_radio_side() -> Result<()> {
    let scene = Scene::set("")?;
    let (anna, bert) = (scene.phone(ANNA)?, scene.phone(BERT)?);
    let submit = Submit { report: true, ..Submit::new(77, BERT.1, "are you awake?") };
    assert_eq!(anna.submit(CENTRE, &submit.octets())?, RpAnswer::Ok);
    assert_eq!(texts(&bert, 1)?, ["are you awake?"]);
    assert_eq!(report_of(&anna.next_mt()?.tpdu)?, (77, 0));
    scene.judge()
}

#[test]
fn a_phone_asks_after_its_message_and_takes_it_back_with_a_simulated_radio_side() -> Result<()> {
    let scene = Scene::set("")?;
    let anna = scene.phone(ANNA)?;
    assert_eq!(anna.submit(CENTRE, &Submit::new(40, BERT.1, "taken back").octets())?, RpAnswer::Ok);
    // What is on its way cannot be taken back.
    scene.appliance()?.wait_until(PATIENCE, "/v1/queues", |queues| {
        queues.as_array().is_some_and(|all| all.iter().any(|queue| queue["deferred"] == 1))
    })?;
    assert_eq!(anna.submit(CENTRE, &command(41, 0, 40, BERT.1))?, RpAnswer::Ok);
    // Still trying: no response from the recipient.
    assert_eq!(report_of(&anna.next_mt()?.tpdu)?, (41, 0x22));
    assert_eq!(anna.submit(CENTRE, &command(42, 2, 40, BERT.1))?, RpAnswer::Ok);
    assert_eq!(
        anna.submit(CENTRE, &command(43, 2, 99, BERT.1))?,
        RpAnswer::Refused(21),
        "there is none of this name"
    );
    assert_eq!(anna.submit(CENTRE, &Submit::new(44, BERT.1, "left alone").octets())?, RpAnswer::Ok);
    assert_eq!(texts(&scene.phone(BERT)?, 1)?, ["left alone"]);
    scene.judge()
}

/// An SMS-COMMAND (3GPP TS 23.040 §9.2.2.4) about the message of this reference: 0 is an enquiry, 2 takes it back.
fn command(reference: u8, kind: u8, about: u8, to: &str) -> Vec<u8> {
    let submit = Submit::new(about, to, "").octets();
    // Its address, as an SMS-SUBMIT has it after two octets and before three.
    let address = &submit[2..submit.len() - 3];
    [&[0x02, reference, 0, kind, about], address, &[0]].concat()
}

/// As phones do whose answer was lost: the same once more.
#[test]
fn what_a_phone_repeats_goes_out_once_with_a_simulated_radio_side() -> Result<()> {
    let scene = Scene::set("")?;
    let (anna, mut shop) = (scene.phone(ANNA)?, scene.shop()?);
    let once = Submit::new(5, SHOP, "once").octets();
    for _ in 0..2 {
        assert_eq!(anna.submit(CENTRE, &once)?, RpAnswer::Ok);
    }
    assert_eq!(anna.submit(CENTRE, &Submit::new(6, SHOP, "after it").octets())?, RpAnswer::Ok);
    assert_eq!(shop.expect("deliver")?["text"], "once");
    assert_eq!(shop.expect("deliver")?["text"], "after it");
    assert_eq!(scene.appliance()?.get("/v1/gsm")?[0]["mo"]["repeated"], 1);
    scene.judge()
}

#[test]
fn what_waits_for_phones_outlives_a_kill_with_a_simulated_radio_side() -> Result<()> {
    let mut scene = Scene::set("")?;
    let (anna, mut shop) = (scene.phone(ANNA)?, scene.shop()?);
    // One is with the phone, which has not said yes yet; three wait behind it; one waits for a phone that is off.
    anna.when_it_rings(Answer::Nothing);
    let first = submit(&mut shop, ANNA, "first")?;
    let before = anna.next_mt()?;
    let mut ids = vec![first];
    for text in ["second", "third", "fourth"] {
        ids.push(submit(&mut shop, ANNA, text)?);
    }
    let to_bert = submit(&mut shop, BERT, "to bert")?;
    waits_for_hours(&scene, &to_bert)?;
    ids.push(to_bert);
    anna.when_it_rings(Answer::Taken);
    scene.kill_the_appliance()?;
    let mut shop = scene.shop()?;
    let again = anna.next_mt()?;
    assert_eq!(
        again.tpdu[1..],
        before.tpdu[1..],
        "what is in doubt comes as it was, service centre time included"
    );
    assert_eq!(texts(&anna, 3)?, ["second", "third", "fourth"]);
    let bert = scene.phone(BERT)?;
    assert_eq!(texts(&bert, 1)?, ["to bert"]);
    for id in &ids {
        delivered(&mut shop, id)?;
    }
    assert_eq!((anna.waiting(), bert.waiting()), (0, 0));
    scene.judge()
}

#[test]
fn the_register_dies_and_comes_back_with_a_simulated_radio_side() -> Result<()> {
    let mut scene = Scene::set("")?;
    let (anna, mut shop) = (scene.phone(ANNA)?, scene.shop()?);
    scene.hlr.kill()?;
    let to_anna = submit(&mut shop, ANNA, "to anna")?;
    let to_bert = submit(&mut shop, BERT, "to bert")?;
    scene.in_state(&to_bert, "resolving")?;
    scene.hlr.start_again()?;
    scene.wait_until_connected()?;
    assert_eq!(texts(&anna, 1)?, ["to anna"]);
    delivered(&mut shop, &to_anna)?;
    assert_eq!(texts(&scene.phone(BERT)?, 1)?, ["to bert"]);
    delivered(&mut shop, &to_bert)?;
    scene.judge()
}

#[test]
fn a_subscriber_is_followed_from_one_exchange_to_another_with_a_simulated_radio_side() -> Result<()> {
    let mut scene = Scene::set("")?;
    let (anna, mut shop) = (scene.phone(ANNA)?, scene.shop()?);
    submit(&mut shop, ANNA, "here")?;
    assert_eq!(texts(&anna, 1)?, ["here"]);
    let other = Msc::start(scene.stage.folder(), "MSC-2", scene.towards_us.address())?;
    scene.hlr.wait_until_connected("MSC-2")?;
    let there = Radio::connect(other.sgs())?;
    let moved = there.phone(ANNA.0);
    moved.attach()?;
    submit(&mut shop, ANNA, "there")?;
    assert_eq!(texts(&moved, 1)?, ["there"]);
    // After a kill the appliance does not know where she is, until she says something.
    moved.when_it_rings(Answer::Refused(22));
    let later = submit(&mut shop, ANNA, "later")?;
    moved.next_mt()?;
    waits_for_hours(&scene, &later)?;
    scene.kill_the_appliance()?;
    scene.hlr.wait_until_connected("MSC-2")?;
    moved.when_it_rings(Answer::Taken);
    assert_eq!(moved.memory_available()?, RpAnswer::Ok);
    assert_eq!(texts(&moved, 1)?, ["later"]);
    assert_eq!(anna.waiting(), 0);
    scene.judge()
}

/// There the register knows where she is.
#[test]
fn after_a_kill_a_subscriber_is_found_at_the_right_exchange_with_a_simulated_radio_side() -> Result<()> {
    let mut scene = Scene::set("")?;
    let other = Msc::start(scene.stage.folder(), "MSC-2", scene.towards_us.address())?;
    scene.hlr.wait_until_connected("MSC-2")?;
    let there = Radio::connect(other.sgs())?;
    let anna = there.phone(ANNA.0);
    anna.attach()?;
    scene.kill_the_appliance()?;
    scene.hlr.wait_until_connected("MSC-2")?;
    let mut shop = scene.shop()?;
    let id = submit(&mut shop, ANNA, "still there?")?;
    assert_eq!(texts(&anna, 1)?, ["still there?"]);
    delivered(&mut shop, &id)?;
    // Nor has it seen her there: the register tells, by IMSI.
    scene.kill_the_appliance()?;
    scene.hlr.wait_until_connected("MSC-2")?;
    let mut shop = scene.shop()?;
    assert_eq!(anna.submit(CENTRE, &Submit::new(1, SHOP, "still here").octets())?, RpAnswer::Ok);
    assert_eq!(shop.expect_such("deliver", |deliver| deliver["text"] == "still here")?["source"], ANNA.1);
    scene.judge()
}

/// And as exchanges come back one after the other, so does what was on its way to their phones.
#[test]
fn after_a_kill_each_exchange_gets_what_was_on_its_way_to_it_with_a_simulated_radio_side() -> Result<()> {
    let mut scene = Scene::set("")?;
    let other = Msc::start(scene.stage.folder(), "MSC-2", scene.towards_us.address())?;
    scene.hlr.wait_until_connected("MSC-2")?;
    let there = Radio::connect(other.sgs())?;
    let (anna, bert) = (there.phone(ANNA.0), there.phone(BERT.0));
    let mut shop = scene.shop()?;
    for phone in [&anna, &bert] {
        phone.attach()?;
    }
    anna.when_it_rings(Answer::Nothing);
    let first = submit(&mut shop, ANNA, "first")?;
    anna.next_mt()?;
    let second = submit(&mut shop, ANNA, "second")?;
    anna.when_it_rings(Answer::Taken);
    // Only the first exchange is there when the appliance is back.
    other.pause()?;
    scene.kill_the_appliance()?;
    let mut shop = scene.shop()?;
    let third = submit(&mut shop, BERT, "third")?;
    for id in [&first, &third] {
        waits_for_hours(&scene, id)?;
    }
    assert_eq!(anna.waiting() + bert.waiting(), 0);
    other.resume()?;
    assert_eq!(texts(&anna, 2)?, ["first", "second"]);
    assert_eq!(texts(&bert, 1)?, ["third"]);
    for id in [&first, &second, &third] {
        delivered(&mut shop, id)?;
    }
    scene.judge()
}

/// An exchange that dies knows nobody when it is back, until phones say that they are there.
#[test]
fn an_exchange_dies_and_comes_back_with_a_simulated_radio_side() -> Result<()> {
    let mut scene = Scene::set("")?;
    let (anna, mut shop) = (scene.phone(ANNA)?, scene.shop()?);
    anna.when_it_rings(Answer::Nothing);
    let mut ids = vec![submit(&mut shop, ANNA, "first")?];
    let before = anna.next_mt()?;
    ids.push(submit(&mut shop, ANNA, "second")?);
    scene.msc.kill()?;
    scene.appliance()?.wait_until(PATIENCE, "/v1/gsm", |networks| networks[0]["connections"] == json!([]))?;
    ids.push(submit(&mut shop, ANNA, "third")?);
    scene.msc.start_again()?;
    scene.wait_until_connected()?;
    scene.radio = Radio::connect(scene.msc.sgs())?;
    let anna = scene.phone(ANNA)?;
    let again = anna.next_mt()?;
    assert_eq!(again.tpdu[1..], before.tpdu[1..], "what is in doubt comes as it was");
    assert_eq!(texts(&anna, 2)?, ["second", "third"]);
    for id in &ids {
        delivered(&mut shop, id)?;
    }
    scene.judge()
}

/// The one line of its configuration that people forget.
#[test]
fn an_exchange_that_does_not_take_short_messages_is_told_of_with_a_simulated_radio_side() -> Result<()> {
    let scene = Scene::set("")?;
    let other =
        Msc::start_such(scene.stage.folder(), "MSC-2", scene.towards_us.address(), "no sms-over-gsup")?;
    scene.hlr.wait_until_connected("MSC-2")?;
    let there = Radio::connect(other.sgs())?;
    let (anna, mut shop) = (there.phone(ANNA.0), scene.shop()?);
    anna.attach()?;
    let id = submit(&mut shop, ANNA, "good morning")?;
    waits_for_hours(&scene, &id)?;
    let network = scene.appliance()?.get("/v1/gsm")?[0].clone();
    assert!(network["last_error"].to_string().contains("write `sms-over-gsup` below `msc`"), "{network:#}");
    scene.judge()
}

#[test]
fn an_unknown_number_fails_and_one_that_was_given_to_somebody_else_does_not_with_a_simulated_radio_side()
-> Result<()> {
    let scene = Scene::set("")?;
    let mut shop = scene.shop()?;
    let nobody = submit(&mut shop, ("", "16195550199"), "hello?")?;
    let receipt =
        shop.expect_such("deliver", |deliver| deliver["receipted_message_id"] == nobody.as_str())?;
    assert_eq!(receipt["message_state"], 5, "{receipt}");
    let anna = scene.phone(ANNA)?;
    submit(&mut shop, ANNA, "the old one")?;
    assert_eq!(texts(&anna, 1)?, ["the old one"]);
    // A new SIM card under the same number, while our answer of before still holds.
    let new = ("001010000000003", ANNA.1);
    anna.detach()?;
    scene.hlr.remove(ANNA.0)?;
    scene.hlr.subscriber(new.0, new.1)?;
    let phone = scene.phone(new)?;
    submit(&mut shop, ANNA, "the new one")?;
    assert_eq!(texts(&phone, 1)?, ["the new one"]);
    // And another one, while messages wait behind the full phone of the old one.
    phone.when_it_rings(Answer::Refused(22));
    let first = submit(&mut shop, ANNA, "first")?;
    phone.next_mt()?;
    waits_for_hours(&scene, &first)?;
    let ids = [first, submit(&mut shop, ANNA, "second")?];
    scene.hlr.remove(new.0)?;
    let newer = ("001010000000004", ANNA.1);
    scene.hlr.subscriber(newer.0, newer.1)?;
    let phone = scene.phone(newer)?;
    assert_eq!(texts(&phone, 2)?, ["first", "second"]);
    for id in &ids {
        delivered(&mut shop, id)?;
    }
    // A subscriber of yesterday's unknown number: its data pass by, and its first message arrives. (Bert's says that we have
    // seen them.)
    let clara = ("001010000000005", "16195550199");
    scene.hlr.subscriber(clara.0, clara.1)?;
    let (clara_phone, bert) = (scene.phone(clara)?, scene.phone(BERT)?);
    assert_eq!(bert.submit(CENTRE, &Submit::new(1, SHOP, "hello").octets())?, RpAnswer::Ok);
    submit(&mut shop, clara, "welcome")?;
    assert_eq!(texts(&clara_phone, 1)?, ["welcome"]);
    scene.judge()
}

/// osmo-hlr 1.5.0 cannot route short messages, so one of 1.8 and later is simulated; osmo-msc 1.9.0 does not give back the
/// names by which such an HLR finds the way back to us, so for messages to phones the MSC is simulated too.
#[test]
fn we_are_a_client_of_an_hlr_that_routes_with_a_stand_in_hlr_1_8_and_a_simulated_radio_side() -> Result<()> {
    let stage = Stage::new()?;
    let subscribers = Subscribers::new(10, "1619");
    let centre = Some("SMSC-1".to_owned());
    let hlr = StandInHlr::start(HlrOptions { centre, ..HlrOptions::new(subscribers.clone()) })?;
    let towards_hlr = Capture::of(Spoken::Gsup, hlr.gsup())?;
    let mut blueprint = stage.blueprint()?;
    let routes = "[[route]]\nprefix = \"1619\"\nhome = true\n\n[default]\nlegs = [{ peer = \"shop\" }]\n";
    blueprint.router(&stage.guest("prefix_router"), routes)?.account("shop", "").tables(&format!(
        "[[gsm]]\nname = \"home\"\nrole = \"client\"\nhlr = \"{}\"\nctrl = \"{}\"\nipa-name = \"SMSC-1\"\n\
         service-centre = \"{CENTRE}\"\n[home]\npeer = \"home\"\n",
        towards_hlr.address(),
        hlr.ctrl()
    ));
    let appliance = blueprint.start()?;
    let component = stage.component("hlr_resolver")?;
    bind(&appliance, "resolver", "hlr-resolver", &component, "", &json!({ "grants": { "hlr": true } }))?;
    let component = stage.component("retry_ladder")?;
    bind(&appliance, "delivery-policy", "retry-ladder", &component, HOURS, &json!({}))?;
    until("our connection to the HLR", || Ok(hlr.is_connected("SMSC-1")))?;
    let options = json!({ "port": appliance.smpp().port(), "system_id": "shop", "password": PASSWORD });
    let mut shop = Peer::python("esme.py", &options)?;
    assert_eq!(shop.expect("bound")?["status"], 0);

    // From a phone, by the real osmo-msc.
    let msc = Msc::start(stage.folder(), "MSC-1", hlr.gsup())?;
    until("the MSC's connection", || Ok(hlr.is_connected("MSC-1")))?;
    let radio = Radio::connect(msc.sgs())?;
    let anna = radio.phone(&Subscribers::imsi_digits(1));
    anna.attach()?;
    assert_eq!(anna.submit(CENTRE, &Submit::new(1, SHOP, "hello").octets())?, RpAnswer::Ok);
    assert_eq!(shop.expect("deliver")?["text"], "hello");

    // To phones, by the simulated one.
    let options = MscOptions { names: true, range: 2..4, keep: true, ..MscOptions::new(hlr.gsup(), "MSC-2") };
    let msc = StandInMsc::start(options)?;
    msc.wait_for_located(2, PATIENCE)?;
    let bert = subscribers.msisdn(2);
    let id = submit(&mut shop, ("", &bert), "good morning")?;
    delivered(&mut shop, &id)?;
    msc.behave(Answers::Full(Duration::from_millis(500)), Duration::ZERO);
    let id = submit(&mut shop, ("", &bert), "when there is room")?;
    delivered(&mut shop, &id)?;
    let texts: Vec<_> = msc.report().arrivals.iter().map(|arrival| (arrival.text(), arrival.taken)).collect();
    let wanted = [("good morning", true), ("when there is room", false), ("when there is room", true)];
    assert_eq!(texts, wanted.map(|(text, taken)| (Some(text.to_owned()), taken)));
    towards_hlr.decode(stage.folder(), "gsm_sms", &["gsup.msg_type"])?;
    Ok(())
}

/// The number plan that we ship: what is dialled gets its one form.
#[test]
fn numbers_are_dialled_as_people_do_with_a_simulated_radio_side() -> Result<()> {
    let plans = xtask::house::root().join("policies/numbering.toml");
    let scene = Scene::set(&format!("number-plan = \"nanp\"\n[numbering]\ndocument = {plans:?}"))?;
    let (anna, bert) = (scene.phone(ANNA)?, scene.phone(BERT)?);
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
    scene.judge()
}
