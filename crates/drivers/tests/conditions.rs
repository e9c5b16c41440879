//! Conditions in SQL find the rows that SQLite finds.

#![cfg(feature = "sqlite")]

use isolde_history::{Condition, Value, Values};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use rusqlite::Connection;
use rusqlite::types::Value as Stored;

/// Random conditions as text.
struct Random(Xoshiro256PlusPlus);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0.random_range(0..bound)
    }

    fn number(&mut self, depth: u32) -> String {
        match self.below(if depth == 0 { 4 } else { 8 }) {
            0 => "key".to_owned(),
            1 => "value".to_owned(),
            2 => "age".to_owned(),
            3 => (self.below(9)).to_string(),
            4 => "null".to_owned(),
            5 => format!("(- {})", self.number(depth - 1)),
            _ => {
                let operator = ["+", "-", "*", "%"][self.below(4) as usize];
                let (left, right) = (self.number(depth - 1), self.number(depth - 1));
                // The remainder by zero is nothing that databases agree on.
                let right = if operator == "%" { (1 + self.below(8)).to_string() } else { right };
                format!("({left} {operator} {right})")
            }
        }
    }

    fn condition(&mut self, depth: u32) -> String {
        if depth > 0 && self.below(2) == 0 {
            let (left, right) = (self.condition(depth - 1), self.condition(depth - 1));
            return match self.below(3) {
                0 => format!("({left} and {right})"),
                1 => format!("({left} or {right})"),
                _ => format!("(not {left})"),
            };
        }
        let left = self.number(2);
        let negated = if self.below(2) == 0 { "" } else { "not " };
        match self.below(4) {
            0 => format!("({left} {negated}between {} and {})", self.number(1), self.number(1)),
            1 => format!("({left} {negated}in ({}, {}))", self.number(1), self.number(1)),
            2 => format!("({left} is {negated}null)"),
            _ => {
                let operator = ["=", "<>", "<", "<=", ">", ">="][self.below(6) as usize];
                format!("({left} {operator} {})", self.number(2))
            }
        }
    }
}

#[test]
fn sqlite_finds_the_same_rows() {
    let sqlite = Connection::open_in_memory().expect("a database in memory");
    sqlite
        .execute_batch("CREATE TABLE rows (key INTEGER, value INTEGER, age INTEGER)")
        .expect("a table");
    let mut values = Values::default();
    let mut random = Random(Xoshiro256PlusPlus::seed_from_u64(7));
    let mut rows: Vec<[Value; 3]> = Vec::new();
    for _ in 0..20 {
        let mut numbers = [0; 3].map(|_: u8| (random.below(4) > 0).then(|| random.below(9)));
        // A row without a value is no row.
        numbers[1] = numbers[1].or(Some(3));
        let stored = numbers.map(|it| it.map_or(Stored::Null, |it| Stored::from(it.cast_signed())));
        sqlite.execute("INSERT INTO rows VALUES (?1, ?2, ?3)", stored).expect("a row");
        rows.push(numbers.map(|it| it.map_or(Value::NIL, |it| values.unsigned(it))));
    }
    let age = values.text("age");
    for _ in 0..2000 {
        let text = random.condition(3);
        let condition = Condition::Notation(values.text(&text));
        let select = format!("SELECT rowid - 1 FROM rows WHERE {text} ORDER BY rowid");
        let mut statement = sqlite.prepare(&select).expect(&text);
        let theirs: Vec<usize> =
            statement.query_map([], |row| row.get(0)).and_then(Iterator::collect).expect(&text);
        let ours: Vec<usize> = (0..rows.len())
            .filter(|&place| {
                let [key, value, content] = rows[place];
                let found = condition.holds(&values, key, value, &[(age, content)]);
                found.unwrap_or_else(|| panic!("{text} can be told"))
            })
            .collect();
        assert_eq!(ours, theirs, "{text}");
    }
}
