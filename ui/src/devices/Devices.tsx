// What does each GPU hold?
import { ActionIcon, Group, Loader, Tooltip } from "@mantine/core";
import { IconMinus, IconPlus, IconX } from "@tabler/icons-react";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useEffect, useMemo, useState } from "react";
import { type DeviceMap, getDeviceMap, listDevices } from "@/api";
import { colour, colourNames } from "@/parts/colours";
import { Empty } from "@/parts/Empty";
import { Fault } from "@/parts/Faults";
import { Filter } from "@/parts/Filter";
import { count, gpus, number } from "@/parts/format";
import { PageHead } from "@/parts/PageHead";
import { useQueryState } from "@/parts/url";
import css from "./Devices.module.css";
import { DeviceTable } from "./DeviceTable";
import { SIZES } from "./layout";
import { MapCanvas } from "./MapCanvas";
import { prepare } from "./paint";

export function Devices() {
  const [query, change] = useQueryState();
  const map = useQuery({
    queryKey: ["devices", "map"],
    queryFn: async () => (await getDeviceMap()).data as DeviceMap,
    // A hundred thousand devices: comparing them one by one would cost more than drawing them.
    structuralSharing: false,
    placeholderData: keepPreviousData,
  });
  const prepared = useMemo(() => {
    if (!map.data) return null;
    colourNames(map.data.projects);
    return prepare(map.data);
  }, [map.data]);
  const [best, setBest] = useState<number>(SIZES[0]);
  const size = Number(query.size) || best;
  const step = (by: number) => {
    const at = SIZES.findIndex((one) => one >= size) + by;
    change({ size: String(SIZES[Math.max(0, Math.min(SIZES.length - 1, at))]) });
  };

  if (map.error && !prepared)
    return <Fault error={map.error} what="read the devices" onRetry={() => void map.refetch()} />;
  if (!prepared) return <Loader aria-label="loading" />;
  const devices = prepared.map.state.length;
  if (devices === 0) return <Empty title="This cluster has no device: work that asks for no GPU runs." />;
  const held = prepared.map.held.reduce((sum, one) => sum + one, 0);
  return (
    <>
      <PageHead
        title="Devices"
        about={`${count(devices, "device")} on ${count(prepared.map.nodes.length, "node")}; ${gpus(held)} held`}
      />
      <Group mb="sm" justify="space-between">
        <Group gap="sm">
          <Filter label="node, project, model, state" />
          <Group gap={0}>
            <Tooltip label="smaller squares">
              <ActionIcon aria-label="smaller squares" color="gray" onClick={() => step(-1)}>
                <IconMinus size={16} />
              </ActionIcon>
            </Tooltip>
            <Tooltip label="larger squares">
              <ActionIcon aria-label="larger squares" color="gray" onClick={() => step(1)}>
                <IconPlus size={16} />
              </ActionIcon>
            </Tooltip>
          </Group>
          <Link to="/nodes">as a table</Link>
        </Group>
        <Legend map={prepared.map} />
      </Group>
      <MapCanvas
        prepared={prepared}
        size={size}
        filter={query.q ?? ""}
        chosen={query.node ?? null}
        onBest={setBest}
        onChoose={(node) => change({ node: node ?? "" }, true)}
      />
      {query.node && <Chosen node={query.node} onClose={() => change({ node: "" })} />}
    </>
  );
}

const SHOWN = 8;

function Legend({ map }: { map: DeviceMap }) {
  return (
    <Group gap="sm" className="quiet">
      {map.projects.slice(0, SHOWN).map((name) => (
        <span key={name}>
          <span className={css.key} style={{ background: colour(name) }} /> {name}
        </span>
      ))}
      {map.projects.length > SHOWN && <span>and {number(map.projects.length - SHOWN)} more</span>}
      <span>
        <span className={css.key} style={{ background: "var(--track)" }} /> free
      </span>
      <span>
        <span className={css.key} style={{ border: "2px solid var(--warning)" }} /> withheld
      </span>
      <span>
        <span className={css.key} style={{ background: "var(--bad)" }} /> lost
      </span>
    </Group>
  );
}

function Chosen({ node, onClose }: { node: string; onClose: () => void }) {
  const devices = useQuery({
    queryKey: ["devices", node],
    queryFn: async () => (await listDevices({ query: { node, limit: 1000 } })).data.items,
  });
  useEffect(() => {
    const close = (event: KeyboardEvent) => event.key === "Escape" && onClose();
    window.addEventListener("keydown", close);
    return () => window.removeEventListener("keydown", close);
  }, [onClose]);
  return (
    <aside className={css.chosen} aria-label={`devices of ${node}`}>
      <Group justify="space-between">
        <strong>
          <Link to="/nodes/$ref" params={{ ref: node }}>
            {node}
          </Link>
        </strong>
        <ActionIcon aria-label="close" color="gray" onClick={onClose}>
          <IconX size={16} />
        </ActionIcon>
      </Group>
      {devices.error ? (
        <Fault error={devices.error} what="list its devices" onRetry={() => void devices.refetch()} />
      ) : (
        <DeviceTable devices={devices.data ?? []} />
      )}
    </aside>
  );
}
