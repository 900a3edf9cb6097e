//! `[[gsm]]`: core networks, and `[numbering]`: number plans.

use super::{UNASSIGNED_PEER, address, existing_file, read_text_file};
use configuration::Section;
use engine::{PeerSettings, UncertainPolicy};
use gsm::{GsmOptions, GsmRole, Language};
use model::Address;
use numbering::{NumberPlan, NumberPlans};
use ports::ConnectionLimits;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// A core network: options of its links and its queue.
#[derive(Debug, Clone)]
pub(crate) struct Network {
    pub(crate) links: GsmOptions,
    pub(crate) queue: PeerSettings,
    pub(crate) default_account: Option<String>,
}

/// Reads the number plans, if configured.
pub(super) fn numbering(root: &Section<'_>, base: &Path) -> Option<NumberPlans> {
    if !root.has("numbering") {
        return None;
    }
    let section = root.section("numbering");
    let path = section.required("document", "\"policies/numbering.toml\"");
    let path = existing_file(&section, "document", base, &path);
    let document = match read_text_file(&path) {
        Ok(text) => match NumberPlans::parse(&text) {
            Ok(plans) => Some(plans),
            Err(error) => {
                section.error("document", plan_error(&section, &path, &error));
                None
            }
        },
        // `existing_file` reported the missing file.
        Err(_) => None,
    };
    section.finish();
    document
}

/// Describes the errors in a number plan document. A document sent over the API gets line numbers only, because the
/// path may name any file that the daemon can read.
fn plan_error(section: &Section<'_>, path: &Path, error: &numbering::NumberPlanError) -> String {
    if section.is_file() {
        return format!("{}: {error}", path.display());
    }
    let lines: BTreeSet<usize> = error.0.iter().map(|problem| problem.line).collect();
    let lines: Vec<String> = lines.iter().take(20).map(usize::to_string).collect();
    format!(
        "{} is not a valid number plan document; see line {} (`switchyard check` with this configuration as a file lists the errors)",
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
        unidentified: super::unidentified_connections(section, "unidentified-connections", connections),
        reserve: 0,
    }
}

pub(super) fn network(section: &Section<'_>, plans: Option<&NumberPlans>) -> Network {
    let name = section.required("name", "\"home\"");
    let hlr = section.required("hlr", "\"hlr.example.net:4222\"");
    address(section, "hlr", &hlr);
    let role = match section.text("role").as_deref() {
        None | Some("proxy") => {
            let listen = section.text("listen").unwrap_or_else(|| "0.0.0.0:4222".to_owned());
            let listen = listen.parse().unwrap_or_else(|_| {
                let allowed = "address:port such as \"0.0.0.0:4222\"";
                section.invalid("listen", format!("is {listen:?}"), allowed);
                ([127, 0, 0, 1], 4222).into()
            });
            GsmRole::Proxy { listen, hlr }
        }
        Some("client") => GsmRole::Client { hlr },
        Some(other) => {
            section.invalid("role", format!("is {other:?}"), "one of: proxy, client");
            GsmRole::Client { hlr }
        }
    };
    let ctrl = section.text("ctrl");
    if let Some(ctrl) = &ctrl {
        address(section, "ctrl", ctrl);
    }
    let defaults = GsmOptions::new(&name, UNASSIGNED_PEER);
    let ipa_name = section.text("ipa-name").unwrap_or_else(|| defaults.ipa_name.clone());
    // A proxy appends a suffix of nine octets.
    let longest = if matches!(role, GsmRole::Proxy { .. }) { 22 } else { 31 };
    if ipa_name.is_empty() || ipa_name.len() > longest || !ipa_name.bytes().all(|c| c.is_ascii_graphic()) {
        section.error("ipa-name", format!("must be 1 to {longest} ASCII characters without spaces"));
    }
    let centre = section.required("service-centre", "\"19990014444\"");
    if !section.has("service-centre") {
    } else if centre.is_empty() || centre.len() > 20 || !centre.bytes().all(|c| c.is_ascii_digit()) {
        section.error(
            "service-centre",
            "must be 1 to 20 digits: the number of the service centre, as configured on SIMs",
        );
    }
    let plan = section.text("number-plan");
    let plan = plan_of(section, plans, plan.as_deref());
    let zone = section.text("utc-offset").map_or(Some(0), |text| quarters(&text));
    if zone.is_none() {
        section.error("utc-offset", "must be like \"+02:00\" or \"-08:00\", in quarters of an hour");
    }
    let languages = languages(section);
    let can_check = ctrl.is_some() && matches!(role, GsmRole::Proxy { .. });
    let check_sender = section.flag("check-sender", can_check);
    if check_sender && !can_check {
        section.error(
            "check-sender",
            "needs role = \"proxy\" and `ctrl`: the HLR is queried for the sender's MSC",
        );
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
        response_timeout: section.duration("response-timeout", defaults.response_timeout),
        mo_validity: section.duration("mo-validity", defaults.mo_validity),
        repetition_window: section.duration("repetition-window", defaults.repetition_window),
        zone: zone.unwrap_or(0),
        languages,
        plan,
        limits,
        connect_timeout: section.duration("connect-timeout", defaults.connect_timeout),
        hlr_outage: section.duration("hlr-outage", defaults.hlr_outage),
        keep_alive: section.duration("keep-alive", defaults.keep_alive),
        ..defaults
    };
    // A handset recognises a repeated message by its identical TPDU.
    let remedies = [("send-again", UncertainPolicy::SendAgain), ("await-dlr", UncertainPolicy::AwaitDlr)];
    let mut queue = super::queue(section, UncertainPolicy::SendAgain, &remedies);
    queue.serial = true;
    queue.sends_dlrs = false;
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
            section.invalid("languages", format!("has {name:?}"), format!("any of: {all}"));
        }
        language
    };
    names.iter().filter_map(known).collect()
}

fn plan_of(
    section: &Section<'_>,
    plans: Option<&NumberPlans>,
    name: Option<&str>,
) -> Option<Arc<NumberPlan>> {
    let Some(plans) = plans else {
        if name.is_some() {
            section.error("number-plan", "needs [numbering] document = \"policies/numbering.toml\"");
        }
        return None;
    };
    let name = name.unwrap_or_else(|| plans.default_name());
    let found = plans.get(name);
    if found.is_none() {
        let known: Vec<&str> = plans.iter().map(|(name, _)| name).collect();
        let what = format!("is {name:?}, and the document of [numbering] has: {}", known.join(", "));
        section.error("number-plan", what);
    }
    found.map(|plan| Arc::new(plan.clone()))
}

/// Parses `+hh:mm` into quarters of an hour.
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
