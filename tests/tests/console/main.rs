//! The console in a real browser, with the real binary behind it: an admin's first day (`first_day.rs`), and what is beside it.
//!
//! Pictures of each step of that day and of all pages, dark and light, at the widths of a desk and of a phone, are left in
//! `screenshots` of the target folder.

mod browser;
mod first_day;

use anyhow::{Context, Result, ensure};
use behaviour_tests::appliance::{Appliance, Blueprint};
use behaviour_tests::operator::{Operator, UPDATE};
use behaviour_tests::{Peer, Stage, Visitor};
use browser::Browser;
use serde_json::json;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

/// What the first admin takes as a password.
const ADAS: &str = "a long way to the yard";
const VERAS: &str = "only looking, thank you";

/// An appliance, an SMSC that gives receipts, and a browser at the appliance's door.
struct Day {
    browser: Browser,
    appliance: Appliance,
    upstream: SocketAddr,
    /// Who changes the machine, in place of the appliance image's own part.
    machine: Operator,
    _smsc: Peer,
    stage: Stage,
}

impl Day {
    /// With the account `acme` and the peer `upstream`, which is that SMSC.
    async fn begin() -> Result<Self> {
        Self::with(|blueprint, upstream| {
            blueprint.account("acme", "").peer("upstream", upstream, "default-account = \"acme\"");
        })
        .await
    }

    /// As it comes out of the box: a listener and a router, and nobody to talk to.
    async fn unpacked() -> Result<Self> {
        Self::with(|_, _| {}).await
    }

    async fn with(furnish: impl FnOnce(&mut Blueprint, SocketAddr)) -> Result<Self> {
        let stage = Stage::new()?;
        let mut smsc = Peer::node("upstream.js", &json!({ "receipts": true }))?;
        let port = smsc.expect("listening")?["port"].as_u64().context("no port")?;
        let upstream = SocketAddr::from((Ipv4Addr::LOCALHOST, u16::try_from(port)?));
        let mut blueprint = stage.blueprint()?;
        blueprint.archive(&format!("sqlite:{}", stage.folder().join("archive.db").display()));
        let machine = Operator::start(stage.folder())?;
        blueprint.environment("SWITCHYARD_OPERATE", machine.socket());
        furnish(&mut blueprint, upstream);
        let appliance = blueprint.start()?;
        let browser = Browser::open(format!("http://{}", appliance.blueprint().http())).await?;
        Ok(Self { browser, appliance, upstream, machine, _smsc: smsc, stage })
    }

    /// Comes in with the token that the first start has left.
    async fn first_login(&self) -> Result<()> {
        let browser = &self.browser;
        browser.go("/peers").await?;
        ensure!(browser.place().await?.starts_with("/login"), "not led to the login");
        browser.fill("user", "nobody").await?;
        browser.fill("password", "nothing at all").await?;
        browser.press("Log in").await?;
        browser.reads("are not right").await?;
        browser.go("/login?next=/peers").await?;
        browser.fill("token", &self.appliance.token()?).await?;
        browser.press("Log in with the token").await?;
        browser.reads("Add a peer").await?;
        ensure!(browser.place().await? == "/peers", "not back at the page: {}", browser.place().await?);
        Ok(())
    }

    async fn log_in(&self, user: &str, password: &str) -> Result<()> {
        let browser = &self.browser;
        browser.press("Log out").await?;
        browser.reads("The first time").await?;
        browser.fill("user", user).await?;
        browser.fill("password", password).await?;
        browser.press("Log in").await?;
        browser.reads(&format!("{user} (")).await
    }

    async fn add_user(&self, name: &str, role: &str, password: &str) -> Result<()> {
        let browser = &self.browser;
        browser.go("/people").await?;
        browser.press("Add a user").await?;
        browser.fill("add-user-name", name).await?;
        browser.choose("add-user-role", role).await?;
        browser.fill("add-password", password).await?;
        // The summary above it has the same label: the button is what is left to press.
        browser.submit("add-password").await?;
        browser.reads("Added. It is in use already.").await?;
        browser.reads(name).await
    }

    /// Makes a router live, past the console, that sends everything where nothing is: it fails at every message.
    fn breaks_the_router(&self) -> Result<()> {
        let live = self.appliance.get("/v1/hooks/router")?["live"]["chain"][0].clone();
        let wish = json!({
            "plugin": live["plugin"], "version": live["version"], "tolerance": { "faults": 0, "window-ms": 1_000 },
            "policy": "[default]\nlegs = [{ peer = \"nowhere-at-all\" }]\n",
            "force": true,
        });
        let house = Visitor::house(&self.appliance)?;
        let told = house.ask("POST", "/v1/hooks/router/activate", Some(&wish))?;
        ensure!(told.status == 200, "{}", told.text);
        Ok(())
    }

