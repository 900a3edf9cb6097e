//! The OCI image: a layout in a folder, which skopeo, podman and containerd can read. It is built without a daemon and
//! without root: one layer from an archive that contains the final owners.
//!
//! It contains no distribution. The static binary needs a folder for its state, the trusted certificate authorities,
//! and two user names.

use super::staging::{StagingDir, put, put_all, sources};
use super::tarball;
use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The certificate authorities of Debian's package ca-certificates.
pub(super) const AUTHORITIES: &str = "/etc/ssl/certs/ca-certificates.crt";
/// The daemon's user id in the image; no system uses it.
pub(super) const USER: &str = "10001";

/// Makes the layout, with the version as its tag.
pub(super) fn build(staging: &StagingDir) -> Result<PathBuf> {
    let version = super::version();
    let layout = super::folder().join(format!("switchyard-{version}.oci"));
    let root = super::folder().join("oci-root");
    for folder in [&layout, &root] {
        if folder.exists() {
            std::fs::remove_dir_all(folder)?;
        }
    }
    fill(staging, &root)?;
    let layer = super::folder().join("oci-layer.tar");
    let mut tar = tarball::archive()?;
    tar.args(["--create", "--exclude=./var/lib/switchyard", "--exclude=./tmp", "--file"]).arg(&layer);
    workspace::run(tar.arg("--directory").arg(&root).arg("."))?;
    // Owned by the daemon's user, and private.
    let mut tar = Command::new("tar");
    tar.args(["--format=gnu", "--numeric-owner", "--mode=0700", "--append", "--file"]).arg(&layer).args([
        format!("--owner={USER}"),
        format!("--group={USER}"),
        format!("--mtime=@{}", super::source_date()?),
    ]);
    workspace::run(tar.arg("--directory").arg(&root).arg("./var/lib/switchyard"))?;
    let mut tar = tarball::archive()?;
    tar.args(["--append", "--mode=1777", "--file"]).arg(&layer);
    workspace::run(tar.arg("--directory").arg(&root).arg("./tmp"))?;

    let umoci =
        |arguments: &[&str]| workspace::run(Command::new("umoci").args(arguments).stdout(Stdio::null()));
    let layout_path = layout.to_str().context("a path that is not UTF-8")?;
    let image = format!("{layout_path}:{version}");
    let created = created()?;
    umoci(&["init", "--layout", layout_path])?;
    umoci(&["new", "--image", &image])?;
    let archive = layer.to_str().context("a path that is not UTF-8")?;
    umoci(&["raw", "add-layer", "--image", &image, "--history.created", &created, archive])?;
    umoci(&[
        "config",
        "--image",
        &image,
        "--no-history",
        "--created",
        &created,
        &format!("--config.user={USER}:{USER}"),
        "--config.entrypoint=/usr/bin/switchyard",
        "--config.cmd=serve",
        "--config.cmd=--config",
        "--config.cmd=/etc/switchyard/switchyard.toml",
        "--config.workingdir=/var/lib/switchyard",
        "--config.volume=/var/lib/switchyard",
        "--config.exposedports=2775/tcp",
        "--config.exposedports=8080/tcp",
        "--config.stopsignal=SIGTERM",
        "--config.env=SWITCHYARD_TOKEN_FILE=/var/lib/switchyard/token",
        "--config.env=SWITCHYARD_URL=https://127.0.0.1:8080",
        "--config.env=SWITCHYARD_CA=/var/lib/switchyard/tls/certificate.pem",
        "--config.label=org.opencontainers.image.title=Switchyard",
        "--config.label=org.opencontainers.image.description=An SMS routing appliance",
        "--config.label=org.opencontainers.image.licenses=Apache-2.0",
        &format!("--config.label=org.opencontainers.image.version={version}"),
    ])?;
    umoci(&["gc", "--layout", layout_path])?;
    std::fs::remove_file(&layer)?;
    std::fs::remove_dir_all(&root)?;
    inspect(&image)?;
    Ok(layout)
}

fn fill(staging: &StagingDir, root: &Path) -> Result<()> {
    put(&staging.binary(), &root.join("usr/bin/switchyard"))?;
    put_all(&staging.folder.join("plugins"), &root.join("usr/lib/switchyard/plugins"))?;
    put(&workspace::root().join("LICENSE"), &root.join("usr/share/doc/switchyard/LICENSE"))?;
    put(Path::new(AUTHORITIES), &root.join("etc/ssl/certs/ca-certificates.crt"))?;
    put(&sources().join("routes.toml"), &root.join("etc/switchyard/routes.toml"))?;
    let config = std::fs::read_to_string(sources().join("switchyard.toml"))?;
    // A container's loopback is not reachable from outside; on other addresses the API has TLS.
    let open = config.replace("listen = \"127.0.0.1:8080\"", "listen = \"0.0.0.0:8080\"");
    ensure!(open != config, "the packages' switchyard.toml no longer has [http] at 127.0.0.1:8080");
    std::fs::write(root.join("etc/switchyard/switchyard.toml"), open)?;
    let etc = root.join("etc");
    std::fs::write(
        etc.join("passwd"),
        format!(
            "root:x:0:0:root:/:/sbin/nologin\nswitchyard:x:{USER}:{USER}:Switchyard:/var/lib/switchyard:/sbin/nologin\n"
        ),
    )?;
    std::fs::write(etc.join("group"), format!("root:x:0:\nswitchyard:x:{USER}:\n"))?;
    std::fs::write(etc.join("nsswitch.conf"), "passwd: files\ngroup: files\nhosts: files dns\n")?;
    std::fs::create_dir_all(root.join("var/lib/switchyard"))?;
    Ok(std::fs::create_dir_all(root.join("tmp"))?)
}

/// RFC 3339.
fn created() -> Result<String> {
    let date = format!("@{}", super::source_date()?);
    let output = Command::new("date").args(["--utc", "--date", &date, "+%Y-%m-%dT%H:%M:%SZ"]).output()?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Checks that another tool reads the intended configuration.
fn inspect(image: &str) -> Result<()> {
    let output = Command::new("skopeo")
        .args(["inspect", "--config", &format!("oci:{image}")])
        .stderr(Stdio::inherit())
        .output()?;
    ensure!(output.status.success(), "skopeo cannot read oci:{image}");
    let found: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let config = &found["config"];
    let user = format!("{USER}:{USER}");
    ensure!(config["User"] == user, "the image's user is {} and not {user}", config["User"]);
    ensure!(config["Entrypoint"][0] == "/usr/bin/switchyard", "the image runs {}", config["Entrypoint"]);
    let layers = found["rootfs"]["diff_ids"].as_array().map_or(0, Vec::len);
    ensure!(layers == 1, "the image has {layers} layers and not one");
    println!("package: skopeo inspect oci:{image}: user {user}, one layer, ports {}", config["ExposedPorts"]);
    Ok(())
}
