//! What runs workers where others place programs.

use crate::args::{ManifestArgs, ManifestKind};

/// How long past the lease a worker that is told to stop may take.
const BEYOND: u64 = 15;

/// `run` are the flags that decide what jobs may do: they go into the command of every worker.
pub(super) fn manifest(args: &ManifestArgs, server: &str, run: &[String]) -> String {
    match args.kind {
        ManifestKind::Kubernetes => kubernetes(args, server, run),
        ManifestKind::Slurm => slurm(args, server, run),
        ManifestKind::Systemd => systemd(args, server, run),
    }
}

fn flags(args: &ManifestArgs) -> String {
    let lease = args.lease.as_millis();
    format!(
        "--pool {} --slots {} --lease {lease}ms",
        args.pool, args.slots
    )
}

fn kubernetes(args: &ManifestArgs, server: &str, run: &[String]) -> String {
    let ManifestArgs {
        pool,
        workers,
        slots,
        image,
        ..
    } = args;
    let runtime = args.runtime_class.as_ref();
    let runtime = runtime.map_or_else(String::new, |name| {
        format!("      runtimeClassName: {}\n", yaml(name))
    });
    let name = format!(
        "caliban-worker-{}",
        pool.as_str().to_lowercase().replace('_', "-")
    );
    let lease = args.lease.as_millis();
    let grace = args.lease.as_secs() + BEYOND;
    let (image, server) = (yaml(image), yaml(server));
    // A dollar sign before a bracket would name a variable of the container.
    let run = run
        .iter()
        .map(|flag| yaml(&flag.replace("$(", "$$(")) + ", ");
    let run: String = run.collect();
    format!(
        "# Workers of a caliban fleet. The key of the fleet is a file, and those of providers are\n\
         # variables, in two secrets:\n\
         #   kubectl create secret generic caliban-worker-key --from-file=worker.nk\n\
         #   kubectl create secret generic caliban-worker --from-literal=ANTHROPIC_API_KEY=...\n\
         # To scale by what waits, point KEDA's nats-jetstream scaler at the stream CALIBAN_JOBS\n\
         # and the consumer pool-{pool}.\n\
         apiVersion: apps/v1\n\
         kind: Deployment\n\
         metadata:\n  name: {name}\n  labels:\n    app.kubernetes.io/name: {name}\n\
         spec:\n  replicas: {workers}\n  selector:\n    matchLabels:\n      \
         app.kubernetes.io/name: {name}\n  template:\n    metadata:\n      labels:\n        \
         app.kubernetes.io/name: {name}\n    spec:\n{runtime}      \
         automountServiceAccountToken: false\n      \
         terminationGracePeriodSeconds: {grace}\n      \
         securityContext:\n        runAsNonRoot: true\n        runAsUser: 10001\n        \
         fsGroup: 10001\n        seccompProfile:\n          type: RuntimeDefault\n      \
         containers:\n      - name: worker\n        image: {image}\n        \
         command: [\"caliban\"]\n        \
         args: [{run}\"fleet\", \"worker\", \"--pool\", \"{pool}\", \"--slots\", \"{slots}\", \
         \"--lease\", \"{lease}ms\", \"--work-dir\", \"/work\"]\n        \
         env:\n        - name: HOME\n          value: /work/home\n        \
         - name: CALIBAN_FLEET_SERVER\n          value: {server}\n        \
         - name: CALIBAN_FLEET_KEY\n          value: /keys/worker.nk\n        \
         envFrom:\n        - secretRef:\n            name: caliban-worker\n        \
         securityContext:\n          readOnlyRootFilesystem: true\n          \
         allowPrivilegeEscalation: false\n          capabilities:\n            drop: [\"ALL\"]\n        \
         resources:\n          requests:\n            cpu: 500m\n            memory: 1Gi\n          \
         limits:\n            memory: 4Gi\n        \
         volumeMounts:\n        - name: work\n          mountPath: /work\n        \
         - name: tmp\n          mountPath: /tmp\n        \
         - name: keys\n          mountPath: /keys\n          readOnly: true\n      \
         volumes:\n      - name: work\n        emptyDir:\n          sizeLimit: 20Gi\n      \
         - name: tmp\n        emptyDir:\n          sizeLimit: 1Gi\n      \
         - name: keys\n        secret:\n          secretName: caliban-worker-key\n          \
         defaultMode: 288\n          items:\n          - key: worker.nk\n            path: worker.nk\n"
    )
}

