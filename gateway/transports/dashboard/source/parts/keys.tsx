// Keys of a page: one table says what each does, and the same table is shown to the reader. Keys
// are left alone while somebody types, and with Ctrl, Alt or the system's key.
import { useLayoutEffect, useRef } from "preact/hooks";

export interface Key {
  /** As `KeyboardEvent.key` gives them; any of these. With `ctrl` also while somebody types. */
  keys: string[];
  ctrl?: boolean;
  says: string;
  act: () => void;
}

export function useKeys(table: Key[]): void {
  const latest = useRef(table);
  latest.current = table;
  // With the page's first sight, not after it: whoever sees the page may press a key.
  useLayoutEffect(() => {
    const press = (event: KeyboardEvent): void => {
      const found = latest.current.find((one) => isMeant(one, event));
      if (!found || isNative(event, found)) return;
      event.preventDefault();
      found.act();
    };
    document.addEventListener("keydown", press);
    return () => document.removeEventListener("keydown", press);
  }, []);
}

/** A place in a list that keys move through: no further than its ends. */
export function clamp(at: number, length: number): number {
  return Math.max(0, Math.min(length - 1, at));
}

export function KeyList({ table }: { table: Key[] }) {
  return (
    <dl class="facts keys">
      {table.map((one) => (
        <div key={one.says}>
          <dt>
            {one.keys.map((key) => (
              <kbd key={key}>{(one.ctrl ? "Ctrl " : "") + (NAMES[key] ?? key)}</kbd>
            ))}
          </dt>
          <dd>{one.says}</dd>
        </div>
      ))}
    </dl>
  );
}

const NAMES: Record<string, string> = { ArrowDown: "↓", ArrowUp: "↑", Escape: "Esc" };

function isMeant(one: Key, event: KeyboardEvent): boolean {
  if (event.altKey || event.metaKey || event.ctrlKey !== (one.ctrl ?? false)) return false;
  return one.keys.includes(event.key);
}

/** The element that has the focus does something of its own with this key. */
function isNative(event: KeyboardEvent, one: Key): boolean {
  const at = event.target;
  if (!(at instanceof HTMLElement) || one.ctrl) return false;
  if (at.closest("input, textarea, select")) return event.key !== "Escape";
  return event.key === "Enter" && at.closest("button, a, summary") !== null;
}
