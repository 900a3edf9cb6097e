//! Subscribers on the command line: `switchyard sms` against the real appliance, as other users of the system where the tests
//! run as root, and through a real sshd.

use anyhow::{Context, Result, ensure};
use behaviour_tests::appliance::{Appliance, Blueprint, PASSWORD, free_port};
use behaviour_tests::{PATIENCE, Peer, Stage, until};
use serde_json::{Value, json};
use std::fs::Permissions;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};

const A: &str = "+16195550101";
const B: &str = "+16195550102";
const C: &str = "+16195550103";

/// Users of the system that need no names.
const USER_A: u32 = 64_101;
const USER_B: u32 = 64_102;
const OPERATOR: u32 = 64_103;
const STRANGER: u32 = 64_104;

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn me() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// A folder that every user can look into, with the program and the socket in it.
struct House {
    stage: Stage,
    open: tempfile::TempDir,
}

impl House {
    fn new() -> Result<Self> {
        let stage = Stage::new()?;
        let open = tempfile::Builder::new().permissions(Permissions::from_mode(0o755)).tempdir()?;
        let program = open.path().join("switchyard");
        // Where it was built other users may not look.
        if std::fs::hard_link(stage.binary(), &program).is_err() {
            std::fs::copy(stage.binary(), &program)?;
        }
        Ok(Self { stage, open })
    }

    fn program(&self) -> PathBuf {
        self.open.path().join("switchyard")
    }

    fn socket(&self) -> PathBuf {
        self.open.path().join("sms.sock")
    }

    /// An appliance with a door, and these entries of `[[shell.users]]`.
    fn blueprint(&self, users: &[String]) -> Result<Blueprint> {
        let mut blueprint = self.stage.blueprint()?;
        let users: String = users.iter().map(|user| format!("[[shell.users]]\n{user}\n")).collect();
        blueprint.tables(&format!(
            "[shell]\nsocket = {:?}\nmode = \"0666\"\n{users}",
            self.socket().display().to_string()
        ));
        Ok(blueprint)
    }

    fn sms(&self, uid: u32, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.program());
        command.arg("sms").arg("--socket").arg(self.socket()).args(arguments);
        command.stdin(Stdio::null()).env("TZ", "UTC");
        if uid != me() {
            command.uid(uid).gid(uid);
        }
        command
    }

    fn run(&self, uid: u32, arguments: &[&str]) -> Result<Output> {
        self.sms(uid, arguments).output().context("running sms")
    }

    /// What it prints, where it does what it should.
    fn done(&self, uid: u32, arguments: &[&str]) -> Result<String> {
        let output = self.run(uid, arguments)?;
        ensure!(output.status.success(), "{arguments:?} as {uid}: {}", said(&output));
        Ok(String::from_utf8(output.stdout)?)
    }

    fn send(&self, uid: u32, arguments: &[&str]) -> Result<String> {
        let id = self.done(uid, &[&["send"], arguments].concat())?;
        Ok(id.trim().to_owned())
    }

    fn page(&self, uid: u32, arguments: &[&str]) -> Result<Value> {
        Ok(serde_json::from_str(&self.done(uid, &[arguments, &["--json"]].concat())?)?)
    }

    fn refused(&self, uid: u32, arguments: &[&str], exit: i32, words: &str) -> Result<()> {
        let output = self.run(uid, arguments)?;
        ensure!(output.status.code() == Some(exit), "{arguments:?} as {uid}: {}", said(&output));
        let told = String::from_utf8_lossy(&output.stderr);
        ensure!(told.contains(words), "{arguments:?} as {uid} was told: {told}");
        ensure!(output.stdout.is_empty(), "{arguments:?} as {uid} printed something");
        Ok(())
    }
}

fn said(output: &Output) -> String {
    let words = [&output.stdout[..], &output.stderr[..]].concat();
    format!("{}: {}", output.status, String::from_utf8_lossy(&words))
}

fn user(uid: u32, numbers: &[&str], more: &str) -> String {
    format!("uid = {uid}\nnumbers = {numbers:?}\n{more}")
}

/// The texts of a page, newest first; `None` where one is hidden.
fn texts(page: &Value) -> Vec<Option<&str>> {
    page["messages"].as_array().into_iter().flatten().map(|item| item["text"].as_str()).collect()
}

