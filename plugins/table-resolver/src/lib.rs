//! A resolver that looks subscribers up in a table of the appliance.

use resolver_policy::table::Policy;
use switchyard_sdk::{Resolved, Resolver, tables};

struct TableResolver {
    policy: Policy,
    table: u32,
}

impl Resolver for TableResolver {
    fn configure(document: &str) -> Result<Self, String> {
        let policy = Policy::parse(document)?;
        let table = tables::open(&policy.table)?;
        Ok(Self { policy, table })
    }

    fn resolve(&self, msisdn: &str) -> Resolved {
        self.policy.resolve(msisdn, |number| tables::get(self.table, number)).into()
    }
}

switchyard_sdk::export_resolver!(TableResolver);
