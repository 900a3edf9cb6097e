//! The statuses of answers (SMGP 3.0.3 §6.2.45).

use model::ErrorClass;

/// The class of a status of a Submit's answer.
#[must_use]
pub fn class(status: u32) -> ErrorClass {
    match status {
        1 | 75 => ErrorClass::Throttled,
        // Outside the contract hours; or vendor-specific, of unknown duration.
        2 | 74 | 128..=255 => ErrorClass::Temporary,
        _ => ErrorClass::Permanent,
    }
}

/// The meaning of a status.
#[must_use]
pub fn status_text(status: u32) -> &'static str {
    match status {
        0 => "accepted",
        1 => "system busy",
        2 => "too many connections",
        10 => "structure of the message wrong",
        11 => "command wrong",
        12 => "sequence id repeated",
        20 => "IP address wrong",
        21 => "authentication failed",
        22 => "version too high",
        30 => "MsgType wrong",
        31 => "Priority wrong",
        32 => "FeeType wrong",
        33 => "FeeCode wrong",
        34 => "MsgFormat wrong",
        35 => "time format wrong",
        36 => "MsgLength wrong",
        37 => "validity over",
        38 => "QueryType wrong",
        39 => "route error",
        40 => "FixedFee wrong",
        43 => "ServiceID wrong",
        44 => "ValidTime wrong",
        45 => "AtTime wrong",
        46 => "SrcTermID wrong",
        47 => "DestTermID wrong",
        48 => "ChargeTermID wrong",
        49 => "SP code wrong",
        58 => "no route",
        41 | 42 | 56 | 57 | 59..=72 => "route command wrong",
        73 => "MServiceID wrong",
        74 => "forbidden at this hour",
        75 => "flow of the day used up",
        76 => "account expired",
        _ => "not defined",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_47_48_every_status_has_its_class() {
        let of =
            |class_: ErrorClass| (1..=300).filter(|status| class(*status) == class_).collect::<Vec<u32>>();
        assert_eq!(of(ErrorClass::Throttled), [1, 75]);
        let temporary: Vec<u32> = [2, 74].into_iter().chain(128..=255).collect();
        assert_eq!(of(ErrorClass::Temporary), temporary);
    }
}
