//! Texts that nobody can see any more: one content stands for all of them.
//!
//! **Why.** A read tells the whole text. A text that is the beginning of none that was read can
//! only grow to others that are not either, until a put replaces it. So up to then nobody tells it
//! from any other such text, and in which order they were made is no matter.
//!
//! If nothing is ever put, that is so for good. An append then changes nothing any more, and
//! takes effect as soon as it can, as a read does.

use super::operations::{Action, Content, Operation, Texts};
use super::search::{Problem, after};
use hashbrown::HashMap;

/// Stands for all texts that nobody can see any more.
const UNSEEN: Content = Content::MAX;

/// What can be seen of the objects that grow.
pub(super) struct Unseen {
    /// By object.
    objects: Vec<Option<Growing>>,
}

/// A text that is appended to.
#[derive(Default)]
struct Growing {
    /// What was read of it, in alphabetical order.
    read: Vec<String>,
    is_ever_put: bool,
    /// Whether a content is the beginning of what was read, as far as that was asked for.
    known: HashMap<Content, bool>,
}

impl Unseen {
    pub(super) fn of(problem: &Problem<'_>, texts: &Texts) -> Unseen {
        let mut objects: Vec<Option<Growing>> = problem.objects.iter().map(|_| None).collect();
        let appended = |operation: &&Operation| matches!(operation.action, Action::Append(_));
        for operation in problem.operations.iter().filter(appended) {
            objects[operation.object] = Some(Growing::default());
        }
        for operation in problem.operations {
            let Some(Some(growing)) = objects.get_mut(operation.object) else { continue };
            match operation.action {
                Action::Read(content) => growing.read.push(texts.text(content).to_owned()),
                Action::Write(_) => growing.is_ever_put = true,
                _ => {}
            }
        }
        for growing in objects.iter_mut().flatten() {
            growing.read.sort_unstable();
            growing.read.dedup();
        }
        Unseen { objects }
    }

    /// What stands for a content of an object.
    pub(super) fn content(&mut self, object: usize, content: Content, texts: &Texts) -> Content {
        let Some(Some(growing)) = self.objects.get_mut(object) else { return content };
        let Growing { read, known, .. } = growing;
        let is_seen = *known.entry(content).or_insert_with(|| {
            let text = texts.text(content);
            let next = read.partition_point(|other| other.as_str() < text);
            read.get(next).is_some_and(|other| other.starts_with(text))
        });
        if is_seen { content } else { UNSEEN }
    }

    /// What an object holds after an operation; `None` if that saw something else.
    pub(super) fn after(
        &mut self,
        operation: &Operation,
        content: Content,
        texts: &mut Texts,
    ) -> Option<Content> {
        if content == UNSEEN && matches!(operation.action, Action::Append(_)) {
            return Some(UNSEEN);
        }
        let content = after(operation.action, content, texts)?;
        Some(self.content(operation.object, content, texts))
    }

    /// Whether an operation changes nothing that anybody could ever see.
    pub(super) fn is_idle(&self, operation: &Operation, content: Content) -> bool {
        let is_ever_put =
            |growing: &Option<Growing>| growing.as_ref().is_none_or(|growing| growing.is_ever_put);
        content == UNSEEN
            && matches!(operation.action, Action::Append(_))
            && !self.objects.get(operation.object).is_none_or(is_ever_put)
    }
}
