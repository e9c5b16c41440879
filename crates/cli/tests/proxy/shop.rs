//! The shop of `docs/tutorial-application.md`: its commands are run, its mistakes are found.

use super::raw::Raw;
use super::server::{Folder, Proxy, Server, output, run};

const TUTORIAL: &str = include_str!("../../../../docs/tutorial-application.md");

/// The commands of the tutorial that begin with a word.
fn commands(word: &str) -> Vec<&'static str> {
    TUTORIAL.lines().filter(|line| line.starts_with(word)).collect()
}

/// Runs one of the programs of the tutorial at another port.
fn play(command: &str, port: u16) {
    let (environment, command) = match command.split_once("\" ") {
        Some((options, rest)) => (options.strip_prefix("PGOPTIONS=\""), rest),
        None => (None, command),
    };
    let words: Vec<&str> = command.split_whitespace().collect();
    let port = port.to_string();
    let place = words.iter().position(|word| *word == "-p").expect("a port");
    let mut words: Vec<&str> = words;
    words[place + 1] = &port;
    let environment: Vec<(&str, &str)> =
        environment.into_iter().map(|options| ("PGOPTIONS", options)).collect();
    let (text, is_fine) = run(words[0], 1, &words[1..], &environment);
    assert!(is_fine, "{command}: {text}");
}

/// What the proxy of the tutorial's `place` says of the shop.
fn record(server: &Server, folder: &Folder, place: usize) -> (i32, String) {
    let name = ["shop-run", "shop-fixed"][place];
    assert!(commands("isolde proxy")[place].ends_with(&format!("--record {name}")));
    let proxy = Proxy::start(folder, server.port, &format!("--record {name}"));
    let shop: Vec<&str> = TUTORIAL.lines().filter(|line| line.contains("pgbench -h")).collect();
    play(shop[place], proxy.port);
    let (status, text, _) = proxy.end();
    (status, text)
}

#[test]
fn the_tutorial_finds_its_three_mistakes_and_none_behind_the_fix() {
    let Some(server) = Server::start() else { return };
    let folder = Folder::new("shop");
    for command in commands("createdb").into_iter().chain(commands("psql")) {
        play(command, server.port);
    }
    let (status, text) = record(&server, &folder, 0);
    assert_eq!(status, 1, "{text}");
    for part in [
        "lost update (P4)",
        "A reads: SELECT stock FROM products WHERE id = ?",
        "A reads: SELECT uses_left FROM coupons WHERE code = ? /*route='/checkout'*/",
        "write skew (G2-item)",
        "SELECT count(*) AS present FROM doctors WHERE on_call",
        "READ COMMITTED permits it: this is the application's",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(!text.contains("not seen") && !text.contains("database's mistake"), "{text}");
    for (command, expected) in
        commands("isolde").into_iter().filter(|it| !it.contains(" proxy ")).zip([1, 1, 0])
    {
        let arguments = command.strip_prefix("isolde ").expect("it begins so");
        let (status, text) = output(folder.isolde(arguments));
        assert_eq!(status, expected, "{command}: {text}");
    }
    let (status, text) = record(&server, &folder, 1);
    assert_eq!(status, 0, "{text}");
    assert!(text.contains("no anomalies"), "{text}");
    let (status, text) = output(folder.isolde("check shop-fixed --level serializable"));
    assert_eq!(status, 0, "{text}");
}

/// Two clients, one statement after the other; whether a statement was refused.
fn interleaved(port: u16, level: &str, lines: &[(usize, &str)]) -> bool {
    let mut clients = [Raw::connect(port), Raw::connect(port)];
    for client in &mut clients {
        client.query(&format!("BEGIN ISOLATION LEVEL {level}"));
    }
    let mut is_refused = false;
    for &(client, sql) in lines {
        is_refused |= clients[client].query(sql)[0] == b'E';
    }
    is_refused
}

#[test]
fn two_doctors_who_look_first_both_go_home_unless_that_is_prevented() {
    let Some(server) = Server::start() else { return };
    let folder = Folder::new("doctors");
    let schema = "CREATE TABLE doctors (id int PRIMARY KEY, on_call boolean); \
                  INSERT INTO doctors VALUES (1, true), (2, true)";
    server.psql(&["-c", schema]);
    let look = "SELECT count(*) FROM doctors WHERE on_call";
    let leaves = |id: u32| format!("UPDATE doctors SET on_call = false WHERE id = {id}");
    let (first, second) = (leaves(1), leaves(2));
    let lines = [(0, look), (1, look), (0, &first), (1, &second), (0, "COMMIT"), (1, "COMMIT")];
    for (level, found) in [("READ COMMITTED", 1), ("REPEATABLE READ", 1), ("SERIALIZABLE", 0)] {
        server.psql(&["-c", "UPDATE doctors SET on_call = true"]);
        let name = level.replace(' ', "-");
        let proxy = Proxy::start(&folder, server.port, &format!("--record {name}"));
        assert_eq!(interleaved(proxy.port, level, &lines), level == "SERIALIZABLE");
        let (status, text, _) = proxy.end();
        assert_eq!(status, found, "{level}: {text}");
        assert_eq!(text.contains("write skew (G2-item), 1 time"), found == 1, "{level}: {text}");
        let check = format!("check {name} --level serializable --certificate {name}.proof");
        let (status, text) = output(folder.isolde(&check));
        assert_eq!(status, found, "{level}: {text}");
        let (status, text) =
            output(folder.isolde(&format!("verify {name}.proof {name}/history.log")));
        assert_eq!(status, 0, "{level}: {text}");
    }
}
