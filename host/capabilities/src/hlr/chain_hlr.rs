use super::{Hlr, HlrFailure, HlrSubscriber};
use std::sync::Arc;

/// A chain of registers that are queried one after the other.
///
/// * The first register that knows the subscriber decides.
/// * If an authority does not know the subscriber, that is final. A hint (such as learned data or a list of exceptions)
///   knows only some subscribers: if it does not know the subscriber, the next register is queried.
/// * An unreachable register is skipped. If no other register knows the subscriber and no authority reports it as
///   unknown, the result is "unreachable": the skipped register may know it.
#[derive(Clone, Default)]
pub struct ChainHlr(Vec<(RegisterKind, Arc<dyn Hlr>)>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RegisterKind {
    Authority,
    Hint,
}

impl ChainHlr {
    /// Creates an empty chain, which never has an answer.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a register that has all subscribers.
    #[must_use]
    pub fn authority(self, hlr: Arc<dyn Hlr>) -> Self {
        self.with(RegisterKind::Authority, hlr)
    }

    /// Appends a register that has some subscribers.
    #[must_use]
    pub fn hint(self, hlr: Arc<dyn Hlr>) -> Self {
        self.with(RegisterKind::Hint, hlr)
    }

    fn with(mut self, kind: RegisterKind, hlr: Arc<dyn Hlr>) -> Self {
        self.0.push((kind, hlr));
        self
    }
}

impl Hlr for ChainHlr {
    fn look_up(&self, msisdn: &str) -> Result<HlrSubscriber, HlrFailure> {
        let mut all_answered = !self.0.is_empty();
        for (kind, hlr) in &self.0 {
            match (hlr.look_up(msisdn), kind) {
                (Ok(subscriber), _) => return Ok(subscriber),
                (Err(HlrFailure::Unknown), RegisterKind::Authority) => return Err(HlrFailure::Unknown),
                (Err(HlrFailure::Unknown), RegisterKind::Hint) => {}
                (Err(HlrFailure::Unreachable), _) => all_answered = false,
            }
        }
        Err(if all_answered { HlrFailure::Unknown } else { HlrFailure::Unreachable })
    }
}

impl std::fmt::Debug for ChainHlr {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(kind, _)| kind)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use HlrFailure::{Unknown, Unreachable};
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Always gives the same answer, and counts the look-ups.
    struct FixedHlr {
        result: Result<&'static str, HlrFailure>,
        calls: Arc<AtomicUsize>,
    }

    impl Hlr for FixedHlr {
        fn look_up(&self, _msisdn: &str) -> Result<HlrSubscriber, HlrFailure> {
            self.calls.fetch_add(1, Ordering::Relaxed);
            self.result.map(|imsi| HlrSubscriber { imsi: imsi.to_owned(), serving: None })
        }
    }

    /// The chain's answer, and the number of queried registers.
    fn answer(
        members: &[(RegisterKind, Result<&'static str, HlrFailure>)],
    ) -> (Result<String, HlrFailure>, usize) {
        let calls = Arc::new(AtomicUsize::new(0));
        let chain = members.iter().fold(ChainHlr::new(), |chain, (kind, result)| {
            let register = Arc::new(FixedHlr { result: *result, calls: Arc::clone(&calls) });
            match kind {
                RegisterKind::Authority => chain.authority(register),
                RegisterKind::Hint => chain.hint(register),
            }
        });
        let result = chain.look_up("4915112345").map(|subscriber| subscriber.imsi);
        (result, calls.load(Ordering::Relaxed))
    }

    #[test]
    fn the_first_conclusive_answer_wins() {
        use RegisterKind::{Authority, Hint};
        let found = |imsi: &str| Ok(imsi.to_owned());
        for (members, result, calls) in [
            (vec![], Err(Unreachable), 0),
            (vec![(Hint, Ok("1")), (Authority, Ok("2"))], found("1"), 1),
            (vec![(Authority, Ok("1")), (Authority, Ok("2"))], found("1"), 1),
            (vec![(Hint, Err(Unknown)), (Authority, Ok("2"))], found("2"), 2),
            (vec![(Hint, Err(Unreachable)), (Authority, Ok("2"))], found("2"), 2),
            // The answer of an authority is final; the answer of a hint is not.
            (vec![(Authority, Err(Unknown)), (Authority, Ok("2"))], Err(Unknown), 1),
            (vec![(Hint, Err(Unknown)), (Authority, Err(Unknown)), (Hint, Ok("3"))], Err(Unknown), 2),
            (vec![(Hint, Err(Unknown)), (Hint, Err(Unknown))], Err(Unknown), 2),
            // The unreachable register may know the subscriber.
            (vec![(Hint, Err(Unknown)), (Authority, Err(Unreachable))], Err(Unreachable), 2),
            (vec![(Authority, Err(Unreachable)), (Hint, Err(Unknown))], Err(Unreachable), 2),
            (vec![(Authority, Err(Unreachable)), (Hint, Ok("2"))], found("2"), 2),
            (vec![(Authority, Err(Unreachable)), (Authority, Err(Unknown))], Err(Unknown), 2),
            (vec![(Authority, Err(Unreachable)), (Authority, Err(Unreachable))], Err(Unreachable), 2),
        ] {
            assert_eq!(answer(&members), (result, calls), "{members:?}");
        }
    }
}
