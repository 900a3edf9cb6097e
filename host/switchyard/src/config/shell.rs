//! `[shell]` and `[[shell.users]]`.

use super::UNASSIGNED_PEER;
use ::shell::{
    AllowedNumbers, InboxDelivery, ParseNumberRangeError, ShellOptions, ShellPrincipal, ShellUserOptions,
    SubscriberNumber,
};
use configuration::Section;
use engine::{PeerSettings, UncertainPolicy};
use std::collections::BTreeSet;
use std::path::Path;

/// The name of the local socket's peer in routes, queues and the archive.
pub(crate) const NAME: &str = "shell";

/// The local socket of the `switchyard sms` command.
#[derive(Debug, Clone)]
pub(crate) struct ShellSettings {
    pub(crate) options: ShellOptions,
    pub(crate) queue: PeerSettings,
}

pub(super) fn shell(section: &Section<'_>, base: &Path) -> ShellSettings {
    let socket = section.required("socket", "\"/run/switchyard/sms.sock\"");
    let defaults = ShellOptions::new(base.join(socket), UNASSIGNED_PEER);
    let mode = match section.text("mode") {
        None => defaults.mode,
        Some(text) => match u32::from_str_radix(&text, 8) {
            Ok(mode @ 0..=0o777) => mode,
            _ => {
                section.invalid("mode", format!("is {text:?}"), "octal, such as \"0660\"");
                defaults.mode
            }
        },
    };
    let rate = section.rate("rate");
    let burst = rate.map_or(1, |rate| (rate / 10.0).ceil().max(1.0) as u64);
    let users: Vec<ShellUserOptions> = section.sections("users").iter().filter_map(user).collect();
    if users.is_empty() && section.sections("users").is_empty() {
        section.error("users", "is missing; add a [[shell.users]] for each user or group");
    }
    let options = ShellOptions {
        mode,
        group: section.text("group").and_then(|name| group(section, "group", &name)),
        connections: section.number("connections", defaults.connections as u64, 1..=100_000) as usize,
        connections_per_user: section.number(
            "connections-per-user",
            defaults.connections_per_user as u64,
            1..=100_000,
        ) as usize,
        idle: section.duration("idle", defaults.idle),
        submit_timeout: section.duration("submit-timeout", defaults.submit_timeout),
        rate,
        burst: section.number("burst", burst, 1..=10_000_000) as u32,
        validity: section.duration("validity", defaults.validity),
        max_segments: section.number("max-segments", defaults.max_segments as u64, 1..=255) as usize,
        users,
        ..defaults
    };
    let mut queue = PeerSettings::new(UNASSIGNED_PEER);
    queue.addressee = true;
    queue.sends_dlrs = false;
    queue.uncertainty = UncertainPolicy::SendAgain;
    queue.queue_limit = section.number("queue-limit", 1_000_000, 1..=super::MAX_INTEGER);
    section.finish();
    ShellSettings { options, queue }
}

fn group(section: &Section<'_>, key: &'static str, name: &str) -> Option<u32> {
    let group = uzers::get_group_by_name(name);
    if group.is_none() {
        section.error(key, format!("{name:?} is not a group of this system"));
    }
    group.map(|group| group.gid())
}

fn id(section: &Section<'_>, key: &'static str) -> Option<u32> {
    section.has(key).then(|| section.number(key, 0, 0..=u64::from(u32::MAX)) as u32)
}

fn user(section: &Section<'_>) -> Option<ShellUserOptions> {
    let by_name = section.text("user").and_then(|name| {
        let user = uzers::get_user_by_name(&name);
        if user.is_none() {
            section.error("user", format!("{name:?} is not a user of this system"));
        }
        user.map(|user| ShellPrincipal::User(user.uid()))
    });
    let by_group =
        section.text("group").and_then(|name| group(section, "group", &name)).map(ShellPrincipal::Group);
    let by_uid = id(section, "uid").map(ShellPrincipal::User);
    let by_gid = id(section, "gid").map(ShellPrincipal::Group);
    let count = ["user", "group", "uid", "gid"].into_iter().filter(|key| section.has(key)).count();
    if count != 1 {
        section.error("user", "exactly one of user, uid, group and gid must be set");
    }
    let operator = section.flag("operator", false);
    let numbers = numbers(section);
    let deliver = deliver(section, &numbers);
    if !operator
        && matches!(&numbers, AllowedNumbers::These(these) if these.is_empty())
        && !section.has("numbers")
    {
        section.error("numbers", "is missing; write for example numbers = [\"+16195550123\"]");
    }
    section.finish();
    let principal = by_name.or(by_uid).or(by_group).or(by_gid)?;
    Some(ShellUserOptions { principal, numbers, operator, deliver })
}

/// Reads a flag if numbers are listed, or a list of numbers and prefixes beside `numbers = "any"`.
fn deliver(section: &Section<'_>, numbers: &AllowedNumbers) -> InboxDelivery {
    if section.is_list("deliver") {
        let mut ranges = Vec::new();
        for text in section.texts("deliver").unwrap_or_default() {
            match text.parse() {
                Ok(range) => ranges.push(range),
                Err(error) => section.error("deliver", ParseNumberRangeError::to_string(&error)),
            }
        }
        if *numbers != AllowedNumbers::Any {
            section.error(
                "deliver",
                "lists numbers only with numbers = \"any\"; otherwise write deliver = true",
            );
        }
        return InboxDelivery::To(ranges);
    }
    if !section.flag("deliver", false) {
        return InboxDelivery::Nothing;
    }
    match numbers {
        AllowedNumbers::Any => section.error(
            "deliver",
            "must list numbers or prefixes if numbers = \"any\": deliver = [\"+16195550123\", \"+1619556*\"]",
        ),
        AllowedNumbers::These(these) if these.is_empty() => {
            section.error("deliver", "needs numbers = [...]: messages to these go to the inbox");
        }
        AllowedNumbers::These(_) => {}
    }
    InboxDelivery::Own
}

/// Reads a list of numbers, or the keyword `any`.
fn numbers(section: &Section<'_>) -> AllowedNumbers {
    if !section.has("numbers") {
        return AllowedNumbers::These(BTreeSet::new());
    }
    if section.is_text("numbers") {
        match section.text("numbers").as_deref() {
            Some("any") => return AllowedNumbers::Any,
            other => {
                let what = format!("is {:?}", other.unwrap_or_default());
                section.invalid("numbers", what, "a list of numbers, or \"any\"");
                return AllowedNumbers::These(BTreeSet::new());
            }
        }
    }
    let mut numbers = BTreeSet::new();
    for text in section.texts("numbers").unwrap_or_default() {
        match text.parse::<SubscriberNumber>() {
            Ok(number) => {
                numbers.insert(number);
            }
            Err(error) => section.error("numbers", error.to_string()),
        }
    }
    AllowedNumbers::These(numbers)
}
