//! The tree of tenants that share the appliance, and the data that each may see.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// The greatest depth of the tree: at most this many tenants from a tenant, itself included, up to its root.
pub const MAX_TENANT_DEPTH: usize = 8;

/// Replaces the name of a peer that a tenant may not see.
pub const HIDDEN_PEER: &str = "(other)";

/// The tree of tenants, with the accounts of each.
///
/// Names of tenants, accounts and peers differ from each other, so that a ledger account has one owner.
#[derive(Debug, Clone, Default)]
pub struct TenantTree {
    parents: BTreeMap<Arc<str>, Option<Arc<str>>>,
    branches: HashMap<Arc<str>, Arc<TenantBranch>>,
    accounts: BTreeMap<Arc<str>, Option<Arc<str>>>,
    limits: HashMap<Arc<str>, ConfiguredLimits>,
}

/// The configured limits of a tenant's branch, for display.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ConfiguredLimits {
    /// Messages per second; `None`: no limit.
    pub rate: Option<f64>,
    /// The highest price of a message, in millionths of the currency unit; `None`: no limit.
    pub max_price: Option<u64>,
    /// Whether its ledger account is charged for the messages of its branch.
    pub is_charged: bool,
}

/// A tenant with all tenants below it, and their accounts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TenantBranch {
    /// The tenant, and all tenants below it.
    pub tenants: BTreeSet<Arc<str>>,
    /// The accounts of these tenants.
    pub accounts: BTreeSet<Arc<str>>,
    /// The peers that belong to no tenant, whose names every caller may see.
    shared_peers: Arc<BTreeSet<Arc<str>>>,
}

/// The data that a caller may see: everything, or the data of a branch of the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AccountScope {
    /// Everything: the caller belongs to no tenant.
    Everything,
    /// Only this branch. Data outside it must look as if it did not exist.
    Branch(Arc<TenantBranch>),
}

impl TenantTree {
    /// Builds the tree. `tenants`: names with their parents; `accounts`: names with their tenants, if they have one;
    /// `shared_peers`: all other peers. Parents exist and form no cycle.
    #[must_use]
    pub fn new(
        tenants: impl IntoIterator<Item = (Arc<str>, Option<Arc<str>>)>,
        accounts: impl IntoIterator<Item = (Arc<str>, Option<Arc<str>>)>,
        shared_peers: impl IntoIterator<Item = Arc<str>>,
    ) -> Self {
        let parents: BTreeMap<_, _> = tenants.into_iter().collect();
        let shared_peers: Arc<BTreeSet<_>> = Arc::new(shared_peers.into_iter().collect());
        let mut tree = Self { parents, ..Self::default() };
        let empty = || TenantBranch { shared_peers: shared_peers.clone(), ..TenantBranch::default() };
        let mut branches: HashMap<Arc<str>, TenantBranch> = HashMap::new();
        for tenant in tree.parents.keys() {
            for above in tree.line(tenant) {
                branches.entry(above).or_insert_with(empty).tenants.insert(tenant.clone());
            }
        }
        for (account, tenant) in accounts {
            let tenant = tenant.filter(|tenant| tree.parents.contains_key(tenant));
            for above in tenant.iter().flat_map(|tenant| tree.line(tenant)) {
                branches.entry(above).or_insert_with(empty).accounts.insert(account.clone());
            }
            tree.accounts.insert(account, tenant);
        }
        tree.branches = branches.into_iter().map(|(name, branch)| (name, Arc::new(branch))).collect();
        tree
    }

    /// Adds the limits of tenants, by their names.
    #[must_use]
    pub fn with_limits(mut self, limits: impl IntoIterator<Item = (Arc<str>, ConfiguredLimits)>) -> Self {
        self.limits = limits.into_iter().collect();
        self
    }

    /// The limits of a tenant.
    #[must_use]
    pub fn limits(&self, tenant: &str) -> ConfiguredLimits {
        self.limits.get(tenant).copied().unwrap_or_default()
    }

    /// A tenant and the tenants above it, in this order. Ends after [`MAX_TENANT_DEPTH`] tenants.
    #[must_use]
    pub fn line(&self, tenant: &str) -> Vec<Arc<str>> {
        let mut line = Vec::new();
        let mut next = self.parents.get_key_value(tenant);
        while let Some((name, parent)) = next
            && line.len() < MAX_TENANT_DEPTH
        {
            line.push(name.clone());
            next = parent.as_ref().and_then(|parent| self.parents.get_key_value(parent));
        }
        line
    }

    /// All tenants with their parents, by name.
    pub fn tenants(&self) -> impl Iterator<Item = (&Arc<str>, Option<&Arc<str>>)> {
        self.parents.iter().map(|(name, parent)| (name, parent.as_ref()))
    }

    /// All accounts with their tenants, by name.
    pub fn accounts(&self) -> impl Iterator<Item = (&Arc<str>, Option<&Arc<str>>)> {
        self.accounts.iter().map(|(name, tenant)| (name, tenant.as_ref()))
    }

    /// Whether there is a tenant of this name.
    #[must_use]
    pub fn has_tenant(&self, name: &str) -> bool {
        self.parents.contains_key(name)
    }

    /// A tenant's branch. The branch of an unknown tenant is empty: its users see nothing.
    #[must_use]
    pub fn branch(&self, tenant: &str) -> Arc<TenantBranch> {
        self.branches.get(tenant).cloned().unwrap_or_default()
    }
}

