//! Permissions at the admin API, and the audit log.

use anyhow::{Context, Result, ensure};
use behaviour_tests::test_daemon::{PASSWORD, TestDaemon};
use behaviour_tests::{AdminClient, Fixture};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::sync::Barrier;

/// Basic credentials of business systems: the account's name and [`PASSWORD`].
const SHOP: &str = "Basic c2hvcDpzZWNyZXQ=";
const RIVAL: &str = "Basic cml2YWw6c2VjcmV0";

/// A daemon with two accounts and a peer that does not listen, so that messages wait.
fn appliance() -> Result<(Fixture, TestDaemon)> {
    let fixture = Fixture::new()?;
    let mut config = behaviour_tests::test_daemon::TestDaemonConfig::new(
        fixture.binary(),
        &fixture.folder().join("appliance"),
    )?;
    let nowhere = behaviour_tests::test_daemon::free_port()?;
    config
        .archive(&format!("sqlite:{}", fixture.folder().join("archive.db").display()))
        .business_account("shop", "source = { default = \"10655\" }", "")
        .business_account("rival", "source = { default = \"10656\" }", "")
        .peer("upstream", ([127, 0, 0, 1], nowhere).into(), "")
        .native("upstream");
    let appliance = config.start()?;
    Ok((fixture, appliance))
}

/// Submits a text as a business system; returns its id.
fn submit(appliance: &TestDaemon, who: &str, text: &str) -> Result<String> {
    let message = json!({ "to": "8613012345678", "text": text }).to_string();
    let url = format!("http://{}/v1/messages", appliance.config().business());
    let request = ureq::post(url).header("authorization", who).header("content-type", "application/json");
    let text = request.send(message)?.body_mut().read_to_string()?;
    let answer: Value = serde_json::from_str(&text)?;
    Ok(answer["messages"][0]["id"].as_str().with_context(|| format!("no id: {text}"))?.to_owned())
}

fn audit(root: &AdminClient, query: &str) -> Result<Vec<Value>> {
    let reply = root.ask("GET", &format!("/v1/audit?limit=1000{query}"), None)?;
    ensure!(reply.status == 200, "{}", reply.text);
    Ok(reply.json()?["entries"].as_array().context("no entries")?.clone())
}

#[test]
fn each_role_has_exactly_the_documented_permissions() -> Result<()> {
    let (_stage, appliance) = appliance()?;
    let nobody = AdminClient::anonymous(&appliance);
    let root = AdminClient::root(&appliance)?;
    let roles = [
        ("viewer", &["own", "read"][..], json!({ "role": "viewer" })),
        ("operator", &["own", "read", "operate"][..], json!({ "role": "operator" })),
        ("account", &["own"][..], json!({ "role": "account", "account": "shop" })),
    ];
    let mut visitors = Vec::new();
    for (name, rights, body) in roles {
        visitors.push((name, rights, nobody.with_token(&root.make_token(name, &body)?)));
    }
    let document = nobody.ask("GET", "/v1/openapi.json", None)?.json()?;
    let (mut guarded, mut refused) = (0, 0);
    for (path, item) in document["paths"].as_object().context("no paths")? {
        for (method, operation) in item.as_object().context("no operations")? {
            let method = method.to_uppercase();
            let place = path.split('/').map(|part| if part.starts_with('{') { "1" } else { part });
            let place = place.collect::<Vec<_>>().join("/");
            let body = (method != "GET" && method != "DELETE").then(|| json!({}));
            let without = nobody.request_head(&method, &place, body.as_ref())?.status;
            let wrong =
                nobody.with_token(&"0".repeat(64)).request_head(&method, &place, body.as_ref())?.status;
            if operation["security"].as_array().is_some_and(Vec::is_empty) {
                ensure!(without == wrong && without != 401 && without != 403, "{method} {path}: {without}");
                continue;
            }
            guarded += 1;
            ensure!((without, wrong) == (401, 401), "{method} {path}: {without}, {wrong}");
            let needed =
                operation["x-permission"].as_str().with_context(|| format!("{method} {path}: no right"))?;
            for (name, rights, caller) in &visitors {
                let reply = caller.request_head(&method, &place, body.as_ref())?.status;
                let may = rights.contains(&needed);
                refused += usize::from(!may);
                ensure!(
                    if may { reply != 401 && reply != 403 } else { reply == 403 },
                    "{method} {path} as {name}, needs {needed}: {reply}"
                );
            }
        }
    }
    ensure!(guarded > 60 && refused > 60, "{guarded} operations, {refused} refusals");
    // The API document agrees with the expectation.
    for (name, method, path, may) in [
        ("viewer", "GET", "/v1/status", true),
        ("viewer", "POST", "/v1/opt-outs", false),
        ("operator", "POST", "/v1/opt-outs", true),
        ("operator", "DELETE", "/v1/tables/x", false),
        // It opens files that the document names.
        ("viewer", "POST", "/v1/configuration/validate", false),
        ("operator", "GET", "/v1/users", false),
        ("operator", "GET", "/v1/audit", false),
        ("account", "GET", "/v1/whoami", true),
        ("account", "GET", "/v1/status", false),
        ("account", "GET", "/v1/history/export", false),
    ] {
        let caller = &visitors.iter().find(|(other, ..)| *other == name).context("no such role")?.2;
        let body = (method == "POST").then(|| json!({}));
        let reply = caller.ask(method, path, body.as_ref())?;
        assert_eq!(reply.status != 403, may, "{method} {path} as {name}: {}", reply.text);
    }
    Ok(())
}

