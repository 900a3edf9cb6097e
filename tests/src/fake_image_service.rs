//! A fake of the appliance image's service, which the daemon calls on a Unix socket (`host/admin/src/appliance_image`). The real
//! one is tested in the image itself, by `cargo xtask image --test`.

use anyhow::Result;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// Updates begin with this here.
pub const UPDATE: &[u8] = b"update ";

const STATE: &str = "version 1.0\nslot A\nnext A\nhealthy-a 1.0\nhealthy-b 0.9\nup-seconds 60\nclock-synchronised yes\n\
    data-used 1000000\ndata-size 4000000000\n";

/// Answers while the process lives.
#[derive(Debug, Clone)]
pub struct FakeImageService {
    socket: PathBuf,
    done: Arc<Mutex<Vec<String>>>,
}

impl FakeImageService {
    /// Listens in this folder.
    pub fn start(folder: &Path) -> Result<Self> {
        let socket = folder.join("operate");
        let listener = UnixListener::bind(&socket)?;
        let service = Self { socket, done: Arc::default() };
        let (busy, answering) = (Arc::new(Mutex::new(())), service.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (busy, answering) = (busy.clone(), answering.clone());
                // A client that disconnects does not need the answer.
                std::thread::spawn(move || drop(answering.answer(stream, &busy)));
            }
        });
        Ok(service)
    }

    /// The socket's path, for the daemon's environment.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Executed commands, without queries.
    pub fn done(&self) -> Vec<String> {
        self.done.lock().map(|done| done.clone()).unwrap_or_default()
    }

    fn answer(&self, mut stream: UnixStream, busy: &Mutex<()>) -> Result<()> {
        let mut asked = Vec::new();
        stream.read_to_end(&mut asked)?;
        let end = asked.iter().position(|octet| *octet == b'\n').unwrap_or(asked.len());
        let (line, rest) =
            (String::from_utf8_lossy(&asked[..end]).into_owned(), &asked[(end + 1).min(asked.len())..]);
        if line == "status" {
            return Ok(stream.write_all(format!("done\n{STATE}").as_bytes())?);
        }
        let Ok(_one) = busy.try_lock() else { return Ok(stream.write_all(b"busy\n")?) };
        match line.split(' ').next() {
            Some("update") if !rest.starts_with(UPDATE) => {
                return Ok(
                    stream.write_all(b"refused the update was not taken: signature verification failed\n")?
                );
            }
            Some("support-bundle") => stream.write_all(b"done\n\x1f\x8b")?,
            _ => stream.write_all(b"done\nit counts from the next start\n")?,
        }
        if let Ok(mut done) = self.done.lock() {
            done.push(line);
        }
        Ok(())
    }
}
