//! The tools of others: Debian's, and two of crates.io.

use crate::tools::setup::{self, Need, exists, runs};
use anyhow::Result;
use std::path::{Path, PathBuf};
use std::process::Command;
use xtask::house;

const BUILDING: &[Need] = &[
    Need { package: "binutils", reason: "strips binaries", there: || runs("strip", "--version") },
    Need {
        package: "dpkg-dev",
        reason: "finds the libraries that the Debian package depends on",
        there: || exists("/usr/bin/dpkg-shlibdeps"),
    },
    Need { package: "lintian", reason: "judges the Debian package", there: || runs("lintian", "--version") },
    Need { package: "umoci", reason: "makes OCI images", there: || runs("umoci", "--version") },
    Need { package: "skopeo", reason: "looks at OCI images", there: || runs("skopeo", "--version") },
    Need { package: "xz-utils", reason: "packs the tarball", there: || runs("xz", "--version") },
    Need {
        package: "ca-certificates",
        reason: "the authorities that the image trusts",
        there: || exists(super::oci::AUTHORITIES),
    },
];

const TRYING: &[Need] = &[
    Need {
        package: "mmdebstrap",
        reason: "makes a clean Debian 12",
        there: || runs("mmdebstrap", "--version"),
    },
    Need {
        package: "systemd-container",
        reason: "systemd-nspawn, which boots it",
        there: || exists("/usr/bin/systemd-nspawn"),
    },
    Need {
        package: "python3-venv",
        reason: "a place of its own for what validates bills of materials",
        there: || runs("python3", "-mensurepip"),
    },
];

/// cargo's subcommands that are used.
const CARGO: [&str; 2] = ["cargo-deb@3.8.0", "cargo-cyclonedx@0.5.9"];
/// PyPI, which validates against CycloneDX's own schema.
const VALIDATOR: &str = "cyclonedx-python-lib[json-validation]==11.1.0";

fn tools() -> PathBuf {
    house::root().join(".state/tools")
}

/// Installs what is missing, and says so.
pub(super) fn install(trying: bool) -> Result<()> {
    setup::install_missing(BUILDING)?;
    if trying {
        setup::install_missing(TRYING)?;
        validator()?;
    }
    let tools = tools();
    let done = tools.join("complete");
    let wanted = CARGO.join(" ");
    if std::fs::read_to_string(&done).is_ok_and(|text| text == wanted) {
        return Ok(());
    }
    println!("setup: crates.io {wanted} into {}", tools.display());
    let mut install = house::cargo();
    install.args(["install", "--quiet", "--locked", "--root"]).arg(&tools).args(CARGO);
    // A folder of its own: the tools are no part of the workspace.
    house::run(install.env("CARGO_TARGET_DIR", tools.join("build")))?;
    std::fs::remove_dir_all(tools.join("build"))?;
    Ok(std::fs::write(done, wanted)?)
}

fn validator() -> Result<()> {
    let venv = tools().join("cyclonedx");
    let done = venv.join("complete");
    if std::fs::read_to_string(&done).is_ok_and(|text| text == VALIDATOR) {
        return Ok(());
    }
    println!("setup: PyPI {VALIDATOR} into {}", venv.display());
    house::run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&venv))?;
    let mut pip = Command::new(venv.join("bin/pip"));
    house::run(pip.args(["install", "--quiet", "--disable-pip-version-check", VALIDATOR]))?;
    Ok(std::fs::write(done, VALIDATOR)?)
}

/// One of cargo's subcommands.
pub(super) fn cargo(name: &str) -> Command {
    let mut cargo = house::cargo();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(tools().join("bin")).chain(std::env::split_paths(&path));
    if let Ok(path) = std::env::join_paths(folders) {
        cargo.env("PATH", path);
    }
    cargo.arg(name);
    cargo
}

/// Holds a bill of materials to CycloneDX's schema, where the validator is installed.
pub(super) fn validate(bill: &Path) -> Result<()> {
    let python = tools().join("cyclonedx/bin/python");
    let program = "import sys\n\
         from cyclonedx.schema import SchemaVersion\n\
         from cyclonedx.validation.json import JsonStrictValidator\n\
         error = JsonStrictValidator(SchemaVersion.V1_5).validate_str(open(sys.argv[1]).read())\n\
         sys.exit(str(error)[:2000] if error else 0)\n";
    house::run(Command::new(python).args(["-c", program]).arg(bill))
}
