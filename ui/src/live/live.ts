// What a change does to what the page holds: rows of workloads are replaced one by one; of everything else it is
// enough to know that it changed, and what is looked at is asked for again, at most every two seconds.
import type { Query } from "@tanstack/react-query";
import type { Changes, WorkloadView } from "@/api";
import { queries } from "@/app/queries";
import { LiveRows } from "./rows";
import { Stream } from "./stream";

const PAUSE = 2_000;

export const workloadRows = new LiveRows<WorkloadView>();

/** What is computed from a noun and shown elsewhere. Each query's key begins with one of these words. */
const SHOWN_BY: Record<string, readonly string[]> = {
  workload: ["overview", "queue", "counts", "projects", "departments", "devices", "nodes"],
  project: ["projects", "departments", "overview", "queue"],
  department: ["departments", "projects", "overview", "queue"],
  node: ["nodes", "devices", "overview"],
  device: ["devices", "nodes", "overview"],
  receipt: ["receipts"],
  server: ["status", "overview"],
};

class Refresher {
  private due = new Set<string>();
  private timer = 0;

  ask(keys: Iterable<string>): void {
    for (const key of keys) this.due.add(key);
    if (this.due.size > 0 && this.timer === 0) this.timer = window.setTimeout(() => this.refresh(), PAUSE);
  }

  private refresh(): void {
    this.timer = 0;
    const due = this.due;
    this.due = new Set();
    // A refresh that is still under way is let finish: the next change asks again.
    queries.invalidateQueries({ predicate: (one) => due.has(String(one.queryKey[0])) }, { cancelRefetch: false });
  }
}

const refresher = new Refresher();

function takeIn(changes: Changes): void {
  if (changes.isReset) {
    takeAllAnew();
    return;
  }
  workloadRows.patch(changes.workloads, changes.goneWorkloads);
  const changed = new Set([...changes.workloads.map((one) => one.id), ...changes.goneWorkloads]);
  const nouns = changed.size > 0 ? [...changes.nouns, "workload"] : changes.nouns;
  refresher.ask(nouns.flatMap((noun) => SHOWN_BY[noun] ?? []));
  // A workload is asked for by its name or its id; what was answered has its id.
  const isChanged = ({ queryKey, state }: Query) =>
    queryKey[0] === "workload" &&
    (changed.has(String(queryKey[1])) || changed.has((state.data as Partial<WorkloadView> | undefined)?.id ?? ""));
  queries.invalidateQueries({ predicate: isChanged }, { cancelRefetch: false });
}

/** More changed than can be told one by one, or it is not known what: ask for everything that is looked at. */
function takeAllAnew(): void {
  queries.invalidateQueries();
}

export const stream = new Stream(takeIn, takeAllAnew);
