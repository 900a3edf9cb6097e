//! Our SGIP codec against an independent one that was written from the specification in another language: the same fields give the
//! same octets, both ways, for every layout.

use anyhow::{Context, Result, bail, ensure};
use behaviour_tests::Peer;
use bytes::Bytes;
use model::{Random, hex};
use serde_json::{Map, Value, json};
use sgip::text::{self, Coding, SegmentReference};
use sgip::{
    Bind, CheckUser, CheckUserAnswer, Deliver, HEADER_LENGTH, Header, LoginType, Pdu, Report, ResultCode,
    RouteField, RouteRow, RouteValue, Sequence, SgipCommand, Submit, Trace, TraceAnswer, TraceHop,
    UserReport,
};

/// Every run is the same.
const SEED: u64 = 20_011_001;
/// PDUs of each layout.
const EACH: usize = 12;

struct RandomInput(Random);

impl RandomInput {
    fn below(&mut self, limit: usize) -> usize {
        self.0.below(limit as u64) as usize
    }

    fn octet(&mut self) -> u8 {
        self.0.next().to_le_bytes()[0]
    }

    /// Extremes are more frequent.
    fn number(&mut self) -> u32 {
        match self.below(4) {
            0 => 0,
            1 => u32::MAX,
            _ => self.0.next() as u32,
        }
    }

    fn octets(&mut self, count: usize) -> Bytes {
        (0..count).map(|_| self.octet()).collect()
    }

    /// From empty to the full width, without NUL.
    fn text(&mut self, width: usize) -> Bytes {
        let length = if self.below(4) == 0 { width } else { self.below(width + 1) };
        (0..length).map(|_| self.octet().max(1)).collect()
    }

    fn reserve(&mut self) -> [u8; 8] {
        self.0.next().to_le_bytes()
    }

    fn sequence(&mut self) -> Sequence {
        Sequence { node: self.number(), time: self.number(), counter: self.number() }
    }

    fn content(&mut self) -> Bytes {
        let length = self.below(161);
        self.octets(length)
    }

    fn values(&mut self, layout: &[RouteField]) -> Vec<RouteValue> {
        let value = |field: &RouteField| match field {
            RouteField::Text(width) => RouteValue::Text(self.text(*width)),
            RouteField::Octet => RouteValue::Number(u32::from(self.octet())),
            RouteField::Number => RouteValue::Number(self.number()),
        };
        layout.iter().map(value).collect()
    }

    fn submit(&mut self) -> Submit {
        let users = if self.below(4) == 0 { 100 } else { self.below(5) };
        Submit {
            sp_number: self.text(21),
            charge_number: self.text(21),
            users: (0..users).map(|_| self.text(21)).collect(),
            corp_id: self.text(5),
            service_type: self.text(10),
            fee_type: self.octet(),
            fee_value: self.text(6),
            given_value: self.text(6),
            agent_flag: self.octet(),
            mo_related: self.octet(),
            priority: self.octet(),
            expire_time: self.text(16),
            schedule_time: self.text(16),
            report_flag: self.octet(),
            tp_pid: self.octet(),
            tp_udhi: self.octet(),
            coding: self.octet(),
            message_type: self.octet(),
            content: self.content(),
            reserve: self.reserve(),
        }
    }

    fn command(&mut self, command: SgipCommand) -> Pdu {
        match command {
            SgipCommand::Bind => Pdu::Bind(Bind {
                login_type: LoginType(self.octet()),
                name: self.text(16),
                password: self.text(16),
                reserve: self.reserve(),
            }),
            SgipCommand::Unbind => Pdu::Unbind,
            SgipCommand::Submit => Pdu::Submit(self.submit()),
            SgipCommand::Deliver => Pdu::Deliver(Deliver {
                user: self.text(21),
                sp_number: self.text(21),
                tp_pid: self.octet(),
                tp_udhi: self.octet(),
                coding: self.octet(),
                content: self.content(),
                reserve: self.reserve(),
            }),
            SgipCommand::Report => Pdu::Report(Report {
                submit: self.sequence(),
                report_type: self.octet(),
                user: self.text(21),
                state: self.octet(),
                error: self.octet(),
                reserve: self.reserve(),
            }),
            SgipCommand::UserReport => Pdu::UserReport(UserReport {
                sp_number: self.text(21),
                user: self.text(21),
                condition: self.octet(),
                reserve: self.reserve(),
            }),
            SgipCommand::Trace => {
                Pdu::Trace(Trace { submit: self.sequence(), user: self.text(21), reserve: self.reserve() })
            }
            SgipCommand::CheckUser => Pdu::CheckUser(CheckUser {
                name: self.text(16),
                password: self.text(16),
                user: self.text(21),
                reserve: self.reserve(),
            }),
            route => Pdu::Route {
                command: route,
                fields: self.values(RouteField::layout(route)),
                reserve: self.reserve(),
            },
        }
    }

