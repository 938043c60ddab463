// Rows that change while they are looked at. A table keeps the rows as they were listed; each row that is drawn takes
// its newest state from here, so that a change draws one row anew and not the table.
import { useCallback, useSyncExternalStore } from "react";

export class LiveRows<Row extends { id: string }> {
  private newest = new Map<string, Row>();
  private watchers = new Map<string, Set<() => void>>();
  private listWatchers = new Set<() => void>();
  private gone = new Set<string>();
  private listed = new Set<string>();
  private arrived = new Map<string, Row>();
  private arrivals: readonly Row[] = [];

  /** A list was loaded anew: what it says is newer than anything here. */
  reset(ids: Iterable<string>): void {
    this.listed = new Set(ids);
    this.newest.clear();
    this.gone.clear();
    this.arrived.clear();
    this.tellLists();
  }

  /** More rows of the same list were loaded. */
  extend(ids: Iterable<string>): void {
    for (const id of ids) {
      this.listed.add(id);
      this.arrived.delete(id);
    }
    this.tellLists();
  }

  /** Take in rows that changed. Those that no list shows are kept aside as arrivals. */
  patch(rows: readonly Row[], gone: readonly string[]): void {
    let hasArrived = false;
    for (const row of rows) {
      if (this.listed.has(row.id)) {
        this.newest.set(row.id, row);
        this.tell(row.id);
      } else if (this.arrived.size < 10_000) {
        this.arrived.set(row.id, row);
        hasArrived = true;
      }
    }
    for (const id of gone) {
      hasArrived = this.arrived.delete(id) || hasArrived;
      if (!this.listed.has(id)) continue;
      this.gone.add(id);
      this.tell(id);
    }
    if (hasArrived) this.tellLists();
  }

  /** What became of a row since it was listed; null if it is gone. */
  of(row: Row): Row | null {
    return this.gone.has(row.id) ? null : (this.newest.get(row.id) ?? row);
  }

  watch(id: string, watcher: () => void): () => void {
    const watchers = this.watchers.get(id) ?? new Set();
    this.watchers.set(id, watchers);
    watchers.add(watcher);
    return () => {
      watchers.delete(watcher);
      if (watchers.size === 0) this.watchers.delete(id);
    };
  }

  readonly watchArrivals = (watcher: () => void): (() => void) => {
    this.listWatchers.add(watcher);
    return () => this.listWatchers.delete(watcher);
  };

  /** Rows that came since the list was loaded. */
  readonly arrivalsNow = (): readonly Row[] => this.arrivals;

  private tell(id: string): void {
    for (const watcher of this.watchers.get(id) ?? []) watcher();
  }

  private tellLists(): void {
    this.arrivals = [...this.arrived.values()];
    for (const watcher of this.listWatchers) watcher();
  }
}

/** A listed row as it is now; null once it is gone. */
export function useLiveRow<Row extends { id: string }>(rows: LiveRows<Row>, row: Row): Row | null {
  const subscribe = useCallback((watcher: () => void) => rows.watch(row.id, watcher), [rows, row.id]);
  return useSyncExternalStore(subscribe, () => rows.of(row));
}

export function useArrivals<Row extends { id: string }>(rows: LiveRows<Row>): readonly Row[] {
  return useSyncExternalStore(rows.watchArrivals, rows.arrivalsNow);
}
