use std::convert::Infallible;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use rstest::rstest;
use tempfile::TempDir;

use super::*;

const SETTINGS: &str = r#"# Everything about this project.

model = "old" # chosen by hand
additional_directories = [
  "a", # first
]

# Rules, narrow ones first.
[permissions]
default_mode = "plan"

# git is fine
[[permissions.rules]]
pattern = "Bash:git *"
action = "allow"

# --- network ---

# no curl
[[permissions.rules]]
pattern = "Bash:curl *"
action = "deny"
reason = "use WebFetch"

[env]
RUST_LOG = "info"
# the end
"#;

struct Scope {
    _folder: TempDir,
    file: PathBuf,
    locks: TempDir,
    writer: Writer,
}

impl Scope {
    fn new(text: &str) -> Self {
        let scope = Self::empty();
        fs::write(&scope.file, text).unwrap();
        scope
    }

    /// What the writers of the file take turns by.
    fn lock(&self) -> PathBuf {
        let place = Place::resolve(&self.file).unwrap();
        self.locks.path().join(place.lock_name())
    }

    fn empty() -> Self {
        let folder = TempDir::new().unwrap();
        let file = folder.path().join("settings.toml");
        let locks = TempDir::new().unwrap();
        Self {
            _folder: folder,
            file,
            writer: Writer::new(locks.path()),
            locks,
        }
    }

