//! `cargo xtask demo`: an appliance with traffic, for a first look.

use anyhow::{Context, Result, ensure};
use api::{ActivationRequest, BindingRecord, HookStateView, PluginVersionView, TraceView};
use serde_json::json;
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use testkit::load::{Probe, Sink, SinkOptions, Source, SourceOptions, StopFlag, Tally};
use testkit::test_daemon::{PASSWORD, TestDaemon, TestDaemonConfig};
use testkit::{built, guest};

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Stop at the end instead of running until Ctrl-C.
    #[arg(long)]
    pub(super) exit: bool,
    /// Use this daemon instead of building one.
    #[arg(long)]
    pub(super) binary: Option<PathBuf>,
    /// Build the daemon with all optimisations, as it is packaged; this takes several minutes longer.
    #[arg(long, conflicts_with = "binary")]
    pub(super) release: bool,
    /// Show the SGIP platform: a sample business system on one side, a sample gateway on the other.
    #[arg(long)]
    pub(crate) sgip: bool,
    /// Show the three Chinese networks: a business system, and gateways over CMPP, SMGP and SGIP.
    #[arg(long, conflicts_with = "sgip")]
    pub(crate) china: bool,
    /// Show a GSM network: phones that send and receive through the real osmo-hlr.
    #[arg(long, conflicts_with_all = ["sgip", "china"])]
    pub(crate) gsm: bool,
    /// Show a cluster of two appliances and three members of etcd; the leader is killed under traffic.
    #[arg(long, conflicts_with_all = ["sgip", "china", "gsm"])]
    pub(crate) cluster: bool,
}

/// Messages per second of the sample ESME.
const RATE: f64 = 200.0;

const FIRST: &str =
    "[default]\nlegs = [{ peer = \"upstream\" }]\nnote = \"the first policy: everything upstream\"\n";
const SECOND: &str = "# Premium numbers are refused; the rest goes upstream.\n\
    [[route]]\nprefix = \"900\"\nreject = \"prohibited\"\nnote = \"premium\"\n\n\
    [default]\nlegs = [{ peer = \"upstream\" }]\nnote = \"the second policy: no premium numbers\"\n";

/// Common parts of all demos: the daemon, the plugins, an empty folder.
pub(super) struct DemoSetup {
    pub(super) binary: PathBuf,
    /// Folder of the built plugins.
    pub(super) guests: PathBuf,
    pub(super) folder: PathBuf,
}

impl DemoSetup {
    /// Clears `target/FOLDER`.
    pub(super) fn new(options: &Options, folder: &str) -> Result<Self> {
        let guests = built::plugins()?;
        let binary = crate::tool_run::daemon(options.binary.as_deref())?;
        let folder = workspace::target().join(folder);
        if folder.exists() {
            std::fs::remove_dir_all(&folder).with_context(|| format!("clearing {}", folder.display()))?;
        }
        std::fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
        Ok(Self { binary, guests, folder })
    }
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let DemoSetup { binary, guests, folder } = DemoSetup::new(options, "demo")?;
    let component = guests.join("prefix_router.wasm");
    let tally = Arc::new(Tally::new(4_000_000));
    let peer = SinkOptions { receipts: true, ..SinkOptions::default() };
    let sink = Sink::start(peer, &tally)?;
    let mut config = TestDaemonConfig::new(&binary, &folder)?;
    if [2775, 8080].iter().all(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok()) {
        config.ports(2775, 8080);
    }
    config.account("demo", "window = 1000").peer("upstream", sink.address(), "links = 2\nwindow = 100");
    let appliance = config.router(&component, FIRST)?.start()?;
    println!("demo: the appliance is up: SMPP on {}, HTTP on {}", appliance.smpp(), config.http());

