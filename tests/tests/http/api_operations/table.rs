//! Every operation of the API. `$…` stands for values that are only known at run time; see `ApiFixture::filled`.

use super::row::{ConcurrentOutcome, Row};

pub(crate) fn rows() -> Vec<Row> {
    [
        health(),
        overview(),
        messages(),
        subscribers(),
        records(),
        plugins(),
        tables(),
        ledger(),
        pools(),
        sessions(),
        users(),
        tokens(),
        waiting(),
        configuration(),
        machine(),
        // Last, since nothing is accepted in drain mode.
        operation(),
    ]
    .concat()
}

fn health() -> Vec<Row> {
    ["/v1/health", "/v1/ready", "/v1/openapi.json"].into_iter().map(|path| Row::get(path, path)).collect()
}

fn overview() -> Vec<Row> {
    let paths = [
        "/v1/status",
        "/v1/attention",
        "/v1/queues",
        "/v1/pace-buckets",
        "/v1/event-sinks",
        "/v1/links",
        "/v1/links/summary",
        "/v1/business",
        "/v1/plugin-peers",
        "/v1/gsm",
        "/v1/metrics/recent",
        "/v1/metrics/history",
        "/v1/traffic",
        "/v1/traffic/map",
        "/v1/tenants",
        "/v1/accounts",
        "/metrics",
    ];
    paths.into_iter().map(|path| Row::get(path, path)).collect()
}