    fn answer(&mut self, command: SgipCommand) -> Pdu {
        match command {
            SgipCommand::Unbind => Pdu::UnbindAnswer,
            SgipCommand::Trace => {
                // Without an entry the versions cannot be distinguished.
                let hops = self.below(5);
                let wide = hops > 0 && self.below(2) == 0;
                let hop = |_| TraceHop {
                    result: ResultCode(self.octet()),
                    node: self.text(if wide { 10 } else { 6 }),
                    received: self.text(16),
                    sent: self.text(16),
                    reserve: self.reserve(),
                };
                Pdu::TraceAnswer(TraceAnswer { hops: (0..hops).map(hop).collect(), wide })
            }
            SgipCommand::CheckUser => Pdu::CheckUserAnswer(CheckUserAnswer {
                result: ResultCode(self.octet()),
                status: self.octet(),
                reserve: self.reserve(),
            }),
            SgipCommand::QueryRoute => {
                let rows = self.below(21);
                let row = |_| RouteRow { fields: self.values(ROW), reserve: self.reserve() };
                let rows = (0..rows).map(row).collect();
                Pdu::RouteAnswer { result: ResultCode(self.octet()), rows }
            }
            to => Pdu::Answer { to, result: ResultCode(self.octet()), reserve: self.reserve() },
        }
    }
}

/// SGIP 1.2 §4.2.3.9: the entries of QueryRoute_Resp.
const ROW: &[RouteField] = &[
    RouteField::Octet,
    RouteField::Text(21),
    RouteField::Text(10),
    RouteField::Text(5),
    RouteField::Text(6),
    RouteField::Number,
    RouteField::Text(16),
    RouteField::Text(16),
];
const ROW_NAMES: &[&str] = &["type", "number", "mark", "code", "smg_id", "smg_ip", "login_user", "password"];

/// Latin-1, as the other codec shows texts.
fn shown(text: &[u8]) -> String {
    text.iter().copied().map(char::from).collect()
}

fn parts(sequence: Sequence) -> [u32; 3] {
    [sequence.node, sequence.time, sequence.counter]
}

fn name_of(command: SgipCommand) -> &'static str {
    match command {
        SgipCommand::Bind => "bind",
        SgipCommand::Unbind => "unbind",
        SgipCommand::Submit => "submit",
        SgipCommand::Deliver => "deliver",
        SgipCommand::Report => "report",
        SgipCommand::AddSp => "add_sp",
        SgipCommand::ModifySp => "modify_sp",
        SgipCommand::DeleteSp => "delete_sp",
        SgipCommand::QueryRoute => "query_route",
        SgipCommand::AddTeleSeg => "add_tele_seg",
        SgipCommand::ModifyTeleSeg => "modify_tele_seg",
        SgipCommand::DeleteTeleSeg => "delete_tele_seg",
        SgipCommand::AddSmg => "add_smg",
        SgipCommand::ModifySmg => "modify_smg",
        SgipCommand::DeleteSmg => "delete_smg",
        SgipCommand::CheckUser => "check_user",
        SgipCommand::UserReport => "user_rpt",
        SgipCommand::Trace => "trace",
    }
}

fn route_names(command: SgipCommand) -> &'static [&'static str] {
    match command {
        SgipCommand::AddSp => &["smg_id", "sp_number", "service_tag", "corp_id"],
        SgipCommand::ModifySp => {
            &["smg_id", "old_sp_number", "old_service_tag", "new_sp_number", "new_service_tag", "corp_id"]
        }
        SgipCommand::DeleteSp => &["smg_id", "sp_number", "service_tag"],
        SgipCommand::QueryRoute => &["query_type", "number", "service_tag"],
        SgipCommand::AddTeleSeg => &["smg_id", "tele_seg", "tele_type", "area_code"],
        SgipCommand::ModifyTeleSeg => {
            &["smg_id", "old_tele_seg", "new_tele_seg", "new_tele_type", "new_area_code"]
        }
        SgipCommand::DeleteTeleSeg => &["smg_id", "tele_seg"],
        SgipCommand::AddSmg => &["smg_id", "smg_ip", "login_name", "login_password"],
        SgipCommand::ModifySmg => &["old_smg_id", "new_smg_id", "smg_ip", "login_name", "login_password"],
        SgipCommand::DeleteSmg => &["smg_id"],
        _ => &[],
    }
}

