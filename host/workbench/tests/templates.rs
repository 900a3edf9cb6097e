//! What `switchyard plugin new` makes builds as it stands and passes its own cases: all worlds that the examples do not show,
//! in all languages. The router's template is the examples' code.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed step is a failed test")]

mod support;

use support::{passes, plugin, run};

fn three_worlds(language: &str) {
    worlds(language, &["resolver", "delivery-policy", "biller"]);
}

fn worlds(language: &str, worlds: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    for world in worlds {
        let made = folder.path().join(world);
        let mut new = plugin();
        new.args(["new", "--lang", language, "--world", world, "--folder"]).arg(&made).arg("first");
        run(&mut new).unwrap_or_else(|complaint| panic!("{world} in {language}: {complaint}"));
        passes(&made, &made.join("cases.toml"));
    }
}

#[test]
fn the_templates_in_rust_build_and_pass() {
    three_worlds("rust");
}

#[test]
fn the_templates_in_javascript_build_and_pass() {
    three_worlds("js");
}

#[test]
fn a_template_in_python_builds_and_passes() {
    worlds("python", &["biller"]);
}

#[test]
#[ignore = "a component with a Python interpreter in it takes a minute of processor time: cargo test -- --ignored"]
fn the_other_templates_in_python_build_and_pass() {
    worlds("python", &["resolver", "delivery-policy"]);
}

#[test]
fn the_templates_in_c_build_and_pass() {
    three_worlds("c");
}
