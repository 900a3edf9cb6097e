//! The image in qemu: started, watched at its serial console, reached through forwarded ports, and cut off from its power.

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::ffi::OsStr;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use xtask::appliance::free_port;
use xtask::house;
use xtask::load::Stop;

/// How qemu runs a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Acceleration {
    /// By the processor where it can, by emulation otherwise.
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
                // Where /dev/kvm is there and the processor does not say that it can virtualise, somebody below emulates what
                // a start needs, and that is slower than qemu's own emulation.
                let open = std::fs::OpenOptions::new().read(true).write(true).open("/dev/kvm").is_ok();
                let words = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
                let able = words.split_ascii_whitespace().any(|word| matches!(word, "vmx" | "svm"));
                if open && able { "kvm" } else { "tcg" }
            }
        }
    }
}

/// What a machine starts by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Firmware {
    Bios,
    Uefi,
}

/// Longest time that a start may take: emulated, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(900);
/// Memory of the machine, in MiB.
const MEMORY: u32 = 1024;
/// The size of its disk, in octets.
pub(crate) const DISK: u64 = 4 << 30;

/// A machine that is off.
#[derive(Debug, Clone)]
pub(crate) struct Machine {
    folder: PathBuf,
    acceleration: Acceleration,
    firmware: Firmware,
    disk: PathBuf,
    /// What lies beside the disk, to be read only.
    volume: Option<PathBuf>,
    pub(crate) smpp: SocketAddr,
    pub(crate) https: SocketAddr,
    /// A port that nothing in the machine listens at.
    pub(crate) closed: SocketAddr,
    ssh: SocketAddr,
    starts: u32,
}

fn loopback() -> Result<SocketAddr> {
    Ok(SocketAddr::from(([127, 0, 0, 1], free_port()?)))
}

/// Copies files into a FAT file system within a file; `place` is how mtools name it.
fn bring(files: &[&Path], place: &OsStr, to: &str) -> Result<()> {
    house::run(Command::new("mcopy").arg("-i").arg(place).args(files).arg(to))
}

impl Machine {
    /// With a disk of 4 GiB that begins as this image. A key to come in by is put on its boot partition, as an admin does.
    pub(crate) fn new(
        image: &Path,
        folder: &Path,
        acceleration: Acceleration,
        firmware: Firmware,
    ) -> Result<Self> {
        let machine = Self::bare(folder, "disk.raw", acceleration, firmware)?;
        // Sparse, as the image is.
        house::run(Command::new("cp").arg("--sparse=always").arg(image).arg(&machine.disk))?;
        // The boot partition begins at the first mebibyte.
        let mut place = machine.disk.clone().into_os_string();
        place.push("@@1M");
        // mtools name it by its last part.
        let key = folder.join("authorized_keys");
        std::fs::copy(machine.key().with_extension("pub"), &key)?;
        bring(&[&key], &place, "::/switchyard/")?;
        machine.enlarge(DISK)?;
        Ok(machine)
    }

    /// With the image as a cloud takes it, and what it is to know on a volume as NoCloud has it: a name, a key, a fixed address,
    /// and the daemon's configuration for its first start.
    pub(crate) fn in_a_cloud(
        qcow2: &Path,
        folder: &Path,
        acceleration: Acceleration,
        firmware: Firmware,
        name: &str,
        configuration: String,
    ) -> Result<Self> {
        let mut machine = Self::bare(folder, "disk.qcow2", acceleration, firmware)?;
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
        house::run(
            Command::new("/usr/sbin/mkfs.vfat").args(["-n", "CIDATA"]).arg(&volume).stdout(Stdio::null()),
        )?;
        for (name, text) in &files {
            std::fs::write(folder.join(name), text)?;
            bring(&[&folder.join(name)], volume.as_os_str(), "::/")?;
        }
        machine.volume = Some(volume);
        Ok(machine)
    }

    fn bare(folder: &Path, disk: &str, acceleration: Acceleration, firmware: Firmware) -> Result<Self> {
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
            starts: 0,
        };
        let mut keygen = Command::new("ssh-keygen");
        house::run(keygen.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(machine.key()))?;
        println!("image: qemu runs {disk} by {}, {firmware:?}", acceleration.name());
        Ok(machine)
    }

    fn key(&self) -> PathBuf {
        self.folder.join("key")
    }

    /// Gives it a larger disk: of so many octets.
    pub(crate) fn enlarge(&self, octets: u64) -> Result<()> {
        let mut resize = Command::new("qemu-img");
        // Of a raw disk it would guess the form.
        house::run(resize.args(["resize", "-q", "-f", self.form()]).arg(&self.disk).arg(octets.to_string()))
    }

    /// The form of its disk, as qemu calls it.
    fn form(&self) -> &'static str {
        if self.disk.extension().is_some_and(|end| end == "qcow2") { "qcow2" } else { "raw" }
    }

    /// The file that is its disk.
    pub(crate) fn disk(&self) -> &Path {
        &self.disk
    }

    /// Presses the button.
    pub(crate) fn start(mut self) -> Result<Running> {
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
        // cache=none: what the machine was told is written has left this process and the host's memory, and what it has not
        // synced yet is lost with its memory. The host's own disk keeps its power.
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
        Ok(Running { machine: self, process, serial, begun: Instant::now() })
    }
}

