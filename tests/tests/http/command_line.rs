//! The admin's commands against a real daemon: `switchyard status`, `top`, `message`, `peer`, `account`, `doctor`, `backup`.

use anyhow::{Context, Result, ensure};
use behaviour_tests::load::{Sink, SinkOptions, Tally};
use behaviour_tests::test_daemon::{PASSWORD, TestDaemon, TestDaemonConfig, free_port};
use behaviour_tests::{Fixture, TIMEOUT, until};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read as _, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};

/// Exit status and output of a command, both streams.
struct CommandOutput {
    code: i32,
    out: String,
    error: String,
}

struct Admin<'a> {
    fixture: &'a Fixture,
    appliance: &'a TestDaemon,
}

impl Admin<'_> {
    fn run(&self, arguments: &[&str]) -> Result<CommandOutput> {
        let output = self.fixture.command(self.appliance).args(arguments).output()?;
        let text = |octets: Vec<u8>| String::from_utf8_lossy(&octets).into_owned();
        let code = output.status.code().context("killed")?;
        Ok(CommandOutput { code, out: text(output.stdout), error: text(output.stderr) })
    }

    /// Output of a command that succeeds.
    fn text(&self, arguments: &[&str]) -> Result<String> {
        let done = self.run(arguments)?;
        ensure!(done.code == 0, "{arguments:?}: {} {} {}", done.code, done.out, done.error);
        Ok(done.out)
    }

    /// JSON output of a command that succeeds.
    fn json(&self, arguments: &[&str]) -> Result<Value> {
        let out = self.text(&[arguments, &["--json"]].concat())?;
        serde_json::from_str(&out).with_context(|| format!("{arguments:?}: {out}"))
    }
}

fn config(fixture: &Fixture, sink: &Sink) -> Result<TestDaemonConfig> {
    let mut config = TestDaemonConfig::new(fixture.binary(), &fixture.folder().join("appliance"))?;
    config.native("upstream").account("acme", "window = 100");
    config.peer("upstream", sink.address(), "links = 2\ndlrs = false");
    Ok(config)
}

