//! The console in a real browser with the real binary: an admin's first day (`first_day.rs`), and further tests.
//!
//! Screenshots of each step of that day and of all pages, dark and light, at desktop and phone widths, are saved in
//! `screenshots` of the target folder.

mod browser;
mod document_editor;
mod first_day;

use anyhow::{Context, Result, ensure};
use behaviour_tests::fake_image_service::{FakeImageService, UPDATE};
use behaviour_tests::test_daemon::{TestDaemon, TestDaemonConfig};
use behaviour_tests::{AdminClient, Fixture, Peer};
use browser::Browser;
use serde_json::json;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Instant;

/// The password of the first admin.
const ADAS: &str = "a long way to the yard";
const VERAS: &str = "only looking, thank you";

/// An appliance, an SMSC that sends delivery receipts, and a browser on the console.
struct ConsoleFixture {
    browser: Browser,
    appliance: TestDaemon,
    upstream: SocketAddr,
    /// Replaces the appliance image's service.
    machine: FakeImageService,
    _smsc: Peer,
    fixture: Fixture,
}

impl ConsoleFixture {
    /// With the account `acme` and the peer `upstream`, which is that SMSC.
    async fn start() -> Result<Self> {
        Self::with(|config, upstream| {
            config.account("acme", "").peer("upstream", upstream, "default-account = \"acme\"");
        })
        .await
    }

    /// The default configuration: a listener and a router, no accounts or peers.
    async fn first_start() -> Result<Self> {
        Self::with(|_, _| {}).await
    }

    async fn with(configure: impl FnOnce(&mut TestDaemonConfig, SocketAddr)) -> Result<Self> {
        let fixture = Fixture::new()?;
        let mut smsc = Peer::node("upstream.js", &json!({ "receipts": true }))?;
        let port = smsc.expect("listening")?["port"].as_u64().context("no port")?;
        let upstream = SocketAddr::from((Ipv4Addr::LOCALHOST, u16::try_from(port)?));
        let mut config = fixture.config()?;
        config.archive(&format!("sqlite:{}", fixture.folder().join("archive.db").display()));
        let machine = FakeImageService::start(fixture.folder())?;
        config.environment("SWITCHYARD_OPERATE", machine.socket());
        configure(&mut config, upstream);
        let appliance = config.start()?;
        let browser = Browser::open(format!("http://{}", appliance.config().http())).await?;
        Ok(Self { browser, appliance, upstream, machine, _smsc: smsc, fixture })
    }

    /// Logs in with the token of the first start.
    async fn first_login(&self) -> Result<()> {
        let browser = &self.browser;
        browser.open_page("/peers").await?;
        ensure!(browser.path().await?.starts_with("/login"), "not led to the login");
        browser.fill("user", "nobody").await?;
        browser.fill("password", "nothing at all").await?;
        browser.click("Log in").await?;
        browser.reads("is not correct").await?;
        browser.open_page("/login?next=/peers").await?;
        browser.fill("token", &self.appliance.token()?).await?;
        browser.click("Log in with the token").await?;
        browser.reads("Add a peer").await?;
        ensure!(browser.path().await? == "/peers", "not back at the page: {}", browser.path().await?);
        Ok(())
    }

    async fn log_in(&self, user: &str, password: &str) -> Result<()> {
        let browser = &self.browser;
        browser.click("Log out").await?;
        browser.reads("The first time").await?;
        browser.fill("user", user).await?;
        browser.fill("password", password).await?;
        browser.click("Log in").await?;
        browser.reads(&format!("{user} (")).await
    }

    async fn add_user(&self, name: &str, role: &str, password: &str) -> Result<()> {
        let browser = &self.browser;
        browser.open_page("/users").await?;
        browser.click("Add a user").await?;
        browser.fill("add-user-name", name).await?;
        browser.choose("add-user-role", role).await?;
        browser.fill("add-password", password).await?;
        // The summary above it has the same label: clicks the button.
        browser.submit("add-password").await?;
        browser.reads("Added and active.").await?;
        browser.reads(name).await
    }

    /// Activates a router over the API that sends all messages to an unknown peer: it fails for every message.
    fn break_router(&self) -> Result<()> {
        let live = self.appliance.get("/v1/hooks/router")?["live"]["chain"][0].clone();
        let body = json!({
            "plugin": live["plugin"], "version": live["version"], "tolerance": { "faults": 0, "window-ms": 1_000 },
            "policy": "[default]\nlegs = [{ peer = \"nowhere-at-all\" }]\n",
            "force": true,
        });
        let root = AdminClient::root(&self.appliance)?;
        let reply = root.ask("POST", "/v1/hooks/router/activate", Some(&body))?;
        ensure!(reply.status == 200, "{}", reply.text);
        Ok(())
    }

