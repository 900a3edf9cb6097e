//! Named appliances, each with its URL, credentials and certificates, in a file that only its owner can read.

use crate::error::ClientError;
use crate::private_file::{read_private, settings_folder, write_private};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The connection settings of one appliance.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ContextSettings {
    /// The URL of its HTTP listener.
    pub url: String,
    /// File with the token; `None`: the token below, or the session of `switchyard login`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_file: Option<PathBuf>,
    /// The token, a secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// PEM file with its certificate or its authority.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca: Option<PathBuf>,
    /// PEM file with a client certificate and its key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_certificate: Option<PathBuf>,
}

/// The named appliances, and the one that commands use.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contexts {
    /// The name of the context that commands use; `None`: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<String>,
    /// The contexts by name.
    pub contexts: BTreeMap<String, ContextSettings>,
}

/// The maximum length of a name, in octets.
const MAX_NAME: usize = 64;

impl Contexts {
    /// Path of the file: `switchyard/contexts.json` in the user's configuration folder; `None` without such a folder.
    #[must_use]
    pub fn path() -> Option<PathBuf> {
        settings_folder().map(|folder| folder.join("contexts.json"))
    }

    /// Reads the file; empty if it does not exist.
    ///
    /// # Errors
    /// If the file cannot be read, or has invalid contents.
    pub fn read() -> Result<Self, ClientError> {
        let Some(path) = Self::path() else { return Ok(Self::default()) };
        read_private(&path).map_err(|source| ClientError::Contexts { path, source })
    }

    /// Writes the file, with mode 0600.
    ///
    /// # Errors
    /// If there is no folder for it, or it cannot be written.
    pub fn write(&self) -> Result<(), ClientError> {
        let path = Self::path().ok_or(ClientError::NoSettingsFolder)?;
        write_private(&path, self).map_err(|source| ClientError::Contexts { path, source })
    }

    /// The context of this name.
    ///
    /// # Errors
    /// If there is none.
    pub fn find(&self, name: &str) -> Result<&ContextSettings, ClientError> {
        self.contexts.get(name).ok_or_else(|| ClientError::NoContext(name.to_owned()))
    }

    /// Adds a context, or replaces the context with this name. The first context becomes the current one.
    ///
    /// # Errors
    /// If the name is not valid.
    pub fn add(&mut self, name: &str, settings: ContextSettings) -> Result<(), ClientError> {
        let is_valid = !name.is_empty()
            && name.len() <= MAX_NAME
            && name.bytes().all(|octet| octet.is_ascii_alphanumeric() || b"-_.".contains(&octet));
        if !is_valid {
            return Err(ClientError::ContextName(name.to_owned()));
        }
        if self.contexts.is_empty() {
            self.current = Some(name.to_owned());
        }
        self.contexts.insert(name.to_owned(), settings);
        Ok(())
    }

    /// Makes a context the current one.
    ///
    /// # Errors
    /// If there is no context of this name.
    pub fn choose(&mut self, name: &str) -> Result<(), ClientError> {
        self.find(name)?;
        self.current = Some(name.to_owned());
        Ok(())
    }

    /// Removes a context. If it is the current one, there is none afterwards.
    ///
    /// # Errors
    /// If there is no context of this name.
    pub fn remove(&mut self, name: &str) -> Result<(), ClientError> {
        self.find(name)?;
        self.contexts.remove(name);
        self.current.take_if(|current| current == name);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(url: &str) -> ContextSettings {
        ContextSettings { url: url.to_owned(), ..ContextSettings::default() }
    }

    #[test]
    fn the_first_context_is_the_current_one_until_another_is_chosen() {
        let mut contexts = Contexts::default();
        contexts.add("lab", settings("http://one")).unwrap();
        contexts.add("live", settings("http://two")).unwrap();
        assert_eq!(contexts.current.as_deref(), Some("lab"));
        contexts.choose("live").unwrap();
        assert!(contexts.choose("other").unwrap_err().to_string().contains("other"));
        contexts.remove("live").unwrap();
        assert_eq!((contexts.current, contexts.contexts.len()), (None, 1));
    }

    #[test]
    fn names_are_checked() {
        let mut contexts = Contexts::default();
        for name in ["", "a b", "../x", "\u{1b}[31m", &"x".repeat(65)] {
            assert!(contexts.add(name, settings("http://one")).is_err(), "{name:?}");
        }
        assert!(contexts.contexts.is_empty() && contexts.current.is_none());
    }
}
