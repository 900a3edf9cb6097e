//! `[[gsm]]`: core networks, and `[numbering]`, by which their subscribers dial.

use super::{UNNUMBERED, address, existing, small_file};
use configuration::Section;
use doors::ConnectionLimits;
use engine::{PeerSettings, Uncertainty};
use gsm::{GsmOptions, Language, Role};
use model::Address;
use numbering::{Plan, Plans};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// A core network: its links' options and its queue's.
#[derive(Debug, Clone)]
pub(crate) struct Network {
    pub(crate) links: GsmOptions,
    pub(crate) queue: PeerSettings,
    pub(crate) default_account: Option<String>,
}

/// The number plans, where there are any.
pub(super) fn numbering(root: &Section<'_>, base: &Path) -> Option<Plans> {
    if !root.has("numbering") {
        return None;
    }
    let section = root.section("numbering");
    let path = section.required("document", "\"policies/numbering.toml\"");
    let path = existing(&section, "document", base, &path);
    let document = match small_file(&path) {
        Ok(text) => match Plans::parse(&text) {
            Ok(plans) => Some(plans),
            Err(error) => {
                section.wrong("document", plan_error(&section, &path, &error));
                None
            }
        },
        // That it is missing has been told.
        Err(_) => None,
    };
    section.finish();
    document
}

/// What is wrong with a document of number plans. Whoever sends a configuration over the API gets the lines only: the file may be
/// any that the daemon can read.
fn plan_error(section: &Section<'_>, path: &Path, error: &numbering::DocumentError) -> String {
    if section.is_file() {
        return format!("{}: {error}", path.display());
    }
    let lines: BTreeSet<usize> = error.0.iter().map(|problem| problem.line).collect();
    let lines: Vec<String> = lines.iter().take(20).map(usize::to_string).collect();
    format!(
        "{} is no document of number plans; look at line {} (`switchyard check` with this configuration as a file says what is wrong)",
        path.display(),
        lines.join(", ")
    )
}

fn limits(section: &Section<'_>, defaults: ConnectionLimits) -> ConnectionLimits {
    let connections = section.number("connections", defaults.connections as u64, 1..=10_000) as usize;
    let per_address = defaults.per_address as u64;
    ConnectionLimits {
        connections,
        per_address: section.number("connections-per-address", per_address, 1..=10_000) as usize,
        unidentified: super::unbound_connections(section, "unidentified-connections", connections),
        reserve: 0,
    }
}

