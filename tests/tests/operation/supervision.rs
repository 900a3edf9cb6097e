//! Notifications to the service manager: for the daemon, systemd is a datagram socket.

use anyhow::{Context, Result, ensure};
use behaviour_tests::load::Probe;
use behaviour_tests::test_daemon::{PASSWORD, TestDaemonConfig, free_port};
use behaviour_tests::{Fixture, HangingDisk, ServiceManager, was_notified};
use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

/// All messages wait for the peer `upstream`, which does not listen.
fn config(fixture: &Fixture) -> Result<TestDaemonConfig> {
    let nobody = SocketAddr::from(([127, 0, 0, 1], free_port()?));
    let mut config = TestDaemonConfig::new(fixture.binary(), &fixture.folder().join("appliance"))?;
    config.account("acme", "").peer("upstream", nobody, "dlrs = false").native("upstream");
    Ok(config)
}

#[test]
fn each_step_is_notified() -> Result<()> {
    let fixture = Fixture::new()?;
    let mut config = config(&fixture)?;
    let manager = ServiceManager::of(fixture.folder(), &mut config)?;
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
    let mut config = config(&fixture)?;
    let disk = HangingDisk::of(fixture.folder(), &mut config)?;
    let manager = ServiceManager::of(fixture.folder(), &mut config)?;
    let appliance = config.start()?;
    manager.wait_for("WATCHDOG=1")?;

    // A submission that cannot be written: neither it nor any later request is answered.
    disk.hang()?;
    let address = appliance.smpp();
    let esme = std::thread::spawn(move || -> Result<_> {
        let mut esme = Probe::bind(address, "acme", PASSWORD, "861", false)?;
        esme.submit(1)
    });
    manager.wait_for("STATUS=stuck: a commit is stalled")?;
    manager.hears_no_watchdog()?;

    disk.release()?;
    manager.wait_for("WATCHDOG=1")?;
    let answer = esme.join().map_err(|_| anyhow::anyhow!("the ESME panicked"))??;
    assert!(answer.is_ok(), "{answer:?}");
    Ok(())
}