#[test]
fn a_session_needs_its_cookie_and_for_changes_its_csrf_token() -> Result<()> {
    let (_stage, appliance) = appliance()?;
    let (nobody, root) = (AdminClient::anonymous(&appliance), AdminClient::root(&appliance)?);
    root.make_user("ann", "correct horse", &json!({ "role": "admin" }))?;
    let login = json!({ "user": "ann", "password": "correct horse" });
    let reply = nobody.ask("POST", "/v1/sessions", Some(&login))?;
    assert_eq!(reply.status, 200, "{}", reply.text);
    let cookie = reply.header("set-cookie")?;
    for flag in ["switchyard-session=", "; HttpOnly", "; SameSite=Strict", "; Path=/", "; Max-Age=43"] {
        ensure!(cookie.contains(flag), "{cookie}");
    }
    ensure!(
        !cookie.contains("Secure"),
        "a cookie for TLS only would never come back over plain HTTP: {cookie}"
    );
    let opened = reply.json()?;
    assert_eq!(
        (&opened["user"], &opened["role"], &opened["bodies"]),
        (&json!("ann"), &json!("admin"), &json!(false))
    );
    let rights = opened["permissions"].as_array().context("no rights")?;
    ensure!(rights.contains(&json!("manage-users")) && !rights.contains(&json!("read-bodies")), "{rights:?}");

    let word = cookie.split(';').next().unwrap_or_default();
    let bare = nobody.with_header("cookie", word);
    assert_eq!(bare.ask("GET", "/v1/whoami", None)?.json()?["user"], "ann");
    let change = json!({ "name": "bob", "role": "viewer" });
    for forged in [
        bare.clone(),
        bare.with_header("switchyard-csrf", "x"),
        bare.with_header("switchyard-csrf", &word[19..]),
    ] {
        let reply = forged.ask("POST", "/v1/users", Some(&change))?;
        assert_eq!((reply.status, reply.reason().as_str()), (403, "csrf"), "{}", reply.text);
    }
    assert_eq!(root.ask("GET", "/v1/users/bob", None)?.status, 404);
    let own = bare.with_header("switchyard-csrf", opened["csrf"].as_str().context("no csrf")?);
    assert_eq!(own.ask("POST", "/v1/users", Some(&change))?.status, 201);

    let reply = own.ask("DELETE", "/v1/sessions/current", None)?;
    assert_eq!(reply.status, 204);
    ensure!(reply.header("set-cookie")?.contains("Max-Age=0"));
    assert_eq!(own.ask("GET", "/v1/whoami", None)?.status, 401);

    // The first login uses the token that the first start has created.
    let first = nobody.with_session(&json!({ "token": appliance.token()? }))?;
    assert_eq!(first.ask("GET", "/v1/whoami", None)?.json()?["user"], "token");
    let reply = first.ask("POST", "/v1/whoami/password", Some(&json!({ "old": "x", "new": "y" })))?;
    assert_eq!((reply.status, reply.reason().as_str()), (409, "no-password"));
    let reply = root.ask("DELETE", "/v1/sessions/current", None)?;
    assert_eq!((reply.status, reply.reason().as_str()), (409, "no-session"));

    // Another site's form can send this without asking, but must not create a session.
    let form = ureq::post(format!("http://{}/v1/sessions", appliance.config().http()))
        .config()
        .http_status_as_error(false)
        .build()
        .header("content-type", "text/plain")
        .send(login.to_string())?;
    assert_eq!(form.status().as_u16(), 400);
    for (bad, status) in [
        (json!({ "user": "ann" }), 422),
        (json!({ "user": "ann", "password": "correct horse", "token": "x" }), 422),
        (json!({ "user": "ann", "password": "correct horse", "colour": "red" }), 400),
        (json!({ "user": "ann", "password": "wrong horse" }), 401),
        (json!({ "user": "carl", "password": "correct horse" }), 401),
        (json!({ "token": "wrong" }), 401),
    ] {
        let reply = nobody.ask("POST", "/v1/sessions", Some(&bad))?;
        assert_eq!(reply.status, status, "{bad}: {}", reply.text);
        ensure!(reply.headers.get("set-cookie").is_none());
    }

    for (caller, path) in
        [(&nobody, "/v1/health"), (&nobody, "/v1/status"), (&root, "/v1/status"), (&root, "/v1/x")]
    {
        let reply = caller.ask("GET", path, None)?;
        let policy = reply.header("content-security-policy")?;
        ensure!(
            policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"),
            "{policy}"
        );
        assert_eq!(reply.header("x-content-type-options")?, "nosniff");
        assert_eq!(reply.header("referrer-policy")?, "no-referrer");
        assert_eq!(reply.header("cache-control")?, "no-store");
    }
    Ok(())
}

