use crate::manifest::Manifest;
use crate::tools;
use crate::{WorkbenchError, print_status};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const TARGET: &str = "wasm32-unknown-unknown";
/// Builds a compiler from Debian's packages, for machines on which rustup cannot add the target.
const SCRIPT: &str = include_str!("../../../../plugins/toolchain/build.sh");
const RUSTUP: &str = "curl --proto '=https' -sSf https://sh.rustup.rs | sh";

pub(super) fn build(folder: &Path, manifest: &Manifest) -> Result<Vec<u8>, WorkbenchError> {
    let compiler = compiler()?;
    let mut cargo = Command::new("cargo");
    cargo.current_dir(folder).args(["build", "--quiet", "--release", "--target", TARGET]);
    // Source lines for the stacks of faults; they are removed from the component itself.
    cargo.env("CARGO_PROFILE_RELEASE_DEBUG", "line-tables-only").env("CARGO_PROFILE_RELEASE_STRIP", "none");
    cargo.env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", "wasm-component-ld");
    // Remove this machine's paths from the component: the same code must give the same version everywhere.
    let mut remap = String::new();
    for (path, name) in [(std::path::absolute(folder).ok(), "/plugin"), (cargo_home(), "/cargo")] {
        if let Some(path) = path {
            remap = format!("{remap} --remap-path-prefix={}={name}", path.display());
        }
    }
    // The host has vector instructions.
    cargo.env("RUSTFLAGS", format!("-C target-feature=+simd128{remap}"));
    // A separate target folder, regardless of the caller's environment.
    let target = folder.join("target");
    cargo.env("CARGO_TARGET_DIR", std::path::absolute(&target).map_err(WorkbenchError::file(&target))?);
    for name in ["CARGO_ENCODED_RUSTFLAGS", "RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER"] {
        cargo.env_remove(name);
    }
    if let Some(compiler) = compiler {
        cargo.env("RUSTC", compiler).env_remove("RUSTUP_TOOLCHAIN");
    }
    if !target.exists() {
        print_status("the first build compiles the binding generator, half a minute");
    }
    // Cargo's output goes directly to the author.
    let status = cargo.stdin(Stdio::null()).status();
    let status = status.map_err(|source| WorkbenchError::Start { program: "cargo".to_owned(), source })?;
    if !status.success() {
        return Err(WorkbenchError::Build { program: "cargo build".to_owned(), status: status.to_string() });
    }
    let made = target.join(TARGET).join("release").join(format!("{}.wasm", manifest.name.replace('-', "_")));
    std::fs::read(&made).map_err(WorkbenchError::file(&made))
}

fn cargo_home() -> Option<PathBuf> {
    let set = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    set.or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cargo")))
}

/// The compiler to use; `None`: the default one has the target.
fn compiler() -> Result<Option<PathBuf>, WorkbenchError> {
    if let Some(parse_plugin_reference) =
        std::env::var_os("SWITCHYARD_GUEST_RUSTC").filter(|value| !value.is_empty())
    {
        return Ok(Some(parse_plugin_reference.into()));
    }
    let missing = |tool, remedy: String| WorkbenchError::Missing { language: "Rust", tool, remedy };
    let sysroot = sysroot().ok_or_else(|| missing("a Rust toolchain (cargo, rustc)", RUSTUP.to_owned()))?;
    if has_target(&sysroot) {
        return Ok(None);
    }
    let private = private();
    if private.join("complete").exists() {
        return Ok(Some(private.join("bin/rustc")));
    }
    print_status(&format!("the Rust target {TARGET} is missing; installing it with rustup"));
    let added = Command::new("rustup").args(["target", "add", TARGET]).stdin(Stdio::null()).output();
    if added.is_ok_and(|output| output.status.success()) && has_target(&sysroot) {
        return Ok(None);
    }
    Err(missing(
        "the Rust target wasm32-unknown-unknown",
        format!(
            "rustup target add {TARGET}\n\nWhere rustup cannot get it, on Debian 12 or later (600 MB, two minutes, no root):\
             \n\n    switchyard plugin toolchain"
        ),
    ))
}

fn sysroot() -> Option<PathBuf> {
    let printed = Command::new("rustc").args(["--print", "sysroot"]).output().ok()?;
    printed.status.success().then(|| PathBuf::from(String::from_utf8_lossy(&printed.stdout).trim()))
}

fn has_target(sysroot: &Path) -> bool {
    sysroot.join("lib/rustlib").join(TARGET).join("lib").exists()
}

fn private() -> PathBuf {
    tools::cache().join("guest-toolchain")
}

/// Builds the private compiler, unless it exists already.
pub(crate) fn toolchain() -> Result<PathBuf, WorkbenchError> {
    let folder = private();
    if folder.join("complete").exists() {
        return Ok(folder);
    }
    let cache = tools::cache();
    std::fs::create_dir_all(&cache).map_err(WorkbenchError::file(&cache))?;
    let script = cache.join("guest-toolchain.sh");
    std::fs::write(&script, SCRIPT).map_err(WorkbenchError::file(&script))?;
    print_status(&format!(
        "building a Rust compiler for plugins in {} (once, two minutes)",
        folder.display()
    ));
    let status = Command::new("bash").arg(&script).arg(&folder).stdin(Stdio::null()).status();
    let status = status.map_err(|source| WorkbenchError::Start { program: "bash".to_owned(), source })?;
    if !status.success() {
        return Err(WorkbenchError::Build { program: "the script".to_owned(), status: status.to_string() });
    }
    Ok(folder)
}
