//! Programs that tests and tools need in addition to Rust: Debian, npm and PyPI packages.

use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// npm packages: `smpp`, `axe-core`, which checks the accessibility of the console, and `ioredis`.
const NPM: [&str; 3] = ["smpp@0.5.1", "axe-core@4.11.0", "ioredis@6.0.0"];
/// PyPI packages `smpplib`, `redis`, `pycmpp`, `dnslib` and `twilio`.
const PYPI: [&str; 5] =
    ["smpplib==2.2.4", "redis==8.1.0", "pycmpp==2.0.2", "dnslib==0.9.26", "twilio==9.8.0"];
/// PyPI package `rotel`, an OpenTelemetry collector whose wheel contains the program.
const ROTEL: &str = "rotel==0.0.1a15";
/// PyPI package `schemathesis`.
const SCHEMATHESIS: &str = "schemathesis==4.32.5";

/// The version of `wkg` on crates.io.
const WKG: &str = "0.16.1";

/// A Debian package, its purpose, and the check whether it is installed.
pub struct Prerequisite {
    /// Its name.
    pub package: &'static str,
    /// Purpose of the package.
    pub reason: &'static str,
    /// Whether it is installed.
    pub is_installed: fn() -> bool,
}

/// The library that changes the clock of a process.
#[must_use]
pub fn faketime_library() -> Option<PathBuf> {
    let folders = std::fs::read_dir("/usr/lib").ok()?;
    let mut paths = folders.flatten().map(|folder| folder.path().join("faketime/libfaketime.so.1"));
    paths.find(|path| path.exists())
}

