//! Tests of `docs/reference/http-api.md`, which is generated from the OpenAPI document.

use super::document_ref;
use testkit::{api_reference, reference_page};

const INTRODUCTION: &str = "`GET /v1/openapi.json` also describes requests and answers. A request needs a token \
    (`Authorization: Bearer TOKEN`) or a session; [TLS, users and permissions](../guide/tls-and-users.md) describes both. An error \
    is a problem document (RFC 9457). Business systems have an API of their own: see [Business API](business-api.md).";

fn page() -> String {
    api_reference::page("HTTP API", "host/admin", INTRODUCTION, document_ref())
}

#[test]
fn http_api_reference_is_up_to_date() {
    reference_page::check("docs/reference/http-api.md", &page());
}

#[test]
fn the_reference_has_every_operation() {
    let page = page();
    let paths = document_ref()["paths"].as_object().unwrap();
    let operations: usize = paths.values().map(|item| item.as_object().unwrap().len()).sum();
    assert_eq!(page.matches("\n### `").count(), operations);
    assert!(page.contains("### `GET /v1/messages/{id}`") && page.contains("Permission: `read`."), "{page}");
}
