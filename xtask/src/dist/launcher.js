#!/usr/bin/env node
// Runs the program that came with the package of this platform, and ends as it ends.
"use strict";
const { spawn } = require("node:child_process");

const name = `caliban-${process.platform}-${process.arch}`;
let program;
try {
  program = require.resolve(`${name}/bin/caliban`);
} catch {
  console.error(`caliban: the package ${name} is not installed; there is none for some platforms,` +
    " and `--omit=optional` leaves it out");
  process.exit(69);
}
const child = spawn(program, process.argv.slice(2), { stdio: "inherit" });
const signals = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"];
for (const signal of signals) {
  // The terminal tells the whole group; others tell us alone.
  process.on(signal, () => child.kill(signal));
}
child.on("error", (error) => {
  console.error(`caliban: ${program}: ${error.message}`);
  process.exit(126);
});
child.on("exit", (code, signal) => {
  for (const known of signals) process.removeAllListeners(known);
  if (signal) process.kill(process.pid, signal);
  else process.exit(code);
});
