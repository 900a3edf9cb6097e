//! The image in qemu: started, observed at its serial console, reached through forwarded ports, and powered off.

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::ffi::OsStr;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use testkit::load::StopFlag;
use testkit::test_daemon::free_port;

/// Acceleration of qemu.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Acceleration {
    /// By the processor where possible, otherwise by emulation.
    Auto,
    Kvm,
    Tcg,
}

impl Acceleration {
    fn name(self) -> &'static str {
        match self {
            Self::Kvm => "kvm",
            Self::Tcg => "tcg",
            Self::Auto => {
                // If /dev/kvm exists but the processor does not announce virtualisation, a hypervisor below emulates it for the boot,
                // and that is slower than qemu's own emulation.
                let open = std::fs::OpenOptions::new().read(true).write(true).open("/dev/kvm").is_ok();
                let words = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
                let able = words.split_ascii_whitespace().any(|word| matches!(word, "vmx" | "svm"));
                if open && able { "kvm" } else { "tcg" }
            }
        }
    }
}

/// The machine's firmware.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Firmware {
    Bios,
    Uefi,
}

/// Maximum time for a boot: emulated, on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(900);
/// Memory of the machine, in MiB.
const MEMORY: u32 = 1024;
/// Size of its disk, in octets.
pub(crate) const DISK: u64 = 4 << 30;

/// A machine that is off.
#[derive(Debug, Clone)]
pub(crate) struct VirtualMachine {
    folder: PathBuf,
    acceleration: Acceleration,
    firmware: Firmware,
    disk: PathBuf,
    /// An additional read-only volume.
    volume: Option<PathBuf>,
    pub(crate) smpp: SocketAddr,
    pub(crate) https: SocketAddr,
    /// A forwarded port on which nothing in the machine listens.
    pub(crate) closed: SocketAddr,
    ssh: SocketAddr,
    /// The last octet of its MAC address on a network that the machines of a test share.
    shared_network: Option<(SharedNetwork, u8)>,
    starts: u32,
}

/// A network between machines of one test: its UDP port on this host.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SharedNetwork(u16);

impl SharedNetwork {
    pub(crate) fn new() -> Result<Self> {
        Ok(Self(free_port()?))
    }
}

/// The MAC address of a machine on a shared network.
fn mac_address(last: u8) -> String {
    format!("52:54:00:77:33:{last:02x}")
}

fn loopback() -> Result<SocketAddr> {
    Ok(SocketAddr::from(([127, 0, 0, 1], free_port()?)))
}

/// Copies files into a FAT file system within a file; `target` is its mtools name.
fn copy_to_fat(files: &[&Path], target: &OsStr, to: &str) -> Result<()> {
    workspace::run(Command::new("mcopy").arg("-i").arg(target).args(files).arg(to))
}

impl VirtualMachine {
    /// Makes a machine with a 4 GiB disk that begins with this image, and puts an SSH key on the boot partition, as an admin does.
    pub(crate) fn new(
        image: &Path,
        folder: &Path,
        acceleration: Acceleration,
        firmware: Firmware,
    ) -> Result<Self> {
        let machine = Self::without_image(folder, "disk.raw", acceleration, firmware)?;
        // Sparse, like the image.
        workspace::run(Command::new("cp").arg("--sparse=always").arg(image).arg(&machine.disk))?;
        // mtools name it by its last part.
        let key = folder.join("authorized_keys");
        std::fs::copy(machine.key().with_extension("pub"), &key)?;
        machine.provision(&[&key])?;
        machine.enlarge(DISK)?;
        Ok(machine)
    }

    /// Copies files to the boot partition, as an admin does.
    pub(crate) fn provision(&self, files: &[&Path]) -> Result<()> {
        // The boot partition begins at the first mebibyte.
        let mut target = self.disk.clone().into_os_string();
        target.push("@@1M");
        copy_to_fat(files, &target, "::/switchyard/")
    }

    /// Gives it a second network card on this network, with this address.
    pub(crate) fn join(&mut self, network: SharedNetwork, address: Ipv4Addr) -> Result<()> {
        let last = address.octets()[3];
        self.shared_network = Some((network, last));
        let file = self.folder.join("50-shared.network");
        let mac = mac_address(last);
        std::fs::write(&file, format!("[Match]\nMACAddress={mac}\n[Network]\nAddress={address}/24\n"))?;
        self.provision(&[&file])
    }

