use crate::Class;
use policy_words::Time;
use serde::Deserialize;
use std::time::Duration;

/// The longest pause that one failure may bring upon a peer.
const PAUSE: Duration = Duration::from_secs(3_600);

/// What comes after the last step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Then {
    /// The next leg; where there is none, the message fails.
    #[default]
    NextLeg,
    /// The message fails, though there may be more legs.
    Fail,
}

/// What a failure says about the peer as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Advice {
    /// It is sent nothing for so long.
    pub pause: Option<Duration>,
    /// Messages a second that it is sent at most.
    pub rate: Option<f64>,
    /// Unanswered messages that it has at most.
    pub window: Option<u32>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Written {
    #[serde(default)]
    waits: Vec<Time>,
    #[serde(default)]
    await_alert: bool,
    attempts_per_leg: Option<u16>,
    #[serde(default)]
    then: Then,
    advice: Option<WrittenAdvice>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct WrittenAdvice {
    pause: Option<Time>,
    rate: Option<f64>,
    window: Option<u32>,
}

/// The steps of one class of failure.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Ladder {
    /// The wait after the first failed attempt, the second and so on; the last one repeats. Empty: `then` at once.
    pub waits: Vec<Duration>,
    /// The waits are the longest ones: the message goes as soon as the subscriber is heard of.
    pub await_alert: bool,
    /// Attempts that each leg gets; what an earlier leg did not use, a later one may.
    pub attempts_per_leg: Option<u16>,
    /// What comes after them.
    pub then: Then,
    /// What the failure says about the peer.
    pub advice: Advice,
}

impl Ladder {
    pub(crate) fn check(written: &Written, class: Class) -> Result<Self, String> {
        if written.await_alert && !matches!(class, Class::Absent | Class::MemoryFull) {
            return Err("has `await-alert`: only [absent] and [memory-full] know of an alert; leave it out"
                .to_owned());
        }
        if written.waits.is_empty() && written.await_alert {
            return Err("has `await-alert` and no `waits`: they say how long an alert is awaited, such as \
                        `waits = [\"6h\"]`"
                .to_owned());
        }
        if written.waits.is_empty() && written.attempts_per_leg.is_some() {
            return Err("has `attempts-per-leg` and no `waits`: without them there is one attempt".to_owned());
        }
        if written.attempts_per_leg == Some(0) {
            return Err("has `attempts-per-leg = 0`; leave it out for no limit".to_owned());
        }
        if written.waits.len() > 1_000 {
            return Err("has more than 1000 waits; the last one repeats by itself".to_owned());
        }
        // A retry at once, for ever, is a loop through the peer; throttling is different, since the peer is paused.
        let at_once = written.waits.last().is_some_and(|wait| wait.0.is_zero());
        if at_once && written.attempts_per_leg.is_none() && class != Class::Throttled {
            return Err("ends its `waits` with \"0s\" and has no `attempts-per-leg`: it would be tried without rest; \
                        let the last wait be longer, or set a limit"
                .to_owned());
        }
        let advice = match &written.advice {
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
                if advice.pause.is_some_and(|pause| pause.0 > PAUSE) {
                    return Err(
                        "advises a `pause` above 1h: one failure would silence the peer for too long"
                            .to_owned(),
                    );
                }
                Advice { pause: advice.pause.map(|pause| pause.0), rate: advice.rate, window: advice.window }
            }
        };
        Ok(Self {
            waits: written.waits.iter().map(|wait| wait.0).collect(),
            await_alert: written.await_alert,
            attempts_per_leg: written.attempts_per_leg,
            then: written.then,
            advice,
        })
    }

    /// The wait after so many failed attempts, from 1.
    pub(crate) fn wait(&self, attempts: u16) -> Option<Duration> {
        let step = usize::from(attempts.saturating_sub(1)).min(self.waits.len().checked_sub(1)?);
        self.waits.get(step).copied()
    }
}
