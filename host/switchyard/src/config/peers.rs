//! `[[account]]` and `[[peer]]`, and the queue keys and error classes shared with gateways and core networks.

use super::{
    Account, MAX_INTEGER, Peer, UNASSIGNED_PEER, address, business, existing_file, secret, sgip, system_id,
};
use configuration::Section;
use engine::{PeerSettings, UncertainPolicy};
use links::{
    BindMode, BindModes, ClientTls, LinkAccountOptions, LongText, MessageIdForm, PeerOptions, Secret,
};
use model::ErrorClass;
use ports::SourceRules;
use std::collections::HashMap;
use std::path::Path;

pub(super) fn account(section: &Section<'_>, base: &Path) -> Account {
    let name = section.required("name", "\"acme\"");
    let id = section.text("system-id").unwrap_or_else(|| name.clone());
    system_id(section, if section.has("system-id") { "system-id" } else { "name" }, &id);
    let hash =
        section.required("password-hash", "\"$argon2id$...\" (created with: switchyard hash-password)");
    if !hash.is_empty() && ports::check_password_hash(&hash).is_err() {
        section.error("password-hash", "is not an argon2 hash; create one with: switchyard hash-password");
    }
    let mut links = LinkAccountOptions::new(&name, UNASSIGNED_PEER, &hash);
    links.system_id = bytes::Bytes::from(id.into_bytes());
    if let Some(modes) = section.texts("bind") {
        for mode in &modes {
            if !["transmitter", "receiver", "transceiver"].contains(&mode.as_str()) {
                section.error("bind", format!("{mode:?} is not transmitter, receiver or transceiver"));
            }
        }
        let has = |word: &str| modes.iter().any(|mode| mode == word);
        links.bind = BindModes {
            transmitter: has("transmitter"),
            receiver: has("receiver"),
            transceiver: has("transceiver"),
        };
    }
    for network in section.texts("networks").unwrap_or_default() {
        match network.parse() {
            Ok(network) => links.networks.push(network),
            Err(error) => section.error("networks", error.to_string()),
        }
    }
    links.rate = section.rate("rate");
    let burst = links.rate.map_or(1, |rate| (rate / 10.0).ceil().max(1.0) as u64);
    links.burst = section.number("burst", burst, 1..=10_000_000) as u32;
    links.window = section.number("window", 100, 1..=100_000) as usize;
    links.deliver_window = section.number("deliver-window", 100, 1..=100_000) as usize;
    links.sessions = section.number("sessions", 10, 1..=100_000) as usize;
    links.validity = section.duration("validity", links.validity);
    if section.has("source") {
        let source = section.section("source");
        let default = source.text("default").map(|text| {
            if text.len() > 20 {
                source.error("default", "is longer than 20 characters");
            }
            let numeric = text.bytes().all(|c| c.is_ascii_digit());
            let (ton, npi) = if numeric { (0, 1) } else { (5, 0) };
            let ton = source.number("ton", ton, 0..=7) as u8;
            let npi = source.number("npi", npi, 0..=18) as u8;
            model::Address::new(ton, npi, text.as_bytes())
        });
        links.source = SourceRules { allow: source.texts("allow").unwrap_or_default(), default };
        source.finish();
    }
    let mut queue = PeerSettings::new(UNASSIGNED_PEER);
    queue.addressee = true;
    queue.sends_dlrs = false;
    queue.uncertainty = UncertainPolicy::SendAgain;
    queue.queue_limit = section.number("queue-limit", 1_000_000, 1..=MAX_INTEGER);
    queue.segment_dlrs = section.choice("dlrs", false, &[("merged", false), ("per-segment", true)]);
    queue.opt_out = section.flag("opt-out", true);
    queue.idempotency_key_memory =
        usize::try_from(section.size("idempotency-memory", 256 << 20)).unwrap_or(usize::MAX);
    if section.has("sgip") {
        links.sgip = Some(sgip::sp(&section.section("sgip"), &name, base));
    }
    let business =
        section.has("business").then(|| business::account(&section.section("business"), &links, base));
    section.finish();
    Account { links, queue, business }
}

pub(super) fn error_class(word: &str) -> Option<ErrorClass> {
    Some(match word {
        "temporary" => ErrorClass::Temporary,
        "permanent" => ErrorClass::Permanent,
        "throttled" => ErrorClass::Throttled,
        "queue-full" => ErrorClass::QueueFull,
        "absent" => ErrorClass::Absent,
        "memory-full" => ErrorClass::MemoryFull,
        _ => return None,
    })
}