impl TenantBranch {
    /// The part of the branch that belongs to one account: no tenants, and the account itself if the branch has it.
    #[must_use]
    pub fn of_account(&self, account: &str) -> Self {
        let accounts = self.accounts.get(account).cloned();
        Self {
            tenants: BTreeSet::new(),
            accounts: accounts.into_iter().collect(),
            shared_peers: self.shared_peers.clone(),
        }
    }
}

impl AccountScope {
    /// The branch; `None` if the caller sees everything.
    #[must_use]
    pub fn branch(&self) -> Option<&Arc<TenantBranch>> {
        match self {
            Self::Everything => None,
            Self::Branch(branch) => Some(branch),
        }
    }

    /// Whether an account's data may be seen.
    #[must_use]
    pub fn has_account(&self, account: &str) -> bool {
        self.branch().is_none_or(|branch| branch.accounts.contains(account))
    }

    /// Whether a tenant's data, such as its users, may be seen. `None`: the data of users without a tenant.
    #[must_use]
    pub fn has_tenant(&self, tenant: Option<&str>) -> bool {
        self.branch().is_none_or(|branch| tenant.is_some_and(|tenant| branch.tenants.contains(tenant)))
    }

    /// Whether a ledger account may be seen. A ledger account has the name of the account or tenant that owns it.
    #[must_use]
    pub fn has_ledger_account(&self, name: &str) -> bool {
        self.has_account(name) || self.has_tenant(Some(name))
    }

    /// Whether a peer's name may be known: an account of the branch, or a peer that belongs to no tenant.
    #[must_use]
    pub fn has_peer(&self, peer: &str) -> bool {
        self.branch()
            .is_none_or(|branch| branch.accounts.contains(peer) || branch.shared_peers.contains(peer))
    }

    /// A peer's name as it is shown: [`HIDDEN_PEER`] if the name may not be known.
    #[must_use]
    pub fn shown_peer<'a>(&self, peer: &'a str) -> &'a str {
        if peer.is_empty() || self.has_peer(peer) { peer } else { HIDDEN_PEER }
    }

    /// The accounts to which a search is restricted, by name; `None`: no restriction.
    #[must_use]
    pub fn accounts(&self) -> Option<Vec<Arc<str>>> {
        self.branch().map(|branch| branch.accounts.iter().cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> TenantTree {
        let pair = |name: &str, other: Option<&str>| (Arc::from(name), other.map(Arc::from));
        TenantTree::new(
            [pair("north", None), pair("north-shop", Some("north")), pair("south", None)],
            [
                pair("north-direct", Some("north")),
                pair("shop", Some("north-shop")),
                pair("bank", Some("south")),
                pair("own", None),
                pair("stray", Some("gone")),
            ],
            ["smsc".into()],
        )
    }

    fn scope(tenant: &str) -> AccountScope {
        AccountScope::Branch(tree().branch(tenant))
    }

    #[test]
    fn a_branch_has_all_below_its_tenant_and_nothing_else() {
        let north = scope("north");
        assert_eq!(
            north.accounts().unwrap().iter().map(|name| &**name).collect::<Vec<_>>(),
            ["north-direct", "shop"]
        );
        assert!(north.has_tenant(Some("north")) && north.has_tenant(Some("north-shop")));
        assert!(!north.has_tenant(Some("south")) && !north.has_tenant(None));
        for foreign in ["bank", "own", "stray", "smsc", ""] {
            assert!(!north.has_account(foreign), "{foreign}");
        }
        let below = scope("north-shop");
        assert!(below.has_account("shop") && !below.has_account("north-direct"));
        assert!(!below.has_tenant(Some("north")), "a tenant does not see its parent");
    }

    #[test]
    fn an_unknown_tenant_sees_nothing() {
        let nobody = scope("gone");
        assert_eq!(nobody.accounts(), Some(Vec::new()));
        assert!(!nobody.has_account("stray") && !nobody.has_tenant(Some("gone")) && !nobody.has_peer("smsc"));
    }

    #[test]
    fn names_of_other_accounts_are_hidden() {
        let south = scope("south");
        assert_eq!(south.shown_peer("bank"), "bank");
        assert_eq!(south.shown_peer("smsc"), "smsc");
        assert_eq!(south.shown_peer(""), "");
        for hidden in ["shop", "own", "removed"] {
            assert_eq!(south.shown_peer(hidden), HIDDEN_PEER, "{hidden}");
        }
        assert_eq!(AccountScope::Everything.shown_peer("shop"), "shop");
        assert!(south.has_ledger_account("south") && !south.has_ledger_account("north"));
    }

    #[test]
    fn one_account_of_a_branch_is_less_than_the_branch() {
        let north = tree().branch("north");
        let shop = AccountScope::Branch(Arc::new(north.of_account("shop")));
        assert!(shop.has_account("shop") && !shop.has_account("north-direct"));
        assert!(!shop.has_tenant(Some("north-shop")));
        let bank = AccountScope::Branch(Arc::new(north.of_account("bank")));
        assert!(!bank.has_account("bank"), "an account of another branch");
    }

    #[test]
    fn the_line_of_a_tenant_ends_even_in_a_cycle() {
        let pair = |name: &str, parent: &str| (Arc::from(name), Some(Arc::from(parent)));
        let tree = TenantTree::new([pair("a", "b"), pair("b", "a")], [], []);
        assert_eq!(tree.line("a").len(), MAX_TENANT_DEPTH);
    }
}
