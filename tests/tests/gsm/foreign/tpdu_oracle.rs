//! Our TPDUs against Wireshark's decoder: every field of thousands of TPDUs, as GSUP carries them between an MSC and its HLR.

use anyhow::{Context, Result, bail, ensure};
use model::Random;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use tpdu::coding::is_compressed;
use tpdu::{
    Alphabet, CommandType, ConcatReference, Deliver, DeliverReport, FailureCause, FromMs, Header,
    LanguageTables, Parameters, StatusReport, Submit, SubmitReport, TimeStamp, ToMs, TpAddress, TpStatus,
    UserData, Validity, alphabet, split,
};

/// Every run is the same.
const SEED: u64 = 20_040_913;
/// TPDUs of each of the six types.
const EACH: usize = 2_000;

struct RandomInput(Random);

impl RandomInput {
    fn below(&mut self, limit: usize) -> usize {
        self.0.below(limit as u64) as usize
    }

    fn octet(&mut self) -> u8 {
        self.0.next().to_le_bytes()[0]
    }

    fn flag(&mut self) -> bool {
        self.0.next() & 1 == 1
    }

    fn octets(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.octet()).collect()
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    fn address(&mut self) -> Result<TpAddress> {
        if self.below(4) == 0 {
            let length = self.below(12);
            let mut name: String = (0..length).map(|_| self.one_of(NAME)).collect();
            // The empty name is in the other branch, like the empty number.
            name.push(self.one_of(NAME));
            let name: String = name.chars().take(11).collect();
            return Ok(TpAddress::name(&name)?);
        }
        let (ton, npi) = (self.one_of(&[0, 1, 2, 3, 4, 6, 7]), self.one_of(&[0, 1, 3, 4, 8, 9, 10]));
        // In an international number of the telephone network the decoder looks for a country code.
        let (possible, least) =
            if (ton, npi) == (1, 1) { (&b"0123456789"[..], 4) } else { (&b"0123456789*#abc"[..], 0) };
        let length = least + self.below(21 - least);
        let digits: Vec<u8> = (0..length).map(|_| self.one_of(possible)).collect();
        Ok(TpAddress::from_smpp(ton, npi, &digits)?)
    }

    fn time(&mut self) -> Result<TimeStamp> {
        // From 1990 to 2089.
        let span = 3_786_825_600_000 - 631_238_400_000;
        let zone = self.below(159) as i64 - 79;
        Ok(TimeStamp::at(631_238_400_000 + self.0.next() % span, i8::try_from(zone)?)?)
    }

    fn validity(&mut self) -> Result<Validity> {
        let bcd = |number: usize| (((number % 10) << 4) | (number / 10)) as u8;
        Ok(match self.below(6) {
            0 => Validity::None,
            1 | 2 => Validity::Relative(self.octet()),
            3 => Validity::Absolute(self.time()?),
            4 => Validity::Enhanced([self.one_of(&[2, 0x42]), self.octet().max(1), 0, 0, 0, 0, 0]),
            _ => {
                let [hours, minutes, seconds] = [self.below(100), self.below(60), self.below(60)].map(bcd);
                Validity::Enhanced([self.one_of(&[3, 0x43]), hours, minutes, seconds, 0, 0, 0])
            }
        })
    }

    fn elements(&mut self) -> Vec<u8> {
        let mut elements = Vec::new();
        for _ in 0..=self.below(3) {
            let total = self.one_of(&[2, 3, 255]);
            let number = self.below(usize::from(total)) as u8 + 1;
            elements.extend(match self.below(5) {
                0 => ConcatReference::Short(self.octet()).element(total, number),
                1 => ConcatReference::Wide(self.0.next() as u16).element(total, number),
                2 => vec![0x05, 4, self.octet(), self.octet(), self.octet(), self.octet()],
                3 => vec![self.one_of(&[0x24, 0x25]), 1, self.below(14) as u8],
                _ => {
                    let length = self.below(9);
                    [&[0x70 + self.octet() % 16, length as u8][..], &self.octets(length)].concat()
                }
            });
        }
        elements
    }

