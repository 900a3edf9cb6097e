use super::message_pages::MessagePages;
use super::*;
use model::MessageId;

fn uri(query: &str) -> Uri {
    format!("/v1/messages?{query}").parse().unwrap()
}

/// A message of a partition, accepted at this time.
fn message(partition: u8, number: u64, at: u64) -> Value {
    json!({ "id": MessageId(MessageId::first_of(partition).0 + number).to_string(), "at": at })
}

/// The leader of a partition with these messages, oldest first: it answers as one with an archive that has those of all partitions.
fn leader(all: &[Value], query: &str) -> Value {
    let parameter = |name: &str| query.split('&').find_map(|pair| pair.strip_prefix(&format!("{name}=")));
    let id = |row: &Value| -> u64 { row["id"].as_str().unwrap().parse().unwrap() };
    let before: u64 = parameter("cursor").unwrap().parse().unwrap();
    let limit: usize = parameter("limit").unwrap().parse().unwrap();
    let mut rows: Vec<Value> = all.iter().filter(|row| id(row) < before).cloned().collect();
    rows.sort_by_key(|row| std::cmp::Reverse(id(row)));
    let next = (rows.len() > limit).then(|| rows[limit - 1]["id"].clone());
    rows.truncate(limit);
    json!({ "messages": rows, "next": next })
}

fn ids(rows: &[Value]) -> Vec<String> {
    rows.iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn pages_have_each_message_once_and_newest_first() {
    let mut all = Vec::new();
    for number in 0..40 {
        // Unequal: partition 2 has accepted all of its messages before the others.
        all.push(message(0, number, 1_000 + number * 3));
        all.push(message(1, number * 7, 1_000 + number * 5));
        if number < 5 {
            all.push(message(2, number, number));
        }
    }
    for limit in [1, 7, 40, 1000] {
        let (mut listed, mut cursor) = (Vec::new(), String::new());
        loop {
            let mut pages =
                MessagePages::of(&uri(&format!("account=a%20b&limit={limit}{cursor}")), 0..3).unwrap();
            let asked = (0..3).filter_map(|partition| Some((partition, pages.query(partition)?)));
            let answers = asked.map(|(partition, query)| {
                assert!(query.starts_with("account=a%20b&limit="), "{query}");
                (partition, leader(&all, &query))
            });
            let answers = answers.collect();
            let page = pages.merge(answers);
            assert!(page.len() <= limit);
            listed.extend(page);
            match pages.next() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => break,
            }
        }
        assert!(listed.iter().all(|row| {
            let id: MessageId = row["id"].as_str().unwrap().parse().unwrap();
            row["partition"] == id.partition()
        }));
        let times: Vec<u64> = listed.iter().map(|row| row["at"].as_u64().unwrap()).collect();
        assert!(times.is_sorted_by(|one, next| one >= next), "{limit}: {times:?}");
        let (mut listed, mut expected) = (ids(&listed), ids(&all));
        listed.sort();
        expected.sort();
        assert_eq!(listed, expected, "{limit}");
    }
}

#[test]
fn a_partition_that_was_missing_goes_on_where_it_was() {
    let all = [message(0, 1, 10), message(0, 2, 20), message(1, 1, 15)];
    let mut pages = MessagePages::of(&uri("limit=1"), 0..2).unwrap();
    let query = pages.query(0).unwrap();
    let page = pages.merge([(0, leader(&all, &query))].into());
    assert_eq!(ids(&page), ids(&all[1..2]));
    let cursor = pages.next().unwrap();
    let mut pages = MessagePages::of(&uri(&format!("limit=10&cursor={cursor}")), 0..2).unwrap();
    let answers = [0, 1].map(|partition| (partition, leader(&all, &pages.query(partition).unwrap())));
    let page = pages.merge(answers.into());
    assert_eq!(ids(&page), ids(&[all[2].clone(), all[0].clone()]));
    assert_eq!(pages.next(), None);
    // A partition that never answers does not make the list endless.
    let mut pages = MessagePages::of(&uri("limit=10"), 0..2).unwrap();
    let answer = leader(&all, &pages.query(0).unwrap());
    assert_eq!((pages.merge([(0, answer)].into()).len(), pages.next()), (2, None));
}

#[test]
fn a_cursor_of_something_else_is_refused() {
    for wrong in ["", "1000000042", "0-x", "0-end.", "128-end", "x-end"] {
        let refused = MessagePages::of(&uri(&format!("cursor={wrong}")), 0..2).unwrap_err();
        assert!(refused.detail.contains("not the `next` of a page of all partitions"), "{wrong}");
    }
    let pages = MessagePages::of(&uri("cursor=0-end.5-1000000042"), 0..2).unwrap();
    assert_eq!(pages.query(0), None);
    assert!(pages.query(1).is_some() && pages.query(5).is_none());
}

#[test]
fn rows_name_their_partition_and_are_in_the_order_of_their_names() {
    let answers = [(0, json!([{ "peer": "north" }, { "peer": "acme" }])), (1, json!([{ "peer": "north" }]))];
    let merged = rows(answers.into());
    let shown: Vec<_> = merged
        .iter()
        .map(|row| (row["peer"].as_str().unwrap(), row["partition"].as_u64().unwrap()))
        .collect();
    assert_eq!(shown, [("acme", 0), ("north", 0), ("north", 1)]);
}

#[test]
fn only_some_lists_are_about_all_partitions() {
    let list = |method: Method, path: &str| {
        let request = Request::builder().method(method).uri(path).body(Body::empty()).unwrap();
        MergedList::of(&request).ok()
    };
    assert_eq!(list(Method::GET, "/v1/messages?limit=5"), Some(MergedList::Messages));
    assert_eq!(list(Method::GET, "/v1/queues"), Some(MergedList::Queues));
    assert_eq!(list(Method::GET, "/v1/links"), Some(MergedList::Links));
    assert_eq!(list(Method::GET, "/v1/status"), Some(MergedList::Status));
    assert_eq!(list(Method::POST, "/v1/messages"), None);
    assert_eq!(list(Method::GET, "/v1/history"), None);
}
