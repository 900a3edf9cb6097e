//! Faults name their cause and the place in the source, in each language.

use crate::support::{plugin_command, root, run};
use std::path::Path;

/// Copies the example in a language, with another line in front of one of its lines.
fn flawed_example(folder: &Path, language: &str, source: &str, before: &str, flaw: &str) {
    let example = root().join("plugins/examples").join(language);
    for file in ["plugin.toml", "Cargo.toml", "Cargo.lock", "go.mod"] {
        if example.join(file).exists() {
            std::fs::copy(example.join(file), folder.join(file)).unwrap();
        }
    }
    let text = std::fs::read_to_string(example.join(source)).unwrap();
    assert_eq!(text.matches(before).count(), 1, "{before:?}");
    std::fs::create_dir_all(folder.join(source).parent().unwrap()).unwrap();
    std::fs::write(folder.join(source), text.replace(before, &format!("{flaw}\n{before}"))).unwrap();
    let cases =
        "[[case]]\nname = \"flaw\"\nroute = { destination = \"1\", source = \"flaw\" }\nexpect = \"pass\"\n";
    std::fs::write(folder.join("cases.toml"), cases).unwrap();
}

/// The output of `plugin test` about the fault.
fn told(language: &str, source: &str, before: &str, flaw: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    flawed_example(folder.path(), language, source, before, flaw);
    let line = std::fs::read_to_string(folder.path().join(source)).unwrap();
    let line = line.lines().position(|line| line == flaw).unwrap() + 1;
    let told = run(plugin_command().arg("test").arg(folder.path())).unwrap_err();
    told.replace(&format!(":{line}"), ":LINE")
}

#[test]
fn javascript_names_its_exception_and_line() {
    let flaw = "    if (message.source.value === 'flaw') rules[9999].peer.length;";
    let told = told("js", "plugin.js", "    const found = matchDestination(table, 0xffffffff);", flaw);
    assert!(
        told.contains("{ fault = \"trap: TypeError: cannot read property 'peer' of undefined\" }"),
        "{told}"
    );
    assert!(told.contains("at route (/plugin.js:LINE:"), "{told}");
}

#[test]
fn c_names_its_function_and_line() {
    let flaw = "  if (is(&message->source.value, \"flaw\")) abort();";
    let told = told("c", "plugin.c", "  switchyard_hooks_tables_found_t found;", flaw);
    assert!(told.contains("in exports_switchyard_hooks_routing_route at ./plugin.c:LINE\n"), "{told}");
}

#[test]
fn go_names_its_panic_and_line() {
    let flaw = "\tif message.Source.Value == \"flaw\" { _ = rules[9999].peer }";
    let told = told("go", "plugin.go", "\tfound := tables.MatchDestination(table, 0xFFFFFFFF)", flaw);
    assert!(told.contains("{ fault = \"trap: runtime error: index out of range [9999]"), "{told}");
    assert!(told.contains("example.com/example-go.Route example.com/example-go/plugin.go:LINE"), "{told}");
}

#[test]
#[ignore = "an interpreter is compiled; the example is built with every run; the nightly tier runs it"]
fn python_names_its_exception_and_line() {
    let flaw = "        message.source.value == \"flaw\" and {}[\"no such route\"]";
    let told =
        told("python", "plugin.py", "        found = tables.match_destination(table, 0xFFFFFFFF)", flaw);
    assert!(told.contains("{ fault = \"trap: KeyError: 'no such route'\" }"), "{told}");
    assert!(told.contains("route /0/plugin.py:LINE"), "{told}");
}

#[test]
#[ignore = "a cargo build of its own; the nightly tier runs it"]
fn rust_names_its_panic_and_line() {
    let flaw = "    assert!(message.source.value != \"flaw\", \"no such route\");";
    let before = "    let found = tables::match_destination(policy.table, u32::MAX);";
    let told = told("rust", "src/lib.rs", before, flaw);
    assert!(told.contains("{ fault = \"trap: panicked at src/lib.rs:LINE:5: no such route\" }"), "{told}");
    assert!(told.contains("in decide at /plugin/src/lib.rs:LINE\n"), "{told}");
}