fn archived(appliance: &Appliance) -> Result<()> {
    appliance.wait_until(PATIENCE, "/v1/archive", |archive| archive["backlog"] == 0).map(drop)
}

#[test]
fn two_users_see_their_own_messages_only_by_uid_where_the_test_is_root() -> Result<()> {
    let house = House::new()?;
    // Nobody but root can be two users. Elsewhere one user has both numbers, and is what it says it is.
    let (user_a, user_b) = if is_root() { (USER_A, USER_B) } else { (me(), me()) };
    let as_a = |arguments: &[&'static str]| [&["--as", A], arguments].concat();
    let as_b = |arguments: &[&'static str]| [&["--as", B], arguments].concat();
    let mut users = vec![user(user_a, &[A], "deliver = true"), user(user_b, &[B], "deliver = true")];
    if is_root() {
        users.push(format!("uid = {OPERATOR}\noperator = true"));
    }
    let mut blueprint = house.blueprint(&users)?;
    blueprint.archive("sqlite:archive.db");
    // The inboxes come before it.
    blueprint.router(&house.stage.guest("prefix_router"), "[default]\nreject = \"prohibited\"\n")?;
    let appliance = blueprint.start()?;

    let to_b = as_a(&["send", B, "for b \u{1b}[31mred\nline"]);
    let first = house.done(user_a, &to_b)?.trim().to_owned();
    house.done(user_b, &as_b(&["send", B, "note to myself"]))?;
    house.done(user_a, &as_a(&["send", A, "of a and for a"]))?;
    let look = || -> Result<()> {
        until("all of it is delivered", || {
            let log = house.page(user_b, &as_b(&["log"]))?;
            let items = log["messages"].as_array().context("messages")?;
            Ok(items.len() == 2 && items.iter().all(|item| item["state"] == "delivered"))
        })?;
        let inbox = house.page(user_b, &as_b(&["inbox"]))?;
        assert_eq!(texts(&inbox), [Some("note to myself"), Some("for b \u{1b}[31mred\nline")]);
        let got = &inbox["messages"][1];
        assert_eq!((&got["id"], &got["from"], &got["to"]), (&json!(first), &json!(A), &json!(B)));
        assert_eq!(got["direction"], "in");
        let log = house.page(user_a, &as_a(&["log"]))?;
        assert_eq!(texts(&log), [Some("of a and for a"), Some("for b \u{1b}[31mred\nline")]);
        assert_eq!(log["messages"][1]["direction"], "out");
        assert_eq!(texts(&house.page(user_a, &as_a(&["inbox"]))?), [Some("of a and for a")]);
        // What is printed for people holds nothing that a terminal would obey, and one message a line.
        let printed = house.done(user_b, &as_b(&["inbox"]))?;
        ensure!(printed.lines().count() == 2, "{printed:?}");
        ensure!(printed.lines().all(|line| !line.chars().any(char::is_control)), "{printed:?}");
        ensure!(printed.contains("for b ␛[31mred␊line") && printed.contains(A), "{printed:?}");
        // A page at a time.
        let newest = house.page(user_b, &as_b(&["log", "--limit", "1"]))?;
        assert_eq!(texts(&newest), [Some("note to myself")]);
        let before = newest["next"].as_str().context("a second page")?;
        let page = house.page(user_b, &["--as", B, "log", "--limit", "1", "--before", before])?;
        assert_eq!((&page["messages"][0]["id"], &page["next"]), (&json!(first), &Value::Null));
        ensure!(page.get("incomplete").is_none(), "{page}");
        Ok(())
    };
    look()?;
    archived(&appliance)?;
    look()?;
    let appliance = appliance.kill()?.start()?;
    look()?;

    // Another's number is refused, however it is asked for.
    let others = if is_root() { B } else { C };
    house.refused(user_a, &["--as", others, "log"], 77, "may not act as")?;
    house.refused(user_a, &["--as", others, "send", A, "x"], 77, "may not act as")?;
    house.refused(user_a, &["--as", A, "log", "--number", others], 77, "only an operator")?;
    house.refused(user_a, &["--operator", "log"], 77, "is no operator")?;
    if is_root() {
        assert_eq!(texts(&house.page(USER_A, &["log"])?).len(), 2, "who has one number need not name it");
        house.refused(STRANGER, &["log"], 77, "may not use this appliance")?;
        house.refused(STRANGER, &["--as", A, "log"], 77, "may not use this appliance")?;
        house.refused(0, &["--as", A, "log"], 77, "may not use this appliance")?;
        let all = house.page(OPERATOR, &["log"])?;
        assert_eq!(texts(&all), [None, None, None]);
        ensure!(!all.to_string().contains("note"), "an operator sees a text: {all}");
        let printed = house.done(OPERATOR, &["log"])?;
        ensure!(!printed.contains("note") && printed.contains("octets"), "{printed}");
        assert_eq!(texts(&house.page(OPERATOR, &["inbox", "--number", B])?), [None, None]);
        house.refused(OPERATOR, &["send", A, "x"], 77, "an operator has no number")?;
        house.refused(OPERATOR, &["--as", A, "inbox"], 77, "may not act as")?;
    }
    house.refused(user_a, &["--as", A, "send", "mother", "x"], 65, "is no number")?;
    house.refused(user_a, &["--as", A, "send", "+491701234567", "x"], 1, "rejected: prohibited")?;
    let (status, _) = appliance.stop()?;
    ensure!(status.success(), "stopped with {status}");
    house.refused(user_a, &["--as", A, "log"], 69, "Is the appliance running")?;
    Ok(())
}

#[test]
fn what_was_sent_survives_a_kill_before_it_is_delivered_and_is_sent_once() -> Result<()> {
    let house = House::new()?;
    let port = free_port()?;
    let mut blueprint = house.blueprint(&[user(me(), &[A], "")])?;
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    blueprint.peer("upstream", address, "uncertain = \"send-again\"");
    let appliance = blueprint.start()?;
    let id = house.send(me(), &["--key", "one", "+491701234567", "durable?"])?;
    let appliance = appliance.kill()?.start()?;
    // The key is remembered, too: a repetition is the same message, and another text under it is refused.
    assert_eq!(house.send(me(), &["--key", "one", "+491701234567", "durable?"])?, id);
    house.refused(me(), &["send", "--key", "one", "+491701234567", "other"], 65, "used before")?;
    let waiting = house.page(me(), &["log"])?;
    assert_eq!(
        (&waiting["messages"][0]["id"], &waiting["messages"][0]["state"]),
        (&json!(id), &json!("queued"))
    );
    let mut upstream = Peer::node("upstream.js", &json!({ "receipts": true, "port": port }))?;
    let submit = upstream.expect("submit")?;
    assert_eq!((&submit["text"], &submit["source"]), (&json!("durable?"), &json!("16195550101")));
    assert_eq!((&submit["destination"], &submit["source_ton"]), (&json!("491701234567"), &json!(1)));
    until("its receipt is in the log", || {
        Ok(house.page(me(), &["log"])?["messages"][0]["state"] == "delivered")
    })?;
    let log = house.page(me(), &["log"])?;
    assert_eq!(texts(&log), [Some("durable?")]);
    // No receipt of the house's own is left behind.
    appliance.wait_until(PATIENCE, "/v1/status", |status| status["waiting"] == 0)?;
    // Routing's refusal is told with a status of its own.
    let mut refused = house.sms(me(), &["send", "+491701234567"]);
    let mut sending = refused.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    sending.stdin.take().context("stdin")?.write_all("from standard input\n".as_bytes())?;
    let output = sending.wait_with_output()?;
    ensure!(output.status.success(), "{}", said(&output));
    assert_eq!(upstream.expect("submit")?["text"], "from standard input");
    Ok(())
}

#[test]
fn what_others_send_reaches_an_inbox_before_any_route_and_nothing_ends_where_nobody_reads() -> Result<()> {
    let house = House::new()?;
    let users = [user(me(), &[A], "deliver = true"), user(me(), &[B], "")];
    let mut blueprint = house.blueprint(&users)?;
    // A route may name the shell, too.
    blueprint.account("acme", "").native("shell");
    let appliance = blueprint.start()?;
    let mut esme = Peer::python(
        "esme.py",
        &json!({ "port": appliance.smpp().port(), "system_id": "acme", "password": PASSWORD }),
    )?;
    assert_eq!(esme.expect("bound")?["status"], 0);
    for (to, state) in [(A, "DELIVRD"), (B, "DELIVRD"), (C, "UNDELIV")] {
        let digits = to.trim_start_matches('+');
        esme.tell(&json!({ "text": format!("for {to}"), "from": "10655", "to": digits, "receipt": true }))?;
        let receipt = esme.expect("deliver")?;
        let text = receipt["text"].as_str().unwrap_or_default();
        ensure!(text.contains(&format!("stat:{state}")), "{to}: {text}");
    }
    for (own, note) in [(A, "inbox on the command line"), (B, "")] {
        let inbox = house.page(me(), &["--as", own, "inbox"])?;
        assert_eq!(texts(&inbox), [Some(&*format!("for {own}"))]);
        assert_eq!(inbox["messages"][0]["from"], "+10655", "as international as its sender said");
        let id = inbox["messages"][0]["id"].as_str().context("an id")?;
        let why = &appliance.get(&format!("/v1/messages/{id}"))?["why_here"];
        ensure!(why["note"].as_str().unwrap_or_default().contains(note), "{why}");
        assert_eq!(why["plugin"] == "house", own == A);
    }
    let asked = json!({ "origin": "acme", "destination": A }).to_string();
    let explained = appliance.ask("POST", "/v1/explain", asked.as_bytes())?.to_string();
    ensure!(explained.contains("inbox on the command line"), "{explained}");
    Ok(())
}

/// A caller that says what it likes.
struct Caller(BufReader<UnixStream>);

impl Caller {
    fn new(house: &House) -> Result<Self> {
        let stream = UnixStream::connect(house.socket())?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self(BufReader::new(stream)))
    }

    fn say(&mut self, line: &str) -> Result<()> {
        Ok(self.0.get_mut().write_all(format!("{line}\n").as_bytes())?)
    }

    /// The next answer; `None` when the appliance has hung up.
    fn hear(&mut self) -> Result<Option<Value>> {
        let mut line = String::new();
        match self.0.read_line(&mut line) {
            Ok(0) => Ok(None),
            // Hung up on while we were still talking.
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => Ok(None),
            Ok(_) => Ok(Some(serde_json::from_str(&line)?)),
            Err(error) => Err(error.into()),
        }
    }

    fn ask(&mut self, line: &str) -> Result<Value> {
        // Whoever was turned away at once can still hear why.
        let _ = self.say(line);
        self.hear()?.context("hung up")
    }
}

fn kind(answer: &Value) -> &str {
    answer["error"]["kind"].as_str().unwrap_or("no error")
}

const HELLO: &str = r#"{"id": 1, "ask": {"hello": {"as": "+16195550101"}}}"#;

#[test]
fn bad_lines_hurt_nobody_and_connections_are_limited() -> Result<()> {
    let house = House::new()?;
    let mut blueprint = house.stage.blueprint()?;
    blueprint.tables(&format!(
        "[shell]\nsocket = {:?}\nconnections = 6\nconnections-per-user = 4\nparts = 255\n[[shell.users]]\n{}\n",
        house.socket().display().to_string(),
        user(me(), &[A], "deliver = true")
    ));
    let appliance = blueprint.start()?;
    let mut caller = Caller::new(&house)?;
    for line in
        ["", "x", "{}", "[1]", r#"{"id": 1, "ask": {"shell": {}}}"#, r#"{"id": -1, "ask": {"log": {}}}"#]
    {
        let answer = caller.ask(line)?;
        assert_eq!((kind(&answer), &answer["id"]), ("malformed", &Value::Null), "{line}: {answer}");
    }
    assert_eq!(caller.ask(HELLO)?, json!({ "id": 1, "ok": { "as": A } }));
    assert_eq!(kind(&caller.ask(HELLO)?), "malformed", "hello is said once");
    let send = json!({ "id": 7, "ask": { "send": { "to": A, "text": "x" } } });
    assert_eq!(caller.ask(&send.to_string())?["ok"]["to"], A);
    // Requests need not wait for answers; these come in their order.
    caller.say(&format!("{send}\n{}", json!({ "id": 8, "ask": { "log": { "limit": 1 } } })))?;
    assert_eq!(caller.hear()?.context("an answer")?["id"], 7);
    assert_eq!(caller.hear()?.context("an answer")?["id"], 8);
    for list in [json!({ "limit": 0 }), json!({ "limit": 100_000 }), json!({ "before": "yesterday" })] {
        let answer = caller.ask(&json!({ "id": 9, "ask": { "log": list } }).to_string())?;
        assert_eq!((kind(&answer), &answer["id"]), ("invalid", &json!(9)), "{answer}");
    }
    // One that follows says nothing more.
    caller.ask(&json!({ "id": 10, "ask": { "follow": {} } }).to_string())?;
    caller.say(&send.to_string())?;
    let mut last = caller.hear()?;
    while last.as_ref().is_some_and(|answer| answer.get("event").is_some()) {
        last = caller.hear()?;
    }
    assert_eq!(kind(&last.context("an answer")?), "malformed");
    assert_eq!(caller.hear()?, None);

    // The first word must be hello, and a line has an end.
    let mut rude = Caller::new(&house)?;
    assert_eq!(kind(&rude.ask(&send.to_string())?), "malformed");
    assert_eq!(rude.hear()?, None);
    let mut long = Caller::new(&house)?;
    long.ask(HELLO)?;
    // It may hang up before it has read all of this.
    let _ = long.say(&"x".repeat(80_000));
    if let Some(answer) = long.hear()? {
        assert_eq!(kind(&answer), "malformed");
        assert_eq!(long.hear()?, None);
    }

    let mut held = Vec::new();
    until("the places of those who have gone are free", || {
        held.clear();
        for _ in 0..4 {
            let mut one = Caller::new(&house)?;
            let answer = one.ask(HELLO)?;
            if answer.get("ok").is_none() {
                return Ok(false);
            }
            held.push(one);
        }
        Ok(true)
    })?;
    let mut fifth = Caller::new(&house)?;
    let answer = fifth.hear()?.context("an answer")?;
    assert_eq!(kind(&answer), "unavailable", "{answer}");
    assert_eq!(fifth.hear()?, None);
    house.refused(me(), &["log"], 75, "you have 4 connections already")?;
    ensure!(appliance.metric("switchyard_shell_turned_away_total")? >= 2.0);
    ensure!(appliance.metric("switchyard_shell_connections")? >= 4.0);
    let requests = appliance.metrics()?;
    let counted = |key: &str| requests.iter().find(|(name, _)| name == key).map(|(_, count)| *count);
    assert_eq!(
        counted("switchyard_shell_requests_total{request=\"log\",result=\"invalid\"}"),
        Some(3.0),
        "{requests:?}"
    );
    held.pop();
    until("there is room again", || Ok(house.run(me(), &["log"])?.status.success()))?;
    let (status, _) = appliance.stop()?;
    ensure!(status.success(), "stopped with {status}");
    // Those who were there were told.
    assert_eq!(kind(&held[0].hear()?.context("an answer")?), "unavailable");
    Ok(())
}

#[test]
fn a_submission_whose_answer_is_cut_off_is_repeated_and_accepted_once() -> Result<()> {
    let house = House::new()?;
    let blueprint = house.blueprint(&[user(me(), &[A], "deliver = true")])?;
    let appliance = blueprint.start()?;
    // Where the appliance was there is somebody who takes a request and dies.
    let blueprint = appliance.kill()?;
    std::fs::remove_file(house.socket())?;
    let listener = UnixListener::bind(house.socket())?;
    let mut sending = house.sms(me(), &["send", A, "once"]).stdout(Stdio::piped()).spawn()?;
    let (stream, _) = listener.accept()?;
    let mut caller = Caller(BufReader::new(stream));
    let hello = caller.hear()?.context("hello")?;
    caller.say(&json!({ "id": hello["id"], "ok": { "as": A } }).to_string())?;
    let request = caller.hear()?.context("a request")?;
    assert_eq!(request["ask"]["send"]["text"], "once");
    drop((caller, listener));
    // What it left behind is no hindrance.
    let _appliance = blueprint.start()?;
    let mut printed = String::new();
    sending.stdout.take().context("stdout")?.read_to_string(&mut printed)?;
    ensure!(sending.wait()?.success());
    let log = house.page(me(), &["log"])?;
    assert_eq!(
        (log["messages"].as_array().map(Vec::len), &log["messages"][0]["id"]),
        (Some(1), &json!(printed.trim()))
    );
    // The same request once more is the same message.
    let mut again = Caller::new(&house)?;
    again.ask(HELLO)?;
    assert_eq!(again.ask(&request.to_string())?["ok"]["message"], printed.trim());
    Ok(())
}

/// Lines of a program that runs on.
struct Following {
    process: Child,
    lines: Receiver<Value>,
}

impl Following {
    fn start(command: &mut Command) -> Result<Self> {
        let mut process = command.stdout(Stdio::piped()).spawn()?;
        let output = process.stdout.take().context("stdout")?;
        let (sender, lines) = channel();
        std::thread::Builder::new().name("follow".to_owned()).spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if sender.send(serde_json::from_str(&line).unwrap_or(Value::String(line))).is_err() {
                    break;
                }
            }
        })?;
        Ok(Self { process, lines })
    }

    /// The next event about a message.
    fn next(&self) -> Result<Value> {
        let event = self.lines.recv_timeout(PATIENCE).context("nothing is shown")?;
        Ok(event["message"].clone())
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        // Already gone is as good.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn follow_shows_what_is_new_and_what_becomes_of_it() -> Result<()> {
    let house = House::new()?;
    let users = [user(me(), &[A, B], "deliver = true"), user(me(), &[C], "operator = true")];
    let port = free_port()?;
    let mut blueprint = house.blueprint(&users)?;
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    blueprint.peer("upstream", address, "receipts = false\nuncertain = \"send-again\"");
    let appliance = blueprint.start()?;
    let b = Following::start(&mut house.sms(me(), &["--as", B, "follow", "--json"]))?;
    let everything = Following::start(&mut house.sms(me(), &["--operator", "follow", "--json"]))?;
    // Nothing says that it follows but that it does.
    for follower in [&b, &everything] {
        until("it follows", || {
            house.send(me(), &["--as", B, B, "knock"])?;
            Ok(follower.lines.recv_timeout(std::time::Duration::from_millis(200)).is_ok())
        })?;
    }
    // None of B's business.
    house.send(me(), &["--as", A, C, "from a to c"])?;
    let id = house.send(me(), &["--as", A, B, "new"])?;
    let mut seen = b.next()?;
    while seen["id"] != *id {
        assert_eq!(seen["text"], "knock", "{seen}");
        seen = b.next()?;
    }
    assert_eq!((&seen["text"], &seen["direction"]), (&json!("new"), &json!("in")));
    while seen["state"] != "delivered" {
        seen = b.next()?;
        assert_eq!(seen["id"], *id);
    }
    // What is sent to a peer that is down is shown, and shown again when it has gone.
    let out = house.send(me(), &["--as", B, "+491701234567", "out"])?;
    assert_eq!(b.next()?["state"], "queued");
    let mut upstream = Peer::node("upstream.js", &json!({ "port": port }))?;
    while upstream.expect("submit")?["text"] != "out" {}
    let mut seen = b.next()?;
    while seen["state"] != "relayed" {
        seen = b.next()?;
    }
    assert_eq!((&seen["id"], &seen["direction"]), (&json!(out), &json!("out")));
    let mut seen = everything.next()?;
    while seen["id"] != *out {
        assert_eq!(seen["text"], Value::Null);
        seen = everything.next()?;
    }
    assert_eq!((&seen["to"], &seen["text"]), (&json!("+491701234567"), &Value::Null));
    // It ends with the appliance, and says why.
    let (status, _) = appliance.stop()?;
    ensure!(status.success(), "stopped with {status}");
    let mut b = b;
    assert_eq!(b.process.wait()?.code(), Some(75));
    Ok(())
}

