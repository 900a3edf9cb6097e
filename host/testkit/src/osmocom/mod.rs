//! Osmocom's programs from Debian. Most of their ports cannot be configured (GSUP 4222, VTY 4258, CTRL 4259), so every program
//! has its own loopback address.

mod hlr;
mod loopback;
mod vty;

pub use hlr::{GSUP, Hlr};
pub use loopback::Loopback;
pub use vty::Vty;

use anyhow::{Result, ensure};
use std::time::{Duration, Instant};

/// Timeout for everything that a program does; generous, because the machine may be busy.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(30);

/// Polls until the condition holds.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> Result<bool>) -> Result<()> {
    let (pause, deadline) = (crate::load::StopFlag::default(), Instant::now() + 2 * TIMEOUT);
    while !holds()? {
        ensure!(Instant::now() < deadline, "timeout: {what}");
        pause.pause(Duration::from_millis(10));
    }
    Ok(())
}
