// The smallest change that would start something, and one click to make it.
import { Button, Group } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type Suggestion, stopWorkload, uncordon, updateDepartment, updateProject, updateWorkload } from "@/api";
import { Copy } from "@/parts/Copy";
import { tellDone, tellFailed } from "@/parts/notify";

const WHO = { owner: "its owner", project: "who manages the project", administrator: "an administrator" } as const;

/** Make the change that a suggestion names. */
export function apply(suggestion: Suggestion): Promise<unknown> {
  const path = { ref: suggestion.target };
  const body = suggestion.body as never;
  switch (suggestion.operation) {
    case "updateWorkload":
      return updateWorkload({ path, body });
    case "updateProject":
      return updateProject({ path, body });
    case "updateDepartment":
      return updateDepartment({ path, body });
    case "stopWorkload":
      return stopWorkload({ path });
    case "uncordon":
      return uncordon({ path: { target: suggestion.target } });
  }
}

export function Suggested({ suggestion, onApply }: { suggestion: Suggestion; onApply?: () => void }) {
  const queries = useQueryClient();
  const change = useMutation({
    mutationFn: () => apply(suggestion),
    onSuccess: () => {
      tellDone(`Done: ${suggestion.description}`);
      void queries.invalidateQueries();
    },
    onError: (error) => tellFailed("make the change", error),
  });
  const after =
    suggestion.outcome === "starts" ? "it starts" : `it starts after evicting ${suggestion.evicts.join(", ")}`;
  return (
    <Group gap="sm" mt={4}>
      <Button loading={change.isPending} disabled={change.isSuccess} onClick={onApply ?? (() => change.mutate())}>
        {suggestion.description}
      </Button>
      <span>
        Then {after}. <span className="quiet">{WHO[suggestion.whoCan]} can do this.</span>
      </span>
      {suggestion.command && (
        <span>
          <code>{suggestion.command}</code> <Copy value={suggestion.command} label="copy the command" />
        </span>
      )}
    </Group>
  );
}
