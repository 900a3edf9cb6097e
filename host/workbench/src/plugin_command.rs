use crate::component::Component;
use crate::dev::DevArgs;
use crate::distribution::{self, ArtifactView, RegistryArgs};
use crate::fuzz::{FuzzArgs, component_and_folder};
use crate::hooks_api::{ApiArgs, BindingArgs, HooksApi, stem};
use crate::profile::ProfileArgs;
use crate::{
    PluginLanguage, WorkbenchError, build, case_check, cases, format, inspect, log_follow, plugin_sources,
    signing, template,
};
use api::{FaultCase, MessageCase, ReplayHook, ReplayPhase, ReplayReport, ReplayRequest, TimeValue};
use clap::Subcommand;
use cli::format::plural;
use client::{ConnectionArgs, Progress};
use model::Hook;
use oci::ArtifactLocation;
use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// The interval of progress messages of a replay.
const PROGRESS: Duration = Duration::from_secs(2);

/// Create, build, test, deploy and observe plugins.
#[derive(Debug, Subcommand)]
pub enum PluginCommand {
    /// Create a folder with a plugin that builds without changes.
    New {
        /// The language.
        #[arg(long, value_enum)]
        lang: PluginLanguage,
        /// The hook that it serves: screen, lookup, router, resolver, delivery-policy, receipt, biller, peer or front-end.
        #[arg(long, default_value = "router", value_parser = hook)]
        world: Hook,
        /// The folder; default: the plugin's name.
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
        /// The component's file; default: NAME.wasm in the folder.
        #[arg(long)]
        out: Option<PathBuf>,
    },
    /// Test a plugin in the real host with a file of cases, and compare its answers.
    Test {
        /// The plugin's folder, which is built first, or a component.
        #[arg(default_value = ".")]
        plugin: PathBuf,
        /// The cases; default: cases.toml in the folder, or next to the component.
        #[arg(long)]
        cases: Option<PathBuf>,
    },
    /// Ask a plugin generated questions in the real host, and print the first question with a fault or an unstable answer as
    /// a case.
    Fuzz(FuzzArgs),
    /// Profile a plugin while it answers its cases in the real host, and draw a flame graph.
    ///
    /// Samples are taken at the starts of functions and at the heads of loops. Host functions have their own frames. With
    /// debug information, which `plugin build` writes next to the component, frames have files and lines.
    Profile(ProfileArgs),
    /// Build and test a plugin's folder after each change, and try it in shadow on an appliance, until Ctrl-C.
    Dev(DevArgs),
    /// Build a Rust compiler for plugins from Debian's packages, if rustup cannot add the target.
    Toolchain,
    /// Describe a component and its permissions.
    Inspect {
        /// The component.
        file: PathBuf,
        /// A public key, to verify the component's signature.
        #[arg(long)]
        key: Option<PathBuf>,
    },
    /// Create a signing key: FILE, and FILE.pub for the appliance's configuration.
    Keygen {
        /// The secret key's file.
        file: PathBuf,
    },
    /// Sign a component; the signature is written to FILE.wasm.sig.
    Sign {
        /// The secret key.
        #[arg(long)]
        key: PathBuf,
        /// The component.
        file: PathBuf,
    },
    /// Upload a component to an appliance, without activating it, or write it to a registry or a folder.
    ///
    /// The signature, NAME.wasm.sig, and the bill of materials, NAME.sbom.json or NAME.bom.json, are included if they exist.
    /// `plugin build` writes a bill of materials.
    Push {
        /// The component's file, or an artifact in a registry or in a folder: oci://HOST/REPOSITORY:TAG, oci-layout:FOLDER:TAG. A
        /// digest in place of the tag, @sha256:DIGEST, always identifies the same artifact.
        #[arg(value_name = "FILE|LOCATION")]
        source: PathBuf,
        /// The registry or the folder to write the file to: oci://HOST/REPOSITORY:TAG or oci-layout:FOLDER:TAG. Default: upload to
        /// the appliance.
        #[arg(value_name = "LOCATION")]
        target: Option<String>,
        /// The plugin's name on the appliance; default: the file's name.
        #[arg(long, conflicts_with = "target")]
        name: Option<String>,
        /// The bill of materials of the component's file, in SPDX or CycloneDX as JSON; default: the file next to the
        /// component.
        #[arg(long, value_name = "FILE")]
        sbom: Option<PathBuf>,
        /// The registry.
        #[command(flatten)]
        registry: RegistryArgs,
        /// The appliance, and the output format.
        #[command(flatten)]
        api: ApiArgs,
    },
    /// Let the appliance pull a plugin from one of its sources, or read a component from a registry or a folder into a file.
    ///
    /// The sources are in the appliance's configuration, `[plugins] sources`. The appliance stores the plugin without
    /// activating it. A component that is read into a file gets its signature and its bill of materials in the same folder.
    Pull {
        /// A plugin of a source, SOURCE/PLUGIN:TAG, which the appliance pulls; or an artifact, oci://HOST/REPOSITORY:TAG or
        /// oci-layout:FOLDER:TAG, which is read into a file. A digest in place of the tag, @sha256:DIGEST, always identifies
        /// the same artifact.
        #[arg(value_name = "SOURCE/PLUGIN:TAG|LOCATION")]
        source: String,
        /// The plugin's name on the appliance; default: its name in the source.
        #[arg(long, conflicts_with = "out")]
        name: Option<String>,
        /// The component's file, which must not exist; default: its name in the artifact, or the repository's name.
        #[arg(long)]
        out: Option<PathBuf>,
        /// The registry.
        #[command(flatten)]
        registry: RegistryArgs,
        /// The appliance, and the output format.
        #[command(flatten)]
        api: ApiArgs,
    },
    /// List the sources from which the appliance can pull plugins.
    Sources {
        /// The appliance, and the output format.
        #[command(flatten)]
        api: ApiArgs,
    },
    /// List the tags of a plugin in a source of the appliance.
    Tags {
        /// The plugin.
        #[arg(value_name = "SOURCE/PLUGIN")]
        plugin: String,
        /// The appliance, and the output format.
        #[command(flatten)]
        api: ApiArgs,
    },
    /// List the tags of pulled plugins that now resolve to another artifact. Nothing is pulled.
    Outdated {
        /// The appliance, and the output format.
        #[command(flatten)]
        api: ApiArgs,
    },
    /// Print the bill of materials (SBOM) of a version that the appliance stores.
    Sbom {
        /// The version.
        #[arg(value_name = "NAME@VERSION")]
        plugin: String,
        /// Write it to this file, which must not exist.
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
        /// The appliance.
        #[command(flatten)]
        connection: ConnectionArgs,
    },
    /// Write the contract with plugins, the WIT package switchyard:hooks, to a registry or a folder.
    Contract {
        /// The registry or the folder: oci://HOST/REPOSITORY:TAG or oci-layout:FOLDER:TAG.
        #[arg(value_name = "LOCATION")]
        target: String,
        /// The registry.
        #[command(flatten)]
        registry: RegistryArgs,
        /// Print JSON, for programs.
        #[arg(long)]
        json: bool,
    },
    /// Make a plugin live.
    Activate {
        /// The hook.
        #[arg(value_parser = hook)]
        hook: Hook,
        /// The binding.
        #[command(flatten)]
        binding_args: BindingArgs,
        /// The appliance, and the output format.
        #[command(flatten)]
        api: ApiArgs,
    },
    /// Run a candidate in shadow: compare its answers with those of the live plugin, without using them.
    Shadow {
        /// The hook.
        #[arg(value_parser = hook)]
        hook: Hook,
        /// The binding.
        #[command(flatten)]
        binding_args: BindingArgs,
        /// The appliance, and the output format.
        #[command(flatten)]
        api: ApiArgs,
    },
    /// Let a candidate decide a share of the traffic.
    Canary {
        /// The hook.
        #[arg(value_parser = hook)]
        hook: Hook,
        /// The binding.
        #[command(flatten)]
        binding_args: BindingArgs,
        /// Percent of all destinations, 0.01 to 100.
        #[arg(long, default_value_t = 10.0)]
        share: f64,
        /// The appliance, and the output format.
        #[command(flatten)]
        api: ApiArgs,
    },
    /// End the trial of the candidate; the live plugin stays.
    Withdraw {
        /// The hook.
        #[arg(value_parser = hook)]
        hook: Hook,
        /// The appliance, and the output format.
        #[command(flatten)]
        api: ApiArgs,
    },
    /// Make the candidate live.
    Promote {
        /// The hook.
        #[arg(value_parser = hook)]
        hook: Hook,
        /// The reason, for the audit log.
        #[arg(long)]
        why: Option<String>,
        /// The appliance, and the output format.
        #[command(flatten)]
        api: ApiArgs,
    },
    /// Go back to the previous live plugin.
    Rollback {
        /// The hook.
        #[arg(value_parser = hook)]
        hook: Hook,
        /// The reason, for the audit log.
        #[arg(long)]
        why: Option<String>,
        /// The appliance, and the output format.
        #[command(flatten)]
        api: ApiArgs,
    },
    /// Replay archived messages through a candidate, and report the decisions that would differ.
    Replay {
        /// The hook: screen, lookup, router, biller, receipt or peer.
        #[arg(long, default_value = "router", value_parser = replay_hook)]
        hook: ReplayHook,
        /// The binding.
        #[command(flatten)]
        binding_args: BindingArgs,
        /// Start of the time range, such as 2026-11-20T00:00:00Z.
        #[arg(long)]
        from: String,
        /// End of the time range.
        #[arg(long)]
        until: String,
        /// Maximum number of messages.
        #[arg(long)]
        limit: Option<u64>,
        /// Show the differences in requests to peers. They contain message texts, so this needs the permission to read
        /// texts.
        #[arg(long)]
        body: bool,
        /// The appliance, and the output format.
        #[command(flatten)]
        api: ApiArgs,
    },
    /// List the plugin versions that an appliance stores.
    List {
        /// The appliance, and the output format.
        #[command(flatten)]
        api: ApiArgs,
    },
    /// Print the JSON Schema of a plugin's policy document, for editors.
    Schema {
        /// NAME@VERSION on the appliance, or the component's file: NAME.wasm.
        plugin: String,
        /// The appliance, and the output format.
        #[command(flatten)]
        api: ApiArgs,
    },
    /// Show one hook: the live plugin with its settings, the candidate on trial, and the history.
    Show {
        /// The hook.
        #[arg(value_parser = hook)]
        hook: Hook,
        /// The appliance, and the output format.
        #[command(flatten)]
        api: ApiArgs,
    },
    /// Show the events of a hook since the start, and the questions on which its plugins failed.
    Log {
        /// The hook.
        #[arg(value_parser = hook)]
        hook: Hook,
        /// Print entries oldest first, and then new entries as they occur, until Ctrl-C; with --json one object a line.
        #[arg(long)]
        follow: bool,
        /// The appliance, and the output format.
        #[command(flatten)]
        api: ApiArgs,
    },
    /// Create a case from a fault on the appliance: its question, with unmasked numbers and its text, the policy document and,
    /// if the appliance has an archive, the host's answers.
    Case {
        /// The hook.
        #[arg(value_parser = hook)]
        hook: Hook,
        /// The number of the fault, as `switchyard plugin log` shows it; default: the last one.
        fault: Option<u64>,
        /// Create cases from this number of newest messages of the archive instead, 1 to 100, with the plugin's decisions;
        /// for the hooks screen and router.
        #[arg(long, value_name = "N", conflicts_with = "fault")]
        last: Option<u64>,
        /// Create cases from this archived message instead, with the live plugins' decisions; for the hooks screen, router
        /// and receipt.
        #[arg(long, value_name = "ID", conflicts_with_all = ["fault", "last"])]
        message: Option<String>,
        /// With --last: the plugin. NAME alone is the live version. Default: the first live plugin.
        #[arg(long, value_name = "NAME[@VERSION]", requires = "last")]
        plugin: Option<String>,
        /// Append the case to this file instead of printing it.
        #[arg(long, value_name = "FILE")]
        append: Option<PathBuf>,
        /// The appliance, and the output format.
        #[command(flatten)]
        api: ApiArgs,
    },
    /// Show the live plugins of all hooks, the candidates on trial, and their counts.
    Status {
        /// The appliance, and the output format.
        #[command(flatten)]
        api: ApiArgs,
    },
}

