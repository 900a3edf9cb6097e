//! Reads passwords from a prompt without echo, or from standard input. They are never arguments, because every process of
//! the machine can read the arguments of others.

use crate::output::Failure;
use std::io::IsTerminal;

/// Reads a password.
pub(crate) fn read_password(prompt: &str) -> Result<String, Failure> {
    let failed = |error: std::io::Error| Failure::Usage(format!("no password: {error}"));
    let password = if std::io::stdin().is_terminal() {
        rpassword::prompt_password(prompt).map_err(failed)?
    } else {
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).map_err(failed)?;
        line.trim_end_matches(['\n', '\r']).to_owned()
    };
    if password.is_empty() {
        return Err(Failure::Usage("no password: write it as the first line of standard input".to_owned()));
    }
    Ok(password)
}

/// Reads a new password; at a prompt it has to be typed twice.
pub(crate) fn read_new_password(prompt: &str) -> Result<String, Failure> {
    let password = read_password(prompt)?;
    if std::io::stdin().is_terminal() && read_password("Once more: ")? != password {
        return Err(Failure::Usage("the passwords differ".to_owned()));
    }
    Ok(password)
}
