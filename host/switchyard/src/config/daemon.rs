//! Sections of the daemon itself: appliance, engine, number pools, number plans, archive.

use archive::{ArchiveOptions, ArchiveRedaction};
use configuration::{Keys, Section, Word, files};
use engine::{PoolLimits, Settings};
use model::{PoolName, PoolSettings, Strategy};
use numbering::{NumberPlanError, NumberPlans};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// `[appliance]`: the appliance as a whole.
#[derive(Debug, Clone, Keys)]
#[keys(restart = "it is part of what the daemon sets up first: data directory, threads and names")]
pub(crate) struct ApplianceKeys {
    /// The SMPP system_id of this appliance.
    #[key(length = 1..=15, default = "SWITCHYARD")]
    pub(crate) name: String,
    /// The data directory. Set in the file only; the API cannot change it.
    #[key(example = "/var/lib/switchyard")]
    pub(crate) data: PathBuf,
    /// Minimum free disk space. Below it, submissions are refused and delivery continues.
    #[key(size, default = "512MiB", live = "takes effect at once")]
    pub(crate) free_space_watermark: u64,
    /// Maximum time that a shutdown waits for outstanding responses.
    #[key(default = "10s", live = "takes effect at once", was = "drain")]
    pub(crate) shutdown_timeout: Duration,
    /// Number of network threads.
    #[key(range = 1..=256, default_with = link_threads(), default_as = "the number of processors, at most 8")]
    pub(crate) link_threads: usize,
}

fn link_threads() -> usize {
    std::thread::available_parallelism().map_or(2, std::num::NonZero::get).min(8)
}

/// `[configuration]`: management of the configuration.
#[derive(Debug, Clone, Keys)]
pub(crate) struct ManagementKeys {
    /// How the configuration is managed.
    #[key(default = "api")]
    pub(crate) mode: ManagementMode,
    /// The folder inside which `folder` of `[[cdr]]` must be. It restricts where a change over the API lets the
    /// daemon write.
    #[key(default_as = "`cdr` in the data directory")]
    pub(crate) cdr_root: Option<PathBuf>,
}

/// Management mode of the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Word)]
pub(crate) enum ManagementMode {
    /// Over the API; the file is read only at the first start.
    Api,
    /// By file, which is read at each start and on SIGHUP; the API is read-only.
    File,
}

/// `[engine]`: memory, disk space and retention times of the engine.
#[derive(Debug, Clone, Keys)]
#[keys(restart = "recovery depends on it: memory is allotted and expired entries are dropped at the start")]
pub(crate) struct EngineKeys {
    /// Memory for the contents of waiting messages.
    #[key(size, default = "64MiB")]
    body_cache: usize,
    /// Memory for the page cache of the store.
    #[key(size, default = "256MiB")]
    pub(crate) store_cache: usize,
    /// Minimum time for which the journal keeps records after they are in the tables, for `switchyard restore
    /// --journal`. Requires disk space for everything that is accepted, sent and finished in that time.
    #[key(default = "0s")]
    pub(crate) journal_retention: Duration,
    /// Disk space of the journal for records that event sinks have not read yet. Beyond it, the oldest records are
    /// removed, and the sink gets an event about the gap.
    #[key(size, default = "4GiB")]
    pub(crate) journal_hold: u64,
    /// How long finished messages are kept if there is no archive.
    #[key(default = "3d", live = "takes effect at once")]
    pub(crate) finished_retention: Duration,
    /// How long a DLR that matches no message is kept.
    #[key(default = "1h", was = "receipt-parking")]
    orphan_dlr_retention: Duration,
    /// How long idempotency keys are kept.
    #[key(default = "1d", was = "key-retention")]
    idempotency_retention: Duration,
    /// The digits of the country code. Numbers with and without it denote the same subscriber.
    #[key(check = check_country)]
    country: String,
}

fn check_country(digits: &str) -> Result<(), String> {
    if digits.len() > 4 || !digits.bytes().all(|c| c.is_ascii_digit()) {
        return Err("must be the digits of a country code, such as \"86\"".to_owned());
    }
    Ok(())
}

impl EngineKeys {
    pub(crate) fn settings(&self, pools: &PoolLimitKeys) -> Settings {
        Settings {
            body_cache: self.body_cache,
            orphan_dlr_retention: self.orphan_dlr_retention,
            idempotency_key_retention: self.idempotency_retention,
            country: self.country.clone(),
            pools: PoolLimits { numbers: pools.max_numbers, history: pools.history, ..PoolLimits::default() },
            ..Settings::default()
        }
    }
}

/// `[pools]`: settings of all number pools.
#[derive(Debug, Clone, Keys)]
pub(crate) struct PoolLimitKeys {
    /// Maximum number of numbers in all pools together.
    #[key(range = 1..=1_000_000_000, default = 20_000_000, was = "most-numbers")]
    max_numbers: usize,
    /// Minimum number of events kept per pool.
    #[key(range = 0..=1_000_000_000_000, default = 1_000_000)]
    history: u64,
}