const PREREQUISITES: &[Prerequisite] = &[
    Prerequisite {
        package: "kannel",
        reason: "Kannel, a widely used ESME",
        is_installed: || exists("/usr/sbin/bearerbox"),
    },
    Prerequisite {
        package: "tshark",
        reason: "an independent decoder of what we send",
        is_installed: || runs("tshark", "--version"),
    },
    Prerequisite {
        package: "nodejs",
        reason: "runs npm smpp, and builds plugins in JavaScript",
        is_installed: || runs("node", "--version"),
    },
    Prerequisite {
        package: "npm",
        reason: "installs npm smpp, and the tools for plugins in JavaScript",
        is_installed: || runs("npm", "--version"),
    },
    Prerequisite {
        package: "curl",
        reason: "the manual's HTTP client",
        is_installed: || runs("curl", "--version"),
    },
    Prerequisite {
        package: "jq",
        reason: "reads JSON in the manual's commands",
        is_installed: || runs("jq", "--version"),
    },
    Prerequisite {
        package: "python3-venv",
        reason: "virtual environments for PyPI smpplib, redis, pycmpp, dnslib and twilio, and for plugins in Python and C",
        is_installed: || runs("python3", "-mensurepip"),
    },
    Prerequisite {
        package: "libpython3-dev",
        reason: "brings Python's shared library, which PyPI rotel is linked with",
        is_installed: has_python_library,
    },
    Prerequisite {
        package: "osmo-hlr",
        reason: "HLR of the test network",
        is_installed: || exists("/usr/bin/osmo-hlr"),
    },
    Prerequisite {
        package: "osmo-msc",
        reason: "MSC of the test network",
        is_installed: || exists("/usr/bin/osmo-msc"),
    },
    Prerequisite {
        package: "gcc",
        reason: "compiles the library that lets osmo-msc run without SCTP",
        is_installed: || runs("cc", "--version"),
    },
    Prerequisite {
        package: "openssh-server",
        reason: "sshd for the forced-command tests, on a private port; the service that the package may start is not needed",
        is_installed: || exists("/usr/sbin/sshd"),
    },
    Prerequisite {
        package: "openssh-client",
        reason: "client of the forced-command tests",
        is_installed: || runs("ssh", "-V"),
    },
    Prerequisite {
        package: "prometheus",
        reason: "promtool, which tests the alert rules; the service that the package may start is not needed",
        is_installed: || runs("promtool", "--version"),
    },
    Prerequisite {
        package: "redis-tools",
        reason: "redis-cli and redis-benchmark, clients of number pools",
        is_installed: || runs("redis-cli", "--version") && runs("redis-benchmark", "--version"),
    },
    Prerequisite {
        package: "chromium",
        reason: "headless browser for the console tests",
        is_installed: || runs("chromium", "--version"),
    },
    Prerequisite {
        package: "chromium-driver",
        reason: "controls that browser",
        is_installed: || runs("chromedriver", "--version"),
    },
    Prerequisite {
        package: "mariadb-server",
        reason: "database for the archive tests, on a private port",
        is_installed: || mariadb_programs().is_some(),
    },
    Prerequisite {
        package: "postgresql",
        reason: "database for the archive tests, on a private port",
        is_installed: || postgres_programs().is_some(),
    },
    Prerequisite {
        package: "redis-server",
        reason: "baseline for the number pool benchmark, on a private port; the service that the package may start is not needed",
        is_installed: || exists("/usr/bin/redis-server"),
    },
    Prerequisite {
        package: "etcd-server",
        reason: "log of the test clusters, on private ports; the service that the package may start is not needed",
        is_installed: || exists("/usr/bin/etcd"),
    },
    Prerequisite {
        package: "haproxy",
        reason: "leads ESMEs of the cluster tests to the leader; the service that the package may start is not needed",
        is_installed: || exists("/usr/sbin/haproxy"),
    },
    Prerequisite {
        package: "keepalived",
        reason: "checks the configuration of the manual; the service is not needed",
        is_installed: || exists("/usr/sbin/keepalived"),
    },
    Prerequisite {
        package: "iproute2",
        reason: "network namespaces of the cluster's fault runs",
        is_installed: || exists("/usr/sbin/ip"),
    },
    Prerequisite {
        package: "libfaketime",
        reason: "clocks that jump in the cluster's fault runs",
        is_installed: || faketime_library().is_some(),
    },
    Prerequisite {
        package: "docker-registry",
        reason: "registry of the plugin tests, on a private port; the service that the package may start is not needed",
        is_installed: || exists("/usr/bin/docker-registry"),
    },
    Prerequisite {
        package: "skopeo",
        reason: "copies plugins between registries and folders in the plugin tests",
        is_installed: || runs("skopeo", "--version"),
    },
    Prerequisite {
        package: "nats-server",
        reason: "takes events in the tests, on private ports; the service that the package may start is not needed",
        is_installed: || exists("/usr/sbin/nats-server"),
    },
    Prerequisite {
        package: "rabbitmq-server",
        reason: "takes events in the tests, on private ports; the service that the package may start is not needed",
        is_installed: || exists("/usr/sbin/rabbitmq-server"),
    },
    Prerequisite {
        package: "kcat",
        reason: "librdkafka's own broker and a consumer of Kafka, which take events in the tests",
        is_installed: || exists("/usr/bin/kcat"),
    },
    Prerequisite {
        package: "etcd-client",
        reason: "etcdctl, which sets up users of etcd for the tests",
        is_installed: || exists("/usr/bin/etcdctl"),
    },
];

/// Whether Python's shared library is installed in addition to Python.
fn has_python_library() -> bool {
    let load = "import ctypes, sysconfig; ctypes.CDLL(sysconfig.get_config_var('INSTSONAME'))";
    let mut command = Command::new("python3");
    command.args(["-c", load]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Folder of MariaDB's server, if it is installed.
pub fn mariadb_programs() -> Option<PathBuf> {
    let folder = PathBuf::from("/usr/sbin");
    folder.join("mariadbd").exists().then_some(folder)
}

/// Folder of the newest installed PostgreSQL; Debian does not put it into the path.
pub fn postgres_programs() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?.filter_map(Result::ok);
    let number = |path: &PathBuf| path.file_name()?.to_str()?.parse::<u32>().ok();
    let newest = versions.map(|version| version.path()).filter(|path| path.join("bin/initdb").exists());
    Some(newest.max_by_key(number)?.join("bin"))
}

/// Whether a file exists.
pub fn exists(path: &str) -> bool {
    Path::new(path).exists()
}

/// Whether a program is installed: whether it ends without an error when called with this argument.
pub fn runs(program: &str, argument: &str) -> bool {
    let arguments =
        if argument == "-mensurepip" { vec!["-m", "ensurepip", "--version"] } else { vec![argument] };
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Installs everything that the behaviour tests need, and prints why. A second run is a no-op.
pub fn install_all() -> Result<()> {
    install(|_| true)?;
    libraries()?;
    schemathesis()?;
    rotel()?;
    wkg().map(drop)
}

/// Installs the missing packages among those that `wanted` selects.
pub fn install(wanted: impl Fn(&str) -> bool) -> Result<()> {
    install_matching(PREREQUISITES.iter().filter(|need| wanted(need.package)))
}

/// Installs the missing packages of a tool.
pub fn install_missing(needs: &[Prerequisite]) -> Result<()> {
    install_matching(needs.iter())
}

fn install_matching<'a>(wanted: impl Iterator<Item = &'a Prerequisite>) -> Result<()> {
    let wanted: Vec<_> = wanted.collect();
    let missing = || wanted.iter().copied().filter(|need| !(need.is_installed)()).collect::<Vec<_>>();
    // At most twice: apt-get removes a package whose version conflicts with a new one, and it may be one of these.
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
            || format!("installation failed; to install manually: apt-get install {}", names.join(" "));
        if apt_get_install(&names).is_err() {
            println!("setup: trying again with fresh package lists");
            crate::run(crate::root_command("apt-get").args(["update", "-qq"])).with_context(advice)?;
            apt_get_install(&names).with_context(advice)?;
        }
    }
    match missing().first() {
        Some(need) => bail!("{} was installed but does not work", need.package),
        None => Ok(()),
    }
}