    /// Text in an alphabet, with at most this many units.
    fn text(&mut self, alphabet: Alphabet, most: usize) -> Vec<u8> {
        let length = if self.below(4) == 0 { most } else { self.below(most + 1) };
        let mut text = Vec::new();
        match alphabet {
            Alphabet::Gsm7 => {
                while text.len() < length {
                    let room = length - text.len();
                    if room > 1 && self.below(8) == 0 {
                        text.extend([
                            0x1B,
                            self.one_of(&[0x0A, 0x14, 0x28, 0x29, 0x2F, 0x3C, 0x3D, 0x3E, 0x40, 0x65]),
                        ]);
                    } else {
                        text.push(Some(self.octet() & 0x7F).filter(|septet| *septet != 0x1B).unwrap_or(0));
                    }
                }
            }
            Alphabet::Ucs2 => {
                while text.len() + 1 < length {
                    let character = self.one_of(&['a', 'é', 'ж', '你', 'ﾊ', '😀', 'क', '\u{FFFC}']);
                    let character = if text.len() + 3 < length { character } else { 'Z' };
                    text.extend(
                        character.encode_utf16(&mut [0; 2]).iter().flat_map(|unit| unit.to_be_bytes()),
                    );
                }
            }
            Alphabet::Octets => text = self.octets(length),
        }
        text
    }

    fn user_data(&mut self, data_coding: u8) -> Result<UserData> {
        let alphabet = Alphabet::of(data_coding);
        let udhi = self.below(3) == 0;
        let elements = if udhi { self.elements() } else { Vec::new() };
        let header = if udhi { [&[elements.len() as u8][..], &elements].concat() } else { elements };
        let room = match alphabet {
            Alphabet::Gsm7 => 160 - (header.len() * 8).div_ceil(7),
            _ => 140 - header.len(),
        };
        let text = self.text(alphabet, room);
        Ok(UserData::pack(alphabet, udhi, &[header, text].concat())?)
    }

    fn parameters(&mut self, most: usize) -> Result<Parameters> {
        let data_coding = self.flag().then(|| self.octet());
        let data = self.flag().then(|| self.user_data(data_coding.unwrap_or(0))).transpose()?;
        Ok(Parameters {
            protocol_id: self.flag().then(|| self.octet()),
            data_coding,
            user_data: data.filter(|data| data.octets.len() <= most),
        })
    }
}

/// Characters of names; the last three need an escape or are septet 0.
const NAME: &[char] = &['a', 'Z', '0', ' ', 'é', 'Ω', '-', '.', '@'];

/// The expected fields, by the decoder's names.
#[derive(Default)]
struct Expected {
    fields: BTreeMap<&'static str, Vec<String>>,
    zones: Vec<String>,
}

impl Expected {
    #[allow(clippy::needless_pass_by_value, reason = "numbers, most of them")]
    fn add(&mut self, name: &'static str, value: impl ToString) {
        self.fields.entry(name).or_default().push(value.to_string());
    }

    fn flag(&mut self, name: &'static str, set: bool) {
        self.add(name, u8::from(set));
    }

    fn octet(&mut self, name: &'static str, octet: u8) {
        self.add(name, format!("0x{octet:02x}"));
    }

    fn address(&mut self, name: &'static str, address: &TpAddress) {
        let semi_octets =
            if address.is_name() { (address.value.len() * 7).div_ceil(4) } else { address.value.len() };
        self.add("gsm_sms.dis_field_addr.length", semi_octets);
        self.add("gsm_sms.dis_field_addr.num_type", address.ton);
        self.add("gsm_sms.dis_field_addr.num_plan", address.npi);
        self.add(name, address.text());
    }

    fn time(&mut self, stamp: &TimeStamp) {
        self.add("gsm_sms.scts.year", stamp.year % 100);
        self.add("gsm_sms.scts.month", stamp.month);
        self.add("gsm_sms.scts.day", stamp.day);
        self.add("gsm_sms.scts.hour", stamp.hour);
        self.add("gsm_sms.scts.minutes", stamp.minute);
        self.add("gsm_sms.scts.seconds", stamp.second);
        let sign = if stamp.quarters < 0 { '-' } else { '+' };
        let quarters = stamp.quarters.unsigned_abs();
        self.zones.push(format!("GMT {sign} {} hours {} minutes", quarters / 4, quarters % 4 * 15));
    }

