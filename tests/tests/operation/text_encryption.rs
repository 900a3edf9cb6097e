//! Texts are encrypted in every file, and unreadable after the destruction of their key.

use anyhow::{Context, Result, ensure};
use behaviour_tests::load::{Sink, SinkOptions, Tally};
use behaviour_tests::test_daemon::{TestDaemon, TestDaemonConfig};
use behaviour_tests::{Fixture, TIMEOUT, until};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

/// A text in the default alphabet.
const SECRET: &str = "the marker is 4711";
/// A text that needs UCS-2.
const CYRILLIC_SECRET: &str = "\u{436}\u{43c}\u{44f} marker 4712";
/// A text of an account that does not encrypt: the search must find it.
const CLEAR: &str = "everybody may read 4713";

/// Septets without their padding, as TPDUs have them (3GPP TS 23.038 §6.1.2.1). ASCII letters, digits and spaces only.
fn packed(text: &str) -> Vec<u8> {
    let (mut octets, mut bits, mut filled) = (Vec::new(), 0_u32, 0);
    for septet in text.bytes() {
        bits |= u32::from(septet) << filled;
        filled += 7;
        if filled >= 8 {
            octets.push(bits as u8);
            bits >>= 8;
            filled -= 8;
        }
    }
    octets
}

/// A text in all encodings in which a file could have it.
fn encodings(text: &str) -> Vec<Vec<u8>> {
    let ucs2: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
    let mut all = vec![text.as_bytes().to_vec(), ucs2];
    if text.is_ascii() {
        all.push(packed(text));
    }
    let hex: Vec<Vec<u8>> = all.iter().map(|octets| model::hex(octets).into_bytes()).collect();
    all.extend(hex);
    all
}

fn files_below(folder: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            files_below(&path, found)?;
        } else {
            found.push(path);
        }
    }
    Ok(())
}

/// Searches files for texts, for all of them in one pass.
struct TextSearch {
    /// The encodings of each text.
    texts: Vec<(&'static str, Vec<Vec<u8>>)>,
    /// Whether an encoding begins with these two octets.
    begins: Vec<bool>,
    longest: usize,
}

/// Octets that are read and searched at a time.
const PART: usize = 1 << 20;

impl TextSearch {
    fn new(texts: &[&'static str]) -> Self {
        let texts: Vec<_> = texts.iter().map(|text| (*text, encodings(text))).collect();
        let mut begins = vec![false; 1 << 16];
        let all = texts.iter().flat_map(|(_, encodings)| encodings);
        all.clone()
            .for_each(|encoding| begins[usize::from(encoding[0]) << 8 | usize::from(encoding[1])] = true);
        let longest = all.map(Vec::len).max().unwrap_or(0);
        Self { texts, begins, longest }
    }

    fn search(&self, octets: &[u8], found: &mut BTreeSet<&'static str>) {
        let mut begin = 0;
        for at in 0..octets.len() {
            begin = (begin << 8 | usize::from(octets[at])) & 0xffff;
            if at == 0 || !self.begins[begin] {
                continue;
            }
            let rest = &octets[at - 1..];
            let here = self.texts.iter().filter(|(_, all)| all.iter().any(|one| rest.starts_with(one)));
            found.extend(here.map(|(text, _)| *text));
        }
    }

    /// The texts that a file has.
    fn texts_in_file(&self, path: &Path) -> Result<BTreeSet<&'static str>> {
        let (mut file, mut found) = (std::fs::File::open(path)?, BTreeSet::new());
        // Only zeros are skipped: a disk has a lot of them.
        let zeros = vec![0; PART + self.longest];
        let mut octets = Vec::with_capacity(zeros.len());
        while (&mut file).take(PART as u64).read_to_end(&mut octets)? > 0 {
            if octets != zeros[..octets.len()] {
                self.search(&octets, &mut found);
            }
            // A text may begin here and end in the next part.
            octets.drain(..octets.len().saturating_sub(self.longest));
        }
        Ok(found)
    }

