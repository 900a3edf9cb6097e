//! `cargo xtask bench console`: how long every page of the console takes in a large appliance.

use super::aims;
use super::archive_bench::{questions, shelf::Shelf};
use super::place::Place;
use anyhow::{Context, Result, ensure};
use archive::Archive;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use xtask::appliance::{Appliance, free_port};

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Peers of the configuration; all of them are down, which is what costs most to show.
    #[arg(long, default_value_t = 1_000)]
    peers: usize,
    /// Accounts of the configuration.
    #[arg(long, default_value_t = 10_000)]
    accounts: usize,
    /// Messages in the history.
    #[arg(long, default_value_t = 10_000_000)]
    messages: u64,
    /// How often each page is asked for.
    #[arg(long, default_value_t = 15)]
    rounds: usize,
}

/// What a page may take.
const AIM: Duration = Duration::from_millis(100);
/// Messages that go through the data pump; the others are copies of them.
const PUMPED: u64 = 40_000;
/// Pages of one kind that are measured: of peers, say.
const OF_A_KIND: usize = 2;

pub(crate) fn run(options: &Options, binary: Option<&Path>) -> Result<()> {
    Place::with("bench-console-", binary, |place| measure(place, options))
}

fn measure(place: &Place, options: &Options) -> Result<()> {
    let url = format!("sqlite:{}", place.folder.path().join("archive.db").display());
    fill(&url, options.messages)?;
    let mut blueprint = place.blueprint("appliance")?;
    blueprint.archive(&url).router(&place.component, super::place::POLICY)?;
    let nobody = SocketAddr::from(([127, 0, 0, 1], free_port()?));
    blueprint.peer("upstream", nobody, "");
    for peer in 1..options.peers {
        blueprint.peer(&format!("peer-{peer:05}"), nobody, "");
    }
    for account in 1..options.accounts {
        blueprint.account(&format!("acc-{account:05}"), "");
    }
    let appliance = blueprint.start()?;
    println!(
        "bench console: {} peers, {} accounts, {} messages in SQLite; started in {:.1} s; each page {} times",
        options.peers,
        options.accounts,
        options.messages,
        appliance.started_in().as_secs_f64(),
        options.rounds
    );
    let visitor = Visitor::log_in(&appliance)?;
    let pages = visitor.find_pages()?;
    ensure!(pages.len() > 10, "only {} pages were found from the overview on: {pages:?}", pages.len());
    println!("  {:<64}{:>10}{:>10}{:>10}{:>10}", "page", "octets", "p50 ms", "p95 ms", "longest");
    let mut slow = Vec::new();
    for page in &pages {
        let mut times = Vec::new();
        let mut octets = 0;
        for _ in 0..options.rounds.max(1) {
            let begun = Instant::now();
            octets = visitor.page(page)?.len();
            times.push(begun.elapsed());
        }
        times.sort();
        let share = |share: f64| times[((times.len() - 1) as f64 * share).round() as usize];
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        let (middle, most) = (share(0.5), share(0.95));
        let shown: String = page.chars().take(62).collect();
        println!("  {shown:<64}{octets:>10}{:>10.1}{:>10.1}{:>10.1}", ms(middle), ms(most), ms(share(1.0)));
        if most > AIM {
            slow.push(page.as_str());
        }
    }
    if slow.is_empty() {
        println!("  all {} pages: p95 within {} ms", pages.len(), AIM.as_millis());
    }
    aims::check(slow.is_empty(), || format!("p95 above {} ms: {}", AIM.as_millis(), slow.join(", ")))
}

/// A history as a data pump would have written it.
fn fill(url: &str, messages: u64) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let archive = Archive::open(url, archive::Options { share: 1.0, ..archive::Options::default() })?;
    runtime.block_on(archive.prepare())?;
    let shelf = Arc::new(Shelf::default());
    let pump = archive.pump(shelf.clone()).start()?;
    shelf.put(0, PUMPED.min(messages));
    pump.wake();
    ensure!(shelf.wait_until_empty(Duration::from_secs(600)), "the pump stands still: {:?}", pump.status());
    pump.stop();
    runtime.block_on(questions::fill(url, messages))?;
    Ok(())
}

/// A browser without a screen, logged in.
struct Visitor {
    agent: ureq::Agent,
    base: String,
    cookie: String,
}

impl Visitor {
    fn log_in(appliance: &Appliance) -> Result<Self> {
        let config = ureq::Agent::config_builder().http_status_as_error(false).max_redirects(0);
        let agent = config.timeout_global(Some(Duration::from_secs(60))).build().new_agent();
        let base = format!("http://{}", appliance.blueprint().http());
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

    /// Every page that links lead to from the overview on; of pages of one kind (one for each peer, say) the first few.
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
                if *kind <= OF_A_KIND {
                    to_read.push_back(link.to_owned());
                }
            }
        }
        Ok(pages)
    }
}

/// The path without what names one thing of many: its first part, how many there are, and the names of what is asked.
fn kind(link: &str) -> String {
    let (path, query) = link.split_once('?').unwrap_or((link, ""));
    let mut parts = path.split('/').skip(1);
    let first = parts.next().unwrap_or_default();
    let keys: Vec<&str> = query.split('&').filter_map(|pair| pair.split('=').next()).collect();
    format!("{first} {} {}", parts.count(), keys.join(" "))
}