fn messages() -> Vec<Row> {
    vec![
        Row::get("/v1/messages/{id}", "/v1/messages/$UNCERTAIN?body=true"),
        Row::new("POST", "/v1/messages/{id}/settle", "/v1/messages/$UNCERTAIN/settle")
            .body(r#"{"remedy":"give-up"}"#)
            .status(204)
            .concurrent(ConcurrentOutcome::One(404)),
        Row::new("POST", "/v1/explain", "/v1/explain")
            .body(r#"{"origin":"acme","source":"100","destination":"491","text":"hello"}"#)
            .bad(br#"{"origin":"acme"}"#, 400),
        // The message has ended because it was settled.
        Row::new("DELETE", "/v1/messages/{id}/content", "/v1/messages/$UNCERTAIN/content"),
        Row::new("POST", "/v1/erasures", "/v1/erasures")
            .body(r#"{"number":"4917099999999"}"#)
            .bad(br#"{"number":"12"}"#, 400),
    ]
}

fn subscribers() -> Vec<Row> {
    vec![
        Row::get("/v1/subscribers/{subscriber}", "/v1/subscribers/$SUBSCRIBER"),
        Row::new("POST", "/v1/subscribers/{subscriber}/wake", "/v1/subscribers/$SUBSCRIBER/wake"),
        Row::new("POST", "/v1/subscribers/{subscriber}/silent-sms", "/v1/subscribers/$SUBSCRIBER/silent-sms")
            .status(201),
    ]
}

fn records() -> Vec<Row> {
    vec![
        Row::get("/v1/history", "/v1/history?limit=5&trace=1&body=1"),
        Row::get("/v1/history/export", "/v1/history/export?format=jsonl"),
        Row::get("/v1/statistics", "/v1/statistics?by=day&utc_offset=2"),
        Row::get("/v1/archive", "/v1/archive"),
        Row::get("/v1/dlrs/orphans", "/v1/dlrs/orphans"),
        Row::new("POST", "/v1/dlrs/resend", "/v1/dlrs/resend")
            .body(r#"{"account":"acme","from":"2026-01-01T00:00:00Z","until":"2100-01-01T00:00:00Z"}"#)
            .bad(br#"{"from":"yesterday","until":"today"}"#, 400),
        Row::get("/v1/refusals", "/v1/refusals?account=acme&code=no-route&since=0&limit=5"),
        Row::get("/v1/peers/{name}/quality", "/v1/peers/acme/quality"),
        Row::new("POST", "/v1/conversions", "/v1/conversions")
            .body(r#"{"messages":["1"]}"#)
            .bad(br#"{"messages":[]}"#, 400),
        Row::get("/v1/opt-outs", "/v1/opt-outs"),
        Row::new("POST", "/v1/opt-outs", "/v1/opt-outs")
            .body(r#"{"sender":"100","subscriber":"4917","stop":true}"#)
            .status(204),
    ]
}

/// Live, former and candidate bindings.
fn with_history(row: Row) -> Row {
    row.before("POST", "/v1/hooks/router/activate", "$BINDING")
        .before("POST", "/v1/hooks/router/activate", "$OTHER")
        .before("POST", "/v1/hooks/router/activate", "$BINDING")
        .before("POST", "/v1/hooks/router/activate", "$OTHER")
        .before("POST", "/v1/hooks/router/candidate", "$TRIAL")
}

fn plugins() -> Vec<Row> {
    let hook = |method, path, at| with_history(Row::new(method, path, at));
    vec![
        Row::get("/v1/plugins", "/v1/plugins"),
        Row::get("/v1/plugins/sources", "/v1/plugins/sources"),
        Row::get(
            "/v1/plugins/sources/{source}/{plugin}/tags",
            "/v1/plugins/sources/stick/prefix-router/tags",
        ),
        Row::new("POST", "/v1/plugins/pull", "/v1/plugins/pull")
            .body(r#"{"source":"stick","plugin":"prefix-router","tag":"1.0"}"#)
            .bad(br#"{"source":"stick","plugin":"prefix-router"}"#, 422)
            .bad(br#"{"source":"stick","plugin":"prefix-router","tag":"2.0"}"#, 404)
            // One pull of a source at a time; but the first may have ended before the second begins.
            .concurrent(ConcurrentOutcome::Either(409)),
        Row::get("/v1/plugins/outdated", "/v1/plugins/outdated"),
        Row::get("/v1/plugins/{name}/{version}/sbom", "/v1/plugins/prefix-router/$VERSION/sbom"),
        Row::new("PUT", "/v1/plugins/{name}/{version}/sbom", "/v1/plugins/prefix-router/$VERSION/sbom")
            .body(r#"{"spdxVersion":"SPDX-2.3"}"#)
            .bad(b"{}", 422),
        Row::new("PUT", "/v1/plugins/{name}", "/v1/plugins/prefix-router")
            .body("$COMPONENT")
            .bad(b"this is no component", 422),
        Row::new(
            "PUT",
            "/v1/plugins/{name}/{version}/debug-info",
            "/v1/plugins/prefix-router/$VERSION/debug-info",
        )
        .body("$COMPONENT")
        .bad(b"this is no component", 422),
        Row::get(
            "/v1/plugins/{name}/{version}/policy-schema",
            "/v1/plugins/prefix-router/$VERSION/policy-schema",
        ),
        Row::get("/v1/hooks/{hook}/faults/{id}/case", "/v1/hooks/router/faults/$FAULT/case"),
        with_history(Row::get("/v1/hooks", "/v1/hooks")),
        with_history(Row::get("/v1/hooks/{hook}", "/v1/hooks/router")),
        Row::get("/v1/hooks/{hook}/calls", "/v1/hooks/router/calls"),
        hook("POST", "/v1/hooks/{hook}/activate", "/v1/hooks/router/activate")
            .body("$EXPECTING")
            .bad(br#"{"plugin":"prefix-router","version":"none-such"}"#, 404)
            .bad(br#"{"plugin":"prefix-router","expected":-1}"#, 422)
            .concurrent(ConcurrentOutcome::One(409)),
        Row::new("POST", "/v1/hooks/{hook}/try", "/v1/hooks/router/try")
            .body(
                r#"{"plugin":"prefix-router","messages":[{"origin":"acme","source":"100","destination":"491"}]}"#,
            )
            .bad(br#"{"plugin":"prefix-router"}"#, 422),
        hook("POST", "/v1/hooks/{hook}/cases", "/v1/hooks/router/cases")
            .body(
                r#"{"plugin":"prefix-router","messages":[{"origin":"acme","source":"100","destination":"491"}]}"#,
            )
            .bad(br#"{"plugin":"prefix-router"}"#, 422),
        hook("POST", "/v1/hooks/{hook}/rollback", "/v1/hooks/router/rollback"),
        hook("POST", "/v1/hooks/{hook}/candidate", "/v1/hooks/router/candidate")
            .body("$TRIAL")
            .bad(br#"{"mode":"canary","plugin":"prefix-router"}"#, 422),
        hook("POST", "/v1/hooks/{hook}/promote", "/v1/hooks/router/promote")
            .body(r#"{"expected":$SERIAL}"#)
            .concurrent(ConcurrentOutcome::One(409)),
        hook("DELETE", "/v1/hooks/{hook}/candidate", "/v1/hooks/router/candidate")
            .status(204)
            .concurrent(ConcurrentOutcome::One(404)),
        hook("DELETE", "/v1/hooks/{hook}", "/v1/hooks/router"),
        Row::new("POST", "/v1/replays", "/v1/replays")
            .body("$REPLAY")
            .bad(br#"{"hook":"resolver","plugin":"prefix-router"}"#, 422)
            // One replay at a time; but the first may have ended before the second begins.
            .concurrent(ConcurrentOutcome::Either(409)),
        Row::get("/v1/replays", "/v1/replays"),
        Row::get("/v1/replays/{id}", "/v1/replays/1"),
        Row::new("DELETE", "/v1/replays/{id}", "/v1/replays/1").status(204),
    ]
}

fn tables() -> Vec<Row> {
    vec![
        Row::new("PUT", "/v1/tables/{name}", "/v1/tables/hlr?kind=prefix")
            .body("49,germany\n4917,mobile\n")
            .bad(b"\xff,\xff", 422),
        Row::get("/v1/tables", "/v1/tables"),
        Row::get("/v1/tables/{name}", "/v1/tables/hlr?key=49171"),
        Row::new("DELETE", "/v1/tables/{name}", "/v1/tables/hlr")
            .status(204)
            .before("PUT", "/v1/tables/hlr?kind=exact", "1,2\n")
            .concurrent(ConcurrentOutcome::One(404)),
    ]
}

fn ledger() -> Vec<Row> {
    vec![
        Row::new("POST", "/v1/ledger/{account}", "/v1/ledger/acme")
            .header("idempotency-key", "$KEY")
            .body(r#"{"credit":5000000,"reason":"a test"}"#)
            .bad(br#"{"credit":1}"#, 400)
            .bad(br#"{"credit":1,"fund":1,"reason":"a test"}"#, 400),
        Row::get("/v1/ledger", "/v1/ledger"),
        Row::get("/v1/ledger/{account}", "/v1/ledger/acme"),
        Row::get("/v1/ledger/{account}/operations", "/v1/ledger/acme/operations?limit=5"),
    ]
}

fn pools() -> Vec<Row> {
    const EVENTS: &str = "/v1/pools/support/events";
    vec![
        Row::new("PUT", "/v1/pools/{pool}", "/v1/pools/support").body(r#"{"strategy":"random"}"#),
        Row::new("POST", "/v1/pools/{pool}/events", EVENTS)
            .body(r#"{"event":"call","number":"100","holder":"me"}"#)
            .before("POST", EVENTS, r#"[{"event":"del","number":"100"},{"event":"add","number":"100"}]"#)
            .before("POST", EVENTS, r#"{"event":"reg","number":"100"}"#)
            .bad(br#"{"event":"add","number":"x"}"#, 400)
            .concurrent(ConcurrentOutcome::One(409)),
        Row::new("POST", "/v1/pools/{pool}/import", "/v1/pools/support/import?reg=true")
            .header("content-type", "text/csv")
            .body("number,state\n101,up\n102,down\nx,y\n"),
        Row::get("/v1/pools", "/v1/pools"),
        Row::get("/v1/pools/{pool}", "/v1/pools/support"),
        Row::get("/v1/pools/{pool}/numbers", "/v1/pools/support/numbers?prefix=1&limit=2"),
        Row::get("/v1/pools/{pool}/numbers/{number}", "/v1/pools/support/numbers/101"),
        Row::get("/v1/pools/{pool}/history", "/v1/pools/support/history?limit=50"),
        Row::get("/v1/pools/{pool}/watch", "/v1/pools/support/watch?from=0").endless(),
        Row::get("/v1/pools/{pool}/export", "/v1/pools/support/export?format=ndjson"),
        Row::new("DELETE", "/v1/pools/{pool}", "/v1/pools/support?with-numbers=true")
            .status(204)
            .before("PUT", "/v1/pools/support", "{}")
            .concurrent(ConcurrentOutcome::One(404)),
    ]
}

fn sessions() -> Vec<Row> {
    let in_session = |row: Row| row.header("authorization", "$SESSION");
    vec![
        Row::new("POST", "/v1/sessions", "/v1/sessions")
            .body(r#"{"user":"pat","password":"correct horse"}"#)
            .before("DELETE?", "/v1/users/pat", "")
            .before("POST", "/v1/users", r#"{"name":"pat","role":"viewer","password":"correct horse"}"#)
            .bad(br#"{"user":"pat"}"#, 422)
            .bad(br#"{"user":"pat","password":"battery staple"}"#, 401),
        Row::get("/v1/whoami", "/v1/whoami"),
        in_session(Row::new("POST", "/v1/whoami/password", "/v1/whoami/password"))
            .body(r#"{"old":"correct horse","new":"battery staple"}"#)
            .status(204)
            .before("DELETE?", "/v1/users/pat", "")
            .before("POST", "/v1/users", r#"{"name":"pat","role":"viewer","password":"correct horse"}"#)
            .bad(br#"{"old":"something else","new":"battery staple"}"#, 422)
            // A request that arrives while the other's password is being hashed still has the right one.
            .concurrent(ConcurrentOutcome::Either(422)),
        in_session(Row::new("DELETE", "/v1/sessions/current", "/v1/sessions/current"))
            .status(204)
            .before("DELETE?", "/v1/users/pat", "")
            .before("POST", "/v1/users", r#"{"name":"pat","role":"viewer","password":"correct horse"}"#)
            .concurrent(ConcurrentOutcome::Either(401)),
        Row::get("/v1/audit", "/v1/audit?limit=5&what=users"),
    ]
}

fn users() -> Vec<Row> {
    const SAM: &str = r#"{"name":"sam","role":"operator"}"#;
    let anew = |row: Row| row.before("DELETE?", "/v1/users/sam", "");
    let there = |row: Row| anew(row).before("POST", "/v1/users", SAM);
    vec![
        anew(Row::new("POST", "/v1/users", "/v1/users").body(SAM).status(201))
            .bad(br#"{"name":"sam","role":"king"}"#, 400)
            .bad(br#"{"name":"no one","role":"viewer"}"#, 422)
            .bad(br#"{"name":"other","role":"viewer","password":"short"}"#, 422)
            .concurrent(ConcurrentOutcome::One(409)),
        Row::get("/v1/users", "/v1/users"),
        there(Row::get("/v1/users/{name}", "/v1/users/sam")),
        there(Row::new("PATCH", "/v1/users/{name}", "/v1/users/sam"))
            .header("if-match", "\"$SAM\"")
            .body(r#"{"bodies":true}"#)
            .bad(br#"{"role":"account"}"#, 422)
            .concurrent(ConcurrentOutcome::One(412)),
        there(Row::new("DELETE", "/v1/users/{name}", "/v1/users/sam"))
            .status(204)
            .concurrent(ConcurrentOutcome::One(404)),
    ]
}

fn tokens() -> Vec<Row> {
    const ROBOT: &str = r#"{"name":"robot","role":"viewer","days":1}"#;
    let anew = |row: Row| row.before("DELETE?", "/v1/tokens/robot", "");
    vec![
        anew(Row::new("POST", "/v1/tokens", "/v1/tokens").body(ROBOT).status(201))
            .bad(br#"{"name":"other","role":"viewer","days":0}"#, 422)
            .concurrent(ConcurrentOutcome::One(409)),
        Row::get("/v1/tokens", "/v1/tokens"),
        anew(Row::new("DELETE", "/v1/tokens/{name}", "/v1/tokens/robot"))
            .before("POST", "/v1/tokens", ROBOT)
            .status(204)
            .concurrent(ConcurrentOutcome::One(404)),
    ]
}

/// Queue actions and uncertain messages.
fn waiting() -> Vec<Row> {
    const QUEUE_ACTION: &str = r#"{"action":"suspend","scope":{"account":"acme"},"why":"a test"}"#;
    vec![
        Row::get("/v1/messages", "/v1/messages?limit=5&account=acme"),
        Row::new("POST", "/v1/messages", "/v1/messages")
            .body(r#"{"account":"acme","from":"100","to":"49171234","text":"hello"}"#)
            .status(201)
            // Another row has unbound the router.
            .before("POST", "/v1/hooks/router/activate", "$BINDING")
            .bad(br#"{"account":"nobody","from":"100","to":"49171234","text":"hello"}"#, 404),
        Row::new("POST", "/v1/messages/{id}/cancel", "/v1/messages/$DEFERRED/cancel")
            .status(204)
            .concurrent(ConcurrentOutcome::One(404)),
        Row::new("POST", "/v1/messages/{id}/retry", "/v1/messages/$DEFERRED/retry")
            .status(204)
            .concurrent(ConcurrentOutcome::Either(409)),
        Row::new("POST", "/v1/queue-actions/preview", "/v1/queue-actions/preview")
            .body(QUEUE_ACTION)
            .bad(br#"{"action":"burn","scope":{"account":"acme"}}"#, 400),
        Row::new("POST", "/v1/queue-actions", "/v1/queue-actions")
            .body(QUEUE_ACTION)
            .status(201)
            .bad(br#"{"action":"suspend","scope":{"peer":"nobody"}}"#, 422),
        Row::get("/v1/queue-actions", "/v1/queue-actions"),
        Row::new("DELETE", "/v1/queue-actions/{id}", "/v1/queue-actions/$ACTION")
            .before("POST", "/v1/queue-actions", QUEUE_ACTION)
            .concurrent(ConcurrentOutcome::One(409)),
        Row::get("/v1/quarantine", "/v1/quarantine?limit=5&origin=acme"),
        Row::new("POST", "/v1/quarantine/release", "/v1/quarantine/release")
            .body(r#"{"ids":["1"]}"#)
            .bad(br#"{"origin":"acme","ids":["1"]}"#, 422),
        Row::new("POST", "/v1/quarantine/purge", "/v1/quarantine/purge")
            .body(r#"{"ids":["1"]}"#)
            .bad(br#"{"origin":"nobody"}"#, 422),
        Row::get("/v1/uncertain", "/v1/uncertain?limit=5&peer=upstream"),
        Row::new("POST", "/v1/uncertain/settle", "/v1/uncertain/settle")
            .body(r#"{"remedy":"give-up","peer":"upstream"}"#)
            .bad(br#"{"remedy":"pray","peer":"upstream"}"#, 400),
    ]
}

fn configuration() -> Vec<Row> {
    const HERE: &str = "/v1/configuration";
    const PATCH: &str = r#"{"peer":{"upstream":{"rate":$NEW}}}"#;
    // Withdraws the unconfirmed change of another row.
    let change = |method, path, at| {
        let row = Row::new(method, path, at).before("POST?", "/v1/configuration/revert", "");
        row.header("if-match", "\"$CONFIGURATION\"").concurrent(ConcurrentOutcome::One(412))
    };
    let pending = |path| {
        let row = Row::new("POST", path, path).before("POST?", "/v1/configuration/revert", "");
        row.before("PATCH", "/v1/configuration?confirm-within=10m", PATCH)
            .concurrent(ConcurrentOutcome::One(409))
    };
    vec![
        Row::get(HERE, HERE),
        change("PUT", HERE, HERE).body("$DOCUMENT"),
        change("PATCH", HERE, "/v1/configuration?why=a%20test").body(PATCH),
        Row::new("POST", "/v1/configuration/validate", "/v1/configuration/validate")
            .body("$DOCUMENT")
            .validates_only(),
        Row::get("/v1/configuration/versions", "/v1/configuration/versions?limit=2"),
        Row::get("/v1/configuration/versions/{version}", "/v1/configuration/versions/1"),
        Row::get("/v1/configuration/diff", "/v1/configuration/diff?from=1&to=2"),
        change("POST", "/v1/configuration/rollback", "/v1/configuration/rollback")
            .before("PATCH", HERE, PATCH)
            .body(r#"{"to":1,"why":"a test"}"#)
            .bad(br#"{"to":1000000}"#, 404),
        pending("/v1/configuration/confirm").body(r#"{"version":$CONFIGURATION}"#).status(204),
        pending("/v1/configuration/revert"),
        Row::get("/v1/configuration/schema", "/v1/configuration/schema"),
        Row::get("/v1/configuration/file", "/v1/configuration/file"),
    ]
}

fn machine() -> Vec<Row> {
    let change = |path: &'static str, at: &'static str| {
        Row::new("POST", path, at).concurrent(ConcurrentOutcome::Either(409))
    };
    vec![
        Row::get("/v1/appliance", "/v1/appliance"),
        change("/v1/appliance/update", "/v1/appliance/update?restart=false")
            .header("content-type", "application/octet-stream")
            .body("update 1.1")
            .bad(b"no update", 422),
        change("/v1/appliance/rollback", "/v1/appliance/rollback?restart=false"),
        Row::get("/v1/appliance/support-bundle", "/v1/appliance/support-bundle").endless(),
        change("/v1/appliance/factory-reset", "/v1/appliance/factory-reset?restart=false")
            .body(r#"{"state":"keep"}"#)
            .bad(br#"{"state":"some"}"#, 400)
            .bad(b"", 400),
    ]
}

fn operation() -> Vec<Row> {
    vec![
        Row::get("/v1/log", "/v1/log"),
        Row::new("PUT", "/v1/log", "/v1/log").body(r#"{"level":"info"}"#),
        Row::get("/v1/backup", "/v1/backup").endless(),
        // A request that arrives after the first test has ended starts another one.
        Row::new("POST", "/v1/peers/{name}/test", "/v1/peers/upstream/test")
            .concurrent(ConcurrentOutcome::Either(409)),
        Row::new("POST", "/v1/peers/{name}/dial", "/v1/peers/upstream/dial").status(204),
        Row::new("POST", "/v1/drain", "/v1/drain").body("{}"),
        Row::get("/v1/drain", "/v1/drain"),
        Row::new("DELETE", "/v1/drain", "/v1/drain"),
        // This appliance belongs to no cluster; the tests of the cluster have one.
        Row::get("/v1/cluster", "/v1/cluster").status(404),
        Row::new("POST", "/v1/cluster/hand-over", "/v1/cluster/hand-over").status(404),
        Row::new("DELETE", "/v1/cluster/nodes/{name}", "/v1/cluster/nodes/b").status(404),
    ]
}
