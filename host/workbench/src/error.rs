use std::path::{Path, PathBuf};

/// Errors of the plugin tools. Every message tells the author what to do.
#[derive(Debug, thiserror::Error)]
pub enum WorkbenchError {
    /// A file or folder cannot be read or written.
    #[error("{path}: {source}")]
    File {
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// Not a valid plugin name.
    #[error("{0:?} cannot be a plugin's name: use 1 to 64 small letters, digits and '-', a letter first")]
    BadName(String),
    /// The path of a new folder exists already.
    #[error("{0} exists already; remove it or choose another name")]
    Exists(PathBuf),
    /// Not a plugin's folder.
    #[error("{0}: no plugin.toml; 'switchyard plugin new --lang rust NAME' creates a folder with one")]
    NotAPlugin(PathBuf),
    /// A file is malformed.
    #[error("{path}: {why}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error and its position.
        why: String,
    },
    /// A tool is missing.
    #[error("{language} plugins need {tool}, which is not installed. Install it with:\n\n    {remedy}\n")]
    Missing {
        /// The plugin's language.
        language: &'static str,
        /// The tool.
        tool: &'static str,
        /// The command line that installs it.
        remedy: String,
    },
    /// A tool could not be installed.
    #[error("installing {tool} failed: {why}\nCommand: {command}")]
    Install {
        /// The tool.
        tool: String,
        /// The cause.
        why: String,
        /// The command line.
        command: String,
    },
    /// The plugin does not build.
    #[error("{program} failed with {status}; its output is above")]
    Build {
        /// The tool.
        program: String,
        /// Its exit status.
        status: String,
    },
    /// A tool cannot be started.
    #[error("{program} cannot be started: {source}")]
    Start {
        /// The tool.
        program: String,
        /// The cause.
        source: std::io::Error,
    },
    /// The WIT in the plugin's folder cannot be used.
    #[error(
        "{path}: {why}\n'switchyard plugin new' writes the contract of this version of Switchyard to that folder"
    )]
    Wit {
        /// The folder.
        path: PathBuf,
        /// The cause.
        why: String,
    },
    /// The octets are not a component.
    #[error("{path} is not a WebAssembly component: {why}")]
    NoComponent {
        /// The file.
        path: PathBuf,
        /// The cause.
        why: String,
    },
    /// The component serves no hook.
    #[error(
        "{path} exports {found}, which no hook calls; a plugin exports one of routing, resolution, delivery and billing of \
         switchyard:hooks"
    )]
    NoWorld {
        /// The file.
        path: PathBuf,
        /// Its exports.
        found: String,
    },
    /// The component has an import that no plugin may use.
    #[error("{path} imports {import}, which its world does not offer: {remedy}")]
    ForeignImport {
        /// The file.
        path: PathBuf,
        /// The import.
        import: String,
        /// Instructions for the author.
        remedy: String,
    },
    /// A key or signature file is malformed.
    #[error("{path}: {why}")]
    Key {
        /// The file.
        path: PathBuf,
        /// The reason.
        why: &'static str,
    },
    /// The system provides no random numbers.
    #[error("no random numbers for a key: {0}")]
    Random(String),
    /// A replay failed or was cancelled.
    #[error("{title}: {detail}")]
    Replay {
        /// A summary.
        title: &'static str,
        /// The details.
        detail: String,
    },
    /// The appliance refused the request, or is unreachable.
    #[error(transparent)]
    Appliance(#[from] client::ClientError),
    /// An artifact cannot be pushed or pulled.
    #[error(transparent)]
    Artifact(#[from] oci::OciError),
    /// Conflicting arguments.
    #[error("{0}")]
    Usage(String),
    /// The host rejects the component.
    #[error("{path}: {why}")]
    Rejected {
        /// The file.
        path: PathBuf,
        /// The host's reason.
        why: String,
    },
    /// Some cases failed.
    #[error("{failed} of {cases} cases failed\n{text}")]
    CasesFailed {
        /// The differences of each failed case.
        text: String,
        /// Number of failed cases.
        failed: usize,
        /// Number of all cases.
        cases: usize,
    },
    /// A plugin cannot be profiled.
    #[error("{0}")]
    Profile(String),
    /// A plugin violates a property that every plugin must have.
    #[error("{what}\n{summary}")]
    Violation {
        /// The violation.
        what: String,
        /// A summary of the questions, and the seed that repeats them.
        summary: String,
    },
}

impl WorkbenchError {
    pub(crate) fn file(path: &Path) -> impl FnOnce(std::io::Error) -> Self + '_ {
        move |source| Self::File { path: path.to_owned(), source }
    }
}