    fn validity(&mut self, validity: &Validity) {
        let bcd = |octet: u8| (octet & 15) * 10 + (octet >> 4);
        match validity {
            Validity::None => self.add("gsm_sms.tp-vpf", 0),
            Validity::Relative(octet) => {
                self.add("gsm_sms.tp-vpf", 2);
                self.add("gsm_sms.vp.validity_period", octet);
            }
            Validity::Absolute(stamp) => {
                self.add("gsm_sms.tp-vpf", 3);
                self.time(stamp);
            }
            Validity::Enhanced([first, value, minutes, seconds, ..]) => {
                self.add("gsm_sms.tp-vpf", 1);
                self.flag("gsm_sms.vp.single_shot_sm", first & 0x40 != 0);
                self.add("gsm_sms.vp.validity_period_format", first & 7);
                if first & 7 == 2 {
                    self.add("gsm_sms.vp.validity_period", value);
                } else {
                    self.add("gsm_sms.vp.validity_period.hour", bcd(*value));
                    self.add("gsm_sms.vp.validity_period.minutes", bcd(*minutes));
                    self.add("gsm_sms.vp.validity_period.seconds", bcd(*seconds));
                }
            }
        }
    }

    fn header(&mut self, header: Header<'_>) {
        self.add("gsm_sms.dis_field_udh.user_data_header_length", header.length() - 1);
        for element in header.elements() {
            self.octet("gsm_sms.ie_identifier", element.id);
            self.add("gsm_sms.dis_field_ud_iei.length", element.data.len());
            match (element.id, element.data) {
                (0x00, [reference, total, number]) => self.part(u16::from(*reference), *total, *number),
                (0x08, [high, low, total, number]) => {
                    self.part(u16::from_be_bytes([*high, *low]), *total, *number);
                }
                (0x05, [a, b, c, d]) => {
                    self.add("gsm_sms.destination_port", u16::from_be_bytes([*a, *b]));
                    self.add("gsm_sms.originator_port", u16::from_be_bytes([*c, *d]));
                }
                (0x24, [language]) => self.add("gsm_sms.dis_iei_lang.single_shift", language),
                (0x25, [language]) => self.add("gsm_sms.dis_iei_lang.locking_shift", language),
                _ => {}
            }
        }
    }

    fn part(&mut self, reference: u16, total: u8, number: u8) {
        self.add("gsm_sms.udh.mm.msg_id", reference);
        self.add("gsm_sms.udh.mm.msg_parts", total);
        self.add("gsm_sms.udh.mm.msg_part", number);
    }

    /// `None` if a report has user data but no data coding scheme: it means 0 (§9.2.3.27).
    fn user_data(&mut self, data_coding: Option<u8>, data: &UserData) {
        let scheme = data_coding.unwrap_or(0);
        let alphabet = Alphabet::of(scheme);
        self.add("gsm_sms.tp.user_data_length", data.length);
        let header = data.header(alphabet);
        header.into_iter().for_each(|header| self.header(header));
        let rest = &data.octets[header.map_or(0, Header::length)..];
        let hex = model::hex(rest);
        // The decoder shows an empty body after a header.
        let shown = if hex.is_empty() && header.is_some() { "<MISSING>".to_owned() } else { hex };
        let octets = match alphabet {
            Alphabet::Octets if is_compressed(scheme) => Some("gsm_sms.compressed_data"),
            Alphabet::Octets => Some("gsm_sms.sms_body"),
            // The decoder takes reserved schemes, and reports without a scheme, for octets. By the specification they have the
            // default alphabet (3GPP TS 23.038 §4, 23.040 §9.2.3.27).
            Alphabet::Gsm7 if data_coding.is_none() => Some("gsm_sms.sms_body"),
            Alphabet::Gsm7 if (0x80..0xC0).contains(&scheme) => Some("gsm_sms.sms_body"),
            Alphabet::Gsm7 if scheme < 0x80 && scheme & 0x0C == 0x0C => Some("gsm_sms.sms_body"),
            _ => None,
        };
        match octets {
            Some(name) if !shown.is_empty() => self.add(name, shown),
            None if data.length > 0 => self.add("gsm_sms.sms_text", default_text(scheme, data)),
            _ => {}
        }
    }