    /// Sends a test message over the API; returns its id.
    fn submit_over_api(&self, to: &str) -> Result<String> {
        let body = json!({ "account": "acme", "from": "10655", "to": to, "text": "hello" });
        let reply = AdminClient::root(&self.appliance)?.ask("POST", "/v1/messages", Some(&body))?;
        ensure!(reply.status < 300, "{}", reply.text);
        Ok(reply.json()?["id"].as_str().context("no id")?.to_owned())
    }

    /// Sends a test message on the console; its trace is shown.
    async fn send(&self, to: &str) -> Result<String> {
        let browser = &self.browser;
        browser.open_page("/messages/new?account=acme").await?;
        browser.fill("from", "10655").await?;
        browser.fill("to", to).await?;
        browser.fill("text", "hello from the yard").await?;
        browser.click("Send").await?;
        browser.reads("The test message is accepted").await?;
        let place = browser.path().await?;
        let id = place.trim_start_matches("/messages/").split('?').next().unwrap_or_default().to_owned();
        ensure!(!id.is_empty(), "no id in {place}");
        Ok(id)
    }
}

/// Permissions of non-admins, and controls that are hidden from them.
#[tokio::test(flavor = "multi_thread")]
async fn reading_a_text_needs_a_request_and_is_logged() -> Result<()> {
    let console = ConsoleFixture::start().await?;
    let browser = &console.browser;
    console.first_login().await?;
    let id = console.send("+4915112345678").await?;
    browser.reads("relayed").await?;
    ensure!(!browser.words().await?.contains("hello from the yard"), "a text is shown without a request");
    browser.click("Show the text").await?;
    browser.reads("hello from the yard").await?;
    browser.open_page("/audit").await?;
    browser.reads(&id).await?;
    browser.open_page("/messages?number=%2B49000").await?;
    browser.reads("No message matches").await?;
    browser.open_page("/peers/new").await?;
    browser.fill("field-name", "second").await?;
    browser.fill("field-address", "127.0.0.1").await?;
    browser.click("Add").await?;
    browser.shows("p.invalid #field-address").await?;
    browser
        .fill("field-address", &format!("127.0.0.1:{}", behaviour_tests::test_daemon::free_port()?))
        .await?;
    browser.click("Add").await?;
    browser.reads("Added and active.").await?;
    browser.click("Test the connection").await?;
    browser.reads("failed").await?;
    console.browser.close().await
}

/// The first message that a plugin fails for is an example, with a link to its trace.
#[tokio::test(flavor = "multi_thread")]
async fn a_fault_is_shown_with_its_message() -> Result<()> {
    let console = ConsoleFixture::start().await?;
    let browser = &console.browser;
    console.first_login().await?;
    console.break_router()?;
    let id = console.submit_over_api("+4915112345678")?;
    browser.open_page("/plugins/router").await?;
    browser.reads("1 fault since the start").await?;
    let faults = browser.part("faults").await?;
    ensure!(faults.contains("nowhere-at-all") && faults.contains(&id), "{faults}");
    ensure!(!faults.contains("15112345678"), "the whole number is shown: {faults}");
    browser.click(&id).await?;
    browser.reads("fault (verdict)").await?;
    console.browser.close().await
}

/// An admin installs the first plugin of a hook: uploads it, gives it its policy, checks it and activates it.
#[tokio::test(flavor = "multi_thread")]
async fn a_first_plugin_gets_its_policy() -> Result<()> {
    let console = ConsoleFixture::start().await?;
    let browser = &console.browser;
    console.first_login().await?;
    let path = console.fixture.folder().join("prepaid.wasm");
    std::fs::write(&path, console.fixture.component("prepaid")?)?;
    browser.open_page("/plugins").await?;
    browser.fill("name", "prepaid").await?;
    browser.choose_file("component", &path).await?;
    browser.click("Upload").await?;
    browser.reads("nothing to compare a candidate with").await?;
    browser.put("policy", "[nonsense").await?;
    browser.click("Check").await?;
    browser.reads("nothing was changed").await?;
    ensure!(browser.value("policy").await? == "[nonsense", "the document is gone");
    let prices = std::fs::read_to_string(workspace::root().join("policies/prices.toml"))?;
    browser.put("policy", &prices).await?;
    browser.click("Check").await?;
    browser.reads("The plugin starts").await?;
    browser.fill("why", "first prices").await?;
    browser.click("Activate now").await?;
    browser.reads("The plugin is live.").await?;
    let live = console.appliance.get("/v1/hooks/biller")?["live"]["chain"][0].clone();
    ensure!(live["plugin"] == "prepaid" && live["policy"] == prices, "{live:#}");
    browser.open_page("/audit").await?;
    browser.reads("first prices").await?;
    console.browser.close().await
}

