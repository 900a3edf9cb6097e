//! Builds tests, and finds their executables in cargo's messages.

use super::executable::{Executable, TestKind};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// The package of the behaviour tests.
const BEHAVIOUR_TESTS: &str = "behaviour-tests";

/// The manifest of the plugins' workspace.
pub(super) const PLUGINS_MANIFEST: &str = "plugins/Cargo.toml";

/// The policies of the default plugins are ordinary crates and have tests. Their components have none, except the
/// components that contain their policy.
const POLICIES: &[&str] = &[
    "--package=policy-values",
    "--package=prefix-policy",
    "--package=fraud-guard-policy",
    "--package=firewall-policy",
    "--package=least-cost-policy",
    "--package=adaptive-policy",
    "--package=resolver-policy",
    "--package=retry-ladder-policy",
    "--package=second-chance-policy",
    "--package=prepaid-policy",
    "--package=http-peer-policy",
    "--package=number-portability-policy",
    "--package=shared-sender",
    "--package=kannel-front-end",
    "--package=jasmin-front-end",
    "--package=twilio-front-end",
];

/// Builds tests of the workspace.
pub(super) fn tests(arguments: &[&str]) -> Result<Vec<Executable>> {
    build(arguments)
}

/// Builds the tests of the plugins' policies.
pub(super) fn policy_tests() -> Result<Vec<Executable>> {
    build(&[&["--manifest-path", PLUGINS_MANIFEST], POLICIES].concat())
}

fn build(arguments: &[&str]) -> Result<Vec<Executable>> {
    let mut cargo = workspace::cargo();
    cargo.args(["test", "--no-run", "--message-format", "json-render-diagnostics"]).args(arguments);
    let mut child = cargo.stdout(Stdio::piped()).spawn().context("running cargo test --no-run")?;
    let messages = child.stdout.take().context("no standard output")?;
    let mut executables = Vec::new();
    for line in BufReader::new(messages).lines() {
        // Other lines are output of build scripts.
        let Ok(message) = serde_json::from_str::<Value>(&line?) else { continue };
        executables.extend(executable(&message));
    }
    ensure!(child.wait()?.success(), "the tests do not compile");
    ensure!(!executables.is_empty(), "cargo has built no test");
    Ok(executables)
}

/// The test executable that a message of cargo is about (the Cargo book, "External tools", "Artifact messages").
fn executable(message: &Value) -> Option<Executable> {
    if message["reason"] != "compiler-artifact" || message["profile"]["test"] != true {
        return None;
    }
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?.to_owned();
    let target = &message["target"];
    let package = package_name(message["package_id"].as_str()?, &folder)?;
    let kind = match target["kind"][0].as_str()? {
        "test" if package == BEHAVIOUR_TESTS => TestKind::Behaviour,
        "test" => TestKind::Integration,
        "example" => return None,
        _ => TestKind::Unit,
    };
    Some(Executable {
        package,
        target: target["name"].as_str()?.to_owned(),
        kind,
        path: PathBuf::from(message["executable"].as_str()?),
        folder,
    })
}

/// The package's name: the id is `path+file:///folder/name#0.1.0`, or `path+file:///folder#name@0.1.0` if the folder has another name.
fn package_name(id: &str, folder: &Path) -> Option<String> {
    match id.split_once('#')?.1.split_once('@') {
        Some((name, _)) => Some(name.to_owned()),
        None => Some(folder.file_name()?.to_str()?.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn message(id: &str, kind: &str, name: &str) -> Value {
        json!({
            "reason": "compiler-artifact", "package_id": id, "manifest_path": "/s/host/gsm/Cargo.toml",
            "target": { "kind": [kind], "name": name }, "profile": { "test": true }, "executable": "/s/target/x",
        })
    }

    #[test]
    fn executables_are_recognised() {
        let unit = executable(&message("path+file:///s/host/gsm#0.1.0", "lib", "gsm")).unwrap();
        assert_eq!((unit.name(), unit.kind), ("gsm".to_owned(), TestKind::Unit));
        let own = executable(&message("path+file:///s/host/gsm#0.1.0", "test", "integration")).unwrap();
        assert_eq!(own.name(), "gsm integration");
        let behaviour =
            executable(&message("path+file:///s/tests#behaviour-tests@0.1.0", "test", "gsm")).unwrap();
        assert_eq!(behaviour.name(), "behaviour gsm");
        assert!(unit.has_name("gsm") && behaviour.has_name("gsm") && !own.has_name("integration"));
        assert!(executable(&message("path+file:///s/host/gsm#0.1.0", "example", "speed")).is_none());
        assert!(executable(&json!({ "reason": "build-finished" })).is_none());
    }
}
