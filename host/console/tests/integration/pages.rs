//! Tests of all pages with a fake API: content, requests and permissions.

use crate::page_requests::{get, post_form};
use axum::body::Body;
use axum::http::{Request, StatusCode};
use testkit::fake_api::FakeApi;
use tower::ServiceExt as _;

/// All pages, and some with a query.
pub(crate) const PAGES: &[&str] = &[
    "/",
    "/?range=day",
    "/search",
    "/search?q=acme",
    "/search?q=%3Cb%3Equeue-limit",
    "/search?q=%2B49151+12345678",
    "/messages",
    "/messages?number=%2B49151&state=failed&from=2026-11-22T14:38",
    "/messages?live=1&account=acme",
    "/messages/new",
    "/messages/1",
    "/messages/2",
    "/messages/3",
    "/peers",
    "/peers/north",
    "/peers/harbour",
    "/peers/aggregator",
    "/peers/new",
    "/accounts",
    "/accounts/acme",
    "/accounts/new",
    "/tenants",
    "/plugins",
    "/plugins/outdated",
    "/plugins/pull",
    "/plugins/pull?source=carrier&plugin=router",
    "/plugins/router",
    "/plugins/biller",
    "/plugins/router/set-up?plugin=router&version=9be10cc2d877",
    "/policies",
    "/policies/router",
    "/queues",
    "/quarantine",
    "/uncertain",
    "/pools",
    "/pools/support",
    "/gateways",
    "/gateways/unicom",
    "/gateways/new",
    "/networks",
    "/subscribers",
    "/subscribers/msisdn-4915112345678",
    "/tables",
    "/tables?table=tariffs&key=49151",
    "/ledger",
    "/ledger?only=spent",
    "/ledger/acme",
    "/opt-outs",
    "/opt-outs?q=10655",
    "/archive",
    "/configuration",
    "/configuration/versions",
    "/configuration/versions/6",
    "/users",
    "/audit",
    "/cluster",
    "/maintenance",
    "/profile",
    "/help",
    "/help/guide/queues",
    "/help/reference/metrics",
];

#[tokio::test]
async fn every_page_is_complete_and_escaped() {
    let console = console::router(FakeApi::appliance(6, 4).router());
    for path in PAGES {
        let page = get(&console, path, "admin").await;
        assert_eq!(page.status, StatusCode::OK, "{path}: {}", page.text);
        let text = &page.text;
        assert_eq!(text.matches("<h1").count(), 1, "{path} has one head");
        assert!(
            text.contains("class=\"skip\"") && text.contains("<main") && text.ends_with("</html>"),
            "{path}"
        );
        for strange in [
            "<b>ACME",
            "<b>phones",
            "<there>",
            "<for>",
            "<meridian>",
            "<i>acme",
            "<b>Do not",
            "style=\"",
            "onclick",
            "javascript:",
        ] {
            assert!(!text.contains(strange), "{path} has {strange:?} in it");
        }
        assert!(
            !text.contains("(unchanged)\"") && !text.contains("value=\"(unchanged)"),
            "{path} shows a secret's stand-in in a field"
        );
        // The target of every label exists.
        for piece in text.split("<label").skip(1) {
            let tag = piece.split('>').next().unwrap_or_default();
            if let Some(id) = tag.split("for=\"").nth(1).and_then(|rest| rest.split('"').next()) {
                assert!(text.contains(&format!("id=\"{id}\"")), "{path}: label for {id}");
            }
        }
    }
}

#[tokio::test]
async fn tenants_are_shown_with_the_messages_of_the_day_and_suggested_for_users() {
    let console = console::router(FakeApi::appliance(6, 4).router());
    let tenants = get(&console, "/tenants", "viewer").await.text;
    for shown in ["northern-shop", "19\u{202f}998 of 20\u{202f}000", "0.05", "no ledger account", "acme"] {
        assert!(tenants.contains(shown), "{shown} is not in {tenants}");
    }
    let users = get(&console, "/users", "admin").await.text;
    assert_eq!(users.matches("name=\"tenant\"").count(), 2, "a user's and a token's");
    assert_eq!(users.matches("<option value=\"northern-shop\">").count(), 2);
    assert!(get(&console, "/accounts", "viewer").await.text.contains("Name or tenant"));
}

