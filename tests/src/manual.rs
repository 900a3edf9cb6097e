//! Runs the commands of a page of the manual.
//!
//! Blocks marked `sh` are run. Other marks: `sh build` is done before the test; `sh machine` is run in the appliance
//! image by `cargo xtask image --test`; `sh cluster` is run on three machines in network namespaces; `sh certificates`
//! is run before the blocks of a cluster with TLS; `sh elsewhere` cannot be run by a test.

use crate::{Fixture, TIMEOUT};
use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process_group};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc;
pub use testkit::manual_page::{CommandBlock, ManualPage, missing_line};

/// Replacements in the text of a page: the page's well-known ports may be in use.
#[derive(Debug, Default)]
pub struct Substitutions(Vec<(String, String)>);

impl Substitutions {
    /// Adds a replacement.
    pub fn put(&mut self, there: &str, here: &str) -> &mut Self {
        self.0.push((there.to_owned(), here.to_owned()));
        self
    }

    /// Replaces a loopback port.
    pub fn port(&mut self, there: u16, here: u16) -> &mut Self {
        for host in ["127.0.0.1", "localhost"] {
            self.put(&format!("{host}:{there}"), &format!("127.0.0.1:{here}"));
        }
        self
    }

    /// The text with all replacements. A replacement is not replaced again: a free port may begin with a well-known one.
    pub fn read(&self, text: &str) -> String {
        let mut read = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(next) = rest.chars().next() {
            let found =
                self.0.iter().find_map(|(there, here)| Some((here, rest.strip_prefix(there.as_str())?)));
            match found {
                Some((here, behind)) => {
                    read.push_str(here);
                    rest = behind;
                }
                None => {
                    read.push(next);
                    rest = &rest[next.len_utf8()..];
                }
            }
        }
        read
    }
}

/// One shell for a whole page: a block's exports are visible in the next one. Its children end with it.
#[derive(Debug)]
pub struct ManualShell {
    process: Child,
    input: ChildStdin,
    lines: mpsc::Receiver<String>,
    folder: PathBuf,
}

/// Printed at the end of a block.
const END: &str = "=== the block has ended ===";
/// Printed when a command fails and ends the shell.
const FAILED: &str = "=== a command has failed ===";

impl ManualShell {
    /// In this folder, which is its home too; commands ask at this port.
    pub fn start(fixture: &Fixture, folder: &Path, http: u16) -> Result<Self> {
        let binary = fixture.binary().parent().context("the binary is in a folder")?;
        let guests = fixture.guest("prefix_router");
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::iter::once(binary.to_owned()).chain(std::env::split_paths(&path));
        // Background processes keep the output open, so the end of the output is no sign.
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
        let (line_sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if line_sender.send(line).is_err() {
                    return;
                }
            }
        });
        Ok(Self { process, input, lines, folder: folder.to_owned() })
    }

    /// Runs a page from beginning to end; `after` is called for each successful block.
    ///
    /// # Errors
    /// If a command fails or its output does not match the page.
    pub fn follow(
        &mut self,
        page: &ManualPage,
        substitutions: &Substitutions,
        mut after: impl FnMut(&CommandBlock) -> Result<()>,
    ) -> Result<()> {
        let blocks = page.blocks.iter().filter(|block| block.mark == "sh");
        for (number, block) in blocks.enumerate() {
            let script = substitutions.read(&block.script);
            let printed = self.run(number, &script)?;
            if let Some(line) = missing_line(&printed, &substitutions.read(&block.printed)) {
                bail!("the page says\n{script}\nbut the output was\n{printed}\nmissing line: {line}");
            }
            after(block)?;
        }
        Ok(())
    }

    /// Runs a block; returns its output.
    fn run(&mut self, number: usize, script: &str) -> Result<String> {
        let file = self.folder.join(format!(".block-{number}"));
        std::fs::write(&file, format!("{script}echo; echo '{END}'\n"))?;
        writeln!(self.input, "{}", file.display())?;
        let mut printed = String::new();
        loop {
            match self.lines.recv_timeout(4 * TIMEOUT) {
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

impl Drop for ManualShell {
    fn drop(&mut self) {
        // The daemon that the page has started is no longer a child of the shell, but still in its process group.
        let _ = kill_process_group(Pid::from_child(&self.process), Signal::KILL);
        let _ = self.process.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replacement_is_not_replaced_again() {
        let mut substitutions = Substitutions::default();
        substitutions.port(8080, 27754).port(2775, 12501);
        assert_eq!(
            substitutions.read("curl localhost:8080/v1 127.0.0.1:2775 ä"),
            "curl 127.0.0.1:27754/v1 127.0.0.1:12501 ä"
        );
    }
}
