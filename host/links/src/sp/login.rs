//! Logins of SPs at our listeners: name, proof of the password, clock, version, network, connection limit.

use super::LinkedProtocol;
use super::state::SpLogin;
use crate::shared::Shared;
use model::Timestamp;
use ports::link::{IncomingPeer, LinkRecord, PendingLogin};
use ports::{
    AccountRegistry, LoginAccount, LoginAttempt, LoginRefused, LoginSecret, SessionPermit, SessionRequest,
};
use sp_session::{OfferedLogin, wall_clock};
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

/// The decision on a login.
pub(crate) enum LoginDecision {
    Accept { sp: SpLogin, session: (Arc<LinkRecord>, SessionPermit), login: OfferedLogin },
    Refuse { status: u32, reason: &'static str, login: OfferedLogin, highest: u8 },
}

/// Authenticates the login of one connection.
pub(super) struct LoginAuthenticator<P> {
    pub(super) shared: Arc<Shared>,
    /// The time for a decision.
    pub(super) timeout: Duration,
    pub(super) incoming: Arc<IncomingPeer>,
    pub(super) protocol: PhantomData<fn() -> P>,
}

impl<P> Clone for LoginAuthenticator<P> {
    fn clone(&self) -> Self {
        Self {
            shared: self.shared.clone(),
            timeout: self.timeout,
            incoming: self.incoming.clone(),
            protocol: PhantomData,
        }
    }
}

impl<P: LinkedProtocol> LoginAuthenticator<P> {
    /// Starts the authentication of a login.
    pub(super) fn authenticate(&self, login: OfferedLogin) -> PendingLogin<LoginDecision> {
        let authenticator = self.clone();
        Box::pin(async move {
            let incoming = &authenticator.incoming;
            let sp = P::state(&authenticator.shared).find(&login.name);
            let highest = sp.as_ref().map_or(0x30, |sp| sp.options.version);
            let attempt = LoginAttempt {
                interface: P::INTERFACE,
                name: &login.name,
                password: &[],
                remote: incoming.remote.ip(),
            };
            let decision = authenticator.decide(sp, &login, &attempt).await;
            match incoming.on_decision(&attempt, decision) {
                Ok((sp, session)) => LoginDecision::Accept { sp, session, login },
                Err((status, reason)) => LoginDecision::Refuse { status, reason, login, highest },
            }
        })
    }

    async fn decide(
        &self,
        sp: Option<SpLogin>,
        login: &OfferedLogin,
        attempt: &LoginAttempt<'_>,
    ) -> Result<(SpLogin, (Arc<LinkRecord>, SessionPermit)), (u32, &'static str)> {
        let (shared, wall) = (&self.shared, Timestamp::now());
        let rules = sp.as_ref().map(|sp| sp.account.options());
        let proves = sp.as_ref().is_some_and(|sp| {
            let secret = &sp.options.inbound_password.0;
            P::AUTHENTICATOR.verify(login.authenticator, &login.name, secret, login.timestamp)
        });
        let named = rules.as_ref().map(|rules| LoginAccount {
            account: Some(rules.peer),
            networks: &rules.networks,
            secret: LoginSecret::Compared(proves),
        });
        let registry: &AccountRegistry = shared.deps.registry.accounts();
        let checked = registry.authenticate(&shared.verifier, attempt, named, None).await;
        let (sp, rules) = match (checked, sp.zip(rules)) {
            (Ok(()), Some(known)) => known,
            (Ok(()), None) | (Err(LoginRefused::WrongPassword), None) => {
                return Err((P::STATUS.login_name, "unknown login name"));
            }
            (Err(refused), _) => return Err((P::STATUS.login_secret, refused.reason())),
        };
        let status = P::version_status(login.version);
        if status != 0 {
            return Err((status, "the version is not served"));
        }
        if login.version >> 4 > sp.options.version >> 4 {
            return Err((P::STATUS.login_version, "the version is above that of the account"));
        }
        let tolerance = sp.options.clock_tolerance;
        if !tolerance.is_zero() {
            if clock_difference(login.timestamp, wall).is_none_or(|difference| difference > tolerance) {
                return Err((P::STATUS.login_secret, "the time of the login is not that of China"));
            }
            if !P::state(shared).is_fresh(login.authenticator, attempt.remote, wall) {
                return Err((P::STATUS.login_secret, "the login was used before"));
            }
        }
        if shared.deps.refuses_logins() {
            return Err((P::STATUS.login_busy, "the appliance is draining"));
        }
        let request = SessionRequest {
            limits: &sp.account.limits,
            name: &rules.name,
            protocol: P::PROTOCOL,
            limit: sp.options.connections_in,
            can_prove_alive: true,
            timeout: self.timeout,
        };
        let Some(session) = self.incoming.acquire_session(&request).await else {
            return Err((P::STATUS.login_busy, "connection limit of the account reached"));
        };
        Ok((sp, session))
    }
}

/// Difference between the time of a login (`MMDDHHMMSS` in China) and `wall`. `None` if it is not a time.
fn clock_difference(timestamp: u32, wall: Timestamp) -> Option<Duration> {
    let year: u32 = wall_clock(wall).get(..2)?.parse().ok()?;
    // At the turn of the year, the login may belong to the previous or the next year.
    let years = [(year + 99) % 100, year, (year + 1) % 100];
    let china = Timestamp(wall.0 + 8 * 3_600_000);
    let times = years.iter().filter_map(|year| {
        let text = format!("{year:02}{timestamp:010}");
        smpp::time::parse_receipt(text.as_bytes())
    });
    times.map(|at| Duration::from_millis(at.0.abs_diff(china.0))).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_28_a_clock_may_differ_a_little_also_at_the_turn_of_the_year() {
        // 2026-07-08 09:07:13 in China.
        let wall = Timestamp(1_783_472_833_000);
        let difference = |timestamp| clock_difference(timestamp, wall).map(|difference| difference.as_secs());
        assert_eq!(difference(708_090_713), Some(0));
        assert_eq!(difference(708_091_613), Some(9 * 60));
        assert_eq!(difference(708_085_613), Some(11 * 60));
        assert_eq!(difference(1_399_999_999), None);
        // 2026-12-31 23:59:30 in China; the SP is a minute ahead.
        let wall = Timestamp(1_798_732_770_000);
        assert_eq!(clock_difference(101_000_030, wall), Some(Duration::from_secs(60)));
    }
}
