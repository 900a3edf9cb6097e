use crate::WorkbenchError;
use crate::contract;
use crate::manifest::Manifest;
use crate::tools::{self, PrivateTool};
use model::Hook;
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

/// The module that is built. It contains the author's class, and reports exceptions of a call to the host, which shows them
/// with the fault.
const MODULE: &str = "plugin_with_reports";

pub(super) const REPORTER: &str = r#"import functools

from plugin import CLASS
from wit_world.imports import fault


def _reporting(call):
    @functools.wraps(call)
    def reporting(*given):
        try:
            return call(*given)
        except BaseException as raised:
            # Not by the module traceback: it looks for the files of the source, and there are none.
            lines, frame = [], raised.__traceback__.tb_next
            while frame is not None:
                code = frame.tb_frame.f_code
                lines.insert(0, f"  {code.co_name} {code.co_filename}:{frame.tb_lineno}")
                frame = frame.tb_next
            fault.report("\n".join([f"{type(raised).__name__}: {raised}", *lines]))
            raise

    return reporting


for _name, _call in list(vars(CLASS).items()):
    if callable(_call) and not _name.startswith("_"):
        setattr(CLASS, _name, _reporting(_call))
"#;

/// The class that a plugin of this hook has.
fn class(hook: Hook) -> String {
    let mut name = contract::camel_case(contract::export(hook));
    if let Some(first) = name.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    name
}

pub(super) fn build(folder: &Path, manifest: &Manifest, work: &Path) -> Result<Vec<u8>, WorkbenchError> {
    let program = TOOL.ensure_installed()?;
    let out = work.join("component.wasm");
    let module = work.join(format!("{MODULE}.py"));
    std::fs::write(&module, REPORTER.replace("CLASS", &class(manifest.world)))
        .map_err(WorkbenchError::file(&module))?;
    let mut command = Command::new(program);
    command.current_dir(folder);
    command.args(["--wit-path", "wit", "--world", manifest.world.name(), "componentize"]);
    command.args(["--python-path", "."]).arg("--python-path");
    command.arg(std::path::absolute(work).map_err(WorkbenchError::file(work))?);
    if !manifest.wasi {
        // Stub out WASI: no files, no clock, no random numbers.
        command.arg("--stub-wasi");
    }
    command.arg(MODULE);
    command.arg("--output").arg(std::path::absolute(&out).map_err(WorkbenchError::file(&out))?);
    tools::build(&mut command)?;
    std::fs::read(&out).map_err(WorkbenchError::file(&out))
}