#[test]
fn repeated_login_failures_are_limited_without_locking_others_out() -> Result<()> {
    let (_stage, appliance) = appliance()?;
    let (nobody, root) = (AdminClient::anonymous(&appliance), AdminClient::root(&appliance)?);
    for user in ["ann", "bob"] {
        root.make_user(user, "correct horse", &json!({ "role": "viewer" }))?;
    }
    let login = |user: &str, password: &str| {
        nobody.ask("POST", "/v1/sessions", Some(&json!({ "user": user, "password": password })))
    };
    for turn in 0..10 {
        assert_eq!(login("ann", "wrong horse")?.status, 401, "{turn}");
    }
    let reply = login("ann", "correct horse")?;
    assert_eq!((reply.status, reply.reason().as_str()), (429, "too-many-attempts"));
    let wait: u64 = reply.header("retry-after")?.parse()?;
    ensure!((1..=301).contains(&wait), "{wait}");
    assert_eq!(login("bob", "correct horse")?.status, 200);

    assert_eq!(root.ask("GET", "/v1/whoami", None)?.status, 200, "a valid token is no login attempt");
    // Throttled attempts are not logged individually, so that an attacker cannot fill the log.
    let knocks = audit(&root, "&what=/v1/sessions")?;
    ensure!(knocks.iter().all(|entry| entry["status"] != 429), "{knocks:#?}");
    assert_eq!(
        knocks.iter().filter(|entry| entry["by"] == "ann" && entry["outcome"] == "refused").count(),
        10
    );
    Ok(())
}

#[test]
fn tokens_are_shown_once_expire_and_can_be_revoked() -> Result<()> {
    let (_stage, appliance) = appliance()?;
    let (nobody, root) = (AdminClient::anonymous(&appliance), AdminClient::root(&appliance)?);
    let word = root.make_token("ci", &json!({ "role": "operator", "days": 1 }))?;
    let ci = nobody.with_token(&word);
    let standing = ci.ask("GET", "/v1/whoami", None)?.json()?;
    assert_eq!((&standing["user"], &standing["role"]), (&json!("token:ci"), &json!("operator")));
    let list = root.ask("GET", "/v1/tokens", None)?;
    ensure!(!list.text.contains(&word), "the token is shown again");
    let listed = list.json()?;
    assert_eq!(listed[0]["name"], "ci");
    let life = listed[0]["until"].as_u64().zip(listed[0]["made"].as_u64()).map(|(until, made)| until - made);
    assert_eq!(life, Some(86_400_000));
    for (bad, status) in [
        (json!({ "name": "ci", "role": "viewer" }), 409),
        (json!({ "name": "ci/2", "role": "viewer" }), 422),
        (json!({ "name": "c", "role": "viewer", "days": 0 }), 422),
        (json!({ "name": "c", "role": "account" }), 422),
        (json!({ "name": "c", "role": "king" }), 400),
        (json!({ "name": "c" }), 400),
    ] {
        let reply = root.ask("POST", "/v1/tokens", Some(&bad))?;
        assert_eq!(reply.status, status, "{bad}: {}", reply.text);
    }
    // It survives a restart; a session that was opened with it ends with it.
    let appliance = appliance.kill()?.start()?;
    let (nobody, root) = (AdminClient::anonymous(&appliance), AdminClient::root(&appliance)?);
    let ci = nobody.with_token(&word);
    let session = nobody.with_session(&json!({ "token": word }))?;
    assert_eq!(session.ask("GET", "/v1/whoami", None)?.status, 200);
    assert_eq!(ci.ask("DELETE", "/v1/tokens/ci", None)?.status, 403);
    assert_eq!(root.ask("DELETE", "/v1/tokens/ci", None)?.status, 204);
    assert_eq!(ci.ask("GET", "/v1/whoami", None)?.status, 401);
    assert_eq!(session.ask("GET", "/v1/whoami", None)?.status, 401);
    assert_eq!(root.ask("DELETE", "/v1/tokens/ci", None)?.status, 404);
    Ok(())
}

