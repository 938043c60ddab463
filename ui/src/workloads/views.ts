// Views of the list by name: some that everybody has, and those that one saved. A view is the query of the URL.

export interface SavedView {
  name: string;
  query: string;
}

const KEY = "aliquot.workloads.views";

export const GIVEN: readonly SavedView[] = [
  { name: "All", query: "" },
  { name: "Unfinished", query: "phase=unfinished" },
  { name: "Waiting", query: "phase=pending&sort=waitingSince" },
  { name: "Running", query: "phase=running" },
  { name: "Failed", query: "phase=failed&sort=-finished" },
  { name: "Workspaces", query: "kind=workspace&phase=unfinished" },
];

export function savedViews(): SavedView[] {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    return Array.isArray(kept)
      ? kept.filter((one) => typeof one?.name === "string" && typeof one?.query === "string")
      : [];
  } catch {
    return [];
  }
}

export function saveView(view: SavedView): SavedView[] {
  const views = [...savedViews().filter((one) => one.name !== view.name), view];
  localStorage.setItem(KEY, JSON.stringify(views));
  return views;
}

export function forgetView(name: string): SavedView[] {
  const views = savedViews().filter((one) => one.name !== name);
  localStorage.setItem(KEY, JSON.stringify(views));
  return views;
}
