//! Imports between the files of a crate: import cycles have at most three files, so that a file can be read without the
//! whole crate.

use anyhow::{Context, Result, ensure};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Maximum number of files in an import cycle.
const MAX_CYCLE_LENGTH: usize = 3;

type Module = Vec<String>;

/// The modules of a crate with their sources, without comments, texts and tests.
struct Crate {
    sources: BTreeMap<Module, String>,
    /// By module: its re-exported names, and the modules that define them.
    exports: BTreeMap<Module, BTreeMap<String, Module>>,
}

impl Crate {
    fn read(folder: &Path) -> Result<Self> {
        let mut sources = BTreeMap::new();
        let mut folders = vec![(folder.to_owned(), Module::new())];
        while let Some((folder, module)) = folders.pop() {
            for entry in std::fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
                let path: PathBuf = entry?.path();
                let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
                let mut inner = module.clone();
                if name == "tests" {
                    continue;
                }
                if !matches!(name.as_str(), "lib" | "main" | "mod") {
                    inner.push(name);
                }
                if path.is_dir() {
                    folders.push((path, inner));
                } else if path.extension().is_some_and(|extension| extension == "rs") {
                    sources.insert(inner, plain(&std::fs::read_to_string(&path)?));
                }
            }
        }
        let mut exports: BTreeMap<Module, BTreeMap<String, Module>> = BTreeMap::new();
        for (module, source) in &sources {
            for (visibility, tree) in uses(source) {
                if visibility {
                    for path in paths(&tree) {
                        let Some(name) = path.last().cloned() else { continue };
                        exports
                            .entry(module.clone())
                            .or_default()
                            .insert(name, absolute(module, &path, true));
                    }
                }
            }
        }
        Ok(Self { sources, exports })
    }

    /// The module that defines a path from the crate's root.
    fn defines(&self, path: &[String], depth: usize) -> Option<Module> {
        let module = (0..=path.len()).rev().map(|end| path[..end].to_vec());
        let module = module.into_iter().find(|module| self.sources.contains_key(module))?;
        let next = path.get(module.len()).and_then(|name| self.exports.get(&module)?.get(name));
        match next {
            Some(origin) if depth < 8 && origin != path => self.defines(origin, depth + 1),
            _ => Some(module),
        }
    }

    /// The modules that a module imports from.
    fn imports(&self, module: &Module, source: &str) -> BTreeSet<Module> {
        let mut found: Vec<Module> = Vec::new();
        let mut rest = source.to_owned();
        for (exported, tree) in uses(source) {
            if !exported {
                found.extend(paths(&tree).into_iter().filter(|path| is_inner(path)));
            }
            rest = rest.replacen(&tree, "", 1);
        }
        let words = rest.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':'));
        let direct = words.map(|word| word.split("::").map(str::to_owned).collect::<Module>());
        found.extend(direct.filter(|path| path.len() > 1 && is_inner(path)));
        let modules = found.iter().filter_map(|path| self.defines(&absolute(module, path, false), 0));
        modules.filter(|other| !other.is_empty() && other != module).collect()
    }

    /// The largest set of modules that all import each other, directly or not.
    fn largest_cycle(&self) -> Vec<Module> {
        let edges: BTreeMap<&Module, BTreeSet<Module>> =
            self.sources.iter().map(|(module, source)| (module, self.imports(module, source))).collect();
        let reach = |from: &Module| {
            let (mut seen, mut open) = (BTreeSet::new(), vec![from.clone()]);
            while let Some(next) = open.pop() {
                for other in edges.get(&next).into_iter().flatten() {
                    if seen.insert(other.clone()) {
                        open.push(other.clone());
                    }
                }
            }
            seen
        };
        let reaches: BTreeMap<&Module, BTreeSet<Module>> =
            edges.keys().map(|module| (*module, reach(module))).collect();
        let cycle = |module: &Module| -> Vec<Module> {
            let mutual = reaches[module].iter().filter(|other| reaches[*other].contains(module));
            mutual.cloned().collect()
        };
        self.sources.keys().map(cycle).max_by_key(Vec::len).unwrap_or_default()
    }
}

fn is_inner(path: &[String]) -> bool {
    path.first().is_some_and(|first| matches!(first.as_str(), "crate" | "super" | "self"))
}

/// A path from the crate's root; `exported` ones may also begin in the module itself.
fn absolute(module: &Module, path: &[String], exported: bool) -> Module {
    let mut base = if exported { module.clone() } else { Module::new() };
    let mut rest = path;
    match path.first().map(String::as_str) {
        Some("crate") => (base, rest) = (Module::new(), &path[1..]),
        Some("self") => (base, rest) = (module.clone(), &path[1..]),
        Some("super") => {
            base = module.clone();
            while rest.first().is_some_and(|first| first == "super") {
                base.pop();
                rest = &rest[1..];
            }
        }
        _ => {}
    }
    base.extend(rest.iter().filter(|name| !matches!(name.as_str(), "self" | "*" | "")).cloned());
    base
}

/// The source without comments, texts and the unit tests at its end.
fn plain(source: &str) -> String {
    let source = source.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let mut out = String::new();
    for line in source.lines() {
        let mut text = false;
        let mut before = ' ';
        for (at, c) in line.char_indices() {
            match c {
                '"' if before != '\\' && before != '\'' => text = !text,
                '/' if !text && line[at..].starts_with("//") => break,
                _ if !text => out.push(c),
                _ => {}
            }
            before = c;
        }
        out.push('\n');
    }
    out
}

/// The trees of all `use` items, and whether they are visible outside.
fn uses(source: &str) -> Vec<(bool, String)> {
    let mut found = Vec::new();
    let mut rest = source;
    while let Some(at) = rest.find("use ") {
        let line = rest[..at].rsplit('\n').next().unwrap_or_default().trim();
        let (item, after) = rest[at + 4..].split_once(';').unwrap_or((&rest[at + 4..], ""));
        if line.is_empty() || line.starts_with("pub") {
            found.push((!line.is_empty(), item.to_owned()));
            rest = after;
        } else {
            rest = &rest[at + 4..];
        }
    }
    found
}

/// The paths of a tree.
fn paths(tree: &str) -> Vec<Module> {
    let tree = tree.trim();
    let Some((prefix, inner)) = tree.split_once('{') else {
        let path = tree.split(" as ").next().unwrap_or_default();
        return vec![path.split("::").map(|name| name.trim().to_owned()).collect()];
    };
    let inner = inner.strip_suffix('}').unwrap_or(inner);
    let (mut parts, mut depth) = (vec![String::new()], 0);
    for c in inner.chars() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(part) = parts.last_mut() {
            part.push(c);
        }
    }
    let whole = parts.iter().map(|part| part.trim()).filter(|part| !part.is_empty());
    whole.flat_map(|part| paths(&format!("{}{part}", prefix.trim()))).collect()
}

#[test]
fn import_cycles_are_short() -> Result<()> {
    let host = Path::new(env!("CARGO_MANIFEST_DIR")).join("../host");
    let mut wrong = Vec::new();
    for entry in std::fs::read_dir(&host)? {
        let folder = entry?.path();
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !folder.join("src").is_dir() {
            continue;
        }
        let cycle = Crate::read(&folder.join("src"))?.largest_cycle();
        if cycle.len() > MAX_CYCLE_LENGTH {
            let cycle: Vec<String> = cycle.iter().map(|module| module.join("::")).collect();
            wrong.push(format!("{name}: {} files import each other: {}", cycle.len(), cycle.join(", ")));
        }
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}
