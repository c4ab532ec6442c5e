// JSON whose payloads keep their numbers as they were written: 12345678901234567890 and 1.0 stay so.
// JSON.parse alone would round the first and shorten the second; a payload is shown as it was sent.
interface RawJson {
  rawJSON: string;
}
interface WithSource {
  source?: string;
}
const raw = (JSON as unknown as { rawJSON?: (text: string) => RawJson }).rawJSON;
const isRaw = (JSON as unknown as { isRawJSON?: (value: unknown) => boolean }).isRawJSON;

/** Parse an answer; numbers below a payload's `json` print as they were written. */
export function parseExactly<T>(text: string): T {
  if (!raw || !isRaw) return JSON.parse(text) as T; // an older browser rounds
  const keep = (_key: string, value: unknown, context?: WithSource): unknown => {
    const source = context?.source;
    const differs = typeof value === "number" && source !== undefined && String(value) !== source;
    return differs ? raw(source) : value;
  };
  return plain(JSON.parse(text, keep), isRaw) as T;
}

/** Numbers again everywhere but in payloads. */
function plain(value: unknown, isKept: (value: unknown) => boolean): unknown {
  if (isKept(value)) return Number((value as RawJson).rawJSON);
  if (Array.isArray(value)) return value.map((one) => plain(one, isKept));
  if (typeof value !== "object" || value === null) return value;
  const isPayload = "bytes" in value && "json" in value;
  return Object.fromEntries(
    Object.entries(value).map(([name, one]) => [
      name,
      isPayload && name === "json" ? one : plain(one, isKept),
    ]),
  );
}
