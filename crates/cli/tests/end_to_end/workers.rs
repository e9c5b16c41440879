//! Several workers: `docs/cluster.md` as it is written, and what is refused.

use crate::support::{Folder, refused};
use std::net::TcpListener;
use std::process::{Output, Stdio};

const PAGE: &str = include_str!("../../../../docs/cluster.md");

/// The blocks of commands of the page.
fn blocks() -> Vec<Vec<&'static str>> {
    let parts = PAGE.split("```sh\n").skip(1);
    let blocks = parts.map(|it| it.split("```").next().expect("a block ends"));
    let commands =
        |block: &'static str| block.lines().map(|it| it.strip_prefix("isolde ").unwrap());
    blocks.map(|block| commands(block).collect()).collect()
}

/// Addresses on loopback that nobody listens at.
fn addresses(count: usize) -> String {
    let free: Vec<TcpListener> =
        (0..count).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    let lines = free.iter().map(|it| format!("{}\n", it.local_addr().unwrap()));
    lines.collect()
}

/// Runs commands at the same time.
fn together(folder: &Folder, commands: &[&str]) -> Vec<Output> {
    let start = |command: &&str| {
        let mut command = folder.command(command);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let children: Vec<_> = commands.iter().map(start).collect();
    children.into_iter().map(|it| it.wait_with_output().unwrap()).collect()
}

#[test]
fn the_page_takes_a_user_from_one_process_to_three() {
    let folder = Folder::with(&[("hosts.txt", &addresses(3))]);
    let blocks = blocks();
    let [first, threads, parts, processes] = &blocks[..] else { panic!("{blocks:?}") };
    for command in [first, threads, parts].into_iter().flatten() {
        let run = folder.isolde(command);
        assert_eq!((run.status, &*run.stderr), (0, ""), "{command}: {}", run.stdout);
        if command.starts_with("check") {
            assert!(run.stdout.contains("strict-serializable"), "{command}: {}", run.stdout);
        }
    }
    let results = together(&folder, processes);
    assert_eq!(results.len(), 3);
    for result in &results {
        assert_eq!(result.status.code(), Some(0), "{}", String::from_utf8_lossy(&result.stderr));
        assert_eq!(result.stdout, results[0].stdout);
    }
}

/// Two transactions each of which missed what the other wrote, and had all the time to see it.
const STALE: &str = "A @1..2: w(x,1)\nB @3..4: r(x,nil) w(y,1)\nC @5..6: r(y,1)\n";

#[test]
fn a_violation_is_explained_whoever_found_it() {
    let folder = Folder::with(&[("it.hist", STALE), ("hosts.txt", &addresses(2))]);
    let command = "check it.hist --level strict-serializable";
    let alone = folder.isolde(command);
    assert_eq!(alone.status, 1);
    let shown = "A had completed at 2 ns when B was invoked at 3 ns";
    assert!(alone.stdout.contains(shown), "{}", alone.stdout);
    let threads = folder.isolde(&format!("{command} --workers 3"));
    assert_eq!((threads.status, &*threads.stderr), (1, ""));
    assert_eq!(threads.stdout, alone.stdout);
    let asked = |process| format!("{command} --processes hosts.txt --process {process}");
    for result in together(&folder, &[&asked(0), &asked(1)]) {
        assert_eq!(result.status.code(), Some(1));
        assert_eq!(String::from_utf8_lossy(&result.stdout), threads.stdout);
    }
}

#[test]
fn processes_that_were_started_otherwise_say_so() {
    let folder = Folder::with(&[("it.hist", STALE), ("hosts.txt", &addresses(2))]);
    let results = together(
        &folder,
        &[
            "check it.hist -l strict-serializable --processes hosts.txt --process 0",
            "check it.hist -l strong-snapshot-isolation --processes hosts.txt --process 1",
        ],
    );
    for result in results {
        assert_eq!((result.status.code(), &*result.stdout), (Some(3), &b""[..]));
        let message = String::from_utf8_lossy(&result.stderr);
        assert!(message.contains("was started otherwise: expected `levels str"), "{message}");
    }
}

#[test]
fn what_workers_cannot_do_is_refused() {
    let folder = Folder::with(&[
        ("it.hist", STALE),
        ("twice.txt", "127.0.0.1:7001\n127.0.0.1:7001\n"),
        ("one.txt", "127.0.0.1:7001\n"),
    ]);
    let said = |arguments: &str| folder.isolde(&format!("check it.hist {arguments}"));
    assert_eq!(
        said("--workers 2 --claims"),
        refused("isolde: workers verify without --claims: leave one of the two out\n")
    );
    assert_eq!(
        said("--processes twice.txt --process 0"),
        refused(
            "isolde: twice.txt: line 2: expected the address of another process, such as \
             10.0.0.1:7000, found `127.0.0.1:7001`\n"
        )
    );
    assert_eq!(
        said("--processes one.txt --process 1"),
        refused("isolde: one.txt has 1 addresses, found --process 1\n")
    );
}

#[test]
fn a_damaged_part_is_refused_before_anything_is_said() {
    let folder = Folder::with(&[("it.hist", STALE)]);
    assert_eq!(folder.isolde("convert it.hist --split 2 --output parts").status, 0);
    let status = folder.isolde("check parts --level strict-serializable").status;
    assert_eq!(status, 1);
    let mut bytes = std::fs::read(folder.path("parts/part-00000.isolde")).unwrap();
    bytes.pop();
    folder.write("parts/part-00000.isolde", &bytes);
    let run = folder.isolde("check parts --level strict-serializable");
    assert_eq!((run.status, &*run.stdout), (3, ""));
    assert!(run.stderr.contains("part-00000.isolde: expected "), "{}", run.stderr);
}
