//! Updates: an interrupted one, a working one, and updates that do not boot.

use super::{ImageTest, TIMEOUT, Updates};
use crate::image::virtual_machine::RunningVm;
use anyhow::{Context, Result, ensure};
use api::ImageStatusView;
use serde_json::Value;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use testkit::load::StopFlag;

/// Octets of the update that are written when the power is cut.
const WRITTEN: u64 = 20 << 20;
const UPDATE: &str = "/v1/appliance/update";

/// Offset of the inactive slot on the disk.
fn slot_b(disk: &Path) -> Result<u64> {
    let output =
        Command::new("/usr/sbin/sfdisk").arg("--json").arg(disk).output().context("running sfdisk")?;
    let table: Value = serde_json::from_slice(&output.stdout)?;
    let partitions = table["partitiontable"]["partitions"].as_array().into_iter().flatten();
    let slot = partitions.into_iter().find(|partition| partition["name"] == "switchyard-b");
    let start = slot.and_then(|slot| slot["start"].as_u64()).context("the disk has no slot B")?;
    Ok(start * 512)
}

impl ImageTest {
    /// The power is cut while an update is written; the machine is unchanged afterwards.
    pub(super) fn power_cut_during_update(
        &self,
        running: RunningVm,
        updates: &Updates<'_>,
    ) -> Result<RunningVm> {
        let disk = File::open(running.machine.disk())?;
        let offset = slot_b(running.machine.disk())? + WRITTEN;
        let mut block = [0; 4096];
        disk.read_exact_at(&mut block, offset)?;
        ensure!(block.iter().all(|octet| *octet == 0), "slot B is not empty");
        let bundle = File::open(&updates.newest)?;
        let asking = running.request("POST", UPDATE, "application/octet-stream", &self.token, None);
        let sending = std::thread::spawn(move || asking(bundle));
        let (pause, deadline) = (StopFlag::default(), Instant::now() + TIMEOUT);
        // Observed from outside, on the disk: packed data has no empty blocks.
        while block.iter().all(|octet| *octet == 0) {
            ensure!(Instant::now() < deadline, "the update does not start");
            ensure!(
                !sending.is_finished(),
                "the update ended before the power could be cut: {:?}",
                sending.join()
            );
            pause.pause(Duration::from_millis(20));
            disk.read_exact_at(&mut block, offset)?;
        }
        let (banner, running) = self.power_cut(running, "power cut during the update")?;
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

    /// Updates over the API, as the console does.
    pub(super) fn update(&self, running: &mut RunningVm, updates: &Updates<'_>) -> Result<()> {
        let (begun, before) = (Instant::now(), running.ready_count());
        let bundle = File::open(&updates.newest)?;
        let asking = running.request("POST", UPDATE, "application/octet-stream", &self.token, None);
        let said = asking(bundle)?;
        let written = begun.elapsed();
        let banner = running.wait_ready_again(before)?;
        ensure!(
            banner.version == updates.newer && banner.slot == "B",
            "{} in slot {} came up; the update said {said}",
            banner.version,
            banner.slot
        );
        self.log_step(&format!(
            "update: {} in slot B, written in {written:.1?}, up after {:.1?}",
            banner.version,
            begun.elapsed()
        ));
        // The update is on trial until the system is found healthy, shortly after it is ready.
        let (pause, deadline) = (StopFlag::default(), Instant::now() + TIMEOUT);
        while self.read::<ImageStatusView>(running, "/v1/appliance")?.on_trial {
            ensure!(Instant::now() < deadline, "the update does not become healthy");
            pause.pause(Duration::from_millis(500));
        }
        Ok(())
    }

    /// Installs an update that does not become healthy, over the command line: the machine boots it, and then the
    /// current slot again.
    pub(super) fn rolls_back(
        &self,
        running: &mut RunningVm,
        slot: &str,
        bundle: &Path,
        what: &str,
    ) -> Result<()> {
        let other = if slot == "A" { "B" } else { "A" };
        let (begun, before, said_before) = (Instant::now(), running.ready_count(), running.console().len());
        running.copy(bundle, "/var/tmp/bad.raucb")?;
        let said = running.ssh("switchyard appliance update /var/tmp/bad.raucb")?;
        ensure!(said.contains(&format!("slot {other}")), "{said}");
        let banner = running.wait_ready_again(before)?;
        ensure!(banner.slot == slot, "{} in slot {} is ready", banner.version, banner.slot);
        // A machine that only rebooted in its slot has not tried the update.
        let (console, started) = (running.console(), format!("Booting `Switchyard (slot {other})'"));
        let tried = console.get(said_before..).unwrap_or_default().matches(&started).count();
        ensure!(tried > 0, "slot {other} was never started");
        self.log_step(&format!(
            "{what}: booted {tried} times, then rolled back to {} in slot {slot} after {:.1?}",
            banner.version,
            begun.elapsed()
        ));
        running.ssh("rm /var/tmp/bad.raucb").map(drop)
    }
}
