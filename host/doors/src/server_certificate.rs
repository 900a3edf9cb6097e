//! The certificate of a listener for HTTP: read, made where there is none, and read again when its files change.

use crate::{ServerTls, TlsFileError};
use arc_swap::ArcSwap;
use parking_lot::Mutex;
use rcgen::{CertificateParams, DnType, KeyPair, SanType};
use rustls::ServerConfig;
use std::io::Write;
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// How often the files are looked at.
const LOOK: Duration = Duration::from_secs(60);

/// TLS cannot be set up as configured.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be used.
    #[error(transparent)]
    File(#[from] TlsFileError),
    /// A certificate cannot be made.
    #[error("no certificate can be made: {0}")]
    Making(rcgen::Error),
    /// The certificate that was made cannot be kept.
    #[error("{path}: {source}; look who owns the folder and whether the disk is full", path = path.display())]
    Keeping {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// The appliance's own certificate, in this folder: made if there is none there, and never changed by itself. Whoever has
/// a better one puts it in its place. `address` is where the door is.
///
/// # Errors
/// When it cannot be made or kept.
pub fn own_certificate(folder: &Path, address: IpAddr) -> Result<ServerTls, TlsError> {
    let files = ServerTls {
        certificate: folder.join("certificate.pem"),
        key: folder.join("key.pem"),
        client_ca: None,
    };
    if files.certificate.exists() && files.key.exists() {
        return Ok(files);
    }
    let keep = |path: &Path| {
        let path = path.to_owned();
        move |source| TlsError::Keeping { path, source }
    };
    std::fs::create_dir_all(folder).map_err(keep(folder))?;
    let (certificate, key) = make(address)?;
    // The key first: a certificate without its key would be taken for one that is somebody's.
    for (path, text, mode) in [(&files.key, key, 0o600), (&files.certificate, certificate, 0o644)] {
        let beside = path.with_extension("new");
        let mut options = std::fs::OpenOptions::new();
        let opened = options.write(true).create(true).truncate(true).mode(mode).open(&beside);
        let written = opened.and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            std::fs::rename(&beside, path)
        });
        written.map_err(keep(path))?;
    }
    tracing::info!(certificate = %files.certificate.display(), "certificate made for HTTPS; browsers warn of it until it is replaced");
    Ok(files)
}

/// When each file was changed last, and how long it is; nothing for one that is not there.
type Marks = Vec<Option<(SystemTime, u64)>>;

fn marks(files: &ServerTls) -> Marks {
    let mark = |path: &Path| {
        let metadata = std::fs::metadata(path).ok()?;
        Some((metadata.modified().ok()?, metadata.len()))
    };
    [&files.certificate, &files.key].into_iter().chain(&files.client_ca).map(|path| mark(path)).collect()
}

fn read(files: &ServerTls) -> Result<ServerConfig, TlsError> {
    let mut config = files.read()?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// A certificate that signs itself, for the names of this machine, and its key.
fn make(address: IpAddr) -> Result<(String, String), TlsError> {
    let mut names = vec!["localhost".to_owned()];
    // A machine without a name that certificates can carry is known by its addresses.
    let system = rustix::system::uname();
    let name = system.nodename().to_string_lossy();
    let fits = |name: &&str| {
        !name.is_empty()
            && *name != "localhost"
            && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.'))
    };
    names.extend(Some(name.trim()).filter(fits).map(str::to_owned));
    let mut params = CertificateParams::new(names).map_err(TlsError::Making)?;
    let loopback = [IpAddr::from([127, 0, 0, 1]), IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1_u16])];
    let own = (!address.is_unspecified() && !address.is_loopback()).then_some(address);
    params.subject_alt_names.extend(loopback.into_iter().chain(own).map(SanType::IpAddress));
    params.distinguished_name.push(DnType::CommonName, "Switchyard");
    params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ServerAuth];
    let now = SystemTime::now();
    // A day back for clocks that differ; ten years on.
    params.not_before = (now - Duration::from_secs(86_400)).into();
    params.not_after = (now + Duration::from_secs(3_650 * 86_400)).into();
    let key = KeyPair::generate().map_err(TlsError::Making)?;
    let certificate = params.self_signed(&key).map_err(TlsError::Making)?;
    Ok((certificate.pem(), key.serialize_pem()))
}

