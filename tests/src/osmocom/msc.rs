//! Debian's `osmo-msc`.

use anyhow::{Context, Result};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use testkit::osmocom::Loopback;
use testkit::program::Program;

const VTY: u16 = 4254;
const SGS: u16 = 29118;

/// A mobile switching centre that sends short messages to its HLR (`sms-over-gsup`).
#[derive(Debug)]
pub struct Msc {
    loopback: Loopback,
    folder: PathBuf,
    program: Option<Program>,
}

impl Msc {
    /// Starts an MSC with this IPA name and this HLR.
    pub fn start(folder: &Path, name: &str, hlr: SocketAddr) -> Result<Self> {
        Self::start_with(folder, name, hlr, "sms-over-gsup")
    }

    /// Starts an MSC with this line below `msc` in its configuration, instead of `sms-over-gsup`.
    pub fn start_with(folder: &Path, name: &str, hlr: SocketAddr, line: &str) -> Result<Self> {
        let loopback = Loopback::claim()?;
        let folder = folder.join(name);
        std::fs::create_dir_all(&folder)?;
        let address = loopback.address();
        // Unused parts must not use the same ports either: CS7 (no STP answers), the media
        // gateway, SMPP of the built-in SMSC.
        let config = format!(
            "log stderr\n logging filter all 1\n logging color 0\n logging print category 1\n logging print extended-timestamp 1\n \
             logging level set-all info\n logging level mm debug\n logging level lgsup debug\n logging level lsms debug\n \
             logging level sgs debug\n\
             line vty\n bind {address}\nctrl\n bind {address}\n\
             network\n network country code 001\n mobile network code 01\n short name test\n long name test\n encryption a5 0\n\
             cs7 instance 0\n point-code 0.23.1\n asp asp-clnt-OsmoMSC-A 2905 0 m3ua\n  local-ip {address}\n  remote-ip {address}\n\
             msc\n {line}\n mgw local-ip {address}\n mgw remote-ip {address}\n\
             sgs\n local-ip {address}\n local-port {SGS}\n\
             smpp\n local-tcp-ip {address} 2775\n\
             hlr\n remote-ip {}\n remote-port {}\n ipa-name {name}\n",
            hlr.ip(),
            hlr.port()
        );
        std::fs::write(folder.join("osmo-msc.cfg"), config)?;
        let mut msc = Self { loopback, folder, program: None };
        msc.start_again()?;
        Ok(msc)
    }

    /// Restarts it; it knows no subscriber then.
    pub fn start_again(&mut self) -> Result<()> {
        let shim = self.folder.join("sctp_over_tcp.so");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/osmocom/sctp_over_tcp.c");
        let mut compile = Command::new("cc");
        compile.args(["-Wall", "-Wextra", "-Werror", "-O1", "-shared", "-fPIC", "-o"]).arg(&shim).arg(source);
        workspace::run(&mut compile).context("compiling the SCTP over TCP library")?;
        let mut command = Command::new("osmo-msc");
        command.args(["-c", "osmo-msc.cfg"]).env("LD_PRELOAD", shim);
        self.program = None;
        let listens = [self.at(VTY)];
        self.program = Some(Program::start("osmo-msc", &self.folder, &mut command, &listens)?);
        Ok(())
    }

    /// Sends SIGKILL and waits for the end.
    pub fn kill(&mut self) -> Result<()> {
        match self.program.take() {
            Some(mut program) => program.kill(),
            None => Ok(()),
        }
    }

    /// Suspends it; its connections stay open until the other side closes them.
    pub fn pause(&self) -> Result<()> {
        self.program.as_ref().context("osmo-msc does not run")?.pause(true)
    }

    /// Resumes it.
    pub fn resume(&self) -> Result<()> {
        self.program.as_ref().context("osmo-msc does not run")?.pause(false)
    }

    fn at(&self, port: u16) -> SocketAddr {
        SocketAddr::from((self.loopback.address(), port))
    }

    /// The address for MMEs.
    pub fn sgs(&self) -> SocketAddr {
        self.at(SGS)
    }

    /// The end of its log.
    pub fn log(&self) -> String {
        self.program.as_ref().map(Program::log).unwrap_or_default()
    }

    /// Waits until its link to the HLR was established this many times, restarts included.
    pub fn wait_until_linked(&self, times: usize) -> Result<()> {
        self.wait_for_log_lines(times, |line| line.contains("GSUP link to") && line.ends_with("UP"))
    }

    /// Waits until paging has failed this many times.
    pub fn wait_for_paging_failures(&self, times: usize) -> Result<()> {
        self.wait_for_log_lines(times, |line| line.contains("Paging via SGs interface timed out"))
    }

    fn wait_for_log_lines(&self, times: usize, fits: impl Fn(&str) -> bool) -> Result<()> {
        self.program.as_ref().context("osmo-msc does not run")?.wait_for_log_lines(times, fits)
    }
}
