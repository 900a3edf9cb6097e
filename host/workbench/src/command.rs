use crate::appliance::{Bound, Hooks, Way, stem};
use crate::component::Component;
use crate::{Language, WorkbenchError, build, cases, inspect, judge, shown, signing, template};
use clap::Subcommand;
use model::Hook;
use serde_json::{Map, Value};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// How often a replay says how far it is.
const PROGRESS: Duration = Duration::from_secs(2);

/// What a plugin's author does, from an empty folder to live traffic and back.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make a folder with a plugin that builds as it stands.
    New {
        /// The language.
        #[arg(long, value_enum)]
        lang: Language,
        /// The hook that it is to serve: router, resolver, delivery-policy or biller.
        #[arg(long, default_value = "router", value_parser = hook)]
        world: Hook,
        /// The folder; otherwise it is named like the plugin.
        #[arg(long)]
        folder: Option<PathBuf>,
        /// The plugin's name.
        name: String,
    },
    /// Build a plugin's folder into NAME.wasm.
    Build {
        /// The folder.
        #[arg(default_value = ".")]
        folder: PathBuf,
        /// Where the component goes, instead of into the folder.
        #[arg(long)]
        out: Option<PathBuf>,
    },
    /// Ask a plugin the questions of a file of cases, in the real host, and compare its answers.
    Test {
        /// The plugin's folder, which is built first, or a component.
        #[arg(default_value = ".")]
        plugin: PathBuf,
        /// The cases; otherwise cases.toml in the folder, or beside the component.
        #[arg(long)]
        cases: Option<PathBuf>,
    },
    /// Make a Rust compiler for plugins from Debian's packages, where rustup cannot add the target.
    Toolchain,
    /// Tell what a component is, and what it will be allowed.
    Inspect {
        /// The component.
        file: PathBuf,
        /// A public key: whether the signature beside the component is its.
        #[arg(long)]
        key: Option<PathBuf>,
    },
    /// Make a key to sign with: FILE, and FILE.pub for the appliance's configuration.
    Keygen {
        /// The secret key's file.
        file: PathBuf,
    },
    /// Sign a component; the signature goes to FILE.wasm.sig.
    Sign {
        /// The secret key.
        #[arg(long)]
        key: PathBuf,
        /// The component.
        file: PathBuf,
    },
    /// Bring a component, and its signature if it has one, into an appliance. It serves nothing yet.
    Push {
        /// The component.
        file: PathBuf,
        /// The plugin's name, where it is not the file's.
        #[arg(long)]
        name: Option<String>,
        /// Which appliance, and for whom.
        #[command(flatten)]
        way: Way,
    },
    /// Make a plugin live.
    Activate {
        /// The hook.
        #[arg(value_parser = hook)]
        hook: Hook,
        /// What is to serve it.
        #[command(flatten)]
        bound: Bound,
        /// Which appliance, and for whom.
        #[command(flatten)]
        way: Way,
    },
    /// Ask a candidate too, and compare its answers with the live ones. Nothing it says is used.
    Shadow {
        /// The hook.
        #[arg(value_parser = hook)]
        hook: Hook,
        /// What is to serve it.
        #[command(flatten)]
        bound: Bound,
        /// Which appliance, and for whom.
        #[command(flatten)]
        way: Way,
    },
    /// Let a candidate decide a share of the traffic.
    Canary {
        /// The hook.
        #[arg(value_parser = hook)]
        hook: Hook,
        /// What is to serve it.
        #[command(flatten)]
        bound: Bound,
        /// Percent of all destinations, 0.01 to 100.
        #[arg(long, default_value_t = 10.0)]
        share: f64,
        /// Which appliance, and for whom.
        #[command(flatten)]
        way: Way,
    },
    /// Take the candidate away; what is live stays.
    Withdraw {
        /// The hook.
        #[arg(value_parser = hook)]
        hook: Hook,
        /// Which appliance, and for whom.
        #[command(flatten)]
        way: Way,
    },
    /// Make the candidate live.
    Promote {
        /// The hook.
        #[arg(value_parser = hook)]
        hook: Hook,
        /// Why, for the audit log.
        #[arg(long)]
        why: Option<String>,
        /// Which appliance, and for whom.
        #[command(flatten)]
        way: Way,
    },
    /// Go back to what was live before.
    Rollback {
        /// The hook.
        #[arg(value_parser = hook)]
        hook: Hook,
        /// Why, for the audit log.
        #[arg(long)]
        why: Option<String>,
        /// Which appliance, and for whom.
        #[command(flatten)]
        way: Way,
    },
    /// Put archived messages through a candidate, and tell what it would have decided otherwise.
    Replay {
        /// What is to serve it.
        #[command(flatten)]
        bound: Bound,
        /// From when on: 2026-11-20T00:00:00Z.
        #[arg(long)]
        from: String,
        /// Until when.
        #[arg(long)]
        until: String,
        /// Messages at most.
        #[arg(long)]
        limit: Option<u64>,
        /// Which appliance, and for whom.
        #[command(flatten)]
        way: Way,
    },
    /// List the versions that an appliance keeps.
    List {
        /// Which appliance, and for whom.
        #[command(flatten)]
        way: Way,
    },
    /// Show one hook: what is live with which settings, what is on trial, and what was live before.
    Show {
        /// The hook.
        #[arg(value_parser = hook)]
        hook: Hook,
        /// Which appliance, and for whom.
        #[command(flatten)]
        way: Way,
    },
    /// Show what happened to a hook since the start, and the questions at which its plugins failed.
    Log {
        /// The hook.
        #[arg(value_parser = hook)]
        hook: Hook,
        /// Which appliance, and for whom.
        #[command(flatten)]
        way: Way,
    },
    /// Tell what serves every hook, what is on trial, and how they do.
    Status {
        /// Which appliance, and for whom.
        #[command(flatten)]
        way: Way,
    },
}