#[tokio::test]
async fn a_viewer_has_pages_without_actions() {
    let console = console::router(FakeApi::appliance(6, 4).router());
    for path in [
        "/",
        "/peers",
        "/peers/north",
        "/accounts/acme",
        "/plugins",
        "/plugins/router",
        "/policies/router",
        "/queues",
        "/messages/3",
        "/configuration",
        "/configuration/versions/6",
        "/maintenance",
        "/quarantine",
        "/uncertain",
        "/gateways/unicom",
        "/networks",
        "/subscribers/imsi-001010000000001",
        "/tables",
        "/ledger/acme",
        "/opt-outs",
    ] {
        let page = get(&console, path, "viewer").await;
        assert_eq!(page.status, StatusCode::OK, "{path}: {}", page.text);
        let forms = page.text.matches("method=\"post\"").count();
        let mine = ["/logout", "/theme", "/partition"]
            .iter()
            .filter(|action| page.text.contains(&format!("action=\"{action}\"")))
            .count();
        let edits = page.text.matches("readonly").count();
        assert!(forms <= mine + edits, "{path} has {forms} forms for a viewer");
        assert!(!page.text.contains("Show the text"), "{path}");
    }
    assert_eq!(get(&console, "/messages/new", "viewer").await.status, StatusCode::FORBIDDEN);
    assert_eq!(get(&console, "/messages/1?body=1", "viewer").await.status, StatusCode::FORBIDDEN);
    let page = post_form(&console, "/messages/2/cancel", "viewer", "").await;
    assert_eq!(page.status, StatusCode::FORBIDDEN);
    assert!(page.text.contains("this user is a viewer"), "{}", page.text);
}

#[tokio::test]
async fn a_subscriber_is_found_retried_and_pinged() {
    let console = console::router(FakeApi::appliance(2, 2).router());
    let location = |path: &'static str| {
        let console = console.clone();
        async move { get(&console, path, "operator").await.location }
    };
    assert_eq!(
        location("/subscribers?number=%2B4915112345678&imsi=").await,
        "/subscribers/msisdn-4915112345678"
    );
    assert_eq!(
        location("/subscribers?number=&imsi=001010000000001").await,
        "/subscribers/imsi-001010000000001"
    );
    let page = get(&console, "/subscribers/imsi-001010000000001", "operator").await.text;
    for words in
        ["absent", "MSC-1", "3 messages", "location update", "/messages?imsi=001010000000001", "/wake"]
    {
        assert!(page.contains(words), "{words}: {page}");
    }
    let woken = post_form(&console, "/subscribers/msisdn-49151/wake", "operator", "").await;
    assert_eq!(woken.location, "/subscribers/msisdn-49151?done=woken");
    let pinged = post_form(&console, "/subscribers/msisdn-49151/ping", "operator", "").await;
    assert_eq!(pinged.location, "/messages/2?done=pinged");
    let nobody = get(&console, "/subscribers/msisdn-404", "operator").await;
    assert_eq!(nobody.status, StatusCode::OK, "links to it stand beside every number");
    assert!(nobody.text.contains("No core network knows this subscriber"), "{}", nobody.text);
}

#[tokio::test]
async fn errors_are_shown_at_their_fields_and_keep_the_input() {
    let console = console::router(FakeApi::appliance(6, 4).router());
    let page =
        post_form(&console, "/peers/north", "admin", "tag=%227%22&address=wrong&links=3&do=save").await;
    assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(
        page.text.contains("has no port")
            && page.text.contains("value=\"wrong\"")
            && page.text.contains("aria-invalid=\"true\""),
        "{}",
        page.text
    );

    let text = "%5Bappliance%5D%0Aname%3D%22x%22%0A%5B%5Blistener%5D%5D%0Aconnections%3D%22wrong%22";
    let page =
        post_form(&console, "/configuration", "admin", &format!("tag=%227%22&do=validate&document={text}"))
            .await;
    assert!(page.text.contains("id=\"line-4\"") && page.text.contains("must be a number"), "{}", page.text);

    assert!(page.text.contains("class=\"new\"") && page.text.contains("id=\"edit\" open"), "{}", page.text);
    let page = post_form(&console, "/configuration", "admin", "tag=%227%22&do=validate&document=a%0Ab").await;
    assert_eq!(page.status, StatusCode::BAD_REQUEST);
    assert!(page.text.contains("<li class=\"invalid\" id=\"line-1\">"), "{}", page.text);

    let page = post_form(&console, "/configuration", "admin", "tag=%226%22&do=apply&document=").await;
    assert_eq!(page.status, StatusCode::PRECONDITION_FAILED);
    assert!(page.text.contains("Changed by another user meanwhile"), "{}", page.text);

    let policy = "plugin=router&expected=7&do=check&policy=a%0D%0Ab%0D%0Ac%0D%0Ad%0D%0Awrong";
    let page = post_form(&console, "/policies/router", "admin", policy).await;
    assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(page.text.contains("<li class=\"invalid\" id=\"line-5\">"), "{}", page.text);
}

