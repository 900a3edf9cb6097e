//! The admin's commands against a real appliance: `switchyard status`, `top`, `message`, `peer`, `account`, `doctor`, `backup`.

use anyhow::{Context, Result, ensure};
use behaviour_tests::appliance::{Appliance, Blueprint, PASSWORD, free_port};
use behaviour_tests::load::{Sink, SinkOptions, Tally};
use behaviour_tests::{PATIENCE, Stage, until};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::Arc;

/// What a command did: its exit status, and what it printed on both streams.
struct Done {
    code: i32,
    out: String,
    error: String,
}

struct Admin<'a> {
    stage: &'a Stage,
    appliance: &'a Appliance,
}

impl Admin<'_> {
    fn run(&self, arguments: &[&str]) -> Result<Done> {
        let output = self.stage.command(self.appliance).args(arguments).output()?;
        let text = |octets: Vec<u8>| String::from_utf8_lossy(&octets).into_owned();
        let code = output.status.code().context("killed")?;
        Ok(Done { code, out: text(output.stdout), error: text(output.stderr) })
    }

    /// What a command prints when it succeeds.
    fn prints(&self, arguments: &[&str]) -> Result<String> {
        let done = self.run(arguments)?;
        ensure!(done.code == 0, "{arguments:?}: {} {} {}", done.code, done.out, done.error);
        Ok(done.out)
    }

    /// The same as a document.
    fn says(&self, arguments: &[&str]) -> Result<Value> {
        let out = self.prints(&[arguments, &["--json"]].concat())?;
        serde_json::from_str(&out).with_context(|| format!("{arguments:?}: {out}"))
    }
}

fn blueprint(stage: &Stage, sink: &Sink) -> Result<Blueprint> {
    let mut blueprint = Blueprint::new(stage.binary(), &stage.folder().join("appliance"))?;
    blueprint.native("upstream").account("acme", "window = 100");
    blueprint.peer("upstream", sink.address(), "links = 2\nreceipts = false");
    Ok(blueprint)
}

