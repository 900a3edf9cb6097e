use smpp::CommandStatus;
use std::io;
use std::path::PathBuf;

/// The reason why a command ended early.
#[derive(Debug, thiserror::Error)]
pub enum TrafficError {
    /// The runtime did not start.
    #[error("cannot start: {0}")]
    Runtime(#[source] io::Error),
    /// The sink cannot listen.
    #[error("cannot listen on {address}: {source}; choose another address with --listen")]
    Listen {
        /// The address.
        address: String,
        /// The cause.
        source: io::Error,
    },
    /// No connection to the SMSC.
    #[error("cannot connect to {address}: {source}; is an SMPP listener there?")]
    Connect {
        /// The address.
        address: String,
        /// The cause.
        source: io::Error,
    },
    /// The connection broke.
    #[error("the connection broke: {0}")]
    Connection(#[source] io::Error),
    /// The SMSC closed the connection or the session ended.
    #[error("the session ended: {0}")]
    SessionEnded(&'static str),
    /// The bind was refused.
    #[error("the bind is refused: {0}. Check --system-id and the password")]
    BindRefused(CommandStatus),
    /// No password was given.
    #[error("no password: write it to standard input, or name a file with --password-file")]
    NoPassword,
    /// The password file cannot be read.
    #[error("cannot read the password file {}: {source}", path.display())]
    PasswordFile {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A text or a number that no submit_sm can carry.
    #[error("this cannot be submitted: {0}")]
    Message(&'static str),
    /// An option with an invalid value.
    #[error("{option} must be {expected}")]
    Option {
        /// The option.
        option: &'static str,
        /// The allowed values.
        expected: &'static str,
    },
}