    /// The texts that the files below a folder have, and one of the files of each.
    fn below(&self, folder: &Path) -> Result<BTreeMap<&'static str, PathBuf>> {
        let mut files = Vec::new();
        files_below(folder, &mut files)?;
        let mut found = BTreeMap::new();
        for file in files {
            found.extend(self.texts_in_file(&file)?.into_iter().map(|text| (text, file.clone())));
        }
        Ok(found)
    }
}

/// Ensures that only the text that is not encrypted is found.
fn ensure_encrypted(found: &BTreeSet<&str>, place: &dyn std::fmt::Debug) -> Result<()> {
    ensure!(*found == BTreeSet::from([CLEAR]), "{found:?} in {place:?}");
    Ok(())
}

fn refuse() -> SinkOptions {
    SinkOptions { error_status: 0x08, error_every: 1, ..SinkOptions::default() }
}

struct Setup {
    fixture: Fixture,
    sink: Sink,
}

impl Setup {
    fn new() -> Result<Self> {
        let setup = Self {
            fixture: Fixture::new()?,
            sink: Sink::start(SinkOptions::default(), &Arc::new(Tally::new(100)))?,
        };
        let made = setup.command(&["privacy", "new-root-key"], &[&setup.root_key()])?;
        ensure!(made.0, "{}", made.1);
        Ok(setup)
    }

    fn root_key(&self) -> PathBuf {
        self.fixture.folder().join("root.key")
    }

    fn config(&self, folder: &Path, privacy: &str) -> Result<TestDaemonConfig> {
        let mut config = TestDaemonConfig::new(self.fixture.binary(), folder)?;
        config.native("upstream").account("acme", "").account("clear", "encrypt-texts = false");
        let peer = "dlrs = false\nuncertain = \"send-again\"\nretry = [\"200ms\"]\nmax-attempts = 10000";
        config.peer("upstream", self.sink.address(), peer);
        config.archive(&format!("sqlite:{}", config.data().join("archive.db").display()));
        let root = self.root_key();
        config.tables(&format!(
            "[privacy]\nroot-key-file = \"{}\"\nencrypt-texts = true\n{privacy}\n",
            root.display()
        ));
        Ok(config)
    }

    /// Runs a command of the appliance; returns whether it succeeds, and its output.
    fn command(&self, arguments: &[&str], files: &[&Path]) -> Result<(bool, String)> {
        let output = Command::new(self.fixture.binary()).args(arguments).args(files).output()?;
        let words = [output.stdout, output.stderr].concat();
        Ok((output.status.success(), String::from_utf8_lossy(&words).into_owned()))
    }

    /// The numbers of an account's keys, the oldest first.
    fn keys(&self, config: &TestDaemonConfig, account: &str) -> Result<Vec<String>> {
        let (done, listed) = self.command(&["privacy", "keys", "--config"], &[&config.write()?])?;
        ensure!(done, "{listed}");
        let words = listed.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let of_account = words.filter(|words| words.last() == Some(&account));
        Ok(of_account.filter_map(|words| Some((*words.first()?).to_owned())).collect())
    }

    /// Destroys all keys of texts while the daemon is stopped.
    fn destroy_all_keys(&self, config: &TestDaemonConfig) -> Result<()> {
        let file = config.write()?;
        let (_, listed) = self.command(&["privacy", "keys", "--config"], &[&file])?;
        let numbers: Vec<&str> = listed.lines().filter_map(|line| line.split_whitespace().next()).collect();
        ensure!(listed.contains("acme") && !listed.contains("clear"), "{listed}");
        let file = file.to_str().context("a path")?;
        let arguments = [&["privacy", "destroy-keys", "--config", file][..], &numbers].concat();
        let (done, words) = self.command(&arguments, &[])?;
        ensure!(done && words.contains("keys destroyed"), "{words}");
        Ok(())
    }
}

fn send(appliance: &TestDaemon, account: &str, text: &str) -> Result<String> {
    let message = json!({ "account": account, "from": "1", "to": "8613", "text": text });
    let sent = appliance.ask("POST", "/v1/messages", message.to_string().as_bytes())?;
    Ok(sent["id"].as_str().context("no id")?.to_owned())
}

