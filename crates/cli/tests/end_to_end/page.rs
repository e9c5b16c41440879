//! The page of `isolde report` and `isolde serve` in a real browser.

use crate::browser::Browser;
use crate::support::{Folder, Run};
use serde_json::json;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::Stdio;

/// An effect without its cause: that C read too early follows from the order of A's writes.
const CAUSALITY: &str = "A: w(x,1)\nA: w(x,2)\nB: r(x,2) w(y,1)\nC: r(y,1)\nC: r(x,1)\n";
/// Write skew with times.
const SKEW: &str = "A @10..40: r(x,nil) w(y,1)\nB @20..50: r(y,nil) w(x,1)\nC @60..90: r(x,1)\n";

fn made(folder: &Folder, arguments: &str) {
    let Run { status, stdout, stderr } = folder.isolde(arguments);
    assert_eq!((status, stdout.as_str()), (0, ""), "{stderr}");
}

/// A page with a history in it, in a browser, if there is one.
fn opened(history: &str) -> Option<(Folder, Browser)> {
    let mut browser = Browser::start()?;
    let folder = Folder::with(&[("history.txt", history)]);
    made(&folder, "report history.txt -o page.html");
    browser.resize(1280, 900, false);
    browser.open_file(&folder.path("page.html"));
    Some((folder, browser))
}

#[test]
fn the_page_shows_levels_counterexample_and_timeline_from_a_file() {
    let Some((_folder, mut browser)) = opened(SKEW) else { return };
    let shown = browser.value(
        "({tabs: [...document.querySelectorAll('#tabs button')].length > 0, \
           levels: document.querySelectorAll('#level-list .violated').length > 0, \
           lattice: document.querySelectorAll('.lattice .level.violated').length > 0, \
           cards: document.querySelectorAll('#violation .card.cycle').length, \
           steps: document.querySelectorAll('#violation > .argument > div > .steps > .step').length, \
           plots: document.querySelectorAll('.plot').length, \
           canvas: document.querySelector('canvas').width > 300})",
    );
    assert_eq!(
        shown,
        json!({"tabs": true, "levels": true, "lattice": true, "cards": 2, "steps": 2, "plots": 2,
               "canvas": true})
    );
    browser.screenshot("light.png", true);
    assert_eq!(browser.complaints, [""; 0]);
}

#[test]
fn an_edge_opens_into_what_it_follows_from_and_closes_again() {
    let Some((_folder, mut browser)) = opened(CAUSALITY) else { return };
    let open = "document.querySelectorAll('.step.grounded > .head[aria-expanded=true]').length";
    let nested = "document.querySelectorAll('.step .step').length";
    let derived = "document.querySelectorAll('.arrow.derived.open').length";
    // A short argument is open from the start.
    let before = [open, nested, derived].map(|it| browser.value(it).as_u64().expect("a count"));
    assert!(before.iter().all(|&count| count > 0), "{before:?}");
    browser.value("document.querySelector('.step.grounded > .head').click()");
    let closed = [nested, derived].map(|it| browser.value(it).as_u64().expect("a count"));
    assert_eq!(closed, [0, 0]);
    // By keyboard, on the arrow in the picture.
    browser.value("document.querySelector('#violation .arrow[data-edge=\"0\"]').focus()");
    assert_eq!(browser.value("document.querySelectorAll('.step.lit').length"), json!(1));
    browser.press("Enter");
    // What the opened step follows from is there again, closed itself.
    assert_eq!(browser.value(derived), json!(1));
    assert_eq!(browser.complaints, [""; 0]);
}

#[test]
fn a_search_filters_by_key_and_by_transaction() {
    let Some((_folder, mut browser)) = opened(SKEW) else { return };
    let results = "[...document.querySelectorAll('#results b')].map((it) => it.textContent)";
    let search = |browser: &mut Browser, text: &str| {
        browser.value(&format!(
            "new Promise((done) => {{ const field = document.getElementById('search'); \
             field.value = {text:?}; field.dispatchEvent(new Event('input')); \
             setTimeout(done, 300); }})"
        ));
        browser.value(results)
    };
    assert_eq!(search(&mut browser, "y"), json!(["A", "B"]));
    assert_eq!(search(&mut browser, "C"), json!(["C"]));
    assert_eq!(search(&mut browser, "nothing"), json!([]));
    assert_eq!(search(&mut browser, ""), json!([]));
    // A result shows its transaction with its values.
    search(&mut browser, "C");
    browser.value("document.querySelector('#results button').click()");
    let tip = browser.value("document.getElementById('tip').textContent");
    assert!(tip.as_str().is_some_and(|tip| tip.contains("read x = 1")), "{tip}");
    assert_eq!(browser.complaints, [""; 0]);
}

