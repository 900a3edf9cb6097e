//! The worked examples in `plugins/examples`: five languages, one file of cases.

use crate::support::{passes_cases, root};
use std::path::PathBuf;

fn examples() -> PathBuf {
    root().join("plugins/examples")
}

fn all_cases(language: &str) {
    passes_cases(&examples().join(language), &examples().join("cases.toml"));
}

#[test]
fn the_example_in_rust_passes() {
    all_cases("rust");
}

/// In languages whose compilers are installed by npm or pip: C and Go too, their compilers are in Python packages.
mod foreign {
    use super::{all_cases, examples};
    use crate::support::{plugin_command, run};

    #[test]
    fn the_example_in_javascript_passes() {
        all_cases("js");
    }

    #[test]
    fn the_example_in_python_passes() {
        all_cases("python");
    }

    #[test]
    fn the_example_in_c_passes() {
        all_cases("c");
    }

    #[test]
    fn the_example_in_go_passes() {
        all_cases("go");
    }

    #[test]
    fn a_failing_case_shows_expected_and_actual() {
        let folder = tempfile::tempdir().unwrap();
        let cases = folder.path().join("cases.toml");
        let text = "[given]\npolicy-text = 'route 86 south'\n[given.peers]\nsouth = {}\n[[case]]\nname = 'wrong peer'\nroute = { \
                    destination = '8613' }\nexpect = { forward = ['north'] }\n[[case]]\nname = 'fine'\nroute = { destination = \
                    '49' }\nexpect = 'pass'\n";
        std::fs::write(&cases, text).unwrap();
        let error_output =
            run(plugin_command().arg("test").arg(examples().join("c")).arg("--cases").arg(&cases))
                .unwrap_err();
        assert!(
            error_output.contains(
                "1 of 2 cases failed\nFAIL  wrong peer\n      asked     route \"\" -> \"8613\" from shop\n      expected  { forward \
                 = [{ peer = \"north\" }] }\n      got       { forward = [{ peer = \"south\" }] }, note = \"prefix 86\"\nok    \
                 fine\n"
            ),
            "{error_output}"
        );
    }
}
