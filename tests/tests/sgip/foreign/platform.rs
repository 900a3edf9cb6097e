//! The whole SGIP platform: a business system's XML-RPC call, a third-party gateway, the push of the DLR, the row in
//! MariaDB; and a subscriber's reply. Undisturbed, and with the daemon killed at every step.

use anyhow::{Context, Result, ensure};
use behaviour_tests::test_daemon::{PASSWORD, TestDaemon, TestDaemonConfig};
use behaviour_tests::{Fixture, Peer, TIMEOUT};
use serde_json::{Value, json};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Command, Stdio};
use testkit::database::Database;
use testkit::sample::SampleBusiness;

const SECRET: &str = "a-secret";
const USER: &str = "8613012345678";
const POLICY: &str = "[default]\nlegs = [{ peer = \"unicom\" }]\n";

/// A call with Python's own XML-RPC client. A fault is an error.
fn call(config: &TestDaemonConfig, method: &str, arguments: &Value) -> Result<Value> {
    const SCRIPT: &str = "
import json, sys, xmlrpc.client
url, method, arguments = sys.argv[1:]
server = xmlrpc.client.ServerProxy(url)
try:
    answer = getattr(server, method)(*json.loads(arguments))
except xmlrpc.client.Fault as fault:
    answer = {'fault': fault.faultCode, 'text': fault.faultString}
print(json.dumps(answer))
";
    let url = format!("http://shop:{PASSWORD}@{}/xmlrpc", config.business());
    let output = Command::new("python3")
        .args(["-c", SCRIPT, &url, method, &arguments.to_string()])
        .stdin(Stdio::null())
        .output()?;
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success(), "{method}: {error}");
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// The daemon, a gateway in Python, a business system, a database.
struct PlatformFixture {
    fixture: Fixture,
    gateway: Peer,
    shop: SampleBusiness,
    config: TestDaemonConfig,
}

impl PlatformFixture {
    fn new(archive: &str) -> Result<Self> {
        let fixture = Fixture::new()?;
        let mut gateway = Peer::plain_python(
            "sgip.py",
            &json!({ "role": "gateway", "node": 101_001, "name": "us", "password": "pw", "retry": 0.05 }),
        )?;
        let port = gateway.expect("listening")?["port"].as_u64().and_then(|port| u16::try_from(port).ok());
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port.context("a port")?));
        let shop = SampleBusiness::start(SECRET)?;
        let mut config = TestDaemonConfig::new(fixture.binary(), &fixture.folder().join("appliance"))?;
        let push = format!("push = {{ url = {:?}, secret = {SECRET:?} }}", shop.url());
        config
            .archive(archive)
            .business_account("shop", "source = { default = \"10655\" }", &push)
            .gateway("unicom", address, "default-account = \"shop\"")
            .tables("[[opt-out]]\nlanguage = \"zh\"\nsenders = [\"1065*\"]\nstop = [\"退订\"]\nstart = [\"订阅\"]\n")
            .router(&fixture.guest("prefix_router"), POLICY)?;
        Ok(Self { fixture, gateway, shop, config })
    }

    fn start(&mut self) -> Result<TestDaemon> {
        let appliance = self.config.start()?;
        let port = self.config.sgip().port();
        self.gateway.send_action(&json!({ "dial": { "port": port, "name": "smg", "password": "its" } }))?;
        Ok(appliance)
    }

    /// Submits one text with an idempotency key; returns its id.
    fn submit(&self, text: &str) -> Result<String> {
        let message = json!({ "to": USER, "text": text, "reference": text });
        let answer = call(&self.config, "sms.submit", &json!([message, text]))?;
        Ok(answer[0]["id"].as_str().with_context(|| format!("{answer}"))?.to_owned())
    }

    fn report(&mut self, sequence: &Value) -> Result<()> {
        self.gateway
            .send_action(&json!({ "report": { "sequence": sequence, "user": USER, "state": 0, "error": 0 } }))
    }

    /// The next matching push; pushes may be repeated.
    fn pushed(&self, fits: impl Fn(&Value) -> bool) -> Result<Value> {
        loop {
            let came = self.shop.pushes().recv_timeout(TIMEOUT).context("the push did not come")?;
            if fits(&came) {
                return Ok(came);
            }
        }
    }
}

