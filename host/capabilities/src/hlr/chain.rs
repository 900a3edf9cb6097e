use super::{Hlr, HlrFailure, HlrSubscriber};
use std::sync::Arc;

/// Several registers, asked one after the other until one can tell.
///
/// * The first that knows the subscriber decides.
/// * That there is no such subscriber is the word of an authority, which is final. A hint (what was learned by the way, a
///   list of exceptions) knows some subscribers and not others: the next one is asked.
/// * A register that does not answer is passed over. If then nobody knows the subscriber and no authority says that there
///   is none, there is no answer: whom we could not ask may have the number.
#[derive(Clone, Default)]
pub struct ChainHlr(Vec<(Standing, Arc<dyn Hlr>)>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    Authority,
    Hint,
}

impl ChainHlr {
    /// Asks nobody yet, and so never has an answer.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The same, and then a register that has all subscribers.
    #[must_use]
    pub fn authority(self, hlr: Arc<dyn Hlr>) -> Self {
        self.with(Standing::Authority, hlr)
    }

    /// The same, and then a register that has some subscribers.
    #[must_use]
    pub fn hint(self, hlr: Arc<dyn Hlr>) -> Self {
        self.with(Standing::Hint, hlr)
    }

    fn with(mut self, standing: Standing, hlr: Arc<dyn Hlr>) -> Self {
        self.0.push((standing, hlr));
        self
    }
}

impl Hlr for ChainHlr {
    fn look_up(&self, msisdn: &str) -> Result<HlrSubscriber, HlrFailure> {
        let mut all_answered = !self.0.is_empty();
        for (standing, hlr) in &self.0 {
            match (hlr.look_up(msisdn), standing) {
                (Ok(subscriber), _) => return Ok(subscriber),
                (Err(HlrFailure::Unknown), Standing::Authority) => return Err(HlrFailure::Unknown),
                (Err(HlrFailure::Unknown), Standing::Hint) => {}
                (Err(HlrFailure::Unreachable), _) => all_answered = false,
            }
        }
        Err(if all_answered { HlrFailure::Unknown } else { HlrFailure::Unreachable })
    }
}

impl std::fmt::Debug for ChainHlr {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(standing, _)| standing)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use HlrFailure::{Unknown, Unreachable};
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Says the same to everybody, and counts how often.
    struct Fixed {
        says: Result<&'static str, HlrFailure>,
        asked: Arc<AtomicUsize>,
    }

    impl Hlr for Fixed {
        fn look_up(&self, _msisdn: &str) -> Result<HlrSubscriber, HlrFailure> {
            self.asked.fetch_add(1, Ordering::Relaxed);
            self.says.map(|imsi| HlrSubscriber { imsi: imsi.to_owned(), serving: None })
        }
    }

    /// What a chain says, and how many of it were asked.
    fn answer(
        members: &[(Standing, Result<&'static str, HlrFailure>)],
    ) -> (Result<String, HlrFailure>, usize) {
        let asked = Arc::new(AtomicUsize::new(0));
        let chain = members.iter().fold(ChainHlr::new(), |chain, (standing, says)| {
            let register = Arc::new(Fixed { says: *says, asked: Arc::clone(&asked) });
            match standing {
                Standing::Authority => chain.authority(register),
                Standing::Hint => chain.hint(register),
            }
        });
        let said = chain.look_up("4915112345").map(|subscriber| subscriber.imsi);
        (said, asked.load(Ordering::Relaxed))
    }

    #[test]
    fn the_first_that_can_tell_decides() {
        use Standing::{Authority, Hint};
        let found = |imsi: &str| Ok(imsi.to_owned());
        for (members, says, asked) in [
            (vec![], Err(Unreachable), 0),
            (vec![(Hint, Ok("1")), (Authority, Ok("2"))], found("1"), 1),
            (vec![(Authority, Ok("1")), (Authority, Ok("2"))], found("1"), 1),
            (vec![(Hint, Err(Unknown)), (Authority, Ok("2"))], found("2"), 2),
            (vec![(Hint, Err(Unreachable)), (Authority, Ok("2"))], found("2"), 2),
            // An authority's word is final, a hint's is not.
            (vec![(Authority, Err(Unknown)), (Authority, Ok("2"))], Err(Unknown), 1),
            (vec![(Hint, Err(Unknown)), (Authority, Err(Unknown)), (Hint, Ok("3"))], Err(Unknown), 2),
            (vec![(Hint, Err(Unknown)), (Hint, Err(Unknown))], Err(Unknown), 2),
            // Whom we could not ask may know.
            (vec![(Hint, Err(Unknown)), (Authority, Err(Unreachable))], Err(Unreachable), 2),
            (vec![(Authority, Err(Unreachable)), (Hint, Err(Unknown))], Err(Unreachable), 2),
            (vec![(Authority, Err(Unreachable)), (Hint, Ok("2"))], found("2"), 2),
            (vec![(Authority, Err(Unreachable)), (Authority, Err(Unknown))], Err(Unknown), 2),
            (vec![(Authority, Err(Unreachable)), (Authority, Err(Unreachable))], Err(Unreachable), 2),
        ] {
            assert_eq!(answer(&members), (says, asked), "{members:?}");
        }
    }
}
