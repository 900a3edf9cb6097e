//! Documents and the messages that they stop.

use super::*;
use pace_policy::{BucketLimit, Period, Window, WindowHours};
use proptest::prelude::*;
use std::cell::RefCell;

const SHIPPED: &str = include_str!("../../../policies/firewall.toml");

/// A message, tables, and counters whose windows never end.
#[derive(Default)]
struct TestHost {
    text: Option<String>,
    urls: Vec<String>,
    hash: Option<u64>,
    tlvs: Vec<(u16, String)>,
    tables: Vec<Vec<(String, String)>>,
    counters: RefCell<HashMap<(String, String), u64>>,
    /// The number of details that were fetched.
    fetched: RefCell<usize>,
}

impl TestHost {
    fn with_text(text: &str) -> Self {
        let is_link = |word: &&str| word.contains(".example");
        let urls = text.split_whitespace().filter(is_link).map(str::to_owned).collect();
        Self { text: Some(text.to_owned()), urls, ..Self::default() }
    }

    fn with_rows(mut self, rows: &[(&str, &str)]) -> Self {
        self.tables.push(rows.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect());
        self
    }
}

impl Host for TestHost {
    fn text(&self) -> Option<String> {
        *self.fetched.borrow_mut() += 1;
        self.text.clone()
    }

    fn urls(&self) -> Vec<String> {
        *self.fetched.borrow_mut() += 1;
        self.urls.clone()
    }

    fn near_duplicate(&self) -> Option<u64> {
        self.hash
    }

    fn tlv(&self, tag: u16) -> Option<Vec<u8>> {
        let (_, value) = self.tlvs.iter().find(|(found, _)| *found == tag)?;
        Some(value.clone().into_bytes())
    }

    fn look_up(&self, table: usize, key: &str) -> Option<String> {
        let (_, value) = self.tables.get(table)?.iter().find(|(found, _)| found == key)?;
        Some(value.clone())
    }

    fn count(&self, name: &str, key: &str, _: Duration) -> u64 {
        let mut counters = self.counters.borrow_mut();
        let count = counters.entry((name.to_owned(), key.to_owned())).or_default();
        *count += 1;
        *count
    }
}

const SHOP: Question<'static> = Question {
    account: "shop",
    source: "ACME",
    destination: "8613012345678",
    data_coding: 0,
    segments: 1,
    header: false,
};

const REJECTED: Verdict = Verdict::Reject(Reason::Prohibited);

fn policy(rules: &[&str]) -> Policy {
    let numbered = (1..).zip(rules).map(|(number, rule)| format!("[[rule]]\nname = \"r{number}\"\n{rule}\n"));
    Policy::parse(&numbered.collect::<String>()).unwrap()
}

/// The verdict of a document with one rule that rejects if these conditions hold.
fn verdict(conditions: &str, asked: &Question<'_>, host: &TestHost) -> Verdict {
    policy(&[&format!("{conditions}\nthen = \"reject\"")]).evaluate(asked, host).verdict
}

fn stops(conditions: &str, asked: &Question<'_>, text: &str) -> bool {
    verdict(conditions, asked, &TestHost::with_text(text)) == REJECTED
}

#[test]
fn the_shipped_document_is_valid() {
    let policy = Policy::parse(SHIPPED).unwrap();
    let host = TestHost::with_text("hello");
    assert_eq!(policy.evaluate(&SHOP, &host).verdict, Verdict::Pass);
}

