use crate::WorkbenchError;
use crate::manifest::Manifest;
use crate::tools::{self, PrivateTool};
use std::path::Path;
use std::process::Command;

pub(super) const TOOL: PrivateTool = PrivateTool {
    folder: "python-0.25.1",
    what: "componentize-py 0.25.1 (80 MB)",
    program: "bin/componentize-py",
    steps: &[&["python3", "-m", "venv", "."], &["bin/pip", "install", "--quiet", "componentize-py==0.25.1"]],
    language: "Python",
    remedy: "sudo apt-get install python3 python3-venv",
};

pub(super) fn build(folder: &Path, manifest: &Manifest, work: &Path) -> Result<Vec<u8>, WorkbenchError> {
    let program = TOOL.ensure_installed()?;
    let out = work.join("component.wasm");
    let mut command = Command::new(program);
    command.current_dir(folder);
    command.args(["--wit-path", "wit", "--world", manifest.world.name(), "componentize"]);
    if !manifest.wasi {
        // Stub out WASI: no files, no clock, no random numbers.
        command.arg("--stub-wasi");
    }
    command.arg("plugin");
    command.arg("--output").arg(std::path::absolute(&out).map_err(WorkbenchError::file(&out))?);
    tools::build(&mut command)?;
    std::fs::read(&out).map_err(WorkbenchError::file(&out))
}
