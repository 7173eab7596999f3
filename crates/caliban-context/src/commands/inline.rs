//! The shell commands in the text of a command, whose output stands in their place.

/// A stretch of a command's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stretch<'a> {
    Text(&'a str),
    /// What a shell is to run.
    Shell(&'a str),
}

/// What opens and closes a block.
const FENCE: &str = "```";

/// Takes a text apart. A shell command stands in backticks behind a `!` that begins a line or a
/// word, or in a block that three backticks and a `!` open; other blocks are left alone.
pub(super) fn stretches(text: &str) -> Vec<Stretch<'_>> {
    let mut taken = Taken {
        text,
        stretches: Vec::new(),
        from: 0,
    };
    let mut block = Block::None;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let end = at + line.len();
        let bare = line.trim();
        block = match block {
            Block::None if bare == "```!" => Block::Shell {
                from: at,
                script: end,
            },
            Block::None if bare.starts_with(FENCE) => Block::Other,
            Block::None => {
                taken.line(at, line);
                Block::None
            }
            Block::Other if bare == FENCE => Block::None,
            Block::Shell { from, script } if bare == FENCE => {
                taken.shell(from, text[script..at].trim(), at + line.trim_end().len());
                Block::None
            }
            block @ (Block::Other | Block::Shell { .. }) => block,
        };
        at = end;
    }
    taken.finish()
}

#[derive(Debug, Clone, Copy)]
enum Block {
    None,
    Other,
    /// Where it was opened, and where its lines begin.
    Shell {
        from: usize,
        script: usize,
    },
}

struct Taken<'a> {
    text: &'a str,
    stretches: Vec<Stretch<'a>>,
    /// Where what has not been taken begins.
    from: usize,
}

impl<'a> Taken<'a> {
    fn line(&mut self, at: usize, line: &'a str) {
        let mut searched = 0;
        while let Some(found) = line[searched..].find("!`") {
            let mark = searched + found;
            let script = mark + 2;
            let begins = line[..mark].chars().next_back();
            let Some(length) = line[script..].find('`') else {
                return;
            };
            searched = script + length + 1;
            if begins.is_none_or(char::is_whitespace) {
                let end = at + searched;
                self.shell(at + mark, line[script..script + length].trim(), end);
            }
        }
    }

    fn shell(&mut self, begin: usize, script: &'a str, end: usize) {
        if script.is_empty() {
            return;
        }
        self.until(begin);
        self.stretches.push(Stretch::Shell(script));
        self.from = end;
    }

    fn until(&mut self, end: usize) {
        if self.from < end {
            self.stretches
                .push(Stretch::Text(&self.text[self.from..end]));
        }
    }

    fn finish(mut self) -> Vec<Stretch<'a>> {
        self.until(self.text.len());
        self.stretches
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shown(text: &str) -> String {
        let piece = |stretch: &Stretch<'_>| match stretch {
            Stretch::Text(text) => (*text).to_owned(),
            Stretch::Shell(script) => format!("<{script}>"),
        };
        stretches(text).iter().map(piece).collect()
    }

    #[test]
    fn commands_are_found_where_they_are_meant() {
        assert_eq!(shown("a !`git status` b\n!`ls`"), "a <git status> b\n<ls>");
        assert_eq!(shown("- x: !` date `."), "- x: <date>.");
        for plain in [
            "a!`b`",
            "`!`",
            "!`open",
            "!``",
            "! `x`",
            "```sh\n!`x`\n```\n",
        ] {
            assert_eq!(shown(plain), plain);
        }
        assert_eq!(
            shown("a\n```!\ngit log $1\nls\n```\nb"),
            "a\n<git log $1\nls>\nb"
        );
        assert_eq!(shown("```!\nnever closed"), "```!\nnever closed");
        assert_eq!(shown("x!`a` !`b`"), "x!`a` <b>");
    }

    proptest! {
        #[test]
        fn nothing_is_lost(text in "(!`|`|```!\n|```\n| |é|x|\n){0,16}") {
            let stretches = stretches(&text);
            let mut rest = text.as_str();
            for stretch in stretches {
                let (Stretch::Text(part) | Stretch::Shell(part)) = stretch;
                let at = rest.find(part).unwrap();
                rest = &rest[at + part.len()..];
            }
        }
    }
}
