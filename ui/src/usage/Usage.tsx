// What did it cost, who wasted what?
import { SegmentedControl } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { getUsageSeries } from "@/api";
import { now } from "@/live/clock";
import { Chart } from "@/parts/Chart";
import { colour, colourNames } from "@/parts/colours";
import { type Column, DataTable } from "@/parts/DataTable";
import { Empty } from "@/parts/Empty";
import { Fault } from "@/parts/Faults";
import { number, percent } from "@/parts/format";
import { PageHead } from "@/parts/PageHead";
import { useQueryState } from "@/parts/url";

const RANGES = { "24h": 86_400, "7d": 604_800, "30d": 2_592_000, "90d": 7_776_000 } as const;
type Range = keyof typeof RANGES;
const MOST_LINES = 12;

interface Row {
  id: string;
  allocated: number;
  /** Null: not measured. */
  used: number | null;
}

function sum(values: readonly (number | null)[]): number | null {
  const known = values.filter((value) => value !== null);
  return known.length === 0 ? null : known.reduce((total, value) => total + value, 0);
}

const measured = (value: number | null) =>
  value === null ? <span className="quiet">not measured</span> : number(value);

const COLUMNS: readonly Column<Row>[] = [
  { id: "name", header: "Name", width: 240, value: (row) => row.id },
  {
    id: "allocated",
    header: "Allocated",
    unit: "GPU h",
    width: 140,
    isNumber: true,
    value: (row) => row.allocated,
    cell: (row) => number(row.allocated),
  },
  {
    id: "used",
    header: "Used",
    unit: "GPU h",
    width: 140,
    isNumber: true,
    value: (row) => row.used,
    cell: (row) => measured(row.used),
  },
  {
    id: "idle",
    header: "Idle",
    unit: "GPU h",
    width: 140,
    isNumber: true,
    value: (row) => (row.used === null ? null : row.allocated - row.used),
    cell: (row) => measured(row.used === null ? null : row.allocated - row.used),
  },
  {
    id: "share",
    header: "Idle share",
    width: 110,
    isNumber: true,
    value: (row) => (row.used === null || row.allocated === 0 ? null : 1 - row.used / row.allocated),
    cell: (row) => (row.used === null || row.allocated === 0 ? "–" : percent(1 - row.used / row.allocated)),
  },
];

export function Usage() {
  const [query, change] = useQueryState();
  const by = query.by === "project" ? "project" : "department";
  const range = (query.range ?? "7d") as Range;
  const seconds = RANGES[range] ?? RANGES["7d"];
  const step = seconds <= RANGES["24h"] ? "hour" : "day";
  const usage = useQuery({
    queryKey: ["usage", by, range],
    queryFn: async () => {
      const to = now();
      const from = new Date(to - seconds * 1000).toISOString();
      return (await getUsageSeries({ query: { by, from, to: new Date(to).toISOString(), step } })).data;
    },
  });
  const lines = useMemo(() => {
    const all = usage.data?.lines ?? [];
    return [...all].sort((a, b) => (sum(b.allocatedGpuHours) ?? 0) - (sum(a.allocatedGpuHours) ?? 0));
  }, [usage.data]);
  const rows = useMemo(
    () =>
      lines.map((one) => ({ id: one.name, allocated: sum(one.allocatedGpuHours) ?? 0, used: sum(one.usedGpuHours) })),
    [lines],
  );
  useMemo(() => colourNames(lines.map((one) => one.name)), [lines]);
  const shown = lines
    .slice(0, MOST_LINES)
    .map((one) => ({ name: one.name, values: one.allocatedGpuHours, colour: colour(one.name) }));
  return (
    <>
      <PageHead title="Usage" about="GPU hours that were allocated, and of these what was used where it is measured">
        <SegmentedControl
          aria-label="by"
          data={["department", "project"]}
          value={by}
          onChange={(value) => change({ by: value })}
        />
        <SegmentedControl
          aria-label="time range"
          data={Object.keys(RANGES)}
          value={range}
          onChange={(value) => change({ range: value })}
        />
      </PageHead>
      {usage.error && <Fault error={usage.error} what="read the usage" onRetry={() => void usage.refetch()} />}
      <div style={{ marginBottom: 16, flex: "none" }}>
        <Chart
          title={`Allocated by ${by}${lines.length > MOST_LINES ? `, the ${MOST_LINES} largest` : ""}`}
          unit="GPU h"
          kind="bar"
          times={usage.data?.times ?? []}
          lines={shown}
          isLoading={usage.isPending}
        />
      </div>
      <DataTable
        name={`usage by ${by}`}
        columns={COLUMNS}
        rows={rows}
        isLoading={usage.isPending}
        empty={<Empty title="No GPU time was used in these days." />}
      />
    </>
  );
}
