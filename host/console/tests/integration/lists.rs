//! Long lists: pages, searches and exports, with a fake API.

use crate::page_requests::get;
use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use serde_json::Value;
use testkit::fake_api::FakeApi;
use tower::ServiceExt as _;

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
        ("/queues.csv?q=nothing-has-this-name", "queue,links,queued", 0),
        ("/peers.csv", "name,address,state,links-up,links,down-since,waiting,in-flight,blocked-by\r\n", 0),
        ("/accounts.csv", "name,system-id,state,links-up", 0),
        ("/gateways.csv", "name,address,state", 0),
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

#[tokio::test]
async fn peers_and_accounts_are_exported_as_json() {
    let console = console::router(FakeApi::appliance(6, 4).router());
    let read = async |path: &str| -> Vec<Value> {
        let file = get(&console, path, "viewer").await;
        assert_eq!(file.status, StatusCode::OK, "{path}");
        serde_json::from_str(&file.text).unwrap_or_else(|error| panic!("{path}: {error}: {}", file.text))
    };
    let peers = read("/peers.json").await;
    assert_eq!(peers.len(), 6);
    let north = peers.iter().find(|peer| peer["name"] == "north").unwrap();
    assert!(north["links"].is_u64() && north["waiting"].is_u64() && north["address"].is_string(), "{north}");
    // The file contains the same entries as the page.
    let (up, down) = (read("/peers.json?state=up").await, read("/peers.json?state=down").await);
    assert!(!down.is_empty() && up.len() + down.len() == peers.len(), "{up:?} {down:?}");
    assert!(up.iter().all(|peer| peer["state"] == "bound"), "{up:?}");
    assert_eq!(read("/peers.json?q=NORTH").await, std::slice::from_ref(north));
    assert_eq!(read("/accounts.json").await.len(), 4);
    let page = get(&console, "/peers?state=down&q=a", "viewer").await.text;
    assert!(page.contains("href=\"/peers.json?q=a&amp;state=down\" download=\"peers.json\""), "{page}");
    assert_eq!(get(&console, "/peers.json", "").await.status, StatusCode::SEE_OTHER);
}

#[tokio::test]
async fn lists_suggest_names_and_count_states() {
    let console = console::router(FakeApi::appliance(6, 4).router());
    for path in ["/peers", "/accounts", "/queues"] {
        let page = get(&console, path, "viewer").await.text;
        assert!(
            page.contains("list=\"names\"") && page.contains("<datalist id=\"names\"><option value="),
            "{path}: {page}"
        );
        assert!(page.contains("<option value=\"\" selected>any ("), "{path}: {page}");
    }
    let count = |page: &str, label: &str| -> usize {
        let (_, rest) = page.split_once(&format!(">{label} (")).unwrap_or_else(|| panic!("{label}: {page}"));
        rest.split(')').next().unwrap().parse().unwrap()
    };
    let page = get(&console, "/peers", "viewer").await.text;
    assert_eq!(count(&page, "a link is up") + count(&page, "no link is up"), count(&page, "any"));
    let all = get(&console, "/queues", "viewer").await.text;
    assert!(all.contains("/live?of=queues\""), "{all}");
    let stuck = get(&console, "/queues?state=no-link", "viewer").await.text;
    let rows = |page: &str| page.matches("href=\"/messages?peer=").count();
    assert!(rows(&stuck) == count(&all, "no link") && rows(&stuck) < rows(&all), "{stuck}");
    // The live parts and the export are filtered too.
    assert!(stuck.contains("/live?of=queues&amp;id=%3Fstate%3Dno-link"), "{stuck}");
    assert!(stuck.contains("href=\"/queues.csv?state=no-link\""), "{stuck}");
    let none = get(&console, "/queues?q=nothing-has-this-name", "viewer").await.text;
    assert!(none.contains("No matches") && rows(&none) == 0, "{none}");
}
