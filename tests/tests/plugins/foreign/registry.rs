//! Plugins in a registry (Debian's docker-registry) and in a folder with an image layout, copied by skopeo.

use anyhow::{Context, Result, ensure};
use behaviour_tests::Fixture;
use behaviour_tests::test_daemon::TestDaemon;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use testkit::docker_registry::{DockerRegistry, REGISTRY_PASSWORD, REGISTRY_USER, RegistryAccess};

const BILL: &str = r#"{"spdxVersion":"SPDX-2.3","name":"first"}"#;

/// A signed component with a bill of materials, `first.wasm`, in a folder.
struct Author {
    fixture: Fixture,
    folder: PathBuf,
}

fn text(octets: &[u8]) -> String {
    String::from_utf8_lossy(octets).into_owned()
}

impl Author {
    fn new() -> Result<Self> {
        let fixture = Fixture::new()?;
        let folder = fixture.folder().join("author");
        std::fs::create_dir(&folder)?;
        std::fs::copy(fixture.guest("prefix_router"), folder.join("first.wasm"))?;
        std::fs::write(folder.join("first.sbom.json"), BILL)?;
        let author = Self { fixture, folder };
        author.succeed(&["keygen", "author.key"])?;
        author.succeed(&["sign", "--key", "author.key", "first.wasm"])?;
        Ok(author)
    }

    fn registry(&self, name: &str, access: &RegistryAccess) -> Result<DockerRegistry> {
        DockerRegistry::start(&self.fixture.folder().join(name), access)
    }

    /// `switchyard plugin` in the author's folder, without credentials from outside.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.fixture.binary());
        command.arg("plugin").args(arguments).current_dir(&self.folder).stdin(Stdio::null());
        for name in ["SWITCHYARD_REGISTRY_USER", "SWITCHYARD_REGISTRY_PASSWORD", "REGISTRY_AUTH_FILE"] {
            command.env_remove(name);
        }
        command
    }

    fn succeed(&self, arguments: &[&str]) -> Result<String> {
        succeeded(&mut self.command(arguments))
    }

    /// The JSON that a command prints.
    fn json(&self, arguments: &[&str]) -> Result<Value> {
        let printed = self.succeed(&[arguments, &["--json"]].concat())?;
        serde_json::from_str(&printed).with_context(|| printed.clone())
    }

    /// The message of a command that must fail.
    fn fail(&self, arguments: &[&str]) -> Result<String> {
        failed(&self.command(arguments).output()?, arguments)
    }

    fn skopeo(&self, arguments: &[&str]) -> Result<String> {
        let mut command = Command::new("skopeo");
        succeeded(command.args(arguments).current_dir(&self.folder).stdin(Stdio::null()))
    }

    fn octets(&self, name: &str) -> Result<Vec<u8>> {
        std::fs::read(self.folder.join(name)).with_context(|| name.to_owned())
    }

    /// Pulls `location` to `out`, and compares component and signature to the author's. Returns the output of the
    /// command.
    fn pull(&self, location: &str, out: &str) -> Result<Value> {
        let pulled = self.json(&["pull", location, "--out", out])?;
        for ending in ["", ".sig"] {
            let (ours, theirs) = (format!("first.wasm{ending}"), format!("{out}{ending}"));
            ensure!(self.octets(&ours)? == self.octets(&theirs)?, "{location}: {theirs} is different");
        }
        Ok(pulled)
    }
}

fn succeeded(command: &mut Command) -> Result<String> {
    let Output { status, stdout, stderr } = command.output().with_context(|| format!("{command:?}"))?;
    ensure!(status.success(), "{command:?}: {status}\n{}{}", text(&stdout), text(&stderr));
    Ok(text(&stdout))
}

fn failed(output: &Output, arguments: &[&str]) -> Result<String> {
    ensure!(output.status.code() == Some(1), "{arguments:?}: {}\n{}", output.status, text(&output.stdout));
    ensure!(output.stdout.is_empty(), "{arguments:?}: {}", text(&output.stdout));
    Ok(text(&output.stderr))
}

/// The digest of a file, as another program computes it.
fn sha256(path: &Path) -> Result<String> {
    let printed = succeeded(Command::new("sha256sum").arg(path))?;
    Ok(format!("sha256:{}", printed.split(' ').next().unwrap_or_default()))
}