#[test]
fn the_admin_s_commands() -> Result<()> {
    let stage = Stage::without_guests()?;
    let tally = Arc::new(Tally::new(1_000));
    let sink = Sink::start(SinkOptions::default(), &tally)?;
    let appliance = blueprint(&stage, &sink)?.start()?;
    let admin = Admin { stage: &stage, appliance: &appliance };
    until("both links are up", || Ok(admin.says(&["status"])?["links"]["up"] == 2))?;

    let status = admin.prints(&["status"])?;
    ensure!(status.contains("to peers 2 of 2 up") && status.contains("Nothing needs attention."), "{status}");
    let picture = admin.prints(&["top", "--once", "--interval", "100ms"])?;
    ensure!(
        picture.contains("QUEUE") && picture.contains("upstream") && !picture.contains('\u{1b}'),
        "{picture}"
    );
    ensure!(admin.says(&["top", "--once", "--interval", "100ms"])?["rates"]["accepted"].is_number());
    ensure!(admin.run(&["top"])?.code == 2, "a live picture without a terminal");

    let sent = admin.prints(&[
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
    until("it has ended", || Ok(admin.says(&["message", "show", id])?["finished"] == true))?;
    let trace = admin.prints(&["message", "trace", id])?;
    ensure!(trace.contains("accepted, and on disk") && trace.contains("submitted to upstream"), "{trace}");
    let found = admin.says(&["message", "find", "--account", "acme", "--from", "1h"])?;
    ensure!(found["messages"][0]["id"] == id, "{found:#}");
    ensure!(
        admin.says(&["message", "find", "--account", "nobody"])?["messages"]
            .as_array()
            .is_some_and(Vec::is_empty)
    );
    let done = admin.run(&["message", "cancel", id])?;
    ensure!(done.code == 1 && done.out.is_empty(), "cancelled after its end: {}", done.out);
    ensure!(admin.run(&["message", "show", "1"])?.code == 1);

    let peers = admin.prints(&["peer", "list"])?;
    ensure!(peers.contains("SMPP") && peers.contains(&sink.address().to_string()), "{peers}");
    ensure!(!peers.contains("acme"), "an account is no peer: {peers}");
    let shown = admin.prints(&["peer", "show", "upstream"])?;
    ensure!(shown.contains("(unchanged)") && !shown.contains(PASSWORD), "{shown}");
    let tested = admin.run(&["peer", "test", "upstream"])?;
    ensure!(tested.code == 0, "{} {}", tested.out, tested.error);
    ensure!(admin.run(&["peer", "test", "nobody"])?.code == 1);
    ensure!(admin.prints(&["account", "list"])?.contains("acme"));

    // Adding and taking away, without a restart.
    let address = format!("address={}", sink.address());
    let second = ["peer", "set", "second", &address, "system-id=us", "password=pw", "receipts=false"];
    let changed = admin.prints(&second)?;
    ensure!(changed.contains("/peer/second"), "{changed}");
    until("its link is up", || {
        Ok(admin.says(&["peer", "show", "second"])?["queue"]["links"].as_u64() > Some(0))
    })?;
    let wrong = admin.run(&["peer", "set", "second", "window=\"x\"", "adress=1"])?;
    ensure!(
        wrong.code == 1 && wrong.error.contains("adress") && wrong.error.contains("window"),
        "{}",
        wrong.error
    );
    admin.prints(&["peer", "remove", "second"])?;
    ensure!(admin.run(&["peer", "show", "second"])?.code == 1);

    admin.prints(&["drain", "start"])?;
    let status = admin.prints(&["status"])?;
    ensure!(status.contains("draining") && status.contains("switchyard drain stop"), "{status}");
    admin.prints(&["drain", "stop"])?;
    let (code, _) = appliance.request("GET", "/v1/ready", b"")?;
    ensure!(code == 200, "not ready after the drain: {code}");
    let (status, _) = appliance.stop()?;
    ensure!(status.success());
    Ok(())
}

#[test]
fn the_doctor_finds_what_is_wrong_and_says_what_to_do() -> Result<()> {
    let stage = Stage::without_guests()?;
    let tally = Arc::new(Tally::new(1_000));
    let sink = Sink::start(SinkOptions::default(), &tally)?;
    let blueprint = blueprint(&stage, &sink)?;
    let config = blueprint.write()?;
    let config = config.to_str().context("no text")?.to_owned();
    let appliance = blueprint.start()?;
    let admin = Admin { stage: &stage, appliance: &appliance };
    until("both links are up", || Ok(admin.says(&["status"])?["links"]["up"] == 2))?;
    let found = admin.says(&["doctor", "--config", &config])?;
    ensure!(found["ok"] == true && found["errors"] == 0, "{found:#}");
    let about = |found: &Value, about: &str| -> Vec<String> {
        let findings = found["findings"].as_array().into_iter().flatten();
        let findings = findings.filter(|finding| finding["about"] == about);
        findings.filter_map(|finding| finding["level"].as_str().map(str::to_owned)).collect()
    };
    for what in ["configuration", "data", "disk", "clock", "ports", "appliance", "version", "links"] {
        ensure!(about(&found, what) == ["ok"], "{what}: {found:#}");
    }
    // Without the appliance its ports are somebody else's.
    let done = admin.run(&["doctor", "--offline", "--config", &config, "--json"])?;
    let found: Value = serde_json::from_str(&done.out)?;
    ensure!(done.code == 3 && about(&found, "ports") == ["error", "error"], "{found:#}");

    // A peer that goes away is an error, with the command that says more.
    drop(sink);
    until("the links are down", || Ok(admin.says(&["status"])?["links"]["up"] == 0))?;
    let done = admin.run(&["doctor", "--config", &config])?;
    ensure!(done.code == 3, "{}", done.out);
    ensure!(
        done.out.contains("no link to upstream is up") && done.out.contains("switchyard peer test upstream"),
        "{}",
        done.out
    );

    // A wrong configuration, and no appliance.
    let config = appliance.kill()?.tables("[appliance2]\nx = 1\n").write()?;
    let output = Command::new(stage.binary()).args(["doctor", "--json", "--config"]).arg(&config).output()?;
    let found: Value = serde_json::from_slice(&output.stdout)?;
    ensure!(
        output.status.code() == Some(3) && about(&found, "configuration").contains(&"error".to_owned()),
        "{found:#}"
    );
    Ok(())
}

#[test]
fn a_backup_is_a_whole_archive_for_its_owner_alone() -> Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let stage = Stage::without_guests()?;
    let tally = Arc::new(Tally::new(1_000));
    let sink = Sink::start(SinkOptions::default(), &tally)?;
    let appliance = blueprint(&stage, &sink)?.start()?;
    let admin = Admin { stage: &stage, appliance: &appliance };
    let file = stage.folder().join("backup.tar");
    let path = file.to_str().context("no text")?;
    let told = admin.says(&["backup", path])?;
    let metadata = std::fs::metadata(&file)?;
    ensure!(told["octets"] == metadata.len() && metadata.permissions().mode() & 0o777 == 0o600, "{told}");
    let listed = Command::new("tar").arg("-tf").arg(&file).output()?;
    let listed = String::from_utf8(listed.stdout)?;
    ensure!(listed.contains("switchyard.redb") && listed.contains("token"), "{listed}");
    ensure!(admin.run(&["backup", path])?.code == 1, "written over without --force");
    admin.prints(&["backup", path, "--force"])?;
    appliance.wait_for_line(PATIENCE, |line| line.contains("backup"))?;
    Ok(())
}

#[test]
fn the_command_line_documents_itself() -> Result<()> {
    let stage = Stage::without_guests()?;
    let folder = stage.folder().join("man1");
    let made = Command::new(stage.binary()).arg("man").arg(&folder).output()?;
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
    // bash takes what it is given.
    let script = Command::new(stage.binary()).args(["completions", "bash"]).output()?;
    let path = stage.folder().join("completions");
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

/// The sample SMSC and the sample ESME of the binary, with an appliance between them.
#[test]
fn sample_traffic_goes_from_send_to_sink_and_its_receipts_come_back() -> Result<()> {
    let stage = Stage::without_guests()?;
    let address = format!("127.0.0.1:{}", free_port()?);
    let mut sink = Command::new(stage.binary())
        .args(["sink", "--listen", &address, "--count", "30"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut lines = BufReader::new(sink.stdout.take().context("the sink's output")?).lines();
    ensure!(
        lines.next().context("the sink ended")??.contains(&address),
        "the sink does not say where it listens"
    );
    let mut blueprint = Blueprint::new(stage.binary(), &stage.folder().join("appliance"))?;
    blueprint.native("upstream").account("acme", "window = 100");
    blueprint.peer("upstream", address.parse()?, "links = 2");
    let appliance = blueprint.start()?;
    let send = |password: &str, more: &[&str]| -> Result<Done> {
        let mut send = Command::new(stage.binary());
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
        Ok(Done { code, out: text(output.stdout), error: text(output.stderr) })
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