    fn indicator(&mut self, parameters: &Parameters) {
        self.flag("gsm_sms.tp-udhi", parameters.user_data.as_ref().is_some_and(|data| data.udhi));
    }

    fn parameters(&mut self, parameters: &Parameters) {
        self.flag("gsm_sms.tp.pid.present", parameters.protocol_id.is_some());
        self.flag("gsm_sms.tp.dcs.present", parameters.data_coding.is_some());
        self.flag("gsm_sms.tp.udl.present", parameters.user_data.is_some());
        parameters.protocol_id.iter().for_each(|octet| self.add("gsm_sms.tp-pid", octet));
        parameters.data_coding.iter().for_each(|octet| self.add("gsm_sms.tp-dcs", octet));
        if let Some(data) = &parameters.user_data {
            self.user_data(parameters.data_coding, data);
        }
    }

    fn submit(submit: &Submit) -> Self {
        let mut all = Self::default();
        all.flag("gsm_sms.tp-rd", submit.reject_duplicates);
        all.flag("gsm_sms.tp-rp", submit.reply_path);
        all.flag("gsm_sms.tp-srr", submit.status_report_request);
        all.flag("gsm_sms.tp-udhi", submit.user_data.udhi);
        all.add("gsm_sms.tp-mti", 1);
        all.add("gsm_sms.tp-mr", submit.message_reference);
        all.address("gsm_sms.tp-da", &submit.destination);
        all.add("gsm_sms.tp-pid", submit.protocol_id);
        all.add("gsm_sms.tp-dcs", submit.data_coding);
        all.validity(&submit.validity);
        all.user_data(Some(submit.data_coding), &submit.user_data);
        all
    }

    fn deliver(deliver: &Deliver) -> Self {
        let mut all = Self::default();
        all.flag("gsm_sms.tp-mms", !deliver.more_messages);
        all.flag("gsm_sms.tp-lp", deliver.loop_prevention);
        all.flag("gsm_sms.tp-sri", deliver.status_report_indication);
        all.flag("gsm_sms.tp-rp", deliver.reply_path);
        all.flag("gsm_sms.tp-udhi", deliver.user_data.udhi);
        all.add("gsm_sms.tp-mti", 0);
        all.address("gsm_sms.tp-oa", &deliver.originator);
        all.add("gsm_sms.tp-pid", deliver.protocol_id);
        all.add("gsm_sms.tp-dcs", deliver.data_coding);
        all.time(&deliver.service_centre_time);
        all.user_data(Some(deliver.data_coding), &deliver.user_data);
        all
    }

    fn status_report(report: &StatusReport) -> Self {
        let mut all = Self::default();
        all.flag("gsm_sms.tp-mms", !report.more_messages);
        all.flag("gsm_sms.tp-lp", report.loop_prevention);
        all.flag("gsm_sms.tp-srq", report.about_command);
        all.indicator(&report.parameters);
        all.add("gsm_sms.tp-mti", 2);
        all.add("gsm_sms.tp-mr", report.message_reference);
        all.address("gsm_sms.tp-ra", &report.recipient);
        all.time(&report.service_centre_time);
        all.time(&report.discharge_time);
        all.add("gsm_sms.dis_field.st_error", report.status.0 >> 5 & 3);
        all.add("gsm_sms.dis.field_st_reason", report.status.0 & 0x1F);
        if report.parameters != Parameters::default() {
            all.parameters(&report.parameters);
        }
        all
    }

    fn deliver_report(report: &DeliverReport) -> Self {
        let mut all = Self::default();
        all.add("gsm_sms.tp-mti", 0);
        all.indicator(&report.parameters);
        report.cause.iter().for_each(|cause| all.octet("gsm_sms.tp-fcs", cause.0));
        all.parameters(&report.parameters);
        all
    }

