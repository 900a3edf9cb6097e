//! `cargo xtask bench console`: latency of every console page in a large appliance.

use super::aims;
use super::archive_bench::{memory_source::MemorySource, queries};
use super::tool_run::ToolRun;
use anyhow::{Context, Result, ensure};
use archive::Archive;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use testkit::test_daemon::{TestDaemon, free_port};

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Number of peers; all of them are down, which is the most expensive case.
    #[arg(long, default_value_t = 1_000)]
    peers: usize,
    /// Number of accounts.
    #[arg(long, default_value_t = 10_000)]
    accounts: usize,
    /// Number of messages in the history.
    #[arg(long, default_value_t = 10_000_000)]
    messages: u64,
    /// Number of requests per page.
    #[arg(long, default_value_t = 15)]
    rounds: usize,
}

/// Maximum latency of a page.
const MAX_LATENCY: Duration = Duration::from_millis(100);
/// Number of messages that pass through the data pump; the others are copies of them.
const PUMPED: u64 = 40_000;
/// Number of measured pages of one kind, for example of peers.
const PAGES_PER_KIND: usize = 2;

pub(crate) fn run(options: &Options, binary: Option<&Path>) -> Result<()> {
    ToolRun::with("bench-console-", binary, |tool_run| measure(tool_run, options))
}

fn measure(tool_run: &ToolRun, options: &Options) -> Result<()> {
    let url = format!("sqlite:{}", tool_run.folder.path().join("archive.db").display());
    fill(&url, options.messages)?;
    let mut config = tool_run.config("appliance")?;
    config.archive(&url).router(&tool_run.component, super::tool_run::POLICY)?;
    let nobody = SocketAddr::from(([127, 0, 0, 1], free_port()?));
    config.peer("upstream", nobody, "");
    for peer in 1..options.peers {
        config.peer(&format!("peer-{peer:05}"), nobody, "");
    }
    for account in 1..options.accounts {
        config.account(&format!("acc-{account:05}"), "");
    }
    let appliance = config.start()?;
    println!(
        "bench console: {} peers, {} accounts, {} messages in SQLite; started in {:.1} s; each page {} times",
        options.peers,
        options.accounts,
        options.messages,
        appliance.started_in().as_secs_f64(),
        options.rounds
    );
    let client = ConsoleClient::log_in(&appliance)?;
    let pages = client.find_pages()?;
    ensure!(pages.len() > 10, "the overview links to only {} pages: {pages:?}", pages.len());
    println!("  {:<64}{:>10}{:>10}{:>10}{:>10}", "page", "octets", "p50 ms", "p95 ms", "longest");
    let mut slow = Vec::new();
    for page in &pages {
        let mut times = Vec::new();
        let mut octets = 0;
        for _ in 0..options.rounds.max(1) {
            let begun = Instant::now();
            octets = client.page(page)?.len();
            times.push(begun.elapsed());
        }
        times.sort();
        let share = |share: f64| times[((times.len() - 1) as f64 * share).round() as usize];
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        let (middle, most) = (share(0.5), share(0.95));
        let shown: String = page.chars().take(62).collect();
        println!("  {shown:<64}{octets:>10}{:>10.1}{:>10.1}{:>10.1}", ms(middle), ms(most), ms(share(1.0)));
        if most > MAX_LATENCY {
            slow.push(page.as_str());
        }
    }
    if slow.is_empty() {
        println!("  all {} pages: p95 within {} ms", pages.len(), MAX_LATENCY.as_millis());
    }
    aims::check(slow.is_empty(), || format!("p95 above {} ms: {}", MAX_LATENCY.as_millis(), slow.join(", ")))
}

/// Fills the archive as the data pump would.
fn fill(url: &str, messages: u64) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let archive =
        Archive::open(url, archive::ArchiveOptions { share: 1.0, ..archive::ArchiveOptions::default() })?;
    runtime.block_on(archive.prepare())?;
    let source = Arc::new(MemorySource::default());
    let pump = archive.pump(source.clone()).start()?;
    source.put(0, PUMPED.min(messages));
    pump.wake();
    ensure!(source.wait_until_empty(Duration::from_secs(600)), "the pump has stopped: {:?}", pump.status());
    pump.stop();
    runtime.block_on(queries::fill(url, messages))?;
    Ok(())
}

/// A headless HTTP client with a console session.
struct ConsoleClient {
    agent: ureq::Agent,
    base: String,
    cookie: String,
}

impl ConsoleClient {
    fn log_in(appliance: &TestDaemon) -> Result<Self> {
        let config = ureq::Agent::config_builder().http_status_as_error(false).max_redirects(0);
        let agent = config.timeout_global(Some(Duration::from_secs(60))).build().new_agent();
        let base = format!("http://{}", appliance.config().http());
        let body = serde_json::json!({ "token": appliance.token()? }).to_string();
        let answer = agent
            .post(format!("{base}/v1/sessions"))
            .header("content-type", "application/json")
            .send(body.as_bytes())?;
        ensure!(answer.status() == 200, "the login is answered with {}", answer.status());
        let cookie = answer.headers().get("set-cookie").context("no cookie")?.to_str()?;
        let cookie = cookie.split(';').next().unwrap_or_default().to_owned();
        Ok(Self { agent, base, cookie })
    }

    fn page(&self, path: &str) -> Result<String> {
        let url = format!("{}{path}", self.base);
        let mut answer =
            self.agent.get(url).header("cookie", &self.cookie).header("accept", "text/html").call()?;
        ensure!(answer.status() == 200, "{path} is answered with {}", answer.status());
        Ok(answer.body_mut().with_config().limit(64 << 20).read_to_string()?)
    }

    /// All pages that can be reached by links from the overview. Of pages of one kind (for example one per peer), the
    /// first few.
    fn find_pages(&self) -> Result<Vec<String>> {
        let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
        let mut seen = BTreeSet::from(["/".to_owned()]);
        let mut to_read = VecDeque::from(["/".to_owned()]);
        let mut pages = Vec::new();
        while let Some(path) = to_read.pop_front() {
            let text = self.page(&path)?;
            pages.push(path);
            for link in text.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
                let link = link.replace("&amp;", "&");
                let link = link.split('#').next().unwrap_or_default();
                let other = ["/assets/", "/v1/", "/logout", "/metrics"];
                let page = link.starts_with('/') && !other.iter().any(|other| link.starts_with(other));
                if !page
                    || link.contains("export")
                    || link.contains("download")
                    || !seen.insert(link.to_owned())
                {
                    continue;
                }
                let kind = kinds.entry(kind(link)).or_default();
                *kind += 1;
                if *kind <= PAGES_PER_KIND {
                    to_read.push_back(link.to_owned());
                }
            }
        }
        Ok(pages)
    }
}

/// The path without the parts that identify an item: first segment, number of segments, names of the query parameters.
fn kind(link: &str) -> String {
    let (path, query) = link.split_once('?').unwrap_or((link, ""));
    let mut parts = path.split('/').skip(1);
    let first = parts.next().unwrap_or_default();
    let keys: Vec<&str> = query.split('&').filter_map(|pair| pair.split('=').next()).collect();
    format!("{first} {} {}", parts.count(), keys.join(" "))
}
