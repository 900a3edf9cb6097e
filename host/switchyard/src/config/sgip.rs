//! `[[gateway]]`, `[account.sgip]`, and listeners that speak SGIP.

use super::{Gateway, UNNUMBERED, address, secret};
use configuration::Section;
use engine::Uncertainty;
use links::{GatewayOptions, Habits, SgipListenerOptions, SpOptions};
use sgip::{Dialect, Fields};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

pub(super) fn listener(section: &Section<'_>, name: &str, listen: SocketAddr) -> SgipListenerOptions {
    let defaults = SgipListenerOptions::new(name, listen);
    let connections = section.number("connections", 1000, 1..=1_000_000) as usize;
    let options = SgipListenerOptions {
        connections,
        connections_per_address: section.number("connections-per-address", 100, 1..=1_000_000) as usize,
        unbound_connections: super::unbound_connections(section, "unbound-connections", connections),
        bind_timeout: section.duration("bind-timeout", defaults.bind_timeout),
        idle: section.duration("idle", defaults.idle),
        any_login_type: section.flag("any-login-type", false),
        ..defaults
    };
    section.finish();
    options
}

/// SGIP's login fields hold sixteen octets.
fn login(section: &Section<'_>, key: &'static str) -> bytes::Bytes {
    let text = section.text(key).unwrap_or_default();
    if text.len() > 16 {
        section.wrong(key, "is longer than 16 octets, and SGIP's field is not");
    }
    bytes::Bytes::from(text.into_bytes())
}

fn password(section: &Section<'_>, key: &'static str, file: &'static str, base: &Path) -> links::Secret {
    let text = secret(section, key, file, base);
    if text.len() > 16 {
        section.wrong(key, "is longer than 16 octets, and SGIP's field is not");
    }
    links::Secret(bytes::Bytes::from(text.into_bytes()))
}

fn habits(section: &Section<'_>) -> Habits {
    let defaults = Habits::default();
    Habits {
        dialect: section.choice("version", Dialect::V12, &[("1.2", Dialect::V12), ("1.3", Dialect::V13)]),
        udhi: section.choice("udhi", 1, &[("1", 1), ("0x40", 0x40)]),
        add_86: section.flag("add-86", defaults.add_86),
        strip_86: section.flag("strip-86", defaults.strip_86),
        link_id: section.flag("link-id", defaults.link_id),
        gbk: section.flag("gbk", defaults.gbk),
        loose_match: section.flag("loose-match", defaults.loose_match),
        limit: section.number("longest-command", u64::from(defaults.limit), 2048..=1_000_000) as u32,
    }
}

fn node(section: &Section<'_>, example: &str) -> u32 {
    if !section.has("node") {
        section.wrong("node", format!("is missing; write for example node = {example}"));
    }
    section.number("node", 0, 0..=u64::from(u32::MAX)) as u32
}

fn fields(section: &Section<'_>, defaults: Fields) -> Fields {
    let text = |key: &'static str, most: usize, default: Option<bytes::Bytes>| match section.text(key) {
        None => default,
        Some(text) => {
            if text.len() > most || !text.is_ascii() {
                section.wrong(key, format!("must be at most {most} ASCII characters"));
            }
            Some(bytes::Bytes::from(text.into_bytes()))
        }
    };
    let number = |key: &'static str, most: u64, default: Option<u8>| {
        section.has(key).then(|| section.number(key, 0, 0..=most) as u8).or(default)
    };
    let fields = Fields {
        charge_number: text("charge-number", 21, defaults.charge_number.clone()),
        corp_id: text("corp-id", 5, defaults.corp_id.clone()),
        service_type: text("service-type", 10, defaults.service_type.clone()),
        fee_type: number("fee-type", 4, defaults.fee_type),
        fee_value: text("fee-value", 6, defaults.fee_value.clone()),
        given_value: text("given-value", 6, defaults.given_value.clone()),
        agent_flag: number("agent-flag", 1, defaults.agent_flag),
        mo_related: number("mo-related", 3, defaults.mo_related),
        ..defaults
    };
    section.finish();
    fields
}

pub(super) fn gateway(section: &Section<'_>, base: &Path) -> Gateway {
    let name = section.required("name", "\"unicom\"");
    let target = section.required("address", "\"smg.example.net:8801\"");
    address(section, "address", &target);
    let defaults = GatewayOptions::new(&name, UNNUMBERED, &target, node(section, "3010012345"));
    let mut classes = HashMap::new();
    for (code, class) in section.section("error-classes").pairs() {
        match (code.parse::<u8>(), super::error_class(class)) {
            (Ok(code), Some(class)) => {
                classes.insert(code, class);
            }
            _ => section.wrong(
                "error-classes",
                "maps result codes such as \"8\" to temporary, permanent, throttled, queue-full, absent or memory-full",
            ),
        }
    }
    let mut networks = Vec::new();
    for network in section.texts("networks").unwrap_or_default() {
        match network.parse() {
            Ok(network) => networks.push(network),
            Err(error) => section.wrong("networks", format!("{error}")),
        }
    }
    let links = GatewayOptions {
        login_name: login(section, "login-name"),
        login_password: password(section, "login-password", "login-password-file", base),
        its_name: login(section, "its-name"),
        its_password: password(section, "its-password", "its-password-file", base),
        networks,
        connections: section.number("connections", 1, 1..=60) as usize,
        connections_in: section.number("connections-in", 10, 1..=10_000) as usize,
        window: section.number("window", 32, 1..=100_000) as usize,
        response_timeout: section.duration("response-timeout", defaults.response_timeout),
        tries: section.number("tries", 3, 1..=100) as u32,
        bind_timeout: section.duration("bind-timeout", defaults.bind_timeout),
        mo_validity: section.duration("mo-validity", defaults.mo_validity),
        error_classes: classes,
        habits: habits(section),
        fields: fields(&section.section("fields"), defaults.fields.clone()),
        ..defaults
    };
    // A repetition has the sequence of what it repeats, by which the gateway knows it.
    let remedies = [("send-again", Uncertainty::SendAgain), ("await-receipt", Uncertainty::AwaitReceipt)];
    let queue = super::queue(section, Uncertainty::SendAgain, &remedies);
    let default_account = section.text("default-account");
    section.finish();
    Gateway { links, queue, default_account }
}

/// The SGIP side of an account.
pub(super) fn sp(section: &Section<'_>, name: &str, base: &Path) -> SpOptions {
    let its_name = if section.has("its-name") {
        login(section, "its-name")
    } else {
        bytes::Bytes::copy_from_slice(name.as_bytes())
    };
    if its_name.len() > 16 {
        section.wrong("its-name", "is longer than 16 octets, and SGIP's field is not");
    }
    let target = section.text("address").unwrap_or_default();
    address(section, "address", &target);
    let defaults = SpOptions::new("", node(section, "101001"));
    let options = SpOptions {
        its_name,
        address: target,
        login_name: login(section, "login-name"),
        login_password: password(section, "login-password", "login-password-file", base),
        connections_in: section.number("connections-in", 10, 1..=10_000) as usize,
        connections: section.number("connections", 1, 1..=60) as usize,
        window_in: section.number("window-in", 100, 1..=100_000) as usize,
        window: section.number("window", 32, 1..=100_000) as usize,
        response_timeout: section.duration("response-timeout", Duration::from_secs(30)),
        tries: section.number("tries", 3, 1..=100) as u32,
        habits: habits(section),
        ..defaults
    };
    section.finish();
    options
}
