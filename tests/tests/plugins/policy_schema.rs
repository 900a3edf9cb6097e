//! The JSON Schemas of policy documents.

use anyhow::{Result, ensure};
use behaviour_tests::{Fixture, upload};
use serde_json::Value;

/// The default plugins: the components among the folders of `plugins/`.
fn default_plugins() -> Result<Vec<String>> {
    let mut plugins = Vec::new();
    for entry in std::fs::read_dir(workspace::root().join("plugins"))? {
        let entry = entry?;
        let manifest = std::fs::read_to_string(entry.path().join("Cargo.toml")).unwrap_or_default();
        if manifest.contains("crate-type = [\"cdylib\"]") {
            plugins.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    ensure!(!plugins.is_empty(), "plugins/ has no component");
    Ok(plugins)
}

#[test]
fn each_default_plugin_has_the_schema_of_its_document() -> Result<()> {
    let fixture = Fixture::new()?;
    let appliance = fixture.config()?.start()?;
    for plugin in &default_plugins()? {
        let version = upload(&appliance, plugin, &fixture.component(&plugin.replace('-', "_"))?)?;
        let (status, text) =
            appliance.request("GET", &format!("/v1/plugins/{plugin}/{version}/policy-schema"), b"")?;
        ensure!(status == 200, "{plugin}: {status} {text}");
        let stored = workspace::root().join("policies/schemas").join(format!("{plugin}.json"));
        let stored: Value = serde_json::from_str(&std::fs::read_to_string(stored)?)?;
        ensure!(serde_json::from_str::<Value>(&text)? == stored, "{plugin}: {text}");
        let output = fixture
            .command(&appliance)
            .args(["plugin", "schema", &format!("{plugin}@{version}")])
            .output()?;
        ensure!(serde_json::from_slice::<Value>(&output.stdout)? == stored, "{output:?}");
    }
    Ok(())
}

#[test]
fn a_component_without_a_schema_serves_and_one_with_a_broken_schema_is_refused() -> Result<()> {
    let fixture = Fixture::new()?;
    let appliance = fixture.config()?.start()?;
    let component = fixture.component("test_moody_router")?;
    let version = upload(&appliance, "moody", &component)?;
    let path = format!("/v1/plugins/moody/{version}/policy-schema");
    let (status, text) = appliance.request("GET", &path, b"")?;
    ensure!(status == 404 && text.contains("policy.schema.json"), "{status} {text}");
    let (status, text) = appliance.request("GET", "/v1/plugins/moody/000000000000/policy-schema", b"")?;
    ensure!(status == 404, "{status} {text}");
    let (_, listed) = appliance.request("GET", "/v1/plugins", b"")?;
    let listed: Vec<Value> = serde_json::from_str(&listed)?;
    for one in &listed {
        ensure!(one["policy_schema"] == (one["plugin"] != "moody"), "{one}");
    }
    // An empty section.
    let broken = testkit::guest::variant(&component, policy_schema::SECTION);
    let (status, text) = appliance.request("PUT", "/v1/plugins/moody", &broken)?;
    ensure!(status == 422 && text.contains("policy schema is not JSON"), "{status} {text}");
    Ok(())
}
