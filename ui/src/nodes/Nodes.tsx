// What is down, drained, behind?
import { useInfiniteQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useEffect, useMemo } from "react";
import { listNodes, type NodeView } from "@/api";
import { type Column, DataTable } from "@/parts/DataTable";
import { Empty } from "@/parts/Empty";
import { Fault } from "@/parts/Faults";
import { Filter } from "@/parts/Filter";
import { count, number } from "@/parts/format";
import { PageHead } from "@/parts/PageHead";
import { useQueryState } from "@/parts/url";
import { NodeState, stateWord } from "./state";

const COLUMNS: readonly Column<NodeView>[] = [
  {
    id: "id",
    header: "Node",
    width: 220,
    sort: "id",
    value: (node) => node.id,
    cell: (node) => (
      <Link to="/nodes/$ref" params={{ ref: node.id }}>
        {node.id}
      </Link>
    ),
  },
  { id: "state", header: "State", width: 110, value: stateWord, cell: (node) => <NodeState node={node} /> },
  { id: "pool", header: "Pool", width: 110, value: (node) => node.pool },
  { id: "devices", header: "Devices", width: 84, isNumber: true, value: (node) => node.devices },
  { id: "free", header: "Wholly free", width: 96, isNumber: true, value: (node) => node.freeDevices },
  { id: "pods", header: "Pods", width: 70, isNumber: true, value: (node) => node.pods },
  { id: "cpu", header: "CPU held of", width: 130, isNumber: true, value: (node) => `${node.heldCpus} of ${node.cpus}` },
  {
    id: "memory",
    header: "Memory held of",
    width: 150,
    isNumber: true,
    value: (node) => `${node.heldMemory} of ${node.memory}`,
  },
  { id: "simulated", header: "Simulated", width: 90, value: (node) => (node.isSimulated ? "simulated" : "real") },
];

export function Nodes() {
  const [query] = useQueryState();
  const navigate = useNavigate();
  const list = useInfiniteQuery({
    queryKey: ["nodes"],
    queryFn: async ({ pageParam }) => (await listNodes({ query: { limit: 1000, cursor: pageParam } })).data,
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last) => last.next ?? undefined,
  });
  const { hasNextPage, isFetching, fetchNextPage } = list;
  // The order is of all nodes, so all are fetched; the first are shown meanwhile.
  useEffect(() => {
    if (hasNextPage && !isFetching) void fetchNextPage();
  }, [hasNextPage, isFetching, fetchNextPage]);
  const all = useMemo(() => list.data?.pages.flatMap((page) => page.items) ?? [], [list.data]);
  const rows = useMemo(() => {
    const text = query.q ?? "";
    return text
      ? all.filter((node) => node.id.includes(text) || node.pool.includes(text) || stateWord(node).includes(text))
      : all;
  }, [all, query.q]);
  const away = all.filter((node) => stateWord(node) !== "ready").length;
  const total = list.data?.pages.at(-1)?.total ?? 0;
  return (
    <>
      <PageHead
        title="Nodes"
        about={
          list.data && `${count(total, "node")}, ${away === 0 ? "all ready" : `${number(away)} not ready or cordoned`}`
        }
      />
      {list.error && <Fault error={list.error} what="list the nodes" onRetry={() => void list.refetch()} />}
      <DataTable
        name="nodes"
        columns={COLUMNS}
        rows={rows}
        isLoading={list.isPending}
        tools={<Filter label="name, pool or state" />}
        onOpen={(node) => void navigate({ to: "/nodes/$ref", params: { ref: node.id } })}
        empty={<Empty title="No node is like that." />}
      />
    </>
  );
}
