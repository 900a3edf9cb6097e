//! Three machines in network namespaces: two appliances and three members of etcd, behind a load balancer.

use anyhow::{Context as _, Result, ensure};
use api::ClusterView;
use model::Random;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use testkit::etcd::{EtcdMemberAddress, EtcdServers};
use testkit::load::StopFlag;
use testkit::namespace::ip;
use testkit::program::Program;
use testkit::test_daemon::{TestDaemon, TestDaemonConfig};

/// Environment variable of the process that runs inside the namespaces.
const INSIDE: &str = "SWITCHYARD_CLUSTER_LAB";
/// Address of this process in the machines' network.
pub(super) const HOST_ADDRESS: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 77, 0, 1));
/// The machines. The first two run an appliance; all three run a member of etcd.
pub(super) const MACHINES: [&str; 3] = ["a", "b", "w"];
/// Ports, the same on each machine.
pub(super) const SMPP: u16 = 2775;
pub(super) const REDIS: u16 = 6379;
const HTTP: u16 = 8080;
/// Size of each appliance's disk.
const DISK: u64 = 1 << 30;
/// Maximum time until a cluster works again after a fault has ended.
pub(super) const RECOVERY: Duration = Duration::from_secs(180);

/// The address of a machine.
pub(super) fn address(machine: usize) -> IpAddr {
    IpAddr::from([10, 77, 0, 11 + machine as u8])
}

/// Creates namespaces for this process by starting it again inside them. Returns in the new process.
///
/// # Errors
/// The system does not permit it.
pub(super) fn enter() -> Result<()> {
    if std::env::var_os(INSIDE).is_some() {
        return Ok(());
    }
    let unshare = || {
        let mut command = Command::new("unshare");
        command.args(["--net", "--mount"]);
        if !rustix::process::geteuid().is_root() {
            command.args(["--user", "--map-root-user"]);
        }
        command
    };
    let tried = unshare().arg("true").output().context("running unshare, of the package util-linux")?;
    ensure!(
        tried.status.success(),
        "this machine has no network namespaces for us, so the cluster cannot be tried here: {}",
        String::from_utf8_lossy(&tried.stderr).trim()
    );
    let mut command = unshare();
    command.arg(std::env::current_exe()?).args(std::env::args_os().skip(1)).env(INSIDE, "1");
    Err(command.exec()).context("starting again in namespaces")
}

