//! The editor of policy documents and of the configuration, and the playground.

use super::ConsoleFixture;
use anyhow::{Result, ensure};
use behaviour_tests::bind;
use serde_json::json;

/// Keys of WebDriver.
const ENTER: &str = "\u{e007}";
const TAB: &str = "\u{e004}";

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_is_completed_checked_and_tried() -> Result<()> {
    let console = ConsoleFixture::start().await?;
    let browser = &console.browser;
    console.first_login().await?;
    browser.open_page("/policies/router").await?;
    // The schema is loaded.
    browser.shows("#policy[data-ready]").await?;

    browser.put("policy", "[default]\nlegs = [{ peer = \"").await?;
    browser.append("policy", "ups").await?;
    browser.shows("#completions:not([hidden]) li[aria-selected='true']").await?;
    browser.screenshot("policy-01-a-peer-is-completed").await?;
    browser.append("policy", ENTER).await?;
    let value = browser.value("policy").await?;
    ensure!(value == "[default]\nlegs = [{ peer = \"upstream", "{value:?}");

    browser.put("policy", "[default]\n").await?;
    browser.append("policy", "rej").await?;
    browser.shows("#completions:not([hidden]) li").await?;
    browser.append("policy", TAB).await?;
    browser.append("policy", "pro").await?;
    browser.shows("#completions:not([hidden]) li").await?;
    browser.append("policy", TAB).await?;
    let value = browser.value("policy").await?;
    ensure!(value == "[default]\nreject = \"prohibited\"", "{value:?}");

    // Quoted and dotted keys are completed, too.
    for (written, typed, expected) in [
        ("[default]\n", "\"rej", "[default]\n\"reject\" = "),
        ("default.", "rej", "default.reject = "),
        ("\"default\".", "'rej", "\"default\".'reject' = "),
    ] {
        browser.put("policy", written).await?;
        browser.append("policy", typed).await?;
        browser.shows("#completions:not([hidden]) li[aria-selected='true']").await?;
        browser.append("policy", TAB).await?;
        let value = browser.value("policy").await?;
        ensure!(value == expected, "{value:?}");
    }

    // The plugin checks the document while it is edited.
    browser.put("policy", "[default]\nhome = tr").await?;
    browser.append("policy", "x").await?;
    browser.reads("line 2, column 8").await?;
    browser.shows(".underline:not([hidden])").await?;
    browser.screenshot("policy-02-an-error-is-underlined").await?;
    browser.put("policy", "[default]\nlegs = [{ peer = \"nowhere\" }]").await?;
    browser.append("policy", " ").await?;
    browser.reads("Not in the appliance: peer nowhere").await?;

    browser.put("policy", "[default]\nreject = \"prohibited\"\n").await?;
    browser.fill("try-account", "acme").await?;
    browser.fill("try-to", "+4915112345678").await?;
    browser.click("Try this message").await?;
    browser.reads("1 has a different decision").await?;
    browser.reads("reject: prohibited").await?;
    browser.screenshot("policy-03-the-playground").await?;
    ensure!(browser.value("policy").await?.contains("prohibited"), "the document is lost");
    // Nothing has become live.
    let live = console.appliance.get("/v1/hooks/router")?["live"].to_string();
    ensure!(live.contains("everything upstream"), "{live}");
    console.browser.close().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_of_lines_is_completed() -> Result<()> {
    let console = ConsoleFixture::start().await?;
    let browser = &console.browser;
    // The schema of the template for routers; any router will do.
    let schema = std::fs::read_to_string(workspace::root().join("plugins/examples/policy.schema.json"))?;
    let component = policy_schema::embed(&console.fixture.component("test_moody_router")?, &schema)?;
    bind(&console.appliance, "router", "lines", &component, "ok upstream", &json!({}))?;
    console.first_login().await?;
    browser.open_page("/policies/router").await?;
    browser.shows("#policy[data-ready]").await?;
    for (written, typed, expected) in [
        ("# Routes\n", "ro", "# Routes\nroute "),
        ("route 86 ", "ups", "route 86 upstream"),
        ("reject 900\nsender ACME ", "ups", "reject 900\nsender ACME upstream"),
    ] {
        browser.put("policy", written).await?;
        browser.append("policy", typed).await?;
        browser.shows("#completions:not([hidden]) li[aria-selected='true']").await?;
        browser.append("policy", TAB).await?;
        let value = browser.value("policy").await?;
        ensure!(value == expected, "{value:?}");
    }
    console.browser.close().await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_configuration_is_completed_and_checked() -> Result<()> {
    let console = ConsoleFixture::start().await?;
    let browser = &console.browser;
    console.first_login().await?;
    browser.open_page("/configuration").await?;
    browser.click("Edit the document").await?;
    browser.shows("#document[data-ready]").await?;
    let document = browser.value("document").await?;
    // Tables, keys, values, names of the appliance, and names that only this text has.
    for (written, typed, expected) in [
        ("[arch", "i", "[archive"),
        ("[[peer]]\n", "default-acc", "[[peer]]\ndefault-account = "),
        ("[[peer]]\nuncertain = \"", "que", "[[peer]]\nuncertain = \"query"),
        ("[[peer]]\ndlrs = ", "fal", "[[peer]]\ndlrs = false"),
        ("[home]\npeer = \"", "upst", "[home]\npeer = \"upstream"),
        ("[[cdr]]\naccounts = [\"", "acm", "[[cdr]]\naccounts = [\"acme"),
        (
            "[[account]]\nname = \"fresh\"\n[[peer]]\ndefault-account = \"",
            "fre",
            "[[account]]\nname = \"fresh\"\n[[peer]]\ndefault-account = \"fresh",
        ),
    ] {
        browser.put("document", written).await?;
        browser.append("document", typed).await?;
        browser.shows("#completions:not([hidden]) li[aria-selected='true']").await?;
        browser.append("document", TAB).await?;
        let value = browser.value("document").await?;
        ensure!(value == expected, "{value:?}");
    }
    browser.screenshot("configuration-01-a-name-is-completed").await?;

    // The daemon checks the document while it is edited, and nothing is stored.
    browser.put("document", "[archive]\nurl = ").await?;
    browser.append("document", "x").await?;
    browser.reads("line 2").await?;
    browser.shows(".underline:not([hidden])").await?;
    browser.put("document", &format!("{document}\n[attention]\nqueue-agee = \"1m\"\n")).await?;
    browser.append("document", " ").await?;
    browser.reads("/attention/queue-agee").await?;
    browser.screenshot("configuration-02-a-problem-is-underlined").await?;
    browser.put("document", &document).await?;
    browser.append("document", " ").await?;
    browser.shows("#document-problem.muted").await?;
    ensure!(
        console.appliance.get("/v1/configuration")?["version"] == 1,
        "a check has changed the configuration"
    );
    console.browser.close().await
}