    fn submit_report(report: &SubmitReport) -> Self {
        let mut all = Self::default();
        all.add("gsm_sms.tp-mti", 1);
        all.indicator(&report.parameters);
        report.cause.iter().for_each(|cause| all.octet("gsm_sms.tp-fcs", cause.0));
        all.time(&report.service_centre_time);
        all.parameters(&report.parameters);
        all
    }

    fn command(command: &tpdu::Command) -> Self {
        let mut all = Self::default();
        all.add("gsm_sms.tp-mti", 2);
        all.flag("gsm_sms.tp-srr", command.status_report_request);
        all.flag("gsm_sms.tp-udhi", command.udhi);
        all.add("gsm_sms.tp-mr", command.message_reference);
        all.add("gsm_sms.tp-pid", command.protocol_id);
        all.add("gsm_sms.tp.command_type", command.kind.0);
        all.add("gsm_sms.tp.message_number", command.message_number);
        all.address("gsm_sms.tp-da", &command.destination);
        all.add("gsm_sms.tp.command_data_length", command.data.len());
        all
    }
}

/// The text as the decoder shows it; it ignores national tables, which have their own tests.
fn default_text(data_coding: u8, data: &UserData) -> String {
    match Alphabet::of(data_coding) {
        Alphabet::Gsm7 => alphabet::decode(&data.text(Alphabet::Gsm7), LanguageTables::DEFAULT),
        _ => tpdu::text::decode(data_coding, data),
    }
}

/// A TPDU in transit.
struct CapturedTpdu {
    /// From the phone.
    up: bool,
    octets: Vec<u8>,
    expected: Expected,
}

/// The compared fields: all that any TPDU is expected to have; others must be absent.
fn names(all: &[CapturedTpdu]) -> Vec<&'static str> {
    let mut names: Vec<_> = all.iter().flat_map(|each| each.expected.fields.keys().copied()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// The GSUP frame of a TPDU. The decoder derives the direction from the message type alone, and would decode the TPDU of an answer
/// in the direction of the request. So reports travel in requests here.
fn frame(captured: &CapturedTpdu) -> Result<Vec<u8>> {
    let kind = if captured.up { 0x24 } else { 0x28 };
    let head = [kind, 0x01, 8, 0x00, 0x01, 0x01, 0, 0, 0, 0, 0xF1, 0x40, 1, 0x2A, 0x43];
    let length = u8::try_from(captured.octets.len())?;
    let message = [&head[..], &[length], &captured.octets, &[0x0A, 1, 2]].concat();
    let size = u16::try_from(message.len() + 1)?.to_be_bytes();
    Ok([&size[..], &[0xEE, 0x05], &message].concat())
}

/// A pcap file of raw IPv4 packets, one frame each, on one connection to the GSUP port.
fn packets(all: &[CapturedTpdu]) -> Result<Vec<u8>> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 262_144, 101] {
        file.extend_from_slice(&word.to_le_bytes());
    }
    let mut next = [1_u32; 2];
    for (tick, captured) in all.iter().enumerate() {
        let payload = frame(captured)?;
        let way = usize::from(captured.up);
        let (sequence, acknowledged) = (next[way], next[1 - way]);
        next[way] += u32::try_from(payload.len())?;
        let mut packet = vec![0x45, 0];
        packet.extend(u16::try_from(40 + payload.len())?.to_be_bytes());
        packet.extend([0, 0, 0x40, 0, 64, 6, 0, 0, 127, 0, 0, 1, 127, 0, 0, 1]);
        let (from, to) = if captured.up { (20_000_u16, 4222_u16) } else { (4222, 20_000) };
        packet.extend([from.to_be_bytes(), to.to_be_bytes()].concat());
        packet.extend([sequence.to_be_bytes(), acknowledged.to_be_bytes()].concat());
        packet.extend([0x50, 0x18, 0xff, 0xff, 0, 0, 0, 0]);
        packet.extend(payload);
        let length = u32::try_from(packet.len())?;
        for word in [u32::try_from(tick)?, 0, length, length] {
            file.extend_from_slice(&word.to_le_bytes());
        }
        file.extend(packet);
    }
    Ok(file)
}

