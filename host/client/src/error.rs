//! Errors of requests to the appliance.

use api::Problem;
use std::path::PathBuf;

/// An error of a request to the appliance.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The appliance refused the request.
    #[error("{0}")]
    Refused(Problem),
    /// The appliance does not answer.
    #[error("{url}: {why}\nIs the appliance running, and is --url its [http] listener?")]
    Unreachable {
        /// The URL of the request.
        url: String,
        /// The cause.
        why: String,
    },
    /// This version does not understand the answer.
    #[error("{url}: unexpected answer: {source}\nIs the appliance of the same version as this program?")]
    UnexpectedAnswer {
        /// The URL of the request.
        url: String,
        /// The field that is missing or different.
        source: serde_json::Error,
    },
    /// There is no token and no saved login.
    #[error(
        "no credentials: log in with `switchyard login USER`, or give --token-file DATA/token (DATA: the appliance's data \
         folder), or set SWITCHYARD_TOKEN_FILE"
    )]
    NoToken,
    /// The token file cannot be read.
    #[error("{path}: {source}")]
    TokenFile {
        /// Path of the file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The saved logins cannot be read or written.
    #[error("{path}: {source}; the file contains the sessions of `switchyard login` and may be removed")]
    SavedLogins {
        /// Path of the file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The client only reads, and the request changes something.
    #[error("{method} {path} would change something: --watch is for commands that only read")]
    ReadOnly {
        /// The method.
        method: String,
        /// The path.
        path: String,
    },
    /// The contexts cannot be read or written.
    #[error("{path}: {source}; the file contains the contexts of `switchyard context`")]
    Contexts {
        /// Path of the file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// There is no context of this name.
    #[error("there is no context {0:?}: see `switchyard context list`")]
    NoContext(String),
    /// A name that a context cannot have.
    #[error("{0:?} cannot be the name of a context: 1 to 64 letters, digits, and . - _")]
    ContextName(String),
    /// A context without a URL.
    #[error("a context needs --url, the [http] listener of the appliance")]
    ContextWithoutUrl,
    /// There is no folder for the saved logins.
    #[error("no folder for logins and contexts: set HOME or XDG_CONFIG_HOME")]
    NoSettingsFolder,
    /// A certificate cannot be used.
    #[error("{path}: {why}")]
    Certificate {
        /// Path of the file.
        path: PathBuf,
        /// The defect.
        why: String,
    },
}
