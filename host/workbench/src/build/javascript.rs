use crate::WorkbenchError;
use crate::manifest::Manifest;
use crate::tools::{self, PrivateTool};
use std::path::Path;
use std::process::Command;

pub(super) const TOOL: PrivateTool = PrivateTool {
    folder: "js-0.4.5",
    what: "componentize-qjs 0.4.5 (40 MB)",
    program: "node_modules/.bin/componentize-qjs",
    steps: &[&[
        "npm",
        "install",
        "--prefix",
        ".",
        "--no-audit",
        "--no-fund",
        "--loglevel=error",
        "componentize-qjs@0.4.5",
    ]],
    language: "JavaScript",
    remedy: "sudo apt-get install nodejs npm",
};

pub(super) fn build(folder: &Path, manifest: &Manifest, work: &Path) -> Result<Vec<u8>, WorkbenchError> {
    let program = TOOL.ensure_installed()?;
    let out = work.join("component.wasm");
    let mut command = Command::new(program);
    command.current_dir(folder);
    command.args(["--wit", "wit", "--js", manifest.language.source(), "--world", manifest.world.name()]);
    // No asynchronous calls: the host does not make any.
    command.args(["--sync", "--minify"]);
    if !manifest.wasi {
        command.arg("--stub-wasi");
    }
    command.arg("--output").arg(std::path::absolute(&out).map_err(WorkbenchError::file(&out))?);
    tools::build(&mut command)?;
    std::fs::read(&out).map_err(WorkbenchError::file(&out))
}
