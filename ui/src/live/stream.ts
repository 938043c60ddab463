// The stream of changes: opened once, resumed after each cut from the last change that was taken in, and honest about
// how old the page is. A proxy may keep a dead connection open, so silence counts as a cut: the server speaks at least
// every five seconds.
import { useSyncExternalStore } from "react";
import type { Changes } from "@/api";
import { tellTime } from "./clock";

const SILENCE = 12_000;
const LONGEST_PAUSE = 10_000;

export interface Liveness {
  /** `connecting` until the first word; `stale` from a cut until the stream goes on. */
  state: "connecting" | "live" | "stale";
  /** `performance.now()` at the last word, which no clock change can move. */
  heard: number;
  version: string | null;
}

type Listener = (changes: Changes) => void;

export class Stream {
  private source: EventSource | null = null;
  private after: number | null = null;
  private attempts = 0;
  private timer = 0;
  private watchers = new Set<() => void>();
  private liveness: Liveness = { state: "connecting", heard: performance.now(), version: null };

  constructor(
    private readonly onChanges: Listener,
    private readonly onResumed: () => void,
  ) {}

  open(): void {
    this.close();
    const query = this.after === null ? "" : `?after=${this.after}`;
    const source = new EventSource(`/api/v1/changes/stream${query}`);
    this.source = source;
    source.addEventListener("hello", (event) => this.hear(event, true));
    source.addEventListener("beat", (event) => this.hear(event, false));
    source.addEventListener("changes", (event) => {
      const changes = JSON.parse(event.data) as Changes;
      this.hear(event, false);
      this.onChanges(changes);
    });
    source.onerror = () => this.cut();
    this.watch();
  }

  close(): void {
    window.clearTimeout(this.timer);
    this.source?.close();
    this.source = null;
  }

  readonly subscribe = (watcher: () => void): (() => void) => {
    this.watchers.add(watcher);
    return () => this.watchers.delete(watcher);
  };

  readonly state = (): Liveness => this.liveness;

  private hear(event: MessageEvent<string>, isHello: boolean): void {
    const said = JSON.parse(event.data) as { sequence: number; time: string; version?: string };
    tellTime(said.time);
    const before = this.liveness;
    const hasMissed = isHello && this.after === null && before.state === "stale";
    this.after = said.sequence;
    this.attempts = 0;
    const version = said.version ?? before.version;
    this.tell({ state: "live", heard: performance.now(), version });
    this.watch();
    if (hasMissed) this.onResumed();
    // A new version of the server brings a new page with it.
    if (before.version !== null && version !== before.version) window.location.reload();
  }

  private watch(): void {
    window.clearTimeout(this.timer);
    this.timer = window.setTimeout(() => this.cut(), SILENCE);
  }

  private cut(): void {
    this.close();
    this.tell({ ...this.liveness, state: "stale" });
    const pause = Math.min(LONGEST_PAUSE, 500 * 2 ** this.attempts) * (0.5 + Math.random() / 2);
    this.attempts += 1;
    this.timer = window.setTimeout(() => this.open(), pause);
  }

  private tell(liveness: Liveness): void {
    this.liveness = liveness;
    for (const watcher of this.watchers) watcher();
  }
}

export function useLiveness(stream: Stream): Liveness {
  return useSyncExternalStore(stream.subscribe, stream.state);
}
