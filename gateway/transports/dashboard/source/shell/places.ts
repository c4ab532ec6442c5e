// Addresses: the hash as a path of names and a query, and back. `#/sessions?status=FAILED`. Pure.
export interface Place {
  /** Decoded segments: `#/workflows/a%2Fb` is ["workflows", "a/b"]. */
  path: string[];
  query: URLSearchParams;
}

type Values = Record<string, string | number | undefined>;

export function placeOf(hash: string): Place {
  const [path = "", query = ""] = split(hash.replace(/^#\/?/, ""));
  const names = path.split("/").filter(Boolean).map(decoded);
  return { path: names, query: new URLSearchParams(query) };
}

/** A link's target; empty and undefined values are left out. */
export function href(path: string[], values: Values = {}): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) {
    if (value !== undefined && value !== "") query.set(name, String(value));
  }
  const tail = query.toString();
  return `#/${path.map(encodeURIComponent).join("/")}${tail ? `?${tail}` : ""}`;
}

function split(text: string): [string, string] {
  const at = text.indexOf("?");
  return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + 1)];
}

function decoded(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch {
    return name; // a stray per cent sign names itself
  }
}