#[test]
fn rules_name_buckets_and_windows() {
    let policy = policy(&[
        "destinations = \"86\"\nthen = \"pace\"\n\
         bucket = { name = \"campaign\", table = \"campaigns\", zone = \"America/New_York\", counts = \"segments\" }",
        "accounts = \"*\"\nthen = \"pace\"\nbucket = { name = \"source\", amount = 75, per = \"1s\", each = \"source\" }\n\
         window = { name = \"day\", zone = \"UTC\", days = [\"tue\", \"mon\"], opens = \"08:00\", closes = \"21:00\" }",
        "accounts = \"*\"\nthen = \"pace\"\nbucket = { name = \"brand\" }\nwindow = { name = \"daytime\" }",
        "accounts = \"bank\"\nthen = \"reject\"",
    ]);
    let host = TestHost::with_text("hello").with_rows(&[("ACME", "c1 2000"), ("BAD", "2000")]);
    let outcome = policy.evaluate(&SHOP, &host);
    let names: Vec<_> = outcome.buckets.iter().map(|bucket| bucket.name.as_str()).collect();
    assert_eq!(names, ["campaign.c1", "source.acme", "brand"]);
    let limits: Vec<_> = outcome.buckets.into_iter().map(|bucket| bucket.limit).collect();
    let limit = |amount, period, segments| Some(BucketLimit { amount, period, segments });
    let second = Period::Time(Duration::from_secs(1));
    let day = Period::Day("America/New_York".to_owned());
    assert_eq!(limits, [limit(2_000, day, true), limit(75, second, false), None]);
    let hours = WindowHours { zone: "UTC".to_owned(), days: vec![0, 1], opens: 480, closes: 1260 };
    let window = |name: &str, hours| Window { name: name.to_owned(), hours };
    assert_eq!(outcome.windows, [window("day", Some(hours)), window("daytime", None)]);

    let unknown = policy.evaluate(&Question { source: "+1 555 A", ..SHOP }, &host);
    assert_eq!(unknown.buckets[0].name, "source.1_555_a", "no campaign");
    let bad = policy.evaluate(&Question { source: "BAD", ..SHOP }, &host);
    assert_eq!((bad.verdict, bad.buckets.len()), (Verdict::Reject(Reason::TryLater), 0));
    let note = bad.note.unwrap();
    assert!(note.contains("the row \"BAD\" of table \"campaigns\" is not GROUP AMOUNT"), "{note}");
    assert_eq!(policy.evaluate(&Question { account: "bank", ..SHOP }, &host).buckets, []);
}

#[test]
fn wrong_buckets_and_windows_are_refused() {
    for (keys, what) in [
        ("", "needs `bucket` or `window`"),
        ("bucket = { name = \"Big\", amount = 1 }", "its name has 1 to 64"),
        ("bucket = { name = \"a\", amount = 0 }", "`amount` is 1 to"),
        ("bucket = { name = \"a\", zone = \"UTC\" }", "needs `amount` or `table`"),
        ("bucket = { name = \"a\", amount = 1, per = \"1s\", zone = \"UTC\" }", "leave out one"),
        ("bucket = { name = \"a\", amount = 1, per = \"32d\" }", "1ms to 31d"),
        ("bucket = { name = \"a\", amount = 1, table = \"t\" }", "`table` has the amounts"),
        ("window = { name = \"a\", zone = \"UTC\" }", "needs `zone`, `opens` and `closes`"),
        (
            "window = { name = \"a\", zone = \"UTC\", opens = \"8:00\", closes = \"09:00\" }",
            "not a time of day",
        ),
        ("window = { name = \"a\", zone = \"UTC\", opens = \"08:00\", closes = \"08:00\" }", "never opens"),
    ] {
        let document = format!("[[rule]]\nname = \"r\"\naccounts = \"*\"\nthen = \"pace\"\n{keys}\n");
        let refused = Policy::parse(&document).unwrap_err();
        assert!(refused.contains(what), "{keys}: {refused}");
    }
    let document = "[[rule]]\nname = \"r\"\naccounts = \"*\"\nthen = \"tag\"\ntags = { a = \"b\" }\nbucket = { name = \"a\" }\n";
    assert!(Policy::parse(document).unwrap_err().contains("`bucket` goes with `then = \"pace\"`"));
}