#[tokio::test]
async fn actions_redirect_to_a_notice() {
    let console = console::router(FakeApi::appliance(6, 4).router());
    let page =
        post_form(&console, "/peers/north", "admin", "tag=%227%22&address=a%3A1&links=3&do=save").await;
    assert_eq!((page.status, page.location.as_str()), (StatusCode::SEE_OTHER, "/peers/north?done=changed"));
    assert!(get(&console, &page.location, "admin").await.text.contains("Changed and active"));
    assert!(!get(&console, "/peers?done=Call+0900", "admin").await.text.contains("notice good"));
    let sent =
        post_form(&console, "/messages/new", "admin", "account=acme&from=A&to=%2B49&text=x&do=send").await;
    assert_eq!(sent.location, "/messages/2?done=sent");
    let page = post_form(&console, "/users", "admin", "name=x&role=viewer&do=add-token").await;
    assert!(page.text.contains("swy_5up3rs3cr3t"), "{}", page.text);
    let money = "idempotency-key=k&amount=25.50&why=invoice&do=fund";
    assert_eq!(
        post_form(&console, "/ledger/acme", "admin", money).await.location,
        "/ledger/acme?done=funded"
    );
    let money = "idempotency-key=k&amount=999&why=invoice&do=take";
    let refused = post_form(&console, "/ledger/acme", "admin", money).await;
    assert_eq!(refused.status, StatusCode::CONFLICT);
    assert!(refused.text.contains("exceed its limit") && refused.text.contains("value=\"999\""));
    let opt_out = "sender=10655&subscriber=4915112345678&do=go-on";
    assert_eq!(
        post_form(&console, "/opt-outs", "operator", opt_out).await.location,
        "/opt-outs?done=goes-on"
    );
    let found = get(&console, "/tables?table=tariffs&key=49151", "viewer").await.text;
    assert!(found.contains("&lt;north&gt;") && found.contains("(491)"), "{found}");
    let action = "action=suspend&peer=north&do=";
    let preview = post_form(&console, "/queues", "operator", &format!("{action}preview")).await;
    assert!(
        preview.text.contains("It affects 212 messages") && preview.text.contains("value=\"start\""),
        "{}",
        preview.text
    );
    assert_eq!(
        post_form(&console, "/queues", "operator", &format!("{action}start")).await.location,
        "/queues?done=started"
    );
    let checked =
        post_form(&console, "/policies/router", "admin", "plugin=router&do=check&policy=default").await;
    assert!(
        checked.text.contains("981 have the same result") && checked.text.contains("class=\"old\""),
        "{}",
        checked.text
    );
}

