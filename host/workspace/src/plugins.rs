//! `cargo xtask plugins`: builds the plugins, on machines with and without rustup's wasm target.

use anyhow::{Context, Result, bail};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

const TARGET: &str = "wasm32-unknown-unknown";

/// Builds all plugins into `target/plugins`; rebuilds only what has changed.
pub fn build() -> Result<PathBuf> {
    build_selected(&["--workspace"])
}

/// Builds only these packages of `plugins/`.
pub fn build_only(packages: &[&str]) -> Result<PathBuf> {
    let selection: Vec<_> = packages.iter().flat_map(|package| ["--package", package]).collect();
    build_selected(&selection)
}

fn build_selected(selection: &[&str]) -> Result<PathBuf> {
    let root = crate::root();
    let rustc = compiler(&root)?;
    let build = root.join("target/plugins-build");
    let mut cargo = crate::cargo();
    cargo
        .current_dir(root.join("plugins"))
        .args(["build", "--release", "--lib", "--target", TARGET])
        .args(selection)
        .env("CARGO_TARGET_DIR", &build)
        .env(format!("CARGO_TARGET_{}_LINKER", TARGET.to_uppercase().replace('-', "_")), "wasm-component-ld")
        // Paths of this machine must not get into a component. The host has vector instructions.
        .env("RUSTFLAGS", format!("{} -C target-feature=+simd128", remap(&root)));
    if let Some(rustc) = rustc {
        cargo.env("RUSTC", rustc).env_remove("RUSTUP_TOOLCHAIN");
    }
    crate::timed("building the plugins", || crate::run(&mut cargo)).context("building the plugins failed")?;
    let out = root.join("target/plugins");
    std::fs::create_dir_all(&out)?;
    let built = build.join(TARGET).join("release");
    let mut count = 0;
    for entry in std::fs::read_dir(&built).with_context(|| format!("reading {}", built.display()))? {
        let path = entry?.path();
        if path.extension().is_some_and(|ending| ending == "wasm") {
            let target = out.join(path.file_name().context("a file without a name")?);
            let new = with_policy_schema(&root, &path)?;
            let old = std::fs::read(&target).unwrap_or_default();
            if new != old {
                std::fs::write(&target, new)?;
            }
            count += 1;
        }
    }
    if count == 0 {
        bail!("the build left no component in {}", built.display());
    }
    Ok(out)
}

/// The component, with the schema of its policy document if `policies/schemas` has one.
fn with_policy_schema(root: &Path, component: &Path) -> Result<Vec<u8>> {
    let octets = std::fs::read(component)?;
    let name = component.file_stem().unwrap_or_default().to_string_lossy().replace('_', "-");
    let schema = root.join("policies/schemas").join(format!("{name}.json"));
    if !schema.exists() {
        return Ok(octets);
    }
    let schema = std::fs::read_to_string(schema)?;
    policy_schema::embed(&octets, &schema).with_context(|| format!("the schema of {name}"))
}

/// The languages in which `plugins/examples` implements the same plugin.
const LANGUAGES: [&str; 5] = ["rust", "js", "python", "c", "go"];
/// Build tools in addition to Rust. Everything else comes from npm and PyPI, into the user's cache.
const TOOLS: [&str; 3] = ["nodejs", "npm", "python3-venv"];

/// Builds the worked examples into `target/plugins/example-LANGUAGE.wasm`, with `switchyard plugin build`; rebuilds only what has
/// changed.
pub fn examples(daemon: &Path) -> Result<()> {
    let root = crate::root();
    crate::packages::install(|package| TOOLS.contains(&package))?;
    let rustc = compiler(&root)?;
    for language in LANGUAGES {
        let mut build = Command::new(daemon);
        build.args(["plugin", "build"]).arg(root.join("plugins/examples").join(language));
        build.arg("--out").arg(root.join(format!("target/plugins/example-{language}.wasm")));
        if let Some(rustc) = &rustc {
            build.env("SWITCHYARD_GUEST_RUSTC", rustc);
        }
        crate::run(&mut build).with_context(|| format!("building the example in {language}"))?;
    }
    Ok(())
}

fn remap(root: &Path) -> String {
    let cargo_home = std::env::var_os("CARGO_HOME").map_or_else(
        || PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".cargo"),
        PathBuf::from,
    );
    format!(
        "--remap-path-prefix={}=/switchyard --remap-path-prefix={}=/cargo",
        root.display(),
        cargo_home.display()
    )
}

/// The compiler for plugins: `None` for the default one if it has the target.
fn compiler(root: &Path) -> Result<Option<PathBuf>> {
    let private = root.join(".state/guest-toolchain");
    if private.join("complete").exists() {
        return Ok(Some(private.join("bin/rustc")));
    }
    if has_target()? {
        return Ok(None);
    }
    println!("plugins: the Rust target {TARGET} is missing; asking rustup for it");
    if added_by_rustup() && has_target()? {
        return Ok(None);
    }
    println!(
        "plugins: rustup cannot add it here; building a private one from Debian's packages (once, 2 minutes)"
    );
    let script = root.join("plugins/toolchain/build.sh");
    if crate::run(Command::new(&script).arg(&private)).is_err() {
        println!("plugins: trying again with fresh package lists");
        crate::run(crate::root_command("apt-get").args(["update", "-q"]))?;
        crate::run(Command::new(&script).arg(&private))?;
    }
    Ok(Some(private.join("bin/rustc")))
}

/// Maximum time for rustup to search for the target before it starts a download.
const RUSTUP_SEARCHES: Duration = Duration::from_secs(20);

/// Asks rustup for the target. Without access to rustup's server it would wait for minutes, so the search has a
/// timeout; a started download has none.
fn added_by_rustup() -> bool {
    let mut rustup = Command::new("rustup");
    rustup.args(["target", "add", TARGET]).stdin(Stdio::null()).stderr(Stdio::piped());
    let Ok(mut child) = rustup.spawn() else { return false };
    let Some(errors) = child.stderr.take() else { return false };
    let (sender, began) = mpsc::channel();
    let reader = std::thread::spawn(move || {
        for line in BufReader::new(errors).lines().map_while(Result::ok) {
            eprintln!("{line}");
            if line.contains("downloading") {
                // The receiver may have been dropped.
                let _ = sender.send(());
            }
        }
    });
    // If the reader ends, rustup has ended, so only a timeout matters.
    if matches!(began.recv_timeout(RUSTUP_SEARCHES), Err(mpsc::RecvTimeoutError::Timeout)) {
        println!("plugins: rustup did not start a download within {} s", RUSTUP_SEARCHES.as_secs());
        // It may have exited already.
        let _ = child.kill();
    }
    let status = child.wait();
    let _ = reader.join();
    status.is_ok_and(|status| status.success())
}

fn has_target() -> Result<bool> {
    let printed = Command::new("rustc").args(["--print", "sysroot"]).output().context("running rustc")?;
    let sysroot = PathBuf::from(String::from_utf8_lossy(&printed.stdout).trim());
    Ok(sysroot.join("lib/rustlib").join(TARGET).join("lib").exists())
}