/// A machine that is on; without power when dropped.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) machine: Machine,
    process: Child,
    serial: PathBuf,
    begun: Instant,
}

impl Running {
    /// What it has said at its console since it was switched on.
    pub(crate) fn console(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.serial).unwrap_or_default()).into_owned()
    }

    /// Waits until `found` finds something at the console.
    pub(crate) fn wait<T>(&mut self, what: &str, found: impl Fn(&str) -> Option<T>) -> Result<T> {
        let (pause, deadline) = (Stop::default(), Instant::now() + PATIENCE);
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
                    "no {what} at the console within {PATIENCE:?}; the last lines, newest first:\n{}",
                    last.join("\n")
                );
            }
            pause.pause(Duration::from_millis(100));
        }
    }

    /// Waits for the banner that tells of readiness: the version, the slot, and the time since it was switched on.
    pub(crate) fn ready(&mut self) -> Result<Banner> {
        self.ready_as("", "")
    }

    /// The same, of this version in this slot (none: any).
    pub(crate) fn ready_as(&mut self, version: &str, slot: &str) -> Result<Banner> {
        let mut banner = self.wait(&format!("readiness of {version} in slot {slot}"), |said| {
            said.lines().rev().find_map(Banner::read).filter(|banner| {
                (version.is_empty() || banner.version == version) && (slot.is_empty() || banner.slot == slot)
            })
        })?;
        banner.since_power = self.begun.elapsed();
        Ok(banner)
    }

    /// Takes the power away: SIGKILL.
    pub(crate) fn cut(mut self) -> Result<Machine> {
        self.process.kill()?;
        self.process.wait()?;
        Ok(self.machine.clone())
    }

    /// A command in the machine, by ssh: what it says.
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

    /// The same, for the caller to run.
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
        house::run(&mut scp)
    }

    /// Fetches a file from the machine.
    pub(crate) fn fetch(&self, file: &str, to: &Path) -> Result<()> {
        let mut scp = self.options("scp");
        let from = format!("root@127.0.0.1:{file}");
        house::run(scp.args(["-q", "-P", &self.machine.ssh.port().to_string()]).arg(from).arg(to))
    }

    /// Waits until it has started anew, and is ready. `before` is how often it had said so when that was asked for.
    pub(crate) fn ready_again(&mut self, before: usize) -> Result<Banner> {
        let begun = Instant::now();
        let mut banner = self.wait("readiness after a new start", |said| {
            let mut banners = said.lines().filter_map(Banner::read).skip(before);
            banners.next()
        })?;
        banner.since_power = begun.elapsed();
        Ok(banner)
    }

    /// How often it has said that it is ready, since it was switched on.
    pub(crate) fn readies(&self) -> usize {
        self.console().lines().filter_map(Banner::read).count()
    }

    /// Asks the API: anything but a status below 300 is an error.
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

    /// The same, for who asks from a thread of his own, or changes the configuration `of` this version.
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
                .timeout_global(Some(PATIENCE))
                .build();
            let answer = ureq::Agent::new_with_config(config).run(request.body(body)?);
            let mut answer = answer.with_context(|| what.clone())?;
            let text = answer.body_mut().read_to_string()?;
            ensure!(answer.status().as_u16() < 300, "{what}: {} {text}", answer.status());
            Ok(serde_json::from_str(&text).unwrap_or(Value::Null))
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Already off is as good.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// What the machine says of itself when it is ready.
#[derive(Debug, Clone)]
pub(crate) struct Banner {
    pub(crate) version: String,
    pub(crate) slot: String,
    /// Since the kernel started, as the machine has it.
    pub(crate) uptime: String,
    pub(crate) since_power: Duration,
}

impl Banner {
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
    fn the_banner_is_read_and_nothing_else_is() {
        let banner =
            Banner::read("Switchyard 1.2, slot B, host here, ready after 12.3 s\r").expect("a banner");
        assert_eq!(
            (banner.version.as_str(), banner.slot.as_str(), banner.uptime.as_str()),
            ("1.2", "B", "12.3 s")
        );
        assert!(Banner::read("Switchyard: 1.2 in slot B does not come up").is_none());
    }
}
