//! `switchyard plugin fuzz`: the default plugins hold all properties, and a fault is found and shrunk to a case.

use anyhow::{Context, Result, ensure};
use behaviour_tests::Fixture;
use std::path::{Path, PathBuf};

/// Questions to each default plugin.
const QUESTIONS: &str = "2000";

/// A component, its document in `policies/`, and the rest of the setup.
const DEFAULT_PLUGINS: [(&str, &str, &str); 16] = [
    ("prefix_router", "routes", "[given.peers]\nupstream = {}\n"),
    ("least_cost", "least-cost", "[given.peers]\nupstream = { queued = 7 }\n"),
    (
        "adaptive",
        "adaptive",
        "[given.peers]\nupstream = {}\n[[given.quality]]\npeer = \"upstream\"\naccepted = 100\ndelivered = 40\nfailed = 60\n",
    ),
    ("fraud_guard", "fraud", ""),
    ("firewall", "firewall", ""),
    (
        "shared_sender",
        "shared-sender",
        "[given.peers]\nupstream = {}\n[given.pools]\nsupport-line = { ready = 1, total = 2, busy = 1 }\n",
    ),
    (
        "table_resolver",
        "subscribers",
        "grants = { tables = [\"hlr\"] }\n[given.peers]\nnorth = {}\n[given.tables.hlr]\nkind = \"exact\"\nrows = { 8613 = \
         \"460001234567890\", 8614 = \"460001234567891,north\", 8615 = \"not an IMSI\", 8616 = \"\" }\n",
    ),
    (
        "http_resolver",
        "lookup",
        "grants = { http = [\"http://127.0.0.1:8088/\"] }\n[[given.http]]\nurl = \
         \"http://127.0.0.1:8088/subscribers/8613\"\nbody = '{ \"imsi\": \"460001234567890\", \"ttl\": \
         1e300 }'\n[[given.http]]\nurl = \"http://127.0.0.1:8088/subscribers/8614\"\nbody = '[[[[{'\n[[given.http]]\nurl = \
         \"http://127.0.0.1:8088/subscribers/8615\"\nfailure = \"timed-out\"\n",
    ),
    (
        "hlr_resolver",
        "hlr",
        "grants = { hlr = true }\n[given.hlr]\n8613 = { imsi = \"460001234567890\" }\n8614 = { imsi = \"not an IMSI\" }\n",
    ),
    (
        "number_portability",
        "number-portability",
        "grants = { tables = [\"ported\"] }\n[given.tables.ported]\nkind = \"exact\"\nrows = { 8613 = \"262-03,mobile\", 8614 = \"north\", 8615 \
         = \"nobody\", 8616 = \"\" }\n",
    ),
    ("retry_ladder", "retries", ""),
    ("second_chance", "second-chance", ""),
    ("prepaid", "prices", ""),
    ("kannel_front_end", "kannel-front-end", ""),
    ("jasmin_front_end", "jasmin-front-end", ""),
    ("twilio_front_end", "twilio-front-end", ""),
];

struct Author {
    fixture: Fixture,
    folder: PathBuf,
}

impl Author {
    fn new() -> Result<Self> {
        let fixture = Fixture::new()?;
        let folder = fixture.folder().to_owned();
        Ok(Self { fixture, folder })
    }

    /// A file of cases with this `[given]`.
    fn cases(&self, name: &str, text: &str) -> Result<PathBuf> {
        let path = self.folder.join(format!("{name}.toml"));
        std::fs::write(&path, text)?;
        Ok(path)
    }

    /// Runs `switchyard plugin`. Returns the exit code, standard output and standard error.
    fn plugin(&self, component: &str, command: &[&str], cases: &Path) -> Result<(i32, String, String)> {
        let mut plugin = std::process::Command::new(self.fixture.binary());
        plugin.args(["plugin", command[0]]).arg(self.fixture.guest(component)).arg("--cases").arg(cases);
        let output = plugin.args(&command[1..]).output()?;
        let code = output.status.code().context("killed")?;
        Ok((code, String::from_utf8(output.stdout)?, String::from_utf8(output.stderr)?))
    }
}

