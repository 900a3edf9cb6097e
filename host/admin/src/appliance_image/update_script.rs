//! Tests of the image's update script, with a fake `rauc`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

const OPERATE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../appliance-image/image/tree/usr/lib/switchyard/appliance/operate"
);

fn program(folder: &Path, name: &str, text: &str) {
    let file = folder.join(name);
    fs::write(&file, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Runs an update with this `rauc`. Returns whether it succeeded, and whether slot A is still marked as healthy.
fn install_update(rauc: &str) -> (bool, bool) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let system = root.join("system");
    fs::create_dir(&system).unwrap();
    for slot in ["A", "B"] {
        fs::write(system.join(format!("healthy-{slot}")), "1").unwrap();
    }
    fs::write(root.join("bundle"), "octets").unwrap();
    fs::write(root.join("os-release"), "IMAGE_VERSION=1\n").unwrap();
    program(root, "id", "echo 0");
    program(root, "rauc", rauc);
    let script = fs::read_to_string(OPERATE).unwrap();
    let script = script
        .replace("/data/system", system.to_str().unwrap())
        .replace("/usr/lib/os-release", root.join("os-release").to_str().unwrap());
    fs::write(root.join("operate"), script).unwrap();
    let path = format!("{}:{}", root.display(), std::env::var("PATH").unwrap());
    let done = Command::new("sh")
        .arg(root.join("operate"))
        .args(["update", root.join("bundle").to_str().unwrap(), "--no-reboot"])
        .env("PATH", path)
        .output()
        .unwrap();
    (done.status.success(), system.join("healthy-A").exists())
}

#[test]
fn refused_update_keeps_the_other_slot_healthy() {
    assert_eq!(install_update("[ \"$1\" != info ]"), (false, true), "the signature is not trusted");
    assert_eq!(
        install_update("[ \"$1\" = info ]"),
        (false, false),
        "the installation failed while it wrote the slot"
    );
    assert_eq!(install_update("exit 0"), (true, false));
}
