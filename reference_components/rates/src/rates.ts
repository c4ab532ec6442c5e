/** The actions. All only look: rates come from a table that is read at start, and are exact decimals. */

import { readFileSync } from "node:fs";
import { Decimal } from "./decimal.js";
import { Failure, invalid } from "./failure.js";
import { isObject, Json, JsonObject, Num, parse } from "./json.js";

const RATE_DECIMALS = 6;
const USUAL_DECIMALS = 2; // of a currency's amounts, unless the table says otherwise
const CURRENCY = /^[A-Z]{3}$/;

export class Rates {
  private readonly perEur: ReadonlyMap<string, Decimal>;
  private readonly decimals: JsonObject;
  private readonly asOf: string;

  /** What can be asked, by name. */
  readonly actions: ReadonlyMap<string, (args: JsonObject) => JsonObject> = new Map([
    ["rates.quote", (args: JsonObject) => this.quote(args)],
    ["rates.convert", (args: JsonObject) => this.convert(args)],
    ["rates.currencies", () => this.currencies()],
  ]);

  constructor(file: string) {
    const table = parse(readFileSync(file));
    if (!isObject(table)) throw new Error(`${file} is not an object`);
    this.asOf = String(table.get("as_of"));
    this.decimals = table.get("decimals") as JsonObject;
    const rows = [...(table.get("per_eur") as Map<string, Num>)];
    this.perEur = new Map(rows.map(([name, rate]) => [name, decimal(rate.text)]));
  }

  private quote(args: JsonObject): JsonObject {
    const { from, to, rate } = this.pair(args);
    return new Map<string, Json>([
      ["from", from],
      ["to", to],
      ["rate", new Num(rate.toString())],
      ["as_of", this.asOf],
    ]);
  }

  private convert(args: JsonObject): JsonObject {
    const amount = args.get("amount");
    const value = amount instanceof Num ? Decimal.parse(amount.text) : undefined;
    if (!(amount instanceof Num) || value === undefined || !value.isPositive) {
      throw invalid("arguments.amount is not a positive number of at most 60 digits");
    }
    const { from, to, rate } = this.pair(args);
    const digits = this.decimals.get(to);
    const decimals = digits instanceof Num ? Number(digits.text) : USUAL_DECIMALS;
    return new Map<string, Json>([
      ["from", from],
      ["to", to],
      ["amount", amount], // the characters that came
      ["rate", new Num(rate.toString())],
      ["converted", new Num(value.times(rate).round(decimals).toString())],
      ["as_of", this.asOf],
    ]);
  }

  private currencies(): JsonObject {
    return new Map<string, Json>([
      ["currencies", [...this.perEur.keys()]],
      ["as_of", this.asOf],
    ]);
  }

  private pair(args: JsonObject): { from: string; to: string; rate: Decimal } {
    const [from, fromRate] = this.currency(args, "from");
    const [to, toRate] = this.currency(args, "to");
    return { from, to, rate: toRate.over(fromRate, RATE_DECIMALS) };
  }

  private currency(args: JsonObject, name: string): [string, Decimal] {
    const value = args.get(name);
    if (typeof value !== "string" || !CURRENCY.test(value)) {
      throw invalid(`arguments.${name} is not a currency of three capitals`);
    }
    const rate = this.perEur.get(value);
    if (rate === undefined) throw new Failure("UNKNOWN_CURRENCY", `there is no rate for ${value}`);
    return [value, rate];
  }
}

function decimal(text: string): Decimal {
  const value = Decimal.parse(text);
  if (value === undefined || !value.isPositive) throw new Error(`not a rate: ${text}`);
  return value;
}
