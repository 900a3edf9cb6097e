//! `switchyard plugin new`: a folder that builds as it stands.
//!
//! The routers are the examples in `plugins/examples`, which are built and tested with everything else; the other worlds'
//! files are in `templates/`.

use crate::manifest::{self, Manifest};
use crate::{Language, WorkbenchError, build, contract};
use model::Hook;
use std::path::{Path, PathBuf};

/// One world's files.
struct World {
    rust: &'static str,
    js: &'static str,
    python: &'static str,
    c: &'static str,
    policy: &'static str,
    cases: &'static str,
}

impl World {
    fn of(hook: Hook) -> Self {
        match hook {
            Hook::Router => Self {
                rust: include_str!("../../../plugins/examples/rust/src/lib.rs"),
                js: include_str!("../../../plugins/examples/js/plugin.js"),
                python: include_str!("../../../plugins/examples/python/plugin.py"),
                c: include_str!("../../../plugins/examples/c/plugin.c"),
                policy: include_str!("../../../plugins/examples/policy.txt"),
                cases: include_str!("../../../plugins/examples/cases.toml"),
            },
            Hook::Resolver => Self {
                rust: include_str!("../templates/resolver/lib.rs"),
                js: include_str!("../templates/resolver/plugin.js"),
                python: include_str!("../templates/resolver/plugin.py"),
                c: include_str!("../templates/resolver/plugin.c"),
                policy: include_str!("../templates/resolver/policy.txt"),
                cases: include_str!("../templates/resolver/cases.toml"),
            },
            Hook::DeliveryPolicy => Self {
                rust: include_str!("../templates/delivery-policy/lib.rs"),
                js: include_str!("../templates/delivery-policy/plugin.js"),
                python: include_str!("../templates/delivery-policy/plugin.py"),
                c: include_str!("../templates/delivery-policy/plugin.c"),
                policy: include_str!("../templates/delivery-policy/policy.txt"),
                cases: include_str!("../templates/delivery-policy/cases.toml"),
            },
            Hook::Biller => Self {
                rust: include_str!("../templates/biller/lib.rs"),
                js: include_str!("../templates/biller/plugin.js"),
                python: include_str!("../templates/biller/plugin.py"),
                c: include_str!("../templates/biller/plugin.c"),
                policy: include_str!("../templates/biller/policy.txt"),
                cases: include_str!("../templates/biller/cases.toml"),
            },
        }
    }

    fn source(&self, language: Language) -> &'static str {
        match language {
            Language::Rust => self.rust,
            Language::Js => self.js,
            Language::Python => self.python,
            Language::C => self.c,
        }
    }
}

/// Crates that a Rust plugin is built with, at versions that are known to work together.
const CARGO: [(&str, &str); 2] = [
    ("Cargo.toml", include_str!("../../../plugins/examples/rust/Cargo.toml")),
    ("Cargo.lock", include_str!("../../../plugins/examples/rust/Cargo.lock")),
];

const README: &str = include_str!("../templates/README.md");
const IGNORED: &str = "/bindings\n/build\n/target\n__pycache__\n*.wasm\n*.sig\n*.key\n";

/// Makes the folder, named like the plugin unless the caller says otherwise.
pub(crate) fn write(
    name: &str,
    language: Language,
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
    let files = World::of(world);
    put(manifest::FILE, &manifest.text())?;
    put(language.source(), files.source(language))?;
    put("policy.txt", files.policy)?;
    put("cases.toml", files.cases)?;
    put(".gitignore", IGNORED)?;
    let readme = README.replace("{name}", name).replace("{source}", language.source());
    put("README.md", &readme.replace("{world}", world.name()))?;
    if language == Language::Rust {
        for (file, text) in CARGO {
            put(file, &text.replace("example-rust", name))?;
        }
    }
    contract::write(&folder.join("wit"))?;
    if language == Language::C {
        // Here already, so that an editor finds the header.
        build::c_bindings(&folder.join("wit"), world, &folder.join("bindings"))?;
    }
    Ok(folder)
}

/// Files of a new folder that a person is to look at first.
pub(crate) fn tour(folder: &Path, language: Language) -> String {
    let name = folder.display();
    format!(
        "{name}/{:<12} the code\n{name}/policy.txt   what its policy document looks like\n{name}/cases.toml   questions, and \
         the answers that are right\n{name}/wit/         the contract",
        language.source()
    )
}