#[test]
fn concurrent_user_changes_conflict_and_the_last_admin_stays() -> Result<()> {
    let (_stage, appliance) = appliance()?;
    let (nobody, root) = (AdminClient::anonymous(&appliance), AdminClient::root(&appliance)?);
    root.make_user("ann", "correct horse", &json!({ "role": "admin" }))?;
    root.make_user("eve", "correct horse", &json!({ "role": "admin" }))?;
    root.make_user("bob", "battery staple", &json!({ "role": "viewer" }))?;
    let login =
        |user: &str, password: &str| nobody.with_session(&json!({ "user": user, "password": password }));
    let (ann, eve) = (login("ann", "correct horse")?, login("eve", "correct horse")?);
    for turn in 0..5 {
        let found = ann.ask("GET", "/v1/users/bob", None)?;
        let tag = found.header("etag")?.to_owned();
        let start = Barrier::new(2);
        let change = |admin: &AdminClient, role: &str| {
            let admin = admin.with_header("if-match", &tag);
            let role = json!({ "role": role });
            start.wait();
            admin.ask("PATCH", "/v1/users/bob", Some(&role))
        };
        let replies = std::thread::scope(|scope| {
            let threads = [scope.spawn(|| change(&ann, "operator")), scope.spawn(|| change(&eve, "viewer"))];
            threads.map(|thread| thread.join().map_err(|_| anyhow::anyhow!("it panicked")))
        });
        let mut statuses = Vec::new();
        for reply in replies {
            statuses.push(reply??.status);
        }
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 412], "turn {turn}");
    }
    // Two admins demote each other: one stays, or nobody could manage users any more.
    let start = Barrier::new(2);
    let demote = |admin: &AdminClient, other: &str| {
        start.wait();
        admin.ask("PATCH", &format!("/v1/users/{other}"), Some(&json!({ "role": "viewer" })))
    };
    std::thread::scope(|scope| {
        scope.spawn(|| demote(&ann, "eve"));
        scope.spawn(|| demote(&eve, "ann"));
    });
    let users = root.ask("GET", "/v1/users", None)?.json()?;
    let admins: Vec<&str> = users
        .as_array()
        .into_iter()
        .flatten()
        .filter(|user| user["role"] == "admin")
        .filter_map(|user| user["name"].as_str())
        .collect();
    ensure!(admins.len() == 1, "{users:#}");
    let path = format!("/v1/users/{}", admins[0]);
    for (method, body) in [("DELETE", None), ("PATCH", Some(json!({ "role": "operator" })))] {
        let reply = root.ask(method, &path, body.as_ref())?;
        assert_eq!((reply.status, reply.reason().as_str()), (409, "last-admin"), "{}", reply.text);
    }
    // A role change applies immediately, also to open sessions; a new password and a removal end the user's sessions.
    let bob = login("bob", "battery staple")?;
    assert_eq!(root.ask("PATCH", "/v1/users/bob", Some(&json!({ "role": "operator" })))?.status, 200);
    assert_eq!(bob.ask("GET", "/v1/whoami", None)?.json()?["role"], "operator");
    let own = json!({ "old": "battery staple", "new": "paper clip tree" });
    let second = login("bob", "battery staple")?;
    let wrong = json!({ "old": "battery", "new": "paper clip tree" });
    assert_eq!(bob.ask("POST", "/v1/whoami/password", Some(&wrong))?.status, 422);
    let short = json!({ "old": "battery staple", "new": "short" });
    let reply = bob.ask("POST", "/v1/whoami/password", Some(&short))?;
    assert_eq!((reply.status, &reply.json()?["problems"][0]["pointer"]), (422, &json!("/new")));
    assert_eq!(bob.ask("POST", "/v1/whoami/password", Some(&own))?.status, 204);
    assert_eq!(bob.ask("GET", "/v1/whoami", None)?.status, 200, "the session that changed it stays");
    assert_eq!(second.ask("GET", "/v1/whoami", None)?.status, 401);
    let old = json!({ "user": "bob", "password": "battery staple" });
    assert_eq!(nobody.ask("POST", "/v1/sessions", Some(&old))?.status, 401);
    assert_eq!(root.ask("DELETE", "/v1/users/bob", None)?.status, 204);
    assert_eq!(bob.ask("GET", "/v1/whoami", None)?.status, 401);
    Ok(())
}