    fn text(&self) -> String {
        fs::read_to_string(&self.file).unwrap()
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.file.parent().unwrap()).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

fn allow(pattern: &str) -> RuleSpec {
    RuleSpec::new(pattern, RuleAction::Allow)
}

#[test]
fn setting_a_key_changes_nothing_else() {
    let scope = Scope::new(SETTINGS);
    scope.writer.set_key(&scope.file, "model", "new").unwrap();
    assert_eq!(scope.text(), SETTINGS.replace("\"old\"", "\"new\""));
}

#[test]
fn keys_may_be_deep_quoted_and_in_tables_that_do_not_exist() {
    let scope = Scope::new(SETTINGS);
    scope
        .writer
        .set_key(&scope.file, "mcp_servers.\"my server\".disabled", true)
        .unwrap();
    scope
        .writer
        .set_key(&scope.file, "permissions.default_mode", "default")
        .unwrap();
    let text = scope.text();
    assert!(
        text.contains("[mcp_servers.\"my server\"]\ndisabled = true\n"),
        "{text}"
    );
    assert!(text.contains("default_mode = \"default\"\n"), "{text}");
    assert!(text.contains("# the end"), "{text}");
}

#[test]
fn keys_inside_inline_tables_stay_inside() {
    let scope = Scope::new("tui = { a = 1 }\n");
    scope
        .writer
        .set_key(&scope.file, "tui.deep.showCostInStatusline", true)
        .unwrap();
    assert_eq!(
        scope.text(),
        "tui = { a = 1 , deep = { showCostInStatusline = true } }\n"
    );
}

#[rstest]
#[case("model.name", "`model` is not a table")]
#[case("a..b", "`a..b` is not a key")]
fn a_key_that_cannot_be_set_leaves_the_file_alone(#[case] key: &str, #[case] why: &str) {
    let scope = Scope::new(SETTINGS);
    let error = scope
        .writer
        .set_key(&scope.file, key, "x")
        .unwrap_err()
        .to_string();
    assert!(error.contains(why), "{error}");
    assert_eq!(scope.text(), SETTINGS);
}

#[test]
fn a_rule_is_appended_after_the_last_one() {
    let scope = Scope::new(SETTINGS);
    let mut rule = allow("Bash:cargo *");
    rule.comment = Some("cargo is safe".into());
    assert_eq!(
        scope.writer.append_rule(&scope.file, &rule).unwrap(),
        Appended::Added
    );
    let added = "\n[[permissions.rules]]\npattern = \"Bash:cargo *\"\naction = \"allow\"\ncomment = \"cargo is safe\"\n";
    assert_eq!(
        scope.text(),
        SETTINGS.replace("\n[env]", &format!("{added}\n[env]"))
    );
}

#[test]
fn the_first_rule_of_a_new_file() {
    let scope = Scope::empty();
    scope
        .writer
        .append_rule(&scope.file, &allow("Bash:git *"))
        .unwrap();
    assert_eq!(
        scope.text(),
        "[[permissions.rules]]\npattern = \"Bash:git *\"\naction = \"allow\"\n"
    );
    let mode = fs::metadata(&scope.file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn appending_again_writes_nothing() {
    let scope = Scope::new(SETTINGS);
    let before = fs::metadata(&scope.file).unwrap().modified().unwrap();
    let outcome = scope
        .writer
        .append_rule(&scope.file, &allow("Bash:git *"))
        .unwrap();
    assert_eq!(outcome, Appended::AlreadyThere);
    assert_eq!(scope.text(), SETTINGS);
    assert_eq!(
        fs::metadata(&scope.file).unwrap().modified().unwrap(),
        before
    );
}

#[test]
fn a_new_action_for_a_pattern_replaces_the_rule_that_would_hide_it() {
    let scope = Scope::new(SETTINGS);
    let outcome = scope
        .writer
        .append_rule(&scope.file, &allow("Bash:curl *"))
        .unwrap();
    assert_eq!(outcome, Appended::Changed);
    assert_eq!(
        scope.text(),
        SETTINGS.replace("\"deny\"\nreason = \"use WebFetch\"", "\"allow\"")
    );
}

#[test]
fn an_expired_rule_does_not_stand_for_a_lasting_one() {
    let scope = Scope::new(
        "[[permissions.rules]]\npattern = \"X\"\naction = \"allow\"\nexpires_at = 2020-01-01T00:00:00Z\n",
    );
    assert_eq!(
        scope.writer.append_rule(&scope.file, &allow("X")).unwrap(),
        Appended::Added
    );
    let mut dated = allow("X");
    dated.expires_at = Some("2020-01-01T00:00:00Z".parse().unwrap());
    assert_eq!(
        scope.writer.append_rule(&scope.file, &dated).unwrap(),
        Appended::AlreadyThere
    );
}

#[rstest]
#[case::one_line(
    "[permissions]\nrules = [{ pattern = \"A\", action = \"ask\" }]\n",
    "[permissions]\nrules = [{ pattern = \"A\", action = \"ask\" }, { pattern = \"B\", action = \"allow\" }]\n"
)]
#[case::lines_with_comma(
    "[permissions]\nrules = [\n  { pattern = \"A\", action = \"ask\" }, # a\n]\n",
    "[permissions]\nrules = [\n  { pattern = \"A\", action = \"ask\" }, # a\n  { pattern = \"B\", action = \"allow\" },\n]\n"
)]
#[case::lines_without_comma(
    "[permissions]\nrules = [\n  { pattern = \"A\", action = \"ask\" } # a\n]\n",
    "[permissions]\nrules = [\n  { pattern = \"A\", action = \"ask\" }, # a\n  { pattern = \"B\", action = \"allow\" }\n]\n"
)]
#[case::all_inline(
    "permissions = { default_mode = \"plan\" }\n",
    "permissions = { default_mode = \"plan\" , rules = [{ pattern = \"B\", action = \"allow\" }] }\n"
)]
#[case::dotted(
    "permissions.default_mode = \"plan\"\n",
    "permissions.default_mode = \"plan\"\n\n[[permissions.rules]]\npattern = \"B\"\naction = \"allow\"\n"
)]
fn other_layouts_are_understood(#[case] before: &str, #[case] after: &str) {
    let scope = Scope::new(before);
    scope.writer.append_rule(&scope.file, &allow("B")).unwrap();
    assert_eq!(scope.text(), after);
    scope.writer.append_rule(&scope.file, &allow("B")).unwrap();
    assert_eq!(scope.text(), after);
}

#[test]
fn the_older_lists_become_rules_before_they_would_be_ignored() {
    let scope = Scope::new(
        r#"[permissions]
# fine
allow = [
  # the tool
  "Bash:git *", # daily
  "Read",
]
deny = ["Bash:rm *"]
audit_log = true
"#,
    );
    scope
        .writer
        .append_rule(&scope.file, &allow("Bash:make *"))
        .unwrap();
    assert_eq!(
        scope.text(),
        r#"[permissions]
audit_log = true

[[permissions.rules]]
pattern = "Bash:rm *"
action = "deny"

# fine
# the tool
# daily
[[permissions.rules]]
pattern = "Bash:git *"
action = "allow"

[[permissions.rules]]
pattern = "Read"
action = "allow"

[[permissions.rules]]
pattern = "Bash:make *"
action = "allow"
"#
    );
}

#[test]
fn removing_a_rule_takes_its_comment_and_leaves_the_heading() {
    let scope = Scope::new(SETTINGS);
    let gone = scope
        .writer
        .remove_rule(&scope.file, &RuleRef::Pattern("Bash:curl *".into()))
        .unwrap();
    assert_eq!(gone, 1);
    let text = scope.text();
    assert!(text.contains("# --- network ---"), "{text}");
    assert!(!text.contains("curl"), "{text}");
    assert!(
        text.contains("# git is fine\n[[permissions.rules]]"),
        "{text}"
    );
    assert!(text.contains("[env]\nRUST_LOG = \"info\"\n"), "{text}");
}

