// Every page in one table: which hash leads there, its title, its place in the navigation.
// A page is one file in `pages/` and one line here; `{}` takes one segment.
import type { ComponentType } from "preact";
import { Annotate } from "../pages/annotate";
import { Lineage } from "../pages/lineage";
import { LineageDifference } from "../pages/lineage_difference";
import { LineageOf } from "../pages/lineage_run";
import { ComponentPage } from "../pages/component";
import { Overview } from "../pages/overview";
import { Registry } from "../pages/registry";
import { Rollouts } from "../pages/rollouts";
import { Semantics } from "../pages/semantics";
import { SessionPage } from "../pages/session";
import { Sessions } from "../pages/sessions";
import { WorkflowPage } from "../pages/workflow";
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
  { pattern: "sessions", title: () => "Sessions", page: Sessions, link: "Sessions" },
  { pattern: "sessions/{}", title: ([id]) => `Session ${id}`, page: SessionPage },
  { pattern: "workflows/{}", title: ([name]) => `Workflow ${name}`, page: WorkflowPage },
  { pattern: "components/{}", title: ([name]) => `Component ${name}`, page: ComponentPage },
  { pattern: "annotate", title: () => "Annotate", page: Annotate, link: "Annotate" },
  { pattern: "rollouts", title: () => "Rollouts", page: Rollouts, link: "Rollouts" },
  { pattern: "registry", title: () => "Registry", page: Registry, link: "Registry" },
  { pattern: "semantics", title: () => "Semantics", page: Semantics, link: "Semantics" },
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
