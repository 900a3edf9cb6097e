//! Measures appends and, in alternation, the bare `fdatasync` that an append needs:
//! `cargo run --release -p journal --example append_latency -- FOLDER`, a folder on the disk to measure.
#![allow(clippy::print_stdout, reason = "this program prints its results")]

use journal::{Journal, JournalError, JournalOptions, LocalJournal, NodeId, Seq};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// Calls per round.
const CALLS: usize = 300;
const ROUNDS: usize = 5;

/// Octets per message in a batch (from `commit_speed` of the store).
const MESSAGE: usize = 326;

fn times(mut call: impl FnMut() -> Result<(), JournalError>) -> Result<Vec<Duration>, JournalError> {
    let mut times = Vec::with_capacity(CALLS);
    for _ in 0..CALLS {
        let start = Instant::now();
        call()?;
        times.push(start.elapsed());
    }
    Ok(times)
}

fn print(name: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let at =
        |part: usize| times.get(times.len() * part / 100).copied().unwrap_or_default().as_secs_f64() * 1e3;
    let slowest = times.last().copied().unwrap_or_default().as_secs_f64() * 1e3;
    println!(
        "{name:<36} p50 {:>7.3} ms   p90 {:>7.3} ms   p99 {:>7.3} ms   max {slowest:>7.3} ms",
        at(50),
        at(90),
        at(99)
    );
}

fn main() -> Result<(), JournalError> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| "target/append-latency".to_owned());
    let folder = Path::new(&folder).join(format!("append-latency-{}", std::process::id()));
    let failed = |source: io::Error| JournalError::Io { path: folder.clone(), what: "preparing", source };
    std::fs::create_dir_all(&folder).map_err(failed)?;
    let bare = File::options().create_new(true).write(true).open(folder.join("bare")).map_err(failed)?;
    bare.write_all_at(&vec![0; 64 * 1024 * 1024], 0).and_then(|()| bare.sync_all()).map_err(failed)?;
    let mut journal = LocalJournal::open(&folder.join("journal"), JournalOptions::default(), Seq(0))?;
    let mut writer = journal.claim(NodeId(0))?;

    let sizes = [("lonely message", 1), ("batch of 16", 16), ("batch of 64", 64), ("batch of 256", 256)];
    let mut results = vec![Vec::new(); sizes.len() * 2];
    let mut offset = 0;
    for _ in 0..ROUNDS {
        for ((_, messages), results) in sizes.iter().zip(results.chunks_exact_mut(2)) {
            let payload = vec![b'x'; messages * MESSAGE];
            let [raw, appended] = results else { continue };
            raw.extend(times(|| {
                if offset + payload.len() as u64 > 64 * 1024 * 1024 {
                    offset = 0;
                }
                bare.write_all_at(&payload, offset).and_then(|()| bare.sync_data()).map_err(failed)?;
                offset += payload.len() as u64;
                Ok(())
            })?);
            appended.extend(times(|| journal.append(&mut writer, &payload).map(|_| ()))?);
            journal.applied(writer.last())?;
        }
    }
    for ((name, messages), results) in sizes.iter().zip(results.chunks_exact(2)) {
        let octets = messages * MESSAGE;
        if let [raw, appended] = results {
            print(&format!("{name}, {octets} octets: write, sync"), raw.clone());
            print(&format!("{name}, {octets} octets: append"), appended.clone());
        }
    }
    let start = Instant::now();
    let head = journal.head();
    drop(journal);
    let opened = LocalJournal::open(&folder.join("journal"), JournalOptions::default(), head.seq)?;
    println!("opened again in {:.1} ms", start.elapsed().as_secs_f64() * 1e3);
    drop(opened);
    std::fs::remove_dir_all(&folder).map_err(failed)
}
