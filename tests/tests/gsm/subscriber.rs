//! One subscriber of a core network: what an admin can see and do; long texts between handsets and subscribers on the
//! command line.

use anyhow::{Context, Result, ensure};
use behaviour_tests::load::gsm::{
    HlrOptions, MoAnswer, MoSender, MscOptions, MtBehaviour, RefusalCause, SimulatedHlr, SimulatedMsc,
    Subscribers,
};
use behaviour_tests::osmocom::Submit;
use behaviour_tests::test_daemon::{TestDaemon, free_port};
use behaviour_tests::{Fixture, TIMEOUT, shipped_policy, steps, until};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Prefix of all numbers; ten digits follow.
const PREFIX: &str = "1";
const CENTRE: &str = "19990014444";
/// The number of a command line user.
const SHELL: &str = "+491701234567";
const SUBSCRIBERS: u64 = 3;

/// A daemon between an MSC and an HLR, with an archive and the shell socket.
struct Network {
    appliance: TestDaemon,
    hlr: SimulatedHlr,
    proxy: SocketAddr,
    fixture: Fixture,
}

impl Network {
    fn start() -> Result<Self> {
        let fixture = Fixture::new()?;
        let hlr = SimulatedHlr::start(HlrOptions::new(Subscribers::new(SUBSCRIBERS, PREFIX)))?;
        let policy = fixture.folder().join("hlr.toml");
        std::fs::write(&policy, shipped_policy("hlr")?)?;
        let proxy = SocketAddr::from(([127, 0, 0, 1], free_port()?));
        let mut config = fixture.config()?;
        config.router(&fixture.guest("prefix_router"), "[default]\nhome = true\n")?.account("acme", "").tables(&format!(
            "[[gsm]]\nname = \"phones\"\nhlr = \"{}\"\nctrl = \"{}\"\nctrl-timeout = \"1s\"\nlisten = \"{proxy}\"\n\
             service-centre = \"{CENTRE}\"\nretry = [\"5h\"]\nlanguages = [\"turkish\"]\n\
             [resolver]\nplugin = \"hlr-resolver\"\ncomponent = {:?}\npolicy = {:?}\n[resolver.grants]\nhlr = true\n\
             [shell]\nsocket = {:?}\n[[shell.users]]\nuid = {}\nnumbers = [\"{SHELL}\"]\ndeliver = true\n",
            hlr.gsup(),
            hlr.ctrl(),
            fixture.guest("hlr_resolver").display().to_string(),
            policy.display().to_string(),
            fixture.folder().join("sms.sock").display().to_string(),
            rustix::process::geteuid().as_raw(),
        ));
        config.archive("sqlite:archive.db");
        let appliance = config.start()?;
        Ok(Self { appliance, hlr, proxy, fixture })
    }

    fn msc(&self, answers: MtBehaviour) -> Result<SimulatedMsc> {
        let options =
            MscOptions { range: 0..SUBSCRIBERS, answers, keep: true, ..MscOptions::new(self.proxy, "MSC-1") };
        let msc = SimulatedMsc::start(options)?;
        msc.wait_for_located(SUBSCRIBERS, TIMEOUT)?;
        until("all to be seen", || {
            Ok(self.appliance.get("/v1/gsm")?[0]["attached"].as_u64() >= Some(SUBSCRIBERS))
        })?;
        Ok(msc)
    }

    fn send(&self, to: &str, text: &str) -> Result<String> {
        let message = json!({ "account": "acme", "from": "10655", "to": to, "text": text }).to_string();
        let reply = self.appliance.ask("POST", "/v1/messages", message.as_bytes())?;
        Ok(reply["id"].as_str().context("no id")?.to_owned())
    }

    fn found(&self, query: &str) -> Result<Vec<String>> {
        let page = self.appliance.get(&format!("/v1/messages?{query}"))?;
        ensure!(page.get("incomplete").is_none(), "{page}");
        let ids = page["messages"].as_array().context("no messages")?.iter();
        Ok(ids.filter_map(|message| message["id"].as_str()).map(str::to_owned).collect())
    }

    fn archived(&self) -> Result<()> {
        self.appliance.wait_until(TIMEOUT, "/v1/archive", |archive| archive["backlog"] == 0).map(drop)
    }

    /// Output of `switchyard sms`.
    fn sms(&self, arguments: &[&str]) -> Result<String> {
        let mut command = Command::new(self.fixture.binary());
        command.arg("sms").arg("--socket").arg(self.fixture.folder().join("sms.sock"));
        let output = command.args(arguments).env("TZ", "UTC").stdin(Stdio::null()).output()?;
        ensure!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8(output.stdout)?)
    }
}

