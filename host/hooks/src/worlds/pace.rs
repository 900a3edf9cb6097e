//! Pace buckets and send windows of decisions, in host types.

use crate::bindings::guest::switchyard::hooks::types as wit;
use crate::fault::Fault;
use calendar::{WeeklyWindow, WeeklyWindowError, Zone};
use model::{
    DefinedPeriod, Directory, MessageChanges, PaceBucketDefinition, PaceBucketUse, PaceUnit, SendHours,
    SendWindowDefinition, SendWindowUse,
};
use std::time::Duration;

/// Adds a pace bucket to the changes.
pub(super) fn add_pace_bucket(
    to: &mut MessageChanges,
    bucket: wit::PaceBucket,
    directory: &Directory,
) -> Result<(), Fault> {
    let name = checked_name("pace bucket", bucket.name)?;
    let defined = match bucket.definition {
        Some(definition) => Some(bucket_definition(&name, definition)?),
        None if directory.has_pace_bucket(&name) => None,
        None => return Err(unknown("pace bucket", "[[pace-bucket]]", &name)),
    };
    to.use_pace_bucket(PaceBucketUse { name, defined });
    at_most(to.pace_buckets.len(), MessageChanges::MAX_PACE_BUCKETS, "pace buckets")
}

/// Adds a send window to the changes.
pub(super) fn add_send_window(
    to: &mut MessageChanges,
    window: wit::SendWindow,
    directory: &Directory,
) -> Result<(), Fault> {
    let name = checked_name("send window", window.name)?;
    let defined = match window.definition {
        Some(definition) => Some(window_definition(&name, definition)?),
        None if directory.has_send_window(&name) => None,
        None => return Err(unknown("send window", "[[send-window]]", &name)),
    };
    to.use_send_window(SendWindowUse { name, defined });
    at_most(to.send_windows.len(), MessageChanges::MAX_SEND_WINDOWS, "send windows")
}

fn unknown(kind: &str, section: &str, name: &str) -> Fault {
    Fault::verdict(format!(
        "{kind} {name}, which the decision does not define and which is no {section} of the configuration"
    ))
}

fn at_most(count: usize, most: usize, kind: &str) -> Result<(), Fault> {
    if count > most {
        return Err(Fault::verdict(format!("more than {most} {kind} of a message")));
    }
    Ok(())
}

fn checked_name(kind: &str, name: String) -> Result<Box<str>, Fault> {
    if MessageChanges::is_attribute_name(&name) {
        return Ok(name.into());
    }
    let name: String = name.chars().take(64).collect();
    Err(Fault::verdict(format!(
        "{kind} {name:?}: a name has 1 to 64 of a-z, 0-9, dot, hyphen and underscore"
    )))
}

fn find_zone(kind: &str, name: &str, zone: &str) -> Result<Zone, Fault> {
    Zone::find(zone).ok_or_else(|| {
        let zone: String = zone.chars().take(64).collect();
        Fault::verdict(format!("{kind} {name}: {}", Zone::unknown(&zone)))
    })
}

fn bucket_definition(
    name: &str,
    definition: wit::PaceBucketDefinition,
) -> Result<PaceBucketDefinition, Fault> {
    let wit::PaceBucketDefinition { amount, per, counts } = definition;
    let most = PaceBucketDefinition::MAX_AMOUNT;
    if !(1..=most).contains(&amount) {
        return Err(Fault::verdict(format!("pace bucket {name} of {amount}; the amount is 1 to {most}")));
    }
    let per = match per {
        wit::PacePeriod::Time(ms) => {
            let time = Duration::from_millis(ms);
            if time.is_zero() || time > PaceBucketDefinition::MAX_TIME {
                return Err(Fault::verdict(format!(
                    "pace bucket {name} per {ms} ms; 1 ms to 31 days are valid"
                )));
            }
            DefinedPeriod::Time(time)
        }
        wit::PacePeriod::Day(days) => {
            DefinedPeriod::Day(find_zone("pace bucket", name, &days)?.name().into())
        }
    };
    let counts = match counts {
        wit::PaceUnit::Messages => PaceUnit::Messages,
        wit::PaceUnit::Segments => PaceUnit::Segments,
    };
    Ok(PaceBucketDefinition { amount, per, counts })
}

