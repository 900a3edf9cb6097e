//! `switchyard plugin profile`: profiles a plugin while it answers its cases.

mod call_tree;
mod flame_graph;
mod function_table;

use crate::cases::Case;
use crate::fuzz::component_and_folder;
use crate::hooks_api::HooksApi;
use crate::local_host::{LocalHost, Session, peer_names};
use crate::manifest::Manifest;
use crate::plugin_host::{CaseAnswer, CaseQuestion};
use crate::{PluginLanguage, WorkbenchError, cases};
use api::InstanceUse;
use call_tree::CallTree;
use clap::Args;
use cli::format::{number, plural};
use client::ConnectionArgs;
use hooks::{Profile, Profiler};
use model::Hook;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The time between two samples, at least.
const INTERVAL: Duration = Duration::from_micros(50);

/// The plugin, its cases, and the limits of the run.
#[derive(Debug, Args)]
pub struct ProfileArgs {
    /// The plugin's folder, which is built first, or a component.
    #[arg(default_value = ".")]
    plugin: PathBuf,
    /// The cases; default: cases.toml in the folder, or next to the component.
    #[arg(long)]
    cases: Option<PathBuf>,
    /// Ask about this number of newest messages of an appliance's archive instead, 1 to 100, with their recorded host
    /// answers and the policy document of the live plugin; for the hooks screen and router.
    #[arg(long, value_name = "N", conflicts_with = "cases")]
    replay: Option<u64>,
    /// With --replay: the plugin on the appliance. NAME alone is the live version. Default: the first live plugin.
    #[arg(long = "plugin", value_name = "NAME[@VERSION]", requires = "replay")]
    replayed: Option<String>,
    /// The flame graph's file; default: NAME.svg in the current folder.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Also write the stacks as text to this file: a line for each stack, with its functions separated by ';', and its
    /// samples.
    #[arg(long, value_name = "FILE")]
    folded: Option<PathBuf>,
    /// Number of samples after which the run ends.
    #[arg(long, default_value_t = 2_000)]
    samples: u64,
    /// Maximum number of rounds over all cases.
    #[arg(long, default_value_t = 10_000_000)]
    rounds: u64,
    /// Maximum time, in seconds.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// The appliance, for --replay.
    #[command(flatten)]
    connection: ConnectionArgs,
}

/// Counts of the questions of a profile.
#[derive(Debug, Clone, Copy, Default)]
struct Asked {
    cases: u64,
    rounds: u64,
    calls: u64,
    faults: u64,
}

impl ProfileArgs {
    /// Profiles the plugin, and writes the flame graph. Returns a summary and the functions that take the most time.
    pub(crate) fn run(&self) -> Result<String, WorkbenchError> {
        let (component, folder) = component_and_folder(&self.plugin)?;
        let host = LocalHost::read(&component)?;
        let cases = match self.replay {
            Some(last) => self.replayed_cases(host.hook(), last)?,
            None => cases::read(&self.cases.clone().unwrap_or_else(|| folder.join("cases.toml")))?,
        };
        let octets = std::fs::read(&component).map_err(WorkbenchError::file(&component))?;
        let profiler =
            Profiler::start(&octets, INTERVAL).map_err(|error| WorkbenchError::Profile(error.to_string()))?;
        let host = host.with_profiler(profiler.clone());
        let asked = self.ask(&host, &profiler, &cases)?;
        let profile = host.profile().unwrap_or_default();
        if profile.stacks.is_empty() {
            return Err(WorkbenchError::Profile(format!(
                "no sample in {} of {}: give it more --rounds or --seconds",
                plural(asked.rounds, "round", "rounds"),
                plural(asked.cases, "case", "cases"),
            )));
        }
        let name = component.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let tree = CallTree::of(&profile);
        let out = self.out.clone().unwrap_or_else(|| PathBuf::from(format!("{name}.svg")));
        write(&out, &flame_graph::draw(&tree, &format!("{name}: {}", describe(&profile, asked))))?;
        let mut text = format!("{}: {}\n", component.display(), describe(&profile, asked));
        if asked.faults > 0 {
            text.push_str(&format!("{} of {} calls failed\n", number(asked.faults), number(asked.calls)));
        }
        text.push_str(&function_table::write(&profile));
        if let Some(words) = Manifest::read(&folder).ok().and_then(|manifest| interpreter(manifest.language))
        {
            text.push_str(&format!("{words}\n"));
        }
        if let Some(folded) = &self.folded {
            write(folded, &tree.folded())?;
            text.push_str(&format!("{}: the stacks as text\n", folded.display()));
        }
        text.push_str(&format!("{}: the flame graph", out.display()));
        Ok(text)
    }

