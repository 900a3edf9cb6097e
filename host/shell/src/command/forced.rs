//! What an ssh client asked for, where a forced command stands in front of it.

use super::Ordinary;
use ::client::terminal;
use clap::Parser;
use std::io::Write;
use std::process::ExitCode;

/// Here the options that say who one is and where the appliance is do not exist.
#[derive(Debug, Parser)]
#[command(name = "sms", about = "Texts for people, and what came of them", disable_help_subcommand = true)]
struct Asked {
    #[command(subcommand)]
    task: Ordinary,
}

/// What is asked for, or how to end.
pub(super) fn asked() -> Result<Ordinary, ExitCode> {
    let given = std::env::var_os("SSH_ORIGINAL_COMMAND").unwrap_or_default();
    let parsed = match given.into_string() {
        Ok(given) => parse(&given),
        Err(_) => Err("the command is no UTF-8\n".to_owned()),
    };
    parsed.map_err(|told| {
        let lines = told.lines().map(|line| terminal::visible(line) + "\n");
        let _ = std::io::stderr().write_all(lines.collect::<String>().as_bytes());
        ExitCode::from(2)
    })
}

fn parse(given: &str) -> Result<Ordinary, String> {
    let words = words(given)?;
    let all = std::iter::once("sms".to_owned()).chain(words);
    Asked::try_parse_from(all).map(|asked| asked.task).map_err(|error| error.render().to_string())
}

/// Splits a command into words as a shell would, and does nothing else of what shells do: no variables, no patterns, no
/// further commands.
fn words(given: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut rest = given.chars();
    while let Some(c) = rest.next() {
        match c {
            ' ' | '\t' | '\n' | '\r' => words.extend(word.take()),
            '\'' | '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match rest.next() {
                        None => return Err(open_quote(c)),
                        Some(end) if end == c => break,
                        Some('\\') if c == '"' => match rest.next() {
                            Some(quoted @ ('"' | '\\' | '$' | '`')) => word.push(quoted),
                            Some(other) => word.extend(['\\', other]),
                            None => return Err(open_quote(c)),
                        },
                        Some(other) => word.push(other),
                    }
                }
            }
            '\\' => word.get_or_insert_default().extend(rest.next()),
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    Ok(words)
}

fn open_quote(quote: char) -> String {
    format!(
        "a quote is open: {quote}\n\
         Over ssh, quote a text twice: ssh HOST \"send +16195550199 'two  words'\"\n\
         or give it on standard input: echo \"it's me\" | ssh HOST send +16195550199\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_as_a_shell_would_and_nothing_more() {
        let split = |given| words(given).unwrap();
        assert_eq!(split("send +1619 hello  there"), ["send", "+1619", "hello", "there"]);
        assert_eq!(
            split(r#"send +1619 'two  words' "and \"two\" more""#),
            ["send", "+1619", "two  words", "and \"two\" more"]
        );
        assert_eq!(split(r"a\ b c\'d ''"), ["a b", "c'd", ""]);
        assert_eq!(
            split(r#"x;rm -rf / $(id) `id` $HOME * #no"#),
            ["x;rm", "-rf", "/", "$(id)", "`id`", "$HOME", "*", "#no"]
        );
        assert_eq!(split(r#"'a'"b"c"#), ["abc"]);
        assert_eq!(split(" \t\n"), Vec::<String>::new());
        assert!(words("it's me").is_err() && words("\"open\\\"").is_err());
    }

    #[test]
    fn only_the_four_and_only_their_options() {
        let sent = |given| match parse(given) {
            Ok(Ordinary::Send(send)) => Ok((send.to, send.text.join(" "))),
            Ok(other) => Err(format!("{other:?}")),
            Err(told) => Err(told),
        };
        assert_eq!(sent("send +1619 hi -- there"), Ok(("+1619".to_owned(), "hi -- there".to_owned())));
        assert_eq!(sent("send +1619 -- -1"), Ok(("+1619".to_owned(), "-1".to_owned())));
        assert!(matches!(parse("inbox --limit 5 --before 1000000001 --json"), Ok(Ordinary::Inbox(_))));
        assert!(matches!(parse("follow"), Ok(Ordinary::Follow(_))));
        for bad in [
            "",
            "forced",
            "sms send +1619 hi",
            "help",
            "/bin/sh",
            "serve --config x",
            "send --as +1620 +1619 hi",
            "send +1619 --as +1620 hi",
            "--as +1620 send +1619 hi",
            "inbox --as +1620",
            "log --socket /tmp/x",
            "--operator log",
            "log --operator",
            "inbox; sh",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