#[test]
fn admin_commands() -> Result<()> {
    let fixture = Fixture::new()?;
    let tally = Arc::new(Tally::new(1_000));
    let sink = Sink::start(SinkOptions::default(), &tally)?;
    let appliance = config(&fixture, &sink)?.start()?;
    let admin = Admin { fixture: &fixture, appliance: &appliance };
    until("both links are up", || Ok(admin.json(&["status"])?["links"]["up"] == 2))?;

    let status = admin.text(&["status"])?;
    ensure!(status.contains("to peers 2 of 2 up") && status.contains("Nothing needs attention."), "{status}");
    let screen = admin.text(&["top", "--once", "--interval", "100ms"])?;
    ensure!(
        screen.contains("QUEUE") && screen.contains("upstream") && !screen.contains('\u{1b}'),
        "{screen}"
    );
    ensure!(admin.json(&["top", "--once", "--interval", "100ms"])?["rates"]["accepted"].is_number());
    ensure!(admin.run(&["top"])?.code == 2, "`top` ran without a terminal");

    let sent = admin.text(&[
        "message",
        "send",
        "--account",
        "acme",
        "--from",
        "1",
        "--to",
        "8613012345678",
        "hi",
    ])?;
    let id = sent.trim();
    until("the message has ended", || Ok(admin.json(&["message", "show", id])?["finished"] == true))?;
    let trace = admin.text(&["message", "trace", id])?;
    ensure!(
        trace.contains("accepted and written to disk") && trace.contains("submitted to upstream"),
        "{trace}"
    );
    let found = admin.json(&["message", "find", "--account", "acme", "--from", "1h"])?;
    ensure!(found["messages"][0]["id"] == id, "{found:#}");
    ensure!(
        admin.json(&["message", "find", "--account", "nobody"])?["messages"]
            .as_array()
            .is_some_and(Vec::is_empty)
    );
    let done = admin.run(&["message", "cancel", id])?;
    ensure!(done.code == 1 && done.out.is_empty(), "cancelled after its end: {}", done.out);
    ensure!(admin.run(&["message", "show", "1"])?.code == 1);

    let peers = admin.text(&["peer", "list"])?;
    ensure!(peers.contains("SMPP") && peers.contains(&sink.address().to_string()), "{peers}");
    ensure!(!peers.contains("acme"), "an account is listed as a peer: {peers}");
    let shown = admin.text(&["peer", "show", "upstream"])?;
    ensure!(shown.contains("(unchanged)") && !shown.contains(PASSWORD), "{shown}");
    let tested = admin.run(&["peer", "test", "upstream"])?;
    ensure!(tested.code == 0, "{} {}", tested.out, tested.error);
    ensure!(admin.run(&["peer", "test", "nobody"])?.code == 1);
    ensure!(admin.text(&["account", "list"])?.contains("acme"));

    // Adding and removing without a restart.
    let address = format!("address={}", sink.address());
    let second = ["peer", "set", "second", &address, "system-id=us", "password=pw", "dlrs=false"];
    let changed = admin.text(&second)?;
    ensure!(changed.contains("/peer/second"), "{changed}");
    until("its link is up", || {
        Ok(admin.json(&["peer", "show", "second"])?["queue"]["links"].as_u64() > Some(0))
    })?;
    let wrong = admin.run(&["peer", "set", "second", "window=\"x\"", "adress=1"])?;
    ensure!(
        wrong.code == 1 && wrong.error.contains("adress") && wrong.error.contains("window"),
        "{}",
        wrong.error
    );
    admin.text(&["peer", "remove", "second"])?;
    ensure!(admin.run(&["peer", "show", "second"])?.code == 1);

    admin.text(&["drain", "start"])?;
    let status = admin.text(&["status"])?;
    ensure!(status.contains("draining") && status.contains("switchyard drain stop"), "{status}");
    admin.text(&["drain", "stop"])?;
    let (code, _) = appliance.request("GET", "/v1/ready", b"")?;
    ensure!(code == 200, "not ready after the drain: {code}");
    let (status, _) = appliance.stop()?;
    ensure!(status.success());
    Ok(())
}

#[test]
fn the_doctor_finds_problems_and_suggests_remedies() -> Result<()> {
    let fixture = Fixture::new()?;
    let tally = Arc::new(Tally::new(1_000));
    let sink = Sink::start(SinkOptions::default(), &tally)?;
    let config = config(&fixture, &sink)?;
    let path = config.write()?;
    let path = path.to_str().context("no text")?.to_owned();
    let appliance = config.start()?;
    let admin = Admin { fixture: &fixture, appliance: &appliance };
    until("both links are up", || Ok(admin.json(&["status"])?["links"]["up"] == 2))?;
    let found = admin.json(&["doctor", "--config", &path])?;
    ensure!(found["ok"] == true && found["errors"] == 0, "{found:#}");
    let about = |found: &Value, about: &str| -> Vec<String> {
        let findings = found["findings"].as_array().into_iter().flatten();
        let findings = findings.filter(|finding| finding["about"] == about);
        findings.filter_map(|finding| finding["level"].as_str().map(str::to_owned)).collect()
    };
    for what in ["configuration", "data", "disk", "clock", "ports", "appliance", "version", "links"] {
        ensure!(about(&found, what) == ["ok"], "{what}: {found:#}");
    }
    // Without the daemon, its ports are in use by others.
    let done = admin.run(&["doctor", "--offline", "--config", &path, "--json"])?;
    let found: Value = serde_json::from_str(&done.out)?;
    ensure!(done.code == 3 && about(&found, "ports") == ["error", "error"], "{found:#}");

    // A missing peer is an error that names the command for more information.
    drop(sink);
    until("the links are down", || Ok(admin.json(&["status"])?["links"]["up"] == 0))?;
    let done = admin.run(&["doctor", "--config", &path])?;
    ensure!(done.code == 3, "{}", done.out);
    ensure!(
        done.out.contains("no link to upstream is up") && done.out.contains("switchyard peer test upstream"),
        "{}",
        done.out
    );

    // An invalid configuration, and no daemon.
    let config = appliance.kill()?.tables("[appliance2]\nx = 1\n").write()?;
    let output =
        Command::new(fixture.binary()).args(["doctor", "--json", "--config"]).arg(&config).output()?;
    let found: Value = serde_json::from_slice(&output.stdout)?;
    ensure!(
        output.status.code() == Some(3) && about(&found, "configuration").contains(&"error".to_owned()),
        "{found:#}"
    );
    Ok(())
}

