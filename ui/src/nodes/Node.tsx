// What does this node have, who is on it, and what would be lost by draining it?
import { Button, Loader } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useParams } from "@tanstack/react-router";
import { useState } from "react";
import { cordon, type DeviceView, getNode, listDevices, type NodeView, uncordon } from "@/api";
import { DeviceTable } from "@/devices/DeviceTable";
import { Confirm } from "@/parts/Confirm";
import { Copy } from "@/parts/Copy";
import { Facts } from "@/parts/Facts";
import { Fault } from "@/parts/Faults";
import { count, gpus } from "@/parts/format";
import { tellDone, tellFailed } from "@/parts/notify";
import { PageHead } from "@/parts/PageHead";
import { NodeState } from "./state";

export function Node() {
  const { ref } = useParams({ strict: false }) as { ref: string };
  const node = useQuery({ queryKey: ["nodes", ref], queryFn: async () => (await getNode({ path: { ref } })).data });
  const devices = useQuery({
    queryKey: ["devices", ref],
    queryFn: async () => (await listDevices({ query: { node: ref, limit: 1000 } })).data.items,
  });
  if (node.error) return <Fault error={node.error} what={`show ${ref}`} onRetry={() => void node.refetch()} />;
  if (!node.data) return <Loader aria-label="loading" />;
  return (
    <>
      <PageHead
        title={
          <>
            {node.data.id} <Copy value={node.data.id} label="copy the name" />
          </>
        }
        about={<NodeState node={node.data} />}
      >
        <Cordon node={node.data} devices={devices.data ?? []} />
      </PageHead>
      <Facts
        items={[
          ["Pool", node.data.pool],
          ["Devices", `${node.data.freeDevices} of ${node.data.devices} wholly free`],
          ["CPU", `${node.data.heldCpus} of ${node.data.cpus} held`],
          ["Memory", `${node.data.heldMemory} of ${node.data.memory} held`],
          ["Pods", node.data.pods],
          ["Lost by draining", lost(devices.data ?? [])],
        ]}
      />
      <h2 style={{ fontSize: 15, margin: "16px 0 4px" }}>Devices</h2>
      {devices.error && <Fault error={devices.error} what="list its devices" onRetry={() => void devices.refetch()} />}
      <DeviceTable devices={devices.data ?? []} />
    </>
  );
}

function lost(devices: readonly DeviceView[]): string {
  const holders = devices.flatMap((one) => one.holders);
  if (holders.length === 0) return "nothing: no device is held";
  const workloads = new Set(holders.map((one) => one.workload)).size;
  const milli = holders.reduce((sum, one) => sum + one.milliGpus, 0);
  return `${count(workloads, "workload")} on ${gpus(milli)} GPU would end and wait for another place`;
}

function Cordon({ node, devices }: { node: NodeView; devices: readonly DeviceView[] }) {
  const [isAsked, setAsked] = useState(false);
  const queries = useQueryClient();
  const change = useMutation({
    mutationFn: async () => {
      const path = { target: node.id };
      if (node.isCordoned) await uncordon({ path });
      else await cordon({ path });
    },
    onSuccess: () => {
      tellDone(node.isCordoned ? `${node.id} takes work again` : `${node.id} takes nothing new`);
      void queries.invalidateQueries({ queryKey: ["nodes"] });
      void queries.invalidateQueries({ queryKey: ["devices"] });
    },
    onError: (error) => tellFailed(node.isCordoned ? "uncordon" : "cordon", error),
    onSettled: () => setAsked(false),
  });
  const running = new Set(devices.flatMap((one) => one.holders.map((holder) => holder.workload))).size;
  return (
    <>
      <Button component={Link} to={"/devices" as never} search={{ q: node.id } as never} variant="default">
        On the map
      </Button>
      <Button
        variant="default"
        loading={change.isPending}
        onClick={() => (node.isCordoned ? change.mutate() : setAsked(true))}
      >
        {node.isCordoned ? "Uncordon" : "Cordon"}
      </Button>
      <Confirm
        isOpen={isAsked}
        title={`Cordon ${node.id}?`}
        action="Cordon"
        isBusy={change.isPending}
        onConfirm={() => change.mutate()}
        onClose={() => setAsked(false)}
      >
        Nothing new starts on it. {running > 0 ? `${count(running, "workload")} on it run on.` : "Nothing runs on it."}
      </Confirm>
    </>
  );
}
