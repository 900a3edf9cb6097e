//! Subscribers on the command line: `switchyard sms` against a real daemon, as other system users if the tests
//! run as root, and through a real sshd.

use anyhow::{Context, Result, ensure};
use behaviour_tests::test_daemon::{PASSWORD, TestDaemon, TestDaemonConfig, free_port};
use behaviour_tests::{Fixture, Peer, TIMEOUT, until};
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

/// System users without names.
const USER_A: u32 = 64_101;
const USER_B: u32 = 64_102;
const OPERATOR: u32 = 64_103;
const NO_USER: u32 = 64_104;

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn me() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// A folder that every user can look into, with the program and the socket in it.
struct ShellFixture {
    fixture: Fixture,
    open: tempfile::TempDir,
}

impl ShellFixture {
    fn new() -> Result<Self> {
        let fixture = Fixture::new()?;
        let open = tempfile::Builder::new().permissions(Permissions::from_mode(0o755)).tempdir()?;
        let program = open.path().join("switchyard");
        // Other users may not access the build folder.
        if std::fs::hard_link(fixture.binary(), &program).is_err() {
            std::fs::copy(fixture.binary(), &program)?;
        }
        Ok(Self { fixture, open })
    }

    fn program(&self) -> PathBuf {
        self.open.path().join("switchyard")
    }

    fn socket(&self) -> PathBuf {
        self.open.path().join("sms.sock")
    }

