// Who is before me and when is it my turn?
import { Button, Select } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useCallback, useMemo } from "react";
import { listQueue, type QueueEntry } from "@/api";
import { now } from "@/live/clock";
import { type Column, DataTable } from "@/parts/DataTable";
import { Empty } from "@/parts/Empty";
import { Fault } from "@/parts/Faults";
import { absolute, count, duration, gpus } from "@/parts/format";
import { PageHead } from "@/parts/PageHead";
import { useQueryState } from "@/parts/url";
import { When } from "@/parts/When";
import { useTree } from "@/projects/Projects";

type Row = QueueEntry & { id: string };

function startText(entry: QueueEntry): string {
  if (entry.expectedStart === null) return `unknown: ${entry.expectedUnknownBecause ?? "nothing tells"}`;
  const from = (time: string) => duration((Date.parse(time) - now()) / 1000);
  const { earliest, latest } = entry.expectedStart;
  return from(earliest) === from(latest) ? `in ${from(latest)}` : `in ${from(earliest)} to ${from(latest)}`;
}

const COLUMNS: readonly Column<Row>[] = [
  { id: "position", header: "Position", width: 76, isNumber: true, value: (one) => one.position },
  {
    id: "name",
    header: "Name",
    width: 180,
    value: (one) => one.name,
    cell: (one) => (
      <Link to="/workloads/$ref" params={{ ref: one.workload }} title={one.name}>
        {one.name}
      </Link>
    ),
  },
  { id: "project", header: "Project", width: 110, value: (one) => one.project },
  { id: "gpu", header: "GPU", width: 70, isNumber: true, value: (one) => gpus(one.milliGpus) },
  { id: "priority", header: "Priority", width: 76, isNumber: true, value: (one) => one.priority },
  {
    id: "since",
    header: "Waits",
    width: 90,
    isNumber: true,
    value: (one) => one.waitingSince,
    cell: (one) => <When time={one.waitingSince} suffix="" />,
  },
  {
    id: "reason",
    header: "Why",
    width: 320,
    value: (one) => one.reason?.message ?? null,
    cell: (one) => <span title={one.reason?.message}>{one.reason?.message ?? "not looked at yet"}</span>,
  },
  { id: "promised", header: "Promised", width: 130, value: (one) => one.promised.join(", ") || null },
  {
    id: "start",
    header: "Expected start",
    width: 200,
    value: startText,
    cell: (one) => (
      <span
        className={one.expectedStart ? undefined : "quiet"}
        title={
          one.expectedStart
            ? `${absolute(one.expectedStart.earliest)} to ${absolute(one.expectedStart.latest)}`
            : startText(one)
        }
      >
        {startText(one)}
      </span>
    ),
  },
  {
    id: "for",
    header: "Waits for",
    width: 220,
    value: (one) => one.waitsFor.map((other) => other.name).join(", ") || null,
    cell: (one) =>
      one.waitsFor.slice(0, 3).map((other, index) => (
        <span key={other.workload}>
          {index > 0 && ", "}
          <Link to="/workloads/$ref" params={{ ref: other.workload }}>
            {other.name}
          </Link>
        </span>
      )),
  },
  { id: "department", header: "Department", width: 110, isExtra: true, value: (one) => one.department },
  { id: "pool", header: "Pool", width: 90, isExtra: true, value: (one) => one.pool },
  { id: "kind", header: "Kind", width: 90, isExtra: true, value: (one) => one.kind },
];

export function Queue() {
  const [query, change] = useQueryState();
  const navigate = useNavigate();
  const { project, department, pool } = query;
  const list = useInfiniteQuery({
    queryKey: ["queue", project, department, pool],
    queryFn: async ({ pageParam }) =>
      (await listQueue({ query: { project, department, pool, limit: 500, cursor: pageParam } })).data,
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last) => last.next ?? undefined,
  });
  const rows = useMemo(
    () => list.data?.pages.flatMap((page) => page.items.map((one) => ({ ...one, id: one.workload }))) ?? [],
    [list.data],
  );
  const onEnd = useCallback(() => void (list.hasNextPage && !list.isFetching && list.fetchNextPage()), [list]);
  const total = list.data?.pages.at(-1)?.total ?? 0;
  const isFiltered = Boolean(project || department || pool);
  return (
    <>
      <PageHead title="Queue" about={list.data ? `${count(total, "workload")} wait` : ""} />
      {list.error && <Fault error={list.error} what="read the queue" onRetry={() => void list.refetch()} />}
      <DataTable
        name="queue"
        columns={COLUMNS}
        rows={rows}
        total={total}
        isLoading={list.isPending}
        onEnd={onEnd}
        onOpen={(one) => void navigate({ to: "/workloads/$ref", params: { ref: one.workload } })}
        tools={
          <>
            <Filters project={project} department={department} onChange={change} />
            {isFiltered && (
              <Button variant="subtle" onClick={() => change({ project: "", department: "", pool: "" })}>
                Show all
              </Button>
            )}
          </>
        }
        empty={
          <Empty
            title={isFiltered ? "Nothing of these waits." : "Nothing waits: what is submitted now starts if it fits."}
          />
        }
      />
    </>
  );
}

interface FilterProps {
  project: string | undefined;
  department: string | undefined;
  onChange: (change: Record<string, string>) => void;
}

function Filters({ project, department, onChange }: FilterProps) {
  const { departments, projects } = useTree();
  const names = (items: readonly { name: string }[] | undefined) => items?.map((one) => one.name) ?? [];
  return (
    <>
      <Select
        aria-label="department"
        placeholder="any department"
        data={names(departments.data)}
        value={department ?? null}
        searchable
        clearable
        limit={50}
        w={160}
        onChange={(value) => onChange({ department: value ?? "" })}
      />
      <Select
        aria-label="project"
        placeholder="any project"
        data={names(projects.data)}
        value={project ?? null}
        searchable
        clearable
        limit={50}
        w={160}
        onChange={(value) => onChange({ project: value ?? "" })}
      />
    </>
  );
}