    let mut ask = SourceOptions::new(appliance.smpp(), "demo", PASSWORD);
    (ask.connections, ask.window, ask.rate, ask.receipts, ask.reconnect) = (2, 100, Some(RATE), true, true);
    let source = Source::start(&ask, &tally)?;
    println!(
        "demo: a sample ESME submits {RATE} messages a second, a sample peer accepts them and sends delivery receipts"
    );
    let pause = StopFlag::default();
    pause.pause(Duration::from_secs(2));
    let before = version(&appliance)?;
    println!(
        "demo: {} submitted, {} at the peer; now the router is replaced",
        tally.accepted_count(),
        tally.arrived_count()
    );

    let new = guest::variant(&std::fs::read(&component)?, "demo");
    let PluginVersionView { version, .. } = appliance.upload("PUT", "/v1/plugins/prefix-router", &new)?;
    let activation = ActivationRequest::of("prefix-router", &version, SECOND);
    let _: BindingRecord = appliance.call("POST", "/v1/hooks/router/activate", &activation)?;
    println!("demo: version {before} was replaced by {version}, without a restart");
    pause.pause(Duration::from_secs(1));

    let mut probe = Probe::bind(appliance.smpp(), "demo", PASSWORD, "900", false)?;
    if let Err(status) = probe.submit(1)? {
        println!("demo: a message to a premium number is refused now (command status {status:#x})");
    }
    let mut probe = Probe::bind(appliance.smpp(), "demo", PASSWORD, "861", false)?;
    let id =
        probe.submit(9_999_999_999)?.map_err(|status| anyhow::anyhow!("refused with status {status:#x}"))?;
    let path = format!("/v1/messages/{id}");
    let trace =
        appliance.read_until(Duration::from_secs(10), &path, |trace: &TraceView| trace.steps.len() > 1)?;
    println!("demo: trace of message {id}:\n{:#}", json!(trace));

    if options.exit {
        source.stop();
        let report = source.join()?;
        wait_for_all(&tally)?;
        let (status, _) = appliance.stop()?;
        sink.stop()?;
        let sums = tally.summary();
        println!(
            "demo: {} messages submitted, {} at the peer, {} missing; answers within {:?} (p99); {} receipts came back before the ESME unbound",
            sums.accepted,
            sums.arrived,
            sums.missing,
            report.answers.quantile(0.99),
            report.receipts
        );
        ensure!(status.success(), "the appliance stopped with {status}");
        ensure!(sums.missing == 0 && sums.refused == 0, "{sums:?}");
        return Ok(());
    }
    let (token, http) = (appliance.config().data().join("token"), config.http());
    println!("\nIt runs until Ctrl-C. To explore:\n");
    println!("  TOKEN=$(cat {})", token.display());
    for (path, what) in [
        ("/v1/status", "status"),
        ("/v1/queues", "what is queued, and why it waits"),
        ("/v1/links", "who is connected"),
        (path.as_str(), "one message's story"),
        ("/v1/hooks", "who decides"),
        ("/metrics", "for Prometheus"),
    ] {
        println!("  curl -s -H \"Authorization: Bearer $TOKEN\" http://{http}{path}   # {what}");
    }
    println!(
        "  curl -s -X POST -H \"Authorization: Bearer $TOKEN\" http://{http}/v1/hooks/router/rollback   # back to the first router"
    );
    println!(
        "\n  an ESME of yours: {} system_id demo, password {PASSWORD}; log: {}",
        appliance.smpp(),
        folder.join("switchyard.log").display()
    );
    appliance.wait_for_end();
    Ok(())
}

/// The version of the live router.
fn version(appliance: &TestDaemon) -> Result<String> {
    let hook: HookStateView = appliance.read("/v1/hooks/router")?;
    let router = hook.live.chain.into_iter().next();
    Ok(router.context("GET /v1/hooks/router names no live router")?.version)
}

pub(super) fn wait_for_all(tally: &Tally) -> Result<()> {
    let pause = StopFlag::default();
    for _ in 0..200 {
        if tally.is_settled() {
            return Ok(());
        }
        pause.pause(Duration::from_millis(50));
    }
    anyhow::bail!("messages are missing: {:?}", tally.summary())
}