fn hook(name: &str) -> Result<Hook, String> {
    Hook::named(name)
        .ok_or_else(|| format!("no such hook; they are {}", Hook::ALL.map(Hook::name).join(", ")))
}

impl Command {
    /// Does it, speaking on the standard streams.
    #[must_use]
    #[allow(
        clippy::print_stdout,
        clippy::print_stderr,
        reason = "a command line tool speaks on its standard streams"
    )]
    pub fn run(self) -> ExitCode {
        match self.words() {
            Ok(words) => {
                println!("{}", words.trim_end());
                ExitCode::SUCCESS
            }
            Err(error) => {
                eprintln!("switchyard: {error}");
                ExitCode::FAILURE
            }
        }
    }

    fn words(self) -> Result<String, WorkbenchError> {
        match self {
            Self::New { lang, world, folder, name } => {
                let folder = template::write(&name, lang, world, folder)?;
                Ok(template::tour(&folder, lang))
            }
            Self::Build { folder, out } => {
                let built = build(&folder, out.as_deref())?;
                let did = if built.fresh { "up to date" } else { "built" };
                Ok(format!(
                    "{}: {did}, version {}, {} octets",
                    built.path.display(),
                    built.version,
                    built.size
                ))
            }
            Self::Test { plugin, cases } => {
                let (component, folder) = if plugin.is_dir() {
                    (build(&plugin, None)?.path, plugin)
                } else {
                    let folder = plugin.parent().map(PathBuf::from).unwrap_or_default();
                    (plugin, folder)
                };
                let cases = cases::read(&cases.unwrap_or_else(|| folder.join("cases.toml")))?;
                judge::all(&component, &cases)
            }
            Self::Toolchain => Ok(format!("{}: ready", build::toolchain()?.display())),
            Self::Inspect { file, key } => inspect::inspect(&file, key.as_deref()),
            Self::Keygen { file } => {
                let public = signing::keygen(&file)?;
                Ok(format!("{}: keep it secret\n{0}.pub: {public}", file.display()))
            }
            Self::Sign { key, file } => {
                // What is no plugin is not signed by mistake.
                Component::read(&file)?.hook()?;
                Ok(format!("{}: signed", signing::sign(&key, &file)?.display()))
            }
            Self::Push { file, name, way } => {
                let name = name.map_or_else(|| stem(&file), Ok)?;
                way.tell(shown::version, |hooks| hooks.push(&file, &name))
            }
            Self::Activate { hook, bound, way } => {
                let binding = bound.json()?;
                way.tell(shown::record, |hooks| hooks.activate(hook, binding))
            }
            Self::Shadow { hook, bound, way } => {
                let binding = bound.json()?;
                way.tell(shown::record, |hooks| hooks.candidate(hook, binding, None))
            }
            Self::Canary { hook, bound, share, way } => {
                if !(0.01..=100.0).contains(&share) {
                    return Err(WorkbenchError::Usage(format!(
                        "--share {share}: a canary gets 0.01 to 100 percent"
                    )));
                }
                let binding = bound.json()?;
                way.tell(shown::record, |hooks| hooks.candidate(hook, binding, Some(share)))
            }
            Self::Withdraw { hook, way } => way.tell(
                |_| format!("{}: the candidate is taken away", hook.name()),
                |hooks| hooks.withdraw(hook),
            ),
            Self::Promote { hook, why, way } => {
                way.tell(shown::record, |hooks| hooks.order(hook, "promote", why.as_deref()))
            }
            Self::Rollback { hook, why, way } => {
                way.tell(shown::record, |hooks| hooks.order(hook, "rollback", why.as_deref()))
            }
            Self::Status { way } => way.tell(shown::hooks, Hooks::hooks),
            Self::List { way } => way.tell(shown::versions, Hooks::versions),
            Self::Show { hook, way } => way.tell(shown::hook, |hooks| hooks.hook(hook)),
            Self::Log { hook, way } => way.tell(shown::log, |hooks| hooks.hook(hook)),
            Self::Replay { bound, from, until, limit, way } => {
                let mut order = bound.json()?;
                order.insert("from".to_owned(), from.into());
                order.insert("until".to_owned(), until.into());
                if let Some(limit) = limit {
                    order.insert("limit".to_owned(), limit.into());
                }
                way.tell(shown::report, |hooks| replayed(hooks, order))
            }
        }
    }
}

/// Has messages replayed, says from time to time how far it is, and gives the report.
fn replayed(hooks: &Hooks, order: Map<String, Value>) -> Result<Value, WorkbenchError> {
    let id = hooks.start_replay(order)?;
    crate::say(&format!("replay {id} runs"));
    let mut told = Instant::now();
    loop {
        let mut state = hooks.replay(&id)?;
        match state.get("state").and_then(Value::as_str) {
            Some("running") => {
                if told.elapsed() >= PROGRESS {
                    told = Instant::now();
                    let progress = &state["progress"];
                    let expected = progress["expected"].as_u64();
                    let of = expected.map(|expected| format!(" of {expected}")).unwrap_or_default();
                    crate::say(&format!("replay {id}: {}{of} messages read", progress["read"]));
                }
                std::thread::park_timeout(Duration::from_millis(500));
            }
            Some("done") => return Ok(state.get_mut("report").map(Value::take).unwrap_or(state)),
            _ => {
                return Err(WorkbenchError::Replay {
                    title: "the replay failed",
                    detail: client::terminal::json(&state),
                });
            }
        }
    }
}
