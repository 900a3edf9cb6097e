//! `wkg` of the Bytecode Alliance reads our plugins and our contract from a registry, and the appliance reads what
//! `wkg` has pushed.

use anyhow::{Context, Result, ensure};
use behaviour_tests::Fixture;
use behaviour_tests::test_daemon::TestDaemonConfig;
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};
use testkit::docker_registry::{DockerRegistry, RegistryAccess};

fn succeeded(command: &mut Command) -> Result<String> {
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("{command:?}"))?;
    let text = |octets: &[u8]| String::from_utf8_lossy(octets).into_owned();
    ensure!(output.status.success(), "{command:?}: {}{}", text(&output.stdout), text(&output.stderr));
    Ok(text(&output.stdout))
}

#[test]
fn plugins_and_the_contract_pass_between_us_and_wkg() -> Result<()> {
    let wkg = workspace::packages::wkg()?;
    let fixture = Fixture::new()?;
    let folder = fixture.folder();
    let registry = DockerRegistry::start(&folder.join("registry"), &RegistryAccess::Open)?;
    let address = registry.address().to_string();
    let wkg = |arguments: &[&str]| {
        let mut command = Command::new(&wkg);
        // Without configuration and credentials of the user.
        command.args(arguments).current_dir(folder).env("HOME", folder).env("WKG_OCI_INSECURE", &address);
        succeeded(&mut command)
    };
    let plugin = |arguments: &[&str]| {
        succeeded(Command::new(fixture.binary()).arg("plugin").args(arguments).current_dir(folder))
    };
    let octets = |name: &str| std::fs::read(Path::new(folder).join(name)).with_context(|| name.to_owned());
    std::fs::copy(fixture.guest("prefix_router"), folder.join("router.wasm"))?;

    // From us to wkg.
    plugin(&["push", "router.wasm", &format!("oci://{address}/plugins/router:1.0")])?;
    wkg(&["oci", "pull", &format!("{address}/plugins/router:1.0"), "-o", "by-wkg.wasm"])?;
    assert_eq!(octets("router.wasm")?, octets("by-wkg.wasm")?);

    // The contract is a package in the namespace `switchyard`, of the version that the contract has.
    let contract: Value = serde_json::from_str(&plugin(&[
        "contract",
        "--json",
        &format!("oci://{address}/switchyard/hooks:0.3.0"),
    ])?)?;
    assert_eq!(contract["version"], "0.3.0");
    std::fs::write(
        folder.join("wkg.toml"),
        format!(
            "[namespace_registries]\nswitchyard = {{ registry = \"contract.example\", metadata = {{ preferredProtocol = \"oci\", \
             oci = {{ registry = {address:?} }} }} }}\n\n[registry.\"contract.example\"]\ntype = \"oci\"\n\n\
             [registry.\"contract.example\".oci]\nprotocol = \"http\"\n"
        ),
    )?;
    let get = ["get", "--config", "wkg.toml", "--cache", "cache", "--format", "wit", "-o", "./hooks.wit"];
    wkg(&[&get[..], &["switchyard:hooks"]].concat())?;
    let wit = String::from_utf8(octets("hooks.wit")?)?;
    ensure!(
        wit.starts_with("package switchyard:hooks@0.3.0;") && wit.contains("interface routing"),
        "{wit:.300}"
    );

    // From wkg to an appliance that accepts only signed plugins: the signature is an annotation.
    plugin(&["keygen", "author.key"])?;
    plugin(&["sign", "--key", "author.key", "router.wasm"])?;
    let signature = String::from_utf8(octets("router.wasm.sig")?)?;
    let annotation = format!("org.switchyard.signature={}", signature.trim());
    let (signed, unsigned) =
        (format!("{address}/plugins/of-wkg:signed"), format!("{address}/plugins/of-wkg:unsigned"));
    wkg(&["oci", "push", &signed, "router.wasm", "--annotation", &annotation])?;
    wkg(&["oci", "push", &unsigned, "router.wasm"])?;
    let key = String::from_utf8(octets("author.key.pub")?)?;
    let mut config = TestDaemonConfig::new(fixture.binary(), &folder.join("appliance"))?;
    config.tables(&format!(
        "[plugins]\nrequire-signature = true\ntrusted-keys = {{ author = {:?} }}\n\
         sources = [{{ name = \"open\", url = \"oci://{address}/plugins\" }}]\n",
        key.trim()
    ));
    let appliance = config.start()?;
    let pull = |tag: &str| {
        let mut command = fixture.command(&appliance);
        command.args(["plugin", "pull", "--json", &format!("open/of-wkg:{tag}")]).output()
    };
    let refused = pull("unsigned")?;
    let message = String::from_utf8_lossy(&refused.stderr);
    ensure!(!refused.status.success() && message.contains("is not signed"), "{message}");
    let pulled = pull("signed")?;
    ensure!(pulled.status.success(), "{}", String::from_utf8_lossy(&pulled.stderr));
    let version: Value = serde_json::from_slice(&pulled.stdout)?;
    assert_eq!((&version["plugin"], &version["signed_by"]), (&"of-wkg".into(), &"author".into()));
    Ok(())
}
