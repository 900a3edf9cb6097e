//! The OpenAPI document of the JSON interface.

use serde_json::{Value, json};

/// The OpenAPI 3.1 document.
#[must_use]
pub fn document() -> Value {
    let text = json!({ "type": "string" });
    let problem = json!({ "$ref": "#/components/responses/Problem" });
    let answers = |description: &str, schema: Value| json!({ "description": description, "content": { "application/json": { "schema": schema } } });
    let body = |schema: &str| {
        let schema = json!({ "$ref": format!("#/components/schemas/{schema}") });
        json!({ "required": true, "content": { "application/json": { "schema": schema } } })
    };
    let state = json!({ "$ref": "#/components/schemas/State" });
    json!({
        "openapi": "3.1.0",
        "info": { "title": "Switchyard for business systems", "version": env!("CARGO_PKG_VERSION") },
        "security": [{ "account": [] }],
        "paths": {
            "/v1/messages": { "post": {
                "summary": "Submits one message, or {messages: [...]}. Answered when all messages are durable. If one message is malformed, all are refused.",
                "parameters": [{ "name": "Idempotency-Key", "in": "header", "schema": text,
                    "description": "A repeated call with the same key within a day returns the first answer." }],
                "requestBody": body("Submission"),
                "responses": { "202": answers("One result per number, in the order of the numbers.", json!({ "type": "object",
                    "properties": { "messages": { "type": "array", "items": { "$ref": "#/components/schemas/Result" } } } })),
                    "default": problem }
            } },
            "/v1/messages/{id}": { "get": {
                "summary": "The state of one message.",
                "parameters": [{ "name": "id", "in": "path", "required": true, "schema": text }],
                "responses": { "200": answers("The state of the message.", state), "default": problem }
            } },
            "/v1/messages/states": { "post": {
                "summary": "The states of several messages. Body: {ids: [...]}.",
                "requestBody": body("Ids"),
                "responses": { "200": answers("The states, in the order of the ids.", json!({ "type": "object" })), "default": problem }
            } },
            "/v1/inbox": { "get": {
                "summary": "Replies and DLRs that were not pushed, under a lease.",
                "parameters": [
                    { "name": "max", "in": "query", "schema": { "type": "integer", "minimum": 1, "maximum": 1000 } },
                    { "name": "wait", "in": "query", "schema": { "type": "integer", "minimum": 0, "maximum": 60 },
                        "description": "Seconds to wait for the first item." },
                    { "name": "acknowledge", "in": "query", "schema": text, "description": "A batch to acknowledge first." }
                ],
                "responses": { "200": answers("A batch of items.", json!({ "type": "object" })), "default": problem }
            } },
            "/v1/inbox/acknowledge": { "post": {
                "summary": "Acknowledges a batch: {batch}, or only some of its items: {batch, ids}.",
                "requestBody": body("Acknowledgement"),
                "responses": { "200": answers("The number of acknowledged items.", json!({ "type": "object" })), "default": problem }
            } },
            "/v1/openapi.json": { "get": {
                "summary": "This document.", "security": [],
                "responses": { "200": answers("The document.", json!({ "type": "object" })) }
            } }
        },
        "components": {
            "securitySchemes": { "account": { "type": "http", "scheme": "basic" } },
            "schemas": {
                "Message": { "type": "object", "additionalProperties": false, "required": ["to"], "properties": {
                    "from": { "type": "string", "description": "At most 20 digits, or 11 ASCII characters. Default: the account's default source." },
                    "to": { "oneOf": [text, { "type": "array", "items": text }], "description": "3 to 20 digits, with or without +." },
                    "text": text,
                    "octets": { "type": "string", "description": "Body octets in hexadecimal, instead of text." },
                    "coding": { "enum": ["auto", "ascii", "gsm", "ucs2", "gbk", "binary"] },
                    "udh": { "type": "string", "description": "A user data header in hexadecimal, including its length octet." },
                    "priority": { "type": "integer", "minimum": 0, "maximum": 3 },
                    "validity": { "type": "integer", "minimum": 1, "description": "Seconds." },
                    "schedule": { "type": "string", "format": "date-time" },
                    "dlr": { "enum": ["none", "final", "failure", "all"] },
                    "service_type": { "type": "string", "maxLength": 5 },
                    "reference": { "type": "string", "maxLength": 100, "description": "Returned in DLRs." },
                    "sgip": { "type": "object", "description": "charge_number, corp_id, service_type, fee_type, fee_value, given_value, agent_flag, mo_related, priority, link_id; report_flag 3 (fee record), the other values follow from dlr." }
                } },
                "Submission": { "oneOf": [ { "$ref": "#/components/schemas/Message" },
                    { "type": "object", "additionalProperties": false, "required": ["messages"], "properties": {
                        "messages": { "type": "array", "items": { "$ref": "#/components/schemas/Message" } } } } ] },
                "Result": { "type": "object", "properties": { "to": text, "id": text, "error": text, "detail": text } },
                "State": { "type": "object", "properties": { "id": text, "state": text, "final": { "type": "boolean" },
                    "final_at": { "type": ["string", "null"] }, "error": { "type": "integer" } } },
                "Ids": { "type": "object", "required": ["ids"], "properties": { "ids": { "type": "array", "items": text } } },
                "Acknowledgement": { "type": "object", "required": ["batch"], "properties": {
                    "batch": text, "ids": { "type": "array", "items": text } } }
            },
            "responses": { "Problem": {
                "description": "The reason and the allowed values (RFC 9457).",
                "content": { "application/problem+json": { "schema": { "type": "object", "properties": {
                    "type": text, "title": text, "status": { "type": "integer" }, "detail": text,
                    "errors": { "type": "array", "items": { "type": "object", "properties": { "field": text, "reason": text } } }
                } } } }
            } }
        }
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn openapi_and_routes_agree() {
        let source = include_str!("http_json.rs");
        let mut routes: Vec<&str> = source
            .split(".route(\"")
            .skip(1)
            .filter_map(|rest| rest.split('"').next())
            .filter(|path| path.starts_with("/v1"))
            .collect();
        routes.sort_unstable();
        let document = super::document();
        let described: Vec<&str> =
            document["paths"].as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(routes, described);
    }
}