#[test]
fn a_plugin_passes_through_registries_and_folders_unchanged() -> Result<()> {
    let author = Author::new()?;
    let (first, second) =
        (author.registry("first", &RegistryAccess::Open)?, author.registry("second", &RegistryAccess::Open)?);
    let at_first = format!("{}/sms/routers/first", first.address());
    let tagged = format!("oci://{at_first}:1.0");
    let pushed = author.json(&["push", "first.wasm", &tagged])?;
    let digest = pushed["digest"].as_str().context("no digest")?;
    let bound = format!("oci://{at_first}@{digest}");
    assert_eq!((&pushed["signed"], &pushed["bill_of_materials"]), (&Value::from(true), &"SPDX".into()));
    assert_eq!(pushed["bound"], *bound);
    assert_eq!(author.json(&["push", "first.wasm", &tagged])?["digest"], *digest, "a push is repeatable");

    // By tag and by digest, with the bill of materials.
    assert_eq!(author.pull(&tagged, "by-tag.wasm")?["digest"], *digest);
    assert_eq!(author.pull(&bound, "by-digest.wasm")?["bound"], *bound);
    assert_eq!(text(&author.octets("by-digest.sbom.json")?), BILL);
    assert!(author.fail(&["pull", &tagged, "--out", "by-tag.wasm"])?.contains("exists already"));
    assert!(author.fail(&["pull", &format!("oci://{at_first}:2.0")])?.contains("has no 2.0"));
    assert!(author.fail(&["push", "first.wasm", &bound])?.contains("give the tag only"));

    // skopeo sees the same manifest, and a layer of the type that tools for components look for.
    let raw =
        author.skopeo(&["inspect", "--raw", "--tls-verify=false", &format!("docker://{at_first}:1.0")])?;
    std::fs::write(author.folder.join("raw.json"), &raw)?;
    assert_eq!(sha256(&author.folder.join("raw.json"))?, digest);
    let manifest: Value = serde_json::from_str(&raw)?;
    assert_eq!(manifest["config"]["mediaType"], "application/vnd.wasm.config.v0+json");
    assert_eq!(manifest["layers"][0]["mediaType"], "application/wasm");
    assert_eq!(manifest["layers"][0]["digest"], *sha256(&author.folder.join("first.wasm"))?);

    // From the registry to a stick, and from our own stick to another registry.
    author.skopeo(&[
        "copy",
        "--src-tls-verify=false",
        &format!("docker://{at_first}:1.0"),
        "oci:stick:1.0",
    ])?;
    assert_eq!(author.pull("oci-layout:stick:1.0", "from-stick.wasm")?["digest"], *digest);
    assert_eq!(author.json(&["push", "first.wasm", "oci-layout:ours:1.0"])?["digest"], *digest);
    assert_eq!(author.pull("oci-layout:ours:1.0", "from-ours.wasm")?["digest"], *digest);
    assert_eq!(text(&author.octets("from-ours.sbom.json")?), BILL);
    let at_second = format!("{}/first", second.address());
    author.skopeo(&[
        "copy",
        "--dest-tls-verify=false",
        "oci:ours:1.0",
        &format!("docker://{at_second}:stable"),
    ])?;
    assert_eq!(author.pull(&format!("oci://{at_second}:stable"), "from-second.wasm")?["digest"], *digest);

    // A moved tag is another artifact; the digest is still the first.
    std::fs::copy(author.fixture.guest("least_cost"), author.folder.join("other.wasm"))?;
    assert_ne!(author.json(&["push", "other.wasm", &tagged])?["digest"], *digest);
    author.pull(&bound, "still-first.wasm")?;

    // An octet of the registry's own file is changed.
    let path = first.blob(manifest["layers"][0]["digest"].as_str().context("no layer")?)?;
    let mut octets = std::fs::read(&path)?;
    *octets.last_mut().context("empty")? ^= 1;
    std::fs::write(&path, octets)?;
    let message = author.fail(&["pull", &bound, "--out", "damaged.wasm"])?;
    assert!(message.contains("is damaged or was replaced"), "{message}");
    assert!(!author.folder.join("damaged.wasm").exists());
    Ok(())
}

#[test]
fn a_registry_gets_the_credentials_that_it_wants_and_no_message_has_them() -> Result<()> {
    let author = Author::new()?;
    let registry = author.registry("closed", &RegistryAccess::Credentials)?;
    let location = format!("oci://{}/first:1.0", registry.address());
    let push = ["push", "first.wasm", &*location];
    let message = author.fail(&push)?;
    assert!(message.contains("requires credentials") && message.contains("--auth-file"), "{message}");

    let with_password = |arguments: &[&str], password: &str| -> Result<Output> {
        let mut command = author.command(arguments);
        command.env("SWITCHYARD_REGISTRY_USER", REGISTRY_USER);
        Ok(command.env("SWITCHYARD_REGISTRY_PASSWORD", password).output()?)
    };
    let message = failed(&with_password(&push, "wrong-word")?, &push)?;
    assert!(message.contains("refuses the credentials") && !message.contains("wrong-word"), "{message}");
    let output = with_password(&push, REGISTRY_PASSWORD)?;
    ensure!(output.status.success(), "{}", text(&output.stderr));

    // In the form in which skopeo saves them.
    let address = registry.address().to_string();
    let login = ["login", "--authfile", "auth.json", "--tls-verify=false", "--username", REGISTRY_USER];
    author.skopeo(&[&login[..], &["--password", REGISTRY_PASSWORD, &address]].concat())?;
    let pulled = author.json(&["pull", &location, "--out", "pulled.wasm", "--auth-file", "auth.json"])?;
    assert_eq!(pulled["bill_of_materials"], "SPDX");
    let mut again = author.command(&["pull", &location, "--out", "again.wasm"]);
    succeeded(again.env("REGISTRY_AUTH_FILE", "auth.json"))?;
    assert_eq!(author.octets("first.wasm")?, author.octets("again.wasm")?);
    Ok(())
}

