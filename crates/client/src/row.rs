//! What a request saw or left in a row.

/// A key or a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scalar<'a> {
    /// Nothing is there.
    Absent,
    /// A whole number.
    Integer(i64),
    /// Anything else, as text: equal values have equal texts.
    Text(&'a str),
}

impl From<i64> for Scalar<'_> {
    fn from(number: i64) -> Self {
        Scalar::Integer(number)
    }
}

impl<'a> From<&'a str> for Scalar<'a> {
    fn from(text: &'a str) -> Self {
        Scalar::Text(text)
    }
}

/// A row, or one column of it, and what was in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row<'a> {
    pub(crate) table: &'a str,
    pub(crate) key: Scalar<'a>,
    pub(crate) column: Option<&'a str>,
    pub(crate) value: Scalar<'a>,
}

impl<'a> Row<'a> {
    /// The row of a table with this key, and nothing in it.
    pub fn new(table: &'a str, key: impl Into<Scalar<'a>>) -> Row<'a> {
        Row { table, key: key.into(), column: None, value: Scalar::Absent }
    }

    /// One column of it alone. A table is traced either by columns or by rows.
    #[must_use]
    pub fn column(mut self, name: &'a str) -> Row<'a> {
        self.column = Some(name);
        self
    }

    /// What was seen or written.
    #[must_use]
    pub fn is(mut self, value: impl Into<Scalar<'a>>) -> Row<'a> {
        self.value = value.into();
        self
    }

    /// It was not there, or was deleted.
    #[must_use]
    pub fn is_absent(mut self) -> Row<'a> {
        self.value = Scalar::Absent;
        self
    }
}
