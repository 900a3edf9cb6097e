use configuration::{Keys, Section, Word};
use std::net::SocketAddr;
use std::path::PathBuf;

/// The settings of `[cluster]`.
#[derive(Debug, Clone, PartialEq, Eq, Keys)]
#[keys(restart = "a node joins its cluster at the start", check = Self::check)]
pub struct ClusterOptions {
    /// The name of this node: letters, digits and hyphens. Each node has its own.
    #[key(example = "a", length = 1..=32)]
    pub node: String,
    /// The members of etcd, such as `https://192.0.2.1:2379`. The first one should be the nearest.
    #[key(example = ["http://127.0.0.1:2379"])]
    pub endpoints: Vec<String>,
    /// The partition of the cluster that this process leads or follows. Its accounts are those with this `partition`.
    #[key(range = 0..=127, default = 0)]
    pub partition: u8,
    /// The prefix of all keys in etcd. Each cluster has its own.
    #[key(default = "/switchyard")]
    pub prefix: String,
    /// The URL of this node's admin API, for clients that ask another node.
    #[key(default_as = "the URL of `http.listen`")]
    pub address: Option<String>,
    /// The address and port where other nodes get plugins, tables and snapshots from this one, over mutual TLS. Port 0: any free
    /// port.
    #[key(default = "0.0.0.0:7733")]
    pub listen: SocketAddr,
    /// Sections of the configuration that this node takes from its own file, beside `[http]`, `[cluster]` and `[configuration]`.
    /// The other sections are the cluster's, unless the configuration is managed by the file.
    #[key(default_as = "none")]
    pub own_sections: Vec<String>,
    /// The certificate authority of etcd, PEM; needed for `https`.
    #[key(existing)]
    pub ca: Option<PathBuf>,
    /// The certificate chain of this client, PEM; needs `key`.
    #[key(existing)]
    pub certificate: Option<PathBuf>,
    /// The private key of `certificate`, PEM.
    #[key(existing)]
    pub key: Option<PathBuf>,
    /// The user of etcd, if it has users.
    #[key(length = ..=255)]
    pub user: String,
    /// The password of `user`.
    #[key(secret, or_file)]
    pub password: String,
    /// What the leader does while no other node keeps up.
    #[key(default = "go-on")]
    pub degraded: DegradedPolicy,
    /// The number of records that etcd keeps. A node that was away for longer needs a backup of the leader. The node that founds the
    /// cluster decides it.
    #[key(range = 64..=8192, default = 4096)]
    pub slots: u64,
    /// Whether records are compressed (LZ4).
    #[key(default = true)]
    pub compress: bool,
}

/// What the leader does with records that are about to leave etcd and that no other node has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Word)]
pub enum DegradedPolicy {
    /// It goes on: they are on its own disk only.
    GoOn,
    /// It accepts nothing until another node has them.
    Stop,
}

impl ClusterOptions {
    fn check(&mut self, section: &Section<'_>) {
        let is_name = |c: u8| c.is_ascii_alphanumeric() || c == b'-';
        if !self.node.bytes().all(is_name) {
            section.error("node", "must be letters, digits and hyphens");
        }
        if section.has("endpoints") && self.endpoints.is_empty() {
            section.error("endpoints", "names no member of etcd");
        }
        for endpoint in &self.endpoints {
            let is_tls = endpoint.starts_with("https://");
            if !is_tls && !endpoint.starts_with("http://") {
                section.error("endpoints", format!("{endpoint:?} must begin with http:// or https://"));
            } else if is_tls && self.ca.is_none() {
                section.error("ca", "is missing: https needs the certificate authority of etcd");
                break;
            }
        }
        if !self.prefix.starts_with('/') || self.prefix.ends_with('/') {
            section.error("prefix", "must begin with a slash, and not end with one");
        }
        if self.certificate.is_some() != self.key.is_some() {
            section.error("certificate", "and key go together");
        }
    }
}
