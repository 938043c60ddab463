// What can be done with workloads, one by one: the words, whether it can be undone, and the request.
import { deleteWorkload, resumeWorkload, stopWorkload, suspendWorkload, type WorkloadView } from "@/api";
import { count, gpus } from "@/parts/format";
import { isFinished } from "./State";

export interface Action {
  name: "suspend" | "resume" | "stop" | "delete";
  label: string;
  /** Asked once before it is done. */
  isFinal: boolean;
  can: (item: WorkloadView) => boolean;
  run: (id: string) => Promise<unknown>;
}

export const ACTIONS: readonly Action[] = [
  {
    name: "suspend",
    label: "Suspend",
    isFinal: false,
    can: (item) => ["pending", "starting", "running"].includes(item.phase),
    run: (id) => suspendWorkload({ path: { ref: id } }),
  },
  {
    name: "resume",
    label: "Resume",
    isFinal: false,
    can: (item) => item.phase === "suspended",
    run: (id) => resumeWorkload({ path: { ref: id } }),
  },
  {
    name: "stop",
    label: "Stop",
    isFinal: true,
    can: (item) => !isFinished(item.phase) && item.phase !== "stopping",
    run: (id) => stopWorkload({ path: { ref: id } }),
  },
  {
    name: "delete",
    label: "Delete",
    isFinal: true,
    can: () => true,
    run: (id) => deleteWorkload({ path: { ref: id } }),
  },
];

/** Exactly what will go, and what stays. */
export function consequence(action: Action, items: readonly WorkloadView[]): string {
  const held = items.filter((item) => item.devices.length > 0);
  const pods = held.reduce((sum, item) => sum + item.replicas, 0);
  const devices = held.reduce((sum, item) => sum + milliOf(item), 0);
  const frees = pods > 0 ? `Stops ${count(pods, "pod")}, frees ${gpus(devices)} GPU.` : "Nothing of it runs.";
  return action.name === "delete"
    ? `${frees} Files and logs of ${count(items.length, "workload")} are deleted; events and usage are kept.`
    : `${frees} Files and logs are kept.`;
}

/** Thousandths of a device that a request is about; memory requests count their devices. */
function milliOf(item: WorkloadView): number {
  const [first = "", second] = item.gpu.split("x");
  const devices = second === undefined ? 1 : Number(first);
  const share = Number(second ?? first);
  return (
    item.replicas *
    devices *
    1000 *
    (Number.isFinite(share) && (share > 1 || devices === 1) ? share : Math.min(1, share || 1))
  );
}

export interface Result {
  id: string;
  name: string;
  /** Null: done. */
  error: unknown;
}

/** Do it for one after the other, telling of each; ends early when the signal says so. */
export async function doAll(
  action: Pick<Action, "run">,
  items: readonly WorkloadView[],
  onResult: (result: Result) => void,
  signal: AbortSignal,
): Promise<void> {
  for (const item of items) {
    if (signal.aborted) return;
    try {
      await action.run(item.id);
      onResult({ id: item.id, name: item.name, error: null });
    } catch (error) {
      onResult({ id: item.id, name: item.name, error });
    }
  }
}
