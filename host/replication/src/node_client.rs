use crate::{NodeCertificate, ReplicationError, SharedFiles};
use cluster::{Cluster, Exchange, SharedFile, innermost_cause};
use reqwest::{Client, Response};
use sha2::{Digest as _, Sha256};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tempfile::NamedTempFile;
use tokio::runtime::Handle;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// A node that sends nothing for so long is given up. A snapshot begins when it is complete.
const READ_TIMEOUT: Duration = Duration::from_secs(30);
const SNAPSHOT_TIMEOUT: Duration = Duration::from_secs(600);

/// Gets files and snapshots from the other nodes. Its methods block: they must not be called on a thread of the runtime.
pub struct NodeClient {
    cluster: Arc<Cluster>,
    certificate: NodeCertificate,
    runtime: Handle,
}

impl NodeClient {
    /// A client that shows this certificate.
    #[must_use]
    pub const fn new(cluster: Arc<Cluster>, certificate: NodeCertificate, runtime: Handle) -> Self {
        Self { cluster, certificate, runtime }
    }

    /// Fetches a file, from whichever node gives it, unless this node has it. Returns where it is.
    ///
    /// # Errors
    /// If no node gives it, or the disk fails.
    pub fn fetch(&self, file: &SharedFile, files: &SharedFiles) -> Result<PathBuf, ReplicationError> {
        if let Some(path) = files.find(&file.sha256) {
            return Ok(path);
        }
        let path = files.fetched_path(file);
        let what = format!("the file {} ({} octets)", file.sha256.get(..12).unwrap_or_default(), file.octets);
        let place = format!("files/{}", file.sha256);
        let givers = self.cluster.file_exchanges();
        let fetched = self.fetch_from_any(&what, (&givers, &place), READ_TIMEOUT, files.folder())?;
        let (sha256, octets, unnamed) = fetched;
        if (sha256.as_str(), octets) != (file.sha256.as_str(), file.octets) {
            let reason = "what it sent has another digest".to_owned();
            return Err(ReplicationError::Fetch { what, reason });
        }
        unnamed.persist(&path).map_err(|error| ReplicationError::file(&path)(error.error))?;
        files.put(&file.sha256, &path);
        Ok(path)
    }

    /// Fetches the tables of the leader into a new file in this folder.
    ///
    /// # Errors
    /// If no node gives them, or the disk fails.
    pub fn fetch_snapshot(&self, folder: &Path) -> Result<NamedTempFile, ReplicationError> {
        let givers = self.cluster.exchanges();
        let what = "a snapshot of the tables";
        let (_, _, file) = self.fetch_from_any(what, (&givers, "snapshot"), SNAPSHOT_TIMEOUT, folder)?;
        Ok(file)
    }

    fn fetch_from_any(
        &self,
        what: &str,
        (givers, path): (&[Exchange], &str),
        timeout: Duration,
        folder: &Path,
    ) -> Result<(String, u64, NamedTempFile), ReplicationError> {
        let mut reason = "no other node is alive".to_owned();
        for exchange in givers {
            let mut file = tempfile::Builder::new()
                .prefix(".tmp-fetched-")
                .tempfile_in(folder)
                .map_err(ReplicationError::file(folder))?;
            let got = self.runtime.block_on(async {
                let response = self.get(exchange, path, timeout).await?;
                receive(response, &mut file).await
            });
            match got {
                Ok((sha256, octets)) => return Ok((sha256, octets, file)),
                Err(error) => reason = format!("{}: {error}", exchange.address),
            }
        }
        Err(ReplicationError::Fetch { what: what.to_owned(), reason })
    }

    async fn get(&self, exchange: &Exchange, path: &str, timeout: Duration) -> Result<Response, String> {
        let client = client_of(&self.certificate, exchange, timeout)?;
        let url = format!("https://{}/{path}", exchange.address);
        let response = client.get(url).send().await.map_err(|error| innermost_cause(&error))?;
        match response.status() {
            status if status.is_success() => Ok(response),
            status => Err(format!("it answered {status}")),
        }
    }
}

/// A client of one node.
pub(crate) fn client_of(
    certificate: &NodeCertificate,
    exchange: &Exchange,
    timeout: Duration,
) -> Result<Client, String> {
    let tls = certificate.client_config(exchange.certificate.clone()).map_err(|error| error.to_string())?;
    Client::builder()
        .use_preconfigured_tls(tls)
        .https_only(true)
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(CONNECT_TIMEOUT)
        .read_timeout(timeout)
        // The other node closes a connection without a request after 30 s.
        .pool_idle_timeout(Duration::from_secs(15))
        .build()
        .map_err(|error| innermost_cause(&error))
}

async fn receive(mut response: Response, file: &mut NamedTempFile) -> Result<(String, u64), String> {
    let expected = response.content_length();
    let (mut sum, mut octets) = (Sha256::new(), 0);
    while let Some(chunk) = response.chunk().await.map_err(|error| innermost_cause(&error))? {
        sum.update(&chunk);
        octets += chunk.len() as u64;
        file.write_all(&chunk).map_err(|error| error.to_string())?;
    }
    if expected.is_some_and(|expected| expected != octets) {
        return Err("the connection ended early".to_owned());
    }
    file.as_file().sync_all().map_err(|error| error.to_string())?;
    Ok((model::hex(&sum.finalize()), octets))
}