/// An sshd of the test's own, in the foreground, with a key of its own.
struct Sshd {
    process: Child,
    port: u16,
    folder: PathBuf,
}

fn run(command: &mut Command) -> Result<Output> {
    let shown = format!("{command:?}");
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("running {shown}"))?;
    ensure!(output.status.success(), "{shown}: {}", said(&output));
    Ok(output)
}

fn make_key(path: &Path) -> Result<String> {
    run(Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-C", "", "-f"]).arg(path))?;
    let public = std::fs::read_to_string(path.with_extension("pub"))?;
    // Type and key, without a comment.
    Ok(public.split_whitespace().take(2).collect::<Vec<_>>().join(" "))
}

impl Sshd {
    /// `line` is what stands in authorized_keys; `path` is where commands are found.
    fn start(folder: &Path, line: &str, path: &Path) -> Result<Self> {
        let server = Path::new("/usr/sbin/sshd");
        ensure!(server.exists(), "sshd is not installed; run: cargo xtask setup");
        if is_root() {
            // Where Debian's service would have made it.
            std::fs::create_dir_all("/run/sshd")?;
        }
        let port = free_port()?;
        make_key(&folder.join("host"))?;
        std::fs::write(folder.join("authorized_keys"), format!("{line}\n"))?;
        let config = format!(
            "ListenAddress 127.0.0.1\nPort {port}\nHostKey {0}/host\nAuthorizedKeysFile {0}/authorized_keys\n\
             PidFile none\nStrictModes no\nUsePAM no\nPasswordAuthentication no\n\
             PermitRootLogin prohibit-password\nSetEnv PATH={1}:/usr/bin:/bin\n",
            folder.display(),
            path.display()
        );
        std::fs::write(folder.join("sshd_config"), config)?;
        let log = std::fs::File::create(folder.join("log"))?;
        let process = Command::new(server)
            .args(["-D", "-e", "-f"])
            .arg(folder.join("sshd_config"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()?;
        let sshd = Self { process, port, folder: folder.to_owned() };
        until("sshd listens", || Ok(sshd.log().contains("Server listening")))?;
        Ok(sshd)
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }

    fn ssh(&self, options: &[&str], words: &[&str]) -> Command {
        let mut ssh = Command::new("ssh");
        ssh.args(["-F", "none", "-o", "BatchMode=yes", "-o", "IdentitiesOnly=yes", "-o"])
            .args(["StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=INFO"])
            .arg("-p")
            .arg(self.port.to_string())
            .arg("-i")
            .arg(self.folder.join("client"))
            .args(options)
            .args(["--", "127.0.0.1"])
            .args(words)
            .stdin(Stdio::null());
        ssh
    }

    fn output(&self, options: &[&str], words: &[&str]) -> Result<Output> {
        self.ssh(options, words).output().context("running ssh")
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The line for authorized_keys as the README has it.
fn documented() -> Result<String> {
    let readme = std::fs::read_to_string(xtask::house::root().join("README.md"))?;
    let line =
        readme.lines().map(|line| line.trim_matches('`')).find(|line| line.starts_with("restrict,command="));
    Ok(line.context("the README has no such line")?.to_owned())
}

#[test]
fn over_a_real_sshd_the_documented_line_lets_in_as_one_number_and_to_nothing_else() -> Result<()> {
    let house = House::new()?;
    let folder = tempfile::tempdir()?;
    // The key's number is listed nowhere but as one that has an inbox.
    let any = format!("uid = {}\nnumbers = \"any\"\ndeliver = [\"+1619555*\"]", me());
    let blueprint = house.blueprint(&[any, user(me(), &[A], "deliver = true")])?;
    // The default router has nobody to send to; the inboxes come before it.
    let appliance = blueprint.start()?;
    let line = documented()?;
    let own = "+16195550123";
    ensure!(line.contains(own) && line.contains("ssh-ed25519 AAAA..."), "{line}");
    let key = make_key(&folder.path().join("client"))?;
    // The program as the line calls it. It finds the test's socket instead of the usual one; nothing else is added.
    let bin = folder.path().join("bin");
    std::fs::create_dir(&bin)?;
    let script = format!(
        "#!/bin/sh\nexec {} \"$@\" --socket {}\n",
        house.program().display(),
        house.socket().display()
    );
    std::fs::write(bin.join("switchyard"), script)?;
    std::fs::set_permissions(bin.join("switchyard"), Permissions::from_mode(0o755))?;
    let sshd = Sshd::start(folder.path(), &line.replace("ssh-ed25519 AAAA...", &key), &bin)?;
    let done = |words: &[&str]| -> Result<String> {
        let output = sshd.output(&[], words)?;
        ensure!(output.status.success(), "{words:?}: {}; sshd: {}", said(&output), sshd.log());
        Ok(String::from_utf8(output.stdout)?)
    };
    let refused = |words: &[&str]| -> Result<String> {
        let output = sshd.output(&[], words)?;
        ensure!(output.status.code() == Some(2), "{words:?}: {}", said(&output));
        ensure!(output.stdout.is_empty(), "{words:?} printed: {}", said(&output));
        Ok(String::from_utf8(output.stderr)?)
    };

    // As its number it may send and read.
    let id = done(&["send", A, "'two  words; $HOME `id`'"])?.trim().to_owned();
    until("it is delivered", || {
        let inbox = house.page(me(), &["--as", A, "inbox"])?;
        Ok(inbox["messages"][0]["state"] == "delivered")
    })?;
    let inbox = house.page(me(), &["--as", A, "inbox"])?;
    assert_eq!(texts(&inbox), [Some("two  words; $HOME `id`")]);
    assert_eq!((&inbox["messages"][0]["id"], &inbox["messages"][0]["from"]), (&json!(id), &json!(own)));
    house.send(me(), &["--as", A, own, "an answer"])?;
    until("the answer is there", || Ok(done(&["inbox"])?.contains("an answer")))?;
    let log: Value = serde_json::from_str(&done(&["log", "--json", "--limit", "5"])?)?;
    assert_eq!(texts(&log), [Some("an answer"), Some("two  words; $HOME `id`")]);
    let mut piped = sshd.ssh(&[], &["send", A]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    piped.stdin.take().context("stdin")?.write_all("it's piped\n".as_bytes())?;
    ensure!(piped.wait_with_output()?.status.success());
    until("what was piped is there", || {
        Ok(texts(&house.page(me(), &["--as", A, "inbox"])?).first() == Some(&Some("it's piped")))
    })?;

    // Never as another, and never anywhere else.
    house.send(me(), &["--as", A, A, "a secret of a's"])?;
    for words in [
        &["--as", A, "log"][..],
        &["log", "--as", A],
        &["send", "--as", A, own, "x"],
        &["send", own, "--as", A, "x"],
        &["log", "--socket", "/tmp/x"],
        &["--operator", "log"],
        &["sms", "--as", A, "log"],
        &["forced"],
    ] {
        let told = refused(words)?;
        ensure!(!told.contains("secret"), "{told}");
    }
    let other = sshd.output(&[], &["log", "--number", A])?;
    assert_eq!(other.status.code(), Some(77), "{}", said(&other));
    ensure!(!done(&["log"])?.contains("secret"));

    // No shell, by no way.
    ensure!(refused(&[])?.contains("Usage"), "without a command it tells what there is");
    for words in [
        &["sh"][..],
        &["/bin/sh", "-c", "id"],
        &["inbox;", "id"],
        &["$(id)"],
        &["scp", "-f", "/etc/passwd"],
        &["it's"],
    ] {
        refused(words)?;
    }
    let sftp = sshd.output(&["-s"], &["sftp"])?;
    ensure!(!sftp.status.success() && sftp.stdout.is_empty(), "{}", said(&sftp));

    // No pty, no forwarding of any kind.
    let pty = sshd.output(&["-tt"], &["inbox"])?;
    ensure!(said(&pty).contains("PTY allocation request failed"), "{}", said(&pty));
    let http = appliance.blueprint().http().to_string();
    let forwarded = sshd.output(&["-W", &http], &[])?;
    ensure!(!forwarded.status.success(), "{}", said(&forwarded));
    ensure!(said(&forwarded).contains("administratively prohibited"), "{}", said(&forwarded));
    let back = format!("{}:{http}", free_port()?);
    let remote = sshd.output(&["-o", "ExitOnForwardFailure=yes", "-R", &back], &["inbox"])?;
    ensure!(said(&remote).contains("remote port forwarding failed"), "{}", said(&remote));

    // Who hangs up while it follows leaves nothing running behind.
    let left = || {
        let processes = std::fs::read_dir("/proc").map(|entries| {
            entries.flatten().filter(|entry| {
                let words = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
                let words = String::from_utf8_lossy(&words).into_owned();
                words.contains(&*house.socket().to_string_lossy()) && words.contains("forced")
            })
        });
        processes.map(Iterator::count)
    };
    let mut follow = sshd.ssh(&[], &["follow"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    until("it follows", || Ok(left()? > 0))?;
    follow.kill()?;
    follow.wait()?;
    until("nothing is left of it", || Ok(left()? == 0))?;
    Ok(())
}
