//! A private redis-server from Debian's package: own folder, own loopback port.

use crate::load::pools::{RedisClient, RedisReply};
use crate::program::Program;
use crate::test_daemon::free_port;
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
    /// Starts an empty server. Its only settings are its port, its folder and `settings`, for example
    /// `["--appendonly", "yes"]`.
    ///
    /// # Errors
    /// If it is not installed or does not start; the error contains the end of its log.
    pub fn start(folder: &Path, settings: &[&str]) -> Result<Self> {
        std::fs::create_dir_all(folder)?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()?));
        let mut command = Command::new("redis-server");
        command.args(["--bind", "127.0.0.1", "--port", &address.port().to_string(), "--dir"]);
        command.arg(folder.canonicalize()?).args(settings);
        let program = Program::start("redis-server", folder, &mut command, &[address])?;
        Ok(Self { program, address })
    }

    /// The listening address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        self.program.id()
    }

    /// Loads a script and returns its SHA-1.
    pub fn load(&self, script: &str) -> Result<String> {
        match RedisClient::connect(self.address)?.ask(&["SCRIPT", "LOAD", script])? {
            RedisReply::Text(sum) => Ok(sum),
            other => bail!("redis-server refuses the script: {other:?}"),
        }
    }

    /// The end of its log.
    pub fn log(&self) -> String {
        self.program.log()
    }
}
