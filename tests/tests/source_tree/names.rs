//! Names in the source tree: every public type name has one definition, and metaphors are not used where the field has a term.

use anyhow::{Context, Result, ensure};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Public type names with more than one definition, each with its reason. An entry whose name has one definition is an error.
const SHARED: &[(&str, &str)] = &[
    ("Bind", "the login PDU of SMPP and of SGIP"),
    ("DecodeError", "each codec has its own"),
    ("Deliver", "the PDU of SGIP and the TPDU of GSM"),
    ("Error", "each crate with one error type calls it so"),
    ("Event", "what a sans-I/O state machine reports to its owner"),
    ("Header", "the PDU header of SMPP and of SGIP, the user data header of GSM"),
    (
        "Problem",
        "the document of the API, and the response of a handler with it (Rust allows no foreign trait on a foreign type)",
    ),
    ("Session", "a protocol's state machine for one connection"),
    ("Submit", "the PDU of SGIP and the TPDU of GSM"),
];

/// Crates of the development tools, whose type names may repeat those of the product.
const TOOLS: &[&str] = &["release", "testkit", "workloads", "workspace", "xtask"];

/// Metaphors for which the field or the trade has a term.
const BANNED: &[&str] = &[
    "house",
    "porter",
    "doorman",
    "desk",
    "shelf",
    "patience",
    "papers",
    "strangers",
    "obeying",
    "judgement",
    "judgment",
    "ghost",
    "strand",
    "platter",
    "mishap",
    "roomy",
    "lend",
];

/// Lines that may contain such a word: file, part of the line, reason. An entry that matches no line is an error.
const ALLOWED: &[(&str, &str, &str)] = &[
    (
        "host/business/src/options.rs",
        "was = \"patience\"",
        "an old key in stored versions of the configuration",
    ),
    ("host/shell/src/options.rs", "was = \"patience\"", "an old key in stored versions of the configuration"),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// All Rust sources below a folder of the source tree, as paths from its top, without build products and stored old versions.
fn sources(folder: &str) -> Result<Vec<String>> {
    let (mut files, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(root().join(&folder)).with_context(|| folder.clone())? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = format!("{folder}/{name}");
            if entry.file_type()?.is_dir() {
                if !["target", "node_modules", "older"].contains(&&*name) && !name.starts_with('.') {
                    folders.push(path);
                }
            } else if name.ends_with(".rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

/// The name of the public type that a line defines.
fn public_type(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("pub ")?;
    let rest = rest.strip_prefix("unsafe ").unwrap_or(rest);
    let (keyword, rest) = rest.split_once(' ')?;
    let is_type = ["struct", "enum", "trait", "type", "union"].contains(&keyword);
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
    (is_type && end > 0).then(|| &rest[..end])
}

/// The lines of a file with their numbers, without modules marked `#[cfg(test)]`.
fn without_tests(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let (mut marked, mut skipped_to) = (false, None);
    (1..).zip(text.lines()).filter(move |(_, line)| {
        let indent = line.len() - line.trim_start().len();
        if let Some(end) = skipped_to {
            if indent == end && line.trim_start().starts_with('}') {
                skipped_to = None;
            }
            return false;
        }
        if marked && line.contains("mod ") && line.ends_with('{') {
            skipped_to = Some(indent);
        }
        marked = line.trim() == "#[cfg(test)]" || (marked && line.trim_start().starts_with("#["));
        skipped_to.is_none()
    })
}

#[test]
fn a_public_type_name_has_one_definition() -> Result<()> {
    let mut definitions: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for file in sources("host")? {
        let mut parts = file.split('/').skip(1);
        let is_tool = parts.next().is_some_and(|name| TOOLS.contains(&name));
        if is_tool || parts.next() != Some("src") || file.ends_with("/tests.rs") || file.contains("/tests/") {
            continue;
        }
        let text = std::fs::read_to_string(root().join(&file))?;
        for (number, line) in without_tests(&text) {
            if let Some(name) = public_type(line) {
                definitions.entry(name.to_owned()).or_default().push(format!("{file}:{number}"));
            }
        }
    }
    ensure!(definitions.len() > 500, "only {} public types were found", definitions.len());
    ensure!(SHARED.len() <= 10, "at most ten names may be shared");
    let mut report = String::new();
    for (name, places) in &definitions {
        if places.len() > 1 && !SHARED.iter().any(|(shared, _)| shared == name) {
            writeln!(report, "{name} is defined in {}", places.join(", "))?;
        }
    }
    for (name, _) in SHARED {
        if definitions.get(*name).is_none_or(|places| places.len() < 2) {
            writeln!(report, "{name} has one definition and needs no entry in SHARED")?;
        }
    }
    ensure!(report.is_empty(), "public type names:\n{report}");
    Ok(())
}

#[test]
fn former_private_words_are_not_used() -> Result<()> {
    ensure!(ALLOWED.len() <= 15, "at most fifteen lines may be allowed");
    let (mut report, mut used) = (String::new(), vec![false; ALLOWED.len()]);
    for file in ["host", "tests", "plugins"]
        .iter()
        .map(|folder| sources(folder))
        .collect::<Result<Vec<_>>>()?
        .concat()
    {
        if file == "tests/tests/source_tree/names.rs" {
            continue;
        }
        let text = std::fs::read_to_string(root().join(&file))?;
        for (number, line) in (1..).zip(text.lines()) {
            let is_banned = |word: &str| BANNED.iter().any(|banned| word.eq_ignore_ascii_case(banned));
            if !line.split(|c: char| !c.is_alphanumeric()).any(is_banned) {
                continue;
            }
            match ALLOWED.iter().position(|(path, part, _)| *path == file && line.contains(part)) {
                Some(index) => used[index] = true,
                None => writeln!(report, "{file}:{number}: {}", line.trim())?,
            }
        }
    }
    for ((path, part, _), _) in ALLOWED.iter().zip(&used).filter(|(_, used)| !**used) {
        writeln!(report, "{path}: no line with {part:?} needs an entry in ALLOWED")?;
    }
    ensure!(report.is_empty(), "former private words:\n{report}");
    Ok(())
}

#[test]
fn definitions_are_read() {
    let text = "pub struct A;\n#[cfg(test)]\nmod tests {\n    pub struct B;\n}\npub(crate) enum C {}\n  pub type D<T> = T;\n";
    let names: Vec<&str> = without_tests(text).filter_map(|(_, line)| public_type(line)).collect();
    assert_eq!(names, ["A", "D"]);
}
