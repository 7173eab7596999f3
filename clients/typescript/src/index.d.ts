export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
export type PermissionMode =
  | "default" | "acceptEdits" | "plan" | "auto" | "dontAsk" | "bypassPermissions";
export type Effort = "low" | "medium" | "high" | "xhigh" | "max";
export type TabState = "connecting" | "idle" | "running" | "waiting" | "ended" | "dead";

export type Content = string | Array<
  | { type: "text"; text: string }
  | { type: "image"; source: { type: "base64"; media_type: "image/png" | "image/jpeg" | "image/gif" | "image/webp"; data: string } }
>;

/** What a session shall be; what is left out is as the settings say. */
export interface Session {
  tab?: string;
  cwd?: string;
  resume?: string;
  fork?: boolean;
  name?: string;
  model?: string;
  mode?: PermissionMode;
  effort?: Effort;
  system?: string;
  append_system?: string;
  settings?: { [name: string]: Json };
  allow?: string[];
  deny?: string[];
  tools?: string[];
  max_turns?: number;
  max_budget_usd?: number;
}

export interface TabView {
  tab: string;
  session: string;
  state: TabState;
  last?: "completed" | "failed" | "cancelled";
  running?: string;
  queue: string[];
  questions: Array<{ question: string; since: string; deadline: string; event: Question }>;
  cwd: string;
  model: string;
  mode: string;
  prompts: number;
  total_cost_usd: number;
  /** Tokens of the conversation and of the model's window, as far as they are known. */
  context: { used?: number; window?: number };
  seq: number;
  epoch: string;
  parked?: boolean;
  reason?: string;
  init?: { [name: string]: Json };
  existing?: boolean;
}

/** A frame of the session, or one of the tab's own (`state`, `answered`, `changed`, `snapshot`, `gap`). */
export interface Event {
  type: string;
  [name: string]: Json | undefined;
}

export interface Question extends Event {
  type: "question";
  question: string;
  kind: "permission" | "elicitation";
}

export type Answer =
  | { decision: "allow"; scope?: "once" | "session" | "command" | "domain"; input?: Json }
  | { decision: "deny"; reason?: string }
  | { action: "accept"; content?: Json }
  | { action: "decline" | "cancel" };

export interface Result extends Event {
  type: "result";
  subtype: string;
  is_error: boolean;
  result?: string;
  error?: string;
  session_id: string;
  total_cost_usd: number;
}

export interface Line {
  tab: string;
  first?: number;
  seq: number;
  request?: string;
  event: Event;
}

export interface Handlers {
  onEvent?(event: Event, line: Line): void;
  onText?(text: string, line: Line): void;
  onQuestion?(question: Question): Answer | Promise<Answer>;
  onError?(error: Error): void;
}

export declare class CalibanError extends Error {
  readonly code: string;
  /** How a question was answered, where it was (`already_answered`). */
  readonly how?: string;
}

export declare class Caliban {
  static start(options?: {
    command?: string;
    args?: string[];
    cwd?: string;
    env?: { [name: string]: string | undefined };
  }): Promise<Caliban>;
  static connect(path: string): Promise<Caliban>;
  request(op: string, fields?: object): Promise<any>;
  open(session?: Session, handlers?: Handlers): Promise<Tab>;
  tabs(): Promise<TabView[]>;
  shutdown(): Promise<number | null>;
}

export declare class Tab {
  readonly name: string;
  readonly seq: number;
  readonly view: TabView;
  send(content: Content, options?: { request?: string }): Promise<Result>;
  cancel(options?: { request?: string; queue?: "keep" | "clear" }): Promise<object>;
  answer(question: string, answer: Answer): Promise<object>;
  set(changes: { model?: string; mode?: PermissionMode; effort?: Effort }): Promise<object>;
  events(since?: number): Promise<{ tab: string; next: number }>;
  close(options?: { session?: "keep" | "remove" }): Promise<object>;
}
