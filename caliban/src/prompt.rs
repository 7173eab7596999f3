//! Where the prompt comes from. Standard input is read only when asked for: by `-`, or when
//! there is no prompt and it is not a terminal.

use std::io::{IsTerminal, Read};

use caliban_model::{Block, Message};

use crate::args::RunArgs;
use crate::exit::Failure;

/// The most that is read from standard input.
const MAX_STDIN: u64 = 10 * 1024 * 1024;

/// What stands at the other end of standard input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stdin {
    Terminal,
    Piped,
}

/// A prompt as it was given: only what was typed may attach files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Prompt {
    pub(crate) typed: String,
    pub(crate) piped: Option<String>,
}

impl Prompt {
    /// What was typed, which may name files and resources.
    pub(crate) fn session_prompt(&self) -> caliban_session::Prompt {
        caliban_session::Prompt::typed("prompt", self.typed.clone())
    }

    /// The whole of it: a text beside `-` comes first, what was piped after it, then what goes
    /// along.
    pub(crate) fn with_piped(&self, mut message: Message) -> Message {
        if let Some(Block::Text { text, .. }) = message.content.first_mut() {
            *text = self.text();
        }
        message
    }

    fn text(&self) -> String {
        match &self.piped {
            None => self.typed.clone(),
            Some(piped) if piped.trim().is_empty() => self.typed.clone(),
            Some(piped) if self.typed.is_empty() => piped.clone(),
            Some(piped) => format!("{}\n\n{piped}", self.typed),
        }
    }
}

/// Whether the program may answer and exit at all: there is no other way to use it without a
/// terminal.
pub(crate) fn check_headless(args: &RunArgs, stdin: Stdin) -> Result<(), Failure> {
    let asked_for = args.print.is_some() || args.output.output_format.is_some();
    let has_terminal = stdin == Stdin::Terminal && std::io::stdout().is_terminal();
    if args.output.no_auto_print && !asked_for && !has_terminal {
        return Err(Failure::Usage(
            "`--no-auto-print` needs a terminal; use `-p` to answer and exit".to_owned(),
        ));
    }
    Ok(())
}

/// Prompts on standard input leave no room for another one.
pub(crate) fn check_stream(args: &RunArgs) -> Result<(), Failure> {
    let given = [&args.print, &args.prompt_flag, &args.prompt]
        .into_iter()
        .flatten()
        .any(|text| !text.is_empty() && text != "-");
    if given {
        return Err(Failure::Usage(
            "with `--input-format stream-json` prompts come from standard input; leave the prompt out"
                .to_owned(),
        ));
    }
    Ok(())
}

/// The prompt to begin a conversation with, where one was given.
pub(crate) fn typed(args: &RunArgs) -> Result<Option<String>, Failure> {
    if args.prompt_flag.is_none() && args.prompt.is_none() {
        return Ok(None);
    }
    resolve(args, Stdin::Terminal, std::io::empty()).map(|prompt| Some(prompt.typed))
}

/// What an agent in the background is to do: `-` stands for standard input.
pub(crate) fn task(given: String, input: impl Read) -> Result<String, Failure> {
    match given.as_str() {
        "-" => read(input),
        _ => Ok(given),
    }
}

/// Finds the prompt. A text beside `-` comes first, what was piped after it.
pub(crate) fn resolve(args: &RunArgs, stdin: Stdin, input: impl Read) -> Result<Prompt, Failure> {
    let given: Vec<&str> = [&args.print, &args.prompt_flag, &args.prompt]
        .into_iter()
        .flatten()
        .map(String::as_str)
        .filter(|text| !text.is_empty())
        .collect();
    let texts: Vec<&str> = given.iter().copied().filter(|text| *text != "-").collect();
    let from_stdin = given.contains(&"-");
    match (texts.as_slice(), from_stdin, stdin) {
        ([_, _, ..], ..) => Err(Failure::Usage(
            "the prompt is given more than once; give it to `-p`, to `--prompt` or as an argument"
                .to_owned(),
        )),
        ([text], ..) if text.trim().is_empty() => {
            Err(Failure::NoInput("the prompt is empty".to_owned()))
        }
        ([text], false, _) => Ok(Prompt {
            typed: (*text).to_owned(),
            piped: None,
        }),
        ([text], true, _) => Ok(Prompt {
            typed: (*text).to_owned(),
            piped: Some(read(input)?),
        }),
        ([], true, _) | ([], false, Stdin::Piped) => {
            let text = read(input)?;
            if text.trim().is_empty() {
                return Err(Failure::NoInput(
                    "the prompt on standard input is empty".to_owned(),
                ));
            }
            Ok(Prompt {
                typed: String::new(),
                piped: Some(text),
            })
        }
        ([], false, Stdin::Terminal) => Err(Failure::Usage(
            "there is no prompt: `caliban -p \"…\"` answers and exits, `caliban -c -p \"…\"` goes on \
             from there, and `caliban` alone talks with you in the terminal"
                .to_owned(),
        )),
    }
}

fn read(input: impl Read) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    input
        .take(MAX_STDIN + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::NoInput(format!("standard input cannot be read: {error}")))?;
    if bytes.len() as u64 > MAX_STDIN {
        return Err(Failure::Config(
            "standard input is larger than 10 MiB; put it in a file and name the file in the prompt"
                .to_owned(),
        ));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Cli;
    use clap::Parser;
    use rstest::rstest;

    struct Forbidden;

    impl Read for Forbidden {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            panic!("standard input was read");
        }
    }

    fn args(words: &[&str]) -> RunArgs {
        Cli::try_parse_from([&["caliban"], words].concat())
            .unwrap()
            .run
    }

    #[rstest]
    #[case(&["-p", "hi"])]
    #[case(&["-p", "--prompt", "hi"])]
    #[case(&["hi", "-p"])]
    #[case(&["--prompt", "hi"])]
    #[case(&["hi"])]
    fn a_prompt_on_the_command_line_never_waits_for_stdin(#[case] words: &[&str]) {
        let prompt = resolve(&args(words), Stdin::Piped, Forbidden).unwrap();
        assert_eq!(prompt.text(), "hi");
    }

    #[rstest]
    #[case(&["-p", "-"], "piped")]
    #[case(&["-p"], "piped")]
    #[case(&["-"], "piped")]
    #[case(&["-p", "-", "review"], "review\n\npiped")]
    fn stdin_is_read_when_asked_for(#[case] words: &[&str], #[case] expected: &str) {
        let prompt = resolve(&args(words), Stdin::Piped, "piped".as_bytes()).unwrap();
        assert_eq!(prompt.text(), expected);
    }

    #[test]
    fn two_prompts_none_and_too_much_are_refused() {
        let twice = resolve(&args(&["-p", "a", "b"]), Stdin::Piped, Forbidden);
        assert!(matches!(twice, Err(Failure::Usage(_))));
        let none = resolve(&args(&["-p"]), Stdin::Terminal, Forbidden);
        assert!(matches!(none, Err(Failure::Usage(_))));
        let empty = resolve(&args(&["-p", "-"]), Stdin::Piped, "\n".as_bytes());
        assert!(matches!(empty, Err(Failure::NoInput(_))));
        let huge = resolve(&args(&["-"]), Stdin::Piped, std::io::repeat(b'x'));
        assert!(matches!(huge, Err(Failure::Config(_))));
    }
}
