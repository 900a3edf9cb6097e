//! `switchyard plugin fuzz`: asks a plugin generated questions, and shrinks the first question on which it violates a
//! property.

mod figures;
mod front_ends;
mod property;
mod questions;
mod report;
mod shrink;
mod vocabulary;

use crate::local_host::LocalHost;
use crate::plugin_host::{CasePeerState, CaseSetup};
use crate::{WorkbenchError, build, cases};
use clap::Args;
use cli::format::number;
use property::Target;
use proptest::strategy::{Strategy as _, ValueTree as _};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use shrink::{Counterexample, Repeat as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use vocabulary::Vocabulary;

/// Questions to one instance. Then a new round begins, with a fresh instance, counters and values.
const ROUND: usize = 256;

/// The questions, and the limits of the run.
#[derive(Debug, Args)]
pub struct FuzzArgs {
    /// The plugin's folder, which is built first, or a component.
    #[arg(default_value = ".")]
    plugin: PathBuf,
    /// The file of cases whose [given] is the setup; default: cases.toml in the folder, or next to the component, if it
    /// exists.
    #[arg(long)]
    cases: Option<PathBuf>,
    /// The policy document; default: the document of [given], or policy.txt in the folder, or an empty document.
    #[arg(long)]
    policy: Option<PathBuf>,
    /// The seed of the questions: the same seed gives the same questions. Default: a random one.
    #[arg(long)]
    seed: Option<u64>,
    /// Maximum number of questions.
    #[arg(long, default_value_t = 10_000)]
    questions: u64,
    /// Maximum time, in seconds.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
}

/// The setup of all questions, and the file that contains it.
struct FuzzSetup {
    setup: CaseSetup,
    /// The file of cases, and its `[given]`.
    given: Option<(PathBuf, CaseSetup)>,
}

impl FuzzArgs {
    /// Fuzzes the plugin. Returns a summary; prints the case of the first violation.
    pub(crate) fn run(&self) -> Result<String, WorkbenchError> {
        let (component, folder) = component_and_folder(&self.plugin)?;
        let host = LocalHost::read(&component)?;
        let setup = self.setup(&folder)?;
        let seed = match self.seed {
            Some(seed) => seed,
            // Short enough to be typed.
            None => u64::from(getrandom::u32().map_err(|error| WorkbenchError::Random(error.to_string()))?),
        };
        let limits = Limits { questions: self.questions, time: Duration::from_secs(self.seconds) };
        let outcome = fuzz(&host, &setup, seed, &limits)?;
        let summary = outcome.summary(&component, seed);
        let Some(found) = outcome.found else { return Ok(summary) };
        crate::print_result(&report::case(&found, seed, setup.given.as_ref()));
        Err(WorkbenchError::Violation { what: found.violation.describe(), summary })
    }

    fn setup(&self, folder: &Path) -> Result<FuzzSetup, WorkbenchError> {
        let read = |path: &Path| std::fs::read_to_string(path).map_err(WorkbenchError::file(path));
        let cases =
            self.cases.clone().or_else(|| Some(folder.join("cases.toml")).filter(|path| path.exists()));
        let given = match cases {
            Some(path) => {
                let setup = cases::read_given(&path)?;
                Some((path, setup))
            }
            None => None,
        };
        let mut setup = given.as_ref().map(|(_, setup)| setup.clone()).unwrap_or_default();
        let policy = folder.join("policy.txt");
        if let Some(path) = &self.policy {
            setup.policy = read(path)?;
        } else if setup.policy.is_empty() && policy.exists() {
            setup.policy = read(&policy)?;
        }
        if given.is_none() {
            // Without a setup of peers, all peers of the document exist.
            let (names, _) = vocabulary::words(&setup.policy);
            setup.peers =
                names.into_iter().map(|name| (name, CasePeerState { links: 1, queued: 0 })).collect();
        }
        Ok(FuzzSetup { setup, given })
    }
}

/// The component of a plugin's folder, which is built first, or of a file; and the folder of its cases.
pub(crate) fn component_and_folder(plugin: &Path) -> Result<(PathBuf, PathBuf), WorkbenchError> {
    if plugin.is_dir() {
        return Ok((build(plugin, None)?.path, plugin.to_owned()));
    }
    Ok((plugin.to_owned(), plugin.parent().map(PathBuf::from).unwrap_or_default()))
}

struct Limits {
    questions: u64,
    time: Duration,
}

/// The result of fuzzing.
struct Outcome {
    asked: u64,
    elapsed: Duration,
    out_of_time: bool,
    /// Deadlines that were exceeded once, but not when the question was repeated.
    slow: u64,
    found: Option<Counterexample>,
}

impl Outcome {
    fn summary(&self, component: &Path, seed: u64) -> String {
        let Self { asked, elapsed, out_of_time, slow, found } = self;
        let name = component.file_name().unwrap_or_default().to_string_lossy();
        let end = match (found, out_of_time) {
            (Some(_), _) => "the last one violates a property",
            (None, true) => "no violation until the time was over",
            (None, false) => "no violation",
        };
        let slow = match slow {
            0 => String::new(),
            count => format!("; {} exceeded the deadline, but not when repeated", number(*count)),
        };
        let (asked, seconds) = (number(*asked), elapsed.as_secs_f64());
        format!("{name}: {asked} questions in {seconds:.1} s, {end}{slow}; seed {seed}")
    }
}

fn fuzz(
    host: &LocalHost,
    FuzzSetup { setup, given }: &FuzzSetup,
    seed: u64,
    limits: &Limits,
) -> Result<Outcome, WorkbenchError> {
    let vocabulary = Vocabulary::of(setup);
    let strategy = questions::questions(host.hook(), &vocabulary);
    let figures = figures::figures(host.hook(), &vocabulary, setup);
    let mut runner = runner(seed);
    let names = vocabulary.names.iter().chain(&vocabulary.peers).map(String::as_str).collect();
    let target = Target { host, names };
    let own_figures = setup.quality.len();
    let started = Instant::now();
    let mut outcome = Outcome { asked: 0, elapsed: Duration::ZERO, out_of_time: false, slow: 0, found: None };
    'rounds: while outcome.asked < limits.questions && !outcome.out_of_time {
        // Each round has other figures of peers, after those of the setup.
        let given_setup = setup;
        let mut setup = setup.clone();
        let generated =
            figures.new_tree(&mut runner).map_err(|why| WorkbenchError::Usage(why.to_string()))?;
        setup.quality.extend(generated.current());
        let setup = &setup;
        let sessions = target.open(setup)?;
        let (mut trees, mut asked) = (Vec::new(), Vec::new());
        while trees.len() < ROUND && outcome.asked < limits.questions && !outcome.out_of_time {
            let tree =
                strategy.new_tree(&mut runner).map_err(|why| WorkbenchError::Usage(why.to_string()))?;
            asked.push(tree.current());
            trees.push(tree);
            outcome.asked += 1;
            let violation = sessions.check(setup, &asked);
            outcome.elapsed = started.elapsed();
            outcome.out_of_time = outcome.elapsed >= limits.time;
            let Some(violation) = violation else { continue };
            // Mostly the figures do not matter, and sessions without them start sooner.
            let repeats = target.repeat(given_setup, &asked, &violation)?.is_some();
            let setup = if repeats { given_setup } else { setup };
            let shrunk = shrink::shrink(&target, setup, trees, violation.clone())?;
            let shrunk =
                shrunk.map(|found| shrink::shrink_figures(&target, found, own_figures)).transpose()?;
            outcome.found = match shrunk {
                Some(found) if given.is_none() => Some(shrink::shrink_peers(&target, found)?),
                // On a busy machine a call may be slow once.
                None if violation.kind() == DEADLINE => {
                    outcome.slow += 1;
                    continue 'rounds;
                }
                None => Some(Counterexample { setup: setup.clone(), questions: asked, violation }),
                found => found,
            };
            break 'rounds;
        }
    }
    Ok(outcome)
}

