//! Updates: one that is cut off, one that works, and those that do not come up.

use super::{PATIENCE, Trial, Updates};
use crate::tools::image::machine::Running;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use xtask::load::Stop;

/// How far the writing of an update has come when its power is cut, in octets.
const WRITTEN: u64 = 20 << 20;
const UPDATE: &str = "/v1/appliance/update";

/// Where on the disk the slot begins that does not run at first.
fn slot_b(disk: &Path) -> Result<u64> {
    let output =
        Command::new("/usr/sbin/sfdisk").arg("--json").arg(disk).output().context("running sfdisk")?;
    let table: Value = serde_json::from_slice(&output.stdout)?;
    let partitions = table["partitiontable"]["partitions"].as_array().into_iter().flatten();
    let slot = partitions.into_iter().find(|partition| partition["name"] == "switchyard-b");
    let start = slot.and_then(|slot| slot["start"].as_u64()).context("the disk has no slot B")?;
    Ok(start * 512)
}

impl Trial {
    /// The power goes while an update is written, over the API; nothing has changed after that.
    pub(super) fn update_cut(&self, running: Running, updates: &Updates<'_>) -> Result<Running> {
        let disk = File::open(running.machine.disk())?;
        let place = slot_b(running.machine.disk())? + WRITTEN;
        let mut block = [0; 4096];
        disk.read_exact_at(&mut block, place)?;
        ensure!(block.iter().all(|octet| *octet == 0), "something is in slot B already");
        let bundle = File::open(&updates.newest)?;
        let asking = running.request("POST", UPDATE, "application/octet-stream", &self.token, None);
        let sending = std::thread::spawn(move || asking(bundle));
        let (pause, deadline) = (Stop::default(), Instant::now() + PATIENCE);
        // Seen from outside, on the disk itself: what is packed has no empty blocks.
        while block.iter().all(|octet| *octet == 0) {
            ensure!(Instant::now() < deadline, "the update does not begin");
            ensure!(
                !sending.is_finished(),
                "the update ended before the power could be cut: {:?}",
                sending.join()
            );
            pause.pause(Duration::from_millis(20));
            disk.read_exact_at(&mut block, place)?;
        }
        let (banner, running) = self.cut(running, "power cut during the update")?;
        ensure!(
            sending.join().is_ok_and(|answer| answer.is_err()),
            "the update was answered after the power cut"
        );
        ensure!(
            banner.version == updates.version && banner.slot == "A",
            "{} in slot {} came up after a half-written update",
            banner.version,
            banner.slot
        );
        Ok(running)
    }

    /// Over the API, as the console does it.
    pub(super) fn update(&self, running: &mut Running, updates: &Updates<'_>) -> Result<()> {
        let (begun, before) = (Instant::now(), running.readies());
        let bundle = File::open(&updates.newest)?;
        let asking = running.request("POST", UPDATE, "application/octet-stream", &self.token, None);
        let said = asking(bundle)?;
        let written = begun.elapsed();
        let banner = running.ready_again(before)?;
        ensure!(
            banner.version == updates.newer && banner.slot == "B",
            "{} in slot {} came up; the update said {said}",
            banner.version,
            banner.slot
        );
        self.say(&format!(
            "update: {} in slot B, written in {written:.1?}, up after {:.1?}",
            banner.version,
            begun.elapsed()
        ));
        // On trial until it is found healthy, which comes right after readiness.
        let (pause, deadline) = (Stop::default(), Instant::now() + PATIENCE);
        while self.ask(running, "GET", "/v1/appliance", &Value::Null)?["on-trial"] != false {
            ensure!(Instant::now() < deadline, "the update is not found healthy");
            pause.pause(Duration::from_millis(500));
        }
        Ok(())
    }

    /// An update that does not come up, by the command line: it is started, and left again for the slot that runs now.
    pub(super) fn goes_back(
        &self,
        running: &mut Running,
        slot: &str,
        bundle: &Path,
        what: &str,
    ) -> Result<()> {
        let other = if slot == "A" { "B" } else { "A" };
        let (begun, before, said_before) = (Instant::now(), running.readies(), running.console().len());
        running.copy(bundle, "/var/tmp/bad.raucb")?;
        let said = running.ssh("switchyard appliance update /var/tmp/bad.raucb")?;
        ensure!(said.contains(&format!("slot {other}")), "{said}");
        let banner = running.ready_again(before)?;
        ensure!(banner.slot == slot, "{} in slot {} is ready", banner.version, banner.slot);
        // A machine that only started anew in the slot where it was has not tried.
        let (console, started) = (running.console(), format!("Booting `Switchyard (slot {other})'"));
        let tried = console.get(said_before..).unwrap_or_default().matches(&started).count();
        ensure!(tried > 0, "slot {other} was never started");
        self.say(&format!(
            "{what}: started {tried} times, then back on {} in slot {slot} by itself, after {:.1?}",
            banner.version,
            begun.elapsed()
        ));
        running.ssh("rm /var/tmp/bad.raucb").map(drop)
    }
}
