// Who has what, who deserves what?
import { Button, Group, Loader, Select } from "@mantine/core";
import { IconPlus } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { useVirtualizer } from "@tanstack/react-virtual";
import { useMemo, useRef, useState } from "react";
import { type DepartmentView, listDepartments, listProjects, type ProjectView } from "@/api";
import { Bar } from "@/parts/Bar";
import { colour, colourNames } from "@/parts/colours";
import { Empty } from "@/parts/Empty";
import { Fault } from "@/parts/Faults";
import { Filter } from "@/parts/Filter";
import { count, number } from "@/parts/format";
import { PageHead } from "@/parts/PageHead";
import { useQueryState } from "@/parts/url";
import { largest, type Row, rowsOf, type Standing } from "./amounts";
import { NewQueue } from "./NewQueue";
import css from "./Projects.module.css";
import { QueuePanel } from "./QueuePanel";

const ROW = 32;

async function all<T>(
  load: (cursor: string | undefined) => Promise<{ items: T[]; next: string | null }>,
): Promise<T[]> {
  const items: T[] = [];
  let cursor: string | undefined;
  do {
    const page = await load(cursor);
    items.push(...page.items);
    cursor = page.next ?? undefined;
  } while (cursor !== undefined);
  return items;
}

export function useTree() {
  const departments = useQuery({
    queryKey: ["departments"],
    queryFn: () =>
      all<DepartmentView>(async (cursor) => (await listDepartments({ query: { limit: 1000, cursor } })).data),
  });
  const projects = useQuery({
    queryKey: ["projects"],
    queryFn: () => all<ProjectView>(async (cursor) => (await listProjects({ query: { limit: 1000, cursor } })).data),
  });
  return { departments, projects };
}

export function Projects() {
  const [query, change] = useQueryState();
  const { departments, projects } = useTree();
  const [isNew, setNew] = useState(false);
  const pools = useMemo(
    () =>
      [
        ...new Set([...(departments.data ?? []), ...(projects.data ?? [])].flatMap((one) => Object.keys(one.pools))),
      ].sort(),
    [departments.data, projects.data],
  );
  const pool = query.pool ?? pools.find((one) => one === "default") ?? pools[0] ?? "default";
  const rows = useMemo(
    () => rowsOf(departments.data ?? [], projects.data ?? [], pool, query.q ?? ""),
    [departments.data, projects.data, pool, query.q],
  );
  useMemo(() => colourNames((departments.data ?? []).map((one) => one.name)), [departments.data]);
  const error = departments.error ?? projects.error;
  const chosen = rows.find((one) => one.id === query.queue || one.name === query.queue);

  return (
    <>
      <PageHead
        title="Projects and departments"
        about={
          projects.data &&
          `${count(projects.data.length, "project")} in ${count(departments.data?.length ?? 0, "department")}`
        }
      >
        <Button variant="default" leftSection={<IconPlus size={14} />} onClick={() => setNew(true)}>
          New
        </Button>
      </PageHead>
      {error && (
        <Fault
          error={error}
          what="list projects"
          onRetry={() => void Promise.all([departments.refetch(), projects.refetch()])}
        />
      )}
      <Group mb="sm" gap="sm">
        <Filter label="name" />
        {pools.length > 1 && (
          <Select
            aria-label="pool"
            data={pools}
            value={pool}
            onChange={(value) => change({ pool: value ?? "" })}
            w={140}
            allowDeselect={false}
          />
        )}
        <Legend />
      </Group>
      {(departments.isPending || projects.isPending) && <Loader aria-label="loading" />}
      <div className={css.sides} data-open={chosen !== undefined || undefined}>
        <Tree
          rows={rows}
          chosen={chosen?.id}
          onChoose={(row) => change({ queue: row.id === chosen?.id ? "" : row.id }, true)}
        />
        {chosen && (
          <QueuePanel key={chosen.id + pool} row={chosen} max={largest(rows)} onClose={() => change({ queue: "" })} />
        )}
      </div>
      {isNew && (
        <NewQueue departments={(departments.data ?? []).map((one) => one.name)} onClose={() => setNew(false)} />
      )}
    </>
  );
}

