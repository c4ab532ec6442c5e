// Every page in one table: which hash leads there, its title, its place in the navigation.
// A page is one file in `pages/` and one line here; `{name}` takes one segment, in order.
import type { ComponentType } from "preact";
import { Annotate } from "../pages/annotate";
import { Lineage } from "../pages/lineage";
import { LineageDifference } from "../pages/lineage_difference";
import { LineageOf } from "../pages/lineage_run";
import { Overview } from "../pages/overview";
import type { Place } from "./location";

export interface PageProps {
  /** What the `{}` of the pattern took. */
  names: string[];
  query: URLSearchParams;
}

export interface Route {
  pattern: string;
  title: (names: string[]) => string;
  page: ComponentType<PageProps>;
  /** Stands in the navigation under this name. */
  link?: string;
}

export const ROUTES: readonly Route[] = [
  { pattern: "", title: () => "Overview", page: Overview, link: "Overview" },
  { pattern: "annotate", title: () => "Annotate", page: Annotate, link: "Annotate" },
  { pattern: "lineage", title: () => "Lineage", page: Lineage, link: "Lineage" },
  { pattern: "lineage/{}", title: ([id]) => `Lineage of ${id}`, page: LineageOf },
  { pattern: "lineage/{}/against/{}", title: () => "Two runs", page: LineageDifference },
];

/** The route of a place and what its names are; null where there is no such page. */
export function routeOf(place: Place): { route: Route; names: string[] } | null {
  for (const route of ROUTES) {
    const names = matched(route.pattern, place.path);
    if (names) return { route, names };
  }
  return null;
}

function matched(pattern: string, path: string[]): string[] | null {
  const parts = pattern.split("/").filter(Boolean);
  if (parts.length !== path.length) return null;
  const names: string[] = [];
  for (const [at, part] of parts.entries()) {
    const given = path[at] ?? "";
    if (part === "{}") names.push(given);
    else if (part !== given) return null;
  }
  return names;
}
