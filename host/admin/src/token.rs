use std::io::{IsTerminal, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The bearer token of the API.
#[derive(Clone)]
pub struct Token {
    word: String,
    /// Whether there was none before.
    is_new: bool,
}

/// The token file cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("token file {path}: {why}")]
pub struct TokenError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong, and what to do.
    pub why: String,
}

impl Token {
    /// The token in the file; a new one, readable by its owner alone, if there is none.
    ///
    /// # Errors
    /// When the file cannot be read or made, or holds too little to be a token.
    pub fn load_or_make(path: &Path) -> Result<Self, TokenError> {
        let wrong = |why: String| TokenError { path: path.to_owned(), why };
        match std::fs::read_to_string(path) {
            Ok(text) if text.trim().len() >= 32 => Ok(Self { word: text.trim().to_owned(), is_new: false }),
            Ok(_) => {
                Err(wrong("holds fewer than 32 characters; remove it, and a new one is made".to_owned()))
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let mut octets = [0; 32];
                getrandom::fill(&mut octets).map_err(|error| wrong(format!("no randomness: {error}")))?;
                let token: String = octets.iter().map(|octet| format!("{octet:02x}")).collect();
                let mut options = std::fs::OpenOptions::new();
                let opened = options.write(true).create_new(true).mode(0o600).open(path);
                let written = opened.and_then(|mut file| {
                    writeln!(file, "{token}")?;
                    file.sync_all()
                });
                written.map_err(|error| wrong(error.to_string()))?;
                Ok(Self { word: token, is_new: true })
            }
            Err(error) => Err(wrong(error.to_string())),
        }
    }

    /// At the first start, tells where the token is that the first admin logs in with; to a person who looks on, the token
    /// itself as well. Logs are kept and copied, so it never stands in one.
    pub fn announce(&self, path: &Path) {
        if !self.is_new {
            return;
        }
        tracing::info!(file = %path.display(), "first start: log in with the token in this file, then make users");
        let mut errors = std::io::stderr();
        if errors.is_terminal() {
            // Whoever does not see it has the file.
            let _ = writeln!(errors, "\n    The token for the first login:  {}\n", self.word);
        }
    }

    /// Whether a caller's word is the token. Takes the same time wherever the first difference is.
    pub(crate) fn is(&self, word: &str) -> bool {
        let (a, b) = (self.word.as_bytes(), word.as_bytes());
        a.len() == b.len() && a.iter().zip(b).fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_token_is_made_once_and_for_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let made = Token::load_or_make(&path).unwrap();
        let again = Token::load_or_make(&path).unwrap();
        assert!(made.is_new && !again.is_new);
        assert!(made.is(&again.word) && !made.is("") && !made.is(&"0".repeat(64)));
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::write(&path, "short").unwrap();
        assert!(Token::load_or_make(&path).is_err());
    }
}
