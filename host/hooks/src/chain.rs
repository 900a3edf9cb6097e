//! Generations in a row, asked one after the other.

use crate::Fault;
use crate::binding::OnFault;
use crate::generation::{Generation, Judged, Memory};
use crate::steward::Alarm;
use crate::worlds::World;
use model::Timestamp;
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
    Decided(Judged<W::Answer>, Arc<Generation<W>>),
    /// This one failed, and its binding does not say that the next one is to be asked.
    Fault(Fault, Arc<Generation<W>>),
    /// Nobody did.
    Nobody,
}

impl<W: World> Chain<W> {
    /// Asks until one decides. What every generation asked was given the same `memory`; what was seen is that of the one
    /// that decided, with what those before it saw in front.
    pub(crate) fn ask(
        &self,
        question: W::Question<'_>,
        now: Timestamp,
        memory: Memory<'_>,
        alarm: &Alarm,
    ) -> Ended<W> {
        let mut seen_before: Option<Vec<u8>> = None;
        let mut missing_before = None;
        for generation in &self.0 {
            match generation.ask(question, now, memory) {
                Ok(mut judged) => {
                    if W::decides(&judged.answer) {
                        if let Some(mut before) = seen_before {
                            before.extend_from_slice(judged.seen.as_deref().unwrap_or_default());
                            judged.seen = Some(before.into_boxed_slice());
                        }
                        judged.missing = missing_before.or(judged.missing);
                        return Ended::Decided(judged, generation.clone());
                    }
                    if let Some(seen) = judged.seen {
                        seen_before.get_or_insert_default().extend_from_slice(&seen);
                    }
                    missing_before = missing_before.or(judged.missing);
                }
                Err(fault) => {
                    note(generation, &fault, alarm);
                    if generation.binding.on_fault != OnFault::Pass {
                        return Ended::Fault(fault, generation.clone());
                    }
                }
            }
        }
        Ended::Nobody
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
    } else {
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
