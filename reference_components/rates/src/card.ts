/** The component's card: read as JSON, given as the message acp.v1.Card with its payloads as text. */

import { readFileSync } from "node:fs";
import { isObject, Json, JsonObject, Num, parse, write } from "./json.js";

const PAYLOADS = new Set(["input_schema", "output_schema", "semantics", "arguments", "output"]);
const ENUMS: Record<string, string> = {
  effect: "EFFECT_",
  idempotency: "IDEMPOTENCY_",
  kind: "KIND_",
  roles: "ROLE_",
};

export function readCard(file: string): object {
  const card = parse(readFileSync(file));
  if (!isObject(card)) throw new Error(`${file} is not an object`);
  return message(card);
}

function message(value: JsonObject): object {
  return Object.fromEntries([...value].map(([name, member]) => [name, field(name, member)]));
}

function field(name: string, value: Json): unknown {
  if (PAYLOADS.has(name)) return Buffer.from(write(value));
  if (Array.isArray(value)) return value.map((item) => field(name, item));
  if (isObject(value)) return message(value);
  if (value instanceof Num) return Number(value.text);
  const prefix = ENUMS[name];
  return prefix === undefined ? value : prefix + String(value);
}
