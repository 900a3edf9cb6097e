//! Debian's `osmo-hlr`.

use super::loopback::Loopback;
use super::vty::Vty;
use crate::program::Program;
use anyhow::{Context, Result};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The GSUP port, which osmo-hlr 1.5.0 cannot change.
pub const GSUP: u16 = 4222;
const VTY: u16 = 4258;
const CTRL: u16 = 4259;

/// A home location register with its own database, which survives the process.
#[derive(Debug)]
pub struct Hlr {
    loopback: Loopback,
    folder: PathBuf,
    program: Option<Program>,
}

impl Hlr {
    /// Starts an HLR without subscribers; its files are in a new folder in `folder`.
    pub fn start(folder: &Path) -> Result<Self> {
        let loopback = Loopback::claim()?;
        let folder = folder.join("hlr");
        std::fs::create_dir_all(&folder)?;
        let address = loopback.address();
        let config = format!(
            "log stderr\n logging color 0\n logging print category 1\n logging timestamp 1\n logging level set-all notice\n\
             line vty\n bind {address}\nctrl\n bind {address}\nhlr\n gsup\n  bind ip {address}\n"
        );
        std::fs::write(folder.join("osmo-hlr.cfg"), config)?;
        let mut hlr = Self { loopback, folder, program: None };
        hlr.start_again()?;
        Ok(hlr)
    }

    /// Restarts it on its database.
    pub fn start_again(&mut self) -> Result<()> {
        let mut command = Command::new("osmo-hlr");
        command.args(["-c", "osmo-hlr.cfg", "-l", "hlr.db"]);
        // Only these two are checked, since a connection to GSUP would be a peer without a name.
        let listens = [VTY, CTRL].map(|port| self.at(port));
        self.program = None;
        self.program = Some(Program::start("osmo-hlr", &self.folder, &mut command, &listens)?);
        Ok(())
    }

    /// Sends SIGKILL and waits for the end.
    pub fn kill(&mut self) -> Result<()> {
        match self.program.take() {
            Some(mut program) => program.kill(),
            None => Ok(()),
        }
    }

    fn at(&self, port: u16) -> SocketAddr {
        SocketAddr::from((self.loopback.address(), port))
    }

    /// Address of GSUP.
    pub fn gsup(&self) -> SocketAddr {
        self.at(GSUP)
    }

    /// Address of CTRL.
    pub fn ctrl(&self) -> SocketAddr {
        self.at(CTRL)
    }

    /// Adds a subscriber.
    pub fn subscriber(&self, imsi: &str, msisdn: &str) -> Result<()> {
        let mut vty = self.vty()?;
        vty.command(&format!("subscriber imsi {imsi} create"))?;
        vty.command(&format!("subscriber imsi {imsi} update msisdn {msisdn}"))?;
        Ok(())
    }

    /// Removes a subscriber.
    pub fn remove(&self, imsi: &str) -> Result<()> {
        self.vty()?.command(&format!("subscriber imsi {imsi} delete"))?;
        Ok(())
    }

    /// Output of `show` for a subscriber.
    pub fn show(&self, imsi: &str) -> Result<String> {
        self.vty()?.command(&format!("subscriber imsi {imsi} show"))
    }

    /// Its list of GSUP connections, as text.
    pub fn connections(&self) -> Result<String> {
        self.vty()?.command("show gsup-connections")
    }

    /// Waits until it knows an MSC by name. Before that, it would not answer the MSC's location updates, and over SGs neither the
    /// phone nor osmo-msc would retry.
    pub fn wait_until_connected(&self, name: &str) -> Result<()> {
        let name = format!("'{name}'");
        super::until("an MSC's connection", || Ok(self.connections()?.contains(&name)))
            .with_context(|| self.log())
    }

    fn vty(&self) -> Result<Vty> {
        Vty::connect(self.at(VTY), "OsmoHLR")
    }

    /// The end of its log.
    pub fn log(&self) -> String {
        self.program.as_ref().map(Program::log).unwrap_or_default()
    }
}
