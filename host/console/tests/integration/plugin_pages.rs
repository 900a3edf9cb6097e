//! Tests of the pages about plugins and their decisions, with a fake API.

use crate::page_requests::{get, post_form};
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

#[tokio::test]
async fn a_policy_is_tried_before_it_is_applied() {
    let console = console::router(FakeApi::appliance(6, 4).router());
    let form = "plugin=router&expected=7&policy=default&try-account=acme&try-to=%2B4917&do=";
    let page = post_form(&console, "/policies/router", "operator", &format!("{form}try-message")).await;
    assert_eq!(page.status, StatusCode::OK);
    for words in [
        "1 has a different decision",
        "acme: ACME to +4917",
        "forward: harbour",
        "forward: north",
        "&lt;cheapest&gt;",
        "cost 0.012, 13 µs",
        "peer harbour: 1 link, 7 queued",
        // The input is kept.
        "value=\"+4917\"",
    ] {
        assert!(page.text.contains(words), "{words}: {}", page.text);
    }
    let page = post_form(&console, "/policies/router", "operator", &format!("{form}try-last")).await;
    assert!(page.text.contains("href=\"/messages/1\""), "{}", page.text);
    let page =
        post_form(&console, "/policies/router", "operator", "plugin=router&policy=a&do=try-message").await;
    assert_eq!(page.status, StatusCode::BAD_REQUEST);
    let page = post_form(&console, "/policies/router", "admin", &format!("{form}make-case")).await;
    assert!(page.text.contains("[[case]]\nname = &quot;acme to &lt;491&gt;&quot;"), "{}", page.text);
    assert!(
        page.text.contains("value=\"+4917\"") && page.text.contains("value=\"make-case\""),
        "{}",
        page.text
    );
    let wrong = "plugin=router&policy=a%0Ab%0Ac%0Ad%0Awrong&do=try-last";
    let page = post_form(&console, "/policies/router", "operator", wrong).await;
    assert!(page.text.contains("<li class=\"invalid\" id=\"line-5\">"), "{}", page.text);
    let shown = get(&console, "/policies/router", "viewer").await.text;
    assert!(!shown.contains("try-last") && shown.contains("readonly"), "{shown}");
}

#[tokio::test]
async fn calls_of_plugins_about_a_message_are_made_cases() {
    let console = console::router(FakeApi::appliance(6, 4).router());
    let page = get(&console, "/messages/1", "admin").await.text;
    assert!(page.contains("action=\"/messages/1/case\"") && page.contains("Make it a case"), "{page}");
    let waiting = get(&console, "/messages/2", "admin").await.text;
    assert!(!waiting.contains("/messages/2/case"), "{waiting}");
    // A case has the text.
    let masked = get(&console, "/messages/1", "viewer").await.text;
    assert!(!masked.contains("Make it a case"), "{masked}");
    let asked = post_form(&console, "/messages/1/ask", "operator", "hook=router").await;
    for words in ["At the time", "forward: north (rank 0, weight 1); harbour", "1 link, 7 queued", "13 µs"] {
        assert!(asked.text.contains(words), "{words}: {}", asked.text);
    }
    let operators = get(&console, "/messages/1", "operator").await.text;
    let playground = "href=\"/policies/router?try-id=1#playground\"";
    assert!(operators.contains(playground) && !operators.contains("Make it a case"), "{operators}");
    let policy = get(&console, "/policies/router?try-id=1", "operator").await.text;
    assert!(policy.contains("name=\"try-id\" value=\"1\""), "{policy}");
    let made = post_form(&console, "/messages/1/case", "admin", "hook=router").await;
    assert!(made.text.contains("[[case]]\nname = &quot;acme to &lt;491&gt;&quot;"), "{}", made.text);
}

