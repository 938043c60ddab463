// The state of a workload: an icon, a word, a colour; and of what waits its reason in one line.
import {
  IconAlertTriangle,
  IconBan,
  IconCircleCheck,
  IconClock,
  IconLoader,
  IconPlayerPause,
  IconPlayerPlay,
  IconX,
} from "@tabler/icons-react";
import type { Phase, WorkloadView } from "@/api";
import { duration, words } from "@/parts/format";
import css from "./State.module.css";

type Tone = "good" | "info" | "warning" | "bad" | "quiet";

const LOOKS: Record<Phase, { icon: typeof IconX; tone: Tone; word: string }> = {
  pending: { icon: IconClock, tone: "warning", word: "waits" },
  starting: { icon: IconLoader, tone: "info", word: "starting" },
  running: { icon: IconPlayerPlay, tone: "good", word: "running" },
  evicting: { icon: IconAlertTriangle, tone: "warning", word: "evicting" },
  restarting: { icon: IconLoader, tone: "warning", word: "restarting" },
  suspending: { icon: IconPlayerPause, tone: "quiet", word: "suspending" },
  stopping: { icon: IconBan, tone: "quiet", word: "stopping" },
  failing: { icon: IconX, tone: "bad", word: "failing" },
  suspended: { icon: IconPlayerPause, tone: "quiet", word: "suspended" },
  succeeded: { icon: IconCircleCheck, tone: "quiet", word: "succeeded" },
  failed: { icon: IconX, tone: "bad", word: "failed" },
  stopped: { icon: IconBan, tone: "quiet", word: "stopped" },
};

export const PHASES = Object.keys(LOOKS) as Phase[];

const FINISHED: readonly Phase[] = ["succeeded", "failed", "stopped"];

export function isFinished(phase: Phase): boolean {
  return FINISHED.includes(phase);
}

export function PhaseBadge({ phase }: { phase: Phase }) {
  const { icon: Icon, tone, word } = LOOKS[phase];
  return (
    <span className={css.phase} data-tone={tone}>
      <Icon size={14} aria-hidden /> {word}
    </span>
  );
}

/** What there is to say beside the phase, in one line. */
export function remark(item: WorkloadView): string {
  if (item.phase === "pending" && item.reason) return item.reason.message;
  if (item.outcome === null) return item.url ?? "";
  if (item.exitSignal !== null) return `${words(item.outcome)}, signal ${item.exitSignal}`;
  const code = item.exitCode === null || item.exitCode === 0 ? "" : `, exit code ${item.exitCode}`;
  return item.outcome === "completed" ? `ran ${duration(item.ranSeconds)}` : `${words(item.outcome)}${code}`;
}

export function State({ item }: { item: WorkloadView }) {
  const text = remark(item);
  return (
    <span title={text}>
      <PhaseBadge phase={item.phase} />
      {text && <span className="quiet"> {text.slice(0, 300)}</span>}
    </span>
  );
}