fn named(names: &[&str], values: &[RouteValue]) -> Map<String, Value> {
    let value = |value: &RouteValue| match value {
        RouteValue::Text(text) => json!(shown(text)),
        RouteValue::Number(number) => json!(number),
    };
    names.iter().zip(values).map(|(name, field)| ((*name).to_owned(), value(field))).collect()
}

fn with(mut map: Map<String, Value>, name: &str, value: Value) -> Value {
    map.insert(name.to_owned(), value);
    Value::Object(map)
}

fn submit_shown(submit: &Submit) -> Value {
    json!({
        "sp_number": shown(&submit.sp_number), "charge_number": shown(&submit.charge_number),
        "user_numbers": submit.users.iter().map(|user| shown(user)).collect::<Vec<_>>(),
        "corp_id": shown(&submit.corp_id), "service_type": shown(&submit.service_type),
        "fee_type": submit.fee_type, "fee_value": shown(&submit.fee_value),
        "given_value": shown(&submit.given_value), "agent_flag": submit.agent_flag,
        "mo_relate_to_mt_flag": submit.mo_related, "priority": submit.priority,
        "expire_time": shown(&submit.expire_time), "schedule_time": shown(&submit.schedule_time),
        "report_flag": submit.report_flag, "tp_pid": submit.tp_pid, "tp_udhi": submit.tp_udhi,
        "message_coding": submit.coding, "message_type": submit.message_type,
        "content": hex(&submit.content), "reserve": hex(&submit.reserve),
    })
}

/// The fields by the other codec's names.
fn fields_of(pdu: &Pdu) -> (String, Value) {
    let answer = |command| format!("{}_resp", name_of(command));
    match pdu {
        Pdu::Bind(bind) => (
            "bind".to_owned(),
            json!({
                "login_type": bind.login_type.0, "name": shown(&bind.name), "password": shown(&bind.password),
                "reserve": hex(&bind.reserve),
            }),
        ),
        Pdu::Unbind => ("unbind".to_owned(), json!({})),
        Pdu::UnbindAnswer => (answer(SgipCommand::Unbind), json!({})),
        Pdu::Submit(submit) => ("submit".to_owned(), submit_shown(submit)),
        Pdu::Deliver(deliver) => (
            "deliver".to_owned(),
            json!({
                "user_number": shown(&deliver.user), "sp_number": shown(&deliver.sp_number),
                "tp_pid": deliver.tp_pid, "tp_udhi": deliver.tp_udhi, "message_coding": deliver.coding,
                "content": hex(&deliver.content), "reserve": hex(&deliver.reserve),
            }),
        ),
        Pdu::Report(report) => (
            "report".to_owned(),
            json!({
                "submit_sequence": parts(report.submit), "report_type": report.report_type,
                "user_number": shown(&report.user), "state": report.state, "error_code": report.error,
                "reserve": hex(&report.reserve),
            }),
        ),
        Pdu::UserReport(report) => (
            "user_rpt".to_owned(),
            json!({
                "sp_number": shown(&report.sp_number), "user_number": shown(&report.user),
                "user_condition": report.condition, "reserve": hex(&report.reserve),
            }),
        ),
        Pdu::Trace(trace) => (
            "trace".to_owned(),
            json!({
                "submit_sequence": parts(trace.submit), "user_number": shown(&trace.user),
                "reserve": hex(&trace.reserve),
            }),
        ),
        Pdu::TraceAnswer(trace) => {
            let hop = |hop: &TraceHop| {
                json!({
                    "result": hop.result.0, "node_id": shown(&hop.node), "receive_time": shown(&hop.received),
                    "send_time": shown(&hop.sent), "reserve": hex(&hop.reserve),
                })
            };
            let hops: Vec<_> = trace.hops.iter().map(hop).collect();
            (answer(SgipCommand::Trace), json!({ "entries": hops }))
        }
        Pdu::CheckUser(check) => (
            "check_user".to_owned(),
            json!({
                "user_name": shown(&check.name), "password": shown(&check.password),
                "user_number": shown(&check.user), "reserve": hex(&check.reserve),
            }),
        ),
        Pdu::CheckUserAnswer(check) => (
            answer(SgipCommand::CheckUser),
            json!({ "result": check.result.0, "status": check.status, "reserve": hex(&check.reserve) }),
        ),
        Pdu::Route { command, fields, reserve } => {
            let named = named(route_names(*command), fields);
            (name_of(*command).to_owned(), with(named, "reserve", json!(hex(reserve))))
        }
        Pdu::RouteAnswer { result, rows } => {
            let row =
                |row: &RouteRow| with(named(ROW_NAMES, &row.fields), "reserve", json!(hex(&row.reserve)));
            let rows: Vec<_> = rows.iter().map(row).collect();
            (answer(SgipCommand::QueryRoute), json!({ "result": result.0, "entries": rows }))
        }
        Pdu::Answer { to, result, reserve } => {
            (answer(*to), json!({ "result": result.0, "reserve": hex(reserve) }))
        }
    }
}

