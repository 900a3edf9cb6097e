//! The Redis listener of number pools.

use anyhow::Result;
use behaviour_tests::Fixture;
use behaviour_tests::test_daemon::TestDaemonConfig;

/// Without a router, since there are no messages: nothing has to be compiled at a start.
pub(crate) fn config(fixture: &Fixture) -> Result<TestDaemonConfig> {
    TestDaemonConfig::new(fixture.binary(), &fixture.folder().join("appliance"))
}

#[test]
fn a_redis_listener_open_to_everybody_is_refused() -> Result<()> {
    let fixture = Fixture::new()?;
    let mut config = config(&fixture)?;
    config.tables("[redis]\nlisten = [\"0.0.0.0:6379\"]\n");
    let (content, words) = config.check()?;
    assert!(!content && words.contains("all clients have all permissions"), "{words}");
    Ok(())
}
