// What submitting would do now, by the engine itself: nothing is created by looking.
import { Group, Loader } from "@mantine/core";
import { IconAlertTriangle, IconCircleCheck, IconClock } from "@tabler/icons-react";
import type { ReactNode } from "react";
import type { DryRun, Suggestion } from "@/api";
import type { Problem } from "@/app/problems";
import { words } from "@/parts/format";
import { Suggested } from "@/workloads/Suggested";
import type { Draft } from "./draft";
import css from "./Submit.module.css";

interface Props {
  result: DryRun | undefined;
  problem: Problem | null;
  isLooking: boolean;
  /** Takes over fields that the smallest change would change. */
  onTake: (change: Partial<Draft>) => void;
  children: ReactNode;
}

export function Outlook({ result, problem, isLooking, onTake, children }: Props) {
  return (
    <section className={css.outlook} aria-label="what would happen" aria-live="polite">
      <Group justify="space-between" align="flex-start" wrap="nowrap">
        <div style={{ minWidth: 0 }}>
          {problem ? <Refused problem={problem} /> : result && <Verdict result={result} onTake={onTake} />}
        </div>
        <Group gap="sm" wrap="nowrap">
          {isLooking && <Loader size={14} aria-label="looking" />}
          {children}
        </Group>
      </Group>
    </section>
  );
}

function Refused({ problem }: { problem: Problem }) {
  return (
    <Group gap="sm" wrap="nowrap" style={{ color: "var(--bad)" }}>
      <IconAlertTriangle size={16} aria-hidden style={{ flex: "none" }} />
      <div>
        {problem.faults.length > 0
          ? problem.faults.slice(0, 6).map((one) => (
              <div key={one.field + one.message}>
                <code>{one.field}</code> {one.message}
                {one.valid.length > 0 && <span className="quiet"> (valid: {one.valid.slice(0, 8).join(", ")})</span>}
              </div>
            ))
          : problem.message}
      </div>
    </Group>
  );
}

function Verdict({ result, onTake }: { result: DryRun; onTake: (change: Partial<Draft>) => void }) {
  const places = result.places.length > 0 ? ` on ${result.places.map(placeText).join(", ")}` : "";
  if (result.outcome === "starts")
    return (
      <Group gap="sm" style={{ color: "var(--good)" }}>
        <IconCircleCheck size={16} aria-hidden /> <strong>Starts now{places}.</strong>
      </Group>
    );
  if (result.outcome === "starts-after-evictions")
    return (
      <Group gap="sm" style={{ color: "var(--warning)" }}>
        <IconAlertTriangle size={16} aria-hidden />
        <strong>
          Starts{places} after evicting {result.evicts.join(", ")}.
        </strong>
      </Group>
    );
  const { reason } = result;
  return (
    <>
      <Group gap="sm" wrap="nowrap" style={{ color: "var(--warning)" }}>
        <IconClock size={16} aria-hidden style={{ flex: "none" }} />
        <strong>Would wait{reason ? `: ${reason.message}` : ""}.</strong>
      </Group>
      {reason && Object.keys(reason.numbers).length > 0 && (
        <div className="quiet">
          {Object.entries(reason.numbers)
            .map(([name, value]) => `${words(name)} ${value}`)
            .join(" · ")}
        </div>
      )}
      {reason?.suggestion && (
        <Suggested suggestion={reason.suggestion} onApply={ownChange(reason.suggestion, onTake)} />
      )}
      {reason && !reason.suggestion && reason.noSuggestionBecause && (
        <div className="quiet">No single change would start it: {reason.noSuggestionBecause}.</div>
      )}
    </>
  );
}

/** A change of the workload itself is a change of the form. */
function ownChange(suggestion: Suggestion, onTake: (change: Partial<Draft>) => void): (() => void) | undefined {
  return suggestion.operation === "updateWorkload" ? () => onTake(suggestion.body as Partial<Draft>) : undefined;
}

/** `node-2/3` is device 3 of node-2. */
function placeText(place: string): string {
  const at = place.lastIndexOf("/");
  return at < 0 ? place : `${place.slice(0, at)}, device ${place.slice(at + 1)}`;
}
