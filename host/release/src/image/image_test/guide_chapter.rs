//! The manual's page about the appliance image: its commands, run in the machine, print the documented output.

use super::{ImageTest, Updates, token};
use crate::image::Options;
use crate::image::build::ImageBuild;
use crate::image::virtual_machine::{DISK, Firmware, RunningVm, VirtualMachine};
use anyhow::{Context, Result, bail, ensure};
use api::{CurrentConfiguration, HistoryPageView};
use std::path::Path;
use testkit::manual_page::{CommandBlock, ManualPage, missing_line};

pub(super) const PAGE: &str = "docs/guide/appliance-image.md";
pub(super) const MARKS: [&str; 6] =
    ["sh", "sh build", "sh certificates", "sh cluster", "sh elsewhere", "sh machine"];
/// Path of the update file in the page's commands.
const UPDATE: &str = "/var/tmp/switchyard.raucb";
const BACKUP: &str = "/var/tmp/backup.tar";
/// The host name of the machine into which a backup is restored.
const OTHER: &str = "cloud-1";
/// The default configuration of a first start.
const FIRST: &str = "appliance-image/image/tree/usr/lib/switchyard/first/switchyard.toml";

/// Commands after which the machine reboots.
fn restarts(script: &str) -> bool {
    let starts = ["appliance update", "appliance rollback", "appliance factory-reset"];
    starts.iter().any(|word| script.contains(word)) && !script.contains("--no-reboot")
}

/// Runs a block, and waits for a reboot that it causes.
fn follow(running: &mut RunningVm, block: &CommandBlock) -> Result<()> {
    let before = running.ready_count();
    let printed = running.ssh(&format!("set -eu\n{}", block.script));
    let printed = printed.with_context(|| format!("the manual says\n{}", block.script))?;
    if let Some(line) = missing_line(&printed, &block.printed) {
        bail!("the manual says\n{}but the output was\n{printed}\nmissing line: {line}", block.script);
    }
    if restarts(&block.script) {
        running.wait_ready_again(before)?;
    }
    Ok(())
}

impl ImageTest {
    /// Whether the archive contains finished messages.
    fn has_history(&self, running: &RunningVm) -> Result<bool> {
        let page: HistoryPageView = self.read(running, "/v1/history?limit=1")?;
        Ok(!page.messages.is_empty())
    }

    fn has_account(&self, running: &RunningVm) -> Result<bool> {
        let CurrentConfiguration { document, .. } = self.read(running, "/v1/configuration")?;
        Ok(document["account"].as_array().is_some_and(|accounts| !accounts.is_empty()))
    }

    /// Runs the page from beginning to end.
    pub(super) fn chapter(
        &mut self,
        mut running: RunningVm,
        built: &ImageBuild,
        options: &Options,
        folder: &Path,
        updates: &Updates<'_>,
    ) -> Result<()> {
        let page = ManualPage::read(PAGE, &MARKS)?;
        let blocks: Vec<&CommandBlock> =
            page.blocks.iter().filter(|block| block.mark == "sh machine").collect();
        ensure!(blocks.len() >= 7, "the page has only {} blocks", blocks.len());
        running.copy(&updates.newest, UPDATE)?;
        ensure!(self.has_history(&running)? && self.has_account(&running)?, "there is no state to keep");
        for block in blocks {
            let (script, command) = (&block.script, block.script.lines().last().unwrap_or_default());
            if script.contains("switchyard restore") {
                self.restore_backup(&running, block, built, options, folder)?;
            } else {
                follow(&mut running, block)?;
            }
            if script.contains("factory-reset") {
                self.token = token(&mut running, &self.token)?;
                let stays = script.contains("--keep-state");
                ensure!(!self.has_account(&running)?, "an account is still there after {command}");
                ensure!(self.has_history(&running)? == stays, "unexpected history after {command}");
            }
            self.log_step(&format!("the manual: {command}"));
        }
        Ok(())
    }

    /// Restores the backup into a fresh machine with the other firmware and the other image format.
    fn restore_backup(
        &self,
        from: &RunningVm,
        block: &CommandBlock,
        built: &ImageBuild,
        options: &Options,
        folder: &Path,
    ) -> Result<()> {
        let backup = folder.join("backup.tar");
        from.fetch(BACKUP, &backup)?;
        let firmware = if options.firmware == Firmware::Bios { Firmware::Uefi } else { Firmware::Bios };
        let vm_folder = folder.join("second");
        let first = std::fs::read_to_string(workspace::root().join(FIRST))?;
        let user_data = first.replace("name = \"SWITCHYARD\"", &format!("name = \"{OTHER}\""));
        ensure!(user_data != first, "the default configuration has no name to replace");
        let machine = VirtualMachine::with_cloud_init(
            &built.qcow2(),
            &vm_folder,
            options.acceleration,
            firmware,
            OTHER,
            user_data,
        )?;
        let mut fresh = machine.start()?;
        let banner = fresh.ready()?;
        self.log_step(&format!(
            "a second machine with {firmware:?}: ready {:.1?} after power-on",
            banner.since_power
        ));
        let name = fresh.ssh("hostname")?;
        ensure!(name == OTHER, "NoCloud sets the host name {OTHER}, but it is {name}");
        let addresses = fresh.ssh("ip -o -4 addr show scope global")?;
        ensure!(
            addresses.contains("10.0.2.15") && !addresses.contains("dynamic"),
            "not the fixed address: {addresses}"
        );
        let configured = fresh.ssh("switchyard config export")?;
        ensure!(
            configured.contains(&format!("name = \"{OTHER}\"")),
            "the volume's configuration is not used: {configured}"
        );
        fresh.copy(&backup, BACKUP)?;
        follow(&mut fresh, block)?;
        let (pause, deadline) =
            (testkit::load::StopFlag::default(), std::time::Instant::now() + super::TIMEOUT);
        while fresh.ssh("/usr/lib/switchyard/appliance/ready && echo yes || true")? != "yes" {
            ensure!(std::time::Instant::now() < deadline, "it is not ready after the restore");
            pause.pause(std::time::Duration::from_millis(500));
        }
        self.check_state(&fresh, "restored into a fresh machine")?;
        self.grow_disk(fresh)
    }

    /// Enlarges the disk; the data partition grows and keeps its contents.
    fn grow_disk(&self, running: RunningVm) -> Result<()> {
        const MORE: u64 = 1 << 30;
        let size = "df --output=size --block-size=1 /data | tail -n 1";
        let octets = |running: &RunningVm| -> Result<u64> { Ok(running.ssh(size)?.trim().parse()?) };
        let before = octets(&running)?;
        let machine = running.power_off()?;
        machine.enlarge(DISK + MORE)?;
        let mut running = machine.start()?;
        running.ready()?;
        let after = octets(&running)?;
        // The file system uses some of it for itself.
        ensure!(after > before + MORE / 10 * 9, "data had {before} octets, and has {after} on a larger disk");
        self.check_state(
            &running,
            &format!("on a larger disk, with {after} octets for data, {before} before"),
        )
    }
}
