//! Tests of the image and of the tarball: runs their daemons as they are packaged.

use super::oci::USER;
use anyhow::{Context, Result, ensure};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use testkit::load::StopFlag;
use testkit::test_daemon::free_port;

/// Maximum time until it answers; plugins are compiled first.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Runs the tarball's daemon with the tarball's configuration on free ports. A peer with a host name shows that names
/// are resolved without this machine's libraries.
pub(super) fn tarball(tarball: &Path) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let mut tar = Command::new("tar");
    workspace::run(
        tar.args(["--extract", "--strip-components=1", "--file"])
            .arg(tarball)
            .arg("--directory")
            .arg(folder.path()),
    )?;
    let run = Run {
        program: vec![folder.path().join("bin/switchyard").into_os_string()],
        root: PathBuf::new(),
        prefix: folder.path().display().to_string(),
        data: folder.path().join("data").display().to_string(),
    };
    let summary = run.serve(&folder.path().join("etc/switchyard"), "http")?;
    println!("package: {} runs: {summary}", tarball.display());
    Ok(())
}

/// Unpacks the image like a container engine, and runs it as the image's user with only the image's files.
pub(super) fn image(layout: &Path) -> Result<()> {
    let above = tempfile::tempdir()?;
    let bundle = above.path().join("bundle");
    let image = format!("{}:{}", layout.display(), super::version());
    workspace::run(
        workspace::root_command("umoci")
            .args(["unpack", "--image", &image])
            .arg(&bundle)
            .stdout(Stdio::null()),
    )?;
    let root = bundle.join("rootfs");
    workspace::run(workspace::root_command("mkdir").arg("--parents").arg(root.join("dev")))?;
    // The files that engines provide to every container, as far as they are needed: devices (OCI runtime specification,
    // "Default Devices"), and a name for loopback.
    let hosts = tempfile::NamedTempFile::new()?;
    std::fs::write(hosts.path(), "127.0.0.1 localhost\n")?;
    let mut install = workspace::root_command("install");
    workspace::run(install.arg("--mode=0644").arg(hosts.path()).arg(root.join("etc/hosts")))?;
    for (name, minor) in [("null", "3"), ("random", "8"), ("urandom", "9")] {
        let mut mknod = workspace::root_command("mknod");
        workspace::run(mknod.arg("--mode=0666").arg(root.join("dev").join(name)).args(["c", "1", minor]))?;
    }
    let chroot = if rustix::process::geteuid().is_root() { vec![] } else { vec!["sudo".into()] };
    let user = format!("--userspec={USER}:{USER}");
    let program = [
        chroot,
        vec!["chroot".into(), user.into(), root.clone().into_os_string(), "/usr/bin/switchyard".into()],
    ];
    let run = Run {
        program: program.concat(),
        root: root.clone(),
        prefix: String::new(),
        data: "/var/lib/switchyard".to_owned(),
    };
    let summary = run.serve(&root.join("etc/switchyard"), "https");
    workspace::run(
        workspace::root_command("rm").args(["--recursive", "--force", "--one-file-system"]).arg(&bundle),
    )?;
    println!("package: {image} runs as its user with its own files: {}", summary?);
    Ok(())
}

/// A way to run a daemon.
struct Run {
    program: Vec<std::ffi::OsString>,
    /// Root of its file system.
    root: PathBuf,
    /// Prefix of the paths in its configuration.
    prefix: String,
    data: String,
}

impl Run {
    /// Runs it until it has delivered a message; returns its version.
    fn serve(&self, etc: &Path, scheme: &str) -> Result<String> {
        let (http, smpp) = (free_port()?, free_port()?);
        let text = std::fs::read_to_string(etc.join("switchyard.toml"))?;
        let text = text
            .replace(":8080\"", &format!(":{http}\""))
            .replace(":2775\"", &format!(":{smpp}\""))
            .replace("\"/var/lib/switchyard\"", &format!("{:?}", self.data))
            .replace("/usr/lib/switchyard", &format!("{}/lib/switchyard", self.usr()));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = listener.local_addr()?.port();
        // The peer has a host name, which the daemon must resolve.
        let peer = format!(
            "\n[[peer]]\nname = \"upstream\"\naddress = \"localhost:{port}\"\nsystem-id = \"us\"\npassword = \"secret\"\n"
        );
        let config = etc.join("trial.toml");
        let written = etc.join("trial.toml.new");
        let mine = tempfile::NamedTempFile::new()?;
        std::fs::write(mine.path(), text + &peer)?;
        workspace::run(workspace::root_command("install").arg("--mode=0644").arg(mine.path()).arg(&written))?;
        workspace::run(workspace::root_command("mv").arg(&written).arg(&config))?;
        let inside = Path::new("/").join(config.strip_prefix(&self.root).unwrap_or(&config));

        let log = tempfile::NamedTempFile::new()?;
        let mut daemon = Daemon(
            self.command()
                .arg("serve")
                .arg("--config")
                .arg(&inside)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(log.reopen()?)
                .spawn()
                .context("starting the daemon")?,
        );
        let said = || std::fs::read_to_string(log.path()).unwrap_or_default();
        let (pause, deadline) = (StopFlag::default(), Instant::now() + TIMEOUT);
        while !said().contains(": ready ") {
            if let Some(status) = daemon.0.try_wait()? {
                anyhow::bail!("it ended with {status}:\n{}", said());
            }
            ensure!(Instant::now() < deadline, "it was not ready within {TIMEOUT:?}:\n{}", said());
            pause.pause(Duration::from_millis(50));
        }
        // A connection shows that the daemon has resolved the name.
        listener.set_nonblocking(true)?;
        while listener.accept().is_err() {
            ensure!(Instant::now() < deadline, "it does not find localhost:\n{}", said());
            pause.pause(Duration::from_millis(50));
        }
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, http));
        let data = Path::new(&self.data);
        let mut status = self.command();
        status
            .args(["status", "--url", &format!("{scheme}://{address}"), "--token-file"])
            .arg(data.join("token"));
        if scheme == "https" {
            status.arg("--ca").arg(data.join("tls/certificate.pem"));
        }
        let output = status.output()?;
        let words = String::from_utf8_lossy(&output.stdout).into_owned();
        ensure!(
            output.status.success(),
            "status: {words}{}\n{}",
            String::from_utf8_lossy(&output.stderr),
            said()
        );
        Ok(words.lines().next().unwrap_or_default().to_owned())
    }

    fn usr(&self) -> String {
        if self.prefix.is_empty() { "/usr".to_owned() } else { self.prefix.clone() }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program[0]);
        command.args(&self.program[1..]).env("NO_COLOR", "1").env_remove("NOTIFY_SOCKET");
        command
    }
}

/// Killed when dropped.
struct Daemon(Child);

impl Drop for Daemon {
    fn drop(&mut self) {
        // chroot becomes the daemon; sudo forwards the signal.
        if let Some(id) = rustix::process::Pid::from_raw(i32::try_from(self.0.id()).unwrap_or(0)) {
            let _ = rustix::process::kill_process(id, rustix::process::Signal::TERM);
        }
        let _ = self.0.wait();
    }
}
