use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// The languages in which plugins are written here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    /// Rust.
    Rust,
    /// JavaScript, run by QuickJS inside the component.
    Js,
    /// Python, with the interpreter inside the component.
    Python,
    /// C.
    C,
}

impl Language {
    /// The name that people use.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Rust => "Rust",
            Self::Js => "JavaScript",
            Self::Python => "Python",
            Self::C => "C",
        }
    }

    /// Where the author's code is, in a plugin's folder.
    pub(crate) fn source(self) -> &'static str {
        match self {
            Self::Rust => "src/lib.rs",
            Self::Js => "plugin.js",
            Self::Python => "plugin.py",
            Self::C => "plugin.c",
        }
    }
}
