use configuration::{Keys, Section, Word};
use std::net::SocketAddr;
use std::path::PathBuf;

/// `[cluster]`: one node of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Keys)]
#[keys(restart = "a node joins its cluster at the start", check = Self::check)]
pub struct ClusterOptions {
    /// The name of this node, unique in the cluster: letters, digits and hyphens.
    #[key(example = "a", length = 1..=32)]
    pub node: String,
    /// URLs of the members of etcd, for example `https://192.0.2.1:2379`. The first one should be the nearest.
    #[key(example = ["http://127.0.0.1:2379"])]
    pub endpoints: Vec<String>,
    /// The partition of the cluster that this process leads or follows. It serves the accounts with the same `partition`.
    #[key(range = 0..=127, default = 0)]
    pub partition: u8,
    /// The prefix of all keys in etcd, unique for each cluster.
    #[key(default = "/switchyard")]
    pub prefix: String,
    /// The URL of this node's admin API, for clients of other nodes.
    #[key(default_as = "the URL of `http.listen`")]
    pub address: Option<String>,
    /// The address and port at which other nodes fetch plugins, tables and snapshots from this node, over mutual TLS.
    /// Port 0: any free port.
    #[key(default = "0.0.0.0:7733")]
    pub listen: SocketAddr,
    /// Sections of the configuration that this node reads from its own file, in addition to `[http]`, `[cluster]` and
    /// `[configuration]`. The other sections are shared by the cluster, unless the configuration is managed by file.
    #[key(default_as = "none")]
    pub own_sections: Vec<String>,
    /// File with the certificate authority of etcd, in PEM; required for `https`.
    #[key(existing)]
    pub ca: Option<PathBuf>,
    /// File with the client's certificate chain, in PEM; requires `key`.
    #[key(existing)]
    pub certificate: Option<PathBuf>,
    /// File with the private key of `certificate`, in PEM.
    #[key(existing)]
    pub key: Option<PathBuf>,
    /// The user name for etcd, if etcd has users.
    #[key(length = ..=255)]
    pub user: String,
    /// The password of `user`.
    #[key(secret, or_file)]
    pub password: String,
    /// How the leader behaves while no other node keeps up.
    #[key(default = "go-on")]
    pub degraded: DegradedPolicy,
    /// The number of records that etcd keeps. A node that was away for longer needs a snapshot of the leader. Only the
    /// value of the node that creates the cluster has an effect.
    #[key(range = 64..=8192, default = 4096)]
    pub slots: u64,
    /// Whether records are compressed with LZ4.
    #[key(default = true)]
    pub compress: bool,
}

/// How the leader treats records that are about to leave etcd and that no other node has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Word)]
pub enum DegradedPolicy {
    /// It continues: these records are on its own disk only.
    GoOn,
    /// It accepts no messages until another node has the records.
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
