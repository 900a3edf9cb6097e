//! Number pools in the API's description of itself.

use serde_json::{Value, json};

fn text(description: &str) -> Value {
    json!({ "type": "string", "description": description })
}

fn whole(description: &str) -> Value {
    json!({ "type": "integer", "minimum": 0, "description": description })
}

fn schema(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

/// A parameter after the question mark.
fn asked(name: &str, schema: &Value, description: &str) -> Value {
    json!({ "name": name, "in": "query", "schema": schema, "description": description })
}

fn count(name: &str, description: &str) -> Value {
    asked(name, &json!({ "type": "integer", "minimum": 0 }), description)
}

fn flag(name: &str, description: &str) -> Value {
    asked(name, &json!({ "type": "boolean" }), description)
}

fn at(place: &str) -> Value {
    json!({ "name": place, "in": "path", "required": true, "schema": { "type": "string" } })
}

/// One operation: what it does, its parameters, its body as a map of media types, and what the answer is.
fn operation(summary: &str, parameters: &[Value], body: Option<&Value>, answer: &Value) -> Value {
    let (status, success) = match answer {
        Value::Null => ("204", json!({ "description": "Done." })),
        content => ("200", json!({ "description": "The answer.", "content": content })),
    };
    let mut operation = json!({
        "summary": summary,
        "parameters": parameters,
        "responses": { status: success, "default": { "$ref": "#/components/responses/Problem" } },
    });
    if let Some(body) = body {
        operation["requestBody"] = json!({ "required": true, "content": body });
    }
    operation
}

fn json_of(schema: &Value) -> Value {
    json!({ "application/json": { "schema": schema } })
}

fn lines() -> Value {
    let text = json!({ "schema": { "type": "string" } });
    json!({ "text/csv": text, "application/x-ndjson": text })
}

fn refused(mut operation: Value) -> Value {
    operation["responses"]["409"] = json!({
        "description": "Nothing was done, and why.",
        "content": { "application/problem+json": { "schema": schema("PoolRefusal") } },
    });
    operation
}

/// All paths of number pools.
pub(super) fn paths() -> Value {
    let pool = at("pool");
    let state = json!({ "enum": ["idle+up", "idle+down", "busy+up", "busy+down"] });
    let string = json!({ "type": "string" });
    let list = |name: &str, item: &str| {
        json_of(&json!({
            "type": "object",
            "required": [name],
            "properties": {
                name: { "type": "array", "items": schema(item) },
                "next": { "type": ["integer", "null"], "description": "Where the next page begins; null: there is none." },
            },
        }))
    };
    let limit = count("limit", "1 to 1000; 100 otherwise.");
    json!({
        "/v1/pools": {
            "get": operation("All number pools, by name.", &[], None, &list("pools", "Pool")),
        },
        "/v1/pools/{pool}": {
            "get": operation("One number pool.", std::slice::from_ref(&pool), None, &json_of(&schema("Pool"))),
            "put": refused(operation(
                "Makes a number pool, or gives it other settings: what is left out is as in a new pool.",
                std::slice::from_ref(&pool),
                Some(&json_of(&schema("PoolSettings"))),
                &json_of(&schema("Pool")),
            )),
            "delete": refused(operation(
                "Takes a number pool away, if it has no numbers.",
                &[pool.clone(), flag("with-numbers", "Also if it has some, whoever holds them.")],
                None,
                &Value::Null,
            )),
        },
        "/v1/pools/{pool}/numbers": {
            "get": operation(
                "A page of a pool's numbers, in no particular order; each that is there all the while comes once.",
                &[
                    pool.clone(),
                    asked("state", &state, "Only those in this state; + is written %2B."),
                    asked("prefix", &string, "Only those that begin with this."),
                    limit.clone(),
                    count("cursor", "The `next` of the page before."),
                ],
                None,
                &list("numbers", "PoolNumber"),
            ),
        },
        "/v1/pools/{pool}/numbers/{number}": {
            "get": operation(
                "How one number of a pool stands.",
                &[pool.clone(), at("number")],
                None,
                &json_of(&schema("PoolNumber")),
            ),
        },
        "/v1/pools/{pool}/events": {
            "post": refused(operation(
                "Something happens to a number, or, as an array of at most 10,000, several things one after the other with \
                 nothing of others' in between. A refusal in an array does not undo the rest; each has its own result, and \
                 the status is 200.",
                std::slice::from_ref(&pool),
                Some(&json_of(&json!({ "oneOf": [
                    schema("PoolEvent"),
                    { "type": "array", "maxItems": 10_000, "items": schema("PoolEvent") },
                ] }))),
                &json_of(&json!({ "oneOf": [
                    schema("PoolResult"),
                    { "type": "array", "items": schema("PoolResult") },
                ] })),
            )),
        },
        "/v1/pools/{pool}/history": {
            "get": operation(
                "What has happened to a pool's numbers, newest first.",
                &[
                    pool.clone(),
                    asked("number", &string, "Only to this number."),
                    count("before", "The `next` of the page before."),
                    limit,
                ],
                None,
                &list("entries", "PoolEntry"),
            ),
        },
        "/v1/pools/{pool}/watch": {
            "get": operation(
                "What happens to a pool's numbers, as it happens, durable: server-sent events whose `id` is the entry's number \
                 and whose data is a PoolEntry. An event `forgotten` (from, to) names entries that are no longer kept, an \
                 event `removed` is the last one of a pool.",
                &[
                    pool.clone(),
                    count("from", "Begin with the entry of this number, not with the next one to come."),
                    json!({ "name": "Last-Event-ID", "in": "header", "schema": { "type": "integer" },
                            "description": "Go on after this one." }),
                ],
                None,
                &json!({ "text/event-stream": { "schema": string } }),
            ),
        },
        "/v1/pools/{pool}/import": {
            "post": operation(
                "Adds the numbers of a file of at most 10,000,000 lines: CSV with the columns number, state and weight, named \
                 in a first line or in that order; or an object of them on each line. Those whose state is up are brought \
                 up; a number that is there already stays, but for that and a weight that is named. Lines are done as they come, in \
                 pieces.",
                &[pool.clone(), flag("reg", "Bring all of them up.")],
                Some(&lines()),
                &json_of(&schema("PoolImport")),
            ),
        },
        "/v1/pools/{pool}/export": {
            "get": operation(
                "All numbers of a pool as a file that can be imported.",
                &[
                    pool,
                    asked("format", &json!({ "enum": ["csv", "ndjson"] }), "Otherwise as the header Accept says."),
                ],
                None,
                &lines(),
            ),
        },
    })
}

fn held() -> Value {
    json!({
        "state": { "enum": ["idle+up", "idle+down", "busy+up", "busy+down", "none"] },
        "since": whole("Since when it is in its state, in milliseconds since 1970."),
        "ticket": whole("The name of the present holding."),
        "holder": text("Who has it."),
        "reason": text("What for."),
        "message": text("The id of the message whose sender it is."),
        "lease-ends": whole("When it is given back by itself, in milliseconds since 1970."),
        "rests-until": whole("Until when it rests after its last call, in milliseconds since 1970."),
        "weight": { "type": "integer", "minimum": 1, "maximum": 16 },
        "calls": whole("How often it was given since it came into the pool."),
        "held-seconds": whole("How long it was held in all, the present holding left out."),
        "lapsed": whole("How often its lease ended by itself."),
    })
}

/// `held` with more properties.
fn number(required: &[&str], more: Value) -> Value {
    let mut properties = held();
    if let (Some(properties), Value::Object(more)) = (properties.as_object_mut(), more) {
        properties.extend(more);
    }
    json!({ "type": "object", "required": required, "properties": properties })
}

/// The shapes that the paths name.
pub(super) fn schemas() -> Value {
    let strategy = json!({ "enum": ["longest-idle", "random", "weighted", "sticky", "nearest"] });
    let named = |event: &Value, required: &[&str], more: Value| {
        let mut properties = json!({ "event": event, "number": text("Which number.") });
        if let (Some(properties), Value::Object(more)) = (properties.as_object_mut(), more) {
            properties.extend(more);
        }
        let required: Vec<&str> = [&["event"], required].concat();
        json!({
            "type": "object", "required": required, "properties": properties, "additionalProperties": false
        })
    };
    let ticket = whole("Only if it is still held under this ticket; otherwise whoever holds it.");
    let lease = json!({ "type": "integer", "minimum": 1, "description": "Milliseconds after which it is given back by itself." });
    json!({
        "PoolSettings": {
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "strategy": strategy,
                "quarantine-ms": whole("How long a number rests after a call, in milliseconds."),
            },
        },
        "Pool": {
            "type": "object",
            "required": ["name", "settings", "numbers", "ready", "next-ms", "entries", "given", "none", "lapsed"],
            "properties": {
                "name": { "type": "string" },
                "settings": schema("PoolSettings"),
                "numbers": {
                    "type": "object",
                    "description": "How many there are by state, and in all.",
                    "additionalProperties": { "type": "integer" },
                },
                "ready": whole("How many are to be had now."),
                "next-ms": { "type": ["integer", "null"], "description": "Milliseconds until a lease or a rest ends." },
                "entries": whole("Entries that the history has had: the number of the next one."),
                "given": whole("Numbers given since the start of the appliance."),
                "none": whole("Calls since then that found no number."),
                "lapsed": whole("Leases since then that ended by themselves."),
            },
        },
        "PoolNumber": number(
            &["number", "state", "since", "weight", "calls", "held-seconds", "lapsed"],
            json!({
                "number": { "type": "string" },
                "lease-left-ms": whole("Milliseconds until the lease ends."),
                "rest-left-ms": whole("Milliseconds until the rest ends."),
            }),
        ),
        "PoolEntry": number(
            &["id", "at", "event", "number", "state"],
            json!({
                "id": whole("The entry's number; they are counted from 0 in each pool."),
                "at": whole("When, in milliseconds since 1970."),
                "event": { "enum": [
                    "add", "del", "reg", "unreg", "call", "hangup", "renew", "lapse", "rested", "weigh",
                ] },
                "number": { "type": "string" },
                "by": text("Whose doing it was; left out where it was time's."),
            }),
        ),
        "PoolEvent": { "oneOf": [
            named(&json!({ "const": "add" }), &["number"], json!({
                "weight": {
                    "type": "integer", "minimum": 1, "maximum": 16,
                    "description": "Without it a new number has 1, and one that is there already keeps its own.",
                },
            })),
            named(&json!({ "enum": ["del", "reg", "unreg"] }), &["number"], json!({})),
            named(&json!({ "const": "call" }), &[], json!({
                "holder": text("Who takes it; at most 255 octets."),
                "reason": text("What for; at most 255 octets."),
                "user": text("The user that the strategy `sticky` looks at; the holder otherwise."),
                "callee": text("Whom it is for: `sticky` and `nearest` look at it."),
                "lease-ms": lease,
            })),
            named(&json!({ "const": "hangup" }), &["number"], json!({ "ticket": ticket })),
            named(&json!({ "const": "renew" }), &["number"], json!({ "ticket": ticket, "lease-ms": lease })),
        ] },
        "PoolResult": {
            "type": "object",
            "required": ["result"],
            "properties": {
                "result": { "enum": ["done", "refused"] },
                "number": { "type": "string" },
                "state": { "enum": ["idle+up", "idle+down", "busy+up", "busy+down", "none"] },
                "ticket": whole("The name of the holding."),
                "reason": reasons(),
                "detail": { "type": "string" },
                "retry-after-ms": whole("Milliseconds after which it may be otherwise."),
            },
        },
        "PoolRefusal": {
            "type": "object",
            "required": ["title", "status", "detail", "reason"],
            "properties": {
                "title": { "type": "string" },
                "status": { "type": "integer" },
                "detail": { "type": "string" },
                "reason": reasons(),
                "state": { "enum": ["idle+up", "idle+down", "busy+up", "busy+down"] },
                "retry-after-ms": whole("Milliseconds after which it may be otherwise; left out where time does not help."),
            },
        },
        "PoolImport": {
            "type": "object",
            "required": ["lines", "added", "already", "refused", "wrong", "errors"],
            "properties": {
                "lines": whole("Lines of the file."),
                "added": whole("Numbers that are in the pool now and were not before."),
                "already": whole("Numbers that were in it."),
                "refused": whole("Numbers that were not taken: the appliance has as many as it takes."),
                "wrong": whole("Lines that could not be understood."),
                "errors": {
                    "type": "array",
                    "maxItems": 100,
                    "items": {
                        "type": "object",
                        "required": ["line", "detail"],
                        "properties": { "line": whole("Counted from 1."), "detail": { "type": "string" } },
                    },
                },
            },
        },
    })
}

fn reasons() -> Value {
    json!({ "enum": [
        "empty", "all-busy", "all-down", "all-resting", "not-in-pool", "wrong-state", "other-ticket", "resting", "full",
        "too-long", "not-empty",
    ] })
}
