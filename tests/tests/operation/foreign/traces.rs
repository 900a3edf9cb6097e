//! Traces in an OpenTelemetry collector: PyPI `rotel`.

use anyhow::{Context as _, Result};
use behaviour_tests::load::{Probe, Sink, SinkOptions, Tally};
use behaviour_tests::test_daemon::{PASSWORD, TestDaemon, TestDaemonConfig, free_port};
use behaviour_tests::{Fixture, POLICY, until};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use testkit::program::Program;

/// Throttled messages are sent again at once.
const RETRIES: &str = "[temporary]\nwaits = [\"1s\"]\n[permanent]\nthen = \"fail\"\n\
                       [absent]\nwaits = [\"1s\"]\nthen = \"fail\"\n[memory-full]\nwaits = [\"1s\"]\nthen = \"fail\"\n\
                       [throttled]\nwaits = [\"0s\"]\n";
const SCREENS: &str = "[[rule]]\nname = \"casino\"\nwords = [\"casino\"]\nthen = \"reject\"\n";

const THROTTLED: u32 = 0x58;

/// A collector that prints the received spans, and does not forward them.
struct Collector {
    program: Program,
    http: SocketAddr,
    log: std::path::PathBuf,
}

/// A span as the collector prints it.
#[derive(Debug, Default, Clone)]
struct PrintedSpan {
    /// `Trace ID`, `Parent ID`, `ID`, `Name`, `Status code` and the like.
    fields: BTreeMap<String, String>,
    /// Its attributes with their types, for example `Str(upstream)`.
    attributes: BTreeMap<String, String>,
}

impl Collector {
    fn start(folder: &Path) -> Result<Self> {
        std::fs::create_dir_all(folder)?;
        let rotel = workspace::rotel().context("PyPI `rotel` is not installed; run: cargo xtask setup")?;
        let address = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let (http, grpc) = (address(free_port()?), address(free_port()?));
        let mut command = Command::new(rotel);
        command.args(["start", "--exporter", "blackhole", "--debug-log", "traces"]);
        command.args(["--debug-log-verbosity", "detailed"]);
        command.args(["--otlp-http-endpoint", &http.to_string(), "--otlp-grpc-endpoint", &grpc.to_string()]);
        command.arg("--pid-file").arg(folder.join("rotel.pid"));
        command.arg("--log-file").arg(folder.join("agent.log"));
        let program = Program::start("rotel", folder, &mut command, &[http])?;
        Ok(Self { program, http, log: folder.join("rotel.log") })
    }

    /// The spans that it has received so far, by trace.
    fn traces(&self) -> Result<Vec<Vec<PrintedSpan>>> {
        let printed = std::fs::read_to_string(&self.log).context("reading the collector's output")?;
        let mut traces: BTreeMap<String, Vec<PrintedSpan>> = BTreeMap::new();
        for block in printed.split("\nSpan #").skip(1) {
            let block = block.split("\nResourceSpans #").next().unwrap_or_default();
            let mut span = PrintedSpan::default();
            for line in block.lines().skip(1) {
                let line = line.trim();
                let (line, into) = match line.strip_prefix("-> ") {
                    Some(attribute) => (attribute, &mut span.attributes),
                    None => (line, &mut span.fields),
                };
                if let Some((key, value)) = line.split_once(':') {
                    into.insert(key.trim().to_owned(), value.trim().to_owned());
                }
            }
            let trace = span.fields.get("Trace ID").cloned().unwrap_or_default();
            traces.entry(trace).or_default().push(span);
        }
        Ok(traces.into_values().collect())
    }
}

impl PrintedSpan {
    fn field(&self, key: &str) -> &str {
        self.fields.get(key).map_or("", String::as_str)
    }

    fn attribute(&self, key: &str) -> &str {
        let printed = self.attributes.get(key).map_or("", String::as_str);
        printed.strip_prefix("Str(").and_then(|rest| rest.strip_suffix(')')).unwrap_or(printed)
    }
}

