//! The house's own tools: `cargo xtask demo`, `test`, `bench`, `crash`, `swap`, `plugins`, `package`.
#![allow(clippy::print_stdout, reason = "a command line tool speaks on standard output")]

mod plugins;
mod tools;

use clap::{Parser, Subcommand};
use std::backtrace::BacktraceStatus;
use std::process::ExitCode;
use xtask::{appliance, house};

#[derive(Parser)]
#[command(about = "Switchyard's own tools", version)]
struct Arguments {
    /// Print an aim that a measurement misses, and go on.
    #[arg(long, global = true)]
    no_aims: bool,
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// See it work: an appliance, a sample ESME, a sample peer, and the router exchanged while traffic flows.
    Demo(tools::demo::Options),
    /// Build the plugins into target/plugins.
    Plugins {
        /// The worked examples of all languages too; what builds them is installed where it is missing.
        #[arg(long)]
        examples: bool,
    },
    /// Install what the behaviour tests need beside Rust; does nothing when it is there.
    Setup,
    /// Everything that must hold: formatting, lints, all tests, those against real peers and every verb included.
    Test(tools::test::Options),
    /// Run the load generator's source against its sink, without an appliance: what the measuring tools can do.
    Load(tools::load::Options),
    /// Exchange the router under full load, and check that nobody notices.
    Swap(tools::swap::Options),
    /// Change the configuration under load, again and again, and check that nothing is lost or delayed.
    Reconfigure(tools::reconfigure::Options),
    /// Print one table of what the appliance does and what it costs (release build, one run).
    Bench(tools::bench::Options),
    /// Make what is handed out, in target/package: a Debian package, an OCI image layout, a tarball, bills of materials, checksums.
    Package(tools::package::Options),
    /// Kill the appliance under full load, again and again, and check that nothing is lost.
    Crash(tools::crash::Options),
    /// Build the appliance image: a disk that starts, serves and updates itself; with --test, prove it.
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

/// One sentence and the place of the log. `RUST_BACKTRACE=1` adds the whole text and the backtrace.
fn report(error: &anyhow::Error) {
    let text = format!("{error:#}");
    let sentence = text.lines().next().unwrap_or_default();
    eprintln!("xtask: {}", sentence.trim_end_matches([':', ';']));
    if let Some(log) = appliance::last_log() {
        eprintln!("xtask: the log of the appliance is {}", log.display());
    }
    if error.backtrace().status() == BacktraceStatus::Captured {
        eprintln!("\n{text}\n\n{}", error.backtrace());
    }
}