    /// Cases of the newest messages of an appliance.
    fn replayed_cases(&self, hook: Hook, last: u64) -> Result<Vec<Case>, WorkbenchError> {
        let hooks = HooksApi::connect(self.connection.clone())?;
        let made = hooks.newest_cases(hook, self.replayed.as_deref(), last)?;
        if made.is_empty() {
            return Err(WorkbenchError::Profile("the appliance's archive has no messages yet".to_owned()));
        }
        let file = tempfile::NamedTempFile::new().map_err(WorkbenchError::file(&std::env::temp_dir()))?;
        write(file.path(), &made.iter().map(|made| made.case.as_str()).collect::<String>())?;
        cases::read(file.path())
    }

    /// Asks the questions of all cases repeatedly. The instance of a case is kept from round to round, and so are its
    /// counters and values.
    fn ask(
        &self,
        host: &LocalHost,
        profiler: &Arc<Profiler>,
        cases: &[Case],
    ) -> Result<Asked, WorkbenchError> {
        let mut sessions: Vec<(Session, Vec<&CaseQuestion>)> = Vec::new();
        for case in cases {
            let is_call = |question: &&CaseQuestion| !matches!(question, CaseQuestion::Configure);
            let questions: Vec<&CaseQuestion> = case.questions.iter().filter(is_call).collect();
            if questions.is_empty() {
                continue;
            }
            let names: Vec<&str> = questions.iter().copied().flat_map(peer_names).collect();
            let started = host.start(&case.setup, &names, InstanceUse::Warm);
            // A case may expect that its document is refused.
            if let Ok(session) = started.map_err(WorkbenchError::Profile)? {
                sessions.push((session, questions));
            }
        }
        if sessions.is_empty() {
            return Err(WorkbenchError::Profile("no case asks the plugin anything but configure".to_owned()));
        }
        profiler.clear();
        let (started, limit) = (Instant::now(), Duration::from_secs(self.seconds));
        let mut asked = Asked { cases: sessions.len() as u64, ..Asked::default() };
        while asked.rounds < self.rounds && profiler.samples() < self.samples && started.elapsed() < limit {
            asked.rounds += 1;
            for (session, questions) in &sessions {
                for question in questions {
                    asked.calls += 1;
                    asked.faults += u64::from(matches!(session.ask(question), CaseAnswer::Fault(_)));
                }
            }
        }
        Ok(asked)
    }
}

fn describe(profile: &Profile, asked: Asked) -> String {
    format!(
        "{}, one in {:.1} ms; {} of {}",
        plural(profile.samples, "sample", "samples"),
        profile.interval.as_secs_f64() * 1000.0,
        plural(asked.rounds, "round", "rounds"),
        plural(asked.cases, "case", "cases"),
    )
}

/// The interpreter whose functions the profile shows, if the plugin's own code is interpreted.
fn interpreter(language: PluginLanguage) -> Option<&'static str> {
    match language {
        PluginLanguage::Js => {
            Some("The functions are those of the JavaScript engine, QuickJS, which runs the plugin.")
        }
        PluginLanguage::Python => {
            Some("The functions are those of the Python interpreter, which runs the plugin.")
        }
        PluginLanguage::Rust | PluginLanguage::C | PluginLanguage::Go => None,
    }
}

/// The beginning of a text.
fn shorten(text: &str, characters: usize) -> String {
    if text.chars().count() <= characters {
        return text.to_owned();
    }
    text.chars().take(characters.saturating_sub(1)).chain(['…']).collect()
}

fn write(path: &Path, text: &str) -> Result<(), WorkbenchError> {
    std::fs::write(path, text).map_err(WorkbenchError::file(path))
}
