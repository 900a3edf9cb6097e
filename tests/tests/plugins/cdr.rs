//! CDR files: regardless of kills, each message that has ended has one record, and the totals equal those of the
//! ledger.

use anyhow::{Context as _, Result, ensure};
use api::EventSinkView;
use behaviour_tests::load::{Sink, SinkOptions, Source, SourceOptions, Tally};
use behaviour_tests::test_daemon::{PASSWORD, TestDaemon};
use behaviour_tests::{Fixture, bind, shipped_policy, until};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

/// Number of kills of the daemon; `CDR_KILLS` sets another number.
const KILLS: u64 = 6;

/// A closed file.
#[derive(Debug, Default)]
struct ReadFile {
    records: u64,
    segments: u64,
    captured: u64,
    refunded: u64,
}

/// Reads all closed CSV files; checks their numbers, headers and trailers. Adds the ids of their messages to `ids`.
fn read_files(folder: &Path, ids: &mut BTreeMap<String, u64>) -> Result<ReadFile> {
    let mut files: Vec<_> = std::fs::read_dir(folder)?.flatten().map(|entry| entry.path()).collect();
    files.sort();
    let mut whole = ReadFile::default();
    for (index, path) in files.iter().enumerate() {
        let number = index + 1;
        let expected = format!("billing-{number:08}.csv");
        ensure!(path.file_name().is_some_and(|name| *name == *expected), "{files:?}: {number} is missing");
        let text = std::fs::read_to_string(path)?;
        let mut reader =
            csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text.as_bytes());
        let lines: Vec<csv::StringRecord> = reader.records().collect::<Result<_, _>>()?;
        let [header, names, records @ .., trailer] = lines.as_slice() else {
            anyhow::bail!("{}: {text}", path.display())
        };
        ensure!(
            &header[0] == "H" && &header[1] == "billing" && header[3] == number.to_string(),
            "{header:?}"
        );
        ensure!(&names[0] == "N" && &trailer[0] == "T" && trailer[2] == number.to_string(), "{trailer:?}");
        let column = |name: &str| names.iter().position(|known| known == name).context("no such column");
        let (message, segments) = (column("message")?, column("segments")?);
        let (captured, refunded) = (column("captured")?, column("refunded")?);
        let mut file = ReadFile::default();
        for record in records {
            ensure!(&record[0] == "R" && &record[column("account")?] == "acme", "{record:?}");
            *ids.entry(record[message].to_owned()).or_default() += 1;
            file.records += 1;
            file.segments += record[segments].parse::<u64>()?;
            file.captured += record[captured].parse::<u64>()?;
            file.refunded += record[refunded].parse::<u64>()?;
        }
        let sums = [file.records, file.segments, file.captured, file.refunded, 0];
        let told: Vec<u64> = (3..8).map(|at| trailer[at].parse()).collect::<Result<_, _>>()?;
        ensure!(told == sums, "{}: {trailer:?}, and the records have {sums:?}", path.display());
        whole.records += file.records;
        whole.captured += file.captured;
        whole.refunded += file.refunded;
    }
    Ok(whole)
}

/// The ids of all messages in the archive, and the total of their captured amounts.
fn archived(appliance: &TestDaemon) -> Result<(BTreeSet<String>, u64)> {
    let (status, text) = appliance.request("GET", "/v1/history/export?format=csv", &[])?;
    ensure!(status == 200, "{status} {text}");
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let names = reader.headers()?.clone();
    let column =
        |name: &str| names.iter().position(|known| known == name).with_context(|| format!("{names:?}"));
    let (id, price, state) = (column("id")?, column("price")?, column("price_state")?);
    let (mut ids, mut captured) = (BTreeSet::new(), 0);
    for row in reader.records() {
        let row = row?;
        ids.insert(format!("{:0>10}", &row[id]));
        if &row[state] == "captured" {
            captured += row[price].parse::<u64>()?;
        }
    }
    Ok((ids, captured))
}

