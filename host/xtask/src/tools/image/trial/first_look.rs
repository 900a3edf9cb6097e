//! The machine as it is when it was just switched on: what it takes, what it lets in, what it shows, and an account, a peer and a
//! plugin that come to it over the API.

use super::{RESIDENT, Trial};
use crate::tools::image::machine::Running;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use xtask::appliance::{HASH, PASSWORD};
use xtask::guest;

/// Memory and the unit's score, before there was any traffic.
pub(super) fn at_rest(running: &Running) -> Result<()> {
    let resident = running
        .ssh("awk '/^VmRSS/ { print $2 * 1024 }' /proc/$(systemctl show -P MainPID switchyard)/status")?;
    let resident: u64 = resident.parse().with_context(|| format!("{resident:?} is no number"))?;
    let word = if resident < RESIDENT { "" } else { ", which is more than the 100 MB that it should have" };
    println!("image: the daemon has {:.1} MB in memory at rest{word}", resident as f64 / 1e6);
    println!("image: {}", running.ssh("systemd-analyze security --no-pager switchyard.service | tail -n 1")?);
    let failed = running.ssh("systemctl list-units --failed --no-legend --plain")?;
    ensure!(failed.is_empty(), "units have failed:\n{failed}");
    let write = running.ssh("touch /usr/x 2>&1; touch /etc/x 2>&1; true")?;
    ensure!(write.matches("Read-only").count() == 2, "the system can be written to: {write}");
    Ok(())
}

/// Something that listens beside the daemon is not reached from outside. That the daemon is, all that follows shows.
pub(super) fn firewall(running: &Running) -> Result<()> {
    running.ssh("systemd-run --quiet --unit=stranger /usr/sbin/sshd -D -p 9999 -o PidFile=none")?;
    let greeting = "for _ in $(seq 60); do timeout 10 bash -c 'head -c 7 < /dev/tcp/127.0.0.1/9999' 2>/dev/null && break; sleep 0.5; done";
    let inside = running.ssh(greeting)?;
    ensure!(inside == "SSH-2.0", "the listener for this test does not listen: {inside:?}");
    // qemu takes the connection itself, and hands on what comes of it: nothing may.
    let mut stream = std::net::TcpStream::connect(running.machine.closed)?;
    stream.set_read_timeout(Some(Duration::from_secs(20)))?;
    let got = std::io::Read::read(&mut stream, &mut [0; 16]);
    ensure!(!matches!(got, Ok(count) if count > 0), "a port that is not configured answers");
    running.ssh("systemctl stop stranger")?;
    println!("image: a listener that is not the daemon's is not reached from outside");
    Ok(())
}

/// What a person sees who opens the console.
pub(super) fn screenshot(running: &Running, picture: &Path) -> Result<()> {
    let mut chromium = Command::new("chromium");
    chromium.args([
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--ignore-certificate-errors",
        "--window-size=1200,800",
    ]);
    chromium.arg("--timeout=120000").arg(format!("--screenshot={}", picture.display()));
    chromium.arg(format!("https://{}/", running.machine.https));
    let output = chromium.output()?;
    let octets = std::fs::metadata(picture).map(|data| data.len()).unwrap_or_default();
    ensure!(
        output.status.success() && octets > 4_000,
        "no picture of the console: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let page = running.ask("GET", "/v1/ready", "application/json", "", &[][..])?;
    println!("image: the console's login page is in {} ({octets} octets); ready: {page}", picture.display());
    Ok(())
}

impl Trial {
    /// An account, and a peer outside of the machine.
    pub(super) fn furnish(&self, running: &Running) -> Result<()> {
        let outside = format!("10.0.2.2:{}", self.sink.address().port());
        let patch = json!({
            "account": { "load": { "password-hash": HASH, "window": 500, "sessions": 20 } },
            "peer": { "upstream": {
                "address": outside, "system-id": "switchyard", "password": PASSWORD,
                "links": 2, "window": 500, "receipts": false, "uncertain": "send-again",
            } },
        });
        let path = "/v1/configuration";
        let version = self.ask(running, "GET", path, &Value::Null)?["version"].as_u64();
        let kind = "application/merge-patch+json";
        running.request("PATCH", path, kind, &self.token, version)(patch.to_string())?;
        self.state_is_there(running, "as it was set")
    }

    pub(super) fn state_is_there(&self, running: &Running, when: &str) -> Result<()> {
        let now = self.ask(running, "GET", "/v1/configuration", &Value::Null)?;
        let has = |section: &str, name: &str| {
            now["document"][section].as_array().into_iter().flatten().any(|party| party["name"] == name)
        };
        ensure!(
            has("account", "load") && has("peer", "upstream"),
            "account and peer are gone, {when}: {now:#}"
        );
        self.say(&format!("account and peer are there, {when}"));
        Ok(())
    }

    /// Another version of the router, under another name, becomes live.
    pub(super) fn swap(&self, running: &Running, component: &[u8]) -> Result<()> {
        let other = guest::variant(component, "the trial's");
        let uploaded = running.ask(
            "PUT",
            "/v1/plugins/prefix-router",
            "application/octet-stream",
            &self.token,
            &other,
        )?;
        let policy = "[default]\nlegs = [{ peer = \"upstream\" }]\nnote = \"by the trial\"\n";
        let wanted = json!({ "plugin": "prefix-router", "version": uploaded["version"], "policy": policy });
        let live = self.ask(running, "POST", "/v1/hooks/router/activate", &wanted)?;
        ensure!(
            live["chain"][0]["version"] == uploaded["version"],
            "activated {live} in place of {uploaded}"
        );
        self.say("the router was exchanged");
        Ok(())
    }
}
