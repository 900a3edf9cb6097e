//! The certificate of an HTTP listener: generated if there is none, and reloaded when its files change.

use crate::{ServerTlsFiles, TlsFileError};
use arc_swap::ArcSwap;
use parking_lot::Mutex;
use rcgen::{CertificateParams, DnType, KeyPair, SanType};
use rustls::ServerConfig;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// The interval at which the files are checked.
const CHECK_INTERVAL: Duration = Duration::from_secs(60);

/// TLS cannot be set up as configured.
#[derive(Debug, thiserror::Error)]
pub enum ServerCertificateError {
    /// A file cannot be used.
    #[error(transparent)]
    File(#[from] TlsFileError),
    /// A certificate cannot be generated.
    #[error("cannot generate a certificate: {0}")]
    Generate(rcgen::Error),
    /// The generated certificate cannot be stored.
    #[error("{path}: {source}; check the owner of the folder and the free disk space", path = path.display())]
    Store {
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
}

/// Returns the files of the self-signed certificate in this folder, and generates them if they do not exist. They are
/// never overwritten, so an admin may replace them. `address` is the listener's address.
///
/// # Errors
/// If the certificate cannot be generated or stored.
pub fn self_signed_certificate(
    folder: &Path,
    address: IpAddr,
) -> Result<ServerTlsFiles, ServerCertificateError> {
    let files = ServerTlsFiles {
        certificate: folder.join("certificate.pem"),
        key: folder.join("key.pem"),
        client_ca: None,
    };
    if files.certificate.exists() && files.key.exists() {
        return Ok(files);
    }
    let keep = |path: &Path| {
        let path = path.to_owned();
        move |source| ServerCertificateError::Store { path, source }
    };
    std::fs::create_dir_all(folder).map_err(keep(folder))?;
    let (certificate, key) = generate_self_signed(address)?;
    // The key is written first: a certificate without its key would be taken for a certificate of the admin's.
    for (path, text, mode) in [(&files.key, key, 0o600), (&files.certificate, certificate, 0o644)] {
        atomic_file::replace_file(path, text.as_bytes(), mode).map_err(keep(path))?;
    }
    tracing::info!(certificate = %files.certificate.display(), "self-signed certificate generated; browsers warn of it until it is replaced");
    Ok(files)
}

/// Modification time and length of each file; `None` for a file that does not exist.
type FileStamps = Vec<Option<(SystemTime, u64)>>;

fn file_stamps(files: &ServerTlsFiles) -> FileStamps {
    let mark = |path: &Path| {
        let metadata = std::fs::metadata(path).ok()?;
        Some((metadata.modified().ok()?, metadata.len()))
    };
    [&files.certificate, &files.key].into_iter().chain(&files.client_ca).map(|path| mark(path)).collect()
}

fn read(files: &ServerTlsFiles) -> Result<ServerConfig, ServerCertificateError> {
    let mut config = files.read()?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// Generates a self-signed certificate for the host names of this machine, and its key.
fn generate_self_signed(address: IpAddr) -> Result<(String, String), ServerCertificateError> {
    let mut names = vec!["localhost".to_owned()];
    // If the host name cannot stand in a certificate, the certificate has addresses only.
    let system = rustix::system::uname();
    let name = system.nodename().to_string_lossy();
    let fits = |name: &&str| {
        !name.is_empty()
            && *name != "localhost"
            && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.'))
    };
    names.extend(Some(name.trim()).filter(fits).map(str::to_owned));
    let mut params = CertificateParams::new(names).map_err(ServerCertificateError::Generate)?;
    let loopback = [IpAddr::from([127, 0, 0, 1]), IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1_u16])];
    let own = (!address.is_unspecified() && !address.is_loopback()).then_some(address);
    params.subject_alt_names.extend(loopback.into_iter().chain(own).map(SanType::IpAddress));
    params.distinguished_name.push(DnType::CommonName, "Switchyard");
    params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ServerAuth];
    let now = SystemTime::now();
    // Valid from a day ago, for clocks that differ, for ten years.
    params.not_before = (now - Duration::from_secs(86_400)).into();
    params.not_after = (now + Duration::from_secs(3_650 * 86_400)).into();
    let key = KeyPair::generate().map_err(ServerCertificateError::Generate)?;
    let certificate = params.self_signed(&key).map_err(ServerCertificateError::Generate)?;
    Ok((certificate.pem(), key.serialize_pem()))
}

