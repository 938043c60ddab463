// What failed, its code, whether anything was changed, and a way to try again.
import { Alert, Button, Group } from "@mantine/core";
import { IconAlertTriangle } from "@tabler/icons-react";
import { Problem } from "@/app/problems";

interface Props {
  error: unknown;
  /** What was tried, as "list the workloads". */
  what: string;
  /** Whether it was only a look, so that nothing can have changed. */
  isReading?: boolean;
  onRetry?: () => void;
}

export function Fault({ error, what, isReading = true, onRetry }: Props) {
  const problem = Problem.of(error);
  return (
    <Alert color="red" variant="light" icon={<IconAlertTriangle size={16} />} title={`Could not ${what}`} role="alert">
      <Group justify="space-between" align="flex-start">
        <span>
          {problem.message} <code>{problem.code}</code>. {changed(problem, isReading)}
        </span>
        {onRetry && (
          <Button variant="default" onClick={onRetry}>
            Try again
          </Button>
        )}
      </Group>
    </Alert>
  );
}

/** What a request that failed may have changed. */
export function changed(problem: Problem, isReading: boolean): string {
  if (isReading) return "";
  return problem.status === 0 || problem.status >= 500
    ? "It is not known whether anything was changed; look before you try again."
    : "Nothing was changed.";
}
