//! Every page, over an API that only pretends: what is drawn, what is sent, and who may see what.

#![allow(clippy::unwrap_used, reason = "a test that fails is to stop here")]

mod stub;

use axum::Router;
use axum::body::Body;
use axum::http::{Method, Request, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::IntoResponse as _;
use futures_util::StreamExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tower::ServiceExt as _;

struct Shown {
    status: StatusCode,
    place: String,
    cookies: Vec<String>,
    text: String,
}

async fn ask(console: &Router, method: Method, path: &str, role: &str, form: &str) -> Shown {
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
    let (status, place) = (answer.status(), header("location"));
    let cookies = answer
        .headers()
        .get_all(header::SET_COOKIE)
        .iter()
        .map(|one| one.to_str().unwrap().to_owned())
        .collect();
    let text = axum::body::to_bytes(answer.into_body(), 64 << 20).await.unwrap();
    Shown { status, place, cookies, text: String::from_utf8(text.to_vec()).unwrap() }
}

async fn look(console: &Router, path: &str, role: &str) -> Shown {
    ask(console, Method::GET, path, role, "").await
}

/// A form with the word that makes it ours.
async fn send(console: &Router, path: &str, role: &str, form: &str) -> Shown {
    ask(console, Method::POST, path, role, &format!("csrf=stub%2Bcsrf%3D1&{form}")).await
}

const PAGES: &[&str] = &[
    "/",
    "/messages",
    "/messages?number=%2B49151&state=failed&from=2026-11-22T14:38",
    "/messages/new",
    "/messages/1",
    "/messages/2",
    "/messages/3",
    "/peers",
    "/peers/north",
    "/peers/harbour",
    "/peers/new",
    "/accounts",
    "/accounts/acme",
    "/accounts/new",
    "/plugins",
    "/plugins/router",
    "/plugins/biller",
    "/policies",
    "/policies/router",
    "/queues",
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
    "/people",
    "/audit",
    "/maintenance",
    "/own",
];

#[tokio::test]
async fn every_page_is_drawn_whole_and_escapes_what_it_is_told() {
    let console = console::router(stub::api(6, 4));
    for path in PAGES {
        let shown = look(&console, path, "admin").await;
        assert_eq!(shown.status, StatusCode::OK, "{path}: {}", shown.text);
        let text = &shown.text;
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
        // Whatever has a label has an id, and the other way round.
        for piece in text.split("<label").skip(1) {
            let tag = piece.split('>').next().unwrap_or_default();
            if let Some(id) = tag.split("for=\"").nth(1).and_then(|rest| rest.split('"').next()) {
                assert!(text.contains(&format!("id=\"{id}\"")), "{path}: label for {id}");
            }
        }
    }
}

#[tokio::test]
async fn nobody_sees_a_page_without_a_session_and_comes_back_to_it() {
    let console = console::router(stub::api(2, 2));
    for path in PAGES.iter().filter(|path| **path != "/") {
        let shown = look(&console, path, "").await;
        assert_eq!(shown.status, StatusCode::SEE_OTHER, "{path}");
        assert!(shown.place.starts_with("/login?next=%2F"), "{path}: {}", shown.place);
    }
    assert_eq!(look(&console, "/", "").await.place, "/login");
    assert_eq!(look(&console, "/login", "").await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_login_makes_a_session_and_goes_nowhere_else() {
    let console = console::router(stub::api(2, 2));
    let enter = |form: &'static str| ask(&console, Method::POST, "/login", "", form);
    let shown = enter("user=viewer&password=password&next=%2Fpeers").await;
    assert_eq!((shown.status, shown.place.as_str()), (StatusCode::SEE_OTHER, "/peers"));
    assert!(
        shown.cookies.iter().any(|cookie| cookie.starts_with("switchyard-session=viewer")),
        "{:?}",
        shown.cookies
    );
    assert_eq!(enter("token=stub-token&next=%2F%2Fevil.example").await.place, "/");
    let shown = enter("user=viewer&password=%3Cb%3E").await;
    assert_eq!(shown.status, StatusCode::UNAUTHORIZED);
    assert!(
        shown.text.contains("are not right") && !shown.text.contains("<b>") && shown.cookies.is_empty(),
        "{}",
        shown.text
    );
}

#[tokio::test]
async fn a_viewer_sees_the_pages_and_nothing_to_press() {
    let console = console::router(stub::api(6, 4));
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
        "/uncertain",
        "/gateways/unicom",
        "/networks",
        "/subscribers/imsi-001010000000001",
        "/tables",
        "/ledger/acme",
        "/opt-outs",
    ] {
        let shown = look(&console, path, "viewer").await;
        assert_eq!(shown.status, StatusCode::OK, "{path}: {}", shown.text);
        let forms = shown.text.matches("method=\"post\"").count();
        let mine = ["/logout", "/theme"]
            .iter()
            .filter(|action| shown.text.contains(&format!("action=\"{action}\"")))
            .count();
        let edits = shown.text.matches("readonly").count();
        assert!(forms <= mine + edits, "{path} has {forms} forms for a viewer");
        assert!(!shown.text.contains("Show the text"), "{path}");
    }
    assert_eq!(look(&console, "/messages/new", "viewer").await.status, StatusCode::FORBIDDEN);
    assert_eq!(look(&console, "/messages/1?body=1", "viewer").await.status, StatusCode::FORBIDDEN);
    let shown = send(&console, "/messages/2/cancel", "viewer", "").await;
    assert_eq!(shown.status, StatusCode::FORBIDDEN);
    assert!(shown.text.contains("this user is a viewer"), "{}", shown.text);
}

#[tokio::test]
async fn a_subscriber_is_found_woken_and_pinged() {
    let console = console::router(stub::api(2, 2));
    let place = |path: &'static str| {
        let console = console.clone();
        async move { look(&console, path, "operator").await.place }
    };
    assert_eq!(
        place("/subscribers?number=%2B4915112345678&imsi=").await,
        "/subscribers/msisdn-4915112345678"
    );
    assert_eq!(place("/subscribers?number=&imsi=001010000000001").await, "/subscribers/imsi-001010000000001");
    let shown = look(&console, "/subscribers/imsi-001010000000001", "operator").await.text;
    for words in
        ["absent", "MSC-1", "3 messages", "location update", "/messages?imsi=001010000000001", "/wake"]
    {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    let woken = send(&console, "/subscribers/msisdn-49151/wake", "operator", "").await;
    assert_eq!(woken.place, "/subscribers/msisdn-49151?done=woken");
    let pinged = send(&console, "/subscribers/msisdn-49151/ping", "operator", "").await;
    assert_eq!(pinged.place, "/messages/2?done=pinged");
    let nobody = look(&console, "/subscribers/msisdn-404", "operator").await;
    assert_eq!(nobody.status, StatusCode::OK, "links to it stand beside every number");
    assert!(nobody.text.contains("No core network has this subscriber"), "{}", nobody.text);
}

#[tokio::test]
async fn an_accounts_people_are_led_to_their_messages() {
    let console = console::router(stub::api(6, 4));
    assert_eq!(look(&console, "/", "account").await.place, "/messages");
    let shown = look(&console, "/messages", "account").await;
    assert!(!shown.text.contains("href=\"/peers\""), "{}", shown.text);
}

#[tokio::test]
async fn a_form_that_is_not_ours_does_nothing() {
    let console = console::router(stub::api(6, 4));
    let shown = ask(&console, Method::POST, "/messages/2/cancel", "admin", "csrf=guessed").await;
    assert_eq!(shown.status, StatusCode::FORBIDDEN);
    let foreign = Request::post("/messages/2/cancel")
        .header(header::COOKIE, "switchyard-session=admin")
        .header("sec-fetch-site", "cross-site")
        .body(Body::empty())
        .unwrap();
    assert_eq!(console.clone().oneshot(foreign).await.unwrap().status(), StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn a_form_on_another_site_lets_nobody_in_or_out() {
    let console = console::router(stub::api(2, 2));
    let post = |path: &'static str, from: Option<&'static str>| {
        let mut request = Request::post(path)
            .header(header::COOKIE, "switchyard-session=admin")
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
        if let Some(from) = from {
            request = request.header("sec-fetch-site", from);
        }
        let form = "user=viewer&password=password&csrf=stub%2Bcsrf%3D1";
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
async fn what_is_refused_is_shown_at_its_place_and_keeps_what_was_typed() {
    let console = console::router(stub::api(6, 4));
    let shown = send(&console, "/peers/north", "admin", "tag=%227%22&address=wrong&links=3&do=save").await;
    assert_eq!(shown.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(
        shown.text.contains("has no port")
            && shown.text.contains("value=\"wrong\"")
            && shown.text.contains("aria-invalid=\"true\""),
        "{}",
        shown.text
    );

    let text = "{%0A \"listener\": [%0A {%0A \"connections\": \"wrong\"%0A }%0A ]%0A}";
    let shown =
        send(&console, "/configuration", "admin", &format!("tag=%227%22&do=validate&document={text}")).await;
    assert!(
        shown.text.contains("id=\"line-4\"") && shown.text.contains("must be a number"),
        "{}",
        shown.text
    );

    let shown = send(&console, "/configuration", "admin", "tag=%226%22&do=apply&document=%7B%7D").await;
    assert_eq!(shown.status, StatusCode::PRECONDITION_FAILED);
    assert!(shown.text.contains("Somebody was faster"), "{}", shown.text);

    let policy = "plugin=router&expected=7&do=check&policy=a%0D%0Ab%0D%0Ac%0D%0Ad%0D%0Awrong";
    let shown = send(&console, "/policies/router", "admin", policy).await;
    assert_eq!(shown.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(shown.text.contains("<li class=\"wrong\" id=\"line-5\">"), "{}", shown.text);
}

#[tokio::test]
async fn what_is_done_is_told_once_and_by_our_own_words() {
    let console = console::router(stub::api(6, 4));
    let shown = send(&console, "/peers/north", "admin", "tag=%227%22&address=a%3A1&links=3&do=save").await;
    assert_eq!((shown.status, shown.place.as_str()), (StatusCode::SEE_OTHER, "/peers/north?done=changed"));
    assert!(look(&console, &shown.place, "admin").await.text.contains("It is in use already"));
    assert!(!look(&console, "/peers?done=Call+0900", "admin").await.text.contains("notice good"));
    let sent = send(&console, "/messages/new", "admin", "account=acme&from=A&to=%2B49&text=x&do=send").await;
    assert_eq!(sent.place, "/messages/2?done=sent");
    let told = send(&console, "/people", "admin", "name=x&role=viewer&do=add-token").await;
    assert!(told.text.contains("swy_5up3rs3cr3t"), "{}", told.text);
    let money = "key=k&amount=25.50&why=invoice&do=fund";
    assert_eq!(send(&console, "/ledger/acme", "admin", money).await.place, "/ledger/acme?done=funded");
    let money = "key=k&amount=999&why=invoice&do=take";
    let refused = send(&console, "/ledger/acme", "admin", money).await;
    assert_eq!(refused.status, StatusCode::CONFLICT);
    assert!(refused.text.contains("beyond its limit") && refused.text.contains("value=\"999\""));
    let consent = "sender=10655&subscriber=4915112345678&do=go-on";
    assert_eq!(send(&console, "/opt-outs", "operator", consent).await.place, "/opt-outs?done=goes-on");
    let found = look(&console, "/tables?table=tariffs&key=49151", "viewer").await.text;
    assert!(found.contains("&lt;north&gt;") && found.contains("(491)"), "{found}");
    let order = "what=suspend&peer=north&do=";
    let preview = send(&console, "/queues", "operator", &format!("{order}preview")).await;
    assert!(
        preview.text.contains("It would touch 212 messages") && preview.text.contains("Give the order"),
        "{}",
        preview.text
    );
    assert_eq!(
        send(&console, "/queues", "operator", &format!("{order}order")).await.place,
        "/queues?done=ordered"
    );
    let checked = send(&console, "/policies/router", "admin", "plugin=router&do=check&policy=default").await;
    assert!(
        checked.text.contains("981 would go as they went") && checked.text.contains("class=\"old\""),
        "{}",
        checked.text
    );
}

#[tokio::test]
async fn a_large_appliance_is_drawn_in_parts() {
    let console = console::router(stub::api(1_000, 10_000));
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
        let shown = look(&console, path, "admin").await;
        assert_eq!(shown.status, StatusCode::OK, "{path}");
        let rows = shown.text.matches("role=\"rowheader\"").count();
        assert!(
            rows <= 250 && shown.text.len() < 400_000,
            "{path}: {rows} rows, {} octets",
            shown.text.len()
        );
    }
    assert!(look(&console, "/accounts?q=09999", "admin").await.text.contains("account-09999"));
}

#[tokio::test]
async fn the_api_is_below_and_what_is_nowhere_is_a_page() {
    let console = console::router(stub::api(2, 2));
    assert!(look(&console, "/v1/status", "admin").await.text.starts_with('{'));
    assert_eq!(look(&console, "/v1/status", "").await.status, StatusCode::UNAUTHORIZED);
    let nowhere = look(&console, "/nowhere", "admin").await;
    assert_eq!(nowhere.status, StatusCode::NOT_FOUND);
    assert!(nowhere.text.contains("There is no page at this address"), "{}", nowhere.text);
    let gone = look(&console, "/messages/404", "admin").await;
    assert_eq!(gone.status, StatusCode::NOT_FOUND);
    assert!(gone.text.contains("was never accepted here"), "{}", gone.text);
}

#[tokio::test]
async fn a_live_stream_ends_with_its_session_and_with_the_right_to_it() {
    for status in [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN] {
        let ended = Arc::new(AtomicBool::new(false));
        let seen = ended.clone();
        let api = stub::api(2, 2).layer(middleware::from_fn(move |request: Request<Body>, next: Next| {
            let over = seen.load(Ordering::Relaxed);
            async move { if over { status.into_response() } else { next.run(request).await } }
        }));
        let console = console::router(api);
        let request = Request::get("/live?of=queues")
            .header(header::COOKIE, "switchyard-session=admin")
            .body(Body::empty())
            .unwrap();
        let mut body = console.oneshot(request).await.unwrap().into_body().into_data_stream();
        let first = body.next().await.unwrap().unwrap();
        assert!(first.starts_with(b"data:"), "{first:?}");
        ended.store(true, Ordering::Relaxed);
        // Only comments that keep it alive may come before the last word, and nothing after it.
        let rest = tokio::time::timeout(Duration::from_secs(60), body.collect::<Vec<_>>()).await;
        let rest: Vec<_> = rest.unwrap().into_iter().map(Result::unwrap).collect();
        let (last, before) = rest.split_last().unwrap();
        assert!(last.starts_with(b"event: gone") || last.starts_with(b"event:gone"), "{last:?}");
        assert!(before.iter().all(|chunk| chunk.starts_with(b":")), "{before:?}");
    }
}

/// The stub's `harbour` waits to be dialled again, its `north` is bound.
#[tokio::test]
async fn a_peer_that_waits_is_dialled_by_those_who_may() {
    let console = console::router(stub::api(6, 4));
    let button = "Dial now";
    assert!(look(&console, "/peers/harbour", "operator").await.text.contains(button));
    assert!(!look(&console, "/peers/harbour", "viewer").await.text.contains(button));
    assert!(!look(&console, "/peers/north", "operator").await.text.contains(button));
    let done = send(&console, "/peers/harbour/dial", "operator", "").await;
    assert_eq!((done.status, done.place.as_str()), (StatusCode::SEE_OTHER, "/peers/harbour?done=dialled"));
    let shown = look(&console, "/peers/harbour?done=dialled", "operator").await;
    assert!(shown.text.contains("The peer is being dialled."));
    let refused = send(&console, "/gateways/unicom/dial", "operator", "").await;
    assert_eq!(refused.status, StatusCode::NOT_FOUND);
    assert!(refused.text.contains("no gateway that is dialled"), "{}", refused.text);
    assert_eq!(send(&console, "/peers/harbour/dial", "viewer", "").await.status, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn the_page_of_an_account_tells_of_its_refused_submissions() {
    let console = console::router(stub::api(6, 4));
    let shown = look(&console, "/accounts/acme", "viewer").await;
    assert!(shown.text.contains("Refused submissions") && shown.text.contains("rejected: no credit"));
    assert!(!look(&console, "/peers/north", "viewer").await.text.contains("Refused submissions"));
}

/// A page that is left open ends at the login: a reload leads there, with the page as the place to come back to.
#[tokio::test]
async fn a_live_page_without_a_session_is_told_to_load_anew() {
    let console = console::router(stub::api(2, 2));
    let request = Request::get("/live?of=queues").body(Body::empty()).unwrap();
    let answer = console.clone().oneshot(request).await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    assert_eq!(answer.headers()["content-type"], "text/event-stream");
    let body = axum::body::to_bytes(answer.into_body(), 1 << 20).await.unwrap();
    let body = String::from_utf8(body.to_vec()).unwrap();
    assert!(body.starts_with("event: gone") || body.starts_with("event:gone"), "{body:?}");
    let page = look(&console, "/queues", "").await;
    assert_eq!((page.status, page.place.as_str()), (StatusCode::SEE_OTHER, "/login?next=%2Fqueues"));
}

#[tokio::test]
async fn live_parts_come_as_events_that_name_their_place() {
    let console = console::router(stub::api(2, 2));
    for path in [
        "/live?of=overview",
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
        let told: serde_json::Value =
            serde_json::from_str(first.trim().strip_prefix("data:").unwrap().trim()).unwrap();
        assert!(
            told[0]["id"].is_string() && told[0]["html"].as_str().is_some_and(|html| !html.is_empty()),
            "{path}"
        );
    }
}