/// The current certificate of a listener.
#[derive(Debug)]
pub struct ServerCertificate {
    /// The files that it was read from; `None` if it never changes.
    files: Option<ServerTlsFiles>,
    current: ArcSwap<ServerConfig>,
    file_stamps: Mutex<FileStamps>,
}

impl ServerCertificate {
    /// Reads the files.
    ///
    /// # Errors
    /// If the files cannot be read, or certificate and key do not match.
    pub fn read(files: ServerTlsFiles) -> Result<Arc<Self>, ServerCertificateError> {
        let file_stamps = file_stamps(&files);
        let current = ArcSwap::from_pointee(read(&files)?);
        Ok(Arc::new(Self { files: Some(files), current, file_stamps: Mutex::new(file_stamps) }))
    }

    /// A certificate that never changes, with settings of its own.
    #[must_use]
    pub fn fixed(mut config: ServerConfig) -> Arc<Self> {
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Arc::new(Self { files: None, current: ArcSwap::from_pointee(config), file_stamps: Mutex::default() })
    }

    pub(crate) fn current(&self) -> Arc<ServerConfig> {
        self.current.load_full()
    }

    /// Reads the files again if they have changed. Returns whether they have. Open connections keep the old
    /// certificate. Files that cannot be used count as unchanged until they change again.
    ///
    /// # Errors
    /// As [`ServerCertificate::read`].
    pub fn reload_if_changed(&self) -> Result<bool, ServerCertificateError> {
        let Some(files) = &self.files else { return Ok(false) };
        let mut known = self.file_stamps.lock();
        let file_stamps = file_stamps(files);
        if *known == file_stamps {
            return Ok(false);
        }
        *known = file_stamps;
        self.current.store(Arc::new(read(files)?));
        Ok(true)
    }

    /// Checks the files every minute, and at each SIGHUP, for ever.
    ///
    /// # Errors
    /// If the signal handler cannot be installed.
    pub async fn watch(self: Arc<Self>) -> std::io::Result<()> {
        let mut hang_up = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::hangup())?;
        let mut minute = tokio::time::interval(CHECK_INTERVAL);
        minute.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = minute.tick() => {}
                _ = hang_up.recv() => {}
            }
            let certificate = self.clone();
            let path = self.files.as_ref().map(|files| files.certificate.display().to_string());
            match tokio::task::spawn_blocking(move || certificate.reload_if_changed()).await {
                Ok(Ok(true)) => {
                    tracing::info!(certificate = path, "certificate reloaded");
                }
                Ok(Err(error)) => {
                    tracing::warn!(%error, "certificate not reloaded; the previous one stays in use");
                }
                Ok(Ok(false)) | Err(_) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_certificate_is_generated_once_with_a_private_key_file() {
        let folder = tempfile::tempdir().unwrap();
        let own = || self_signed_certificate(&folder.path().join("tls"), [192, 0, 2, 1].into()).unwrap();
        let files = own();
        let made = std::fs::read(&files.certificate).unwrap();
        assert_eq!(std::fs::metadata(&files.key).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(own(), files);
        assert_eq!(std::fs::read(&files.certificate).unwrap(), made);
        ServerCertificate::read(files).unwrap();
    }

    #[test]
    fn changed_files_are_reloaded_and_bad_ones_are_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let files = self_signed_certificate(folder.path(), [127, 0, 0, 1].into()).unwrap();
        let other = tempfile::tempdir().unwrap();
        let others = self_signed_certificate(other.path(), [127, 0, 0, 1].into()).unwrap();
        let certificate = ServerCertificate::read(files.clone()).unwrap();
        let first = certificate.current();
        assert!(!certificate.reload_if_changed().unwrap());
        std::fs::write(&files.certificate, "nothing").unwrap();
        assert!(certificate.reload_if_changed().is_err());
        assert!(Arc::ptr_eq(&first, &certificate.current()));
        assert!(
            !certificate.reload_if_changed().unwrap(),
            "the same bad files are not complained of each minute"
        );
        // A certificate whose key has not been written yet.
        std::fs::copy(&others.certificate, &files.certificate).unwrap();
        assert!(matches!(
            certificate.reload_if_changed(),
            Err(ServerCertificateError::File(TlsFileError::Certificate { .. }))
        ));
        std::fs::copy(&others.key, &files.key).unwrap();
        let later = SystemTime::now() + Duration::from_secs(2);
        std::fs::File::options().append(true).open(&files.key).unwrap().set_modified(later).unwrap();
        assert!(certificate.reload_if_changed().unwrap());
        assert!(!Arc::ptr_eq(&first, &certificate.current()));
    }
}
