//! An admin's first day with the appliance, from the login with the printed token to a viewer who is refused, in one test.

use super::{ADAS, ConsoleFixture, VERAS, browser};
use anyhow::{Context, Result, ensure};
use behaviour_tests::POLICY;
use behaviour_tests::test_daemon::PASSWORD;
use std::time::Instant;

const NUMBER: &str = "+4915112345678";

#[tokio::test(flavor = "multi_thread")]
async fn an_admins_first_day() -> Result<()> {
    let console = ConsoleFixture::first_start().await?;
    let browser = &console.browser;
    console.first_login().await?;
    browser.screenshot("day-01-first-login").await?;
    add_account_and_peer(&console).await?;
    let id = console.send(NUMBER).await?;
    browser.screenshot("day-04-a-test-message").await?;
    check_chart(&console).await?;
    check_trace(&console, &id).await?;
    replace_and_roll_back_router(&console).await?;
    edit_invalid_policy(&console).await?;
    revert_change(&console).await?;
    let_change_expire(&console).await?;
    check_viewer(&console).await?;
    console.browser.close().await
}

async fn add_account_and_peer(console: &ConsoleFixture) -> Result<()> {
    let browser = &console.browser;
    browser.open_page("/accounts").await?;
    browser.reads("None yet").await?;
    browser.click("Add an account").await?;
    browser.shows("#field-name").await?;
    browser.fill("field-name", "acme").await?;
    browser.fill("field-password", PASSWORD).await?;
    browser.fill("why", "our first customer").await?;
    browser.click("Add").await?;
    browser.reads("Added and active.").await?;
    browser.screenshot("day-02-an-account").await?;
    browser.open_page("/peers").await?;
    browser.click("Add a peer").await?;
    browser.shows("#field-address").await?;
    browser.fill("field-name", "upstream").await?;
    browser.fill("field-address", &console.upstream.to_string()).await?;
    browser.fill("field-system-id", "switchyard").await?;
    browser.fill("field-password", PASSWORD).await?;
    browser.click("Add").await?;
    browser.reads("Added and active.").await?;
    browser.click("Test the connection").await?;
    browser.reads("passed").await?;
    browser.screenshot("day-03-a-peer-that-answers").await
}

/// The overview is opened once; later traffic appears without a reload.
async fn check_chart(console: &ConsoleFixture) -> Result<()> {
    let browser = &console.browser;
    browser.open_page("/").await?;
    browser.reads("1 since the start").await?;
    browser.mark().await?;
    console.submit_over_api("+4915112345679")?;
    browser.reads("2 since the start").await?;
    let begun = Instant::now();
    loop {
        let chart = browser.attribute(".chart svg", "aria-label").await?;
        // A line is drawn, and it is not flat.
        if chart.starts_with("Throughput, now: accepted") && browser.has(".chart polyline.s1").await? {
            break;
        }
        ensure!(begun.elapsed() < 2 * behaviour_tests::TIMEOUT, "nothing on the chart: {chart}");
        browser::pause();
    }
    ensure!(browser.is_marked().await?, "the page was reloaded");
    browser.screenshot("day-05-the-live-chart").await
}

async fn check_trace(console: &ConsoleFixture, id: &str) -> Result<()> {
    let browser = &console.browser;
    browser.open_page("/messages").await?;
    browser.fill("number", NUMBER).await?;
    browser.submit("number").await?;
    browser.shows(&format!("a[href='/messages/{id}']")).await?;
    browser.screenshot("day-06-the-message-found").await?;
    browser.click(id).await?;
    for words in ["relayed", "attempt 1", "prefix-router", "everything upstream"] {
        browser.reads(words).await?;
    }
    browser.screenshot("day-07-its-trace").await
}

async fn replace_and_roll_back_router(console: &ConsoleFixture) -> Result<()> {
    let browser = &console.browser;
    let live = || -> Result<_> { Ok(console.appliance.get("/v1/hooks/router")?["live"]["chain"][0].clone()) };
    let before = live()?;
    let plugin = before["plugin"].as_str().context("no plugin")?.to_owned();
    // The same component with an additional custom section is another version with the same decisions.
    let mut component = console.fixture.component("prefix_router")?;
    component.extend([0, 5, 4, b'n', b'o', b't', b'e']);
    let path = console.fixture.folder().join("another.wasm");
    std::fs::write(&path, component)?;
    browser.open_page("/plugins").await?;
    browser.fill("name", &plugin).await?;
    browser.choose_file("component", &path).await?;
    browser.click("Upload").await?;
    browser.reads("The version is stored").await?;
    browser.fill("share", "100").await?;
    browser.click("Start as a canary").await?;
    browser.reads("decides for 100 % of the destinations").await?;
    console.send(NUMBER).await?;
    browser.open_page("/plugins/router").await?;
    browser.reads("1 call went to the canary, without faults").await?;
    browser.reads("Side by side").await?;
    browser.screenshot("day-08-a-canary").await?;
    browser.click("Promote").await?;
    browser.reads("The candidate is live").await?;
    ensure!(live()?["version"] != before["version"], "the canary is not live");
    browser.click("Roll back to the previous chain").await?;
    browser.reads("Rolled back to the chain that was live before").await?;
    ensure!(live()?["version"] == before["version"], "{} is live", live()?["version"]);
    browser.screenshot("day-09-rolled-back").await
}

