//! Limits of accounts and of tenants' branches that the engine enforces: messages per day, and prices.

use calendar::Zone;
use configuration::{KeyFormat, Keys, Section, Shape};
use engine::DayQuotaSettings;
use model::parse_millionths;
use serde_json::json;

/// Limits of an account, or of all accounts of a tenant's branch together.
#[derive(Debug, Clone, PartialEq, Keys)]
#[keys(live = "takes effect at once")]
pub(crate) struct BranchLimitKeys {
    /// Maximum number of messages that are accepted per calendar day: from the account, or from all accounts of the
    /// tenant's branch together. Further messages are refused, as with `rate`. The count survives restarts. Segments
    /// are not counted.
    #[key(range = 1.., default_as = "no limit")]
    pub(crate) messages_per_day: Option<u64>,
    /// IANA time zone of the days of `messages-per-day`.
    #[key(default = "UTC", check = check_zone)]
    zone: String,
    /// The highest price of a message, in quotes, in the operator's currency, with at most six decimals. A message is
    /// refused if the biller's price is higher. The lowest limit of the account and of all tenants above it applies.
    #[key(format = Price, default_as = "no limit")]
    pub(crate) max_price: Option<u64>,
}

/// A quoted amount of money; parsed to millionths.
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
    /// The day quota; `None` if none is set. `owner` is the account or tenant.
    pub(super) fn day_quota(&self, owner: &str) -> Option<DayQuotaSettings> {
        let (amount, zone) = (self.messages_per_day?, Zone::find(&self.zone)?);
        Some(DayQuotaSettings { owner: owner.into(), amount, zone })
    }
}
