use crate::WorkbenchError;
use crate::contract;
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

/// The file that is built: the author's file, followed by [`REPORTER`], so that lines keep their numbers. It is in the same
/// folder, so that imports find their files.
const BUILT: &str = ".plugin-with-reports.js";

/// Reports exceptions of a call to the host, which shows them with the fault, and completes the decision of a router.
pub(super) const REPORTER: &str = r"
import { report as reportFault } from 'switchyard:hooks/fault@VERSION';
for (const [name, call] of Object.entries(EXPORT)) {
  EXPORT[name] = (...given) => {
    try {
      const answer = call.apply(EXPORT, given);
      // The list of changes may be left out, as every value that may be missing.
      if (answer && answer.verdict) answer.changes ??= [];
      return answer;
    } catch (thrown) {
      const stack = thrown instanceof Error ? `\n${thrown.stack}` : '';
      reportFault(`${thrown}${stack}`.replaceAll('.plugin-with-reports.js', 'plugin.js'));
      throw thrown;
    }
  };
}
";

pub(super) fn build(folder: &Path, manifest: &Manifest, work: &Path) -> Result<Vec<u8>, WorkbenchError> {
    let program = TOOL.ensure_installed()?;
    let out = work.join("component.wasm");
    let source = folder.join(manifest.language.source());
    let mut text = std::fs::read_to_string(&source).map_err(WorkbenchError::file(&source))?;
    let reporter = REPORTER.replace("VERSION", contract::VERSION);
    text.push_str(&reporter.replace("EXPORT", &contract::camel_case(contract::export(manifest.world))));
    let built = folder.join(BUILT);
    std::fs::write(&built, text).map_err(WorkbenchError::file(&built))?;
    let mut command = Command::new(program);
    command.current_dir(folder);
    command.args(["--wit", "wit", "--js", BUILT, "--world", manifest.world.name()]);
    // No asynchronous calls: the host does not make any.
    command.arg("--sync");
    if !manifest.wasi {
        command.arg("--stub-wasi");
    }
    command.arg("--output").arg(std::path::absolute(&out).map_err(WorkbenchError::file(&out))?);
    let result = tools::build(&mut command);
    std::fs::remove_file(&built).map_err(WorkbenchError::file(&built))?;
    result?;
    std::fs::read(&out).map_err(WorkbenchError::file(&out))
}