/// Rows as the server's own client returns them, once there are `count`.
fn rows(database: &Database, name: &str, count: usize) -> Result<Vec<Vec<String>>> {
    let deadline = std::time::Instant::now() + TIMEOUT;
    loop {
        let sql = "SELECT id, direction, state, source, destination FROM messages ORDER BY id";
        // The daemon creates the table; before that there is none.
        match database.query_in(name, sql) {
            Ok(found) if found.len() >= count => return Ok(found),
            other if std::time::Instant::now() > deadline => {
                anyhow::bail!("not {count} rows: {other:?}");
            }
            _ => std::thread::park_timeout(std::time::Duration::from_millis(50)),
        }
    }
}

#[test]
fn a_text_and_a_reply_are_delivered_and_the_rest_of_the_interface_works() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let database = Database::mariadb(folder.path())?;
    let mut platform = PlatformFixture::new(&database.create("circle")?)?;
    let appliance = platform.start()?;
    let id = platform.submit("order 7")?;
    ensure!(platform.submit("order 7")? == id, "a repetition is another message");
    let submit = platform.gateway.expect("taken")?;
    assert_eq!((&submit["text"], &submit["user_numbers"]), (&json!("order 7"), &json!([USER])));
    platform.report(&submit["sequence"])?;
    let report = platform.pushed(|push| push["type"] == "dlr")?;
    assert_eq!(
        (&report["message_id"], &report["state"], &report["reference"]),
        (&json!(id), &json!("delivered"), &json!("order 7"))
    );
    platform.gateway.send_action(&json!({ "deliver": {
        "user_number": USER, "sp_number": "10655", "text": "好的", "message_coding": 15, "reserve": "4c494e4b30303031" } }))?;
    let reply = platform.pushed(|push| push["type"] == "reply")?;
    assert_eq!((&reply["text"], &reply["link_id"]), (&json!("好的"), &json!("LINK0001")));
    let found = rows(&database, "circle", 2)?;
    assert_eq!(found[0], [&id, "mt", "delivered", "10655", USER]);
    assert_eq!(found[1][1..], ["mo", "delivered", USER, "10655"]);

    // It is found regardless of where it is stored.
    let state = call(&platform.config, "sms.state", &json!([id]))?;
    assert_eq!((&state["state"], &state["final"]), (&json!("delivered"), &json!(true)));
    let trace = appliance.get(&format!("/v1/messages/{id}"))?;
    assert_eq!((&trace["state"], &trace["finished"]), (&json!("delivered"), &json!(true)));
    let history = appliance.get(&format!("/v1/history?number={USER}&limit=1"))?;
    assert_eq!(history["messages"].as_array().map(Vec::len), Some(1));
    let cursor = history["next"].as_str().context("a second page")?;
    let rest = appliance.get(&format!("/v1/history?number={USER}&limit=5&cursor={cursor}"))?;
    assert_eq!((&rest["messages"][0]["id"], &rest["next"]), (&json!(id), &Value::Null));
    let (status, csv) = appliance.request("GET", "/v1/history/export?format=csv&direction=mt", &[])?;
    assert_eq!((status, csv.lines().count()), (200, 2), "{csv}");
    let statistics = appliance.get("/v1/statistics?by=day&account=shop")?;
    assert_eq!((&statistics[0]["mt"]["delivered"], &statistics[0]["mo"]["accepted"]), (&json!(1), &json!(1)));

    // Sends DLRs once more, for a client that lost them.
    let again = json!({ "from": "2020-01-01T00:00:00Z", "until": "2100-01-01T00:00:00Z", "account": "shop" });
    let made = appliance.ask("POST", "/v1/dlrs/resend", again.to_string().as_bytes())?;
    assert_eq!(made, json!({ "dlrs": 1, "next": null }));
    let again = platform.pushed(|push| push["type"] == "dlr")?;
    assert_eq!((&again["message_id"], &again["reference"]), (&json!(id), &json!("order 7")));

    // Invalid calls return a fault with a code, and store nothing.
    let fault = call(&platform.config, "sms.submit", &json!([{ "to": "nobody", "text": "x" }]))?;
    assert_eq!(fault["fault"], 3, "{fault}");
    let fault =
        call(&platform.config, "sms.submit", &json!([{ "to": USER, "text": "x", "coding": "utf-7" }]))?;
    assert_eq!(fault["fault"], 3, "{fault}");
    let methods = call(&platform.config, "system.listMethods", &json!([]))?;
    assert!(methods.as_array().is_some_and(|methods| methods.contains(&json!("sms.fetch"))));

    // An opt-out survives a restart, until it is revoked.
    let say = |platform: &mut PlatformFixture, text: &str| -> Result<()> {
        platform.gateway.send_action(&json!({ "deliver": {
            "user_number": USER, "sp_number": "10655", "text": text, "message_coding": 15 } }))?;
        platform.pushed(|push| push["text"] == text).map(drop)
    };
    say(&mut platform, "退订")?;
    appliance.kill()?;
    let appliance = platform.start()?;
    let fault = call(&platform.config, "sms.submit", &json!([{ "to": USER, "text": "x" }]))?;
    assert_eq!(fault["fault"], 8, "{fault}");
    assert_eq!(appliance.get("/v1/opt-outs")?["stopped"][0]["sender"], "10655");
    say(&mut platform, "订阅")?;
    assert!(
        call(&platform.config, "sms.submit", &json!([{ "to": USER, "text": "x" }]))?[0]["id"].is_string()
    );

    let orphans = appliance.get("/v1/dlrs/orphans")?;
    assert_eq!(orphans["total"], 0);
    platform
        .gateway
        .send_action(&json!({ "report": { "sequence": [1, 2, 3], "user": USER, "state": 0, "error": 0 } }))?;
    appliance.wait_until(TIMEOUT, "/v1/dlrs/orphans", |orphans| orphans["total"] == 1)?;
    let (status, _) = appliance.stop()?;
    ensure!(status.success(), "stopped with {status}");
    drop(platform.fixture);
    Ok(())
}

