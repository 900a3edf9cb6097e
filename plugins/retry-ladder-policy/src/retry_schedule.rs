use crate::FailureClass;
use policy_values::Time;
use serde::Deserialize;
use std::time::Duration;

/// The longest pause of a peer after one failure.
const MAX_PAUSE: Duration = Duration::from_secs(3_600);

/// The action after the last step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum FinalAction {
    /// Try the next leg; if there is none, the message fails.
    #[default]
    NextLeg,
    /// Fail the message, even if there are more legs.
    Fail,
}

/// Advice about the peer after a failure.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Advice {
    /// Send nothing to the peer for this time.
    pub pause: Option<Duration>,
    /// Maximum number of messages per second to the peer.
    pub rate: Option<f64>,
    /// Maximum number of unanswered messages of the peer.
    pub window: Option<u32>,
}

#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct ScheduleEntry {
    /// The delays after the first, second, ... failed attempt, counted over all legs; the last one repeats. Without delays,
    /// `then` follows at once.
    #[serde(default)]
    #[cfg_attr(test, schemars(length(max = 1_000)))]
    waits: Vec<Time>,
    /// For absent and memory-full only: the message is sent as soon as the subscriber is reachable again; `waits` are the
    /// maximum times.
    #[serde(default)]
    await_alert: bool,
    /// Maximum attempts per leg. Default: no limit.
    #[cfg_attr(test, schemars(range(min = 1)))]
    attempts_per_leg: Option<u16>,
    /// The action after the last attempt. Default: next-leg.
    #[serde(default)]
    then: FinalAction,
    /// Consequences for the peer as a whole.
    advice: Option<AdviceEntry>,
}

#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct AdviceEntry {
    /// Send nothing to the peer for this time; at most an hour.
    pause: Option<Time>,
    /// Maximum number of messages per second to the peer.
    #[cfg_attr(test, schemars(extend("exclusiveMinimum" = 0)))]
    rate: Option<f64>,
    /// Maximum number of unanswered messages of the peer.
    #[cfg_attr(test, schemars(range(min = 1)))]
    window: Option<u32>,
}

/// The retry schedule of one class of failure.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RetrySchedule {
    /// The waits after the first failed attempt, the second and so on; the last one repeats. Empty: `then` at once.
    pub waits: Vec<Duration>,
    /// The waits are maxima: the message is retried at an alert about the subscriber.
    pub await_alert: bool,
    /// Attempts per leg; a later leg may use the attempts that earlier legs did not use.
    pub attempts_per_leg: Option<u16>,
    /// The action after the last attempt.
    pub then: FinalAction,
    /// Advice about the peer.
    pub advice: Advice,
}

impl RetrySchedule {
    pub(crate) fn check(entry: &ScheduleEntry, class: FailureClass) -> Result<Self, String> {
        if entry.await_alert && !matches!(class, FailureClass::Absent | FailureClass::MemoryFull) {
            return Err("has `await-alert`: only [absent] and [memory-full] know of an alert; leave it out"
                .to_owned());
        }
        if entry.waits.is_empty() && entry.await_alert {
            return Err("has `await-alert` and no `waits`: they say how long an alert is awaited, such as \
                        `waits = [\"6h\"]`"
                .to_owned());
        }
        if entry.waits.is_empty() && entry.attempts_per_leg.is_some() {
            return Err("has `attempts-per-leg` and no `waits`: without them there is one attempt".to_owned());
        }
        if entry.attempts_per_leg == Some(0) {
            return Err("has `attempts-per-leg = 0`; leave it out for no limit".to_owned());
        }
        if entry.waits.len() > 1_000 {
            return Err("has more than 1000 waits; the last one repeats by itself".to_owned());
        }
        // Immediate retries forever would loop through the peer. Throttling is different, because the peer is paused.
        let at_once = entry.waits.last().is_some_and(|wait| wait.0.is_zero());
        if at_once && entry.attempts_per_leg.is_none() && class != FailureClass::Throttled {
            return Err("ends its `waits` with \"0s\" and has no `attempts-per-leg`: it would be tried without rest; \
                        let the last wait be longer, or set a limit"
                .to_owned());
        }
        let advice = match &entry.advice {
            None => Advice::default(),
            Some(advice) => {
                if advice.rate.is_some_and(|rate| !(rate.is_finite() && rate > 0.0)) {
                    return Err(
                        "advises a `rate` that is not above zero; to send nothing, use `pause`".to_owned()
                    );
                }
                if advice.window == Some(0) {
                    return Err("advises `window = 0`; to send nothing, use `pause`".to_owned());
                }
                if advice.pause.is_some_and(|pause| pause.0 > MAX_PAUSE) {
                    return Err(
                        "advises a `pause` above 1h: one failure would silence the peer for too long"
                            .to_owned(),
                    );
                }
                Advice { pause: advice.pause.map(|pause| pause.0), rate: advice.rate, window: advice.window }
            }
        };
        Ok(Self {
            waits: entry.waits.iter().map(|wait| wait.0).collect(),
            await_alert: entry.await_alert,
            attempts_per_leg: entry.attempts_per_leg,
            then: entry.then,
            advice,
        })
    }

    /// The wait after this number of failed attempts, from 1.
    pub(crate) fn wait(&self, attempts: u16) -> Option<Duration> {
        let step = usize::from(attempts.saturating_sub(1)).min(self.waits.len().checked_sub(1)?);
        self.waits.get(step).copied()
    }
}
