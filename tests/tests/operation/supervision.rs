//! Notifications to the service manager: for the daemon, systemd is a datagram socket.

use anyhow::{Context, Result, bail, ensure};
use behaviour_tests::load::Probe;
use behaviour_tests::test_daemon::{PASSWORD, TestDaemonConfig, free_port};
use behaviour_tests::{Fixture, TIMEOUT};
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

const WATCHDOG: Duration = Duration::from_secs(2);

/// The service manager's end.
struct Manager(UnixDatagram);

impl Manager {
    /// Opens the socket and sets its path in the daemon's environment.
    fn of(fixture: &Fixture, config: &mut TestDaemonConfig) -> Result<Self> {
        let path = fixture.folder().join("notify");
        let socket = UnixDatagram::bind(&path)?;
        config
            .environment("NOTIFY_SOCKET", path)
            .environment("RUNTIME_DIRECTORY", fixture.folder())
            .environment("WATCHDOG_USEC", WATCHDOG.as_micros().to_string());
        Ok(Self(socket))
    }

    /// The next message, one line per element; `None` if none arrives in this time.
    fn receive(&self, time: Duration) -> Result<Option<Vec<String>>> {
        let mut octets = [0; 4096];
        self.0.set_read_timeout(Some(time.max(Duration::from_millis(1))))?;
        match self.0.recv(&mut octets) {
            Ok(length) => {
                let text = std::str::from_utf8(&octets[..length])?;
                Ok(Some(text.lines().map(str::to_owned).collect()))
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Waits for a message with this line; returns it with the earlier ones.
    fn wait_for(&self, word: &str) -> Result<Vec<Vec<String>>> {
        let deadline = Instant::now() + TIMEOUT;
        let mut heard = Vec::new();
        while let Some(message) = self.receive(deadline.saturating_duration_since(Instant::now()))? {
            let is_it = message.iter().any(|said| said == word);
            heard.push(message);
            if is_it {
                return Ok(heard);
            }
        }
        bail!("{word} was not notified; received: {heard:?}")
    }
}

/// All messages wait for the peer `upstream`, which does not listen.
fn config(fixture: &Fixture) -> Result<TestDaemonConfig> {
    let nobody = SocketAddr::from(([127, 0, 0, 1], free_port()?));
    let mut config = TestDaemonConfig::new(fixture.binary(), &fixture.folder().join("appliance"))?;
    config.account("acme", "").peer("upstream", nobody, "dlrs = false").native("upstream");
    Ok(config)
}

fn was_notified(messages: &[Vec<String>], what: &str) -> bool {
    messages.iter().flatten().any(|word| word.starts_with(what))
}

#[test]
fn each_step_is_notified() -> Result<()> {
    let fixture = Fixture::new()?;
    let mut config = config(&fixture)?;
    let manager = Manager::of(&fixture, &mut config)?;
    let appliance = config.launch()?;
    let before = manager.wait_for("READY=1")?;
    assert!(was_notified(&before, "STATUS=starting"), "{before:?}");
    // The notification is true.
    assert_eq!(appliance.request("GET", "/v1/ready", &[])?.0, 200);
    let url = std::fs::read_to_string(fixture.folder().join("url"))?;
    assert_eq!(url, format!("http://{}\n", appliance.config().http()));
    let mut esme = Probe::bind(appliance.smpp(), "acme", PASSWORD, "861", false)?;
    esme.submit(1)?.map_err(|status| anyhow::anyhow!("refused with {status:#x}"))?;

    // Monitoring polls it.
    let status = Command::new(fixture.binary())
        .arg("status")
        .env_remove("SWITCHYARD_URL")
        .env("SWITCHYARD_URL_FILE", fixture.folder().join("url"))
        .env("SWITCHYARD_TOKEN_FILE", appliance.config().data().join("token"))
        .output()?;
    assert!(status.status.success(), "{}", String::from_utf8_lossy(&status.stderr));

    // Repeatedly, and with the status.
    for _ in 0..4 {
        manager.wait_for("WATCHDOG=1")?;
    }
    manager.wait_for("STATUS=ready; 1 message waits")?;

    appliance.hang_up()?;
    let reload = manager.wait_for("RELOADING=1")?;
    let last = reload.last().context("no notification")?;
    assert!(last.iter().any(|word| word.starts_with("MONOTONIC_USEC=")), "{last:?}");
    manager.wait_for("READY=1")?;

    let (status, _) = appliance.stop()?;
    assert!(status.success(), "{status}");
    let farewell = manager.wait_for("STOPPING=1")?;
    assert!(was_notified(&farewell, "EXTEND_TIMEOUT_USEC="), "{farewell:?}");
    while let Some(message) = manager.receive(Duration::ZERO)? {
        ensure!(!message.contains(&"READY=1".to_owned()), "ready after it has stopped: {message:?}");
    }
    Ok(())
}

#[test]
fn a_daemon_with_a_hanging_disk_sends_no_watchdog_notifications() -> Result<()> {
    let fixture = Fixture::new()?;
    let (shim, hangs) = (fixture.folder().join("hanging_disk.so"), fixture.folder().join("hangs"));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/disk/hanging_disk.c");
    let mut compile = Command::new("cc");
    compile.args(["-Wall", "-Wextra", "-Werror", "-O1", "-shared", "-fPIC", "-o"]).arg(&shim).arg(source);
    workspace::run(&mut compile).context("compiling the disk that hangs")?;
    let mut config = config(&fixture)?;
    config.environment("LD_PRELOAD", shim).environment("HANGING_DISK", &hangs);
    let manager = Manager::of(&fixture, &mut config)?;
    let appliance = config.start()?;
    manager.wait_for("WATCHDOG=1")?;

    // A submission that cannot be written: neither it nor any later request is answered.
    std::fs::write(&hangs, "")?;
    let address = appliance.smpp();
    let esme = std::thread::spawn(move || -> Result<_> {
        let mut esme = Probe::bind(address, "acme", PASSWORD, "861", false)?;
        esme.submit(1)
    });
    manager.wait_for("STATUS=stuck: a commit is stalled")?;
    let deadline = Instant::now() + WATCHDOG * 2;
    while let Some(message) = manager.receive(deadline.saturating_duration_since(Instant::now()))? {
        ensure!(!message.contains(&"WATCHDOG=1".to_owned()), "called alive while nothing is written");
        if Instant::now() >= deadline {
            break;
        }
    }

    std::fs::remove_file(&hangs)?;
    manager.wait_for("WATCHDOG=1")?;
    let answer = esme.join().map_err(|_| anyhow::anyhow!("the ESME panicked"))??;
    assert!(answer.is_ok(), "{answer:?}");
    Ok(())
}
