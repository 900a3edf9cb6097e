//! Client of etcd's API v3, for several members, with TLS and users.

use crate::proto::{AuthenticateRequest, AuthenticateResponse, RangeRequest, RangeResponse};
use crate::{ClusterError, ClusterOptions};
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use http::uri::PathAndQuery;
use parking_lot::Mutex;
use prost::Message;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tonic::client::Grpc;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};
use tonic::{Code, Request, Status};
use tonic_prost::ProstCodec;

/// Maximum time for one answer. etcd elects a leader in one to two seconds.
pub(crate) const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// The delay before a call is repeated.
const RETRY_DELAY: Duration = Duration::from_millis(50);
/// Maximum length of an answer, in octets: requests to etcd are limited to 1.5 MiB, but many slots of the ring are read at
/// once.
const MAX_ANSWER_OCTETS: usize = 64 << 20;

pub(crate) const RANGE: &str = "/etcdserverpb.KV/Range";
pub(crate) const PUT: &str = "/etcdserverpb.KV/Put";
pub(crate) const DELETE_RANGE: &str = "/etcdserverpb.KV/DeleteRange";
pub(crate) const TXN: &str = "/etcdserverpb.KV/Txn";
pub(crate) const COMPACT: &str = "/etcdserverpb.KV/Compact";
pub(crate) const STATUS: &str = "/etcdserverpb.Maintenance/Status";
pub(crate) const ALARM: &str = "/etcdserverpb.Maintenance/Alarm";
const AUTHENTICATE: &str = "/etcdserverpb.Auth/Authenticate";

/// Client of all members of etcd. Must be created within a tokio runtime.
pub(crate) struct EtcdClient {
    members: Vec<(String, Channel)>,
    /// Index of the member that is asked.
    current: AtomicUsize,
    /// Name and password, if etcd has users.
    user: Option<(String, String)>,
    token: Mutex<Option<MetadataValue<Ascii>>>,
}

impl EtcdClient {
    pub(crate) fn new(options: &ClusterOptions) -> Result<Self, ClusterError> {
        let tls = tls(options)?;
        let members = options.endpoints.iter().map(|endpoint| {
            let failed = |error: tonic::transport::Error| {
                let source = std::error::Error::source(&error).map(ToString::to_string);
                let reason = source.unwrap_or_else(|| error.to_string());
                ClusterError::Endpoint { endpoint: endpoint.clone(), reason }
            };
            let mut member = Endpoint::from_shared(endpoint.clone())
                .map_err(failed)?
                .connect_timeout(CONNECT_TIMEOUT)
                .tcp_nodelay(true)
                .http2_keep_alive_interval(Duration::from_secs(2))
                .keep_alive_timeout(Duration::from_secs(2))
                // The default windows of HTTP/2 are too small for an answer with many slots.
                .initial_stream_window_size(4 << 20)
                .initial_connection_window_size(8 << 20);
            if endpoint.starts_with("https://") {
                member = member.tls_config(tls.clone()).map_err(failed)?;
            }
            Ok((endpoint.clone(), member.connect_lazy()))
        });
        Ok(Self {
            members: members.collect::<Result<_, ClusterError>>()?,
            current: AtomicUsize::new(0),
            user: (!options.user.is_empty()).then(|| (options.user.clone(), options.password.clone())),
            token: Mutex::default(),
        })
    }

    fn current(&self) -> Option<&(String, Channel)> {
        self.members.get(self.current.load(Relaxed) % self.members.len().max(1))
    }

    /// URL of the member that is asked.
    pub(crate) fn endpoint(&self) -> &str {
        self.current().map_or("", |(endpoint, _)| endpoint)
    }

    /// The error for an answer of the current member.
    pub(crate) fn failed(&self, status: &Status) -> ClusterError {
        ClusterError::Etcd { endpoint: self.endpoint().to_owned(), reason: reason(status) }
    }

    /// The addresses of all members.
    pub(crate) fn endpoints(&self) -> impl Iterator<Item = &str> {
        self.members.iter().map(|(endpoint, _)| endpoint.as_str())
    }

    /// Replaces a current member that does not answer: asks all members at once, and takes the first that answers for a
    /// majority.
    ///
    /// Asking one after the other would take long: neither an unreachable member nor one that waits for etcd's election
    /// answers.
    pub(crate) async fn find_member(&self) {
        let silent = self.current.load(Relaxed);
        // No key has this name, so the answer is short; and it is linearizable.
        let request = RangeRequest::of("\0".to_owned());
        let asked = (0..self.members.len()).map(|member| {
            let request = &request;
            async move { (member, self.call_at::<_, RangeResponse>(member, RANGE, request).await) }
        });
        let mut asked: FuturesUnordered<_> = asked.collect();
        while let Some((member, answer)) = asked.next().await {
            if answer.is_ok() || answer.is_err_and(|status| is_refusal(&status)) {
                self.current.store(member, Relaxed);
                return;
            }
        }
        // Unless another caller has replaced it in the meantime.
        let _ = self.current.compare_exchange(silent, silent.wrapping_add(1), Relaxed, Relaxed);
    }