#[test]
fn the_default_plugins_hold_all_properties() -> Result<()> {
    let author = Author::new()?;
    for (component, policy, more) in DEFAULT_PLUGINS {
        let document = workspace::root().join("policies").join(format!("{policy}.toml"));
        let cases =
            author.cases(component, &format!("[given]\npolicy = {:?}\n{more}", document.display()))?;
        let command = ["fuzz", "--questions", QUESTIONS, "--seconds", "600"];
        let (code, stdout, stderr) = author.plugin(component, &command, &cases)?;
        ensure!(code == 0, "{component}: {stdout}{stderr}");
        // On a busy machine, some calls may exceed the deadline, but not when they are repeated.
        let holds = stdout.contains(", no violation; ") && stdout.contains("; seed ");
        ensure!(stdout.contains(": 2,000 questions in ") && holds, "{stdout}");
    }
    Ok(())
}

/// The guest fails for messages from `bad`, and to numbers that begin with 666.
#[test]
fn a_fault_is_shrunk_to_a_case_that_can_be_appended() -> Result<()> {
    let author = Author::new()?;
    for (mood, kind) in
        [("trap", "trap"), ("loop", "deadline"), ("hog", "memory"), ("unknown-peer", "verdict")]
    {
        // Only the endless loop reaches its deadline; on a busy machine, a plugin needs long to fill its memory.
        let deadline_ms = if kind == "deadline" { 50 } else { 60_000 };
        let given = format!(
            "[given]\npolicy-text = \"{mood} north\"\ndeadline-ms = {deadline_ms}\n[given.peers]\nnorth = {{}}\n"
        );
        let cases = author.cases(mood, &given)?;
        let command = ["fuzz", "--seed", "7", "--seconds", "600"];
        let (code, stdout, stderr) = author.plugin("test_moody_router", &command, &cases)?;
        ensure!(code == 1 && stderr.contains("; seed 7"), "{code}: {stdout}{stderr}");
        let expected = format!(
            "[[case]]\nname = \"fuzz: {kind}, seed 7\"\nroute = {{ destination = \"666\", origin = \"shop\" }}\nexpect = {{ fault = \
             \"{kind}\" }}\n"
        );
        ensure!(stdout.ends_with(&expected), "{stdout}");
        let again = author.plugin("test_moody_router", &command, &cases)?;
        ensure!(again.1 == stdout, "the seed does not repeat it: {}", again.1);

        // The case passes as long as the plugin fails, and fails with the answer that the author wants instead.
        std::fs::write(&cases, format!("{given}{stdout}"))?;
        let (code, passed, stderr) = author.plugin("test_moody_router", &["test"], &cases)?;
        ensure!(code == 0 && passed.contains("1 cases, all right"), "{passed}{stderr}");
        let wanted = stdout.replace(&format!("{{ fault = \"{kind}\" }}"), "{ forward = [\"north\"] }");
        std::fs::write(&cases, format!("{given}{wanted}"))?;
        let (code, _, stderr) = author.plugin("test_moody_router", &["test"], &cases)?;
        ensure!(code == 1 && stderr.contains("1 of 1 cases failed"), "{stderr}");
    }
    Ok(())
}

/// Without a file of cases, the case contains the policy document and the peers that it needs.
#[test]
fn a_component_alone_is_fuzzed_with_a_document() -> Result<()> {
    let author = Author::new()?;
    let policy = author.folder.join("policy.txt");
    std::fs::write(&policy, "bad-utf8 north\n")?;
    let mut fuzz = std::process::Command::new(author.fixture.binary());
    fuzz.args(["plugin", "fuzz", "--seed", "7", "--policy"]).arg(&policy);
    let output = fuzz.arg(author.fixture.guest("test_moody_router")).output()?;
    let stdout = String::from_utf8(output.stdout)?;
    ensure!(output.status.code() == Some(1), "{}: {stdout}", output.status);
    let cases = author.cases("cases", &stdout)?;
    let (code, passed, stderr) = author.plugin("test_moody_router", &["test"], &cases)?;
    ensure!(code == 0 && passed.contains("1 cases, all right"), "{stdout}\n{passed}{stderr}");
    // A document that the plugin refuses.
    std::fs::write(&policy, "sad north\n")?;
    let output = fuzz.output()?;
    let stderr = String::from_utf8(output.stderr)?;
    ensure!(
        output.status.code() == Some(1) && stderr.contains("refuses it") && stderr.contains("--policy"),
        "{stderr}"
    );
    Ok(())
}
