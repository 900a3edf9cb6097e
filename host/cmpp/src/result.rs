//! The results of a Submit (CMPP 3.0 §8.4.3.2) and those of one vendor's gateways.

use model::ErrorClass;

/// The class of a result.
#[must_use]
pub fn class(result: u32) -> ErrorClass {
    match result {
        8 | 77 | 87 | 250 => ErrorClass::Throttled,
        // A repeated sequence id: the session has the first answer already, and that one counts.
        3 => ErrorClass::Permanent,
        51..=55 | 70 | 73..=75 | 84..=86 | 88 | 100..=199 => ErrorClass::Temporary,
        _ => ErrorClass::Permanent,
    }
}

/// The meaning of a result.
#[must_use]
pub fn result_text(result: u32) -> &'static str {
    match result {
        0 => "accepted",
        1 => "structure of the message wrong",
        2 => "command wrong",
        3 => "sequence id repeated",
        4 => "length of the message wrong",
        5 => "fee code wrong",
        6 => "text too long",
        7 => "service code wrong",
        8 => "flow control",
        9 => "charge number not served by this gateway",
        10 => "Src_Id wrong",
        11 => "Msg_src wrong",
        12 => "Fee_terminal_Id wrong",
        13 => "Dest_terminal_Id wrong",
        51 => "no link",
        52 => "not logged in",
        53 => "send failed",
        54 => "no response in time",
        55 => "no report in time",
        61 => "validity over",
        62 => "schedule time over",
        63 => "FeeType wrong",
        64..=68 => "authorisation failed",
        69 => "user on the blacklist",
        72 => "no route",
        76 => "content not allowed",
        77 => "too many submissions",
        78..=80 => "SP, service or code empty",
        82 => "routing loop",
        83 => "longer than the receiver's limit",
        70 | 73..=75 | 84..=86 | 88 => "gateway cannot serve it now",
        87 | 250 => "queue full",
        _ => "not defined",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_47_48_every_result_has_its_class() {
        let of =
            |class_: ErrorClass| (1..=255).filter(|result| class(*result) == class_).collect::<Vec<u32>>();
        assert_eq!(of(ErrorClass::Throttled), [8, 77, 87, 250]);
        let temporary: Vec<u32> =
            [51, 52, 53, 54, 55, 70, 73, 74, 75, 84, 85, 86, 88].into_iter().chain(100..=199).collect();
        assert_eq!(of(ErrorClass::Temporary), temporary);
    }
}
