//! An admin's first day with the appliance, from the login with the printed token to a viewer who is refused, in one go.

use super::{ADAS, Day, VERAS, browser};
use anyhow::{Context, Result, ensure};
use behaviour_tests::POLICY;
use behaviour_tests::appliance::PASSWORD;
use std::time::Instant;

const NUMBER: &str = "+4915112345678";

#[tokio::test(flavor = "multi_thread")]
async fn an_admins_first_day() -> Result<()> {
    let day = Day::unpacked().await?;
    let browser = &day.browser;
    day.first_login().await?;
    browser.picture("day-01-first-login").await?;
    an_account_and_a_peer(&day).await?;
    let id = day.send(NUMBER).await?;
    browser.picture("day-04-a-test-message").await?;
    the_chart_moves(&day).await?;
    its_trace(&day, &id).await?;
    a_router_comes_and_goes(&day).await?;
    a_policy_with_an_error(&day).await?;
    a_change_that_is_undone(&day).await?;
    a_change_that_nobody_confirms(&day).await?;
    a_viewer_is_refused(&day).await?;
    day.browser.close().await
}

async fn an_account_and_a_peer(day: &Day) -> Result<()> {
    let browser = &day.browser;
    browser.go("/accounts").await?;
    browser.reads("None yet").await?;
    browser.press("Add an account").await?;
    browser.shows("#field-name").await?;
    browser.fill("field-name", "acme").await?;
    browser.fill("field-password", PASSWORD).await?;
    browser.fill("why", "our first customer").await?;
    browser.press("Add it").await?;
    browser.reads("Added. It is in use already.").await?;
    browser.picture("day-02-an-account").await?;
    browser.go("/peers").await?;
    browser.press("Add a peer").await?;
    browser.shows("#field-address").await?;
    browser.fill("field-name", "upstream").await?;
    browser.fill("field-address", &day.upstream.to_string()).await?;
    browser.fill("field-system-id", "switchyard").await?;
    browser.fill("field-password", PASSWORD).await?;
    browser.press("Add it").await?;
    browser.reads("Added. It is in use already.").await?;
    browser.press("Test the connection").await?;
    browser.reads("it works").await?;
    browser.picture("day-03-a-peer-that-answers").await
}

/// The overview is opened once; what is sent after that shows on it by itself.
async fn the_chart_moves(day: &Day) -> Result<()> {
    let browser = &day.browser;
    browser.go("/").await?;
    browser.reads("1 since the start").await?;
    browser.mark().await?;
    day.submits("+4915112345679")?;
    browser.reads("2 since the start").await?;
    let begun = Instant::now();
    loop {
        let chart = browser.attribute(".chart svg", "aria-label").await?;
        // A line is drawn, and it is not flat.
        if chart.starts_with("Throughput, now: accepted") && browser.has(".chart polyline.s1").await? {
            break;
        }
        ensure!(begun.elapsed() < 2 * behaviour_tests::PATIENCE, "nothing on the chart: {chart}");
        browser::pause();
    }
    ensure!(browser.is_marked().await?, "the page was loaded anew");
    browser.picture("day-05-the-live-chart").await
}

async fn its_trace(day: &Day, id: &str) -> Result<()> {
    let browser = &day.browser;
    browser.go("/messages").await?;
    browser.fill("number", NUMBER).await?;
    browser.submit("number").await?;
    browser.shows(&format!("a[href='/messages/{id}']")).await?;
    browser.picture("day-06-the-message-found").await?;
    browser.press(id).await?;
    for words in ["relayed", "attempt 1", "prefix-router", "everything upstream"] {
        browser.reads(words).await?;
    }
    browser.picture("day-07-its-trace").await
}

async fn a_router_comes_and_goes(day: &Day) -> Result<()> {
    let browser = &day.browser;
    let live = || -> Result<_> { Ok(day.appliance.get("/v1/hooks/router")?["live"]["chain"][0].clone()) };
    let before = live()?;
    let plugin = before["plugin"].as_str().context("no plugin")?.to_owned();
    // The same component with a custom section more is another version that decides alike.
    let mut component = day.stage.component("prefix_router")?;
    component.extend([0, 5, 4, b'n', b'o', b't', b'e']);
    let path = day.stage.folder().join("another.wasm");
    std::fs::write(&path, component)?;
    browser.go("/plugins").await?;
    browser.fill("name", &plugin).await?;
    browser.choose_file("component", &path).await?;
    browser.press("Upload").await?;
    browser.reads("The version is kept").await?;
    browser.fill("share", "100").await?;
    browser.press("Try it as a canary").await?;
    browser.reads("decides for 100 % of the destinations").await?;
    day.send(NUMBER).await?;
    browser.go("/plugins/router").await?;
    browser.reads("1 question was its own, and it failed at none").await?;
    browser.reads("Side by side").await?;
    browser.picture("day-08-a-canary").await?;
    browser.press("Make it live").await?;
    browser.reads("The candidate is live").await?;
    ensure!(live()?["version"] != before["version"], "the canary is not live");
    browser.press("Roll back to what was live before").await?;
    browser.reads("Rolled back to what was live before").await?;
    ensure!(live()?["version"] == before["version"], "{} is live", live()?["version"]);
    browser.picture("day-09-rolled-back").await
}

