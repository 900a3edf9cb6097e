//! External tools: Debian packages, and two crates.

use anyhow::Result;
use std::path::Path;
use std::process::Command;
use workspace::packages::{self, Prerequisite, exists, runs};

const BUILD_PREREQUISITES: &[Prerequisite] = &[
    Prerequisite {
        package: "binutils",
        reason: "strips binaries",
        is_installed: || runs("strip", "--version"),
    },
    Prerequisite {
        package: "dpkg-dev",
        reason: "determines the dependencies of the Debian package",
        is_installed: || exists("/usr/bin/dpkg-shlibdeps"),
    },
    Prerequisite {
        package: "lintian",
        reason: "checks the Debian package",
        is_installed: || runs("lintian", "--version"),
    },
    Prerequisite {
        package: "umoci",
        reason: "makes OCI images",
        is_installed: || runs("umoci", "--version"),
    },
    Prerequisite {
        package: "skopeo",
        reason: "inspects OCI images",
        is_installed: || runs("skopeo", "--version"),
    },
    Prerequisite {
        package: "xz-utils",
        reason: "packs the tarball",
        is_installed: || runs("xz", "--version"),
    },
    Prerequisite {
        package: "ca-certificates",
        reason: "the certificate authorities that the image trusts",
        is_installed: || exists(super::oci::AUTHORITIES),
    },
];

const TEST_PREREQUISITES: &[Prerequisite] = &[
    Prerequisite {
        package: "mmdebstrap",
        reason: "makes a clean Debian 12",
        is_installed: || runs("mmdebstrap", "--version"),
    },
    Prerequisite {
        package: "systemd-container",
        reason: "systemd-nspawn, which boots it",
        is_installed: || exists("/usr/bin/systemd-nspawn"),
    },
    Prerequisite {
        package: "python3-venv",
        reason: "virtual environment for the validator of bills of materials",
        is_installed: || runs("python3", "-mensurepip"),
    },
];

/// Cargo subcommands.
const CARGO: [&str; 2] = ["cargo-deb@3.8.0", "cargo-cyclonedx@0.5.9"];
/// PyPI package that validates against the CycloneDX schema.
const VALIDATOR: &str = "cyclonedx-python-lib[json-validation]==11.1.0";

/// Installs missing tools, and prints their names.
pub(super) fn install(trying: bool) -> Result<()> {
    packages::install_missing(BUILD_PREREQUISITES)?;
    if trying {
        packages::install_missing(TEST_PREREQUISITES)?;
        validator()?;
    }
    let tools = packages::tools();
    let done = tools.join("complete");
    let wanted = CARGO.join(" ");
    if std::fs::read_to_string(&done).is_ok_and(|text| text == wanted) {
        return Ok(());
    }
    println!("setup: crates.io {wanted} into {}", tools.display());
    let mut install = workspace::cargo();
    install.args(["install", "--quiet", "--locked", "--root"]).arg(&tools).args(CARGO);
    // In their own folder: the tools are not part of the workspace.
    workspace::run(install.env("CARGO_TARGET_DIR", tools.join("build")))?;
    std::fs::remove_dir_all(tools.join("build"))?;
    Ok(std::fs::write(done, wanted)?)
}

fn validator() -> Result<()> {
    let venv = packages::tools().join("cyclonedx");
    let done = venv.join("complete");
    if std::fs::read_to_string(&done).is_ok_and(|text| text == VALIDATOR) {
        return Ok(());
    }
    println!("setup: PyPI {VALIDATOR} into {}", venv.display());
    workspace::run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&venv))?;
    let mut pip = Command::new(venv.join("bin/pip"));
    workspace::run(pip.args(["install", "--quiet", "--disable-pip-version-check", VALIDATOR]))?;
    Ok(std::fs::write(done, VALIDATOR)?)
}

/// A cargo subcommand.
pub(super) fn cargo(name: &str) -> Command {
    let mut cargo = workspace::cargo();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(packages::tools().join("bin")).chain(std::env::split_paths(&path));
    if let Ok(path) = std::env::join_paths(folders) {
        cargo.env("PATH", path);
    }
    cargo.arg(name);
    cargo
}

/// Validates a bill of materials against the CycloneDX schema, if the validator is installed.
pub(super) fn validate(bill: &Path) -> Result<()> {
    let python = packages::tools().join("cyclonedx/bin/python");
    let program = "import sys\n\
         from cyclonedx.schema import SchemaVersion\n\
         from cyclonedx.validation.json import JsonStrictValidator\n\
         error = JsonStrictValidator(SchemaVersion.V1_5).validate_str(open(sys.argv[1]).read())\n\
         sys.exit(str(error)[:2000] if error else 0)\n";
    workspace::run(Command::new(python).args(["-c", program]).arg(bill))
}
