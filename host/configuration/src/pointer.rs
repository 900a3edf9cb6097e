/// Builds a JSON pointer (RFC 6901) from tokens.
#[must_use]
pub fn pointer<T: AsRef<str>>(tokens: &[T]) -> String {
    let mut pointer = String::new();
    for token in tokens {
        push_token(&mut pointer, token.as_ref());
    }
    pointer
}

pub(crate) fn push_token(pointer: &mut String, token: &str) {
    pointer.push('/');
    pointer.push_str(&token.replace('~', "~0").replace('/', "~1"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_are_escaped_by_rfc_6901() {
        assert_eq!(pointer::<&str>(&[]), "");
        assert_eq!(pointer(&["peer", "a/b~c", ""]), "/peer/a~1b~0c/");
    }
}
