//! What a service manager is told: systemd's, as far as the daemon is concerned, is a datagram socket.

use anyhow::{Context, Result, bail, ensure};
use behaviour_tests::appliance::{Blueprint, PASSWORD, free_port};
use behaviour_tests::load::Probe;
use behaviour_tests::{PATIENCE, Stage};
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use xtask::house;

const WATCHDOG: Duration = Duration::from_secs(2);

/// The service manager's end.
struct Manager(UnixDatagram);

impl Manager {
    /// Opens the socket and tells the appliance of it.
    fn of(stage: &Stage, blueprint: &mut Blueprint) -> Result<Self> {
        let path = stage.folder().join("notify");
        let socket = UnixDatagram::bind(&path)?;
        blueprint
            .environment("NOTIFY_SOCKET", path)
            .environment("RUNTIME_DIRECTORY", stage.folder())
            .environment("WATCHDOG_USEC", WATCHDOG.as_micros().to_string());
        Ok(Self(socket))
    }

    /// The next message, a word a line; nothing where none comes in this time.
    fn hear(&self, time: Duration) -> Result<Option<Vec<String>>> {
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

    /// Waits for a message with this word; those before it are passed over and given too.
    fn wait_for(&self, word: &str) -> Result<Vec<Vec<String>>> {
        let deadline = Instant::now() + PATIENCE;
        let mut heard = Vec::new();
        while let Some(message) = self.hear(deadline.saturating_duration_since(Instant::now()))? {
            let is_it = message.iter().any(|said| said == word);
            heard.push(message);
            if is_it {
                return Ok(heard);
            }
        }
        bail!("{word} was not said; what was said: {heard:?}")
    }
}

/// Everything waits for the peer `upstream`, which is never there.
fn blueprint(stage: &Stage) -> Result<Blueprint> {
    let nobody = SocketAddr::from(([127, 0, 0, 1], free_port()?));
    let mut blueprint = Blueprint::new(stage.binary(), &stage.folder().join("appliance"))?;
    blueprint.account("acme", "").peer("upstream", nobody, "receipts = false").native("upstream");
    Ok(blueprint)
}

fn said(messages: &[Vec<String>], what: &str) -> bool {
    messages.iter().flatten().any(|word| word.starts_with(what))
}

#[test]
fn each_step_is_told() -> Result<()> {
    let stage = Stage::without_guests()?;
    let mut blueprint = blueprint(&stage)?;
    let manager = Manager::of(&stage, &mut blueprint)?;
    let appliance = blueprint.launch()?;
    let before = manager.wait_for("READY=1")?;
    assert!(said(&before, "STATUS=starting"), "{before:?}");
    // Who is told so finds it so.
    assert_eq!(appliance.request("GET", "/v1/ready", &[])?.0, 200);
    let url = std::fs::read_to_string(stage.folder().join("url"))?;
    assert_eq!(url, format!("http://{}\n", appliance.blueprint().http()));
    let mut esme = Probe::bind(appliance.smpp(), "acme", PASSWORD, "861", false)?;
    esme.submit(1)?.map_err(|status| anyhow::anyhow!("refused with {status:#x}"))?;

    // Those who look after the service ask it by that.
    let status = Command::new(stage.binary())
        .arg("status")
        .env_remove("SWITCHYARD_URL")
        .env("SWITCHYARD_URL_FILE", stage.folder().join("url"))
        .env("SWITCHYARD_TOKEN_FILE", appliance.blueprint().data().join("token"))
        .output()?;
    assert!(status.status.success(), "{}", String::from_utf8_lossy(&status.stderr));

    // Again and again, and with what it does.
    for _ in 0..4 {
        manager.wait_for("WATCHDOG=1")?;
    }
    manager.wait_for("STATUS=ready; 1 message waits")?;

    appliance.hang_up()?;
    let reload = manager.wait_for("RELOADING=1")?;
    let last = reload.last().context("nothing was said")?;
    assert!(last.iter().any(|word| word.starts_with("MONOTONIC_USEC=")), "{last:?}");
    manager.wait_for("READY=1")?;

    let (status, _) = appliance.stop()?;
    assert!(status.success(), "{status}");
    let farewell = manager.wait_for("STOPPING=1")?;
    assert!(said(&farewell, "EXTEND_TIMEOUT_USEC="), "{farewell:?}");
    while let Some(message) = manager.hear(Duration::ZERO)? {
        ensure!(!message.contains(&"READY=1".to_owned()), "ready after it has stopped: {message:?}");
    }
    Ok(())
}

#[test]
fn an_appliance_whose_disk_hangs_gives_no_sign_of_life() -> Result<()> {
    let stage = Stage::without_guests()?;
    let (shim, hangs) = (stage.folder().join("hanging_disk.so"), stage.folder().join("hangs"));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/disk/hanging_disk.c");
    let mut compile = Command::new("cc");
    compile.args(["-Wall", "-Wextra", "-Werror", "-O1", "-shared", "-fPIC", "-o"]).arg(&shim).arg(source);
    house::run(&mut compile).context("compiling the disk that hangs")?;
    let mut blueprint = blueprint(&stage)?;
    blueprint.environment("LD_PRELOAD", shim).environment("HANGING_DISK", &hangs);
    let manager = Manager::of(&stage, &mut blueprint)?;
    let appliance = blueprint.start()?;
    manager.wait_for("WATCHDOG=1")?;

    // A submission that cannot be written: nobody answers it, and nobody else any more.
    std::fs::write(&hangs, "")?;
    let address = appliance.smpp();
    let esme = std::thread::spawn(move || -> Result<_> {
        let mut esme = Probe::bind(address, "acme", PASSWORD, "861", false)?;
        esme.submit(1)
    });
    manager.wait_for("STATUS=stuck: a batch is not written")?;
    let deadline = Instant::now() + WATCHDOG * 2;
    while let Some(message) = manager.hear(deadline.saturating_duration_since(Instant::now()))? {
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