/// Moment at which the daemon is killed.
#[derive(Debug, Clone, Copy)]
enum Kill {
    /// After the answer to the call.
    Accepted,
    /// After the gateway has received the Submit, without an answer.
    Submitted,
    /// After the gateway's answer.
    Responded,
    /// After the Report, with the business system down.
    Reported,
    /// After the push, with the database down.
    Pushed,
    /// After the row was written.
    Archived,
}

#[test]
fn killed_at_every_step_nothing_is_lost_and_nothing_archived_twice() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let mut database = Database::mariadb(folder.path())?;
    for (number, kill) in
        [Kill::Accepted, Kill::Submitted, Kill::Responded, Kill::Reported, Kill::Pushed, Kill::Archived]
            .into_iter()
            .enumerate()
    {
        let name = format!("step{number}");
        let url = database.create(&name)?;
        run_kill_case(&mut database, &name, &url, kill).with_context(|| format!("killed at {kill:?}"))?;
    }
    Ok(())
}

fn run_kill_case(database: &mut Database, name: &str, url: &str, kill: Kill) -> Result<()> {
    let mut platform = PlatformFixture::new(url)?;
    let appliance = platform.start()?;
    if matches!(kill, Kill::Submitted) {
        platform.gateway.send_action(&json!({ "set": { "silent": 1 } }))?;
    }
    let id = platform.submit("order 7")?;
    if matches!(kill, Kill::Accepted) {
        appliance.kill()?;
        let _appliance = platform.start()?;
        return finish(&mut platform, database, name, &id, true, _appliance);
    }
    let submit = platform.gateway.expect("taken")?;
    match kill {
        Kill::Submitted => {
            appliance.kill()?;
            let appliance = platform.start()?;
            // The repetition has the sequence of the original: the gateway recognises it, and the user gets one message.
            let again = platform.gateway.expect("taken")?;
            assert_eq!((&again["sequence"], &again["duplicate"]), (&submit["sequence"], &json!(true)));
            platform.report(&submit["sequence"])?;
            finish(&mut platform, database, name, &id, false, appliance)
        }
        Kill::Responded => {
            appliance
                .wait_until(TIMEOUT, &format!("/v1/messages/{id}"), |trace| trace["state"] == "responded")?;
            appliance.kill()?;
            let appliance = platform.start()?;
            platform.report(&submit["sequence"])?;
            finish(&mut platform, database, name, &id, false, appliance)
        }
        Kill::Reported => {
            platform.shop.refuse(true);
            platform.report(&submit["sequence"])?;
            let answered =
                platform.gateway.expect_matching("answered", |event| event["command"] == "report_resp")?;
            assert_eq!(answered["result"], 0);
            appliance.kill()?;
            platform.shop.refuse(false);
            let appliance = platform.start()?;
            finish(&mut platform, database, name, &id, false, appliance)
        }
        Kill::Pushed => {
            database.stop()?;
            platform.report(&submit["sequence"])?;
            platform.pushed(|push| push["message_id"] == id)?;
            appliance.kill()?;
            let appliance = platform.start()?;
            appliance.wait_until(TIMEOUT, "/v1/archive", |archive| archive["backlog"] == 1)?;
            database.start()?;
            archived(&mut platform, database, name, &id, appliance)
        }
        Kill::Accepted | Kill::Archived => {
            platform.report(&submit["sequence"])?;
            platform.pushed(|push| push["message_id"] == id)?;
            rows(database, name, 1)?;
            appliance.kill()?;
            let appliance = platform.start()?;
            archived(&mut platform, database, name, &id, appliance)
        }
    }
}