pub(super) fn network(section: &Section<'_>, plans: Option<&Plans>) -> Network {
    let name = section.required("name", "\"home\"");
    let hlr = section.required("hlr", "\"hlr.example.net:4222\"");
    address(section, "hlr", &hlr);
    let role = match section.text("role").as_deref() {
        None | Some("proxy") => {
            let listen = section.text("listen").unwrap_or_else(|| "0.0.0.0:4222".to_owned());
            let listen = listen.parse().unwrap_or_else(|_| {
                let allowed = "address:port such as \"0.0.0.0:4222\"";
                section.unfit("listen", format!("is {listen:?}"), allowed);
                ([127, 0, 0, 1], 4222).into()
            });
            Role::Proxy { listen, hlr }
        }
        Some("client") => Role::Client { hlr },
        Some(other) => {
            section.unfit("role", format!("is {other:?}"), "one of: proxy, client");
            Role::Client { hlr }
        }
    };
    let ctrl = section.text("ctrl");
    if let Some(ctrl) = &ctrl {
        address(section, "ctrl", ctrl);
    }
    let defaults = GsmOptions::new(&name, UNNUMBERED);
    let ipa_name = section.text("ipa-name").unwrap_or_else(|| defaults.ipa_name.clone());
    // In the role of a proxy a mark of nine octets follows it.
    let longest = if matches!(role, Role::Proxy { .. }) { 22 } else { 31 };
    if ipa_name.is_empty() || ipa_name.len() > longest || !ipa_name.bytes().all(|c| c.is_ascii_graphic()) {
        section.wrong("ipa-name", format!("must be 1 to {longest} ASCII characters without spaces"));
    }
    let centre = section.required("service-centre", "\"19990014444\"");
    if !section.has("service-centre") {
    } else if centre.is_empty() || centre.len() > 20 || !centre.bytes().all(|c| c.is_ascii_digit()) {
        section.wrong(
            "service-centre",
            "must be 1 to 20 digits: the number of our service centre, as SIMs have it",
        );
    }
    let plan = section.text("number-plan");
    let plan = plan_of(section, plans, plan.as_deref());
    let zone = section.text("utc-offset").map_or(Some(0), |text| quarters(&text));
    if zone.is_none() {
        section.wrong("utc-offset", "must be like \"+02:00\" or \"-08:00\", in quarters of an hour");
    }
    let languages = languages(section);
    let can_check = ctrl.is_some() && matches!(role, Role::Proxy { .. });
    let check_sender = section.flag("check-sender", can_check);
    if check_sender && !can_check {
        section
            .wrong("check-sender", "needs role = \"proxy\" and `ctrl`: the HLR is asked where a sender is");
    }
    let limits = limits(section, defaults.limits);
    let links = GsmOptions {
        role,
        ctrl,
        check_sender,
        ctrl_timeout: section.duration("ctrl-timeout", defaults.ctrl_timeout),
        ipa_name,
        service_centre: Address::international(&centre),
        only_our_service_centre: section.flag("only-our-service-centre", false),
        window: section.number("window", u64::from(defaults.window), 1..=100_000) as u32,
        guard: section.duration("guard", defaults.guard),
        mo_validity: section.duration("mo-validity", defaults.mo_validity),
        repetition: section.duration("repetition", defaults.repetition),
        zone: zone.unwrap_or(0),
        languages,
        plan,
        limits,
        connect_timeout: section.duration("connect-timeout", defaults.connect_timeout),
        hlr_outage: section.duration("hlr-outage", defaults.hlr_outage),
        keep_alive: section.duration("keep-alive", defaults.keep_alive),
        ..defaults
    };
    // A handset that was given a message twice sees that it is the same: the TPDU is.
    let remedies = [("send-again", Uncertainty::SendAgain), ("await-receipt", Uncertainty::AwaitReceipt)];
    let mut queue = super::queue(section, Uncertainty::SendAgain, &remedies);
    queue.serial = true;
    queue.receipts = false;
    queue.addressee = true;
    let default_account = section.text("default-account");
    section.finish();
    Network { links, queue, default_account }
}

fn languages(section: &Section<'_>) -> Vec<Language> {
    let names = section.texts("languages").unwrap_or_default();
    let known = |name: &String| {
        let language = Language::from_name(name);
        if language.is_none() {
            let all = Language::ALL.map(Language::name).join(", ");
            section.unfit("languages", format!("has {name:?}"), format!("any of: {all}"));
        }
        language
    };
    names.iter().filter_map(known).collect()
}

fn plan_of(section: &Section<'_>, plans: Option<&Plans>, name: Option<&str>) -> Option<Arc<Plan>> {
    let Some(plans) = plans else {
        if name.is_some() {
            section.wrong("number-plan", "needs [numbering] document = \"policies/numbering.toml\"");
        }
        return None;
    };
    let name = name.unwrap_or_else(|| plans.default_name());
    let found = plans.get(name);
    if found.is_none() {
        let known: Vec<&str> = plans.iter().map(|(name, _)| name).collect();
        let what = format!("is {name:?}, and the document of [numbering] has: {}", known.join(", "));
        section.wrong("number-plan", what);
    }
    found.map(|plan| Arc::new(plan.clone()))
}

/// `+hh:mm` in quarters of an hour.
fn quarters(text: &str) -> Option<i8> {
    let (sign, rest) = match text.split_at_checked(1)? {
        ("+", rest) => (1, rest),
        ("-", rest) => (-1, rest),
        _ => return None,
    };
    let (hours, minutes) = rest.split_once(':')?;
    let (hours, minutes): (i8, i8) = (hours.parse().ok()?, minutes.parse().ok()?);
    let fits =
        rest.len() == 5 && (0..=14).contains(&hours) && (0..60).contains(&minutes) && minutes % 15 == 0;
    fits.then(|| sign * (hours * 4 + minutes / 15))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_are_quarters_of_an_hour() {
        for (text, expected) in [
            ("+00:00", Some(0)),
            ("-08:00", Some(-32)),
            ("+05:45", Some(23)),
            ("+2:00", None),
            ("02:00", None),
            ("+02:10", None),
            ("+99:00", None),
            ("é", None),
            ("", None),
        ] {
            assert_eq!(quarters(text), expected, "{text}");
        }
    }
}
