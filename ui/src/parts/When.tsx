// A time as its age, which grows while one looks; the time itself on hover. Ages are by the server's clock.
import { useSyncExternalStore } from "react";
import { now } from "@/live/clock";
import { absolute, duration } from "./format";

const TICK = 1_000;
const watchers = new Set<() => void>();
let tick = 0;
let timer = 0;

function subscribe(watcher: () => void): () => void {
  watchers.add(watcher);
  if (timer === 0) timer = window.setInterval(beat, TICK);
  return () => {
    watchers.delete(watcher);
    if (watchers.size > 0) return;
    window.clearInterval(timer);
    timer = 0;
  };
}

function beat(): void {
  tick += 1;
  for (const watcher of watchers) watcher();
}

/** Draws the caller anew each second. */
export function useTick(): number {
  return useSyncExternalStore(subscribe, () => tick);
}

/** Seconds since a time, by the server's clock. */
export function age(time: string): number {
  return (now() - Date.parse(time)) / 1000;
}

export function When({ time, suffix = " ago" }: { time: string | null | undefined; suffix?: string }) {
  useTick();
  if (!time) return <span className="quiet">–</span>;
  const seconds = age(time);
  const text = seconds < 0 ? `in ${duration(-seconds)}` : `${duration(seconds)}${suffix}`;
  return (
    <time dateTime={time} title={absolute(time)}>
      {text}
    </time>
  );
}
