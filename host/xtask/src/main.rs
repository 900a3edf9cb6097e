//! The development tools: `cargo xtask demo`, `test`, `bench`, `crash`, `package` …
//!
//! This program builds and starts the programs of a verb. It has few dependencies, so that its own build takes seconds.
//! Demos, benchmarks and everything else that runs an appliance are in the crate `workloads`, release artifacts in
//! `release`.
#![allow(clippy::print_stdout, reason = "a command line tool speaks on standard output")]

mod fuzz;
mod launch;
mod test;

use clap::{Parser, Subcommand};
use launch::ForwardedArgs;
use std::process::ExitCode;
use workspace::{Profile, packages, plugins};

#[derive(Parser)]
#[command(about = "Switchyard's development tools", version)]
struct Arguments {
    /// Only show that a verb works: build without optimisation, and print missed aims instead of failing.
    #[arg(long)]
    no_aims: bool,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Run a demo: an appliance, a sample ESME and a sample peer; the router is replaced while traffic flows.
    #[command(disable_help_flag = true)]
    Demo(ForwardedArgs),
    /// Run tests by tier: `check`, `behaviour` (the default), `all`, `nightly`.
    Test(test::Options),
    /// Build the plugins into target/plugins.
    Plugins {
        /// Also build the worked examples in all languages; installs missing build tools.
        #[arg(long)]
        examples: bool,
    },
    /// Install the packages that tests with foreign programs need in addition to Rust, if they are missing.
    Setup,
    /// Run a fuzz target of tests/fuzz for a while, with its seeds.
    Fuzz(fuzz::Options),
    /// Run the load generator's source against its sink, without an appliance: measures the measuring tools.
    #[command(disable_help_flag = true)]
    Load(ForwardedArgs),
    /// Replace the router under full load, and check that traffic is not affected.
    #[command(disable_help_flag = true)]
    Swap(ForwardedArgs),
    /// Change the configuration repeatedly under load, and check that nothing is lost or delayed.
    #[command(disable_help_flag = true)]
    Reconfigure(ForwardedArgs),
    /// Print one table of the appliance's throughput and cost (release build, one run); `bench --help` names others.
    #[command(disable_help_flag = true)]
    Bench(ForwardedArgs),
    /// Kill the appliance repeatedly under full load, and check that nothing is lost.
    #[command(disable_help_flag = true)]
    Crash(ForwardedArgs),
    /// Cause faults in a cluster in network namespaces, and check that nothing is lost, duplicated or invented.
    #[command(disable_help_flag = true)]
    Cluster(ForwardedArgs),
    /// Make the pictures of the manual in docs/images/console: pages of the console over a fake API, in a headless browser.
    #[command(disable_help_flag = true)]
    Screenshots(ForwardedArgs),
    /// Make the release artifacts in target/package: a Debian package, an OCI image layout, a tarball, bills of materials, checksums.
    #[command(disable_help_flag = true)]
    Package(ForwardedArgs),
    /// Build the appliance image: a disk that boots, serves and updates itself; --test checks it.
    #[command(disable_help_flag = true)]
    Image(ForwardedArgs),
}

fn main() -> ExitCode {
    broken_pipe::end_quietly();
    let arguments = Arguments::parse();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let no_aims = arguments.no_aims;
    match &arguments.verb {
        Verb::Demo(passed) => launch::demo(no_aims, passed),
        Verb::Load(passed) => launch::workload("load", no_aims, passed),
        Verb::Swap(passed) => launch::workload("swap", no_aims, passed),
        Verb::Reconfigure(passed) => launch::workload("reconfigure", no_aims, passed),
        Verb::Bench(passed) => launch::workload("bench", no_aims, passed),
        Verb::Crash(passed) => launch::workload("crash", no_aims, passed),
        Verb::Cluster(passed) => launch::workload("cluster", no_aims, passed),
        Verb::Screenshots(passed) => launch::screenshots(passed),
        Verb::Package(passed) => launch::release("package", passed),
        Verb::Image(passed) => launch::release("image", passed),
        Verb::Plugins { examples } => {
            let folder = plugins::build()?;
            if *examples {
                plugins::examples(&workspace::daemon(Profile::Debug)?)?;
            }
            println!("plugins: in {}", folder.display());
            Ok(())
        }
        Verb::Setup => packages::install_all(),
        Verb::Fuzz(options) => fuzz::run(options),
        Verb::Test(options) => test::run(options),
    }
}
