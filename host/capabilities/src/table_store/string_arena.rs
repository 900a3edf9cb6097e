/// Many short texts in one allocation, with four octets of overhead each.
#[derive(Debug, Default)]
pub(crate) struct StringArena {
    text: String,
    /// The end of each text; it starts at the end of the previous one.
    ends: Vec<u32>,
}

impl StringArena {
    /// Adds a text and returns its index; `None` if the arena would exceed 4 GiB.
    pub(crate) fn push(&mut self, text: &str) -> Option<u32> {
        let index = u32::try_from(self.ends.len()).ok()?;
        let end = u32::try_from(self.text.len() + text.len()).ok()?;
        self.text.push_str(text);
        self.ends.push(end);
        Some(index)
    }

    pub(crate) fn get(&self, index: u32) -> Option<&str> {
        let index = index as usize;
        let begin = index.checked_sub(1).map_or(Some(0), |before| self.ends.get(before).copied())?;
        self.text.get(begin as usize..*self.ends.get(index)? as usize)
    }

    pub(crate) fn shrink(&mut self) {
        self.text.shrink_to_fit();
        self.ends.shrink_to_fit();
    }

    /// Memory use, in octets.
    pub(crate) fn memory_octets(&self) -> usize {
        self.text.capacity() + self.ends.capacity() * size_of::<u32>()
    }
}
