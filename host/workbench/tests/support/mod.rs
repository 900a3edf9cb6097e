//! The author's commands, run as an author runs them.
#![allow(dead_code, unreachable_pub, missing_docs, reason = "each test file uses its part")]

use bytes::Bytes;
use model::{
    Address, DecidedBy, Kind, Message, MessageId, PeerId, Priority, ReceiptRequest, Routed, Text, Timestamp,
    Verdict,
};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// `switchyard plugin`, with what follows; in the compiler's place the source tree's own, where it had to make one.
pub fn plugin() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_workbench"));
    let private = root().join(".state/guest-toolchain");
    if std::env::var_os("SWITCHYARD_GUEST_RUSTC").is_none() && private.join("complete").exists() {
        command.env("SWITCHYARD_GUEST_RUSTC", private.join("bin/rustc"));
    }
    command
}

/// Runs it, and tells what it printed; `Err` is what it complained of, when it ended with 1.
pub fn run(command: &mut Command) -> Result<String, String> {
    let output = command.output().unwrap();
    let [said, complained] =
        [&output.stdout, &output.stderr].map(|octets| String::from_utf8(octets.clone()).unwrap());
    match output.status.code() {
        Some(0) => Ok(said),
        Some(1) => Err(complained),
        other => panic!("{command:?} ended with {other:?}: {said}{complained}"),
    }
}

/// Runs all cases of a folder; the folder, or what is in it, is built first.
pub fn passes(folder: &Path, cases: &Path) {
    let count = std::fs::read_to_string(cases).unwrap().matches("[[case]]").count();
    let said = run(plugin().arg("test").arg(folder).arg("--cases").arg(cases));
    let said = said.unwrap_or_else(|complaint| panic!("{}: {complaint}", folder.display()));
    assert!(said.ends_with(&format!("{count} cases, all right\n")), "{said}");
}

/// A message to this number.
pub fn message(destination: &str) -> Message {
    let by = Arc::new(DecidedBy { plugin: String::new(), version: String::new() });
    Message {
        id: MessageId(0),
        kind: Kind::Text,
        origin: PeerId(0),
        source: Address::new(5, 0, b"ACME"),
        destination: Address::international(destination),
        service_type: Bytes::new(),
        protocol_id: 0,
        esm_class: 0,
        priority: Priority::default(),
        receipts: ReceiptRequest::NONE,
        replace_if_present: false,
        submission: None,
        text: Text { octets: Bytes::from_static(b"hello"), ..Text::default() },
        tlvs: Bytes::new(),
        accepted_at: Timestamp(0),
        scheduled: None,
        expires_at: Timestamp(u64::MAX),
        routed: Routed::new(Verdict::Forward(Vec::new()), by),
    }
}
