/// Subscribers of a simulated network: IMSI and MSISDN of subscriber `n` both end in the ten digits of `n`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subscribers {
    /// Number of subscribers.
    pub count: u64,
    /// Prefix of every MSISDN; ten digits follow.
    pub prefix: String,
}

/// Prefix of every IMSI: a test network.
const NETWORK: u64 = 101;
/// Number of values of ten digits.
const TEN_DIGITS: u64 = 10_000_000_000;

impl Subscribers {
    /// This many subscribers with this MSISDN prefix.
    pub fn new(count: u64, prefix: &str) -> Self {
        Self { count, prefix: prefix.to_owned() }
    }

    /// The IMSI as a number; it has 15 digits with leading zeros.
    pub fn imsi(subscriber: u64) -> u64 {
        NETWORK * TEN_DIGITS + subscriber % TEN_DIGITS
    }

    /// The digits of the IMSI.
    pub fn imsi_digits(subscriber: u64) -> String {
        format!("{:015}", Self::imsi(subscriber))
    }

    /// The subscriber with this IMSI.
    pub fn by_imsi(&self, imsi: u64) -> Option<u64> {
        let subscriber = imsi.checked_sub(NETWORK * TEN_DIGITS)?;
        (subscriber < self.count).then_some(subscriber)
    }

    /// The MSISDN, without a plus sign.
    pub fn msisdn(&self, subscriber: u64) -> String {
        format!("{}{:010}", self.prefix, subscriber % TEN_DIGITS)
    }

    /// The subscriber with this MSISDN.
    pub fn by_msisdn(&self, msisdn: &str) -> Option<u64> {
        let digits = msisdn.strip_prefix(&self.prefix)?;
        let subscriber = (digits.len() == 10).then(|| digits.parse().ok())??;
        (subscriber < self.count).then_some(subscriber)
    }
}
