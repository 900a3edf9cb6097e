//! An event stream of the API ends with the token that opened it.

use anyhow::{Result, ensure};
use behaviour_tests::test_daemon::TestDaemonConfig;
use behaviour_tests::{AdminClient, Fixture, TIMEOUT};
use serde_json::json;
use std::time::Duration;

#[test]
fn a_watch_over_the_api_ends_with_its_token() -> Result<()> {
    let fixture = Fixture::new()?;
    let folder = fixture.folder().join("appliance");
    let appliance = TestDaemonConfig::new(fixture.binary(), &folder)?.start()?;
    let root = AdminClient::root(&appliance)?;
    let made = root.ask("PUT", "/v1/pools/support", Some(&json!({})))?;
    ensure!(made.status == 200 || made.status == 201, "{}", made.text);
    let token = root.make_token("watcher", &json!({ "role": "viewer" }))?;
    let url = format!("http://{}/v1/pools/support/watch", appliance.config().http());
    let mut answer = ureq::get(&url).header("authorization", format!("Bearer {token}")).call()?;
    let (ended, end) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || {
        let read = std::io::copy(&mut answer.body_mut().as_reader(), &mut std::io::sink());
        // The receiver has been dropped if the test has failed.
        let _ = ended.send(read.is_ok());
    });
    ensure!(end.recv_timeout(Duration::from_secs(5)).is_err(), "it ended while the token was good");
    let gone = root.ask("DELETE", "/v1/tokens/watcher", None)?;
    ensure!(gone.status == 204, "{}", gone.text);
    ensure!(end.recv_timeout(2 * TIMEOUT).is_ok(), "the stream continues without a token");
    ensure!(reader.join().is_ok(), "the reader has failed");
    Ok(())
}