function Legend() {
  return (
    <span className="quiet">
      GPU: bar held, <span className={css.quotaKey} /> quota, <span className={css.fairKey} /> fair share,{" "}
      <span className={css.limitKey} /> limit
    </span>
  );
}

interface TreeProps {
  rows: readonly Row[];
  chosen: string | undefined;
  onChoose: (row: Row) => void;
}

function Tree({ rows, chosen, onChoose }: TreeProps) {
  const scroller = useRef<HTMLDivElement>(null);
  const max = largest(rows);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW,
    overscan: 12,
  });
  if (rows.length === 0) return <Empty title="No project is called that." />;
  return (
    <div
      ref={scroller}
      className={css.scroller}
      role="table"
      aria-label="queues"
      aria-rowcount={rows.length + 1}
      tabIndex={0}
      data-keys="table"
    >
      <div role="rowgroup">
        <div role="row" className={css.head}>
          {[
            "Name",
            "Held of what is due",
            "Held, GPU",
            "Fair share, GPU",
            "Quota, GPU",
            "Limit, GPU",
            "Running",
            "Waiting",
          ].map((text, index) => (
            <div key={text} role="columnheader" className={index > 1 ? "number" : undefined}>
              {text}
            </div>
          ))}
        </div>
      </div>
      <div role="rowgroup" style={{ height: virtual.getTotalSize(), position: "relative" }}>
        {virtual.getVirtualItems().map((item) => {
          const row = rows[item.index];
          return (
            row && (
              <Line
                key={row.id}
                row={row}
                top={item.start}
                max={max}
                isChosen={row.id === chosen}
                onChoose={onChoose}
              />
            )
          );
        })}
      </div>
    </div>
  );
}

interface LineProps {
  row: Row;
  top: number;
  max: number;
  isChosen: boolean;
  onChoose: (row: Row) => void;
}

function Line({ row, top, max, isChosen, onChoose }: LineProps) {
  const { standing, project } = row;
  const show = (amount: number | null) => (amount === null ? "–" : number(amount));
  return (
    <div
      role="row"
      className={css.line}
      data-chosen={isChosen || undefined}
      data-department={project === null || undefined}
      style={{ transform: `translateY(${top}px)` }}
      onClick={() => onChoose(row)}
    >
      <div role="cell" className={css.name}>
        <button type="button" aria-expanded={isChosen}>
          {row.name}
        </button>
      </div>
      <div role="cell">
        <StandingBar standing={standing} max={max} name={project?.department ?? row.name} />
      </div>
      <div role="cell" className="number">
        {number(standing.held)}
      </div>
      <div role="cell" className="number">
        {number(standing.fairShare)}
      </div>
      <div role="cell" className="number">
        {standing.quota === null ? "no bound" : number(standing.quota)}
      </div>
      <div role="cell" className="number">
        {show(standing.limit)}
      </div>
      <div role="cell" className="number">
        {project ? number(project.running) : ""}
      </div>
      <div role="cell" className="number">
        {project ? number(project.waiting) : ""}
      </div>
    </div>
  );
}

export function StandingBar({ standing, max, name }: { standing: Standing; max: number; name: string }) {
  const { held, quota, fairShare, limit } = standing;
  const marks = [
    { at: fairShare, kind: "fair" as const, label: "fair share" },
    ...(quota === null ? [] : [{ at: quota, kind: "quota" as const, label: "quota" }]),
    ...(limit === null || limit > max ? [] : [{ at: limit, kind: "limit" as const, label: "limit" }]),
  ];
  const label = `holds ${number(held)} GPU; fair share ${number(fairShare)}, quota ${quota === null ? "without bound" : number(quota)}${limit === null ? "" : `, limit ${number(limit)}`}`;
  return <Bar value={held} max={max} colour={colour(name)} marks={marks} label={label} />;
}
