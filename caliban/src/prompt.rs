//! Where the prompt comes from. Standard input is read only when asked for: by `-`, or when
//! there is no prompt and it is not a terminal.

use std::io::Read;

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

/// Finds the prompt. A text beside `-` comes first, what was piped after it.
pub(crate) fn resolve(args: &RunArgs, stdin: Stdin, input: impl Read) -> Result<String, Failure> {
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
        ([text], false, _) => Ok((*text).to_owned()),
        ([text], true, _) => Ok(format!("{text}\n\n{}", read(input)?)),
        ([], true, _) | ([], false, Stdin::Piped) => {
            let text = read(input)?;
            if text.trim().is_empty() {
                return Err(Failure::NoInput(
                    "the prompt on standard input is empty".to_owned(),
                ));
            }
            Ok(text)
        }
        ([], false, Stdin::Terminal) => Err(Failure::Usage(
            "no prompt; run `caliban -p \"…\"`, or `caliban --help` to see what else there is"
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
        assert_eq!(prompt, "hi");
    }

    #[rstest]
    #[case(&["-p", "-"], "piped")]
    #[case(&["-p"], "piped")]
    #[case(&["-"], "piped")]
    #[case(&["-p", "-", "review"], "review\n\npiped")]
    fn stdin_is_read_when_asked_for(#[case] words: &[&str], #[case] expected: &str) {
        let prompt = resolve(&args(words), Stdin::Piped, "piped".as_bytes()).unwrap();
        assert_eq!(prompt, expected);
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