#[test]
fn conditions_on_the_record() {
    let other = Question { destination: "+4915", data_coding: 4, segments: 3, header: true, ..SHOP };
    for (conditions, shop, others) in [
        ("accounts = \"shop\"", true, true),
        ("accounts = [\"bank\", \"sh*\"]", true, true),
        ("accounts = \"bank\"", false, false),
        ("sources = \"AC?E\"", true, true),
        ("source-kind = \"numeric\"", false, false),
        ("source-kind = \"alphanumeric\"", true, true),
        ("destinations = [\"86\", \"44\"]", true, false),
        ("destinations = \"49\"", false, true),
        ("data-codings = [4, 8]", false, true),
        ("segments-over = 2", false, true),
        ("header = true", false, true),
        ("header = false", true, false),
        ("destinations = \"86\"\nsegments-over = 1", false, false),
    ] {
        assert_eq!(stops(conditions, &SHOP, ""), shop, "{conditions}");
        assert_eq!(stops(conditions, &other, ""), others, "{conditions}");
    }
}

#[test]
fn senders_are_registered_in_a_table() {
    let host = |rows| TestHost::default().with_rows(rows);
    for (rows, registered) in [(&[("shop/ACME", "")][..], true), (&[("bank/ACME", "")], false), (&[], false)]
    {
        assert_eq!(verdict("unregistered = \"senders\"", &SHOP, &host(rows)) == REJECTED, !registered);
        assert_eq!(verdict("registered = \"senders\"", &SHOP, &host(rows)) == REJECTED, registered);
    }
}

#[test]
fn conditions_on_words() {
    assert!(stops("words = [\"win\", \"free money\"]", &SHOP, "You WÍN!"));
    assert!(!stops("words = \"win\"", &SHOP, "winter"));
    assert!(stops("contains = \"win\"", &SHOP, "winter"));
    // Either of them.
    assert!(stops("words = \"a\"\ncontains = \"b\"", &SHOP, "xbx"));
    let host = TestHost::with_text("Buy VIAGRA.").with_rows(&[("viagra", "")]);
    assert_eq!(verdict("word-table = \"words\"", &SHOP, &host), REJECTED);
    let host = TestHost::with_text("Buy tea.").with_rows(&[("viagra", "")]);
    assert_eq!(verdict("word-table = \"words\"", &SHOP, &host), Verdict::Pass);
    // 8-bit data has no words.
    assert_eq!(verdict("words = \"win\"", &SHOP, &TestHost::default()), Verdict::Pass);
}

#[test]
fn conditions_on_links() {
    let text = "See http://a.bad.example/x or www.good.example";
    assert!(stops("links = true", &SHOP, text) && !stops("links = true", &SHOP, "none"));
    assert!(stops("links = false", &SHOP, "none") && !stops("links = false", &SHOP, text));
    assert!(stops("domains = \"bad.example\"", &SHOP, text));
    assert!(!stops("domains = \"worse.example\"", &SHOP, text));
    assert!(stops("other-domains-than = \"good.example\"", &SHOP, text));
    assert!(!stops("other-domains-than = [\"good.example\", \"bad.example\"]", &SHOP, text));
    assert!(!stops("other-domains-than = \"good.example\"", &SHOP, "none"));
    let in_table = |conditions: &str, key: &str| {
        verdict(conditions, &SHOP, &TestHost::with_text(text).with_rows(&[(key, "")])) == REJECTED
    };
    assert!(in_table("domain-table = \"bad\"", "bad.example"));
    assert!(!in_table("domain-table = \"bad\"", "worse.example"));
    assert!(in_table("domains = \"worse.example\"\ndomain-table = \"bad\"", "bad.example"));
    assert!(in_table("other-domains-than-table = \"good\"", "good.example"));
    assert!(!in_table(
        "other-domains-than = \"bad.example\"\nother-domains-than-table = \"good\"",
        "good.example"
    ));
}

#[test]
fn near_duplicates_are_counted() {
    let policy =
        policy(&["near-duplicates = { over = 2, window = \"1m\", per = \"all\" }\nthen = \"reject\""]);
    let mut host = TestHost { hash: Some(7), ..TestHost::default() };
    let ask = |host: &TestHost, account| policy.evaluate(&Question { account, ..SHOP }, host);
    assert_eq!(ask(&host, "a").verdict, Verdict::Pass);
    assert_eq!(ask(&host, "b").verdict, Verdict::Pass);
    let found = ask(&host, "c");
    assert_eq!(
        (found.verdict, found.note.as_deref()),
        (REJECTED, Some("r1: near-duplicate 3 in 60 s, 2 allowed"))
    );
    host.hash = Some(8);
    assert_eq!(ask(&host, "c").verdict, Verdict::Pass);
    host.hash = None;
    assert!((0..5).all(|_| ask(&host, "c").verdict == Verdict::Pass));
}