fn window_definition(
    name: &str,
    definition: wit::SendWindowDefinition,
) -> Result<SendWindowDefinition, Fault> {
    let zone = find_zone("send window", name, &definition.zone)?;
    let (count, most) = (definition.hours.len(), SendWindowDefinition::MAX_HOURS);
    if !(1..=most).contains(&count) {
        return Err(Fault::verdict(format!("send window {name} with {count} hours; 1 to {most} are valid")));
    }
    let mut hours = Vec::with_capacity(count);
    for wit::SendHours { days: named, opens, closes } in definition.hours {
        let mut days = [named.is_empty(); 7];
        for day in named {
            if let Some(open) = days.get_mut(day as usize) {
                *open = true;
            }
        }
        if let Err(error) = WeeklyWindow::new(zone.clone(), days, opens, closes) {
            let wrong = match error {
                WeeklyWindowError::NoDay => "no day is named",
                WeeklyWindowError::NoMinute => "`opens` is below 1440, `closes` at most 1440",
                WeeklyWindowError::Empty => "`closes` is also `opens`",
            };
            return Err(Fault::verdict(format!("send window {name}, minutes {opens} to {closes}: {wrong}")));
        }
        hours.push(SendHours { days, opens, closes });
    }
    Ok(SendWindowDefinition { zone: zone.name().into(), hours })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(name: &str, amount: u64, zone: &str) -> wit::PaceBucket {
        let per = wit::PacePeriod::Day(zone.to_owned());
        let counts = wit::PaceUnit::Messages;
        let definition = Some(wit::PaceBucketDefinition { amount, per, counts });
        wit::PaceBucket { name: name.to_owned(), definition }
    }

    fn added(bucket: wit::PaceBucket, directory: &Directory) -> Result<MessageChanges, String> {
        let mut changes = MessageChanges::default();
        add_pace_bucket(&mut changes, bucket, directory).map_err(|fault| fault.what)?;
        Ok(changes)
    }

    #[test]
    fn a_bucket_is_defined_or_configured() {
        let mut directory = Directory::new();
        directory.set_pace_names(["brand".into()], []);
        let named = |name: &str| wit::PaceBucket { name: name.to_owned(), definition: None };
        assert_eq!(added(named("brand"), &directory).unwrap().pace_buckets[0].defined, None);
        assert!(
            added(named("other"), &directory)
                .unwrap_err()
                .contains("no [[pace-bucket]] of the configuration")
        );
        assert!(added(named("other"), &Directory::new()).is_ok(), "without a configuration");
        let defined = added(day("c1", 5, "europe/berlin"), &directory).unwrap();
        let definition = defined.pace_buckets[0].defined.clone().unwrap();
        assert_eq!(definition.per, DefinedPeriod::Day("Europe/Berlin".into()));
        for (wrong, what) in [
            (day("C1", 5, "UTC"), "a name has"),
            (day("c1", 0, "UTC"), "the amount is"),
            (day("c1", u64::MAX, "UTC"), "the amount is"),
            (day("c1", 5, "Europe/Bonn"), "is unknown"),
        ] {
            let said = added(wrong, &directory).unwrap_err();
            assert!(said.contains(what), "{said}");
        }
        let mut changes = MessageChanges::default();
        for index in 0..8 {
            add_pace_bucket(&mut changes, day(&format!("c{index}"), 5, "UTC"), &directory).unwrap();
        }
        assert!(add_pace_bucket(&mut changes, day("c8", 5, "UTC"), &directory).is_err());
    }

    #[test]
    fn windows_are_checked() {
        let window = |opens, closes, zone: &str| wit::SendWindow {
            name: "day".to_owned(),
            definition: Some(wit::SendWindowDefinition {
                zone: zone.to_owned(),
                hours: vec![wit::SendHours { days: vec![wit::Weekday::Sun], opens, closes }],
            }),
        };
        let added = |window: wit::SendWindow| {
            let mut changes = MessageChanges::default();
            let result = add_send_window(&mut changes, window, &Directory::new());
            result.map(|()| changes.send_windows).map_err(|fault| fault.what)
        };
        let found = added(window(480, 1260, "UTC")).unwrap();
        let hours = &found[0].defined.as_ref().unwrap().hours;
        assert_eq!(
            hours,
            &[SendHours { days: [false, false, false, false, false, false, true], opens: 480, closes: 1260 }]
        );
        for wrong in [window(480, 480, "UTC"), window(1440, 60, "UTC"), window(480, 1260, "Nowhere")] {
            assert!(added(wrong).is_err());
        }
        let none = wit::SendWindowDefinition { zone: "UTC".to_owned(), hours: Vec::new() };
        assert!(added(wit::SendWindow { name: "day".to_owned(), definition: Some(none) }).is_err());
    }
}
