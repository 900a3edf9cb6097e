//! Infrastructure of the behaviour tests: the real binary in its own folder, and third-party peers.
//!
//! The tests are in `tests/`; the scripts of the peers in `peers/`. `cargo xtask setup` installs what the peers need; a
//! missing peer fails its test with a message.

mod admin_client;
mod capture;
pub mod china;
mod directory;
pub mod fake_image_service;
mod fixture;
mod kannel;
pub mod manual;
pub mod osmocom;
mod peer;
pub mod pools;
mod raw_connection;
pub mod sgip;
mod sms_api;
mod supervision;

pub use admin_client::{AdminClient, ApiResponse};
pub use capture::{Capture, CaptureProtocol};
pub use directory::Directory;
pub use fixture::{Fixture, POLICY, activate, bind, shipped_policy, steady_traffic, steps, upload};
pub use kannel::Kannel;
pub use peer::Peer;
pub use raw_connection::{RawConnection, RawPdu};
pub use sms_api::{ApiReaction, ApiRequest, SmsApi};
pub use supervision::{HangingDisk, ServiceManager, was_notified};
pub use testkit::{load, test_daemon};

/// Timeout for everything that must happen. It is generous: the machine may be busy, and a test that passes
/// does not wait for it.
pub const TIMEOUT: std::time::Duration = std::time::Duration::from_secs(120);

/// Polls until the condition holds.
pub fn until(what: &str, mut holds: impl FnMut() -> anyhow::Result<bool>) -> anyhow::Result<()> {
    let (pause, deadline) = (load::StopFlag::default(), std::time::Instant::now() + 2 * TIMEOUT);
    while !holds()? {
        anyhow::ensure!(std::time::Instant::now() < deadline, "timeout: {what}");
        pause.pause(std::time::Duration::from_millis(10));
    }
    Ok(())
}

/// A time zone in which it is about noon: no day ends during the test.
pub fn noon_zone() -> anyhow::Result<String> {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
    let hour = now.as_secs() / 3600 % 24;
    // The sign of these names is the other way round: Etc/GMT-2 is two hours ahead of UTC.
    Ok(if hour <= 12 { format!("Etc/GMT-{}", 12 - hour) } else { format!("Etc/GMT+{}", hour - 12) })
}