#[test]
fn volumes_are_counted_by_scope_and_prefix() {
    let policy =
        policy(&["volume = { over = 2, window = \"1m\", per = \"source\", digits = 2 }\nthen = \"reject\""]);
    let host = TestHost::default();
    let stopped = |source, destination| {
        policy.evaluate(&Question { source, destination, ..SHOP }, &host).verdict == REJECTED
    };
    assert!(!stopped("ACME", "8613") && !stopped("ACME", "+8614") && stopped("ACME", "8615"));
    assert!(!stopped("ACME", "4915") && !stopped("OTHER", "8615"), "others have counters of their own");
}

#[test]
fn an_unusual_volume_is_a_multiple_of_the_average_before() {
    // A window of a sixth of the time before: with windows that never end, the count before is that of all messages.
    let policy =
        policy(&["volume = { over = 3, window = \"10m\", times = 4, before = \"1h\" }\nthen = \"reject\""]);
    let counters = TestHost::default();
    let rest = "r1\u{1f}before".to_owned();
    let key = || "\u{1f}shop".to_owned();
    let ask = |now: u64, before: u64| {
        counters.counters.borrow_mut().insert(("r1".to_owned(), key()), now - 1);
        counters.counters.borrow_mut().insert((rest.clone(), key()), now + before - 1);
        policy.evaluate(&SHOP, &counters)
    };
    // 50 in the 50 minutes before are 10 in a window.
    assert_eq!(ask(40, 50).verdict, Verdict::Pass);
    let found = ask(41, 50);
    assert_eq!(
        (found.verdict, found.note.as_deref()),
        (REJECTED, Some("r1: 41 messages in 600 s, 10 before"))
    );
    // Nothing before: any number above the limit is unusual.
    assert_eq!((ask(3, 0).verdict, ask(4, 0).verdict), (Verdict::Pass, REJECTED));
}

#[test]
fn a_counter_counts_what_the_rest_of_its_rule_applies_to() {
    let policy = policy(&["words = \"code\"\nvolume = { over = 1, window = \"1m\" }\nthen = \"reject\""]);
    let host = TestHost::with_text("hello");
    let _ = policy.evaluate(&SHOP, &host);
    assert!(host.counters.borrow().is_empty());
}

#[test]
fn texts_follow_their_template() {
    let conditions = "dlt = { templates = \"templates\", entities = \"entities\" }";
    let host = |text: &str, tlvs: &[(u16, &str)]| {
        let tlvs = tlvs.iter().map(|(tag, value)| (*tag, (*value).to_owned())).collect();
        TestHost { tlvs, ..TestHost::with_text(text) }
            .with_rows(&[("1107", "Your code is {#var#}. "), ("1107/2", "Regards, ACME"), ("1108", "Hi")])
            .with_rows(&[("1107", "1001"), ("1108", "1002")])
    };
    let text = "Your code is 1234. Regards, ACME";
    assert_eq!(
        verdict(conditions, &SHOP, &host(text, &[(0x1400, "1001"), (0x1401, "1107\0")])),
        Verdict::Pass
    );
    let rejecting = policy(&[&format!("{conditions}\nthen = \"reject\"")]);
    for (text, tlvs, note) in [
        (text, &[(0x1401, "1107")][..], "no entity id in TLV 0x1400"),
        (text, &[(0x1400, "1001")], "no template id in TLV 0x1401"),
        (text, &[(0x1400, "1001"), (0x1401, "1/2")], "no template id in TLV 0x1401"),
        (text, &[(0x1400, "1001"), (0x1401, "1109")], "template 1109 is not registered"),
        (text, &[(0x1400, "1001"), (0x1401, "1108")], "template 1108 is not registered for entity 1001"),
        ("Win! 1234", &[(0x1400, "1001"), (0x1401, "1107")], "the text differs from template 1107"),
    ] {
        let outcome = rejecting.evaluate(&SHOP, &host(text, tlvs));
        assert_eq!((outcome.verdict, outcome.note), (REJECTED, Some(format!("r1: {note}"))));
    }
    let binary = TestHost { text: None, ..host("", &[(0x1400, "1001"), (0x1401, "1107")]) };
    assert_eq!(verdict(conditions, &SHOP, &binary), REJECTED);
}

