//! The values of the form of a binding, and the request that they describe.

use crate::api_caller::ApiError;
use crate::form::Form;
use api::{
    ActivationRequest, Binding, CounterGrant, CounterWindow, DnsGrant, FieldProblem, Grants, HookStateView,
    InstanceUse, OnFault, QualityGrant, Tolerance,
};
use axum::http::StatusCode;
use configuration::parse_size;
use model::Hook;

/// The position of a plugin that replaces the chain.
pub(super) const ALONE: &str = "alone";

/// Whether the plugins of a hook are asked one after the other.
pub(super) fn has_order(hook: Hook) -> bool {
    !matches!(hook, Hook::Peer | Hook::FrontEnd)
}

/// A size in its largest unit, as [`parse_size`] reads it.
fn size_text(octets: u64) -> String {
    let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let unit = units.into_iter().find(|(size, _)| octets > 0 && octets.is_multiple_of(*size));
    unit.map_or_else(|| octets.to_string(), |(size, name)| format!("{}{name}", octets / size))
}

/// The values of a binding's form.
pub(super) fn binding_values(binding: &Binding, found: &HookStateView) -> Form {
    let Binding {
        policy,
        tenant,
        peers,
        on_fault,
        memory,
        deadline,
        table_rows,
        instance,
        grants,
        tolerance,
        ..
    } = binding;
    let is_it = |one: &Binding| one.plugin == binding.plugin && one.tenant == binding.tenant;
    let position = found.live.chain.iter().position(is_it);
    let mut all: Vec<(String, String)> = Vec::new();
    let mut put = |name: &str, value: String| all.push((name.to_owned(), value));
    put("expected", found.live.serial.to_string());
    put("policy", policy.clone());
    put("position", position.map_or_else(|| ALONE.to_owned(), |position| position.to_string()));
    put("tenant", tenant.clone().unwrap_or_default());
    put("peers", peers.join(", "));
    let (fault, peer) = match on_fault {
        OnFault::Hold => ("hold", ""),
        OnFault::Reject => ("reject", ""),
        OnFault::Pass => ("pass", ""),
        OnFault::Peer(peer) => ("peer", peer.as_str()),
    };
    put("on-fault", fault.to_owned());
    put("on-fault-peer", peer.to_owned());
    put("memory", size_text(*memory as u64));
    put("deadline-ms", deadline.as_millis().to_string());
    put("table-rows", table_rows.to_string());
    put("instance", if *instance == InstanceUse::PerCall { "per-call" } else { "warm" }.to_owned());
    put("faults", tolerance.faults.to_string());
    put("fault-window-ms", tolerance.window_ms.to_string());
    put("http", grants.http.join("\n"));
    put("http-timeout-ms", grants.http_timeout_ms.to_string());
    put("http-answer", size_text(grants.http_answer as u64));
    put("kv", size_text(grants.kv));
    for table in &grants.tables {
        put("table", table.clone());
    }
    if grants.hlr {
        put("hlr", "1".to_owned());
    }
    if grants.random {
        put("random", "1".to_owned());
    }
    let dns = grants.dns.clone().unwrap_or_default();
    put("dns-servers", dns.servers.join(", "));
    put("dns-zones", dns.zones.join(", "));
    put("dns-timeout-ms", dns.timeout_ms.to_string());
    let counters = grants.counters.iter();
    let counters = counters.map(|one| format!("{} {} {}", one.name, one.window.name(), one.zone));
    put("counters", counters.collect::<Vec<_>>().join("\n"));
    if let Some(quality) = &grants.quality {
        put("quality-window-ms", quality.window_ms.to_string());
        let digits: Vec<String> = quality.digits.iter().map(u8::to_string).collect();
        put("quality-digits", digits.join(", "));
        put("quality-attributes", quality.attributes.join(", "));
    }
    Form::of(all)
}

/// The items of a list, separated by commas or lines.
fn items(text: &str) -> Vec<String> {
    text.split([',', '\n']).map(str::trim).filter(|one| !one.is_empty()).map(str::to_owned).collect()
}

/// Reads the fields of a form, and collects their problems.
struct FieldReader<'a> {
    form: &'a Form,
    problems: Vec<FieldProblem>,
}

