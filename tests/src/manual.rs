//! A page of the manual, command by command.
//!
//! A block marked `sh` is run. Pages have further kinds of commands: `sh build` is what the test has done before, `sh machine` is run
//! in the appliance image by `cargo xtask image --test`, and what is in `sh elsewhere` cannot be run by a test.

use crate::{PATIENCE, Stage};
use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process_group};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc;
pub use xtask::page::{Block, Page, missing};

/// What stands on the page, and what is meant here: ports that people remember may be in use.
#[derive(Debug, Default)]
pub struct Here(Vec<(String, String)>);

impl Here {
    /// Puts one for the other from now on.
    pub fn put(&mut self, there: &str, here: &str) -> &mut Self {
        self.0.push((there.to_owned(), here.to_owned()));
        self
    }

    /// A port of loopback.
    pub fn port(&mut self, there: u16, here: u16) -> &mut Self {
        for host in ["127.0.0.1", "localhost"] {
            self.put(&format!("{host}:{there}"), &format!("127.0.0.1:{here}"));
        }
        self
    }

    /// The text as it is meant here.
    pub fn read(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, (there, here)| text.replace(there, here))
    }
}

/// One shell for a whole page: what a block exports, the next one has. It takes what it started with it.
#[derive(Debug)]
pub struct Shell {
    process: Child,
    input: ChildStdin,
    lines: mpsc::Receiver<String>,
    folder: PathBuf,
}

/// What ends the output of a block.
const END: &str = "=== the block has ended ===";
/// What a command says that ends the shell.
const FAILED: &str = "=== a command has failed ===";

impl Shell {
    /// In this folder, which is its home too; commands ask at this port.
    pub fn start(stage: &Stage, folder: &Path, http: u16) -> Result<Self> {
        let binary = stage.binary().parent().context("the binary is in a folder")?;
        let guests = stage.guest("prefix_router");
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::iter::once(binary.to_owned()).chain(std::env::split_paths(&path));
        // What was started in the background keeps the output open, so its end tells nothing.
        let blocks = "while read -r block; do . \"$block\" < /dev/null; done";
        let script = format!("exec 2>&1; trap \"echo; echo '{FAILED}'\" EXIT; set -eu -o pipefail; {blocks}");
        let mut process = Command::new("bash")
            .args(["-c", &script])
            .current_dir(folder)
            .env("PATH", std::env::join_paths(folders)?)
            .env("PLUGINS", guests.parent().context("the guests are in a folder")?)
            .env("HOME", folder)
            .env("XDG_CONFIG_HOME", folder.join(".config"))
            .env("SWITCHYARD_URL", format!("http://127.0.0.1:{http}"))
            .env_remove("SWITCHYARD_TOKEN")
            .env_remove("SWITCHYARD_TOKEN_FILE")
            .env_remove("SWITCHYARD_CONFIG")
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let input = process.stdin.take().context("no input")?;
        let output = process.stdout.take().context("no output")?;
        let (told, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if told.send(line).is_err() {
                    return;
                }
            }
        });
        Ok(Self { process, input, lines, folder: folder.to_owned() })
    }

    /// Runs a page from its beginning to its end; `after` is told each block that has done what the page says.
    ///
    /// # Errors
    /// If a command fails, or does not print what the page says.
    pub fn follow(
        &mut self,
        page: &Page,
        here: &Here,
        mut after: impl FnMut(&Block) -> Result<()>,
    ) -> Result<()> {
        let blocks = page.blocks.iter().filter(|block| block.mark == "sh");
        for (number, block) in blocks.enumerate() {
            let script = here.read(&block.script);
            let printed = self.run(number, &script)?;
            if let Some(line) = missing(&printed, &here.read(&block.printed)) {
                bail!(
                    "the page says\n{script}\nand this came of it:\n{printed}\nwhere should have been: {line}"
                );
            }
            after(block)?;
        }
        Ok(())
    }

    /// Runs a block; what it printed.
    fn run(&mut self, number: usize, script: &str) -> Result<String> {
        let file = self.folder.join(format!(".block-{number}"));
        std::fs::write(&file, format!("{script}echo; echo '{END}'\n"))?;
        writeln!(self.input, "{}", file.display())?;
        let mut printed = String::new();
        loop {
            match self.lines.recv_timeout(12 * PATIENCE) {
                Ok(line) if line == END => return Ok(printed),
                Ok(line) if line == FAILED => {
                    bail!("a command of this block failed:\n{script}\nit printed:\n{printed}")
                }
                Ok(line) => printed.push_str(&(line + "\n")),
                Err(error) => bail!("{error}: this block hangs:\n{script}\nit printed:\n{printed}"),
            }
        }
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        // The appliance that the page has started is nobody's child any more, but of this group.
        let _ = kill_process_group(Pid::from_child(&self.process), Signal::KILL);
        let _ = self.process.wait();
    }
}
