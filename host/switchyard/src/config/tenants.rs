//! Tenants: the tree, and the accounts of each.

use super::branch_limits::BranchLimitKeys;
use super::pace::check_name;
use super::unique_names::check_unique;
use super::{Account, Config};
use configuration::{Keys, Section};
use engine::{BranchLimits, DayQuotaSettings};
use model::{ConfiguredLimits, MAX_TENANT_DEPTH, TenantTree};
use ports::{AccountRegistry, TenantRate, default_burst};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

/// `[[tenant]]`: a customer with accounts and users of its own, and with tenants below it. Its users see only its own
/// branch.
#[derive(Debug, Clone, PartialEq, Keys)]
#[keys(live = "takes effect at once")]
pub(crate) struct TenantKeys {
    /// The name: 1 to 64 characters of a-z, 0-9, dot, hyphen and underscore. The names of the tenant's users and tokens
    /// end with `@` and this name.
    #[key(example = "reseller-north", check = check_name)]
    pub(crate) name: String,
    /// The tenant above this one: the name of another `[[tenant]]`. At most 8 tenants are on the path from the top of the
    /// tree to a tenant.
    #[key(default_as = "none: directly below the operator")]
    pub(crate) parent: Option<String>,
    /// Maximum number of messages per second that all accounts of the tenant's branch submit together; segments count.
    /// Further messages are refused, as with the rate of an account.
    #[key(default_as = "no limit")]
    pub(crate) rate: Option<f64>,
    /// Maximum number of messages in a burst.
    #[key(range = 1..=10_000_000, default_as = "a tenth of `rate`", default_with = default_burst(rate))]
    pub(crate) burst: u32,
    /// Whether messages of the tenant's branch are also charged to the ledger account with the tenant's name, at the
    /// biller's price. If its balance is too low, they are refused.
    #[key(default = false)]
    pub(crate) charged: bool,
    #[key(flatten)]
    pub(crate) limits: BranchLimitKeys,
}

/// The reason why a tenant's place in the tree is invalid.
fn misplaced(tenant: &str, parents: &HashMap<&str, Option<&str>>) -> Option<String> {
    let (mut line, mut next) = (vec![tenant], parents.get(tenant).copied().flatten());
    while let Some(parent) = next {
        line.push(parent);
        if parent == tenant {
            return Some(format!("the tenants {} are parents of each other", line.join(", ")));
        }
        if line.len() > MAX_TENANT_DEPTH {
            return Some(format!(
                "more than {MAX_TENANT_DEPTH} tenants are on the path from the top of the tree to it"
            ));
        }
        next = parents.get(parent).copied().flatten();
    }
    None
}

impl Config {
    /// Checks names, parents and the tenants of accounts. `peers`: the names of all accounts and peers, with their
    /// kinds.
    pub(super) fn check_tenants(&self, root: &Section<'_>, peers: &HashMap<&str, &str>) {
        let sections = root.sections("tenant");
        check_unique(&sections, self.tenants.iter().map(|tenant| &*tenant.name), "tenant");
        let parents: HashMap<&str, Option<&str>> =
            self.tenants.iter().map(|tenant| (&*tenant.name, tenant.parent.as_deref())).collect();
        let known = || {
            let names: Vec<&str> = self.tenants.iter().map(|tenant| &*tenant.name).collect();
            if names.is_empty() { "none".to_owned() } else { names.join(", ") }
        };
        for (section, tenant) in sections.iter().zip(&self.tenants) {
            if let Some(kind) = peers.get(&*tenant.name) {
                let what = format!(
                    "{:?} is also the name of an account or peer ({kind}); names must differ",
                    tenant.name
                );
                section.error("name", what);
            }
            match tenant.parent.as_deref() {
                Some(parent) if !parents.contains_key(parent) => {
                    section
                        .error("parent", format!("{parent:?} is not a [[tenant]]; known are: {}", known()));
                }
                _ => {
                    if let Some(what) = misplaced(&tenant.name, &parents) {
                        section.error("parent", format!("{what}; change one of their parents"));
                    }
                }
            }
        }
        for (section, account) in root.sections("account").iter().zip(&self.accounts) {
            if let Some(tenant) = account.tenant.as_deref().filter(|tenant| !parents.contains_key(tenant)) {
                section.error("tenant", format!("{tenant:?} is not a [[tenant]]; known are: {}", known()));
            }
        }
    }

