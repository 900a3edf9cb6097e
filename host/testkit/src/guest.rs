//! Variants of a component, for testing replacements.

/// The same component as another version: appends a custom section with this name, which runtimes ignore
/// (component model, binary format: section 0, size, name, content).
pub fn variant(component: &[u8], name: &str) -> Vec<u8> {
    padded(component, name, 0)
}

/// The same component as another version, padded to this size with noise.
pub fn padded(component: &[u8], name: &str, octets: usize) -> Vec<u8> {
    let name = &name.as_bytes()[..name.len().min(127)];
    let mut content = [&[name.len() as u8], name].concat();
    let mut noise = 0x9e37_79b9_7f4a_7c15_u64;
    // The section header takes a few octets.
    let missing = octets.saturating_sub(component.len() + content.len() + 5);
    content.extend(
        std::iter::repeat_with(|| {
            noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (noise >> 56) as u8
        })
        .take(missing),
    );
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
