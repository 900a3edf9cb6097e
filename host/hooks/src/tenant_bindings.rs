//! Bindings of tenants in a chain.

use api::Binding;

/// The required name prefix of attributes that a tenant's router sets. It distinguishes them from attributes of the
/// operator's plugins.
pub(crate) const TENANT_ATTRIBUTE_PREFIX: &str = "tenant.";

/// The plugin's name for its counters, values, log lines and requests, which tenants do not share with others. No plugin's
/// name has an `@`.
pub(crate) fn plugin_space(binding: &Binding) -> String {
    match &binding.tenant {
        Some(tenant) => format!("{}@{tenant}", binding.plugin),
        None => binding.plugin.clone(),
    }
}

/// A chain of the operator's new bindings (`operators`) and the tenants' bindings of a live chain. Each tenant's binding
/// keeps its position relative to the operator's bindings, as far as possible.
#[must_use]
pub fn with_tenants_of(live: &[Binding], operators: Vec<Binding>) -> Vec<Binding> {
    let mut all = Vec::with_capacity(live.len() + operators.len());
    let mut operators = operators.into_iter().filter(|one| one.tenant.is_none());
    for binding in live {
        match binding.tenant {
            Some(_) => all.push(binding.clone()),
            None => all.extend(operators.next()),
        }
    }
    all.extend(operators);
    all
}

/// The plugins of a chain, for people. Tenants' plugins are only counted.
pub(crate) fn describe_chain(chain: &[Binding]) -> String {
    let operators = chain.iter().filter(|binding| binding.tenant.is_none());
    let mut words: Vec<String> =
        operators.map(|binding| format!("{} {}", binding.plugin, binding.version)).collect();
    match chain.len() - words.len() {
        0 => {}
        1 => words.push("1 binding of a tenant".to_owned()),
        count => words.push(format!("{count} bindings of tenants")),
    }
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn binding(plugin: &str, tenant: Option<&str>) -> Binding {
        Binding { tenant: tenant.map(str::to_owned), ..Binding::new(plugin, "1d9e", "") }
    }

    #[test]
    fn bindings_of_tenants_keep_their_positions_among_the_operators() {
        let live = [
            binding("guard", None),
            binding("router", Some("north")),
            binding("router", None),
            binding("router", Some("south")),
        ];
        let of = |operators: &[&str]| {
            let operators = operators.iter().map(|plugin| binding(plugin, None)).collect();
            let shown = |one: &Binding| one.tenant.clone().unwrap_or_else(|| one.plugin.clone());
            with_tenants_of(&live, operators).iter().map(shown).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(of(&["a", "b"]), "a north b south");
        assert_eq!(of(&["a"]), "a north south");
        assert_eq!(of(&["a", "b", "c"]), "a north b south c");
        assert_eq!(of(&[]), "north south");
        assert_eq!(describe_chain(&live), "guard 1d9e, router 1d9e, 2 bindings of tenants");
        assert_eq!(describe_chain(&live[1..2]), "1 binding of a tenant");
    }

    #[test]
    fn a_tenant_has_a_space_of_its_own() {
        assert_eq!(plugin_space(&binding("router", None)), "router");
        assert_eq!(plugin_space(&binding("router", Some("north"))), "router@north");
    }
}
