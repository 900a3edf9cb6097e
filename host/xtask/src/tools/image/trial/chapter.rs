//! The chapter of the admin's guide on the appliance: its commands, run in the machine, print what it says.

use super::{Trial, Updates, token};
use crate::tools::image::Options;
use crate::tools::image::build::Built;
use crate::tools::image::machine::{DISK, Firmware, Machine, Running};
use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::path::Path;
use xtask::house;
use xtask::page::{Block, Page, missing};

const GUIDE: &str = "host/switchyard/GUIDE.md";
const MARKS: [&str; 4] = ["sh", "sh build", "sh elsewhere", "sh machine"];
/// Where the chapter's commands find and leave files.
const UPDATE: &str = "/var/tmp/switchyard.raucb";
const BACKUP: &str = "/var/tmp/backup.tar";
/// The name of the machine that a backup is restored into.
const OTHER: &str = "cloud-1";
/// What a machine is told at its first start, when nobody tells it anything else.
const FIRST: &str = "appliance-image/image/tree/usr/lib/switchyard/first/switchyard.toml";

/// Commands after which the machine starts anew.
fn restarts(script: &str) -> bool {
    let starts = ["appliance update", "appliance rollback", "appliance factory-reset"];
    starts.iter().any(|word| script.contains(word)) && !script.contains("--no-reboot")
}

/// Runs a block, and waits for what it starts.
fn follow(running: &mut Running, block: &Block) -> Result<()> {
    let before = running.readies();
    let printed = running.ssh(&format!("set -eu\n{}", block.script));
    let printed = printed.with_context(|| format!("the guide says\n{}", block.script))?;
    if let Some(line) = missing(&printed, &block.printed) {
        bail!(
            "the guide says\n{}and this came of it:\n{printed}\nwhere should have been: {line}",
            block.script
        );
    }
    if restarts(&block.script) {
        running.ready_again(before)?;
    }
    Ok(())
}

impl Trial {
    /// What has ended, as the archive has it.
    fn has_history(&self, running: &Running) -> Result<bool> {
        let page = self.ask(running, "GET", "/v1/history?limit=1", &Value::Null)?;
        Ok(page["messages"].as_array().is_some_and(|messages| !messages.is_empty()))
    }

    fn has_account(&self, running: &Running) -> Result<bool> {
        let now = self.ask(running, "GET", "/v1/configuration", &Value::Null)?;
        Ok(now["document"]["account"].as_array().is_some_and(|accounts| !accounts.is_empty()))
    }

    /// Runs the chapter from its beginning to its end.
    pub(super) fn chapter(
        &mut self,
        mut running: Running,
        built: &Built,
        options: &Options,
        folder: &Path,
        updates: &Updates<'_>,
    ) -> Result<()> {
        let guide = Page::read(GUIDE, &MARKS)?;
        let blocks: Vec<&Block> = guide.blocks.iter().filter(|block| block.mark == "sh machine").collect();
        ensure!(blocks.len() >= 7, "the guide's chapter is shorter than it was: {} blocks", blocks.len());
        running.copy(&updates.newest, UPDATE)?;
        ensure!(self.has_history(&running)? && self.has_account(&running)?, "there is nothing to be kept");
        for block in blocks {
            let (script, command) = (&block.script, block.script.lines().last().unwrap_or_default());
            if script.contains("switchyard restore") {
                self.restored(&running, block, built, options, folder)?;
            } else {
                follow(&mut running, block)?;
            }
            if script.contains("factory-reset") {
                self.token = token(&mut running, &self.token)?;
                let stays = script.contains("--keep-state");
                ensure!(!self.has_account(&running)?, "an account is still there after {command}");
                ensure!(self.has_history(&running)? == stays, "what has ended, after {command}");
            }
            self.say(&format!("the guide: {command}"));
        }
        Ok(())
    }

    /// Into a machine that was never used, started by the other firmware, in the other form of the image.
    fn restored(
        &self,
        from: &Running,
        block: &Block,
        built: &Built,
        options: &Options,
        folder: &Path,
    ) -> Result<()> {
        let backup = folder.join("backup.tar");
        from.fetch(BACKUP, &backup)?;
        let firmware = if options.firmware == Firmware::Bios { Firmware::Uefi } else { Firmware::Bios };
        let place = folder.join("second");
        let first = std::fs::read_to_string(house::root().join(FIRST))?;
        let told = first.replace("name = \"SWITCHYARD\"", &format!("name = \"{OTHER}\""));
        ensure!(told != first, "the configuration of the first start has no name to be another");
        let machine =
            Machine::in_a_cloud(&built.qcow2(), &place, options.acceleration, firmware, OTHER, told)?;
        let mut fresh = machine.start()?;
        let banner = fresh.ready()?;
        self.say(&format!("a second machine, by {firmware:?}: ready {:.1?} after power", banner.since_power));
        let name = fresh.ssh("hostname")?;
        ensure!(name == OTHER, "NoCloud said that its name is {OTHER}, and it calls itself {name}");
        let addresses = fresh.ssh("ip -o -4 addr show scope global")?;
        ensure!(
            addresses.contains("10.0.2.15") && !addresses.contains("dynamic"),
            "not the fixed address: {addresses}"
        );
        let configured = fresh.ssh("switchyard config export")?;
        ensure!(
            configured.contains(&format!("name = \"{OTHER}\"")),
            "not configured as the volume says: {configured}"
        );
        fresh.copy(&backup, BACKUP)?;
        follow(&mut fresh, block)?;
        let (pause, deadline) = (xtask::load::Stop::default(), std::time::Instant::now() + super::PATIENCE);
        while fresh.ssh("/usr/lib/switchyard/appliance/ready && echo yes || true")? != "yes" {
            ensure!(std::time::Instant::now() < deadline, "it is not ready with what was restored");
            pause.pause(std::time::Duration::from_millis(500));
        }
        self.state_is_there(&fresh, "restored into a fresh machine")?;
        self.larger(fresh)
    }

    /// Data takes what a larger disk has, with what was there.
    fn larger(&self, running: Running) -> Result<()> {
        const MORE: u64 = 1 << 30;
        let size = "df --output=size --block-size=1 /data | tail -n 1";
        let octets = |running: &Running| -> Result<u64> { Ok(running.ssh(size)?.trim().parse()?) };
        let before = octets(&running)?;
        let machine = running.cut()?;
        machine.enlarge(DISK + MORE)?;
        let mut running = machine.start()?;
        running.ready()?;
        let after = octets(&running)?;
        // The file system keeps some of it for itself.
        ensure!(after > before + MORE / 10 * 9, "data had {before} octets, and has {after} on a larger disk");
        self.state_is_there(
            &running,
            &format!("on a larger disk, with {after} octets for data, {before} before"),
        )
    }
}
