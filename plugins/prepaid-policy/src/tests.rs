use super::*;
use proptest::prelude::*;

const SHIPPED: &str = include_str!("../../../policies/prices.toml");

const SHORT: &str = r#"
default-tariff = "retail"

[[tariff]]
name = "retail"
[tariff.prices]
"" = "0.05"
"86" = "0.035"
"8613" = "0.02"
"999" = "0"
"888" = "1000000"

[[tariff]]
name = "wholesale"
refund-on-failure = false
table = "prices"

[[account]]
name = ["acme", "acme-two"]
tariff = "wholesale"
ledger = "acme-holding"

[[account]]
name = "ops"
free = true

[[account]]
name = "late"
refuse = true

[[account]]
name = "shop"
ledger = "shop-ltd"
"#;

/// The longest prefix of the destination, as the host finds it.
fn inline(tariff: &Tariff, destination: &str) -> Option<PriceMatch> {
    let matching = tariff.prices.iter().filter(|(prefix, _)| destination.starts_with(prefix));
    let (prefix, price) = matching.max_by_key(|(prefix, _)| prefix.len())?;
    Some(PriceMatch { length: u32::try_from(prefix.len()).unwrap(), price: Ok(*price) })
}

fn quote(origin: &str, destination: &str, parts: u16) -> Quote {
    Policy::parse(SHORT).unwrap().quote(origin, parts, |_, tariff| inline(tariff, destination))
}

fn charge_of(quote: Quote) -> (String, u64, bool) {
    match quote {
        Quote::Charge { account, amount, keep_on_failure, .. } => (account, amount, keep_on_failure),
        other => panic!("not charged: {other:?}"),
    }
}

