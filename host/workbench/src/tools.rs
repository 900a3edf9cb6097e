//! Tools of other languages: run from the system, or installed into a private folder of the user's cache.

use crate::WorkbenchError;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The folder of private tools: `$XDG_CACHE_HOME/switchyard`, by default `~/.cache/switchyard`.
pub(crate) fn cache() -> PathBuf {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("XDG_CACHE_HOME")
        .or_else(|| set("HOME").map(|home| home.join(".cache")))
        .unwrap_or_else(std::env::temp_dir)
        .join("switchyard")
}

/// A tool that is installed into a private folder.
pub(crate) struct PrivateTool {
    /// The folder's name. It includes the tool's version, so that another version has its own folder.
    pub(crate) folder: &'static str,
    /// The name of the tool for messages.
    pub(crate) what: &'static str,
    /// The program's path inside the folder.
    pub(crate) program: &'static str,
    /// The installation commands, run inside the folder.
    pub(crate) steps: &'static [&'static [&'static str]],
    /// The language that needs it.
    pub(crate) language: &'static str,
    /// How to install the first program of the steps.
    pub(crate) remedy: &'static str,
}

impl PrivateTool {
    /// The path of the program. Installs it first if it is missing, with a status message.
    pub(crate) fn ensure_installed(&self) -> Result<PathBuf, WorkbenchError> {
        let folder = cache().join(self.folder);
        let (complete, program) = (folder.join("complete"), folder.join(self.program));
        if complete.exists() {
            return Ok(program);
        }
        std::fs::create_dir_all(&folder).map_err(WorkbenchError::file(&folder))?;
        // Of two concurrent builds, only one installs the tool.
        let lock = folder.with_extension("lock");
        let held = std::fs::File::create(&lock).map_err(WorkbenchError::file(&lock))?;
        held.lock().map_err(WorkbenchError::file(&lock))?;
        if complete.exists() {
            return Ok(program);
        }
        crate::print_status(&format!("installing {} into {} (once)", self.what, folder.display()));
        for step in self.steps {
            let Some((first, rest)) = step.split_first() else { continue };
            self.step(&folder, first, rest)?;
        }
        std::fs::write(&complete, "").map_err(WorkbenchError::file(&complete))?;
        Ok(program)
    }

    fn step(&self, folder: &Path, program: &'static str, arguments: &[&str]) -> Result<(), WorkbenchError> {
        let inside = folder.join(program);
        let mut command = Command::new(if inside.exists() { inside.as_os_str() } else { program.as_ref() });
        let format = format!("cd {} && {program} {}", folder.display(), arguments.join(" "));
        let output = command.args(arguments).current_dir(folder).stdin(Stdio::null()).output();
        let output = match output {
            Ok(output) => output,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(WorkbenchError::Missing {
                    language: self.language,
                    tool: program,
                    remedy: self.remedy.to_owned(),
                });
            }
            Err(source) => return Err(WorkbenchError::Start { program: program.to_owned(), source }),
        };
        if output.status.success() {
            return Ok(());
        }
        let mut why = output_text(&output);
        if why.contains("ensurepip") {
            why = format!("{why}\nInstall what is missing with:\n\n    {}\n", self.remedy);
        }
        Err(WorkbenchError::Install { tool: self.what.to_owned(), why, command: format })
    }
}

/// Runs a build tool; its output is shown only if it fails.
pub(crate) fn build(command: &mut Command) -> Result<(), WorkbenchError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|source| WorkbenchError::Start { program: program.clone(), source })?;
    if output.status.success() {
        return Ok(());
    }
    crate::print_status(&output_text(&output));
    Err(WorkbenchError::Build { program, status: output.status.to_string() })
}

fn output_text(output: &std::process::Output) -> String {
    let texts = [&output.stdout, &output.stderr].map(|octets| String::from_utf8_lossy(octets));
    texts.join("\n").trim().to_owned()
}