#[test]
fn removing_what_is_not_there_writes_nothing() {
    let scope = Scope::new("permissions = { allow = [\"A\"] }\n");
    let gone = scope
        .writer
        .remove_rule(&scope.file, &RuleRef::Pattern("B".into()))
        .unwrap();
    assert_eq!(gone, 0);
    assert_eq!(scope.text(), "permissions = { allow = [\"A\"] }\n");
}

#[test]
fn a_place_is_only_trusted_with_its_pattern() {
    let scope = Scope::new(SETTINGS);
    let at = |index, pattern: &str| RuleRef::At {
        index,
        pattern: pattern.into(),
    };
    let error = scope
        .writer
        .remove_rule(&scope.file, &at(0, "Bash:curl *"))
        .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("rule 0 is no longer `Bash:curl *`"),
        "{error}"
    );
    assert_eq!(scope.text(), SETTINGS);
    assert_eq!(
        scope
            .writer
            .remove_rule(&scope.file, &at(1, "Bash:curl *"))
            .unwrap(),
        1
    );
    assert!(
        scope
            .writer
            .remove_rule(&scope.file, &at(1, "Bash:curl *"))
            .is_err()
    );
}

#[test]
fn an_inline_rule_goes_without_its_neighbours_remark() {
    let scope = Scope::new(
        "[permissions]\nrules = [\n  { pattern = \"A\", action = \"ask\" }, # about A\n  { pattern = \"B\", action = \"ask\" },\n]\n",
    );
    scope
        .writer
        .remove_rule(&scope.file, &RuleRef::Pattern("B".into()))
        .unwrap();
    assert_eq!(
        scope.text(),
        "[permissions]\nrules = [\n  { pattern = \"A\", action = \"ask\" }, # about A\n]\n"
    );
}

#[test]
fn prepended_rules_come_first_and_are_not_doubled() {
    let mut document: DocumentMut = SETTINGS.parse().unwrap();
    let first = [
        RuleSpec::new("Bash:rm *", RuleAction::Deny),
        allow("Bash:git *"),
        RuleSpec::new("Bash:git *", RuleAction::Ask),
    ];
    rules::prepend(&mut document, &first).unwrap();
    let text = document.to_string();
    let order: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("pattern = "))
        .collect();
    assert_eq!(
        order,
        [
            "\"Bash:rm *\"",
            "\"Bash:git *\"",
            "\"Bash:git *\"",
            "\"Bash:curl *\""
        ]
    );
    assert!(text.contains(
        "# git is fine\n[[permissions.rules]]\npattern = \"Bash:git *\"\naction = \"allow\""
    ));
    rules::prepend(&mut document, &first).unwrap();
    assert_eq!(document.to_string(), text);
}

#[test]
fn windows_line_ends_stay() {
    let scope = Scope::new("# c\r\nmodel = \"a\"\r\n\r\n[env]\r\nA = \"1\"\r\n");
    scope.writer.set_key(&scope.file, "model", "b").unwrap();
    assert_eq!(
        scope.text(),
        "# c\r\nmodel = \"b\"\r\n\r\n[env]\r\nA = \"1\"\r\n"
    );
    scope.writer.set_key(&scope.file, "model", "b").unwrap();
}

#[test]
fn a_file_that_does_not_parse_is_refused_and_left_alone() {
    let scope = Scope::new("a = 1\nb = = 2\n");
    let error = scope.writer.set_key(&scope.file, "a", 2).unwrap_err();
    match &error {
        WriteError::Parse { line, column, .. } => assert_eq!((*line, *column), (2, 5)),
        other => panic!("{other}"),
    }
    assert!(
        error
            .to_string()
            .starts_with(&format!("{}:2:5: ", scope.file.display()))
    );
    assert_eq!(scope.text(), "a = 1\nb = = 2\n");
}

#[test]
fn a_link_stays_a_link_and_its_target_keeps_its_mode() {
    let scope = Scope::empty();
    let directory = scope.file.parent().unwrap();
    let target = directory.join("dotfiles/real");
    fs::create_dir(target.parent().unwrap()).unwrap();
    fs::write(&target, "model = \"a\"\n").unwrap();
    fs::set_permissions(&target, Permissions::from_mode(0o640)).unwrap();
    symlink("dotfiles/real", &scope.file).unwrap();
    scope.writer.set_key(&scope.file, "model", "b").unwrap();
    assert_eq!(
        fs::read_link(&scope.file).unwrap(),
        PathBuf::from("dotfiles/real")
    );
    assert_eq!(fs::read_to_string(&target).unwrap(), "model = \"b\"\n");
    let mode = fs::metadata(&target).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
}