/// An open page is informed when its session ends for any reason.
#[tokio::test(flavor = "multi_thread")]
async fn an_open_page_ends_with_its_session() -> Result<()> {
    let console = ConsoleFixture::start().await?;
    let browser = &console.browser;
    console.first_login().await?;
    console.add_user("vera", "viewer", VERAS).await?;
    console.log_in("vera", VERAS).await?;
    browser.open_page("/queues").await?;
    browser.reads("Active queue actions").await?;
    let root = AdminClient::root(&console.appliance)?;
    let reply = root.ask("DELETE", "/v1/users/vera", None)?;
    ensure!(reply.status == 204, "{}", reply.text);
    // Without a reload, its live parts end, and the page shows the login.
    let begun = Instant::now();
    while !browser.path().await?.starts_with("/login") {
        ensure!(begun.elapsed() < 2 * behaviour_tests::TIMEOUT, "still at {}", browser.path().await?);
        browser::pause();
    }
    console.browser.close().await
}

/// The pages about the machine, in the appliance image.
#[tokio::test(flavor = "multi_thread")]
async fn the_machine_is_updated_rolled_back_and_reset() -> Result<()> {
    let console = ConsoleFixture::start().await?;
    let browser = &console.browser;
    console.first_login().await?;
    let (good, bad) =
        (console.fixture.folder().join("good.raucb"), console.fixture.folder().join("bad.raucb"));
    // Larger than the in-memory limit of a request.
    std::fs::write(&good, [UPDATE, &vec![b'x'; 40 << 20]].concat())?;
    std::fs::write(&bad, "not an update")?;
    browser.open_page("/maintenance").await?;
    browser.reads("1.0 from slot A").await?;
    browser.screenshot("machine").await?;
    browser.choose_file("update", &bad).await?;
    browser.click("Update and restart").await?;
    browser.reads("signature verification failed").await?;
    ensure!(console.machine.done().is_empty(), "{:?}", console.machine.done());
    browser.open_page("/maintenance").await?;
    browser.choose_file("update", &good).await?;
    browser.click("Update at the next start").await?;
    browser.reads("takes effect at the next start").await?;
    browser.open_page("/maintenance").await?;
    browser.choose_file("update", &good).await?;
    browser.click("Update and restart").await?;
    browser.reads("The machine restarts").await?;
    browser.open_page("/maintenance").await?;
    browser.click("Roll back to 0.9").await?;
    browser.reads("The machine restarts").await?;
    browser.open_page("/maintenance").await?;
    browser.choose("state", "keep").await?;
    browser.tick("sure").await?;
    browser.click("Reset and restart").await?;
    browser.reads("The machine restarts").await?;
    ensure!(
        console.machine.done() == ["update --no-reboot", "update", "rollback", "factory-reset --keep-state"],
        "{:?}",
        console.machine.done()
    );

    console.add_user("vera", "viewer", VERAS).await?;
    console.log_in("vera", VERAS).await?;
    browser.open_page("/maintenance").await?;
    browser.reads("1.0 from slot A").await?;
    ensure!(!browser.words().await?.contains("Factory reset"), "a viewer is offered a reset");
    console.browser.close().await
}

#[tokio::test(flavor = "multi_thread")]
async fn every_page_is_usable_at_desktop_and_phone_width() -> Result<()> {
    let console = ConsoleFixture::start().await?;
    let browser = &console.browser;
    browser.inspect("/login").await?;
    console.first_login().await?;
    let id = console.send("+4915112345678").await?;
    browser.reads("relayed").await?;
    console.break_router()?;
    console.submit_over_api("+4915112345679")?;
    let message = format!("/messages/{id}");
    let live = console.appliance.get("/v1/hooks/router")?["live"]["chain"][0].clone();
    let text = |key: &str| live[key].as_str().unwrap_or_default().to_owned();
    let set_up = format!("/plugins/router/set-up?plugin={}&version={}", text("plugin"), text("version"));
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
        "/plugins/pull",
        "/plugins/router",
        &set_up,
        "/policies",
        "/policies/router",
        "/queues",
        "/quarantine",
        "/search?q=acme",
        "/subscribers",
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
        "/users",
        "/audit",
        "/cluster",
        "/maintenance",
        "/profile",
        "/help",
    ] {
        browser.inspect(path).await?;
    }
    console.browser.close().await
}
