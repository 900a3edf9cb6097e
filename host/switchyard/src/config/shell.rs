//! `[shell]` and `[[shell.users]]`.

use super::UNNUMBERED;
use ::shell::{Deliver, Number, Numbers, ParseNumberRangeError, Principal, ShellOptions, UserOptions};
use configuration::Section;
use engine::{PeerSettings, Uncertainty};
use std::collections::BTreeSet;
use std::path::Path;

/// The name under which routes, queues and the archive know the door.
pub(crate) const NAME: &str = "shell";

/// The door of subscribers on the command line.
#[derive(Debug, Clone)]
pub(crate) struct Shell {
    pub(crate) options: ShellOptions,
    pub(crate) queue: PeerSettings,
}

pub(super) fn shell(section: &Section<'_>, base: &Path) -> Shell {
    let socket = section.required("socket", "\"/run/switchyard/sms.sock\"");
    let defaults = ShellOptions::new(base.join(socket), UNNUMBERED);
    let mode = match section.text("mode") {
        None => defaults.mode,
        Some(text) => match u32::from_str_radix(&text, 8) {
            Ok(mode @ 0..=0o777) => mode,
            _ => {
                section.unfit("mode", format!("is {text:?}"), "octal, such as \"0660\"");
                defaults.mode
            }
        },
    };
    let rate = section.rate("rate");
    let burst = rate.map_or(1, |rate| (rate / 10.0).ceil().max(1.0) as u64);
    let users: Vec<UserOptions> = section.sections("users").iter().filter_map(user).collect();
    if users.is_empty() && section.sections("users").is_empty() {
        section.wrong("users", "is missing; write [[shell.users]], once for each who may come in");
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
        patience: section.duration("patience", defaults.patience),
        rate,
        burst: section.number("burst", burst, 1..=10_000_000) as u32,
        validity: section.duration("validity", defaults.validity),
        parts: section.number("parts", defaults.parts as u64, 1..=255) as usize,
        users,
        ..defaults
    };
    let mut queue = PeerSettings::new(UNNUMBERED);
    queue.addressee = true;
    queue.receipts = false;
    queue.uncertainty = Uncertainty::SendAgain;
    queue.queue_limit = section.number("queue-limit", 1_000_000, 1..=super::MOST);
    section.finish();
    Shell { options, queue }
}

fn group(section: &Section<'_>, key: &'static str, name: &str) -> Option<u32> {
    let group = uzers::get_group_by_name(name);
    if group.is_none() {
        section.wrong(key, format!("{name:?} is no group of this system"));
    }
    group.map(|group| group.gid())
}

fn id(section: &Section<'_>, key: &'static str) -> Option<u32> {
    section.has(key).then(|| section.number(key, 0, 0..=u64::from(u32::MAX)) as u32)
}

fn user(section: &Section<'_>) -> Option<UserOptions> {
    let by_name = section.text("user").and_then(|name| {
        let user = uzers::get_user_by_name(&name);
        if user.is_none() {
            section.wrong("user", format!("{name:?} is no user of this system"));
        }
        user.map(|user| Principal::User(user.uid()))
    });
    let by_group =
        section.text("group").and_then(|name| group(section, "group", &name)).map(Principal::Group);
    let by_uid = id(section, "uid").map(Principal::User);
    let by_gid = id(section, "gid").map(Principal::Group);
    let given = ["user", "group", "uid", "gid"].into_iter().filter(|key| section.has(key)).count();
    if given != 1 {
        section.wrong("user", "exactly one of user, uid, group and gid says for whom an entry is");
    }
    let operator = section.flag("operator", false);
    let numbers = numbers(section);
    let deliver = deliver(section, &numbers);
    if !operator && matches!(&numbers, Numbers::These(these) if these.is_empty()) && !section.has("numbers") {
        section.wrong("numbers", "is missing; write for example numbers = [\"+16195550123\"]");
    }
    section.finish();
    let who = by_name.or(by_uid).or(by_group).or(by_gid)?;
    Some(UserOptions { who, numbers, operator, deliver })
}

/// Yes or no where numbers are listed, and numbers or their beginnings for who may act as any.
fn deliver(section: &Section<'_>, numbers: &Numbers) -> Deliver {
    if section.is_list("deliver") {
        let mut ranges = Vec::new();
        for text in section.texts("deliver").unwrap_or_default() {
            match text.parse() {
                Ok(range) => ranges.push(range),
                Err(error) => section.wrong("deliver", ParseNumberRangeError::to_string(&error)),
            }
        }
        if *numbers != Numbers::Any {
            section.wrong(
                "deliver",
                "names numbers only beside numbers = \"any\"; for listed ones write deliver = true",
            );
        }
        return Deliver::To(ranges);
    }
    if !section.flag("deliver", false) {
        return Deliver::Nothing;
    }
    match numbers {
        Numbers::Any => section.wrong(
            "deliver",
            "beside numbers = \"any\" names the numbers, or their beginnings: deliver = [\"+16195550123\", \"+1619556*\"]",
        ),
        Numbers::These(these) if these.is_empty() => {
            section.wrong("deliver", "goes with numbers = [...]: what is for these is delivered to the inbox");
        }
        Numbers::These(_) => {}
    }
    Deliver::Own
}

/// A list of numbers, or the word `any`.
fn numbers(section: &Section<'_>) -> Numbers {
    if !section.has("numbers") {
        return Numbers::These(BTreeSet::new());
    }
    if section.is_text("numbers") {
        match section.text("numbers").as_deref() {
            Some("any") => return Numbers::Any,
            other => {
                let what = format!("is {:?}", other.unwrap_or_default());
                section.unfit("numbers", what, "a list of numbers, or \"any\"");
                return Numbers::These(BTreeSet::new());
            }
        }
    }
    let mut numbers = BTreeSet::new();
    for text in section.texts("numbers").unwrap_or_default() {
        match text.parse::<Number>() {
            Ok(number) => {
                numbers.insert(number);
            }
            Err(error) => section.wrong("numbers", error.to_string()),
        }
    }
    Numbers::These(numbers)
}
