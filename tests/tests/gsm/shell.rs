//! Subscribers on the command line: `switchyard sms` against a real daemon, as other system users if the tests
//! run as root.

use anyhow::{Context, Result, ensure};
use behaviour_tests::test_daemon::{TestDaemon, TestDaemonConfig};
use behaviour_tests::{Fixture, TIMEOUT, until};
use serde_json::{Value, json};
use std::fs::Permissions;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

pub(crate) const A: &str = "+16195550101";
pub(crate) const B: &str = "+16195550102";
pub(crate) const C: &str = "+16195550103";

/// System users without names.
const USER_A: u32 = 64_101;
const USER_B: u32 = 64_102;
const OPERATOR: u32 = 64_103;
const NO_USER: u32 = 64_104;

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The id of the user that runs the tests.
pub(crate) fn current_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// A folder with the program and the socket that every user can read.
pub(crate) struct ShellFixture {
    fixture: Fixture,
    open: tempfile::TempDir,
}

impl ShellFixture {
    pub(crate) fn new() -> Result<Self> {
        let fixture = Fixture::new()?;
        let open = tempfile::Builder::new().permissions(Permissions::from_mode(0o755)).tempdir()?;
        let program = open.path().join("switchyard");
        // Other users may not access the build folder.
        if std::fs::hard_link(fixture.binary(), &program).is_err() {
            std::fs::copy(fixture.binary(), &program)?;
        }
        Ok(Self { fixture, open })
    }

    pub(crate) fn program(&self) -> PathBuf {
        self.open.path().join("switchyard")
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.open.path().join("sms.sock")
    }

    /// A daemon with the shell socket and these entries of `[[shell.users]]`.
    pub(crate) fn config(&self, users: &[String]) -> Result<TestDaemonConfig> {
        let mut config = self.fixture.config()?;
        let users: String = users.iter().map(|user| format!("[[shell.users]]\n{user}\n")).collect();
        config.tables(&format!(
            "[shell]\nsocket = {:?}\nmode = \"0666\"\n{users}",
            self.socket().display().to_string()
        ));
        Ok(config)
    }

