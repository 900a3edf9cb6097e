use smpp::Status;
use std::time::Duration;

/// How long to wait before a peer is dialled again: doubling from a second to a limit, and longer where hammering would do harm
/// (sheet §1.6, §2.3).
#[derive(Debug)]
pub(crate) struct BackOff {
    next: Duration,
    longest: Duration,
}

impl BackOff {
    const FIRST: Duration = Duration::from_secs(1);
    /// No limit is below this, so that nobody hammers a peer by a wrong setting.
    const SHORTEST: Duration = Duration::from_millis(100);
    /// The limit where nothing else is said.
    pub(crate) const LONGEST: Duration = Duration::from_secs(30);
    /// After a refusal of system id or password: somebody has to correct them.
    const WRONG_CREDENTIALS: Duration = Duration::from_secs(60);
    /// After RALYBND: the peer still holds our old session and needs time to notice.
    const STILL_BOUND: Duration = Duration::from_secs(30);

    /// Waits of at most `longest`, where the peer's refusal does not demand more.
    pub(crate) fn new(longest: Duration) -> Self {
        let longest = longest.max(Self::SHORTEST);
        Self { next: Self::FIRST.min(longest), longest }
    }

    /// The link was bound and worked: begin anew.
    pub(crate) fn reset(&mut self) {
        self.next = Self::FIRST.min(self.longest);
    }

    /// The next wait. `lot` is a random number; it spreads the wait over 80 to 120 percent, but never beyond the limit, and never
    /// below what `refused` demands.
    pub(crate) fn next(&mut self, refused: Option<Status>, lot: u64) -> Duration {
        let wait = self.next;
        self.next = (self.next * 2).min(self.longest);
        let least = match refused {
            Some(Status::RINVPASWD | Status::RINVSYSID) => Self::WRONG_CREDENTIALS,
            Some(Status::RALYBND) => Self::STILL_BOUND,
            _ => Duration::ZERO,
        };
        let percent = 80 + u32::try_from(lot % 41).unwrap_or(0);
        if least > wait {
            // Only upwards: the least is the least.
            return least + least * (percent - 80) / 200;
        }
        (wait * percent / 100).min(self.longest).max(least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_037_038_credentials_wait_a_minute_and_a_stale_session_half_of_it() {
        for lot in 0..100 {
            let mut backoff = BackOff::new(BackOff::LONGEST);
            assert!(backoff.next(Some(Status::RINVPASWD), lot) >= Duration::from_secs(60));
            assert!(backoff.next(Some(Status::RINVSYSID), lot) >= Duration::from_secs(60));
            assert!(backoff.next(Some(Status::RALYBND), lot) >= Duration::from_secs(30));
        }
    }

    #[test]
    fn waits_double_to_the_limit_and_begin_anew() {
        let mut backoff = BackOff::new(BackOff::LONGEST);
        let waits: Vec<u64> = (0..7).map(|_| backoff.next(None, 20).as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 30, 30]);
        for lot in 0..100 {
            assert!(backoff.next(None, lot) <= BackOff::LONGEST);
        }
        let mut short = BackOff::new(Duration::from_millis(500));
        assert!((0..100).all(|lot| short.next(None, lot) <= Duration::from_millis(500)));
        backoff.reset();
        let wait = backoff.next(None, 0);
        assert!(wait >= Duration::from_millis(800) && wait < Duration::from_secs(1));
    }
}
