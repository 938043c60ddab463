// Are the GPUs working, who waits for what, what is broken?
import { Loader, SegmentedControl, Table } from "@mantine/core";
import { IconAlertTriangle, IconCircleCheck, IconX } from "@tabler/icons-react";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useMemo } from "react";
import {
  countWorkloads,
  type Finding,
  getOverview,
  getSeries,
  type IdleHolding,
  type Overview as Shape,
  type WaitingGroup,
} from "@/api";
import { now } from "@/live/clock";
import { Bar } from "@/parts/Bar";
import { Chart } from "@/parts/Chart";
import { colour, colourNames } from "@/parts/colours";
import { Empty } from "@/parts/Empty";
import { Fault } from "@/parts/Faults";
import { duration, gpus, number, percent, words } from "@/parts/format";
import { PageHead } from "@/parts/PageHead";
import { useQueryState } from "@/parts/url";
import { When } from "@/parts/When";
import css from "./Overview.module.css";

export function Overview() {
  // Asked again though nothing changed: how long ago the scheduler decided is a fact of its own.
  const overview = useQuery({
    queryKey: ["overview"],
    queryFn: async () => (await getOverview()).data,
    refetchInterval: 5_000,
  });
  const state = overview.data;
  useMemo(() => colourNames(state?.departments.map((one) => one.name) ?? []), [state?.departments]);
  if (overview.error && !state)
    return <Fault error={overview.error} what="read the overview" onRetry={() => void overview.refetch()} />;
  if (!state) return <Loader aria-label="loading" />;
  const isQuiet = Object.keys(state.phases).length === 0;
  return (
    <>
      <PageHead title="Overview" about={state.devices.description} />
      {state.notice && (
        <p className={css.notice} role="alert">
          <IconAlertTriangle size={16} aria-hidden /> {state.notice}
        </p>
      )}
      <Health findings={state.health} lastCycle={state.lastCycle} />
      <Totals state={state} />
      {isQuiet && <Quiet />}
      <History isMeasured={state.devices.measured > 0} />
      <div className={css.sides}>
        <Waiting groups={state.waiting} />
        <Idle items={state.idle} isMeasured={state.devices.measured > 0} />
        <Departments state={state} />
      </div>
    </>
  );
}

/** Nothing runs or waits: whoever has submitted nothing yet is told how. */
function Quiet() {
  const all = useQuery({ queryKey: ["counts", "all"], queryFn: async () => (await countWorkloads()).data.total });
  if (all.data !== 0) return null;
  return (
    <Empty title="Nothing was submitted yet." command="aliquot run --gpu 0.5 -- nvidia-smi">
      <Link to="/submit">Submit the first from here</Link>
    </Empty>
  );
}

const ICONS = { good: IconCircleCheck, warning: IconAlertTriangle, bad: IconX } as const;

function Health({ findings, lastCycle }: { findings: readonly Finding[]; lastCycle: Shape["lastCycle"] }) {
  return (
    <ul className={css.health} aria-label="health">
      {findings.map(({ name, status, message }) => {
        const Icon = ICONS[status];
        return (
          <li key={name} data-status={status} title={message}>
            <Icon size={14} aria-hidden /> {name}: {status === "good" ? "good" : message}
          </li>
        );
      })}
      {lastCycle && (
        <li className="quiet">
          <span>
            last decided <When time={lastCycle.at} />, in {number(Math.round(lastCycle.seconds * 1000))} ms
          </span>
        </li>
      )}
    </ul>
  );
}

function Totals({ state }: { state: Shape }) {
  const { devices, nodes, phases } = state;
  const of = (...names: string[]) => names.reduce((sum, name) => sum + (phases[name] ?? 0), 0);
  const share = devices.count > 0 ? devices.heldMilliGpus / (1000 * devices.count) : 0;
  const facts: [string, string, string?][] = [
    ["GPUs held", `${gpus(devices.heldMilliGpus)} of ${number(devices.count)}`, percent(share)],
    [
      "in use",
      devices.usedMilliGpus === null
        ? "not measured"
        : `${gpus(devices.usedMilliGpus)} of ${number(devices.measured)} measured`,
    ],
    ["wholly free", number(devices.free)],
    ["withheld", number(devices.withheld)],
    [
      "nodes",
      number(nodes.count),
      nodes.notReady + nodes.cordoned > 0 ? `${nodes.notReady} not ready, ${nodes.cordoned} cordoned` : undefined,
    ],
    ["running", number(of("running", "starting"))],
    ["waiting", number(of("pending"))],
    ["suspended", number(of("suspended"))],
  ];
  return (
    <dl className={css.totals}>
      {facts.map(([name, value, more]) => (
        <div key={name}>
          <dd>
            {value} {more && <small className="quiet">{more}</small>}
          </dd>
          <dt>{name}</dt>
        </div>
      ))}
    </dl>
  );
}

const RANGES = { "1h": 3_600, "6h": 21_600, "24h": 86_400, "7d": 604_800, "30d": 2_592_000 } as const;
type Range = keyof typeof RANGES;

