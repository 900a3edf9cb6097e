//! `switchyard plugin new`: creates a folder that builds without changes.
//!
//! The routers are the examples in `plugins/examples`, which are built and tested with the project; the files of the
//! other worlds are in `templates/`.

use crate::manifest::{self, Manifest};
use crate::{PluginLanguage, WorkbenchError, build, contract};
use model::Hook;
use std::path::{Path, PathBuf};

/// The files of one world.
struct TemplateFiles {
    rust: &'static str,
    js: &'static str,
    python: &'static str,
    c: &'static str,
    go: &'static str,
    policy: &'static str,
    schema: &'static str,
    cases: &'static str,
}

impl TemplateFiles {
    fn of(hook: Hook) -> Self {
        match hook {
            Hook::Screen => Self {
                rust: include_str!("../templates/screen/lib.rs"),
                js: include_str!("../templates/screen/plugin.js"),
                python: include_str!("../templates/screen/plugin.py"),
                c: include_str!("../templates/screen/plugin.c"),
                go: include_str!("../templates/screen/plugin.go"),
                policy: include_str!("../templates/screen/policy.txt"),
                schema: include_str!("../templates/screen/policy.schema.json"),
                cases: include_str!("../templates/screen/cases.toml"),
            },
            Hook::Lookup => Self {
                rust: include_str!("../templates/lookup/lib.rs"),
                js: include_str!("../templates/lookup/plugin.js"),
                python: include_str!("../templates/lookup/plugin.py"),
                c: include_str!("../templates/lookup/plugin.c"),
                go: include_str!("../templates/lookup/plugin.go"),
                policy: include_str!("../templates/lookup/policy.txt"),
                schema: include_str!("../templates/lookup/policy.schema.json"),
                cases: include_str!("../templates/lookup/cases.toml"),
            },
            Hook::Router => Self {
                rust: include_str!("../../../plugins/examples/rust/src/lib.rs"),
                js: include_str!("../../../plugins/examples/js/plugin.js"),
                python: include_str!("../../../plugins/examples/python/plugin.py"),
                c: include_str!("../../../plugins/examples/c/plugin.c"),
                go: include_str!("../../../plugins/examples/go/plugin.go"),
                policy: include_str!("../../../plugins/examples/policy.txt"),
                schema: include_str!("../../../plugins/examples/policy.schema.json"),
                cases: include_str!("../../../plugins/examples/cases.toml"),
            },
            Hook::Resolver => Self {
                rust: include_str!("../templates/resolver/lib.rs"),
                js: include_str!("../templates/resolver/plugin.js"),
                python: include_str!("../templates/resolver/plugin.py"),
                c: include_str!("../templates/resolver/plugin.c"),
                go: include_str!("../templates/resolver/plugin.go"),
                policy: include_str!("../templates/resolver/policy.txt"),
                schema: include_str!("../templates/resolver/policy.schema.json"),
                cases: include_str!("../templates/resolver/cases.toml"),
            },
            Hook::DeliveryPolicy => Self {
                rust: include_str!("../templates/delivery-policy/lib.rs"),
                js: include_str!("../templates/delivery-policy/plugin.js"),
                python: include_str!("../templates/delivery-policy/plugin.py"),
                c: include_str!("../templates/delivery-policy/plugin.c"),
                go: include_str!("../templates/delivery-policy/plugin.go"),
                policy: include_str!("../templates/delivery-policy/policy.txt"),
                schema: include_str!("../templates/delivery-policy/policy.schema.json"),
                cases: include_str!("../templates/delivery-policy/cases.toml"),
            },
            Hook::Receipt => Self {
                rust: include_str!("../templates/receipt/lib.rs"),
                js: include_str!("../templates/receipt/plugin.js"),
                python: include_str!("../templates/receipt/plugin.py"),
                c: include_str!("../templates/receipt/plugin.c"),
                go: include_str!("../templates/receipt/plugin.go"),
                policy: include_str!("../templates/receipt/policy.txt"),
                schema: include_str!("../templates/receipt/policy.schema.json"),
                cases: include_str!("../templates/receipt/cases.toml"),
            },
            Hook::FrontEnd => Self {
                rust: include_str!("../templates/front-end/lib.rs"),
                js: include_str!("../templates/front-end/plugin.js"),
                python: include_str!("../templates/front-end/plugin.py"),
                c: include_str!("../templates/front-end/plugin.c"),
                go: include_str!("../templates/front-end/plugin.go"),
                policy: include_str!("../templates/front-end/policy.txt"),
                schema: include_str!("../templates/front-end/policy.schema.json"),
                cases: include_str!("../templates/front-end/cases.toml"),
            },
            Hook::Biller => Self {
                rust: include_str!("../templates/biller/lib.rs"),
                js: include_str!("../templates/biller/plugin.js"),
                python: include_str!("../templates/biller/plugin.py"),
                c: include_str!("../templates/biller/plugin.c"),
                go: include_str!("../templates/biller/plugin.go"),
                policy: include_str!("../templates/biller/policy.txt"),
                schema: include_str!("../templates/biller/policy.schema.json"),
                cases: include_str!("../templates/biller/cases.toml"),
            },
            Hook::Peer => Self {
                rust: include_str!("../templates/peer/lib.rs"),
                js: include_str!("../templates/peer/plugin.js"),
                python: include_str!("../templates/peer/plugin.py"),
                c: include_str!("../templates/peer/plugin.c"),
                go: include_str!("../templates/peer/plugin.go"),
                policy: include_str!("../templates/peer/policy.txt"),
                schema: include_str!("../templates/peer/policy.schema.json"),
                cases: include_str!("../templates/peer/cases.toml"),
            },
        }
    }

