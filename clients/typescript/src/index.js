// Speaks the line protocol of `caliban serve app`. No dependencies.
import { spawn } from "node:child_process";
import { connect } from "node:net";
import { randomUUID } from "node:crypto";
import { createInterface } from "node:readline";

/** A request that was not granted; `code` stays the same from version to version. */
export class CalibanError extends Error {
  constructor(code, message, how) {
    super(message);
    this.name = "CalibanError";
    this.code = code;
    this.how = how;
  }
}

/** A server and everything it tells. */
export class Caliban {
  #input;
  #waiting = new Map();
  #tabs = new Map();
  #ids = 0;
  #closed;
  #isOver = false;

  constructor(input, output, closed) {
    this.#input = input;
    this.#closed = closed;
    input.on("error", () => {});
    const lines = createInterface({ input: output, crlfDelay: Infinity });
    lines.on("line", (line) => this.#hear(JSON.parse(line)));
    lines.on("close", () => this.#end());
  }

  /** Starts `caliban serve app` as a child of this process. */
  static async start({ command = "caliban", args = [], cwd, env } = {}) {
    const child = spawn(command, [...args, "serve", "app"], {
      cwd,
      env,
      stdio: ["pipe", "pipe", "inherit"],
    });
    const closed = new Promise((resolve, reject) => {
      child.on("exit", (code) => resolve(code));
      child.on("error", reject);
    });
    const server = new Caliban(child.stdin, child.stdout, closed);
    const ended = closed.then((code) => {
      throw new CalibanError("ended", `the server ended at once, with the exit code ${code}`);
    });
    // How it ended says more than that it is gone.
    await Promise.race([server.request("hello", { protocol: 1 }).catch(() => ended), ended]);
    return server;
  }

  /** Connects to a server that listens at a socket. */
  static async connect(path) {
    const socket = connect(path);
    await new Promise((resolve, reject) => socket.once("connect", resolve).once("error", reject));
    const closed = new Promise((resolve) => socket.once("close", () => resolve(null)));
    const server = new Caliban(socket, socket, closed);
    await server.request("hello", { protocol: 1 });
    return server;
  }

  /** Sends a request and waits for its answer. */
  request(op, fields = {}) {
    if (this.#isOver) return Promise.reject(new CalibanError("ended", "the server is gone"));
    const id = `c${++this.#ids}`;
    const answer = new Promise((resolve, reject) => this.#waiting.set(id, { resolve, reject }));
    this.#input.write(`${JSON.stringify({ op, id, ...fields })}\n`);
    return answer;
  }

  /** Opens a tab, or joins one that is open. */
  async open(session = {}, handlers = {}) {
    const name = session.tab ?? session.resume ?? randomUUID();
    const tab = new Tab(this, name, handlers);
    this.#tabs.set(name, tab);
    try {
      tab.view = await this.request("open", { ...session, tab: name });
    } catch (error) {
      this.#tabs.delete(name);
      throw error;
    }
    if (tab.view.tab !== name) {
      // It is open under another name.
      this.#tabs.delete(name);
      tab.name = tab.view.tab;
      this.#tabs.set(tab.name, tab);
    }
    return tab;
  }

  async tabs() {
    return (await this.request("tabs")).tabs;
  }

  /** Ends every session and the server. */
  async shutdown() {
    await this.request("shutdown");
    this.#input.end();
    return this.#closed;
  }

  #hear(line) {
    if ("re" in line) {
      const waiting = this.#waiting.get(line.re);
      this.#waiting.delete(line.re);
      if (!waiting) return;
      if (line.error) {
        const { code, message, how } = line.error;
        waiting.reject(new CalibanError(code, message, how));
      } else waiting.resolve(line.ok);
      return;
    }
    this.#tabs.get(line.tab)?.hear(line);
  }

  #end() {
    this.#isOver = true;
    const gone = new CalibanError("ended", "the server is gone");
    for (const { reject } of this.#waiting.values()) reject(gone);
    this.#waiting.clear();
    for (const tab of this.#tabs.values()) tab.end(gone);
  }
}

/** One session with its queue. */
export class Tab {
  #server;
  #handlers;
  #results = new Map();
  /** The number of the last event that was heard. */
  seq = 0;
  view = null;

  constructor(server, name, handlers) {
    this.#server = server;
    this.name = name;
    this.#handlers = handlers;
  }

  /** Sends a prompt and waits for its result. The same `request` is worked on once. */
  async send(content, { request = randomUUID() } = {}) {
    const waiting = { content };
    const ended = new Promise((resolve, reject) => Object.assign(waiting, { resolve, reject }));
    // Whether anybody waits for it is decided below.
    ended.catch(() => {});
    this.#results.set(request, [...(this.#results.get(request) ?? []), waiting]);
    let sent;
    try {
      sent = await this.#server.request("send", { tab: this.name, request, content });
    } catch (error) {
      const others = (this.#results.get(request) ?? []).filter((other) => other !== waiting);
      if (others.length) this.#results.set(request, others);
      else this.#results.delete(request);
      throw error;
    }
    // What ended before is not told again.
    if (sent.duplicate && sent.result) this.#settle(request, sent.result);
    return ended;
  }

  /** Stops what is worked on, or takes a request back. */
  cancel(options = {}) {
    return this.#server.request("cancel", { tab: this.name, ...options });
  }

  answer(question, answer) {
    return this.#server.request("answer", { tab: this.name, question, ...answer });
  }

  set(changes) {
    return this.#server.request("set", { tab: this.name, ...changes });
  }

  /** Hears everything after an event again. */
  events(since = this.seq) {
    this.seq = since;
    return this.#server.request("events", { tab: this.name, since });
  }

  close(options = {}) {
    return this.#server.request("close", { tab: this.name, ...options });
  }

  /** A line of this tab. */
  hear(line) {
    this.seq = line.seq;
    const { event, request } = line;
    this.#handlers.onEvent?.(event, line);
    if (event.type === "text") this.#handlers.onText?.(event.delta, line);
    if (event.type === "question") this.#ask(event);
    if (event.type === "result" && request) this.#settle(request, event);
    if (event.type === "snapshot") this.#catchUp();
  }

  /** A snapshot stands for what was not told, which may have been results: they are asked for. */
  #catchUp() {
    for (const [request, [{ content }]] of this.#results) {
      const sent = this.#server.request("send", { tab: this.name, request, content });
      sent.then(({ result }) => result && this.#settle(request, result), () => {});
    }
  }

  end(error) {
    for (const waiting of this.#results.values()) waiting.forEach(({ reject }) => reject(error));
    this.#results.clear();
  }

  #settle(request, result) {
    this.#results.get(request)?.forEach(({ resolve }) => resolve(result));
    this.#results.delete(request);
  }

  async #ask(event) {
    if (!this.#handlers.onQuestion) return;
    try {
      await this.answer(event.question, await this.#handlers.onQuestion(event));
    } catch (error) {
      // Somebody else may have answered, or nobody is there any more.
      this.#handlers.onError?.(error);
    }
  }
}