fn hook(name: &str) -> Result<Hook, String> {
    Hook::named(name)
        .ok_or_else(|| format!("no such hook; they are {}", Hook::ALL.map(Hook::name).join(", ")))
}

impl PluginCommand {
    /// Runs the command. Uses the standard streams.
    #[must_use]
    #[allow(
        clippy::print_stdout,
        clippy::print_stderr,
        reason = "a command line tool uses the standard streams"
    )]
    pub fn run(self) -> ExitCode {
        match self.execute() {
            Ok(text) => {
                // Long-running commands print their results themselves.
                if !text.is_empty() {
                    println!("{}", text.trim_end());
                }
                ExitCode::SUCCESS
            }
            Err(error) => {
                eprintln!("switchyard: {error}");
                ExitCode::FAILURE
            }
        }
    }

    fn execute(self) -> Result<String, WorkbenchError> {
        match self {
            Self::New { lang, world, folder, name } => {
                let folder = template::write(&name, lang, world, folder)?;
                Ok(template::describe_files(&folder, lang))
            }
            Self::Build { folder, out } => {
                let output = build(&folder, out.as_deref())?;
                let did = if output.up_to_date { "up to date" } else { "built" };
                Ok(format!(
                    "{}: {did}, version {}, {} octets",
                    output.path.display(),
                    output.version,
                    output.size
                ))
            }
            Self::Test { plugin, cases } => {
                let (component, folder) = component_and_folder(&plugin)?;
                let cases = cases::read(&cases.unwrap_or_else(|| folder.join("cases.toml")))?;
                case_check::run_cases(&component, &cases)
            }
            Self::Fuzz(fuzz_args) => fuzz_args.run(),
            Self::Profile(profile_args) => profile_args.run(),
            Self::Dev(dev_args) => dev_args.run(),
            Self::Toolchain => Ok(format!("{}: ready", build::toolchain()?.display())),
            Self::Inspect { file, key } => inspect::inspect(&file, key.as_deref()),
            Self::Keygen { file } => {
                let public = signing::keygen(&file)?;
                Ok(format!("{}: keep it secret\n{0}.pub: {public}", file.display()))
            }
            Self::Sign { key, file } => {
                // Do not sign a file by mistake that is not a plugin.
                Component::read(&file)?.hook()?;
                Ok(format!("{}: signed", signing::sign(&key, &file)?.display()))
            }
            Self::Push { source, target: Some(target), sbom, registry, api, .. } => {
                let pushed = distribution::push(&source, &target, sbom.as_deref(), &registry)?;
                Ok(format::result(api.json, &pushed, ArtifactView::text))
            }
            Self::Push { source, name, sbom, registry, api, .. } => {
                let Some(location) = source.to_str().filter(|text| ArtifactLocation::is_location(text))
                else {
                    let name = name.map_or_else(|| stem(&source), Ok)?;
                    return api.run(format::version, |hooks| hooks.push(&source, &name, sbom.as_deref()));
                };
                if sbom.is_some() {
                    return Err(WorkbenchError::Usage(format!(
                        "{location}: --sbom is for a component's file; an artifact has its own bill of materials"
                    )));
                }
                let pulled = distribution::pull(location, &registry)?;
                let name = name.map_or_else(|| pulled.name(), Ok)?;
                crate::print_status(&format!("{}: uploading", pulled.bound()));
                let (component, signature, bill) = (pulled.component(), pulled.signature(), pulled.bill());
                api.run(format::version, |hooks| hooks.upload(&name, component, signature, bill))
            }
            Self::Pull { source, name: None, out, registry, api }
                if ArtifactLocation::is_location(&source) =>
            {
                let pulled = distribution::pull(&source, &registry)?.write(out)?;
                Ok(format::result(api.json, &pulled, ArtifactView::text))
            }
            Self::Pull { source, name, out: None, registry, api } if registry.is_default() => {
                let request = plugin_sources::parse_pull_request(&source, name)?;
                api.run(format::version, |hooks| hooks.pull(&request))
            }
            Self::Pull { source, .. } => Err(WorkbenchError::Usage(format!(
                "{source}: --name is for a plugin of a source of the appliance, SOURCE/PLUGIN:TAG; --out and the options of a registry \
                 are for a location, oci://… or oci-layout:…"
            ))),
            Self::Sources { api } => {
                api.run(|sources| plugin_sources::sources_text(sources), HooksApi::plugin_sources)
            }
            Self::Tags { plugin, api } => {
                api.run(plugin_sources::tags_text, |hooks| plugin_sources::list_tags(hooks, &plugin))
            }
            Self::Outdated { api } => {
                api.run(|outdated| plugin_sources::outdated_text(outdated), HooksApi::outdated_plugins)
            }
            Self::Sbom { plugin, out, connection } => {
                let octets = HooksApi::connect(connection)?.sbom(&plugin)?;
                plugin_sources::write_sbom(&octets, out.as_deref())
            }
            Self::Contract { target, registry, json } => {
                let pushed = distribution::push_contract(&target, &registry)?;
                Ok(format::result(json, &pushed, ArtifactView::text))
            }
            Self::Activate { hook, binding_args, api } => {
                let request = binding_args.request()?;
                api.run(format::live, |hooks| hooks.activate(hook, &request))
            }
            Self::Shadow { hook, binding_args, api } => {
                let request = binding_args.request()?;
                api.run(format::candidate, |hooks| hooks.start_trial(hook, request, None))
            }
            Self::Canary { hook, binding_args, share, api } => {
                if !(0.01..=100.0).contains(&share) {
                    return Err(WorkbenchError::Usage(format!(
                        "--share {share}: a canary gets 0.01 to 100 percent"
                    )));
                }
                let request = binding_args.request()?;
                api.run(format::candidate, |hooks| hooks.start_trial(hook, request, Some(share)))
            }
            Self::Withdraw { hook, api } => {
                api.run(|_| format!("{}: the trial has ended", hook.name()), |hooks| hooks.end_trial(hook))
            }
            Self::Promote { hook, why, api } => api.run(format::live, |hooks| hooks.promote(hook, why)),
            Self::Rollback { hook, why, api } => api.run(format::live, |hooks| hooks.rollback(hook, why)),
            Self::Status { api } => api.run(|hooks| format::hooks(hooks), HooksApi::hooks),
            Self::List { api } => api.run(|versions| format::versions(versions), HooksApi::versions),
            Self::Schema { plugin, .. } if plugin.ends_with(".wasm") => {
                let schema = inspect::policy_schema(Path::new(&plugin))?;
                schema.map(|schema| format!("{schema:#}")).ok_or_else(|| {
                    WorkbenchError::Usage(format!("{plugin} has no schema of its policy document"))
                })
            }
            Self::Schema { plugin, api } => {
                api.run(|schema| format!("{schema:#}"), |hooks| hooks.policy_schema(&plugin))
            }
            Self::Show { hook, api } => api.run(format::hook, |hooks| hooks.hook(hook)),
            Self::Case { hook, last, message, plugin, append, api, .. }
                if last.is_some() || message.is_some() =>
            {
                let made = |made: &Vec<MessageCase>| match &append {
                    Some(file) => {
                        let count = plural(made.len() as u64, "case", "cases");
                        format!("{}: {count} of messages appended", file.display())
                    }
                    None => {
                        made.iter().map(|made| made.case.as_str()).collect::<String>().trim_start().to_owned()
                    }
                };
                api.run(made, |hooks| {
                    let made = match (&message, last) {
                        (Some(message), _) => hooks.cases_of_message(hook, message)?,
                        (None, last) => hooks.newest_cases(hook, plugin.as_deref(), last.unwrap_or(1))?,
                    };
                    if let Some(file) = &append {
                        append_text(file, &made.iter().map(|made| made.case.as_str()).collect::<String>())?;
                    }
                    Ok(made)
                })
            }
            Self::Case { hook, fault, append, api, .. } => {
                let made = |made: &FaultCase| match &append {
                    Some(file) => {
                        format!("{}: a case of {} {} appended", file.display(), made.plugin, made.version)
                    }
                    None => made.case.trim_start().to_owned(),
                };
                api.run(made, |hooks| {
                    let id = fault.map_or_else(|| hooks.last_fault(hook), Ok)?;
                    let made = hooks.fault_case(hook, id)?;
                    if let Some(file) = &append {
                        append_text(file, &made.case)?;
                    }
                    Ok(made)
                })
            }
            Self::Log { hook, follow: true, api } => {
                let (hooks, json) = api.connect()?;
                log_follow::follow(&hooks, hook, json)
            }
            Self::Log { hook, follow: false, api } => api.run(format::log, |hooks| hooks.hook(hook)),
            Self::Replay { hook, binding_args, from, until, limit, body, api } => {
                let request = ReplayRequest {
                    hook: Some(hook),
                    from: Some(TimeValue::Text(from)),
                    until: Some(TimeValue::Text(until)),
                    limit,
                    activation: binding_args.request()?,
                    ..ReplayRequest::default()
                };
                api.run(format::report, |hooks| run_replay(hooks, &request, body))
            }
        }
    }
}

