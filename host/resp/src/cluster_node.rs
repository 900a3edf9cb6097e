//! `CLUSTER` commands of client libraries: reports a cluster of one node that owns all slots.

use bytes::Bytes;
use redis_protocol::redis_keyslot;
use sha1::{Digest, Sha1};

use crate::{
    pool_commands::parse_integer,
    redis_command::{unknown_subcommand, wrong_arity},
    resp_reply::RespReply,
    resp_request::RespRequest,
};

/// Number of slots in a Redis Cluster.
const SLOTS: u16 = 16_384;

/// The address announced for the only cluster node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterNode {
    /// Host name or address, without brackets. Empty for the address that the client uses already.
    pub host: String,
    /// The port.
    pub port: u16,
}

impl ClusterNode {
    /// 40 hexadecimal digits, stable across restarts.
    fn id(&self) -> String {
        let sum = Sha1::digest(format!("switchyard {} {}", self.host, self.port));
        model::hex(&sum)
    }

    /// `CLUSTER` and its subcommands. A subcommand that needs the pools becomes a request.
    pub(crate) fn cluster_reply(&self, arguments: &[&[u8]]) -> Result<RespRequest, RespReply> {
        let Some((what, rest)) = arguments.split_first() else { return Err(wrong_arity("cluster")) };
        let reply = match (what.to_ascii_lowercase().as_slice(), rest) {
            (b"slots", []) => self.slots(),
            (b"shards", []) => self.shards(),
            (b"nodes", []) => RespReply::Verbatim(format!("{}\n", self.line()).into()),
            (b"replicas" | b"slaves", [id]) if *id == self.id().as_bytes() => RespReply::Array(Vec::new()),
            (b"replicas" | b"slaves", [_]) => RespReply::error("ERR Unknown node"),
            (b"links", []) => RespReply::Array(Vec::new()),
            (b"info", []) => RespReply::Verbatim(Bytes::from_static(
                b"cluster_enabled:1\r\ncluster_state:ok\r\ncluster_slots_assigned:16384\r\ncluster_slots_ok:16384\r\n\
                  cluster_slots_pfail:0\r\ncluster_slots_fail:0\r\ncluster_known_nodes:1\r\ncluster_size:1\r\n\
                  cluster_current_epoch:1\r\ncluster_my_epoch:1\r\n",
            )),
            (b"myid" | b"myshardid", []) => RespReply::text(&self.id()),
            (b"keyslot", [key]) => RespReply::Integer(redis_keyslot(key).into()),
            (b"countkeysinslot", [slot]) => {
                let slot = parse_integer(slot)?;
                return match u16::try_from(slot).ok().filter(|slot| *slot < SLOTS) {
                    Some(slot) => Ok(RespRequest::KeysInSlot(slot)),
                    None => Err(RespReply::error("ERR Invalid slot")),
                };
            }
            (
                word @ (b"slots" | b"shards" | b"nodes" | b"replicas" | b"slaves" | b"links" | b"info"
                | b"myid" | b"myshardid" | b"keyslot" | b"countkeysinslot"),
                _,
            ) => wrong_arity(&format!("cluster|{}", String::from_utf8_lossy(word))),
            _ => unknown_subcommand("cluster", what),
        };
        Err(reply)
    }

    fn slots(&self) -> RespReply {
        let node = vec![
            RespReply::text(&self.host),
            RespReply::Integer(self.port.into()),
            RespReply::text(&self.id()),
            RespReply::Array(Vec::new()),
        ];
        RespReply::Array(vec![RespReply::Array(vec![
            RespReply::Integer(0),
            RespReply::Integer((SLOTS - 1).into()),
            RespReply::Array(node),
        ])])
    }

    fn shards(&self) -> RespReply {
        let pair = |key: &str, value: RespReply| (RespReply::text(key), value);
        let node = RespReply::Map(vec![
            pair("id", RespReply::text(&self.id())),
            pair("port", RespReply::Integer(self.port.into())),
            pair("ip", RespReply::text(&self.host)),
            pair("endpoint", RespReply::text(&self.host)),
            pair("role", RespReply::text("master")),
            pair("replication-offset", RespReply::Integer(0)),
            pair("health", RespReply::text("online")),
        ]);
        let slots = RespReply::Array(vec![RespReply::Integer(0), RespReply::Integer((SLOTS - 1).into())]);
        RespReply::Array(vec![RespReply::Map(vec![
            pair("slots", slots),
            pair("nodes", RespReply::Array(vec![node])),
        ])])
    }

    /// The node's line in `CLUSTER NODES`. The cluster bus port is 0, since there is none.
    fn line(&self) -> String {
        format!("{} {}:{}@0 myself,master - 0 0 1 connected 0-16383", self.id(), self.host, self.port)
    }
}
