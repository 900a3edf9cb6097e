//! Makes the release artifacts and the appliance image, and tests them. `cargo xtask` builds this program, and passes its arguments on.
#![allow(clippy::print_stdout, reason = "a command line tool speaks on standard output")]

mod image;
mod package;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(bin_name = "cargo xtask", about = "Makes the release artifacts", version)]
struct Arguments {
    #[command(subcommand)]
    artifact: Artifact,
}

#[derive(Subcommand)]
enum Artifact {
    /// Make the release artifacts in target/package: a Debian package, an OCI image layout, a tarball, bills of materials, checksums.
    Package(package::Options),
    /// Build the appliance image: a disk that boots, serves and updates itself; --test checks it.
    Image(image::Options),
}

fn main() -> anyhow::Result<()> {
    broken_pipe::end_quietly();
    match Arguments::parse().artifact {
        Artifact::Package(options) => package::run(&options),
        Artifact::Image(options) => image::run(&options),
    }
}
