//! Nodes whose service manager restarts a daemon that sends no watchdog messages.

use crate::nodes::ClusterFixture;
use anyhow::Result;
use behaviour_tests::{HangingDisk, ServiceManager, TIMEOUT, was_notified};
use std::time::Duration;

#[test]
fn a_follower_sends_watchdog_messages_while_it_works() -> Result<()> {
    let fixture = ClusterFixture::new()?;
    let leader = fixture.node("a", "")?.start()?;
    let mut config = fixture.node("b", "")?;
    let folder = fixture.base.folder();
    let manager = ServiceManager::of(folder, &mut config)?;
    let disk = HangingDisk::of(folder, &mut config)?;
    let follower = config.follow()?;
    manager.wait_for("READY=1")?;
    for _ in 0..4 {
        manager.wait_for("WATCHDOG=1")?;
    }
    // Local tools find the follower, too.
    let url = std::fs::read_to_string(folder.join("url"))?;
    assert_eq!(url, format!("http://{}\n", follower.config().http()));

    disk.hang()?;
    follower.wait_for_line(TIMEOUT, |text| text.contains("the follower makes no progress"))?;
    while manager.receive(Duration::ZERO)?.is_some() {}
    manager.hears_no_watchdog()?;
    disk.release()?;
    manager.wait_for("WATCHDOG=1")?;

    leader.kill()?;
    let taking_over = manager.wait_for("STATUS=ready; 0 messages wait")?;
    assert!(was_notified(&taking_over, "READY=1"), "{taking_over:?}");
    let leader = follower.ready()?;
    for _ in 0..4 {
        manager.wait_for("WATCHDOG=1")?;
    }
    drop(leader);
    Ok(())
}