#[test]
fn a_backup_is_complete_and_readable_only_by_its_owner() -> Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let fixture = Fixture::new()?;
    let tally = Arc::new(Tally::new(1_000));
    let sink = Sink::start(SinkOptions::default(), &tally)?;
    let appliance = config(&fixture, &sink)?.start()?;
    let admin = Admin { fixture: &fixture, appliance: &appliance };
    let file = fixture.folder().join("backup.tar");
    let path = file.to_str().context("no text")?;
    let reply = admin.json(&["backup", path])?;
    let metadata = std::fs::metadata(&file)?;
    ensure!(reply["octets"] == metadata.len() && metadata.permissions().mode() & 0o777 == 0o600, "{reply}");
    let listed = Command::new("tar").arg("-tf").arg(&file).output()?;
    let listed = String::from_utf8(listed.stdout)?;
    ensure!(listed.contains("switchyard.redb") && listed.contains("token"), "{listed}");
    ensure!(admin.run(&["backup", path])?.code == 1, "written over without --force");
    admin.text(&["backup", path, "--force"])?;
    appliance.wait_for_line(TIMEOUT, |line| line.contains("backup"))?;
    Ok(())
}

#[test]
fn the_command_line_documents_itself() -> Result<()> {
    let fixture = Fixture::new()?;
    let folder = fixture.folder().join("man1");
    let made = Command::new(fixture.binary()).arg("man").arg(&folder).output()?;
    ensure!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    for page in [
        "switchyard",
        "switchyard-serve",
        "switchyard-sms-send",
        "switchyard-plugin-canary",
        "switchyard-pool-call",
    ] {
        let page = folder.join(format!("{page}.1"));
        ensure!(page.exists(), "{} is missing", page.display());
    }
    // bash can parse it.
    let script = Command::new(fixture.binary()).args(["completions", "bash"]).output()?;
    let path = fixture.folder().join("completions");
    std::fs::write(&path, &script.stdout)?;
    let question = "COMP_WORDS=(switchyard mess); COMP_CWORD=1; _switchyard switchyard mess switchyard; echo ${COMPREPLY[@]}";
    let asked =
        Command::new("bash").arg("-c").arg(format!("source {}; {question}", path.display())).output()?;
    ensure!(
        asked.stdout == b"message\n",
        "{}",
        String::from_utf8_lossy(&[asked.stdout, asked.stderr].concat())
    );
    Ok(())
}

