//! Forced commands: runs the command that an ssh client requested.

use super::SmsTask;
use ::client::terminal;
use clap::Parser;
use std::io::Write;
use std::process::ExitCode;

/// A command line without the options for number and socket.
#[derive(Debug, Parser)]
#[command(name = "sms", about = "Send and read text messages", disable_help_subcommand = true)]
struct ForcedCommandLine {
    #[command(subcommand)]
    task: SmsTask,
}

/// Parses SSH_ORIGINAL_COMMAND, or returns the exit code.
pub(super) fn requested_task() -> Result<SmsTask, ExitCode> {
    let original = std::env::var_os("SSH_ORIGINAL_COMMAND").unwrap_or_default();
    let parsed = match original.into_string() {
        Ok(original) => parse(&original),
        Err(_) => Err("the command is not UTF-8\n".to_owned()),
    };
    parsed.map_err(|usage| {
        let lines = usage.lines().map(|line| terminal::visible(line) + "\n");
        let _ = std::io::stderr().write_all(lines.collect::<String>().as_bytes());
        ExitCode::from(2)
    })
}

fn parse(original: &str) -> Result<SmsTask, String> {
    let split_words = split_words(original)?;
    let all = std::iter::once("sms".to_owned()).chain(split_words);
    ForcedCommandLine::try_parse_from(all)
        .map(|command_line| command_line.task)
        .map_err(|error| error.render().to_string())
}

/// Splits a command line into words with shell quoting, without variables, patterns or further commands.
fn split_words(original: &str) -> Result<Vec<String>, String> {
    let mut split_words = Vec::new();
    let mut word: Option<String> = None;
    let mut rest = original.chars();
    while let Some(c) = rest.next() {
        match c {
            ' ' | '\t' | '\n' | '\r' => split_words.extend(word.take()),
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
    split_words.extend(word);
    Ok(split_words)
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
    fn forced_command_is_split_like_a_shell_without_expansion() {
        let split = |original| split_words(original).unwrap();
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
        assert!(split_words("it's me").is_err() && split_words("\"open\\\"").is_err());
    }

    #[test]
    fn forced_command_allows_only_the_four_subcommands() {
        let sent = |original| match parse(original) {
            Ok(SmsTask::Send(send)) => Ok((send.to, send.text.join(" "))),
            Ok(other) => Err(format!("{other:?}")),
            Err(usage) => Err(usage),
        };
        assert_eq!(sent("send +1619 hi -- there"), Ok(("+1619".to_owned(), "hi -- there".to_owned())));
        assert_eq!(sent("send +1619 -- -1"), Ok(("+1619".to_owned(), "-1".to_owned())));
        assert!(matches!(parse("inbox --limit 5 --before 1000000001 --json"), Ok(SmsTask::Inbox(_))));
        assert!(matches!(parse("follow"), Ok(SmsTask::Follow(_))));
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