    /// Makes a machine with the cloud image and a NoCloud volume that contains a host name, an SSH key, a fixed address and the
    /// daemon's configuration for its first start.
    pub(crate) fn with_cloud_init(
        qcow2: &Path,
        folder: &Path,
        acceleration: Acceleration,
        firmware: Firmware,
        name: &str,
        configuration: String,
    ) -> Result<Self> {
        let mut machine = Self::without_image(folder, "disk.qcow2", acceleration, firmware)?;
        std::fs::copy(qcow2, &machine.disk)?;
        machine.enlarge(DISK)?;
        let key = std::fs::read_to_string(machine.key().with_extension("pub"))?;
        let files = [
            ("meta-data", format!("instance-id: one\nlocal-hostname: {name}\n")),
            ("user-data", format!("#cloud-config\nssh_authorized_keys:\n  - {key}")),
            (
                "60-fixed.network",
                "[Match]\nName=en* eth*\n[Network]\nAddress=10.0.2.15/24\nGateway=10.0.2.2\n".to_owned(),
            ),
            ("switchyard.toml", configuration),
        ];
        let volume = folder.join("cidata.img");
        std::fs::File::create(&volume)?.set_len(1 << 20)?;
        workspace::run(
            Command::new("/usr/sbin/mkfs.vfat").args(["-n", "CIDATA"]).arg(&volume).stdout(Stdio::null()),
        )?;
        for (name, text) in &files {
            std::fs::write(folder.join(name), text)?;
            copy_to_fat(&[&folder.join(name)], volume.as_os_str(), "::/")?;
        }
        machine.volume = Some(volume);
        Ok(machine)
    }

    fn without_image(
        folder: &Path,
        disk: &str,
        acceleration: Acceleration,
        firmware: Firmware,
    ) -> Result<Self> {
        std::fs::create_dir_all(folder)?;
        let machine = Self {
            folder: folder.to_owned(),
            acceleration,
            firmware,
            disk: folder.join(disk),
            volume: None,
            smpp: loopback()?,
            https: loopback()?,
            closed: loopback()?,
            ssh: loopback()?,
            shared_network: None,
            starts: 0,
        };
        let mut keygen = Command::new("ssh-keygen");
        workspace::run(keygen.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(machine.key()))?;
        println!("image: qemu runs {disk} by {}, {firmware:?}", acceleration.name());
        Ok(machine)
    }

    fn key(&self) -> PathBuf {
        self.folder.join("key")
    }

    /// Enlarges the disk to this many octets.
    pub(crate) fn enlarge(&self, octets: u64) -> Result<()> {
        let mut resize = Command::new("qemu-img");
        // qemu would guess the format of a raw disk.
        workspace::run(
            resize.args(["resize", "-q", "-f", self.form()]).arg(&self.disk).arg(octets.to_string()),
        )
    }

    /// qemu's name of the disk format.
    fn form(&self) -> &'static str {
        if self.disk.extension().is_some_and(|end| end == "qcow2") { "qcow2" } else { "raw" }
    }

    /// The disk file.
    pub(crate) fn disk(&self) -> &Path {
        &self.disk
    }

    /// Powers the machine on.
    pub(crate) fn start(mut self) -> Result<RunningVm> {
        self.starts += 1;
        let serial = self.folder.join(format!("serial-{}.log", self.starts));
        let forward = |from: SocketAddr, to: u16| format!("hostfwd=tcp:{from}-:{to}");
        let network = [
            "user,model=virtio-net-pci".to_owned(),
            forward(self.smpp, 2775),
            forward(self.https, 8443),
            forward(self.closed, 9999),
            forward(self.ssh, 22),
        ];
        // cache=none: data that the machine has synced has left this process and the host's memory; other data is lost
        // with the machine's memory. The power of the host's own disk is not cut.
        let disk =
            format!("file={},format={},if=virtio,cache=none,discard=unmap", self.disk.display(), self.form());
        let mut qemu = Command::new("qemu-system-x86_64");
        qemu.args(["-machine", &format!("q35,accel={}", self.acceleration.name())]);
        qemu.args([
            "-cpu",
            "max",
            "-smp",
            "2",
            "-m",
            &MEMORY.to_string(),
            "-display",
            "none",
            "-no-user-config",
        ]);
        qemu.args(["-drive", &disk, "-nic", &network.join(","), "-device", "i6300esb"]);
        if let Some((SharedNetwork(port), last)) = self.shared_network {
            qemu.args(["-netdev", &format!("socket,id=shared,mcast=239.77.33.1:{port},localaddr=127.0.0.1")]);
            qemu.args(["-device", &format!("virtio-net-pci,netdev=shared,mac={}", mac_address(last))]);
        }
        qemu.arg("-serial").arg(format!("file:{}", serial.display()));
        if let Some(volume) = &self.volume {
            let volume = volume.display();
            qemu.args(["-drive", &format!("file={volume},format=raw,if=virtio,readonly=on")]);
        }
        if self.firmware == Firmware::Uefi {
            qemu.args(["-drive", "if=pflash,format=raw,readonly=on,file=/usr/share/OVMF/OVMF_CODE_4M.fd"]);
        }
        let complaints = std::fs::File::create(self.folder.join("qemu.log"))?;
        let process = qemu.stdin(Stdio::null()).stdout(Stdio::null()).stderr(complaints).spawn();
        let process = process.context("starting qemu-system-x86_64")?;
        Ok(RunningVm { machine: self, process, serial, begun: Instant::now() })
    }
}

