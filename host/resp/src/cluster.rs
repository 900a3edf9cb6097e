//! What the client libraries of Redis Cluster ask when they connect: a cluster of one node, which has all slots.

use bytes::Bytes;
use redis_protocol::redis_keyslot;
use sha1::{Digest, Sha1};
use std::fmt::Write as _;

use crate::{
    command::{arity, subcommand},
    pool::integer,
    reply::Reply,
    request::Request,
};

/// Slots of a Redis Cluster.
const SLOTS: u16 = 16_384;

/// Where clients of the cluster find its node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// A name or an address, without brackets. Empty: where the client is already.
    pub host: String,
    /// The port.
    pub port: u16,
}

impl Node {
    /// 40 hexadecimal digits; the same node has the same after a restart.
    fn id(&self) -> String {
        let sum = Sha1::digest(format!("switchyard {} {}", self.host, self.port));
        sum.iter().fold(String::new(), |mut id, octet| {
            // Writing to a text cannot fail.
            let _ = write!(id, "{octet:02x}");
            id
        })
    }

    /// `CLUSTER` and what follows it. What must be asked of the pools is a request.
    pub(crate) fn answer(&self, arguments: &[&[u8]]) -> Result<Request, Reply> {
        let Some((what, rest)) = arguments.split_first() else { return Err(arity("cluster")) };
        let reply = match (what.to_ascii_lowercase().as_slice(), rest) {
            (b"slots", []) => self.slots(),
            (b"shards", []) => self.shards(),
            (b"nodes", []) => Reply::Prose(format!("{}\n", self.line()).into()),
            (b"replicas" | b"slaves", [id]) if *id == self.id().as_bytes() => Reply::Array(Vec::new()),
            (b"replicas" | b"slaves", [_]) => Reply::error("ERR Unknown node"),
            (b"links", []) => Reply::Array(Vec::new()),
            (b"info", []) => Reply::Prose(Bytes::from_static(
                b"cluster_enabled:1\r\ncluster_state:ok\r\ncluster_slots_assigned:16384\r\ncluster_slots_ok:16384\r\n\
                  cluster_slots_pfail:0\r\ncluster_slots_fail:0\r\ncluster_known_nodes:1\r\ncluster_size:1\r\n\
                  cluster_current_epoch:1\r\ncluster_my_epoch:1\r\n",
            )),
            (b"myid" | b"myshardid", []) => Reply::text(&self.id()),
            (b"keyslot", [key]) => Reply::Integer(redis_keyslot(key).into()),
            (b"countkeysinslot", [slot]) => {
                let slot = integer(slot)?;
                return match u16::try_from(slot).ok().filter(|slot| *slot < SLOTS) {
                    Some(slot) => Ok(Request::KeysInSlot(slot)),
                    None => Err(Reply::error("ERR Invalid slot")),
                };
            }
            (
                word @ (b"slots" | b"shards" | b"nodes" | b"replicas" | b"slaves" | b"links" | b"info"
                | b"myid" | b"myshardid" | b"keyslot" | b"countkeysinslot"),
                _,
            ) => arity(&format!("cluster|{}", String::from_utf8_lossy(word))),
            _ => subcommand("cluster", what),
        };
        Err(reply)
    }

    fn slots(&self) -> Reply {
        let node = vec![
            Reply::text(&self.host),
            Reply::Integer(self.port.into()),
            Reply::text(&self.id()),
            Reply::Array(Vec::new()),
        ];
        Reply::Array(vec![Reply::Array(vec![
            Reply::Integer(0),
            Reply::Integer((SLOTS - 1).into()),
            Reply::Array(node),
        ])])
    }

    fn shards(&self) -> Reply {
        let pair = |key: &str, value: Reply| (Reply::text(key), value);
        let node = Reply::Map(vec![
            pair("id", Reply::text(&self.id())),
            pair("port", Reply::Integer(self.port.into())),
            pair("ip", Reply::text(&self.host)),
            pair("endpoint", Reply::text(&self.host)),
            pair("role", Reply::text("master")),
            pair("replication-offset", Reply::Integer(0)),
            pair("health", Reply::text("online")),
        ]);
        let slots = Reply::Array(vec![Reply::Integer(0), Reply::Integer((SLOTS - 1).into())]);
        Reply::Array(vec![Reply::Map(vec![pair("slots", slots), pair("nodes", Reply::Array(vec![node]))])])
    }

    /// The node's line of `CLUSTER NODES`. The port of the cluster's own connections is said to be 0: there are none.
    fn line(&self) -> String {
        format!("{} {}:{}@0 myself,master - 0 0 1 connected 0-16383", self.id(), self.host, self.port)
    }
}
