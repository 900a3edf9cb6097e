//! Generates `docs/reference/wit.md` from the interfaces in `wit/`.

use std::fmt::Write as _;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../wit");

/// The files, in the order of the page.
const FILES: [&str; 11] = [
    "screen",
    "lookup",
    "router",
    "resolver",
    "delivery-policy",
    "receipt",
    "biller",
    "peer",
    "front-end",
    "capabilities",
    "types",
];

const HEAD: &str = "# Plugin interfaces\n\n\
    Generated from `wit/` (`UPDATE=1 cargo test --workspace --lib --bins is_up_to_date`), do not edit.\n\n\
    The contract between plugins and the daemon, in WIT, the interface language of WebAssembly components. The package is \
    `switchyard:hooks@0.3.0`; plugins for 0.2.0 and routers for 0.1.0 (`wit/previous`) are still served. The files have the fields of each record. \
    [Writing a plugin](../plugin-author/README.md) shows how to use it.\n";

/// Writes the interfaces and worlds of a file: their items, without the fields of records.
fn write_file(page: &mut String, name: &str, text: &str) {
    let _ = writeln!(page, "\n## {name}.wit\n\nFile: `wit/{name}.wit`.");
    let (mut depth, mut doc) = (0, Vec::new());
    for line in text.lines().map(str::trim) {
        if let Some(words) = line.strip_prefix("///") {
            doc.push(words.trim());
            continue;
        }
        if line.is_empty()
            || line.starts_with("//")
            || line.starts_with("package ")
            || line.starts_with("use ")
        {
            doc.clear();
            continue;
        }
        let meaning = std::mem::take(&mut doc).join(" ").replace('|', "\\|");
        match (depth, line.strip_suffix('{')) {
            (0, Some(item)) => {
                let _ = writeln!(page, "\n### `{}`\n", item.trim());
                if !meaning.is_empty() {
                    let _ = writeln!(page, "{meaning}\n");
                }
                let _ = writeln!(page, "| item | meaning |\n|---|---|");
                depth = 1;
            }
            (1, Some(item)) => {
                let _ = writeln!(page, "| `{}` | {meaning} |", item.trim());
                depth = 2;
            }
            (_, Some(_)) => depth += 1,
            (_, None) if line == "}" => depth -= 1,
            (1, None) => {
                let _ = writeln!(page, "| `{}` | {meaning} |", line.trim_end_matches(';'));
            }
            (_, None) => {}
        }
    }
}

fn page() -> String {
    let mut page = HEAD.to_owned();
    for name in FILES {
        write_file(&mut page, name, &std::fs::read_to_string(format!("{FOLDER}/{name}.wit")).unwrap());
    }
    page
}

#[test]
fn interface_reference_is_up_to_date() {
    testkit::reference_page::check("docs/reference/wit.md", &page());
}

#[test]
fn the_reference_has_every_file_and_function() {
    let (page, mut functions) = (page(), 0);
    for entry in std::fs::read_dir(FOLDER).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|end| end == "wit") {
            let name = path.file_stem().unwrap().to_str().unwrap();
            assert!(FILES.contains(&name), "{name}");
            functions += std::fs::read_to_string(&path).unwrap().matches(": func(").count();
        }
    }
    assert_eq!(page.matches(": func(").count(), functions);
}