/// A running machine; powered off when dropped.
#[derive(Debug)]
pub(crate) struct RunningVm {
    pub(crate) machine: VirtualMachine,
    process: Child,
    serial: PathBuf,
    begun: Instant,
}

impl RunningVm {
    /// The console output since power-on.
    pub(crate) fn console(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.serial).unwrap_or_default()).into_owned()
    }

    /// Waits until `found` finds something in the console output.
    pub(crate) fn wait<T>(&mut self, what: &str, found: impl Fn(&str) -> Option<T>) -> Result<T> {
        let (pause, deadline) = (StopFlag::default(), Instant::now() + TIMEOUT);
        loop {
            let said = self.console();
            if let Some(found) = found(&said) {
                return Ok(found);
            }
            if let Some(status) = self.process.try_wait()? {
                let log = std::fs::read_to_string(self.machine.folder.join("qemu.log")).unwrap_or_default();
                bail!("qemu ended with {status}: {log}");
            }
            if Instant::now() > deadline {
                let last: Vec<_> = said.lines().rev().take(30).collect();
                bail!(
                    "no {what} on the console within {TIMEOUT:?}; last lines, newest first:\n{}",
                    last.join("\n")
                );
            }
            pause.pause(Duration::from_millis(100));
        }
    }

    /// Waits for the ready banner: version, slot, and time since power-on.
    pub(crate) fn ready(&mut self) -> Result<ReadyBanner> {
        self.ready_as("", "")
    }

    /// Waits for the ready banner of this version in this slot (empty: any).
    pub(crate) fn ready_as(&mut self, version: &str, slot: &str) -> Result<ReadyBanner> {
        let mut banner = self.wait(&format!("readiness of {version} in slot {slot}"), |said| {
            said.lines().rev().find_map(ReadyBanner::read).filter(|banner| {
                (version.is_empty() || banner.version == version) && (slot.is_empty() || banner.slot == slot)
            })
        })?;
        banner.since_power = self.begun.elapsed();
        Ok(banner)
    }

    /// Cuts the power: SIGKILL.
    pub(crate) fn power_off(mut self) -> Result<VirtualMachine> {
        self.process.kill()?;
        self.process.wait()?;
        Ok(self.machine.clone())
    }

    /// Runs a command in the machine by ssh; returns its output.
    pub(crate) fn ssh(&self, command: &str) -> Result<String> {
        let output = self.ssh_command(command).output()?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        ensure!(
            output.status.success(),
            "{command:?} in the machine ended with {}: {said}{}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(said.trim().to_owned())
    }

    fn options(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.arg("-i").arg(self.machine.key());
        for option in [
            "UserKnownHostsFile=/dev/null",
            "StrictHostKeyChecking=no",
            "LogLevel=ERROR",
            "ConnectTimeout=60",
            "BatchMode=yes",
        ] {
            command.args(["-o", option]);
        }
        command.stdin(Stdio::null());
        command
    }

    /// The ssh command, for the caller to run.
    pub(crate) fn ssh_command(&self, command: &str) -> Command {
        let mut ssh = self.options("ssh");
        ssh.args(["-p", &self.machine.ssh.port().to_string(), "root@127.0.0.1", command]);
        ssh
    }

    /// Copies a file into the machine.
    pub(crate) fn copy(&self, file: &Path, to: &str) -> Result<()> {
        let mut scp = self.options("scp");
        scp.args(["-q", "-P", &self.machine.ssh.port().to_string()])
            .arg(file)
            .arg(format!("root@127.0.0.1:{to}"));
        workspace::run(&mut scp)
    }

    /// Fetches a file from the machine.
    pub(crate) fn fetch(&self, file: &str, to: &Path) -> Result<()> {
        let mut scp = self.options("scp");
        let from = format!("root@127.0.0.1:{file}");
        workspace::run(scp.args(["-q", "-P", &self.machine.ssh.port().to_string()]).arg(from).arg(to))
    }

    /// Waits until it has rebooted and is ready. `before` is the ready count at the time of the request.
    pub(crate) fn wait_ready_again(&mut self, before: usize) -> Result<ReadyBanner> {
        let begun = Instant::now();
        let mut banner = self.wait("readiness after a reboot", |said| {
            let mut banners = said.lines().filter_map(ReadyBanner::read).skip(before);
            banners.next()
        })?;
        banner.since_power = begun.elapsed();
        Ok(banner)
    }

    /// Number of ready banners since power-on.
    pub(crate) fn ready_count(&self) -> usize {
        self.console().lines().filter_map(ReadyBanner::read).count()
    }

    /// Sends an API request; a status of 300 or above is an error.
    pub(crate) fn ask(
        &self,
        method: &str,
        path: &str,
        kind: &str,
        token: &str,
        body: impl ureq::AsSendBody,
    ) -> Result<Value> {
        self.request(method, path, kind, token, None)(body)
    }

    /// Sends an API request, for callers on other threads, or with the configuration version `of` that the request changes.
    pub(crate) fn request<B: ureq::AsSendBody>(
        &self,
        method: &str,
        path: &str,
        kind: &str,
        token: &str,
        of: Option<u64>,
    ) -> impl FnOnce(B) -> Result<Value> + Send + use<B> {
        let mut request = ureq::http::Request::builder()
            .method(method)
            .uri(format!("https://{}{path}", self.machine.https))
            .header("authorization", format!("Bearer {token}"))
            .header("content-type", kind);
        if let Some(version) = of {
            request = request.header("if-match", format!("\"{version}\""));
        }
        let what = format!("{method} {path}");
        move |body| {
            let tls = ureq::tls::TlsConfig::builder().disable_verification(true).build();
            let config = ureq::Agent::config_builder()
                .http_status_as_error(false)
                .tls_config(tls)
                .timeout_global(Some(TIMEOUT))
                .build();
            let answer = ureq::Agent::new_with_config(config).run(request.body(body)?);
            let mut answer = answer.with_context(|| what.clone())?;
            let text = answer.body_mut().read_to_string()?;
            ensure!(answer.status().as_u16() < 300, "{what}: {} {text}", answer.status());
            Ok(serde_json::from_str(&text).unwrap_or(Value::Null))
        }
    }
}

