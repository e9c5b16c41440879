//! Applications as reads and writes of registers, as checkers of key-value stores use
//! them: rows become keys, and every write a value of its own.
//!
//! The kinds of transactions and their shares follow the benchmarks; what is computed
//! from the values does not matter to isolation, and is left out. Tables share the keys:
//! each gets the keys of its remainder, so that the distribution chooses among its rows.

use crate::keys::KeyChoice;
use crate::parameters::Application;
use crate::plan::{Action, Intent};
use crate::random::Random;

/// Plans one transaction.
pub(crate) fn plan(
    application: Application,
    choice: &KeyChoice,
    random: &mut Random,
    plan: &mut Vec<Intent>,
) {
    let mut rows = Rows { choice, random, plan };
    match application {
        Application::Bank => bank(&mut rows),
        Application::SmallBank => small_bank(&mut rows),
        Application::TpcC => tpc_c(&mut rows),
        Application::Rubis => rubis(&mut rows),
        Application::Twitter => twitter(&mut rows),
    }
}

struct Rows<'a> {
    choice: &'a KeyChoice,
    random: &'a mut Random,
    plan: &'a mut Vec<Intent>,
}

impl Rows<'_> {
    /// A row of the table of this number among so many.
    fn row(&mut self, table: u32, tables: u32) -> u32 {
        let drawn = self.choice.draw(self.random);
        let key = drawn - drawn % tables + table;
        if key < self.choice.keys() { key } else { table.min(self.choice.keys() - 1) }
    }

    fn read(&mut self, key: u32) {
        self.plan.push(Intent { action: Action::Read, key });
    }

    fn write(&mut self, key: u32) {
        self.plan.push(Intent { action: Action::Write, key });
    }

    fn update(&mut self, key: u32) {
        self.read(key);
        self.write(key);
    }

    /// Which of the kinds with these percentages; the last has what is left.
    fn kind(&mut self, percentages: &[u32]) -> usize {
        let mut drawn = self.random.below(100);
        for (kind, &percentage) in percentages.iter().enumerate() {
            if drawn < percentage {
                return kind;
            }
            drawn -= percentage;
        }
        percentages.len()
    }
}

/// Transfers between two accounts; one transaction in five looks at ten of them, which are
/// all of the preset. `bank.rs` knows what the values mean.
fn bank(rows: &mut Rows<'_>) {
    if rows.kind(&[20]) == 0 {
        for account in 0..rows.choice.keys().min(10) {
            rows.read(account);
        }
        return;
    }
    let from = rows.row(0, 1);
    let to = rows.choice.draw_other(rows.random, |account| account == from);
    rows.read(from);
    rows.read(to);
    rows.write(from);
    rows.write(to);
}

/// Every customer has a savings and a checking account
/// [Alomari et al., *The Cost of Serializability on Platforms That Use Snapshot
/// Isolation*, ICDE 2008].
fn small_bank(rows: &mut Rows<'_>) {
    const TABLES: u32 = 2;
    let savings = rows.row(0, TABLES);
    let checking = (savings + 1).min(rows.choice.keys() - 1);
    match rows.kind(&[15, 15, 15, 25, 15]) {
        // Amalgamate: everything goes to another customer's checking account.
        0 => {
            let other = rows.row(1, TABLES);
            rows.read(savings);
            rows.read(checking);
            rows.write(savings);
            rows.write(checking);
            if other != checking {
                rows.update(other);
            }
        }
        // Balance.
        1 => {
            rows.read(savings);
            rows.read(checking);
        }
        // Deposit checking.
        2 => rows.update(checking),
        // Send payment.
        3 => {
            let other = rows.row(1, TABLES);
            rows.update(checking);
            if other != checking {
                rows.update(other);
            }
        }
        // Transact savings.
        4 => rows.update(savings),
        // Write check: looks at both, writes one. This is where writes skew.
        _ => {
            rows.read(savings);
            rows.read(checking);
            rows.write(checking);
        }
    }
}