#[test]
fn a_dangling_link_is_written_through() {
    let scope = Scope::empty();
    symlink("elsewhere.toml", &scope.file).unwrap();
    scope.writer.set_key(&scope.file, "model", "b").unwrap();
    let target = scope.file.with_file_name("elsewhere.toml");
    assert_eq!(fs::read_to_string(target).unwrap(), "model = \"b\"\n");
    assert!(scope.file.is_symlink());
}

#[test]
fn a_missing_directory_is_created_for_its_owner_only() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join(".caliban/settings.local.toml");
    let locks = folder.path().join("locks");
    Writer::new(&locks).set_key(&file, "model", "b").unwrap();
    let directory = file.parent().unwrap();
    let mode = fs::metadata(directory).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    let lock = fs::read_dir(&locks).unwrap().next().unwrap().unwrap();
    assert_eq!(lock.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let mode = fs::metadata(&locks).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[test]
fn json_is_neither_edited_nor_put_out_of_use() {
    let scope = Scope::empty();
    let json = scope.file.with_extension("json");
    fs::write(&json, "{}").unwrap();
    for path in [&json, &scope.file] {
        let error = scope.writer.set_key(path, "model", "b");
        let error = error.unwrap_err().to_string();
        assert!(error.contains("caliban settings import --from"), "{error}");
    }
    assert_eq!(scope.names(), ["settings.json"]);
    scope
        .writer
        .edit_beside(&scope.file, JsonSibling::Supersede, |document| {
            document["model"] = "b".into();
            Ok::<_, Infallible>(())
        })
        .unwrap();
    scope.writer.set_key(&scope.file, "model", "c").unwrap();
}

#[test]
fn a_file_that_cannot_be_replaced_leaves_no_temporary_file() {
    let scope = Scope::new("model = \"a\"\n");
    let error = scope
        .writer
        .edit(&scope.file, |document| {
            document["model"] = "b".into();
            // A directory in its place makes the rename fail.
            fs::remove_file(&scope.file).and_then(|()| fs::create_dir(&scope.file))
        })
        .unwrap_err();
    assert!(
        matches!(
            &error,
            WriteError::Io {
                action: "replace",
                ..
            }
        ),
        "{error}"
    );
    assert_eq!(scope.names(), ["settings.toml"]);
}

#[test]
fn a_change_that_fails_changes_nothing() {
    let scope = Scope::new(SETTINGS);
    let error = scope.writer.edit(&scope.file, |document| {
        document.clear();
        Err::<(), _>(ShapeError::NotATable("x".into()))
    });
    assert!(matches!(error, Err(WriteError::Edit { .. })));
    assert_eq!(scope.text(), SETTINGS);
}

#[test]
fn abandoned_temporary_files_are_removed_and_nothing_else() {
    let scope = Scope::new("model = \"a\"\n");
    for name in [
        "settings.toml.tmp.12.aBc",
        "settings.toml.tmp.mine",
        "settings.toml.bak",
    ] {
        fs::write(scope.file.with_file_name(name), "").unwrap();
    }
    scope.writer.set_key(&scope.file, "model", "b").unwrap();
    assert_eq!(
        scope.names(),
        [
            "settings.toml",
            "settings.toml.bak",
            "settings.toml.tmp.mine"
        ]
    );
}

#[test]
fn waiting_for_a_turn_ends_and_names_the_lock() {
    let scope = Scope::new("model = \"a\"\n");
    let path = scope.lock();
    let holder = File::create(&path).unwrap();
    holder.lock().unwrap();
    let error = scope
        .writer
        .edit_within(
            &scope.file,
            JsonSibling::Refuse,
            Duration::from_millis(30),
            |document| {
                document["model"] = "b".into();
                Ok::<_, Infallible>(())
            },
        )
        .unwrap_err();
    assert!(
        error.to_string().contains(path.to_str().unwrap()),
        "{error}"
    );
    assert_eq!(scope.text(), "model = \"a\"\n");
    drop(holder);
    scope.writer.set_key(&scope.file, "model", "b").unwrap();
}

#[test]
fn a_lock_file_that_is_a_link_is_not_followed() {
    let scope = Scope::new("model = \"a\"\n");
    let elsewhere = scope.file.with_file_name("elsewhere");
    symlink(&elsewhere, scope.lock()).unwrap();
    assert!(scope.writer.set_key(&scope.file, "model", "b").is_err());
    assert!(!elsewhere.exists());
}
