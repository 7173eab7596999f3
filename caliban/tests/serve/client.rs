//! An application: writes requests, reads lines, and holds every tab to numbers without holes and
//! every line to the schema.

use std::collections::{HashMap, VecDeque};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;

use jsonschema::Validator;
use serde_json::{Value, json};

use crate::support::Bench;

static SCHEMA: LazyLock<Value> = LazyLock::new(caliban_serve::lines_schema);
static LINES: LazyLock<Validator> =
    LazyLock::new(|| jsonschema::draft202012::new(&SCHEMA).unwrap());
static REQUESTS: LazyLock<Validator> = LazyLock::new(|| {
    let mut schema = SCHEMA.clone();
    schema.as_object_mut().unwrap().shift_remove("anyOf");
    schema["$ref"] = json!("#/$defs/Request");
    jsonschema::draft202012::new(&schema).unwrap()
});

/// The lines of a server, however they come.
pub(crate) struct Wire {
    input: Option<Box<dyn Write>>,
    output: Box<dyn BufRead>,
    waiting: VecDeque<Value>,
    /// The next number of each tab.
    next: HashMap<String, u64>,
    ids: u32,
}

impl Wire {
    pub(crate) fn new(input: impl Write + 'static, output: impl Read + 'static) -> Self {
        Self {
            input: Some(Box::new(input)),
            output: Box::new(BufReader::new(output)),
            waiting: VecDeque::new(),
            next: HashMap::new(),
            ids: 0,
        }
    }

    pub(crate) fn write(&mut self, request: &Value) {
        let wrong: Vec<_> = REQUESTS
            .iter_errors(request)
            .map(|it| it.to_string())
            .collect();
        assert!(wrong.is_empty(), "{request}\n{}", wrong.join("\n"));
        self.write_raw(format!("{request}\n").as_bytes());
    }

    pub(crate) fn write_raw(&mut self, bytes: &[u8]) {
        self.input.as_mut().unwrap().write_all(bytes).unwrap();
        self.input.as_mut().unwrap().flush().unwrap();
    }

    pub(crate) fn hang_up(&mut self) {
        self.input = None;
    }

    /// The next line; nothing at the end.
    fn read(&mut self) -> Option<Value> {
        let mut line = String::new();
        if self.output.read_line(&mut line).unwrap() == 0 {
            return None;
        }
        let line: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line}"));
        let wrong: Vec<_> = LINES.iter_errors(&line).map(|it| it.to_string()).collect();
        assert!(wrong.is_empty(), "{line}\n{}", wrong.join("\n"));
        if let Some(tab) = line["tab"].as_str() {
            let first = line.get("first").unwrap_or(&line["seq"]).as_u64().unwrap();
            let next = self.next.entry(tab.to_owned()).or_insert(first);
            assert_eq!(first, *next, "{line}");
            *next = line["seq"].as_u64().unwrap() + 1;
        }
        Some(line)
    }

    /// The answer to a request; what is told meanwhile waits.
    pub(crate) fn ask(&mut self, op: &str, mut fields: Value) -> Value {
        self.ids += 1;
        let id = format!("q{}", self.ids);
        fields["op"] = op.into();
        fields["id"] = id.clone().into();
        self.write(&fields);
        self.answer(&id)
    }

    pub(crate) fn answer(&mut self, id: &str) -> Value {
        loop {
            let line = self.read().expect("an answer");
            if line["re"] == *id {
                return line;
            }
            self.waiting.push_back(line);
        }
    }

    /// The same for what must go well.
    pub(crate) fn done(&mut self, op: &str, fields: Value) -> Value {
        let answer = self.ask(op, fields);
        assert!(answer.get("ok").is_some(), "{answer}");
        answer["ok"].clone()
    }

    /// The same for what must not; returns the code.
    pub(crate) fn refused(&mut self, op: &str, fields: Value) -> String {
        let answer = self.ask(op, fields);
        let code = answer["error"]["code"].as_str();
        code.unwrap_or_else(|| panic!("{answer}")).to_owned()
    }

    /// The next line that is told; nothing at the end.
    pub(crate) fn told(&mut self) -> Option<Value> {
        self.waiting.pop_front().or_else(|| self.read())
    }

    /// Reads on to an event of this type in a tab.
    pub(crate) fn until(&mut self, tab: &str, kind: &str) -> Value {
        loop {
            let line = self.told().unwrap_or_else(|| panic!("no {kind} in {tab}"));
            if line["tab"] == *tab && line["event"]["type"] == *kind {
                return line;
            }
        }
    }

    /// Reads on to the result of a request.
    pub(crate) fn result(&mut self, request: &str) -> Value {
        loop {
            let line = self
                .told()
                .unwrap_or_else(|| panic!("no result of {request}"));
            if line["request"] == *request && line["event"]["type"] == "result" {
                return line["event"].clone();
            }
        }
    }

    /// Numbers begin anew: another stream.
    pub(crate) fn forget(&mut self, tab: &str) {
        self.next.remove(tab);
    }

    pub(crate) fn rest(&mut self) -> Vec<Value> {
        std::iter::from_fn(|| self.told()).collect()
    }
}

/// A server on standard input and output.
pub(crate) struct App {
    pub(crate) wire: Wire,
    pub(crate) child: Child,
}

impl App {
    pub(crate) fn start(bench: &Bench) -> Self {
        Self::start_with(bench, &[], |_| {})
    }

    pub(crate) fn start_with(
        bench: &Bench,
        flags: &[&str],
        configure: impl FnOnce(&mut Command),
    ) -> Self {
        let mut command = bench.command();
        configure(&mut command);
        command
            .args(["serve", "app"])
            .args(flags)
            .stdin(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Self {
            wire: Wire::new(input, output),
            child,
        }
    }

    /// Closes the input and waits for the end: the code, what was still told, and what was said to
    /// people.
    pub(crate) fn end(mut self) -> (Option<i32>, Vec<Value>, String) {
        self.wire.hang_up();
        let rest = self.wire.rest();
        let mut said = String::new();
        self.child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut said)
            .unwrap();
        (self.child.wait().unwrap().code(), rest, said)
    }

    /// Kills it without a word.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}