#[test]
fn a_collector_receives_the_trace_of_a_message_with_the_span_of_each_plugin_call() -> Result<()> {
    let fixture = Fixture::new()?;
    let mut collector = Collector::start(&fixture.folder().join("collector"))?;
    // Every second answer is a refusal, so the second message is sent twice.
    let options =
        SinkOptions { receipts: true, error_status: THROTTLED, error_every: 2, ..SinkOptions::default() };
    let sink = Sink::start(options, &Arc::new(Tally::new(100)))?;
    let mut config = TestDaemonConfig::new(fixture.binary(), &fixture.folder().join("appliance"))?;
    config.account("acme", "").peer("upstream", sink.address(), "");
    config.router(&fixture.guest("prefix_router"), POLICY)?;
    for (hook, plugin, component, policy) in [
        ("screen", "firewall", "firewall", SCREENS),
        ("delivery-policy", "retry-ladder", "retry_ladder", RETRIES),
        ("receipt", "second-chance", "second_chance", "[[rule]]\nwait = \"60s\"\n"),
    ] {
        let path = fixture.folder().join(format!("{component}.toml"));
        std::fs::write(&path, policy)?;
        config.tables(&format!(
            "[{hook}]\nplugin = {plugin:?}\ncomponent = {:?}\npolicy = {:?}\n",
            fixture.guest(component).display().to_string(),
            path.display().to_string()
        ));
    }
    config.tables(&format!("[telemetry]\notlp = \"http://{}\"\none-in = 1\n", collector.http));
    let appliance = config.start()?;
    let mut esme = Probe::bind(appliance.smpp(), "acme", PASSWORD, "861", true)?;
    let mut ids: Vec<u64> = Vec::new();
    for number in 0..2 {
        let id = esme.submit(number)?.map_err(|status| anyhow::anyhow!("refused with {status:#x}"))?;
        wait_for_delivery(&appliance, &id)?;
        ids.push(id.parse()?);
    }
    until("the collector has both traces", || Ok(collector.traces()?.len() >= 2))?;

    let traces = collector.traces()?;
    let of = |id: u64| {
        let own = |trace: &&Vec<PrintedSpan>| trace[0].field("Trace ID").ends_with(&format!("{id:016x}"));
        traces.iter().find(own).with_context(|| format!("no trace of {id}: {traces:#?}"))
    };
    let calls = |trace: &[PrintedSpan]| {
        let calls = trace.iter().filter(|span| span.field("Name") == "plugin call");
        let named = calls.map(|span| {
            let version = span.attribute("switchyard.plugin.version");
            assert!(!version.is_empty(), "{span:#?}");
            format!("{} {}", span.attribute("switchyard.hook"), span.attribute("switchyard.plugin"))
        });
        named.collect::<Vec<_>>()
    };
    let trace = of(ids[1])?;
    assert_eq!(
        calls(trace),
        [
            "screen firewall",
            "router prefix-router",
            "delivery-policy retry-ladder", // How long to wait for a DLR, and the next step after it.
            "receipt second-chance",
            "receipt second-chance"
        ],
        "{trace:#?}"
    );
    assert_eq!(trace.iter().filter(|span| span.field("Name") == "attempt").count(), 2, "{trace:#?}");
    let first = of(ids[0])?;
    assert!(!calls(first).contains(&"delivery-policy retry-ladder".to_owned()), "{first:#?}");

    // All spans are children of the message's.
    for trace in [first, trace] {
        let root = trace.iter().find(|span| span.field("Name") == "message").context("no root")?;
        assert_eq!((root.field("Parent ID"), root.attribute("switchyard.state")), ("", "delivered"));
        for span in trace.iter().filter(|span| span.field("Name") != "message") {
            assert_eq!(span.field("Parent ID"), root.field("ID"), "{trace:#?}");
            let time = |key: &str| span.field(key).parse::<u64>();
            assert!(time("Start time")? <= time("End time")?, "{span:#?}");
            assert!(root.field("Start time").parse::<u64>()? <= time("Start time")?, "{trace:#?}");
        }
        let mut ids: Vec<_> = trace.iter().map(|span| span.field("ID")).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), trace.len(), "span ids are unique: {trace:#?}");
    }

    // When a collector dies, traces are lost, but no messages.
    collector.program.kill()?;
    let id = esme.submit(2)?.map_err(|status| anyhow::anyhow!("refused with {status:#x}"))?;
    wait_for_delivery(&appliance, &id)
}

fn wait_for_delivery(appliance: &TestDaemon, id: &str) -> Result<()> {
    until("the message is delivered", || {
        let (_, text) = appliance.request("GET", &format!("/v1/messages/{id}"), &[])?;
        Ok(text.contains("\"delivered\""))
    })
}
