/// The names of the tables in a document; rules refer to them by index.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct TableNames(Vec<String>);

impl TableNames {
    /// The index of a table, which is added if it is new.
    ///
    /// # Errors
    /// The name is empty.
    pub fn index(&mut self, name: &str) -> Result<usize, String> {
        if name.is_empty() {
            return Err("the name of a table is empty".to_owned());
        }
        Ok(self.0.iter().position(|known| known == name).unwrap_or_else(|| {
            self.0.push(name.to_owned());
            self.0.len() - 1
        }))
    }

    /// The names, in the order of their indexes.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.0
    }
}