#[test]
fn an_account_sees_its_own_messages_and_texts_only_if_granted() -> Result<()> {
    let (_stage, appliance) = appliance()?;
    let (nobody, root) = (AdminClient::anonymous(&appliance), AdminClient::root(&appliance)?);
    let ours = submit(&appliance, SHOP, "a text of ours")?;
    let theirs = submit(&appliance, RIVAL, "a text of theirs")?;
    let token = |name: &str, bodies: bool| {
        root.make_token(name, &json!({ "role": "account", "account": "shop", "bodies": bodies }))
    };
    let blind = nobody.with_token(&token("blind", false)?);
    let reader = nobody.with_token(&token("reader", true)?);
    let path = |id: &str, query: &str| format!("/v1/messages/{id}{query}");

    let trace = blind.ask("GET", &path(&ours, ""), None)?;
    assert_eq!(trace.status, 200, "{}", trace.text);
    ensure!(!trace.text.contains("a text of ours"));
    let reply = blind.ask("GET", &path(&ours, "?body=1"), None)?;
    assert_eq!((reply.status, reply.reason().as_str()), (403, "permission-missing"));
    let reply = reader.ask("GET", &path(&ours, "?body=1"), None)?;
    ensure!(reply.status == 200 && reply.text.contains("a text of ours"), "{}", reply.text);

    // Another account's message and a missing one get the same answer.
    let unlike = reader.ask("GET", &path(&theirs, "?body=1"), None)?;
    let (number, unknown) = (theirs.parse::<u64>()?, theirs.parse::<u64>()? + 1_000);
    let none = reader.ask("GET", &path(&unknown.to_string(), "?body=1"), None)?;
    assert_eq!((unlike.status, none.status), (404, 404));
    assert_eq!(unlike.text.replace(&number.to_string(), "N"), none.text.replace(&unknown.to_string(), "N"));
    for path in ["/v1/history?account=rival", "/v1/statistics?account=rival", "/v1/history?acc%6funt=rival"] {
        let reply = blind.ask("GET", path, None)?;
        assert_eq!((reply.status, reply.reason().as_str()), (403, "other-account"), "{path}");
    }
    for path in ["/v1/history", "/v1/history?account=shop", "/v1/history?account=", "/v1/statistics"] {
        assert_eq!(blind.ask("GET", path, None)?.status, 200, "{path}");
    }
    // An admin has all permissions, but this one only if it was granted.
    let admin = nobody.with_token(&root.make_token("boss", &json!({ "role": "admin" }))?);
    assert_eq!(admin.ask("GET", &path(&ours, "?body=1"), None)?.status, 403);

    let read = audit(&root, "&what=body%3D1")?;
    let reads: Vec<_> = read
        .iter()
        .map(|entry| {
            let word = |name: &str| entry[name].as_str().unwrap_or_default().to_owned();
            (word("by"), word("subject"), word("outcome"), word("from"))
        })
        .collect();
    let line = |by: &str, subject: &str, outcome: &str| {
        (by.to_owned(), subject.to_owned(), outcome.to_owned(), "127.0.0.1".to_owned())
    };
    assert_eq!(
        reads,
        [
            line("token:boss", &ours, "refused"),
            line("token:reader", &unknown.to_string(), "refused"),
            line("token:reader", &theirs, "refused"),
            line("token:reader", &ours, "done"),
            line("token:blind", &ours, "refused"),
        ]
    );
    Ok(())
}

