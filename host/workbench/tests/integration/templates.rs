//! The output of `switchyard plugin new` builds without changes and passes its own cases: all worlds that the examples
//! do not cover, in all languages. The router's template is the examples' code.

use crate::support::{passes_cases, plugin_command, run};

fn worlds(language: &str, worlds: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    for world in worlds {
        let made = folder.path().join(world);
        let mut new = plugin_command();
        new.args(["new", "--lang", language, "--world", world, "--folder"]).arg(&made).arg("first");
        run(&mut new).unwrap_or_else(|error_output| panic!("{world} in {language}: {error_output}"));
        passes_cases(&made, &made.join("cases.toml"));
        let schema = run(plugin_command().arg("schema").arg(made.join("first.wasm"))).unwrap();
        assert!(schema.contains("x-switchyard-lines"), "{world} in {language}: {schema}");
    }
}

#[test]
fn a_template_in_rust_builds_and_passes() {
    worlds("rust", &["delivery-policy"]);
}

#[test]
#[ignore = "each is a cargo build of its own, and the default plugins show the same; the nightly tier runs it"]
fn the_other_templates_in_rust_build_and_pass() {
    worlds("rust", &["screen", "lookup", "resolver", "receipt", "biller", "peer", "front-end"]);
}

/// In languages whose compilers are installed by npm or pip: C and Go too, their compilers are in Python packages.
mod foreign {
    use super::worlds;

    fn other_worlds(language: &str) {
        worlds(
            language,
            &["screen", "lookup", "resolver", "delivery-policy", "receipt", "biller", "peer", "front-end"],
        );
    }

    #[test]
    fn the_templates_in_javascript_build_and_pass() {
        other_worlds("js");
    }

    #[test]
    #[ignore = "an interpreter is compiled with each; the example is built with every run; the nightly tier runs it"]
    fn the_templates_in_python_build_and_pass() {
        other_worlds("python");
    }

    #[test]
    fn the_templates_in_c_build_and_pass() {
        other_worlds("c");
    }

    #[test]
    fn the_templates_in_go_build_and_pass() {
        other_worlds("go");
    }
}
