// Every view has a URL. Pages are loaded when they are first gone to.
import { createRootRoute, createRoute, createRouter, lazyRouteComponent } from "@tanstack/react-router";
import { readQuery } from "@/parts/url";
import { Lost } from "./Lost";
import { Shell } from "./Shell";

const root = createRootRoute({
  component: Shell,
  notFoundComponent: Lost,
  validateSearch: (search: Record<string, unknown>) => readQuery(search),
});

const at = <Path extends string>(path: Path, load: () => Promise<Record<string, unknown>>, name: string) =>
  createRoute({ getParentRoute: () => root, path, component: lazyRouteComponent(load as never, name as never) });

const tree = root.addChildren([
  at("/", () => import("@/overview/Overview"), "Overview"),
  at("/workloads", () => import("@/workloads/Workloads"), "Workloads"),
  at("/workloads/$ref", () => import("@/workloads/Workload"), "Workload"),
  at("/submit", () => import("@/submit/Submit"), "Submit"),
  at("/queue", () => import("@/queue/Queue"), "Queue"),
  at("/projects", () => import("@/projects/Projects"), "Projects"),
  at("/devices", () => import("@/devices/Devices"), "Devices"),
  at("/nodes", () => import("@/nodes/Nodes"), "Nodes"),
  at("/nodes/$ref", () => import("@/nodes/Node"), "Node"),
  at("/usage", () => import("@/usage/Usage"), "Usage"),
  at("/settings", () => import("@/settings/Settings"), "Settings"),
]);

export const router = createRouter({
  routeTree: tree,
  defaultPreload: "intent",
  // All parameters are texts: `?q=123` is not a number.
  parseSearch: (text) => Object.fromEntries(new URLSearchParams(text)),
  stringifySearch: (search) => {
    const text = new URLSearchParams(readQuery(search) as Record<string, string>).toString();
    return text === "" ? "" : `?${text}`;
  },
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
