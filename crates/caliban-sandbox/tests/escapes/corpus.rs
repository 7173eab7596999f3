//! The attempts. Each is a script that does something which can be seen from outside, or says what
//! it should not know. A new way out that becomes public is a line here.
//!
//! Each also runs unconfined, as the superuser where the tests are: it may touch the stage and
//! nothing else. No attempt mounts, unmounts or changes the machine; calls for that are among the
//! system calls below, with arguments that the kernel refuses.

use crate::stage::Who;

pub(crate) struct Attempt {
    pub(crate) name: &'static str,
    pub(crate) script: &'static str,
    pub(crate) evidence: Evidence,
    needs: Needs,
}

/// How it is seen that an attempt worked.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Evidence {
    /// It says the secret.
    Says,
    /// A file there has been written.
    Workspace(&'static str),
    Home(&'static str),
    Outside(&'static str),
    /// Something outside is gone.
    Gone(&'static str),
    VictimDied,
}

/// What an attempt needs to work without a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Needs {
    Nothing,
    Superuser,
    /// The superuser, and a machine that lets that one do everything: others prove nothing.
    LaxMachine,
}

impl Attempt {
    pub(crate) fn suits(&self, who: Who) -> bool {
        match (self.needs, who) {
            (Needs::Nothing, _) => true,
            (Needs::Superuser | Needs::LaxMachine, Who::Nobody) => false,
            (Needs::Superuser | Needs::LaxMachine, Who::Myself) => {
                rustix::process::getuid().is_root()
            }
        }
    }
}

impl Attempt {
    /// Whether it may fail without a sandbox, too.
    pub(crate) fn depends_on_machine(&self) -> bool {
        self.needs == Needs::LaxMachine
    }
}

const fn attempt(name: &'static str, script: &'static str, evidence: Evidence) -> Attempt {
    Attempt {
        name,
        script,
        evidence,
        needs: Needs::Nothing,
    }
}

const fn as_root(name: &'static str, script: &'static str, evidence: Evidence) -> Attempt {
    Attempt {
        name,
        script,
        evidence,
        needs: Needs::Superuser,
    }
}

const fn as_root_if_lax(name: &'static str, script: &'static str, evidence: Evidence) -> Attempt {
    Attempt {
        name,
        script,
        evidence,
        needs: Needs::LaxMachine,
    }
}

use Evidence::{Gone, Home, Outside, Says, VictimDied, Workspace};

#[rustfmt::skip]
pub(crate) const ATTEMPTS: &[Attempt] = &[
    // Files outside.
    attempt("write outside", "echo pwned > $OUTSIDE/file", Outside("file")),
    attempt("append outside", "echo pwned >> $OUTSIDE/file", Outside("file")),
    attempt("create outside", "echo pwned > $OUTSIDE/new", Outside("new")),
    attempt("through a link", "ln -s $OUTSIDE l; echo pwned > l/file", Outside("file")),
    attempt("through a link to the file", "ln -s $OUTSIDE/file l; echo pwned > l", Outside("file")),
    attempt("upwards", "echo pwned > ../../../../../../../..$OUTSIDE/file", Outside("file")),
    attempt("through the root of a process", "echo pwned > /proc/self/root$OUTSIDE/file", Outside("file")),
    attempt("through the root of the first process", "echo pwned > /proc/1/root$OUTSIDE/file || echo pwned > $OUTSIDE/file", Outside("file")),
    attempt("through a descriptor of a directory", "exec 9< /; echo pwned > /proc/self/fd/9$OUTSIDE/file", Outside("file")),
    attempt("by a hard link", "ln $OUTSIDE/file l && echo pwned > l || echo pwned > $OUTSIDE/file", Outside("file")),
    attempt("by renaming over it", "echo pwned > x; mv -f x $OUTSIDE/file", Outside("file")),
    attempt("by copying over it", "echo pwned > x; cp --remove-destination x $OUTSIDE/file", Outside("file")),
    attempt("by moving a directory away", "mv $OUTSIDE/directory .", Gone("directory")),
    attempt("by deleting", "rm -rf ${OUTSIDE:?}/directory", Gone("directory")),
    attempt("by cutting off", "truncate -s 0 $OUTSIDE/file && echo pwned > $OUTSIDE/file", Outside("file")),
    attempt("by another directory in its place", "mv $OUTSIDE/directory $OUTSIDE/d; echo pwned > $OUTSIDE/directory", Outside("directory")),
    attempt("by an interpreter", "python3 -c \"import os; open(os.environ['OUTSIDE'] + '/file', 'w').write('pwned')\"", Outside("file")),
    attempt("by an archive", "mkdir a; echo pwned > a/file; tar cf t -C a file; tar xf t -C $OUTSIDE", Outside("file")),
    attempt("by a race of links", "mkdir d; (for i in $(seq 300); do ln -sfn $OUTSIDE l; ln -sfn d l; done) & for i in $(seq 300); do echo pwned > l/file; done 2>/dev/null; wait; ln -sfn $OUTSIDE l; echo pwned > l/file", Outside("file")),
    attempt("by changing rights", "chmod 777 $OUTSIDE/file && echo TOPSECRET", Says),
    attempt("by a dated file", "touch -d 2001-01-01 $OUTSIDE/file && echo TOPSECRET", Says),
    attempt("start-up file of shells", "echo pwned >> $HOME/.bashrc", Home(".bashrc")),
    attempt("start-up file that is not there", "echo pwned > $HOME/.zshenv", Home(".zshenv")),
    attempt("programs of the home", "mkdir -p $HOME/.local/bin; echo pwned > $HOME/.local/bin/ls", Home(".local/bin/ls")),
    attempt("cache of packages", "mkdir -p $HOME/.cargo/registry; echo pwned > $HOME/.cargo/registry/x", Home(".cargo/registry/x")),
    attempt("our own settings", "echo pwned > $HOME/.config/caliban/settings.toml", Home(".config/caliban/settings.toml")),
    attempt("our own cache", "echo pwned > $HOME/.cache/caliban/x", Home(".cache/caliban/x")),
    as_root_if_lax("core files run a program", "[ -w /proc/sys/kernel/core_pattern ] && echo TOPSECRET", Says),
    as_root_if_lax("settings of the kernel", "[ -w /proc/sys/kernel/modprobe ] && echo TOPSECRET", Says),
    as_root_if_lax("orders to the kernel", "[ -w /proc/sysrq-trigger ] && echo TOPSECRET", Says),
    as_root_if_lax("files of the kernel", "[ -w /sys/kernel/uevent_helper -o -w /sys/power/state -o -w /sys/kernel/mm/ksm/run ] && echo TOPSECRET", Says),
    as_root("rights of others", "setpriv --reuid 1 true && echo TOPSECRET", Says),
    as_root("owners of files", "chown 1 $OUTSIDE/file && echo TOPSECRET", Says),

    // What git runs.
    attempt("a hook", "echo pwned > .git/hooks/pre-commit", Workspace(".git/hooks/pre-commit")),
    attempt("a hook by moving git away", "mv .git g; cp -r g .git; echo pwned > .git/hooks/pre-commit", Workspace(".git/hooks/pre-commit")),
    attempt("a hook by moving hooks away", "mv .git/hooks .git/h; mkdir .git/hooks; echo pwned > .git/hooks/pre-commit", Workspace(".git/hooks/pre-commit")),
    attempt("a hook in a new repository", "rm -rf .git; git init -q; echo pwned > .git/hooks/pre-commit", Workspace(".git/hooks/pre-commit")),
    attempt("configuration of git", "git config core.fsmonitor pwned", Workspace(".git/config")),
    attempt("configuration of git, renamed over", "cp .git/config c; echo '[core] fsmonitor = pwned' >> c; mv -f c .git/config", Workspace(".git/config")),
    attempt("configuration of a worktree", "echo '[core] fsmonitor = pwned' > .git/config.worktree", Workspace(".git/config.worktree")),
    attempt("another place for configuration", "echo pwned > .git/commondir", Workspace(".git/commondir")),
    attempt("attributes", "mkdir -p .git/info; echo '* filter=pwned' > .git/info/attributes", Workspace(".git/info/attributes")),
    attempt("a module", "mkdir -p .git/modules/m/hooks; echo ref > .git/modules/m/HEAD; echo pwned > .git/modules/m/hooks/post-checkout", Workspace(".git/modules/m/hooks/post-checkout")),
    attempt("modules that lead elsewhere", "mkdir -p planted/m/hooks; echo ref > planted/m/HEAD; echo pwned > planted/m/hooks/post-checkout; ln -s ../planted .git/modules", Workspace(".git/modules/m/hooks/post-checkout")),
    attempt("a module of a module", "mkdir -p .git/modules/a/modules/b/hooks; echo ref > .git/modules/a/HEAD; echo ref > .git/modules/a/modules/b/HEAD; echo pwned > .git/modules/a/modules/b/hooks/post-checkout", Workspace(".git/modules/a/modules/b/hooks/post-checkout")),
    attempt("a module whose name has slashes", "mkdir -p .git/modules/a/b/c; echo ref > .git/modules/a/b/c/HEAD; printf '[core]\n\tfsmonitor = pwned\n' > .git/modules/a/b/c/config", Workspace(".git/modules/a/b/c/config")),
    attempt("a repository within", "git init -q sub; git -C sub config core.fsmonitor pwned", Workspace("sub/.git/config")),
    attempt("a bare repository", "git init -q --bare b; git -C b config core.fsmonitor pwned", Workspace("b/config")),
    attempt("a file for a directory", "rm -rf .git; echo 'gitdir: pwned' > .git", Workspace(".git")),

    // What others run or trust, there already.
    attempt("direnv", "echo pwned > .envrc", Workspace(".envrc")),
    attempt("direnv, replaced", "rm -f .envrc; echo pwned > x; mv x .envrc", Workspace(".envrc")),
    attempt("editor", "echo pwned > .vscode/tasks.json", Workspace(".vscode/tasks.json")),
    attempt("editor, moved", "mv .vscode v; mkdir .vscode; echo pwned > .vscode/tasks.json", Workspace(".vscode/tasks.json")),
    attempt("workflow", "echo pwned > .github/workflows/ci.yml", Workspace(".github/workflows/ci.yml")),
    attempt("workflow by moving what is above", "mv .github g; mkdir -p .github/workflows; echo pwned > .github/workflows/ci.yml", Workspace(".github/workflows/ci.yml")),
    attempt("instructions", "echo pwned > CLAUDE.md", Workspace("CLAUDE.md")),
    attempt("another agent", "echo pwned > .claude/settings.json", Workspace(".claude/settings.json")),
    attempt("a new file for another agent", "echo pwned > .claude/new.json", Workspace(".claude/new.json")),
    attempt("packages", "echo pwned > .npmrc", Workspace(".npmrc")),
    attempt("servers", "echo pwned > .mcp.json", Workspace(".mcp.json")),
    attempt("husky", "echo pwned > .husky/pre-commit", Workspace(".husky/pre-commit")),
    attempt("programs of an environment", "echo pwned > venv/bin/python", Workspace("venv/bin/python")),
    attempt("programs of an environment, moved", "mv venv v; mkdir -p venv/bin; echo pwned > venv/bin/activate", Workspace("venv/bin/activate")),

    // What others run or trust, not there yet.
    attempt("new: our own", "mkdir -p .caliban; echo pwned > .caliban/settings.toml", Workspace(".caliban/settings.toml")),
    attempt("new: editor", "mkdir .idea; echo pwned > .idea/x", Workspace(".idea/x")),
    attempt("new: cursor", "mkdir .cursor; echo pwned > .cursor/mcp.json", Workspace(".cursor/mcp.json")),
    attempt("new: gemini", "mkdir .gemini; echo pwned > .gemini/settings.json", Workspace(".gemini/settings.json")),
    attempt("new: codex", "mkdir .codex; echo pwned > .codex/config.toml", Workspace(".codex/config.toml")),
    attempt("new: container", "mkdir .devcontainer; echo pwned > .devcontainer/devcontainer.json", Workspace(".devcontainer/devcontainer.json")),
    attempt("new: before commits", "echo pwned > .pre-commit-config.yaml", Workspace(".pre-commit-config.yaml")),
    attempt("new: instructions", "echo pwned > AGENTS.md", Workspace("AGENTS.md")),
    attempt("new: yarn", "echo pwned > .yarnrc.yml", Workspace(".yarnrc.yml")),
    attempt("new: in other letters", "echo pwned > .PRE-commit-config.yaml", Workspace(".PRE-commit-config.yaml")),
    attempt("new: by a link", "mkdir d; echo pwned > d/x; ln -s d .idea", Workspace(".idea/x")),
    attempt("new: by moving", "mkdir d; echo pwned > d/x; mv d .idea", Workspace(".idea/x")),
    attempt("new: deeper", "mkdir -p src/.vscode; echo pwned > src/.vscode/tasks.json", Workspace("src/.vscode/tasks.json")),
    attempt("new: an environment of an old directory", "mkdir -p src/bin; touch src/pyvenv.cfg; echo pwned > src/bin/python", Workspace("src/bin/python")),

    // Secrets.
    attempt("keys of ssh", "cat $HOME/.ssh/id", Says),
    attempt("netrc", "cat $HOME/.netrc", Says),
    attempt("cloud", "cat $HOME/.aws/credentials", Says),
    attempt("github", "cat $HOME/.config/gh/hosts.yml", Says),
    attempt("docker", "cat $HOME/.docker/config.json", Says),
    attempt("credentials of git", "cat $HOME/.git-credentials", Says),
    attempt("registry", "cat $HOME/.npmrc", Says),
    attempt("gpg", "cat $HOME/.gnupg/key", Says),
    attempt("settings of ours", "cat $HOME/.config/caliban/settings.toml", Says),
    attempt("cache of ours", "cat $HOME/.cache/caliban/x", Says),
    attempt("by a search", "grep -rsh TOPSECRET $HOME", Says),
    attempt("by the root of a process", "cat /proc/self/root$HOME/.ssh/id", Says),
    attempt("by a copy of the home", "cp -r $HOME h; cat h/.ssh/id", Says),

    // Processes.
    attempt("kill", "kill -9 $VICTIM; sleep 0.1", VictimDied),
    attempt("kill everybody of a user", "kill -9 -- $VICTIM; python3 -c \"import os; os.kill(int(os.environ['VICTIM']), 9)\"; sleep 0.1", VictimDied),
    attempt("environment of others", "tr '\\0' '\\n' < /proc/$VICTIM/environ", Says),
    attempt("all environments", "cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n' | grep -a SECRET=", Says),
    attempt("memory of others", "[ -r /proc/$VICTIM/mem ] && echo TOPSECRET", Says),
    attempt("directory of others", "ls /proc/$VICTIM/cwd/ && echo TOPSECRET", Says),
    attempt("priority of others", "renice -n 5 -p $VICTIM && echo TOPSECRET", Says),

    // Those who listen.
    attempt("a socket", "python3 -c \"import os, socket; s = socket.socket(socket.AF_UNIX); s.connect(os.environ['OUTSIDE'] + '/socket'); print(s.recv(99))\"", Says),
    attempt("a socket by a datagram pair", "python3 -c \"import os, socket; s = socket.socket(socket.AF_UNIX); os.chdir(os.environ['OUTSIDE']); s.connect('socket'); print(s.recv(99))\"", Says),
    attempt("an abstract socket", "python3 -c \"import os, socket; s = socket.socket(socket.AF_UNIX); s.connect(chr(0) + os.environ['ABSTRACT']); print(s.recv(99))\"", Says),
    attempt("a port of this machine", "python3 -c \"import os, socket; print(socket.create_connection(('127.0.0.1', int(os.environ['PORT']))).recv(99))\"", Says),
    attempt("a port by the shell", "exec 9<>/dev/tcp/127.0.0.1/$PORT; head -c 9 <&9", Says),
    attempt("shared memory", "cat $SHARED", Says),
    attempt("the address of an agent", "echo $SSH_AUTH_SOCK", Says),

    // What starts and stays.
    attempt("the policy", "(cat /proc/1/cmdline /proc/1/environ; env; [ -d $HOME/.ssh ] && ls $HOME/.ssh) | tr '\\0' '\\n' | grep -aqE 'ro[-]bind|^id$' && echo TOPSECRET", Says),
    attempt("descriptors", "exec 8< $HOME/.ssh/id && echo TOPSECRET", Says),
];

/// Calls of the kernel by name and number, with arguments that make them fail otherwise.
pub(crate) const SYSTEM_CALLS: &[(&str, &str)] = &[
    ("add_key", "248, 0, 0, 0, 0, 0"),
    ("request_key", "249, 0, 0, 0, 0"),
    ("keyctl", "250, 0, -3, 0, 0, 0"),
    ("bpf", "321, 0, 0, 0"),
    ("io_uring_setup", "425, 1, 0"),
    ("io_uring_enter", "426, -1, 0, 0, 0, 0"),
    ("io_uring_register", "427, -1, 0, 0, 0"),
    ("perf_event_open", "298, 0, 0, 0, 0, 0"),
    ("userfaultfd", "323, -1"),
    ("fanotify_init", "300, -1, -1"),
    ("open_by_handle_at", "304, -1, 0, 0"),
    ("mount", "165, 0, 0, 0, 0, 0"),
    ("umount2", "166, 0, 0"),
    ("pivot_root", "155, 0, 0"),
    ("setns", "308, -1, 0"),
    ("open_tree", "428, -1, 0, 0"),
    ("move_mount", "429, -1, 0, -1, 0, 0"),
    ("fsopen", "430, 0, 0"),
    ("fspick", "433, -1, 0, 0"),
    ("mount_setattr", "442, -1, 0, 0, 0, 0"),
    ("init_module", "175, 0, 0, 0"),
    ("finit_module", "313, -1, 0, 0"),
    ("kexec_load", "246, 0, 1, 0, 0"),
    ("swapon", "167, 0, 0"),
    ("acct", "163, -1"),
    ("quotactl", "179, -1, 0, 0, 0"),
    ("unshare a user namespace", "272, 0x10000000"),
    ("socket of a machine's host", "41, 40, 1, 0"),
    ("socket of ciphers", "41, 38, 5, 0"),
    ("raw socket", "41, 17, 3, 0"),
];

/// Makes each call in a process of its own and says how it failed.
pub(crate) fn system_calls_script() -> String {
    let calls: Vec<String> = SYSTEM_CALLS
        .iter()
        .map(|(name, arguments)| format!("({name:?}, ({arguments})),"))
        .collect();
    format!(
        "python3 - <<'X'\nimport ctypes, errno, os\nlibc = ctypes.CDLL(None, use_errno=True)\n\
         for name, args in ({}):\n    \
         pid = os.fork()\n    \
         if pid == 0:\n        \
         done = libc.syscall(*[ctypes.c_long(a) for a in args])\n        \
         print(name, 'done' if done >= 0 else errno.errorcode[ctypes.get_errno()], flush=True)\n        \
         os._exit(0)\n    \
         os.waitpid(pid, 0)\nX",
        calls.join(" ")
    )
}
