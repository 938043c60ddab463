// The pods of a workload: where each attempt ran, on which shares, and how it ended.
import { Table } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import type { PodView, WorkloadDetail } from "@/api";
import { gib, gpus, words } from "@/parts/format";
import { When } from "@/parts/When";

const SHOWN = 50;

function sharesOf(pod: PodView): string {
  return pod.shares.map((one) => `${gpus(one.milliGpus)} × ${one.model} #${one.index}, ${gib(one.mib)}`).join("; ");
}

function exitOf(pod: PodView): string {
  if (pod.exitKind === null) return "";
  const how =
    pod.exitSignal !== null ? `signal ${pod.exitSignal}` : pod.exitCode !== null ? `exit code ${pod.exitCode}` : "";
  return [words(pod.exitKind), how, pod.exitMessage].filter(Boolean).join(", ");
}

export function PodTable({ item }: { item: WorkloadDetail }) {
  if (item.pods.length === 0) return null;
  const newest = [...item.pods].reverse().slice(0, SHOWN);
  return (
    <div style={{ overflowX: "auto", flex: "none", maxHeight: 180 }}>
      <Table verticalSpacing={4} stickyHeader>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Attempt</Table.Th>
            <Table.Th>Pod</Table.Th>
            <Table.Th>Phase</Table.Th>
            <Table.Th>Node</Table.Th>
            <Table.Th>Holds</Table.Th>
            <Table.Th>Enforced by</Table.Th>
            <Table.Th>Started</Table.Th>
            <Table.Th>Ended</Table.Th>
            <Table.Th>How</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {newest.map((pod) => (
            <Table.Tr key={pod.id}>
              <Table.Td>{pod.attempt}</Table.Td>
              <Table.Td>
                {pod.index}
                {pod.pid !== null && <span className="quiet"> pid {pod.pid}</span>}
              </Table.Td>
              <Table.Td>{pod.phase}</Table.Td>
              <Table.Td>
                <Link to="/nodes/$ref" params={{ ref: pod.node }}>
                  {pod.node}
                </Link>
              </Table.Td>
              <Table.Td>{sharesOf(pod) || "no device"}</Table.Td>
              <Table.Td>{pod.shares[0]?.guarantee ?? "–"}</Table.Td>
              <Table.Td>
                <When time={pod.started} />
              </Table.Td>
              <Table.Td>
                <When time={pod.ended} />
              </Table.Td>
              <Table.Td>{exitOf(pod)}</Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
      {item.pods.length > SHOWN && (
        <p className="quiet">
          The newest {SHOWN} of {item.pods.length} pods.
        </p>
      )}
    </div>
  );
}