    /// A test message past the console; gives back its id.
    fn submits(&self, to: &str) -> Result<String> {
        let wish = json!({ "account": "acme", "from": "10655", "to": to, "text": "hello" });
        let told = Visitor::house(&self.appliance)?.ask("POST", "/v1/messages", Some(&wish))?;
        ensure!(told.status < 300, "{}", told.text);
        Ok(told.json()?["id"].as_str().context("no id")?.to_owned())
    }

    /// Sends a test message, and is shown its trace.
    async fn send(&self, to: &str) -> Result<String> {
        let browser = &self.browser;
        browser.go("/messages/new?account=acme").await?;
        browser.fill("from", "10655").await?;
        browser.fill("to", to).await?;
        browser.fill("text", "hello from the yard").await?;
        browser.press("Send it").await?;
        browser.reads("The test message is accepted").await?;
        let place = browser.place().await?;
        let id = place.trim_start_matches("/messages/").split('?').next().unwrap_or_default().to_owned();
        ensure!(!id.is_empty(), "no id in {place}");
        Ok(id)
    }
}

/// What an admin's own people may not, and what they are not even offered.
#[tokio::test(flavor = "multi_thread")]
async fn a_text_is_shown_when_it_is_asked_for_and_that_is_written_down() -> Result<()> {
    let day = Day::begin().await?;
    let browser = &day.browser;
    day.first_login().await?;
    let id = day.send("+4915112345678").await?;
    browser.reads("relayed").await?;
    ensure!(
        !browser.words().await?.contains("hello from the yard"),
        "a text is shown before anybody asked for it"
    );
    browser.press("Show the text and the whole number").await?;
    browser.reads("hello from the yard").await?;
    browser.go("/audit").await?;
    browser.reads(&id).await?;
    browser.go("/messages?number=%2B49000").await?;
    browser.reads("No message is like that").await?;
    browser.go("/peers/new").await?;
    browser.fill("field-name", "second").await?;
    browser.fill("field-address", "127.0.0.1").await?;
    browser.press("Add it").await?;
    browser.shows("p.wrong #field-address").await?;
    browser.fill("field-address", &format!("127.0.0.1:{}", behaviour_tests::appliance::free_port()?)).await?;
    browser.press("Add it").await?;
    browser.reads("Added. It is in use already.").await?;
    browser.press("Test the connection").await?;
    browser.reads("it does not work").await?;
    day.browser.close().await
}

/// The first message that a plugin fails at is an example, and leads to its trace.
#[tokio::test(flavor = "multi_thread")]
async fn a_fault_is_shown_with_the_message_that_met_it() -> Result<()> {
    let day = Day::begin().await?;
    let browser = &day.browser;
    day.first_login().await?;
    day.breaks_the_router()?;
    let id = day.submits("+4915112345678")?;
    browser.go("/plugins/router").await?;
    browser.reads("1 fault since the start").await?;
    let faults = browser.part("faults").await?;
    ensure!(faults.contains("nowhere-at-all") && faults.contains(&id), "{faults}");
    ensure!(!faults.contains("15112345678"), "the whole number is shown: {faults}");
    browser.press(&id).await?;
    browser.reads("fault (verdict)").await?;
    day.browser.close().await
}

/// A page that is open is told when its session ends, whoever ends it.
#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_is_open_ends_with_its_session() -> Result<()> {
    let day = Day::begin().await?;
    let browser = &day.browser;
    day.first_login().await?;
    day.add_user("vera", "viewer", VERAS).await?;
    day.log_in("vera", VERAS).await?;
    browser.go("/queues").await?;
    browser.reads("Orders that stand").await?;
    let house = Visitor::house(&day.appliance)?;
    let told = house.ask("DELETE", "/v1/users/vera", None)?;
    ensure!(told.status == 204, "{}", told.text);
    // Nobody loads it anew: what is live on it ends, and the page finds itself at the door.
    let begun = Instant::now();
    while !browser.place().await?.starts_with("/login") {
        ensure!(begun.elapsed() < 2 * behaviour_tests::PATIENCE, "still at {}", browser.place().await?);
        browser::pause();
    }
    day.browser.close().await
}

