//! Completion scripts and manual pages, generated from the command line.

use crate::context::CliContext;
use crate::output::{Failure, Output, Streams};
use clap::{Args, ValueEnum};
use clap_complete::{Shell, generate};
use std::path::PathBuf;
use std::process::ExitCode;

const EXITS: &str = "\
Exit status:
  0  done
  2  the command line is wrong, or a file cannot be written
";

/// The supported shells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum CompletionShell {
    Bash,
    Zsh,
    Fish,
}

#[derive(Debug, Args)]
#[command(after_help = COMPLETIONS)]
pub struct CompletionsCommand {
    /// The shell.
    shell: CompletionShell,
}

const COMPLETIONS: &str = "\
Exit status:
  0  done
  2  the command line is wrong

Examples:
  switchyard completions bash > /etc/bash_completion.d/switchyard
  switchyard completions zsh > \"${fpath[1]}/_switchyard\"
  switchyard completions fish > ~/.config/fish/completions/switchyard.fish";

#[derive(Debug, Args)]
#[command(after_help = format!("{EXITS}
Example:
  switchyard man /usr/local/share/man/man1 && man switchyard-message-find"))]
pub struct ManCommand {
    /// The directory; it is created if it does not exist.
    folder: PathBuf,
}

impl CompletionsCommand {
    pub(crate) fn run(self, streams: Streams, context: &CliContext) -> ExitCode {
        let output = Output::without_tables(streams, false);
        let shell = match self.shell {
            CompletionShell::Bash => Shell::Bash,
            CompletionShell::Zsh => Shell::Zsh,
            CompletionShell::Fish => Shell::Fish,
        };
        let mut command = (context.command)();
        let mut script = Vec::new();
        generate(shell, &mut command, "switchyard", &mut script);
        let done = output.octets(&script);
        output.finish(done)
    }
}

impl ManCommand {
    pub(crate) fn run(self, streams: Streams, context: &CliContext) -> ExitCode {
        let output = Output::without_tables(streams, false);
        let write = || -> Result<(), Failure> {
            std::fs::create_dir_all(&self.folder).map_err(Failure::file(&self.folder))?;
            let command = (context.command)().name("switchyard");
            clap_mangen::generate_to(command, &self.folder).map_err(Failure::file(&self.folder))?;
            Ok(())
        };
        let done = write();
        output.finish(done)
    }
}

#[cfg(test)]
mod tests {
    use crate::fake_api::{context, run};

    #[test]
    fn completions_contain_the_commands() {
        for shell in ["bash", "zsh", "fish"] {
            let done = run("http://127.0.0.1:1", &["completions", shell]);
            assert_eq!(done.code, 0, "{done:?}");
            for word in ["message", "find", "--json"] {
                assert!(done.out.contains(word.trim_start_matches('-')), "{shell}: {word}");
            }
        }
        assert!(run("http://127.0.0.1:1", &["completions", "tcsh"]).code == 2);
    }

    #[test]
    fn every_command_has_a_manual_page() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/man1");
        let done = run("http://127.0.0.1:1", &["man", path.to_str().unwrap()]);
        assert_eq!((done.code, done.error.as_str()), (0, ""));
        let mut expected = vec!["switchyard".to_owned()];
        for command in (context().command)().get_subcommands() {
            expected.push(format!("switchyard-{}", command.get_name()));
            let inner = command.get_subcommands();
            expected
                .extend(inner.map(|inner| format!("switchyard-{}-{}", command.get_name(), inner.get_name())));
        }
        assert!(expected.len() > 10, "{expected:?}");
        for name in expected {
            let page = std::fs::read_to_string(path.join(format!("{name}.1"))).unwrap();
            assert!(page.contains(".SH NAME") && page.contains(".SH SYNOPSIS"), "{name}: {page}");
        }
        let page = std::fs::read_to_string(path.join("switchyard-message-find.1")).unwrap();
        assert!(page.contains("\\-\\-number"), "{page}");
        let page = std::fs::read_to_string(path.join("switchyard-status.1")).unwrap();
        assert!(page.contains("Exit status"), "{page}");
    }

    #[test]
    fn a_directory_that_cannot_be_created_is_an_error() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().join("man");
        let done = run("http://127.0.0.1:1", &["man", path.to_str().unwrap()]);
        assert_eq!(done.code, 2, "{done:?}");
        assert!(done.error.contains(path.to_str().unwrap()), "{done:?}");
    }
}
