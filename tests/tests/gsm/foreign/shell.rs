//! Subscribers on the command line, with third-party ESMEs and SMSCs, and through a real sshd.

use crate::shell::{A, B, C, ShellFixture, current_uid, is_root, output_text, texts, user};
use anyhow::{Context, Result, ensure};
use behaviour_tests::test_daemon::{PASSWORD, free_port};
use behaviour_tests::{Peer, TIMEOUT, until};
use serde_json::{Value, json};
use std::fs::Permissions;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};

#[test]
fn a_message_survives_a_kill_before_delivery_and_is_sent_once() -> Result<()> {
    let shell = ShellFixture::new()?;
    let port = free_port()?;
    let mut config = shell.config(&[user(current_uid(), &[A], "")])?;
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    config.peer("upstream", address, "uncertain = \"send-again\"");
    let appliance = config.start()?;
    let id = shell.send(current_uid(), &["--key", "one", "+491701234567", "durable?"])?;
    let appliance = appliance.kill()?.start()?;
    // The idempotency key is remembered too: a repetition is the same message, and another text with this key is refused.
    assert_eq!(shell.send(current_uid(), &["--key", "one", "+491701234567", "durable?"])?, id);
    shell.refused(current_uid(), &["send", "--key", "one", "+491701234567", "other"], 65, "used before")?;
    let waiting = shell.page(current_uid(), &["log"])?;
    assert_eq!(
        (&waiting["messages"][0]["id"], &waiting["messages"][0]["state"]),
        (&json!(id), &json!("queued"))
    );
    let mut upstream = Peer::node("upstream.js", &json!({ "receipts": true, "port": port }))?;
    let submit = upstream.expect("submit")?;
    assert_eq!((&submit["text"], &submit["source"]), (&json!("durable?"), &json!("16195550101")));
    assert_eq!((&submit["destination"], &submit["source_ton"]), (&json!("491701234567"), &json!(1)));
    until("its receipt is in the log", || {
        Ok(shell.page(current_uid(), &["log"])?["messages"][0]["state"] == "delivered")
    })?;
    let log = shell.page(current_uid(), &["log"])?;
    assert_eq!(texts(&log), [Some("durable?")]);
    // The shell's own DLR request leaves nothing behind.
    appliance.wait_until(TIMEOUT, "/v1/status", |status| status["waiting"] == 0)?;
    // The router's refusal has its own exit status.
    let mut refused = shell.sms(current_uid(), &["send", "+491701234567"]);
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
    let users = [user(current_uid(), &[A], "deliver = true"), user(current_uid(), &[B], "")];
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
        esme.send_action(
            &json!({ "text": format!("for {to}"), "from": "10655", "to": digits, "receipt": true }),
        )?;
        let receipt = esme.expect("deliver")?;
        let text = receipt["text"].as_str().unwrap_or_default();
        ensure!(text.contains(&format!("stat:{state}")), "{to}: {text}");
    }
    for (own, note) in [(A, "has an inbox in the shell"), (B, "")] {
        let inbox = shell.page(current_uid(), &["--as", own, "inbox"])?;
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
    let users =
        [user(current_uid(), &[A, B], "deliver = true"), user(current_uid(), &[C], "operator = true")];
    let port = free_port()?;
    let mut config = shell.config(&users)?;
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    config.peer("upstream", address, "dlrs = false\nuncertain = \"send-again\"");
    let appliance = config.start()?;
    let b = Following::start(&mut shell.sms(current_uid(), &["--as", B, "follow", "--json"]))?;
    let everything = Following::start(&mut shell.sms(current_uid(), &["--operator", "follow", "--json"]))?;
    // There is no sign that following has begun except the first event.
    for follower in [&b, &everything] {
        until("it follows", || {
            shell.send(current_uid(), &["--as", B, B, "knock"])?;
            Ok(follower.lines.recv_timeout(std::time::Duration::from_millis(200)).is_ok())
        })?;
    }
    // Not visible to B.
    shell.send(current_uid(), &["--as", A, C, "from a to c"])?;
    let id = shell.send(current_uid(), &["--as", A, B, "new"])?;
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
    let out = shell.send(current_uid(), &["--as", B, "+491701234567", "out"])?;
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
    let text = std::fs::read_to_string(workspace::root().join(page))?;
    let line =
        text.lines().map(|line| line.trim_matches('`')).find(|line| line.starts_with("restrict,command="));
    Ok(line.with_context(|| format!("{page} has no such line"))?.to_owned())
}

#[test]
fn with_a_real_sshd_the_documented_line_allows_one_number_and_nothing_else() -> Result<()> {
    let shell = ShellFixture::new()?;
    let folder = tempfile::tempdir()?;
    // The key's number is configured only as one that has an inbox.
    let any = format!("uid = {}\nnumbers = \"any\"\ndeliver = [\"+1619555*\"]", current_uid());
    let config = shell.config(&[any, user(current_uid(), &[A], "deliver = true")])?;
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
        let inbox = shell.page(current_uid(), &["--as", A, "inbox"])?;
        Ok(inbox["messages"][0]["state"] == "delivered")
    })?;
    let inbox = shell.page(current_uid(), &["--as", A, "inbox"])?;
    assert_eq!(texts(&inbox), [Some("two  words; $HOME `id`")]);
    assert_eq!((&inbox["messages"][0]["id"], &inbox["messages"][0]["from"]), (&json!(id), &json!(own)));
    shell.send(current_uid(), &["--as", A, own, "an answer"])?;
    until("the answer arrives", || Ok(done(&["inbox"])?.contains("an answer")))?;
    let log: Value = serde_json::from_str(&done(&["log", "--json", "--limit", "5"])?)?;
    assert_eq!(texts(&log), [Some("an answer"), Some("two  words; $HOME `id`")]);
    let mut piped = sshd.ssh(&[], &["send", A]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    piped.stdin.take().context("stdin")?.write_all("it's piped\n".as_bytes())?;
    ensure!(piped.wait_with_output()?.status.success());
    until("the piped message arrives", || {
        Ok(texts(&shell.page(current_uid(), &["--as", A, "inbox"])?).first() == Some(&Some("it's piped")))
    })?;

    // Never as another number, and never anywhere else.
    shell.send(current_uid(), &["--as", A, A, "a secret of a's"])?;
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