/// The machine below, where it is the appliance image.
#[tokio::test(flavor = "multi_thread")]
async fn the_machine_is_updated_taken_back_and_reset() -> Result<()> {
    let day = Day::begin().await?;
    let browser = &day.browser;
    day.first_login().await?;
    let (good, bad) = (day.stage.folder().join("good.raucb"), day.stage.folder().join("bad.raucb"));
    // More than is kept in memory of any one request.
    std::fs::write(&good, [UPDATE, &vec![b'x'; 40 << 20]].concat())?;
    std::fs::write(&bad, "somebody else's")?;
    browser.go("/maintenance").await?;
    browser.reads("1.0 from slot A").await?;
    browser.picture("machine").await?;
    browser.choose_file("update", &bad).await?;
    browser.press("Update and start anew").await?;
    browser.reads("signature verification failed").await?;
    ensure!(day.machine.done().is_empty(), "{:?}", day.machine.done());
    browser.go("/maintenance").await?;
    browser.choose_file("update", &good).await?;
    browser.press("Update at the next start").await?;
    browser.reads("counts from the next start").await?;
    browser.go("/maintenance").await?;
    browser.choose_file("update", &good).await?;
    browser.press("Update and start anew").await?;
    browser.reads("The machine starts anew").await?;
    browser.go("/maintenance").await?;
    browser.press("Go back to 0.9").await?;
    browser.reads("The machine starts anew").await?;
    browser.go("/maintenance").await?;
    browser.choose("state", "keep").await?;
    browser.tick("sure").await?;
    browser.press("Reset and start anew").await?;
    browser.reads("The machine starts anew").await?;
    ensure!(
        day.machine.done() == ["update --no-reboot", "update", "rollback", "factory-reset --keep-state"],
        "{:?}",
        day.machine.done()
    );

    day.add_user("vera", "viewer", VERAS).await?;
    day.log_in("vera", VERAS).await?;
    browser.go("/maintenance").await?;
    browser.reads("1.0 from slot A").await?;
    ensure!(!browser.words().await?.contains("Factory reset"), "a viewer is offered a reset");
    day.browser.close().await
}

/// What a program listens to ends with what let it in, too.
#[test]
fn a_watch_over_the_api_ends_with_its_token() -> Result<()> {
    let stage = Stage::without_guests()?;
    let folder = stage.folder().join("appliance");
    let appliance = Blueprint::new(stage.binary(), &folder)?.start()?;
    let house = Visitor::house(&appliance)?;
    let made = house.ask("PUT", "/v1/pools/support", Some(&json!({})))?;
    ensure!(made.status == 200 || made.status == 201, "{}", made.text);
    let token = house.make_token("watcher", &json!({ "role": "viewer" }))?;
    let url = format!("http://{}/v1/pools/support/watch", appliance.blueprint().http());
    let mut answer = ureq::get(&url).header("authorization", format!("Bearer {token}")).call()?;
    let (ended, end) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || {
        let read = std::io::copy(&mut answer.body_mut().as_reader(), &mut std::io::sink());
        // Nobody waits any more once the test has failed.
        let _ = ended.send(read.is_ok());
    });
    ensure!(end.recv_timeout(Duration::from_secs(5)).is_err(), "it ended while the token was good");
    let gone = house.ask("DELETE", "/v1/tokens/watcher", None)?;
    ensure!(gone.status == 204, "{}", gone.text);
    ensure!(end.recv_timeout(2 * behaviour_tests::PATIENCE).is_ok(), "it goes on without a token");
    ensure!(reader.join().is_ok(), "the reader has failed");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn everybody_can_use_every_page_at_a_desk_and_on_a_phone() -> Result<()> {
    let day = Day::begin().await?;
    let browser = &day.browser;
    browser.inspect("/login").await?;
    day.first_login().await?;
    let id = day.send("+4915112345678").await?;
    browser.reads("relayed").await?;
    day.breaks_the_router()?;
    day.submits("+4915112345679")?;
    let message = format!("/messages/{id}");
    for path in [
        "/",
        "/messages",
        &message,
        "/messages/new",
        "/peers",
        "/peers/upstream",
        "/peers/new",
        "/accounts",
        "/accounts/acme",
        "/plugins",
        "/plugins/router",
        "/policies",
        "/policies/router",
        "/queues",
        "/uncertain",
        "/gateways",
        "/gateways/new",
        "/networks",
        "/tables",
        "/ledger",
        "/opt-outs",
        "/pools",
        "/archive",
        "/configuration",
        "/configuration/versions",
        "/people",
        "/audit",
        "/maintenance",
        "/own",
    ] {
        browser.inspect(path).await?;
    }
    day.browser.close().await
}