fn apt_get_install(names: &[&str]) -> Result<()> {
    // Through env, since sudo does not pass variables on.
    let mut install = crate::root_command("env");
    install.args([
        "DEBIAN_FRONTEND=noninteractive",
        "apt-get",
        "install",
        "-qq",
        "-y",
        "--no-install-recommends",
    ]);
    crate::run(install.args(names).stdout(Stdio::null()))
}

/// Folder of tools from crates.io and PyPI that are only for development.
pub fn tools() -> PathBuf {
    crate::root().join(".state/tools")
}

/// Path of a program from crates.io that does not have to be fast: an installed one of any version; otherwise this version is built.
pub fn cargo_tool(name: &str, version: &str) -> Result<PathBuf> {
    if runs(name, "--version") {
        return Ok(PathBuf::from(name));
    }
    let program = tools().join("bin").join(name);
    if program.exists() {
        return Ok(program);
    }
    println!("setup: crates.io {name} {version} into {} (once, some minutes)", tools().display());
    let mut install = crate::cargo();
    install.args(["install", "--quiet", "--locked", "--debug", "--root"]).arg(tools());
    let build = tools().join("build");
    crate::run(install.arg(format!("{name}@{version}")).env("CARGO_TARGET_DIR", &build))?;
    std::fs::remove_dir_all(&build).with_context(|| format!("removing {}", build.display()))?;
    Ok(program)
}

/// The program `wkg` of the Bytecode Alliance, which reads and writes components and WIT packages in registries.
pub fn wkg() -> Result<PathBuf> {
    cargo_tool("wkg", WKG)
}

fn libraries() -> Result<()> {
    let folder = crate::peers();
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
    crate::run(npm.stdout(Stdio::null()))?;
    let venv = folder.join("venv");
    crate::run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&venv))?;
    let mut pip = Command::new(venv.join("bin/pip"));
    crate::run(pip.args(["install", "--quiet", "--disable-pip-version-check"]).args(PYPI))?;
    Ok(std::fs::write(done, wanted)?)
}

fn schemathesis() -> Result<()> {
    virtual_environment("schemathesis", SCHEMATHESIS, &crate::schemathesis())
}

fn rotel() -> Result<()> {
    virtual_environment("rotel", ROTEL, &crate::peers().join("rotel/bin/python"))
}

/// Installs a PyPI package into an environment of its own, unless `program`, which it brings, is there in this version.
/// Programs of an environment contain its path, so a moved environment is installed again.
fn virtual_environment(name: &str, requirement: &str, program: &Path) -> Result<()> {
    let venv = crate::peers().join(name);
    let done = venv.join("complete");
    let wanted = format!("{requirement} in {}", venv.display());
    if program.exists() && std::fs::read_to_string(&done).is_ok_and(|text| text == wanted) {
        return Ok(());
    }
    println!("setup: PyPI {requirement} into {}", venv.display());
    crate::run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&venv))?;
    let mut pip = Command::new(venv.join("bin/pip"));
    crate::run(pip.args(["install", "--quiet", "--disable-pip-version-check", requirement]))?;
    Ok(std::fs::write(done, wanted)?)
}
