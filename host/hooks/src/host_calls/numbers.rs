use super::{HostInterface, InstanceState};
use crate::bindings::host::switchyard::hooks::numbers as wit;
use crate::host_call_log::HostCallKind;
use api::PolicyReferenceKind;
use arc_swap::ArcSwap;
use model::{AcquireRequest, SenderFallback, SenderRequest};
use std::collections::HashMap;
use std::time::Duration;

/// The longest lease.
const MAX_LEASE: Duration = Duration::from_secs(3650 * 86_400);

/// The state of a number pool, as plugins see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PoolState {
    /// Numbers that can be assigned.
    pub ready: u64,
    /// Numbers that are assigned.
    pub busy: u64,
    /// Numbers that cannot be used at present, including assigned ones.
    pub down: u64,
    /// All numbers.
    pub total: u64,
}

/// Snapshots of all pools. The daemon publishes them about once a second; plugins read them.
#[derive(Debug, Default)]
pub struct PoolSnapshots(ArcSwap<HashMap<String, PoolState>>);

impl PoolSnapshots {
    /// Replaces all states.
    pub fn publish(&self, states: HashMap<String, PoolState>) {
        self.0.store(states.into());
    }

    /// Whether the pool exists.
    pub(crate) fn has(&self, pool: &str) -> bool {
        self.0.load().contains_key(pool)
    }
}

impl PoolState {
    /// Encoding in the record: empty, or four numbers of 8 octets.
    fn octets(self) -> Vec<u8> {
        [self.ready, self.busy, self.down, self.total].iter().flat_map(|count| count.to_le_bytes()).collect()
    }

    pub(crate) fn read(octets: &[u8]) -> Option<Self> {
        let mut counts = octets.chunks_exact(8).map(|count| count.try_into().map(u64::from_le_bytes));
        let mut next = || counts.next()?.ok();
        Some(Self { ready: next()?, busy: next()?, down: next()?, total: next()? })
    }
}

impl InstanceState {
    fn pool_state(&mut self, pool: &str) -> Option<PoolState> {
        self.add_reference(PolicyReferenceKind::Pool, pool);
        if self.context.serves_one_tenant() {
            return None;
        }
        if let Some(recorded) = self.call_log.recall(HostCallKind::Pool, &[pool.as_bytes()]) {
            return PoolState::read(&recorded);
        }
        let state = self.services.pool_snapshots.0.load().get(pool).copied();
        let octets = state.map(PoolState::octets).unwrap_or_default();
        self.call_log.append(HostCallKind::Pool, &[pool.as_bytes()], &octets);
        state
    }
}

/// Validates a sender request.
fn parse_request(request: wit::SenderRequest) -> Result<SenderRequest, String> {
    let checked_text = |what: &str, text: Option<String>| {
        let text = text.unwrap_or_default();
        if text.len() > AcquireRequest::MAX_TEXT {
            let most = AcquireRequest::MAX_TEXT;
            return Err(format!("{what} has {} octets: the maximum is {most}", text.len()));
        }
        Ok(text.into_boxed_str())
    };
    let lease = request.lease.map(Duration::from_millis);
    if lease.is_some_and(|lease| lease.is_zero() || lease > MAX_LEASE) {
        return Err(
            "a lease has 1 ms to 3650 days: omit it for a lease until the end of the message".to_owned()
        );
    }
    Ok(SenderRequest {
        pool: request.pool.parse().map_err(|error: model::ParsePoolNameError| error.to_string())?,
        holder: checked_text("holder", request.holder)?,
        user: checked_text("user", request.user)?,
        reason: checked_text("reason", request.reason)?,
        lease,
        otherwise: match request.otherwise {
            wit::WithoutNumber::Reject => SenderFallback::Reject,
            wit::WithoutNumber::KeepSender => SenderFallback::KeepSender,
            wit::WithoutNumber::Hold => SenderFallback::Hold,
        },
        leased: None,
    })
}

impl wit::Host for InstanceState {
    fn state(&mut self, pool: String) -> Option<wit::PoolState> {
        self.count_call(HostInterface::Numbers);
        let PoolState { ready, busy, down, total } = self.pool_state(&pool)?;
        Some(wit::PoolState { ready, busy, down, total })
    }

    /// Not recorded: the answer depends on the request alone, and the request is part of the decision.
    fn take_sender(&mut self, request: wit::SenderRequest) -> Result<(), String> {
        self.count_call(HostInterface::Numbers);
        if self.configuring {
            return Err("there is no message: call this while a message is routed".to_owned());
        }
        if self.context.serves_one_tenant() {
            return Err("number pools are not for plugins of tenants".to_owned());
        }
        self.sender = Some(Box::new(parse_request(request)?));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_state_survives_encoding() {
        let state = PoolState { ready: 1, busy: 2, down: 3, total: u64::MAX };
        assert_eq!(PoolState::read(&state.octets()), Some(state));
        assert_eq!((PoolState::read(&[]), PoolState::read(&[1; 31])), (None, None));
    }

    #[test]
    fn an_invalid_sender_request_is_refused_with_the_reason() {
        let request = |pool: &str, reason: String, lease| wit::SenderRequest {
            pool: pool.to_owned(),
            user: None,
            holder: None,
            reason: Some(reason),
            lease,
            otherwise: wit::WithoutNumber::Hold,
        };
        let good = parse_request(request("texts", "x".repeat(255), Some(1_500))).unwrap();
        assert_eq!((good.lease, good.otherwise), (Some(Duration::from_millis(1_500)), SenderFallback::Hold));
        for (request, expected) in [
            (request("two words", String::new(), None), "cannot be the name of a pool"),
            (request("texts", "x".repeat(256), None), "reason has 256 octets"),
            (request("texts", String::new(), Some(0)), "1 ms to 3650 days"),
            (request("texts", String::new(), Some(u64::MAX)), "1 ms to 3650 days"),
        ] {
            let error = parse_request(request).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