#[tokio::test]
async fn outdated_plugins_are_pulled_as_they_are_shown() {
    let console = console::router(FakeApi::appliance(2, 2).router());
    assert!(get(&console, "/plugins", "admin").await.text.contains("href=\"/plugins/outdated\""));
    let page = get(&console, "/plugins/outdated", "admin").await.text;
    let digest = format!("sha256:{}", "1e".repeat(32));
    for expected in [
        "carrier/router:1.4",
        "<form method=\"post\" action=\"/plugins/pull\">",
        "name=\"tag\" value=\"1.4\"",
        &format!("name=\"digest\" value=\"{digest}\""),
        "name=\"name\" value=\"router\"",
    ] {
        assert!(page.contains(expected), "{expected}: {page}");
    }
    let form = format!("source=carrier&plugin=router&tag=1.4&name=router&digest={digest}");
    let pulled = post_form(&console, "/plugins/pull", "admin", &form).await;
    assert_eq!(pulled.status, StatusCode::SEE_OTHER, "{}", pulled.text);
}

#[tokio::test]
async fn a_plugin_is_pulled_from_a_source() {
    let console = console::router(FakeApi::appliance(2, 2).router());
    let plugins = get(&console, "/plugins", "admin").await.text;
    assert!(
        plugins.contains("href=\"/plugins/pull\"") && plugins.contains("carrier/router:1.4"),
        "{plugins}"
    );
    assert!(
        plugins.contains("/v1/plugins/router/4f0c2d91aa17/sbom\" download=\"router.sbom.json\""),
        "{plugins}"
    );
    let first = get(&console, "/plugins/pull", "admin").await.text;
    assert!(first.contains("carrier: oci://registry.example/plugins"), "{first}");
    assert!(!first.contains("name=\"tag\""), "{first}");
    // The newest tag is offered first.
    let page = get(&console, "/plugins/pull?source=carrier&plugin=router", "admin").await;
    let options: Vec<_> = page.text.match_indices("<option value=\"1.").map(|(_, found)| found).collect();
    assert_eq!((page.status, options.len()), (StatusCode::OK, 2), "{}", page.text);
    assert!(page.text.find("\"1.5\"") < page.text.find("\"1.4\""), "{}", page.text);
    // Without a list of tags, a digest can be given.
    let page = get(&console, "/plugins/pull?source=carrier&plugin=other", "admin").await;
    assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(
        page.text.contains("&lt;other&gt;: the registry requires") && page.text.contains("name=\"digest\""),
        "{}",
        page.text
    );

    let pulled = post_form(&console, "/plugins/pull", "admin", "source=carrier&plugin=router&tag=1.4").await;
    assert_eq!(pulled.status, StatusCode::SEE_OTHER, "{}", pulled.text);
    let refused = post_form(&console, "/plugins/pull", "admin", "source=carrier&plugin=router&tag=2.0").await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(
        refused.text.contains("&lt;blob&gt; is damaged") && refused.text.contains("value=\"router\""),
        "{}",
        refused.text
    );
}

#[tokio::test]
async fn a_fault_is_made_a_case() {
    let console = console::router(FakeApi::appliance(2, 2).router());
    let hook = get(&console, "/plugins/router", "admin").await;
    let path = "/plugins/router/faults/61000/case";
    assert!(hook.text.contains(&format!("href=\"{path}\"")), "{}", hook.text);
    let page = get(&console, path, "admin").await;
    assert_eq!(page.status, StatusCode::OK);
    assert!(page.text.contains("[[case]]") && page.text.contains("&lt;fault&gt;"), "{}", page.text);
    assert!(page.text.contains("href=\"/plugins/router/faults/61000/case.toml\""), "{}", page.text);
    let file = get(&console, "/plugins/router/faults/61000/case.toml", "admin").await;
    assert_eq!((file.status, &*file.text), (StatusCode::OK, "\n# A case.\n[[case]]\nname = \"<fault>\"\n"));
    for gone in ["/plugins/router/faults/2/case", "/plugins/router/faults/2/case.toml"] {
        let page = get(&console, gone, "admin").await;
        assert_eq!(page.status, StatusCode::NOT_FOUND, "{gone}");
        assert!(page.text.contains("not kept any more"), "{}", page.text);
    }
}
