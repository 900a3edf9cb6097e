/// Who is in a network: subscriber `n` has an IMSI and a number that both end in the ten digits of `n`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subscribers {
    /// How many.
    pub count: u64,
    /// Begin of every number; ten digits follow.
    pub prefix: String,
}

/// Begin of every IMSI: a network that is only for tests.
const NETWORK: u64 = 101;
/// What ten digits can count.
const TEN_DIGITS: u64 = 10_000_000_000;

impl Subscribers {
    /// So many, whose numbers begin like this.
    pub fn new(count: u64, prefix: &str) -> Self {
        Self { count, prefix: prefix.to_owned() }
    }

    /// The IMSI, as a number; it has 15 digits with zeros in front.
    pub fn imsi(subscriber: u64) -> u64 {
        NETWORK * TEN_DIGITS + subscriber % TEN_DIGITS
    }

    /// The IMSI's digits.
    pub fn imsi_digits(subscriber: u64) -> String {
        format!("{:015}", Self::imsi(subscriber))
    }

    /// Who has this IMSI.
    pub fn by_imsi(&self, imsi: u64) -> Option<u64> {
        let subscriber = imsi.checked_sub(NETWORK * TEN_DIGITS)?;
        (subscriber < self.count).then_some(subscriber)
    }

    /// The number, without a plus sign.
    pub fn msisdn(&self, subscriber: u64) -> String {
        format!("{}{:010}", self.prefix, subscriber % TEN_DIGITS)
    }

    /// Who has this number.
    pub fn by_msisdn(&self, msisdn: &str) -> Option<u64> {
        let digits = msisdn.strip_prefix(&self.prefix)?;
        let subscriber = (digits.len() == 10).then(|| digits.parse().ok())??;
        (subscriber < self.count).then_some(subscriber)
    }
}
