//! Limits of accounts and of tenants' branches that the engine keeps: messages a day, and prices.

use calendar::Zone;
use configuration::{KeyFormat, Keys, Section, Shape};
use engine::DayQuotaSettings;
use model::parse_millionths;
use serde_json::json;

/// Limits of an account, or of all accounts of a tenant's branch together.
#[derive(Debug, Clone, PartialEq, Keys)]
#[keys(live = "takes effect at once")]
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
    /// The day quota, if there is one. `owner`: the account or tenant.
    pub(super) fn day_quota(&self, owner: &str) -> Option<DayQuotaSettings> {
        let (amount, zone) = (self.messages_per_day?, Zone::find(&self.zone)?);
        Some(DayQuotaSettings { owner: owner.into(), amount, zone })
    }
}
