//! `cargo xtask image`: builds the appliance as a disk and an update for it, and tests both.
//!
//! The image is defined by scripts in `appliance-image/image` that call the distribution's tools; this module only calls them
//! in order.

mod build;
mod image_test;
mod prerequisites;
mod virtual_machine;

use anyhow::Result;
use std::path::PathBuf;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Boot it, send traffic, cut its power, update it, and check the results; takes half an hour if qemu has to emulate.
    #[arg(long)]
    test: bool,
    /// Use this Debian package of Switchyard; by default, one is built like in `cargo xtask package`.
    #[arg(long)]
    package: Option<PathBuf>,
    /// Version of the image; an update with the same version changes nothing.
    #[arg(long, default_value = env!("CARGO_PKG_VERSION"))]
    version: String,
    /// Certificate for signing updates (PEM); by default, a development certificate is made once, in .state/update-keys.
    #[arg(long, requires = "update_key")]
    update_certificate: Option<PathBuf>,
    /// Private key of the certificate (PEM).
    #[arg(long, requires = "update_certificate")]
    update_key: Option<PathBuf>,
    /// Output folder; target/image by default.
    #[arg(long)]
    output: Option<PathBuf>,
    /// Acceleration of the virtual machine in the test.
    #[arg(long, value_enum, default_value_t = virtual_machine::Acceleration::Auto)]
    acceleration: virtual_machine::Acceleration,
    /// Firmware of the machine in the test.
    #[arg(long, value_enum, default_value_t = virtual_machine::Firmware::Bios)]
    firmware: virtual_machine::Firmware,
    /// Run only these parts of the test; they are preceded by a first start, traffic and a plugin replacement.
    #[arg(long, value_enum, value_delimiter = ',', default_values = ["cuts", "update", "bad-daemon", "bad-system", "guide", "cluster"])]
    parts: Vec<TestPart>,
    /// Number of power cuts in the test, in addition to the one during an update.
    #[arg(long, default_value_t = 5)]
    cuts: u32,
}

/// A part of the test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum TestPart {
    /// The power is cut under load, and during an update.
    Cuts,
    /// An update over the API.
    Update,
    /// An update whose daemon exits immediately.
    BadDaemon,
    /// An update that does not boot.
    BadSystem,
    /// The page of the manual about the image.
    Guide,
    /// Three machines that become a cluster.
    Cluster,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let built = build::build(options)?;
    built.print()?;
    if options.test {
        image_test::run(&built, options)?;
    }
    Ok(())
}
