//! Private members of etcd from Debian's package: own folders, own loopback ports.

use crate::load::StopFlag;
use crate::program::Program;
use crate::test_daemon::free_port;
use anyhow::{Context, Result};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// TLS of the clients' side, PEM. Clients need a certificate of the same authority.
#[derive(Debug, Clone)]
pub struct EtcdTls {
    /// The certificate authority.
    pub ca: PathBuf,
    /// The certificate of the members, for 127.0.0.1.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

/// The members of an etcd; killed when dropped.
#[derive(Debug)]
pub struct EtcdServers {
    folder: PathBuf,
    tls: Option<EtcdTls>,
    members: Vec<EtcdServer>,
}

/// The namespace and address of a member.
#[derive(Debug, Clone)]
pub struct EtcdMemberAddress {
    /// Its network namespace.
    pub namespace: String,
    /// Its address there.
    pub address: IpAddr,
}

fn name(number: usize) -> String {
    format!("e{number}")
}

#[derive(Debug)]
struct EtcdServer {
    /// `None`: that of this process.
    namespace: Option<String>,
    client: SocketAddr,
    peer: SocketAddr,
    /// Whether it was added to a cluster that was there.
    is_new: bool,
    /// `None` while it is dead.
    program: Option<Program>,
}

impl EtcdServers {
    /// Starts `members` empty members.
    ///
    /// # Errors
    /// If etcd is not installed or does not start; the error contains the end of its log.
    pub fn start(folder: &Path, members: usize, tls: Option<EtcdTls>) -> Result<Self> {
        std::fs::create_dir_all(folder)?;
        let mut servers = Self { folder: folder.canonicalize()?, tls, members: Vec::new() };
        for _ in 0..members {
            let address = || Ok::<_, anyhow::Error>(SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()?)));
            servers.members.push(EtcdServer {
                namespace: None,
                client: address()?,
                peer: address()?,
                is_new: false,
                program: None,
            });
        }
        for number in 0..members {
            servers.restart(number)?;
        }
        Ok(servers)
    }

    /// Starts an empty member at each of these addresses, with the default ports. The members compare their data when they
    /// start.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_at(folder: &Path, addresses: &[EtcdMemberAddress]) -> Result<Self> {
        std::fs::create_dir_all(folder)?;
        let mut servers = Self { folder: folder.canonicalize()?, tls: None, members: Vec::new() };
        for address in addresses {
            servers.members.push(EtcdServer {
                namespace: Some(address.namespace.clone()),
                client: SocketAddr::new(address.address, 2379),
                peer: SocketAddr::new(address.address, 2380),
                is_new: false,
                program: None,
            });
        }
        // Members that compare their data wait for each other.
        let numbers = 0..addresses.len();
        for number in numbers.clone() {
            servers.launch(number)?;
        }
        for number in numbers {
            servers.wait_for(number)?;
        }
        Ok(servers)
    }

    /// Whether a member runs.
    pub fn is_running(&mut self, number: usize) -> Result<bool> {
        match self.members.get_mut(number).and_then(|member| member.program.as_mut()) {
            Some(program) => program.is_running(),
            None => Ok(false),
        }
    }

    /// The data directory of a member.
    pub fn data(&self, number: usize) -> PathBuf {
        self.folder.join(name(number)).join(format!("data{number}"))
    }

    /// Replaces a dead member by an empty one at the same place.
    ///
    /// # Errors
    /// The other members do not agree, or the new one does not start.
    pub fn replace(&mut self, number: usize) -> Result<()> {
        self.kill(number);
        let peer = format!("http://{}", self.members.get(number).context("no such member")?.peer);
        let list = self.control_until_done(&["member", "list"])?;
        let id = list.lines().find(|line| line.contains(&peer)).and_then(|line| line.split(',').next());
        if let Some(id) = id {
            self.control_until_done(&["member", "remove", id])?;
        }
        std::fs::remove_dir_all(self.data(number))?;
        self.control_until_done(&["member", "add", &name(number), &format!("--peer-urls={peer}")])?;
        if let Some(member) = self.members.get_mut(number) {
            member.is_new = true;
        }
        self.restart(number)
    }

    /// The addresses for clients.
    pub fn endpoints(&self) -> Vec<String> {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        self.members.iter().map(|member| format!("{scheme}://{}", member.client)).collect()
    }

    /// The process ids of the living members.
    pub fn process_ids(&self) -> Vec<u32> {
        self.members.iter().filter_map(|member| Some(member.program.as_ref()?.id())).collect()
    }

    /// Starts a member again, with the data that it had.
    pub fn restart(&mut self, number: usize) -> Result<()> {
        self.launch(number)?;
        self.wait_for(number)
    }

    fn wait_for(&mut self, number: usize) -> Result<()> {
        let member = self.members.get_mut(number).context("no such member")?;
        let client = member.client;
        member.program.as_mut().context("it is dead")?.wait_for(&[client])
    }

    /// Starts a member without waiting for it.
    ///
    /// # Errors
    /// If etcd is not installed.
    pub fn launch(&mut self, number: usize) -> Result<()> {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        let cluster: Vec<_> = (0..)
            .zip(&self.members)
            .map(|(number, member)| format!("{}=http://{}", name(number), member.peer))
            .collect();
        let member = self.members.get(number).context("no such member")?;
        let client = format!("{scheme}://{}", member.client);
        let peer = format!("http://{}", member.peer);
        let mut command = match &member.namespace {
            Some(namespace) => crate::namespace::command(namespace, Path::new("etcd")),
            None => Command::new("etcd"),
        };
        if member.namespace.is_some() {
            // As in the manual.
            command.args(["--experimental-initial-corrupt-check=true", "--pre-vote=true"]);
        }
        let state = if member.is_new { "existing" } else { "new" };
        command.args(["--name", &name(number), "--data-dir", &format!("data{number}"), "--logger", "zap"]);
        command.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
        command.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
        command.args(["--initial-cluster", &cluster.join(","), "--initial-cluster-state", state]);
        if let Some(tls) = &self.tls {
            command.arg("--client-cert-auth");
            command.arg("--trusted-ca-file").arg(&tls.ca);
            command.arg("--cert-file").arg(&tls.certificate).arg("--key-file").arg(&tls.key);
        }
        let folder = self.folder.join(name(number));
        std::fs::create_dir_all(&folder)?;
        let program = Program::launch("etcd", &folder, &mut command)?;
        if let Some(member) = self.members.get_mut(number) {
            member.program = Some(program);
        }
        Ok(())
    }

    /// Kills a member.
    pub fn kill(&mut self, number: usize) {
        if let Some(member) = self.members.get_mut(number) {
            member.program = None;
        }
    }

    /// Pauses a member with SIGSTOP, or resumes it.
    pub fn pause(&self, number: usize, pause: bool) -> Result<()> {
        let member = self.members.get(number).context("no such member")?;
        member.program.as_ref().context("it is dead")?.pause(pause)
    }

    /// Runs `etcdctl` until it succeeds: the members may be electing a leader.
    fn control_until_done(&self, arguments: &[&str]) -> Result<String> {
        let (pause, deadline) = (StopFlag::default(), Instant::now() + crate::osmocom::TIMEOUT);
        loop {
            match self.control(arguments) {
                Err(error) if Instant::now() >= deadline => return Err(error),
                // A request that timed out may have taken effect.
                Err(error) if error.to_string().contains("not found") => return Ok(String::new()),
                Err(_) => drop(pause.pause(Duration::from_millis(200))),
                Ok(output) => return Ok(output),
            }
        }
    }

    /// Runs `etcdctl` and returns its output.
    ///
    /// # Errors
    /// If it ends with an error.
    pub fn control(&self, arguments: &[&str]) -> Result<String> {
        let output = Command::new("etcdctl")
            .env("ETCDCTL_API", "3")
            .args(["--endpoints", &self.endpoints().join(",")])
            .args(arguments)
            .output()
            .context("etcd-client is not installed; run: cargo xtask setup")?;
        let complaint = String::from_utf8_lossy(&output.stderr);
        anyhow::ensure!(output.status.success(), "etcdctl {arguments:?}: {complaint}");
        Ok(String::from_utf8(output.stdout)?)
    }
}
