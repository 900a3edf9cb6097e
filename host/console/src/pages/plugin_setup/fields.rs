//! The fields for the grants, the place and the limits of a binding.

use super::binding_form::{ALONE, has_order};
use crate::api_caller::ApiError;
use crate::form::Form;
use crate::settings::labelled_input;
use api::{Binding, HookStateView, PluginVersionView, TableView};
use maud::{Markup, html};
use model::Hook;

/// Maximum number of other plugins of a chain for which each place is listed.
const MAX_POSITIONS: usize = 50;

/// Contents of the fields.
pub(super) struct SetupFields<'a> {
    pub(super) values: &'a Form,
    pub(super) error: Option<&'a ApiError>,
    pub(super) version: &'a PluginVersionView,
    pub(super) found: &'a HookStateView,
    pub(super) tables: &'a [TableView],
}

impl SetupFields<'_> {
    /// A field with one line.
    fn line(&self, key: &str, label: &str, hint: &str) -> Markup {
        labelled_input(key, label, hint, self.error, |describes, is_wrong| {
            html! { input id=(format!("field-{key}")) name=(key) value=(self.values.text(key)) autocomplete="off" spellcheck="false" aria-describedby=(describes) aria-invalid=[is_wrong.then_some("true")]; }
        })
    }

    /// A field with several lines.
    fn lines(&self, key: &str, label: &str, hint: &str) -> Markup {
        labelled_input(key, label, hint, self.error, |describes, is_wrong| {
            html! { textarea id=(format!("field-{key}")) name=(key) rows="3" spellcheck="false" aria-describedby=(describes) aria-invalid=[is_wrong.then_some("true")] { "\n" (self.values.multiline(key)) } }
        })
    }

    fn choice(&self, key: &str, label: &str, hint: &str, options: &[(&str, &str)]) -> Markup {
        labelled_input(key, label, hint, self.error, |describes, _| {
            html! {
                select id=(format!("field-{key}")) name=(key) aria-describedby=(describes) {
                    @for (value, text) in options { option value=(value) selected[self.values.text(key) == *value] { (text) } }
                }
            }
        })
    }

    fn tick(&self, key: &str, label: &str) -> Markup {
        html! {
            p { label.tick { input type="checkbox" name=(key) value="1" checked[self.values.has(key)]; " " (label) } }
        }
    }

    /// Whether the component imports an interface of the contract.
    fn imports(&self, interface: &str) -> bool {
        let name = |import: &str| {
            let short = import.rsplit('/').next().unwrap_or_default();
            short.split('@').next().unwrap_or_default() == interface
        };
        self.version.imports.iter().any(|import| name(import))
    }

    fn tables_field(&self) -> Markup {
        let granted = self.values.all("table");
        let missing = granted.iter().filter(|name| self.tables.iter().all(|table| table.name != **name));
        let names: Vec<&str> =
            self.tables.iter().map(|table| table.name.as_str()).chain(missing.copied()).collect();
        html! {
            fieldset.wide {
                legend { "Lookup tables that it may read" }
                @if names.is_empty() { p.muted { "There are no tables. " a href="/tables" { "Fill one" } " first." } }
                @for name in names {
                    label { input type="checkbox" name="table" value=(name) checked[granted.contains(&name)]; " " (name) }
                }
            }
        }
    }

    fn http_fields(&self) -> Markup {
        html! {
            (self.lines("http", "URLs that it may call", "One prefix a line: https://host:port/path."))
            (self.line("http-timeout-ms", "Timeout of a request, in ms", ""))
            (self.line("http-answer", "Maximum size of a response", "Such as 256KiB."))
        }
    }

    fn dns_fields(&self) -> Markup {
        html! {
            (self.line("dns-servers", "DNS servers", "IP addresses, separated by commas; at most four."))
            (self.line("dns-zones", "DNS zones", "The zones that it may ask about, separated by commas."))
            (self.line("dns-timeout-ms", "Timeout of a DNS server, in ms", ""))
        }
    }

    fn quality_fields(&self) -> Markup {
        html! {
            (self.line("quality-window-ms", "Window of peers' figures, in ms", "300000 if empty."))
            (self.line("quality-digits", "Figures by leading digits", "Numbers of digits, such as 3, 5."))
            (self.line("quality-attributes", "Figures by attributes", "Names of attributes, separated by commas."))
        }
    }

    /// The grant of an interface.
    fn grant(&self, interface: &str) -> Markup {
        match interface {
            "tables" => self.tables_field(),
            "http" => self.http_fields(),
            "dns" => self.dns_fields(),
            "quality" => self.quality_fields(),
            "kv" => self.line("kv", "Storage for key-value pairs", "A size such as 64KiB; 0: none."),
            "hlr" => self.tick("hlr", "may query the HLR"),
            "counters" => self.lines(
                "counters",
                "Durable counters",
                "One a line: NAME, hour, day or month, and a time zone. All other counters are in memory.",
            ),
            _ => self.tick("random", "may draw random numbers (guests with a WASI runtime)"),
        }
    }
}

