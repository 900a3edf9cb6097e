//! `[[gateway]]`, `[account.sgip]`, and listeners that speak SGIP.

use super::{Gateway, UNASSIGNED_PEER, address, secret};
use configuration::Section;
use engine::UncertainPolicy;
use links::{GatewayOptions, SgipListenerOptions, SgipQuirks, SpOptions};
use sgip::{Dialect, SgipFields};
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
        unbound_connections: super::unidentified_connections(section, "unbound-connections", connections),
        bind_timeout: section.duration("bind-timeout", defaults.bind_timeout),
        idle: section.duration("idle", defaults.idle),
        any_login_type: section.flag("any-login-type", false),
        ..defaults
    };
    section.finish();
    options
}

/// Reads a login name; SGIP's field has sixteen octets.
fn login(section: &Section<'_>, key: &'static str) -> bytes::Bytes {
    let text = section.text(key).unwrap_or_default();
    if text.len() > 16 {
        section.error(key, "is longer than SGIP's field of 16 octets");
    }
    bytes::Bytes::from(text.into_bytes())
}

fn password(section: &Section<'_>, key: &'static str, file: &'static str, base: &Path) -> links::Secret {
    let text = secret(section, key, file, base);
    if text.len() > 16 {
        section.error(key, "is longer than SGIP's field of 16 octets");
    }
    links::Secret(bytes::Bytes::from(text.into_bytes()))
}

fn quirks(section: &Section<'_>) -> SgipQuirks {
    let defaults = SgipQuirks::default();
    SgipQuirks {
        dialect: section.choice("version", Dialect::V12, &[("1.2", Dialect::V12), ("1.3", Dialect::V13)]),
        udhi: section.choice("udhi", 1, &[("1", 1), ("0x40", 0x40)]),
        add_86: section.flag("add-86", defaults.add_86),
        strip_86: section.flag("strip-86", defaults.strip_86),
        link_id: section.flag("link-id", defaults.link_id),
        gbk: section.flag("gbk", defaults.gbk),
        loose_match: section.flag("loose-match", defaults.loose_match),
        limit: section.number("max-command-length", u64::from(defaults.limit), 2048..=1_000_000) as u32,
    }
}

fn node(section: &Section<'_>, example: &str) -> u32 {
    if !section.has("node") {
        section.error("node", format!("is missing; write for example node = {example}"));
    }
    section.number("node", 0, 0..=u64::from(u32::MAX)) as u32
}

fn fields(section: &Section<'_>, defaults: SgipFields) -> SgipFields {
    let text = |key: &'static str, most: usize, default: Option<bytes::Bytes>| match section.text(key) {
        None => default,
        Some(text) => {
            if text.len() > most || !text.is_ascii() {
                section.error(key, format!("must be at most {most} ASCII characters"));
            }
            Some(bytes::Bytes::from(text.into_bytes()))
        }
    };
    let number = |key: &'static str, most: u64, default: Option<u8>| {
        section.has(key).then(|| section.number(key, 0, 0..=most) as u8).or(default)
    };
    let fields = SgipFields {
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
    let defaults = GatewayOptions::new(&name, UNASSIGNED_PEER, &target, node(section, "3010012345"));
    let mut classes = HashMap::new();
    for (code, class) in section.section("error-classes").pairs() {
        match (code.parse::<u8>(), super::error_class(class)) {
            (Ok(code), Some(class)) => {
                classes.insert(code, class);
            }
            _ => section.error(
                "error-classes",
                "maps result codes such as \"8\" to temporary, permanent, throttled, queue-full, absent or memory-full",
            ),
        }
    }
    let mut networks = Vec::new();
    for network in section.texts("networks").unwrap_or_default() {
        match network.parse() {
            Ok(network) => networks.push(network),
            Err(error) => section.error("networks", format!("{error}")),
        }
    }
    let links = GatewayOptions {
        login_name: login(section, "login-name"),
        login_password: password(section, "login-password", "login-password-file", base),
        inbound_login_name: login(section, "inbound-login-name"),
        inbound_login_password: password(
            section,
            "inbound-login-password",
            "inbound-login-password-file",
            base,
        ),
        networks,
        connections: section.number("connections", 1, 1..=60) as usize,
        connections_in: section.number("inbound-connections", 10, 1..=10_000) as usize,
        window: section.number("window", 32, 1..=100_000) as usize,
        response_timeout: section.duration("response-timeout", defaults.response_timeout),
        tries: section.number("tries", 3, 1..=100) as u32,
        bind_timeout: section.duration("bind-timeout", defaults.bind_timeout),
        mo_validity: section.duration("mo-validity", defaults.mo_validity),
        error_classes: classes,
        quirks: quirks(section),
        fields: fields(&section.section("fields"), defaults.fields.clone()),
        ..defaults
    };
    // A repeated Submit has the same sequence number, by which the gateway recognises it.
    let remedies = [("send-again", UncertainPolicy::SendAgain), ("await-dlr", UncertainPolicy::AwaitDlr)];
    let queue = super::queue(section, UncertainPolicy::SendAgain, &remedies);
    let default_account = section.text("default-account");
    section.finish();
    Gateway { links, queue, default_account }
}

/// Reads the SGIP settings of an account.
pub(super) fn sp(section: &Section<'_>, name: &str, base: &Path) -> SpOptions {
    let inbound_login_name = if section.has("inbound-login-name") {
        login(section, "inbound-login-name")
    } else {
        bytes::Bytes::copy_from_slice(name.as_bytes())
    };
    if inbound_login_name.len() > 16 {
        section.error("inbound-login-name", "is longer than SGIP's field of 16 octets");
    }
    let target = section.text("address").unwrap_or_default();
    address(section, "address", &target);
    let defaults = SpOptions::new("", node(section, "101001"));
    let options = SpOptions {
        inbound_login_name,
        address: target,
        login_name: login(section, "login-name"),
        login_password: password(section, "login-password", "login-password-file", base),
        connections_in: section.number("inbound-connections", 10, 1..=10_000) as usize,
        connections: section.number("connections", 1, 1..=60) as usize,
        window_in: section.number("inbound-window", 100, 1..=100_000) as usize,
        window: section.number("window", 32, 1..=100_000) as usize,
        response_timeout: section.duration("response-timeout", Duration::from_secs(30)),
        tries: section.number("tries", 3, 1..=100) as u32,
        quirks: quirks(section),
        ..defaults
    };
    section.finish();
    options
}