fn number(subscriber: u64) -> String {
    Subscribers::new(SUBSCRIBERS, PREFIX).msisdn(subscriber)
}

#[test]
fn a_subscriber_is_shown_with_waiting_messages_and_can_be_retried_pinged_and_found_by_imsi() -> Result<()> {
    let network = Network::start()?;
    let appliance = &network.appliance;
    let msc = network.msc(MtBehaviour::Refuse(vec![RefusalCause::Network(17)]))?;
    let imsi = Subscribers::imsi_digits(0);
    let (by_number, by_imsi) =
        (format!("/v1/subscribers/msisdn-{}", number(0)), format!("/v1/subscribers/imsi-{imsi}"));
    let idle = appliance.get(&by_number)?;
    assert_eq!((&idle["imsi"], &idle["msisdn"]), (&json!(imsi), &json!(number(0))));
    assert_eq!(
        (&idle["network"], &idle["msc"], &idle["connected"]),
        (&json!("phones"), &json!("MSC-1"), &json!(true))
    );
    assert_eq!((&idle["state"], &idle["present_by"]), (&json!("idle"), &json!("location-update")));
    ensure!(idle["present_at"].as_u64() > Some(1_700_000_000_000), "{idle}");

    let first = network.send(&number(0), "one")?;
    let mut sent = vec![first.clone()];
    for text in ["two", "three"] {
        sent.push(network.send(&format!("+{}", number(0)), text)?);
    }
    let other = network.send(&number(1), "for another")?;
    let absent = appliance.wait_until(TIMEOUT, &by_imsi, |shown| {
        shown["state"] == "absent" && shown["waiting"]["count"] == 3
    })?;
    assert_eq!(absent["reason"], "network: network failure (17)");
    assert_eq!((&absent["message"], &absent["waiting"]["oldest"]), (&json!(first), &json!(first)));
    assert_eq!(absent["waiting"]["states"], json!({ "deferred": 1, "queued": 2 }));
    ensure!(absent["next_try"].as_u64() > absent["waiting"]["oldest_at"].as_u64(), "{absent}");
    let mut same = appliance.get(&by_number)?;
    // Times come from the engine's clock; two reads may differ by a millisecond.
    same["next_try"] = absent["next_try"].clone();
    assert_eq!(same, absent);

    let path = format!("/v1/messages/{other}");
    appliance.wait_until(TIMEOUT, &path, |trace| trace["state"] == "deferred")?;

    // Retried on request, as its trace says; so are the following messages. Other subscribers are not affected.
    msc.behave(MtBehaviour::Accept, Duration::ZERO);
    let woken = appliance.ask("POST", &format!("{by_imsi}/wake"), b"")?;
    assert_eq!(woken, json!({ "messages": 1 }));
    msc.wait_for_accepted(3, TIMEOUT)?;
    let idle = appliance.wait_until(TIMEOUT, &by_number, |shown| shown["state"] == "idle")?;
    assert_eq!((&idle["present_by"], &idle["waiting"]["count"]), (&json!("delivery"), &json!(0)));
    let trace = appliance.get(&format!("/v1/messages/{first}"))?;
    ensure!(steps(&trace).iter().any(|step| step.starts_with("retried immediately, by ")), "{trace:#}");
    assert_eq!(appliance.get(&format!("/v1/messages/{other}"))?["state"], "deferred");

    // A silent short message is sent as type 0, and its trace shows whether the handset was reached.
    let pinged = appliance.ask("POST", &format!("{by_number}/silent-sms"), b"")?;
    let id = pinged["id"].as_str().context("no id")?;
    let path = format!("/v1/messages/{id}");
    let trace = appliance.wait_until(TIMEOUT, &path, |trace| trace["finished"] == true)?;
    ensure!(matches!(trace["state"].as_str(), Some("delivered" | "relayed")), "{trace:#}");
    let arrivals = msc.report().arrivals;
    let tpdu = arrivals.last().and_then(|arrival| arrival.tpdu.clone()).context("no TPDU")?;
    // First octet, TP-OA's length in digits, type and digits, then TP-PID, TP-DCS, TP-SCTS and TP-UDL.
    let after = 3 + usize::from(tpdu[1]).div_ceil(2);
    assert_eq!((tpdu[after], tpdu[after + 9]), (0x40, 0), "{tpdu:02x?}");

    // Found by IMSI in store and archive.
    sent.push(id.to_owned());
    sent.reverse();
    assert_eq!(network.found(&format!("imsi={imsi}"))?, sent);
    network.archived()?;
    assert_eq!(network.found(&format!("imsi={imsi}"))?, sent);
    assert_eq!(network.found(&format!("imsi={}", Subscribers::imsi_digits(1)))?, [other]);
    assert_eq!(network.found(&format!("imsi={imsi}&limit=2"))?, &sent[..2]);
    for (path, status) in [
        ("/v1/messages?imsi=12", 400),
        (&*format!("/v1/messages?imsi={imsi}&number=1"), 400),
        ("/v1/subscribers/msisdn-4930", 404),
        ("/v1/subscribers/4930", 400),
    ] {
        let (reply, body) = appliance.request("GET", path, b"")?;
        ensure!(reply == status, "{path}: {reply} {body}");
    }
    Ok(())
}