#[test]
fn keys_move_the_timeline_and_a_button_changes_the_theme() {
    let Some((_folder, mut browser)) = opened(SKEW) else { return };
    browser.value("document.querySelector('canvas').focus()");
    let picture = "document.querySelector('canvas').toDataURL().length + ':' + \
                   document.querySelector('canvas').toDataURL().slice(-2000)";
    let frame = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))";
    let mut seen = vec![browser.value(picture)];
    for key in ["+", "ArrowRight", "0"] {
        browser.press(key);
        browser.value(frame);
        let now = browser.value(picture);
        assert_ne!(Some(&now), seen.last(), "{key}");
        seen.push(now);
    }
    browser.press("n");
    assert_eq!(browser.value("document.getElementById('said').textContent"), json!("A, committed"));
    let ground = "getComputedStyle(document.body).backgroundColor";
    let light = browser.value(ground);
    browser.value("document.getElementById('theme').click()");
    assert_ne!(browser.value(ground), light);
    browser.screenshot("dark.png", true);
    assert_eq!(browser.complaints, [""; 0]);
}

#[test]
fn a_phone_scrolls_in_one_direction_only() {
    let Some((_folder, mut browser)) = opened(SKEW) else { return };
    browser.resize(390, 844, true);
    browser.value("new Promise((done) => setTimeout(done, 200))");
    let wide = "[document.documentElement.scrollWidth, innerWidth]";
    assert_eq!(browser.value(wide), json!([390, 390]));
    browser.screenshot("phone.png", true);
    assert_eq!(browser.complaints, [""; 0]);
}

#[test]
fn hostile_strings_are_text_and_run_nothing() {
    let hostile = [
        "</script><script>window.hacked=1</script>",
        "<img src=x onerror='window.hacked=2'>",
        "<svg/onload=window.hacked=3>",
        "{{data}} <!-- <script> ]]> & &lt;",
        "javascript:alert(1)",
        "\\u003cscript\\u003e",
    ];
    let mut lines: Vec<String> = Vec::new();
    for (place, text) in hostile.iter().enumerate() {
        let quoted = format!("{text:?}");
        lines.push(format!("A{place}: r({quoted},nil) w(y{place},{quoted})\n"));
        lines.push(format!("B{place}: r(y{place},nil) w({quoted},{quoted})\n"));
    }
    let Some((_folder, mut browser)) = opened(&lines.concat()) else { return };
    browser.value(
        "[...document.querySelectorAll('#tabs button, .step > .head')].forEach((it) => it.click())",
    );
    browser.value(
        "new Promise((done) => { const field = document.getElementById('search'); \
         field.value = 'A0'; field.dispatchEvent(new Event('input')); setTimeout(done, 300); })",
    );
    assert_eq!(browser.value("typeof window.hacked"), json!("undefined"));
    let strange = "document.querySelectorAll('img, svg[onload], script:not([id]) ~ script').length";
    assert_eq!(browser.value(strange), json!(0));
    let text = browser.value("document.body.innerText");
    assert!(text.as_str().is_some_and(|text| text.contains("</script><script>window.hacked=1")));
    assert_eq!(browser.complaints, [""; 0]);
}

#[test]
fn a_hundred_thousand_transactions_are_there_within_two_seconds() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = Folder::with(&[]);
    made(
        &folder,
        "gen --transactions 100000 --sessions 20 --keys 2000 --isolation snapshot-isolation \
         --anomaly lost-update --times transactions --to binary -o big",
    );
    let run = folder.isolde("check big --level cursor-stability --format html -o big.html");
    assert_eq!((run.status, run.stdout.as_str()), (1, ""), "{}", run.stderr);
    let size = std::fs::metadata(folder.path("big.html")).expect("a page").len();
    assert!(size < 8_000_000, "{size} bytes are more than a mail takes");
    browser.resize(1280, 900, false);
    let milliseconds = browser.open_file(&folder.path("big.html"));
    // Two seconds on an idle machine; tests share theirs.
    assert!(milliseconds < 6000, "ready after {milliseconds} ms");
    let _ = writeln!(std::io::stderr(), "100,000 transactions: ready after {milliseconds} ms");
    let spent = browser.value(
        "new Promise((done) => { const start = performance.now(); \
         document.querySelector('[aria-label=\"Show the whole history\"]').click(); \
         requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - start))); })",
    );
    assert!(spent.as_f64().is_some_and(|spent| spent < 2000.0), "drawn in {spent} ms");
    browser.screenshot("big.png", true);
    assert_eq!(browser.complaints, [""; 0]);
}

#[test]
fn the_page_has_every_operation_as_it_was() {
    let history = "A: w(x,-5) r(y,nil) w(y,2)\nA: r(x,-5) w(x,1125899906842625)\n\
                   A: r(y,2) w(z,30) r(x,1125899906842625)\n";
    let Some((_folder, mut browser)) = opened(history) else { return };
    let told = browser.value(
        "new Promise((done) => { const field = document.getElementById('search'); \
         field.value = 'A.'; field.dispatchEvent(new Event('input')); setTimeout(() => \
         done([...document.querySelectorAll('#results .op')].map((it) => it.textContent)), 300); })",
    );
    assert_eq!(
        told,
        json!([
            "write x = -5, read y = nil, write y = 2",
            "read x = -5, write x = 1125899906842625",
            "read y = 2, write z = 30, read x = 1125899906842625"
        ])
    );
    assert_eq!(browser.complaints, [""; 0]);
}

