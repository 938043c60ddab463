// Why it waits, with the numbers that prove it and the smallest change that would start it: the words of `aliquot why`.
import { Button, Group } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { getReason, type WorkloadView } from "@/api";
import { Copy } from "@/parts/Copy";
import { words } from "@/parts/format";
import { Suggested } from "./Suggested";
import css from "./WhyItWaits.module.css";

export function WhyItWaits({ item }: { item: WorkloadView }) {
  const why = useQuery({
    // The reason of the last cycle stands in the row: when it changes, the explanation is asked for again.
    queryKey: ["reason", item.id, item.reason?.code, item.reason?.message],
    queryFn: async () => (await getReason({ path: { ref: item.id } })).data,
    retry: false,
  });
  const reason = why.data ?? item.reason;
  if (!reason) return null;
  return (
    <section className={css.why} aria-label="why it waits">
      <Group justify="space-between" align="flex-start" wrap="nowrap">
        <div>
          <strong>It waits: {reason.message}.</strong>{" "}
          <span className="quiet">
            <code>{reason.code}</code>
            {reason.position !== null && `, position ${reason.position} in its queue`}
          </span>
        </div>
        <Copy value={`aliquot why ${item.name} --project ${item.project}`} label="copy as a command" />
      </Group>
      {Object.keys(reason.numbers).length > 0 && (
        <p className="quiet">
          {Object.entries(reason.numbers)
            .map(([name, value]) => `${words(name)} ${value}`)
            .join(" · ")}
        </p>
      )}
      {reason.blockers.length > 0 && (
        <p>
          In the way:{" "}
          {reason.blockers.map((one, index) => (
            <span key={index}>
              {index > 0 && "; "}
              {one.workload ? (
                <Link to="/workloads/$ref" params={{ ref: one.workload }}>
                  {one.description}
                </Link>
              ) : (
                one.description
              )}
            </span>
          ))}
        </p>
      )}
      {reason.suggestion && <Suggested suggestion={reason.suggestion} />}
      {why.data && !reason.suggestion && (
        <p className="quiet">No single change would start it: {reason.noSuggestionBecause ?? "none was found"}.</p>
      )}
      {why.isPending && <p className="quiet">Looking for the smallest change that would start it…</p>}
      {why.error && (
        <Button variant="subtle" onClick={() => void why.refetch()}>
          Look for a change that would start it
        </Button>
      )}
    </section>
  );
}
