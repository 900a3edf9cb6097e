use crate::manifest::Manifest;
use crate::tools::{self, PrivateTool};
use crate::{WorkbenchError, print_status};
use model::Hook;
use std::path::{Path, PathBuf};
use std::process::Command;
use wit_bindgen_core::Files;

/// Zig's C compiler: one download includes linker and C library, unlike a distribution's clang.
pub(super) const TOOL: PrivateTool = PrivateTool {
    folder: "zig-0.17.0",
    what: "the C compiler of ziglang 0.17.0 (440 MB)",
    program: "bin/python3",
    steps: &[&["python3", "-m", "venv", "."], &["bin/pip", "install", "--quiet", "ziglang==0.17.0"]],
    language: "C",
    remedy: "sudo apt-get install python3 python3-venv",
};

/// Zig's default is 16 MiB, as much as the default memory limit of an instance.
const STACK: &str = "-Wl,-z,stack-size=262144";

/// Writes the header, glue code and type object of a world into a folder: `router.h` and so on.
pub(crate) fn bindings(wit: &Path, hook: Hook, folder: &Path) -> Result<Vec<PathBuf>, WorkbenchError> {
    let wrong = |why: String| WorkbenchError::Wit { path: wit.to_owned(), why };
    let mut resolve = wit_parser::Resolve::default();
    let (package, _) = resolve.push_dir(wit).map_err(|error| wrong(format!("{error:#}")))?;
    let world =
        resolve.select_world(&[package], Some(hook.name())).map_err(|error| wrong(format!("{error:#}")))?;
    let mut files = Files::default();
    wit_bindgen_c::Opts::default()
        .build()
        .generate(&mut resolve, world, &mut files)
        .map_err(|error| wrong(format!("{error:#}")))?;
    let mut written = Vec::new();
    for (name, octets) in files.iter() {
        let path = folder.join(name);
        super::write_if_changed(&path, octets)?;
        written.push(path);
    }
    Ok(written)
}

pub(super) fn build(folder: &Path, manifest: &Manifest, work: &Path) -> Result<Vec<u8>, WorkbenchError> {
    let python = TOOL.ensure_installed()?;
    let generated = bindings(&folder.join("wit"), manifest.world, &folder.join("bindings"))?;
    let glue = generated.iter().filter(|path| path.extension().is_some_and(|ending| ending != "h"));
    let glue: Vec<PathBuf> = glue
        .map(|path| std::path::absolute(path).map_err(WorkbenchError::file(path)))
        .collect::<Result<_, _>>()?;
    let out = work.join("module.wasm");
    let mut command = Command::new(python);
    command.current_dir(folder);
    command.args(["-m", "ziglang", "cc", "--target=wasm32-wasi", "-mexec-model=reactor"]);
    // Source lines for the stacks of faults; they are removed from the component itself.
    command.arg("-gline-tables-only");
    let here = std::path::absolute(folder).map_err(WorkbenchError::file(folder))?;
    command.arg(format!("-ffile-prefix-map={}=.", here.display()));
    command.args(["-O2", "-Wall", "-Wextra", "-Ibindings", "-Wl,--no-entry", STACK]);
    command.arg(manifest.language.source()).args(glue);
    command.arg("-o").arg(std::path::absolute(&out).map_err(WorkbenchError::file(&out))?);
    for name in ["ZIG_GLOBAL_CACHE_DIR", "ZIG_LOCAL_CACHE_DIR"] {
        command.env(name, tools::cache().join("zig-cache"));
    }
    if !tools::cache().join("zig-cache").exists() {
        print_status("the first build compiles the C library, half a minute");
    }
    tools::build(&mut command)?;
    let module = std::fs::read(&out).map_err(WorkbenchError::file(&out))?;
    component(&out, &module)
}

fn component(path: &Path, module: &[u8]) -> Result<Vec<u8>, WorkbenchError> {
    let encode = || {
        let mut encoder = wit_component::ComponentEncoder::default().validate(true).module(module)?;
        encoder.encode()
    };
    encode().map_err(|error| {
        let why = format!("{error:#}");
        match why.find("wasi_snapshot_preview1") {
            Some(_) => WorkbenchError::ForeignImport {
                path: path.to_owned(),
                import: why,
                remedy: "it calls a function of the C library that needs a system (printf, fopen, time, getenv …); use \
                         the host's log, clock and kv instead"
                    .to_owned(),
            },
            None => WorkbenchError::NoComponent { path: path.to_owned(), why },
        }
    })
}
