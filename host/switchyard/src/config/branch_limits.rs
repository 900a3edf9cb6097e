//! Limits of accounts and of tenants' branches that the engine keeps: messages a day, and prices.

use super::Config;
use calendar::Zone;
use configuration::{KeyFormat, Keys, Section, Shape};
use engine::{BranchLimits, DayQuotaSettings};
use model::{TenantTree, parse_millionths};
use serde_json::json;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Limits of an account, or of all accounts of a tenant's branch together.
#[derive(Debug, Clone, PartialEq, Keys)]
#[keys(live = "takes effect at once; what was accepted today counts")]
pub(crate) struct BranchLimitKeys {
    /// Maximum messages accepted on a calendar day: of the account, or of all accounts of the tenant's branch together. More are
    /// refused, as with `rate`. The count survives restarts. Segments are not counted.
    #[key(range = 1.., default_as = "no limit")]
    pub(crate) messages_per_day: Option<u64>,
    /// The time zone of the days of `messages-per-day`, by IANA name.
    #[key(default = "UTC", check = check_zone)]
    zone: String,
    /// The highest price of a message, in quotes, in the operator's currency, with at most six decimals. A message that the
    /// biller prices higher is refused. The lowest of the account and of the tenants above it counts.
    #[key(format = Price, default_as = "no limit")]
    pub(crate) max_price: Option<u64>,
}

/// An amount of money in quotes; read as millionths.
struct Price;

impl KeyFormat<u64> for Price {
    fn read(&self, section: &Section<'_>, key: &'static str) -> Option<u64> {
        section.parsed(key, parse_millionths, "an amount such as \"0.05\", with at most six decimals")
    }

    fn shape(&self) -> Shape {
        Shape::Value("string", json!({ "type": "string" }))
    }
}

fn check_zone(name: &str) -> Result<(), String> {
    Zone::find(name).map(drop).ok_or_else(|| Zone::unknown(name))
}

impl BranchLimitKeys {
    fn day_quota(&self, owner: &str) -> Option<DayQuotaSettings> {
        let (amount, zone) = (self.messages_per_day?, Zone::find(&self.zone)?);
        Some(DayQuotaSettings { owner: owner.into(), amount, zone })
    }
}

impl Config {
    /// The limits of all accounts and tenants, by their names, which differ.
    fn branch_limit_keys(&self) -> impl Iterator<Item = (&str, &BranchLimitKeys)> {
        let accounts = self.accounts.iter().map(|account| (&*account.links.name, &account.limits));
        accounts.chain(self.tenants.iter().map(|tenant| (&*tenant.name, &tenant.limits)))
    }

    /// The day quotas of all accounts and tenants.
    pub(super) fn day_quotas(&self) -> Vec<DayQuotaSettings> {
        self.branch_limit_keys().filter_map(|(owner, keys)| keys.day_quota(owner)).collect()
    }

    /// Gives each account's queue its own limits and those of the tenants above it.
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

    fn parsed(tables: &str) -> Result<Config, Vec<String>> {
        let text = format!("[appliance]\ndata = \"/x\"\n{tables}");
        Config::parse(&text, Path::new("/nowhere"))
            .map_err(|problems| problems.iter().map(ToString::to_string).collect())
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
                "line 5: tenant[0].messages-per-day: is 0; allowed: at least 1",
                "line 6: tenant[0].zone: the time zone \"Mars\" is unknown; a zone is a name of the IANA database, such as \
                 Europe/Berlin or UTC"
            ]
        );
    }
}