impl FieldReader<'_> {
    fn refuse(&mut self, key: &str, what: &str) {
        let pointer = format!("/binding/0/{key}");
        self.problems.push(FieldProblem { pointer, what: what.to_owned(), allowed: None });
    }

    /// Reads a number. For any other text, records a problem and returns 0.
    fn number<T: std::str::FromStr + Default>(&mut self, key: &str) -> T {
        self.form.text(key).parse().unwrap_or_else(|_| {
            self.refuse(key, "must be a whole number");
            T::default()
        })
    }

    /// A size in octets.
    fn size(&mut self, key: &str) -> u64 {
        parse_size(self.form.text(key)).unwrap_or_else(|| {
            self.refuse(key, "must be a size such as 64KiB or 16MiB");
            0
        })
    }

    fn on_fault(&mut self) -> OnFault {
        match (self.form.text("on-fault"), self.form.text("on-fault-peer")) {
            ("reject", _) => OnFault::Reject,
            ("pass", _) => OnFault::Pass,
            ("peer", "") => {
                self.refuse("on-fault-peer", "must be the name of a peer");
                OnFault::Hold
            }
            ("peer", peer) => OnFault::Peer(peer.to_owned()),
            _ => OnFault::Hold,
        }
    }

    fn dns(&mut self) -> Option<DnsGrant> {
        let (servers, zones) = (items(self.form.text("dns-servers")), items(self.form.text("dns-zones")));
        if servers.is_empty() && zones.is_empty() {
            return None;
        }
        if servers.is_empty() {
            self.refuse("dns-servers", "must be at least one address");
        }
        if zones.is_empty() {
            self.refuse("dns-zones", "must be at least one zone");
        }
        Some(DnsGrant { servers, zones, timeout_ms: self.number("dns-timeout-ms") })
    }

    fn counters(&mut self) -> Vec<CounterGrant> {
        let text = self.form.multiline("counters");
        let mut counters = Vec::new();
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let mut words = line.split_whitespace();
            let (name, window, zone) = (words.next(), words.next(), words.next());
            let window = CounterWindow::ALL.into_iter().find(|(known, _)| Some(*known) == window);
            match (name, window, words.next()) {
                (Some(name), Some((_, window)), None) => counters.push(CounterGrant {
                    name: name.to_owned(),
                    window,
                    zone: zone.unwrap_or("UTC").to_owned(),
                }),
                _ => self.refuse("counters", "each line must be NAME hour, day or month, and a time zone"),
            }
        }
        counters
    }

    fn quality(&mut self) -> Option<QualityGrant> {
        let digits = items(self.form.text("quality-digits"));
        let attributes = items(self.form.text("quality-attributes"));
        let window = self.form.text("quality-window-ms");
        if digits.is_empty() && attributes.is_empty() && window.is_empty() {
            return None;
        }
        let mut read = Vec::new();
        for one in digits {
            match one.parse() {
                Ok(number) => read.push(number),
                Err(_) => self.refuse("quality-digits", "must be numbers of digits, such as 3, 5"),
            }
        }
        let window_ms = match window {
            "" => QualityGrant::default().window_ms,
            _ => self.number("quality-window-ms"),
        };
        Some(QualityGrant { window_ms, digits: read, attributes })
    }

    fn grants(&mut self) -> Grants {
        Grants {
            http: items(&self.form.multiline("http")),
            http_timeout_ms: self.number("http-timeout-ms"),
            http_answer: usize::try_from(self.size("http-answer")).unwrap_or(usize::MAX),
            kv: self.size("kv"),
            tables: self.form.all("table").into_iter().map(str::to_owned).collect(),
            hlr: self.form.has("hlr"),
            dns: self.dns(),
            random: self.form.has("random"),
            counters: self.counters(),
            quality: self.quality(),
        }
    }
}