async fn a_policy_with_an_error(day: &Day) -> Result<()> {
    let browser = &day.browser;
    browser.go("/policies/router").await?;
    let before = browser.value("policy").await?;
    ensure!(before.trim() == POLICY.trim(), "another policy: {before}");
    browser.put("policy", "[default]\n# one\nlegs = [{ peer = \n").await?;
    browser.press("Apply it").await?;
    browser.reads("This was refused, and nothing was changed").await?;
    browser.shows("#wrong li.wrong#line-3").await?;
    browser.picture("day-10-an-error-at-its-place").await?;
    browser.go("/policies/router").await?;
    ensure!(browser.value("policy").await? == before, "a refused policy is live");
    // Three messages have ended by now: the change is tried on them before anybody applies it.
    let archived = |pump: &serde_json::Value| pump["archived"].as_u64() >= Some(3);
    day.appliance.wait_until(2 * behaviour_tests::PATIENCE, "/v1/archive", archived)?;
    browser.put("policy", &POLICY.replace("everything upstream", "all of it upstream")).await?;
    browser.press("Check it").await?;
    browser.reads("What is different").await?;
    browser.reads("Of the last 3 messages, 3 would go as they went").await?;
    browser.picture("day-11-tried-on-the-last-messages").await?;
    browser.press("Apply it").await?;
    browser.reads("It is in use already").await?;
    day.send(NUMBER).await?;
    browser.reads("all of it upstream").await
}

async fn a_change_that_is_undone(day: &Day) -> Result<()> {
    let browser = &day.browser;
    browser.go("/accounts/new").await?;
    browser.fill("field-name", "mistake").await?;
    browser.fill("field-password", PASSWORD).await?;
    browser.press("Add it").await?;
    browser.reads("Added. It is in use already.").await?;
    browser.go("/configuration/versions").await?;
    // 1 came out of the box, 2 has the account, 3 the peer, 4 the mistake.
    browser.press("Version 3").await?;
    browser.reads("What would change if this one came back").await?;
    browser.picture("day-12-what-would-come-back").await?;
    browser.press("Go back to version 3").await?;
    browser.reads("The configuration is as it was before").await?;
    browser.go("/accounts").await?;
    browser.reads("acme").await?;
    ensure!(!browser.words().await?.contains("mistake"), "the account is still there");
    Ok(())
}

/// Applied until somebody confirms it, and nobody does.
async fn a_change_that_nobody_confirms(day: &Day) -> Result<()> {
    let browser = &day.browser;
    let window = || -> Result<_> {
        Ok(day.appliance.get("/v1/configuration")?["document"]["peer"][0]["window"].clone())
    };
    let before = window()?;
    browser.go("/peers/upstream").await?;
    browser.fill("field-window", "7").await?;
    // The shortest time that the page offers is too long for a test.
    browser.offer("within", "5s").await?;
    browser.press("Apply").await?;
    browser.reads("Changed. It is in use already.").await?;
    ensure!(window()? == 7, "not in force: {}", window()?);
    browser.go("/").await?;
    browser.reads("unless it is confirmed").await?;
    browser.picture("day-13-not-confirmed-yet").await?;
    let begun = Instant::now();
    while window()? != before {
        ensure!(begun.elapsed() < 2 * behaviour_tests::PATIENCE, "it stays: {}", window()?);
        browser::pause();
    }
    // The same with a longer time, taken back by hand.
    browser.go("/peers/upstream").await?;
    browser.fill("field-window", "8").await?;
    browser.choose("within", "10m").await?;
    browser.press("Apply").await?;
    browser.reads("Changed. It is in use already.").await?;
    browser.go("/configuration").await?;
    browser.press("Take it back now").await?;
    browser.reads("Taken back").await?;
    ensure!(window()? == before, "it stays: {}", window()?);
    Ok(())
}

async fn a_viewer_is_refused(day: &Day) -> Result<()> {
    let browser = &day.browser;
    day.add_user("ada", "admin", ADAS).await?;
    day.add_user("vera", "viewer", VERAS).await?;
    day.log_in("ada", ADAS).await?;
    browser.go("/audit").await?;
    browser.reads("/v1/users").await?;
    browser.picture("day-14-the-audit-log").await?;
    day.log_in("vera", VERAS).await?;
    browser.go("/messages").await?;
    ensure!(!browser.words().await?.contains("Send a test message"), "a viewer is offered a test message");
    browser.go("/messages/new").await?;
    browser.reads("Only operators and admins send test messages").await?;
    browser.go("/people").await?;
    browser.reads("This is not allowed").await?;
    browser.picture("day-15-a-viewer-is-refused").await?;
    browser.go("/plugins/router").await?;
    browser.reads("Live").await?;
    ensure!(!browser.has("main form").await?, "a viewer is given forms");
    Ok(())
}
