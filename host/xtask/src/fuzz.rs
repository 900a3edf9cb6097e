//! `cargo xtask fuzz`: libFuzzer on the targets of `tests/fuzz`, without cargo-fuzz and with the ordinary compiler.

use anyhow::{Context, Result, ensure};
use std::path::PathBuf;
use std::process::Command;
use workspace::packages::{self, Prerequisite};

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Name of the target; `all` runs all, one after the other.
    pub(crate) target: String,
    /// Seconds per target.
    #[arg(long, default_value_t = 60)]
    pub(crate) seconds: u32,
}

/// A target, the folder of its seeds, and the maximum length of an input in octets.
type FuzzTarget = (&'static str, &'static str, u32);

const TARGETS: &[FuzzTarget] = &[
    ("smpp_decoder", "seeds", 2048),
    ("smpp_session", "", 4096),
    ("sgip_decoder", "seeds-sgip", 2048),
    ("sgip_session", "", 4096),
    ("sp_decoder", "seeds-sp", 2048),
    ("sp_session", "", 4096),
    ("gsup", "seeds-gsup", 2048),
    ("business_request", "seeds-business", 4096),
    ("policy_document", "seeds-policy", 4096),
    ("store_record", "seeds-store", 2048),
    ("journal", "seeds-journal", 4096),
    ("batch", "seeds-batch", 4096),
    ("archive_decision", "seeds-archive", 2048),
    ("table_upload", "seeds-table", 4096),
    ("fetch_grant", "seeds-grant", 512),
    ("dns_response", "", 1024),
    ("oci_artifact", "seeds-oci", 2048),
    ("resp", "", 4096),
    ("ring", "", 4096),
    ("nats", "", 4096),
    ("amqp", "", 4096),
    ("tpdu", "seeds-tpdu", 2048),
];

const PREREQUISITES: &[Prerequisite] = &[Prerequisite {
    package: "g++",
    reason: "compiles libFuzzer",
    is_installed: || packages::runs("c++", "--version"),
}];

/// The flags that cargo-fuzz passes to the compiler, without the sanitizers, which require a nightly compiler.
const FLAGS: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
                     -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
                     -Cllvm-args=-sanitizer-coverage-trace-compares -Cdebug-assertions -Coverflow-checks --cfg fuzzing";

/// This machine's target. If cargo is given a target, [`FLAGS`] do not apply to build scripts and procedural macros.
const HOST: &str =
    if cfg!(target_arch = "aarch64") { "aarch64-unknown-linux-gnu" } else { "x86_64-unknown-linux-gnu" };

pub(crate) fn run(options: &Options) -> Result<()> {
    let chosen: Vec<_> =
        TARGETS.iter().filter(|(name, ..)| options.target == "all" || options.target == *name).collect();
    let names = || TARGETS.iter().map(|(name, ..)| *name).collect::<Vec<_>>().join(", ");
    ensure!(!chosen.is_empty(), "there is no fuzz target {:?}; there are: all, {}", options.target, names());
    packages::install_missing(PREREQUISITES)?;
    let folder = workspace::root().join("tests/fuzz");
    let target = workspace::target().join("fuzz");
    let mut build = workspace::cargo();
    build.current_dir(&folder).args(["build", "--release", "--target", HOST]);
    for (name, ..) in &chosen {
        build.args(["--bin", name]);
    }
    build.env("RUSTFLAGS", FLAGS).env("CARGO_TARGET_DIR", &target);
    workspace::timed("building the fuzz targets", || workspace::run(&mut build))?;
    // In memory, if the machine has such a file system: a target that writes files with fsync would be slow.
    let memory = PathBuf::from("/dev/shm");
    for (name, seeds, length) in chosen {
        let corpus = target.join("corpus").join(name);
        let artifacts = target.join("artifacts").join(name);
        for folder in [&corpus, &artifacts] {
            std::fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
        }
        let mut fuzz = Command::new(target.join(HOST).join("release").join(name));
        fuzz.current_dir(&folder).arg(&corpus);
        if !seeds.is_empty() {
            fuzz.arg(folder.join(seeds));
        }
        fuzz.arg(format!("-max_total_time={}", options.seconds)).arg(format!("-max_len={length}"));
        fuzz.arg(format!("-artifact_prefix={}/", artifacts.display())).arg("-print_final_stats=1");
        fuzz.args(["-verbosity=0", "-timeout=30"]);
        if memory.is_dir() {
            fuzz.env("TMPDIR", &memory);
        }
        workspace::timed(&format!("fuzz: {name}, {} s", options.seconds), || workspace::run(&mut fuzz))
            .with_context(|| format!("the input is in {}", artifacts.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_targets_of_the_folder_are_listed_and_have_their_seeds() {
        let folder = workspace::root().join("tests/fuzz");
        let mut found: Vec<_> = std::fs::read_dir(folder.join("fuzz_targets"))
            .unwrap()
            .map(|file| file.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
            .collect();
        found.sort();
        let mut listed: Vec<_> = TARGETS.iter().map(|(name, ..)| (*name).to_owned()).collect();
        listed.sort();
        assert_eq!(found, listed);
        for (name, seeds, _) in TARGETS {
            assert!(folder.join(seeds).is_dir(), "{name}: no {seeds}");
        }
    }
}
