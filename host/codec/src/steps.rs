//! Steps of traces.

use crate::field::Field;
use crate::{Cursor, RecordError};
use model::{Step, StepKind};

/// The octet of each kind of step and its fields, in the order in which they are written.
macro_rules! step_kinds {
    ($($octet:literal $variant:ident $({ $($field:ident),* })?,)*) => {
        impl Field for StepKind {
            fn put(&self, out: &mut Vec<u8>) {
                match self {
                    $(Self::$variant $({ $($field),* })? => {
                        out.push($octet);
                        $($($field.put(out);)*)?
                    })*
                }
            }

            fn read(cursor: &mut Cursor<'_>) -> Result<Self, RecordError> {
                Ok(match cursor.u8()? {
                    $($octet => Self::$variant $({ $($field: Field::read(cursor)?),* })?,)*
                    _ => return Err(cursor.damaged("unknown step")),
                })
            }
        }
    };
}

step_kinds! {
    0 Accepted,
    1 Submitted { peer, attempt },
    2 Responded { id },
    3 Refused { code },
    4 NotSent,
    5 Unanswered,
    6 Deferred { until },
    7 NextLeg { peer },
    8 SentAgain,
    9 StatusQueried,
    10 DlrReceived { state, error },
    11 Replaced,
    12 Held { until },
    13 Rerouted { peer },
    14 Recovered,
    15 Decided { hook, by, note },
    16 Resolving,
    17 Resolved { peer, cached },
    18 UnknownSubscriber { cached },
    19 AwaitingAlert { until },
    20 Charged { amount },
    21 Refunded { amount },
    22 SubscriberRequeried { imsi },
    23 SenderLeased { pool, number },
    24 SenderUnavailable { pool },
    // From format 5 on.
    25 AdminAction { action, queue_action, peer, by },
    // From format 6 on.
    26 MovedBehindOthers { until },
    // From format 8 on.
    27 Quarantined,
    28 AwaitingDlr { until },
    29 DlrOverdue,
    30 DlrSuspected,
    31 DlrRemapped { state, error },
    32 LateDlrReceived { peer, state, error },
    33 CallRecorded { hook, record },
    34 ContentErased { by },
    // Only with an encrypted content.
    35 SealedCallRecorded { hook, key, record },
}

/// 1 count, then per step: 8 at, 1 kind, the fields of the kind.
pub(crate) fn put_steps(out: &mut Vec<u8>, steps: &[Step]) {
    let steps = steps.get(..255).unwrap_or(steps);
    out.push(steps.len() as u8);
    for step in steps {
        step.at.put(out);
        step.kind.put(out);
    }
}

pub(crate) fn steps(cursor: &mut Cursor<'_>) -> Result<Vec<Step>, RecordError> {
    let count = cursor.u8()?;
    let mut steps = Vec::with_capacity(usize::from(count.min(16)));
    for _ in 0..count {
        steps.push(Step { at: Field::read(cursor)?, kind: Field::read(cursor)? });
    }
    Ok(steps)
}
