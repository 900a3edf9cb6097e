//! Passwords: asked for without showing them, or read from standard input; never on the command line, where every process of
//! the machine could read them.

use crate::output::Failure;
use std::io::IsTerminal;

/// A password.
pub(crate) fn ask(prompt: &str) -> Result<String, Failure> {
    let failed = |error: std::io::Error| Failure::Usage(format!("no password: {error}"));
    let password = if std::io::stdin().is_terminal() {
        rpassword::prompt_password(prompt).map_err(failed)?
    } else {
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).map_err(failed)?;
        line.trim_end_matches(['\n', '\r']).to_owned()
    };
    if password.is_empty() {
        return Err(Failure::Usage("no password: it is the first line of standard input".to_owned()));
    }
    Ok(password)
}

/// A new password: where a person types it, he types it twice.
pub(crate) fn ask_new(prompt: &str) -> Result<String, Failure> {
    let password = ask(prompt)?;
    if std::io::stdin().is_terminal() && ask("Once more: ")? != password {
        return Err(Failure::Usage("these are two different passwords".to_owned()));
    }
    Ok(password)
}
