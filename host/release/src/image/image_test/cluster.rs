//! Three machines with the image form a cluster as the manual describes; then the leader loses its power.

use super::guide_chapter::{MARKS, PAGE};
use super::{ImageTest, TIMEOUT};
use crate::image::Options;
use crate::image::build::ImageBuild;
use crate::image::virtual_machine::{RunningVm, SharedNetwork, VirtualMachine};
use anyhow::{Context, Result, ensure};
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Command;
use std::time::Instant;
use testkit::load::StopFlag;
use testkit::manual_page::{CommandBlock, ManualPage, missing_line};

/// The manual's machines: appliances a and b, and the witness w.
const MACHINES: [(&str, Ipv4Addr); 3] = [
    ("a", Ipv4Addr::new(192, 0, 2, 1)),
    ("b", Ipv4Addr::new(192, 0, 2, 2)),
    ("w", Ipv4Addr::new(192, 0, 2, 3)),
];

/// The blocks that are run on this machine: their first line names it.
fn blocks_of<'a>(page: &'a ManualPage, machine: &str) -> Vec<&'a CommandBlock> {
    let first_line = format!("# on {machine}\n");
    let on_it = |block: &&CommandBlock| block.mark == "sh cluster" && block.script.starts_with(&first_line);
    page.blocks.iter().filter(on_it).collect()
}

/// Repeats a command of the manual on a machine until its output is as in the manual.
fn wait_for(running: &RunningVm, block: &CommandBlock) -> Result<()> {
    let (pause, deadline) = (StopFlag::default(), Instant::now() + TIMEOUT);
    loop {
        let printed = running.ssh(&block.script).unwrap_or_else(|error| format!("{error:#}"));
        let Some(line) = missing_line(&printed, &block.printed) else { return Ok(()) };
        ensure!(
            Instant::now() < deadline,
            "the manual says\n{}but the output was\n{printed}\nmissing line: {line}",
            block.script
        );
        pause.pause(std::time::Duration::from_millis(500));
    }
}

impl ImageTest {
    /// The manual's section on a cluster of appliances.
    pub(super) fn cluster(&self, built: &ImageBuild, options: &Options, folder: &Path) -> Result<()> {
        let page = ManualPage::read(PAGE, &MARKS)?;
        let files = folder.join("cluster");
        std::fs::create_dir_all(&files)?;
        // The admin's computer has the same version of the program.
        let programs = files.join("bin");
        std::fs::create_dir(&programs)?;
        std::os::unix::fs::symlink(built.daemon(), programs.join("switchyard"))?;
        for block in blocks_of(&page, "your computer") {
            let mut shell = Command::new("sh");
            shell.args(["-euc", &block.script]).current_dir(&files);
            shell.env("PATH", format!("{}:/usr/bin:/bin", programs.display()));
            workspace::run(&mut shell)?;
        }
        let network = SharedNetwork::new()?;
        let start = |(name, address): (&str, Ipv4Addr)| -> Result<RunningVm> {
            let place = files.join(format!("machine-{name}"));
            let mut machine =
                VirtualMachine::new(&built.raw(), &place, options.acceleration, options.firmware)?;
            machine.join(network, address)?;
            let provided = std::fs::read_dir(files.join(name))
                .with_context(|| format!("the manual makes no files for {name}"))?
                .map(|entry| entry.map(|entry| entry.path()))
                .collect::<Result<Vec<_>, _>>()?;
            machine.provision(&provided.iter().map(std::path::PathBuf::as_path).collect::<Vec<_>>())?;
            machine.start()
        };
        // A founds the cluster, with the witness as second member of etcd.
        let [a, b, w] = MACHINES;
        let (mut witness, mut leader) = (start(w)?, start(a)?);
        witness.ready()?;
        witness.wait("what the witness is", |said| said.contains("witness of a cluster").then_some(()))?;
        let status = witness.ssh("/usr/lib/switchyard/appliance/operate status")?;
        ensure!(
            status.contains("daemon inactive")
                && status.contains("etcd active")
                && status.contains("ready yes"),
            "the witness: {status}"
        );
        leader.ready()?;
        let mut follower = start(b)?;
        follower.ready()?;
        self.log_step("three machines are up");
        for block in blocks_of(&page, "a") {
            wait_for(&leader, block)?;
        }
        leader.power_off()?;
        for block in blocks_of(&page, "b") {
            wait_for(&follower, block)?;
        }
        self.log_step("the power of the leader was cut: the other machine leads");
        let failed = follower.ssh("systemctl list-units --failed --no-legend --plain")?;
        ensure!(failed.is_empty(), "units have failed:\n{failed}");
        Ok(())
    }
}
