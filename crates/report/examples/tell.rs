//! Prints the report of a history.
use isolde::{Check, Level, Limits, applicable_levels};
use isolde_history::{Index, format};
fn main() {
    let mut args = std::env::args().skip(1);
    let file = args.next().unwrap();
    let level = args.next().map(|l| Level::parse(&l).unwrap());
    let input = format::open(std::path::Path::new(&file)).unwrap();
    let (history, f) =
        format::read_detected(input, format::ReadOptions { memory_max: None, initial: None })
            .unwrap();
    let index = Index::new(&history);
    let mut check = Check::new(&history, &index, &Limits::NONE);
    let start = std::time::Instant::now();
    let levels = level.map_or_else(|| applicable_levels(&history), |l| vec![l]);
    for level in levels.iter().rev() {
        let _ = check.decide(*level);
    }
    let decided: Vec<_> = levels.iter().map(|&l| (l, check.decide(l), 0.0)).collect();
    let t1 = start.elapsed();
    let report =
        isolde_report::Report::new(&history, &index, (&file, f.name), &decided, check.found());
    let t2 = start.elapsed() - t1;
    if std::env::var_os("FULL").is_some() {
        print!("{}", isolde_report::to_explanations(&report, isolde_report::Which::Broken));
    } else {
        print!("{}", isolde_report::to_text(&report, isolde_report::Detail::Full, None));
    }
    eprintln!("check {t1:?} explain {t2:?}");
}