fn decoded(octets: &[u8]) -> Result<(Sequence, Pdu)> {
    let header = Header::peek(octets).context("no header")?;
    ensure!(header.length as usize == octets.len(), "a length of {}", header.length);
    let body = octets.get(HEADER_LENGTH..).context("no body")?;
    Ok((header.sequence, Pdu::decode(header.command, body)?))
}

fn oracle() -> Result<Peer> {
    Peer::plain_python("sgip.py", &json!({ "role": "codec" }))
}

/// One PDU through both codecs, both ways.
fn check_agreement(oracle: &mut Peer, sequence: Sequence, pdu: &Pdu) -> Result<()> {
    let octets = pdu.to_bytes(sequence);
    let (command, fields) = fields_of(pdu);
    oracle.send_action(&json!({ "decode": hex(&octets) }))?;
    let read = oracle.expect_matching("decoded", |_| true).with_context(|| format!("{command}: {pdu:?}"))?;
    assert_eq!((&read["command"], &read["sequence"]), (&json!(command), &json!(parts(sequence))));
    let Value::Object(fields) = fields else { bail!("no fields") };
    for (name, value) in &fields {
        assert_eq!(read[name], *value, "{command}: {name}");
    }
    // The other codec adds only the decoded content.
    let Value::Object(read) = read else { bail!("no fields") };
    let own = ["event", "command", "sequence", "text", "udh", "part"];
    let more: Vec<_> =
        read.keys().filter(|name| !fields.contains_key(*name) && !own.contains(&name.as_str())).collect();
    assert!(more.is_empty(), "{command} has {more:?} that ours has not");

    let mut written = fields;
    written.insert("command".to_owned(), json!(command));
    written.insert("sequence".to_owned(), json!(parts(sequence)));
    if matches!(pdu, Pdu::TraceAnswer(answer) if answer.wide) {
        written.insert("version".to_owned(), json!("1.3"));
    }
    oracle.send_action(&json!({ "encode": written }))?;
    let theirs = oracle.expect("encoded")?["hex"].as_str().context("no hex")?.to_owned();
    assert_eq!(theirs, hex(&octets), "{command}");
    let (again, mine) = decoded(&model::from_hex(&theirs).context("no hexadecimal digits")?)?;
    assert_eq!((again, &mine), (sequence, pdu));
    Ok(())
}

#[test]
fn both_codecs_encode_every_layout_identically() -> Result<()> {
    let (mut oracle, mut random) = (oracle()?, RandomInput(Random::new(SEED)));
    for command in SgipCommand::ALL {
        for _ in 0..EACH {
            let (sequence, pdu) = (random.sequence(), random.command(command));
            check_agreement(&mut oracle, sequence, &pdu)?;
            let (sequence, pdu) = (random.sequence(), random.answer(command));
            check_agreement(&mut oracle, sequence, &pdu)?;
        }
    }
    Ok(())
}

#[test]
fn both_codecs_refuse_wrong_lengths() -> Result<()> {
    let (mut oracle, mut random) = (oracle()?, RandomInput(Random::new(SEED)));
    for command in SgipCommand::ALL {
        for pdu in [random.command(command), random.answer(command)] {
            // By agreement with deployed systems, an Unbind_Resp may be too long.
            if pdu == Pdu::UnbindAnswer {
                continue;
            }
            let octets = pdu.to_bytes(random.sequence());
            let longer = [&octets[..], &[0]].concat();
            let shorter = octets[..octets.len() - 1].to_vec();
            for mut wrong in [longer, shorter] {
                if wrong.len() < HEADER_LENGTH {
                    continue;
                }
                let length = u32::try_from(wrong.len())?.to_be_bytes();
                wrong[..4].copy_from_slice(&length);
                oracle.send_action(&json!({ "decode": hex(&wrong) }))?;
                oracle.expect("broken")?;
                assert!(decoded(&wrong).is_err(), "{}", hex(&wrong));
            }
        }
    }
    Ok(())
}