#[tokio::test]
async fn a_peer_by_a_plugin_has_a_page() {
    let console = console::router(FakeApi::appliance(6, 4).router());
    let list = get(&console, "/peers", "viewer").await.text;
    assert!(list.contains("href=\"/peers/aggregator\""), "{list}");
    let page = get(&console, "/peers/aggregator", "admin").await.text;
    for words in
        ["http-peer", "3 of 8", "no credit &lt;b&gt;", "Faults of its plugin", "href=\"/plugins/peer\""]
    {
        assert!(page.contains(words), "{words}: {page}");
    }
    assert!(!page.contains("Test the connection"), "{page}");
    assert_eq!(get(&console, "/peers/nobody", "admin").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn the_api_is_reachable_and_unknown_paths_are_pages() {
    let console = console::router(FakeApi::appliance(2, 2).router());
    assert!(get(&console, "/v1/status", "admin").await.text.starts_with('{'));
    assert_eq!(get(&console, "/v1/status", "").await.status, StatusCode::UNAUTHORIZED);
    let nowhere = get(&console, "/nowhere", "admin").await;
    assert_eq!(nowhere.status, StatusCode::NOT_FOUND);
    assert!(nowhere.text.contains("There is no page at this address"), "{}", nowhere.text);
    let gone = get(&console, "/messages/404", "admin").await;
    assert_eq!(gone.status, StatusCode::NOT_FOUND);
    assert!(gone.text.contains("was never accepted"), "{}", gone.text);
}

/// In the fake API, `harbour` is in back-off, and `north` is bound.
#[tokio::test]
async fn a_peer_in_back_off_is_dialled_by_operators() {
    let console = console::router(FakeApi::appliance(6, 4).router());
    let button = "Dial now";
    assert!(get(&console, "/peers/harbour", "operator").await.text.contains(button));
    assert!(!get(&console, "/peers/harbour", "viewer").await.text.contains(button));
    assert!(!get(&console, "/peers/north", "operator").await.text.contains(button));
    let done = post_form(&console, "/peers/harbour/dial", "operator", "").await;
    assert_eq!((done.status, done.location.as_str()), (StatusCode::SEE_OTHER, "/peers/harbour?done=dialled"));
    let page = get(&console, "/peers/harbour?done=dialled", "operator").await;
    assert!(page.text.contains("The peer is being dialled."));
    let refused = post_form(&console, "/gateways/unicom/dial", "operator", "").await;
    assert_eq!(refused.status, StatusCode::NOT_FOUND);
    assert!(refused.text.contains("not a peer or gateway"), "{}", refused.text);
    assert_eq!(post_form(&console, "/peers/harbour/dial", "viewer", "").await.status, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn the_page_of_an_account_lists_its_refused_submissions() {
    let console = console::router(FakeApi::appliance(6, 4).router());
    let page = get(&console, "/accounts/acme", "viewer").await;
    assert!(page.text.contains("Refused submissions") && page.text.contains("rejected: no credit"));
    assert!(!get(&console, "/peers/north", "viewer").await.text.contains("Refused submissions"));
}

#[tokio::test]
async fn messages_behind_a_subscriber_lock_count_once_and_suspended_ones_are_shown() {
    let console = console::router(FakeApi::appliance(6, 4).router());
    let page = get(&console, "/peers/union", "viewer").await;
    assert!(page.text.contains("<dt>Queued</dt><dd>21</dd>"), "{}", page.text);
    let page = get(&console, "/peers/harbour", "viewer").await;
    assert!(page.text.contains("<dt>Suspended</dt><dd>4</dd>"), "{}", page.text);
    let page = get(&console, "/queues", "viewer").await;
    assert!(page.text.contains(">21</span>") && !page.text.contains(">24</span>"), "{}", page.text);
}

/// Generated reference pages are longer: they are read once.
#[tokio::test]
async fn no_page_is_larger_than_150_kilobytes_with_its_font() {
    let console = console::router(FakeApi::appliance(200, 200).router());
    let request = Request::get("/assets/inter.woff2").body(Body::empty()).unwrap();
    let font = console.clone().oneshot(request).await.unwrap();
    assert_eq!(font.headers()["content-type"], "font/woff2");
    let font = axum::body::to_bytes(font.into_body(), 1 << 20).await.unwrap();
    for path in PAGES.iter().filter(|path| !path.starts_with("/help/reference")) {
        let page = get(&console, path, "admin").await;
        let octets = page.text.len() + font.len();
        assert!(octets <= 150_000, "{path} has {octets} octets with the font");
    }
    // The license of the font is part of each copy.
    let license = get(&console, "/assets/inter-LICENSE.txt", "").await;
    assert!(license.text.contains("SIL OPEN FONT LICENSE Version 1.1"), "{}", license.text);
}

/// The targets of a page's links into the manual.
fn help_links(text: &str) -> Vec<&str> {
    let links = text.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next());
    links.filter(|link| link.starts_with("/help")).collect()
}

#[tokio::test]
async fn every_page_of_the_manual_is_shown_and_its_links_lead_somewhere() {
    let console = console::router(FakeApi::appliance(2, 2).router());
    let mut waiting: Vec<String> = PAGES.iter().map(|page| (*page).to_owned()).collect();
    let mut texts = std::collections::BTreeMap::new();
    let mut links = std::collections::BTreeSet::new();
    while let Some(path) = waiting.pop() {
        if texts.contains_key(&path) {
            continue;
        }
        let page = get(&console, &path, "admin").await;
        assert_eq!(page.status, StatusCode::OK, "{path}: {}", page.text);
        if path.starts_with("/help") {
            assert_eq!(page.text.matches("<h1").count(), 1, "{path} has one head");
            assert!(!page.text.contains("style=\"") && !page.text.contains(".md\""), "{path}");
        } else {
            assert!(page.text.contains("Help on this page"), "{path} has no link to its chapter");
        }
        for link in help_links(&page.text) {
            links.insert(link.to_owned());
            waiting.push(link.split('#').next().unwrap_or_default().to_owned());
        }
        texts.insert(path, page.text);
    }
    for link in links {
        if let Some((path, anchor)) = link.split_once('#') {
            assert!(texts[path].contains(&format!(" id=\"{anchor}\"")), "{link}");
        }
    }
    let pages = texts.keys().filter(|path| path.starts_with("/help/")).count();
    assert!(pages >= 30, "only {pages} pages of the manual");
    assert_eq!(get(&console, "/help/guide/nothing", "admin").await.status, StatusCode::NOT_FOUND);
    assert_eq!(get(&console, "/help/adr/README", "admin").await.status, StatusCode::NOT_FOUND);
}
