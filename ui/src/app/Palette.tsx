// Go anywhere, do anything: pages, actions, and workloads, projects and nodes by name.
import { Spotlight, type SpotlightActionData } from "@mantine/spotlight";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { listNodes, listProjects, listWorkloads } from "@/api";
import { PLACES } from "./places";

const AT_MOST = 6;

async function find(text: string) {
  const [workloads, projects, nodes] = await Promise.all([
    listWorkloads({ query: { q: text, limit: AT_MOST } }),
    listProjects({ query: { q: text, limit: AT_MOST } }),
    listNodes({ query: { limit: 200 } }),
  ]);
  return {
    workloads: workloads.data.items,
    projects: projects.data.items,
    nodes: nodes.data.items.filter((one) => one.id.includes(text)).slice(0, AT_MOST),
  };
}

export default function Palette() {
  const navigate = useNavigate();
  const [text, setText] = useState("");
  const wanted = text.trim();
  const found = useQuery({
    queryKey: ["palette", wanted],
    queryFn: () => find(wanted),
    enabled: wanted.length > 0,
    placeholderData: keepPreviousData,
  });

  const places: SpotlightActionData[] = PLACES.map(({ to, label }) => ({
    id: to,
    label,
    description: "page",
    onClick: () => void navigate({ to }),
  }));
  places.push({
    id: "submit",
    label: "Submit a workload",
    description: "do",
    onClick: () => void navigate({ to: "/submit" }),
  });
  const { workloads = [], projects = [], nodes = [] } = wanted === "" ? {} : (found.data ?? {});
  const things: SpotlightActionData[] = [
    ...workloads.map((one) => ({
      id: one.id,
      label: one.name,
      description: `workload of ${one.project}, ${one.phase}`,
      onClick: () => void navigate({ to: "/workloads/$ref", params: { ref: one.id } }),
    })),
    ...projects.map((one) => ({
      id: one.id,
      label: one.name,
      description: `project of ${one.department}`,
      onClick: () => void navigate({ to: "/projects", search: { queue: one.name } as never }),
    })),
    ...nodes.map((one) => ({
      id: `node ${one.id}`,
      label: one.id,
      description: `node of pool ${one.pool}`,
      onClick: () => void navigate({ to: "/nodes/$ref", params: { ref: one.id } }),
    })),
  ];
  return (
    <Spotlight
      actions={[...places, ...things]}
      query={text}
      onQueryChange={setText}
      shortcut={null}
      limit={20}
      nothingFound="nothing of that name"
      searchProps={{ placeholder: "Go to or do…", "aria-label": "go to or do" }}
      scrollable
      maxHeight={420}
    />
  );
}