/// A text in YAML, which takes JSON's.
fn yaml(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// A word for a shell.
fn word(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

fn slurm(args: &ManifestArgs, server: &str, run: &[String]) -> String {
    let last = args.workers - 1;
    let program = word(&args.program.to_string_lossy());
    let run: String = run.iter().map(|flag| word(flag) + " ").collect();
    let before = args.lease.as_secs() + BEYOND;
    format!(
        "#!/bin/bash\n\
         # Workers of a caliban fleet: sbatch this file. Keys are read from ~/.caliban-worker.env,\n\
         # which only you should be able to read; it sets CALIBAN_FLEET_KEY and providers' keys.\n\
         # CALIBAN_RUN_FLAGS has further flags that decide what jobs may do, and CALIBAN_WORKER_FLAGS\n\
         # further flags of `caliban fleet worker`.\n\
         #SBATCH --job-name=caliban-{pool}\n\
         #SBATCH --array=0-{last}\n\
         #SBATCH --requeue\n\
         #SBATCH --signal=B:TERM@{before}\n\
         #SBATCH --cpus-per-task={slots}\n\
         #SBATCH --output=caliban-{pool}-%A-%a.log\n\
         set -u\n\
         umask 077\n\
         if [ -r \"$HOME/.caliban-worker.env\" ]; then set -a; . \"$HOME/.caliban-worker.env\"; set +a; fi\n\
         export CALIBAN_FLEET_SERVER=\"${{CALIBAN_FLEET_SERVER:-{server}}}\"\n\
         work=$(mktemp -d \"${{SLURM_TMPDIR:-${{TMPDIR:-/tmp}}}}/caliban-worker.XXXXXX\") || exit 1\n\
         # The worker gives its jobs back when it is told to stop, and Slurm tells this shell.\n\
         trap 'kill -TERM \"$worker\" 2>/dev/null' TERM INT\n\
         {program} {run}${{CALIBAN_RUN_FLAGS:-}} fleet worker {flags} --work-dir \"$work\" \\\n  \
         --name \"$(hostname)-${{SLURM_JOB_ID:-0}}-${{SLURM_ARRAY_TASK_ID:-0}}\" ${{CALIBAN_WORKER_FLAGS:-}} &\n\
         worker=$!\n\
         wait \"$worker\"; code=$?\n\
         # Interrupted by the trap: wait for the worker itself.\n\
         while kill -0 \"$worker\" 2>/dev/null; do wait \"$worker\"; code=$?; done\n\
         rm -rf \"$work\"\n\
         exit \"$code\"\n",
        pool = args.pool,
        slots = args.slots,
        flags = flags(args),
    )
}

fn systemd(args: &ManifestArgs, server: &str, run: &[String]) -> String {
    // A percent sign and a dollar sign mean something in a unit.
    let plain = |text: &str| {
        text.replace('\\', "\\\\")
            .replace('%', "%%")
            .replace('$', "$$")
            .replace('"', "\\\"")
    };
    let program = plain(&args.program.to_string_lossy());
    let run = run.iter().map(|flag| format!("\"{}\" ", plain(flag)));
    let run: String = run.collect();
    let grace = args.lease.as_secs() + BEYOND;
    let name = format!("caliban-worker-{}", args.pool);
    format!(
        "# {name}@.service: workers of a caliban fleet. Put the key of the fleet into\n\
         # /etc/caliban/worker.nk and the keys of providers into /etc/caliban/worker.env, both for\n\
         # root alone; then: systemctl enable --now {name}@{{1..{workers}}}\n\
         [Unit]\n\
         Description=caliban worker %i of the pool {pool}\n\
         Wants=network-online.target\n\
         After=network-online.target\n\
         \n\
         [Service]\n\
         ExecStart=\"{program}\" {run}fleet worker {flags} --name %H-%i --work-dir %S/{name}-%i/work\n\
         Environment=\"CALIBAN_FLEET_SERVER={server}\"\n\
         Environment=CALIBAN_FLEET_KEY=%d/worker.nk\n\
         Environment=HOME=%S/{name}-%i\n\
         EnvironmentFile=-/etc/caliban/worker.env\n\
         LoadCredential=worker.nk:/etc/caliban/worker.nk\n\
         DynamicUser=yes\n\
         StateDirectory={name}-%i\n\
         StateDirectoryMode=0700\n\
         # A worker that is told to stop gives its jobs back.\n\
         KillMode=mixed\n\
         TimeoutStopSec={grace}\n\
         Restart=always\n\
         RestartSec=2\n\
         NoNewPrivileges=yes\n\
         ProtectSystem=strict\n\
         ProtectHome=yes\n\
         PrivateTmp=yes\n\
         PrivateDevices=yes\n\
         ProtectKernelTunables=yes\n\
         ProtectKernelModules=yes\n\
         ProtectControlGroups=yes\n\
         RestrictSUIDSGID=yes\n\
         LockPersonality=yes\n\
         \n\
         [Install]\n\
         WantedBy=multi-user.target\n",
        workers = args.workers,
        pool = args.pool,
        flags = flags(args),
        server = plain(server),
    )
}