#[test]
fn every_change_and_refusal_is_logged_permanently() -> Result<()> {
    let (_stage, appliance) = appliance()?;
    let (nobody, root) = (AdminClient::anonymous(&appliance), AdminClient::root(&appliance)?);
    root.make_user("ann", "correct horse", &json!({ "role": "operator" }))?;
    let ann = nobody.with_session(&json!({ "user": "ann", "password": "correct horse" }))?;
    assert_eq!(ann.ask("PUT", "/v1/pools/support", Some(&json!({ "strategy": "random" })))?.status, 200);
    assert_eq!(ann.ask("DELETE", "/v1/tables/rates", None)?.status, 403);
    assert_eq!(ann.ask("DELETE", "/v1/pools/none", None)?.status, 404);
    let change = json!({ "role": "viewer", "password": "another horse" });
    assert_eq!(root.ask("PATCH", "/v1/users/ann", Some(&change))?.status, 200);
    // Reads change nothing.
    assert_eq!(root.ask("GET", "/v1/users", None)?.status, 200);
    let explain = json!({ "origin": "shop", "destination": "8613012345678" });
    assert_eq!(root.ask("POST", "/v1/explain", Some(&explain))?.status, 200);

    let lines = |entries: &[Value]| -> Vec<String> {
        let texts = entries.iter().rev().map(|entry| {
            format!(
                "{} {} {} {} {}",
                entry["serial"],
                entry["by"].as_str().unwrap_or_default(),
                entry["what"].as_str().unwrap_or_default(),
                entry["subject"].as_str().unwrap_or_default(),
                entry["outcome"].as_str().unwrap_or_default(),
            )
        });
        texts.collect()
    };
    let entries = audit(&root, "")?;
    let want = [
        "1 token POST /v1/users  done",
        "2 ann POST /v1/sessions  done",
        "3 ann PUT /v1/pools/{pool} support done",
        "4 ann DELETE /v1/tables/{name} rates refused",
        "5 ann DELETE /v1/pools/{pool} none refused",
        "6 token PATCH /v1/users/{name} ann done",
    ];
    assert_eq!(lines(&entries), want, "{entries:#?}");
    let text = serde_json::to_string(&entries)?;
    ensure!(!text.contains("horse") && !text.contains("argon2"), "a secret is in the log: {text}");
    assert_eq!(
        entries[0]["detail"],
        "new password; was role operator, reads no texts; is role viewer, reads no texts"
    );
    ensure!(entries.iter().all(|entry| entry["from"] == "127.0.0.1" && entry["at"].as_u64() > Some(0)));

    assert_eq!(lines(&audit(&root, "&by=ann&before=5")?), want[1..4]);
    assert_eq!(lines(&audit(&root, "&subject=support")?), want[2..3]);
    let page = root.ask("GET", "/v1/audit?limit=2", None)?.json()?;
    let next = format!("/v1/audit?limit=2&before={}", page["next"]);
    let page = root.ask("GET", &next, None)?.json()?;
    assert_eq!(lines(page["entries"].as_array().context("no entries")?), want[2..4]);
    for (query, status) in [("limit=0", 400), ("limit=1001", 400), ("who=ann", 400), ("before=x", 400)] {
        assert_eq!(root.ask("GET", &format!("/v1/audit?{query}"), None)?.status, status, "{query}");
    }
    // Nothing removes a line, not even a crash.
    for method in ["DELETE", "PUT", "PATCH", "POST"] {
        let reply = root.ask(method, "/v1/audit", (method != "DELETE").then(|| json!({})).as_ref())?;
        assert_eq!(reply.status, 405, "{method}");
    }
    let appliance = appliance.kill()?.start()?;
    let root = AdminClient::root(&appliance)?;
    assert_eq!(lines(&audit(&root, "")?), want);
    root.make_token("ci", &json!({ "role": "viewer" }))?;
    assert_eq!(audit(&root, "")?[0]["serial"], 7);
    Ok(())
}

#[test]
fn the_log_says_how_many_messages_a_queue_action_affected_and_why() -> Result<()> {
    let (_stage, appliance) = appliance()?;
    let root = AdminClient::root(&appliance)?;
    for text in ["one", "two", "three"] {
        submit(&appliance, SHOP, text)?;
    }
    let cancel = json!({ "action": "cancel", "scope": { "peer": "upstream", "account": "shop" }, "why": "wrong prices" });
    assert_eq!(root.ask("POST", "/v1/queue-actions", Some(&cancel))?.status, 201);
    assert_eq!(root.ask("DELETE", "/v1/queue-actions/1", None)?.status, 200);
    appliance.ask("PUT", "/v1/tables/rates?kind=prefix", b"41,5\n49,7\n")?;
    let level = json!({ "level": "warn" });
    assert_eq!(root.ask("PUT", "/v1/log", Some(&level))?.status, 200);
    let details: Vec<Value> =
        audit(&root, "")?.into_iter().rev().map(|entry| entry["detail"].clone()).collect();
    let want = [
        "queue action 1: cancel, peer upstream, account shop; 3 messages; why: wrong prices",
        "queue action 1: cancel, peer upstream, account shop; undone after 0 messages",
        "prefix, 2 rows",
        "warn",
    ];
    assert_eq!(details, want);
    Ok(())
}

/// A log line costs an fsync: refused requests must not fill the disk.
#[test]
fn many_refusals_cause_few_log_lines() -> Result<()> {
    const REFUSALS: usize = 300;
    let (_stage, appliance) = appliance()?;
    let (nobody, root) = (AdminClient::anonymous(&appliance), AdminClient::root(&appliance)?);
    let body = json!({ "role": "account", "account": "shop" });
    let poor = nobody.with_token(&root.make_token("poor", &body)?);
    for _ in 0..REFUSALS {
        assert_eq!(poor.ask("DELETE", "/v1/tables/rates", None)?.status, 403);
    }
    // Twenty per minute, and a slow machine may need several minutes.
    let lines = audit(&root, "&by=token:poor")?.len();
    ensure!((20..REFUSALS / 2).contains(&lines), "{lines} lines");
    Ok(())
}

