// What a workload used: GPU time that it was given, and of that what it used where this is measured.
import { Loader } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { listWorkloadUsage, type WorkloadView } from "@/api";
import { Facts } from "@/parts/Facts";
import { Fault } from "@/parts/Faults";
import { duration, number, percent } from "@/parts/format";

export default function Consumption({ item }: { item: WorkloadView }) {
  const usage = useQuery({
    queryKey: ["workload", item.id, "usage"],
    queryFn: async () => {
      const { data } = await listWorkloadUsage({ query: { name: item.name, project: item.project, limit: 100 } });
      return data.items.find((one) => one.subject === item.id) ?? null;
    },
    staleTime: 0,
  });
  if (usage.error) return <Fault error={usage.error} what="read its usage" onRetry={() => void usage.refetch()} />;
  if (usage.isPending) return <Loader aria-label="loading" />;
  const found = usage.data;
  if (found === null) return <p className="quiet">It has used no GPU time.</p>;
  const given = found.allocatedGpuSeconds;
  const used = found.usedGpuSeconds;
  return (
    <Facts
      items={[
        ["GPU hours given", number(given / 3600)],
        ["GPU hours used", used === null ? "not measured" : number(used / 3600)],
        ["Idle", used === null || given === 0 ? "not measured" : percent(1 - used / given)],
        ["Ran", duration(found.runSeconds)],
      ]}
    />
  );
}
