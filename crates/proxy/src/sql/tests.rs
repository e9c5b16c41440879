//! What is understood of statements, and what is passed on.

use super::*;

fn shape_of(sql: &str) -> Shape {
    let (tokens, _) = tokens(sql).expect("quotes have ends");
    shape(sql, &tokens)
}

fn tables_of(sql: &str) -> Vec<String> {
    let tables = shape_of(sql).tables;
    tables.iter().map(|it| format!("{} as {}", it.name, it.qualifier)).collect()
}

fn normal(sql: &str) -> String {
    let (tokens, comments) = tokens(sql).expect("quotes have ends");
    let statement = normalised(sql, &tokens, &comments);
    format!("{} [{}]", statement.text, statement.tags)
}

/// The text before the place where columns are added.
fn before_added(sql: &str) -> &str {
    &sql[..shape_of(sql).insert_at]
}

#[test]
fn texts_are_cut_where_the_server_cuts_them() {
    let words = |sql: &str| {
        let (tokens, _) = tokens(sql)?;
        Some(tokens.iter().map(|token| token.text(sql).to_owned()).collect::<Vec<_>>())
    };
    let found =
        words("a'b''c' E'\\'' $$ ; $$ $x$ $$ $x$ \"q\"\"\" --c\n1.5e-3 /* /* */ */ b::int $1");
    let expected = [
        "a",
        "'b''c'",
        "E'\\''",
        "$$ ; $$",
        "$x$ $$ $x$",
        "\"q\"\"\"",
        "1.5e-3",
        "b",
        "::",
        "int",
        "$1",
    ];
    assert_eq!(found.expect("whole"), expected);
    for open in ["'a", "\"a", "/* a", "$$ a", "E'a\\'"] {
        assert_eq!(words(open), None, "{open}");
    }
}

#[test]
fn a_statement_has_one_normal_form_whatever_its_literals() {
    assert_eq!(normal("select * from t where a = 5"), normal("select * from t where a = -17"));
    assert_eq!(normal("select 1 where a in (1,2,3)"), "select ? where a in (?) []");
    assert_eq!(normal("insert into t values (1,'a'), (2,'b')"), "insert into t values (?) []");
    assert_eq!(normal("select a - 5"), "select a - ? []");
    assert_eq!(normal("select 1 /*route='/pay',traceparent='00-1'*/"), "select ? [route='/pay']");
}

#[test]
fn columns_are_added_behind_those_of_the_statement() {
    for (sql, before) in [
        ("select a, b from t where c", "select a, b"),
        (
            "select extract(year from d), e is distinct from f from t",
            "select extract(year from d), e is distinct from f",
        ),
        ("select a as \"from\" -- from\n from t", "select a as \"from\""),
        ("update t set a = 1 where b ", "update t set a = 1 where b"),
        ("delete from t where b returning *", "delete from t where b returning *"),
    ] {
        assert_eq!(before_added(sql), before);
        assert_eq!(shape_of(sql).opaque, None, "{sql}");
    }
}

#[test]
fn tables_are_found_with_what_their_columns_are_called_by() {
    for (sql, tables) in [
        ("select 1 from a", vec!["a as a"]),
        ("select 1 from s.a, \"B\" x", vec!["s.a as a", "\"B\" as x"]),
        (
            "select 1 from a join b as c on a.left = c.x left join d using (e) where f",
            vec!["a as a", "b as c", "d as d"],
        ),
        (
            "select 1 from a natural join b cross join c order by 1",
            vec!["a as a", "b as b", "c as c"],
        ),
        ("select 1 from (select 2) q, a", vec!["a as a"]),
        ("select 1 from generate_series(1, 2) g, a for update", vec!["a as a"]),
        ("with q as (select 1) select * from q, a", vec!["a as a"]),
        ("update only t as x set a = 1", vec!["t as x"]),
        ("delete from t x using y where 1", vec!["t as x"]),
        ("insert into t as x (a) values (1)", vec!["t as x"]),
        ("insert into t select 1 from b", vec!["t as t"]),
    ] {
        assert_eq!(tables_of(sql), tables, "{sql}");
    }
}

#[test]
fn what_cannot_be_told_is_passed_on() {
    for (sql, reason) in [
        ("select distinct a from t", "SELECT DISTINCT"),
        ("select a from t union select b from u", "UNION, INTERSECT or EXCEPT"),
        ("select a into b from t", "SELECT … INTO"),
        ("with x as (delete from t returning *) select * from x", "WITH that writes"),
        ("select * from t tablesample system (1)", "tables that are joined in another form"),
        ("copy t from stdin", "COPY"),
        ("frobnicate", "a statement of another kind"),
    ] {
        assert_eq!(shape_of(sql).opaque, Some(reason), "{sql}");
    }
    assert!(shape_of("select * from a join b as c(x) on true").gap.is_some());
    assert!(shape_of("select * from a where b in (select c from d)").gap.is_some());
}

#[test]
fn statements_about_transactions_are_known() {
    for (sql, verb) in [
        ("BEGIN", Verb::Begin),
        ("start transaction isolation level serializable", Verb::Begin),
        ("end", Verb::Commit),
        ("commit and chain", Verb::Commit),
        ("abort", Verb::Rollback),
        ("rollback to savepoint \"A\"", Verb::RollbackTo("A".into())),
        ("rollback work to a", Verb::RollbackTo("a".into())),
        ("release a", Verb::Release("a".into())),
        ("savepoint A", Verb::Savepoint("a".into())),
        ("deallocate all", Verb::Deallocate(None)),
        ("set default_transaction_isolation = 'serializable'", Verb::SessionLevel),
    ] {
        assert_eq!(shape_of(sql).verb, verb, "{sql}");
    }
    let level = |sql: &str| shape_of(sql).isolation;
    assert_eq!(level("begin isolation level repeatable read").as_deref(), Some("repeatable read"));
    assert_eq!(
        level("set transaction isolation level serializable").as_deref(),
        Some("serializable")
    );
    assert_eq!(
        level("set default_transaction_isolation to 'read committed'").as_deref(),
        Some("read committed")
    );
    assert!(shape_of("commit and chain").is_chained && !shape_of("commit and no chain").is_chained);
    assert_eq!(shape_of("prepare transaction 'x'").opaque, Some("a two-phase commit"));
}

#[test]
fn functions_of_inner_queries_are_no_columns() {
    assert!(shape_of("select (select count(*) from u), a from t").column_calls.is_empty());
    assert_eq!(shape_of("select count(*) from t").column_calls, ["count"]);
}
