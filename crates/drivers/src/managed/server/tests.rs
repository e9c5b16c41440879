//! Servers of our own end in every way there is.

use super::*;

fn shell(script: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script]);
    command
}

#[test]
fn a_dropped_home_leaves_neither_folder_nor_process() {
    let home = Home::new("test", &[], &Stop::default()).expect("a home");
    let path = home.path().to_owned();
    let mut server = home
        .start("sleeper", shell("trap '' QUIT; setsid sleep 600 & echo ready; wait; wait"))
        .expect("a server");
    let log = path.join("sleeper.log");
    server
        .wait_until(Duration::from_secs(10), || {
            let text = fs::read_to_string(&log).unwrap_or_default();
            text.contains("ready").then_some(()).ok_or(Failure::Lost("silent".into()))
        })
        .expect("an answer");
    let process = server.leader();
    let family = descendants(process);
    assert_eq!(family.len(), 1);
    drop(server);
    drop(home);
    assert!(!path.exists());
    assert!(rustix::process::test_kill_process(process).is_err());
}

#[test]
fn a_home_that_is_never_dropped_is_removed_with_its_servers() {
    let mut home = Home::new("test", &[], &Stop::default()).expect("a home");
    let server = home.start("sleeper", shell("exec sleep 600")).expect("a server");
    // As the end of this process closes it.
    drop(home.watcher.stdin.take());
    home.watcher.wait().expect("the watcher's end");
    assert!(!home.path().exists());
    let server = std::mem::ManuallyDrop::new(server);
    let status = server.process().child.wait().expect("the server's end");
    assert!(!status.success());
}

/// A server of ours had the password of another one in its environment.
#[test]
fn servers_do_not_know_the_password_that_was_meant_for_another() {
    let home = Home::new("test", &[], &Stop::default()).expect("a home");
    let mut command = shell("test -z \"$ISOLDE_PASSWORD\"");
    command.env(PASSWORD_VARIABLE, "hunter2");
    home.run("tool", command, Duration::from_secs(10)).expect("no password");
}

#[test]
fn a_program_that_fails_shows_the_errors_of_its_log() {
    let home = Home::new("test", &[], &Stop::default()).expect("a home");
    let failure = home
        .run(
            "tool",
            shell("echo ERROR no space; echo Write to us; exit 3"),
            Duration::from_secs(10),
        )
        .expect_err("a failure");
    assert_eq!(
        failure.to_string(),
        "tool ended with exit status: 3; its log says:\n  ERROR no space"
    );
    let failure = home
        .run("slow", shell("exec sleep 600"), Duration::from_millis(50))
        .expect_err("a failure");
    assert_eq!(failure.to_string(), "slow took longer than 50ms");
    let failure = home
        .run("absent", Command::new("/nowhere/server"), Duration::from_secs(1))
        .expect_err("a failure");
    assert!(failure.to_string().starts_with("cannot start /nowhere/server: "), "{failure}");
}

/// Ending each of them in good order takes seconds.
#[test]
fn nothing_is_waited_for_once_it_is_to_stop() {
    let stop = Stop::default();
    let home = Home::new("test", &[], &stop).expect("a home");
    let path = home.path().to_owned();
    let deaf = || shell("trap '' QUIT; while :; do sleep 600; done");
    let mut server = home.start("deaf", deaf()).expect("a server");
    let setter = Arc::clone(&stop);
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(50));
        setter.store(true, Ordering::Relaxed);
    });
    let limit = Duration::from_mins(10);
    let failure = server.wait_until(limit, || Err::<(), _>(Failure::Lost("silent".into())));
    assert_eq!(failure.expect_err("no answer").to_string(), "deaf was interrupted");
    let failure = home.run("tool", deaf(), limit).expect_err("no end");
    assert_eq!(failure.to_string(), "tool was interrupted");
    let before = Instant::now();
    drop(server);
    drop(home);
    assert!(!path.exists());
    assert!(before.elapsed() < STOP_LIMIT, "{:?}", before.elapsed());
}

#[test]
fn a_stopped_server_starts_again() {
    let home = Home::new("test", &[], &Stop::default()).expect("a home");
    let mut server = home.start("again", shell("echo here; exec sleep 600")).expect("one");
    let first = server.leader();
    server.pause();
    server.resume();
    server.kill();
    server.start_again().expect("a server");
    assert_ne!(server.leader(), first);
    assert!(server.wait_until(Duration::from_secs(1), || Ok(())).is_ok());
}

#[test]
fn ports_are_different_and_can_be_bound() {
    let ports = free_ports(5).expect("ports");
    let bound: Vec<_> =
        ports.iter().map(|&port| TcpListener::bind((Ipv4Addr::LOCALHOST, port))).collect();
    assert!(bound.iter().all(Result::is_ok), "{ports:?}");
}

#[test]
fn a_missing_program_names_its_package() {
    let failure = program("no-such-server", &["/usr/lib/*/bin"], "thing").expect_err("none");
    assert_eq!(
        failure.to_string(),
        "no server: expected the program no-such-server, which Debian's package thing has"
    );
    assert!(program("sh", &[], "dash").is_ok());
}
