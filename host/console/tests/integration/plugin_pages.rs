//! Tests of the pages about plugins and their decisions, with a fake API.

use crate::pages::{get, post_form};
use axum::http::StatusCode;
use testkit::fake_api::FakeApi;

/// The fields of the form of a binding that are always there.
const SETUP: &str = "plugin=router&version=9be10cc2d877&expected=7&position=0&on-fault=reject&memory=16MiB&deadline-ms=20&table-rows=1000&instance=warm&faults=10&fault-window-ms=10000&http-timeout-ms=2000&http-answer=256KiB&kv=0&dns-timeout-ms=1000&table=ported";

#[tokio::test]
async fn a_plugin_is_given_its_policy_and_grants() {
    let api = FakeApi::appliance(2, 2);
    let console = console::router(api.router());
    let path = "/plugins/router/set-up?plugin=router&version=9be10cc2d877";
    assert!(get(&console, "/plugins/router", "admin").await.text.contains(&path.replace('&', "&amp;")));
    assert!(!get(&console, "/plugins/router", "viewer").await.text.contains("set-up"));
    assert_eq!(get(&console, path, "viewer").await.status, StatusCode::FORBIDDEN);
    assert_eq!(
        get(&console, "/plugins/router/set-up?plugin=router&version=0000", "admin").await.status,
        StatusCode::NOT_FOUND
    );
    let page = get(&console, path, "admin").await.text;
    // The live document and limits, the tables of the appliance, the keys of the schema.
    for words in
        ["Where messages go.", "value=\"16MiB\"", "value=\"ported\"", "name of a peer", "Start as a canary"]
    {
        assert!(page.contains(words), "{words}: {page}");
    }
    let checked =
        post_form(&console, "/plugins/router/set-up", "admin", &format!("{SETUP}&policy=a&do=check")).await;
    assert!(checked.text.contains("The plugin starts with this document."), "{}", checked.text);
    let refused =
        post_form(&console, "/plugins/router/set-up", "admin", &format!("{SETUP}&policy=wrong&do=check"))
            .await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(refused.text.contains("must be digits"), "{}", refused.text);
    let wrong = SETUP.replace("deadline-ms=20", "deadline-ms=soon");
    let refused =
        post_form(&console, "/plugins/router/set-up", "admin", &format!("{wrong}&do=activate")).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(
        refused.text.contains("must be a whole number") && refused.text.contains("value=\"soon\""),
        "{}",
        refused.text
    );

    let before = api.requests().len();
    let form = format!("{SETUP}&policy=a%0D%0Ab&why=first&share=2.5&do=canary");
    let started = post_form(&console, "/plugins/router/set-up", "admin", &form).await;
    assert_eq!(started.location, "/plugins/router?done=candidate");
    let requests = api.requests();
    let sent = requests[before..].iter().find(|one| one.line == "POST /v1/hooks/router/candidate").unwrap();
    let sent: serde_json::Value = serde_json::from_str(&sent.body).unwrap();
    assert_eq!(sent["mode"], "canary");
    assert_eq!(sent["share"], 2.5);
    assert_eq!(sent["policy"], "a\nb");
    assert_eq!(sent["why"], "first");
    assert_eq!(sent["grants"]["tables"], serde_json::json!(["ported"]));
    assert_eq!(sent["on-fault"], "reject");

    // For the script: the answer of the API.
    let checked =
        post_form(&console, "/plugins/router/set-up/check", "admin", &format!("{SETUP}&policy=wrong")).await;
    assert_eq!(checked.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(checked.text.contains("\"detail\":\"router refuses its policy"), "{}", checked.text);
}

#[tokio::test]
async fn a_hook_shows_its_chains_side_by_side() {
    let console = console::router(FakeApi::appliance(2, 2).router());
    let page = get(&console, "/plugins/router", "viewer").await.text;
    for words in [
        "Side by side",
        "99.38 %",
        "forward north",
        "Time of a call",
        "no &lt;route&gt; for this prefix",
        "stored",
    ] {
        assert!(page.contains(words), "{words}: {page}");
    }
    let empty = get(&console, "/plugins/biller", "viewer").await.text;
    assert!(empty.contains("This hook has no plugins.") && !empty.contains("Time of a call"), "{empty}");
}

#[tokio::test]
async fn the_attempts_of_a_message_are_side_by_side() {
    let console = console::router(FakeApi::appliance(2, 2).router());
    let page = get(&console, "/messages/1", "viewer").await.text;
    for words in [
        "1 segment for each attempt",
        "0x58 &lt;throttled&gt;",
        "49 ms",
        "7fa90211",
        "DLR: Delivered, error 0",
    ] {
        assert!(page.contains(words), "{words}: {page}");
    }
}
