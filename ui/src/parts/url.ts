// What a view shows is in its URL, so that it can be sent to someone: filters, order, columns, the row that is open.
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useCallback } from "react";

export type Query = Readonly<Record<string, string | undefined>>;

/** All parameters of the URL are texts; empty ones are left out. */
export function readQuery(search: Record<string, unknown>): Query {
  const entries = Object.entries(search).filter(([, value]) => value !== undefined && value !== null && value !== "");
  return Object.fromEntries(entries.map(([name, value]) => [name, String(value)]));
}

/** The parameters, and a way to change some of them. `undefined` or "" takes one away. */
export function useQueryState(): [Query, (change: Query, isStep?: boolean) => void] {
  const query = useSearch({ strict: false }) as Query;
  const navigate = useNavigate();
  const change = useCallback(
    (wanted: Query, isStep = false) => {
      void navigate({
        to: ".",
        search: ((before: Query) => readQuery({ ...before, ...wanted })) as never,
        replace: !isStep,
        resetScroll: false,
      });
    },
    [navigate],
  );
  return [query, change];
}
