//! What the behaviour tests stand on: the real binary in a folder of its own, and peers that we did not write.
//!
//! The tests are in `tests/`; the scripts of the peers in `peers/`. `cargo xtask setup` installs what the peers need; a
//! peer that is missing fails its test and says so.

mod capture;
mod directory;
mod kannel;
pub mod manual;
pub mod operator;
pub mod osmocom;
mod peer;
pub mod pools;
mod raw;
pub mod sgip;
mod stage;
mod visitor;

pub use capture::{Capture, Spoken};
pub use directory::Directory;
pub use kannel::Kannel;
pub use peer::Peer;
pub use raw::{Raw, RawPdu};
pub use stage::{POLICY, Stage, activate, bind, shipped, steps, upload};
pub use visitor::{Told, Visitor};
pub use xtask::{appliance, load, random};

/// How long a test waits for something that must happen. Generous: the machine may be busy, and a test that passes
/// waits for none of it.
pub const PATIENCE: std::time::Duration = std::time::Duration::from_secs(30);

/// Looks until the condition holds.
pub fn until(what: &str, mut holds: impl FnMut() -> anyhow::Result<bool>) -> anyhow::Result<()> {
    let (pause, deadline) = (load::Stop::default(), std::time::Instant::now() + 2 * PATIENCE);
    while !holds()? {
        anyhow::ensure!(std::time::Instant::now() < deadline, "in vain: {what}");
        pause.pause(std::time::Duration::from_millis(10));
    }
    Ok(())
}