#[test]
fn kills_lose_and_repeat_no_record() -> Result<()> {
    let kills = std::env::var("CDR_KILLS").ok().and_then(|count| count.parse().ok()).unwrap_or(KILLS);
    let fixture = Fixture::new()?;
    let tally = Arc::new(Tally::new(2_000_000));
    let sink =
        Sink::start(SinkOptions { error_status: 0x0B, error_every: 7, ..SinkOptions::default() }, &tally)?;
    let mut config = fixture.config()?;
    config.archive("sqlite:archive.db").account("acme", "window = 1000").peer(
        "upstream",
        sink.address(),
        "links = 2\nwindow = 500\ndlrs = false\nuncertain = \"send-again\"",
    );
    config.tables("[[cdr]]\nname = \"billing\"\nmax-size = \"32KiB\"\nmax-age = \"2s\"\n");
    let mut appliance = config.start()?;
    bind(
        &appliance,
        "biller",
        "prepaid",
        &fixture.component("prepaid")?,
        &shipped_policy("prices")?,
        &json!({}),
    )?;
    let fund = json!({ "credit": 1_000_000_000_000_u64, "reason": "a test" });
    ensure!(appliance.ledger("acme", "open", &fund)?.0 == 200);
    let options = SourceOptions {
        reconnect: true,
        connections: 1,
        window: 20,
        rate: Some(400.0),
        ..SourceOptions::new(appliance.smpp(), "acme", PASSWORD)
    };
    let source = Source::start(&options, &tally)?;
    for kill in 0..kills {
        let before = tally.accepted_count();
        // Each time at another place between two commits of the files.
        until("traffic", || Ok(tally.accepted_count() > before + 100 + 67 * (kill % 7)))?;
        appliance = appliance.kill()?.start()?;
    }
    source.stop();
    source.join()?;
    until("all messages end", || {
        let ledger = appliance.get("/v1/ledger/acme")?;
        Ok(appliance.get("/v1/status")?["waiting"] == 0 && ledger["reserved"] == 0)
    })?;
    let folder = config.data().join("cdr/billing");
    let mut ids = BTreeMap::new();
    until("the last file is closed, and the archive has everything", || {
        let sinks: Vec<EventSinkView> = appliance.read("/v1/event-sinks")?;
        ensure!(sinks.len() == 1 && sinks[0].kind == "cdr-file" && sinks[0].lost_records == 0, "{sinks:?}");
        let open = std::fs::read_dir(&folder)?.flatten();
        let is_open =
            open.map(|entry| entry.path()).any(|path| path.extension().is_some_and(|it| it == "part"));
        Ok(!is_open && sinks[0].lag_records == 0 && appliance.get("/v1/archive")?["backlog"] == 0)
    })?;
    let sums = read_files(&folder, &mut ids)?;
    let (rows, captured) = archived(&appliance)?;
    let repeated: Vec<_> = ids.iter().filter(|(_, count)| **count > 1).collect();
    ensure!(repeated.is_empty(), "{repeated:?}");
    let recorded: BTreeSet<String> = ids.into_keys().collect();
    let differing: Vec<_> = recorded.symmetric_difference(&rows).collect();
    ensure!(differing.is_empty(), "{} records, {} rows: {differing:?}", recorded.len(), rows.len());
    let ledger = appliance.get("/v1/ledger/acme")?;
    ensure!(
        ledger["captured"] == sums.captured && captured == sums.captured,
        "{ledger}, {captured}, {sums:?}"
    );
    ensure!(sums.captured > 0 && sums.refunded > 0 && sums.records >= tally.accepted_count(), "{sums:?}");
    Ok(())
}

