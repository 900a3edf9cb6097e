//! The example `campaigns`: a plugin in JavaScript that names pace buckets and send windows.

use anyhow::{Result, ensure};
use behaviour_tests::Fixture;
use std::process::Command;

#[test]
fn a_plugin_in_javascript_names_pace_limits() -> Result<()> {
    let fixture = Fixture::new()?;
    let folder = workspace::root().join("plugins/examples/campaigns");
    let component = fixture.folder().join("campaigns.wasm");
    let build = Command::new(fixture.binary())
        .args(["plugin", "build"])
        .arg(&folder)
        .arg("--out")
        .arg(&component)
        .output()?;
    ensure!(build.status.success(), "{}", String::from_utf8_lossy(&build.stderr));
    let test = Command::new(fixture.binary())
        .args(["plugin", "test"])
        .arg(&component)
        .arg("--cases")
        .arg(folder.join("cases.toml"))
        .output()?;
    let printed = String::from_utf8([test.stdout, test.stderr].concat())?;
    ensure!(test.status.success() && printed.contains("3 cases, all right"), "{printed}");
    Ok(())
}
