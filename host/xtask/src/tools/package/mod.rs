//! `cargo xtask package`: what is handed out, in `target/package`: a Debian package, an OCI image layout, a tarball with a
//! static binary; for each a bill of materials, for all of them checksums.

mod deb;
mod needs;
mod oci;
mod sbom;
mod stage;
mod tarball;
mod trial;
mod trial_run;

use anyhow::{Context, Result};
use clap::ValueEnum;
pub(crate) use sbom::{Debian, Materials};
use stage::Stage;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;
use xtask::house;

/// What `cargo xtask package` is asked for.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Try everything out: the Debian package in a clean Debian 12 that is booted for it (installed, started, upgraded, removed,
    /// purged), the image and the tarball by running their daemons.
    #[arg(long)]
    test: bool,
    /// Only these.
    #[arg(long, value_enum, value_delimiter = ',', default_values = ["deb", "oci", "tarball"])]
    only: Vec<Form>,
    /// A release build that is there already, for the Debian package.
    #[arg(long)]
    binary: Option<PathBuf>,
    /// Only lay out the files that all forms share, in `target/package/stage`, with no tool that is not on every machine.
    #[arg(long, conflicts_with = "test")]
    stage: bool,
    /// A static release build that is there already, for image and tarball.
    #[arg(long)]
    static_binary: Option<PathBuf>,
}

/// What is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    /// A Debian package.
    Deb,
    /// An OCI image layout.
    Oci,
    /// A tarball.
    Tarball,
}

/// The Debian package, for who needs it to go on.
pub(crate) fn debian() -> Result<PathBuf> {
    needs::install(false)?;
    deb::build(&Stage::make(&dynamic(None)?)?, None)
}

/// Holds a bill of materials to CycloneDX's schema.
pub(crate) fn validate(bill: &Path) -> Result<()> {
    needs::install(true)?;
    needs::validate(bill)
}

/// Where everything goes.
pub(crate) fn folder() -> PathBuf {
    house::root().join("target/package")
}

/// Makes what is asked for, and tries it.
pub(crate) fn run(options: &Options) -> Result<()> {
    let begun = Instant::now();
    if options.stage {
        let stage = Stage::make(&dynamic(options.binary.as_deref())?)?;
        println!("package: laid out in {}", stage.folder.display());
        return Ok(());
    }
    needs::install(options.test)?;
    let wants = |form| options.only.contains(&form);
    let folder = folder();
    std::fs::create_dir_all(&folder)?;
    let materials = Materials::gather()?;
    let mut made = Vec::new();

    if wants(Form::Deb) {
        let stage = Stage::make(&dynamic(options.binary.as_deref())?)?;
        let package = deb::build(&stage, None)?;
        materials.write(&package, "application", &[])?;
        deb::check(&package)?;
        if options.test {
            trial::run(&package, &deb::build(&stage, Some("+trial"))?)?;
        }
        made.push(package);
    }
    if wants(Form::Oci) || wants(Form::Tarball) {
        let binary = match &options.static_binary {
            Some(binary) => binary.clone(),
            None => tarball::build()?,
        };
        tarball::check_static(&binary)?;
        let stage = Stage::make(&binary)?;
        if wants(Form::Tarball) {
            let tarball = tarball::pack(&stage)?;
            materials.write(&tarball, "application", &sbom::linked()?)?;
            if options.test {
                trial_run::tarball(&tarball)?;
            }
            made.push(tarball);
        }
        if wants(Form::Oci) {
            let layout = oci::build(&stage)?;
            let mut debian = sbom::linked()?;
            debian.push(Debian::installed("ca-certificates")?);
            materials.write(&layout, "container", &debian)?;
            if options.test {
                trial_run::image(&layout)?;
            }
            made.push(layout.join("index.json"));
        }
    }
    if options.test {
        for bill in bills(&made)? {
            needs::validate(&folder.join(bill))?;
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
        None => house::daemon(true),
    }
}

/// The bills of materials of what was made, as [`Materials::write`] calls them.
fn bills(made: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let name = |path: &PathBuf| -> Result<PathBuf> {
        let path = path.strip_prefix(folder())?;
        let top = path.components().next().context("an empty path")?;
        Ok(PathBuf::from(format!("{}.cdx.json", Path::new(&top).display())))
    };
    made.iter().map(name).collect()
}

/// What `sha256sum --check` reads. Of an image layout the index is enough: all else in it is named by its sum.
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

/// The sums of what was made now, and of what earlier calls made and is still there; by name.
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

/// When the source was last changed, in seconds since 1970: the time of every file that is handed out, so that the same source
/// gives the same files.
fn source_date() -> Result<u64> {
    let output =
        Command::new("git").args(["log", "-1", "--format=%ct"]).current_dir(house::root()).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    text.trim().parse().with_context(|| format!("git does not say when the source was changed: {text:?}"))
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_another_call_made_stays_listed_while_it_is_there() {
        let before = "1  a.deb\n2  gone\n3  b.tar.gz\n";
        let sums = super::merged(before, "9  a.deb\n8  oci/index.json\n", |name| name != "gone");
        assert_eq!(sums, "9  a.deb\n3  b.tar.gz\n8  oci/index.json\n");
    }
}