/// From any state after the restart: one message at the gateway, its DLR at the business system.
fn finish(
    platform: &mut PlatformFixture,
    database: &Database,
    name: &str,
    id: &str,
    report: bool,
    appliance: TestDaemon,
) -> Result<()> {
    if report {
        let submit = platform.gateway.expect("taken")?;
        platform.report(&submit["sequence"])?;
    }
    let push = platform.pushed(|push| push["message_id"] == id)?;
    assert_eq!(push["state"], "delivered");
    archived(platform, database, name, id, appliance)
}

/// One row; and after a reply and another restart still one each.
fn archived(
    platform: &mut PlatformFixture,
    database: &Database,
    name: &str,
    id: &str,
    appliance: TestDaemon,
) -> Result<()> {
    // The other direction: the reply is answered, and the daemon killed immediately.
    platform.gateway.send_action(
        &json!({ "deliver": { "user_number": USER, "sp_number": "10655", "text": "thanks" } }),
    )?;
    let answered =
        platform.gateway.expect_matching("answered", |event| event["command"] == "deliver_resp")?;
    assert_eq!(answered["result"], 0);
    appliance.kill()?;
    let appliance = platform.start()?;
    let reply = platform.pushed(|push| push["type"] == "reply")?;
    assert_eq!(reply["text"], "thanks");
    let found = rows(database, name, 2)?;
    assert_eq!(found.len(), 2, "{found:?}");
    assert_eq!(found[0][..3], [id, "mt", "delivered"]);
    assert_eq!(found[1][1..3], ["mo", "delivered"]);
    // The idempotency key is still remembered.
    ensure!(platform.submit("order 7")? == id, "the repetition is another message");
    appliance.wait_until(TIMEOUT, "/v1/archive", |archive| archive["backlog"] == 0)?;
    let (status, _) = appliance.stop()?;
    ensure!(status.success(), "stopped with {status}");
    let once = platform.gateway.collect("taken", std::time::Duration::ZERO);
    let fresh =
        once.iter().filter(|event| event["command"] == "submit" && event["duplicate"].is_null()).count();
    ensure!(fresh == 0, "the gateway got it more than once: {once:#?}");
    Ok(())
}

