//! The API's description of itself.

mod pools;

use serde_json::{Map, Value, json};

/// One operation: method, path, whether it is open to all, summary, the request's body, and the answer's.
type Operation = (&'static str, &'static str, bool, &'static str, Option<&'static str>, &'static str);

const OPERATIONS: &[Operation] = &[
    ("get", "/v1/health", true, "Whether the process answers.", None, "object"),
    ("get", "/v1/ready", true, "Whether traffic is taken; 503 while starting or stopping.", None, "object"),
    ("get", "/v1/openapi.json", true, "This document.", None, "object"),
    (
        "get",
        "/v1/status",
        false,
        "The appliance as a whole: version, disk, recovery, totals.",
        None,
        "object",
    ),
    ("get", "/v1/queues", false, "Every peer's and account's queue, with its brake.", None, "array"),
    ("get", "/v1/links", false, "Every link, with its brake.", None, "array"),
    (
        "get",
        "/v1/messages/{id}",
        false,
        "One message's trace: steps, why here, why late. `body=1` shows the text.",
        None,
        "object",
    ),
    (
        "post",
        "/v1/messages/{id}/settle",
        false,
        "Settles an uncertain message. Body: {\"remedy\": \"send-again\" | \"give-up\"}.",
        Some("application/json"),
        "none",
    ),
    (
        "post",
        "/v1/explain",
        false,
        "What would become of a message that is not sent. Body: origin, source, destination, text.",
        Some("application/json"),
        "object",
    ),
    (
        "get",
        "/v1/plugins",
        false,
        "Plugin versions that are kept: size, hook, contract, imports, who signed them.",
        None,
        "array",
    ),
    (
        "put",
        "/v1/plugins/{name}",
        false,
        "Keeps a component as a new version of a plugin. Body: the component; header switchyard-signature: base64 of its ed25519 signature.",
        Some("application/wasm"),
        "object",
    ),
    (
        "get",
        "/v1/hooks",
        false,
        "All hooks: what is live, what is on trial and how it compares, counts, what happened.",
        None,
        "array",
    ),
    (
        "get",
        "/v1/hooks/{hook}",
        false,
        "One hook (router, resolver, delivery-policy, biller), with its history.",
        None,
        "object",
    ),
    ("delete", "/v1/hooks/{hook}", false, "Leaves a hook without any plugin.", None, "object"),
    (
        "post",
        "/v1/hooks/{hook}/activate",
        false,
        "Makes a plugin live. Body: plugin, version, policy, position, on-fault, memory, deadline-ms, table-rows, instance, grants, tolerance; or {\"chain\": [...]}; `expected` is the serial of the change that was seen last. What is left out is as in the live binding of that plugin.",
        Some("application/json"),
        "object",
    ),
    ("post", "/v1/hooks/{hook}/rollback", false, "Goes back to what was live before.", None, "object"),
    (
        "post",
        "/v1/hooks/{hook}/candidate",
        false,
        "Takes a candidate on trial. Body: as for activate, and mode: shadow, or canary with share in percent.",
        Some("application/json"),
        "object",
    ),
    ("delete", "/v1/hooks/{hook}/candidate", false, "Ends the trial.", None, "none"),
    ("post", "/v1/hooks/{hook}/promote", false, "Makes the candidate live.", None, "object"),
    ("get", "/v1/replays", false, "Replays since the start.", None, "array"),
    (
        "post",
        "/v1/replays",
        false,
        "Begins a replay of archived messages through a candidate. Body: as for activate, and hook (router or biller), from, until, limit, threads.",
        Some("application/json"),
        "object",
    ),
    (
        "get",
        "/v1/replays/{id}",
        false,
        "A replay and its report: which verdicts differ, from what to what, with examples and prices.",
        None,
        "object",
    ),
    ("delete", "/v1/replays/{id}", false, "Ends a replay.", None, "none"),
    ("get", "/v1/tables", false, "The appliance's tables.", None, "array"),
    ("get", "/v1/tables/{name}", false, "What a table says of a key. Query: key.", None, "object"),
    (
        "put",
        "/v1/tables/{name}",
        false,
        "Fills a table, or fills it anew. Query: kind=exact|prefix. Body: CSV of key and value.",
        Some("text/csv"),
        "object",
    ),
    ("delete", "/v1/tables/{name}", false, "Removes a table.", None, "none"),
    (
        "get",
        "/v1/ledger",
        false,
        "All ledger accounts with their balances, in millionths of the currency.",
        None,
        "array",
    ),
    ("get", "/v1/ledger/{account}", false, "One ledger account.", None, "object"),
    (
        "post",
        "/v1/ledger/{account}",
        false,
        "A balance operation, done once for its header Idempotency-Key. Body: fund (millionths, negative to take back) or credit (how far below zero it may go), and reason.",
        Some("application/json"),
        "object",
    ),
    (
        "get",
        "/v1/ledger/{account}/operations",
        false,
        "What was done to an account, newest first. Query: limit, before.",
        None,
        "array",
    ),
    (
        "get",
        "/v1/history",
        false,
        "Finished messages, newest first. Query: number, account, peer, state, direction, from, until, limit, cursor, \
         body, trace.",
        None,
        "object",
    ),
    (
        "get",
        "/v1/history/export",
        false,
        "The same messages as a file: format=csv or format=jsonl, and the query of /v1/history without limit and cursor.",
        None,
        "text",
    ),
    (
        "get",
        "/v1/statistics",
        false,
        "Counts and latencies by hour or day, account and gateway. Query: by=hour|day, east, from, until, account, peer.",
        None,
        "array",
    ),
    ("get", "/v1/archive", false, "How the data pump fares: state, backlog, rows, failures.", None, "object"),
    ("get", "/v1/reports/parked", false, "Reports of peers that match no message yet.", None, "object"),
    (
        "post",
        "/v1/reports/again",
        false,
        "Makes the reports of a time range once more. Body: from, until, account.",
        Some("application/json"),
        "object",
    ),
    ("get", "/v1/opt-outs", false, "Which subscribers have told which senders to stop.", None, "object"),
    (
        "post",
        "/v1/opt-outs",
        false,
        "Stops a sender for a subscriber, or lets it go on. Body: sender, subscriber, stop.",
        Some("application/json"),
        "none",
    ),
    ("get", "/v1/business", false, "Business systems: their calls and pushes.", None, "array"),
    (
        "get",
        "/v1/gsm",
        false,
        "GSM core networks: connections, short messages to and from handsets, questions to the HLR.",
        None,
        "array",
    ),
    ("get", "/metrics", false, "Metrics for Prometheus.", None, "text"),
];

/// The OpenAPI 3.1 document.
#[must_use]
pub fn document() -> Value {
    let mut paths = Map::new();
    for (method, path, open, summary, request, answer) in OPERATIONS {
        let content = match *answer {
            "none" => None,
            "text" => Some(json!({ "text/plain": { "schema": { "type": "string" } } })),
            kind => Some(json!({ "application/json": { "schema": { "type": kind } } })),
        };
        let (status, mut success) = match content {
            None => ("204", json!({ "description": "Done." })),
            Some(content) => ("200", json!({ "description": "The answer.", "content": content })),
        };
        let problem = json!({ "$ref": "#/components/responses/Problem" });
        let mut responses = Map::new();
        responses.insert(status.to_owned(), success.take());
        responses.insert("default".to_owned(), problem);
        let mut operation = Map::new();
        operation.insert("summary".to_owned(), json!(summary));
        operation.insert("responses".to_owned(), Value::Object(responses));
        if *open {
            operation.insert("security".to_owned(), json!([]));
        }
        if let Some(kind) = request {
            let schema = if *kind == "application/json" { json!({ "type": "object" }) } else { json!({}) };
            let mut content = Map::new();
            content.insert((*kind).to_owned(), json!({ "schema": schema }));
            operation.insert("requestBody".to_owned(), json!({ "required": true, "content": content }));
        }
        let parameters: Vec<Value> = path
            .split('/')
            .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
            .map(|name| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } }))
            .collect();
        if !parameters.is_empty() {
            operation.insert("parameters".to_owned(), json!(parameters));
        }
        let entry = paths.entry((*path).to_owned()).or_insert_with(|| json!({}));
        if let Some(entry) = entry.as_object_mut() {
            entry.insert((*method).to_owned(), Value::Object(operation));
        }
    }
    if let Value::Object(pools) = pools::paths() {
        paths.extend(pools);
    }
    json!({
        "openapi": "3.1.0",
        "info": { "title": "Switchyard", "version": env!("CARGO_PKG_VERSION") },
        "security": [{ "token": [] }],
        "paths": paths,
        "components": {
            "schemas": pools::schemas(),
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
            "responses": {
                "Problem": {
                    "description": "What is wrong, and what to do (RFC 9457).",
                    "content": { "application/problem+json": { "schema": {
                        "type": "object",
                        "required": ["title", "status", "detail"],
                        "properties": {
                            "title": { "type": "string" },
                            "status": { "type": "integer" },
                            "detail": { "type": "string" }
                        }
                    } } }
                }
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::document;
    use serde_json::Value;

    #[test]
    fn every_route_is_described_and_every_description_is_a_route() {
        let sources = [
            include_str!("api.rs"),
            include_str!("plugins.rs"),
            include_str!("ledger.rs"),
            include_str!("pools.rs"),
        ];
        let source = sources.concat();
        let mut routes: Vec<&str> =
            source.split(".route(").skip(1).filter_map(|rest| rest.split('"').nth(1)).collect();
        let document = document();
        let mut described: Vec<&str> =
            document["paths"].as_object().unwrap().keys().map(String::as_str).collect();
        routes.sort_unstable();
        described.sort_unstable();
        assert_eq!(routes, described);
    }

    /// All values under a key, however deep.
    fn all<'a>(value: &'a Value, key: &str, found: &mut Vec<&'a Value>) {
        match value {
            Value::Object(map) => {
                found.extend(map.get(key));
                map.values().for_each(|value| all(value, key, found));
            }
            Value::Array(items) => items.iter().for_each(|item| all(item, key, found)),
            _ => {}
        }
    }

    #[test]
    fn what_is_referred_to_is_there() {
        let document = document();
        let mut references = Vec::new();
        all(&document, "$ref", &mut references);
        assert!(references.len() > 20);
        for reference in references {
            let place = reference.as_str().and_then(|reference| reference.strip_prefix('#'));
            assert!(document.pointer(place.unwrap()).is_some(), "{reference}");
        }
    }
}
