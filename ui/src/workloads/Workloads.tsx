// Where is my work, and why is it not running?
import { Button, Select } from "@mantine/core";
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useCallback, useEffect, useMemo } from "react";
import { countWorkloads, listWorkloads, type Phase, type WorkloadView } from "@/api";
import { workloadRows } from "@/live/live";
import { useArrivals } from "@/live/rows";
import { DataTable } from "@/parts/DataTable";
import { Empty } from "@/parts/Empty";
import { Fault } from "@/parts/Faults";
import { Filter } from "@/parts/Filter";
import { count, number } from "@/parts/format";
import { PageHead } from "@/parts/PageHead";
import { type Query, useQueryState } from "@/parts/url";
import { Bulk } from "./Bulk";
import { COLUMNS } from "./columns";
import { isFinished, PHASES } from "./State";
import { Views } from "./Views";

const PART = 1000;
const NEWEST_FIRST = "-created";

type Filters = { q?: string; phase?: string; project?: string; department?: string; kind?: string };

function filtersOf(query: Query): Filters {
  const { q, phase, project, department, kind } = query;
  return { q, phase, project, department, kind };
}

/** Whether a workload that came belongs to what is listed, as far as its row tells. */
export function matches(item: WorkloadView, { q, phase, project, department, kind }: Filters): boolean {
  const phases = phase?.split(",");
  const isIn = !phases || phases.includes(item.phase) || (phases.includes("unfinished") && !isFinished(item.phase));
  return (
    isIn &&
    (!project || project.split(",").includes(item.project)) &&
    (!department || department.split(",").includes(item.department)) &&
    (!kind || kind === item.kind) &&
    (!q || item.name.includes(q) || item.project.includes(q))
  );
}

export function Workloads() {
  const [query, change] = useQueryState();
  const navigate = useNavigate();
  const filters = filtersOf(query);
  const sort = query.sort ?? NEWEST_FIRST;
  const list = useInfiniteQuery({
    queryKey: ["workloads", filters, sort],
    queryFn: async ({ pageParam }) => {
      const { data } = await listWorkloads({ query: { ...filters, sort, limit: PART, cursor: pageParam } });
      const ids = data.items.map((one) => one.id);
      if (pageParam === undefined) workloadRows.reset(ids);
      else workloadRows.extend(ids);
      return data;
    },
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last) => last.next ?? undefined,
    staleTime: 0,
  });
  const rows = useMemo(() => list.data?.pages.flatMap((page) => page.items) ?? [], [list.data]);
  const total = list.data?.pages.at(-1)?.total ?? 0;
  const onEnd = useCallback(() => void (list.hasNextPage && !list.isFetching && list.fetchNextPage()), [list]);
  const isFiltered = Object.values(filters).some(Boolean);

  return (
    <>
      <PageHead title="Workloads" about={list.data ? count(total, "workload") : ""}>
        <Arrivals filters={filters} isNewestFirst={sort === NEWEST_FIRST} onTake={() => void list.refetch()} />
      </PageHead>
      {list.error && <Fault error={list.error} what="list the workloads" onRetry={() => void list.refetch()} />}
      <DataTable
        name="workloads"
        columns={COLUMNS}
        rows={rows}
        total={total}
        isLoading={list.isPending}
        order={NEWEST_FIRST}
        live={workloadRows}
        onEnd={onEnd}
        onOpen={(item) => void navigate({ to: "/workloads/$ref", params: { ref: item.id } })}
        bulk={(items, clear) => <Bulk items={items} onDone={clear} />}
        tools={
          <>
            <Views />
            <Filter label="name, project or id" />
            <PhaseSelect value={filters.phase} filters={filters} onChange={(phase) => change({ phase })} />
            {isFiltered && (
              <Button
                variant="subtle"
                onClick={() => change({ q: "", phase: "", project: "", department: "", kind: "" })}
              >
                Show all
              </Button>
            )}
          </>
        }
        empty={
          isFiltered ? (
            <Empty title="No workload is like that." />
          ) : (
            <Empty title="Nothing was submitted yet." command="aliquot run --gpu 0.5 -- nvidia-smi">
              <Link to="/submit">Submit the first from here</Link>
            </Empty>
          )
        }
      />
    </>
  );
}

interface ArrivalsProps {
  filters: Filters;
  isNewestFirst: boolean;
  onTake: () => void;
}

/** Those that came since the list was loaded wait for a click, except where nothing would jump. */
function Arrivals({ filters, isNewestFirst, onTake }: ArrivalsProps) {
  const arrivals = useArrivals(workloadRows);
  const wanted = arrivals.filter((item) => matches(item, filters)).length;
  useEffect(() => {
    if (wanted === 0 || !isNewestFirst) return;
    const isAtTop = (document.querySelector("[data-keys=table]")?.scrollTop ?? 0) === 0;
    // Few come at a time where a person watches; where many do, a click takes them in.
    if (isAtTop && wanted < 20) onTake();
  }, [wanted, isNewestFirst, onTake]);
  if (wanted === 0) return null;
  return (
    <Button variant="light" onClick={onTake}>
      {number(wanted)} new
    </Button>
  );
}

interface PhaseProps {
  value: string | undefined;
  filters: Filters;
  onChange: (phase: string) => void;
}

function PhaseSelect({ value, filters, onChange }: PhaseProps) {
  const { phase: _, ...others } = filters;
  const counts = useQuery({
    queryKey: ["counts", others],
    queryFn: async () => (await countWorkloads({ query: others })).data.phases,
  });
  const of = (phase: Phase) => counts.data?.[phase] ?? 0;
  const unfinished = PHASES.filter((phase) => !isFinished(phase)).reduce((sum, phase) => sum + of(phase), 0);
  const options = [
    { value: "unfinished", label: counts.data ? `unfinished (${number(unfinished)})` : "unfinished" },
    ...PHASES.map((phase) => ({ value: phase, label: counts.data ? `${phase} (${number(of(phase))})` : phase })),
  ];
  return (
    <Select
      aria-label="phase"
      placeholder="any phase"
      data={options}
      value={value ?? null}
      clearable
      w={170}
      onChange={(phase) => onChange(phase ?? "")}
    />
  );
}