fn replay_hook(name: &str) -> Result<ReplayHook, String> {
    ReplayHook::named(name)
        .ok_or_else(|| "must be screen, lookup, router, biller, receipt or peer".to_owned())
}

fn append_text(path: &Path, text: &str) -> Result<(), WorkbenchError> {
    let file = std::fs::OpenOptions::new().append(true).create(true).open(path);
    let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(WorkbenchError::file(path))
}

/// Runs a replay, prints its progress, and returns the report.
fn run_replay(hooks: &HooksApi, request: &ReplayRequest, body: bool) -> Result<ReplayReport, WorkbenchError> {
    let id = hooks.start_replay(request)?.id;
    let is_terminal = std::io::stderr().is_terminal();
    if !is_terminal {
        crate::print_status(&format!("replay {id} runs"));
    }
    let mut bar = None;
    let mut reported_at = Instant::now();
    loop {
        let state = hooks.replay(&id)?;
        if state.state == ReplayPhase::Running {
            let progress = state.progress;
            if is_terminal {
                let bar =
                    bar.get_or_insert_with(|| Progress::for_items(true, "messages read", progress.expected));
                bar.set(progress.read);
            } else if reported_at.elapsed() >= PROGRESS {
                reported_at = Instant::now();
                let of = progress.expected.map(|expected| format!(" of {expected}")).unwrap_or_default();
                crate::print_status(&format!("replay {id}: {}{of} messages read", progress.read));
            }
            std::thread::park_timeout(Duration::from_millis(500));
            continue;
        }
        drop(bar.take());
        // Once only, because each request for texts is in the audit log.
        let state = if body { hooks.replay_with_texts(&id)? } else { state };
        return match state.report {
            Some(Some(report)) if state.state == ReplayPhase::Done => Ok(report),
            _ => Err(WorkbenchError::Replay {
                title: "the replay failed",
                detail: client::terminal::json(&state),
            }),
        };
    }
}
