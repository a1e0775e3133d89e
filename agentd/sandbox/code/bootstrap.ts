// What runs in front of a program in Deno: gives it tools, a console and a clock, and nothing else.
//
// Every frame to the daemon starts with a secret that the program never sees; whatever else comes
// out of the process was printed. Answers are awaited without the event loop, so a program that runs
// again after a crash comes by the same way.

// What the program could replace is taken before it runs.
const { stringify, parse } = JSON;
const { inspect } = Deno;
const read = Deno.stdin.readSync.bind(Deno.stdin);
const write = Deno.stdout.writeSync.bind(Deno.stdout);
const encoder = new TextEncoder();
const decoder = new TextDecoder();
const encode = encoder.encode.bind(encoder);
const decode = decoder.decode.bind(decoder);
const toBase64 = globalThis.btoa;
const call = Function.prototype.call;
const part: (bytes: Uint8Array, from: number, to?: number) => Uint8Array = call.bind(
  Uint8Array.prototype.subarray,
);
const later = globalThis.setTimeout;
const RealDate = Date;
const RealString = String;
const RealError = Error;

type Answer = { number: number; value?: unknown; error?: string; error_type?: string };
type Opening = {
  secret: string;
  code: string;
  names: [string, string][];
  seed: number[];
  now_ms: number;
  value_bytes: number;
};
type Asked = { number: number; tool: string; arguments: string; line: number };

const { secret, code, names, seed, now_ms, value_bytes } = receive() as Opening;
const waiting = new Map<number, (answer: Answer) => void>();
let queue: Asked[] = [];
let asked = 0;
let now = now_ms;

function send(frame: string): void {
  const bytes = encode(secret + frame + "\n");
  let at = write(bytes);
  while (at < bytes.length) at += write(part(bytes, at));
}

function receive(): unknown {
  let bytes = new Uint8Array(1 << 16);
  let length = 0;
  for (;;) {
    if (length === bytes.length) {
      const larger = new Uint8Array(bytes.length * 2);
      larger.set(bytes);
      bytes = larger;
    }
    const count = read(part(bytes, length));
    if (count === null) throw new RealError("the daemon has gone");
    length += count;
    if (bytes[length - 1] === 10) return parse(decode(part(bytes, 0, length)));
  }
}

class ToolError extends Error {
  override name = "ToolError";
  constructor(message: string, readonly errorType: string) {
    super(message);
  }
}

function __callTool__(tool: string, given: unknown = {}): Promise<unknown> {
  const text = stringify(given);
  if (text === undefined || text[0] !== "{") {
    return Promise.reject(new TypeError(`${tool} takes one object: ${tool}({name: value})`));
  }
  if (text.length > value_bytes) {
    return Promise.reject(new TypeError(`the arguments of ${tool} are larger than ${value_bytes}`));
  }
  const line = Number(/program\.ts:(\d+)/.exec(shown(new RealError().stack ?? ""))?.[1] ?? 0);
  const number = ++asked;
  if (queue.push({ number, tool, arguments: text, line }) === 1) later(flush, 0);
  return new Promise((resolve, reject) => {
    waiting.set(number, (answer) => {
      if (answer.error === undefined) resolve(answer.value);
      else reject(failed(tool, line, answer));
    });
  });
}

function failed(tool: string, line: number, answer: Answer): ToolError {
  const error = new ToolError(answer.error ?? "", answer.error_type ?? "");
  error.stack = `ToolError: ${error.message}\n    at ${tool} (program.ts:${line})`;
  return error;
}

function flush(): void {
  const calls = queue;
  queue = [];
  send(stringify({ asked: calls }));
  const reply = receive() as { answers: Answer[]; now_ms: number };
  now = reply.now_ms;
  for (const answer of reply.answers) {
    const settle = waiting.get(answer.number);
    waiting.delete(answer.number);
    settle?.(answer);
  }
}

function shown(stack: string): string {
  return stack
    .split("\n")
    .filter((line) => !line.includes("bootstrap.ts") && !line.includes("ext:"))
    .join("\n")
    .replace(/data:application\/typescript;base64,[^:)\s]*/g, "program.ts")
    .replaceAll("Module.default (program.ts", "main (program.ts");
}

function broken(error: unknown): void {
  const text = error instanceof RealError ? error.stack ?? error.message : inspect(error);
  send(stringify({ broken: shown(RealString(text)) }));
}

function print(...values: unknown[]): void {
  const text = values.map((each) => (typeof each === "string" ? each : inspect(each))).join(" ");
  send(stringify({ printed: text + "\n" }));
}

// sfc32: good enough to shuffle with, and the same after a crash.
let [a, b, c, d] = seed;
function next(): number {
  const t = (((a + b) | 0) + d) | 0;
  d = (d + 1) | 0;
  a = b ^ (b >>> 9);
  b = (c + (c << 3)) | 0;
  c = (c << 21) | (c >>> 11);
  c = (c + t) | 0;
  return t >>> 0;
}

function settle(): void {
  Math.random = () => next() / 4294967296;
  const fill = (array: Uint8Array) => {
    const bytes = new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
    for (let at = 0; at < bytes.length; at++) bytes[at] = next() & 255;
    return array;
  };
  const uuid = () => {
    const hex = [...fill(new Uint8Array(16))].map((n) => n.toString(16).padStart(2, "0")).join("");
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${
      hex.slice(20)
    }`;
  };
  Object.defineProperty(globalThis, "crypto", {
    value: { getRandomValues: fill, randomUUID: uuid, subtle: crypto.subtle },
  });
  // Time stands still between two answers.
  globalThis.Date = new Proxy(RealDate, {
    construct: (target, given, self) =>
      Reflect.construct(target, given.length === 0 ? [now] : given, self),
    apply: () => new RealDate(now).toString(),
    get: (target, name) => (name === "now" ? () => now : Reflect.get(target, name)),
  });
  RealDate.prototype.constructor = globalThis.Date;
  performance.now = () => now - now_ms;
  const console = { log: print, info: print, debug: print, warn: print, error: print };
  Object.defineProperty(globalThis, "console", { value: console, writable: true });
  for (const name of ["Deno", "Worker", "WebSocket", "fetch", "alert", "confirm", "prompt"]) {
    delete (globalThis as Record<string, unknown>)[name];
  }
  globalThis.addEventListener("error", (event) => {
    event.preventDefault();
    broken(event.error);
  });
  globalThis.addEventListener("unhandledrejection", (event) => {
    event.preventDefault();
    broken(event.reason);
  });
}

async function main(): Promise<void> {
  const parameters = ["__callTool__", ...names.map(([name]) => name)].join(", ");
  const source = `export default async (${parameters}) => {${code}\n}`;
  let binary = "";
  for (const byte of encode(source)) binary += RealString.fromCharCode(byte);
  const url = "data:application/typescript;base64," + toBase64(binary);
  settle();
  try {
    const program = await import(url);
    const tools = names.map(([, tool]) => (given?: unknown) => __callTool__(tool, given));
    const value = stringify((await program.default(__callTool__, ...tools)) ?? null);
    const left = queue.map(({ tool, line }) => ({ tool, line }));
    send(`{"ended":${value ?? "null"},"left":${stringify(left)}}`);
  } catch (error) {
    broken(error);
  }
}

main();