/// The request that a form describes.
///
/// # Errors
/// If a field is not valid; each problem is at its field.
pub(super) fn requested_binding(hook: Hook, form: &Form) -> Result<ActivationRequest, ApiError> {
    let mut reader = FieldReader { form, problems: Vec::new() };
    let position = match form.text("position") {
        "" | ALONE => None,
        _ => Some(reader.number("position")),
    };
    let tenant = Some(form.text("tenant").trim().to_owned());
    let tenant = tenant.filter(|tenant| hook == Hook::Router && !tenant.is_empty());
    let peers = items(form.text("peers"));
    if hook == Hook::Router && tenant.is_none() && !peers.is_empty() {
        reader.refuse("peers", "only a router of a tenant has peers");
    }
    let request = ActivationRequest {
        plugin: Some(form.text("plugin").to_owned()),
        version: Some(form.text("version").to_owned()),
        policy: Some(form.multiline("policy")),
        position: position.filter(|_| has_order(hook)),
        peers: (hook == Hook::Peer || tenant.is_some()).then_some(peers),
        tenant,
        on_fault: Some(reader.on_fault()),
        memory: Some(reader.size("memory")),
        deadline_ms: Some(reader.number("deadline-ms")),
        table_rows: Some(reader.number("table-rows")),
        instance: Some(if form.text("instance") == "per-call" {
            InstanceUse::PerCall
        } else {
            InstanceUse::Warm
        }),
        grants: Some(reader.grants()),
        tolerance: Some(Tolerance {
            faults: reader.number("faults"),
            window_ms: reader.number("fault-window-ms"),
        }),
        ..ActivationRequest::default()
    };
    if reader.problems.is_empty() {
        return Ok(request);
    }
    Err(ApiError {
        problems: reader.problems,
        ..ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "Some fields are not valid.")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::{BindingChange, BindingRecord};
    use model::Timestamp;
    use std::time::Duration;

    fn hook(chain: Vec<Binding>) -> HookStateView {
        HookStateView {
            hook: Hook::Router,
            live: BindingRecord {
                serial: 7,
                since: Timestamp(1),
                chain,
                change: BindingChange::Activated,
                rollback_reason: None,
            },
            counts: Vec::new(),
            candidate: None,
            events: Vec::new(),
            faults: Vec::new(),
            unknown: Vec::new(),
            history: None,
        }
    }

    fn full() -> Binding {
        Binding {
            on_fault: OnFault::Peer("north".to_owned()),
            memory: 32 << 20,
            deadline: Duration::from_millis(50),
            table_rows: 1_000,
            instance: InstanceUse::PerCall,
            grants: Grants {
                http: vec!["https://a.example/x".to_owned(), "https://b.example/".to_owned()],
                http_timeout_ms: 900,
                http_answer: 64 << 10,
                kv: 4_097,
                tables: vec!["ported".to_owned(), "tariffs".to_owned()],
                hlr: true,
                dns: Some(DnsGrant {
                    servers: vec!["192.0.2.1".to_owned()],
                    zones: vec!["e164.arpa".to_owned()],
                    timeout_ms: 500,
                }),
                random: true,
                counters: vec![CounterGrant {
                    name: "daily".to_owned(),
                    window: CounterWindow::Day,
                    zone: "Europe/Berlin".to_owned(),
                }],
                quality: Some(QualityGrant {
                    window_ms: 60_000,
                    digits: vec![3, 5],
                    attributes: vec!["campaign".to_owned()],
                }),
            },
            tolerance: Tolerance { faults: 3, window_ms: 5_000 },
            ..Binding::new("router", "aaaa", "a = 1\n")
        }
    }

    fn requested(binding: &Binding) -> ActivationRequest {
        let form = binding_values(binding, &hook(vec![binding.clone()]));
        requested_binding(Hook::Router, &form).unwrap()
    }

    #[test]
    fn a_binding_survives_its_form() {
        let of_tenant = Binding {
            tenant: Some("north".to_owned()),
            peers: vec!["smsc".to_owned(), "home".to_owned()],
            ..full()
        };
        for binding in [full(), of_tenant, Binding::new("router", "aaaa", "")] {
            let request = requested(&binding);
            assert_eq!(request.policy.as_deref(), Some(&*binding.policy));
            assert_eq!(request.position, Some(0));
            assert_eq!(request.tenant, binding.tenant);
            assert_eq!(request.peers, binding.tenant.as_ref().map(|_| binding.peers.clone()));
            assert_eq!(request.on_fault, Some(binding.on_fault.clone()));
            assert_eq!(request.memory, Some(binding.memory as u64));
            assert_eq!(request.deadline_ms, Some(binding.deadline.as_millis() as u64));
            assert_eq!(request.table_rows, Some(binding.table_rows as u64));
            assert_eq!(request.instance, Some(binding.instance));
            assert_eq!(request.grants, Some(binding.grants.clone()));
            assert_eq!(request.tolerance, Some(binding.tolerance));
        }
    }

    #[test]
    fn each_problem_is_at_its_field() {
        let field = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        let form = Form::of(vec![
            field("memory", "much"),
            field("kv", "0"),
            field("http-answer", "1KiB"),
            field("on-fault", "peer"),
            field("counters", "daily fortnight"),
            field("dns-servers", "192.0.2.1"),
            field("quality-digits", "five"),
        ]);
        let error = requested_binding(Hook::Router, &form).unwrap_err();
        let at = |key: &str| error.problems.iter().any(|one| one.pointer == format!("/binding/0/{key}"));
        for key in ["memory", "on-fault-peer", "counters", "dns-zones", "quality-digits", "deadline-ms"] {
            assert!(at(key), "{key}: {:?}", error.problems);
        }
        assert!(!at("kv") && !at("http-answer") && !at("dns-servers"), "{:?}", error.problems);
    }

    #[test]
    fn sizes_are_in_their_largest_unit() {
        for (octets, text) in
            [(0, "0"), (100, "100"), (2_048, "2KiB"), (16 << 20, "16MiB"), (1 << 30, "1GiB")]
        {
            assert_eq!(size_text(octets), text);
            assert_eq!(parse_size(text), Some(octets));
        }
    }
}