/// Cancels a message, once it is not on its way.
fn cancel(appliance: &TestDaemon, id: &str) -> Result<()> {
    until("the message is cancelled", || {
        appliance.request("POST", &format!("/v1/messages/{id}/cancel"), b"")?;
        Ok(trace(appliance, id)?["finished"] == true)
    })
}

fn trace(appliance: &TestDaemon, id: &str) -> Result<Value> {
    appliance.get(&format!("/v1/messages/{id}?body=true"))
}

fn back_up(appliance: &TestDaemon, to: &Path) -> Result<()> {
    let url = format!("http://{}/v1/backup", appliance.config().http());
    let asked = ureq::get(&url).header("authorization", format!("Bearer {}", appliance.token()?)).call();
    let octets = asked?.into_body().with_config().limit(1 << 30).read_to_vec()?;
    Ok(std::fs::write(to, octets)?)
}

fn ensure_erased(appliance: &TestDaemon, id: &str, state: &str) -> Result<()> {
    let shown = trace(appliance, id)?;
    ensure!(shown["body"].is_null() && !shown["content_erased_at"].is_null(), "{shown:#}");
    ensure!(shown["state"] == state && shown["destination"] == "8613", "the message stays: {shown:#}");
    ensure!(shown["steps"].to_string().contains("destruction of its key"), "{shown:#}");
    Ok(())
}

/// Messages are accepted, archived and kept waiting, over a crash; their files are searched; then their keys are destroyed.
/// `disk`: the folder is there, and the raw disk is searched, too.
fn texts_are_encrypted_in(folder: &Path, disk: Option<&MountedImage>) -> Result<()> {
    let setup = Setup::new()?;
    let config = setup.config(&folder.join("appliance"), "")?;
    let appliance = config.start()?;
    let archived = [send(&appliance, "acme", SECRET)?, send(&appliance, "acme", CYRILLIC_SECRET)?];
    let clear = send(&appliance, "clear", CLEAR)?;
    appliance.wait_until(TIMEOUT, "/v1/archive", |pump| pump["archived"] == 3 && pump["backlog"] == 0)?;
    setup.sink.behave(refuse());
    let waiting = [send(&appliance, "acme", SECRET)?, send(&appliance, "acme", CYRILLIC_SECRET)?];

    let appliance = appliance.kill()?.start()?;
    for (id, text) in archived.iter().chain(&waiting).zip([SECRET, CYRILLIC_SECRET].iter().cycle()) {
        let shown = trace(&appliance, id)?;
        ensure!(shown["body"] == *text, "{shown:#}");
    }
    ensure!(trace(&appliance, &clear)?["body"] == CLEAR);
    let history = appliance.get("/v1/history?body=1&account=acme")?.to_string();
    ensure!(history.contains(&model::hex(SECRET.as_bytes())), "{history}");
    let backup = folder.join("backup.tar");
    back_up(&appliance, &backup)?;
    setup.sink.behave(SinkOptions::default());
    until("the waiting messages are delivered", || {
        let states = waiting.iter().map(|id| Ok(trace(&appliance, id)?["state"] == "relayed"));
        Ok(states.collect::<Result<Vec<_>>>()?.into_iter().all(|is_delivered| is_delivered))
    })?;
    appliance.wait_until(TIMEOUT, "/v1/archive", |pump| pump["backlog"] == 0)?;
    setup.sink.behave(refuse());
    let last = send(&appliance, "acme", SECRET)?;

    // All files: the journal, the tables, the archive and its log, the backup.
    let config = appliance.kill()?;
    let all = TextSearch::new(&[SECRET, CYRILLIC_SECRET, CLEAR]);
    let found = all.below(folder)?;
    ensure_encrypted(&found.keys().copied().collect(), &found)?;
    if let Some(disk) = disk {
        ensure_encrypted(&disk.texts(&all)?, &disk.image)?;
    }

    setup.destroy_all_keys(&config)?;
    let appliance = config.start()?;
    for id in archived.iter().chain(&waiting) {
        ensure_erased(&appliance, id, "relayed")?;
    }
    ensure!(trace(&appliance, &clear)?["body"] == CLEAR);
    until("the waiting message fails", || Ok(trace(&appliance, &last)?["state"] == "failed"))?;
    ensure_erased(&appliance, &last, "failed")?;
    let shown = trace(&appliance, &last)?;
    ensure!(shown["steps"].to_string().contains("ended: failed, error 900"), "{shown:#}");
    let history = appliance.get("/v1/history?body=1&trace=1&account=acme")?.to_string();
    ensure!(!history.contains(&model::hex(SECRET.as_bytes())), "{history}");
    appliance.stop()?;

    // The backup has no keys. With the file of the appliance, they are destroyed there, too.
    let restored = setup.config(&folder.join("restored"), "")?;
    let data = restored.data();
    let (file, target) = (backup.to_str().context("a path")?, data.to_str().context("a path")?);
    let (done, words) = setup.command(&["restore", file, "--send-again", "--data", target], &[])?;
    ensure!(done && !data.join("text.keys").exists(), "{words}");
    let mut refused = Command::new(setup.fixture.binary());
    let refused = refused.arg("serve").arg("--config").arg(restored.write()?).output()?;
    let words = String::from_utf8_lossy(&refused.stderr).into_owned();
    ensure!(!refused.status.success() && words.contains("text.keys with their keys is missing"), "{words}");
    std::fs::copy(folder.join("appliance/data/text.keys"), data.join("text.keys"))?;
    let appliance = restored.start()?;
    for id in &waiting {
        until("the restored message fails", || Ok(trace(&appliance, id)?["state"] == "failed"))?;
        ensure_erased(&appliance, id, "failed")?;
    }
    appliance.stop()?;
    setup.sink.stop()?;
    Ok(())
}