const STRATEGIES: &[(&str, Strategy, &str)] = &[
    ("longest-idle", Strategy::LongestIdle, "The number that was idle for longest."),
    ("random", Strategy::Random, "A random number."),
    ("weighted", Strategy::Weighted, "A random number, by weight."),
    ("sticky", Strategy::Sticky, "The number that the caller had last."),
    ("nearest", Strategy::Nearest, "The number that resembles the caller's most."),
];

/// Maximum quarantine of a number: one year.
const MAX_QUARANTINE: Duration = Duration::from_secs(366 * 86_400);

/// `[[pool]]`: a number pool.
#[derive(Debug, Clone, Keys)]
pub(crate) struct PoolKeys {
    /// The pool's name.
    #[key(example = "support", check = pool_name)]
    pub(crate) name: String,
    /// The partition of the cluster that serves the pool.
    #[key(range = 0..=127, default = 0)]
    pub(crate) partition: u8,
    /// How a number is selected.
    #[key(words = STRATEGIES, default = "longest-idle")]
    strategy: Strategy,
    /// How long a number stays unused after its release; at most one year.
    #[key(default = "0s", check = check_quarantine)]
    quarantine: Duration,
}

fn pool_name(name: &str) -> Result<(), String> {
    name.parse::<PoolName>().map(drop).map_err(|error| error.to_string())
}

fn check_quarantine(quarantine: &Duration) -> Result<(), String> {
    if *quarantine > MAX_QUARANTINE { Err("is longer than a year".to_owned()) } else { Ok(()) }
}

/// A configured pool.
#[derive(Debug, Clone)]
pub(crate) struct ConfiguredPool {
    pub(crate) name: PoolName,
    pub(crate) settings: PoolSettings,
}

impl PoolKeys {
    pub(crate) fn pool(&self) -> Option<ConfiguredPool> {
        let settings = PoolSettings { strategy: self.strategy, quarantine: self.quarantine };
        Some(ConfiguredPool { name: self.name.parse().ok()?, settings })
    }
}

/// `[numbering]`.
#[derive(Debug, Clone, Keys)]
#[keys(check = Self::load)]
pub(crate) struct Numbering {
    /// The number plan document.
    #[key(existing, example = "policies/numbering.toml")]
    document: PathBuf,
    #[key(skip)]
    pub(crate) plans: Option<NumberPlans>,
}

impl Numbering {
    fn load(&mut self, section: &Section<'_>) {
        // A missing file is already reported.
        let Ok(text) = files::read_text(&self.document) else { return };
        match NumberPlans::parse(&text) {
            Ok(plans) => self.plans = Some(plans),
            Err(error) => section.error("document", plan_error(section, &self.document, &error)),
        }
    }
}

/// Describes the errors in a number plan document. For a document sent over the API, only line numbers are given,
/// because the path may name any file that the daemon can read.
fn plan_error(section: &Section<'_>, path: &Path, error: &NumberPlanError) -> String {
    if section.is_file() {
        return format!("{}: {error}", path.display());
    }
    let lines: BTreeSet<usize> = error.0.iter().map(|problem| problem.line).collect();
    let lines: Vec<String> = lines.iter().take(20).map(usize::to_string).collect();
    format!(
        "{} is not a valid number plan document; see line {} (`switchyard check` with this configuration as a file lists the errors)",
        path.display(),
        lines.join(", ")
    )
}

/// `[archive]`: the archive of finished messages.
#[derive(Debug, Clone, Keys)]
pub(crate) struct ArchiveSettings {
    /// `sqlite:FILE` (relative to the data directory), `mysql://`, `postgres://`, or `none`. A password in the URL is
    /// write-only; in its place, `(unchanged)` keeps the present one.
    #[key(name = "url", or_file, default_as = "`sqlite:archive.db`")]
    source: String,
    #[key(flatten)]
    pub(crate) options: ArchiveOptions,
    /// Redaction rules for numbers and texts of messages that are archived from now on.
    pub(crate) redact: ArchiveRedaction,
    /// URL of the archive; `None` if finished messages stay in the store until they expire.
    #[key(skip)]
    pub(crate) url: Option<String>,
}

impl ArchiveSettings {
    /// Sets and checks the URL. The embedded archive is in the data directory, like all files that the daemon writes.
    pub(crate) fn resolve(&mut self, section: &Section<'_>, data: &Path) {
        let file = section.has("url-file");
        let source = if file || section.has("url") { self.source.trim() } else { "sqlite:archive.db" };
        self.url = match source.strip_prefix("sqlite:") {
            Some(path) if !file && !path.starts_with("//") => {
                Some(format!("sqlite:{}", data.join(path).display()))
            }
            _ if source == "none" && !file => None,
            // An unreadable file is already reported.
            _ if source.is_empty() && file => None,
            _ => Some(source.to_owned()),
        };
        if let Some(url) = &self.url
            && let Err(error) = archive::Archive::open(url, self.options)
        {
            section.error(if file { "url-file" } else { "url" }, error.to_string());
        }
    }
}