    /// A daemon with the shell socket and these entries of `[[shell.users]]`.
    fn config(&self, users: &[String]) -> Result<TestDaemonConfig> {
        let mut config = self.fixture.config()?;
        let users: String = users.iter().map(|user| format!("[[shell.users]]\n{user}\n")).collect();
        config.tables(&format!(
            "[shell]\nsocket = {:?}\nmode = \"0666\"\n{users}",
            self.socket().display().to_string()
        ));
        Ok(config)
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

    /// Runs a command that must succeed; returns its output.
    fn run_ok(&self, uid: u32, arguments: &[&str]) -> Result<String> {
        let output = self.run(uid, arguments)?;
        ensure!(output.status.success(), "{arguments:?} as {uid}: {}", output_text(&output));
        Ok(String::from_utf8(output.stdout)?)
    }

    fn send(&self, uid: u32, arguments: &[&str]) -> Result<String> {
        let id = self.run_ok(uid, &[&["send"], arguments].concat())?;
        Ok(id.trim().to_owned())
    }

    fn page(&self, uid: u32, arguments: &[&str]) -> Result<Value> {
        Ok(serde_json::from_str(&self.run_ok(uid, &[arguments, &["--json"]].concat())?)?)
    }

    fn refused(&self, uid: u32, arguments: &[&str], exit: i32, words: &str) -> Result<()> {
        let output = self.run(uid, arguments)?;
        ensure!(output.status.code() == Some(exit), "{arguments:?} as {uid}: {}", output_text(&output));
        let message_text = String::from_utf8_lossy(&output.stderr);
        ensure!(message_text.contains(words), "{arguments:?} as {uid}: {message_text}");
        ensure!(output.stdout.is_empty(), "{arguments:?} as {uid} printed something");
        Ok(())
    }
}

fn output_text(output: &Output) -> String {
    let words = [&output.stdout[..], &output.stderr[..]].concat();
    format!("{}: {}", output.status, String::from_utf8_lossy(&words))
}

fn user(uid: u32, numbers: &[&str], more: &str) -> String {
    format!("uid = {uid}\nnumbers = {numbers:?}\n{more}")
}

/// The texts of a page, newest first; `None` if hidden.
fn texts(page: &Value) -> Vec<Option<&str>> {
    page["messages"].as_array().into_iter().flatten().map(|item| item["text"].as_str()).collect()
}

fn archived(appliance: &TestDaemon) -> Result<()> {
    appliance.wait_until(TIMEOUT, "/v1/archive", |archive| archive["backlog"] == 0).map(drop)
}

#[test]
fn two_users_see_only_their_own_messages() -> Result<()> {
    let shell = ShellFixture::new()?;
    // Only root can act as two users. Otherwise one user has both numbers, and names the one that it acts as.
    let (user_a, user_b) = if is_root() { (USER_A, USER_B) } else { (me(), me()) };
    let as_a = |arguments: &[&'static str]| [&["--as", A], arguments].concat();
    let as_b = |arguments: &[&'static str]| [&["--as", B], arguments].concat();
    let mut users = vec![user(user_a, &[A], "deliver = true"), user(user_b, &[B], "deliver = true")];
    if is_root() {
        users.push(format!("uid = {OPERATOR}\noperator = true"));
    }
    let mut config = shell.config(&users)?;
    config.archive("sqlite:archive.db");
    // Inboxes precede the router.
    config.router(&shell.fixture.guest("prefix_router"), "[default]\nreject = \"prohibited\"\n")?;
    let appliance = config.start()?;

    let to_b = as_a(&["send", B, "for b \u{1b}[31mred\nline"]);
    let first = shell.run_ok(user_a, &to_b)?.trim().to_owned();
    shell.run_ok(user_b, &as_b(&["send", B, "note to myself"]))?;
    shell.run_ok(user_a, &as_a(&["send", A, "of a and for a"]))?;
    let look = || -> Result<()> {
        until("all of it is delivered", || {
            let log = shell.page(user_b, &as_b(&["log"]))?;
            let items = log["messages"].as_array().context("messages")?;
            Ok(items.len() == 2 && items.iter().all(|item| item["state"] == "delivered"))
        })?;
        let inbox = shell.page(user_b, &as_b(&["inbox"]))?;
        assert_eq!(texts(&inbox), [Some("note to myself"), Some("for b \u{1b}[31mred\nline")]);
        let got = &inbox["messages"][1];
        assert_eq!((&got["id"], &got["from"], &got["to"]), (&json!(first), &json!(A), &json!(B)));
        assert_eq!(got["direction"], "in");
        let log = shell.page(user_a, &as_a(&["log"]))?;
        assert_eq!(texts(&log), [Some("of a and for a"), Some("for b \u{1b}[31mred\nline")]);
        assert_eq!(log["messages"][1]["direction"], "out");
        assert_eq!(texts(&shell.page(user_a, &as_a(&["inbox"]))?), [Some("of a and for a")]);
        // Output for people contains no terminal control characters, and one message per line.
        let printed = shell.run_ok(user_b, &as_b(&["inbox"]))?;
        ensure!(printed.lines().count() == 2, "{printed:?}");
        ensure!(printed.lines().all(|line| !line.chars().any(char::is_control)), "{printed:?}");
        ensure!(printed.contains("for b ␛[31mred␊line") && printed.contains(A), "{printed:?}");
        // Paging.
        let newest = shell.page(user_b, &as_b(&["log", "--limit", "1"]))?;
        assert_eq!(texts(&newest), [Some("note to myself")]);
        let before = newest["next"].as_str().context("a second page")?;
        let page = shell.page(user_b, &["--as", B, "log", "--limit", "1", "--before", before])?;
        assert_eq!((&page["messages"][0]["id"], &page["next"]), (&json!(first), &Value::Null));
        ensure!(page.get("incomplete").is_none(), "{page}");
        Ok(())
    };
    look()?;
    archived(&appliance)?;
    look()?;
    let appliance = appliance.kill()?.start()?;
    look()?;

    // Another user's number is refused in every form.
    let others = if is_root() { B } else { C };
    shell.refused(user_a, &["--as", others, "log"], 77, "may not act as")?;
    shell.refused(user_a, &["--as", others, "send", A, "x"], 77, "may not act as")?;
    shell.refused(user_a, &["--as", A, "log", "--number", others], 77, "only an operator")?;
    shell.refused(user_a, &["--operator", "log"], 77, "is not an operator")?;
    if is_root() {
        assert_eq!(texts(&shell.page(USER_A, &["log"])?).len(), 2, "a user with one number need not name it");
        shell.refused(NO_USER, &["log"], 77, "may not use this appliance")?;
        shell.refused(NO_USER, &["--as", A, "log"], 77, "may not use this appliance")?;
        shell.refused(0, &["--as", A, "log"], 77, "may not use this appliance")?;
        let all = shell.page(OPERATOR, &["log"])?;
        assert_eq!(texts(&all), [None, None, None]);
        ensure!(!all.to_string().contains("note"), "an operator sees a text: {all}");
        let printed = shell.run_ok(OPERATOR, &["log"])?;
        ensure!(!printed.contains("note") && printed.contains("octets"), "{printed}");
        assert_eq!(texts(&shell.page(OPERATOR, &["inbox", "--number", B])?), [None, None]);
        shell.refused(OPERATOR, &["send", A, "x"], 77, "an operator has no number")?;
        shell.refused(OPERATOR, &["--as", A, "inbox"], 77, "may not act as")?;
    }
    shell.refused(user_a, &["--as", A, "send", "mother", "x"], 65, "is not a number")?;
    shell.refused(user_a, &["--as", A, "send", "+491701234567", "x"], 1, "rejected: prohibited")?;
    let (status, _) = appliance.stop()?;
    ensure!(status.success(), "stopped with {status}");
    shell.refused(user_a, &["--as", A, "log"], 69, "Is the appliance running")?;
    Ok(())
}

#[test]
fn a_message_survives_a_kill_before_delivery_and_is_sent_once() -> Result<()> {
    let shell = ShellFixture::new()?;
    let port = free_port()?;
    let mut config = shell.config(&[user(me(), &[A], "")])?;
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    config.peer("upstream", address, "uncertain = \"send-again\"");
    let appliance = config.start()?;
    let id = shell.send(me(), &["--key", "one", "+491701234567", "durable?"])?;
    let appliance = appliance.kill()?.start()?;
    // The idempotency key is remembered too: a repetition is the same message, and another text with this key is refused.
    assert_eq!(shell.send(me(), &["--key", "one", "+491701234567", "durable?"])?, id);
    shell.refused(me(), &["send", "--key", "one", "+491701234567", "other"], 65, "used before")?;
    let waiting = shell.page(me(), &["log"])?;
    assert_eq!(
        (&waiting["messages"][0]["id"], &waiting["messages"][0]["state"]),
        (&json!(id), &json!("queued"))
    );
    let mut upstream = Peer::node("upstream.js", &json!({ "receipts": true, "port": port }))?;
    let submit = upstream.expect("submit")?;
    assert_eq!((&submit["text"], &submit["source"]), (&json!("durable?"), &json!("16195550101")));
    assert_eq!((&submit["destination"], &submit["source_ton"]), (&json!("491701234567"), &json!(1)));
    until("its receipt is in the log", || {
        Ok(shell.page(me(), &["log"])?["messages"][0]["state"] == "delivered")
    })?;
    let log = shell.page(me(), &["log"])?;
    assert_eq!(texts(&log), [Some("durable?")]);
    // The shell's own DLR request leaves nothing behind.
    appliance.wait_until(TIMEOUT, "/v1/status", |status| status["waiting"] == 0)?;
    // The router's refusal has its own exit status.
    let mut refused = shell.sms(me(), &["send", "+491701234567"]);
    let mut sending = refused.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    sending.stdin.take().context("stdin")?.write_all("from standard input\n".as_bytes())?;
    let output = sending.wait_with_output()?;
    ensure!(output.status.success(), "{}", output_text(&output));
    assert_eq!(upstream.expect("submit")?["text"], "from standard input");
    Ok(())
}

#[test]
fn inboxes_precede_routes_and_numbers_without_a_reader_are_refused() -> Result<()> {
    let shell = ShellFixture::new()?;
    let users = [user(me(), &[A], "deliver = true"), user(me(), &[B], "")];
    let mut config = shell.config(&users)?;
    // A route may lead to the shell, too.
    config.account("acme", "").native("shell");
    let appliance = config.start()?;
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
    for (own, note) in [(A, "has an inbox in the shell"), (B, "")] {
        let inbox = shell.page(me(), &["--as", own, "inbox"])?;
        assert_eq!(texts(&inbox), [Some(&*format!("for {own}"))]);
        assert_eq!(inbox["messages"][0]["from"], "+10655", "the sender's international format is kept");
        let id = inbox["messages"][0]["id"].as_str().context("an id")?;
        let why = &appliance.get(&format!("/v1/messages/{id}"))?["routing"];
        ensure!(why["note"].as_str().unwrap_or_default().contains(note), "{why}");
        assert_eq!(why["plugin"] == "built-in", own == A);
    }
    let asked = json!({ "origin": "acme", "destination": A }).to_string();
    let explained = appliance.ask("POST", "/v1/explain", asked.as_bytes())?.to_string();
    ensure!(explained.contains("has an inbox in the shell"), "{explained}");
    Ok(())
}

/// A client that sends arbitrary lines.
struct Caller(BufReader<UnixStream>);

impl Caller {
    fn new(shell: &ShellFixture) -> Result<Self> {
        let stream = UnixStream::connect(shell.socket())?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        Ok(Self(BufReader::new(stream)))
    }

    fn say(&mut self, line: &str) -> Result<()> {
        Ok(self.0.get_mut().write_all(format!("{line}\n").as_bytes())?)
    }

    /// The next answer; `None` when the daemon has closed the connection.
    fn hear(&mut self) -> Result<Option<Value>> {
        let mut line = String::new();
        match self.0.read_line(&mut line) {
            Ok(0) => Ok(None),
            // The connection was closed while we were writing.
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => Ok(None),
            Ok(_) => Ok(Some(serde_json::from_str(&line)?)),
            Err(error) => Err(error.into()),
        }
    }

    fn ask(&mut self, line: &str) -> Result<Value> {
        // A client that was refused immediately can still read the reason.
        let _ = self.say(line);
        self.hear()?.context("hung up")
    }
}

fn kind(answer: &Value) -> &str {
    answer["error"]["kind"].as_str().unwrap_or("no error")
}

const HELLO: &str = r#"{"id": 1, "ask": {"hello": {"as": "+16195550101"}}}"#;

#[test]
fn invalid_lines_are_answered_and_connections_are_limited() -> Result<()> {
    let shell = ShellFixture::new()?;
    let mut config = shell.fixture.config()?;
    config.tables(&format!(
        "[shell]\nsocket = {:?}\nconnections = 6\nconnections-per-user = 4\nmax-segments = 255\n[[shell.users]]\n{}\n",
        shell.socket().display().to_string(),
        user(me(), &[A], "deliver = true")
    ));
    let appliance = config.start()?;
    let mut caller = Caller::new(&shell)?;
    for line in
        ["", "x", "{}", "[1]", r#"{"id": 1, "ask": {"shell": {}}}"#, r#"{"id": -1, "ask": {"log": {}}}"#]
    {
        let answer = caller.ask(line)?;
        assert_eq!((kind(&answer), &answer["id"]), ("malformed", &Value::Null), "{line}: {answer}");
    }
    assert_eq!(caller.ask(HELLO)?, json!({ "id": 1, "ok": { "as": A } }));
    assert_eq!(kind(&caller.ask(HELLO)?), "malformed", "hello is allowed only once");
    let send = json!({ "id": 7, "ask": { "send": { "to": A, "text": "x" } } });
    assert_eq!(caller.ask(&send.to_string())?["ok"]["to"], A);
    // Requests can be pipelined; answers keep their order.
    caller.say(&format!("{send}\n{}", json!({ "id": 8, "ask": { "log": { "limit": 1 } } })))?;
    assert_eq!(caller.hear()?.context("an answer")?["id"], 7);
    assert_eq!(caller.hear()?.context("an answer")?["id"], 8);
    for list in [json!({ "limit": 0 }), json!({ "limit": 100_000 }), json!({ "before": "yesterday" })] {
        let answer = caller.ask(&json!({ "id": 9, "ask": { "log": list } }).to_string())?;
        assert_eq!((kind(&answer), &answer["id"]), ("invalid", &json!(9)), "{answer}");
    }
    // A following connection takes no more requests.
    caller.ask(&json!({ "id": 10, "ask": { "follow": {} } }).to_string())?;
    caller.say(&send.to_string())?;
    let mut last = caller.hear()?;
    while last.as_ref().is_some_and(|answer| answer.get("event").is_some()) {
        last = caller.hear()?;
    }
    assert_eq!(kind(&last.context("an answer")?), "malformed");
    assert_eq!(caller.hear()?, None);

    // The first request must be hello, and lines have a maximum length.
    let mut rude = Caller::new(&shell)?;
    assert_eq!(kind(&rude.ask(&send.to_string())?), "malformed");
    assert_eq!(rude.hear()?, None);
    let mut long = Caller::new(&shell)?;
    long.ask(HELLO)?;
    // The daemon may close the connection before it has read all of this.
    let _ = long.say(&"x".repeat(80_000));
    if let Some(answer) = long.hear()? {
        assert_eq!(kind(&answer), "malformed");
        assert_eq!(long.hear()?, None);
    }

    let mut held = Vec::new();
    until("closed connections are released", || {
        held.clear();
        for _ in 0..4 {
            let mut one = Caller::new(&shell)?;
            let answer = one.ask(HELLO)?;
            if answer.get("ok").is_none() {
                return Ok(false);
            }
            held.push(one);
        }
        Ok(true)
    })?;
    let mut fifth = Caller::new(&shell)?;
    let answer = fifth.hear()?.context("an answer")?;
    assert_eq!(kind(&answer), "unavailable", "{answer}");
    assert_eq!(fifth.hear()?, None);
    shell.refused(me(), &["log"], 75, "you already have 4 connections")?;
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
    until("connections are available again", || Ok(shell.run(me(), &["log"])?.status.success()))?;
    let (status, _) = appliance.stop()?;
    ensure!(status.success(), "stopped with {status}");
    // Connected clients were told.
    assert_eq!(kind(&held[0].hear()?.context("an answer")?), "unavailable");
    Ok(())
}

#[test]
fn a_submission_without_an_answer_is_repeated_and_accepted_once() -> Result<()> {
    let shell = ShellFixture::new()?;
    let config = shell.config(&[user(me(), &[A], "deliver = true")])?;
    let appliance = config.start()?;
    // A fake daemon accepts a request and dies.
    let config = appliance.kill()?;
    std::fs::remove_file(shell.socket())?;
    let listener = UnixListener::bind(shell.socket())?;
    let mut sending = shell.sms(me(), &["send", A, "once"]).stdout(Stdio::piped()).spawn()?;
    let (stream, _) = listener.accept()?;
    let mut caller = Caller(BufReader::new(stream));
    let hello = caller.hear()?.context("hello")?;
    caller.say(&json!({ "id": hello["id"], "ok": { "as": A } }).to_string())?;
    let request = caller.hear()?.context("a request")?;
    assert_eq!(request["ask"]["send"]["text"], "once");
    drop((caller, listener));
    // The stale socket does not prevent a start.
    let _appliance = config.start()?;
    let mut printed = String::new();
    sending.stdout.take().context("stdout")?.read_to_string(&mut printed)?;
    ensure!(sending.wait()?.success());
    let log = shell.page(me(), &["log"])?;
    assert_eq!(
        (log["messages"].as_array().map(Vec::len), &log["messages"][0]["id"]),
        (Some(1), &json!(printed.trim()))
    );
    // The same request again returns the same message.
    let mut again = Caller::new(&shell)?;
    again.ask(HELLO)?;
    assert_eq!(again.ask(&request.to_string())?["ok"]["message"], printed.trim());
    Ok(())
}

/// Output lines of a running program.
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
        let event = self.lines.recv_timeout(TIMEOUT).context("nothing is shown")?;
        Ok(event["message"].clone())
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        // It may have exited already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn follow_shows_new_messages_and_state_changes() -> Result<()> {
    let shell = ShellFixture::new()?;
    let users = [user(me(), &[A, B], "deliver = true"), user(me(), &[C], "operator = true")];
    let port = free_port()?;
    let mut config = shell.config(&users)?;
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    config.peer("upstream", address, "dlrs = false\nuncertain = \"send-again\"");
    let appliance = config.start()?;
    let b = Following::start(&mut shell.sms(me(), &["--as", B, "follow", "--json"]))?;
    let everything = Following::start(&mut shell.sms(me(), &["--operator", "follow", "--json"]))?;
    // There is no sign that following has begun except the first event.
    for follower in [&b, &everything] {
        until("it follows", || {
            shell.send(me(), &["--as", B, B, "knock"])?;
            Ok(follower.lines.recv_timeout(std::time::Duration::from_millis(200)).is_ok())
        })?;
    }
    // Not visible to B.
    shell.send(me(), &["--as", A, C, "from a to c"])?;
    let id = shell.send(me(), &["--as", A, B, "new"])?;
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
    // A message to a peer that is down is shown, and again when it has been sent.
    let out = shell.send(me(), &["--as", B, "+491701234567", "out"])?;
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
    // It ends with the daemon, and prints the reason.
    let (status, _) = appliance.stop()?;
    ensure!(status.success(), "stopped with {status}");
    let mut b = b;
    assert_eq!(b.process.wait()?.code(), Some(75));
    Ok(())
}

/// A private sshd in the foreground, with its own key.
struct Sshd {
    process: Child,
    port: u16,
    folder: PathBuf,
}

fn run(command: &mut Command) -> Result<Output> {
    let shown = format!("{command:?}");
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("running {shown}"))?;
    ensure!(output.status.success(), "{shown}: {}", output_text(&output));
    Ok(output)
}

fn make_key(path: &Path) -> Result<String> {
    run(Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-C", "", "-f"]).arg(path))?;
    let public = std::fs::read_to_string(path.with_extension("pub"))?;
    // Type and key, without a comment.
    Ok(public.split_whitespace().take(2).collect::<Vec<_>>().join(" "))
}

impl Sshd {
    /// `line` is the line of authorized_keys; `path` is the search path for commands.
    fn start(folder: &Path, line: &str, path: &Path) -> Result<Self> {
        let server = Path::new("/usr/sbin/sshd");
        ensure!(server.exists(), "sshd is not installed; run: cargo xtask setup");
        if is_root() {
            // Debian's service would create it.
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

/// The authorized_keys line in the manual.
fn documented() -> Result<String> {
    let page = "docs/guide/subscribers-command-line.md";
    let text = std::fs::read_to_string(xtask::workspace::root().join(page))?;
    let line =
        text.lines().map(|line| line.trim_matches('`')).find(|line| line.starts_with("restrict,command="));
    Ok(line.with_context(|| format!("{page} has no such line"))?.to_owned())
}

#[test]
fn with_a_real_sshd_the_documented_line_allows_one_number_and_nothing_else() -> Result<()> {
    let shell = ShellFixture::new()?;
    let folder = tempfile::tempdir()?;
    // The key's number is configured only as one that has an inbox.
    let any = format!("uid = {}\nnumbers = \"any\"\ndeliver = [\"+1619555*\"]", me());
    let config = shell.config(&[any, user(me(), &[A], "deliver = true")])?;
    // The default router has no peer; inboxes precede it.
    let appliance = config.start()?;
    let line = documented()?;
    let own = "+16195550123";
    ensure!(line.contains(own) && line.contains("ssh-ed25519 AAAA..."), "{line}");
    let key = make_key(&folder.path().join("client"))?;
    // The command as in the line, with the test's socket instead of the default one.
    let bin = folder.path().join("bin");
    std::fs::create_dir(&bin)?;
    let script = format!(
        "#!/bin/sh\nexec {} \"$@\" --socket {}\n",
        shell.program().display(),
        shell.socket().display()
    );
    std::fs::write(bin.join("switchyard"), script)?;
    std::fs::set_permissions(bin.join("switchyard"), Permissions::from_mode(0o755))?;
    let sshd = Sshd::start(folder.path(), &line.replace("ssh-ed25519 AAAA...", &key), &bin)?;
    let done = |words: &[&str]| -> Result<String> {
        let output = sshd.output(&[], words)?;
        ensure!(output.status.success(), "{words:?}: {}; sshd: {}", output_text(&output), sshd.log());
        Ok(String::from_utf8(output.stdout)?)
    };
    let refused = |words: &[&str]| -> Result<String> {
        let output = sshd.output(&[], words)?;
        ensure!(output.status.code() == Some(2), "{words:?}: {}", output_text(&output));
        ensure!(output.stdout.is_empty(), "{words:?} printed: {}", output_text(&output));
        Ok(String::from_utf8(output.stderr)?)
    };

    // It may send and read as its number.
    let id = done(&["send", A, "'two  words; $HOME `id`'"])?.trim().to_owned();
    until("it is delivered", || {
        let inbox = shell.page(me(), &["--as", A, "inbox"])?;
        Ok(inbox["messages"][0]["state"] == "delivered")
    })?;
    let inbox = shell.page(me(), &["--as", A, "inbox"])?;
    assert_eq!(texts(&inbox), [Some("two  words; $HOME `id`")]);
    assert_eq!((&inbox["messages"][0]["id"], &inbox["messages"][0]["from"]), (&json!(id), &json!(own)));
    shell.send(me(), &["--as", A, own, "an answer"])?;
    until("the answer arrives", || Ok(done(&["inbox"])?.contains("an answer")))?;
    let log: Value = serde_json::from_str(&done(&["log", "--json", "--limit", "5"])?)?;
    assert_eq!(texts(&log), [Some("an answer"), Some("two  words; $HOME `id`")]);
    let mut piped = sshd.ssh(&[], &["send", A]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    piped.stdin.take().context("stdin")?.write_all("it's piped\n".as_bytes())?;
    ensure!(piped.wait_with_output()?.status.success());
    until("the piped message arrives", || {
        Ok(texts(&shell.page(me(), &["--as", A, "inbox"])?).first() == Some(&Some("it's piped")))
    })?;

    // Never as another number, and never anywhere else.
    shell.send(me(), &["--as", A, A, "a secret of a's"])?;
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
        let message_text = refused(words)?;
        ensure!(!message_text.contains("secret"), "{message_text}");
    }
    let other = sshd.output(&[], &["log", "--number", A])?;
    assert_eq!(other.status.code(), Some(77), "{}", output_text(&other));
    ensure!(!done(&["log"])?.contains("secret"));

    // No shell in any way.
    ensure!(refused(&[])?.contains("Usage"), "without a command it prints the usage");
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
    ensure!(!sftp.status.success() && sftp.stdout.is_empty(), "{}", output_text(&sftp));

    // No pty, no forwarding of any kind.
    let pty = sshd.output(&["-tt"], &["inbox"])?;
    ensure!(output_text(&pty).contains("PTY allocation request failed"), "{}", output_text(&pty));
    let http = appliance.config().http().to_string();
    let forwarded = sshd.output(&["-W", &http], &[])?;
    ensure!(!forwarded.status.success(), "{}", output_text(&forwarded));
    ensure!(output_text(&forwarded).contains("administratively prohibited"), "{}", output_text(&forwarded));
    let back = format!("{}:{http}", free_port()?);
    let remote = sshd.output(&["-o", "ExitOnForwardFailure=yes", "-R", &back], &["inbox"])?;
    ensure!(output_text(&remote).contains("remote port forwarding failed"), "{}", output_text(&remote));

    // A client that disconnects while it follows leaves no process behind.
    let left = || {
        let processes = std::fs::read_dir("/proc").map(|entries| {
            entries.flatten().filter(|entry| {
                let words = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
                let words = String::from_utf8_lossy(&words).into_owned();
                words.contains(&*shell.socket().to_string_lossy()) && words.contains("forced")
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
