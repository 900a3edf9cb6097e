use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// The supported languages of plugins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PluginLanguage {
    /// Rust.
    Rust,
    /// JavaScript, run by QuickJS inside the component.
    Js,
    /// Python, with the interpreter inside the component.
    Python,
    /// C.
    C,
    /// Go, with its run-time library inside the component.
    Go,
}

impl PluginLanguage {
    /// The name for people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Rust => "Rust",
            Self::Js => "JavaScript",
            Self::Python => "Python",
            Self::C => "C",
            Self::Go => "Go",
        }
    }

    /// The path of the author's code in a plugin's folder.
    pub(crate) fn source(self) -> &'static str {
        match self {
            Self::Rust => "src/lib.rs",
            Self::Js => "plugin.js",
            Self::Python => "plugin.py",
            Self::C => "plugin.c",
            Self::Go => "plugin.go",
        }
    }
}
