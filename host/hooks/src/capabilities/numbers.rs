use super::State;
use crate::bindings::host::switchyard::hooks::numbers as wit;
use crate::reference::ReferenceKind;
use crate::seen::Asked;
use arc_swap::ArcSwap;
use model::{NoSender, PoolCall, SenderWish};
use std::collections::HashMap;
use std::time::Duration;

/// The longest lease.
const LONGEST: Duration = Duration::from_secs(3650 * 86_400);

/// What plugins may know of a number pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PoolState {
    /// Numbers that are to be had.
    pub ready: u64,
    /// Numbers that somebody has.
    pub busy: u64,
    /// Numbers that cannot be used now, busy ones among them.
    pub down: u64,
    /// All numbers.
    pub total: u64,
}

/// The states of all pools, written by the daemon about once a second and read by plugins.
#[derive(Debug, Default)]
pub struct PoolBoard(ArcSwap<HashMap<String, PoolState>>);

impl PoolBoard {
    /// Replaces all states.
    pub fn publish(&self, states: HashMap<String, PoolState>) {
        self.0.store(states.into());
    }

    /// Whether there is a pool of this name.
    pub(crate) fn has(&self, pool: &str) -> bool {
        self.0.load().contains_key(pool)
    }
}

impl PoolState {
    /// On record: nothing, or four times 8.
    fn octets(self) -> Vec<u8> {
        [self.ready, self.busy, self.down, self.total].iter().flat_map(|count| count.to_le_bytes()).collect()
    }

    fn read(octets: &[u8]) -> Option<Self> {
        let mut counts = octets.chunks_exact(8).map(|count| count.try_into().map(u64::from_le_bytes));
        let mut next = || counts.next()?.ok();
        Some(Self { ready: next()?, busy: next()?, down: next()?, total: next()? })
    }
}

impl State {
    fn pool_state(&mut self, pool: &str) -> Option<PoolState> {
        self.refer(ReferenceKind::Pool, pool);
        if let Some(then) = self.seen.recall(Asked::Pool, &[pool.as_bytes()]) {
            return PoolState::read(&then);
        }
        let state = self.powers.pools.0.load().get(pool).copied();
        let octets = state.map(PoolState::octets).unwrap_or_default();
        self.seen.note(Asked::Pool, &[pool.as_bytes()], &octets);
        state
    }
}

/// The wish that a request amounts to, as far as it makes sense.
fn wish(request: wit::SenderRequest) -> Result<SenderWish, String> {
    let words = |what: &str, text: Option<String>| {
        let text = text.unwrap_or_default();
        if text.len() > PoolCall::LONGEST_TEXT {
            let most = PoolCall::LONGEST_TEXT;
            return Err(format!("{what} has {} octets: at most {most} fit", text.len()));
        }
        Ok(text.into_boxed_str())
    };
    let lease = request.lease.map(Duration::from_millis);
    if lease.is_some_and(|lease| lease.is_zero() || lease > LONGEST) {
        return Err("a lease has 1 ms to 3650 days: leave it out for one that lasts as long as the message"
            .to_owned());
    }
    Ok(SenderWish {
        pool: request.pool.parse().map_err(|error: model::ParsePoolNameError| error.to_string())?,
        holder: words("holder", request.holder)?,
        user: words("user", request.user)?,
        reason: words("reason", request.reason)?,
        lease,
        otherwise: match request.otherwise {
            wit::WithoutNumber::Reject => NoSender::Reject,
            wit::WithoutNumber::KeepSender => NoSender::KeepSender,
            wit::WithoutNumber::Hold => NoSender::Hold,
        },
        given: None,
    })
}

impl wit::Host for State {
    fn state(&mut self, pool: String) -> Option<wit::PoolState> {
        let PoolState { ready, busy, down, total } = self.pool_state(&pool)?;
        Some(wit::PoolState { ready, busy, down, total })
    }

    /// Nothing is written down: the answer hangs on the request alone, and what it asks for is part of the decision.
    fn take_sender(&mut self, request: wit::SenderRequest) -> Result<(), String> {
        if self.configuring {
            return Err("there is no message yet: ask while one is routed".to_owned());
        }
        self.sender = Some(Box::new(wish(request)?));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_come_back_from_the_record() {
        let state = PoolState { ready: 1, busy: 2, down: 3, total: u64::MAX };
        assert_eq!(PoolState::read(&state.octets()), Some(state));
        assert_eq!((PoolState::read(&[]), PoolState::read(&[1; 31])), (None, None));
    }

    #[test]
    fn what_is_wrong_with_a_request() {
        let request = |pool: &str, reason: String, lease| wit::SenderRequest {
            pool: pool.to_owned(),
            user: None,
            holder: None,
            reason: Some(reason),
            lease,
            otherwise: wit::WithoutNumber::Hold,
        };
        let good = wish(request("texts", "x".repeat(255), Some(1_500))).unwrap();
        assert_eq!((good.lease, good.otherwise), (Some(Duration::from_millis(1_500)), NoSender::Hold));
        for (request, words) in [
            (request("two words", String::new(), None), "cannot be the name of a pool"),
            (request("texts", "x".repeat(256), None), "reason has 256 octets"),
            (request("texts", String::new(), Some(0)), "1 ms to 3650 days"),
            (request("texts", String::new(), Some(u64::MAX)), "1 ms to 3650 days"),
        ] {
            let error = wish(request).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
    }
}
