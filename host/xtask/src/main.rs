//! The development tools: `cargo xtask demo`, `test`, `bench`, `crash`, `swap`, `plugins`, `package`.
#![allow(clippy::print_stdout, reason = "a command line tool speaks on standard output")]

mod plugins;
mod tools;

use clap::{Parser, Subcommand};
use std::backtrace::BacktraceStatus;
use std::process::ExitCode;
use xtask::{test_daemon, workspace};

#[derive(Parser)]
#[command(about = "Switchyard's own tools", version)]
struct Arguments {
    /// Print missed aims instead of failing.
    #[arg(long, global = true)]
    no_aims: bool,
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Run a demo: an appliance, a sample ESME and a sample peer; the router is replaced while traffic flows.
    Demo(tools::demo::Options),
    /// Build the plugins into target/plugins.
    Plugins {
        /// Also build the worked examples in all languages; installs missing build tools.
        #[arg(long)]
        examples: bool,
    },
    /// Install what the behaviour tests need besides Rust; a no-op if it is installed.
    Setup,
    /// Check everything: formatting, lints, all tests (with real peers too), and every subcommand of this program.
    Test(tools::test::Options),
    /// Run the load generator's source against its sink, without an appliance: measures the measuring tools.
    Load(tools::load::Options),
    /// Replace the router under full load, and check that traffic is not affected.
    Swap(tools::swap::Options),
    /// Change the configuration repeatedly under load, and check that nothing is lost or delayed.
    Reconfigure(tools::reconfigure::Options),
    /// Print one table of the appliance's throughput and cost (release build, one run).
    Bench(tools::bench::Options),
    /// Make the release artifacts in target/package: a Debian package, an OCI image layout, a tarball, bills of materials, checksums.
    Package(tools::package::Options),
    /// Kill the appliance repeatedly under full load, and check that nothing is lost.
    Crash(tools::crash::Options),
    /// Build the appliance image: a disk that boots, serves and updates itself; --test checks it.
    Image(tools::image::Options),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if arguments.no_aims {
        tools::aims::ignore();
    }
    match run(arguments.task) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report(&error);
            ExitCode::FAILURE
        }
    }
}

fn run(task: Task) -> anyhow::Result<()> {
    match task {
        Task::Plugins { examples } => {
            let folder = plugins::build()?;
            if examples {
                plugins::examples()?;
            }
            println!("plugins: in {}", folder.display());
            Ok(())
        }
        Task::Demo(options) if options.gsm => tools::demo_gsm::run(&options),
        Task::Demo(options) if options.sgip => tools::demo_sgip::run(&options),
        Task::Demo(options) => tools::demo::run(&options),
        Task::Setup => tools::setup::run(),
        Task::Test(options) => tools::test::run(&options),
        Task::Load(options) => tools::load::run(&options),
        Task::Swap(options) => tools::swap::run(&options),
        Task::Reconfigure(options) => tools::reconfigure::run(&options),
        Task::Bench(options) => tools::bench::run(&options),
        Task::Package(options) => tools::package::run(&options),
        Task::Crash(options) => tools::crash::run(&options),
        Task::Image(options) => tools::image::run(&options),
    }
}

/// Prints one sentence and the path of the log. `RUST_BACKTRACE=1` adds the whole text and the backtrace.
fn report(error: &anyhow::Error) {
    let text = format!("{error:#}");
    let sentence = text.lines().next().unwrap_or_default();
    eprintln!("xtask: {}", sentence.trim_end_matches([':', ';']));
    if let Some(log) = test_daemon::last_log() {
        eprintln!("xtask: the log of the appliance is {}", log.display());
    }
    if error.backtrace().status() == BacktraceStatus::Captured {
        eprintln!("\n{text}\n\n{}", error.backtrace());
    }
}
