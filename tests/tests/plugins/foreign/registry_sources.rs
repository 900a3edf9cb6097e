//! An appliance whose source is a registry (Debian's docker-registry), with tags that skopeo moves.

use anyhow::{Context, Result, ensure};
use behaviour_tests::Fixture;
use behaviour_tests::test_daemon::TestDaemonConfig;
use serde_json::{Value, json};
use std::process::{Command, Stdio};
use testkit::docker_registry::{DockerRegistry, REGISTRY_PASSWORD, REGISTRY_USER, RegistryAccess};

fn text(octets: &[u8]) -> String {
    String::from_utf8_lossy(octets).into_owned()
}

fn succeeded(command: &mut Command) -> Result<String> {
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("{command:?}"))?;
    ensure!(output.status.success(), "{command:?}: {}{}", text(&output.stdout), text(&output.stderr));
    Ok(text(&output.stdout))
}

#[test]
fn an_appliance_pulls_from_a_registry_with_the_credentials_of_its_source() -> Result<()> {
    let fixture = Fixture::new()?;
    let registry = DockerRegistry::start(&fixture.folder().join("registry"), &RegistryAccess::Credentials)?;
    let repository = format!("{}/plugins/first", registry.address());
    let push = |guest: &str, tag: &str| -> Result<Value> {
        let mut command = Command::new(fixture.binary());
        command
            .args(["plugin", "push", "--json"])
            .arg(fixture.guest(guest))
            .arg(format!("oci://{repository}:{tag}"));
        command.env("SWITCHYARD_REGISTRY_USER", REGISTRY_USER);
        let printed = succeeded(command.env("SWITCHYARD_REGISTRY_PASSWORD", REGISTRY_PASSWORD))?;
        Ok(serde_json::from_str(&printed)?)
    };
    let first = push("prefix_router", "1.0")?;
    let second = push("least_cost", "2.0")?;
    let skopeo = |arguments: &[&str]| {
        let credentials = format!("{REGISTRY_USER}:{REGISTRY_PASSWORD}");
        let mut command = Command::new("skopeo");
        command.args(["copy", "--src-tls-verify=false", "--dest-tls-verify=false"]);
        command.args(["--src-creds", &credentials, "--dest-creds", &credentials]).args(arguments);
        succeeded(&mut command)
    };
    let tagged = |tag: &str| format!("docker://{repository}:{tag}");
    skopeo(&[&tagged("1.0"), &tagged("stable")])?;

    let password_file = fixture.folder().join("password");
    std::fs::write(&password_file, format!("{REGISTRY_PASSWORD}\n"))?;
    let url = format!("oci://{}/plugins", registry.address());
    let mut config = TestDaemonConfig::new(fixture.binary(), &fixture.folder().join("appliance"))?;
    config.tables(&format!(
        "[plugins]\nsources = [\n  {{ name = \"carrier\", url = {url:?}, user = {REGISTRY_USER:?}, password-file = {password_file:?} }},\n  \
         {{ name = \"wrong\", url = {url:?}, user = {REGISTRY_USER:?}, password = \"wrong-word\" }},\n  \
         {{ name = \"nobody\", url = {url:?} }},\n]\n",
    ));
    let appliance = config.start()?;
    let pull = |source: &str, plugin: &str, tag: &str| {
        let request = json!({ "source": source, "plugin": plugin, "tag": tag });
        appliance.request("POST", "/v1/plugins/pull", request.to_string().as_bytes())
    };
    for (source, plugin, tag, status, words) in [
        ("wrong", "first", "1.0", 422, "the registry refuses the credentials"),
        ("nobody", "first", "1.0", 422, "the registry requires credentials"),
        ("carrier", "first", "3.0", 404, "has no 3.0"),
        ("carrier", "other", "1.0", 404, "has no 1.0"),
        ("carrier", "First", "1.0", 422, "small letters"),
    ] {
        let (found, problem) = pull(source, plugin, tag)?;
        ensure!(found == status && problem.contains(words) && problem.contains(source), "{found} {problem}");
        ensure!(!problem.contains("wrong-word") && !problem.contains(REGISTRY_PASSWORD), "{problem}");
    }

    let tags = succeeded(fixture.command(&appliance).args(["plugin", "tags", "carrier/first"]))?;
    assert_eq!(tags, "1.0\n2.0\nstable\n");
    let printed =
        succeeded(fixture.command(&appliance).args(["plugin", "pull", "--json", "carrier/first:stable"]))?;
    let version: Value = serde_json::from_str(&printed)?;
    assert_eq!((&version["version"], &version["origin"]["digest"]), (&first["version"], &first["digest"]));

    // The tag moves; the stored version does not change.
    skopeo(&[&tagged("2.0"), &tagged("stable")])?;
    assert_eq!(appliance.get("/v1/plugins")?, json!([version]));
    let outdated = appliance.get("/v1/plugins/outdated")?;
    assert_eq!(outdated[0]["digest"], second["digest"], "{outdated}");
    let (status, again) = pull("carrier", "first", "stable")?;
    ensure!(status == 200, "{again}");
    let again: Value = serde_json::from_str(&again)?;
    assert_eq!((&again["version"], &again["origin"]["digest"]), (&second["version"], &second["digest"]));
    assert_eq!(appliance.get("/v1/plugins/outdated")?, json!([]));

    // The registry's own file of the first component is changed: the pull by its digest is refused.
    let digest = first["digest"].as_str().context("no digest")?;
    let manifest: Value = serde_json::from_slice(&std::fs::read(registry.blob(digest)?)?)?;
    let path = registry.blob(manifest["layers"][0]["digest"].as_str().context("no layer")?)?;
    let mut octets = std::fs::read(&path)?;
    *octets.last_mut().context("empty")? ^= 1;
    std::fs::write(&path, octets)?;
    let request = json!({ "source": "carrier", "plugin": "first", "digest": digest }).to_string();
    let (status, problem) = appliance.request("POST", "/v1/plugins/pull", request.as_bytes())?;
    ensure!(status == 422 && problem.contains("is damaged or was replaced"), "{status} {problem}");

    // The contract is an artifact too, and no plugin.
    let contract = format!("oci://{}/plugins/hooks:0.3.0", registry.address());
    let mut command = Command::new(fixture.binary());
    command.args(["plugin", "contract", &contract]).env("SWITCHYARD_REGISTRY_USER", REGISTRY_USER);
    succeeded(command.env("SWITCHYARD_REGISTRY_PASSWORD", REGISTRY_PASSWORD))?;
    let (status, problem) = pull("carrier", "hooks", "0.3.0")?;
    ensure!(status == 422, "{status} {problem}");
    assert_eq!(appliance.get("/v1/plugins")?.as_array().map(Vec::len), Some(2));
    let (status, _) = appliance.stop()?;
    ensure!(status.success());
    Ok(())
}