    /// Sets the rates of tenants at the accounts of their branches. `tree`: the tree of this configuration.
    pub(crate) fn set_tenant_rates(&self, tree: &TenantTree, registry: &AccountRegistry) {
        let rates: Vec<_> = self
            .tenants
            .iter()
            .filter_map(|tenant| {
                let name = tenant.name.as_str().into();
                tenant.rate.map(|rate| TenantRate { tenant: name, rate, burst: tenant.burst })
            })
            .collect();
        let lines = self.accounts.iter().filter_map(|account| {
            let tenant = account.tenant.as_ref()?;
            Some((account.links.peer, tree.line(tenant)))
        });
        registry.set_tenants(&rates, lines, Instant::now());
    }

    /// The tree of tenants, with the accounts of each.
    pub(crate) fn tenant_tree(&self) -> TenantTree {
        let shared = |name: &String| Arc::<str>::from(name.as_str());
        let mut accounts: HashSet<&str> = self.accounts.iter().map(|account| &*account.links.name).collect();
        accounts.extend(self.elsewhere.names.keys().map(String::as_str));
        let elsewhere = self
            .elsewhere
            .names
            .keys()
            .map(|name| (shared(name), self.elsewhere.tenants.get(name).map(shared)));
        let others: BTreeSet<Arc<str>> =
            self.names().iter().filter(|name| !accounts.contains(name.as_str())).map(shared).collect();
        TenantTree::new(
            self.tenants.iter().map(|tenant| (shared(&tenant.name), tenant.parent.as_ref().map(shared))),
            self.accounts
                .iter()
                .map(|account: &Account| (shared(&account.links.name), account.tenant.as_ref().map(shared)))
                .chain(elsewhere),
            others,
        )
        .with_limits(self.tenants.iter().map(|tenant| {
            (
                shared(&tenant.name),
                ConfiguredLimits {
                    rate: tenant.rate,
                    max_price: tenant.limits.max_price,
                    is_charged: tenant.charged,
                },
            )
        }))
    }

    /// The limits of all accounts and tenants, by name; the names are unique.
    fn branch_limit_keys(&self) -> impl Iterator<Item = (&str, &BranchLimitKeys)> {
        let accounts = self.accounts.iter().map(|account| (&*account.links.name, &account.limits));
        accounts.chain(self.tenants.iter().map(|tenant| (&*tenant.name, &tenant.limits)))
    }

    /// The day quotas of all accounts and tenants.
    pub(super) fn day_quotas(&self) -> Vec<DayQuotaSettings> {
        self.branch_limit_keys().filter_map(|(owner, keys)| keys.day_quota(owner)).collect()
    }

