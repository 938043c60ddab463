// Follows the output of a workload: resumed after a cut from the last line that came, and told of in batches, so that a
// flood of lines draws the page a few times a second and not for each.
import { useEffect, useRef, useState } from "react";
import type { LogLine } from "@/api";
import { LogText } from "./logText";

const BATCH = 150;
const AGAIN = 2_000;

export type LogState = "connecting" | "live" | "complete" | "cut, coming back";

export function useLog(id: string, attempt: number): { log: LogText; count: number; state: LogState } {
  const log = useRef(new LogText());
  const [count, setCount] = useState(0);
  const [state, setState] = useState<LogState>("connecting");

  // biome-ignore lint/correctness/useExhaustiveDependencies: a new attempt writes anew into the same log
  useEffect(() => {
    let after = "";
    let timer = 0;
    let source: EventSource | null = null;
    let isOver = false;
    let partial = "";
    log.current = new LogText();
    setCount(0);

    function take(event: MessageEvent<string>): void {
      const line = JSON.parse(event.data) as LogLine;
      after = event.lastEventId;
      const writer = `${line.pod} ${line.stream}`;
      if (partial === writer) log.current.extendLast(line.text);
      else log.current.add({ text: line.text, time: Date.parse(line.time), channel: line.stream, index: line.index });
      partial = line.isPartial ? writer : "";
    }

    function open(): void {
      const where = after === "" ? "" : `?after=${encodeURIComponent(after)}`;
      source = new EventSource(`/api/v1/workloads/${id}/logs/stream${where}`);
      source.onopen = () => setState("live");
      source.onmessage = take;
      source.addEventListener("end", () => {
        isOver = true;
        setState("complete");
        source?.close();
      });
      source.onerror = () => {
        source?.close();
        if (isOver) return;
        setState("cut, coming back");
        timer = window.setTimeout(open, AGAIN);
      };
    }

    open();
    const batch = window.setInterval(() => setCount(log.current.length), BATCH);
    return () => {
      source?.close();
      window.clearTimeout(timer);
      window.clearInterval(batch);
    };
  }, [id, attempt]);

  return { log: log.current, count, state };
}