#[test]
fn no_file_has_an_encrypted_text_and_nothing_reads_it_after_the_destruction_of_its_key() -> Result<()> {
    let fixture = Fixture::new()?;
    texts_are_encrypted_in(fixture.folder(), None)
}

/// An ext4 file system in a file.
struct MountedImage {
    image: PathBuf,
    folder: PathBuf,
}

impl MountedImage {
    /// `None` if this machine does not allow it.
    fn new(fixture: &Fixture) -> Result<Option<Self>> {
        let mounted =
            Self { image: fixture.folder().join("disk.img"), folder: fixture.folder().join("mounted") };
        std::fs::File::create(&mounted.image)?.set_len(512 << 20)?;
        std::fs::create_dir(&mounted.folder)?;
        let run = |command: &mut Command| command.output().is_ok_and(|output| output.status.success());
        let is_mounted = run(Command::new("mkfs.ext4").arg("-q").arg(&mounted.image))
            && run(Command::new("mount").args(["-o", "loop"]).arg(&mounted.image).arg(&mounted.folder));
        Ok(is_mounted.then_some(mounted))
    }

    /// The texts that the raw disk has, in files or anywhere else.
    fn texts(&self, search: &TextSearch) -> Result<BTreeSet<&'static str>> {
        ensure!(Command::new("sync").arg("-f").arg(&self.folder).status()?.success(), "sync");
        search.texts_in_file(&self.image)
    }
}

impl Drop for MountedImage {
    fn drop(&mut self) {
        // A failure leaves a mount in a folder of this test only.
        let _ = Command::new("umount").arg(&self.folder).status();
    }
}

#[test]
fn a_raw_disk_has_no_encrypted_text() -> Result<()> {
    let fixture = Fixture::new()?;
    let Some(disk) = MountedImage::new(&fixture)? else {
        eprintln!("NOT TESTED: this machine does not let the test mount an ext4 image");
        return Ok(());
    };
    texts_are_encrypted_in(&disk.folder, Some(&disk))
}

