//! Debian's redis-server, private to one measurement: its own folder, its own port of loopback.

use crate::appliance::free_port;
use crate::load::pools::{Answer, Client};
use crate::program::Program;
use anyhow::{Result, bail};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Command;

/// A Redis server; killed when dropped.
#[derive(Debug)]
pub struct Redis {
    program: Program,
    address: SocketAddr,
}

impl Redis {
    /// An empty one, running, with no configuration but its port, its folder and these settings, such as
    /// `["--appendonly", "yes"]`.
    ///
    /// # Errors
    /// If it is not installed, or does not start; the end of its log is in the error.
    pub fn start(folder: &Path, settings: &[&str]) -> Result<Self> {
        std::fs::create_dir_all(folder)?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()?));
        let mut command = Command::new("redis-server");
        command.args(["--bind", "127.0.0.1", "--port", &address.port().to_string(), "--dir"]);
        command.arg(folder.canonicalize()?).args(settings);
        let program = Program::start("redis-server", folder, &mut command, &[address])?;
        Ok(Self { program, address })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.program.id()
    }

    /// Loads a script, and gives its sum.
    pub fn load(&self, script: &str) -> Result<String> {
        match Client::connect(self.address)?.ask(&["SCRIPT", "LOAD", script])? {
            Answer::Text(sum) => Ok(sum),
            other => bail!("redis-server does not take the script: {other:?}"),
        }
    }

    /// The last of what it said.
    pub fn log(&self) -> String {
        self.program.log()
    }
}
