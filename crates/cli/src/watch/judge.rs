//! Histories around violations: saved, and judged by the complete checker.

use super::monitor::Setting;
use super::opinion::opinion;
use super::status::Mark;
use super::window::Around;
use isolde_history::History;
use isolde_history::format;
use std::path::PathBuf;
use std::sync::mpsc::Receiver;

/// A history to be saved and judged.
pub(super) struct Part {
    pub(super) mark: Mark,
    pub(super) around: Around,
}

/// Saves parts and asks for second opinions, one after another.
pub(super) fn judge(setting: &Setting, parts: Receiver<Part>) {
    // Checking would take every core from the clients.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
    for Part { mark, around } in parts {
        let saved = save(setting, mark, &around.history);
        let text = match &saved {
            Ok(path) => format!("the history around it is in {}", path.display()),
            Err(error) => format!("the history around it cannot be saved: {error}"),
        };
        let _ = setting.output.more(mark, "window", &text);
        let text = match &pool {
            Ok(pool) => pool.install(|| opinion(&around)).to_text(),
            Err(error) => format!("no second opinion: {error}"),
        };
        let _ = setting.output.more(mark, "opinion", &text);
        let mut status = setting.status();
        if let Some(told) = status.stories.iter_mut().find(|told| told.mark() == mark) {
            told.saved = saved.ok().map(|path| path.display().to_string());
            told.opinion = Some(text);
        }
    }
}

fn save(setting: &Setting, mark: Mark, history: &History) -> std::io::Result<PathBuf> {
    std::fs::create_dir_all(&setting.folder)?;
    let path = setting.folder.join(format!("{}-{}.txt", mark.kind.event(), mark.number));
    std::fs::write(&path, format::to_text(history))?;
    Ok(path)
}
