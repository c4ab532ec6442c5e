// One figure with its name and what it means; says so where there is none.
import type { ComponentChildren } from "preact";

interface FigureProps {
  name: string;
  /** Undefined where it is not known; `absent` then says why. */
  value: string | undefined;
  absent?: string;
  tone?: "good" | "bad" | "warn" | undefined;
  children?: ComponentChildren;
}

/** A figure's value: formatted, or undefined where it is not known. */
export function known(value: number | undefined, format: (value: number) => string): string | undefined {
  return value === undefined ? undefined : format(value);
}

export function Figure({ name, value, absent = "no data yet", tone, children }: FigureProps) {
  return (
    <dl class="figure">
      <dt>{name}</dt>
      {value === undefined ? (
        <dd class="value absent">{absent}</dd>
      ) : (
        <dd class={`value ${tone ?? ""}`}>{value}</dd>
      )}
      {children && <dd class="note">{children}</dd>}
    </dl>
  );
}
