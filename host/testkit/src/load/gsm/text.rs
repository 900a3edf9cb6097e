//! Texts in TPDUs, as far as numbered texts need it (TS 23.040 9.2.2, TS 23.038 6.1.2).

/// The octets of the text of an SMS-DELIVER, without user data header; 7-bit text is unpacked.
pub(super) fn delivered(tpdu: &[u8]) -> Option<Vec<u8>> {
    const HEADER_INDICATOR: u8 = 0x40;
    let (first, rest) = tpdu.split_first()?;
    if first & 3 != 0 {
        return None;
    }
    let digits = usize::from(*rest.first()?);
    // Length and type of the originator, its digits, the protocol identifier; then the data coding scheme.
    let rest = rest.get(2 + digits.div_ceil(2) + 1..)?;
    let (coding, rest) = rest.split_first()?;
    let (length, data) = rest.get(7..)?.split_first()?;
    let header = if first & HEADER_INDICATOR == 0 { 0 } else { usize::from(*data.first()?) + 1 };
    if coding & 0x0c != 0 {
        return data.get(header..usize::from(*length)).map(<[u8]>::to_vec);
    }
    let filled = (header * 8).div_ceil(7);
    Some((filled..usize::from(*length)).map_while(|at| septet(data, at)).collect())
}

fn septet(data: &[u8], at: usize) -> Option<u8> {
    let bit = at * 7;
    let low = u16::from(*data.get(bit / 8)?);
    let high = u16::from(data.get(bit / 8 + 1).copied().unwrap_or_default());
    Some(((high << 8 | low) >> (bit % 8) & 0x7f) as u8)
}

/// An SMS-SUBMIT with a text of ASCII letters and digits, to an international number.
pub(super) fn submit(reference: u8, to: &str, text: &str, report: bool) -> Vec<u8> {
    let mut tpdu = vec![0x01 | u8::from(report) << 5, reference, to.len() as u8, 0x91];
    tpdu.extend(super::wire::digits(to));
    tpdu.extend([0, 0, text.len() as u8]);
    let (mut bits, mut count) = (0_u32, 0);
    for letter in text.bytes() {
        bits |= u32::from(letter & 0x7f) << count;
        count += 7;
        while count >= 8 {
            tpdu.push(bits as u8);
            bits >>= 8;
            count -= 8;
        }
    }
    if count > 0 {
        tpdu.push(bits as u8);
    }
    tpdu
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deliver(first: u8, coding: u8, data: &[u8]) -> Vec<u8> {
        [&[first, 11, 0x91, 0x51, 0x55, 0x21, 0x43, 0x65, 0xf7, 0, coding][..], &[0; 7], data].concat()
    }

    #[test]
    fn texts_are_read() {
        let packed = [0xe8, 0x32, 0x9b, 0xfd, 0x46, 0x97, 0xd9, 0xec, 0x37];
        let tpdu = deliver(4, 0, &[&[10][..], &packed].concat());
        assert_eq!(delivered(&tpdu).as_deref(), Some(&b"hellohello"[..]));
        assert_eq!(delivered(&deliver(4, 4, b"\x05helloo")).as_deref(), Some(&b"hello"[..]));
        let parts = deliver(0x44, 4, b"\x08\x05\0\x03\x01\x02\x01hi");
        assert_eq!(delivered(&parts).as_deref(), Some(&b"hi"[..]));
        assert_eq!(delivered(&[]), None);
        let written = submit(7, "15551234567", "hellohello", false);
        assert_eq!(written[..4], [0x01, 7, 11, 0x91]);
        assert!(written.ends_with(&packed));
    }
}