/// The binary's sample SMSC and sample ESME, with a daemon between them.
#[test]
fn sample_traffic_goes_from_send_to_sink_and_receipts_come_back() -> Result<()> {
    let fixture = Fixture::new()?;
    let address = format!("127.0.0.1:{}", free_port()?);
    let mut sink = Command::new(fixture.binary())
        .args(["sink", "--listen", &address, "--count", "30"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut lines = BufReader::new(sink.stdout.take().context("the sink's output")?).lines();
    ensure!(
        lines.next().context("the sink ended")??.contains(&address),
        "the sink does not say where it listens"
    );
    let mut config = TestDaemonConfig::new(fixture.binary(), &fixture.folder().join("appliance"))?;
    config.native("upstream").account("acme", "window = 100");
    config.peer("upstream", address.parse()?, "links = 2");
    let appliance = config.start()?;
    let send = |password: &str, more: &[&str]| -> Result<CommandOutput> {
        let mut send = Command::new(fixture.binary());
        send.args(["send", "--to", &appliance.smpp().to_string(), "--system-id", "acme", "--from", "10655"]);
        let mut send = send
            .args(more)
            .args(["8613012345678", "price", "5 €"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        writeln!(send.stdin.take().context("no input")?, "{password}")?;
        let output = send.wait_with_output()?;
        let text = |octets: Vec<u8>| String::from_utf8_lossy(&octets).into_owned();
        let code = output.status.code().context("killed")?;
        Ok(CommandOutput { code, out: text(output.stdout), error: text(output.stderr) })
    };
    let done = send("wrong", &[])?;
    ensure!(done.code == 1 && done.error.contains("the bind is refused"), "{} {}", done.code, done.error);
    let done = send(PASSWORD, &["--count", "30", "--rate", "200", "--spread", "3", "--receipts"])?;
    ensure!(done.code == 0, "{} {} {}", done.code, done.out, done.error);
    ensure!(done.out.contains("30 accepted, 0 refused, 0 unanswered"), "{}", done.out);
    ensure!(done.out.contains("delivery receipts: 30 delivered"), "{}", done.out);
    let printed = lines.collect::<std::io::Result<Vec<_>>>()?;
    let of = |number: &str| {
        printed.iter().filter(|line| **line == format!("10655 -> {number}: price 5 €")).count()
    };
    ensure!([of("8613012345678"), of("8613012345679"), of("8613012345680")] == [10; 3], "{printed:#?}");
    ensure!(sink.wait()?.success(), "the sink failed");
    Ok(())
}

/// Runs a command with a closed standard output. Returns its status and its standard error.
fn with_closed_output(command: &mut Command) -> Result<(Option<i32>, String)> {
    let (reader, writer) = std::io::pipe()?;
    drop(reader);
    let mut running = command.stdin(Stdio::piped()).stdout(writer).stderr(Stdio::piped()).spawn()?;
    // For `hash-password`; the other commands do not read it.
    let _ = running.stdin.take().context("no standard input")?.write_all(b"secret\n");
    let ended = running.wait_with_output()?;
    Ok((ended.status.code(), String::from_utf8_lossy(&ended.stderr).into_owned()))
}

#[test]
fn a_command_whose_output_nobody_reads_ends_quietly() -> Result<()> {
    let fixture = Fixture::new()?;
    let tally = Arc::new(Tally::new(1_000));
    let sink = Sink::start(SinkOptions::default(), &tally)?;
    let appliance = config(&fixture, &sink)?.start()?;
    let component = fixture.guest("prefix_router").display().to_string();
    let configuration = appliance.config().write()?.display().to_string();
    for arguments in [
        &["status"][..],
        &["status", "--json"],
        &["plugin", "schema", &component],
        &["plugin", "inspect", &component],
        &["plugin", "list"],
        &["plugin", "log", "router"],
        &["check", "--config", &configuration],
        &["hash-password"],
        &["completions", "bash"],
    ] {
        let (code, error) = with_closed_output(fixture.command(&appliance).args(arguments))?;
        ensure!(code == Some(141), "{arguments:?}: {code:?} {error}");
        ensure!(error.is_empty(), "{arguments:?}: {error}");
    }
    Ok(())
}

/// A command on a pseudo-terminal, by `script` from Debian's package bsdutils.
struct TerminalCommand {
    process: Child,
    keyboard: ChildStdin,
    screen: Arc<Mutex<String>>,
    /// Octets of the screen that were expected already.
    read: usize,
}

impl TerminalCommand {
    fn start(fixture: &Fixture, appliance: &TestDaemon, arguments: &str) -> Result<Self> {
        let command = fixture.command(appliance);
        let mut script = Command::new("script");
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => script.env(name, value),
                None => script.env_remove(name),
            };
        }
        let program = command.get_program().to_str().context("the path of the program is no text")?;
        let line = format!("'{program}' {arguments}");
        script.args(["--quiet", "--return", "--flush", "--echo", "never", "--command", &line, "/dev/null"]);
        let mut process = script.env("NO_COLOR", "1").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let keyboard = process.stdin.take().context("no standard input")?;
        let mut output = process.stdout.take().context("no standard output")?;
        let screen = Arc::<Mutex<String>>::default();
        let shown = screen.clone();
        std::thread::spawn(move || {
            let mut part = [0; 4_096];
            while let Ok(octets @ 1..) = output.read(&mut part) {
                // The expected text is ASCII, which no read can split within a character.
                let text = String::from_utf8_lossy(&part[..octets]).into_owned();
                shown.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push_str(&text);
            }
        });
        Ok(Self { process, keyboard, screen, read: 0 })
    }

    /// Waits until the screen shows this text after the previous expected one. Returns everything up to its end.
    fn expect(&mut self, text: &str) -> Result<String> {
        let screen = || self.screen.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
        until(text, || Ok(screen()[self.read..].contains(text))).with_context(screen)?;
        let all = screen();
        let new = &all[self.read..];
        let shown = new[..new.find(text).map_or(0, |at| at + text.len())].to_owned();
        self.read += shown.len();
        Ok(shown)
    }

    fn type_line(&mut self, line: &str) -> Result<()> {
        writeln!(self.keyboard, "{line}")?;
        Ok(self.keyboard.flush()?)
    }
}

impl Drop for TerminalCommand {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn explain_asks_on_a_terminal_and_nowhere_else() -> Result<()> {
    let fixture = Fixture::new()?;
    let sink = Sink::start(SinkOptions::default(), &Arc::new(Tally::new(100)))?;
    let mut config = TestDaemonConfig::new(fixture.binary(), &fixture.folder().join("appliance"))?;
    config.account("acme", "").account("shop", "").peer("upstream", sink.address(), "dlrs = false");
    config.router(
        &fixture.guest("prefix_router"),
        "[[route]]\nprefix = \"49\"\nlegs = [{ peer = \"upstream\" }]\nnote = \"germany\"\n",
    )?;
    let appliance = config.start()?;
    let admin = Admin { fixture: &fixture, appliance: &appliance };
    let sent = serde_json::json!({ "account": "acme", "from": "10655", "to": "4915112345678", "text": "x" });
    let (status, _) = appliance.request("POST", "/v1/messages", sent.to_string().as_bytes())?;
    ensure!(status < 300, "{status}");

    let mut terminal = TerminalCommand::start(&fixture, &appliance, "explain")?;
    let shown = terminal.expect("account: ")?;
    ensure!(shown.contains("1 acme   2 shop   3 upstream"), "{shown}");
    // The beginning of a name is enough.
    terminal.type_line("ac")?;
    let shown = terminal.expect("source (may be empty): ")?;
    ensure!(shown.contains("1 10655"), "{shown}");
    terminal.type_line("1")?;
    let shown = terminal.expect("destination: ")?;
    ensure!(shown.contains("1 4915112345678"), "{shown}");
    terminal.type_line("8613012345678")?;
    terminal.expect("text (may be empty): ")?;
    terminal.type_line("hello")?;
    let shown = terminal.expect("or end with Enter: ")?;
    ensure!(shown.contains("1. origin: acme") && shown.contains("answer: refused: no route"), "{shown}");
    // One field is changed; the others stay.
    terminal.type_line("d")?;
    terminal.expect("destination [8613012345678]: ")?;
    terminal.type_line("1")?;
    let shown = terminal.expect("or end with Enter: ")?;
    ensure!(shown.contains("germany") && shown.contains("answer: accepted"), "{shown}");
    terminal.type_line("account")?;
    terminal.expect("account [acme]: ")?;
    terminal.type_line("2")?;
    let shown = terminal.expect("or end with Enter: ")?;
    ensure!(shown.contains("1. origin: shop") && shown.contains("answer: accepted"), "{shown}");
    terminal.type_line("")?;
    ensure!(terminal.process.wait()?.success(), "{terminal:?}", terminal = terminal.screen);

    // Without a terminal, the command asks nothing; complete arguments have the same result as with a terminal.
    let done = admin.run(&["explain"])?;
    ensure!(done.code == 2 && done.out.is_empty() && done.error.contains("--destination"), "{}", done.error);
    let out = admin.text(&["explain", "--from-account", "acme", "--destination", "4915112345678"])?;
    ensure!(out.starts_with("origin: acme\n") && out.ends_with("answer: accepted\n"), "{out}");
    Ok(())
}
