//! Latency of the disk: the lower bound of a durable answer.

use anyhow::{Context, Result};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};
use testkit::load::Histogram;

/// Octets per write.
const BLOCK: usize = 4096;
const TIME: Duration = Duration::from_secs(2);

/// Prints the latency of a write with its fdatasync, over old octets and at the end of a file.
pub(crate) fn measure(folder: &Path) -> Result<()> {
    println!("  the disk: a write of {BLOCK} octets and its fdatasync, µs");
    println!("                                           p50      p99  longest   a second");
    for (name, append) in [("over what is there", false), ("at the end of a file", true)] {
        let path = folder.join("disk");
        let file = File::create(&path).with_context(|| format!("making {}", path.display()))?;
        let block = [0xa5; BLOCK];
        file.write_all_at(&block, 0)?;
        file.sync_all()?;
        let (mut times, mut count) = (Histogram::default(), 0);
        let begun = Instant::now();
        while begun.elapsed() < TIME {
            let before = Instant::now();
            count += 1;
            file.write_all_at(&block, if append { count * BLOCK as u64 } else { 0 })?;
            file.sync_data()?;
            times.record(before.elapsed().as_micros() as u64);
        }
        println!(
            "  {name:<32}{:>12}{:>9}{:>9}{:>11.0}",
            times.quantile(0.5).as_micros(),
            times.quantile(0.99).as_micros(),
            times.max().as_micros(),
            count as f64 / begun.elapsed().as_secs_f64()
        );
    }
    Ok(())
}

/// Median latency of an overwrite with fdatasync: the lower bound of a commit. It depends on the load of the machine: a
/// sleeping processor notices the end of a write late.
pub(crate) fn sync_latency(folder: &Path) -> Result<Duration> {
    let path = folder.join("disk");
    let file = File::create(&path).with_context(|| format!("making {}", path.display()))?;
    let block = [0xa5; BLOCK];
    file.write_all_at(&block, 0)?;
    file.sync_all()?;
    let mut times = Histogram::default();
    for _ in 0..100 {
        let before = Instant::now();
        file.write_all_at(&block, 0)?;
        file.sync_data()?;
        times.record(before.elapsed().as_micros() as u64);
    }
    std::fs::remove_file(&path)?;
    Ok(times.quantile(0.5))
}
