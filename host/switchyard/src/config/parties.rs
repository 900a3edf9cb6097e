//! Accounts and peers, and what all kinds of parties have in common: their queues and classes of errors.

use super::{Account, MOST, Peer, UNNUMBERED, address, business, existing, secret, sgip, system_id};
use configuration::Section;
use doors::SourceRules;
use engine::{PeerSettings, Uncertainty};
use links::{AccountOptions, BindMode, BindModes, ClientTls, LongText, MessageIdForm, PeerOptions, Secret};
use model::ErrorClass;
use std::collections::HashMap;
use std::path::Path;

pub(super) fn account(section: &Section<'_>, base: &Path) -> Account {
    let name = section.required("name", "\"acme\"");
    let id = section.text("system-id").unwrap_or_else(|| name.clone());
    system_id(section, if section.has("system-id") { "system-id" } else { "name" }, &id);
    let hash = section.required("password-hash", "\"$argon2id$...\" (made by: switchyard hash-password)");
    if !hash.is_empty() && doors::check_password_hash(&hash).is_err() {
        section.wrong("password-hash", "is no argon2 hash; make one with: switchyard hash-password");
    }
    let mut links = AccountOptions::new(&name, UNNUMBERED, &hash);
    links.system_id = bytes::Bytes::from(id.into_bytes());
    if let Some(modes) = section.texts("bind") {
        for mode in &modes {
            if !["transmitter", "receiver", "transceiver"].contains(&mode.as_str()) {
                section.wrong("bind", format!("{mode:?} is not transmitter, receiver or transceiver"));
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
            Err(error) => section.wrong("networks", error.to_string()),
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
                source.wrong("default", "is longer than 20 characters");
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
    let mut queue = PeerSettings::new(UNNUMBERED);
    queue.addressee = true;
    queue.receipts = false;
    queue.uncertainty = Uncertainty::SendAgain;
    queue.queue_limit = section.number("queue-limit", 1_000_000, 1..=MOST);
    queue.part_receipts = section.choice("reports", false, &[("merged", false), ("per-part", true)]);
    queue.opt_out = section.flag("opt-out", true);
    queue.key_memory = usize::try_from(section.size("idempotency-memory", 256 << 20)).unwrap_or(usize::MAX);
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

/// How messages for a peer or a gateway are handled.
pub(super) fn queue(
    section: &Section<'_>,
    uncertain: Uncertainty,
    remedies: &[(&str, Uncertainty)],
) -> PeerSettings {
    let mut queue = PeerSettings::new(UNNUMBERED);
    queue.rate = section.rate("rate");
    let burst = queue.rate.map_or(1, |rate| (rate / 10.0).ceil().max(1.0) as u64);
    queue.burst = section.number("burst", burst, 1..=10_000_000) as u32;
    queue.queue_limit = section.number("queue-limit", queue.queue_limit, 1..=MOST);
    queue.receipts = section.flag("receipts", true);
    queue.receipt_limit = section.duration("receipt-limit", queue.receipt_limit);
    queue.uncertainty = section.choice("uncertain", uncertain, remedies);
    queue.uncertain_limit = section.duration("uncertain-limit", queue.uncertain_limit);
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
    let defaults = PeerOptions::new(&name, UNNUMBERED, &address);
    let id = section.text("system-id").unwrap_or_default();
    system_id(section, "system-id", &id);
    let password = secret(section, "password", "password-file", base);
    let tls = section.has("tls").then(|| {
        let tls = section.section("tls");
        let ca = tls.text("ca").map(|path| existing(&tls, "ca", base, &path));
        let server_name = tls.text("server-name");
        let pair = |key: &'static str| tls.text(key).map(|path| existing(&tls, key, base, &path));
        let certificate = match (pair("certificate"), pair("key")) {
            (Some(certificate), Some(key)) => Some((certificate, key)),
            (None, None) => None,
            _ => {
                tls.wrong("certificate", "and key go together");
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
            _ => section.wrong(
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
        Uncertainty::AwaitReceipt,
        &[
            ("send-again", Uncertainty::SendAgain),
            ("ask", Uncertainty::Ask),
            ("await-receipt", Uncertainty::AwaitReceipt),
        ],
    );
    let group = section.text("group");
    let default_account = section.text("default-account");
    section.finish();
    Peer { links, queue, group, default_account }
}
