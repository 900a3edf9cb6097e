use super::*;
use engine::PacePeriod;
use std::time::Duration;

const HEAD: &str = "[appliance]\ndata = \"/x\"\n";

fn problems(text: &str) -> Vec<String> {
    let text = format!("{HEAD}{text}");
    Config::parse(&text, Path::new("/nowhere")).unwrap_err().iter().map(ToString::to_string).collect()
}

#[test]
fn buckets_and_windows_are_declared_once_and_named_by_accounts_and_peers() {
    let text = format!(
        "{HEAD}\
         [[pace-bucket]]\nname = \"brand\"\namount = 2000\nzone = \"America/Los_Angeles\"\n\
         [[pace-bucket]]\nname = \"rate\"\namount = 75\nper = \"1m\"\n\
         [[send-window]]\nname = \"day\"\nzone = \"Europe/Berlin\"\ndays = [\"mon\", \"sat\"]\nfrom = \"08:00\"\nto = \"24:00\"\n\
         [[peer]]\nname = \"upstream\"\naddress = \"127.0.0.1:2775\"\npace-buckets = [\"brand\", \"rate\"]\n\
         send-windows = [\"day\"]\n"
    );
    let config = Config::parse(&text, Path::new("/nowhere")).unwrap();
    let pace = config.pace_settings();
    assert_eq!(pace.buckets.len(), 2);
    assert!(matches!(&pace.buckets[0].per, PacePeriod::Day(zone) if zone.name() == "America/Los_Angeles"));
    assert_eq!(pace.buckets[1].per, PacePeriod::Time(Duration::from_secs(60)));
    // Monday 2026-11-23 and Tuesday, 23:30 in Berlin.
    let (monday, tuesday) = (1_795_473_000_000, 1_795_559_400_000);
    let window = &pace.windows[0].window;
    assert_eq!((window.is_open(monday), window.is_open(tuesday)), (true, false));
    let queue = &config.peers[0].queue;
    assert_eq!((queue.send_pace.buckets.len(), queue.send_pace.windows.len()), (2, 1));
    assert_eq!(queue.submit_pace, engine::PaceNames::default());
    let _ = (PaceBucketKeys::defaults(), SendWindowKeys::defaults());
}

#[test]
fn wrong_buckets_and_windows_are_reported() {
    assert_eq!(
        problems("[[pace-bucket]]\nname = \"B\"\namount = 0\nzone = \"Europe/Bonn\"\n"),
        [
            "line 4: pace-bucket[0].name: is \"B\"; a name has 1 to 64 of a-z, 0-9, dot, hyphen and underscore",
            "line 5: pace-bucket[0].amount: is 0; the least amount is 1",
            "line 6: pace-bucket[0].zone: the time zone \"Europe/Bonn\" is unknown; a zone is a name of the IANA database, \
             such as Europe/Berlin or UTC",
        ]
    );
    let window = |from: &str, to: &str| {
        problems(&format!(
            "[[send-window]]\nname = \"w\"\nzone = \"UTC\"\nfrom = \"{from}\"\nto = \"{to}\"\n"
        ))
    };
    assert_eq!(
        window("8:00", "24:01"),
        [
            "line 6: send-window[0].from: is \"8:00\"; write a time of day such as \"08:00\"",
            "line 7: send-window[0].to: is \"24:01\"; write a time of day such as \"08:00\"",
        ]
    );
    assert_eq!(
        window("08:00", "08:00"),
        ["line 7: send-window[0].to: is also `from`; the window would never open"]
    );
    let peer = "[[peer]]\nname = \"upstream\"\naddress = \"127.0.0.1:2775\"\npace-buckets = [\"brand\"]\n";
    assert_eq!(
        problems(peer),
        ["line 6: peer[0].pace-buckets: \"brand\" is not a [[pace-bucket]]; known are: none"]
    );
}
