//! Generations in a row, asked one after the other.

use crate::Fault;
use crate::binding::OnFault;
use crate::examples::Met;
use crate::generation::Generation;
use crate::reference::UnknownReference;
use crate::seen::Seen;
use crate::steward::Alarm;
use crate::worlds::World;
use model::{DecidedBy, Timestamp};
use std::sync::Arc;
use std::time::Instant;

/// The plugins of a hook, in the order in which they are asked.
pub(crate) struct Chain<W: World>(pub(crate) Vec<Arc<Generation<W>>>);

impl<W: World> Clone for Chain<W> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

/// How a chain's evaluation ended.
pub(crate) enum Ended<W: World> {
    /// This one decided.
    Decided(W::Answer, Arc<Generation<W>>),
    /// This one failed, and its binding does not say that the next one is to be asked.
    Fault(Fault, Arc<Generation<W>>),
    /// Nobody did.
    Nobody {
        /// The last that was asked.
        last: Option<Arc<Generation<W>>>,
        /// The last fault after which the next one was asked.
        fault: Option<Fault>,
    },
}

impl<W: World> Chain<W> {
    /// What its policies name and the appliance does not know now.
    pub(crate) fn unknown(&self) -> Vec<UnknownReference> {
        let of = |one: &Arc<Generation<W>>| {
            let plugin = one.by.plugin.clone();
            one.unknown()
                .into_iter()
                .map(move |reference| UnknownReference { plugin: plugin.clone(), reference })
        };
        self.0.iter().flat_map(of).collect()
    }

    /// Asks until one decides; a fault ends it, unless the binding says that the next one is to be asked then.
    pub(crate) fn ask(
        &self,
        question: W::Question<'_>,
        now: Timestamp,
        seen: &mut Seen,
        alarm: &Alarm,
        met: &Met,
    ) -> Ended<W> {
        self.ask_unless(question, now, seen, (alarm, met), |_| false)
    }

    /// The same; a fault of one that is `strict` ends it, whatever its binding says.
    pub(crate) fn ask_unless(
        &self,
        question: W::Question<'_>,
        now: Timestamp,
        seen: &mut Seen,
        (alarm, met): (&Alarm, &Met),
        strict: impl Fn(&Arc<Generation<W>>) -> bool,
    ) -> Ended<W> {
        let mut passed = None;
        for generation in &self.0 {
            match generation.ask(question, now, seen) {
                Ok(answer) if W::decides(&answer) => return Ended::Decided(answer, generation.clone()),
                Ok(_) => {}
                Err(fault) => {
                    let mark = met.mark(W::message(question));
                    let asked = W::sample(question, &generation.around.directory.load());
                    alarm.examples.add(W::HOOK, &generation.by, now, &fault, asked, mark);
                    note(generation, &fault, alarm);
                    if generation.binding.on_fault != OnFault::Pass || strict(generation) {
                        return Ended::Fault(fault, generation.clone());
                    }
                    passed = Some(fault);
                }
            }
        }
        Ended::Nobody { last: self.0.last().cloned(), fault: passed }
    }

    /// Asks until one decides, for somebody who only wants to know: nothing is counted, no alarm is raised. `each` sees what
    /// each one said.
    pub(crate) fn look(
        &self,
        question: W::Question<'_>,
        now: Timestamp,
        mut each: impl FnMut(&Arc<DecidedBy>, &Result<W::Answer, Fault>),
    ) -> Ended<W> {
        let mut passed = None;
        for generation in &self.0 {
            let outcome = generation.ask(question, now, &mut Seen::Looking);
            each(&generation.by, &outcome);
            match outcome {
                Ok(answer) if W::decides(&answer) => return Ended::Decided(answer, generation.clone()),
                Ok(_) => {}
                Err(fault) if generation.binding.on_fault == OnFault::Pass => passed = Some(fault),
                Err(fault) => return Ended::Fault(fault, generation.clone()),
            }
        }
        Ended::Nobody { last: self.0.last().cloned(), fault: passed }
    }

    /// Makes ready for as many calls at a time as another chain had.
    pub(crate) fn warm_as(&self, other: &Self) {
        let most = other.0.iter().map(|one| one.most_at_a_time()).max().unwrap_or_default();
        self.0.iter().for_each(|one| one.warm(most));
    }

    /// Whether a generation is part of it.
    pub(crate) fn has(&self, generation: &Arc<Generation<W>>) -> bool {
        self.0.iter().any(|one| Arc::ptr_eq(one, generation))
    }
}

/// Says that a plugin failed, and raises the alarm if it fails too often.
pub(crate) fn note<W: World>(generation: &Generation<W>, fault: &Fault, alarm: &Alarm) {
    let binding = &generation.binding;
    if let Some(why) = generation.watch.fault(binding.tolerance, fault, Instant::now()) {
        tracing::error!(
            hook = W::HOOK.name(),
            plugin = binding.plugin,
            version = binding.version,
            why,
            "too many faults"
        );
        generation.condemn(why);
        alarm.raise(W::HOOK);
    } else if generation.may_say() {
        tracing::warn!(
            hook = W::HOOK.name(),
            plugin = binding.plugin,
            version = binding.version,
            kind = fault.kind.name(),
            what = fault.what,
            "plugin fault"
        );
    }
}
