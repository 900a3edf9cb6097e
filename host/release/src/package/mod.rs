//! `cargo xtask package`: the release artifacts in `target/package`: a Debian package, an OCI image layout, a tarball with a
//! static binary; a bill of materials for each, and checksums for all.

mod deb;
mod install_test;
mod oci;
mod prerequisites;
mod run_test;
mod sbom;
mod staging;
mod tarball;

use anyhow::{Context, Result};
use clap::ValueEnum;
pub(crate) use sbom::{Debian, Materials};
use staging::StagingDir;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;
use workspace::Profile;

/// Options of `cargo xtask package`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Test the results: the Debian package in a clean, booted Debian 12 (installed, started, upgraded, removed,
    /// purged), the image and the tarball by running their daemons.
    #[arg(long)]
    test: bool,
    /// Make only these.
    #[arg(long, value_enum, value_delimiter = ',', default_values = ["deb", "oci", "tarball"])]
    only: Vec<PackageFormat>,
    /// Use this release build for the Debian package.
    #[arg(long)]
    binary: Option<PathBuf>,
    /// Only collect the files that all formats share, in `target/package/stage`; needs no uncommon tool.
    #[arg(long, conflicts_with = "test")]
    stage: bool,
    /// Use this static release build for image and tarball.
    #[arg(long)]
    static_binary: Option<PathBuf>,
}

/// A package format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PackageFormat {
    /// A Debian package.
    Deb,
    /// An OCI image layout.
    Oci,
    /// A tarball.
    Tarball,
}

/// Builds the Debian package, for other subcommands.
pub(crate) fn debian() -> Result<PathBuf> {
    prerequisites::install(false)?;
    deb::build(&StagingDir::make(&dynamic(None)?)?, None)
}

/// Validates a bill of materials against the CycloneDX schema.
pub(crate) fn validate(bill: &Path) -> Result<()> {
    prerequisites::install(true)?;
    prerequisites::validate(bill)
}

/// The output folder.
pub(crate) fn folder() -> PathBuf {
    workspace::root().join("target/package")
}

/// Makes the requested formats, and tests them if requested.
pub(crate) fn run(options: &Options) -> Result<()> {
    let begun = Instant::now();
    if options.stage {
        let staging = StagingDir::make(&dynamic(options.binary.as_deref())?)?;
        println!("package: staged in {}", staging.folder.display());
        return Ok(());
    }
    prerequisites::install(options.test)?;
    let wants = |form| options.only.contains(&form);
    let folder = folder();
    std::fs::create_dir_all(&folder)?;
    let materials = Materials::gather()?;
    let mut made = Vec::new();

    if wants(PackageFormat::Deb) {
        let staging = StagingDir::make(&dynamic(options.binary.as_deref())?)?;
        let package = deb::build(&staging, None)?;
        materials.write(&package, "application", &[])?;
        deb::check(&package)?;
        if options.test {
            install_test::run(&package, &deb::build(&staging, Some("+trial"))?)?;
        }
        made.push(package);
    }
    if wants(PackageFormat::Oci) || wants(PackageFormat::Tarball) {
        let binary = match &options.static_binary {
            Some(binary) => binary.clone(),
            None => tarball::build()?,
        };
        tarball::check_static(&binary)?;
        let staging = StagingDir::make(&binary)?;
        if wants(PackageFormat::Tarball) {
            let tarball = tarball::pack(&staging)?;
            materials.write(&tarball, "application", &sbom::linked()?)?;
            if options.test {
                run_test::tarball(&tarball)?;
            }
            made.push(tarball);
        }
        if wants(PackageFormat::Oci) {
            let layout = oci::build(&staging)?;
            let mut debian = sbom::linked()?;
            debian.push(Debian::installed("ca-certificates")?);
            materials.write(&layout, "container", &debian)?;
            if options.test {
                run_test::image(&layout)?;
            }
            made.push(layout.join("index.json"));
        }
    }
    if options.test {
        for bill in bills(&made)? {
            prerequisites::validate(&folder.join(bill))?;
        }
    }
    checksums(&made)?;
    for path in &made {
        println!("package: {}", path.display());
    }
    println!(
        "package: all well ({} s); checksums in {}",
        begun.elapsed().as_secs(),
        folder.join("SHA256SUMS").display()
    );
    Ok(())
}

fn dynamic(binary: Option<&Path>) -> Result<PathBuf> {
    match binary {
        Some(binary) => binary.canonicalize().with_context(|| format!("{}", binary.display())),
        None => workspace::daemon(Profile::Release),
    }
}

/// The bills of materials of these results, as [`Materials::write`] names them.
fn bills(made: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let name = |path: &PathBuf| -> Result<PathBuf> {
        let path = path.strip_prefix(folder())?;
        let top = path.components().next().context("an empty path")?;
        Ok(PathBuf::from(format!("{}.cdx.json", Path::new(&top).display())))
    };
    made.iter().map(name).collect()
}

/// Writes the input of `sha256sum --check`. For an image layout the index suffices: it contains the digests of all other files.
fn checksums(made: &[PathBuf]) -> Result<()> {
    let folder = folder();
    let mut names = bills(made)?;
    for path in made {
        names.push(path.strip_prefix(&folder)?.to_owned());
    }
    let output =
        Command::new("sha256sum").args(&names).current_dir(&folder).output().context("running sha256sum")?;
    anyhow::ensure!(output.status.success(), "sha256sum: {}", String::from_utf8_lossy(&output.stderr));
    let new = String::from_utf8(output.stdout)?;
    let sums = folder.join("SHA256SUMS");
    let before = std::fs::read_to_string(&sums).unwrap_or_default();
    Ok(std::fs::write(&sums, merged(&before, &new, |name| folder.join(name).exists()))?)
}

/// Merges the new sums with those of earlier results that still exist; sorted by name.
fn merged(before: &str, new: &str, there: impl Fn(&str) -> bool) -> String {
    let by_name = |text: &str| -> BTreeMap<String, String> {
        let lines = text.lines().filter_map(|line| line.split_once("  "));
        lines.map(|(sum, name)| (name.to_owned(), sum.to_owned())).collect()
    };
    let mut sums = by_name(before);
    sums.retain(|name, _| there(name));
    sums.extend(by_name(new));
    sums.into_iter().map(|(name, sum)| format!("{sum}  {name}\n")).collect()
}

/// `0.1.0`.
fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// Time of the last change of the source, in seconds since 1970: the time stamp of every packaged file, so that the same source
/// gives the same files.
fn source_date() -> Result<u64> {
    let output =
        Command::new("git").args(["log", "-1", "--format=%ct"]).current_dir(workspace::root()).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    text.trim().parse().with_context(|| format!("unexpected output of git log: {text:?}"))
}

#[cfg(test)]
mod tests {
    #[test]
    fn existing_results_of_earlier_calls_stay_listed() {
        let before = "1  a.deb\n2  gone\n3  b.tar.gz\n";
        let sums = super::merged(before, "9  a.deb\n8  oci/index.json\n", |name| name != "gone");
        assert_eq!(sums, "9  a.deb\n3  b.tar.gz\n8  oci/index.json\n");
    }
}
