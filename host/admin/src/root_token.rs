use std::io::{IsTerminal, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The root token of the API.
#[derive(Clone)]
pub struct RootToken {
    secret: String,
    /// Whether the file was created by this start.
    is_new: bool,
}

/// The token file cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("token file {path}: {why}")]
pub struct RootTokenError {
    /// Path of the file.
    pub path: PathBuf,
    /// The cause and the remedy.
    pub why: String,
}

impl RootToken {
    /// Reads the token from the file. Creates the file, readable by its owner only, if it does not exist.
    ///
    /// # Errors
    /// If the file cannot be read or created, or its content is too short.
    pub fn load_or_create(path: &Path) -> Result<Self, RootTokenError> {
        let wrong = |why: String| RootTokenError { path: path.to_owned(), why };
        match std::fs::read_to_string(path) {
            Ok(text) if text.trim().len() >= 32 => Ok(Self { secret: text.trim().to_owned(), is_new: false }),
            Ok(_) => {
                Err(wrong("has fewer than 32 characters; remove the file to get a new token".to_owned()))
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let mut octets = [0; 32];
                getrandom::fill(&mut octets).map_err(|error| wrong(format!("no randomness: {error}")))?;
                let token = model::hex(&octets);
                let mut options = std::fs::OpenOptions::new();
                let opened = options.write(true).create_new(true).mode(0o600).open(path);
                let written = opened.and_then(|mut file| {
                    writeln!(file, "{token}")?;
                    file.sync_all()
                });
                written.map_err(|error| wrong(error.to_string()))?;
                Ok(Self { secret: token, is_new: true })
            }
            Err(error) => Err(wrong(error.to_string())),
        }
    }

    /// At the first start, logs the path of the token file. If stderr is a terminal, also prints the token there. The
    /// token is never logged, since logs are stored and copied.
    pub fn announce(&self, path: &Path) {
        if !self.is_new {
            return;
        }
        tracing::info!(file = %path.display(), "first start: log in with the token in this file, then create users");
        let mut errors = std::io::stderr();
        if errors.is_terminal() {
            // If this fails, the token file is sufficient.
            let _ = writeln!(errors, "\n    The token for the first login:  {}\n", self.secret);
        }
    }

    /// Compares a secret with the token, in constant time.
    pub(crate) fn matches(&self, secret: &str) -> bool {
        let (a, b) = (self.secret.as_bytes(), secret.as_bytes());
        a.len() == b.len() && a.iter().zip(b).fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn token_file_is_created_once_with_owner_only_mode() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let made = RootToken::load_or_create(&path).unwrap();
        let again = RootToken::load_or_create(&path).unwrap();
        assert!(made.is_new && !again.is_new);
        assert!(made.matches(&again.secret) && !made.matches("") && !made.matches(&"0".repeat(64)));
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::write(&path, "short").unwrap();
        assert!(RootToken::load_or_create(&path).is_err());
    }
}
