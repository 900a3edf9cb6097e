//! The VTY command line that Osmocom's programs have on a TCP port.

use anyhow::{Context, Result, ensure};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

/// A session in privileged mode.
#[derive(Debug)]
pub struct Vty {
    socket: TcpStream,
    prompt: String,
}

impl Vty {
    /// `program` is the name in its prompt, for example `OsmoHLR`.
    pub fn connect(address: SocketAddr, program: &str) -> Result<Self> {
        let socket = TcpStream::connect(address).with_context(|| format!("the VTY at {address}"))?;
        socket.set_read_timeout(Some(super::TIMEOUT))?;
        let mut vty = Self { socket, prompt: format!("{program}> ") };
        vty.answer()?;
        vty.prompt = format!("{program}# ");
        vty.command("enable")?;
        Ok(vty)
    }

    /// Sends a command and returns its output.
    pub fn command(&mut self, command: &str) -> Result<String> {
        self.socket.write_all(format!("{command}\n").as_bytes())?;
        let answer = self.answer().with_context(|| format!("VTY: {command}"))?;
        // The first line is the echo of the command.
        let answer = answer.split_once('\n').map(|(_, rest)| rest).unwrap_or_default();
        let done =
            |line: &str| ["% Created", "% Updated", "% Deleted"].iter().any(|done| line.starts_with(done));
        let complaint = answer.lines().find(|line| line.starts_with('%') && !done(line));
        ensure!(complaint.is_none(), "VTY: {command}: {answer}");
        Ok(answer.to_owned())
    }

    /// Reads up to the prompt.
    fn answer(&mut self) -> Result<String> {
        let mut all = Vec::new();
        let mut buffer = [0; 4096];
        while !all.ends_with(self.prompt.as_bytes()) {
            let count = self.socket.read(&mut buffer)?;
            ensure!(count > 0, "the VTY closed after {:?}", String::from_utf8_lossy(&all));
            all.extend_from_slice(&buffer[..count]);
        }
        all.truncate(all.len() - self.prompt.len());
        Ok(String::from_utf8_lossy(&all).into_owned())
    }
}