function History({ isMeasured }: { isMeasured: boolean }) {
  const [query, change] = useQueryState();
  const range = (query.range ?? "1h") as Range;
  const seconds = RANGES[range] ?? RANGES["1h"];
  const ask = async (metric: "allocated" | "used" | "waitingGpus", by: "department" | "none") => {
    const to = now();
    const from = new Date(to - seconds * 1000).toISOString();
    return (await getSeries({ query: { metric, by, from, to: new Date(to).toISOString(), points: 240 } })).data;
  };
  const common = { placeholderData: keepPreviousData, refetchInterval: 10_000 };
  const allocated = useQuery({
    queryKey: ["series", "allocated", range],
    queryFn: () => ask("allocated", "department"),
    ...common,
  });
  const waiting = useQuery({
    queryKey: ["series", "waiting", range],
    queryFn: () => ask("waitingGpus", "none"),
    ...common,
  });
  const used = useQuery({
    queryKey: ["series", "used", range],
    queryFn: () => ask("used", "none"),
    enabled: isMeasured,
    ...common,
  });
  const lines = useMemo(
    () => (allocated.data?.lines ?? []).map((one) => ({ ...one, colour: colour(one.name) })),
    [allocated.data],
  );
  const ceiling = useMemo(() => ({ name: "capacity", values: allocated.data?.capacity ?? [] }), [allocated.data]);
  const other = isMeasured ? used.data : waiting.data;
  if (allocated.error)
    return <Fault error={allocated.error} what="read the history" onRetry={() => void allocated.refetch()} />;
  return (
    <section className={css.history} aria-label="history">
      <SegmentedControl
        data={Object.keys(RANGES)}
        value={range}
        onChange={(value) => change({ range: value })}
        aria-label="time range"
        mb="sm"
      />
      <div className={css.charts}>
        <Chart
          title="Allocated, by department"
          unit="GPU"
          group="overview"
          times={allocated.data?.times ?? []}
          lines={lines}
          ceiling={ceiling}
          isLoading={allocated.isPending}
        />
        <Chart
          title={isMeasured ? "In use" : "Waiting for"}
          unit="GPU"
          group="overview"
          times={other?.times ?? []}
          kind={isMeasured ? "area" : "line"}
          lines={other?.lines ?? []}
          isLoading={waiting.isPending}
        />
      </div>
    </section>
  );
}

function Waiting({ groups }: { groups: readonly WaitingGroup[] }) {
  const most = Math.max(1, ...groups.map((one) => one.milliGpus));
  return (
    <section aria-label="waiting, by reason">
      <h2>Waiting, by reason</h2>
      {groups.length === 0 && <p className="quiet">Nothing waits.</p>}
      {groups.length > 0 && (
        <Table verticalSpacing={4}>
          <Table.Thead>
            <Table.Tr>
              <Table.Th>Reason</Table.Th>
              <Table.Th>Asked for</Table.Th>
              <Table.Th className="number">GPU</Table.Th>
              <Table.Th className="number">Workloads</Table.Th>
              <Table.Th className="number">Longest</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {groups.map((one) => (
              <Table.Tr key={one.code}>
                <Table.Td>
                  <Link
                    to="/workloads/$ref"
                    params={{ ref: one.example.id }}
                    title={`${one.example.name}: ${one.example.message}`}
                  >
                    {words(one.code)}
                  </Link>
                </Table.Td>
                <Table.Td w="30%">
                  <Bar value={one.milliGpus} max={most} colour="var(--warning)" label={`${gpus(one.milliGpus)} GPU`} />
                </Table.Td>
                <Table.Td className="number">{gpus(one.milliGpus)}</Table.Td>
                <Table.Td className="number">{number(one.workloads)}</Table.Td>
                <Table.Td className="number">
                  <When time={one.oldest} suffix="" />
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      )}
      {groups.length > 0 && <Link to="/queue">The whole queue</Link>}
    </section>
  );
}

function Idle({ items, isMeasured }: { items: readonly IdleHolding[]; isMeasured: boolean }) {
  return (
    <section aria-label="held and idle">
      <h2>Held and idle</h2>
      {!isMeasured && <p className="quiet">The use of these devices is not measured.</p>}
      {isMeasured && items.length === 0 && <p className="quiet">Whatever is held is used.</p>}
      <ul className={css.list}>
        {items.map((one) => (
          <li key={one.workload + one.device}>
            <Link to="/workloads/$ref" params={{ ref: one.workload }}>
              {one.workloadName}
            </Link>{" "}
            of {one.project} holds {gpus(one.milliGpus)} of {one.device} and uses {one.utilisationPercent} % since{" "}
            {duration((now() - Date.parse(one.since)) / 1000)}
          </li>
        ))}
      </ul>
    </section>
  );
}

function Departments({ state }: { state: Shape }) {
  const most = Math.max(
    1000,
    ...state.departments.flatMap((one) => [one.heldMilliGpus, one.quotaMilliGpus ?? 0, one.fairShareMilliGpus]),
  );
  return (
    <section aria-label="departments">
      <h2>Departments</h2>
      <Table verticalSpacing={4}>
        <Table.Tbody>
          {[...state.departments]
            .sort((a, b) => b.heldMilliGpus - a.heldMilliGpus)
            .slice(0, 20)
            .map((one) => {
              const marks = [
                { at: one.fairShareMilliGpus, label: "fair share", kind: "fair" as const },
                ...(one.quotaMilliGpus === null
                  ? []
                  : [{ at: one.quotaMilliGpus, label: "quota", kind: "quota" as const }]),
              ];
              const label = `${one.name} holds ${gpus(one.heldMilliGpus)} GPU; fair share ${gpus(one.fairShareMilliGpus)}, quota ${one.quotaMilliGpus === null ? "without bound" : gpus(one.quotaMilliGpus)}`;
              return (
                <Table.Tr key={one.name}>
                  <Table.Td>
                    <Link to="/projects" search={{ queue: one.name } as never}>
                      {one.name}
                    </Link>
                  </Table.Td>
                  <Table.Td w="45%">
                    <Bar value={one.heldMilliGpus} max={most} colour={colour(one.name)} marks={marks} label={label} />
                  </Table.Td>
                  <Table.Td className="number">{gpus(one.heldMilliGpus)} GPU</Table.Td>
                  <Table.Td className="number quiet">{number(one.waiting)} waiting</Table.Td>
                </Table.Tr>
              );
            })}
        </Table.Tbody>
      </Table>
    </section>
  );
}
