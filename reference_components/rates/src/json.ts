/**
 * Strict JSON whose numbers keep their characters: 0.10 stays 0.10. JSON.parse would make doubles.
 * Refuses text that is not UTF-8, duplicate keys, lone surrogates and nesting deeper than 48.
 */

/** A number as it was written. */
export class Num {
  constructor(readonly text: string) {}
}

export type Json = null | boolean | string | Num | Json[] | JsonObject;
export type JsonObject = Map<string, Json>;

export class BadJson extends Error {}

const MAX_DEPTH = 48;
const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
const STRING = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y;
const SPACE = /[ \t\n\r]*/y;
const WORD = /true|false|null/y;
const LONE_SURROGATE = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/;
const WORDS: Record<string, Json> = { true: true, false: false, null: null };

/** The value of JSON text in UTF-8; throws BadJson saying what is wrong and where. */
export function parse(bytes: Uint8Array): Json {
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new BadJson("not UTF-8");
  }
  const reader = new Reader(text);
  const value = reader.value(0);
  reader.end();
  return value;
}

class Reader {
  private at = 0;

  constructor(private readonly text: string) {}

  value(depth: number): Json {
    this.take(SPACE);
    const first = this.text[this.at];
    if (depth >= MAX_DEPTH && (first === "{" || first === "[")) {
      throw this.bad(`nested deeper than ${MAX_DEPTH}`);
    }
    if (first === "{") return this.object(depth);
    if (first === "[") return this.array(depth);
    if (first === '"') return this.string();
    const word = this.take(WORD);
    if (word !== undefined) return WORDS[word] as Json;
    const number = this.take(NUMBER);
    if (number === undefined) throw this.bad("expected a value");
    return new Num(number);
  }

  end(): void {
    this.take(SPACE);
    if (this.at !== this.text.length) throw this.bad("something follows the value");
  }

  private object(depth: number): JsonObject {
    const members: JsonObject = new Map();
    this.at += 1;
    if (this.found("}")) return members;
    do {
      this.take(SPACE);
      const key = this.string();
      if (!this.found(":")) throw this.bad("expected ':'");
      if (members.has(key)) throw this.bad(`duplicate key ${JSON.stringify(key)}`);
      members.set(key, this.value(depth + 1));
    } while (this.found(","));
    if (!this.found("}")) throw this.bad("expected ',' or '}'");
    return members;
  }

  private array(depth: number): Json[] {
    const items: Json[] = [];
    this.at += 1;
    if (this.found("]")) return items;
    do {
      items.push(this.value(depth + 1));
    } while (this.found(","));
    if (!this.found("]")) throw this.bad("expected ',' or ']'");
    return items;
  }

  private string(): string {
    const token = this.take(STRING);
    if (token === undefined) throw this.bad("expected a string");
    const value = JSON.parse(token) as string; // the pattern has checked it; this resolves escapes
    if (LONE_SURROGATE.test(value)) throw this.bad("lone surrogate");
    return value;
  }

  private found(character: string): boolean {
    this.take(SPACE);
    if (this.text[this.at] !== character) return false;
    this.at += 1;
    return true;
  }

  private take(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.at;
    const match = pattern.exec(this.text);
    if (match === null) return undefined;
    this.at = pattern.lastIndex;
    return match[0];
  }

  private bad(what: string): BadJson {
    return new BadJson(`${what} at character ${this.at}`);
  }
}

/** Compact JSON text; numbers as they were read. */
export function write(value: Json): string {
  if (value instanceof Num) return value.text;
  if (Array.isArray(value)) return `[${value.map(write).join(",")}]`;
  if (value instanceof Map) {
    const members = [...value].map(([key, member]) => `${JSON.stringify(key)}:${write(member)}`);
    return `{${members.join(",")}}`;
  }
  return JSON.stringify(value);
}

export function isObject(value: Json | undefined): value is JsonObject {
  return value instanceof Map;
}
