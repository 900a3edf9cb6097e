//! The appliance image's own part of an update, tried with a `rauc` that says what it is told to.

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

/// Whether the update is taken, and whether the other slot is still known as healthy, if `rauc` says this.
fn update(rauc: &str) -> (bool, bool) {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path();
    let system = place.join("system");
    fs::create_dir(&system).unwrap();
    for slot in ["A", "B"] {
        fs::write(system.join(format!("healthy-{slot}")), "1").unwrap();
    }
    fs::write(place.join("bundle"), "octets").unwrap();
    fs::write(place.join("os-release"), "IMAGE_VERSION=1\n").unwrap();
    program(place, "id", "echo 0");
    program(place, "rauc", rauc);
    let script = fs::read_to_string(OPERATE).unwrap();
    let script = script
        .replace("/data/system", system.to_str().unwrap())
        .replace("/usr/lib/os-release", place.join("os-release").to_str().unwrap());
    fs::write(place.join("operate"), script).unwrap();
    let path = format!("{}:{}", place.display(), std::env::var("PATH").unwrap());
    let done = Command::new("sh")
        .arg(place.join("operate"))
        .args(["update", place.join("bundle").to_str().unwrap(), "--no-reboot"])
        .env("PATH", path)
        .output()
        .unwrap();
    (done.status.success(), system.join("healthy-A").exists())
}

#[test]
fn an_update_that_is_refused_leaves_the_mark_that_it_can_be_rolled_back_by() {
    assert_eq!(update("[ \"$1\" != info ]"), (false, true), "the signature is not trusted");
    assert_eq!(update("[ \"$1\" = info ]"), (false, false), "it broke off while the slot was written");
    assert_eq!(update("exit 0"), (true, false));
}