    pub(crate) fn sms(&self, uid: u32, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.program());
        command.arg("sms").arg("--socket").arg(self.socket()).args(arguments);
        command.stdin(Stdio::null()).env("TZ", "UTC");
        if uid != current_uid() {
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

    pub(crate) fn send(&self, uid: u32, arguments: &[&str]) -> Result<String> {
        let id = self.run_ok(uid, &[&["send"], arguments].concat())?;
        Ok(id.trim().to_owned())
    }

    pub(crate) fn page(&self, uid: u32, arguments: &[&str]) -> Result<Value> {
        Ok(serde_json::from_str(&self.run_ok(uid, &[arguments, &["--json"]].concat())?)?)
    }

    pub(crate) fn refused(&self, uid: u32, arguments: &[&str], exit: i32, words: &str) -> Result<()> {
        let output = self.run(uid, arguments)?;
        ensure!(output.status.code() == Some(exit), "{arguments:?} as {uid}: {}", output_text(&output));
        let message_text = String::from_utf8_lossy(&output.stderr);
        ensure!(message_text.contains(words), "{arguments:?} as {uid}: {message_text}");
        ensure!(output.stdout.is_empty(), "{arguments:?} as {uid} printed something");
        Ok(())
    }
}

pub(crate) fn output_text(output: &Output) -> String {
    let words = [&output.stdout[..], &output.stderr[..]].concat();
    format!("{}: {}", output.status, String::from_utf8_lossy(&words))
}

/// An entry of `[[shell.users]]`.
pub(crate) fn user(uid: u32, numbers: &[&str], more: &str) -> String {
    format!("uid = {uid}\nnumbers = {numbers:?}\n{more}")
}

/// The texts of a page, newest first; `None` if hidden.
pub(crate) fn texts(page: &Value) -> Vec<Option<&str>> {
    page["messages"].as_array().into_iter().flatten().map(|item| item["text"].as_str()).collect()
}

fn archived(appliance: &TestDaemon) -> Result<()> {
    appliance.wait_until(TIMEOUT, "/v1/archive", |archive| archive["backlog"] == 0).map(drop)
}

#[test]
fn two_users_see_only_their_own_messages() -> Result<()> {
    let shell = ShellFixture::new()?;
    // Only root can act as two users. Otherwise one user has both numbers, and names the one that it acts as.
    let (user_a, user_b) = if is_root() { (USER_A, USER_B) } else { (current_uid(), current_uid()) };
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

/// A client that sends arbitrary lines.
struct Caller(BufReader<UnixStream>);

impl Caller {
    fn new(shell: &ShellFixture) -> Result<Self> {
        let stream = UnixStream::connect(shell.socket())?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        Ok(Self(BufReader::new(stream)))
    }

    fn send_line(&mut self, line: &str) -> Result<()> {
        Ok(self.0.get_mut().write_all(format!("{line}\n").as_bytes())?)
    }

    /// The next answer; `None` when the daemon has closed the connection.
    fn receive(&mut self) -> Result<Option<Value>> {
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
        let _ = self.send_line(line);
        self.receive()?.context("hung up")
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
        user(current_uid(), &[A], "deliver = true")
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
    caller.send_line(&format!("{send}\n{}", json!({ "id": 8, "ask": { "log": { "limit": 1 } } })))?;
    assert_eq!(caller.receive()?.context("an answer")?["id"], 7);
    assert_eq!(caller.receive()?.context("an answer")?["id"], 8);
    for list in [json!({ "limit": 0 }), json!({ "limit": 100_000 }), json!({ "before": "yesterday" })] {
        let answer = caller.ask(&json!({ "id": 9, "ask": { "log": list } }).to_string())?;
        assert_eq!((kind(&answer), &answer["id"]), ("invalid", &json!(9)), "{answer}");
    }
    // A following connection takes no more requests.
    caller.ask(&json!({ "id": 10, "ask": { "follow": {} } }).to_string())?;
    caller.send_line(&send.to_string())?;
    let mut last = caller.receive()?;
    while last.as_ref().is_some_and(|answer| answer.get("event").is_some()) {
        last = caller.receive()?;
    }
    assert_eq!(kind(&last.context("an answer")?), "malformed");
    assert_eq!(caller.receive()?, None);

    // The first request must be hello, and lines have a maximum length.
    let mut rude = Caller::new(&shell)?;
    assert_eq!(kind(&rude.ask(&send.to_string())?), "malformed");
    assert_eq!(rude.receive()?, None);
    let mut long = Caller::new(&shell)?;
    long.ask(HELLO)?;
    // The daemon may close the connection before it has read all of this.
    let _ = long.send_line(&"x".repeat(80_000));
    if let Some(answer) = long.receive()? {
        assert_eq!(kind(&answer), "malformed");
        assert_eq!(long.receive()?, None);
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
    let answer = fifth.receive()?.context("an answer")?;
    assert_eq!(kind(&answer), "unavailable", "{answer}");
    assert_eq!(fifth.receive()?, None);
    shell.refused(current_uid(), &["log"], 75, "you already have 4 connections")?;
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
    until("connections are available again", || Ok(shell.run(current_uid(), &["log"])?.status.success()))?;
    let (status, _) = appliance.stop()?;
    ensure!(status.success(), "stopped with {status}");
    // Connected clients were told.
    assert_eq!(kind(&held[0].receive()?.context("an answer")?), "unavailable");
    Ok(())
}

#[test]
fn a_submission_without_an_answer_is_repeated_and_accepted_once() -> Result<()> {
    let shell = ShellFixture::new()?;
    let config = shell.config(&[user(current_uid(), &[A], "deliver = true")])?;
    let appliance = config.start()?;
    // A fake daemon accepts a request and dies.
    let config = appliance.kill()?;
    std::fs::remove_file(shell.socket())?;
    let listener = UnixListener::bind(shell.socket())?;
    let mut sending = shell.sms(current_uid(), &["send", A, "once"]).stdout(Stdio::piped()).spawn()?;
    let (stream, _) = listener.accept()?;
    let mut caller = Caller(BufReader::new(stream));
    let hello = caller.receive()?.context("hello")?;
    caller.send_line(&json!({ "id": hello["id"], "ok": { "as": A } }).to_string())?;
    let request = caller.receive()?.context("a request")?;
    assert_eq!(request["ask"]["send"]["text"], "once");
    drop((caller, listener));
    // The stale socket does not prevent a start.
    let _appliance = config.start()?;
    let mut printed = String::new();
    sending.stdout.take().context("stdout")?.read_to_string(&mut printed)?;
    ensure!(sending.wait()?.success());
    let log = shell.page(current_uid(), &["log"])?;
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
