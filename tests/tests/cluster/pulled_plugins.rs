//! A plugin that the leader pulled from a source: the other node gets it without a source.

use crate::nodes::ClusterFixture;
use anyhow::{Result, ensure};
use behaviour_tests::until;
use serde_json::json;
use std::process::Command;

const BILL: &str = r#"{"spdxVersion":"SPDX-2.3","name":"router"}"#;

#[test]
fn a_pulled_plugin_is_on_the_next_leader_without_its_source() -> Result<()> {
    let fixture = ClusterFixture::new()?;
    let folder = fixture.base.folder();
    let (component, stick) = (folder.join("router.wasm"), folder.join("stick"));
    std::fs::copy(fixture.base.guest("prefix_router"), &component)?;
    std::fs::write(component.with_extension("sbom.json"), BILL)?;
    let location = format!("oci-layout:{}:1.0", stick.join("router").display());
    let pushed = Command::new(fixture.base.binary())
        .args(["plugin", "push"])
        .arg(&component)
        .arg(location)
        .output()?;
    ensure!(pushed.status.success(), "{}", String::from_utf8_lossy(&pushed.stderr));

    let mut first = fixture.node_without_router("a", "")?;
    first.tables(&format!(
        "[[plugins.sources]]\nname = \"stick\"\nurl = \"oci-layout:{}\"\n",
        stick.display()
    ));
    let leader = first.start()?;
    let follower = fixture.node_without_router("b", "")?.follow()?;
    leader.wait_for_nodes(2)?;
    let request = json!({ "source": "stick", "plugin": "router", "tag": "1.0" }).to_string();
    // For the leader, the node is alive before it answers requests.
    until("a node that follows changes nothing", || {
        let answer = follower.request("POST", "/v1/plugins/pull", request.as_bytes());
        Ok(answer.is_ok_and(|(status, _)| status == 503))
    })?;
    let pulled = leader.ask("POST", "/v1/plugins/pull", request.as_bytes())?;
    std::fs::remove_dir_all(&stick)?;
    leader.kill()?;

    let leader = follower.ready()?;
    assert_eq!(leader.get("/v1/plugins")?, json!([pulled]));
    assert_eq!(pulled["origin"]["source"], "stick");
    let version = pulled["sha256"].as_str().unwrap_or_default();
    let (status, bill) = leader.request("GET", &format!("/v1/plugins/router/{version}/sbom"), &[])?;
    assert_eq!((status, &*bill), (200, BILL));
    let policy = "[default]\nlegs = [{ peer = \"upstream\" }]\n";
    let binding = json!({ "plugin": "router", "version": version, "policy": policy }).to_string();
    leader.ask("POST", "/v1/hooks/router/activate", binding.as_bytes())?;
    Ok(())
}
