//! Osmocom's programs as Debian ships them. Most of their ports cannot be chosen (GSUP 4222, VTY 4258, CTRL 4259), so every
//! program has an address of loopback of its own.

mod hlr;
mod loopback;
mod vty;

pub use hlr::{GSUP, Hlr};
pub use loopback::Loopback;
pub use vty::Vty;

use anyhow::{Result, ensure};
use std::time::{Duration, Instant};

/// How long a program may take for anything. Generous: the machine may be busy.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Looks until the condition holds.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> Result<bool>) -> Result<()> {
    let (pause, deadline) = (crate::load::Stop::default(), Instant::now() + 2 * PATIENCE);
    while !holds()? {
        ensure!(Instant::now() < deadline, "in vain: {what}");
        pause.pause(Duration::from_millis(10));
    }
    Ok(())
}
