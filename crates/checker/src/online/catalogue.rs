//! Names of tables, rows and columns as dense ids, and back for messages.
//!
//! Names are kept exactly, once each. Texts of contents are kept for messages only, and
//! only so many of them: the oldest make room.

use super::trace::Content;
use hashbrown::HashMap;
use std::collections::VecDeque;

/// The key of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Key<'a> {
    /// An integer.
    Number(i64),
    /// Anything else, as text.
    Text(&'a str),
}

impl std::fmt::Display for Key<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Key::Number(number) => write!(out, "{number}"),
            Key::Text(text) => out.write_str(text),
        }
    }
}

/// An item and its row, as a [`Cell`](super::Cell) has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// The item.
    pub item: u32,
    /// Its row.
    pub row: u32,
}

/// A key whose text is interned.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum StoredKey {
    Number(i64),
    Text(u32),
}

/// Names and their ids.
pub struct Catalogue {
    texts: Vec<Box<str>>,
    text_ids: HashMap<Box<str>, u32>,
    rows: Vec<(u32, StoredKey)>,
    row_ids: HashMap<(u32, StoredKey), u32>,
    /// Row and column of each item; the row itself is [`WHOLE_ROW`].
    items: Vec<(u32, u32)>,
    item_ids: HashMap<(u32, u32), u32>,
    contents: HashMap<Content, Box<str>>,
    /// Contents with a text, oldest first.
    remembered: VecDeque<Content>,
    contents_max: usize,
    /// By the number of a table's name: how its rows are told.
    tables: Vec<Told>,
    mixed: Option<u32>,
    is_full: bool,
}

/// How the rows of a table are told, once one is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Told {
    Unknown,
    ByRows,
    ByColumns,
}

/// The column of items that are rows.
const WHOLE_ROW: u32 = u32::MAX;

impl Catalogue {
    /// One that keeps the texts of at most so many contents.
    pub fn new(contents_max: usize) -> Catalogue {
        Catalogue {
            texts: Vec::new(),
            text_ids: HashMap::new(),
            rows: Vec::new(),
            row_ids: HashMap::new(),
            items: Vec::new(),
            item_ids: HashMap::new(),
            contents: HashMap::new(),
            remembered: VecDeque::new(),
            contents_max,
            tables: Vec::new(),
            mixed: None,
            is_full: false,
        }
    }

    /// Names that are not known are not made known from now on.
    pub fn refuse_new(&mut self) {
        self.is_full = true;
    }

    /// The item of a column, or of the row itself if there is no column; none if it is not
    /// known and [no more](Catalogue::refuse_new) are taken.
    pub fn place_if_room(
        &mut self,
        table: &str,
        key: Key<'_>,
        column: Option<&str>,
    ) -> Option<Place> {
        if self.is_full && !self.is_known(table, key, column) {
            return None;
        }
        Some(self.place(table, key, column))
    }

    fn is_known(&self, table: &str, key: Key<'_>, column: Option<&str>) -> bool {
        let text = |text: &str| self.text_ids.get(text).copied();
        let row = || {
            let key = match key {
                Key::Number(number) => StoredKey::Number(number),
                Key::Text(key) => StoredKey::Text(text(key)?),
            };
            let row = *self.row_ids.get(&(text(table)?, key))?;
            let column = column.map_or(Some(WHOLE_ROW), text)?;
            self.item_ids.get(&(row, column))
        };
        row().is_some()
    }

    /// A table of which both rows and columns were asked for since this was last asked. Its
    /// versions are those of other items, so that neither sees what the other wrote.
    pub fn take_mixed(&mut self) -> Option<&str> {
        let table = self.mixed.take()?;
        Some(&self.texts[table as usize])
    }

    fn tell(&mut self, table: u32, column: u32) {
        if self.tables.len() <= table as usize {
            self.tables.resize(table as usize + 1, Told::Unknown);
        }
        let told = &mut self.tables[table as usize];
        let now = if column == WHOLE_ROW { Told::ByRows } else { Told::ByColumns };
        match *told {
            Told::Unknown => *told = now,
            before if before != now => self.mixed = Some(table),
            _ => {}
        }
    }

    /// The item of a column, or of the row itself if there is no column.
    pub fn place(&mut self, table: &str, key: Key<'_>, column: Option<&str>) -> Place {
        let table = self.text(table);
        let key = match key {
            Key::Number(number) => StoredKey::Number(number),
            Key::Text(text) => StoredKey::Text(self.text(text)),
        };
        let column = column.map_or(WHOLE_ROW, |column| self.text(column));
        self.tell(table, column);
        let rows = &mut self.rows;
        let row = *self.row_ids.entry((table, key)).or_insert_with(|| {
            rows.push((table, key));
            rows.len() as u32 - 1
        });
        let items = &mut self.items;
        let item = *self.item_ids.entry((row, column)).or_insert_with(|| {
            items.push((row, column));
            items.len() as u32 - 1
        });
        Place { item, row }
    }