    /// Calls the current member once.
    pub(crate) async fn call<Q, A>(&self, path: &'static str, request: &Q) -> Result<A, Status>
    where
        Q: Message + Clone + 'static,
        A: Message + Default + 'static,
    {
        let Some((_, channel)) = self.current() else { return Err(Status::unavailable("no members")) };
        self.call_member(channel, path, request).await
    }

    /// Calls this member once.
    pub(crate) async fn call_at<Q, A>(
        &self,
        member: usize,
        path: &'static str,
        request: &Q,
    ) -> Result<A, Status>
    where
        Q: Message + Clone + 'static,
        A: Message + Default + 'static,
    {
        let Some((_, channel)) = self.members.get(member) else {
            return Err(Status::unavailable("no such member"));
        };
        self.call_member(channel, path, request).await
    }

    /// Repeats the call until a member answers or refuses, or the time is over. Only for calls that may be repeated.
    pub(crate) async fn call_any<Q, A>(
        &self,
        path: &'static str,
        request: &Q,
        time: Duration,
    ) -> Result<A, Status>
    where
        Q: Message + Clone + 'static,
        A: Message + Default + 'static,
    {
        let begun = Instant::now();
        loop {
            let status = match self.call(path, request).await {
                Ok(answer) => return Ok(answer),
                Err(status) => status,
            };
            if is_refusal(&status) || begun.elapsed() >= time {
                return Err(status);
            }
            self.find_member().await;
            tokio::time::sleep(RETRY_DELAY).await;
        }
    }

    async fn call_member<Q, A>(&self, channel: &Channel, path: &'static str, request: &Q) -> Result<A, Status>
    where
        Q: Message + Clone + 'static,
        A: Message + Default + 'static,
    {
        let Some(user) = &self.user else { return unary(channel, path, request.clone(), None).await };
        let known = self.token.lock().clone();
        let token = match known {
            Some(token) => token,
            None => self.authenticate(channel, user).await?,
        };
        match unary(channel, path, request.clone(), Some(token)).await {
            Err(status) if is_old_token(&status) => {
                // etcd no longer knows the token, so the call had no effect.
                let token = self.authenticate(channel, user).await?;
                unary(channel, path, request.clone(), Some(token)).await
            }
            other => other,
        }
    }

    async fn authenticate(
        &self,
        channel: &Channel,
        (name, password): &(String, String),
    ) -> Result<MetadataValue<Ascii>, Status> {
        let request = AuthenticateRequest { name: name.clone(), password: password.clone() };
        let answer: AuthenticateResponse = unary(channel, AUTHENTICATE, request, None).await?;
        let token: MetadataValue<Ascii> =
            answer.token.parse().map_err(|_| Status::internal("etcd sent a token that is not ASCII"))?;
        *self.token.lock() = Some(token.clone());
        Ok(token)
    }
}

async fn unary<Q, A>(
    channel: &Channel,
    path: &'static str,
    request: Q,
    token: Option<MetadataValue<Ascii>>,
) -> Result<A, Status>
where
    Q: Message + 'static,
    A: Message + Default + 'static,
{
    let mut request = Request::new(request);
    if let Some(token) = token {
        request.metadata_mut().insert("token", token);
    }
    let call = async {
        let mut grpc = Grpc::new(channel.clone()).max_decoding_message_size(MAX_ANSWER_OCTETS);
        grpc.ready().await.map_err(|error| Status::unavailable(innermost_cause(&error)))?;
        let codec = ProstCodec::<Q, A>::default();
        grpc.unary(request, PathAndQuery::from_static(path), codec).await
    };
    match tokio::time::timeout(ANSWER_TIMEOUT, call).await {
        Ok(answer) => answer.map(tonic::Response::into_inner),
        Err(_) => Err(Status::deadline_exceeded("no answer")),
    }
}

/// The innermost cause of an error: the outer ones only say which call failed.
#[must_use]
pub fn innermost_cause(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        text = next.to_string();
        cause = next.source();
    }
    text
}

/// The text of an answer of etcd, for the log.
pub(crate) fn reason(status: &Status) -> String {
    let cause = std::error::Error::source(status).map(innermost_cause);
    cause.unwrap_or_else(|| status.message().to_owned())
}

/// Whether the request has certainly no effect, and a repetition would not help.
pub(crate) fn is_refusal(status: &Status) -> bool {
    match status.code() {
        // etcd gives the same code while its request queue is full; that passes.
        Code::ResourceExhausted => !status.message().contains("too many requests"),
        Code::InvalidArgument
        | Code::PermissionDenied
        | Code::Unauthenticated
        | Code::Unimplemented
        | Code::FailedPrecondition
        | Code::OutOfRange => true,
        _ => false,
    }
}

/// Whether etcd no longer knows the token.
fn is_old_token(status: &Status) -> bool {
    match status.code() {
        Code::Unauthenticated => true,
        Code::InvalidArgument => {
            status.message().contains("auth store") || status.message().contains("user name is empty")
        }
        _ => false,
    }
}

fn tls(options: &ClusterOptions) -> Result<ClientTlsConfig, ClusterError> {
    let read = |path: &Path| {
        std::fs::read(path).map_err(|source| ClusterError::File { path: path.to_owned(), source })
    };
    let mut tls = ClientTlsConfig::new();
    if let Some(ca) = &options.ca {
        tls = tls.ca_certificate(Certificate::from_pem(read(ca)?));
    }
    if let (Some(certificate), Some(key)) = (&options.certificate, &options.key) {
        tls = tls.identity(Identity::from_pem(read(certificate)?, read(key)?));
    }
    Ok(tls)
}