fn tshark(file: &Path, arguments: &[&str]) -> Result<String> {
    let output = Command::new("tshark").arg("-r").arg(file).args(arguments).output();
    let output = output.context("running tshark; if it is missing, run: cargo xtask setup")?;
    if !output.status.success() {
        bail!("tshark failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The decoder's output for each packet: fields, and time zones in words, since the field has lost its sign.
fn decoded_packets(file: &Path, names: &[&str]) -> Result<Vec<(Value, Vec<String>)>> {
    let apart = ["-o", "gsm_sms.reassemble:FALSE"];
    let mut arguments = vec!["-T", "json", "-e", "_ws.malformed", "-e", "_ws.expert.severity"];
    names.iter().for_each(|name| arguments.extend(["-e", name]));
    let json = tshark(file, &[&apart[..], &arguments].concat())?;
    let packets: Vec<Value> = serde_json::from_str(&json).context("tshark's JSON")?;
    let words = tshark(file, &[&apart[..], &["-O", "gsup,gsm_sms"]].concat())?;
    let mut zones: Vec<Vec<String>> = Vec::new();
    for line in words.lines() {
        if line.starts_with("Frame ") {
            zones.push(Vec::new());
        } else if let (Some(zone), Some(last)) = (line.trim().strip_prefix("Timezone: "), zones.last_mut()) {
            last.push(zone.to_owned());
        }
    }
    ensure!(zones.len() == packets.len(), "{} packets in words", zones.len());
    Ok(packets.into_iter().map(|mut packet| packet["_source"]["layers"].take()).zip(zones).collect())
}

fn up(message: &FromMs, failed: bool, expected: Expected) -> Result<CapturedTpdu> {
    let octets = message.encode()?;
    ensure!(FromMs::decode(&octets, failed)? == *message, "{octets:02x?}");
    Ok(CapturedTpdu { up: true, octets, expected })
}

fn down(message: &ToMs, failed: bool, expected: Expected) -> Result<CapturedTpdu> {
    let octets = message.encode()?;
    ensure!(ToMs::decode(&octets, failed)? == *message, "{octets:02x?}");
    Ok(CapturedTpdu { up: false, octets, expected })
}

fn all_types(random: &mut RandomInput) -> Result<Vec<CapturedTpdu>> {
    let mut all = Vec::new();
    for _ in 0..EACH {
        let data_coding = random.octet();
        let submit = Submit {
            reject_duplicates: random.flag(),
            reply_path: random.flag(),
            status_report_request: random.flag(),
            message_reference: random.octet(),
            destination: random.address()?,
            protocol_id: random.octet(),
            data_coding,
            validity: random.validity()?,
            user_data: random.user_data(data_coding)?,
        };
        let expected = Expected::submit(&submit);
        all.push(up(&FromMs::Submit(submit), false, expected)?);

        let data_coding = random.octet();
        let deliver = Deliver {
            more_messages: random.flag(),
            loop_prevention: random.flag(),
            status_report_indication: random.flag(),
            reply_path: random.flag(),
            originator: random.address()?,
            protocol_id: random.octet(),
            data_coding,
            service_centre_time: random.time()?,
            user_data: random.user_data(data_coding)?,
        };
        let expected = Expected::deliver(&deliver);
        all.push(down(&ToMs::Deliver(deliver), false, expected)?);

        let report = StatusReport {
            more_messages: random.flag(),
            loop_prevention: random.flag(),
            about_command: random.flag(),
            message_reference: random.octet(),
            recipient: random.address()?,
            service_centre_time: random.time()?,
            discharge_time: random.time()?,
            status: TpStatus(random.octet() & 0x7F),
            parameters: random.parameters(131)?,
        };
        let expected = Expected::status_report(&report);
        all.push(down(&ToMs::StatusReport(report), false, expected)?);

        let cause = random.flag().then(|| FailureCause(random.octet() | 0x80));
        let report = DeliverReport { cause, parameters: random.parameters(140)? };
        let expected = Expected::deliver_report(&report);
        all.push(up(&FromMs::DeliverReport(report), cause.is_some(), expected)?);

        let cause = random.flag().then(|| FailureCause(random.octet() | 0x80));
        let (service_centre_time, parameters) = (random.time()?, random.parameters(140)?);
        let report = SubmitReport { cause, service_centre_time, parameters };
        let expected = Expected::submit_report(&report);
        all.push(down(&ToMs::SubmitReport(report), cause.is_some(), expected)?);

        let length = random.below(140);
        let command = tpdu::Command {
            status_report_request: random.flag(),
            udhi: false,
            message_reference: random.octet(),
            protocol_id: random.octet(),
            kind: CommandType(random.octet()),
            message_number: random.octet(),
            destination: random.address()?,
            data: random.octets(length).into(),
        };
        let expected = Expected::command(&command);
        all.push(up(&FromMs::Command(command), false, expected)?);
    }
    Ok(all)
}

#[test]
fn every_field_is_decoded_correctly() -> Result<()> {
    let all = all_types(&mut RandomInput(Random::new(SEED)))?;
    ensure!(all.len() >= 10_000, "{} TPDUs", all.len());
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("tpdu.pcap");
    std::fs::write(&file, packets(&all)?)?;
    let decoded_packets = decoded_packets(&file, &names(&all))?;
    ensure!(decoded_packets.len() == all.len(), "{} packets", decoded_packets.len());
    let mut wrong = Vec::new();
    for (captured, (fields, zones)) in all.iter().zip(&decoded_packets) {
        let mut found: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for (name, values) in fields.as_object().context("no fields")? {
            let values = values.as_array().context("no values")?.iter();
            found.insert(name, values.filter_map(|value| Some(value.as_str()?.to_owned())).collect());
        }
        if found != captured.expected.fields || *zones != captured.expected.zones {
            let octets = model::hex(&captured.octets);
            wrong.push(format!(
                "{octets}\nours   {:?} {:?}\ntheirs {found:?} {zones:?}",
                captured.expected.fields, captured.expected.zones
            ));
        }
    }
    wrong.truncate(5);
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

/// The decoder reassembles segments, too.
#[test]
fn long_texts_are_reassembled() -> Result<()> {
    let mut random = RandomInput(Random::new(SEED));
    let (mut all, mut texts) = (Vec::new(), Vec::new());
    for number in 0..200_u16 {
        let data_coding = random.one_of(&[0x00, 0x08, 0x10, 0x19, 0xF1]);
        let alphabet = Alphabet::of(data_coding);
        let text = random.text(alphabet, 1_200);
        let reference = if random.flag() {
            ConcatReference::Short(number.to_le_bytes()[0])
        } else {
            ConcatReference::Wide(number)
        };
        let segments = split(data_coding, &[], &text, reference)?;
        if segments.len() < 2 {
            continue;
        }
        let mut whole = String::new();
        for user_data in segments {
            whole.push_str(&tpdu::text::decode(data_coding, &user_data));
            let deliver = Deliver {
                more_messages: false,
                loop_prevention: false,
                status_report_indication: false,
                reply_path: false,
                originator: TpAddress::international(&format!("1555000{number:04}")),
                protocol_id: 0,
                data_coding,
                service_centre_time: TimeStamp::at(1_703_367_462_000, -32)?,
                user_data,
            };
            all.push(down(&ToMs::Deliver(deliver), false, Expected::default())?);
        }
        texts.push(whole);
    }
    ensure!(texts.len() > 100, "{} texts", texts.len());
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("parts.pcap");
    std::fs::write(&file, packets(&all)?)?;
    let fields = ["_ws.malformed", "gsm_sms.fragment.count", "gsm_sms.sms_text"];
    let json = tshark(&file, &["-T", "json", "-e", fields[0], "-e", fields[1], "-e", fields[2]])?;
    let packets: Vec<Value> = serde_json::from_str(&json).context("tshark's JSON")?;
    ensure!(packets.len() == all.len(), "{} packets", packets.len());
    let mut joined = Vec::new();
    for packet in &packets {
        let [malformed, count, pieces] = fields.map(|name| &packet["_source"]["layers"][name]);
        ensure!(malformed.is_null(), "{packet}");
        // The last segment shows the whole text.
        if count.is_array() {
            let pieces = pieces.as_array().context("no text")?;
            joined.push(pieces.iter().filter_map(Value::as_str).collect::<String>());
        }
    }
    assert_eq!(joined, texts);
    Ok(())
}
