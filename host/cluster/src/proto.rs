//! The messages of etcd's API v3 (`rpc.proto` and `kv.proto` of etcd 3.4) that are used here, without unused fields.
//!
//! They are written by hand: generating them would require `protoc` on every build machine.

use prost::{Message, Oneof};

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ResponseHeader {
    #[prost(uint64, tag = "2")]
    pub(crate) member_id: u64,
    #[prost(int64, tag = "3")]
    pub(crate) revision: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct KeyValue {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) key: Vec<u8>,
    #[prost(int64, tag = "3")]
    pub(crate) mod_revision: i64,
    #[prost(bytes = "vec", tag = "5")]
    pub(crate) value: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct RangeRequest {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) key: Vec<u8>,
    /// End of the range, exclusive; empty to read only `key`.
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) range_end: Vec<u8>,
    #[prost(int64, tag = "3")]
    pub(crate) limit: i64,
    /// Whether the asked member answers from its own state, which may be old.
    #[prost(bool, tag = "7")]
    pub(crate) serializable: bool,
    /// Only keys that were written at this revision or later.
    #[prost(int64, tag = "10")]
    pub(crate) min_mod_revision: i64,
}

impl RangeRequest {
    /// Reads this key.
    pub(crate) fn of(key: String) -> Self {
        Self { key: key.into_bytes(), limit: 1, ..Self::default() }
    }

    /// Reads all keys with this prefix, which ends with a slash.
    pub(crate) fn below(prefix: &str) -> Self {
        let mut end = prefix.as_bytes().to_vec();
        end.pop();
        // The octet after the slash.
        end.push(b'0');
        Self { key: prefix.as_bytes().to_vec(), range_end: end, ..Self::default() }
    }
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct RangeResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) header: Option<ResponseHeader>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) kvs: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct PutRequest {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) key: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) value: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct PutResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) header: Option<ResponseHeader>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct DeleteRangeRequest {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) key: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct DeleteRangeResponse {
    /// Number of removed keys.
    #[prost(int64, tag = "2")]
    pub(crate) deleted: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct RequestOp {
    #[prost(oneof = "request_op::Request", tags = "1, 2, 3")]
    pub(crate) request: Option<request_op::Request>,
}

pub(crate) mod request_op {
    use super::{DeleteRangeRequest, Oneof, PutRequest, RangeRequest};

    #[derive(Clone, PartialEq, Oneof)]
    pub(crate) enum Request {
        #[prost(message, tag = "1")]
        Range(RangeRequest),
        #[prost(message, tag = "2")]
        Put(PutRequest),
        #[prost(message, tag = "3")]
        Delete(DeleteRangeRequest),
    }
}

impl From<RangeRequest> for RequestOp {
    fn from(request: RangeRequest) -> Self {
        Self { request: Some(request_op::Request::Range(request)) }
    }
}

impl From<DeleteRangeRequest> for RequestOp {
    fn from(request: DeleteRangeRequest) -> Self {
        Self { request: Some(request_op::Request::Delete(request)) }
    }
}

impl From<PutRequest> for RequestOp {
    fn from(request: PutRequest) -> Self {
        Self { request: Some(request_op::Request::Put(request)) }
    }
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ResponseOp {
    #[prost(oneof = "response_op::Response", tags = "1, 2")]
    pub(crate) response: Option<response_op::Response>,
}

pub(crate) mod response_op {
    use super::{Oneof, PutResponse, RangeResponse};

    #[derive(Clone, PartialEq, Oneof)]
    pub(crate) enum Response {
        #[prost(message, tag = "1")]
        Range(RangeResponse),
        #[prost(message, tag = "2")]
        Put(PutResponse),
    }
}

/// Condition of a transaction.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Compare {
    /// 0: equal.
    #[prost(int32, tag = "1")]
    pub(crate) result: i32,
    /// See [`COMPARE_CREATE`], [`COMPARE_MOD`] and [`COMPARE_VALUE`].
    #[prost(int32, tag = "2")]
    pub(crate) target: i32,
    #[prost(bytes = "vec", tag = "3")]
    pub(crate) key: Vec<u8>,
    #[prost(oneof = "compare::TargetUnion", tags = "5, 6, 7")]
    pub(crate) target_union: Option<compare::TargetUnion>,
}

/// Target of [`Compare`]: the revision that created the key; 0 if the key does not exist.
pub(crate) const COMPARE_CREATE: i32 = 1;
/// Target of [`Compare`]: the revision that last wrote the key.
pub(crate) const COMPARE_MOD: i32 = 2;
/// Target of [`Compare`]: the value.
pub(crate) const COMPARE_VALUE: i32 = 3;

pub(crate) mod compare {
    use super::Oneof;

    #[derive(Clone, PartialEq, Oneof)]
    pub(crate) enum TargetUnion {
        #[prost(int64, tag = "5")]
        CreateRevision(i64),
        #[prost(int64, tag = "6")]
        ModRevision(i64),
        #[prost(bytes = "vec", tag = "7")]
        Value(Vec<u8>),
    }
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct TxnRequest {
    #[prost(message, repeated, tag = "1")]
    pub(crate) compare: Vec<Compare>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) success: Vec<RequestOp>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) failure: Vec<RequestOp>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct TxnResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) header: Option<ResponseHeader>,
    #[prost(bool, tag = "2")]
    pub(crate) succeeded: bool,
    #[prost(message, repeated, tag = "3")]
    pub(crate) responses: Vec<ResponseOp>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct CompactionRequest {
    #[prost(int64, tag = "1")]
    pub(crate) revision: i64,
}

/// Request for all alarms of all members.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct AlarmRequest {}

/// An answer whose fields are not used.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Empty {}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct StatusResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) header: Option<ResponseHeader>,
    #[prost(string, tag = "2")]
    pub(crate) version: String,
    /// Size of the member's database, in octets.
    #[prost(int64, tag = "3")]
    pub(crate) db_size: i64,
    /// Id of the leading member; 0 if there is none.
    #[prost(uint64, tag = "4")]
    pub(crate) leader: u64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct AlarmMember {
    #[prost(uint64, tag = "1")]
    pub(crate) member_id: u64,
    /// 1: no space; 2: corrupt.
    #[prost(int32, tag = "2")]
    pub(crate) alarm: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct AlarmResponse {
    #[prost(message, repeated, tag = "2")]
    pub(crate) alarms: Vec<AlarmMember>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct AuthenticateRequest {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "2")]
    pub(crate) password: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct AuthenticateResponse {
    #[prost(string, tag = "2")]
    pub(crate) token: String,
}