fn run(program: &str, words: &[&str]) -> Result<()> {
    let output = Command::new(program).args(words).output().with_context(|| format!("running {program}"))?;
    ensure!(
        output.status.success(),
        "{program} {words:?}: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(())
}

/// An appliance, running or dead.
struct Appliance {
    config: TestDaemonConfig,
    running: Option<TestDaemon>,
    clock: PathBuf,
    /// Number of consecutive ends soon after a start.
    failures: u32,
}

/// The machines.
pub(super) struct Lab {
    pub(super) servers: EtcdServers,
    appliances: Vec<Appliance>,
    _balancer: Program,
    folder: PathBuf,
    /// Number of repairs by kind.
    pub(super) repairs: BTreeMap<&'static str, u64>,
}

impl Lab {
    /// Starts all machines. `configure` completes the configuration of an appliance.
    pub(super) fn start(
        folder: &Path,
        configs: Vec<TestDaemonConfig>,
        configure: impl Fn(&mut TestDaemonConfig) -> Result<()>,
    ) -> Result<Self> {
        run("mount", &["-t", "tmpfs", "tmpfs", "/run"])?;
        std::fs::create_dir_all("/run/netns")?;
        for words in ["link set lo up", "link add bridge type bridge", "link set bridge up"] {
            ip(None, words)?;
        }
        ip(None, &format!("address add {HOST_ADDRESS}/24 dev bridge"))?;
        let mut addresses = Vec::new();
        for (number, machine) in MACHINES.into_iter().enumerate() {
            ip(None, &format!("netns add {machine}"))?;
            ip(None, &format!("link add to-{machine} type veth peer name eth0 netns {machine}"))?;
            ip(None, &format!("link set to-{machine} master bridge up"))?;
            ip(Some(machine), "link set lo up")?;
            ip(Some(machine), &format!("address add {}/24 dev eth0", address(number)))?;
            ip(Some(machine), "link set eth0 up")?;
            addresses.push(EtcdMemberAddress { namespace: machine.to_owned(), address: address(number) });
        }
        let servers = EtcdServers::start_at(&folder.join("etcd"), &addresses)?;
        let library = workspace::packages::faketime_library().context("libfaketime is not installed")?;
        let mut appliances = Vec::new();
        for (number, mut config) in configs.into_iter().enumerate() {
            let machine = MACHINES.get(number).context("too many appliances")?;
            let data = config.data();
            std::fs::create_dir_all(&data)?;
            let (size, at) = (format!("size={DISK}"), data.display().to_string());
            run("mount", &["-t", "tmpfs", "-o", &size, "tmpfs", &at])?;
            let clock = folder.join(format!("clock-{machine}"));
            std::fs::write(&clock, "+0")?;
            config.in_namespace(machine, address(number)).ports(SMPP, HTTP);
            config.environment("LD_PRELOAD", library.as_os_str());
            config.environment("FAKETIME_TIMESTAMP_FILE", clock.as_os_str());
            config.environment("FAKETIME_NO_CACHE", "1");
            config.environment("FAKETIME_DONT_FAKE_MONOTONIC", "1").environment("DONT_FAKE_MONOTONIC", "1");
            // The nearest member comes first.
            let mut endpoints = servers.endpoints();
            endpoints.rotate_left(number);
            config.cluster_at(machine, &endpoints, "own-sections = [\"listener\", \"redis\"]");
            configure(&mut config)?;
            appliances.push(Appliance { config, running: None, clock, failures: 0 });
        }
        let balancer = balancer(folder)?;
        let repairs = BTreeMap::new();
        let mut lab = Self { servers, appliances, _balancer: balancer, folder: folder.to_owned(), repairs };
        lab.supervise()?;
        Ok(lab)
    }

    /// The address to which ESMEs connect: the load balancer.
    pub(super) fn smpp() -> SocketAddr {
        SocketAddr::new(HOST_ADDRESS, SMPP)
    }

    /// The address to which pool clients connect: the load balancer.
    pub(super) fn redis() -> SocketAddr {
        SocketAddr::new(HOST_ADDRESS, REDIS)
    }

    /// Index of the appliance that leads, as far as an appliance reports it.
    pub(super) fn leader(&self) -> Option<usize> {
        (0..self.appliances.len()).find(|number| {
            self.daemon(*number).is_some_and(|daemon| {
                daemon.request("GET", "/v1/ready", &[]).is_ok_and(|(code, _)| code == 200)
            })
        })
    }

    pub(super) fn daemon(&self, appliance: usize) -> Option<&TestDaemon> {
        self.appliances.get(appliance)?.running.as_ref()
    }

    fn process(&self, appliance: usize) -> Result<Option<Pid>> {
        let Some(daemon) = self.daemon(appliance) else { return Ok(None) };
        Ok(Pid::from_raw(i32::try_from(daemon.id())?))
    }

    /// Acts as the service manager: restarts ended processes. If the start of an appliance or a member of etcd fails
    /// repeatedly, its disk is taken for lost, and it begins with an empty one.
    pub(super) fn supervise(&mut self) -> Result<()> {
        for appliance in &mut self.appliances {
            if let Some(daemon) = &mut appliance.running {
                let Some(status) = daemon.ended()? else { continue };
                // It was fenced, or it handed the lead over: that is no failure.
                let is_expected = status.success() || status.code() == Some(5);
                appliance.failures = if is_expected { 0 } else { appliance.failures + 1 };
                appliance.running = None;
                *self.repairs.entry("appliances restarted").or_default() += 1;
            }
            if appliance.failures >= 3 {
                appliance.failures = 0;
                clear(&appliance.config.data())?;
                *self.repairs.entry("appliances begun anew with an empty disk").or_default() += 1;
            }
            appliance.running = Some(appliance.config.launch()?);
        }
        for member in 0..MACHINES.len() {
            if self.servers.is_running(member)? {
                continue;
            }
            if self.servers.restart(member).is_err() {
                self.servers.replace(member)?;
                *self.repairs.entry("members of etcd replaced by empty ones").or_default() += 1;
            } else {
                *self.repairs.entry("members of etcd restarted").or_default() += 1;
            }
        }
        Ok(())
    }

    /// Supervises until one appliance leads, and the other follows and has all records.
    pub(super) fn wait_until_healthy(&mut self) -> Result<()> {
        let (begun, pause) = (Instant::now(), StopFlag::default());
        loop {
            self.supervise()?;
            let leader = self.leader().and_then(|leader| self.daemon(leader));
            let view = leader.and_then(|leader| leader.read::<ClusterView>("/v1/cluster").ok());
            let is_whole = view.as_ref().is_some_and(|view| {
                let good = view.nodes.iter().filter(|node| node.alive && node.lacks.is_none());
                good.count() == 2 && !view.degraded && view.etcd.iter().all(|member| member.problem.is_none())
            });
            if is_whole {
                for appliance in &mut self.appliances {
                    appliance.failures = 0;
                }
                return Ok(());
            }
            ensure!(begun.elapsed() < RECOVERY, "the cluster has not recovered: {view:#?}");
            pause.pause(Duration::from_millis(200));
        }
    }

    pub(super) fn kill(&mut self, appliance: usize) -> Result<()> {
        if let Some(one) = self.appliances.get_mut(appliance)
            && let Some(daemon) = one.running.take()
        {
            daemon.kill()?;
        }
        Ok(())
    }

    /// Starts an appliance after it was killed.
    pub(super) fn launch(&mut self, appliance: usize) -> Result<()> {
        let one = self.appliances.get_mut(appliance).context("no such appliance")?;
        one.running = Some(one.config.launch()?);
        Ok(())
    }

    pub(super) fn signal(&self, appliance: usize, signal: Signal) -> Result<()> {
        match self.process(appliance)? {
            Some(process) => Ok(kill_process(process, signal)?),
            None => Ok(()),
        }
    }

    /// Disconnects a machine from all others, or connects it again.
    pub(super) fn cut(machine: usize, cut: bool) -> Result<()> {
        let state = if cut { "down" } else { "up" };
        ip(None, &format!("link set to-{} {state}", MACHINES[machine]))
    }

    /// Drops all packets from one machine to another, or stops dropping them.
    pub(super) fn drop_packets(from: usize, to: usize, drop: bool) -> Result<()> {
        let what = if drop { "add" } else { "del" };
        ip(Some(MACHINES[from]), &format!("route {what} blackhole {}/32", address(to)))
    }

    /// Shifts the wall clock of an appliance by a difference, for example `-3600`.
    pub(super) fn set_clock(&self, appliance: usize, difference: &str) -> Result<()> {
        let one = self.appliances.get(appliance).context("no such appliance")?;
        Ok(std::fs::write(&one.clock, difference)?)
    }

    /// Fills the disk of an appliance, completely or except for `left` octets.
    pub(super) fn fill_disk(&self, appliance: usize, left: Option<u64>) -> Result<()> {
        let one = self.appliances.get(appliance).context("no such appliance")?;
        let path = one.config.data().join("filler");
        let Some(left) = left else {
            return match std::fs::remove_file(path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
                _ => Ok(()),
            };
        };
        let free = rustix::fs::statvfs(one.config.data())?;
        let free = free.f_bavail * free.f_frsize;
        let file = std::fs::File::create(path)?;
        let octets = free.saturating_sub(left);
        // Other threads may write in the meantime and make this fail: then the disk is full.
        let _ = rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, octets.max(1));
        Ok(())
    }

    /// Flips one octet in the tables of a dead appliance.
    pub(super) fn damage_tables(&self, appliance: usize, random: &mut Random) -> Result<()> {
        let one = self.appliances.get(appliance).context("no such appliance")?;
        flip(&one.config.data().join("switchyard.redb"), random)
    }

    /// Empties the disk of a dead appliance.
    pub(super) fn lose_disk(&self, appliance: usize) -> Result<()> {
        clear(&self.appliances.get(appliance).context("no such appliance")?.config.data())
    }

    /// Flips one octet in the data of a dead member of etcd.
    pub(super) fn damage_member(&self, member: usize, random: &mut Random) -> Result<()> {
        flip(&self.servers.data(member).join("member/snap/db"), random)
    }

    /// Stops both appliances in order, the follower first.
    pub(super) fn stop(mut self) -> Result<()> {
        let leader = self.leader();
        let mut order: Vec<usize> = (0..self.appliances.len()).collect();
        order.sort_by_key(|number| Some(*number) == leader);
        for number in order {
            let daemon = self.appliances.get_mut(number).and_then(|one| one.running.take());
            let (status, _) = daemon.context("an appliance is dead at the end")?.stop()?;
            ensure!(status.success(), "an appliance ended with {status}");
        }
        Ok(())
    }

    /// The nodes that have led in each term, from their logs.
    pub(super) fn terms(&self) -> Result<BTreeMap<u64, Vec<String>>> {
        let mut terms: BTreeMap<u64, Vec<String>> = BTreeMap::new();
        for machine in MACHINES.iter().take(self.appliances.len()) {
            let log = std::fs::read_to_string(self.folder.join(machine).join("switchyard.log"))?;
            for line in log.lines().filter(|line| line.contains(": leading ")) {
                let term = line.split("term=").nth(1).and_then(|rest| rest.split(' ').next());
                let term: u64 = term.and_then(|term| term.parse().ok()).with_context(|| line.to_owned())?;
                terms.entry(term).or_default().push((*machine).to_owned());
            }
        }
        Ok(terms)
    }
}

