//! A resolver that asks the home location register.

use resolver_policy::hlr::{Policy, Reply};
use switchyard_sdk::{Resolved, Resolver, hlr};

struct HlrResolver(Policy);

impl Resolver for HlrResolver {
    fn configure(document: &str) -> Result<Self, String> {
        Policy::parse(document).map(Self)
    }

    fn resolve(&self, msisdn: &str) -> Resolved {
        let ask = |number: &str| match hlr::look_up(number) {
            Ok(found) => Reply::Subscriber { imsi: found.imsi, serving: found.serving },
            Err(hlr::Failure::Unknown) => Reply::Unknown,
            Err(hlr::Failure::Unreachable) => Reply::Unreachable,
        };
        self.0.resolve(msisdn, ask).into()
    }
}

switchyard_sdk::export_resolver!(HlrResolver);
