//! Builds the disk image from Debian's packages and the daemon.

use super::{Options, prerequisites};
use crate::package::{self, Debian, Materials};
use anyhow::{Context, Result, ensure};
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;
use workspace::packages;

/// Result of a build.
#[derive(Debug)]
pub(crate) struct ImageBuild {
    /// Contains the tree `root` (owned by root), the image of the slot and the disks.
    pub(crate) folder: PathBuf,
    /// Signing keys of this image.
    pub(crate) bundle: PathBuf,
    pub(crate) keys: Keys,
}

/// The keys that sign updates.
#[derive(Debug)]
pub(crate) struct Keys {
    certificate: PathBuf,
    key: PathBuf,
}

/// A script of `appliance-image/image`.
fn script(name: &str) -> PathBuf {
    workspace::root().join("appliance-image/image").join(name)
}

pub(crate) fn build(options: &Options) -> Result<ImageBuild> {
    packages::install_missing(prerequisites::PREREQUISITES)?;
    if options.test {
        packages::install(|package| package == "chromium")?;
    }
    let folder = match &options.output {
        Some(folder) => folder.clone(),
        None => workspace::target().join("image"),
    };
    std::fs::create_dir_all(&folder)?;
    let folder = folder.canonicalize()?;
    let keys = keys(options)?;
    let package = match &options.package {
        Some(package) => package.canonicalize().with_context(|| format!("{}", package.display()))?,
        None => package::debian()?,
    };
    let base = base(&folder)?;
    step("the system", |_| {
        workspace::run(
            workspace::root_command(path(&script("make-system"))?)
                .args([&base, &package, &keys.certificate])
                .arg(&options.version)
                .arg(&folder),
        )
    })?;
    step("the disk", |_| {
        workspace::run(Command::new(script("make-disk")).arg(folder.join("system.img")).arg(&folder))
    })?;
    let bundle = folder.join("switchyard.raucb");
    step("the update", |_| keys.sign(&folder.join("system.img"), &options.version, &bundle))?;
    let built = ImageBuild { folder, bundle, keys };
    let bill = Materials::gather()?.write(&built.raw(), "operating-system", &built.packages()?)?;
    if options.test {
        package::validate(&bill)?;
    }
    Ok(built)
}

fn path(path: &Path) -> Result<&str> {
    path.to_str().with_context(|| format!("{} is not UTF-8", path.display()))
}

/// Runs a step and prints how long it took.
fn step<T>(name: &str, task: impl FnOnce(()) -> Result<T>) -> Result<T> {
    let begun = Instant::now();
    let done = task(()).with_context(|| format!("making {name}"))?;
    println!("image: {name} ({} s)", begun.elapsed().as_secs());
    Ok(done)
}

/// Debian's part: built once per list of packages.
fn base(folder: &Path) -> Result<PathBuf> {
    let mut hash = DefaultHasher::new();
    for file in ["packages", "excluded", "make-base"] {
        std::fs::read(script(file))?.hash(&mut hash);
    }
    let base = folder.join(format!("base-{:016x}.tar", hash.finish()));
    if !base.exists() {
        step("Debian's packages", |()| {
            let unfinished = base.with_extension("unfinished");
            workspace::run(workspace::root_command(path(&script("make-base"))?).arg(&unfinished))?;
            Ok(std::fs::rename(unfinished, &base)?)
        })?;
    }
    Ok(base)
}

fn keys(options: &Options) -> Result<Keys> {
    if let (Some(certificate), Some(key)) = (&options.update_certificate, &options.update_key) {
        return Ok(Keys { certificate: certificate.canonicalize()?, key: key.canonicalize()? });
    }
    let folder = workspace::root().join(".state/update-keys");
    let keys = Keys { certificate: folder.join("certificate.pem"), key: folder.join("key.pem") };
    if !keys.certificate.exists() {
        std::fs::create_dir_all(&folder)?;
        println!("image: development keys in {}", folder.display());
        let mut openssl = Command::new("openssl");
        openssl.args(["req", "-x509", "-newkey", "rsa:3072", "-nodes", "-days", "7300", "-subj"]);
        openssl.args(["/CN=Switchyard updates (development)", "-keyout"]);
        openssl.arg(&keys.key).arg("-out").arg(&keys.certificate).stderr(std::process::Stdio::null());
        workspace::run(&mut openssl)?;
    }
    Ok(keys)
}

impl Keys {
    /// Makes an update from the image of a slot.
    pub(crate) fn sign(&self, system: &Path, version: &str, bundle: &Path) -> Result<()> {
        let mut make = Command::new(script("make-bundle"));
        make.arg(system).arg(version).arg(&self.certificate).arg(&self.key).arg(bundle);
        workspace::run(make.stderr(std::process::Stdio::null()))
    }
}

impl ImageBuild {
    pub(crate) fn qcow2(&self) -> PathBuf {
        self.folder.join("switchyard.qcow2")
    }

    pub(crate) fn raw(&self) -> PathBuf {
        self.folder.join("switchyard.raw")
    }

    /// The daemon's program in the system.
    pub(crate) fn daemon(&self) -> PathBuf {
        self.folder.join("root/usr/bin/switchyard")
    }

    /// The packages of the system, as its dpkg lists them.
    fn packages(&self) -> Result<Vec<Debian>> {
        let list = self.folder.join("root/usr/lib/switchyard/packages");
        let text = std::fs::read_to_string(&list).with_context(|| format!("reading {}", list.display()))?;
        // The daemon's own package is not Debian's; its components are listed separately.
        let lines = text.lines().filter(|line| !line.starts_with("switchyard "));
        let read = |line: &str| {
            let mut words = line.split(' ').map(str::to_owned);
            Some(Debian { name: words.next()?, version: words.next()?, architecture: words.next()? })
        };
        let packages: Vec<_> = lines.filter_map(read).collect();
        ensure!(packages.len() > 50, "only {} packages are in {}", packages.len(), list.display());
        Ok(packages)
    }

    /// Prints the results and their sizes.
    pub(crate) fn print(&self) -> Result<()> {
        for path in [&self.raw(), &self.qcow2(), &self.bundle] {
            let octets = std::fs::metadata(path)?.len();
            println!("image: {:>6.1} MB  {}", octets as f64 / 1e6, path.display());
            ensure!(octets < 400_000_000, "{} has more than 400 MB", path.display());
        }
        Ok(())
    }

    /// Makes another update: the same system with another version. `how` is an argument of make-variant.
    pub(crate) fn variant(&self, version: &str, how: &str) -> Result<PathBuf> {
        let folder = self.folder.join("variant");
        std::fs::create_dir_all(&folder)?;
        let bundle = self.folder.join(format!("{version}.raucb"));
        step(&format!("the update {version}"), |_| {
            workspace::run(
                workspace::root_command(path(&script("make-variant"))?)
                    .arg(&self.folder)
                    .arg(&folder)
                    .arg(version)
                    .arg(how),
            )?;
            self.keys.sign(&folder.join("system.img"), version, &bundle)
        })?;
        Ok(bundle)
    }
}
