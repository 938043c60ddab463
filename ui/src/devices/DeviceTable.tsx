// Devices as a table: what each holds, for whom, how shares are enforced. The text of the map.
import { Button, Table } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { cordon, type DeviceView, uncordon } from "@/api";
import { Bar } from "@/parts/Bar";
import { gib, gpus } from "@/parts/format";
import { tellDone, tellFailed } from "@/parts/notify";

export function useText(device: DeviceView): string {
  const percent = device.use?.utilisationPercent;
  return percent === null || percent === undefined ? "not measured" : `${percent} %`;
}

export function DeviceTable({ devices }: { devices: readonly DeviceView[] }) {
  if (devices.length === 0) return <p className="quiet">No device.</p>;
  return (
    <div style={{ overflowX: "auto" }}>
      <Table verticalSpacing={4}>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Device</Table.Th>
            <Table.Th>Model</Table.Th>
            <Table.Th className="number">Memory</Table.Th>
            <Table.Th>Held</Table.Th>
            <Table.Th className="number">Use</Table.Th>
            <Table.Th>Enforced by</Table.Th>
            <Table.Th>Held by</Table.Th>
            <Table.Th>Take work</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {devices.map((device) => (
            <Line key={device.id} device={device} />
          ))}
        </Table.Tbody>
      </Table>
    </div>
  );
}

function Line({ device }: { device: DeviceView }) {
  return (
    <Table.Tr>
      <Table.Td>
        {device.node}/{device.index}
      </Table.Td>
      <Table.Td>
        {device.model}
        {device.isSimulated && <span className="quiet"> simulated</span>}
      </Table.Td>
      <Table.Td className="number">{gib(device.memoryMib)}</Table.Td>
      <Table.Td style={{ minWidth: 110 }}>
        <Bar
          value={device.heldMilliGpus}
          max={1000}
          label={`${gpus(device.heldMilliGpus)} held, ${gib(device.heldMib)}`}
        />
      </Table.Td>
      <Table.Td className="number">{useText(device)}</Table.Td>
      <Table.Td title={device.guaranteeDescription}>{device.guarantee}</Table.Td>
      <Table.Td>
        {device.withheld ? (
          <span style={{ color: "var(--bad)" }}>{device.withheldDescription ?? device.withheld}</span>
        ) : device.holders.length === 0 ? (
          <span className="quiet">free</span>
        ) : (
          device.holders.map((one, index) => (
            <span key={one.pod}>
              {index > 0 && ", "}
              <Link to="/workloads/$ref" params={{ ref: one.workload }}>
                {one.workloadName}
              </Link>{" "}
              <span className="quiet">{gpus(one.milliGpus)}</span>
            </span>
          ))
        )}
      </Table.Td>
      <Table.Td>
        <Hold device={device} />
      </Table.Td>
    </Table.Tr>
  );
}

function Hold({ device }: { device: DeviceView }) {
  const queries = useQueryClient();
  const isCordoned = device.withheld === "cordoned";
  const change = useMutation({
    mutationFn: async () => {
      const path = { target: device.id };
      if (isCordoned) await uncordon({ path });
      else await cordon({ path });
    },
    onSuccess: () => {
      tellDone(isCordoned ? "The device takes work again" : "The device takes nothing new; what runs on it runs on");
      void queries.invalidateQueries({ queryKey: ["devices"] });
    },
    onError: (error) => tellFailed(isCordoned ? "uncordon" : "cordon", error),
  });
  return (
    <Button
      variant="subtle"
      size="compact-xs"
      loading={change.isPending}
      onClick={() => change.mutate()}
      disabled={device.withheld !== null && !isCordoned}
    >
      {isCordoned ? "Uncordon" : "Cordon"}
    </Button>
  );
}