#[test]
fn the_first_rule_that_decides_ends() {
    let policy = policy(&[
        "words = \"one\"\nthen = \"tag\"\ntags = { list = \"grey\", first = \"yes\" }",
        "words = \"one\"\nthen = \"tag\"\ntags = { list = \"black\" }",
        "words = \"two\"\nthen = \"pass\"",
        "words = \"three\"\nthen = \"quarantine\"\ntags = { held = \"yes\" }",
        "words = \"four\"\nthen = \"drop\"\nreport = \"delivered\"",
        "accounts = \"*\"\nthen = \"reject\"\nreason = \"not-authorised\"",
    ]);
    let ask = |text: &str| {
        let Outcome { verdict, tags, note, .. } = policy.evaluate(&SHOP, &TestHost::with_text(text));
        let tags: Vec<String> = tags.iter().map(|(name, value)| format!("{name}={value}")).collect();
        (verdict, tags.join(" "), note.unwrap_or_default())
    };
    let expected = |verdict, tags: &str, note: &str| (verdict, tags.to_owned(), note.to_owned());
    assert_eq!(
        ask("one two"),
        expected(Verdict::Pass, "first=yes list=black", "r1: \"one\"; r2: \"one\"; r3: \"two\"")
    );
    assert_eq!(ask("three"), expected(Verdict::Quarantine, "held=yes", "r4: \"three\""));
    assert_eq!(
        ask("one four"),
        expected(Verdict::Drop(Report::Delivered), "", "r1: \"one\"; r2: \"one\"; r5: \"four\"")
    );
    assert_eq!(ask("five"), expected(Verdict::Reject(Reason::NotAuthorised), "", "r6"));
}

#[test]
fn words_and_links_are_replaced() {
    let policy = policy(&[
        "words = \"gewinn\"\nword-table = \"words\"\nthen = \"replace\"\nwith = \"***\"",
        "domains = \"bad.example\"\nthen = \"replace\"\nwith = \"[link]\"",
        "words = \"stop\"\nthen = \"reject\"",
    ]);
    let ask =
        |text: &str| policy.evaluate(&SHOP, &TestHost::with_text(text).with_rows(&[("strasse", "")])).text;
    assert_eq!(
        ask("Dein  GEWÌNN: http://bad.example/gewinn in der Straße, Gewinn!").as_deref(),
        Some("Dein  ***: [link] in der ***, ***!")
    );
    assert_eq!(ask("www.good.example"), None);
    assert_eq!(ask("Gewinn? Stop"), None, "a rejected message does not go on");
}

#[test]
fn details_are_fetched_only_for_rules_that_need_them() {
    let policy = policy(&[
        "accounts = \"bank\"\nwords = \"win\"\nlinks = true\nthen = \"reject\"",
        "sources = \"ACME\"\nthen = \"tag\"\ntags = { a = \"b\" }",
    ]);
    let host = TestHost::with_text("win");
    assert_eq!(policy.evaluate(&SHOP, &host).note.as_deref(), Some("r2"));
    assert_eq!(*host.fetched.borrow(), 0);
    let _ = policy.evaluate(&Question { account: "bank", ..SHOP }, &host);
    assert_eq!(*host.fetched.borrow(), 2);
}