impl Drop for RunningVm {
    fn drop(&mut self) {
        // It may be off already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The ready banner of the machine.
#[derive(Debug, Clone)]
pub(crate) struct ReadyBanner {
    pub(crate) version: String,
    pub(crate) slot: String,
    /// Time since the kernel started, by the machine's clock.
    pub(crate) uptime: String,
    pub(crate) since_power: Duration,
}

impl ReadyBanner {
    /// "Switchyard 0.1.0, slot A, host switchyard, ready after 12.3 s"
    fn read(line: &str) -> Option<Self> {
        let (version, rest) = line.trim().strip_prefix("Switchyard ")?.split_once(", slot ")?;
        let (slot, rest) = rest.split_once(',')?;
        let uptime = rest.split_once("ready after ")?.1;
        Some(Self {
            version: version.to_owned(),
            slot: slot.to_owned(),
            uptime: uptime.to_owned(),
            since_power: Duration::ZERO,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_banner_is_parsed() {
        let banner =
            ReadyBanner::read("Switchyard 1.2, slot B, host here, ready after 12.3 s\r").expect("a banner");
        assert_eq!(
            (banner.version.as_str(), banner.slot.as_str(), banner.uptime.as_str()),
            ("1.2", "B", "12.3 s")
        );
        assert!(ReadyBanner::read("Switchyard: 1.2 in slot B does not come up").is_none());
    }
}
