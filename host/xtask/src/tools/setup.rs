//! `cargo xtask setup`: what the behaviour tests need beside Rust.

use anyhow::{Context, Result, bail};
use std::path::Path;
use std::process::{Command, Stdio};
use xtask::{database, house};

/// npm `smpp`, `axe-core`, which judges whether everybody can use the console, and `ioredis`.
const NPM: [&str; 3] = ["smpp@0.5.1", "axe-core@4.11.0", "ioredis@6.0.0"];
/// PyPI `smpplib` and `redis`.
const PYPI: [&str; 2] = ["smpplib==2.2.4", "redis==8.1.0"];
/// PyPI `schemathesis`.
const SCHEMATHESIS: &str = "schemathesis==4.32.5";

/// A Debian package, why it is needed, and how it is seen that it is there.
pub(crate) struct Need {
    pub(crate) package: &'static str,
    pub(crate) reason: &'static str,
    pub(crate) there: fn() -> bool,
}

const NEEDS: &[Need] = &[
    Need {
        package: "kannel",
        reason: "the ESME that the field uses most",
        there: || exists("/usr/sbin/bearerbox"),
    },
    Need {
        package: "tshark",
        reason: "an independent decoder of what we send",
        there: || runs("tshark", "--version"),
    },
    Need {
        package: "nodejs",
        reason: "runs npm smpp, and what builds plugins in JavaScript",
        there: || runs("node", "--version"),
    },
    Need {
        package: "npm",
        reason: "installs npm smpp, and what builds plugins in JavaScript",
        there: || runs("npm", "--version"),
    },
    Need {
        package: "python3-venv",
        reason: "places of their own for PyPI smpplib and redis, and for what builds plugins in Python and C",
        there: || runs("python3", "-mensurepip"),
    },
    Need {
        package: "osmo-hlr",
        reason: "the register of a GSM network's subscribers",
        there: || exists("/usr/bin/osmo-hlr"),
    },
    Need {
        package: "osmo-msc",
        reason: "the exchange that brings short messages to phones",
        there: || exists("/usr/bin/osmo-msc"),
    },
    Need {
        package: "gcc",
        reason: "compiles what lets osmo-msc run without SCTP",
        there: || runs("cc", "--version"),
    },
    Need {
        package: "openssh-server",
        reason: "lets subscribers in by forced commands, on a private port; the service that the package may start is not needed",
        there: || exists("/usr/sbin/sshd"),
    },
    Need { package: "openssh-client", reason: "comes in by them", there: || runs("ssh", "-V") },
    Need {
        package: "prometheus",
        reason: "promtool, which tests the alert rules; the service that the package may start is not needed",
        there: || runs("promtool", "--version"),
    },
    Need {
        package: "redis-tools",
        reason: "redis-cli and redis-benchmark, which ask number pools",
        there: || runs("redis-cli", "--version") && runs("redis-benchmark", "--version"),
    },
    Need {
        package: "chromium",
        reason: "looks at the console as people do, headless",
        there: || runs("chromium", "--version"),
    },
    Need {
        package: "chromium-driver",
        reason: "lets a test use that browser",
        there: || runs("chromedriver", "--version"),
    },
    Need {
        package: "mariadb-server",
        reason: "a data base of the archive, on a private port",
        there: || database::mariadb_programs().is_some(),
    },
    Need {
        package: "postgresql",
        reason: "a data base of the archive, on a private port",
        there: || database::postgres_programs().is_some(),
    },
    Need {
        package: "redis-server",
        reason: "what number pools are measured against, on a private port; the service that the package may start is not needed",
        there: || exists("/usr/bin/redis-server"),
    },
];

pub(crate) fn exists(path: &str) -> bool {
    Path::new(path).exists()
}

pub(crate) fn runs(program: &str, argument: &str) -> bool {
    let arguments =
        if argument == "-mensurepip" { vec!["-m", "ensurepip", "--version"] } else { vec![argument] };
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Installs what is missing, and says why. Does nothing the second time.
pub(crate) fn run() -> Result<()> {
    packages(|_| true)?;
    libraries()?;
    schemathesis()
}

/// Installs those of the needed packages that are wanted and missing.
pub(crate) fn packages(wanted: impl Fn(&str) -> bool) -> Result<()> {
    install_those(NEEDS.iter().filter(|need| wanted(need.package)))
}

/// Installs those that are missing, of a tool's own needs.
pub(crate) fn install_missing(needs: &[Need]) -> Result<()> {
    install_those(needs.iter())
}

fn install_those<'a>(wanted: impl Iterator<Item = &'a Need>) -> Result<()> {
    let wanted: Vec<_> = wanted.collect();
    let missing = || wanted.iter().copied().filter(|need| !(need.there)()).collect::<Vec<_>>();
    // Twice at most: apt-get takes a package away where its version does not go with a new one, and it may be a wanted one.
    for _ in 0..2 {
        let missing = missing();
        if missing.is_empty() {
            return Ok(());
        }
        for need in &missing {
            println!("setup: installing {} ({})", need.package, need.reason);
        }
        let names: Vec<_> = missing.iter().map(|need| need.package).collect();
        let advice =
            || format!("cannot install what is needed; by hand: apt-get install {}", names.join(" "));
        if install(&names).is_err() {
            println!("setup: trying again with fresh package lists");
            house::run(house::as_root("apt-get").args(["update", "-qq"])).with_context(advice)?;
            install(&names).with_context(advice)?;
        }
    }
    match missing().first() {
        Some(need) => bail!("{} was installed, and still does not work", need.package),
        None => Ok(()),
    }
}

fn install(names: &[&str]) -> Result<()> {
    // Through env, since sudo does not pass variables on.
    let mut install = house::as_root("env");
    install.args([
        "DEBIAN_FRONTEND=noninteractive",
        "apt-get",
        "install",
        "-qq",
        "-y",
        "--no-install-recommends",
    ]);
    house::run(install.args(names).stdout(Stdio::null()))
}

fn libraries() -> Result<()> {
    let folder = house::peers();
    let done = folder.join("complete");
    let pypi = PYPI.join(" ");
    let npm = NPM.join(" ");
    let wanted = format!("{npm} {pypi}\n");
    if std::fs::read_to_string(&done).is_ok_and(|text| text == wanted) {
        return Ok(());
    }
    std::fs::create_dir_all(&folder)?;
    println!("setup: npm {npm} and PyPI {pypi} into {}", folder.display());
    let mut npm = Command::new("npm");
    npm.args(["install", "--silent", "--no-audit", "--no-fund", "--no-package-lock", "--prefix"])
        .arg(&folder)
        .args(NPM);
    house::run(npm.stdout(Stdio::null()))?;
    let venv = folder.join("venv");
    house::run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&venv))?;
    let mut pip = Command::new(venv.join("bin/pip"));
    house::run(pip.args(["install", "--quiet", "--disable-pip-version-check"]).args(PYPI))?;
    Ok(std::fs::write(done, wanted)?)
}

fn schemathesis() -> Result<()> {
    let program = house::schemathesis();
    let venv = house::peers().join("schemathesis");
    let done = venv.join("complete");
    if program.exists() && std::fs::read_to_string(&done).is_ok_and(|text| text == SCHEMATHESIS) {
        return Ok(());
    }
    println!("setup: PyPI {SCHEMATHESIS} into {}", venv.display());
    house::run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&venv))?;
    let mut pip = Command::new(venv.join("bin/pip"));
    house::run(pip.args(["install", "--quiet", "--disable-pip-version-check", SCHEMATHESIS]))?;
    Ok(std::fs::write(done, SCHEMATHESIS)?)
}
