//! Programs that nobody here wrote, unmodified.

use super::server::{Folder, Proxy, Server, output, run};
use std::io::Write;

/// Runs `pgbench` through a proxy; the folder of the recording is checked by the caller.
fn bench(server: &Server, folder: &Folder, mode: &str, level: &str) {
    let proxy =
        Proxy::start(folder, server.port, &format!("--record {mode}-{}", level.replace(' ', "-")));
    let options = format!("-c default_transaction_isolation={}", level.replace(' ', "\\ "));
    let arguments =
        ["-n", "-c", "6", "-j", "2", "-t", "150", "--max-tries=1000", "-M", mode, "postgres"];
    let (text, is_fine) = run("pgbench", proxy.port, &arguments, &[("PGOPTIONS", &options)]);
    assert!(is_fine && text.contains("processed: 900/900"), "{mode}, {level}: {text}");
    let (status, text, _) = proxy.end();
    assert_eq!(status, 0, "{mode}, {level}: {text}");
    assert!(text.contains("no anomalies"), "{mode}, {level}: {text}");
    assert!(!text.contains("not seen"), "{mode}, {level}: {text}");
}

/// TPC-B writes a row before it reads it, so it is serializable at every level.
#[test]
fn pgbench_is_served_and_serializable_in_every_mode_and_at_every_level() {
    let Some(server) = Server::start() else { return };
    let folder = Folder::new("pgbench");
    let (text, is_fine) = run("pgbench", server.port, &["-i", "-q", "-s", "1", "postgres"], &[]);
    assert!(is_fine, "{text}");
    for (mode, level) in [
        ("simple", "read committed"),
        ("extended", "repeatable read"),
        ("prepared", "serializable"),
    ] {
        bench(&server, &folder, mode, level);
    }
    for (name, level) in [
        ("simple-read-committed", "serializable"),
        ("extended-repeatable-read", "snapshot-isolation"),
        ("prepared-serializable", "serializable"),
    ] {
        let check = format!("check {name} --level {level} --certificate {name}.proof");
        let (status, text) = output(folder.isolde(&check));
        assert_eq!(status, 0, "{text}");
        let (status, text) =
            output(folder.isolde(&format!("verify {name}.proof {name}/history.log")));
        assert_eq!(status, 0, "{text}");
    }
}

const PSYCOPG: &str = "
import sys, psycopg
port = int(sys.argv[1])
with psycopg.connect(host='127.0.0.1', port=port, user='postgres', dbname='postgres') as c:
    c.execute('create table if not exists p (id int primary key, v text)')
    c.execute('truncate p')
    with c.cursor() as cursor:
        cursor.executemany('insert into p values (%s, %s)', [(n, f'v{n}') for n in range(20)])
    c.commit()
    for n in range(8):
        print(c.execute('select * from p where id >= %s order by id', (n,)).fetchall())
        print(c.execute('update p set v = v || %s where id = %s', ('!', n)).rowcount)
    with c.cursor(name='named') as cursor:
        cursor.itersize = 3
        print(list(cursor.execute('select * from p order by id')))
    with c.cursor(binary=True) as cursor:
        print(cursor.execute('select id, v from p where id = any(%s) order by id', ([1, 2],)).fetchall())
    with c.pipeline():
        first = c.execute('select count(*) from p')
        second = c.execute('delete from p where id = 3 returning v')
    print(first.fetchall(), second.fetchall())
    with c.transaction():
        try:
            with c.transaction():
                c.execute('insert into p values (1, %s)', ('again',))
        except psycopg.errors.UniqueViolation as error:
            print(error.sqlstate)
    with c.cursor().copy('copy p to stdout') as copy:
        print(sorted(bytes(row) for row in copy))
";

#[test]
fn psycopg_gets_the_same_answers() {
    let has = std::process::Command::new("python3").args(["-c", "import psycopg"]).output();
    if !has.is_ok_and(|it| it.status.success()) {
        let _ = writeln!(std::io::stderr(), "skipped: python3 has no psycopg");
        return;
    }
    let Some(server) = Server::start() else { return };
    let folder = Folder::new("psycopg");
    let script = folder.0.join("program.py");
    std::fs::write(&script, PSYCOPG).expect("a new file");
    let script = script.to_string_lossy().into_owned();
    let answer = |port: u16| {
        let (text, is_fine) = run("python3", port, &[&script, &port.to_string()], &[]);
        assert!(is_fine, "{text}");
        text
    };
    let direct = answer(server.port);
    let proxy = Proxy::start(&folder, server.port, "--record run");
    assert_eq!(answer(proxy.port), direct);
    assert_eq!(answer(proxy.port), direct);
    let (status, text, _) = proxy.end();
    assert_eq!(status, 0, "{text}");
}
