//! The machine after its first boot: resource use, open ports, console output. Then an account, a peer and a plugin are
//! added over the API.

use super::{ImageTest, JSON, MAX_RESIDENT};
use crate::image::virtual_machine::RunningVm;
use anyhow::{Context, Result, ensure};
use api::{ActivationRequest, BindingRecord, CurrentConfiguration, PluginVersionView};
use serde_json::json;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use testkit::guest;
use testkit::test_daemon::{HASH, PASSWORD};

/// Checks memory use and the unit's security score, before any traffic.
pub(super) fn check_idle(running: &RunningVm) -> Result<()> {
    let resident_memory = running
        .ssh("awk '/^VmRSS/ { print $2 * 1024 }' /proc/$(systemctl show -P MainPID switchyard)/status")?;
    let resident_memory: u64 =
        resident_memory.parse().with_context(|| format!("{resident_memory:?} is not a number"))?;
    let word = if resident_memory < MAX_RESIDENT { "" } else { ", which exceeds the limit of 100 MB" };
    println!("image: the daemon has {:.1} MB of idle memory{word}", resident_memory as f64 / 1e6);
    println!("image: {}", running.ssh("systemd-analyze security --no-pager switchyard.service | tail -n 1")?);
    let failed = running.ssh("systemctl list-units --failed --no-legend --plain")?;
    ensure!(failed.is_empty(), "units have failed:\n{failed}");
    let write = running.ssh("touch /usr/x 2>&1; touch /etc/x 2>&1; true")?;
    ensure!(write.matches("Read-only").count() == 2, "the system is writable: {write}");
    Ok(())
}

/// Another listener in the machine is not reachable from outside. The rest of the test shows that the daemon is.
pub(super) fn firewall(running: &RunningVm) -> Result<()> {
    running.ssh("systemd-run --quiet --unit=test-listener /usr/sbin/sshd -D -p 9999 -o PidFile=none")?;
    let greeting = "for _ in $(seq 60); do timeout 10 bash -c 'head -c 7 < /dev/tcp/127.0.0.1/9999' 2>/dev/null && break; sleep 0.5; done";
    let inside = running.ssh(greeting)?;
    ensure!(inside == "SSH-2.0", "the test listener does not answer: {inside:?}");
    // qemu accepts the connection itself and forwards it: nothing may come back.
    let mut stream = std::net::TcpStream::connect(running.machine.closed)?;
    stream.set_read_timeout(Some(Duration::from_secs(20)))?;
    let got = std::io::Read::read(&mut stream, &mut [0; 16]);
    ensure!(!matches!(got, Ok(count) if count > 0), "a port that is not configured answers");
    running.ssh("systemctl stop test-listener")?;
    println!("image: other listeners are not reachable from outside");
    Ok(())
}

/// Takes a screenshot of the console in a browser.
pub(super) fn screenshot(running: &RunningVm, file: &Path) -> Result<()> {
    let mut chromium = Command::new("chromium");
    chromium.args([
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--ignore-certificate-errors",
        "--window-size=1200,800",
    ]);
    chromium.arg("--timeout=120000").arg(format!("--screenshot={}", file.display()));
    chromium.arg(format!("https://{}/", running.machine.https));
    let output = chromium.output()?;
    let octets = std::fs::metadata(file).map(|data| data.len()).unwrap_or_default();
    ensure!(
        output.status.success() && octets > 4_000,
        "no screenshot of the console: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let page = running.ask("GET", "/v1/ready", JSON, "", &[][..])?;
    println!("image: the console's login page is in {} ({octets} octets); ready: {page}", file.display());
    Ok(())
}

impl ImageTest {
    /// Adds an account, and a peer outside of the machine.
    pub(super) fn add_account_and_peer(&self, running: &RunningVm) -> Result<()> {
        let outside = format!("10.0.2.2:{}", self.sink.address().port());
        let patch = json!({
            "account": { "load": { "password-hash": HASH, "window": 500, "sessions": 20 } },
            "peer": { "upstream": {
                "address": outside, "system-id": "switchyard", "password": PASSWORD,
                "links": 2, "window": 500, "dlrs": false, "uncertain": "send-again",
            } },
        });
        let path = "/v1/configuration";
        let CurrentConfiguration { version, .. } = self.read(running, path)?;
        let kind = "application/merge-patch+json";
        running.request("PATCH", path, kind, &self.token, Some(version))(patch.to_string())?;
        self.check_state(running, "after configuration")
    }

    pub(super) fn check_state(&self, running: &RunningVm, when: &str) -> Result<()> {
        let CurrentConfiguration { document, .. } = self.read(running, "/v1/configuration")?;
        let has = |section: &str, name: &str| {
            document[section].as_array().into_iter().flatten().any(|party| party["name"] == name)
        };
        ensure!(
            has("account", "load") && has("peer", "upstream"),
            "account and peer are missing {when}: {document:#}"
        );
        self.log_step(&format!("account and peer are present {when}"));
        Ok(())
    }

    /// Activates another version of the router.
    pub(super) fn swap(&self, running: &RunningVm, component: &[u8]) -> Result<()> {
        let other = guest::variant(component, "the image test's");
        let upload = ("PUT", "/v1/plugins/prefix-router");
        let PluginVersionView { version, .. } =
            self.call(running, upload, "application/octet-stream", &other)?;
        let policy = "[default]\nlegs = [{ peer = \"upstream\" }]\nnote = \"by the image test\"\n";
        let activation = serde_json::to_vec(&ActivationRequest::of("prefix-router", &version, policy))?;
        let live: BindingRecord =
            self.call(running, ("POST", "/v1/hooks/router/activate"), JSON, &activation)?;
        ensure!(
            live.chain.first().is_some_and(|router| router.version == version),
            "activated {live:?} in place of {version}"
        );
        self.log_step("the router was replaced");
        Ok(())
    }
}