    fn source(&self, language: PluginLanguage) -> &'static str {
        match language {
            PluginLanguage::Rust => self.rust,
            PluginLanguage::Js => self.js,
            PluginLanguage::Python => self.python,
            PluginLanguage::C => self.c,
            PluginLanguage::Go => self.go,
        }
    }
}

/// Dependencies of a Rust plugin, at versions that are tested together.
const CARGO: [(&str, &str); 2] = [
    ("Cargo.toml", include_str!("../../../plugins/examples/rust/Cargo.toml")),
    ("Cargo.lock", include_str!("../../../plugins/examples/rust/Cargo.lock")),
];

const README: &str = include_str!("../templates/README.md");
const GITIGNORE: &str = "/bindings\n/build\n/target\n__pycache__\n*.wasm\n*.sbom.json\n*.sig\n*.key\n";

/// Creates the folder, named like the plugin by default.
pub(crate) fn write(
    name: &str,
    language: PluginLanguage,
    world: Hook,
    folder: Option<PathBuf>,
) -> Result<PathBuf, WorkbenchError> {
    manifest::check_name(name)?;
    let folder = folder.unwrap_or_else(|| PathBuf::from(name));
    if folder.exists() {
        return Err(WorkbenchError::Exists(folder));
    }
    let put = |file: &str, text: &str| {
        let path = folder.join(file);
        let parent = path.parent().unwrap_or(&folder);
        std::fs::create_dir_all(parent).map_err(WorkbenchError::file(parent))?;
        std::fs::write(&path, text).map_err(WorkbenchError::file(&path))
    };
    let manifest = Manifest { name: name.to_owned(), language, world, wasi: false };
    let files = TemplateFiles::of(world);
    put(manifest::MANIFEST_FILE, &manifest.text())?;
    put(language.source(), files.source(language))?;
    put("policy.txt", files.policy)?;
    put(build::POLICY_SCHEMA_FILE, files.schema)?;
    put("cases.toml", files.cases)?;
    put(".gitignore", GITIGNORE)?;
    let readme = README.replace("{name}", name).replace("{source}", language.source());
    put("README.md", &readme.replace("{world}", world.name()))?;
    if language == PluginLanguage::Rust {
        for (file, text) in CARGO {
            put(file, &text.replace("example-rust", name))?;
        }
    }
    contract::write(&folder.join("wit"))?;
    // Generate the files that editors need.
    match language {
        PluginLanguage::C => {
            build::c_bindings(&folder.join("wit"), world, &folder.join("bindings"))?;
        }
        PluginLanguage::Go => {
            put(build::GO_MODULE_FILE, &build::go_module_file(name))?;
            build::go_bindings(&folder, world)?;
        }
        PluginLanguage::Rust | PluginLanguage::Js | PluginLanguage::Python => {}
    }
    Ok(folder)
}

/// The files of a new folder that the author should read first.
pub(crate) fn describe_files(folder: &Path, language: PluginLanguage) -> String {
    let name = folder.display();
    format!(
        "{name}/{:<12} the code\n{name}/policy.txt   what its policy document looks like\n{name}/policy.schema.json  its schema, for editors\n{name}/cases.toml   questions, and \
         the answers that are right\n{name}/wit/         the contract",
        language.source()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn the_schema_of_a_template_describes_its_document() {
        for hook in Hook::ALL {
            let files = TemplateFiles::of(hook);
            let schema: Value = serde_json::from_str(files.schema).unwrap();
            let lines = schema["x-switchyard-lines"].as_object().unwrap();
            let mut written: Vec<&str> =
                files.policy.lines().filter_map(|line| line.split(' ').next()).collect();
            written.retain(|word| !word.is_empty() && *word != "#");
            assert!(written.iter().all(|word| lines.contains_key(*word)), "{}: {written:?}", hook.name());
            for (keyword, line) in lines {
                let words = line["words"].as_array().unwrap();
                assert!(line["description"].is_string() && !words.is_empty(), "{}: {keyword}", hook.name());
                // Each language's code has the keyword.
                for language in [
                    PluginLanguage::Rust,
                    PluginLanguage::Js,
                    PluginLanguage::Python,
                    PluginLanguage::C,
                    PluginLanguage::Go,
                ] {
                    let source = files.source(language);
                    assert!(source.contains(keyword.as_str()), "{}: {keyword} in {language:?}", hook.name());
                }
            }
        }
    }
}