/// What a door shows of itself, as its files are.
#[derive(Debug)]
pub struct Certificate {
    files: ServerTls,
    current: ArcSwap<ServerConfig>,
    marks: Mutex<Marks>,
}

impl Certificate {
    /// Reads the files.
    ///
    /// # Errors
    /// When they cannot be read, or do not go together.
    pub fn read(files: ServerTls) -> Result<Arc<Self>, TlsError> {
        let marks = marks(&files);
        let current = ArcSwap::from_pointee(read(&files)?);
        Ok(Arc::new(Self { files, current, marks: Mutex::new(marks) }))
    }

    pub(crate) fn current(&self) -> Arc<ServerConfig> {
        self.current.load_full()
    }

    /// Reads the files again if they have changed; says whether they have. Connections that are open stay as they are. Files
    /// that are not right are as if they had not changed: they are looked at again when they change again.
    ///
    /// # Errors
    /// As [`Certificate::read`].
    pub fn look(&self) -> Result<bool, TlsError> {
        let mut known = self.marks.lock();
        let marks = marks(&self.files);
        if *known == marks {
            return Ok(false);
        }
        *known = marks;
        self.current.store(Arc::new(read(&self.files)?));
        Ok(true)
    }

    /// Looks at the files every minute, and at each SIGHUP, for ever.
    ///
    /// # Errors
    /// When no signal can be waited for.
    pub async fn watch(self: Arc<Self>) -> std::io::Result<()> {
        let mut hang_up = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::hangup())?;
        let mut minute = tokio::time::interval(LOOK);
        minute.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = minute.tick() => {}
                _ = hang_up.recv() => {}
            }
            let certificate = self.clone();
            let path = self.files.certificate.display();
            match tokio::task::spawn_blocking(move || certificate.look()).await {
                Ok(Ok(true)) => {
                    tracing::info!(certificate = %path, "certificate of an HTTP listener read again");
                }
                Ok(Err(error)) => {
                    tracing::warn!(%error, "certificate of an HTTP listener not read again; the one before counts");
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
    fn the_own_certificate_is_made_once_and_its_key_is_for_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let own = || own_certificate(&folder.path().join("tls"), [192, 0, 2, 1].into()).unwrap();
        let files = own();
        let made = std::fs::read(&files.certificate).unwrap();
        assert_eq!(std::fs::metadata(&files.key).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(own(), files);
        assert_eq!(std::fs::read(&files.certificate).unwrap(), made);
        Certificate::read(files).unwrap();
    }

    #[test]
    fn files_are_read_again_when_they_change_and_bad_ones_change_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let files = own_certificate(folder.path(), [127, 0, 0, 1].into()).unwrap();
        let other = tempfile::tempdir().unwrap();
        let others = own_certificate(other.path(), [127, 0, 0, 1].into()).unwrap();
        let certificate = Certificate::read(files.clone()).unwrap();
        let first = certificate.current();
        assert!(!certificate.look().unwrap());
        std::fs::write(&files.certificate, "nothing").unwrap();
        assert!(certificate.look().is_err());
        assert!(Arc::ptr_eq(&first, &certificate.current()));
        assert!(!certificate.look().unwrap(), "the same bad files are not complained of each minute");
        // A certificate whose key has not come yet.
        std::fs::copy(&others.certificate, &files.certificate).unwrap();
        assert!(matches!(certificate.look(), Err(TlsError::File(TlsFileError::Certificate { .. }))));
        std::fs::copy(&others.key, &files.key).unwrap();
        let later = SystemTime::now() + Duration::from_secs(2);
        std::fs::File::options().append(true).open(&files.key).unwrap().set_modified(later).unwrap();
        assert!(certificate.look().unwrap());
        assert!(!Arc::ptr_eq(&first, &certificate.current()));
    }
}
