use std::path::{Path, PathBuf};

/// What can go wrong for a plugin's author. Every message says what to do.
#[derive(Debug, thiserror::Error)]
pub enum WorkbenchError {
    /// A file or folder cannot be read or written.
    #[error("{path}: {source}")]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A name that cannot be a plugin's.
    #[error("{0:?} cannot be a plugin's name: use 1 to 64 small letters, digits and '-', a letter first")]
    BadName(String),
    /// There is something where a new folder is to be.
    #[error("{0} is there already; remove it or choose another name")]
    Exists(PathBuf),
    /// A folder is no plugin's.
    #[error("{0}: no plugin.toml; 'switchyard plugin new --lang rust NAME' makes a folder that has one")]
    NoPlugin(PathBuf),
    /// A file does not say what it should.
    #[error("{path}: {why}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What is wrong with it, and where.
        why: String,
    },
    /// A tool is missing.
    #[error("{language} plugins need {tool}, which is not here. Install it with:\n\n    {remedy}\n")]
    Missing {
        /// The plugin's language.
        language: &'static str,
        /// The tool.
        tool: &'static str,
        /// The command line that installs it.
        remedy: String,
    },
    /// A tool could not be installed.
    #[error("installing {tool} failed: {why}\nWhat was tried: {command}")]
    Install {
        /// The tool.
        tool: String,
        /// Why.
        why: String,
        /// The command line.
        command: String,
    },
    /// The plugin does not build.
    #[error("{program} ended with {status}; what it said is above")]
    Build {
        /// The tool.
        program: String,
        /// How it ended.
        status: String,
    },
    /// A tool cannot be started.
    #[error("{program} cannot be started: {source}")]
    Start {
        /// The tool.
        program: String,
        /// Why.
        source: std::io::Error,
    },
    /// The WIT beside a plugin cannot be used.
    #[error(
        "{path}: {why}\nThe contract of this version of Switchyard is written there by 'switchyard plugin new'"
    )]
    Wit {
        /// The folder.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// The octets are no component.
    #[error("{path} is no WebAssembly component: {why}")]
    NoComponent {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// The component serves no hook.
    #[error(
        "{path} exports {found}, which no hook asks; a plugin exports one of routing, resolution, delivery and billing of \
         switchyard:hooks"
    )]
    NoWorld {
        /// The file.
        path: PathBuf,
        /// What it exports.
        found: String,
    },
    /// The component imports what no plugin is given.
    #[error("{path} imports {import}, which its world does not give it: {remedy}")]
    Ambient {
        /// The file.
        path: PathBuf,
        /// What it imports.
        import: String,
        /// What to do.
        remedy: String,
    },
    /// A key or signature file is wrong.
    #[error("{path}: {why}")]
    Key {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: &'static str,
    },
    /// The system gives no random numbers.
    #[error("no random numbers for a key: {0}")]
    Random(String),
    /// A replay did not go as it should.
    #[error("{title}: {detail}")]
    Replay {
        /// In a word or two.
        title: &'static str,
        /// What exactly.
        detail: String,
    },
    /// The appliance refuses, or cannot be reached.
    #[error(transparent)]
    Appliance(#[from] client::ClientError),
    /// Arguments that do not go together.
    #[error("{0}")]
    Usage(String),
    /// The host does not take the component.
    #[error("{path}: {why}")]
    NotTaken {
        /// The file.
        path: PathBuf,
        /// The host's words.
        why: String,
    },
    /// Some cases failed.
    #[error("{failed} of {cases} cases failed\n{text}")]
    CasesFailed {
        /// Each case, and what was wrong with it.
        text: String,
        /// How many.
        failed: usize,
        /// Of how many.
        cases: usize,
    },
}

impl WorkbenchError {
    pub(crate) fn file(path: &Path) -> impl FnOnce(std::io::Error) -> Self + '_ {
        move |source| Self::File { path: path.to_owned(), source }
    }
}
