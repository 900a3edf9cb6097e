//! Sessions and permissions of the console, and forms that other sites send.

use crate::page_requests::{get, post_form, request};
use crate::pages::PAGES;
use axum::body::Body;
use axum::http::{Method, Request, StatusCode, header};
use testkit::fake_api::FakeApi;
use tower::ServiceExt as _;

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
    for path in ["/login", "/logout", "/theme", "/partition", "/messages/2/cancel"] {
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
async fn the_expiry_of_a_token_is_shown() {
    let console = console::router(FakeApi::appliance(2, 2).router());
    let page = get(&console, "/users", "admin").await;
    let row =
        page.text.split("<strong>monitoring</strong>").nth(1).and_then(|rest| rest.split("</tr>").next());
    assert!(row.is_some_and(|row| row.contains("<time")), "{}", page.text);
}

#[tokio::test]
async fn a_partition_of_the_cluster_is_chosen() {
    let api = FakeApi::appliance(2, 2);
    let console = console::router(api.router());
    let page = get(&console, "/queues", "viewer").await;
    assert!(
        page.text.contains("<option value=\"0\" selected>0</option><option value=\"1\">1</option>"),
        "{}",
        page.text
    );
    let chosen = post_form(&console, "/partition", "viewer", "partition=1&back=/queues").await;
    assert_eq!((chosen.status, &*chosen.location), (StatusCode::SEE_OTHER, "/queues"));
    assert!(chosen.cookies[0].starts_with("switchyard-partition=1;"), "{:?}", chosen.cookies);
    // A partition that there is not is not asked, nor one of which the user has no choice.
    for (cookie, role, expected) in
        [("1", "viewer", Some("1")), ("7", "viewer", Some("0")), ("1", "account", None)]
    {
        let before = api.requests().len();
        let request = Request::get("/messages")
            .header(header::COOKIE, format!("switchyard-session={role}; switchyard-partition={cookie}"));
        let page = console.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
        assert_eq!(page.status(), StatusCode::OK, "{cookie} {role}");
        let asked = api.requests().split_off(before);
        let search = asked.iter().find(|request| request.line.starts_with("GET /v1/messages")).unwrap();
        let named = search.headers.iter().find(|(name, _)| name == "partition");
        assert_eq!(named.map(|(_, value)| value.as_str()), expected, "{cookie} {role}");
    }
    for partition in ["all", "300", "-1", ""] {
        let form = format!("partition={partition}&back=/");
        let refused = post_form(&console, "/partition", "viewer", &form).await;
        assert!(refused.cookies.is_empty(), "{partition}: {:?}", refused.cookies);
    }
}
