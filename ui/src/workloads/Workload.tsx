// What happened, what is happening, what can I do?
import { Anchor, Badge, Button, Group, Loader, Tabs } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate, useParams } from "@tanstack/react-router";
import { lazy, Suspense, useState } from "react";
import { getWorkload, type WorkloadDetail } from "@/api";
import { Confirm } from "@/parts/Confirm";
import { Copy } from "@/parts/Copy";
import { Facts } from "@/parts/Facts";
import { Fault } from "@/parts/Faults";
import { count, duration } from "@/parts/format";
import { tellDone, tellFailed } from "@/parts/notify";
import { PageHead } from "@/parts/PageHead";
import { useQueryState } from "@/parts/url";
import { When } from "@/parts/When";
import { ACTIONS, type Action, consequence } from "./actions";
import { gpuText } from "./columns";
import { Events } from "./Events";
import { Lane } from "./Lane";
import { PodTable } from "./PodTable";
import { PhaseBadge, remark } from "./State";
import { WhyItWaits } from "./WhyItWaits";

const Logs = lazy(() => import("./Logs"));
const Definition = lazy(() => import("./Definition"));
const Consumption = lazy(() => import("./Consumption"));

export function Workload() {
  const { ref } = useParams({ strict: false }) as { ref: string };
  const [query] = useQueryState();
  const found = useQuery({
    queryKey: ["workload", ref, query.project],
    queryFn: async () => (await getWorkload({ path: { ref }, query: { project: query.project } })).data,
    staleTime: 0,
  });
  if (found.error) return <Fault error={found.error} what={`show ${ref}`} onRetry={() => void found.refetch()} />;
  if (found.data === undefined) return <Loader aria-label="loading" />;
  return <Shown item={found.data} key={found.data.id} />;
}

function Shown({ item }: { item: WorkloadDetail }) {
  const [query, change] = useQueryState();
  const tab = query.tab ?? "logs";
  const text = remark(item);
  return (
    <>
      <PageHead
        title={
          <Group gap="sm" wrap="nowrap">
            <span style={{ overflowWrap: "anywhere", unicodeBidi: "isolate" }}>{item.name}</span>
            <Copy value={item.id} label="copy the id" />
            <PhaseBadge phase={item.phase} />
            {item.isSimulated && (
              <Badge variant="outline" color="gray" tt="none">
                simulated
              </Badge>
            )}
          </Group>
        }
        about={
          <>
            {item.kind} of{" "}
            <Link to="/projects" search={{ queue: item.project } as never}>
              {item.project}
            </Link>
            {text && item.phase !== "pending" && <>, {text}</>}
          </>
        }
      >
        <Actions item={item} />
      </PageHead>
      {item.phase === "pending" && <WhyItWaits item={item} />}
      <Facts items={facts(item)} />
      <Lane item={item} />
      <PodTable item={item} />
      <Tabs
        value={tab}
        onChange={(value) => change({ tab: value ?? "logs" })}
        keepMounted={false}
        mt="md"
        style={{ flex: "1 0 420px", display: "flex", flexDirection: "column", minHeight: 0 }}
      >
        <Tabs.List>
          <Tabs.Tab value="logs">Logs</Tabs.Tab>
          <Tabs.Tab value="events">Events</Tabs.Tab>
          <Tabs.Tab value="usage">Usage</Tabs.Tab>
          <Tabs.Tab value="definition">Definition</Tabs.Tab>
        </Tabs.List>
        <Suspense fallback={<Loader aria-label="loading" mt="md" />}>
          <Tabs.Panel value="logs" pt="sm" style={{ flex: 1, minHeight: 0 }}>
            <Logs item={item} />
          </Tabs.Panel>
          <Tabs.Panel value="events" pt="sm">
            <Events item={item} />
          </Tabs.Panel>
          <Tabs.Panel value="usage" pt="sm">
            <Consumption item={item} />
          </Tabs.Panel>
          <Tabs.Panel value="definition" pt="sm">
            <Definition item={item} />
          </Tabs.Panel>
        </Suspense>
      </Tabs>
    </>
  );
}

function facts(item: WorkloadDetail) {
  return [
    ["GPU", gpuText(item)],
    ["CPU, memory", `${item.cpu ?? "–"}, ${item.memory ?? "–"}`],
    ["Holds", item.devices.join(", ") || "nothing"],
    ["Share enforced by", item.guarantee ?? "–"],
    ["Priority", `${item.priority}, ${item.preemptible ? "preemptible" : "not preemptible"}`],
    ["Submitted", <When key="submitted" time={item.created} />],
    ["Ran", `${duration(item.ranSeconds)} in ${count(item.attempt, "attempt")}, ${count(item.evictions, "eviction")}`],
    [
      "Reached at",
      item.url ? (
        <Anchor key="url" href={item.url} target="_blank" rel="noreferrer" size="sm">
          {item.url}
        </Anchor>
      ) : (
        "–"
      ),
    ],
  ] as const;
}

function Actions({ item }: { item: WorkloadDetail }) {
  const [asked, setAsked] = useState<Action | null>(null);
  const [busy, setBusy] = useState<string | null>(null);
  const queries = useQueryClient();
  const navigate = useNavigate();

  async function run(action: Action): Promise<void> {
    setAsked(null);
    setBusy(action.name);
    try {
      await action.run(item.id);
      tellDone(`${action.label}: ${item.name}`);
      if (action.name === "delete") void navigate({ to: "/workloads" });
    } catch (error) {
      tellFailed(`${action.label.toLowerCase()} ${item.name}`, error);
    }
    setBusy(null);
    void queries.invalidateQueries({ queryKey: ["workload"] });
  }

  return (
    <>
      {ACTIONS.filter((action) => action.can(item)).map((action) => (
        <Button
          key={action.name}
          variant="default"
          loading={busy === action.name}
          disabled={busy !== null}
          onClick={() => (action.isFinal ? setAsked(action) : void run(action))}
        >
          {action.label}
        </Button>
      ))}
      <Button variant="default" component={Link} to={"/submit" as never} search={{ from: item.id } as never}>
        Submit again
      </Button>
      {asked && (
        <Confirm
          isOpen
          title={`${asked.label} ${item.name}?`}
          action={asked.label}
          onConfirm={() => void run(asked)}
          onClose={() => setAsked(null)}
        >
          {consequence(asked, [item])}
        </Confirm>
      )}
    </>
  );
}
