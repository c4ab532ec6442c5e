// How far back a page looks; stands in the address, so that a link shows the same.
import { goTo, href } from "../shell/location";

const HOUR_MS = 3_600_000;
const WINDOWS: readonly [number, string][] = [
  [HOUR_MS / 4, "15 minutes"],
  [HOUR_MS, "1 hour"],
  [6 * HOUR_MS, "6 hours"],
  [24 * HOUR_MS, "24 hours"],
  [7 * 24 * HOUR_MS, "7 days"],
  [30 * 24 * HOUR_MS, "30 days"],
];
const WINDOW_DEFAULT_MS = HOUR_MS;

export function windowOf(query: URLSearchParams): number {
  const asked = Number(query.get("window"));
  return Number.isSafeInteger(asked) && asked > 0 ? asked : WINDOW_DEFAULT_MS;
}

/** Shorter windows move faster. */
export function refreshMs(windowMs: number): number {
  return windowMs <= HOUR_MS ? 5_000 : 30_000;
}

/** For links to pages that look equally far back. */
export function windowValue(windowMs: number): number | undefined {
  return windowMs === WINDOW_DEFAULT_MS ? undefined : windowMs;
}

export function WindowChoice({ path, query }: { path: string[]; query: URLSearchParams }) {
  const present = windowOf(query);
  const isListed = WINDOWS.some(([ms]) => ms === present);
  return (
    <label class="row small muted">
      Last
      <select
        value={present}
        onChange={(event) => {
          const chosen = windowValue(Number(event.currentTarget.value));
          goTo(href(path, { ...Object.fromEntries(query), window: chosen }), { replace: true });
        }}
      >
        {WINDOWS.map(([ms, name]) => (
          <option key={ms} value={ms}>
            {name}
          </option>
        ))}
        {!isListed && <option value={present}>{present} ms</option>}
      </select>
    </label>
  );
}