    /// How many items there are.
    pub fn item_count(&self) -> usize {
        self.items.len()
    }

    /// The table, key and column of an item; no column if it is a row.
    pub fn item(&self, item: u32) -> Option<(&str, Key<'_>, Option<&str>)> {
        let &(row, column) = self.items.get(item as usize)?;
        let (table, key) = self.row(row)?;
        let column = (column != WHOLE_ROW).then(|| &*self.texts[column as usize]);
        Some((table, key, column))
    }

    /// The table and key of a row.
    pub fn row(&self, row: u32) -> Option<(&str, Key<'_>)> {
        let &(table, key) = self.rows.get(row as usize)?;
        let key = match key {
            StoredKey::Number(number) => Key::Number(number),
            StoredKey::Text(text) => Key::Text(&self.texts[text as usize]),
        };
        Some((&self.texts[table as usize], key))
    }

    /// The content of a text, which is remembered for messages.
    pub fn content(&mut self, text: &str) -> Content {
        let content = Content::text(text);
        self.remember(content, text);
        content
    }

    /// Remembers how a content is written.
    pub fn remember(&mut self, content: Content, text: &str) {
        if self.contents_max == 0 || self.contents.contains_key(&content) {
            return;
        }
        if self.remembered.len() >= self.contents_max
            && let Some(oldest) = self.remembered.pop_front()
        {
            self.contents.remove(&oldest);
        }
        self.contents.insert(content, text.into());
        self.remembered.push_back(content);
    }

    /// How a content is written, if it is an integer or is still remembered.
    pub fn content_text(&self, content: Content) -> String {
        match self.contents.get(&content) {
            Some(text) => text.to_string(),
            None => format!("{content:?}"),
        }
    }

    fn text(&mut self, text: &str) -> u32 {
        if let Some(&id) = self.text_ids.get(text) {
            return id;
        }
        let id = self.texts.len() as u32;
        self.texts.push(text.into());
        self.text_ids.insert(text.into(), id);
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_one_id_each_and_come_back() {
        let mut catalogue = Catalogue::new(2);
        let balance = catalogue.place("accounts", Key::Number(7), Some("balance"));
        let owner = catalogue.place("accounts", Key::Number(7), Some("owner"));
        let other = catalogue.place("accounts", Key::Text("7"), None);
        assert_eq!(balance, catalogue.place("accounts", Key::Number(7), Some("balance")));
        assert_eq!(balance.row, owner.row);
        assert_ne!(balance.item, owner.item);
        assert_ne!(balance.row, other.row);
        assert_eq!(catalogue.item(owner.item), Some(("accounts", Key::Number(7), Some("owner"))));
        assert_eq!(catalogue.item(other.item), Some(("accounts", Key::Text("7"), None)));
        assert_eq!(catalogue.item(3), None);
    }

    #[test]
    fn a_table_by_rows_and_by_columns_is_told_once() {
        let mut catalogue = Catalogue::new(0);
        catalogue.place("accounts", Key::Number(7), Some("balance"));
        catalogue.place("owners", Key::Number(7), None);
        assert_eq!(catalogue.take_mixed(), None);
        catalogue.place("accounts", Key::Number(8), None);
        assert_eq!(catalogue.take_mixed(), Some("accounts"));
        assert_eq!(catalogue.take_mixed(), None);
    }

    #[test]
    fn what_is_full_has_a_place_for_what_it_knows() {
        let mut catalogue = Catalogue::new(0);
        let known = catalogue.place("accounts", Key::Text("a"), None);
        catalogue.refuse_new();
        assert_eq!(catalogue.place_if_room("accounts", Key::Text("a"), None), Some(known));
        for (table, key) in [("accounts", "b"), ("owners", "a")] {
            assert_eq!(catalogue.place_if_room(table, Key::Text(key), None), None);
        }
        assert_eq!(catalogue.item_count(), 1);
    }

    #[test]
    fn of_many_texts_the_last_are_remembered() {
        let mut catalogue = Catalogue::new(2);
        let [a, b, c] = ["a", "b", "c"].map(|text| catalogue.content(text));
        assert_ne!(catalogue.content_text(a), "a");
        assert_eq!(catalogue.content_text(b), "b");
        assert_eq!(catalogue.content_text(c), "c");
        assert_eq!(catalogue.content_text(Content::integer(-3)), "-3");
    }
}