fn refused(quote: Quote) -> String {
    match quote {
        Quote::Refuse { note } => note,
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn the_shipped_document_is_valid() {
    Policy::parse(SHIPPED).unwrap();
}

#[test]
fn the_longest_prefix_is_charged_for_each_part() {
    assert_eq!(charge_of(quote("anyone", "8613912345678", 3)), ("anyone".to_owned(), 60_000, false));
    assert_eq!(charge_of(quote("anyone", "8621", 1)), ("anyone".to_owned(), 35_000, false));
    assert_eq!(charge_of(quote("shop", "49", 2)), ("shop-ltd".to_owned(), 100_000, false));
    // A message has at least one segment.
    assert_eq!(charge_of(quote("anyone", "49", 0)).1, 50_000);
}

#[test]
fn zero_prices_are_free() {
    assert_eq!(quote("anyone", "9991", 200), Quote::Free);
    assert_eq!(quote("ops", "8613", 1), Quote::Free);
}

#[test]
fn unchargeable_messages_are_refused() {
    assert!(refused(quote("late", "86", 1)).contains("refused"));
    assert!(refused(quote("acme", "86", 1)).contains("wholesale has no price"));
    assert!(refused(quote("anyone", "888", 2)).contains("more than a message may"));
    assert_eq!(charge_of(quote("anyone", "888", 1)).1, MAX_AMOUNT);
}

#[test]
fn a_table_price_wins_with_a_longer_prefix_only() {
    let policy = Policy::parse(SHORT).unwrap();
    let row = PriceMatch::row(2, " 0.5 ");
    assert_eq!(
        charge_of(policy.quote("acme-two", 1, |_, _| Some(row.clone()))),
        ("acme-holding".to_owned(), 500_000, true)
    );
    let own = PriceMatch { length: 2, price: Ok(1) };
    assert_eq!(PriceMatch::longer(Some(own.clone()), Some(row.clone())), Some(own.clone()));
    assert_eq!(
        PriceMatch::longer(Some(own.clone()), Some(PriceMatch { length: 3, ..row.clone() })).unwrap().price,
        Ok(500_000)
    );
    assert_eq!(PriceMatch::longer(None, Some(row.clone())), Some(row));
    assert_eq!(PriceMatch::longer(Some(own.clone()), None), Some(own));
    let broken = policy.quote("acme", 1, |_, _| Some(PriceMatch::row(2, "cheap")));
    assert!(refused(broken).contains("\"cheap\" is not a price"));
}

#[test]
fn errors_name_the_line_and_the_mistake() {
    let tariff = "[[tariff]]\nname = \"t\"\nprices = { \"\" = \"0.1\" }\n";
    for (document, expected) in [
        (String::new(), "neither"),
        (tariff.to_owned(), "neither"),
        (
            format!("default-tariff = \"x\"\n{tariff}"),
            "line 1: `default-tariff`: there is no [[tariff]] of the name \"x\"; there is: t",
        ),
        (format!("{tariff}[[account]]\nname = \"a\"\n"), "line 4: this account has no `tariff`"),
        (format!("{tariff}[[account]]\nname = \"a\"\ntariff = \"u\"\n"), "line 4: there is no [[tariff]]"),
        (format!("{tariff}[[account]]\nname = \"a\"\nfree = true\nrefuse = true\n"), "keep one"),
        (format!("{tariff}[[account]]\nname = \"a\"\nfree = true\nledger = \"b\"\n"), "is not charged"),
        (format!("{tariff}[[account]]\nname = \"a\"\ntariff = \"t\"\nledger = \"\"\n"), "1 to 64"),
        (
            format!(
                "{tariff}[[account]]\nname = \"a\"\nfree = true\n[[account]]\nname = [\"b\", \"a\"]\nfree = true\n"
            ),
            "line 7: account \"a\" has its [[account]] at line 4",
        ),
        (format!("default-tariff = \"t\"\n{tariff}{tariff}"), "line 5: there are two tariffs"),
        (
            "default-tariff = \"t\"\n[[tariff]]\nname = \"t\"\n".to_owned(),
            "line 2: tariff \"t\" has no price",
        ),
        (
            "default-tariff = \"t\"\n[[tariff]]\nname = \"t\"\nprices = { \"+1\" = \"1\" }\n".to_owned(),
            "leave out the plus sign",
        ),
        (
            "default-tariff = \"t\"\n[[tariff]]\nname = \"t\"\nprices = { \"1\" = 0.1 }\n".to_owned(),
            "a price in quotes",
        ),
        (
            "default-tariff = \"t\"\n[[tariff]]\nname = \"t\"\nprices = { \"1\" = \"1,5\" }\n".to_owned(),
            "\"1,5\" is not a price",
        ),
        (
            "default-tariff = \"t\"\n[[tariff]]\nname = \"t\"\nprice = \"1\"\n".to_owned(),
            "unknown field `price`",
        ),
    ] {
        let error = Policy::parse(&document).unwrap_err();
        assert!(error.contains(expected), "{document:?}: {error}");
    }
}

proptest! {
    #[test]
    fn any_text_is_a_policy_or_refused(
        text in "([\\[\\]{}=\",. \n#a-z0-9]|tariff|account|prices|name|default-tariff|free|true){0,60}",
    ) {
        if let Err(refusal) = Policy::parse(&text) {
            prop_assert!(!refusal.is_empty());
        }
    }

    /// The host accepts the amount for every price and number of segments.
    #[test]
    fn every_amount_is_valid_for_the_ledger(parts: u16, price: u64, origin in "(acme|shop|ops|late|anyone)") {
        let policy = Policy::parse(SHORT).unwrap();
        let quote = policy.quote(&origin, parts, |_, _| Some(PriceMatch { length: 0, price: Ok(price) }));
        if let Quote::Charge { amount, account, .. } = quote {
            prop_assert!((1..=MAX_AMOUNT).contains(&amount) && !account.is_empty());
        }
    }

    #[test]
    fn any_value_of_a_table_is_a_price_or_refused(value in ".{0,30}") {
        let policy = Policy::parse(SHORT).unwrap();
        let quote = policy.quote("acme", 1, |_, _| Some(PriceMatch::row(0, &value)));
        let is_refused = matches!(quote, Quote::Refuse { .. });
        prop_assert_eq!(is_refused, policy_values::price(value.trim()).is_err());
    }
}
