//! `switchyard privacy`: the keys that encrypt texts.

use crate::config::Config;
use crate::restore::{STORE, format_time};
use crate::text_encryption::key_file;
use anyhow::{Context as _, Result, ensure};
use clap::{Args, Subcommand};
use model::Timestamp;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use text_keys::{KeyDescription, NO_ACCOUNT, RootKey, TextKeyError, TextKeys};

/// The keys that encrypt the texts of messages.
#[derive(Debug, Subcommand)]
pub(crate) enum PrivacyCommand {
    /// Create a root key, for `root-key-file` of `[privacy]`.
    ///
    /// The file has 32 random octets and is readable only by its owner. Keep a copy in a safe place: without the root
    /// key, no encrypted text can be read.
    NewRootKey {
        /// The file to create.
        file: PathBuf,
    },
    /// List the keys that encrypt texts, by account and period.
    Keys(DaemonConfiguration),
    /// Destroy keys that encrypt texts at once, while the daemon is stopped.
    ///
    /// From then on, texts that were encrypted with them read as erased everywhere: in the store, the journal, the
    /// archive and backups. Waiting messages with such texts fail.
    DestroyKeys(DestroyCommand),
}

#[derive(Debug, Args)]
pub(crate) struct DaemonConfiguration {
    /// The configuration file.
    #[arg(long)]
    config: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct DestroyCommand {
    #[command(flatten)]
    configuration: DaemonConfiguration,
    /// The numbers of the keys, as `keys` lists them.
    #[arg(required = true, value_parser = parse_number)]
    numbers: Vec<u64>,
}

fn parse_number(text: &str) -> Result<u64, String> {
    u64::from_str_radix(text, 16).map_err(|_| "must be the hexadecimal number of a key".to_owned())
}

impl DaemonConfiguration {
    /// The root key, and the configuration.
    fn read(&self) -> Result<(RootKey, Config)> {
        let config = Config::load(&self.config)?;
        let root = config.privacy.root_key_file.as_deref();
        let root = root.with_context(|| {
            format!(
                "{}: root-key-file of [privacy] is not set: texts are not encrypted",
                self.config.display()
            )
        })?;
        Ok((RootKey::read(root)?, config))
    }
}

impl PrivacyCommand {
    /// Runs the command and returns its output.
    pub(crate) fn run(&self) -> Result<String> {
        match self {
            Self::NewRootKey { file } => {
                RootKey::create(file)?;
                Ok(format!("{}: new root key; keep a copy of it in a safe place", file.display()))
            }
            Self::Keys(configuration) => {
                let (root, config) = configuration.read()?;
                Ok(list(TextKeys::read(&key_file(&config.appliance.data), root)?))
            }
            Self::DestroyKeys(command) => command.run(),
        }
    }
}

fn list(keys: Vec<KeyDescription>) -> String {
    let mut text = String::new();
    for key in keys {
        let (from, until) = (format_time(key.from.0), format_time(key.until.0));
        // Writing to a string does not fail.
        let account = if *key.account == *NO_ACCOUNT { "(no account)" } else { &*key.account };
        let _ = writeln!(text, "{:016x}  {from}  {until}  {account}", key.number);
    }
    if text.is_empty() { "no keys of texts".to_owned() } else { text }
}

impl DestroyCommand {
    fn run(&self) -> Result<String> {
        let (root, config) = self.configuration.read()?;
        let data = &config.appliance.data;
        ensure!(!is_in_use(data)?, "{} is in use: stop the daemon that runs on it first", data.display());
        let keys = TextKeys::open(&key_file(data), root, config.privacy.key_period)?;
        let known: BTreeSet<u64> = keys.list().iter().map(|key| key.number).collect();
        let numbers: BTreeSet<u64> = self.numbers.iter().copied().collect();
        if let Some(number) = numbers.difference(&known).next() {
            return Err(TextKeyError::UnknownKey { path: key_file(data), number: *number }.into());
        }
        let destroyed = keys.destroy(&numbers, Timestamp::now())?;
        Ok(format!("{destroyed} keys destroyed: the texts that they encrypted are unreadable"))
    }
}

fn is_in_use(data: &Path) -> Result<bool> {
    let store = data.join(STORE);
    Ok(store.exists() && store::is_in_use(&store)?)
}
