use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The bearer token of the API.
#[derive(Clone)]
pub struct Token(String);

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
            Ok(text) if text.trim().len() >= 32 => Ok(Self(text.trim().to_owned())),
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
                Ok(Self(token))
            }
            Err(error) => Err(wrong(error.to_string())),
        }
    }

    /// Whether a caller's word is the token. Takes the same time wherever the first difference is.
    pub(crate) fn is(&self, word: &str) -> bool {
        let (a, b) = (self.0.as_bytes(), word.as_bytes());
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
        assert!(made.is(&again.0) && !made.is("") && !made.is(&"0".repeat(64)));
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::write(&path, "short").unwrap();
        assert!(Token::load_or_make(&path).is_err());
    }
}
