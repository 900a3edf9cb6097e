//! Runs the plugin commands as an author does.

use bytes::Bytes;
use model::{Address, Message, PeerId, PluginVersion, RoutingDecision, Text, Timestamp, Verdict};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// `switchyard plugin`; uses the source tree's private compiler if there is one.
pub(crate) fn plugin_command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_workbench"));
    let private = root().join(".state/guest-toolchain");
    if std::env::var_os("SWITCHYARD_GUEST_RUSTC").is_none() && private.join("complete").exists() {
        command.env("SWITCHYARD_GUEST_RUSTC", private.join("bin/rustc"));
    }
    command
}

/// Runs a command and returns its standard output; `Err` has its standard error if it exits with 1.
pub(crate) fn run(command: &mut Command) -> Result<String, String> {
    let output = command.output().unwrap();
    let [stdout, error_output] =
        [&output.stdout, &output.stderr].map(|octets| String::from_utf8(octets.clone()).unwrap());
    match output.status.code() {
        Some(0) => Ok(stdout),
        Some(1) => Err(error_output),
        other => panic!("{command:?} ended with {other:?}: {stdout}{error_output}"),
    }
}

/// Builds a folder if necessary and runs all its cases.
pub(crate) fn passes_cases(folder: &Path, cases: &Path) {
    let count = std::fs::read_to_string(cases).unwrap().matches("[[case]]").count();
    let output = run(plugin_command().arg("test").arg(folder).arg("--cases").arg(cases));
    let output = output.unwrap_or_else(|error_output| panic!("{}: {error_output}", folder.display()));
    assert!(output.ends_with(&format!("{count} cases, all right\n")), "{output}");
}

/// A message to this number.
pub(crate) fn message(destination: &str) -> Message {
    let by = Arc::new(PluginVersion { plugin: String::new(), version: String::new() });
    Message::new(
        PeerId(0),
        Address::new(5, 0, b"ACME"),
        Address::international(destination),
        Text { octets: Bytes::from_static(b"hello"), ..Text::default() },
        Timestamp(u64::MAX),
        RoutingDecision::new(Verdict::Forward(Vec::new()), by),
    )
}