#[test]
fn without_the_permission_numbers_are_masked_and_all_actions_are_in_the_audit_log() -> Result<()> {
    let network = Network::start()?;
    let appliance = &network.appliance;
    let _msc = network.msc(MtBehaviour::Accept)?;
    let made = appliance.ask("POST", "/v1/tokens", br#"{"name":"op","role":"operator"}"#)?;
    let bearer = format!("Bearer {}", made["token"].as_str().context("no token")?);
    let as_operator = [("authorization", bearer.as_str())];
    let path = format!("/v1/subscribers/imsi-{}", Subscribers::imsi_digits(0));
    let (status, reply) = appliance.send("GET", &path, b"", &as_operator)?;
    let shown: Value = serde_json::from_str(&reply)?;
    ensure!(status == 200 && !reply.contains(&number(0)), "{reply}");
    assert_eq!((&shown["imsi"], &shown["msisdn"]), (&json!("0010*********00"), &json!("1000*****00")));
    for act in ["wake", "silent-sms"] {
        let (status, reply) = appliance.send("POST", &format!("{path}/{act}"), b"", &as_operator)?;
        ensure!(status < 300, "{act}: {status} {reply}");
    }
    let entries = appliance.get("/v1/audit")?;
    for act in ["wake", "silent-sms"] {
        let what = format!("POST /v1/subscribers/{{subscriber}}/{act}");
        ensure!(entries.to_string().contains(&what), "{what} is not in {entries:#}");
    }
    Ok(())
}

#[test]
fn without_the_hlr_cached_subscriber_data_is_shown() -> Result<()> {
    let mut network = Network::start()?;
    let _msc = network.msc(MtBehaviour::Accept)?;
    network.hlr.stop();
    let appliance = &network.appliance;
    let known = appliance.get(&format!("/v1/subscribers/imsi-{}", Subscribers::imsi_digits(1)))?;
    assert_eq!((&known["state"], &known["present_by"]), (&json!("idle"), &json!("location-update")));
    let (status, reply) = appliance.request("GET", "/v1/subscribers/imsi-001019999999999", b"")?;
    ensure!(status == 503 && reply.contains("the HLR does not answer"), "{status} {reply}");
    Ok(())
}

#[test]
fn long_texts_between_handset_and_command_line_are_reassembled() -> Result<()> {
    let network = Network::start()?;
    let msc = network.msc(MtBehaviour::Accept)?;
    let own = number(0);
    let to = SHELL.trim_start_matches('+');
    let submit = |reference: u8, (part, total): (u8, u8), text: &str| {
        let header = vec![0, 3, 77, total, part];
        let tpdu = Submit { header, ..Submit::new(reference, to, text) }.octets();
        let phone = MoSender { subscriber: 0, number: &own, centre: CENTRE, reference, report: false };
        assert_eq!(msc.submit_tpdu(&phone, &tpdu, TIMEOUT), MoAnswer::Accepted);
    };
    submit(1, (2, 3), "second, ");
    submit(2, (1, 3), "first, ");
    let inbox = || -> Result<Value> { Ok(serde_json::from_str(&network.sms(&["inbox", "--json"])?)?) };
    until("all segments are delivered", || {
        let page = inbox()?;
        Ok(page["messages"][0]["state"] == "delivered"
            && page["messages"][0]["segments"]["present"][1]["number"] == 2)
    })?;
    let printed = network.sms(&["inbox"])?;
    ensure!(printed.lines().count() == 1, "{printed}");
    ensure!(printed.contains("[2 of 3 segments] first, second,  [...]"), "{printed}");
    network.archived()?;
    submit(3, (3, 3), "third");
    until("all of it to be delivered", || {
        Ok(inbox()?["messages"][0]["text"] == "first, second, third"
            && inbox()?["messages"][0]["state"] == "delivered")
    })?;
    let page = inbox()?;
    let present = page["messages"][0]["segments"]["present"].as_array().context("no segments")?;
    assert_eq!((page["messages"].as_array().map(Vec::len), present.len()), (Some(1), 3));
    ensure!(present.iter().all(|one| one["id"].is_string() && one["state"] == "delivered"), "{page:#}");
    let printed = network.sms(&["inbox"])?;
    ensure!(
        printed.lines().count() == 1 && printed.trim_end().ends_with("  first, second, third"),
        "{printed}"
    );

    // A text from the command line is one message, whatever the number of its segments.
    let long = "a long text ".repeat(20);
    let long = long.trim_end();
    network.sms(&["send", &format!("+{own}"), long])?;
    msc.wait_for_accepted(2, TIMEOUT)?;
    until("it to be delivered", || {
        let log: Value = serde_json::from_str(&network.sms(&["log", "--json"])?)?;
        let sent: Vec<&Value> = log["messages"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|item| item["direction"] == "out")
            .collect();
        Ok(sent.len() == 1 && sent[0]["state"] == "delivered" && sent[0]["text"] == long)
    })?;
    Ok(())
}

#[test]
fn a_national_table_is_used_if_it_saves_segments() -> Result<()> {
    let network = Network::start()?;
    let msc = network.msc(MtBehaviour::Accept)?;
    let text = "Işıklar sönmüş, yağmur yağıyor. ".repeat(3);
    let id = network.send(&number(0), text.trim_end())?;
    let path = format!("/v1/messages/{id}");
    network.appliance.wait_until(TIMEOUT, &path, |trace| trace["state"] == "delivered")?;
    let arrivals = msc.report().arrivals;
    let [arrival] = arrivals.as_slice() else { anyhow::bail!("{} segments, not 1", arrivals.len()) };
    let tpdu = arrival.tpdu.as_ref().context("no TPDU")?;
    let tpdu::ToMs::Deliver(deliver) = tpdu::ToMs::decode(tpdu, false)? else {
        anyhow::bail!("no SMS-DELIVER: {tpdu:02x?}");
    };
    assert_eq!(deliver.data_coding, 0, "the default alphabet, with a table of its own");
    assert_eq!(tpdu::text::decode(0, &deliver.user_data), text.trim_end());
    Ok(())
}

/// `switchyard sms follow`, killed with the test.
struct Following(Child);

impl Drop for Following {
    fn drop(&mut self) {
        // It may have exited already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn follow_shows_a_long_text_once() -> Result<()> {
    let network = Network::start()?;
    let msc = network.msc(MtBehaviour::Accept)?;
    let mut command = Command::new(network.fixture.binary());
    command.args(["sms", "follow", "--json", "--socket"]).arg(network.fixture.folder().join("sms.sock"));
    let mut following = Following(command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?);
    let output = following.0.stdout.take().context("no output")?;
    let (sender, lines) = std::sync::mpsc::channel();
    std::thread::Builder::new().name("follow".to_owned()).spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    })?;
    until("it follows", || {
        network.sms(&["send", SHELL, "knock"])?;
        Ok(lines.recv_timeout(Duration::from_millis(200)).is_ok())
    })?;
    let own = number(0);
    for (reference, text) in [(1, "first, "), (2, "second")] {
        let header = vec![0, 3, 77, 2, reference];
        let tpdu = Submit { header, ..Submit::new(reference, SHELL.trim_start_matches('+'), text) }.octets();
        let phone = MoSender { subscriber: 0, number: &own, centre: CENTRE, reference, report: false };
        assert_eq!(msc.submit_tpdu(&phone, &tpdu, TIMEOUT), MoAnswer::Accepted);
    }
    let mut first = None;
    loop {
        let event: Value = serde_json::from_str(&lines.recv_timeout(TIMEOUT).context("nothing is shown")?)?;
        let item = &event["message"];
        if item["text"] == "knock" {
            continue;
        }
        let id = item["id"].as_str().context("no id")?.to_owned();
        assert_eq!(*first.get_or_insert_with(|| id.clone()), id, "{item}");
        if item["text"] == "first, second" && item["state"] == "delivered" {
            return Ok(());
        }
        ensure!(["first,  [...]", "first, second"].map(Value::from).contains(&item["text"]), "{item}");
    }
}

#[test]
fn the_command_line_shows_the_cause_of_a_failure() -> Result<()> {
    let network = Network::start()?;
    network.sms(&["send", &format!("+{PREFIX}0000000999"), "to nobody"])?;
    until("it to fail", || Ok(network.sms(&["log"])?.contains("failed")))?;
    let printed = network.sms(&["log"])?;
    ensure!(printed.contains("(no such subscriber)") && !printed.contains("error"), "{printed}");
    network.archived()?;
    assert_eq!(network.sms(&["log"])?, printed);
    Ok(())
}