async fn edit_invalid_policy(console: &ConsoleFixture) -> Result<()> {
    let browser = &console.browser;
    browser.open_page("/policies/router").await?;
    let before = browser.value("policy").await?;
    ensure!(before.trim() == POLICY.trim(), "another policy: {before}");
    browser.put("policy", "[default]\n# one\nlegs = [{ peer = \n").await?;
    browser.click("Apply").await?;
    browser.reads("This was refused, and nothing was changed").await?;
    browser.shows("#problems li.invalid#line-3").await?;
    browser.screenshot("day-10-an-error-at-its-place").await?;
    browser.open_page("/policies/router").await?;
    ensure!(browser.value("policy").await? == before, "a refused policy is live");
    // Three messages have ended by now: the change is tried on them before it is applied.
    let archived = |pump: &serde_json::Value| pump["archived"].as_u64() >= Some(3);
    console.appliance.wait_until(2 * behaviour_tests::TIMEOUT, "/v1/archive", archived)?;
    browser.put("policy", &POLICY.replace("everything upstream", "all of it upstream")).await?;
    browser.click("Check").await?;
    browser.reads("Differences").await?;
    browser.reads("Of the last 3 messages, 3 have the same result").await?;
    browser.screenshot("day-11-tried-on-the-last-messages").await?;
    browser.click("Apply").await?;
    browser.reads("Changed and active").await?;
    console.send(NUMBER).await?;
    browser.reads("all of it upstream").await
}

async fn revert_change(console: &ConsoleFixture) -> Result<()> {
    let browser = &console.browser;
    browser.open_page("/accounts/new").await?;
    browser.fill("field-name", "mistake").await?;
    browser.fill("field-password", PASSWORD).await?;
    browser.click("Add").await?;
    browser.reads("Added and active.").await?;
    browser.open_page("/configuration/versions").await?;
    // Version 1 is the default, 2 adds the account, 3 the peer, 4 the mistake.
    browser.click("Version 3").await?;
    browser.reads("Changes of a rollback to this version").await?;
    browser.screenshot("day-12-what-would-come-back").await?;
    browser.click("Roll back to version 3").await?;
    browser.reads("The earlier configuration is active again").await?;
    browser.open_page("/accounts").await?;
    browser.reads("acme").await?;
    ensure!(!browser.words().await?.contains("mistake"), "the account is still there");
    Ok(())
}

/// Applied until confirmed, but never confirmed.
async fn let_change_expire(console: &ConsoleFixture) -> Result<()> {
    let browser = &console.browser;
    let window = || -> Result<_> {
        Ok(console.appliance.get("/v1/configuration")?["document"]["peer"][0]["window"].clone())
    };
    let before = window()?;
    browser.open_page("/peers/upstream").await?;
    browser.fill("field-window", "7").await?;
    // The shortest time on the page is too long for a test.
    browser.offer("within", "5s").await?;
    browser.click("Apply").await?;
    browser.reads("Changed and active.").await?;
    ensure!(window()? == 7, "not in force: {}", window()?);
    browser.open_page("/").await?;
    browser.reads("unless it is confirmed").await?;
    browser.screenshot("day-13-not-confirmed-yet").await?;
    let begun = Instant::now();
    while window()? != before {
        ensure!(begun.elapsed() < 2 * behaviour_tests::TIMEOUT, "it stays: {}", window()?);
        browser::pause();
    }
    // The same with a longer time, reverted manually.
    browser.open_page("/peers/upstream").await?;
    browser.fill("field-window", "8").await?;
    browser.choose("within", "10m").await?;
    browser.click("Apply").await?;
    browser.reads("Changed and active.").await?;
    browser.open_page("/configuration").await?;
    browser.click("Revert now").await?;
    browser.reads("Reverted").await?;
    ensure!(window()? == before, "it stays: {}", window()?);
    Ok(())
}

async fn check_viewer(console: &ConsoleFixture) -> Result<()> {
    let browser = &console.browser;
    console.add_user("ada", "admin", ADAS).await?;
    console.add_user("vera", "viewer", VERAS).await?;
    console.log_in("ada", ADAS).await?;
    browser.open_page("/audit").await?;
    browser.reads("/v1/users").await?;
    browser.screenshot("day-14-the-audit-log").await?;
    console.log_in("vera", VERAS).await?;
    browser.open_page("/messages").await?;
    ensure!(!browser.words().await?.contains("Send a test message"), "a viewer is offered a test message");
    browser.open_page("/messages/new").await?;
    browser.reads("Only operators and admins can send test messages").await?;
    browser.open_page("/users").await?;
    browser.reads("This is not allowed").await?;
    browser.screenshot("day-15-a-viewer-is-refused").await?;
    browser.open_page("/plugins/router").await?;
    browser.reads("Live").await?;
    ensure!(!browser.has("main form").await?, "a viewer sees forms");
    Ok(())
}