/// The status of an answer, which is read to its end.
fn status(answers: &mut BufReader<TcpStream>) -> Result<u16> {
    let (mut first, mut length) = (String::new(), 0);
    answers.read_line(&mut first).context("the connection was reset")?;
    loop {
        let mut line = String::new();
        answers.read_line(&mut line)?;
        if line.trim().is_empty() {
            break;
        }
        if let Some((_, value)) =
            line.split_once(':').filter(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        {
            length = value.trim().parse()?;
        }
    }
    answers.read_exact(&mut vec![0; length])?;
    first.split(' ').nth(1).with_context(|| format!("no status: {first:?}"))?.parse().context("the status")
}

#[test]
fn a_client_refused_while_sending_can_read_the_reason_and_continue() -> Result<()> {
    let (_stage, appliance) = appliance()?;
    let refused: [(SocketAddr, &str); 2] = [
        (appliance.config().http(), "PUT /v1/configuration"),
        (appliance.config().business(), "POST /v1/nothing"),
    ];
    for (address, what) in refused {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(behaviour_tests::TIMEOUT))?;
        let mut answers = BufReader::new(stream.try_clone()?);
        let body = vec![b'x'; 3_000_000];
        write!(
            stream,
            "{what} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer wrong\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n",
            body.len()
        )?;
        let first = status(&mut answers)?;
        ensure!([401, 404].contains(&first), "{what}: {first}");
        stream.write_all(&body)?;
        write!(stream, "GET /v1/openapi.json HTTP/1.1\r\nHost: {address}\r\n\r\n")?;
        assert_eq!(status(&mut answers)?, 200, "{what}");
    }
    Ok(())
}

#[test]
fn account_passwords_are_not_valid_for_the_api() -> Result<()> {
    let (_stage, appliance) = appliance()?;
    let nobody = AdminClient::anonymous(&appliance);
    for reply in [
        nobody.ask("POST", "/v1/sessions", Some(&json!({ "user": "shop", "password": PASSWORD })))?,
        nobody.with_header("authorization", SHOP).ask("GET", "/v1/whoami", None)?,
        nobody.with_token(PASSWORD).ask("GET", "/v1/whoami", None)?,
    ] {
        assert_eq!(reply.status, 401, "{}", reply.text);
    }
    Ok(())
}

#[test]
fn the_command_line_logs_in_and_stays_logged_in() -> Result<()> {
    let (fixture, appliance) = appliance()?;
    let root = AdminClient::root(&appliance)?;
    root.make_user("ann", "correct horse", &json!({ "role": "admin" }))?;
    let settings = fixture.folder().join("settings");
    let run = |arguments: &[&str], typed: &str| -> Result<(Option<i32>, String, String)> {
        let mut process = Command::new(fixture.binary())
            .args(arguments)
            .env("SWITCHYARD_URL", format!("http://{}", appliance.config().http()))
            .env("XDG_CONFIG_HOME", &settings)
            .env_remove("SWITCHYARD_TOKEN")
            .env_remove("SWITCHYARD_TOKEN_FILE")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let mut input = process.stdin.take().context("no standard input")?;
        if !typed.is_empty() {
            input.write_all(typed.as_bytes())?;
        }
        drop(input);
        let output = process.wait_with_output()?;
        let text = |octets: Vec<u8>| String::from_utf8_lossy(&octets).into_owned();
        Ok((output.status.code(), text(output.stdout), text(output.stderr)))
    };
    let (code, _, error) = run(&["whoami"], "")?;
    ensure!(code == Some(2) && error.contains("switchyard login"), "{code:?} {error}");
    assert_eq!(run(&["login", "ann"], "wrong horse\n")?.0, Some(2));
    let (code, out, error) = run(&["login", "ann"], "correct horse\n")?;
    ensure!(code == Some(0) && out.contains("admin"), "{code:?} {out} {error}");
    let kept = settings.join("switchyard/logins.json");
    assert_eq!(std::fs::metadata(&kept)?.permissions().mode() & 0o777, 0o600);
    ensure!(!std::fs::read_to_string(&kept)?.contains("horse"), "the password is kept");

    let (code, out, _) = run(&["whoami", "--json"], "")?;
    let standing: Value = serde_json::from_str(&out)?;
    assert_eq!((code, &standing["user"], &standing["csrf"]), (Some(0), &json!("ann"), &Value::Null));
    let (code, _, error) = run(&["user", "add", "bob", "--role", "viewer"], "battery staple\n")?;
    ensure!(code == Some(0), "{error}");
    let (_, out, _) = run(&["user", "list"], "")?;
    ensure!(out.contains("bob") && out.contains("viewer"), "{out}");
    let (_, word, _) = run(&["token", "make", "ci", "--role", "viewer"], "")?;
    let ci = AdminClient::anonymous(&appliance).with_token(word.trim());
    assert_eq!(ci.ask("GET", "/v1/whoami", None)?.json()?["user"], "token:ci");
    assert_eq!(run(&["token", "revoke", "ci"], "")?.0, Some(0));
    assert_eq!(run(&["token", "revoke", "ci"], "")?.0, Some(1));
    let (_, out, _) = run(&["audit", "--by", "ann", "--what", "/v1/users"], "")?;
    ensure!(out.lines().count() == 2 && out.contains("POST /v1/users"), "{out}");
    assert_eq!(run(&["logout"], "")?.0, Some(0));
    assert_eq!(run(&["whoami"], "")?.0, Some(2));
    assert_eq!(run(&["logout"], "")?.0, Some(1));
    Ok(())
}