/// Characters whose GBK octets differ between implementations: characters that the 2022 edition moved out of the
/// private use area, and the euro, which is the single octet 0x80 in some tables and missing in others.
const DISPUTED: &str = "ḿ龴龵龶龷龸龹龺龻︐︑︒︓︔︕︖︗︘︙";

/// Every character of a coding, by the tables of the other codec.
#[test]
fn every_character_is_decoded_correctly() -> Result<()> {
    let mut oracle = oracle()?;
    let all = || (' '..=char::MAX).filter(|character| !character.is_control());
    for (coding, least) in [(Coding::ASCII, 95), (Coding::UCS2, 100_000), (Coding::GBK, 21_000)] {
        let text: Vec<char> =
            all().filter(|each| text::encode_as(&each.to_string(), coding).is_some()).collect();
        ensure!(text.len() >= least, "{coding:?} has {} characters", text.len());
        let mut wrong = Vec::new();
        for wrote in text.chunks(10_000) {
            let octets = text::encode_as(&String::from_iter(wrote), coding).context("not encoded")?;
            oracle.send_action(&json!({ "read": hex(&octets), "coding": coding.0 }))?;
            let read = oracle.expect("read")?;
            let read: Vec<_> = read["text"].as_str().context("no text")?.chars().collect();
            wrong.extend(wrote.iter().copied().zip(read).filter(|(wrote, read)| wrote != read));
        }
        let known = if coding == Coding::GBK { DISPUTED } else { "" };
        let wrong: String = wrong.into_iter().map(|(wrote, _)| wrote).collect();
        assert_eq!(wrong, known, "{coding:?}");
    }
    Ok(())
}

#[test]
fn long_texts_are_reassembled() -> Result<()> {
    let (mut oracle, mut random) = (oracle()?, RandomInput(Random::new(SEED)));
    let letters: [&[char]; 3] = [&['a', 'Z', ' ', '~'], &['测', 'x', '😀', 'é'], &['测', 'x', '丂', '好']];
    for (coding, letters) in [Coding::ASCII, Coding::UCS2, Coding::GBK].into_iter().zip(letters) {
        for length in 1..60 {
            let count = length * 9 + random.below(9);
            let text: String = (0..count).map(|_| letters[random.below(letters.len())]).collect();
            let octets = text::encode_as(&text, coding).context("not encoded")?;
            let reference =
                if length % 2 == 0 { SegmentReference::Short(7) } else { SegmentReference::Long(700) };
            let ours = text::split(coding, &octets, reference).context("too long")?;
            let mut whole = String::new();
            for (number, part) in ours.iter().enumerate() {
                assert!(part.len() <= coding.limit());
                let udhi = u8::from(ours.len() > 1);
                oracle.send_action(&json!({ "read": hex(part), "coding": coding.0, "udhi": udhi }))?;
                let read = oracle.expect("read")?;
                if ours.len() > 1 {
                    let wanted = if length % 2 == 0 { 7 } else { 700 };
                    let part = json!({ "reference": wanted, "total": ours.len(), "number": number + 1 });
                    assert_eq!(read["part"], part);
                }
                whole.push_str(read["text"].as_str().context("no text")?);
            }
            assert_eq!(whole, text);
            // And the other direction.
            oracle.send_action(&json!({ "cut": text, "coding": coding.0, "reference": 7 }))?;
            let theirs = oracle.expect("cut")?;
            let theirs = theirs["parts"].as_array().context("no parts")?;
            assert_eq!(
                theirs.len(),
                text::split(coding, &octets, SegmentReference::Short(7)).map_or(0, |all| all.len())
            );
            let mut whole = String::new();
            for part in theirs {
                let part =
                    model::from_hex(part.as_str().context("no hex")?).context("no hexadecimal digits")?;
                let content = match theirs.len() {
                    1 => &part[..],
                    _ => text::header(&part).context("no header")?.1,
                };
                whole.push_str(&text::decode(coding.0, content));
            }
            assert_eq!(whole, text);
        }
    }
    Ok(())
}
