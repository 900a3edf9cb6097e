//! Tests of all pages with a fake API: content, requests and permissions.

use axum::Router;
use axum::body::Body;
use axum::http::{Method, Request, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::IntoResponse as _;
use futures_util::StreamExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use testkit::fake_api::FakeApi;
use tower::ServiceExt as _;

pub(crate) struct PageResponse {
    pub(crate) status: StatusCode,
    pub(crate) location: String,
    cookies: Vec<String>,
    pub(crate) text: String,
}

async fn request(console: &Router, method: Method, path: &str, role: &str, form: &str) -> PageResponse {
    let cookies = format!("switchyard-session={role}");
    let mut request = Request::builder().method(method).uri(path);
    if !role.is_empty() {
        request = request.header(header::COOKIE, cookies);
    }
    if !form.is_empty() {
        request = request.header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
    }
    let answer = console.clone().oneshot(request.body(Body::from(form.to_owned())).unwrap()).await.unwrap();
    let header =
        |name: &str| answer.headers().get(name).map_or("", |value| value.to_str().unwrap()).to_owned();
    if header("content-type").starts_with("text/html") {
        let policy = header("content-security-policy");
        assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{path}: {policy}");
        assert_eq!(header("cache-control"), "no-store", "{path}");
    }
    let (status, location) = (answer.status(), header("location"));
    let cookies = answer
        .headers()
        .get_all(header::SET_COOKIE)
        .iter()
        .map(|one| one.to_str().unwrap().to_owned())
        .collect();
    let text = axum::body::to_bytes(answer.into_body(), 64 << 20).await.unwrap();
    PageResponse { status, location, cookies, text: String::from_utf8(text.to_vec()).unwrap() }
}

pub(crate) async fn get(console: &Router, path: &str, role: &str) -> PageResponse {
    request(console, Method::GET, path, role, "").await
}

/// Sends a form with the CSRF token.
pub(crate) async fn post_form(console: &Router, path: &str, role: &str, form: &str) -> PageResponse {
    request(console, Method::POST, path, role, &format!("csrf=test%2Bcsrf%3D1&{form}")).await
}

const PAGES: &[&str] = &[
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
async fn pages_without_a_session_redirect_to_the_login() {
    let console = console::router(FakeApi::appliance(2, 2).router());
    for path in PAGES.iter().filter(|path| **path != "/") {
        let page = get(&console, path, "").await;
        assert_eq!(page.status, StatusCode::SEE_OTHER, "{path}");
        assert!(page.location.starts_with("/login?next=%2F"), "{path}: {}", page.location);
    }
    assert_eq!(get(&console, "/", "").await.location, "/login");
    assert_eq!(get(&console, "/login", "").await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_login_opens_a_session_and_redirects_locally() {
    let console = console::router(FakeApi::appliance(2, 2).router());
    let enter = |form: &'static str| request(&console, Method::POST, "/login", "", form);
    let page = enter("user=viewer&password=password&next=%2Fpeers").await;
    assert_eq!((page.status, page.location.as_str()), (StatusCode::SEE_OTHER, "/peers"));
    assert!(
        page.cookies.iter().any(|cookie| cookie.starts_with("switchyard-session=viewer")),
        "{:?}",
        page.cookies
    );
    assert_eq!(enter("token=test-token&next=%2F%2Fevil.example").await.location, "/");
    let page = enter("user=viewer&password=%3Cb%3E").await;
    assert_eq!(page.status, StatusCode::UNAUTHORIZED);
    assert!(
        page.text.contains("is not correct") && !page.text.contains("<b>") && page.cookies.is_empty(),
        "{}",
        page.text
    );
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
        let mine = ["/logout", "/theme"]
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
async fn users_of_an_account_are_redirected_to_their_messages() {
    let console = console::router(FakeApi::appliance(6, 4).router());
    assert_eq!(get(&console, "/", "account").await.location, "/messages");
    let page = get(&console, "/messages", "account").await;
    assert!(!page.text.contains("href=\"/peers\""), "{}", page.text);
}

#[tokio::test]
async fn a_form_without_the_csrf_token_is_rejected() {
    let console = console::router(FakeApi::appliance(6, 4).router());
    let page = request(&console, Method::POST, "/messages/2/cancel", "admin", "csrf=guessed").await;
    assert_eq!(page.status, StatusCode::FORBIDDEN);
    let foreign = Request::post("/messages/2/cancel")
        .header(header::COOKIE, "switchyard-session=admin")
        .header("sec-fetch-site", "cross-site")
        .body(Body::empty())
        .unwrap();
    assert_eq!(console.clone().oneshot(foreign).await.unwrap().status(), StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn a_form_on_another_site_is_rejected() {
    let console = console::router(FakeApi::appliance(2, 2).router());
    let post = |path: &'static str, from: Option<&'static str>| {
        let mut request = Request::post(path)
            .header(header::COOKIE, "switchyard-session=admin")
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
        if let Some(from) = from {
            request = request.header("sec-fetch-site", from);
        }
        let form = "user=viewer&password=password&csrf=test%2Bcsrf%3D1";
        let asked = console.clone().oneshot(request.body(Body::from(form)).unwrap());
        async move { asked.await.unwrap() }
    };
    for path in ["/login", "/logout", "/theme", "/messages/2/cancel"] {
        for from in ["cross-site", "same-site", "elsewhere", ""] {
            let refused = post(path, Some(from)).await;
            assert_eq!(refused.status(), StatusCode::FORBIDDEN, "{path} from {from:?}");
            assert!(!refused.headers().contains_key(header::SET_COOKIE), "{path} from {from:?}");
        }
        for from in [Some("same-origin"), Some("none"), None] {
            assert_eq!(post(path, from).await.status(), StatusCode::SEE_OTHER, "{path} from {from:?}");
        }
    }
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
async fn large_lists_are_paginated() {
    let console = console::router(FakeApi::appliance(1_000, 10_000).router());
    for path in [
        "/",
        "/peers",
        "/accounts",
        "/accounts?page=50",
        "/queues",
        "/configuration",
        "/peers?state=down",
        "/ledger",
    ] {
        let page = get(&console, path, "admin").await;
        assert_eq!(page.status, StatusCode::OK, "{path}");
        let rows = page.text.matches("role=\"rowheader\"").count();
        assert!(rows <= 250 && page.text.len() < 400_000, "{path}: {rows} rows, {} octets", page.text.len());
    }
    assert!(get(&console, "/accounts?q=09999", "admin").await.text.contains("account-09999"));
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

#[tokio::test]
async fn a_live_stream_ends_with_its_session_and_permission() {
    for status in [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN] {
        let ended = Arc::new(AtomicBool::new(false));
        let seen = ended.clone();
        let api = FakeApi::appliance(2, 2).router().layer(middleware::from_fn(
            move |request: Request<Body>, next: Next| {
                let over = seen.load(Ordering::Relaxed);
                async move { if over { status.into_response() } else { next.run(request).await } }
            },
        ));
        let console = console::router(api);
        let request = Request::get("/live?of=queues")
            .header(header::COOKIE, "switchyard-session=admin")
            .body(Body::empty())
            .unwrap();
        let mut body = console.oneshot(request).await.unwrap().into_body().into_data_stream();
        let first = body.next().await.unwrap().unwrap();
        assert!(first.starts_with(b"data:"), "{first:?}");
        ended.store(true, Ordering::Relaxed);
        // Only keep-alive comments may precede the last event, and nothing follows it.
        let rest = tokio::time::timeout(Duration::from_secs(60), body.collect::<Vec<_>>()).await;
        let rest: Vec<_> = rest.unwrap().into_iter().map(Result::unwrap).collect();
        let (last, before) = rest.split_last().unwrap();
        assert!(last.starts_with(b"event: reload") || last.starts_with(b"event:reload"), "{last:?}");
        assert!(before.iter().all(|chunk| chunk.starts_with(b":")), "{before:?}");
    }
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

#[tokio::test]
async fn the_expiry_of_a_token_is_shown() {
    let console = console::router(FakeApi::appliance(2, 2).router());
    let page = get(&console, "/users", "admin").await;
    let row =
        page.text.split("<strong>monitoring</strong>").nth(1).and_then(|rest| rest.split("</tr>").next());
    assert!(row.is_some_and(|row| row.contains("<time")), "{}", page.text);
}

/// A live page without a session is told to reload; the reload redirects to the login, with the page as the target.
#[tokio::test]
async fn a_live_page_without_a_session_reloads() {
    let console = console::router(FakeApi::appliance(2, 2).router());
    let request = Request::get("/live?of=queues").body(Body::empty()).unwrap();
    let answer = console.clone().oneshot(request).await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    assert_eq!(answer.headers()["content-type"], "text/event-stream");
    let body = axum::body::to_bytes(answer.into_body(), 1 << 20).await.unwrap();
    let body = String::from_utf8(body.to_vec()).unwrap();
    assert!(body.starts_with("event: reload") || body.starts_with("event:reload"), "{body:?}");
    let page = get(&console, "/queues", "").await;
    assert_eq!((page.status, page.location.as_str()), (StatusCode::SEE_OTHER, "/login?next=%2Fqueues"));
}

#[tokio::test]
async fn live_regions_are_sent_as_events_with_ids() {
    let console = console::router(FakeApi::appliance(2, 2).router());
    for path in [
        "/live?of=overview",
        "/live?of=overview&id=day",
        "/live?of=messages&id=%3Faccount%3Dacme",
        "/live?of=hook&id=router",
        "/live?of=peer&id=north",
        "/live?of=gateway&id=unicom",
        "/live?of=account&id=acme",
        "/live?of=queues",
        "/live?of=message&id=2",
        "/live?of=networks",
    ] {
        let request = Request::get(path)
            .header(header::COOKIE, "switchyard-session=admin")
            .body(Body::empty())
            .unwrap();
        let answer = console.clone().oneshot(request).await.unwrap();
        assert_eq!(answer.headers()["content-type"], "text/event-stream", "{path}");
        let mut body = answer.into_body().into_data_stream();
        let first = futures_util::StreamExt::next(&mut body).await.unwrap().unwrap();
        let first = String::from_utf8(first.to_vec()).unwrap();
        let page: serde_json::Value =
            serde_json::from_str(first.trim().strip_prefix("data:").unwrap().trim()).unwrap();
        assert!(
            page[0]["id"].is_string() && page[0]["html"].as_str().is_some_and(|html| !html.is_empty()),
            "{path}"
        );
    }
}

#[tokio::test]
async fn the_search_finds_names_numbers_keys_and_pages() {
    let api = FakeApi::appliance(6, 4);
    let console = console::router(api.router());
    for (query, link) in [
        ("ACM", "/accounts/acme"),
        ("harbour", "/peers/harbour"),
        ("router", "/plugins/router"),
        ("support", "/pools/support"),
        ("tariffs", "/tables?table=%3Cb%3Etariffs"),
        ("queue-limit", "/help/reference/configuration#account"),
        ("number pools", "/pools"),
        ("drain mode", "/help/guide/queues#drain-mode"),
        ("2", "/messages/2"),
        ("%2B49 151 12345678", "/messages?number=4915112345678"),
    ] {
        let page = get(&console, &format!("/search?q={}", query.replace(' ', "+")), "admin").await;
        assert!(page.text.contains(&format!("href=\"{link}")), "{query}: {}", page.text);
    }
    let page = get(&console, "/search?q=nothing-has-this-name", "admin").await;
    assert!(page.text.contains("No results"), "{}", page.text);

    // Requests that the user may not send would be in the audit log.
    let before = api.requests().len();
    get(&console, "/search?q=acme", "account").await;
    let asked: Vec<String> = api.requests()[before..].iter().map(|request| request.line.clone()).collect();
    assert_eq!(asked, ["GET /v1/whoami"]);
}

#[tokio::test]
async fn an_export_has_all_messages_of_a_search() {
    let console = console::router(FakeApi::appliance(2, 2).router());
    let request = Request::get("/messages.csv?account=acme")
        .header(header::COOKIE, "switchyard-session=admin")
        .body(Body::empty())
        .unwrap();
    let answer = console.clone().oneshot(request).await.unwrap();
    assert_eq!(answer.headers()["content-type"], "text/csv; charset=utf-8");
    let body = axum::body::to_bytes(answer.into_body(), 64 << 20).await.unwrap();
    let text = String::from_utf8(body.to_vec()).unwrap();
    assert!(text.starts_with("id,accepted,state,from,to,account,peer,octets\r\n"), "{text}");
    assert!(text.lines().count() > 1 && text.lines().all(|line| line.matches(',').count() >= 7), "{text}");
}

/// Generated reference pages are longer: they are read once.
#[tokio::test]
async fn no_page_is_larger_than_150_kilobytes() {
    let console = console::router(FakeApi::appliance(200, 200).router());
    for path in PAGES.iter().filter(|path| !path.starts_with("/help/reference")) {
        let page = get(&console, path, "admin").await;
        assert!(page.text.len() <= 150_000, "{path} has {} octets", page.text.len());
    }
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
        page.text.contains("&lt;other&gt;: the registry wants") && page.text.contains("name=\"digest\""),
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

#[tokio::test]
async fn lists_are_exported_as_they_are_filtered() {
    let console = console::router(FakeApi::appliance(6, 4).router());
    for (path, head, rows) in [
        ("/ledger.csv", "account,balance,reserved,captured,funded,credit\r\ndemo,-5.00,1.25,", 4),
        ("/ledger.csv?only=spent", "account,balance", 1),
        (
            "/pools.csv",
            "pool,strategy,numbers,ready,active,down,acquired,none-available,expired\r\nsupport,",
            1,
        ),
        ("/pools.csv?q=other", "pool,strategy", 0),
        ("/queues.csv", "queue,links,queued", 0),
    ] {
        let file = get(&console, path, "viewer").await;
        assert_eq!(file.status, StatusCode::OK, "{path}");
        assert!(file.text.starts_with(head), "{path}: {}", file.text);
        if rows > 0 || path.contains("other") {
            assert_eq!(file.text.lines().count(), rows + 1, "{path}: {}", file.text);
        }
    }
    let page = get(&console, "/pools/support?state=idle%2Bup", "viewer").await.text;
    assert!(page.contains("href=\"/pools/support/numbers.csv?state=idle%2Bup\""), "{page}");
    assert_eq!(get(&console, "/ledger.csv", "").await.status, StatusCode::SEE_OTHER);
}