/// Reads the queue settings of a peer, gateway or core network.
pub(super) fn queue(
    section: &Section<'_>,
    uncertain: UncertainPolicy,
    remedies: &[(&str, UncertainPolicy)],
) -> PeerSettings {
    let mut queue = PeerSettings::new(UNASSIGNED_PEER);
    queue.rate = section.rate("rate");
    let burst = queue.rate.map_or(1, |rate| (rate / 10.0).ceil().max(1.0) as u64);
    queue.burst = section.number("burst", burst, 1..=10_000_000) as u32;
    queue.queue_limit = section.number("queue-limit", queue.queue_limit, 1..=MAX_INTEGER);
    queue.sends_dlrs = section.flag("dlrs", true);
    queue.dlr_timeout = section.duration("dlr-timeout", queue.dlr_timeout);
    queue.uncertainty = section.choice("uncertain", uncertain, remedies);
    queue.uncertain_limit = section.duration("uncertain-timeout", queue.uncertain_limit);
    if let Some(retry) = section.durations("retry") {
        queue.retry = retry;
    }
    queue.max_attempts = section.number("max-attempts", 0, 0..=10_000) as u16;
    queue
}

pub(super) fn peer(section: &Section<'_>, base: &Path) -> Peer {
    let name = section.required("name", "\"upstream\"");
    let address = section.required("address", "\"smsc.example.net:2775\"");
    self::address(section, "address", &address);
    let defaults = PeerOptions::new(&name, UNASSIGNED_PEER, &address);
    let id = section.text("system-id").unwrap_or_default();
    system_id(section, "system-id", &id);
    let password = secret(section, "password", "password-file", base);
    let tls = section.has("tls").then(|| {
        let tls = section.section("tls");
        let ca = tls.text("ca").map(|path| existing_file(&tls, "ca", base, &path));
        let server_name = tls.text("server-name");
        let pair = |key: &'static str| tls.text(key).map(|path| existing_file(&tls, key, base, &path));
        let certificate = match (pair("certificate"), pair("key")) {
            (Some(certificate), Some(key)) => Some((certificate, key)),
            (None, None) => None,
            _ => {
                tls.error("certificate", "and key go together");
                None
            }
        };
        tls.finish();
        ClientTls { ca, server_name, certificate }
    });
    let version = section.choice("interface-version", 0x34, &[("3.3", 0x33), ("3.4", 0x34), ("5.0", 0x50)]);
    let mut classes = HashMap::new();
    let table = section.section("error-classes");
    for (status, class) in table.pairs() {
        let status = status
            .strip_prefix("0x")
            .map_or_else(|| status.parse().ok(), |hex| u32::from_str_radix(hex, 16).ok());
        match (status, error_class(class)) {
            (Some(status), Some(class)) => {
                classes.insert(status, class);
            }
            _ => section.error(
                "error-classes",
                "maps command_status values such as \"0x45\" to temporary, permanent, throttled, queue-full, absent or memory-full",
            ),
        }
    }
    let links = PeerOptions {
        system_id: bytes::Bytes::from(id.into_bytes()),
        password: Secret(bytes::Bytes::from(password.into_bytes())),
        system_type: bytes::Bytes::from(section.text("system-type").unwrap_or_default().into_bytes()),
        bind: section.choice(
            "bind",
            BindMode::Transceiver,
            &[
                ("transceiver", BindMode::Transceiver),
                ("transmitter", BindMode::Transmitter),
                ("receiver", BindMode::Receiver),
            ],
        ),
        links: section.number("links", 1, 1..=256) as usize,
        window: section.number("window", 10, 1..=100_000) as usize,
        interface_version: version,
        tlvs: section.has("tlvs").then(|| section.flag("tlvs", true)),
        pass_validity: section.flag("pass-validity", defaults.pass_validity),
        enquire_interval: section.duration("enquire-interval", defaults.enquire_interval),
        enquire_timeout: section.duration("enquire-timeout", defaults.enquire_timeout),
        response_timeout: section.duration("response-timeout", defaults.response_timeout),
        redial_interval: section.duration("redial-interval", defaults.redial_interval),
        message_id: section.choice(
            "message-id",
            MessageIdForm::AsIs,
            &[
                ("as-is", MessageIdForm::AsIs),
                ("hex-to-decimal", MessageIdForm::HexToDecimal),
                ("decimal-to-hex", MessageIdForm::DecimalToHex),
                ("strip-zeros", MessageIdForm::StripZeros),
                ("fold-case", MessageIdForm::FoldCase),
            ],
        ),
        long_text: section.choice(
            "long-text",
            LongText::Payload,
            &[("payload", LongText::Payload), ("udh", LongText::Udh), ("sar", LongText::Sar)],
        ),
        error_classes: classes,
        mo_validity: section.duration("mo-validity", defaults.mo_validity),
        tls,
        ..defaults
    };
    let queue = queue(
        section,
        UncertainPolicy::AwaitDlr,
        &[
            ("send-again", UncertainPolicy::SendAgain),
            ("query", UncertainPolicy::Query),
            ("await-dlr", UncertainPolicy::AwaitDlr),
        ],
    );
    let group = section.text("group");
    let default_account = section.text("default-account");
    section.finish();
    Peer { links, queue, group, default_account }
}