#[test]
fn keys_are_destroyed_after_the_retention_of_texts_unless_a_message_waits() -> Result<()> {
    let setup = Setup::new()?;
    let folder = setup.fixture.folder().join("appliance");
    let mut config = setup.config(&folder, "key-period = \"1s\"")?;
    config.account("brief", "text-retention = \"1s\"");
    let appliance = config.start()?;
    let keys = |account: &str| setup.keys(appliance.config(), account);
    let finished = send(&appliance, "brief", SECRET)?;
    let kept = send(&appliance, "acme", SECRET)?;
    appliance.wait_until(TIMEOUT, "/v1/archive", |pump| pump["archived"] == 2 && pump["backlog"] == 0)?;
    until("the keys are destroyed", || Ok(keys("brief")?.is_empty()))?;
    // The archive overwrites texts after the same time: either may have been first.
    let shown = trace(&appliance, &finished)?;
    ensure!(shown["body"].is_null() && !shown["content_erased_at"].is_null(), "{shown:#}");
    ensure!(trace(&appliance, &kept)?["body"] == SECRET && !keys("acme")?.is_empty(), "of another account");

    setup.sink.behave(refuse());
    let waiting = send(&appliance, "brief", CYRILLIC_SECRET)?;
    let of_waiting = keys("brief")?.first().cloned().context("no key")?;
    // Messages of later periods end, so their keys are not needed.
    until("another period has a key", || {
        cancel(&appliance, &send(&appliance, "brief", SECRET)?)?;
        Ok(keys("brief")?.len() > 1)
    })?;
    until("the other keys are destroyed", || Ok(keys("brief")? == [of_waiting.as_str()]))?;
    let shown = trace(&appliance, &waiting)?;
    ensure!(shown["body"] == CYRILLIC_SECRET, "a message that waits keeps its text: {shown:#}");
    setup.sink.behave(SinkOptions::default());
    until("it is delivered", || Ok(trace(&appliance, &waiting)?["state"] == "relayed"))?;
    // A key that was in use is looked at again after a time, or when another one expires.
    send(&appliance, "brief", SECRET)?;
    until("its key is destroyed, too", || Ok(!keys("brief")?.contains(&of_waiting)))?;
    until("its text is erased", || Ok(trace(&appliance, &waiting)?["body"].is_null()))?;
    appliance.stop()?;
    setup.sink.stop()?;
    Ok(())
}

#[test]
fn a_root_key_that_is_missing_or_wrong_stops_the_start_and_so_does_a_cluster() -> Result<()> {
    let setup = Setup::new()?;
    let folder = setup.fixture.folder().join("appliance");
    let config = setup.config(&folder, "")?;
    let appliance = config.start()?;
    send(&appliance, "acme", SECRET)?;
    appliance.stop()?;
    let refusal = |config: &TestDaemonConfig| -> Result<String> {
        let output = Command::new(setup.fixture.binary())
            .arg("serve")
            .arg("--config")
            .arg(config.write()?)
            .output()?;
        ensure!(!output.status.success());
        Ok(String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let right = std::fs::read(setup.root_key())?;
    std::fs::write(setup.root_key(), [7; 32])?;
    let words = refusal(&config)?;
    ensure!(words.contains("text.keys was written with another root key"), "{words}");
    std::fs::write(setup.root_key(), &right[..31])?;
    ensure!(refusal(&config)?.contains("must have exactly 32 octets"));
    std::fs::remove_file(setup.root_key())?;
    ensure!(refusal(&config)?.contains("cannot be read"));

    let mut without = TestDaemonConfig::new(setup.fixture.binary(), &folder)?;
    without.native("upstream").account("acme", "").peer("upstream", setup.sink.address(), "");
    let words = refusal(&without)?;
    ensure!(words.contains("root-key-file of [privacy] is not set"), "{words}");
    without.account("other", "encrypt-texts = true");
    let (is_right, problems) = without.check()?;
    ensure!(!is_right && problems.contains("needs root-key-file of [privacy]"), "{problems}");
    setup.sink.stop()?;
    Ok(())
}