#[test]
fn a_source_on_another_machine_is_reached_over_tls_with_its_authority() -> Result<()> {
    let fixture = Fixture::new()?;
    // Loopback as IPv6 sees it: for us another machine, which a registry on this machine cannot be.
    let host = "::ffff:127.0.0.1";
    let signed = rcgen::generate_simple_self_signed([host.to_owned()])?;
    let (certificate, key) = (signed.cert.pem(), signed.signing_key.serialize_pem());
    let ca = fixture.folder().join("ca.pem");
    std::fs::write(&ca, &certificate)?;
    let registry =
        DockerRegistry::start(&fixture.folder().join("registry"), &RegistryAccess::Tls { certificate, key })?;
    let url = format!("oci://[{host}]:{}", registry.address().port());
    let mut push = Command::new(fixture.binary());
    push.args(["plugin", "push"]).arg(fixture.guest("prefix_router")).arg(format!("{url}/plugins/first:1.0"));
    succeeded(push.arg("--registry-ca").arg(&ca))?;

    let mut config = TestDaemonConfig::new(fixture.binary(), &fixture.folder().join("appliance"))?;
    config.tables(&format!(
        "[plugins]\nsources = [\n  {{ name = \"carrier\", url = \"{url}/plugins\", ca = {ca:?} }},\n  \
         {{ name = \"strange\", url = \"{url}/plugins\" }},\n  \
         {{ name = \"plain\", url = \"{url}/plugins\", plain-http = true }},\n]\n"
    ));
    let appliance = config.start()?;
    let pull = |source: &str| {
        let request = json!({ "source": source, "plugin": "first", "tag": "1.0" }).to_string();
        appliance.request("POST", "/v1/plugins/pull", request.as_bytes())
    };
    let (status, problem) = pull("strange")?;
    ensure!(
        status == 503 && problem.contains("certificate") && problem.contains("needs ca"),
        "{status} {problem}"
    );
    // The registry answers plain HTTP with a refusal of its own.
    let (status, problem) = pull("plain")?;
    ensure!(status == 422 && problem.contains("http://[::ffff:127.0.0.1]"), "{status} {problem}");
    let (status, version) = pull("carrier")?;
    ensure!(status == 200 && version.contains("::ffff:127.0.0.1"), "{status} {version}");
    Ok(())
}
