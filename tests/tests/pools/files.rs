//! Import and export of number pools.

use anyhow::{Context, Result, ensure};
use behaviour_tests::Fixture;
use behaviour_tests::pools::http::{Pool, config};
use serde_json::{Value, json};

#[test]
fn a_hundred_thousand_numbers_are_imported_and_exported() -> Result<()> {
    const NUMBERS: usize = 100_000;
    let fixture = Fixture::new()?;
    let appliance = config(&fixture)?.start()?;
    let pool = Pool::new(&appliance, "bulk");
    let mut file = String::from("number,state,weight\n");
    for number in 0..NUMBERS {
        let state = ["idle+up", "idle+down", "busy+up", "busy+down", "up", ""][number % 6];
        file.push_str(&format!("+86{number:08},{state},{}\n", 1 + number % 16));
    }
    let import = |pool: &Pool<'_>, query: &str, kind: &str, body: &str| -> Result<Value> {
        let path = format!("{}/import{query}", pool.path);
        let (status, reply) =
            pool.appliance.send("POST", &path, body.as_bytes(), &[("content-type", kind)])?;
        ensure!(status == 200, "{status} {reply}");
        Ok(serde_json::from_str(&reply)?)
    };
    let counted = |reply: &Value| -> Vec<Option<u64>> {
        ["lines", "added", "already", "refused", "wrong"].map(|name| reply[name].as_u64()).to_vec()
    };
    let n = NUMBERS as u64;
    let reply = import(&pool, "", "text/csv", &file)?;
    assert_eq!(counted(&reply), [n + 1, n, 0, 0, 0].map(Some));
    let reply = import(&pool, "", "text/csv", &file)?;
    assert_eq!(counted(&reply), [n + 1, 0, n, 0, 0].map(Some));
    let numbers = pool.get("")?["numbers"].clone();
    assert_eq!(numbers["total"], n);
    assert_eq!(numbers["idle+up"], (0..NUMBERS).filter(|number| [0, 2, 4].contains(&(number % 6))).count());

    // Exported and imported into another pool, in both formats: the same numbers, states and weights.
    let export = |pool: &Pool<'_>, query: &str, accept: &str| -> Result<Vec<String>> {
        let path = format!("{}/export{query}", pool.path);
        let (status, text) = pool.appliance.send("GET", &path, &[], &[("accept", accept)])?;
        ensure!(status == 200, "{status}");
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort_unstable();
        Ok(lines)
    };
    let csv = export(&pool, "", "*/*")?;
    assert_eq!(csv.len(), NUMBERS + 1);
    assert!(csv.contains(&"+8600000003,idle+down,4".to_owned()));
    let lines = export(&pool, "", "application/x-ndjson")?;
    assert_eq!(lines, export(&pool, "?format=ndjson", "text/csv")?);
    assert!(lines.contains(&r#"{"number":"+8600000003","state":"idle+down","weight":4}"#.to_owned()));
    let other = Pool::new(&appliance, "other");
    let reply = import(&other, "", "application/x-ndjson", &lines.join("\n"))?;
    assert_eq!(counted(&reply), [n, n, 0, 0, 0].map(Some));
    assert_eq!(export(&other, "?format=csv", "*/*")?, csv);

    // Plain numbers, all up; invalid lines are reported, the first hundred of them individually.
    let plain = Pool::new(&appliance, "plain");
    let mut file = "1\r\n2\n\n1\n3".to_owned();
    let reply = import(&plain, "?reg=true", "text/csv", &file)?;
    assert_eq!(counted(&reply), [5, 3, 1, 0, 0].map(Some));
    assert_eq!(plain.get("")?["ready"], 3);
    for line in 0..150 {
        file.push_str(&format!("\nwrong {line}"));
    }
    file.push_str(&format!("\n{}\n4,asleep\n5,up,17\n6\n", "7".repeat(17 << 20)));
    let reply = import(&plain, "", "text/plain", &file)?;
    assert_eq!(counted(&reply), [159, 1, 4, 0, 153].map(Some));
    let errors = reply["errors"].as_array().context("no errors")?;
    assert_eq!((errors.len(), &errors[0]["line"]), (100, &json!(6)), "{}", errors[0]);
    assert!(errors[0]["detail"].as_str().is_some_and(|detail| detail.contains("wrong 0")));
    let empty = import(&plain, "", "text/csv", "")?;
    assert_eq!(counted(&empty), [0; 5].map(Some));

    // If a body breaks off, the lines before that are kept.
    let appliance = appliance.kill()?.start()?;
    let other = Pool::new(&appliance, "other");
    assert_eq!(export(&other, "?format=csv", "*/*")?, csv, "after a crash");
    Ok(())
}