    /// Sets at each account's queue its own limits and those of the tenants above it.
    pub(super) fn set_branch_limits(&mut self) {
        let tree: TenantTree = self.tenant_tree();
        let keys: HashMap<&str, &BranchLimitKeys> = self.branch_limit_keys().collect();
        let charged: HashSet<&str> =
            self.tenants.iter().filter(|tenant| tenant.charged).map(|tenant| &*tenant.name).collect();
        let limits: Vec<BranchLimits> = self
            .accounts
            .iter()
            .map(|account| {
                let tenants = account.tenant.as_deref().map(|tenant| tree.line(tenant)).unwrap_or_default();
                let owners = std::iter::once(Arc::from(account.links.name.as_str())).chain(tenants);
                let owners: Vec<Arc<str>> = owners.collect();
                let keys_of = |owner: &Arc<str>| keys.get(&**owner).copied();
                let has_quota = |owner: &&Arc<str>| keys_of(owner)?.messages_per_day;
                let is_charged = |owner: &&Arc<str>| charged.contains(&***owner);
                BranchLimits {
                    day_quotas: owners.iter().filter(|owner| has_quota(owner).is_some()).cloned().collect(),
                    charged: owners.iter().filter(is_charged).cloned().collect(),
                    max_price: owners.iter().filter_map(|owner| keys_of(owner)?.max_price).min(),
                }
            })
            .collect();
        for (account, limits) in self.accounts.iter_mut().zip(limits) {
            account.queue.branch = limits;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// With the hash of the password `secret`.
    const ACCOUNT: &str = concat!(
        "password-hash = \"$argon2id$v=19$m=64,t=1,p=1$",
        "85hrG3wk8kcb2sJTCOk1yg$vVqmsA3TKLPeDWcMpGJjcULw5ivDKUITdjoQhpY8L8c\"\n"
    );

    fn parsed(tables: &str) -> Result<Config, Vec<String>> {
        let text = format!("[appliance]\ndata = \"/x\"\n{tables}");
        Config::parse(&text, Path::new("/nowhere"))
            .map_err(|problems| problems.iter().map(ToString::to_string).collect())
    }

    fn tenant(name: &str, parent: Option<&str>) -> String {
        let parent = parent.map_or(String::new(), |parent| format!("parent = \"{parent}\"\n"));
        format!("[[tenant]]\nname = \"{name}\"\n{parent}")
    }

    #[test]
    fn accounts_belong_to_the_branches_above_them() {
        let tables = format!(
            "{}{}[[account]]\nname = \"acme\"\ntenant = \"shop\"\n{ACCOUNT}",
            tenant("shop", Some("north")),
            tenant("north", None)
        );
        let tree = parsed(&tables).unwrap().tenant_tree();
        assert!(tree.branch("north").accounts.contains("acme"));
        let tenants: Vec<_> =
            tree.accounts().map(|(account, tenant)| (&**account, tenant.map(|one| &**one))).collect();
        assert_eq!(tenants, [("acme", Some("shop"))]);
        assert!(parsed("").unwrap().tenant_tree().tenants().next().is_none());
    }

    #[test]
    fn unknown_tenants_are_reported_at_their_key() {
        assert_eq!(
            parsed(&tenant("shop", Some("north"))).unwrap_err(),
            ["line 5: tenant[0].parent: \"north\" is not a [[tenant]]; known are: shop"]
        );
        let account = format!("[[account]]\nname = \"acme\"\ntenant = \"shop\"\n{ACCOUNT}");
        assert_eq!(
            parsed(&account).unwrap_err(),
            ["line 5: account[0].tenant: \"shop\" is not a [[tenant]]; known are: none"]
        );
    }

    #[test]
    fn a_cycle_is_reported_at_each_of_its_tenants() {
        let tables =
            [tenant("a", Some("b")), tenant("b", Some("a")), tenant("c", None), tenant("d", Some("d"))];
        assert_eq!(
            parsed(&tables.concat()).unwrap_err(),
            [
                "line 5: tenant[0].parent: the tenants a, b, a are parents of each other; change one of their parents",
                "line 8: tenant[1].parent: the tenants b, a, b are parents of each other; change one of their parents",
                "line 13: tenant[3].parent: the tenants d, d are parents of each other; change one of their parents",
            ]
        );
    }

    #[test]
    fn the_tree_has_at_most_eight_levels() {
        let level = |number: usize| {
            tenant(&format!("t{number}"), (number > 1).then(|| format!("t{}", number - 1)).as_deref())
        };
        let tables = |levels| (1..=levels).map(level).collect::<String>();
        assert!(parsed(&tables(8)).is_ok());
        let problems = parsed(&tables(9)).unwrap_err();
        assert!(
            problems.len() == 1 && problems[0].contains("tenant[8].parent: more than 8 tenants"),
            "{problems:?}"
        );
    }

    #[test]
    fn a_rate_is_more_than_nothing() {
        let with = |rate: &str| parsed(&format!("{}rate = {rate}\n", tenant("shop", None)));
        assert_eq!(with("25.0").unwrap().tenants[0].burst, 3);
        assert_eq!(
            with("0.0").unwrap_err(),
            ["line 5: tenant[0].rate: must be above 0 messages per second; omit it for no limit"]
        );
    }

    #[test]
    fn a_tenant_has_a_name_of_its_own() {
        let twice = [tenant("shop", None), tenant("shop", None)].concat();
        assert_eq!(
            parsed(&twice).unwrap_err(),
            ["line 6: tenant[1].name: \"shop\" is also the name of another tenant"]
        );
        let account = format!("{}[[account]]\nname = \"shop\"\n{ACCOUNT}", tenant("shop", None));
        assert_eq!(
            parsed(&account).unwrap_err(),
            [
                "line 4: tenant[0].name: \"shop\" is also the name of an account or peer (account); names must differ"
            ]
        );
        assert!(parsed(&tenant("Shop 1", None)).is_err());
    }

    fn account(name: &str, keys: &str) -> String {
        format!(
            "[[account]]\nname = \"{name}\"\npassword-hash = \"$argon2id$v=19$m=64,t=1,p=1$85hrG3wk8kcb2sJTCOk1yg$\
             vVqmsA3TKLPeDWcMpGJjcULw5ivDKUITdjoQhpY8L8c\"\n{keys}"
        )
    }

    #[test]
    fn an_account_counts_for_its_own_quota_and_those_of_all_tenants_above_it() {
        let tables = [
            "[[tenant]]\nname = \"north\"\nmessages-per-day = 100\nzone = \"Europe/Berlin\"\n",
            "[[tenant]]\nname = \"middle\"\nparent = \"north\"\n",
            "[[tenant]]\nname = \"shop\"\nparent = \"middle\"\nmessages-per-day = 1000\n",
            &account("one", "tenant = \"shop\"\nmessages-per-day = 10\n"),
            &account("two", "tenant = \"middle\"\n"),
            &account("three", ""),
        ]
        .concat();
        let config = parsed(&tables).unwrap();
        let owners: Vec<Vec<&str>> = config
            .accounts
            .iter()
            .map(|account| account.queue.branch.day_quotas.iter().map(|owner| &**owner).collect())
            .collect();
        assert_eq!(owners, [vec!["one", "shop", "north"], vec!["north"], vec![]]);
        let quotas = config.pace_settings().day_quotas;
        let quotas: Vec<_> =
            quotas.iter().map(|quota| (&*quota.owner, quota.amount, quota.zone.name())).collect();
        assert_eq!(quotas, [("one", 10, "UTC"), ("north", 100, "Europe/Berlin"), ("shop", 1000, "UTC")]);
    }

    #[test]
    fn charged_tenants_and_the_lowest_price_come_from_the_whole_line() {
        let tables = [
            "[[tenant]]\nname = \"north\"\ncharged = true\nmax-price = \"0.05\"\n",
            "[[tenant]]\nname = \"shop\"\nparent = \"north\"\ncharged = true\nmax-price = \"1\"\n",
            &account("one", "tenant = \"shop\"\nmax-price = \"0.0625\"\n"),
            &account("two", "max-price = \"2.5\"\n"),
            &account("three", ""),
        ]
        .concat();
        let config = parsed(&tables).unwrap();
        let limits: Vec<(Vec<&str>, Option<u64>)> = config
            .accounts
            .iter()
            .map(|account| &account.queue.branch)
            .map(|branch| (branch.charged.iter().map(|owner| &**owner).collect(), branch.max_price))
            .collect();
        assert_eq!(
            limits,
            [(vec!["shop", "north"], Some(50_000)), (vec![], Some(2_500_000)), (vec![], None)]
        );
        let problems = parsed(&account("one", "max-price = \"0,05\"\n")).unwrap_err();
        assert!(problems.len() == 1 && problems[0].contains("an amount such as \"0.05\""), "{problems:?}");
    }

    #[test]
    fn wrong_quotas_are_reported_at_their_keys() {
        assert_eq!(
            parsed("[[tenant]]\nname = \"north\"\nmessages-per-day = 0\nzone = \"Mars\"\n").unwrap_err(),
            [
                "line 5: tenant[0].messages-per-day: is 0, and must be 1 to 9223372036854775807",
                "line 6: tenant[0].zone: the time zone \"Mars\" is unknown; a zone is a name of the IANA database, such as \
                 Europe/Berlin or UTC"
            ]
        );
    }
}
