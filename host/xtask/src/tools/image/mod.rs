//! `cargo xtask image`: the appliance as a disk, its update, and the proof that both do what they promise.
//!
//! What the image is stands in `appliance-image/image`, as scripts that call the distribution's own tools; here is only their
//! order, and what they are given.

mod build;
mod machine;
mod needs;
mod trial;

use anyhow::Result;
use std::path::PathBuf;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Start it, load it, cut its power, update it, and judge what it does; takes half an hour where qemu has to emulate.
    #[arg(long)]
    test: bool,
    /// A Debian package of Switchyard that is there already; without it, one is built as `cargo xtask package` does.
    #[arg(long)]
    package: Option<PathBuf>,
    /// What this image is called; an update of the same name changes nothing.
    #[arg(long, default_value = env!("CARGO_PKG_VERSION"))]
    version: String,
    /// The certificate that updates are signed under (PEM); without it, one for development is made once, in .state/update-keys.
    #[arg(long, requires = "update_key")]
    update_certificate: Option<PathBuf>,
    /// Its key (PEM), which signs.
    #[arg(long, requires = "update_certificate")]
    update_key: Option<PathBuf>,
    /// Where the results go; target/image if left out.
    #[arg(long)]
    output: Option<PathBuf>,
    /// How qemu runs the machine in the test.
    #[arg(long, value_enum, default_value_t = machine::Acceleration::Auto)]
    acceleration: machine::Acceleration,
    /// What the machine of the test starts by.
    #[arg(long, value_enum, default_value_t = machine::Firmware::Bios)]
    firmware: machine::Firmware,
    /// Only these parts of the test; a first start, traffic and a plugin's exchange go before them.
    #[arg(long, value_enum, value_delimiter = ',', default_values = ["cuts", "update", "bad-daemon", "bad-system", "guide"])]
    parts: Vec<Part>,
    /// How often the power is cut in the test, beside the one during an update.
    #[arg(long, default_value_t = 5)]
    cuts: u32,
}

/// A part of the test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Part {
    /// The power is cut under load, and during an update.
    Cuts,
    /// An update over the API.
    Update,
    /// An update whose daemon ends at once.
    BadDaemon,
    /// An update that does not even start.
    BadSystem,
    /// The chapter of the admin's guide.
    Guide,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let built = build::build(options)?;
    built.tell()?;
    if options.test {
        trial::run(&built, options)?;
    }
    Ok(())
}
