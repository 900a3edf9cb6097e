//! Plugins in five languages: the default plugins, the worked examples, and templates of `switchyard plugin new`.

use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::process::Command;
use workspace::plugins;

/// Hooks whose template is built in other languages; for routers, there are worked examples.
const WORLDS: [&str; 5] = ["screen", "lookup", "resolver", "delivery-policy", "biller"];
const LANGUAGES: [(&str, &str); 4] =
    [("c", "plugin.c"), ("go", "plugin.go"), ("js", "plugin.js"), ("python", "plugin.py")];

/// The built plugins.
pub(super) struct Guests {
    /// `target/plugins`.
    folder: PathBuf,
    templates: PathBuf,
}

impl Guests {
    /// Builds the default plugins; with `others`, also those in other languages; with `all`, also the slow ones.
    pub(super) fn build(daemon: &Path, others: bool, all: bool) -> Result<Self> {
        let guests =
            Self { folder: testkit::built::plugins()?, templates: workspace::target().join("bench-guests") };
        if others {
            plugins::examples(daemon)?;
            for world in WORLDS {
                for (language, source) in LANGUAGES.into_iter().filter(|(name, _)| all || *name != "python") {
                    guests.template(daemon, world, language, source)?;
                }
            }
        }
        Ok(guests)
    }

    /// Builds a template as an author does: `plugin new` and `plugin build`.
    fn template(&self, daemon: &Path, world: &str, language: &str, source: &str) -> Result<()> {
        let folder = self.templates.join(format!("{world}-{language}"));
        let template = workspace::root().join("host/workbench/templates").join(world).join(source);
        let wanted = std::fs::read(&template).with_context(|| format!("reading {}", template.display()))?;
        // Created again when the template has changed.
        if std::fs::read(folder.join(source)).map_or(true, |made| made != wanted) {
            if folder.exists() {
                std::fs::remove_dir_all(&folder)?;
            }
            let mut new = Command::new(daemon);
            new.args(["plugin", "new", "--lang", language, "--world", world, "--folder"]);
            new.arg(&folder).arg(format!("{world}-{language}")).stdout(std::process::Stdio::null());
            workspace::run(&mut new)?;
        }
        let mut build = Command::new(daemon);
        build.args(["plugin", "build"]).arg(&folder).stdout(std::process::Stdio::null());
        workspace::run(&mut build)
    }

    /// A default plugin.
    pub(super) fn default(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.wasm"))
    }

    /// A worked example of a router.
    pub(super) fn example(&self, language: &str) -> PathBuf {
        self.folder.join(format!("example-{language}.wasm"))
    }

    /// A plugin made from a template.
    pub(super) fn made(&self, world: &str, language: &str) -> PathBuf {
        let name = format!("{world}-{language}");
        self.templates.join(&name).join(format!("{name}.wasm"))
    }

    /// A policy document of `policies/`.
    pub(super) fn policy(&self, name: &str) -> Result<String> {
        read(&workspace::root().join("policies").join(name))
    }

    /// The policy document of the worked examples.
    pub(super) fn example_policy(&self) -> Result<String> {
        read(&workspace::root().join("plugins/examples/policy.txt"))
    }

    /// The policy document of a template.
    pub(super) fn template_policy(&self, world: &str) -> Result<String> {
        read(&workspace::root().join("host/workbench/templates").join(world).join("policy.txt"))
    }
}

fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))
}
