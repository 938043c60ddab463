// The columns of the list of workloads.
import { Link } from "@tanstack/react-router";
import type { WorkloadView } from "@/api";
import type { Column } from "@/parts/DataTable";
import { duration, words } from "@/parts/format";
import { When } from "@/parts/When";
import { isFinished, remark, State } from "./State";

/** `2 × 0.5 × H100` needs the model, which a row does not have before it runs: the request as it was written. */
export function gpuText(item: WorkloadView): string {
  if (item.gpu === "" || item.gpu === "0") return "–";
  const each = item.gpu.replace("x", " × ").replace(/Gi$/, " GiB");
  return item.replicas > 1 ? `${item.replicas} × ${each}` : each;
}

function since(item: WorkloadView) {
  if (item.phase === "pending") return <When time={item.waitingSince ?? item.created} suffix="" />;
  if (isFinished(item.phase)) return <When time={item.finished} />;
  return <span>{duration(item.ranSeconds)}</span>;
}

function sinceTime(item: WorkloadView): string | null {
  if (item.phase === "pending") return item.waitingSince ?? item.created;
  return isFinished(item.phase) ? item.finished : item.started;
}

export const COLUMNS: readonly Column<WorkloadView>[] = [
  {
    id: "name",
    header: "Name",
    width: 200,
    sort: "name",
    value: (item) => item.name,
    cell: (item) => (
      <Link to="/workloads/$ref" params={{ ref: item.id }} title={item.name}>
        {item.name}
      </Link>
    ),
  },
  { id: "project", header: "Project", width: 120, value: (item) => item.project },
  { id: "gpu", header: "GPU", width: 96, isNumber: true, value: gpuText },
  { id: "devices", header: "Devices", width: 150, value: (item) => item.devices.join(", ") || null },
  {
    id: "since",
    header: "Since",
    width: 90,
    isNumber: true,
    value: sinceTime,
    cell: since,
    sort: "waitingSince",
  },
  {
    id: "created",
    header: "Created",
    width: 110,
    sort: "created",
    value: (item) => item.created,
    cell: (item) => <When time={item.created} />,
  },
  { id: "priority", header: "Priority", width: 76, isNumber: true, sort: "priority", value: (item) => item.priority },
  { id: "kind", header: "Kind", width: 90, isExtra: true, value: (item) => item.kind },
  { id: "department", header: "Department", width: 120, isExtra: true, value: (item) => item.department },
  { id: "actor", header: "By", width: 90, isExtra: true, sort: "actor", value: (item) => item.actor },
  { id: "cpu", header: "CPU", width: 70, isNumber: true, isExtra: true, value: (item) => item.cpu },
  { id: "memory", header: "Memory", width: 80, isNumber: true, isExtra: true, value: (item) => item.memory },
  {
    id: "preemptible",
    header: "Preemptible",
    width: 100,
    isExtra: true,
    value: (item) => (item.preemptible ? "yes" : "no"),
  },
  { id: "guarantee", header: "Guarantee", width: 100, isExtra: true, value: (item) => item.guarantee },
  { id: "evictions", header: "Evictions", width: 86, isNumber: true, isExtra: true, value: (item) => item.evictions },
  { id: "attempt", header: "Attempts", width: 86, isNumber: true, isExtra: true, value: (item) => item.attempt },
  {
    id: "ran",
    header: "Ran",
    width: 90,
    isNumber: true,
    isExtra: true,
    value: (item) => item.ranSeconds,
    cell: (item) => duration(item.ranSeconds),
  },
  { id: "id", header: "Id", width: 270, isExtra: true, value: (item) => item.id },
  {
    id: "state",
    header: "State",
    width: 360,
    sort: "phase",
    value: (item) => [words(item.phase), remark(item)].filter(Boolean).join(": "),
    cell: (item) => <State item={item} />,
  },
];