/// Warehouses, districts, customers, stock and orders [TPC-C, revision 5.11].
fn tpc_c(rows: &mut Rows<'_>) {
    const TABLES: u32 = 5;
    let warehouse = rows.row(0, TABLES);
    let district = rows.row(1, TABLES);
    let customer = rows.row(2, TABLES);
    match rows.kind(&[45, 43, 4, 4]) {
        // New order: five of the five to fifteen items.
        0 => {
            rows.read(warehouse);
            rows.update(district);
            rows.read(customer);
            for _ in 0..5 {
                let stock = rows.row(3, TABLES);
                rows.update(stock);
            }
            let order = rows.row(4, TABLES);
            rows.write(order);
        }
        // Payment.
        1 => {
            rows.update(warehouse);
            rows.update(district);
            rows.update(customer);
        }
        // Order status.
        2 => {
            let order = rows.row(4, TABLES);
            rows.read(customer);
            rows.read(order);
        }
        // Delivery: of three districts.
        3 => {
            for _ in 0..3 {
                let (order, customer) = (rows.row(4, TABLES), rows.row(2, TABLES));
                rows.update(order);
                rows.update(customer);
            }
        }
        // Stock level.
        _ => {
            rows.read(district);
            for _ in 0..5 {
                let stock = rows.row(3, TABLES);
                rows.read(stock);
            }
        }
    }
}

/// Users, items, bids and comments of an auction site [Amza et al., *Specification and
/// Implementation of Dynamic Web Site Benchmarks*, 2002]: mostly browsing.
fn rubis(rows: &mut Rows<'_>) {
    const TABLES: u32 = 4;
    let user = rows.row(0, TABLES);
    let item = rows.row(1, TABLES);
    match rows.kind(&[40, 20, 15, 10, 10]) {
        // View an item and its bids.
        0 => {
            rows.read(item);
            for _ in 0..2 {
                let bid = rows.row(2, TABLES);
                rows.read(bid);
            }
        }
        // Look at a user and what others say.
        1 => {
            let comment = rows.row(3, TABLES);
            rows.read(user);
            rows.read(comment);
        }
        // Bid.
        2 => {
            let bid = rows.row(2, TABLES);
            rows.read(user);
            rows.update(item);
            rows.write(bid);
        }
        // Comment.
        3 => {
            let comment = rows.row(3, TABLES);
            rows.update(user);
            rows.write(comment);
        }
        // Register an item.
        4 => {
            rows.read(user);
            rows.write(item);
        }
        // Buy at once.
        _ => {
            rows.read(user);
            rows.update(item);
        }
    }
}

/// Messages, timelines and followers [Tan et al., Cobra, OSDI 2020, in their key-value form]: mostly
/// reading timelines.
fn twitter(rows: &mut Rows<'_>) {
    const TABLES: u32 = 4;
    let user = rows.row(0, TABLES);
    let timeline = rows.row(1, TABLES);
    match rows.kind(&[10, 5, 5, 60]) {
        // Tweet: a message and the timeline it appears in.
        0 => {
            let message = rows.row(2, TABLES);
            rows.read(user);
            rows.write(message);
            rows.update(timeline);
        }
        // Follow: both sides know.
        1 => {
            let (follower, followed) = (rows.row(3, TABLES), rows.row(3, TABLES));
            rows.read(user);
            rows.update(follower);
            if followed != follower {
                rows.update(followed);
            }
        }
        // A new user.
        2 => {
            rows.write(user);
            rows.write(timeline);
        }
        // Read a timeline and its messages.
        3 => {
            rows.read(timeline);
            for _ in 0..3 {
                let message = rows.row(2, TABLES);
                rows.read(message);
            }
        }
        // Look at a user and the followers.
        _ => {
            let followers = rows.row(3, TABLES);
            rows.read(user);
            rows.read(followers);
        }
    }
}