/// Between an SP and a third-party gateway: the daemon is the gateway to the one and the SP to the other.
#[test]
fn an_sp_and_a_gateway_exchange_messages_through_the_appliance() -> Result<()> {
    let fixture = Fixture::new()?;
    let mut gateway = Peer::plain_python(
        "sgip.py",
        &json!({ "role": "gateway", "node": 101_001, "name": "us", "password": "pw", "retry": 0.05 }),
    )?;
    let mut sp = Peer::plain_python(
        "sgip.py",
        &json!({ "role": "sp", "node": 3_010_054_321_u32, "name": "smg2", "password": "pw2", "retry": 0.05 }),
    )?;
    let port = |peer: &mut Peer| -> Result<SocketAddr> {
        let port = peer.expect("listening")?["port"].as_u64().and_then(|port| u16::try_from(port).ok());
        Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, port.context("a port")?)))
    };
    let (gateway_at, sp_at) = (port(&mut gateway)?, port(&mut sp)?);
    let mut config = TestDaemonConfig::new(fixture.binary(), &fixture.folder().join("appliance"))?;
    config
        .account(
            "sp",
            &format!(
                "[account.sgip]\nnode = 202002\naddress = \"{sp_at}\"\nlogin-name = \"smg2\"\nlogin-password = \"pw2\"\n"
            ),
        )
        .gateway("unicom", gateway_at, "default-account = \"sp\"")
        .router(&fixture.guest("prefix_router"), POLICY)?;
    let appliance = config.start()?;
    let port = config.sgip().port();
    gateway.send_action(&json!({ "dial": { "port": port, "name": "smg", "password": "its" } }))?;
    sp.send_action(&json!({ "dial": { "port": port, "name": "sp", "password": PASSWORD } }))?;
    assert_eq!(sp.expect("dialled")?["result"], 0);

    // One Submit for two users becomes one message each; SGIP-specific fields are kept.
    let users = [USER, "8613112345678"];
    sp.send_action(&json!({ "submit": {
        "sp_number": "10655", "user_numbers": users, "text": "测试", "message_coding": 15, "service_type": "TEN-OCTETS",
        "fee_type": 2, "fee_value": "10", "report_flag": 1, "priority": 9, "reserve": "4c494e4b30303031" }, "tag": 1 }))?;
    let answered = sp.expect("answered")?;
    assert_eq!(answered["result"], 0);
    for user in users {
        let taken = gateway.expect_matching("taken", |event| event["user_numbers"] == json!([user]))?;
        let fields = (
            &taken["text"],
            &taken["service_type"],
            &taken["fee_type"],
            &taken["priority"],
            &taken["reserve"],
        );
        assert_eq!(
            fields,
            (&json!("测试"), &json!("TEN-OCTETS"), &json!(2), &json!(9), &json!("4c494e4b30303031"))
        );
        assert_ne!(taken["sequence"], answered["sequence"]);
        let (state, error) = if user == USER { (0, 0) } else { (2, 29) };
        gateway.send_action(&json!({ "report": { "sequence": taken["sequence"], "user": user, "state": state, "error": error } }))?;
        let report = sp.expect_matching("taken", |event| event["user_number"] == user)?;
        assert_eq!(report["submit_sequence"], answered["sequence"]);
        assert_eq!((&report["state"], &report["error_code"]), (&json!(state), &json!(error)));
    }

    // The same octets get the same answer, and nothing more reaches the gateway; other content is refused.
    let twice = json!({ "submit": { "sp_number": "10655", "user_numbers": [USER], "text": "once" }, "times": 2, "tag": 2 });
    sp.send_action(&twice)?;
    assert_eq!(sp.expect("answered")?["result"], 0);
    let once = gateway.expect_matching("taken", |event| event["text"] == "once")?;
    let other = json!({ "submit": { "sequence": answered["sequence"], "sp_number": "10655", "user_numbers": [USER],
        "text": "other" }, "tag": 3 });
    sp.send_action(&other)?;
    let refused = sp.expect_matching("answered", |event| event["tag"] == 3)?;
    assert_eq!(refused["result"], 9, "{refused}");

    // A reply in the other direction keeps its LinkID.
    gateway.send_action(&json!({ "deliver": {
        "user_number": USER, "sp_number": "10655", "text": "好", "message_coding": 8, "reserve": "4c494e4b30303032" } }))?;
    let deliver = sp.expect_matching("taken", |event| event["command"] == "deliver")?;
    assert_eq!((&deliver["text"], &deliver["reserve"]), (&json!("好"), &json!("4c494e4b30303032")));
    let sent = gateway.collect("taken", std::time::Duration::ZERO);
    ensure!(
        !sent.iter().any(|event| event["text"] == "once" && event["sequence"] != once["sequence"]),
        "{sent:#?}"
    );
    let (status, _) = appliance.stop()?;
    ensure!(status.success(), "stopped with {status}");
    Ok(())
}
