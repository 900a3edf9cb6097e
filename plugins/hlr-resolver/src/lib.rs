//! A resolver that queries the home location register.

use resolver_policy::hlr::{HlrReply, Policy};
use switchyard_sdk::{Resolved, Resolver, hlr};

struct HlrResolver(Policy);

impl Resolver for HlrResolver {
    fn configure(document: &str) -> Result<Self, String> {
        Policy::parse(document).map(Self)
    }

    fn resolve(&self, msisdn: &str) -> Resolved {
        let ask = |number: &str| match hlr::look_up(number) {
            Ok(found) => HlrReply::Subscriber { imsi: found.imsi, serving: found.serving },
            Err(hlr::Failure::Unknown) => HlrReply::Unknown,
            Err(hlr::Failure::Unreachable) => HlrReply::Unreachable,
        };
        self.0.resolve(msisdn, ask).into()
    }
}

switchyard_sdk::export_resolver!(HlrResolver);