/// Two named appliances: each command reaches the named one, with the token of its context.
#[test]
fn contexts_name_appliances() -> Result<()> {
    let (fixture, appliance) = appliance()?;
    let settings = fixture.folder().join("settings");
    let token_file = appliance.config().data().join("token");
    let run = |arguments: &[&str], environment: &[(&str, &str)]| -> Result<(Option<i32>, String, String)> {
        let output = Command::new(fixture.binary())
            .args(arguments)
            .env("XDG_CONFIG_HOME", &settings)
            .env_remove("SWITCHYARD_URL")
            .env_remove("SWITCHYARD_URL_FILE")
            .env_remove("SWITCHYARD_TOKEN")
            .env_remove("SWITCHYARD_TOKEN_FILE")
            .envs(environment.iter().copied())
            .output()?;
        let text = |octets: Vec<u8>| String::from_utf8_lossy(&octets).into_owned();
        Ok((output.status.code(), text(output.stdout), text(output.stderr)))
    };
    let url = format!("http://{}", appliance.config().http());
    let token_file = token_file.to_str().context("a path is no text")?;
    let (code, _, error) = run(&["context", "add", "lab", "--url", &url, "--token-file", token_file], &[])?;
    ensure!(code == Some(0), "{error}");
    let nowhere = "http://127.0.0.1:9";
    let (code, _, error) = run(&["context", "add", "gone", "--url", nowhere, "--token", "s3cret"], &[])?;
    ensure!(code == Some(0), "{error}");
    let kept = settings.join("switchyard/contexts.json");
    assert_eq!(std::fs::metadata(&kept)?.permissions().mode() & 0o777, 0o600);

    // The first context is the current one.
    let (code, out, error) = run(&["whoami", "--json"], &[])?;
    ensure!(code == Some(0) && out.contains("\"role\":\"admin\""), "{code:?} {out} {error}");
    let (_, out, _) = run(&["context", "list"], &[])?;
    ensure!(out.contains("*") && out.contains("lab") && out.contains(nowhere), "{out}");
    ensure!(!out.contains("s3cret"), "the list shows a token: {out}");
    assert_eq!(run(&["context", "use", "gone"], &[])?.0, Some(0));
    let (code, _, error) = run(&["whoami"], &[])?;
    ensure!(code == Some(2) && error.contains(nowhere), "{code:?} {error}");
    assert_eq!(run(&["whoami", "--context", "lab"], &[])?.0, Some(0));
    assert_eq!(run(&["whoami"], &[("SWITCHYARD_CONTEXT", "lab")])?.0, Some(0));
    // The URL of the environment comes before the current context, and its token is not that of a context.
    let environment = [("SWITCHYARD_URL", url.as_str()), ("SWITCHYARD_TOKEN_FILE", token_file)];
    assert_eq!(run(&["whoami"], &environment)?.0, Some(0));
    assert_eq!(run(&["context", "add", "bare", "--url", &url], &[])?.0, Some(0));
    let (code, _, error) = run(&["whoami", "--context", "bare"], &environment)?;
    ensure!(code == Some(2) && error.contains("no credentials"), "{code:?} {error}");
    for wrong in [
        &["context", "use", "nothing"][..],
        &["whoami", "--context", "nothing"],
        &["context", "add", "a b", "--url", nowhere],
    ] {
        ensure!(run(wrong, &[])?.0 == Some(2), "{wrong:?} is accepted");
    }
    assert_eq!(run(&["context", "remove", "gone"], &[])?.0, Some(0));
    Ok(())
}