#[test]
fn an_orderly_restart_goes_on_with_the_open_file() -> Result<()> {
    let fixture = Fixture::new()?;
    let tally = Arc::new(Tally::new(100));
    let sink = Sink::start(SinkOptions::default(), &tally)?;
    let mut config = fixture.config()?;
    config.account("acme", "").peer("upstream", sink.address(), "dlrs = false");
    let elsewhere = fixture.folder().join("elsewhere");
    let tables = "[[cdr]]\nname = \"fixed\"\nformat = \"fixed\"\nheader = \"H{file:0>6}\"\nrecord = \"R{message:0>12}{account:<8}\"\n\
         trailer = \"T{records:0>8}\"\n[[cdr]]\nname = \"lines\"\nformat = \"json-lines\"\nfolder = \"ELSEWHERE\"\n\
         columns = [\"message\", \"state\"]\nnumbers = \"masked\"\n";
    config.tables(&tables.replace("ELSEWHERE", &elsewhere.display().to_string()));
    let (valid, words) = config.check()?;
    ensure!(!valid && words.contains("folder: must be below") && words.contains("cdr-root"), "{words}");
    let root = fixture.folder().canonicalize()?.display().to_string();
    config.tables(&format!("[configuration]\nmode = \"file\"\ncdr-root = \"{root}\"\n"));
    let submit = |appliance: &TestDaemon, count| -> Result<()> {
        let options =
            SourceOptions { count: Some(count), ..SourceOptions::new(appliance.smpp(), "acme", PASSWORD) };
        Source::start(&options, &tally)?.join()?;
        until("all are in the files", || {
            let sinks: Vec<EventSinkView> = appliance.read("/v1/event-sinks")?;
            Ok(appliance.get("/v1/status")?["waiting"] == 0 && sinks.iter().all(|sink| sink.lag_records == 0))
        })
    };
    let appliance = config.start()?;
    submit(&appliance, 3)?;
    let (status, _) = appliance.stop()?;
    ensure!(status.success());
    let appliance = config.start()?;
    submit(&appliance, 2)?;
    let fixed = std::fs::read_to_string(config.data().join("cdr/fixed/fixed-00000001.txt.part"))?;
    let lines: Vec<&str> = fixed.lines().collect();
    let messages = usize::try_from(tally.accepted_count())?;
    ensure!(messages >= 5 && lines.len() == 1 + messages && lines[0] == "H000001", "{fixed}");
    ensure!(lines[1..].iter().all(|line| line.len() == 21 && line.ends_with("acme    ")), "{fixed}");
    let json = std::fs::read_to_string(fixture.folder().join("elsewhere/lines-00000001.jsonl.part"))?;
    ensure!(json.lines().filter(|line| line.contains(r#""state":"relayed""#)).count() == messages, "{json}");
    Ok(())
}

#[test]
fn the_api_sends_no_files_to_other_places() -> Result<()> {
    let fixture = Fixture::new()?;
    let appliance = fixture.config()?.start()?;
    let refused = |change: Value, key: &str| -> Result<()> {
        let headers = [("if-match", "\"1\""), ("content-type", "application/json")];
        let body = change.to_string();
        let (status, text) = appliance.send("PATCH", "/v1/configuration", body.as_bytes(), &headers)?;
        ensure!((400..500).contains(&status) && text.contains(key), "{change}: {status} {text}");
        Ok(())
    };
    let outside = fixture.folder().canonicalize()?;
    for folder in [outside.display().to_string(), "/etc".to_owned(), "a/../../b".to_owned()] {
        refused(json!({ "cdr": [{ "name": "billing", "folder": folder }] }), "cdr-root")?;
    }
    refused(json!({ "configuration": { "cdr-root": outside } }), "can only be changed in the file")?;
    let headers = [("if-match", "\"1\""), ("content-type", "application/json")];
    let change = json!({ "cdr": [{ "name": "billing", "folder": "daily/north" }] }).to_string();
    let (status, text) = appliance.send("PATCH", "/v1/configuration", change.as_bytes(), &headers)?;
    ensure!(status == 200, "{text}");
    Ok(())
}