/// The grants, in the order in which they are shown; `random` is not an interface of the contract.
const GRANTS: [&str; 8] = ["tables", "http", "dns", "kv", "hlr", "counters", "quality", "random"];

/// The grants that the version can use; the others are folded.
pub(super) fn grant_fields(fields: &SetupFields<'_>) -> Markup {
    let (used, unused): (Vec<&str>, Vec<&str>) =
        GRANTS.into_iter().partition(|interface| fields.imports(interface));
    html! {
        @if used.is_empty() {
            p { "This version imports nothing that needs a grant." }
        } @else {
            p.muted { "What this version imports. A call that is not granted fails." }
            div.fields { @for interface in used { (fields.grant(interface)) } }
        }
        details.unused { summary { "Grants that this version does not use" } div.fields { @for interface in unused { (fields.grant(interface)) } } }
    }
}

/// The place in the chain, or the peers.
pub(super) fn place_fields(fields: &SetupFields<'_>) -> Markup {
    let SetupFields { found, version, .. } = fields;
    if found.hook == Hook::Peer {
        return html! { div.fields { (fields.line("peers", "Peers that it serves", "Names of plugin peers, separated by commas. It takes them over from other bindings.")) } };
    }
    let tenant = fields.values.text("tenant");
    let is_it =
        |one: &&Binding| one.plugin == version.plugin && one.tenant.as_deref().unwrap_or_default() == tenant;
    let others: Vec<&Binding> = found.live.chain.iter().filter(|one| !is_it(one)).collect();
    let tenant_fields = html! {
        @if found.hook == Hook::Router {
            div.fields {
                (fields.line("tenant", "Tenant", "It is asked only about messages of the tenant's accounts. Empty: about all."))
                (fields.line("peers", "Peers of the tenant's router", "Names of peers to which it may forward, separated by commas. Only with a tenant."))
            }
        }
    };
    if !has_order(found.hook) || others.is_empty() {
        return html! {
            (tenant_fields)
            input type="hidden" name="position" value=(fields.values.text("position"));
        };
    }
    if others.len() > MAX_POSITIONS {
        return html! {
            (tenant_fields)
            div.fields { (fields.line("position", "Place in the chain", &format!("A number from 0 to {}, or {ALONE}.", others.len()))) }
        };
    }
    let name = |one: &Binding| match &one.tenant {
        Some(tenant) => format!("{} for {tenant}", one.plugin),
        None => one.plugin.clone(),
    };
    let operators = others.iter().filter(|one| one.tenant.is_none()).map(|one| name(one));
    let alone = match operators.collect::<Vec<_>>() {
        _ if !tenant.is_empty() => "first".to_owned(),
        none if none.is_empty() => "last".to_owned(),
        operators => format!("alone: it replaces {}", operators.join(", ")),
    };
    let mut options = vec![(ALONE.to_owned(), alone)];
    for position in 0..=others.len() {
        let text = match position {
            0 => format!("first, before {}", others.first().map(|one| name(one)).unwrap_or_default()),
            at => format!("after {}", others.get(at - 1).map(|one| name(one)).unwrap_or_default()),
        };
        options.push((position.to_string(), text));
    }
    let options: Vec<(&str, &str)> = options.iter().map(|(value, text)| (&**value, &**text)).collect();
    html! { (tenant_fields) div.fields { (fields.choice("position", "Place in the chain", "Plugins of a chain are asked one after the other.", &options)) } }
}

/// The limits, with their defaults folded away.
pub(super) fn limit_fields(fields: &SetupFields<'_>) -> Markup {
    let is_router = fields.found.hook == Hook::Router;
    let mut on_fault = vec![
        ("hold", "it is asked again later"),
        ("reject", "the message is refused"),
        ("pass", "the plugin is skipped"),
    ];
    if is_router {
        on_fault.push(("peer", "the message goes to a peer"));
    }
    let instances =
        [("warm", "one instance serves many calls"), ("per-call", "a new instance for each call")];
    html! {
        div.fields {
            (fields.choice("on-fault", "On a fault", "What happens to a message when the call about it fails.", &on_fault))
            @if is_router { (fields.line("on-fault-peer", "Peer on a fault", "Only if the message goes to a peer.")) }
            (fields.line("deadline-ms", "Deadline of a call, in ms", "Time in which the plugin waits for the host does not count."))
            (fields.line("memory", "Memory of an instance", "Such as 16MiB."))
            (fields.line("table-rows", "Rows of its own tables", "The maximum."))
            (fields.choice("instance", "Instances", "", &instances))
            (fields.line("faults", "Faults until it is rolled back", "0: it is never rolled back automatically."))
            (fields.line("fault-window-ms", "Window of these faults, in ms", ""))
        }
    }
}