/// The kind of the fault of a slow call.
const DEADLINE: &str = "deadline";

/// The source of randomness for a seed.
fn runner(seed: u64) -> TestRunner {
    let mut whole = [0; 32];
    whole[..8].copy_from_slice(&seed.to_le_bytes());
    TestRunner::new_with_rng(Config::default(), TestRng::from_seed(RngAlgorithm::ChaCha, &whole))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case_details::CaseChanges;
    use crate::case_writer;
    use crate::cases::{Case, ExpectedAnswer};
    use crate::plugin_host::{CaseAdvice, CaseQuestion};
    use model::Hook;

    fn generate(hook: Hook, seed: u64, count: usize) -> Vec<CaseQuestion> {
        let policy = "route 8613 north".to_owned();
        let strategy =
            questions::questions(hook, &Vocabulary::of(&CaseSetup { policy, ..CaseSetup::default() }));
        let mut runner = runner(seed);
        (0..count).map(|_| strategy.new_tree(&mut runner).unwrap().current()).collect()
    }

    #[test]
    fn a_seed_repeats_the_questions() {
        for hook in Hook::ALL {
            assert_eq!(generate(hook, 5, 50), generate(hook, 5, 50));
            assert_ne!(generate(hook, 5, 50), generate(hook, 6, 50));
        }
    }

    #[test]
    fn generated_questions_can_be_written_and_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cases.toml");
        for hook in Hook::ALL {
            let all = generate(hook, 9, 600);
            let written: Vec<Case> = all
                .chunks(3)
                .enumerate()
                .map(|(number, questions)| Case {
                    name: number.to_string(),
                    setup: CaseSetup::default(),
                    questions: questions.to_vec(),
                    expected: ExpectedAnswer::Fault("trap".to_owned()),
                    sender: None,
                    text: None,
                    changes: CaseChanges::default(),
                    note: None,
                    advice: CaseAdvice::default(),
                    wait: None,
                })
                .collect();
            let text: String =
                written.iter().map(|case| case_writer::write(case, &CaseSetup::default())).collect();
            std::fs::write(&path, &text).unwrap();
            for (read, written) in cases::read(&path).unwrap().iter().zip(&written) {
                assert_eq!(read, written);
            }
        }
    }
}