#[test]
fn errors_name_the_line_and_the_mistake() {
    let rule = |rest: &str| format!("[[rule]]\nname = \"r\"\n{rest}\n");
    let reject = |rest: &str| rule(&format!("{rest}\nthen = \"reject\""));
    for (document, expected) in [
        (String::new(), "has no rule"),
        (reject(""), "line 1: rule \"r\": it has no condition"),
        (
            format!("\n{}{}", reject("links = true"), reject("header = true")),
            "line 6: the rule of line 2 has the name \"r\"",
        ),
        (rule("links = true"), "missing field `then`"),
        (reject("limit = 3"), "unknown field `limit`"),
        (reject("words = []"), "an empty list"),
        (reject("words = \"\""), "no visible character"),
        (reject("sources = \"\""), "is empty"),
        (reject("destinations = \"+86\""), "plus sign"),
        (reject("data-codings = []"), "at least one"),
        (reject("domains = \"http://a.example/\""), "`domains` has \"http://a.example/\""),
        (reject("unregistered = \"\""), "name of a table is empty"),
        (reject("links = true\nwith = \"x\""), "`with` goes with `then = \"replace\"`"),
        (reject("links = true\nreport = \"delivered\""), "`report` goes with"),
        (reject("links = true\ntags = { a = \"b\" }"), "messages that go on"),
        (rule("links = true\nthen = \"pass\"\nreason = \"no-route\""), "`reason` goes with"),
        (rule("links = true\nthen = \"tag\""), "needs `tags`"),
        (rule("links = true\nthen = \"tag\"\ntags = { A = \"b\" }"), "the tag \"A\""),
        (rule("links = true\nthen = \"replace\""), "needs `with`"),
        (rule("accounts = \"a\"\nthen = \"replace\"\nwith = \"\""), "replaces the words and links"),
        (reject("near-duplicates = { over = 1, window = \"2d\" }"), "`window` is 1s to 24h"),
        (reject("volume = { over = 1, window = \"1m\", digits = 16 }"), "at most 15"),
        (reject("volume = { over = 1, window = \"1m\", times = 2 }"), "go together"),
        (reject("volume = { over = 1, window = \"1m\", times = 2, before = \"90s\" }"), "twice as long"),
        (reject("volume = { over = 1, window = \"1m\", times = 0, before = \"1h\" }"), "at least 1"),
        (reject("links = true").replace("\"r\"", "\"\""), "takes 1 to 64"),
    ] {
        let error = Policy::parse(&document).unwrap_err();
        assert!(error.contains(expected), "{document}: {error}");
    }
    let tags = (0..33).map(|number| {
        format!(
            "[[rule]]\nname = \"{number}\"\nlinks = true\nthen = \"tag\"\ntags = {{ t{number} = \"\" }}\n"
        )
    });
    assert!(Policy::parse(&tags.collect::<String>()).unwrap_err().contains("more than 32 different tags"));
}

proptest! {
    #[test]
    fn any_text_is_a_policy_or_refused(
        text in "([\\[\\]{}=\",. \n#a-z0-9]|rule|name|words|volume|then|window|\"1m\"|reject|over){0,60}",
    ) {
        if let Err(refusal) = Policy::parse(&text) {
            prop_assert!(!refusal.is_empty());
        }
    }

    /// A replaced text has none of the words, whatever surrounds them.
    #[test]
    fn a_replaced_text_is_stable(text in "(win|WÍN|[a-z .]|ß|中|\u{200b}|\u{301}){0,40}") {
        let policy = policy(&["contains = \"win\"\nthen = \"replace\"\nwith = \"*\""]);
        if let Some(replaced) = policy.evaluate(&SHOP, &TestHost::with_text(&text)).text {
            prop_assert!(!fold::fold(&replaced).contains("win"), "{}", replaced);
        }
    }

    #[test]
    fn any_message_has_an_outcome(source in ".{0,20}", destination in ".{0,20}", text in ".{0,80}") {
        let policy = Policy::parse(SHIPPED).unwrap();
        let _ = policy.evaluate(
            &Question { source: &source, destination: &destination, ..SHOP },
            &TestHost::with_text(&text),
        );
    }
}
