//! Components that differ, for trying what an exchange of one does.

/// The same component under another version: a custom section with a name of its own, which no runtime looks at, at its
/// end (component model, binary format: section 0, size, name, content).
pub fn variant(component: &[u8], name: &str) -> Vec<u8> {
    let content = [&[name.len().min(127) as u8], &name.as_bytes()[..name.len().min(127)]].concat();
    let mut all = component.to_vec();
    all.push(0);
    let mut size = content.len();
    // LEB128
    while size >= 0x80 {
        all.push((size & 0x7f) as u8 | 0x80);
        size >>= 7;
    }
    all.push(size as u8);
    all.extend_from_slice(&content);
    all
}
