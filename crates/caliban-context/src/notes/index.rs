//! The text of `MEMORY.md`: one line for each topic among whatever else people write there.

use std::collections::{BTreeMap, HashSet};

use super::topic::{Topic, TopicName};

/// What the file begins with. The comment is for those who edit it and is not shown to the model.
pub(super) const TEMPLATE: &str = "# Memory index\n\n<!--\nOne line for each topic file beside \
     this one: a link, a dash, the type and a summary.\nThe agent keeps these lines up to date; \
     other lines stay as they are. At most 200 lines\nor 25 KB of this file are read at the start \
     of a session; comments are not read at all.\n-->\n\n";

/// The index with this topic's line changed or added.
pub(super) fn with_topic(index: &str, name: &TopicName, topic: &Topic) -> String {
    let mut result = rewritten(index, |entry| {
        if entry == name.as_str() {
            Line::Replace(entry_line(name, topic))
        } else {
            Line::Keep
        }
    });
    result.append_missing(name, topic);
    result.text
}

/// The index without this topic's line.
pub(super) fn without_topic(index: &str, name: &TopicName) -> String {
    rewritten(index, |entry| {
        if entry == name.as_str() {
            Line::Drop
        } else {
            Line::Keep
        }
    })
    .text
}

/// The index with a line for each of these topics and for no other.
pub(super) fn rebuilt(index: &str, topics: &BTreeMap<TopicName, Topic>) -> String {
    let by_name: BTreeMap<&str, (&TopicName, &Topic)> = topics
        .iter()
        .map(|(name, topic)| (name.as_str(), (name, topic)))
        .collect();
    let mut result = rewritten(index, |entry| match by_name.get(entry) {
        Some((name, topic)) => Line::Replace(entry_line(name, topic)),
        None => Line::Drop,
    });
    for (name, topic) in topics {
        result.append_missing(name, topic);
    }
    result.text
}

/// What the model reads of an index: no comments, and nothing at all of one without entries.
pub(super) fn shown(index: &str) -> Option<String> {
    let text = without_comments(index);
    let says_something = text
        .lines()
        .any(|line| !line.trim().is_empty() && !line.starts_with('#'));
    says_something.then(|| text.trim().to_owned())
}

fn without_comments(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("<!--") {
        let Some(length) = rest[start..].find("-->") else {
            break;
        };
        result.push_str(&rest[..start]);
        rest = &rest[start + length + 3..];
    }
    result.push_str(rest);
    result
}

enum Line {
    Keep,
    Replace(String),
    Drop,
}

struct Rewritten {
    text: String,
    seen: HashSet<String>,
}

impl Rewritten {
    fn append_missing(&mut self, name: &TopicName, topic: &Topic) {
        if self.seen.insert(name.as_str().to_owned()) {
            self.text.push_str(&entry_line(name, topic));
            self.text.push('\n');
        }
    }
}

/// Applies a change to each entry; an entry that is there twice stays once.
fn rewritten(index: &str, change: impl Fn(&str) -> Line) -> Rewritten {
    let mut text = String::with_capacity(index.len());
    let mut seen = HashSet::new();
    for line in index.lines() {
        let kept = match entry_name(line) {
            None => Some(line.to_owned()),
            Some(name) if seen.contains(name) => None,
            Some(name) => match change(name) {
                Line::Keep => Some(line.to_owned()),
                Line::Replace(line) => {
                    seen.insert(name.to_owned());
                    Some(line)
                }
                Line::Drop => None,
            },
        };
        if let Some(line) = kept {
            text.push_str(&line);
            text.push('\n');
        }
    }
    Rewritten { text, seen }
}

/// The topic that a line is the entry of.
fn entry_name(line: &str) -> Option<&str> {
    let (name, rest) = line.strip_prefix("- [")?.split_once("](")?;
    let (file, _) = rest.split_once(')')?;
    (file.strip_suffix(".md")? == name).then_some(name)
}

fn entry_line(name: &TopicName, topic: &Topic) -> String {
    let name = name.as_str();
    // A comment that began in one summary and ended in another would hide what is between.
    let summary = topic
        .description()
        .replace("<!--", "<! --")
        .replace("-->", "-- >");
    format!(
        "- [{name}]({name}.md) — {}: {summary}",
        topic.kind().as_str()
    )
}

#[cfg(test)]
mod tests {
    use super::super::topic::TopicType;
    use super::*;

    fn name(text: &str) -> TopicName {
        text.parse().unwrap()
    }

    fn topic(description: &str) -> Topic {
        Topic::new(description, TopicType::Project, "body").unwrap()
    }

    #[test]
    fn lines_are_added_changed_and_removed_in_place() {
        let index = "# Memory index\n\n- [a](a.md) — user: old\nby hand\n- [a](a.md) — twice\n";
        let index = with_topic(index, &name("b"), &topic("two"));
        let index = with_topic(&index, &name("a"), &topic("new"));
        assert_eq!(
            index,
            "# Memory index\n\n- [a](a.md) — project: new\nby hand\n- [b](b.md) — project: two\n"
        );
        assert_eq!(
            without_topic(&index, &name("a")),
            "# Memory index\n\nby hand\n- [b](b.md) — project: two\n"
        );
    }

    #[test]
    fn a_rebuilt_index_has_each_topic_once() {
        let index = "# M\n- [gone](gone.md) — user: x\n## Kept\n- [b](b.md) — user: stale\nprose\n";
        let topics = BTreeMap::from([(name("a"), topic("one")), (name("b"), topic("two"))]);
        assert_eq!(
            rebuilt(index, &topics),
            "# M\n## Kept\n- [b](b.md) — project: two\nprose\n- [a](a.md) — project: one\n"
        );
    }

    #[test]
    fn comments_are_for_people() {
        assert_eq!(shown(TEMPLATE), None);
        let index = format!("{TEMPLATE}- [a](a.md) — user: x <!-- y -->\n<!-- open");
        assert_eq!(
            shown(&index).unwrap(),
            "# Memory index\n\n\n\n- [a](a.md) — user: x \n<!-- open"
        );
        let hiding = with_topic("", &name("a"), &topic("<!-- a"));
        let hiding = with_topic(&hiding, &name("b"), &topic("b --> c"));
        assert_eq!(shown(&hiding).unwrap().lines().count(), 2);
    }
}