#[test]
fn a_registry_on_another_machine_is_reached_over_tls() -> Result<()> {
    let author = Author::new()?;
    // An IPv6 form of loopback: for us another machine, where a registry needs TLS.
    let host = "::ffff:127.0.0.1";
    let signed = rcgen::generate_simple_self_signed([host.to_owned()])?;
    let (certificate, key) = (signed.cert.pem(), signed.signing_key.serialize_pem());
    std::fs::write(author.folder.join("ca.pem"), &certificate)?;
    let registry = author.registry("tls", &RegistryAccess::Tls { certificate, key })?;
    let location = format!("oci://[{host}]:{}/first:1.0", registry.address().port());

    author.json(&["push", "first.wasm", &location, "--registry-ca", "ca.pem"])?;
    let pull = ["pull", &*location, "--out", "pulled.wasm"];
    let message = author.fail(&pull)?;
    assert!(message.contains("certificate") && message.contains("--registry-ca"), "{message}");
    // The registry answers plain HTTP with a refusal of its own.
    assert!(author.fail(&[&pull[..], &["--plain-http"]].concat())?.contains("http://[::ffff:127.0.0.1]"));
    author.succeed(&[&pull[..], &["--registry-ca", "ca.pem"]].concat())?;
    assert_eq!(author.octets("first.wasm")?, author.octets("pulled.wasm")?);
    Ok(())
}

/// `switchyard plugin push` of a location to an appliance.
fn upload(author: &Author, appliance: &TestDaemon, location: &str) -> Result<Output> {
    let mut command = author.fixture.command(appliance);
    command.args(["plugin", "push", "--json", location]).current_dir(&author.folder);
    Ok(command.output()?)
}

#[test]
fn an_appliance_takes_a_signed_plugin_from_a_registry_and_from_a_stick() -> Result<()> {
    let author = Author::new()?;
    let registry = author.registry("open", &RegistryAccess::Open)?;
    let mut config = author.fixture.config()?;
    let key = text(&author.octets("author.key.pub")?);
    config.tables(&format!("[plugins]\ntrusted-keys = {{ author = {:?} }}\n", key.trim()));
    let appliance = config.start()?;

    let location = format!("oci://{}/first", registry.address());
    let pushed = author.json(&["push", "first.wasm", &format!("{location}:1.0")])?;
    author.succeed(&["push", "first.wasm", "oci-layout:stick:1.0"])?;
    let bound = pushed["bound"].as_str().context("not bound")?;
    for source in [&*format!("{location}:1.0"), bound, "oci-layout:stick:1.0"] {
        let output = upload(&author, &appliance, source)?;
        ensure!(output.status.success(), "{source}: {}", text(&output.stderr));
        assert!(text(&output.stderr).contains(pushed["digest"].as_str().unwrap_or("?")), "{source}");
        let version: Value = serde_json::from_slice(&output.stdout)?;
        assert_eq!((&version["plugin"], &version["signed_by"]), (&"first".into(), &"author".into()));
        assert_eq!(version["version"], pushed["version"]);
    }

    // The registry accepts a signature by an untrusted author; the appliance refuses it.
    std::fs::copy(author.fixture.guest("least_cost"), author.folder.join("foreign.wasm"))?;
    author.succeed(&["keygen", "foreign.key"])?;
    author.succeed(&["sign", "--key", "foreign.key", "foreign.wasm"])?;
    author.succeed(&["push", "foreign.wasm", &format!("{location}:foreign")])?;
    let message = failed(&upload(&author, &appliance, &format!("{location}:foreign"))?, &["push"])?;
    assert!(message.contains("signature"), "{message}");

    // The contract is also an artifact, but not a plugin.
    let contract = format!("oci://{}/switchyard/hooks:0.3.0", registry.address());
    assert_eq!(author.json(&["contract", &contract])?["version"], "0.3.0");
    assert!(author.fail(&["pull", &contract])?.contains("it is a WIT package"));
    let (status, _) = appliance.stop()?;
    ensure!(status.success());
    Ok(())
}
