// What the page asks of the server.

export class Refused extends Error {
  constructor(status, code, detail) {
    super(detail);
    this.status = status;
    this.code = code;
  }
}

export async function call(method, path, body) {
  let response;
  try {
    response = await fetch(path, {
      method,
      headers: body === undefined ? {} : { "content-type": "application/json" },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch {
    throw new Refused(0, "unreachable", "The server cannot be reached.");
  }
  const text = await response.text();
  let value = null;
  try { value = text ? JSON.parse(text) : null; } catch { /* not ours */ }
  if (response.ok) return value;
  throw new Refused(response.status, value?.code ?? "", value?.detail ?? response.statusText);
}

export const session = (tab) => `/v1/sessions/${encodeURIComponent(tab)}`;

// How long to wait before a connection is tried again, the first time and at most.
const FIRST = 500;
const LONGEST = 8000;

/// Hears lines over a WebSocket, and comes back when it breaks. `query` says from where to go on.
export class Feed {
  constructor(path, query, line, state) {
    Object.assign(this, { path, query, line, state, wait: FIRST, over: false });
    this.open();
  }

  open() {
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    const socket = new WebSocket(`${scheme}://${location.host}${this.path}${this.query()}`);
    this.socket = socket;
    socket.onopen = () => {
      if (this.over) { socket.close(); return; }
      this.wait = FIRST;
      this.state(true);
    };
    socket.onmessage = (message) => { if (!this.over) this.line(JSON.parse(message.data)); };
    socket.onclose = () => {
      if (this.over) return;
      this.state(false);
      this.timer = setTimeout(() => this.open(), this.wait);
      this.wait = Math.min(this.wait * 2, LONGEST);
    };
  }

  close() {
    this.over = true;
    clearTimeout(this.timer);
    // One that is still being opened is closed once it is: until then browsers call that an error.
    if (this.socket.readyState !== WebSocket.CONNECTING) this.socket.close();
  }
}
