//! A private registry from Debian's package `docker-registry`: own folder, own loopback port.

use crate::program::Program;
use crate::test_daemon::free_port;
use anyhow::{Context, Result};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The user of a registry with credentials.
pub const REGISTRY_USER: &str = "publisher";
/// The password of that user.
pub const REGISTRY_PASSWORD: &str = "hush-hush";
/// The line of htpasswd with both: bcrypt, the only form that the registry accepts, with its least cost.
const HTPASSWD: &str = "publisher:$2b$04$yA3KLkQ5OrTQU5oBQm.yB.YNqJJdvxkC1AkJirPUMN4iGY/9BLrlC\n";

/// Authentication that a registry requires.
#[derive(Debug, Clone)]
pub enum RegistryAccess {
    /// Nothing.
    Open,
    /// The credentials [`REGISTRY_USER`] and [`REGISTRY_PASSWORD`].
    Credentials,
    /// TLS, with this certificate and this key, PEM.
    Tls {
        /// The certificate.
        certificate: String,
        /// Its key.
        key: String,
    },
}

/// A registry; killed when dropped.
#[derive(Debug)]
pub struct DockerRegistry {
    /// Keeps it running.
    _program: Program,
    address: SocketAddr,
    folder: PathBuf,
}

impl DockerRegistry {
    /// Starts an empty registry.
    ///
    /// # Errors
    /// If it is not installed or does not start; the error contains the end of its log.
    pub fn start(folder: &Path, access: &RegistryAccess) -> Result<Self> {
        std::fs::create_dir_all(folder)?;
        let folder = folder.canonicalize()?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()?));
        let storage = folder.join("storage");
        let mut config = format!(
            "version: 0.1\nstorage:\n  filesystem:\n    rootdirectory: {}\nhttp:\n  addr: {address}\n",
            storage.display()
        );
        let write = |name: &str, text: &str| -> Result<String> {
            let path = folder.join(name);
            std::fs::write(&path, text)?;
            Ok(path.display().to_string())
        };
        match access {
            RegistryAccess::Open => {}
            RegistryAccess::Credentials => {
                let path = write("htpasswd", HTPASSWD)?;
                config += &format!("auth:\n  htpasswd:\n    realm: test\n    path: {path}\n");
            }
            RegistryAccess::Tls { certificate, key } => {
                let (certificate, key) = (write("certificate.pem", certificate)?, write("key.pem", key)?);
                config += &format!("  tls:\n    certificate: {certificate}\n    key: {key}\n");
            }
        }
        std::fs::write(folder.join("config.yml"), config)?;
        let mut command = Command::new("docker-registry");
        command.args(["serve", "config.yml"]);
        let program = Program::start("docker-registry", &folder, &mut command, &[address])?;
        Ok(Self { _program: program, address, folder: storage })
    }

    /// Host and port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The file in which the registry stores a blob or manifest, `sha256:DIGITS`.
    ///
    /// # Errors
    /// If the digest has another form.
    pub fn blob(&self, digest: &str) -> Result<PathBuf> {
        let digits = digest.strip_prefix("sha256:").context("no digest of SHA-256")?;
        let start = digits.get(..2).context("no digits")?;
        Ok(self.folder.join("docker/registry/v2/blobs/sha256").join(start).join(digits).join("data"))
    }
}
