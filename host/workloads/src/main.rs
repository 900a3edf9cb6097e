//! Runs the appliance under a workload. `cargo xtask` builds this program and the daemon, and passes its arguments on.
#![allow(clippy::print_stdout, reason = "a command line tool speaks on standard output")]

mod aims;
mod archive_bench;
mod bench;
mod cluster_bench;
mod cluster_faults;
mod console_bench;
mod crash;
mod demo;
mod demo_china;
mod demo_cluster;
mod demo_gsm;
mod demo_sgip;
mod disk;
mod gsm_bench;
mod hooks_bench;
mod load;
mod pool_bench;
mod reconfigure;
mod screenshots;
mod swap;
mod tool_run;
mod traffic_phase;

use clap::{Parser, Subcommand};
use std::backtrace::BacktraceStatus;
use std::process::ExitCode;
use testkit::test_daemon;

#[derive(Parser)]
#[command(bin_name = "cargo xtask", about = "Runs the appliance under a workload", version)]
struct Arguments {
    /// Print missed aims instead of failing.
    #[arg(long, global = true)]
    no_aims: bool,
    #[command(subcommand)]
    workload: Workload,
}

#[derive(Subcommand)]
enum Workload {
    /// Run a demo: an appliance, a sample ESME and a sample peer; the router is replaced while traffic flows.
    Demo(demo::Options),
    /// Run the load generator's source against its sink, without an appliance, to measure the tools themselves.
    Load(load::Options),
    /// Replace the router under full load, and check that traffic is not affected.
    Swap(swap::Options),
    /// Change the configuration repeatedly under load, and check that nothing is lost or delayed.
    Reconfigure(reconfigure::Options),
    /// Print one table of the appliance's throughput and cost (one run).
    Bench(bench::Options),
    /// Kill the appliance repeatedly under full load, and check that nothing is lost.
    Crash(crash::Options),
    /// Cause faults in a cluster in network namespaces, and check that nothing is lost, duplicated or invented.
    Cluster(cluster_faults::Options),
    /// Make the pictures of the manual: pages of the console over a fake API, in a headless browser.
    Screenshots(screenshots::Options),
}

fn main() -> ExitCode {
    broken_pipe::end_quietly();
    let arguments = Arguments::parse();
    if arguments.no_aims {
        aims::ignore();
    }
    let outcome = match arguments.workload {
        Workload::Demo(options) if options.cluster => demo_cluster::run(&options),
        Workload::Demo(options) if options.gsm => demo_gsm::run(&options),
        Workload::Demo(options) if options.sgip => demo_sgip::run(&options),
        Workload::Demo(options) if options.china => demo_china::run(&options),
        Workload::Demo(options) => demo::run(&options),
        Workload::Load(options) => load::run(&options),
        Workload::Swap(options) => swap::run(&options),
        Workload::Reconfigure(options) => reconfigure::run(&options),
        Workload::Bench(options) => bench::run(&options),
        Workload::Crash(options) => crash::run(&options),
        Workload::Cluster(options) => cluster_faults::run(&options),
        Workload::Screenshots(options) => screenshots::run(&options),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report(&error);
            ExitCode::FAILURE
        }
    }
}

/// Prints the error in one sentence, and the path of the log. `RUST_BACKTRACE=1` adds the whole chain and the
/// backtrace.
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

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn every_workload_is_run_by_the_test_of_the_verbs() {
        let runs = include_str!("../../xtask/src/test/verbs.rs");
        let command = Arguments::command();
        let bench = command.find_subcommand("bench").unwrap();
        for name in command.get_subcommands().chain(bench.get_subcommands()).map(clap::Command::get_name) {
            assert!(runs.contains(&format!("\"{name}\"")), "cargo xtask test runs no {name}");
        }
    }
}