/// Empties a folder that is a mount point.
fn clear(folder: &Path) -> Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() { std::fs::remove_dir_all(path)? } else { std::fs::remove_file(path)? }
    }
    Ok(())
}

fn flip(path: &Path, random: &mut Random) -> Result<()> {
    use std::os::unix::fs::FileExt as _;
    let file = std::fs::File::options().read(true).write(true).open(path)?;
    let at = random.between(0, file.metadata()?.len());
    let mut octet = [0];
    file.read_exact_at(&mut octet, at)?;
    octet[0] ^= 1 << random.between(0, 8);
    Ok(file.write_all_at(&octet, at)?)
}

/// HAProxy in front of the appliances, configured as in the manual.
fn balancer(folder: &Path) -> Result<Program> {
    let mut text = "defaults\n    mode tcp\n    retries 2\n    option redispatch 1\n    timeout connect 2s\n    timeout client 10m\n    timeout server 10m\n    timeout check 1s\n"
        .to_owned();
    for (name, port) in [("smpp", SMPP), ("redis", REDIS)] {
        text.push_str(&format!(
            "frontend {name}\n    bind {HOST_ADDRESS}:{port}\n    default_backend {name}\nbackend {name}\n    option httpchk GET /v1/ready\n    \
             default-server inter 300ms fall 2 rise 1 on-marked-down shutdown-sessions\n"
        ));
        for (number, machine) in MACHINES.iter().enumerate().take(2) {
            text.push_str(&format!("    server {machine} {}:{port} check port {HTTP}\n", address(number)));
        }
    }
    let folder = folder.join("haproxy");
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join("haproxy.cfg"), text)?;
    let listens = [SocketAddr::new(HOST_ADDRESS, SMPP), SocketAddr::new(HOST_ADDRESS, REDIS)];
    let mut command = Command::new("/usr/sbin/haproxy");
    Program::start("haproxy", &folder, command.args(["-db", "-f", "haproxy.cfg"]), &listens)
}