#[test]
fn an_order_that_was_told_before_opens_again() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = Folder::with(&[]);
    let history = "--transactions 3000 --keys 1500 --read-share 0.3 --isolation snapshot-isolation";
    made(&folder, &format!("gen {history} -o h.txt"));
    let run = folder.isolde("check h.txt --level serializable --format html -o page.html");
    assert_eq!((run.status, run.stdout.as_str()), (1, ""), "{}", run.stderr);
    browser.resize(1280, 900, false);
    browser.open_file(&folder.path("page.html"));
    let closed = "document.querySelectorAll('.step.grounded > .head[aria-expanded=false]')";
    for _ in 0..7 {
        browser.value(&format!("{closed}.forEach((head) => head.click())"));
    }
    let text = browser.value("document.querySelector('#violation details pre').textContent");
    assert!(text.as_str().is_some_and(|text| text.contains("  F1. ")), "{text}");
    let found = browser.value(
        "(() => { const facts = [...document.querySelectorAll('.step > .head .fact')]; \
         const open = facts.filter((it) => it.closest('.step').querySelector('.detail .step')); \
         return facts.length > 3 && open.length > 3; })()",
    );
    assert_eq!((found, &browser.complaints[..]), (json!(true), &[][..] as &[String]));
}

#[test]
fn finished_runs_are_browsed_and_nothing_else() {
    let folder = Folder::with(&[("secret", "not for you")]);
    let made = folder.isolde(
        "run sim://serializable?bug=write-skew --keys 6 --transactions 500 -o runs/one<two --quiet",
    );
    assert!(made.status <= 1, "{made:?}");
    let mut server = folder
        .command("serve runs --listen 127.0.0.1:0")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts");
    let mut address = String::new();
    let stdout = server.stdout.take().expect("piped");
    BufReader::new(stdout).read_line(&mut address).expect("its address");
    let address = address.trim_end();
    let host = address.trim_start_matches("http://").trim_end_matches('/');
    let status = |request: &str| answer_to(host, request).lines().next().unwrap_or("").to_owned();
    let get = |path: &str| status(&format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n"));
    assert_eq!(get("/"), "HTTP/1.1 200 OK");
    for path in
        ["/secret", "/run/..%2fsecret", "/run/../secret", "/run/", "/../secret", "/run/%2e%2e"]
    {
        assert_eq!(get(path), "HTTP/1.1 404 Not Found", "{path}");
    }
    assert_eq!(get("/%zz"), "HTTP/1.1 400 Bad Request");
    let post = format!("POST / HTTP/1.1\r\nHost: {host}\r\n\r\n");
    assert_eq!(status(&post), "HTTP/1.1 405 Method Not Allowed");
    let foreign = "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n";
    assert_eq!(status(foreign), "HTTP/1.1 403 Forbidden");
    if let Some(mut browser) = Browser::start() {
        browser.resize(1280, 700, false);
        browser.call("Page.navigate", json!({"url": address}));
        let name = "new Promise((done) => setTimeout(() => done(document.querySelector('td a')?.textContent), 800))";
        assert_eq!(browser.value(name), json!("one<two"));
        browser.screenshot("runs.png", false);
        browser.open(&format!("{address}run/one%3Ctwo"));
        assert_eq!(
            browser.value("document.querySelectorAll('.card.cycle').length > 1"),
            json!(true)
        );
        assert_eq!(browser.complaints, [""; 0]);
    }
    // Connections that ask for nothing, or for half of it, keep nobody from an answer.
    let idle: Vec<std::net::TcpStream> = (0..200)
        .map(|number| {
            let mut stream = std::net::TcpStream::connect(host).expect("the server listens");
            if number % 2 == 0 {
                stream.write_all(b"GET / HTTP/1.1\r\n").expect("the server is there");
            }
            stream
        })
        .collect();
    assert_eq!(get("/"), "HTTP/1.1 200 OK");
    drop(idle);
    // A link leads nowhere that is not served.
    let log = folder.path("runs/one<two/history.log");
    std::fs::remove_file(&log).expect("it was recorded");
    std::os::unix::fs::symlink(folder.path("secret"), &log).expect("a link");
    assert_eq!(get("/run/one%3Ctwo"), "HTTP/1.1 403 Forbidden");
    // Ctrl-C is a clean end.
    let pid = server.id().to_string();
    let killed = std::process::Command::new("kill").args(["-INT", &pid]).status();
    assert!(killed.is_ok_and(|status| status.success()));
    assert_eq!(server.wait().expect("it ends").code(), Some(0));
}

/// What a server answers to this.
pub(crate) fn answer_to(host: &str, request: &str) -> String {
    let mut stream = std::net::TcpStream::connect(host).expect("the server listens");
    stream.write_all(request.as_bytes()).expect("the server reads");
    let mut answer = String::new();
    // A server that closes early has answered all the same.
    let _ = stream.read_to_string(&mut answer);
    answer
}
