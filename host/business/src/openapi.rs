//! The OpenAPI document of the JSON interface.

use crate::http_json;
use serde_json::{Map, Value, json};
use std::sync::LazyLock;

static DOCUMENT: LazyLock<Value> = LazyLock::new(build);

/// The OpenAPI 3.1 document.
#[must_use]
pub fn document() -> &'static Value {
    &DOCUMENT
}

fn build() -> Value {
    let (mut paths, mut schemas) = (Map::new(), Map::new());
    let (routes, public_routes) = (http_json::routes(), http_json::public_routes());
    api::openapi::add_routes(&mut paths, &mut schemas, routes.into_openapi(), |_, _, _| {});
    api::openapi::add_routes(&mut paths, &mut schemas, public_routes.into_openapi(), |_, _, operation| {
        operation.insert("security".to_owned(), json!([]));
    });
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Switchyard for business systems",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "The JSON interface of the listener for business systems. Errors are problem documents (RFC 9457).",
        },
        "security": [{ "account": [] }],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "account": { "type": "http", "scheme": "basic", "description": "Name and password of the account." },
            },
            "responses": { "Problem": api::openapi::problem_response() },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::document;
    use testkit::{api_reference, reference_page};

    const INTRODUCTION: &str = "The JSON interface of the listener for business systems; [HTTP and webhooks](../guide/http-and-webhooks.md) describes its use, \
        and the same operations over XML-RPC. `GET /v1/openapi.json` of the listener also describes requests and answers. A request \
        needs the name and the password of an account (HTTP Basic). An error is a problem document (RFC 9457).";

    #[test]
    fn business_api_reference_is_up_to_date() {
        let page = api_reference::page("Business API", "host/business", INTRODUCTION, document());
        reference_page::check("docs/reference/business-api.md", &page);
    }
}
