//! Reading command lines: provisionally only plain words joined by `&&`; anything else is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    pub commands: Vec<Command>,
}
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    pub words: Vec<Word>,
    pub assignments: Vec<String>,
    pub redirections: Vec<Redirection>,
    pub wrapping: Wrapping,
    pub inner: Vec<Command>,
    pub inner_word: Option<usize>,
    pub hazards: Vec<Hazard>,
    pub writes: Vec<String>,
}
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    pub text: String,
    pub certainty: Certainty,
}
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Certainty {
    Literal,
    Partial,
}
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wrapping {
    Plain,
    Transparent,
    Wrapper,
}
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hazard {
    pub word: usize,
    pub what: HazardKind,
}
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HazardKind {
    RunsProgram,
}
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirection {
    pub kind: RedirectionKind,
    pub target: Option<String>,
}
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RedirectionKind {
    Read,
    Write,
}
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("it cannot be read")]
pub struct Refusal;
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    pub words: Vec<String>,
}
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Completeness {
    Complete,
    CutOff,
}
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lenient {
    pub candidates: Vec<Candidate>,
    pub complete: Completeness,
}
pub fn strict(line: &str) -> Result<Script, Refusal> {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "_./-:,@%+=& ".contains(letter);
    if !line.chars().all(plain) || line.replace("&&", "").contains('&') {
        return Err(Refusal);
    }
    Ok(Script {
        commands: line
            .split("&&")
            .map(|part| Command {
                words: part
                    .split_whitespace()
                    .map(|w| Word {
                        text: w.into(),
                        certainty: Certainty::Literal,
                    })
                    .collect(),
                assignments: vec![],
                redirections: vec![],
                wrapping: Wrapping::Plain,
                inner: vec![],
                inner_word: None,
                hazards: vec![],
                writes: vec![],
            })
            .collect(),
    })
}
pub fn lenient(line: &str) -> Lenient {
    Lenient {
        candidates: line
            .split("&&")
            .map(|part| Candidate {
                words: part.split_whitespace().map(str::to_owned).collect(),
            })
            .collect(),
        complete: Completeness::Complete,
    }
}
